#!/bin/sh
# usage: hostcuda_suite.sh PROGRAM [MODE ORDER [ARGUMENT...]]    The unit suite on the CUDA context, executed by tests/hostcuda.
# PROGRAM: BUILD/hostcuda/VARIANT/suite; variants: plain, asan, tsan, msan, vg. MODE: when stream work runs, lazy, eager or random.
# ORDER: of blocks and threads, forward, reverse or shuffle. ARGUMENT: of the suite. Last line: N passed, N failed, N skipped.
# Without a MODE the suite runs with device memory open to the host, which takes a tenth of the time, for each of its tests that names a
# verb is in tests/cuda_verbs.cpp with device memory closed, and the GPU has one SM; the tests of $closed then run again with it closed. Every
# third test has its turn today (tests/today.sh); the counts of the first third are those of the context cuda-1of3.
set -u
. "$(dirname "$0")/today.sh"
program=${1:?PROGRAM} given=$(($# - 1)) mode=${2:-lazy} order=${3:-forward}
shift
[ $# -lt 2 ] || shift 2
out=$(mktemp) || exit 2
trap 'rm -f "$out" "$out.third" "$out.closed"' EXIT
trap 'exit 130' INT TERM
export ASAN_OPTIONS=allocator_may_return_null=1 TSAN_OPTIONS=allocator_may_return_null=1 MSAN_OPTIONS=allocator_may_return_null=1
counts='^[0-9]* passed, [0-9]* failed, [0-9]* skipped$' wrap=
case $program in */vg/*) wrap="valgrind -q --error-exitcode=9" ;; esac

echo "$program, stream work $mode, threads $order"
closed='cast.in_place histogram.lists scaler.unscale_lists params.moves step.clip_both linear.col_sum_bits xent.errors'
# shellcheck disable=SC2086
if [ "$given" = 0 ]; then
    HCU_SMS=1 # the smallest grids: less time, and what goes on beyond a grid does so early
    export HCU_SMS
    rc=0
    for third in 1 2 3; do
        today $third 3 || continue
        HCU_PROTECT=0 HCU_SEED=$$ "$program" --counts --context cuda --slice $third/3 >"$out.third" 2>&1 || rc=1
        tail -n 1 "$out.third" | grep -q "$counts" || { echo "FAILED: third $third has no counts"; rc=1; }
        sed "s/^counts cuda /counts cuda-${third}of3 /" "$out.third" >>"$out"
    done
    grep "$counts" "$out" | awk '{ p += $1; f += $3; s += $5 } END { print p + 0 " passed, " f + 0 " failed, " s + 0 " skipped" }' >"$out.third"
    cat "$out.third" >>"$out"
    for test in $closed; do
        HCU_SEED=$$ "$program" --context cuda --filter "$test" >"$out.closed" 2>&1 || { cat "$out.closed"; rc=1; }
        tail -n 1 "$out.closed" | grep -q '^[1-9][0-9]* passed, 0 failed' || { echo "FAILED: $test, memory closed"; rc=1; }
    done
else
    HCU_MODE=$mode HCU_ORDER=$order HCU_SEED=$$ $wrap "$program" --context cuda "$@" >"$out" 2>&1
    rc=$?
fi
cat "$out"
if ! tail -n 1 "$out" | grep -q "$counts"; then
    echo "FAILED: exit status $rc, no counts"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
[ $rc = 0 ] || echo "exit status $rc, HCU_SEED=$$"
exit $rc
