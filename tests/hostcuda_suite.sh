#!/bin/sh
# usage: hostcuda_suite.sh [--full] PROGRAM...    The unit suite on the CUDA context, executed by tests/hostcuda, once per PROGRAM (build
# variants: plain, asan, ...); --full: in each order of stream work, blocks and threads too. Last line: N passed, N failed, N skipped.
set -u
full=
[ "${1:-}" != --full ] || { full=--full; shift; }
passed=0 failed=0 skipped=0
out=$(mktemp) || exit 2
trap 'rm -f "$out"' EXIT INT TERM

run() { # MODE ORDER PROGRAM
    echo "---- $3, stream work $1, threads $2"
    # shellcheck disable=SC2086
    HCU_MODE=$1 HCU_ORDER=$2 HCU_SEED=$$ "$3" --context cuda $full >"$out" 2>&1
    rc=$?
    cat "$out"
    counts=$(grep '^[0-9]* passed, [0-9]* failed, [0-9]* skipped$' "$out" | tail -n 1)
    if [ -z "$counts" ]; then
        echo "FAILED: exit status $rc, no counts"
        failed=$((failed + 1))
        return
    fi
    p=${counts%% *} f=${counts#*, } s=${counts##*, }
    passed=$((passed + p)) failed=$((failed + ${f%% *})) skipped=$((skipped + ${s%% *}))
    if [ $rc != 0 ] && [ "${f%% *}" = 0 ]; then
        echo "FAILED: exit status $rc (seed $$)"
        failed=$((failed + 1))
    fi
}

for program in "$@"; do
    run lazy forward "$program"
    [ -n "$full" ] || continue
    run eager reverse "$program"
    run random shuffle "$program"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
