#!/bin/sh
# run.sh [CHECK...] - the corpus: programs in the shape of what people write, executed by the documented command (../run.sh) with all checks on.
# Each compares itself with a CPU reference and prints "NAME: ok"; nothing may be found in it. Those that are refused must be refused
# by name. With NAMES='saxpy cnn' only those; with NVCC set each file must be accepted by it, too (it is CUDA, not our dialect of it).
# Last line: corpus: N passed, M failed
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
HCU_LOGS=$work/logs QUIET=1
export HCU_LOGS QUIET
CHECK=${*:-asan tsan msan}
export CHECK
case ${HCU_LIBS:-/} in /*) ;; *) HCU_LIBS=$PWD/$HCU_LIBS && export HCU_LIBS ;; esac
cd "$here" || exit 2

# NAME | what is run: a FILE, or a folder with the program and what builds it | what a refusal says
table='
saxpy|saxpy.cu|
mlp|mlp.cu|
lstm|lstm.cu|
nbody|nbody.cu|
reduction|reduction.cu|
scan|scan.cu|
histogram|histogram.cu|
matmul_pipeline|matmul_pipeline.cu|
thrust_sort|thrust_sort.cu|
monte_carlo|monte_carlo.cu|
blas|blas.cu|
wmma|wmma.cu|
half2|half2.cu|
streams|streams.cu|
quicksort|quicksort.cu|
jacobi|jacobi.cu|
softmax|softmax.cu|
transpose|transpose.cu|
rdc|rdc ./wave|
nvcc_line|nvcc_line ./act sh build.sh|
cnn|cnn build/cnn|
transformer|transformer ./transformer|
dlink|dlink ./lstm|
wrappers|wrappers ./predict|
expression|expression.cu|
attention|attention.cu|
convolution|convolution.cu|
curand_host|curand_host.cu|
thrust_stats|thrust_stats.cu|
tiles|tiles.cu|
overlap|overlap.cu|
texture|texture.cu|hostcuda: textures and surfaces are not supported
block_reduce|block_reduce.cu|hostcuda: CUB is not supported
'
passed=0 failed=0
bad() {
    failed=$((failed + 1))
    echo "FAIL $1:"
    sed 's/^/    /' "$work/said" | head -n 40
}
run() { # WHAT
    # shellcheck disable=SC2086
    set -- $1
    what=$1
    shift
    case $what in
    *.cu) ../run.sh "$what" ;;
    *)
        program=$1
        shift
        PROJECT=$what RUN=$program BUILD_WITH=$* ../run.sh '' ;;
    esac
}
echo "$table" >"$work/table"
while IFS='|' read -r name what refusal <&3; do
    [ -n "$name" ] || continue
    case " ${NAMES:-$name} " in *" $name "*) ;; *) continue ;; esac
    case $what in cnn*) command -v cmake >/dev/null || { echo "skipped: hostcuda corpus: cnn wants cmake"; continue; } ;; esac
    run "$what" >"$work/said" 2>&1
    rc=$?
    if [ -n "$refusal" ]; then
        if [ $rc = 2 ] && grep -q "$refusal" "$work/said"; then passed=$((passed + 1)); else bad "$name is not refused by name (status $rc)"; fi
    elif [ $rc = 0 ] && grep -q "^$name: ok" "$work/said"; then passed=$((passed + 1))
    else bad "$name, status $rc"; fi
    case $what in *.cu) ;; *) continue ;; esac
    [ -n "${NVCC:-}" ] || continue
    option=
    case $name in
    quicksort) option=-rdc=true ;;
    expression | thrust_stats) option=--extended-lambda ;; # __device__ lambdas
    esac
    if "$NVCC" -std=c++17 $option -arch=sm_90 -c "$what" -o "$work/nvcc.o" >"$work/said" 2>&1; then passed=$((passed + 1)); else bad "$what, nvcc"; fi
done 3<"$work/table"
echo "corpus: $passed passed, $failed failed"
[ $failed = 0 ]
