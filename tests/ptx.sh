#!/bin/bash
# usage: ptx.sh [ARCH...]     Looks at what nvcc makes of amp_cuda.cuh; needs nvcc, no GPU.
# tests/hostcuda/ptx_check.sh with the table tests/ptx.txt, under --use_fast_math, which must change nothing that matters: no
# approximation, no unrounded operation, no flushing of subnormals. For sm_90; with ARCHs, as 75 80: for these, and with plain flags too.
# And the object exports amp_ names only: nvcc's; without ARCHs that of the host runtime, from the same source, where it is built.
# Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
export NVCC=${NVCC:-nvcc} NVCCFLAGS
NVCC=$(command -v "$NVCC") || { echo "skipped: no nvcc"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
bad() { failed=$((failed + 1)); echo "FAIL $*"; }

object=
modes=("" --use_fast_math)
[ $# -gt 0 ] || { modes=(--use_fast_math); object=${BUILD:-build}/hostcuda/plain/cuda_impl.o; set -- 90; }
for arch; do
    rm -f "$work/k.ptx"
    for flags in "${modes[@]}"; do
        echo "---- sm_$arch $flags"
        NVCCFLAGS="-O2 -I. -Werror all-warnings $flags"
        PTX=$work/k.ptx tests/hostcuda/ptx_check.sh tests/cuda_impl.cu tests/ptx.txt "$arch" >"$work/log" 2>&1
        cat "$work/log"
        if read -r p f < <(sed -n 's/^ptx_check sm_[0-9]*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$work/log"); then
            passed=$((passed + p)) failed=$((failed + f))
        else
            bad "sm_$arch $flags: ptx_check counted nothing"
        fi
    done
    # its PTX under fast-math is still here
    # from sm_100 on nvcc asks whether a float is finite by |x| == Inf, which no flushing can change: abs and setp, in two lines
    flushes=$(awk '/\.entry/ { k = $0; sub(/.*\.entry +/, "", k); sub(/\(.*/, "", k) }
        asked != "" { if ($1 ~ /^setp\.(equ|neu|eq|ne)\.ftz\.f32$/ && $3 == asked && $4 == "0f7F800000;") { asked = ""; next } n[k]++; op[k] = "abs.ftz.f32"; asked = "" }
        /abs\.ftz\.f32/ { asked = $2; next }
        /rcp\.approx\.ftz\.f32/ { next } # of a number in [1, 2], see ampi_recip
        /\.ftz/ { n[k]++; op[k] = $1 ~ /^@/ ? $2 : $1 }
        END { for (k in n) print "  " n[k] " instructions of " k ", such as " op[k] }' "$work/k.ptx" 2>&1)
    if ! grep -s -q '\.entry.*ampi_k_' "$work/k.ptx"; then bad "sm_$arch: nvcc made no kernel"
    elif [ -z "$flushes" ]; then passed=$((passed + 1)); else bad "sm_$arch --use_fast_math flushes subnormals:"; echo "$flushes"; fi
done

# the names are the host compiler's: device code may be as slow as it likes
if ! [ -r "$object" ]; then
    object=$work/k.o
    "$NVCC" -std=c++17 -O0 -Xcicc -O0 -Xptxas -O0 -Werror all-warnings -Xcompiler -Wall,-Wextra -arch=sm_"$arch" -I. -c tests/cuda_impl.cu -o "$object"
fi
if [ -r "$object" ]; then
    nm -g --defined-only "$object" | awk '$2 !~ /[VWu]/ { print $3 }' >"$work/names"
    names=$(grep -v '^amp_' "$work/names")
    if ! grep -q '^amp_' "$work/names"; then bad "cuda_impl.o exports nothing"
    elif [ -z "$names" ]; then passed=$((passed + 1)); else bad "cuda_impl.o exports $names"; fi
else
    bad "cuda_impl.cu does not compile"
fi
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
