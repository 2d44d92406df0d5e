/* amp_cuda.cuh - v0.1.0 - the CUDA context of amp.h - MIT, as amp.h

   DO THIS, in exactly one .cu file, compiled by nvcc:

       #define AMP_CUDA_IMPLEMENTATION
       #include "amp_cuda.cuh"

   Everywhere else, in C or C++, just  #include "amp_cuda.cuh": without the macro it is a plain C99 header that needs no
   CUDA. AMP_IMPLEMENTATION of amp.h may be in that .cu file, but its CPU code is portable C there, without SIMD:
   better in a .c file.

       nvcc -O2 -arch=native -c amp_gpu.cu               // the two lines above, for the GPU of this machine
       gcc  -O2 -c main.c amp_impl.c                     // your program, amp.h's own two lines
       gcc  main.o amp_impl.o amp_gpu.o -L/usr/local/cuda/lib64 -lcudart -lcublasLt -lstdc++ -lm
                                                         // "undefined reference to __cxa_...": no -lstdc++

   Always give nvcc an -arch, or one -gencode per kind of GPU. Without it nvcc 13 makes code for sm_75 alone: every
   other GPU compiles it again when the program first runs, for seconds. The default of nvcc 12, sm_52, is too old.

   A machine without CUDA: link one .c file with  #define AMP_CUDA_STUB_IMPLEMENTATION  instead of the .cu; then
   amp_cuda_available() is 0 and amp_cuda_create() returns AMP_ERR_NO_CUDA: call amp_cpu_create() then, and the rest of
   your program stays as it is, without an #ifdef.

       amp_ctx *ctx;
       amp_cuda_create(&ctx, NULL);                                        // device 0, a stream of its own
       amp_cuda_create(&ctx, &(amp_cuda_desc){ .stream = my_stream });     // C: your cudaStream_t, no cast
       amp_cuda_desc d = AMP_ZERO; d.stream = my_stream; amp_cuda_create(&ctx, d);                           // C++

   Then every verb of amp.h works on it as on the CPU, with the same bits (products: within the same bound).

   CONTENTS (search for the tag)
       >>cuda-config                                                     macros, on this page
       >>cuda >>stub                                                     the API, and a build without CUDA
       >>device >>device-arrays >>device-step >>device-losses >>device-products      kernels: portable but for one list
       >>cuda-host >>cuda-arrays >>cuda-step >>cuda-losses >>cuda-products >>cuda-table      the host layer: NVIDIA's

   >>cuda-config    macro                         default    where to define it    effect
                    AMP_CUDA_IMPLEMENTATION       -          one .cu file          emits the code; needs nvcc
                    AMP_CUDA_STUB_IMPLEMENTATION  -          one .c file           emits the stub instead; needs no CUDA
                    AMP_CUDA_API                  extern     files that need it    e.g. __declspec(dllimport)
                    AMP_BLOCK                     256        the .cu file          threads per block: 32, 64, 128, 256;
                                                                                   no bit of a result depends on it
                    AMP_SHARED, AMP_LOAD_L2 ...   CUDA's     only by a port        what device code needs beyond C++:
                                                                                   each #ifndef AMP_... in >>device
                    AMP_CUDA_NVTX                 -          amp.h's               each verb is a range of its name in
                                                             implementation        the picture of nsys; the toolkit's
                                                                                   nvtx3/nvToolsExt.h, nothing to link
                    AMP_HOSTCUDA                  -          tests only            lets g++ compile this file, over
                                                                                   tests/hostcuda, and run it on the CPU
                    AMP_CUDA_API takes the place of AMP_API, so that AMP_STATIC does not make these functions static.
                    No macro has to be the same in all files: none changes a type or a signature.

   KERNELS    ampi_k_NAME, in the >>device section of their verb, launched from the >>cuda section of the same name. A
              verb launches one of them or a few (losses, column sums). None is for small or for large n alone: each
              takes in groups the elements that are aligned in all arrays, and what lies before and after them one by
              one (n = 3: only that). Products are cuBLASLt's; ampi_k_gemm takes, at any size, those with
              AMP_GEMM_ORDERED and those that cuBLASLt refuses (of FP8 ones only with AMP_GEMM_EMULATE).
   STREAM     All work of a context is queued on its one stream: yours, or a non-blocking one of its own. Order against
              your other streams is yours (events). That includes the default stream: kernel<<<g, b>>>() has no order
              with a context's own stream. Launch on amp_cuda_stream(ctx), or give the context AMP_CUDA_STREAM_LEGACY.
              Freed memory may still be in use by queued work: amp_free waits for it, or, with AMP_CUDA_POOL, frees in
              stream order.
   SYNC       A verb waits for the GPU only if amp.h says class query or setup (>>sync there), or if the context was
              made with AMP_CUDA_DEBUG. amp_cuda_create waits once; amp_ctx_destroy waits for the stream.
   CAPTURE    The enqueue class of amp.h allocates nothing and never waits for the GPU (but for the two exceptions in
              >>sync there): it can be captured in a graph.
              Run one step before capturing: it finds the product plans and loads cuBLASLt's kernels, which each new
              shape needs once (ours are loaded by amp_cuda_create). What amp_step and others pass by value (lr, betas,
              ...) is frozen in the graph, what is read on the device (scale, counters, *lr_ptr) is not. Stages are host
              state: a replay does not move them. Replay a graph on the context's stream, or order it against that
              stream by events: the context has one scratch block. Destroy graphs before the context. Query and setup
              verbs inside a capture return AMP_ERR_CAPTURE and leave the capture valid; amp_free there takes effect
              after it. Destroy no context while a stream of the process is captured: cuBLASLt waits for the device
              then. The legacy stream cannot be captured, and what is queued on it breaks captures of streams that
              wait for it (CUDA's rules).
   THREADS    Only one thread at a time may use a context; several threads may each use their own, on any device. A
              call selects its device and then restores the thread's own, if CUDA is in use there: else it would get a
              CUDA context, and the thread keeps the context's device. The driver API: all works in the device's primary
              context. A context of your own (cuCtxCreate) that was current on that device is current again after a
              call; one of a different device is not: the primary context of that device is.
   ERRORS     AMP_ERR_CUDA: a call failed; the context can still be used. AMP_ERR_DEAD: a sticky error (a fault in a
              kernel, yours or ours); only amp_ctx_destroy is left. AMP_ERR_NO_MEMORY: nothing was allocated; go on.
              amp_last_error() names the call; amp_cuda_last_error() gives its code. An error that you left in the CUDA
              runtime is not taken for ours and stays there. Nothing prints, exits or throws.
   MEMORY     Allocated when the context is made, never later: the products' workspace, a scratch block of 6 KiB, as
              much page-locked host memory, the cuBLASLt handle, 500 bytes of host memory for each of desc.plans. All
              device memory comes from the context's allocator.
   NEEDS      CUDA 12 or 13; an sm_75 (Turing) or newer GPU, with CUDA 12 also sm_70; C++11. BF16 and FP8 work on every
              GPU; products of BF16 use cuBLASLt from sm_80.
   TESTED     On the CPU, over tests/hostcuda, by the unit suite of amp.h and tests/cuda_verbs.cpp (what each verb does
              to CUDA, its failures); the generated code by tests/ptx.sh. By the suite on an H100: docs/gpus.md.
   HISTORY    As amp.h, with which it is released. This file is made from src/ by make headers: change it there.
*/
#ifndef AMP_CUDA_CUH
#define AMP_CUDA_CUH

#include "amp.h"
#if AMP_VERSION != 100
#  error "amp_cuda.cuh is v0.1.0 and amp.h is not: take both files from one release"
#endif

#pragma pack(push) /* as in amp.h */
#pragma pack()
#if defined(__GNUC__)
#  pragma GCC diagnostic push
#  pragma GCC diagnostic ignored "-Wshadow" /* as in amp.h */
#endif
#ifndef AMP_CUDA_API
#  define AMP_CUDA_API extern /* not AMP_API: AMP_STATIC must not make these static */
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ==== >>cuda =========================================================================================================
   The API.   tests: tests/cuda_verbs.cpp, tests/test_context.c */

struct CUstream_st;   /* cudaStream_t is a pointer to this, by CUDA's own typedef, */
struct cublasContext; /* and cublasHandle_t to this */
typedef struct CUstream_st *amp_stream;

#define AMP_CUDA_STREAM_LEGACY     ((amp_stream)1) /* CUDA's default stream, cudaStreamLegacy */
/* cudaStreamPerThread. It is a different stream in each thread: a context on it belongs to the thread that made it, for
   what a second thread queues has no order with it. */
#define AMP_CUDA_STREAM_PER_THREAD ((amp_stream)2)

/* Device memory from cudaMallocAsync / cudaFreeAsync on the context's stream; on another stream use it only after an
   event. From the device's default pool, which gives what is free back to the system at the next synchronisation unless
   you raise its cudaMemPoolAttrReleaseThreshold. */
#define AMP_CUDA_POOL             1u
/* Wait after each launch and check it, so that an error is reported by the call that made it (not while the stream is
   being captured). */
#define AMP_CUDA_DEBUG            2u
/* The update of amp_step and amp_update is launched while their inspection runs, and waits on the GPU for what it finds
   (programmatic dependent launch). No bit depends on it; in a capture the edge between the two kernels is programmatic.
   It changes nothing before sm_90, with a driver older than CUDA 12.3's, for code compiled for sm_89 or older, on the
   legacy stream and in a step that counts lost updates. Off unless asked for: no GPU has timed it yet. */
#define AMP_CUDA_DEPENDENT_LAUNCH 4u

typedef struct amp_cuda_desc {
    uint32_t _begin;
    int32_t device;      /* CUDA's ordinal; 0 is device 0; AMP_NONE => the calling thread's current device */
    uint32_t flags;      /* AMP_CUDA_* */
    uint32_t gemm_flags; /* AMP_GEMM_* that every product of this context gets, e.g. AMP_GEMM_ORDERED */
    amp_stream stream; /* NULL => the context makes its own non-blocking stream; else a stream of that device, yours */
    struct cublasContext *cublas; /* your cublasLtHandle_t (cast) or cublasHandle_t; NULL => the context makes one */
    void *workspace;              /* device memory for products, yours; NULL => allocated */
    /* Its size; with workspace NULL: how much to allocate, 0 => 32 MiB on sm_90 and later, else 4 MiB. A bias that
       cuBLASLt wants in a different dtype takes 256 KiB: of yours if it is over 1 MiB, of ours in addition. */
    size_t workspace_bytes;
    uint32_t plans, _pad;    /* products whose algorithm is remembered, the least recently used one leaves; 0 => 512 */
    amp_allocator allocator; /* of device memory; {0} => cudaMalloc / cudaFree. Not together with AMP_CUDA_POOL */
    amp_allocator host;      /* of host objects; {0} => malloc / free */
    amp_logger logger;       /* {0} => silent */
    uint64_t _end;
} amp_cuda_desc;

/* amp_status amp_cuda_create(amp_ctx **out, const amp_cuda_desc *desc) A context on one stream of one GPU. desc NULL =>
   all defaults. Everything lent must outlive the context. Errors: INVALID_ARG, UNINIT, VERSION, NO_MEMORY, NO_CUDA (no
   device, no driver, or a stub), CUDA (also: a driver that is too old or does not match, a GPU in exclusive use, MPS
   down, ...: nobody should train on the CPU instead without being told), DEAD, CAPTURE (the stream is being captured);
   then *out is NULL, nothing stays allocated, and the logger has the sentence with CUDA's own words (not of UNINIT and
   VERSION). After a failed start CUDA's cudaGetLastError says it for ever. Class: setup. Threads: safe. */
#define amp_cuda_create(out, ...) amp_cuda_create_checked((out), AMP_VERSION, sizeof(amp_cuda_desc), __VA_ARGS__)
AMP_CUDA_API amp_status amp_cuda_create_checked(amp_ctx **out, int version, size_t size, const amp_cuda_desc *desc);

/* 1 if there is a CUDA device that can be used, else 0 (also: the stub). Class: host. Threads: safe. */
AMP_CUDA_API int amp_cuda_available(void);

/* The stream of a CUDA context; NULL for any other context. Class: host. */
AMP_CUDA_API amp_stream amp_cuda_stream(const amp_ctx *ctx);

typedef enum amp_cuda_library { AMP_CUDA_NO_LIBRARY = 0, AMP_CUDA_RUNTIME, AMP_CUDA_CUBLASLT } AMP_INT amp_cuda_library;
typedef struct amp_cuda_error {
    int32_t code;             /* a cudaError_t or a cublasStatus_t */
    amp_cuda_library library; /* whose; AMP_CUDA_NO_LIBRARY: no CUDA call of this context has failed */
    const char *call;         /* "cudaMemcpyAsync"; "" if none. Static text */
} amp_cuda_error;
/* The last CUDA call of this context that failed. INVALID_ARG if it is not a CUDA context. Class: host. */
AMP_CUDA_API amp_status amp_cuda_last_error(const amp_ctx *ctx, amp_cuda_error *out);

/* The algorithms found for products so far (by the heuristic, or by amp_gemm_tune), to a file and back. Load refuses a
   file made for a different cuBLASLt, kind of device or workspace size, and a damaged one, with FORMAT and a sentence,
   and then changes nothing; each algorithm is checked by cuBLASLt before its first use. IO: the file. Save replaces a
   file as amp_state_save does (>>state). Both take host memory while they run. Class: host. */
AMP_CUDA_API amp_status amp_cuda_plans_save(amp_ctx *ctx, const char *path);
AMP_CUDA_API amp_status amp_cuda_plans_load(amp_ctx *ctx, const char *path);
/* searches: how often an algorithm was looked for; once a model has made its first step, this should stay as it is (a
   WARNING says if it does not). room: desc.plans. INVALID_ARG if it is not a CUDA context. Class: host. */
typedef struct amp_cuda_plans { uint64_t searches, room; } amp_cuda_plans;
AMP_CUDA_API amp_status amp_cuda_plans_get(const amp_ctx *ctx, amp_cuda_plans *out);

#ifdef __cplusplus
} /* extern "C" */
extern "C++" {
static inline amp_status amp_cuda_create_checked(amp_ctx **out, int version, size_t size, const amp_cuda_desc &d) {
    return amp_cuda_create_checked(out, version, size, &d);
}
}
#endif
#if defined(__GNUC__)
#  pragma GCC diagnostic pop
#endif
#pragma pack(pop)
#endif /* AMP_CUDA_CUH */

#if defined(AMP_CUDA_IMPLEMENTATION) && defined(AMP_CUDA_STUB_IMPLEMENTATION)
#  error "amp_cuda.cuh: AMP_CUDA_IMPLEMENTATION (one .cu file) and AMP_CUDA_STUB_IMPLEMENTATION exclude each other"
#endif

/* ==== >>stub =========================================================================================================
   The API without CUDA.   tests: tests/cuda_stub.c, tests/test_context.c */

#if defined(AMP_CUDA_STUB_IMPLEMENTATION) && !defined(AMPI_CUDA_ONCE)
#define AMPI_CUDA_ONCE
#ifdef __cplusplus
extern "C" {
#endif
amp_status amp_cuda_create_checked(amp_ctx **out, int version, size_t size, const amp_cuda_desc *desc) {
    static const char text[] = "amp_cuda_create: built without CUDA: AMP_CUDA_STUB_IMPLEMENTATION is linked";
    if (!out) return AMP_ERR_INVALID_ARG;
    *out = NULL;
    if (version != AMP_VERSION || size != sizeof *desc) return AMP_ERR_VERSION;
    if (desc && (desc->_begin || desc->_end)) return AMP_ERR_UNINIT;
    if (desc && desc->logger.fn) (desc->logger.fn)(AMP_LOG_ERROR, AMP_ERR_NO_CUDA, text, desc->logger.user);
    return AMP_ERR_NO_CUDA;
}
int amp_cuda_available(void) { return 0; }
amp_stream amp_cuda_stream(const amp_ctx *ctx) {
    (void)ctx;
    return NULL;
}
amp_status amp_cuda_plans_save(amp_ctx *ctx, const char *path) {
    (void)ctx;
    (void)path;
    return AMP_ERR_NO_CUDA;
}
amp_status amp_cuda_plans_load(amp_ctx *ctx, const char *path) {
    (void)ctx;
    (void)path;
    return AMP_ERR_NO_CUDA;
}
amp_status amp_cuda_plans_get(const amp_ctx *ctx, amp_cuda_plans *out) {
    const amp_cuda_plans none = {0, 0};
    (void)ctx;
    if (out) *out = none;
    return AMP_ERR_INVALID_ARG;
}
amp_status amp_cuda_last_error(const amp_ctx *ctx, amp_cuda_error *out) {
    const amp_cuda_error none = {0, AMP_CUDA_NO_LIBRARY, ""};
    (void)ctx;
    if (out) *out = none;
    return AMP_ERR_INVALID_ARG;
}
#ifdef __cplusplus
}
#endif
#endif

/* ==== the implementation ========================================================================================== */

#if defined(AMP_CUDA_IMPLEMENTATION) && !defined(AMPI_CUDA_ONCE)
#define AMPI_CUDA_ONCE
#if !defined(__CUDACC__) && !defined(AMP_HOSTCUDA)
#  error "amp_cuda.cuh: AMP_CUDA_IMPLEMENTATION needs nvcc (a .cu file); without a GPU: AMP_CUDA_STUB_IMPLEMENTATION"
#endif
#pragma pack(push)
#pragma pack()

extern "C++" { /* wherever this file is included */
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#if !defined(AMP_NO_THREADS) && !defined(_WIN32)
#  include <pthread.h>
#endif

/* Threads per block: one constant for all kernels. A power of two from 32 to 256; the results do not depend on it. */
#ifndef AMP_BLOCK
#  define AMP_BLOCK 256
#endif
#if AMP_BLOCK != 32 && AMP_BLOCK != 64 && AMP_BLOCK != 128 && AMP_BLOCK != 256
#  error "amp_cuda.cuh: AMP_BLOCK must be 32, 64, 128 or 256"
#endif

static_assert(sizeof(amp_f16) == 2 && sizeof(amp_bf16) == 2, "storage types");
static_assert(sizeof(amp_f8e4m3) == 1 && sizeof(amp_f8e5m2) == 1 && sizeof(float) == 4, "storage types");
/* Does not compile if CUDA changes its typedef. */
static inline amp_stream ampi_cu_same_type(cudaStream_t s) { return s; }

/* ==== >>device ======================================================================================================
   Building blocks of the kernels: eight elements at a time between memory, registers and float bits.
   tests: tests/ptx.sh, tests/test_formats.c, tests/test_arrays.c */

/* What device code (names ampi_k_*) needs beyond C++ and what CUDA and HIP spell alike (__global__, threadIdx,
   __syncthreads, atomicAdd, ...). Elsewhere in the file only the host layer (names ampi_cu_*) is NVIDIA's, so a port to
   a different kind of GPU defines AMP_SHARED and the list, all of it, and writes a host layer. */
#ifndef AMP_SHARED
#  define AMP_SHARED(T, name, n) __shared__ T name[n]
#endif
#ifndef AMP_LOAD_L2
#  define AMP_LOAD_L2(p)     __ldcg(p)                          /* past the first-level cache: other blocks wrote it */
#  define AMP_SHUFFLE(x, k)  __shfl_xor_sync(0xffffffffu, x, k) /* x of the thread k places on, of a whole warp */
#  define AMP_SYNC_TEAM()    __syncwarp()                       /* what one thread of a warp wrote, the others see */
#  define AMP_FENCE()        __threadfence()         /* writes before it come before writes after it, for the GPU */
#  define AMP_FENCE_SYSTEM() __threadfence_system()  /* and for the host, too */
#  define AMP_FMA(a, b, c)   __fmaf_ieee_rn(a, b, c) /* one rounding, subnormals kept, whatever the compiler's flags */
#  if defined(__CUDACC__)
#    define AMP_LOAD_STREAM(p) __ldcs(p) /* 128 bits that are not needed again soon: */
#    if defined(__clang__)               /* they are the first to leave the caches */
#      define AMP_STORE_STREAM(p, v) \
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" \
        : \
        : "l"(__cvta_generic_to_global(p)), "r"((v).x), "r"((v).y), "r"((v).z), "r"((v).w) \
        : "memory")
#      define AMP_STORE_128(p, v) \
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" \
        : \
        : "l"(__cvta_generic_to_global(p)), "r"((v).x), "r"((v).y), "r"((v).z), "r"((v).w) \
        : "memory")
#    else
#      define AMP_STORE_STREAM(p, v) __stcs(p, v)
#      define AMP_STORE_128(p, v)    __stwb(p, v) /* a plain store that branches share would be cut in pieces */
#    endif
/* A hint may stand for nothing. A kernel's argument is read where it is; the compiler forgets what it knows of 64 bits;
   it may believe that a place is never reached (the host runtime stops there); loops over small arrays, which stay in
   registers. */
#    define AMP_GRID_CONSTANT __grid_constant__
#    define AMP_OPAQUE(x)     asm volatile("" : "+l"(x))
#    define AMP_NEVER_HERE()  __builtin_unreachable()
#    define AMP_UNROLL        _Pragma("unroll")
#    define AMP_NO_UNROLL     _Pragma("unroll 1")
#    if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/* AMP_CUDA_DEPENDENT_LAUNCH: from here on the kernel behind this one may begin; and in that kernel, which touches no
   memory but its own before: this one has ended, and all that it wrote is seen. Elsewhere it begins only then. */
#      define AMP_LET_FOLLOW() asm volatile("griddepcontrol.launch_dependents;")
#      define AMP_FOLLOW()     asm volatile("griddepcontrol.wait;" : : : "memory")
#    else
#      define AMP_LET_FOLLOW()
#      define AMP_FOLLOW()
#    endif
#  else /* AMP_HOSTCUDA */
#    define AMP_LOAD_STREAM(p)     (*(p))
#    define AMP_STORE_STREAM(p, x) (*(p) = (x))
#    define AMP_STORE_128(p, x)    (*(p) = (x))
#    define AMP_GRID_CONSTANT
#    define AMP_OPAQUE(x)
#    define AMP_NEVER_HERE() __builtin_trap()
#    define AMP_UNROLL
#    define AMP_NO_UNROLL
#    define AMP_LET_FOLLOW()
#    define AMP_FOLLOW()
#  endif
#endif

/* The whole part, of numbers that are not negative; as an integer. Under --use_fast_math the language's own flush. */
#ifndef AMP_FLOOR
#  if defined(__CUDACC__)
#    define AMP_FLOOR(x) ampi_k_floor(x)
#  else
#    define AMP_FLOOR(x) floorf(x)
#  endif
#  define AMP_TO_U32(x) ampi_k_to_u32(x)
#endif

/* Conversions by the hardware, on float bits: a half to float; two to halves, or to BF16, of a word; two bytes of FP8
   to halves; four to bytes of a word. They need to be right for numbers within the range only. */
#ifndef AMP_FROM_HALF
#  if defined(__CUDA_ARCH__)
#    define AMP_FROM_HALF(pattern) ampi_from_half(pattern)
#    define AMP_TO_HALVES(a, b)    ampi_to_halves(a, b)
#  else
#    define AMP_FROM_HALF(pattern) ampi_decode(pattern, AMP_F16)
#    define AMP_TO_HALVES(a, b)    (ampi_nearest_bits(a, AMP_F16) | ampi_nearest_bits(b, AMP_F16) << 16)
#  endif
#  if defined(AMPI_BF16_HARDWARE)
#    define AMP_TO_BF16S(a, b) ampi_to_bf16s(a, b)
#  else
#    define AMP_TO_BF16S(a, b) ampi_k_bf16s(a, b)
#  endif
#  if defined(AMPI_F8_HARDWARE)
#    define AMP_F8_WHOLE(t)     AMPI_F8_HARDWARE(t) /* 1: AMP_FROM_F8 gives the numbers; 0: as ampi_k_halves_of_f8 */
#    define AMP_FROM_F8(two, t) (AMPI_F8_HARDWARE(t) ? ampi_from_two_f8(two, t) : ampi_k_halves_of_f8(two, t))
#  else
#    define AMP_F8_WHOLE(t)     0
#    define AMP_FROM_F8(two, t) ampi_k_halves_of_f8(two, t)
#  endif
#  define AMP_TO_F8(x, t) ampi_k_bytes_of_f8(x, t)
#endif

#define AMPI_K    static __device__ __forceinline__
#define AMPI_K_AT __device__ __forceinline__ /* a member function */
#define AMPI_K_BLOCKS(n) \
    (n * 256 / AMP_BLOCK) /* so many blocks of 256 threads on a multiprocessor: their registers fit */
#define AMPI_K_APART static __device__ __attribute__((noinline)) /* with registers of its own */

#if defined(__CUDACC__)
AMPI_K float ampi_k_floor(float x) {
    float r;
    asm("cvt.rmi.f32.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
AMPI_K uint32_t ampi_k_to_u32(float x) {
    uint32_t r;
    asm("cvt.rzi.u32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
}
#else
AMPI_K uint32_t ampi_k_to_u32(float x) { /* as that instruction: 0 of NaN, the nearest of what does not fit */
    if (x >= 4294967296.0f) return 0xffffffffu;
    return x > 0.0f ? (uint32_t)x : 0u;
}
#endif

/* Device arrays are read and written as 8, 16, 32 and 128 bits. Only the host runtime of the tests, where a C++
   compiler sees these accesses, needs to be told that they may overlap with others. */
#if defined(__CUDACC__)
typedef uint16_t ampi_k_u16;
typedef uint32_t ampi_k_u32;
typedef uint2 ampi_k_u2;
typedef uint4 ampi_k_u4;
#else
typedef uint16_t __attribute__((__may_alias__)) ampi_k_u16;
typedef uint32_t __attribute__((__may_alias__)) ampi_k_u32;
typedef struct __attribute__((__may_alias__, __aligned__(8))) ampi_k_u2 { uint32_t x, y; } ampi_k_u2;
typedef struct __attribute__((__may_alias__, __aligned__(16))) ampi_k_u4 { uint32_t x, y, z, w; } ampi_k_u4;
#endif

/* Eight elements at a time are the vector body of every array kernel: 32 bytes of F32 (two accesses of 128 bits), 16 of
   a 16-bit format, 8 of an FP8 format. `wide` says that the address allows it; else one by one, and only the first m.
   AMPI_K_STREAM: it does, and nobody will soon want these bytes again, so that they need not drive others out of the
   caches. */
#define AMPI_K_STREAM 2
AMPI_K size_t ampi_k_unit(amp_dtype t) { return amp_dtype_size(t) == 1u ? 8u : 16u; }
AMPI_K int ampi_k_aligned(const void *p, amp_dtype t) { return ((uintptr_t)p & (ampi_k_unit(t) - 1u)) == 0; }

AMPI_K void ampi_k_unpack2(uint32_t *x, uint32_t word) {
    x[0] = word & 0xffffu;
    x[1] = word >> 16;
}
AMPI_K void ampi_k_unpack4(uint32_t *x, uint32_t word) {
    x[0] = word & 0xffu;
    x[1] = word >> 8 & 0xffu;
    x[2] = word >> 16 & 0xffu;
    x[3] = word >> 24;
}
AMPI_K ampi_k_u4 ampi_k_four(const uint32_t w[4]) {
    ampi_k_u4 v = {w[0], w[1], w[2], w[3]};
    return v;
}
AMPI_K void ampi_k_words(uint32_t w[4], ampi_k_u4 v) {
    w[0] = v.x;
    w[1] = v.y;
    w[2] = v.z;
    w[3] = v.w;
}
AMPI_K ampi_k_u4 ampi_k_ld4(const ampi_k_u4 *p, int wide) {
    if (wide == AMPI_K_STREAM) return AMP_LOAD_STREAM(p);
    return *p;
}
AMPI_K void ampi_k_st4(ampi_k_u4 *p, ampi_k_u4 a, int wide) {
    if (wide == AMPI_K_STREAM)
        AMP_STORE_STREAM(p, a);
    else
        AMP_STORE_128(p, a);
}
AMPI_K void ampi_k_put4(void *p, const uint32_t w[4], int wide) { ampi_k_st4((ampi_k_u4 *)p, ampi_k_four(w), wide); }

/* Where the vectors of some arrays begin: elements from the head on, in steps, are aligned in all that met. */
typedef struct ampi_k_ends {
    uint32_t head, step;
    int never;
} ampi_k_ends;
AMPI_K ampi_k_ends ampi_k_no_ends(void) {
    ampi_k_ends e = {0, 1, 0};
    return e;
}
/* One more array, from element i on; NULL: none. */
AMPI_K void ampi_k_meet(ampi_k_ends *e, const void *p, amp_dtype t, uint64_t i) {
    uint32_t log2 = (uint32_t)amp_dtype_size(t) >> 1, unit = (uint32_t)ampi_k_unit(t), step = unit >> log2;
    uint32_t head = ((0u - (uint32_t)((uintptr_t)p + (i << log2))) & (unit - 1u)) >> log2;
    if (!p) return;
    e->never |= ((head - e->head) & ((step < e->step ? step : e->step) - 1u)) != 0;
    e->head = step > e->step ? head : e->head;
    e->step = step > e->step ? step : e->step;
}
/* How many groups of eight n elements have from the head on; and the i-th of the elements before and after them. */
AMPI_K uint32_t ampi_k_groups(const ampi_k_ends *e, uint32_t n) {
    return e->never || e->head >= n ? 0u : (n - e->head) / 8u;
}
AMPI_K uint32_t ampi_k_outside(const ampi_k_ends *e, uint32_t groups, uint32_t i) {
    return i < e->head ? i : i + 8u * groups;
}

/* Elements of a group of eight that begins at i and ends at n. */
AMPI_K uint32_t ampi_k_group(uint64_t i, uint64_t n) {
    if (i >= n) return 0u;
    return n - i < 8u ? (uint32_t)(n - i) : 8u;
}
/* Eight elements as they lie in memory: F32 fills a and b, a 16-bit format a, an FP8 format half of a. Fetched first
   and looked at later, so that all of a thread's loads are under way together. */
typedef struct ampi_k_raw { ampi_k_u4 a, b; } ampi_k_raw;

/* One by one: from the first to the m-th, and zeros. The size is known before the loop, not in it. */
template <uint32_t size>
AMPI_K void ampi_k_gather8(ampi_k_raw *r, const void *p, size_t i, uint32_t first, uint32_t m) {
    const amp_dtype small = size == 2u ? AMP_F16 : AMP_F8E4M3;
    const amp_dtype t = size == 4u ? AMP_F32 : small;
    const uint32_t each = 4u / size;
    uint32_t w[8], k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
        uint32_t x = k >= first && k < m ? ampi_load_pattern(p, t, i + k) : 0u;
        if (each == 1u) w[k] = x;
        if (each == 2u) w[k / 2u] = k % 2u ? w[k / 2u] | x << 16 : x;
        if (each == 4u) w[k / 4u] = k % 4u ? w[k / 4u] | x << (8u * (k % 4u)) : x;
    }
    r->a.x = w[0];
    r->a.y = w[1];
    if (each <= 2u) r->a = ampi_k_four(w);
    if (each == 1u) r->b = ampi_k_four(w + 4);
}
AMPI_K void ampi_k_gather8(ampi_k_raw *r, const void *p, amp_dtype t, size_t i, uint32_t first, uint32_t m) {
    if (t == AMP_F32)
        ampi_k_gather8<4>(r, p, i, first, m);
    else if (amp_dtype_size(t) == 2u)
        ampi_k_gather8<2>(r, p, i, first, m);
    else
        ampi_k_gather8<1>(r, p, i, first, m);
}
AMPI_K void ampi_k_fetch8(ampi_k_raw *r, const void *p, amp_dtype t, size_t i, int wide) {
#if !defined(__CUDACC__)
    memset(r, 0, sizeof *r); /* or else g++ warns of what nobody reads */
#endif
    if (!wide) {
        ampi_k_gather8(r, p, t, i, 0, 8);
    } else if (t == AMP_F32) {
        const ampi_k_u4 *v = (const ampi_k_u4 *)((const char *)p + 4u * i);
        r->a = ampi_k_ld4(v, wide);
        r->b = ampi_k_ld4(v + 1, wide);
    } else if (amp_dtype_size(t) == 2u) {
        r->a = ampi_k_ld4((const ampi_k_u4 *)((const char *)p + 2u * i), wide);
    } else {
        ampi_k_u2 a = *(const ampi_k_u2 *)((const char *)p + i);
        r->a.x = a.x;
        r->a.y = a.y;
    }
}
/* Four from i on and four from k on, aligned. */
AMPI_K void ampi_k_fetch_fours(ampi_k_raw *r, const void *p, amp_dtype t, size_t i, size_t k) {
    const size_t size = amp_dtype_size(t);
    const char *first = (const char *)p + size * i, *second = (const char *)p + size * k;
#if !defined(__CUDACC__)
    memset(r, 0, sizeof *r);
#endif
    if (size == 2u) {
        const ampi_k_u2 a = *(const ampi_k_u2 *)first, b = *(const ampi_k_u2 *)second;
        const uint32_t w[4] = {a.x, a.y, b.x, b.y};
        r->a = ampi_k_four(w);
    } else {
        r->a.x = *(const ampi_k_u32 *)first;
        r->a.y = *(const ampi_k_u32 *)second;
    }
}
AMPI_K void ampi_k_patterns8(uint32_t x[8], const ampi_k_raw *r, amp_dtype t) {
    if (t == AMP_F32) {
        ampi_k_words(x, r->a);
        ampi_k_words(x + 4, r->b);
    } else if (amp_dtype_size(t) == 2u) {
        ampi_k_unpack2(x, r->a.x);
        ampi_k_unpack2(x + 2, r->a.y);
        ampi_k_unpack2(x + 4, r->a.z);
        ampi_k_unpack2(x + 6, r->a.w);
    } else {
        ampi_k_unpack4(x, r->a.x);
        ampi_k_unpack4(x + 4, r->a.y);
    }
}
/* The larger one of |x| and a magnitude, all as float bits; NaN, the largest of all, may become any NaN. */
AMPI_K uint32_t ampi_k_larger_size(uint32_t x, uint32_t size) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float r;
    asm("{ .reg .f32 a; abs.f32 a, %1; max.NaN.f32 %0, a, %2; }" : "=f"(r) : "f"(ampi_float(x)), "f"(ampi_float(size)));
    return ampi_bits(r);
#else
    return (x & 0x7fffffffu) > size ? x & 0x7fffffffu : size;
#endif
}
AMPI_K uint32_t ampi_k_largest8(const uint32_t x[8]) { /* magnitude, as float bits */
    uint32_t k, largest = 0;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        largest = ampi_k_larger_size(x[k], largest);
    return largest;
}
/* Two bytes of FP8 to two halves, where the hardware has no way: moved up until the mantissa is in its place. They are
   too small then by 2^(emin - 113): E5M2 by 1, E4M3 by 256. NaN is the caller's. */
AMPI_K uint32_t ampi_k_halves_of_f8(uint32_t two, amp_dtype t) {
    const uint32_t apart = (two & 0xffu) << 8 | (two & 0xff00u) << 16, more = ampi_format_of(t).mant - 2u;
    return more == 0 ? apart : (apart & 0x80008000u) | (apart & 0x7f007f00u) >> more;
}
AMPI_K uint32_t ampi_k_bytes_of_f8(const uint32_t x[4], amp_dtype t) {
#if defined(AMPI_F8_HARDWARE)
    if (AMPI_F8_HARDWARE(t)) return ampi_to_two_f8(x[0], x[1], t) | ampi_to_two_f8(x[2], x[3], t) << 16;
#endif
    return ampi_nearest_bits(x[0], t) | ampi_nearest_bits(x[1], t) << 8 | ampi_nearest_bits(x[2], t) << 16 |
        ampi_nearest_bits(x[3], t) << 24;
}
/* To two of BF16; a NaN among them stays visible as one that is not finite. */
AMPI_K uint32_t ampi_k_bf16s(uint32_t low, uint32_t high) {
    return ampi_nearest_bits(low, AMP_BF16) | ampi_nearest_bits(high, AMP_BF16) << 16;
}
/* Is there an Inf or a NaN in these words? See ampi_exponents. */
AMPI_K uint32_t ampi_k_odd(uint32_t a, uint32_t b, amp_dtype t) {
    uint32_t e = ampi_exponents(t), sign = ampi_signs(t);
    return (((a & e) + (sign - e)) | ((b & e) + (sign - e))) & sign;
}
AMPI_K uint32_t ampi_k_odd8(const ampi_k_raw *r, amp_dtype t) {
    uint32_t odd = ampi_k_odd(r->a.x, r->a.y, t);
    if (amp_dtype_size(t) > 1u) odd |= ampi_k_odd(r->a.z, r->a.w, t);
    if (t != AMP_F32) return odd;
    return odd | ampi_k_odd(r->b.x, r->b.y, t) | ampi_k_odd(r->b.z, r->b.w, t);
}
#define AMPI_FORMAT_ODD8(T, ...) \
    if (t == AMP_##T) return ampi_k_odd8(r, AMP_##T);
AMPI_K uint32_t ampi_k_odd_any8(const ampi_k_raw *r, amp_dtype t) {
    AMPI_FORMATS(AMPI_FORMAT_ODD8)
    return ampi_k_odd8(r, AMP_F32);
}
/* Eight elements as they lie in memory to float bits, the quick way: right but for NaN. */
AMPI_K void ampi_k_quick8(uint32_t x[8], const ampi_k_raw *r, amp_dtype t) {
    const int f8 = amp_dtype_size(t) == 1u;
    const uint32_t short_by = ampi_format_of(t).emin - 113u;
    const uint32_t both[4] = {r->a.x & 0xffffu, r->a.x >> 16, r->a.y & 0xffffu, r->a.y >> 16};
    const uint32_t w[4] = {r->a.x, r->a.y, r->a.z, r->a.w};
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        uint32_t two = w[k];
        if (f8) two = AMP_FROM_F8(both[k], t);
        x[2u * k] = t == AMP_BF16 ? two << 16 : AMP_FROM_HALF(two & 0xffffu);
        x[2u * k + 1u] = t == AMP_BF16 ? two & 0xffff0000u : AMP_FROM_HALF(two >> 16);
    }
    if (!f8 || AMP_F8_WHOLE(t) || short_by == 0) return;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = ampi_bits(amp_mul(ampi_float(x[k]), ampi_float((127u + short_by) << 23)));
}
AMPI_K uint32_t ampi_k_quick(uint32_t pattern, amp_dtype t) { /* of one: NaN may become any NaN */
    if (t == AMP_F16) return AMP_FROM_HALF(pattern);
    return t == AMP_BF16 ? pattern << 16 : ampi_decode_any(pattern, t);
}
#define AMPI_FORMAT_DECODE8(T, ...) \
    if (t == AMP_##T) { \
        AMP_UNROLL \
        for (k = 0; k < 8u; k++) \
            x[k] = ampi_decode(x[k], AMP_##T); \
        return; \
    }
AMPI_K void ampi_k_decode8(uint32_t x[8], amp_dtype t) { /* patterns to float bits */
    uint32_t k;
    AMPI_FORMATS(AMPI_FORMAT_DECODE8)
}
AMPI_K void ampi_k_exact8(uint32_t x[8], const ampi_k_raw *r, amp_dtype t) {
    ampi_k_patterns8(x, r, t);
    ampi_k_decode8(x, t);
}
/* Where the quick way met a NaN: it becomes what ampi_decode makes of it, in fewer instructions than that takes. */
AMPI_K void ampi_k_nans8(uint32_t x[8], const ampi_k_raw *r, amp_dtype t) {
    const ampi_format f = ampi_format_of(t);
    const uint32_t last = ampi_has_inf(f) ? f.over : f.maxf; /* that is none */
    uint32_t b[8], k;
    ampi_k_patterns8(b, r, t);
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
        const uint32_t a = b[k] & ((1u << f.sign) - 1u);
        if (a > last) x[k] = (b[k] >> f.sign) << 31 | 0x7fc00000u | (a << (23u - f.mant) & 0x7fffffu);
    }
}
#define AMPI_FORMAT_WIDEN8(T, ...) \
case AMP_##T: \
    ampi_k_quick8(x, r, AMP_##T); \
    if (ampi_k_odd8(r, AMP_##T)) ampi_k_nans8(x, r, AMP_##T); \
    break;
/* Eight elements as they lie in memory to float bits. */
AMPI_K void ampi_k_widen8(uint32_t x[8], const ampi_k_raw *r, amp_dtype t) {
    switch (t) {
        AMPI_FORMATS(AMPI_FORMAT_WIDEN8)
    default: ampi_k_patterns8(x, r, AMP_F32);
    }
}
/* The same for arithmetic: a NaN may become any NaN, as it does in what follows. (The quick way loses those of FP8.) */
AMPI_K void ampi_k_about8(uint32_t x[8], const ampi_k_raw *r, amp_dtype t) {
    if (t == AMP_F32)
        ampi_k_patterns8(x, r, AMP_F32);
    else if (t == AMP_BF16)
        ampi_k_quick8(x, r, AMP_BF16);
    else if (t == AMP_F16)
        ampi_k_quick8(x, r, AMP_F16);
    else
        ampi_k_widen8(x, r, t);
}
/* Eight patterns of 16 bits at an address that is not aligned for them: three or four words, and what is left at both
   ends. */
AMPI_K int ampi_k_has_words(amp_dtype t, uint32_t m) { return m == 8u && amp_dtype_size(t) == 2u; }
AMPI_K void ampi_k_fetch_words(ampi_k_raw *r, const void *p, size_t i) {
    const char *at = (const char *)p + 2u * i;
    if ((uintptr_t)at & 2u) {
        const ampi_k_u32 *w = (const ampi_k_u32 *)(at + 2);
        uint32_t w0 = w[0], w1 = w[1], w2 = w[2];
        r->a.x = *(const ampi_k_u16 *)at | w0 << 16;
        r->a.y = w0 >> 16 | w1 << 16;
        r->a.z = w1 >> 16 | w2 << 16;
        r->a.w = w2 >> 16 | (uint32_t)*(const ampi_k_u16 *)(at + 14) << 16;
    } else {
        const ampi_k_u32 *w = (const ampi_k_u32 *)at;
        ampi_k_u4 v = {w[0], w[1], w[2], w[3]};
        r->a = v;
    }
}
AMPI_K void ampi_k_store_words(const uint32_t x[8], void *p, size_t i) {
    char *at = (char *)p + 2u * i;
    if ((uintptr_t)at & 2u) {
        ampi_k_u32 *w = (ampi_k_u32 *)(at + 2);
        *(ampi_k_u16 *)at = (uint16_t)x[0];
        w[0] = x[1] | x[2] << 16;
        w[1] = x[3] | x[4] << 16;
        w[2] = x[5] | x[6] << 16;
        *(ampi_k_u16 *)(at + 14) = (uint16_t)x[7];
    } else {
        ampi_k_u32 *w = (ampi_k_u32 *)at;
        w[0] = x[0] | x[1] << 16;
        w[1] = x[2] | x[3] << 16;
        w[2] = x[4] | x[5] << 16;
        w[3] = x[6] | x[7] << 16;
    }
}
/* The first m of eight, and zeros. */
AMPI_K void ampi_k_take8(ampi_k_raw *r, const void *p, amp_dtype t, size_t i, uint32_t m, int wide) {
    if (wide && m == 8u)
        ampi_k_fetch8(r, p, t, i, wide);
    else if (ampi_k_has_words(t, m))
        ampi_k_fetch_words(r, p, i);
    else
        ampi_k_gather8(r, p, t, i, 0, m);
}
/* The first m of eight by themselves; the dtype of floats is known before the loop, not in it. */
AMPI_K void ampi_k_store_each(const uint32_t x[8], void *p, amp_dtype t, size_t i, uint32_t m) {
    uint32_t k;
    for (k = 0; k < 8u; k++)
        if (k < m) ampi_store_pattern(p, t, i + k, x[k]);
}
/* The first m of eight elements to float bits, and zeros. */
AMPI_K void ampi_k_load8(uint32_t x[8], const void *p, amp_dtype t, size_t i, uint32_t m, int wide) {
    ampi_k_raw r;
    ampi_k_take8(&r, p, t, i, m, wide);
    ampi_k_widen8(x, &r, t);
}

/* The first m of eight patterns to memory. */
AMPI_K void ampi_k_store8(const uint32_t x[8], void *p, amp_dtype t, size_t i, uint32_t m, int wide) {
    if (!wide && ampi_k_has_words(t, m)) {
        ampi_k_store_words(x, p, i);
    } else if ((!wide || m < 8u) && t == AMP_F32) {
        ampi_k_store_each(x, p, AMP_F32, i, m);
    } else if (!wide || m < 8u) {
        ampi_k_store_each(x, p, t, i, m);
    } else if (t == AMP_F32) {
        ampi_k_u4 *v = (ampi_k_u4 *)((char *)p + 4u * i);
        ampi_k_st4(v, ampi_k_four(x), wide);
        ampi_k_st4(v + 1, ampi_k_four(x + 4), wide);
    } else if (amp_dtype_size(t) == 2u) {
        ampi_k_u4 a = {x[0] | x[1] << 16, x[2] | x[3] << 16, x[4] | x[5] << 16, x[6] | x[7] << 16};
        ampi_k_st4((ampi_k_u4 *)((char *)p + 2u * i), a, wide);
    } else {
        ampi_k_u2 a = {x[0] | x[1] << 8 | x[2] << 16 | x[3] << 24, x[4] | x[5] << 8 | x[6] << 16 | x[7] << 24};
        *(ampi_k_u2 *)((char *)p + i) = a;
    }
}

/* ---- rounding eight floats to patterns, to nearest and stochastically, and the random numbers for that ----
   tests: tests/test_formats.c, tests/test_arrays.c, tests/test_layouts.c */

/* A float below 32,768 to a half, stochastically: in steps of the half, |x| is q + F; F's 32 bits are added to r, whose
   carry goes into q. All of it is exact; see ampi_rounded. */
AMPI_K uint32_t ampi_k_drawn_half(uint32_t x, uint32_t r) {
    uint32_t a = x & 0x7fffffffu, binade = (a > 0x38800000u ? a : 0x38800000u) & 0x7f800000u, q;
    float steps = amp_mul(ampi_float(a), ampi_float(0x84000000u - binade)); /* times 2^10 / binade */
    float whole = AMP_FLOOR(steps);
    uint64_t sum = (uint64_t)AMP_TO_U32(amp_mul(amp_sub(steps, whole), 4294967296.0f)) + r;
    q = AMP_TO_U32(whole) + (uint32_t)(sum >> 32) + (binade >> 13) - 0x1c400u;
    return (x >> 16 & 0x8000u) | q;
}
/* Eight float bits to patterns. To nearest, the quick way: into words as they will lie in memory; 0 where it is wrong,
   which is seldom: NaN, Inf, overflow. */
AMPI_K int ampi_k_quick_words(uint32_t w[4], const uint32_t x[8], amp_dtype t) {
    uint32_t k;
    if (amp_dtype_size(t) == 1u) {
        AMP_UNROLL
        for (k = 0; k < 2u; k++)
            w[k] = AMP_TO_F8(x + 4 * k, t);
        return ampi_k_largest8(x) < ampi_format_of(t).limit;
    }
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        if (t == AMP_F16) w[k] = AMP_TO_HALVES(x[2 * k], x[2 * k + 1]);
        if (t == AMP_BF16) w[k] = AMP_TO_BF16S(x[2 * k], x[2 * k + 1]);
    }
    return (ampi_k_odd(w[0], w[1], t) | ampi_k_odd(w[2], w[3], t)) == 0;
}
AMPI_K void ampi_k_exact_words(
    uint32_t w[4], const uint32_t x[8], amp_dtype t, amp_rounding how, const uint32_t r[8], int saturate) {
    const uint32_t each = amp_dtype_size(t) == 1u ? 4u : 2u;
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u / each; k++)
        w[k] = 0;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        w[k / each] |= ampi_encode(x[k], t, how, r[k], saturate) << (32u / each * (k % each));
}
/* Stochastic, the quick way, for 16 bits, of the first n; 0 where it may be wrong: NaN, Inf, the last binade, which the
   sum of squares shows, for none takes from another. Of BF16 the fraction is what is cut off, so it is added where it
   lies. */
AMPI_K int ampi_k_drawn_words(uint32_t w[4], const uint32_t x[8], amp_dtype t, const uint32_t r[8], uint32_t n) {
    const uint32_t limit = t == AMP_BF16 ? 0x7f800000u : 0x4e800000u; /* Inf; 32,768 squared */
    uint32_t k;
    float sum = 0.0f;
    AMP_UNROLL
    for (k = 0; k < n; k++)
        sum = AMP_FMA(ampi_float(x[k]), ampi_float(x[k]), sum);
    AMP_UNROLL
    for (k = 0; k < n / 2u; k++) {
        uint32_t a = x[2u * k], b = x[2u * k + 1u];
        if (t == AMP_BF16)
            w[k] = ((a + (r[2u * k] >> 16)) >> 16) | ((b + (r[2u * k + 1u] >> 16)) & 0xffff0000u);
        else
            w[k] = ampi_k_drawn_half(a, r[2u * k]) | ampi_k_drawn_half(b, r[2u * k + 1u]) << 16;
    }
    return ampi_bits(sum) < limit;
}
AMPI_K int ampi_k_short_words(uint32_t w[4], const uint32_t x[8], amp_dtype t, amp_rounding how, const uint32_t r[8]) {
    if (how == AMP_NEAREST) return ampi_k_quick_words(w, x, t);
    return amp_dtype_size(t) == 2u && ampi_k_drawn_words(w, x, t, r, 8);
}
#define AMPI_FORMAT_PATTERN8(T, ...) \
case AMP_##T: \
    if (!ampi_k_short_words(w, x, AMP_##T, how, r)) ampi_k_exact_words(w, x, AMP_##T, how, r, saturate); \
    break;
AMPI_K void ampi_k_pattern8(uint32_t x[8], amp_dtype t, amp_rounding how, const uint32_t r[8], int saturate) {
    uint32_t w[4] = {0, 0, 0, 0}, k;
    switch (t) {
        AMPI_FORMATS(AMPI_FORMAT_PATTERN8)
    default: return;
    }
    if (amp_dtype_size(t) == 2u) {
        AMP_UNROLL
        for (k = 0; k < 4u; k++)
            ampi_k_unpack2(x + 2u * k, w[k]);
    } else {
        ampi_k_unpack4(x, w[0]);
        ampi_k_unpack4(x + 4, w[1]);
    }
}
AMPI_K void ampi_k_nearest8(uint32_t x[8], amp_dtype t) {
    const uint32_t none[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ampi_k_pattern8(x, t, AMP_NEAREST, none, 0);
}
/* The keys of amp_philox's rounds: made once, by the host where it knows the seed. */
typedef struct ampi_k_keys { uint32_t of[20]; } ampi_k_keys;
AMP_INLINE ampi_k_keys ampi_k_keys_of(uint64_t seed) {
    ampi_k_keys keys;
    uint32_t k;
    for (k = 0; k < 10u; k++) {
        keys.of[2u * k] = (uint32_t)seed + k * 0x9E3779B9u;
        keys.of[2u * k + 1u] = (uint32_t)(seed >> 32) + k * 0xBB67AE85u;
    }
    return keys;
}
AMPI_K void ampi_k_philox_begin(uint32_t c[4], uint64_t stream, uint64_t counter) {
    c[0] = (uint32_t)counter;
    c[1] = (uint32_t)(counter >> 32);
    c[2] = (uint32_t)stream;
    c[3] = (uint32_t)(stream >> 32);
}
AMPI_K void ampi_k_philox_round(uint32_t c[4], uint32_t key0, uint32_t key1) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
    c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ key0;
    c[1] = (uint32_t)p1;
    c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ key1;
    c[3] = (uint32_t)p0;
}
AMPI_K void ampi_k_philox(uint32_t c[4], const ampi_k_keys *keys, uint64_t stream, uint64_t counter) {
    uint32_t k;
    ampi_k_philox_begin(c, stream, counter);
    AMP_UNROLL
    for (k = 0; k < 20u; k += 2u)
        ampi_k_philox_round(c, keys->of[k], keys->of[k + 1u]);
}
/* Where the seed is known on the device only, the keys are in shared memory: those of two rounds come in one load. */
#define AMPI_KEYS 5u /* loads */
AMPI_K ampi_k_u4 ampi_k_two_keys(uint64_t seed, uint32_t i) {
    ampi_k_u4 key;
    key.x = (uint32_t)seed + 2u * i * 0x9E3779B9u;
    key.y = (uint32_t)(seed >> 32) + 2u * i * 0xBB67AE85u;
    key.z = key.x + 0x9E3779B9u;
    key.w = key.y + 0xBB67AE85u;
    return key;
}
/* amp_random of four and of eight in a row; index: a multiple of 4 */
AMPI_K void ampi_k_draw4(uint32_t r[4], const ampi_k_u4 *keys, uint64_t stream, uint64_t index) {
    uint32_t k;
    ampi_k_philox_begin(r, stream, index >> 2);
    AMP_UNROLL
    for (k = 0; k < AMPI_KEYS; k++) {
        ampi_k_u4 key = keys[k];
        ampi_k_philox_round(r, key.x, key.y);
        ampi_k_philox_round(r, key.z, key.w);
    }
}
AMPI_K void ampi_k_draw8(uint32_t r[8], const ampi_k_u4 *keys, uint64_t stream, uint64_t index) {
    uint32_t k;
    ampi_k_philox_begin(r, stream, index >> 2);
    ampi_k_philox_begin(r + 4, stream, (index >> 2) + 1u);
    AMP_UNROLL
    for (k = 0; k < AMPI_KEYS; k++) {
        ampi_k_u4 key = keys[k];
        ampi_k_philox_round(r, key.x, key.y);
        ampi_k_philox_round(r + 4, key.x, key.y);
        ampi_k_philox_round(r, key.z, key.w);
        ampi_k_philox_round(r + 4, key.z, key.w);
    }
}
/* amp_random of eight in a row; keys: of the seed */
AMPI_K void ampi_k_random8(uint32_t r[8], const ampi_k_keys *keys, uint64_t stream, uint64_t index) {
    uint32_t w[12], k;
    ampi_k_philox(w, keys, stream, index >> 2);
    ampi_k_philox(w + 4, keys, stream, (index + 4u) >> 2); /* indices wrap at 2^64, blocks at 2^62 */
    if (index & 3u) {
        ampi_k_philox(w + 8, keys, stream, (index + 8u) >> 2);
        AMP_UNROLL
        for (k = 0; k < 10u; k++)
            w[k] = index & 2u ? w[k + 2u] : w[k];
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            w[k] = index & 1u ? w[k + 1u] : w[k];
    }
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        r[k] = w[k];
}

/* ---- sums by the rule of amp.h. A team of 32 threads adds up a part; a block has AMPI_TEAMS, which take turns ----
   tests: tests/test_step.c, tests/test_products.c */
#define AMPI_TEAM  32u
#define AMPI_TEAMS (AMP_BLOCK / AMPI_TEAM)
typedef struct ampi_k_room { /* in shared memory */
    float lane[AMPI_TEAMS * AMP_LANES], sum[AMPI_TEAMS], by[AMPI_TEAMS];
    double part[AMP_PARTS + AMPI_TEAMS], chunk[AMP_LANES];
} ampi_k_room;

AMPI_K float ampi_k_halve8(const float x[8]) {
    float even = amp_add(amp_add(x[0], x[4]), amp_add(x[2], x[6]));
    return amp_add(even, amp_add(amp_add(x[1], x[5]), amp_add(x[3], x[7])));
}
AMPI_K double ampi_k_halve8(const double x[8]) {
    double even = amp_dadd(amp_dadd(x[0], x[4]), amp_dadd(x[2], x[6]));
    return amp_dadd(even, amp_dadd(amp_dadd(x[1], x[5]), amp_dadd(x[3], x[7])));
}
/* The sum of AMP_LANES lanes by one team, of which a thread has every 32nd; every thread of it has the sum, for both of
   a pair add the same two. */
AMPI_K float ampi_k_join_team(const float lane[8]) {
    float sum = ampi_k_halve8(lane);
    uint32_t k;
    AMP_UNROLL
    for (k = AMPI_TEAM / 2u; k; k /= 2u)
        sum = amp_add(sum, AMP_SHUFFLE(sum, k));
    return sum;
}
/* The same where a thread has eight lanes side by side, from any on: of the eight sums of two threads each keeps four,
   then two, then one. */
AMPI_K float ampi_k_join_slots(const float lane[8]) {
    float x[8];
    uint32_t k, half;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = lane[k];
    AMP_UNROLL
    for (half = 4u; half; half /= 2u) {
        const int upper = (threadIdx.x & 4u * half) != 0;
        AMP_UNROLL
        for (k = 0; k < 4u; k++) {
            if (k >= half) continue;
            const float mine = upper ? x[k + half] : x[k];
            const float given = upper ? x[k] : x[k + half];
            x[k] = amp_add(mine, AMP_SHUFFLE(given, 4u * half));
        }
    }
    x[0] = amp_add(x[0], AMP_SHUFFLE(x[0], 2u));
    x[0] = amp_add(x[0], AMP_SHUFFLE(x[0], 1u));
    AMP_UNROLL
    for (half = 4u; half; half /= 2u)
        x[0] = amp_add(x[0], AMP_SHUFFLE(x[0], 4u * half));
    return x[0];
}
/* The sum of a team's doubles, one of a thread, to each of its threads. */
AMPI_K double ampi_k_join_pairs(double x) {
    uint32_t k;
    AMP_UNROLL
    for (k = AMPI_TEAM / 2u; k; k /= 2u)
        x = amp_dadd(x, AMP_SHUFFLE(x, k));
    return x;
}
AMPI_K float ampi_k_join(const float *lane) {
    uint32_t k;
    float x[8];
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = lane[threadIdx.x % AMPI_TEAM + AMPI_TEAM * k];
    return ampi_k_join_team(x);
}
/* The same in double, of the first n lanes; the others are 0. */
AMPI_K double ampi_k_join(const double *lane, uint32_t n) {
    uint32_t i = threadIdx.x % AMPI_TEAM, k;
    double x[8];
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = i + AMPI_TEAM * k < n ? lane[i + AMPI_TEAM * k] : 0.0;
    return ampi_k_join_pairs(ampi_k_halve8(x));
}
/* From the lanes of all teams, complete but for a barrier, to the sum of each part: thread i has that of team i. */
AMPI_K float ampi_k_join_lanes(ampi_k_room *room) {
    uint32_t team = threadIdx.x / AMPI_TEAM;
    float sum;
    __syncthreads();
    sum = ampi_k_join(&room->lane[team * AMP_LANES]);
    if (threadIdx.x % AMPI_TEAM == 0) room->sum[team] = sum;
    __syncthreads();
    return threadIdx.x < AMPI_TEAMS ? room->sum[threadIdx.x] : 0.0f;
}
/* Halves n doubles in shared memory, a power of two; the sum is valid in every thread. */
AMPI_K double ampi_k_halve(double *x, uint32_t n) {
    uint32_t i;
    double sum;
    __syncthreads();
    for (n /= 2u; n; n /= 2u) {
        for (i = threadIdx.x; i < n; i += AMP_BLOCK)
            x[i] = amp_dadd(x[i], x[i + n]);
        __syncthreads();
    }
    sum = x[0];
    __syncthreads();
    return sum;
}
AMPI_K uint32_t ampi_k_power_of_two(uint64_t n, uint32_t most) { /* the least that is not below n */
    uint32_t p = 1;
    while (p < n && p < most)
        p *= 2u;
    return p;
}
/* One chunk: x.at(base) ... x.at(base + n - 1). x is a small struct with a function at8(v, i, m) that gives m of
   them, from the i-th on. */
template <class X> AMPI_K double ampi_k_sum_chunk(const X &x, uint64_t base, uint32_t n, ampi_k_room *room) {
    uint32_t team = threadIdx.x / AMPI_TEAM, slot = threadIdx.x % AMPI_TEAM * 8u, parts = n / AMP_PART, r, i, k;
    parts += n % AMP_PART != 0;
    for (k = threadIdx.x; k < AMP_PARTS; k += AMP_BLOCK)
        room->part[k] = 0.0;
    for (r = 0; r < parts; r += AMPI_TEAMS) {
        uint32_t from = (r + team) * AMP_PART, to = from + AMP_PART < n ? from + AMP_PART : n;
        float lane[8] = {0, 0, 0, 0, 0, 0, 0, 0}, v[8], sum;
        for (i = from + slot; i < to; i += AMP_LANES) {
            uint32_t m = to - i < 8u ? to - i : 8u;
            x.at8(v, base + i, m);
            for (k = 0; k < 8u; k++)
                if (k < m) lane[k] = amp_add(lane[k], v[k]);
        }
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            room->lane[team * AMP_LANES + slot + k] = lane[k];
        sum = ampi_k_join_lanes(room);
        if (threadIdx.x < AMPI_TEAMS && r + threadIdx.x < parts) room->part[r + threadIdx.x] = amp_widen(sum);
    }
    return ampi_k_halve(room->part, ampi_k_power_of_two(parts, AMP_PARTS));
}
/* An array of any length by one block. */
template <class X> AMPI_K double ampi_k_sum(const X &x, uint64_t n, ampi_k_room *room) {
    uint64_t chunks = n / AMP_CHUNK + (n % AMP_CHUNK != 0), c;
    uint32_t i;
    if (chunks <= 1u) return ampi_k_sum_chunk(x, 0, (uint32_t)n, room);
    for (i = threadIdx.x; i < AMP_LANES; i += AMP_BLOCK)
        room->chunk[i] = 0.0;
    for (c = 0; c < chunks; c++) {
        uint64_t left = n - c * AMP_CHUNK;
        double sum = ampi_k_sum_chunk(x, c * AMP_CHUNK, (uint32_t)(left < AMP_CHUNK ? left : AMP_CHUNK), room);
        double *lane = &room->chunk[c % AMP_LANES];
        if (threadIdx.x == 0) *lane = amp_dadd(*lane, sum); /* the barriers of ampi_k_sum_chunk are before it */
    }
    return ampi_k_halve(room->chunk, AMP_LANES);
}

/* ==== >>device-arrays ============================================================================================
   Kernels over arrays: casts, finite checks and unscaling, histograms.
   tests: tests/test_arrays.c, tests/test_formats.c */

#define AMPI_CU_FEW 100u /* arrays per launch of the list verbs, as many as its arguments have room for */

/* What the kernels of a verb leave for the host, or for a later kernel of the same verb: one member per verb, which
   clears it, fills it and reads it. One block per context; the verbs on its stream use it in turn. */
typedef struct ampi_k_finite_sums { /* amp_all_finite */
    uint64_t nan, inf, overflow;
    uint64_t first; /* ~(chunk number << 16 | offset) of the first bad element; 0 if there is none */
} ampi_k_finite_sums;
typedef struct ampi_k_histogram_bins { /* amp_histogram_count */
    uint64_t bins[4 + 256];            /* total, zero, inf, nan, pow2[] */
    uint32_t amax;                     /* bits of the largest magnitude */
    uint32_t _pad;
} ampi_k_histogram_bins;
typedef struct ampi_k_cast_args {
    void *dst;
    const void *src;
    amp_dtype dst_type, src_type;
    uint64_t n, head, groups; /* elements before the vector body; groups of 8 in it */
    uint64_t seed, stream, offset;
    ampi_k_keys keys;
    amp_rounding how;
    int saturate;
} ampi_k_cast_args;

AMPI_K void ampi_k_cast8(const ampi_k_cast_args *a, uint64_t i, uint32_t m, int wide) {
    uint32_t x[8], r[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ampi_k_load8(x, a->src, a->src_type, i, m, wide);
    if (a->how == AMP_STOCHASTIC) ampi_k_random8(r, &a->keys, a->stream, a->offset + i);
    ampi_k_pattern8(x, a->dst_type, a->how, r, a->saturate);
    ampi_k_store8(x, a->dst, a->dst_type, i, m, wide);
}
/* Elements outside of the groups, one by one. */
AMPI_K void ampi_k_cast_ends(const ampi_k_cast_args *a, uint64_t me, uint64_t step) {
    for (uint64_t i = me; i < a->n - 8u * a->groups; i += step) {
        uint64_t at = i < a->head ? i : i + 8u * a->groups;
        uint32_t r = a->how == AMP_STOCHASTIC ? amp_random(a->seed, a->stream, a->offset + at) : 0u;
        ampi_store_pattern(a->dst, a->dst_type, at,
            ampi_encode_any(ampi_load_bits(a->src, a->src_type, at), a->dst_type, a->how, r, a->saturate));
    }
}
/* To floats: a thread has two groups of four, a block's width apart, so that each store of a warp fills whole lines. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_cast_wide(const AMP_GRID_CONSTANT ampi_k_cast_args a) {
    const uint64_t fours = 2u * a.groups, step = (uint64_t)gridDim.x * (2u * AMP_BLOCK);
    uint64_t me = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x, i;
    for (i = (uint64_t)blockIdx.x * (2u * AMP_BLOCK) + threadIdx.x; i < fours; i += step) {
        const uint64_t other = i + AMP_BLOCK < fours ? i + AMP_BLOCK : i;
        uint32_t x[8];
        ampi_k_raw r;
        ampi_k_fetch_fours(&r, a.src, a.src_type, a.head + 4u * i, a.head + 4u * other);
        ampi_k_widen8(x, &r, a.src_type);
        ampi_k_put4((float *)a.dst + a.head + 4u * i, x, 1);
        ampi_k_put4((float *)a.dst + a.head + 4u * other, x + 4, 1);
    }
    ampi_k_cast_ends(&a, me, (uint64_t)gridDim.x * AMP_BLOCK);
}
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_cast(const AMP_GRID_CONSTANT ampi_k_cast_args a) {
    uint64_t me = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x, step = (uint64_t)gridDim.x * AMP_BLOCK, i;
    for (i = me; i < a.groups; i += step)
        ampi_k_cast8(&a, a.head + 8u * i, 8, 1);
    ampi_k_cast_ends(&a, me, step);
}

/* From doubles or to doubles. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_cast_f64(const AMP_GRID_CONSTANT ampi_k_cast_args a) {
    uint64_t i = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x, step = (uint64_t)gridDim.x * AMP_BLOCK;
    for (; i < a.n; i += step) {
        uint32_t r = a.how == AMP_STOCHASTIC ? amp_random(a.seed, a.stream, a.offset + i) : 0u;
        if (a.dst_type == AMP_F64)
            ((uint64_t *)a.dst)[i] = ampi_f64_of(ampi_load_bits(a.src, a.src_type, i));
        else
            ampi_store_pattern(
                a.dst, a.dst_type, i, ampi_encode_f64(((const double *)a.src)[i], a.dst_type, a.how, r, a.saturate));
    }
}

/* A few arrays, cut into chunks that are numbered through, and each chunk into pieces: a block takes a piece at a time.
   As many pieces as fill the GPU, if there are so many elements. */
typedef struct ampi_k_list {
    void *data[AMPI_CU_FEW], *dst[AMPI_CU_FEW];
    uint64_t count[AMPI_CU_FEW];
    uint32_t end[AMPI_CU_FEW]; /* chunks of these arrays up to this one, with it */
    uint8_t type[AMPI_CU_FEW], dst_type[AMPI_CU_FEW];
    uint64_t chunks;      /* of these arrays */
    uint64_t first_chunk; /* number of the first of them in the caller's whole list */
    uint32_t n, bits;     /* 2^bits pieces of a chunk */
} ampi_k_list;
static_assert(sizeof(ampi_k_list) <= 3072, "a kernel has 4 KB of arguments");

typedef struct ampi_k_part { /* one piece: elements [base, base + n) of an array, from `at` on in their chunk */
    void *data, *dst;
    amp_dtype type, dst_type;
    uint32_t n, at;
    uint64_t base, chunk;
    ampi_k_ends ends;
} ampi_k_part;

AMPI_K ampi_k_part ampi_k_find(const ampi_k_list *l, uint64_t piece) {
    ampi_k_part p;
    uint32_t a = 0, most = l->n - 1u, size = AMP_CHUNK >> l->bits, chunk = (uint32_t)(piece >> l->bits);
    while (a < most) { /* the first that ends behind the chunk */
        uint32_t middle = (a + most) / 2u;
        if (chunk < l->end[middle])
            most = middle;
        else
            a = middle + 1u;
    }
    p.data = l->data[a];
    p.type = (amp_dtype)l->type[a];
    p.dst = l->dst[a];
    p.dst_type = (amp_dtype)l->dst_type[a];
    p.chunk = l->first_chunk + chunk;
    p.at = ((uint32_t)piece & ((1u << l->bits) - 1u)) * size;
    p.base = (uint64_t)(chunk - (a ? l->end[a - 1u] : 0u)) * AMP_CHUNK + p.at;
    p.n = p.base >= l->count[a] ? 0u : size;
    if (p.n && l->count[a] - p.base < size) p.n = (uint32_t)(l->count[a] - p.base);
    p.ends = ampi_k_no_ends();
    ampi_k_meet(&p.ends, p.data, p.type, p.base);
    ampi_k_meet(&p.ends, p.dst, p.dst_type, p.base);
    return p;
}

/* Eight gradients and their products u, as float bits: faults among the first m are counted. */
AMPI_K void ampi_k_check8(const uint32_t g[8], const uint32_t u[8], uint32_t m, uint32_t at, amp_faults *f) {
    uint32_t k;
    if (ampi_k_largest8(u) < 0x7f800000u) return; /* nearly always: a product is finite only if its gradient is */
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        if (k < m) amp_count_fault(f, ampi_float(g[k]), ampi_float(u[k]), at + k);
}
/* Eight gradients g, as float bits, are checked, unless that was done, and written as g * inv in dtype t. They were of
   dtype `from`. */
AMPI_K void ampi_k_unscale8(const uint32_t g[8], void *p, amp_dtype t, amp_dtype from, size_t i, uint32_t m, int wide,
    uint32_t at, float inv, int checked, amp_faults *f) {
    uint32_t k, u[8], x[8];
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = u[k] = ampi_bits(amp_mul(ampi_float(g[k]), inv));
    if (!checked) ampi_k_check8(g, u, m, at, f);
    ampi_k_nearest8(x, t);
    ampi_k_store8(x, p, t, i, m, wide);
    if (!amp_may_lose(inv, from, t)) return;
    ampi_k_decode8(x, t);
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        if (k < m) amp_count_lost(f, ampi_float(u[k]), ampi_float(x[k]), at + k);
}

AMPI_K void ampi_k_add64(uint64_t *sum, uint64_t x) {
    if (x) atomicAdd((unsigned long long *)sum, (unsigned long long)x);
}
AMPI_K void ampi_k_note(ampi_k_finite_sums *out, uint64_t chunk, const amp_faults *f) {
    ampi_k_add64(&out->nan, f->nan);
    ampi_k_add64(&out->inf, f->inf);
    ampi_k_add64(&out->overflow, f->overflow);
    atomicMax((unsigned long long *)&out->first, ~((unsigned long long)chunk << 16 | f->first));
}
/* The first m of eight elements of a piece, which seldom are all finite, or not aligned. */
AMPI_K void ampi_k_finite8(const ampi_k_part *p, uint32_t i, uint32_t m, int wide, amp_faults *f) {
    uint32_t x[8];
    ampi_k_load8(x, p->data, p->type, p->base + i, m, wide);
    ampi_k_check8(x, x, m, p->at + i, f);
}
/* The groups of eight of a piece, as they lie in memory: a thread fetches some before it looks at any, the last one
   again where there are no more. */
AMPI_K void ampi_k_finite_groups(const ampi_k_part *p, amp_dtype t, uint32_t groups, amp_faults *f) {
    const uint32_t ahead = t == AMP_F32 ? 2u : 4u;
    ampi_k_raw raw[4];
    uint32_t i, q;
    for (i = threadIdx.x; i < groups; i += ahead * AMP_BLOCK) {
        uint32_t odd = 0;
        AMP_UNROLL
        for (q = 0; q < ahead; q++) {
            uint32_t g = i + q * AMP_BLOCK < groups ? i + q * AMP_BLOCK : groups - 1u;
            ampi_k_fetch8(&raw[q], p->data, t, p->base + p->ends.head + 8u * g, 1);
        }
        AMP_UNROLL
        for (q = 0; q < ahead; q++)
            odd |= ampi_k_odd8(&raw[q], t);
        if (!odd) continue;
        AMP_NO_UNROLL
        for (q = i; q < groups && q < i + ahead * AMP_BLOCK; q += AMP_BLOCK)
            ampi_k_finite8(p, p->ends.head + 8u * q, 8, 1, f);
    }
}
#define AMPI_FORMAT_FINITE(T, ...) \
    if (p->type == AMP_##T) ampi_k_finite_groups(p, AMP_##T, groups, f);
AMPI_K void ampi_k_finite_piece(const ampi_k_part *p, amp_faults *f) {
    uint32_t groups = ampi_k_groups(&p->ends, p->n), i;
    if (p->type == AMP_F64) {
        for (i = threadIdx.x; i < p->n; i += AMP_BLOCK)
            amp_count_f64(f, ((const uint64_t *)p->data)[p->base + i], p->at + i);
        return;
    }
    AMPI_FORMATS(AMPI_FORMAT_FINITE)
    if (p->type == AMP_F32) ampi_k_finite_groups(p, AMP_F32, groups, f);
    for (i = threadIdx.x; i < p->n - 8u * groups; i += AMP_BLOCK)
        ampi_k_finite8(p, ampi_k_outside(&p->ends, groups, i), 1, 0, f);
}
static __global__ void __launch_bounds__(AMP_BLOCK, AMPI_K_BLOCKS(4))
    ampi_k_finite(const AMP_GRID_CONSTANT ampi_k_list list, ampi_k_finite_sums *out) {
    uint64_t piece;
    for (piece = blockIdx.x; piece < list.chunks << list.bits; piece += gridDim.x) {
        ampi_k_part p = ampi_k_find(&list, piece);
        amp_faults f = amp_no_faults();
        ampi_k_finite_piece(&p, &f);
        if (f.first != AMP_CHUNK) ampi_k_note(out, p.chunk, &f);
    }
}

/* The groups of eight of a piece, unscaled, two at a time. */
AMPI_K void ampi_k_unscale_groups(const ampi_k_part *p, amp_dtype t, uint32_t groups, float inv, amp_faults *f) {
    ampi_k_raw one, two;
    uint32_t x[8], i;
    for (i = threadIdx.x; i < groups; i += 2u * AMP_BLOCK) {
        const int both = i + AMP_BLOCK < groups;
        uint32_t at = p->ends.head + 8u * i, next = at + 8u * AMP_BLOCK;
        ampi_k_fetch8(&one, p->data, t, p->base + at, 1);
        if (both) ampi_k_fetch8(&two, p->data, t, p->base + next, 1);
        ampi_k_widen8(x, &one, t);
        ampi_k_unscale8(x, p->dst, p->dst_type, t, p->base + at, 8, 1, p->at + at, inv, 0, f);
        if (!both) continue;
        ampi_k_widen8(x, &two, t);
        ampi_k_unscale8(x, p->dst, p->dst_type, t, p->base + next, 8, 1, p->at + next, inv, 0, f);
    }
}
#define AMPI_FORMAT_UNSCALE(T, ...) \
    if (p->type == AMP_##T) ampi_k_unscale_groups(p, AMP_##T, groups, inv, f);
AMPI_K void ampi_k_unscale_piece(const ampi_k_part *p, float inv, amp_faults *f) {
    uint32_t groups = ampi_k_groups(&p->ends, p->n), i, x[8];
    AMPI_FORMATS(AMPI_FORMAT_UNSCALE)
    if (p->type == AMP_F32) ampi_k_unscale_groups(p, AMP_F32, groups, inv, f);
    for (i = threadIdx.x; i < p->n - 8u * groups; i += AMP_BLOCK) {
        uint32_t at = ampi_k_outside(&p->ends, groups, i);
        ampi_k_load8(x, p->data, p->type, p->base + at, 1, 0);
        ampi_k_unscale8(x, p->dst, p->dst_type, p->type, p->base + at, 1, 0, p->at + at, inv, 0, f);
    }
}
/* out NULL: nobody wants the counts. Before sm_90 the registers of four blocks are too few, and memory needs less. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#  define AMPI_K_UNSCALERS 3
#else
#  define AMPI_K_UNSCALERS 4
#endif
static __global__ void __launch_bounds__(AMP_BLOCK, AMPI_K_BLOCKS(AMPI_K_UNSCALERS))
    ampi_k_unscale(const AMP_GRID_CONSTANT ampi_k_list list, amp_scaler_state *s, ampi_k_finite_sums *out) {
    float inv = amp_inverse_scale(s->scale);
    uint64_t piece;
    for (piece = blockIdx.x; piece < list.chunks << list.bits; piece += gridDim.x) {
        ampi_k_part p = ampi_k_find(&list, piece);
        amp_faults f = amp_no_faults();
        ampi_k_unscale_piece(&p, inv, &f);
        if (f.first == AMP_CHUNK) continue;
        if (out) ampi_k_note(out, p.chunk, &f);
        if (!s->no_check) atomicOr((unsigned *)&s->found, amp_found(f.nan, f.inf, f.overflow));
    }
}

AMPI_K uint32_t ampi_k_bin(uint32_t magnitude) { /* its place in ampi_k_histogram_bins */
    if (magnitude == 0) return 1u;
    if (magnitude == 0x7f800000u) return 2u;
    return magnitude > 0x7f800000u ? 3u : 4u + (magnitude >> 23);
}
AMPI_K uint32_t ampi_k_count8(uint32_t *bins, const uint32_t x[8], uint32_t m, uint32_t amax) {
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
        uint32_t a = x[k] & 0x7fffffffu;
        if (k >= m) continue;
        atomicAdd(&bins[ampi_k_bin(a)], 1u);
        if (a < 0x7f800000u && a > amax) amax = a;
    }
    return amax;
}
AMPI_K uint32_t ampi_k_histogram_piece(const ampi_k_part *p, uint32_t *bins, uint32_t amax) {
    uint32_t groups = ampi_k_groups(&p->ends, p->n), i, x[8];
    ampi_k_raw one, two;
    for (i = threadIdx.x; i < groups; i += 2u * AMP_BLOCK) {
        const int both = i + AMP_BLOCK < groups;
        uint64_t at = p->base + p->ends.head + 8u * i;
        ampi_k_fetch8(&one, p->data, p->type, at, 1);
        if (both) ampi_k_fetch8(&two, p->data, p->type, at + 8u * AMP_BLOCK, 1);
        ampi_k_widen8(x, &one, p->type);
        amax = ampi_k_count8(bins, x, 8, amax);
        if (both) ampi_k_widen8(x, &two, p->type);
        if (both) amax = ampi_k_count8(bins, x, 8, amax);
    }
    for (i = threadIdx.x; i < p->n - 8u * groups; i += AMP_BLOCK) {
        ampi_k_load8(x, p->data, p->type, p->base + ampi_k_outside(&p->ends, groups, i), 1, 0);
        amax = ampi_k_count8(bins, x, 1, amax);
    }
    return amax;
}
/* Counted in shared memory, whose 32 bits are enough for what a block sees, and added up at the end. */
static __global__ void __launch_bounds__(AMP_BLOCK, AMPI_K_BLOCKS(4))
    ampi_k_histogram(const AMP_GRID_CONSTANT ampi_k_list list, ampi_k_histogram_bins *out) {
    AMP_SHARED(uint32_t, bins, 4 + 256);
    uint64_t piece, total = 0;
    uint32_t amax = 0, i;
    for (i = threadIdx.x; i < 4u + 256u; i += AMP_BLOCK)
        bins[i] = 0;
    __syncthreads();
    for (piece = blockIdx.x; piece < list.chunks << list.bits; piece += gridDim.x) {
        ampi_k_part p = ampi_k_find(&list, piece);
        amax = ampi_k_histogram_piece(&p, bins, amax);
        total += p.n;
    }
    __syncthreads();
    for (i = threadIdx.x; i < 4u + 256u; i += AMP_BLOCK)
        ampi_k_add64(&out->bins[i], i == 0 ? total : bins[i]);
    if (amax) atomicMax((unsigned *)&out->amax, amax);
}

#define AMPI_K_ARRAYS(X) \
    X(ampi_k_cast) X(ampi_k_cast_wide) X(ampi_k_cast_f64) X(ampi_k_finite) X(ampi_k_unscale) X(ampi_k_histogram)
/* ---- FP8 with a scale per tensor: the rules are amp_fp8_begin and amp_fp8_end ----
   tests: tests/test_fp8.c */

/* Blocks that have seen a tensor: the last one to finish ends the cast. The ticket wraps to 0. */
AMPI_K void ampi_k_quantize_end(const amp_quantize_job *j, uint32_t amax) {
    AMP_SHARED(uint32_t, most, 3); /* amax, whether this block is the last, whether the history is looked through */
    amp_fp8_state *s = j->state;
    uint32_t i, k;
    AMP_UNROLL
    for (k = AMPI_TEAM / 2u; k; k /= 2u) {
        uint32_t other = AMP_SHUFFLE(amax, k);
        amax = other > amax ? other : amax;
    }
    if (threadIdx.x < 2u) most[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x % AMPI_TEAM == 0) atomicMax(&most[0], amax);
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicMax((unsigned *)&s->found, most[0]);
        AMP_FENCE();
        most[1] = atomicInc((unsigned *)&s->ticket, gridDim.x - 1u) == gridDim.x - 1u;
        AMP_FENCE();
    }
    __syncthreads();
    if (!most[1]) return;
    if (threadIdx.x == 0) {
        most[0] = 0;
        most[2] = (uint32_t)amp_fp8_end(j, ampi_float(AMP_LOAD_L2(&s->found)));
        s->found = 0;
    }
    __syncthreads();
    for (i = threadIdx.x, amax = 0; most[2] && i < j->n_history; i += AMP_BLOCK)
        amax = ampi_bits(j->history[i]) > amax ? ampi_bits(j->history[i]) : amax;
    if (amax) atomicMax(&most[0], amax);
    __syncthreads();
    if (most[2] && threadIdx.x == 0) s->window = ampi_float(most[0]);
}
AMPI_K uint32_t ampi_k_amax8(const uint32_t x[8], uint32_t amax) { /* NaN does not count */
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
        uint32_t a = x[k] & 0x7fffffffu;
        if (a <= 0x7f800000u && a > amax) amax = a;
    }
    return amax;
}
typedef struct ampi_k_quantize_args {
    amp_quantize_job job;
    uint32_t write, see; /* 1: outputs; amax, and the end of the cast */
    int wide, wide_t;    /* rows of src and dst, of dst_t, may be taken by 8 elements */
} ampi_k_quantize_args;
/* What numbers are multiplied with, and from which magnitude on, as bits, they go the long way: Inf and NaN or, where
   that factor is not a positive number, all. */
typedef struct ampi_k_scale {
    float by;
    uint32_t odd;
} ampi_k_scale;
AMPI_K ampi_k_scale ampi_k_scale_of(const ampi_k_quantize_args *a) {
    ampi_k_scale s = {1.0f, 0x7f800000u};
    if (a->write) s.by = amp_fp8_begin(&a->job);
    if (ampi_bits(s.by) - 1u >= 0x7f7fffffu) s.odd = 0;
    return s;
}
/* Eight finite floats to patterns, as they will lie in memory. NVIDIA's conversion limits what it converts. */
AMPI_K void ampi_k_fit8(uint32_t w[2], uint32_t x[8], float by, amp_dtype t) {
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
#if defined(AMPI_F8_HARDWARE)
        x[k] = ampi_bits(amp_mul(ampi_float(x[k]), by));
#else
        x[k] = ampi_bits(ampi_scalar_fit_one(ampi_float(x[k]), by, amp_fp8_most(t)));
#endif
    }
    w[0] = AMP_TO_F8(x, t);
    w[1] = AMP_TO_F8(x + 4, t);
}
/* The same with Inf and NaN among them. */
AMPI_K void ampi_k_fit_odd8(uint32_t w[4], uint32_t x[8], float by, amp_dtype t) {
    const uint32_t none[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = ampi_bits(ampi_scalar_fit_one(ampi_float(x[k]), by, amp_fp8_most(t)));
    ampi_k_exact_words(w, x, t, AMP_NEAREST, none, 0);
}
/* The larger of amax and that of eight elements of src; `write`: and these as patterns of type t. */
AMPI_K uint32_t ampi_k_quantize8(uint32_t w[4], const ampi_k_raw *r, amp_dtype from, const ampi_k_scale &s,
    uint32_t write, amp_dtype t, uint32_t amax) {
    uint32_t x[8], size;
    if (from == AMP_F32)
        ampi_k_patterns8(x, r, AMP_F32);
    else if (from == AMP_BF16)
        ampi_k_quick8(x, r, AMP_BF16);
    else
        ampi_k_quick8(x, r, AMP_F16);
    size = ampi_k_largest8(x);
    if (size >= s.odd) {
        ampi_k_widen8(x, r, from);
        amax = ampi_k_amax8(x, amax);
        if (!write) return amax;
        if (t == AMP_F8E4M3)
            ampi_k_fit_odd8(w, x, s.by, AMP_F8E4M3);
        else
            ampi_k_fit_odd8(w, x, s.by, AMP_F8E5M2);
        return amax;
    }
    if (!write) return size > amax ? size : amax;
    if (t == AMP_F8E4M3)
        ampi_k_fit8(w, x, s.by, AMP_F8E4M3);
    else
        ampi_k_fit8(w, x, s.by, AMP_F8E5M2);
    return size > amax ? size : amax;
}
AMPI_K void ampi_k_store_f8(const uint32_t w[2], const amp_array &a, size_t i, uint32_t m, int wide) {
    uint32_t k;
    ampi_k_u2 v = {w[0], w[1]};
    char *to = (char *)a.data + i;
    if (wide && m == 8u) {
        *(ampi_k_u2 *)to = v;
        return;
    }
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        if (k < m) to[k] = (char)(w[k / 4u] >> (8u * (k % 4u)));
}
/* In the order of memory: the amax, dst. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_quantize(const AMP_GRID_CONSTANT ampi_k_quantize_args a) {
    const amp_quantize_job *j = &a.job;
    const ampi_k_scale s = ampi_k_scale_of(&a);
    uint64_t n = (uint64_t)j->rows * j->cols, step = (uint64_t)gridDim.x * AMP_BLOCK * 8u, i;
    uint32_t amax = 0, w[4];
    ampi_k_raw r;
    for (i = ((uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x) * 8u; i < n; i += step) {
        uint32_t m = ampi_k_group(i, n);
        ampi_k_take8(&r, j->src.data, j->src.dtype, i, m, a.wide);
        amax = ampi_k_quantize8(w, &r, j->src.dtype, s, a.write, j->dst.dtype, amax);
        if (a.write) ampi_k_store_f8(w, j->dst, i, m, a.wide);
    }
    if (a.see) ampi_k_quantize_end(j, amax);
}

/* In tiles of AMPI_K_DEEP rows by AMPI_K_TILE columns, through shared memory: dst, if there is one, and dst_t. A thread
   takes four rows of eight and turns each four by four bytes; columns begin in the shared memory where no two threads
   of a warp meet in a bank. */
#define AMPI_K_TILE      64u
#define AMPI_K_ACROSS8   (AMPI_K_TILE / 8u)
#define AMPI_K_DEEP      (4u * AMP_BLOCK / AMPI_K_ACROSS8)
#define AMPI_K_COLUMN(c) ((c) * (AMPI_K_DEEP / 4u) + (c) / 8u * 4u) /* words */
AMPI_K uint32_t ampi_k_turn_in(
    const ampi_k_quantize_args &a, uint64_t r0, uint64_t c0, const ampi_k_scale &s, uint32_t *tile, uint32_t amax) {
    const amp_quantize_job *j = &a.job;
    const uint32_t c = threadIdx.x % AMPI_K_ACROSS8 * 8u, four = threadIdx.x / AMPI_K_ACROSS8;
    const uint32_t m = ampi_k_group(c0 + c, j->cols),
                   rows = (uint32_t)(j->rows - r0 < AMPI_K_DEEP ? j->rows - r0 : AMPI_K_DEEP);
    uint64_t first = (r0 + 4u * four) * j->cols + c0 + c;
    uint32_t w[4][4], q, k;
    ampi_k_raw raw[4];
    AMP_UNROLL
    for (q = 0; q < 4u; q++) {
        uint32_t count = 4u * four + q < rows ? m : 0u;
        ampi_k_take8(&raw[q], j->src.data, j->src.dtype, first + q * j->cols, count, a.wide);
    }
    AMP_UNROLL
    for (q = 0; q < 4u; q++) {
        uint32_t count = 4u * four + q < rows ? m : 0u;
        amax = ampi_k_quantize8(w[q], &raw[q], j->src.dtype, s, 1, j->dst_t.dtype, amax);
        if (j->dst.data) ampi_k_store_f8(w[q], j->dst, first + q * j->cols, count, a.wide);
    }
    AMP_UNROLL
    for (k = 0; k < 2u; k++) {
        uint32_t *to = &tile[AMPI_K_COLUMN(c) + 4u * k * AMPI_K_COLUMN(1u) + four];
        uint32_t a0 = __byte_perm(w[0][k], w[1][k], 0x5140), a1 = __byte_perm(w[0][k], w[1][k], 0x7362);
        uint32_t b0 = __byte_perm(w[2][k], w[3][k], 0x5140), b1 = __byte_perm(w[2][k], w[3][k], 0x7362);
        to[0] = __byte_perm(a0, b0, 0x5410);
        to[AMPI_K_COLUMN(1u)] = __byte_perm(a0, b0, 0x7632);
        to[AMPI_K_COLUMN(2u)] = __byte_perm(a1, b1, 0x5410);
        to[AMPI_K_COLUMN(3u)] = __byte_perm(a1, b1, 0x7632);
    }
    return amax;
}
AMPI_K void ampi_k_turn_out(const ampi_k_quantize_args &a, uint64_t r0, uint64_t c0, const uint32_t *tile) {
    const amp_quantize_job *j = &a.job;
    uint32_t slot;
    for (slot = threadIdx.x; slot < AMPI_K_TILE * AMPI_K_DEEP / 8u; slot += AMP_BLOCK) {
        uint32_t c = slot / (AMPI_K_DEEP / 8u), r = slot % (AMPI_K_DEEP / 8u) * 8u;
        const ampi_k_u2 v = *(const ampi_k_u2 *)&tile[AMPI_K_COLUMN(c) + r / 4u];
        const uint32_t w[2] = {v.x, v.y};
        if (r0 + r >= j->rows || c0 + c >= j->cols) continue;
        ampi_k_store_f8(w, j->dst_t, (c0 + c) * j->rows + r0 + r, ampi_k_group(r0 + r, j->rows), a.wide_t);
    }
}
static __global__ void __launch_bounds__(AMP_BLOCK)
    ampi_k_quantize_turn(const AMP_GRID_CONSTANT ampi_k_quantize_args a) {
    AMP_SHARED(ampi_k_u2, tile, (AMPI_K_COLUMN(AMPI_K_TILE - 8u) + 8u * AMPI_K_DEEP / 4u) / 2u);
    const ampi_k_scale s = ampi_k_scale_of(&a);
    uint64_t across = (a.job.cols - 1u) / AMPI_K_TILE + 1u, tiles = ((a.job.rows - 1u) / AMPI_K_DEEP + 1u) * across, i;
    uint32_t amax = 0;
    for (i = blockIdx.x; i < tiles; i += gridDim.x) {
        uint64_t r0 = i / across * AMPI_K_DEEP, c0 = i % across * AMPI_K_TILE;
        amax = ampi_k_turn_in(a, r0, c0, s, (uint32_t *)tile, amax);
        __syncthreads();
        ampi_k_turn_out(a, r0, c0, (const uint32_t *)tile);
        __syncthreads();
    }
    if (a.see) ampi_k_quantize_end(&a.job, amax);
}

#define AMPI_K_QUANTIZE(X) X(ampi_k_quantize) X(ampi_k_quantize_turn)
/* ==== >>device-step ==============================================================================================
   Inspection: sums of gradients, and the record that the last block makes of them; then updates and clipping.
   tests: tests/test_step.c, tests/test_layouts.c, tests/test_scaler.c */

/* Where a chunk of a parameter set lies. */
AMPI_K uint32_t ampi_k_chunk_size(const amp_param_entry *e, const amp_chunk *c) {
    uint64_t left = e->count - (uint64_t)c->index * AMP_CHUNK;
    return (uint32_t)(left < AMP_CHUNK ? left : AMP_CHUNK);
}

AMPI_K void *ampi_k_gradient(const amp_param_entry *e, uint32_t accum, amp_dtype *t) {
    *t = accum ? AMP_F32 : e->grad_dtype;
    return accum ? (void *)e->accum : e->grad;
}

/* Inspection. A chunk is cut into AMPI_CUTS pieces or, for small sets (`spread`), into AMP_PARTS of them: piece q has
   the parts q, q + cuts, ..., whose sums are halved by themselves. A block takes a piece at a time. */
#define AMPI_CUTS            4u
#define AMPI_CUTS_OF(spread) ((spread) ? AMP_PARTS : AMPI_CUTS)
/* Of the blocks of a launch; the last leaves zeros in `found` and `ticket` again. */
typedef struct ampi_k_inspect_state {
    ampi_k_finite_sums found;
    uint64_t serial; /* of copies of records, ever growing */
    uint32_t ticket, _pad;
} ampi_k_inspect_state;
typedef struct ampi_k_gradients { /* of one chunk */
    void *data;
    amp_dtype type;
    uint64_t base;
    uint32_t n, chunk;
    float inv;
    int wide;
} ampi_k_gradients;

/* The lanes of squares of a part of n gradients from `at` on, by one team. A whole part: all loads first. `again`, with
   `by`: seldom. */
template <int type>
AMPI_K void ampi_k_squares(const ampi_k_gradients *g, uint32_t at, uint32_t n, int again, float by, float *lane) {
    uint32_t t = threadIdx.x % AMPI_TEAM, k, q, x[8];
    float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    if (!again && g->wide && n == AMP_PART) {
        ampi_k_raw raw[AMP_PART / AMP_LANES];
        AMP_UNROLL
        for (q = 0; q < AMP_PART / AMP_LANES; q++)
            ampi_k_fetch8(&raw[q], g->data, (amp_dtype)type, g->base + at + 8u * t + AMP_LANES * q, 1);
        AMP_UNROLL
        for (q = 0; q < AMP_PART / AMP_LANES; q++) {
            ampi_k_widen8(x, &raw[q], (amp_dtype)type);
            AMP_UNROLL
            for (k = 0; k < 8u; k++) {
                float u = amp_mul(ampi_float(x[k]), g->inv);
                sum[k] = amp_add(sum[k], amp_mul(u, u));
            }
        }
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            lane[8u * t + k] = sum[k];
        return;
    }
    /* not aligned: neighbours to neighbouring threads */
    for (q = t; !again && n == AMP_PART && q < n; q += AMP_LANES) {
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            x[k] = ampi_load_pattern(g->data, (amp_dtype)type, g->base + at + q + AMPI_TEAM * k);
        AMP_UNROLL
        for (k = 0; k < 8u; k++) {
            float u = amp_mul(ampi_float(ampi_k_quick(x[k], (amp_dtype)type)), g->inv);
            sum[k] = amp_add(sum[k], amp_mul(u, u));
        }
    }
    for (q = again || n < AMP_PART ? t : n; q < n; q += AMP_LANES) {
        AMP_UNROLL
        for (k = 0; k < 8u; k++) {
            uint32_t i = q + AMPI_TEAM * k;
            float u = i < n ? amp_load(g->data, (amp_dtype)type, g->base + at + i) : 0.0f;
            u = amp_mul(amp_mul(u, g->inv), by);
            sum[k] = amp_add(sum[k], amp_mul(u, u));
        }
    }
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        lane[t + AMPI_TEAM * k] = sum[k];
}
/* The same of a part by the whole block: a lane per thread, all loads first. */
template <int type>
AMPI_K void ampi_k_squares_spread(const ampi_k_gradients *g, uint32_t at, uint32_t n, float by, float *lane) {
    uint32_t j, k, x[AMP_PART / AMP_LANES];
    for (j = threadIdx.x; j < AMP_LANES; j += AMP_BLOCK) {
        const char *from = (const char *)g->data + (g->base + at + j) * amp_dtype_size((amp_dtype)type);
        float sum = 0.0f;
        AMP_UNROLL
        for (k = 0; k < AMP_PART / AMP_LANES; k++)
            x[k] = AMP_LANES * k + j < n ? ampi_load_pattern(from, (amp_dtype)type, AMP_LANES * k) : 0u;
        AMP_UNROLL
        for (k = 0; k < AMP_PART / AMP_LANES; k++) {
            float u = amp_mul(ampi_float(ampi_k_quick(x[k], (amp_dtype)type)), g->inv);
            u = amp_mul(u, by);
            sum = amp_add(sum, amp_mul(u, u));
        }
        lane[j] = sum;
    }
}
template <int type, int spread>
AMPI_K void ampi_k_squares_any(
    const ampi_k_gradients *g, uint32_t at, uint32_t n, int again, float by, ampi_k_room *room) {
    if (spread)
        ampi_k_squares_spread<type>(g, at, n, by, room->lane);
    else
        ampi_k_squares<type>(g, at, n, again, by, room->lane + threadIdx.x / AMPI_TEAM * AMP_LANES);
}
#define AMPI_FORMAT_SQUARES(T, ...) \
    if (g->type == AMP_##T) ampi_k_squares_any<AMP_##T, spread>(g, at, n, again, by, room);
/* The sum of a part per team, times by^2, in each of its threads; spread: in those of the first team. */
template <int spread>
AMPI_K float ampi_k_part_squares(
    const ampi_k_gradients *g, uint32_t at, uint32_t n, int again, float by, ampi_k_room *room) {
    AMPI_FORMATS(AMPI_FORMAT_SQUARES)
    if (g->type == AMP_F32) ampi_k_squares_any<AMP_F32, spread>(g, at, n, again, by, room);
    __syncthreads();
    if (spread && threadIdx.x >= AMPI_TEAM) return 0.0f;
    return ampi_k_join(room->lane + threadIdx.x / AMPI_TEAM * AMP_LANES);
}
/* Which part a team has in a round: elements [at, at + n) of the chunk, n may be 0. */
template <int spread>
AMPI_K uint32_t ampi_k_part_of(const ampi_k_gradients *g, uint32_t q, uint32_t index, uint32_t *at) {
    *at = (q + AMPI_CUTS_OF(spread) * index) * AMP_PART;
    if (index >= AMP_PARTS / AMPI_CUTS_OF(spread) || *at >= g->n) return 0;
    return g->n - *at < AMP_PART ? g->n - *at : AMP_PART;
}
AMPI_K void ampi_k_part_faults(const ampi_k_gradients *g, uint32_t at, uint32_t n, ampi_k_finite_sums *found) {
    amp_faults f = amp_no_faults();
    uint32_t i;
    for (i = at + threadIdx.x % AMPI_TEAM; i < at + n; i += AMPI_TEAM) {
        float x = amp_load(g->data, g->type, g->base + i);
        amp_count_fault(&f, x, amp_mul(x, g->inv), i);
    }
    if (f.first != AMP_CHUNK) ampi_k_note(found, g->chunk, &f);
}
/* Gradients of the part, written back unscaled. */
AMPI_K void ampi_k_part_unscale(const ampi_k_gradients *g, uint32_t at, uint32_t n, ampi_k_finite_sums *found) {
    amp_faults f = amp_no_faults();
    ampi_k_ends ends = ampi_k_no_ends();
    uint32_t i, groups, x[8];
    ampi_k_meet(&ends, g->data, g->type, g->base + at);
    groups = ampi_k_groups(&ends, n);
    for (i = threadIdx.x % AMPI_TEAM; i < n - 7u * groups; i += AMPI_TEAM) { /* groups, then what is outside */
        uint32_t m = i < groups ? 8u : 1u;
        uint32_t own = at + (m > 1u ? ends.head + 8u * i : ampi_k_outside(&ends, groups, i - groups));
        ampi_k_load8(x, g->data, g->type, g->base + own, m, 1);
        ampi_k_unscale8(x, g->data, g->type, g->type, g->base + own, m, 1, own, g->inv, 1, &f);
    }
    if (f.first != AMP_CHUNK) ampi_k_note(found, g->chunk, &f);
}
/* Does a team see anything but zeros, of either sign, in its part? All its threads ask. */
AMPI_K int ampi_k_part_sees(const ampi_k_gradients *g, uint32_t at, uint32_t n) {
    uint32_t size = (uint32_t)amp_dtype_size(g->type), eights = g->wide ? n * size / 8u : 0u, any = 0, i;
    const ampi_k_u2 *bytes = (const ampi_k_u2 *)((const char *)g->data + (g->base + at) * size);
    for (i = threadIdx.x % AMPI_TEAM; i < eights; i += AMPI_TEAM)
        any |= bytes[i].x | bytes[i].y;
    for (i = eights * 8u / size + threadIdx.x % AMPI_TEAM; i < n; i += AMPI_TEAM)
        any |= ampi_load_pattern(g->data, g->type, g->base + at + i);
    AMP_UNROLL
    for (i = AMPI_TEAM / 2u; i; i /= 2u)
        any |= AMP_SHUFFLE(any, i);
    return (any & ~ampi_signs(g->type)) != 0;
}
/* A round of parts into room->part[index ...], one per team; spread: one by all of them, into *only. Seldom, those
   whose squares leave the range are added up again, unless a sum is 0 because all is, and those that are not finite
   looked through. */
template <int spread>
AMPI_K void ampi_k_inspect_round(
    const ampi_k_gradients *g, uint32_t q, uint32_t index, double *only, ampi_k_room *room, ampi_k_finite_sums *found) {
    const uint32_t team = spread ? 0 : threadIdx.x / AMPI_TEAM;
    const int own = !spread || threadIdx.x < AMPI_TEAM, first = threadIdx.x == team * AMPI_TEAM;
    double *to = spread ? only : &room->part[index + team];
    uint32_t at, n = ampi_k_part_of<spread>(g, q, index + team, &at), k, again = 0;
    float sum = ampi_k_part_squares<spread>(g, at, n, 0, 1.0f, room), by = n ? amp_squares_by(sum) : 1.0f;
    if (own && n && ampi_bits(sum) == 0 && !ampi_k_part_sees(g, at, n)) by = 1.0f;
    if (first) {
        *to = n ? amp_widen(sum) : 0.0;
        room->by[team] = by;
    }
    __syncthreads();
    for (k = 0; k < (spread ? 1u : AMPI_TEAMS); k++)
        again |= ampi_bits(room->by[k]) != 0x3f800000u;
    if (!again) return;
    by = room->by[team];
    sum = ampi_k_part_squares<spread>(g, at, n, 1, by, room);
    if (first && n) {
        *to = amp_squares_sum(sum, by);
        room->by[team] = sum;
    }
    __syncthreads();
    if (!amp_is_finite(room->by[team]) && own) ampi_k_part_faults(g, at, n, found);
    __syncthreads();
}
template <int spread>
AMPI_K void ampi_k_inspect_piece(
    const amp_sum_job *job, const ampi_k_gradients *g, uint32_t q, ampi_k_room *room, ampi_k_finite_sums *found) {
    const uint32_t parts = AMP_PARTS / AMPI_CUTS_OF(spread);
    double *sum = &job->table.partials[g->chunk].sum[q];
    uint32_t index, at, n;
    if (q * AMP_PART >= g->n) { /* all threads alike */
        if (threadIdx.x == 0) *sum = 0.0;
        return;
    }
    for (index = 0; index < parts; index += AMPI_TEAMS)
        ampi_k_inspect_round<spread>(g, q, index, sum, room, found);
    if (!spread && threadIdx.x == 0) *sum = ampi_k_halve8(room->part);
    for (index = threadIdx.x / AMPI_TEAM; job->write && index < parts; index += AMPI_TEAMS) {
        n = ampi_k_part_of<spread>(g, q, index, &at);
        if (n) ampi_k_part_unscale(g, at, n, found);
    }
}
static_assert(AMP_PARTS == 8u * AMPI_CUTS, "a piece has one part or eight");
/* Where the gradients of a chunk lie; g->inv is left. */
AMPI_K void ampi_k_gradients_of(const amp_sum_job *job, uint32_t chunk, amp_chunk c, ampi_k_gradients *g) {
    const amp_param_entry *e = &job->table.entries[c.param];
    g->chunk = chunk;
    g->data = ampi_k_gradient(e, job->accum, &g->type);
    g->base = (uint64_t)c.index * AMP_CHUNK;
    g->n = ampi_k_chunk_size(e, &c);
    g->wide = ampi_k_aligned(g->data, g->type);
}
/* A block's pieces, if there are any. c: the chunk of the first; gives amp_sum_factor. */
template <int spread>
AMPI_K float ampi_k_inspect_pieces(
    const amp_sum_job *job, amp_chunk c, float scale, uint32_t divide, ampi_k_room *room, ampi_k_finite_sums *found) {
    const uint32_t cuts = AMPI_CUTS_OF(spread);
    uint64_t piece = blockIdx.x, pieces = (uint64_t)job->table.n_chunks * cuts;
    ampi_k_gradients g;
    g.inv = amp_factor_of(scale, divide);
    while (piece < pieces) {
        ampi_k_gradients_of(job, (uint32_t)(piece / cuts), c, &g);
        ampi_k_inspect_piece<spread>(job, &g, (uint32_t)piece % cuts, room, found);
        piece += gridDim.x;
        if (piece < pieces) c = job->table.chunks[piece / cuts];
    }
    return g.inv;
}

/* The sums of chunks that were cut into AMP_PARTS: a thread has eight of them, four threads a chunk. */
AMPI_K void ampi_k_inspect_chunks(const amp_partial *p, uint32_t n, double *chunk) {
    uint32_t i = threadIdx.x, k;
    for (; i - threadIdx.x % AMPI_TEAM < AMPI_CUTS * n; i += AMP_BLOCK) { /* whole teams */
        double x[8], sum;
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            x[k] = i < AMPI_CUTS * n ? AMP_LOAD_L2(&p[i / AMPI_CUTS].sum[i % AMPI_CUTS + AMPI_CUTS * k]) : 0.0;
        sum = ampi_k_halve8(x);
        sum = amp_dadd(sum, AMP_SHUFFLE(sum, 2));
        sum = amp_dadd(sum, AMP_SHUFFLE(sum, 1));
        if (i % AMPI_CUTS == 0) chunk[i / AMPI_CUTS] = sum;
    }
}
/* All pieces to the totals, by one block; valid in the first team. */
AMPI_K double ampi_k_inspect_sum(const amp_sum_job *job, uint32_t cuts, ampi_k_room *room) {
    const amp_partial *p = job->table.partials;
    uint32_t n = job->table.n_chunks, i, k, c;
    if (cuts == AMP_PARTS) ampi_k_inspect_chunks(p, n, room->chunk);
    for (i = threadIdx.x; cuts == AMPI_CUTS && i < AMP_LANES; i += AMP_BLOCK) {
        double lane = 0.0, x[AMPI_CUTS];
        for (c = i; c < n; c += AMP_LANES) {
            AMP_UNROLL
            for (k = 0; k < AMPI_CUTS; k++)
                x[k] = AMP_LOAD_L2(&p[c].sum[k]);
            lane = amp_dadd(lane, amp_dadd(amp_dadd(x[0], x[2]), amp_dadd(x[1], x[3])));
        }
        room->chunk[i] = lane;
    }
    __syncthreads();
    return threadIdx.x < AMPI_TEAM ? ampi_k_join(room->chunk, n) : 0.0;
}
AMPI_K void ampi_k_inspect_found(const amp_sum_job *job, const ampi_k_finite_sums *found, amp_totals *totals) {
    uint64_t key = ~found->first;
    totals->nan = found->nan;
    totals->inf = found->inf;
    totals->overflow = found->overflow;
    totals->first_param = totals->_pad = 0;
    totals->first_index = 0;
    if (!found->first) return;
    totals->first_param = job->table.chunks[key >> 16].param;
    totals->first_index = (uint64_t)job->table.chunks[key >> 16].index * AMP_CHUNK + (key & 0xffffu);
}

/* What the block that ends an inspection works on, in shared memory: each word is read and written once, all at a time,
   instead of one after the other by a single thread. */
typedef struct ampi_k_ending {
    amp_step_record record;
    amp_scaler_state scaler;
    amp_rates rates[AMP_GROUPS];
    int finite[AMP_GROUPS]; /* the learning rates are */
    uint64_t serial, next;  /* next: steps, if this one is taken */
    int stepped;
} ampi_k_ending;
static_assert(offsetof(ampi_k_ending, scaler) == sizeof(amp_step_record), "copied as one piece, by words");
#define AMPI_K_RECORD (uint32_t)(sizeof(amp_step_record) / 4u) /* words, and then those of the scaler */
#define AMPI_K_ENDING (AMPI_K_RECORD + (uint32_t)(sizeof(amp_scaler_state) / 4u))
#define AMPI_K_RATES  (uint32_t)(offsetof(amp_step_record, rate) / 4u) /* the first word of the rates */
/* By every block, as long as it waits for other loads: any may be the one that ends the inspection, and until then
   nobody writes. Complete after a barrier. */
AMPI_K void ampi_k_ending_begin(const amp_inspect_job *job, ampi_k_ending *e, const ampi_k_inspect_state *state) {
    uint32_t words = job->scaler ? AMPI_K_ENDING : AMPI_K_RECORD, i;
    for (i = threadIdx.x; i < words; i += AMP_BLOCK) {
        const ampi_k_u32 *from = (const ampi_k_u32 *)job->record + i;
        if (i >= AMPI_K_RECORD) from = (const ampi_k_u32 *)job->scaler + (i - AMPI_K_RECORD);
        ((ampi_k_u32 *)e)[i] = *from;
    }
    if (threadIdx.x == AMP_BLOCK - 1u) e->serial = state->serial + 1u;
}
/* Whether the learning rates are finite, a group each by the last threads, while the first one takes its ticket. */
AMPI_K void ampi_k_ending_finite(const amp_inspect_job *job, ampi_k_ending *e) {
    uint32_t group = AMP_BLOCK - 1u - threadIdx.x;
    if (group >= AMP_GROUPS || job->purpose != AMP_FOR_STEP) return;
    e->finite[group] = ampi_rate_is_finite(&job->group[group]);
    if (group == 0) e->next = e->record.steps + 1u;
}
/* The rates of the step that may be taken, by the same threads: in the block that ends the inspection and in no other,
   for a GPU with few units for doubles is busy with them for a while. Meanwhile others join sums and decide. */
AMPI_K void ampi_k_ending_rates(const amp_inspect_job *job, ampi_k_ending *e) {
    uint32_t group = AMP_BLOCK - 1u - threadIdx.x;
    if (group >= AMP_GROUPS || job->purpose != AMP_FOR_STEP) return;
    amp_rates_of(&e->rates[group], &job->group[group], e->next);
}
/* The record and the scaler to where they came from, and the record to the host, which can read its copy without
   waiting: see amp_step_mirror. */
AMPI_K void ampi_k_ending_end(const amp_inspect_job *job, const ampi_k_ending *e, ampi_k_inspect_state *state) {
    uint32_t words = job->scaler ? AMPI_K_ENDING : AMPI_K_RECORD, i;
    for (i = threadIdx.x; i < words; i += AMP_BLOCK) {
        uint32_t word = ((const ampi_k_u32 *)e)[i];
        if (e->stepped && i - AMPI_K_RATES < AMPI_K_RECORD - AMPI_K_RATES)
            word = ((const ampi_k_u32 *)e->rates)[i - AMPI_K_RATES];
        if (i >= AMPI_K_RECORD) {
            ((ampi_k_u32 *)job->scaler)[i - AMPI_K_RECORD] = word;
            continue;
        }
        ((ampi_k_u32 *)job->record)[i] = word;
        if (job->mirror) *(volatile uint64_t *)&job->mirror->word[i] = e->serial << 32 | word;
    }
    if (threadIdx.x == 0) state->serial = e->serial;
}
/* One block ends the inspection: its first thread finds the norm, its last ones meanwhile the rates, and one of others
   the rest of the record. e: complete, but for its rates; totals: valid in the first and the last of these, totals->sum
   in the first; factor: see amp_sum_factor. */
AMPI_K void ampi_k_inspect_end(
    const amp_inspect_job *job, const amp_totals *totals, float factor, ampi_k_ending *e, ampi_k_inspect_state *state) {
    uint32_t group;
    ampi_k_ending_rates(job, e);
    if (threadIdx.x == 0) ampi_conclude_norm(job, &e->record, totals);
    if (threadIdx.x == AMP_BLOCK / 2u) {
        ampi_ending at = {&e->record, &e->scaler, factor, 1};
        for (group = 0; job->purpose == AMP_FOR_STEP && group < AMP_GROUPS; group++)
            at.finite &= e->finite[group];
        e->stepped = ampi_conclude_record(job, &at, totals);
    }
    __syncthreads();
    ampi_k_ending_end(job, e, state);
}

/* All pieces, then the last block to finish joins them: 1 in that block, whose first thread holds the sum of the
   totals, and all threads the rest. The ticket wraps to 0. *factor is amp_sum_factor; e is made beside a record. */
AMPI_K int ampi_k_sums(const amp_inspect_job *whole, uint32_t cuts, float *factor, ampi_k_inspect_state *state,
    ampi_k_ending *e, amp_totals *totals) {
    AMP_SHARED(ampi_k_room, room, 1);
    AMP_SHARED(ampi_k_finite_sums, found, 1);
    AMP_SHARED(uint32_t, last, 1);
    const amp_sum_job *job = &whole->sum;
    float scale = amp_sum_scale(job);
    amp_chunk c = {0, 0};
    if (job->table.n_chunks) c = job->table.chunks[cuts == AMP_PARTS ? blockIdx.x / AMP_PARTS : blockIdx.x / AMPI_CUTS];
    uint32_t divide = amp_sum_divide(job);
    if (whole->record) ampi_k_ending_begin(whole, e, state); /* these loads are under way side by side */
    if (cuts == AMP_PARTS)
        *factor = ampi_k_inspect_pieces<1>(job, c, scale, divide, room, &state->found);
    else
        *factor = ampi_k_inspect_pieces<0>(job, c, scale, divide, room, &state->found);
    __syncthreads();
    if (whole->record) ampi_k_ending_finite(whole, e);
    if (threadIdx.x == 0) {
        AMP_FENCE();
        last[0] = atomicInc((unsigned *)&state->ticket, gridDim.x - 1u) == gridDim.x - 1u;
        AMP_FENCE();
    }
    __syncthreads();
    if (!last[0]) return 0; /* the first thread's fence after the ticket holds for all, by the barrier */
    if (threadIdx.x >= AMP_BLOCK - 4u) {
        uint32_t i = threadIdx.x - (AMP_BLOCK - 4u);
        ((unsigned long long *)found)[i] = AMP_LOAD_L2((unsigned long long *)&state->found + i);
    }
    totals->sum = ampi_k_inspect_sum(job, cuts, room);
    ampi_k_inspect_found(job, found, totals);
    if (found->first && threadIdx.x == 0)
        state->found.nan = state->found.inf = state->found.overflow = state->found.first = 0;
    return 1;
}
/* Without a record: only the totals. */
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_inspect(const AMP_GRID_CONSTANT amp_inspect_job job, uint32_t cuts, ampi_k_inspect_state *state) {
    AMP_SHARED(ampi_k_ending, end, 1);
    float factor;
    amp_totals totals;
    AMP_LET_FOLLOW();
    if (!ampi_k_sums(&job, cuts, &factor, state, end, &totals)) return;
    if (job.record)
        ampi_k_inspect_end(&job, &totals, factor, end, state);
    else if (threadIdx.x == 0)
        *job.sum.table.totals = totals;
}
static __global__ void __launch_bounds__(AMP_BLOCK)
    ampi_k_conclude(const AMP_GRID_CONSTANT amp_inspect_job job, ampi_k_inspect_state *state) {
    AMP_SHARED(ampi_k_ending, end, 1); /* one block */
    AMP_LET_FOLLOW();
    ampi_k_ending_begin(&job, end, state);
    __syncthreads();
    ampi_k_ending_finite(&job, end);
    __syncthreads();
    ampi_k_inspect_end(&job, job.sum.table.totals, amp_sum_factor(&job.sum), end, state);
}

#define AMPI_K_INSPECT(X) X(ampi_k_inspect) X(ampi_k_conclude)
/* ---- update: elementwise, so a chunk may be cut into pieces for more blocks, without changing a bit; then
   accumulation and clipping   tests: tests/test_step.c, tests/test_layouts.c, tests/test_report.c ---- */

/* Elements of a chunk that a block does at a time: few enough to share out evenly, enough to be worth a start. */
#define AMPI_PIECE 16384u

typedef struct ampi_k_piece {
    uint32_t param, n;
    uint64_t base;
} ampi_k_piece; /* elements [base, base + n) of a parameter; n may be 0 */

/* Pieces of a table whose chunks are cut into 2^cuts are taken from the end: of the gradients that an inspection has
   just read, the last ones are still in the cache. Number `back` from the front, in chunk c of a parameter of so many
   elements. */
AMPI_K uint64_t ampi_k_from_end(const amp_param_table *t, uint32_t cuts, uint64_t i) {
    return ((uint64_t)t->n_chunks << cuts) - 1u - i;
}
AMPI_K ampi_k_piece ampi_k_piece_in(amp_chunk c, uint32_t cuts, uint64_t back, uint64_t count) {
    uint64_t size = AMP_CHUNK >> cuts, begin = (uint64_t)c.index * AMP_CHUNK + (back & ((1u << cuts) - 1u)) * size;
    ampi_k_piece p;
    p.param = c.param;
    p.base = begin;
    if (begin >= count)
        p.n = 0;
    else
        p.n = (uint32_t)(count - begin < size ? count - begin : size);
    return p;
}
AMPI_K ampi_k_piece ampi_k_piece_of(const amp_param_table *t, uint32_t cuts, uint64_t i) {
    uint64_t back = ampi_k_from_end(t, cuts, i);
    amp_chunk c = t->chunks[back >> cuts];
    return ampi_k_piece_in(c, cuts, back, t->entries[c.param].count);
}

/* What one piece's update needs to know of its parameter. kind: an amp_update_kind, or AMPI_K_APPLY, whose
   "gradients" are updates made elsewhere. */
#define AMPI_K_APPLY (-1)
#define AMPI_STORED  (1u + AMP_MOMENTS) /* kinds of numbers that are drawn: amp_stored */
static_assert(AMP_MOMENTS == 2, "here each moment array is named: where it is loaded, stored and aligned");
typedef struct ampi_k_updating {
    amp_param_entry e;
    void *grad, *weights;
    float *zero; /* accumulators to be emptied, or NULL */
    amp_dtype grad_type, weight_type;
    amp_draw draw;
    const ampi_k_u4 *keys; /* AMPI_KEYS for each amp_stored */
    int stochastic, moments, pair, drawn;
    amp_dtype low_type;
    int coded;     /* moments in 8 bits; `moments` are the others */
    int brief;     /* Adam: ampi_k_adam_brief may; SGD: this is the parameter's first step */
    int grad_wide; /* gradients are aligned where the other arrays are */
} ampi_k_updating;

/* Lost updates of a piece: what one thread finds. */
typedef struct ampi_k_tally {
    amp_spacing spacing;
    uint32_t every, counts; /* updates in the low half, lost ones in the high one: a register less */
    float ratio;            /* without spacing.rest */
} ampi_k_tally;
static_assert(AMP_CHUNK / AMP_BLOCK < 65536u, "what a thread counts of a piece, in 16 bits");
AMPI_K ampi_k_tally ampi_k_tally_begin(const amp_param_entry *e, uint32_t every) {
    ampi_k_tally t = {amp_spacing_of(e->layout, e->model_dtype), every, 0, 0.0f};
    return t;
}
/* The update of a weight from `old` to w, before it is stored: returns 1 if it is one, and it has to be looked at again
   when the weight was stored. */
AMPI_K uint32_t ampi_k_tally_update(ampi_k_tally *t, float update, uint32_t old, uint32_t w) {
    uint32_t size = ampi_bits(update) & 0x7fffffffu, is = size - 1u < 0x7f800000u;
    t->ratio = ampi_larger(t->ratio, ampi_scalar_in_spacings(ampi_float(size), ampi_float(old), t->spacing.most));
    t->counts += is;
    return is & (uint32_t)!amp_is_nan(ampi_float(w));
}
/* By the whole block. */
AMPI_K void ampi_k_tally_end(const ampi_k_tally *t, amp_update_count *to) {
    AMP_SHARED(uint32_t, sum, 3); /* updates, lost, ratio */
    if (threadIdx.x < 3u) sum[threadIdx.x] = 0;
    __syncthreads();
    if (t->counts) {
        atomicAdd(&sum[0], t->counts & 0xffffu);
        atomicAdd(&sum[1], t->counts >> 16);
        atomicMax(&sum[2], ampi_bits(amp_mul(t->ratio, t->spacing.rest)));
    }
    __syncthreads();
    if (threadIdx.x == 0 && sum[0]) {
        ampi_k_add64(&to->updates, sum[0]);
        ampi_k_add64(&to->lost, sum[1]);
        atomicMax((unsigned *)&to->ratio, sum[2]);
    }
    __syncthreads();
}

/* An update works on eight elements at a time, on four where moments have 8 bits, or on one: at the ends of arrays, and
   where addresses are odd. These give all of them the same names. Four are the first half of eight, whose other half is
   0, for compilers to leave out. */
typedef struct ampi_k_raw4 { ampi_k_raw eight; } ampi_k_raw4;
template <int N> struct ampi_k_raw_of { typedef ampi_k_raw type; };
template <> struct ampi_k_raw_of<4> { typedef ampi_k_raw4 type; };
template <> struct ampi_k_raw_of<1> { typedef uint32_t type; };
AMPI_K void ampi_k_fetch(ampi_k_raw *r, const void *p, amp_dtype t, size_t i, int wide) {
    ampi_k_fetch8(r, p, t, i, wide);
}
AMPI_K void ampi_k_fetch(ampi_k_raw4 *r, const void *p, amp_dtype t, size_t i, int wide) {
    const char *at = (const char *)p + amp_dtype_size(t) * i;
    ampi_k_raw *eight = &r->eight;
    memset(r, 0, sizeof *r);
    if (!wide) {
        ampi_k_gather8(eight, p, t, i, 0, 4);
    } else if (t == AMP_F32) {
        eight->a = ampi_k_ld4((const ampi_k_u4 *)at, wide);
    } else if (amp_dtype_size(t) == 2u) {
        const ampi_k_u2 a = *(const ampi_k_u2 *)at;
        eight->a.x = a.x;
        eight->a.y = a.y;
    } else {
        eight->a.x = *(const ampi_k_u32 *)at;
    }
}
AMPI_K void ampi_k_fetch(uint32_t *r, const void *p, amp_dtype t, size_t i, int) { *r = ampi_load_pattern(p, t, i); }
AMPI_K void ampi_k_first_half(uint32_t (&x)[4], const uint32_t (&y)[8]) {
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 4u; k++)
        x[k] = y[k];
}
AMPI_K void ampi_k_patterns(uint32_t (&x)[8], const ampi_k_raw *r, amp_dtype t) { ampi_k_patterns8(x, r, t); }
AMPI_K void ampi_k_patterns(uint32_t (&x)[4], const ampi_k_raw4 *r, amp_dtype t) {
    uint32_t y[8];
    ampi_k_patterns8(y, &r->eight, t);
    ampi_k_first_half(x, y);
}
AMPI_K void ampi_k_patterns(uint32_t (&x)[1], const uint32_t *r, amp_dtype) { x[0] = *r; }
/* To float bits, but for NaN: see ampi_k_about8. */
AMPI_K void ampi_k_widen(uint32_t (&x)[8], const ampi_k_raw *r, amp_dtype t) { ampi_k_about8(x, r, t); }
AMPI_K void ampi_k_widen(uint32_t (&x)[4], const ampi_k_raw4 *r, amp_dtype t) {
    uint32_t y[8];
    ampi_k_widen(y, &r->eight, t);
    ampi_k_first_half(x, y);
}
AMPI_K void ampi_k_widen(uint32_t (&x)[1], const uint32_t *r, amp_dtype t) { x[0] = ampi_decode_any(*r, t); }
AMPI_K void ampi_k_store(const uint32_t (&x)[8], void *p, amp_dtype t, size_t i, int wide) {
    ampi_k_store8(x, p, t, i, 8, wide);
}
AMPI_K void ampi_k_store(const uint32_t (&x)[4], void *p, amp_dtype t, size_t i, int wide) {
    char *at = (char *)p + amp_dtype_size(t) * i;
    if (t == AMP_F32) {
        ampi_k_put4(at, x, wide);
    } else if (amp_dtype_size(t) == 2u) {
        ampi_k_u2 a = {x[0] | x[1] << 16, x[2] | x[3] << 16};
        *(ampi_k_u2 *)at = a;
    } else {
        *(ampi_k_u32 *)at = x[0] | x[1] << 8 | x[2] << 16 | x[3] << 24;
    }
}
AMPI_K void ampi_k_store(const uint32_t (&x)[1], void *p, amp_dtype t, size_t i, int) {
    ampi_store_pattern(p, t, i, x[0]);
}

/* Stores n float bits rounded to 16 bits, which are left in x; 1: an Inf or a NaN is among them. */
AMPI_K void ampi_k_short_of(
    uint32_t w[4], const uint32_t x[8], const uint32_t r[8], amp_dtype t, amp_rounding how, uint32_t n) {
    const uint32_t none[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    if (!(how == AMP_NEAREST ? ampi_k_quick_words(w, x, t) : ampi_k_drawn_words(w, x, t, r, n)))
        ampi_k_exact_words(w, x, t, how, how == AMP_NEAREST ? none : r, 0);
}
AMPI_K uint32_t ampi_k_store_short(
    uint32_t (&x)[8], const uint32_t r[8], void *p, amp_dtype t, uint64_t at, amp_rounding how, int wide) {
    uint32_t w[4], k;
    ampi_k_short_of(w, x, r, t, how, 8);
    ampi_k_put4((char *)p + 2u * at, w, wide);
    AMP_UNROLL
    for (k = 0; k < 4u; k++)
        ampi_k_unpack2(x + 2u * k, w[k]);
    return ampi_k_odd(w[0], w[1], t) | ampi_k_odd(w[2], w[3], t);
}
AMPI_K uint32_t ampi_k_store_drawn(
    uint32_t (&x)[8], const ampi_k_updating *p, amp_stored what, void *to, amp_dtype t, uint64_t at) {
    const int wide = what == AMP_STORED_MODEL ? 1 : AMPI_K_STREAM;
    uint32_t r[8];
    ampi_k_draw8(r, p->keys + AMPI_KEYS * (uint32_t)what, p->draw.stream, at);
    if (t == AMP_BF16) return ampi_k_store_short(x, r, to, AMP_BF16, at, AMP_STOCHASTIC, wide);
    return ampi_k_store_short(x, r, to, AMP_F16, at, AMP_STOCHASTIC, wide);
}
AMPI_K uint32_t ampi_k_store_short4(
    uint32_t (&x)[4], const uint32_t r[8], void *p, amp_dtype t, uint64_t at, amp_rounding how) {
    const uint32_t y[8] = {x[0], x[1], x[2], x[3], 0, 0, 0, 0};
    uint32_t w[4];
    ampi_k_u2 two;
    ampi_k_short_of(w, y, r, t, how, 4);
    two.x = w[0];
    two.y = w[1];
    *(ampi_k_u2 *)((char *)p + 2u * at) = two;
    ampi_k_unpack2(x, two.x);
    ampi_k_unpack2(x + 2, two.y);
    return ampi_k_odd(two.x, two.y, t);
}
AMPI_K uint32_t ampi_k_store_drawn(
    uint32_t (&x)[4], const ampi_k_updating *p, amp_stored what, void *to, amp_dtype t, uint64_t at) {
    uint32_t r[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ampi_k_draw4(r, p->keys + AMPI_KEYS * (uint32_t)what, p->draw.stream, at);
    if (t == AMP_BF16) return ampi_k_store_short4(x, r, to, AMP_BF16, at, AMP_STOCHASTIC);
    return ampi_k_store_short4(x, r, to, AMP_F16, at, AMP_STOCHASTIC);
}
AMPI_K uint32_t ampi_k_store_drawn(
    uint32_t (&x)[1], const ampi_k_updating *p, amp_stored what, void *to, amp_dtype t, uint64_t at) {
    amp_draw d = amp_draw_for(p->draw, what);
    x[0] = ampi_encode_any(x[0], t, AMP_STOCHASTIC, amp_random(d.seed, d.stream, at), 0);
    ampi_store_pattern(to, t, at, x[0]);
    return ampi_k_odd(x[0], 0, t);
}
AMPI_K uint32_t ampi_k_store_nearest(uint32_t (&x)[8], void *to, amp_dtype t, uint64_t at) {
    if (t == AMP_BF16) return ampi_k_store_short(x, NULL, to, AMP_BF16, at, AMP_NEAREST, 1);
    return ampi_k_store_short(x, NULL, to, AMP_F16, at, AMP_NEAREST, 1);
}
AMPI_K uint32_t ampi_k_store_nearest(uint32_t (&x)[4], void *to, amp_dtype t, uint64_t at) {
    if (t == AMP_BF16) return ampi_k_store_short4(x, NULL, to, AMP_BF16, at, AMP_NEAREST);
    return ampi_k_store_short4(x, NULL, to, AMP_F16, at, AMP_NEAREST);
}
AMPI_K uint32_t ampi_k_store_nearest(uint32_t (&x)[1], void *to, amp_dtype t, uint64_t at) {
    x[0] = ampi_encode_any(x[0], t, AMP_NEAREST, 0, 0);
    ampi_store_pattern(to, t, at, x[0]);
    return ampi_k_odd(x[0], 0, t);
}

/* Float bits of a weight, a momentum, a second moment and a gradient; for lost updates, the weight as it is kept.
   inf: 1, a second moment is Inf. */
template <int N> struct ampi_k_working { uint32_t g[N], w[N], b[N], v[N], kept[N], inf; };

/* Pairs of a model copy and a low part, to weights and back: for eight at once layout and format are known. */
#define AMPI_K_PAIRS(X) X(SPLIT, F16) X(SPLIT, BF16) X(SPLIT8, F16) X(SPLIT8, BF16) X(KAHAN, BF16)
template <int N, class raw>
AMPI_K void ampi_k_unpair(ampi_k_working<N> *x, const raw *model, const raw *rest, amp_master layout, amp_dtype t) {
    uint32_t copy[N], low[N], k;
    ampi_k_patterns(copy, model, AMP_F16);
    ampi_k_patterns(low, rest, ampi_low_type(layout));
    AMP_UNROLL
    for (k = 0; k < N; k++) {
        x->kept[k] = copy[k] | low[k] << 16;
        x->w[k] = ampi_bits(amp_pair_unpack(x->kept[k], layout, t));
    }
}

/* Four of SPLIT or SPLIT8 in BF16, the quick way; 0: it is wrong, for Inf or NaN is among them, or a zero of SPLIT8
   whose remainder takes it past zero. The others have no quick way. */
AMPI_K int ampi_k_unpair_brief(
    ampi_k_working<4> *x, const ampi_k_raw4 *model, const ampi_k_raw4 *rest, const amp_param_entry *e) {
    const uint32_t by = e->layout == AMP_MASTER_SPLIT8 ? 24u : 16u;
    uint32_t copy[4], low[4], k, past = 0;
    if (e->model_dtype != AMP_BF16 || e->layout == AMP_MASTER_KAHAN) return 0;
    ampi_k_patterns(copy, model, AMP_BF16);
    ampi_k_patterns(low, rest, ampi_low_type(e->layout));
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        const uint32_t high = copy[k] << 16;
        x->kept[k] = copy[k] | low[k] << 16;
        x->w[k] = high + (uint32_t)((int32_t)(low[k] << by) >> 16);
        past |= high ^ x->w[k];
    }
    if (e->layout == AMP_MASTER_SPLIT) past = 0;
    return !(past >> 31) && !ampi_k_odd(model->eight.a.x, model->eight.a.y, AMP_BF16);
}
template <int N, class raw>
AMPI_K int ampi_k_unpair_brief(ampi_k_working<N> *, const raw *, const raw *, const amp_param_entry *) {
    return 0;
}

/* All loads before the first use. Weights and moments are streamed: until the next step nobody wants them. */
template <int N> struct ampi_k_raws { typename ampi_k_raw_of<N>::type g, w, low, b, v; };
template <int N> AMPI_K void ampi_k_update_fetch(ampi_k_raws<N> *r, const ampi_k_updating *p, uint64_t at) {
    const amp_param_entry *e = &p->e;
#if !defined(__CUDACC__)
    memset(r, 0, sizeof *r);
#endif
    ampi_k_fetch(&r->g, p->grad, p->grad_type, at, p->grad_wide);
    ampi_k_fetch(&r->w, p->weights, p->weight_type, at, AMPI_K_STREAM);
    if (p->pair) ampi_k_fetch(&r->low, e->low, p->low_type, at, AMPI_K_STREAM);
    if (p->moments > 0) ampi_k_fetch(&r->b, e->moment[0], e->moment_dtype, at, AMPI_K_STREAM);
    if (p->moments > 1) ampi_k_fetch(&r->v, e->moment[1], e->moment_dtype, at, AMPI_K_STREAM);
}
template <int N>
AMPI_K void ampi_k_update_widen(ampi_k_working<N> *x, const ampi_k_raws<N> *r, const ampi_k_updating *p) {
    const amp_param_entry *e = &p->e;
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < N; k++)
        x->b[k] = x->v[k] = 0;
    x->inf = 0;
    if (p->pair) {
#define AMPI_K_UNPAIR(L, T) \
    if (e->layout == AMP_MASTER_##L && e->model_dtype == AMP_##T) \
        ampi_k_unpair(x, &r->w, &r->low, AMP_MASTER_##L, AMP_##T);
        if (!ampi_k_unpair_brief(x, &r->w, &r->low, e)) {
            AMPI_K_PAIRS(AMPI_K_UNPAIR)
        }
#undef AMPI_K_UNPAIR
    } else {
        ampi_k_patterns(x->kept, &r->w, p->weight_type);
        ampi_k_widen(x->w, &r->w, p->weight_type);
    }
    if (p->moments > 0) ampi_k_widen(x->b, &r->b, e->moment_dtype == AMP_F32 ? AMP_F32 : AMP_BF16);
    if (p->moments > 1) ampi_k_widen(x->v, &r->v, e->moment_dtype == AMP_F32 ? AMP_F32 : AMP_BF16);
    ampi_k_widen(x->g, &r->g, p->grad_type);
}
template <int N> AMPI_K void ampi_k_update_load(ampi_k_working<N> *x, const ampi_k_updating *p, uint64_t at) {
    ampi_k_raws<N> r;
    ampi_k_update_fetch(&r, p, at);
    ampi_k_update_widen(x, &r, p);
}
template <int N> AMPI_K void ampi_k_update_moment(uint32_t (&x)[N], const ampi_k_updating *p, uint32_t i, uint64_t at) {
    const amp_param_entry *e = &p->e;
    if (e->moment_dtype == AMP_F32)
        ampi_k_store(x, e->moment[i], AMP_F32, at, AMPI_K_STREAM);
    else
        (void)ampi_k_store_drawn(x, p, (amp_stored)(AMP_STORED_MOMENT_1 + i), e->moment[i], AMP_BF16, at);
}
AMPI_K void ampi_k_update_words(uint32_t (&r)[8], const ampi_k_updating *p, uint64_t at) { /* of the model copy */
    ampi_k_draw8(r, p->keys, p->draw.stream, at);
}
AMPI_K void ampi_k_update_words(uint32_t (&r)[4], const ampi_k_updating *p, uint64_t at) {
    ampi_k_draw4(r, p->keys, p->draw.stream, at);
}
AMPI_K void ampi_k_update_words(uint32_t (&r)[1], const ampi_k_updating *p, uint64_t at) {
    r[0] = amp_random(p->draw.seed, p->draw.stream, at);
}
AMPI_K uint32_t ampi_k_low_bytes(const uint32_t x[4]) {
    const uint32_t ab = __byte_perm(x[0], x[1], 0x0040u), cd = __byte_perm(x[2], x[3], 0x0040u);
    return __byte_perm(ab, cd, 0x5410u);
}
/* Four in BF16, the quick way; 0: nothing was done, for Inf, NaN or such a zero is among them, or a tie that rounds
   down: else SPLIT's remainder is the lower half of w. SPLIT8 rounds as ampi_split8_round does, with the sign. */
AMPI_K int ampi_k_split4(const uint32_t (&w)[4], const amp_param_entry *e, uint64_t at) {
    const ampi_k_u2 copy = {AMP_TO_BF16S(w[0], w[1]), AMP_TO_BF16S(w[2], w[3])};
    const ampi_k_u2 low = {__byte_perm(w[0], w[1], 0x5410u), __byte_perm(w[2], w[3], 0x5410u)};
    const uint32_t x = low.x ^ 0x80008000u, y = low.y ^ 0x80008000u;
    const uint32_t tie = (((x - 0x00010001u) & ~x) | ((y - 0x00010001u) & ~y)) & 0x80008000u;
    if (tie | ampi_k_odd(copy.x, copy.y, AMP_BF16)) return 0;
    *(ampi_k_u2 *)((char *)e->low + 2u * at) = low;
    *(ampi_k_u2 *)((char *)e->model + 2u * at) = copy;
    return 1;
}
AMPI_K int ampi_k_split8_4(const uint32_t (&w)[4], const amp_param_entry *e, uint64_t at) {
    uint32_t code[4], high[4], k, past = 0;
    ampi_k_u2 copy;
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        code[k] = w[k] + 0x7fu + (w[k] >> 8 & 1u);
        high[k] = code[k] + 0x8000u;
        past |= high[k] ^ w[k];
        code[k] >>= 8;
    }
    copy.x = __byte_perm(high[0], high[1], 0x7632u);
    copy.y = __byte_perm(high[2], high[3], 0x7632u);
    if (past >> 31 | ampi_k_odd(copy.x, copy.y, AMP_BF16)) return 0;
    *(ampi_k_u32 *)((char *)e->low + at) = ampi_k_low_bytes(code);
    *(ampi_k_u2 *)((char *)e->model + 2u * at) = copy;
    return 1;
}
AMPI_K int ampi_k_pair_brief(const uint32_t (&w)[4], const ampi_k_updating *p, uint64_t at) {
    if (p->e.model_dtype != AMP_BF16) return 0;
    if (p->e.layout == AMP_MASTER_SPLIT) return ampi_k_split4(w, &p->e, at);
    return p->e.layout == AMP_MASTER_SPLIT8 && !p->stochastic && ampi_k_split8_4(w, &p->e, at);
}
template <int N> AMPI_K int ampi_k_pair_brief(const uint32_t (&)[N], const ampi_k_updating *, uint64_t) { return 0; }
/* Model copy and low part of SPLIT, SPLIT8 or KAHAN; as below. */
template <int counted, int N>
AMPI_K uint32_t ampi_k_pair(
    uint32_t (&w)[N], const ampi_k_updating *p, uint64_t at, const uint32_t (&r)[N], amp_master layout, amp_dtype t) {
    const amp_rounding how = p->stochastic ? AMP_STOCHASTIC : AMP_NEAREST;
    uint32_t k, copy[N], low[N], overflow = 0;
    AMP_UNROLL
    for (k = 0; k < N; k++) {
        uint32_t both = amp_pair_pack(ampi_float(w[k]), layout, t, how, r[k]);
        copy[k] = both & 0xffffu;
        low[k] = both >> 16;
        overflow |= amp_copy_overflow(copy[k], ampi_float(w[k]), t);
        if (counted) w[k] = both;
    }
    ampi_k_store(low, p->e.low, ampi_low_type(layout), at, AMPI_K_STREAM);
    ampi_k_store(copy, p->e.model, AMP_F16, at, 1);
    return overflow;
}
template <int counted, int N>
AMPI_K uint32_t ampi_k_update_pair(uint32_t (&w)[N], const ampi_k_updating *p, uint64_t at) {
    uint32_t r[N], k;
    if (!counted && ampi_k_pair_brief(w, p, at)) return 0;
    AMP_UNROLL
    for (k = 0; k < N; k++)
        r[k] = 0;
    if (p->stochastic) ampi_k_update_words(r, p, at);
#define AMPI_K_PAIR(L, T) \
    if (p->e.layout == AMP_MASTER_##L && p->e.model_dtype == AMP_##T) \
        return ampi_k_pair<counted>(w, p, at, r, AMP_MASTER_##L, AMP_##T);
    AMPI_K_PAIRS(AMPI_K_PAIR)
#undef AMPI_K_PAIR
    return 0;
}
/* Master, model copy (for the next products, so it is not streamed) and low part; 1: a copy overflowed. counted: w
   becomes what is kept of it. */
template <int counted, int N>
AMPI_K uint32_t ampi_k_update_weights(uint32_t (&w)[N], const ampi_k_updating *p, uint64_t at) {
    const amp_param_entry *e = &p->e;
    uint32_t k, copy[N], overflow = 0, odd;
    if (e->master) ampi_k_store(w, e->master, AMP_F32, at, AMPI_K_STREAM);
    if (!e->model) return 0;
    if (p->pair) return ampi_k_update_pair<counted>(w, p, at);
    AMP_UNROLL
    for (k = 0; k < N; k++)
        copy[k] = w[k];
    if (p->stochastic)
        odd = ampi_k_store_drawn(copy, p, AMP_STORED_MODEL, e->model, e->model_dtype, at);
    else
        odd = ampi_k_store_nearest(copy, e->model, e->model_dtype, at);
    if (!counted && !odd) return 0;
    AMP_UNROLL
    for (k = 0; k < N; k++)
        overflow |= amp_copy_overflow(copy[k], ampi_float(w[k]), e->model_dtype);
    AMP_UNROLL
    for (k = 0; k < N; k++)
        if (counted && !e->master) w[k] = copy[k];
    return overflow;
}

/* Whether these coefficients allow ampi_k_adam_brief: 1 / sqrt(bc2) in 2^-10 ... 2^30, eps in 2^-56 ... 2^20, a step
   size in 2^-78 ... 2^60. */
AMPI_K int ampi_k_is_brief(const amp_coef *c) {
    uint32_t step = ampi_bits(c->step_size) & 0x7fffffffu;
    if (ampi_bits(c->rsqrt_bc2) - 0x3a800000u > 0x14000000u) return 0;
    return ampi_bits(c->eps) - 0x23800000u <= 0x26000000u && step - 0x18800000u <= 0x45000000u;
}
/* Adam's steps of several by the instructions that ptxas makes of sqrt.rn and div.rn for numbers in the middle of the
   range (seen for sm_75 to sm_120; the last two of a quotient twice), whether they are there asked once. For that the
   second moment is multiplied by 2^64 and the first by 2^48, which is exact, so that tiny ones and 0 get there, too. 0:
   v is 2^62 or more or not a number, m 2^22 or more, or the quotient is subnormal. */
template <int N> AMPI_K int ampi_k_adam_brief(float (&step)[N], const ampi_k_working<N> *x, const amp_coef *c) {
    const float by = amp_mul(c->rsqrt_bc2, ampi_float(0x2f800000u)),
                rate = amp_mul(c->step_size, ampi_float(0x27800000u));
    float largest = 0.0f;
    uint32_t k, most = 0, least = 0xffffffffu;
    AMP_UNROLL
    for (k = 0; k < N; k++) {
        float v = amp_mul(ampi_float(x->v[k]), ampi_float(0x5f800000u));
        float a = amp_mul(ampi_float(x->b[k]), ampi_float(0x57800000u));
        float y = ampi_about_rsqrt(ampi_larger(v, ampi_float(0x0d800000u))), s = amp_mul(v, y), root, q;
        s = AMP_FMA(AMP_FMA(amp_negative(s), s, v), amp_mul(y, 0.5f), s);
        root = amp_add(amp_mul(s, by), c->eps);
        y = ampi_about_inverse(root);
        y = AMP_FMA(y, AMP_FMA(amp_negative(root), y, 1.0f), y);
        q = amp_mul(a, y);
        q = AMP_FMA(amp_negative(y), AMP_FMA(root, q, amp_negative(a)), q); /* this way -0 stays */
        q = AMP_FMA(amp_negative(y), AMP_FMA(root, q, amp_negative(a)), q);
        step[k] = amp_mul(rate, q);
        most = ampi_bits(v) > most ? ampi_bits(v) : most;
        least = 2u * ampi_bits(q) - 1u < least ? 2u * ampi_bits(q) - 1u : least; /* of 0: the largest number */
        largest = ampi_larger(largest, ampi_float(x->b[k] & 0x7fffffffu));
    }
    return most < 0x7e800000u && least >= 0x30ffffffu && amp_less(largest, ampi_float(0x4a800000u));
}
AMPI_K int ampi_k_adam_brief(float (&)[1], const ampi_k_working<1> *, const amp_coef *) { return 0; }
template <int N> AMPI_K void ampi_k_update_adam(float (&step)[N], ampi_k_working<N> *x, const amp_coef *c, int brief) {
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < N; k++) {
        float u = ampi_float(x->g[k]);
        x->b[k] = ampi_bits(ampi_scalar_average(c->beta1, ampi_float(x->b[k]), c->one_beta1, u));
        x->v[k] = ampi_bits(ampi_scalar_average(c->beta2, ampi_float(x->v[k]), c->one_beta2, amp_mul(u, u)));
    }
    if (!brief || !ampi_k_adam_brief(step, x, c)) { /* which says no to Inf */
        AMP_UNROLL
        for (k = 0; k < N; k++) {
            step[k] = ampi_scalar_adam_step(ampi_float(x->b[k]), ampi_float(x->v[k]), c);
            x->inf |= x->v[k] == 0x7f800000u;
        }
    }
    AMP_UNROLL
    for (k = 0; k < N; k++)
        x->w[k] = ampi_bits(amp_sub(amp_mul(ampi_float(x->w[k]), c->decay), step[k]));
}
template <int kind, int N> AMPI_K void ampi_k_update_each(float (&step)[N], ampi_k_working<N> *x, const amp_coef *c) {
    const int both = kind != AMPI_K_APPLY && amp_moments_of((amp_update_kind)kind, 1.0f) > 1;
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < N; k++) {
        float u = ampi_float(x->g[k]), w = ampi_float(x->w[k]), b = ampi_float(x->b[k]), v = ampi_float(x->v[k]);
        if (kind == AMPI_K_APPLY)
            step[k] = amp_apply_one(&w, u, c);
        else
            step[k] = amp_update_one((amp_update_kind)kind, &w, &b, &v, u, c);
        x->w[k] = ampi_bits(w);
        x->b[k] = ampi_bits(b);
        x->v[k] = ampi_bits(v);
        if (both) x->inf |= x->v[k] == 0x7f800000u;
    }
}
/* amp_prepare_one and amp_update_one, or amp_apply_one. What is the same for all elements is asked once: the rules then
   get coefficients that say no to it. */
template <int kind, int N>
AMPI_K void ampi_k_update_rule(float (&step)[N], ampi_k_working<N> *x, const amp_coef *coef, int brief) {
    amp_coef c = *coef;
    uint32_t k;
    if (kind == AMPI_K_APPLY) return ampi_k_update_each<kind>(step, x, &c);
    c.limit = c.l2 = 0.0f;
    AMP_UNROLL
    for (k = 0; k < N; k++)
        x->g[k] = ampi_bits(amp_prepare_one(ampi_float(x->g[k]), &c));
    if (ampi_nonzero(coef->limit)) {
        AMP_UNROLL
        for (k = 0; k < N; k++)
            x->g[k] = ampi_bits(ampi_scalar_clamp(ampi_float(x->g[k]), coef->limit));
    }
    if (kind != AMP_UPDATE_LION && ampi_nonzero(coef->l2)) {
        AMP_UNROLL
        for (k = 0; k < N; k++)
            x->g[k] = ampi_bits(ampi_scalar_decayed(ampi_float(x->w[k]), ampi_float(x->g[k]), coef));
    }
    if (kind == AMP_UPDATE_ADAM) return ampi_k_update_adam(step, x, &c, brief);
    if (kind != AMP_UPDATE_SGD) return ampi_k_update_each<kind>(step, x, &c);
    if (!ampi_nonzero(coef->momentum)) {
        c.momentum = 0.0f;
        ampi_k_update_each<kind>(step, x, &c);
    } else if (brief) {
        c.first = 1;
        ampi_k_update_each<kind>(step, x, &c);
    } else {
        c.first = 0;
        ampi_k_update_each<kind>(step, x, &c);
    }
}
/* One of them, with the count of its update: counting has no registers for all of them at once. */
template <int kind, int N>
AMPI_K uint32_t ampi_k_update_counted(
    ampi_k_working<N> *x, uint32_t k, uint64_t at, const amp_coef *coef, int first, ampi_k_tally *tally) {
    ampi_k_working<1> one;
    float step[1];
    uint32_t old = x->w[k];
    one.g[0] = x->g[k];
    one.w[0] = old;
    one.b[0] = x->b[k];
    one.v[0] = x->v[k];
    one.inf = 0;
    ampi_k_update_rule<kind>(step, &one, coef, first);
    x->w[k] = one.w[0];
    x->b[k] = one.b[0];
    x->v[k] = one.v[0];
    x->inf |= one.inf;
    return amp_is_counted(at + k, tally->every) ? ampi_k_tally_update(tally, step[0], old, x->w[k]) : 0u;
}
template <int kind, int counted, int N>
AMPI_K uint32_t ampi_k_update_at(const ampi_k_updating *p, uint64_t at, const amp_coef *coef, ampi_k_tally *tally) {
    ampi_k_working<N> x;
    float step[N];
    uint32_t k, updates = 0, found; /* updates: a bit for each */
    ampi_k_update_load(&x, p, at);
    AMP_UNROLL
    for (k = 0; k < N; k++)
        if (counted)
            updates |= ampi_k_update_counted<kind>(&x, k, at, coef, kind == AMP_UPDATE_SGD && p->brief, tally) << k;
    if (!counted) ampi_k_update_rule<kind>(step, &x, coef, p->brief);
    if (p->zero) {
        uint32_t zero[N];
        AMP_UNROLL
        for (k = 0; k < N; k++)
            zero[k] = 0;
        ampi_k_store(zero, p->zero, AMP_F32, at, AMPI_K_STREAM);
    }
    if (p->moments > 0) ampi_k_update_moment(x.b, p, 0, at);
    if (p->moments > 1) ampi_k_update_moment(x.v, p, 1, at);
    found = ampi_k_update_weights<counted>(x.w, p, at);
    AMP_UNROLL
    for (k = 0; k < N; k++)
        if (counted) tally->counts += (updates >> k & (uint32_t)(x.kept[k] == x.w[k])) << 16;
    return x.inf ? found | AMP_MOMENT_OVERFLOW : found;
}
/* 1 into a word of the record and, whoever is first, into its copy for the host: the low half, for its number stays. */
AMPI_K void ampi_k_note_overflow(amp_step_record *record, amp_step_mirror *mirror, size_t at) {
    const uint32_t known = atomicOr((unsigned *)((char *)record + at), 1u);
    if (mirror && !known) *(volatile ampi_k_u32 *)&mirror->word[at / 4u] = 1u;
}
AMPI_K void ampi_k_note_overflows(uint32_t found, amp_step_record *record, amp_step_mirror *mirror) {
    if (found & AMP_WEIGHT_OVERFLOW) ampi_k_note_overflow(record, mirror, offsetof(amp_step_record, weight_overflow));
    if (found & AMP_MOMENT_OVERFLOW) ampi_k_note_overflow(record, mirror, offsetof(amp_step_record, moment_overflow));
}

/* What all kinds of update fill in alike; grad and grad_type are the caller's. */
AMPI_K void ampi_k_update_begin(
    ampi_k_updating *p, const amp_param_entry *e, uint32_t param, const amp_step_record *r, const ampi_k_u4 *keys) {
    p->e = *e;
    p->weights = p->e.master ? p->e.master : p->e.model;
    p->weight_type = p->e.master ? AMP_F32 : p->e.model_dtype;
    p->draw = amp_draw_of(r, param);
    p->stochastic = r->stochastic != 0;
    p->drawn = p->stochastic || p->e.moment_dtype == AMP_BF16;
    p->pair = p->e.low != NULL;
    p->low_type = ampi_low_type(p->e.layout);
    p->zero = NULL;
    p->keys = keys;
    p->moments = p->coded = p->brief = 0;
}
/* Where the arrays of a piece are aligned together, and whether the gradients are there, too. */
AMPI_K ampi_k_ends ampi_k_update_ends(ampi_k_updating *p, uint64_t base) {
    const amp_param_entry *e = &p->e;
    const uintptr_t all = (uintptr_t)p->grad | (uintptr_t)p->weights | (uintptr_t)e->model | (uintptr_t)e->low |
        (uintptr_t)e->moment[0] | (uintptr_t)e->moment[1] | (uintptr_t)p->zero;
    ampi_k_ends ends = ampi_k_no_ends(), meet;
    p->grad_wide = 1;
    if (all % 16u == 0) return ends; /* nearly always, and a base is a multiple of 8 */
    ampi_k_meet(&ends, p->weights, p->weight_type, base);
    ampi_k_meet(&ends, e->model, e->model_dtype, base);
    ampi_k_meet(&ends, e->low, p->low_type, base);
    ampi_k_meet(&ends, e->moment[0], e->moment_dtype, base);
    ampi_k_meet(&ends, e->moment[1], e->moment_dtype, base);
    ampi_k_meet(&ends, p->zero, AMP_F32, base);
    if (p->drawn) ends.never |= (ends.head & 3u) != 0; /* their words come in fours */
    meet = ends;
    ampi_k_meet(&meet, p->grad, p->grad_type, base);
    p->grad_wide = !meet.never && meet.head == ends.head;
    return ends;
}
/* counts: NULL unless counted; then one in `every` blocks. */
template <int kind, int counted>
AMPI_K void ampi_k_update_piece(ampi_k_updating *p, const ampi_k_piece *c, const amp_coef *coef,
    amp_step_record *record, amp_step_mirror *mirror, amp_update_count *counts, uint32_t every) {
    ampi_k_tally tally = ampi_k_tally_begin(&p->e, every);
    const ampi_k_ends ends = ampi_k_update_ends(p, c->base);
    uint32_t i, groups = ampi_k_groups(&ends, c->n), found = 0;
    uint64_t at, end;
    for (i = threadIdx.x; i < c->n - 8u * groups; i += AMP_BLOCK)
        found |= ampi_k_update_at<kind, counted, 1>(p, c->base + ampi_k_outside(&ends, groups, i), coef, &tally);
    at = c->base + ends.head + 8u * threadIdx.x;
    end = c->base + ends.head + 8u * groups;
    for (; at < end; at += 8u * AMP_BLOCK)
        found |= ampi_k_update_at<kind, counted, 8>(p, at, coef, &tally);
    ampi_k_note_overflows(found, record, mirror);
    if (counted) ampi_k_tally_end(&tally, &counts[c->param]);
}
/* By the block, which has a barrier to come: the keys of everything that is drawn. */
AMPI_K void ampi_k_update_keys(ampi_k_u4 *keys, uint64_t seed) {
    uint32_t k;
    for (k = AMP_BLOCK - 1u - threadIdx.x; k < AMPI_KEYS * AMPI_STORED; k += AMP_BLOCK)
        keys[k] = ampi_k_two_keys(seed + k / AMPI_KEYS, k % AMPI_KEYS);
}
/* What the pieces of a block have in common, in shared memory, so that their loads are under way side by side: record
   and coefficients by warps that need not wait for a chunk. Complete after a barrier. */
typedef struct ampi_k_update_room {
    ampi_k_u4 keys[AMPI_KEYS * AMPI_STORED];
    amp_coef coef[2 * AMP_GROUPS]; /* [2 * group + no_decay] */
    amp_step_record record;        /* of it what an update reads; other blocks may be noting an overflow there */
    amp_chunk chunk;               /* of this piece, and its parameter */
    amp_param_entry entry;
} ampi_k_update_room;
AMPI_K void ampi_k_update_common(ampi_k_update_room *room, const amp_update_job *job) {
    const uint64_t seed = job->record->seed, steps = job->record->steps;
    const uint32_t skip = job->record->skip, stochastic = job->record->stochastic;
    const uint32_t k = threadIdx.x - AMP_BLOCK / 2u;
    if (threadIdx.x == AMP_BLOCK - 1u) {
        room->record.skip = skip;
        room->record.steps = steps;
        room->record.seed = seed;
        room->record.stochastic = stochastic;
    }
    if (k < 2u * AMP_GROUPS) {
        amp_param_entry like;
        like.group = k / 2u;
        like.no_decay = k % 2u;
        like.before = 0;
        room->coef[k] = amp_coef_of(job, &like);
    }
    ampi_k_update_keys(room->keys, seed);
}
static_assert(sizeof(amp_param_entry) <= 4u * AMPI_TEAM, "the first team loads an entry");
AMPI_K void ampi_k_update_entry(ampi_k_update_room *room, const amp_param_table *t, uint32_t cuts, uint64_t back) {
    amp_chunk c;
    if (threadIdx.x >= sizeof(amp_param_entry) / 4u) return;
    c = t->chunks[back >> cuts];
    ((ampi_k_u32 *)&room->entry)[threadIdx.x] = ((const ampi_k_u32 *)&t->entries[c.param])[threadIdx.x];
    if (threadIdx.x == 0) room->chunk = c;
}
/* How the pieces of a kernel are done: see ampi_k_codes. Without pairs half of the code is left out. */
template <int kind, int counted, int pairs> struct ampi_k_plain {
    static AMPI_K_AT void piece(
        ampi_k_updating *p, const ampi_k_piece *c, const amp_coef *coef, const amp_update_job &job) {
        if (!pairs) p->pair = 0;
        ampi_k_update_piece<kind, counted>(p, c, coef, job.record, job.mirror, job.table.counts, job.count);
    }
};
template <int kind, class way> AMPI_K void ampi_k_update_all(const amp_update_job &job, uint32_t cuts) {
    AMP_SHARED(ampi_k_update_room, room, 1);
    uint64_t i = blockIdx.x, n = (uint64_t)job.table.n_chunks << cuts;
    uint32_t k;
    AMP_FOLLOW();
    if (i >= n) return;
    for (;;) {
        const uint64_t back = ampi_k_from_end(&job.table, cuts, i);
        ampi_k_updating p;
        ampi_k_piece c;
        if (i == blockIdx.x) ampi_k_update_common(room, &job);
        ampi_k_update_entry(room, &job.table, cuts, back);
        __syncthreads();
        if (room->record.skip && !job.accum) return; /* all threads alike; a lost window still ends */
        ampi_k_update_begin(&p, &room->entry, room->chunk.param, &room->record, room->keys);
        c = ampi_k_piece_in(room->chunk, cuts, back, p.e.count);
        if (room->record.skip) {
            for (k = threadIdx.x; k < c.n; k += AMP_BLOCK)
                p.e.accum[c.base + k] = 0.0f;
        } else {
            const amp_coef *own = &room->coef[2u * p.e.group + (p.e.no_decay != 0)];
            p.grad = ampi_k_gradient(&p.e, job.accum, &p.grad_type);
            p.zero = job.accum ? p.e.accum : NULL;
            p.moments = amp_moments_of((amp_update_kind)kind, own->momentum);
            p.brief = kind == AMP_UPDATE_ADAM && ampi_k_is_brief(own);
            if (kind == AMP_UPDATE_SGD) p.brief = amp_is_first_step(room->record.steps, &p.e);
            way::piece(&p, &c, own, job);
        }
        i += gridDim.x;
        if (i >= n) return;
        __syncthreads(); /* the next entry takes the place of this one */
    }
}
template <int kind>
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_update(const AMP_GRID_CONSTANT amp_update_job job, uint32_t cuts) {
    ampi_k_update_all<kind, ampi_k_plain<kind, 0, 0>>(job, cuts);
}
template <int kind> /* the same, of pairs of a model copy and a low part */
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_update_pairs(const AMP_GRID_CONSTANT amp_update_job job, uint32_t cuts) {
    ampi_k_update_all<kind, ampi_k_plain<kind, 0, 1>>(job, cuts);
}
template <int kind> /* the same, with the counts of lost updates */
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_count_update(const AMP_GRID_CONSTANT amp_update_job job, uint32_t cuts) {
    ampi_k_update_all<kind, ampi_k_plain<kind, 1, 1>>(job, cuts);
}

/* The same for one parameter, whose update was made elsewhere. */
template <int counted> AMPI_K void ampi_k_apply_all(const amp_apply_job &job) {
    AMP_SHARED(ampi_k_u4, keys, AMPI_KEYS * AMPI_STORED);
    ampi_k_updating p;
    ampi_k_piece c;
    amp_coef coef;
    uint32_t k;
    int skip = job.record->skip != 0;
    if (skip && !job.accum) return;
    ampi_k_update_keys(keys, job.record->seed);
    __syncthreads();
    ampi_k_update_begin(&p, &job.table.entries[job.param], job.param, job.record, keys);
    p.grad = (void *)job.u;
    p.grad_type = AMP_F32;
    p.zero = job.accum ? p.e.accum : NULL;
    coef = amp_coef_of_apply(&job, &p.e);
    c.param = job.param;
    for (c.base = (uint64_t)blockIdx.x * AMPI_PIECE; c.base < p.e.count; c.base += (uint64_t)gridDim.x * AMPI_PIECE) {
        uint64_t left = p.e.count - c.base;
        c.n = (uint32_t)(left < AMPI_PIECE ? left : AMPI_PIECE);
        if (!skip)
            ampi_k_update_piece<AMPI_K_APPLY, counted>(
                &p, &c, &coef, job.record, job.mirror, job.table.counts, job.count);
        else
            for (k = threadIdx.x; k < c.n; k += AMP_BLOCK)
                p.zero[c.base + k] = 0.0f;
    }
}
static __global__ void __launch_bounds__(AMP_BLOCK, 2) ampi_k_apply(const AMP_GRID_CONSTANT amp_apply_job job) {
    ampi_k_apply_all<0>(job);
}
static __global__ void __launch_bounds__(AMP_BLOCK, 2) ampi_k_count_apply(const AMP_GRID_CONSTANT amp_apply_job job) {
    ampi_k_apply_all<1>(job);
}

AMPI_K void ampi_k_add8(const amp_param_entry *e, uint64_t i, uint32_t m, float inv) {
    uint32_t k, x[8], y[8];
    ampi_k_load8(y, e->accum, AMP_F32, i, m, 1);
    ampi_k_load8(x, e->grad, e->grad_dtype, i, m, 1);
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        y[k] = ampi_bits(amp_add(ampi_float(y[k]), amp_mul(ampi_float(x[k]), inv)));
    ampi_k_store8(y, e->accum, AMP_F32, i, m, 1);
}
static __global__ void __launch_bounds__(AMP_BLOCK, 2) ampi_k_add(amp_add_job job, uint32_t cuts) {
    float inv = job.record->inv_scale;
    uint64_t piece, n = (uint64_t)job.table.n_chunks << cuts;
    uint32_t i, groups;
    if (job.record->skip) return;
    for (piece = blockIdx.x; piece < n; piece += gridDim.x) {
        ampi_k_piece c = ampi_k_piece_of(&job.table, cuts, piece);
        const amp_param_entry *e = &job.table.entries[c.param];
        ampi_k_ends ends = ampi_k_no_ends();
        ampi_k_meet(&ends, e->grad, e->grad_dtype, c.base);
        ampi_k_meet(&ends, e->accum, AMP_F32, c.base);
        groups = ampi_k_groups(&ends, c.n);
        for (i = threadIdx.x; i < groups; i += AMP_BLOCK)
            ampi_k_add8(e, c.base + ends.head + 8u * i, 8, inv);
        for (i = threadIdx.x; i < c.n - 8u * groups; i += AMP_BLOCK)
            ampi_k_add8(e, c.base + ampi_k_outside(&ends, groups, i), 1, inv);
    }
}

AMPI_K void ampi_k_clip8(void *grad, amp_dtype t, uint64_t i, uint32_t m, const amp_coef *coef) {
    uint32_t k, x[8];
    ampi_k_load8(x, grad, t, i, m, 1);
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = ampi_bits(amp_prepare_one(ampi_float(x[k]), coef));
    ampi_k_nearest8(x, t);
    ampi_k_store8(x, grad, t, i, m, 1);
}
static __global__ void __launch_bounds__(AMP_BLOCK, 2) ampi_k_clip(amp_clip_job job, uint32_t cuts) {
    amp_coef coef;
    uint64_t piece, n = (uint64_t)job.table.n_chunks << cuts;
    uint32_t i, groups;
    if (amp_clip_is_idle(&job)) return;
    coef = amp_coef_of_clip(&job);
    for (piece = blockIdx.x; piece < n; piece += gridDim.x) {
        ampi_k_piece c = ampi_k_piece_of(&job.table, cuts, piece);
        ampi_k_ends ends = ampi_k_no_ends();
        amp_dtype type;
        void *grad = ampi_k_gradient(&job.table.entries[c.param], job.accum, &type);
        ampi_k_meet(&ends, grad, type, c.base);
        groups = ampi_k_groups(&ends, c.n);
        for (i = threadIdx.x; i < groups; i += AMP_BLOCK)
            ampi_k_clip8(grad, type, c.base + ends.head + 8u * i, 8, &coef);
        for (i = threadIdx.x; i < c.n - 8u * groups; i += AMP_BLOCK)
            ampi_k_clip8(grad, type, c.base + ampi_k_outside(&ends, groups, i), 1, &coef);
    }
}

static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_next_scale(amp_scaler_state *state) {
    if (blockIdx.x == 0 && threadIdx.x == 0) amp_scaler_next(state);
}

#define AMPI_K_UPDATE(X) X(ampi_k_apply) X(ampi_k_count_apply) X(ampi_k_add) X(ampi_k_clip) X(ampi_k_next_scale)
/* ---- update with moments in 8 bits: a warp takes a block of 256 elements in two halves, of which a thread has four
   elements in a row. New moments wait in shared memory until the largest of the block has given the scale. In halves,
   for so the loop's code is short: eight elements at a time made more of it than an SM keeps near, and warps waited for
   instructions. Blocks whose arrays are not all there and aligned, and those that count lost updates, take their
   elements one by one.   tests: tests/test_moments.c, tests/test_layouts.c ---- */
#define AMPI_HALF        (4u * AMPI_TEAM)
#define AMPI_CODES       256u
static_assert(AMP_MOMENT_BLOCK == 2u * AMPI_HALF, "four elements in each half for each thread of a warp");

typedef struct ampi_k_codes { /* of one block: scales, and what its largest moments are going to be */
    float scale[AMP_MOMENTS], largest[AMP_MOMENTS];
} ampi_k_codes;
/* of: new moments, as float bits. words: where they are seldom needed. value: what a code stands for where the scale is
   1. step: where code k, without a sign, begins in the steps of ampi_scalar_moment_code, and the way from there to the
   next one, times 2^-16, as float bits. */
typedef struct ampi_k_codes_room {
    ampi_k_u4 of[2][AMP_MOMENTS][AMP_BLOCK], words[AMP_BLOCK];
    float value[AMP_MOMENTS][AMPI_CODES];
    ampi_k_u2 step[AMP_MOMENTS][AMPI_CODES];
} ampi_k_codes_room;
AMPI_K ampi_k_codes_room *ampi_k_codes_room_of_block(void) {
    AMP_SHARED(ampi_k_codes_room, room, 1);
    return room;
}
AMPI_K uint8_t *ampi_k_codes_at(const amp_param_entry *e, uint32_t which, uint64_t at) {
    return (uint8_t *)e->moment[which] + at;
}
AMPI_K void ampi_k_codes_scales(float scale[AMP_MOMENTS], const ampi_k_updating *p, uint64_t at) {
    uint32_t i;
    AMP_UNROLL
    for (i = 0; i < (uint32_t)AMP_MOMENTS; i++)
        scale[i] = (int)i < p->coded ? ampi_moment_scales(&p->e, i)[at / AMP_MOMENT_BLOCK] : 0.0f;
}
AMPI_K ampi_k_u2 ampi_k_codes_step(uint32_t k, uint32_t which) {
    const float k0 = (float)(int32_t)k, k1 = amp_add(k0, 1.0f), a = 8064.5f;
    const float low = ampi_scalar_moment_power(amp_mul(k0, k0), a, which);
    const float high = ampi_scalar_moment_power(amp_mul(k1, k1), a, which);
    ampi_k_u2 step;
    step.x = ampi_bits(low);
    step.y = ampi_bits(amp_mul(amp_sub(high, low), ampi_float(0x37800000u)));
    return step;
}
AMPI_K void ampi_k_codes_tables(ampi_k_codes_room *room) { /* by the whole block, which has a barrier to come */
    uint32_t k, which;
    for (k = threadIdx.x; k < AMPI_CODES; k += AMP_BLOCK) {
        AMP_UNROLL
        for (which = 0; which < (uint32_t)AMP_MOMENTS; which++) {
            room->value[which][k] = ampi_scalar_moment_value(k, 1.0f, which);
            room->step[which][k] = ampi_k_codes_step(k, which);
        }
    }
}
/* x, which ampi_scalar_moment_code rounds to k, nearly. The first root of m is the same; the hardware's approximations
   are within 2^-22.9 (a root's inverse) and 2^-23 of theirs, a rounded root within 2^-24, and of what is less than 256
   or 128 each of three roundings within 2^-17 or 2^-18: so this is within 2^-13.3 of x for v, 2^-14.8 for m. Of shares
   near 0 and 1 it keeps away from -1/2 and top - 1/2: k is 0 and top - 1 there, whatever the root is rounded to. */
AMPI_K float ampi_k_code_about(float q, uint32_t which) {
    q = ampi_bits(q) < 0x3f7fc000u ? q : ampi_float(0x3f7fc000u); /* 1 - 2^-10; NaN, too */
    if (which) return AMP_FMA(ampi_about_rsqrt(ampi_about_rsqrt(amp_add(q, ampi_float(0x1f800000u)))), 255.0f, -0.5f);
    q = ampi_root(amp_add(amp_mul(q, 1.5f), 0.0625f));
    q = amp_add(amp_sub(q, 0.25f), ampi_float(0x2c800000u)); /* 2^-38 */
    return AMP_FMA(ampi_about_root(q), 127.0f, -0.5f);
}
/* ampi_scalar_moment_code of four, without signs and without the rule for a v that is not 0, in the low bytes of c. 0:
   some x is so near to 1/2 beside k, where k changes, that it is not sure; seldom. */
AMPI_K int ampi_k_codes_brief(
    uint32_t c[4], const uint32_t x[4], const uint32_t r[4], const ampi_k_u2 *step, float inverse, uint32_t which) {
    const float steps = which ? 4228250624.0f : 390216960.0f;
    float most = 0.0f;
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        const float q = amp_mul(ampi_magnitude(ampi_float(x[k])), inverse); /* above 1 it gives top, as 1 does */
        const float about = ampi_k_code_about(q, which), whole = amp_add(about, 12582912.0f);
        const ampi_k_u2 own = step[ampi_bits(whole) - 0x4b400000u];
        /* half + 1/2, times 2^-16, of the word's half is u */
        const uint32_t half = __byte_perm(r[k], 0x4b000000u, which ? 0x7632u : 0x7610u);
        const float u = amp_sub(ampi_float(half), 8388607.5f);
        const float point = amp_add(ampi_float(own.x), amp_mul(u, ampi_float(own.y)));
        c[k] = ampi_bits(whole) + ((ampi_bits(point) - ampi_bits(amp_mul(q, steps))) >> 31);
        most = ampi_larger(most, ampi_magnitude(amp_sub(about, amp_sub(whole, 12582912.0f))));
    }
    return amp_less(most, which ? 0.5f - 1.0f / 8192.0f : 0.5f - 1.0f / 16384.0f);
}
/* Where k may be the rule's neighbour, x lies at the end of one interval and the beginning of the next, within 2^-11 of
   their lengths: both give the same code unless a random point does, too. 1: none of four is within 2^-10. */
AMPI_K int ampi_k_points_are_inside(const uint32_t r[4], uint32_t which) {
    uint32_t k, least = 0xffffffffu;
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        const uint32_t point = (which ? r[k] : r[k] << 16) + 0x400000u;
        least = point < least ? point : least;
    }
    return least >= 0x800000u;
}
/* The same as ampi_k_codes_brief by the rule, in little code, which is seldom needed. four: x, in its place. */
AMPI_K void ampi_k_codes_surely(
    uint32_t c[4], ampi_k_u4 *four, const uint32_t r[4], ampi_k_codes_room *room, float inverse, uint32_t which) {
    ampi_k_u32 *x = (ampi_k_u32 *)four, *word = (ampi_k_u32 *)&room->words[threadIdx.x];
    uint32_t k;
    room->words[threadIdx.x] = ampi_k_four(r);
    AMP_NO_UNROLL
    for (k = 0; k < 4u; k++)
        word[k] = ampi_scalar_moment_code(ampi_float(x[k]), inverse, word[k], which) & AMPI_MOMENT_TOP(which);
    ampi_k_words(c, room->words[threadIdx.x]);
}
AMPI_K uint32_t ampi_k_signs_of(const uint32_t x[4]) { /* in the high bits of bytes */
    const uint32_t ab = __byte_perm(x[0], x[1], 0x0073u), cd = __byte_perm(x[2], x[3], 0x0073u);
    return __byte_perm(ab, cd, 0x5410u) & 0x80808080u;
}
AMPI_K uint32_t ampi_k_zero_bytes(uint32_t w) { return (w - 0x01010101u) & ~w & 0x80808080u; } /* 0: none is 0 */
/* Rounds a thread's four, new moments of a half, to codes. */
AMPI_K void ampi_k_codes_narrow(const ampi_k_updating *p, ampi_k_codes_room *room, ampi_k_u4 *four, const uint32_t r[4],
    float inverse, uint64_t at, uint32_t which) {
    uint32_t c[4], x[4], code, k;
    ampi_k_words(x, *four);
    if (!ampi_k_codes_brief(c, x, r, room->step[which], inverse, which) && !ampi_k_points_are_inside(r, which))
        ampi_k_codes_surely(c, four, r, room, inverse, which);
    code = ampi_k_low_bytes(c);
    if (!which) {
        code |= ampi_k_signs_of(x);
    } else if (ampi_k_zero_bytes(code)) {
        AMP_UNROLL
        for (k = 0; k < 4u; k++)
            c[k] |= (uint32_t)((c[k] & 0xffu) == 0 && x[k] << 1 != 0);
        code = ampi_k_low_bytes(c);
    }
    *(ampi_k_u32 *)ampi_k_codes_at(&p->e, which, at) = code;
}
/* The largest of a warp's magnitudes, and its inverse; in the middle of the range rcp.rn has no branch. */
AMPI_K float ampi_k_warp_largest(float size) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    return ampi_float(__reduce_max_sync(0xffffffffu, ampi_bits(size)));
#else
    uint32_t k;
    AMP_UNROLL
    for (k = AMPI_TEAM / 2u; k; k /= 2u)
        size = ampi_larger(size, AMP_SHUFFLE(size, k));
    return size;
#endif
}
AMPI_K float ampi_k_block_inverse(float scale) {
    if (ampi_bits(scale) - 0x0f800000u <= 0x60000000u) return ampi_recip(scale); /* 2^-96 ... 2^96 */
    return ampi_moment_inverse(scale);
}
/* The end of a block, by a whole warp; at: the thread's first element. */
AMPI_K void ampi_k_codes_end(ampi_k_codes *b, const ampi_k_updating *p, ampi_k_codes_room *room, uint64_t at) {
    float inverse[AMP_MOMENTS];
    uint32_t i, k, r[4];
    AMP_UNROLL
    for (i = 0; i < (uint32_t)AMP_MOMENTS; i++) {
        b->scale[i] = ampi_moment_scale(ampi_bits(ampi_k_warp_largest(b->largest[i])));
        inverse[i] = ampi_k_block_inverse(b->scale[i]);
    }
    AMP_NO_UNROLL
    for (k = 0; k < 2u; k++, at += AMPI_HALF) {
        ampi_k_draw4(r, p->keys + AMPI_KEYS * (uint32_t)AMP_STORED_MOMENT_1, p->draw.stream, at);
        ampi_k_codes_narrow(p, room, &room->of[k][0][threadIdx.x], r, inverse[0], at, 0);
        if (p->coded > 1) ampi_k_codes_narrow(p, room, &room->of[k][1][threadIdx.x], r, inverse[1], at, 1);
    }
    at -= 2u * AMPI_HALF;
    AMP_SYNC_TEAM(); /* all have read the old scales */
    if (threadIdx.x % AMPI_TEAM != 0) return;
    AMP_UNROLL
    for (i = 0; i < (uint32_t)AMP_MOMENTS; i++)
        if ((int)i < p->coded) ampi_moment_scales(&p->e, i)[at / AMP_MOMENT_BLOCK] = b->scale[i];
}

/* A thread's elements of a half, from `at` on, as they lie in memory; b and v are codes. */
AMPI_K void ampi_k_codes_fetch(ampi_k_raws<4> *r, const ampi_k_updating *p, uint64_t at) {
    ampi_k_update_fetch(r, p, at);
    r->b.eight.a.x = r->v.eight.a.x = 0;
    if (p->coded > 0) r->b.eight.a.x = *(const ampi_k_u32 *)ampi_k_codes_at(&p->e, 0, at);
    if (p->coded > 1) r->v.eight.a.x = *(const ampi_k_u32 *)ampi_k_codes_at(&p->e, 1, at);
}
/* Their weights are stored, new moments left in `to`. */
template <int kind>
AMPI_K uint32_t ampi_k_codes_four(const ampi_k_raws<4> *r, ampi_k_codes *b, const ampi_k_updating *p,
    const ampi_k_codes_room *room, ampi_k_u4 (*to)[AMP_BLOCK], uint64_t at, const amp_coef *coef) {
    const uint32_t m = r->b.eight.a.x, v = r->v.eight.a.x;
    ampi_k_working<4> x;
    uint32_t k, found;
    float step[4];
    ampi_k_update_widen(&x, r, p);
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        x.b[k] = ampi_bits(amp_mul(room->value[0][m >> 8u * k & 0xffu], b->scale[0]));
        x.v[k] = ampi_bits(amp_mul(room->value[1][v >> 8u * k & 0xffu], b->scale[1]));
    }
    ampi_k_update_rule<kind>(step, &x, coef, p->brief);
    if (p->zero) {
        const uint32_t none[4] = {0, 0, 0, 0};
        ampi_k_put4(p->zero + at, none, AMPI_K_STREAM);
    }
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        b->largest[0] = ampi_larger(b->largest[0], ampi_magnitude(ampi_float(x.b[k])));
        b->largest[1] = ampi_larger(b->largest[1], ampi_magnitude(ampi_float(x.v[k])));
    }
    to[0][threadIdx.x] = ampi_k_four(x.b);
    to[1][threadIdx.x] = ampi_k_four(x.v);
    found = ampi_k_update_weights<0>(x.w, p, at);
    return x.inf ? found | AMP_MOMENT_OVERFLOW : found;
}
/* The same one by one, of those before `end`; the others are 0. */
template <int kind>
AMPI_K uint32_t ampi_k_codes_each(ampi_k_codes *b, const ampi_k_updating *p, ampi_k_u4 (*to)[AMP_BLOCK], uint64_t at,
    uint64_t end, const amp_coef *coef, ampi_k_tally *tally) {
    ampi_k_u32 *m = (ampi_k_u32 *)&to[0][threadIdx.x], *v = (ampi_k_u32 *)&to[1][threadIdx.x];
    uint32_t k, update, found = 0;
    AMP_NO_UNROLL
    for (k = 0; k < 4u; k++, at++) {
        ampi_k_working<1> x;
        m[k] = v[k] = 0;
        if (at >= end) continue;
        ampi_k_update_load(&x, p, at);
        if (p->coded > 0) x.b[0] = ampi_bits(ampi_scalar_moment_value(*ampi_k_codes_at(&p->e, 0, at), b->scale[0], 0));
        if (p->coded > 1) x.v[0] = ampi_bits(ampi_scalar_moment_value(*ampi_k_codes_at(&p->e, 1, at), b->scale[1], 1));
        update = ampi_k_update_counted<kind>(&x, 0, at, coef, kind == AMP_UPDATE_SGD && p->brief, tally);
        m[k] = x.b[0];
        v[k] = x.v[0];
        b->largest[0] = ampi_larger(b->largest[0], ampi_magnitude(ampi_float(x.b[0])));
        b->largest[1] = ampi_larger(b->largest[1], ampi_magnitude(ampi_float(x.v[0])));
        if (p->zero) p->zero[at] = 0.0f;
        found |= ampi_k_update_weights<1>(x.w, p, at);
        tally->counts += (update & (uint32_t)(x.kept[0] == x.w[0])) << 16;
        if (x.inf) found |= AMP_MOMENT_OVERFLOW;
    }
    return found;
}
/* What is under way while a half is worked on: the next one, and the scales of its block. */
typedef struct ampi_k_codes_ahead {
    ampi_k_raws<4> half;
    float scale[AMP_MOMENTS];
} ampi_k_codes_ahead;
/* A block whose elements all are there and aligned. next: where the next block is, or any other. early: the next half
   is loaded before one is worked on, not after. */
template <int kind, int early>
AMPI_K uint32_t ampi_k_codes_block(ampi_k_codes_ahead *ahead, const ampi_k_updating *p, ampi_k_codes_room *room,
    uint64_t at, uint64_t next, const amp_coef *coef) {
    uint32_t k, found = 0;
    ampi_k_codes b = {{ahead->scale[0], ahead->scale[1]}, {0.0f, 0.0f}};
    if (early)
        ampi_k_codes_scales(ahead->scale, p, next);
    else
        ampi_k_codes_scales(b.scale, p, at);
    AMP_NO_UNROLL
    for (k = 0; k < 2u; k++) {
        ampi_k_raws<4> own = ahead->half;
        if (early)
            ampi_k_codes_fetch(&ahead->half, p, k == 0 ? at + AMPI_HALF : next);
        else
            ampi_k_codes_fetch(&own, p, at + k * AMPI_HALF);
        found |= ampi_k_codes_four<kind>(&own, &b, p, room, room->of[k], at + k * AMPI_HALF, coef);
    }
    if (p->coded > 0) ampi_k_codes_end(&b, p, room, at);
    return found;
}
/* All such blocks of a piece; returns where they end. */
template <int kind, int early>
AMPI_K uint64_t ampi_k_codes_blocks(uint32_t *found, const ampi_k_updating *p, ampi_k_codes_room *room, uint64_t at,
    uint64_t last, const amp_coef *coef) {
    ampi_k_codes_ahead ahead;
    if (at + AMP_MOMENT_BLOCK > last) return at;
    memset(&ahead, 0, sizeof ahead);
    if (early) {
        ampi_k_codes_fetch(&ahead.half, p, at);
        ampi_k_codes_scales(ahead.scale, p, at);
    }
    AMP_NO_UNROLL
    while (at + AMP_MOMENT_BLOCK <= last) {
        const uint64_t next = at + AMPI_TEAMS * AMP_MOMENT_BLOCK;
        const uint64_t then = next + AMP_MOMENT_BLOCK <= last ? next : at;
        *found |= ampi_k_codes_block<kind, early>(&ahead, p, room, at, then, coef);
        at = next;
    }
    return at;
}
template <int kind>
AMPI_K uint32_t ampi_k_codes_part(const ampi_k_updating *p, ampi_k_codes_room *room, uint64_t at, uint64_t end,
    const amp_coef *coef, ampi_k_tally *tally) {
    ampi_k_codes b = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    uint32_t k, found = 0;
    ampi_k_codes_scales(b.scale, p, at);
    AMP_NO_UNROLL
    for (k = 0; k < 2u; k++)
        found |= ampi_k_codes_each<kind>(&b, p, room->of[k], at + k * AMPI_HALF, end, coef, tally);
    if (p->coded > 0) ampi_k_codes_end(&b, p, room, at);
    return found;
}
/* Most updates with 8-bit moments: Adam, weights in BF16 and a remainder, gradients in BF16. What is the same in all of
   them is said to the compiler, which then leaves out the questions. Returns where it ends. */
AMPI_K int ampi_k_codes_are_usual(const ampi_k_updating *p, const amp_coef *c) {
    if (!p->pair || p->e.model_dtype != AMP_BF16 || p->stochastic) return 0;
    if (p->grad_type != AMP_BF16 || !p->grad_wide || p->zero) return 0;
    return p->coded == 2 && p->brief && !ampi_nonzero(c->limit) && !ampi_nonzero(c->l2);
}
template <int layout>
AMPI_K uint64_t ampi_k_codes_usual(uint32_t *found, const ampi_k_updating *p, const amp_coef *coef,
    ampi_k_codes_room *room, uint64_t at, uint64_t last) {
    ampi_k_updating q = *p;
    amp_coef c = *coef;
    q.e.layout = (amp_master)layout;
    q.e.model_dtype = q.weight_type = q.grad_type = AMP_BF16;
    q.e.moment_dtype = AMP_MOMENT_8BIT;
    q.low_type = ampi_low_type((amp_master)layout);
    q.e.master = NULL;
    q.weights = q.e.model;
    q.zero = NULL;
    q.stochastic = 0;
    q.pair = q.grad_wide = q.brief = 1;
    q.coded = 2;
    c.limit = c.l2 = 0.0f;
    return ampi_k_codes_blocks<AMP_UPDATE_ADAM, 1>(found, &q, room, at, last, &c);
}
template <int kind> struct ampi_k_codes_way {
    static AMPI_K_AT void piece(
        ampi_k_updating *p, const ampi_k_piece *c, const amp_coef *coef, const amp_update_job &job) {
        const uint64_t end = c->base + c->n;
        ampi_k_codes_room *room = ampi_k_codes_room_of_block();
        const ampi_k_ends ends = ampi_k_update_ends(p, c->base);
        const int whole = !job.count && !ends.never && ends.head == 0;
        uint64_t at = c->base + threadIdx.x / AMPI_TEAM * AMP_MOMENT_BLOCK + 4u * (threadIdx.x % AMPI_TEAM);
        const uint64_t last = end + 4u * (threadIdx.x % AMPI_TEAM); /* of the same thread */
        uint32_t found = 0;
        p->coded = p->moments;
        p->moments = 0;
        if (kind == AMP_UPDATE_ADAM && whole && ampi_k_codes_are_usual(p, coef)) {
            if (p->e.layout == AMP_MASTER_SPLIT)
                at = ampi_k_codes_usual<AMP_MASTER_SPLIT>(&found, p, coef, room, at, last);
            if (p->e.layout == AMP_MASTER_SPLIT8)
                at = ampi_k_codes_usual<AMP_MASTER_SPLIT8>(&found, p, coef, room, at, last);
        }
        if (whole) at = ampi_k_codes_blocks<kind, 0>(&found, p, room, at, last, coef);
        ampi_k_tally tally = ampi_k_tally_begin(&p->e, job.count ? job.count : 1u);
        AMP_NO_UNROLL
        for (; at < last; at += AMPI_TEAMS * AMP_MOMENT_BLOCK)
            found |= ampi_k_codes_part<kind>(p, room, at, end, coef, &tally);
        ampi_k_note_overflows(found, job.record, job.mirror);
        if (job.count) ampi_k_tally_end(&tally, &job.table.counts[c->param]);
    }
};
/* Three blocks on an SM hide what two wait for; from sm_100 on the compiler has no registers for three. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#  define AMPI_CODES_BLOCKS 2
#else
#  define AMPI_CODES_BLOCKS 3
#endif
template <int kind> /* counts lost updates if it is asked to */
static __global__ void __launch_bounds__(AMP_BLOCK, AMPI_CODES_BLOCKS)
    ampi_k_update_codes(const AMP_GRID_CONSTANT amp_update_job job, uint32_t cuts) {
    ampi_k_codes_tables(ampi_k_codes_room_of_block());
    ampi_k_update_all<kind, ampi_k_codes_way<kind>>(job, cuts);
}
/* ==== >>device-losses ============================================================================================
   Cross-entropy, a block, a team or a thread per row of logits; dropout.
   tests: tests/test_products.c, tests/test_memory.c */

struct ampi_k_logits { /* of one row */
    const void *x;
    amp_dtype t;
    size_t row;
    int wide;
    AMPI_K_AT void at8(float v[8], uint64_t i, uint32_t m) const {
        uint32_t y[8], k;
        ampi_k_load8(y, x, t, row + i, m, wide);
        for (k = 0; k < 8u; k++)
            v[k] = ampi_float(y[k]);
    }
};
struct ampi_k_floats {
    const float *x;
    AMPI_K_AT void at8(float v[8], uint64_t i, uint32_t m) const {
        uint32_t k;
        for (k = 0; k < 8u; k++)
            if (k < m) v[k] = AMP_LOAD_L2(&x[i + k]); /* of other blocks of the same launch */
    }
};

struct ampi_k_counts { /* what rows count in the mean */
    const amp_xent_job &d;
    AMPI_K_AT void at8(float v[8], uint64_t i, uint32_t m) const {
        uint32_t k;
        for (k = 0; k < 8u; k++)
            v[k] = k < m ? amp_xent_row_weight(&d, amp_xent_label(&d, i + k)) : 0.0f;
    }
};
/* Where each class has a target of its own: those of one row, q, and what they add to its loss. */
struct ampi_k_targets {
    const amp_xent_job &d;
    size_t at, label; /* the row's place in the matrix */
    float keep, share, max;
    uint32_t wide;   /* bits: targets, weights, logits are aligned */
    uint32_t misses; /* 0: at8 gives targets; 1: what they add */
    /* v: m targets times their weights; with 3 arrays, not 2, x: their logits, too. One load for all arrays, in a
       loop, to be compiled once. */
    AMPI_K_AT void of8(float v[8], float x[8], uint64_t i, uint32_t m, uint32_t arrays) const {
        uint32_t a, k, y[8];
        for (k = 0; k < 8u; k++)
            v[k] = i + k == label ? 1.0f : 0.0f;
        AMP_NO_UNROLL
        for (a = 0; a < arrays; a++) {
            const amp_array &shared = a == 1u ? d.weights : d.logits;
            const void *data = a == 0 ? d.targets.data : shared.data;
            const amp_dtype t = a == 0 ? d.targets.dtype : shared.dtype;
            if (data) ampi_k_load8(y, data, t, a == 1u ? i : at + i, m, (int)(wide >> a & 1u));
            for (k = 0; k < 8u; k++) {
                if (a == 0) v[k] = amp_xent_target(keep, share, data ? ampi_float(y[k]) : v[k]);
                if (a == 1u && data) v[k] = amp_mul(v[k], ampi_float(y[k]));
                if (a == 2u) x[k] = ampi_float(y[k]);
            }
        }
    }
    AMPI_K_AT void at8(float v[8], uint64_t i, uint32_t m) const {
        float x[8];
        uint32_t k;
        of8(v, x, i, m, 2u + misses);
        for (k = 0; misses && k < 8u; k++)
            v[k] = amp_xent_miss(v[k], max, x[k]);
    }
};

/* What follows is done by `all` threads that share a row, of which this is number `me`. First its padding, and all of a
   row that is left out, or whose label is wrong, an error made visible: then 1. */
AMPI_K int ampi_k_xent_ends(const amp_xent_job &d, size_t row, int64_t label, uint32_t me, uint32_t all) {
    const float value = label < 0 ? 0.0f : ampi_float(0x7fc00000u);
    size_t i;
    for (i = me; i < d.padding; i += all)
        amp_store(d.dlogits.data, d.dlogits.dtype, row * d.ld + d.classes + i, 0.0f);
    if (!amp_xent_is_wrong(&d, label)) return 0;
    if (d.row_loss && me == 0) d.row_loss[d.first + row] = value;
    for (i = me; d.dlogits.data && i < d.classes; i += all)
        amp_store(d.dlogits.data, d.dlogits.dtype, row * d.ld + i, value);
    return 1;
}
/* From max, sum and target to the row's loss and what its gradients need; by: their factor. */
AMPI_K void ampi_k_xent_loss_of(
    const amp_xent_job &d, size_t row, int64_t label, float mean, float by, amp_xent_row *r, uint32_t me) {
    float loss, weight = 1.0f;
    if (d.weights.data) weight = amp_xent_row_weight(&d, label);
    if (d.weights.data) by = amp_mul(by, weight);
    amp_xent_row_end(r, &d, by, 1.0f);
    if (!d.row_loss || me) return;
    loss = amp_xent_loss_one(d.smoothing, r->max, ampi_nonzero(weight) ? r->target : r->max, mean, r->sum);
    if (d.weights.data) loss = amp_mul(loss, weight);
    d.row_loss[d.first + row] = loss;
}
AMPI_K int ampi_k_xent_no_nan(const amp_xent_row *r) { /* else the sum is one */
    return amp_is_finite(r->sum) && amp_is_finite(r->by) && amp_is_finite(r->less);
}
/* A thread's eight lanes of a part, n logits from element `at` on, all fetched before any is looked at. A logit that is
   missing is -Inf: its term is 0, and it is not the largest. NaN may become any NaN. Not for FP8. Vectors are aligned:
   where a row begins `shift` elements after a vector does, a thread has the lanes from 8 t - shift on, which are joined
   as those from 8 t on are. The first thread's lanes before 0 are the last ones, a row of lanes earlier. */
#define AMPI_LANE_ROWS (AMP_PART / AMP_LANES)
typedef struct ampi_k_lane_rows { uint32_t of[AMPI_LANE_ROWS][8]; } ampi_k_lane_rows;
AMPI_K void ampi_k_xent_vectors(
    ampi_k_raw r[AMPI_LANE_ROWS + 1u], const void *p, amp_dtype t, size_t at, uint32_t n, uint32_t shift) {
    const uint32_t slot = threadIdx.x % AMPI_TEAM * 8u, end = n + shift, last = end & ~7u;
    ampi_k_raw first = {{0, 0, 0, 0}, {0, 0, 0, 0}}, rest = first;
    uint32_t q, i;
    at -= shift; /* from here on, elements from `shift` to `end` */
    if (slot < shift) ampi_k_gather8(&first, p, t, at, shift, end);
    if (end % 8u && last >= shift && last % AMP_LANES == slot) ampi_k_gather8(&rest, p, t, at + last, 0, end - last);
    AMP_UNROLL
    for (q = 0, i = slot; q < AMPI_LANE_ROWS; q++, i += AMP_LANES) {
        if (i < shift)
            r[q] = first;
        else if (i < last)
            ampi_k_fetch8(&r[q], p, t, at + i, 1);
        else
            r[q] = rest;
    }
    r[q] = rest;
}
/* The first thread's elements before the part, from the next row of lanes. */
AMPI_K void ampi_k_xent_turn(ampi_k_raw r[AMPI_LANE_ROWS + 1u], amp_dtype t, uint32_t shift) {
    const uint32_t bits = threadIdx.x % AMPI_TEAM ? 0u : shift * 8u * (uint32_t)amp_dtype_size(t);
    uint32_t mask[4], w[4], next[4], q, k;
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        const uint32_t own = bits > 32u * k ? bits - 32u * k : 0u; /* of this word, and more */
        mask[k] = own < 32u ? (1u << own) - 1u : ~0u;
    }
    AMP_UNROLL
    for (q = 0; q < AMPI_LANE_ROWS; q++) {
        ampi_k_words(w, r[q].a);
        ampi_k_words(next, r[q + 1u].a);
        AMP_UNROLL
        for (k = 0; k < 4u; k++)
            w[k] = (w[k] & ~mask[k]) | (next[k] & mask[k]);
        r[q].a = ampi_k_four(w);
    }
}
AMPI_K void ampi_k_xent_fetch(ampi_k_lane_rows *x, const void *p, amp_dtype t, size_t at, uint32_t n) {
    const uint32_t size = (uint32_t)amp_dtype_size(t), slot = threadIdx.x % AMPI_TEAM * 8u;
    const uint32_t shift = (uint32_t)((uintptr_t)p / size + at) % (16u / size);
    ampi_k_raw r[AMPI_LANE_ROWS + 1u];
    uint32_t q, k, i;
    ampi_k_xent_vectors(r, p, t, at, n, shift);
    if (shift) ampi_k_xent_turn(r, t, shift);
    AMP_UNROLL
    for (q = 0; q < AMPI_LANE_ROWS; q++) {
        if (t == AMP_F32)
            ampi_k_patterns8(x->of[q], &r[q], t);
        else
            ampi_k_quick8(x->of[q], &r[q], t);
    }
    if (n == AMP_PART) return;
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
        i = (slot + k - shift) % AMP_LANES;
        AMP_UNROLL
        for (q = 0; q < AMPI_LANE_ROWS; q++)
            if (i + q * AMP_LANES >= n) x->of[q][k] = 0xff800000u;
    }
}
AMPI_K float ampi_k_team_largest(float top) { /* to each of its threads */
    uint32_t k;
    AMP_UNROLL
    for (k = AMPI_TEAM / 2u; k; k /= 2u)
        top = ampi_larger(top, AMP_SHUFFLE(top, k));
    return top;
}
/* The sum of a part's terms, to every thread of the team that asks, and its largest logit to *largest. Read once. */
AMPI_K float ampi_k_xent_part(const void *p, amp_dtype t, size_t at, uint32_t n, float *largest) {
    float top = AMP_XENT_LEAST, lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ampi_k_lane_rows x;
    uint32_t q;
    ampi_k_xent_fetch(&x, p, t, at, n);
    AMP_UNROLL
    for (q = 0; q < 8u * AMPI_LANE_ROWS; q++)
        top = ampi_larger(top, ampi_float(x.of[q / 8u][q % 8u]));
    *largest = top = ampi_k_team_largest(top);
    AMP_UNROLL
    for (q = 0; q < 8u * AMPI_LANE_ROWS; q++)
        lane[q % 8u] = amp_add(lane[q % 8u], amp_xent_term(ampi_float(x.of[q / 8u][q % 8u]), top));
    return ampi_k_join_slots(lane);
}
/* The same of any dtype, read twice. */
AMPI_K float ampi_k_xent_part_twice(const void *p, amp_dtype t, size_t at, uint32_t n, int wide, float *largest) {
    const ampi_k_logits part = {p, t, at, wide};
    const uint32_t slot = threadIdx.x % AMPI_TEAM * 8u;
    float top = AMP_XENT_LEAST, lane[8] = {0, 0, 0, 0, 0, 0, 0, 0}, v[8];
    uint32_t i, k;
    AMP_NO_UNROLL
    for (i = slot; i < n; i += AMP_LANES) {
        part.at8(v, i, ampi_k_group(i, n));
        for (k = 0; k < 8u; k++)
            if (i + k < n) top = ampi_larger(top, v[k]);
    }
    *largest = top = ampi_k_team_largest(top);
    AMP_NO_UNROLL
    for (i = slot; i < n; i += AMP_LANES) {
        part.at8(v, i, ampi_k_group(i, n));
        for (k = 0; k < 8u; k++)
            if (i + k < n) lane[k] = amp_add(lane[k], amp_xent_term(v[k], top));
    }
    return ampi_k_join_slots(lane);
}
/* A chunk's parts, a team each until there are none left: their sums to room->part, their largest logits to top[].
   type: AMP_AUTO, or t, known as the kernel is compiled. */
template <int type>
AMPI_K void ampi_k_xent_parts(
    const void *p, amp_dtype t, size_t at, uint32_t n, int wide, ampi_k_room *room, float *top) {
    uint32_t part = threadIdx.x / AMPI_TEAM, from, m;
    float sum, most;
    for (from = part * AMP_PART; from < n; from += AMPI_TEAMS * AMP_PART, part += AMPI_TEAMS) {
        m = n - from < AMP_PART ? n - from : AMP_PART;
        if (type != AMP_AUTO)
            sum = ampi_k_xent_part(p, (amp_dtype)type, at + from, m, &most);
        else
            sum = ampi_k_xent_part_twice(p, t, at + from, m, wide, &most);
        if (threadIdx.x % AMPI_TEAM) continue;
        room->part[part] = amp_widen(sum);
        top[part] = most;
    }
    __syncthreads();
}
/* The sum of a row's terms and *max, in every thread; see amp_xent_row. A thread of a team has a part of a chunk. */
static_assert(AMP_PARTS == AMPI_TEAM, "a thread for each part");
template <int type>
AMPI_K float ampi_k_xent_sum(
    const amp_xent_job &d, amp_dtype t, size_t at, int wide, ampi_k_room *room, float *top, float *max) {
    const uint64_t chunks = d.classes / AMP_CHUNK + (d.classes % AMP_CHUNK != 0);
    const uint32_t me = threadIdx.x % AMPI_TEAM;
    double *total = &room->part[AMP_PARTS], sum = 0.0;
    float before, now = AMP_XENT_LEAST;
    uint64_t c;
    uint32_t i;
    for (i = threadIdx.x; chunks > 1u && i < AMP_LANES; i += AMP_BLOCK)
        room->chunk[i] = 0.0;
    for (c = 0; c < chunks; c++) {
        const uint64_t left = d.classes - c * AMP_CHUNK;
        const uint32_t n = (uint32_t)(left < AMP_CHUNK ? left : AMP_CHUNK);
        const int is = me * AMP_PART < n;
        ampi_k_xent_parts<type>(d.logits.data, t, at + c * AMP_CHUNK, n, wide, room, top);
        before = now;
        now = ampi_larger(before, ampi_k_team_largest(is ? top[me] : AMP_XENT_LEAST));
        if (threadIdx.x < AMPI_TEAM) {
            sum = is ? amp_xent_rescaled(room->part[me], top[me], now) : 0.0;
            sum = ampi_k_join_pairs(sum);
            if (me == 0) *total = sum;
        }
        __syncthreads();
        sum = *total;
        for (i = threadIdx.x; chunks > 1u && i < AMP_LANES; i += AMP_BLOCK) { /* a lane is one thread's */
            if (amp_less(before, now) && c) room->chunk[i] = amp_xent_rescaled(room->chunk[i], before, now);
            if (i == c % AMP_LANES) room->chunk[i] = amp_dadd(room->chunk[i], sum);
        }
    }
    if (chunks > 1u) sum = ampi_k_halve(room->chunk, AMP_LANES);
    *max = now;
    return amp_narrow(sum);
}
/* Gradients but for the label's, which comes last. */
AMPI_K void ampi_k_xent_any(const amp_xent_job &d, amp_dtype t, size_t at, int wide, const amp_xent_row *row) {
    const char *out = (const char *)d.dlogits.data + at * amp_dtype_size(d.dlogits.dtype);
    int wide_out = ampi_k_aligned(out, d.dlogits.dtype) ? AMPI_K_STREAM : 0;
    uint32_t k, y[8];
    size_t i;
    for (i = 8u * threadIdx.x; i < d.classes; i += 8u * AMP_BLOCK) {
        uint32_t m = ampi_k_group(i, d.classes);
        ampi_k_load8(y, d.logits.data, t, at + i, m, wide);
        for (k = 0; k < 8u; k++)
            y[k] = ampi_bits(amp_xent_grad_one(row, ampi_float(y[k])));
        ampi_k_nearest8(y, d.dlogits.dtype);
        ampi_k_store8(y, d.dlogits.data, d.dlogits.dtype, at + i, m, wide_out);
    }
}
/* The same for arrays of one dtype of 16 bits, aligned alike, and without a NaN: two groups at a time. Gradients need
   not stay in the second-level cache, where logits wait for their second reading. */
AMPI_K void ampi_k_xent_eight(
    const amp_xent_job &d, amp_dtype t, size_t first, const ampi_k_raw *r, const amp_xent_row *row) {
    uint32_t y[8], w[4], k;
    ampi_k_quick8(y, r, t);
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        y[k] = ampi_bits(amp_xent_grad_one(row, ampi_float(y[k])));
    (void)ampi_k_quick_words(w, y, t);
    ampi_k_put4((char *)d.dlogits.data + 2u * first, w, AMPI_K_STREAM);
}
AMPI_K void ampi_k_xent_alike(
    const amp_xent_job &d, amp_dtype t, size_t at, const ampi_k_ends *ends, const amp_xent_row *row) {
    uint32_t classes = (uint32_t)d.classes, groups = ampi_k_groups(ends, classes), i;
    for (i = threadIdx.x; i < groups; i += 2u * AMP_BLOCK) {
        size_t first = at + ends->head + 8u * i;
        const int both = i + AMP_BLOCK < groups;
        ampi_k_raw one, two;
        ampi_k_fetch8(&one, d.logits.data, t, first, 1);
        if (both) ampi_k_fetch8(&two, d.logits.data, t, first + 8u * AMP_BLOCK, 1);
        ampi_k_xent_eight(d, t, first, &one, row);
        if (both) ampi_k_xent_eight(d, t, first + 8u * AMP_BLOCK, &two, row);
    }
    for (i = threadIdx.x; i < classes - 8u * groups; i += AMP_BLOCK) {
        size_t one = at + ampi_k_outside(ends, groups, i);
        amp_store(d.dlogits.data, t, one, amp_xent_grad_one(row, amp_load(d.logits.data, t, one)));
    }
}
template <int type>
AMPI_K void ampi_k_xent_gradients(const amp_xent_job &d, amp_dtype t, size_t at, int wide, const amp_xent_row *row) {
    ampi_k_ends ends = ampi_k_no_ends();
    ampi_k_meet(&ends, d.logits.data, t, at);
    ampi_k_meet(&ends, d.dlogits.data, d.dlogits.dtype, at);
    if (amp_dtype_size((amp_dtype)type) == 2u && t == d.dlogits.dtype && ampi_k_xent_no_nan(row) && !ends.never)
        ampi_k_xent_alike(d, (amp_dtype)type, at, &ends, row);
    else
        ampi_k_xent_any(d, t, at, wide, row);
}

/* A row with a target for each class, whose maximum and sum are known. One loop for both sums, to be compiled once. */
AMPI_K void ampi_k_xent_each(
    const amp_xent_job &d, size_t row, ampi_k_targets q, amp_xent_row *r, float factor, ampi_k_room *room) {
    const char *out = (const char *)d.dlogits.data + q.at * amp_dtype_size(d.dlogits.dtype);
    const int wide = ampi_k_aligned(out, d.dlogits.dtype) ? AMPI_K_STREAM : 0;
    float all = 0.0f, sum = 0.0f, x[8], v[8];
    uint32_t k, y[8];
    size_t i;
    AMP_NO_UNROLL
    for (q.misses = 0; q.misses < 2; q.misses++) {
        all = sum;
        sum = amp_narrow(ampi_k_sum(q, d.classes, room));
    }
    amp_xent_row_end(r, &d, factor, all);
    if (d.row_loss && threadIdx.x == 0) d.row_loss[d.first + row] = amp_xent_loss_each(sum, all, r->sum);
    for (i = 8u * threadIdx.x; d.dlogits.data && i < d.classes; i += 8u * AMP_BLOCK) {
        const uint32_t m = ampi_k_group(i, d.classes);
        q.of8(v, x, i, m, 3);
        for (k = 0; k < 8u; k++)
            y[k] = ampi_bits(amp_xent_grad_each(r, x[k], v[k]));
        ampi_k_nearest8(y, d.dlogits.dtype);
        ampi_k_store8(y, d.dlogits.data, d.dlogits.dtype, q.at + i, m, wide);
    }
}
AMPI_K ampi_k_targets ampi_k_targets_of(const amp_xent_job &d, size_t at, size_t label, int wide, float max) {
    const char *row = (const char *)d.targets.data + at * amp_dtype_size(d.targets.dtype);
    const float keep = amp_sub(1.0f, d.smoothing), share = amp_div(d.smoothing, (float)d.classes);
    const uint32_t targets = ampi_k_aligned(row, d.targets.dtype) != 0;
    const uint32_t weights = ampi_k_aligned(d.weights.data, d.weights.dtype) != 0;
    const uint32_t wides = targets | weights << 1 | (uint32_t)(wide != 0) << 2;
    ampi_k_targets q = {d, at, label, keep, share, max, wides, 0};
    return q;
}
/* A block per row. */
template <int type>
AMPI_K void ampi_k_xent_row(
    const amp_xent_job &d, amp_dtype t, size_t row, const float *factor, ampi_k_room *room, float *top) {
    size_t at = row * d.ld;
    int64_t label = amp_xent_label(&d, d.first + row);
    float mean = 0.0f;
    amp_xent_row r;
    ampi_k_logits logits = {d.logits.data, t, at, 0};
    if (ampi_k_xent_ends(d, row, label, threadIdx.x, AMP_BLOCK)) return;
    logits.wide = ampi_k_aligned((const char *)d.logits.data + at * amp_dtype_size(t), t);
    r.target = amp_load(logits.x, t, at + (size_t)label); /* before dlogits, which may be logits */
    r.sum = ampi_k_xent_sum<type>(d, t, at, logits.wide, room, top, &r.max);
    if (type == AMP_AUTO && d.each) {
        ampi_k_xent_each(d, row, ampi_k_targets_of(d, at, (size_t)label, logits.wide, r.max), &r, *factor, room);
        return;
    }
    if (ampi_nonzero(d.smoothing)) mean = amp_narrow(amp_ddiv(ampi_k_sum(logits, d.classes, room), (double)d.classes));
    ampi_k_xent_loss_of(d, row, label, mean, *factor, &r, threadIdx.x);
    if (!d.dlogits.data) return;
    ampi_k_xent_gradients<type>(d, t, at, logits.wide, &r);
    __syncthreads();
    if (threadIdx.x == 0 && !d.softmax)
        amp_store(d.dlogits.data, d.dlogits.dtype, at + (size_t)label, amp_xent_grad_label(&r));
}
/* What all rows count, in every thread. */
AMPI_K double ampi_k_xent_counted(const amp_xent_job &d, const double *counts, uint32_t lanes) {
    if (d.sum) return 0.0;
    return lanes == 1u ? counts[0] : ampi_k_join(counts, lanes);
}
/* 1 in the block that is the last to come here; the ticket wraps to 0. */
AMPI_K int ampi_k_xent_last(uint32_t *ticket) {
    AMP_SHARED(uint32_t, last, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        AMP_FENCE();
        last[0] = atomicInc((unsigned *)ticket, gridDim.x - 1u) == gridDim.x - 1u;
        AMP_FENCE();
    }
    __syncthreads();
    return (int)last[0];
}
/* Where one block is enough for the losses of all rows, up to AMP_CHUNK, the last one adds them up. A function of its
   own, so that the rows before it have all registers. */
AMPI_K_APART void ampi_k_xent_end(float *loss, const float *row_loss, uint32_t n, double weight, uint32_t *ticket) {
    AMP_SHARED(double, part, AMP_PARTS);
    const uint32_t me = threadIdx.x % AMPI_TEAM;
    uint32_t p, i, k;
    double sum;
    if (!ampi_k_xent_last(ticket)) return;
    for (p = threadIdx.x / AMPI_TEAM; p < AMP_PARTS; p += AMPI_TEAMS) {
        float lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        for (i = p * AMP_PART + me; i < n && i < (p + 1u) * AMP_PART; i += AMP_LANES) {
            AMP_UNROLL
            for (k = 0; k < 8u; k++)
                if (i + AMPI_TEAM * k < n) lane[k] = amp_add(lane[k], AMP_LOAD_L2(&row_loss[i + AMPI_TEAM * k]));
        }
        lane[0] = ampi_k_join_team(lane);
        if (me == 0) part[p] = amp_widen(lane[0]);
    }
    sum = ampi_k_halve(part, ampi_k_power_of_two(n / AMP_PART + (n % AMP_PART != 0), AMP_PARTS));
    if (threadIdx.x == 0) *loss = amp_narrow(amp_dmul(sum, weight));
}
AMPI_K double ampi_k_xent_weight(const amp_xent_job &d, const double *counts, uint32_t lanes) {
    return amp_xent_weight(&d, ampi_k_xent_counted(d, counts, lanes));
}
/* This block's row of a round, in each round a different block's: rows of one alignment, which take longer than others,
   may be as many apart as there are blocks. */
AMPI_K size_t ampi_k_xent_turned(size_t first) {
    return first + (blockIdx.x + (uint32_t)(first / gridDim.x)) % gridDim.x;
}
/* type: of the logits. AMP_AUTO: any, and rows with a target for each class; one kernel for all of these, because each
   takes nvcc a while. */
template <int type>
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_xent(const AMP_GRID_CONSTANT amp_xent_job d, const double *counts, uint32_t lanes, uint32_t *ticket) {
    AMP_SHARED(ampi_k_room, room, 1);
    AMP_SHARED(float, top, AMP_PARTS);
    AMP_SHARED(float, factor, 1); /* not in a register: the terms need all of them */
    const amp_dtype t = type == AMP_AUTO ? d.logits.dtype : (amp_dtype)type;
    double counted = ampi_k_xent_counted(d, counts, lanes);
    size_t first, row;
    if (threadIdx.x == 0) factor[0] = amp_xent_factor(&d, counted);
    __syncthreads();
    for (first = 0; first < d.rows; first += gridDim.x) {
        row = ampi_k_xent_turned(first);
        if (row < d.rows) ampi_k_xent_row<type>(d, t, row, factor, room, top);
    }
    if (ticket) ampi_k_xent_end(d.loss, d.row_loss, (uint32_t)d.all, ampi_k_xent_weight(d, counts, lanes), ticket);
}

/* ---- rows of up to AMP_PART classes: one part of the rule of sums, so a team takes a row or, of AMPI_K_SHORT classes
   at most, a thread. A logit is read once: its term stays in a register for its gradient. A class that is not there is
   -Inf: its term is 0, and it is not the largest. ---- */
#define AMPI_K_SHORT 16u
#define AMPI_K_EACH  (AMP_PART / AMPI_TEAM) /* classes of a team's thread: every 32nd */

/* Gradients of any dtype, or with a NaN. */
AMPI_K void ampi_k_xent_one_by_one(
    const amp_xent_job &d, amp_dtype t, size_t at, const amp_xent_row *r, uint32_t me, uint32_t all) {
    size_t i;
    AMP_NO_UNROLL
    for (i = me; i < d.classes; i += all)
        amp_store(d.dlogits.data, d.dlogits.dtype, at + i, amp_xent_grad_one(r, amp_load(d.logits.data, t, at + i)));
}
AMPI_K int ampi_k_xent_is_plain(const amp_xent_job &d, amp_dtype t, const amp_xent_row *r) {
    return d.dlogits.dtype == t && ampi_k_xent_no_nan(r);
}
/* Two gradients to patterns, the quick way. */
AMPI_K uint32_t ampi_k_xent_pair(uint32_t low, uint32_t high, amp_dtype t) {
    return t == AMP_F16 ? AMP_TO_HALVES(low, high) : AMP_TO_BF16S(low, high);
}
AMPI_K float ampi_k_short_sum(const float term[AMPI_K_SHORT]) { /* the rest of its lanes are 0 */
    float x[AMPI_K_SHORT];
    uint32_t half, k;
    AMP_UNROLL
    for (k = 0; k < AMPI_K_SHORT; k++)
        x[k] = amp_add(0.0f, term[k]);
    AMP_UNROLL
    for (half = AMPI_K_SHORT / 2u; half; half /= 2u) {
        AMP_UNROLL
        for (k = 0; k < AMPI_K_SHORT / 2u; k++)
            if (k < half) x[k] = amp_add(x[k], x[k + half]);
    }
    return x[0];
}
AMPI_K void ampi_k_short_load(float x[AMPI_K_SHORT], const amp_xent_job &d, amp_dtype t, size_t at) {
    uint32_t h, k, y[8];
    AMP_UNROLL
    for (h = 0; h < AMPI_K_SHORT; h += 8u) {
        uint32_t m = ampi_k_group(h, d.classes);
        ampi_k_raw raw;
        ampi_k_take8(&raw, d.logits.data, t, at + h, m, 0);
        if (t == AMP_F32)
            ampi_k_patterns8(y, &raw, AMP_F32);
        else
            ampi_k_quick8(y, &raw, t);
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            x[h + k] = ampi_float(k < m ? y[k] : 0xff800000u);
    }
}
AMPI_K void ampi_k_short_store(
    const float term[AMPI_K_SHORT], const amp_xent_job &d, amp_dtype t, size_t at, const amp_xent_row *r) {
    uint32_t h, k, y[8], w;
    AMP_UNROLL
    for (h = 0; h < AMPI_K_SHORT; h += 8u) {
        uint32_t m = ampi_k_group(h, d.classes);
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            y[k] = ampi_bits(amp_fma(term[h + k], r->by, amp_negative(r->less)));
        AMP_UNROLL
        for (k = 0; t != AMP_F32 && k < 8u; k += 2u) {
            w = ampi_k_xent_pair(y[k], y[k + 1u], t);
            y[k] = w & 0xffffu;
            y[k + 1u] = w >> 16;
        }
        ampi_k_store8(y, d.dlogits.data, t, at + h, m, 0);
    }
}
AMPI_K void ampi_k_xent_thread(const amp_xent_job &d, amp_dtype t, size_t row, float by) {
    size_t at = row * d.ld;
    int64_t label = amp_xent_label(&d, d.first + row);
    float x[AMPI_K_SHORT], mean = 0.0f;
    amp_xent_row r;
    uint32_t k;
    if (ampi_k_xent_ends(d, row, label, 0, 1)) return;
    r.target = amp_load(d.logits.data, t, at + (size_t)label);
    ampi_k_short_load(x, d, t, at);
    r.max = AMP_XENT_LEAST;
    AMP_UNROLL
    for (k = 0; k < AMPI_K_SHORT; k++)
        r.max = ampi_larger(r.max, x[k]);
    if (ampi_nonzero(d.smoothing)) {
        float y[AMPI_K_SHORT];
        AMP_UNROLL
        for (k = 0; k < AMPI_K_SHORT; k++)
            y[k] = k < d.classes ? x[k] : 0.0f;
        mean = amp_narrow(amp_ddiv(amp_widen(ampi_k_short_sum(y)), (double)d.classes));
    }
    AMP_UNROLL
    for (k = 0; k < AMPI_K_SHORT; k++)
        x[k] = amp_xent_term(x[k], r.max);
    r.sum = ampi_k_short_sum(x);
    ampi_k_xent_loss_of(d, row, label, mean, by, &r, 0);
    if (!d.dlogits.data) return;
    if (ampi_k_xent_is_plain(d, t, &r))
        ampi_k_short_store(x, d, t, at, &r);
    else
        ampi_k_xent_one_by_one(d, t, at, &r, 0, 1);
    if (!d.softmax) amp_store(d.dlogits.data, d.dlogits.dtype, at + (size_t)label, amp_xent_grad_label(&r));
}

/* The sum of a part of which this thread has every 32nd element, in each thread of the team. */
AMPI_K float ampi_k_team_sum(const float x[AMPI_K_EACH], uint32_t n) {
    float lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    uint32_t q, k;
    AMP_UNROLL
    for (q = 0; q < AMPI_K_EACH; q += 8u) {
        if (q * AMPI_TEAM >= n) continue;
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            lane[k] = amp_add(lane[k], x[q + k]);
    }
    return ampi_k_join_team(lane);
}
AMPI_K float ampi_k_team_load(float x[AMPI_K_EACH], const amp_xent_job &d, amp_dtype t, size_t at, uint32_t n) {
    const uint32_t me = threadIdx.x % AMPI_TEAM, size = (uint32_t)amp_dtype_size(t);
    const char *from = (const char *)d.logits.data + (at + me) * size;
    float top = AMP_XENT_LEAST;
    uint32_t q, k;
    AMP_UNROLL
    for (q = 0; q < AMPI_K_EACH; q += 8u) {
        if (q * AMPI_TEAM >= n) continue;
        AMP_UNROLL
        for (k = q; k < q + 8u; k++) {
            x[k] = ampi_float(0xff800000u);
            if (me + AMPI_TEAM * k < n) x[k] = ampi_float(ampi_k_quick(ampi_load_pattern(from, t, AMPI_TEAM * k), t));
        }
    }
    AMP_UNROLL
    for (q = 0; q < AMPI_K_EACH; q += 8u) {
        if (q * AMPI_TEAM >= n) continue;
        AMP_UNROLL
        for (k = q; k < q + 8u; k++)
            top = ampi_larger(top, x[k]);
    }
    return ampi_k_team_largest(top);
}
AMPI_K float ampi_k_team_mean(const float x[AMPI_K_EACH], uint32_t n) {
    const uint32_t me = threadIdx.x % AMPI_TEAM;
    float y[AMPI_K_EACH];
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < AMPI_K_EACH; k++)
        y[k] = me + AMPI_TEAM * k < n ? x[k] : 0.0f;
    return amp_narrow(amp_ddiv(amp_widen(ampi_k_team_sum(y, n)), (double)n));
}
AMPI_K void ampi_k_team_store(
    const float term[AMPI_K_EACH], const amp_xent_job &d, amp_dtype t, size_t at, uint32_t n, const amp_xent_row *r) {
    const uint32_t me = threadIdx.x % AMPI_TEAM, size = (uint32_t)amp_dtype_size(t);
    char *to = (char *)d.dlogits.data + (at + me) * size;
    uint32_t q, k;
    AMP_UNROLL
    for (q = 0; q < AMPI_K_EACH; q += 8u) {
        if (q * AMPI_TEAM >= n) continue;
        AMP_UNROLL
        for (k = q; k < q + 8u; k += 2u) {
            uint32_t low = ampi_bits(amp_fma(term[k], r->by, amp_negative(r->less)));
            uint32_t high = ampi_bits(amp_fma(term[k + 1u], r->by, amp_negative(r->less)));
            if (t != AMP_F32) low = ampi_k_xent_pair(low, high, t);
            if (t != AMP_F32) high = low >> 16;
            if (me + AMPI_TEAM * k < n) ampi_store_pattern(to, t, AMPI_TEAM * k, low);
            if (me + AMPI_TEAM * (k + 1u) < n) ampi_store_pattern(to, t, AMPI_TEAM * (k + 1u), high);
        }
    }
}
AMPI_K void ampi_k_xent_team(const amp_xent_job &d, amp_dtype t, size_t row, float by) {
    const uint32_t me = threadIdx.x % AMPI_TEAM, n = (uint32_t)d.classes;
    size_t at = row * d.ld;
    int64_t label = amp_xent_label(&d, d.first + row);
    float x[AMPI_K_EACH], mean = 0.0f;
    amp_xent_row r;
    uint32_t q, k;
    if (ampi_k_xent_ends(d, row, label, me, AMPI_TEAM)) return;
    r.target = amp_load(d.logits.data, t, at + (size_t)label);
    r.max = ampi_k_team_load(x, d, t, at, n);
    if (ampi_nonzero(d.smoothing)) mean = ampi_k_team_mean(x, n);
    AMP_UNROLL
    for (q = 0; q < AMPI_K_EACH; q += 8u) {
        if (q * AMPI_TEAM >= n) continue;
        AMP_UNROLL
        for (k = q; k < q + 8u; k++)
            x[k] = amp_xent_term(x[k], r.max);
    }
    r.sum = ampi_k_team_sum(x, n);
    ampi_k_xent_loss_of(d, row, label, mean, by, &r, me);
    if (!d.dlogits.data) return;
    AMP_SYNC_TEAM(); /* dlogits may be logits: the target was read by all */
    if (ampi_k_xent_is_plain(d, t, &r))
        ampi_k_team_store(x, d, t, at, n, &r);
    else
        ampi_k_xent_one_by_one(d, t, at, &r, me, AMPI_TEAM);
    AMP_SYNC_TEAM();
    if (me == 0 && !d.softmax) amp_store(d.dlogits.data, d.dlogits.dtype, at + (size_t)label, amp_xent_grad_label(&r));
}
template <int type>
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_xent_few(const AMP_GRID_CONSTANT amp_xent_job d, const double *counts, uint32_t lanes, uint32_t *ticket) {
    const float by = amp_xent_factor(&d, ampi_k_xent_counted(d, counts, lanes));
    const uint32_t side = d.classes <= AMPI_K_SHORT ? AMP_BLOCK : AMPI_TEAMS; /* rows at a time */
    size_t row = (size_t)blockIdx.x * side + threadIdx.x / (AMP_BLOCK / side);
    for (; row < d.rows; row += (size_t)gridDim.x * side) {
        if (side == AMP_BLOCK)
            ampi_k_xent_thread(d, (amp_dtype)type, row, by);
        else
            ampi_k_xent_team(d, (amp_dtype)type, row, by);
    }
    if (ticket) ampi_k_xent_end(d.loss, d.row_loss, (uint32_t)d.all, ampi_k_xent_weight(d, counts, lanes), ticket);
}

/* Sums over all rows, of what they count and, where there are many, of row_loss, where rows left out hold 0: a block
   per lane of the rule's last level; whoever needs the sum adds up the lanes. */
template <class X> AMPI_K void ampi_k_xent_lane(const X &x, uint64_t rows, double *lanes, ampi_k_room *room) {
    uint64_t chunks = rows / AMP_CHUNK + (rows % AMP_CHUNK != 0), c;
    double sum = 0.0;
    for (c = blockIdx.x; c < chunks; c += AMP_LANES) {
        uint64_t left = rows - c * AMP_CHUNK;
        uint32_t n = (uint32_t)(left < AMP_CHUNK ? left : AMP_CHUNK);
        sum = amp_dadd(sum, ampi_k_sum_chunk(x, c * AMP_CHUNK, n, room));
    }
    if (threadIdx.x == 0) lanes[blockIdx.x] = sum;
}
/* The same of rows that count 1 or 0: their sums are exact in every order. */
AMPI_K void ampi_k_xent_rows(const amp_xent_job &d, double *lanes, ampi_k_room *room) {
    const uint64_t step = (uint64_t)AMP_LANES * AMP_CHUNK;
    uint64_t from, i, n = 0;
    for (from = (uint64_t)blockIdx.x * AMP_CHUNK; from < d.all; from += step) {
        const uint64_t end = d.all - from < AMP_CHUNK ? d.all : from + AMP_CHUNK;
        for (i = from + threadIdx.x; i < end; i += AMP_BLOCK)
            n += ampi_nonzero(amp_xent_row_weight(&d, amp_xent_label(&d, i))) != 0;
    }
    room->chunk[threadIdx.x] = (double)n;
    __syncthreads();
    if (threadIdx.x >= AMPI_TEAM) return;
    n = 0;
    for (i = threadIdx.x; i < AMP_BLOCK; i += AMPI_TEAM)
        n += (uint64_t)room->chunk[i];
    for (i = AMPI_TEAM / 2u; i; i /= 2u)
        n += AMP_SHUFFLE(n, (int)i);
    if (threadIdx.x == 0) lanes[blockIdx.x] = (double)n;
}
static __global__ void __launch_bounds__(AMP_BLOCK)
    ampi_k_xent_counts(const AMP_GRID_CONSTANT amp_xent_job d, double *lanes) {
    AMP_SHARED(ampi_k_room, room, 1);
    ampi_k_counts counts = {d};
    if (d.weights.data)
        ampi_k_xent_lane(counts, d.all, lanes, room);
    else
        ampi_k_xent_rows(d, lanes, room);
}
static __global__ void __launch_bounds__(AMP_BLOCK)
    ampi_k_xent_losses(const AMP_GRID_CONSTANT amp_xent_job d, const double *counts, double *lanes, uint32_t *ticket) {
    AMP_SHARED(ampi_k_room, room, 1);
    ampi_k_floats losses = {d.row_loss};
    double sum, weight;
    ampi_k_xent_lane(losses, d.all, lanes, room);
    if (!ampi_k_xent_last(ticket)) return;
    sum = ampi_k_join(lanes, gridDim.x);
    weight = ampi_k_xent_weight(d, counts, gridDim.x);
    if (threadIdx.x == 0) *d.loss = amp_narrow(amp_dmul(sum, weight));
}

/* ---- dropout ---- */

/* Groups of eight, which begin where groups of four random words do. */
AMPI_K void ampi_k_dropout_groups(const amp_dropout_job &d, const ampi_k_keys &keys, uint64_t threshold, float factor,
    uint64_t head, uint64_t groups, int wide) {
    uint64_t i = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x, step = (uint64_t)gridDim.x * AMP_BLOCK;
    uint32_t x[8], r[8], k, last = (uint32_t)(threshold - 1u); /* words up to it drop, in 32 bits */
    int some = threshold != 0;
    for (; i < groups; i += step) {
        uint64_t at = head + 8u * i, word = d.rng.offset + at;
        ampi_k_load8(x, d.x.data, d.x.dtype, at, 8, wide);
        ampi_k_philox(r, &keys, d.rng.stream, word >> 2);
        ampi_k_philox(r + 4, &keys, d.rng.stream, (word + 4u) >> 2);
        for (k = 0; k < 8u; k++)
            x[k] = r[k] <= last && some ? 0u : ampi_bits(amp_mul(ampi_float(x[k]), factor)); /* amp_dropout_one */
        ampi_k_nearest8(x, d.y.dtype);
        ampi_k_store8(x, d.y.data, d.y.dtype, at, 8, wide);
    }
}
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_dropout(const AMP_GRID_CONSTANT amp_dropout_job d, const AMP_GRID_CONSTANT ampi_k_keys keys,
        uint64_t threshold, float factor, uint64_t head, uint64_t groups, int wide) {
    uint64_t i = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x, step = (uint64_t)gridDim.x * AMP_BLOCK;
    if (wide)
        ampi_k_dropout_groups(d, keys, threshold, factor, head, groups, 1);
    else
        ampi_k_dropout_groups(d, keys, threshold, factor, head, groups, 0);
    for (; i < d.count - 8u * groups; i += step) {
        uint64_t at = i < head ? i : i + 8u * groups;
        uint32_t word = amp_random(d.rng.seed, d.rng.stream, d.rng.offset + at);
        float v = amp_dropout_one(amp_load(d.x.data, d.x.dtype, at), word, threshold, factor);
        amp_store(d.y.data, d.y.dtype, at, v);
    }
}

#define AMPI_K_LOSSES(X) \
    X(ampi_k_xent<AMP_F32>) \
    X(ampi_k_xent<AMP_F16>) \
    X(ampi_k_xent<AMP_BF16>) \
    X(ampi_k_xent<AMP_AUTO>) \
    X(ampi_k_xent_few<AMP_F32>) \
    X(ampi_k_xent_few<AMP_F16>) \
    X(ampi_k_xent_few<AMP_BF16>) X(ampi_k_xent_counts) X(ampi_k_xent_losses) X(ampi_k_dropout)
/* ==== >>device-products ==========================================================================================
   The plain product, epilogues, column sums.
   tests: tests/test_products.c, tests/test_product_table.c, tests/test_ordered.c */

/* The plain product, for AMP_GEMM_ORDERED and for what cuBLASLt does not take: any dtypes, layouts, alignment, k = 0.
   Its sums are those of >>numerics. A block makes tiles of AMPI_K_M x AMPI_K_N elements from slices of AMPI_K_SLICE
   along k, widened into shared memory; of a tile, a thread has 8 rows by 8 columns in registers: the sums of the
   present 256 k, and the total of those before. It takes 64 terms from 16 numbers that it reads. While it multiplies a
   slice, it fetches the next, which goes to the other one of two places: one barrier for each. */
#define AMPI_K_THREADS      (AMP_BLOCK < 128 ? AMP_BLOCK : 128) /* few, so that small products fill the GPU */
#define AMPI_K_N            64u
#define AMPI_K_LINE         (AMPI_K_N / 8u) /* threads side by side */
#define AMPI_K_M            (AMPI_K_THREADS / AMPI_K_LINE * 8u)
#define AMPI_K_SLICE        16u
#define AMPI_K_BLOCK        256u                   /* what >>numerics adds up in one chain */
#define AMPI_K_PAD          4u                     /* between rows in shared memory */
#define AMPI_K_AT_ONCE      (256 / AMPI_K_THREADS) /* blocks on a multiprocessor: their registers fit */
#define AMPI_K_EIGHTS(rows) ((rows) * AMPI_K_SLICE / 8u / AMPI_K_THREADS) /* of a slice, for a thread */
#define AMPI_K_FOURS_A      ((AMPI_K_M + AMPI_K_PAD) * AMPI_K_SLICE / 4u) /* of floats: a slice */
#define AMPI_K_SLICE_FOURS  ((AMPI_K_M + AMPI_K_N + 2u * AMPI_K_PAD) * AMPI_K_SLICE / 4u)
#define AMPI_K_TILE_FOURS   (AMPI_K_M * AMPI_K_N / 4u) /* the tile of sums, in their place */
static_assert(AMPI_K_M * AMPI_K_SLICE / 8u % AMPI_K_THREADS == 0 && AMPI_K_N * AMPI_K_SLICE / 8u % AMPI_K_THREADS == 0,
    "every thread has as much of a slice");
#define AMPI_K_ROOM (2u * AMPI_K_SLICE_FOURS > AMPI_K_TILE_FOURS ? 2u * AMPI_K_SLICE_FOURS : AMPI_K_TILE_FOURS)

/* One operand at a tile; a row is what the other operand meets: of A a row, of B a column. */
typedef struct ampi_k_side {
    const void *data;
    amp_dtype type;
    uint32_t width;    /* rows of a tile */
    size_t first, ld;  /* the tile's element 0 */
    size_t rows;       /* from there on */
    int along_k, wide; /* neighbours in memory follow each other along k; eight at a time */
} ampi_k_side;
/* Eight neighbours of a slice, from row r and element q of the slice on, as they travel to shared memory. */
typedef struct ampi_k_eight {
    ampi_k_raw raw;
    size_t at;
    uint32_t r, q;
    uint32_t most, count; /* how many of them there are: as far as rows tell, and in this slice */
} ampi_k_eight;

AMPI_K ampi_k_side ampi_k_side_of(
    const amp_array &x, uint32_t width, size_t ld, size_t stride, size_t batch, size_t z) {
    ampi_k_side s;
    s.data = x.data;
    s.type = x.dtype;
    s.width = width;
    s.ld = ld;
    s.first = z * stride;
    s.wide = ampi_k_aligned(x.data, x.dtype) && ld % 8u == 0 && (batch == 1u || stride % 8u == 0);
    return s;
}
AMPI_K uint32_t ampi_k_slice_of(size_t k, size_t k0) { /* how much of a slice is there at k0 */
    if (k0 >= k) return 0;
    return k - k0 < AMPI_K_SLICE ? (uint32_t)(k - k0) : AMPI_K_SLICE;
}
AMPI_K void ampi_k_fetch(ampi_k_eight *e, const ampi_k_side &s, uint32_t slice) {
    e->count = 0;
    if (e->q < slice) e->count = s.along_k && slice - e->q < e->most ? slice - e->q : e->most;
    if (s.wide && e->count == 8u) ampi_k_fetch8(&e->raw, s.data, s.type, e->at, 1);
}
/* A thread's share of the first slice of an operand, and of the next. */
template <uint32_t n> AMPI_K void ampi_k_fetch_first(ampi_k_eight (&e)[n], const ampi_k_side &s, uint32_t slice) {
    const uint32_t deep = AMPI_K_SLICE / 8u, wide = s.width / 8u;
    uint32_t i, g = threadIdx.x;
    AMP_UNROLL
    for (i = 0; i < n; i++, g += AMPI_K_THREADS) {
        e[i].r = s.along_k ? g / deep : g % wide * 8u;
        e[i].q = s.along_k ? g % deep * 8u : g / wide;
        e[i].at = s.first + (s.along_k ? e[i].r * s.ld + e[i].q : e[i].q * s.ld + e[i].r);
        e[i].most = ampi_k_group(e[i].r, s.rows);
        if (s.along_k && e[i].most) e[i].most = 8;
        ampi_k_fetch(&e[i], s, slice);
    }
}
template <uint32_t n> AMPI_K void ampi_k_fetch_next(ampi_k_eight (&e)[n], const ampi_k_side &s, uint32_t slice) {
    uint32_t i;
    AMP_UNROLL
    for (i = 0; i < n; i++) {
        e[i].at += s.along_k ? AMPI_K_SLICE : AMPI_K_SLICE * s.ld;
        ampi_k_fetch(&e[i], s, slice);
    }
}
/* To [q][r] in shared memory. What is not there becomes `zero`: fma(-0, 0, sum) is the sum, whatever its sign. */
AMPI_K void ampi_k_put(float *slice, const ampi_k_eight &e, const ampi_k_side &s, float zero) {
    const uint32_t pitch = s.width + AMPI_K_PAD, step = s.along_k ? pitch : 1u;
    float *to = slice + e.q * pitch + e.r;
    uint32_t x[8], i;
    if (!s.wide || e.count < 8u) {
        AMP_NO_UNROLL
        for (i = 0; i < 8u; i++)
            to[i * step] = i < e.count ? amp_load(s.data, s.type, e.at + i) : zero;
        return;
    }
    ampi_k_about8(x, &e.raw, s.type);
    if (s.along_k) {
        AMP_UNROLL
        for (i = 0; i < 8u; i++)
            to[i * pitch] = ampi_float(x[i]);
        return;
    }
    ((ampi_k_u4 *)to)[0] = ampi_k_four(x);
    ((ampi_k_u4 *)to)[1] = ampi_k_four(x + 4);
}
template <uint32_t n>
AMPI_K void ampi_k_put_all(float4 *slice, const ampi_k_eight (&e)[n], const ampi_k_side &s, float zero) {
    uint32_t i;
    AMP_UNROLL
    for (i = 0; i < n; i++)
        ampi_k_put((float *)slice, e[i], s, zero);
}

/* ---- what follows the sums ---- */

/* Activation and derivative of eight at a time, on float bits. always: act is one of them; else AMP_ACT_NONE may come,
   which leaves x, and costs a copy of it. */
#define AMPI_K_EACH8(value) \
    AMP_UNROLL \
    for (k = 0; k < 8u; k++) \
        x[k] = ampi_bits(value);
AMPI_K void ampi_k_act8(uint32_t x[8], amp_act act, int always) {
    uint32_t k;
#define AMP_X(name, rule, aux) \
    if (act == name) { \
        AMPI_K_EACH8(ampi_act(name, ampi_float(x[k]))) \
        return; \
    }
    AMPI_ACT_LIST(AMP_X)
#undef AMP_X
    if (always) AMP_NEVER_HERE();
}
AMPI_K void ampi_k_act_grad8(uint32_t x[8], amp_act act, const uint32_t saved[8], int always) {
    uint32_t k;
#define AMP_X(name, rule, aux) \
    if (act == name) { \
        AMPI_K_EACH8(ampi_act_grad(name, ampi_float(x[k]), ampi_float(saved[k]))) \
        return; \
    }
    AMPI_ACT_LIST(AMP_X)
#undef AMP_X
    if (always) AMP_NEVER_HERE();
}
/* Eight of what a mask stands for, as float bits. */
AMPI_K void ampi_k_unmask8(uint32_t x[8], uint32_t bits) {
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = 0x3f800000u * (bits >> k & 1u);
}
/* The mask of eight of ReLU's y, of which m are there, by their patterns. */
AMPI_K uint32_t ampi_k_mask8(const uint32_t x[8], amp_dtype t, uint32_t m) {
    const uint32_t signs = 33u - 8u * (uint32_t)amp_dtype_size(t);
    uint32_t bits = 0, k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        bits |= (uint32_t)(k < m && x[k] << signs != 0) << k;
    return bits;
}
AMPI_K void ampi_k_fill8(uint32_t x[8], uint32_t one) {
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = one;
}
/* The end of an epilogue, for m of eight neighbours: from values before the act to d, aux or its mask. amax: NULL where
   d is not FP8. */
AMPI_K void ampi_k_finish8(const amp_gemm_job &p, int masked, amp_act act, uint32_t x[8], uint64_t at, uint64_t byte,
    uint32_t m, int wide, uint32_t *amax) {
    uint8_t *mask = (uint8_t *)p.aux.data;
    uint32_t y[8], k;
    if (p.backward) {
        if (masked)
            ampi_k_unmask8(y, mask[byte]);
        else
            ampi_k_load8(y, p.aux.data, p.aux.dtype, at, m, wide);
        ampi_k_act_grad8(x, act, y, 0);
    } else {
        if (p.aux.data && !masked) {
            for (k = 0; k < 8u; k++)
                y[k] = ampi_bits(amp_epilogue_aux(&p, ampi_float(x[k])));
            ampi_k_nearest8(y, p.aux.dtype);
            ampi_k_store8(y, p.aux.data, p.aux.dtype, at, m, wide);
        }
        ampi_k_act8(x, act, 0);
    }
    if (amax && amp_dtype_size(p.d.dtype) == 1u) {
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            if (k < m) x[k] = ampi_bits(amp_epilogue_f8(ampi_float(x[k]), p.d.dtype, p.scale_d, amax));
    }
    ampi_k_nearest8(x, p.d.dtype);
    ampi_k_store8(x, p.d.data, p.d.dtype, at, m, wide);
    if (masked && !p.backward) mask[byte] = (uint8_t)ampi_k_mask8(x, p.d.dtype, m);
}
AMPI_K void ampi_k_bias8(uint32_t y[8], const amp_gemm_job &p, uint64_t row, uint64_t column, uint32_t m, int wide) {
    if (p.bias_per_row)
        ampi_k_fill8(y, ampi_load_bits(p.bias.data, p.bias.dtype, row));
    else
        ampi_k_load8(y, p.bias.data, p.bias.dtype, column, m, wide);
}

/* ---- the plain product ---- */

/* Sums over a slice, for the thread's rows at a and columns at b: four, and four half a tile away. */
AMPI_K void ampi_k_multiply(float sum[8][8], const float4 *a, const float4 *b) {
    uint32_t q, i, j;
    AMP_UNROLL
    for (q = 0; q < AMPI_K_SLICE; q++) {
        float4 upper = a[0], lower = a[1], left = b[0], right = b[AMPI_K_N / 8u];
        float x[8] = {upper.x, upper.y, upper.z, upper.w, lower.x, lower.y, lower.z, lower.w};
        float y[8] = {left.x, left.y, left.z, left.w, right.x, right.y, right.z, right.w};
        AMP_UNROLL
        for (i = 0; i < 8u; i++) {
            AMP_UNROLL
            for (j = 0; j < 8u; j++)
                sum[i][j] = AMP_FMA(x[i], y[j], sum[i][j]);
        }
        a += (AMPI_K_M + AMPI_K_PAD) / 4u;
        b += (AMPI_K_N + AMPI_K_PAD) / 4u;
    }
}
/* The sums of a block of k are complete. */
AMPI_K void ampi_k_add_up(float total[8][8], float sum[8][8]) {
    uint32_t i, j;
    AMP_UNROLL
    for (i = 0; i < 8u; i++) {
        AMP_UNROLL
        for (j = 0; j < 8u; j++) {
            total[i][j] = amp_add(total[i][j], sum[i][j]);
            sum[i][j] = 0.0f;
        }
    }
}
/* The sums of one tile over so many batches, into room[AMPI_K_M][AMPI_K_N]. */
AMPI_K void ampi_k_tile_sums(const amp_gemm_job &p, ampi_k_side a, ampi_k_side b, size_t batches, float4 *room) {
    const float zero = 0.0f, negative_zero = ampi_float(0x80000000u);
    const uint32_t me = threadIdx.x, column = me % AMPI_K_LINE, row = me / AMPI_K_LINE;
    const int busy = row * 8u < a.rows && column * 4u < b.rows;
    float4 *slice = room, *other = room + AMPI_K_SLICE_FOURS, *free;
    float sum[8][8], total[8][8];
    ampi_k_eight mine_a[AMPI_K_EIGHTS(AMPI_K_M)], mine_b[AMPI_K_EIGHTS(AMPI_K_N)];
    uint32_t i, j;
    AMP_UNROLL
    for (i = 0; i < 8u; i++) {
        AMP_UNROLL
        for (j = 0; j < 8u; j++) {
            sum[i][j] = 0.0f;
            total[i][j] = negative_zero; /* the first block's sum plus this is that sum */
        }
    }
    AMP_NO_UNROLL
    for (; batches; batches--) {
        size_t k0 = 0;
        uint32_t left = ampi_k_slice_of(p.k, 0);
        ampi_k_fetch_first(mine_a, a, left);
        ampi_k_fetch_first(mine_b, b, left);
        do {
            ampi_k_put_all(slice, mine_a, a, negative_zero);
            ampi_k_put_all(slice + AMPI_K_FOURS_A, mine_b, b, zero);
            __syncthreads();
            k0 += AMPI_K_SLICE;
            left = ampi_k_slice_of(p.k, k0);
            ampi_k_fetch_next(mine_a, a, left);
            ampi_k_fetch_next(mine_b, b, left);
            if (busy) ampi_k_multiply(sum, slice + row * 2u, slice + AMPI_K_FOURS_A + column);
            if (k0 % AMPI_K_BLOCK == 0 || left == 0) ampi_k_add_up(total, sum);
            free = other; /* all have left it: they have passed the barrier */
            other = slice;
            slice = free;
        } while (left);
        a.first += p.stride_a; /* the next batch */
        b.first += p.stride_b;
    }
    __syncthreads();
    AMP_UNROLL
    for (i = 0; i < 8u; i++) {
        float4 *to = room + (row * 8u + i) * (AMPI_K_N / 4u) + column;
        to[0] = make_float4(total[i][0], total[i][1], total[i][2], total[i][3]);
        to[AMPI_K_LINE] = make_float4(total[i][4], total[i][5], total[i][6], total[i][7]);
    }
    __syncthreads();
}

/* From the sums of eight neighbours in row i, from column j on, to d and aux. */
typedef struct ampi_k_wides { /* eight at a time can be read and written: of d and aux, of c, of the bias */
    int d, c, bias;
} ampi_k_wides;
AMPI_K void ampi_k_store_sums(const amp_gemm_job &p, const ampi_k_wides &wide, size_t z, size_t i, size_t j,
    const float *sum, float alpha, float beta, uint32_t *amax) {
    const uint64_t at = z * p.stride_d + i * p.ldd + j, byte = (z * p.m + i) * ampi_mask_pitch(p.n) + j / 8u;
    const uint32_t m = ampi_k_group(j, p.n);
    const int masked = amp_gemm_masked(&p);
    uint32_t c[8] = {0}, bias[8] = {0}, x[8], k;
    if (p.c.data) ampi_k_load8(c, p.c.data, p.c.dtype, z * p.stride_c + i * p.ldc + j, m, wide.c);
    if (p.bias.data) ampi_k_bias8(bias, p, i, j, m, wide.bias);
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = ampi_bits(amp_epilogue_before(&p, sum[k], alpha, beta, ampi_float(c[k]), ampi_float(bias[k])));
    ampi_k_finish8(p, masked, p.act, x, at, byte, m, wide.d, amax);
}

static __global__ void __launch_bounds__(AMPI_K_THREADS, AMPI_K_AT_ONCE)
    ampi_k_gemm(const AMP_GRID_CONSTANT amp_gemm_job p, ampi_k_wides wide) {
    AMP_SHARED(float4, room, AMPI_K_ROOM);
    size_t across = p.n / AMPI_K_N + (p.n % AMPI_K_N != 0), down = p.m / AMPI_K_M + (p.m % AMPI_K_M != 0), tile;
    uint32_t amax = 0, e;
    float alpha = amp_gemm_alpha(&p), beta = amp_gemm_beta(&p);
    for (tile = blockIdx.x; tile < across * down * amp_gemm_outputs(&p); tile += gridDim.x) {
        size_t z = tile / (across * down), i0 = tile / across % down * AMPI_K_M, j0 = tile % across * AMPI_K_N;
        ampi_k_side a = ampi_k_side_of(p.a, AMPI_K_M, p.lda, p.stride_a, p.batch, z);
        ampi_k_side b = ampi_k_side_of(p.b, AMPI_K_N, p.ldb, p.stride_b, p.batch, z);
        a.along_k = !p.trans_a;
        b.along_k = (int)p.trans_b;
        a.first += a.along_k ? i0 * a.ld : i0;
        b.first += b.along_k ? j0 * b.ld : j0;
        a.rows = p.m - i0;
        b.rows = p.n - j0;
        ampi_k_tile_sums(p, a, b, p.sum_batches ? p.batch : 1u, room);
        AMP_NO_UNROLL
        for (e = 8u * threadIdx.x; e < AMPI_K_M * AMPI_K_N; e += 8u * AMPI_K_THREADS) {
            size_t i = i0 + e / AMPI_K_N, j = j0 + e % AMPI_K_N;
            if (i < p.m && j < p.n) ampi_k_store_sums(p, wide, z, i, j, (const float *)room + e, alpha, beta, &amax);
        }
        __syncthreads();
    }
    if (p.amax_d && amax) atomicMax((unsigned *)p.amax_d, amax);
}

/* The same of 16 bits, as they lie in memory: x becomes y, or dy the gradient. Only where an Inf or a NaN comes out is
   looked for the payload that ReLU lets through. */
AMPI_K void ampi_k_act_exact(uint32_t w[4], uint32_t x[8], amp_dtype t) {
    const uint32_t none[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ampi_k_exact_words(w, x, t, AMP_NEAREST, none, 0);
}
AMPI_K void ampi_k_act_raw(ampi_k_raw *r, amp_act act, amp_dtype t) {
    uint32_t x[8], w[4];
    ampi_k_quick8(x, r, t);
    ampi_k_act8(x, act, 1);
    if (!ampi_k_quick_words(w, x, t)) {
        if (act == AMP_RELU) {
            ampi_k_exact8(x, r, t);
            ampi_k_act8(x, AMP_RELU, 1);
        }
        ampi_k_act_exact(w, x, t);
    }
    r->a = ampi_k_four(w);
}
AMPI_K void ampi_k_act_grad_raw(ampi_k_raw *dy, amp_act act, const ampi_k_raw *saved, amp_dtype t) {
    uint32_t x[8], y[8], w[4];
    ampi_k_quick8(x, dy, t);
    ampi_k_quick8(y, saved, t);
    ampi_k_act_grad8(x, act, y, 1);
    if (!ampi_k_quick_words(w, x, t)) {
        if (act == AMP_RELU) {
            ampi_k_exact8(x, dy, t);
            ampi_k_act_grad8(x, AMP_RELU, y, 1);
        }
        ampi_k_act_exact(w, x, t);
    }
    dy->a = ampi_k_four(w);
}
AMPI_K ampi_k_u4 *ampi_k_words_at(const amp_array &a, uint64_t i) { /* of 16 bits */
    return (ampi_k_u4 *)((char *)a.data + 2u * i);
}

/* What cuBLASLt left to do: d, which is not FP8, holds the product; the rest of its epilogue, in groups of 8 along
   a row. */
typedef struct ampi_k_place { uint64_t batch, row, group; } ampi_k_place; /* of a group */
AMPI_K ampi_k_place ampi_k_place_of(uint64_t g, uint64_t across, uint64_t rows) {
    ampi_k_place p = {g / across / rows, g / across % rows, g % across};
    return p;
}
/* Divisions of 64 bits are slow: one for each thread, then additions. */
AMPI_K void ampi_k_move(ampi_k_place *p, const ampi_k_place *step, uint64_t across, uint64_t rows) {
    p->group += step->group;
    p->row += step->row;
    p->batch += step->batch;
    if (p->group >= across) {
        p->group -= across;
        p->row++;
    }
    if (p->row >= rows) {
        p->row -= rows;
        p->batch++;
    }
}
/* The first m of eight of 16 bits, aligned or not; those that are not there are 0. */
AMPI_K void ampi_k_fetch_short(ampi_k_raw *r, const amp_array &a, uint64_t i, uint32_t m, int wide) {
    if (wide)
        r->a = *ampi_k_words_at(a, i);
    else if (m == 8u)
        ampi_k_fetch_words(r, a.data, i);
    else
        ampi_k_gather8(r, a.data, AMP_F16, i, 0, m);
}
AMPI_K void ampi_k_store_short(const ampi_k_raw *r, const amp_array &a, uint64_t i, uint32_t m, int wide) {
    uint32_t x[8];
    if (wide) {
        *ampi_k_words_at(a, i) = r->a;
    } else {
        ampi_k_patterns8(x, r, AMP_F16);
        ampi_k_store8(x, a.data, AMP_F16, i, m, 0);
    }
}
/* Eight of 16 bits, as they lie in memory, where a mask has a 1, else 0; a NaN becomes quiet, as in conversions. */
AMPI_K void ampi_k_mask_raw(ampi_k_raw *dy, uint32_t bits, amp_dtype t) {
    uint32_t w[4], x[8], k;
    ampi_k_words(w, dy->a);
    AMP_UNROLL
    for (k = 0; k < 4u; k++)
        w[k] &= (bits >> 2u * k & 1u) * 0xffffu | (bits >> 2u * k & 2u) * 0x7fff8000u;
    dy->a = ampi_k_four(w);
    if (!ampi_k_odd8(dy, t)) return;
    ampi_k_exact8(x, dy, t);
    ampi_k_nearest8(x, t);
    AMP_UNROLL
    for (k = 0; k < 4u; k++)
        w[k] = x[2u * k] | x[2u * k + 1u] << 16;
    dy->a = ampi_k_four(w);
}
template <int masked> AMPI_K void ampi_k_act_grad_at(const amp_gemm_job &p, uint64_t at, uint64_t byte, int wide) {
    ampi_k_raw dy, saved;
    ampi_k_fetch_short(&dy, p.d, at, 8, wide);
    if (!masked) ampi_k_fetch_short(&saved, p.aux, at, 8, wide);
    if (masked)
        ampi_k_mask_raw(&dy, ((const uint8_t *)p.aux.data)[byte], p.d.dtype);
    else if (p.d.dtype == AMP_F16)
        ampi_k_act_grad_raw(&dy, p.act, &saved, AMP_F16);
    else
        ampi_k_act_grad_raw(&dy, p.act, &saved, AMP_BF16);
    ampi_k_store_short(&dy, p.d, at, 8, wide);
}
AMPI_K int ampi_k_is_alike(const amp_gemm_job &p, int masked) {
    return p.backward && (masked || p.d.dtype == p.aux.dtype) && amp_dtype_size(p.d.dtype) == 2u;
}
/* The whole groups of a gradient of 16 bits, in a loop of their own: one loop for all costs the others registers. */
template <int masked>
AMPI_K void ampi_k_act_grads(
    const amp_gemm_job &p, int wide, ampi_k_place here, const ampi_k_place &step, uint64_t all) {
    uint64_t across = p.n / 8u + (p.n % 8u != 0), g = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x;
    for (; g < all; g += (uint64_t)gridDim.x * AMP_BLOCK, ampi_k_move(&here, &step, across, p.m)) {
        uint64_t j = 8u * here.group, byte = (here.batch * p.m + here.row) * across + here.group;
        if (ampi_k_group(j, p.n) == 8u)
            ampi_k_act_grad_at<masked>(p, here.batch * p.stride_d + here.row * p.ldd + j, byte, wide);
    }
}
/* masked: aux is AMP_MASK, a byte for each group, and the act ReLU; in a kernel of its own, which is short. */
template <int masked>
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_epilogue(amp_gemm_job p, int add_bias, int wide, int wide_bias) {
    uint64_t across = p.n / 8u + (p.n % 8u != 0), all = p.batch * p.m * across, step = (uint64_t)gridDim.x * AMP_BLOCK;
    uint64_t g = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x;
    ampi_k_place here = ampi_k_place_of(g, across, p.m), next = ampi_k_place_of(step, across, p.m);
    const amp_act act = masked ? AMP_RELU : p.act;
    int alike = !add_bias && ampi_k_is_alike(p, masked);
    if (alike) ampi_k_act_grads<masked>(p, wide, here, next, all);
    if (alike && p.n % 8u == 0) return;
    for (; g < all; g += step, ampi_k_move(&here, &next, across, p.m)) {
        uint64_t j = 8u * here.group, at = here.batch * p.stride_d + here.row * p.ldd + j;
        uint64_t byte = (here.batch * p.m + here.row) * across + here.group;
        uint32_t m = ampi_k_group(j, p.n), x[8], y[8], k;
        if (alike && m == 8u) continue;
        ampi_k_load8(x, p.d.data, p.d.dtype, at, m, wide);
        if (add_bias) {
            ampi_k_bias8(y, p, here.row, j, m, wide_bias);
            for (k = 0; k < 8u; k++)
                x[k] = ampi_bits(amp_add(ampi_float(x[k]), ampi_float(y[k])));
        }
        ampi_k_finish8(p, masked, act, x, at, byte, m, wide, NULL);
    }
}

/* Activations apart from products, of any dtypes. */
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_activation(const AMP_GRID_CONSTANT amp_activation_job a, int wide) {
    uint64_t i = 8u * ((uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x), step = 8u * ((uint64_t)gridDim.x * AMP_BLOCK);
    for (; i < a.count; i += step) {
        uint32_t m = ampi_k_group(i, a.count), x[8], saved[8];
        ampi_k_load8(x, a.in.data, a.in.dtype, i, m, wide);
        if (a.saved.data) {
            ampi_k_load8(saved, a.saved.data, a.saved.dtype, i, m, wide);
            ampi_k_act_grad8(x, a.act, saved, 1);
        } else {
            ampi_k_act8(x, a.act, 1);
        }
        ampi_k_nearest8(x, a.out.dtype);
        ampi_k_store8(x, a.out.data, a.out.dtype, i, m, wide);
    }
}

/* All of one format of 16 bits. */
template <amp_dtype t>
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_activation_alike(const AMP_GRID_CONSTANT amp_activation_job a, int wide) {
    uint64_t i = 8u * ((uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x), step = 8u * ((uint64_t)gridDim.x * AMP_BLOCK);
    for (; i < a.count; i += step) {
        const uint64_t left = a.count - i;
        const uint32_t m = left < 8u ? (uint32_t)left : 8u;
        const int whole = wide & (m == 8u);
        ampi_k_raw x, saved;
        ampi_k_fetch_short(&x, a.in, i, m, whole);
        if (a.saved.data) {
            ampi_k_fetch_short(&saved, a.saved, i, m, whole);
            ampi_k_act_grad_raw(&x, a.act, &saved, t);
        } else {
            ampi_k_act_raw(&x, a.act, t);
        }
        ampi_k_store_short(&x, a.out, i, m, whole);
    }
}

#define AMPI_K_PRODUCTS(X) \
    X(ampi_k_gemm) \
    X(ampi_k_epilogue<0>) \
    X(ampi_k_epilogue<1>) \
    X(ampi_k_activation) X(ampi_k_activation_alike<AMP_F16>) X(ampi_k_activation_alike<AMP_BF16>)
/* ---- dy through the activation, in place, and its column sums by the rule of amp.h, reading it once. A team takes a
   part, 32 rows of a stripe of 256 columns; a second kernel adds up the parts. Neighbouring threads have neighbouring
   groups of eight columns or, where rows are not aligned and not of 16 bits, neighbouring columns, eight of them 32
   apart.   tests: tests/test_products.c ---- */
#define AMPI_K_STRIPE 256u
typedef struct ampi_k_bias_args {
    amp_bias_grad_job job;
    float *partial;                      /* [parts][columns], or NULL: one part, straight to dbias */
    uint64_t from, columns, parts, work; /* these columns; parts of all rows; parts times stripes */
    int wide, alike;                     /* rows are aligned; dy and saved, if it is read, have the same 16 bits */
    uint32_t teams;                      /* of a block that have work: as many as keep all SMs busy */
} ampi_k_bias_args;

AMPI_K void ampi_k_bias_out(const amp_bias_grad_job &j, uint64_t column, double sum) {
    if (j.accumulate) sum = amp_dadd(amp_widen(amp_load(j.dbias.data, j.dbias.dtype, column)), sum);
    amp_store(j.dbias.data, j.dbias.dtype, column, amp_narrow(sum));
}
/* Eight of a row, those of this thread; `left` of the row from the first on. */
AMPI_K void ampi_k_bias_load(uint32_t x[8], const amp_array &a, uint64_t at, uint64_t left, int wide) {
    uint32_t k;
    if (wide) {
        ampi_k_load8(x, a.data, a.dtype, at, ampi_k_group(0, left), 1);
        return;
    }
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = AMPI_TEAM * k < left ? ampi_load_pattern(a.data, a.dtype, at + AMPI_TEAM * k) : 0u;
    ampi_k_decode8(x, a.dtype);
}
/* A mask of them, in row `row` from `column` on, as what stands in y's place. */
AMPI_K void ampi_k_bias_unmask(
    uint32_t y[8], const amp_bias_grad_job &j, uint64_t row, uint64_t column, uint64_t left, int wide) {
    const uint8_t *mask = ampi_mask_at(j.saved.data, row, j.cols, 0);
    uint32_t k;
    if (wide) {
        ampi_k_unmask8(y, mask[column / 8u]);
        return;
    }
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        y[k] = AMPI_TEAM * k < left ? ampi_bits(ampi_mask_y(mask, column + AMPI_TEAM * k)) : 0u;
}
AMPI_K void ampi_k_bias_store(const uint32_t x[8], const amp_array &a, uint64_t at, uint64_t left, int wide) {
    uint32_t k;
    if (wide) {
        ampi_k_store8(x, a.data, a.dtype, at, ampi_k_group(0, left), 1);
        return;
    }
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        if (AMPI_TEAM * k < left) ampi_store_pattern(a.data, a.dtype, at + AMPI_TEAM * k, x[k]);
}
/* Eight of dy, whose `saved` are y, become the gradient before act: stored, and in x as stored, because that is what is
   summed. */
AMPI_K void ampi_k_bias_act8(
    const amp_bias_grad_job &j, amp_act act, uint32_t x[8], const uint32_t y[8], uint64_t at, uint64_t left, int wide) {
    if (act == AMP_ACT_NONE) return;
    ampi_k_act_grad8(x, act, y, 0);
    ampi_k_nearest8(x, j.dy.dtype);
    ampi_k_bias_store(x, j.dy, at, left, wide);
    ampi_k_decode8(x, j.dy.dtype);
}
/* This thread's columns of a part, into sum[8]: some rows at a time, for loads in flight. */
#define AMPI_K_AHEAD 2u
template <int masked>
AMPI_K void ampi_k_bias_rows(
    const ampi_k_bias_args &a, uint64_t column, uint64_t left, uint64_t row, uint64_t end, float sum[8]) {
    const amp_bias_grad_job &j = a.job;
    const amp_act act = masked ? AMP_RELU : j.act;
    uint32_t x[AMPI_K_AHEAD][8], y[AMPI_K_AHEAD][8], k, u;
    for (; row < end; row += AMPI_K_AHEAD) {
        uint64_t at = row * j.ld + column;
        AMP_UNROLL
        for (u = 0; u < AMPI_K_AHEAD; u++) {
            if (row + u >= end) continue;
            ampi_k_bias_load(x[u], j.dy, at + u * j.ld, left, a.wide);
            if (masked)
                ampi_k_bias_unmask(y[u], j, row + u, column, left, a.wide);
            else if (act != AMP_ACT_NONE)
                ampi_k_bias_load(y[u], j.saved, at + u * j.ld, left, a.wide);
        }
        AMP_UNROLL
        for (u = 0; u < AMPI_K_AHEAD; u++) {
            if (row + u >= end) continue;
            ampi_k_bias_act8(j, act, x[u], y[u], at + u * j.ld, left, a.wide);
            AMP_UNROLL
            for (k = 0; k < 8u; k++)
                sum[k] = amp_add(sum[k], ampi_float(x[u][k]));
        }
    }
}
/* One more row of 16 bits. */
AMPI_K void ampi_k_bias_add8(float sum[8], const ampi_k_raw *dy, amp_dtype t) {
    uint32_t v[8], k;
    ampi_k_quick8(v, dy, t);
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        sum[k] = amp_add(sum[k], ampi_float(v[k]));
}
/* The same for 16 bits, dy and saved alike: columns side by side, m of them; `byte`: where they are in a mask. */
template <int masked>
AMPI_K void ampi_k_bias_alike(const amp_bias_grad_job &j, amp_dtype t, uint64_t at, uint64_t byte, uint32_t rows,
    uint32_t m, int wide, float sum[8]) {
    const uint64_t pitch = ampi_mask_pitch(j.cols);
    uint32_t u, bits[AMPI_K_AHEAD];
    for (; rows; rows -= rows < AMPI_K_AHEAD ? rows : AMPI_K_AHEAD) {
        ampi_k_raw dy[AMPI_K_AHEAD], saved[AMPI_K_AHEAD];
        AMP_UNROLL
        for (u = 0; u < AMPI_K_AHEAD; u++) {
            uint64_t one = u < rows ? at + u * j.ld : at; /* the last row twice, and once used */
            ampi_k_fetch_short(&dy[u], j.dy, one, m, wide);
            if (masked)
                bits[u] = ((const uint8_t *)j.saved.data)[u < rows ? byte + u * pitch : byte];
            else if (j.act != AMP_ACT_NONE)
                ampi_k_fetch_short(&saved[u], j.saved, one, m, wide);
        }
        byte += AMPI_K_AHEAD * pitch;
        AMP_UNROLL
        for (u = 0; u < AMPI_K_AHEAD; u++) {
            if (u >= rows) break;
            if (masked)
                ampi_k_mask_raw(&dy[u], bits[u], t);
            else if (j.act != AMP_ACT_NONE)
                ampi_k_act_grad_raw(&dy[u], j.act, &saved[u], t);
            if (masked || j.act != AMP_ACT_NONE) ampi_k_store_short(&dy[u], j.dy, at, m, wide);
            at += j.ld;
            ampi_k_bias_add8(sum, &dy[u], t);
        }
    }
}
/* Sums alone, of 16 bits, aligned: nothing but loads, so there are more of them under way. */
#define AMPI_K_SUMS_AHEAD 8u
AMPI_K void ampi_k_bias_sums(const amp_bias_grad_job &j, amp_dtype t, uint64_t at, uint32_t rows, float sum[8]) {
    ampi_k_raw dy[AMPI_K_SUMS_AHEAD];
    uint32_t u;
    for (; rows >= AMPI_K_SUMS_AHEAD; rows -= AMPI_K_SUMS_AHEAD, at += AMPI_K_SUMS_AHEAD * j.ld) {
        AMP_UNROLL
        for (u = 0; u < AMPI_K_SUMS_AHEAD; u++)
            dy[u].a = *ampi_k_words_at(j.dy, at + u * j.ld);
        AMP_UNROLL
        for (u = 0; u < AMPI_K_SUMS_AHEAD; u++)
            ampi_k_bias_add8(sum, &dy[u], t);
    }
    AMP_NO_UNROLL
    for (; rows; rows--, at += j.ld) {
        dy[0].a = *ampi_k_words_at(j.dy, at);
        ampi_k_bias_add8(sum, &dy[0], t);
    }
}
/* A part, in a kernel of its own for each way, because one for all needs too many registers: bit 0, words, not aligned;
   bit 1, ReLU by a mask. */
#define AMPI_K_WORDS(way)  ((way) & 1)
#define AMPI_K_MASKED(way) ((way) >> 1)
template <int way>
AMPI_K void ampi_k_bias_part(
    const ampi_k_bias_args &a, uint64_t column, uint64_t left, uint64_t row, uint64_t end, float sum[8]) {
    uint64_t at = row * a.job.ld + column, byte = row * ampi_mask_pitch(a.job.cols) + column / 8u;
    const int words = AMPI_K_WORDS(way);
    uint32_t rows = (uint32_t)(end - row), m = words ? ampi_k_group(0, left) : 8u;
    if (!words && !(a.wide && a.alike))
        ampi_k_bias_rows<AMPI_K_MASKED(way)>(a, column, left, row, end, sum);
    else if (way == 0 && a.job.act == AMP_ACT_NONE && a.job.dy.dtype == AMP_F16)
        ampi_k_bias_sums(a.job, AMP_F16, at, rows, sum);
    else if (way == 0 && a.job.act == AMP_ACT_NONE)
        ampi_k_bias_sums(a.job, AMP_BF16, at, rows, sum);
    else if (a.job.dy.dtype == AMP_F16)
        ampi_k_bias_alike<AMPI_K_MASKED(way)>(a.job, AMP_F16, at, byte, rows, m, !words, sum);
    else
        ampi_k_bias_alike<AMPI_K_MASKED(way)>(a.job, AMP_BF16, at, byte, rows, m, !words, sum);
}
/* The sums of a part, from column c on and `apart`, to where a second kernel finds them, or straight to dbias. Side by
   side: by 128 bits, for stores of 32 touch each line eight times. */
AMPI_K void ampi_k_bias_keep(const ampi_k_bias_args &a, uint64_t part, uint64_t c, uint32_t apart, const float sum[8]) {
    float *to = a.partial ? a.partial + part * a.columns + c : NULL;
    uint32_t k, x[8];
    if (to && apart == 1u && a.columns % 8u == 0) {
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            x[k] = ampi_bits(sum[k]);
        ampi_k_put4(to, x, 1);
        ampi_k_put4(to + 4, x + 4, 1);
        return;
    }
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
        if (c + apart * k >= a.columns) continue;
        if (to)
            to[apart * k] = sum[k];
        else
            ampi_k_bias_out(a.job, a.from + c + apart * k, amp_widen(sum[k]));
    }
}
template <int way>
static __global__ void __launch_bounds__(AMP_BLOCK, 2) ampi_k_bias_grad(const AMP_GRID_CONSTANT ampi_k_bias_args a) {
    uint64_t stripes = (a.columns + AMPI_K_STRIPE - 1u) / AMPI_K_STRIPE, unit;
    uint32_t t = threadIdx.x % AMPI_TEAM, apart = AMPI_K_WORDS(way) || a.wide ? 1u : AMPI_TEAM;
    if (threadIdx.x >= AMPI_TEAM * a.teams) return;
    for (unit = (uint64_t)blockIdx.x * a.teams + threadIdx.x / AMPI_TEAM; unit < a.work;
        unit += (uint64_t)gridDim.x * a.teams) {
        uint64_t part = unit / stripes, c = unit % stripes * AMPI_K_STRIPE + (apart == 1u ? 8u * t : t);
        uint64_t end = (part + 1u) * AMP_ROWS;
        float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        if (c >= a.columns) continue;
        if (end > a.job.rows) end = a.job.rows;
        ampi_k_bias_part<way>(a, a.from + c, a.columns - c, part * AMP_ROWS, end, sum);
        ampi_k_bias_keep(a, part, c, apart, sum);
    }
}
/* Every AMP_COLUMN_LANES-th part of a column, from part p on: many are under way before the first is added. */
#define AMPI_K_PARTS_AHEAD 16u
AMPI_K double ampi_k_columns_lane(const ampi_k_bias_args &a, uint64_t p, uint64_t c) {
    const uint64_t step = AMP_COLUMN_LANES * a.columns;
    const float *from = a.partial + p * a.columns + c;
    double sum = 0.0;
    float x[AMPI_K_PARTS_AHEAD];
    uint32_t k;
    for (; p + AMP_COLUMN_LANES * (AMPI_K_PARTS_AHEAD - 1u) < a.parts; p += AMP_COLUMN_LANES * AMPI_K_PARTS_AHEAD) {
        AMP_UNROLL
        for (k = 0; k < AMPI_K_PARTS_AHEAD; k++, from += step)
            x[k] = *from;
        AMP_UNROLL
        for (k = 0; k < AMPI_K_PARTS_AHEAD; k++)
            sum = amp_dadd(sum, amp_widen(x[k]));
    }
    for (; p < a.parts; p += AMP_COLUMN_LANES, from += step)
        sum = amp_dadd(sum, amp_widen(*from));
    return sum;
}
/* The parts of each column: a block has 32 columns, and for each the lanes of the rule. */
static __global__ void __launch_bounds__(AMP_BLOCK, AMPI_K_BLOCKS(2))
    ampi_k_columns(const AMP_GRID_CONSTANT ampi_k_bias_args a) {
    AMP_SHARED(double, lanes, AMP_COLUMN_LANES *AMPI_TEAM);
    uint32_t t = threadIdx.x % AMPI_TEAM, l, k;
    uint64_t c = (uint64_t)blockIdx.x * AMPI_TEAM + t;
    for (l = threadIdx.x / AMPI_TEAM; l < AMP_COLUMN_LANES; l += AMPI_TEAMS)
        lanes[l * AMPI_TEAM + t] = c < a.columns ? ampi_k_columns_lane(a, l, c) : 0.0;
    __syncthreads();
    if (threadIdx.x < AMPI_TEAM && c < a.columns) {
        double x[AMP_COLUMN_LANES];
        AMP_UNROLL
        for (k = 0; k < AMP_COLUMN_LANES; k++)
            x[k] = lanes[k * AMPI_TEAM + t];
        ampi_k_bias_out(a.job, a.from + c, ampi_k_halve8(x));
    }
}
/* Without room for the sums of parts: a thread per column. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_columns_alone(const AMP_GRID_CONSTANT amp_bias_grad_job j) {
    uint64_t c = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x, row, r;
    double lane[AMP_COLUMN_LANES] = {0, 0, 0, 0, 0, 0, 0, 0};
    uint32_t l;
    for (; c < j.cols; c += (uint64_t)gridDim.x * AMP_BLOCK) {
        AMP_UNROLL
        for (l = 0; l < AMP_COLUMN_LANES; l++)
            lane[l] = 0.0;
        for (row = 0; row < j.rows; row += AMP_ROWS * AMP_COLUMN_LANES) {
            AMP_UNROLL
            for (l = 0; l < AMP_COLUMN_LANES; l++) {
                float sum = 0.0f;
                AMP_NO_UNROLL
                for (r = row + l * AMP_ROWS; r < row + (l + 1u) * AMP_ROWS && r < j.rows; r++)
                    sum = amp_add(sum, amp_load(j.dy.data, j.dy.dtype, r * j.ld + c * j.step));
                lane[l] = amp_dadd(lane[l], amp_widen(sum));
            }
        }
        ampi_k_bias_out(j, c, ampi_k_halve8(lane));
    }
}

/* alpha and beta as cuBLASLt can read them on the device, when they have a factor there and one on the host. */
static __global__ void __launch_bounds__(AMP_BLOCK)
    ampi_k_scalars(float *out, float alpha, const float *alpha_ptr, float beta, const float *beta_ptr) {
    if (blockIdx.x || threadIdx.x) return;
    out[0] = alpha_ptr ? amp_mul(alpha, *alpha_ptr) : alpha;
    out[1] = beta_ptr ? amp_mul(beta, *beta_ptr) : beta;
}

#define AMPI_K_COLUMNS(X) \
    X(ampi_k_bias_grad<0>) \
    X(ampi_k_bias_grad<1>) \
    X(ampi_k_bias_grad<2>) X(ampi_k_bias_grad<3>) X(ampi_k_columns) X(ampi_k_columns_alone) X(ampi_k_scalars)
/* ==== >>cuda-host ====================================================================================================
   Errors, launches, memory.   tests: tests/cuda_verbs.cpp, tests/test_context.c */

#define AMPI_CU_KIND     "cuda: " /* then the GPU's name */
#define AMPI_CU_PLANS    512u     /* products whose plan is remembered, unless desc.plans says otherwise, */
#define AMPI_CU_MOST     65536u   /* and at most */
#define AMPI_CU_SETTLED  10u      /* steps after which no product should be new */
#define AMPI_CU_DEFERRED 64u      /* blocks freed inside captures */
#define AMPI_CU_TRIES    16       /* candidates that tuning times, */
#define AMPI_CU_ROUNDS   5        /* each so often */
#define AMPI_CU_LOOKS    1000     /* at a copy of the record that the device is writing */
#define AMPI_CU_BIAS     262144u  /* bytes after the workspace for a bias of a different dtype */

typedef struct ampi_cu_scratch {
    ampi_k_finite_sums finite;
    ampi_k_histogram_bins histogram;
    ampi_k_inspect_state inspect;                /* amp_step: leaves zeros itself, so it is never cleared */
    double counts[AMP_LANES], losses[AMP_LANES]; /* amp_softmax_cross_entropy */
    uint32_t xent_ticket, _pad;                  /* the same: it wraps to 0 */
    float scalar[4];                             /* amp_gemm: 0 and 1, which never change, alpha and beta */
    alignas(16) float factor[3][4];              /* the same: factors of FP8, see ampi_cu_f8_factors */
} ampi_cu_scratch;

/* Everything that the choice of a product's algorithm depends on: the product, as ampi_cu_key_of leaves it. Compared as
   bytes: amp_gemm_desc has no padding. */
typedef amp_gemm_job ampi_cu_key;

typedef struct ampi_cu_plan {
    ampi_cu_key key;
    cublasLtMatmulAlgo_t algo;
    const char *why;    /* not cuBLASLt: static text */
    uint64_t used;      /* when it was used last, by ampi_cuda.uses; 0: nothing is here */
    uint32_t next;      /* the next plan in its bucket, from 1 on; 0: none */
    uint32_t lt;        /* 1: cuBLASLt, 0: ampi_k_gemm */
    uint32_t epilogue;  /* what cuBLASLt does after the product */
    uint32_t compute;   /* a cublasComputeType_t */
    uint32_t convert;   /* 1: the bias is rounded to the dtype that cuBLASLt wants first */
    uint32_t after;     /* 1: then ampi_k_epilogue, which adds the bias, too, if the epilogue does not */
    uint32_t unchecked; /* 1: from a file, not used yet */
    uint32_t _pad;
} ampi_cu_plan;

/* All kernels: the lists of the device's parts, and those of each kind of update and each format. */
#define AMPI_CU_KERNELS(X) \
    AMPI_K_ARRAYS(X) \
    AMPI_K_QUANTIZE(X) AMPI_K_INSPECT(X) AMPI_K_UPDATE(X) AMPI_K_LOSSES(X) AMPI_K_PRODUCTS(X) AMPI_K_COLUMNS(X)
#define AMPI_CU_ONE(...) +1u
#define AMPI_CU_UPDATES(X, kind) \
    X(ampi_k_update<kind>) X(ampi_k_update_pairs<kind>) X(ampi_k_count_update<kind>) X(ampi_k_update_codes<kind>)
#define AMPI_CU_RESIDENT (0u AMPI_CU_KERNELS(AMPI_CU_ONE) + AMP_UPDATE_COUNT * (0u AMPI_CU_UPDATES(AMPI_CU_ONE, 0)))
/* What the driver is asked; each NULL: it has none. */
typedef struct ampi_cu_driver {
    int (*state)(int device, unsigned *flags, int *active); /* of a primary context: is the device in use? */
    int (*get)(void **context);                             /* which is current on the thread? */
    int (*set)(void *context);
} ampi_cu_driver;
/* Where a thread was: its device; the context that is current instead of that one's primary one, or NULL. */
typedef struct ampi_cu_place {
    int device, _pad;
    void *context;
} ampi_cu_place;
typedef struct ampi_cuda {
    amp_ctx *ctx;                         /* for messages */
    int device, sms, blocks_per_sm, arch; /* arch: 90 for sm_90 */
    int here, away; /* 1: the thread uses this device; 1: it was at `back` before this verb, and will again */
    ampi_cu_place back;
    ampi_cu_driver driver;
    void *primary;              /* the device's context, as the driver names it; NULL: it does not */
    int relaxed;                /* 1: its capture mode is relaxed, */
    cudaStreamCaptureMode mode; /* and was, and will be, this one */
    uint32_t flags, dead, own_stream, own_cublas, own_workspace;
    int dependent;          /* 1: a kernel may be launched to follow another one, */
    int inspected, follows; /* what this verb queued last is an inspection; what is launched next shall follow it */
    cudaStream_t stream;
    cublasLtHandle_t cublas;
    void *workspace, *bias;
    uint64_t l2;                       /* bytes of its cache */
    size_t workspace_bytes, bias_room; /* bias_room: elements of 16 bits */
    ampi_cu_scratch *scratch, *mirror; /* device; page-locked host, where what was found is read */
    amp_allocator allocator, host;
    amp_cuda_error error;
    struct {
        void *p;
        size_t bytes;
    } deferred[AMPI_CU_DEFERRED]; /* to be freed when no capture is under way */
    struct {
        const void *kernel;
        int blocks, _pad;
    } resident[AMPI_CU_RESIDENT]; /* blocks of a kernel that an SM holds */
    uint32_t n_deferred, n_resident;
    char name[256 + sizeof AMPI_CU_KIND]; /* what amp_ctx_name gives */
    uint32_t n_plans, n_begun;            /* places for plans, and those that have been used */
    ampi_cu_plan *plans;                  /* in one block of host memory with */
    uint32_t *buckets;                    /* as many beginnings of lists, from 1 on; 0: empty */
    uint64_t uses;                        /* of plans, so far */
    uint64_t searches, stepped;           /* plans made; inspections, of which a step has one for each set */
    uint64_t late, late_step; /* steps after AMPI_CU_SETTLED in which plans were made, and the last of them */
} ampi_cuda;

static ampi_cuda *ampi_cu_self(amp_ctx *ctx) { return (ampi_cuda *)amp_ctx_self(ctx); }
/* NULL for a context of a different backend: only ours keeps its name in its own state, at this place. */
static const ampi_cuda *ampi_cu_of(const amp_ctx *ctx) {
    const ampi_cuda *c = ctx ? (const ampi_cuda *)amp_ctx_self(ctx) : NULL;
    if (!c || strncmp(amp_ctx_name(ctx), AMPI_CU_KIND, sizeof AMPI_CU_KIND - 1) != 0) return NULL;
    return amp_ctx_name(ctx) == c->name ? c : NULL;
}

/* Host memory, zeroed. */
static void *ampi_cu_host_new(const amp_allocator *host, size_t bytes) {
    void *p = host->alloc_fn ? host->alloc_fn(bytes, host->user) : malloc(bytes);
    return p ? memset(p, 0, bytes) : NULL;
}
static void ampi_cu_host_drop(const amp_allocator *host, void *p, size_t bytes) {
    if (host->free_fn && p)
        host->free_fn(p, bytes, host->user);
    else if (p)
        free(p);
}

/* Errors after which, in CUDA's words, the process must be terminated to go on. */
static int ampi_cu_sticky(cudaError_t e) {
    switch ((int)e) { /* by number where the headers of CUDA 12 have no name */
    case 226:         /* cudaErrorContained */
    case 721:         /* cudaErrorTensorMemoryLeak */
    case 911:         /* cudaErrorExternalDevice */
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorMpsClientTerminated:
    case cudaErrorCudartUnloading: return 1;
    default: return 0;
    }
}

/* What the driver says of earlier work: this call is harmless, in a capture, too. The runtime notes an error of it,
   which is cleared. Of a device that is dead such calls tell again and again. */
static cudaError_t ampi_cu_probe(cudaStream_t stream) {
    cudaStreamCaptureStatus capture;
    cudaError_t e = cudaStreamIsCapturing(stream, &capture);
    if (e != cudaSuccess) (void)cudaGetLastError();
    return e;
}
/* A failure of a call of ours that nobody is told about: nor does the runtime's note of it stay. */
static void ampi_cu_forget(cudaError_t e) {
    if (e != cudaSuccess) (void)cudaGetLastError();
}
static int ampi_cu_is_capture_error(cudaError_t e) {
    return e >= cudaErrorStreamCaptureUnsupported && e <= cudaErrorStreamCaptureWrongThread;
}
/* A failed call of the CUDA runtime: what kind of failure, and is the device still there? The runtime's own note of it
   is cleared, because the status tells the caller. */
static amp_status ampi_cu_kind(cudaError_t e, cudaStream_t stream) {
    cudaError_t probe;
    (void)cudaGetLastError();
    if (ampi_cu_sticky(e)) return AMP_ERR_DEAD;
    probe = ampi_cu_probe(stream);
    if (ampi_cu_sticky(probe)) return AMP_ERR_DEAD;
    if (ampi_cu_is_capture_error(e)) return AMP_ERR_CAPTURE;
    if (probe == e && ampi_cu_probe(stream) == e) return AMP_ERR_DEAD; /* a fault would be told once */
    return e == cudaErrorMemoryAllocation ? AMP_ERR_NO_MEMORY : AMP_ERR_CUDA;
}

static void ampi_cu_remember(ampi_cuda *c, amp_status s, const char *call, amp_cuda_library library, int code) {
    c->error.code = code;
    c->error.library = library;
    c->error.call = call;
    if (s == AMP_ERR_DEAD) c->dead = 1;
}
static amp_status ampi_cu_fail(ampi_cuda *c, const char *call, cudaError_t e) {
    amp_status s = ampi_cu_kind(e, c->stream);
    ampi_cu_remember(c, s, call, AMP_CUDA_RUNTIME, (int)e);
    return amp_fail(c->ctx, s, "%s: %s (%s)", call, cudaGetErrorName(e), cudaGetErrorString(e));
}
/* What a call of the runtime has returned, as a status. */
static amp_status ampi_cu_did(ampi_cuda *c, const char *call, cudaError_t e) {
    return e == cudaSuccess ? AMP_OK : ampi_cu_fail(c, call, e);
}

static const char *ampi_cu_cublas_name(cublasStatus_t e) {
    switch (e) {
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR: return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "a cuBLAS status without a name here";
    }
}

/* Has the device died meanwhile? cuBLASLt has a CUDA runtime of its own, whose last error ours does not know, so the
   driver is asked. */
static cudaError_t ampi_cu_beneath(const ampi_cuda *c) {
    const cudaError_t e = ampi_cu_probe(c->stream);
    return ampi_cu_is_capture_error(e) ? cudaSuccess : e;
}
static amp_status ampi_cu_cublas_kind(const ampi_cuda *c, cublasStatus_t e) {
    if (ampi_cu_beneath(c) != cudaSuccess) return AMP_ERR_DEAD;
    return e == CUBLAS_STATUS_ALLOC_FAILED ? AMP_ERR_NO_MEMORY : AMP_ERR_CUDA;
}
static amp_status ampi_cu_fail_cublas(ampi_cuda *c, const char *call, cublasStatus_t e) {
    amp_status s = ampi_cu_cublas_kind(c, e);
    ampi_cu_remember(c, s, call, AMP_CUDA_CUBLASLT, (int)e);
    return amp_fail(c->ctx, s, "%s: %s (%d)", call, ampi_cu_cublas_name(e), (int)e);
}

/* From here to the end of the verb the thread may allocate, free, wait and load kernels while somebody else's stream is
   being captured in global mode, which that capture would else not survive. */
static void ampi_cu_relax(ampi_cuda *c) {
    if (c->relaxed) return;
    c->mode = cudaStreamCaptureModeRelaxed;
    c->relaxed = cudaThreadExchangeStreamCaptureMode(&c->mode) == cudaSuccess;
    if (!c->relaxed) (void)cudaGetLastError(); /* whoever allocates then will say what is wrong */
}
static void ampi_cu_unrelax(ampi_cuda *c) {
    if (!c->relaxed) return;
    c->relaxed = 0;
    if (cudaThreadExchangeStreamCaptureMode(&c->mode) == cudaSuccess) return;
    (void)cudaThreadExchangeStreamCaptureMode(&c->mode); /* once more: the thread wants its mode back */
    (void)cudaGetLastError();
}

static void *ampi_cu_find(const char *name) { /* a function of the driver's */
    void *found = NULL;
    enum cudaDriverEntryPointQueryResult how;
#if CUDART_VERSION >= 12050
    cudaError_t e = cudaGetDriverEntryPointByVersion(name, &found, 12000, 0, &how);
#else
    cudaError_t e = cudaGetDriverEntryPoint(name, &found, 0, &how);
#endif
    if (e == cudaSuccess) return found;
    (void)cudaGetLastError();
    return NULL;
}
static ampi_cu_driver ampi_cu_find_driver(void) {
    ampi_cu_driver d;
    d.state = (int (*)(int, unsigned *, int *))ampi_cu_find("cuDevicePrimaryCtxGetState");
    d.get = (int (*)(void **))ampi_cu_find("cuCtxGetCurrent");
    d.set = (int (*)(void *))ampi_cu_find("cuCtxSetCurrent");
    return d;
}
static void *ampi_cu_current(const ampi_cu_driver *d) {
    void *now = NULL;
    return d->get && d->set && (d->get)(&now) == 0 ? now : NULL;
}
/* The thread's own device again, but not one that is not in use: cudaSetDevice would begin to use it. */
static cudaError_t ampi_cu_go_back(const ampi_cu_driver *d, const ampi_cu_place *to) {
    unsigned flags = 0;
    int active = 1;
    if (to->context) return (d->set)(to->context) == 0 ? cudaSuccess : cudaErrorInvalidDevice;
    if (d->state && (d->state)(to->device, &flags, &active) != 0) active = 1;
    return active ? cudaSetDevice(to->device) : cudaSuccess;
}
/* Is the thread, which is at `at`, somewhere else than the context? The device may be the same, and a context of the
   program's own (cuCtxCreate) current, which does not know our stream and memory: at->context becomes that one. */
static int ampi_cu_elsewhere(const ampi_cuda *c, ampi_cu_place *at) {
    at->context = NULL;
    if (at->device != c->device) return 1;
    if (c->primary) at->context = ampi_cu_current(&c->driver);
    if (at->context == c->primary) at->context = NULL;
    return at->context != NULL;
}

/* Before anything that works on the device: it becomes the thread's, until the verb ends. */
static amp_status ampi_cu_here(ampi_cuda *c) {
    if (c->dead)
        return amp_fail(c->ctx, AMP_ERR_DEAD, "the device is in a sticky error state since %s failed", c->error.call);
    if (c->here) return AMP_OK;
    AMPI_TRY(ampi_cu_did(c, "cudaGetDevice", cudaGetDevice(&c->back.device)));
    c->away = ampi_cu_elsewhere(c, &c->back); /* if the next call fails, ampi_cu_leave follows, too */
    if (c->away) AMPI_TRY(ampi_cu_did(c, "cudaSetDevice", cudaSetDevice(c->device)));
    c->here = 1;
    return AMP_OK;
}
static amp_status ampi_cu_leave(amp_ctx *ctx, amp_status s) {
    ampi_cuda *c = ampi_cu_self(ctx);
    cudaError_t e = c->away ? ampi_cu_go_back(&c->driver, &c->back) : cudaSuccess;
    c->here = c->away = 0;
    c->inspected = c->follows = 0;
    ampi_cu_unrelax(c);
    if (e == cudaSuccess) return s;
    if (s == AMP_OK) s = ampi_cu_fail(c, "cudaSetDevice", e);
    (void)cudaSetDevice(c->back.device); /* once more: the thread wants its device back */
    (void)cudaGetLastError();
    return s;
}

static amp_status ampi_cu_capture(ampi_cuda *c, int *capturing) {
    cudaStreamCaptureStatus st = cudaStreamCaptureStatusNone;
    cudaError_t e;
    AMPI_TRY(ampi_cu_here(c));
    e = cudaStreamIsCapturing(c->stream, &st);
    if (e == cudaErrorStreamCaptureImplicit) { /* the legacy stream, while a blocking stream is being captured */
        (void)cudaGetLastError();
        e = cudaSuccess;
        st = cudaStreamCaptureStatusActive;
    }
    *capturing = st != cudaStreamCaptureStatusNone;
    return ampi_cu_did(c, "cudaStreamIsCapturing", e);
}

static amp_status ampi_cu_wait(ampi_cuda *c) {
    AMPI_TRY(ampi_cu_here(c));
    ampi_cu_relax(c);
    return ampi_cu_did(c, "cudaStreamSynchronize", cudaStreamSynchronize(c->stream));
}

/* After a launch that was accepted: has the device died meanwhile? What the runtime remembers is the thread's, and may
   be of another device, or have been left by the caller: our device is asked, too. */
static amp_status ampi_cu_launched(ampi_cuda *c, const char *call) {
    cudaError_t e = ampi_cu_sticky(cudaPeekAtLastError()) ? ampi_cu_beneath(c) : cudaSuccess;
    int capturing = 0;
    amp_status s;
    if (e != cudaSuccess) return ampi_cu_fail(c, call, e);
    if (!(c->flags & AMP_CUDA_DEBUG)) return AMP_OK;
    s = ampi_cu_capture(c, &capturing);
    return s != AMP_OK || capturing ? s : ampi_cu_wait(c);
}

template <class... P, class... A>
static amp_status ampi_cu_launch_of(ampi_cuda *c, unsigned threads, unsigned grid, void (*kernel)(P...), A... args) {
    cudaLaunchConfig_t config = AMP_ZERO;
    cudaLaunchAttribute follow = AMP_ZERO;
    const int follows = c->follows;
    c->inspected = c->follows = 0;
    AMPI_TRY(ampi_cu_here(c));
    config.gridDim = dim3(grid);
    config.blockDim = dim3(threads);
    config.stream = c->stream;
    if (follows) {
        follow.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        follow.val.programmaticStreamSerializationAllowed = 1;
        config.attrs = &follow;
        config.numAttrs = 1;
    }
    AMPI_TRY(ampi_cu_did(c, "cudaLaunchKernelEx", cudaLaunchKernelEx(&config, kernel, args...)));
    return ampi_cu_launched(c, "cudaLaunchKernelEx");
}
template <class... P, class... A>
static amp_status ampi_cu_launch(ampi_cuda *c, unsigned grid, void (*kernel)(P...), A... args) {
    return ampi_cu_launch_of(c, AMP_BLOCK, grid, kernel, args...);
}

/* Blocks for `work` units of one block each: enough to fill the GPU once; kernels go round. */
static unsigned ampi_cu_least(const ampi_cuda *c, int per_sm, uint64_t work) {
    uint64_t most = (uint64_t)c->sms * (uint64_t)per_sm;
    if (work < 1) return 1;
    return (unsigned)(work < most ? work : most);
}
static unsigned ampi_cu_grid(const ampi_cuda *c, uint64_t work) { return ampi_cu_least(c, c->blocks_per_sm, work); }
/* How many of a kernel's blocks an SM really holds was asked when the context was made. */
static int ampi_cu_resident(const ampi_cuda *c, const void *kernel) {
    uint32_t i;
    for (i = 0; i < c->n_resident; i++)
        if (c->resident[i].kernel == kernel) return c->resident[i].blocks;
    return c->blocks_per_sm;
}
/* One of them, on so many units. */
template <class... P, class... A>
static amp_status ampi_cu_share(ampi_cuda *c, uint64_t work, void (*kernel)(P...), A... args) {
    return ampi_cu_launch(c, ampi_cu_least(c, ampi_cu_resident(c, (const void *)kernel), work), kernel, args...);
}
/* The same for one that reads and writes arrays, and whose blocks begin quickly: more blocks than the GPU holds, so
   that one begins wherever another ends. An H100 is 2 to 9 % faster so than where the same blocks go round. */
#define AMPI_CU_WAVES 16
template <class... P, class... A>
static amp_status ampi_cu_stream(ampi_cuda *c, uint64_t work, void (*kernel)(P...), A... args) {
    const int per_sm = AMPI_CU_WAVES * ampi_cu_resident(c, (const void *)kernel);
    return ampi_cu_launch(c, ampi_cu_least(c, per_sm, work), kernel, args...);
}
static uint64_t ampi_cu_parts(uint64_t n, uint64_t part) { return n / part + (n % part != 0); }

static amp_status ampi_cu_may_wait(amp_ctx *ctx) {
    ampi_cuda *c = ampi_cu_self(ctx);
    int capturing = 0;
    AMPI_TRY(ampi_cu_capture(c, &capturing));
    ampi_cu_relax(c);
    if (!capturing) return AMP_OK;
    return amp_fail(ctx, AMP_ERR_CAPTURE, "this call synchronises and the context's stream is being captured");
}

/* Never 0 in a capture. */
static uint64_t ampi_cu_capture_id(amp_ctx *ctx) {
    ampi_cuda *c = ampi_cu_self(ctx);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    int unnamed = c->stream == cudaStreamLegacy || c->stream == cudaStreamPerThread; /* of the thread's device, then */
    if (unnamed && ampi_cu_here(c) != AMP_OK) return 0;
    if (cudaStreamGetCaptureInfo(c->stream, &status, &id) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return status == cudaStreamCaptureStatusNone ? 0 : (uint64_t)id + 1;
}

/* Device memory by the context's allocator; the context's own stream is not being captured here. */
static cudaError_t ampi_cu_take(ampi_cuda *c, void **out, size_t bytes, const char **call) {
    *out = NULL;
    ampi_cu_relax(c);
    if (c->allocator.alloc_fn) {
        *call = "allocator.alloc_fn";
        *out = c->allocator.alloc_fn(bytes, c->allocator.user);
        return *out ? cudaSuccess : cudaErrorMemoryAllocation;
    }
    *call = c->flags & AMP_CUDA_POOL ? "cudaMallocAsync" : "cudaMalloc";
    return c->flags & AMP_CUDA_POOL ? cudaMallocAsync(out, bytes, c->stream) : cudaMalloc(out, bytes);
}
/* Not while the stream is being captured. bytes 0: pinned host memory, which queued work may still use. A dead device
   frees nothing. */
static void ampi_cu_give(ampi_cuda *c, void *p, size_t bytes) {
    if (!p) return;
    ampi_cu_relax(c);
    if (!bytes) {
        ampi_cu_forget(cudaStreamSynchronize(c->stream));
        ampi_cu_forget(cudaFreeHost(p));
    } else if (c->allocator.alloc_fn) { /* cudaFree waits for work that uses the memory; a caller's function may not */
        ampi_cu_forget(cudaStreamSynchronize(c->stream));
        c->allocator.free_fn(p, bytes, c->allocator.user);
    } else if (c->flags & AMP_CUDA_POOL) {
        ampi_cu_forget(cudaFreeAsync(p, c->stream));
    } else {
        ampi_cu_forget(cudaFree(p));
    }
}
/* What was to be freed inside a capture, which forbids it, is freed when the capture is over. */
static void ampi_cu_free_deferred(ampi_cuda *c) {
    while (c->n_deferred) {
        c->n_deferred--;
        ampi_cu_give(c, c->deferred[c->n_deferred].p, c->deferred[c->n_deferred].bytes);
    }
}

static amp_status ampi_cu_alloc(amp_ctx *ctx, void **out, size_t bytes) {
    ampi_cuda *c = ampi_cu_self(ctx);
    const char *call = "";
    int capturing = 0;
    cudaError_t e;
    AMPI_TRY(ampi_cu_capture(c, &capturing));
    if (capturing) return amp_fail(ctx, AMP_ERR_CAPTURE, "the context's stream is being captured");
    ampi_cu_free_deferred(c);
    e = ampi_cu_take(c, out, bytes, &call);
    if (e == cudaSuccess) return AMP_OK;
    if (!c->allocator.alloc_fn) return ampi_cu_fail(c, call, e);
    return amp_fail(ctx, AMP_ERR_NO_MEMORY, "the allocator has no %llu bytes", AMPI_ULL(bytes));
}

static void ampi_cu_release(amp_ctx *ctx, void *p, size_t bytes) {
    ampi_cuda *c = ampi_cu_self(ctx);
    int capturing = 0;
    (void)ampi_cu_capture(c, &capturing);
    if (!capturing) {
        ampi_cu_free_deferred(c);
        ampi_cu_give(c, p, bytes); /* also on a dead device: a lent allocator gets its memory back */
    } else if (c->n_deferred < AMPI_CU_DEFERRED) {
        c->deferred[c->n_deferred].p = p;
        c->deferred[c->n_deferred++].bytes = bytes;
    } else {
        amp_log_event(
            ctx, AMP_LOG_WARNING, "too much was freed inside a capture: %llu bytes are lost", AMPI_ULL(bytes));
    }
}

static amp_status ampi_cu_copy_async(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    ampi_cuda *c = ampi_cu_self(ctx);
    AMPI_TRY(ampi_cu_here(c));
    return ampi_cu_did(c, "cudaMemcpyAsync", cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, c->stream));
}
static amp_status ampi_cu_copy(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    AMPI_TRY(ampi_cu_copy_async(ctx, dst, src, bytes));
    return ampi_cu_wait(ampi_cu_self(ctx));
}

static amp_status ampi_cu_zero(amp_ctx *ctx, void *dst, size_t bytes) {
    ampi_cuda *c = ampi_cu_self(ctx);
    AMPI_TRY(ampi_cu_here(c));
    return ampi_cu_did(c, "cudaMemsetAsync", cudaMemsetAsync(dst, 0, bytes, c->stream));
}
static amp_status ampi_cu_sync(amp_ctx *ctx) { return ampi_cu_wait(ampi_cu_self(ctx)); }

/* ==== >>cuda-arrays ==================================================================================================
   tests: tests/test_arrays.c, tests/test_formats.c */

/* Elements from the i-th on are aligned for 8 at a time. */
static int ampi_cu_aligned(const void *p, amp_dtype t, size_t i) {
    size_t size = amp_dtype_size(t), unit = size == 1u ? 8u : 16u;
    return ((uintptr_t)p + i * size) % unit == 0;
}
/* The vector body that two arrays have in common: elements [head, head + 8 * groups), aligned in both. */
static void ampi_cu_body(
    const void *a, amp_dtype ta, const void *b, amp_dtype tb, uint64_t n, uint64_t *head, uint64_t *groups) {
    size_t h;
    *head = *groups = 0;
    for (h = 0; h < 16u && h < n; h++) {
        if (!ampi_cu_aligned(a, ta, h) || !ampi_cu_aligned(b, tb, h)) continue;
        *head = h;
        *groups = (n - h) / 8u;
        return;
    }
}

static amp_status ampi_cu_cast(amp_ctx *ctx, amp_array dst, amp_array src, size_t n, const amp_cast_desc *desc) {
    ampi_cuda *c = ampi_cu_self(ctx);
    ampi_k_cast_args a = AMP_ZERO;
    uint64_t work;
    AMPI_TRY(ampi_cu_here(c));
    if (dst.dtype == src.dtype && dst.data == src.data) return AMP_OK;
    if (dst.dtype == src.dtype) return ampi_cu_copy_async(ctx, dst.data, src.data, n * amp_dtype_size(dst.dtype));
    a.dst = dst.data;
    a.src = src.data;
    a.dst_type = dst.dtype;
    a.src_type = src.dtype;
    a.n = n;
    a.how = desc->rounding;
    a.saturate = desc->saturate != 0;
    a.seed = desc->seed;
    a.stream = desc->stream;
    a.offset = desc->offset;
    a.keys = ampi_k_keys_of(a.seed);
    if (dst.dtype == AMP_F64 || src.dtype == AMP_F64)
        return ampi_cu_stream(c, ampi_cu_parts(n, AMP_BLOCK), ampi_k_cast_f64, a);
    ampi_cu_body(dst.data, dst.dtype, src.data, src.dtype, n, &a.head, &a.groups);
    work = ampi_cu_parts(a.groups ? a.groups : n, AMP_BLOCK);
    if (dst.dtype == AMP_F32) return ampi_cu_stream(c, work, ampi_k_cast_wide, a);
    return ampi_cu_stream(c, work, ampi_k_cast, a);
}

/* Pieces of a list: parts of a chunk or, of many elements, longer ones, of which each block takes four or more. */
static uint64_t ampi_cu_pieces(const ampi_cuda *c, ampi_k_list *l) {
    const uint64_t enough = 4u * (uint64_t)c->sms * (uint64_t)c->blocks_per_sm;
    for (l->bits = 5u; l->bits && l->chunks << (l->bits - 1u) >= enough;)
        l->bits--;
    return l->chunks << l->bits;
}
/* The next launch of a list: up to AMPI_CU_FEW arrays from *next on. 0 when nothing is left. */
static int ampi_cu_list(ampi_k_list *l, const amp_array *dst, const amp_array *arrays, size_t n, size_t *next) {
    uint64_t before = l->first_chunk + l->chunks;
    memset(l, 0, sizeof *l);
    l->first_chunk = before;
    for (; *next < n && l->n < AMPI_CU_FEW; ++*next) {
        if (arrays[*next].count == 0) continue;
        l->data[l->n] = arrays[*next].data;
        l->count[l->n] = arrays[*next].count;
        l->type[l->n] = (uint8_t)arrays[*next].dtype;
        l->dst[l->n] = (dst ? dst : arrays)[*next].data;
        l->dst_type[l->n] = (uint8_t)(dst ? dst : arrays)[*next].dtype;
        l->chunks += ampi_cu_parts(arrays[*next].count, AMP_CHUNK);
        l->end[l->n++] = (uint32_t)l->chunks;
    }
    return l->n != 0;
}

static void ampi_cu_finite_report(const ampi_k_finite_sums *sums, const amp_array *arrays, amp_finite_report *out) {
    uint64_t key = ~sums->first, chunk = key >> 16;
    size_t a = 0;
    memset(out, 0, sizeof *out);
    out->nan = sums->nan;
    out->inf = sums->inf + sums->overflow;
    if (out->nan + out->inf == 0) return;
    for (; chunk >= ampi_cu_parts(arrays[a].count, AMP_CHUNK); a++)
        chunk -= ampi_cu_parts(arrays[a].count, AMP_CHUNK);
    out->first_array = a;
    out->first_index = (size_t)(chunk * AMP_CHUNK + (key & 0xffffu));
}

static amp_status ampi_cu_finite(amp_ctx *ctx, const amp_array *dst, const amp_array *arrays, size_t n,
    amp_scaler_state *unscale, amp_finite_report *host) {
    ampi_cuda *c = ampi_cu_self(ctx);
    ampi_k_list list = AMP_ZERO;
    size_t next = 0;
    ampi_k_finite_sums *sums = host ? &c->scratch->finite : NULL;
    AMPI_TRY(ampi_cu_here(c));
    if (host) AMPI_TRY(ampi_cu_zero(ctx, sums, sizeof *sums));
    while (ampi_cu_list(&list, dst, arrays, n, &next)) {
        const uint64_t pieces = ampi_cu_pieces(c, &list);
        if (unscale)
            AMPI_TRY(ampi_cu_stream(c, pieces, ampi_k_unscale, list, unscale, sums));
        else
            AMPI_TRY(ampi_cu_stream(c, pieces, ampi_k_finite, list, sums));
    }
    if (!host) return AMP_OK;
    AMPI_TRY(ampi_cu_copy(ctx, &c->mirror->finite, sums, sizeof *sums));
    ampi_cu_finite_report(&c->mirror->finite, arrays, host);
    return AMP_OK;
}

static amp_status ampi_cu_histogram(amp_ctx *ctx, const amp_array *arrays, size_t n, amp_histogram *host) {
    ampi_cuda *c = ampi_cu_self(ctx);
    ampi_k_list list = AMP_ZERO;
    size_t next = 0;
    ampi_k_histogram_bins *m = &c->mirror->histogram, *counted = &c->scratch->histogram;
    AMPI_TRY(ampi_cu_zero(ctx, counted, sizeof *counted));
    while (ampi_cu_list(&list, NULL, arrays, n, &next)) {
        const uint64_t pieces = ampi_cu_pieces(c, &list);
        AMPI_TRY(ampi_cu_share(c, pieces, ampi_k_histogram, list, counted));
    }
    AMPI_TRY(ampi_cu_copy(ctx, m, counted, sizeof *counted));
    memset(host, 0, sizeof *host);
    host->total = m->bins[0];
    host->zero = m->bins[1];
    host->inf = m->bins[2];
    host->nan = m->bins[3];
    memcpy(host->pow2, m->bins + 4, sizeof host->pow2);
    host->amax = ampi_float(m->amax);
    return AMP_OK;
}

/* Is every multiple of `step` elements aligned for 8 at a time? */
static int ampi_cu_wide(const amp_array *x, size_t step) {
    return !x->data || (step % 8u == 0 && ampi_cu_aligned(x->data, x->dtype, 0));
}
static amp_status ampi_cu_quantize_pass(ampi_cuda *c, const amp_quantize_job *j, uint32_t write, uint32_t see) {
    const int turn = write && j->dst_t.data != NULL;
    ampi_k_quantize_args a = AMP_ZERO;
    const size_t cols = turn ? j->cols : 8u; /* else one row */
    uint64_t tiles;
    a.job = *j;
    a.write = write;
    a.see = see;
    a.wide = ampi_cu_wide(&j->src, cols) && ampi_cu_wide(&j->dst, cols);
    a.wide_t = ampi_cu_wide(&j->dst_t, j->rows);
    if (turn) {
        tiles = ampi_cu_parts(j->rows, AMPI_K_DEEP) * ampi_cu_parts(j->cols, AMPI_K_TILE);
        return ampi_cu_share(c, tiles, ampi_k_quantize_turn, a);
    }
    tiles = ampi_cu_parts((uint64_t)j->rows * j->cols, 8u * AMP_BLOCK);
    return ampi_cu_share(c, tiles, ampi_k_quantize, a);
}
/* Current scaling reads the tensor twice, in two launches. */
static amp_status ampi_cu_quantize(amp_ctx *ctx, const amp_quantize_job *j) {
    ampi_cuda *c = ampi_cu_self(ctx);
    const int first = !j->history && !j->keep;
    if (first) AMPI_TRY(ampi_cu_quantize_pass(c, j, 0, 1));
    return ampi_cu_quantize_pass(c, j, 1, !first && !j->keep);
}

/* ==== >>cuda-step ====================================================================================================
   tests: tests/test_step.c, tests/test_layouts.c, tests/test_scaler.c */

/* Small sets are cut further, so that every SM has work. */
static uint32_t ampi_cu_inspect_cuts(const ampi_cuda *c, const amp_param_table *t) {
    uint64_t few = (uint64_t)c->sms * 2u;
    return (uint64_t)t->n_chunks * AMPI_CUTS < few && t->n_chunks <= AMP_LANES ? AMP_PARTS : AMPI_CUTS;
}
static amp_status ampi_cu_conclude(amp_ctx *ctx, const amp_inspect_job *job) {
    ampi_cuda *c = ampi_cu_self(ctx);
    c->stepped++;
    AMPI_TRY(ampi_cu_launch(c, 1, ampi_k_conclude, *job, &c->scratch->inspect));
    c->inspected = 1;
    return AMP_OK;
}
static amp_status ampi_cu_look(ampi_cuda *c, const amp_inspect_job *job) {
    uint32_t cuts = ampi_cu_inspect_cuts(c, &job->sum.table);
    uint64_t pieces = (uint64_t)job->sum.table.n_chunks * cuts;
    AMPI_TRY(ampi_cu_share(c, pieces, ampi_k_inspect, *job, cuts, &c->scratch->inspect));
    c->inspected = 1;
    return AMP_OK;
}
static amp_status ampi_cu_sum_gradients(amp_ctx *ctx, const amp_sum_job *job) {
    amp_inspect_job totals_alone = AMP_ZERO;
    totals_alone.sum = *job;
    return ampi_cu_look(ampi_cu_self(ctx), &totals_alone);
}
static amp_status ampi_cu_inspect(amp_ctx *ctx, const amp_inspect_job *job) {
    ampi_cuda *c = ampi_cu_self(ctx);
    c->stepped++;
    return ampi_cu_look(c, job);
}

/* A mirror, and what was read from it last. */
typedef struct ampi_cu_mirror {
    amp_step_mirror written;
    amp_step_record last;
} ampi_cu_mirror;
static_assert(offsetof(ampi_cu_mirror, written) == 0, "the front knows the first member alone");
static amp_status ampi_cu_mirror_create(amp_ctx *ctx, amp_step_mirror **out) {
    ampi_cuda *c = ampi_cu_self(ctx);
    void *p = NULL;
    const unsigned how = cudaHostAllocMapped | cudaHostAllocPortable;
    *out = NULL;
    AMPI_TRY(ampi_cu_here(c));
    ampi_cu_relax(c);
    AMPI_TRY(ampi_cu_did(c, "cudaHostAlloc", cudaHostAlloc(&p, sizeof(ampi_cu_mirror), how)));
    memset(p, 0, sizeof(ampi_cu_mirror));
    *out = (amp_step_mirror *)p;
    return AMP_OK;
}
static void ampi_cu_mirror_destroy(amp_ctx *ctx, amp_step_mirror *m) {
    if (m) ampi_cu_release(ctx, m, 0);
}
/* 1: it was whole. */
static int ampi_cu_mirror_read(const amp_step_mirror *mirror, amp_step_record *out) {
    uint32_t serial = 0, other = 0, i;
    for (i = 0; i < sizeof *out / 4u; i++) {
        const uint64_t word = *(const volatile uint64_t *)&mirror->word[i];
        const uint32_t value = (uint32_t)word, own = (uint32_t)(word >> 32);
        memcpy((char *)out + 4u * i, &value, 4u);
        if (i == 0) serial = own;
        other |= own ^ serial;
    }
    return other == 0;
}
/* The device writes a record in about a microsecond; but it may be stopped on the way, by a debugger or for another
   process. Then the record of the last call is as new as one that is whole can be. */
static amp_status ampi_cu_poll(
    amp_ctx *ctx, const amp_step_record *record, const amp_step_mirror *mirror, amp_step_record *out) {
    ampi_cu_mirror *own = (ampi_cu_mirror *)mirror;
    amp_step_record now;
    int tries;
    (void)ctx;
    (void)record;
    for (tries = 0; tries < AMPI_CU_LOOKS; tries++) {
        if (!ampi_cu_mirror_read(mirror, &now)) continue;
        own->last = now;
        break;
    }
    *out = own->last;
    return AMP_OK;
}

static amp_status ampi_cu_set_record(
    amp_ctx *ctx, amp_step_record *record, amp_step_mirror *mirror, const amp_step_record *host) {
    amp_status s = ampi_cu_copy(ctx, record, host, sizeof *record);
    uint32_t i;
    if (s != AMP_OK || !mirror) return s;
    for (i = 0; i < sizeof *host / 4u; i++) { /* the copy has waited: nobody else writes it now */
        uint32_t value;
        memcpy(&value, (const char *)host + 4u * i, 4u);
        mirror->word[i] = mirror->word[i] >> 32 << 32 | value;
    }
    return AMP_OK;
}
/* Into how many pieces of about so many elements a chunk is cut, as a power of 2, for an average chunk; of small sets
   into more, down to eight elements a thread, so that every SM has work. */
static uint32_t ampi_cu_cuts(const ampi_cuda *c, const amp_param_table *t, uint64_t piece) {
    uint64_t average = t->n_elements / (t->n_chunks ? t->n_chunks : 1u), few = 2u * (uint64_t)c->sms;
    uint32_t cuts = 0;
    while (average > piece << cuts && piece << cuts < AMP_CHUNK)
        cuts++;
    while (t->n_elements << cuts < few * AMP_CHUNK && (uint32_t)AMP_BLOCK << cuts < AMP_CHUNK / 8u)
        cuts++;
    return cuts;
}

static amp_status ampi_cu_update(amp_ctx *ctx, const amp_update_job *job) {
    ampi_cuda *c = ampi_cu_self(ctx);
    const int codes = job->moment == AMP_MOMENT_8BIT; /* whose blocks take longer to begin */
    uint32_t cuts = ampi_cu_cuts(c, &job->table, codes ? 2u * AMPI_PIECE : AMPI_PIECE);
    uint64_t pieces = (uint64_t)job->table.n_chunks << cuts;
    c->follows = c->dependent && c->inspected && !job->count; /* counts are zeroed between the two */
#define AMP_X(kind_, rule, moments) \
    if (job->kind == kind_ && codes) return ampi_cu_stream(c, pieces, ampi_k_update_codes<kind_>, *job, cuts); \
    if (job->kind == kind_ && job->count) return ampi_cu_stream(c, pieces, ampi_k_count_update<kind_>, *job, cuts); \
    if (job->kind == kind_ && job->pairs) return ampi_cu_stream(c, pieces, ampi_k_update_pairs<kind_>, *job, cuts); \
    if (job->kind == kind_) return ampi_cu_stream(c, pieces, ampi_k_update<kind_>, *job, cuts);
    AMP_UPDATE_LIST(AMP_X)
#undef AMP_X
    return AMP_OK;
}
static amp_status ampi_cu_apply(amp_ctx *ctx, const amp_apply_job *job) {
    ampi_cuda *c = ampi_cu_self(ctx);
    uint64_t pieces = job->table.n_elements / AMPI_PIECE + 1u; /* at least those of the parameter */
    if (job->count) return ampi_cu_share(c, pieces, ampi_k_count_apply, *job);
    return ampi_cu_share(c, pieces, ampi_k_apply, *job);
}
static amp_status ampi_cu_add(amp_ctx *ctx, const amp_add_job *job) {
    ampi_cuda *c = ampi_cu_self(ctx);
    uint32_t cuts = ampi_cu_cuts(c, &job->table, AMPI_PIECE);
    return ampi_cu_share(c, (uint64_t)job->table.n_chunks << cuts, ampi_k_add, *job, cuts);
}
static amp_status ampi_cu_clip(amp_ctx *ctx, const amp_clip_job *job) {
    ampi_cuda *c = ampi_cu_self(ctx);
    uint32_t cuts = ampi_cu_cuts(c, &job->table, AMPI_PIECE);
    return ampi_cu_share(c, (uint64_t)job->table.n_chunks << cuts, ampi_k_clip, *job, cuts);
}
static amp_status ampi_cu_next_scale(amp_ctx *ctx, amp_scaler_state *state) {
    return ampi_cu_launch(ampi_cu_self(ctx), 1, ampi_k_next_scale, state);
}

/* ==== >>cuda-losses ==================================================================================================
   tests: tests/test_products.c */

/* A row is read twice: as many at a time as the second-level cache holds twice, but two blocks per SM. */
static unsigned ampi_cu_xent_grid(const ampi_cuda *c, const amp_xent_job *d) {
    uint64_t fit = c->l2 / (2u * d->classes * amp_dtype_size(d->logits.dtype)), least = 2u * (uint64_t)c->sms;
    uint64_t grid = ampi_cu_grid(c, d->rows);
    if (fit < least) fit = least;
    return (unsigned)(grid < fit ? grid : fit);
}
/* A kernel of cross-entropy; the ticket goes to the one that ends the loss. */
typedef void (*ampi_cu_xent_kernel)(amp_xent_job, const double *, uint32_t, uint32_t *);
static ampi_cu_xent_kernel ampi_cu_xent_any(const amp_xent_job *d) {
    if (d->each) return ampi_k_xent<AMP_AUTO>;
    if (d->logits.dtype == AMP_F16) return ampi_k_xent<AMP_F16>;
    if (d->logits.dtype == AMP_BF16) return ampi_k_xent<AMP_BF16>;
    return d->logits.dtype == AMP_F32 ? ampi_k_xent<AMP_F32> : ampi_k_xent<AMP_AUTO>;
}
static ampi_cu_xent_kernel ampi_cu_xent_few(const amp_xent_job *d) { /* NULL: not for this one */
    if (d->classes > AMP_PART || d->each) return NULL;
    if (d->logits.dtype == AMP_F16) return ampi_k_xent_few<AMP_F16>;
    if (d->logits.dtype == AMP_BF16) return ampi_k_xent_few<AMP_BF16>;
    return d->logits.dtype == AMP_F32 ? ampi_k_xent_few<AMP_F32> : NULL;
}
static amp_status ampi_cu_xent_rows(
    ampi_cuda *c, const amp_xent_job *d, const double *counts, uint32_t lanes, uint32_t *ticket) {
    ampi_cu_xent_kernel few = ampi_cu_xent_few(d);
    const uint64_t rows = d->classes <= AMPI_K_SHORT ? AMP_BLOCK : AMPI_TEAMS; /* at a time */
    if (few) return ampi_cu_share(c, ampi_cu_parts(d->rows, rows), few, *d, counts, lanes, ticket);
    return ampi_cu_launch(c, ampi_cu_xent_grid(c, d), ampi_cu_xent_any(d), *d, counts, lanes, ticket);
}
static amp_status ampi_cu_xent(amp_ctx *ctx, const amp_xent_job *d) {
    ampi_cuda *c = ampi_cu_self(ctx);
    double *counts = c->scratch->counts, *losses = c->scratch->losses;
    uint32_t *ticket = &c->scratch->xent_ticket;
    uint64_t chunks = ampi_cu_parts(d->all, AMP_CHUNK);
    uint32_t lanes = (uint32_t)(chunks < AMP_LANES ? chunks : AMP_LANES);
    const int ends = d->loss && d->first + d->rows == d->all;
    if (!d->sum) AMPI_TRY(ampi_cu_launch(c, lanes, ampi_k_xent_counts, *d, counts));
    AMPI_TRY(ampi_cu_xent_rows(c, d, counts, lanes, ends && chunks == 1u ? ticket : NULL));
    if (!ends || chunks == 1u) return AMP_OK;
    return ampi_cu_launch(c, lanes, ampi_k_xent_losses, *d, (const double *)counts, losses, ticket);
}
/* Elements before the groups of eight, which begin where the random words' groups of four do: at the first such place
   that is aligned in both arrays (*wide is 1) or, if none is, at the first. */
static uint64_t ampi_cu_dropout_head(const amp_dropout_job *d, int *wide) {
    uint64_t first = (0u - d->rng.offset) & 3u, head = first, h;
    *wide = 0;
    for (h = first; h < 8u && !*wide; h += 4u) {
        *wide = ampi_cu_aligned(d->x.data, d->x.dtype, h) && ampi_cu_aligned(d->y.data, d->y.dtype, h);
        if (*wide) head = h;
    }
    return head < d->count ? head : d->count;
}
static amp_status ampi_cu_dropout(amp_ctx *ctx, const amp_dropout_job *d) {
    ampi_cuda *c = ampi_cu_self(ctx);
    int wide = 0;
    uint64_t head = ampi_cu_dropout_head(d, &wide), groups = (d->count - head) / 8u;
    return ampi_cu_stream(c, ampi_cu_parts(groups ? groups : d->count, AMP_BLOCK), ampi_k_dropout, *d,
        ampi_k_keys_of(d->rng.seed), amp_dropout_threshold(d->p), amp_dropout_factor(d->p), head, groups, wide);
}

/* ==== >>cuda-products ================================================================================================
   tests: tests/test_products.c, tests/test_product_table.c */

static amp_status ampi_cu_epilogue(ampi_cuda *c, const amp_gemm_job *p, int add_bias) {
    size_t step = p->ldd; /* bits of every distance between rows */
    int wide;
    if (p->batch > 1u) step |= p->stride_d;
    if (p->m == 1u && p->batch == 1u) step = 0;
    wide = ampi_cu_wide(&p->d, step) && (p->aux.dtype == AMP_MASK || ampi_cu_wide(&p->aux, step));
    return ampi_cu_launch(c, ampi_cu_grid(c, ampi_cu_parts(p->batch * p->m * ampi_cu_parts(p->n, 8), AMP_BLOCK)),
        amp_gemm_masked(p) ? ampi_k_epilogue<1> : ampi_k_epilogue<0>, *p, add_bias, wide, ampi_cu_wide(&p->bias, 0));
}

static amp_status ampi_cu_activation(amp_ctx *ctx, const amp_activation_job *j) {
    const int wide = ampi_cu_wide(&j->in, 0) && ampi_cu_wide(&j->saved, 0) && ampi_cu_wide(&j->out, 0);
    const amp_dtype t = j->out.dtype;
    const int alike = j->in.dtype == t && (!j->saved.data || j->saved.dtype == t);
    const uint64_t work = ampi_cu_parts(j->count, 8u * AMP_BLOCK);
    ampi_cuda *c = ampi_cu_self(ctx);
    if (alike && t == AMP_F16) return ampi_cu_share(c, work, ampi_k_activation_alike<AMP_F16>, *j, wide);
    if (alike && t == AMP_BF16) return ampi_cu_share(c, work, ampi_k_activation_alike<AMP_BF16>, *j, wide);
    return ampi_cu_share(c, work, ampi_k_activation, *j, wide);
}
/* Only the activation: where dy and saved have the same 16 bits, the kernel that knows their format, which needs fewer
   registers, so that an SM holds more of it; else the epilogue of a product that is there already. */
static amp_status ampi_cu_act_grad(ampi_cuda *c, const amp_bias_grad_job *j) {
    amp_gemm_job p = AMP_ZERO;
    amp_activation_job a = AMP_ZERO;
    a.in = a.out = j->dy;
    a.saved = j->saved;
    a.act = j->act;
    a.count = j->rows * j->cols;
    if (j->dy.dtype == j->saved.dtype && amp_dtype_size(j->dy.dtype) == 2u) return ampi_cu_activation(c->ctx, &a);
    p.m = p.batch = 1;
    p.n = p.ldd = j->rows * j->cols;
    if (j->saved.dtype == AMP_MASK) {
        p.m = j->rows;
        p.n = p.ldd = j->cols;
    }
    p.d = j->dy;
    p.aux = j->saved;
    p.act = j->act;
    p.backward = 1;
    return ampi_cu_epilogue(c, &p, 0);
}
/* Fewer teams a block where else some SMs had none. */
static amp_status ampi_cu_bias_launch(ampi_cuda *c, ampi_k_bias_args *a) {
    const int words = a->alike && !a->wide, masked = a->job.act != AMP_ACT_NONE && a->job.saved.dtype == AMP_MASK;
    const uint64_t each = ampi_cu_parts(a->work, 2u * (uint64_t)c->sms);
    uint64_t blocks;
    a->teams = (uint32_t)(each < AMPI_TEAMS ? each : AMPI_TEAMS);
    blocks = ampi_cu_parts(a->work, a->teams);
    switch (words + 2 * masked) {
    case 0: return ampi_cu_share(c, blocks, ampi_k_bias_grad<0>, *a);
    case 1: return ampi_cu_share(c, blocks, ampi_k_bias_grad<1>, *a);
    case 2: return ampi_cu_share(c, blocks, ampi_k_bias_grad<2>, *a);
    default: return ampi_cu_share(c, blocks, ampi_k_bias_grad<3>, *a);
    }
}
/* Sums of parts go to the workspace, which is free between products: as many stripes of columns at a time as fit. */
static amp_status ampi_cu_bias_grad(amp_ctx *ctx, const amp_bias_grad_job *j) {
    ampi_cuda *c = ampi_cu_self(ctx);
    ampi_k_bias_args a = AMP_ZERO;
    uint64_t room;
    int mask;
    if (!j->dbias.data) return ampi_cu_act_grad(c, j);
    a.job = *j;
    a.parts = ampi_cu_parts(j->rows, AMP_ROWS);
    mask = j->act == AMP_ACT_NONE || j->saved.dtype == AMP_MASK; /* or nothing: any address will do */
    a.wide = ampi_cu_wide(&j->dy, j->ld) && j->cols % 8u == 0 && (mask || ampi_cu_wide(&j->saved, j->cols));
    a.alike = amp_dtype_size(j->dy.dtype) == 2u && (mask || j->dy.dtype == j->saved.dtype);
    a.partial = a.parts > 1u ? (float *)c->workspace : NULL;
    room = a.partial ? c->workspace_bytes / (4u * a.parts) / AMPI_K_STRIPE * AMPI_K_STRIPE : j->cols;
    if (room == 0 || j->step != 1u) {
        if (j->act != AMP_ACT_NONE) AMPI_TRY(ampi_cu_act_grad(c, j));
        return ampi_cu_launch(c, ampi_cu_grid(c, ampi_cu_parts(j->cols, AMP_BLOCK)), ampi_k_columns_alone, *j);
    }
    for (a.from = 0; a.from < j->cols; a.from += a.columns) {
        a.columns = j->cols - a.from < room ? j->cols - a.from : room;
        a.work = a.parts * ampi_cu_parts(a.columns, AMPI_K_STRIPE);
        AMPI_TRY(ampi_cu_bias_launch(c, &a));
        if (a.partial) AMPI_TRY(ampi_cu_launch(c, (unsigned)ampi_cu_parts(a.columns, AMPI_TEAM), ampi_k_columns, a));
    }
    return AMP_OK;
}
/* The column sums of a product's d, where its plan did not make them. */
static amp_status ampi_cu_column_sums(ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_plan *plan) {
    const amp_bias_grad_job sums = amp_gemm_sums(p);
    if (!p->dbias.data || (plan->lt && plan->epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD)) return AMP_OK;
    return ampi_cu_bias_grad(c->ctx, &sums);
}

/* ---- plans: how a product is made, by cuBLASLt or by the plain kernel.
   tests: tests/cuda_verbs.cpp, tests/test_products.c, tests/test_product_table.c ---- */

static int ampi_cu_f8(amp_dtype t) { return amp_dtype_size(t) == 1u; }
/* C is D, or not read. */
static int ampi_cu_in_place(const amp_gemm_job *p) { return p->c.data == p->d.data || !p->c.data; }
static cudaDataType ampi_cu_type(amp_dtype t) {
    switch (t) {
    case AMP_F32: return CUDA_R_32F;
    case AMP_F16: return CUDA_R_16F;
    case AMP_BF16: return CUDA_R_16BF;
    case AMP_F8E4M3: return CUDA_R_8F_E4M3;
    default: return CUDA_R_8F_E5M2;
    }
}
/* The dtype that cuBLASLt wants a bias in, and (with an FP8 d) a C that is not read. */
static amp_dtype ampi_cu_bias_type(const amp_gemm_job *p) {
    if (!ampi_cu_f8(p->a.dtype)) return p->d.dtype;
    if (ampi_cu_f8(p->d.dtype) && p->aux.data && p->aux.dtype == AMP_F16) return AMP_F16; /* as its aux */
    return p->d.dtype == AMP_F16 ? AMP_F16 : AMP_BF16;
}

/* A key is the product without what its choice does not depend on: of an address its alignment stays (bytes, at most
   256, of every matrix of a batch; 0: there is no operand), of a pointer to a number that it is there. What
   amp_gemm_desc may get is in the key by itself. With sum_batches 1 and batch 1 the product is one of several that add
   up (ampi_cu_planned), and all of them but the first have one key: alignment is that of all their factors. */
static void ampi_cu_key_of(ampi_cu_key *key, const amp_gemm_job *p) {
    const size_t outputs = p->batch > 1u,
                 factors = outputs || p->sum_batches; /* 1: there are several, a stride apart */
    const struct {
        amp_array *x;
        size_t stride;
    } operands[7] = {
        {&key->a, factors * p->stride_a},
        {&key->b, factors * p->stride_b},
        {&key->c, outputs * p->stride_c},
        {&key->d, outputs * p->stride_d},
        {&key->bias, 0},
        {&key->aux, outputs * p->stride_d},
        {&key->dbias, 0},
    };
    const float **const numbers[4] = {&key->alpha_ptr, &key->scale_a, &key->scale_b, &key->scale_d};
    const amp_optional any = AMP_ZERO;
    uint32_t i;
    *key = *p;
    for (i = 0; i < 7u; i++) {
        amp_array *x = operands[i].x;
        const size_t apart = operands[i].stride * amp_dtype_size(x->dtype);
        const uintptr_t bits = (uintptr_t)x->data | apart | 256u;
        if (!x->data) x->dtype = AMP_AUTO;
        if (x->data) x->data = (void *)(bits & (0u - bits));
        x->flags = 0;
        x->count = 0;
    }
    if (ampi_cu_in_place(p)) key->c.flags = 1;
    if (!(p->flags & AMP_GEMM_F16_SUM)) key->alpha = key->beta = any; /* with it they must be halves */
    key->alpha.given = key->beta.given = 0;
    if (p->beta_ptr) key->alpha_ptr = p->beta_ptr; /* one of them is as both */
    key->beta_ptr = NULL;
    for (i = 0; i < 4u; i++)
        *numbers[i] = (const float *)(uintptr_t)(*numbers[i] != NULL);
    key->amax_d = (float *)(uintptr_t)(p->amax_d != NULL);
}
static uint32_t ampi_cu_align(const amp_array *x) { return (uint32_t)(uintptr_t)x->data; } /* of a key's operand */

typedef struct ampi_cu_lt { /* cuBLASLt's descriptors, on the stack */
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a, b, c, d;
    const char *call;      /* that failed, */
    cublasStatus_t status; /* and how */
} ampi_cu_lt;

static void ampi_cu_lt_try(ampi_cu_lt *lt, const char *call, cublasStatus_t status) {
    if (lt->status != CUBLAS_STATUS_SUCCESS) return; /* the first failure counts */
    lt->status = status;
    lt->call = call;
}
static void ampi_cu_lt_set(ampi_cu_lt *lt, cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes) {
    ampi_cu_lt_try(lt, "cublasLtMatmulDescSetAttribute", cublasLtMatmulDescSetAttribute(&lt->desc, what, value, bytes));
}
static void ampi_cu_lt_layout(ampi_cu_lt *lt, cublasLtMatrixLayoutOpaque_t *l, amp_dtype t, size_t rows, size_t cols,
    size_t ld, size_t stride, size_t batch) {
    int32_t count = (int32_t)batch;
    int64_t offset = (int64_t)stride;
    ampi_cu_lt_try(
        lt, "cublasLtMatrixLayoutInit", cublasLtMatrixLayoutInit(l, ampi_cu_type(t), rows, cols, (int64_t)ld));
    if (batch <= 1u) return;
    ampi_cu_lt_try(lt, "cublasLtMatrixLayoutSetAttribute",
        cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    ampi_cu_lt_try(lt, "cublasLtMatrixLayoutSetAttribute",
        cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset, sizeof offset));
}

#define AMPI_CU_HAS(epilogue, what) (((uint32_t)(epilogue) & (uint32_t)(what)) == (uint32_t)(what))

static void ampi_cu_lt_epilogue(ampi_cu_lt *lt, const ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_plan *plan) {
    cublasLtEpilogue_t epilogue = (cublasLtEpilogue_t)plan->epilogue;
    int sums = epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD;
    const void *bias = plan->convert ? c->bias : p->bias.data;
    cudaDataType aux_type = ampi_cu_type(p->aux.dtype);
    int64_t ld = (int64_t)p->ldd;
    if (epilogue == CUBLASLT_EPILOGUE_DEFAULT) return;
    if (sums) bias = p->dbias.data;
    ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (sums || AMPI_CU_HAS(epilogue, CUBLASLT_EPILOGUE_BIAS)) {
        cudaDataType type = ampi_cu_type(ampi_cu_bias_type(p));
        ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
        if (ampi_cu_f8(p->a.dtype)) ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
    }
    if (AMPI_CU_HAS(epilogue, CUBLASLT_EPILOGUE_GELU_AUX) || AMPI_CU_HAS(epilogue, CUBLASLT_EPILOGUE_DGELU)) {
        ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &p->aux.data, sizeof p->aux.data);
        ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld);
        if (p->aux.dtype != p->d.dtype || ampi_cu_f8(p->d.dtype)) /* beside an FP8 d it would be taken for 16 bits */
            ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, &aux_type, sizeof aux_type);
    }
}
static void ampi_cu_lt_f8(ampi_cu_lt *lt, const amp_gemm_job *p) {
    int8_t fast = p->flags & AMP_GEMM_FAST_FP8 ? 1 : 0;
    ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
    if (p->scale_b) ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &p->scale_b, sizeof p->scale_b);
    if (p->scale_a) ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &p->scale_a, sizeof p->scale_a);
    if (p->scale_d) ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, &p->scale_d, sizeof p->scale_d);
    if (p->amax_d) ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, &p->amax_d, sizeof p->amax_d);
}
/* A row-major matrix is the transpose of a column-major one, and D = A B is D^T = B^T A^T: cuBLASLt's first operand is
   our B, its second our A, its m our n. Each keeps its own transposition. The bias then runs along cuBLASLt's rows, as
   it wants. */
static void ampi_cu_lt_describe(ampi_cu_lt *lt, const ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_plan *plan) {
    cublasOperation_t op_a = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t op_b = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    size_t a_rows = p->trans_b ? p->k : p->n, a_cols = p->k + p->n - a_rows;
    size_t b_rows = p->trans_a ? p->m : p->k, b_cols = p->m + p->k - b_rows;
    cudaDataType scalars = plan->compute == CUBLAS_COMPUTE_16F ? CUDA_R_16F : CUDA_R_32F;
    amp_dtype type_c = ampi_cu_f8(p->d.dtype) ? ampi_cu_bias_type(p) : p->d.dtype;
    lt->status = CUBLAS_STATUS_SUCCESS;
    lt->call = "";
    ampi_cu_lt_try(
        lt, "cublasLtMatmulDescInit", cublasLtMatmulDescInit(&lt->desc, (cublasComputeType_t)plan->compute, scalars));
    if (p->alpha_ptr || p->beta_ptr) {
        cublasLtPointerMode_t mode = CUBLASLT_POINTER_MODE_DEVICE;
        ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode);
    }
    ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a);
    ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b);
    ampi_cu_lt_epilogue(lt, c, p, plan);
    if (ampi_cu_f8(p->a.dtype)) ampi_cu_lt_f8(lt, p);
    ampi_cu_lt_layout(lt, &lt->a, p->b.dtype, a_rows, a_cols, p->ldb, p->stride_b, p->batch);
    ampi_cu_lt_layout(lt, &lt->b, p->a.dtype, b_rows, b_cols, p->lda, p->stride_a, p->batch);
    ampi_cu_lt_layout(lt, &lt->c, type_c, p->n, p->m, p->ldc, p->stride_c, p->batch);
    ampi_cu_lt_layout(lt, &lt->d, p->d.dtype, p->n, p->m, p->ldd, p->stride_d, p->batch);
}

/* The workspace limit and the alignment must be said (their defaults are 0 and 256 bytes), and partial sums of a split
   k must not be rounded to the output's dtype unless that was allowed. */
static void ampi_cu_lt_prefer(
    const ampi_cuda *c, ampi_cu_lt *lt, const ampi_cu_key *key, cublasLtMatmulPreferenceOpaque_t *prefer) {
    uint64_t workspace = c->workspace_bytes;
    uint32_t reduction = key->flags & AMP_GEMM_REDUCED ? (uint32_t)CUBLASLT_REDUCTION_SCHEME_MASK
                                                       : (uint32_t)CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    uint32_t first = ampi_cu_align(&key->b), second = ampi_cu_align(&key->a);
    uint32_t third = ampi_cu_align(key->c.data ? &key->c : &key->d), fourth = ampi_cu_align(&key->d), i;
    const struct {
        cublasLtMatmulPreferenceAttributes_t what;
        const void *value;
        size_t bytes;
    } wishes[] = {{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof reduction},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &first, sizeof first},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &second, sizeof second},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &third, sizeof third},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &fourth, sizeof fourth}};
    ampi_cu_lt_try(lt, "cublasLtMatmulPreferenceInit", cublasLtMatmulPreferenceInit(prefer));
    for (i = 0; i < sizeof wishes / sizeof wishes[0] && lt->status == CUBLAS_STATUS_SUCCESS; i++)
        ampi_cu_lt_try(lt, "cublasLtMatmulPreferenceSetAttribute",
            cublasLtMatmulPreferenceSetAttribute(prefer, wishes[i].what, wishes[i].value, wishes[i].bytes));
}
/* It does not take this product: not a failure of another kind. */
static int ampi_cu_lt_refuses(cublasStatus_t e) {
    return e == CUBLAS_STATUS_NOT_SUPPORTED || e == CUBLAS_STATUS_INVALID_VALUE || e == CUBLAS_STATUS_ARCH_MISMATCH;
}
/* Asks for `most` algorithms of one way, which plan has with the key; the best first. *found 0: cuBLASLt does not take
   this product. */
static amp_status ampi_cu_lt_search(ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_plan *plan,
    cublasLtMatmulHeuristicResult_t *results, int most, int *found) {
    cublasLtMatmulPreferenceOpaque_t prefer;
    ampi_cu_lt lt;
    int offered = 0, n;
    *found = 0;
    ampi_cu_lt_describe(&lt, c, p, plan);
    if (lt.status == CUBLAS_STATUS_SUCCESS) ampi_cu_lt_prefer(c, &lt, &plan->key, &prefer);
    if (lt.status == CUBLAS_STATUS_SUCCESS) {
        lt.call = "cublasLtMatmulAlgoGetHeuristic";
        lt.status = cublasLtMatmulAlgoGetHeuristic(
            c->cublas, &lt.desc, &lt.a, &lt.b, &lt.c, &lt.d, &prefer, most, results, &offered);
        if (ampi_cu_lt_refuses(lt.status)) return AMP_OK;
    }
    if (lt.status != CUBLAS_STATUS_SUCCESS) return ampi_cu_fail_cublas(c, lt.call, lt.status);
    for (n = 0; n < offered; n++)
        if (results[n].state == CUBLAS_STATUS_SUCCESS) results[(*found)++] = results[n];
    return AMP_OK;
}

/* FP8: what need not be asked, and what may be the reason where cuBLASLt offers nothing. */
static const char *ampi_cu_f8_refusal(const ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_key *key) {
    const size_t apart = p->batch > 1u || p->sum_batches ? p->stride_a | p->stride_b : 0u;
    if (c->arch < 89) return "the device is older than sm_89";
    if (apart % 16u) return "desc.stride_a and stride_b are not both multiples of 16";
    if (ampi_cu_align(&key->a) < 16u || ampi_cu_align(&key->b) < 16u || ampi_cu_align(&key->d) < 16u)
        return "a, b and d are not all aligned to 16 bytes";
    if (ampi_cu_f8(p->d.dtype) && p->c.data) return "beta is not 0 and d is FP8";
    return NULL;
}
static const char *ampi_cu_f8_reason(const amp_gemm_job *p) {
    const size_t sixteens[5] = {p->n, p->k, p->lda, p->ldb, p->ldd};
    int i;
    for (i = 0; i < 5; i++)
        if (sixteens[i] % 16u) return "n, k and the leading dimensions are not all multiples of 16";
    if (p->a.dtype == AMP_F8E5M2 && p->b.dtype == AMP_F8E5M2) return "a and b are both f8e5m2";
    if (p->d.dtype == AMP_F8E5M2 && p->a.dtype == AMP_F8E4M3 && p->b.dtype == AMP_F8E4M3)
        return "d is f8e5m2, a and b are both f8e4m3";
    if (p->trans_a)
        return "cuBLASLt offers none for the layout trans_a = 1; x w^T (trans_a 0, trans_b 1) is everywhere";
    if (!p->trans_b)
        return "cuBLASLt offers none for the layout trans_b = 0; x w^T (trans_a 0, trans_b 1) is everywhere";
    return "cuBLASLt offers no algorithm";
}
/* Why a product is none of cuBLASLt's, whatever its epilogue, or NULL. */
static const char *ampi_cu_refusal(const ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_key *key) {
    if (p->flags & AMP_GEMM_ORDERED) return "the order is defined (AMP_GEMM_ORDERED)";
    if (p->k == 0) return "k is 0";
    if (p->sum_batches && p->batch > 1u) return "batches are added up into a d that is not f32";
    if (p->a.dtype == AMP_BF16 && c->arch < 80) return "the device is older than sm_80";
    if (p->batch > 0x7fffffffu) return "cuBLASLt does not have this batch";
    if (p->batch > 1u && !ampi_cu_in_place(p) && p->stride_c == 0) return "cuBLASLt does not have this batch";
    if (ampi_cu_f8(p->a.dtype)) return ampi_cu_f8_refusal(c, p, key);
    if (p->a.dtype != p->b.dtype) return "cuBLASLt does not have these dtypes";
    if (p->d.dtype != p->a.dtype && p->d.dtype != AMP_F32) return "cuBLASLt does not have these dtypes";
    return NULL;
}

/* The two ways of an epilogue fill in epilogue, convert and after of a plan, and return NULL, or say why the product
   has no such way. ReLU is in no epilogue of cuBLASLt's: it commutes with rounding, and whether cuBLASLt's keeps NaN is
   not documented. */

/* Beside an FP8 d there is one of 16 bits. */
static int ampi_cu_aux_fits(const amp_gemm_job *p) {
    const int short_one = ampi_cu_f8(p->d.dtype) && amp_dtype_size(p->aux.dtype) == 2u;
    if (!p->aux.data || (p->aux.dtype != p->d.dtype && !short_one)) return 0;
    return p->ldd % 8u == 0 && p->batch == 1u;
}
/* An epilogue after the product makes such an aux of what is in d, once rounded. */
static int ampi_cu_aux_alike(const amp_gemm_job *p) {
    return p->aux.dtype == p->d.dtype || p->aux.dtype == AMP_MASK || ampi_cu_f8(p->aux.dtype);
}
static const char *ampi_cu_fuse_backward(const amp_gemm_job *p, ampi_cu_plan *plan) {
    int fits = p->act == AMP_GELU && p->d.dtype != AMP_F32 && ampi_cu_aux_fits(p), sums;
    if (!fits || ampi_cu_f8(p->a.dtype) || p->k == 1u) return "cuBLASLt has no such way back";
    sums = p->dbias.data && p->dbias.dtype == p->d.dtype && !p->bias_per_row; /* of columns: it has no others */
    plan->epilogue = sums ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
    return NULL;
}
static const char *ampi_cu_fuse_gelu(const amp_gemm_job *p, ampi_cu_plan *plan) {
    if (p->aux.data && !ampi_cu_aux_fits(p))
        return "aux is not as cuBLASLt wants it: d's dtype (of an FP8 d, or 16 bits), a leading dimension that is a "
               "multiple of 8, no batch";
    plan->epilogue = p->bias.data ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    if (p->aux.data) plan->epilogue = p->bias.data ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    return NULL;
}
static int ampi_cu_has_gelu(const amp_gemm_job *p) {
    return p->d.dtype != AMP_F32 && p->act == AMP_GELU && !p->bias_per_row;
}
/* As much as possible inside the product; `leave`: but for GELU. */
static const char *ampi_cu_fuse_epilogue(const ampi_cuda *c, const amp_gemm_job *p, int leave, ampi_cu_plan *plan) {
    int narrow = p->d.dtype != AMP_F32, bias = p->bias.data != NULL, aux = p->aux.data != NULL;
    int along = bias && !p->bias_per_row; /* the one that cuBLASLt has */
    int fits = along && p->bias.dtype == ampi_cu_bias_type(p);
    plan->after = 0;
    plan->convert = along && !fits && narrow; /* an F32 d gets such a bias from ampi_k_epilogue, unrounded */
    if (plan->convert && p->n > c->bias_room) return "the bias is in a different dtype than d";
    if (p->backward) return ampi_cu_fuse_backward(p, plan);
    if (ampi_cu_has_gelu(p) && !leave) return ampi_cu_fuse_gelu(p, plan);
    plan->epilogue = fits || plan->convert ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    plan->after = p->act != AMP_ACT_NONE || aux || (bias && plan->epilogue == CUBLASLT_EPILOGUE_DEFAULT);
    if (narrow && aux && !ampi_cu_aux_alike(p)) return "aux is in a different dtype than d";
    return plan->after && ampi_cu_f8(p->d.dtype) ? "cuBLASLt has no such epilogue for an FP8 d" : NULL;
}
/* bias and act left to ampi_k_epilogue, for which d must not have been rounded too early: it is F32, or what remains is
   a backward or an act, whose bounds allow it. GELU of a 16-bit d is this way what it is in cuBLASLt where that has no
   such product but a kernel of its own: two launches, and two roundings. */
static const char *ampi_cu_split_epilogue(const ampi_cuda *c, const amp_gemm_job *p, ampi_cu_plan *plan) {
    int gelu = ampi_cu_has_gelu(p) && !p->backward;
    if (gelu && !ampi_cu_f8(p->a.dtype)) return ampi_cu_fuse_epilogue(c, p, 1, plan);
    plan->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    plan->convert = 0;
    plan->after = 1;
    if (p->d.dtype != AMP_F32 && !p->backward) {
        if (!ampi_cu_f8(p->a.dtype) || p->act == AMP_ACT_NONE) return "there is nothing to leave";
        if (p->bias_per_row) return "the bias goes with rows";
        if (p->bias.data && p->bias.dtype == ampi_cu_bias_type(p)) plan->epilogue = CUBLASLT_EPILOGUE_BIAS;
    }
    if (!p->bias.data && !p->aux.data && p->act == AMP_ACT_NONE) return "there is nothing to leave";
    if (ampi_cu_f8(p->d.dtype)) return "cuBLASLt has no such epilogue for an FP8 d";
    return NULL;
}

static int ampi_cu_is_half(float x) { return amp_f32_from_f16(amp_f16_from_f32(x)) == x; }
/* Sums in F16 need their factors in F16, on the host. */
static int ampi_cu_f16_sums(const amp_gemm_job *p) {
    if (!(p->flags & AMP_GEMM_F16_SUM) || p->alpha_ptr || p->beta_ptr) return 0;
    return p->a.dtype == AMP_F16 && p->d.dtype == AMP_F16 && ampi_cu_is_half(p->alpha.value) &&
        ampi_cu_is_half(p->beta.value);
}
static uint32_t ampi_cu_f32_sums(const ampi_cuda *c, const amp_gemm_job *p) {
    int tf32 = (p->flags & AMP_GEMM_TF32) && p->a.dtype == AMP_F32 && c->arch >= 80;
    return tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/* The bias, too, of an FP8 product whose d has 16 bits: the GPUs of sm_89 have few that add one. */
static const char *ampi_cu_leave_bias(const amp_gemm_job *p, ampi_cu_plan *plan) {
    int left = p->bias.data && !p->bias_per_row && p->d.dtype != AMP_F32 && !ampi_cu_f8(p->d.dtype);
    if (!left) return "there is nothing to leave";
    plan->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    plan->convert = 0;
    plan->after = 1;
    return NULL;
}

/* The column sums after a product that could make them, too: where that is two kernels, ours may be faster. */
static const char *ampi_cu_leave_sums(const ampi_cuda *c, const amp_gemm_job *p, ampi_cu_plan *plan) {
    const char *why = ampi_cu_fuse_epilogue(c, p, 0, plan);
    if (why || plan->epilogue != CUBLASLT_EPILOGUE_DGELU_BGRAD) return "there is nothing to leave";
    plan->epilogue = CUBLASLT_EPILOGUE_DGELU;
    return NULL;
}

/* The ways of a product through cuBLASLt, best first: with the sums that are allowed, then with those of FP32; each
   with the epilogue in the product, without its column sums, and after it (of FP8, last, the bias, too). */
#define AMPI_CU_WAYS 4u
static const char *ampi_cu_way(const ampi_cuda *c, const amp_gemm_job *p, uint32_t way, ampi_cu_plan *plan) {
    switch (way) {
    case 0: return ampi_cu_fuse_epilogue(c, p, 0, plan);
    case 1: return ampi_cu_leave_sums(c, p, plan);
    case 2: return ampi_cu_split_epilogue(c, p, plan);
    default: return ampi_cu_f8(p->a.dtype) ? ampi_cu_leave_bias(p, plan) : "there is nothing to leave";
    }
}
typedef struct ampi_cu_ways {
    const ampi_cuda *c;
    const amp_gemm_job *p;
    uint32_t next;
    const char *why; /* why the first way that was refused is none */
} ampi_cu_ways;

/* The next way of the product of plan's key; 0: none is left. */
static int ampi_cu_next_candidate(ampi_cu_ways *it, ampi_cu_plan *plan) {
    const char *why = ampi_cu_refusal(it->c, it->p, &plan->key);
    const uint32_t f16 = ampi_cu_f16_sums(it->p) ? AMPI_CU_WAYS : 0u, ways = AMPI_CU_WAYS + f16;
    if (why) it->next = ways;
    while (it->next < ways) {
        uint32_t way = it->next++;
        plan->compute = way < f16 ? (uint32_t)CUBLAS_COMPUTE_16F : ampi_cu_f32_sums(it->c, it->p);
        why = ampi_cu_way(it->c, it->p, way % AMPI_CU_WAYS, plan);
        if (!why) return 1;
        if (!it->why) it->why = why;
    }
    if (!it->why) it->why = why;
    return 0;
}

static const char *ampi_cu_sums_name(const ampi_cu_plan *plan) {
    if (plan->compute == CUBLAS_COMPUTE_16F) return ", sums in F16";
    return plan->compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? ", TF32" : "";
}
static const char *ampi_cu_epilogue_name(const ampi_cu_plan *plan) {
    switch (plan->epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT: return "";
    case CUBLASLT_EPILOGUE_BIAS: return " with the bias";
    case CUBLASLT_EPILOGUE_DGELU: return " with GELU's derivative";
    case CUBLASLT_EPILOGUE_DGELU_BGRAD: return " with GELU's derivative and bias gradient";
    default: return " with GELU";
    }
}
/* What would make cuBLASLt faster: rows of 8- and 16-bit operands that begin at multiples of 16 bytes. "": they do. */
static void ampi_cu_tell_alignment(const amp_gemm_job *p, char *text, size_t bytes) {
    size_t rows_a = p->trans_a ? p->k : p->m, i;
    size_t rows_b = p->trans_b ? p->n : p->k;
    const struct {
        const char *name;
        const amp_array *x;
        size_t rows, ld;
    } matrices[3] = {
        {"a", &p->a, rows_a, p->lda},
        {"b", &p->b, rows_b, p->ldb},
        {"d", &p->d, p->m, p->ldd},
    };
    text[0] = 0;
    for (i = 0; i < 3u && !text[0] && p->a.dtype != AMP_F32; i++) {
        const char *name = matrices[i].name;
        size_t ld = matrices[i].ld, size = amp_dtype_size(matrices[i].x->dtype);
        if (matrices[i].rows > 1u && ld * size % 16u)
            snprintf(text, bytes, "; faster if rows began at multiples of 16 bytes: ld%s is %llu, %llu would do", name,
                AMPI_ULL(ld), AMPI_ULL(64u * ampi_cu_parts(ld, 64u)));
        else if ((uintptr_t)matrices[i].x->data % 16u)
            snprintf(text, bytes, "; faster if %s began at a multiple of 16 bytes", name);
    }
}
/* One sentence about a plan. */
static void ampi_cu_tell(const amp_gemm_job *p, const ampi_cu_plan *plan, char *text, size_t bytes) {
    char how[200], faster[128] = "";
    int32_t id = -1, split = 1;
    size_t got = 0;
    int sums = p->dbias.data && plan->epilogue != CUBLASLT_EPILOGUE_DGELU_BGRAD;
    if (plan->lt) {
        (void)cublasLtMatmulAlgoConfigGetAttribute(&plan->algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, &got);
        (void)cublasLtMatmulAlgoConfigGetAttribute(
            &plan->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &split, sizeof split, &got);
        const char *convert = plan->convert ? ", the bias rounded to its dtype" : "";
        const char *after = plan->after ? ", then the epilogue kernel" : "";
        snprintf(how, sizeof how, "cuBLASLt (algorithm %d, k split in %d%s)%s%s%s%s", (int)id, (int)split,
            ampi_cu_sums_name(plan), ampi_cu_epilogue_name(plan), convert, after,
            sums ? ", then the bias gradient kernel" : "");
        ampi_cu_tell_alignment(p, faster, sizeof faster);
    } else {
        snprintf(how, sizeof how, "plain kernel: %s", plan->why);
    }
    snprintf(text, bytes, "amp_gemm: [%llu,%llu] x [%llu,%llu], %s -> %s, batch %llu: %s%s", AMPI_ULL(p->m),
        AMPI_ULL(p->k), AMPI_ULL(p->k), AMPI_ULL(p->n), amp_dtype_name(p->a.dtype), amp_dtype_name(p->d.dtype),
        AMPI_ULL(p->batch), how, faster);
}

/* How a product is made, decided once per key. */
static amp_status ampi_cu_plan_make(ampi_cuda *c, const amp_gemm_job *p, ampi_cu_plan *plan) {
    cublasLtMatmulHeuristicResult_t result;
    ampi_cu_ways it = {c, p, 0, NULL};
    int f8 = ampi_cu_f8(p->a.dtype);
    int plain = !p->k || (p->flags & AMP_GEMM_ORDERED) || (f8 && (p->flags & AMP_GEMM_EMULATE)); /* as was asked */
    char text[448];
    plan->lt = plan->unchecked = 0;
    while (!plan->lt && ampi_cu_next_candidate(&it, plan)) {
        int found;
        AMPI_TRY(ampi_cu_lt_search(c, p, plan, &result, 1, &found));
        plan->lt = found != 0;
        if (plan->lt)
            plan->algo = result.algo;
        else if (!it.why)
            it.why = ampi_cu_f8(p->a.dtype) ? ampi_cu_f8_reason(p) : "cuBLASLt offers no algorithm";
    }
    plan->why = it.why;
    if (!plan->lt) plan->after = plan->convert = 0;
    if (!plan->lt && f8 && !plain) {
        /* a dead device offers nothing either */
        AMPI_TRY(ampi_cu_did(c, "cublasLtMatmulAlgoGetHeuristic", ampi_cu_beneath(c)));
        return amp_fail(c->ctx, AMP_ERR_UNSUPPORTED,
            "not among the FP8 products of this device: %s. AMP_GEMM_EMULATE runs it on a plain kernel", plan->why);
    }
    ampi_cu_tell(p, plan, text, sizeof text);
    amp_log_event(c->ctx, plan->lt || plain ? AMP_LOG_INFO : AMP_LOG_WARNING, "%s", text + sizeof "amp_gemm: " - 1);
    return AMP_OK;
}

static amp_status ampi_cu_plain_gemm(ampi_cuda *c, const amp_gemm_job *p) {
    uint64_t tiles = ampi_cu_parts(p->m, AMPI_K_M) * ampi_cu_parts(p->n, AMPI_K_N) * amp_gemm_outputs(p);
    const size_t step = p->ldd | (p->batch > 1u ? p->stride_d : 0u);
    ampi_k_wides wide;
    wide.d = ampi_cu_wide(&p->d, step) && (amp_gemm_masked(p) || ampi_cu_wide(&p->aux, step));
    wide.c = ampi_cu_wide(&p->c, p->ldc | (p->batch > 1u ? p->stride_c : 0u));
    wide.bias = ampi_cu_wide(&p->bias, 0);
    return ampi_cu_launch_of(c, AMPI_K_THREADS, ampi_cu_grid(c, tiles), ampi_k_gemm, *p, wide);
}

/* alpha and beta as a plan's product reads them: halves, floats on the host, or floats on the device. */
typedef struct ampi_cu_scalars {
    amp_f16 half[2];
    const void *alpha, *beta;
} ampi_cu_scalars;

static amp_status ampi_cu_scalars_of(
    ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_plan *plan, ampi_cu_scalars *out) {
    float *scalar = c->scratch->scalar; /* constants 0 and 1, and room for two more */
    float alpha = p->alpha.value, beta = p->beta.value;
    out->alpha = &p->alpha.value;
    out->beta = &p->beta.value;
    if (plan->compute == CUBLAS_COMPUTE_16F) {
        out->half[0] = amp_f16_from_f32(alpha);
        out->half[1] = amp_f16_from_f32(beta);
        out->alpha = &out->half[0];
        out->beta = &out->half[1];
    }
    if (!p->alpha_ptr && !p->beta_ptr) return AMP_OK;
    if (alpha != 1.0f || (p->c.data && beta != 1.0f)) {
        out->alpha = &scalar[2];
        out->beta = &scalar[3];
        return ampi_cu_launch(c, 1, ampi_k_scalars, scalar + 2, alpha, p->alpha_ptr, beta, p->beta_ptr);
    }
    out->alpha = p->alpha_ptr ? p->alpha_ptr : &scalar[1];
    out->beta = p->beta_ptr ? p->beta_ptr : &scalar[p->c.data != NULL];
    return AMP_OK;
}
/* cuBLASLt takes the factors of FP8 at multiples of 16 bytes only: copies of those that lie elsewhere. */
static amp_status ampi_cu_f8_factors(ampi_cuda *c, amp_gemm_job *p) {
    const float **const factors[3] = {&p->scale_a, &p->scale_b, &p->scale_d}; /* or NULL */
    uint32_t i;
    for (i = 0; i < 3u; i++) {
        if ((uintptr_t)*factors[i] % 16u == 0) continue;
        AMPI_TRY(ampi_cu_copy_async(c->ctx, c->scratch->factor[i], *factors[i], sizeof(float)));
        *factors[i] = c->scratch->factor[i];
    }
    return AMP_OK;
}
/* The product of a plan that uses cuBLASLt, with what comes before and after it. *refused: promised, and not kept. */
static amp_status ampi_cu_run_lt(ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_plan *plan, int *refused) {
    ampi_cu_scalars factors;
    const void *read = p->c.data ? p->c.data : p->d.data;
    const amp_array bias = amp_arr(c->bias, ampi_cu_bias_type(p));
    const amp_cast_desc nearest = AMP_ZERO;
    amp_gemm_job fit = *p;
    ampi_cu_lt lt;
    cublasStatus_t e;
    AMPI_TRY(ampi_cu_f8_factors(c, &fit));
    ampi_cu_lt_describe(&lt, c, &fit, plan);
    if (lt.status != CUBLAS_STATUS_SUCCESS) return ampi_cu_fail_cublas(c, lt.call, lt.status);
    AMPI_TRY(ampi_cu_scalars_of(c, p, plan, &factors));
    if (plan->convert) AMPI_TRY(ampi_cu_cast(c->ctx, bias, p->bias, p->n, &nearest));
    if (ampi_cu_f8(p->d.dtype)) read = c->workspace; /* a C of a different dtype cannot be D; it is not read */
    e = cublasLtMatmul(c->cublas, &lt.desc, factors.alpha, p->b.data, &lt.a, p->a.data, &lt.b, factors.beta, read,
        &lt.c, p->d.data, &lt.d, &plan->algo, c->workspace, c->workspace_bytes, c->stream);
    *refused = ampi_cu_lt_refuses(e);
    if (*refused) return AMP_OK;
    if (e != CUBLAS_STATUS_SUCCESS) return ampi_cu_fail_cublas(c, "cublasLtMatmul", e);
    AMPI_TRY(ampi_cu_launched(c, "cublasLtMatmul"));
    if (!plan->after) return AMP_OK;
    return ampi_cu_epilogue(c, p, p->bias.data != NULL && plan->epilogue == CUBLASLT_EPILOGUE_DEFAULT);
}

static amp_status ampi_cu_run(ampi_cuda *c, const amp_gemm_job *p, ampi_cu_plan *plan) {
    int refused = 0;
    if (p->amax_d) AMPI_TRY(ampi_cu_zero(c->ctx, p->amax_d, sizeof *p->amax_d));
    if (plan->lt) AMPI_TRY(ampi_cu_run_lt(c, p, plan, &refused));
    if (refused) { /* not again */
        plan->lt = plan->after = plan->convert = 0;
        plan->why = "cublasLtMatmul refused what the heuristic had offered";
        amp_log_event(c->ctx, AMP_LOG_WARNING, "%s; the plain kernel takes over", plan->why);
    }
    if (!plan->lt) AMPI_TRY(ampi_cu_plain_gemm(c, p));
    return ampi_cu_column_sums(c, p, plan);
}

/* A plan from a file is checked before its first use: it must still be a way of this product, and cuBLASLt must still
   take its algorithm, within our workspace. */
static int ampi_cu_plan_valid(ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_plan *plan) {
    cublasLtMatmulHeuristicResult_t result;
    ampi_cu_ways it = {c, p, 0, NULL};
    ampi_cu_plan now;
    ampi_cu_lt lt;
    cublasStatus_t e;
    int same = 0;
    if (!plan->lt) return 0; /* made again: that costs nothing */
    memset(&now, 0, sizeof now);
    now.key = plan->key;
    while (!same && ampi_cu_next_candidate(&it, &now))
        same = now.epilogue == plan->epilogue && now.after == plan->after && now.convert == plan->convert &&
            now.compute == plan->compute;
    if (!same) return 0;
    ampi_cu_lt_describe(&lt, c, p, plan);
    if (lt.status != CUBLAS_STATUS_SUCCESS) return 0;
    memset(&result, 0, sizeof result);
    e = cublasLtMatmulAlgoCheck(c->cublas, &lt.desc, &lt.a, &lt.b, &lt.c, &lt.d, &plan->algo, &result);
    if (e != CUBLAS_STATUS_SUCCESS || result.state != CUBLAS_STATUS_SUCCESS) return 0;
    return result.workspaceSize <= c->workspace_bytes;
}

/* ---- plans that are remembered: buckets of lists by a hash of the key; the least recently used one makes room ---- */

static uint32_t *ampi_cu_bucket(const ampi_cuda *c, const ampi_cu_key *key) {
    uint64_t word, h = 0;
    size_t i;
    for (i = 0; i + sizeof word <= sizeof *key; i += sizeof word) {
        memcpy(&word, (const char *)key + i, sizeof word);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    return &c->buckets[h % c->n_plans];
}
static ampi_cu_plan *ampi_cu_plan_find(ampi_cuda *c, const ampi_cu_key *key) { /* NULL: not remembered */
    uint32_t at = *ampi_cu_bucket(c, key);
    while (at && memcmp(&c->plans[at - 1u].key, key, sizeof *key) != 0)
        at = c->plans[at - 1u].next;
    if (!at) return NULL;
    c->plans[at - 1u].used = ++c->uses;
    return &c->plans[at - 1u];
}
static void ampi_cu_plan_forget(ampi_cuda *c, ampi_cu_plan *plan) {
    uint32_t *at = ampi_cu_bucket(c, &plan->key);
    while (&c->plans[*at - 1u] != plan)
        at = &c->plans[*at - 1u].next;
    *at = plan->next;
    plan->used = 0;
}
/* A place for a new plan, which ampi_cu_plan_keep then makes one that is found. */
static ampi_cu_plan *ampi_cu_plan_room(ampi_cuda *c) {
    ampi_cu_plan *oldest = c->plans;
    uint32_t i;
    if (c->n_begun < c->n_plans) return &c->plans[c->n_begun++];
    for (i = 1; i < c->n_plans; i++)
        if (c->plans[i].used < oldest->used) oldest = &c->plans[i];
    if (oldest->used) ampi_cu_plan_forget(c, oldest);
    return oldest;
}
static void ampi_cu_plan_keep(ampi_cuda *c, ampi_cu_plan *plan) {
    uint32_t *bucket = ampi_cu_bucket(c, &plan->key);
    plan->next = *bucket;
    plan->used = ++c->uses;
    *bucket = (uint32_t)(plan - c->plans) + 1u;
}

/* A model that has made its tenth step has shown its products. */
static void ampi_cu_count_search(ampi_cuda *c) {
    c->searches++;
    if (c->stepped <= AMPI_CU_SETTLED || c->late_step == c->stepped) return;
    c->late_step = c->stepped;
    if (++c->late != 2u) return; /* one alone may be an evaluation of other shapes */
    amp_log_event(c->ctx, AMP_LOG_WARNING,
        "algorithms for products are still looked for after step %u, which takes host time: more than the %u products "
        "of desc.plans, or new shapes (amp_cuda_plans_get counts)",
        AMPI_CU_SETTLED, (unsigned)c->n_plans);
}
static amp_status ampi_cu_plan_for(ampi_cuda *c, const amp_gemm_job *p, ampi_cu_plan **out) {
    ampi_cu_key key;
    ampi_cu_plan *plan;
    AMPI_TRY(ampi_cu_here(c));
    ampi_cu_key_of(&key, p);
    *out = plan = ampi_cu_plan_find(c, &key);
    if (plan && !plan->unchecked) return AMP_OK;
    ampi_cu_relax(c); /* also for the product itself, whose kernels may be loaded now */
    if (plan) {
        plan->unchecked = 0;
        if (ampi_cu_plan_valid(c, p, plan)) return AMP_OK;
        amp_log_event(c->ctx, AMP_LOG_WARNING, "a plan from a file is not valid here; made anew");
        ampi_cu_plan_forget(c, plan);
    } else {
        *out = plan = ampi_cu_plan_room(c);
    }
    plan->key = key;
    ampi_cu_count_search(c);
    AMPI_TRY(ampi_cu_plan_make(c, p, plan));
    ampi_cu_plan_keep(c, plan);
    return AMP_OK;
}
/* ---- tuning: every way with every algorithm that the heuristic offers, on outputs of its own.
   tests: tests/cuda_verbs.cpp ---- */

typedef struct ampi_cu_tuning {
    amp_gemm_job p; /* the product, with outputs in `own` */
    void *own[4];   /* d, aux, dbias, amax_d; memory that begins at a multiple of 256 bytes, and where in it they do: */
    size_t bytes[4], skip[4];
    void *cold; /* as much again as the cache holds, written before each run; NULL: there is no memory for it */
    size_t cold_bytes;
    cudaEvent_t event[2];
    ampi_cu_plan best;
    float least, first; /* ms of the best plan and of the first */
    uint32_t tried;
} ampi_cu_tuning;

/* In a step a product finds other things in the cache than its own operands, which a second run would. */
static amp_status ampi_cu_tune_cold(ampi_cuda *c, ampi_cu_tuning *t) {
    const char *call = "";
    cudaError_t e;
    t->cold_bytes = (size_t)(2u * c->l2);
    e = t->cold_bytes ? ampi_cu_take(c, &t->cold, t->cold_bytes, &call) : cudaSuccess;
    if (e == cudaSuccess) return AMP_OK;
    t->cold = NULL;
    if (e != cudaErrorMemoryAllocation) return ampi_cu_fail(c, call, e);
    if (!c->allocator.alloc_fn) (void)cudaGetLastError(); /* then without */
    return AMP_OK;
}
/* Each as aligned as the product's own: what cuBLASLt offers depends on that, also of those whose alignment is in no
   preference. */
static amp_status ampi_cu_tune_outputs(ampi_cuda *c, const amp_gemm_job *p, ampi_cu_tuning *t) {
    const void *theirs[4] = {p->d.data, p->aux.data, p->dbias.data, p->amax_d};
    size_t span = (p->batch - 1u) * p->stride_d + (p->m - 1u) * p->ldd + p->n;
    const char *call = "";
    cudaError_t e;
    uint32_t i;
    t->bytes[0] = span * amp_dtype_size(p->d.dtype);
    if (p->aux.data && !p->backward)
        t->bytes[1] = amp_gemm_masked(p) ? amp_gemm_mask_bytes(p) : span * amp_dtype_size(p->aux.dtype);
    if (p->dbias.data) t->bytes[2] = amp_gemm_biases(p) * amp_dtype_size(p->dbias.dtype);
    if (p->amax_d) t->bytes[3] = sizeof *p->amax_d;
    for (i = 0; i < 4u; i++) {
        if (!t->bytes[i]) continue;
        t->skip[i] = (uintptr_t)theirs[i] & 255u;
        t->bytes[i] += t->skip[i];
        e = ampi_cu_take(c, &t->own[i], t->bytes[i], &call);
        if (e == cudaSuccess) continue;
        if (!c->allocator.alloc_fn) return ampi_cu_fail(c, call, e);
        return amp_fail(
            c->ctx, AMP_ERR_NO_MEMORY, "the allocator has no %llu bytes for an output", AMPI_ULL(t->bytes[i]));
    }
    return AMP_OK;
}
static amp_status ampi_cu_tune_begin(ampi_cuda *c, const amp_gemm_job *p, ampi_cu_tuning *t) {
    uint32_t i;
    AMPI_TRY(ampi_cu_tune_outputs(c, p, t));
    for (i = 0; i < 2u; i++)
        AMPI_TRY(ampi_cu_did(c, "cudaEventCreate", cudaEventCreate(&t->event[i])));
    AMPI_TRY(ampi_cu_tune_cold(c, t));
    t->p = *p;
    t->p.d.data = (char *)t->own[0] + t->skip[0];
    if (t->own[1]) t->p.aux.data = (char *)t->own[1] + t->skip[1];
    if (t->own[2]) t->p.dbias.data = (char *)t->own[2] + t->skip[2];
    if (t->own[3]) t->p.amax_d = (float *)((char *)t->own[3] + t->skip[3]);
    if (!p->c.data || !ampi_cu_in_place(p)) return AMP_OK;
    t->p.c.data = t->p.d.data; /* C goes with D, as it will */
    return ampi_cu_zero(c->ctx, t->own[0], t->bytes[0]);
}
static void ampi_cu_tune_end(ampi_cuda *c, const ampi_cu_tuning *t) {
    uint32_t i;
    for (i = 0; i < 2u; i++)
        if (t->event[i]) ampi_cu_forget(cudaEventDestroy(t->event[i]));
    for (i = 0; i < 4u; i++)
        ampi_cu_give(c, t->own[i], t->bytes[i]);
    ampi_cu_give(c, t->cold, t->cold_bytes);
}

static float ampi_cu_median(float t[AMPI_CU_ROUNDS]) { /* sorts them */
    uint32_t i, j;
    for (i = 0; i < AMPI_CU_ROUNDS; i++)
        for (j = i + 1u; j < AMPI_CU_ROUNDS; j++)
            if (t[j] < t[i]) {
                float x = t[i];
                t[i] = t[j];
                t[j] = x;
            }
    return t[AMPI_CU_ROUNDS / 2u];
}
/* The median time of a plan, in ms; < 0 if it does not run. */
static amp_status ampi_cu_time(ampi_cuda *c, const ampi_cu_tuning *tuning, const ampi_cu_plan *plan, float *ms) {
    const cudaEvent_t begin = tuning->event[0], end = tuning->event[1];
    float t[AMPI_CU_ROUNDS];
    uint32_t i;
    *ms = -1.0f;
    for (i = 0; i <= AMPI_CU_ROUNDS; i++) { /* the first one warms up */
        int refused = 0;
        amp_status s;
        if (tuning->cold && i) AMPI_TRY(ampi_cu_zero(c->ctx, tuning->cold, tuning->cold_bytes));
        AMPI_TRY(ampi_cu_did(c, "cudaEventRecord", cudaEventRecord(begin, c->stream)));
        s = ampi_cu_run_lt(c, &tuning->p, plan, &refused);
        if (s == AMP_OK && !refused) s = ampi_cu_column_sums(c, &tuning->p, plan);
        if (s != AMP_OK || refused) return s;
        AMPI_TRY(ampi_cu_did(c, "cudaEventRecord", cudaEventRecord(end, c->stream)));
        AMPI_TRY(ampi_cu_did(c, "cudaEventSynchronize", cudaEventSynchronize(end)));
        if (i) AMPI_TRY(ampi_cu_did(c, "cudaEventElapsedTime", cudaEventElapsedTime(&t[i - 1u], begin, end)));
    }
    *ms = ampi_cu_median(t);
    return AMP_OK;
}
/* Every algorithm of one way; `now` comes with the key and the way. */
static amp_status ampi_cu_tune_way(ampi_cuda *c, ampi_cu_tuning *t, ampi_cu_plan *now) {
    cublasLtMatmulHeuristicResult_t results[AMPI_CU_TRIES];
    float ms;
    int n, i;
    AMPI_TRY(ampi_cu_lt_search(c, &t->p, now, results, AMPI_CU_TRIES, &n));
    for (i = 0; i < n; i++) {
        now->algo = results[i].algo;
        AMPI_TRY(ampi_cu_time(c, t, now, &ms));
        if (ms < 0.0f) continue;
        if (t->tried == 0) t->first = ms;
        if (t->tried++ == 0 || ms < t->least) {
            t->least = ms;
            t->best = *now;
        }
    }
    return AMP_OK;
}
static amp_status ampi_cu_tune(ampi_cuda *c, const amp_gemm_job *p, ampi_cu_plan *plan) {
    ampi_cu_tuning t;
    ampi_cu_plan now = *plan;
    ampi_cu_ways it = {c, &t.p, 0, NULL};
    int capturing = 0;
    amp_status s;
    if (!plan->lt) return AMP_OK; /* there is one plain kernel */
    AMPI_TRY(ampi_cu_capture(c, &capturing));
    if (capturing) return amp_fail(c->ctx, AMP_ERR_CAPTURE, "the context's stream is being captured");
    memset(&t, 0, sizeof t);
    s = ampi_cu_tune_begin(c, p, &t);
    while (s == AMP_OK && ampi_cu_next_candidate(&it, &now))
        s = ampi_cu_tune_way(c, &t, &now);
    if (s == AMP_OK) s = ampi_cu_wait(c);
    ampi_cu_tune_end(c, &t);
    if (s != AMP_OK || !t.tried) return s;
    *plan = t.best;
    amp_log_event(c->ctx, AMP_LOG_INFO, "%.4f ms, the first of %u candidates %.4f ms%s", (double)t.least,
        (unsigned)t.tried, (double)t.first, t.cold ? "" : ", operands in the cache");
    return AMP_OK;
}

/* ---- batches that add up in an F32 d: products one after the other, then what follows the sum ---- */

static int ampi_cu_adds_up(const amp_gemm_job *p) {
    return p->sum_batches && p->k && p->d.dtype == AMP_F32 && !(p->flags & AMP_GEMM_ORDERED);
}
/* What plans are made for: the product, or batch z alone, where the first one reads C as it is given, the others add to
   D. */
static amp_gemm_job ampi_cu_planned(const amp_gemm_job *p, size_t z) {
    amp_gemm_job q = *p;
    if (!ampi_cu_adds_up(p)) return q;
    q.batch = 1; /* and sum_batches stays */
    q.bias_per_row = q.backward = 0;
    q.act = AMP_ACT_NONE;
    q.bias.data = q.aux.data = q.dbias.data = NULL;
    q.a.data = (char *)p->a.data + z * p->stride_a * amp_dtype_size(p->a.dtype);
    q.b.data = (char *)p->b.data + z * p->stride_b * amp_dtype_size(p->b.dtype);
    if (z == 0) return q;
    q.c = p->d;
    q.ldc = p->ldd;
    q.stride_c = p->stride_d;
    q.beta.value = 1.0f;
    q.beta_ptr = NULL;
    return q;
}
/* The plan of what begins the product, and those of the rest, if it has several. All are made before anything is
   written: an FP8 product may be refused. */
static amp_status ampi_cu_plan_all(ampi_cuda *c, const amp_gemm_job *p, ampi_cu_plan **out) {
    const amp_gemm_job first = ampi_cu_planned(p, 0), others = ampi_cu_planned(p, 1);
    if (ampi_cu_adds_up(p)) AMPI_TRY(ampi_cu_plan_for(c, &others, out));
    return ampi_cu_plan_for(c, &first, out);
}
static amp_status ampi_cu_add_up(ampi_cuda *c, const amp_gemm_job *p) {
    amp_gemm_job last = *p;
    ampi_cu_plan *plan = NULL;
    size_t z;
    AMPI_TRY(ampi_cu_plan_all(c, p, &plan));
    for (z = 0; z < p->batch; z++) {
        const amp_gemm_job q = ampi_cu_planned(p, z);
        AMPI_TRY(ampi_cu_plan_for(c, &q, &plan));
        AMPI_TRY(ampi_cu_run(c, &q, plan));
    }
    last.batch = 1;
    if (p->bias.data || p->aux.data || p->act != AMP_ACT_NONE)
        AMPI_TRY(ampi_cu_epilogue(c, &last, p->bias.data != NULL));
    return ampi_cu_column_sums(c, &last, plan);
}

static amp_status ampi_cu_gemm(amp_ctx *ctx, const amp_gemm_job *job) {
    ampi_cu_plan *plan = NULL;
    if (ampi_cu_adds_up(job)) return ampi_cu_add_up(ampi_cu_self(ctx), job);
    AMPI_TRY(ampi_cu_plan_for(ampi_cu_self(ctx), job, &plan));
    return ampi_cu_run(ampi_cu_self(ctx), job, plan);
}
static amp_status ampi_cu_gemm_tune(amp_ctx *ctx, const amp_gemm_job *job) {
    const size_t plans = ampi_cu_adds_up(job) ? 2u : 1u; /* of the first batch, and of all others */
    ampi_cu_plan *plan = NULL;
    size_t z;
    AMPI_TRY(ampi_cu_plan_all(ampi_cu_self(ctx), job, &plan));
    for (z = 0; z < plans; z++) {
        const amp_gemm_job p = ampi_cu_planned(job, z);
        AMPI_TRY(ampi_cu_plan_for(ampi_cu_self(ctx), &p, &plan));
        AMPI_TRY(ampi_cu_tune(ampi_cu_self(ctx), &p, plan));
    }
    return AMP_OK;
}
static amp_status ampi_cu_gemm_explain(amp_ctx *ctx, char *text, size_t bytes, const amp_gemm_job *job) {
    const amp_gemm_job p = ampi_cu_planned(job, 0);
    ampi_cu_plan *plan = NULL;
    size_t n;
    AMPI_TRY(ampi_cu_plan_all(ampi_cu_self(ctx), job, &plan));
    if (!text) return AMP_OK;
    ampi_cu_tell(&p, plan, text, bytes);
    n = strlen(text);
    if (ampi_cu_adds_up(job))
        snprintf(text + n, bytes - n, "; for each of %llu batches, which add up", AMPI_ULL(job->batch));
    return AMP_OK;
}
/* ---- plan files: what was found out about products, for the next run on the same kind of device.
   tests: tests/cuda_verbs.cpp ---- */

typedef struct ampi_cu_plan_head {
    char magic[8];
    uint64_t library, plan_bytes;
    char device[64];
    uint64_t sms, workspace, count;
    uint64_t sum; /* XXH64 of what comes before it and of the plans after it */
} ampi_cu_plan_head;
typedef struct ampi_cu_plan_file { /* a file as it is, in host memory */
    ampi_cu_plan_head head;
    ampi_cu_plan plans[1]; /* head.count of them */
} ampi_cu_plan_file;

static size_t ampi_cu_plan_bytes(uint64_t count) {
    return offsetof(ampi_cu_plan_file, plans) + (size_t)count * sizeof(ampi_cu_plan);
}
static void ampi_cu_plan_describe(const ampi_cuda *c, ampi_cu_plan_head *h) {
    memset(h, 0, sizeof *h);
    memcpy(h->magic, "AMPPLAN5", 8);
    h->library = (uint64_t)cublasLtGetVersion();
    h->plan_bytes = sizeof(ampi_cu_plan);
    snprintf(h->device, sizeof h->device, "%.48s sm_%d", c->name + sizeof AMPI_CU_KIND - 1, c->arch);
    h->sms = (uint64_t)c->sms;
    h->workspace = c->workspace_bytes;
}
static uint64_t ampi_cu_plan_sum(const ampi_cu_plan_file *f) {
    ampi_xxh h = ampi_xxh_begin();
    ampi_xxh_add(&h, &f->head, offsetof(ampi_cu_plan_head, sum));
    ampi_xxh_add(&h, f->plans, (size_t)f->head.count * sizeof *f->plans);
    return ampi_xxh_end(&h);
}
/* The head of a file that this version has written, as far as the head tells. */
static int ampi_cu_plan_read_head(FILE *file, ampi_cu_plan_head *h) {
    if (fread(h, sizeof *h, 1, file) != 1 || memcmp(h->magic, "AMPPLAN5", 8) != 0) return 0;
    return h->count <= AMPI_CU_MOST && h->plan_bytes == sizeof(ampi_cu_plan);
}
static int ampi_cu_plan_read(FILE *file, ampi_cu_plan_file *f) { /* what comes after it */
    if (fread(f->plans, sizeof *f->plans, (size_t)f->head.count, file) != f->head.count || fgetc(file) != EOF) return 0;
    return f->head.sum == ampi_cu_plan_sum(f);
}

static int ampi_cu_plan_order(const void *a, const void *b) { /* of qsort: the least recently used one first */
    uint64_t x = ((const ampi_cu_plan *)a)->used, y = ((const ampi_cu_plan *)b)->used;
    return x < y ? -1 : x > y;
}
static void ampi_cu_plan_collect(const ampi_cuda *c, ampi_cu_plan_file *f) {
    uint32_t i;
    ampi_cu_plan_describe(c, &f->head);
    for (i = 0; i < c->n_begun; i++)
        if (c->plans[i].used && c->plans[i].lt) f->plans[f->head.count++] = c->plans[i];
    qsort(f->plans, (size_t)f->head.count, sizeof *f->plans, ampi_cu_plan_order);
    for (i = 0; i < f->head.count; i++) { /* what is of this context alone */
        f->plans[i].why = NULL;
        f->plans[i].used = f->plans[i].next = 0;
    }
    f->head.sum = ampi_cu_plan_sum(f);
}
static amp_status ampi_cu_plans_save(amp_ctx *ctx, const char *path) {
    const ampi_cuda *c = ampi_cu_of(ctx);
    ampi_cu_plan_file *f;
    amp_status s;
    if (!c) return amp_fail(ctx, AMP_ERR_INVALID_ARG, "ctx is not a CUDA context");
    if (!path) return amp_fail(ctx, AMP_ERR_INVALID_ARG, "path is NULL");
    f = (ampi_cu_plan_file *)ampi_cu_host_new(&c->host, ampi_cu_plan_bytes(c->n_begun));
    if (!f) return amp_fail(ctx, AMP_ERR_NO_MEMORY, "no host memory");
    ampi_cu_plan_collect(c, f);
    s = amp_write_file(ctx, path, f, ampi_cu_plan_bytes(f->head.count));
    ampi_cu_host_drop(&c->host, f, ampi_cu_plan_bytes(c->n_begun));
    return s;
}
extern "C" amp_status amp_cuda_plans_save(amp_ctx *ctx, const char *path) {
    AMP_VERB(ctx, "amp_cuda_plans_save", ampi_cu_plans_save(ctx, path));
}

static void ampi_cu_plan_adopt(ampi_cuda *c, const ampi_cu_plan *from) {
    ampi_cu_plan *plan = ampi_cu_plan_find(c, &from->key);
    if (plan)
        ampi_cu_plan_forget(c, plan);
    else
        plan = ampi_cu_plan_room(c);
    *plan = *from;
    plan->unchecked = 1;
    plan->why = "a plan from a file";
    ampi_cu_plan_keep(c, plan);
}
static amp_status ampi_cu_plan_same(amp_ctx *ctx, const char *path, const ampi_cu_plan_head *h) {
    ampi_cu_plan_head mine;
    ampi_cu_plan_describe(ampi_cu_self(ctx), &mine);
    if (memcmp(&mine, h, offsetof(ampi_cu_plan_head, count)) == 0) return AMP_OK;
    return amp_fail(ctx, AMP_ERR_FORMAT,
        "%s was made with cuBLASLt %llu on %.63s with %llu SMs; here is %llu, %s, %llu (or the workspace differs)",
        path, AMPI_ULL(h->library), h->device, AMPI_ULL(h->sms), AMPI_ULL(mine.library), mine.device,
        AMPI_ULL(mine.sms));
}
static amp_status ampi_cu_plans_read(amp_ctx *ctx, const char *path, FILE *file, ampi_cu_plan_file **out) {
    ampi_cu_plan_head head;
    int good = ampi_cu_plan_read_head(file, &head);
    if (good) {
        *out = (ampi_cu_plan_file *)ampi_cu_host_new(&ampi_cu_self(ctx)->host, ampi_cu_plan_bytes(head.count));
        if (!*out) return amp_fail(ctx, AMP_ERR_NO_MEMORY, "no host memory");
        (*out)->head = head;
        good = ampi_cu_plan_read(file, *out);
    }
    if (!good) return amp_fail(ctx, AMP_ERR_FORMAT, "%s is not a plan file of this version, or damaged", path);
    return ampi_cu_plan_same(ctx, path, &(*out)->head);
}
static amp_status ampi_cu_plans_load(amp_ctx *ctx, const char *path) {
    const ampi_cuda *c = ampi_cu_of(ctx);
    ampi_cu_plan_file *f = NULL;
    struct stat there;
    FILE *file;
    amp_status s;
    uint64_t i;
    if (!c) return amp_fail(ctx, AMP_ERR_INVALID_ARG, "ctx is not a CUDA context");
    if (!path) return amp_fail(ctx, AMP_ERR_INVALID_ARG, "path is NULL");
    if (stat(path, &there) == 0 && (there.st_mode & S_IFMT) != S_IFREG) /* to open a fifo might never end */
        return amp_fail(ctx, AMP_ERR_IO, "%s: a regular file is needed", path);
    file = fopen(path, "rb");
    if (!file) return amp_fail(ctx, AMP_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    s = ampi_cu_plans_read(ctx, path, file, &f);
    (void)fclose(file);
    for (i = 0; s == AMP_OK && i < f->head.count; i++)
        ampi_cu_plan_adopt(ampi_cu_self(ctx), &f->plans[i]);
    if (f) ampi_cu_host_drop(&c->host, f, ampi_cu_plan_bytes(f->head.count));
    return s;
}
extern "C" amp_status amp_cuda_plans_load(amp_ctx *ctx, const char *path) {
    AMP_VERB(ctx, "amp_cuda_plans_load", ampi_cu_plans_load(ctx, path));
}

extern "C" amp_status amp_cuda_plans_get(const amp_ctx *ctx, amp_cuda_plans *out) {
    const ampi_cuda *c = ampi_cu_of(ctx);
    if (!out) return AMP_ERR_INVALID_ARG;
    memset(out, 0, sizeof *out);
    if (!c) return AMP_ERR_INVALID_ARG;
    out->searches = c->searches;
    out->room = c->n_plans;
    return AMP_OK;
}
/* ==== >>cuda-table ===================================================================================================
   Create, destroy, the table of functions.   tests: tests/cuda_verbs.cpp, tests/test_context.c */

/* The whole block: a workspace of our own, then biases. */
static size_t ampi_cu_with_bias(size_t workspace) { return ampi_round256(workspace) + AMPI_CU_BIAS; }

static size_t ampi_cu_plans_bytes(uint32_t plans) { return plans * (sizeof(ampi_cu_plan) + sizeof(uint32_t)); }

/* Frees what there is, also after a creation that failed half way. */
static void ampi_cu_drop(ampi_cuda *c) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    amp_allocator host = c->host;
    const cudaError_t theirs = cudaPeekAtLastError();
    ampi_cu_place now = {0, 0, NULL};
    /* If even this fails, then without switching: pointers and streams know their device. */
    const int away = cudaGetDevice(&now.device) == cudaSuccess && ampi_cu_elsewhere(c, &now);
    int capturing;
    if (away) (void)cudaSetDevice(c->device);
    ampi_cu_relax(c);
    capturing = cudaStreamIsCapturing(c->stream, &capture) == cudaSuccess && capture != cudaStreamCaptureStatusNone;
    if (c->scratch && !capturing) (void)cudaStreamSynchronize(c->stream);
    if (c->own_cublas && c->cublas) (void)cublasLtDestroy(c->cublas);
    ampi_cu_free_deferred(c);
    if (c->own_workspace) ampi_cu_give(c, c->workspace, ampi_cu_with_bias(c->workspace_bytes));
    ampi_cu_give(c, c->scratch, sizeof(ampi_cu_scratch));
    if (c->mirror) (void)cudaFreeHost(c->mirror);
    /* What is queued on it, frees of a pool, still runs. */
    if (c->own_stream && c->stream) (void)cudaStreamDestroy(c->stream);
    ampi_cu_unrelax(c);
    if (away && ampi_cu_go_back(&c->driver, &now) != cudaSuccess) (void)cudaSetDevice(now.device);
    if (cudaPeekAtLastError() != theirs) (void)cudaGetLastError(); /* one of ours; what the caller left stays */
    ampi_cu_host_drop(&host, c->plans, ampi_cu_plans_bytes(c->n_plans));
    ampi_cu_host_drop(&host, c, sizeof *c);
}
static void ampi_cu_destroy(amp_ctx *ctx) { ampi_cu_drop((ampi_cuda *)amp_ctx_self(ctx)); }

static amp_backend ampi_cu_table(const ampi_cuda *c) {
    amp_backend b = AMP_ZERO;
    b.version = (uint32_t)AMP_VERSION;
    b.size = sizeof b;
    b.aligned = 1;
    b.name = c->name;
#define AMP_X(entry) b.entry = ampi_cu_##entry;
    AMPI_ENTRIES(AMP_X)
#undef AMP_X
    b.leave = ampi_cu_leave;
    b.copy_async = ampi_cu_copy_async;
    b.may_wait = ampi_cu_may_wait;
    b.mirror_create = ampi_cu_mirror_create;
    b.mirror_destroy = ampi_cu_mirror_destroy;
    b.set_record = ampi_cu_set_record;
    b.poll = ampi_cu_poll;
    b.gemm_tune = ampi_cu_gemm_tune;
    b.capture_id = ampi_cu_capture_id;
    return b;
}

/* Before a context exists, a failure can only go to the logger. */
static amp_status ampi_cu_refuse(const amp_cuda_desc *d, amp_status s, const char *what, const char *why = "") {
    char text[320];
    snprintf(text, sizeof text, "amp_cuda_create: %s%s%s", what, why[0] ? ": " : "", why);
    if (d->logger.fn) (d->logger.fn)(AMP_LOG_ERROR, s, text, d->logger.user);
    return s;
}

/* ---- everything of a context that can fail, in order; what was made is in *c.
   tests: tests/cuda_verbs.cpp, tests/test_context.c ---- */

static amp_status ampi_cu_check(const ampi_cuda *c, const amp_cuda_desc *d, const char *call, cudaError_t e) {
    if (e == cudaSuccess) return AMP_OK;
    return ampi_cu_refuse(d, ampi_cu_kind(e, c->stream), call, cudaGetErrorName(e));
}
/* Loads a kernel, so that its first launch, which may be inside a capture, does not; and asks how many of its blocks an
   SM holds. */
static amp_status ampi_cu_ask_resident(ampi_cuda *c, const amp_cuda_desc *d, const void *kernel) {
    struct cudaFuncAttributes its;
    int threads, blocks = 0;
    AMPI_TRY(ampi_cu_check(c, d, "cudaFuncGetAttributes", cudaFuncGetAttributes(&its, kernel)));
    if (its.ptxVersion < 90) c->dependent = 0; /* a driver has translated it: it does not wait */
    threads = its.maxThreadsPerBlock < AMP_BLOCK ? its.maxThreadsPerBlock : AMP_BLOCK;
    AMPI_TRY(ampi_cu_check(c, d, "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0)));
    c->resident[c->n_resident].kernel = kernel;
    c->resident[c->n_resident++].blocks = blocks > 0 ? blocks : 1;
    return AMP_OK;
}
static amp_status ampi_cu_make_resident(ampi_cuda *c, const amp_cuda_desc *d) {
    amp_status s = AMP_OK;
#define AMPI_CU_ASK(kernel) \
    if (s == AMP_OK) s = ampi_cu_ask_resident(c, d, (const void *)kernel);
#define AMP_X(kind, rule, moments) AMPI_CU_UPDATES(AMPI_CU_ASK, kind)
    AMPI_CU_KERNELS(AMPI_CU_ASK)
    AMP_UPDATE_LIST(AMP_X)
#undef AMP_X
#undef AMPI_CU_ASK
    return s;
}
/* Are the edges of a programmatic launch kept in a capture? */
static int ampi_cu_captures_edges(void) {
    int driver = 0;
    return CUDART_VERSION >= 12030 && cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030;
}
static amp_status ampi_cu_make_device(ampi_cuda *c, const amp_cuda_desc *d) {
    struct cudaDeviceProp properties;
    int blocks;
    AMPI_TRY(ampi_cu_check(c, d, "cudaSetDevice", cudaSetDevice(c->device)));
    AMPI_TRY(ampi_cu_check(c, d, "cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, c->device)));
    blocks = properties.maxThreadsPerMultiProcessor / AMP_BLOCK;
    c->blocks_per_sm = blocks > 0 ? blocks : 1;
    c->sms = properties.multiProcessorCount;
    c->arch = 10 * properties.major + properties.minor;
    c->dependent = (d->flags & AMP_CUDA_DEPENDENT_LAUNCH) && c->arch >= 90 && ampi_cu_captures_edges() &&
        d->stream != AMP_CUDA_STREAM_LEGACY;
    AMPI_TRY(ampi_cu_make_resident(c, d));
    c->l2 = (uint64_t)(properties.l2CacheSize > 0 ? properties.l2CacheSize : 0);
    c->primary = ampi_cu_current(&c->driver);
    snprintf(c->name, sizeof c->name, AMPI_CU_KIND "%.*s", (int)sizeof properties.name, properties.name);
    return AMP_OK;
}
static amp_status ampi_cu_make_stream(ampi_cuda *c, const amp_cuda_desc *d) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaStream_t made = NULL;
    cudaError_t e;
    if (c->own_stream) {
        AMPI_TRY(
            ampi_cu_check(c, d, "cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking)));
        c->stream = made;
    }
    e = cudaStreamIsCapturing(c->stream, &capture);
    if (e == cudaErrorStreamCaptureImplicit || (e == cudaSuccess && capture != cudaStreamCaptureStatusNone)) {
        (void)cudaGetLastError();
        return ampi_cu_refuse(d, AMP_ERR_CAPTURE, "desc.stream is being captured");
    }
    return ampi_cu_check(c, d, "cudaStreamIsCapturing", e);
}
static amp_status ampi_cu_make_cublas(ampi_cuda *c, const amp_cuda_desc *d) {
    cublasStatus_t b;
    if (!c->own_cublas) return AMP_OK;
    b = cublasLtCreate(&c->cublas);
    if (b == CUBLAS_STATUS_SUCCESS) return AMP_OK;
    c->cublas = NULL;
    return ampi_cu_refuse(d, ampi_cu_cublas_kind(c, b), "cublasLtCreate", ampi_cu_cublas_name(b));
}
static amp_status ampi_cu_take_first(ampi_cuda *c, const amp_cuda_desc *d, void **out, size_t bytes) {
    const char *call = "";
    cudaError_t e = ampi_cu_take(c, out, bytes, &call);
    if (e == cudaSuccess || !c->allocator.alloc_fn) return ampi_cu_check(c, d, call, e);
    return ampi_cu_refuse(d, AMP_ERR_NO_MEMORY, call, cudaGetErrorName(e)); /* CUDA has no note of it */
}
static amp_status ampi_cu_make_workspace(ampi_cuda *c, const amp_cuda_desc *d) {
    size_t bytes = d->workspace_bytes;
    if (c->own_workspace) {
        if (!bytes) bytes = (size_t)(c->arch >= 90 ? 32 : 4) << 20;
        if (bytes > (size_t)-1 / 2) bytes = (size_t)-1 / 2; /* more than there is, too, but adding to it is safe */
        AMPI_TRY(ampi_cu_take_first(c, d, &c->workspace, ampi_cu_with_bias(bytes)));
        c->workspace_bytes = bytes;
    } else if (c->workspace_bytes > 4u * AMPI_CU_BIAS) { /* the end of the caller's */
        c->workspace_bytes = (c->workspace_bytes - AMPI_CU_BIAS) & ~(size_t)255;
    } else {
        c->bias_room = 0;
    }
    c->bias = (char *)c->workspace + ampi_cu_with_bias(c->workspace_bytes) - AMPI_CU_BIAS;
    return AMP_OK;
}
static amp_status ampi_cu_make_scratch(ampi_cuda *c, const amp_cuda_desc *d) {
    const size_t bytes = sizeof(ampi_cu_scratch);
    void *p = NULL;
    AMPI_TRY(ampi_cu_take_first(c, d, &p, bytes));
    c->scratch = (ampi_cu_scratch *)p;
    AMPI_TRY(ampi_cu_check(c, d, "cudaMallocHost", cudaMallocHost(&p, bytes)));
    c->mirror = (ampi_cu_scratch *)p;
    memset(c->mirror, 0, bytes); /* the ticket starts at 0 */
    c->mirror->scalar[1] = 1.0f;
    AMPI_TRY(ampi_cu_check(
        c, d, "cudaMemcpyAsync", cudaMemcpyAsync(c->scratch, c->mirror, bytes, cudaMemcpyHostToDevice, c->stream)));
    return ampi_cu_check(c, d, "cudaStreamSynchronize", cudaStreamSynchronize(c->stream));
}
static amp_status ampi_cu_make_context(amp_ctx **out, ampi_cuda *c, const amp_cuda_desc *d) {
    amp_backend table = ampi_cu_table(c);
    amp_status s;
    table.gemm_flags = d->gemm_flags;
    s = amp_ctx_create_backend(out, &table, c, &d->host, &d->logger);
    c->ctx = *out;
    return s == AMP_OK ? s : ampi_cu_refuse(d, s, "no host memory");
}
/* The handle last: to destroy one breaks each capture that is under way, which a creation that fails must not. */
static amp_status ampi_cu_make_all(amp_ctx **out, ampi_cuda *c, const amp_cuda_desc *d) {
    AMPI_TRY(ampi_cu_make_device(c, d));
    AMPI_TRY(ampi_cu_make_stream(c, d));
    AMPI_TRY(ampi_cu_make_workspace(c, d));
    AMPI_TRY(ampi_cu_make_scratch(c, d));
    AMPI_TRY(ampi_cu_make_context(out, c, d));
    return ampi_cu_make_cublas(c, d);
}
/* Or nothing. */
static amp_status ampi_cu_make(amp_ctx **out, ampi_cuda *c, const amp_cuda_desc *d) {
    amp_status s;
    ampi_cu_relax(c);
    s = ampi_cu_make_all(out, c, d);
    ampi_cu_unrelax(c);
    if (s == AMP_OK) return s;
    if (*out)
        amp_ctx_destroy(*out);
    else
        ampi_cu_drop(c);
    *out = NULL;
    return s;
}

/* ---- amp_cuda_create: what is wrong with desc, then the parts that cannot fail, then those that can ---- */

static amp_status ampi_cu_check_desc(const amp_cuda_desc *d) {
    const char *wrong = NULL;
    if (d->flags & ~(AMP_CUDA_POOL | AMP_CUDA_DEBUG | AMP_CUDA_DEPENDENT_LAUNCH))
        wrong = "desc.flags has an unknown bit";
    else if (d->gemm_flags & ~AMPI_GEMM_FLAGS)
        wrong = "desc.gemm_flags has an unknown bit";
    else if (!d->allocator.alloc_fn != !d->allocator.free_fn)
        wrong = "desc.allocator needs both functions or neither";
    else if (!d->host.alloc_fn != !d->host.free_fn)
        wrong = "desc.host needs both functions or neither";
    else if (d->allocator.alloc_fn && (d->flags & AMP_CUDA_POOL))
        wrong = "desc.allocator and AMP_CUDA_POOL exclude each other";
    else if (d->workspace && d->workspace_bytes < 512u)
        wrong = "desc.workspace_bytes is less than 512";
    else if (d->plans > AMPI_CU_MOST)
        wrong = "desc.plans is more than 65536";
    return wrong ? ampi_cu_refuse(d, AMP_ERR_INVALID_ARG, wrong) : AMP_OK;
}
/* Is it that there is nothing to run on? Else something is there and does not work, which is not passed over. */
static int ampi_cu_no_cuda(cudaError_t e) {
    int driver = 0;
    if (e == cudaErrorInsufficientDriver) { /* too old, or none at all */
        if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
        return driver == 0;
    }
    return e == cudaSuccess || e == cudaErrorNoDevice || e == cudaErrorStubLibrary;
}
static amp_status ampi_cu_no_start(const amp_cuda_desc *d, const char *call, cudaError_t e) {
    char why[200] = "no device";
    amp_status s = ampi_cu_no_cuda(e) ? AMP_ERR_NO_CUDA : AMP_ERR_CUDA;
    if (ampi_cu_sticky(e)) s = AMP_ERR_DEAD;
    if (e != cudaSuccess) snprintf(why, sizeof why, "%s (%s)", cudaGetErrorName(e), cudaGetErrorString(e));
    ampi_cu_forget(e);
    return ampi_cu_refuse(d, s, call, why);
}
/* Which device desc means; *now: the one that the thread uses. */
static amp_status ampi_cu_pick_device(amp_cuda_desc *d, int *now) {
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess || count < 1) return ampi_cu_no_start(d, "cudaGetDeviceCount", e);
    e = cudaGetDevice(now);
    if (e != cudaSuccess) return ampi_cu_no_start(d, "cudaGetDevice", e);
    if (d->device == AMP_NONE) d->device = *now;
    if (d->device < 0 || d->device >= count)
        return ampi_cu_refuse(d, AMP_ERR_INVALID_ARG, "desc.device: this machine has no such device");
    return AMP_OK;
}
static ampi_cuda *ampi_cu_new(const amp_cuda_desc *d) {
    ampi_cuda *c = (ampi_cuda *)ampi_cu_host_new(&d->host, sizeof *c);
    if (!c) return NULL;
    c->n_plans = d->plans ? d->plans : AMPI_CU_PLANS;
    c->plans = (ampi_cu_plan *)ampi_cu_host_new(&d->host, ampi_cu_plans_bytes(c->n_plans));
    if (!c->plans) {
        ampi_cu_host_drop(&d->host, c, sizeof *c);
        return NULL;
    }
    c->buckets = (uint32_t *)(c->plans + c->n_plans);
    c->device = d->device;
    c->flags = d->flags;
    c->stream = d->stream;
    c->own_stream = d->stream == NULL;
    c->cublas = (cublasLtHandle_t)d->cublas;
    c->own_cublas = d->cublas == NULL;
    c->allocator = d->allocator;
    c->host = d->host;
    c->error.call = "";
    c->own_workspace = d->workspace == NULL;
    c->bias_room = AMPI_CU_BIAS / 2u;
    if (d->workspace) { /* aligned as cuBLASLt wants it */
        size_t skip = (size_t)(-(uintptr_t)d->workspace & 255u);
        c->workspace = (char *)d->workspace + skip;
        c->workspace_bytes = d->workspace_bytes - skip;
    }
    return c;
}
/* The thread is where it was; if that fails, the context goes, too. */
static amp_status ampi_cu_restore_device(
    amp_ctx **out, const amp_cuda_desc *d, const ampi_cu_driver *driver, const ampi_cu_place *was, amp_status s) {
    const int moved = was->device != d->device || was->context;
    cudaError_t e = moved ? ampi_cu_go_back(driver, was) : cudaSuccess;
    if (e == cudaSuccess) return s;
    if (s == AMP_OK) {
        const ampi_cuda *c = (const ampi_cuda *)amp_ctx_self(*out);
        s = ampi_cu_check(c, d, "cudaSetDevice", e);
        amp_ctx_destroy(*out);
        *out = NULL;
    }
    (void)cudaSetDevice(was->device);
    (void)cudaGetLastError();
    return s;
}

/* As amp.h holds a thread that is in a verb (ampi_hold): one that were cancelled here would lose what is half made. */
#if !defined(AMP_NO_THREADS) && defined(PTHREAD_CANCEL_DISABLE)
static int ampi_cu_hold(void) {
    int before = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}
static void ampi_cu_unhold(int before) { (void)pthread_setcancelstate(before, NULL); }
#else
static int ampi_cu_hold(void) { return 0; }
static void ampi_cu_unhold(int) {}
#endif

static amp_status ampi_cu_create(amp_ctx **out, int version, size_t size, const amp_cuda_desc *desc) {
    amp_cuda_desc d = AMP_ZERO;
    ampi_cu_place was = {0, 0, NULL};
    ampi_cu_driver driver;
    ampi_cuda *c;
    amp_status s;
    int error = errno;
    if (out) *out = NULL;
    if (version != AMP_VERSION || size != sizeof d) return AMP_ERR_VERSION;
    if (desc) {
        if (desc->_begin || desc->_end) return AMP_ERR_UNINIT; /* its logger cannot be trusted either */
        d = *desc;
    }
    if (!out) return ampi_cu_refuse(&d, AMP_ERR_INVALID_ARG, "out is NULL");
    AMPI_TRY(ampi_cu_check_desc(&d));
    AMPI_TRY(ampi_cu_pick_device(&d, &was.device));
    c = ampi_cu_new(&d);
    if (!c) return ampi_cu_refuse(&d, AMP_ERR_NO_MEMORY, "no host memory");
    c->driver = driver = ampi_cu_find_driver();
    if (was.device == d.device) was.context = ampi_cu_current(&driver); /* the primary one, or not */
    s = ampi_cu_make(out, c, &d);
    s = ampi_cu_restore_device(out, &d, &driver, &was, s);
    if (s == AMP_OK) errno = error;
    return s;
}

extern "C" amp_status amp_cuda_create_checked(amp_ctx **out, int version, size_t size, const amp_cuda_desc *desc) {
    const int before = ampi_cu_hold();
    const amp_status s = ampi_cu_create(out, version, size, desc);
    ampi_cu_unhold(before);
    return s;
}

extern "C" int amp_cuda_available(void) {
    const int before = ampi_cu_hold();
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    ampi_cu_forget(e);
    ampi_cu_unhold(before);
    return e == cudaSuccess && count > 0;
}

extern "C" amp_stream amp_cuda_stream(const amp_ctx *ctx) {
    const ampi_cuda *c = ampi_cu_of(ctx);
    return c ? ampi_cu_same_type(c->stream) : NULL;
}

extern "C" amp_status amp_cuda_last_error(const amp_ctx *ctx, amp_cuda_error *out) {
    const amp_cuda_error none = {0, AMP_CUDA_NO_LIBRARY, ""};
    const ampi_cuda *c = ampi_cu_of(ctx);
    if (!out) return AMP_ERR_INVALID_ARG;
    *out = c ? c->error : none;
    return c ? AMP_OK : AMP_ERR_INVALID_ARG;
}
} /* extern "C++" */
#pragma pack(pop)

#endif /* AMP_CUDA_IMPLEMENTATION */
