#!/bin/sh
# usage: hostcuda_suite.sh [--full] PROGRAM...    The unit suite on the CUDA context, executed by tests/hostcuda, once per PROGRAM
# (BUILD/hostcuda/VARIANT/suite; variants: plain, asan, tsan, msan, vg). --full: plain with all grids and in three orders of stream
# work, blocks and threads, the others in two orders, vg in one. Last line: N passed, N failed, N skipped.
set -u
full=
[ "${1:-}" != --full ] || { full=--full; shift; }
passed=0 failed=0 skipped=0
out=$(mktemp) || exit 2
trap 'rm -f "$out"' EXIT INT TERM

export ASAN_OPTIONS=allocator_may_return_null=1 TSAN_OPTIONS=allocator_may_return_null=1 MSAN_OPTIONS=allocator_may_return_null=1

run() { # MODE ORDER PROGRAM ARGUMENT...
    mode=$1 order=$2 program=$3
    shift 3
    wrap=
    case $program in */vg/*) wrap="valgrind -q --error-exitcode=9" ;; esac
    echo "---- $program, stream work $mode, threads $order"
    # shellcheck disable=SC2086
    HCU_MODE=$mode HCU_ORDER=$order HCU_SEED=$$ $wrap "$program" --context cuda "$@" >"$out" 2>&1
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
    case $full,$program in
    ,*) run lazy forward "$program" ;;
    *,*/plain/*)
        run lazy forward "$program" --full
        run eager reverse "$program"
        run random shuffle "$program" ;;
    *,*/vg/*) run lazy forward "$program" ;;
    *)
        run lazy forward "$program"
        run random shuffle "$program" ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
