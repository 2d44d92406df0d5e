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

