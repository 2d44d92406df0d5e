#!/bin/sh
# usage: bench.sh [--full]    The benches still build, run and write what they say, at sizes where speed means nothing: whole training steps
# on the CPU context; every part of bench_gpu, executed by tests/hostcuda, with its checks of results and a peer that invents its
# timings. --full: also nvcc compiles it without a warning; with device memory protected and stream work in random order.
# Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
full='' lean=-DAMP_NO_SIMD
[ "${1:-}" != --full ] || full=1 lean=-UAMP_NO_SIMD
build=${BUILD:-build} MAKE=${MAKE:-make}
. tests/today.sh
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $*"; }
skip() { skipped=$((skipped + 1)); echo "skipped: $*"; }
# rows FILE AT-LEAST PATTERN: so many rows with PATTERN are in a CSV file
rows() { n=$(grep -c -e "$3" "$1" 2>/dev/null); if [ "${n:-0}" -ge "$2" ]; then ok; else bad "$(basename "$1"): ${n:-0} rows with '$3', not $2"; fi; }
# clean LOG PARTS: each part says that its results are right, and there are some
clean() {
    n=$(grep -c ' [1-9][0-9]* results checked, 0 wrong' "$1")
    if [ "$n" = "$2" ] && ! grep -q '^WRONG' "$1"; then ok; else bad "$1: $n of $2 parts are clean: $(grep -e '^WRONG' -e HOSTCUDA "$1" | head -n 3)"; fi
}
# shape FILE: each line of a CSV file has the columns of its first, text in quotes without any inside
shape() {
    if awk -F '"' '{ s = $0; gsub(/"[^"]*"/, "x", s); n = split(s, a, ","); if (NR == 1) w = n; if (n != w) bad = 1 } END { exit bad || NR < 3 }' "$1"; then ok; else bad "$1 is no table"; fi
}

# a peer that knows everything, and two that do not
cat >"$work/peer" <<'P'
echo 'torch of the test'
while read -r verb calls key; do
    case $verb,$key in
    *,*compiled*) echo 'no RuntimeError: not today' ;;
    memory,*) echo "ok 1048576" ;;
    *) echo "chatter that is no answer"; echo "ok 0.00$calls" ;;
    esac
done
P
# ---- whole steps on the CPU ----
if ${RUN_ENV:-} "$build/bench/train" --tiny --out "$work" --peer "sh '$work/peer'" >"$work/train.log" 2>&1; then ok; else bad "train: $(tail -n 3 "$work/train.log")"; fi
clean "$work/train.log" 1
shape "$work/train.csv"
for mode in fp32 fp16 bf16; do for model in mlp gpt2; do rows "$work/train.csv" 1 "\"$model $mode\""; done; done
rows "$work/train.csv" 4 'peak memory'
rows "$work/train.csv" 2 'torch AMP bf16'
if [ "$(grep -c 'skipped: .*not today' "$work/train.log")" -ge 2 ]; then ok; else bad "train: a peer's refusal is not shown"; fi
if ${RUN_ENV:-} "$build/bench/train" --tiny --peer "echo no torch: not installed" >"$work/log" 2>&1 && grep -q "skipped: PyTorch's rows: no torch: not installed" "$work/log"; then ok; else bad "train without a peer"; fi
if ${RUN_ENV:-} "$build/bench/train" --tiny --peer "exit 3" >"$work/log" 2>&1 && grep -q "skipped: PyTorch's rows: no answer" "$work/log"; then ok; else bad "train with a peer that ends at once"; fi
${RUN_ENV:-} "$build/bench/train" --nonsense >"$work/log" 2>&1
if [ $? = 2 ]; then ok; else bad "train --nonsense"; fi

# ---- the two that are built by hand alone still know amp.h's names ----
for file in bench exhaustive; do
    if ${CC:-cc} -std=c99 -O1 -Wall -Wextra -Werror $lean -fsyntax-only "bench/$file.c" >"$work/log" 2>&1; then
        ok
    else
        bad "bench/$file.c: $(head -n 3 "$work/log")"
    fi
done

# ---- the chart of the recorded curve is what its CSV gives ----
if [ -n "$full" ]; then
    cp bench/results/zen5-curve.csv "$work/curve.csv"
    if ${CC:-cc} -std=c99 -O1 bench/bench.c -o "$work/bench" -lm -pthread -ldl && "$work/bench" --draw "$work/curve.csv" &&
        cmp "$work/curve.svg" bench/results/zen5-curve.svg; then ok
    else bad "bench --draw: not bench/results/zen5-curve.svg"; fi
    head -n 30 bench/results/zen5-curve.csv >"$work/curve.csv"
    if "$work/bench" --draw "$work/curve.csv" 2>"$work/err"; then bad "bench --draw takes half a file"; elif grep -q 'line 31' "$work/err"; then ok; else bad "bench --draw: $(cat "$work/err")"; fi
fi

# ---- the peer itself ----
if command -v python3 >/dev/null 2>&1; then
    hello=$(echo 'forget 0' | python3 bench/peers_gpu.py --device cpu 2>"$work/err" | head -n 1)
    case $hello in "torch "* | "no torch"*) ok ;; *) bad "peers_gpu.py says '$hello', $(tail -n 1 "$work/err")" ;; esac
else
    skip "peers_gpu.py: no python3"
fi

# ---- bench_gpu without a GPU: every part ----
if ! MAKEFLAGS='' "$MAKE" -s --no-print-directory bench-gpu NVCC= >"$work/log" 2>&1 && grep -q 'bench-gpu needs nvcc and a CUDA device: nvcc was not found' "$work/log"; then ok; else bad "make bench-gpu without nvcc: $(head -n 2 "$work/log")"; fi
bench=$build/hostcuda/plain/bench_gpu
host() { HCU_PROTECT=0 "$bench" --tiny "$@"; }
if [ -z "$full" ]; then # smaller grids: half of the time
    HCU_SMS=4
    export HCU_SMS
fi
if ! today 3 3; then : # its kernels are those of the suite, and check_gpu has its day
elif [ -x "$bench" ]; then
    if host --out "$work" --peer "sh '$work/peer'" >"$work/gpu.log" 2>&1; then ok; else bad "bench_gpu: $(grep -e '^WRONG' -e HOSTCUDA "$work/gpu.log" | head -n 5; tail -n 1 "$work/gpu.log")"; fi
    clean "$work/gpu.log" 6
    for part in casts checks act step gemm train; do shape "$work/gpu-$part.csv"; done
    rows "$work/gpu-casts.csv" 24 '"cast .*device copy'
    rows "$work/gpu-casts.csv" 2 'empty launch'
    rows "$work/gpu-checks.csv" 2 '"inspect.*plain read'
    rows "$work/gpu-checks.csv" 8 '"all_finite'
    rows "$work/gpu-checks.csv" 5 '"histogram\|"unscale'
    rows "$work/gpu-act.csv" 5 '"softmax'
    rows "$work/gpu-act.csv" 10 '"ReLU\|"GELU\|"column\|"dropout'
    rows "$work/gpu-step.csv" 10 'device copy'
    rows "$work/gpu-step.csv" 10 'graph".*ours, eager'
    rows "$work/gpu-step.csv" 4 '"torch'
    for kind in f16 bf16 f32 'f32 with TF32' 'f8e4m3 to bf16'; do rows "$work/gpu-gemm.csv" 8 "\"gemm $kind, .*heuristic's first"; done
    rows "$work/gpu-gemm.csv" 60 'tuned".*best candidate'
    rows "$work/gpu-gemm.csv" 60 'torch.matmul'
    rows "$work/gpu-gemm.csv" 2 'linear + GELU.*torch eager'
    rows "$work/gpu-gemm.csv" 2 'linear, GELU, linear.*torch eager'
    rows "$work/gpu-gemm.csv" 2 'host cost'
    rows "$work/gpu-train.csv" 4 '"torch AMP'
    rows "$work/gpu-train.csv" 8 'peak memory'
    rows "$work/gpu-train.csv" 8 'graph"'
    rows "$work/gpu-train.csv" 8 'graph, tuned".*the same, not tuned'
    rows "$work/gpu-train.csv" 4 'tf32'
    for chart in casts checks gemm; do
        if [ "$(grep -c '<polyline' "$work/gpu-$chart.svg" 2>/dev/null)" -ge 3 ] && tail -n 1 "$work/gpu-$chart.svg" | grep -q '</svg>'; then ok; else bad "gpu-$chart.svg is no chart"; fi
        if command -v xmllint >/dev/null 2>&1; then if xmllint --noout "$work/gpu-$chart.svg"; then ok; else bad "gpu-$chart.svg is not well-formed"; fi; fi
    done
    host --part nonsense >"$work/log" 2>&1
    if [ $? = 2 ] && grep -q 'no part nonsense' "$work/log"; then ok; else bad "bench_gpu --part nonsense"; fi
    HCU_DEVICES=0 host --part casts >"$work/log" 2>&1
    if [ $? = 1 ] && grep -q 'needs a CUDA device' "$work/log"; then ok; else bad "bench_gpu without a device: $(tail -n 1 "$work/log")"; fi
    if [ -n "$full" ]; then
        if "$bench" --tiny >"$work/gpu.log" 2>&1; then ok; else bad "bench_gpu, device memory protected: $(grep -e '^WRONG' -e HOSTCUDA "$work/gpu.log" | head -n 3)"; fi
        if HCU_MODE=random HCU_ORDER=shuffle HCU_SEED=$$ host >"$work/gpu.log" 2>&1; then ok; else bad "bench_gpu, random order: $(grep -e '^WRONG' -e HOSTCUDA "$work/gpu.log" | head -n 3)"; fi
        clean "$work/gpu.log" 6
    fi
else
    skip "bench_gpu on the host: needs hostcuda: g++ and the CUDA headers"
fi

# ---- nvcc ----
if [ -z "$full" ]; then : # the host compiler has it, of which the parts below are
elif [ -n "${NVCC:-}" ] && command -v "$NVCC" >/dev/null 2>&1; then
    if "$NVCC" -std=c++17 -O0 -Xcicc -O0 -Xptxas -O0 -I. -gencode arch=compute_90,code=sm_90 -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -c bench/bench_gpu.cu -o "$work/bench_gpu.o" >"$work/log" 2>&1 && [ ! -s "$work/log" ]; then ok; else bad "nvcc: $(head -n 5 "$work/log")"; fi
else
    skip "bench_gpu by nvcc: no nvcc"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
