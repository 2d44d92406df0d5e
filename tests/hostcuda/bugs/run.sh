#!/bin/sh
# run.sh VARIANT... - each kind of bug, in a small program of this folder: the variant that its first line names must find it, at a line
# marked HERE, with status 1, and say it as JSON, too. And what is refused: each by name and line.  Last line: bugs: N passed, M failed
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export HCU_LOGS="$work/logs" QUIET=1
passed=0 failed=0
bad() {
    failed=$((failed + 1))
    echo "FAIL $*"
    sed 's/^/    /' "$work/said" | head -n 30
}
ok() { passed=$((passed + 1)); }
for file in "$here"/*.cu; do
    want=$(sed -n 's/.*FOUND \([a-z]*\): \(.*\) \*\/$/\1 \2/p' "$file")
    v=${want%% *} text=${want#* } name=$(basename "$file")
    case " $* " in *" $v "*) ;; *) case "$v $* " in "msan "*"vg "*) v=vg ;; *) continue ;; esac ;; esac
    CHECK=$v JSON=$work/json "$here/../run.sh" "$file" >"$work/said" 2>&1
    rc=$?
    lines=$(grep -n 'HERE' "$file" | cut -d: -f1 | paste -sd '|' -)
    if [ $rc = 1 ] && grep -qE "$name:($lines): .*$text" "$work/said"; then ok; else bad "$name, $v: status $rc, wanted line $lines: $text"; fi
    case $v/$name in # those of the host have no thread, and valgrind calls nobody when it reports
    vg/* | */leak.cu | */wrong_memory_space.cu | */launch_error_ignored.cu) ;;
    *) grep -q '^ *in kernel [a-z]*, block (.*), thread (' "$work/said" || bad "$name, $v: no block and thread" ;;
    esac
    if grep -qE "\"line\": ($lines), \"what\": \".*$text" "$work/json"; then ok; else bad "$name: JSON"; fi
done
told() { # VARIANT, PROGRAM, LINE: WHAT IS SAID, WHAT IS SAID IN ANOTHER LINE
    printf '%s\n' "$2" >"$work/no.cu"
    CHECK=$1 "$here/../run.sh" "$work/no.cu" >"$work/said" 2>&1
    rc=$?
    if [ $rc != 0 ] && grep -q "no\.cu:$3" "$work/said" && grep -q "${4:-}" "$work/said"; then
        ok
    else
        bad "not told: $3"
    fi
}
refused() { told plain "$@"; }
case " $* " in *" plain "*)
    k='__global__ void c(int *x) { *x = 1; }
__global__ void k(int *x)'
    m='int main() { int *d; cudaMalloc(&d, 4); k<<<1, 1>>>(d); cudaDeviceSynchronize(); cudaFree(d); }'
    refused "$k { cudaDeviceSynchronize(); } $m" '2: cudaDeviceSynchronize in a kernel'
    refused "$k { cudaMemset(x, 0, 4); } $m" '2: cudaMemset in a kernel'
    refused "$k { cudaStream_t s = (cudaStream_t)8; c<<<1, 1, 0, s>>>(x); } $m" '2: a launch in a kernel on a stream'
    refused "$k { asm volatile(\"ret;\"); } $m" '2:.*PTX in an asm'
    refused "$k { asm(\"mov.u32 %0, %laneid;\" : \"=r\"(*x)); } $m" '2:.*PTX in an asm'
    refused "$k {
#if __CUDA_ARCH__ >= 800
    *x = 2;
#endif
} $m" '3:.*would be left out'
    refused "$k { __u128AtomicCAS(x, x, x); } $m" '2:.*__u128AtomicCAS'
    refused "__global__ void k(ulonglong2 *x) { atomicCAS(x, *x, *x); } int main() {}" '1:.*required from here' \
        'atomics of 128 bits are not supported'
    refused "__global__ void k(ulonglong2 *x) { atomicExch_block(x, *x); } int main() {}" '1:.*required from here' \
        'atomics of 128 bits are not supported'
    refused "__global__ void __cluster_dims__(2, 1, 1) k(int *x) { *x = 1; } $m" '1:.*clusters are not supported'
    refused "$k { void *p = cudaGetParameterBuffer(8, 8); cudaLaunchDevice((void *)c, p, dim3(1), dim3(1), 0, 0); } $m" \
        '2:.*cudaLaunchDevice'
    refused "#include <cooperative_groups.h>
$k { cooperative_groups::this_cluster().sync(); } $m" '3:.*this_cluster'
    refused 'int main() { cudaArray_t a; cudaChannelFormatDesc d = {}; return cudaMallocArray(&a, &d, 4, 4, 0); }' '1: cudaMallocArray is not supported'
    refused '#include <cublas_v2.h>
int main() { cublasHandle_t h; cublasCreate(&h); return cublasStrsv(h, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 1, 0, 1, 0, 1); }' \
        '2: cublasStrsv is not supported'
    refused '#include <curand.h>
int main() { curandGenerator_t g; return curandCreateGenerator(&g, CURAND_RNG_QUASI_SOBOL32); }' '2: curandCreateGenerator for a generator other'
    refused '#include <cuda.h>
int main() { return cuInit(0); }' '2: cuInit is not supported'
    refused '#include <cub/device/device_radix_sort.cuh>
int main() {}' '1:' 'CUB is not supported'
    refused "#include <mma.h>
using namespace nvcuda::wmma;
__global__ void k(half *x) { fragment<matrix_a, 32, 8, 16, half, row_major> f; load_matrix_sync(f, x, 16); } int main() {}" \
        '3:' 'hostcuda: nvcuda::wmma has 16 x 16 x 16'
    refused "#include <mma.h>
using namespace nvcuda::wmma;
__global__ void k() { fragment<matrix_b, 16, 16, 8, precision::tf32, row_major> f; } int main() {}" \
        '3:' 'hostcuda: nvcuda::wmma has 16 x 16 x 16'
    refused "$k { __shared__ float2 s; atomicAdd(&s, make_float2(1, 1)); } $m" '2: atomicAdd of float2' 'only in global memory'
    refused "#include <cooperative_groups/reduce.h>
$k { cooperative_groups::reduce_update_async(cooperative_groups::coalesced_threads(), *x, 1); } $m" \
        '3:' 'hostcuda: cooperative_groups::reduce_update_async is not supported'
    [ ! -r "${CUDA_HOME:-/usr/local/cuda}/include/nccl.h" ] && [ ! -r /usr/include/nccl.h ] ||
        refused '#include <nccl.h>
int main() {
    ncclComm_t c;
    return ncclCommInitAll(&c, 1, 0);
}' '' 'ncclCommInitAll is not supported; .* ncclCommInitRank'
    told plain '#include <assert.h>
__global__ void k(int n) { assert((int)threadIdx.x < n); }
int main() { k<<<2, 4>>>(3); cudaDeviceSynchronize(); }' '2: assertion `(int)threadIdx.x < n'"'"' failed' 'kernel k, block (0,0,0), thread (3,0,0)'
    if echo '#include <nccl.h>' | ${CXX:-g++} -E -I"${CUDA_HOME:-/usr/local/cuda}/include" -x c++ - >/dev/null 2>&1; then
        refused '#include <nccl.h>
int main() {
    ncclUniqueId id;
    ncclComm_t c[2];
    ncclGetUniqueId(&id);
    ncclGroupStart();
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        ncclCommInitRank(c + i, 2, id, i);
    }
    ncclGroupEnd();
}' '9: several ncclCommInitRank between'
    fi ;;
esac
# what to do depends on who touches the memory beside whom
head='__global__ void k(int *p) { p[threadIdx.x] = 1; }
int main() { int *p, *h; cudaMallocHost(&h, 128);'
tail='    cudaDeviceSynchronize();
    cudaFree(p);
    cudaFreeHost(h);'
copied="$head cudaMalloc(&p, 128);
    k<<<1, 32>>>(p);
    cudaMemcpyAsync(h, p, 128, cudaMemcpyDeviceToHost, 0);
    int n = h[5];
$tail
    return n == 7;
}"
case " $* " in *" asan "*)
    told asan "$copied" '5: address: use-after-poison: cudaMemcpyAsync writes there' 'before the host touches what a copy writes' ;;
esac
case " $* " in *" tsan "*)
    told tsan "$copied" '5: data race, read by the host here' 'before the host touches what the device'
    told tsan "$head cudaMallocManaged(&p, 128);
    k<<<1, 32>>>(p);
    int n = p[5];
$tail
    return n == 7;
}" '1: data race, written here, read by the host' \
        'before the host touches what the device'
    told tsan "$head cudaMalloc(&p, 128);
    cudaStream_t s, t;
    cudaStreamCreate(&s);
    cudaStreamCreate(&t);
    k<<<1, 32, 0, s>>>(p);
    k<<<1, 32, 0, t>>>(p);
$tail
    cudaStreamDestroy(s);
    cudaStreamDestroy(t);
}" '1: data race' 'Order the two streams'
    told tsan '__global__ void k(int *p) { int old = *p, seen;
    do {
        seen = old;
        old = atomicCAS(p, seen, seen + 1);
    } while (old != seen);
}
int main() {
    int *p;
    cudaMalloc(&p, 4);
    cudaMemset(p, 0, 4);
    k<<<2, 32>>>(p);
    cudaDeviceSynchronize();
    cudaFree(p);
}' \
        '1: data race, read here, written by an atomic' 'only begins a loop of atomicCAS' ;;
esac
echo "bugs: $passed passed, $failed failed"
[ $failed = 0 ]
