#!/bin/bash
# usage: ptx.sh [ARCH...]     Looks at what nvcc makes of amp_cuda.cuh; needs nvcc, no GPU.
# With ARCHs, as 75 80: tests/hostcuda/ptx_check.sh with the table tests/expected/ptx.txt, with plain flags and under --use_fast_math, which must
# change nothing that matters: no approximation, no unrounded operation, no flushing of subnormals. Without: that no function of it flushes
# or estimates under --use_fast_math on sm_90: in $FAST_PTX, the kernels of `make test`'s machine code; else in all, compiled without
# optimisation in a fifth of the time. Where it is optimised: which kernels may run beside the one before them. And the object exports amp_ names only: nvcc's; without ARCHs that of the host runtime, from the same source, where it is
# built. Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
export NVCC=${NVCC:-nvcc} NVCCFLAGS
NVCC=$(command -v "$NVCC") || { echo "skipped: no nvcc"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
bad() { failed=$((failed + 1)); echo "FAIL $*"; }

# check ARCH: the table beside the kernels; the environment says where their PTX is
check() {
    tests/hostcuda/ptx_check.sh tests/cuda_impl.cu tests/expected/ptx.txt "$1" >"$work/log" 2>&1
    cat "$work/log"
    if read -r p f < <(sed -n 's/^ptx_check sm_[0-9]*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$work/log"); then
        passed=$((passed + p)) failed=$((failed + f))
    else
        bad "sm_$1 $NVCCFLAGS: ptx_check counted nothing"
    fi
}
# flushing ARCH FILE [optimised]: no instruction of that PTX does; not optimised it shows which function each is in
flushing() {
    # no flushing can change whether x == Inf, or |x| == Inf, as nvcc asks from sm_100 on whether x is finite: abs and setp, in two lines
    flushes=$(awk -v inlined="${3:-}" '
        function count(instruction) {
            n[k]++
            op[k] = instruction
        }
        /\.(entry|func)/ {
            k = $0
            sub(/.*\.(entry|func) +(\(.*\) +)?/, "", k)
            sub(/\(.*/, "", k)
        }
        k ~ /^_Z[0-9]+naive_/ { next } # of tests/naive_tail.cu, as a first version writes it
        asked != "" {
            compared = $1 ~ /^setp\.(equ|neu|eq|ne)\.ftz\.f32$/ && $3 == asked && $4 == "0f7F800000;"
            asked = ""
            if (compared) next
            count("abs.ftz.f32")
        }
        /abs\.ftz\.f32/ {
            asked = $2
            next
        }
        $1 ~ /^setp\.(equ|neu|eq|ne)\.ftz\.f32$/ && $NF == "0f7F800000;" { next }
        /rcp\.approx\.ftz\.f32/ && (inlined || k ~ /ampi_recip|ampi_about_inverse/) { next } # of a number in [1, 2], or not below 2^-56
        /[^r]sqrt\.approx\.ftz\.f32/ && (inlined || k ~ /ampi_about_root/) { next } # of a number not below 2^-38
        /rsqrt\.approx\.ftz\.f32/ && (inlined || k ~ /ampi_about_rsqrt/) { next } # of a number not below 2^-100
        /add\.ftz\.f32/ && k ~ /ampi_scalar_exp_scaled/ { next } # of a whole number and a constant
        /\.ftz/ { count($1 ~ /^@/ ? $2 : $1) }
        END { for (k in n) print "  " n[k] " instructions of " k ", such as " op[k] }' "$2" 2>&1)
    if ! grep -s -q '\.entry.*ampi_k_' "$2"; then
        bad "sm_$1: nvcc made no kernel"
    elif [ -z "$flushes" ]; then
        passed=$((passed + 1))
    else
        bad "sm_$1 --use_fast_math flushes subnormals:"
        echo "$flushes"
    fi
}
# following ARCH FILE: an update that is launched to follow its inspection (AMP_CUDA_DEPENDENT_LAUNCH) touches no memory but its own, .shared,
# before it has waited; inspections let it begin, no other kernel does either; and none before sm_90, which has no instruction for it
following() {
    strays=$(awk -v arch="$1" '
        function stray(text) { print "  " k ": " text }
        function done() {
            if (arch < 90) { if (waits || lets) stray("waits or lets others begin") }
            else if (k ~ /ampi_k_(count_)?update/) { if (!waits) stray("does not wait") }
            else if (waits) stray("waits")
            else if (!lets != (k !~ /ampi_k_(inspect|conclude)/)) stray(lets ? "lets others begin" : "lets nobody begin")
        }
        /\.entry/ {
            k = $0
            sub(/.*\.entry +/, "", k)
            sub(/[( ].*/, "", k)
            waits = lets = 0
            inside = k ~ /ampi_k_/
        }
        !inside { next }
        /griddepcontrol\.launch_dependents/ { lets = 1 }
        /griddepcontrol\.wait/ { waits = 1 }
        /^[ \t]*(@!?%[a-z0-9]+[ \t]+)?(ld|ldu|st|atom|red|prefetch|cp)\./ && !/\.(param|shared)\./ && !waits && k ~ /ampi_k_(count_)?update/ && arch >= 90 {
            stray("before it waits: " $0)
            waits = 1
        }
        /^}/ {
            done()
            updates += k ~ /ampi_k_(count_)?update/
            inside = 0
        }
        END { if (!updates) print "  there is no update" }' "$2")
    if [ -z "$strays" ]; then
        passed=$((passed + 1))
    else
        bad "sm_$1: kernels that follow others:"
        echo "$strays"
    fi
}

object=
export PTX=$work/k.ptx
if [ $# = 0 ]; then
    object=${BUILD:-build}/hostcuda/plain/cuda_impl.o
    if [ -r "${FAST_PTX:-}" ]; then
        echo "---- sm_90 --use_fast_math"
        flushing 90 "$FAST_PTX" optimised
        following 90 "$FAST_PTX"
    else
        echo "---- sm_90 --use_fast_math, without optimisation"
        "$NVCC" -std=c++17 -O2 -I. -Werror all-warnings --use_fast_math -Xcicc -O0 -arch=compute_90 -ptx tests/cuda_impl.cu -o "$PTX"
        flushing 90 "$PTX" # what is not rounded, or estimated, flushes too
    fi
fi
for arch; do
    rm -f "$PTX"
    for flags in "" --use_fast_math; do
        echo "---- sm_$arch $flags"
        NVCCFLAGS="-O2 -I. -Werror all-warnings $flags"
        check "$arch"
    done
    flushing "$arch" "$PTX" optimised # the PTX under fast-math is still here
    following "$arch" "$PTX"
done

# the names are the host compiler's: device code may be as slow as it likes
if ! [ -r "$object" ]; then
    object=$work/k.o
    "$NVCC" -std=c++17 -O0 -Xcicc -O0 -Xptxas -O0 -Werror all-warnings -Xcompiler -Wall,-Wextra -arch=sm_"${arch:-90}" -I. -c tests/cuda_impl.cu -o "$object"
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
