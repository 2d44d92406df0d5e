#!/bin/sh
# usage: suite_ptx.sh PROGRAM FILE.ptx    The unit suite on the CUDA context of the host runtime, its kernels taken from a PTX file: here that of
# nvcc's short way, --Ofast-compile=mid, which docs/build.md offers. A kernel that the interpreter cannot read stays with its host version:
# at most a fifth of them may. Last line: N passed, N failed, N skipped.
set -u
program=${1:?PROGRAM} ptx=${2:?FILE.ptx}
out=$(mktemp) || exit 2
trap 'rm -f "$out"' EXIT
trap 'exit 130' INT TERM
HCU_PROTECT=0 HCU_SMS=1 HCU_PTX=$ptx "$(dirname "$0")/hostcuda_suite.sh" "$program" lazy forward >"$out" 2>&1
rc=$?
stay=$(grep -c 'stays with its host version' "$out") all=$(grep -c '^\.visible \.entry\|^\.entry' "$ptx")
echo "$stay of $all kernels stay with their host version"
cat "$out"
if [ "$all" -gt 0 ] && [ $((5 * stay)) -le "$all" ]; then exit $rc; fi
echo "FAILED: too few of $ptx's kernels were read"
echo "0 passed, 1 failed, 0 skipped"
exit 1
