#!/bin/sh
# usage: failing_driver.sh     amp over the toolkit's own CUDA runtime, and a driver that cannot be started, in twelve ways: which of them are
# AMP_ERR_NO_CUDA and which AMP_ERR_CUDA, in the runtime's words. Needs nvcc and no GPU: if there is one, it is not seen. The host runtime's
# copy of these answers is asked by tests/cuda_verbs.cpp. Last line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
BUILD=${BUILD:-build} CC=${CC:-cc} NVCC=${NVCC:-nvcc}
skip() {
    echo "skipped: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
command -v "$NVCC" >/dev/null || skip "needs nvcc"
cuda=${CUDA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v "$NVCC")")")")}
[ -e "$cuda/lib64/libcudart.so" ] && [ -e "$cuda/lib64/libcublasLt.so" ] || skip "needs the toolkit's libraries"
out=$BUILD/failing_driver
mkdir -p "$out/none" "$out/stub" "$out/fails" || exit 2
bad() {
    echo "FAILED: $1"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}
arch=$("$NVCC" --list-gpu-arch | sed -n '$s/.*_//p') # code for one kind of GPU, which is not made
"$NVCC" -std=c++11 -gencode "arch=compute_$arch,code=compute_$arch" -c tests/cuda_impl.cu -o "$out/amp_gpu.o" || bad "nvcc"
"$CC" -std=c99 -O1 -c tests/failing_driver.c -o "$out/create.o" && "$CC" -std=c99 -O1 -c tests/impl.c -o "$out/impl.o" &&
    "$CC" "$out/create.o" "$out/impl.o" "$out/amp_gpu.o" -L"$cuda/lib64" -lcudart -lcublasLt -lstdc++ -lm -lpthread -o "$out/create" || bad "link"
"$CC" -DDRIVER -O1 -shared -fPIC tests/failing_driver.c -Wl,-soname,libcuda.so.1 -o "$out/fails/libcuda.so.1" || bad "the driver"
cp "$cuda/lib64/stubs/libcuda.so" "$out/stub/libcuda.so.1" || bad "no stub"
passed=0 failed=0
# ask FOLDER WAY STATUS WORDS: -5 is AMP_ERR_NO_CUDA, -6 AMP_ERR_CUDA
ask() {
    got=$(DRIVER_FAILS=$2 LD_LIBRARY_PATH=$out/$1:$cuda/lib64 "$out/create" 2>&1)
    want="amp_cuda_create: cudaGetDeviceCount: $4
available 0, status $3, again $3, context none"
    if [ "$got" = "$want" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED: driver %s %s: %s\n' "$1" "$2" "$got"
    fi
}
old='cudaErrorInsufficientDriver (CUDA driver version is insufficient for CUDA runtime version)'
if LD_LIBRARY_PATH=$cuda/lib64 "$out/create" | grep -q 'status 0'; then echo "there is a driver: what its absence gives is not seen"; else ask none '' -5 "$old"; fi
ask stub '' -5 'cudaErrorStubLibrary (CUDA driver is a stub library)'
ask fails 100 -5 'cudaErrorNoDevice (no CUDA-capable device is detected)'
ask fails empty -5 'cudaErrorNoDevice (no CUDA-capable device is detected)'
ask fails old -6 "$old"
ask fails 803 -6 'cudaErrorSystemDriverMismatch (system has unsupported display driver / cuda driver combination)'
ask fails 804 -6 'cudaErrorCompatNotSupportedOnDevice (forward compatibility was attempted on non supported HW)'
ask fails 46 -6 'cudaErrorDevicesUnavailable (CUDA-capable device(s) is/are busy or unavailable)'
ask fails 805 -6 'cudaErrorMpsConnectionFailed (MPS client failed to connect to the MPS control daemon or the MPS server)'
ask fails 2 -6 'cudaErrorMemoryAllocation (out of memory)'
ask fails 999 -6 'cudaErrorUnknown (unknown error)'
ask fails other -6 'cudaErrorNotSupported (operation not supported)'
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
