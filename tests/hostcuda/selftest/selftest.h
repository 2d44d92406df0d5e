/* selftest.h - the few tools that the host runtime's own tests share.  The tests compile with the shim and, unchanged,
 * with nvcc for a real GPU (nvcc -std=c++17 -x cu test_lang.cpp -lcublasLt -lcublas). */
#ifndef HOSTCUDA_SELFTEST_H
#define HOSTCUDA_SELFTEST_H
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <vector>
#ifndef AMP_SHARED
#  define AMP_SHARED(T, name, n) __shared__ T name[n]
#  define AMP_DYN_SHARED(T, name) \
    extern __shared__ __align__(16) unsigned char amp_dynamic_[]; \
    T *name = reinterpret_cast<T *>(amp_dynamic_)
#endif
#ifndef AMP_BLOCK
#  define AMP_BLOCK 256 /* the TSan build uses 64: each CUDA thread is an identity of its own there */
#endif

/* Every byte that comes back from the device must have been written by someone: exact under MSan and Valgrind. */
#if defined(__has_feature)
#  if __has_feature(memory_sanitizer)
#    include <sanitizer/msan_interface.h>
#    define CHECK_DEFINED(p, n) __msan_check_mem_is_initialized(p, n)
#  endif
#endif
#if defined(HCU_VALGRIND)
#  include <valgrind/memcheck.h>
#  define CHECK_DEFINED(p, n) ((void)VALGRIND_CHECK_MEM_IS_DEFINED(p, n))
#endif
#ifndef CHECK_DEFINED
#  define CHECK_DEFINED(p, n) ((void)(p), (void)(n))
#endif

static int g_passed, g_failed;
static inline void check_at(bool ok, const char *file, int line, const char *what) {
    ok ? g_passed++ : g_failed++;
    if (!ok) printf("FAIL %s:%d %s\n", file, line, what);
}
#define CHECK(c) check_at((c), __FILE__, __LINE__, #c)
#define CU(call) \
    do { /* a step on the way to a check: counted only when it fails */ \
        if ((call) != cudaSuccess) check_at(false, __FILE__, __LINE__, #call); \
    } while (0)
static inline int report(const char *name) {
    printf("%s: %d passed, %d failed\n", name, g_passed, g_failed);
    return g_failed != 0;
}

/* A launch as the backend does it: ordinary typed C++ for both compilers. */
template <class... P, class... A>
static inline cudaError_t launch(
    cudaStream_t s, unsigned grid, unsigned block, size_t shared, void (*k)(P...), A... args) {
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(grid);
    c.blockDim = dim3(block);
    c.dynamicSmemBytes = shared;
    c.stream = s;
    return cudaLaunchKernelEx(&c, k, args...);
}
template <class T> static inline T *device_array(size_t n) {
    void *p = nullptr;
    CU(cudaMalloc(&p, n * sizeof(T)));
    return static_cast<T *>(p);
}
template <class T> static inline T *device_zeros(size_t n) {
    T *p = device_array<T>(n);
    CU(cudaMemset(p, 0, n * sizeof(T)));
    CU(cudaDeviceSynchronize());
    return p;
}
template <class T> static inline T *upload(const std::vector<T> &h) {
    T *p = device_array<T>(h.size());
    CU(cudaMemcpy(p, h.data(), h.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}
template <class T> static inline std::vector<T> download(const T *d, size_t n) {
    std::vector<T> h(n);
    CU(cudaMemcpy(h.data(), d, n * sizeof(T), cudaMemcpyDeviceToHost));
    CHECK_DEFINED(h.data(), n * sizeof(T));
    return h;
}
#endif
