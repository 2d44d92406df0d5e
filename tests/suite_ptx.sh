#!/bin/sh
# usage: suite_ptx.sh PROGRAM FILE.ptx    Tests of the CUDA context on the host runtime, with kernels from a PTX file: that of nvcc's short way,
# --Ofast-compile=mid, which docs/build.md offers. Casts and what looks at arrays, scaling, and updates, which are slow to interpret, by their
# shortest test of bits. A kernel that the interpreter cannot read stays with its host version: at most a fifth of them may.
# Last line: N passed, N failed, N skipped.
set -u
program=${1:?PROGRAM} ptx=${2:?FILE.ptx}
out=$(mktemp) || exit 2
trap 'rm -f "$out"' EXIT
trap 'exit 130' INT TERM
for tests in '--file arrays' '--file scaler' '--filter step.bits_small'; do
    # shellcheck disable=SC2086 # two words
    HCU_PROTECT=0 HCU_SMS=1 HCU_PTX=$ptx "$program" --context cuda $tests >>"$out" 2>&1 || echo "FAILED: $tests, exit status $?" >>"$out"
done
cat "$out"
stay=$(sed -n 's/^hostcuda: \(.*\) stays with its host version.*/\1/p' "$out" | sort -u | wc -l) all=$(grep -c '^\.entry' "$ptx")
echo "$stay of $all kernels stay with their host version"
[ "$all" -gt 0 ] && [ $((5 * stay)) -le "$all" ] || echo "FAILED: too few of $ptx's kernels were read" >>"$out"
awk '/^FAILED: /{ f++ } /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5 } END { print p + 0 " passed, " f + 0 " failed, " s + 0 " skipped"; exit f > 0 }' "$out"
