#!/bin/sh
# usage: hostcuda_suite.sh PROGRAM [MODE ORDER [ARGUMENT...]]    The unit suite on the CUDA context, executed by tests/hostcuda.
# PROGRAM: BUILD/hostcuda/VARIANT/suite; variants: plain, asan, tsan, msan, vg. MODE: when stream work runs, lazy, eager or random.
# ORDER: of blocks and threads, forward, reverse or shuffle. ARGUMENT: of the suite. Last line: N passed, N failed, N skipped.
set -u
program=${1:?PROGRAM} mode=${2:-lazy} order=${3:-forward}
shift
[ $# -lt 2 ] || shift 2
out=$(mktemp) || exit 2
trap 'rm -f "$out"' EXIT INT TERM
export ASAN_OPTIONS=allocator_may_return_null=1 TSAN_OPTIONS=allocator_may_return_null=1 MSAN_OPTIONS=allocator_may_return_null=1
wrap=
case $program in */vg/*) wrap="valgrind -q --error-exitcode=9" ;; esac

echo "$program, stream work $mode, threads $order"
# shellcheck disable=SC2086
HCU_MODE=$mode HCU_ORDER=$order HCU_SEED=$$ $wrap "$program" --context cuda "$@" >"$out" 2>&1
rc=$?
cat "$out"
if ! tail -n 1 "$out" | grep -q '^[0-9]* passed, [0-9]* failed, [0-9]* skipped$'; then
    echo "FAILED: exit status $rc, no counts"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
[ $rc = 0 ] || echo "exit status $rc, HCU_SEED=$$"
exit $rc
