#!/bin/sh
# usage: cuda_verbs.sh [--full [--slice I/N]]    Builds tests/cuda_verbs.cpp with tests/hostcuda (variant plain) and runs it: what each verb
# may do to CUDA, and each of its failures, those of every second verb one day and of the others the next (tests/today.sh). --full: every
# failure, all flag sets. Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
full=${1:-}
. tests/today.sh
today 1 2 || set -- --slice 2/2
today 2 2 || set -- --slice 1/2
MAKE=${MAKE:-make} BUILD=${BUILD:-build} CXX=${CXX:-g++}

skip() {
    echo "skipped: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
failed() {
    echo "FAILED: $1"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}

command -v "$CXX" >/dev/null || skip "needs hostcuda: no $CXX"
if [ -z "${CUDA_HOME:-}" ]; then # as in tests/hostcuda/hostcuda.mk
    nvcc=$(command -v nvcc) && nvcc=$(realpath "$nvcc") && nvcc=${nvcc%/bin/nvcc}
    for d in "${nvcc:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
        [ -n "${CUDA_HOME:-}" ] || [ ! -f "$d/include/cuda_runtime_api.h" ] || CUDA_HOME=$d
    done
fi
[ -f "${CUDA_HOME:-}/include/cuda_runtime_api.h" ] || skip "needs hostcuda: no CUDA headers (set CUDA_HOME)"

out=$BUILD/hostcuda/plain impl=${HCU_IMPL:-$BUILD/tests/impl.o}
$MAKE -s BUILD="$BUILD" CUDA_HOME="$CUDA_HOME" "$out/cuda_impl.o" "$impl" "$BUILD/hostcuda/libhostcuda-plain.a" ||
    failed "make"
# as a test's own file in tests/hostcuda/README.md; no shim, there is no kernel in it
{ "$CXX" -std=c++17 -O1 -Wall -Wextra -ffp-contract=off -fno-math-errno -fno-omit-frame-pointer -isystem "$CUDA_HOME/include" \
    -Itests/hostcuda -c tests/cuda_verbs.cpp -o "$out/cuda_verbs.o" &&
    "$CXX" -O2 "$out/cuda_verbs.o" "$out/cuda_impl.o" "$impl" "$BUILD/hostcuda/libhostcuda-plain.a" -lpthread -ldl -lm \
        -o "$out/cuda_verbs"; } || failed "compile tests/cuda_verbs.cpp"
log=$out/cuda_verbs.log
"$out/cuda_verbs" "$@" >"$log" 2>&1
rc=$?
cat "$log"
if ! tail -n 1 "$log" | grep -q '^[0-9]* passed, [0-9]* failed, 0 skipped$'; then # the runtime aborts at a bug
    failed "exit status $rc, no counts"
fi
exit $rc
