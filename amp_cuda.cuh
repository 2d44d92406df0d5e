/* amp_cuda.cuh - v0.1.0 - the CUDA context of amp.h - MIT, as amp.h

   DO THIS, in exactly one .cu file, compiled by nvcc:

       #define AMP_CUDA_IMPLEMENTATION
       #include "amp_cuda.cuh"

   Everywhere else, in C or C++, just  #include "amp_cuda.cuh": without the macro it is a plain C99 header that needs no CUDA.
   AMP_IMPLEMENTATION of amp.h may be in that .cu file or in any other file.

       nvcc -O2 -arch=sm_90 -c amp_gpu.cu                                          // the two lines above
       gcc  -O2 -c main.c amp_impl.c                                               // your program, amp.h's own two lines
       gcc  main.o amp_impl.o amp_gpu.o -L/usr/local/cuda/lib64 -lcudart -lcublasLt -lstdc++ -lm

   A machine without CUDA: link one .c file with  #define AMP_CUDA_STUB_IMPLEMENTATION  instead of the .cu; then
   amp_cuda_available() is 0 and amp_cuda_create() returns AMP_ERR_NO_CUDA. No #ifdef in your program.

       amp_ctx *ctx;
       amp_cuda_create(&ctx, NULL);                                         // device 0, a stream of its own
       amp_cuda_create(&ctx, &(amp_cuda_desc){ .stream = my_stream });      // C: your cudaStream_t, no cast
       amp_cuda_desc d = AMP_ZERO; d.stream = my_stream; amp_cuda_create(&ctx, d);                            // C++

   Then every verb of amp.h works on it as on the CPU, with the same bits (products: within the same bound).

   CONTENTS   >>cuda (the API)  >>stub  >>host (errors, launches, memory)  >>device (building blocks)  >>arrays  >>step  >>xent  >>products  >>table

   STREAM     All work of a context is queued on its one stream: yours, or a non-blocking one of its own. Order against your
              other streams is yours (events). Freed memory may still be in use by queued work: amp_free waits for it, or, with
              AMP_CUDA_POOL, frees in stream order.
   CAPTURE    The enqueue class of amp.h allocates nothing and never waits for the GPU, so it can be captured in a graph. Run one
              step before capturing: it loads the kernels and finds the product plans. What amp_step and others pass by value (lr,
              betas, ...) is frozen in the graph, what is read on the device (scale, counters, *lr_ptr) is not. Stages are host
              state: a replay does not move them. Replay a graph on the context's stream, or order it against that stream by
              events: the context has one scratch block. Destroy graphs before the context. Query and setup verbs inside a capture
              return AMP_ERR_CAPTURE and leave the capture valid; amp_free there takes effect after it. Do not destroy a context
              whose stream is being captured. The legacy stream cannot be captured (CUDA's rule).
   THREADS    One context, one thread at a time; several contexts, devices and threads side by side. A call selects its device
              and gives the thread's own back.
   ERRORS     AMP_ERR_CUDA: a call failed, the context can still be used. AMP_ERR_DEAD: a sticky error (a fault in a kernel, yours
              or ours), only amp_ctx_destroy is left. AMP_ERR_NO_MEMORY: nothing was allocated, go on. amp_last_error() names the
              call; amp_cuda_last_error() gives its code. An error that you left behind in the CUDA runtime is not taken for ours
              and stays there. Nothing prints, exits or throws.
   MEMORY     Allocated when the context is made, never later: the products' workspace, a scratch block of 2 KiB, as much
              page-locked host memory, the cuBLASLt handle. All device memory comes from the context's allocator.
   NEEDS      CUDA 12 or 13, sm_75 or newer (sm_70 with CUDA 12), C++11. BF16 and FP8 work on every GPU; products of BF16 use
              cuBLASLt from sm_80.
*/
#ifndef AMP_CUDA_CUH
#define AMP_CUDA_CUH

#include "amp.h"

#ifndef AMP_CUDA_API
#  define AMP_CUDA_API extern /* not AMP_API: AMP_STATIC must not make these static */
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ==== >>cuda ========================================================================================================== */

struct CUstream_st;   /* cudaStream_t is a pointer to this, by CUDA's own typedef, */
struct cublasContext; /* and cublasHandle_t to this */
typedef struct CUstream_st *amp_stream;

#define AMP_CUDA_STREAM_LEGACY     ((amp_stream)1) /* CUDA's default stream, cudaStreamLegacy */
#define AMP_CUDA_STREAM_PER_THREAD ((amp_stream)2) /* cudaStreamPerThread */

#define AMP_CUDA_POOL  1u /* device memory from cudaMallocAsync / cudaFreeAsync on the context's stream; use it on another stream
                             only behind an event */
#define AMP_CUDA_DEBUG 2u /* wait after each launch and check it, so that an error is reported by the call that made it (not while
                             the stream is being captured) */

typedef struct amp_cuda_desc {
    uint32_t      _begin;
    int32_t       device;          /* CUDA's ordinal; 0 is device 0; AMP_NONE => the calling thread's current device */
    uint32_t      flags;           /* AMP_CUDA_* */
    uint32_t      _pad;
    amp_stream    stream;          /* NULL => the context makes its own non-blocking stream; else a stream of that device, yours */
    struct cublasContext *cublas;  /* a cublasLtHandle_t (cast) or cublasHandle_t of yours; NULL => the context makes one */
    void         *workspace;       /* device memory for products, yours; NULL => allocated */
    size_t        workspace_bytes; /* its size; with workspace NULL: how much to allocate, 0 => 32 MiB on sm_90 and later, else 4 MiB */
    amp_allocator allocator;       /* of device memory; {0} => cudaMalloc / cudaFree. Not together with AMP_CUDA_POOL */
    amp_allocator host;            /* of host objects; {0} => malloc / free */
    amp_logger    logger;          /* {0} => silent */
    uint64_t      _end;
} amp_cuda_desc;

/* amp_status amp_cuda_create(amp_ctx **out, const amp_cuda_desc *desc)
   A context on one stream of one GPU. desc NULL => all defaults. Everything lent must outlive the context.
   Errors: INVALID_ARG, UNINIT, VERSION, NO_MEMORY, NO_CUDA (no device, no driver, or the stub), CUDA, DEAD, CAPTURE (the stream is
   being captured); *out is NULL then, nothing is left behind, and the logger has the sentence. Class: setup. Threads: safe. */
#define amp_cuda_create(out, ...) amp_cuda_create_checked((out), AMP_VERSION, sizeof(amp_cuda_desc), __VA_ARGS__)
AMP_CUDA_API amp_status amp_cuda_create_checked(amp_ctx **out, int version, size_t size, const amp_cuda_desc *desc);

/* 1 if there is a CUDA device that can be used, else 0 (also: the stub). Class: host. Threads: safe. */
AMP_CUDA_API int amp_cuda_available(void);

/* The stream of a CUDA context; NULL for any other context. Class: host. */
AMP_CUDA_API amp_stream amp_cuda_stream(const amp_ctx *ctx);

typedef enum amp_cuda_library { AMP_CUDA_NO_LIBRARY = 0, AMP_CUDA_RUNTIME, AMP_CUDA_CUBLASLT } amp_cuda_library;
typedef struct amp_cuda_error {
    int32_t          code;    /* a cudaError_t or a cublasStatus_t */
    amp_cuda_library library; /* whose; AMP_CUDA_NO_LIBRARY: no CUDA call of this context has failed */
    const char      *call;    /* "cudaMemcpyAsync"; "" if none. Static text */
} amp_cuda_error;
/* The last CUDA call of this context that failed. INVALID_ARG if it is no CUDA context. Class: host. */
AMP_CUDA_API amp_status amp_cuda_last_error(const amp_ctx *ctx, amp_cuda_error *out);

#ifdef __cplusplus
} /* extern "C" */
static inline amp_status amp_cuda_create_checked(amp_ctx **out, int version, size_t size, const amp_cuda_desc &d) {
    return amp_cuda_create_checked(out, version, size, &d);
}
#endif
#endif /* AMP_CUDA_CUH */

#if defined(AMP_CUDA_IMPLEMENTATION) && defined(AMP_CUDA_STUB_IMPLEMENTATION)
#  error "amp_cuda.cuh: AMP_CUDA_IMPLEMENTATION and AMP_CUDA_STUB_IMPLEMENTATION exclude each other: define the first in one .cu file, or the second in one .c file"
#endif

/* ==== >>stub ========================================================================================================== */

#if defined(AMP_CUDA_STUB_IMPLEMENTATION) && !defined(AMP_CUDA_ONCE)
#define AMP_CUDA_ONCE
#ifdef __cplusplus
extern "C" {
#endif
amp_status amp_cuda_create_checked(amp_ctx **out, int version, size_t size, const amp_cuda_desc *desc) {
    (void)version; (void)size; (void)desc;
    if (out) *out = NULL;
    return AMP_ERR_NO_CUDA;
}
int amp_cuda_available(void) { return 0; }
amp_stream amp_cuda_stream(const amp_ctx *ctx) { (void)ctx; return NULL; }
amp_status amp_cuda_last_error(const amp_ctx *ctx, amp_cuda_error *out) {
    (void)ctx;
    if (out) { out->code = 0; out->library = AMP_CUDA_NO_LIBRARY; out->call = ""; }
    return AMP_ERR_INVALID_ARG;
}
#ifdef __cplusplus
}
#endif
#endif

/* ==== the implementation ============================================================================================== */

#if defined(AMP_CUDA_IMPLEMENTATION) && !defined(AMP_CUDA_ONCE)
#define AMP_CUDA_ONCE
#if !defined(__CUDACC__) && !defined(AMP_HOSTCUDA)
#  error "amp_cuda.cuh: AMP_CUDA_IMPLEMENTATION must be compiled by nvcc (a .cu file); for a program without a GPU define AMP_CUDA_STUB_IMPLEMENTATION in a .c file instead"
#endif

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

/* Threads per block: one constant for all kernels. A power of two from 32 to 256; the results do not depend on it. */
#ifndef AMP_BLOCK
#  define AMP_BLOCK 256
#endif
#if AMP_BLOCK != 32 && AMP_BLOCK != 64 && AMP_BLOCK != 128 && AMP_BLOCK != 256
#  error "amp_cuda.cuh: AMP_BLOCK must be 32, 64, 128 or 256"
#endif
#ifndef AMP_SHARED
#  define AMP_SHARED(T, name, n) __shared__ T name[n]
#endif

static_assert(sizeof(amp_f16) == 2 && sizeof(amp_bf16) == 2 && sizeof(amp_f8e4m3) == 1 && sizeof(float) == 4, "storage types");
static inline amp_stream ampi_cu_same_type(cudaStream_t s) { return s; } /* does not compile if CUDA changes its typedef */

/* ==== >>host: errors, launches, memory ================================================================================ */

#define AMPI_CU_FEW   32u    /* arrays per launch of the list verbs */
#define AMPI_CU_PLANS 64u    /* products whose plan is remembered */
#define AMPI_CU_LATE  64u    /* blocks freed inside captures */

/* What kernels leave for each other or for the host. One per context; work on one stream uses it in turn. */
typedef struct ampi_cu_scratch {
    uint32_t ticket;              /* of the last-block pattern; wraps to 0 by itself */
    uint32_t amax;                /* histogram: bits of the largest magnitude */
    uint64_t nan, inf;            /* finite */
    uint64_t first;               /* finite: ~(chunk number << 16 | offset) of the first bad element, 0 if none */
    uint64_t rows;                /* xent: rows that count */
    uint64_t bins[4 + 256];       /* histogram: total, zero, inf, nan, pow2[] */
    float    scalar[2];           /* 0 and 1, for products; never changes */
} ampi_cu_scratch;

typedef struct ampi_cu_key { /* everything that the choice of a product's algorithm depends on; no padding, compared as bytes */
    uint64_t m, n, k, batch, lda, ldb, ldc, ldd, stride_a, stride_b, stride_c, stride_d;
    uint32_t types, shape, align, _pad;
} ampi_cu_key;

typedef struct ampi_cu_plan {
    ampi_cu_key          key;
    cublasLtMatmulAlgo_t algo;
    cublasLtEpilogue_t   epilogue; /* what cuBLASLt does after the product */
    uint32_t             used;
    uint32_t             lt;       /* 1: cuBLASLt, 0: ampi_k_gemm */
    uint32_t             after;    /* 1: then ampi_k_epilogue: AMPI_CU_BIAS adds the bias there, too */
} ampi_cu_plan;

typedef struct ampi_cuda {
    int              device, sms, blocks_per_sm, arch; /* arch: 90 for sm_90 */
    uint32_t         flags, dead, own_stream, own_cublas, own_workspace, next_plan;
    cudaStream_t     stream;
    cublasLtHandle_t cublas;
    void            *workspace;
    size_t           workspace_bytes;
    ampi_cu_scratch *scratch, *mirror; /* device; page-locked host */
    amp_allocator    allocator, host;
    amp_cuda_error   error;
    struct { void *p; size_t bytes; } late[AMPI_CU_LATE]; /* to be freed when no capture is under way */
    uint32_t         n_late, _pad;
    char             name[256];
    ampi_cu_plan     plans[AMPI_CU_PLANS];
} ampi_cuda;

typedef struct ampi_cu_call { /* one call of a backend function */
    amp_ctx    *ctx;
    ampi_cuda  *c;
    const char *verb; /* for messages */
    int         back; /* the thread's device before, or -1 */
} ampi_cu_call;

/* Errors after which, in CUDA's words, the process must be terminated to go on. */
static int ampi_cu_sticky(cudaError_t e) {
    switch (e) {
    case cudaErrorIllegalAddress: case cudaErrorLaunchTimeout: case cudaErrorAssert: case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction: case cudaErrorMisalignedAddress: case cudaErrorInvalidAddressSpace: case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure: case cudaErrorECCUncorrectable: case cudaErrorNvlinkUncorrectable: case cudaErrorMpsClientTerminated:
    case cudaErrorCudartUnloading:
        return 1;
    default:
        return 0;
    }
}

/* A failed call of the CUDA runtime: what kind of failure, and is the device still there? The runtime's own note of it is cleared,
   because the status tells the caller; an error that survives that is sticky. */
static amp_status ampi_cu_kind(cudaError_t e, cudaStream_t stream) {
    cudaStreamCaptureStatus capture;
    cudaError_t probe;
    (void)cudaGetLastError();
    if (ampi_cu_sticky(e)) return AMP_ERR_DEAD;
    probe = cudaStreamIsCapturing(stream, &capture); /* harmless in a capture; reports a dead device */
    if (probe != cudaSuccess) (void)cudaGetLastError();
    if (ampi_cu_sticky(probe) || (probe == e && cudaPeekAtLastError() == e)) return AMP_ERR_DEAD;
    if (e == cudaErrorMemoryAllocation) return AMP_ERR_NO_MEMORY;
    if (e >= cudaErrorStreamCaptureUnsupported && e <= cudaErrorStreamCaptureWrongThread) return AMP_ERR_CAPTURE;
    return AMP_ERR_CUDA;
}

static amp_status ampi_cu_fail(const ampi_cu_call *k, const char *call, cudaError_t e) {
    amp_status s = ampi_cu_kind(e, k->c->stream);
    k->c->error.code = (int32_t)e;
    k->c->error.library = AMP_CUDA_RUNTIME;
    k->c->error.call = call;
    if (s == AMP_ERR_DEAD) k->c->dead = 1;
    return amp_fail(k->ctx, s, "%s: %s: %s (%s)", k->verb, call, cudaGetErrorName(e), cudaGetErrorString(e));
}

static const char *ampi_cu_cublas_name(cublasStatus_t e) {
    switch (e) {
    case CUBLAS_STATUS_NOT_INITIALIZED:  return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:     return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:    return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:    return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR:    return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:   return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:    return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:                             return "a cuBLAS status without a name here";
    }
}

static amp_status ampi_cu_fail_cublas(const ampi_cu_call *k, const char *call, cublasStatus_t e) {
    amp_status s = e == CUBLAS_STATUS_ALLOC_FAILED ? AMP_ERR_NO_MEMORY : AMP_ERR_CUDA;
    cudaError_t under = cudaPeekAtLastError(); /* a dead device shows here, whatever cuBLAS makes of it */
    if (under != cudaSuccess && ampi_cu_kind(under, k->c->stream) == AMP_ERR_DEAD) s = AMP_ERR_DEAD;
    k->c->error.code = (int32_t)e;
    k->c->error.library = AMP_CUDA_CUBLASLT;
    k->c->error.call = call;
    if (s == AMP_ERR_DEAD) k->c->dead = 1;
    return amp_fail(k->ctx, s, "%s: %s: %s (%d)", k->verb, call, ampi_cu_cublas_name(e), (int)e);
}

static amp_status ampi_cu_enter(ampi_cu_call *k, amp_ctx *ctx, const char *verb) {
    int now = 0;
    cudaError_t e;
    k->ctx = ctx;
    k->c = (ampi_cuda *)amp_ctx_self(ctx);
    k->verb = verb;
    k->back = -1;
    if (k->c->dead) return amp_fail(ctx, AMP_ERR_DEAD, "%s: the device is in a sticky error state since %s failed", verb, k->c->error.call);
    e = cudaGetDevice(&now);
    if (e != cudaSuccess) return ampi_cu_fail(k, "cudaGetDevice", e);
    if (now != k->c->device) {
        e = cudaSetDevice(k->c->device);
        k->back = now;
        if (e != cudaSuccess) return ampi_cu_fail(k, "cudaSetDevice", e); /* ampi_cu_leave follows here, too */
    }
    return AMP_OK;
}

static amp_status ampi_cu_leave(const ampi_cu_call *k, amp_status s) {
    cudaError_t e = k->back >= 0 ? cudaSetDevice(k->back) : cudaSuccess;
    if (e == cudaSuccess) return s;
    if (s == AMP_OK) s = ampi_cu_fail(k, "cudaSetDevice", e);
    (void)cudaSetDevice(k->back); /* once more: the thread wants its device back */
    return s;
}

static amp_status ampi_cu_capture(const ampi_cu_call *k, int *capturing) {
    cudaStreamCaptureStatus st = cudaStreamCaptureStatusNone;
    cudaError_t e = cudaStreamIsCapturing(k->c->stream, &st);
    if (e == cudaErrorStreamCaptureImplicit) { /* the legacy stream, while a blocking stream is being captured */
        (void)cudaGetLastError();
        e = cudaSuccess;
        st = cudaStreamCaptureStatusActive;
    }
    *capturing = st != cudaStreamCaptureStatusNone;
    return e == cudaSuccess ? AMP_OK : ampi_cu_fail(k, "cudaStreamIsCapturing", e);
}

static amp_status ampi_cu_wait(const ampi_cu_call *k) {
    cudaError_t e = cudaStreamSynchronize(k->c->stream);
    return e == cudaSuccess ? AMP_OK : ampi_cu_fail(k, "cudaStreamSynchronize", e);
}

/* After a launch that was accepted: has the device died meanwhile? Other errors that the runtime remembers are not ours. */
static amp_status ampi_cu_launched(const ampi_cu_call *k, const char *call) {
    cudaError_t e = cudaPeekAtLastError();
    int capturing = 0;
    amp_status s;
    if (ampi_cu_sticky(e)) return ampi_cu_fail(k, call, e);
    if (!(k->c->flags & AMP_CUDA_DEBUG)) return AMP_OK;
    s = ampi_cu_capture(k, &capturing);
    return s != AMP_OK || capturing ? s : ampi_cu_wait(k);
}

template <class... P, class... A>
static amp_status ampi_cu_launch(const ampi_cu_call *k, unsigned grid, void (*kernel)(P...), A... args) {
    cudaLaunchConfig_t config = AMP_ZERO;
    cudaError_t e;
    config.gridDim = dim3(grid);
    config.blockDim = dim3(AMP_BLOCK);
    config.stream = k->c->stream;
    e = cudaLaunchKernelEx(&config, kernel, args...);
    return e == cudaSuccess ? ampi_cu_launched(k, "cudaLaunchKernelEx") : ampi_cu_fail(k, "cudaLaunchKernelEx", e);
}

/* Blocks for `work` units of one block each: enough to fill the GPU once; kernels go round. */
static unsigned ampi_cu_grid(const ampi_cuda *c, uint64_t work) {
    uint64_t most = (uint64_t)c->sms * (uint64_t)c->blocks_per_sm;
    return (unsigned)(work < 1 ? 1 : work < most ? work : most);
}
static uint64_t ampi_cu_parts(uint64_t n, uint64_t part) { return n / part + (n % part != 0); }

static const char *ampi_cu_device(amp_ctx *ctx) { return ((ampi_cuda *)amp_ctx_self(ctx))->name; }

static amp_status ampi_cu_may_wait(amp_ctx *ctx) {
    ampi_cu_call k;
    int capturing = 0;
    amp_status s = ampi_cu_enter(&k, ctx, "query");
    if (s == AMP_OK) s = ampi_cu_capture(&k, &capturing);
    if (s == AMP_OK && capturing) s = amp_fail(ctx, AMP_ERR_CAPTURE, "this call synchronises and the context's stream is being captured");
    return ampi_cu_leave(&k, s);
}

/* Device memory by the context's allocator. */
static cudaError_t ampi_cu_take(const ampi_cuda *c, void **out, size_t bytes, const char **call) {
    *out = NULL;
    if (c->allocator.alloc_fn) {
        *call = "allocator.alloc_fn";
        *out = c->allocator.alloc_fn(bytes, c->allocator.user);
        return *out ? cudaSuccess : cudaErrorMemoryAllocation;
    }
    *call = c->flags & AMP_CUDA_POOL ? "cudaMallocAsync" : "cudaMalloc";
    return c->flags & AMP_CUDA_POOL ? cudaMallocAsync(out, bytes, c->stream) : cudaMalloc(out, bytes);
}
static void ampi_cu_give(const ampi_cuda *c, void *p, size_t bytes) { /* not while the stream is being captured */
    if (!p) return;
    if (c->allocator.alloc_fn) { /* cudaFree waits for work that uses the memory, a caller's function may not */
        (void)cudaStreamSynchronize(c->stream);
        c->allocator.free_fn(p, bytes, c->allocator.user);
    } else if (c->flags & AMP_CUDA_POOL) {
        (void)cudaFreeAsync(p, c->stream);
    } else {
        (void)cudaFree(p);
    }
}
/* What was to be freed inside a capture, which forbids it, is freed when the capture is over. */
static void ampi_cu_give_late(ampi_cuda *c) {
    while (c->n_late) {
        c->n_late--;
        ampi_cu_give(c, c->late[c->n_late].p, c->late[c->n_late].bytes);
    }
}

static amp_status ampi_cu_alloc(amp_ctx *ctx, void **out, size_t bytes) {
    ampi_cu_call k;
    const char *call = "";
    int capturing = 0;
    cudaError_t e;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_alloc");
    *out = NULL;
    if (s == AMP_OK) s = ampi_cu_capture(&k, &capturing);
    if (s == AMP_OK && capturing) s = amp_fail(ctx, AMP_ERR_CAPTURE, "amp_alloc: the context's stream is being captured");
    if (s == AMP_OK) {
        ampi_cu_give_late(k.c);
        e = ampi_cu_take(k.c, out, bytes, &call);
        if (e != cudaSuccess && k.c->allocator.alloc_fn) s = amp_fail(ctx, AMP_ERR_NO_MEMORY, "amp_alloc: the allocator has no %llu bytes", (unsigned long long)bytes);
        else if (e != cudaSuccess) s = ampi_cu_fail(&k, call, e);
    }
    s = ampi_cu_leave(&k, s);
    if (s != AMP_OK) {
        ampi_cu_give(k.c, *out, bytes);
        *out = NULL;
    }
    return s;
}

static void ampi_cu_release(amp_ctx *ctx, void *p, size_t bytes) {
    ampi_cu_call k;
    int capturing = 0;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_free");
    if (s == AMP_OK) s = ampi_cu_capture(&k, &capturing);
    if (!capturing) {
        ampi_cu_give_late(k.c);
        ampi_cu_give(k.c, p, bytes); /* also on a dead device: a lent allocator gets its memory back */
    } else if (k.c->n_late < AMPI_CU_LATE) {
        k.c->late[k.c->n_late].p = p;
        k.c->late[k.c->n_late++].bytes = bytes;
    } else {
        amp_log_event(ctx, AMP_LOG_WARNING, "amp_free: too much was freed inside a capture: %llu bytes are lost", (unsigned long long)bytes);
    }
    (void)ampi_cu_leave(&k, s);
}

static amp_status ampi_cu_copy(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    ampi_cu_call k;
    cudaError_t e;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_copy");
    if (s == AMP_OK) {
        e = cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, k.c->stream);
        s = e == cudaSuccess ? ampi_cu_wait(&k) : ampi_cu_fail(&k, "cudaMemcpyAsync", e);
    }
    return ampi_cu_leave(&k, s);
}

static amp_status ampi_cu_clear(const ampi_cu_call *k, void *dst, size_t bytes) {
    cudaError_t e = cudaMemsetAsync(dst, 0, bytes, k->c->stream);
    return e == cudaSuccess ? AMP_OK : ampi_cu_fail(k, "cudaMemsetAsync", e);
}

static amp_status ampi_cu_zero(amp_ctx *ctx, void *dst, size_t bytes) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_zero");
    if (s == AMP_OK) s = ampi_cu_clear(&k, dst, bytes);
    return ampi_cu_leave(&k, s);
}

static amp_status ampi_cu_sync(amp_ctx *ctx) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_sync");
    if (s == AMP_OK) s = ampi_cu_wait(&k);
    return ampi_cu_leave(&k, s);
}

/* The scratch block to its page-locked mirror, and wait. */
static amp_status ampi_cu_read_scratch(const ampi_cu_call *k) {
    cudaError_t e = cudaMemcpyAsync(k->c->mirror, k->c->scratch, sizeof(ampi_cu_scratch), cudaMemcpyDeviceToHost, k->c->stream);
    return e == cudaSuccess ? ampi_cu_wait(k) : ampi_cu_fail(k, "cudaMemcpyAsync", e);
}

/* ==== >>device: building blocks of the kernels ======================================================================== */

#define AMPI_K    static __device__ __forceinline__
#define AMPI_K_AT __device__ __forceinline__ /* a member function */
#if defined(__CUDACC__)
#  define AMPI_UNROLL _Pragma("unroll") /* small arrays stay in registers */
#else
#  define AMPI_UNROLL
#endif

/* Device arrays are read and written as 8, 16, 32 and 128 bits. Only the host runtime of the tests, where a C++ compiler sees
   these accesses, needs to be told that they may overlap with others. */
#if defined(__CUDACC__)
typedef uint16_t ampi_k_u16;
typedef uint32_t ampi_k_u32;
typedef uint2    ampi_k_u2;
typedef uint4    ampi_k_u4;
#else
typedef uint16_t __attribute__((may_alias)) ampi_k_u16;
typedef uint32_t __attribute__((may_alias)) ampi_k_u32;
typedef struct __attribute__((may_alias, aligned(8))) ampi_k_u2 { uint32_t x, y; } ampi_k_u2;
typedef struct __attribute__((may_alias, aligned(16))) ampi_k_u4 { uint32_t x, y, z, w; } ampi_k_u4;
#endif

/* a < b, with subnormals, also under -use_fast_math. */
AMPI_K int ampi_k_less(float a, float b) {
#if defined(__CUDA_ARCH__)
    int r;
    asm("{ .reg .pred p; setp.lt.f32 p, %1, %2; selp.s32 %0, 1, 0, p; }" : "=r"(r) : "f"(a), "f"(b));
    return r;
#else
    return a < b;
#endif
}
AMPI_K int ampi_k_is_zero(float a) { return ampi_bits(a) << 1 == 0; }

/* One element as float bits, and back from the pattern of its dtype. */
AMPI_K uint32_t ampi_k_get_bits(const void *p, amp_dtype t, size_t i) {
    switch (t) {
    case AMP_F32:    return ((const ampi_k_u32 *)p)[i];
    case AMP_F16:    return ampi_decode(((const ampi_k_u16 *)p)[i], AMP_F16);
    case AMP_BF16:   return ampi_decode(((const ampi_k_u16 *)p)[i], AMP_BF16);
    case AMP_F8E4M3: return ampi_decode(((const uint8_t *)p)[i], AMP_F8E4M3);
    default:         return ampi_decode(((const uint8_t *)p)[i], AMP_F8E5M2);
    }
}
AMPI_K float ampi_k_get(const void *p, amp_dtype t, size_t i) { return ampi_float(ampi_k_get_bits(p, t, i)); }

AMPI_K void ampi_k_put_bits(void *p, amp_dtype t, size_t i, uint32_t pattern) {
    if (t == AMP_F32) ((ampi_k_u32 *)p)[i] = pattern;
    else if (t == AMP_F16 || t == AMP_BF16) ((ampi_k_u16 *)p)[i] = (uint16_t)pattern;
    else ((uint8_t *)p)[i] = (uint8_t)pattern;
}
AMPI_K uint32_t ampi_k_pattern(uint32_t x, amp_dtype t, amp_rounding how, uint32_t r, int saturate) {
    switch (t) { /* the format's numbers fold into each case */
    case AMP_F32:    return x;
    case AMP_F16:    return ampi_encode(x, AMP_F16, how, r, saturate);
    case AMP_BF16:   return ampi_encode(x, AMP_BF16, how, r, saturate);
    case AMP_F8E4M3: return ampi_encode(x, AMP_F8E4M3, how, r, saturate);
    default:         return ampi_encode(x, AMP_F8E5M2, how, r, saturate);
    }
}
AMPI_K void ampi_k_put(void *p, amp_dtype t, size_t i, float x) {
    ampi_k_put_bits(p, t, i, ampi_k_pattern(ampi_bits(x), t, AMP_NEAREST, 0, 0));
}

/* Eight elements at a time are the vector body of every array kernel: 32 bytes of F32 (two accesses of 128 bits), 16 of a 16-bit
   format, 8 of an FP8 format. `wide` says that the address allows it; else one by one, and only the first m. */
AMPI_K size_t ampi_k_unit(amp_dtype t) { return t == AMP_F8E4M3 || t == AMP_F8E5M2 ? 8u : 16u; }
AMPI_K int ampi_k_aligned(const void *p, amp_dtype t) { return ((uintptr_t)p & (ampi_k_unit(t) - 1u)) == 0; }

AMPI_K void ampi_k_unpack2(uint32_t *x, uint32_t word) { x[0] = word & 0xffffu; x[1] = word >> 16; }
AMPI_K void ampi_k_unpack4(uint32_t *x, uint32_t word) {
    x[0] = word & 0xffu; x[1] = word >> 8 & 0xffu; x[2] = word >> 16 & 0xffu; x[3] = word >> 24;
}

AMPI_K void ampi_k_load8(uint32_t x[8], const void *p, amp_dtype t, size_t i, uint32_t m, int wide) { /* to float bits */
    uint32_t k;
    if (!wide || m < 8u) {
        for (k = 0; k < 8u; k++) x[k] = k < m ? ampi_k_get_bits(p, t, i + k) : 0u;
        return;
    }
    if (t == AMP_F32) {
        const ampi_k_u4 *v = (const ampi_k_u4 *)((const char *)p + 4u * i);
        ampi_k_u4 a = v[0], b = v[1];
        x[0] = a.x; x[1] = a.y; x[2] = a.z; x[3] = a.w; x[4] = b.x; x[5] = b.y; x[6] = b.z; x[7] = b.w;
    } else if (t == AMP_F16 || t == AMP_BF16) {
        ampi_k_u4 a = *(const ampi_k_u4 *)((const char *)p + 2u * i);
        ampi_k_unpack2(x, a.x); ampi_k_unpack2(x + 2, a.y); ampi_k_unpack2(x + 4, a.z); ampi_k_unpack2(x + 6, a.w);
    } else {
        ampi_k_u2 a = *(const ampi_k_u2 *)((const char *)p + i);
        ampi_k_unpack4(x, a.x); ampi_k_unpack4(x + 4, a.y);
    }
    switch (t) {
    case AMP_F16:    for (k = 0; k < 8u; k++) x[k] = ampi_decode(x[k], AMP_F16); break;
    case AMP_BF16:   for (k = 0; k < 8u; k++) x[k] = ampi_decode(x[k], AMP_BF16); break;
    case AMP_F8E4M3: for (k = 0; k < 8u; k++) x[k] = ampi_decode(x[k], AMP_F8E4M3); break;
    case AMP_F8E5M2: for (k = 0; k < 8u; k++) x[k] = ampi_decode(x[k], AMP_F8E5M2); break;
    default: break;
    }
}

AMPI_K void ampi_k_store8(const uint32_t x[8], void *p, amp_dtype t, size_t i, uint32_t m, int wide) { /* from patterns */
    uint32_t k;
    if (!wide || m < 8u) {
        for (k = 0; k < 8u; k++)
            if (k < m) ampi_k_put_bits(p, t, i + k, x[k]);
    } else if (t == AMP_F32) {
        ampi_k_u4 *v = (ampi_k_u4 *)((char *)p + 4u * i), a, b;
        a.x = x[0]; a.y = x[1]; a.z = x[2]; a.w = x[3]; b.x = x[4]; b.y = x[5]; b.z = x[6]; b.w = x[7];
        v[0] = a; v[1] = b;
    } else if (t == AMP_F16 || t == AMP_BF16) {
        ampi_k_u4 a;
        a.x = x[0] | x[1] << 16; a.y = x[2] | x[3] << 16; a.z = x[4] | x[5] << 16; a.w = x[6] | x[7] << 16;
        *(ampi_k_u4 *)((char *)p + 2u * i) = a;
    } else {
        ampi_k_u2 a;
        a.x = x[0] | x[1] << 8 | x[2] << 16 | x[3] << 24; a.y = x[4] | x[5] << 8 | x[6] << 16 | x[7] << 24;
        *(ampi_k_u2 *)((char *)p + i) = a;
    }
}

AMPI_K void ampi_k_pattern8(uint32_t x[8], amp_dtype t, amp_rounding how, const uint32_t r[8], int saturate) {
    uint32_t k;
    switch (t) {
    case AMP_F32:    break;
    case AMP_F16:    for (k = 0; k < 8u; k++) x[k] = ampi_encode(x[k], AMP_F16, how, r[k], saturate); break;
    case AMP_BF16:   for (k = 0; k < 8u; k++) x[k] = ampi_encode(x[k], AMP_BF16, how, r[k], saturate); break;
    case AMP_F8E4M3: for (k = 0; k < 8u; k++) x[k] = ampi_encode(x[k], AMP_F8E4M3, how, r[k], saturate); break;
    default:         for (k = 0; k < 8u; k++) x[k] = ampi_encode(x[k], AMP_F8E5M2, how, r[k], saturate); break;
    }
}
AMPI_K void ampi_k_nearest8(uint32_t x[8], amp_dtype t) {
    const uint32_t none[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ampi_k_pattern8(x, t, AMP_NEAREST, none, 0);
}
AMPI_K void ampi_k_random8(uint32_t r[8], uint64_t seed, uint64_t stream, uint64_t index) { /* amp_random of eight in a row */
    uint32_t k;
    if ((index & 3u) == 0) {
        amp_philox(r, seed, stream, index >> 2);
        amp_philox(r + 4, seed, stream, (index >> 2) + 1u);
    } else {
        for (k = 0; k < 8u; k++) r[k] = amp_random(seed, stream, index + k);
    }
}

/* Sums by the rule of amp.h. A group is 8 neighbouring lanes; thread t owns groups t, t + AMP_BLOCK, ... of the 256. */
#define AMPI_GROUPS (AMP_LANES / 8u)
#define AMPI_OWN    (AMP_LANES / AMP_BLOCK) /* lanes per thread */

AMPI_K double ampi_k_join8(double lane[8]) {
    uint32_t k;
    for (k = 0; k < 4u; k++) lane[k] = ampi_dadd(lane[k], lane[k + 4u]);
    for (k = 0; k < 2u; k++) lane[k] = ampi_dadd(lane[k], lane[k + 2u]);
    return ampi_dadd(lane[0], lane[1]);
}
/* first[256] in shared memory holds each group's sum. All threads get the total; first[] may be reused after it. */
AMPI_K double ampi_k_join(double *first) {
    uint32_t w, i;
    double sum;
    __syncthreads();
    for (w = AMPI_GROUPS / 2u; w; w >>= 1) {
        for (i = threadIdx.x; i < w; i += AMP_BLOCK) first[i] = ampi_dadd(first[i], first[i + w]);
        __syncthreads();
    }
    sum = first[0];
    __syncthreads();
    return sum;
}
AMPI_K double ampi_k_join_own(double *own, double *first) {
    uint32_t q;
    AMPI_UNROLL for (q = 0; q < AMPI_OWN / 8u; q++) first[threadIdx.x + q * AMP_BLOCK] = ampi_k_join8(own + 8u * q);
    return ampi_k_join(first);
}
AMPI_K void ampi_k_lane_add(double *own, uint32_t lane, double x) { /* only the owner of the lane adds */
    uint32_t q, g = lane / 8u, mine = g / AMP_BLOCK * 8u + lane % 8u;
    if (g % AMP_BLOCK != threadIdx.x) return;
    AMPI_UNROLL for (q = 0; q < AMPI_OWN; q++)
        if (q == mine) own[q] = ampi_dadd(own[q], x);
}
/* One chunk: x.at(base) ... x.at(base + n - 1). x is a small struct with a function at(i) that gives the i-th double. */
template <class X> AMPI_K double ampi_k_sum_chunk(const X &x, uint64_t base, uint32_t n, double *first) {
    uint32_t g, i, k;
    for (g = threadIdx.x; g < AMPI_GROUPS; g += AMP_BLOCK) {
        double lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        for (i = 8u * g; i < n; i += AMP_LANES)
            for (k = 0; k < 8u; k++)
                if (i + k < n) lane[k] = ampi_dadd(lane[k], x.at(base + i + k));
        first[g] = ampi_k_join8(lane);
    }
    return ampi_k_join(first);
}
/* An array of any length by one block: chunk sums go to the lanes of the upper level as they come; of those, AMP_CHUNK at a time
   are joined and added up in order. */
template <class X> AMPI_K double ampi_k_sum(const X &x, uint64_t n, double *first) {
    uint64_t chunks = n / AMP_CHUNK + (n % AMP_CHUNK != 0), c;
    double own[AMPI_OWN], sum = 0.0;
    uint32_t q;
    if (chunks <= 1u) return ampi_k_sum_chunk(x, 0, (uint32_t)n, first);
    AMPI_UNROLL for (q = 0; q < AMPI_OWN; q++) own[q] = 0.0;
    for (c = 0; c < chunks; c++) {
        uint64_t left = n - c * AMP_CHUNK;
        ampi_k_lane_add(own, (uint32_t)(c % AMP_LANES), ampi_k_sum_chunk(x, c * AMP_CHUNK, (uint32_t)(left < AMP_CHUNK ? left : AMP_CHUNK), first));
        if (c % AMP_CHUNK == AMP_CHUNK - 1u || c == chunks - 1u) {
            sum = ampi_dadd(sum, ampi_k_join_own(own, first));
            AMPI_UNROLL for (q = 0; q < AMPI_OWN; q++) own[q] = 0.0;
        }
    }
    return sum;
}

/* ==== >>arrays ======================================================================================================== */

typedef struct ampi_k_cast_args {
    void         *dst;
    const void   *src;
    amp_dtype     dst_type, src_type;
    uint64_t      n, head, groups; /* elements before the vector body; groups of 8 in it */
    uint64_t      seed, stream, offset;
    amp_rounding  how;
    int           saturate;
} ampi_k_cast_args;

AMPI_K void ampi_k_cast8(const ampi_k_cast_args *a, uint64_t i, uint32_t m, int wide) {
    uint32_t x[8], r[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ampi_k_load8(x, a->src, a->src_type, i, m, wide);
    if (a->how == AMP_STOCHASTIC) ampi_k_random8(r, a->seed, a->stream, a->offset + i);
    ampi_k_pattern8(x, a->dst_type, a->how, r, a->saturate);
    ampi_k_store8(x, a->dst, a->dst_type, i, m, wide);
}
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_cast(ampi_k_cast_args a) {
    uint64_t me = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x, step = (uint64_t)gridDim.x * AMP_BLOCK, i;
    for (i = me; i < a.groups; i += step) ampi_k_cast8(&a, a.head + 8u * i, 8, 1);
    for (i = me; i < a.n - 8u * a.groups; i += step) { /* head and tail, one by one */
        uint64_t at = i < a.head ? i : i + 8u * a.groups;
        uint32_t r = a.how == AMP_STOCHASTIC ? amp_random(a.seed, a.stream, a.offset + at) : 0u;
        ampi_k_put_bits(a.dst, a.dst_type, at, ampi_k_pattern(ampi_k_get_bits(a.src, a.src_type, at), a.dst_type, a.how, r, a.saturate));
    }
}

/* The vector body that two arrays have in common: elements [head, head + 8 * groups), aligned in both. */
static void ampi_cu_body(const void *a, amp_dtype ta, const void *b, amp_dtype tb, uint64_t n, uint64_t *head, uint64_t *groups) {
    uintptr_t ua = amp_dtype_size(ta) == 1u ? 8u : 16u, ub = amp_dtype_size(tb) == 1u ? 8u : 16u, h;
    *head = *groups = 0;
    for (h = 0; h < 16u && h < n; h++)
        if (((uintptr_t)a + h * amp_dtype_size(ta)) % ua == 0 && ((uintptr_t)b + h * amp_dtype_size(tb)) % ub == 0) {
            *head = h;
            *groups = (n - h) / 8u;
            return;
        }
}

static amp_status ampi_cu_cast(amp_ctx *ctx, amp_array dst, amp_array src, size_t n, const amp_cast_desc *desc) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_cast");
    if (s == AMP_OK && dst.dtype == src.dtype) {
        cudaError_t e = dst.data == src.data ? cudaSuccess
                        : cudaMemcpyAsync(dst.data, src.data, n * amp_dtype_size(dst.dtype), cudaMemcpyDefault, k.c->stream);
        if (e != cudaSuccess) s = ampi_cu_fail(&k, "cudaMemcpyAsync", e);
    } else if (s == AMP_OK && n > 0) {
        ampi_k_cast_args a;
        memset(&a, 0, sizeof a);
        a.dst = dst.data; a.src = src.data; a.dst_type = dst.dtype; a.src_type = src.dtype; a.n = n;
        if (desc) {
            a.how = desc->rounding; a.saturate = desc->saturate != 0;
            a.seed = desc->seed; a.stream = desc->stream; a.offset = desc->offset;
        }
        ampi_cu_body(dst.data, dst.dtype, src.data, src.dtype, n, &a.head, &a.groups);
        s = ampi_cu_launch(&k, ampi_cu_grid(k.c, ampi_cu_parts(a.groups ? a.groups : n, AMP_BLOCK)), ampi_k_cast, a);
    }
    return ampi_cu_leave(&k, s);
}

/* A few arrays, cut into chunks that are numbered through: a block takes a chunk at a time. */
typedef struct ampi_k_list {
    void     *data[AMPI_CU_FEW], *dst[AMPI_CU_FEW];
    uint64_t  count[AMPI_CU_FEW];
    amp_dtype type[AMPI_CU_FEW], dst_type[AMPI_CU_FEW];
    uint64_t  chunks;       /* of these arrays */
    uint64_t  first_chunk;  /* number of the first of them in the caller's whole list */
    uint32_t  n, _pad;
} ampi_k_list;

typedef struct ampi_k_part { /* one chunk: elements [base, base + n) of an array */
    void     *data, *dst;
    amp_dtype type, dst_type;
    uint32_t  n;
    uint64_t  base;
    int       wide;
} ampi_k_part;

AMPI_K ampi_k_part ampi_k_find(const ampi_k_list *l, uint64_t chunk) {
    ampi_k_part p;
    uint32_t a = 0;
    uint64_t left;
    for (;; a++) {
        uint64_t chunks = l->count[a] / AMP_CHUNK + (l->count[a] % AMP_CHUNK != 0);
        if (chunk < chunks) break;
        chunk -= chunks;
    }
    p.data = l->data[a]; p.type = l->type[a];
    p.dst = l->dst[a]; p.dst_type = l->dst_type[a];
    p.base = chunk * AMP_CHUNK;
    left = l->count[a] - p.base;
    p.n = (uint32_t)(left < AMP_CHUNK ? left : AMP_CHUNK);
    p.wide = ampi_k_aligned(p.data, p.type) && ampi_k_aligned(p.dst, p.dst_type);
    return p;
}

/* The next launch of a list: up to AMPI_CU_FEW arrays from *next on. 0 when nothing is left. */
static int ampi_cu_list(ampi_k_list *l, const amp_array *dst, const amp_array *arrays, size_t n, size_t *next) {
    uint64_t before = l->first_chunk + l->chunks;
    memset(l, 0, sizeof *l);
    l->first_chunk = before;
    for (; *next < n && l->n < AMPI_CU_FEW; ++*next) {
        if (arrays[*next].count == 0) continue;
        l->data[l->n] = arrays[*next].data; l->count[l->n] = arrays[*next].count; l->type[l->n] = arrays[*next].dtype;
        l->dst[l->n] = (dst ? dst : arrays)[*next].data; l->dst_type[l->n] = (dst ? dst : arrays)[*next].dtype;
        l->chunks += ampi_cu_parts(arrays[*next].count, AMP_CHUNK);
        l->n++;
    }
    return l->n != 0;
}

typedef struct ampi_k_tally { uint32_t nan, inf, overflow, first; } ampi_k_tally; /* what one thread found; first: offset in the chunk */

/* Eight gradients as float bits become u, as float bits: g, or g / scale when `scaled`. Bad ones among the first m are counted. */
AMPI_K void ampi_k_check8(uint32_t x[8], uint32_t m, uint32_t at, int scaled, float inv, ampi_k_tally *t) {
    uint32_t k;
    for (k = 0; k < 8u; k++) {
        uint32_t g = x[k] & 0x7fffffffu, bad = g >= 0x7f800000u;
        if (scaled) x[k] = ampi_bits(ampi_mul(ampi_float(x[k]), inv));
        if (k >= m) continue;
        t->nan += g > 0x7f800000u;
        t->inf += g == 0x7f800000u;
        if (!bad && !amp_is_finite(ampi_float(x[k]))) { t->overflow++; bad = 1u; }
        if (bad && at + k < t->first) t->first = at + k;
    }
}
/* Writes eight u, rounded to t. A scale below 1, or a t that is not the gradients' `from`, can make a u that is finite in FP32 and not
   in t: overflow. */
AMPI_K void ampi_k_unscaled8(uint32_t x[8], void *p, amp_dtype t, amp_dtype from, size_t i, uint32_t m, int wide, uint32_t at, float inv, ampi_k_tally *y) {
    uint32_t k, was_finite = 0;
    for (k = 0; k < m; k++) was_finite |= (uint32_t)amp_is_finite(ampi_float(x[k])) << k;
    ampi_k_nearest8(x, t);
    ampi_k_store8(x, p, t, i, m, wide);
    if ((!ampi_k_less(1.0f, inv) && t == from) || t == AMP_F32) return;
    for (k = 0; k < m; k++)
        if ((was_finite >> k & 1u) && !amp_is_finite(ampi_float(ampi_decode(x[k], t)))) {
            y->overflow++;
            if (at + k < y->first) y->first = at + k;
        }
}

static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_finite(ampi_k_list list, amp_scaler_state *unscale, ampi_cu_scratch *out) {
    float inv = unscale ? amp_inverse_scale(unscale->scale) : 1.0f;
    uint64_t chunk;
    for (chunk = blockIdx.x; chunk < list.chunks; chunk += gridDim.x) {
        ampi_k_part p = ampi_k_find(&list, chunk);
        ampi_k_tally t = {0, 0, 0, AMP_CHUNK};
        uint32_t i, x[8];
        for (i = 8u * threadIdx.x; i < p.n; i += 8u * AMP_BLOCK) {
            uint32_t m = p.n - i < 8u ? p.n - i : 8u;
            ampi_k_load8(x, p.data, p.type, p.base + i, m, p.wide);
            ampi_k_check8(x, m, i, unscale != NULL, inv, &t);
            if (unscale) ampi_k_unscaled8(x, p.dst, p.dst_type, p.type, p.base + i, m, p.wide, i, inv, &t);
        }
        if (t.first == AMP_CHUNK) continue;
        if (out) {
            if (t.nan) atomicAdd((unsigned long long *)&out->nan, (unsigned long long)t.nan);
            if (t.inf + t.overflow) atomicAdd((unsigned long long *)&out->inf, (unsigned long long)(t.inf + t.overflow));
            atomicMax((unsigned long long *)&out->first, ~((unsigned long long)(list.first_chunk + chunk) << 16 | t.first));
        }
        if (unscale && !unscale->no_check)
            atomicOr((unsigned *)&unscale->found, (t.nan ? AMP_FOUND_NAN : 0u) | (t.inf ? AMP_FOUND_INF : 0u) | (t.overflow ? AMP_FOUND_OVERFLOW : 0u));
    }
}

static amp_status ampi_cu_finite(amp_ctx *ctx, const amp_array *dst, const amp_array *arrays, size_t n, amp_scaler_state *unscale, amp_finite_report *host) {
    ampi_cu_call k;
    ampi_k_list list;
    size_t next = 0;
    amp_status s = ampi_cu_enter(&k, ctx, unscale ? "amp_unscale" : "amp_all_finite");
    memset(&list, 0, sizeof list);
    if (s == AMP_OK && host) s = ampi_cu_clear(&k, k.c->scratch, offsetof(ampi_cu_scratch, scalar));
    while (s == AMP_OK && ampi_cu_list(&list, dst, arrays, n, &next))
        s = ampi_cu_launch(&k, ampi_cu_grid(k.c, list.chunks), ampi_k_finite, list, unscale, host ? k.c->scratch : (ampi_cu_scratch *)NULL);
    if (s == AMP_OK && host) s = ampi_cu_read_scratch(&k);
    if (s == AMP_OK && host) {
        memset(host, 0, sizeof *host);
        host->nan = k.c->mirror->nan;
        host->inf = k.c->mirror->inf;
        if (host->nan + host->inf) {
            uint64_t key = ~k.c->mirror->first, chunk = key >> 16;
            size_t a = 0;
            for (; chunk >= ampi_cu_parts(arrays[a].count, AMP_CHUNK); a++) chunk -= ampi_cu_parts(arrays[a].count, AMP_CHUNK);
            host->first_array = a;
            host->first_index = (size_t)(chunk * AMP_CHUNK + (key & 0xffffu));
        }
    }
    return ampi_cu_leave(&k, s);
}

/* bins: total, zero, inf, nan, pow2[256]; counted in shared memory, added to the scratch block once per chunk. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_histogram(ampi_k_list list, ampi_cu_scratch *out) {
    AMP_SHARED(uint32_t, bins, 4 + 256);
    uint64_t chunk;
    uint32_t amax = 0, i, k, x[8];
    for (chunk = blockIdx.x; chunk < list.chunks; chunk += gridDim.x) {
        ampi_k_part p = ampi_k_find(&list, chunk);
        for (i = threadIdx.x; i < 4u + 256u; i += AMP_BLOCK) bins[i] = 0;
        __syncthreads();
        for (i = 8u * threadIdx.x; i < p.n; i += 8u * AMP_BLOCK) {
            uint32_t m = p.n - i < 8u ? p.n - i : 8u;
            ampi_k_load8(x, p.data, p.type, p.base + i, m, p.wide);
            for (k = 0; k < m; k++) {
                uint32_t a = x[k] & 0x7fffffffu;
                atomicAdd(&bins[a == 0 ? 1u : a == 0x7f800000u ? 2u : a > 0x7f800000u ? 3u : 4u + (a >> 23)], 1u);
                if (a < 0x7f800000u && a > amax) amax = a;
            }
        }
        __syncthreads();
        for (i = threadIdx.x; i < 4u + 256u; i += AMP_BLOCK) {
            uint32_t add = i == 0 ? p.n : bins[i];
            if (add) atomicAdd((unsigned long long *)&out->bins[i], (unsigned long long)add);
        }
        __syncthreads();
    }
    if (amax) atomicMax((unsigned *)&out->amax, amax);
}

static amp_status ampi_cu_histogram(amp_ctx *ctx, const amp_array *arrays, size_t n, amp_histogram *host) {
    ampi_cu_call k;
    ampi_k_list list;
    size_t next = 0;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_histogram_count");
    memset(&list, 0, sizeof list);
    if (s == AMP_OK) s = ampi_cu_clear(&k, k.c->scratch, offsetof(ampi_cu_scratch, scalar));
    while (s == AMP_OK && ampi_cu_list(&list, NULL, arrays, n, &next)) s = ampi_cu_launch(&k, ampi_cu_grid(k.c, list.chunks), ampi_k_histogram, list, k.c->scratch);
    if (s == AMP_OK) s = ampi_cu_read_scratch(&k);
    if (s == AMP_OK) {
        const ampi_cu_scratch *m = k.c->mirror;
        memset(host, 0, sizeof *host);
        host->total = m->bins[0]; host->zero = m->bins[1]; host->inf = m->bins[2]; host->nan = m->bins[3];
        memcpy(host->pow2, m->bins + 4, sizeof host->pow2);
        host->amax = ampi_float(m->amax);
    }
    return ampi_cu_leave(&k, s);
}

/* ==== >>step ========================================================================================================== */

/* Where a chunk of a parameter set lies. */
AMPI_K uint32_t ampi_k_chunk_size(const amp_param_entry *e, const amp_chunk *c) {
    uint64_t left = e->count - (uint64_t)c->index * AMP_CHUNK;
    return (uint32_t)(left < AMP_CHUNK ? left : AMP_CHUNK);
}

struct ampi_k_partial_sums { /* read past the first-level cache: other blocks wrote them */
    const amp_partial *p;
    AMPI_K_AT double at(uint64_t i) const { return __ldcg(&p[i].sum); }
};

AMPI_K void *ampi_k_gradient(const amp_param_entry *e, uint32_t accum, amp_dtype *t) {
    *t = accum ? AMP_F32 : e->grad_dtype;
    return accum ? (void *)e->accum : e->grad;
}

/* Gradients of one chunk: checked, squared, summed by the rule, perhaps written back unscaled. */
AMPI_K void ampi_k_inspect_chunk(const amp_inspect_job *job, uint32_t chunk, float inv, double *first, uint32_t *found) {
    amp_chunk c = job->table.chunks[chunk];
    amp_param_entry e = job->table.entries[c.param];
    amp_dtype type;
    void *grad = ampi_k_gradient(&e, job->flags & AMP_INSPECT_ACCUM, &type);
    uint64_t base = (uint64_t)c.index * AMP_CHUNK;
    uint32_t n = ampi_k_chunk_size(&e, &c), g, i, k, x[8];
    int wide = ampi_k_aligned(grad, type), scaled = ampi_bits(inv) != 0x3f800000u;
    ampi_k_tally t = {0, 0, 0, AMP_CHUNK};
    double sum;
    if (threadIdx.x < 4u) found[threadIdx.x] = threadIdx.x == 3u ? AMP_CHUNK : 0u;
    for (g = threadIdx.x; g < AMPI_GROUPS; g += AMP_BLOCK) {
        double lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        for (i = 8u * g; i < n; i += AMP_LANES) {
            uint32_t m = n - i < 8u ? n - i : 8u;
            ampi_k_load8(x, grad, type, base + i, m, wide);
            ampi_k_check8(x, m, i, scaled, inv, &t);
            for (k = 0; k < 8u; k++)
                if (k < m) {
                    double u = ampi_widen(ampi_float(x[k]));
                    lane[k] = ampi_dadd(lane[k], ampi_dmul(u, u));
                }
            if (job->flags & AMP_INSPECT_WRITE) ampi_k_unscaled8(x, grad, type, type, base + i, m, wide, i, inv, &t);
        }
        first[g] = ampi_k_join8(lane);
    }
    sum = ampi_k_join(first); /* its barriers also lie between the zeroes in found[] and what follows */
    if (t.first != AMP_CHUNK) {
        if (t.nan) atomicAdd(&found[0], t.nan);
        if (t.inf) atomicAdd(&found[1], t.inf);
        if (t.overflow) atomicAdd(&found[2], t.overflow);
        atomicMin(&found[3], t.first);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        amp_partial *p = &job->table.partials[chunk];
        p->sum = sum; p->nan = found[0]; p->inf = found[1]; p->overflow = found[2]; p->first = found[3];
    }
    __syncthreads();
}

typedef struct ampi_k_place { uint64_t index; uint32_t param, _pad; } ampi_k_place; /* of the first bad element */

/* All partials to the totals, by one block; valid in thread 0. */
AMPI_K void ampi_k_inspect_join(const amp_inspect_job *job, amp_totals *totals, ampi_k_place *where, double *first) {
    AMP_SHARED(unsigned long long, count, 3);
    AMP_SHARED(uint32_t, bad, 1);
    const amp_partial *p = job->table.partials;
    ampi_k_partial_sums sums;
    uint32_t n = job->table.n_chunks, i;
    double sum;
    sums.p = p;
    if (threadIdx.x < 3u) count[threadIdx.x] = 0;
    if (threadIdx.x == 0) bad[0] = n;
    sum = ampi_k_sum(sums, n, first);
    for (i = threadIdx.x; i < n; i += AMP_BLOCK) {
        uint32_t nan = __ldcg(&p[i].nan), inf = __ldcg(&p[i].inf), overflow = __ldcg(&p[i].overflow);
        if (nan | inf | overflow) {
            atomicAdd(&count[0], (unsigned long long)nan);
            atomicAdd(&count[1], (unsigned long long)inf);
            atomicAdd(&count[2], (unsigned long long)overflow);
            atomicMin(&bad[0], i); /* chunks are in the order of parameters */
        }
    }
    __syncthreads();
    totals->sum = sum; totals->nan = count[0]; totals->inf = count[1]; totals->overflow = count[2];
    where->param = 0; where->index = 0;
    if (bad[0] < n) {
        amp_chunk c = job->table.chunks[bad[0]];
        where->param = c.param;
        where->index = (uint64_t)c.index * AMP_CHUNK + __ldcg(&p[bad[0]].first);
    }
}

/* One thread ends the inspection, and leaves a copy of the record where the host can read it without waiting: whole when `begin` and
   `end` are equal. */
AMPI_K void ampi_k_inspect_end(const amp_inspect_job *job, const amp_totals *totals, const ampi_k_place *where) {
    amp_inspect_finish(job, totals, where->param, where->index);
    if (job->flags & AMP_INSPECT_BEGIN && !job->record->skip) {
        uint32_t i;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
        for (i = 0; i < AMP_GROUPS; i++) amp_inspect_rates(job, i);
    }
    if (job->mirror) {
        volatile uint64_t *begin = &job->mirror->begin, *end = &job->mirror->end;
        uint64_t serial = *begin + 1u;
        *begin = serial;
        __threadfence_system();
        job->mirror->record = *job->record;
        __threadfence_system();
        *end = serial;
    }
}

/* Chunks, then the last block to finish joins them and one thread ends the inspection, or with `split` leaves that to
   ampi_k_inspect_rest. The ticket wraps to 0. */
static __global__ void __launch_bounds__(AMP_BLOCK, 2) ampi_k_inspect(const __grid_constant__ amp_inspect_job job, ampi_cu_scratch *scratch, int split) {
    AMP_SHARED(double, first, AMPI_GROUPS);
    AMP_SHARED(uint32_t, found, 4);
    AMP_SHARED(uint32_t, last, 1);
    amp_totals totals;
    ampi_k_place where;
    uint32_t chunk;
    memset(&totals, 0, sizeof totals);
    memset(&where, 0, sizeof where);
    if (job.flags & AMP_INSPECT_READ) {
        float inv = amp_inspect_factor(&job);
        for (chunk = blockIdx.x; chunk < job.table.n_chunks; chunk += gridDim.x) ampi_k_inspect_chunk(&job, chunk, inv, first, found);
        if (threadIdx.x == 0) {
            __threadfence();
            last[0] = atomicInc((unsigned *)&scratch->ticket, gridDim.x - 1u) == gridDim.x - 1u;
            __threadfence();
        }
        __syncthreads();
        if (!last[0]) return;
        __threadfence();
        ampi_k_inspect_join(&job, &totals, &where, first);
    }
    if (threadIdx.x != 0) return;
    if (split) {
        *job.table.totals = totals;
        scratch->first = where.index;
        scratch->rows = where.param;
    } else {
        ampi_k_inspect_end(&job, &totals, &where);
    }
}
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_inspect_rest(const __grid_constant__ amp_inspect_job job, const ampi_cu_scratch *scratch) {
    ampi_k_place where;
    if (threadIdx.x != 0 || blockIdx.x != 0) return;
    where.index = scratch->first; where.param = (uint32_t)scratch->rows; where._pad = 0;
    ampi_k_inspect_end(&job, job.table.totals, &where);
}

static amp_step_desc ampi_cu_device_desc(amp_step_desc d) { /* host pointers have no business in a kernel's arguments */
    d.groups = NULL; d.reduce_grads_fn = NULL; d.reduce_totals_fn = NULL; d.user = NULL;
    return d;
}

static amp_status ampi_cu_inspect(amp_ctx *ctx, const amp_inspect_job *desc) {
    ampi_cu_call k;
    amp_inspect_job job = *desc;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_step (inspect)");
    unsigned grid = job.flags & AMP_INSPECT_READ ? ampi_cu_grid(k.c, job.table.n_chunks) : 1u;
    int split = desc->desc.reduce_totals_fn && job.flags & AMP_INSPECT_READ;
    job.desc = ampi_cu_device_desc(job.desc);
    if (s == AMP_OK) s = ampi_cu_launch(&k, grid, ampi_k_inspect, job, k.c->scratch, split);
    if (s == AMP_OK && split) {
        s = desc->desc.reduce_totals_fn(ctx, job.table.totals, desc->desc.user);
        if (s == AMP_OK) s = ampi_cu_launch(&k, 1, ampi_k_inspect_rest, job, (const ampi_cu_scratch *)k.c->scratch);
    }
    return ampi_cu_leave(&k, s);
}

static amp_status ampi_cu_mirror_create(amp_ctx *ctx, amp_step_mirror **out) {
    ampi_cu_call k;
    void *p = NULL;
    cudaError_t e;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_params_commit");
    *out = NULL;
    if (s == AMP_OK) {
        e = cudaHostAlloc(&p, sizeof(amp_step_mirror), cudaHostAllocMapped | cudaHostAllocPortable);
        if (e != cudaSuccess) s = ampi_cu_fail(&k, "cudaHostAlloc", e);
        else { memset(p, 0, sizeof(amp_step_mirror)); *out = (amp_step_mirror *)p; }
    }
    s = ampi_cu_leave(&k, s);
    if (s != AMP_OK && *out) { (void)cudaFreeHost(*out); *out = NULL; }
    return s;
}
static void ampi_cu_mirror_destroy(amp_ctx *ctx, amp_step_mirror *m) {
    ampi_cu_call k;
    amp_status s;
    if (!m) return;
    s = ampi_cu_enter(&k, ctx, "amp_params_destroy");
    (void)cudaStreamSynchronize(k.c->stream); /* queued steps write to it */
    (void)cudaFreeHost(m);
    (void)ampi_cu_leave(&k, s);
}
static amp_status ampi_cu_poll(amp_ctx *ctx, const amp_step_record *record, const amp_step_mirror *mirror, amp_step_record *out) {
    const volatile uint64_t *begin = &mirror->begin, *end = &mirror->end;
    uint64_t serial;
    int tries;
    (void)record;
    for (tries = 0; tries < 1000000; tries++) { /* the device writes it in about a microsecond */
        serial = *end;
        __sync_synchronize();
        memcpy(out, (const void *)&mirror->record, sizeof *out);
        __sync_synchronize();
        if (*begin == serial) return AMP_OK;
    }
    return amp_fail(ctx, AMP_ERR_CUDA, "amp_step_poll: the device does not finish writing the record");
}

/* Eight moments or weights in 16 bits, as they are stored. */
AMPI_K void ampi_k_low8(uint32_t x[8], const void *p, size_t i, uint32_t m) {
    uint32_t k;
    for (k = 0; k < 8u; k++) x[k] = k < m ? ((const ampi_k_u16 *)p)[i + k] : 0u;
}

AMPI_K void ampi_k_update_chunk(const amp_update_job *job, amp_chunk c, const amp_coef *coef) {
    amp_param_entry e = job->table.entries[c.param];
    uint64_t base = (uint64_t)c.index * AMP_CHUNK, at;
    uint32_t n = ampi_k_chunk_size(&e, &c), i, k, m, overflow = 0, g[8], w[8], b[8], v[8], r[8];
    uint64_t stream = (job->record->steps << 24) + c.param;
    int adam = job->desc.optimizer == AMP_ADAM || job->desc.optimizer == AMP_ADAMW, lion = job->desc.optimizer == AMP_LION;
    int buffer = adam || lion || !ampi_k_is_zero(coef->momentum), pair = e.layout == AMP_MASTER_SPLIT || e.layout == AMP_MASTER_KAHAN;
    amp_dtype type, weight_type = e.master ? AMP_F32 : e.model_dtype;
    void *grad = ampi_k_gradient(&e, job->accum, &type), *weights = e.master ? e.master : e.model;
    int wide = ampi_k_aligned(weights, weight_type) && ampi_k_aligned(grad, type) && (!e.model || ampi_k_aligned(e.model, e.model_dtype)) &&
               (!buffer || ampi_k_aligned(e.moment[0], e.moment_dtype)) && (!adam || ampi_k_aligned(e.moment[1], e.moment_dtype));
    for (i = 8u * threadIdx.x; i < n; i += 8u * AMP_BLOCK) {
        at = base + i;
        m = n - i < 8u ? n - i : 8u;
        ampi_k_load8(g, grad, type, at, m, wide);
        if (job->accum) {
            for (k = 0; k < 8u; k++) w[k] = 0u;
            ampi_k_store8(w, grad, type, at, m, wide);
        }
        if (pair) {
            uint32_t low[8];
            ampi_k_low8(w, e.model, at, m);
            ampi_k_low8(low, e.low, at, m);
            AMPI_UNROLL for (k = 0; k < 8u; k++) {
                uint32_t both = w[k] | low[k] << 16;
                w[k] = ampi_bits(e.layout == AMP_MASTER_KAHAN ? amp_kahan_unpack(both) : e.model_dtype == AMP_F16 ? amp_split_unpack(both, AMP_F16) : amp_split_unpack(both, AMP_BF16));
            }
        } else {
            ampi_k_load8(w, weights, weight_type, at, m, wide);
        }
        for (k = 0; k < 8u; k++) b[k] = v[k] = 0u;
        if (buffer) ampi_k_load8(b, e.moment[0], e.moment_dtype, at, m, wide);
        if (adam) ampi_k_load8(v, e.moment[1], e.moment_dtype, at, m, wide);
        AMPI_UNROLL for (k = 0; k < 8u; k++) {
            float u = amp_prepare_one(ampi_float(g[k]), coef), wk = ampi_float(w[k]), bk = ampi_float(b[k]), vk = ampi_float(v[k]);
            if (adam) amp_adam_one(&wk, &bk, &vk, u, coef);
            else if (lion) amp_lion_one(&wk, &bk, u, coef);
            else amp_sgd_one(&wk, &bk, u, coef);
            w[k] = ampi_bits(wk); b[k] = ampi_bits(bk); v[k] = ampi_bits(vk);
        }
        if (e.moment_dtype != AMP_F32) { /* amp_step_round, eight at a time */
            if (buffer) { ampi_k_random8(r, job->desc.seed + 1u, stream, at); ampi_k_pattern8(b, AMP_BF16, AMP_STOCHASTIC, r, 0); }
            if (adam) { ampi_k_random8(r, job->desc.seed + 2u, stream, at); ampi_k_pattern8(v, AMP_BF16, AMP_STOCHASTIC, r, 0); }
        }
        if (buffer) ampi_k_store8(b, e.moment[0], e.moment_dtype, at, m, wide);
        if (adam) ampi_k_store8(v, e.moment[1], e.moment_dtype, at, m, wide);
        if (e.master) ampi_k_store8(w, e.master, AMP_F32, at, m, wide);
        if (!e.model) continue;
        for (k = 0; k < 8u; k++) g[k] = w[k]; /* the new weights */
        if (pair) {
            AMPI_UNROLL for (k = 0; k < 8u; k++) {
                float x = ampi_float(w[k]);
                uint32_t both = e.layout == AMP_MASTER_KAHAN ? amp_kahan_pack(x) : e.model_dtype == AMP_F16 ? amp_split_pack(x, AMP_F16) : amp_split_pack(x, AMP_BF16);
                w[k] = both & 0xffffu;
                if (k < m) ((ampi_k_u16 *)e.low)[at + k] = (uint16_t)(both >> 16);
            }
        } else if (job->desc.stochastic) {
            ampi_k_random8(r, job->desc.seed, stream, at);
            ampi_k_pattern8(w, e.model_dtype, AMP_STOCHASTIC, r, 0);
        } else {
            ampi_k_nearest8(w, e.model_dtype);
        }
        AMPI_UNROLL for (k = 0; k < 8u; k++) { /* Inf in the copy: every format here has its exponent bits full then */
            uint32_t full = e.model_dtype == AMP_F16 ? 0x7c00u : 0x7f80u;
            overflow |= (uint32_t)(k < m && (w[k] & 0x7fffu) >= full && (g[k] & 0x7fffffffu) <= 0x7f800000u);
        }
        ampi_k_store8(w, e.model, e.model_dtype, at, m, wide);
    }
    if (overflow) {
        atomicOr((unsigned *)&job->record->weight_overflow, 1u);
        if (job->mirror) *(volatile uint32_t *)&job->mirror->record.weight_overflow = 1u;
    }
}
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_update(const __grid_constant__ amp_update_job job) {
    AMP_SHARED(amp_coef, coef, 1);
    uint32_t chunk, i;
    if (job.record->skip) { /* all threads alike; a lost window still ends */
        for (chunk = blockIdx.x; job.accum && chunk < job.table.n_chunks; chunk += gridDim.x) {
            amp_chunk c = job.table.chunks[chunk];
            amp_param_entry e = job.table.entries[c.param];
            uint32_t n = ampi_k_chunk_size(&e, &c);
            for (i = threadIdx.x; i < n; i += AMP_BLOCK) e.accum[(uint64_t)c.index * AMP_CHUNK + i] = 0.0f;
        }
        return;
    }
    for (chunk = blockIdx.x; chunk < job.table.n_chunks; chunk += gridDim.x) {
        amp_chunk c = job.table.chunks[chunk];
        if (threadIdx.x == 0) coef[0] = amp_coef_of(&job, &job.table.entries[c.param]);
        __syncthreads();
        ampi_k_update_chunk(&job, c, coef);
        __syncthreads();
    }
}

static amp_status ampi_cu_update(amp_ctx *ctx, const amp_update_job *desc) {
    ampi_cu_call k;
    amp_update_job job = *desc;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_step (update)");
    job.desc = ampi_cu_device_desc(job.desc);
    if (s == AMP_OK) s = ampi_cu_launch(&k, ampi_cu_grid(k.c, job.table.n_chunks), ampi_k_update, job);
    return ampi_cu_leave(&k, s);
}

static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_add(amp_add_job job) {
    float inv = job.record->inv_scale;
    uint32_t chunk, i, k, x[8], y[8];
    if (job.record->skip) return;
    for (chunk = blockIdx.x; chunk < job.table.n_chunks; chunk += gridDim.x) {
        amp_chunk c = job.table.chunks[chunk];
        amp_param_entry e = job.table.entries[c.param];
        uint64_t base = (uint64_t)c.index * AMP_CHUNK;
        uint32_t n = ampi_k_chunk_size(&e, &c);
        int wide = ampi_k_aligned(e.grad, e.grad_dtype) && ampi_k_aligned(e.accum, AMP_F32);
        for (i = 8u * threadIdx.x; i < n; i += 8u * AMP_BLOCK) {
            uint32_t m = n - i < 8u ? n - i : 8u;
            ampi_k_load8(x, e.grad, e.grad_dtype, base + i, m, wide);
            ampi_k_load8(y, e.accum, AMP_F32, base + i, m, wide);
            for (k = 0; k < 8u; k++) y[k] = ampi_bits(ampi_add(ampi_float(y[k]), ampi_mul(ampi_float(x[k]), inv)));
            ampi_k_store8(y, e.accum, AMP_F32, base + i, m, wide);
        }
    }
}
static amp_status ampi_cu_add(amp_ctx *ctx, const amp_add_job *job) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_accumulate");
    if (s == AMP_OK) s = ampi_cu_launch(&k, ampi_cu_grid(k.c, job->table.n_chunks), ampi_k_add, *job);
    return ampi_cu_leave(&k, s);
}

static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_clip(amp_clip_job job) {
    amp_coef coef;
    uint32_t chunk, i, k, x[8];
    if (job.record && ampi_bits(job.record->clip) == ampi_bits(1.0f)) return;
    memset(&coef, 0, sizeof coef);
    coef.inv = 1.0f;
    coef.clip = job.record ? job.record->clip : 1.0f;
    coef.limit = job.scaler ? ampi_mul(job.limit, job.scaler->scale) : job.limit;
    for (chunk = blockIdx.x; chunk < job.table.n_chunks; chunk += gridDim.x) {
        amp_chunk c = job.table.chunks[chunk];
        amp_param_entry e = job.table.entries[c.param];
        amp_dtype type;
        void *grad = ampi_k_gradient(&e, job.accum, &type);
        uint64_t base = (uint64_t)c.index * AMP_CHUNK;
        uint32_t n = ampi_k_chunk_size(&e, &c);
        int wide = ampi_k_aligned(grad, type);
        for (i = 8u * threadIdx.x; i < n; i += 8u * AMP_BLOCK) {
            uint32_t m = n - i < 8u ? n - i : 8u;
            ampi_k_load8(x, grad, type, base + i, m, wide);
            for (k = 0; k < 8u; k++) x[k] = ampi_bits(amp_prepare_one(ampi_float(x[k]), &coef));
            ampi_k_nearest8(x, type);
            ampi_k_store8(x, grad, type, base + i, m, wide);
        }
    }
}
static amp_status ampi_cu_clip(amp_ctx *ctx, const amp_clip_job *job) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_clip");
    if (s == AMP_OK) s = ampi_cu_launch(&k, ampi_cu_grid(k.c, job->table.n_chunks), ampi_k_clip, *job);
    return ampi_cu_leave(&k, s);
}

static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_next_scale(amp_scaler_state *state) {
    if (blockIdx.x == 0 && threadIdx.x == 0) amp_scaler_next(state);
}
static amp_status ampi_cu_next_scale(amp_ctx *ctx, amp_scaler_state *state) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_scaler_update");
    if (s == AMP_OK) s = ampi_cu_launch(&k, 1, ampi_k_next_scale, state);
    return ampi_cu_leave(&k, s);
}

/* ==== >>xent ========================================================================================================== */

/* Terms of the sums of one row. */
struct ampi_k_exps {
    const void *x; amp_dtype t; size_t row; float max;
    AMPI_K_AT double at(uint64_t i) const { return ampi_widen(amp_exp(ampi_sub(ampi_k_get(x, t, row + i), max))); }
};
struct ampi_k_logits {
    const void *x; amp_dtype t; size_t row;
    AMPI_K_AT double at(uint64_t i) const { return ampi_widen(ampi_k_get(x, t, row + i)); }
};
struct ampi_k_floats {
    const float *x;
    AMPI_K_AT double at(uint64_t i) const { return ampi_widen(x[i]); }
};

static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_xent_rows(const int32_t *labels, uint64_t rows, ampi_cu_scratch *out) { /* how many count */
    AMP_SHARED(uint32_t, count, 1);
    uint64_t r, step = (uint64_t)gridDim.x * AMP_BLOCK;
    uint32_t mine = 0; /* a thread sees rows / step of them: 2^32 would be more memory than there is */
    if (threadIdx.x == 0) count[0] = 0;
    __syncthreads();
    for (r = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x; r < rows; r += step) mine += labels[r] >= 0;
    if (mine) atomicAdd(&count[0], mine);
    __syncthreads();
    if (threadIdx.x == 0 && count[0]) atomicAdd((unsigned long long *)&out->rows, (unsigned long long)count[0]);
}

/* A block per row; the order of operations is that of the CPU's ampi_xent_row. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_xent(amp_xent d, const amp_scaler_state *state, const ampi_cu_scratch *counted) {
    AMP_SHARED(double, first, AMPI_GROUPS);
    AMP_SHARED(float, top, AMP_BLOCK);
    float keep = ampi_sub(1.0f, d.smoothing), share = ampi_div(d.smoothing, (float)d.classes);
    float over = d.sum || counted->rows == 0 ? 1.0f : ampi_narrow(ampi_ddiv(1.0, (double)counted->rows));
    float factor = ampi_mul(ampi_mul(d.factor, state ? state->scale : 1.0f), over);
    size_t row, i;
    uint32_t w;
    for (row = blockIdx.x; row < d.rows; row += gridDim.x) {
        size_t at = row * d.ld;
        int32_t label = d.labels[row];
        int bad = label >= 0 && (size_t)label >= d.classes;
        float max, sum, log_sum, loss, x;
        ampi_k_exps exps;
        if (label < 0 || bad) { /* left out, or an error made visible */
            float fill = bad ? ampi_float(0x7fc00000u) : 0.0f;
            if (d.row_loss && threadIdx.x == 0) d.row_loss[row] = fill;
            if (d.dlogits.data)
                for (i = threadIdx.x; i < d.classes; i += AMP_BLOCK) ampi_k_put(d.dlogits.data, d.dlogits.dtype, at + i, fill);
            continue;
        }
        max = ampi_k_get(d.logits.data, d.logits.dtype, at);
        for (i = threadIdx.x; i < d.classes; i += AMP_BLOCK) {
            x = ampi_k_get(d.logits.data, d.logits.dtype, at + i);
            max = ampi_k_less(max, x) ? x : max;
        }
        loss = ampi_k_get(d.logits.data, d.logits.dtype, at + (size_t)label); /* read before dlogits, which may be logits, is written */
        top[threadIdx.x] = max;
        __syncthreads();
        for (w = AMP_BLOCK / 2u; w; w >>= 1) {
            if (threadIdx.x < w && ampi_k_less(top[threadIdx.x], top[threadIdx.x + w])) top[threadIdx.x] = top[threadIdx.x + w];
            __syncthreads();
        }
        max = top[0];
        exps.x = d.logits.data; exps.t = d.logits.dtype; exps.row = at; exps.max = max;
        sum = ampi_narrow(ampi_k_sum(exps, d.classes, first)); /* its barriers also end the use of top[] */
        log_sum = amp_log(sum);
        loss = ampi_add(ampi_sub(max, loss), log_sum);
        if (!ampi_k_is_zero(d.smoothing)) {
            ampi_k_logits logits;
            float mean;
            logits.x = d.logits.data; logits.t = d.logits.dtype; logits.row = at;
            mean = ampi_narrow(ampi_ddiv(ampi_k_sum(logits, d.classes, first), (double)d.classes));
            loss = ampi_add(ampi_mul(keep, loss), ampi_mul(d.smoothing, ampi_add(ampi_sub(max, mean), log_sum)));
        }
        if (d.row_loss && threadIdx.x == 0) d.row_loss[row] = loss;
        if (!d.dlogits.data) continue;
        for (i = threadIdx.x; i < d.classes; i += AMP_BLOCK) {
            float p = ampi_div(amp_exp(ampi_sub(ampi_k_get(d.logits.data, d.logits.dtype, at + i), max)), sum);
            if (i == (size_t)label) p = ampi_sub(p, keep);
            if (!ampi_k_is_zero(d.smoothing)) p = ampi_sub(p, share);
            ampi_k_put(d.dlogits.data, d.dlogits.dtype, at + i, ampi_mul(p, factor));
        }
    }
}

static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_xent_loss(amp_xent d, const ampi_cu_scratch *counted) { /* one block; rows left out hold 0 */
    AMP_SHARED(double, first, AMPI_GROUPS);
    ampi_k_floats losses;
    double sum;
    losses.x = d.row_loss;
    sum = ampi_k_sum(losses, d.rows, first);
    if (threadIdx.x == 0) *d.loss = ampi_narrow(ampi_dmul(sum, d.sum || counted->rows == 0 ? 1.0 : ampi_ddiv(1.0, (double)counted->rows)));
}

static amp_status ampi_cu_xent(amp_ctx *ctx, const amp_xent *desc, const amp_scaler_state *state) {
    ampi_cu_call k;
    amp_xent d = *desc;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_softmax_cross_entropy");
    d.scaler = NULL; /* a host object */
    if (s == AMP_OK && !d.sum) {
        s = ampi_cu_clear(&k, &k.c->scratch->rows, sizeof k.c->scratch->rows);
        if (s == AMP_OK) s = ampi_cu_launch(&k, ampi_cu_grid(k.c, ampi_cu_parts(d.rows, AMP_BLOCK)), ampi_k_xent_rows, d.labels, (uint64_t)d.rows, k.c->scratch);
    }
    if (s == AMP_OK) s = ampi_cu_launch(&k, ampi_cu_grid(k.c, d.rows), ampi_k_xent, d, state, (const ampi_cu_scratch *)k.c->scratch);
    if (s == AMP_OK && d.loss) s = ampi_cu_launch(&k, 1, ampi_k_xent_loss, d, (const ampi_cu_scratch *)k.c->scratch);
    return ampi_cu_leave(&k, s);
}

/* ==== >>products ====================================================================================================== */

/* The plain product, for everything that cuBLASLt does not take: any dtypes, layouts, alignment, k = 0. A block makes tiles of
   32 x 32 elements from slices of 16 along k, widened into shared memory; every element is one chain of fused multiply-adds (the form that -use_fast_math leaves alone). */
#define AMPI_K_TILE  32u
#define AMPI_K_SLICE 16u
#define AMPI_K_ACC   (AMPI_K_TILE * AMPI_K_TILE / AMP_BLOCK) /* elements per thread: a column of the tile, every (AMP_BLOCK / 32)-th row */

/* act(v), with the value before it kept in aux. Both are rounded from v itself. */
AMPI_K void ampi_k_finish(const amp_gemm_desc *p, size_t at, float v) {
    if (p->aux.data) ampi_k_put(p->aux.data, p->aux.dtype, at, v);
    ampi_k_put(p->d.data, p->d.dtype, at, ampi_act(p->act, v));
}

static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_gemm(amp_gemm_desc p) {
    AMP_SHARED(float, as, AMPI_K_SLICE * (AMPI_K_TILE + 1u));
    AMP_SHARED(float, bs, AMPI_K_SLICE * (AMPI_K_TILE + 1u));
    size_t across = p.n / AMPI_K_TILE + (p.n % AMPI_K_TILE != 0), down = p.m / AMPI_K_TILE + (p.m % AMPI_K_TILE != 0), tiles = across * down * p.batch, tile;
    uint32_t column = threadIdx.x % AMPI_K_TILE, row = threadIdx.x / AMPI_K_TILE, q, s, e;
    for (tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        size_t z = tile / (across * down), i0 = tile / across % down * AMPI_K_TILE, j0 = tile % across * AMPI_K_TILE, k0, j = j0 + column;
        size_t a0 = p.stride_a == AMP_BROADCAST ? 0 : z * p.stride_a, b0 = p.stride_b == AMP_BROADCAST ? 0 : z * p.stride_b;
        size_t c0 = p.stride_c == AMP_BROADCAST ? 0 : z * p.stride_c, d0 = z * p.stride_d;
        float acc[AMPI_K_ACC];
        AMPI_UNROLL for (s = 0; s < AMPI_K_ACC; s++) acc[s] = 0.0f;
        for (k0 = 0; k0 < p.k; k0 += AMPI_K_SLICE) {
            for (e = threadIdx.x; e < AMPI_K_TILE * AMPI_K_SLICE; e += AMP_BLOCK) { /* neighbouring threads read neighbouring elements */
                uint32_t i = p.trans_a ? e % AMPI_K_TILE : e / AMPI_K_SLICE, ka = p.trans_a ? e / AMPI_K_TILE : e % AMPI_K_SLICE;
                uint32_t c = p.trans_b ? e / AMPI_K_SLICE : e % AMPI_K_TILE, kb = p.trans_b ? e % AMPI_K_SLICE : e / AMPI_K_TILE;
                int in_a = i0 + i < p.m && k0 + ka < p.k, in_b = j0 + c < p.n && k0 + kb < p.k;
                size_t at_a = a0 + (p.trans_a ? (k0 + ka) * p.lda + i0 + i : (i0 + i) * p.lda + k0 + ka);
                size_t at_b = b0 + (p.trans_b ? (j0 + c) * p.ldb + k0 + kb : (k0 + kb) * p.ldb + j0 + c);
                as[ka * (AMPI_K_TILE + 1u) + i] = in_a ? ampi_k_get(p.a.data, p.a.dtype, at_a) : 0.0f;
                bs[kb * (AMPI_K_TILE + 1u) + c] = in_b ? ampi_k_get(p.b.data, p.b.dtype, at_b) : 0.0f;
            }
            __syncthreads();
            AMPI_UNROLL for (q = 0; q < AMPI_K_SLICE; q++) { /* beyond k both are 0 */
                float b = bs[q * (AMPI_K_TILE + 1u) + column];
                AMPI_UNROLL for (s = 0; s < AMPI_K_ACC; s++)
                    acc[s] = __fmaf_ieee_rn(as[q * (AMPI_K_TILE + 1u) + row + s * (AMP_BLOCK / AMPI_K_TILE)], b, acc[s]);
            }
            __syncthreads();
        }
        AMPI_UNROLL for (s = 0; s < AMPI_K_ACC; s++) {
            size_t i = i0 + row + s * (AMP_BLOCK / AMPI_K_TILE);
            float v = ampi_mul(p.alpha_ptr ? ampi_mul(p.alpha, *p.alpha_ptr) : p.alpha, acc[s]);
            if (i >= p.m || j >= p.n) continue;
            if (!ampi_k_is_zero(p.beta)) v = ampi_add(v, ampi_mul(p.beta, ampi_k_get(p.c.data, p.c.dtype, c0 + i * p.ldc + j)));
            if (p.bias.data) v = ampi_add(v, ampi_k_get(p.bias.data, p.bias.dtype, j));
            ampi_k_finish(&p, d0 + i * p.ldd + j, v);
        }
    }
}

/* What cuBLASLt left to do: d holds the product; add the bias (if asked), keep aux, apply act. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_epilogue(amp_gemm_desc p, int add_bias) {
    size_t all = p.batch * p.m * p.n, e;
    for (e = (size_t)blockIdx.x * AMP_BLOCK + threadIdx.x; e < all; e += (size_t)gridDim.x * AMP_BLOCK) {
        size_t j = e % p.n, row = e / p.n, at = row / p.m * p.stride_d + row % p.m * p.ldd + j;
        float v = ampi_k_get(p.d.data, p.d.dtype, at);
        if (add_bias) v = ampi_add(v, ampi_k_get(p.bias.data, p.bias.dtype, j));
        ampi_k_finish(&p, at, v);
    }
}

static cudaDataType ampi_cu_type(amp_dtype t) { return t == AMP_F32 ? CUDA_R_32F : t == AMP_F16 ? CUDA_R_16F : CUDA_R_16BF; }

/* log2 of the alignment of every matrix of a batch, at most 8 (256 bytes). */
static uint32_t ampi_cu_align(const amp_array *x, size_t stride, size_t batch) {
    uintptr_t bits = (uintptr_t)x->data | (batch > 1u && stride != AMP_BROADCAST ? stride * amp_dtype_size(x->dtype) : 0u) | 256u;
    uint32_t n = 0;
    while (!(bits >> n & 1u)) n++;
    return n;
}

/* cuBLASLt reads alpha on the device only together with beta: there are constants for beta 0 and 1 */
static int ampi_cu_device_scalars(const amp_gemm_desc *p) { return p->alpha == 1.0f && (p->beta == 0.0f || p->beta == 1.0f); }

static void ampi_cu_key_of(ampi_cu_key *key, const amp_gemm_desc *p) {
    int c_is_d = p->c.data == p->d.data || p->beta == 0.0f;
    memset(key, 0, sizeof *key);
    key->m = p->m; key->n = p->n; key->k = p->k; key->batch = p->batch;
    key->lda = p->lda; key->ldb = p->ldb; key->ldc = c_is_d ? p->ldd : p->ldc; key->ldd = p->ldd;
    key->stride_a = p->stride_a; key->stride_b = p->stride_b; key->stride_c = c_is_d ? p->stride_d : p->stride_c; key->stride_d = p->stride_d;
    key->types = (uint32_t)p->a.dtype | (uint32_t)p->b.dtype << 4 | (uint32_t)p->d.dtype << 8 |
                 (p->bias.data ? (uint32_t)p->bias.dtype : 0u) << 12 | (p->aux.data ? (uint32_t)p->aux.dtype : 0u) << 16;
    key->shape = (p->trans_a ? 1u : 0u) | (p->trans_b ? 2u : 0u) | (p->beta != 0.0f ? 4u : 0u) | (c_is_d ? 8u : 0u) | (uint32_t)p->act << 4 |
                 (p->alpha_ptr ? 64u : 0u) | (p->alpha_ptr && !ampi_cu_device_scalars(p) ? 128u : 0u);
    key->align = ampi_cu_align(&p->a, p->stride_a, p->batch) | ampi_cu_align(&p->b, p->stride_b, p->batch) << 4 |
                 (c_is_d ? 0u : ampi_cu_align(&p->c, p->stride_c, p->batch)) << 8 | ampi_cu_align(&p->d, p->stride_d, p->batch) << 12 |
                 (p->bias.data ? ampi_cu_align(&p->bias, 0, 1) : 0u) << 16 | (p->aux.data ? ampi_cu_align(&p->aux, p->stride_d, p->batch) : 0u) << 20;
}

typedef struct ampi_cu_lt { /* cuBLASLt's descriptors, on the stack */
    cublasLtMatmulDescOpaque_t   desc;
    cublasLtMatrixLayoutOpaque_t a, b, c, d;
    const char                  *call;   /* that failed, */
    cublasStatus_t               status; /* and how */
} ampi_cu_lt;

static void ampi_cu_lt_try(ampi_cu_lt *lt, const char *call, cublasStatus_t status) {
    if (lt->status != CUBLAS_STATUS_SUCCESS) return; /* the first failure counts */
    lt->status = status;
    lt->call = call;
}
static void ampi_cu_lt_set(ampi_cu_lt *lt, cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes) {
    ampi_cu_lt_try(lt, "cublasLtMatmulDescSetAttribute", cublasLtMatmulDescSetAttribute(&lt->desc, what, value, bytes));
}
static void ampi_cu_lt_layout(ampi_cu_lt *lt, cublasLtMatrixLayoutOpaque_t *l, amp_dtype t, size_t rows, size_t cols, size_t ld, size_t stride, size_t batch) {
    int32_t count = (int32_t)batch;
    int64_t offset = stride == AMP_BROADCAST ? 0 : (int64_t)stride;
    ampi_cu_lt_try(lt, "cublasLtMatrixLayoutInit", cublasLtMatrixLayoutInit(l, ampi_cu_type(t), rows, cols, (int64_t)ld));
    if (batch <= 1u) return;
    ampi_cu_lt_try(lt, "cublasLtMatrixLayoutSetAttribute", cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    ampi_cu_lt_try(lt, "cublasLtMatrixLayoutSetAttribute", cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset, sizeof offset));
}

/* A row-major matrix is the transpose of a column-major one, and D = A B is D^T = B^T A^T: cuBLASLt's first operand is our B, its
   second our A, its m our n. Each keeps its own transposition. The bias then runs along cuBLASLt's rows, as it wants. */
static void ampi_cu_lt_describe(ampi_cu_lt *lt, const amp_gemm_desc *p, cublasLtEpilogue_t epilogue) {
    cublasOperation_t op_a = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    int c_is_d = p->c.data == p->d.data || p->beta == 0.0f;
    lt->status = CUBLAS_STATUS_SUCCESS;
    lt->call = "";
    ampi_cu_lt_try(lt, "cublasLtMatmulDescInit", cublasLtMatmulDescInit(&lt->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    if (p->alpha_ptr) {
        cublasLtPointerMode_t mode = CUBLASLT_POINTER_MODE_DEVICE;
        ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode);
    }
    ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a);
    ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b);
    if (epilogue != CUBLASLT_EPILOGUE_DEFAULT) ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
        ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias.data, sizeof p->bias.data);
    if (epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) {
        int64_t ld = (int64_t)p->ldd;
        ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &p->aux.data, sizeof p->aux.data);
        ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld);
    }
    ampi_cu_lt_layout(lt, &lt->a, p->b.dtype, p->trans_b ? p->k : p->n, p->trans_b ? p->n : p->k, p->ldb, p->stride_b, p->batch);
    ampi_cu_lt_layout(lt, &lt->b, p->a.dtype, p->trans_a ? p->m : p->k, p->trans_a ? p->k : p->m, p->lda, p->stride_a, p->batch);
    ampi_cu_lt_layout(lt, &lt->c, p->d.dtype, p->n, p->m, c_is_d ? p->ldd : p->ldc, c_is_d ? p->stride_d : p->stride_c, p->batch);
    ampi_cu_lt_layout(lt, &lt->d, p->d.dtype, p->n, p->m, p->ldd, p->stride_d, p->batch);
}

/* Asks for an algorithm. 1: there is one; 0: cuBLASLt does not take this product; lt->status tells of failures of other kinds.
   The workspace limit and the alignment must be said (their defaults are 0 and 256 bytes), and partial sums of a split k must
   never be rounded to the output's dtype. */
static int ampi_cu_lt_search(const ampi_cuda *c, ampi_cu_lt *lt, const ampi_cu_key *key, cublasLtMatmulAlgo_t *algo) {
    cublasLtMatmulPreferenceOpaque_t prefer;
    cublasLtMatmulHeuristicResult_t result;
    uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, align[4], i;
    uint64_t workspace = c->workspace_bytes;
    int found = 0;
    const cublasLtMatmulPreferenceAttributes_t which[4] = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    align[0] = 1u << (key->align >> 4 & 15u); align[1] = 1u << (key->align & 15u);
    align[3] = 1u << (key->align >> 12 & 15u); align[2] = key->shape & 8u ? align[3] : 1u << (key->align >> 8 & 15u);
    if (lt->status != CUBLAS_STATUS_SUCCESS) return 0;
    ampi_cu_lt_try(lt, "cublasLtMatmulPreferenceInit", cublasLtMatmulPreferenceInit(&prefer));
    if (lt->status == CUBLAS_STATUS_SUCCESS) {
        const char *call = "cublasLtMatmulPreferenceSetAttribute";
        ampi_cu_lt_try(lt, call, cublasLtMatmulPreferenceSetAttribute(&prefer, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
        ampi_cu_lt_try(lt, call, cublasLtMatmulPreferenceSetAttribute(&prefer, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof reduction));
        for (i = 0; i < 4u; i++) ampi_cu_lt_try(lt, call, cublasLtMatmulPreferenceSetAttribute(&prefer, which[i], &align[i], sizeof align[i]));
    }
    if (lt->status != CUBLAS_STATUS_SUCCESS) return 0;
    memset(&result, 0, sizeof result);
    lt->call = "cublasLtMatmulAlgoGetHeuristic";
    lt->status = cublasLtMatmulAlgoGetHeuristic(c->cublas, &lt->desc, &lt->a, &lt->b, &lt->c, &lt->d, &prefer, 1, &result, &found);
    if (lt->status == CUBLAS_STATUS_NOT_SUPPORTED || lt->status == CUBLAS_STATUS_INVALID_VALUE || lt->status == CUBLAS_STATUS_ARCH_MISMATCH) {
        lt->status = CUBLAS_STATUS_SUCCESS;
        return 0;
    }
    if (lt->status != CUBLAS_STATUS_SUCCESS || found < 1 || result.state != CUBLAS_STATUS_SUCCESS) return 0;
    *algo = result.algo;
    return 1;
}

/* How a product is made, decided once per key. With a 16-bit d the value before act must not be rounded to it first, unless act is
   ReLU (or there is none), which commutes with rounding. ReLU is never fused: whether cuBLASLt's keeps NaN is not documented. */
static amp_status ampi_cu_plan_make(const ampi_cu_call *k, const amp_gemm_desc *p, ampi_cu_plan *plan) {
    int lt_types = p->a.dtype == p->b.dtype && (p->a.dtype == AMP_F32 || p->a.dtype == AMP_F16 || (p->a.dtype == AMP_BF16 && k->c->arch >= 80)) &&
                   (p->d.dtype == p->a.dtype || p->d.dtype == AMP_F32);
    int bias = p->bias.data != NULL, fits = bias && p->bias.dtype == p->d.dtype, aux = p->aux.data != NULL, narrow = p->d.dtype != AMP_F32;
    int c_is_d = p->c.data == p->d.data || p->beta == 0.0f, possible;
    const char *why = "cuBLASLt has no form of it";
    ampi_cu_lt lt;
    plan->lt = plan->after = 0;
    plan->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    possible = lt_types && p->k > 0 && (!p->alpha_ptr || ampi_cu_device_scalars(p)) && p->batch <= 0x7fffffffu && (c_is_d || p->batch == 1u || (p->stride_c != 0 && p->stride_c != AMP_BROADCAST)) && !(narrow && bias && !fits) &&
               !(narrow && aux && p->aux.dtype != p->d.dtype);
    if (narrow && p->act == AMP_GELU) { /* only as cuBLASLt's own */
        if (aux && (p->ldd % 8u || p->batch > 1u)) possible = 0;
        plan->epilogue = aux ? (bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX) : bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    } else {
        if (fits) plan->epilogue = CUBLASLT_EPILOGUE_BIAS;
        plan->after = p->act != AMP_ACT_NONE || aux || (bias && !fits);
    }
    if (possible) {
        ampi_cu_lt_describe(&lt, p, plan->epilogue);
        plan->lt = (uint32_t)ampi_cu_lt_search(k->c, &lt, &plan->key, &plan->algo);
        if (!plan->lt && lt.status == CUBLAS_STATUS_SUCCESS && !narrow && plan->epilogue == CUBLASLT_EPILOGUE_BIAS) { /* then the bias after it */
            plan->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
            plan->after = 1;
            ampi_cu_lt_describe(&lt, p, plan->epilogue);
            plan->lt = (uint32_t)ampi_cu_lt_search(k->c, &lt, &plan->key, &plan->algo);
        }
        if (lt.status != CUBLAS_STATUS_SUCCESS) return ampi_cu_fail_cublas(k, lt.call, lt.status);
        why = "cuBLASLt offers no algorithm";
    }
    if (!plan->lt) plan->after = 0;
    amp_log_event(k->ctx, AMP_LOG_INFO, "%s: [%llu,%llu] x [%llu,%llu] %s -> %s, batch %llu: %s%s", k->verb, (unsigned long long)p->m, (unsigned long long)p->k,
                  (unsigned long long)p->k, (unsigned long long)p->n, amp_dtype_name(p->a.dtype), amp_dtype_name(p->d.dtype), (unsigned long long)p->batch,
                  plan->lt ? plan->epilogue == CUBLASLT_EPILOGUE_DEFAULT ? "cuBLASLt" : "cuBLASLt with a fused epilogue" : "plain kernel: ",
                  plan->lt ? plan->after ? ", then the epilogue kernel" : "" : why);
    return AMP_OK;
}

static amp_status ampi_cu_plain_gemm(const ampi_cu_call *k, const amp_gemm_desc *p) {
    uint64_t tiles = ampi_cu_parts(p->m, AMPI_K_TILE) * ampi_cu_parts(p->n, AMPI_K_TILE) * p->batch;
    return ampi_cu_launch(k, ampi_cu_grid(k->c, tiles), ampi_k_gemm, *p);
}

static amp_status ampi_cu_run(const ampi_cu_call *k, const amp_gemm_desc *p, ampi_cu_plan *plan) {
    int c_is_d = p->c.data == p->d.data || p->beta == 0.0f;
    const float *alpha = &p->alpha, *beta = &p->beta;
    ampi_cu_lt lt;
    cublasStatus_t e;
    amp_status s;
    if (!plan->lt) return ampi_cu_plain_gemm(k, p);
    ampi_cu_lt_describe(&lt, p, plan->epilogue);
    if (lt.status != CUBLAS_STATUS_SUCCESS) return ampi_cu_fail_cublas(k, lt.call, lt.status);
    if (p->alpha_ptr) {
        alpha = p->alpha_ptr;
        beta = &k->c->scratch->scalar[p->beta == 0.0f ? 0 : 1];
    }
    e = cublasLtMatmul(k->c->cublas, &lt.desc, alpha, p->b.data, &lt.a, p->a.data, &lt.b, beta, c_is_d ? p->d.data : p->c.data, &lt.c, p->d.data, &lt.d,
                       &plan->algo, k->c->workspace, k->c->workspace_bytes, k->c->stream);
    if (e == CUBLAS_STATUS_NOT_SUPPORTED || e == CUBLAS_STATUS_INVALID_VALUE) { /* promised, and refused after all: not again */
        plan->lt = plan->after = 0;
        amp_log_event(k->ctx, AMP_LOG_WARNING, "%s: cublasLtMatmul: %s; the plain kernel takes over", k->verb, ampi_cu_cublas_name(e));
        return ampi_cu_plain_gemm(k, p);
    }
    if (e != CUBLAS_STATUS_SUCCESS) return ampi_cu_fail_cublas(k, "cublasLtMatmul", e);
    s = ampi_cu_launched(k, "cublasLtMatmul");
    if (s == AMP_OK && plan->after) {
        int add_bias = p->bias.data != NULL && plan->epilogue == CUBLASLT_EPILOGUE_DEFAULT;
        s = ampi_cu_launch(k, ampi_cu_grid(k->c, ampi_cu_parts(p->batch * p->m * p->n, AMP_BLOCK)), ampi_k_epilogue, *p, add_bias);
    }
    return s;
}

static amp_status ampi_cu_gemm(amp_ctx *ctx, const amp_gemm_desc *desc) {
    ampi_cu_call k;
    ampi_cu_key key;
    ampi_cu_plan *plan = NULL;
    amp_gemm_desc p = *desc;
    uint32_t i;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_gemm");
    if (!p.c.data) { p.c = p.d; p.ldc = p.ldd; p.stride_c = p.stride_d; }
    if (s == AMP_OK) {
        ampi_cu_key_of(&key, &p);
        for (i = 0; i < AMPI_CU_PLANS && !plan; i++)
            if (k.c->plans[i].used && memcmp(&k.c->plans[i].key, &key, sizeof key) == 0) plan = &k.c->plans[i];
        if (!plan) {
            plan = &k.c->plans[k.c->next_plan]; /* the oldest makes room */
            plan->used = 0;
            plan->key = key;
            s = ampi_cu_plan_make(&k, &p, plan);
            if (s == AMP_OK) {
                plan->used = 1;
                k.c->next_plan = (k.c->next_plan + 1u) % AMPI_CU_PLANS;
            }
        }
    }
    if (s == AMP_OK) s = ampi_cu_run(&k, &p, plan);
    return ampi_cu_leave(&k, s);
}

static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_act_grad(amp_act act, amp_array dy, amp_array saved, uint64_t n) {
    uint64_t i;
    for (i = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x; i < n; i += (uint64_t)gridDim.x * AMP_BLOCK)
        ampi_k_put(dy.data, dy.dtype, i, ampi_act_grad(act, ampi_k_get(dy.data, dy.dtype, i), ampi_k_get(saved.data, saved.dtype, i)));
}
static amp_status ampi_cu_act_grad(amp_ctx *ctx, amp_act act, amp_array dy, amp_array saved, size_t n) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_linear_backward");
    if (s == AMP_OK && n > 0) s = ampi_cu_launch(&k, ampi_cu_grid(k.c, ampi_cu_parts(n, AMP_BLOCK)), ampi_k_act_grad, act, dy, saved, (uint64_t)n);
    return ampi_cu_leave(&k, s);
}

static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_dropout(amp_dropout_desc d, uint64_t threshold, float factor) {
    uint64_t i;
    for (i = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x; i < d.count; i += (uint64_t)gridDim.x * AMP_BLOCK)
        ampi_k_put(d.y.data, d.y.dtype, i, amp_dropout_one(ampi_k_get(d.x.data, d.x.dtype, i), amp_random(d.rng.seed, d.rng.stream, d.rng.offset + i), threshold, factor));
}
static amp_status ampi_cu_dropout(amp_ctx *ctx, const amp_dropout_desc *d) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_dropout");
    if (s == AMP_OK) s = ampi_cu_launch(&k, ampi_cu_grid(k.c, ampi_cu_parts(d->count, AMP_BLOCK)), ampi_k_dropout, *d, amp_dropout_threshold(d->p), amp_dropout_factor(d->p));
    return ampi_cu_leave(&k, s);
}

static uint64_t ampi_cu_capture_id(amp_ctx *ctx) { /* never 0 in a capture */
    const ampi_cuda *c = (const ampi_cuda *)amp_ctx_self(ctx);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    if (cudaStreamGetCaptureInfo(c->stream, &status, &id) != cudaSuccess) { (void)cudaGetLastError(); return 0; }
    return status == cudaStreamCaptureStatusNone ? 0 : (uint64_t)id + 1;
}

/* A block sums 32 columns; its rows of 32 threads each take every (AMP_BLOCK / 32)-th row of the matrix, and are joined in order. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_col_sum(amp_array out, amp_array in, uint64_t rows, uint64_t cols, int accumulate) {
    AMP_SHARED(double, part, AMP_BLOCK);
    uint32_t column = threadIdx.x % 32u, lane = threadIdx.x / 32u, l;
    uint64_t c0, r;
    for (c0 = (uint64_t)blockIdx.x * 32u; c0 < cols; c0 += (uint64_t)gridDim.x * 32u) {
        double sum = 0.0;
        if (c0 + column < cols)
            for (r = lane; r < rows; r += AMP_BLOCK / 32u) sum = ampi_dadd(sum, ampi_widen(ampi_k_get(in.data, in.dtype, r * cols + c0 + column)));
        part[threadIdx.x] = sum;
        __syncthreads();
        if (lane == 0 && c0 + column < cols) {
            for (l = 1; l < AMP_BLOCK / 32u; l++) sum = ampi_dadd(sum, part[l * 32u + column]);
            if (accumulate) sum = ampi_dadd(ampi_widen(ampi_k_get(out.data, out.dtype, c0 + column)), sum);
            ampi_k_put(out.data, out.dtype, c0 + column, ampi_narrow(sum));
        }
        __syncthreads();
    }
}
static amp_status ampi_cu_col_sum(amp_ctx *ctx, amp_array out, amp_array in, size_t rows, size_t cols, int accumulate) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_linear_backward");
    if (s == AMP_OK && cols > 0)
        s = ampi_cu_launch(&k, ampi_cu_grid(k.c, ampi_cu_parts(cols, 32)), ampi_k_col_sum, out, in, (uint64_t)rows, (uint64_t)cols, accumulate);
    return ampi_cu_leave(&k, s);
}

/* ==== >>table: create, destroy ======================================================================================== */

static void ampi_cu_drop(ampi_cuda *c) { /* frees what there is, also after a creation that failed half way */
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed; /* a capture elsewhere in the thread stays valid */
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    amp_allocator host = c->host;
    int now = -1, capturing;
    if (cudaGetDevice(&now) != cudaSuccess) now = -1; /* then without switching: pointers and streams know their device */
    if (now >= 0 && now != c->device) (void)cudaSetDevice(c->device);
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
    capturing = cudaStreamIsCapturing(c->stream, &capture) == cudaSuccess && capture != cudaStreamCaptureStatusNone;
    if (c->scratch && !capturing) (void)cudaStreamSynchronize(c->stream);
    if (c->own_cublas && c->cublas) (void)cublasLtDestroy(c->cublas);
    ampi_cu_give_late(c);
    if (c->own_workspace) ampi_cu_give(c, c->workspace, c->workspace_bytes);
    ampi_cu_give(c, c->scratch, sizeof(ampi_cu_scratch));
    if (c->mirror) (void)cudaFreeHost(c->mirror);
    if (c->own_stream && c->stream) (void)cudaStreamDestroy(c->stream); /* what is queued on it, frees of a pool, still runs */
    (void)cudaThreadExchangeStreamCaptureMode(&mode);
    if (now >= 0 && now != c->device && cudaSetDevice(now) != cudaSuccess) (void)cudaSetDevice(now);
    (void)cudaGetLastError();
    if (host.free_fn) host.free_fn(c, sizeof *c, host.user);
    else free(c);
}
static void ampi_cu_destroy(amp_ctx *ctx) { ampi_cu_drop((ampi_cuda *)amp_ctx_self(ctx)); }

static const char ampi_cu_name[] = "cuda";
static const amp_backend ampi_cu_backend = {
    (uint32_t)AMP_VERSION, sizeof(amp_backend), ampi_cu_name, ampi_cu_device, ampi_cu_destroy,
    ampi_cu_alloc, ampi_cu_release, ampi_cu_copy, ampi_cu_zero, ampi_cu_sync, ampi_cu_may_wait,
    ampi_cu_cast, ampi_cu_finite, ampi_cu_histogram,
    ampi_cu_inspect, ampi_cu_update, ampi_cu_add, ampi_cu_mirror_create, ampi_cu_mirror_destroy, ampi_cu_poll, ampi_cu_clip, ampi_cu_next_scale,
    ampi_cu_gemm, ampi_cu_act_grad, ampi_cu_col_sum, ampi_cu_xent,
    ampi_cu_capture_id, ampi_cu_dropout
};

/* Before a context exists, a failure can only go to the logger. */
static amp_status ampi_cu_refuse(const amp_cuda_desc *d, amp_status s, const char *text) {
    if (d->logger.fn) d->logger.fn(AMP_LOG_ERROR, s, text, d->logger.user);
    return s;
}
static amp_status ampi_cu_refuse_call(const amp_cuda_desc *d, amp_status s, const char *call, const char *name) {
    char text[160];
    snprintf(text, sizeof text, "amp_cuda_create: %s: %s", call, name);
    return ampi_cu_refuse(d, s, text);
}

/* Everything of a context that can fail, in order; what was made is in *c. */
static amp_status ampi_cu_make(ampi_cuda *c, const amp_cuda_desc *d) {
    struct cudaDeviceProp properties;
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const char *call = "";
    cublasStatus_t b;
    cudaError_t e, probe;
    int threads = 0, major = 0, minor = 0;
    void *p = NULL;
#define AMPI_CU_MAKE(name, expression) \
    do { \
        e = (expression); \
        if (e != cudaSuccess) return ampi_cu_refuse_call(d, ampi_cu_kind(e, c->stream), (name), cudaGetErrorName(e)); \
    } while (0)
    AMPI_CU_MAKE("cudaSetDevice", cudaSetDevice(c->device));
    AMPI_CU_MAKE("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&c->sms, cudaDevAttrMultiProcessorCount, c->device));
    AMPI_CU_MAKE("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, c->device));
    AMPI_CU_MAKE("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, c->device));
    AMPI_CU_MAKE("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, c->device));
    AMPI_CU_MAKE("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, c->device));
    c->blocks_per_sm = threads / AMP_BLOCK > 0 ? threads / AMP_BLOCK : 1;
    c->arch = 10 * major + minor;
    snprintf(c->name, sizeof c->name, "%s", properties.name);
    if (c->own_stream) {
        cudaStream_t made = NULL;
        AMPI_CU_MAKE("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
        c->stream = made;
    }
    probe = cudaStreamIsCapturing(c->stream, &capture);
    if (probe == cudaErrorStreamCaptureImplicit || (probe == cudaSuccess && capture != cudaStreamCaptureStatusNone)) {
        (void)cudaGetLastError();
        return ampi_cu_refuse(d, AMP_ERR_CAPTURE, "amp_cuda_create: desc.stream is being captured");
    }
    AMPI_CU_MAKE("cudaStreamIsCapturing", probe);
    if (c->own_cublas) {
        b = cublasLtCreate(&c->cublas);
        if (b != CUBLAS_STATUS_SUCCESS) {
            amp_status s = b == CUBLAS_STATUS_ALLOC_FAILED ? AMP_ERR_NO_MEMORY : AMP_ERR_CUDA;
            c->cublas = NULL;
            e = cudaPeekAtLastError();
            if (e != cudaSuccess && ampi_cu_kind(e, c->stream) == AMP_ERR_DEAD) s = AMP_ERR_DEAD;
            return ampi_cu_refuse_call(d, s, "cublasLtCreate", ampi_cu_cublas_name(b));
        }
    }
    if (c->own_workspace) {
        size_t bytes = d->workspace_bytes ? d->workspace_bytes : (size_t)(c->arch >= 90 ? 32 : 4) << 20;
        AMPI_CU_MAKE(call, ampi_cu_take(c, &p, bytes, &call));
        c->workspace = p;
        c->workspace_bytes = bytes;
    }
    AMPI_CU_MAKE(call, ampi_cu_take(c, &p, sizeof(ampi_cu_scratch), &call));
    c->scratch = (ampi_cu_scratch *)p;
    AMPI_CU_MAKE("cudaMallocHost", cudaMallocHost(&p, sizeof(ampi_cu_scratch)));
    c->mirror = (ampi_cu_scratch *)p;
    memset(c->mirror, 0, sizeof(ampi_cu_scratch)); /* the ticket starts at 0 */
    c->mirror->scalar[1] = 1.0f;
    AMPI_CU_MAKE("cudaMemcpyAsync", cudaMemcpyAsync(c->scratch, c->mirror, sizeof(ampi_cu_scratch), cudaMemcpyHostToDevice, c->stream));
    AMPI_CU_MAKE("cudaStreamSynchronize", cudaStreamSynchronize(c->stream));
#undef AMPI_CU_MAKE
    return AMP_OK;
}

extern "C" amp_status amp_cuda_create_checked(amp_ctx **out, int version, size_t size, const amp_cuda_desc *desc) {
    amp_cuda_desc d;
    ampi_cuda *c;
    cudaError_t e;
    amp_status s;
    int count = 0, now = 0;
    if (!out) return AMP_ERR_INVALID_ARG;
    *out = NULL;
    if (version != AMP_VERSION || size != sizeof d) return AMP_ERR_VERSION;
    memset(&d, 0, sizeof d);
    if (desc) {
        if (desc->_begin || desc->_end) return AMP_ERR_UNINIT; /* its logger cannot be trusted either */
        d = *desc;
    }
    if (d.flags & ~(AMP_CUDA_POOL | AMP_CUDA_DEBUG)) return ampi_cu_refuse(&d, AMP_ERR_INVALID_ARG, "amp_cuda_create: desc.flags has an unknown bit");
    if (!d.allocator.alloc_fn != !d.allocator.free_fn) return ampi_cu_refuse(&d, AMP_ERR_INVALID_ARG, "amp_cuda_create: desc.allocator needs both functions or neither");
    if (!d.host.alloc_fn != !d.host.free_fn) return ampi_cu_refuse(&d, AMP_ERR_INVALID_ARG, "amp_cuda_create: desc.host needs both functions or neither");
    if (d.allocator.alloc_fn && (d.flags & AMP_CUDA_POOL)) return ampi_cu_refuse(&d, AMP_ERR_INVALID_ARG, "amp_cuda_create: desc.allocator and AMP_CUDA_POOL exclude each other");
    if (d.workspace && d.workspace_bytes < 512u) return ampi_cu_refuse(&d, AMP_ERR_INVALID_ARG, "amp_cuda_create: desc.workspace_bytes is less than 512");
    e = cudaGetDeviceCount(&count);
    if (e == cudaSuccess && count > 0) e = cudaGetDevice(&now);
    if (e != cudaSuccess || count < 1) {
        (void)cudaGetLastError();
        return ampi_cu_refuse_call(&d, ampi_cu_sticky(e) ? AMP_ERR_DEAD : AMP_ERR_NO_CUDA, "cudaGetDeviceCount", e == cudaSuccess ? "no device" : cudaGetErrorName(e));
    }
    if (d.device == AMP_NONE) d.device = now;
    if (d.device < 0 || d.device >= count) return ampi_cu_refuse(&d, AMP_ERR_INVALID_ARG, "amp_cuda_create: desc.device: there is no such device");
    c = (ampi_cuda *)(d.host.alloc_fn ? d.host.alloc_fn(sizeof *c, d.host.user) : malloc(sizeof *c));
    if (!c) return ampi_cu_refuse(&d, AMP_ERR_NO_MEMORY, "amp_cuda_create: no host memory");
    memset(c, 0, sizeof *c);
    c->device = d.device;
    c->flags = d.flags;
    c->stream = d.stream;
    c->own_stream = d.stream == NULL;
    c->cublas = (cublasLtHandle_t)d.cublas;
    c->own_cublas = d.cublas == NULL;
    c->allocator = d.allocator;
    c->host = d.host;
    c->error.call = "";
    c->own_workspace = d.workspace == NULL;
    if (d.workspace) { /* aligned as cuBLASLt wants it */
        size_t skip = (size_t)(-(uintptr_t)d.workspace & 255u);
        c->workspace = (char *)d.workspace + skip;
        c->workspace_bytes = d.workspace_bytes - skip;
    }
    s = ampi_cu_make(c, &d);
    if (s == AMP_OK) {
        s = amp_ctx_create_backend(out, &ampi_cu_backend, c, &d.host, &d.logger);
        if (s != AMP_OK) (void)ampi_cu_refuse(&d, s, "amp_cuda_create: no host memory");
    }
    if (s != AMP_OK) {
        ampi_cu_drop(c);
        c = NULL;
    }
    if (now != d.device) {
        e = cudaSetDevice(now);
        if (e != cudaSuccess && s == AMP_OK) {
            s = ampi_cu_refuse_call(&d, ampi_cu_kind(e, c->stream), "cudaSetDevice", cudaGetErrorName(e));
            amp_ctx_destroy(*out);
            *out = NULL;
        }
        if (e != cudaSuccess) (void)cudaSetDevice(now);
    }
    return s;
}

extern "C" int amp_cuda_available(void) {
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess) (void)cudaGetLastError();
    return e == cudaSuccess && count > 0;
}

static const ampi_cuda *ampi_cu_of(const amp_ctx *ctx) { return ctx && amp_ctx_name(ctx) == ampi_cu_name ? (const ampi_cuda *)amp_ctx_self(ctx) : NULL; }

extern "C" amp_stream amp_cuda_stream(const amp_ctx *ctx) {
    const ampi_cuda *c = ampi_cu_of(ctx);
    return c ? ampi_cu_same_type(c->stream) : NULL;
}

extern "C" amp_status amp_cuda_last_error(const amp_ctx *ctx, amp_cuda_error *out) {
    const ampi_cuda *c = ampi_cu_of(ctx);
    if (!out) return AMP_ERR_INVALID_ARG;
    out->code = 0; out->library = AMP_CUDA_NO_LIBRARY; out->call = "";
    if (!c) return AMP_ERR_INVALID_ARG;
    *out = c->error;
    return AMP_OK;
}

#endif /* AMP_CUDA_IMPLEMENTATION */
