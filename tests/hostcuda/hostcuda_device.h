/* hostcuda_device.h - what a running CUDA thread asks of the scheduler: the border between the language shim
 * (hostcuda.h), the scheduler (hcu_sched.cpp) and the PTX interpreter (hcu_ptx.cpp). */
#ifndef HOSTCUDA_DEVICE_H
#define HOSTCUDA_DEVICE_H
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

/* The built-in variables are plain globals: kernels run on one OS thread at a time.  They cannot be macros, because
 * cudaLaunchConfig_t has fields of the same names. */
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

namespace hcu {

/* One warp-wide operation.  Every participating lane hands in a value and then reads the others'. */
enum WarpOp : int {
    WARP_SHFL,
    WARP_BALLOT,
    WARP_ANY,
    WARP_ALL,
    WARP_SYNC,
    WARP_MATCH,
    WARP_REDUCE,
    WARP_MMA,
    WARP_COALESCE
};
struct Exchange {
    uint64_t value[32];
    unsigned mask; /* lanes that took part */
    int readers;   /* lanes that have not called exchange_done yet */
};
Exchange *warp_exchange(unsigned mask, uint64_t bits, WarpOp op, const char *file, int line);
void exchange_done(Exchange *);
unsigned coalesced_lanes(const char *file, int line); /* those of the warp that come to this place together */
unsigned lane();

/* Warp matrices (mma.h, hcu_wmma.cpp): what one lane brings to D = A B + C, its part of each 16 x 16 matrix. */
struct WmmaLane {
    const unsigned short *a, *b; /* 8 elements each, as bits */
    const float *c;
    float *d; /* may be c */
    bool bf16;
};
/* Element e = 16 * row + column lies in slot e / 32 of this lane. Real mappings are not documented; none looks like
   this. */
inline unsigned wmma_lane(unsigned e) { return (e + 7 * (e / 32)) & 31u; }
inline unsigned wmma_element(unsigned lane, unsigned slot) { return 32 * slot + ((lane - 7 * slot) & 31u); }
void misuse(const char *what, const char *file, int line);
void wmma_mma(const WmmaLane &mine, const char *file, int line);
void wmma_access(
    const char *what, const void *p, unsigned ldm, unsigned element, unsigned layout, const char *file, int line);
unsigned warp_live_mask();

enum BarrierOp : int { BARRIER_PLAIN, BARRIER_OR, BARRIER_AND, BARRIER_COUNT };
int block_barrier(int predicate, BarrierOp op, const char *file, int line);
void grid_barrier(const char *file, int line);

void fence();
void atomic_hook(const void *address); /* called before each atomic operation */
bool in_shared(const void *address);
bool in_global(const void *address);
inline float flushed(float v) { return v < 1.17549435e-38f && v > -1.17549435e-38f ? v * 0.0f : v; } /* of a denormal */
void *shared_static(const void *site, size_t bytes, size_t align);
void *shared_dynamic();
int shared_pointer(void **where); /* from now on it holds the dynamic shared memory of the block that runs */
void misaligned(const void *address, size_t alignment, const char *file, int line);
long long clock_ns();
[[noreturn]] void device_trap(const char *file, int line);

/* How to call a kernel whose parameters lie in memory. */
enum ParamKind : unsigned char {
    PARAM_OPAQUE,
    PARAM_POINTER,
    PARAM_WORDS
}; /* words: no undefined padding, may be scanned */
struct KernelDesc {
    void (*invoke)(const void *function, void **args);
    const size_t *size; /* of each parameter */
    const unsigned char *kind;
    int count;
};
void register_kernel(const void *function, const KernelDesc *);
void name_kernel(const void *function, const char *name); /* for messages, instead of the mangled name */

void launch_result(cudaError_t e, const char *name); /* of a launch by <<<>>>, which returns nothing */

/* thrust (thrust/detail/config.h): its algorithms are host code, so streams work at once and device memory is open */
int thrust_present();
void *thrust_alloc(size_t bytes);
void thrust_free(void *p);

/* __device__ variables: ordinary globals, copied in the order of a stream */
cudaError_t symbol_copy(void *symbol, size_t size, void *other, size_t n, size_t offset, cudaMemcpyKind kind,
    cudaStream_t stream, bool to_symbol);
int symbol_before_main(void *symbol, size_t size);      /* a __managed__ variable */
cudaError_t symbol_copied();                            /* what cudaMemcpyToSymbol waits for */
cudaError_t symbol_register(void *symbol, size_t size); /* its address may be given to kernels */

} // namespace hcu
#endif
