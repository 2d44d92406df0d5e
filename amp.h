/* amp.h - v0.1.0 - mixed-precision training for C and CUDA programs - MIT, text at the end of the file

   DO THIS, in exactly one C or C++ file (never in a header):

       #define AMP_IMPLEMENTATION
       #include "amp.h"

   Everywhere else just  #include "amp.h".  C99 or C++11, libc and libm:  cc -O2 main.c -lm  (before glibc 2.34 add
   -pthread). A program for the CPU needs neither CUDA nor nvcc.

   A COMPLETE PROGRAM. It learns the logical OR (in: 1 for the bias, two inputs) with FP32 masters and a loss scale. A
   context is where work runs: the CPU, or one stream of a GPU. A dtype is a number format. A verb is a function that
   does work in a context and returns a status; real programs check it. A desc is a struct of settings, where 0 means
   the default (end of >>types). More words: docs/glossary.md. .scaler puts the loss scale in; amp_step removes it.

       #define AMP_IMPLEMENTATION
       #include "amp.h"
       #include <stdio.h>
       int main(void) {
           float in[12] = {1,0,0, 1,0,1, 1,1,0, 1,1,1}, row_loss[4], loss;
           int32_t labels[4] = {0, 1, 1, 1};  amp_f16 x[12], y[8], dy[8];  amp_ctx *ctx;  amp_params *p;  amp_scaler *s;
           amp_cpu_create(&ctx, NULL);  amp_scaler_create(&s, ctx, NULL);  amp_params_create(&p, ctx, NULL);
           amp_params_add(p, &(amp_param_desc){.rows = 2, .cols = 3});  amp_params_commit(p);
           amp_cast(ctx, amp_arr(x, AMP_F16), amp_arr(in, AMP_F32), 12, NULL);
           amp_linear_desc fc = {.rows = 4, .in = 3, .out = 2, .x = amp_arr(x, AMP_F16), .w = amp_param_model(p, 0),
               .y = amp_arr(y, AMP_F16), .dy = amp_arr(dy, AMP_F16), .dw = amp_param_grad(p, 0)};
           amp_xent_desc xe = {.rows = 4, .classes = 2, .logits = fc.y, .labels = labels, .dlogits = fc.dy, .scaler = s,
               .loss = &loss, .row_loss = row_loss};
           for (int i = 0; i < 200; i++) {
               amp_linear_forward(ctx, &fc);  amp_softmax_cross_entropy(ctx, &xe);  amp_linear_backward(ctx, &fc);
               amp_step(p, s, &(amp_step_desc){.lr = 0.1f});
           }
           printf("loss %.3f\n", loss); amp_params_destroy(p); amp_scaler_destroy(s); amp_ctx_destroy(ctx);
       }

   For a GPU add amp_cuda.cuh: amp_cuda_create() instead of amp_cpu_create(), arrays from amp_alloc() and amp_copy().
   Back on the CPU, only the line with amp_cuda_create changes. In C++, which cannot take the address of a compound
   literal, verbs take a desc by reference, too: amp_step_desc d = AMP_ZERO; d.lr = 0.1f; amp_step(p, s, d);

   WHAT IT IS NOT: no autograd, no layers beyond the linear one, no data loading. Your model and your loop stay yours.

   CONTENTS (search for ">>tag". tools/tests_of.sh amp_step: which tests name a function, and the banner above its body)
       >>config >>numerics >>memory >>threads >>sync >>errors >>names    the rules, on this page
       >>status >>types >>context >>formats >>arrays >>params >>scaler >>step >>policy >>products >>state
                                                                         the public API: an evening's reading
       >>backend, >>sums, then >>levels >>fp8 >>plan >>operations        for authors; O0..O3, FP8, memory, operations
       >>impl, >>front-status ... >>front-operations, >>cpu ... >>cpu-table, >>lanes, >>license
                                                                         the implementation, in the same order

   >>config    macro               default      where to define it    effect
               AMP_IMPLEMENTATION  -            one file              emits the code
               AMP_STATIC          -            the file itself       a private copy: functions are static, code emitted
               AMP_API             extern       files that need it    how functions are declared: __declspec(dllimport)
               AMP_MALLOC/_FREE    malloc/free  implementation file   default allocator of contexts; both or neither
               AMP_NO_SIMD         - (.cu: yes) implementation file   portable C only, slower; bits: >>numerics
               AMP_STREAM_BYTES    8 MiB        implementation file   casts to 16 or 32 bits so large bypass the caches
               AMP_NO_THREADS      - (MSVC: yes) implementation file  no pthreads: contexts have one thread
               AMP_NO_STDIO        -            implementation file   no files: amp_state_* return AMP_ERR_UNSUPPORTED
               AMP_SELF            "amp.h"      files that rename it  the name by which this file includes itself
               No macro has to be the same in all files: none changes a type or a signature. AMP_HD and AMP_DEVICE
               follow the compiler; only a port defines them. AMP_CUDA_NVTX: see amp_cuda.cuh.

   >>numerics  Conversions round to nearest even (IEEE 754), or stochastically where a desc says so. Subnormals are
               kept. To nearest, in FP16, |x| >= 65520 becomes Inf (|x| < 65520 never does; a saturating cast gives
               65504), and |x| <= 2^-25 becomes 0. NaN stays NaN (made quiet, upper payload bits kept). The sign is
               kept, even of zero: -2^-26 becomes -0. Integer arithmetic only (with -mf16c: instructions that fix their
               own rounding mode and raise exception flags), so the bits are the same on x86, ARM and big-endian
               machines, under -ffast-math (clang from 17, Apple's from 16: with -fno-finite-math-only), FTZ/DAZ, any
               rounding mode and x87 (tests: test_formats.c, compile/inline.c, exhaustive.c; other machines: matrix.sh).
               Arithmetic (update, norm, activations, softmax) gives the bits of the default IEEE environment, whatever
               the compiler flags (tests/test_modes.c), but for x87 (-m32, -mfpmath=387), -ffast-math on POWER, payloads
               of NaN that operations make. Activations and softmax use fused multiply-adds. The paths sse2 and scalar
               have no instruction for these (except on AArch64 or with -mfma) and emulate them: the same bits, several
               times slower.
               Reductions follow "The rule of sums" (>>sums), so thread count, SIMD path and device do not change a
               bit: the "bit contract". Tests say == on every context (tests/main.c; GPUs: TESTED in amp_cuda.cuh).
               Products (amp_gemm, amp_linear_*) accumulate in FP32 and carry an error bound instead (>>products). With
               AMP_GEMM_ORDERED they are specified to the bit, too: every 256 values of k are summed from 0 as
               s = fma(a, b, s), these sums are added in order, each operation of the epilogue rounds once: a whole
               training run has the same bits everywhere (tests/test_ordered.c, docs/ordered.md).

   >>memory    "Context memory" is what the context's verbs can reach: host memory for the CPU, device memory for CUDA.
               Arrays may be yours or come from amp_alloc. Their addresses are multiples of the element size (on the CPU
               any will do for an amp_array, but for FP32 weights and u of amp_apply). Verbs of class setup allocate,
               by the context's allocator. Four others may: amp_param_read and _write (layouts without FP32 masters) and
               amp_state_save use up to 2 MiB of host memory while they run, amp_state_load as much as the file has. An
               autocast scope that needs more room than any before may enlarge its arena (>>policy). Plan files of CUDA
               take host memory. Nothing else allocates (tests/test_modes.c). Allocators of yours: desc.allocator of
               amp_cpu_create and amp_cuda_create, and for host memory of a CUDA context desc.host. amp_ledger lists all
               context memory by label, except the context's own fixed workspace.

   >>threads   Only one thread at a time may use a context and the objects made on it; different threads may use
               different contexts. A verb that finds its context in use changes nothing and returns AMP_ERR_BUSY, if the
               compiler has atomics; functions that only read host state (amp_param_get, ...) are not checked. There are
               no globals and no thread-locals. A logger or an allocator must not call a verb of its context, and must
               return normally: if it throws or jumps out of a verb, only *_destroy may follow, in the same thread.
               Hooks of a step may throw; the set has not stepped then. pthread_cancel takes effect after a verb;
               workers block signals. After fork() a child may use and destroy its copies of CPU contexts that no thread
               was inside; they have one thread. A child must not touch a CUDA context (CUDA's rule).

   >>sync      Each function is of one class, named in its comment:
               host     touches host state only.
               setup    allocates or frees; may synchronise; AMP_ERR_CAPTURE in a capture (amp_free: later, 64 at most).
               enqueue  on CUDA: queued on the context's stream, without allocation or waiting; legal in a capture.
                        Exceptions: an autocast scope that grows (>>memory), amp_copy_async of pageable host memory.
               query    waits, and returns a result to the host; AMP_ERR_CAPTURE in a capture, which stays valid.
               On the CPU a verb is done when it returns. Only amp_ctx_destroy can break a capture of another stream.

   >>errors    Functions return AMP_OK or a negative amp_status (amp_strerror: what it means). amp_last_error(ctx) is a
               sentence that names the function, the argument and its value; desc.logger receives it, too, even if
               creation fails (except UNINIT and VERSION, where the desc cannot be trusted). If an argument is refused,
               outputs are untouched; if creation fails, the created pointer is NULL; if header and implementation are
               of different versions, every *_create returns AMP_ERR_VERSION. Nothing prints, exits, aborts or throws.

   >>names     Both files put amp_* and AMP_* into your program, and ampi_* and AMPI_* for themselves; amp_cuda.cuh also
               names two structs of CUDA, CUstream_st and cublasContext. The linker sees amp_* only.
               "multiple definition of amp_...": two files define AMP_IMPLEMENTATION. "undefined reference": no file
               does. Functions amp_cuda_... come with AMP_CUDA_IMPLEMENTATION instead: see amp_cuda.cuh.
               Arguments: the objects first, then what is written, then what is read, a desc last.

   HISTORY     0.1.0 first version: CHANGELOG.md. This file is made from src/ by make headers: change it there.
*/
#if defined(__STRICT_ANSI__) && !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
#  error "amp.h: C99 or later is needed (-std=c99, -std=gnu11, ...), or C++11"
#  define AMP_H /* one line is enough */
#endif
#ifndef AMP_H
#define AMP_H

#define AMP_VERSION_MAJOR 0
#define AMP_VERSION_MINOR 1
#define AMP_VERSION_PATCH 0
#define AMP_VERSION       (AMP_VERSION_MAJOR * 10000 + AMP_VERSION_MINOR * 100 + AMP_VERSION_PATCH)

/* Our parameters may have names of your globals, and some casts matter only on other machines: no warnings for that.
   Structs are laid out in the same way everywhere, also inside a #pragma pack(1) and under -fshort-enums. */
#pragma pack(push)
#pragma pack()
#if defined(__GNUC__)
#  pragma GCC diagnostic push
#  pragma GCC diagnostic ignored "-Wshadow"
#  if defined(__clang__)
#    pragma GCC diagnostic ignored "-Wold-style-cast"
#    pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"
#  elif defined(__cplusplus) || __GNUC__ >= 14
#    pragma GCC diagnostic ignored "-Wuseless-cast"
#  endif
#endif

#ifdef __cplusplus
extern "C++" { /* so that this file may be included inside extern "C" */
#endif
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __cplusplus
}
#endif

#ifndef AMP_HD
#  if defined(__CUDACC__) || defined(__HIP__)
#    define AMP_HD __host__ __device__ /* scalar functions also work inside your kernels */
#  else
#    define AMP_HD
#  endif
#endif
#if !defined(AMP_DEVICE) && (defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__))
#  define AMP_DEVICE /* the compiler is making device code */
#endif
#define AMP_INLINE AMP_HD static inline /* declared here, defined after >>backend */
#if defined(__GNUC__) || defined(__clang__)
#  define AMP_UNUSED __attribute__((__unused__))
#  define AMP_INT    __attribute__((__mode__(__SI__))) /* an enum is as wide as int */
#else
#  define AMP_UNUSED
#  define AMP_INT
#endif
/* clang-format off */
#ifdef __cplusplus
#  define AMP_ZERO {} /* amp_gemm_desc d = AMP_ZERO;  a zeroed desc without a warning, in C and in C++ */
#else
#  define AMP_ZERO {0}
#endif
#ifndef AMP_SELF
#  define AMP_SELF "amp.h" /* this file, which includes itself: see >>lanes. For a copy under a different name */
#endif
#ifdef AMP_STATIC
#  ifndef AMP_IMPLEMENTATION
#    define AMP_IMPLEMENTATION
#  endif
#  define AMP_API AMP_UNUSED static
#endif
/* clang-format on */
#ifndef AMP_API
#  define AMP_API extern
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ==== >>status =================================================================================================== */

/* clang-format off */
#define AMP_STATUS_LIST(X) \
    X(AMP_OK,                0, "success") \
    X(AMP_ERR_INVALID_ARG,  -1, "an argument is outside its documented range") \
    X(AMP_ERR_UNINIT,       -2, "a desc struct was not zero-initialised (its first or last member is not 0)") \
    X(AMP_ERR_VERSION,      -3, "header and implementation differ in version or struct size") \
    X(AMP_ERR_NO_MEMORY,    -4, "the allocator returned NULL") \
    X(AMP_ERR_NO_CUDA,      -5, "built without CUDA, or no CUDA device") \
    X(AMP_ERR_CUDA,         -6, "a CUDA or cuBLAS call failed; the context can still be used") \
    X(AMP_ERR_DEAD,         -7, "the device is in a sticky error state; only destroying the context is left") \
    X(AMP_ERR_UNSUPPORTED,  -8, "this combination is not available on this context") \
    X(AMP_ERR_STAGE,        -9, "called in the wrong order") \
    X(AMP_ERR_CAPTURE,     -10, "this call synchronises and the stream is being captured") \
    X(AMP_ERR_IO,          -11, "a file could not be read or written") \
    X(AMP_ERR_FORMAT,      -12, "not a state of this kind, or truncated, altered, or made for other parameters") \
    X(AMP_ERR_BUSY,        -13, "a different thread is inside this context, or a call never returned")
/* clang-format on */

typedef enum amp_status {
#define AMP_X(name, value, text) name = value,
    AMP_STATUS_LIST(AMP_X)
#undef AMP_X
        AMP_STATUS_FORCE_INT = 0x7fffffff
} AMP_INT amp_status;

/* One sentence per status, never NULL, also for unknown numbers. Class: host. Threads: safe. */
AMP_API const char *amp_strerror(amp_status status);
/* AMP_VERSION of the compiled implementation. Every *_create compares version and desc size with the header's, and
   returns AMP_ERR_VERSION; the other verbs do not check. Class: host. Threads: safe. */
AMP_API int amp_version(void);

/* ==== >>types ==================================================================================================== */

typedef enum amp_dtype {
    AMP_AUTO = 0, /* "choose for me": each place that accepts it says what it means */
    AMP_F32,      /* float */
    AMP_F16,      /* IEEE binary16:  5 exponent bits, 10 mantissa bits, max 65504, smallest 2^-24 */
    AMP_BF16,     /* bfloat16:       8 exponent bits,  7 mantissa bits, the range of float */
    AMP_F8E4M3,   /* OCP FP8 E4M3:   no Inf, one NaN, max 448, smallest 2^-9 */
    AMP_F8E5M2,   /* OCP FP8 E5M2:   Inf and NaN as IEEE, max 57344, smallest 2^-16 */
    AMP_DTYPE_COUNT,
    AMP_F64 = 64, /* double: for amp_cast, amp_all_finite, amp_watch_array, amp_dtype_size, _name: others refuse it */
    AMP_MOMENT_8BIT, /* for amp_params_desc.moment alone; amp_dtype_size is 0, as for the next one */
    AMP_MASK /* for aux of ReLU: 0 where y <= 0, else 1; column c: bit c % 8 of byte c / 8 of (columns + 7) / 8 a row */
} AMP_INT amp_dtype;

/* Storage types: one-member structs, so that mixing them up does not compile, nor does `+`. They have the size and
   layout of CUDA's __half and __nv_bfloat16: where the two meet, cast the pointer, (__half *)p. */
typedef struct amp_f16 { uint16_t bits; } amp_f16;
typedef struct amp_bf16 { uint16_t bits; } amp_bf16;
typedef struct amp_f8e4m3 { uint8_t bits; } amp_f8e4m3;
typedef struct amp_f8e5m2 { uint8_t bits; } amp_f8e5m2;
typedef struct amp_any16 { uint16_t bits; } amp_any16; /* FP16 or BF16, as an amp_dtype beside it says at run time */

/* An operand: an address and a format. `count` is the number of elements, if you know it; 0 means "as many as the verb
   needs". A verb refuses an operand whose count is too small. Write it amp_arr(ptr, AMP_F16). */
typedef struct amp_array {
    void *data; /* context memory; NULL: no operand */
    amp_dtype dtype;
    uint32_t flags; /* 0, or AMP_CACHE (>>policy) */
    size_t count;   /* elements, or 0 */
} amp_array;

/* Const pointers are accepted: a verb writes only to operands that its comment calls outputs. */
AMP_INLINE amp_array amp_arr(const void *data, amp_dtype dtype);
AMP_INLINE amp_array amp_arrn(const void *data, amp_dtype dtype, size_t count);

AMP_INLINE size_t amp_dtype_size(amp_dtype t);   /* bytes per element; 0 for AMP_AUTO and unknown numbers */
AMP_API const char *amp_dtype_name(amp_dtype t); /* "f32", "f16", ...; never NULL. Class: host. */
/* A number that may be left out, for fields where 0 is a valid value. AMP_ZERO means "not given"; amp_opt(x) gives x,
   which may be 0: .alpha = amp_opt(0.5f). A bare number (.alpha = 0.5f) is INVALID_ARG. */
typedef struct amp_optional {
    float value;
    uint32_t given;
} amp_optional;
AMP_INLINE amp_optional amp_opt(float x);
/* Zero every desc struct first: then each field has its default, which its comment gives. If it gives none: an enum's
   first name, a flag that is off, the number 0, no pointer, no operand. A verb that cannot work without a field
   (lr, classes, in, out, labels ...) returns INVALID_ARG, and the sentence names it. The first member `_begin` and the
   last, `_end`, stay 0; anything else means that the struct was not initialised: UNINIT. Where 0 is a useful value but
   not the default, AMP_NONE asks for 0, or for what the field's comment says. A getter that asks the device, or can
   fail, returns a status and fills *out; the others return the value. */
#define AMP_NONE      (-1)
#define AMP_BROADCAST ((size_t)-1) /* a batch stride: every batch uses the same matrix */

/* ==== >>context ================================================================================================== */

typedef struct amp_allocator { /* {0}: malloc and free (device: cudaMalloc and cudaFree). Both functions or neither */
    void *(*alloc_fn)(size_t bytes, void *user); /* aligned for any type (device: to 256 bytes); NULL: no memory */
    void (*free_fn)(void *ptr, size_t bytes, void *user);
    void *user;
} amp_allocator;

typedef enum amp_log_level { AMP_LOG_ERROR = 0, AMP_LOG_WARNING, AMP_LOG_INFO } AMP_INT amp_log_level;

typedef struct amp_logger { /* all zero: silent. fn must not call a verb; `text` is valid during the call only. */
    void (*fn)(amp_log_level level, amp_status status, const char *text, void *user);
    void *user;
} amp_logger;

typedef struct amp_ctx amp_ctx;       /* opaque: the CPU, or one CUDA stream on one GPU */
typedef struct amp_params amp_params; /* opaque: a set of parameters */
typedef struct amp_scaler amp_scaler; /* opaque: a loss scaler */
typedef struct amp_fp8 amp_fp8;       /* opaque: scales of FP8 tensors */

typedef enum amp_simd { /* CPU code paths; all give the same bits, except products without AMP_GEMM_ORDERED */
    AMP_SIMD_AUTO = 0,  /* the best that this machine runs */
    AMP_SIMD_SCALAR,    /* portable C */
    AMP_SIMD_SSE2,      /* every x86-64 */
    AMP_SIMD_AVX2,      /* AVX2 + FMA + F16C */
    AMP_SIMD_AVX512,    /* AVX-512 F, BW, DQ, VL; its BF16 where available */
    AMP_SIMD_NEON       /* every AArch64 */
} AMP_INT amp_simd;

typedef struct amp_cpu_desc {
    uint32_t _begin;
    int32_t threads;     /* the calling thread included: 1 .. 256; 0 => one per processor of this thread's affinity;
                        fewer, with a logged warning, if the system cannot start as many */
    amp_simd simd;       /* AMP_SIMD_AUTO; a path that this machine lacks returns AMP_ERR_UNSUPPORTED */
    uint32_t gemm_flags; /* AMP_GEMM_* that every product of this context gets, e.g. AMP_GEMM_ORDERED (>>products) */
    amp_allocator allocator; /* {0} => malloc / free */
    amp_logger logger;       /* {0} => silent */
    uint64_t _end;
} amp_cpu_desc;

/* amp_status amp_cpu_create(amp_ctx **out, const amp_cpu_desc *desc)
   A context on the CPU. desc NULL => all defaults. Starts threads - 1 workers, which sleep between verbs. It allocates
   2.2 MB for each; the pages become resident when that worker first works on a product.
   Errors: INVALID_ARG, UNINIT, VERSION, NO_MEMORY, UNSUPPORTED; *out is NULL then. Class: setup. Threads: safe. */
#define amp_cpu_create(out, ...) amp_cpu_create_checked((out), AMP_VERSION, sizeof(amp_cpu_desc), __VA_ARGS__)
AMP_API amp_status amp_cpu_create_checked(amp_ctx **out, int version, size_t size, const amp_cpu_desc *desc);
/* Destroys a context; destroy its params and scalers and free its memory first (committed sets, scalers and memory that
   are left are freed, and logged as a warning: do not touch them afterwards). NULL is fine. Like each *_destroy, it
   does nothing (and the context lives on) while a different thread is inside a verb of the context. Class: setup. */
AMP_API void amp_ctx_destroy(amp_ctx *ctx);
/* The sentence of the last failure, valid until the next one; "" if there was none, or for NULL. Class: host. */
AMP_API const char *amp_last_error(const amp_ctx *ctx);
/* "cpu: avx512, 2 threads" or "cuda: NVIDIA H200": the kind of backend, then what it runs on. To test which kind:
   strncmp(amp_ctx_name(ctx), "cuda", 4) == 0. Never NULL; valid as long as the context. Class: host. */
AMP_API const char *amp_ctx_name(const amp_ctx *ctx);
/* Context memory, 256-byte aligned, contents undefined; 0 bytes: NULL. `label` (at most 31 characters; NULL => "user")
   groups it in the ledger. ptr: NULL, or from amp_alloc of this context, else INVALID_ARG. Class: setup. */
AMP_API amp_status amp_alloc(amp_ctx *ctx, void **out, size_t bytes, const char *label);
AMP_API amp_status amp_free(amp_ctx *ctx, void *ptr);
/* Copies between host and context memory in any direction; overlap: undefined. Complete on return. Class: query. */
AMP_API amp_status amp_copy(amp_ctx *ctx, void *dst, const void *src, size_t bytes);
/* The same without waiting, e.g. the next minibatch of a captured step. Both areas in context memory, or one of them in
   page-locked host memory (cudaHostAlloc) that stays as it is until the copy has run. Pageable host memory: not in a
   capture, and CUDA may wait. Class: enqueue. */
AMP_API amp_status amp_copy_async(amp_ctx *ctx, void *dst, const void *src, size_t bytes);
/* Sets context memory to zero bytes. Class: enqueue. */
AMP_API amp_status amp_zero(amp_ctx *ctx, void *dst, size_t bytes);
/* Waits for everything queued on the context; reports errors that happened meanwhile. Class: query. */
AMP_API amp_status amp_sync(amp_ctx *ctx);
typedef struct amp_ledger_row { /* bytes of context memory */
    char label[32];
    uint64_t bytes; /* now */
    uint64_t peak;  /* highest so far */
} amp_ledger_row;

/* The row of `label`, if there is one; label NULL: all rows in order of first use, row 0 is "total". Writes at most cap
   rows (out NULL: none) and returns how many there are. Class: host. */
AMP_API size_t amp_ledger(const amp_ctx *ctx, amp_ledger_row *out, size_t cap, const char *label);

/* ==== >>formats ==================================================================================================
   Scalar conversions: inline, pure, integer-only, usable in device code. Every faster path equals them. From float or
   double, rounded once to nearest even. _sat: what is beyond the range becomes the largest finite number instead of Inf
   or NaN. _sr: stochastic, with r uniform in [0, 2^32), e.g. from amp_random(). To float: exact. */

AMP_INLINE amp_f16 amp_f16_from_f32(float x);
AMP_INLINE amp_bf16 amp_bf16_from_f32(float x);
AMP_INLINE amp_f8e4m3 amp_f8e4m3_from_f32(float x);
AMP_INLINE amp_f8e5m2 amp_f8e5m2_from_f32(float x);
AMP_INLINE amp_f8e4m3 amp_f8e4m3_from_f32_sat(float x);
AMP_INLINE amp_f8e5m2 amp_f8e5m2_from_f32_sat(float x);
AMP_INLINE amp_f16 amp_f16_from_f32_sr(float x, uint32_t r);
AMP_INLINE amp_bf16 amp_bf16_from_f32_sr(float x, uint32_t r);
AMP_INLINE amp_f8e4m3 amp_f8e4m3_from_f32_sr(float x, uint32_t r);
AMP_INLINE amp_f8e5m2 amp_f8e5m2_from_f32_sr(float x, uint32_t r);
AMP_INLINE amp_f16 amp_f16_from_f64(double x);
AMP_INLINE amp_bf16 amp_bf16_from_f64(double x);
AMP_INLINE float amp_f32_from_f16(amp_f16 h);
AMP_INLINE float amp_f32_from_bf16(amp_bf16 h);
AMP_INLINE float amp_f32_from_f8e4m3(amp_f8e4m3 h);
AMP_INLINE float amp_f32_from_f8e5m2(amp_f8e5m2 h);
/* Element i of an array of any dtype but AMP_F64; store rounds to nearest even. Any address on the host; on a device
   one that is aligned to the element. They are for a few elements. For whole rows of 16-bit numbers, amp_cast the row
   to float scratch and back, which is several times faster (make bench prints both; F16 is faster with -mf16c). */
AMP_INLINE float amp_load(const void *data, amp_dtype t, size_t i);
AMP_INLINE void amp_store(void *data, amp_dtype t, size_t i, float x);
/* Is x neither Inf nor NaN? Is it NaN? They test the bits: right under -ffast-math, too, unlike isfinite(). */
AMP_INLINE int amp_is_finite(float x);
AMP_INLINE int amp_is_nan(float x);
/* How a number is narrowed. With saturation, finite numbers and Inf beyond the range become the largest finite one
   (OCP's rule); NaN stays NaN. Without, they become Inf, or NaN in E4M3, which has no Inf. */
typedef enum amp_rounding { AMP_NEAREST = 0, AMP_STOCHASTIC } AMP_INT amp_rounding;

/* Counter-based random numbers: the same (seed, stream, counter) gives the same numbers on every backend, in any order.
   Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). amp_random() is word
   index % 4 of block index / 4: one 32-bit number per element. */
AMP_INLINE void amp_philox(uint32_t out[4], uint64_t seed, uint64_t stream, uint64_t counter);
AMP_INLINE uint32_t amp_random(uint64_t seed, uint64_t stream, uint64_t index);

/* ==== >>arrays =================================================================================================== */

typedef struct amp_cast_desc {
    uint32_t _begin;
    amp_rounding rounding; /* AMP_NEAREST; AMP_STOCHASTIC draws amp_random(seed, stream, offset + i) for element i */
    uint64_t seed, stream, offset;
    uint32_t saturate; /* 1: see amp_rounding */
    uint32_t flags;    /* 0 */
    uint64_t _end;
} amp_cast_desc;

/* dst[i] = src[i] for count elements (0 is fine), rounded once; equal dtypes: bits copied. desc NULL: to nearest even.
   AMP_F64 to AMP_F32: AMP_NEAREST only; to other formats both.
   dst == src is allowed if both have the same element size; any other overlap returns INVALID_ARG. Class: enqueue.
   Numerics: bit contract in any rounding mode. */
AMP_API amp_status amp_cast(amp_ctx *ctx, amp_array dst, amp_array src, size_t count, const amp_cast_desc *desc);

typedef struct amp_finite_report {
    uint64_t nan, inf;  /* how many elements */
    size_t first_array; /* where the first of them is; only meaningful when nan + inf > 0 */
    size_t first_index;
} amp_finite_report;

/* Counts Inf and NaN in n_arrays arrays, doubles included. Give each its count; 0, or {NULL}, is an empty array.
   Returns AMP_OK whether or not it finds any. Class: query. Numerics: exact, same bits in any mode. */
AMP_API amp_status amp_all_finite(amp_ctx *ctx, amp_finite_report *report, const amp_array *arrays, size_t n_arrays);

typedef struct amp_histogram {
    uint64_t total, zero, inf, nan;
    uint64_t pow2[256]; /* [e]: finite |x| in [2^(e-127), 2^(e-126)); [0]: nonzero |x| < 2^-126; [255]: unused */
    float amax;         /* largest finite |x|, 0 if none */
    uint32_t _pad;
} amp_histogram;

/* Exponent histogram over n_arrays arrays together. Class: query. Numerics: exact, same bits in any mode. */
AMP_API amp_status amp_histogram_count(amp_ctx *ctx, amp_histogram *out, const amp_array *arrays, size_t n_arrays);
/* Adds the counts of `more`, e.g. over many steps; amax becomes the larger one. Class: host. */
AMP_API void amp_histogram_add(amp_histogram *sum, const amp_histogram *more);
/* What happens to nonzero finite numbers that are scaled and rounded to nearest in a dtype: shares, 0 .. 1. */
typedef struct amp_fates {
    double lost, subnormal; /* become 0; become subnormal and so lose bits */
    double overflow;        /* Inf, or the largest number; a bin that straddles the limit counts as not overflowing */
} amp_fates;
/* The fates of a histogram's numbers, scale > 0. Counted per bin: exact for power-of-two scales, but for FP32's
   subnormals, one bin; half the smallest subnormal counts as kept. All 0 if there is nothing to count. Class: host. */
AMP_API amp_fates amp_histogram_fates(const amp_histogram *h, amp_dtype dtype, float scale);
/* The largest power of two in [2^-14, 2^100] that keeps amax * scale <= 65504 / 2; 65536 if amax is 0. Class: host. */
AMP_API float amp_histogram_suggest_scale(const amp_histogram *h);

/* ==== >>params ===================================================================================================
   A set holds, for each parameter: the FP32 master weight, a model copy in the model's dtype (which products read), a
   gradient, and the optimizer's moments. Arrays are yours ("adopted") or the set's ("owned"), in any mix. Owned arrays
   of one kind lie in one block, in order, each padded with zeros to 256 bytes: one call all-reduces all gradients of
   one dtype, if all are owned. */

/* How the weights of a 16-bit model copy are kept; the update rule is the same for all. */
typedef enum amp_master {
    AMP_MASTER_F32 = 0, /* FP32 master weights */
    AMP_MASTER_NONE,    /* only the model copy. Loses small updates: for comparison, or BF16 with .stochastic steps */
    AMP_MASTER_SPLIT,   /* the model copy is the top of the master, 16 more bits hold the rest: see amp_split_pack */
    AMP_MASTER_KAHAN,   /* BF16: the copy + a BF16 number, compensated summation: about 16 bits, for comparison */
    AMP_MASTER_SPLIT8   /* SPLIT with 8 bits: amp_split8_pack, docs/memory.md. FP16: |w| > 65519.875 may overflow */
} AMP_INT amp_master;
typedef enum amp_optimizer { AMP_ADAMW = 0, AMP_ADAM, AMP_SGD, AMP_LION, AMP_OPTIMIZER_COUNT } AMP_INT amp_optimizer;

typedef struct amp_params_desc {
    uint32_t _begin;
    amp_dtype model; /* AMP_AUTO => AMP_F16; also AMP_BF16, AMP_F32 (then the master is the model copy) */
    amp_dtype grad;  /* AMP_AUTO => the model's dtype */
    amp_master master;
    int32_t moments;  /* moment arrays kept: 0 => 2 (Adam, AdamW); 1: Lion, SGD with momentum; AMP_NONE for none */
    amp_dtype moment; /* AMP_AUTO => AMP_F32; AMP_BF16, AMP_MOMENT_8BIT: less memory, always rounded stochastically */
    uint32_t accumulate; /* 1: FP32 accumulators for amp_accumulate */
    uint32_t flags;      /* 0 */
    const char *label;   /* of the ledger's rows label.master, .model, .grad ...; at most 23 chars; NULL => "params" */
    uint64_t _end;
} amp_params_desc;

/* amp_status amp_params_create(amp_params **out, amp_ctx *ctx, const amp_params_desc *desc)
   An empty set. desc NULL => defaults. Class: setup. */
#define amp_params_create(out, ctx, ...) \
    amp_params_create_checked((out), (ctx), AMP_VERSION, sizeof(amp_params_desc), __VA_ARGS__)
AMP_API amp_status amp_params_create_checked(
    amp_params **out, amp_ctx *ctx, int version, size_t size, const amp_params_desc *desc);

typedef struct amp_param_desc {
    uint32_t _begin;
    uint32_t keep_f32; /* 1: model copy and gradient stay FP32 (norms, biases); the master is the model copy then */
    const char *name;  /* copied; unique in the set; NULL => "0", "1", ... by index */
    size_t count;      /* elements; 0 => rows * cols */
    size_t rows, cols; /* for optimizers that need a shape; 0, 0 => 1 x count; else rows * cols == count */
    const float *init; /* host array of count floats, copied at once; NULL => zeros, or what adopted arrays hold. Large
                          sets: NULL, and amp_param_write after commit; with FP32 masters it copies once */
    float *master;     /* adopted context memory: holds the weights unless init is given. NULL: owned */
    amp_array model;   /* adopted: gives the weights without init and master; dtype as the set's. data NULL: owned */
    amp_array grad;    /* adopted: any dtype, AMP_AUTO => the set's. data NULL: owned */
    uint32_t no_decay; /* 1: weight decay does not apply */
    uint32_t group;    /* 0 .. AMP_GROUPS - 1: whose hyper-parameters it takes, see amp_step_desc.groups */
    uint64_t _end;
} amp_param_desc;

/* Adds a parameter; its index is the number of parameters added before it. Adopted arrays stay yours.
   Errors: INVALID_ARG (no elements, name twice, dtype; a weight that FP16 under SPLIT, SPLIT8 cannot hold: NaN, |w| >=
   65520, 65519.9375), STAGE after commit, NO_MEMORY; nothing is added then. Class: setup. */
AMP_API amp_status amp_params_add(amp_params *p, const amp_param_desc *desc);
/* Allocates owned arrays, fills masters and model copies (rounded; beyond FP16: Inf), and zeroes owned gradients and
   moments. If it fails, nothing is allocated, and you may try again. INVALID_ARG: adopted arrays overlap. Tied weights
   are one parameter used twice: the second backward adds to its gradient (accumulate, or beta 1). Class: setup. */
AMP_API amp_status amp_params_commit(amp_params *p);
/* Adopted arrays are left alone. NULL is fine. Class: setup. */
AMP_API void amp_params_destroy(amp_params *p);

typedef struct amp_param { /* arrays have count elements; data NULL: the layout has no such array */
    const char *name;      /* valid as long as the set */
    size_t rows, cols, count;
    amp_array model;           /* what products read */
    amp_array grad;            /* see amp_params_desc.grad */
    amp_array master;          /* FP32 weights; an FP32 model copy is the same array */
    amp_array low;             /* remainders (as patterns: SPLIT's of BF16, SPLIT8's of F8E4M3), or compensations */
    amp_array accum;           /* FP32 accumulators */
    amp_array moment[2];       /* momentum or first moment, second moment; of AMP_MOMENT_8BIT a byte per element */
    amp_array moment_scale[2]; /* of AMP_MOMENT_8BIT: FP32, one per 256 elements: see amp_moment_load */
} amp_param;

/* Parameter i; all zero past the end; no arrays before commit. find: index, or amp_params_count(p). Class: host. */
AMP_API amp_param amp_param_get(const amp_params *p, size_t i);
AMP_API amp_array amp_param_model(const amp_params *p, size_t i);
AMP_API amp_array amp_param_grad(const amp_params *p, size_t i);
AMP_API size_t amp_params_count(const amp_params *p);
AMP_API size_t amp_params_find(const amp_params *p, const char *name);
/* The weights of parameter i as floats, whatever the layout; host arrays of its count. Write renews the model copy too,
   not the moments; INVALID_ARG for a weight that SPLIT, SPLIT8 cannot hold (amp_params_add). Class: query. */
AMP_API amp_status amp_param_read(const amp_params *p, size_t i, float *dst);
AMP_API amp_status amp_param_write(amp_params *p, size_t i, const float *src);
/* For all parameters. master_to_model: after you changed FP32 masters. model_to_master: after you changed model copies
   (moments stay; low parts are forgotten). grads_to: dst[i] = gradient i in dst[i].dtype; dst[i].data NULL is skipped;
   n = number of parameters. zero_grad: gradients = 0. Class: enqueue. Numerics: to nearest even. */
AMP_API amp_status amp_params_master_to_model(amp_params *p);
AMP_API amp_status amp_params_model_to_master(amp_params *p);
AMP_API amp_status amp_params_grads_to(amp_params *p, const amp_array *dst, size_t n);
AMP_API amp_status amp_params_zero_grad(amp_params *p);
/* Which parameters have a gradient (PyTorch: not None) from now on: used[i], one per parameter; NULL: all, as after
   commit. The others take no part in steps, checks, norms and clipping: their weights and moments stay, without decay.
   The step count is the set's. Only SGD counts its first step for each parameter, and again if its momentum is all 0
   when it comes back into use. INVALID_ARG if none is used. STAGE between unscale and update and inside an accumulation
   window (there, set the gradient to 0). A graph captured before must not be launched any more. Class: setup. */
AMP_API amp_status amp_params_use(amp_params *p, const uint8_t *used);
/* Sets the number of steps taken, for a run that began elsewhere: Adam's t continues from it, and SGD's buffers count
   as filled unless steps is 0. The rest of the record is as after commit. Class: query. */
AMP_API amp_status amp_params_set_steps(amp_params *p, uint64_t steps);

/* ==== >>scaler ===================================================================================================
   Multiply the loss (in practice: the gradient of the logits) by the scale, so that small FP16 gradients survive;
   gradients are divided by it before use. If they overflowed, the step is skipped and the scale backs off. After
   growth_interval good steps in a row it grows. The rule is PyTorch's, without its pitfalls: see docs/semantics.md.
   NULL means a scaler that is OFF, in every function and every desc, so that one loop serves FP16 and BF16. Two
   functions refuse it: amp_scaler_configure, and amp_unscale with a dst, which gets its context from the scaler. */

typedef enum amp_scaler_mode {
    AMP_SCALER_DYNAMIC = 0,
    AMP_SCALER_STATIC, /* the scale changes only by amp_scaler_set_scale; overflowing steps are still skipped */
    AMP_SCALER_OFF     /* as if there were no scaler: scale 1, nothing tested, every step taken. Same as passing NULL */
} AMP_INT amp_scaler_mode;

typedef struct amp_scaler_desc {
    uint32_t _begin;
    amp_scaler_mode mode;
    float scale;             /* initial scale: 0 => 65536 */
    float growth_factor;     /* 0 => 2; else > 1 */
    float backoff_factor;    /* 0 => 0.5; else in (0, 1) */
    int32_t growth_interval; /* 0 => 2000 good updates in a row; AMP_NONE => never grows */
    int32_t hysteresis;      /* 0 => 1: overflows in a row before the scale backs off (Apex's rule) */
    float min_scale;         /* floor of backing off: 0 => 1, or the initial scale if that is smaller */
    float max_scale;         /* ceiling of growing: 0 => none (a growth to Inf is refused) */
    uint32_t dead_after;     /* 0 => 10: overflows in a row at the lowest scale => "dead" */
    uint32_t no_check;       /* 1: overflow is not looked for and never skips (static loss scale of Apex) */
    uint32_t flags;          /* 0 */
    uint64_t _end;
} amp_scaler_desc;

/* amp_status amp_scaler_create(amp_scaler **out, amp_ctx *ctx, const amp_scaler_desc *desc)
   desc NULL => defaults. A scale that is not finite and > 0, or whose reciprocal is not finite (scale <= 2^-128), is
   refused, as are factors outside their range, min_scale above scale, max_scale below it. Class: setup. */
#define amp_scaler_create(out, ctx, ...) \
    amp_scaler_create_checked((out), (ctx), AMP_VERSION, sizeof(amp_scaler_desc), __VA_ARGS__)
AMP_API amp_status amp_scaler_create_checked(
    amp_scaler **out, amp_ctx *ctx, int version, size_t size, const amp_scaler_desc *desc);
AMP_API void amp_scaler_destroy(amp_scaler *s); /* NULL is fine. Class: setup */
/* The number to multiply a loss by, and its reciprocal (for amp_gemm_desc.alpha_ptr: the product then leaves unscaled
   gradients). They are in context memory, always current, and valid until the scaler is destroyed. For a NULL scaler
   both return NULL, and every field for such a pointer reads that as 1. In a kernel of yours: scale = scale_ptr ?
   *scale_ptr : 1. Class: host. */
AMP_API const float *amp_scaler_scale_ptr(const amp_scaler *s);
AMP_API const float *amp_scaler_inverse_ptr(const amp_scaler *s);

typedef struct amp_scaler_info {
    float scale;
    int32_t growth_tracker;     /* good updates in a row since the scale last changed */
    int32_t hysteresis_tracker; /* overflows left before a backoff; may be negative, as in Apex */
    uint32_t dead; /* 1: dead_after overflows in a row could not lower the scale: this run no longer learns */
    uint64_t good, bad, bad_in_a_row;        /* updates without and with overflow */
    uint64_t bad_nan, bad_inf, bad_overflow; /* NaN seen; Inf seen; finite, but not after unscaling: any of them */
} amp_scaler_info;
/* The state of s; of NULL: that of a scaler that is off (scale 1). Class: query. */
AMP_API amp_status amp_scaler_get(amp_scaler *s, amp_scaler_info *out);
/* Sets the scale by hand, as PyTorch's update(new_scale): all sets start anew, what was found is forgotten, and the
   growth tracker stays. Refuses what create refuses. Lowers the floor or raises the ceiling if needed. OFF: the scale
   is for the mode after it. Class: query. */
AMP_API amp_status amp_scaler_set_scale(amp_scaler *s, float scale);
/* Sets what amp_scaler_get gives. Get it, change what you know (PyTorch's state_dict: scale and _growth_tracker),
   and set it. Otherwise as set_scale. dead = 0 also forgets the overflows that led to it. OFF: nothing. Class: query.
   */
AMP_API amp_status amp_scaler_set(amp_scaler *s, const amp_scaler_info *info);
/* Replaces the rule; keeps scale, trackers and counters. desc->scale must be 0. OFF: the scale is 1 until another mode
   restores the previous one (of a scaler that began OFF: create's); to OFF and back, all sets start anew, and STAGE
   inside an accumulation window. Class: query. */
AMP_API amp_status amp_scaler_configure(amp_scaler *s, const amp_scaler_desc *desc);
/* The verbs in PyTorch's order. Each parameter set goes through READY -> UNSCALED -> STEPPED on its own;
   amp_scaler_update starts the next iteration for all sets of the scaler. That is host state, checked when the verb is
   called, not when it runs; a verb out of order returns STAGE. A scaler and its sets may be destroyed in any order.

   amp_scaler_unscale: every gradient g becomes g / scale, in place, computed in FP32 and rounded to g's dtype; Inf, NaN
   and finite numbers that overflow in the multiplication are recorded for the set's next update and for the scaler.
   Optional: an update does it by itself, without writing. STAGE when the set is already unscaled or stepped. OFF:
   nothing. Class: enqueue. */
AMP_API amp_status amp_scaler_unscale(amp_scaler *s, amp_params *p);
/* The same for n arrays outside a parameter set, for loops with their own optimizer. It may be called for several
   lists. dst[i] = grads[i] / scale, rounded to dst[i]'s dtype; dst NULL => in place, and no two overlap. For FP16
   gradients give FP32 arrays: written back as FP16, the small ones that scaling saved would be lost again. Skip your
   update if the report's nan + inf > 0 (overflow in the division counts as inf). Class: enqueue if report is NULL, else
   query. */
AMP_API amp_status amp_unscale(
    amp_scaler *s, const amp_array *dst, amp_finite_report *report, const amp_array *grads, size_t n);
/* The next loss scale, from everything checked since the last update; all sets are READY again. STAGE when nothing was
   checked, or while a window holds the scale. OFF: nothing. Class: enqueue. */
AMP_API amp_status amp_scaler_update(amp_scaler *s);

/* ==== >>step =====================================================================================================
   u = clip(g / scale), computed as two FP32 multiplications, then
     SGD    u += wd*w;  buf = first step ? u : momentum*buf + (1-dampening)*u;  w -= lr*buf
            (nesterov: w -= lr * (u + momentum*buf))
     Adam   u += wd*w;  m = b1*m + (1-b1)*u;  v = b2*v + (1-b2)*(u*u); w -= (lr/bc1) * (m / (sqrt(v)/sqrt(bc2) + eps))
     AdamW  w *= 1 - lr*wd, then as Adam without the first term          (bc = 1 - beta^t; t counts taken steps only)
     Lion   w *= 1 - lr*wd;  w -= lr * sign(b1*m + (1-b1)*u);  m = b2*m + (1-b2)*u     (b2 0.99; arXiv 2302.06675)
   Each operation is rounded to FP32 on its own, without fused multiply-add; bc1, bc2, lr/bc1 and 1/sqrt(bc2) are
   computed once per step in double, powers by repeated squaring. They are torch.optim's; Lion is the paper's. */

#define AMP_GROUPS 8 /* parameter groups with hyper-parameters of their own */

typedef struct amp_group {     /* the hyper-parameters of a parameter group; defaults as in amp_step_desc */
    float lr;                  /* learning rate, > 0; AMP_NONE: a rate of 0. Needed unless lr_ptr is given */
    amp_optional beta1, beta2; /* not given => 0.9, 0.999, or what the formula says */
    amp_optional eps;          /* not given => 1e-8; 0: 2^-100, so that a weight without gradients stays */
    float weight_decay;        /* 0 => none; applies to parameters without no_decay */
    float momentum, dampening; /* SGD; 0 => none */
    const float *lr_ptr; /* context memory, read when the step runs (so a captured graph follows it; Inf and NaN skip
                            the step: AMP_SKIPPED_RATE); NULL => lr */
} amp_group;

typedef struct amp_totals { /* what an inspection adds up, in context memory */
    double sum;             /* of squares of unscaled gradients */
    uint64_t nan, inf, overflow;
    uint64_t first_index; /* the first bad element of this set, and its parameter: not to be added up */
    uint32_t first_param, _pad;
} amp_totals;

typedef struct amp_step_desc {
    uint32_t _begin;
    amp_optimizer optimizer; /* 0 => AMP_ADAMW */
    float lr;                /* of group 0, as in amp_group; so are the fields down to momentum, and lr_ptr */
    amp_optional beta1, beta2, eps;
    float weight_decay;
    float momentum, dampening;
    uint32_t nesterov; /* SGD; 1 needs momentum > 0 and dampening 0 (in every group) */
    float clip_norm;   /* 0 => off; else gradients times min(1, clip_norm / (norm + 1e-6)), norm over the whole set. The
                          factor is 0 if one is Inf or NaN and the step is taken anyway (no scaler, or no_check) */
    float clip_value;  /* 0 => off; else clamp each then to [-clip_value, clip_value] */
    uint32_t stochastic; /* 1: model copies (SPLIT8: weights) are rounded stochastically: amp_random(seed, (step << 24)
                            + parameter, element). BF16 moments always: seed + 1, + 2; 8-bit: + 1. Not SPLIT, KAHAN */
    uint32_t micro_batches; /* 0 => 1; N: the gradients are sums of N micro-batches, divide them by scale * N */
    uint32_t unscaled;      /* 1: the gradients carry no loss scale (amp_scaler_inverse_ptr); they are still checked */
    uint32_t n_groups;      /* groups[0] is group 1, and so on; at most AMP_GROUPS - 1. Other groups are as group 0 */
    uint32_t count_lost;    /* N: count updates, and those that change no bit, in 1 of N blocks of 1024; 0: no */
    uint64_t seed;
    const float *lr_ptr;     /* of group 0 */
    const amp_group *groups; /* host array, read when the verb is called */
    /* For several devices. reduce_grads_fn is called before the gradients are read: sum the scaled gradients over the
       ranks there (Inf and NaN stay; STAGE if they were unscaled or accumulated). reduce_totals_fn is called between
       the sums and what is computed from them: for sharded sets, add up sum, nan, inf and overflow of *totals over the
       ranks (with a scaler: STAGE likewise). Both are called while the verb enqueues, on its thread, must queue their
       work on the context's stream, and may call verbs of this context that neither change the set nor measure its
       gradients. If one fails, so does the verb, without a step. */
    amp_status (*reduce_grads_fn)(amp_ctx *ctx, amp_params *p, void *user);
    amp_status (*reduce_totals_fn)(amp_ctx *ctx, amp_totals *totals, void *user);
    void *user;
    uint64_t _end;
} amp_step_desc;

/* One step of one set with one scaler: check, norm, clip, unscale, update, model copies, next loss scale. If a
   gradient, or its unscaled product, is not finite, only the scaler and the counters change. s NULL or OFF: no check,
   every step is taken. Gradients are only read. FP32 gradients: the same bits as the separate verbs in a row. 16-bit
   gradients: more accurate, because amp_scaler_unscale and amp_clip round what they write. The set may be UNSCALED
   by s: then gradients are taken as they are. STAGE: not committed, no parameters, or stepped since the last update.
   With several sets of one scaler call amp_update on each, then amp_scaler_update once: the scale must not move before
   all their gradients have been used. Class: enqueue. */
AMP_API amp_status amp_step(amp_params *p, amp_scaler *s, const amp_step_desc *desc);
/* amp_step without the next loss scale. One scaler may serve several sets, each skipping on its own. Class: enqueue. */
AMP_API amp_status amp_update(amp_params *p, amp_scaler *s, const amp_step_desc *desc);
/* Gradient accumulation over a window of micro-batches, in one of two ways.
   Scaled: let the products add to the gradients (amp_linear_desc.accumulate), call only amp_step at the end, with
   .micro_batches = how many there were, then amp_params_zero_grad. amp_window_begin makes a mistake visible: until the
   set's next step or amp_window_end, changing the scale of s returns STAGE.
   Unscaled (amp_params_desc.accumulate): after each micro-batch amp_accumulate adds g / scale to FP32 accumulators; the
   scale may move between them (amp_scaler_update). The next step uses the accumulators instead of the gradients,
   divided by the number of micro-batches in them or by .micro_batches (1 for the sum), and writes zeros to them. A
   micro-batch that is not finite: with keep_going = 1 it is dropped and the others are averaged; with 0 the window is
   lost. The step of a window that is lost or has none left is skipped. Class: enqueue. */
AMP_API amp_status amp_accumulate(amp_params *p, amp_scaler *s, uint32_t keep_going);
AMP_API amp_status amp_window_begin(amp_params *p, amp_scaler *s); /* Class: host */
AMP_API amp_status amp_window_end(amp_params *p);                  /* Class: host */

/* The first half of a step, for an optimizer of your own: check, norm, clip coefficient, step count and rates go to the
   set's record. Then run your update, then amp_scaler_update. It ends a window whose sums stay: amp_apply makes them 0,
   in a skipped step, too; without it do so yourself (amp_zero of each .accum). Class: enqueue. */
AMP_API amp_status amp_inspect(amp_params *p, amp_scaler *s, const amp_step_desc *desc);
/* The other half. u is an update computed elsewhere (FP32, one number per weight of parameter i). It is applied as ours
   are: not in a skipped step, in the set's layout, rounded and checked for overflow. It may be the set's gradient or
   accumulators, but overlaps nothing else of the parameter. with_rates 0: w = w - u; 1:
   w = w * (1 - lr*wd) - lr * u, with the rates of the parameter's group. Once for each parameter (not checked),
   after amp_inspect and before amp_scaler_update (else STAGE). Class: enqueue. */
AMP_API amp_status amp_apply(amp_params *p, size_t i, amp_array u, uint32_t with_rates);
/* L2 norm of the set's gradients as one vector, in unscaled terms (divided by the scale while the set is READY and s is
   given), of accumulated ones that of their sum: finite if and only if every gradient is. Class: query. */
AMP_API amp_status amp_grad_norm(amp_params *p, amp_scaler *s, double *norm);
/* Clips the gradients in place, in unscaled terms as above: by norm as clip_norm above (not if the norm is not finite),
   then each to [-max_value, max_value] (NaN stays NaN); 0 => off; one must be > 0. Class: enqueue. */
AMP_API amp_status amp_clip(amp_params *p, amp_scaler *s, float max_norm, float max_value);

typedef enum amp_outcome {
    AMP_NO_STEP = 0, /* none so far */
    AMP_STEPPED,
    AMP_SKIPPED_INF,      /* a gradient was Inf (and none NaN) */
    AMP_SKIPPED_NAN,      /* a gradient was NaN */
    AMP_SKIPPED_OVERFLOW, /* gradients finite, but one is not after division by the scale */
    AMP_SKIPPED_WINDOW,   /* an accumulation window that was lost, or all of whose micro-batches were dropped */
    AMP_SKIPPED_RATE      /* gradients were good, but a learning rate at an lr_ptr was Inf or NaN */
} AMP_INT amp_outcome;
AMP_API const char *amp_outcome_name(amp_outcome o); /* "stepped", "skipped: inf", ...; never NULL. Class: host. */
/* lr; lr/bc1; 1 - lr*weight_decay; 1/sqrt(bc2) */
typedef struct amp_rates { float lr, step_size, decay, rsqrt_bc2; } amp_rates;

/* What the last inspection of a set found; also the record that kernels read. */
typedef struct amp_step_record {
    float inv_scale; /* gradients were read as g * inv_scale ... */
    float clip;      /* ... * clip */
    uint32_t skip;   /* 1: an update must change nothing */
    amp_outcome outcome;
    uint64_t nan, inf, overflow; /* elements */
    uint64_t first_index;        /* the first bad element, of parameter first_param; meaningful when skipped */
    uint32_t first_param;
    float scale; /* loss scale of these gradients */
    double norm; /* of the unscaled gradients before clipping; -1 if it was not computed (no scaler and no clip_norm) */
    uint64_t steps, skipped;          /* taken and skipped so far: steps is Adam's t */
    uint32_t window_good, window_bad; /* micro-batches accumulated into the open window, and dropped from it */
    uint32_t window_lost;             /* 1: a bad micro-batch spoilt the whole window */
    uint32_t weight_overflow; /* 1: an update gave a weight that its 16-bit copy cannot hold (it became Inf). Stays 1 */
    uint64_t seed;            /* of the step: how its update rounds, and (stochastic) whether model copies, too */
    uint32_t stochastic, moment_overflow; /* 1: Adam's v is Inf, by a gradient above 1.8e19: no more updates. Stays 1 */
    amp_rates rate[AMP_GROUPS];
} amp_step_record;

/* The record of the set's last inspection that has finished; if a GPU is just writing it, what the previous call gave.
   Never waits: after amp_sync it is the record of the last step enqueued. Class: host. */
AMP_API amp_status amp_step_poll(amp_params *p, amp_step_record *out);
/* Its address in context memory, for kernels of your own optimizer. Class: host. */
AMP_API const amp_step_record *amp_step_record_ptr(const amp_params *p);

typedef struct amp_report_row {      /* what precision does to a run: docs/doctor.md */
    const char *name;                /* of the parameter, whose gradient it is about, or of your array */
    amp_histogram values;            /* as they are: a gradient with its loss scale */
    amp_fates fate[AMP_DTYPE_COUNT]; /* of these values in each format */
    uint64_t updates, lost;          /* of the last step that counted them: see count_lost */
    float ratio;       /* largest |update| / spacing of its weight (F32, SPLIT: FP32's; KAHAN: 16 bits'); huge at 0 */
    int32_t low, high; /* nonzero values are in [2^low, 2^(high + 1)); low -127: also subnormals; 1, 0: no values */
    char advice[140];  /* where there is a problem one sentence, else "" */
} amp_report_row;
/* rows[0]: all parameters; then each (no values if not in use), then arrays[k] as names[k]; cap >= 1 + parameters + n.
   Reads and waits for each gradient: call it every thousandth step. Class: query. Numerics: exact. */
AMP_API amp_status amp_report(amp_params *p, amp_scaler *s, amp_report_row *rows, size_t cap, const amp_array *arrays,
    const char *const *names, size_t n);
/* n rows as a table, advice below it. Like snprintf it returns the length; text NULL: only that. Class: host. */
AMP_API size_t amp_report_text(char *text, size_t bytes, const amp_report_row *rows, size_t n);
typedef struct amp_watch {   /* yours, zero to begin with */
    uint32_t on, seen;       /* on 0, or w NULL: class host, does nothing; 1: query. seen: arrays looked at */
    const char *where;       /* name of the first bad array, after which nothing is looked at; NULL: none so far */
    amp_finite_report found; /* in it */
} amp_watch;
/* Looks for Inf and NaN in a. Call it after each verb of a repeated step: docs/doctor.md. Class: query, or host. */
AMP_API amp_status amp_watch_array(amp_ctx *ctx, amp_watch *w, const char *name, amp_array a);

/* ==== >>policy ===================================================================================================
   Automatic mixed precision: between amp_autocast_begin and _end verbs choose dtypes by themselves, and the FP32
   program stays as it is. The levels of Apex, PyTorch and MindSpore (O0..O3 ...) and the tables that say which
   operation gets which precision come after the API: >>levels, >>operations, docs/policy.md. */

typedef uint32_t amp_op; /* AMP_OP_LINEAR, AMP_OP_MATMUL, ...: >>operations */

typedef struct amp_policy amp_policy; /* a level (O0..O3, PyTorch, MindSpore) with its lists: >>levels */

/* In a scope amp_gemm and amp_linear_forward cast operands as the policy says. An output whose dtype is AMP_AUTO gets
   the dtype that the policy chooses: its memory must have room for 4 bytes per element (or for what amp_policy_output
   says), and the choice is returned (amp_gemm_desc.d_dtype, amp_linear_desc.record). An explicit output dtype is always
   obeyed. Outside a scope, and in a disabled region, nothing is cast, and AMP_AUTO is the dtype of the first input. FP8
   operands are never cast; a bias is read as it is, or from its model copy. Backward does what its layer's record says.
   If a parameter's model copy has the wanted dtype, it is used without a cast. FP32 parameters, and arrays with
   AMP_CACHE in flags, are cast once and kept until the outermost end, or until their set steps. The cast of an array
   that no set owns is kept for one iteration: until amp_scaler_update, a step of any set, or a forward after an
   amp_linear_backward or amp_linear_cross_entropy that read it for dx. Everything else is cast for one call. */

#define AMP_AUTOCAST_DEPTH 16                /* regions that can be open at a time */
#define AMP_AUTOCAST_SPARE ((size_t)1 << 20) /* bytes of the first arena for copies of one call */
#define AMP_CACHE          0x100u            /* amp_array.flags: an FP32 weight whose cast may be kept */

typedef struct amp_autocast_desc { /* "outer": of the surrounding region; without one, on and as AMP_PRESET_AMP */
    uint32_t _begin;
    uint32_t disabled;        /* 1: nothing is cast in this region, as in an outermost one of a disabled policy */
    const amp_policy *policy; /* copied; NULL => outer */
    amp_dtype low;            /* AMP_F16, AMP_BF16; AMP_AUTO => the policy's, if one is given, or outer */
    amp_dtype pin;            /* dtype that every operation of the region gets (to_float); AMP_AUTO => by the lists */
    uint32_t if_enabled;      /* 1: nothing happens unless an enabled region is open (with pin: custom_fwd's) */
    int32_t cache;            /* 0 => outer; 1 on; AMP_NONE off */
    size_t arena;   /* outermost: bytes for copies, and no more: NO_MEMORY when they are used up. 0 => room for copies
                       of the FP32 parameters and AMP_AUTOCAST_SPARE more (disabled: 0); it grows with what is needed */
    size_t entries; /* outermost: copies in the cache, one for each dtype and each capture; NO_MEMORY when they are used
                       up. 0 => one per FP32 parameter, and 64 */
    uint64_t _end;
} amp_autocast_desc;

/* Opens a region; desc NULL => defaults. An outermost begin allocates the arena (ledger label "autocast") if the
   present one is too small, and keeps it for the next scope. A verb that runs out of room there allocates
   a larger one, and the next outermost begin makes one of the size that was needed. In a capture the verb returns
   NO_MEMORY, and the sentence says how much is needed; so does amp_autocast_get (.peak). STAGE beyond
   AMP_AUTOCAST_DEPTH, CAPTURE if it had to allocate in a capture. Class: setup, or host where it need not allocate. */
AMP_API amp_status amp_autocast_begin(amp_ctx *ctx, const amp_autocast_desc *desc);
/* Closes the innermost region and drops the casts that amp_autocast_input made in it; the outermost one drops the
   cache. STAGE if none is open. Class: host. */
AMP_API amp_status amp_autocast_end(amp_ctx *ctx);
/* Frees the arena, as amp_ctx_destroy does. STAGE while a region is open. A graph captured in a scope may not be
   launched any more. Class: setup. */
AMP_API amp_status amp_autocast_release(amp_ctx *ctx);
/* For operations of your own: out[i] = in[i] as operation op wants its n inputs (n <= 8; give counts; one without data
   is skipped). It is in[i] itself, its model copy, or a cast. Read it until the end of the region (a cached one: of the
   outermost region). NO_MEMORY when a fixed arena is full. UNSUPPORTED for a banned operation, and for FP16 beside BF16
   where the widest is wanted. Class: enqueue. Numerics: to nearest even. */
AMP_API amp_status amp_autocast_input(amp_ctx *ctx, amp_array *out, amp_op op, const amp_array *in, size_t n);
/* The dtype that op's result gets here if it is AMP_AUTO; in: the dtype of its (widest) input. Class: host. */
AMP_API amp_dtype amp_autocast_output(const amp_ctx *ctx, amp_op op, amp_dtype in);
/* You changed this array (data NULL: any): its casts are made again. Verbs of amp do it for what they write, the end
   of an iteration for AMP_CACHE; call it if your loop ends otherwise (amp_gemm alone, no scaler). Class: host. */
AMP_API void amp_autocast_invalidate(amp_ctx *ctx, const void *data);
/* What a layer's forward did. You keep it beside the layer, and amp_linear_desc.record points to it. Forward writes it,
   backward reads it. The next layer's .from may point to it: then its x (or its logits) may be AMP_AUTO. */
typedef struct amp_precision {
    uint32_t made;  /* 1: forward has run */
    amp_dtype x;    /* dtype of x in memory */
    amp_dtype used; /* dtype in which the product read x and w */
    amp_dtype y;    /* dtype of y and aux in memory; also of dy if that is AMP_AUTO */
} amp_precision;

/* ==== >>products =================================================================================================
   Row-major, FP32 accumulation. Error of one element against the exact result of the operands as stored:
       |d - exact| <= (k + 4) * 2^-24 * (|alpha| * sum |a||b| + |beta * c| + |bias|) + half a unit in the last place
   of d. On CUDA without AMP_GEMM_ORDERED read 2^-23 for 2^-24; FP8 adds 2^-6 * |alpha| * sum |a||b| (k * 2^-13 if
   AMP_GEMM_FAST_FP8; random terms: 2^-11). There, if d has 16 bits, these are rounded to d's dtype first: a bias of a
   different dtype; the value that backward multiplies by act'; the value before an act other than ReLU (GELU: on some
   GPUs); the sums before c or a bias (on some GPUs), or a bias_per_row. With sum_batches k is that of all batches. Any
   thread count gives the same bits. Other SIMD paths and devices agree within the bound, to the bit in ordered mode.
   Inf and NaN propagate (Inf saturates in an FP8 d). a and b have one dtype (FP8 formats may mix); c has d's dtype. */

/* GELU: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as in GPT-2; GELU_ERF: x Phi(x), PyTorch's default; SILU: x
   sigmoid(x). Largest errors in FP32, of the value and of the derivative: GELU 2.5e-7 |x| and 3e-7 (6e-6 and 4e-5 in a
   16-bit product on CUDA); GELU_ERF 3.5e-7 |x| and 3.5e-7; SILU 3e-7 |x| and 3e-7; TANH and SIGMOID 2.5e-7 |y| +
   2^-126, and 1.5e-7 from y as it is stored. */
typedef enum amp_act {
    AMP_ACT_NONE = 0,
    AMP_RELU,
    AMP_GELU,
    AMP_GELU_ERF,
    AMP_SILU,
    AMP_TANH,
    AMP_SIGMOID,
    AMP_ACT_COUNT
} AMP_INT amp_act;

/* Flags of amp_gemm_desc and amp_linear_desc, or of all products of a context (its desc's gemm_flags). The first four
   are permissions: ignored where there is no faster way, and beside AMP_GEMM_ORDERED. AMP_GEMM_ORDERED uses no Tensor
   Cores on CUDA. On the CPU most products take as long with it as without. Those of at most 4 rows take up to 5 times
   as long; those of F32 on AMP_SIMD_SCALAR and _SSE2, which lack fused multiply-add, 11 times (make bench-gemm). */
#define AMP_GEMM_TF32     1u  /* F32 operands may be rounded to TF32: error 2^-11 of each; CUDA, sm_80+: Tensor Cores */
#define AMP_GEMM_REDUCED  2u  /* partial sums over k may be rounded to d's dtype: Inf in F16 from 65520 up */
#define AMP_GEMM_F16_SUM  4u  /* F16 sums: error k * 2^-11 of sum |a||b|, Inf from 65520 up; faster on GeForce */
#define AMP_GEMM_FAST_FP8 8u  /* FP8 products may be summed with fewer bits: for forward products */
#define AMP_GEMM_EMULATE  16u /* CUDA: FP8 products that cuBLASLt refuses run in a plain, slow kernel */
#define AMP_GEMM_ORDERED  32u /* sums in the order that >>numerics gives: the same bits on every device and path */

typedef struct amp_gemm_desc { /* D[m,n] = act( alpha * op(A)[m,k] * op(B)[k,n] + beta * C[m,n] + bias[n] ) */
    uint32_t _begin;
    amp_act act;
    uint32_t backward;          /* 1: the value before act times act's derivative at aux. No bias */
    uint32_t trans_a, trans_b;  /* 1: A is stored [k,m], B is stored [n,k] */
    uint32_t flags;             /* AMP_GEMM_*, or 0 */
    uint32_t bias_per_row;      /* 1: bias and dbias have m elements, one for each row of d: images, channels first */
    uint32_t sum_batches, _pad; /* sum_batches 1: all batches add up to one d = act(alpha * sum op(A) op(B) + beta * C
                                  + bias), batch after batch, each along k. On CUDA fast only if d is F32 */
    amp_dtype pin;        /* a and b are read in this dtype; AMP_AUTO => as the scope says, else as they are. The copies
                           need an arena: STAGE before the first amp_autocast_begin */
    size_t m, n, k;       /* any may be 0: m or n 0: only dbias is written, 0; k 0 gives the product 0 */
    amp_array a, b, c, d; /* c: data NULL => d; read only when beta is not 0 (NaN in it is harmless otherwise) */
    amp_array bias;       /* n elements (bias_per_row: m) of any dtype, or data NULL */
    amp_array aux; /* [m,n] with d's leading dimension and stride, or data NULL. Output: the value before act. backward:
                      input, as forward left it; for TANH, SIGMOID and ReLU forward's d. ReLU: both may be AMP_MASK */
    /* output, as many as bias, any dtype, or data NULL: sums of d's columns (bias_per_row: rows). A bias gradient if d
       is a dy; if d is a dw: amp_column_sums. Needs one d (batch 1 or sum_batches), packed */
    amp_array dbias;
    size_t lda, ldb, ldc, ldd;           /* elements between rows as stored; 0 => packed */
    size_t batch;                        /* 0 => 1 */
    size_t stride_a, stride_b, stride_c; /* elements between batches; 0 => packed, or AMP_BROADCAST */
    size_t stride_d;                     /* 0 => packed; n, with ldd = batch * n: rows of the batches alternate */
    amp_optional alpha;                  /* not given: 1. With 0 a and b are not read */
    amp_optional beta;                   /* not given: 0, or 1 beside beta_ptr. With 0 c is not read */
    const float *alpha_ptr, *beta_ptr;   /* context memory: one more factor, read when the product runs; NULL => 1.
                           If beta * *beta_ptr is 0, c has no effect, nor has NaN in it; it must still be there. An
                           *alpha_ptr of 0 is a factor like any other: NaN and Inf of a and b stay NaN */
    const float *scale_a, *scale_b;      /* context memory, FP8 a, b only: factors of their elements; NULL => 1 */
    const float *scale_d;                /* context memory, FP8 d only: d = scale_d * act(...), saturated; NULL => 1 */
    float *amax_d;      /* output in context memory, FP8 d only: largest |act(...)|, before scale_d; or NULL */
    amp_dtype *d_dtype; /* host: d's dtype is returned here. Needed when d.dtype is AMP_AUTO, else NULL is fine */
    uint64_t _end;
} amp_gemm_desc;

/* d may be c, with the same leading dimension and stride; otherwise d overlaps no input. An FP8 d saturates. FP8 on
   CUDA without AMP_GEMM_EMULATE needs sm_89+ and an algorithm of cuBLASLt. As far as is known it has: x w^T only
   (trans_a 0, trans_b 1; sm_100: any), not both E5M2, n, k, leading dimensions and strides multiples of 16 (any m), a,
   b and d aligned to 16 bytes; for an FP8 d beta 0, and no E5M2 of two E4M3; else UNSUPPORTED says why. Class: enqueue.
   */
AMP_API amp_status amp_gemm(amp_ctx *ctx, const amp_gemm_desc *desc);
/* One sentence on how amp_gemm(ctx, desc) runs, and why, into text[bytes], cut to fit; *d_dtype is set. Class: host. */
AMP_API amp_status amp_gemm_explain(amp_ctx *ctx, char *text, size_t bytes, const amp_gemm_desc *desc);
/* CUDA: times cuBLASLt's candidates for this product with a cold L2 (for which it takes memory of twice that size), and
   keeps the fastest for its shape. Outputs stay, *d_dtype is set. The CPU has nothing to choose. Class: setup. */
AMP_API amp_status amp_gemm_tune(amp_ctx *ctx, const amp_gemm_desc *desc);

typedef struct amp_linear_desc { /* one layer: fill it once, use it for forward and backward */
    uint32_t _begin;
    amp_act act;
    size_t rows, in, out; /* batch, input features, output features; rows may be 0 */
    amp_array x;          /* [rows, in] */
    amp_array w;          /* [out, in], same dtype as x */
    amp_array bias;       /* [out] or data NULL; any dtype */
    amp_array y;          /* [rows, out]  = act(x w^T + bias): forward's output */
    amp_array aux;        /* [rows, out], y's dtype: the value before act, which backward of GELU, GELU_ERF and SILU
                             reads (or FP8, saturated); or ReLU's AMP_MASK, read instead of y; else NULL */
    amp_array dy;         /* [rows, out], gradient of y; with an act it is OVERWRITTEN by the gradient before act */
    amp_array dx;         /* [rows, in] output = dy w, or data NULL. dy and w have one dtype */
    amp_array dw;         /* [out, in] output = dy^T x, or data NULL. dy and x have one dtype */
    amp_array dbias;      /* [out] output = column sums of dy, or data NULL; any dtype */
    uint32_t accumulate;  /* 1: dw and dbias are added to what is there */
    uint32_t flags;       /* AMP_GEMM_* for its products, or 0 */
    uint32_t w_in_out;    /* 1: w is stored [in, out], as for y = x w, and so is dw; all else is as without it */
    uint32_t _pad;
    amp_precision *record;     /* host: written by forward, read by backward. NULL: no AUTO; x, w and dy have one dtype;
                                  if dx or dw is given, forward is refused where a scope would cast x or w */
    const amp_precision *from; /* host: the record of the layer that made x, if x.dtype is AMP_AUTO */
    amp_dtype pin;             /* x, w and dy are read in this dtype, see amp_gemm_desc.pin */
    uint32_t fp8_keep;         /* 1: forward with the scales of the last one: evaluation (>>fp8: keep) */
    amp_fp8 *fp8; /* NULL, or: its tensors fp8_first, + 1 and + 2 make FP8 copies of x, w and dy (F32 or 16 bits) ... */
    size_t fp8_first, scratch_bytes;
    void *scratch; /* ... in this context memory, which layers may share: rows*in + out*in + 2*rows*out + 1024 bytes */
    /* Host, or NULL. Two layers in a chain, b.x = a.y: with a.after = &b and b.before = &a b's backward also does the
       act and the dbias of a, inside the product that makes its dx, which is then the gradient before a's act. */
    const struct amp_linear_desc *before, *after;
    uint64_t _end;
} amp_linear_desc;

/* With a record, y, aux, dy and dx may be AMP_AUTO: y as the scope chooses, aux and dy as y, dx as x. dw and dbias
   always have a dtype. All matrices are packed row-major. A layer's y is the next layer's x, and the next layer's dx is
   this layer's dy. Backward of ReLU (0 where y <= 0, else dy, also where y is NaN), TANH and SIGMOID reads y; the
   others read aux. Class: enqueue. Numerics: products' bound. */
AMP_API amp_status amp_linear_forward(amp_ctx *ctx, const amp_linear_desc *l);
AMP_API amp_status amp_linear_backward(amp_ctx *ctx, const amp_linear_desc *l);
/* dst[cols] = sums over the rows of src[rows, cols]: a bias gradient alone, as amp_linear_backward's dbias. Any dtypes.
   ld: elements between rows of src, 0 => cols. accumulate 1: added to dst, in double. The sum is rounded to FP32, then
   to dst's dtype. rows 0: dst becomes 0, or stays with accumulate 1. dst and src do not overlap. Class: enqueue.
   Numerics: the rule of sums (>>sums), bit contract. */
AMP_API amp_status amp_column_sums(
    amp_ctx *ctx, amp_array dst, amp_array src, size_t rows, size_t cols, size_t ld, uint32_t accumulate);
/* amp_gemm_tune for each of its products whose output (y, dx, dw) is given; writes the record. Class: setup. */
AMP_API amp_status amp_linear_tune(amp_ctx *ctx, const amp_linear_desc *l);

/* FP8 with a scale per tensor: desc and rules at >>fp8. desc NULL: current scaling, for one layer. Class: setup. */
#define amp_fp8_create(out, ctx, ...) \
    amp_fp8_create_checked((out), (ctx), AMP_VERSION, sizeof(amp_fp8_desc), __VA_ARGS__)
typedef struct amp_fp8_desc amp_fp8_desc;
AMP_API amp_status amp_fp8_create_checked(
    amp_fp8 **out, amp_ctx *ctx, int version, size_t size, const amp_fp8_desc *desc);
AMP_API void amp_fp8_destroy(amp_fp8 *f); /* NULL is fine. Class: setup */
/* dst[rows, cols] and dst_t[cols, rows], FP8 (the data of one may be NULL): src[rows, cols], F32 or 16 bits, times the
   scale of tensor i, saturated. keep 1: uses the scale of its last cast and records nothing. Class: enqueue. Bit
   contract. */
AMP_API amp_status amp_quantize(
    amp_fp8 *f, size_t i, amp_array dst, amp_array dst_t, amp_array src, size_t rows, size_t cols, uint32_t keep);
AMP_API const float *amp_fp8_inverse_ptr(const amp_fp8 *f, size_t i);     /* 1 / scale, for scale_a, _b. Class: host */
typedef struct amp_fp8_info { float scale, amax, largest; } amp_fp8_info; /* of the last cast; of the history */
AMP_API amp_status amp_fp8_get(amp_fp8 *f, size_t i, amp_fp8_info *out);  /* Class: query */

typedef struct amp_activation_desc { /* y[i] = act(x[i]); or, with dx, dx[i] = dy[i] times act's derivative */
    uint32_t _begin;
    amp_act act; /* not AMP_ACT_NONE */
    size_t count;
    amp_array x;  /* the value before act: read by forward, and by backward of GELU, GELU_ERF and SILU */
    amp_array y;  /* forward's output, may be x, AMP_AUTO => x's dtype; read by backward of ReLU, TANH and SIGMOID */
    amp_array dy; /* gradient of y, for backward */
    amp_array dx; /* backward's output, may be dy; AMP_AUTO => dy's dtype. data NULL: forward */
    uint64_t _end;
} amp_activation_desc;

/* An activation without a product, forward or backward; any dtypes, each result rounded once, to nearest. Two arrays
   are the same (with one element size) or do not overlap. Class: enqueue. Numerics: bit contract; errors: amp_act. */
AMP_API amp_status amp_activation(amp_ctx *ctx, const amp_activation_desc *desc);

typedef struct amp_xent_desc {
    uint32_t _begin;
    uint32_t sum; /* 0: mean over the rows that count; 1: sum */
    size_t rows, classes;
    size_t ld;        /* elements between rows of logits, targets and dlogits; 0 => classes */
    amp_array logits; /* [rows, classes] */
    /* The right answers, in one of four fields. Labels: context memory, [rows], 0 .. classes-1; a negative label leaves
       its row out (gradient 0). Or targets, [rows, classes], any dtype: each row should sum to 1 */
    const int32_t *labels;
    const int64_t *labels64;
    const uint8_t *labels8;
    amp_array targets;
    amp_array weights;   /* of the classes, [classes], any dtype, or data NULL: 1 each */
    float *loss;         /* context memory, one float, or NULL: mean or sum of row_loss, NOT scaled */
    float *row_loss;     /* context memory, [rows]: -log softmax(logits)[label]; NULL only if loss is NULL */
    amp_array dlogits;   /* output [rows, classes] or data NULL: gradient TIMES THE LOSS SCALE; may be logits. With a
                           count of rows * ld or more, zeros are written to the columns from classes to ld */
    amp_scaler *scaler;  /* NULL => 1. Read where the verb runs: no host synchronisation */
    amp_optional factor; /* one more factor of the gradient, e.g. 1/N for N micro-batches; not given: 1 */
    float smoothing;     /* s, in [0, 1]: label smoothing; targets are (1-s) * one-hot (or targets) + s / classes */
    uint32_t softmax;    /* 1: no gradient; dlogits = softmax(logits) * factor, to sample from. Labels, targets,
                            weights, loss, row_loss and scaler NULL, smoothing 0 */
    const amp_precision *from; /* host: record of the layer that made logits of dtype AMP_AUTO; dlogits AUTO: same */
    uint64_t _end;
} amp_xent_desc;

/* Softmax cross-entropy and its gradient, computed in FP32, sums by the rule of sums (>>sums). A label >= classes makes
   the loss and the gradient of its row NaN. All rows left out: loss 0 (PyTorch: NaN). Weights w: target c of a row is
   multiplied by w[c]. The mean divides the sum by the sum of w[label] over the rows that count (by 1 if it is 0); with
   targets, by the number of rows. A target or a weight of 0 adds nothing to a loss, whatever the logit (PyTorch: NaN
   at -Inf). Class: enqueue. Numerics: bit contract. */
AMP_API amp_status amp_softmax_cross_entropy(amp_ctx *ctx, const amp_xent_desc *desc);

/* The last layer and its loss, `chunk` rows at a time: the logits are never in memory as a whole. */
typedef struct amp_linear_xent_desc {
    uint32_t _begin, _pad;
    amp_linear_desc linear; /* as for amp_linear_forward and _backward. y: its dtype alone; aux, dy: leave zero; no act,
                               before, after. dx, dw and dbias data NULL: the loss alone. scratch NULL, with FP8 too */
    amp_xent_desc xent;   /* as for amp_softmax_cross_entropy. rows, classes, ld: 0 or the layer's; logits, dlogits: no
                               data, dlogits.dtype AMP_AUTO => what products read w in (FP8: y's dtype) */
    size_t chunk;         /* 0 => as many as have 64 MiB of logits in FP32, a multiple of 256, at least 256 */
    void *scratch;        /* context memory, aligned to 256 bytes: afterwards the last piece's logits, or gradient */
    size_t scratch_bytes; /* at least what amp_linear_cross_entropy_bytes says */
    uint64_t _end;
} amp_linear_xent_desc;

/* Loss, row losses, dx, dw and dbias as from forward, cross-entropy and backward in a row; the mean is over all rows.
   With several pieces dw and dbias are summed in FP32 and rounded once. FP8 quantises w once, and x and the gradient of
   the logits piece by piece, each with the scale of its piece (delayed: each piece adds one to the history). Outputs do
   not overlap inputs. Class: enqueue. Numerics: products' bound. With AMP_GEMM_ORDERED, no FP8, no accumulate, FP32 dw
   and a chunk that is a multiple of 256, loss, dx and dw have the bits of one piece; dbias is a sum of sums. */
AMP_API amp_status amp_linear_cross_entropy(amp_ctx *ctx, const amp_linear_xent_desc *desc);
/* *bytes: the scratch that it needs; desc without scratch. Class: host. */
AMP_API amp_status amp_linear_cross_entropy_bytes(amp_ctx *ctx, size_t *bytes, const amp_linear_xent_desc *desc);

typedef struct amp_rng { uint64_t seed, stream, offset; } amp_rng; /* a place in the sequence of amp_random */

typedef struct amp_dropout_desc {
    uint32_t _begin;
    float p; /* share that is dropped, in [0, 1] */
    size_t count;
    amp_array x, y; /* y[i] = x[i] / (1 - p), or 0; may be one array. y.dtype AMP_AUTO => x's */
    amp_rng rng;    /* element i draws amp_random(seed, stream, offset + i): dropped if below p */
    uint64_t _end;
} amp_dropout_desc;

/* Dropout without a stored mask: backward is the same call on the gradient (x = dy, y = dx) with the same rng. Add
   count to rng.offset for the next call. Class: enqueue. Numerics: one FP32 product, rounded to y's dtype; a dropped
   NaN becomes 0. */
AMP_API amp_status amp_dropout(amp_ctx *ctx, const amp_dropout_desc *desc);

/* ==== >>state ====================================================================================================
   Everything a run needs to continue, in one file: little-endian tagged sections, and an XXH64 checksum of all of them.
   Parameters are matched by name, count and dtype. A file written on one context can be read on any other, by any
   amp with this file format. Save writes a separate file beside `path` ("PATH.16 digits.tmp"), flushes it to disk and
   renames it. So `path` is always one whole file, old or new, even after a crash and with several savers. It keeps the
   old file's mode. A symbolic link is followed; a directory, device or fifo is refused (not so on Windows). Temporary
   files in use are locked: a later save removes those of writers that died. Without locks (Windows, some network disks)
   they stay. */

typedef struct amp_state_desc {
    uint32_t _begin, flags;    /* 0 */
    amp_params *const *params; /* n_params sets, in the same order when saving and loading */
    size_t n_params;
    amp_scaler *const *scalers; /* a NULL entry: as a scaler that is OFF */
    size_t n_scalers;
    amp_fp8 *const *fp8;
    size_t n_fp8;
    void *user;        /* your own bytes (epoch, position in the data, ...): saved, and filled on load */
    size_t user_bytes; /* must be equal when loading */
    uint64_t _end;
} amp_state_desc;

/* Saved: masters (or the only copies), moments, step counts, scalers, FP8 scales and histories. Not saved: gradients,
   which parameters are in use, model copies that follow from masters. STAGE between unscale and update, and inside an
   accumulation window. IO, with the system's reason. FORMAT, with a sentence that says what differs; unknown sections
   are refused. Load reads the whole file into host memory, verifies it there and then copies it in: after a
   failed load nothing has changed. Only if the device fails during those copies does the sentence say "state
   undefined". Class: query. */
AMP_API amp_status amp_state_save(amp_ctx *ctx, const char *path, const amp_state_desc *state);
AMP_API amp_status amp_state_load(amp_ctx *ctx, const char *path, const amp_state_desc *state);

/* ==== >>backend ==================================================================================================
   From here on: for authors of kernels, optimizers and backends. First the arithmetic and the per-element math, written
   once for every backend, then the jobs and the table of functions that a backend implements. */

/* ---- formats of numbers: the bodies of >>types and >>formats ----
   tests: tests/test_formats.c, tests/exhaustive.c, tests/ptx.sh */

#if defined(__apple_build_version__)
#  define AMPI_CLANG_DROPS 16 /* its numbers are its own */
#else
#  define AMPI_CLANG_DROPS 17
#endif
#if defined(__clang__) && __clang_major__ >= AMPI_CLANG_DROPS && defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#  error "amp.h: with -ffast-math this clang drops tests for Inf and NaN, also those of bits: add -fno-finite-math-only"
#endif
AMP_INLINE amp_array amp_arr(const void *data, amp_dtype dtype) {
    amp_array a = AMP_ZERO;
    memcpy(&a.data, &data, sizeof data);
    a.dtype = dtype;
    return a;
}
AMP_INLINE amp_array amp_arrn(const void *data, amp_dtype dtype, size_t count) {
    amp_array a = amp_arr(data, dtype);
    a.count = count;
    return a;
}
AMP_INLINE amp_optional amp_opt(float x) {
    amp_optional o = {x, 1};
    return o;
}

AMP_INLINE uint32_t ampi_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}
AMP_INLINE float ampi_float(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* The small formats: all that is known of them. Another one is a row here, and a size in amp_dtype_size. */
typedef struct ampi_format {
    uint32_t mant;         /* mantissa bits */
    uint32_t emin;         /* biased float exponent of the smallest normal number */
    uint32_t limit;        /* the first float, as bits, that overflows */
    uint32_t over, maxf;   /* patterns of what overflows, and of the largest finite number */
    uint32_t nan, payload; /* pattern of NaN, and which of its bits are kept of a float's NaN */
    uint32_t sign;         /* place of the sign bit */
} ampi_format;
/* clang-format off */
#define AMPI_FORMATS(X) \
    /* AMP_,   name,   mant, emin,       limit,    over,    maxf,     nan, payload, sign */ \
    X( F16,    f16,     10,   113, 0x477ff000u, 0x7c00u, 0x7bffu, 0x7e00u,  0x3ffu,   15) \
    X( BF16,   bf16,     7,     1, 0x7f7f8000u, 0x7f80u, 0x7f7fu, 0x7fc0u,  0x07fu,   15) \
    X( F8E4M3, f8e4m3,   3,   121, 0x43e80001u,   0x7fu,   0x7eu,   0x7fu,       0,    7) \
    X( F8E5M2, f8e5m2,   2,   113, 0x47700000u,   0x7cu,   0x7bu,   0x7eu,       3,    7)
/* clang-format on */
#define AMPI_FORMAT_ROW(T, name, ...) \
    if (t == AMP_##T) { \
        ampi_format f = {__VA_ARGS__}; \
        return f; \
    }
AMP_INLINE ampi_format ampi_format_of(amp_dtype t) { /* folded when t is a constant; all 0 for F32 */
    ampi_format none = AMP_ZERO;
    AMPI_FORMATS(AMPI_FORMAT_ROW)
    return none;
}
AMP_INLINE int ampi_has_inf(ampi_format f) { return f.over != f.nan; }
/* Not made of the rows: as comparisons it leaves ampi_k_cast 80 registers instead of 94. */
AMP_INLINE size_t amp_dtype_size(amp_dtype t) {
#if !defined(AMP_DEVICE) /* no kernel asks */
    if (t == AMP_F64) return 8u;
#endif
    if (t == AMP_F32) return 4u;
    if (t == AMP_F16 || t == AMP_BF16) return 2u;
    return t == AMP_F8E4M3 || t == AMP_F8E5M2 ? 1u : 0u;
}

/* Conversions by NVIDIA's GPUs, as PTX, which no compiler flag changes: the same bits for all numbers within the range.
   NaN, and what lies beyond, is the callers'. */
#if defined(__CUDA_ARCH__)
AMP_INLINE uint32_t ampi_from_half(uint32_t pattern) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((uint16_t)pattern));
    return ampi_bits(x);
}
AMP_INLINE uint32_t ampi_to_half(uint32_t x) {
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(ampi_float(x)));
    return h;
}
AMP_INLINE uint32_t ampi_to_halves(uint32_t low, uint32_t high) {
#  if __CUDA_ARCH__ >= 800
    uint32_t w;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(ampi_float(high)), "f"(ampi_float(low)));
    return w;
#  else
    return ampi_to_half(low) | ampi_to_half(high) << 16;
#  endif
}
#  if __CUDA_ARCH__ >= 800
#    define AMPI_BF16_HARDWARE 1
AMP_INLINE uint32_t ampi_to_bf16s(uint32_t low, uint32_t high) {
    uint32_t w;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(ampi_float(high)), "f"(ampi_float(low)));
    return w;
}
#  endif
#  if __CUDA_ARCH__ >= 890
#    define AMPI_F8_HARDWARE(t) ((t) == AMP_F8E4M3 || (t) == AMP_F8E5M2)
AMP_INLINE uint32_t ampi_from_two_f8(uint32_t patterns, amp_dtype t) { /* to two halves, exactly */
    uint32_t w;
    if (t == AMP_F8E4M3)
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(w) : "h"((uint16_t)patterns));
    else
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(w) : "h"((uint16_t)patterns));
    return w;
}
AMP_INLINE uint32_t ampi_to_two_f8(uint32_t low, uint32_t high, amp_dtype t) {
    uint16_t w;
    if (t == AMP_F8E4M3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(w) : "f"(ampi_float(high)), "f"(ampi_float(low)));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(w) : "f"(ampi_float(high)), "f"(ampi_float(low)));
    return w;
}
#  endif
#endif

/* A pattern of FP8 to float bits. Without the hardware's way it is read as a half, of which a number of E4M3 is 2^8
   times as much. */
#if defined(__CUDA_ARCH__)
AMP_INLINE uint32_t ampi_from_f8(uint32_t pattern, amp_dtype t) {
#  if defined(AMPI_F8_HARDWARE)
    return ampi_from_half(ampi_from_two_f8(pattern, t) & 0xffffu);
#  else
    float x;
    if (t == AMP_F8E5M2) return ampi_from_half(pattern << 8);
    asm("mul.rn.f32 %0, %1, 0f43800000;"
        : "=f"(x)
        : "f"(ampi_float(ampi_from_half((pattern & 0x80u) << 8 | (pattern & 0x7fu) << 7))));
    return ampi_bits(x);
#  endif
}
#endif

/* The magnitude of a float, as bits, to the pattern of a format with so many bits of mantissa; what is beyond the range
   is the caller's. It becomes a fixed-point number q.F of the target's grid, F of 32 bits; nearest-even and stochastic
   rounding differ only in what is added to F before its carry goes into q:
       nearest even  0x7fffffff + (q odd)
       stochastic    r, uniform in [0, 2^32): away from zero with probability F / 2^32
   F is exact for every number of at least 2^-33 of the grid's step, so the expectation of the result is the number. */
AMP_INLINE uint32_t ampi_on_grid(uint32_t a, uint32_t mant, uint32_t emin, amp_rounding how, uint32_t r) {
    uint32_t hidden = a >> 23 ? 0x800000u : 0u;
    uint32_t e = a >> 23 ? a >> 23 : 1u;
    uint32_t grid = e > emin ? e : emin; /* exponent that the target's step belongs to */
    uint32_t shift = 23u - mant + (grid - e);
    uint64_t v = (uint64_t)((a & 0x7fffffu) | hidden) << 32;
    uint32_t q;
    v = shift > 56u ? 0u : v >> shift;
    q = (uint32_t)(v >> 32);
    v += how == AMP_STOCHASTIC ? r : 0x7fffffffu + (q & 1u);
    return (uint32_t)(v >> 32) + ((grid - emin) << mant);
}
AMP_INLINE uint32_t ampi_rounded(uint32_t a, amp_dtype t, amp_rounding how, uint32_t r) {
    ampi_format f = ampi_format_of(t);
    if (t == AMP_BF16) return (a + (how == AMP_NEAREST ? 0x7fffu + (a >> 16 & 1u) : r >> 16)) >> 16;
#if defined(__CUDA_ARCH__)
    if (how == AMP_NEAREST && t == AMP_F16) return ampi_to_half(a);
#  if defined(AMPI_F8_HARDWARE)
    if (how == AMP_NEAREST && AMPI_F8_HARDWARE(t)) return ampi_to_two_f8(a, 0, t) & 0xffu;
#  endif
#endif
    return ampi_on_grid(a, f.mant, f.emin, how, r);
}
/* What overflows becomes Inf there by itself. */
AMP_INLINE int ampi_rounds_to_inf(amp_dtype t, amp_rounding how) {
#if defined(__CUDA_ARCH__)
    if (t == AMP_F16 && how == AMP_NEAREST) return 1;
#endif
    return t == AMP_BF16 && how == AMP_NEAREST;
}
/* Float bits x to the 8- or 16-bit pattern. Overflow is never random: the same numbers overflow in both modes. */
AMP_INLINE uint32_t ampi_encode(uint32_t x, amp_dtype t, amp_rounding how, uint32_t r, int saturate) {
    ampi_format f = ampi_format_of(t);
    uint32_t a = x & 0x7fffffffu, q = ampi_rounded(a, t, how, r);
    if (saturate || !ampi_rounds_to_inf(t, how)) {
        if (q > f.maxf) q = f.maxf;
        if (a >= f.limit) q = saturate ? f.maxf : f.over;
    }
    if (a > 0x7f800000u) q = f.nan | ((a >> (23u - f.mant)) & f.payload);
    return (x >> 31) << f.sign | q;
}

AMP_INLINE uint32_t ampi_in_each(uint32_t pattern, amp_dtype t) { /* of a small format; in each element of a word */
    return pattern * (amp_dtype_size(t) == 1u ? 0x01010101u : 0x00010001u);
}
/* Not finite: the exponent bits e of every element in the word are ones, so adding its lowest bit carries into the
   sign's place, and never past it. */
AMP_INLINE uint32_t ampi_exponents(amp_dtype t) {
    return t == AMP_F32 ? 0x7f800000u : ampi_in_each(ampi_format_of(t).over, t);
}
AMP_INLINE uint32_t ampi_signs(amp_dtype t) {
    return t == AMP_F32 ? 0x80000000u : ampi_in_each(1u << ampi_format_of(t).sign, t);
}

AMP_INLINE uint32_t ampi_top_bit(uint32_t m) { /* position of the highest set bit of m, 0 < m < 1024 */
    uint32_t p = 0;
    if (m >> 8) {
        p += 8;
        m >>= 8;
    }
    if (m >> 4) {
        p += 4;
        m >>= 4;
    }
    if (m >> 2) {
        p += 2;
        m >>= 2;
    }
    return p + (m >> 1);
}

/* The 8- or 16-bit pattern to float bits: exact; NaN made quiet. */
AMP_INLINE uint32_t ampi_decode(uint32_t b, amp_dtype t) {
    ampi_format f = ampi_format_of(t);
    uint32_t sign = (b >> f.sign) << 31;
    uint32_t a = b & ((1u << f.sign) - 1u);
    uint32_t up = 23u - f.mant;
    uint32_t m = a & ((1u << f.mant) - 1u);
    int infinite = ampi_has_inf(f) && a == f.over;
    uint32_t p;
    if (t == AMP_BF16) return sign | (a << 16) | (a > f.over ? 0x400000u : 0u);
#if defined(__CUDA_ARCH__)
    if (infinite || a < f.over) return t == AMP_F16 ? ampi_from_half(b) : ampi_from_f8(b, t);
#endif
    if (a >= f.over) return sign | 0x7f800000u | (m << up) | (infinite ? 0u : 0x400000u);
    if (a >> f.mant) return sign | ((a << up) + ((f.emin - 1u) << 23));
    if (m == 0) return sign;
    p = ampi_top_bit(m); /* a subnormal: m * 2^(emin - 127 - mant) becomes a normal float */
    return sign | ((f.emin - f.mant + p) << 23) | ((m << (23u - p)) & 0x7fffffu);
}

/* ampi_decode and ampi_encode for a dtype that is known only at run time, F32 too: the format's constants fold into
   each case. */
#define AMPI_FORMAT_DECODE(T, ...) \
case AMP_##T: return ampi_decode(pattern, AMP_##T);
AMP_INLINE uint32_t ampi_decode_any(uint32_t pattern, amp_dtype t) {
    switch (t) {
        AMPI_FORMATS(AMPI_FORMAT_DECODE)
    case AMP_AUTO:
    case AMP_F32:
    case AMP_F64:
    case AMP_MOMENT_8BIT:
    case AMP_MASK:
    case AMP_DTYPE_COUNT: break;
    }
    return pattern;
}
#define AMPI_FORMAT_ENCODE(T, ...) \
case AMP_##T: return ampi_encode(x, AMP_##T, how, r, saturate);
AMP_INLINE uint32_t ampi_encode_any(uint32_t x, amp_dtype t, amp_rounding how, uint32_t r, int saturate) {
    switch (t) {
        AMPI_FORMATS(AMPI_FORMAT_ENCODE)
    case AMP_AUTO:
    case AMP_F32:
    case AMP_F64:
    case AMP_MOMENT_8BIT:
    case AMP_MASK:
    case AMP_DTYPE_COUNT: break;
    }
    return x;
}

/* A mask: bit c % 8 of byte c / 8 of a row; a row begins with a byte, bits behind its end are 0. ReLU's are 1 unless
   y <= 0, y as it is stored; no y of ReLU is negative, so where it is not 0. */
AMP_INLINE size_t ampi_mask_pitch(size_t cols) { return cols / 8u + (cols % 8u != 0); }
AMP_INLINE uint8_t *ampi_mask_at(void *mask, size_t row, size_t cols, size_t col) { /* col: a multiple of 8 */
    return (uint8_t *)mask + row * ampi_mask_pitch(cols) + col / 8u;
}
/* What stands in y's place: 1 or 0. */
AMP_INLINE float ampi_mask_y(const uint8_t *bits, size_t i) { return bits[i / 8u] >> i % 8u & 1u ? 1.0f : 0.0f; }

/* ---- the same for one number at a time on the host ----
   The definitions above hold for every number. Nearly all are normal or zero, and take a shorter way here. F16 has
   instructions where the build enables F16C: their rounding is in the instruction; no bit depends on the control word
   (tests/compile/inline.c), but they raise flags as IEEE 754 says. */
#if !defined(AMP_DEVICE) && defined(__GNUC__) && !defined(__TINYC__)
#  if defined(__clang__) /* not inlined, so that the short way is; one compiler warns of the other's form */
#    define AMPI_RARE AMP_INLINE __attribute__((noinline, __cold__))
#  else
#    define AMPI_RARE AMP_HD static __attribute__((noinline, __cold__, __unused__))
#  endif
#else
#  define AMPI_RARE AMP_INLINE
#endif
AMPI_RARE uint32_t ampi_round_rare(uint32_t x, amp_dtype t, int saturate) {
    return ampi_encode_any(x, t, AMP_NEAREST, 0, saturate);
}
AMPI_RARE uint32_t ampi_widen_rare(uint32_t pattern, amp_dtype t) { return ampi_decode_any(pattern, t); }

#if defined(__F16C__) && defined(__GNUC__) && !defined(__TINYC__) && !defined(__CUDACC__)
#  define AMPI_F16C
typedef float ampi_four __attribute__((__vector_size__(16)));
AMP_INLINE uint32_t ampi_f16c_narrow(uint32_t x) {
    ampi_four v = {ampi_float(x), 0.0f, 0.0f, 0.0f};
    __asm__("{vcvtps2ph $0, %0, %0|vcvtps2ph %0, %0, 0}"
        : "+x"(v)); /* 0: to nearest even, whatever the control word says */
    return ampi_bits(v[0]) & 0xffffu;
}
AMP_INLINE uint32_t ampi_f16c_widen(uint32_t pattern) {
    ampi_four v = {ampi_float(pattern), 0.0f, 0.0f, 0.0f};
    __asm__("vcvtph2ps %0, %0" : "+x"(v));
    return ampi_bits(v[0]);
}
#endif

/* ampi_encode to nearest even */
AMP_INLINE uint32_t ampi_round_bits(uint32_t x, amp_dtype t, int saturate) {
#if defined(AMP_DEVICE)
    return ampi_encode(x, t, AMP_NEAREST, 0, saturate);
#else
    ampi_format f = ampi_format_of(t);
    uint32_t a = x & 0x7fffffffu, up = 23u - f.mant, sign = (x >> 31) << f.sign;
    uint32_t bias = ((f.emin - 1u) << 23) & (0u - (uint32_t)(a != 0)); /* so that zero goes with the normal ones */
    int tiny = f.emin > 1u && a - 1u < (f.emin << 23) - 1u;
#  if defined(AMPI_F16C)
    if (t == AMP_F16 && !saturate) return ampi_f16c_narrow(x);
#  endif
    if (tiny || a >= f.limit) return ampi_round_rare(x, t, saturate);
    return sign | (a - bias + (1u << (up - 1u)) - 1u + ((a >> up) & 1u)) >> up;
#endif
}
/* ampi_decode */
AMP_INLINE uint32_t ampi_widen_bits(uint32_t pattern, amp_dtype t) {
#if defined(AMP_DEVICE)
    return ampi_decode(pattern, t);
#else
    ampi_format f = ampi_format_of(t);
    uint32_t a = pattern & ((1u << f.sign) - 1u), sign = (pattern >> f.sign) << 31;
    uint32_t bias = ((f.emin - 1u) << 23) & (0u - (uint32_t)(a != 0));
    int tiny = a - 1u < (1u << f.mant) - 1u;
#  if defined(AMPI_F16C)
    if (t == AMP_F16) return ampi_f16c_widen(pattern);
#  endif
    if (t == AMP_BF16) return ampi_decode(pattern, t);
    if (tiny || a >= f.over) return ampi_widen_rare(pattern, t);
    return sign | ((a << (23u - f.mant)) + bias);
#endif
}
/* For a dtype that is known only at run time: the format's constants fold into each line. */
#define AMPI_FORMAT_WIDE(T, ...) \
    if (t == AMP_##T) return ampi_widen_bits(pattern, AMP_##T);
AMP_INLINE uint32_t ampi_widen_any(uint32_t pattern, amp_dtype t) {
    AMPI_FORMATS(AMPI_FORMAT_WIDE)
    return pattern;
}
#define AMPI_FORMAT_NEAREST(T, ...) \
    if (t == AMP_##T) return ampi_round_bits(x, AMP_##T, 0);
AMP_INLINE uint32_t ampi_round_any(uint32_t x, amp_dtype t) {
    AMPI_FORMATS(AMPI_FORMAT_NEAREST)
    return x;
}

/* Double to float bits by rounding to odd: the last bit remembers whether anything was cut off, so that a second
   rounding to a format at least two bits shorter is as if rounded once (Boldo and Melquiond, "Emulation of a FMA and
   correctly rounded sums", 2008). */
AMP_INLINE uint32_t ampi_odd_f32(double x) {
    uint64_t d, m;
    uint32_t sign, e, shift;
    memcpy(&d, &x, 8);
    sign = (uint32_t)(d >> 32) & 0x80000000u;
    e = (uint32_t)(d >> 52) & 0x7ffu;
    m = d & 0xfffffffffffffu;
    if (e == 0x7ffu) return sign | 0x7f800000u | (m ? 0x400000u | (uint32_t)(m >> 29) : 0u);
    if (e >= 1023u + 128u) return sign | 0x7f7fffffu;
    if (e <= 1023u - 127u) { /* below the normal floats */
        shift = 29u + (1023u - 126u - e);
        m |= (uint64_t)1 << 52;
        if (e == 0 || shift > 53u) /* in halves: clang 22 compares the whole as a double, which raises flags */
            return sign | (((uint32_t)d | ((uint32_t)(d >> 32) & 0x7fffffffu)) ? 1u : 0u);
        return sign | (uint32_t)(m >> shift) | (m & (((uint64_t)1 << shift) - 1u) ? 1u : 0u);
    }
    return sign | ((e - 1023u + 127u) << 23) | (uint32_t)(m >> 29) | (m & 0x1fffffffu ? 1u : 0u);
}

/* x rounded once, as a pattern. */
AMP_INLINE uint32_t ampi_nearest_bits(uint32_t x, amp_dtype t) { return ampi_round_bits(x, t, 0); }
AMP_INLINE uint32_t ampi_nearest(float x, amp_dtype t) { return ampi_nearest_bits(ampi_bits(x), t); }
AMP_INLINE uint32_t ampi_nearest_sat(float x, amp_dtype t) { return ampi_round_bits(ampi_bits(x), t, 1); }
AMP_INLINE uint32_t ampi_nearest_f64(double x, amp_dtype t) {
    return ampi_encode(ampi_odd_f32(x), t, AMP_NEAREST, 0, 0);
}
AMP_INLINE uint32_t ampi_stochastic(float x, amp_dtype t, uint32_t r) {
    return ampi_encode(ampi_bits(x), t, AMP_STOCHASTIC, r, 0);
}
AMP_INLINE float ampi_decoded(uint32_t pattern, amp_dtype t) { return ampi_float(ampi_widen_bits(pattern, t)); }

#define AMPI_OF_PATTERN(name, word) \
    AMP_INLINE amp_##name ampi_##name(uint32_t pattern) { \
        amp_##name h; \
        h.bits = (word)pattern; \
        return h; \
    }
AMPI_OF_PATTERN(f16, uint16_t)
AMPI_OF_PATTERN(bf16, uint16_t)
AMPI_OF_PATTERN(f8e4m3, uint8_t)
AMPI_OF_PATTERN(f8e5m2, uint8_t)
#undef AMPI_OF_PATTERN

AMP_INLINE amp_f16 amp_f16_from_f32(float x) { return ampi_f16(ampi_nearest(x, AMP_F16)); }
AMP_INLINE amp_bf16 amp_bf16_from_f32(float x) { return ampi_bf16(ampi_nearest(x, AMP_BF16)); }
AMP_INLINE amp_f8e4m3 amp_f8e4m3_from_f32(float x) { return ampi_f8e4m3(ampi_nearest(x, AMP_F8E4M3)); }
AMP_INLINE amp_f8e5m2 amp_f8e5m2_from_f32(float x) { return ampi_f8e5m2(ampi_nearest(x, AMP_F8E5M2)); }
AMP_INLINE amp_f8e4m3 amp_f8e4m3_from_f32_sat(float x) { return ampi_f8e4m3(ampi_nearest_sat(x, AMP_F8E4M3)); }
AMP_INLINE amp_f8e5m2 amp_f8e5m2_from_f32_sat(float x) { return ampi_f8e5m2(ampi_nearest_sat(x, AMP_F8E5M2)); }
AMP_INLINE amp_f16 amp_f16_from_f32_sr(float x, uint32_t r) { return ampi_f16(ampi_stochastic(x, AMP_F16, r)); }
AMP_INLINE amp_bf16 amp_bf16_from_f32_sr(float x, uint32_t r) { return ampi_bf16(ampi_stochastic(x, AMP_BF16, r)); }
AMP_INLINE amp_f8e4m3 amp_f8e4m3_from_f32_sr(float x, uint32_t r) {
    return ampi_f8e4m3(ampi_stochastic(x, AMP_F8E4M3, r));
}
AMP_INLINE amp_f8e5m2 amp_f8e5m2_from_f32_sr(float x, uint32_t r) {
    return ampi_f8e5m2(ampi_stochastic(x, AMP_F8E5M2, r));
}
AMP_INLINE amp_f16 amp_f16_from_f64(double x) { return ampi_f16(ampi_nearest_f64(x, AMP_F16)); }
AMP_INLINE amp_bf16 amp_bf16_from_f64(double x) { return ampi_bf16(ampi_nearest_f64(x, AMP_BF16)); }
AMP_INLINE float amp_f32_from_f16(amp_f16 h) { return ampi_decoded(h.bits, AMP_F16); }
AMP_INLINE float amp_f32_from_bf16(amp_bf16 h) { return ampi_decoded(h.bits, AMP_BF16); }
AMP_INLINE float amp_f32_from_f8e4m3(amp_f8e4m3 h) { return ampi_decoded(h.bits, AMP_F8E4M3); }
AMP_INLINE float amp_f32_from_f8e5m2(amp_f8e5m2 h) { return ampi_decoded(h.bits, AMP_F8E5M2); }

/* One element as it lies in memory. A host takes any address; a device loads and stores whole aligned elements. */
#if defined(AMP_DEVICE)
AMP_INLINE uint32_t ampi_load_pattern(const void *data, amp_dtype t, size_t i) {
    size_t size = amp_dtype_size(t);
    if (size == 4u) return ((const uint32_t *)data)[i];
    return size == 2u ? ((const uint16_t *)data)[i] : ((const uint8_t *)data)[i];
}
AMP_INLINE void ampi_store_pattern(void *data, amp_dtype t, size_t i, uint32_t pattern) {
    size_t size = amp_dtype_size(t);
    if (size == 4u) ((uint32_t *)data)[i] = pattern;
    if (size == 2u) ((uint16_t *)data)[i] = (uint16_t)pattern;
    if (size == 1u) ((uint8_t *)data)[i] = (uint8_t)pattern;
}
#else
AMP_INLINE uint32_t ampi_load_pattern(const void *data, amp_dtype t, size_t i) {
    size_t size = amp_dtype_size(t);
    uint32_t u;
    uint16_t h;
    if (size == 1u) return ((const uint8_t *)data)[i];
    if (size == 2u) {
        memcpy(&h, (const char *)data + 2u * i, 2);
        return h;
    }
    memcpy(&u, (const char *)data + 4u * i, 4);
    return u;
}
AMP_INLINE void ampi_store_pattern(void *data, amp_dtype t, size_t i, uint32_t pattern) {
    size_t size = amp_dtype_size(t);
    uint16_t h = (uint16_t)pattern;
    if (size == 4u) memcpy((char *)data + 4u * i, &pattern, 4);
    if (size == 2u) memcpy((char *)data + 2u * i, &h, 2);
    if (size == 1u) ((uint8_t *)data)[i] = (uint8_t)pattern;
}
#endif
AMP_INLINE uint32_t ampi_load_bits(const void *data, amp_dtype t, size_t i) { /* as the bits of a float */
    return ampi_widen_any(ampi_load_pattern(data, t, i), t);
}
AMP_INLINE float amp_load(const void *data, amp_dtype t, size_t i) { return ampi_float(ampi_load_bits(data, t, i)); }
AMP_INLINE void amp_store(void *data, amp_dtype t, size_t i, float x) {
    ampi_store_pattern(data, t, i, ampi_round_any(ampi_bits(x), t));
}

AMP_INLINE int amp_is_finite(float x) { return (ampi_bits(x) & 0x7f800000u) != 0x7f800000u; }
AMP_INLINE int amp_is_nan(float x) { return (ampi_bits(x) & 0x7fffffffu) > 0x7f800000u; }

AMP_INLINE void amp_philox(uint32_t out[4], uint64_t seed, uint64_t stream, uint64_t counter) {
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    int i;
    for (i = 0; i < 10; i++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}
AMP_INLINE uint32_t amp_random(uint64_t seed, uint64_t stream, uint64_t index) {
    uint32_t w[4];
    amp_philox(w, seed, stream, index >> 2);
    if (index & 2u) return index & 1u ? w[3] : w[2]; /* no indexing: stays in registers on a device */
    return index & 1u ? w[1] : w[0];
}

/* ---- arithmetic that no compiler flag changes: each operation rounds once, to nearest even, subnormals kept ----
   NVIDIA's GPUs: PTX .rn without .ftz. Elsewhere the result passes through an empty asm statement, so it can be neither
   contracted nor reassociated, and division and square root are not replaced by estimates (on POWER, -ffast-math does
   that). Rounding mode and FTZ/DAZ: the verbs see to it; called by themselves (in kernels of your own, say), these
   functions and amp_exp, amp_log, amp_gelu work in the environment they find.
   tests: tests/test_modes.c, tests/test_formats.c, tests/compile/quotients.c, tests/ptx.sh */
#if defined(__CUDA_ARCH__)
#  define AMPI_OP2(name, T, ptx, c) \
    AMP_INLINE T name(T a, T b) { \
        T r; \
        asm(ptx " %0, %1, %2;" : "=" c(r) : c(a), c(b)); \
        return r; \
    }
#  define AMPI_OP1(name, R, T, ptx, cr, ct) \
    AMP_INLINE R name(T a) { \
        R r; \
        asm(ptx " %0, %1;" : "=" cr(r) : ct(a)); \
        return r; \
    }
AMPI_OP2(amp_add, float, "add.rn.f32", "f")
AMPI_OP2(amp_sub, float, "sub.rn.f32", "f")
AMPI_OP2(amp_mul, float, "mul.rn.f32", "f")
AMPI_OP2(amp_div, float, "div.rn.f32", "f")
AMPI_OP2(amp_dadd, double, "add.rn.f64", "d")
AMPI_OP2(amp_dsub, double, "sub.rn.f64", "d")
AMPI_OP2(amp_dmul, double, "mul.rn.f64", "d")
AMPI_OP2(amp_ddiv, double, "div.rn.f64", "d")
AMPI_OP1(amp_sqrt, float, float, "sqrt.rn.f32", "f", "f")
AMPI_OP1(amp_dsqrt, double, double, "sqrt.rn.f64", "d", "d")
AMPI_OP1(amp_narrow, float, double, "cvt.rn.f32.f64", "f", "d")
AMPI_OP1(amp_widen, double, float, "cvt.f64.f32", "d", "f")
AMPI_OP1(amp_negative, float, float, "neg.f32", "f", "f")
AMP_INLINE int amp_less(float a, float b) { /* -use_fast_math would flush subnormals in a < b */
    int r;
    asm("{ .reg .pred p; setp.lt.f32 p, %1, %2; selp.s32 %0, 1, 0, p; }" : "=r"(r) : "f"(a), "f"(b));
    return r;
}
#else
#  if !defined(__GNUC__) || defined(__TINYC__)
#    define AMPI_HOLD         volatile /* MSVC may contract: through memory. tcc does not optimise: harmless */
#    define AMPI_GUARD(x)     (void)0
#    define AMPI_GUARD2(x, y) (void)0
#  else
#    define AMPI_HOLD
#    define AMPI_GUARD(x)     __asm__("" : AMPI_HOME(x)) /* where the number is */
#    define AMPI_GUARD2(x, y) __asm__("" : AMPI_HOME(x), AMPI_HOME(y))
#    if defined(AMP_DEVICE)
#      define AMPI_HOME "+v" /* AMD's GPUs; no guard against fast-math's estimates of a / b */
#    endif
#    if defined(__wasm__)
#      define AMPI_HOME "+r"
#    endif
#    if defined(__SSE2__) && !defined(AMP_DEVICE) && !defined(__wasm__)
#      define AMPI_HOME "+x"
#    endif
#    if defined(__aarch64__) && !defined(AMP_DEVICE)
#      define AMPI_HOME "+w"
#    endif
#    ifndef AMPI_HOME
#      define AMPI_HOME "+m"
#    endif
#  endif
#  define AMPI_OP2(name, T, op) \
    AMP_INLINE T name(T a, T b) { \
        AMPI_HOLD T r = a op b; \
        AMPI_GUARD(r); \
        return r; \
    }
#  define AMPI_OP1(name, R, T, value) \
    AMP_INLINE R name(T a) { \
        AMPI_HOLD R r = value; \
        AMPI_GUARD(r); \
        return r; \
    }
#  if defined(__SSE2__) && defined(__GNUC__) && !defined(__TINYC__) && !defined(AMP_DEVICE) && !defined(__wasm__)
#    define AMPI_SSE_BY_NAME
#    define AMPI_BY_NAME(name, T, instruction) \
    AMP_INLINE T name(T a, T b) { \
        __asm__("{" instruction " %1, %0|" instruction " %0, %1}" : "+x"(a) : "x"(b)); \
        return a; \
    }
#  endif
#  if defined(AMPI_SSE_BY_NAME) && !defined(__SSE2_MATH__) /* the operators would be x87's, which round doubles twice */
AMPI_BY_NAME(amp_add, float, "addss")
AMPI_BY_NAME(amp_sub, float, "subss")
AMPI_BY_NAME(amp_mul, float, "mulss")
AMPI_BY_NAME(amp_dadd, double, "addsd")
AMPI_BY_NAME(amp_dsub, double, "subsd")
AMPI_BY_NAME(amp_dmul, double, "mulsd")
#  else
AMPI_OP2(amp_add, float, +)
AMPI_OP2(amp_sub, float, -)
AMPI_OP2(amp_mul, float, *)
AMPI_OP2(amp_dadd, double, +)
AMPI_OP2(amp_dsub, double, -)
AMPI_OP2(amp_dmul, double, *)
#  endif
#  ifdef AMPI_SSE_BY_NAME
AMPI_BY_NAME(amp_div, float, "divss")
AMPI_BY_NAME(amp_ddiv, double, "divsd")
AMP_INLINE float amp_sqrt(float a) {
    float r;
    __asm__("{sqrtss %1, %0|sqrtss %0, %1}" : "=x"(r) : "x"(a));
    return r;
}
AMP_INLINE double amp_dsqrt(double a) {
    double r;
    __asm__("{sqrtsd %1, %0|sqrtsd %0, %1}" : "=x"(r) : "x"(a));
    return r;
}
#  else
/* Fast-math takes the reciprocal of a divisor that is a constant, or that does not change in a loop, and multiplies by
   it. So a divisor is what an empty asm statement made of both operands. */
#    define AMPI_QUOTIENT(name, T) \
    AMP_INLINE T name(T a, T b) { \
        AMPI_HOLD T divisor = b, r; \
        AMPI_GUARD2(a, divisor); \
        r = a / divisor; \
        AMPI_GUARD(r); \
        return r; \
    }
AMPI_QUOTIENT(amp_div, float)
AMPI_QUOTIENT(amp_ddiv, double)
#    ifdef __cplusplus
extern "C++" {
#    endif
#    include <math.h>
#    ifdef __cplusplus
}
#    endif
AMPI_OP1(amp_sqrt, float, float, sqrtf(a))
AMPI_OP1(amp_dsqrt, double, double, sqrt(a))
#  endif
AMPI_OP1(amp_narrow, float, double, (float)a)
AMPI_OP1(amp_widen, double, float, (double)a)
AMP_INLINE int amp_less(float a, float b) { return a < b; }
AMP_INLINE float amp_negative(float x) { return ampi_float(ampi_bits(x) ^ 0x80000000u); }
#endif
/* By the bits: a comparison may flush subnormals. */
AMP_INLINE int ampi_nonzero(float x) { return ampi_bits(x) << 1 != 0; }
/* a * b + c, rounded once, also where the machine has no such instruction. The product is exact in double. Narrowing
   the rounded sum s is right but where s lies halfway between two floats, or below their normal range: there s + e, the
   exact sum (Knuth's two-sum), is rounded to odd first (Boldo and Melquiond, see ampi_odd_f32). */
#if defined(__CUDA_ARCH__)
AMP_INLINE float amp_fma(float a, float b, float c) {
    float r;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c));
    return r;
}
#elif defined(__GNUC__) && (defined(__FMA__) || defined(__aarch64__))
AMP_INLINE float amp_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
AMPI_RARE float ampi_fma_rare(double p, double w, double s) {
    double t = amp_dsub(s, p), e = amp_dadd(amp_dsub(p, amp_dsub(s, t)), amp_dsub(w, t));
    uint64_t u, v;
    memcpy(&u, &s, sizeof u);
    memcpy(&v, &e, sizeof v);
    if (v << 1 == 0) return amp_narrow(s);
    u -= (u ^ v) >> 63; /* the signs differ: s lies beyond the exact sum */
    u |= 1u;
    memcpy(&s, &u, sizeof s);
    return amp_narrow(s);
}
AMP_INLINE float amp_fma(float a, float b, float c) {
    double p = amp_dmul(amp_widen(a), amp_widen(b)), w = amp_widen(c), s = amp_dadd(p, w);
    uint64_t u;
    memcpy(&u, &s, sizeof u);
    if ((u & 0x1fffffffu) != 0x10000000u && (u >> 52 & 0x7ffu) >= 897u) return amp_narrow(s); /* so do Inf and NaN */
    return ampi_fma_rare(p, w, s);
}
#endif
/* ampi_at_least, ampi_at_most: x, or the limit beyond it; NaN stays. ampi_recip: 1 / d, 1 <= d <= 2. */
#if defined(__CUDA_ARCH__)
#  if __CUDA_ARCH__ >= 800
AMPI_OP2(ampi_at_least, float, "max.NaN.f32", "f")
AMPI_OP2(ampi_at_most, float, "min.NaN.f32", "f")
AMPI_OP1(ampi_magnitude, float, float, "abs.f32", "f", "f") /* part of the next instruction; NaN: any */
#  else
AMP_INLINE float ampi_magnitude(float x) { return ampi_float(ampi_bits(x) & 0x7fffffffu); }
AMP_INLINE float ampi_at_least(float x, float limit) { return amp_less(x, limit) ? limit : x; }
AMP_INLINE float ampi_at_most(float x, float limit) { return amp_less(limit, x) ? limit : x; }
#  endif
AMPI_OP2(ampi_larger, float, "max.f32", "f") /* a, where b is NaN */
/* 1 / x, 1 / sqrt(x) and sqrt(x), nearly, for numbers in the middle of the range. */
AMPI_OP1(ampi_about_inverse, float, float, "rcp.approx.ftz.f32", "f", "f")
AMPI_OP1(ampi_about_rsqrt, float, float, "rsqrt.approx.ftz.f32", "f", "f")
AMPI_OP1(ampi_about_root, float, float, "sqrt.approx.ftz.f32", "f", "f")
/* The root, rounded to nearest, of a number in the middle of the range: what ptxas makes of sqrt.rn, without the branch
   for others. */
AMP_INLINE float ampi_root(float x) {
    float y = ampi_about_rsqrt(x), s = amp_mul(x, y);
    return amp_fma(amp_fma(amp_negative(s), s, x), amp_mul(y, 0.5f), s);
}
/* What ptxas makes of rcp.rn for such a d (seen for sm_75 to sm_120), without the branch for others. */
AMP_INLINE float ampi_recip(float d) {
    float r = ampi_about_inverse(d);
    return amp_fma(r, amp_fma(amp_negative(d), r, 1.0f), r);
}
#else
AMP_INLINE float ampi_at_least(float x, float limit) { return amp_less(x, limit) && !amp_is_nan(x) ? limit : x; }
AMP_INLINE float ampi_at_most(float x, float limit) { return amp_less(limit, x) && !amp_is_nan(x) ? limit : x; }
AMP_INLINE float ampi_magnitude(float x) { return ampi_float(ampi_bits(x) & 0x7fffffffu); }
AMP_INLINE float ampi_larger(float a, float b) { return amp_less(a, b) && !amp_is_nan(b) ? b : a; }
AMP_INLINE float ampi_about_inverse(float x) { return amp_div(1.0f, x); }
AMP_INLINE float ampi_about_rsqrt(float x) { return amp_div(1.0f, amp_sqrt(x)); }
AMP_INLINE float ampi_about_root(float x) { return amp_sqrt(x); }
AMP_INLINE float ampi_root(float x) { return amp_sqrt(x); }
AMP_INLINE float ampi_recip(float d) { return amp_div(1.0f, d); }
#endif
#undef AMPI_OP1
#undef AMPI_OP2
#undef AMPI_BY_NAME
#undef AMPI_SSE_BY_NAME

/* ---- doubles as a storage format.   tests: tests/test_arrays.c ---- */

/* The bits of a float to those of a double, exactly; NaN made quiet. */
AMP_INLINE uint64_t ampi_f64_of(uint32_t x) {
    uint64_t sign = (uint64_t)(x >> 31) << 63, a = x & 0x7fffffffu, e = 897;
    uint64_t quiet = a > 0x7f800000u ? (uint64_t)1 << 51 : 0;
    if (a == 0) return sign;
    if (a >= 0x7f800000u) return sign | (uint64_t)0x7ff << 52 | (a & 0x7fffffu) << 29 | quiet;
    if (a >= 0x00800000u) return sign | ((a << 29) + ((uint64_t)896 << 52));
    for (; !(a >> 23); e--)
        a <<= 1;
    return sign | e << 52 | (a & 0x7fffffu) << 29;
}
/* A double to the pattern of any dtype, rounded once; how, r and saturate as in ampi_encode, F32 always to nearest. */
AMP_INLINE uint32_t ampi_encode_f64(double x, amp_dtype t, amp_rounding how, uint32_t r, int saturate) {
    uint32_t odd = ampi_odd_f32(x), size = odd & 0x7fffffffu, nearest;
    if (t != AMP_F32) return ampi_encode_any(odd, t, how, r, saturate);
    if (size > 0x7f800000u) return odd;
    nearest = ampi_bits(amp_narrow(x));
    return saturate && (nearest & 0x7fffffffu) == 0x7f800000u ? nearest - 1u : nearest;
}
/* 0: a double is finite; 1: Inf; 2: NaN */
AMP_INLINE uint32_t ampi_f64_fault(uint64_t x) {
    x &= ~((uint64_t)1 << 63);
    return (uint32_t)(x >= (uint64_t)0x7ff << 52) + (uint32_t)(x > (uint64_t)0x7ff << 52);
}
/* ---- exp, log, GELU: our own, so that every backend has the same bits -----------------------------------------------
   What is done to one element is written once, at >>lanes near the end of this file, over operations on "lanes": one
   float here and in kernels, a vector on each SIMD path of the CPU backend. amp.h includes itself (AMP_SELF) for each
   of them: ampi_scalar_exp_scaled is AMPI_F(exp_scaled) there.   tests: tests/test_formats.c, tests/exhaustive.c */

#define AMPI_PASS_MATH   1 /* exp and the activations */
#define AMPI_PASS_UPDATE 2 /* the optimizers */
#define AMPI_PASS_ALIKE  3 /* operations that all paths of vectors spell alike */
#define AMPI_PASS_SCALAR 4 /* loops over arrays, one float at a time */
#define AMPI_PASS_VECTOR 5 /* all of it but the operations, for vectors */

typedef float ampi_scalar_floats;
typedef uint32_t ampi_scalar_words, ampi_scalar_u32;
typedef int ampi_scalar_mask;
AMP_INLINE float ampi_scalar_set(float x) { return x; }
AMP_INLINE uint32_t ampi_scalar_word(uint32_t x) { return x; }
AMP_INLINE float ampi_scalar_sqrt(float a) { return amp_sqrt(a); }
AMP_INLINE float ampi_scalar_root(float x) { return ampi_root(x); }
AMP_INLINE float ampi_scalar_negative(float a) { return amp_negative(a); }
AMP_INLINE float ampi_scalar_magnitude(float a) { return ampi_magnitude(a); }
AMP_INLINE float ampi_scalar_fuse(float a, float b, float c) { return amp_fma(a, b, c); }
AMP_INLINE float ampi_scalar_inverse(float d) { return ampi_recip(d); }
AMP_INLINE int ampi_scalar_greater(uint32_t a, uint32_t b) { return (int32_t)a > (int32_t)b; }
#define AMPI_SCALAR(name, T, value) \
    AMP_INLINE T ampi_scalar_##name(T a, T b) { return value; }
AMPI_SCALAR(add, float, amp_add(a, b))
AMPI_SCALAR(sub, float, amp_sub(a, b))
AMPI_SCALAR(mul, float, amp_mul(a, b))
AMPI_SCALAR(div, float, amp_div(a, b))
AMPI_SCALAR(at_least, float, ampi_at_least(a, b))
AMPI_SCALAR(at_most, float, ampi_at_most(a, b))
AMPI_SCALAR(max, uint32_t, (int32_t)a > (int32_t)b ? a : b)
AMPI_SCALAR(min, uint32_t, (int32_t)a > (int32_t)b ? b : a)
#undef AMPI_SCALAR
AMP_INLINE uint32_t ampi_scalar_select(int condition, uint32_t yes, uint32_t no) { /* no branch */
    uint32_t mask = 0u - (uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}
AMP_INLINE float ampi_scalar_choose(int condition, float yes, float no) { return condition ? yes : no; }
#define AMPI_F(name) ampi_scalar_##name
#define AMPI_PASS    AMPI_PASS_MATH
#include AMP_SELF
#undef AMPI_F

/* e^x. Error <= 1 ulp where the result is normal (tests: every float). x >= 88.72284 gives Inf, x < -103.9721 gives
   0, NaN gives NaN. */
AMP_INLINE float amp_exp(float x) {
    if (amp_is_nan(x)) return x;
    if (amp_less(88.72284f, x)) return ampi_float(0x7f800000u);
    if (amp_less(x, -103.9721f)) return 0.0f;
    if (amp_less(x, 0.0f)) return amp_mul(ampi_scalar_exp_scaled(x, 24), 5.9604644775390625e-8f);
    return amp_mul(ampi_scalar_exp_scaled(x, -24), 16777216.0f);
}

/* ln x. Error <= 1.5 ulp (tests: every float). x < 0 and NaN give NaN, 0 gives -Inf, Inf gives Inf. x = m 2^e, m in
   [sqrt(1/2), sqrt(2)); with s = (m-1)/(m+1): ln m = 2 (s + s^3/3 + ... + s^9/9), next term below 2^-31. */
AMP_INLINE float amp_log(float x) {
    uint32_t u = ampi_bits(x);
    int32_t k, e = 0;
    float f, s, z, p, en;
    if (u << 1 == 0) return ampi_float(0xff800000u);
    if (u >= 0x7f800000u) return u == 0x7f800000u ? x : ampi_float(0x7fc00000u);
    if (u < 0x00800000u) {
        u = ampi_bits(amp_mul(x, 8388608.0f));
        e = -23;
    }
    k = (int32_t)((u + 0x004afb0du) >> 23) - 127; /* 0x3f800000 - 0x004afb0d = 0x3f3504f3: sqrt(1/2) */
    f = amp_sub(ampi_float(u - ((uint32_t)k << 23)), 1.0f);
    s = amp_div(f, amp_add(2.0f, f));
    z = amp_mul(s, s);
    p = amp_add(amp_mul(z, 0.22222222f), 0.28571429f);
    p = amp_add(amp_mul(p, z), 0.4f);
    p = amp_add(amp_mul(p, z), 0.66666667f);
    p = amp_mul(amp_mul(p, z), s); /* ln m = 2s + p; 2s = f - s f */
    en = (float)(e + k);
    p = amp_add(amp_sub(p, amp_mul(s, f)), amp_mul(en, -2.12194440e-4f));
    return amp_add(amp_add(p, f), amp_mul(en, 0.693359375f));
}

/* GELU in its tanh form, x/2 (1 + tanh z) with z = sqrt(2/pi) (x + 0.044715 x^3), and its derivative. Errors <= 2.5e-7
   |x| and <= 3e-7 (tests: every float). Source: Hendrycks and Gimpel, arXiv 1606.08415. */
AMP_INLINE float amp_gelu(float x) { return ampi_scalar_gelu(x); }
AMP_INLINE float amp_gelu_grad(float x) { return ampi_scalar_gelu_grad(x); }
AMP_INLINE float amp_relu(float x) { return ampi_scalar_relu(x); }

/* Activations: name, rule, 1: backward reads aux, the value before the activation, 0: it reads y. The rule is a pair of
   functions at >>lanes, relu(x) and relu_back(dy, saved). To add one: its name in amp_act (>>products), its row, its
   rule. */
#define AMPI_ACT_LIST(X) \
    X(AMP_GELU, gelu, 1) \
    X(AMP_RELU, relu, 0) \
    X(AMP_GELU_ERF, gelu_erf, 1) \
    X(AMP_SILU, silu, 1) \
    X(AMP_TANH, tanh, 0) \
    X(AMP_SIGMOID, sigmoid, 0)
AMP_INLINE float ampi_act(amp_act act, float x) {
#define AMP_X(name, rule, aux) \
    if (act == name) return ampi_scalar_##rule(x);
    AMPI_ACT_LIST(AMP_X)
#undef AMP_X
    return x;
}
AMP_INLINE float ampi_act_grad(amp_act act, float dy, float saved) {
#define AMP_X(name, rule, aux) \
    if (act == name) return ampi_scalar_##rule##_back(dy, saved);
    AMPI_ACT_LIST(AMP_X)
#undef AMP_X
    return dy;
}
AMP_INLINE int ampi_act_reads_aux(amp_act act) {
#define AMP_X(name, rule, aux) || (act == name && (aux))
    return 0 AMPI_ACT_LIST(AMP_X);
#undef AMP_X
}

/* ---- dropout: element i is dropped if its random number is below the threshold; p = 1 drops all ----
   tests: tests/test_memory.c */
AMP_INLINE uint64_t amp_dropout_threshold(float p) {
    float t = amp_mul(p, 4294967296.0f);
    return (uint64_t)t;
}
AMP_INLINE float amp_dropout_factor(float p) {
    return p < 1.0f ? amp_narrow(amp_ddiv(1.0, amp_dsub(1.0, amp_widen(p)))) : 0.0f;
}
AMP_INLINE float amp_dropout_one(float x, uint32_t r, uint64_t threshold, float factor) {
    return r < threshold ? 0.0f : amp_mul(x, factor);
}

/* ---- the loss scale: what a scaler remembers, and its scale after a good step and after a bad one ----
   tests: tests/test_scaler.c, tests/test_edges.c */

#define AMP_FOUND_INF      1u
#define AMP_FOUND_NAN      2u
#define AMP_FOUND_OVERFLOW 4u

typedef struct amp_scaler_state { /* in context memory */
    float scale, inverse;         /* inverse = 1 / scale, kept for products */
    float growth_factor, backoff_factor, min_scale, max_scale;
    int32_t growth_interval, growth_tracker, hysteresis, hysteresis_tracker;
    uint32_t mode, no_check, dead_after;
    uint32_t found; /* AMP_FOUND_* of everything checked since the last update */
    uint32_t stuck; /* overflows in a row that could not lower the scale */
    uint32_t _pad;
    uint64_t good, bad, bad_in_a_row, bad_nan, bad_inf, bad_overflow;
} amp_scaler_state;

/* PyTorch's is 1 / scale in double, then rounded to float. That is what one division of floats gives: 53 bits are at
   least 2 * 24 + 2 (Figueroa, "When is double rounding innocuous?", 1995). */
AMP_INLINE float amp_inverse_scale(float scale) { return amp_div(1.0f, scale); }

/* The scale after one update; every backend and every table test runs this function. */
AMP_INLINE void amp_scaler_next(amp_scaler_state *s) {
    uint32_t found = s->found;
    float next;
    s->found = 0;
    if (found) {
        s->bad++;
        s->bad_in_a_row++;
        s->bad_nan += (found & AMP_FOUND_NAN) != 0;
        s->bad_inf += (found & AMP_FOUND_INF) != 0;
        s->bad_overflow += (found & AMP_FOUND_OVERFLOW) != 0;
        s->growth_tracker = 0;
        if (s->hysteresis_tracker > INT32_MIN) s->hysteresis_tracker--;
        if (s->hysteresis_tracker > 0) return;
        next = amp_mul(s->scale, s->backoff_factor);
        if (s->mode != AMP_SCALER_DYNAMIC)
            next = s->scale;
        else if (amp_less(next, s->min_scale))
            next = s->min_scale;
        if (amp_less(next, s->scale))
            s->stuck = 0;
        else if (s->stuck < UINT32_MAX)
            s->stuck++;
        s->scale = next;
        s->inverse = amp_inverse_scale(next);
    } else {
        s->good++;
        s->bad_in_a_row = 0;
        s->stuck = 0;
        s->hysteresis_tracker = s->hysteresis;
        if (s->growth_tracker < INT32_MAX) s->growth_tracker++;
        if (s->mode != AMP_SCALER_DYNAMIC || s->growth_interval <= 0 || s->growth_tracker < s->growth_interval) return;
        s->growth_tracker = 0;
        next = amp_mul(s->scale, s->growth_factor);
        if (amp_is_finite(next)) s->scale = amp_less(next, s->max_scale) ? next : s->max_scale;
        s->inverse = amp_inverse_scale(s->scale);
    }
}
AMP_INLINE uint32_t amp_scaler_dead(const amp_scaler_state *s) { return s->stuck >= s->dead_after; }

/* ---- weights in 16 + 16 bits, and in 16 + 8 ----
   The model copy h is w rounded to nearest even; a 16-bit remainder r holds the rest. The low half of the result is h,
   the high half r as two's complement.   tests: tests/test_layouts.c, tests/exhaustive.c
   FP16: r = (w - h) in units of 2^(E-25), E the exponent of h (at least -14): |r| <= 2^14, exact for zero and where h
         is a normal half; else within 2^-40 (rounded to nearest even). |w| >= 65520 and NaN live in h alone, as Inf and
         NaN.
   BF16: r = bits(w) - (h << 16): exact, but for a tie that rounds down (low bits exactly 0x8000), which comes back one
         ulp closer to zero. NaN stays NaN. */
AMP_INLINE uint32_t amp_split_pack(float w, amp_dtype t) {
    uint32_t u = ampi_bits(w), h = ampi_encode(u, t, AMP_NEAREST, 0, 0), e, r;
    if (t == AMP_BF16) {
        int32_t d = (int32_t)(u - (h << 16));
        if ((h & 0x7fffu) > 0x7f80u) return h;
        return h | (uint32_t)(d > 32767 ? 32767 : d) << 16;
    }
    if ((h & 0x7c00u) == 0x7c00u) return h;
    e = (h >> 10) & 31u;
    e = e ? e : 1u; /* h is in [2^(e-15), 2^(e-14)): the unit is 2^(e-40) */
    r = ampi_bits(amp_add(
            amp_mul(amp_sub(w, ampi_float(ampi_decode(h, t))), ampi_float((127u + 40u - e) << 23)), 12582912.0f)) -
        0x4b400000u;
    return h | (r << 16);
}
AMP_INLINE float amp_split_unpack(uint32_t packed, amp_dtype t) {
    uint32_t h = packed & 0xffffu, e;
    int32_t r = (int32_t)(packed >> 16) - (packed >> 31 ? 65536 : 0);
    if (t == AMP_BF16) return ampi_float((h & 0x7fffu) > 0x7f80u ? ampi_decode(h, t) : (h << 16) + (uint32_t)r);
    if (r == 0 || (h & 0x7c00u) == 0x7c00u) return ampi_float(ampi_decode(h, t));
    e = (h >> 10) & 31u;
    e = e ? e : 1u;
    return amp_add(ampi_float(ampi_decode(h, t)), amp_mul((float)r, ampi_float((127u - 40u + e) << 23)));
}
/* KAHAN: w = h + c, both BF16, packed the same way. */
AMP_INLINE uint32_t amp_kahan_pack(float w) {
    uint32_t h = ampi_encode(ampi_bits(w), AMP_BF16, AMP_NEAREST, 0, 0);
    if ((h & 0x7f80u) == 0x7f80u) return h;
    return h | ampi_encode(ampi_bits(amp_sub(w, ampi_float(h << 16))), AMP_BF16, AMP_NEAREST, 0, 0) << 16;
}
AMP_INLINE float amp_kahan_unpack(uint32_t packed) { /* c = +-0 adds nothing, so that the sign of a zero weight stays */
    float h = ampi_float(ampi_decode(packed & 0xffffu, AMP_BF16));
    return packed >> 16 << 17 ? amp_add(h, ampi_float(packed & 0xffff0000u)) : h;
}

/* SPLIT8: w as a number of 24 bits, whose upper 16 are the model copy h.
   It has the exponents of h's format and 8 more bits of mantissa (BF16: 15 in all, FP16: 18), and w is rounded to it as
   ampi_encode rounds, to nearest even or stochastically. h is that rounded once more, to nearest, a tie away from zero;
   the code is what is left, from -128 to 127 in steps of 1/256 of the spacing of h: the lower 8 bits. NaN lives in h
   alone. What FP16 cannot hold, but 24 bits can, is Inf in h and comes back. */
AMP_INLINE uint32_t ampi_split8_round(uint32_t a, amp_dtype t, amp_rounding how, uint32_t r) { /* a magnitude */
    const ampi_format f = ampi_format_of(t);
    const uint32_t bias = (f.emin - 1u) << 23;
    const uint32_t drop = 15u - f.mant;
    const uint32_t half = 1u << (drop - 1u);
    uint32_t more = r >> (32u - drop);
    if (f.emin > 1u && a < f.emin << 23) return ampi_on_grid(a, f.mant + 8u, f.emin, how, r);
    if (how == AMP_NEAREST) more = half - 1u + (a >> drop & 1u);
    return (a - bias + more) >> drop; /* what that gives, too */
}
AMP_INLINE uint32_t amp_split8_pack(float w, amp_dtype t, amp_rounding how, uint32_t r) {
    const uint32_t most = ampi_format_of(t).over << 8;
    const uint32_t u = ampi_bits(w);
    const uint32_t a = u & 0x7fffffffu;
    uint32_t q, h;
    if (a > 0x7f800000u) return ampi_encode(u, t, AMP_NEAREST, 0, 0);
    q = ampi_split8_round(a, t, how, r);
    if (q > most) q = most;
    h = (q + 0x80u) >> 8;
    h |= (u >> 31) << 15;
    return h | (q & 0xffu) << 16;
}
AMP_INLINE float amp_split8_unpack(uint32_t packed, amp_dtype t) {
    const ampi_format f = ampi_format_of(t);
    const uint32_t sign = packed << 16 & 0x80000000u;
    const uint32_t code = packed >> 16 & 0xffu;
    const uint32_t bias = (f.emin - 1u) << 23;
    uint32_t q = (packed & 0x7fffu) << 8;
    float x;
    q += (code ^ 0x80u) - 0x80u;
    if (q >= f.over << 8) return ampi_float(ampi_decode(packed & 0xffffu, t));
    if (f.emin > 1u && q >> (f.mant + 8u) == 0) {
        x = amp_mul((float)(int32_t)q, ampi_float((f.emin - f.mant - 8u) << 23));
        return ampi_float(sign | ampi_bits(x));
    }
    return ampi_float(sign | ((q << (15u - f.mant)) + bias));
}
AMP_INLINE int ampi_has_low(amp_master layout) { return layout != AMP_MASTER_F32 && layout != AMP_MASTER_NONE; }
/* How the low parts of a layout look as an array: patterns of this many bits. */
AMP_INLINE amp_dtype ampi_low_type(amp_master layout) { return layout == AMP_MASTER_SPLIT8 ? AMP_F8E4M3 : AMP_BF16; }

/* ---- a parameter set, as backends see it; then the jobs, which is what a backend is asked to do ----
   tests: tests/test_step.c, tests/test_params.c, tests/test_context.c (a backend of the test's own) */

#define AMP_CHUNK        65536u /* elements per chunk: unit of work and of every reduction */
#define AMP_PART         2048u  /* elements of a part: what is added up in FP32 */
#define AMP_PARTS        (AMP_CHUNK / AMP_PART)
#define AMP_LANES        256u
#define AMP_ROWS         32u /* of a part of a column, whose sums go to this many lanes */
#define AMP_COLUMN_LANES 8u
#define AMP_MOMENTS      ((int)(sizeof((amp_param *)0)->moment / sizeof(amp_array)))

typedef struct amp_param_entry {
    void *master; /* float, or NULL */
    void *model;  /* NULL when the master is the model copy */
    void *low;    /* SPLIT, KAHAN: 16-bit; SPLIT8: a byte; else NULL */
    void *grad;
    float *accum; /* or NULL */
    void *moment[AMP_MOMENTS];
    uint64_t count;
    uint32_t first_chunk; /* index of its first chunk; the others follow */
    uint32_t no_decay;
    amp_dtype model_dtype, grad_dtype, moment_dtype;
    amp_master layout; /* what it really has: F32 also for FP32 model copies */
    uint32_t group;
    uint32_t before; /* steps of the set before this parameter's first one; AMPI_HAS_STEPPED: it has been stepped */
} amp_param_entry;
#define AMPI_HAS_STEPPED 0xffffffffu

typedef struct amp_chunk { uint32_t param, index; } amp_chunk; /* elements [index * AMP_CHUNK, ...) of a parameter */

typedef struct amp_faults { /* what is wrong in one chunk */
    uint32_t nan, inf, overflow;
    uint32_t first; /* offset of the first bad element in the chunk; AMP_CHUNK if none */
} amp_faults;

typedef struct amp_partial { /* what inspection finds in one chunk; a backend uses as much of it as it wants */
    double sum[AMP_PARTS];   /* of squares of unscaled gradients, by the rule of sums */
    amp_faults faults;
} amp_partial;

AMP_INLINE uint64_t ampi_round256(uint64_t n) { return (n + 255u) & ~(uint64_t)255u; }

/* Faults of a chunk, one rule for every backend. A NaN or Inf gradient counts as such; a finite gradient whose product
   overflows, as FP32 or as it is stored, counts as overflow. */
AMP_INLINE amp_faults amp_no_faults(void) {
    amp_faults f = AMP_ZERO;
    f.first = AMP_CHUNK;
    return f;
}
/* Gradient g at offset `at`, whose product with 1 / scale is u. */
AMP_INLINE void amp_count_fault(amp_faults *f, float g, float u, uint32_t at) {
    uint32_t bits = ampi_bits(g) & 0x7fffffffu;
    uint32_t nan = bits > 0x7f800000u, inf = bits == 0x7f800000u;
    uint32_t overflow = bits < 0x7f800000u && !amp_is_finite(u);
    f->nan += nan;
    f->inf += inf;
    f->overflow += overflow;
    if ((nan | inf | overflow) && at < f->first) f->first = at;
}
AMP_INLINE void amp_count_f64(amp_faults *f, uint64_t x, uint32_t at) { /* a double */
    uint32_t fault = ampi_f64_fault(x);
    f->nan += fault == 2u;
    f->inf += fault == 1u;
    if (fault && at < f->first) f->first = at;
}
/* Product u, stored as something whose value is `stored`. */
AMP_INLINE void amp_count_lost(amp_faults *f, float u, float stored, uint32_t at) {
    if (!amp_is_finite(u) || amp_is_finite(stored)) return;
    f->overflow++;
    if (at < f->first) f->first = at;
}
/* Whether amp_count_lost can find anything when gradients of dtype `from` times inv are stored as `to`. */
AMP_INLINE int amp_may_lose(float inv, amp_dtype from, amp_dtype to) {
    return to != AMP_F32 && (to != from || amp_less(1.0f, inv));
}
AMP_INLINE uint32_t amp_found(uint64_t nan, uint64_t inf, uint64_t overflow) { /* AMP_FOUND_* */
    uint32_t found = nan ? AMP_FOUND_NAN : 0u;
    if (inf) found |= AMP_FOUND_INF;
    if (overflow) found |= AMP_FOUND_OVERFLOW;
    return found;
}
AMP_INLINE uint32_t amp_totals_found(const amp_totals *t) { return amp_found(t->nan, t->inf, t->overflow); }

/* The range of a sum of squares, from that of a part: what u is multiplied with before it is squared. 1, or a power of
   two, with which the part is added up again. */
AMP_INLINE float amp_squares_by(float sum) {
    uint32_t s = ampi_bits(sum) & 0x7fffffffu;
    if (s >= 0x7f800000u) return ampi_float((127u - 96u) << 23);
    return ampi_float(s < (127u - 100u) << 23 ? (127u + 96u) << 23 : 127u << 23);
}
AMP_INLINE double amp_squares_sum(float sum, float by) { /* of u, from that of u * by */
    double back = amp_widen(ampi_float((254u << 23) - ampi_bits(by)));
    return amp_dmul(amp_dmul(amp_widen(sum), back), back);
}

/* What the last update of a parameter with .count_lost did, in the blocks that it counts. An update that is NaN is
   none, and a weight that is NaN loses none. Sums and a maximum: the order of elements does not matter. */
#define AMP_COUNT_BLOCK 1024u
AMP_INLINE int amp_is_counted(uint64_t i, uint32_t every) { return (uint32_t)(i / AMP_COUNT_BLOCK) % every == 0; }
typedef struct amp_update_count {
    uint64_t updates; /* weights whose update was not 0 */
    uint64_t lost;    /* those of them that are stored as they were, bit for bit */
    uint32_t ratio;   /* largest |update| / spacing of the weight before it, as float bits; see amp_spacing_of */
    uint32_t _pad;
} amp_update_count;

typedef struct amp_param_table { /* every array in context memory, built once by amp_params_commit */
    amp_param_entry *entries;
    amp_chunk *chunks;
    amp_partial *partials;    /* one per chunk */
    amp_update_count *counts; /* one per parameter; zeros when an update that counts begins */
    amp_totals *totals;
    uint32_t n_entries, n_chunks;
    uint64_t n_elements; /* of all parameters */
} amp_param_table;

/* ---- jobs: arguments checked, defaults filled in, choices made by the front. They point to context memory ---- */

/* Where a device leaves a copy of the record for the host to read without waiting: 32 bits of it in the low half of
   each word, the number of the copy in the high half. It is whole when all numbers are equal, whatever came first. */
typedef struct amp_step_mirror { uint64_t word[sizeof(amp_step_record) / 4u]; } amp_step_mirror;

typedef struct amp_hyper { /* an amp_group, resolved */
    float lr, beta1, beta2, eps, weight_decay, momentum, dampening;
    uint32_t _pad;
    const float *lr_ptr; /* NULL: lr */
} amp_hyper;

/* sum_gradients: u = g * factor, factor = 1 / (scale * micro-batches). Squares of u are added up, and what is not
   finite is counted, into partials and totals. */
typedef struct amp_sum_job {
    amp_param_table table;
    const amp_scaler_state *scale; /* the scale that the gradients carry; NULL: none */
    const amp_step_record *window; /* divide by the number of micro-batches in its window; NULL: by `divide` */
    uint32_t divide;               /* >= 1 */
    uint32_t accum;                /* 1: the accumulators take the place of the gradients */
    uint32_t write;                /* 1: g = u, rounded, and what overflows there is counted, too. Not with accum */
    uint32_t _pad;
} amp_sum_job;

typedef enum amp_purpose {
    AMP_FOR_NORM,       /* norm and clip coefficient; nothing is judged: summed 1, fresh 1, scaler NULL */
    AMP_FOR_UNSCALE,    /* the gradients are written back unscaled: summed 1, fresh 1, sum.write 1, scaler given */
    AMP_FOR_ACCUMULATE, /* a micro-batch joins the window, or is dropped, or spoils it: summed is 1 when it is judged */
    AMP_FOR_STEP        /* a step is taken or skipped. With sum.accum the window is used up */
} AMP_INT amp_purpose;

/* conclude: from totals to the record. A step is judged (not finite: skip, and the scaler is told) when fresh is 1 and
   scaler is given; then summed is 1, too. */
typedef struct amp_inspect_job {
    amp_sum_job sum;
    amp_step_record *record;
    amp_step_mirror *mirror;  /* what the backend's mirror_create gave; NULL for a record that nobody polls */
    amp_scaler_state *scaler; /* or NULL */
    amp_purpose purpose;
    uint32_t summed; /* 1: totals are those of `sum`; 0: nothing was added up */
    /* 1: forget what the record says; 0: these gradients were unscaled before, and that judgement stands */
    uint32_t fresh;
    uint32_t next_scale; /* 1: then the next loss scale */
    uint32_t keep_going; /* AMP_FOR_ACCUMULATE: 1: a bad micro-batch is dropped; 0: it spoils the window */
    float clip_norm;     /* 0: none */
    uint32_t stochastic; /* AMP_FOR_STEP, these three: how the update will round, and its coefficients */
    uint32_t _pad;
    uint64_t seed;
    amp_hyper group[AMP_GROUPS];
} amp_inspect_job;

/* Optimizers. An update is a rule for one weight, at >>lanes: adam_one(w, m, v, u, c) ...; an optimizer is an update
   with its kind of weight decay and its default of beta2. To add one: its name in amp_optimizer (>>params), its formula
   at >>step, its rows here, its rule at >>lanes. */
/* clang-format off */
#define AMP_UPDATE_LIST(X) /* kind, rule, how many moment arrays it works on at this momentum, m before v */ \
    X(AMP_UPDATE_ADAM, adam, 2) \
    X(AMP_UPDATE_SGD,  sgd,  ampi_nonzero(momentum)) \
    X(AMP_UPDATE_LION, lion, 1)
#define AMP_OPTIMIZER_LIST(X) /* name, update, 1: weight decay multiplies w, 0: it is added to u; beta2 */ \
    X(AMP_ADAMW, AMP_UPDATE_ADAM, 1, 0.999f) \
    X(AMP_ADAM,  AMP_UPDATE_ADAM, 0, 0.999f) \
    X(AMP_SGD,   AMP_UPDATE_SGD,  0, 0.999f) \
    X(AMP_LION,  AMP_UPDATE_LION, 1, 0.99f)
#define AMP_X(kind, rule, moments) kind,
typedef enum amp_update_kind { AMP_UPDATE_LIST(AMP_X) AMP_UPDATE_COUNT } AMP_INT amp_update_kind;
#undef AMP_X
/* clang-format on */

AMP_INLINE int amp_moments_of(amp_update_kind update, float momentum) {
    switch (update) {
#define AMP_X(kind, rule, moments) \
case kind: return moments;
        AMP_UPDATE_LIST(AMP_X)
#undef AMP_X
    case AMP_UPDATE_COUNT: break;
    }
    return 0;
}

typedef struct amp_update_job {
    amp_param_table table;
    amp_step_record *record; /* read; weight_overflow and moment_overflow are written, */
    amp_step_mirror *mirror; /* there too */
    amp_update_kind kind;
    uint32_t decoupled; /* 1: weight decay multiplies w */
    uint32_t nesterov;
    float clip_value; /* 0: none */
    uint32_t accum;   /* 1: take the accumulators and write zeros to them */
    amp_dtype moment; /* of every parameter */
    uint32_t count;   /* not 0: lost updates of the weights that amp_is_counted(i, count) go to table.counts */
    uint32_t pairs;   /* 1: parameters have low parts beside their model copies */
    amp_hyper group[AMP_GROUPS];
} amp_update_job;

typedef struct amp_apply_job { /* w = w * decay - lr * u for one parameter, unless the record says skip */
    amp_param_table table;
    amp_step_record *record; /* as in amp_update_job */
    amp_step_mirror *mirror;
    const float *u;
    uint32_t param;
    uint32_t with_rates; /* 1: lr and decay of the parameter's group; 0: lr 1, decay 1 */
    uint32_t accum;      /* 1: then write zeros to its accumulators, also when skipping */
    uint32_t count;      /* as in amp_update_job */
} amp_apply_job;

typedef struct amp_add_job { /* accum += u, unless the record says skip */
    amp_param_table table;
    const amp_step_record *record;
} amp_add_job;

typedef struct amp_clip_job { /* g = clamp(g * record->clip, +-limit * scale), in place */
    amp_param_table table;
    const amp_step_record *record;  /* NULL: no factor */
    const amp_scaler_state *scaler; /* NULL: 1 */
    float limit;                    /* 0: none */
    uint32_t accum;                 /* 1: the accumulators instead of the gradients */
} amp_clip_job;

/* ---- products and losses: jobs   tests: tests/test_products.c, tests/test_fp8.c ---- */

#define AMPI_GEMM_PERMISSIONS (AMP_GEMM_TF32 | AMP_GEMM_REDUCED | AMP_GEMM_F16_SUM | AMP_GEMM_FAST_FP8)
#define AMPI_GEMM_FLAGS       (AMPI_GEMM_PERMISSIONS | AMP_GEMM_EMULATE | AMP_GEMM_ORDERED)

/* A product's job is its desc with everything filled in: m, n and batch > 0; ld and stride complete, a broadcast stride
   0; alpha.value and beta.value, c (d, where the desc had none); flags with the context's, permissions without
   AMP_GEMM_ORDERED only; trans_a, trans_b and backward 0 or 1, backward never with AMP_ACT_NONE;
   bias_per_row 0 without bias and dbias; sum_batches 0 with batch 1; aux AMP_MASK with AMP_RELU only, its rows packed,
   whatever ldd is. data NULL: c is not read (beta is 0; ldc and stride_c are d's), there is no bias, aux or
   dbias. d_dtype and pin are done with: NULL and AMP_AUTO. */
typedef amp_gemm_desc amp_gemm_job;
AMP_INLINE size_t amp_gemm_outputs(const amp_gemm_job *j) { return j->sum_batches ? 1 : j->batch; } /* of batches */
AMP_INLINE size_t amp_gemm_biases(const amp_gemm_job *j) { return j->bias_per_row ? j->m : j->n; }
AMP_INLINE int amp_gemm_masked(const amp_gemm_job *j) { return j->aux.data && j->aux.dtype == AMP_MASK; }
AMP_INLINE size_t amp_gemm_mask_bytes(const amp_gemm_job *j) {
    return amp_gemm_outputs(j) * j->m * ampi_mask_pitch(j->n);
}

typedef struct amp_bias_grad_job { /* dy = act_grad(dy, saved) in place unless act is NONE; then column sums of dy */
    amp_array dy, saved;           /* [rows, cols]; saved: ReLU's may be AMP_MASK */
    amp_array dbias;               /* [cols], or data NULL */
    size_t rows, cols, ld, step;   /* elements between rows, and columns; with an act ld is cols, and step is 1 */
    amp_act act;
    uint32_t accumulate; /* 1: add to dbias */
} amp_bias_grad_job;
AMP_INLINE amp_bias_grad_job amp_gemm_sums(const amp_gemm_job *j) { /* those that a product's dbias gets, of its d */
    amp_bias_grad_job s = AMP_ZERO;
    s.dy = j->d;
    s.dbias = j->dbias;
    s.rows = j->bias_per_row ? j->n : j->m;
    s.cols = amp_gemm_biases(j);
    s.ld = j->bias_per_row ? 1 : j->n;
    s.step = j->bias_per_row ? j->n : 1;
    return s;
}

/* The mean is that of all rows, which labels and row_loss are about; logits, targets and dlogits have `rows` of them,
   from number `first` on. The loss is made with the last. */
typedef struct amp_xent_job { /* rows > 0 */
    size_t all, first, rows, classes, ld;
    amp_array logits, dlogits;
    amp_array targets, weights; /* or data NULL */
    const void *labels;         /* NULL: softmax, or targets */
    float *loss, *row_loss;
    const amp_scaler_state *scaler; /* NULL: scale 1 */
    float factor, smoothing;
    uint32_t sum;
    uint32_t softmax;     /* 1: dlogits gets exp(x - max) / sum * factor */
    uint32_t label_bytes; /* 4 or 8: signed; 1: unsigned */
    uint32_t each;        /* 1: every class has a target of its own: targets, or weights with smoothing */
    size_t padding;       /* columns of dlogits after its classes that are written as zeros: 0, or ld - classes */
} amp_xent_job;

/* Of one tensor, in context memory. Members of 4 bytes: a state file has them as words. */
typedef struct amp_fp8_state { /* 32 bytes: cuBLASLt wants what it reads, inverse and scale, at multiples of 16 */
    float inverse;             /* 1 / scale */
    float amax;                /* of the last cast */
    float window;              /* delayed scaling: the largest of the history */
    uint32_t at;               /* where in the history the next amax goes */
    float scale;               /* of the last cast: q = x * scale */
    uint32_t found;            /* bits of the amax of a cast that is running, and its blocks that are done; else 0 */
    uint32_t ticket;           /* see found */
    uint32_t _pad;
} amp_fp8_state;

typedef struct amp_quantize_job { /* rows, cols > 0 */
    size_t rows, cols;
    amp_array src, dst, dst_t; /* see amp_quantize */
    amp_fp8_state *state;
    float *history; /* delayed scaling: n_history numbers; NULL: current scaling */
    uint32_t n_history;
    uint32_t power_of_two;
    uint32_t keep;
    float most; /* the format's largest finite number / 2^margin */
} amp_quantize_job;

typedef struct amp_activation_job { /* out[i] = act(in[i]), or in[i] * act'(saved[i]) where saved is there; count > 0 */
    amp_array in, saved, out;
    size_t count;
    amp_act act;
    uint32_t _pad;
} amp_activation_job;
typedef amp_dropout_desc amp_dropout_job; /* count > 0, y's dtype known; see amp_dropout_one */

/* ---- products: the math of one element   tests: tests/test_products.c, tests/test_ordered.c ---- */

/* All factors of a sum over k in one, and those of c; read where the product runs. Where those of c give 0, c does not
   count, whatever it is (BLAS's rule; so does cuBLASLt with factors on the device). A sum over k always counts. */
AMP_INLINE float amp_gemm_alpha(const amp_gemm_job *j) {
    float alpha = j->alpha_ptr ? amp_mul(j->alpha.value, *j->alpha_ptr) : j->alpha.value;
    if (j->scale_a) alpha = amp_mul(alpha, *j->scale_a);
    return j->scale_b ? amp_mul(alpha, *j->scale_b) : alpha;
}
AMP_INLINE float amp_gemm_beta(const amp_gemm_job *j) {
    return j->beta_ptr ? amp_mul(j->beta.value, *j->beta_ptr) : j->beta.value;
}

/* The epilogue of a product, each operation rounded once. First from a sum over k to the value before the act; c and
   bias are used where the job has them. */
AMP_INLINE float amp_epilogue_before(const amp_gemm_job *j, float sum, float alpha, float beta, float c, float bias) {
    float v = amp_mul(alpha, sum);
    if (j->c.data && ampi_nonzero(beta)) v = amp_add(v, amp_mul(beta, c));
    return j->bias.data ? amp_add(v, bias) : v;
}
/* A value for an FP8 d: the largest magnitude (float bits) is noted, then it is scaled and saturated. NaN stays NaN. */
AMP_INLINE float amp_epilogue_f8(float v, amp_dtype t, const float *scale, uint32_t *amax) {
    uint32_t most = ampi_decode_any(ampi_format_of(t).maxf, t), size = ampi_bits(v) & 0x7fffffffu;
    if (size > *amax) *amax = size;
    if (scale) v = amp_mul(v, *scale);
    size = ampi_bits(v) & 0x7fffffffu;
    return size > most && size <= 0x7f800000u ? ampi_float(most | (ampi_bits(v) & 0x80000000u)) : v;
}
/* The value before act as aux gets it: FP8 saturates, for derivatives are constant out there. */
AMP_INLINE float amp_epilogue_aux(const amp_gemm_job *j, float v) {
    uint32_t unused = 0;
    return amp_dtype_size(j->aux.dtype) == 1u ? amp_epilogue_f8(v, j->aux.dtype, NULL, &unused) : v;
}

/* ---- FP8 with a scale per tensor: the rules of >>fp8 ----
   Which scale an amax makes, which one a cast uses, and what a cast leaves for the next. Every backend calls these.
   tests: tests/test_fp8.c */

/* The scale for an amax; `otherwise` for 0 and Inf. Of an amax so small that the quotient is Inf, the largest float. */
AMP_INLINE float amp_fp8_scale_of(const amp_quantize_job *j, float amax, float otherwise) {
    uint32_t scale;
    if (!ampi_nonzero(amax) || !amp_is_finite(amax)) return otherwise;
    scale = ampi_bits(amp_div(j->most, amax));
    if (scale > 0x7f7fffffu) scale = 0x7f7fffffu;
    return ampi_float(j->power_of_two ? scale & 0x7f800000u : scale);
}
/* The scale that a cast uses. Current scaling: what amp_fp8_end has left. */
AMP_INLINE float amp_fp8_begin(const amp_quantize_job *j) {
    if (j->keep || !j->history) return j->state->scale;
    return amp_fp8_scale_of(j, j->state->window, j->state->scale);
}
/* What a cast leaves, by one thread. 1: the history has a new amax, so its largest is wanted. */
AMP_INLINE int amp_fp8_end(const amp_quantize_job *j, float amax) {
    amp_fp8_state *s = j->state;
    s->scale = j->history ? amp_fp8_begin(j) : amp_fp8_scale_of(j, amax, 1.0f);
    s->inverse = amp_div(1.0f, s->scale);
    s->amax = amax;
    if (!j->history || !ampi_nonzero(amax)) return 0;
    j->history[s->at % j->n_history] = amax;
    s->at = (s->at + 1u) % j->n_history;
    return 1;
}
AMP_INLINE uint32_t amp_fp8_most(amp_dtype t) { return ampi_decode_any(ampi_format_of(t).maxf, t); } /* float bits */

/* ---- cross-entropy: what every backend does with the logits of a row, and the factors of loss and gradients ----
   tests: tests/test_products.c */

/* One row of cross-entropy, in this order on every backend, with t(x, max) = 2^24 e^(x - max) of ampi_scalar_exp_term:
     max  = largest logit that is not NaN, at least AMP_XENT_LEAST;  mean = (sum of x) / classes when smoothing
     sum  = sum of t(x, max) as float, by the rule of sums but for this: a part adds up t(x, its own largest), so that
            it is read once; with the largest of its chunk and those before it, that sum is multiplied by e^(old - new)
            in double, and so is what the lanes of an array have added up before
     loss = (1-s) * ((max - x[label]) + log(sum / 2^24))  [+ s * ((max - mean) + log(sum / 2^24))]
     dx   = fma(t, factor * (1 / sum), -factor * (s / classes))
            at the label ((t / sum - (1-s)) - s / classes) * factor
   With weights the loss times w[label] (0 if that is 0, whatever x[label] is), and factor times w[label] for factor.
   Where each class has its own target (targets, weights with smoothing), with q = (s / classes + (1-s) * target) [* w]:
     loss = (sum of (max - x) * q, where q is not 0) + (sum of q) * log(sum / 2^24)
     dx   = fma(t, factor * ((sum of q) / sum), -(q * factor)) */
#define AMP_XENT_LEAST (-3.402823466e38f) /* not -Inf: of a part that is all -Inf the terms are 0 and no NaN */
AMP_INLINE float amp_xent_term(float x, float max) { return ampi_scalar_exp_term(amp_sub(x, max)); }
AMP_INLINE double amp_xent_rescaled(double sum, float max, float larger) {
    return amp_dmul(sum, amp_dmul(amp_widen(amp_xent_term(max, larger)), 1.0 / 16777216.0));
}
AMP_INLINE float amp_xent_loss_one(float smoothing, float max, float target, float mean, float sum) {
    float log_sum = amp_log(amp_mul(sum, 5.9604644775390625e-8f));
    float loss = amp_add(amp_sub(max, target), log_sum);
    if (!ampi_nonzero(smoothing)) return loss;
    loss = amp_mul(amp_sub(1.0f, smoothing), loss);
    return amp_add(loss, amp_mul(smoothing, amp_add(amp_sub(max, mean), log_sum)));
}
/* The label of a row, one of all; negative: left out. */
AMP_INLINE int64_t amp_xent_label(const amp_xent_job *j, size_t row) {
    if (j->label_bytes == 4u) return ((const int32_t *)j->labels)[row];
    if (j->label_bytes == 8u) return ((const int64_t *)j->labels)[row];
    return j->label_bytes ? (int64_t)((const uint8_t *)j->labels)[row] : 0;
}
AMP_INLINE int amp_xent_is_wrong(const amp_xent_job *j, int64_t label) { return (uint64_t)label >= j->classes; }
/* What it counts in the mean. */
AMP_INLINE float amp_xent_row_weight(const amp_xent_job *j, int64_t label) {
    if (label < 0) return 0.0f;
    if (!j->weights.data || !j->labels || amp_xent_is_wrong(j, label)) return 1.0f;
    return amp_load(j->weights.data, j->weights.dtype, (size_t)label);
}
/* Where each class has a target of its own: q, what is added up of it for the loss, and its gradient. */
AMP_INLINE float amp_xent_target(float keep, float share, float target) {
    return amp_add(share, amp_mul(keep, target));
}
AMP_INLINE float amp_xent_miss(float q, float max, float x) {
    return ampi_nonzero(q) ? amp_mul(amp_sub(max, x), q) : q;
}
AMP_INLINE float amp_xent_loss_each(float misses, float q, float sum) {
    return amp_add(misses, amp_mul(q, amp_log(amp_mul(sum, 5.9604644775390625e-8f))));
}
/* What the gradients of a row need. */
typedef struct amp_xent_row {
    float max, sum, target;    /* target: the logit at the label */
    float by, less;            /* for all but the label: fma(t, by, -less) */
    float keep, share, factor; /* for the label */
} amp_xent_row;
/* From max, sum and target to all of it. q: the sum of the targets. The first half is the same for all rows. */
AMP_INLINE void amp_xent_row_begin(amp_xent_row *r, const amp_xent_job *j) {
    r->keep = amp_sub(1.0f, j->smoothing);
    r->share = amp_div(j->smoothing, (float)j->classes);
}
AMP_INLINE void amp_xent_row_factors(amp_xent_row *r, float factor, float q) {
    r->factor = factor;
    r->by = amp_mul(factor, amp_div(q, r->sum));
    r->less = amp_mul(factor, r->share);
}
AMP_INLINE void amp_xent_row_end(amp_xent_row *r, const amp_xent_job *j, float factor, float q) {
    amp_xent_row_begin(r, j);
    amp_xent_row_factors(r, factor, q);
}
AMP_INLINE float amp_xent_grad_at(const amp_xent_row *r, float term) { /* at the label, whose term it is */
    return amp_mul(amp_sub(amp_sub(amp_div(term, r->sum), r->keep), r->share), r->factor);
}
AMP_INLINE float amp_xent_grad_label(const amp_xent_row *r) {
    return amp_xent_grad_at(r, amp_xent_term(r->target, r->max));
}
AMP_INLINE float amp_xent_grad_one(const amp_xent_row *r, float x) {
    return amp_fma(amp_xent_term(x, r->max), r->by, amp_negative(r->less));
}
AMP_INLINE float amp_xent_grad_each(const amp_xent_row *r, float x, float q) {
    return amp_fma(amp_xent_term(x, r->max), r->by, amp_negative(amp_mul(q, r->factor)));
}
/* The factors of the loss and of every gradient; counted: the sum of what the rows count, by the rule of sums. */
AMP_INLINE double amp_xent_weight(const amp_xent_job *j, double counted) {
    return j->sum || !ampi_nonzero(amp_narrow(counted)) ? 1.0 : amp_ddiv(1.0, counted);
}
AMP_INLINE float amp_xent_factor(const amp_xent_job *j, double counted) {
    float scale = j->scaler ? j->scaler->scale : 1.0f;
    return amp_mul(amp_mul(j->factor, scale), amp_narrow(amp_xent_weight(j, counted)));
}

/* ---- inspection: from what was found in the gradients to the record, the scaler and the rates of a step ----
   tests: tests/test_step.c, tests/test_scaler.c, tests/test_phases.c */

/* What gradients are multiplied with: 1 / (scale * micro-batches), once in double. */
AMP_INLINE float amp_sum_scale(const amp_sum_job *job) { return job->scale ? job->scale->scale : 1.0f; }
AMP_INLINE uint32_t amp_sum_divide(const amp_sum_job *job) {
    return job->window ? job->window->window_good : job->divide;
}
AMP_INLINE float amp_factor_of(float scale, uint32_t micro_batches) {
    if (micro_batches <= 1) return amp_inverse_scale(scale);
    return amp_narrow(amp_ddiv(1.0, amp_dmul(amp_widen(scale), (double)micro_batches)));
}
AMP_INLINE float amp_sum_factor(const amp_sum_job *job) {
    return amp_factor_of(amp_sum_scale(job), amp_sum_divide(job));
}
/* min(1, max_norm / (norm + 1e-6)); 1 for max_norm 0. */
AMP_INLINE float amp_clip_factor(float max_norm, double norm) {
    double c;
    if (!ampi_nonzero(max_norm)) return 1.0f;
    c = amp_ddiv(amp_widen(max_norm), amp_dadd(norm, 1e-6));
    return c < 1.0 ? amp_narrow(c) : 1.0f;
}

/* 1 - beta^t for two betas: repeated squaring, each product rounded to double; side by side, so that neither waits for
   the other. */
AMP_INLINE void ampi_bias_corrections(double *bc1, double *bc2, double beta1, double beta2, uint64_t t) {
    double r1 = 1.0, r2 = 1.0;
    for (; t; t >>= 1) {
        if (t & 1u) {
            r1 = amp_dmul(r1, beta1);
            r2 = amp_dmul(r2, beta2);
        }
        beta1 = amp_dmul(beta1, beta1);
        beta2 = amp_dmul(beta2, beta2);
    }
    *bc1 = amp_dsub(1.0, r1);
    *bc2 = amp_dsub(1.0, r2);
}
/* What step number `steps` needs for one group. */
AMP_INLINE void amp_rates_of(amp_rates *r, const amp_hyper *g, uint64_t steps) {
    double lr = amp_widen(g->lr_ptr ? *g->lr_ptr : g->lr), bc1, bc2;
    ampi_bias_corrections(&bc1, &bc2, amp_widen(g->beta1), amp_widen(g->beta2), steps);
    r->lr = amp_narrow(lr);
    r->step_size = amp_narrow(amp_ddiv(lr, bc1));
    r->rsqrt_bc2 = amp_narrow(amp_ddiv(1.0, amp_dsqrt(bc2)));
    r->decay = amp_narrow(amp_dsub(1.0, amp_dmul(lr, amp_widen(g->weight_decay))));
}

/* Where the end of an inspection works: the job's record and scaler, or copies of them, and what it need not find out
   itself. */
typedef struct ampi_ending {
    amp_step_record *record;
    amp_scaler_state *scaler; /* looked at where the job has one */
    float factor;             /* amp_sum_factor */
    int finite;               /* the learning rates are */
} ampi_ending;
AMP_INLINE void ampi_conclude_fresh(const amp_inspect_job *job, const ampi_ending *at) {
    amp_step_record *r = at->record;
    r->skip = 0;
    r->nan = r->inf = r->overflow = r->first_index = 0;
    r->first_param = 0;
    r->scale = job->scaler ? at->scaler->scale : 1.0f;
    if (!job->summed) r->norm = -1.0;
}
AMP_INLINE void ampi_conclude_faults(const ampi_ending *at, const amp_totals *totals) {
    amp_step_record *r = at->record;
    uint32_t found = amp_totals_found(totals);
    r->nan = totals->nan;
    r->inf = totals->inf;
    r->overflow = totals->overflow;
    r->first_index = totals->first_index;
    r->first_param = totals->first_param;
    if (at->scaler->no_check) found = 0;
    at->scaler->found |= found;
    r->skip = found != 0;
}
AMP_INLINE void ampi_conclude_micro_batch(const amp_inspect_job *job, amp_step_record *r) {
    if (!r->skip) {
        r->window_good++;
        return;
    }
    r->window_bad++;
    if (!job->keep_going) r->window_lost = 1;
}
AMP_INLINE amp_outcome ampi_outcome_of(const amp_step_record *r) {
    if (!r->skip) return AMP_STEPPED;
    if (r->nan) return AMP_SKIPPED_NAN;
    if (r->inf) return AMP_SKIPPED_INF;
    return r->overflow ? AMP_SKIPPED_OVERFLOW : AMP_SKIPPED_WINDOW;
}
AMP_INLINE int ampi_rate_is_finite(const amp_hyper *g) { return !g->lr_ptr || amp_is_finite(*g->lr_ptr); }
AMP_INLINE int ampi_conclude_step(const amp_inspect_job *job, const ampi_ending *at) { /* 1: a step is taken */
    amp_step_record *r = at->record;
    if (job->sum.accum) { /* a lost or empty window does not step */
        if (r->window_lost || r->window_good == 0) r->skip = 1;
        r->window_good = r->window_bad = r->window_lost = 0;
    }
    r->outcome = ampi_outcome_of(r);
    if (!r->skip && !at->finite) {
        r->skip = 1;
        r->outcome = AMP_SKIPPED_RATE;
    }
    r->seed = job->seed;
    r->stochastic = job->stochastic;
    if (r->skip) {
        r->skipped++;
        return 0;
    }
    r->steps++;
    return 1;
}

/* The norm, and the clip factor of gradients in which nothing was found: a device finds them beside the rest. */
AMP_INLINE void ampi_conclude_norm(const amp_inspect_job *job, amp_step_record *r, const amp_totals *totals) {
    if (!job->summed) return;
    r->norm = amp_dsqrt(totals->sum);
    if (!amp_totals_found(totals)) r->clip = amp_clip_factor(job->clip_norm, r->norm);
}
/* By a norm that is not finite nothing can be divided: a step that is taken all the same takes the factor 0, as PyTorch
   does for Inf, so that finite weights get no unclipped update. */
AMP_INLINE void ampi_conclude_unclipped(const amp_inspect_job *job, amp_step_record *r, const amp_totals *totals) {
    const int clips = job->purpose == AMP_FOR_STEP && !r->skip && ampi_nonzero(job->clip_norm);
    if (!job->summed)
        r->clip = 1.0f;
    else if (amp_totals_found(totals))
        r->clip = clips ? 0.0f : 1.0f;
}
/* The end of an inspection but for ampi_conclude_norm, by one thread: from totals (read when summed is 1) to the
   record, the scaler, the next scale. 1: a step is taken, so the record wants the rates of every group for its step
   count. */
AMP_INLINE int ampi_conclude_record(const amp_inspect_job *job, const ampi_ending *at, const amp_totals *totals) {
    amp_step_record *r = at->record;
    int stepped = 0;
    if (job->fresh) ampi_conclude_fresh(job, at);
    r->inv_scale = job->sum.write ? 1.0f : at->factor;
    if (job->summed && job->fresh && job->scaler) ampi_conclude_faults(at, totals);
    ampi_conclude_unclipped(job, r, totals);
    if (job->purpose == AMP_FOR_ACCUMULATE) ampi_conclude_micro_batch(job, r);
    if (job->purpose == AMP_FOR_STEP) stepped = ampi_conclude_step(job, at);
    if (job->next_scale) amp_scaler_next(at->scaler);
    return stepped;
}
/* All of it by one thread; a device shares out the groups. */
AMP_INLINE void amp_conclude(const amp_inspect_job *job, const amp_totals *totals) {
    amp_step_record *r = job->record;
    ampi_ending at;
    uint32_t i;
    at.record = r;
    at.scaler = job->scaler;
    at.factor = amp_sum_factor(&job->sum);
    at.finite = 1;
    for (i = 0; i < AMP_GROUPS; i++)
        at.finite &= ampi_rate_is_finite(&job->group[i]);
    ampi_conclude_norm(job, r, totals);
    if (!ampi_conclude_record(job, &at, totals)) return;
    for (i = 0; i < AMP_GROUPS; i++)
        amp_rates_of(&r->rate[i], &job->group[i], r->steps);
}

/* ---- moments in 8 bits (AMP_MOMENT_8BIT) ----
   A block of AMP_MOMENT_BLOCK elements has a scale, its largest magnitude as a normal number, or 0. A code k says which
   share of it an element is: of the second moment (k / 255)^4; of the first, with a sign (0x80), s (s + 1/2) / (3/2),
   s = (k / 127)^2. Rounded stochastically between the neighbours, with 16 bits of amp_random(seed + 1, ...) each: m
   takes the lower half, v the upper one. A v that is not 0 never becomes 0, so it is at least 2^-32 of its block's
   largest, and its root no less than the smallest m: an update is not divided by eps alone. Inf and NaN become the
   largest magnitude. Why these codes: docs/memory.md.
   The scales follow the codes, which begin and end at multiples of 256 bytes.   tests: tests/test_moments.c */
#define AMP_MOMENT_BLOCK       256u
#define AMPI_MOMENT_TOP(which) ((which) ? 255u : 127u)

AMP_INLINE uint64_t ampi_moment_blocks(uint64_t count) { return (count + AMP_MOMENT_BLOCK - 1u) / AMP_MOMENT_BLOCK; }
AMP_INLINE float *ampi_moment_scales(const amp_param_entry *e, uint32_t which) {
    return (float *)(void *)((char *)e->moment[which] + ampi_round256(e->count));
}
/* From the bits of a block's largest magnitude, and back; 0 for 0. */
AMP_INLINE float ampi_moment_scale(uint32_t amax) {
    if (amax == 0) return 0.0f;
    amax = amax < 0x00800000u ? 0x00800000u : amax;
    return ampi_float(amax > 0x7f7fffffu ? 0x7f7fffffu : amax);
}
/* Of a scale as above. Not by ampi_nonzero: for sm_100 nvcc makes a comparison of that here, which may flush. */
AMP_INLINE float ampi_moment_inverse(float scale) { return ampi_bits(scale) != 0 ? amp_div(1.0f, scale) : 0.0f; }

/* ---- an update of one element: its coefficients; its rule is at >>lanes (ampi_scalar_adam_one: AMPI_F(adam_one)) ----
   tests: tests/test_step.c, tests/test_layouts.c */

typedef struct amp_coef {   /* what one parameter's update needs, from the desc, the record and the parameter */
    float inv, clip, limit; /* limit 0: none */
    float beta1, one_beta1, beta2, one_beta2, eps; /* Adam, AdamW */
    float lr, step_size, rsqrt_bc2, decay;         /* decay multiplies w (AdamW); 1: none */
    float l2;                                      /* added as l2 * w (SGD, Adam); 0: none */
    float momentum, one_dampening;                 /* SGD */
    uint32_t first, nesterov;
} amp_coef;

AMP_INLINE int amp_is_first_step(uint64_t steps, const amp_param_entry *p) {
    return p->before != AMPI_HAS_STEPPED && steps == (uint64_t)p->before + 1u;
}
AMP_INLINE amp_coef amp_coef_of(const amp_update_job *job, const amp_param_entry *p) {
    const amp_hyper *g = &job->group[p->group];
    const amp_rates *r = &job->record->rate[p->group];
    amp_coef c;
    c.inv = job->record->inv_scale;
    c.clip = job->record->clip;
    c.limit = job->clip_value;
    c.beta1 = g->beta1;
    c.one_beta1 = amp_narrow(amp_dsub(1.0, amp_widen(g->beta1)));
    c.beta2 = g->beta2;
    c.one_beta2 = amp_narrow(amp_dsub(1.0, amp_widen(g->beta2)));
    c.eps = g->eps;
    c.lr = r->lr;
    c.step_size = r->step_size;
    c.rsqrt_bc2 = r->rsqrt_bc2;
    c.decay = job->decoupled && !p->no_decay ? r->decay : 1.0f;
    c.l2 = job->decoupled || p->no_decay ? 0.0f : g->weight_decay;
    c.momentum = g->momentum;
    c.one_dampening = amp_narrow(amp_dsub(1.0, amp_widen(g->dampening)));
    c.first = (uint32_t)amp_is_first_step(job->record->steps, p);
    c.nesterov = job->nesterov;
    return c;
}
AMP_INLINE amp_coef amp_coef_of_apply(const amp_apply_job *job, const amp_param_entry *p) {
    const amp_rates *r = &job->record->rate[p->group];
    amp_coef c = AMP_ZERO;
    c.inv = c.clip = 1.0f;
    c.lr = job->with_rates ? r->lr : 1.0f;
    c.decay = job->with_rates && !p->no_decay ? r->decay : 1.0f;
    return c;
}

/* Clipping alone: gradients stay scaled, so the limit is. */
AMP_INLINE int amp_clip_is_idle(const amp_clip_job *job) {
    return !ampi_nonzero(job->limit) && ampi_bits(job->record->clip) == 0x3f800000u;
}
AMP_INLINE amp_coef amp_coef_of_clip(const amp_clip_job *job) {
    amp_coef c = AMP_ZERO;
    c.inv = 1.0f;
    c.clip = job->record ? job->record->clip : 1.0f;
    c.limit = job->scaler ? amp_mul(job->limit, job->scaler->scale) : job->limit;
    return c;
}

/* The spacing of a weight in the format that keeps it, 2^(exponent - mant), but at least 2^-126: for KAHAN that of 16
   significant bits. An update's ratio to it is ampi_scalar_in_spacings times rest: 0 where the weight is Inf or NaN. */
typedef struct amp_spacing {
    uint32_t most; /* bits of the largest 2^(128 - exponent) */
    float rest;    /* 2^(mant - 1) */
} amp_spacing;
AMP_INLINE amp_spacing amp_spacing_of(amp_master layout, amp_dtype model) {
    const ampi_format f = ampi_format_of(model);
    uint32_t mant = 23, least = 1;
    amp_spacing s;
    if (layout == AMP_MASTER_NONE) {
        mant = f.mant;
        least = f.emin;
    }
    if (layout == AMP_MASTER_KAHAN) mant = 15;
    if (layout == AMP_MASTER_SPLIT && model == AMP_F16) least = 111; /* in steps of 2^-39: see amp_split_pack */
    if (layout == AMP_MASTER_SPLIT8) {
        mant = f.mant + 8u;
        least = f.emin;
    }
    s.most = (255u - (least > mant ? least : mant + 1u)) << 23;
    s.rest = ampi_float((126u + mant) << 23);
    return s;
}

/* x * sign(s), x >= 0; 0 for s = 0; NaN for NaN */
AMP_INLINE float ampi_scalar_with_sign(float x, float s) {
    uint32_t u = ampi_bits(s);
    if (u << 1 == 0) return 0.0f;
    return amp_is_nan(s) ? s : ampi_float(ampi_bits(x) | (u & 0x80000000u));
}
/* NaN stays; by the bits: -ffast-math forgets NaN in comparisons */
AMP_INLINE float ampi_scalar_clamp(float x, float limit) {
    uint32_t a = ampi_bits(x) & 0x7fffffffu, l = ampi_bits(limit);
    return a > l && a <= 0x7f800000u ? ampi_float((ampi_bits(x) & 0x80000000u) | l) : x;
}
#define AMPI_F(name) ampi_scalar_##name
#define AMPI_PASS    AMPI_PASS_UPDATE
#include AMP_SELF
#undef AMPI_F

/* One element through an update. u: the gradient, unscaled and clipped by amp_prepare_one; what the kind has no moment
   array for stays as it is. Returns what was subtracted from the weight: its update. */
AMP_INLINE float amp_prepare_one(float u, const amp_coef *c) { return ampi_scalar_prepare_one(u, c); }
AMP_INLINE float amp_update_one(amp_update_kind kind, float *w, float *m, float *v, float u, const amp_coef *c) {
    return ampi_scalar_update_one(kind, w, m, v, u, c);
}

/* ---- what an update stores, in every layout and on every backend   tests: tests/test_layouts.c ---- */

/* Each kind of number that is rounded stochastically has random words of its own: element i takes
   amp_random(seed, stream, i). */
typedef enum amp_stored { AMP_STORED_MODEL = 0, AMP_STORED_MOMENT_1, AMP_STORED_MOMENT_2 } AMP_INT amp_stored;
typedef struct amp_draw { uint64_t seed, stream; } amp_draw;
AMP_INLINE amp_draw amp_draw_of(const amp_step_record *r, uint32_t param) { /* of the model copy */
    amp_draw d = {r->seed, (r->steps << 24) + param};
    return d;
}
AMP_INLINE amp_draw amp_draw_for(amp_draw model, amp_stored what) {
    model.seed += (uint64_t)what;
    return model;
}
/* What an update can find, bits: see amp_step_record. */
#define AMP_WEIGHT_OVERFLOW 1u
#define AMP_MOMENT_OVERFLOW 2u
/* AMP_WEIGHT_OVERFLOW: the 16-bit copy of w is Inf and w is not NaN. */
AMP_INLINE uint32_t amp_copy_overflow(uint32_t copy, float w, amp_dtype t) {
    return (copy & 0x7fffu) >= (t == AMP_F16 ? 0x7c00u : 0x7f80u) && !amp_is_nan(w);
}

/* An update made elsewhere; returns it as amp_update_one does. */
AMP_INLINE float amp_apply_one(float *w, float u, const amp_coef *c) {
    u = amp_mul(c->lr, u);
    *w = amp_sub(amp_mul(*w, c->decay), u);
    return u;
}

/* A weight of SPLIT, SPLIT8 or KAHAN: model copy in the low half, the rest in the high half. how, r: SPLIT8's alone. */
AMP_INLINE uint32_t amp_pair_pack(float w, amp_master layout, amp_dtype t, amp_rounding how, uint32_t r) {
    if (layout == AMP_MASTER_KAHAN) return amp_kahan_pack(w);
    if (layout == AMP_MASTER_SPLIT8) /* the format's numbers fold */
        return t == AMP_F16 ? amp_split8_pack(w, AMP_F16, how, r) : amp_split8_pack(w, AMP_BF16, how, r);
    return t == AMP_F16 ? amp_split_pack(w, AMP_F16) : amp_split_pack(w, AMP_BF16);
}
AMP_INLINE float amp_pair_unpack(uint32_t pair, amp_master layout, amp_dtype t) {
    if (layout == AMP_MASTER_KAHAN) return amp_kahan_unpack(pair);
    if (layout == AMP_MASTER_SPLIT8)
        return t == AMP_F16 ? amp_split8_unpack(pair, AMP_F16) : amp_split8_unpack(pair, AMP_BF16);
    return t == AMP_F16 ? amp_split_unpack(pair, AMP_F16) : amp_split_unpack(pair, AMP_BF16);
}

/* One element of a weight, whatever the layout, for kernels of your own optimizer. Load before an update; store writes
   master and model copy as amp_inspect was told (record r, parameter number `param`) and returns 1 when the 16-bit copy
   cannot hold the weight. */
AMP_INLINE float amp_weight_load(const amp_param_entry *p, uint64_t i) {
    uint32_t low;
    if (p->layout == AMP_MASTER_F32) return amp_load(p->master, AMP_F32, (size_t)i);
    if (p->layout == AMP_MASTER_NONE) return amp_load(p->model, p->model_dtype, (size_t)i);
    low = ampi_load_pattern(p->low, ampi_low_type(p->layout), (size_t)i);
    return amp_pair_unpack(ampi_load_pattern(p->model, AMP_BF16, (size_t)i) | low << 16, p->layout, p->model_dtype);
}
/* ... of SPLIT, SPLIT8 or KAHAN */
AMP_INLINE uint32_t ampi_pair_store(const amp_param_entry *p, uint64_t i, float w, amp_rounding how, uint32_t r) {
    const uint32_t both = amp_pair_pack(w, p->layout, p->model_dtype, how, r);
    ampi_store_pattern(p->low, ampi_low_type(p->layout), (size_t)i, both >> 16);
    ampi_store_pattern(p->model, AMP_BF16, (size_t)i, both & 0xffffu);
    return amp_copy_overflow(both & 0xffffu, w, p->model_dtype);
}
AMP_INLINE uint32_t amp_weight_store(
    const amp_param_entry *p, uint64_t i, float w, const amp_step_record *r, uint32_t param) {
    const amp_draw d = amp_draw_of(r, param);
    const amp_rounding how = r->stochastic ? AMP_STOCHASTIC : AMP_NEAREST;
    const uint32_t word = r->stochastic ? amp_random(d.seed, d.stream, i) : 0u;
    uint32_t copy;
    if (p->layout == AMP_MASTER_F32) {
        amp_store(p->master, AMP_F32, (size_t)i, w);
        if (!p->model) return 0;
    }
    if (p->low) return ampi_pair_store(p, i, w, how, word);
    copy = ampi_encode(ampi_bits(w), p->model_dtype, how, word, 0);
    ampi_store_pattern(p->model, p->model_dtype, (size_t)i, copy);
    return amp_copy_overflow(copy, w, p->model_dtype);
}

/* Element i of moment 0 or 1, however it is kept. Class: also in kernels. */
AMP_INLINE float amp_moment_load(const amp_param_entry *p, uint32_t which, uint64_t i) {
    const void *moment = p->moment[which];
    uint32_t code;
    float scale;
    if (p->moment_dtype != AMP_MOMENT_8BIT) return amp_load(moment, p->moment_dtype, (size_t)i);
    code = ((const uint8_t *)moment)[i];
    scale = ampi_moment_scales(p, which)[i / AMP_MOMENT_BLOCK];
    return which ? ampi_scalar_moment_value(code, scale, 1) : ampi_scalar_moment_value(code, scale, 0);
}

/* Where the arrays of parameter i are and how they are kept, to go by value into a kernel of your own optimizer, which
   then reads and writes weights with the two functions above in every layout. All zero before commit and past the end.
   Class: host. */
AMP_API amp_param_entry amp_param_entry_get(const amp_params *p, size_t i);

/* ==== >>sums =====================================================================================================
   How numbers are added up, on every device.   tests: step.norm_error, step.norm_ranges (tests/test_step.c)

   The rule of sums, for floats x[0..n). What is not there is 0; to halve y[0..2h) is y[j] += y[j+h] for all j < h, then
   the same with h/2, ..., 1.
       part    2048 of them, in FP32:  lane[j] = (((0 + x[j]) + x[j+256]) + ...) + x[j+1792], j < 256;  halve the lanes
       chunk   32 parts, in double from here on:  halve the sums of its parts
       array   lane[j] = (((0 + c[j]) + c[j+256]) + ...), j < 256, for the sums c of its chunks;  halve the lanes
   A set of parameters: its chunks as amp_param_table numbers them. A column of a matrix: parts of 32 rows in order, in
   FP32; part p is added, in order, to lane p % 8, in double; halve the lanes.
   Squares: x = u * u rounded to FP32. A part whose sum is not finite or below 2^-100 is added up again with u * 2^-96
   or u * 2^96 in place of u, and its sum taken by 2^192 or 2^-192 in double: the sum is finite if every u is.
   Error: a term goes through at most 16 roundings of 2^-24 (its square, 7 additions, 8 halvings), those of a column
   through 31, and for 2^31 terms through 141 of 2^-53: together below 2^-19 of the sum of magnitudes, where that of
   each part is below 2^127 or they are squares. */
/* ---- the table ----
   A backend fills an amp_backend, makes its own state and calls amp_ctx_create_backend, which copies the table. Every
   function gets checked arguments with defaults filled in and returns a status made with amp_fail, so that the message
   says which vendor call failed in which verb. Pointers in jobs are context memory unless said otherwise.
   tests: tests/test_context.c (a backend of the test's own), tests/test_state.c (the checksum) */

typedef struct amp_backend {
    uint32_t version, size; /* AMP_VERSION, sizeof(amp_backend) */
    const char *name;       /* "kind: what it runs on", see amp_ctx_name; valid until destroy */
    uint32_t gemm_flags;    /* AMP_GEMM_* that every product gets besides its own */
    uint32_t aligned;       /* 1: an array that does not begin at a multiple of its element size is refused */
    uint32_t holds; /* 1: an entry that waits does it under pthread_setcancelstate; 0: each verb is, as a whole */
    uint32_t _pad;
    void (*destroy)(amp_ctx *);
    /* at the end of every verb, and before a function of the caller's runs inside one: what entries changed for the
       calling thread (CUDA: its device) is as it was. Gives the status back, or a failure of its own if that is AMP_OK.
       NULL: they change nothing */
    amp_status (*leave)(amp_ctx *, amp_status);
    /* memory: all needed, and cast, but for alloc_zeros (NULL: alloc, then zero) */
    amp_status (*alloc)(amp_ctx *, void **out, size_t bytes);
    amp_status (*alloc_zeros)(amp_ctx *, void **out, size_t bytes); /* the same, of zeros */
    void (*release)(amp_ctx *, void *ptr, size_t bytes);
    amp_status (*copy)(amp_ctx *, void *dst, const void *src, size_t bytes); /* any direction, complete on return */
    amp_status (*copy_async)(amp_ctx *, void *dst, const void *src, size_t bytes);
    amp_status (*zero)(amp_ctx *, void *dst, size_t bytes);
    amp_status (*sync)(amp_ctx *);
    amp_status (*may_wait)(amp_ctx *); /* AMP_OK, or AMP_ERR_CAPTURE / AMP_ERR_DEAD: asked before every query */
    /* arrays. From here on a verb whose entry is NULL returns UNSUPPORTED */
    amp_status (*cast)(amp_ctx *, amp_array dst, amp_array src, size_t n, const amp_cast_desc *);
    /* counts; with `unscale` also dst[i] = arrays[i] / scale (dst NULL: in place), and what was found into the state;
       host may be NULL */
    amp_status (*finite)(amp_ctx *, const amp_array *dst, const amp_array *arrays, size_t n, amp_scaler_state *unscale,
        amp_finite_report *host);
    amp_status (*histogram)(amp_ctx *, const amp_array *arrays, size_t n, amp_histogram *host);
    /* step: all, or NULL: then there are no parameter sets; without next_scale and finite no scalers */
    amp_status (*sum_gradients)(amp_ctx *, const amp_sum_job *); /* into table.totals */
    amp_status (*conclude)(amp_ctx *, const amp_inspect_job *);  /* amp_conclude from table.totals */
    amp_status (*inspect)(amp_ctx *, const amp_inspect_job *);   /* summed is 1: both, in as few launches as can be */
    amp_status (*update)(amp_ctx *, const amp_update_job *);
    amp_status (*apply)(amp_ctx *, const amp_apply_job *);
    amp_status (*add)(amp_ctx *, const amp_add_job *);
    /* mirrors of records, all four, or NULL: a record is copied */
    amp_status (*mirror_create)(amp_ctx *, amp_step_mirror **out); /* *out may stay NULL */
    void (*mirror_destroy)(amp_ctx *, amp_step_mirror *);
    amp_status (*poll)(amp_ctx *, const amp_step_record *record, const amp_step_mirror *mirror,
        amp_step_record *out); /* does not wait */
    /* the record becomes *host, also for poll; complete on return */
    amp_status (*set_record)(amp_ctx *, amp_step_record *record, amp_step_mirror *mirror, const amp_step_record *host);
    amp_status (*clip)(amp_ctx *, const amp_clip_job *);
    amp_status (*next_scale)(amp_ctx *, amp_scaler_state *);
    /* products and losses; bias_grad and gemm_explain come with gemm */
    amp_status (*gemm)(amp_ctx *, const amp_gemm_job *);
    /* how gemm would run it, or why it cannot; text NULL: only the status */
    amp_status (*gemm_explain)(amp_ctx *, char *text, size_t bytes, const amp_gemm_job *);
    amp_status (*gemm_tune)(amp_ctx *, const amp_gemm_job *); /* NULL: there is nothing to choose */
    amp_status (*bias_grad)(amp_ctx *, const amp_bias_grad_job *);
    amp_status (*activation)(amp_ctx *, const amp_activation_job *);
    amp_status (*xent)(amp_ctx *, const amp_xent_job *);
    /* policy */
    uint64_t (*capture_id)(amp_ctx *); /* of the capture in progress, 0: none. NULL: always 0 */
    amp_status (*dropout)(amp_ctx *, const amp_dropout_job *);
    amp_status (*quantize)(amp_ctx *, const amp_quantize_job *);
} amp_backend;
/* What both of ours fill, with functions that are named after the entries. */
/* clang-format off */
#define AMPI_ENTRIES(X) \
    X(destroy) X(alloc) X(release) X(copy) X(zero) X(sync) X(cast) X(finite) X(histogram) X(sum_gradients) \
    X(conclude) X(inspect) X(update) X(apply) X(add) \
    X(clip) X(next_scale) X(gemm) X(gemm_explain) X(bias_grad) X(activation) X(xent) X(dropout) X(quantize)
/* clang-format on */

/* Makes a context of a backend. `self` is the backend's own state, given back by amp_ctx_self; destroy frees it. If
   creation fails, `self` stays yours. host: allocator of host objects, {0} => malloc / free. */
AMP_API amp_status amp_ctx_create_backend(
    amp_ctx **out, const amp_backend *backend, void *self, const amp_allocator *host, const amp_logger *logger);
AMP_API void *amp_ctx_self(const amp_ctx *ctx);

/* ---- verbs: how one fails, what it logs, and the body that takes it through the door (>>front-door).
   tests: tests/test_context.c, tests/test_threads.c, tests/called.h ---- */

/* Records and logs a failure, and returns its status: return amp_fail(ctx, AMP_ERR_CUDA, "%s failed", call). The name
   of the verb that runs goes in front, here and in the log. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((__format__(__printf__, 3, 4)))
#endif
AMP_API amp_status amp_fail(amp_ctx *ctx, amp_status status, const char *format, ...);
/* A log line that does not report a failure. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((__format__(__printf__, 3, 4)))
#endif
AMP_API void amp_log_event(const amp_ctx *ctx, amp_log_level level, const char *format, ...);
/* The body of a verb, and of a public function of a backend's own that works on a context: `call` has the context for
   itself, runs in the default floating-point environment, and its sentences begin with the name, a literal. */
#define AMPI_BUSY \
    ": a different thread is inside a call of this context, or a call never returned (an exception or longjmp left " \
    "it: only destroying is left). A context serves one thread at a time: make one for each thread (on the CPU with " \
    "amp_cpu_desc.threads = 1), or one call after the other"
#define AMP_VERB(ctx, name, call) \
    do { \
        amp_ctx *in_ = (ctx); \
        amp_status st_ = amp_verb_begin(in_, name AMPI_BUSY); \
        return st_ == AMP_OK ? amp_verb_end(in_, call) : st_; \
    } while (0)
AMP_API amp_status amp_verb_begin(amp_ctx *ctx, const char *verb); /* the name, a colon, what a second thread is told */
AMP_API amp_status amp_verb_end(amp_ctx *ctx, amp_status status);

#define AMPI_TRY(call) \
    do { \
        amp_status try_ = (call); \
        if (try_ != AMP_OK) return try_; \
    } while (0)

/* ---- bytes of files: little-endian numbers and the checksum.   tests: tests/test_state.c, tests/fuzz_state.c ---- */

AMP_INLINE uint64_t ampi_get(const uint8_t *b, int bytes) {
    uint64_t x = 0;
    int i;
    for (i = 0; i < bytes; i++)
        x |= (uint64_t)b[i] << (8 * i);
    return x;
}
/* The checksum of state and plan files: XXH64 with seed 0, made from its specification (doc/xxhash_spec.md of
   github.com/Cyan4973/xxHash). Bytes may come in pieces of any size. */
#define AMPI_XXH_1 0x9e3779b185ebca87u
#define AMPI_XXH_2 0xc2b2ae3d27d4eb4fu
#define AMPI_XXH_3 0x165667b19e3779f9u
#define AMPI_XXH_4 0x85ebca77c2b2ae63u
#define AMPI_XXH_5 0x27d4eb2f165667c5u
typedef struct ampi_xxh {
    uint64_t lane[4], bytes;
    uint8_t rest[32]; /* bytes % 32 of them wait for a full stripe */
} ampi_xxh;
AMP_INLINE uint64_t ampi_word(const uint8_t *b) { /* little-endian; compilers make one load of it */
    uint64_t low = b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24;
    return low | (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}
AMP_INLINE uint64_t ampi_rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }
AMP_INLINE uint64_t ampi_xxh_round(uint64_t lane, uint64_t word) {
    return ampi_rotate(lane + word * AMPI_XXH_2, 31) * AMPI_XXH_1;
}
AMP_INLINE void ampi_xxh_stripe(ampi_xxh *h, const uint8_t *b) {
    int i;
    for (i = 0; i < 4; i++)
        h->lane[i] = ampi_xxh_round(h->lane[i], ampi_word(b + 8 * i));
}
AMP_INLINE ampi_xxh ampi_xxh_begin(void) {
    ampi_xxh h = AMP_ZERO;
    h.lane[0] = AMPI_XXH_1 + AMPI_XXH_2;
    h.lane[1] = AMPI_XXH_2;
    h.lane[3] = 0u - AMPI_XXH_1;
    return h;
}
AMP_INLINE void ampi_xxh_add(ampi_xxh *h, const void *data, size_t n) {
    const uint8_t *b = (const uint8_t *)data;
    size_t held = (size_t)(h->bytes % 32u), i = 0;
    h->bytes += n;
    if (held) {
        i = n < 32 - held ? n : 32 - held;
        memcpy(h->rest + held, b, i);
        if (held + i < 32) return;
        ampi_xxh_stripe(h, h->rest);
    }
    for (; n - i >= 32; i += 32)
        ampi_xxh_stripe(h, b + i);
    if (n > i) memcpy(h->rest, b + i, n - i);
}
AMP_INLINE uint64_t ampi_xxh_of_lanes(const ampi_xxh *h) {
    uint64_t x = ampi_rotate(h->lane[0], 1) + ampi_rotate(h->lane[1], 7);
    int i;
    x += ampi_rotate(h->lane[2], 12) + ampi_rotate(h->lane[3], 18);
    for (i = 0; i < 4; i++)
        x = (x ^ ampi_xxh_round(0, h->lane[i])) * AMPI_XXH_1 + AMPI_XXH_4;
    return x;
}
AMP_INLINE uint64_t ampi_xxh_end(const ampi_xxh *h) {
    size_t n = (size_t)(h->bytes % 32u), i = 0;
    uint64_t x = (h->bytes < 32 ? AMPI_XXH_5 : ampi_xxh_of_lanes(h)) + h->bytes;
    for (; n - i >= 8; i += 8)
        x = ampi_rotate(x ^ ampi_xxh_round(0, ampi_word(h->rest + i)), 27) * AMPI_XXH_1 + AMPI_XXH_4;
    for (; n - i >= 4; i += 4)
        x = ampi_rotate(x ^ ampi_get(h->rest + i, 4) * AMPI_XXH_1, 23) * AMPI_XXH_2 + AMPI_XXH_3;
    for (; i < n; i++)
        x = ampi_rotate(x ^ h->rest[i] * AMPI_XXH_5, 11) * AMPI_XXH_1;
    x = (x ^ x >> 33) * AMPI_XXH_2;
    x = (x ^ x >> 29) * AMPI_XXH_3;
    return x ^ x >> 32;
}
/* Writes a file that takes the place of `path` whole, durably and at once, or not at all: see >>state. */
AMP_API amp_status amp_write_file(amp_ctx *ctx, const char *path, const void *data, size_t bytes);

/* Sizes in messages: "%llu", AMPI_ULL(n). (unsigned long has 32 bits on Win64.) */
#define AMPI_ULL(x) ((unsigned long long)(x))

/* ==== >>levels ===================================================================================================
   A level is what other systems call opt_level or amp_level, made into a policy for the autocast scope and into descs
   of parameter sets and scalers.   tests: tests/test_policy.c */

/* clang-format off */
#define AMP_PRESET_LIST(X) \
    X(AMP_PRESET_AMP,            "amp")            /* our lists; FP32 parameters; dynamic loss scale */ \
    X(AMP_O0,                    "O0")             /* Apex: FP32 */ \
    X(AMP_O1,                    "O1")             /*       lists; FP32 parameters; dynamic loss scale */ \
    X(AMP_O2,                    "O2")             /*       half model, FP32 norms and masters; dynamic loss scale */ \
    X(AMP_O3,                    "O3")             /*       half everything */ \
    X(AMP_PRESET_PYTORCH_CUDA,   "pytorch-cuda")   /* autocast + GradScaler */ \
    X(AMP_PRESET_PYTORCH_CPU,    "pytorch-cpu")    /* autocast in BF16, no scaler */ \
    X(AMP_PRESET_MINDSPORE_O0,   "mindspore-O0")   /* FP32 */ \
    X(AMP_PRESET_MINDSPORE_O1,   "mindspore-O1")   /* white list in half, results back to FP32 */ \
    X(AMP_PRESET_MINDSPORE_O2,   "mindspore-O2")   /* half but for the black list; dynamic loss scale from 2^24 */ \
    X(AMP_PRESET_MINDSPORE_O3,   "mindspore-O3")   /* half everything; FP32 masters */ \
    X(AMP_PRESET_MINDSPORE_AUTO, "mindspore-auto") /* auto lists */ \
    X(AMP_PRESET_FP8,            "fp8")            /* as amp in BF16, layers with .fp8 in FP8 (>>fp8); no loss scale */
#define AMP_X(name, text) name,
typedef enum amp_preset { AMP_PRESET_LIST(AMP_X) AMP_PRESET_COUNT } AMP_INT amp_preset;
#undef AMP_X
/* clang-format on */

struct amp_policy { /* made by amp_policy_init; plain data, copy it freely */
    uint32_t _begin;
    amp_preset preset;
    uint32_t lists;          /* amp_system: whose lists say what an operation gets */
    amp_dtype low;           /* AMP_F16 or AMP_BF16: what "lower precision" is */
    uint32_t enabled;        /* 0: as if the policy were not there */
    uint32_t autocast;       /* 1: operations choose by the lists */
    amp_dtype cast_model;    /* dtype of model copies and of every operation; AMP_AUTO: no such cast */
    uint32_t keep_norms;     /* 1: with cast_model, batch norm (MindSpore: its black list) stays FP32 */
    uint32_t master_weights; /* 1: FP32 masters beside half model copies */
    uint32_t results_f32;    /* 1: lower-precision operations return FP32 (MindSpore O1) */
    amp_dtype cast_outputs;  /* dtype that the model returns; AMP_AUTO: as it comes */
    amp_scaler_mode scaling;
    float loss_scale;           /* initial or static (Apex: then overflow is not looked for) */
    float min_scale, max_scale; /* 0: the scaler's default */
    int32_t growth_interval;
    uint32_t num_losses, flags; /* scalers to make; 0 */
    char edits[256];            /* of the lists, by amp_op: amp_policy_edit */
    uint64_t _end;
};

typedef struct amp_policy_desc { /* 0 keeps what the level says. Switches: 1 is True, AMP_NONE is False */
    uint32_t _begin;
    amp_dtype low; /* AMP_F16 or AMP_BF16: the BF16 twin of a level. BF16 needs no loss scale: it is off then */
    int32_t enabled, autocast, keep_norms, master_weights;
    int32_t cast_model;         /* AMP_F32, AMP_F16, AMP_BF16; AMP_NONE: the model is not cast */
    amp_dtype cast_outputs;     /* AMP_F32, AMP_F16, AMP_BF16 */
    const char *loss_scale;     /* "dynamic", or a number > 0 as text: "128.0" */
    float min_scale, max_scale; /* of a dynamic loss scale */
    uint32_t num_losses;
    uint64_t _end;
} amp_policy_desc;

/* *policy = a level with overrides (NULL => none), by the rules of the level's system: what it has no word for, or
   refuses, is INVALID_ARG here (docs/policy.md has the rules). On failure *policy is as it was. Class: host. */
AMP_API amp_status amp_policy_init(
    amp_ctx *ctx, amp_policy *policy, amp_preset preset, const amp_policy_desc *overrides);
/* One override as text, e.g. from a command line, by our name or theirs: "keep_norms" or "keep_batchnorm_fp32" "True",
   "loss_scale" "dynamic", "cast_model_type" "torch.float16" or "False", "dtype" "bfloat16". "None" changes nothing.
   Class: host. */
AMP_API amp_status amp_policy_set(amp_ctx *ctx, amp_policy *policy, const char *property, const char *value);
/* "O1", "mindspore-O2" ...; an optional "-bf16" or "-f16" selects that variant: *low, which is AMP_AUTO without one
   (low NULL: no suffix is allowed). INVALID_ARG for an unknown name. Class: host. */
AMP_API amp_status amp_preset_find(amp_preset *preset, amp_dtype *low, const char *name);
/* The descs for amp_params_create and amp_scaler_create (make num_losses scalers). A static scale of 1 becomes
   AMP_SCALER_OFF; any other of O0 to O3 does not look for overflow, as in Apex; of the rest it does. Class: host. */
AMP_API amp_params_desc amp_policy_params_desc(const amp_policy *policy);
AMP_API amp_scaler_desc amp_policy_scaler_desc(const amp_policy *policy);

/* ---- recompute: the second forward is the first, bit for bit. What to keep: examples/recompute_plan.h ----
   tests: tests/test_memory.c */

typedef struct amp_snapshot { /* what a segment's forward saw; plain data. Do not change it */
    amp_policy policy;
    amp_dtype low, pin;
    uint32_t enabled, cache, outside, _pad; /* outside: no region was open */
    amp_rng rng;
    uint64_t iteration, weights; /* of the scaler (0: none); changes of weights so far on the context */
} amp_snapshot;

/* Before a segment's forward: remembers the region, rng (NULL: none) and the iteration of the scaler (NULL: none).
   Class: host. */
AMP_API amp_status amp_snapshot_take(amp_ctx *ctx, amp_snapshot *out, const amp_rng *rng, const amp_scaler *scaler);
/* Before its recompute: opens exactly that region (close it with amp_autocast_end) and sets *rng (NULL: not). STAGE if
   weights or the loss scale have changed since: the result would be different. Class: as amp_autocast_begin. */
AMP_API amp_status amp_snapshot_begin(amp_ctx *ctx, amp_rng *rng, const amp_snapshot *snapshot);

typedef struct amp_autocast_info { /* of the innermost region; counters since the outermost begin, also after its end */
    uint32_t depth, enabled, cache; /* depth: regions open */
    amp_dtype low, pin;
    uint32_t _pad;
    uint64_t casts, hits, resolved; /* made; answered from the cache; answered by a model copy */
    size_t arena, used, peak;       /* bytes; peak: what the scope needs, so the .arena that is just large enough */
} amp_autocast_info;
AMP_API amp_autocast_info amp_autocast_get(const amp_ctx *ctx); /* Class: host. */

/* ==== >>fp8 ======================================================================================================
   FP8 with a scale per tensor: q = x * scale, rounded to FP32, then to the nearest FP8 number; a product multiplies by
   1 / scale. What is finite saturates; Inf and NaN stay (E4M3, which has no Inf: NaN), so that a loss scaler sees them.
       scale = the format's largest finite number / 2^margin / amax, one FP32 division; if that is Inf, the largest
               float; with power_of_two rounded down to one. amax: the largest |x| of the tensor that is not NaN
   Current scaling: the amax of the tensor that is cast, which is read twice; 1 if it is 0 or Inf.
   Delayed scaling: the largest amax of the last `history` casts before this one, so the tensor is read once. An amax of
   0 is not remembered. Before the first, the scale is 1; while an Inf is among them, it stays as it is.
   This is TransformerEngine's definition (transformer_engine/common/recipe), but that there Inf saturates.
   tests: tests/test_fp8.c */

struct amp_fp8_desc {
    uint32_t _begin;
    uint32_t tensors;            /* 0 => 3: x, w and dy of a layer, in this order */
    uint32_t history;            /* 0 => current scaling; 1 .. 65536 => delayed scaling (TransformerEngine: 1024) */
    uint32_t margin;             /* 0 .. 6: that many powers of two are left free */
    uint32_t power_of_two;       /* 1: see above */
    amp_dtype forward, backward; /* formats of layers: of x and w, of dy: AMP_AUTO => AMP_F8E4M3 and AMP_F8E5M2 */
    uint32_t flags;              /* 0 */
    uint64_t _end;
};

/* amp_quantize: both outputs have one format, and nothing overlaps; rows or cols 0: nothing happens. Finite numbers
   saturate; Inf and NaN stay (E4M3: NaN). amp_fp8_inverse_ptr: context memory, valid until destroy; of the last cast, 1
   before it; NULL past the end.
   amp_fp8_info: scale and amax of the last cast (1 and 0 before it), largest: of the amaxes that are remembered.

   A layer with .fp8 quantises x and w in forward and makes y of them; its backward takes dy through the act, adds up
   dbias as always, quantises dy, and x and w again with forward's scales (keep), transposed where hardware multiplies
   x w^T only. In a scope with AMP_PRESET_FP8, and outside of scopes; in other scopes, in disabled regions and with a
   pin the layer runs as if .fp8 were NULL. Give a record there: backward does what it says. */

/* ==== >>plan =====================================================================================================
   Where the bytes go, before anything is allocated. Mixed precision halves activations, not model state: FP32 Adam has
   4 + 4 + 4 + 4 = 16 bytes per parameter, FP16 copies and gradients with FP32 masters 2 + 2 + 4 + 8 = 16.
   tests: tests/test_memory.c */

/* Bytes per parameter of a layout (of a parameter without keep_f32), by ledger class; _end and label of desc are not
   read. NULL desc => defaults. All zero if there is no such layout. Scales of AMP_MOMENT_8BIT, 1/64 byte per
   moment, are not in it, but in amp_plan_memory. Class: host. */
typedef struct amp_layout { uint32_t master, model, grad, moments, accum, total; } amp_layout;
AMP_API amp_layout amp_layout_bytes(const amp_params_desc *desc);

typedef struct amp_plan_layer {
    const char *name;      /* for your table; NULL is fine */
    amp_op op;             /* decides dtypes: AMP_OP_LINEAR, AMP_OP_LAYER_NORM, ... */
    uint32_t keep_bias;    /* 1: the bias has keep_f32 */
    uint64_t weight, bias; /* elements; each that is not 0 is one parameter */
    uint64_t saved;        /* elements that backward needs, in the dtype of op's result: y, aux, ... */
    uint64_t saved_f32;    /* elements of 4 bytes under any policy: statistics, labels */
    uint64_t saved_bits;   /* AMP_MASK: rows * 8 * ((columns + 7) / 8); 8 for each element that is kept in FP8 */
} amp_plan_layer;

typedef struct amp_plan { /* bytes; the first six are the rows of the ledger for the set, exactly */
    uint64_t master, model, grad, moments, accum, tables;
    uint64_t casts; /* copies of FP32 parameters in a scope; with AMP_AUTOCAST_SPARE: the arena of amp_autocast_begin */
    uint64_t saved; /* activations */
    uint64_t total;
} amp_plan;

/* The plan of n layers under a policy, with one set of parameters. layout NULL => amp_policy_params_desc(policy),
   Adam's two moments. `in` is the dtype of the inputs: it matters for operations of class none. Class: host. */
AMP_API amp_status amp_plan_memory(amp_plan *out, const amp_policy *policy, const amp_params_desc *layout,
    const amp_plan_layer *layers, size_t n, amp_dtype in);

/* ==== >>operations ===============================================================================================
   What six systems do with 222 operations, and what a policy does with them. docs/operations.md is this table on a
   page.   tests: tests/test_policy.c, tests/torch_operations.py */

/* X(suffix of AMP_OP_, name, classes): one row per operation that a system classifies, under its PyTorch name where
   it has one. The classes are letters (amp_op_class), one per amp_system in its order: amp, PyTorch CUDA, PyTorch CPU,
   Apex O1, MindSpore white / black, MindSpore auto. Overloads and in-place forms share a row. A row's name is a name of
   PyTorch and Apex where their letter is a capital. A small letter: Apex lists it under other names only; PyTorch does
   not list it, and it gives that dtype because it is made of operations that are listed (tests/torch_operations.py).
   Names of MindSpore are in the second table. Sources: PyTorch's autocast_mode.h and .cpp (2.15), Apex's amp/lists and
   rnn_compat.py before their removal, MindSpore's train/amp.py and its documentation of level "auto". */
/* clang-format off */
#define AMP_OP_LIST(X) \
    X(CONV1D, conv1d, LLLLL_) X(CONV2D, conv2d, LLLLLL) X(CONV3D, conv3d, LLLLLL) \
    X(CONV_TBC, conv_tbc, LLLL__) X(CONV_TRANSPOSE1D, conv_transpose1d, LLLLL_) \
    X(CONV_TRANSPOSE2D, conv_transpose2d, LLLLLL) X(CONV_TRANSPOSE3D, conv_transpose3d, LLLLLL) \
    X(CONVOLUTION, convolution, LL___L) X(CONVOLUTION_INNER, _convolution, LLL___) \
    X(CUDNN_CONVOLUTION, cudnn_convolution, LL____) \
    X(CUDNN_CONVOLUTION_TRANSPOSE, cudnn_convolution_transpose, LL____) \
    X(CONV2D_BACKWARD_INPUT, conv2d_backward_input, L___L_) X(LINEAR, linear, LLLLLL) \
    X(MATMUL, matmul, LLLLLL) X(MM, mm, LLLL__) X(MV, mv, LL_L_L) X(BMM, bmm, LLLLLL) \
    X(ADDMM, addmm, LLLL_L) X(ADDMV, addmv, LL_L_L) X(ADDR, addr, LL_L__) \
    X(ADDBMM, addbmm, LLLL_L) X(BADDBMM, baddbmm, LLLL_L) X(GER, ger, L___L_) \
    X(EINSUM, einsum, LLl__L) X(CHAIN_MATMUL, chain_matmul, LLl___) \
    X(LINALG_MULTI_DOT, linalg_multi_dot, LLl___) X(LINALG_VECDOT, linalg_vecdot, LLL___) \
    X(ADDMM_ACTIVATION, _addmm_activation, L_L___) \
    X(SCALED_DOT_PRODUCT_ATTENTION, scaled_dot_product_attention, LLL___) \
    X(SCALED_DOT_PRODUCT_FLASH_ATTENTION, _scaled_dot_product_flash_attention, LL____) \
    X(NATIVE_MULTI_HEAD_ATTENTION, _native_multi_head_attention, L_L___) \
    X(THNN_FUSED_LSTM_CELL, _thnn_fused_lstm_cell, LL____) \
    X(THNN_FUSED_GRU_CELL, _thnn_fused_gru_cell, LL____) X(LSTM_CELL, lstm_cell, LL_LL_) \
    X(GRU_CELL, gru_cell, LL_LL_) X(RNN_TANH_CELL, rnn_tanh_cell, LLlLL_) \
    X(RNN_RELU_CELL, rnn_relu_cell, LLlL__) X(LSTM, lstm, L_lL__) X(GRU, gru, L__L__) \
    X(RNN_TANH, rnn_tanh, L_lL__) X(RNN_RELU, rnn_relu, L_lL__) \
    X(MKLDNN_RNN_LAYER, mkldnn_rnn_layer, L_L___) X(PRELU, prelu, LLLLLL) X(RELU, relu, ____L_) \
    X(GELU, gelu, ___F__) X(DROPOUT, dropout, ______) X(SUB, sub, W__w__) X(ADD, add, W__W__) \
    X(MUL, mul, W__W__) X(DIV, div, W__W__) X(EQ, eq, W__W__) X(EQUAL, equal, W__W__) \
    X(GE, ge, W__W__) X(GT, gt, W__W__) X(LE, le, W__W__) X(LT, lt, W__W__) X(NE, ne, W__W__) \
    X(BIAS_ADD, bias_add, W____W) X(ADD_N, add_n, W____W) X(CAT, cat, W_WW_W) \
    X(STACK, stack, W_WW__) X(INDEX_COPY, index_copy, W_W___) X(INDEX_PUT, index_put, WW____) \
    X(SCATTER_ADD, scatter_add, WW____) X(ADDCDIV, addcdiv, WW_W_W) X(ADDCMUL, addcmul, WW_W_W) \
    X(ATAN2, atan2, WW_W__) X(BILINEAR, bilinear, WW_W__) X(CROSS, cross, WW_W_W) \
    X(DOT, dot, WW_W_W) X(VDOT, vdot, WW____) X(TENSORDOT, tensordot, WWl___) \
    X(GRID_SAMPLER, grid_sampler, WWF___) X(GRID_SAMPLER_2D, grid_sampler_2d, W_F__W) \
    X(GRID_SAMPLER_3D, grid_sampler_3d, W_F__W) \
    X(GRID_SAMPLER_2D_CPU_FALLBACK, _grid_sampler_2d_cpu_fallback, W_F___) \
    X(GRID_SAMPLE, grid_sample, W_fF__) X(ACOS, acos, FF_F_F) X(ASIN, asin, FF_F_F) \
    X(COSH, cosh, FF_F_F) X(ERFINV, erfinv, FF_F_F) X(EXP, exp, FF_F_F) X(EXPM1, expm1, FF_F_F) \
    X(LOG, log, FF_F_F) X(LOG10, log10, FF_F_F) X(LOG2, log2, FF_F_F) X(LOG1P, log1p, FF___F) \
    X(RECIPROCAL, reciprocal, FF_F_F) X(RSQRT, rsqrt, FF_F_F) X(SINH, sinh, FF_F_F) \
    X(TAN, tan, FF_F_F) X(POW, pow, FF_F_F) X(SOFTPLUS, softplus, FF_F_F) \
    X(LOGSUMEXP, logsumexp, FF____) X(SOFTMIN, softmin, Ff_F__) X(LAYER_NORM, layer_norm, FF_FFF) \
    X(NATIVE_LAYER_NORM, native_layer_norm, FF____) X(GROUP_NORM, group_norm, FF_F_F) \
    X(BATCH_NORM, batch_norm, F___FF) X(RMS_NORM, rms_norm, FF____) \
    X(LOCAL_RESPONSE_NORM, local_response_norm, FffF__) X(NORMALIZE, normalize, Ff_F__) \
    X(FROBENIUS_NORM, frobenius_norm, FF____) X(NUCLEAR_NORM, nuclear_norm, FF____) \
    X(RENORM, renorm, FF_F_F) X(DIST, dist, FF_F__) X(PDIST, pdist, FF___F) \
    X(CDIST, cdist, FFF__F) X(COSINE_SIMILARITY, cosine_similarity, FF_F__) X(STD, std, F__F__) \
    X(VAR, var, F__F__) X(CPU, cpu, ___F__) X(BINARY_CROSS_ENTROPY, binary_cross_entropy, BBFB__) \
    X(BINARY_CROSS_ENTROPY_WITH_LOGITS, binary_cross_entropy_with_logits, FFFF_F) \
    X(COSINE_EMBEDDING_LOSS, cosine_embedding_loss, FFFF__) \
    X(CROSS_ENTROPY, cross_entropy, OffF__) X(CROSS_ENTROPY_LOSS, cross_entropy_loss, OfF___) \
    X(CTC_LOSS, ctc_loss, F_FF__) X(HINGE_EMBEDDING_LOSS, hinge_embedding_loss, FFFF__) \
    X(HUBER_LOSS, huber_loss, FFF___) X(KL_DIV, kl_div, FFFF_F) X(L1_LOSS, l1_loss, FFFF_F) \
    X(MARGIN_RANKING_LOSS, margin_ranking_loss, FFFF__) X(MSE_LOSS, mse_loss, FFFF_F) \
    X(MULTI_MARGIN_LOSS, multi_margin_loss, FFFF_F) \
    X(MULTILABEL_MARGIN_LOSS, multilabel_margin_loss, FFFF_F) \
    X(MULTILABEL_MARGIN_LOSS_FORWARD, multilabel_margin_loss_forward, F_F___) \
    X(MULTILABEL_SOFT_MARGIN_LOSS, multilabel_soft_margin_loss, Ff_F__) \
    X(NLL_LOSS, nll_loss, FFFF_F) X(NLL_LOSS2D, nll_loss2d, FFF__F) \
    X(POISSON_NLL_LOSS, poisson_nll_loss, FFFF__) X(SMOOTH_L1_LOSS, smooth_l1_loss, FFFF_F) \
    X(SOFT_MARGIN_LOSS, soft_margin_loss, FFFF_F) \
    X(TRIPLET_MARGIN_LOSS, triplet_margin_loss, FFFF_F) X(INTERPOLATE, interpolate, Ff_F__) \
    X(UPSAMPLE_NEAREST1D, upsample_nearest1d, FF____) \
    X(UPSAMPLE_NEAREST2D, upsample_nearest2d, FF____) \
    X(UPSAMPLE_NEAREST3D, upsample_nearest3d, FF____) \
    X(UPSAMPLE_NEAREST_EXACT1D, _upsample_nearest_exact1d, FF____) \
    X(UPSAMPLE_NEAREST_EXACT2D, _upsample_nearest_exact2d, FF____) \
    X(UPSAMPLE_NEAREST_EXACT3D, _upsample_nearest_exact3d, FF____) \
    X(UPSAMPLE_LINEAR1D, upsample_linear1d, FF____) \
    X(UPSAMPLE_BILINEAR2D, upsample_bilinear2d, FF____) \
    X(UPSAMPLE_BILINEAR2D_AA, _upsample_bilinear2d_aa, FF____) \
    X(UPSAMPLE_TRILINEAR3D, upsample_trilinear3d, FF____) \
    X(UPSAMPLE_BICUBIC2D, upsample_bicubic2d, FF____) \
    X(UPSAMPLE_BICUBIC2D_AA, _upsample_bicubic2d_aa, FF____) X(SOFTMAX, softmax, OO_F_F) \
    X(LOG_SOFTMAX, log_softmax, OO_F_F) X(SUM, sum, OO_F_F) X(MEAN, mean, O__F__) \
    X(PROD, prod, OOFF_F) X(CUMSUM, cumsum, OO_F_F) X(CUMPROD, cumprod, OO_F_F) \
    X(NORM, norm, OO_F_F) X(LINALG_VECTOR_NORM, linalg_vector_norm, OO____) \
    X(LINALG_MATRIX_NORM, linalg_matrix_norm, OO____) X(AVG_POOL3D, avg_pool3d, __F___) \
    X(MAX_POOL3D, max_pool3d, __F___) X(MAX_UNPOOL2D, max_unpool2d, __F___) \
    X(MAX_UNPOOL3D, max_unpool3d, __F___) X(ADAPTIVE_AVG_POOL3D, adaptive_avg_pool3d, __F___) \
    X(ADAPTIVE_MAX_POOL3D, adaptive_max_pool3d, __F___) \
    X(FRACTIONAL_MAX_POOL2D, fractional_max_pool2d, __F___) \
    X(FRACTIONAL_MAX_POOL3D, fractional_max_pool3d, __F___) \
    X(REFLECTION_PAD1D, reflection_pad1d, __F___) X(REFLECTION_PAD2D, reflection_pad2d, __F___) \
    X(REPLICATION_PAD1D, replication_pad1d, __F___) \
    X(REPLICATION_PAD2D, replication_pad2d, __F___) \
    X(REPLICATION_PAD3D, replication_pad3d, __F___) X(VIEW_AS_COMPLEX, view_as_complex, __F___) \
    X(FAKE_QUANTIZE_PER_TENSOR_AFFINE, fake_quantize_per_tensor_affine, __F___) \
    X(POLAR, polar, F_F___) X(QUANTILE, quantile, F_F___) X(NANQUANTILE, nanquantile, F_F___) \
    X(STFT, stft, F_F___) X(TRACE, trace, F_F___) X(CHOLESKY, cholesky, F_F___) \
    X(CHOLESKY_INVERSE, cholesky_inverse, F_F___) X(CHOLESKY_SOLVE, cholesky_solve, F_F___) \
    X(INVERSE, inverse, F_F___) X(LU_SOLVE, lu_solve, F_F___) X(ORGQR, orgqr, F_F___) \
    X(ORMQR, ormqr, F_F___) X(PINVERSE, pinverse, F_F___) X(GEQRF, geqrf, F_F___) \
    X(LU_WITH_INFO, _lu_with_info, F_F___) X(QR, qr, F_F___) X(SVD, svd, F_F___) \
    X(TRIANGULAR_SOLVE, triangular_solve, F_F___) X(FFT_FFT, fft_fft, F_F___) \
    X(FFT_IFFT, fft_ifft, F_F___) X(FFT_FFT2, fft_fft2, F_F___) X(FFT_IFFT2, fft_ifft2, F_F___) \
    X(FFT_FFTN, fft_fftn, F_F___) X(FFT_IFFTN, fft_ifftn, F_F___) X(FFT_RFFT, fft_rfft, F_F___) \
    X(FFT_IRFFT, fft_irfft, F_F___) X(FFT_RFFT2, fft_rfft2, F_F___) \
    X(FFT_IRFFT2, fft_irfft2, F_F___) X(FFT_RFFTN, fft_rfftn, F_F___) \
    X(FFT_IRFFTN, fft_irfftn, F_F___) X(FFT_HFFT, fft_hfft, F_F___) \
    X(FFT_IHFFT, fft_ihfft, F_F___) X(LINALG_COND, linalg_cond, F_F___) \
    X(LINALG_MATRIX_RANK, linalg_matrix_rank, F_F___) X(LINALG_SOLVE, linalg_solve, F_F___) \
    X(LINALG_CHOLESKY, linalg_cholesky, F_F___) X(LINALG_CHOLESKY_EX, linalg_cholesky_ex, F_F___) \
    X(LINALG_SVD, linalg_svd, F_F___) X(LINALG_SVDVALS, linalg_svdvals, F_F___) \
    X(LINALG_EIG, linalg_eig, F_F___) X(LINALG_EIGH, linalg_eigh, F_F___) \
    X(LINALG_EIGVALS, linalg_eigvals, F_F___) X(LINALG_EIGVALSH, linalg_eigvalsh, F_F___) \
    X(LINALG_INV, linalg_inv, F_F___) X(LINALG_INV_EX, linalg_inv_ex, F_F___) \
    X(LINALG_HOUSEHOLDER_PRODUCT, linalg_householder_product, F_F___) \
    X(LINALG_TENSORINV, linalg_tensorinv, F_F___) \
    X(LINALG_TENSORSOLVE, linalg_tensorsolve, F_F___) X(LINALG_QR, linalg_qr, F_F___) \
    X(LINALG_LSTSQ, linalg_lstsq, F_F___)
/* clang-format on */

/* X(suffix of AMP_OP_, other name, systems): further names. Systems that list the operation by this name: A Apex, M
   MindSpore white or black, S MindSpore auto. */
/* clang-format off */
#define AMP_OP_NAME_LIST(X) \
    X(CONV1D, nn.Conv1d, M) X(CONV2D, nn.Conv2d, M) X(CONV2D, Conv2D, MS) X(CONV2D, Conv2DExt, S) \
    X(CONV3D, nn.Conv3d, M) X(CONV3D, Conv3D, MS) X(CONV3D, Conv3DExt, S) \
    X(CONV_TRANSPOSE1D, nn.Conv1dTranspose, M) X(CONV_TRANSPOSE2D, nn.Conv2dTranspose, M) \
    X(CONV_TRANSPOSE2D, Conv2DTranspose, MS) X(CONV_TRANSPOSE2D, ConvTranspose2D, S) \
    X(CONV_TRANSPOSE3D, nn.Conv3dTranspose, M) X(CONV_TRANSPOSE3D, Conv3DTranspose, MS) \
    X(CONVOLUTION, Convolution, S) X(CONV2D_BACKWARD_INPUT, Conv2DBackpropInput, M) \
    X(LINEAR, nn.Dense, M) X(LINEAR, Dense, S) X(MATMUL, MatMul, MS) X(MATMUL, MatMulExt, S) \
    X(MATMUL, __matmul__, A) X(BMM, BatchMatMul, MS) X(BMM, BatchMatMulExt, S) X(ADDMM, Addmm, S) \
    X(GER, Ger, M) X(EINSUM, Einsum, S) X(LSTM_CELL, nn.LSTMCell, M) X(LSTM_CELL, LSTMCell, A) \
    X(GRU_CELL, nn.GRUCell, M) X(GRU_CELL, GRUCell, A) X(RNN_TANH_CELL, nn.RNNCell, M) \
    X(RNN_TANH_CELL, RNNTanhCell, A) X(LSTM, LSTM, A) X(GRU, GRU, A) X(RNN_TANH, RNN, A) \
    X(RNN_TANH, RNN_TANH, A) X(PRELU, PReLU, MS) X(RELU, ReLU, M) X(ADD, __add__, A) \
    X(ADD, __radd__, A) X(ADD, __iadd__, A) X(SUB, __sub__, A) X(SUB, __rsub__, A) \
    X(SUB, __isub__, A) X(MUL, __mul__, A) X(MUL, __rmul__, A) X(MUL, __imul__, A) \
    X(DIV, __div__, A) X(DIV, __rdiv__, A) X(DIV, __idiv__, A) X(DIV, __truediv__, A) \
    X(DIV, __rtruediv__, A) X(DIV, __itruediv__, A) X(EQ, __eq__, A) X(GE, __ge__, A) \
    X(GT, __gt__, A) X(LE, __le__, A) X(LT, __lt__, A) X(NE, __ne__, A) X(BIAS_ADD, BiasAdd, S) \
    X(ADD_N, AddN, S) X(CAT, Concat, S) X(ADDCDIV, Addcdiv, S) X(ADDCMUL, Addcmul, S) \
    X(CROSS, Cross, S) X(CROSS, _PyboostCrossPrim, S) X(DOT, Dot, S) \
    X(GRID_SAMPLER_2D, GridSampler2D, S) X(GRID_SAMPLER_3D, GridSampler3D, S) X(ACOS, ACos, S) \
    X(ASIN, Asin, S) X(COSH, Cosh, S) X(ERFINV, Erfinv, S) X(EXP, Exp, S) X(EXPM1, Expm1, S) \
    X(LOG, Log, S) X(LOG1P, Log1p, S) X(RECIPROCAL, Reciprocal, S) X(RSQRT, Rsqrt, S) \
    X(SINH, Sinh, S) X(TAN, Tan, S) X(POW, Pow, S) X(POW, __pow__, A) X(POW, __ipow__, A) \
    X(POW, __rpow__, A) X(SOFTPLUS, Softplus, S) X(SOFTPLUS, SoftplusExt, S) \
    X(LAYER_NORM, nn.LayerNorm, M) X(LAYER_NORM, LayerNorm, S) X(LAYER_NORM, LayerNormExt, S) \
    X(GROUP_NORM, GroupNorm, S) X(BATCH_NORM, nn.BatchNorm1d, M) X(BATCH_NORM, nn.BatchNorm2d, M) \
    X(BATCH_NORM, nn.BatchNorm3d, M) X(BATCH_NORM, BatchNorm, S) X(BATCH_NORM, BatchNormExt, S) \
    X(RENORM, Renorm, S) X(PDIST, Pdist, S) X(CDIST, Cdist, S) \
    X(BINARY_CROSS_ENTROPY_WITH_LOGITS, BCEWithLogitsLoss, S) X(KL_DIV, KLDivLoss, S) \
    X(MSE_LOSS, MSELossExt, S) X(MULTI_MARGIN_LOSS, MultiMarginLoss, S) \
    X(MULTILABEL_MARGIN_LOSS, MultilabelMarginLoss, S) X(SMOOTH_L1_LOSS, SmoothL1Loss, S) \
    X(SOFT_MARGIN_LOSS, SoftMarginLoss, S) X(TRIPLET_MARGIN_LOSS, TripletMarginLoss, S) \
    X(SOFTMAX, Softmax, S) X(LOG_SOFTMAX, LogSoftmax, S) X(LOG_SOFTMAX, LogSoftmaxExt, S) \
    X(SUM, SumExt, S) X(PROD, ReduceProd, S) X(PROD, ProdExt, S) X(CUMSUM, CumSum, S) \
    X(CUMSUM, CumsumExt, S) X(CUMPROD, CumProd, S) X(NORM, Norm, S) \
    X(RNN_RELU_CELL, RNNReLUCell, A) X(RNN_RELU, RNN_RELU, A) X(ADDBMM, Addbmm, S) \
    X(ADDMV, Addmv, S) X(BADDBMM, Baddbmm, S) X(MV, Mv, S) X(LOG10, Log10, S) X(LOG2, Log2, S) \
    X(L1_LOSS, L1LossExt, S) X(NLL_LOSS, NLLLoss, S) X(NLL_LOSS2D, NLLLoss2d, S)
/* clang-format on */

/* Values of amp_op. */
enum {
    AMP_OP_NONE = 0, /* an operation that no list knows */
#define AMP_X(suffix, name, classes) AMP_OP_##suffix,
    AMP_OP_LIST(AMP_X)
#undef AMP_X
        AMP_OP_COUNT
};

typedef enum amp_op_class {
    AMP_CLASS_NONE = 0, /* '_'  not listed: computed in the dtype of its inputs */
    AMP_CLASS_LOWER,    /* 'L'  inputs cast to FP16 or BF16 */
    AMP_CLASS_F32,      /* 'F'  inputs cast to FP32 */
    AMP_CLASS_F32_OUT,  /* 'O'  inputs as they are, computed and returned in FP32 */
    AMP_CLASS_WIDEST,   /* 'W'  inputs cast to the widest among them */
    AMP_CLASS_BANNED    /* 'B'  refused: amp_op_note says why, and what to use instead */
} AMP_INT amp_op_class;

typedef enum amp_system {
    AMP_SYSTEM_AMP = 0,        /* ours: PyTorch's CUDA class; where it has none, the caution of the others */
    AMP_SYSTEM_PYTORCH_CUDA,   /* torch.autocast("cuda") */
    AMP_SYSTEM_PYTORCH_CPU,    /* torch.autocast("cpu") */
    AMP_SYSTEM_APEX,           /* apex.amp O1 */
    AMP_SYSTEM_MINDSPORE,      /* white list (O1: 'L') and black list (O2: 'F') */
    AMP_SYSTEM_MINDSPORE_AUTO, /* auto white, auto black and auto promote */
    AMP_SYSTEM_COUNT
} AMP_INT amp_system;

/* ---- what the lists say; names ("unknown ..." otherwise). Class of all: host. Threads: safe ---- */

/* *out = the operation of that name: "matmul", "nn.Dense", "F.linear", "torch.matmul", "aten::norm.Scalar". Exact
   first; then without a leading "torch.nn.functional." (and its shorter forms), "Tensor.", "aten::", "ops.",
   "mindspore.", without ".Overload" after "aten::", and without the "_" of an in-place form. INVALID_ARG for an unknown
   name: *out is AMP_OP_NONE then. */
AMP_API amp_status amp_op_find(amp_op *out, const char *name);
/* Its name, "" for AMP_OP_NONE and unknown numbers. */
AMP_API const char *amp_op_name(amp_op op);
/* Name k of a system's own list for the operation: k = 0, 1, ... until it returns NULL. */
AMP_API const char *amp_op_listed(amp_op op, amp_system system, size_t k);
/* Class in a system's lists, or what PyTorch's lists make of an operation that is composed of listed ones
   (amp_op_listed has no name for it then); AMP_CLASS_NONE for all others. */
AMP_API amp_op_class amp_op_class_of(amp_op op, amp_system system);
/* Why an operation is banned and what to use, or why our class is not PyTorch's; "" if there is nothing to say. */
AMP_API const char *amp_op_note(amp_op op);
AMP_API const char *amp_op_class_name(amp_op_class c); /* "lower", "f32", "f32 output", "widest", "banned", "none" */
AMP_API const char *amp_system_name(amp_system s);     /* "amp", "pytorch-cuda", "apex", ... */
AMP_API const char *amp_preset_name(amp_preset p);     /* "O1", "mindspore-O2", ...: what amp_preset_find takes */

/* ---- what a policy does with an operation: level, lists and edits together. Class of all: host ---- */

AMP_API amp_op_class amp_policy_class(const amp_policy *policy, amp_op op);
/* The dtype of its result when it is left automatic and the (widest) input has dtype `in`: what to allocate. */
AMP_API amp_dtype amp_policy_output(const amp_policy *policy, amp_op op, amp_dtype in);
/* 1: parameters of this operation stay FP32: amp_param_desc.keep_f32. */
AMP_API uint32_t amp_policy_keep_f32(const amp_policy *policy, amp_op op);
/* The operations that get class c under the policy, into out[cap] (NULL if cap is 0); returns how many there are. */
AMP_API size_t amp_policy_list(amp_op *out, size_t cap, const amp_policy *policy, amp_op_class c);
/* One edit of the lists: operation op gets class c. Warnings (log events): a banned operation allowed, an FP32
   operation lowered. */
AMP_API amp_status amp_policy_edit(amp_ctx *ctx, amp_policy *policy, amp_op op, amp_op_class c);
/* MindSpore's custom_mixed_precision: exactly one of the lists, which replaces the default one. white: those operations
   in half and back to FP32, nothing else; black: everything in half but those, FP32 parameters. A default black entry
   (MindSpore's list) that is left out gives a warning. INVALID_ARG: both lists or neither, an unknown operation, n 0,
   dtype not AMP_F16 / AMP_BF16 (AMP_AUTO => AMP_F16). */
AMP_API amp_status amp_policy_custom(amp_ctx *ctx, amp_policy *policy, const amp_op *white, size_t n_white,
    const amp_op *black, size_t n_black, amp_dtype dtype);

#ifdef __cplusplus
} /* extern "C" */

/* C++ cannot take the address of a compound literal: each of these functions also takes a reference. A row: name,
   desc, the arguments before it, and how they are declared.   tests: tests/compile.sh, tests/compile/overloads.cpp */
extern "C++" {
#  define AMPI_EACH(...) __VA_ARGS__
#  define AMPI_REF(name, desc, arguments, ...) \
    static inline amp_status name(__VA_ARGS__, const desc &d) { return name(AMPI_EACH arguments, &d); }
AMPI_REF(amp_gemm, amp_gemm_desc, (c), amp_ctx *c)
AMPI_REF(amp_gemm_tune, amp_gemm_desc, (c), amp_ctx *c)
AMPI_REF(amp_gemm_explain, amp_gemm_desc, (c, text, bytes), amp_ctx *c, char *text, size_t bytes)
AMPI_REF(amp_linear_forward, amp_linear_desc, (c), amp_ctx *c)
AMPI_REF(amp_linear_backward, amp_linear_desc, (c), amp_ctx *c)
AMPI_REF(amp_linear_tune, amp_linear_desc, (c), amp_ctx *c)
AMPI_REF(amp_activation, amp_activation_desc, (c), amp_ctx *c)
AMPI_REF(amp_softmax_cross_entropy, amp_xent_desc, (c), amp_ctx *c)
AMPI_REF(amp_linear_cross_entropy, amp_linear_xent_desc, (c), amp_ctx *c)
AMPI_REF(amp_linear_cross_entropy_bytes, amp_linear_xent_desc, (c, bytes), amp_ctx *c, size_t *bytes)
AMPI_REF(amp_dropout, amp_dropout_desc, (c), amp_ctx *c)
AMPI_REF(amp_cast, amp_cast_desc, (c, dst, src, n), amp_ctx *c, amp_array dst, amp_array src, size_t n)
AMPI_REF(amp_step, amp_step_desc, (p, s), amp_params *p, amp_scaler *s)
AMPI_REF(amp_update, amp_step_desc, (p, s), amp_params *p, amp_scaler *s)
AMPI_REF(amp_inspect, amp_step_desc, (p, s), amp_params *p, amp_scaler *s)
AMPI_REF(amp_params_add, amp_param_desc, (p), amp_params *p)
AMPI_REF(amp_scaler_configure, amp_scaler_desc, (s), amp_scaler *s)
AMPI_REF(amp_autocast_begin, amp_autocast_desc, (c), amp_ctx *c)
AMPI_REF(amp_policy_init, amp_policy_desc, (c, p, l), amp_ctx *c, amp_policy *p, amp_preset l)
AMPI_REF(amp_state_save, amp_state_desc, (c, path), amp_ctx *c, const char *path)
AMPI_REF(amp_state_load, amp_state_desc, (c, path), amp_ctx *c, const char *path)
AMPI_REF(amp_cpu_create_checked, amp_cpu_desc, (o, version, size), amp_ctx **o, int version, size_t size)
AMPI_REF(amp_params_create_checked, amp_params_desc, (o, c, v, size), amp_params **o, amp_ctx *c, int v, size_t size)
AMPI_REF(amp_scaler_create_checked, amp_scaler_desc, (o, c, v, size), amp_scaler **o, amp_ctx *c, int v, size_t size)
AMPI_REF(amp_fp8_create_checked, amp_fp8_desc, (o, c, v, size), amp_fp8 **o, amp_ctx *c, int v, size_t size)
#  undef AMPI_REF
#  undef AMPI_EACH
} /* extern "C++" */
#endif

#pragma pack(pop)
#if defined(__GNUC__)
#  pragma GCC diagnostic pop
#endif
#endif /* AMP_H */

/* ==== >>impl ===================================================================================================== */
#if defined(AMP_IMPLEMENTATION) && defined(AMP_H) && !defined(AMPI_PASS)
#ifndef AMP_IMPLEMENTATION_ONCE
#define AMP_IMPLEMENTATION_ONCE
#pragma pack(push)
#pragma pack()
#if defined(__GNUC__)
#  pragma GCC diagnostic push
#  pragma GCC diagnostic ignored "-Wshadow"
#  if defined(__clang__)
#    pragma GCC diagnostic ignored "-Wold-style-cast"
#    pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"
#  elif defined(__cplusplus) || __GNUC__ >= 14
#    pragma GCC diagnostic ignored "-Wuseless-cast"
#  endif
#endif

#if defined(AMP_MALLOC) != defined(AMP_FREE)
#  error "amp.h: define both AMP_MALLOC and AMP_FREE, or neither"
#endif
#ifdef __cplusplus
extern "C++" {
#endif
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#ifndef AMP_MALLOC
#  define AMP_MALLOC(bytes) malloc(bytes)
#  define AMP_FREE(ptr)     free(ptr)
#  if !defined(malloc) && !defined(calloc) && !defined(free) /* else the program's: calloc may not fit its free */
#    define AMPI_CALLOC(bytes) calloc(1, bytes)
#  endif
#endif
#ifndef AMP_STREAM_BYTES
#  define AMP_STREAM_BYTES ((size_t)8 << 20)
#endif
#if !defined(AMP_NO_THREADS) && \
    ((defined(_MSC_VER) && !defined(__MINGW32__)) || (defined(__wasi__) && !defined(__wasm_atomics__)))
#  define AMP_NO_THREADS /* no pthreads there */
#endif
#ifndef AMP_NO_THREADS
#  include <pthread.h>
#  if !defined(_WIN32) && !defined(__wasi__)
#    include <signal.h>
#    include <sys/select.h> /* sigset_t, whatever the program has asked of the headers */
#  endif
#endif
#if !defined(_WIN32)
#  include <unistd.h>
#endif
#if !defined(AMP_NO_STDIO)
#  include <fcntl.h>
#  include <time.h>
#  if defined(_WIN32)
#    include <io.h>
#    include <process.h>
#  else
#    include <dirent.h>
#    include <sys/file.h>
#    include <sys/stat.h>
#  endif
#endif
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__) && !defined(__CUDACC__) && !defined(AMP_NO_SIMD)
#  define AMPI_X86
#  include <cpuid.h>
#  include <immintrin.h>
#elif defined(__aarch64__) && defined(__AARCH64EL__) && defined(__GNUC__) && !defined(__TINYC__) && \
    !defined(__CUDACC__) && !defined(AMP_NO_SIMD)
#  define AMPI_NEON
#  include <arm_neon.h>
#endif
/* The floating-point control word, where arithmetic has one and it can be reached at once; else C99's environment,
   which is slower: x87 beside SSE2 has two. */
#if defined(__SSE2__) && defined(__SSE2_MATH__) && defined(__GNUC__) && !defined(__TINYC__)
#  define AMPI_MXCSR
#elif defined(__aarch64__) && defined(__GNUC__)
#  define AMPI_FPCR
#else
#  include <fenv.h>
#endif
#if defined(AMP_CUDA_NVTX)
#  include <nvtx3/nvToolsExt.h>
#endif

#ifdef __cplusplus
} /* extern "C++" */
extern "C" {
#endif
#if defined(__cplusplus) && defined(__THROW)
#  define AMPI_NO_THROW __THROW /* glibc's, of the same declarations */
#else
#  define AMPI_NO_THROW
#endif
/* As POSIX declares them: the system's headers hide them under -std=c99; some are macros, too, on macOS. */
#if !defined(AMP_NO_STDIO) && !defined(_WIN32)
extern int fsync(int);
extern int fileno(FILE *) AMPI_NO_THROW;
extern FILE *fdopen(int, const char *) AMPI_NO_THROW;
extern int fchmod(int, mode_t) AMPI_NO_THROW;
extern ssize_t readlink(const char *, char *, size_t) AMPI_NO_THROW;
#endif
#if !defined(AMP_NO_THREADS) && !defined(_WIN32) && !defined(__wasi__)
extern int(sigfillset)(sigset_t *) AMPI_NO_THROW;
extern int(sigdelset)(sigset_t *, int) AMPI_NO_THROW;
extern int pthread_sigmask(int, const sigset_t *, sigset_t *) AMPI_NO_THROW;
#endif
#if defined(__linux__)
extern int madvise(void *, size_t, int) AMPI_NO_THROW;
#endif
#if defined(__APPLE__) && !defined(__cplusplus)
extern int(snprintf)(char *, size_t, const char *, ...); /* hidden from who defines _POSIX_C_SOURCE before 200112 */
extern int(vsnprintf)(char *, size_t, const char *, va_list);
#endif

/* ==== >>front-status =============================================================================================
   Names of statuses and dtypes, host memory.   tests: tests/test_context.c, tests/test_formats.c */

AMP_API const char *amp_strerror(amp_status status) {
    switch (status) {
        /* clang-format off */
#define AMP_X(name, value, text) case name: return text;
    AMP_STATUS_LIST(AMP_X)
#undef AMP_X
        /* clang-format on */
    case AMP_STATUS_FORCE_INT: break;
    }
    return "unknown status";
}

AMP_API int amp_version(void) { return AMP_VERSION; }

#define AMPI_FORMAT_NAME(T, name, ...) \
case AMP_##T: return #name;
AMP_API const char *amp_dtype_name(amp_dtype t) {
    switch (t) {
        AMPI_FORMATS(AMPI_FORMAT_NAME)
    case AMP_AUTO: return "auto";
    case AMP_F32: return "f32";
    case AMP_F64: return "f64";
    case AMP_MOMENT_8BIT: return "8bit";
    case AMP_MASK: return "mask";
    case AMP_DTYPE_COUNT: break;
    }
    return "unknown dtype";
}

AMP_API const char *amp_outcome_name(amp_outcome o) {
    switch (o) {
    case AMP_NO_STEP: return "no step";
    case AMP_STEPPED: return "stepped";
    case AMP_SKIPPED_INF: return "skipped: inf";
    case AMP_SKIPPED_NAN: return "skipped: nan";
    case AMP_SKIPPED_OVERFLOW: return "skipped: overflow after unscaling";
    case AMP_SKIPPED_WINDOW: return "skipped: lost or empty window";
    case AMP_SKIPPED_RATE: return "skipped: learning rate not finite";
    }
    return "unknown outcome";
}

/* ---- pthread_cancel: a verb is never left half-way. A thread can be cancelled only where it waits or uses a file, and
   in the program's functions: there it is held, from ampi_hold to ampi_release. The two cost a third of a small verb,
   so not every verb has them.   tests: tests/test_threads.c ---- */
#if !defined(AMP_NO_THREADS) && defined(PTHREAD_CANCEL_DISABLE) && !defined(__wasi__)
static int ampi_hold(void) {
    int before = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}
static void ampi_release(int before) { (void)pthread_setcancelstate(before, NULL); }
#else
static int ampi_hold(void) { return 0; }
static void ampi_release(int before) { (void)before; }
#endif

static void ampi_tell(const amp_logger *log, amp_log_level level, amp_status status, const char *text) {
    int before;
    if (!log->fn) return;
    before = ampi_hold();
    (log->fn)(level, status, text, log->user);
    ampi_release(before);
}
static void *ampi_host_take(const amp_allocator *a, size_t bytes) { /* as it comes */
    const int before = ampi_hold();
    void *p = a->alloc_fn ? a->alloc_fn(bytes, a->user) : AMP_MALLOC(bytes);
    ampi_release(before);
    return p;
}
/* For memory of many megabytes, not yet touched: pages of 2 MB where the system gives them to who asks. The first touch
   of each page costs about as much as reading its bytes from a file. */
static void ampi_host_large_pages(const amp_allocator *a, void *p, size_t bytes) {
#if defined(__linux__)
    const uintptr_t page = 65536, from = ((uintptr_t)p + page - 1) / page * page,
                    to = ((uintptr_t)p + bytes) / page * page;
    if (!p || a->alloc_fn || bytes < (size_t)8 << 20) return;
    (void)madvise((char *)p + (from - (uintptr_t)p), (size_t)(to - from), 14); /* MADV_HUGEPAGE; refused: as before */
#else
    (void)a;
    (void)p;
    (void)bytes;
#endif
}
static void *ampi_host_alloc(const amp_allocator *a, size_t bytes) { /* zeroed */
    void *p;
#ifdef AMPI_CALLOC
    if (!a->alloc_fn) { /* leaves new pages, which are zero, untouched */
        const int before = ampi_hold();
        p = AMPI_CALLOC(bytes);
        ampi_release(before);
        return p;
    }
#endif
    p = ampi_host_take(a, bytes);
    if (p) memset(p, 0, bytes);
    return p;
}
static void ampi_host_free(const amp_allocator *a, void *p, size_t bytes) {
    int before;
    if (!p) return;
    before = ampi_hold();
    if (a->free_fn)
        a->free_fn(p, bytes, a->user);
    else
        AMP_FREE(p);
    ampi_release(before);
}
/* x leaves a list of its kind. */
#define AMPI_UNLINK(type, list, x, next) \
    do { \
        type **at_ = &(list); \
        while (*at_ != (x)) \
            at_ = &(*at_)->next; \
        *at_ = (x)->next; \
    } while (0)
static int ampi_product(size_t *out, size_t a, size_t b) {              /* 0 when it overflows */
    if ((a | b) >> (sizeof a * 4) && b && a > (size_t)-1 / b) return 0; /* a division only for large numbers */
    *out = a * b;
    return 1;
}
/* The array, which doubles, with room for one more element of `size` bytes; NULL: no memory, and it is as it was. */
static void *ampi_grow(const amp_allocator *a, void *array, size_t n, size_t *cap, size_t size) {
    size_t to = *cap ? *cap * 2 : 8, bytes;
    void *p;
    if (n < *cap) return array;
    if (!ampi_product(&bytes, to, size) || !(p = ampi_host_alloc(a, bytes))) return NULL;
    if (n) memcpy(p, array, n * size);
    ampi_host_free(a, array, *cap * size);
    *cap = to;
    return p;
}

/* ==== >>front-door ===============================================================================================
   The door of every verb: one thread at a time, the floating-point environment, sentences that begin with the verb's
   name; and the checks that make them.   tests: tests/test_context.c, tests/test_threads.c, tests/test_modes.c; and
   tests/called.h */

/* ---- floating-point control word: the default while a verb runs, the caller's again afterwards ---- */
#if defined(AMPI_MXCSR)
typedef uint32_t ampi_fpu;
static ampi_fpu ampi_fpu_read(void) {
    uint32_t x = 0;
    __asm__ volatile("stmxcsr %0" : "=m"(x));
    return x;
}
static void ampi_fpu_write(ampi_fpu x) { __asm__ volatile("ldmxcsr %0" : : "m"(x) : "memory"); }
static ampi_fpu ampi_fpu_enter(void) {
    ampi_fpu old = ampi_fpu_read();
    if ((old & 0xffc0u) != 0x1f80u) ampi_fpu_write(0x1f80u);
    return old;
} /* writing is slow */
static void ampi_fpu_leave(ampi_fpu old) {
    if (ampi_fpu_read() != old) ampi_fpu_write(old);
}
#elif defined(AMPI_FPCR)
typedef uint64_t ampi_fpu;
static ampi_fpu ampi_fpu_enter(void) {
    uint64_t old;
    __asm__ volatile("mrs %0, fpcr" : "=r"(old));
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0) : "memory");
    return old;
}
static void ampi_fpu_leave(ampi_fpu old) { __asm__ volatile("msr fpcr, %0" : : "r"(old) : "memory"); }
#else
typedef fenv_t ampi_fpu;
static ampi_fpu ampi_fpu_enter(void) {
    fenv_t old;
    (void)fegetenv(&old);
    (void)fesetenv(FE_DFL_ENV);
    return old;
}
static void ampi_fpu_leave(ampi_fpu old) { (void)fesetenv(&old); }
#endif

/* ---- what a verb changes of the thread that calls it, and gives back: that control word; errno, unless it fails;
   whether the thread can be cancelled, if all of the verb has to be held (ampi_verb_hold) ---- */
typedef struct ampi_caller {
    ampi_fpu fpu;
    int error, holds, hold;
} ampi_caller;
static ampi_caller ampi_caller_enter(void) {
    ampi_caller c;
    c.error = errno;
    c.holds = c.hold = 0;
    c.fpu = ampi_fpu_enter();
    return c;
}
static void ampi_caller_leave(ampi_caller c, amp_status status) {
    ampi_fpu_leave(c.fpu);
    if (status == AMP_OK) errno = c.error;
    if (c.holds) ampi_release(c.hold);
}
static const void *ampi_this_thread(void) { return &errno; } /* each has its own */

typedef struct ampi_block {
    void *ptr;
    size_t bytes, row;
    int given; /* by amp_alloc: amp_free may have it back */
} ampi_block;
typedef struct ampi_scope ampi_scope;

struct amp_ctx {
    const amp_backend *b; /* &table */
    amp_backend table;
    void *self;
    amp_allocator host;
    amp_logger log;
    ampi_block *blocks; /* context memory given out */
    size_t n_blocks, cap_blocks;
    amp_ledger_row *rows; /* row 0: total */
    size_t n_rows, cap_rows;
    uint64_t serial;  /* numbers the iterations of all scalers of this context */
    uint64_t weights; /* counts changes of weights */
    amp_params *sets; /* committed ones */
    amp_scaler *scalers;
    amp_fp8 *fp8s;
    ampi_scope *scope;   /* autocast: NULL before the first begin */
    uint32_t in_use;     /* atomic, as the next three: 1: a verb is running */
    const void *thread;  /* whose, while a verb runs; NULL: none */
    const char *refused; /* sentence for a thread that came meanwhile, until the next failure; NULL: none */
    const char *knocked; /* the same, until the log has it */
    const char *verb;    /* that runs: its name up to the colon; NULL: none */
    const char *inside;  /* "amp_gemm: " while a different verb uses it, or NULL */
    ampi_caller caller;  /* while a verb runs */
    char error[320];
};

/* Host memory of a context, zeroed; given back with its size. */
static void *ampi_host_new(const amp_ctx *ctx, size_t bytes) { return ampi_host_alloc(&ctx->host, bytes); }
static void ampi_host_drop(const amp_ctx *ctx, void *p, size_t bytes) { ampi_host_free(&ctx->host, p, bytes); }

/* ---- one thread at a time: a verb takes the context and gives it back; whoever comes meanwhile is refused and touches
   nothing but the two words that say so. Where the compiler has no atomics nobody is refused. ---- */
#if defined(__GCC_ATOMIC_INT_LOCK_FREE) && __GCC_ATOMIC_INT_LOCK_FREE == 2
#  define AMPI_READ(word)     __atomic_load_n(word, __ATOMIC_ACQUIRE)
#  define AMPI_WRITE(word, x) __atomic_store_n(word, x, __ATOMIC_RELEASE)
static int ampi_take(amp_ctx *ctx) { /* 0: a different thread is inside */
    uint32_t unused = 0;
    return __atomic_compare_exchange_n(&ctx->in_use, &unused, 1u, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
#else
#  define AMPI_READ(word)     (*(word))
#  define AMPI_WRITE(word, x) (void)(*(word) = (x))
static int ampi_take(amp_ctx *ctx) { return ctx != NULL; }
#endif
static amp_status ampi_refuse(amp_ctx *ctx, const char *sentence) {
    AMPI_WRITE(&ctx->refused, sentence);
    AMPI_WRITE(&ctx->knocked, sentence);
    return AMP_ERR_BUSY;
}
static const char *ampi_refusal(const amp_ctx *ctx) { return AMPI_READ(&ctx->refused); }
static void ampi_give(amp_ctx *ctx) {
    const char *knocked = AMPI_READ(&ctx->knocked);
    if (knocked) { /* the log is written by the thread that has the context */
        AMPI_WRITE(&ctx->knocked, (const char *)NULL);
        ampi_tell(&ctx->log, AMP_LOG_ERROR, AMP_ERR_BUSY, knocked);
    }
    AMPI_WRITE(&ctx->thread, (const void *)NULL);
    AMPI_WRITE(&ctx->in_use, 0u);
}

/* What the backend changed for the calling thread is as it was. Before the end of the verb where something is made that
   must not stay if that fails. */
static amp_status ampi_settle(amp_ctx *ctx, amp_status status) {
    return ctx->b->leave ? (ctx->b->leave)(ctx, status) : status;
}
/* A verb is a range in a profiler's picture, on the line of the thread that calls it. */
#ifdef AMP_CUDA_NVTX
static void ampi_range_begin(const char *verb) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(verb, ":"), verb);
    (void)nvtxRangePushA(name);
}
#  define AMPI_RANGE_BEGIN(verb) ampi_range_begin(verb)
#  define AMPI_RANGE_END()       (void)nvtxRangePop()
#else
#  define AMPI_RANGE_BEGIN(verb) (void)0
#  define AMPI_RANGE_END()       (void)0
#endif
/* Until the verb ends, this thread is not cancelled. */
static void ampi_verb_hold(amp_ctx *ctx) {
    if (ctx->caller.holds) return;
    ctx->caller.hold = ampi_hold();
    ctx->caller.holds = 1;
}
AMP_API amp_status amp_verb_begin(amp_ctx *ctx, const char *verb) {
    if (!ctx) return AMP_ERR_INVALID_ARG;
    if (!ampi_take(ctx)) return ampi_refuse(ctx, verb);
    AMPI_WRITE(&ctx->thread, ampi_this_thread());
    ctx->caller = ampi_caller_enter();
    if (!ctx->b->holds) ampi_verb_hold(ctx);
    ctx->verb = verb;
    AMPI_RANGE_BEGIN(verb);
    return AMP_OK;
}
AMP_API amp_status amp_verb_end(amp_ctx *ctx, amp_status status) {
    ampi_caller caller = ctx->caller;
    status = ampi_settle(ctx, status);
    AMPI_RANGE_END();
    ctx->verb = NULL;
    ampi_give(ctx);
    ampi_caller_leave(caller, status);
    return status;
}
/* Ends the verb in which this thread still has the context: an exception or a longjmp has left it. */
static void ampi_end_left(amp_ctx *ctx) {
    if (!ctx || AMPI_READ(&ctx->thread) != ampi_this_thread()) return;
    ctx->inside = NULL;
    amp_log_event(ctx, AMP_LOG_WARNING, "this call never returned: what it was making is lost");
    (void)amp_verb_end(ctx, AMP_OK);
}
/* The body of a verb amp_NAME whose work is ampi_do_NAME; and of one that works on an object, by that one's context. */
#define AMPI_VERB(ctx, name, arguments)       AMP_VERB(ctx, "amp_" #name, ampi_do_##name arguments)
#define AMPI_VERB_OF(object, name, arguments) AMPI_VERB(AMPI_CTX(object), name, arguments)
#define AMPI_CTX(object)                      ((object) ? (object)->ctx : NULL)
/* The same for what returns nothing: it does nothing when it is refused. */
#define AMPI_VOID_VERB(ctx, name, arguments) \
    do { \
        amp_ctx *in_ = (ctx); \
        if (amp_verb_begin(in_, "amp_" #name AMPI_BUSY) != AMP_OK) return; \
        ampi_do_##name arguments; \
        (void)amp_verb_end(in_, AMP_OK); \
    } while (0)
#define AMPI_DESTROY(ctx, name, arguments) \
    do { \
        ampi_end_left(ctx); \
        AMPI_VOID_VERB(ctx, name, arguments); \
    } while (0)

/* ---- sentences ---- */

#if defined(__GNUC__) || defined(__clang__)
__attribute__((__format__(__printf__, 3, 0)))
#endif
static void ampi_message(char *to, size_t n, const char *format, va_list va) {
    if (vsnprintf(to, n, format, va) < 0) to[0] = 0;
}
/* "VERB: ", in front of every sentence; returns its length. */
static size_t ampi_name_verb(const amp_ctx *ctx, char *to, size_t bytes) {
    to[0] = 0;
    if (ctx->verb)
        snprintf(to, bytes, "%.*s: %s", (int)strcspn(ctx->verb, ":"), ctx->verb, ctx->inside ? ctx->inside : "");
    return strlen(to);
}

AMP_API amp_status amp_fail(amp_ctx *ctx, amp_status status, const char *format, ...) {
    size_t n = ampi_name_verb(ctx, ctx->error, sizeof ctx->error);
    va_list va;
    va_start(va, format);
    ampi_message(ctx->error + n, sizeof ctx->error - n, format, va);
    va_end(va);
    if (ampi_refusal(ctx)) AMPI_WRITE(&ctx->refused, (const char *)NULL);
    ampi_tell(&ctx->log, AMP_LOG_ERROR, status, ctx->error);
    return status;
}
AMP_API void amp_log_event(const amp_ctx *ctx, amp_log_level level, const char *format, ...) {
    char text[320];
    size_t n;
    va_list va;
    if (!ctx->log.fn) return;
    n = ampi_name_verb(ctx, text, sizeof text);
    va_start(va, format);
    ampi_message(text + n, sizeof text - n, format, va);
    va_end(va);
    ampi_tell(&ctx->log, level, AMP_OK, text);
}

/* Checks: a condition, and the sentence with which the function is left unless the condition holds. They, and the
   others here, want the context in a variable `ctx`. */
#define AMPI_REQUIRE(condition, status, ...) \
    do { \
        if (!(condition)) return amp_fail(ctx, status, __VA_ARGS__); \
    } while (0)
#define AMPI_INVALID(...)          amp_fail(ctx, AMP_ERR_INVALID_ARG, __VA_ARGS__)
#define AMPI_CHECK(condition, ...) AMPI_REQUIRE(condition, AMP_ERR_INVALID_ARG, __VA_ARGS__)
#define AMPI_STAGE(condition, ...) AMPI_REQUIRE(condition, AMP_ERR_STAGE, __VA_ARGS__)
#define AMPI_BELOW(x, count)       ((uint32_t)(x) < (uint32_t)(count)) /* of an enum's value */
#define AMPI_MEMORY(pointer)       AMPI_REQUIRE(pointer, AMP_ERR_NO_MEMORY, "no host memory")
/* what a backend may leave out of its table */
#define AMPI_HAS(entry) AMPI_REQUIRE(ctx->b->entry, AMP_ERR_UNSUPPORTED, "backend %s has no %s", ctx->b->name, #entry)
/* zero-initialised, or made by who makes it */
#define AMPI_CLEAN(d)   (!(d)->_begin && !(d)->_end)
/* first lines of a verb with a desc */
#define AMPI_CHECK_DESC(d) \
    do { \
        AMPI_CHECK(d, "desc is NULL"); \
        AMPI_REQUIRE(AMPI_CLEAN(d), AMP_ERR_UNINIT, "desc is not zero-initialised (_begin or _end is not 0)"); \
    } while (0)
/* and of one whose desc may be NULL: then *d stays as it is */
#define AMPI_TAKE_DESC(d, desc) \
    do { \
        if (!(desc)) break; \
        AMPI_CHECK_DESC(desc); \
        *(d) = *(desc); \
    } while (0)
/* and of one that makes an object from it */
#define AMPI_CHECK_CREATE(out, version, size, d, desc) \
    do { \
        AMPI_CHECK(out, "out is NULL"); \
        AMPI_REQUIRE( \
            version == AMP_VERSION && size == sizeof *(d), AMP_ERR_VERSION, "header and implementation differ"); \
        AMPI_TAKE_DESC(d, desc); \
    } while (0)
/* ==== >>front-context ============================================================================================
   Contexts and their memory.   tests: tests/test_context.c */

static int ampi_is_usable(const amp_backend *b) {
    int memory = b->alloc && b->release && b->copy && b->copy_async && b->zero;
    return b->name && b->destroy && memory && b->sync && b->may_wait && b->cast;
}
AMP_API amp_status amp_ctx_create_backend(
    amp_ctx **out, const amp_backend *backend, void *self, const amp_allocator *host, const amp_logger *logger) {
    amp_allocator none = AMP_ZERO;
    amp_ctx *ctx;
    if (!out) return AMP_ERR_INVALID_ARG;
    *out = NULL;
    if (!backend) return AMP_ERR_INVALID_ARG;
    if (backend->version != (uint32_t)AMP_VERSION || backend->size != sizeof *backend) return AMP_ERR_VERSION;
    if (!ampi_is_usable(backend)) return AMP_ERR_INVALID_ARG;
    if (!host) host = &none;
    ctx = (amp_ctx *)ampi_host_alloc(host, sizeof *ctx);
    if (!ctx) return AMP_ERR_NO_MEMORY;
    ctx->table = *backend;
    ctx->b = &ctx->table;
    ctx->self = self;
    ctx->host = *host;
    if (logger) ctx->log = *logger;
    ctx->rows = (amp_ledger_row *)ampi_grow(host, NULL, 0, &ctx->cap_rows, sizeof *ctx->rows);
    if (!ctx->rows) {
        ampi_host_free(host, ctx, sizeof *ctx);
        return AMP_ERR_NO_MEMORY;
    }
    memcpy(ctx->rows[0].label, "total", 6);
    ctx->n_rows = 1;
    *out = ctx;
    return AMP_OK;
}

AMP_API void *amp_ctx_self(const amp_ctx *ctx) { return ctx->self; }
AMP_API const char *amp_last_error(const amp_ctx *ctx) {
    const char *refused = ctx ? ampi_refusal(ctx) : "";
    return refused ? refused : ctx->error;
}
AMP_API const char *amp_ctx_name(const amp_ctx *ctx) { return ctx ? ctx->b->name : ""; }

static void ampi_scope_destroy(amp_ctx *ctx);
static void ampi_do_params_destroy(amp_params *p);
static void ampi_do_scaler_destroy(amp_scaler *s);
static void ampi_do_fp8_destroy(amp_fp8 *f);
AMP_API void amp_ctx_destroy(amp_ctx *ctx) {
    amp_allocator host;
    int error = errno, before;
    ampi_end_left(ctx);
    before = ampi_hold(); /* the backend's part follows the verb's end */
    if (amp_verb_begin(ctx, "amp_ctx_destroy" AMPI_BUSY) != AMP_OK) {
        ampi_release(before);
        return;
    }
    ampi_scope_destroy(ctx);
    while (ctx->sets) {
        amp_log_event(ctx, AMP_LOG_WARNING, "a parameter set was not destroyed");
        ampi_do_params_destroy(ctx->sets);
    }
    while (ctx->scalers) {
        amp_log_event(ctx, AMP_LOG_WARNING, "a scaler was not destroyed");
        ampi_do_scaler_destroy(ctx->scalers);
    }
    while (ctx->fp8s) {
        amp_log_event(ctx, AMP_LOG_WARNING, "an amp_fp8 was not destroyed");
        ampi_do_fp8_destroy(ctx->fp8s);
    }
    while (ctx->n_blocks) {
        const ampi_block b = ctx->blocks[ctx->n_blocks - 1];
        amp_log_event(
            ctx, AMP_LOG_WARNING, "%llu bytes of \"%s\" were not freed", AMPI_ULL(b.bytes), ctx->rows[b.row].label);
        ctx->n_blocks--;
        (ctx->b->release)(ctx, b.ptr, b.bytes);
    }
    (void)amp_verb_end(ctx, AMP_OK);
    (ctx->b->destroy)(ctx);
    host = ctx->host;
    ampi_host_free(&host, ctx->blocks, ctx->cap_blocks * sizeof *ctx->blocks);
    ampi_host_free(&host, ctx->rows, ctx->cap_rows * sizeof *ctx->rows);
    ampi_host_free(&host, ctx, sizeof *ctx);
    errno = error;
    ampi_release(before);
}

static void ampi_ledger_add(amp_ledger_row *r, size_t bytes) {
    r->bytes += bytes;
    if (r->peak < r->bytes) r->peak = r->bytes;
}

static amp_status ampi_backend_zeros(amp_ctx *ctx, void **out, size_t bytes) {
    amp_status st;
    if (ctx->b->alloc_zeros) return (ctx->b->alloc_zeros)(ctx, out, bytes);
    AMPI_TRY((ctx->b->alloc)(ctx, out, bytes));
    st = (ctx->b->zero)(ctx, *out, bytes);
    if (st != AMP_OK) (ctx->b->release)(ctx, *out, bytes);
    return st;
}
static amp_status ampi_alloc_block(amp_ctx *ctx, void **out, size_t bytes, const char *label, int zeros) {
    amp_ledger_row *rows = ctx->rows;
    ampi_block *blocks;
    void *p = NULL;
    size_t row;
    amp_status st;
    AMPI_CHECK(out, "out is NULL");
    *out = NULL;
    if (!label) label = "user";
    AMPI_CHECK(strlen(label) <= 31, "label \"%s\" is longer than 31 characters", label);
    if (bytes == 0) return AMP_OK;
    for (row = 1; row < ctx->n_rows; row++)
        if (strcmp(rows[row].label, label) == 0) break;
    if (row == ctx->n_rows)
        rows = (amp_ledger_row *)ampi_grow(&ctx->host, rows, ctx->n_rows, &ctx->cap_rows, sizeof *rows);
    if (rows) ctx->rows = rows;
    blocks = (ampi_block *)ampi_grow(&ctx->host, ctx->blocks, ctx->n_blocks, &ctx->cap_blocks, sizeof *blocks);
    if (blocks) ctx->blocks = blocks;
    AMPI_REQUIRE(rows && blocks, AMP_ERR_NO_MEMORY, "no memory for the ledger");
    AMPI_TRY(zeros ? ampi_backend_zeros(ctx, &p, bytes) : (ctx->b->alloc)(ctx, &p, bytes));
    st = ampi_settle(ctx, AMP_OK);
    if (st != AMP_OK) {
        (ctx->b->release)(ctx, p, bytes);
        return st;
    }
    if (row == ctx->n_rows) {
        memset(&rows[row], 0, sizeof rows[row]);
        memcpy(rows[row].label, label, strlen(label));
        ctx->n_rows++;
    }
    ampi_ledger_add(&rows[0], bytes);
    ampi_ledger_add(&rows[row], bytes);
    blocks += ctx->n_blocks++;
    blocks->ptr = p;
    blocks->bytes = bytes;
    blocks->row = row;
    blocks->given = 0;
    *out = p;
    return AMP_OK;
}
static amp_status ampi_do_alloc(amp_ctx *ctx, void **out, size_t bytes, const char *label) {
    AMPI_CHECK(!label || strcmp(label, "total") != 0, "label \"total\" is that of all rows");
    AMPI_TRY(ampi_alloc_block(ctx, out, bytes, label, 0));
    if (*out) ctx->blocks[ctx->n_blocks - 1].given = 1;
    return AMP_OK;
}
AMP_API amp_status amp_alloc(amp_ctx *ctx, void **out, size_t bytes, const char *label) {
    if (out) *out = NULL;
    AMPI_VERB(ctx, alloc, (ctx, out, bytes, label));
}

static void ampi_drop_casts(ampi_scope *s, const void *data, size_t bytes);
/* A verb writes here, or frees it: the casts of what lies there are stale. */
static void ampi_wrote(amp_ctx *ctx, const void *data, size_t bytes) {
    if (ctx->scope && data) ampi_drop_casts(ctx->scope, data, bytes);
}
/* The block that begins at ptr, usually a young one; or NULL. */
static ampi_block *ampi_block_at(amp_ctx *ctx, const void *ptr) {
    size_t i = ctx->n_blocks;
    while (i > 0 && ctx->blocks[i - 1].ptr != ptr)
        i--;
    return i ? &ctx->blocks[i - 1] : NULL;
}
static void ampi_free_block(amp_ctx *ctx, void *ptr) { /* NULL is fine */
    ampi_block *b = ptr ? ampi_block_at(ctx, ptr) : NULL;
    if (!b) return;
    ampi_wrote(ctx, ptr, b->bytes);
    (ctx->b->release)(ctx, ptr, b->bytes);
    ctx->rows[0].bytes -= b->bytes;
    ctx->rows[b->row].bytes -= b->bytes;
    ctx->n_blocks--;
    memmove(b, b + 1, (size_t)(&ctx->blocks[ctx->n_blocks] - b) * sizeof *b);
}
static amp_status ampi_do_free(amp_ctx *ctx, void *ptr) {
    const ampi_block *b = ampi_block_at(ctx, ptr);
    AMPI_CHECK(!ptr || (b && b->given), "ptr was not given by amp_alloc of this context, or is freed already");
    ampi_free_block(ctx, ptr);
    return AMP_OK;
}
AMP_API amp_status amp_free(amp_ctx *ctx, void *ptr) { AMPI_VERB(ctx, free, (ctx, ptr)); }

AMP_API size_t amp_ledger(const amp_ctx *ctx, amp_ledger_row *out, size_t cap, const char *label) {
    size_t i, n = 0;
    if (!ctx) return 0;
    for (i = 0; i < ctx->n_rows; i++) {
        if (label && strcmp(ctx->rows[i].label, label) != 0) continue;
        if (out && n < cap) out[n] = ctx->rows[i];
        n++;
    }
    return n;
}

static amp_status ampi_do_copy(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    if (bytes == 0) return AMP_OK;
    AMPI_CHECK(dst && src, "%s is NULL", dst ? "src" : "dst");
    AMPI_TRY((ctx->b->may_wait)(ctx));
    ampi_wrote(ctx, dst, bytes);
    return (ctx->b->copy)(ctx, dst, src, bytes);
}
AMP_API amp_status amp_copy(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    AMPI_VERB(ctx, copy, (ctx, dst, src, bytes));
}
static amp_status ampi_do_copy_async(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    if (bytes == 0) return AMP_OK;
    AMPI_CHECK(dst && src, "%s is NULL", dst ? "src" : "dst");
    ampi_wrote(ctx, dst, bytes);
    return (ctx->b->copy_async)(ctx, dst, src, bytes);
}
AMP_API amp_status amp_copy_async(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    AMPI_VERB(ctx, copy_async, (ctx, dst, src, bytes));
}
static amp_status ampi_do_zero(amp_ctx *ctx, void *dst, size_t bytes) {
    if (bytes == 0) return AMP_OK;
    AMPI_CHECK(dst, "dst is NULL");
    ampi_wrote(ctx, dst, bytes);
    return (ctx->b->zero)(ctx, dst, bytes);
}
AMP_API amp_status amp_zero(amp_ctx *ctx, void *dst, size_t bytes) { AMPI_VERB(ctx, zero, (ctx, dst, bytes)); }
static amp_status ampi_do_sync(amp_ctx *ctx) {
    AMPI_TRY((ctx->b->may_wait)(ctx));
    return (ctx->b->sync)(ctx);
}
AMP_API amp_status amp_sync(amp_ctx *ctx) { AMPI_VERB(ctx, sync, (ctx)); }

/* ---- arrays as arguments: alignment, number of elements, and which of a verb's may overlap.
   tests: tests/test_refusals.c, tests/test_arrays.c ---- */

/* Elements of size bytes lie at p. A device loads and stores whole aligned elements only. */
static int ampi_is_aligned(const amp_ctx *ctx, const void *p, size_t size) {
    return !ctx->b->aligned || (uintptr_t)p % size == 0;
}
/* A pointer to numbers of a C type, which must lie as that type does, on the CPU, too; NULL is fine. Some ABIs have 8
   bytes at multiples of 4. */
static amp_status ampi_check_pointer(amp_ctx *ctx, const char *name, const void *p, size_t size) {
    struct eight {
        char c;
        int64_t x;
    };
    const size_t step = size == 8u && !ctx->b->aligned ? offsetof(struct eight, x) : size;
    if (!p || (uintptr_t)p % step == 0) return AMP_OK;
    return AMPI_INVALID("%s is not aligned to %llu bytes", name, AMPI_ULL(step));
}
static amp_status ampi_check_words(amp_ctx *ctx, const char *name, const void *p) {
    return ampi_check_pointer(ctx, name, p, 4u);
}

/* What ampi_check_storage is about to say nothing of: nearly every array. */
static int ampi_is_stored(const amp_ctx *ctx, const amp_array *a, size_t need) {
    const size_t size = amp_dtype_size(a->dtype);
    const int long_enough = !a->count || a->count >= need;
    return a->data && size && long_enough && !(a->flags & ~AMP_CACHE) && ampi_is_aligned(ctx, a->data, size);
}
/* an operand of `need` elements, doubles too; required: NULL is refused when need > 0 */
static amp_status ampi_check_storage(amp_ctx *ctx, const char *name, amp_array a, size_t need, int required) {
    if (ampi_is_stored(ctx, &a, need)) return AMP_OK;
    if (!a.data) return required && need ? AMPI_INVALID("%s.data is NULL", name) : AMP_OK;
    AMPI_CHECK(amp_dtype_size(a.dtype) != 0, "%s.dtype is %d (%s); a storage dtype is needed", name, (int)a.dtype,
        amp_dtype_name(a.dtype));
    AMPI_CHECK(ampi_is_aligned(ctx, a.data, amp_dtype_size(a.dtype)),
        "%s.data is not aligned to the %d bytes of its elements", name, (int)amp_dtype_size(a.dtype));
    AMPI_CHECK(!(a.flags & ~AMP_CACHE), "%s.flags has unknown bits", name);
    AMPI_CHECK(!a.count || a.count >= need, "%s.count is %llu, but %llu elements are needed", name, AMPI_ULL(a.count),
        AMPI_ULL(need));
    return AMP_OK;
}

/* what nearly every verb takes */
static int ampi_is_dtype(amp_dtype t) { return amp_dtype_size(t) != 0 && t != AMP_F64; }
static amp_status ampi_check_array(amp_ctx *ctx, const char *name, amp_array a, size_t need, int required) {
    AMPI_CHECK(!a.data || a.dtype != AMP_F64,
        "%s is f64: only amp_cast, amp_all_finite and amp_watch_array take doubles. amp_cast it to f32 first", name);
    return ampi_check_storage(ctx, name, a, need, required);
}

/* A mask as the bytes that it is, to be checked and marked; other arrays as they are. Then of how many elements. */
static amp_array ampi_unmasked(amp_array a) {
    if (a.dtype != AMP_MASK) return a;
    a.dtype = AMP_F8E4M3;
    a.count = 0;
    return a;
}
static size_t ampi_unmasked_count(amp_array a, size_t elements, size_t rows, size_t cols) {
    return a.dtype == AMP_MASK ? rows * ampi_mask_pitch(cols) : elements;
}
/* What an act keeps for its backward: `elements`, or a mask of rows x cols. */
static amp_status ampi_check_saved(
    amp_ctx *ctx, const char *name, amp_array a, amp_act act, size_t elements, size_t rows, size_t cols, int required) {
    const size_t need = ampi_unmasked_count(a, elements, rows, cols);
    if (a.data && a.dtype == AMP_MASK) {
        AMPI_CHECK(act == AMP_RELU, "%s.dtype is mask, which AMP_RELU alone has, but act is %d", name, (int)act);
        AMPI_CHECK(!a.count || a.count / 8u >= need,
            "%s.count is %llu, but %llu bits are needed: rows begin with a byte", name, AMPI_ULL(a.count),
            AMPI_ULL(8u * need));
    }
    return ampi_check_array(ctx, name, ampi_unmasked(a), need, required);
}

static int ampi_overlap(const void *a, size_t na, const void *b, size_t nb) {
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return na && nb && x < y + nb && y < x + na;
}

/* Memory that a verb uses in several stages: it may not write what a later stage, or the same one, reads, nor what it
   writes elsewhere. */
typedef struct ampi_extent {
    const char *name;
    const void *data;
    size_t bytes;
    int read, write; /* the last stage that reads it, the one that writes it, counted from 1; 0: none */
} ampi_extent;
static ampi_extent ampi_extent_of(const char *name, amp_array a, size_t count, int read, int write) {
    ampi_extent r = {name, a.data, a.data ? count * amp_dtype_size(a.dtype) : 0, read, write};
    return r;
}
static ampi_extent ampi_saved_extent(
    const char *name, amp_array a, size_t elements, size_t rows, size_t cols, int read, int write) {
    return ampi_extent_of(name, ampi_unmasked(a), ampi_unmasked_count(a, elements, rows, cols), read, write);
}
static amp_status ampi_refuse_overlap(amp_ctx *ctx, const ampi_extent *r, const ampi_extent *with) {
    const uintptr_t x = (uintptr_t)r->data, y = (uintptr_t)with->data;
    const char *side = y < x ? "before" : "after";
    const uintptr_t distance = y < x ? x - y : y - x;
    return AMPI_INVALID("%s overlaps %s, which begins %llu bytes %s it", r->name, with->name, AMPI_ULL(distance), side);
}
static amp_status ampi_check_extents(amp_ctx *ctx, const ampi_extent *r, size_t n) {
    size_t i, k;
    for (i = 0; i < n; i++)
        for (k = 0; r[i].write && r[i].bytes && k < n; k++) {
            int used = r[k].read >= r[i].write || r[k].write;
            if (k == i) continue;
            if (!used) continue;
            if (ampi_overlap(r[i].data, r[i].bytes, r[k].data, r[k].bytes))
                return ampi_refuse_overlap(ctx, &r[i], &r[k]);
        }
    return AMP_OK;
}

/* Arrays of many owners, of which no two may overlap: sorted, two that do are neighbours. */
typedef struct ampi_range {
    uintptr_t first;
    size_t bytes, owner;
    const char *what;
} ampi_range;
static int ampi_range_order(const void *a, const void *b) {
    const ampi_range *x = (const ampi_range *)a, *y = (const ampi_range *)b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->owner < y->owner ? -1 : x->owner > y->owner;
}
static const ampi_range *ampi_ranges_meet(ampi_range *r, size_t n) { /* the second of two that do, or NULL */
    size_t i;
    if (n) qsort(r, n, sizeof *r, ampi_range_order);
    for (i = 1; i < n; i++)
        if (r[i].first - r[i - 1].first < r[i - 1].bytes) return &r[i];
    return NULL;
}

/* ==== >>front-arrays =============================================================================================
   Arrays: casts, finite checks, histograms.   tests: tests/test_arrays.c */

static void ampi_wrote_array(amp_ctx *ctx, amp_array a, size_t n) {
    ampi_wrote(ctx, a.data, n * amp_dtype_size(a.dtype));
}
/* Element i of y is made from element i of x: both are long enough, and are the same bytes or apart. */
static int ampi_is_map(const amp_ctx *ctx, const amp_array *y, const amp_array *x, size_t count) {
    const size_t ny = count * amp_dtype_size(y->dtype), nx = count * amp_dtype_size(x->dtype);
    if (count > (size_t)-1 / 8 || !ampi_is_stored(ctx, y, count) || !ampi_is_stored(ctx, x, count)) return 0;
    return y->data == x->data ? ny == nx : !ampi_overlap(y->data, ny, x->data, nx);
}
static amp_status ampi_check_stored_map(
    amp_ctx *ctx, const char *name_y, amp_array y, const char *name_x, amp_array x, size_t count) {
    size_t ny = 0, nx = 0;
    if (ampi_is_map(ctx, &y, &x, count)) return AMP_OK;
    AMPI_TRY(ampi_check_storage(ctx, name_y, y, count, 1));
    AMPI_TRY(ampi_check_storage(ctx, name_x, x, count, 1));
    AMPI_CHECK(ampi_product(&ny, count, amp_dtype_size(y.dtype)) && ampi_product(&nx, count, amp_dtype_size(x.dtype)),
        "a count of %llu is too large", AMPI_ULL(count));
    AMPI_CHECK((y.data == x.data && ny == nx) || !ampi_overlap(y.data, ny, x.data, nx),
        "%s and %s overlap (the same array with one element size is allowed)", name_y, name_x);
    return AMP_OK;
}

static amp_status ampi_check_map(
    amp_ctx *ctx, const char *name_y, amp_array y, const char *name_x, amp_array x, size_t count) {
    AMPI_TRY(ampi_check_array(ctx, name_y, y, count, 1));
    AMPI_TRY(ampi_check_array(ctx, name_x, x, count, 1));
    return ampi_check_stored_map(ctx, name_y, y, name_x, x, count);
}

static amp_status ampi_do_cast(amp_ctx *ctx, amp_array dst, amp_array src, size_t count, const amp_cast_desc *opt) {
    static const amp_cast_desc none = AMP_ZERO;
    if (!opt) opt = &none;
    AMPI_CHECK_DESC(opt);
    AMPI_CHECK(
        opt->rounding == AMP_NEAREST || opt->rounding == AMP_STOCHASTIC, "desc.rounding is %d", (int)opt->rounding);
    AMPI_CHECK(!opt->flags, "desc.flags is not 0");
    AMPI_CHECK(opt->rounding == AMP_NEAREST || src.dtype != AMP_F64 || dst.dtype != AMP_F32,
        "desc.rounding is stochastic; from f64 to f32 there is only AMP_NEAREST");
    AMPI_TRY(ampi_check_stored_map(ctx, "dst", dst, "src", src, count));
    if (count == 0) return AMP_OK;
    ampi_wrote_array(ctx, dst, count);
    return (ctx->b->cast)(ctx, dst, src, count, opt);
}
AMP_API amp_status amp_cast(amp_ctx *ctx, amp_array dst, amp_array src, size_t count, const amp_cast_desc *opt) {
    AMPI_VERB(ctx, cast, (ctx, dst, src, count, opt));
}

/* A good entry of a list: an array, of no elements, too, or {NULL}. */
static int ampi_is_listed(const amp_ctx *ctx, amp_array a, int doubles) {
    const size_t size = doubles || a.dtype != AMP_F64 ? amp_dtype_size(a.dtype) : 0;
    size_t bytes;
    if (!a.data) return a.count == 0;
    if (!size || (a.flags & ~AMP_CACHE)) return 0;
    return ampi_is_aligned(ctx, a.data, size) && ampi_product(&bytes, a.count, size);
}
static amp_status ampi_check_list(amp_ctx *ctx, const char *list, const amp_array *a, size_t n, int doubles) {
    char name[40];
    size_t i;
    AMPI_CHECK(!n || a, "%s is NULL", list);
    for (i = 0; i < n && ampi_is_listed(ctx, a[i], doubles);)
        i++;
    if (i == n) return AMP_OK;
    snprintf(name, sizeof name, "%s[%llu]", list, AMPI_ULL(i));
    if (!doubles) AMPI_TRY(ampi_check_array(ctx, name, a[i], a[i].count, 1));
    AMPI_TRY(ampi_check_storage(ctx, name, a[i], a[i].count, 1));
    return AMPI_INVALID("%s.count is %llu, which is too large", name, AMPI_ULL(a[i].count));
}

static amp_status ampi_do_all_finite(
    amp_ctx *ctx, amp_finite_report *report, const amp_array *arrays, size_t n_arrays) {
    amp_finite_report r = AMP_ZERO;
    AMPI_CHECK(report, "report is NULL");
    AMPI_TRY(ampi_check_list(ctx, "arrays", arrays, n_arrays, 1));
    AMPI_HAS(finite);
    AMPI_TRY((ctx->b->may_wait)(ctx));
    AMPI_TRY((ctx->b->finite)(ctx, NULL, arrays, n_arrays, NULL, &r));
    *report = r;
    return AMP_OK;
}
AMP_API amp_status amp_all_finite(amp_ctx *ctx, amp_finite_report *report, const amp_array *arrays, size_t n_arrays) {
    AMPI_VERB(ctx, all_finite, (ctx, report, arrays, n_arrays));
}

static amp_status ampi_do_histogram_count(amp_ctx *ctx, amp_histogram *out, const amp_array *arrays, size_t n_arrays) {
    amp_histogram h = AMP_ZERO;
    AMPI_CHECK(out, "out is NULL");
    AMPI_TRY(ampi_check_list(ctx, "arrays", arrays, n_arrays, 0));
    AMPI_HAS(histogram);
    AMPI_TRY((ctx->b->may_wait)(ctx));
    AMPI_TRY((ctx->b->histogram)(ctx, arrays, n_arrays, &h));
    *out = h;
    return AMP_OK;
}
AMP_API amp_status amp_histogram_count(amp_ctx *ctx, amp_histogram *out, const amp_array *arrays, size_t n_arrays) {
    AMPI_VERB(ctx, histogram_count, (ctx, out, arrays, n_arrays));
}

static int ampi_is_positive(float x) { /* also where the caller's processor takes subnormal numbers for 0 */
    return ampi_bits(x) - 1u < 0x7f800000u;
}
static int ampi_log2_floor(float x) { /* of a positive float: floor(log2 x) */
    uint32_t u = ampi_bits(x);
    int e = (int)(u >> 23) - 127;
    if (e == -127)
        for (e = -127 + 1; !(u & 0x800000u); e--)
            u <<= 1;
    return e;
}
typedef struct ampi_limits { /* of a dtype, as exponents of 2 */
    int lost;                /* x < 2^lost becomes 0: half of the smallest subnormal */
    int subnormal;           /* x < 2^subnormal becomes 0 or subnormal */
    int overflow;            /* x >= 2^overflow overflows, and some x below it may */
} ampi_limits;
static ampi_limits ampi_limits_of(amp_dtype dtype) {
    ampi_format f = ampi_format_of(dtype);
    ampi_limits l = {-150, -126, 128}; /* a float holds everything that a float holds */
    if (dtype == AMP_F32) return l;
    l.subnormal = (int)f.emin - 127;
    l.lost = l.subnormal - (int)f.mant - 1;
    l.overflow = ampi_log2_floor(ampi_float(f.limit)) + 1;
    return l;
}
AMP_API amp_fates amp_histogram_fates(const amp_histogram *h, amp_dtype dtype, float scale) {
    amp_fates f = AMP_ZERO;
    ampi_limits l;
    uint64_t all = 0, lost = 0, subnormal = 0, over = 0;
    int e, shift;
    if (!h || !ampi_is_dtype(dtype) || !ampi_is_positive(scale)) return f;
    l = ampi_limits_of(dtype);
    shift = ampi_log2_floor(scale);
    for (e = 0; e < 255; e++) {
        int from = (e ? e - 127 : -149) + shift, to = e - 126 + shift; /* |x| * scale is in [2^from, 2^to) */
        all += h->pow2[e];
        if (to <= l.lost) lost += h->pow2[e];
        if (to <= l.subnormal) subnormal += h->pow2[e];
        if (from >= l.overflow) over += h->pow2[e];
    }
    if (all == 0) return f;
    f.lost = (double)lost / (double)all;
    f.subnormal = (double)subnormal / (double)all - f.lost;
    f.overflow = (double)over / (double)all;
    return f;
}
AMP_API void amp_histogram_add(amp_histogram *sum, const amp_histogram *more) {
    size_t e;
    if (!sum || !more) return;
    sum->total += more->total;
    sum->zero += more->zero;
    sum->inf += more->inf;
    sum->nan += more->nan;
    for (e = 0; e < 256; e++)
        sum->pow2[e] += more->pow2[e];
    if (ampi_bits(sum->amax) < ampi_bits(more->amax)) sum->amax = more->amax;
}
AMP_API float amp_histogram_suggest_scale(const amp_histogram *h) {
    int k;
    if (!h || !ampi_is_positive(h->amax) || !amp_is_finite(h->amax)) return 65536.0f;
    k = 14 - ampi_log2_floor(h->amax);                     /* amax < 2^(e+1), so amax * 2^k < 2^15 */
    if ((ampi_bits(h->amax) & 0x7fffffu) > 0x7fe000u) k--; /* 65504 / 2 is just below 2^15 */
    if (k > 100) k = 100;
    if (k < -14) k = -14;
    return ampi_float((uint32_t)(127 + k) << 23);
}

static float ampi_inverse(float scale) { /* volatile: computed inside the verb, in its floating-point environment */
    volatile float x = scale;
    return amp_inverse_scale(x);
}

/* What follows, up to >>cpu, goes over no elements: -O2 instead of -O1 would only take time, a fifth of what compiling
   the whole implementation takes. */
#if defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__CUDACC__)
#  define AMPI_FRONT_O1
#  pragma GCC push_options
#  pragma GCC optimize("O1")
#endif

/* ==== >>front-params =============================================================================================
   Parameter sets.   tests: tests/test_params.c, tests/test_layouts.c, tests/test_step.c, tests/test_resume.c */

typedef struct ampi_param { /* what amp_params_add was told, with defaults filled in */
    amp_param_desc d;
    char *name;  /* our copy; d.name is not used after amp_params_add */
    float *init; /* our copy of d.init, until commit */
    int unused;  /* 1: amp_params_use has left it out */
} ampi_param;

#define AMPI_PARAMS ((size_t)64) /* parameters of a piece of the list: pieces stay where they are, so none is copied */

typedef struct ampi_name_slot { /* of the table of names */
    uint32_t hash, place;       /* place: index of the parameter + 1; 0: the slot is free */
} ampi_name_slot;

/* What a set's gradients and accumulators are: see ampi_rules. */
typedef enum ampi_phase {
    AMPI_READY = 0,       /* gradients carry the loss scale */
    AMPI_UNSCALED,        /* amp_scaler_unscale has divided them by it */
    AMPI_STEPPED,         /* a step has used them */
    AMPI_INSPECTED,       /* amp_inspect has: amp_apply may follow */
    AMPI_ADDING,          /* the accumulators hold micro-batches; gradients carry the loss scale */
    AMPI_ADDING_UNSCALED, /* the same, but gradients are unscaled */
    AMPI_ADDED,           /* amp_inspect has used the accumulators: amp_apply may follow */
    AMPI_SUMMED,          /* a step has used the accumulators; gradients carry the loss scale */
    AMPI_PHASES
} ampi_phase;

/* What a set owns: one block of context memory per kind, each with its label in the ledger. */
typedef enum ampi_arena {
    AMPI_MASTERS = 0, /* FP32 masters, or the low parts of SPLIT, SPLIT8 and KAHAN */
    AMPI_MODELS,
    AMPI_GRADS,
    AMPI_MOMENTS,
    AMPI_ACCUMS,
    AMPI_TABLES, /* records, totals, the list of parameters and that of chunks */
    AMPI_ARENAS
} ampi_arena;

struct amp_params {
    amp_ctx *ctx;
    amp_params_desc desc; /* resolved */
    char label[24];
    ampi_param **pieces;
    size_t n_pieces, cap_pieces;
    size_t n;                 /* parameters, see ampi_param_at */
    amp_param_entry *entries; /* host copy of the table */
    ampi_name_slot *names;
    size_t n_names; /* slots: a power of two, at least twice as many as parameters; 0: no table yet */
    int committed;
    int stochastic; /* a model copy may differ from the rounded master */
    uint32_t count; /* of the last inspection's desc: count_lost */
    int drawn;      /* the last step that counted them rounds model copies stochastically */
    void *arena[AMPI_ARENAS];
    amp_param_table table;
    amp_step_record *record; /* context memory: of steps, and of norms asked for by hand */
    amp_step_record *probe;
    amp_step_mirror *mirror;
    ampi_phase phase;
    int32_t late;          /* 1: the phase is of an iteration that its scaler has ended before */
    int32_t holds;         /* 1: its accumulation window (amp_window_begin) holds the scaler's scale */
    amp_scaler *scaler;    /* whose iteration the phase belongs to, and whose scale is held; NULL: none */
    amp_params *next_tied; /* in that scaler's list of such sets */
    amp_params *next;      /* in the context's list of committed sets */
};
static ampi_param *ampi_param_at(const amp_params *p, size_t i) { return &p->pieces[i / AMPI_PARAMS][i % AMPI_PARAMS]; }
#define AMPI_MAX_PARAMS 0xffffff /* the index has 24 bits of a random stream's number, see amp_draw_of */
static void ampi_untie(amp_params *p);
static void ampi_weights_changed(amp_ctx *ctx, const amp_params *p); /* casts of them are made again */
static void ampi_iteration_ended(amp_ctx *ctx);                      /* casts of arrays that no set owns, too */

static amp_params_desc ampi_params_defaults(amp_params_desc d) {
    if (d.model == AMP_AUTO) d.model = AMP_F16;
    if (d.grad == AMP_AUTO) d.grad = d.model;
    if (d.moments == 0)
        d.moments = 2;
    else if (d.moments == AMP_NONE)
        d.moments = 0;
    if (d.moment == AMP_AUTO) d.moment = AMP_F32;
    return d;
}

static int ampi_is_layout(const amp_params_desc *d) { /* d with its defaults filled in */
    int model = d->model == AMP_F16 || d->model == AMP_BF16 || d->model == AMP_F32;
    int master = (uint32_t)d->master <= (uint32_t)AMP_MASTER_SPLIT8;
    int kahan = d->master != AMP_MASTER_KAHAN || d->model == AMP_BF16;
    int kept = d->moment == AMP_F32 || d->moment == AMP_BF16 || d->moment == AMP_MOMENT_8BIT;
    int moments = d->moments >= 0 && d->moments <= AMP_MOMENTS && kept;
    return model && master && kahan && moments && ampi_is_dtype(d->grad);
}
static amp_master ampi_layout_for(amp_master set, amp_dtype model) { /* an FP32 model copy is the master */
    return model == AMP_F32 ? AMP_MASTER_F32 : set;
}

static size_t ampi_moment_bytes(amp_dtype t) { return t == AMP_MOMENT_8BIT ? 1 : amp_dtype_size(t); }

AMP_API amp_layout amp_layout_bytes(const amp_params_desc *desc) {
    amp_params_desc d = AMP_ZERO;
    amp_layout l = AMP_ZERO;
    amp_master kept;
    if (desc) d = *desc;
    d = ampi_params_defaults(d);
    if (!ampi_is_layout(&d)) return l;
    kept = ampi_layout_for(d.master, d.model);
    if (kept == AMP_MASTER_F32) l.master = 4;
    if (ampi_has_low(kept)) l.master = (uint32_t)amp_dtype_size(ampi_low_type(kept));
    if (d.model != AMP_F32) l.model = (uint32_t)amp_dtype_size(d.model);
    l.grad = (uint32_t)amp_dtype_size(d.grad);
    l.moments = (uint32_t)d.moments * (uint32_t)ampi_moment_bytes(d.moment);
    if (d.accumulate) l.accum = 4;
    l.total = l.master + l.model + l.grad + l.moments + l.accum;
    return l;
}

static amp_status ampi_check_layout(amp_ctx *ctx, const amp_params_desc *d) {
    if (ampi_is_layout(d)) return AMP_OK;
    AMPI_CHECK(d->model == AMP_F16 || d->model == AMP_BF16 || d->model == AMP_F32,
        "desc.model is %d (%s); f16, bf16 or f32 is needed", (int)d->model, amp_dtype_name(d->model));
    AMPI_CHECK(ampi_is_dtype(d->grad), "desc.grad is %d (%s)", (int)d->grad, amp_dtype_name(d->grad));
    AMPI_CHECK((uint32_t)d->master <= (uint32_t)AMP_MASTER_SPLIT8, "desc.master is %d", (int)d->master);
    AMPI_CHECK(d->master != AMP_MASTER_KAHAN || d->model == AMP_BF16,
        "desc.master AMP_MASTER_KAHAN needs a bf16 model, not %s", amp_dtype_name(d->model));
    AMPI_CHECK(d->moments >= 0 && d->moments <= AMP_MOMENTS,
        "desc.moments is %d; 0 (for 2), 1 to %d or AMP_NONE is needed", (int)d->moments, AMP_MOMENTS);
    return AMPI_INVALID(
        "desc.moment is %d (%s); f32, bf16 or AMP_MOMENT_8BIT is needed", (int)d->moment, amp_dtype_name(d->moment));
}

static amp_status ampi_do_params_create(
    amp_params **out, amp_ctx *ctx, int version, size_t size, const amp_params_desc *desc) {
    amp_params_desc d = AMP_ZERO;
    amp_params *p;
    AMPI_CHECK_CREATE(out, version, size, &d, desc);
    AMPI_HAS(inspect);
    if (!d.label) d.label = "params";
    AMPI_CHECK(strlen(d.label) < sizeof p->label, "desc.label is longer than 23 characters");
    AMPI_CHECK(d.flags == 0, "desc.flags is not 0");
    d = ampi_params_defaults(d);
    AMPI_TRY(ampi_check_layout(ctx, &d));
    p = (amp_params *)ampi_host_new(ctx, sizeof *p);
    AMPI_MEMORY(p);
    p->ctx = ctx;
    p->desc = d;
    memcpy(p->label, d.label, strlen(d.label));
    p->desc.label = NULL;
    *out = p;
    return AMP_OK;
}
AMP_API amp_status amp_params_create_checked(
    amp_params **out, amp_ctx *ctx, int version, size_t size, const amp_params_desc *desc) {
    if (out) *out = NULL;
    AMPI_VERB(ctx, params_create, (out, ctx, version, size, desc));
}

AMP_API size_t amp_params_count(const amp_params *p) { return p ? p->n : 0; }
/* ---- parameters by name: a table of slots; a name is in the first free one from where its hash points ---- */
static uint32_t ampi_name_hash(const char *name) { /* FNV-1a */
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}
static void ampi_name_link(amp_params *p, ampi_name_slot name) {
    size_t i = name.hash & (p->n_names - 1);
    while (p->names[i].place)
        i = (i + 1) & (p->n_names - 1);
    p->names[i] = name;
}
static amp_status ampi_names_grow(amp_params *p) { /* twice the slots */
    ampi_name_slot *old = p->names;
    const size_t n_old = p->n_names, n_new = n_old ? 2 * n_old : 16;
    ampi_name_slot *names = (ampi_name_slot *)ampi_host_new(p->ctx, n_new * sizeof *names);
    size_t i;
    if (!names) return AMP_ERR_NO_MEMORY;
    p->names = names;
    p->n_names = n_new;
    for (i = 0; i < n_old; i++)
        if (old[i].place) ampi_name_link(p, old[i]);
    ampi_host_drop(p->ctx, old, n_old * sizeof *old);
    return AMP_OK;
}
static size_t ampi_param_find(const amp_params *p, const char *name, uint32_t hash) {
    const size_t mask = p->n_names - 1;
    size_t i;
    if (!p->n) return 0;
    for (i = hash & mask; p->names[i].place; i = (i + 1) & mask) {
        const size_t at = p->names[i].place - 1;
        if (p->names[i].hash == hash && strcmp(ampi_param_at(p, at)->name, name) == 0) return at;
    }
    return p->n;
}
AMP_API size_t amp_params_find(const amp_params *p, const char *name) {
    return p && name ? ampi_param_find(p, name, ampi_name_hash(name)) : amp_params_count(p);
}

/* count, rows and cols from what is given of them */
static amp_status ampi_param_shape(amp_ctx *ctx, const char *name, amp_param_desc *d) {
    size_t area;
    AMPI_CHECK(!d->rows == !d->cols, "desc.%s of \"%s\" is 0, but desc.%s is %llu", d->rows ? "cols" : "rows", name,
        d->rows ? "rows" : "cols", AMPI_ULL(d->rows | d->cols));
    AMPI_CHECK(ampi_product(&area, d->rows, d->cols) && d->count <= (size_t)-1 / 32 && area <= (size_t)-1 / 32,
        "desc.count of \"%s\" is too large", name);
    if (d->count == 0) d->count = area;
    AMPI_CHECK(d->count != 0, "desc.count of \"%s\" is 0", name);
    AMPI_CHECK(!area || area == d->count, "desc.count of \"%s\" is %llu, but desc.rows * desc.cols is %llu", name,
        AMPI_ULL(d->count), AMPI_ULL(area));
    if (area == 0) {
        d->rows = 1;
        d->cols = d->count;
    }
    return AMP_OK;
}

/* the model copy, the gradient and the master: their dtypes, and which of them are adopted */
static amp_status ampi_param_arrays(amp_params *p, const char *name, amp_param_desc *d) {
    const char *given = d->master ? "master" : "model"; /* of FP32 weights */
    amp_dtype model = d->keep_f32 ? AMP_F32 : p->desc.model;
    amp_ctx *ctx = p->ctx;
    if (d->model.dtype == AMP_AUTO) d->model.dtype = model;
    if (d->grad.dtype == AMP_AUTO) d->grad.dtype = d->keep_f32 ? AMP_F32 : p->desc.grad;
    AMPI_CHECK(d->model.dtype == model, "desc.model.dtype of \"%s\" is %s, but its model copy is %s", name,
        amp_dtype_name(d->model.dtype), amp_dtype_name(model));
    AMPI_TRY(ampi_check_array(ctx, "desc.model", d->model, d->count, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.grad", d->grad, d->count, 0));
    AMPI_CHECK(ampi_is_dtype(d->grad.dtype), "desc.grad.dtype of \"%s\" is %d", name, (int)d->grad.dtype);
    if (model == AMP_F32) { /* one FP32 array is master and model copy */
        AMPI_CHECK(!d->master || !d->model.data || d->model.data == (void *)d->master,
            "desc.master and desc.model of \"%s\" differ, but an FP32 model copy is the master", name);
        if (!d->master) memcpy(&d->master, &d->model.data, sizeof d->master);
        d->model.data = NULL;
    } else if (p->desc.master != AMP_MASTER_F32 && d->master) {
        return AMPI_INVALID("desc.master of \"%s\" is given, but the set's layout has no FP32 masters", name);
    }
    AMPI_CHECK((uintptr_t)d->master % sizeof(float) == 0, "desc.%s of \"%s\" is not aligned to 4 bytes", given, name);
    return AMP_OK;
}

/* SPLIT and SPLIT8 keep the master's upper half in the model copy, so what FP16 cannot hold has no master */
static amp_status ampi_check_weights(const amp_params *p, const amp_param_desc *d, const char *name, const float *w) {
    const amp_master kept = p->desc.master;
    const uint32_t inf = ampi_format_of(AMP_F16).over;
    const char *needs = "AMP_MASTER_SPLIT needs |w| < 65520";
    amp_ctx *ctx = p->ctx;
    size_t i;
    if (kept == AMP_MASTER_SPLIT8)
        needs = "AMP_MASTER_SPLIT8 needs |w| < 65519.9375";
    else if (kept != AMP_MASTER_SPLIT)
        return AMP_OK;
    for (i = 0; i < d->count && d->model.dtype == AMP_F16; i++) {
        const uint32_t copy = amp_pair_pack(w[i], kept, AMP_F16, AMP_NEAREST, 0) & 0x7fffu;
        AMPI_CHECK(copy < inf, "weight %llu of \"%s\" is %g, which FP16 cannot hold (%s)", AMPI_ULL(i), name,
            (double)w[i], needs);
    }
    return AMP_OK;
}

static void ampi_param_forget_init(const amp_ctx *ctx, ampi_param *q) {
    ampi_host_drop(ctx, q->init, q->d.count * sizeof(float));
    q->init = NULL;
}
static void ampi_param_free(const amp_ctx *ctx, ampi_param *q) {
    ampi_param_forget_init(ctx, q);
    if (q->name) ampi_host_drop(ctx, q->name, strlen(q->name) + 1);
    q->name = NULL;
}

static amp_status ampi_pieces_grow(amp_params *p) { /* room for one parameter more */
    const amp_allocator *host = &p->ctx->host;
    ampi_param **pieces = p->pieces;
    if (p->n < p->n_pieces * AMPI_PARAMS) return AMP_OK;
    pieces = (ampi_param **)ampi_grow(host, pieces, p->n_pieces, &p->cap_pieces, sizeof *pieces);
    if (!pieces) return AMP_ERR_NO_MEMORY;
    p->pieces = pieces;
    pieces[p->n_pieces] = (ampi_param *)ampi_host_take(host, AMPI_PARAMS * sizeof **pieces);
    if (!pieces[p->n_pieces]) return AMP_ERR_NO_MEMORY;
    p->n_pieces++;
    return AMP_OK;
}
/* a place in the list, and in the table of names */
static amp_status ampi_param_append(amp_params *p, const ampi_param *q, uint32_t hash) {
    ampi_name_slot name;
    AMPI_TRY(ampi_pieces_grow(p));
    if (2 * (p->n + 1) > p->n_names) AMPI_TRY(ampi_names_grow(p));
    *ampi_param_at(p, p->n++) = *q;
    name.hash = hash;
    name.place = (uint32_t)p->n;
    ampi_name_link(p, name);
    return AMP_OK;
}
/* copies of what the caller may change from now on */
static amp_status ampi_param_keep(amp_params *p, const char *name, uint32_t hash, ampi_param *q) {
    const amp_allocator *host = &p->ctx->host;
    size_t len = strlen(name) + 1;
    q->name = (char *)ampi_host_alloc(host, len);
    if (!q->name) return AMP_ERR_NO_MEMORY;
    memcpy(q->name, name, len);
    if (q->d.init) {
        q->init = (float *)ampi_host_alloc(host, q->d.count * sizeof(float));
        if (!q->init) return AMP_ERR_NO_MEMORY;
        memcpy(q->init, q->d.init, q->d.count * sizeof(float));
    }
    return ampi_param_append(p, q, hash);
}

static amp_status ampi_do_params_add(amp_params *p, const amp_param_desc *desc) {
    amp_ctx *ctx = p->ctx;
    ampi_param q = AMP_ZERO;
    char number[24];
    const char *name;
    uint32_t hash;
    AMPI_CHECK_DESC(desc);
    AMPI_STAGE(!p->committed, "the set is committed");
    AMPI_CHECK(p->n < AMPI_MAX_PARAMS, "the set has %d parameters, and more are not possible", AMPI_MAX_PARAMS);
    q.d = *desc;
    name = desc->name ? desc->name : number;
    if (!desc->name) snprintf(number, sizeof number, "%llu", AMPI_ULL(p->n));
    AMPI_CHECK(strlen(name) <= 255, "desc.name is longer than 255 characters");
    hash = ampi_name_hash(name);
    AMPI_CHECK(ampi_param_find(p, name, hash) == p->n, "desc.name \"%s\" is taken", name);
    AMPI_TRY(ampi_param_shape(ctx, name, &q.d));
    AMPI_CHECK(
        q.d.group < AMP_GROUPS, "desc.group of \"%s\" is %u; at most %d groups", name, (unsigned)q.d.group, AMP_GROUPS);
    AMPI_TRY(ampi_param_arrays(p, name, &q.d));
    if (q.d.init) AMPI_TRY(ampi_check_weights(p, &q.d, name, q.d.init));
    if (ampi_param_keep(p, name, hash, &q) != AMP_OK) {
        ampi_param_free(ctx, &q);
        return amp_fail(ctx, AMP_ERR_NO_MEMORY, "no host memory");
    }
    return AMP_OK;
}
AMP_API amp_status amp_params_add(amp_params *p, const amp_param_desc *desc) { AMPI_VERB_OF(p, params_add, (p, desc)); }

static void ampi_params_undo(amp_params *p) { /* back to "not committed" */
    size_t i;
    ampi_untie(p);
    if (p->committed) {
        AMPI_UNLINK(amp_params, p->ctx->sets, p, next);
        ampi_weights_changed(p->ctx, p);
    }
    for (i = 0; i < AMPI_ARENAS; i++) {
        ampi_free_block(p->ctx, p->arena[i]);
        p->arena[i] = NULL;
    }
    if (p->ctx->b->mirror_destroy) (p->ctx->b->mirror_destroy)(p->ctx, p->mirror);
    p->mirror = NULL;
    ampi_host_drop(p->ctx, p->entries, p->n * sizeof *p->entries);
    p->entries = NULL;
    p->record = p->probe = NULL;
    memset(&p->table, 0, sizeof p->table);
    p->committed = 0;
}

static void ampi_do_params_destroy(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    size_t i;
    ampi_params_undo(p);
    for (i = 0; i < p->n; i++)
        ampi_param_free(ctx, ampi_param_at(p, i));
    for (i = 0; i < p->n_pieces; i++)
        ampi_host_drop(ctx, p->pieces[i], AMPI_PARAMS * sizeof **p->pieces);
    ampi_host_drop(ctx, p->pieces, p->cap_pieces * sizeof *p->pieces);
    ampi_host_drop(ctx, p->names, p->n_names * sizeof *p->names);
    ampi_host_drop(ctx, p, sizeof *p);
}
AMP_API void amp_params_destroy(amp_params *p) { AMPI_DESTROY(AMPI_CTX(p), params_destroy, (p)); }

/* ---- layout: where the arrays of a set are in its arenas ----
   The same walk measures (base NULL: every piece is NULL) and places. */
typedef struct ampi_layout {
    char *base[AMPI_ARENAS];
    uint64_t bytes[AMPI_ARENAS]; /* used so far, saturating; each piece is a multiple of 256 */
    uint64_t params, chunks;     /* walked over so far */
} ampi_layout;

static void *ampi_place(ampi_layout *l, ampi_arena which, uint64_t bytes) { /* the next piece of an arena */
    uint64_t at = l->bytes[which], end = at + ampi_round256(bytes);
    l->bytes[which] = end < at ? UINT64_MAX : end;
    return bytes && l->base[which] ? l->base[which] + at : NULL;
}

/* bytes of a moment array: 8-bit codes are followed by their scales */
static uint64_t ampi_moment_array(amp_dtype t, uint64_t n) {
    return t == AMP_MOMENT_8BIT ? ampi_round256(n) + ampi_moment_blocks(n) * sizeof(float) : n * amp_dtype_size(t);
}
/* the arrays of one parameter: adopted ones are where they are */
static void ampi_place_entry(
    ampi_layout *l, amp_param_entry *e, const amp_params_desc *set, const amp_param_desc *adopted) {
    uint64_t n = e->count;
    int k;
    if (e->layout == AMP_MASTER_F32)
        e->master = adopted->master ? adopted->master : ampi_place(l, AMPI_MASTERS, 4 * n);
    else if (e->layout != AMP_MASTER_NONE)
        e->low = ampi_place(l, AMPI_MASTERS, n * amp_dtype_size(ampi_low_type(e->layout)));
    if (e->model_dtype != AMP_F32)
        e->model = adopted->model.data ? adopted->model.data : ampi_place(l, AMPI_MODELS, 2 * n);
    e->grad = adopted->grad.data ? adopted->grad.data : ampi_place(l, AMPI_GRADS, n * amp_dtype_size(e->grad_dtype));
    for (k = 0; k < set->moments; k++)
        e->moment[k] = ampi_place(l, AMPI_MOMENTS, ampi_moment_array(e->moment_dtype, n));
    if (set->accumulate) e->accum = (float *)ampi_place(l, AMPI_ACCUMS, 4 * n);
    e->first_chunk = (uint32_t)l->chunks;
    l->params++;
    l->chunks += (n - 1) / AMP_CHUNK + 1;
}

typedef struct ampi_tables { /* what the arena of tables holds */
    amp_step_record *record, *probe;
    amp_param_table table;
} ampi_tables;

static ampi_tables ampi_place_tables(ampi_layout *l) { /* after every parameter */
    ampi_tables t = AMP_ZERO;
    t.record = (amp_step_record *)ampi_place(l, AMPI_TABLES, sizeof *t.record);
    t.probe = (amp_step_record *)ampi_place(l, AMPI_TABLES, sizeof *t.probe);
    t.table.totals = (amp_totals *)ampi_place(l, AMPI_TABLES, sizeof *t.table.totals);
    t.table.entries = (amp_param_entry *)ampi_place(l, AMPI_TABLES, l->params * sizeof *t.table.entries);
    t.table.chunks = (amp_chunk *)ampi_place(l, AMPI_TABLES, l->chunks * sizeof *t.table.chunks);
    t.table.partials = (amp_partial *)ampi_place(l, AMPI_TABLES, l->chunks * sizeof *t.table.partials);
    t.table.counts = (amp_update_count *)ampi_place(l, AMPI_TABLES, l->params * sizeof *t.table.counts);
    t.table.n_entries = (uint32_t)l->params;
    t.table.n_chunks = (uint32_t)l->chunks;
    return t;
}

static void ampi_place_set(ampi_layout *l, amp_params *p) {
    ampi_tables t;
    size_t i;
    memset(l->bytes, 0, sizeof l->bytes);
    l->params = l->chunks = 0;
    for (i = 0; i < p->n; i++)
        ampi_place_entry(l, &p->entries[i], &p->desc, &ampi_param_at(p, i)->d);
    t = ampi_place_tables(l);
    p->record = t.record;
    p->probe = t.probe;
    p->table = t.table;
    for (i = 0; i < p->n; i++)
        p->table.n_elements += p->entries[i].count;
}

/* ---- weights between host and context memory ---- */

static amp_array ampi_entry_array(void *data, amp_dtype t, uint64_t count) {
    return data ? amp_arrn(data, t, (size_t)count) : amp_arr(NULL, AMP_AUTO);
}
static amp_array ampi_entry_master(const amp_param_entry *e) { return ampi_entry_array(e->master, AMP_F32, e->count); }
static amp_array ampi_entry_model(const amp_param_entry *e) { /* what products read */
    return ampi_entry_array(e->model ? e->model : e->master, e->model_dtype, e->count);
}
static amp_array ampi_entry_grad(const amp_param_entry *e) {
    return ampi_entry_array(e->grad, e->grad_dtype, e->count);
}
static amp_array ampi_entry_moment(const amp_param_entry *e, size_t k) {
    return ampi_entry_array(e->moment[k], e->moment_dtype, e->count);
}
/* The same, for counting zeros: those of codes are E4M3's. */
static amp_array ampi_entry_zeros(const amp_param_entry *e, size_t k) {
    const amp_dtype t = e->moment_dtype == AMP_MOMENT_8BIT ? AMP_F8E4M3 : e->moment_dtype;
    return ampi_entry_array(e->moment[k], t, e->count);
}
static amp_array ampi_entry_scale(const amp_param_entry *e, uint32_t k) { /* of 8-bit moments */
    if (!e->moment[k] || e->moment_dtype != AMP_MOMENT_8BIT) return amp_arr(NULL, AMP_AUTO);
    return amp_arrn(ampi_moment_scales(e, k), AMP_F32, (size_t)ampi_moment_blocks(e->count));
}
static amp_array ampi_entry_low(const amp_param_entry *e) {
    return ampi_entry_array(e->low, ampi_low_type(e->layout), e->count);
}

/* Weights without FP32 masters travel as model copies and low parts, a block of at most this many at a time. */
#define AMPI_BLOCK_WEIGHTS ((size_t)1 << 19)

typedef struct ampi_staging { /* host memory for one block */
    uint16_t *model, *low;    /* SPLIT8's low parts are bytes */
    size_t weights;
} ampi_staging;

static amp_status ampi_staging_begin(amp_ctx *ctx, uint64_t count, ampi_staging *b) {
    b->weights = count < AMPI_BLOCK_WEIGHTS ? (size_t)count : AMPI_BLOCK_WEIGHTS;
    b->model = (uint16_t *)ampi_host_new(ctx, 4 * b->weights);
    AMPI_MEMORY(b->model);
    b->low = b->model + b->weights;
    return AMP_OK;
}
static void ampi_staging_end(amp_ctx *ctx, ampi_staging *b) { ampi_host_drop(ctx, b->model, 4 * b->weights); }

static uint32_t ampi_weight_pack(const amp_param_entry *e, float w) { /* the low part above the model copy */
    if (e->low) return amp_pair_pack(w, e->layout, e->model_dtype, AMP_NEAREST, 0);
    return ampi_encode(ampi_bits(w), e->model_dtype, AMP_NEAREST, 0, 0);
}

static amp_status ampi_block_write(
    amp_ctx *ctx, const amp_param_entry *e, const ampi_staging *b, size_t from, size_t n, const float *src) {
    const amp_dtype low = ampi_low_type(e->layout);
    const size_t size = amp_dtype_size(low);
    size_t i;
    for (i = 0; i < n; i++) {
        uint32_t both = ampi_weight_pack(e, src[from + i]);
        b->model[i] = (uint16_t)both;
        if (e->low) ampi_store_pattern(b->low, low, i, both >> 16);
    }
    AMPI_TRY((ctx->b->copy)(ctx, (char *)e->model + 2 * from, b->model, 2 * n));
    return e->low ? (ctx->b->copy)(ctx, (char *)e->low + from * size, b->low, n * size) : AMP_OK;
}

static amp_status ampi_block_read(
    amp_ctx *ctx, const amp_param_entry *e, const ampi_staging *b, size_t from, size_t n, float *dst) {
    const size_t size = amp_dtype_size(ampi_low_type(e->layout));
    amp_param_entry host = *e; /* its arrays in host memory */
    size_t i;
    AMPI_TRY((ctx->b->copy)(ctx, b->model, (const char *)e->model + 2 * from, 2 * n));
    if (e->low) AMPI_TRY((ctx->b->copy)(ctx, b->low, (const char *)e->low + from * size, n * size));
    host.model = b->model;
    host.low = e->low ? b->low : NULL;
    for (i = 0; i < n; i++)
        dst[from + i] = amp_weight_load(&host, i);
    return AMP_OK;
}

/* All weights of an entry: from src if it is given, else to dst. The caller casts the model copy of an FP32 master. */
static amp_status ampi_move_staged(
    amp_ctx *ctx, const amp_param_entry *e, const ampi_staging *b, float *dst, const float *src) {
    size_t from, n, count = (size_t)e->count;
    if (e->master && src) return (ctx->b->copy)(ctx, e->master, src, 4 * count);
    if (e->master) return (ctx->b->copy)(ctx, dst, e->master, 4 * count);
    for (from = 0; from < count; from += n) {
        n = count - from < b->weights ? count - from : b->weights;
        if (src)
            AMPI_TRY(ampi_block_write(ctx, e, b, from, n, src));
        else
            AMPI_TRY(ampi_block_read(ctx, e, b, from, n, dst));
    }
    return AMP_OK;
}
static amp_status ampi_move_weights(amp_ctx *ctx, const amp_param_entry *e, float *dst, const float *src) {
    ampi_staging b = {NULL, NULL, 0};
    amp_status st;
    if (!e->master) AMPI_TRY(ampi_staging_begin(ctx, e->count, &b));
    st = ampi_move_staged(ctx, e, &b, dst, src);
    if (!e->master) ampi_staging_end(ctx, &b);
    return st;
}

static amp_status ampi_cast_entry(amp_ctx *ctx, amp_array dst, amp_array src) { /* to nearest */
    amp_cast_desc c = AMP_ZERO;
    return (ctx->b->cast)(ctx, dst, src, src.count, &c);
}
static amp_status ampi_renew_model(amp_ctx *ctx, const amp_param_entry *e) { /* where masters give it */
    return e->master && e->model ? ampi_cast_entry(ctx, ampi_entry_model(e), ampi_entry_master(e)) : AMP_OK;
}

/* ---- commit, in the order of its steps ---- */

static amp_status ampi_commit_entries(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    size_t i;
    if (p->n == 0) return AMP_OK;
    p->entries = (amp_param_entry *)ampi_host_new(ctx, p->n * sizeof *p->entries);
    AMPI_MEMORY(p->entries);
    for (i = 0; i < p->n; i++) {
        const amp_param_desc *d = &ampi_param_at(p, i)->d;
        amp_param_entry *e = &p->entries[i];
        e->count = d->count;
        e->layout = ampi_layout_for(p->desc.master, d->model.dtype);
        e->model_dtype = d->model.dtype;
        e->grad_dtype = d->grad.dtype;
        e->moment_dtype = p->desc.moment;
        e->no_decay = d->no_decay != 0;
        e->group = d->group;
    }
    return AMP_OK;
}

static amp_status ampi_commit_arenas(amp_params *p) {
    static const char suffix[AMPI_ARENAS][9] = {".master", ".model", ".grad", ".moments", ".accum", ".tables"};
    amp_ctx *ctx = p->ctx;
    ampi_layout l = AMP_ZERO;
    char label[sizeof p->label + sizeof ".moments"];
    int k, fits;
    ampi_place_set(&l, p);
    fits = l.chunks <= 0xffffffffu;
    for (k = 0; k < AMPI_ARENAS; k++)
        fits &= l.bytes[k] < (size_t)-1;
    AMPI_CHECK(fits, "the set is too large");
    for (k = 0; k < AMPI_ARENAS; k++) {
        snprintf(label, sizeof label, "%.23s%.8s", p->label, suffix[k]);
        AMPI_TRY(ampi_alloc_block(ctx, &p->arena[k], (size_t)l.bytes[k], label, 1));
        l.base[k] = (char *)p->arena[k];
    }
    ampi_place_set(&l, p);
    return AMP_OK;
}

/* The list of chunks has those of the parameters in use; returns their number. */
static size_t ampi_chunks_in_use(const amp_params *p, const uint8_t *used, amp_chunk *chunks, uint64_t *elements) {
    size_t i, k, at = 0;
    *elements = 0;
    for (i = 0; i < p->n; i++) {
        if (used && !used[i]) continue;
        *elements += p->entries[i].count;
        for (k = 0; k * AMP_CHUNK < p->entries[i].count; k++, at++) {
            if (!chunks) continue;
            chunks[at].param = (uint32_t)i;
            chunks[at].index = (uint32_t)k;
        }
    }
    return at;
}
/* That list, of n chunks, goes to the backend. */
static amp_status ampi_send_chunks(amp_params *p, const uint8_t *used, size_t n, uint64_t *elements) {
    amp_ctx *ctx = p->ctx;
    amp_chunk *chunks = (amp_chunk *)ampi_host_new(ctx, n * sizeof *chunks);
    amp_status st;
    AMPI_MEMORY(chunks);
    (void)ampi_chunks_in_use(p, used, chunks, elements);
    st = (ctx->b->copy)(ctx, p->table.chunks, chunks, n * sizeof *chunks);
    ampi_host_drop(ctx, chunks, n * sizeof *chunks);
    return st;
}
static amp_status ampi_send_entries(amp_params *p) {
    return (p->ctx->b->copy)(p->ctx, p->table.entries, p->entries, p->n * sizeof *p->entries);
}
static amp_status ampi_commit_tables(amp_params *p) {
    uint64_t elements;
    if (p->n == 0) return AMP_OK;
    AMPI_TRY(ampi_send_chunks(p, NULL, p->table.n_chunks, &elements));
    return ampi_send_entries(p);
}

/* the most weights of a parameter that are written through host memory; 0: none are */
static uint64_t ampi_most_staged(const amp_params *p) {
    uint64_t most = 0;
    size_t i;
    for (i = 0; i < p->n; i++)
        if (ampi_param_at(p, i)->init && !p->entries[i].master && p->entries[i].count > most)
            most = p->entries[i].count;
    return most;
}
static amp_status ampi_commit_staged(amp_params *p, const ampi_staging *b) {
    amp_ctx *ctx = p->ctx;
    size_t i;
    for (i = 0; i < p->n; i++) { /* from init; else from what was adopted; else the zeros that are there */
        const ampi_param *q = ampi_param_at(p, i);
        const amp_param_entry *e = &p->entries[i];
        if (q->init) AMPI_TRY(ampi_move_staged(ctx, e, b, NULL, q->init));
        if (q->init || q->d.master)
            AMPI_TRY(ampi_renew_model(ctx, e));
        else if (e->master && q->d.model.data)
            AMPI_TRY(ampi_cast_entry(ctx, ampi_entry_master(e), ampi_entry_model(e)));
    }
    return AMP_OK;
}
/* Host memory comes first: without it nothing that was adopted changes. */
static amp_status ampi_commit_weights(amp_params *p) {
    ampi_staging b = {NULL, NULL, 0};
    uint64_t most = ampi_most_staged(p);
    amp_status st;
    if (most) AMPI_TRY(ampi_staging_begin(p->ctx, most, &b));
    st = ampi_commit_staged(p, &b);
    if (most) ampi_staging_end(p->ctx, &b);
    return st;
}

/* Adopted arrays, into r if that is not NULL; returns how many. */
static size_t ampi_adopted(const amp_params *p, ampi_range *r) {
    size_t i, k, n = 0;
    for (i = 0; i < p->n; i++) {
        const amp_param_desc *d = &ampi_param_at(p, i)->d;
        const ampi_range all[3] = {
            {(uintptr_t)d->master, d->count * sizeof *d->master, i, "master"},
            {(uintptr_t)d->model.data, d->count * amp_dtype_size(d->model.dtype), i, "model copy"},
            {(uintptr_t)d->grad.data, d->count * amp_dtype_size(d->grad.dtype), i, "gradient"},
        };
        for (k = 0; k < 3; k++) {
            if (!all[k].first) continue;
            if (r) r[n] = all[k];
            n++;
        }
    }
    return n;
}
/* A step would update twice what two parameters share. */
static amp_status ampi_check_adopted(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    const size_t n = ampi_adopted(p, NULL);
    const ampi_range *meet;
    ampi_range *r;
    amp_status st = AMP_OK;
    if (!n) return AMP_OK;
    r = (ampi_range *)ampi_host_new(ctx, n * sizeof *r);
    AMPI_MEMORY(r);
    (void)ampi_adopted(p, r);
    meet = ampi_ranges_meet(r, n);
    if (meet)
        st = AMPI_INVALID("the %s of \"%.60s\" overlaps the %s of \"%.60s\" (tied weights are one parameter that is "
                          "used twice, and its gradients add up)",
            meet->what, ampi_param_at(p, meet->owner)->name, meet[-1].what, ampi_param_at(p, meet[-1].owner)->name);
    ampi_host_drop(ctx, r, n * sizeof *r);
    return st;
}

static amp_status ampi_commit(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    AMPI_TRY((ctx->b->may_wait)(ctx));
    AMPI_TRY(ampi_check_adopted(p));
    AMPI_TRY(ampi_commit_entries(p));
    if (ctx->b->mirror_create) AMPI_TRY((ctx->b->mirror_create)(ctx, &p->mirror));
    AMPI_TRY(ampi_commit_arenas(p));
    AMPI_TRY(ampi_commit_tables(p));
    AMPI_TRY(ampi_commit_weights(p));
    return ampi_settle(ctx, (ctx->b->sync)(ctx));
}

static amp_status ampi_do_params_commit(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    amp_status st;
    size_t i;
    AMPI_STAGE(!p->committed, "the set is committed already");
    st = ampi_commit(p);
    if (st != AMP_OK) {
        ampi_params_undo(p);
        return st;
    }
    for (i = 0; i < p->n; i++)
        ampi_param_forget_init(p->ctx, ampi_param_at(p, i));
    p->committed = 1;
    p->next = p->ctx->sets;
    p->ctx->sets = p;
    return AMP_OK;
}
AMP_API amp_status amp_params_commit(amp_params *p) { AMPI_VERB_OF(p, params_commit, (p)); }

AMP_API amp_param_entry amp_param_entry_get(const amp_params *p, size_t i) {
    amp_param_entry none = AMP_ZERO;
    return p && p->committed && i < p->n ? p->entries[i] : none;
}
AMP_API amp_array amp_param_model(const amp_params *p, size_t i) {
    const amp_param_entry e = amp_param_entry_get(p, i);
    return ampi_entry_model(&e);
}
AMP_API amp_array amp_param_grad(const amp_params *p, size_t i) {
    const amp_param_entry e = amp_param_entry_get(p, i);
    return ampi_entry_grad(&e);
}
AMP_API amp_param amp_param_get(const amp_params *p, size_t i) {
    const amp_param_entry e = amp_param_entry_get(p, i);
    amp_param view = AMP_ZERO;
    size_t k;
    if (!p || i >= p->n) return view;
    view.name = ampi_param_at(p, i)->name;
    view.rows = ampi_param_at(p, i)->d.rows;
    view.cols = ampi_param_at(p, i)->d.cols;
    view.count = ampi_param_at(p, i)->d.count;
    view.model = ampi_entry_model(&e);
    view.grad = ampi_entry_grad(&e);
    view.master = ampi_entry_master(&e);
    view.low = ampi_entry_low(&e);
    view.accum = ampi_entry_array(e.accum, AMP_F32, e.count);
    for (k = 0; k < AMP_MOMENTS; k++) {
        view.moment[k] = ampi_entry_moment(&e, k);
        view.moment_scale[k] = ampi_entry_scale(&e, (uint32_t)k);
    }
    return view;
}
AMP_API const amp_step_record *amp_step_record_ptr(const amp_params *p) { return p ? p->record : NULL; }

/* a committed set of this context */
static amp_status ampi_check_params(amp_ctx *ctx, const amp_params *p) {
    AMPI_CHECK(p, "p is NULL");
    AMPI_CHECK(p->ctx == ctx, "p belongs to a different context");
    AMPI_STAGE(p->committed, "the set is not committed (amp_params_commit)");
    return AMP_OK;
}

/* parameter i as an argument */
static amp_status ampi_check_param(amp_ctx *ctx, const amp_params *p, size_t i, const char *name, const void *host) {
    AMPI_TRY(ampi_check_params(ctx, p));
    AMPI_CHECK(i < p->n, "i is %llu, but the set has %llu parameters", AMPI_ULL(i), AMPI_ULL(p->n));
    AMPI_CHECK(host, "%s is NULL", name);
    return (ctx->b->may_wait)(ctx);
}
static amp_status ampi_do_param_read(const amp_params *p, size_t i, float *dst) {
    amp_ctx *ctx = p->ctx;
    AMPI_TRY(ampi_check_param(ctx, p, i, "dst", dst));
    return ampi_move_weights(ctx, &p->entries[i], dst, NULL);
}
AMP_API amp_status amp_param_read(const amp_params *p, size_t i, float *dst) {
    AMPI_VERB_OF(p, param_read, (p, i, dst));
}
static amp_status ampi_do_param_write(amp_params *p, size_t i, const float *src) {
    amp_ctx *ctx = p->ctx;
    AMPI_TRY(ampi_check_param(ctx, p, i, "src", src));
    AMPI_TRY(ampi_check_weights(p, &ampi_param_at(p, i)->d, ampi_param_at(p, i)->name, src));
    AMPI_TRY(ampi_move_weights(ctx, &p->entries[i], NULL, src));
    ampi_weights_changed(ctx, p);
    return ampi_renew_model(ctx, &p->entries[i]);
}
AMP_API amp_status amp_param_write(amp_params *p, size_t i, const float *src) {
    AMPI_VERB_OF(p, param_write, (p, i, src));
}

static amp_status ampi_do_params_master_to_model(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    size_t i;
    AMPI_TRY(ampi_check_params(ctx, p));
    for (i = 0; i < p->n; i++)
        AMPI_TRY(ampi_renew_model(ctx, &p->entries[i]));
    p->stochastic = 0;
    ampi_weights_changed(ctx, p);
    return AMP_OK;
}
AMP_API amp_status amp_params_master_to_model(amp_params *p) { AMPI_VERB_OF(p, params_master_to_model, (p)); }
static amp_status ampi_do_params_model_to_master(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    size_t i;
    AMPI_TRY(ampi_check_params(ctx, p));
    for (i = 0; i < p->n; i++) {
        const amp_param_entry *e = &p->entries[i];
        if (e->master && e->model) AMPI_TRY(ampi_cast_entry(ctx, ampi_entry_master(e), ampi_entry_model(e)));
        if (e->low) AMPI_TRY((ctx->b->zero)(ctx, e->low, (size_t)e->count * amp_dtype_size(ampi_low_type(e->layout))));
    }
    p->stochastic = 0;
    ampi_weights_changed(ctx, p);
    return AMP_OK;
}
AMP_API amp_status amp_params_model_to_master(amp_params *p) { AMPI_VERB_OF(p, params_model_to_master, (p)); }
/* dst[i] does not touch a gradient that is still to be read, those after i, nor what was written before it */
static amp_status ampi_check_apart(amp_ctx *ctx, const amp_array *dst, size_t i, const amp_params *p) {
    size_t k, bytes = (size_t)p->entries[i].count * amp_dtype_size(dst[i].dtype);
    if (!dst[i].data) return AMP_OK;
    for (k = 0; k < i; k++) {
        size_t before = (size_t)p->entries[k].count * amp_dtype_size(dst[k].dtype);
        int meet = ampi_overlap(dst[i].data, bytes, dst[k].data, before);
        AMPI_CHECK(!meet, "dst[%llu] overlaps dst[%llu]", AMPI_ULL(i), AMPI_ULL(k));
    }
    for (k = i + 1; k < p->n; k++) {
        amp_array g = amp_param_grad(p, k);
        size_t after = g.count * amp_dtype_size(g.dtype);
        int meet = dst[k].data && ampi_overlap(dst[i].data, bytes, g.data, after);
        AMPI_CHECK(!meet, "dst[%llu] overlaps the gradient of parameter %llu", AMPI_ULL(i), AMPI_ULL(k));
    }
    return AMP_OK;
}
static amp_status ampi_do_params_grads_to(amp_params *p, const amp_array *dst, size_t n) {
    amp_ctx *ctx = p->ctx;
    char name[40];
    size_t i;
    AMPI_TRY(ampi_check_params(ctx, p));
    AMPI_CHECK(n == p->n, "n is %llu, but the set has %llu parameters", AMPI_ULL(n), AMPI_ULL(p->n));
    AMPI_CHECK(!n || dst, "dst is NULL");
    for (i = 0; i < n; i++) { /* all of them before the first is written */
        const amp_array g = amp_param_grad(p, i);
        snprintf(name, sizeof name, "dst[%llu]", AMPI_ULL(i));
        if (dst[i].data) AMPI_TRY(ampi_check_map(ctx, name, dst[i], "its gradient", g, g.count));
        AMPI_TRY(ampi_check_apart(ctx, dst, i, p));
    }
    for (i = 0; i < n; i++)
        if (dst[i].data) AMPI_TRY(ampi_do_cast(ctx, dst[i], amp_param_grad(p, i), (size_t)p->entries[i].count, NULL));
    return AMP_OK;
}
AMP_API amp_status amp_params_grads_to(amp_params *p, const amp_array *dst, size_t n) {
    AMPI_VERB_OF(p, params_grads_to, (p, dst, n));
}
static void ampi_wrote_grads(const amp_params *p) { /* or sums of them */
    size_t i;
    for (i = 0; i < p->n && p->ctx->scope; i++) {
        ampi_wrote_array(p->ctx, amp_param_grad(p, i), (size_t)p->entries[i].count);
        ampi_wrote(p->ctx, p->entries[i].accum, (size_t)p->entries[i].count * sizeof(float));
    }
}
static amp_status ampi_do_params_zero_grad(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    size_t i;
    AMPI_TRY(ampi_check_params(ctx, p));
    ampi_wrote_grads(p);
    for (i = 0; i < p->n; i++)
        AMPI_TRY((ctx->b->zero)(
            ctx, p->entries[i].grad, (size_t)p->entries[i].count * amp_dtype_size(p->entries[i].grad_dtype)));
    return AMP_OK;
}
AMP_API amp_status amp_params_zero_grad(amp_params *p) { AMPI_VERB_OF(p, params_zero_grad, (p)); }

static amp_status ampi_set_record(amp_ctx *ctx, const amp_params *p, const amp_step_record *r) {
    if (!ctx->b->set_record) return (ctx->b->copy)(ctx, p->record, r, sizeof *r);
    return (ctx->b->set_record)(ctx, p->record, p->mirror, r);
}
static int ampi_is_at_rest(const amp_params *p);
/* Which parameters have not been stepped yet: SGD's first update of one is its own. A momentum that is all 0 tells. Of
   those that come into use (used NULL: all of them do), or of all. */
static amp_status ampi_first_steps(amp_params *p, const uint8_t *used, int all) {
    amp_ctx *ctx = p->ctx;
    amp_step_record r;
    size_t i;
    AMPI_TRY((ctx->b->copy)(ctx, &r, p->record, sizeof r));
    for (i = 0; i < p->n; i++) {
        amp_param_entry *e = &p->entries[i];
        amp_array a = ampi_entry_zeros(e, 0);
        amp_histogram h = AMP_ZERO;
        if (!all && (!ampi_param_at(p, i)->unused || (used && !used[i]))) continue;
        e->before = r.steps ? AMPI_HAS_STEPPED : 0;
        if (!a.data || !r.steps || !ctx->b->histogram) continue;
        AMPI_TRY((ctx->b->histogram)(ctx, &a, 1, &h));
        if (h.zero == h.total && r.steps < AMPI_HAS_STEPPED) e->before = (uint32_t)r.steps;
    }
    return ampi_send_entries(p);
}
static amp_status ampi_do_params_use(amp_params *p, const uint8_t *used) {
    amp_ctx *ctx = p->ctx;
    uint64_t elements;
    size_t i, n;
    AMPI_TRY(ampi_check_params(ctx, p));
    if (p->n == 0) return AMP_OK;
    n = ampi_chunks_in_use(p, used, NULL, &elements);
    AMPI_CHECK(n, "used has no parameter of %llu: leave the step out", AMPI_ULL(p->n));
    AMPI_STAGE(ampi_is_at_rest(p), "the set is in the middle of a step or a window");
    AMPI_TRY((ctx->b->may_wait)(ctx));
    AMPI_TRY(ampi_first_steps(p, used, 0));
    AMPI_TRY(ampi_send_chunks(p, used, n, &elements));
    p->table.n_chunks = (uint32_t)n;
    p->table.n_elements = elements;
    for (i = 0; i < p->n; i++)
        ampi_param_at(p, i)->unused = used && !used[i];
    return AMP_OK;
}
AMP_API amp_status amp_params_use(amp_params *p, const uint8_t *used) { AMPI_VERB_OF(p, params_use, (p, used)); }
static amp_status ampi_do_params_set_steps(amp_params *p, uint64_t steps) {
    amp_ctx *ctx = p->ctx;
    amp_step_record r = AMP_ZERO;
    size_t i;
    AMPI_TRY(ampi_check_params(ctx, p));
    AMPI_STAGE(ampi_is_at_rest(p), "the set is in the middle of a step or a window");
    AMPI_TRY((ctx->b->may_wait)(ctx));
    for (i = 0; i < p->n; i++)
        p->entries[i].before = steps ? AMPI_HAS_STEPPED : 0;
    if (p->n) AMPI_TRY(ampi_send_entries(p));
    r.steps = steps;
    return ampi_set_record(ctx, p, &r);
}
AMP_API amp_status amp_params_set_steps(amp_params *p, uint64_t steps) {
    AMPI_VERB_OF(p, params_set_steps, (p, steps));
}

/* ==== >>front-scaler =============================================================================================
   The loss scaler.   tests: tests/test_scaler.c */

struct amp_scaler {
    amp_ctx *ctx;
    amp_scaler_state *state; /* context memory */
    amp_params *tied;        /* sets whose phase belongs to its iteration, or whose windows hold its scale */
    uint64_t serial;         /* of this iteration */
    amp_scaler *next;        /* in the context's list of scalers */
    int32_t checked;         /* 1: gradients were checked in this iteration */
    int32_t off;
    float kept; /* the scale from before it was switched off; 0: none */
    int32_t _pad;
};
static ampi_phase ampi_phase_after_update(const amp_params *p);
static int ampi_is_on(const amp_scaler *s) { return s && !s->off; }

static amp_status ampi_check_scale(amp_ctx *ctx, const char *name, float scale) {
    AMPI_CHECK(amp_is_finite(scale) && scale > 0.0f, "%s is %g; it must be finite and > 0", name, (double)scale);
    AMPI_CHECK(amp_is_finite(ampi_inverse(scale)), "%s is %g, whose reciprocal is not finite", name, (double)scale);
    return AMP_OK;
}

static int ampi_is_scale(float x) { return amp_is_finite(x) && x > 0.0f && amp_is_finite(ampi_inverse(x)); }
/* What a rule with this scale may not have, and which number it is; NULL: it is good. For what is given, and for what
   comes from a file. */
static const char *ampi_rule_fault(const amp_scaler_state *s, double *is) {
    const float growth = s->growth_factor, backoff = s->backoff_factor;
    *is = (double)growth;
    if (!amp_is_finite(growth) || !(growth > 1.0f)) return "growth_factor, which must be > 1,";
    *is = (double)backoff;
    if (!amp_is_finite(backoff) || !(backoff > 0.0f && backoff < 1.0f))
        return "backoff_factor, which must be in (0, 1),";
    *is = s->growth_interval;
    if (s->growth_interval < AMP_NONE) return "growth_interval, which must be > 0, 0 (for 2000) or AMP_NONE,";
    *is = s->hysteresis;
    if (s->hysteresis < 0) return "hysteresis, which must be >= 0,";
    *is = (double)s->min_scale;
    if (!ampi_is_scale(s->min_scale)) return "min_scale, which must be > 0, it and its reciprocal finite,";
    if (s->min_scale > s->scale) return "min_scale, which may not be above the scale,";
    *is = (double)s->max_scale;
    if (!ampi_is_scale(s->max_scale)) return "max_scale, which must be > 0, it and its reciprocal finite,";
    if (s->max_scale < s->scale) return "max_scale, which may not be below the scale,";
    *is = s->mode;
    return s->mode > (uint32_t)AMP_SCALER_OFF ? "mode" : NULL;
}
/* checks a rule and writes it into *s (whose scale is the scale it will work with) */
static amp_status ampi_scaler_rule(amp_ctx *ctx, amp_scaler_state *s, const amp_scaler_desc *d) {
    const float one = s->scale < 1.0f ? s->scale : 1.0f, largest = ampi_float(0x7f7fffffu);
    amp_scaler_state t = *s;
    const char *fault;
    double is = 0.0;
    AMPI_CHECK(!d->flags, "desc.flags is not 0");
    t.growth_factor = ampi_nonzero(d->growth_factor) ? d->growth_factor : 2.0f;
    t.backoff_factor = ampi_nonzero(d->backoff_factor) ? d->backoff_factor : 0.5f;
    t.min_scale = ampi_nonzero(d->min_scale) ? d->min_scale : one;
    t.max_scale = ampi_nonzero(d->max_scale) ? d->max_scale : largest;
    t.growth_interval = d->growth_interval ? d->growth_interval : 2000;
    t.hysteresis = d->hysteresis ? d->hysteresis : 1;
    t.mode = (uint32_t)d->mode;
    t.no_check = d->no_check != 0;
    t.dead_after = d->dead_after ? d->dead_after : 10;
    fault = ampi_rule_fault(&t, &is);
    AMPI_CHECK(!fault, "desc.%s is %g", fault, is);
    *s = t;
    return AMP_OK;
}

static amp_scaler_state ampi_off_state(void) { /* of a scaler that is OFF */
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler_state t = AMP_ZERO;
    t.scale = t.inverse = 1.0f;
    d.mode = AMP_SCALER_OFF;
    (void)ampi_scaler_rule(NULL, &t, &d);
    t.hysteresis_tracker = t.hysteresis;
    return t;
}

static amp_status ampi_do_scaler_create(
    amp_scaler **out, amp_ctx *ctx, int version, size_t size, const amp_scaler_desc *desc) {
    amp_scaler_state state = ampi_off_state();
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler *s;
    amp_status st;
    void *mem;
    AMPI_CHECK_CREATE(out, version, size, &d, desc);
    if (!ampi_nonzero(d.scale) || (d.mode == AMP_SCALER_OFF && !ampi_is_scale(d.scale))) d.scale = 65536.0f;
    AMPI_TRY(ampi_check_scale(ctx, "desc.scale", d.scale));
    if (d.mode != AMP_SCALER_OFF) { /* of one that is OFF no rule counts */
        state.scale = d.scale;
        AMPI_TRY(ampi_scaler_rule(ctx, &state, &d));
        state.hysteresis_tracker = state.hysteresis;
        state.inverse = ampi_inverse(state.scale);
    }
    AMPI_HAS(next_scale);
    AMPI_HAS(finite);
    AMPI_TRY((ctx->b->may_wait)(ctx));
    s = (amp_scaler *)ampi_host_new(ctx, sizeof *s);
    AMPI_MEMORY(s);
    st = ampi_alloc_block(ctx, &mem, sizeof state, "scaler", 0);
    if (st == AMP_OK) st = ampi_settle(ctx, (ctx->b->copy)(ctx, mem, &state, sizeof state));
    if (st != AMP_OK) {
        ampi_free_block(ctx, mem);
        ampi_host_drop(ctx, s, sizeof *s);
        return st;
    }
    s->ctx = ctx;
    s->state = (amp_scaler_state *)mem;
    s->next = ctx->scalers;
    ctx->scalers = s;
    s->serial = ++ctx->serial;
    s->off = d.mode == AMP_SCALER_OFF;
    s->kept = d.scale;
    *out = s;
    return AMP_OK;
}
AMP_API amp_status amp_scaler_create_checked(
    amp_scaler **out, amp_ctx *ctx, int version, size_t size, const amp_scaler_desc *desc) {
    if (out) *out = NULL;
    AMPI_VERB(ctx, scaler_create, (out, ctx, version, size, desc));
}

static void ampi_do_scaler_destroy(amp_scaler *s) {
    amp_ctx *ctx = s->ctx;
    while (s->tied)
        ampi_untie(s->tied);
    AMPI_UNLINK(amp_scaler, ctx->scalers, s, next);
    ampi_free_block(ctx, s->state);
    ampi_host_drop(ctx, s, sizeof *s);
}
AMP_API void amp_scaler_destroy(amp_scaler *s) { AMPI_DESTROY(AMPI_CTX(s), scaler_destroy, (s)); }

static amp_status ampi_scaler_read(amp_scaler *s, amp_scaler_state *out) { /* s NULL: as if OFF */
    if (!s) {
        *out = ampi_off_state();
        return AMP_OK;
    }
    return ampi_do_copy(s->ctx, out, s->state, sizeof *out);
}
static amp_status ampi_scaler_write(amp_scaler *s, const amp_scaler_state *in) {
    return (s->ctx->b->copy)(s->ctx, s->state, in, sizeof *in);
}

AMP_API const float *amp_scaler_scale_ptr(const amp_scaler *s) { return s ? &s->state->scale : NULL; }
AMP_API const float *amp_scaler_inverse_ptr(const amp_scaler *s) { return s ? &s->state->inverse : NULL; }

static amp_status ampi_do_scaler_get(amp_scaler *s, amp_scaler_info *out) {
    amp_ctx *ctx = s->ctx;
    amp_scaler_state t;
    AMPI_CHECK(out, "out is NULL");
    AMPI_TRY(ampi_scaler_read(s, &t));
    out->scale = t.scale;
    out->growth_tracker = t.growth_tracker;
    out->hysteresis_tracker = t.hysteresis_tracker;
    out->dead = amp_scaler_dead(&t);
    out->good = t.good;
    out->bad = t.bad;
    out->bad_in_a_row = t.bad_in_a_row;
    out->bad_nan = t.bad_nan;
    out->bad_inf = t.bad_inf;
    out->bad_overflow = t.bad_overflow;
    return AMP_OK;
}
AMP_API amp_status amp_scaler_get(amp_scaler *s, amp_scaler_info *out) {
    amp_scaler_info off = AMP_ZERO;
    off.scale = 1.0f;
    off.hysteresis_tracker = 1;
    if (!s && out) *out = off;
    if (!s) return out ? AMP_OK : AMP_ERR_INVALID_ARG;
    AMPI_VERB(s->ctx, scaler_get, (s, out));
}

static void ampi_next_iteration(amp_scaler *s) {
    amp_params *p;
    for (p = s->tied; p; p = p->next_tied)
        p->phase = ampi_phase_after_update(p);
    s->serial = ++s->ctx->serial;
    s->checked = 0;
}

static amp_status ampi_check_scaler(amp_ctx *ctx, const amp_scaler *s) {
    AMPI_CHECK(s, "s is NULL");
    AMPI_CHECK(s->ctx == ctx, "s belongs to a different context");
    return AMP_OK;
}
/* does the window of a set hold the scale? Of a set that is not `but` (NULL allowed). */
static int ampi_held(const amp_scaler *s, const amp_params *but) {
    const amp_params *p = s->tied;
    while (p && (p == but || !p->holds))
        p = p->next_tied;
    return p != NULL;
}
/* may the scale move? */
static amp_status ampi_check_held(amp_ctx *ctx, const amp_scaler *s) {
    AMPI_STAGE(!ampi_held(s, NULL), "an accumulation window (amp_window_begin) holds the scale");
    return AMP_OK;
}

static void ampi_put_scale(amp_scaler_state *t, float scale) { /* by hand: what was found is forgotten */
    t->scale = scale;
    t->inverse = ampi_inverse(scale);
    if (t->min_scale > scale) t->min_scale = scale;
    if (t->max_scale < scale) t->max_scale = scale;
    t->found = 0;
}
static amp_status ampi_do_scaler_set_scale(amp_scaler *s, float scale) {
    amp_ctx *ctx = s->ctx;
    amp_scaler_state t;
    AMPI_TRY(ampi_check_scale(ctx, "scale", scale));
    if (s->off) s->kept = scale;
    if (s->off) return AMP_OK;
    AMPI_TRY(ampi_check_held(ctx, s));
    AMPI_TRY(ampi_scaler_read(s, &t));
    ampi_put_scale(&t, scale);
    t.stuck = 0;
    AMPI_TRY(ampi_scaler_write(s, &t));
    ampi_next_iteration(s);
    return AMP_OK;
}
AMP_API amp_status amp_scaler_set_scale(amp_scaler *s, float scale) {
    if (!s) return AMP_OK;
    AMPI_VERB(s->ctx, scaler_set_scale, (s, scale));
}

static amp_status ampi_do_scaler_set(amp_scaler *s, const amp_scaler_info *info) {
    amp_ctx *ctx = s->ctx;
    amp_scaler_state t;
    AMPI_CHECK(info, "info is NULL");
    AMPI_TRY(ampi_check_scale(ctx, "info.scale", info->scale));
    AMPI_CHECK(info->growth_tracker >= 0, "info.growth_tracker is %d; it must be >= 0", (int)info->growth_tracker);
    if (s->off) return AMP_OK;
    AMPI_TRY(ampi_check_held(ctx, s));
    AMPI_TRY(ampi_scaler_read(s, &t));
    AMPI_CHECK(info->hysteresis_tracker <= t.hysteresis,
        "info.hysteresis_tracker is %d, above the rule's hysteresis %d", (int)info->hysteresis_tracker,
        (int)t.hysteresis);
    if (!info->dead != !amp_scaler_dead(&t)) t.stuck = info->dead ? t.dead_after : 0;
    ampi_put_scale(&t, info->scale);
    t.growth_tracker = info->growth_tracker;
    t.hysteresis_tracker = info->hysteresis_tracker;
    t.good = info->good;
    t.bad = info->bad;
    t.bad_in_a_row = info->bad_in_a_row;
    t.bad_nan = info->bad_nan;
    t.bad_inf = info->bad_inf;
    t.bad_overflow = info->bad_overflow;
    AMPI_TRY(ampi_scaler_write(s, &t));
    ampi_next_iteration(s);
    return AMP_OK;
}
AMP_API amp_status amp_scaler_set(amp_scaler *s, const amp_scaler_info *info) {
    if (!s) return info ? AMP_OK : AMP_ERR_INVALID_ARG;
    AMPI_VERB_OF(s, scaler_set, (s, info));
}

/* A scaler that is off has scale 1 in context memory, too; the one before is kept for the next mode. */
static amp_status ampi_do_scaler_configure(amp_scaler *s, const amp_scaler_desc *desc) {
    amp_ctx *ctx = s->ctx;
    const int was_off = s->off;
    amp_scaler_state t;
    float kept;
    int off;
    AMPI_CHECK_DESC(desc);
    AMPI_CHECK(!ampi_nonzero(desc->scale), "desc.scale is not 0 (amp_scaler_set_scale sets it)");
    off = desc->mode == AMP_SCALER_OFF;
    if (off != was_off) AMPI_TRY(ampi_check_held(ctx, s));
    AMPI_TRY(ampi_scaler_read(s, &t));
    if (was_off) t.scale = s->kept; /* the rule is checked with the scale that it will work with */
    AMPI_TRY(ampi_scaler_rule(ctx, &t, desc));
    if (t.hysteresis_tracker > t.hysteresis) t.hysteresis_tracker = t.hysteresis;
    kept = t.scale;
    if (off) t.scale = 1.0f;
    if (off != was_off) t.found = 0;
    t.inverse = ampi_inverse(t.scale);
    AMPI_TRY(ampi_scaler_write(s, &t));
    s->kept = kept;
    s->off = off;
    if (off != was_off) ampi_next_iteration(s);
    return AMP_OK;
}
AMP_API amp_status amp_scaler_configure(amp_scaler *s, const amp_scaler_desc *desc) {
    AMPI_VERB_OF(s, scaler_configure, (s, desc));
}

/* dst[i] is grads[i], or apart from every list entry that is read; and apart from every dst before it */
static amp_status ampi_check_unscaled(amp_ctx *ctx, const amp_array *dst, const amp_array *grads, size_t i, size_t n) {
    char name[40];
    size_t k, bytes;
    snprintf(name, sizeof name, "dst[%llu]", AMPI_ULL(i));
    AMPI_TRY(ampi_check_array(ctx, name, dst[i], grads[i].count, 1));
    AMPI_CHECK(ampi_product(&bytes, grads[i].count, amp_dtype_size(dst[i].dtype)),
        "%s would have %llu elements, which is too large", name, AMPI_ULL(grads[i].count));
    AMPI_CHECK(dst[i].data != grads[i].data || dst[i].dtype == grads[i].dtype || !bytes,
        "%s is grads[%llu] with a different dtype", name, AMPI_ULL(i));
    for (k = 0; k < n; k++) {
        size_t read = grads[k].count * amp_dtype_size(grads[k].dtype);
        int same = k == i && dst[i].data == grads[i].data;
        AMPI_CHECK(same || !ampi_overlap(dst[i].data, bytes, grads[k].data, read), "%s overlaps grads[%llu]", name,
            AMPI_ULL(k));
    }
    for (k = 0; k < i; k++) {
        size_t before = grads[k].count * amp_dtype_size(dst[k].dtype);
        int meet = ampi_overlap(dst[i].data, bytes, dst[k].data, before);
        AMPI_CHECK(!meet, "%s overlaps dst[%llu]", name, AMPI_ULL(k));
    }
    return AMP_OK;
}
/* In place: what stands in the list twice would be divided twice. Most lists lie in the order of their addresses, or
   against it. */
static amp_status ampi_check_once(amp_ctx *ctx, const amp_array *grads, size_t n) {
    uintptr_t least = UINTPTR_MAX, end = 0; /* of all so far */
    size_t i, k;
    for (i = 0; i < n; i++) {
        const uintptr_t first = (uintptr_t)grads[i].data;
        const size_t bytes = grads[i].count * amp_dtype_size(grads[i].dtype);
        const int between = bytes && first < end && first + bytes > least;
        for (k = 0; between && k < i; k++) {
            const size_t before = grads[k].count * amp_dtype_size(grads[k].dtype);
            AMPI_CHECK(!ampi_overlap(grads[i].data, bytes, grads[k].data, before), "grads[%llu] overlaps grads[%llu]",
                AMPI_ULL(i), AMPI_ULL(k));
        }
        if (bytes && first < least) least = first;
        if (bytes && first + bytes > end) end = first + bytes;
    }
    return AMP_OK;
}
static amp_status ampi_unscale_by_nothing(
    const amp_array *dst, amp_finite_report *report, const amp_array *grads, size_t n) {
    if (dst || (n && !grads)) return AMP_ERR_INVALID_ARG; /* without a context: no sentence */
    if (report) memset(report, 0, sizeof *report);
    return AMP_OK;
}
static amp_status ampi_do_unscale(
    amp_scaler *s, const amp_array *dst, amp_finite_report *report, const amp_array *grads, size_t n) {
    amp_ctx *ctx = s->ctx;
    amp_finite_report r = AMP_ZERO;
    size_t i;
    AMPI_TRY(ampi_check_list(ctx, "grads", grads, n, 0));
    if (!dst) AMPI_TRY(ampi_check_once(ctx, grads, n));
    for (i = 0; dst && i < n; i++)
        AMPI_TRY(ampi_check_unscaled(ctx, dst, grads, i, n));
    for (i = 0; (dst || !s->off) && i < n; i++)
        ampi_wrote_array(ctx, dst ? dst[i] : grads[i], grads[i].count);
    if (report) AMPI_TRY((ctx->b->may_wait)(ctx));
    if (!s->off) {
        AMPI_TRY((ctx->b->finite)(ctx, dst, grads, n, s->state, report ? &r : NULL));
        s->checked = 1;
    } else
        for (i = 0; dst && i < n; i++) {
            int in_place = dst[i].data == grads[i].data;
            if (!in_place) AMPI_TRY(ampi_do_cast(ctx, dst[i], grads[i], grads[i].count, NULL));
        }
    if (report) *report = r;
    return AMP_OK;
}
AMP_API amp_status amp_unscale(
    amp_scaler *s, const amp_array *dst, amp_finite_report *report, const amp_array *grads, size_t n) {
    if (!s) return ampi_unscale_by_nothing(dst, report, grads, n);
    AMPI_VERB(s->ctx, unscale, (s, dst, report, grads, n));
}

static amp_status ampi_do_scaler_update(amp_scaler *s) {
    amp_ctx *ctx = s->ctx;
    if (!ampi_is_on(s)) return AMP_OK;
    AMPI_TRY(ampi_check_held(ctx, s));
    AMPI_STAGE(s->checked != 0, "nothing was checked since the last update (unscale or step first)");
    AMPI_TRY((ctx->b->next_scale)(ctx, s->state));
    ampi_next_iteration(s);
    ampi_iteration_ended(ctx);
    return AMP_OK;
}
AMP_API amp_status amp_scaler_update(amp_scaler *s) {
    if (!s) return AMP_OK;
    AMPI_VERB(s->ctx, scaler_update, (s));
}

/* ---- the phases of a set: which verb may be called when, and the sentence where it may not.

   A set is in one phase. The table says for each phase and verb which gradients the verb takes and the phase after it,
   or why it is refused. A phase belongs to the scaler that the set is tied to: to any other scaler, or to none, the set
   is as after that scaler's update.
   tests: tests/test_phases.c ---- */

typedef enum ampi_verb {
    AMPI_DO_UNSCALE,
    AMPI_DO_STEP, /* amp_step and amp_update */
    AMPI_DO_INSPECT,
    AMPI_DO_APPLY,
    AMPI_DO_ACCUMULATE,
    AMPI_DO_MEASURE, /* amp_grad_norm and amp_clip */
    AMPI_DO_NEXT,    /* the scaler moves on: amp_scaler_update and its like */
    AMPI_DO_LOAD,    /* amp_state_load; amp_state_save asks it, too */
    AMPI_VERBS
} ampi_verb;

typedef enum ampi_takes {
    AMPI_REFUSED = 0, /* the sentence says why */
    AMPI_NOTHING,
    AMPI_SCALED, /* gradients that carry the loss scale */
    AMPI_PLAIN,  /* gradients as they are: they were unscaled, or used */
    AMPI_SUMS    /* accumulators */
} ampi_takes;

typedef struct ampi_rule {
    ampi_takes takes;
    ampi_phase next;
    char why[72]; /* no pointer: the table stays read-only in position-independent code */
} ampi_rule;

#define AMPI_TWICE     "the set is unscaled already since the last amp_scaler_update"
#define AMPI_USED      "the set has stepped already since the last amp_scaler_update"
#define AMPI_NO_RECORD "amp_inspect comes first: its record is what an update reads"
#define AMPI_OPEN      "the set is inside an accumulation window"
#define AMPI_MIDST     "the set is between a check and amp_scaler_update"

/* clang-format off */
#define AMPI_GO(takes, next) {AMPI_##takes, AMPI_##next, ""}
#define AMPI_NO(why)         {AMPI_REFUSED, AMPI_READY, why}
static const ampi_rule ampi_rules[AMPI_PHASES][AMPI_VERBS] = {
    /* ready */
    {AMPI_GO(SCALED, UNSCALED), AMPI_GO(SCALED, STEPPED), AMPI_GO(SCALED, INSPECTED), AMPI_NO(AMPI_NO_RECORD),
     AMPI_GO(SCALED, ADDING), AMPI_GO(SCALED, READY),
     AMPI_GO(NOTHING, READY), AMPI_GO(NOTHING, READY)},
    /* unscaled */
    {AMPI_NO(AMPI_TWICE), AMPI_GO(PLAIN, STEPPED), AMPI_GO(PLAIN, INSPECTED), AMPI_NO(AMPI_NO_RECORD),
     AMPI_GO(PLAIN, ADDING), AMPI_GO(PLAIN, UNSCALED),
     AMPI_GO(NOTHING, READY), AMPI_NO(AMPI_MIDST)},
    /* stepped */
    {AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_NO(AMPI_NO_RECORD),
     AMPI_NO(AMPI_USED), AMPI_GO(PLAIN, STEPPED),
     AMPI_GO(NOTHING, READY), AMPI_GO(NOTHING, READY)},
    /* inspected */
    {AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_GO(PLAIN, INSPECTED),
     AMPI_NO(AMPI_USED), AMPI_GO(PLAIN, INSPECTED),
     AMPI_GO(NOTHING, READY), AMPI_NO(AMPI_MIDST)},
    /* adding */
    {AMPI_GO(SCALED, ADDING_UNSCALED), AMPI_GO(SUMS, SUMMED), AMPI_GO(SUMS, ADDED), AMPI_NO(AMPI_NO_RECORD),
     AMPI_GO(SCALED, ADDING), AMPI_GO(SUMS, ADDING),
     AMPI_GO(NOTHING, ADDING), AMPI_NO(AMPI_OPEN)},
    /* adding, gradients unscaled */
    {AMPI_NO(AMPI_TWICE), AMPI_GO(SUMS, STEPPED), AMPI_GO(SUMS, ADDED), AMPI_NO(AMPI_NO_RECORD),
     AMPI_GO(PLAIN, ADDING), AMPI_GO(SUMS, ADDING_UNSCALED),
     AMPI_GO(NOTHING, ADDING), AMPI_NO(AMPI_OPEN)},
    /* added */
    {AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_GO(SUMS, ADDED),
     AMPI_NO(AMPI_USED), AMPI_GO(SCALED, ADDED),
     AMPI_GO(NOTHING, READY), AMPI_NO(AMPI_MIDST)},
    /* summed */
    {AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_NO(AMPI_NO_RECORD),
     AMPI_NO(AMPI_USED), AMPI_GO(SCALED, SUMMED),
     AMPI_GO(NOTHING, READY), AMPI_GO(NOTHING, READY)}};
#undef AMPI_GO
#undef AMPI_NO
/* clang-format on */

static ampi_phase ampi_phase_after_update(const amp_params *p) { return ampi_rules[p->phase][AMPI_DO_NEXT].next; }

/* The set's phase as s sees it. An iteration in which s has checked nothing is a new one: after accumulated
   micro-batches it may have moved on before the step, which then was part of the iteration before. */
static ampi_phase ampi_phase_for(const amp_params *p, const amp_scaler *s) {
    const int now = ampi_is_on(s) && p->scaler == s && s->checked && !p->late;
    return now ? p->phase : ampi_phase_after_update(p);
}
static const ampi_rule *ampi_rule_of(const amp_params *p, const amp_scaler *s, ampi_verb verb) {
    return &ampi_rules[ampi_phase_for(p, s)][verb];
}

static int ampi_is_at_rest(const amp_params *p) { /* no gradient is half-way between unscale and update */
    const ampi_phase now = ampi_phase_for(p, p->scaler);
    return !p->holds && (now == AMPI_READY || now == AMPI_STEPPED || now == AMPI_SUMMED);
}

/* forgets the scaler, and with it the hold on its scale */
static void ampi_untie(amp_params *p) {
    if (!p->scaler) return;
    AMPI_UNLINK(amp_params, p->scaler->tied, p, next_tied);
    p->phase = ampi_phase_after_update(p);
    p->scaler = NULL;
    p->next_tied = NULL;
    p->holds = 0;
}
static void ampi_tie(amp_params *p, amp_scaler *s) {
    if (p->scaler == s) return;
    ampi_untie(p);
    p->phase = ampi_phase_after_update(p);
    p->scaler = s;
    p->next_tied = s->tied;
    s->tied = p;
}
static void ampi_enter_phase(amp_params *p, amp_scaler *s, ampi_phase next) {
    if (ampi_is_on(s))
        ampi_tie(p, s);
    else if (!p->holds)
        ampi_untie(p);
    p->late = 0;
    p->phase = next;
}

/* p and s (NULL allowed) as arguments of a step verb */
static amp_status ampi_check_pair(amp_ctx *ctx, const amp_params *p, const amp_scaler *s) {
    AMPI_TRY(ampi_check_params(ctx, p));
    return s ? ampi_check_scaler(ctx, s) : AMP_OK;
}

/* may the verb be called now? For verbs that change the phase. */
static amp_status ampi_check_phase(amp_ctx *ctx, const amp_params *p, const amp_scaler *s, const ampi_rule *rule) {
    AMPI_STAGE(p->n > 0, "the set has no parameters: nothing to check");
    AMPI_STAGE(rule->takes != AMPI_REFUSED, "%s", rule->why);
    AMPI_STAGE(!p->holds || !ampi_is_on(s) || p->scaler == s,
        "the set's accumulation window holds the scale of a different scaler, or was begun without one");
    return AMP_OK;
}

/* ==== >>front-step ===============================================================================================
   The optimizer step.   tests: tests/test_step.c, tests/test_phases.c, tests/test_layouts.c, tests/test_context.c */

/* x, or what its absence means. A bare number in place of amp_opt(x) has a value but is not given. */
static amp_status ampi_optional(
    amp_ctx *ctx, const char *name, const char *field, float *out, amp_optional x, float absent) {
    AMPI_CHECK(x.given || ampi_bits(x.value) == 0, "%s.%s is the bare number %g; write amp_opt(%g)", name, field,
        (double)x.value, (double)x.value);
    *out = x.given ? x.value : absent;
    return AMP_OK;
}

static amp_status ampi_rate(amp_ctx *ctx, const char *name, const amp_group *g, float *lr) {
    AMPI_CHECK((uintptr_t)g->lr_ptr % 4u == 0, "%s.lr_ptr is not aligned to 4 bytes", name);
    *lr = 0.0f;
    if (g->lr_ptr || ampi_bits(g->lr) == ampi_bits((float)AMP_NONE)) return AMP_OK;
    AMPI_CHECK(ampi_nonzero(g->lr), "%s.lr is 0: give a learning rate, lr_ptr, or AMP_NONE for a rate of 0", name);
    *lr = g->lr;
    return AMP_OK;
}

static int ampi_in_range(float x, float least, float most) { return amp_is_finite(x) && x >= least && x <= most; }
#define AMPI_MOST      3.4028234e38f
#define AMPI_ONE       0.99999994f /* the largest number below 1 */
/* eps 0: 0 / 0 becomes 0, and no other quotient changes, since a root that is not 0 is 2^-75 or more */
#define AMPI_LEAST_EPS 7.8886091e-31f /* 2^-100 */

/* a row of AMP_OPTIMIZER_LIST */
typedef struct ampi_optimizer {
    amp_update_kind kind;
    uint32_t decoupled;
    float beta2;
} ampi_optimizer;
static ampi_optimizer ampi_optimizer_of(amp_optimizer optimizer) {
#define AMP_X(name, kind, decoupled, beta2) static const ampi_optimizer of_##name = {kind, decoupled, beta2};
    AMP_OPTIMIZER_LIST(AMP_X)
#undef AMP_X
    switch (optimizer) {
#define AMP_X(name, kind, decoupled, beta2) \
case name: return of_##name;
        AMP_OPTIMIZER_LIST(AMP_X)
#undef AMP_X
    case AMP_OPTIMIZER_COUNT: break;
    }
    return of_AMP_ADAMW;
}

/* checks one group's hyper-parameters and fills in their defaults; name: "desc" or "desc.groups[0]" ... */
static amp_status ampi_check_group(
    amp_ctx *ctx, const char *name, amp_optimizer optimizer, const amp_group *g, amp_hyper *h) {
    const float beta2 = ampi_optimizer_of(optimizer).beta2;
    memset(h, 0, sizeof *h);
    AMPI_TRY(ampi_rate(ctx, name, g, &h->lr));
    AMPI_TRY(ampi_optional(ctx, name, "beta1", &h->beta1, g->beta1, 0.9f));
    AMPI_TRY(ampi_optional(ctx, name, "beta2", &h->beta2, g->beta2, beta2));
    AMPI_TRY(ampi_optional(ctx, name, "eps", &h->eps, g->eps, 1e-8f));
    if (!ampi_nonzero(h->eps)) h->eps = AMPI_LEAST_EPS;
    h->weight_decay = g->weight_decay;
    h->momentum = g->momentum;
    h->dampening = g->dampening;
    h->lr_ptr = g->lr_ptr;
#define AMPI_RANGE(field, most, range) \
    AMPI_CHECK(ampi_in_range(h->field, 0.0f, most), "%s." #field " is %g; it must be " range, name, (double)h->field)
    AMPI_RANGE(lr, AMPI_MOST, "finite and >= 0");
    AMPI_RANGE(beta1, AMPI_ONE, "in [0, 1)");
    AMPI_RANGE(beta2, AMPI_ONE, "in [0, 1)");
    AMPI_RANGE(eps, AMPI_MOST, "finite and >= 0");
    AMPI_RANGE(weight_decay, AMPI_MOST, "finite and >= 0");
    AMPI_RANGE(momentum, AMPI_MOST, "finite and >= 0");
    AMPI_RANGE(dampening, 1.0f, "in [0, 1]");
#undef AMPI_RANGE
    return AMP_OK;
}

/* A step desc that was checked, and all its groups with their defaults filled in. */
typedef struct ampi_step_args {
    const amp_step_desc *d;
    amp_hyper group[AMP_GROUPS];
} ampi_step_args;

static amp_group ampi_group_of(const amp_step_desc *d, uint32_t i) {
    amp_group g = AMP_ZERO;
    if (i > 0 && i <= d->n_groups) return d->groups[i - 1];
    g.lr = d->lr;
    g.beta1 = d->beta1;
    g.beta2 = d->beta2;
    g.eps = d->eps;
    g.weight_decay = d->weight_decay;
    g.momentum = d->momentum;
    g.dampening = d->dampening;
    g.lr_ptr = d->lr_ptr;
    return g;
}
static amp_status ampi_check_groups(amp_ctx *ctx, const amp_params *p, ampi_step_args *a) {
    const amp_step_desc *d = a->d;
    uint32_t i;
    AMPI_CHECK(d->n_groups < AMP_GROUPS, "desc.n_groups is %u; at most %d", (unsigned)d->n_groups, AMP_GROUPS - 1);
    AMPI_CHECK(!d->n_groups || d->groups, "desc.groups is NULL");
    for (i = 0; i < AMP_GROUPS; i++) {
        amp_group g = ampi_group_of(d, i);
        amp_hyper *h = &a->group[i];
        int needed;
        char name[24] = "desc";
        if (i > 0 && i <= d->n_groups) snprintf(name, sizeof name, "desc.groups[%u]", (unsigned)i - 1);
        AMPI_TRY(ampi_check_group(ctx, name, d->optimizer, &g, h));
        AMPI_CHECK(!d->nesterov || (h->momentum > 0.0f && !ampi_nonzero(h->dampening)),
            "%s.nesterov needs momentum > 0 and dampening 0", name);
        needed = amp_moments_of(ampi_optimizer_of(d->optimizer).kind, h->momentum);
        AMPI_CHECK(needed <= p->desc.moments,
            "desc.optimizer needs %d moment arrays, but the set keeps %d (amp_params_desc.moments)", needed,
            (int)p->desc.moments);
    }
    return AMP_OK;
}
static amp_status ampi_check_clip(amp_ctx *ctx, const char *name, float x) {
    AMPI_CHECK(ampi_in_range(x, 0.0f, AMPI_MOST), "%s is %g; it must be finite and >= 0", name, (double)x);
    return AMP_OK;
}

static amp_status ampi_check_step(amp_ctx *ctx, const amp_params *p, const amp_step_desc *d, ampi_step_args *a) {
    AMPI_CHECK_DESC(d);
    a->d = d;
    AMPI_CHECK(AMPI_BELOW(d->optimizer, AMP_OPTIMIZER_COUNT), "desc.optimizer is %d", (int)d->optimizer);
    AMPI_TRY(ampi_check_clip(ctx, "desc.clip_norm", d->clip_norm));
    AMPI_TRY(ampi_check_clip(ctx, "desc.clip_value", d->clip_value));
    AMPI_TRY(ampi_check_groups(ctx, p, a));
    AMPI_CHECK(!d->stochastic || (p->desc.master != AMP_MASTER_SPLIT && p->desc.master != AMP_MASTER_KAHAN),
        "desc.stochastic is 1, but the set's layout needs model copies rounded to nearest");
    return AMP_OK;
}

static amp_inspect_job ampi_inspect_of(amp_params *p, const amp_scaler *s, ampi_takes takes, amp_purpose purpose) {
    amp_scaler_state *state = ampi_is_on(s) ? s->state : NULL;
    int aside = purpose == AMP_FOR_NORM; /* asked by hand: leaves the step's record and the scaler alone */
    amp_inspect_job job = AMP_ZERO;
    job.sum.table = p->table;
    job.sum.scale = takes == AMPI_SCALED ? state : NULL;
    job.sum.divide = 1;
    job.sum.accum = takes == AMPI_SUMS;
    job.sum.write = purpose == AMP_FOR_UNSCALE;
    job.record = aside ? p->probe : p->record;
    job.mirror = aside ? NULL : p->mirror;
    job.scaler = aside ? NULL : state;
    job.purpose = purpose;
    job.fresh = aside || takes != AMPI_PLAIN;
    job.summed = aside || (job.fresh && state);
    return job;
}

static amp_inspect_job ampi_step_inspection(
    amp_params *p, const amp_scaler *s, const ampi_step_args *a, ampi_takes takes, int next) {
    const amp_step_desc *d = a->d;
    amp_inspect_job job = ampi_inspect_of(p, s, takes, AMP_FOR_STEP);
    if (d->unscaled) job.sum.scale = NULL;
    if (d->micro_batches)
        job.sum.divide = d->micro_batches;
    else if (takes == AMPI_SUMS)
        job.sum.window = p->record;
    job.clip_norm = d->clip_norm;
    if (ampi_nonzero(d->clip_norm)) job.summed = 1;
    job.next_scale = next != 0;
    job.stochastic = d->stochastic != 0;
    job.seed = d->seed;
    memcpy(job.group, a->group, sizeof job.group);
    return job;
}

/* amp_step and its halves: amp_update without the next scale, amp_inspect without the update, too. */
typedef struct ampi_step_call {
    ampi_verb verb;
    int update, next;
    const char *returned; /* what is said when the context is taken after a hook */
    int lost;             /* 1: by a different thread, which has the door now: the step ends there */
    char said;            /* first character of the last failure's sentence, while a hook runs */
} ampi_step_call;

/* A hook may call verbs of this context, so it is not in use while one runs. Who fails without a sentence gets one; if
   all goes well, the last failure's stays. */
static amp_status ampi_before_hook(amp_ctx *ctx, ampi_step_call *call) {
    call->said = ctx->error[0];
    ctx->error[0] = 0;
    return amp_verb_end(ctx, AMP_OK);
}
static amp_status ampi_after_hook(amp_ctx *ctx, ampi_step_call *call, const char *hook, amp_status st) {
    call->lost = amp_verb_begin(ctx, call->returned) != AMP_OK;
    if (call->lost) return AMP_ERR_BUSY;
    if (ctx->error[0]) return st;
    ctx->error[0] = call->said;
    return st == AMP_OK ? st : amp_fail(ctx, st, "desc.%s returned %d", hook, (int)st);
}
static amp_status ampi_reduce_grads(amp_ctx *ctx, amp_params *p, const amp_step_desc *d, ampi_step_call *call) {
    amp_status st = ampi_before_hook(ctx, call);
    if (st == AMP_OK) st = d->reduce_grads_fn(ctx, p, d->user);
    return ampi_after_hook(ctx, call, "reduce_grads_fn", st);
}
static amp_status ampi_reduce_totals(amp_ctx *ctx, amp_totals *t, const amp_step_desc *d, ampi_step_call *call) {
    amp_status st = ampi_before_hook(ctx, call);
    if (st == AMP_OK) st = d->reduce_totals_fn(ctx, t, d->user);
    return ampi_after_hook(ctx, call, "reduce_totals_fn", st);
}
static amp_status ampi_run_inspection(
    amp_ctx *ctx, const amp_inspect_job *job, const amp_step_desc *d, ampi_step_call *call) {
    if (!job->summed) return (ctx->b->conclude)(ctx, job);
    if (!d->reduce_totals_fn) return (ctx->b->inspect)(ctx, job);
    AMPI_TRY((ctx->b->sum_gradients)(ctx, &job->sum));
    AMPI_TRY(ampi_reduce_totals(ctx, job->sum.table.totals, d, call));
    return (ctx->b->conclude)(ctx, job);
}
static amp_status ampi_run_update(amp_ctx *ctx, const amp_params *p, const ampi_step_args *a, ampi_takes takes) {
    const ampi_optimizer optimizer = ampi_optimizer_of(a->d->optimizer);
    amp_update_job job = AMP_ZERO;
    job.table = p->table;
    job.record = p->record;
    job.mirror = p->mirror;
    job.kind = optimizer.kind;
    job.decoupled = optimizer.decoupled;
    job.nesterov = a->d->nesterov;
    job.clip_value = a->d->clip_value;
    job.accum = takes == AMPI_SUMS;
    job.moment = p->desc.moment;
    job.pairs = ampi_has_low(p->desc.master) ? 1u : 0u;
    job.count = p->count;
    memcpy(job.group, a->group, sizeof job.group);
    return (ctx->b->update)(ctx, &job);
}
/* The counts of a step begin at 0, also if it is skipped; those of one that does not count stay. */
static amp_status ampi_begin_counts(amp_ctx *ctx, amp_params *p, const amp_step_desc *d) {
    p->count = d->count_lost;
    if (!p->count) return AMP_OK;
    p->drawn = d->stochastic != 0;
    return (ctx->b->zero)(ctx, p->table.counts, p->n * sizeof *p->table.counts);
}

static amp_status ampi_step(amp_params *p, amp_scaler *s, const amp_step_desc *d, ampi_step_call *call) {
    amp_ctx *ctx = p->ctx;
    const ampi_rule *rule;
    ampi_step_args a;
    amp_inspect_job job;
    int next;
    AMPI_TRY(ampi_check_pair(ctx, p, s));
    AMPI_TRY(ampi_check_step(ctx, p, d, &a));
    rule = ampi_rule_of(p, s, call->verb);
    AMPI_TRY(ampi_check_phase(ctx, p, s, rule));
    AMPI_STAGE(!s || !call->next || !ampi_held(s, p), "the accumulation window of a different set holds the scale");
    /* after amp_accumulate the scaler may be up to date already */
    next = call->next && ampi_is_on(s) && (rule->takes != AMPI_SUMS || s->checked);
    AMPI_STAGE(!d->reduce_grads_fn || rule->takes == AMPI_SCALED,
        "desc.reduce_grads_fn sums scaled gradients, and these were unscaled or accumulated: sum them before that");
    AMPI_STAGE(!d->reduce_totals_fn || !ampi_is_on(s) || rule->takes == AMPI_SCALED,
        "desc.reduce_totals_fn adds up what a check finds, and these were checked on each rank when they were unscaled "
        "or accumulated: ranks would decide differently");
    if (d->reduce_grads_fn) AMPI_TRY(ampi_reduce_grads(ctx, p, d, call));
    job = ampi_step_inspection(p, s, &a, rule->takes, next);
    AMPI_TRY(ampi_run_inspection(ctx, &job, d, call));
    AMPI_TRY(ampi_begin_counts(ctx, p, d));
    if (call->update) {
        AMPI_TRY(ampi_run_update(ctx, p, &a, rule->takes));
        ampi_weights_changed(ctx, p);
    }
    if (d->stochastic) p->stochastic = 1;
    p->holds = 0;
    ampi_enter_phase(p, s, rule->next);
    if (ampi_is_on(s) && rule->takes != AMPI_SUMS) s->checked = 1;
    p->late = ampi_is_on(s) && !s->checked;
    if (next) ampi_next_iteration(s);
    return AMP_OK;
}

/* AMP_VERB, but that a hook may have cost it the context */
static amp_status ampi_step_verb(
    const char *verb, const char *returned, amp_params *p, amp_scaler *s, const amp_step_desc *d, ampi_step_call call) {
    amp_status st = amp_verb_begin(AMPI_CTX(p), verb);
    if (st != AMP_OK) return st;
    call.returned = returned;
    st = ampi_step(p, s, d, &call);
    return call.lost ? st : amp_verb_end(p->ctx, st);
}
#define AMPI_STEP_BUSY(name) name AMPI_BUSY, name ": its hook has returned" AMPI_BUSY
AMP_API amp_status amp_step(amp_params *p, amp_scaler *s, const amp_step_desc *desc) {
    const ampi_step_call call = {AMPI_DO_STEP, 1, 1, NULL, 0, 0};
    return ampi_step_verb(AMPI_STEP_BUSY("amp_step"), p, s, desc, call);
}
AMP_API amp_status amp_update(amp_params *p, amp_scaler *s, const amp_step_desc *desc) {
    const ampi_step_call call = {AMPI_DO_STEP, 1, 0, NULL, 0, 0};
    return ampi_step_verb(AMPI_STEP_BUSY("amp_update"), p, s, desc, call);
}
AMP_API amp_status amp_inspect(amp_params *p, amp_scaler *s, const amp_step_desc *desc) {
    const ampi_step_call call = {AMPI_DO_INSPECT, 0, 0, NULL, 0, 0};
    return ampi_step_verb(AMPI_STEP_BUSY("amp_inspect"), p, s, desc, call);
}

/* An update may be the gradients or the sums of a window, but no part of what it changes. */
static amp_status ampi_check_update(amp_ctx *ctx, const amp_param_entry *e, amp_array u) {
    const size_t n = (size_t)e->count;
    const amp_array model = ampi_entry_array(e->model, e->model_dtype, e->count);
    const amp_array sums = ampi_entry_array(u.data == e->accum ? NULL : e->accum, AMP_F32, e->count);
    const ampi_extent r[5] = {
        ampi_extent_of("u", u, n, 1, 0),
        ampi_extent_of("the parameter's master", ampi_entry_master(e), n, 0, 1),
        ampi_extent_of("the parameter's model copy", model, n, 0, 1),
        ampi_extent_of("the parameter's low part", ampi_entry_low(e), n, 0, 1),
        ampi_extent_of("the parameter's accumulators", sums, n, 0, 1),
    };
    return ampi_check_extents(ctx, r, 5);
}
static amp_status ampi_do_apply(amp_params *p, size_t i, amp_array u, uint32_t with_rates) {
    amp_ctx *ctx = p->ctx;
    const ampi_rule *rule;
    amp_apply_job job = AMP_ZERO;
    AMPI_TRY(ampi_check_params(ctx, p));
    AMPI_CHECK(i < p->n, "i is %llu, but the set has %llu parameters", AMPI_ULL(i), AMPI_ULL(p->n));
    AMPI_TRY(ampi_check_array(ctx, "u", u, (size_t)p->entries[i].count, 1));
    AMPI_CHECK(u.dtype == AMP_F32, "u.dtype is %s; f32 is needed", amp_dtype_name(u.dtype));
    AMPI_CHECK((uintptr_t)u.data % sizeof(float) == 0, "u.data is not aligned to the %d bytes of its elements",
        (int)sizeof(float));
    AMPI_TRY(ampi_check_update(ctx, &p->entries[i], u));
    AMPI_STAGE(!ampi_param_at(p, i)->unused, "amp_params_use has left parameter %llu out", AMPI_ULL(i));
    rule = &ampi_rules[p->phase][AMPI_DO_APPLY];
    AMPI_TRY(ampi_check_phase(ctx, p, NULL, rule));
    job.table = p->table;
    job.record = p->record;
    job.mirror = p->mirror;
    job.u = (const float *)u.data;
    job.param = (uint32_t)i;
    job.with_rates = with_rates != 0;
    job.accum = rule->takes == AMPI_SUMS;
    job.count = p->count;
    AMPI_TRY((ctx->b->apply)(ctx, &job));
    ampi_weights_changed(ctx, p);
    return AMP_OK;
}
AMP_API amp_status amp_apply(amp_params *p, size_t i, amp_array u, uint32_t with_rates) {
    AMPI_VERB_OF(p, apply, (p, i, u, with_rates));
}

static amp_status ampi_do_accumulate(amp_params *p, amp_scaler *s, uint32_t keep_going) {
    amp_ctx *ctx = p->ctx;
    const ampi_rule *rule;
    amp_inspect_job job;
    amp_add_job add = AMP_ZERO;
    AMPI_TRY(ampi_check_pair(ctx, p, s));
    AMPI_CHECK(p->desc.accumulate, "the set has no accumulators (amp_params_desc.accumulate)");
    rule = ampi_rule_of(p, s, AMPI_DO_ACCUMULATE);
    AMPI_TRY(ampi_check_phase(ctx, p, s, rule));
    job = ampi_inspect_of(p, s, rule->takes, AMP_FOR_ACCUMULATE);
    job.keep_going = keep_going != 0;
    AMPI_TRY(job.summed ? (ctx->b->inspect)(ctx, &job) : (ctx->b->conclude)(ctx, &job));
    add.table = p->table;
    add.record = p->record;
    ampi_wrote_grads(p);
    AMPI_TRY((ctx->b->add)(ctx, &add));
    ampi_enter_phase(p, s, rule->next);
    if (ampi_is_on(s)) s->checked = 1;
    return AMP_OK;
}
AMP_API amp_status amp_accumulate(amp_params *p, amp_scaler *s, uint32_t keep_going) {
    AMPI_VERB_OF(p, accumulate, (p, s, keep_going));
}
static amp_status ampi_do_window_begin(amp_params *p, amp_scaler *s) {
    amp_ctx *ctx = p->ctx;
    AMPI_TRY(ampi_check_pair(ctx, p, s));
    AMPI_STAGE(!p->holds, "the set has an open window");
    if (ampi_is_on(s))
        ampi_tie(p, s);
    else
        ampi_untie(p);
    p->holds = 1;
    return AMP_OK;
}
AMP_API amp_status amp_window_begin(amp_params *p, amp_scaler *s) { AMPI_VERB_OF(p, window_begin, (p, s)); }
static amp_status ampi_do_window_end(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    AMPI_TRY(ampi_check_params(ctx, p));
    p->holds = 0;
    return AMP_OK;
}
AMP_API amp_status amp_window_end(amp_params *p) { AMPI_VERB_OF(p, window_end, (p)); }

static amp_status ampi_do_scaler_unscale(amp_scaler *s, amp_params *p) {
    amp_ctx *ctx = p ? p->ctx : AMPI_CTX(s);
    const ampi_rule *rule;
    amp_inspect_job job;
    AMPI_TRY(ampi_check_pair(ctx, p, s));
    if (!ampi_is_on(s)) return AMP_OK;
    rule = ampi_rule_of(p, s, AMPI_DO_UNSCALE);
    AMPI_TRY(ampi_check_phase(ctx, p, s, rule));
    job = ampi_inspect_of(p, s, rule->takes, AMP_FOR_UNSCALE);
    ampi_wrote_grads(p);
    AMPI_TRY((ctx->b->inspect)(ctx, &job));
    ampi_enter_phase(p, s, rule->next);
    s->checked = 1;
    return AMP_OK;
}
AMP_API amp_status amp_scaler_unscale(amp_scaler *s, amp_params *p) {
    AMPI_VERB(p ? p->ctx : AMPI_CTX(s), scaler_unscale, (s, p));
}

/* norm of the gradients, and the coefficient of clipping to max_norm (0: none), into the probe record */
static amp_status ampi_probe(amp_ctx *ctx, amp_params *p, const amp_scaler *s, float max_norm) {
    amp_inspect_job job = ampi_inspect_of(p, s, ampi_rule_of(p, s, AMPI_DO_MEASURE)->takes, AMP_FOR_NORM);
    job.clip_norm = max_norm;
    return (ctx->b->inspect)(ctx, &job);
}
static amp_status ampi_do_grad_norm(amp_params *p, amp_scaler *s, double *norm) {
    amp_ctx *ctx = p->ctx;
    amp_step_record r;
    AMPI_TRY(ampi_check_pair(ctx, p, s));
    AMPI_CHECK(norm, "norm is NULL");
    AMPI_TRY((ctx->b->may_wait)(ctx));
    AMPI_TRY(ampi_probe(ctx, p, s, 0.0f));
    AMPI_TRY((ctx->b->copy)(ctx, &r, p->probe, sizeof r));
    *norm = r.norm;
    return AMP_OK;
}
AMP_API amp_status amp_grad_norm(amp_params *p, amp_scaler *s, double *norm) {
    AMPI_VERB_OF(p, grad_norm, (p, s, norm));
}
static amp_status ampi_do_clip(amp_params *p, amp_scaler *s, float max_norm, float max_value) {
    amp_ctx *ctx = p->ctx;
    ampi_takes takes;
    amp_clip_job job = AMP_ZERO;
    AMPI_TRY(ampi_check_pair(ctx, p, s));
    AMPI_TRY(ampi_check_clip(ctx, "max_norm", max_norm));
    AMPI_TRY(ampi_check_clip(ctx, "max_value", max_value));
    AMPI_CHECK(
        ampi_nonzero(max_norm) || ampi_nonzero(max_value), "max_norm and max_value are 0: one of them must be > 0");
    takes = ampi_rule_of(p, s, AMPI_DO_MEASURE)->takes;
    job.table = p->table;
    job.limit = max_value;
    job.accum = takes == AMPI_SUMS;
    job.scaler = takes == AMPI_SCALED && ampi_is_on(s) ? s->state : NULL;
    if (ampi_nonzero(max_norm)) {
        AMPI_TRY(ampi_probe(ctx, p, s, max_norm));
        job.record = p->probe;
    }
    ampi_wrote_grads(p);
    return (ctx->b->clip)(ctx, &job);
}
AMP_API amp_status amp_clip(amp_params *p, amp_scaler *s, float max_norm, float max_value) {
    AMPI_VERB_OF(p, clip, (p, s, max_norm, max_value));
}
static amp_status ampi_do_step_poll(amp_params *p, amp_step_record *out) {
    amp_ctx *ctx = p->ctx;
    AMPI_TRY(ampi_check_params(ctx, p));
    AMPI_CHECK(out, "out is NULL");
    if (!ctx->b->poll) return (ctx->b->copy)(ctx, out, p->record, sizeof *out);
    return (ctx->b->poll)(ctx, p->record, p->mirror, out);
}
AMP_API amp_status amp_step_poll(amp_params *p, amp_step_record *out) { AMPI_VERB_OF(p, step_poll, (p, out)); }

static int ampi_is_f8(amp_dtype t) { return amp_dtype_size(t) == 1u; }

/* ==== >>front-report =============================================================================================
   What precision does to a run.   tests: tests/test_report.c */

static double ampi_share(uint64_t part, uint64_t all) { return all ? (double)part / (double)all : 0.0; }

/* What follows from the values of a row. */
static void ampi_report_values(amp_report_row *row) {
    amp_dtype t;
    int32_t e;
    row->low = 1;
    row->high = 0;
    for (e = 0; e < 255; e++) {
        if (!row->values.pow2[e]) continue;
        if (row->low > row->high) row->low = e - 127;
        row->high = e - 127;
    }
    for (t = AMP_F32; t < AMP_DTYPE_COUNT; t = (amp_dtype)(t + 1))
        row->fate[t] = amp_histogram_fates(&row->values, t, 1.0f);
}

#define AMPI_ADVISE(row, ...) snprintf((row)->advice, sizeof(row)->advice, __VA_ARGS__)
/* Each gives the advice if it has one: then 1. */
static int ampi_advise_not_finite(amp_report_row *row) {
    const amp_histogram *h = &row->values;
    if (h->nan)
        AMPI_ADVISE(row, "%llu of %llu values are NaN: amp_watch_array finds where they come from", AMPI_ULL(h->nan),
            AMPI_ULL(h->total));
    else if (h->inf)
        AMPI_ADVISE(row, "%llu of %llu values are Inf: a lower loss scale, or amp_watch_array finds the layer",
            AMPI_ULL(h->inf), AMPI_ULL(h->total));
    return h->nan || h->inf;
}
#define AMPI_MANY_LOST 0.5 /* of updates */
static int ampi_advise_lost(amp_report_row *row, const amp_params *p, amp_master layout, amp_dtype model) {
    double lost = ampi_share(row->lost, row->updates);
    const char *name = amp_dtype_name(layout == AMP_MASTER_NONE ? model : AMP_F32);
    if (lost < AMPI_MANY_LOST || p->drawn) return 0;
    if (layout == AMP_MASTER_NONE)
        AMPI_ADVISE(row, "%.3g %% of updates are lost in %s weights: keep masters, or round stochastically",
            100.0 * lost, name);
    else if (layout == AMP_MASTER_SPLIT8)
        AMPI_ADVISE(row, "%.3g %% of updates are lost in 24-bit weights: round stochastically, or AMP_MASTER_SPLIT",
            100.0 * lost);
    else
        AMPI_ADVISE(row, "%.3g %% of updates are below what the masters hold: raise the learning rate", 100.0 * lost);
    return 1;
}
#define AMPI_MANY_SUBNORMAL 10.0 /* percent of the values that are not 0 */
static int ampi_advise_small(amp_report_row *row, amp_dtype t, int is_gradient) {
    double by = (double)amp_histogram_suggest_scale(&row->values);
    double subnormal = 0.0;
    int narrow = t == AMP_F16 || ampi_is_f8(t);
    if (narrow) subnormal = 100.0 * row->fate[t].subnormal; /* an array that is not there may have any dtype */
    if (row->values.total && row->values.zero == row->values.total) {
        AMPI_ADVISE(row,
            is_gradient && narrow ? "every value is 0: raise the loss scale, or is the layer cut off?"
                                  : "every value is 0: is the layer cut off?");
        return 1;
    }
    if (subnormal < AMPI_MANY_SUBNORMAL) return 0;
    if (is_gradient && t == AMP_F16 && by > 1.0)
        AMPI_ADVISE(row, "%.0f %% of the nonzero values are subnormal in f16: a loss scale %.0f times as large fits",
            subnormal, by);
    else
        AMPI_ADVISE(row, "%.0f %% of the nonzero values are subnormal in %s: use a wider format, or a scale", subnormal,
            amp_dtype_name(t));
    return 1;
}
/* Of 8-bit first moments, those that are 0 where gradients are not. */
#define AMPI_MANY_FALLEN 0.5
static amp_status ampi_advise_moments(amp_ctx *ctx, const amp_param_entry *e, amp_report_row *row) {
    const amp_array codes = ampi_entry_zeros(e, 0);
    amp_histogram h = AMP_ZERO;
    double fallen;
    if (row->advice[0] || !codes.data || e->moment_dtype != AMP_MOMENT_8BIT) return AMP_OK;
    AMPI_TRY((ctx->b->histogram)(ctx, &codes, 1, &h));
    fallen = ampi_share(h.zero, h.total) - ampi_share(row->values.zero, row->values.total);
    if (h.zero < h.total && fallen >= AMPI_MANY_FALLEN)
        AMPI_ADVISE(row,
            "%.0f %% of 8-bit first moments fell to 0 beside the largest of their blocks: try bf16 moments",
            100.0 * fallen);
    return AMP_OK;
}

static amp_status ampi_report_param(amp_ctx *ctx, const amp_params *p, size_t i, amp_report_row *row) {
    const amp_param_entry *e = &p->entries[i];
    const amp_array grad = ampi_entry_grad(e);
    amp_update_count c;
    row->name = ampi_param_at(p, i)->name;
    if (!ampi_param_at(p, i)->unused) AMPI_TRY((ctx->b->histogram)(ctx, &grad, 1, &row->values));
    AMPI_TRY((ctx->b->copy)(ctx, &c, &p->table.counts[i], sizeof c));
    row->updates = c.updates;
    row->lost = c.lost;
    row->ratio = ampi_float(c.ratio);
    ampi_report_values(row);
    if (ampi_advise_not_finite(row) || ampi_advise_lost(row, p, e->layout, e->model_dtype)) return AMP_OK;
    (void)ampi_advise_small(row, grad.dtype, 1);
    return ampi_advise_moments(ctx, e, row);
}
static amp_status ampi_report_array(amp_ctx *ctx, amp_array a, const char *name, amp_report_row *row) {
    row->name = name ? name : "array";
    if (a.data) AMPI_TRY((ctx->b->histogram)(ctx, &a, 1, &row->values));
    ampi_report_values(row);
    if (!ampi_advise_not_finite(row)) (void)ampi_advise_small(row, a.dtype, 0);
    return AMP_OK;
}
/* All parameters: the sums of their rows, and what concerns the run. */
static void ampi_report_all(const amp_params *p, amp_report_row *rows, const amp_scaler_info *s) {
    size_t i;
    rows->name = "all parameters";
    for (i = 1; i <= p->n; i++) {
        amp_histogram_add(&rows->values, &rows[i].values);
        rows->updates += rows[i].updates;
        rows->lost += rows[i].lost;
        if (rows->ratio < rows[i].ratio) rows->ratio = rows[i].ratio;
    }
    ampi_report_values(rows);
    if (s->dead)
        AMPI_ADVISE(rows, "the loss scale is dead at %g: %llu overflows in a row; find the layer (amp_watch_array)",
            (double)s->scale, AMPI_ULL(s->bad_in_a_row));
    else if (!ampi_advise_not_finite(rows))
        (void)ampi_advise_lost(rows, p, p->desc.master, p->desc.model);
}
static amp_status ampi_report_rows(const amp_params *p, amp_report_row *rows, const amp_array *arrays,
    const char *const *names, size_t n, const amp_scaler_info *s) {
    size_t i;
    memset(rows, 0, (1 + p->n + n) * sizeof *rows);
    for (i = 0; i < p->n; i++)
        AMPI_TRY(ampi_report_param(p->ctx, p, i, &rows[1 + i]));
    for (i = 0; i < n; i++)
        AMPI_TRY(ampi_report_array(p->ctx, arrays[i], names[i], &rows[1 + p->n + i]));
    ampi_report_all(p, rows, s);
    return AMP_OK;
}
static amp_status ampi_do_report(amp_params *p, amp_scaler *s, amp_report_row *rows, size_t cap,
    const amp_array *arrays, const char *const *names, size_t n) {
    amp_ctx *ctx = p->ctx;
    amp_scaler_info info = AMP_ZERO;
    AMPI_TRY(ampi_check_pair(ctx, p, s));
    AMPI_CHECK(rows, "rows is NULL");
    AMPI_CHECK(n < (size_t)-1 / 2 && cap >= 1 + p->n + n, "cap is %llu, but there are 1 + %llu + %llu rows",
        AMPI_ULL(cap), AMPI_ULL(p->n), AMPI_ULL(n));
    AMPI_TRY(ampi_check_list(ctx, "arrays", arrays, n, 0));
    AMPI_CHECK(!n || names, "names is NULL");
    AMPI_HAS(histogram);
    AMPI_TRY((ctx->b->may_wait)(ctx));
    if (s) AMPI_TRY(ampi_do_scaler_get(s, &info));
    return ampi_report_rows(p, rows, arrays, names, n, &info);
}
AMP_API amp_status amp_report(amp_params *p, amp_scaler *s, amp_report_row *rows, size_t cap, const amp_array *arrays,
    const char *const *names, size_t n) {
    AMPI_VERB_OF(p, report, (p, s, rows, cap, arrays, names, n));
}

/* Text that goes on where the last piece ended; what has no room is counted, not written. */
typedef struct ampi_text {
    char *to;
    size_t bytes, length;
} ampi_text;
#if defined(__GNUC__) || defined(__clang__)
__attribute__((__format__(__printf__, 2, 3)))
#endif
static void ampi_add_text(ampi_text *t, const char *format, ...) {
    size_t room = t->length < t->bytes ? t->bytes - t->length : 0;
    va_list va;
    int n;
    va_start(va, format);
    n = vsnprintf(room ? t->to + t->length : NULL, room, format, va);
    va_end(va);
    if (n > 0) t->length += (size_t)n;
}
static void ampi_report_line(ampi_text *text, const amp_report_row *row) {
    const amp_histogram *h = &row->values;
    uint64_t bad = h->inf + h->nan, nonzero = h->total - h->zero - bad;
    size_t k;
    ampi_add_text(text, "%-20.20s %10llu %5.1f ", row->name ? row->name : "", AMPI_ULL(h->total),
        100.0 * ampi_share(bad, h->total));
    if (row->low > row->high)
        ampi_add_text(text, "%10s", "-");
    else
        ampi_add_text(text, "%4d..%4d", (int)row->low, (int)row->high);
    for (k = AMP_F16; k < AMP_DTYPE_COUNT; k++) {
        amp_fates f = row->fate[k];
        double share = 100.0 * ampi_share(nonzero, h->total), zero = 100.0 * ampi_share(h->zero, h->total);
        ampi_add_text(text, " |%4.0f%4.0f%4.0f", zero + share * f.lost, share * f.subnormal, share * f.overflow);
    }
    if (row->updates)
        ampi_add_text(text, " |%5.1f %8.2g\n", 100.0 * ampi_share(row->lost, row->updates), (double)row->ratio);
    else
        ampi_add_text(text, " |%5s %8s\n", "-", "-");
}
AMP_API size_t amp_report_text(char *text, size_t bytes, const amp_report_row *rows, size_t n) {
    ampi_text t = {text, text ? bytes : 0, 0};
    size_t i;
    if (t.bytes) text[0] = 0;
    if (!rows) return 0;
    ampi_add_text(&t, "%-20s %10s %5s %10s", "percent of values", "values", "bad", "2^");
    for (i = AMP_F16; i < AMP_DTYPE_COUNT; i++)
        ampi_add_text(&t, " |%12s", amp_dtype_name((amp_dtype)i));
    ampi_add_text(&t, " |%5s %8s\n%-48s", "lost", "ratio", "");
    for (i = AMP_F16; i < AMP_DTYPE_COUNT; i++)
        ampi_add_text(&t, " |zero sub big");
    ampi_add_text(&t, " |\n");
    for (i = 0; i < n; i++)
        ampi_report_line(&t, &rows[i]);
    for (i = 0; i < n; i++) {
        const char *name = rows[i].name ? rows[i].name : "";
        if (rows[i].advice[0]) ampi_add_text(&t, "%s: %s\n", name, rows[i].advice);
    }
    return t.length;
}

static amp_status ampi_do_watch_array(amp_ctx *ctx, amp_watch *w, const char *name, amp_array a) {
    if (w->where) return AMP_OK;
    AMPI_CHECK(name, "name is NULL");
    AMPI_CHECK(!a.data || a.count, "a.count is 0");
    AMPI_TRY(ampi_do_all_finite(ctx, &w->found, &a, 1));
    w->seen++;
    if (w->found.nan + w->found.inf == 0) return AMP_OK;
    w->where = name;
    return AMP_OK;
}
AMP_API amp_status amp_watch_array(amp_ctx *ctx, amp_watch *w, const char *name, amp_array a) {
    if (!w || !w->on) return AMP_OK;
    AMPI_VERB(ctx, watch_array, (ctx, w, name, a));
}

/* ==== >>front-policy =============================================================================================
   Levels, their overrides, the autocast scope.   tests: tests/test_policy.c */

AMP_API const char *amp_preset_name(amp_preset preset) {
    static const char names[AMP_PRESET_COUNT][16] = {
#define AMP_X(name, text) text,
        AMP_PRESET_LIST(AMP_X)
#undef AMP_X
    };
    return AMPI_BELOW(preset, AMP_PRESET_COUNT) ? names[preset] : "unknown preset";
}

AMP_API amp_status amp_preset_find(amp_preset *preset, amp_dtype *low, const char *name) {
    static const struct {
        char suffix[8];
        amp_dtype low;
    } variants[] = {{"", AMP_AUTO}, {"-bf16", AMP_BF16}, {"-f16", AMP_F16}};
    size_t i, k;
    if (!name || !preset) return AMP_ERR_INVALID_ARG;
    for (i = 0; i < AMP_PRESET_COUNT; i++) {
        const char *level = amp_preset_name((amp_preset)i);
        size_t n = strlen(level);
        if (strncmp(name, level, n) != 0) continue;
        for (k = 0; k < (low ? 3u : 1u); k++) {
            if (strcmp(name + n, variants[k].suffix) != 0) continue;
            *preset = (amp_preset)i;
            if (low) *low = variants[k].low;
            return AMP_OK;
        }
    }
    return AMP_ERR_INVALID_ARG;
}

/* ---- levels ---- */

enum { AMPI_OURS = 1, AMPI_APEX = 2, AMPI_PYTORCH = 4, AMPI_MINDSPORE = 8, AMPI_ALL = 15 }; /* families of levels */
enum { AMPI_KEEP, AMPI_TO_F32, AMPI_TO_LOW };                                               /* of the model */
typedef struct ampi_level { uint8_t family, lists, autocast, model, norms, masters, results, dynamic; } ampi_level;
/* clang-format off */
static const ampi_level ampi_levels[AMP_PRESET_COUNT] = { /* as in amp_policy */
    {AMPI_OURS,      AMP_SYSTEM_AMP,            1, AMPI_KEEP,   0, 1, 0, 1},
    {AMPI_APEX,      AMP_SYSTEM_APEX,           0, AMPI_TO_F32, 0, 0, 0, 0}, /* O0 */
    {AMPI_APEX,      AMP_SYSTEM_APEX,           1, AMPI_KEEP,   0, 0, 0, 1},
    {AMPI_APEX,      AMP_SYSTEM_APEX,           0, AMPI_TO_LOW, 1, 1, 0, 1},
    {AMPI_APEX,      AMP_SYSTEM_APEX,           0, AMPI_TO_LOW, 0, 0, 0, 0}, /* O3 */
    {AMPI_PYTORCH,   AMP_SYSTEM_PYTORCH_CUDA,   1, AMPI_KEEP,   0, 1, 0, 1},
    {AMPI_PYTORCH,   AMP_SYSTEM_PYTORCH_CPU,    1, AMPI_KEEP,   0, 1, 0, 1}, /* the scale: if FP16 is asked for */
    {AMPI_MINDSPORE, AMP_SYSTEM_MINDSPORE,      0, AMPI_KEEP,   0, 1, 0, 0}, /* O0 */
    {AMPI_MINDSPORE, AMP_SYSTEM_MINDSPORE,      1, AMPI_KEEP,   0, 1, 1, 0},
    {AMPI_MINDSPORE, AMP_SYSTEM_MINDSPORE,      0, AMPI_TO_LOW, 1, 1, 0, 1},
    {AMPI_MINDSPORE, AMP_SYSTEM_MINDSPORE,      0, AMPI_TO_LOW, 0, 1, 0, 0}, /* O3 */
    {AMPI_MINDSPORE, AMP_SYSTEM_MINDSPORE_AUTO, 1, AMPI_KEEP,   0, 1, 0, 0},
    {AMPI_OURS,      AMP_SYSTEM_AMP,            1, AMPI_KEEP,   0, 1, 0, 1}}; /* FP8; the scale: if FP16 is asked for */
/* clang-format on */
static uint32_t ampi_family(amp_preset p) { return ampi_levels[p].family; }
static int ampi_is_half(amp_dtype t) { return t == AMP_F16 || t == AMP_BF16; }
static int ampi_is_model_dtype(amp_dtype t) { return t == AMP_F32 || ampi_is_half(t); }

static void ampi_policy_dynamic(amp_policy *p, float scale) {
    p->scaling = AMP_SCALER_DYNAMIC;
    p->loss_scale = scale;
    p->growth_interval = 2000;
}
static amp_dtype ampi_policy_low(amp_preset preset, amp_dtype low) {
    if (low != AMP_AUTO) return low;
    return preset == AMP_PRESET_PYTORCH_CPU || preset == AMP_PRESET_FP8 ? AMP_BF16 : AMP_F16;
}
static void ampi_policy_level(amp_policy *p, amp_preset preset, amp_dtype low) {
    const ampi_level *l = &ampi_levels[preset];
    memset(p, 0, sizeof *p);
    p->preset = preset;
    p->lists = l->lists;
    p->enabled = 1;
    p->low = ampi_policy_low(preset, low);
    p->autocast = l->autocast;
    if (l->model == AMPI_TO_F32) p->cast_model = AMP_F32;
    if (l->model == AMPI_TO_LOW) p->cast_model = p->low;
    if (l->model != AMPI_KEEP) p->cast_outputs = AMP_F32;
    p->keep_norms = l->norms;
    p->master_weights = l->masters;
    p->results_f32 = l->results;
    p->scaling = AMP_SCALER_OFF;
    p->loss_scale = 1.0f;
    p->num_losses = 1;
    if (l->family == AMPI_APEX) p->max_scale = 16777216.0f;
    if (!l->dynamic) return;
    ampi_policy_dynamic(p, preset == AMP_PRESET_MINDSPORE_O2 ? 16777216.0f : 65536.0f);
    if (p->low == AMP_BF16) p->scaling = AMP_SCALER_OFF;
}
/* BF16 needs no dynamic loss scale; its number stays, so that F16 gets it back. */
static void ampi_policy_lower(amp_policy *p, amp_dtype low) {
    p->low = low;
    if (low == AMP_BF16 && p->scaling == AMP_SCALER_DYNAMIC)
        p->scaling = AMP_SCALER_OFF;
    else if (low == AMP_F16 && p->scaling == AMP_SCALER_OFF && p->loss_scale != 1.0f)
        p->scaling = AMP_SCALER_DYNAMIC;
}

/* ---- overrides: a property by name gets a value ---- */

/* clang-format off */
/* Our name, which is amp_policy_desc's, and theirs, what it takes, the families that have it, why others do not, why O1
   refuses it; in the order in which they are set. ampi_override_apply does it. */
#define AMPI_PROPERTY_LIST(X) \
    X(enabled,        "enabled",               SWITCH, AMPI_ALL, "", "") \
    X(cast_model,     "cast_model_type",       DTYPE,  AMPI_APEX | AMPI_MINDSPORE, \
        ": autocast leaves parameters in FP32", "inserts casts around operations: the model itself stays FP32") \
    X(autocast,       "patch_torch_functions", SWITCH, AMPI_APEX, "", "") \
    X(keep_norms,     "keep_batchnorm_fp32",   SWITCH, AMPI_APEX | AMPI_MINDSPORE, "", \
        "runs batch norm in FP32 anyway: the model is not cast") \
    X(master_weights, "master_weights",        SWITCH, AMPI_APEX, ": its parameters are FP32", \
        "has FP32 parameters: they are the masters") \
    X(cast_outputs,   "cast_model_outputs",    DTYPE,  AMPI_APEX | AMPI_MINDSPORE, "", "") \
    X(num_losses,     "num_losses",            NUMBER, AMPI_APEX | AMPI_OURS, "", "") \
    X(min_scale,      "min_loss_scale",        NUMBER, AMPI_ALL - AMPI_PYTORCH, "", "") \
    X(max_scale,      "max_loss_scale",        NUMBER, AMPI_ALL - AMPI_PYTORCH, "", "") \
    X(low,            "dtype",                 DTYPE,  AMPI_ALL, "", "") \
    X(loss_scale,     "loss_scale",            SCALE,  AMPI_ALL, "", "")
/* clang-format on */

typedef enum ampi_wants { AMPI_WANTS_SWITCH, AMPI_WANTS_DTYPE, AMPI_WANTS_NUMBER, AMPI_WANTS_SCALE } ampi_wants;
typedef struct ampi_override {
    amp_policy *p;
    const char *name; /* that the caller used, for sentences */
    double x;         /* a switch: 0 or 1; a dtype (AMP_AUTO: False); a number */
    int dynamic;      /* 1: of loss_scale */
} ampi_override;

static amp_status ampi_set_switch(const ampi_override *o, uint32_t *field) {
    *field = o->x != 0.0;
    return AMP_OK;
}
static amp_status ampi_set_autocast(amp_ctx *ctx, const ampi_override *o) {
    AMPI_CHECK(o->x == 0.0 || o->p->preset == AMP_O1, "%s = True comes with O1 only, not with %s", o->name,
        amp_preset_name(o->p->preset));
    return ampi_set_switch(o, &o->p->autocast);
}
static amp_status ampi_set_cast_model(amp_ctx *ctx, const ampi_override *o) { /* AMP_AUTO: no cast */
    amp_dtype t = (amp_dtype)o->x;
    AMPI_CHECK(
        t == AMP_AUTO || ampi_is_model_dtype(t), "%s is %s; f32, f16 or bf16 is needed", o->name, amp_dtype_name(t));
    o->p->cast_model = t;
    if (ampi_is_half(t)) ampi_policy_lower(o->p, t);
    if (t != AMP_AUTO && o->p->cast_outputs == AMP_AUTO) o->p->cast_outputs = AMP_F32;
    return AMP_OK;
}
static amp_status ampi_set_cast_outputs(amp_ctx *ctx, const ampi_override *o) {
    amp_dtype t = (amp_dtype)o->x;
    AMPI_CHECK(ampi_is_model_dtype(t), "%s is %s; f32, f16 or bf16 is needed", o->name, amp_dtype_name(t));
    o->p->cast_outputs = t;
    return AMP_OK;
}
static amp_status ampi_set_num_losses(amp_ctx *ctx, const ampi_override *o) {
    int whole = o->x >= 1.0 && o->x < 2147483647.0 && (double)(int32_t)o->x >= o->x;
    AMPI_CHECK(whole, "%s is %g; a whole number >= 1 is needed", o->name, o->x);
    o->p->num_losses = (uint32_t)o->x;
    return AMP_OK;
}
static amp_status ampi_set_scale(amp_ctx *ctx, const ampi_override *o, float *scale) {
    AMPI_CHECK(o->x > 0.0 && o->x <= 3.4e38 && amp_is_finite(ampi_inverse((float)o->x)),
        "%s is %g; a finite number > 0 with a finite reciprocal is needed", o->name, o->x);
    *scale = (float)o->x;
    return AMP_OK;
}
static amp_status ampi_set_low(amp_ctx *ctx, const ampi_override *o) {
    amp_policy *p = o->p;
    amp_dtype t = (amp_dtype)o->x;
    if (!ampi_is_half(t) && p->preset == AMP_PRESET_PYTORCH_CPU && AMPI_BELOW(t, AMP_DTYPE_COUNT)) {
        amp_log_event(ctx, AMP_LOG_WARNING, "pytorch-cpu supports bf16 and f16, not %s: disabled", amp_dtype_name(t));
        p->enabled = 0;
        p->scaling = AMP_SCALER_OFF;
        return AMP_OK;
    }
    AMPI_CHECK(ampi_is_half(t), "%s is %s; f16 or bf16 is needed", o->name, amp_dtype_name(t));
    if (p->cast_model == p->low) p->cast_model = t;
    ampi_policy_lower(p, t);
    return AMP_OK;
}
static amp_status ampi_set_loss_scale(amp_ctx *ctx, const ampi_override *o) {
    amp_policy *p = o->p;
    if (!o->dynamic) {
        AMPI_TRY(ampi_set_scale(ctx, o, &p->loss_scale));
        p->scaling = p->loss_scale == 1.0f ? AMP_SCALER_OFF : AMP_SCALER_STATIC;
        p->growth_interval = 0;
    } else if (p->scaling != AMP_SCALER_DYNAMIC) {
        ampi_policy_dynamic(p, ampi_family(p->preset) == AMPI_MINDSPORE ? 16777216.0f : 65536.0f);
    }
    return AMP_OK;
}

#define AMP_X(name, theirs, wants, families, missing, o1) AMPI_P_##name,
typedef enum ampi_property { AMPI_PROPERTY_LIST(AMP_X) AMPI_PROPERTIES } ampi_property;
#undef AMP_X
typedef struct ampi_property_row {
    char ours[16], theirs[24];
    ampi_wants wants;
    uint8_t families;
    char missing[40], o1[64];
} ampi_property_row;
#define AMP_X(name, theirs, wants, families, missing, o1) {#name, theirs, AMPI_WANTS_##wants, families, missing, o1},
static const ampi_property_row ampi_properties[AMPI_PROPERTIES] = {AMPI_PROPERTY_LIST(AMP_X)};
#undef AMP_X

static amp_status ampi_override_apply(amp_ctx *ctx, const ampi_override *o, ampi_property property) {
    amp_policy *p = o->p;
    switch (property) {
    case AMPI_P_enabled: return ampi_set_switch(o, &p->enabled);
    case AMPI_P_keep_norms: return ampi_set_switch(o, &p->keep_norms);
    case AMPI_P_master_weights: return ampi_set_switch(o, &p->master_weights);
    case AMPI_P_cast_model: return ampi_set_cast_model(ctx, o);
    case AMPI_P_autocast: return ampi_set_autocast(ctx, o);
    case AMPI_P_cast_outputs: return ampi_set_cast_outputs(ctx, o);
    case AMPI_P_num_losses: return ampi_set_num_losses(ctx, o);
    case AMPI_P_min_scale: return ampi_set_scale(ctx, o, &p->min_scale);
    case AMPI_P_max_scale: return ampi_set_scale(ctx, o, &p->max_scale);
    case AMPI_P_low: return ampi_set_low(ctx, o);
    case AMPI_P_loss_scale: return ampi_set_loss_scale(ctx, o);
    case AMPI_PROPERTIES: break;
    }
    return AMP_OK;
}
static amp_status ampi_override_set(amp_ctx *ctx, ampi_override *o, ampi_property property) {
    const ampi_property_row *row = &ampi_properties[property];
    int f32_model = property == AMPI_P_cast_model && ((amp_dtype)o->x == AMP_F32 || (amp_dtype)o->x == AMP_AUTO);
    AMPI_CHECK(row->families & ampi_family(o->p->preset), "%s is not a property of %s%s", o->name,
        amp_preset_name(o->p->preset), row->missing);
    AMPI_CHECK(o->p->preset != AMP_O1 || !row->o1[0] || f32_model, "%s is given, but O1 %s", o->name, row->o1);
    return ampi_override_apply(ctx, o, property);
}

/* What no single override can see; then the policy is as asked for. */
static amp_status ampi_policy_finish(amp_ctx *ctx, amp_policy *out, amp_policy *p) {
    AMPI_CHECK(p->min_scale <= 0.0f || p->max_scale <= 0.0f || p->min_scale <= p->max_scale,
        "min_scale (min_loss_scale) %g is above max_scale (max_loss_scale) %g", (double)p->min_scale,
        (double)p->max_scale);
    if (p->scaling == AMP_SCALER_DYNAMIC) {
        if (p->max_scale > 0.0f && p->loss_scale > p->max_scale)
            p->loss_scale = p->max_scale; /* Apex: min(max, init) */
        if (p->loss_scale < p->min_scale) p->loss_scale = p->min_scale;
    }
    *out = *p;
    return AMP_OK;
}

/* [sign] digits [. digits] [e [sign] digits], blanks around it: as strtod in the C locale, whatever the program's. */
static const char *ampi_parse_digits(const char *text, double *x, int *digits) {
    *digits = 0;
    for (; *text >= '0' && *text <= '9'; text++, ++*digits)
        *x = *x * 10.0 + (double)(*text - '0');
    return text;
}
static const char *ampi_parse_exponent(const char *text, int *exponent) {
    const char *at;
    double x = 0.0;
    int digits;
    if (*text != 'e' && *text != 'E') return text;
    at = text + 1 + (text[1] == '-' || text[1] == '+');
    at = ampi_parse_digits(at, &x, &digits);
    if (digits == 0) return text;
    if (x > 9999.0) x = 9999.0;
    *exponent += text[1] == '-' ? -(int)x : (int)x;
    return at;
}
static int ampi_parse_number(double *number, const char *text) { /* 1: all of it is a number */
    double x = 0.0, ten = 1.0;
    int whole, part = 0, exponent = 0, i;
    const char *at = text + strspn(text, " "), *end;
    int minus = *at == '-';
    at += minus || *at == '+';
    end = ampi_parse_digits(at, &x, &whole);
    if (*end == '.') end = ampi_parse_digits(end + 1, &x, &part);
    if (whole + part == 0 || whole + part > 300) return 0;
    exponent = -part;
    end = ampi_parse_exponent(end, &exponent);
    if (end[strspn(end, " ")]) return 0;
    i = exponent < 0 ? -exponent : exponent;
    if (i > 300) return 0; /* no float is that large or small */
    while (i--)
        ten *= 10.0;
    x = exponent < 0 ? x / ten : x * ten;
    *number = minus ? -x : x;
    return 1;
}
static amp_status ampi_scale_of(amp_ctx *ctx, ampi_override *o, const char *text) {
    o->dynamic = strcmp(text, "dynamic") == 0;
    AMPI_CHECK(
        o->dynamic || ampi_parse_number(&o->x, text), "loss_scale is \"%s\"; \"dynamic\" or a number is needed", text);
    return AMP_OK;
}

/* ---- overrides from a desc: what each kind of field gives; *is: it is given ---- */

static amp_status ampi_given_SWITCH(amp_ctx *ctx, ampi_override *o, int *is, int32_t field) {
    *is = field != 0;
    AMPI_CHECK(field == 0 || field == 1 || field == AMP_NONE, "overrides.%s is %d; 1, AMP_NONE or 0 is needed", o->name,
        (int)field);
    o->x = field == 1;
    return AMP_OK;
}
static amp_status ampi_given_DTYPE(amp_ctx *ctx, ampi_override *o, int *is, int32_t field) { /* AMP_NONE: False */
    (void)ctx;
    *is = field != 0;
    o->x = field == AMP_NONE ? (double)AMP_AUTO : field;
    return AMP_OK;
}
static amp_status ampi_given_NUMBER(amp_ctx *ctx, ampi_override *o, int *is, double field) {
    (void)ctx;
    *is = field != 0.0;
    o->x = field;
    return AMP_OK;
}
static amp_status ampi_given_SCALE(amp_ctx *ctx, ampi_override *o, int *is, const char *field) {
    *is = field != NULL;
    return field ? ampi_scale_of(ctx, o, field) : AMP_OK;
}
/* fields of a kind have types of their own */
#define AMPI_AS_SWITCH(field) (field)
#define AMPI_AS_DTYPE(field)  ((int32_t)(field))
#define AMPI_AS_NUMBER(field) ((double)(field))
#define AMPI_AS_SCALE(field)  (field)
static amp_status ampi_override_all(amp_ctx *ctx, ampi_override *o, const amp_policy_desc *d) {
    int is = 0;
#define AMP_X(field, theirs, wants, ...) \
    o->name = #field; \
    AMPI_TRY(ampi_given_##wants(ctx, o, &is, AMPI_AS_##wants(d->field))); \
    if (is) AMPI_TRY(ampi_override_set(ctx, o, AMPI_P_##field));
    AMPI_PROPERTY_LIST(AMP_X)
#undef AMP_X
    return AMP_OK;
}

static amp_status ampi_do_policy_init(
    amp_ctx *ctx, amp_policy *policy, amp_preset preset, const amp_policy_desc *overrides) {
    amp_policy_desc d = AMP_ZERO;
    amp_policy p;
    ampi_override o = AMP_ZERO;
    AMPI_CHECK(policy, "policy is NULL");
    AMPI_CHECK(AMPI_BELOW(preset, AMP_PRESET_COUNT), "preset is %d: no such level", (int)preset);
    AMPI_TAKE_DESC(&d, overrides);
    o.p = &p;
    ampi_policy_level(&p, preset, ampi_is_half(d.low) ? d.low : AMP_AUTO);
    AMPI_TRY(ampi_override_all(ctx, &o, &d));
    return ampi_policy_finish(ctx, policy, &p);
}
AMP_API amp_status amp_policy_init(
    amp_ctx *ctx, amp_policy *policy, amp_preset preset, const amp_policy_desc *overrides) {
    AMPI_VERB(ctx, policy_init, (ctx, policy, preset, overrides));
}

/* ---- overrides from text ---- */

static amp_status ampi_parse_switch(amp_ctx *ctx, ampi_override *o, const char *text) {
    o->x = strcmp(text, "True") == 0;
    AMPI_CHECK(o->x == 1.0 || strcmp(text, "False") == 0, "%s is \"%s\"; True, False or None is needed", o->name, text);
    return AMP_OK;
}
static amp_status ampi_parse_dtype(amp_ctx *ctx, ampi_override *o, const char *text, int may_be_false) {
    static const struct {
        char text[12];
        amp_dtype dtype;
    } names[] = {{"float32", AMP_F32}, {"f32", AMP_F32}, {"float16", AMP_F16}, {"half", AMP_F16}, {"f16", AMP_F16},
        {"bfloat16", AMP_BF16}, {"bf16", AMP_BF16}, {"False", AMP_AUTO}};
    size_t n = sizeof names / sizeof names[0], i = 0;
    const char *bare = text;
    if (!may_be_false) n--;
    if (strncmp(text, "torch.", 6) == 0 || strncmp(text, "mindspore.", 10) == 0) bare = strchr(text, '.') + 1;
    while (i < n && strcmp(names[i].text, bare) != 0)
        i++;
    AMPI_CHECK(i < n, "%s is \"%s\"; float32, float16 or bfloat16 is needed", o->name, text);
    o->x = names[i].dtype;
    return AMP_OK;
}
static amp_status ampi_parse_value(amp_ctx *ctx, ampi_override *o, ampi_property property, const char *text) {
    switch (ampi_properties[property].wants) {
    case AMPI_WANTS_SWITCH: return ampi_parse_switch(ctx, o, text);
    case AMPI_WANTS_DTYPE: return ampi_parse_dtype(ctx, o, text, property == AMPI_P_cast_model);
    case AMPI_WANTS_SCALE: return ampi_scale_of(ctx, o, text);
    case AMPI_WANTS_NUMBER: break;
    }
    AMPI_CHECK(ampi_parse_number(&o->x, text), "%s is \"%s\"; a number is needed", o->name, text);
    return AMP_OK;
}
static int ampi_property_is(const ampi_property_row *row, const char *name) {
    return strcmp(row->ours, name) == 0 || strcmp(row->theirs, name) == 0;
}

static amp_status ampi_do_policy_set(amp_ctx *ctx, amp_policy *policy, const char *property, const char *value) {
    ampi_override o = AMP_ZERO;
    amp_policy p;
    uint32_t k = 0;
    AMPI_CHECK(policy, "policy is NULL");
    AMPI_CHECK(property, "property is NULL");
    AMPI_CHECK(value, "value is NULL");
    AMPI_REQUIRE(AMPI_CLEAN(policy), AMP_ERR_UNINIT, "policy is not made by amp_policy_init");
    while (k < AMPI_PROPERTIES && !ampi_property_is(&ampi_properties[k], property))
        k++;
    AMPI_CHECK(k < AMPI_PROPERTIES, "\"%s\" is not a property", property);
    if (strcmp(value, "None") == 0) return AMP_OK;
    p = *policy;
    o.p = &p;
    o.name = property;
    AMPI_TRY(ampi_parse_value(ctx, &o, (ampi_property)k, value));
    AMPI_TRY(ampi_override_set(ctx, &o, (ampi_property)k));
    return ampi_policy_finish(ctx, policy, &p);
}
AMP_API amp_status amp_policy_set(amp_ctx *ctx, amp_policy *policy, const char *property, const char *value) {
    AMPI_VERB(ctx, policy_set, (ctx, policy, property, value));
}

/* ---- descs ---- */

typedef enum ampi_policy_way { AMPI_AS_IS, AMPI_BY_LISTS, AMPI_ALL_LOWER } ampi_policy_way;
static ampi_policy_way ampi_policy_mode(const amp_policy *p) {
    if (!p->enabled) return AMPI_AS_IS;
    if (p->autocast) return AMPI_BY_LISTS;
    return ampi_is_half(p->cast_model) ? AMPI_ALL_LOWER : AMPI_AS_IS;
}

AMP_API amp_params_desc amp_policy_params_desc(const amp_policy *policy) {
    amp_params_desc d = AMP_ZERO;
    d.model = AMP_F32;
    d.master = AMP_MASTER_F32;
    if (!policy || ampi_policy_mode(policy) != AMPI_ALL_LOWER) return d;
    d.model = policy->cast_model;
    if (!policy->master_weights) d.master = AMP_MASTER_NONE;
    return d;
}
AMP_API amp_scaler_desc amp_policy_scaler_desc(const amp_policy *policy) {
    amp_scaler_desc d = AMP_ZERO;
    d.mode = policy && policy->enabled ? policy->scaling : AMP_SCALER_OFF;
    if (d.mode == AMP_SCALER_OFF) return d;
    d.scale = policy->loss_scale;
    if (d.mode == AMP_SCALER_STATIC) d.no_check = ampi_family(policy->preset) == AMPI_APEX;
    if (d.mode == AMP_SCALER_DYNAMIC) {
        d.growth_interval = policy->growth_interval;
        d.min_scale = policy->min_scale;
        d.max_scale = policy->max_scale;
    }
    return d;
}

/* ---- the autocast scope: its regions, its arena, the casts of operands and their cache.
   tests: tests/test_policy.c, tests/test_context.c ---- */

typedef struct ampi_mark { /* copies for one call or region that are made after it go when it is popped */
    size_t high, temps, arenas;
} ampi_mark;
typedef struct ampi_region {
    amp_policy policy;
    amp_dtype low, pin;
    uint32_t enabled, cache;
    uint32_t outside; /* 1: as if no region were open */
    ampi_mark opened;
} ampi_region;

typedef struct ampi_reach { /* addresses from .. to; both 0: none */
    uintptr_t from, to;
} ampi_reach;
/* Each verb asks whether it writes to a source: first of all of them, then of so many entries at a time. */
#define AMPI_CACHED_GROUP 32u
typedef struct ampi_cached {
    ampi_reach group; /* in the first entry of a group: of all its sources */
    const void *source;
    const amp_params *set; /* whose parameter it is, or NULL */
    size_t count;
    char *copy;
    uint64_t capture; /* the capture that the cast belongs to, 0: none. Only that one may use it */
    amp_dtype dtype;
    uint32_t valid; /* 2: no set owns the source, and a backward has read it: for backwards only */
} ampi_cached;

typedef enum ampi_reader { AMPI_FORWARD, AMPI_BACKWARD, AMPI_BOTH, AMPI_PLAN } ampi_reader; /* PLAN: not yet */

typedef struct ampi_arenas {
    void **list;
    size_t n, cap;
} ampi_arenas;

struct ampi_scope {
    ampi_region region[AMP_AUTOCAST_DEPTH];
    size_t depth;
    ampi_cached *cached;
    ampi_reach sources; /* of all that is cached */
    size_t n_cached, cap_cached;
    char *arena; /* cached copies from below, copies for one call or region from above */
    size_t bytes, low, high;
    size_t kept, temps; /* bytes of cached copies and of the others, in whatever arena */
    size_t need;      /* largest sum of the two so far, in all scopes: the next outermost begin makes that much room */
    size_t arenas;    /* how many there have been */
    int32_t entered;  /* 1: a region has been opened */
    int32_t fixed;    /* 1: the arena has the size that amp_autocast_desc.arena says, and does not grow */
    int32_t captured; /* a captured graph uses this arena: it may not serve other scopes */
    int32_t _pad;
    ampi_arenas outgrown; /* that became too small in this scope, with copies that still count */
    ampi_arenas retired;  /* of captured graphs; freed with the context */
    amp_autocast_info info;
};

static void ampi_free_arenas(amp_ctx *ctx, ampi_arenas *a) {
    while (a->n)
        ampi_free_block(ctx, a->list[--a->n]);
}
static void ampi_scope_destroy(amp_ctx *ctx) {
    ampi_scope *s = ctx->scope;
    if (!s) return;
    ampi_free_arenas(ctx, &s->retired);
    ampi_free_arenas(ctx, &s->outgrown);
    ampi_free_block(ctx, s->arena);
    ampi_host_drop(ctx, s->outgrown.list, s->outgrown.cap * sizeof *s->outgrown.list);
    ampi_host_drop(ctx, s->retired.list, s->retired.cap * sizeof *s->retired.list);
    ampi_host_drop(ctx, s->cached, s->cap_cached * sizeof *s->cached);
    ampi_host_drop(ctx, s, sizeof *s);
    ctx->scope = NULL;
}

static ampi_region *ampi_region_of(const amp_ctx *ctx) {
    return ctx->scope && ctx->scope->depth ? &ctx->scope->region[ctx->scope->depth - 1] : NULL;
}
/* The innermost region or, where none is open, what an outermost begin starts from. */
static ampi_region ampi_region_now(const amp_ctx *ctx) {
    const ampi_region *now = ampi_region_of(ctx);
    ampi_region r;
    if (now) return *now;
    memset(&r, 0, sizeof r);
    ampi_policy_level(&r.policy, AMP_PRESET_AMP, AMP_AUTO);
    r.low = r.policy.low;
    r.cache = r.outside = 1;
    return r;
}
/* Temporary copies of one verb: made after the mark, popped at its end (the stream's order keeps them until their
   reader has run). An arena that came after the mark holds no older ones. */
static ampi_mark ampi_scope_mark(const amp_ctx *ctx) {
    ampi_mark m = AMP_ZERO;
    if (!ctx->scope) return m;
    m.high = ctx->scope->high;
    m.temps = ctx->scope->temps;
    m.arenas = ctx->scope->arenas;
    return m;
}
static void ampi_scope_pop(amp_ctx *ctx, ampi_mark mark) {
    ampi_scope *s = ctx->scope;
    if (!s) return;
    s->high = mark.arenas == s->arenas ? mark.high : s->bytes;
    s->temps = mark.temps;
}
static uint64_t ampi_capture_id(amp_ctx *ctx) { return ctx->b->capture_id ? (ctx->b->capture_id)(ctx) : 0; }

/* Cached casts of a set (NULL: any), of an array (NULL: any) are stale. */
static void ampi_stale(amp_ctx *ctx, const amp_params *set, const void *data) {
    size_t i, n = ctx->scope ? ctx->scope->n_cached : 0;
    ctx->weights++;
    for (i = 0; i < n; i++) {
        ampi_cached *k = &ctx->scope->cached[i];
        if ((!set || k->set == set) && (!data || k->source == data)) k->valid = 0;
    }
}
static void ampi_reach_add(ampi_reach *r, const ampi_cached *k) {
    const uintptr_t from = (uintptr_t)k->source, to = from + k->count * sizeof(float);
    if (!r->to || from < r->from) r->from = from;
    if (to > r->to) r->to = to;
}
static int ampi_reaches(const ampi_reach *r, const void *data, size_t bytes) {
    return ampi_overlap((const void *)r->from, r->to - r->from, data, bytes);
}
static void ampi_drop_casts(ampi_scope *s, const void *data, size_t bytes) {
    size_t group, end, i;
    if (!ampi_reaches(&s->sources, data, bytes)) return;
    for (group = 0; group < s->n_cached; group = end) {
        end = group + AMPI_CACHED_GROUP;
        if (!ampi_reaches(&s->cached[group].group, data, bytes)) continue;
        for (i = group; i < end && i < s->n_cached; i++)
            if (ampi_overlap(s->cached[i].source, s->cached[i].count * sizeof(float), data, bytes))
                s->cached[i].valid = 0;
    }
}
static void ampi_iteration_ended(amp_ctx *ctx) {
    size_t i, n = ctx->scope ? ctx->scope->n_cached : 0;
    for (i = 0; i < n; i++)
        if (!ctx->scope->cached[i].set) ctx->scope->cached[i].valid = 0;
}
static void ampi_weights_changed(amp_ctx *ctx, const amp_params *p) {
    ampi_stale(ctx, p, NULL);
    ampi_iteration_ended(ctx);
}
static void ampi_do_autocast_invalidate(amp_ctx *ctx, const void *data) { ampi_stale(ctx, NULL, data); }
AMP_API void amp_autocast_invalidate(amp_ctx *ctx, const void *data) {
    AMPI_VOID_VERB(ctx, autocast_invalidate, (ctx, data));
}

/* ---- the scope: opening and closing regions ---- */

/* What a new outermost region needs: bytes of arena, entries of the cache. */
static void ampi_scope_need(
    const amp_ctx *ctx, const amp_autocast_desc *d, int enabled, size_t *bytes, size_t *entries) {
    const amp_params *p;
    size_t i;
    *bytes = AMP_AUTOCAST_SPARE;
    *entries = 64;
    for (p = ctx->sets; p; p = p->next)
        for (i = 0; i < p->n; i++) {
            if (!p->entries[i].master || p->entries[i].model) continue;
            *bytes += (size_t)ampi_round256(p->entries[i].count * 2u); /* FP32, without a copy */
            ++*entries;
        }
    if (!enabled) *bytes = 0;
    if (ctx->scope && *bytes < ctx->scope->need) *bytes = ctx->scope->need;
    if (d->arena) *bytes = d->arena;
    if (d->entries) *entries = d->entries;
}
static amp_status ampi_scope_entries(amp_ctx *ctx, size_t entries) {
    ampi_scope *s = ctx->scope;
    ampi_cached *c;
    if (entries <= s->cap_cached) return AMP_OK;
    c = (ampi_cached *)ampi_host_new(ctx, entries * sizeof *c);
    AMPI_REQUIRE(c, AMP_ERR_NO_MEMORY, "no host memory for %llu entries", AMPI_ULL(entries));
    ampi_host_drop(ctx, s->cached, s->cap_cached * sizeof *s->cached);
    s->cached = c;
    s->cap_cached = entries;
    return AMP_OK;
}
/* The arena goes to a list: that of outgrown ones, or that of those which graphs use. */
static amp_status ampi_scope_put_away(amp_ctx *ctx) {
    ampi_scope *s = ctx->scope;
    ampi_arenas *to = s->captured ? &s->retired : &s->outgrown;
    void **list;
    if (!s->arena) return AMP_OK;
    list = (void **)ampi_grow(&ctx->host, to->list, to->n, &to->cap, sizeof *list);
    AMPI_MEMORY(list);
    to->list = list;
    list[to->n++] = s->arena;
    s->arena = NULL;
    s->bytes = s->low = s->high = 0;
    s->captured = 0;
    return AMP_OK;
}
/* A new arena in place of the one that there is; no copies are moved. */
static amp_status ampi_scope_new_arena(amp_ctx *ctx, size_t bytes) {
    ampi_scope *s = ctx->scope;
    void *arena = NULL;
    AMPI_TRY(ampi_alloc_block(ctx, &arena, bytes, "autocast", 0));
    if (ampi_scope_put_away(ctx) != AMP_OK) {
        ampi_free_block(ctx, arena);
        return AMP_ERR_NO_MEMORY;
    }
    s->arena = (char *)arena;
    s->bytes = s->high = bytes;
    s->low = 0;
    s->arenas++;
    return AMP_OK;
}
/* One arena of `bytes` for a new outermost region: larger if it was, but for what the growth of the scope before added
   without need. In a capture what is there will do. */
static amp_status ampi_scope_arena(amp_ctx *ctx, size_t bytes) {
    ampi_scope *s = ctx->scope;
    int grown = s->outgrown.n != 0, replace = s->captured && bytes;
    int capturing = ampi_capture_id(ctx) != 0;
    if (bytes <= s->bytes && (capturing || (!grown && !replace))) return AMP_OK;
    AMPI_REQUIRE(!capturing, AMP_ERR_CAPTURE,
        "the arena has %llu bytes and %llu are needed, but the stream is being captured: run a step before",
        AMPI_ULL(s->bytes), AMPI_ULL(bytes));
    AMPI_TRY((ctx->b->may_wait)(ctx));
    if (bytes < s->bytes && !grown) bytes = s->bytes;
    if (bytes != s->bytes || replace) AMPI_TRY(ampi_scope_new_arena(ctx, bytes));
    if (s->outgrown.n) AMPI_TRY((ctx->b->sync)(ctx));
    ampi_free_arenas(ctx, &s->outgrown);
    return AMP_OK;
}
static amp_status ampi_scope_outermost(amp_ctx *ctx, const amp_autocast_desc *d, int enabled) {
    ampi_scope *s = ctx->scope;
    size_t bytes, entries;
    ampi_scope_need(ctx, d, enabled, &bytes, &entries);
    AMPI_CHECK(entries <= (size_t)-1 / sizeof *s->cached, "desc.entries %llu is too large", AMPI_ULL(entries));
    AMPI_CHECK(bytes <= (size_t)-1 - 255u, "desc.arena %llu is too large", AMPI_ULL(bytes));
    AMPI_TRY(ampi_scope_entries(ctx, entries));
    AMPI_TRY(ampi_scope_arena(ctx, (size_t)ampi_round256(bytes)));
    s->fixed = d->arena != 0;
    s->entered = 1;
    s->low = s->kept = s->temps = 0;
    s->high = s->bytes;
    memset(&s->info, 0, sizeof s->info);
    return AMP_OK;
}

/* Opens a region; d has been checked. */
static amp_status ampi_region_open(amp_ctx *ctx, const amp_autocast_desc *d, const ampi_region *r) {
    ampi_scope *s = ctx->scope;
    if (!s) ctx->scope = s = (ampi_scope *)ampi_host_new(ctx, sizeof *s);
    AMPI_MEMORY(s);
    AMPI_STAGE(s->depth < AMP_AUTOCAST_DEPTH, "%d regions are open already", AMP_AUTOCAST_DEPTH);
    if (s->depth == 0) AMPI_TRY(ampi_scope_outermost(ctx, d, r->enabled != 0));
    s->region[s->depth] = *r;
    s->region[s->depth++].opened = ampi_scope_mark(ctx);
    return AMP_OK;
}

static amp_status ampi_check_autocast(amp_ctx *ctx, const amp_autocast_desc *d) {
    AMPI_REQUIRE(!d->policy || AMPI_CLEAN(d->policy), AMP_ERR_UNINIT, "desc.policy is not made by amp_policy_init");
    AMPI_CHECK(
        d->low == AMP_AUTO || ampi_is_half(d->low), "desc.low is %s; f16 or bf16 is needed", amp_dtype_name(d->low));
    AMPI_CHECK(d->pin == AMP_AUTO || ampi_is_model_dtype(d->pin), "desc.pin is %s; f32, f16 or bf16 is needed",
        amp_dtype_name(d->pin));
    AMPI_CHECK(d->cache == 0 || d->cache == 1 || d->cache == AMP_NONE, "desc.cache is %d; 1, AMP_NONE or 0 is needed",
        (int)d->cache);
    return AMP_OK;
}

static amp_status ampi_do_autocast_begin(amp_ctx *ctx, const amp_autocast_desc *desc) {
    amp_autocast_desc d = AMP_ZERO;
    ampi_region r;
    AMPI_TAKE_DESC(&d, desc);
    AMPI_TRY(ampi_check_autocast(ctx, &d));
    r = ampi_region_now(ctx);
    if (d.if_enabled && !r.enabled)
        return ampi_region_open(ctx, &d, &r); /* nothing happens, but it is closed like any other */
    r.outside = 0;
    if (d.policy) {
        r.policy = *d.policy;
        r.low = d.policy->low;
    }
    if (d.low != AMP_AUTO) r.low = d.low;
    if (d.cache) r.cache = d.cache == 1;
    r.pin = d.disabled ? AMP_AUTO : d.pin; /* a nested region without a pin goes by the lists again */
    r.enabled = !d.disabled && (r.pin != AMP_AUTO || ampi_policy_mode(&r.policy) != AMPI_AS_IS);
    return ampi_region_open(ctx, &d, &r);
}
AMP_API amp_status amp_autocast_begin(amp_ctx *ctx, const amp_autocast_desc *desc) {
    AMPI_VERB(ctx, autocast_begin, (ctx, desc));
}

static amp_status ampi_do_autocast_end(amp_ctx *ctx) {
    ampi_scope *s = ctx->scope;
    AMPI_STAGE(s && s->depth, "no region is open");
    ampi_scope_pop(ctx, s->region[--s->depth].opened);
    if (s->depth == 0) {
        s->n_cached = 0;
        s->sources.from = s->sources.to = 0;
        s->low = s->kept = 0;
    }
    return AMP_OK;
}
AMP_API amp_status amp_autocast_end(amp_ctx *ctx) { AMPI_VERB(ctx, autocast_end, (ctx)); }

static amp_status ampi_do_autocast_release(amp_ctx *ctx) {
    if (!ctx->scope) return AMP_OK;
    AMPI_STAGE(ctx->scope->depth == 0, "%llu regions are open", AMPI_ULL(ctx->scope->depth));
    AMPI_TRY(ampi_do_sync(ctx));
    ampi_scope_destroy(ctx);
    return AMP_OK;
}
AMP_API amp_status amp_autocast_release(amp_ctx *ctx) { AMPI_VERB(ctx, autocast_release, (ctx)); }

AMP_API amp_autocast_info amp_autocast_get(const amp_ctx *ctx) {
    amp_autocast_info info = AMP_ZERO;
    const ampi_scope *s = ctx ? ctx->scope : NULL;
    const ampi_region *r = ctx ? ampi_region_of(ctx) : NULL;
    if (!s) return info;
    info = s->info;
    info.arena = s->bytes;
    if (!r) return info;
    info.depth = (uint32_t)s->depth;
    info.used = s->kept + s->temps;
    info.enabled = r->enabled;
    info.cache = r->cache;
    info.low = r->low;
    info.pin = r->pin;
    return info;
}

/* ---- the scope: operands ---- */

/* The dtype of an operation's result when it is left automatic. */
static amp_dtype ampi_class_output(const amp_policy *p, amp_op_class c, amp_dtype low, amp_dtype in) {
    if (c == AMP_CLASS_LOWER) return p->results_f32 ? AMP_F32 : low;
    return c == AMP_CLASS_F32 || c == AMP_CLASS_F32_OUT ? AMP_F32 : in;
}
/* What the innermost region does with op; *want: dtype that its inputs are cast to, AMP_AUTO: none (or the widest). */
static amp_op_class ampi_region_class(const amp_ctx *ctx, amp_op op, amp_dtype *want) {
    const ampi_region *r = ampi_region_of(ctx);
    amp_op_class c;
    *want = AMP_AUTO;
    if (!r || !r->enabled) return AMP_CLASS_NONE;
    if (r->pin != AMP_AUTO) {
        *want = r->pin;
        return r->pin == AMP_F32 ? AMP_CLASS_F32 : AMP_CLASS_LOWER;
    }
    c = amp_policy_class(&r->policy, op);
    if (c == AMP_CLASS_LOWER) *want = r->low;
    if (c == AMP_CLASS_F32) *want = AMP_F32;
    return c;
}
AMP_API amp_dtype amp_autocast_output(const amp_ctx *ctx, amp_op op, amp_dtype in) {
    const ampi_region *r = ctx ? ampi_region_of(ctx) : NULL;
    amp_dtype want;
    amp_op_class c;
    if (!r) return in;
    c = ampi_region_class(ctx, op, &want);
    return r->pin != AMP_AUTO && want != AMP_AUTO ? want : ampi_class_output(&r->policy, c, r->low, in);
}

/* The parameter whose FP32 weights lie at `data`, and how many elements into it; NULL: none. */
static const amp_param_entry *ampi_find_weight(
    const amp_ctx *ctx, const void *data, const amp_params **set, size_t *at) {
    const amp_params *p;
    size_t i;
    for (p = ctx->sets; p; p = p->next)
        for (i = 0; i < p->n; i++) {
            uintptr_t a = (uintptr_t)p->entries[i].master, x = (uintptr_t)data;
            if (!a || x < a || x - a >= (uintptr_t)p->entries[i].count * 4u || (x - a) % 4u) continue;
            *set = p;
            *at = (size_t)(x - a) / 4u;
            return &p->entries[i];
        }
    return NULL;
}

static void ampi_scope_needs(ampi_scope *s, size_t more) {
    const size_t all = s->kept + s->temps + more;
    if (s->info.peak < all) s->info.peak = all;
    if (s->need < s->info.peak) s->need = s->info.peak;
}
/* The arena is full: a larger one for what comes, while the copies that are made stay where they are. It would have
   held them, too: so the next scope, which may be captured, has room without a new one. */
static amp_status ampi_scope_grow(amp_ctx *ctx, size_t bytes) {
    ampi_scope *s = ctx->scope;
    AMPI_STAGE(s && s->entered,
        "a cast needs %llu bytes, but there is no autocast arena: call amp_autocast_begin before, or give operands "
        "of the pinned dtype",
        AMPI_ULL(bytes));
    AMPI_REQUIRE(!s->fixed, AMP_ERR_NO_MEMORY,
        "the autocast arena of %llu bytes is full: %llu more are needed for a cast, %llu are left "
        "(amp_autocast_desc.arena; 0: it grows)",
        AMPI_ULL(s->bytes), AMPI_ULL(bytes), AMPI_ULL(s->bytes - s->kept - s->temps));
    if (ampi_capture_id(ctx)) ampi_scope_needs(s, bytes);
    AMPI_REQUIRE(ampi_capture_id(ctx) == 0, AMP_ERR_NO_MEMORY,
        "the autocast arena of %llu bytes is full, and cannot grow while the stream is being captured: %llu bytes "
        "are needed so far. Run a step before, or give amp_autocast_desc.arena",
        AMPI_ULL(s->bytes), AMPI_ULL(s->kept + s->temps + bytes));
    return ampi_scope_new_arena(ctx, 2 * (s->kept + s->temps + bytes));
}
/* Room in the arena: from below for a copy that stays in the cache, from above for one that goes with its call or
   region. */
static amp_status ampi_scope_room(amp_ctx *ctx, size_t bytes, int cached, char **out) {
    ampi_scope *s = ctx->scope;
    bytes = (size_t)ampi_round256(bytes);
    if (!s || bytes > s->bytes || s->kept + s->temps > s->bytes - bytes) AMPI_TRY(ampi_scope_grow(ctx, bytes));
    if (ampi_capture_id(ctx)) s->captured = 1;
    *out = cached ? s->arena + s->low : s->arena + s->high - bytes;
    if (cached) {
        s->low += bytes;
        s->kept += bytes;
    } else {
        s->high -= bytes;
        s->temps += bytes;
    }
    ampi_scope_needs(s, 0);
    return AMP_OK;
}

static ampi_cached *ampi_cached_find(const ampi_scope *s, const ampi_cached *like) {
    size_t i;
    for (i = 0; i < s->n_cached; i++) {
        ampi_cached *k = &s->cached[i];
        if (k->source == like->source && k->count == like->count && k->dtype == like->dtype &&
            k->capture == like->capture)
            return k;
    }
    return NULL;
}
/* The entry of a weight's cast; one that is not valid has room for it and is to be filled. */
static amp_status ampi_cached_entry(amp_ctx *ctx, ampi_cached like, ampi_cached **entry) {
    ampi_scope *s = ctx->scope;
    ampi_cached *k = ampi_cached_find(s, &like);
    if (!k) {
        AMPI_REQUIRE(s->n_cached < s->cap_cached, AMP_ERR_NO_MEMORY,
            "all %llu entries of the autocast cache are in use (amp_autocast_desc.entries)", AMPI_ULL(s->cap_cached));
        AMPI_TRY(ampi_scope_room(ctx, like.count * amp_dtype_size(like.dtype), 1, &like.copy));
        k = &s->cached[s->n_cached];
        *k = like;
        ampi_reach_add(&s->sources, k);
        ampi_reach_add(&s->cached[s->n_cached / AMPI_CACHED_GROUP * AMPI_CACHED_GROUP].group, k);
        s->n_cached++;
    }
    if (k->set != like.set) k->valid = 0; /* the memory was adopted by a different set */
    k->set = like.set;
    *entry = k;
    return AMP_OK;
}

static int ampi_needs_cast(amp_array a, size_t n, amp_dtype want) {
    if (want == AMP_AUTO || !a.data || n == 0 || a.dtype == want) return 0;
    if (ampi_is_f8(a.dtype) || !ampi_is_dtype(a.dtype)) return 0;
    return a.count == 0 || a.count >= n; /* too short: the verb will say so */
}

/* A cached cast is read: is it what is wanted? A backward, alone or behind its forward in one verb, ends the iteration
   for an array that no set owns: a forward that comes after it casts anew. */
static int ampi_cached_read(ampi_cached *k, ampi_reader reader) {
    const int fresh = k->valid == 1 || (k->valid == 2 && reader == AMPI_BACKWARD);
    const uint32_t ends = (reader == AMPI_BACKWARD || reader == AMPI_BOTH) && !k->set;
    k->valid = fresh ? 1u + ends : 0u;
    return fresh;
}
/* The entry of a weight's cast, made if there is none. For a plan nothing is made: *k is NULL then. */
static amp_status ampi_cached_cast(amp_ctx *ctx, ampi_cached like, int plan, ampi_cached **k) {
    if (!plan) return ampi_cached_entry(ctx, like, k);
    *k = ampi_cached_find(ctx->scope, &like);
    return AMP_OK;
}
/* *out = a in dtype `want` (AMP_AUTO: as it is). */
static amp_status ampi_operand(
    amp_ctx *ctx, amp_array a, size_t n, amp_dtype want, ampi_reader reader, amp_array *out) {
    const int plan = reader == AMPI_PLAN;
    const ampi_region *r = ampi_region_of(ctx);
    const amp_params *set = NULL;
    const amp_param_entry *e = NULL;
    amp_cast_desc how = AMP_ZERO;
    ampi_cached *k = NULL;
    size_t at = 0;
    int weight = (a.flags & AMP_CACHE) != 0; /* a whole one, in FP32: its cast may be kept */
    char *to;
    a.flags &= ~AMP_CACHE;
    *out = a;
    if (!ampi_needs_cast(a, n, want)) return AMP_OK;
    if (a.dtype == AMP_F32) e = ampi_find_weight(ctx, a.data, &set, &at);
    out->dtype = want;
    if (e && e->model && e->model_dtype == want) {
        out->data = (char *)e->model + at * amp_dtype_size(want);
        if (ctx->scope && !plan) ctx->scope->info.resolved++;
        return AMP_OK;
    }
    if (e) weight = at == 0 && n == e->count;
    if (weight && r && r->cache && a.dtype == AMP_F32 && want == r->low) {
        ampi_cached like = AMP_ZERO;
        like.source = a.data;
        like.set = set;
        like.count = n;
        like.capture = ampi_capture_id(ctx);
        like.dtype = want;
        AMPI_TRY(ampi_cached_cast(ctx, like, plan, &k));
    }
    if (k) {
        out->data = k->copy;
    } else {
        AMPI_TRY(ampi_scope_room(ctx, n * amp_dtype_size(want), 0, &to));
        out->data = to;
    }
    if (plan) return AMP_OK;
    if (k && ampi_cached_read(k, reader)) {
        ctx->scope->info.hits++;
        return AMP_OK;
    }
    AMPI_TRY((ctx->b->cast)(ctx, *out, a, n, &how));
    ctx->scope->info.casts++;
    if (!k) return AMP_OK;
    k->valid = 1;
    (void)ampi_cached_read(k, reader);
    return AMP_OK;
}

/* The dtype that op's inputs are cast to here; AMP_AUTO: none. */
static amp_status ampi_autocast_want(amp_ctx *ctx, amp_op op, const amp_array *in, size_t n, amp_dtype *want) {
    amp_op_class c = ampi_region_class(ctx, op, want);
    int f32 = 0, f16 = 0, bf16 = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        f32 |= in[i].data && in[i].dtype == AMP_F32;
        f16 |= in[i].data && in[i].dtype == AMP_F16;
        bf16 |= in[i].data && in[i].dtype == AMP_BF16;
    }
    AMPI_REQUIRE(c != AMP_CLASS_BANNED, AMP_ERR_UNSUPPORTED, "%s is banned here: %s", amp_op_name(op), amp_op_note(op));
    if (c != AMP_CLASS_WIDEST) return AMP_OK;
    if (f32) *want = AMP_F32;
    AMPI_REQUIRE(
        f32 || !f16 || !bf16, AMP_ERR_UNSUPPORTED, "%s has f16 and bf16 inputs: neither is wider", amp_op_name(op));
    return AMP_OK;
}

static amp_status ampi_do_autocast_input(amp_ctx *ctx, amp_array *out, amp_op op, const amp_array *in, size_t n) {
    amp_array made[8];
    amp_dtype want;
    size_t i;
    ampi_mark mark;
    if (n == 0) return AMP_OK;
    AMPI_CHECK(in, "in is NULL");
    AMPI_CHECK(out, "out is NULL");
    AMPI_CHECK(n <= 8, "n is %llu; at most 8 inputs", AMPI_ULL(n));
    AMPI_CHECK(op < AMP_OP_COUNT, "op is %lu: no such operation", (unsigned long)op);
    for (i = 0; i < n; i++) {
        if (!in[i].data) continue;
        AMPI_CHECK(in[i].count > 0, "in[%llu].count is 0; the number of elements is needed", AMPI_ULL(i));
        AMPI_CHECK(in[i].count <= (size_t)-1 / 8, "in[%llu].count is too large", AMPI_ULL(i));
        AMPI_TRY(ampi_check_array(ctx, "in", in[i], in[i].count, 0));
    }
    AMPI_TRY(ampi_autocast_want(ctx, op, in, n, &want));
    mark = ampi_scope_mark(ctx);
    for (i = 0; i < n; i++) {
        amp_status st = ampi_operand(ctx, in[i], in[i].count, want, AMPI_FORWARD, &made[i]);
        if (st == AMP_OK) continue;
        ampi_scope_pop(ctx, mark);
        return st;
    }
    memcpy(out, made, n * sizeof *out);
    return AMP_OK;
}
AMP_API amp_status amp_autocast_input(amp_ctx *ctx, amp_array *out, amp_op op, const amp_array *in, size_t n) {
    AMPI_VERB(ctx, autocast_input, (ctx, out, op, in, n));
}

/* ==== >>front-fp8 ================================================================================================
   Scales of FP8 tensors, quantisation.   tests: tests/test_fp8.c */

struct amp_fp8 {
    amp_ctx *ctx;
    amp_fp8_state *states; /* context memory: desc.tensors of them, then the histories */
    float *history;        /* of tensor 0; NULL: current scaling */
    size_t words;          /* of 4 bytes, of that memory */
    amp_fp8 *next;         /* in the context's list */
    amp_fp8_desc desc;     /* with its defaults filled in */
};

static amp_status ampi_fp8_format(amp_ctx *ctx, const char *name, amp_dtype *t, amp_dtype usual) {
    if (*t == AMP_AUTO) *t = usual;
    AMPI_CHECK(ampi_is_f8(*t), "desc.%s is %s; an FP8 format is needed", name, amp_dtype_name(*t));
    return AMP_OK;
}
/* Defaults, and what may not be. */
static amp_status ampi_fp8_rule(amp_ctx *ctx, amp_fp8_desc *d) {
    if (!d->tensors) d->tensors = 3;
    AMPI_CHECK(d->tensors <= 65536u, "desc.tensors is %lu, more than 65536", (unsigned long)d->tensors);
    AMPI_CHECK(d->history <= 65536u, "desc.history is %lu, more than 65536", (unsigned long)d->history);
    AMPI_CHECK(d->margin <= 6u, "desc.margin is %lu; it must be in 0 .. 6", (unsigned long)d->margin);
    AMPI_CHECK(!d->flags, "desc.flags is not 0");
    AMPI_TRY(ampi_fp8_format(ctx, "forward", &d->forward, AMP_F8E4M3));
    AMPI_TRY(ampi_fp8_format(ctx, "backward", &d->backward, AMP_F8E5M2));
    AMPI_REQUIRE(d->forward != AMP_F8E5M2 || d->backward != AMP_F8E5M2, AMP_ERR_UNSUPPORTED,
        "desc.forward and desc.backward are both f8e5m2: no hardware multiplies two of them");
    return AMP_OK;
}
/* Scales of 1, empty histories. */
static amp_status ampi_fp8_fill(amp_fp8 *f) {
    amp_ctx *ctx = f->ctx;
    size_t bytes = f->desc.tensors * sizeof *f->states, i;
    amp_fp8_state *s = (amp_fp8_state *)ampi_host_new(ctx, bytes);
    amp_status st;
    AMPI_MEMORY(s);
    for (i = 0; i < f->desc.tensors; i++)
        s[i].scale = s[i].inverse = 1.0f;
    st = (ctx->b->zero)(ctx, f->states, f->words * 4);
    if (st == AMP_OK) st = (ctx->b->copy)(ctx, f->states, s, bytes);
    ampi_host_drop(ctx, s, bytes);
    return ampi_settle(ctx, st);
}
static amp_status ampi_fp8_allocate(amp_fp8 *f) {
    size_t states = f->desc.tensors * (sizeof *f->states / 4);
    size_t each;
    void *mem = NULL;
    amp_ctx *ctx = f->ctx;
    amp_status st;
    AMPI_REQUIRE(ampi_product(&each, f->desc.tensors, f->desc.history) && each <= (size_t)-1 / 8 - states,
        AMP_ERR_NO_MEMORY, "desc.tensors histories of desc.history numbers are too much");
    f->words = states + each;
    AMPI_TRY(ampi_alloc_block(ctx, &mem, f->words * 4, "fp8", 0));
    f->states = (amp_fp8_state *)mem;
    if (f->desc.history) f->history = (float *)mem + states;
    st = ampi_fp8_fill(f);
    if (st != AMP_OK) ampi_free_block(ctx, mem);
    return st;
}
static amp_status ampi_do_fp8_create(amp_fp8 **out, amp_ctx *ctx, int version, size_t size, const amp_fp8_desc *desc) {
    amp_fp8_desc d = AMP_ZERO;
    amp_fp8 *f;
    amp_status st;
    AMPI_CHECK_CREATE(out, version, size, &d, desc);
    AMPI_TRY(ampi_fp8_rule(ctx, &d));
    AMPI_HAS(quantize);
    AMPI_TRY((ctx->b->may_wait)(ctx));
    f = (amp_fp8 *)ampi_host_new(ctx, sizeof *f);
    AMPI_MEMORY(f);
    f->ctx = ctx;
    f->desc = d;
    st = ampi_fp8_allocate(f);
    if (st != AMP_OK) {
        ampi_host_drop(ctx, f, sizeof *f);
        return st;
    }
    f->next = ctx->fp8s;
    ctx->fp8s = f;
    *out = f;
    return AMP_OK;
}
AMP_API amp_status amp_fp8_create_checked(
    amp_fp8 **out, amp_ctx *ctx, int version, size_t size, const amp_fp8_desc *desc) {
    if (out) *out = NULL;
    AMPI_VERB(ctx, fp8_create, (out, ctx, version, size, desc));
}

static void ampi_do_fp8_destroy(amp_fp8 *f) {
    amp_ctx *ctx = f->ctx;
    AMPI_UNLINK(amp_fp8, ctx->fp8s, f, next);
    ampi_free_block(ctx, f->states);
    ampi_host_drop(ctx, f, sizeof *f);
}
AMP_API void amp_fp8_destroy(amp_fp8 *f) { AMPI_DESTROY(AMPI_CTX(f), fp8_destroy, (f)); }

static amp_status ampi_check_tensor(const amp_fp8 *f, size_t i) {
    amp_ctx *ctx = f->ctx;
    AMPI_CHECK(
        i < f->desc.tensors, "i is %llu, but there are %lu tensors", AMPI_ULL(i), (unsigned long)f->desc.tensors);
    return AMP_OK;
}
static amp_status ampi_do_fp8_get(amp_fp8 *f, size_t i, amp_fp8_info *out) {
    amp_ctx *ctx = f->ctx;
    amp_fp8_state s;
    AMPI_TRY(ampi_check_tensor(f, i));
    AMPI_CHECK(out, "out is NULL");
    AMPI_TRY(ampi_do_copy(ctx, &s, f->states + i, sizeof s));
    out->scale = s.scale;
    out->amax = s.amax;
    out->largest = s.window;
    return AMP_OK;
}
AMP_API amp_status amp_fp8_get(amp_fp8 *f, size_t i, amp_fp8_info *out) { AMPI_VERB_OF(f, fp8_get, (f, i, out)); }
AMP_API const float *amp_fp8_inverse_ptr(const amp_fp8 *f, size_t i) {
    return f && i < f->desc.tensors ? &f->states[i].inverse : NULL;
}

/* Casts of tensor i to format t: what is missing are the matrices, their sizes, and keep. */
static amp_quantize_job ampi_fp8_job(const amp_fp8 *f, size_t i, amp_dtype t) {
    amp_quantize_job j = AMP_ZERO;
    j.state = f->states + i;
    if (f->history) j.history = f->history + i * f->desc.history;
    j.n_history = f->desc.history;
    j.power_of_two = f->desc.power_of_two != 0;
    j.most = ampi_float(amp_fp8_most(t) - (f->desc.margin << 23)); /* exact: divided by a power of two */
    return j;
}

static amp_status ampi_check_quantized(amp_ctx *ctx, const char *name, amp_array a, size_t n) {
    AMPI_TRY(ampi_check_array(ctx, name, a, n, 0));
    AMPI_CHECK(!a.data || ampi_is_f8(a.dtype), "%s is %s; an FP8 format is needed", name, amp_dtype_name(a.dtype));
    return AMP_OK;
}
static amp_status ampi_check_source(amp_ctx *ctx, const char *name, amp_array a) {
    AMPI_CHECK(!ampi_is_f8(a.dtype), "%s is %s already; f32, f16 or bf16 is needed", name, amp_dtype_name(a.dtype));
    return AMP_OK;
}
/* Memory apart from each other: what is read, and one or two outputs. */
static amp_status ampi_quantize_extents(amp_ctx *ctx, const amp_quantize_job *j) {
    const size_t n = j->rows * j->cols;
    const ampi_extent r[3] = {
        ampi_extent_of("dst", j->dst, n, 0, 1),
        ampi_extent_of("dst_t", j->dst_t, n, 0, 1),
        ampi_extent_of("src", j->src, n, 1, 0),
    };
    return ampi_check_extents(ctx, r, 3);
}
static amp_status ampi_check_quantize(amp_ctx *ctx, const amp_quantize_job *j, size_t *n) {
    AMPI_CHECK(ampi_product(n, j->rows, j->cols) && *n <= (size_t)-1 / 8, "rows %llu by cols %llu is too large",
        AMPI_ULL(j->rows), AMPI_ULL(j->cols));
    AMPI_TRY(ampi_check_array(ctx, "src", j->src, *n, 1));
    AMPI_TRY(ampi_check_source(ctx, "src", j->src));
    AMPI_TRY(ampi_check_quantized(ctx, "dst", j->dst, *n));
    AMPI_TRY(ampi_check_quantized(ctx, "dst_t", j->dst_t, *n));
    AMPI_CHECK(!*n || j->dst.data || j->dst_t.data, "dst and dst_t are NULL");
    AMPI_CHECK(!j->dst.data || !j->dst_t.data || j->dst.dtype == j->dst_t.dtype,
        "dst is %s and dst_t is %s; they must have one format", amp_dtype_name(j->dst.dtype),
        amp_dtype_name(j->dst_t.dtype));
    return ampi_quantize_extents(ctx, j);
}
static amp_status ampi_do_quantize(
    amp_fp8 *f, size_t i, amp_array dst, amp_array dst_t, amp_array src, size_t rows, size_t cols, uint32_t keep) {
    amp_ctx *ctx = f->ctx;
    amp_quantize_job j;
    size_t n = 0;
    AMPI_TRY(ampi_check_tensor(f, i));
    j = ampi_fp8_job(f, i, dst.data ? dst.dtype : dst_t.dtype);
    j.src = src;
    j.dst = dst;
    j.dst_t = dst_t;
    j.rows = rows;
    j.cols = cols;
    j.keep = keep != 0;
    AMPI_TRY(ampi_check_quantize(ctx, &j, &n));
    ampi_wrote_array(ctx, j.dst, n);
    ampi_wrote_array(ctx, j.dst_t, n);
    return n ? (ctx->b->quantize)(ctx, &j) : AMP_OK;
}
AMP_API amp_status amp_quantize(
    amp_fp8 *f, size_t i, amp_array dst, amp_array dst_t, amp_array src, size_t rows, size_t cols, uint32_t keep) {
    AMPI_VERB_OF(f, quantize, (f, i, dst, dst_t, src, rows, cols, keep));
}

/* ==== >>front-products ===========================================================================================
   Products, layers, losses.   tests: tests/test_products.c, tests/test_paths.c, tests/test_context.c */

/* What is done with a product once its job is complete. */
typedef enum ampi_goal_kind { AMPI_RUN, AMPI_TUNE, AMPI_EXPLAIN, AMPI_CHECK } ampi_goal_kind; /* CHECK: could it run? */
typedef struct ampi_goal {
    ampi_goal_kind kind;
    char *text; /* AMPI_EXPLAIN: where the sentence goes */
    size_t bytes;
} ampi_goal;
static const ampi_goal ampi_goal_run = {AMPI_RUN, NULL, 0};
static const ampi_goal ampi_goal_tune = {AMPI_TUNE, NULL, 0};
static const ampi_goal ampi_goal_check = {AMPI_CHECK, NULL, 0};

/* Elements that a batch of matrices spans: (batch - 1) * stride + (rows - 1) * ld + cols; 0 when empty, (size_t)-1 when
   too many. */
static size_t ampi_span(size_t batch, size_t stride, size_t rows, size_t ld, size_t cols) {
    const size_t most = (size_t)-1 / 8;
    size_t a, b;
    if (!batch || !rows || !cols) return 0;
    if (!ampi_product(&a, batch - 1, stride) || !ampi_product(&b, rows - 1, ld)) return (size_t)-1;
    if (a > most || b > most || cols > most || a + b + cols > most) return (size_t)-1;
    return a + b + cols;
}

static amp_status ampi_same_dtype(amp_ctx *ctx, const char *name_a, amp_array a, const char *name_b, amp_array b) {
    AMPI_REQUIRE(a.dtype == b.dtype, AMP_ERR_UNSUPPORTED, "%s is %s and %s is %s; they must have one dtype", name_a,
        amp_dtype_name(a.dtype), name_b, amp_dtype_name(b.dtype));
    return AMP_OK;
}
/* The two factors of a product: FP8 formats may mix. */
static amp_status ampi_same_factors(amp_ctx *ctx, const char *name_a, amp_array a, const char *name_b, amp_array b) {
    if (ampi_is_f8(a.dtype) && ampi_is_f8(b.dtype)) return AMP_OK;
    return ampi_same_dtype(ctx, name_a, a, name_b, b);
}

static amp_status ampi_check_pin(amp_ctx *ctx, amp_dtype pin) {
    AMPI_CHECK(pin == AMP_AUTO || pin == AMP_F32 || ampi_is_half(pin), "pin is %s; f32, f16 or bf16 is needed",
        amp_dtype_name(pin));
    return AMP_OK;
}

/* ---- one product ---- */

/* An array of a product. ld and stride are the job's: the user's before ampi_check_matrix, complete afterwards. */
typedef struct ampi_matrix {
    const char *name; /* desc.NAME, also of desc.ldNAME, desc.stride_NAME */
    amp_array *array; /* the job's */
    size_t batch;
    size_t rows, cols; /* as stored */
    size_t *ld, *stride;
    int required, output;
    const amp_act *act; /* it is kept for the backward of this act, so it may be a mask; NULL: neither */
    size_t span;        /* elements from the first to the last of all batches */
} ampi_matrix;
/* c after d, whose it may be; aux after d, whose layout it has */
enum {
    AMPI_MATRIX_A,
    AMPI_MATRIX_B,
    AMPI_MATRIX_D,
    AMPI_MATRIX_C,
    AMPI_MATRIX_BIAS,
    AMPI_MATRIX_DBIAS,
    AMPI_MATRIX_AUX,
    AMPI_MATRICES
};

/* Batches of an output follow each other, or lie side by side in the rows. */
static int ampi_batches_overlap(const ampi_matrix *x) {
    if (x->batch <= 1 || *x->stride >= ampi_span(1, 0, x->rows, *x->ld, x->cols)) return 0;
    return *x->stride < x->cols || ampi_span(1, 0, x->batch, *x->stride, x->cols) > *x->ld;
}

static amp_status ampi_check_matrix(amp_ctx *ctx, ampi_matrix *x) {
    const char *letter = x->name + sizeof "desc." - 1;
    size_t packed;
    if (!x->required && !x->array->data) return AMP_OK;
    if (*x->ld == 0) *x->ld = x->cols;
    AMPI_CHECK(*x->ld >= x->cols, "desc.ld%s is %llu, less than the %llu columns of a row", letter, AMPI_ULL(*x->ld),
        AMPI_ULL(x->cols));
    AMPI_CHECK(ampi_product(&packed, x->rows, *x->ld), "%s is too large", x->name);
    AMPI_CHECK(!x->output || *x->stride != AMP_BROADCAST,
        "desc.stride_%s may not be AMP_BROADCAST: batches would overwrite each other", letter);
    if (*x->stride == 0)
        *x->stride = packed;
    else if (*x->stride == AMP_BROADCAST)
        *x->stride = 0;
    AMPI_CHECK(!x->output || !ampi_batches_overlap(x), "desc.stride_%s is %llu: batches would overwrite each other",
        letter, AMPI_ULL(*x->stride));
    x->span = ampi_span(x->batch, *x->stride, x->rows, *x->ld, x->cols);
    AMPI_CHECK(x->span != (size_t)-1, "%s is too large", x->name);
    if (!x->act) return ampi_check_array(ctx, x->name, *x->array, x->span, x->required);
    return ampi_check_saved(ctx, x->name, *x->array, *x->act, x->span, x->batch * x->rows, x->cols, x->required);
}

/* A desc becomes a job in place, in three steps: numbers, dtypes, arrays. First the numbers: defaults, and what can be
   checked without dtypes. */
static amp_status ampi_gemm_numbers(amp_ctx *ctx, amp_gemm_job *j) {
    AMPI_HAS(gemm);
    AMPI_CHECK(AMPI_BELOW(j->act, AMP_ACT_COUNT), "desc.act is %d", (int)j->act);
    AMPI_CHECK(!j->backward || !j->bias.data, "desc.bias is not supported with desc.backward");
    AMPI_TRY(ampi_optional(ctx, "desc", "alpha", &j->alpha.value, j->alpha, 1.0f));
    AMPI_TRY(ampi_optional(ctx, "desc", "beta", &j->beta.value, j->beta, j->beta_ptr ? 1.0f : 0.0f));
    j->batch = j->batch ? j->batch : 1;
    j->sum_batches = j->sum_batches && j->batch > 1;
    j->bias_per_row = j->bias_per_row && (j->bias.data || j->dbias.data);
    j->trans_a = j->trans_a != 0;
    j->trans_b = j->trans_b != 0;
    j->backward = j->backward != 0;
    j->flags |= ctx->b->gemm_flags;
    if (j->flags & AMP_GEMM_ORDERED) j->flags &= ~AMPI_GEMM_PERMISSIONS;
    return AMP_OK;
}

/* The dtype that a product's inputs are read in: pin, or what the region wants; AMP_AUTO: as they are. Also the class
   of op. */
static amp_status ampi_wanted(
    amp_ctx *ctx, amp_op op, amp_dtype pin, amp_array a, amp_array b, amp_op_class *c, amp_dtype *want) {
    AMPI_TRY(ampi_check_pin(ctx, pin));
    *c = ampi_region_class(ctx, op, want);
    if (pin != AMP_AUTO) {
        *want = pin;
        return AMP_OK;
    }
    AMPI_REQUIRE(
        *c != AMP_CLASS_BANNED, AMP_ERR_UNSUPPORTED, "%s is banned by the policy of this region", amp_op_name(op));
    if (*want == AMP_AUTO && *c == AMP_CLASS_WIDEST && (a.dtype == AMP_F32 || b.dtype == AMP_F32)) *want = AMP_F32;
    return AMP_OK;
}

/* The dtypes, by pin and the region: *want, in which a and b are read (AMP_AUTO: as they are); of an automatic d, which
   is c's where that is read; of an automatic aux, which is d's. */
static amp_status ampi_gemm_dtypes(amp_ctx *ctx, amp_gemm_job *j, amp_dtype *want) {
    const amp_op op = j->batch > 1 ? AMP_OP_BMM : AMP_OP_MATMUL;
    const int reads_c = ampi_nonzero(j->beta.value);
    amp_op_class c;
    AMPI_TRY(ampi_wanted(ctx, op, j->pin, j->a, j->b, &c, want));
    if (j->d.data && j->d.dtype == AMP_AUTO) {
        AMPI_CHECK(j->d_dtype, "desc.d.dtype is auto, but desc.d_dtype is NULL: the choice must be returned");
        AMPI_CHECK(
            !reads_c || j->c.data, "desc.d.dtype is auto, but with beta its contents are read: their dtype is needed");
        if (reads_c)
            j->d.dtype = j->c.dtype;
        else if (*want == AMP_AUTO || ampi_is_f8(j->a.dtype))
            j->d.dtype = c == AMP_CLASS_F32_OUT ? AMP_F32 : j->a.dtype;
        else
            j->d.dtype = j->pin != AMP_AUTO ? *want : amp_autocast_output(ctx, op, *want);
    }
    if (j->aux.data && j->aux.dtype == AMP_AUTO) j->aux.dtype = j->d.dtype;
    return AMP_OK;
}

/* Numbers in memory: aligned, and those of FP8 only where there is FP8. */
static amp_status ampi_check_scalars(amp_ctx *ctx, const amp_gemm_job *j) {
    const struct {
        const char *name;
        const float *p;
        const amp_array *of; /* it is for FP8 elements of this array; NULL: for any */
    } scalar[6] = {
        {"desc.alpha_ptr", j->alpha_ptr, NULL},
        {"desc.beta_ptr", j->beta_ptr, NULL},
        {"desc.scale_a", j->scale_a, &j->a},
        {"desc.scale_b", j->scale_b, &j->b},
        {"desc.scale_d", j->scale_d, &j->d},
        {"desc.amax_d", j->amax_d, &j->d},
    };
    size_t i;
    if (!j->alpha_ptr && !j->beta_ptr && !j->scale_a && !j->scale_b && !j->scale_d && !j->amax_d) return AMP_OK;
    for (i = 0; i < 6; i++) {
        const int fits = !scalar[i].p || !scalar[i].of || ampi_is_f8(scalar[i].of->dtype);
        AMPI_CHECK(fits, "%s is for FP8 only", scalar[i].name);
        AMPI_TRY(ampi_check_words(ctx, scalar[i].name, scalar[i].p));
        AMPI_CHECK(i == 5 || !j->amax_d || scalar[i].p != j->amax_d, "desc.amax_d is %s", scalar[i].name);
    }
    return AMP_OK;
}

/* The arrays, x, get their leading dimensions and strides; a c that is not given is d. All are checked, and what is not
   read is not there afterwards. */
static amp_status ampi_gemm_arrays(amp_ctx *ctx, amp_gemm_job *j, ampi_matrix x[AMPI_MATRICES]) {
    size_t i;
    if (!j->c.data) {
        j->c = j->d;
        if (!j->ldc) j->ldc = j->ldd;
        if (!j->stride_c) j->stride_c = j->stride_d;
    }
    for (i = 0; i < AMPI_MATRICES; i++)
        AMPI_TRY(ampi_check_matrix(ctx, &x[i]));
    AMPI_CHECK(!j->dbias.data || (x[AMPI_MATRIX_D].batch == 1 && j->ldd == j->n),
        "desc.dbias needs desc.batch 1 and a packed desc.d");
    if (j->act == AMP_ACT_NONE && j->backward) {
        j->backward = 0;
        j->aux.data = NULL;
    }
    if (!ampi_nonzero(j->beta.value)) {
        j->c.data = NULL;
        j->ldc = j->ldd;
        j->stride_c = j->stride_d;
        j->beta_ptr = NULL;
    }
    j->d_dtype = NULL;
    j->pin = AMP_AUTO;
    return AMP_OK;
}

/* Outputs may overlap nothing, but c may be d. */
static amp_status ampi_gemm_overlaps(
    amp_ctx *ctx, const amp_gemm_job *j, const ampi_matrix x[AMPI_MATRICES], ampi_extent r[AMPI_MATRICES + 1]) {
    const int one = x[AMPI_MATRIX_D].batch == 1 || j->stride_c == j->stride_d;
    size_t i;
    for (i = 0; i < AMPI_MATRICES; i++)
        r[i] = ampi_saved_extent(
            x[i].name, *x[i].array, x[i].span, x[i].batch * x[i].rows, x[i].cols, !x[i].output, x[i].output);
    r[AMPI_MATRIX_C].name = "desc.c (only the same matrix is allowed)";
    if (j->c.data == j->d.data && j->ldc == j->ldd && one) r[AMPI_MATRIX_C].bytes = 0;
    r[AMPI_MATRICES] = ampi_extent_of("desc.amax_d", amp_arr(j->amax_d, AMP_F32), 1, 0, 1);
    return ampi_check_extents(ctx, r, AMPI_MATRICES + 1);
}

/* A product without elements: its column sums are 0. */
static amp_status ampi_gemm_empty(amp_ctx *ctx, const amp_gemm_job *j, const ampi_goal *goal) {
    const size_t bytes = j->dbias.data ? amp_gemm_biases(j) * amp_dtype_size(j->dbias.dtype) : 0;
    if (goal->kind == AMPI_EXPLAIN) snprintf(goal->text, goal->bytes, "nothing to do");
    if (goal->kind != AMPI_RUN || !bytes) return AMP_OK;
    ampi_wrote(ctx, j->dbias.data, bytes);
    return (ctx->b->zero)(ctx, j->dbias.data, bytes);
}

/* A product whose numbers and dtypes are known; a and b are read as `want`. */
static amp_status ampi_gemm(amp_ctx *ctx, amp_gemm_job *j, amp_dtype want, const ampi_goal *goal) {
    const ampi_reader reader = goal->kind == AMPI_EXPLAIN ? AMPI_PLAN : AMPI_FORWARD;
    const size_t rows_a = j->trans_a ? j->k : j->m; /* as stored; the other extent is its columns */
    const size_t rows_b = j->trans_b ? j->n : j->k;
    const size_t outputs = amp_gemm_outputs(j), biases = amp_gemm_biases(j);
    const int reads_aux = j->backward && j->act != AMP_ACT_NONE;
    size_t line = 0, lines = 0; /* of a bias: one packed row */
    ampi_matrix x[AMPI_MATRICES] = {
        {"desc.a", &j->a, j->batch, rows_a, j->m + j->k - rows_a, &j->lda, &j->stride_a, 1, 0, NULL, 0},
        {"desc.b", &j->b, j->batch, rows_b, j->n + j->k - rows_b, &j->ldb, &j->stride_b, 1, 0, NULL, 0},
        {"desc.d", &j->d, outputs, j->m, j->n, &j->ldd, &j->stride_d, 1, 1, NULL, 0},
        {"desc.c", &j->c, outputs, j->m, j->n, &j->ldc, &j->stride_c, 1, 0, NULL, 0},
        {"desc.bias", &j->bias, 1, 1, biases, &line, &lines, 0, 0, NULL, 0},
        {"desc.dbias", &j->dbias, 1, 1, biases, &line, &lines, 0, 1, NULL, 0},
        {"desc.aux", &j->aux, outputs, j->m, j->n, &j->ldd, &j->stride_d, reads_aux, !j->backward, &j->act, 0},
    };
    ampi_extent r[AMPI_MATRICES + 1];
    size_t i;
    AMPI_TRY(ampi_check_scalars(ctx, j));
    AMPI_TRY(ampi_gemm_arrays(ctx, j, x));
    for (i = AMPI_MATRIX_A; i <= AMPI_MATRIX_B; i++)
        AMPI_TRY(ampi_operand(ctx, *x[i].array, x[i].span, want, reader, x[i].array));
    if (j->m == 0 || j->n == 0) return ampi_gemm_empty(ctx, j, goal);
    if (j->k) AMPI_TRY(ampi_same_factors(ctx, "desc.a", j->a, "desc.b", j->b));
    if (j->c.data) AMPI_TRY(ampi_same_dtype(ctx, "desc.c", j->c, "desc.d", j->d));
    AMPI_TRY(ampi_gemm_overlaps(ctx, j, x, r));
    if (!ampi_nonzero(j->alpha.value)) { /* a and b are not read, whatever they and the other factors are */
        j->k = 0;
        j->alpha_ptr = j->scale_a = j->scale_b = NULL;
    }
    for (i = 0; i <= AMPI_MATRICES && goal->kind == AMPI_RUN; i++)
        if (r[i].write) ampi_wrote(ctx, r[i].data, r[i].bytes);
    switch (goal->kind) {
    case AMPI_RUN: return (ctx->b->gemm)(ctx, j);
    case AMPI_TUNE: return ctx->b->gemm_tune ? (ctx->b->gemm_tune)(ctx, j) : AMP_OK;
    case AMPI_EXPLAIN:
    case AMPI_CHECK: return (ctx->b->gemm_explain)(ctx, goal->text, goal->bytes, j);
    }
    return AMP_OK;
}

/* A product of a layer, whose dtypes are given: in its sentences the desc is amp_gemm's. */
static amp_status ampi_gemm_inside(amp_ctx *ctx, amp_gemm_desc *d, const ampi_goal *goal) {
    amp_status st;
    ctx->inside = "amp_gemm: ";
    st = ampi_gemm_numbers(ctx, d);
    if (st == AMP_OK) st = ampi_gemm(ctx, d, AMP_AUTO, goal);
    ctx->inside = NULL;
    return st;
}

/* amp_gemm and its relatives: in a scope, or with automatic dtypes */
static amp_status ampi_gemm_scoped(amp_ctx *ctx, const amp_gemm_desc *desc, const ampi_goal *goal) {
    amp_gemm_job j;
    amp_dtype want;
    ampi_mark mark;
    amp_status st;
    AMPI_CHECK_DESC(desc);
    AMPI_CHECK(!(desc->flags & ~AMPI_GEMM_FLAGS), "desc.flags has an unknown bit");
    j = *desc;
    AMPI_TRY(ampi_gemm_numbers(ctx, &j));
    AMPI_TRY(ampi_gemm_dtypes(ctx, &j, &want));
    mark = ampi_scope_mark(ctx);
    st = ampi_gemm(ctx, &j, want, goal);
    if (st == AMP_OK && desc->d_dtype) *desc->d_dtype = j.d.dtype;
    ampi_scope_pop(ctx, mark);
    return st;
}
AMP_API amp_status amp_gemm(amp_ctx *ctx, const amp_gemm_desc *desc) {
    AMP_VERB(ctx, "amp_gemm", ampi_gemm_scoped(ctx, desc, &ampi_goal_run));
}
AMP_API amp_status amp_gemm_tune(amp_ctx *ctx, const amp_gemm_desc *desc) {
    AMP_VERB(ctx, "amp_gemm_tune", ampi_gemm_scoped(ctx, desc, &ampi_goal_tune));
}
static amp_status ampi_do_gemm_explain(amp_ctx *ctx, char *text, size_t bytes, const amp_gemm_desc *desc) {
    const ampi_goal goal = {AMPI_EXPLAIN, text, bytes};
    amp_status st;
    char first;
    AMPI_CHECK(text && bytes, "text is NULL, or bytes is 0");
    first = text[0];
    text[0] = 0;
    st = ampi_gemm_scoped(ctx, desc, &goal);
    if (st != AMP_OK) text[0] = first;
    return st;
}
AMP_API amp_status amp_gemm_explain(amp_ctx *ctx, char *text, size_t bytes, const amp_gemm_desc *desc) {
    AMPI_VERB(ctx, gemm_explain, (ctx, text, bytes, desc));
}

/* ---- layers: forward and backward as products, their dtypes, FP8 copies and chains.
   tests: tests/test_products.c, tests/test_layers.c, tests/test_paths.c, tests/test_fp8.c, tests/test_product_table.c
   ---- */

/* A factor of a layer's products, as made by ampi_plain_factor or ampi_fp8_factor. */
typedef struct ampi_factor {
    amp_array array;
    const float *scale;  /* of its FP8 elements, or NULL */
    uint32_t transposed; /* 1: the array is the transpose of the layer's matrix, which is [out, in] for w */
} ampi_factor;
static ampi_factor ampi_plain_factor(amp_array array, uint32_t transposed) {
    ampi_factor f = {array, NULL, transposed};
    return f;
}

/* A layer as one of its verbs works on it. */
typedef struct ampi_layer {
    amp_linear_desc l; /* dtypes known */
    size_t nx, nw, ny; /* elements of [rows, in], [out, in], [rows, out] */
    amp_dtype want;    /* x, w and dy are read in this dtype; AMP_AUTO: as they are */
    const ampi_goal *goal;
    int fp8; /* 1: the factors are FP8 copies in l.scratch; backward's of x and w are transposed */
    ampi_factor x, w, dy, dy_by_rows; /* what the products read; the last for dw, which sums over rows */
} ampi_layer;

static int ampi_chain_fits(const amp_linear_desc *first, const amp_linear_desc *second) {
    return first->rows == second->rows && first->out == second->in;
}

/* Layers of a chain point to each other, and what one makes the next one reads. */
static amp_status ampi_check_before(amp_ctx *ctx, const amp_linear_desc *l) {
    const amp_linear_desc *b = l->before;
    if (!b) return AMP_OK;
    AMPI_REQUIRE(AMPI_CLEAN(b), AMP_ERR_UNINIT, "before is not zero-initialised");
    AMPI_CHECK(b->after == l, "before->after is not this layer: each must point to the other");
    AMPI_CHECK(ampi_chain_fits(b, l), "before makes [%llu,%llu], but this layer reads [%llu,%llu]", AMPI_ULL(b->rows),
        AMPI_ULL(b->out), AMPI_ULL(l->rows), AMPI_ULL(l->in));
    AMPI_CHECK(AMPI_BELOW(b->act, AMP_ACT_COUNT), "before->act is %d", (int)b->act);
    return AMP_OK;
}
static amp_status ampi_check_after(amp_ctx *ctx, const amp_linear_desc *l) {
    const amp_linear_desc *a = l->after;
    if (!a) return AMP_OK;
    AMPI_REQUIRE(AMPI_CLEAN(a), AMP_ERR_UNINIT, "after is not zero-initialised");
    AMPI_CHECK(a->before == l, "after->before is not this layer: each must point to the other");
    AMPI_CHECK(ampi_chain_fits(l, a), "after reads [%llu,%llu], but this layer makes [%llu,%llu]", AMPI_ULL(a->rows),
        AMPI_ULL(a->in), AMPI_ULL(l->rows), AMPI_ULL(l->out));
    return AMP_OK;
}

/* What forward, backward and tuning check alike. */
static amp_status ampi_check_linear(amp_ctx *ctx, const amp_linear_desc *l, const ampi_goal *goal, ampi_layer *out) {
    AMPI_CHECK_DESC(l);
    AMPI_CHECK(AMPI_BELOW(l->act, AMP_ACT_COUNT), "act is %d", (int)l->act);
    AMPI_CHECK(!(l->flags & ~AMPI_GEMM_FLAGS), "flags has an unknown bit");
    AMPI_TRY(ampi_check_before(ctx, l));
    AMPI_TRY(ampi_check_after(ctx, l));
    AMPI_TRY(ampi_check_pin(ctx, l->pin));
    AMPI_CHECK(l->in && l->out, "%s is 0", l->in ? "out" : "in");
    memset(out, 0, sizeof *out);
    out->l = *l;
    out->l.w_in_out = l->w_in_out != 0;
    out->goal = goal;
    out->nx = ampi_span(1, 0, l->rows, l->in, l->in);
    out->nw = ampi_span(1, 0, l->out, l->in, l->in);
    out->ny = ampi_span(1, 0, l->rows, l->out, l->out);
    AMPI_CHECK(out->nx != (size_t)-1 && out->nw != (size_t)-1 && out->ny != (size_t)-1,
        "rows %llu, in %llu or out %llu is too large", AMPI_ULL(l->rows), AMPI_ULL(l->in), AMPI_ULL(l->out));
    return AMP_OK;
}

/* an input left automatic has the dtype that the layer before gave its output */
static amp_status ampi_from(amp_ctx *ctx, const char *name, amp_array *a, const amp_precision *from) {
    if (a->dtype != AMP_AUTO || !a->data) return AMP_OK;
    AMPI_CHECK(from, "%s.dtype is auto, but from is NULL: which layer made it?", name);
    AMPI_STAGE(from->made, "%s.dtype is auto, but the layer that from points to has not run", name);
    a->dtype = from->y;
    return AMP_OK;
}

/* a bias that is an FP32 parameter with a model copy in the product's dtype: that copy */
static amp_array ampi_bias(const amp_ctx *ctx, amp_array bias, amp_dtype want) {
    const amp_params *set = NULL;
    const amp_param_entry *e = NULL;
    size_t at = 0;
    if (bias.data && bias.dtype == AMP_F32 && want != AMP_AUTO) e = ampi_find_weight(ctx, bias.data, &set, &at);
    bias.flags = 0;
    if (e && e->model && e->model_dtype == want) {
        bias.data = (char *)e->model + at * amp_dtype_size(want);
        bias.dtype = want;
    }
    return bias;
}

/* ---- a layer in FP8 ---- */

/* Does its forward quantise? c: the class of the linear operation here. */
static int ampi_wants_fp8(const amp_ctx *ctx, const amp_linear_desc *l, amp_op_class c) {
    const ampi_region *r = ampi_region_of(ctx);
    if (!l->fp8 || l->pin != AMP_AUTO) return 0;
    if (!r || r->outside) return 1;
    if (!r->enabled || r->pin != AMP_AUTO) return 0;
    return r->policy.preset == AMP_PRESET_FP8 && c == AMP_CLASS_LOWER;
}
static amp_dtype ampi_fp8_dtype(const amp_linear_desc *l, size_t which) {
    return which < 2 ? l->fp8->desc.forward : l->fp8->desc.backward;
}
static amp_status ampi_check_fp8(amp_ctx *ctx, const amp_linear_desc *l) {
    AMPI_CHECK(l->fp8->ctx == ctx, "fp8 belongs to a different context");
    AMPI_CHECK(l->fp8->desc.tensors >= 3 && l->fp8_first <= l->fp8->desc.tensors - 3,
        "fp8_first is %llu, but fp8 has %lu tensors: three from there on are needed", AMPI_ULL(l->fp8_first),
        (unsigned long)l->fp8->desc.tensors);
    AMPI_TRY(ampi_check_source(ctx, "x", l->x));
    return ampi_check_source(ctx, "w", l->w);
}
/* The FP8 copy of x, w or dy (number 0, 1 and 2 of the layer's tensors) in the scratch memory, from *at on. */
static ampi_factor ampi_fp8_factor(const amp_linear_desc *l, size_t which, uint32_t transposed, size_t n, size_t *at) {
    char *scratch = (char *)l->scratch;
    ampi_factor f;
    f.array = amp_arrn(scratch ? scratch + *at : NULL, ampi_fp8_dtype(l, which), n);
    f.scale = amp_fp8_inverse_ptr(l->fp8, l->fp8_first + which);
    f.transposed = transposed;
    *at += (size_t)ampi_round256(n);
    return f;
}
static amp_status ampi_fp8_factors(amp_ctx *ctx, ampi_layer *layer, uint32_t backward) {
    const amp_linear_desc *l = &layer->l;
    size_t at = 0;
    layer->fp8 = 1;
    layer->x = ampi_fp8_factor(l, 0, backward, layer->nx, &at);
    layer->w = ampi_fp8_factor(l, 1, backward, layer->nw, &at);
    if (backward) {
        layer->dy = ampi_fp8_factor(l, 2, 0, layer->ny, &at);
        layer->dy_by_rows = ampi_fp8_factor(l, 2, 1, layer->ny, &at);
    }
    AMPI_CHECK(l->scratch && at <= l->scratch_bytes, "scratch has %llu bytes, but the FP8 copies need %llu",
        AMPI_ULL(l->scratch ? l->scratch_bytes : 0), AMPI_ULL(at));
    AMPI_CHECK(((uintptr_t)l->scratch & 15u) == 0, "scratch is not aligned to 16 bytes");
    return AMP_OK;
}
/* Scratch is memory of its own. */
static amp_status ampi_fp8_extents(amp_ctx *ctx, const ampi_layer *layer, int backward) {
    const amp_linear_desc *l = &layer->l;
    ampi_extent r[10];
    size_t n = 5;
    r[0] = ampi_extent_of("scratch", amp_arr(l->scratch, AMP_F8E4M3), l->scratch_bytes, 0, 1);
    r[1] = ampi_extent_of("x", l->x, layer->nx, 1, 0);
    r[2] = ampi_extent_of("w", l->w, layer->nw, 1, 0);
    r[3] = ampi_extent_of("y", l->y, layer->ny, 1, 0);
    r[4] = ampi_saved_extent("aux", l->aux, layer->ny, l->rows, l->out, 1, 0);
    if (backward) {
        r[n++] = ampi_extent_of("dbias", l->dbias, l->out, 1, 0);
        r[n++] = ampi_extent_of("dy", l->dy, layer->ny, 1, 0);
        r[n++] = ampi_extent_of("dx", l->dx, layer->nx, 1, 0);
        r[n++] = ampi_extent_of("dw", l->dw, layer->nw, 1, 0);
        if (l->before) r[n++] = ampi_extent_of("before->dbias", l->before->dbias, l->in, 1, 0);
    } else {
        r[n++] = ampi_extent_of("bias", l->bias, l->out, 1, 0);
    }
    return ampi_check_extents(ctx, r, n);
}
/* The cast of x, w or dy. */
static amp_quantize_job ampi_fp8_cast(
    const amp_linear_desc *l, size_t which, amp_array from, size_t rows, size_t cols) {
    amp_quantize_job j = ampi_fp8_job(l->fp8, l->fp8_first + which, ampi_fp8_dtype(l, which));
    j.src = from;
    j.rows = rows;
    j.cols = cols;
    return j;
}
/* That of w: from the order in which it is stored to the one in which products read it. */
static amp_quantize_job ampi_fp8_cast_w(const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    const size_t rows = l->w_in_out ? l->in : l->out;
    amp_quantize_job w = ampi_fp8_cast(l, 1, l->w, rows, l->in + l->out - rows);
    if (l->w_in_out == layer->w.transposed)
        w.dst = layer->w.array;
    else
        w.dst_t = layer->w.array;
    return w;
}
static amp_status ampi_fp8_forward(amp_ctx *ctx, const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    amp_quantize_job x = ampi_fp8_cast(l, 0, l->x, l->rows, l->in), w = ampi_fp8_cast_w(layer);
    if (!layer->ny) return AMP_OK;
    x.dst = layer->x.array;
    x.keep = w.keep = l->fp8_keep != 0;
    AMPI_TRY((ctx->b->quantize)(ctx, &x));
    return (ctx->b->quantize)(ctx, &w);
}
/* For dw = dy^T x both transposed; for dx = dy w the weights. */
static amp_status ampi_fp8_backward(amp_ctx *ctx, const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    amp_quantize_job x = ampi_fp8_cast(l, 0, l->x, l->rows, l->in), w = ampi_fp8_cast_w(layer);
    amp_quantize_job dy = ampi_fp8_cast(l, 2, l->dy, l->rows, l->out);
    if (!layer->ny || !(l->dw.data || l->dx.data)) return AMP_OK;
    x.dst_t = layer->x.array;
    x.keep = w.keep = 1;
    if (l->dx.data) dy.dst = layer->dy.array;
    if (l->dw.data) dy.dst_t = layer->dy_by_rows.array;
    if (l->dw.data) AMPI_TRY((ctx->b->quantize)(ctx, &x));
    if (l->dx.data) AMPI_TRY((ctx->b->quantize)(ctx, &w));
    return (ctx->b->quantize)(ctx, &dy);
}

/* The dtype of an automatic y, whose product reads its operands in `used`. */
static amp_dtype ampi_linear_output(const amp_ctx *ctx, const ampi_layer *layer, amp_op_class c, amp_dtype used) {
    if (layer->l.pin != AMP_AUTO) return used;
    if (layer->want != AMP_AUTO) return amp_autocast_output(ctx, AMP_OP_LINEAR, used);
    return c == AMP_CLASS_F32_OUT ? AMP_F32 : used;
}

/* Does the scope cast what backward, which may run outside of it, would read as it is? */
static int ampi_scope_casts(const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    if (l->pin != AMP_AUTO) return 0;
    return ampi_needs_cast(l->x, layer->nx, layer->want) || ampi_needs_cast(l->w, layer->nw, layer->want);
}
/* Forward's dtypes, from the layer before, the scope and pin. */
static amp_status ampi_forward_dtypes(amp_ctx *ctx, ampi_layer *layer, amp_precision *made) {
    amp_linear_desc *l = &layer->l;
    amp_op_class c;
    AMPI_TRY(ampi_from(ctx, "x", &l->x, l->from));
    AMPI_TRY(ampi_wanted(ctx, AMP_OP_LINEAR, l->pin, l->x, l->w, &c, &layer->want));
    made->x = l->x.dtype;
    made->used = layer->want == AMP_AUTO || ampi_is_f8(l->x.dtype) ? l->x.dtype : layer->want;
    made->made = 1;
    if (l->y.data && l->y.dtype == AMP_AUTO) {
        AMPI_CHECK(l->record, "y.dtype is auto, but record is NULL: the choice must be returned");
        l->y.dtype = ampi_linear_output(ctx, layer, c, made->used);
    }
    if (l->aux.data && l->aux.dtype == AMP_AUTO) l->aux.dtype = l->y.dtype;
    made->y = l->y.dtype;
    if (!ampi_wants_fp8(ctx, l, c)) {
        AMPI_CHECK(l->record || !(l->dx.data || l->dw.data) || !ampi_scope_casts(layer),
            "the scope has x and w read as %s, but record is NULL, so backward, for dx or dw, would read them as they "
            "are: point .record to an amp_precision beside the layer",
            amp_dtype_name(layer->want));
        return AMP_OK;
    }
    AMPI_TRY(ampi_check_fp8(ctx, l));
    made->used = l->fp8->desc.forward;
    return ampi_fp8_factors(ctx, layer, 0);
}

/* The factors of a product: a as it is or transposed, b likewise, on top of how they lie in memory. */
static void ampi_put_factors(amp_gemm_desc *g, ampi_factor a, uint32_t trans_a, ampi_factor b, uint32_t trans_b) {
    g->a = a.array;
    g->b = b.array;
    g->scale_a = a.scale;
    g->scale_b = b.scale;
    g->trans_a = trans_a ^ a.transposed;
    g->trans_b = trans_b ^ b.transposed;
}

static amp_status ampi_forward_factors(amp_ctx *ctx, ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    if (layer->fp8) return AMP_OK;
    layer->x = ampi_plain_factor(l->x, 0);
    layer->w = ampi_plain_factor(l->w, l->w_in_out);
    AMPI_TRY(ampi_operand(ctx, l->x, layer->nx, layer->want, AMPI_FORWARD, &layer->x.array));
    AMPI_TRY(ampi_operand(ctx, l->w, layer->nw, layer->want, AMPI_FORWARD, &layer->w.array));
    return layer->ny ? ampi_same_factors(ctx, "x", layer->x.array, "w", layer->w.array) : AMP_OK;
}
/* Y[rows,out] = act(X[rows,in] W^T[in,out] + bias) */
static amp_status ampi_forward_product(amp_ctx *ctx, const ampi_layer *layer, const ampi_goal *goal) {
    const amp_linear_desc *l = &layer->l;
    amp_gemm_desc g = AMP_ZERO;
    ampi_put_factors(&g, layer->x, 0, layer->w, 1);
    g.act = l->act;
    g.m = l->rows;
    g.n = l->out;
    g.k = l->in;
    g.d = l->y;
    g.bias = ampi_bias(ctx, l->bias, layer->want);
    g.aux = l->aux;
    g.flags = l->flags;
    return ampi_gemm_inside(ctx, &g, goal);
}
/* FP8: what can be refused comes before the casts, which move the scales. */
static amp_status ampi_forward_run(amp_ctx *ctx, ampi_layer *layer) {
    AMPI_TRY(ampi_forward_factors(ctx, layer));
    if (layer->fp8 && layer->goal->kind == AMPI_RUN) {
        AMPI_TRY(ampi_fp8_extents(ctx, layer, 0));
        AMPI_TRY(ampi_forward_product(ctx, layer, &ampi_goal_check));
        AMPI_TRY(ampi_fp8_forward(ctx, layer));
    }
    return ampi_forward_product(ctx, layer, layer->goal);
}

/* What the product would refuse, in the layer's own names. */
static amp_status ampi_forward_extents(amp_ctx *ctx, const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    const ampi_extent r[5] = {
        ampi_extent_of("y", l->y, layer->ny, 0, 1),
        ampi_extent_of("x", l->x, layer->nx, 1, 0),
        ampi_extent_of("w", l->w, layer->nw, 1, 0),
        ampi_extent_of("bias", l->bias, l->out, 1, 0),
        ampi_saved_extent("aux", l->aux, layer->ny, l->rows, l->out, 0, 1),
    };
    return ampi_check_extents(ctx, r, 5);
}
static int ampi_aux_fits(const amp_linear_desc *l) {
    return l->aux.dtype == l->y.dtype || l->aux.dtype == AMP_MASK || ampi_is_f8(l->aux.dtype);
}
static amp_status ampi_forward(amp_ctx *ctx, const amp_linear_desc *desc, const ampi_goal *goal) {
    ampi_layer layer;
    amp_precision made = AMP_ZERO;
    ampi_mark mark;
    amp_status st;
    AMPI_TRY(ampi_check_linear(ctx, desc, goal, &layer));
    AMPI_TRY(ampi_forward_dtypes(ctx, &layer, &made));
    AMPI_TRY(ampi_check_array(ctx, "x", layer.l.x, layer.nx, 1));
    AMPI_TRY(ampi_check_array(ctx, "w", layer.l.w, layer.nw, 1));
    AMPI_TRY(ampi_check_array(ctx, "bias", layer.l.bias, layer.l.out, 0));
    AMPI_TRY(ampi_check_array(ctx, "y", layer.l.y, layer.ny, 1));
    AMPI_TRY(ampi_check_saved(ctx, "aux", layer.l.aux, layer.l.act, layer.ny, layer.l.rows, layer.l.out, 0));
    AMPI_CHECK(!layer.l.aux.data || ampi_aux_fits(&layer.l), "aux is %s, but y is %s",
        amp_dtype_name(layer.l.aux.dtype), amp_dtype_name(layer.l.y.dtype));
    AMPI_TRY(ampi_forward_extents(ctx, &layer));
    mark = ampi_scope_mark(ctx);
    st = ampi_forward_run(ctx, &layer);
    if (st == AMP_OK && desc->record) *desc->record = made;
    ampi_scope_pop(ctx, mark);
    return st;
}

/* What an activation's derivative reads. */
static int ampi_saves_aux(const amp_linear_desc *l) {
    return ampi_act_reads_aux(l->act) || (l->act == AMP_RELU && l->aux.data && l->aux.dtype == AMP_MASK);
}
static amp_array ampi_saved(const amp_linear_desc *l) { return ampi_saves_aux(l) ? l->aux : l->y; }

/* Backward's dtypes: what forward used, by its record (PyTorch's custom_bwd). */
static amp_status ampi_backward_dtypes(amp_ctx *ctx, ampi_layer *layer) {
    amp_linear_desc *l = &layer->l;
    const amp_precision *r = l->record;
    layer->want = l->pin;
    if (r) {
        AMPI_STAGE(r->made, "record is empty: amp_linear_forward has not run");
        layer->want = r->used;
        if (l->x.dtype == AMP_AUTO) l->x.dtype = r->x;
        if (l->y.dtype == AMP_AUTO) l->y.dtype = r->y;
        if (l->aux.dtype == AMP_AUTO) l->aux.dtype = r->y;
        if (l->dy.dtype == AMP_AUTO) l->dy.dtype = r->y;
        if (l->dx.dtype == AMP_AUTO) l->dx.dtype = r->x;
    }
    AMPI_TRY(ampi_from(ctx, "x", &l->x, l->from));
    if (!l->fp8) return AMP_OK;
    if (r && !ampi_is_f8(r->used)) return AMP_OK;
    if (!r && l->pin != AMP_AUTO) return AMP_OK;
    AMPI_TRY(ampi_check_fp8(ctx, l));
    AMPI_TRY(ampi_check_source(ctx, "dy", l->dy));
    return ampi_fp8_factors(ctx, layer, 1);
}

/* What the layer before left for its derivative; data NULL: it has no act. */
static amp_array ampi_saved_before(const amp_linear_desc *l) {
    const amp_linear_desc *b = l->before;
    amp_array none = AMP_ZERO, saved;
    if (!b || b->act == AMP_ACT_NONE) return none;
    saved = ampi_saved(b);
    if (saved.dtype == AMP_AUTO && b->record) saved.dtype = b->record->y;
    return saved;
}
static amp_status ampi_check_backward_chain(amp_ctx *ctx, const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l, *b = l->before;
    if (!b) return AMP_OK;
    if (b->act != AMP_ACT_NONE)
        AMPI_TRY(ampi_check_saved(ctx, ampi_saves_aux(b) ? "before->aux" : "before->y", ampi_saved_before(l), b->act,
            layer->nx, l->rows, l->in, l->dx.data != NULL));
    AMPI_TRY(ampi_check_array(ctx, "before->dbias", b->dbias, l->in, 0));
    AMPI_CHECK(l->dx.data, "dx is NULL, but before waits for it");
    return AMP_OK;
}
static amp_status ampi_check_backward(amp_ctx *ctx, const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    AMPI_TRY(ampi_check_backward_chain(ctx, layer));
    AMPI_TRY(ampi_check_array(ctx, "dy", l->dy, layer->ny, 1));
    AMPI_TRY(ampi_check_array(ctx, "dx", l->dx, layer->nx, 0));
    AMPI_TRY(ampi_check_array(ctx, "dw", l->dw, layer->nw, 0));
    AMPI_TRY(ampi_check_array(ctx, "dbias", l->dbias, l->out, 0));
    if (l->act != AMP_ACT_NONE && !l->after)
        AMPI_TRY(ampi_check_saved(
            ctx, ampi_saves_aux(l) ? "aux" : "y", ampi_saved(l), l->act, layer->ny, l->rows, l->out, 1));
    if (l->dx.data) AMPI_TRY(ampi_check_array(ctx, "w", l->w, layer->nw, 1));
    if (l->dw.data) AMPI_TRY(ampi_check_array(ctx, "x", l->x, layer->nx, 1));
    return AMP_OK;
}

/* Factors as forward's product read them, and room for dy in that dtype. */
static amp_status ampi_backward_factors(amp_ctx *ctx, ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    if (layer->fp8) return AMP_OK;
    layer->x = ampi_plain_factor(l->x, 0);
    layer->w = ampi_plain_factor(l->w, l->w_in_out);
    layer->dy = ampi_plain_factor(l->dy, 0);
    if (layer->want != AMP_AUTO) {
        if (l->dw.data) AMPI_TRY(ampi_operand(ctx, l->x, layer->nx, layer->want, AMPI_BACKWARD, &layer->x.array));
        if (l->dx.data) AMPI_TRY(ampi_operand(ctx, l->w, layer->nw, layer->want, AMPI_BACKWARD, &layer->w.array));
        if (layer->ny && l->dy.dtype != layer->want && !ampi_is_f8(l->dy.dtype)) {
            char *to = NULL;
            AMPI_TRY(ampi_scope_room(ctx, layer->ny * amp_dtype_size(layer->want), 0, &to));
            layer->dy.array = amp_arrn(to, layer->want, layer->ny);
        }
    }
    layer->dy_by_rows = layer->dy;
    if (layer->ny && l->dx.data) AMPI_TRY(ampi_same_factors(ctx, "dy", layer->dy.array, "w", layer->w.array));
    if (layer->ny && l->dw.data) AMPI_TRY(ampi_same_factors(ctx, "dy", layer->dy.array, "x", layer->x.array));
    return AMP_OK;
}
/* Do the products read a cast of dy in one of their dtypes? */
static int ampi_casts_dy(const ampi_layer *layer) { return !layer->fp8 && layer->dy.array.data != layer->l.dy.data; }

static amp_status ampi_bias_grad(amp_ctx *ctx, const amp_bias_grad_job *j) {
    if (j->act != AMP_ACT_NONE) ampi_wrote_array(ctx, j->dy, j->rows * j->cols);
    ampi_wrote_array(ctx, j->dbias, j->cols);
    return (ctx->b->bias_grad)(ctx, j);
}
/* dy through the activation, in place, to the products' dtype, and its column sums; a layer with `after` leaves act and
   dbias there. */
static amp_status ampi_gradient_before_act(amp_ctx *ctx, const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    const amp_array none = AMP_ZERO, dbias = l->after ? none : l->dbias;
    amp_bias_grad_job j = AMP_ZERO;
    amp_cast_desc c = AMP_ZERO;
    int cast = ampi_casts_dy(layer);
    if (!layer->ny) {
        if (!dbias.data || l->accumulate) return AMP_OK;
        ampi_wrote_array(ctx, dbias, l->out);
        return (ctx->b->zero)(ctx, dbias.data, l->out * amp_dtype_size(dbias.dtype));
    }
    j.dy = l->dy;
    j.saved = ampi_saved(l);
    j.rows = l->rows;
    j.cols = j.ld = l->out;
    j.step = 1;
    j.act = l->after ? AMP_ACT_NONE : l->act;
    j.accumulate = l->accumulate != 0;
    if (!cast) j.dbias = dbias;
    if (j.act != AMP_ACT_NONE || j.dbias.data) AMPI_TRY(ampi_bias_grad(ctx, &j));
    if (!cast) return AMP_OK;
    AMPI_TRY((ctx->b->cast)(ctx, layer->dy.array, l->dy, layer->ny, &c));
    ctx->scope->info.casts++;
    if (!dbias.data) return AMP_OK;
    j.dy = layer->dy.array; /* what the products read is what is summed */
    j.act = AMP_ACT_NONE;
    j.dbias = dbias;
    return ampi_bias_grad(ctx, &j);
}

/* dW[out,in] = dY^T[out,rows] X[rows,in], or its transpose, X^T dY */
static amp_status ampi_weight_gradient(amp_ctx *ctx, const ampi_layer *layer, const ampi_goal *goal) {
    const amp_linear_desc *l = &layer->l;
    amp_gemm_desc g = AMP_ZERO;
    if (l->w_in_out)
        ampi_put_factors(&g, layer->x, 1, layer->dy_by_rows, 0);
    else
        ampi_put_factors(&g, layer->dy_by_rows, 1, layer->x, 0);
    g.m = l->w_in_out ? l->in : l->out;
    g.n = l->w_in_out ? l->out : l->in;
    g.k = l->rows;
    g.d = l->dw;
    g.beta = amp_opt(l->accumulate ? 1.0f : 0.0f);
    g.flags = l->flags;
    return ampi_gemm_inside(ctx, &g, goal);
}

/* dX[rows,in] = dY[rows,out] W[out,in], then through the act of the layer before */
static amp_status ampi_input_gradient(amp_ctx *ctx, const ampi_layer *layer, const ampi_goal *goal) {
    const amp_linear_desc *l = &layer->l, *b = l->before;
    amp_gemm_desc g = AMP_ZERO;
    amp_bias_grad_job j = AMP_ZERO;
    ampi_put_factors(&g, layer->dy, 0, layer->w, 0);
    g.m = l->rows;
    g.n = l->in;
    g.k = l->out;
    g.d = l->dx;
    g.flags = l->flags;
    if (b) {
        g.act = b->act;
        g.backward = 1;
        g.aux = ampi_saved_before(l);
        if (!b->accumulate) g.dbias = b->dbias;
    }
    AMPI_TRY(ampi_gemm_inside(ctx, &g, goal));
    if (!b || !b->accumulate || !b->dbias.data || !l->rows || goal->kind != AMPI_RUN) return AMP_OK;
    j.dy = l->dx;
    j.rows = l->rows;
    j.cols = j.ld = l->in;
    j.step = 1;
    j.dbias = b->dbias;
    j.accumulate = 1;
    return ampi_bias_grad(ctx, &j);
}

static amp_status ampi_backward_products(amp_ctx *ctx, const ampi_layer *layer, const ampi_goal *goal) {
    if (layer->l.dw.data) AMPI_TRY(ampi_weight_gradient(ctx, layer, goal));
    return layer->l.dx.data ? ampi_input_gradient(ctx, layer, goal) : AMP_OK;
}
/* The stages: 1 act and dbias, 2 dw, 3 dx. */
static amp_status ampi_check_backward_extents(amp_ctx *ctx, const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l, *b = l->before;
    const amp_array none = AMP_ZERO;
    int act = l->act != AMP_ACT_NONE && !l->after;
    const amp_array x = layer->fp8 ? l->x : layer->x.array;
    const amp_array w = layer->fp8 ? l->w : layer->w.array;
    int last = ampi_casts_dy(layer) ? 1 : 3; /* 1: its cast is read */
    const char *saved = ampi_saves_aux(l) ? "aux" : "y";
    const ampi_extent r[9] = {
        ampi_extent_of("dy", l->dy, layer->ny, last, act),
        ampi_saved_extent(saved, act ? ampi_saved(l) : none, layer->ny, l->rows, l->out, 1, 0),
        ampi_extent_of("dbias", l->after ? none : l->dbias, l->out, 0, 1),
        ampi_extent_of("x", l->dw.data ? x : none, layer->nx, 2, 0),
        ampi_extent_of("dw", l->dw, layer->nw, 0, 2),
        ampi_extent_of("w", l->dx.data ? w : none, layer->nw, 3, 0),
        ampi_extent_of("dx", l->dx, layer->nx, 0, 3),
        ampi_extent_of("before->dbias", b ? b->dbias : none, l->in, 0, 3),
        ampi_saved_extent("before->aux or y", ampi_saved_before(l), layer->nx, l->rows, l->in, 3, 0),
    };
    return ampi_check_extents(ctx, r, 9);
}
/* Everything that can be refused is looked at before the first write: a call that was corrected starts from the same
   gradients. */
static amp_status ampi_backward_gradients(amp_ctx *ctx, const ampi_layer *layer) {
    if (layer->goal->kind == AMPI_RUN) {
        AMPI_TRY(ampi_check_backward_extents(ctx, layer));
        if (layer->fp8) AMPI_TRY(ampi_fp8_extents(ctx, layer, 1));
        AMPI_TRY(ampi_backward_products(ctx, layer, &ampi_goal_check));
        AMPI_TRY(ampi_gradient_before_act(ctx, layer));
        if (layer->fp8) AMPI_TRY(ampi_fp8_backward(ctx, layer));
    }
    return ampi_backward_products(ctx, layer, layer->goal);
}

static amp_status ampi_backward(amp_ctx *ctx, const amp_linear_desc *desc, const ampi_goal *goal) {
    ampi_layer layer;
    ampi_mark mark;
    amp_status st;
    AMPI_TRY(ampi_check_linear(ctx, desc, goal, &layer));
    AMPI_HAS(gemm);
    AMPI_TRY(ampi_backward_dtypes(ctx, &layer));
    AMPI_TRY(ampi_check_backward(ctx, &layer));
    mark = ampi_scope_mark(ctx);
    st = ampi_backward_factors(ctx, &layer);
    if (st == AMP_OK) st = ampi_backward_gradients(ctx, &layer);
    ampi_scope_pop(ctx, mark);
    return st;
}

AMP_API amp_status amp_linear_forward(amp_ctx *ctx, const amp_linear_desc *desc) {
    AMP_VERB(ctx, "amp_linear_forward", ampi_forward(ctx, desc, &ampi_goal_run));
}
AMP_API amp_status amp_linear_backward(amp_ctx *ctx, const amp_linear_desc *desc) {
    AMP_VERB(ctx, "amp_linear_backward", ampi_backward(ctx, desc, &ampi_goal_run));
}
static amp_status ampi_do_linear_tune(amp_ctx *ctx, const amp_linear_desc *desc) {
    ampi_layer layer;
    amp_precision was = AMP_ZERO;
    amp_status st = AMP_OK;
    AMPI_TRY(ampi_check_linear(ctx, desc, &ampi_goal_tune, &layer));
    if (desc->record) was = *desc->record;
    if (desc->y.data) st = ampi_forward(ctx, desc, &ampi_goal_tune);
    if (st == AMP_OK && (desc->dx.data || desc->dw.data)) st = ampi_backward(ctx, desc, &ampi_goal_tune);
    if (st != AMP_OK && desc->record) *desc->record = was; /* forward wrote it before backward was refused */
    return st;
}
AMP_API amp_status amp_linear_tune(amp_ctx *ctx, const amp_linear_desc *desc) {
    AMPI_VERB(ctx, linear_tune, (ctx, desc));
}

/* ---- sums of columns and activations, apart from products.   tests: tests/test_layers.c ---- */

static amp_status ampi_do_column_sums(
    amp_ctx *ctx, amp_array dst, amp_array src, size_t rows, size_t cols, size_t ld, uint32_t accumulate) {
    amp_bias_grad_job j = AMP_ZERO;
    size_t span;
    if (!ld) ld = cols;
    AMPI_CHECK(ld >= cols, "ld is %llu, less than the %llu columns of a row", AMPI_ULL(ld), AMPI_ULL(cols));
    span = ampi_span(1, 0, rows ? rows : 1, ld, cols);
    AMPI_CHECK(span != (size_t)-1, "rows %llu, cols %llu or ld is too large", AMPI_ULL(rows), AMPI_ULL(cols));
    if (!rows) span = 0;
    AMPI_TRY(ampi_check_array(ctx, "dst", dst, cols, 1));
    AMPI_TRY(ampi_check_array(ctx, "src", src, span, 1));
    AMPI_CHECK(!dst.data || !src.data ||
            !ampi_overlap(dst.data, cols * amp_dtype_size(dst.dtype), src.data, span * amp_dtype_size(src.dtype)),
        "dst overlaps src");
    AMPI_HAS(bias_grad);
    if (!cols || (!rows && accumulate)) return AMP_OK;
    ampi_wrote_array(ctx, dst, cols);
    if (!rows) return (ctx->b->zero)(ctx, dst.data, cols * amp_dtype_size(dst.dtype));
    j.dy = src;
    j.dbias = dst;
    j.rows = rows;
    j.cols = cols;
    j.ld = ld;
    j.step = 1;
    j.accumulate = accumulate != 0;
    return ampi_bias_grad(ctx, &j);
}
AMP_API amp_status amp_column_sums(
    amp_ctx *ctx, amp_array dst, amp_array src, size_t rows, size_t cols, size_t ld, uint32_t accumulate) {
    AMPI_VERB(ctx, column_sums, (ctx, dst, src, rows, cols, ld, accumulate));
}

/* Forward writes y from x, backward dx from dy and what its act reads. */
static amp_status ampi_do_activation(amp_ctx *ctx, const amp_activation_desc *d) {
    amp_activation_job j = AMP_ZERO;
    const int back = d && d->dx.data, aux = d && ampi_act_reads_aux(d->act);
    AMPI_CHECK_DESC(d);
    AMPI_CHECK(d->act != AMP_ACT_NONE && AMPI_BELOW(d->act, AMP_ACT_COUNT), "desc.act is %d", (int)d->act);
    AMPI_CHECK(back || !d->dy.data, "desc.dx.data is NULL, but desc.dy is given");
    j.act = d->act;
    j.count = d->count;
    j.in = back ? d->dy : d->x;
    j.out = back ? d->dx : d->y;
    if (j.out.dtype == AMP_AUTO) j.out.dtype = j.in.dtype;
    if (back) {
        j.saved = aux ? d->x : d->y;
        if (j.saved.dtype == AMP_AUTO) j.saved.dtype = d->x.dtype;
        AMPI_TRY(ampi_check_map(ctx, "desc.dx", j.out, "desc.dy", j.in, j.count));
        AMPI_TRY(ampi_check_map(ctx, "desc.dx", j.out, aux ? "desc.x" : "desc.y", j.saved, j.count));
    } else {
        AMPI_TRY(ampi_check_map(ctx, "desc.y", j.out, "desc.x", j.in, j.count));
    }
    AMPI_HAS(activation);
    ampi_wrote_array(ctx, j.out, j.count);
    return j.count ? (ctx->b->activation)(ctx, &j) : AMP_OK;
}
AMP_API amp_status amp_activation(amp_ctx *ctx, const amp_activation_desc *desc) {
    AMPI_VERB(ctx, activation, (ctx, desc));
}
/* ---- cross-entropy and dropout: their checks.   tests: tests/test_products.c, tests/test_paths.c ---- */

/* What can be checked without arrays. */
static amp_status ampi_check_xent(amp_ctx *ctx, const amp_xent_desc *d) {
    int right = (d->labels != NULL) + (d->labels64 != NULL) + (d->labels8 != NULL) + (d->targets.data != NULL);
    AMPI_CHECK(d->classes, "desc.classes is 0");
    AMPI_CHECK(d->classes <= 0x7fffffffu, "desc.classes is too large");
    AMPI_CHECK(!d->ld || d->ld >= d->classes, "desc.ld is %llu, less than classes %llu", AMPI_ULL(d->ld),
        AMPI_ULL(d->classes));
    AMPI_CHECK(amp_is_finite(d->smoothing) && d->smoothing >= 0.0f && d->smoothing <= 1.0f,
        "desc.smoothing is %g; it must be in [0, 1]", (double)d->smoothing);
    AMPI_CHECK(!d->rows || right || d->softmax, "desc.labels is NULL, and so are labels64, labels8 and targets");
    AMPI_CHECK(right < 2, "%d of desc.labels, labels64, labels8 and targets are given; one is needed", right);
    AMPI_CHECK(!d->softmax || !(right || d->loss || d->row_loss || d->scaler || ampi_nonzero(d->smoothing)),
        "desc.softmax is 1, so labels, targets, loss, row_loss, scaler and smoothing must be 0");
    AMPI_CHECK(!d->softmax || !d->weights.data, "desc.softmax is 1, so weights must be NULL");
    AMPI_CHECK(!d->rows || !d->loss || d->row_loss, "desc.row_loss is NULL, but desc.loss is made from it");
    return d->scaler ? ampi_check_scaler(ctx, d->scaler) : AMP_OK;
}

/* The job's arrays: dlogits may be logits, and overlap them in no other way. */
static amp_status ampi_check_logits(amp_ctx *ctx, const amp_xent_job *j) {
    const size_t span = ampi_span(1, 0, j->rows, j->ld, j->classes);
    const size_t written = j->rows ? span + j->padding : 0; /* the last row's padding, too */
    size_t logits, gradients;
    int same = j->logits.data == j->dlogits.data && j->logits.dtype == j->dlogits.dtype;
    const ampi_extent r[7] = {
        ampi_extent_of("desc.logits", j->logits, span, 1, 0),
        ampi_extent_of("desc.labels", amp_arr(j->labels, AMP_F8E4M3), j->all * j->label_bytes, 2, 0),
        ampi_extent_of("desc.targets", j->targets, span, 2, 0),
        ampi_extent_of("desc.weights", j->weights, j->classes, 2, 0),
        ampi_extent_of("desc.row_loss", amp_arr(j->row_loss, AMP_F32), j->all, 0, 1),
        ampi_extent_of("desc.loss", amp_arr(j->loss, AMP_F32), 1, 0, 1),
        ampi_extent_of("desc.dlogits", j->dlogits, written, 0, same ? 2 : 1), /* 2: not compared with logits */
    };
    AMPI_CHECK(span != (size_t)-1, "desc.rows is too large");
    AMPI_TRY(ampi_check_array(ctx, "desc.logits", j->logits, span, 1));
    AMPI_TRY(ampi_check_array(ctx, "desc.dlogits", j->dlogits, span, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.targets", j->targets, span, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.weights", j->weights, j->classes, 0));
    logits = span * amp_dtype_size(j->logits.dtype);
    gradients = j->dlogits.data ? written * amp_dtype_size(j->dlogits.dtype) : 0;
    AMPI_CHECK(same || !ampi_overlap(j->logits.data, logits, j->dlogits.data, gradients),
        "desc.dlogits overlaps desc.logits (the same array of the same dtype is allowed)");
    AMPI_TRY(ampi_check_pointer(ctx, "desc.labels", j->labels, j->label_bytes));
    AMPI_TRY(ampi_check_pointer(ctx, "desc.row_loss", j->row_loss, 4u));
    AMPI_TRY(ampi_check_pointer(ctx, "desc.loss", j->loss, 4u));
    return ampi_check_extents(ctx, r, 7);
}

/* Which of the four says what is right. */
static void ampi_xent_right(amp_xent_job *j, const amp_xent_desc *d) {
    j->targets = d->targets;
    if (d->labels) {
        j->labels = d->labels;
        j->label_bytes = 4u;
    } else if (d->labels64) {
        j->labels = d->labels64;
        j->label_bytes = 8u;
    } else if (d->labels8) {
        j->labels = d->labels8;
        j->label_bytes = 1u;
    }
    j->each = d->targets.data || (d->weights.data && ampi_nonzero(d->smoothing));
}
/* Everything but logits and dlogits. */
static amp_status ampi_xent_job_of(amp_ctx *ctx, const amp_xent_desc *desc, amp_xent_job *j) {
    AMPI_CHECK_DESC(desc);
    AMPI_TRY(ampi_check_xent(ctx, desc));
    AMPI_TRY(ampi_optional(ctx, "desc", "factor", &j->factor, desc->factor, 1.0f));
    AMPI_CHECK(amp_is_finite(j->factor), "desc.factor is not finite");
    j->all = j->rows = desc->rows;
    j->classes = desc->classes;
    j->ld = desc->ld ? desc->ld : desc->classes;
    j->weights = desc->weights;
    ampi_xent_right(j, desc);
    j->loss = desc->loss;
    j->row_loss = desc->row_loss;
    if (desc->scaler && !desc->scaler->off) j->scaler = desc->scaler->state;
    j->smoothing = desc->smoothing;
    j->softmax = desc->softmax != 0;
    j->sum = desc->sum || desc->softmax;
    return AMP_OK;
}
static amp_status ampi_do_softmax_cross_entropy(amp_ctx *ctx, const amp_xent_desc *desc) {
    amp_xent_job j = AMP_ZERO;
    size_t whole;
    AMPI_TRY(ampi_xent_job_of(ctx, desc, &j));
    j.logits = desc->logits;
    j.dlogits = desc->dlogits;
    AMPI_TRY(ampi_from(ctx, "desc.logits", &j.logits, desc->from));
    if (j.dlogits.dtype == AMP_AUTO) j.dlogits.dtype = j.logits.dtype;
    if (j.dlogits.data && ampi_product(&whole, j.rows, j.ld) && j.dlogits.count >= whole) {
        j.padding = j.ld - j.classes;
    }
    AMPI_TRY(ampi_check_logits(ctx, &j));
    ampi_wrote(ctx, j.loss, sizeof *j.loss);
    ampi_wrote(ctx, j.row_loss, j.all * sizeof *j.row_loss);
    ampi_wrote_array(ctx, j.dlogits, j.rows * j.ld);
    if (j.rows == 0) return j.loss ? (ctx->b->zero)(ctx, j.loss, sizeof *j.loss) : AMP_OK;
    AMPI_HAS(xent);
    return (ctx->b->xent)(ctx, &j);
}
AMP_API amp_status amp_softmax_cross_entropy(amp_ctx *ctx, const amp_xent_desc *desc) {
    AMPI_VERB(ctx, softmax_cross_entropy, (ctx, desc));
}

/* ---- a linear layer and its cross-entropy together, in pieces of rows.   tests: tests/test_products.c ---- */

#define AMPI_VOCABULARY_BYTES ((size_t)64 << 20) /* of a piece's logits as floats, where 256 rows have less */

/* What amp_linear_cross_entropy works with: a layer as forward and as backward see it, of one piece, and the loss. */
typedef struct ampi_vocabulary {
    ampi_layer forward, backward;
    amp_xent_job loss;
    amp_precision made;
    amp_linear_desc l; /* all rows, dtypes known; x and w as products read them, dw and dbias as they are added up */
    amp_array logits, dlogits;
    size_t chunk, piece, bytes; /* rows at a time, of which products of backward take `piece`; of scratch */
    char *scratch;              /* NULL: only the bytes are wanted */
    int32_t gradients, fp8;
} ampi_vocabulary;

/* Memory for n elements, from the scratch. */
static amp_array ampi_vocabulary_room(ampi_vocabulary *v, amp_dtype dtype, size_t n) {
    amp_array a = amp_arrn(v->scratch ? v->scratch + v->bytes : NULL, dtype, n);
    v->bytes += (size_t)ampi_round256(n * amp_dtype_size(dtype));
    return a;
}
static amp_status ampi_check_vocabulary(amp_ctx *ctx, const amp_linear_xent_desc *d) {
    const amp_linear_desc *l = &d->linear;
    const amp_xent_desc *x = &d->xent;
    AMPI_CHECK(l->act == AMP_ACT_NONE && !l->before && !l->after, "desc.linear has an act, before or after");
    AMPI_CHECK(!l->y.data && !l->aux.data && !l->dy.data && !x->logits.data && !x->dlogits.data,
        "desc.linear.y, aux, dy, desc.xent.logits and dlogits have no data here: only dtypes");
    AMPI_CHECK(!x->rows || x->rows == l->rows, "desc.xent.rows is %llu, but desc.linear.rows is %llu",
        AMPI_ULL(x->rows), AMPI_ULL(l->rows));
    AMPI_CHECK(!x->classes || x->classes == l->out, "desc.xent.classes is %llu, but desc.linear.out is %llu",
        AMPI_ULL(x->classes), AMPI_ULL(l->out));
    AMPI_CHECK(!x->ld || x->ld == l->out, "desc.xent.ld is %llu; it must be 0 or desc.linear.out", AMPI_ULL(x->ld));
    AMPI_CHECK(!x->softmax && !x->from, "desc.xent.softmax or from is given");
    return AMP_OK;
}
/* The rows of a piece. In ordered mode dw takes 256 at a time, as one product of all rows adds them up. */
static void ampi_vocabulary_rows(const amp_ctx *ctx, ampi_vocabulary *v, size_t chunk) {
    size_t fit = AMPI_VOCABULARY_BYTES / 4u / v->l.out / 256u * 256u;
    int ordered = ((v->l.flags | ctx->b->gemm_flags) & AMP_GEMM_ORDERED) != 0;
    if (!chunk) chunk = fit > 256u ? fit : 256u;
    v->chunk = chunk < v->l.rows ? chunk : v->l.rows;
    v->piece = ordered && v->chunk > 256u ? 256u : v->chunk;
}
/* The dtypes of logits and their gradient, as amp_linear_forward would choose them. */
static amp_status ampi_vocabulary_dtypes(amp_ctx *ctx, ampi_vocabulary *v, amp_dtype gradient) {
    ampi_layer layer;
    amp_linear_desc l = v->l;
    l.fp8 = NULL;
    l.record = &v->made;
    l.y.data = v; /* it would be there */
    AMPI_TRY(ampi_check_linear(ctx, &l, &ampi_goal_run, &layer));
    AMPI_TRY(ampi_forward_dtypes(ctx, &layer, &v->made));
    v->l.x = layer.l.x;
    if (v->l.dx.dtype == AMP_AUTO) v->l.dx.dtype = v->made.x;
    v->l.y.dtype = v->made.y;
    v->l.dy.dtype = gradient != AMP_AUTO ? gradient : v->made.used;
    if (v->l.fp8 && gradient == AMP_AUTO) v->l.dy.dtype = v->made.y;
    AMPI_CHECK(ampi_is_dtype(v->l.y.dtype), "desc.linear.y.dtype is %d", (int)v->l.y.dtype);
    AMPI_CHECK(ampi_is_dtype(v->l.dy.dtype), "desc.xent.dlogits.dtype is %d", (int)v->l.dy.dtype);
    return AMP_OK;
}
/* Where things lie in the scratch. */
static void ampi_vocabulary_rooms(ampi_vocabulary *v) {
    amp_linear_desc *l = &v->l;
    size_t n = v->chunk * l->out;
    v->bytes = 0;
    v->logits = ampi_vocabulary_room(v, l->y.dtype, n);
    v->dlogits = v->logits;
    if (v->gradients && l->dy.dtype != l->y.dtype) v->dlogits = ampi_vocabulary_room(v, l->dy.dtype, n);
    if (!v->gradients) v->dlogits.data = NULL;
    if (v->piece < l->rows) {
        if (l->dw.data && l->dw.dtype != AMP_F32) l->dw = ampi_vocabulary_room(v, AMP_F32, l->in * l->out);
        if (l->dbias.data && l->dbias.dtype != AMP_F32) l->dbias = ampi_vocabulary_room(v, AMP_F32, l->out);
    }
    if (!l->fp8) return;
    l->scratch = v->scratch ? v->scratch + v->bytes : NULL;
    l->scratch_bytes = (size_t)(ampi_round256(v->chunk * l->in) + ampi_round256(l->in * l->out));
    l->scratch_bytes += 2u * (size_t)ampi_round256(n);
    v->bytes += l->scratch_bytes + (size_t)ampi_round256(l->in * l->out); /* w twice */
}
/* The loss of all rows; in its sentences the desc is amp_softmax_cross_entropy's. */
static amp_status ampi_vocabulary_loss(amp_ctx *ctx, ampi_vocabulary *v, const amp_xent_desc *given) {
    amp_xent_desc x = *given;
    amp_status st;
    x.rows = v->l.rows;
    x.classes = v->l.out;
    ctx->inside = "amp_softmax_cross_entropy: ";
    st = ampi_xent_job_of(ctx, &x, &v->loss);
    ctx->inside = NULL;
    return st;
}
static amp_status ampi_vocabulary_of(amp_ctx *ctx, ampi_vocabulary *v, const amp_linear_xent_desc *d) {
    memset(v, 0, sizeof *v);
    AMPI_CHECK_DESC(d);
    AMPI_CHECK_DESC(&d->linear);
    AMPI_TRY(ampi_check_vocabulary(ctx, d));
    v->l = d->linear;
    AMPI_CHECK(v->l.in && v->l.out, "desc.linear.%s is 0", v->l.in ? "out" : "in");
    AMPI_TRY(ampi_vocabulary_loss(ctx, v, &d->xent));
    v->gradients = v->l.dx.data || v->l.dw.data || v->l.dbias.data;
    AMPI_TRY(ampi_vocabulary_dtypes(ctx, v, d->xent.dlogits.dtype));
    ampi_vocabulary_rows(ctx, v, d->chunk);
    v->scratch = (char *)d->scratch;
    ampi_vocabulary_rooms(v);
    return AMP_OK;
}

static amp_status ampi_vocabulary_arrays(amp_ctx *ctx, const ampi_vocabulary *v, const amp_linear_xent_desc *d) {
    const amp_linear_desc *l = &d->linear;
    const amp_xent_job *j = &v->loss;
    size_t nx = l->rows * l->in, nw = l->in * l->out, ny = l->rows * l->out;
    const ampi_extent r[12] = {
        ampi_extent_of("desc.scratch", amp_arr(d->scratch, AMP_F8E4M3), d->scratch_bytes, 0, 1),
        ampi_extent_of("desc.linear.x", v->l.x, nx, 1, 0),
        ampi_extent_of("desc.linear.w", l->w, nw, 1, 0),
        ampi_extent_of("desc.linear.bias", l->bias, l->out, 1, 0),
        ampi_extent_of("desc.linear.dx", v->l.dx, nx, 0, 1),
        ampi_extent_of("desc.linear.dw", l->dw, nw, 0, 1),
        ampi_extent_of("desc.linear.dbias", l->dbias, l->out, 0, 1),
        ampi_extent_of("desc.xent.labels", amp_arr(j->labels, AMP_F8E4M3), j->all * j->label_bytes, 1, 0),
        ampi_extent_of("desc.xent.targets", j->targets, ny, 1, 0),
        ampi_extent_of("desc.xent.weights", j->weights, l->out, 1, 0),
        ampi_extent_of("desc.xent.row_loss", amp_arr(j->row_loss, AMP_F32), j->all, 0, 1),
        ampi_extent_of("desc.xent.loss", amp_arr(j->loss, AMP_F32), 1, 0, 1),
    };
    AMPI_TRY(ampi_check_array(ctx, "desc.linear.x", v->l.x, nx, 1));
    AMPI_TRY(ampi_check_array(ctx, "desc.linear.w", l->w, nw, 1));
    AMPI_TRY(ampi_check_array(ctx, "desc.linear.bias", l->bias, l->out, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.linear.dx", v->l.dx, nx, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.linear.dw", l->dw, nw, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.linear.dbias", l->dbias, l->out, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.xent.targets", j->targets, ny, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.xent.weights", j->weights, l->out, 0));
    AMPI_TRY(ampi_check_pointer(ctx, "desc.xent.labels", j->labels, j->label_bytes));
    AMPI_TRY(ampi_check_pointer(ctx, "desc.xent.row_loss", j->row_loss, 4u));
    AMPI_TRY(ampi_check_pointer(ctx, "desc.xent.loss", j->loss, 4u));
    AMPI_CHECK(!v->bytes || (d->scratch && d->scratch_bytes >= v->bytes),
        "desc.scratch has %llu bytes, but %llu are needed", AMPI_ULL(d->scratch ? d->scratch_bytes : 0),
        AMPI_ULL(v->bytes));
    AMPI_CHECK(((uintptr_t)d->scratch & 255u) == 0, "desc.scratch is not aligned to 256 bytes");
    return ampi_check_extents(ctx, r, 12);
}

/* Rows at .. at + n of a matrix with `cols` columns; no data: none. */
static amp_array ampi_rows_of(amp_array a, size_t at, size_t n, size_t cols) {
    if (a.data) a.data = (char *)a.data + at * cols * amp_dtype_size(a.dtype);
    a.count = n * cols;
    return a;
}
/* The layer for n rows of x from `at` on. */
static void ampi_vocabulary_cut(const ampi_vocabulary *v, ampi_layer *layer, size_t at, size_t n) {
    layer->l.rows = n;
    layer->nx = n * v->l.in;
    layer->ny = n * v->l.out;
    layer->l.x = ampi_rows_of(v->l.x, at, n, v->l.in);
}
/* The two layers, for a whole piece. */
static amp_status ampi_vocabulary_layers(amp_ctx *ctx, ampi_vocabulary *v) {
    amp_precision made = v->made;
    amp_linear_desc *l = &v->l;
    ampi_layer *f = &v->forward, *b = &v->backward;
    l->record = &v->made;
    l->y = v->logits;
    AMPI_TRY(ampi_check_linear(ctx, l, &ampi_goal_run, f));
    ampi_vocabulary_cut(v, f, 0, v->chunk);
    AMPI_TRY(ampi_forward_dtypes(ctx, f, &made));
    v->made = made;
    v->fp8 = f->fp8;
    if (f->fp8 && v->gradients) AMPI_TRY(ampi_check_source(ctx, "desc.xent.dlogits", v->dlogits));
    if (!f->fp8) {
        AMPI_TRY(ampi_operand(ctx, l->x, l->rows * l->in, f->want, AMPI_FORWARD, &l->x));
        AMPI_TRY(ampi_operand(ctx, l->w, f->nw, f->want, l->dx.data ? AMPI_BOTH : AMPI_FORWARD, &l->w));
        f->l.x = ampi_rows_of(l->x, 0, v->chunk, l->in);
        f->l.w = l->w;
    }
    *b = *f;
    b->l.dy = v->dlogits;
    b->l.dw = l->dw;
    b->l.dbias = l->dbias;
    if (f->fp8 && v->gradients) AMPI_TRY(ampi_fp8_factors(ctx, b, 1));
    if (f->fp8) b->w.array.data = (char *)l->scratch + l->scratch_bytes;
    return AMP_OK;
}
/* FP8: w is quantised once, to both copies. */
static amp_status ampi_vocabulary_w(amp_ctx *ctx, const ampi_vocabulary *v) {
    const amp_linear_desc *l = &v->l;
    amp_quantize_job w, back;
    if (!v->fp8 || !l->rows) return AMP_OK;
    w = ampi_fp8_cast_w(&v->forward);
    back = ampi_fp8_cast_w(&v->backward);
    w.keep = l->fp8_keep != 0;
    if (l->dx.data && back.dst.data) w.dst = back.dst;
    if (l->dx.data && back.dst_t.data) w.dst_t = back.dst_t;
    return (ctx->b->quantize)(ctx, &w);
}
static amp_status ampi_vocabulary_forward(amp_ctx *ctx, ampi_vocabulary *v, size_t at, size_t n) {
    ampi_layer *f = &v->forward;
    amp_quantize_job x;
    ampi_vocabulary_cut(v, f, at, n);
    AMPI_TRY(ampi_forward_factors(ctx, f));
    if (v->fp8 && n) {
        x = ampi_fp8_cast(&f->l, 0, f->l.x, n, v->l.in);
        x.dst = f->x.array;
        x.keep = f->l.fp8_keep != 0;
        AMPI_TRY((ctx->b->quantize)(ctx, &x));
    }
    return ampi_forward_product(ctx, f, &ampi_goal_run);
}
/* For rows at .. at + n, whose gradient is that of the piece's from row `from` on. */
static amp_status ampi_vocabulary_backward(amp_ctx *ctx, ampi_vocabulary *v, size_t at, size_t from, size_t n) {
    ampi_layer *b = &v->backward;
    amp_quantize_job x, dy;
    ampi_vocabulary_cut(v, b, at, n);
    b->l.dx = ampi_rows_of(v->l.dx, at, n, v->l.in);
    b->l.dy = ampi_rows_of(v->dlogits, from, n, v->l.out);
    AMPI_TRY(ampi_backward_factors(ctx, b));
    AMPI_TRY(ampi_gradient_before_act(ctx, b));
    if (v->fp8 && n) {
        x = ampi_fp8_cast(&b->l, 0, b->l.x, n, v->l.in);
        x.dst_t = b->x.array;
        x.keep = 1;
        dy = ampi_fp8_cast(&b->l, 2, b->l.dy, n, v->l.out);
        if (b->l.dx.data) dy.dst = b->dy.array;
        if (b->l.dw.data) dy.dst_t = b->dy_by_rows.array;
        if (b->l.dw.data) AMPI_TRY((ctx->b->quantize)(ctx, &x));
        if (dy.dst.data || dy.dst_t.data) AMPI_TRY((ctx->b->quantize)(ctx, &dy));
    }
    AMPI_TRY(ampi_backward_products(ctx, b, &ampi_goal_run));
    b->l.accumulate = 1;
    return AMP_OK;
}
/* Would products of n rows be refused? Of the whole layer's rows those of a piece, and the fewer of the last one. */
static amp_status ampi_vocabulary_can_forward(amp_ctx *ctx, ampi_vocabulary *v, size_t n) {
    ampi_vocabulary_cut(v, &v->forward, 0, n);
    AMPI_TRY(ampi_forward_factors(ctx, &v->forward));
    return ampi_forward_product(ctx, &v->forward, &ampi_goal_check);
}
static amp_status ampi_vocabulary_can_backward(amp_ctx *ctx, ampi_vocabulary *v, size_t n) {
    ampi_mark mark = ampi_scope_mark(ctx); /* of a cast of dy */
    amp_status st;
    ampi_vocabulary_cut(v, &v->backward, 0, n);
    st = ampi_backward_factors(ctx, &v->backward);
    if (st == AMP_OK) st = ampi_backward_products(ctx, &v->backward, &ampi_goal_check);
    ampi_scope_pop(ctx, mark);
    return st;
}
static amp_status ampi_vocabulary_can(amp_ctx *ctx, ampi_vocabulary *v) {
    const size_t last = v->chunk ? v->l.rows % v->chunk : 0; /* 0: as many as the others */
    size_t chunk_end = 0, last_end = 0;                      /* the same of the pieces in them */
    if (v->piece) {
        chunk_end = v->chunk % v->piece;
        last_end = last % v->piece;
    }
    AMPI_TRY(ampi_vocabulary_can_forward(ctx, v, v->chunk));
    if (last) AMPI_TRY(ampi_vocabulary_can_forward(ctx, v, last));
    if (!v->gradients) return AMP_OK;
    AMPI_TRY(ampi_vocabulary_can_backward(ctx, v, v->piece));
    if (chunk_end) AMPI_TRY(ampi_vocabulary_can_backward(ctx, v, chunk_end));
    return last_end ? ampi_vocabulary_can_backward(ctx, v, last_end) : AMP_OK;
}
static amp_status ampi_vocabulary_piece(amp_ctx *ctx, ampi_vocabulary *v, size_t at, size_t n) {
    amp_xent_job j = v->loss;
    size_t from, m;
    AMPI_TRY(ampi_vocabulary_forward(ctx, v, at, n));
    j.first = at;
    j.rows = n;
    j.logits = v->logits;
    j.dlogits = v->dlogits;
    j.targets = ampi_rows_of(j.targets, at, n, v->l.out);
    ampi_wrote(ctx, j.loss, sizeof *j.loss);
    ampi_wrote(ctx, j.row_loss, j.all * sizeof *j.row_loss);
    if (n) AMPI_TRY((ctx->b->xent)(ctx, &j));
    if (!v->gradients) return AMP_OK;
    for (from = 0; from == 0 || from < n; from += m) {
        ampi_mark mark = ampi_scope_mark(ctx);
        amp_status st;
        m = n - from < v->piece ? n - from : v->piece;
        st = ampi_vocabulary_backward(ctx, v, at + from, from, m);
        ampi_scope_pop(ctx, mark);
        if (st != AMP_OK || !n) return st;
    }
    return AMP_OK;
}
/* A gradient of 16 bits or 8: into the FP32 scratch before it is added to, and back. */
static amp_status ampi_vocabulary_cast(amp_ctx *ctx, amp_array to, amp_array from, size_t n) {
    static const amp_cast_desc nearest = AMP_ZERO;
    if (!to.data || to.data == from.data) return AMP_OK;
    ampi_wrote_array(ctx, to, n);
    return (ctx->b->cast)(ctx, to, from, n, &nearest);
}
static amp_status ampi_vocabulary_run(amp_ctx *ctx, ampi_vocabulary *v, const amp_linear_desc *given) {
    size_t nw = v->l.in * v->l.out, at, n;
    AMPI_TRY(ampi_vocabulary_layers(ctx, v));
    AMPI_TRY(ampi_vocabulary_can(ctx, v));
    AMPI_TRY(ampi_vocabulary_w(ctx, v));
    if (v->l.accumulate) AMPI_TRY(ampi_vocabulary_cast(ctx, v->l.dw, given->dw, nw));
    if (v->l.accumulate) AMPI_TRY(ampi_vocabulary_cast(ctx, v->l.dbias, given->dbias, v->l.out));
    for (at = 0; at == 0 || at < v->l.rows; at += n) {
        n = v->l.rows - at < v->chunk ? v->l.rows - at : v->chunk;
        AMPI_TRY(ampi_vocabulary_piece(ctx, v, at, n));
        if (!n) break;
    }
    AMPI_TRY(ampi_vocabulary_cast(ctx, given->dw, v->l.dw, nw));
    AMPI_TRY(ampi_vocabulary_cast(ctx, given->dbias, v->l.dbias, v->l.out));
    if (given->record) *given->record = v->made;
    return v->l.rows || !v->loss.loss ? AMP_OK : (ctx->b->zero)(ctx, v->loss.loss, sizeof *v->loss.loss);
}
static amp_status ampi_do_linear_cross_entropy(amp_ctx *ctx, const amp_linear_xent_desc *desc) {
    ampi_vocabulary v;
    ampi_mark mark;
    amp_status st;
    AMPI_TRY(ampi_vocabulary_of(ctx, &v, desc));
    AMPI_TRY(ampi_vocabulary_arrays(ctx, &v, desc));
    AMPI_HAS(gemm);
    AMPI_HAS(xent);
    mark = ampi_scope_mark(ctx);
    st = ampi_vocabulary_run(ctx, &v, &desc->linear);
    ampi_scope_pop(ctx, mark);
    return st;
}
AMP_API amp_status amp_linear_cross_entropy(amp_ctx *ctx, const amp_linear_xent_desc *desc) {
    AMPI_VERB(ctx, linear_cross_entropy, (ctx, desc));
}
static amp_status ampi_do_linear_cross_entropy_bytes(amp_ctx *ctx, size_t *bytes, const amp_linear_xent_desc *desc) {
    ampi_vocabulary v;
    AMPI_CHECK(bytes, "bytes is NULL");
    AMPI_TRY(ampi_vocabulary_of(ctx, &v, desc));
    *bytes = v.bytes;
    return AMP_OK;
}
AMP_API amp_status amp_linear_cross_entropy_bytes(amp_ctx *ctx, size_t *bytes, const amp_linear_xent_desc *desc) {
    AMPI_VERB(ctx, linear_cross_entropy_bytes, (ctx, bytes, desc));
}

/* ==== >>front-plan ===============================================================================================
   The memory plan.   tests: tests/test_memory.c */

static void ampi_plan_param(ampi_layout *to, uint64_t count, const amp_params_desc *d, uint32_t keep_f32) {
    static const amp_param_desc none = AMP_ZERO; /* nothing is adopted */
    amp_param_entry e = AMP_ZERO;
    e.count = count;
    e.model_dtype = keep_f32 ? AMP_F32 : d->model;
    e.grad_dtype = keep_f32 ? AMP_F32 : d->grad;
    e.moment_dtype = d->moment;
    e.layout = ampi_layout_for(d->master, e.model_dtype);
    ampi_place_entry(to, &e, d, &none);
}
AMP_API amp_status amp_plan_memory(amp_plan *out, const amp_policy *policy, const amp_params_desc *layout,
    const amp_plan_layer *layers, size_t n, amp_dtype in) {
    amp_params_desc d;
    ampi_layout set = AMP_ZERO;
    amp_plan p = AMP_ZERO;
    size_t i, k;
    if (in == AMP_AUTO) in = AMP_F32;
    if (!policy || !out || (n && !layers) || !ampi_is_dtype(in)) return AMP_ERR_INVALID_ARG;
    d = ampi_params_defaults(layout ? *layout : amp_policy_params_desc(policy));
    if (!ampi_is_layout(&d)) return AMP_ERR_INVALID_ARG;
    for (i = 0; i < n; i++) {
        const amp_plan_layer *l = &layers[i];
        uint32_t keep = amp_policy_keep_f32(policy, l->op) && ampi_policy_mode(policy) == AMPI_ALL_LOWER;
        amp_dtype y = amp_policy_output(policy, l->op, in);
        if ((l->weight | l->bias | l->saved | l->saved_f32 | l->saved_bits) >> 56) return AMP_ERR_INVALID_ARG;
        for (k = 0; k < 2; k++) {
            uint64_t count = k ? l->bias : l->weight;
            uint32_t f32 = keep || (k && l->keep_bias);
            if (count) ampi_plan_param(&set, count, &d, f32);
            if (ampi_policy_mode(policy) != AMPI_AS_IS && (f32 || d.model == AMP_F32))
                p.casts += ampi_round256(count * 2u);
        }
        p.saved += l->saved * amp_dtype_size(y) + l->saved_f32 * 4u + (l->saved_bits + 7u) / 8u;
    }
    (void)ampi_place_tables(&set);
    p.master = set.bytes[AMPI_MASTERS];
    p.model = set.bytes[AMPI_MODELS];
    p.grad = set.bytes[AMPI_GRADS];
    p.moments = set.bytes[AMPI_MOMENTS];
    p.accum = set.bytes[AMPI_ACCUMS];
    p.tables = set.bytes[AMPI_TABLES];
    p.total = p.master + p.model + p.grad + p.moments + p.accum + p.tables + p.casts + p.saved;
    *out = p;
    return AMP_OK;
}

/* ==== >>front-recompute ==========================================================================================
   Snapshots and dropout.   tests: tests/test_memory.c */

static amp_status ampi_do_snapshot_take(amp_ctx *ctx, amp_snapshot *out, const amp_rng *rng, const amp_scaler *scaler) {
    ampi_region r;
    AMPI_CHECK(out, "out is NULL");
    if (scaler) AMPI_TRY(ampi_check_scaler(ctx, scaler));
    r = ampi_region_now(ctx);
    memset(out, 0, sizeof *out);
    out->policy = r.policy;
    out->low = r.low;
    out->pin = r.pin;
    out->enabled = r.enabled;
    out->cache = r.cache;
    out->outside = r.outside;
    if (rng) out->rng = *rng;
    out->iteration = scaler ? scaler->serial : 0;
    out->weights = ctx->weights;
    return AMP_OK;
}
AMP_API amp_status amp_snapshot_take(amp_ctx *ctx, amp_snapshot *out, const amp_rng *rng, const amp_scaler *scaler) {
    AMPI_VERB(ctx, snapshot_take, (ctx, out, rng, scaler));
}

/* is a scaler of the context still in this iteration? Their numbers are never used twice. */
static int ampi_iteration_lasts(const amp_ctx *ctx, uint64_t iteration) {
    const amp_scaler *s;
    for (s = ctx->scalers; s; s = s->next)
        if (s->serial == iteration) return 1;
    return 0;
}
static amp_status ampi_do_snapshot_begin(amp_ctx *ctx, amp_rng *rng, const amp_snapshot *snapshot) {
    amp_autocast_desc d = AMP_ZERO;
    ampi_region r;
    AMPI_CHECK(snapshot, "snapshot is NULL");
    AMPI_REQUIRE(AMPI_CLEAN(&snapshot->policy), AMP_ERR_UNINIT, "snapshot is not made by amp_snapshot_take");
    AMPI_STAGE(snapshot->weights == ctx->weights,
        "weights have changed since the snapshot: the recomputed forward would not be the same");
    AMPI_STAGE(!snapshot->iteration || ampi_iteration_lasts(ctx, snapshot->iteration),
        "the loss scale has been updated since the snapshot, or its scaler destroyed");
    memset(&r, 0, sizeof r);
    r.policy = snapshot->policy;
    r.low = snapshot->low;
    r.pin = snapshot->pin;
    r.enabled = snapshot->enabled;
    r.cache = snapshot->cache;
    r.outside = snapshot->outside;
    AMPI_TRY(ampi_region_open(ctx, &d, &r));
    if (rng) *rng = snapshot->rng;
    return AMP_OK;
}
AMP_API amp_status amp_snapshot_begin(amp_ctx *ctx, amp_rng *rng, const amp_snapshot *snapshot) {
    AMPI_VERB(ctx, snapshot_begin, (ctx, rng, snapshot));
}

static amp_status ampi_do_dropout(amp_ctx *ctx, const amp_dropout_desc *desc) {
    amp_dropout_job j;
    AMPI_CHECK_DESC(desc);
    AMPI_CHECK(amp_is_finite(desc->p) && desc->p >= 0.0f && desc->p <= 1.0f, "desc.p is %g; it must be in [0, 1]",
        (double)desc->p);
    j = *desc;
    if (j.y.dtype == AMP_AUTO) j.y.dtype = j.x.dtype;
    AMPI_TRY(ampi_check_map(ctx, "desc.y", j.y, "desc.x", j.x, j.count));
    if (j.count == 0) return AMP_OK;
    AMPI_HAS(dropout);
    ampi_wrote_array(ctx, j.y, j.count);
    return (ctx->b->dropout)(ctx, &j);
}
AMP_API amp_status amp_dropout(amp_ctx *ctx, const amp_dropout_desc *desc) { AMPI_VERB(ctx, dropout, (ctx, desc)); }

/* ==== >>front-state ==============================================================================================
   State files.   tests: tests/test_state.c, tests/state_files.c
   File: "AMPSTATE", u32 version 2, u32 number of sections; then sections in this order:
       char tag[4]; u32 index; u64 payload bytes; payload
   and at the end u64 XXH64 (see ampi_xxh) of every byte before it, which binds the sections to one save.
   Tags: "SET " parameter set `index`, followed by its arrays: u32 parameters, u32 moments, u64 steps, u64 skipped
         "PRM " an array of set `index`: u32 parameter, u32 which (0 weights, 1, 2 moments, 3 model copy, 4 low part,
                5, 6 scales of moments, 7 KAHAN's compensation), u32 dtype, u32 name length, u64 count, name padded to
                8 bytes, elements
         "SCL " scaler `index`: the fields of amp_scaler_state in order       "USER" bytes of the caller
         "FP8 " amp_fp8 `index`: u32 tensors, u32 history, then its states and histories as words of 4 bytes
   All numbers little-endian. */

#ifndef AMP_NO_STDIO

/* ---- a file that takes the place of a different one whole, or not at all. What each part is for:
   a temporary file beside it, then rename     killed while writing: the old file is there, whole
   fsync of the file before the rename         power lost after it: the name would lead to a file without its bytes
   fsync of the directory after it             power lost: the old name may come back after the call returned
   the lock on the temporary file              killed: the next save removes what was left, but not a living writer's
   The file keeps its permissions, and a symbolic link stays one. ---- */

static const char *ampi_reason(void) { return errno ? strerror(errno) : "no reason given"; }

#  define AMPI_PATH 4096
typedef struct ampi_replacement {
    amp_ctx *ctx;
    const char *given;         /* the path as it was given */
    FILE *f;                   /* open on `temporary` */
    unsigned mode;             /* of the file that will be replaced */
    int32_t replaces;          /* 1: there is one */
    char path[AMPI_PATH];      /* of that file */
    char temporary[AMPI_PATH]; /* beside it */
} ampi_replacement;

#  if defined(_WIN32)
#    define AMPI_SEPARATORS "/\\:"
#  else
#    define AMPI_SEPARATORS "/"
#  endif
static size_t ampi_base_of(const char *path) { /* where the last part begins */
    size_t i, at = 0;
    for (i = 0; path[i]; i++)
        if (strchr(AMPI_SEPARATORS, path[i])) at = i + 1;
    return at;
}
#  if defined(__wasi__) /* no clock of a process, no number, no locks, though headers declare them */
static uint64_t ampi_clock(void) { return 0; }
static uint64_t ampi_process(void) { return 0; }
static int ampi_lock_file(int fd) {
    errno = ENOTSUP;
    return fd < 0;
}
#  elif defined(_WIN32)
static uint64_t ampi_clock(void) { return (uint64_t)clock(); }
static uint64_t ampi_process(void) { return (uint64_t)_getpid(); }
#  else
#    if !defined(LOCK_EX)
extern int flock(int, int); /* macOS hides it and its flags from who defines _POSIX_C_SOURCE */
#    endif
static uint64_t ampi_clock(void) { return (uint64_t)clock(); }
static uint64_t ampi_process(void) { return (uint64_t)getpid(); }
static int ampi_lock_file(int fd) { return flock(fd, 2 | 4) == 0; } /* LOCK_EX | LOCK_NB */
#  endif
/* A name beside r->path: its last part (cut, so that file systems take it), 16 digits, ".tmp". */
#  define AMPI_TEMPORARY_BASE 200
static int ampi_temporary_name(ampi_replacement *r, uint64_t process, uint64_t attempt) {
    uint64_t seed[3];
    ampi_xxh h = ampi_xxh_begin();
    size_t dir = ampi_base_of(r->path);
    int n;
    seed[0] = attempt;
    seed[1] = ampi_clock();
    seed[2] = (uint64_t)(uintptr_t)r; /* systems put the stack anywhere */
    ampi_xxh_add(&h, seed, sizeof seed);
    n = snprintf(r->temporary, sizeof r->temporary, "%.*s%.*s.%08lx%08lx.tmp", (int)dir, r->path, AMPI_TEMPORARY_BASE,
        r->path + dir, (unsigned long)(process & 0xffffffffu), (unsigned long)(ampi_xxh_end(&h) & 0xffffffffu));
    return (size_t)n < sizeof r->temporary;
}

#  if !defined(_WIN32)
static void ampi_directory_of(const char *path, char to[AMPI_PATH]) {
    size_t n = ampi_base_of(path);
    memcpy(to, "./", 3); /* of a name alone */
    if (n == 0) return;
    memcpy(to, path, n);
    to[n] = 0;
}
/* Follows symbolic links, as fopen does, also to a file that is not there yet. */
static amp_status ampi_follow_links(ampi_replacement *r) {
    amp_ctx *ctx = r->ctx;
    char to[AMPI_PATH];
    int depth;
    for (depth = 0; depth < 40; depth++) {
        ssize_t n = readlink(r->path, to, sizeof to - 1);
        size_t dir;
        if (n < 0) return AMP_OK; /* not a link; what else may be wrong shows later */
        dir = to[0] == '/' ? 0 : ampi_base_of(r->path);
        AMPI_REQUIRE(dir + (size_t)n < sizeof r->path, AMP_ERR_IO, "%s: a symbolic link is too long", r->given);
        memcpy(r->path + dir, to, (size_t)n);
        r->path[dir + (size_t)n] = 0;
    }
    return amp_fail(ctx, AMP_ERR_IO, "%s: 40 symbolic links in a row", r->given);
}
static const char *ampi_kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "directory";
    if (S_ISFIFO(mode)) return "fifo";
    return S_ISCHR(mode) || S_ISBLK(mode) ? "device" : "special file";
}
/* A regular file, whose mode this is, or none: then *is is 0. */
static amp_status ampi_check_kind(amp_ctx *ctx, const char *given, const char *path, int32_t *is, unsigned *mode) {
    struct stat s;
    *is = 0;
    *mode = 0;
    if (stat(path, &s) != 0) {
        AMPI_REQUIRE(errno == ENOENT, AMP_ERR_IO, "%s: %s", given, ampi_reason());
        return AMP_OK;
    }
    AMPI_REQUIRE(
        S_ISREG(s.st_mode), AMP_ERR_IO, "%s: it is a %s, but a regular file is needed", given, ampi_kind_of(s.st_mode));
    *is = 1;
    *mode = (unsigned)s.st_mode & 07777u;
    return AMP_OK;
}

/* A writer holds a lock on its temporary file; the lock ends when the writer dies. */
static int ampi_is_named(int fd, const char *name) { /* does the name still lead to this file? */
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(name, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}
static int ampi_is_temporary_of(const char *name, const char *base) {
    size_t n = strlen(base);
    if (n > AMPI_TEMPORARY_BASE) n = AMPI_TEMPORARY_BASE;
    if (strncmp(name, base, n) != 0 || name[n] != '.') return 0;
    return strspn(name + n + 1, "0123456789abcdef") == 16 && strcmp(name + n + 17, ".tmp") == 0;
}
static void ampi_remove_if_dead(const ampi_replacement *r, const char *name) {
    char to[1];
    struct stat s;
    int fd;
    if (readlink(name, to, sizeof to) >= 0 || stat(name, &s) != 0 || !S_ISREG(s.st_mode)) return;
    fd = open(name, O_RDWR);
    if (fd < 0) return;
    if (ampi_lock_file(fd) && ampi_is_named(fd, name) && remove(name) == 0)
        amp_log_event(r->ctx, AMP_LOG_INFO, "%s: removed; a writer that died had left it", name);
    (void)close(fd);
}
static void ampi_remove_dead(const ampi_replacement *r) {
    char name[AMPI_PATH];
    int dir = (int)ampi_base_of(r->path);
    const struct dirent *e;
    DIR *d;
    ampi_directory_of(r->path, name);
    d = opendir(name);
    if (!d) return;
    while ((e = readdir(d)) != NULL) {
        if (!ampi_is_temporary_of(e->d_name, r->path + dir)) continue;
        if (snprintf(name, sizeof name, "%.*s%s", dir, r->path, e->d_name) < AMPI_PATH) ampi_remove_if_dead(r, name);
    }
    (void)closedir(d);
}

static amp_status ampi_prepare_place(ampi_replacement *r) {
    AMPI_TRY(ampi_follow_links(r));
    AMPI_TRY(ampi_check_kind(r->ctx, r->given, r->path, &r->replaces, &r->mode));
    ampi_remove_dead(r);
    return AMP_OK;
}
/* r->f becomes a new file with a lock on it; 0: not this time, with the reason in errno */
static int ampi_open_temporary(ampi_replacement *r) {
    int fd = open(r->temporary, O_WRONLY | O_CREAT | O_EXCL, r->replaces ? 0600 : 0666); /* O_EXCL follows no link */
    int locked, reason = EEXIST; /* a writer that took it for a dead one's is removing it */
    if (fd < 0) return 0;
    locked = ampi_lock_file(fd);
    if (locked ? ampi_is_named(fd, r->temporary) : errno != EWOULDBLOCK) { /* where there are no locks nobody does */
        r->f = fdopen(fd, "wb");
        if (r->f) return 1;
        reason = errno;
        (void)remove(r->temporary);
    }
    (void)close(fd);
    errno = reason;
    return 0;
}

/* The old file's mode comes last: a later save must be able to open what a writer that died has left. */
static int ampi_flush(const ampi_replacement *r) {
    const int fd = fileno(r->f);
    if (fflush(r->f) != 0) return 0;
    if (r->replaces && fchmod(fd, (mode_t)r->mode) != 0 && errno != ENOSYS) return 0; /* WASI has no modes */
    return fsync(fd) == 0;
}
static void ampi_flush_directory(const char *path) {
    char dir[AMPI_PATH];
    int fd;
    ampi_directory_of(path, dir);
    fd = open(dir, O_RDONLY);
    if (fd < 0) return;
    (void)fsync(fd); /* some file systems refuse: the rename stands all the same */
    (void)close(fd);
}
/* Closes the file in any case. Renamed while the lock is held, so that nobody takes it for a dead writer's. */
static int ampi_take_place(ampi_replacement *r) {
    int done = rename(r->temporary, r->path) == 0, reason = errno;
    (void)fclose(r->f);
    if (done) ampi_flush_directory(r->path);
    errno = reason;
    return done;
}
#  else
__declspec(dllimport) int __stdcall MoveFileExA(const char *, const char *, unsigned long);
__declspec(dllimport) unsigned long __stdcall GetLastError(void);
static amp_status ampi_check_kind(amp_ctx *ctx, const char *given, const char *path, int32_t *is, unsigned *mode) {
    (void)ctx;
    (void)given;
    (void)path;
    *is = 0;
    *mode = 0;
    return AMP_OK;
}
static amp_status ampi_prepare_place(ampi_replacement *r) {
    (void)r; /* no links are followed, and what dead writers left stays */
    return AMP_OK;
}
static int ampi_open_temporary(ampi_replacement *r) {
    int fd = _open(r->temporary, _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY, 0600);
    if (fd < 0) return 0;
    r->f = _fdopen(fd, "wb");
    if (!r->f) (void)_close(fd);
    return r->f != NULL;
}
static int ampi_flush(const ampi_replacement *r) { return fflush(r->f) == 0 && _commit(_fileno(r->f)) == 0; }
static int ampi_take_place(ampi_replacement *r) {
    unsigned long reason;
    if (fclose(r->f) != 0) return 0;
    if (MoveFileExA(r->temporary, r->path, 1 | 8) != 0) return 1; /* replace existing, write through */
    reason = GetLastError();
    errno = reason == 5 || reason == 32 || reason == 33 ? EACCES : EIO; /* denied; open or locked elsewhere */
    return 0;
}
#  endif

static amp_status ampi_replacement_begin(ampi_replacement *r, amp_ctx *ctx, const char *path) {
    uint64_t attempt;
    r->ctx = ctx;
    r->given = path;
    r->f = NULL;
    r->replaces = 0;
    r->mode = 0;
    AMPI_REQUIRE(strlen(path) < AMPI_PATH, AMP_ERR_IO, "%.100s...: the path is too long", path);
    memcpy(r->path, path, strlen(path) + 1);
    AMPI_TRY(ampi_prepare_place(r));
    for (attempt = 0; attempt < 100; attempt++) {
        AMPI_REQUIRE(
            ampi_temporary_name(r, ampi_process(), attempt), AMP_ERR_IO, "%.100s...: the path is too long", path);
        if (ampi_open_temporary(r)) return AMP_OK;
        if (errno != EEXIST) break;
    }
    return amp_fail(ctx, AMP_ERR_IO, "%s: cannot be created: %s", path, ampi_reason());
}
static amp_status ampi_replacement_put(ampi_replacement *r, const void *data, size_t n) {
    amp_ctx *ctx = r->ctx;
    errno = 0;
    AMPI_REQUIRE(fwrite(data, 1, n, r->f) == n, AMP_ERR_IO, "%s: write failed: %s", r->given, ampi_reason());
    return AMP_OK;
}
/* st: of what was written. The new file takes its place if all went well, and is removed if not. */
static amp_status ampi_replacement_end(ampi_replacement *r, amp_status st) {
    errno = 0;
    if (st == AMP_OK && !ampi_flush(r))
        st = amp_fail(r->ctx, AMP_ERR_IO, "%s: flushing it to disk failed: %s", r->given, ampi_reason());
    if (st != AMP_OK)
        (void)fclose(r->f);
    else if (!ampi_take_place(r))
        st = amp_fail(r->ctx, AMP_ERR_IO, "%s: the new file cannot take its place: %s", r->given, ampi_reason());
    if (st != AMP_OK) (void)remove(r->temporary);
    return st;
}
AMP_API amp_status amp_write_file(amp_ctx *ctx, const char *path, const void *data, size_t bytes) {
    const int before = ampi_hold();
    ampi_replacement r;
    amp_status st = ampi_replacement_begin(&r, ctx, path);
    if (st == AMP_OK) st = ampi_replacement_end(&r, ampi_replacement_put(&r, data, bytes));
    ampi_release(before);
    return st;
}

/* ---- state files: sections, writing, reading.   tests: tests/test_state.c, tests/test_resume.c, tests/fuzz_state.c
   ---- */

#  define AMPI_STATE_BUFFER ((size_t)1 << 20)

static void ampi_put(uint8_t *b, uint64_t x, int bytes) {
    int i;
    for (i = 0; i < bytes; i++)
        b[i] = (uint8_t)(x >> (8 * i));
}

/* elements between this machine's order and little-endian, in place */
static void ampi_little_endian(uint8_t *b, size_t elements, size_t size) {
    const uint16_t one = 1;
    uint8_t first, t;
    size_t i;
    memcpy(&first, &one, 1);
    if (first) return;
    for (; elements--; b += size)
        for (i = 0; i < size / 2; i++) {
            t = b[i];
            b[i] = b[size - 1 - i];
            b[size - 1 - i] = t;
        }
}

/* fields of 4, 4 and 8 bytes, and one more of 8 */
static void ampi_put_head(uint8_t *b, uint64_t p, uint64_t q, uint64_t r) {
    ampi_put(b, p, 4);
    ampi_put(b + 4, q, 4);
    ampi_put(b + 8, r, 8);
}
static void ampi_put_fields(uint8_t *b, uint64_t p, uint64_t q, uint64_t r, uint64_t s) {
    ampi_put_head(b, p, q, r);
    ampi_put(b + 16, s, 8);
}

/* ---- the sections of a file: one walk declares them in order; a visitor counts, writes, checks or applies ---- */

typedef enum ampi_section_kind {
    AMPI_SECTION_SET = 0,
    AMPI_SECTION_ARRAY,
    AMPI_SECTION_SCALER,
    AMPI_SECTION_FP8,
    AMPI_SECTION_USER,
    AMPI_SECTION_END,
    AMPI_SECTION_KINDS
} ampi_section_kind;

/* clang-format off */
static const struct { char tag[8], name[24], differs[64]; } ampi_section_kinds[AMPI_SECTION_KINDS] = {
    {"SET ", "parameter set",    "a parameter set has a different number of parameters or moments"},
    {"PRM ", "an array of set",  ""}, /* see ampi_differs */
    {"SCL ", "scaler",           "a scaler has a different size"},
    {"FP8 ", "amp_fp8",          "an amp_fp8 has different tensors or a different history"},
    {"USER", "the user's bytes", "the user's bytes have a different size"},
    {"END ", "the end of file",  ""}, /* where there is no section left */
};
/* clang-format on */

typedef struct ampi_elements { /* elements of `size` bytes; little-endian in the file */
    void *ptr;                 /* NULL: none */
    size_t count, size;
    int host; /* 1: in host memory, 0: in context memory */
} ampi_elements;

typedef struct ampi_section {
    ampi_section_kind kind;
    size_t index;       /* of the set or scaler that it belongs to */
    amp_params *p;      /* a set, or that of an array */
    size_t param;       /* of an array: which parameter's */
    amp_scaler *scaler; /* a scaler */
    int optional;       /* 1: model copies, in the file only when masters do not give them */
    uint8_t fields[24 + 256];
    size_t n_fixed;         /* bytes of fields that a file must have exactly so */
    size_t n_fields;        /* all of them; the rest are values, saved and loaded */
    ampi_elements elements; /* after the fields */
} ampi_section;

#  define AMPI_STATE_VERSION 2u
typedef struct ampi_file { /* being written or read */
    amp_ctx *ctx;
    const char *path;
    ampi_replacement *to; /* writing */
    FILE *f;              /* reading */
    uint8_t *buffer;      /* host memory, of buffer_bytes: pieces to write, or all that was read */
    size_t buffer_bytes;
    size_t staged;        /* bytes of the buffer in use */
    ampi_xxh sum;         /* of everything so far */
    uint64_t sections;    /* counted, or still to be read */
    int known;            /* reading: 1: it is an amp state file, so it ends with its checksum */
    int ready;            /* 1: `next` is read */
    uint8_t next[16 + 8]; /* head of the next section; of an array its first two fields, too */
} ampi_file;

typedef amp_status ampi_visit(ampi_file *f, ampi_section *s);

/* the arrays of a parameter that are saved, by their number in the file; {NULL}: the layout has no such array */
enum {
    AMPI_SAVED_WEIGHTS = 0,
    AMPI_SAVED_MOMENT,
    AMPI_SAVED_MOMENT2,
    AMPI_SAVED_MODEL,
    AMPI_SAVED_LOW,
    AMPI_SAVED_SCALE,
    AMPI_SAVED_SCALE2,
    AMPI_SAVED,                          /* how many */
    AMPI_SAVED_COMPENSATION = AMPI_SAVED /* KAHAN's low part, in the file: of SPLIT's dtype, but no remainder */
};
static amp_array ampi_saved_array(const amp_param_entry *e, int which) {
    switch (which) {
    case AMPI_SAVED_WEIGHTS: return e->master ? ampi_entry_master(e) : ampi_entry_model(e);
    case AMPI_SAVED_MOMENT: return ampi_entry_moment(e, 0);
    case AMPI_SAVED_MOMENT2: return ampi_entry_moment(e, 1);
    case AMPI_SAVED_LOW: return ampi_entry_low(e);
    case AMPI_SAVED_SCALE: return ampi_entry_scale(e, 0);
    case AMPI_SAVED_SCALE2: return ampi_entry_scale(e, 1);
    default: return ampi_entry_array(e->master ? e->model : NULL, e->model_dtype, e->count);
    }
}

static uint64_t ampi_saved_number(const amp_param_entry *e, int which) {
    return which == AMPI_SAVED_LOW && e->layout == AMP_MASTER_KAHAN ? (uint64_t)AMPI_SAVED_COMPENSATION
                                                                    : (uint64_t)which;
}
static amp_status ampi_walk_set(ampi_file *f, ampi_visit *visit, amp_params *p, size_t index) {
    ampi_section s;
    size_t i, len;
    int which;
    memset(&s, 0, sizeof s);
    s.index = index;
    s.p = p;
    s.n_fixed = 8;
    s.n_fields = 24;
    ampi_put_fields(s.fields, p->n, (uint64_t)p->desc.moments, 0, 0); /* then steps and skipped */
    AMPI_TRY((visit)(f, &s));
    s.kind = AMPI_SECTION_ARRAY;
    for (i = 0; i < p->n; i++)
        for (which = 0; which < AMPI_SAVED; which++) {
            amp_array a = ampi_saved_array(&p->entries[i], which);
            if (!a.data) continue;
            s.param = i;
            s.optional = which == AMPI_SAVED_MODEL;
            s.elements.ptr = a.data;
            s.elements.count = a.count;
            s.elements.size = ampi_moment_bytes(a.dtype);
            len = strlen(ampi_param_at(p, i)->name);
            memset(s.fields, 0, sizeof s.fields);
            ampi_put_fields(s.fields, i, ampi_saved_number(&p->entries[i], which),
                (uint64_t)a.dtype | (uint64_t)len << 32, a.count);
            memcpy(s.fields + 24, ampi_param_at(p, i)->name, len);
            s.n_fixed = s.n_fields = 24 + ((len + 7) & ~(size_t)7);
            AMPI_TRY((visit)(f, &s));
        }
    return AMP_OK;
}

/* clang-format off */
#  define AMPI_SCALER_FIELDS(X) /* name, bytes */ \
    X(scale, 4) X(growth_factor, 4) X(backoff_factor, 4) X(min_scale, 4) X(max_scale, 4) \
    X(growth_interval, 4) X(growth_tracker, 4) X(hysteresis, 4) X(hysteresis_tracker, 4) \
    X(mode, 4) X(no_check, 4) X(dead_after, 4) X(found, 4) X(stuck, 4) \
    X(good, 8) X(bad, 8) X(bad_in_a_row, 8) X(bad_nan, 8) X(bad_inf, 8) X(bad_overflow, 8)
/* clang-format on */
#  define AMPI_SCALER_BYTES (14 * 4 + 6 * 8)

static amp_status ampi_walk_fp8(ampi_file *f, const amp_state_desc *st, ampi_visit *visit) {
    ampi_section s;
    size_t i;
    memset(&s, 0, sizeof s);
    s.kind = AMPI_SECTION_FP8;
    s.n_fixed = s.n_fields = 8;
    for (i = 0; i < st->n_fp8; i++) {
        const amp_fp8 *p = st->fp8[i];
        s.index = i;
        ampi_put(s.fields, p->desc.tensors, 4);
        ampi_put(s.fields + 4, p->desc.history, 4);
        s.elements.ptr = p->states;
        s.elements.count = p->words;
        s.elements.size = 4;
        AMPI_TRY((visit)(f, &s));
    }
    return AMP_OK;
}
static amp_status ampi_walk(ampi_file *f, const amp_state_desc *st, ampi_visit *visit) {
    ampi_section s;
    size_t i;
    for (i = 0; i < st->n_params; i++)
        AMPI_TRY(ampi_walk_set(f, visit, st->params[i], i));
    memset(&s, 0, sizeof s);
    s.kind = AMPI_SECTION_SCALER;
    s.n_fields = AMPI_SCALER_BYTES;
    for (i = 0; i < st->n_scalers; i++) {
        s.index = i;
        s.scaler = st->scalers[i];
        AMPI_TRY((visit)(f, &s));
    }
    AMPI_TRY(ampi_walk_fp8(f, st, visit));
    if (st->user_bytes == 0) return AMP_OK;
    memset(&s, 0, sizeof s);
    s.kind = AMPI_SECTION_USER;
    s.elements.ptr = st->user;
    s.elements.count = st->user_bytes;
    s.elements.size = 1;
    s.elements.host = 1;
    return (visit)(f, &s);
}

static uint64_t ampi_section_tag(const ampi_section *s) {
    return ampi_get((const uint8_t *)ampi_section_kinds[s->kind].tag, 4);
}
static size_t ampi_section_bytes(const ampi_section *s) { return s->n_fields + s->elements.count * s->elements.size; }

/* ---- values between a set or scaler and its section's fields ---- */

static void ampi_scaler_put(const amp_scaler_state *t, uint8_t *b) {
#  define AMPI_X(name, size) \
    memcpy(b, &t->name, size); \
    ampi_little_endian(b, 1, size); \
    b += size;
    AMPI_SCALER_FIELDS(AMPI_X)
#  undef AMPI_X
}
static void ampi_scaler_get(amp_scaler_state *t, uint8_t *b) { /* leaves b in this machine's order */
#  define AMPI_X(name, size) \
    ampi_little_endian(b, 1, size); \
    memcpy(&t->name, b, size); \
    b += size;
    AMPI_SCALER_FIELDS(AMPI_X)
#  undef AMPI_X
}

static amp_status ampi_values_save(ampi_file *f, ampi_section *s) {
    amp_scaler_state t;
    amp_step_record r;
    if (s->kind == AMPI_SECTION_SET) {
        AMPI_TRY((f->ctx->b->copy)(f->ctx, &r, s->p->record, sizeof r));
        ampi_put(s->fields + 8, r.steps, 8);
        ampi_put(s->fields + 16, r.skipped, 8);
    }
    if (s->kind == AMPI_SECTION_SCALER) {
        AMPI_TRY(ampi_scaler_read(s->scaler, &t));
        ampi_scaler_put(&t, s->fields);
    }
    return AMP_OK;
}

/* Has the checksum at the end of the file the value that it should have? Asked when something is wrong, so that damage
   is called by its name. Moves the position. */
static int ampi_is_sealed(ampi_file *f) {
    ampi_xxh h = ampi_xxh_begin();
    uint8_t b[4096 + 8];
    size_t held = 0, n;
    rewind(f->f);
    while ((n = fread(b + held, 1, sizeof b - held, f->f)) > 0) {
        n += held;
        held = n < 8 ? n : 8; /* the last 8 bytes may be the checksum */
        ampi_xxh_add(&h, b, n - held);
        memmove(b, b + n - held, held);
    }
    return held == 8 && ampi_word(b) == ampi_xxh_end(&h);
}
#  if defined(__GNUC__) || defined(__clang__)
__attribute__((__format__(__printf__, 2, 3)))
#  endif
static amp_status ampi_bad_file(ampi_file *f, const char *format, ...) {
    amp_ctx *ctx = f->ctx;
    char what[200];
    va_list va;
    va_start(va, format);
    ampi_message(what, sizeof what, format, va);
    va_end(va);
    AMPI_REQUIRE(!f->known || ampi_is_sealed(f), AMP_ERR_FORMAT,
        "%s: its checksum does not match: the file is truncated or damaged (%s)", f->path, what);
    return amp_fail(ctx, AMP_ERR_FORMAT, "%s: %s", f->path, what);
}

static int ampi_is_amax(float x) { return ampi_bits(x) <= 0x7f800000u; } /* 0 .. Inf */
/* the state that a scaler gets from its section: no other than one that create and steps can make. What the sums of a
   window had is found after its iteration's end. */
static amp_status ampi_scaler_from(ampi_file *f, ampi_section *s, amp_scaler_state *t) {
    const uint32_t all = AMP_FOUND_NAN | AMP_FOUND_INF | AMP_FOUND_OVERFLOW;
    const char *fault;
    double is = 0.0;
    AMPI_TRY(ampi_scaler_read(s->scaler, t));
    ampi_scaler_get(t, s->fields);
    if (!ampi_is_scale(t->scale)) return ampi_bad_file(f, "its loss scale is not usable");
    t->inverse = ampi_inverse(t->scale);
    if (t->mode == AMP_SCALER_OFF)
        return ampi_is_on(s->scaler) ? ampi_bad_file(f, "it was saved from a scaler that was off") : AMP_OK;
    fault = ampi_rule_fault(t, &is);
    if (fault) return ampi_bad_file(f, "its scaler's %s is %g", fault, is);
    if (t->hysteresis_tracker > t->hysteresis || t->growth_tracker < 0 || t->found > all)
        return ampi_bad_file(f, "its scaler's counts are none that steps make");
    return AMP_OK;
}
/* an amp_fp8's words as they were read: scales, what is remembered of it, and a place in the history that it has */
static amp_status ampi_fp8_from(ampi_file *f, const ampi_section *s, const uint8_t *words) {
    const size_t states = (size_t)ampi_get(s->fields, 4) * sizeof(amp_fp8_state);
    const size_t history = (size_t)ampi_get(s->fields + 4, 4);
    const size_t bytes = s->elements.count * s->elements.size;
    amp_fp8_state t;
    float amax;
    size_t i;
    for (i = 0; i < states; i += sizeof t) {
        memcpy(&t, words + i, sizeof t);
        if (!ampi_is_scale(t.scale) || !ampi_is_positive(t.inverse) || !amp_is_finite(t.inverse))
            return ampi_bad_file(f, "an FP8 scale is not usable");
        if (!ampi_is_amax(t.amax) || !ampi_is_amax(t.window) || t.found || t.ticket || (t.at && t.at >= history))
            return ampi_bad_file(f, "an FP8 tensor's state is none that casts make");
    }
    for (; i < bytes; i += sizeof amax) {
        memcpy(&amax, words + i, sizeof amax);
        if (!ampi_is_amax(amax)) return ampi_bad_file(f, "an FP8 history has a number that is no magnitude");
    }
    return AMP_OK;
}

static amp_status ampi_values_apply(ampi_file *f, ampi_section *s) {
    amp_params *p = s->p;
    amp_scaler_state t;
    amp_step_record r;
    if (s->kind == AMPI_SECTION_SET) {
        memset(&r, 0, sizeof r);
        r.steps = ampi_get(s->fields + 8, 8);
        r.skipped = ampi_get(s->fields + 16, 8);
        p->stochastic = 0;
        p->phase = ampi_rules[p->phase][AMPI_DO_LOAD].next;
        return ampi_set_record(f->ctx, p, &r);
    }
    if (s->optional) p->stochastic = 1;
    if (s->kind == AMPI_SECTION_SCALER) {
        AMPI_TRY(ampi_scaler_from(f, s, &t));
        if (!ampi_is_on(s->scaler)) return AMP_OK;
        AMPI_TRY(ampi_scaler_write(s->scaler, &t));
        ampi_next_iteration(s->scaler);
    }
    return AMP_OK;
}

/* ---- writing ---- */

static amp_status ampi_emit(ampi_file *f, const void *data, size_t n) {
    ampi_xxh_add(&f->sum, data, n);
    return ampi_replacement_put(f->to, data, n);
}

static int ampi_is_saved(const ampi_section *s) { return !s->optional || s->p->stochastic; }

static amp_status ampi_visit_count(ampi_file *f, ampi_section *s) {
    f->sections += (uint64_t)ampi_is_saved(s);
    return AMP_OK;
}
static amp_status ampi_visit_write(ampi_file *f, ampi_section *s) {
    const ampi_elements *a = &s->elements;
    size_t i, n, bytes = a->count * a->size;
    uint8_t head[16];
    if (!ampi_is_saved(s)) return AMP_OK;
    AMPI_TRY(ampi_values_save(f, s));
    ampi_put_head(head, ampi_section_tag(s), s->index, ampi_section_bytes(s));
    AMPI_TRY(ampi_emit(f, head, sizeof head));
    AMPI_TRY(ampi_emit(f, s->fields, s->n_fields));
    for (i = 0; i < bytes; i += n) {
        const uint8_t *from = (const uint8_t *)a->ptr + i;
        n = bytes - i < AMPI_STATE_BUFFER ? bytes - i : AMPI_STATE_BUFFER;
        if (a->host)
            memcpy(f->buffer, from, n);
        else
            AMPI_TRY((f->ctx->b->copy)(f->ctx, f->buffer, from, n));
        ampi_little_endian(f->buffer, n / a->size, a->size);
        AMPI_TRY(ampi_emit(f, f->buffer, n));
    }
    return AMP_OK;
}

static amp_status ampi_state_write(ampi_file *f, const amp_state_desc *st) {
    uint8_t b[16];
    AMPI_TRY(ampi_walk(f, st, ampi_visit_count));
    memcpy(b, "AMPSTATE", 8);
    ampi_put(b + 8, AMPI_STATE_VERSION, 4);
    ampi_put(b + 12, f->sections, 4);
    AMPI_TRY(ampi_emit(f, b, 16));
    AMPI_TRY(ampi_walk(f, st, ampi_visit_write));
    ampi_put(b, ampi_xxh_end(&f->sum), 8);
    return ampi_replacement_put(f->to, b, 8);
}

/* ---- reading: once, into host memory; what was verified there is then applied ---- */

static amp_status ampi_read_raw(ampi_file *f, void *data, size_t n) {
    errno = 0;
    if (fread(data, 1, n, f->f) == n) return AMP_OK;
    if (!ferror(f->f)) return ampi_bad_file(f, "the file is truncated");
    return amp_fail(f->ctx, AMP_ERR_IO, "%s: read failed: %s", f->path, ampi_reason());
}
static amp_status ampi_read(ampi_file *f, void *data, size_t n) { /* in pieces that are still in the caches to add up */
    uint8_t *b = (uint8_t *)data;
    size_t i, piece;
    for (i = 0; i < n; i += piece) {
        piece = n - i < AMPI_STATE_BUFFER ? n - i : AMPI_STATE_BUFFER;
        AMPI_TRY(ampi_read_raw(f, b + i, piece));
        ampi_xxh_add(&f->sum, b + i, piece);
    }
    return AMP_OK;
}

static int ampi_next_is(const ampi_file *f, ampi_section_kind kind) {
    return memcmp(f->next, ampi_section_kinds[kind].tag, 4) == 0;
}

static amp_status ampi_next_read(ampi_file *f) { /* f->next, unless it is there */
    if (f->ready) return AMP_OK;
    f->ready = 1;
    memset(f->next, 0, sizeof f->next);
    memcpy(f->next, ampi_section_kinds[AMPI_SECTION_END].tag, 4);
    if (f->sections == 0) return AMP_OK;
    f->sections--;
    AMPI_TRY(ampi_read(f, f->next, 16));
    return ampi_next_is(f, AMPI_SECTION_ARRAY) ? ampi_read(f, f->next + 16, 8) : AMP_OK;
}

/* the next section of the file is s, by its kind and index */
static amp_status ampi_next_must_be(ampi_file *f, const ampi_section *s) {
    uint64_t index;
    char tag[5];
    int k;
    AMPI_TRY(ampi_next_read(f));
    for (k = 0; k < AMPI_SECTION_KINDS && !ampi_next_is(f, (ampi_section_kind)k); k++) {
    }
    memcpy(tag, f->next, 4);
    tag[4] = 0;
    tag[strspn(tag, "ABCDEFGHIJKLMNOPQRSTUVWXYZ ")] = 0;
    if (k == AMPI_SECTION_KINDS)
        return ampi_bad_file(f, "section \"%s\" is not known to this amp, or the file is damaged", tag);
    index = ampi_get(f->next + 4, 4);
    if (k == (int)s->kind && index == s->index) return AMP_OK;
    return ampi_bad_file(f, "%s %llu stands where %s %llu is expected: a section is missing, duplicated or unexpected",
        ampi_section_kinds[k].name, AMPI_ULL(index), ampi_section_kinds[s->kind].name, AMPI_ULL(s->index));
}

static amp_status ampi_differs(ampi_file *f, const ampi_section *s) {
    if (s->kind != AMPI_SECTION_ARRAY) return ampi_bad_file(f, "%s", ampi_section_kinds[s->kind].differs);
    return ampi_bad_file(f,
        "parameter %llu has a different name than \"%.100s\", or a different dtype, count or layout",
        AMPI_ULL(s->param), ampi_param_at(s->p, s->param)->name);
}

/* The file says whether an optional section was saved. */
static amp_status ampi_is_in_file(ampi_file *f, const ampi_section *s, int *is) {
    *is = 1;
    if (!s->optional) return AMP_OK;
    AMPI_TRY(ampi_next_read(f));
    *is = ampi_next_is(f, s->kind) && ampi_get(f->next + 4, 4) == s->index;
    *is &= memcmp(f->next + 16, s->fields, 8) == 0; /* which array of which parameter */
    return AMP_OK;
}

/* How a section is staged: 1 byte, whether the file had it; then its payload, elements in this machine's order. */
static size_t ampi_staged_bytes(const ampi_section *s) { return 1 + ampi_section_bytes(s); }
static amp_status ampi_visit_measure(ampi_file *f, ampi_section *s) {
    f->buffer_bytes += ampi_staged_bytes(s);
    return AMP_OK;
}
static uint8_t *ampi_next_staged(ampi_file *f, const ampi_section *s) {
    uint8_t *at = f->buffer + f->staged;
    f->staged += ampi_staged_bytes(s);
    return at;
}

/* The section must come now. Its payload goes to `to`, its values to s->fields, too. */
static amp_status ampi_read_section(ampi_file *f, ampi_section *s, uint8_t *to) {
    const ampi_elements *a = &s->elements;
    size_t had = s->kind == AMPI_SECTION_ARRAY ? 8 : 0, bytes = ampi_section_bytes(s);
    AMPI_TRY(ampi_next_must_be(f, s));
    if (ampi_get(f->next + 8, 8) != bytes) return ampi_differs(f, s);
    memcpy(to, f->next + 16, had);
    AMPI_TRY(ampi_read(f, to + had, s->n_fields - had));
    if (memcmp(to, s->fields, s->n_fixed) != 0) return ampi_differs(f, s);
    memcpy(s->fields, to, s->n_fields);
    AMPI_TRY(ampi_read(f, to + s->n_fields, bytes - s->n_fields));
    ampi_little_endian(to + s->n_fields, a->count, a->size);
    f->ready = 0;
    return AMP_OK;
}
static amp_status ampi_visit_read(ampi_file *f, ampi_section *s) { /* changes nothing */
    amp_scaler_state t;
    uint8_t *at = ampi_next_staged(f, s);
    int is;
    AMPI_TRY(ampi_is_in_file(f, s, &is));
    at[0] = (uint8_t)is;
    if (!is) return AMP_OK;
    AMPI_TRY(ampi_read_section(f, s, at + 1));
    if (s->kind == AMPI_SECTION_FP8) return ampi_fp8_from(f, s, at + 1 + s->n_fields);
    return s->kind == AMPI_SECTION_SCALER ? ampi_scaler_from(f, s, &t) : AMP_OK;
}
static amp_status ampi_visit_apply(ampi_file *f, ampi_section *s) {
    const ampi_elements *a = &s->elements;
    const uint8_t *at = ampi_next_staged(f, s);
    size_t bytes = a->count * a->size;
    if (!at[0]) return AMP_OK;
    memcpy(s->fields, at + 1, s->n_fields);
    at += 1 + s->n_fields;
    if (a->host) memcpy(a->ptr, at, bytes);
    if (!a->host && bytes) AMPI_TRY((f->ctx->b->copy)(f->ctx, a->ptr, at, bytes));
    return ampi_values_apply(f, s);
}

static amp_status ampi_read_head(ampi_file *f) {
    uint8_t head[16];
    uint64_t version;
    AMPI_TRY(ampi_read(f, head, sizeof head));
    if (memcmp(head, "AMPSTATE", 8) != 0) return ampi_bad_file(f, "not an amp state file");
    f->known = 1;
    f->sections = ampi_get(head + 12, 4);
    version = ampi_get(head + 8, 4);
    if (version == AMPI_STATE_VERSION) return AMP_OK;
    return ampi_bad_file(f, "version %llu, which this amp does not know", AMPI_ULL(version));
}
static amp_status ampi_read_end(ampi_file *f) {
    const uint64_t sum = ampi_xxh_end(&f->sum);
    ampi_section end;
    uint8_t b[8];
    memset(&end, 0, sizeof end);
    end.kind = AMPI_SECTION_END;
    AMPI_TRY(ampi_next_must_be(f, &end));
    AMPI_TRY(ampi_read_raw(f, b, 8));
    if (ampi_get(b, 8) != sum) return ampi_bad_file(f, "the file changed while it was read");
    return fgetc(f->f) == EOF ? AMP_OK : ampi_bad_file(f, "trailing data after the last section");
}
static amp_status ampi_state_read(ampi_file *f, const amp_state_desc *st) {
    AMPI_TRY(ampi_read_head(f));
    AMPI_TRY(ampi_walk(f, st, ampi_visit_read));
    return ampi_read_end(f);
}

/* ---- the verbs ---- */

static const char *ampi_stays(
    const amp_params *p) { /* why a set may not go to a file, or come from one; NULL: it may */
    const ampi_rule *rule = ampi_rule_of(p, p->scaler, AMPI_DO_LOAD);
    if (p->holds) return AMPI_OPEN;
    return rule->takes == AMPI_REFUSED ? rule->why : NULL;
}
static amp_status ampi_state_check(amp_ctx *ctx, const char *path, const amp_state_desc *st) {
    size_t i;
    AMPI_CHECK(st, "state is NULL");
    AMPI_REQUIRE(AMPI_CLEAN(st), AMP_ERR_UNINIT, "state is not zero-initialised (_begin or _end is not 0)");
    AMPI_CHECK(path && *path, "path is %s", path ? "empty" : "NULL");
    AMPI_CHECK(!st->flags, "state.flags is not 0");
    AMPI_CHECK(!st->n_params || st->params, "state.params is NULL");
    AMPI_CHECK(!st->n_scalers || st->scalers, "state.scalers is NULL");
    AMPI_CHECK(!st->user_bytes || st->user, "state.user is NULL");
    for (i = 0; i < st->n_params; i++) {
        const amp_params *p = st->params[i];
        AMPI_CHECK(p, "state.params[%llu] is NULL", AMPI_ULL(i));
        AMPI_CHECK(p->ctx == ctx, "state.params[%llu] belongs to a different context", AMPI_ULL(i));
        AMPI_STAGE(p->committed, "state.params[%llu] is not committed (amp_params_commit)", AMPI_ULL(i));
        AMPI_STAGE(!ampi_stays(p), "state.params[%llu]: %s", AMPI_ULL(i), ampi_stays(p));
    }
    for (i = 0; i < st->n_scalers; i++) {
        const amp_scaler *s = st->scalers[i];
        if (!s) continue;
        AMPI_CHECK(s->ctx == ctx, "state.scalers[%llu] belongs to a different context", AMPI_ULL(i));
        AMPI_STAGE(!s->checked, "state.scalers[%llu] is between a check and amp_scaler_update", AMPI_ULL(i));
    }
    AMPI_CHECK(!st->n_fp8 || st->fp8, "state.fp8 is NULL");
    for (i = 0; i < st->n_fp8; i++)
        AMPI_CHECK(st->fp8[i] && st->fp8[i]->ctx == ctx, "state.fp8[%llu] is NULL, or belongs to a different context",
            AMPI_ULL(i));
    return (ctx->b->may_wait)(ctx);
}

/* Loading gives the scalers their scale. */
static amp_status ampi_check_loaded(amp_ctx *ctx, const amp_state_desc *st) {
    size_t i;
    for (i = 0; i < st->n_scalers; i++)
        AMPI_STAGE(!st->scalers[i] || !ampi_held(st->scalers[i], NULL),
            "an accumulation window (amp_window_begin) holds the scale of state.scalers[%llu]", AMPI_ULL(i));
    return AMP_OK;
}
static amp_status ampi_file_begin(ampi_file *f, size_t buffer_bytes) {
    amp_ctx *ctx = f->ctx;
    f->sum = ampi_xxh_begin();
    f->buffer_bytes = buffer_bytes;
    f->buffer = (uint8_t *)ampi_host_take(&ctx->host, buffer_bytes); /* written before it is read: not zeroed */
    ampi_host_large_pages(&ctx->host, f->buffer, buffer_bytes);
    AMPI_REQUIRE(f->buffer, AMP_ERR_NO_MEMORY, "%llu bytes of host memory are needed", AMPI_ULL(buffer_bytes));
    return AMP_OK;
}
static ampi_file ampi_file_of(amp_ctx *ctx, const char *path) {
    ampi_file f = AMP_ZERO;
    f.ctx = ctx;
    f.path = path;
    return f;
}

static amp_status ampi_do_state_save(amp_ctx *ctx, const char *path, const amp_state_desc *state) {
    ampi_file f = ampi_file_of(ctx, path);
    ampi_replacement to;
    amp_status st;
    ampi_verb_hold(ctx);
    AMPI_TRY(ampi_state_check(ctx, path, state));
    AMPI_TRY(ampi_file_begin(&f, AMPI_STATE_BUFFER));
    f.to = &to;
    st = ampi_replacement_begin(&to, ctx, path);
    if (st == AMP_OK) st = ampi_replacement_end(&to, ampi_state_write(&f, state));
    ampi_host_drop(ctx, f.buffer, f.buffer_bytes);
    return st;
}
AMP_API amp_status amp_state_save(amp_ctx *ctx, const char *path, const amp_state_desc *state) {
    AMPI_VERB(ctx, state_save, (ctx, path, state));
}

static amp_status ampi_state_apply(ampi_file *f, const amp_state_desc *st) {
    size_t i;
    f->staged = 0;
    AMPI_TRY(ampi_walk(f, st, ampi_visit_apply));
    for (i = 0; i < st->n_params; i++) {
        if (st->params[i]->n) AMPI_TRY(ampi_first_steps(st->params[i], NULL, 1));
        if (!st->params[i]->stochastic) AMPI_TRY(ampi_do_params_master_to_model(st->params[i]));
    }
    return AMP_OK;
}
static amp_status ampi_state_load(ampi_file *f, const amp_state_desc *state) {
    amp_ctx *ctx = f->ctx;
    char reason[160];
    amp_status st;
    size_t i, n;
    AMPI_TRY(ampi_state_read(f, state));
    st = ampi_state_apply(f, state);
    for (i = 0; i < state->n_params; i++)
        ampi_weights_changed(ctx, state->params[i]);
    if (st != AMP_OK) { /* the device failed, not the file */
        n = ampi_name_verb(ctx, reason, sizeof reason);
        snprintf(reason, sizeof reason, "%.159s", strlen(ctx->error) > n ? ctx->error + n : "");
        return amp_fail(ctx, st, "%s: state undefined, load it again: %s", f->path, reason);
    }
    return AMP_OK;
}

static amp_status ampi_do_state_load(amp_ctx *ctx, const char *path, const amp_state_desc *state) {
    ampi_file f = ampi_file_of(ctx, path);
    amp_status st;
    unsigned mode;
    int32_t is;
    ampi_verb_hold(ctx);
    AMPI_TRY(ampi_state_check(ctx, path, state));
    AMPI_TRY(ampi_check_loaded(ctx, state));
    AMPI_TRY(ampi_check_kind(ctx, path, path, &is, &mode));
    (void)ampi_walk(&f, state, ampi_visit_measure);
    AMPI_TRY(ampi_file_begin(&f, f.buffer_bytes + 1));
    errno = 0;
    f.f = fopen(path, "rb");
    if (f.f)
        st = ampi_state_load(&f, state);
    else
        st = amp_fail(ctx, AMP_ERR_IO, "%s: cannot be opened: %s", path, ampi_reason());
    if (f.f) (void)fclose(f.f);
    ampi_host_drop(ctx, f.buffer, f.buffer_bytes);
    return st;
}
AMP_API amp_status amp_state_load(amp_ctx *ctx, const char *path, const amp_state_desc *state) {
    AMPI_VERB(ctx, state_load, (ctx, path, state));
}

#else
#  define AMPI_X(name) \
    AMP_API amp_status name(amp_ctx *ctx, const char *path, const amp_state_desc *state) { \
        (void)path; \
        (void)state; \
        AMP_VERB(ctx, #name, amp_fail(ctx, AMP_ERR_UNSUPPORTED, "built with AMP_NO_STDIO")); \
    }
AMPI_X(amp_state_save)
AMPI_X(amp_state_load)
#  undef AMPI_X
AMP_API amp_status amp_write_file(amp_ctx *ctx, const char *path, const void *data, size_t bytes) {
    (void)data;
    (void)bytes;
    return amp_fail(ctx, AMP_ERR_UNSUPPORTED, "%s: built with AMP_NO_STDIO", path);
}
#endif /* AMP_NO_STDIO */

/* ==== >>front-operations =========================================================================================
   The tables of operations, and what a policy does with them.   tests: tests/test_policy.c, tests/test_edges.c */

typedef char ampi_edits_fit[(size_t)AMP_OP_COUNT <= sizeof((amp_policy *)0)->edits ? 1 : -1];

typedef struct ampi_op_row { char name[40], classes[8]; } ampi_op_row;
typedef struct ampi_op_alias {
    char name[28], systems[4];
    uint32_t op;
} ampi_op_alias;
static const ampi_op_row ampi_op_rows[] = {/* no pointers: stays read-only in position-independent code */
    {"", "______"},
#define AMP_X(suffix, name, classes) {#name, #classes},
    AMP_OP_LIST(AMP_X)
#undef AMP_X
};
static const ampi_op_alias ampi_op_aliases[] = {
#define AMP_X(suffix, name, systems) {#name, #systems, AMP_OP_##suffix},
    AMP_OP_NAME_LIST(AMP_X)
#undef AMP_X
};
#define AMPI_ALIASES (sizeof ampi_op_aliases / sizeof ampi_op_aliases[0])

static int ampi_is_name(const char *row, const char *name, size_t len) {
    return strlen(row) == len && memcmp(row, name, len) == 0;
}
static amp_op ampi_op_exact(const char *name, size_t len) { /* AMP_OP_NONE: no such name */
    uint32_t i;
    for (i = 1; i < AMP_OP_COUNT; i++)
        if (ampi_is_name(ampi_op_rows[i].name, name, len)) return i;
    for (i = 0; i < AMPI_ALIASES; i++)
        if (ampi_is_name(ampi_op_aliases[i].name, name, len)) return ampi_op_aliases[i].op;
    return AMP_OP_NONE;
}

/* "torch.matmul" -> "matmul". One prefix goes; what is left is a name, or a module and a name. */
static const char *ampi_op_bare(const char *name, int *aten) {
    static const char prefixes[][32] = {"torch.nn.functional.", "nn.functional.", "F.", "torch.ops.aten.",
        "aten::", "torch.Tensor.", "Tensor.", "torch.", "mindspore.ops.operations.", "mindspore.ops.",
        "mindspore.mint.nn.functional.", "mindspore.mint.", "mindspore.", "ops.", "mint.", "P."};
    size_t i, n;
    *aten = 0;
    for (i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        n = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], n) != 0) continue;
        *aten = strstr(prefixes[i], "aten") != NULL;
        return name + n;
    }
    return name;
}
/* "linalg.inv" is listed as "linalg_inv", and "fft.fft" as "fft_fft". */
static amp_op ampi_op_of_module(const char *name, size_t len) {
    char copy[40];
    if (len >= sizeof copy) return AMP_OP_NONE;
    if (strncmp(name, "linalg.", 7) != 0 && strncmp(name, "fft.", 4) != 0) return AMP_OP_NONE;
    memcpy(copy, name, len);
    copy[strcspn(name, ".")] = '_';
    return ampi_op_exact(copy, len);
}

AMP_API amp_status amp_op_find(amp_op *out, const char *name) {
    size_t len;
    amp_op op;
    int aten;
    if (!out) return AMP_ERR_INVALID_ARG;
    *out = AMP_OP_NONE;
    if (!name) return AMP_ERR_INVALID_ARG;
    op = ampi_op_exact(name, strlen(name));
    name = ampi_op_bare(name, &aten);
    len = strlen(name);
    if (!op) op = ampi_op_exact(name, len);
    if (!op && aten) {
        len = strcspn(name, "."); /* without the overload */
        op = ampi_op_exact(name, len);
    }
    if (!op && len > 1 && name[len - 1] == '_' && name[len - 2] != '_')
        op = ampi_op_exact(name, len - 1); /* in place */
    if (!op) op = ampi_op_of_module(name, len);
    *out = op;
    return op ? AMP_OK : AMP_ERR_INVALID_ARG;
}

static int ampi_is_op(amp_op op) { return op > 0u && op < (amp_op)AMP_OP_COUNT; }
AMP_API const char *amp_op_name(amp_op op) { return ampi_is_op(op) ? ampi_op_rows[op].name : ""; }

static const char ampi_letters[] = "-LFOWB"; /* by amp_op_class; '_' in the lists is none of them */
static amp_op_class ampi_class_of_letter(char c) {
    const char *at = strchr(ampi_letters, c >= 'a' ? c - 'a' + 'A' : c);
    return at && c ? (amp_op_class)(at - ampi_letters) : AMP_CLASS_NONE;
}
AMP_API amp_op_class amp_op_class_of(amp_op op, amp_system system) {
    if (!ampi_is_op(op) || (uint32_t)system >= (uint32_t)AMP_SYSTEM_COUNT) return AMP_CLASS_NONE;
    return ampi_class_of_letter(ampi_op_rows[op].classes[system]);
}

AMP_API const char *amp_op_listed(amp_op op, amp_system system, size_t k) {
    static const char letter[] = "...AMS"; /* in ampi_op_alias.systems */
    size_t i;
    if (amp_op_class_of(op, system) == AMP_CLASS_NONE) return NULL;
    if (system <= AMP_SYSTEM_APEX && ampi_op_rows[op].classes[system] < 'a') { /* listed under the row's own name */
        if (k == 0) return ampi_op_rows[op].name;
        k--;
    }
    for (i = 0; i < AMPI_ALIASES; i++) {
        if (ampi_op_aliases[i].op != op || !strchr(ampi_op_aliases[i].systems, letter[system])) continue;
        if (k == 0) return ampi_op_aliases[i].name;
        k--;
    }
    return NULL;
}

AMP_API const char *amp_op_note(amp_op op) {
    static const char banned[] =
        "an FP16 input forces an FP16 gradient, and the gradient 1 / (p (1 - p)) may not be representable; "
        "casting the input up does not help. Use binary_cross_entropy_with_logits on the values before the sigmoid";
    if (op == AMP_OP_BINARY_CROSS_ENTROPY) return banned;
    if (op == AMP_OP_CROSS_ENTROPY || op == AMP_OP_CROSS_ENTROPY_LOSS)
        return "amp_softmax_cross_entropy reads half logits and computes in FP32: a cast before it would change no bit";
    if (op == AMP_OP_BATCH_NORM)
        return "PyTorch lists it nowhere, because cuDNN keeps its statistics in FP32; Apex O2 and MindSpore keep it in "
               "FP32, and so do we";
    if (op == AMP_OP_GELU) return "Apex computes it in FP32; our fused GELU does so inside, on any dtype";
    if (op == AMP_OP_RELU) return "MindSpore's white list has it; ReLU is exact in every dtype";
    if (op == AMP_OP_MEAN)
        return "a sum of half numbers overflows long before their mean: accumulated and returned in FP32";
    return "";
}

AMP_API const char *amp_op_class_name(amp_op_class c) {
    static const char names[][12] = {"none", "lower", "f32", "f32 output", "widest", "banned"};
    return (uint32_t)c <= (uint32_t)AMP_CLASS_BANNED ? names[c] : "unknown class";
}
AMP_API const char *amp_system_name(amp_system s) {
    static const char names[AMP_SYSTEM_COUNT][16] = {
        "amp", "pytorch-cuda", "pytorch-cpu", "apex", "mindspore", "mindspore-auto"};
    return AMPI_BELOW(s, AMP_SYSTEM_COUNT) ? names[s] : "unknown system";
}

/* ---- policies ---- */

/* Where every operation is lower precision: one that stays FP32 beside keep_norms. */
static int ampi_is_norm(const amp_policy *p, amp_op op) {
    if (ampi_family(p->preset) == AMPI_MINDSPORE) return amp_op_class_of(op, AMP_SYSTEM_MINDSPORE) == AMP_CLASS_F32;
    return op == AMP_OP_BATCH_NORM;
}
AMP_API amp_op_class amp_policy_class(const amp_policy *policy, amp_op op) {
    ampi_policy_way mode = policy ? ampi_policy_mode(policy) : AMPI_AS_IS;
    amp_op_class listed;
    if (mode == AMPI_AS_IS || op >= (amp_op)AMP_OP_COUNT) return AMP_CLASS_NONE;
    if (policy->edits[op]) return ampi_class_of_letter(policy->edits[op]);
    if (mode == AMPI_ALL_LOWER) return policy->keep_norms && ampi_is_norm(policy, op) ? AMP_CLASS_F32 : AMP_CLASS_LOWER;
    listed = amp_op_class_of(op, (amp_system)policy->lists);
    if (policy->preset == AMP_PRESET_MINDSPORE_O1 && listed != AMP_CLASS_LOWER) return AMP_CLASS_NONE; /* black: O2's */
    return listed;
}
AMP_API amp_dtype amp_policy_output(const amp_policy *policy, amp_op op, amp_dtype in) {
    return policy ? ampi_class_output(policy, amp_policy_class(policy, op), policy->low, in) : in;
}
AMP_API uint32_t amp_policy_keep_f32(const amp_policy *policy, amp_op op) {
    if (!policy || ampi_policy_mode(policy) != AMPI_ALL_LOWER) return 1; /* parameters are FP32 anyway */
    return amp_policy_class(policy, op) != AMP_CLASS_LOWER;
}

static amp_status ampi_do_policy_edit(amp_ctx *ctx, amp_policy *policy, amp_op op, amp_op_class c) {
    amp_op_class old;
    AMPI_CHECK(policy, "policy is NULL");
    AMPI_CHECK(ampi_is_op(op), "op is %llu: no such operation", AMPI_ULL(op));
    AMPI_CHECK((uint32_t)c <= (uint32_t)AMP_CLASS_BANNED, "c is %d: no such class", (int)c);
    old = amp_policy_class(policy, op);
    if (old == AMP_CLASS_BANNED && c != AMP_CLASS_BANNED)
        amp_log_event(ctx, AMP_LOG_WARNING, "%s was banned: %s", amp_op_name(op), amp_op_note(op));
    if ((old == AMP_CLASS_F32 || old == AMP_CLASS_F32_OUT) && (c == AMP_CLASS_LOWER || c == AMP_CLASS_NONE))
        amp_log_event(ctx, AMP_LOG_WARNING, "%s was in FP32 and may now overflow or lose accuracy in %s",
            amp_op_name(op), amp_dtype_name(policy->low));
    policy->edits[op] = ampi_letters[c];
    return AMP_OK;
}
AMP_API amp_status amp_policy_edit(amp_ctx *ctx, amp_policy *policy, amp_op op, amp_op_class c) {
    AMPI_VERB(ctx, policy_edit, (ctx, policy, op, c));
}

AMP_API size_t amp_policy_list(amp_op *out, size_t cap, const amp_policy *policy, amp_op_class c) {
    uint32_t i;
    size_t n = 0;
    for (i = 1; policy && i < AMP_OP_COUNT; i++)
        if (amp_policy_class(policy, (amp_op)i) == c) {
            if (out && n < cap) out[n] = (amp_op)i;
            n++;
        }
    return n;
}

static int ampi_is_in(const amp_op *list, size_t n, amp_op op) {
    size_t i;
    for (i = 0; i < n; i++)
        if (list[i] == op) return 1;
    return 0;
}
static amp_status ampi_do_policy_custom(amp_ctx *ctx, amp_policy *policy, const amp_op *white, size_t n_white,
    const amp_op *black, size_t n_black, amp_dtype dtype) {
    const amp_op *list = white ? white : black;
    const char *name = white ? "white" : "black";
    char inside = white ? 'L' : 'F';
    char outside = white ? '-' : 'L';
    size_t n = white ? n_white : n_black, i;
    amp_policy p;
    amp_op op;
    AMPI_CHECK(policy, "policy is NULL");
    AMPI_CHECK(!white || !black, "both lists are given; exactly one of white and black is needed");
    AMPI_CHECK(list, "no list is given; exactly one of white and black is needed");
    AMPI_CHECK(n > 0, "n_%s is 0", name);
    if (dtype == AMP_AUTO) dtype = AMP_F16;
    AMPI_CHECK(ampi_is_half(dtype), "dtype is %s; f16 or bf16 is needed", amp_dtype_name(dtype));
    for (i = 0; i < n; i++)
        AMPI_CHECK(ampi_is_op(list[i]), "%s[%llu] is %llu: no such operation", name, AMPI_ULL(i), AMPI_ULL(list[i]));
    ampi_policy_level(&p, white ? AMP_PRESET_MINDSPORE_O1 : AMP_PRESET_MINDSPORE_O2, dtype);
    for (op = 1; op < (amp_op)AMP_OP_COUNT; op++) {
        int in = ampi_is_in(list, n, op);
        p.edits[op] = in ? inside : outside;
        if (!in && !white && amp_op_class_of(op, AMP_SYSTEM_MINDSPORE) == AMP_CLASS_F32)
            amp_log_event(ctx, AMP_LOG_WARNING, "%s is left out of the black list: it will run in %s", amp_op_name(op),
                amp_dtype_name(dtype));
    }
    *policy = p;
    return AMP_OK;
}
AMP_API amp_status amp_policy_custom(amp_ctx *ctx, amp_policy *policy, const amp_op *white, size_t n_white,
    const amp_op *black, size_t n_black, amp_dtype dtype) {
    AMPI_VERB(ctx, policy_custom, (ctx, policy, white, n_white, black, n_black, dtype));
}

/* ==== >>cpu ======================================================================================================
   Arrays go through blocks of AMPI_BLOCK elements that stay in the L1 cache: widened to float, worked on, narrowed. So
   each piece of arithmetic exists once, for floats, and every dtype works with every verb. The loops are written once
   too, at >>lanes, and compiled for each SIMD path: scalar, sse2, avx2, avx512, neon. Kernels may assume the default
   floating-point environment: verbs and workers see to it.  tests: tests/fingerprint.c, tests/exhaustive.c */

#ifdef AMPI_FRONT_O1
#  pragma GCC pop_options
#endif
#if defined(__GNUC__) && !defined(__TINYC__)
#  define AMPI_PREFETCH(p) __builtin_prefetch(p)
#  define AMPI_LINES       __attribute__((__aligned__(64))) /* no vector lies in two lines of the cache */
#else
#  define AMPI_PREFETCH(p) ((void)(p))
#  define AMPI_LINES
#endif
#define AMPI_BLOCK        1024u
#define AMPI_DOT          2048u /* terms of a dot that are added up by lanes */
#define AMPI_DOT_ROWS     16u   /* dots at a time */
#define AMPI_XENT_CLASSES 16u   /* at most so many are few */
#define AMPI_XENT_ROWS    64u
/* Products: depth, rows and columns of a packed block; rows and columns are multiples of every mr and nr. */
#define AMPI_KC           256u
#define AMPI_MC           528u
#define AMPI_NC           512u
#define AMPI_SMALL        8192u           /* at most so many numbers of A and B are multiplied where they lie */
#define AMPI_FEW          4u              /* at most this many rows are multiplied without packing */
#define AMPI_LDC          (AMPI_NC + 16u) /* no power of two: rows of a tile lie in different cache sets */

/* Lost updates of a chunk: sums by lanes of a vector, and what is known of the elements of a block. */
#define AMPI_WIDEST 16u
typedef struct ampi_tally {
    amp_spacing spacing;
    uint32_t again; /* 1: weights are kept in 16 bits, and looked at when they are stored */
    uint32_t updates[AMPI_WIDEST];
    uint32_t lost[AMPI_WIDEST];
    float ratio[AMPI_WIDEST];              /* without spacing.rest */
    size_t at;                             /* where its kernels begin */
    AMPI_LINES char moved[4 * AMPI_BLOCK]; /* again: masks, set where there is an update and the weight is not NaN */
    uint16_t was[2][AMPI_BLOCK];           /* again: model copies and low parts before it */
    float old[AMPI_BLOCK];                 /* weights before it */
} ampi_tally;
/* A small product from where its numbers lie: c[rows][cols] = a[rows][depth] b[depth][cols], B in strips of `lanes`
   columns. */
typedef struct ampi_direct {
    const float *a, *b;
    float *c;
    size_t rows, cols, depth;
    size_t a_row, a_k, b_k, b_strip, c_row; /* from one row, k or strip to the next */
} ampi_direct;
static const uint32_t ampi_places[AMPI_WIDEST] = {/* bits of a mask, lane by lane */
    1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
/* One SIMD path. n is at most AMPI_BLOCK where floats are named; void pointers may be unaligned. */
typedef struct ampi_kernels {
    amp_simd simd;
    uint32_t pages; /* for stream: 1, 2 or 4 */
    const char *name;
    void (*widen[AMP_DTYPE_COUNT])(void *f32, const void *src, size_t n);
    void (*narrow[AMP_DTYPE_COUNT])(void *dst, const void *f32, size_t n); /* to nearest */
    /* r: a random word per element; NULL: to nearest */
    void (*round)(void *dst, amp_dtype t, const void *f32, size_t n, const uint32_t *r, int saturate);
    /* the words at .. at + n of the sequence, in buf[n + 64] */
    const uint32_t *(*random)(uint32_t *buf, size_t n, uint64_t seed, uint64_t stream, uint64_t at);
    int (*is_bad)(const void *src, size_t bytes, amp_dtype t);   /* is any element not finite? */
    int (*scale)(float *to, const float *u, size_t n, float by); /* to = u * by, maybe in place; is any not finite? */
    /* scale from F16 or BF16 to the same; NULL: widen, scale and narrow do it */
    int (*rescale)(void *to, const void *from, amp_dtype t, size_t n, float by);
    void (*axpy)(float *to, const float *u, size_t n, float by); /* to += by * u: product and sum are rounded */
    /* to += a row of x, four times; x: `step` bytes from row to row, of dtypes as in dots; n >= lanes */
    void (*add_four)(float *to, const char *x, size_t step, amp_dtype t, size_t n);
    /* the larger of amax and the largest |u|, as bits; NaN does not count. fit_to: and to = u * by: AMPI_F(fit_one) */
    uint32_t (*amax)(const float *u, size_t n, uint32_t amax);
    uint32_t (*fit_to)(float *to, const float *u, size_t n, float by, uint32_t limit, uint32_t amax);
    /* to[r] += a times row r of b, ld elements from one to the next, of F32 or, on paths that have `direct`, of F16 or
       BF16; any n, AMPI_DOT at a time. The order is the path's own: by lanes, whose sums are added one by one, then
       what is left of n */
    void (*dots)(float *to, size_t rows, const float *a, const char *b, size_t ld, amp_dtype t, size_t n);
    /* sums of one part, by the rule: n <= AMP_PART */
    float (*squares)(const char *g, amp_dtype t, size_t n, float by); /* of (g[i] * by)^2; not FP8 */
    float (*sum)(const float *u, size_t n);
    /* exponents; found: most finite |u|, zeros, NaN. n: a multiple of 64 */
    void (*count)(uint8_t *exponent, const float *u, size_t n, uint32_t found[3]);
    float (*largest)(const float *u, size_t n, float top);            /* the largest of them and top */
    void (*exps)(float *u, size_t n, float top);                      /* 2^24 e^(u - top), see AMPI_F(exp_term) */
    void (*softmax_shares)(float *u, size_t n, float by, float less); /* u * by - less, rounded once */
    /* cross-entropy of few classes: a lane is a row of x[classes][AMPI_XENT_ROWS]. Largest logits, their sum unless
       NULL, terms in their place and the sum of these; then gradients */
    void (*few_terms)(float *x, size_t classes, float *max, float *all, float *sum);
    void (*few_shares)(float *x, size_t classes, const float *by, const float *less);
    /* cross-entropy with a target for each class, see amp_xent_target, _miss, _grad_each; w: NULL, or factors of q */
    void (*targets)(float *q, const float *w, size_t n, float keep, float share);
    void (*misses)(float *x, const float *q, size_t n, float max);
    void (*grad_each)(float *term, const float *q, size_t n, float by, float factor);
    /* to: x, or dy, or an array of its own */
    void (*act)(float *to, const float *x, size_t n, amp_act act);
    void (*act_grad)(float *to, const float *dy, const float *saved, size_t n, amp_act act);
    /* ReLU of F16 or BF16 to the same, or its gradient if saved is not NULL; NULL: widen, act and narrow do it */
    void (*relu16)(char *to, const char *x, const char *saved, amp_dtype t, size_t n);
    void (*mask_of)(uint8_t *bits, const float *y, size_t n);    /* of ReLU's y */
    void (*mask_grad)(float *dy, const uint8_t *bits, size_t n); /* dy = 0 where the bit is 0 */
    void (*drop)(float *u, const uint32_t *random, size_t n, uint32_t threshold, float factor);
    /* 8-bit moments in blocks, which: 0 or 1; r: a random word per element. Floats and codes up to the next multiple of
       64 may be written */
    void (*moment_widen)(float *x, const uint8_t *code, const float *scale, size_t n, uint32_t which);
    void (*moment_narrow)(uint8_t *code, float *scale, float *x, const uint32_t *r, size_t n, uint32_t which);
    /* weights of SPLIT, SPLIT8 and KAHAN; r: a random word per element, for SPLIT8; NULL: to nearest */
    void (*pair_widen)(float *w, const amp_param_entry *p, size_t at, size_t n);
    void (*pair_narrow)(const amp_param_entry *p, size_t at, const float *w, const uint32_t *r, size_t n);
    void (*prepare)(float *to, const float *u, size_t n, const amp_coef *c);
    /* u: not prepared yet; m, v: NULL where the kind needs no such array; steps: NULL, or for what was subtracted from
       the weights, u itself perhaps */
    int (*update[AMP_UPDATE_COUNT])(/* 1: an element of v is Inf */
        float *w, float *m, float *v, const float *u, size_t n, const amp_coef *c, float *steps);
    /* after w = tally->old has become w, by updates u * by */
    void (*count_sizes)(ampi_tally *tally, const float *w, const float *u, size_t n, float by);
    /* after model copies and low parts, unless NULL, have become these */
    void (*count_unchanged)(ampi_tally *tally, const char *model, const char *low, size_t n);
    /* see ampi_cast_stream; NULL: none */
    void (*stream)(char *dst, const char *buf, size_t pages, const char *next, size_t step);
    void (*fence)(void); /* after the last stream */
    /* products: c[mr][nr], row stride AMPI_LDC, += a[kc][mr] b[kc][nr], both packed; `first`: = instead of +=. Each
       element is the same chain of operations whatever mr is */
    uint32_t mr[4], nr, lanes; /* mr: falling; 0: no more */
    void (*tile[4])(size_t kc, const float *a, const float *b, float *c, int first);
    /* the same for `rows` of a strip of width mr, each multiply-add rounded once; NULL: that is what tile does */
    void (*fused)(size_t rows, size_t mr, size_t kc, const float *a, const float *b, float *c, int first);
    /* the same chains without packing; twice: a term is rounded, then its sum, as axpy does. NULL: FMA
       rounds twice */
    void (*direct)(const ampi_direct *d, int twice);
    /* to[k * width + r] = rows[r * ld + k], r < 4 */
    void (*pack4)(float *to, size_t width, const float *rows, size_t ld, size_t depth);
} ampi_kernels;

/* to[r] += rows[r * ld + k], times a[k] unless a is NULL, for k = 0, 1 ... and r < count, a multiple of 4 and at most
   AMPI_DOT_ROWS: chains of several groups do not wait for each other. */
#ifdef AMPI_X86
static __m128 ampi_four_terms(__m128 x, const float *a, size_t k) { return a ? _mm_mul_ps(_mm_set1_ps(a[k]), x) : x; }
static __m128 ampi_four_chains(__m128 sum, const float *rows, size_t ld, size_t k, const float *a) {
    __m128 s = _mm_loadu_ps(rows + k), t = _mm_loadu_ps(rows + ld + k);
    __m128 u = _mm_loadu_ps(rows + 2 * ld + k), v = _mm_loadu_ps(rows + 3 * ld + k);
    _MM_TRANSPOSE4_PS(s, t, u, v);
    sum = _mm_add_ps(sum, ampi_four_terms(s, a, k));
    sum = _mm_add_ps(sum, ampi_four_terms(t, a, k + 1));
    sum = _mm_add_ps(sum, ampi_four_terms(u, a, k + 2));
    return _mm_add_ps(sum, ampi_four_terms(v, a, k + 3));
}
static __m128 ampi_four_next(__m128 sum, const float *rows, size_t ld, size_t k, const float *a) {
    __m128 s = _mm_setr_ps(rows[k], rows[ld + k], rows[2 * ld + k], rows[3 * ld + k]);
    return _mm_add_ps(sum, ampi_four_terms(s, a, k));
}
static void ampi_chains(float *to, size_t count, const float *rows, size_t ld, size_t n, const float *a) {
    const size_t groups = count / 4u, four = 4u * ld;
    __m128 sum[AMPI_DOT_ROWS / 4u];
    size_t g, k, left;
    for (g = 0; g < groups; g++)
        sum[g] = _mm_loadu_ps(to + 4 * g);
    for (k = 0; k < n - n % 4u; k += 4)
        for (g = 0; g < groups; g++)
            sum[g] = ampi_four_chains(sum[g], rows + g * four, ld, k, a);
    for (left = n % 4u; left; left--, k++) /* gcc 12 at -O3 knows that it ends */
        for (g = 0; g < groups; g++)
            sum[g] = ampi_four_next(sum[g], rows + g * four, ld, k, a);
    for (g = 0; g < groups; g++)
        _mm_storeu_ps(to + 4 * g, sum[g]);
}
#else
static void ampi_chains(float *to, size_t count, const float *rows, size_t ld, size_t n, const float *a) {
    size_t k, r;
    for (r = 0; r < count; r++) {
        float sum = to[r];
        for (k = 0; k < n; k++)
            sum += a ? a[k] * rows[r * ld + k] : rows[r * ld + k];
        to[r] = sum;
    }
}
#endif

/* to[c] += x[c], in doubles. */
static void ampi_add_doubles(double *to, const double *x, size_t n) {
    size_t i = 0;
#ifdef AMPI_X86
    for (; i + 2 <= n; i += 2)
        _mm_storeu_pd(to + i, _mm_add_pd(_mm_loadu_pd(to + i), _mm_loadu_pd(x + i)));
#endif
    for (; i < n; i++)
        to[i] = amp_dadd(to[i], x[i]);
}
static void ampi_add_floats(double *to, const float *x, size_t n) {
    size_t i = 0;
#ifdef AMPI_X86
    for (; i + 4 <= n; i += 4) {
        const __m128 four = _mm_loadu_ps(x + i);
        _mm_storeu_pd(to + i, _mm_add_pd(_mm_loadu_pd(to + i), _mm_cvtps_pd(four)));
        _mm_storeu_pd(to + i + 2, _mm_add_pd(_mm_loadu_pd(to + i + 2), _mm_cvtps_pd(_mm_movehl_ps(four, four))));
    }
#endif
    for (; i < n; i++)
        to[i] = amp_dadd(to[i], amp_widen(x[i]));
}

#if defined(AMPI_X86) || defined(AMPI_NEON)
#  define AMPI_ALWAYS __attribute__((__always_inline__)) static inline
#else
#  define AMPI_ALWAYS static inline /* not AMP_INLINE: these are for the host only */
#endif
/* ==== >>cpu-paths ================================================================================================
   How each path spells an operation, and nothing else: names and meanings stand at >>lanes, and so does all that is
   made of operations. A path defines AMPI_F and what it has, stamps the operations that all paths of vectors spell
   alike (AMPI_PASS_ALIKE), adds its own, and stamps the rest, which ends these definitions.
   tests: tests/fingerprint.c, tests/exhaustive.c, tests/test_arrays.c, tests/test_step.c, tests/test_products.c

   AMPI_WIDTH      floats of a vector
   AMPI_TARGET     the attribute of functions that use its instructions
   AMPI_TILES(X)   heights of its tiles of products, falling
   AMPI_REG        asm's letter for a register of vectors; AMPI_FIRST: for the first of two operands
   AMPI_ASM1, 2    an instruction of one operand, of two; AMPI_EQUAL: its name for a == b
   AMPI_MM(name)   x86: the intrinsic _mm_name of this width
   AMPI_HAS_...    FMA: AMPI_FMA rounds once. SHIFT_EACH: shl_each and shr_each. SOME: load_some, store_some.
                   MASKS: masks are no vectors. HALVES: F16 by instructions; HALVES_OF_F8: FP8 by way of them.
                   STREAM: stream64. PACK4: pack4 */
#define AMPI_OP AMPI_TARGET AMPI_ALWAYS

/* ---- scalar: portable C. What rules for one element need stands at >>backend already ---- */
#define AMPI_F(name) ampi_scalar_##name
#define AMPI_TARGET
#define AMPI_WIDTH    1u
#define AMPI_TILES(X) X(4)
#define AMPI_HAS_PACK4
/* clang-format off */
AMPI_OP float ampi_scalar_load(const float *p)           { return *p; }
AMPI_OP void  ampi_scalar_store(float *p, float x)       { *p = x; }
AMPI_OP float ampi_scalar_fma(float a, float b, float c) { return a * b + c; }
AMPI_OP float ampi_scalar_larger(float a, float b)       { return a > b ? a : b; }

AMPI_OP int      ampi_scalar_any(uint32_t a)                { return a != 0; }
AMPI_OP int      ampi_scalar_nonzero(float x)               { return (ampi_bits(x) & 0x7fffffffu) - 1u < 0x7f800000u; }
AMPI_OP uint32_t ampi_scalar_add_if(uint32_t sum, int mask) { return sum + (uint32_t)mask; }

AMPI_OP uint32_t ampi_scalar_load_words(const void *p)            { uint32_t x; memcpy(&x, p, sizeof x); return x; }
AMPI_OP uint32_t ampi_scalar_load16(const void *p)                { uint16_t h; memcpy(&h, p, sizeof h); return h; }
AMPI_OP uint32_t ampi_scalar_load8(const void *p)                 { return *(const uint8_t *)p; }
AMPI_OP void     ampi_scalar_store_words(uint32_t *p, uint32_t x) { *p = x; }
AMPI_OP void     ampi_scalar_done(void)                           {}

AMPI_OP int ampi_scalar_same16(int mask, const void *a, const void *b) { return mask & (memcmp(a, b, 2) == 0); }

/* These two without a guard: compilers are to vectorise loops of them. */
AMPI_OP float ampi_scalar_magic_add(float a, float b) { return a + b; }
AMPI_OP float ampi_scalar_magic_sub(float a, float b) { return a - b; }
/* clang-format on */
AMPI_OP float ampi_scalar_larger_abs(float a, float b) {
    return ampi_larger(a, ampi_float(ampi_bits(b) & 0x7fffffffu));
}
AMPI_OP int ampi_scalar_same(int mask, float a, float b) {
    return mask & (ampi_bits(a) == ampi_bits(b)) & !amp_is_nan(b);
}
AMPI_OP void ampi_scalar_store8(uint8_t *p, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    p[0] = (uint8_t)a;
    p[1] = (uint8_t)b;
    p[2] = (uint8_t)c;
    p[3] = (uint8_t)d;
}
#define AMPI_PASS AMPI_PASS_SCALAR
#include AMP_SELF

/* ---- sse2.   tests: tests/test_arrays.c ---- */
#ifdef AMPI_X86
#  define AMPI_F(name) ampi_sse2_##name
#  define AMPI_TARGET
#  define AMPI_WIDTH    4u
#  define AMPI_TILES(X) X(4) X(1)
#  define AMPI_MM(name) _mm_##name
#  define AMPI_REG      "x"
#  ifdef __AVX__ /* the same registers: no mixing of encodings */
#    define AMPI_ASM1(op) "{v" op "ps %1, %0|v" op "ps %0, %1}"
#    define AMPI_ASM2(op) "{v" op "ps %2, %1, %0|v" op "ps %0, %1, %2}"
#    define AMPI_FIRST    "x"
#  else
#    define AMPI_ASM1(op) "{" op "ps %1, %0|" op "ps %0, %1}"
#    define AMPI_ASM2(op) "{" op "ps %2, %0|" op "ps %0, %2}"
#    define AMPI_FIRST    "0"
#  endif
#  define AMPI_EQUAL "cmpeq"
#  define AMPI_HAS_STREAM
#  define AMPI_HAS_PACK4
typedef __m128 ampi_sse2_floats;
typedef __m128i ampi_sse2_words, ampi_sse2_words64, ampi_sse2_mask;
#  define AMPI_PASS AMPI_PASS_ALIKE
#  include AMP_SELF
/* clang-format off */
AMPI_OP __m128  ampi_sse2_fma(__m128 a, __m128 b, __m128 c)       { return ampi_sse2_add(_mm_mul_ps(a, b), c); }
AMPI_OP __m128  ampi_sse2_larger_abs(__m128 a, __m128 b)          { return ampi_sse2_larger(ampi_sse2_size(b), a); }
AMPI_OP __m128i ampi_sse2_select(__m128i m, __m128i a, __m128i b) { return (m & a) | (~m & b); }

AMPI_OP __m128i ampi_sse2_min(__m128i a, __m128i b) { return ampi_sse2_select(ampi_sse2_greater(a, b), b, a); }
AMPI_OP __m128i ampi_sse2_max(__m128i a, __m128i b) { return ampi_sse2_select(ampi_sse2_greater(a, b), a, b); }
AMPI_OP __m128i ampi_sse2_word64(uint64_t x)        { return _mm_set1_epi64x((long long)x); }
AMPI_OP __m128i ampi_sse2_counters(void)            { return _mm_set_epi64x(1, 0); }
AMPI_OP __m128i ampi_sse2_low64(const void *p)      { return _mm_loadl_epi64((const __m128i *)p); }
AMPI_OP __m128i ampi_sse2_signed16(__m128i a)       { return _mm_srai_epi32(_mm_slli_epi32(a, 16), 16); }
AMPI_OP void    ampi_sse2_done(void)                {}
/* clang-format on */
AMPI_OP int ampi_sse2_any(__m128i a) { return _mm_movemask_epi8(_mm_cmpeq_epi32(a, _mm_setzero_si128())) != 0xffff; }
AMPI_OP __m128i ampi_sse2_load_upper(const void *p) {
    return _mm_unpacklo_epi16(_mm_setzero_si128(), ampi_sse2_low64(p));
}
AMPI_OP __m128i ampi_sse2_load16(const void *p) { return _mm_unpacklo_epi16(ampi_sse2_low64(p), _mm_setzero_si128()); }
AMPI_OP __m128i ampi_sse2_load8(const void *p) {
    const __m128i zero = _mm_setzero_si128();
    int32_t x;
    memcpy(&x, p, 4);
    return _mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(x), zero), zero);
}
AMPI_OP __m128i ampi_sse2_same16(__m128i mask, const void *a, const void *b) {
    __m128i r = _mm_cmpeq_epi16(ampi_sse2_low64(a), ampi_sse2_low64(b));
    return mask & _mm_unpacklo_epi16(r, r);
}
AMPI_OP void ampi_sse2_store16(void *p, __m128i a, __m128i b) { /* the pack saturates signed numbers */
    ampi_sse2_store_words(p, _mm_packs_epi32(ampi_sse2_signed16(a), ampi_sse2_signed16(b)));
}
AMPI_OP void ampi_sse2_store8(void *p, __m128i a, __m128i b, __m128i c, __m128i d) {
    ampi_sse2_store_words(p, _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d)));
}
#  ifdef __FMA__
AMPI_OP __m128 ampi_sse2_fuse(__m128 a, __m128 b, __m128 c) { return ampi_sse2_guard(_mm_fmadd_ps(a, b, c)); }
#  else
AMPI_OP __m128d ampi_sse2_guard_doubles(__m128d x) {
    __asm__("" : "+x"(x));
    return x;
}
AMPI_OP __m128d ampi_sse2_product(__m128 a, __m128 b) { /* of the lower half, exact */
    return ampi_sse2_guard_doubles(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)));
}
/* Where a double may lie halfway between two floats: its lower 28 bits are 0, as those of a float are. */
AMPI_OP __m128i ampi_sse2_halfway(__m128d low, __m128d high) {
    __m128 ends = _mm_shuffle_ps(_mm_castpd_ps(low), _mm_castpd_ps(high), _MM_SHUFFLE(2, 0, 2, 0));
    return _mm_cmpeq_epi32(_mm_castps_si128(ends) & _mm_set1_epi32(0x0fffffff), _mm_setzero_si128());
}
/* Bits in which a double is not the float nearest to it, by halves. */
AMPI_OP __m128 ampi_sse2_unlike(__m128d x, __m128 nearest) {
    return _mm_castsi128_ps(_mm_castpd_si128(x) ^ _mm_castpd_si128(_mm_cvtps_pd(nearest)));
}
/* A sum that is a float is right: e^0 and zeros give such. */
AMPI_RARE __m128 ampi_sse2_fuse_each(__m128 a, __m128 b, __m128 c, __m128d low, __m128d high) {
    const __m128 sum = ampi_sse2_guard(_mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high)));
    const __m128 l = ampi_sse2_unlike(low, sum), h = ampi_sse2_unlike(high, _mm_movehl_ps(sum, sum));
    __m128i bits = _mm_castps_si128(_mm_shuffle_ps(l, h, _MM_SHUFFLE(2, 0, 2, 0)));
    float x[3][4];
    uint32_t k;
    bits |= _mm_castps_si128(_mm_shuffle_ps(l, h, _MM_SHUFFLE(3, 1, 3, 1)));
    bits = _mm_cmpeq_epi32(bits, _mm_setzero_si128());
    if (!_mm_movemask_epi8(_mm_andnot_si128(bits, ampi_sse2_halfway(low, high)))) return sum;
    ampi_sse2_store(x[0], a);
    ampi_sse2_store(x[1], b);
    ampi_sse2_store(x[2], c);
    for (k = 0; k < 4; k++)
        x[0][k] = amp_fma(x[0][k], x[1][k], x[2][k]);
    return ampi_sse2_load(x[0]);
}
AMPI_OP __m128 ampi_sse2_fuse(__m128 a, __m128 b, __m128 c) { /* see amp_fma */
    __m128d low = ampi_sse2_product(a, b), high = ampi_sse2_product(_mm_movehl_ps(a, a), _mm_movehl_ps(b, b));
    low = ampi_sse2_guard_doubles(_mm_add_pd(low, _mm_cvtps_pd(c)));
    high = ampi_sse2_guard_doubles(_mm_add_pd(high, _mm_cvtps_pd(_mm_movehl_ps(c, c))));
    if (_mm_movemask_epi8(ampi_sse2_halfway(low, high))) return ampi_sse2_fuse_each(a, b, c, low, high);
    return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}
#  endif
AMPI_OP void ampi_sse2_stream64(char *p, const char *b) {
    __m128i *to = (__m128i *)(void *)p;
    _mm_stream_si128(to, ampi_sse2_load_words(b));
    _mm_stream_si128(to + 1, ampi_sse2_load_words(b + 16));
    _mm_stream_si128(to + 2, ampi_sse2_load_words(b + 32));
    _mm_stream_si128(to + 3, ampi_sse2_load_words(b + 48));
}
static void ampi_sse2_fence(void) { _mm_sfence(); }
static void ampi_sse2_pack4(float *to, size_t width, const float *rows, size_t ld, size_t depth) {
    size_t k;
    for (k = 0; k + 4 <= depth; k += 4, to += 4 * width) {
        __m128 a = _mm_loadu_ps(rows + k), b = _mm_loadu_ps(rows + ld + k);
        __m128 c = _mm_loadu_ps(rows + 2 * ld + k), d = _mm_loadu_ps(rows + 3 * ld + k);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        _mm_storeu_ps(to, a);
        _mm_storeu_ps(to + width, b);
        _mm_storeu_ps(to + 2 * width, c);
        _mm_storeu_ps(to + 3 * width, d);
    }
    ampi_scalar_pack4(to, width, rows + k, ld, depth - k);
}
#  define AMPI_PASS AMPI_PASS_VECTOR
#  include AMP_SELF
#endif

/* ---- avx2, with F16C.   tests: as sse2's ---- */
#ifdef AMPI_X86
#  define AMPI_AVX2     __attribute__((__target__("avx2,fma,f16c")))
#  define AMPI_F(name)  ampi_avx2_##name
#  define AMPI_TARGET   AMPI_AVX2
#  define AMPI_WIDTH    8u
#  define AMPI_TILES(X) X(6) X(4) X(1)
#  define AMPI_MM(name) _mm256_##name
#  define AMPI_REG      "x"
#  define AMPI_ASM1(op) "{v" op "ps %1, %0|v" op "ps %0, %1}"
#  define AMPI_ASM2(op) "{v" op "ps %2, %1, %0|v" op "ps %0, %1, %2}"
#  define AMPI_FIRST    "x"
#  define AMPI_EQUAL    "cmpeq"
#  define AMPI_HAS_FMA
#  define AMPI_HAS_SHIFT_EACH
#  define AMPI_HAS_SOME
#  define AMPI_HAS_HALVES
#  define AMPI_HAS_HALVES_OF_F8
#  define AMPI_HAS_STREAM
typedef __m256 ampi_avx2_floats;
typedef __m256i ampi_avx2_words, ampi_avx2_words64, ampi_avx2_mask;
typedef __m128i ampi_avx2_halves;
#  define AMPI_PASS AMPI_PASS_ALIKE
#  include AMP_SELF
/* clang-format off */
AMPI_OP __m256  ampi_avx2_fma(__m256 a, __m256 b, __m256 c)       { return _mm256_fmadd_ps(a, b, c); }
AMPI_OP __m256  ampi_avx2_larger_abs(__m256 a, __m256 b)          { return ampi_avx2_larger(ampi_avx2_size(b), a); }
AMPI_OP __m256i ampi_avx2_select(__m256i m, __m256i a, __m256i b) { return _mm256_blendv_epi8(b, a, m); }

AMPI_OP int     ampi_avx2_any(__m256i a)            { return !_mm256_testz_si256(a, a); }
AMPI_OP __m256i ampi_avx2_word64(uint64_t x)        { return _mm256_set1_epi64x((long long)x); }
AMPI_OP __m256i ampi_avx2_counters(void)            { return _mm256_setr_epi64x(0, 2, 1, 3); }
AMPI_OP __m128i ampi_avx2_low64(const void *p)      { return _mm_loadl_epi64((const __m128i *)p); }
AMPI_OP __m128i ampi_avx2_low128(const void *p)     { return _mm_loadu_si128((const __m128i *)p); }
AMPI_OP __m256i ampi_avx2_load16(const void *p)     { return _mm256_cvtepu16_epi32(ampi_avx2_low128(p)); }
AMPI_OP __m256i ampi_avx2_load8(const void *p)      { return _mm256_cvtepu8_epi32(ampi_avx2_low64(p)); }
AMPI_OP __m256i ampi_avx2_from_halves(__m128i h)    { return _mm256_castps_si256(_mm256_cvtph_ps(h)); }
AMPI_OP __m128i ampi_avx2_to_halves(__m256i x)      { return _mm256_cvtps_ph(_mm256_castsi256_ps(x), 0); }
AMPI_OP __m128i ampi_avx2_load_bytes(const void *p) { return _mm_cvtepi8_epi16(ampi_avx2_low64(p)); }
AMPI_OP __m256i ampi_avx2_first(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
AMPI_OP __m256 ampi_avx2_load_some(const float *p, size_t n) {
    return _mm256_maskload_ps(p, ampi_avx2_first(n));
}
AMPI_OP void ampi_avx2_store_some(float *p, size_t n, __m256 x) { _mm256_maskstore_ps(p, ampi_avx2_first(n), x); }
/* GCC 12 forgets it before a tail call: SSE code is 3 times slower then (Zen 5). */
AMPI_OP void ampi_avx2_done(void) { _mm256_zeroupper(); }
/* clang-format on */
/* 16-bit words in the upper halves of 32-bit ones, zeros below: the load puts them into both halves of the vector. */
AMPI_OP __m256i ampi_avx2_load_upper(const void *p) {
    const __m256i order =
        _mm256_setr_epi16(-1, 0x100, -1, 0x302, -1, 0x504, -1, 0x706, -1, 0x908, -1, 0xb0a, -1, 0xd0c, -1, 0xf0e);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(ampi_avx2_low128(p)), order);
}
AMPI_OP __m256i ampi_avx2_same16(__m256i mask, const void *a, const void *b) {
    return mask & _mm256_cvtepi16_epi32(_mm_cmpeq_epi16(ampi_avx2_low128(a), ampi_avx2_low128(b)));
}
AMPI_OP void ampi_avx2_store16(void *p, __m256i a, __m256i b) {
    ampi_avx2_store_words(p, _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8));
}
AMPI_OP void ampi_avx2_store8(void *p, __m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
    ampi_avx2_store_words(p, _mm256_permutevar8x32_epi32(bytes, order));
}
AMPI_OP void ampi_avx2_stream64(char *p, const char *b) {
    __m256i *to = (__m256i *)(void *)p;
    _mm256_stream_si256(to, ampi_avx2_load_words(b));
    _mm256_stream_si256(to + 1, ampi_avx2_load_words(b + 32));
}
#  define AMPI_PASS AMPI_PASS_VECTOR
#  include AMP_SELF
#endif

/* ---- avx512: F, BW, DQ and VL.   tests: as sse2's ---- */
#ifdef AMPI_X86
#  ifndef __clang__
#    pragma GCC diagnostic push
#    pragma GCC diagnostic ignored "-Wuninitialized" /* GCC bug 105593: its own _mm512_undefined_*() */
#    pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#  endif
#  define AMPI_AVX512   __attribute__((__target__("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#  define AMPI_F(name)  ampi_avx512_##name
#  define AMPI_TARGET   AMPI_AVX512
#  define AMPI_WIDTH    16u
#  define AMPI_TILES(X) X(12) X(8) X(4) X(1)
#  define AMPI_MM(name) _mm512_##name
#  define AMPI_REG      "v"
#  define AMPI_ASM1(op) "{v" op "ps %1, %0|v" op "ps %0, %1}"
#  define AMPI_ASM2(op) "{v" op "ps %2, %1, %0|v" op "ps %0, %1, %2}"
#  define AMPI_FIRST    "v"
#  define AMPI_HAS_FMA
#  define AMPI_HAS_SHIFT_EACH
#  define AMPI_HAS_SOME
#  define AMPI_HAS_MASKS
#  define AMPI_HAS_HALVES
#  define AMPI_HAS_HALVES_OF_F8
#  define AMPI_HAS_STREAM
typedef __m512 ampi_avx512_floats;
typedef __m512i ampi_avx512_words, ampi_avx512_words64;
typedef __mmask16 ampi_avx512_mask;
typedef __m256i ampi_avx512_halves;
#  define AMPI_PASS AMPI_PASS_ALIKE
#  include AMP_SELF
/* clang-format off */
AMPI_OP __m512    ampi_avx512_fma(__m512 a, __m512 b, __m512 c)         { return _mm512_fmadd_ps(a, b, c); }
AMPI_OP __mmask16 ampi_avx512_greater(__m512i a, __m512i b)             { return _mm512_cmpgt_epi32_mask(a, b); }
AMPI_OP __m512i   ampi_avx512_select(__mmask16 m, __m512i a, __m512i b) { return _mm512_mask_mov_epi32(b, m, a); }

AMPI_OP int     ampi_avx512_any(__m512i a)            { return _mm512_test_epi32_mask(a, a) != 0; }
AMPI_OP __m512i ampi_avx512_word64(uint64_t x)        { return _mm512_set1_epi64((long long)x); }
AMPI_OP __m512i ampi_avx512_counters(void)            { return _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7); }
AMPI_OP __m128i ampi_avx512_low128(const void *p)     { return _mm_loadu_si128((const __m128i *)p); }
AMPI_OP __m256i ampi_avx512_low256(const void *p)     { return _mm256_loadu_si256((const __m256i *)p); }
AMPI_OP __m512i ampi_avx512_load16(const void *p)     { return _mm512_cvtepu16_epi32(ampi_avx512_low256(p)); }
AMPI_OP __m512i ampi_avx512_load8(const void *p)      { return _mm512_cvtepu8_epi32(ampi_avx512_low128(p)); }
AMPI_OP __m512i ampi_avx512_from_halves(__m256i h)    { return _mm512_castps_si512(_mm512_cvtph_ps(h)); }
AMPI_OP __m256i ampi_avx512_load_bytes(const void *p) { return _mm256_cvtepi8_epi16(ampi_avx512_low128(p)); }
AMPI_OP void    ampi_avx512_done(void)                { _mm256_zeroupper(); }
/* clang-format on */
AMPI_OP __m512i ampi_avx512_load_upper(const void *p) { return _mm512_slli_epi32(ampi_avx512_load16(p), 16); }
AMPI_OP __mmask16 ampi_avx512_first(size_t n) { return (__mmask16)((1u << n) - 1u); }
AMPI_OP __m512 ampi_avx512_load_some(const float *p, size_t n) {
    return _mm512_maskz_loadu_ps(ampi_avx512_first(n), p);
}
AMPI_OP void ampi_avx512_store_some(float *p, size_t n, __m512 x) { _mm512_mask_storeu_ps(p, ampi_avx512_first(n), x); }
AMPI_OP __m512 ampi_avx512_larger_abs(__m512 a, __m512 b) {
    __asm__("{vrangeps $11, %1, %0, %0|vrangeps %0, %0, %1, 11}"
        : "+v"(a)
        : "v"(b)); /* 11: of sizes, with a sign of 0 */
    return a;
}
AMPI_OP __mmask16 ampi_avx512_nonzero(__m512 x) {
    __mmask16 r;
    __asm__("{vcmpneq_oqps %2, %1, %0|vcmpneq_oqps %0, %1, %2}" : "=k"(r) : "v"(x), "v"(_mm512_setzero_ps()));
    return r;
}
AMPI_OP __mmask16 ampi_avx512_same(__mmask16 mask, __m512 a, __m512 b) {
    __mmask16 r;
    __asm__("{vcmpeqps %2, %1, %0%{%3%}|vcmpeqps %0%{%3%}, %1, %2}" : "=k"(r) : "v"(a), "v"(b), "Yk"(mask));
    return r;
}
AMPI_OP __mmask16 ampi_avx512_same16(__mmask16 mask, const void *a, const void *b) {
    return _mm256_mask_cmpeq_epi16_mask(mask, ampi_avx512_low256(a), ampi_avx512_low256(b));
}
AMPI_OP __m512i ampi_avx512_add_if(__m512i sum, __mmask16 mask) {
    return _mm512_mask_sub_epi32(sum, mask, sum, _mm512_set1_epi32(-1));
}
AMPI_OP void ampi_avx512_store16(void *p, __m512i a, __m512i b) {
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    ampi_avx512_store_words(p, _mm512_permutexvar_epi64(order, _mm512_packus_epi32(a, b)));
}
AMPI_OP void ampi_avx512_store8(void *p, __m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i bytes = _mm512_packus_epi16(_mm512_packus_epi32(a, b), _mm512_packus_epi32(c, d));
    ampi_avx512_store_words(p, _mm512_permutexvar_epi32(order, bytes));
}
AMPI_OP void ampi_avx512_stream64(char *p, const char *b) {
    _mm512_stream_si512((__m512i *)(void *)p, ampi_avx512_load_words(b));
}
AMPI_OP __m256i ampi_avx512_to_halves(__m512i x) { /* the plain form, as a macro at -O0, has a sign conversion in it */
    return _mm512_maskz_cvtps_ph((__mmask16)0xffffu, _mm512_castsi512_ps(x), 0);
}
#  define AMPI_PASS AMPI_PASS_VECTOR
#  include AMP_SELF
/* VCVTNE2PS2BF16 rounds to nearest in any mode, but takes subnormals for 0: a step that holds one (2x - 1 < 2^24 - 1
   unsigned) is done again with integers. */
#  if defined(__clang__) ? __clang_major__ >= 9 : __GNUC__ >= 10
#    define AMPI_HAS_BF16
#    define AMPI_AVX512_BF16 __attribute__((__target__("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")))
AMPI_AVX512_BF16 AMPI_ALWAYS __m512i ampi_avx512_less_tiny(__m512i least, __m512i x) {
    return _mm512_min_epu32(least, _mm512_add_epi32(_mm512_add_epi32(x, x), _mm512_set1_epi32(-1)));
}
AMPI_AVX512_BF16 AMPI_ALWAYS __m512i ampi_avx512_to_bf16(__m512i low, __m512i high) {
    __m512i r;
    __asm__("{vcvtne2ps2bf16 %2, %1, %0|vcvtne2ps2bf16 %0, %1, %2}" : "=v"(r) : "v"(high), "v"(low));
    return r;
}
AMPI_AVX512_BF16 AMPI_ALWAYS void ampi_avx512_bf16_step(char *d, const char *s) {
    __m512i v0 = ampi_avx512_load_words(s), v1 = ampi_avx512_load_words(s + 64);
    __m512i v2 = ampi_avx512_load_words(s + 128), v3 = ampi_avx512_load_words(s + 192);
    __m512i tiny = ampi_avx512_less_tiny(_mm512_set1_epi32(-1), v0);
    tiny = ampi_avx512_less_tiny(tiny, v1);
    tiny = ampi_avx512_less_tiny(tiny, v2);
    tiny = ampi_avx512_less_tiny(tiny, v3);
    ampi_avx512_store_words(d, ampi_avx512_to_bf16(v0, v1));
    ampi_avx512_store_words(d + 64, ampi_avx512_to_bf16(v2, v3));
    /* not ampi_avx512_narrow_bf16(d, s, 64): clang 14 -O1 never ends */
    if (_mm512_cmplt_epu32_mask(tiny, _mm512_set1_epi32(0x00ffffff))) ampi_avx512_narrow_step(d, s, AMP_BF16);
}
AMPI_AVX512_BF16 static void ampi_avx512_narrow_bf16_hw(void *dst, const void *src, size_t n) {
    char *d = (char *)dst;
    const char *s = (const char *)src;
    size_t i;
    for (i = 0; i + 64 <= n; i += 64)
        ampi_avx512_bf16_step(d + 2 * i, s + 4 * i);
    if (i < n) ampi_avx512_narrow_bf16(d + 2 * i, s + 4 * i, n - i);
}
#  endif
#  ifndef __clang__
#    pragma GCC diagnostic pop
#  endif
#endif

/* ---- neon.   tests: as sse2's, on AArch64 (tests/matrix.sh) ---- */
#ifdef AMPI_NEON
#  define AMPI_F(name) ampi_neon_##name
#  define AMPI_TARGET
#  define AMPI_WIDTH    4u
#  define AMPI_TILES(X) X(12) X(4) X(1)
#  define AMPI_REG      "w"
#  define AMPI_ASM1(op) "f" op " %0.4s, %1.4s"
#  define AMPI_ASM2(op) "f" op " %0.4s, %1.4s, %2.4s"
#  define AMPI_FIRST    "w"
#  define AMPI_EQUAL    "cmeq"
#  define AMPI_HAS_FMA
#  define AMPI_HAS_SHIFT_EACH
#  define AMPI_HAS_HALVES
typedef float32x4_t ampi_neon_floats;
typedef uint32x4_t ampi_neon_words, ampi_neon_mask;
typedef uint64x2_t ampi_neon_words64;
typedef float16x4_t ampi_neon_halves;
#  define AMPI_PASS AMPI_PASS_ALIKE
#  include AMP_SELF
/* clang-format off */
AMPI_OP float32x4_t ampi_neon_fma(float32x4_t a, float32x4_t b, float32x4_t c) { return vfmaq_f32(c, a, b); }
AMPI_OP uint32x4_t  ampi_neon_select(uint32x4_t m, uint32x4_t a, uint32x4_t b) { return vbslq_u32(m, a, b); }

AMPI_OP float32x4_t ampi_neon_set(float x)                         { return vdupq_n_f32(x); }
AMPI_OP uint32x4_t  ampi_neon_word(uint32_t x)                     { return vdupq_n_u32(x); }
AMPI_OP uint32x4_t  ampi_neon_shl_each(uint32x4_t a, uint32x4_t n) { return vshlq_u32(a, (int32x4_t)n); }
AMPI_OP int         ampi_neon_any(uint32x4_t a)                    { return vmaxvq_u32(a) != 0; }
AMPI_OP uint64x2_t  ampi_neon_word64(uint64_t x)                   { return vdupq_n_u64(x); }
AMPI_OP uint64x2_t  ampi_neon_mul32(uint64x2_t a, uint64x2_t b)    { return vmull_u32(vmovn_u64(a), vmovn_u64(b)); }
AMPI_OP uint64x2_t  ampi_neon_even64(uint64x2_t a, uint64x2_t b)   { return vtrn1q_u64(a, b); }
AMPI_OP uint64x2_t  ampi_neon_odd64(uint64x2_t a, uint64x2_t b)    { return vtrn2q_u64(a, b); }
AMPI_OP uint8x8_t   ampi_neon_low64(const void *p)                 { return vld1_u8((const uint8_t *)p); }
AMPI_OP uint16x8_t  ampi_neon_low16(uint32x4_t a, uint32x4_t b)    { return vcombine_u16(vmovn_u32(a), vmovn_u32(b)); }
AMPI_OP void        ampi_neon_done(void)                           {}
/* clang-format on */
AMPI_OP uint64x2_t ampi_neon_counters(void) { return vcombine_u64(vcreate_u64(0), vcreate_u64(1)); }
AMPI_OP float32x4_t ampi_neon_fuse(float32x4_t a, float32x4_t b, float32x4_t c) {
    return ampi_neon_guard(vfmaq_f32(c, a, b));
}
AMPI_OP uint32x4_t ampi_neon_shr_each(uint32x4_t a, uint32x4_t n) { /* by a negative number: to the right */
    return vshlq_u32(a, vnegq_s32((int32x4_t)n));
}
AMPI_OP uint32x4_t ampi_neon_load_upper(const void *p) {
    return vshll_n_u16(vreinterpret_u16_u8(ampi_neon_low64(p)), 16);
}
AMPI_OP uint32x4_t ampi_neon_load16(const void *p) { return vmovl_u16(vreinterpret_u16_u8(ampi_neon_low64(p))); }
AMPI_OP uint32x4_t ampi_neon_min(uint32x4_t a, uint32x4_t b) {
    return (uint32x4_t)vminq_s32((int32x4_t)a, (int32x4_t)b);
}
AMPI_OP uint32x4_t ampi_neon_max(uint32x4_t a, uint32x4_t b) {
    return (uint32x4_t)vmaxq_s32((int32x4_t)a, (int32x4_t)b);
}
AMPI_OP float32x4_t ampi_neon_larger_abs(float32x4_t a, float32x4_t b) {
    __asm__("fmaxnm %0.4s, %0.4s, %1.4s" : "+w"(a) : "w"(vabsq_f32(b)));
    return a;
}
AMPI_OP uint32x4_t ampi_neon_nonzero(float32x4_t x) {
    uint32x4_t r;
    __asm__("facgt %0.4s, %1.4s, %2.4s" : "=w"(r) : "w"(x), "w"(vdupq_n_f32(0.0f)));
    return r;
}
AMPI_OP uint32x4_t ampi_neon_same16(uint32x4_t mask, const void *a, const void *b) {
    uint16x4_t x = vreinterpret_u16_u8(ampi_neon_low64(a)), y = vreinterpret_u16_u8(ampi_neon_low64(b));
    return mask & (uint32x4_t)vmovl_s16((int16x4_t)vceq_u16(x, y));
}
AMPI_OP uint32x4_t ampi_neon_load8(const void *p) {
    uint32_t x;
    memcpy(&x, p, 4);
    return vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(x)))));
}
AMPI_OP void ampi_neon_store16(void *p, uint32x4_t a, uint32x4_t b) {
    vst1q_u8((uint8_t *)p, vreinterpretq_u8_u16(ampi_neon_low16(a, b)));
}
AMPI_OP void ampi_neon_store8(void *p, uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d) {
    vst1q_u8((uint8_t *)p, vcombine_u8(vmovn_u16(ampi_neon_low16(a, b)), vmovn_u16(ampi_neon_low16(c, d))));
}
AMPI_OP uint32x4_t ampi_neon_from_halves(float16x4_t h) { return (uint32x4_t)vcvt_f32_f16(h); }
AMPI_OP float16x4_t ampi_neon_to_halves(uint32x4_t x) { return vcvt_f16_f32((float32x4_t)x); }
#  define AMPI_PASS AMPI_PASS_VECTOR
#  include AMP_SELF
#endif

/* ==== >>cpu-pick =================================================================================================
   Which paths there are, and which one this machine gets.  tests: tests/test_context.c, tests/test_arrays.c */

/* Least first: each starts from the table of the one before it and replaces what it does better. */
#if defined(AMPI_X86)
#  define AMPI_PATHS(X) X(scalar, SCALAR) X(sse2, SSE2) X(avx2, AVX2) X(avx512, AVX512)
#elif defined(AMPI_NEON)
#  define AMPI_PATHS(X) X(scalar, SCALAR) X(neon, NEON)
#else
#  define AMPI_PATHS(X) X(scalar, SCALAR)
#endif

typedef struct ampi_cpuid {
    amp_simd best;
    int32_t bf16; /* AVX512_BF16 */
    int32_t amd;
} ampi_cpuid;
#if defined(AMPI_X86)
/* CPUID and XGETBV ourselves: __builtin_cpu_supports does not know "f16c" in older compilers. */
#  define AMPI_CPUID_AVX2_C   (1u << 27 | 1u << 28 | 1u << 29 | 1u << 12) /* leaf 1, ECX: OSXSAVE AVX F16C FMA */
#  define AMPI_CPUID_AVX2_B   (1u << 5)                                   /* leaf 7, EBX */
#  define AMPI_CPUID_AVX512_B (1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) /* leaf 7, EBX: F DQ BW VL */
static int ampi_has_all(unsigned word, unsigned bits) { return (word & bits) == bits; }
static ampi_cpuid ampi_cpuid_read(void) {
    ampi_cpuid is = {AMP_SIMD_SSE2, 0, 0};
    unsigned a, b, c, d, saved_by_os, high;
    if (!__get_cpuid(0, &a, &b, &c, &d)) return is;
    is.amd = b == 0x68747541u; /* "Auth"enticAMD */
    if (!__get_cpuid(1, &a, &b, &c, &d)) return is;
    if (!ampi_has_all(c, AMPI_CPUID_AVX2_C)) return is;
    __asm__ volatile("xgetbv" : "=a"(saved_by_os), "=d"(high) : "c"(0));
    if (!ampi_has_all(saved_by_os, 0x06u)) return is;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return is;
    if (!ampi_has_all(b, AMPI_CPUID_AVX2_B)) return is;
    is.best = AMP_SIMD_AVX2;
    if (!ampi_has_all(saved_by_os, 0xe6u) || !ampi_has_all(b, AMPI_CPUID_AVX512_B)) return is;
    is.best = AMP_SIMD_AVX512;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) is.bf16 = (int32_t)(a >> 5) & 1;
    return is;
}
#else
static ampi_cpuid ampi_cpuid_read(void) {
    ampi_cpuid is = {AMP_SIMD_SCALAR, 0, 0};
#  ifdef AMPI_NEON
    is.best = AMP_SIMD_NEON;
#  endif
    return is;
}
#endif
/* Tables of kernels are filled by code: a const table of addresses would be writable data in PIC. */
static int ampi_pick_kernels(ampi_kernels *k, amp_simd want) { /* 0: not here */
    const ampi_cpuid is = ampi_cpuid_read();
    if (want == AMP_SIMD_AUTO) want = is.best;
    memset(k, 0, sizeof *k);
#define AMP_X(path, NAME) \
    if (want >= AMP_SIMD_##NAME) { \
        ampi_##path##_use(k); \
        k->simd = AMP_SIMD_##NAME; \
        k->name = #path; \
    }
    AMPI_PATHS(AMP_X)
#undef AMP_X
#ifdef AMPI_HAS_BF16
    if (want == AMP_SIMD_AVX512 && is.bf16) k->narrow[AMP_BF16] = ampi_avx512_narrow_bf16_hw;
#endif
    /* f32->f16, GB/s: Zen 5 45 with one page, 30 with 4; Granite Rapids 17 and 20 (bench/NOTES.md) */
    k->pages = is.amd ? 1 : 4;
    return k->simd == want && want <= is.best;
}
/* ==== >>cpu-host =================================================================================================
   Thread pool. Tasks are large and handed out one by one under a mutex; results do not depend on who runs which.
   tests: tests/test_context.c */
typedef struct ampi_workspace { /* of one thread */
    float a[AMPI_MC * AMPI_KC], b[AMPI_KC * AMPI_NC], c[AMPI_MC * AMPI_LDC],
        row[4 * AMPI_KC > AMPI_NC ? 4 * AMPI_KC : AMPI_NC]; /* 2.2 MB */
    double part[AMP_PARTS], lane[AMP_LANES], column[AMP_COLUMN_LANES * AMPI_NC];
} ampi_workspace;

#define AMPI_CPU_KIND "cpu: " /* then the path and the threads */
typedef struct ampi_cpu {
    const ampi_kernels *k; /* &kernels */
    ampi_kernels kernels;
    amp_allocator mem;
    int32_t threads, rooms;
    uint32_t taken;       /* large blocks so far: see ampi_cpu_take */
    char name[48];        /* what amp_ctx_name gives */
    ampi_workspace *work; /* `rooms` of them, one per thread; touched when they are needed */
    void (*fn)(void *arg, size_t task, ampi_workspace *w);
    void *arg;
    size_t next, total;
#ifndef AMP_NO_THREADS
    pthread_mutex_t lock; /* of everything below, of next, and of merging results */
    pthread_cond_t start, done;
    pthread_t worker[255];
    int32_t workers; /* that live; 0: all is done by the calling thread */
    int32_t sharing; /* 1: several threads are at the tasks */
    int32_t started, quit;
    uint32_t running, round;
    uint64_t process; /* whose they are: fork() takes only the calling thread along */
#endif
} ampi_cpu;
static ampi_cpu *ampi_cpu_of(amp_ctx *ctx) { return (ampi_cpu *)amp_ctx_self(ctx); }
#ifndef AMP_NO_THREADS
static uint64_t ampi_this_process(void) {
#  if defined(_WIN32) || defined(__wasi__)
    return 0; /* no fork() */
#  else
    return (uint64_t)getpid();
#  endif
}
static int ampi_has_workers(ampi_cpu *c) {
    if (c->workers && c->process != ampi_this_process()) c->workers = 0;
    return c->workers != 0;
}
/* Of tasks. A verb that needs no worker locks nothing: after fork() the lock may be held by one that is not there. */
static void ampi_lock(ampi_cpu *c) {
    if (c->sharing) (void)pthread_mutex_lock(&c->lock);
}
static void ampi_unlock(ampi_cpu *c) {
    if (c->sharing) (void)pthread_mutex_unlock(&c->lock);
}
static void ampi_run_tasks(ampi_cpu *c, ampi_workspace *w) { /* with the lock held */
    while (c->next < c->total) {
        size_t task = c->next++;
        (void)pthread_mutex_unlock(&c->lock);
        (c->fn)(c->arg, task, w);
        (void)pthread_mutex_lock(&c->lock);
    }
}
/* Signals are for the program's threads: a worker takes only those that a fault of its own raises. */
#  if !defined(_WIN32) && !defined(__wasi__)
#    if defined(SIG_SETMASK) /* hidden under -std=c99, too */
#      define AMPI_SETMASK SIG_SETMASK
#    elif defined(__mips__) || defined(__alpha__)
#      define AMPI_SETMASK 3
#    else
#      define AMPI_SETMASK 2 /* Linux, but for those two */
#    endif
typedef sigset_t ampi_signals;
static ampi_signals ampi_signals_block(void) {
    static const int faults[5] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    ampi_signals all, old;
    int i;
    (void)(sigfillset)(&all);
    for (i = 0; i < 5; i++)
        (void)(sigdelset)(&all, faults[i]);
    (void)pthread_sigmask(AMPI_SETMASK, &all, &old);
    return old;
}
static void ampi_signals_restore(ampi_signals old) { (void)pthread_sigmask(AMPI_SETMASK, &old, NULL); }
#  else
typedef int ampi_signals;
static ampi_signals ampi_signals_block(void) { return 0; }
static void ampi_signals_restore(ampi_signals old) { (void)old; }
#  endif
/* Until a word of the pool changes. Sleeping and waking take 30 to 100 us, longer than most of what is waited for: a
   verb's last task, the next verb of a training step. So a waiting thread first looks at the word, for at most about
   50 us, and returns whether that was enough. */
#  define AMPI_LOOKS 1000
#  if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#    define AMPI_PAUSE() __asm__ volatile("pause")
#  elif defined(__GNUC__) && defined(__aarch64__)
#    define AMPI_PAUSE() __asm__ volatile("isb") /* "yield" takes no time */
#  else
#    define AMPI_PAUSE() (void)0
#  endif
static int ampi_looked(ampi_cpu *c, const uint32_t *word) {
    uint32_t before = *word;
    int i;
    (void)pthread_mutex_unlock(&c->lock);
    for (i = 0; i < AMPI_LOOKS && AMPI_READ(word) == before; i++)
        AMPI_PAUSE();
    (void)pthread_mutex_lock(&c->lock);
    return *word != before;
}
static void *ampi_worker(void *arg) {
    ampi_cpu *c = (ampi_cpu *)arg;
    ampi_workspace *w;
    uint32_t seen = 0, misses = 0; /* times in a row that looking did not help: the program computes between verbs */
    (void)ampi_fpu_enter();
    (void)pthread_mutex_lock(&c->lock);
    w = &c->work[++c->started];
    for (;;) {
        int looks = misses < 2 || misses % 16 == 0;
        if (c->round != seen || (looks && ampi_looked(c, &c->round)))
            misses = 0;
        else
            misses++;
        while (c->round == seen)
            (void)pthread_cond_wait(&c->start, &c->lock);
        if (c->quit) break;
        seen = c->round;
        AMPI_WRITE(&c->running, c->running + 1); /* who comes when all tasks are taken is not waited for */
        ampi_run_tasks(c, w);
        AMPI_WRITE(&c->running, c->running - 1);
        if (c->running == 0) (void)pthread_cond_signal(&c->done);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return NULL;
}
/* work: about how many elements there are in all. Waking threads costs as much as some ten thousand of them. */
static void ampi_parallel(
    ampi_cpu *c, size_t tasks, size_t work, void (*fn)(void *, size_t, ampi_workspace *), void *arg) {
    size_t i;
    int before;
    if (tasks <= 1 || work < 65536 || !ampi_has_workers(c)) {
        for (i = 0; i < tasks; i++)
            (fn)(arg, i, c->work);
        return;
    }
    before = ampi_hold();
    (void)pthread_mutex_lock(&c->lock);
    c->sharing = 1;
    c->fn = fn;
    c->arg = arg;
    c->next = 0;
    c->total = tasks;
    AMPI_WRITE(&c->round, c->round + 1);
    (void)pthread_cond_broadcast(&c->start);
    ampi_run_tasks(c, c->work);
    if (c->running) (void)ampi_looked(c, &c->running);
    while (c->running)
        (void)pthread_cond_wait(&c->done, &c->lock);
    c->sharing = 0;
    (void)pthread_mutex_unlock(&c->lock);
    ampi_release(before);
}
static void ampi_pool_end(ampi_cpu *c) {
    (void)pthread_cond_destroy(&c->start);
    (void)pthread_cond_destroy(&c->done);
    (void)pthread_mutex_destroy(&c->lock);
}
static void ampi_pool_stop(ampi_cpu *c) {
    int i, before;
    if (!ampi_has_workers(c)) return;
    before = ampi_hold();
    (void)pthread_mutex_lock(&c->lock);
    c->quit = 1;
    AMPI_WRITE(&c->round, c->round + 1);
    (void)pthread_cond_broadcast(&c->start);
    (void)pthread_mutex_unlock(&c->lock);
    for (i = 0; i < c->workers; i++)
        (void)pthread_join(c->worker[i], NULL);
    ampi_release(before);
    ampi_pool_end(c);
    c->workers = 0;
}
/* A worker for each room but the first, or as many as the system gives. */
static void ampi_pool_start(ampi_cpu *c) {
    ampi_signals old;
    if (c->rooms == 1 || pthread_mutex_init(&c->lock, NULL) != 0) return;
    if (pthread_cond_init(&c->start, NULL) != 0) {
        (void)pthread_mutex_destroy(&c->lock);
        return;
    }
    if (pthread_cond_init(&c->done, NULL) != 0) {
        (void)pthread_cond_destroy(&c->start);
        (void)pthread_mutex_destroy(&c->lock);
        return;
    }
    c->process = ampi_this_process();
    old = ampi_signals_block();         /* workers begin with the mask of who starts them */
    (void)pthread_mutex_lock(&c->lock); /* workers read how many they are when they are told to go */
    while (c->workers < c->rooms - 1 && pthread_create(&c->worker[c->workers], NULL, ampi_worker, c) == 0)
        c->workers++;
    (void)pthread_mutex_unlock(&c->lock);
    ampi_signals_restore(old);
    c->threads = c->workers + 1;
    if (c->workers == 0) ampi_pool_end(c);
}
#else
static void ampi_pool_start(ampi_cpu *c) { (void)c; }
static void ampi_pool_stop(ampi_cpu *c) { (void)c; }
static void ampi_lock(ampi_cpu *c) { (void)c; }
static void ampi_unlock(ampi_cpu *c) { (void)c; }
static void ampi_parallel(
    ampi_cpu *c, size_t tasks, size_t work, void (*fn)(void *, size_t, ampi_workspace *), void *arg) {
    size_t i;
    (void)work;
    for (i = 0; i < tasks; i++)
        (fn)(arg, i, c->work);
}
#endif

/* ampi_parallel, for a backend function's last line. */
static amp_status ampi_run(
    ampi_cpu *c, size_t tasks, double work, void (*fn)(void *, size_t, ampi_workspace *), void *arg) {
    ampi_parallel(c, tasks, work < 1e9 ? (size_t)work : (size_t)1000000000, fn, arg);
    return AMP_OK;
}
static size_t ampi_chunks(size_t n) { return (n - 1) / AMP_CHUNK + 1; }

/* ==== >>cpu-arrays ===============================================================================================
   Sums by the rule (>>sums), memory, arrays.  tests: tests/test_arrays.c, tests/test_step.c, tests/test_fp8.c */

/* Halves n doubles; what lies beyond counts as 0 and is not touched. */
static double ampi_halve(double *x, size_t n) {
    size_t h = 1, i;
    if (n == 0) return 0.0;
    while (h < n)
        h *= 2;
    for (h /= 2; h > 0; h /= 2) {
        for (i = 0; i < h && i + h < n; i++)
            x[i] = amp_dadd(x[i], x[i + h]);
        n = n < h ? n : h;
    }
    return x[0];
}
/* A sum that is fed the sums of chunks in order; those of parts, when there is one array, in order too. */
typedef struct ampi_sum {
    double *part, *lane;
    size_t parts, chunks;
} ampi_sum;
static ampi_sum ampi_sum_begin(ampi_workspace *w) {
    ampi_sum s = {w->part, w->lane, 0, 0};
    return s;
}
static void ampi_sum_chunk(ampi_sum *s, double chunk) {
    double *lane = &s->lane[s->chunks % AMP_LANES];
    *lane = s->chunks < AMP_LANES ? chunk : amp_dadd(*lane, chunk);
    s->chunks++;
}
static void ampi_sum_part(ampi_sum *s, float part) {
    s->part[s->parts++] = amp_widen(part);
    if (s->parts < AMP_PARTS) return;
    ampi_sum_chunk(s, ampi_halve(s->part, AMP_PARTS));
    s->parts = 0;
}
static double ampi_sum_end_of(ampi_sum *s) {
    if (s->parts) ampi_sum_chunk(s, ampi_halve(s->part, s->parts));
    return ampi_halve(s->lane, s->chunks < AMP_LANES ? s->chunks : AMP_LANES);
}

/* ---- memory ---- */
/* 256-byte aligned inside what the allocator gives; its own pointer is kept in front of the block. Large blocks begin
   at different places of a page: an update goes over four of them at once, and elements whose addresses are alike
   drive each other out of the first cache. */
static size_t ampi_cpu_room(size_t bytes) { return bytes + (bytes < 65536u ? 512u : 512u + 4096u); }
static amp_status ampi_cpu_take(amp_ctx *ctx, void **out, size_t bytes, void *(*from)(const amp_allocator *, size_t)) {
    ampi_cpu *c = ampi_cpu_of(ctx);
    const size_t room = ampi_cpu_room(bytes);
    char *raw, *p;
    AMPI_REQUIRE(!(room < bytes), AMP_ERR_NO_MEMORY, "%llu bytes", AMPI_ULL(bytes));
    raw = (char *)(from)(&c->mem, room);
    ampi_host_large_pages(&c->mem, raw, room);
    AMPI_REQUIRE(raw, AMP_ERR_NO_MEMORY, "the allocator has no %llu bytes", AMPI_ULL(bytes));
    p = raw + 256 + (256 - ((uintptr_t)raw & 255u)) % 256u;
    if (room > bytes + 512u) p += 256u * (5u * c->taken++ % 16u);
    memcpy(p - sizeof raw, &raw, sizeof raw);
    *out = p;
    return AMP_OK;
}
static amp_status ampi_cpu_alloc(amp_ctx *ctx, void **out, size_t bytes) {
    return ampi_cpu_take(ctx, out, bytes, ampi_host_take);
}
static amp_status ampi_cpu_alloc_zeros(amp_ctx *ctx, void **out, size_t bytes) {
    return ampi_cpu_take(ctx, out, bytes, ampi_host_alloc);
}
static void ampi_cpu_release(amp_ctx *ctx, void *ptr, size_t bytes) {
    ampi_cpu *c = ampi_cpu_of(ctx);
    char *raw;
    memcpy(&raw, (char *)ptr - sizeof raw, sizeof raw);
    ampi_host_free(&c->mem, raw, ampi_cpu_room(bytes));
}
static amp_status ampi_cpu_copy(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    (void)ctx;
    memmove(dst, src, bytes);
    return AMP_OK;
}
static amp_status ampi_cpu_zero(amp_ctx *ctx, void *dst, size_t bytes) {
    (void)ctx;
    memset(dst, 0, bytes);
    return AMP_OK;
}
static amp_status ampi_cpu_sync(amp_ctx *ctx) {
    (void)ctx;
    return AMP_OK;
}

/* ---- arrays ---- */
static char *ampi_at(amp_array a, size_t i) { return (char *)a.data + i * amp_dtype_size(a.dtype); }
static size_t ampi_least(size_t a, size_t b) { return a < b ? a : b; }
/* Where element i lies, if it is a float that can be read there; NULL if not. */
static const float *ampi_in_place(amp_array a, size_t i) {
    const char *p = ampi_at(a, i);
    return a.dtype == AMP_F32 && (uintptr_t)p % sizeof(float) == 0 ? (const float *)(const void *)p : NULL;
}
/* Elements i .. i + n to be read as floats: where they are, if they are floats, else widened to buf. */
static const float *ampi_floats(const ampi_kernels *k, amp_array a, size_t i, size_t n, float *buf) {
    const char *p = ampi_at(a, i);
    if (ampi_in_place(a, i)) return (const float *)(const void *)p;
    k->widen[a.dtype](buf, p, n);
    return buf;
}
static void ampi_prefetch(const char *p, size_t bytes) {
    const char *end = p + bytes;
    for (; p < end; p += 64)
        AMPI_PREFETCH(p);
}
/* How many of n random words from number `at` on have increasing numbers: they are counted modulo 2^64. */
static size_t ampi_random_run(uint64_t at, size_t n) {
    uint64_t before_zero = (uint64_t)0 - at;
    return at && n > before_zero ? (size_t)before_zero : n;
}
/* n <= AMPI_BLOCK floats to t, stochastically: element i with word at + i. */
static void ampi_round_block(const ampi_kernels *k, void *dst, amp_dtype t, const void *f32, size_t n, uint64_t seed,
    uint64_t stream, uint64_t at, int saturate) {
    uint32_t buf[AMPI_BLOCK + 64];
    size_t i, m;
    for (i = 0; i < n; i += m) {
        m = ampi_random_run(at + i, n - i);
        (k->round)((char *)dst + i * amp_dtype_size(t), t, (const char *)f32 + 4 * i, m,
            (k->random)(buf, m, seed, stream, at + i), saturate);
    }
}
typedef struct ampi_cast_job {
    const ampi_kernels *k;
    amp_array dst, src;
    size_t n, head;
    const amp_cast_desc *d;
    int32_t stream, _pad;
} ampi_cast_job;
/* Elements i .. i + count, written to `to`. */
static void ampi_cast_some(const ampi_cast_job *j, char *to, size_t i, size_t count) {
    const ampi_kernels *k = j->k;
    amp_dtype from = j->src.dtype, t = j->dst.dtype;
    int stochastic = j->d->rounding == AMP_STOCHASTIC, nearest = !stochastic && !j->d->saturate;
    float block[AMPI_BLOCK];
    size_t n;
    if (t == AMP_F32) {
        k->widen[from](to, ampi_at(j->src, i), count);
        return;
    }
    if (from == AMP_F32 && nearest) {
        k->narrow[t](to, ampi_at(j->src, i), count);
        return;
    }
    for (; count; count -= n, i += n, to += n * amp_dtype_size(t)) {
        const void *f = ampi_at(j->src, i);
        n = ampi_least(AMPI_BLOCK, count);
        if (from != AMP_F32) {
            k->widen[from](block, f, n);
            f = block;
        }
        if (nearest)
            k->narrow[t](to, f, n);
        else if (stochastic)
            ampi_round_block(k, to, t, f, n, j->d->seed, j->d->stream, j->d->offset + i, (int)j->d->saturate);
        else
            (k->round)(to, t, f, n, NULL, (int)j->d->saturate);
    }
}
/* Around the caches: a buffer is filled and then written line by line, while the source of the next buffer is
   prefetched; plain stores would read every line of the output first. The buffer is one piece of the output, or pieces
   of 4 pages whose lines take turns: whichever the machine likes (see ampi_pick_kernels). Returns where it stopped. */
static size_t ampi_cast_stream(const ampi_cast_job *j, size_t i, size_t end) {
    size_t to = amp_dtype_size(j->dst.dtype), from = amp_dtype_size(j->src.dtype);
    size_t pages = j->k->pages, per_page = 4096 / to, piece = per_page / pages, round = pages * per_page, page, at,
           next;
    size_t per_line = 64 * from / to; /* bytes of the source for a line of the output */
    char raw[4096 + 64], *buf = raw + (64 - ((uintptr_t)raw & 63u)) % 64u;
    for (; end - i >= round; i += round) {
        for (at = 0; at < per_page; at += piece) {
            next = i;
            if (at + piece < per_page)
                next = i + at + piece;
            else if (end - i >= 2 * round)
                next = i + round;
            for (page = 0; page < pages; page++)
                ampi_cast_some(j, buf + page * piece * to, i + page * per_page + at, piece);
            (j->k->stream)(ampi_at(j->dst, i + at), buf, pages, ampi_at(j->src, next), per_line);
        }
    }
    (j->k->fence)();
    return i;
}
static void ampi_cast_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_cast_job *j = (const ampi_cast_job *)arg;
    size_t i = task ? j->head + task * AMP_CHUNK : 0, end = ampi_least(j->n, j->head + (task + 1) * AMP_CHUNK);
    (void)w;
    if (i >= end) return;
    if (j->dst.dtype == j->src.dtype) {
        memmove(ampi_at(j->dst, i), ampi_at(j->src, i), (end - i) * amp_dtype_size(j->dst.dtype));
        return;
    }
    if (j->stream) {
        if (i == 0) {
            ampi_cast_some(j, ampi_at(j->dst, 0), 0, j->head);
            i = j->head;
        }
        i = ampi_cast_stream(j, i, end);
    }
    if (i < end) ampi_cast_some(j, ampi_at(j->dst, i), i, end - i);
}
/* From doubles or to doubles. */
static void ampi_cast_f64_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_cast_job *j = (const ampi_cast_job *)arg;
    const amp_cast_desc *d = j->d;
    size_t i = task * AMP_CHUNK, end = ampi_least(j->n, i + AMP_CHUNK);
    (void)w;
    for (; i < end; i++) {
        uint32_t r = d->rounding == AMP_STOCHASTIC ? amp_random(d->seed, d->stream, d->offset + i) : 0u;
        uint64_t wide;
        double x;
        if (j->dst.dtype == AMP_F64) {
            wide = ampi_f64_of(ampi_load_bits(j->src.data, j->src.dtype, i));
            memcpy(ampi_at(j->dst, i), &wide, sizeof wide);
        } else {
            memcpy(&x, ampi_at(j->src, i), sizeof x);
            ampi_store_pattern(
                j->dst.data, j->dst.dtype, i, ampi_encode_f64(x, j->dst.dtype, d->rounding, r, (int)d->saturate));
        }
    }
}
/* A few elements: a task and its vectors would cost more than they. */
static int ampi_cast_few(const amp_array *dst, const amp_array *src, size_t n, const amp_cast_desc *d) {
    const int doubles = dst->dtype == AMP_F64 || src->dtype == AMP_F64;
    size_t i;
    if (n > 3 || doubles || dst->dtype == src->dtype || d->rounding != AMP_NEAREST || d->saturate) return 0;
    for (i = 0; i < n; i++) {
        const uint32_t x = ampi_load_bits(src->data, src->dtype, i);
        ampi_store_pattern(dst->data, dst->dtype, i, ampi_round_any(x, dst->dtype));
    }
    return 1;
}
static amp_status ampi_cpu_cast(amp_ctx *ctx, amp_array dst, amp_array src, size_t n, const amp_cast_desc *d) {
    ampi_cpu *c = ampi_cpu_of(ctx);
    size_t size = amp_dtype_size(dst.dtype), off = (64 - ((uintptr_t)dst.data & 63u)) & 63u;
    ampi_cast_job j;
    if (ampi_cast_few(&dst, &src, n, d)) return AMP_OK;
    j.k = c->k;
    j.dst = dst;
    j.src = src;
    j.n = n;
    j.head = 0;
    j.d = d;
    if (dst.dtype != src.dtype && (dst.dtype == AMP_F64 || src.dtype == AMP_F64))
        return ampi_run(c, ampi_chunks(n), (double)n, ampi_cast_f64_task, &j);
    /* bytes are at most a third of the traffic, and lines of 64 of them take too long to fill */
    j.stream = c->k->stream && size > 1 && n * size >= AMP_STREAM_BYTES && n > AMP_CHUNK && (off & (size - 1)) == 0 &&
        dst.dtype != src.dtype && dst.data != src.data;
    if (j.stream) j.head = off / size; /* tasks begin where lines begin */
    ampi_parallel(c, ampi_chunks(n - j.head), n, ampi_cast_task, &j);
    return AMP_OK;
}

/* What is wrong with a chunk's elements from .. from + n of a gradient g whose products are u. */
static void ampi_count_faults(amp_faults *f, amp_array g, size_t from, const float *u, size_t n) {
    size_t e;
    for (e = 0; e < n; e++)
        amp_count_fault(f, amp_load(g.data, g.dtype, from + e), u[e], (uint32_t)(from + e));
}
/* Products that are finite as floats but not as stored in `out`. */
static void ampi_count_lost(amp_faults *f, amp_array out, size_t from, const float *u, size_t n) {
    size_t e;
    for (e = 0; e < n; e++)
        amp_count_lost(f, u[e], amp_load(out.data, out.dtype, from + e), (uint32_t)(from + e));
}
static amp_array ampi_part(amp_array a, size_t i) {
    a.data = ampi_at(a, i);
    return a;
}
typedef struct ampi_finite_job {
    ampi_cpu *c;
    amp_array a, dst;
    size_t index;
    amp_scaler_state *s;
    float inv;
    uint32_t found;
    amp_finite_report r;
} ampi_finite_job;
/* The chunk's faults are added to the job's. Sums and minima: the order of chunks does not matter. */
static void ampi_finite_add(ampi_finite_job *j, const amp_faults *f, size_t start) {
    amp_finite_report *r = &j->r;
    size_t first = start + f->first;
    int earlier;
    ampi_lock(j->c);
    earlier = r->first_array > j->index || (r->first_array == j->index && r->first_index > first);
    if (r->nan + r->inf == 0 || earlier) {
        r->first_array = j->index;
        r->first_index = first;
    }
    r->nan += f->nan;
    r->inf += f->inf + f->overflow;
    j->found |= amp_found(f->nan, f->inf, f->overflow);
    ampi_unlock(j->c);
}
static void ampi_finite_check(ampi_finite_job *j, amp_faults *f, amp_array a) {
    const ampi_kernels *k = j->c->k;
    float own[AMPI_BLOCK];
    size_t size = amp_dtype_size(a.dtype), i, n;
    if (!(k->is_bad)(a.data, a.count * size, a.dtype)) return; /* nearly always */
    for (i = 0; i < a.count; i += n) {
        n = ampi_least(AMPI_BLOCK, a.count - i);
        if (!(k->is_bad)(ampi_at(a, i), n * size, a.dtype)) continue;
        ampi_count_faults(f, a, i, ampi_floats(k, a, i, n, own), n);
    }
}
static void ampi_finite_f64(amp_faults *f, amp_array a) {
    size_t i;
    uint64_t x;
    for (i = 0; i < a.count; i++) {
        memcpy(&x, ampi_at(a, i), sizeof x);
        amp_count_f64(f, x, (uint32_t)i);
    }
}
/* Whether gradients go from 16 bits to the same 16 bits in one loop. inv <= 1: a product is bad only if its gradient
   is, so what was written tells it. */
static int ampi_rescales(const ampi_kernels *k, amp_dtype from, amp_dtype to, float inv) {
    return k->rescale && from == to && (from == AMP_F16 || from == AMP_BF16) && inv <= 1.0f;
}
static void ampi_finite_unscale(ampi_finite_job *j, amp_faults *f, amp_array a, amp_array dst) {
    const ampi_kernels *k = j->c->k;
    float own[AMPI_BLOCK], *u = own;
    const int may_lose = amp_may_lose(j->inv, a.dtype, dst.dtype);
    const int at_once = ampi_rescales(k, a.dtype, dst.dtype, j->inv);
    const int floats = dst.dtype == AMP_F32 && ampi_in_place(a, 0);
    const int in_place = floats && a.data == dst.data && j->inv <= 1.0f;
    const float *from;
    size_t i, n;
    for (i = 0; i < a.count; i += n) {
        n = ampi_least(AMPI_BLOCK, a.count - i);
        if (at_once) {
            const int bad = (k->rescale)(ampi_at(dst, i), ampi_at(a, i), a.dtype, n, j->inv);
            if (bad) ampi_count_faults(f, dst, i, ampi_floats(k, dst, i, n, own), n);
            continue;
        }
        if (in_place) u = (float *)a.data + i;
        from = ampi_floats(k, a, i, n, own);
        if ((k->scale)(u, from, n, j->inv)) ampi_count_faults(f, a, i, u, n);
        if (in_place) continue;
        k->narrow[dst.dtype](ampi_at(dst, i), u, n);
        if (may_lose) ampi_count_lost(f, dst, i, u, n);
    }
}
static void ampi_finite_task(void *arg, size_t task, ampi_workspace *w) {
    ampi_finite_job *j = (ampi_finite_job *)arg;
    size_t start = task * AMP_CHUNK;
    amp_array a = ampi_part(j->a, start);
    amp_faults f = amp_no_faults();
    (void)w;
    a.count = ampi_least(j->a.count - start, AMP_CHUNK);
    if (j->s)
        ampi_finite_unscale(j, &f, a, ampi_part(j->dst, start));
    else if (a.dtype == AMP_F64)
        ampi_finite_f64(&f, a);
    else
        ampi_finite_check(j, &f, a);
    if (f.first != AMP_CHUNK) ampi_finite_add(j, &f, start);
}
static amp_status ampi_cpu_finite(amp_ctx *ctx, const amp_array *dst, const amp_array *arrays, size_t n,
    amp_scaler_state *s, amp_finite_report *out) {
    ampi_finite_job j = AMP_ZERO;
    j.c = ampi_cpu_of(ctx);
    j.s = s;
    j.inv = s ? amp_inverse_scale(s->scale) : 1.0f;
    for (j.index = 0; j.index < n; j.index++)
        if (arrays[j.index].count) {
            j.a = arrays[j.index];
            j.dst = dst ? dst[j.index] : j.a;
            ampi_parallel(j.c, ampi_chunks(j.a.count), j.a.count, ampi_finite_task, &j);
        }
    if (s && !s->no_check) s->found |= j.found;
    if (out) *out = j.r;
    return AMP_OK;
}

typedef struct ampi_histogram_job {
    ampi_cpu *c;
    amp_array a;
    amp_histogram *h;
} ampi_histogram_job;
static void ampi_histogram_task(void *arg, size_t task, ampi_workspace *w) {
    ampi_histogram_job *j = (ampi_histogram_job *)arg;
    amp_histogram h;
    float u[AMPI_BLOCK];
    uint8_t exponent[AMPI_BLOCK];
    uint32_t found[3] = {0, 0, 0}, bins[8][256]; /* in turn: neighbours often share a bin */
    size_t i = task * AMP_CHUNK, end = ampi_least(j->a.count, i + AMP_CHUNK), n, e, b, pad = 0;
    (void)w;
    memset(&h, 0, sizeof h);
    memset(bins, 0, sizeof bins);
    h.total = end - i;
    for (; i < end; i += n) {
        n = ampi_least(AMPI_BLOCK, end - i);
        pad = (64 - n % 64) % 64; /* zeros, taken off again */
        j->c->k->widen[j->a.dtype](u, ampi_at(j->a, i), n);
        memset(u + n, 0, pad * sizeof *u);
        (j->c->k->count)(exponent, u, n + pad, found);
        for (e = 0; e < n + pad; e += 8)
            for (b = 0; b < 8; b++)
                bins[b][exponent[e + b]]++;
    }
    for (b = 0; b < 8; b++) {
        for (e = 0; e < 255; e++)
            h.pow2[e] += bins[b][e];
        h.inf += bins[b][255];
    }
    h.zero = found[1] - pad;
    h.nan = found[2];
    h.inf -= h.nan;
    h.pow2[0] -= found[1];
    h.amax = ampi_float(found[0]);
    ampi_lock(j->c);
    amp_histogram_add(j->h, &h);
    ampi_unlock(j->c);
}
static amp_status ampi_cpu_histogram(amp_ctx *ctx, const amp_array *arrays, size_t n, amp_histogram *out) {
    ampi_histogram_job j;
    size_t i;
    j.c = ampi_cpu_of(ctx);
    j.h = out;
    for (i = 0; i < n; i++)
        if (arrays[i].count) {
            j.a = arrays[i];
            (void)ampi_run(j.c, ampi_chunks(j.a.count), (double)j.a.count, ampi_histogram_task, &j);
        }
    return AMP_OK;
}

/* ---- FP8 with a scale: the matrix in tiles, of rows where a transposed copy is wanted, else as one long row ---- */
#define AMPI_TILE_ROWS 64u
#define AMPI_TILE_COLS AMPI_BLOCK
typedef struct ampi_quantize_run {
    ampi_cpu *c;
    const amp_quantize_job *j;
    size_t rows, cols, tile_rows, tile_cols, across; /* across: tiles side by side */
    float by;
    uint32_t limit, amax; /* float bits */
    int32_t write, _pad;  /* write 0: only the amax */
} ampi_quantize_run;
#if defined(AMPI_X86) || defined(AMPI_NEON)
#  ifdef AMPI_X86
typedef __m128i ampi_bytes;
static ampi_bytes ampi_bytes_load(const uint8_t *p) { return _mm_loadu_si128((const __m128i *)(const void *)p); }
static void ampi_bytes_store(uint8_t *p, ampi_bytes x) { _mm_storeu_si128((__m128i *)(void *)p, x); }
static ampi_bytes ampi_bytes_low(ampi_bytes a, ampi_bytes b) { return _mm_unpacklo_epi8(a, b); }
static ampi_bytes ampi_bytes_high(ampi_bytes a, ampi_bytes b) { return _mm_unpackhi_epi8(a, b); }
#  else
typedef uint8x16_t ampi_bytes;
static ampi_bytes ampi_bytes_load(const uint8_t *p) { return vld1q_u8(p); }
static void ampi_bytes_store(uint8_t *p, ampi_bytes x) { vst1q_u8(p, x); }
static ampi_bytes ampi_bytes_low(ampi_bytes a, ampi_bytes b) { return vzip1q_u8(a, b); }
static ampi_bytes ampi_bytes_high(ampi_bytes a, ampi_bytes b) { return vzip2q_u8(a, b); }
#  endif
AMPI_ALWAYS void ampi_bytes_pair(ampi_bytes *y, const ampi_bytes *x, size_t i) {
    y[2 * i] = ampi_bytes_low(x[i], x[i + 8]);
    y[2 * i + 1] = ampi_bytes_high(x[i], x[i + 8]);
}
/* 16 x 16 bytes: four times the bytes of rows i and i + 8 take turns, in rows 2 i and 2 i + 1. Written out, because gcc
   -O2 would keep a loop, and the rows in memory. */
AMPI_ALWAYS void ampi_bytes_turn(ampi_bytes *y, const ampi_bytes *x) {
    ampi_bytes_pair(y, x, 0);
    ampi_bytes_pair(y, x, 1);
    ampi_bytes_pair(y, x, 2);
    ampi_bytes_pair(y, x, 3);
    ampi_bytes_pair(y, x, 4);
    ampi_bytes_pair(y, x, 5);
    ampi_bytes_pair(y, x, 6);
    ampi_bytes_pair(y, x, 7);
}
static void ampi_transpose16(uint8_t *to, size_t ld_to, const uint8_t *from, size_t ld_from) {
    ampi_bytes x[16];
    ampi_bytes y[16];
    size_t i;
    for (i = 0; i < 16; i++)
        x[i] = ampi_bytes_load(from + i * ld_from);
    ampi_bytes_turn(y, x);
    ampi_bytes_turn(x, y);
    ampi_bytes_turn(y, x);
    ampi_bytes_turn(x, y);
    for (i = 0; i < 16; i++)
        ampi_bytes_store(to + i * ld_to, x[i]);
}
#else
static void ampi_transpose16(uint8_t *to, size_t ld_to, const uint8_t *from, size_t ld_from) {
    size_t i;
    size_t k;
    for (i = 0; i < 16; i++)
        for (k = 0; k < 16; k++)
            to[k * ld_to + i] = from[i * ld_from + k];
}
#endif
/* to[c * ld + r] = tile[r * AMPI_TILE_COLS + c], 16 columns at a time, whose rows leave in one piece: with a large ld
   they lie in one set of the cache. What is in the tile after its rows and columns is turned, too, but not written. */
static void ampi_transpose_tile(uint8_t *to, size_t ld, const uint8_t *tile, size_t rows, size_t cols) {
    uint8_t strip[16 * AMPI_TILE_ROWS];
    size_t c;
    size_t i;
    for (c = 0; c < cols; c += 16) {
        for (i = 0; i < rows; i += 16)
            ampi_transpose16(strip + i, AMPI_TILE_ROWS, tile + i * AMPI_TILE_COLS + c, AMPI_TILE_COLS);
        for (i = c; i < cols && i < c + 16; i++)
            memcpy(to + i * ld, strip + (i - c) * AMPI_TILE_ROWS, rows);
    }
}
/* n elements from the i-th on, to `to`, or only their amax. */
static uint32_t ampi_quantize_row(const ampi_quantize_run *q, uint8_t *to, size_t i, size_t n, uint32_t amax) {
    const ampi_kernels *k = q->c->k;
    const amp_quantize_job *j = q->j;
    amp_dtype t = j->dst.data ? j->dst.dtype : j->dst_t.dtype;
    float own[AMPI_BLOCK];
    float fitted[AMPI_BLOCK];
    size_t m;
    for (; n; n -= m, i += m) {
        const float *u;
        m = ampi_least(AMPI_BLOCK, n);
        u = ampi_floats(k, j->src, i, m, own);
        if (!q->write) {
            amax = (k->amax)(u, m, amax);
            continue;
        }
        amax = (k->fit_to)(fitted, u, m, q->by, q->limit, amax);
        k->narrow[t](to, fitted, m);
        to += m;
    }
    return amax;
}
static void ampi_quantize_task(void *arg, size_t task, ampi_workspace *w) {
    ampi_quantize_run *q = (ampi_quantize_run *)arg;
    const amp_quantize_job *j = q->j;
    size_t r0 = task / q->across * q->tile_rows;
    size_t c0 = task % q->across * q->tile_cols;
    size_t rows = ampi_least(q->rows - r0, q->tile_rows);
    size_t cols = ampi_least(q->cols - c0, q->tile_cols);
    size_t r;
    uint8_t *tile = (uint8_t *)w->c;
    uint8_t *to = tile;
    uint8_t *plain = (uint8_t *)j->dst.data;
    int turned = q->write && j->dst_t.data != NULL;
    uint32_t amax = 0;
    for (r = 0; r < rows; r++) {
        size_t i = (r0 + r) * q->cols + c0;
        if (turned) to = tile + r * AMPI_TILE_COLS;
        if (q->write && !turned) to = plain + i;
        amax = ampi_quantize_row(q, to, i, cols, amax);
        if (turned && plain) memcpy(plain + i, to, cols);
    }
    if (turned) ampi_transpose_tile((uint8_t *)j->dst_t.data + c0 * q->rows + r0, q->rows, tile, rows, cols);
    ampi_lock(q->c);
    if (q->amax < amax) q->amax = amax;
    ampi_unlock(q->c);
}
static void ampi_quantize_pass(ampi_quantize_run *q, int write) {
    int tiles = write && q->j->dst_t.data != NULL;
    size_t n = q->j->rows * q->j->cols;
    size_t down;
    q->write = write;
    q->rows = tiles ? q->j->rows : 1;
    q->cols = tiles ? q->j->cols : n;
    q->tile_rows = tiles ? AMPI_TILE_ROWS : 1;
    q->tile_cols = tiles ? AMPI_TILE_COLS : AMP_CHUNK;
    q->across = (q->cols - 1) / q->tile_cols + 1;
    down = (q->rows - 1) / q->tile_rows + 1;
    ampi_parallel(q->c, down * q->across, n, ampi_quantize_task, q);
}
static void ampi_quantize_end(const ampi_quantize_run *q) {
    amp_fp8_state *s = q->j->state;
    uint32_t i;
    if (!amp_fp8_end(q->j, ampi_float(q->amax))) return;
    s->window = 0.0f;
    for (i = 0; i < q->j->n_history; i++) {
        float amax = q->j->history[i];
        if (s->window < amax) s->window = amax;
    }
}
static amp_status ampi_cpu_quantize(amp_ctx *ctx, const amp_quantize_job *j) {
    ampi_quantize_run q = AMP_ZERO;
    q.c = ampi_cpu_of(ctx);
    q.j = j;
    q.limit = amp_fp8_most(j->dst.data ? j->dst.dtype : j->dst_t.dtype);
    if (!j->history && !j->keep) {
        ampi_quantize_pass(&q, 0);
        ampi_quantize_end(&q);
    }
    q.by = amp_fp8_begin(j);
    ampi_quantize_pass(&q, 1);
    if (j->history && !j->keep) ampi_quantize_end(&q);
    return AMP_OK;
}

/* ==== >>cpu-step =================================================================================================
   Inspection and updates.   tests: tests/test_step.c, tests/test_layouts.c, tests/test_scaler.c */
typedef struct ampi_step_job { /* one of the jobs, and what its tasks share */
    ampi_cpu *c;
    const amp_sum_job *sum;
    const amp_update_job *update;
    const amp_apply_job *apply;
    const amp_add_job *add;
    const amp_clip_job *clip;
    float inv;
    uint32_t overflow;
} ampi_step_job;
static ampi_step_job ampi_step_of(amp_ctx *ctx) {
    ampi_step_job j = AMP_ZERO;
    j.c = ampi_cpu_of(ctx);
    return j;
}
static amp_array ampi_gradient(const amp_param_entry *p, uint32_t accum) {
    return accum ? amp_arr(p->accum, AMP_F32) : amp_arr(p->grad, p->grad_dtype);
}
/* By the bits, after a guarded addition: compilers may be told that Inf and NaN do not occur. */
static int ampi_not_finite(double x) {
    uint64_t b;
    x = amp_dadd(x, 0.0);
    memcpy(&b, &x, sizeof b);
    return (b >> 52 & 0x7ffu) == 0x7ffu;
}

static int ampi_all_zero(const char *p, size_t bytes) {
    uint64_t any = 0, x[4];
    for (; bytes >= sizeof x; bytes -= sizeof x, p += sizeof x) {
        memcpy(x, p, sizeof x);
        any |= x[0] | x[1] | x[2] | x[3];
    }
    memset(x, 0, sizeof x);
    memcpy(x, p, bytes);
    return (any | x[0] | x[1] | x[2] | x[3]) == 0;
}
/* Sum of squares of one part. Nearly always its numbers are widened in registers: nothing but arithmetic between two
   loads. */
static double ampi_part_squares(const ampi_kernels *k, amp_array g, size_t count, float inv) {
    const char *from = (const char *)g.data;
    float own[AMP_PART], sum, by;
    if (amp_dtype_size(g.dtype) == 1) {
        k->widen[g.dtype](own, from, count);
        g = amp_arr(own, AMP_F32);
        from = (const char *)own;
    }
    sum = (k->squares)(from, g.dtype, count, inv);
    by = amp_squares_by(sum);
    if (ampi_bits(by) == 0x3f800000u) return amp_widen(sum);
    if (ampi_all_zero(from, count * amp_dtype_size(g.dtype))) return 0.0;
    (void)(k->scale)(own, ampi_floats(k, g, 0, count, own), count, inv);
    return amp_squares_sum((k->squares)((const char *)own, AMP_F32, count, by), by);
}
static double ampi_chunk_squares(const ampi_kernels *k, ampi_workspace *w, amp_array g, size_t count, float inv) {
    size_t i, parts = 0;
    for (i = 0; i < count; i += AMP_PART)
        w->part[parts++] = ampi_part_squares(k, ampi_part(g, i), ampi_least(AMP_PART, count - i), inv);
    return ampi_halve(w->part, parts);
}
static void ampi_cpu_sum_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_step_job *j = (const ampi_step_job *)arg;
    const amp_sum_job *job = j->sum;
    const ampi_kernels *k = j->c->k;
    amp_chunk at = job->table.chunks[task];
    const amp_param_entry *p = &job->table.entries[at.param];
    amp_array g = ampi_gradient(p, job->accum);
    amp_partial *out = &job->table.partials[task];
    float own[AMPI_BLOCK];
    size_t start = (size_t)at.index * AMP_CHUNK, count = ampi_least((size_t)p->count - start, AMP_CHUNK), i, n;
    int bad;
    out->faults = amp_no_faults();
    g = ampi_part(g, start);
    out->sum[0] = ampi_chunk_squares(k, w, g, count, j->inv);
    bad = ampi_not_finite(out->sum[0]);
    if (!bad && !job->write) return;
    if (!bad && ampi_rescales(k, g.dtype, g.dtype, j->inv)) {
        (void)(k->rescale)(g.data, g.data, g.dtype, count, j->inv);
        return;
    }
    for (i = 0; i < count; i += n) {
        const float *u;
        n = ampi_least(AMPI_BLOCK, count - i);
        u = ampi_floats(k, g, i, n, own);
        if (ampi_bits(j->inv) != 0x3f800000u) {
            (void)(k->scale)(own, u, n, j->inv);
            u = own;
        }
        if (bad) ampi_count_faults(&out->faults, g, i, u, n);
        if (!job->write) continue;
        k->narrow[g.dtype](ampi_at(g, i), u, n);
        if (amp_may_lose(j->inv, g.dtype, g.dtype)) ampi_count_lost(&out->faults, g, i, u, n);
    }
}
static void ampi_sum_partials(const amp_param_table *table, amp_totals *t, ampi_workspace *w) {
    ampi_sum s = ampi_sum_begin(w);
    uint32_t i;
    memset(t, 0, sizeof *t);
    for (i = 0; i < table->n_chunks; i++) {
        const amp_faults *p = &table->partials[i].faults;
        ampi_sum_chunk(&s, table->partials[i].sum[0]);
        if (p->first < AMP_CHUNK && amp_found(t->nan, t->inf, t->overflow) == 0) {
            t->first_param = table->chunks[i].param;
            t->first_index = (uint64_t)table->chunks[i].index * AMP_CHUNK + p->first;
        }
        t->nan += p->nan;
        t->inf += p->inf;
        t->overflow += p->overflow;
    }
    t->sum = ampi_sum_end_of(&s);
}
static amp_status ampi_cpu_sum_gradients(amp_ctx *ctx, const amp_sum_job *job) {
    ampi_step_job j = ampi_step_of(ctx);
    j.sum = job;
    j.inv = amp_sum_factor(job);
    ampi_parallel(j.c, job->table.n_chunks, (size_t)job->table.n_elements, ampi_cpu_sum_task, &j);
    ampi_sum_partials(&job->table, job->table.totals, j.c->work);
    return AMP_OK;
}
static amp_status ampi_cpu_conclude(amp_ctx *ctx, const amp_inspect_job *job) {
    (void)ctx;
    amp_conclude(job, job->sum.table.totals);
    return AMP_OK;
}
static amp_status ampi_cpu_inspect(amp_ctx *ctx, const amp_inspect_job *job) {
    AMPI_TRY(ampi_cpu_sum_gradients(ctx, &job->sum));
    return ampi_cpu_conclude(ctx, job);
}

/* Elements i .. i + n of a parameter while an update works on them. */
typedef struct ampi_updating {
    const ampi_kernels *k;
    const amp_param_entry *p;
    const amp_step_record *r;
    amp_draw draw;
    size_t i, n;
    uint32_t param;
} ampi_updating;
static ampi_updating ampi_updating_of(
    const ampi_step_job *j, const amp_param_table *table, uint32_t param, const amp_step_record *r) {
    ampi_updating b = AMP_ZERO;
    b.k = j->c->k;
    b.p = &table->entries[param];
    b.r = r;
    b.param = param;
    b.draw = amp_draw_of(r, param);
    return b;
}
/* Weights and moments as floats: where they are if they are kept as floats, else in buf. */
static float *ampi_load_weights(const ampi_updating *b, float *buf) {
    const amp_param_entry *p = b->p;
    if (p->layout == AMP_MASTER_F32) return (float *)p->master + b->i;
    if (p->layout == AMP_MASTER_NONE)
        b->k->widen[p->model_dtype](buf, (const char *)p->model + 2 * b->i, b->n);
    else
        (b->k->pair_widen)(buf, p, b->i, b->n);
    return buf;
}
static float *ampi_load_moment(const ampi_updating *b, uint32_t which, float *buf) {
    const amp_param_entry *p = b->p;
    if (p->moment_dtype == AMP_F32) return (float *)p->moment[which] + b->i;
    if (p->moment_dtype == AMP_MOMENT_8BIT) {
        (b->k->moment_widen)(buf, (const uint8_t *)p->moment[which] + b->i,
            ampi_moment_scales(p, which) + b->i / AMP_MOMENT_BLOCK, b->n, which);
        return buf;
    }
    b->k->widen[p->moment_dtype](buf, (const char *)p->moment[which] + 2 * b->i, b->n);
    return buf;
}
static void ampi_store_drawn(const ampi_updating *b, void *to, amp_dtype t, const float *x, amp_stored what) {
    amp_draw d = amp_draw_for(b->draw, what);
    ampi_round_block(
        b->k, (char *)to + 2 * b->i, t, x, b->n, d.seed, d.stream, b->i, 0); /* ampi_encode with amp_random's words */
}
static void ampi_store_moment(const ampi_updating *b, uint32_t which, const float *m) {
    const amp_param_entry *p = b->p;
    if (!m || p->moment_dtype == AMP_F32) return;
    ampi_store_drawn(b, p->moment[which], p->moment_dtype, m, (amp_stored)(AMP_STORED_MOMENT_1 + which));
}
/* What load gave of 8-bit moments, whose blocks are whole here: b->i is a multiple of them. */
static void ampi_store_codes(const ampi_updating *b, float *m, float *v) {
    const amp_draw d = amp_draw_for(b->draw, AMP_STORED_MOMENT_1);
    const size_t block = b->i / AMP_MOMENT_BLOCK;
    uint32_t words[AMPI_BLOCK + 64];
    const uint32_t *r = (b->k->random)(words, (b->n + 63u) & ~(size_t)63u, d.seed, d.stream, b->i);
    float *x[AMP_MOMENTS];
    uint32_t k;
    x[0] = m;
    x[1] = v;
    for (k = 0; k < (uint32_t)AMP_MOMENTS; k++)
        if (x[k])
            (b->k->moment_narrow)(
                (uint8_t *)b->p->moment[k] + b->i, ampi_moment_scales(b->p, k) + block, x[k], r, b->n, k);
}
static void ampi_store_moments(const ampi_updating *b, float *m, float *v) {
    if (m && b->p->moment_dtype == AMP_MOMENT_8BIT) {
        ampi_store_codes(b, m, v);
        return;
    }
    ampi_store_moment(b, 0, m);
    ampi_store_moment(b, 1, v);
}
static void ampi_store_pairs(const ampi_updating *b, const float *w) {
    const amp_draw d = b->draw;
    uint32_t words[AMPI_BLOCK + 64];
    const uint32_t *r = NULL;
    if (b->r->stochastic) r = (b->k->random)(words, (b->n + 63u) & ~(size_t)63u, d.seed, d.stream, b->i);
    (b->k->pair_narrow)(b->p, b->i, w, r, b->n);
}
/* Block by block what amp_weight_store does; returns 1 when a model copy overflows. */
static uint32_t ampi_store_weights(const ampi_updating *b, const float *w) {
    const amp_param_entry *p = b->p;
    char *to;
    uint32_t overflow = 0;
    size_t e;
    if (!p->model) return 0;
    to = (char *)p->model + 2 * b->i;
    if (p->low)
        ampi_store_pairs(b, w);
    else if (b->r->stochastic)
        ampi_store_drawn(b, p->model, p->model_dtype, w, AMP_STORED_MODEL);
    else
        b->k->narrow[p->model_dtype](to, w, b->n);
    if (!(b->k->is_bad)(to, b->n * 2, p->model_dtype)) return 0;
    for (e = 0; e < b->n; e++)
        overflow |= amp_copy_overflow(ampi_load_pattern(to, p->model_dtype, e), w[e], p->model_dtype);
    return overflow;
}
static void ampi_note_overflow(ampi_step_job *j, uint32_t overflow) {
    if (!overflow) return;
    ampi_lock(j->c);
    j->overflow |= overflow;
    ampi_unlock(j->c);
}
static void ampi_end_update(const ampi_step_job *j, amp_step_record *r) {
    if (j->overflow & AMP_WEIGHT_OVERFLOW) r->weight_overflow = 1;
    if (j->overflow & AMP_MOMENT_OVERFLOW) r->moment_overflow = 1;
}
static void ampi_tally_begin(ampi_tally *t, const ampi_updating *b) {
    memset(t, 0, offsetof(ampi_tally, moved));
    t->spacing = amp_spacing_of(b->p->layout, b->p->model_dtype);
    t->again = b->p->layout != AMP_MASTER_F32;
}
static void ampi_tally_low(const ampi_updating *b, uint16_t *to) { /* low parts, as 16 bits each */
    const char *low = (const char *)b->p->low;
    size_t e;
    if (b->p->layout != AMP_MASTER_SPLIT8) memcpy(to, low + 2 * b->i, 2 * b->n);
    for (e = 0; e < b->n && b->p->layout == AMP_MASTER_SPLIT8; e++)
        to[e] = (uint8_t)low[b->i + e];
}
static void ampi_tally_before(ampi_tally *t, const ampi_updating *b) {
    const amp_param_entry *p = b->p;
    t->at = 0;
    if (!t->again) return;
    memcpy(t->was[0], (const char *)p->model + 2 * b->i, 2 * b->n);
    if (p->low) ampi_tally_low(b, t->was[1]);
}
static void ampi_tally_after(ampi_tally *t, const ampi_updating *b) {
    uint16_t low[AMPI_BLOCK];
    t->at = 0;
    if (!t->again) return;
    if (b->p->low) ampi_tally_low(b, low);
    (b->k->count_unchanged)(t, (const char *)b->p->model + 2 * b->i, b->p->low ? (const char *)low : NULL, b->n);
}
static void ampi_tally_done(ampi_step_job *j, const ampi_tally *t, amp_update_count *to) {
    uint32_t k;
    ampi_lock(j->c);
    for (k = 0; k < AMPI_WIDEST; k++) {
        uint32_t ratio = ampi_bits(amp_mul(t->ratio[k], t->spacing.rest));
        to->updates += t->updates[k];
        to->lost += t->lost[k];
        if (to->ratio < ratio) to->ratio = ratio;
    }
    ampi_unlock(j->c);
}
static void ampi_cpu_update_task(void *arg, size_t task, ampi_workspace *ws) {
    ampi_step_job *j = (ampi_step_job *)arg;
    const amp_update_job *job = j->update;
    const ampi_kernels *k = j->c->k;
    amp_chunk at = job->table.chunks[task];
    ampi_updating b = ampi_updating_of(j, &job->table, at.param, job->record);
    const amp_param_entry *p = b.p;
    amp_array g = ampi_gradient(p, job->accum);
    amp_coef c = amp_coef_of(job, p);
    AMPI_LINES float own_u[AMPI_BLOCK], own_w[AMPI_BLOCK], own_m[AMPI_BLOCK], own_v[AMPI_BLOCK];
    size_t end = ampi_least((size_t)p->count, (size_t)(at.index + 1u) * AMP_CHUNK);
    /* past the caches: conversions, most of them of a gradient of 16 bits, are to overlap the next block's loads */
    size_t least = g.dtype == AMP_F32 ? AMPI_BLOCK / 2 : AMPI_BLOCK / 4;
    size_t block = job->table.n_elements > 1u << 20 ? least : AMPI_BLOCK;
    int moments = amp_moments_of(job->kind, c.momentum);
    uint32_t overflow = 0;
    ampi_tally own, *tally;
    (void)ws;
    ampi_tally_begin(&own, &b);
    for (b.i = (size_t)at.index * AMP_CHUNK; b.i < end; b.i += b.n) {
        float *w, *m, *v;
        const float *u;
        b.n = ampi_least(block, end - b.i);
        tally = job->count && amp_is_counted(b.i, job->count) ? &own : NULL;
        if (tally) ampi_tally_before(tally, &b);
        u = ampi_floats(k, g, b.i, b.n, own_u);
        w = ampi_load_weights(&b, own_w);
        m = moments > 0 ? ampi_load_moment(&b, 0, own_m) : NULL;
        v = moments > 1 ? ampi_load_moment(&b, 1, own_v) : NULL;
        if (tally) memcpy(tally->old, w, b.n * sizeof *w);
        if (k->update[job->kind](w, m, v, u, b.n, &c, tally ? own_u : NULL)) overflow |= AMP_MOMENT_OVERFLOW;
        if (tally) (k->count_sizes)(tally, w, own_u, b.n, 1.0f);
        if (job->accum) memset(p->accum + b.i, 0, b.n * sizeof *p->accum);
        ampi_store_moments(&b, m, v);
        overflow |= ampi_store_weights(&b, w);
        if (tally) ampi_tally_after(tally, &b);
    }
    if (job->count) ampi_tally_done(j, &own, &job->table.counts[at.param]);
    ampi_note_overflow(j, overflow);
}
static void ampi_zero_accum(const amp_param_entry *p) { memset(p->accum, 0, (size_t)p->count * sizeof *p->accum); }
static amp_status ampi_cpu_update(amp_ctx *ctx, const amp_update_job *job) {
    ampi_step_job j = ampi_step_of(ctx);
    uint32_t i;
    j.update = job;
    if (!job->record->skip) {
        (void)ampi_run(j.c, job->table.n_chunks, (double)job->table.n_elements, ampi_cpu_update_task, &j);
        ampi_end_update(&j, job->record);
    } else if (job->accum) { /* a lost window still ends */
        for (i = 0; i < job->table.n_entries; i++)
            ampi_zero_accum(&job->table.entries[i]);
    }
    return AMP_OK;
}

static void ampi_cpu_apply_task(void *arg, size_t task, ampi_workspace *ws) {
    ampi_step_job *j = (ampi_step_job *)arg;
    const amp_apply_job *job = j->apply;
    ampi_updating b = ampi_updating_of(j, &job->table, job->param, job->record);
    amp_coef c = amp_coef_of_apply(job, b.p);
    float own[AMPI_BLOCK];
    size_t end = ampi_least((size_t)b.p->count, (task + 1) * AMP_CHUNK);
    uint32_t overflow = 0;
    ampi_tally noted, *tally;
    (void)ws;
    ampi_tally_begin(&noted, &b);
    for (b.i = task * AMP_CHUNK; b.i < end; b.i += b.n) {
        float *w;
        b.n = ampi_least(AMPI_BLOCK, end - b.i);
        tally = job->count && amp_is_counted(b.i, job->count) ? &noted : NULL;
        if (tally) ampi_tally_before(tally, &b);
        w = ampi_load_weights(&b, own);
        if (tally) memcpy(tally->old, w, b.n * sizeof *w);
        (void)(b.k->scale)(w, w, b.n, c.decay); /* = amp_apply_one */
        (b.k->axpy)(w, job->u + b.i, b.n, amp_negative(c.lr));
        if (tally) (b.k->count_sizes)(tally, w, job->u + b.i, b.n, c.lr);
        overflow |= ampi_store_weights(&b, w);
        if (tally) ampi_tally_after(tally, &b);
    }
    if (job->count) ampi_tally_done(j, &noted, &job->table.counts[job->param]);
    ampi_note_overflow(j, overflow);
}
static amp_status ampi_cpu_apply(amp_ctx *ctx, const amp_apply_job *job) {
    const amp_param_entry *p = &job->table.entries[job->param];
    ampi_step_job j = ampi_step_of(ctx);
    j.apply = job;
    if (!job->record->skip) {
        (void)ampi_run(j.c, ampi_chunks((size_t)p->count), (double)p->count, ampi_cpu_apply_task, &j);
        ampi_end_update(&j, job->record);
    }
    if (job->accum) ampi_zero_accum(p); /* the update may be these */
    return AMP_OK;
}

static void ampi_cpu_add_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_step_job *j = (const ampi_step_job *)arg;
    const amp_add_job *job = j->add;
    amp_chunk at = job->table.chunks[task];
    const amp_param_entry *p = &job->table.entries[at.param];
    amp_array g = ampi_gradient(p, 0);
    float u[AMPI_BLOCK];
    size_t i = (size_t)at.index * AMP_CHUNK, end = ampi_least((size_t)p->count, i + AMP_CHUNK), n;
    (void)w;
    for (; i < end; i += n) {
        n = ampi_least(AMPI_BLOCK, end - i);
        (j->c->k->axpy)(p->accum + i, ampi_floats(j->c->k, g, i, n, u), n, job->record->inv_scale);
    }
}
static amp_status ampi_cpu_add(amp_ctx *ctx, const amp_add_job *job) {
    ampi_step_job j = ampi_step_of(ctx);
    if (job->record->skip) return AMP_OK;
    j.add = job;
    return ampi_run(j.c, job->table.n_chunks, (double)job->table.n_elements, ampi_cpu_add_task, &j);
}

static void ampi_cpu_clip_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_step_job *j = (const ampi_step_job *)arg;
    const amp_clip_job *job = j->clip;
    amp_chunk at = job->table.chunks[task];
    const amp_param_entry *p = &job->table.entries[at.param];
    amp_array g = ampi_gradient(p, job->accum);
    amp_coef c;
    float u[AMPI_BLOCK];
    size_t i = (size_t)at.index * AMP_CHUNK, end = ampi_least((size_t)p->count, i + AMP_CHUNK), n;
    (void)w;
    c = amp_coef_of_clip(job);
    for (; i < end; i += n) {
        n = ampi_least(AMPI_BLOCK, end - i);
        (j->c->k->prepare)(u, ampi_floats(j->c->k, g, i, n, u), n, &c);
        j->c->k->narrow[g.dtype](ampi_at(g, i), u, n);
    }
}
static amp_status ampi_cpu_clip(amp_ctx *ctx, const amp_clip_job *job) {
    ampi_step_job j = ampi_step_of(ctx);
    j.clip = job;
    if (amp_clip_is_idle(job)) return AMP_OK;
    return ampi_run(j.c, job->table.n_chunks, (double)job->table.n_elements, ampi_cpu_clip_task, &j);
}
static amp_status ampi_cpu_next_scale(amp_ctx *ctx, amp_scaler_state *s) {
    (void)ctx;
    amp_scaler_next(s);
    return AMP_OK;
}

/* ==== >>cpu-products =============================================================================================
   tests: tests/test_products.c, tests/test_paths.c
   A task is a block of at most AMPI_MC x AMPI_NC of one batch's D, over all of k in steps of AMPI_KC: operands are
   widened to float while they are packed, tiles are accumulated in w->c. How D is cut into blocks changes no bit: an
   element of D depends on k only. (Another kind of tile, of half-precision operands say, would come with a pack of its
   own.) Which loop runs, the first row that fits:
       n = 1, a D without gaps           that column is the only row of the transposed product: the next row
       m <= AMPI_FEW, not ordered, and   ampi_gemm_few: B is read where it lies, by dots where it is transposed, else
       B transposed, or not small        by sums of its rows
       small: a block reads at most      ampi_small_product: nothing is packed but a transposed B and what is no float
       AMPI_SMALL numbers of A and B
       all others (n = 3 of a large A)   tiles of kn->mr x kn->nr; what is missing of the last ones is zeros */

typedef struct ampi_gemm_blocks { /* a product, cut for the pool */
    ampi_cpu *c;
    const amp_gemm_job *d;
    size_t blocks_m, blocks_n;
    size_t rows, cols; /* of a block */
} ampi_gemm_blocks;

/* The smallest tile for this many rows, or the largest. */
static size_t ampi_tile_for(const ampi_kernels *kn, size_t rows) {
    size_t t = 0;
    while (t < 3 && kn->mr[t + 1] >= rows && kn->mr[t + 1])
        t++;
    return t;
}

/* Part of a matrix to be packed: op(X)[r0 .. r0+rows, k0 .. k0+depth]. */
typedef struct ampi_panel {
    amp_array x;
    size_t first, ld;
    int across; /* rows of the strips are contiguous in memory (X is stored [k][row]), else k is */
    size_t r0, rows, k0, depth;
} ampi_panel;

static void ampi_copy_strip(float *to, const float *from, size_t width, size_t rows) { /* zeros after the rows */
    size_t e;
    if (rows < width) {
        memset(to, 0, width * sizeof *to);
        memcpy(to, from, rows * sizeof *to);
    } else if (width % 8) {
        memcpy(to, from, width * sizeof *to);
    } else {
        for (e = 0; e < width; e += 8)
            memcpy(to + e, from + e, 8 * sizeof *to);
    }
}
static void ampi_fetch_line(const ampi_panel *p, size_t at, size_t n) {
    size_t e, line = 64 / amp_dtype_size(p->x.dtype);
    for (e = 0; e < n; e += line)
        AMPI_PREFETCH(ampi_at(p->x, at + e));
}
static void ampi_pack_across(const ampi_kernels *kn, float *to, const ampi_panel *p, size_t width, float *row) {
    size_t k, s;
    for (k = 0; k < p->depth; k++) {
        size_t at = p->first + (p->k0 + k) * p->ld + p->r0;
        if (k + 1 < p->depth) ampi_fetch_line(p, at + p->ld, p->rows);
        kn->widen[p->x.dtype](row, ampi_at(p->x, at), p->rows);
        for (s = 0; s < p->rows; s += width)
            ampi_copy_strip(to + s * p->depth + k * width, row + s, width, p->rows - s);
    }
}
static void ampi_pack_along(const ampi_kernels *kn, float *to, const ampi_panel *p, size_t width, float *row) {
    size_t s, r, k, e, done, depth = p->depth, first = p->first + p->r0 * p->ld + p->k0;
    const size_t n = ampi_least(4, width);
    for (s = 0; s < p->rows; s += width)
        for (done = 0; done < width; done += n) { /* n rows at a time, the last ones of 6 for the second time */
            const float *from = NULL;
            float *t;
            size_t ld = depth;
            r = ampi_least(done, width - n);
            t = to + s * depth + r;
            if (n == 4 && s + r + 4 <= p->rows) from = ampi_in_place(p->x, first + (s + r) * p->ld);
            if (from) ld = p->ld;
            for (e = 0; e < 4; e++) {
                size_t i = s + r + e, at = first + i * p->ld;
                if (i + 4 < p->rows) ampi_fetch_line(p, at + 4 * p->ld, depth);
                if (from) continue;
                if (i < p->rows && e < n)
                    kn->widen[p->x.dtype](row + e * depth, ampi_at(p->x, at), depth);
                else
                    memset(row + e * depth, 0, depth * sizeof *row);
            }
            if (n == 4) {
                (kn->pack4)(t, width, from ? from : row, ld, depth);
                continue;
            }
            for (k = 0; k < depth; k++)
                for (e = 0; e < n; e++)
                    t[k * width + e] = row[e * depth + k];
        }
}
/* Packs a panel into strips of `width` rows, [strip][k][width], with zeros after the last row. */
static void ampi_pack_strips(const ampi_kernels *kn, float *to, const ampi_panel *p, size_t width, float *row) {
    if (p->across)
        ampi_pack_across(kn, to, p, width, row);
    else
        ampi_pack_along(kn, to, p, width, row);
}
/* The same for the rows of A: as many strips of the largest tile as there are, and a narrower one for the rest. */
static void ampi_pack_rows(const ampi_kernels *kn, float *to, const ampi_panel *p, float *row) {
    size_t full = p->rows / kn->mr[0] * kn->mr[0];
    ampi_panel part = *p;
    part.rows = full;
    if (full) ampi_pack_strips(kn, to, &part, kn->mr[0], row);
    part.r0 += full;
    part.rows = p->rows - full;
    if (part.rows) ampi_pack_strips(kn, to + full * p->depth, &part, kn->mr[ampi_tile_for(kn, part.rows)], row);
}

/* How many rows that makes, with those of zeros. */
static size_t ampi_packed_rows(const ampi_kernels *kn, size_t rows) {
    size_t full = rows / kn->mr[0] * kn->mr[0];
    return rows == full ? rows : full + kn->mr[ampi_tile_for(kn, rows - full)];
}

/* What is added to n elements of a row of D. */
static const float *ampi_bias_of(
    const ampi_kernels *kn, const amp_gemm_job *d, size_t row, size_t col, size_t n, float *buf) {
    float same;
    size_t i;
    if (!d->bias_per_row) return ampi_floats(kn, d->bias, col, n, buf);
    same = amp_load(d->bias.data, d->bias.dtype, row);
    for (i = 0; i < n; i++)
        buf[i] = same;
    return buf;
}
/* n elements of a row of D from their sums: the epilogue, in vectors. First without bias. */
static void ampi_epilogue_begin(const ampi_kernels *kn, const amp_gemm_job *d, float *acc, size_t batch, size_t row,
    size_t col, size_t n, float *other) {
    float alpha = amp_gemm_alpha(d), beta = d->c.data ? amp_gemm_beta(d) : 0.0f;
    if (ampi_bits(alpha) != 0x3f800000u) (void)(kn->scale)(acc, acc, n, alpha);
    if (ampi_nonzero(beta)) {
        const float *c = ampi_floats(kn, d->c, batch * d->stride_c + row * d->ldc + col, n, other);
        (kn->axpy)(acc, c, n, beta);
    }
}
static void ampi_epilogue_bias(
    const ampi_kernels *kn, const amp_gemm_job *d, float *acc, size_t row, size_t col, size_t n, float *other) {
    if (d->bias.data) (kn->axpy)(acc, ampi_bias_of(kn, d, row, col, n, other), n, 1.0f);
}
static void ampi_epilogue_keep(
    const ampi_kernels *kn, const amp_gemm_job *d, const float *acc, size_t at, size_t n, float *other) {
    size_t i;
    if (!ampi_is_f8(d->aux.dtype)) {
        kn->narrow[d->aux.dtype](ampi_at(d->aux, at), acc, n);
        return;
    }
    for (i = 0; i < n; i++)
        other[i] = amp_epilogue_aux(d, acc[i]);
    kn->narrow[d->aux.dtype](ampi_at(d->aux, at), other, n);
}
static void ampi_epilogue_end(const ampi_kernels *kn, const amp_gemm_job *d, float *acc, size_t batch, size_t row,
    size_t col, size_t n, float *other, uint32_t *amax) {
    size_t at = batch * d->stride_d + row * d->ldd + col, i;
    uint8_t *mask = NULL;
    if (amp_gemm_masked(d)) mask = ampi_mask_at(d->aux.data, batch * d->m + row, d->n, col);
    if (d->backward && mask) {
        (kn->mask_grad)(acc, mask, n);
    } else if (d->backward) {
        (kn->act_grad)(acc, acc, ampi_floats(kn, d->aux, at, n, other), n, d->act);
    } else {
        if (d->aux.data && !mask) ampi_epilogue_keep(kn, d, acc, at, n, other);
        if (d->act != AMP_ACT_NONE) (kn->act)(acc, acc, n, d->act);
    }
    if (ampi_is_f8(d->d.dtype))
        for (i = 0; i < n; i++)
            acc[i] = amp_epilogue_f8(acc[i], d->d.dtype, d->scale_d, amax);
    kn->narrow[d->d.dtype](ampi_at(d->d, at), acc, n);
    if (mask && !d->backward) (kn->mask_of)(mask, ampi_floats(kn, d->d, at, n, other), n); /* of y as it is stored */
}
static void ampi_epilogue(const ampi_kernels *kn, const amp_gemm_job *d, float *acc, size_t batch, size_t row,
    size_t col, size_t n, float *other, uint32_t *amax) {
    ampi_epilogue_begin(kn, d, acc, batch, row, col, n, other);
    ampi_epilogue_bias(kn, d, acc, row, col, n, other);
    ampi_epilogue_end(kn, d, acc, batch, row, col, n, other, amax);
}

/* ---- the ordered mode: tiles do what >>numerics says if a multiply-add rounds once, or if products are exact ---- */

/* Exponents, as they lie in a float, of what is finite and not 0. */
typedef struct ampi_exponent_range { uint32_t least, most; } ampi_exponent_range;
static ampi_exponent_range ampi_exponents_in(const float *x, size_t n) {
    ampi_exponent_range r = {254, 0};
    size_t i;
    for (i = 0; i < n; i++) {
        uint32_t e = ampi_bits(x[i]) >> 23 & 255u;
        if (!ampi_nonzero(x[i]) || e == 255u) continue;
        if (e == 0) e = 1; /* subnormal */
        if (e < r.least) r.least = e;
        if (e > r.most) r.most = e;
    }
    return r;
}
/* Are all products of these packed numbers exact in FP32? Those of FP16 and FP8 are: 22 bits, from 2^-48 to 2^32. BF16
   has 8 bits: exponents e and f give a product with no bit below 2^(e + f - 268) and below 2^(e + f - 252). */
static int ampi_exact_products(amp_dtype t, const float *a, size_t na, const float *b, size_t nb) {
    ampi_exponent_range x, y;
    if (t == AMP_F32) return 0;
    if (t != AMP_BF16) return 1;
    x = ampi_exponents_in(a, na);
    y = ampi_exponents_in(b, nb);
    return x.least + y.least >= 268u - 149u && x.most + y.most <= 252u + 128u;
}

static void ampi_join_amax(const ampi_gemm_blocks *j, uint32_t amax) {
    if (!j->d->amax_d) return;
    ampi_lock(j->c);
    if (amax > ampi_bits(*j->d->amax_d)) *j->d->amax_d = ampi_float(amax);
    ampi_unlock(j->c);
}

/* w->c = or += the packed panels' product, tile by tile. */
static void ampi_multiply_panels(
    const ampi_kernels *kn, const amp_gemm_job *d, ampi_workspace *w, size_t rows, size_t cols, size_t kc, int first) {
    int ordered = (d->flags & AMP_GEMM_ORDERED) != 0;
    size_t na = ampi_packed_rows(kn, rows) * kc, nb = (cols + kn->nr - 1) / kn->nr * kn->nr * kc;
    int fused = ordered && kn->fused && !ampi_exact_products(d->a.dtype, w->a, na, w->b, nb);
    size_t r, c;
    for (c = 0; c < cols; c += kn->nr)
        for (r = 0; r < rows; r += kn->mr[0]) {
            size_t t = ampi_tile_for(kn, rows - r);
            const float *a = w->a + r * kc, *b = w->b + c * kc;
            float *to = w->c + r * AMPI_LDC + c;
            if (fused)
                (kn->fused)(ampi_least(kn->mr[t], rows - r), kn->mr[t], kc, a, b, to, first);
            else
                kn->tile[t](kc, a, b, to, first);
        }
}

/* ---- small products: nothing is packed but a B whose rows lie along k, and what is no float ---- */

static int ampi_is_small(const ampi_kernels *kn, const amp_gemm_job *d, size_t rows, size_t cols) {
    const int here = kn->direct && d->k && d->k <= AMPI_KC && !d->sum_batches;
    return here && (rows + cols) * d->k <= AMPI_SMALL;
}
/* D is what the tiles compute, as floats. */
static int ampi_is_plain(const amp_gemm_job *d) {
    const int alone = !d->c.data && !d->bias.data && !d->aux.data && d->act == AMP_ACT_NONE;
    return alone && ampi_in_place(d->d, 0) && ampi_bits(amp_gemm_alpha(d)) == 0x3f800000u;
}
/* rows x cols of a matrix as floats, and their leading dimension. */
static const float *ampi_small_floats(
    const ampi_kernels *kn, amp_array x, size_t at, size_t rows, size_t cols, size_t *ld, float *to) {
    const float *there = ampi_in_place(x, at);
    size_t r;
    if (there) return there;
    for (r = 0; r < rows; r++)
        kn->widen[x.dtype](to + r * cols, ampi_at(x, at + r * *ld), cols);
    *ld = cols;
    return to;
}
/* The rows of D, which lie one after the other in w->c. */
static void ampi_small_end(const ampi_gemm_blocks *j, ampi_workspace *w, size_t batch, size_t r0, const ampi_panel *b,
    size_t rows, uint32_t *amax) {
    const amp_gemm_job *d = j->d;
    const ampi_kernels *kn = j->c->k;
    const int packed = b->rows == d->n && d->ldd == d->n && (!d->c.data || d->ldc == d->n);
    const int whole = packed && !amp_gemm_masked(d); /* whose rows begin with a byte */
    const size_t cols = b->rows, each = whole ? AMPI_BLOCK / cols * cols : cols;
    size_t i, k, n;
    for (i = 0; i < rows * cols; i += n) {
        const size_t row = r0 + i / cols;
        n = ampi_least(each, rows * cols - i);
        ampi_epilogue_begin(kn, d, w->c + i, batch, row, b->r0, n, w->row);
        for (k = 0; k < n; k += cols)
            ampi_epilogue_bias(kn, d, w->c + i + k, row + k / cols, b->r0, cols, w->row);
        ampi_epilogue_end(kn, d, w->c + i, batch, row, b->r0, n, w->row, amax);
    }
}
static void ampi_small_product(const ampi_gemm_blocks *j, ampi_workspace *w, size_t batch, const ampi_panel *a,
    const ampi_panel *b, uint32_t *amax) {
    const amp_gemm_job *d = j->d;
    const ampi_kernels *kn = j->c->k;
    const int plain = ampi_is_plain(d), twice = d->m <= AMPI_FEW && !(d->flags & AMP_GEMM_ORDERED);
    const size_t strip = kn->lanes, depth = d->k;
    size_t lda = a->ld, ldb = b->ld, at = a->first + a->r0 * (a->across ? 1 : lda);
    const float *from_b = w->b;
    ampi_direct t; /* each field is set below: zeroing takes longer than a small product */
    t.rows = a->rows;
    t.depth = depth;
    if (a->across) {
        t.a = ampi_small_floats(kn, d->a, at, depth, t.rows, &lda, w->a);
        t.a_row = 1;
        t.a_k = lda;
    } else {
        t.a = ampi_small_floats(kn, d->a, at, t.rows, depth, &lda, w->a);
        t.a_row = lda;
        t.a_k = 1;
    }
    if (b->across)
        from_b = ampi_small_floats(kn, d->b, b->first + b->r0, depth, b->rows, &ldb, w->b);
    else
        ampi_pack_strips(kn, w->b, b, strip, w->row);
    t.b = from_b;
    t.b_k = b->across ? ldb : strip;
    if (depth == 1) t.a_k = t.b_k = 0; /* a leading dimension that leads nowhere may be any number */
    t.b_strip = b->across ? strip : strip * depth;
    t.cols = b->rows;
    t.c = plain ? (float *)d->d.data + batch * d->stride_d + a->r0 * d->ldd + b->r0 : w->c;
    t.c_row = plain ? d->ldd : b->rows;
    (kn->direct)(&t, twice);
    if (!plain) ampi_small_end(j, w, batch, a->r0, b, a->rows, amax);
}
static void ampi_gemm_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_gemm_blocks *j = (const ampi_gemm_blocks *)arg;
    const amp_gemm_job *d = j->d;
    const ampi_kernels *kn = j->c->k;
    size_t bn = task % j->blocks_n, bm = task / j->blocks_n % j->blocks_m, batch = task / j->blocks_n / j->blocks_m;
    size_t r0 = bm * j->rows, c0 = bn * j->cols, k0, kc, r, last = d->sum_batches ? d->batch - 1 : batch;
    int first = 1;
    ampi_panel a = {d->a, batch * d->stride_a, d->lda, d->trans_a != 0, r0, ampi_least(j->rows, d->m - r0), 0, 0};
    ampi_panel b = {d->b, batch * d->stride_b, d->ldb, d->trans_b == 0, c0, ampi_least(j->cols, d->n - c0), 0, 0};
    uint32_t amax = 0;
    if (r0 >= d->m || c0 >= d->n) return;
    a.depth = b.depth = d->k;
    if (ampi_is_small(kn, d, a.rows, b.rows)) {
        ampi_small_product(j, w, batch, &a, &b, &amax);
        ampi_join_amax(j, amax);
        return;
    }
    if (d->k == 0) memset(w->c, 0, sizeof w->c);
    for (; batch <= last; batch++, a.first += d->stride_a, b.first += d->stride_b)
        for (k0 = 0; k0 < d->k; k0 += kc) {
            kc = ampi_least(AMPI_KC, d->k - k0);
            a.k0 = b.k0 = k0;
            a.depth = b.depth = kc;
            ampi_pack_rows(kn, w->a, &a, w->row);
            ampi_pack_strips(kn, w->b, &b, kn->nr, w->row);
            ampi_multiply_panels(kn, d, w, a.rows, b.rows, kc, first);
            first = 0;
        }
    batch = d->sum_batches ? 0 : last;
    for (r = 0; r < a.rows; r++)
        ampi_epilogue(kn, d, w->c + r * AMPI_LDC, batch, r0 + r, c0, b.rows, w->row, &amax);
    ampi_join_amax(j, amax);
}

static size_t ampi_equal_parts(size_t n, size_t parts, size_t multiple) { /* the size of each, a multiple */
    size_t each = (n - 1) / parts + 1;
    return (each + multiple - 1) / multiple * multiple;
}
/* As ampi_floats, and fetches the n that follow. */
static const float *ampi_floats_fetching(const ampi_kernels *kn, amp_array x, size_t at, size_t n, float *buf) {
    if (x.dtype != AMP_F32) ampi_prefetch(ampi_at(x, at + n), n * amp_dtype_size(x.dtype));
    return ampi_floats(kn, x, at, n, buf);
}

/* ---- a few rows of D: packing would cost more than the product, so B is read once, straight from where it is. Rows of
   B are added up where they lie along D, else their products with rows of A are. An element of D is a chain over k
   again, whatever the threads do ---- */

/* A[0 .. rows, k0 .. k0+kc] as floats, [row][k]. */
static void ampi_few_rows(const ampi_gemm_blocks *j, size_t a0, size_t k0, size_t kc, float *to) {
    const amp_gemm_job *d = j->d;
    size_t r, k;
    for (r = 0; r < j->rows; r++) {
        if (!d->trans_a) {
            j->c->k->widen[d->a.dtype](to + r * kc, ampi_at(d->a, a0 + r * d->lda + k0), kc);
            continue;
        }
        for (k = 0; k < kc; k++)
            to[r * kc + k] = amp_load(d->a.data, d->a.dtype, a0 + (k0 + k) * d->lda + r);
    }
}
/* w->c += A * B^T for columns c0 .. c0+cols: rows of B lie along k. One row of A takes all of them where they lie, more
   take 4 in turn, as what is no float is widened once. */
static void ampi_few_dots(
    const ampi_gemm_blocks *j, ampi_workspace *w, size_t b0, size_t c0, size_t cols, size_t k0, size_t kc) {
    const amp_gemm_job *d = j->d;
    const ampi_kernels *kn = j->c->k;
    const size_t first = b0 + c0 * d->ldb + k0;
    const int halves = d->b.dtype == AMP_F16 || d->b.dtype == AMP_BF16, one = j->rows == 1;
    const int there = ampi_in_place(d->b, first) || (halves && kn->direct && one);
    const amp_dtype t = there ? d->b.dtype : AMP_F32;
    size_t c, k, r, n, each, i;
    for (c = 0; c < cols; c += each)
        for (each = there && one ? cols : ampi_least(4, cols - c), k = 0; k < kc; k += n) {
            const size_t at = first + c * d->ldb + k;
            const char *b = there ? ampi_at(d->b, at) : (const char *)w->b;
            n = there && one ? kc : ampi_least(AMPI_DOT, kc - k);
            for (i = 0; i < each && !there; i++)
                (void)ampi_floats_fetching(kn, d->b, at + i * d->ldb, n, w->b + i * n);
            for (r = 0; r < j->rows; r++)
                (kn->dots)(w->c + r * j->cols + c, each, w->a + r * kc + k, b, there ? d->ldb : n, t, n);
        }
}
/* w->c += A * B for columns c0 .. c0+cols: rows of B lie along D. */
static void ampi_few_sums(
    const ampi_gemm_blocks *j, ampi_workspace *w, size_t b0, size_t c0, size_t cols, size_t k0, size_t kc) {
    const amp_gemm_job *d = j->d;
    const ampi_kernels *kn = j->c->k;
    float *sum = w->b + 2 * AMPI_BLOCK;
    size_t c, k, r, n;
    memset(sum, 0, j->rows * j->cols * sizeof *sum);
    for (k = 0; k < kc; k++)
        for (c = 0; c < cols; c += n) {
            const float *b;
            n = ampi_least(AMPI_BLOCK, cols - c);
            b = ampi_floats_fetching(kn, d->b, b0 + (k0 + k) * d->ldb + c0 + c, n, w->b);
            for (r = 0; r < j->rows; r++)
                (kn->axpy)(sum + r * j->cols + c, b, n, w->a[r * kc + k]);
        }
    (kn->axpy)(w->c, sum, j->rows * j->cols, 1.0f);
}
static void ampi_gemv_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_gemm_blocks *j = (const ampi_gemm_blocks *)arg;
    const amp_gemm_job *d = j->d;
    size_t batch = task / j->blocks_n, c0 = task % j->blocks_n * j->cols, cols, k0, kc, r, c, n;
    size_t a0 = batch * d->stride_a, b0 = batch * d->stride_b;
    uint32_t amax = 0;
    if (c0 >= d->n) return;
    cols = ampi_least(j->cols, d->n - c0);
    memset(w->c, 0, j->rows * j->cols * sizeof *w->c);
    for (k0 = 0; k0 < d->k; k0 += kc) {
        kc = ampi_least(d->trans_b ? AMPI_MC / AMPI_FEW * AMPI_KC : AMPI_KC, d->k - k0);
        ampi_few_rows(j, a0, k0, kc, w->a);
        if (d->trans_b)
            ampi_few_dots(j, w, b0, c0, cols, k0, kc);
        else
            ampi_few_sums(j, w, b0, c0, cols, k0, kc);
    }
    for (r = 0; r < j->rows; r++)
        for (c = 0; c < cols; c += n) {
            n = ampi_least(AMPI_NC, cols - c);
            ampi_epilogue(j->c->k, d, w->c + r * j->cols + c, batch, r, c0 + c, n, w->row, &amax);
        }
    ampi_join_amax(j, amax);
}

static void ampi_gemm_few(ampi_gemm_blocks *j) {
    const amp_gemm_job *d = j->d;
    size_t most = (AMPI_KC * AMPI_NC - 2 * AMPI_BLOCK) / d->m / 16 * 16; /* floats of a row in ampi_few_sums */
    size_t threads = (size_t)j->c->threads;
    j->rows = d->m;
    j->blocks_n = (d->n - 1) / most + 1;
    if (d->batch < threads && d->n / j->blocks_n > 64 * threads) j->blocks_n *= threads;
    j->cols = ampi_equal_parts(d->n, j->blocks_n, 16);
    (void)ampi_run(
        j->c, j->blocks_n * d->batch, (double)d->n * (double)(d->k + 1) * (double)d->batch, ampi_gemv_task, j);
}
static void ampi_gemm_packed(ampi_gemm_blocks *j) {
    const amp_gemm_job *d = j->d;
    size_t mr = j->c->k->mr[0], threads = (size_t)j->c->threads;
    double multiplications = (double)d->m * (double)d->n * (double)(d->k + 32) * (double)d->batch;
    j->blocks_m = (d->m - 1) / AMPI_MC + 1;
    j->blocks_n = (d->n - 1) / AMPI_NC + 1;
    while (j->blocks_m * j->blocks_n * amp_gemm_outputs(d) < threads && d->m / j->blocks_m >= 4 * mr)
        j->blocks_m++; /* work for every thread */
    j->rows = ampi_equal_parts(d->m, j->blocks_m, mr);
    j->cols = ampi_equal_parts(d->n, j->blocks_n, j->c->k->nr);
    /* 32 multiplications cost about one element elsewhere */
    (void)ampi_run(j->c, j->blocks_m * j->blocks_n * amp_gemm_outputs(d), multiplications / 32.0, ampi_gemm_task, j);
}

/* Small ones have the same chains, but for dots of whole vectors. */
static int ampi_is_few(const ampi_kernels *kn, const amp_gemm_job *d) {
    if (d->m > AMPI_FEW || (d->flags & AMP_GEMM_ORDERED) || d->sum_batches) return 0;
    return (d->trans_b && d->k >= 4 * kn->lanes) || !ampi_is_small(kn, d, d->m, d->n);
}
/* A contiguous column is a row of the transposed product. */
static int ampi_is_column(const amp_gemm_job *d) {
    if (d->n != 1 || d->m == 1 || d->bias.data || d->sum_batches || amp_gemm_masked(d)) return 0;
    return d->ldd == 1 && (!d->c.data || d->ldc == 1);
}
static amp_gemm_job ampi_as_row(const amp_gemm_job *d) {
    amp_gemm_job t = *d;
    t.m = 1;
    t.n = d->m;
    t.a = d->b;
    t.trans_a = !d->trans_b;
    t.lda = d->ldb;
    t.stride_a = d->stride_b;
    t.b = d->a;
    t.trans_b = !d->trans_a;
    t.ldb = d->lda;
    t.stride_b = d->stride_a;
    return t;
}

static amp_status ampi_cpu_bias_grad(amp_ctx *ctx, const amp_bias_grad_job *job);
static amp_status ampi_cpu_gemm(amp_ctx *ctx, const amp_gemm_job *job) {
    amp_gemm_job row;
    amp_bias_grad_job sums;
    ampi_gemm_blocks j = AMP_ZERO;
    j.c = ampi_cpu_of(ctx);
    j.d = job;
    if (ampi_is_column(job)) {
        row = ampi_as_row(job);
        j.d = &row;
    }
    if (job->amax_d) *job->amax_d = 0.0f;
    if (ampi_is_few(j.c->k, j.d))
        ampi_gemm_few(&j);
    else
        ampi_gemm_packed(&j);
    if (!job->dbias.data) return AMP_OK;
    sums = amp_gemm_sums(job);
    return ampi_cpu_bias_grad(ctx, &sums);
}
static amp_status ampi_cpu_gemm_explain(amp_ctx *ctx, char *text, size_t bytes, const amp_gemm_job *d) {
    const ampi_cpu *c = ampi_cpu_of(ctx);
    const char *order = d->flags & AMP_GEMM_ORDERED ? ", in the defined order (AMP_GEMM_ORDERED)" : "";
    const char *fma = order[0] && c->k->fused && d->a.dtype == AMP_F32 ? ", fused multiply-add emulated" : "";
    if (!text) return AMP_OK;
    snprintf(text, bytes, "amp_gemm: [%llu,%llu] x [%llu,%llu], %s -> %s: CPU kernels, %s%s%s", AMPI_ULL(d->m),
        AMPI_ULL(d->k), AMPI_ULL(d->k), AMPI_ULL(d->n), amp_dtype_name(d->a.dtype), amp_dtype_name(d->d.dtype),
        c->name + sizeof AMPI_CPU_KIND - 1, order, fma);
    return AMP_OK;
}

/* ---- activations and their gradients, and column sums ---- */

typedef struct ampi_act_work {
    const ampi_kernels *k;
    const amp_activation_job *job;
} ampi_act_work;
static int ampi_is_relu16(const ampi_kernels *k, const amp_activation_job *d) {
    const amp_dtype t = d->in.dtype;
    const int alike = d->out.dtype == t && (!d->saved.data || d->saved.dtype == t);
    return k->relu16 && d->act == AMP_RELU && alike && (t == AMP_F16 || t == AMP_BF16);
}
static void ampi_act_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_act_work *j = (const ampi_act_work *)arg;
    const amp_activation_job *d = j->job;
    float x[AMPI_BLOCK], other[AMPI_BLOCK];
    size_t i = task * AMP_CHUNK, end = ampi_least(d->count, i + AMP_CHUNK), n;
    (void)w;
    if (ampi_is_relu16(j->k, d)) {
        const char *saved = d->saved.data ? ampi_at(d->saved, i) : NULL;
        (j->k->relu16)(ampi_at(d->out, i), ampi_at(d->in, i), saved, d->in.dtype, end - i);
        return;
    }
    for (; i < end; i += n) {
        float *to = ampi_in_place(d->out, i) ? (float *)d->out.data + i : x;
        const float *from;
        n = ampi_least(AMPI_BLOCK, end - i);
        from = ampi_floats(j->k, d->in, i, n, x);
        if (d->saved.data)
            (j->k->act_grad)(to, from, ampi_floats(j->k, d->saved, i, n, other), n, d->act);
        else
            (j->k->act)(to, from, n, d->act);
        if (to == x) j->k->narrow[d->out.dtype](ampi_at(d->out, i), x, n);
    }
}
static amp_status ampi_cpu_activation(amp_ctx *ctx, const amp_activation_job *d) {
    ampi_act_work j = {ampi_cpu_of(ctx)->k, d};
    return ampi_run(ampi_cpu_of(ctx), ampi_chunks(d->count), (double)d->count, ampi_act_task, &j);
}

/* ReLU's gradient by its mask, in pieces of so many columns: rows, or parts of all of them where they have no bits
   between them. */
typedef struct ampi_mask_work {
    const ampi_kernels *k;
    const amp_bias_grad_job *job;
    size_t cols, pieces, count; /* of a piece; pieces; all elements */
} ampi_mask_work;
static void ampi_mask_piece(const ampi_mask_work *j, size_t piece) {
    const amp_bias_grad_job *d = j->job;
    float x[AMPI_BLOCK];
    size_t first = piece * j->cols, end = ampi_least(j->count - first, j->cols), c, n;
    for (c = 0; c < end; c += n) {
        n = ampi_least(AMPI_BLOCK, end - c);
        j->k->widen[d->dy.dtype](x, ampi_at(d->dy, first + c), n);
        (j->k->mask_grad)(x, ampi_mask_at(d->saved.data, piece, j->cols, c), n);
        j->k->narrow[d->dy.dtype](ampi_at(d->dy, first + c), x, n);
    }
}
static size_t ampi_mask_each(const ampi_mask_work *j) { return AMP_CHUNK / j->cols + 1; } /* of a task */
static void ampi_mask_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_mask_work *j = (const ampi_mask_work *)arg;
    size_t each = ampi_mask_each(j), piece = task * each, end = ampi_least(j->pieces, piece + each);
    (void)w;
    for (; piece < end; piece++)
        ampi_mask_piece(j, piece);
}
static amp_status ampi_cpu_mask_grad(ampi_cpu *c, const amp_bias_grad_job *d) {
    ampi_mask_work j = {c->k, d, d->cols % 8u ? d->cols : AMP_CHUNK, 0, d->rows * d->cols};
    j.pieces = (j.count - 1) / j.cols + 1;
    return ampi_run(c, (j.pieces - 1) / ampi_mask_each(&j) + 1, (double)j.count, ampi_mask_task, &j);
}

typedef struct ampi_col_work {
    const ampi_kernels *k;
    const amp_bias_grad_job *job;
} ampi_col_work;
/* to[c] += column c0 + c of the rows, one row after the other; rows without a gap are widened together. */
static void ampi_col_rows(const ampi_col_work *j, size_t c0, size_t cols, size_t row, size_t end, float *to) {
    const amp_bias_grad_job *d = j->job;
    const size_t most = d->step == 1 && d->ld == cols ? AMPI_NC / cols : 1;
    float x[AMPI_NC];
    size_t c, r, n;
    for (; row < end; row += n) {
        const size_t at = row * d->ld;
        const float *from = x;
        n = ampi_least(most, end - row);
        if (d->step == 1)
            from = ampi_floats(j->k, d->dy, at + c0, n * cols, x);
        else
            for (c = 0; c < cols; c++)
                x[c] = amp_load(d->dy.data, d->dy.dtype, at + (c0 + c) * d->step);
        for (r = 0; r < n; r++)
            (j->k->axpy)(to, from + r * cols, cols, 1.0f);
    }
}
/* The same from 0 on; neighbours, if they fill a vector, go by four rows. */
static void ampi_col_part(const ampi_col_work *j, size_t c0, size_t cols, size_t row, size_t end, float *sum) {
    const amp_bias_grad_job *d = j->job;
    const size_t size = amp_dtype_size(d->dy.dtype);
    const int taken = d->dy.dtype == AMP_F32 || (size == 2 && j->k->direct); /* by add_four */
    const int by_four = taken && d->step == 1 && cols >= j->k->lanes;
    memset(sum, 0, cols * sizeof *sum);
    for (; by_four && row + 4 <= end; row += 4)
        (j->k->add_four)(sum, ampi_at(d->dy, row * d->ld + c0), d->ld * size, d->dy.dtype, cols);
    ampi_col_rows(j, c0, cols, row, end, sum);
}
static void ampi_col_task(void *arg, size_t task, ampi_workspace *w) { /* AMPI_NC columns, by the rule of sums */
    const ampi_col_work *j = (const ampi_col_work *)arg;
    const amp_bias_grad_job *d = j->job;
    size_t c0 = task * AMPI_NC, cols = ampi_least(AMPI_NC, d->cols - c0), lanes = 1, r, c, h;
    float part[AMPI_NC];
    while (lanes < AMP_COLUMN_LANES && lanes * AMP_ROWS < d->rows) /* the others would stay 0 */
        lanes *= 2u;
    memset(w->column, 0, lanes * AMPI_NC * sizeof *w->column);
    for (r = 0; r < d->rows; r += AMP_ROWS) {
        ampi_col_part(j, c0, cols, r, ampi_least(d->rows, r + AMP_ROWS), part);
        ampi_add_floats(w->column + r / AMP_ROWS % lanes * AMPI_NC, part, cols);
    }
    for (h = lanes / 2u; h > 0; h /= 2)
        for (c = 0; c < h; c++)
            ampi_add_doubles(w->column + c * AMPI_NC, w->column + (c + h) * AMPI_NC, cols);
    for (c = 0; c < cols; c++) {
        double s = w->column[c];
        if (d->accumulate) s = amp_dadd(amp_widen(amp_load(d->dbias.data, d->dbias.dtype, c0 + c)), s);
        amp_store(d->dbias.data, d->dbias.dtype, c0 + c, amp_narrow(s));
    }
}
static amp_status ampi_cpu_bias_grad(amp_ctx *ctx, const amp_bias_grad_job *job) {
    ampi_cpu *c = ampi_cpu_of(ctx);
    size_t n = job->rows * job->cols;
    ampi_col_work j = {c->k, job};
    amp_activation_job act = AMP_ZERO;
    act.act = job->act;
    act.count = n;
    act.saved = job->saved;
    act.in = act.out = job->dy;
    if (job->act != AMP_ACT_NONE && job->saved.dtype == AMP_MASK)
        AMPI_TRY(ampi_cpu_mask_grad(c, job));
    else if (job->act != AMP_ACT_NONE)
        AMPI_TRY(ampi_cpu_activation(ctx, &act));
    if (job->dbias.data) (void)ampi_run(c, (job->cols - 1) / AMPI_NC + 1, (double)n, ampi_col_task, &j);
    return AMP_OK;
}

/* ---- cross-entropy and dropout on the CPU.   tests: tests/test_products.c, tests/test_paths.c ---- */

typedef struct ampi_xent_work {
    ampi_cpu *c;
    const amp_xent_job *d;
    size_t per_task;
    float factor; /* amp_xent_factor */
    uint32_t _pad;
} ampi_xent_work;

static size_t ampi_full_vectors(const ampi_kernels *k, size_t n) {
    return (n + k->lanes - 1) & ~(size_t)(k->lanes - 1);
}
/* n logits from element `at` on, and zeros up to the end of the last vector; returns how many that makes. */
static size_t ampi_xent_logits(const ampi_xent_work *j, float *x, size_t at, size_t n) {
    size_t full = ampi_full_vectors(j->c->k, n);
    j->c->k->widen[j->d->logits.dtype](x, ampi_at(j->d->logits, at), n);
    memset(x + n, 0, (full - n) * sizeof *x);
    return full;
}
AMPI_RARE void ampi_xent_fill(const amp_xent_job *d, size_t row, float value) {
    size_t i;
    if (d->row_loss) d->row_loss[d->first + row] = value;
    if (!d->dlogits.data) return;
    for (i = 0; i < d->classes; i++)
        amp_store(d->dlogits.data, d->dlogits.dtype, row * d->ld + i, value);
}
static void ampi_xent_pad(const amp_xent_job *d, size_t row) {
    size_t size = amp_dtype_size(d->dlogits.dtype);
    if (d->padding) memset(ampi_at(d->dlogits, row * d->ld + d->classes), 0, d->padding * size);
}
/* The sum of a row, as it grows; see amp_xent_rescaled. */
typedef struct ampi_xent_sum {
    ampi_sum sum; /* part: of the chunk under way, each for its own top */
    float top[AMP_PARTS], max;
    uint32_t _pad;
} ampi_xent_sum;
static void ampi_xent_chunk(ampi_xent_sum *s) {
    double *lane = s->sum.lane;
    float before = s->max;
    size_t i;
    for (i = 0; i < s->sum.parts; i++)
        s->max = ampi_larger(s->max, s->top[i]);
    for (i = 0; i < s->sum.parts; i++)
        s->sum.part[i] = amp_xent_rescaled(s->sum.part[i], s->top[i], s->max);
    for (i = 0; amp_less(before, s->max) && i < s->sum.chunks && i < AMP_LANES; i++)
        lane[i] = amp_xent_rescaled(lane[i], before, s->max);
    ampi_sum_chunk(&s->sum, ampi_halve(s->sum.part, s->sum.parts));
    s->sum.parts = 0;
}
static float ampi_xent_mean(const ampi_xent_work *j, size_t at, float *x, ampi_workspace *w) { /* of a row's logits */
    ampi_sum s = ampi_sum_begin(w);
    size_t i, n;
    for (i = 0; i < j->d->classes; i += n) {
        n = ampi_least(AMP_PART, j->d->classes - i);
        ampi_sum_part(&s, (j->c->k->sum)(ampi_floats(j->c->k, j->d->logits, at + i, n, x), n));
    }
    return amp_narrow(amp_ddiv(ampi_sum_end_of(&s), (double)j->d->classes));
}
/* Maximum and sum of a row. x[AMP_PART] keeps the terms of the last part. */
static amp_xent_row ampi_xent_sums(const ampi_xent_work *j, size_t at, float *x, ampi_workspace *w) {
    const amp_xent_job *d = j->d;
    const ampi_kernels *k = j->c->k;
    size_t i, n, full;
    amp_xent_row r = AMP_ZERO;
    ampi_xent_sum s;
    s.sum = ampi_sum_begin(w);
    s.max = AMP_XENT_LEAST;
    for (i = 0; i < d->classes; i += n) {
        float *top = &s.top[s.sum.parts];
        n = ampi_least(AMP_PART, d->classes - i);
        full = ampi_xent_logits(j, x, at + i, n);
        *top = (k->largest)(x, n, AMP_XENT_LEAST);
        (k->exps)(x, full, *top);
        s.sum.part[s.sum.parts++] = amp_widen((k->sum)(x, n));
        if (s.sum.parts == AMP_PARTS || i + n == d->classes) ampi_xent_chunk(&s);
    }
    r.max = s.max;
    r.sum = amp_narrow(ampi_sum_end_of(&s.sum));
    return r;
}
/* The gradients of a row: amp_xent_grad_one in vectors, and the label's. */
static void ampi_xent_gradients(const ampi_xent_work *j, size_t at, size_t label, const amp_xent_row *r, float *x) {
    const amp_xent_job *d = j->d;
    const ampi_kernels *k = j->c->k;
    size_t i, n;
    for (i = 0; i < d->classes; i += n) {
        n = ampi_least(AMP_PART, d->classes - i);
        if (d->classes > AMP_PART) (k->exps)(x, ampi_xent_logits(j, x, at + i, n), r->max); /* else they are there */
        (k->softmax_shares)(x, ampi_full_vectors(k, n), r->by, r->less);
        if (label - i < n) x[label - i] = amp_xent_grad_label(r);
        k->narrow[d->dlogits.dtype](ampi_at(d->dlogits, at + i), x, n);
    }
}
/* Of a row with one label: the factor of its gradients, and its loss. */
static float ampi_xent_row_factor(const ampi_xent_work *j, int64_t label) {
    return j->d->weights.data ? amp_mul(j->factor, amp_xent_row_weight(j->d, label)) : j->factor;
}
static void ampi_xent_row_loss(
    const ampi_xent_work *j, size_t row, int64_t label, float max, float target, float mean, float sum) {
    const amp_xent_job *d = j->d;
    const float weight = amp_xent_row_weight(d, label);
    const float loss = amp_xent_loss_one(d->smoothing, max, ampi_nonzero(weight) ? target : max, mean, sum);
    d->row_loss[d->first + row] = d->weights.data ? amp_mul(loss, weight) : loss;
}

static void ampi_xent_label_row(const ampi_xent_work *j, size_t row, size_t label, float *x, ampi_workspace *w) {
    const amp_xent_job *d = j->d;
    size_t at = row * d->ld;
    float mean = ampi_nonzero(d->smoothing) ? ampi_xent_mean(j, at, x, w) : 0.0f;
    amp_xent_row r = ampi_xent_sums(j, at, x, w);
    r.target = amp_load(d->logits.data, d->logits.dtype, at + label);
    amp_xent_row_end(&r, d, ampi_xent_row_factor(j, (int64_t)label), 1.0f);
    if (d->row_loss) ampi_xent_row_loss(j, row, (int64_t)label, r.max, r.target, mean, r.sum);
    if (d->dlogits.data) ampi_xent_gradients(j, at, d->softmax ? (size_t)-1 : label, &r, x);
}
/* q of the classes i .. i + n of a row. */
static void ampi_xent_targets(
    const ampi_xent_work *j, size_t row, int64_t label, size_t i, size_t n, const amp_xent_row *r, float *q) {
    const amp_xent_job *d = j->d;
    float buf[AMP_PART];
    const float *w = d->weights.data ? ampi_floats(j->c->k, d->weights, i, n, buf) : NULL;
    if (d->targets.data)
        j->c->k->widen[d->targets.dtype](q, ampi_at(d->targets, row * d->ld + i), n);
    else
        memset(q, 0, n * sizeof *q);
    if (!d->targets.data && (size_t)label - i < n) q[(size_t)label - i] = 1.0f;
    (j->c->k->targets)(q, w, n, r->keep, r->share);
}
/* A row with a target for each class. */
static void ampi_xent_each_row(const ampi_xent_work *j, size_t row, int64_t label, float *x, ampi_workspace *w) {
    const amp_xent_job *d = j->d;
    const ampi_kernels *k = j->c->k;
    size_t at = row * d->ld, i, n;
    float q[AMP_PART], all;
    amp_xent_row r = ampi_xent_sums(j, at, x, w);
    ampi_sum misses = ampi_sum_begin(w), sum = {w->column, w->column + AMP_PARTS, 0, 0};
    amp_xent_row_end(&r, d, j->factor, 1.0f);
    for (i = 0; i < d->classes; i += n) {
        n = ampi_least(AMP_PART, d->classes - i);
        (void)ampi_xent_logits(j, x, at + i, n);
        ampi_xent_targets(j, row, label, i, n, &r, q);
        ampi_sum_part(&sum, (k->sum)(q, n));
        (k->misses)(x, q, n, r.max);
        ampi_sum_part(&misses, (k->sum)(x, n));
    }
    all = amp_narrow(ampi_sum_end_of(&sum));
    amp_xent_row_end(&r, d, j->factor, all);
    if (d->row_loss) d->row_loss[d->first + row] = amp_xent_loss_each(amp_narrow(ampi_sum_end_of(&misses)), all, r.sum);
    for (i = 0; d->dlogits.data && i < d->classes; i += n) {
        n = ampi_least(AMP_PART, d->classes - i);
        (k->exps)(x, ampi_xent_logits(j, x, at + i, n), r.max);
        ampi_xent_targets(j, row, label, i, n, &r, q);
        (k->grad_each)(x, q, n, r.by, r.factor);
        k->narrow[d->dlogits.dtype](ampi_at(d->dlogits, at + i), x, n);
    }
}
/* Rows of few classes: from memory to lanes and back, each row's numbers to its lane. The rows, packed, lie where
   they are or in buf. */
static const float *ampi_xent_few_load(const ampi_xent_work *j, size_t row, size_t rows, float *x, float *buf) {
    const amp_xent_job *d = j->d;
    const size_t n = d->classes, at_once = d->ld == n ? rows : 1;
    const float *from = buf;
    size_t r;
    if (at_once == AMPI_XENT_ROWS) {
        from = ampi_floats(j->c->k, d->logits, row * n, rows * n, buf);
    } else {
        for (r = 0; r < rows; r += at_once)
            j->c->k->widen[d->logits.dtype](buf + r * n, ampi_at(d->logits, (row + r) * d->ld), at_once * n);
        memset(buf + rows * n, 0, (AMPI_XENT_ROWS - rows) * n * sizeof *buf);
    }
    for (r = 0; r < AMPI_XENT_ROWS; r += 4)
        (j->c->k->pack4)(x + r, AMPI_XENT_ROWS, from + r * n, n, n);
    return from;
}
static void ampi_xent_few_store(const ampi_xent_work *j, size_t row, size_t rows, const float *x, float *buf) {
    const amp_xent_job *d = j->d;
    const size_t n = d->classes, at_once = d->ld == n ? rows : 1;
    const int here = d->ld == n && ampi_in_place(d->dlogits, row * n);
    float *to = here ? (float *)d->dlogits.data + row * n : buf;
    size_t r, c;
    for (c = 0; n >= 4 && c < n; c += 4) { /* the last four may lie over those before them */
        const size_t first = ampi_least(c, n - 4);
        (j->c->k->pack4)(to + first, n, x + first * AMPI_XENT_ROWS, AMPI_XENT_ROWS, rows);
    }
    for (; c < n; c++)
        for (r = 0; r < rows; r++)
            to[r * n + c] = x[c * AMPI_XENT_ROWS + r];
    for (r = 0; !here && r < rows; r += at_once)
        j->c->k->narrow[d->dlogits.dtype](ampi_at(d->dlogits, (row + r) * d->ld), buf + r * n, at_once * n);
}
/* Rows at .. at + rows, at most AMPI_XENT_ROWS; a loop for each result, so that chains of many rows are under way. */
static void ampi_xent_few(const ampi_xent_work *j, size_t at, size_t rows) {
    const amp_xent_job *d = j->d;
    float x[AMPI_XENT_CLASSES * AMPI_XENT_ROWS], buf[AMPI_XENT_CLASSES * AMPI_XENT_ROWS];
    float all[AMPI_XENT_ROWS], at_label[AMPI_XENT_ROWS];
    float max[AMPI_XENT_ROWS], sum[AMPI_XENT_ROWS], by[AMPI_XENT_ROWS] = {0}, less[AMPI_XENT_ROWS] = {0};
    int64_t label[AMPI_XENT_ROWS];
    const int smooth = ampi_nonzero(d->smoothing);
    const float *from = ampi_xent_few_load(j, at, rows, x, buf);
    amp_xent_row row;
    size_t r;
    (j->c->k->few_terms)(x, d->classes, max, smooth ? all : NULL, sum);
    amp_xent_row_begin(&row, d);
    for (r = 0; r < rows; r++) {
        label[r] = amp_xent_label(d, d->first + at + r);
        if (amp_xent_is_wrong(d, label[r])) continue;
        row.sum = sum[r];
        amp_xent_row_factors(&row, ampi_xent_row_factor(j, label[r]), 1.0f);
        by[r] = row.by;
        less[r] = row.less;
        at_label[r] = amp_xent_grad_at(&row, x[(size_t)label[r] * AMPI_XENT_ROWS + r]);
    }
    for (r = 0; d->row_loss && r < rows; r++) {
        float mean = smooth ? amp_narrow(amp_ddiv(amp_widen(all[r]), (double)d->classes)) : 0.0f;
        if (amp_xent_is_wrong(d, label[r])) continue;
        ampi_xent_row_loss(j, at + r, label[r], max[r], from[r * d->classes + (size_t)label[r]], mean, sum[r]);
    }
    if (!d->dlogits.data) return;
    (j->c->k->few_shares)(x, d->classes, by, less);
    for (r = 0; r < rows; r++)
        if (!d->softmax && !amp_xent_is_wrong(d, label[r])) x[(size_t)label[r] * AMPI_XENT_ROWS + r] = at_label[r];
    ampi_xent_few_store(j, at, rows, x, buf);
}
static void ampi_xent_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_xent_work *j = (const ampi_xent_work *)arg;
    const amp_xent_job *d = j->d;
    size_t row = task * j->per_task, end = ampi_least(d->rows, row + j->per_task), i;
    int few = d->classes <= AMPI_XENT_CLASSES && !d->each;
    float x[AMP_PART];
    for (i = row; few && i < end; i += AMPI_XENT_ROWS)
        ampi_xent_few(j, i, ampi_least(AMPI_XENT_ROWS, end - i));
    for (; row < end; row++) {
        int64_t label = amp_xent_label(d, d->first + row);
        ampi_xent_pad(d, row);
        if (label < 0) /* left out */
            ampi_xent_fill(d, row, 0.0f);
        else if (amp_xent_is_wrong(d, label)) /* an error made visible */
            ampi_xent_fill(d, row, ampi_float(0x7fc00000u));
        else if (d->each)
            ampi_xent_each_row(j, row, label, x, w);
        else if (!few)
            ampi_xent_label_row(j, row, (size_t)label, x, w);
    }
}
/* What all rows count. */
static double ampi_xent_counted(const ampi_xent_work *j, float *x) {
    const amp_xent_job *d = j->d;
    ampi_sum sum = ampi_sum_begin(j->c->work);
    size_t r, n, i;
    if (d->sum) return 0.0;
    for (r = 0; r < d->all; r += n) {
        n = ampi_least(AMP_PART, d->all - r);
        for (i = 0; i < n; i++)
            x[i] = amp_xent_row_weight(d, amp_xent_label(d, r + i));
        ampi_sum_part(&sum, (j->c->k->sum)(x, n));
    }
    return ampi_sum_end_of(&sum);
}
static amp_status ampi_cpu_xent(amp_ctx *ctx, const amp_xent_job *d) {
    ampi_xent_work j = AMP_ZERO;
    float x[AMP_PART];
    double counted;
    size_t r, n;
    j.c = ampi_cpu_of(ctx);
    j.d = d;
    j.per_task = d->classes < 8192 ? 8192 / d->classes : 1;
    counted = ampi_xent_counted(&j, x);
    j.factor = amp_xent_factor(d, counted);
    ampi_parallel(j.c, (d->rows - 1) / j.per_task + 1, d->rows * d->classes * 8, ampi_xent_task, &j);
    if (d->loss && d->first + d->rows == d->all) { /* rows that are left out hold 0 */
        ampi_sum sum = ampi_sum_begin(j.c->work);
        for (r = 0; r < d->all; r += n) {
            n = ampi_least(AMP_PART, d->all - r);
            ampi_sum_part(&sum, (j.c->k->sum)(d->row_loss + r, n));
        }
        *d->loss = amp_narrow(amp_dmul(ampi_sum_end_of(&sum), amp_xent_weight(d, counted)));
    }
    return AMP_OK;
}

/* ---- dropout ---- */

typedef struct ampi_dropout_work {
    const ampi_kernels *k;
    const amp_dropout_job *d;
} ampi_dropout_work;
static void ampi_dropout_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_dropout_work *j = (const ampi_dropout_work *)arg;
    const amp_dropout_job *d = j->d;
    uint64_t threshold = amp_dropout_threshold(d->p);
    float factor = amp_dropout_factor(d->p), x[AMPI_BLOCK];
    uint32_t buf[AMPI_BLOCK + 64];
    size_t i = task * AMP_CHUNK, end = ampi_least(d->count, i + AMP_CHUNK), n;
    (void)w;
    for (; i < end; i += n) {
        uint64_t at = d->rng.offset + i;
        n = ampi_random_run(at, ampi_least(AMPI_BLOCK, end - i));
        j->k->widen[d->x.dtype](x, ampi_at(d->x, i), n);
        if (threshold >> 32) {
            memset(x, 0, n * sizeof *x); /* p = 1 */
        } else {
            const uint32_t *words = (j->k->random)(buf, n, d->rng.seed, d->rng.stream, at);
            (j->k->drop)(x, words, n, (uint32_t)threshold, factor);
        }
        j->k->narrow[d->y.dtype](ampi_at(d->y, i), x, n);
    }
}
static amp_status ampi_cpu_dropout(amp_ctx *ctx, const amp_dropout_job *d) {
    ampi_dropout_work j = {ampi_cpu_of(ctx)->k, d};
    return ampi_run(ampi_cpu_of(ctx), ampi_chunks(d->count), (double)d->count, ampi_dropout_task, &j);
}

/* ==== >>cpu-table ================================================================================================
   The table of functions; create, destroy.   tests: tests/test_context.c */

static void ampi_cpu_free(ampi_cpu *c) {
    amp_allocator mem = c->mem;
    ampi_host_free(&mem, c->work, (size_t)c->rooms * sizeof *c->work);
    ampi_host_free(&mem, c, sizeof *c);
}
static void ampi_cpu_destroy(amp_ctx *ctx) {
    ampi_cpu *c = ampi_cpu_of(ctx);
    ampi_pool_stop(c);
    ampi_cpu_free(c);
}

static amp_backend ampi_cpu_table(void) {
    amp_backend b = AMP_ZERO;
    b.version = (uint32_t)AMP_VERSION;
    b.size = sizeof b;
    b.holds = 1; /* ampi_parallel, ampi_pool_stop; ampi_host_take and _free do */
#define AMP_X(entry) b.entry = ampi_cpu_##entry;
    AMPI_ENTRIES(AMP_X)
#undef AMP_X
    b.alloc_zeros = ampi_cpu_alloc_zeros;
    b.copy_async = ampi_cpu_copy; /* complete on return, too */
    b.may_wait = ampi_cpu_sync;
    return b;
}

#if !defined(AMP_NO_THREADS) && defined(__linux__)
#  if !defined(CPU_SETSIZE) /* the headers hide it, as C99 demands */
extern int sched_getaffinity(pid_t, size_t, void *);
#    define AMPI_CPU_SET void
#  else
#    define AMPI_CPU_SET cpu_set_t
#  endif
static int ampi_allowed(void) { /* processors that this process may use; 0: not known */
    unsigned char mask[1024];
    int n = 0;
    size_t i;
    memset(mask, 0, sizeof mask);
    if (sched_getaffinity(0, sizeof mask, (AMPI_CPU_SET *)(void *)mask) != 0) return 0;
    for (i = 0; i < 8 * sizeof mask; i++)
        n += mask[i / 8] >> i % 8 & 1;
    return n;
}
#else
AMP_UNUSED
static int ampi_allowed(void) { return 0; }
#endif
#if !defined(AMP_NO_THREADS) && defined(_SC_NPROCESSORS_ONLN)
#  define AMPI_PROCESSORS _SC_NPROCESSORS_ONLN
#elif !defined(AMP_NO_THREADS) && defined(__APPLE__)
#  define AMPI_PROCESSORS 58 /* hidden like flock */
#endif
static int ampi_usable(void) {
#if defined(AMPI_PROCESSORS)
    long n = sysconf(AMPI_PROCESSORS);
    if (ampi_allowed() && ampi_allowed() < n) n = ampi_allowed();
    if (n < 1) return 1;
    return n > 256 ? 256 : (int)n;
#else
    return 1;
#endif
}
/* Before a context exists, a failure can only go to the logger. */
static amp_status ampi_cpu_refuse(const amp_cpu_desc *d, amp_status st, const char *text, long value) {
    char full[160];
    snprintf(full, sizeof full, "amp_cpu_create: %s (it is %ld)", text, value);
    ampi_tell(&d->logger, AMP_LOG_ERROR, st, full);
    return st;
}

static amp_status ampi_cpu_check(const amp_cpu_desc *d, ampi_kernels *kernels) {
    if (!d->allocator.alloc_fn != !d->allocator.free_fn)
        return ampi_cpu_refuse(
            d, AMP_ERR_INVALID_ARG, "desc.allocator has one function, and needs both or neither; functions", 1);
    if (d->gemm_flags & ~AMPI_GEMM_FLAGS)
        return ampi_cpu_refuse(d, AMP_ERR_INVALID_ARG, "desc.gemm_flags has an unknown bit", (long)d->gemm_flags);
    if (d->threads < 0 || d->threads > 256)
        return ampi_cpu_refuse(d, AMP_ERR_INVALID_ARG, "desc.threads must be in 0 .. 256", (long)d->threads);
    if ((uint32_t)d->simd > (uint32_t)AMP_SIMD_NEON)
        return ampi_cpu_refuse(d, AMP_ERR_INVALID_ARG, "desc.simd is not an amp_simd value", (long)d->simd);
    if (!ampi_pick_kernels(kernels, d->simd))
        return ampi_cpu_refuse(
            d, AMP_ERR_UNSUPPORTED, "desc.simd asks for a path that this machine or build lacks", (long)d->simd);
    return AMP_OK;
}
/* Workspaces and workers: as many as desc.threads asks for; without a number as many as there are to have. */
static amp_status ampi_cpu_threads(ampi_cpu *c, const amp_cpu_desc *d) {
    for (c->rooms = d->threads ? d->threads : ampi_usable();; c->rooms = (c->rooms + 1) / 2) {
        c->work = (ampi_workspace *)ampi_host_take(&c->mem, (size_t)c->rooms * sizeof *c->work);
        if (c->work || d->threads || c->rooms == 1) break;
    }
    if (!c->work) return AMP_ERR_NO_MEMORY;
    c->threads = 1;
    ampi_pool_start(c);
    snprintf(
        c->name, sizeof c->name, AMPI_CPU_KIND "%s, %d thread%s", c->k->name, c->threads, c->threads == 1 ? "" : "s");
    return AMP_OK;
}

AMP_API amp_status amp_cpu_create_checked(amp_ctx **out, int version, size_t size, const amp_cpu_desc *desc) {
    amp_cpu_desc d = AMP_ZERO;
    ampi_kernels kernels;
    amp_backend table = ampi_cpu_table();
    const char *refused = NULL;
    const int error = errno;
    ampi_cpu *c;
    amp_status st;
    if (out) *out = NULL;
    if (version != AMP_VERSION || size != sizeof d) return AMP_ERR_VERSION;
    if (desc) {
        if (desc->_begin || desc->_end) return AMP_ERR_UNINIT; /* its logger cannot be trusted either */
        d = *desc;
    }
    if (!out) return ampi_cpu_refuse(&d, AMP_ERR_INVALID_ARG, "out must not be NULL", 0);
    AMPI_TRY(ampi_cpu_check(&d, &kernels));
#ifdef AMP_NO_THREADS
    d.threads = 1;
#endif
    c = (ampi_cpu *)ampi_host_alloc(&d.allocator, sizeof *c);
    if (!c) return ampi_cpu_refuse(&d, AMP_ERR_NO_MEMORY, "no host memory; desc.threads", (long)d.threads);
    c->kernels = kernels;
    c->k = &c->kernels;
    c->mem = d.allocator;
    st = ampi_cpu_threads(c, &d);
    if (st == AMP_OK && c->threads < d.threads) refused = "the system refuses to start desc.threads threads";
    if (refused) st = AMP_ERR_NO_MEMORY;
    table.name = c->name;
    table.gemm_flags = d.gemm_flags;
    if (st == AMP_OK) st = amp_ctx_create_backend(out, &table, c, &d.allocator, &d.logger);
    if (st != AMP_OK) {
        ampi_pool_stop(c);
        ampi_cpu_free(c);
        return ampi_cpu_refuse(&d, st, refused ? refused : "no memory for desc.threads workspaces", (long)d.threads);
    }
    if (!d.threads && c->threads < ampi_usable())
        amp_log_event(
            *out, AMP_LOG_WARNING, "amp_cpu_create: the system gives %d threads of %d", (int)c->threads, ampi_usable());
    errno = error;
    return AMP_OK;
}

#ifdef __cplusplus
} /* extern "C" */
#endif
#if defined(__GNUC__)
#  pragma GCC diagnostic pop
#endif
#pragma pack(pop)
#endif /* AMP_IMPLEMENTATION_ONCE */
#endif /* AMP_IMPLEMENTATION */

/* ==== >>lanes ====================================================================================================
   Code that stands once and is compiled for each width of vectors. To stamp it, amp.h defines AMPI_F(name), which puts
   a path's prefix before a name (ampi_scalar_, ampi_sse2_, ampi_avx2_, ampi_avx512_, ampi_neon_), and AMPI_PASS, which
   says which part is wanted, and includes itself; the guards above then skip all the rest. A debugger, a sanitizer and
   the compiler see plain functions and lines.

   ampi_PATH_name is AMPI_F(name): search F(name).

   AMPI_FLOATS are AMPI_WIDTH floats, AMPI_WORDS as many 32-bit integers, AMPI_WORDS64 64-bit integers for Philox.
   Names in capitals are operations of the path. Arithmetic is guarded like the scalar operations; division, root,
   larger and smaller are written as instructions, because compilers replace the operators under -ffast-math.
   A loop takes whole vectors first; what is left of n goes through the scalar path (n = 3: all of it), in conversions
   through a padded copy.   tests: tests/test_arrays.c, tests/test_step.c, tests/test_modes.c, tests/fingerprint.c */
#ifdef AMPI_PASS
#define AMPI_FLOATS     AMPI_F(floats)
#define AMPI_WORDS      AMPI_F(words)
#define AMPI_WORDS64    AMPI_F(words64)
#define AMPI_U32        AMPI_F(u32) /* words, as the language counts with them */
#define AMPI_MASK       AMPI_F(mask)
/* floats */
#define AMPI_SET        AMPI_F(set) /* one number in every lane */
#define AMPI_LOAD       AMPI_F(load)
#define AMPI_STORE      AMPI_F(store)
#define AMPI_ADD        AMPI_F(add)
#define AMPI_SUB        AMPI_F(sub)
#define AMPI_MUL        AMPI_F(mul)
#define AMPI_DIV        AMPI_F(div)
#define AMPI_SQRT       AMPI_F(sqrt)
#define AMPI_ROOT       AMPI_F(root) /* the same, of a number in the middle of the range */
#define AMPI_NEGATIVE   AMPI_F(negative)
#define AMPI_MAGNITUDE  AMPI_F(magnitude) /* |x|; NaN stays one */
#define AMPI_FMA        AMPI_F(fma)       /* a * b + c; for products only: rounds once, or twice on SSE2 and scalar */
#define AMPI_FUSE       AMPI_F(fuse)      /* a * b + c, rounded once */
#define AMPI_INVERSE    AMPI_F(inverse)   /* 1 / d for d in [1, 2] */
#define AMPI_AT_LEAST   AMPI_F(at_least)  /* x, or the limit where x is less; NaN stays */
#define AMPI_AT_MOST    AMPI_F(at_most)
#define AMPI_LARGER     AMPI_F(larger)     /* b (NEON: NaN) when one is NaN */
#define AMPI_SMALLER    AMPI_F(smaller)    /* likewise */
#define AMPI_LARGER_ABS AMPI_F(larger_abs) /* a >= 0, or |b|; a, where b is NaN, which must be quiet */
#if AMPI_PASS == AMPI_PASS_VECTOR
#  define AMPI_BITS(x)      ((AMPI_WORDS)(x))
#  define AMPI_AS_FLOATS(x) ((AMPI_FLOATS)(x))
#else
#  define AMPI_BITS(x)      ampi_bits(x)
#  define AMPI_AS_FLOATS(x) ampi_float(x)
#endif
/* words; void pointers may be unaligned */
#define AMPI_WORD            AMPI_F(word) /* one number in every lane */
#define AMPI_LOAD_WORDS      AMPI_F(load_words)
#define AMPI_STORE_WORDS     AMPI_F(store_words)
/* the language's operators, of vectors, too: no functions, of which compilers would inline thousands */
#define AMPI_AND(a, b)       ((a) & (b))
#define AMPI_OR(a, b)        ((a) | (b))
#define AMPI_XOR(a, b)       ((a) ^ (b))
#define AMPI_ADD_WORDS(a, b) ((AMPI_WORDS)((AMPI_U32)(a) + (AMPI_U32)(b)))
#define AMPI_SUB_WORDS(a, b) ((AMPI_WORDS)((AMPI_U32)(a) - (AMPI_U32)(b)))
#define AMPI_SHL(a, n)       ((AMPI_WORDS)((AMPI_U32)(a) << (uint32_t)(n)))
#define AMPI_SHR(a, n)       ((AMPI_WORDS)((AMPI_U32)(a) >> (uint32_t)(n)))
#define AMPI_MIN             AMPI_F(min) /* of signed numbers */
#define AMPI_MAX             AMPI_F(max)
#define AMPI_GREATER         AMPI_F(greater) /* a mask: a > b, signed */
#define AMPI_SELECT          AMPI_F(select)  /* mask ? a : b */
#define AMPI_CHOOSE          AMPI_F(choose)  /* the same of floats; the scalar one may branch */
#define AMPI_ANY             AMPI_F(any)     /* is any bit set? */
/* masks */
#define AMPI_NONZERO         AMPI_F(nonzero) /* where a float is neither 0 nor NaN */
#define AMPI_SAME            AMPI_F(same)    /* of a mask, where floats a == b, so neither is NaN */
#define AMPI_SAME16          AMPI_F(same16)  /* of a mask, where the 16-bit words at a and b are equal */
#define AMPI_ADD_IF          AMPI_F(add_if)  /* to words: one where the mask is set */

#if AMPI_PASS <= AMPI_PASS_UPDATE
#  define AMPI_INNER AMP_INLINE
#else
#  define AMPI_INNER AMPI_OP
#  define AMPI_OUTER AMPI_TARGET static
#endif

/* ---- operations that all paths of vectors spell alike: by the vectors that gcc and clang have in the language, where
   they give the same instructions whatever the flags; the others by name ---- */
#if AMPI_PASS == AMPI_PASS_ALIKE
typedef AMPI_FLOATS AMPI_F(floats_at) __attribute__((__aligned__(1), __may_alias__));
typedef AMPI_WORDS AMPI_F(words_at) __attribute__((__aligned__(1), __may_alias__));
typedef AMPI_WORDS64 AMPI_F(words64_at) __attribute__((__aligned__(1), __may_alias__));
typedef uint32_t AMPI_F(u32) __attribute__((__vector_size__(4u * AMPI_WIDTH)));
typedef int32_t AMPI_F(i32) __attribute__((__vector_size__(4u * AMPI_WIDTH)));
typedef uint64_t AMPI_F(u64) __attribute__((__vector_size__(4u * AMPI_WIDTH)));
#  define AMPI_I32 AMPI_F(i32)
#  define AMPI_U64 AMPI_F(u64)
AMPI_OP AMPI_FLOATS AMPI_F(guard)(AMPI_FLOATS x) {
    __asm__("" : "+" AMPI_REG(x));
    return x;
}
/* clang-format off */
AMPI_OP AMPI_FLOATS AMPI_F(load)(const float *p)              { return *(const AMPI_F(floats_at) *)p; }
AMPI_OP void        AMPI_F(store)(float *p, AMPI_FLOATS x)    { *(AMPI_F(floats_at) *)p = x; }
AMPI_OP AMPI_FLOATS AMPI_F(add)(AMPI_FLOATS a, AMPI_FLOATS b) { return AMPI_F(guard)(a + b); }
AMPI_OP AMPI_FLOATS AMPI_F(sub)(AMPI_FLOATS a, AMPI_FLOATS b) { return AMPI_F(guard)(a - b); }
AMPI_OP AMPI_FLOATS AMPI_F(mul)(AMPI_FLOATS a, AMPI_FLOATS b) { return AMPI_F(guard)(a * b); }
AMPI_OP AMPI_FLOATS AMPI_F(size)(AMPI_FLOATS x)               { return (AMPI_FLOATS)((AMPI_U32)x & 0x7fffffffu); }

AMPI_OP AMPI_WORDS AMPI_F(load_words)(const void *p)             { return *(const AMPI_F(words_at) *)p; }
AMPI_OP void       AMPI_F(store_words)(void *p, AMPI_WORDS x)    { *(AMPI_F(words_at) *)p = x; }

AMPI_OP AMPI_WORDS64 AMPI_F(add64)(AMPI_WORDS64 a, AMPI_WORDS64 b) { return (AMPI_WORDS64)((AMPI_U64)a + (AMPI_U64)b); }
AMPI_OP AMPI_WORDS64 AMPI_F(xor64)(AMPI_WORDS64 a, AMPI_WORDS64 b) { return a ^ b; }
AMPI_OP AMPI_WORDS64 AMPI_F(low32)(AMPI_WORDS64 a)                 { return (AMPI_WORDS64)((AMPI_U64)a & 0xffffffffu); }
AMPI_OP AMPI_WORDS64 AMPI_F(high32)(AMPI_WORDS64 a)                { return (AMPI_WORDS64)((AMPI_U64)a >> 32); }
AMPI_OP AMPI_WORDS64 AMPI_F(up32)(AMPI_WORDS64 a)                  { return (AMPI_WORDS64)((AMPI_U64)a << 32); }
AMPI_OP void         AMPI_F(store64)(void *p, AMPI_WORDS64 x)      { *(AMPI_F(words64_at) *)p = x; }

AMPI_OP AMPI_WORDS64 AMPI_F(join32)(AMPI_WORDS64 a, AMPI_WORDS64 b) { return AMPI_F(low32)(a) | AMPI_F(up32)(b); }
/* clang-format on */
#  ifndef AMPI_HAS_MASKS
AMPI_OP AMPI_MASK AMPI_F(greater)(AMPI_WORDS a, AMPI_WORDS b) { return (AMPI_MASK)((AMPI_I32)a > (AMPI_I32)b); }
AMPI_OP AMPI_WORDS AMPI_F(add_if)(AMPI_WORDS sum, AMPI_MASK m) { return (AMPI_WORDS)((AMPI_U32)sum - (AMPI_U32)m); }
#  endif
/* By name: compilers replace the operators under -ffast-math. */
#  define AMPI_BINARY(name, op) \
    AMPI_OP AMPI_FLOATS AMPI_F(name)(AMPI_FLOATS a, AMPI_FLOATS b) { \
        AMPI_FLOATS r; \
        __asm__(AMPI_ASM2(op) : "=" AMPI_REG(r) : AMPI_FIRST(a), AMPI_REG(b)); \
        return r; \
    }
AMPI_BINARY(div, "div")
AMPI_BINARY(larger, "max")
AMPI_BINARY(smaller, "min")
AMPI_BINARY(plus, "add")
#  ifndef AMPI_HAS_MASKS
AMPI_BINARY(equal, AMPI_EQUAL)
#    ifdef AMPI_MM
AMPI_BINARY(less, "cmplt")
AMPI_OP AMPI_MASK AMPI_F(nonzero)(AMPI_FLOATS x) { /* not cmpneq: valgrind takes NaN for unequal in each form */
    return (AMPI_MASK)AMPI_F(less)(AMPI_MM(setzero_ps)(), AMPI_F(size)(x));
}
#    endif
AMPI_OP AMPI_MASK AMPI_F(same)(AMPI_MASK mask, AMPI_FLOATS a, AMPI_FLOATS b) {
    return mask & (AMPI_MASK)AMPI_F(equal)(a, b);
}
#  endif
#  undef AMPI_BINARY
AMPI_OP AMPI_FLOATS AMPI_F(sqrt)(AMPI_FLOATS a) {
    AMPI_FLOATS r;
    __asm__(AMPI_ASM1("sqrt") : "=" AMPI_REG(r) : AMPI_REG(a));
    return r;
}
#  ifdef AMPI_MM /* intrinsics that SSE2, AVX2 and AVX-512 have alike: AMPI_MM(set1_ps) is _mm_set1_ps */
/* clang-format off */
AMPI_OP AMPI_FLOATS  AMPI_F(set)(float x)                           { return AMPI_MM(set1_ps)(x); }
AMPI_OP AMPI_WORDS   AMPI_F(word)(uint32_t x)                       { return AMPI_MM(set1_epi32)((int)x); }
AMPI_OP AMPI_WORDS64 AMPI_F(mul32)(AMPI_WORDS64 a, AMPI_WORDS64 b)  { return AMPI_MM(mul_epu32)(a, b); }
AMPI_OP AMPI_WORDS64 AMPI_F(even64)(AMPI_WORDS64 a, AMPI_WORDS64 b) { return AMPI_MM(unpacklo_epi64)(a, b); }
AMPI_OP AMPI_WORDS64 AMPI_F(odd64)(AMPI_WORDS64 a, AMPI_WORDS64 b)  { return AMPI_MM(unpackhi_epi64)(a, b); }
#    ifdef AMPI_HAS_SHIFT_EACH /* what SSE2 lacks */
AMPI_OP AMPI_WORDS AMPI_F(min)(AMPI_WORDS a, AMPI_WORDS b)      { return AMPI_MM(min_epi32)(a, b); }
AMPI_OP AMPI_WORDS AMPI_F(max)(AMPI_WORDS a, AMPI_WORDS b)      { return AMPI_MM(max_epi32)(a, b); }
AMPI_OP AMPI_WORDS AMPI_F(shl_each)(AMPI_WORDS a, AMPI_WORDS n) { return AMPI_MM(sllv_epi32)(a, n); }
AMPI_OP AMPI_WORDS AMPI_F(shr_each)(AMPI_WORDS a, AMPI_WORDS n) { return AMPI_MM(srlv_epi32)(a, n); }
#    endif
/* clang-format on */
#    ifdef AMPI_HAS_FMA
AMPI_OP AMPI_FLOATS AMPI_F(fuse)(AMPI_FLOATS a, AMPI_FLOATS b, AMPI_FLOATS c) {
    return AMPI_F(guard)(AMPI_MM(fmadd_ps)(a, b, c));
}
#    endif
#  endif
#  undef AMPI_I32
#  undef AMPI_U64
#endif /* AMPI_PASS_ALIKE */

/* ---- operations made of operations; the scalar ones branch instead ---- */
#if AMPI_PASS == AMPI_PASS_VECTOR
AMPI_INNER AMPI_FLOATS AMPI_F(negative)(AMPI_FLOATS x) {
    return AMPI_AS_FLOATS(AMPI_XOR(AMPI_BITS(x), AMPI_WORD(0x80000000u)));
}
AMPI_INNER AMPI_FLOATS AMPI_F(magnitude)(AMPI_FLOATS x) {
    return AMPI_AS_FLOATS(AMPI_AND(AMPI_BITS(x), AMPI_WORD(0x7fffffffu)));
}
AMPI_INNER AMPI_FLOATS AMPI_F(choose)(AMPI_MASK m, AMPI_FLOATS a, AMPI_FLOATS b) {
    return AMPI_AS_FLOATS(AMPI_SELECT(m, AMPI_BITS(a), AMPI_BITS(b)));
}
AMPI_INNER AMPI_FLOATS AMPI_F(root)(AMPI_FLOATS x) { return AMPI_SQRT(x); }
AMPI_INNER AMPI_FLOATS AMPI_F(inverse)(AMPI_FLOATS d) { return AMPI_DIV(AMPI_SET(1.0f), d); }
AMPI_INNER AMPI_FLOATS AMPI_F(at_least)(AMPI_FLOATS x, AMPI_FLOATS limit) { return AMPI_LARGER(limit, x); }
AMPI_INNER AMPI_FLOATS AMPI_F(at_most)(AMPI_FLOATS x, AMPI_FLOATS limit) { return AMPI_SMALLER(limit, x); }
AMPI_INNER AMPI_FLOATS AMPI_F(magic_add)(AMPI_FLOATS a, AMPI_FLOATS b) { return AMPI_ADD(a, b); }
AMPI_INNER AMPI_FLOATS AMPI_F(magic_sub)(AMPI_FLOATS a, AMPI_FLOATS b) { return AMPI_SUB(a, b); }
AMPI_INNER AMPI_FLOATS AMPI_F(clamp)(AMPI_FLOATS x, AMPI_FLOATS limit) { /* NaN stays */
    return AMPI_LARGER(AMPI_SUB(AMPI_SET(0.0f), limit), AMPI_SMALLER(limit, x));
}
/* x * sign(s), x >= 0; 0 for s = 0; NaN for NaN */
AMPI_INNER AMPI_FLOATS AMPI_F(with_sign)(AMPI_FLOATS x, AMPI_FLOATS s) {
    AMPI_WORDS u = AMPI_BITS(s), size = AMPI_AND(u, AMPI_WORD(0x7fffffffu));
    AMPI_WORDS r = AMPI_OR(AMPI_BITS(x), AMPI_AND(u, AMPI_WORD(0x80000000u)));
    r = AMPI_SELECT(AMPI_GREATER(size, AMPI_WORD(0)), r, AMPI_WORD(0));
    return AMPI_AS_FLOATS(AMPI_SELECT(AMPI_GREATER(size, AMPI_WORD(0x7f800000u)), u, r));
}
/* F16, by instructions. They help FP8 too: an E5M2 byte is the upper byte of a half; E4M3 moved up by 7 is a half 256
   times too small, its NaN apart. */
#  ifdef AMPI_HAS_HALVES
typedef AMPI_F(halves) AMPI_F(halves_at) __attribute__((__aligned__(1), __may_alias__));
AMPI_INNER AMPI_WORDS AMPI_F(load_halves)(const void *p) { return AMPI_F(from_halves)(*(const AMPI_F(halves_at) *)p); }
AMPI_INNER void AMPI_F(store_two_halves)(char *p, const char *s) {
    AMPI_F(halves) a = AMPI_F(to_halves)(AMPI_LOAD_WORDS(s));
    AMPI_F(halves) b = AMPI_F(to_halves)(AMPI_LOAD_WORDS(s + 4u * AMPI_WIDTH));
    __asm__("" : "+" AMPI_REG(a)); /* in registers: the forms that convert into memory are slow on some machines */
    __asm__("" : "+" AMPI_REG(b));
    memcpy(p, &a, sizeof a);
    memcpy(p + sizeof a, &b, sizeof b);
}
AMPI_INNER void AMPI_F(store_halves)(char *p, const char *s) {
    AMPI_F(store_two_halves)(p, s);
    AMPI_F(store_two_halves)(p + 4u * AMPI_WIDTH, s + 8u * AMPI_WIDTH);
}
#  endif
#  ifdef AMPI_HAS_HALVES_OF_F8
typedef uint16_t AMPI_F(u16) __attribute__((__vector_size__(2u * AMPI_WIDTH)));
AMPI_INNER AMPI_WORDS AMPI_F(load_e5m2)(const void *p) {
    return AMPI_F(from_halves)((AMPI_F(halves))((AMPI_F(u16))AMPI_F(load_bytes)(p) << 8));
}
AMPI_INNER AMPI_WORDS AMPI_F(load_e4m3)(const void *p) {
    AMPI_F(u16) h = (AMPI_F(u16))AMPI_F(load_bytes)(p) << 7 & 0xbf80, nan = (h + 0x80) & 0x4000;
    AMPI_WORDS tiny = AMPI_F(from_halves)((AMPI_F(halves))(h | nan));
    return AMPI_BITS(AMPI_MUL(AMPI_AS_FLOATS(tiny), AMPI_SET(256.0f)));
}
#  endif
#endif

/* ---- rules: exp, the activations, the optimizers.   tests: tests/test_products.c, tests/test_step.c ---- */
#if AMPI_PASS == AMPI_PASS_MATH || AMPI_PASS == AMPI_PASS_VECTOR
/* n = x rounded to an integer, where t = n + shift and shift = 1.5 * 2^23 + 127 + up: the low bits of t are the
   exponent of 2^(n + up), as a float has it; 0 for n = -127 - up, which is how a result becomes 0. */
#  define AMPI_SHIFT(up) (12582912.0f + 127.0f + (float)(up))
#  define AMPI_POWER(t)  AMPI_AS_FLOATS(AMPI_SHL(AMPI_BITS(t), 23))
/* 2^up e^x for (-127.4 - up) ln2 < x < (127.4 - up) ln2: x = n ln2 + r, |r| <= 0.347, with ln2 in two parts (Cody and
   Waite), and e^r = 1 + r + r^2 q(r), q of degree 4 with the least largest error, 5e-9. */
AMPI_INNER AMPI_FLOATS AMPI_F(exp_scaled)(AMPI_FLOATS x, int32_t up) {
    const AMPI_FLOATS shift = AMPI_SET(AMPI_SHIFT(up));
    AMPI_FLOATS t = AMPI_FUSE(x, AMPI_SET(1.44269504f), shift), n = AMPI_SUB(t, shift), p;
    AMPI_FLOATS r = AMPI_FUSE(n, AMPI_SET(-0.693147182f), x);
    r = AMPI_FUSE(n, AMPI_SET(1.90465421e-9f), r);
    p = AMPI_FUSE(AMPI_SET(1.38934073e-3f), r, AMPI_SET(8.37029982e-3f));
    p = AMPI_FUSE(p, r, AMPI_SET(4.16670926e-2f));
    p = AMPI_FUSE(p, r, AMPI_SET(0.166665062f));
    p = AMPI_FUSE(p, r, AMPI_SET(0.499999970f));
    p = AMPI_FUSE(p, r, AMPI_SET(1.0f));
    p = AMPI_FUSE(p, r, AMPI_SET(1.0f));
    return AMPI_MUL(p, AMPI_POWER(t));
}
/* A term of a softmax: 2^24 e^x for x <= 0, so that it is normal or 0 (x < -104.3). NaN stays. */
AMPI_INNER AMPI_FLOATS AMPI_F(exp_term)(AMPI_FLOATS x) {
    return AMPI_F(exp_scaled)(AMPI_AT_LEAST(x, AMPI_SET(-104.7f)), 24);
}

/* |x|, at most `most`. */
AMPI_INNER AMPI_FLOATS AMPI_F(size_to)(AMPI_FLOATS x, float most) {
    return AMPI_AT_MOST(AMPI_MAGNITUDE(x), AMPI_SET(most));
}
AMPI_INNER AMPI_FLOATS AMPI_F(sign_of)(AMPI_FLOATS size, AMPI_FLOATS x) { /* size with the sign of x */
    return AMPI_AS_FLOATS(AMPI_OR(AMPI_BITS(size), AMPI_AND(AMPI_BITS(x), AMPI_WORD(0x80000000u))));
}
AMPI_INNER AMPI_MASK AMPI_F(below_0)(AMPI_FLOATS x) { return AMPI_GREATER(AMPI_WORD(0), AMPI_BITS(x)); }
/* 2^(a b) for -127.4 < a b <= 0, which becomes 0 at -126.5: a b = n + r, |r| <= 0.5, 2^r by a polynomial with an error
   of 5e-7. */
AMPI_INNER AMPI_FLOATS AMPI_F(power_of)(AMPI_FLOATS a, AMPI_FLOATS b) {
    const AMPI_FLOATS shift = AMPI_SET(AMPI_SHIFT(0));
    AMPI_FLOATS t = AMPI_FUSE(a, b, shift), n = AMPI_SUB(t, shift);
    AMPI_FLOATS r = AMPI_FUSE(a, b, AMPI_NEGATIVE(n)), p;
    p = AMPI_FUSE(AMPI_SET(1.11255061e-3f), r, AMPI_SET(9.66632087e-3f));
    p = AMPI_FUSE(p, r, AMPI_SET(5.55740632e-2f));
    p = AMPI_FUSE(p, r, AMPI_SET(0.240223497f));
    p = AMPI_FUSE(p, r, AMPI_SET(0.693142831f));
    p = AMPI_FUSE(p, r, AMPI_SET(1.0f));
    return AMPI_MUL(p, AMPI_POWER(t));
}

/* GELU with the logistic function instead of tanh, x / (1 + e^(-2z)), from a = |x|, at most 10.03, where e^(-2z) has
   become 0, and E = e^(-2z) of a: 1 / (1 + E) and E / (1 + E) are the logistic function at a and at -a.
   E = 2^y, y = a (k1 + k3 a^2); of the error of that power a quarter arrives. */
AMPI_INNER AMPI_FLOATS AMPI_F(gelu_size)(AMPI_FLOATS x) { return AMPI_F(size_to)(x, 10.03f); }
AMPI_INNER AMPI_FLOATS AMPI_F(gelu_power)(AMPI_FLOATS a, AMPI_FLOATS square) {
    return AMPI_F(power_of)(a, AMPI_FUSE(square, AMPI_SET(-0.102943242f), AMPI_SET(-2.30220819f)));
}
AMPI_INNER AMPI_FLOATS AMPI_F(gelu)(AMPI_FLOATS x) {
    AMPI_FLOATS a = AMPI_F(gelu_size)(x), power = AMPI_F(gelu_power)(a, AMPI_MUL(a, a));
    AMPI_FLOATS s = AMPI_INVERSE(AMPI_ADD(AMPI_SET(1.0f), power));
    return AMPI_MUL(AMPI_CHOOSE(AMPI_F(below_0)(x), AMPI_NEGATIVE(AMPI_MUL(a, power)), x), s);
}
/* Its derivative, s + x s (1 - s) 2z', s the logistic function at x. */
AMPI_INNER AMPI_FLOATS AMPI_F(gelu_grad)(AMPI_FLOATS x) {
    AMPI_FLOATS a = AMPI_F(gelu_size)(x), square = AMPI_MUL(a, a), power = AMPI_F(gelu_power)(a, square);
    AMPI_FLOATS above = AMPI_INVERSE(AMPI_ADD(AMPI_SET(1.0f), power)), below = AMPI_MUL(power, above);
    AMPI_FLOATS slope = AMPI_FUSE(square, AMPI_SET(0.214064448f), AMPI_SET(1.59576917f)); /* 2z' */
    AMPI_FLOATS s = AMPI_CHOOSE(AMPI_F(below_0)(x), below, above);
    return AMPI_FUSE(AMPI_MUL(AMPI_F(sign_of)(a, x), slope), AMPI_MUL(below, above), s);
}
AMPI_INNER AMPI_FLOATS AMPI_F(gelu_back)(AMPI_FLOATS dy, AMPI_FLOATS x) { return AMPI_MUL(dy, AMPI_F(gelu_grad)(x)); }
/* GELU with the normal distribution, x Phi(x). With a = |x|, at most 13.25, where E = e^(-a^2/2) has become 0,
   Phi(-a) = E q(a), q of degree 10 with the least largest error of that product for a <= 5, 7e-8. */
AMPI_INNER AMPI_FLOATS AMPI_F(normal_size)(AMPI_FLOATS x) { return AMPI_F(size_to)(x, 13.25f); }
AMPI_INNER AMPI_FLOATS AMPI_F(normal_power)(AMPI_FLOATS a) {
    return AMPI_F(power_of)(AMPI_MUL(a, a), AMPI_SET(-0.721347520f));
}
AMPI_INNER AMPI_FLOATS AMPI_F(normal_share)(AMPI_FLOATS x, AMPI_FLOATS a, AMPI_FLOATS power) { /* Phi(x) */
    AMPI_FLOATS b = AMPI_AT_MOST(a, AMPI_SET(5.0f)), q;
    q = AMPI_FUSE(AMPI_SET(1.63172149e-6f), b, AMPI_SET(-3.52082789e-5f));
    q = AMPI_FUSE(q, b, AMPI_SET(3.39741702e-4f));
    q = AMPI_FUSE(q, b, AMPI_SET(-1.97463878e-3f));
    q = AMPI_FUSE(q, b, AMPI_SET(7.93941412e-3f));
    q = AMPI_FUSE(q, b, AMPI_SET(-2.43139602e-2f));
    q = AMPI_FUSE(q, b, AMPI_SET(6.11549094e-2f));
    q = AMPI_FUSE(q, b, AMPI_SET(-0.132513806f));
    q = AMPI_FUSE(q, b, AMPI_SET(0.249916792f));
    q = AMPI_FUSE(q, b, AMPI_SET(-0.398936510f));
    q = AMPI_MUL(power, AMPI_FUSE(q, b, AMPI_SET(0.499999940f)));
    return AMPI_CHOOSE(AMPI_F(below_0)(x), q, AMPI_SUB(AMPI_SET(1.0f), q));
}
AMPI_INNER AMPI_FLOATS AMPI_F(gelu_erf)(AMPI_FLOATS x) {
    AMPI_FLOATS a = AMPI_F(normal_size)(x), share = AMPI_F(normal_share)(x, a, AMPI_F(normal_power)(a));
    return AMPI_MUL(AMPI_CHOOSE(AMPI_F(below_0)(x), AMPI_NEGATIVE(a), x), share);
}
AMPI_INNER AMPI_FLOATS AMPI_F(gelu_erf_back)(AMPI_FLOATS dy, AMPI_FLOATS x) { /* Phi(x) + x E / sqrt(2 pi) */
    AMPI_FLOATS a = AMPI_F(normal_size)(x), power = AMPI_F(normal_power)(a);
    AMPI_FLOATS slope = AMPI_MUL(AMPI_F(sign_of)(a, x), AMPI_SET(0.398942280f));
    return AMPI_MUL(dy, AMPI_FUSE(slope, power, AMPI_F(normal_share)(x, a, power)));
}

/* The logistic function, s = 1 / (1 + E) at a = |x| and E s at -a; a at most 88.3, where E = e^-a has become 0. */
AMPI_INNER AMPI_FLOATS AMPI_F(logistic_power)(AMPI_FLOATS a) { return AMPI_F(exp_scaled)(AMPI_NEGATIVE(a), 0); }
AMPI_INNER AMPI_FLOATS AMPI_F(logistic)(AMPI_FLOATS power) { return AMPI_INVERSE(AMPI_ADD(AMPI_SET(1.0f), power)); }
AMPI_INNER AMPI_FLOATS AMPI_F(sigmoid)(AMPI_FLOATS x) {
    AMPI_FLOATS power = AMPI_F(logistic_power)(AMPI_F(size_to)(x, 88.3f)), s = AMPI_F(logistic)(power);
    return AMPI_CHOOSE(AMPI_F(below_0)(x), AMPI_MUL(power, s), s);
}
AMPI_INNER AMPI_FLOATS AMPI_F(sigmoid_back)(AMPI_FLOATS dy, AMPI_FLOATS y) {
    return AMPI_MUL(dy, AMPI_FUSE(AMPI_NEGATIVE(y), y, y));
}
AMPI_INNER AMPI_FLOATS AMPI_F(silu)(AMPI_FLOATS x) {
    AMPI_FLOATS a = AMPI_F(size_to)(x, 88.3f), power = AMPI_F(logistic_power)(a), s = AMPI_F(logistic)(power);
    return AMPI_MUL(AMPI_CHOOSE(AMPI_F(below_0)(x), AMPI_NEGATIVE(AMPI_MUL(a, power)), x), s);
}
AMPI_INNER AMPI_FLOATS AMPI_F(silu_back)(AMPI_FLOATS dy, AMPI_FLOATS x) { /* s + x s (1 - s), s at x */
    AMPI_FLOATS a = AMPI_F(size_to)(x, 88.3f), power = AMPI_F(logistic_power)(a);
    AMPI_FLOATS above = AMPI_F(logistic)(power), below = AMPI_MUL(power, above);
    AMPI_FLOATS s = AMPI_CHOOSE(AMPI_F(below_0)(x), below, above);
    return AMPI_MUL(dy, AMPI_FUSE(AMPI_F(sign_of)(a, x), AMPI_MUL(below, above), s));
}
/* tanh of a = |x|: from 0.6 on 1 - 2 E / (1 + E), E = e^(-2a); below a + a^3 p(a^2), p of degree 4 with the least
   largest relative error, 3e-9. */
AMPI_INNER AMPI_FLOATS AMPI_F(tanh)(AMPI_FLOATS x) {
    AMPI_FLOATS a = AMPI_F(size_to)(x, 10.0f), square = AMPI_MUL(a, a), p, large;
    AMPI_FLOATS power = AMPI_F(logistic_power)(AMPI_ADD(a, a));
    large = AMPI_FUSE(AMPI_MUL(power, AMPI_SET(-2.0f)), AMPI_F(logistic)(power), AMPI_SET(1.0f));
    p = AMPI_FUSE(AMPI_SET(-5.89515828e-3f), square, AMPI_SET(2.07959712e-2f));
    p = AMPI_FUSE(p, square, AMPI_SET(-5.37838303e-2f));
    p = AMPI_FUSE(p, square, AMPI_SET(0.133319244f));
    p = AMPI_FUSE(p, square, AMPI_SET(-0.333332986f));
    p = AMPI_FUSE(AMPI_MUL(a, square), p, a);
    return AMPI_F(sign_of)(AMPI_CHOOSE(AMPI_GREATER(AMPI_WORD(0x3f19999au), AMPI_BITS(a)), p, large), x);
}
AMPI_INNER AMPI_FLOATS AMPI_F(tanh_back)(AMPI_FLOATS dy, AMPI_FLOATS y) {
    return AMPI_MUL(dy, AMPI_FUSE(AMPI_NEGATIVE(y), y, AMPI_SET(1.0f)));
}
/* As bits and signed, negative numbers are those above -0 and up to -Inf; NaN stays. */
AMPI_INNER AMPI_FLOATS AMPI_F(relu)(AMPI_FLOATS x) {
    AMPI_WORDS b = AMPI_BITS(x), y = AMPI_SELECT(AMPI_GREATER(b, AMPI_WORD(0x80000000u)), AMPI_WORD(0), b);
    return AMPI_AS_FLOATS(AMPI_SELECT(AMPI_GREATER(AMPI_WORD(0xff800001u), b), y, b));
}
/* 0 where y <= 0, else dy: also where y is NaN of any sign, so that a NaN of dy arrives. A mask would be !(y <= 0). */
AMPI_INNER AMPI_FLOATS AMPI_F(relu_back)(AMPI_FLOATS dy, AMPI_FLOATS y) {
    AMPI_WORDS above = AMPI_BITS(AMPI_AT_LEAST(y, AMPI_SET(0.0f))); /* 0, more, and NaN of any sign */
    AMPI_MASK open = AMPI_GREATER(AMPI_AND(above, AMPI_WORD(0x7fffffffu)), AMPI_WORD(0));
    return AMPI_AS_FLOATS(AMPI_SELECT(open, AMPI_BITS(dy), AMPI_WORD(0)));
}
#endif

#if AMPI_PASS == AMPI_PASS_MATH || AMPI_PASS == AMPI_PASS_VECTOR
/* x * by, its magnitude at most the number whose bits are `most`; Inf and NaN as they are. */
AMPI_INNER AMPI_FLOATS AMPI_F(fit_one)(AMPI_FLOATS x, AMPI_FLOATS by, AMPI_WORDS most) {
    AMPI_WORDS bits = AMPI_BITS(x);
    AMPI_WORDS sign = AMPI_AND(bits, AMPI_WORD(0x80000000u));
    AMPI_WORDS v = AMPI_BITS(AMPI_MUL(x, by));
    AMPI_WORDS size = AMPI_AND(v, AMPI_WORD(0x7fffffffu));
    v = AMPI_SELECT(AMPI_GREATER(size, most), AMPI_OR(most, sign), v);
    size = AMPI_AND(bits, AMPI_WORD(0x7fffffffu));
    return AMPI_AS_FLOATS(AMPI_SELECT(AMPI_GREATER(size, AMPI_WORD(0x7f7fffffu)), bits, v));
}
#endif

/* ---- rules: the optimizers ---- */
#if AMPI_PASS == AMPI_PASS_UPDATE || AMPI_PASS == AMPI_PASS_VECTOR
AMPI_INNER AMPI_FLOATS AMPI_F(prepare_one)(AMPI_FLOATS u, const amp_coef *c) {
    u = AMPI_MUL(AMPI_MUL(u, AMPI_SET(c->inv)), AMPI_SET(c->clip));
    return ampi_nonzero(c->limit) ? AMPI_F(clamp)(u, AMPI_SET(c->limit)) : u;
}
AMPI_INNER AMPI_FLOATS AMPI_F(decayed)(AMPI_FLOATS w, AMPI_FLOATS u, const amp_coef *c) {
    return ampi_nonzero(c->l2) ? AMPI_ADD(u, AMPI_MUL(AMPI_SET(c->l2), w)) : u;
}
AMPI_INNER AMPI_FLOATS AMPI_F(average)(float of_old, AMPI_FLOATS old, float of_new, AMPI_FLOATS x) {
    return AMPI_ADD(AMPI_MUL(AMPI_SET(of_old), old), AMPI_MUL(AMPI_SET(of_new), x));
}
AMPI_INNER AMPI_FLOATS AMPI_F(adam_step)(AMPI_FLOATS m, AMPI_FLOATS v, const amp_coef *c) {
    AMPI_FLOATS root = AMPI_MUL(AMPI_SQRT(v), AMPI_SET(c->rsqrt_bc2));
    root = AMPI_ADD(root, AMPI_SET(c->eps));
    return AMPI_MUL(AMPI_SET(c->step_size), AMPI_DIV(m, root));
}
AMPI_INNER AMPI_FLOATS AMPI_F(adam_one)(
    AMPI_FLOATS *w, AMPI_FLOATS *m, AMPI_FLOATS *v, AMPI_FLOATS u, const amp_coef *c) {
    AMPI_FLOATS step;
    u = AMPI_F(decayed)(*w, u, c);
    *m = AMPI_F(average)(c->beta1, *m, c->one_beta1, u);
    *v = AMPI_F(average)(c->beta2, *v, c->one_beta2, AMPI_MUL(u, u));
    step = AMPI_F(adam_step)(*m, *v, c);
    *w = AMPI_SUB(AMPI_MUL(*w, AMPI_SET(c->decay)), step);
    return step;
}
AMPI_INNER AMPI_FLOATS AMPI_F(sgd_one)(
    AMPI_FLOATS *w, AMPI_FLOATS *b, AMPI_FLOATS *v, AMPI_FLOATS u, const amp_coef *c) {
    (void)v;
    u = AMPI_F(decayed)(*w, u, c);
    if (ampi_nonzero(c->momentum)) {
        *b = c->first ? u : AMPI_F(average)(c->momentum, *b, c->one_dampening, u);
        u = c->nesterov ? AMPI_ADD(u, AMPI_MUL(AMPI_SET(c->momentum), *b)) : *b;
    }
    u = AMPI_MUL(AMPI_SET(c->lr), u);
    *w = AMPI_SUB(*w, u);
    return u;
}
AMPI_INNER AMPI_FLOATS AMPI_F(lion_one)(
    AMPI_FLOATS *w, AMPI_FLOATS *m, AMPI_FLOATS *v, AMPI_FLOATS u, const amp_coef *c) {
    AMPI_FLOATS direction = AMPI_F(average)(c->beta1, *m, c->one_beta1, u);
    AMPI_FLOATS step = AMPI_F(with_sign)(AMPI_SET(c->lr), direction);
    (void)v;
    *w = AMPI_SUB(AMPI_MUL(*w, AMPI_SET(c->decay)), step);
    *m = AMPI_F(average)(c->beta2, *m, c->one_beta2, u);
    return step;
}
/* The rule of a kind, which is a constant wherever this is inlined. Returns what was subtracted from the weight. */
AMPI_INNER AMPI_FLOATS AMPI_F(update_one)(
    amp_update_kind update, AMPI_FLOATS *w, AMPI_FLOATS *m, AMPI_FLOATS *v, AMPI_FLOATS u, const amp_coef *c) {
#  define AMP_X(kind, rule, moments) \
    if (update == kind) return AMPI_F(rule##_one)(w, m, v, u, c);
    AMP_UPDATE_LIST(AMP_X)
#  undef AMP_X
    return u;
}
/* An update times 2^(128 - exponent) of the weight before it, but at most the power `most`: see amp_spacing_of. */
AMPI_INNER AMPI_FLOATS AMPI_F(in_spacings)(AMPI_FLOATS step, AMPI_FLOATS before, AMPI_WORDS most) {
    const AMPI_WORDS exponent = AMPI_WORD(0x7f800000u);
    AMPI_WORDS power = AMPI_XOR(AMPI_AND(AMPI_BITS(before), exponent), exponent);
    return AMPI_MUL(step, AMPI_AS_FLOATS(AMPI_MIN(power, most)));
}
#endif

#if AMPI_PASS == AMPI_PASS_SCALAR || AMPI_PASS == AMPI_PASS_VECTOR
/* ---- conversions: nearest even without a branch. Normal numbers by integers; below them the addition of a number
   whose last place is the target's smallest subnormal rounds. The dtype is a constant wherever these are inlined.
   tests: tests/test_arrays.c, tests/exhaustive.c ---- */
AMPI_INNER AMPI_WORDS AMPI_F(finish)(AMPI_WORDS x, AMPI_WORDS a, AMPI_WORDS r, amp_dtype t) { /* NaN and sign; a: |x| */
    const ampi_format f = ampi_format_of(t);
    AMPI_WORDS nan = AMPI_WORD(f.nan), sign;
    if (ampi_has_inf(f)) {
        AMPI_WORDS payload = AMPI_AND(AMPI_SHR(a, 23u - f.mant), AMPI_WORD(f.payload));
        nan = AMPI_OR(nan, payload);
    }
    r = AMPI_SELECT(AMPI_GREATER(a, AMPI_WORD(0x7f800000u)), nan, r);
    sign = AMPI_AND(AMPI_SHR(x, 31u - f.sign), AMPI_WORD(1u << f.sign));
    return AMPI_OR(r, sign);
}
AMPI_INNER AMPI_WORDS AMPI_F(encode)(AMPI_WORDS x, amp_dtype t, uint32_t cap) { /* cap: what overflow becomes */
    const ampi_format f = ampi_format_of(t);
    const uint32_t shift = 23u - f.mant, magic = (f.emin + shift) << 23, bias = (f.emin - 1u) << 23;
    AMPI_WORDS a = AMPI_AND(x, AMPI_WORD(0x7fffffffu)), r, tiny;
    if (t == AMP_BF16 && cap == f.over) {
        r = AMPI_ADD_WORDS(x, AMPI_ADD_WORDS(AMPI_AND(AMPI_SHR(x, 16), AMPI_WORD(1)), AMPI_WORD(0x7fffu)));
        r = AMPI_SELECT(AMPI_GREATER(a, AMPI_WORD(0x7f800000u)), AMPI_OR(x, AMPI_WORD(0x400000u)), r);
        return AMPI_SHR(r, 16);
    }
    r = AMPI_ADD_WORDS(a, AMPI_WORD((1u << (shift - 1u)) - 1u - bias));
    r = AMPI_ADD_WORDS(r, AMPI_AND(AMPI_SHR(a, shift), AMPI_WORD(1)));
    r = AMPI_SHR(r, shift);
    if (t != AMP_BF16) {
        tiny = AMPI_BITS(AMPI_F(magic_add)(AMPI_AS_FLOATS(a), AMPI_AS_FLOATS(AMPI_WORD(magic))));
        tiny = AMPI_SUB_WORDS(tiny, AMPI_WORD(magic));
        r = AMPI_SELECT(AMPI_GREATER(AMPI_WORD(f.emin << 23), a), tiny, r);
    }
    r = AMPI_MIN(r, AMPI_WORD(cap));
    if (cap == f.nan) return AMPI_OR(r, AMPI_AND(AMPI_SHR(x, 24), AMPI_WORD(0x80u)));
    return AMPI_F(finish)(x, a, r, t);
}
#  if AMPI_PASS == AMPI_PASS_VECTOR
/* BF16: x + -0 is x, bit for bit, but that a signalling NaN becomes quiet: one operation. An addition takes subnormals
   in its stride where a multiplication by 1 does not. By name, since compilers know, too, that it is x. */
AMPI_INNER AMPI_WORDS AMPI_F(widened_bf16)(const void *s) {
    const AMPI_FLOATS zero = AMPI_AS_FLOATS(AMPI_WORD(0x80000000u));
    return AMPI_BITS(AMPI_F(plus)(AMPI_AS_FLOATS(AMPI_F(load_upper)(s)), zero));
}
#  endif
/* Quiet: 0x400000 where a > over, which is what NaN is; 0 elsewhere. */
AMPI_INNER AMPI_WORDS AMPI_F(quiet)(AMPI_WORDS a, uint32_t over) {
    return AMPI_AND(AMPI_SHR(AMPI_SUB_WORDS(AMPI_WORD(over), a), 9), AMPI_WORD(0x400000u));
}
AMPI_INNER AMPI_WORDS AMPI_F(decode)(AMPI_WORDS w, amp_dtype t) {
    const ampi_format f = ampi_format_of(t);
    const uint32_t shift = 23u - f.mant, magic = (f.emin + shift) << 23;
    AMPI_WORDS a = AMPI_AND(w, AMPI_WORD((1u << f.sign) - 1u)), up, r, tiny;
    if (t == AMP_BF16) return AMPI_OR(AMPI_SHL(w, 16), AMPI_F(quiet)(a, f.over));
    up = AMPI_SHL(a, shift);
    r = AMPI_ADD_WORDS(up, AMPI_WORD((f.emin - 1u) << 23));
    tiny = AMPI_ADD_WORDS(a, AMPI_WORD(magic));
    tiny = AMPI_BITS(AMPI_F(magic_sub)(AMPI_AS_FLOATS(tiny), AMPI_AS_FLOATS(AMPI_WORD(magic))));
    r = AMPI_SELECT(AMPI_GREATER(AMPI_WORD(1u << f.mant), a), tiny, r);
    if (!ampi_has_inf(f)) {
        r = AMPI_SELECT(AMPI_GREATER(a, AMPI_WORD(f.maxf)), AMPI_WORD(0x7ff00000u), r);
    } else {
        r = AMPI_SELECT(AMPI_GREATER(a, AMPI_WORD(f.over - 1u)), AMPI_OR(up, AMPI_WORD(0x7f800000u)), r);
        r = AMPI_OR(r, AMPI_F(quiet)(a, f.over));
    }
    return AMPI_OR(r, AMPI_SHL(AMPI_SHR(w, f.sign), 31));
}
/* One vector of a small format, as the bits of floats. */
AMPI_INNER AMPI_WORDS AMPI_F(widened)(const void *s, amp_dtype t) {
#  ifdef AMPI_HAS_HALVES
    if (t == AMP_F16) return AMPI_F(load_halves)(s);
#  endif
#  ifdef AMPI_HAS_HALVES_OF_F8
    if (t == AMP_F8E4M3) return AMPI_F(load_e4m3)(s);
    if (t == AMP_F8E5M2) return AMPI_F(load_e5m2)(s);
#  endif
#  if AMPI_PASS == AMPI_PASS_VECTOR
    if (t == AMP_BF16) return AMPI_F(widened_bf16)(s);
#  endif
    return AMPI_F(decode)(amp_dtype_size(t) == 2 ? AMPI_F(load16)(s) : AMPI_F(load8)(s), t);
}

/* Conversions go in steps of AMPI_STEP elements; what is left of n goes through a padded copy. */
#  if AMPI_PASS == AMPI_PASS_SCALAR
#    define AMPI_STEP 16u
AMPI_INNER void AMPI_F(widen_step)(char *d, const char *s, amp_dtype t) { /* loops that compilers turn into vectors */
    uint32_t u[AMPI_STEP], e;
    uint16_t h[AMPI_STEP];
    uint8_t b[AMPI_STEP];
    if (amp_dtype_size(t) == 2) {
        memcpy(h, s, sizeof h);
        for (e = 0; e < AMPI_STEP; e++)
            u[e] = AMPI_F(decode)(h[e], t);
    } else {
        memcpy(b, s, sizeof b);
        for (e = 0; e < AMPI_STEP; e++)
            u[e] = AMPI_F(decode)(b[e], t);
    }
    memcpy(d, u, sizeof u);
}
AMPI_INNER void AMPI_F(narrow_step)(char *d, const char *s, amp_dtype t) {
    uint32_t u[AMPI_STEP], e;
    uint16_t h[AMPI_STEP];
    uint8_t b[AMPI_STEP];
    memcpy(u, s, sizeof u);
    if (amp_dtype_size(t) == 2) {
        for (e = 0; e < AMPI_STEP; e++)
            h[e] = (uint16_t)AMPI_F(encode)(u[e], t, ampi_format_of(t).over);
        memcpy(d, h, sizeof h);
    } else {
        for (e = 0; e < AMPI_STEP; e++)
            b[e] = (uint8_t)AMPI_F(encode)(u[e], t, ampi_format_of(t).over);
        memcpy(d, b, sizeof b);
    }
}
#  else
#    define AMPI_STEP (4u * AMPI_WIDTH)
AMPI_INNER void AMPI_F(widen_step)(char *d, const char *s, amp_dtype t) {
    const size_t size = amp_dtype_size(t) * AMPI_WIDTH;
    AMPI_WORDS v0 = AMPI_F(widened)(s, t);
    AMPI_WORDS v1 = AMPI_F(widened)(s + size, t);
    AMPI_WORDS v2 = AMPI_F(widened)(s + 2u * size, t);
    AMPI_WORDS v3 = AMPI_F(widened)(s + 3u * size, t);
    AMPI_STORE_WORDS(d, v0);
    AMPI_STORE_WORDS(d + 4u * AMPI_WIDTH, v1);
    AMPI_STORE_WORDS(d + 8u * AMPI_WIDTH, v2);
    AMPI_STORE_WORDS(d + 12u * AMPI_WIDTH, v3);
}
AMPI_INNER void AMPI_F(store_step)(char *d, amp_dtype t, AMPI_WORDS v0, AMPI_WORDS v1, AMPI_WORDS v2, AMPI_WORDS v3) {
    if (amp_dtype_size(t) == 2) {
        AMPI_F(store16)(d, v0, v1);
        AMPI_F(store16)(d + 4u * AMPI_WIDTH, v2, v3);
    } else {
        AMPI_F(store8)(d, v0, v1, v2, v3);
    }
}
AMPI_INNER void AMPI_F(store_words_step)(char *d, amp_dtype t, const uint32_t *v) {
    AMPI_F(store_step)(d, t, AMPI_LOAD_WORDS(v), AMPI_LOAD_WORDS(v + AMPI_WIDTH), AMPI_LOAD_WORDS(v + 2u * AMPI_WIDTH),
        AMPI_LOAD_WORDS(v + 3u * AMPI_WIDTH));
}
AMPI_INNER void AMPI_F(narrow_step)(char *d, const char *s, amp_dtype t) {
    const uint32_t cap = ampi_format_of(t).over;
    AMPI_WORDS v0, v1, v2, v3;
#    ifdef AMPI_HAS_HALVES
    if (t == AMP_F16) {
        AMPI_F(store_halves)(d, s);
        return;
    }
#    endif
    v0 = AMPI_F(encode)(AMPI_LOAD_WORDS(s), t, cap);
    v1 = AMPI_F(encode)(AMPI_LOAD_WORDS(s + 4u * AMPI_WIDTH), t, cap);
    v2 = AMPI_F(encode)(AMPI_LOAD_WORDS(s + 8u * AMPI_WIDTH), t, cap);
    v3 = AMPI_F(encode)(AMPI_LOAD_WORDS(s + 12u * AMPI_WIDTH), t, cap);
    AMPI_F(store_step)(d, t, v0, v1, v2, v3);
}
#  endif
AMPI_INNER void AMPI_F(widen)(void *dst, const void *src, size_t n, amp_dtype t) {
    const size_t size = amp_dtype_size(t);
    char *d = (char *)dst;
    const char *s = (const char *)src;
    size_t i;
    for (i = 0; i + AMPI_STEP <= n; i += AMPI_STEP)
        AMPI_F(widen_step)(d + i * 4u, s + i * size, t);
    if (i < n && n >= AMPI_STEP) { /* a few of them again */
        i = n - AMPI_STEP;
        AMPI_F(widen_step)(d + i * 4u, s + i * size, t);
    } else if (i < n) {
        char from[AMPI_STEP * 2u], to[AMPI_STEP * 4u];
        memset(from, 0, AMPI_STEP * size);
        memcpy(from, s + i * size, (n - i) * size);
        AMPI_F(widen_step)(to, from, t);
        memcpy(d + i * 4u, to, (n - i) * 4u);
    }
}
AMPI_INNER void AMPI_F(narrow)(void *dst, const void *src, size_t n, amp_dtype t) {
    const size_t size = amp_dtype_size(t);
    char *d = (char *)dst;
    const char *s = (const char *)src;
    size_t i;
    for (i = 0; i + AMPI_STEP <= n; i += AMPI_STEP)
        AMPI_F(narrow_step)(d + i * size, s + i * 4u, t);
    if (i < n && n >= AMPI_STEP) {
        i = n - AMPI_STEP;
        AMPI_F(narrow_step)(d + i * size, s + i * 4u, t);
    } else if (i < n) {
        char from[AMPI_STEP * 4u], to[AMPI_STEP * 2u];
        memset(from, 0, sizeof from);
        memcpy(from, s + i * 4u, (n - i) * 4u);
        AMPI_F(narrow_step)(to, from, t);
        memcpy(d + i * size, to, (n - i) * size);
    }
}
#  define AMP_X(T, name, ...) \
    AMPI_OUTER void AMPI_F(widen_##name)(void *d, const void *s, size_t n) { AMPI_F(widen)(d, s, n, AMP_##T); } \
    AMPI_OUTER void AMPI_F(narrow_##name)(void *d, const void *s, size_t n) { AMPI_F(narrow)(d, s, n, AMP_##T); }
AMPI_FORMATS(AMP_X)
#  undef AMP_X
#  ifdef AMPI_HAS_FMA
/* scale from 16 bits to 16 bits, a step at a time in registers. */
AMPI_INNER AMPI_WORDS AMPI_F(rescale_step)(char *d, const char *s, amp_dtype t, AMPI_FLOATS by) {
    const AMPI_WORDS exponent = AMPI_WORD(0x7f800000u), one = AMPI_WORD(0x00800000u);
    AMPI_LINES float u[AMPI_STEP];
    AMPI_WORDS any = AMPI_WORD(0);
    AMPI_FLOATS x;
#    define AMPI_X(v) \
    x = AMPI_MUL(AMPI_AS_FLOATS(AMPI_F(widened)(s + 2u * v * AMPI_WIDTH, t)), by); \
    AMPI_STORE(u + v * AMPI_WIDTH, x); \
    any = AMPI_OR(any, AMPI_ADD_WORDS(AMPI_AND(AMPI_BITS(x), exponent), one));
    AMPI_X(0)
    AMPI_X(1)
    AMPI_X(2)
    AMPI_X(3)
#    undef AMPI_X
    AMPI_F(narrow_step)(d, (const char *)u, t);
    return any;
}
AMPI_INNER int AMPI_F(rescale_of)(amp_dtype t, char *d, const char *s, size_t n, float by) {
    AMPI_WORDS any = AMPI_WORD(0);
    size_t i;
    for (i = 0; i + AMPI_STEP <= n; i += AMPI_STEP)
        any = AMPI_OR(any, AMPI_F(rescale_step)(d + 2u * i, s + 2u * i, t, AMPI_SET(by)));
    if (i < n) {
        char left[AMPI_STEP * 2u] = {0};
        memcpy(left, s + 2u * i, 2u * (n - i));
        any = AMPI_OR(any, AMPI_F(rescale_step)(left, left, t, AMPI_SET(by)));
        memcpy(d + 2u * i, left, 2u * (n - i));
    }
    return AMPI_ANY(AMPI_AND(any, AMPI_WORD(0x80000000u)));
}
AMPI_OUTER int AMPI_F(rescale)(void *to, const void *from, amp_dtype t, size_t n, float by) {
    if (t == AMP_F16) return AMPI_F(rescale_of)(AMP_F16, (char *)to, (const char *)from, n, by);
    return AMPI_F(rescale_of)(AMP_BF16, (char *)to, (const char *)from, n, by);
}
#  endif
#  if AMPI_PASS == AMPI_PASS_SCALAR /* the same on every path */
AMPI_OUTER void AMPI_F(widen_f32)(void *d, const void *s, size_t n) { memcpy(d, s, n * 4); }
AMPI_OUTER void AMPI_F(narrow_f32)(void *d, const void *s, size_t n) {
    if (d != s) memcpy(d, s, n * 4);
}
#  endif
#endif

#if AMPI_PASS == AMPI_PASS_SCALAR || AMPI_PASS == AMPI_PASS_VECTOR
/* ---- loops over floats; what is left of n is done by the scalar path.
   tests: tests/test_arrays.c, tests/test_step.c, tests/test_layouts.c ---- */
#  define AMPI_LEFT(i, n) (AMPI_WIDTH > 1u && (i) < (n))
AMPI_OUTER int AMPI_F(scale)(float *to, const float *u, size_t n, float by) {
    const AMPI_WORDS exponent = AMPI_WORD(0x7f800000u), one = AMPI_WORD(0x00800000u);
    AMPI_WORDS any = AMPI_WORD(0);
    size_t i;
    int bad;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS x = AMPI_MUL(AMPI_LOAD(u + i), AMPI_SET(by));
        AMPI_STORE(to + i, x);
        any = AMPI_OR(any, AMPI_ADD_WORDS(AMPI_AND(AMPI_BITS(x), exponent), one));
    }
    bad = AMPI_ANY(AMPI_AND(any, AMPI_WORD(0x80000000u)));
    if (AMPI_LEFT(i, n)) bad |= ampi_scalar_scale(to + i, u + i, n - i, by);
    return bad;
}
AMPI_OUTER void AMPI_F(axpy)(float *to, const float *u, size_t n, float by) {
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS term = AMPI_MUL(AMPI_SET(by), AMPI_LOAD(u + i));
        AMPI_STORE(to + i, AMPI_ADD(AMPI_LOAD(to + i), term));
    }
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_axpy(to + i, u + i, n - i, by);
}
AMPI_OUTER void AMPI_F(exps)(float *u, size_t n, float top) {
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_STORE(u + i, AMPI_F(exp_term)(AMPI_SUB(AMPI_LOAD(u + i), AMPI_SET(top))));
    }
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_exps(u + i, n - i, top);
}
AMPI_OUTER void AMPI_F(softmax_shares)(float *u, size_t n, float by, float less) {
    const AMPI_FLOATS minus = AMPI_NEGATIVE(AMPI_SET(less));
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH)
        AMPI_STORE(u + i, AMPI_FUSE(AMPI_LOAD(u + i), AMPI_SET(by), minus));
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_softmax_shares(u + i, n - i, by, less);
}
AMPI_OUTER void AMPI_F(targets)(float *q, const float *w, size_t n, float keep, float share) {
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS x = AMPI_ADD(AMPI_SET(share), AMPI_MUL(AMPI_SET(keep), AMPI_LOAD(q + i)));
        AMPI_STORE(q + i, w ? AMPI_MUL(x, AMPI_LOAD(w + i)) : x);
    }
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_targets(q + i, w ? w + i : NULL, n - i, keep, share);
}
AMPI_OUTER void AMPI_F(misses)(float *x, const float *q, size_t n, float max) {
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS one = AMPI_LOAD(q + i);
        AMPI_FLOATS miss = AMPI_MUL(AMPI_SUB(AMPI_SET(max), AMPI_LOAD(x + i)), one);
        AMPI_STORE(x + i, AMPI_CHOOSE(AMPI_NONZERO(one), miss, one));
    }
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_misses(x + i, q + i, n - i, max);
}
AMPI_OUTER void AMPI_F(grad_each)(float *u, const float *q, size_t n, float by, float factor) {
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS less = AMPI_MUL(AMPI_LOAD(q + i), AMPI_SET(factor));
        AMPI_STORE(u + i, AMPI_FUSE(AMPI_LOAD(u + i), AMPI_SET(by), AMPI_NEGATIVE(less)));
    }
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_grad_each(u + i, q + i, n - i, by, factor);
}
/* What is left of n, fewer than a vector, in a vector: its activation takes as long as that of one float. */
#  ifndef AMPI_HAS_SOME
AMPI_INNER AMPI_FLOATS AMPI_F(load_some)(const float *u, size_t n) {
    float some[AMPI_WIDTH] = {0};
    memcpy(some, u, n * sizeof *u);
    return AMPI_LOAD(some);
}
AMPI_INNER void AMPI_F(store_some)(float *u, size_t n, AMPI_FLOATS x) {
    float some[AMPI_WIDTH];
    AMPI_STORE(some, x);
    memcpy(u, some, n * sizeof *u);
}
#  endif
/* Activations: n is a multiple of AMPI_WIDTH; the rules, which are long, stand in the code once. */
#define AMPI_ACT_LOOPS(name, rule, aux) \
    AMPI_INNER void AMPI_F(rule##_all)(float *to, const float *x, size_t n) { \
        size_t i; \
        for (i = 0; i < n; i += AMPI_WIDTH) \
            AMPI_STORE(to + i, AMPI_F(rule)(AMPI_LOAD(x + i))); \
    } \
    AMPI_INNER void AMPI_F(rule##_back_all)(float *to, const float *dy, const float *saved, size_t n) { \
        size_t i; \
        for (i = 0; i < n; i += AMPI_WIDTH) \
            AMPI_STORE(to + i, AMPI_F(rule##_back)(AMPI_LOAD(dy + i), AMPI_LOAD(saved + i))); \
    }
AMPI_ACT_LIST(AMPI_ACT_LOOPS)
#undef AMPI_ACT_LOOPS
AMPI_OUTER void AMPI_F(act)(float *to, const float *x, size_t n, amp_act act) {
    const size_t left = n % AMPI_WIDTH;
#define AMP_X(name, rule, aux) \
    if (act == name) AMPI_F(rule##_all)(to, x, n - left);
    AMPI_ACT_LIST(AMP_X)
#undef AMP_X
    AMPI_F(done)();
    if (left) { /* in a vector: it takes as long as one float */
        float some[AMPI_WIDTH] = {0};
        memcpy(some, x + n - left, left * sizeof *x);
        AMPI_F(act)(some, some, AMPI_WIDTH, act);
        memcpy(to + n - left, some, left * sizeof *to);
    }
}
AMPI_OUTER void AMPI_F(act_grad)(float *to, const float *dy, const float *saved, size_t n, amp_act act) {
    const size_t left = n % AMPI_WIDTH;
#define AMP_X(name, rule, aux) \
    if (act == name) AMPI_F(rule##_back_all)(to, dy, saved, n - left);
    AMPI_ACT_LIST(AMP_X)
#undef AMP_X
    AMPI_F(done)();
    if (left) {
        float some[AMPI_WIDTH] = {0}, some_saved[AMPI_WIDTH] = {0};
        memcpy(some, dy + n - left, left * sizeof *dy);
        memcpy(some_saved, saved + n - left, left * sizeof *saved);
        AMPI_F(act_grad)(some, some, some_saved, AMPI_WIDTH, act);
        memcpy(to + n - left, some, left * sizeof *to);
    }
}
#  ifdef AMPI_HAS_FMA
/* ReLU from 16 bits to 16 bits, as AMPI_F(relu) and AMPI_F(relu_back) have it, in words of 16 bits: signed, numbers
   below 0 are those above -0 and up to -Inf. NaN stays, and becomes quiet. */
typedef int16_t AMPI_F(i16) __attribute__((__vector_size__(4u * AMPI_WIDTH)));
typedef AMPI_F(i16) AMPI_F(i16_at) __attribute__((__aligned__(1), __may_alias__));
AMPI_INNER void AMPI_F(relu16_step)(void *to, const void *from, const void *saved, int16_t inf, int16_t quiet) {
    AMPI_F(i16) x = *(const AMPI_F(i16_at) *)from;
    const AMPI_F(i16) nan = (x & 0x7fff) > inf;
    const AMPI_F(i16) below = (x < 0) & (x > INT16_MIN) & ~nan;
    x |= nan & quiet;
    if (saved) {
        const AMPI_F(i16) y = *(const AMPI_F(i16_at) *)saved;
        const AMPI_F(i16) open = (y > 0) | ((y & 0x7fff) > inf);
        x &= open;
    } else {
        x &= ~below;
    }
    *(AMPI_F(i16_at) *)to = x;
}
AMPI_OUTER void AMPI_F(relu16)(char *to, const char *x, const char *saved, amp_dtype t, size_t n) {
    const int16_t inf = t == AMP_F16 ? 0x7c00 : 0x7f80;
    const int16_t quiet = t == AMP_F16 ? 0x0200 : 0x0040;
    const size_t step = 4u * AMPI_WIDTH;
    const size_t bytes = 2u * n;
    size_t i;
    for (i = 0; i + step <= bytes; i += step)
        AMPI_F(relu16_step)(to + i, x + i, saved ? saved + i : NULL, inf, quiet);
    if (i < bytes) {
        char left[4u * AMPI_WIDTH] = {0};
        char left_saved[4u * AMPI_WIDTH] = {0};
        memcpy(left, x + i, bytes - i);
        if (saved) memcpy(left_saved, saved + i, bytes - i);
        AMPI_F(relu16_step)(left, left, saved ? left_saved : NULL, inf, quiet);
        memcpy(to + i, left, bytes - i);
    }
    AMPI_F(done)();
}
#  endif
/* A mask of ReLU's y: a bit for each that is not 0, NaN too. And dy where the bit is 1, else 0. */
AMPI_OUTER void AMPI_F(mask_of)(uint8_t *bits, const float *y, size_t n) {
    size_t i, k;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        const AMPI_WORDS size = AMPI_AND(AMPI_BITS(AMPI_LOAD(y + i)), AMPI_WORD(0x7fffffffu));
        const AMPI_MASK open = AMPI_GREATER(size, AMPI_WORD(0));
        uint32_t each[AMPI_WIDTH], all = 0;
        AMPI_STORE_WORDS(each, AMPI_SELECT(open, AMPI_LOAD_WORDS(ampi_places), AMPI_WORD(0)));
        for (k = 0; k < AMPI_WIDTH; k++)
            all |= each[k];
        if (i % 8u == 0) bits[i / 8u] = 0;
        bits[i / 8u] |= (uint8_t)(all << i % 8u);
        if (AMPI_WIDTH > 8u) bits[i / 8u + 1u] = (uint8_t)(all >> 8);
    }
    AMPI_F(done)();
    for (; i < n; i++) {
        if (i % 8u == 0) bits[i / 8u] = 0;
        if (ampi_bits(y[i]) & 0x7fffffffu) bits[i / 8u] |= (uint8_t)(1u << i % 8u);
    }
}
AMPI_OUTER void AMPI_F(mask_grad)(float *dy, const uint8_t *bits, size_t n) {
    const AMPI_WORDS places = AMPI_LOAD_WORDS(ampi_places);
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        uint32_t all = (uint32_t)bits[i / 8u] >> i % 8u;
        AMPI_MASK open;
        if (AMPI_WIDTH > 8u) all |= (uint32_t)bits[i / 8u + 1u] << 8;
        open = AMPI_GREATER(AMPI_AND(AMPI_WORD(all), places), AMPI_WORD(0));
        AMPI_STORE(dy + i, AMPI_AS_FLOATS(AMPI_SELECT(open, AMPI_BITS(AMPI_LOAD(dy + i)), AMPI_WORD(0))));
    }
    AMPI_F(done)();
    for (; i < n; i++)
        if (!(bits[i / 8u] >> i % 8u & 1u)) dy[i] = 0.0f;
}
AMPI_OUTER void AMPI_F(drop)(float *u, const uint32_t *random, size_t n, uint32_t threshold, float factor) {
    const AMPI_WORDS sign = AMPI_WORD(0x80000000u); /* comparisons are signed */
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_WORDS kept = AMPI_BITS(AMPI_MUL(AMPI_LOAD(u + i), AMPI_SET(factor)));
        AMPI_WORDS drawn = AMPI_XOR(AMPI_LOAD_WORDS(random + i), sign);
        AMPI_MASK dropped = AMPI_GREATER(AMPI_WORD(threshold ^ 0x80000000u), drawn);
        AMPI_STORE(u + i, AMPI_AS_FLOATS(AMPI_SELECT(dropped, AMPI_WORD(0), kept)));
    }
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_drop(u + i, random + i, n - i, threshold, factor);
}
AMPI_OUTER void AMPI_F(prepare)(float *to, const float *u, size_t n, const amp_coef *c) {
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH)
        AMPI_STORE(to + i, AMPI_F(prepare_one)(AMPI_LOAD(u + i), c));
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_prepare(to + i, u + i, n - i, c);
}
/* Lost updates, counted in vectors: each lane has sums of its own. */
typedef struct AMPI_F(counts) {
    AMPI_WORDS updates;
    AMPI_WORDS lost;
    AMPI_WORDS most;
    AMPI_FLOATS ratio;
} AMPI_F(counts);
/* An update of the weights i ... from `old` to w. It changes a weight of 0, so SAME is about bits. */
AMPI_INNER void AMPI_F(tally)(
    ampi_tally *t, int again, AMPI_F(counts) * s, size_t i, AMPI_FLOATS step, AMPI_FLOATS old, AMPI_FLOATS w) {
    AMPI_MASK update = AMPI_NONZERO(step);
    AMPI_MASK same = AMPI_SAME(update, again ? w : old, w);
    if (again)
        memcpy(t->moved + i / AMPI_WIDTH * sizeof same, &same, sizeof same);
    else
        s->lost = AMPI_ADD_IF(s->lost, same);
    s->updates = AMPI_ADD_IF(s->updates, update);
    s->ratio = AMPI_LARGER_ABS(s->ratio, AMPI_F(in_spacings)(step, old, s->most));
}
AMPI_OUTER void AMPI_F(count_sizes)(ampi_tally *t, const float *w, const float *u, size_t n, float by) {
    const uint32_t again = t->again; /* no store can change it */
    AMPI_F(counts) s;
    size_t i;
    s.updates = AMPI_LOAD_WORDS(t->updates);
    s.lost = AMPI_LOAD_WORDS(t->lost);
    s.most = AMPI_WORD(t->spacing.most);
    s.ratio = AMPI_LOAD(t->ratio);
    for (i = t->at; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS step = AMPI_MUL(AMPI_LOAD(u + i), AMPI_SET(by));
        AMPI_F(tally)(t, (int)again, &s, i, step, AMPI_LOAD(t->old + i), AMPI_LOAD(w + i));
    }
    AMPI_STORE_WORDS(t->updates, s.updates);
    AMPI_STORE_WORDS(t->lost, s.lost);
    AMPI_STORE(t->ratio, s.ratio);
    t->at = i;
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_count_sizes(t, w, u, n, by);
}
AMPI_OUTER void AMPI_F(count_unchanged)(ampi_tally *t, const char *model, const char *low, size_t n) {
    AMPI_WORDS lost = AMPI_LOAD_WORDS(t->lost);
    size_t i;
    for (i = t->at; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_MASK same;
        memcpy(&same, t->moved + i / AMPI_WIDTH * sizeof same, sizeof same);
        same = AMPI_SAME16(same, t->was[0] + i, model + 2u * i);
        if (low) same = AMPI_SAME16(same, t->was[1] + i, low + 2u * i);
        lost = AMPI_ADD_IF(lost, same);
    }
    AMPI_STORE_WORDS(t->lost, lost);
    t->at = i;
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_count_unchanged(t, model, low, n);
}
/* A loop for each kind of update; 1 if a second moment is Inf. Who counts lost updates asks for the steps, which is one
   branch a vector: no second loop is compiled for it. */
AMPI_INNER int AMPI_F(update)(
    amp_update_kind kind, float *w, float *m, float *v, const float *u, size_t n, const amp_coef *c, float *steps) {
    const int moments = amp_moments_of(kind, c->momentum);
    const amp_coef own = *c;          /* no store can change it, so it is read once */
    AMPI_FLOATS top = AMPI_SET(0.0f); /* of second moments */
    size_t i;
    int inf;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS wi = AMPI_LOAD(w + i), step;
        AMPI_FLOATS mi = moments > 0 ? AMPI_LOAD(m + i) : AMPI_SET(0.0f);
        AMPI_FLOATS vi = moments > 1 ? AMPI_LOAD(v + i) : AMPI_SET(0.0f);
        AMPI_FLOATS ui = AMPI_F(prepare_one)(AMPI_LOAD(u + i), &own);
        step = AMPI_F(update_one)(kind, &wi, &mi, &vi, ui, &own);
        AMPI_STORE(w + i, wi);
        if (moments > 0) AMPI_STORE(m + i, mi);
        if (moments > 1) AMPI_STORE(v + i, vi);
        if (moments > 1) top = AMPI_LARGER_ABS(top, vi);
        if (steps) AMPI_STORE(steps + i, step);
    }
    inf = AMPI_ANY(AMPI_AND(AMPI_ADD_WORDS(AMPI_BITS(top), AMPI_WORD(0x00800000u)), AMPI_WORD(0x80000000u)));
    AMPI_F(done)();
    return inf;
}
#  define AMP_X(kind, rule, moments) \
    AMPI_OUTER int AMPI_F(rule)( \
        float *w, float *m, float *v, const float *u, size_t n, const amp_coef *c, float *steps) { \
        const size_t i = n - n % AMPI_WIDTH; \
        int inf = AMPI_F(update)(kind, w, m, v, u, n, c, steps); \
        if (!AMPI_LEFT(i, n)) return inf; \
        if (m) m += i; \
        if (v) v += i; \
        return inf | ampi_scalar_##rule(w + i, m, v, u + i, n - i, c, steps ? steps + i : NULL); \
    }
AMP_UPDATE_LIST(AMP_X)
#  undef AMP_X
#endif

#if AMPI_PASS == AMPI_PASS_SCALAR || AMPI_PASS == AMPI_PASS_VECTOR
/* ---- sums, maxima, counts.   tests: tests/test_arrays.c, tests/test_step.c, tests/test_report.c ---- */
/* Terms of a part: numbers, or squares of products with `by`. */
AMPI_INNER AMPI_FLOATS AMPI_F(term)(const char *g, amp_dtype t, int square, AMPI_FLOATS by) {
    AMPI_WORDS bits = t == AMP_F32 ? AMPI_LOAD_WORDS(g) : AMPI_F(widened)(g, t);
    AMPI_FLOATS x = AMPI_AS_FLOATS(bits);
    if (!square) return x;
    x = AMPI_MUL(x, by);
    return AMPI_MUL(x, x);
}
/* From the first number to the last, as memory gives most; the lanes lie in the L1 cache. What is left of the last row
   goes through a padded copy. */
#  define AMPI_STRIP (4u * AMPI_WIDTH)
AMPI_INNER void AMPI_F(strip)(float *lane, const char *g, amp_dtype t, int square, AMPI_FLOATS by) {
    const size_t next = amp_dtype_size(t) * AMPI_WIDTH;
#  define AMPI_X(v) \
    AMPI_STORE( \
        lane + v * AMPI_WIDTH, AMPI_ADD(AMPI_LOAD(lane + v * AMPI_WIDTH), AMPI_F(term)(g + v * next, t, square, by)));
    AMPI_X(0)
    AMPI_X(1)
    AMPI_X(2)
    AMPI_X(3)
#  undef AMPI_X
}
AMPI_INNER float AMPI_F(part)(const char *g, amp_dtype t, size_t n, int square, float by) {
    const size_t size = amp_dtype_size(t);
    AMPI_LINES float lane[AMP_LANES];
    size_t lanes = AMPI_STRIP, h, i, j; /* lanes beyond the first power of two stay 0 */
    while (lanes < n && lanes < AMP_LANES)
        lanes *= 2u;
    memset(lane, 0, lanes * sizeof *lane);
    for (i = 0; i + AMPI_STRIP <= n; i += AMPI_STRIP)
        AMPI_F(strip)(lane + i % AMP_LANES, g + i * size, t, square, AMPI_SET(by));
    if (i < n) {
        char left[AMPI_STRIP * 4u];
        memset(left, 0, sizeof left);
        memcpy(left, g + i * size, (n - i) * size);
        AMPI_F(strip)(lane + i % AMP_LANES, left, t, square, AMPI_SET(by));
    }
    for (h = lanes / 2u; h >= AMPI_WIDTH; h /= 2u)
        for (j = 0; j < h; j += AMPI_WIDTH)
            AMPI_STORE(lane + j, AMPI_ADD(AMPI_LOAD(lane + j), AMPI_LOAD(lane + j + h)));
    AMPI_F(done)();
    for (; h; h /= 2u)
        for (j = 0; j < h; j++)
            lane[j] = amp_add(lane[j], lane[j + h]);
    return lane[0];
}
AMPI_OUTER float AMPI_F(sum)(const float *u, size_t n) { return AMPI_F(part)((const char *)u, AMP_F32, n, 0, 1.0f); }
AMPI_OUTER float AMPI_F(squares)(const char *g, amp_dtype t, size_t n, float by) {
    if (t == AMP_F32) return AMPI_F(part)(g, AMP_F32, n, 1, by);
    if (t == AMP_F16) return AMPI_F(part)(g, AMP_F16, n, 1, by);
    return AMPI_F(part)(g, AMP_BF16, n, 1, by);
}
/* Four rows are added to sums that are loaded and stored once. The last vector may lie over the one before it: it is
   added up first and stored last. */
AMPI_INNER AMPI_FLOATS AMPI_F(four_added)(const float *to, const char *x, size_t step, amp_dtype t, size_t c) {
    const AMPI_FLOATS by = AMPI_SET(1.0f);
    AMPI_FLOATS sum = AMPI_LOAD(to + c);
    x += c * amp_dtype_size(t);
    sum = AMPI_ADD(sum, AMPI_F(term)(x, t, 0, by));
    sum = AMPI_ADD(sum, AMPI_F(term)(x + step, t, 0, by));
    sum = AMPI_ADD(sum, AMPI_F(term)(x + 2u * step, t, 0, by));
    return AMPI_ADD(sum, AMPI_F(term)(x + 3u * step, t, 0, by));
}
AMPI_INNER void AMPI_F(add_four_of)(float *to, const char *x, size_t step, amp_dtype t, size_t n) {
    const size_t end = n - AMPI_WIDTH;
    const AMPI_FLOATS last = AMPI_F(four_added)(to, x, step, t, end);
    size_t c;
    for (c = 0; c < end; c += AMPI_WIDTH)
        AMPI_STORE(to + c, AMPI_F(four_added)(to, x, step, t, c));
    AMPI_STORE(to + end, last);
}
AMPI_OUTER void AMPI_F(add_four)(float *to, const char *x, size_t step, amp_dtype t, size_t n) {
    if (t == AMP_F32) AMPI_F(add_four_of)(to, x, step, AMP_F32, n);
#  ifdef AMPI_HAS_FMA
    if (t == AMP_F16) AMPI_F(add_four_of)(to, x, step, AMP_F16, n);
    if (t == AMP_BF16) AMPI_F(add_four_of)(to, x, step, AMP_BF16, n);
#  endif
    AMPI_F(done)();
}
AMPI_OUTER float AMPI_F(largest)(const float *u, size_t n, float top) {
    AMPI_FLOATS most = AMPI_SET(top);
    float lane[AMPI_WIDTH];
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH)
        most = AMPI_LARGER(AMPI_LOAD(u + i), most);
    AMPI_STORE(lane, most);
    for (; i < n; i++)
        top = u[i] > top ? u[i] : top;
    for (i = 0; i < AMPI_WIDTH; i++)
        top = lane[i] > top ? lane[i] : top;
    return top;
}
/* The sum of a row of few classes: AMPI_F(part) with a row in each lane. */
AMPI_INNER AMPI_FLOATS AMPI_F(few_sum)(const float *x, size_t classes) {
    AMPI_FLOATS s[AMPI_XENT_CLASSES];
    size_t c, h;
    for (c = 0; c < AMPI_XENT_CLASSES; c++)
        s[c] = c < classes ? AMPI_ADD(AMPI_SET(0.0f), AMPI_LOAD(x + c * AMPI_XENT_ROWS)) : AMPI_SET(0.0f);
    for (h = AMPI_XENT_CLASSES / 2u; h; h /= 2u)
        for (c = 0; c < h; c++)
            s[c] = AMPI_ADD(s[c], s[c + h]);
    return s[0];
}
AMPI_OUTER void AMPI_F(few_terms)(float *x, size_t classes, float *max, float *all, float *sum) {
    size_t i, c;
    for (i = 0; i < AMPI_XENT_ROWS; i += AMPI_WIDTH) {
        AMPI_FLOATS top = AMPI_SET(AMP_XENT_LEAST);
        if (all) AMPI_STORE(all + i, AMPI_F(few_sum)(x + i, classes));
        for (c = 0; c < classes; c++)
            top = AMPI_LARGER(AMPI_LOAD(x + c * AMPI_XENT_ROWS + i), top);
        for (c = 0; c < classes; c++) {
            float *at = x + c * AMPI_XENT_ROWS + i;
            AMPI_STORE(at, AMPI_F(exp_term)(AMPI_SUB(AMPI_LOAD(at), top)));
        }
        AMPI_STORE(max + i, top);
        AMPI_STORE(sum + i, AMPI_F(few_sum)(x + i, classes));
    }
    AMPI_F(done)();
}
AMPI_OUTER void AMPI_F(few_shares)(float *x, size_t classes, const float *by, const float *less) {
    size_t i, c;
    for (c = 0; c < classes; c++)
        for (i = 0; i < AMPI_XENT_ROWS; i += AMPI_WIDTH) {
            float *at = x + c * AMPI_XENT_ROWS + i;
            AMPI_STORE(at, AMPI_FUSE(AMPI_LOAD(at), AMPI_LOAD(by + i), AMPI_NEGATIVE(AMPI_LOAD(less + i))));
        }
    AMPI_F(done)();
}
/* |x| as bits, 0 for NaN. */
AMPI_INNER AMPI_WORDS AMPI_F(size_word)(AMPI_FLOATS x) {
    AMPI_WORDS a = AMPI_AND(AMPI_BITS(x), AMPI_WORD(0x7fffffffu));
    return AMPI_SELECT(AMPI_GREATER(a, AMPI_WORD(0x7f800000u)), AMPI_WORD(0), a);
}
AMPI_INNER AMPI_WORDS AMPI_F(larger_size)(AMPI_WORDS most, AMPI_FLOATS x) {
    return AMPI_MAX(most, AMPI_F(size_word)(x));
}
AMPI_INNER uint32_t AMPI_F(largest_word)(AMPI_WORDS most, uint32_t top) {
    uint32_t lane[AMPI_WIDTH];
    size_t i;
    AMPI_STORE_WORDS(lane, most);
    for (i = 0; i < AMPI_WIDTH; i++)
        top = top < lane[i] ? lane[i] : top;
    return top;
}
/* One maximum is carried along, not two: gcc 12 with -O3 loses elements of two (scalar). */
AMPI_OUTER uint32_t AMPI_F(amax)(const float *u, size_t n, uint32_t amax) {
    AMPI_WORDS most = AMPI_WORD(0);
    size_t i;
    for (i = 0; i + 2u * AMPI_WIDTH <= n; i += 2u * AMPI_WIDTH) {
        AMPI_WORDS pair = AMPI_F(larger_size)(AMPI_F(size_word)(AMPI_LOAD(u + i)), AMPI_LOAD(u + i + AMPI_WIDTH));
        most = AMPI_MAX(most, pair);
    }
    for (; i + AMPI_WIDTH <= n; i += AMPI_WIDTH)
        most = AMPI_F(larger_size)(most, AMPI_LOAD(u + i));
    amax = AMPI_F(largest_word)(most, amax);
    AMPI_F(done)();
    return AMPI_LEFT(i, n) ? ampi_scalar_amax(u + i, n - i, amax) : amax;
}
AMPI_OUTER uint32_t AMPI_F(fit_to)(float *to, const float *u, size_t n, float by, uint32_t limit, uint32_t amax) {
    AMPI_WORDS most = AMPI_WORD(0);
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS x = AMPI_LOAD(u + i);
        most = AMPI_F(larger_size)(most, x);
        AMPI_STORE(to + i, AMPI_F(fit_one)(x, AMPI_SET(by), AMPI_WORD(limit)));
    }
    amax = AMPI_F(largest_word)(most, amax);
    AMPI_F(done)();
    return AMPI_LEFT(i, n) ? ampi_scalar_fit_to(to + i, u + i, n - i, by, limit, amax) : amax;
}
/* Of a product's factors: fused operations make a NaN quiet. */
AMPI_INNER AMPI_FLOATS AMPI_F(factor)(const char *p, amp_dtype t) {
    if (t == AMP_F32) return AMPI_AS_FLOATS(AMPI_LOAD_WORDS(p));
    if (t == AMP_BF16) return AMPI_AS_FLOATS(AMPI_SHL(AMPI_F(load16)(p), 16));
    return AMPI_AS_FLOATS(AMPI_F(widened)(p, t));
}
/* Rows of b that are read at a time: with four of them 16 sums and their terms want 32 registers. */
#  if defined(AMPI_HAS_FMA) && AMPI_WIDTH != 8
#    define AMPI_ROWS_AT_ONCE 4
#  else
#    define AMPI_ROWS_AT_ONCE 2
#  endif
/* lane[r * W .. r * W + W]: the products of a with row r of b, added up by lanes, for r < `rows`, which is the constant
   above; n: a multiple of 4 W. The processor fetches four rows by itself; two are fetched here. */
AMPI_INNER void AMPI_F(rows_of)(
    amp_dtype t, int rows, float *lane, const float *a, const char *b, size_t step, size_t n) {
    const size_t next = amp_dtype_size(t) * AMPI_WIDTH;
    const AMPI_FLOATS z = AMPI_SET(0.0f);
    AMPI_FLOATS p[4] = {z, z, z, z}, q[4] = {z, z, z, z}, r[4] = {z, z, z, z}, s[4] = {z, z, z, z}, x;
    for (; n; n -= 4u * AMPI_WIDTH, a += 4u * AMPI_WIDTH, b += 4u * next) {
#  define AMPI_X(v) \
    x = AMPI_LOAD(a + v * AMPI_WIDTH); \
    AMPI_GUARD(x); /* in a register: gcc would load it once for each row */ \
    p[v] = AMPI_FMA(x, AMPI_F(factor)(b + v * next, t), p[v]); \
    q[v] = AMPI_FMA(x, AMPI_F(factor)(b + step + v * next, t), q[v]); \
    if (rows == 4) r[v] = AMPI_FMA(x, AMPI_F(factor)(b + 2u * step + v * next, t), r[v]); \
    if (rows == 4) s[v] = AMPI_FMA(x, AMPI_F(factor)(b + 3u * step + v * next, t), s[v]); \
    if (rows == 2 && v * next % 64u == 0) AMPI_PREFETCH(b + 2u * step + v * next); \
    if (rows == 2 && v * next % 64u == 0) AMPI_PREFETCH(b + 3u * step + v * next);
        AMPI_X(0)
        AMPI_X(1)
        AMPI_X(2)
        AMPI_X(3)
#  undef AMPI_X
    }
    AMPI_STORE(lane, AMPI_ADD(AMPI_ADD(p[0], p[1]), AMPI_ADD(p[2], p[3])));
    AMPI_STORE(lane + AMPI_WIDTH, AMPI_ADD(AMPI_ADD(q[0], q[1]), AMPI_ADD(q[2], q[3])));
    if (rows == 2) return;
    AMPI_STORE(lane + 2u * AMPI_WIDTH, AMPI_ADD(AMPI_ADD(r[0], r[1]), AMPI_ADD(r[2], r[3])));
    AMPI_STORE(lane + 3u * AMPI_WIDTH, AMPI_ADD(AMPI_ADD(s[0], s[1]), AMPI_ADD(s[2], s[3])));
}
AMPI_OUTER void AMPI_F(rows)(float *lane, const float *a, const char *b, size_t step, amp_dtype t, size_t n) {
    if (t == AMP_F32) AMPI_F(rows_of)(AMP_F32, AMPI_ROWS_AT_ONCE, lane, a, b, step, n);
#  ifdef AMPI_HAS_FMA
    if (t == AMP_F16) AMPI_F(rows_of)(AMP_F16, AMPI_ROWS_AT_ONCE, lane, a, b, step, n);
    if (t == AMP_BF16) AMPI_F(rows_of)(AMP_BF16, AMPI_ROWS_AT_ONCE, lane, a, b, step, n);
#  endif
}
/* to[r] += a times row r of b, r < count, which is 4 or AMPI_DOT_ROWS. */
AMPI_OUTER void AMPI_F(some_dots)(
    float *to, size_t count, const float *a, const char *b, size_t step, amp_dtype t, size_t n) {
    const size_t size = amp_dtype_size(t), rest = n % (4u * AMPI_WIDTH), whole = n - rest;
    float lane[AMPI_DOT_ROWS * AMPI_WIDTH], left[AMPI_DOT_ROWS * 4u * AMPI_WIDTH], sum[AMPI_DOT_ROWS] = {0};
    const float *last = (const float *)(const void *)b + whole;
    size_t ld = step / 4u, r;
    for (r = 0; r < count && whole; r += AMPI_ROWS_AT_ONCE)
        AMPI_F(rows)(lane + r * AMPI_WIDTH, a, b + r * step, step, t, whole);
    if (t != AMP_F32 && rest) {
        for (r = 0; r < count; r++) {
            const char *from = b + r * step + whole * size;
            if (t == AMP_F16)
                AMPI_F(widen_f16)(left + r * 4u * AMPI_WIDTH, from, rest);
            else
                AMPI_F(widen_bf16)(left + r * 4u * AMPI_WIDTH, from, rest);
        }
        last = left;
        ld = 4u * AMPI_WIDTH;
    }
    AMPI_F(done)();
    if (whole) ampi_chains(sum, count, lane, AMPI_WIDTH, AMPI_WIDTH, NULL);
    if (rest) ampi_chains(sum, count, last, ld, rest, a + whole);
    for (r = 0; r < count; r++)
        to[r] += sum[r];
}
AMPI_OUTER void AMPI_F(dots)(float *to, size_t rows, const float *a, const char *b, size_t ld, amp_dtype t, size_t n) {
    const size_t size = amp_dtype_size(t), most = n <= AMPI_DOT ? AMPI_DOT_ROWS : 4u;
    size_t r, each, k, part;
    for (r = 0; r < rows && rows - r >= 4; r += each)
        for (each = rows - r < most ? 4u : most, k = 0; k < n; k += part) {
            part = n - k < AMPI_DOT ? n - k : AMPI_DOT;
            AMPI_F(some_dots)(to + r, each, a + k, b + (r * ld + k) * size, ld * size, t, part);
        }
    for (; r < rows; r++)
        for (k = 0; k < n; k += part) { /* one row, taken for 4 */
            float four[4] = {to[r], 0, 0, 0};
            part = n - k < AMPI_DOT ? n - k : AMPI_DOT;
            AMPI_F(some_dots)(four, 4, a + k, b + (r * ld + k) * size, 0, t, part);
            to[r] = four[0];
        }
}
/* The exponents of one vector; what is found on the way goes into the counters. */
AMPI_INNER AMPI_WORDS AMPI_F(exponents)(const float *u, AMPI_WORDS *most, AMPI_WORDS *zero, AMPI_WORDS *nan) {
    const AMPI_WORDS none = AMPI_WORD(0), one = AMPI_WORD(1), inf = AMPI_WORD(0x7f800000u);
    AMPI_WORDS a = AMPI_AND(AMPI_BITS(AMPI_LOAD(u)), AMPI_WORD(0x7fffffffu));
    *most = AMPI_MAX(*most, AMPI_SELECT(AMPI_GREATER(inf, a), a, none));
    *zero = AMPI_ADD_WORDS(*zero, AMPI_SELECT(AMPI_GREATER(one, a), one, none));
    *nan = AMPI_ADD_WORDS(*nan, AMPI_SELECT(AMPI_GREATER(a, inf), one, none));
    return AMPI_SHR(a, 23);
}
AMPI_OUTER void AMPI_F(count)(uint8_t *exponent, const float *u, size_t n, uint32_t found[3]) {
    AMPI_WORDS most = AMPI_WORD(0), zero = most, nan = most;
    uint32_t lane[3][AMPI_WIDTH];
    size_t i;
    for (i = 0; i < n; i += 4u * AMPI_WIDTH) {
        AMPI_WORDS e0 = AMPI_F(exponents)(u + i, &most, &zero, &nan);
        AMPI_WORDS e1 = AMPI_F(exponents)(u + i + AMPI_WIDTH, &most, &zero, &nan);
        AMPI_WORDS e2 = AMPI_F(exponents)(u + i + 2u * AMPI_WIDTH, &most, &zero, &nan);
        AMPI_WORDS e3 = AMPI_F(exponents)(u + i + 3u * AMPI_WIDTH, &most, &zero, &nan);
        AMPI_F(store8)(exponent + i, e0, e1, e2, e3);
    }
    AMPI_STORE_WORDS(lane[0], most);
    AMPI_STORE_WORDS(lane[1], zero);
    AMPI_STORE_WORDS(lane[2], nan);
    for (i = 0; i < AMPI_WIDTH; i++) {
        found[0] = found[0] < lane[0][i] ? lane[0][i] : found[0];
        found[1] += lane[1][i];
        found[2] += lane[2][i];
    }
}
#endif

/* ---- moments in 8 bits: see >>backend, amp_moment_load.   tests: tests/test_moments.c ---- */
#if AMPI_PASS == AMPI_PASS_UPDATE || AMPI_PASS == AMPI_PASS_VECTOR
/* which is 0 or 1, a constant wherever these are inlined: m and a sign, or v. Of s = k^2, m has s (s + a) and v s^2. */
AMPI_INNER AMPI_FLOATS AMPI_F(moment_power)(AMPI_FLOATS s, float a, uint32_t which) {
    return AMPI_MUL(s, which ? s : AMPI_ADD(s, AMPI_SET(a)));
}
AMPI_INNER AMPI_FLOATS AMPI_F(moment_value)(AMPI_WORDS code, AMPI_FLOATS scale, uint32_t which) {
    AMPI_WORDS k = AMPI_AND(code, AMPI_WORD(AMPI_MOMENT_TOP(which)));
    AMPI_FLOATS x = AMPI_SUB(AMPI_AS_FLOATS(AMPI_OR(k, AMPI_WORD(0x4b000000u))), AMPI_SET(8388608.0f)); /* k */
    x = AMPI_MUL(x, AMPI_SET(which ? 0.00392156886f : 0.00787401572f));
    x = AMPI_F(moment_power)(AMPI_MUL(x, x), 0.5f, which);
    if (!which) x = AMPI_MUL(x, AMPI_SET(0.666666687f)); /* 1 for k = 127 */
    x = AMPI_MUL(x, scale);
    if (which) return x;
    return AMPI_AS_FLOATS(AMPI_OR(AMPI_BITS(x), AMPI_SHL(AMPI_AND(code, AMPI_WORD(0x80u)), 24)));
}
/* The larger of x and 2^-64: what a root needs. */
AMPI_INNER AMPI_FLOATS AMPI_F(moment_least)(AMPI_FLOATS x) {
    return AMPI_AS_FLOATS(AMPI_MAX(AMPI_BITS(x), AMPI_WORD(0x1f800000u)));
}
AMPI_INNER AMPI_FLOATS AMPI_F(moment_root)(AMPI_FLOATS q, uint32_t which) { /* k / top */
    AMPI_FLOATS s;
    if (which) return AMPI_ROOT(AMPI_ROOT(q));
    s = AMPI_ROOT(AMPI_ADD(AMPI_MUL(q, AMPI_SET(1.5f)), AMPI_SET(0.0625f)));
    return AMPI_ROOT(AMPI_F(moment_least)(AMPI_SUB(s, AMPI_SET(0.25f))));
}
/* k is rounded down, and one more if the share lies above the point between the two neighbours that the random number u
   in (0, 1) says. Where a root is rounded across a whole number, u has the last word, too. Of Inf and NaN the share
   is 1. */
AMPI_INNER AMPI_WORDS AMPI_F(moment_code)(AMPI_FLOATS x, AMPI_FLOATS inverse, AMPI_WORDS random, uint32_t which) {
    const float top = (float)AMPI_MOMENT_TOP(which), steps = which ? 4228250624.0f : 390216960.0f, a = 8064.5f;
    AMPI_WORDS size = AMPI_AND(AMPI_BITS(x), AMPI_WORD(0x7fffffffu)), code, more;
    AMPI_WORDS share = AMPI_BITS(AMPI_F(moment_least)(AMPI_MUL(AMPI_AS_FLOATS(size), inverse)));
    AMPI_FLOATS q = AMPI_AS_FLOATS(AMPI_MIN(share, AMPI_WORD(0x3f800000u))), k, low, high, u;
    k = AMPI_SUB(AMPI_MUL(AMPI_F(moment_root)(q, which), AMPI_SET(top)), AMPI_SET(0.5f));
    k = AMPI_ADD(k, AMPI_SET(12582912.0f));
    code = AMPI_SUB_WORDS(AMPI_BITS(k), AMPI_WORD(0x4b400000u));
    low = AMPI_SUB(k, AMPI_SET(12582912.0f));
    high = AMPI_ADD(low, AMPI_SET(1.0f));
    low = AMPI_F(moment_power)(AMPI_MUL(low, low), a, which);
    high = AMPI_F(moment_power)(AMPI_MUL(high, high), a, which);
    if (which) random = AMPI_SHR(random, 9); /* 16 bits, in the middle of their interval */
    if (!which) random = AMPI_SHL(random, 7);
    random = AMPI_OR(AMPI_AND(random, AMPI_WORD(0x7fff80u)), AMPI_WORD(0x3f800040u));
    u = AMPI_SUB(AMPI_AS_FLOATS(random), AMPI_SET(1.0f));
    u = AMPI_ADD(low, AMPI_MUL(u, AMPI_SUB(high, low)));
    more = AMPI_SHR(AMPI_SUB_WORDS(AMPI_BITS(u), AMPI_BITS(AMPI_MUL(q, AMPI_SET(steps)))), 31); /* of what is >= 0 */
    code = AMPI_ADD_WORDS(code, more);
    if (which) return AMPI_MAX(code, AMPI_MIN(size, AMPI_WORD(1))); /* no 0 but of 0 */
    return AMPI_OR(code, AMPI_AND(AMPI_SHR(AMPI_BITS(x), 24), AMPI_WORD(0x80u)));
}
#endif

#if AMPI_PASS == AMPI_PASS_SCALAR || AMPI_PASS == AMPI_PASS_VECTOR
/* Blocks of n elements, the last one perhaps short: there floats are written, and codes read and written, up to a
   multiple of 64. */
AMPI_INNER void AMPI_F(moment_widen_all)(float *x, const uint8_t *code, const float *scale, size_t n, uint32_t which) {
    size_t i, k;
    for (i = 0; i < n; i += AMP_MOMENT_BLOCK) {
        const AMPI_FLOATS s = AMPI_SET(scale[i / AMP_MOMENT_BLOCK]);
        for (k = i; k < n && k < i + AMP_MOMENT_BLOCK; k += AMPI_WIDTH)
            AMPI_STORE(x + k, AMPI_F(moment_value)(AMPI_F(load8)(code + k), s, which));
    }
}
AMPI_OUTER void AMPI_F(moment_widen)(float *x, const uint8_t *code, const float *scale, size_t n, uint32_t which) {
    if (which)
        AMPI_F(moment_widen_all)(x, code, scale, n, 1);
    else
        AMPI_F(moment_widen_all)(x, code, scale, n, 0);
    AMPI_F(done)();
}
AMPI_INNER void AMPI_F(moment_codes)(uint8_t *to, const float *x, float inverse, const uint32_t *r, uint32_t which) {
    uint32_t code[4u * AMPI_WIDTH];
    size_t i;
    for (i = 0; i < 4u * AMPI_WIDTH; i += AMPI_WIDTH)
        AMPI_STORE_WORDS(
            code + i, AMPI_F(moment_code)(AMPI_LOAD(x + i), AMPI_SET(inverse), AMPI_LOAD_WORDS(r + i), which));
    AMPI_F(store8)(to, AMPI_LOAD_WORDS(code), AMPI_LOAD_WORDS(code + AMPI_WIDTH),
        AMPI_LOAD_WORDS(code + 2u * AMPI_WIDTH), AMPI_LOAD_WORDS(code + 3u * AMPI_WIDTH));
}
AMPI_OUTER void AMPI_F(moment_narrow)(
    uint8_t *code, float *scale, float *x, const uint32_t *r, size_t n, uint32_t which) {
    size_t i, k, end;
    for (; n % 64u; n++)
        x[n] = 0.0f;
    for (i = 0; i < n; i = end) {
        const float s = ampi_moment_scale(AMPI_F(amax)(x + i, n - i < AMP_MOMENT_BLOCK ? n - i : AMP_MOMENT_BLOCK, 0));
        const float inverse = ampi_moment_inverse(s);
        scale[i / AMP_MOMENT_BLOCK] = s;
        end = n - i < AMP_MOMENT_BLOCK ? n : i + AMP_MOMENT_BLOCK;
        for (k = i; k < end; k += 4u * AMPI_WIDTH)
            if (which)
                AMPI_F(moment_codes)(code + k, x + k, inverse, r + k, 1);
            else
                AMPI_F(moment_codes)(code + k, x + k, inverse, r + k, 0);
    }
    AMPI_F(done)();
}
#endif

/* ---- random words, stochastic and saturating rounding, finite checks.   tests: tests/test_arrays.c ---- */
#if AMPI_PASS == AMPI_PASS_SCALAR
AMPI_OUTER void AMPI_F(round)(void *d, amp_dtype t, const void *s, size_t n, const uint32_t *r, int saturate) {
    amp_rounding how = r ? AMP_STOCHASTIC : AMP_NEAREST;
    size_t i;
    uint32_t u;
    for (i = 0; i < n; i++) {
        memcpy(&u, (const char *)s + 4 * i, 4);
        ampi_store_pattern(d, t, i, ampi_encode(u, t, how, r ? r[i] : 0, saturate));
    }
}
AMPI_OUTER const uint32_t *AMPI_F(random)(uint32_t *buf, size_t n, uint64_t seed, uint64_t stream, uint64_t at) {
    size_t i;
    for (i = 0; i < n + (at & 3u); i += 4)
        amp_philox(buf + i, seed, stream, (at >> 2) + i / 4);
    return buf + (at & 3u);
}
AMPI_OUTER int AMPI_F(is_bad)(const void *p, size_t bytes, amp_dtype t) {
    uint32_t e = ampi_exponents(t), sign = ampi_signs(t), any = 0, x[16], k;
    size_t i;
    for (i = 0; i + 64 <= bytes; i += 64) {
        memcpy(x, (const char *)p + i, 64);
        for (k = 0; k < 16; k++)
            any |= (x[k] & e) + (sign - e);
    }
    if (i < bytes) {
        memset(x, 0, 64);
        memcpy(x, (const char *)p + i, bytes - i);
        for (k = 0; k < 16; k++)
            any |= (x[k] & e) + (sign - e);
    }
    return (any & sign) != 0;
}
#endif

#if AMPI_PASS == AMPI_PASS_VECTOR
/* ---- stochastic and saturating rounding: see ampi_encode for the fixed-point number q.F; here F's carry is looked at
   by itself ---- */
#  ifdef AMPI_HAS_SHIFT_EACH
/* q and F of |x|, whose exponent and 24-bit mantissa are e and m; counts beyond 31 give 0 */
AMPI_INNER AMPI_WORDS AMPI_F(carry)(AMPI_WORDS m, AMPI_WORDS shift, AMPI_WORDS random) {
    AMPI_WORDS high = AMPI_F(shl_each)(m, AMPI_SUB_WORDS(AMPI_WORD(32), shift));
    AMPI_WORDS fraction = AMPI_OR(high, AMPI_F(shr_each)(m, AMPI_SUB_WORDS(shift, AMPI_WORD(32))));
    AMPI_WORDS below = AMPI_XOR(random, AMPI_WORD(0x7fffffffu));
    AMPI_MASK carries = AMPI_GREATER(AMPI_XOR(fraction, AMPI_WORD(0x80000000u)), below);
    return AMPI_SELECT(carries, AMPI_WORD(1), AMPI_WORD(0));
}
AMPI_INNER AMPI_WORDS AMPI_F(encode_how)(const char *s, const uint32_t *random, amp_dtype t, int saturate) {
    const ampi_format f = ampi_format_of(t);
    AMPI_WORDS x = AMPI_LOAD_WORDS(s), a, e, least, m, shift, q;
    if (!random) return AMPI_F(encode)(x, t, saturate ? f.maxf : f.over);
    a = AMPI_AND(x, AMPI_WORD(0x7fffffffu));
    e = AMPI_SHR(a, 23);
    m = AMPI_SELECT(AMPI_GREATER(e, AMPI_WORD(0)), AMPI_WORD(0x800000u), AMPI_WORD(0)); /* the implicit bit */
    m = AMPI_OR(AMPI_AND(a, AMPI_WORD(0x7fffffu)), m);
    e = AMPI_MAX(e, AMPI_WORD(1));
    least = AMPI_MAX(e, AMPI_WORD(f.emin));
    shift = AMPI_ADD_WORDS(AMPI_WORD(23u - f.mant), AMPI_SUB_WORDS(least, e));
    q = AMPI_ADD_WORDS(AMPI_F(shr_each)(m, shift), AMPI_F(carry)(m, shift, AMPI_LOAD_WORDS(random)));
    q = AMPI_ADD_WORDS(q, AMPI_SHL(AMPI_SUB_WORDS(least, AMPI_WORD(f.emin)), f.mant));
    q = AMPI_MIN(q, AMPI_WORD(f.maxf));
    if (!saturate) q = AMPI_SELECT(AMPI_GREATER(a, AMPI_WORD(f.limit - 1u)), AMPI_WORD(f.over), q);
    return AMPI_F(finish)(x, a, q, t);
}
AMPI_INNER void AMPI_F(round_step)(char *d, const char *s, const uint32_t *r, amp_dtype t, int saturate) {
    uint32_t v[AMPI_STEP];
    size_t i; /* a loop: four copies of this for each format would be a tenth of the path's code */
    for (i = 0; i < AMPI_STEP; i += AMPI_WIDTH)
        AMPI_STORE_WORDS(v + i, AMPI_F(encode_how)(s + 4u * i, r ? r + i : NULL, t, saturate));
    AMPI_F(store_words_step)(d, t, v);
}
AMPI_OUTER void AMPI_F(round)(void *dst, amp_dtype t, const void *src, size_t n, const uint32_t *r, int saturate) {
    const size_t size = AMPI_STEP * amp_dtype_size(t);
    char *d = (char *)dst;
    const char *s = (const char *)src;
    for (; n >= AMPI_STEP; n -= AMPI_STEP, d += size, s += AMPI_STEP * 4u) {
#    define AMP_X(T, ...) \
    if (t == AMP_##T) AMPI_F(round_step)(d, s, r, AMP_##T, saturate);
        AMPI_FORMATS(AMP_X)
#    undef AMP_X
        if (r) r += AMPI_STEP;
    }
    AMPI_F(done)();
    ampi_scalar_round(d, t, s, n, r, saturate);
}
#  endif

/* ---- amp_philox in lanes: the high halves may hold anything, a product does not look at them ---- */
AMPI_OUTER const uint32_t *AMPI_F(random)(uint32_t *buf, size_t n, uint64_t seed, uint64_t stream, uint64_t at) {
    const AMPI_WORDS64 m0 = AMPI_F(word64)(0xD2511F53u), m1 = AMPI_F(word64)(0xCD9E8D57u);
    AMPI_WORDS64 counter = AMPI_F(add64)(AMPI_F(word64)(at >> 2), AMPI_F(counters)());
    size_t i;
    for (i = 0; i < n + (at & 3u); i += 2u * AMPI_WIDTH) {
        AMPI_WORDS64 c0 = counter, c1 = AMPI_F(high32)(counter);
        AMPI_WORDS64 c2 = AMPI_F(word64)(stream), c3 = AMPI_F(word64)(stream >> 32);
        uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32), k;
        for (k = 0; k < 10u; k++) {
            AMPI_WORDS64 p0 = AMPI_F(mul32)(c0, m0), p1 = AMPI_F(mul32)(c2, m1);
            c0 = AMPI_F(xor64)(AMPI_F(xor64)(AMPI_F(high32)(p1), c1), AMPI_F(word64)(k0));
            c1 = p1;
            c2 = AMPI_F(xor64)(AMPI_F(xor64)(AMPI_F(high32)(p0), c3), AMPI_F(word64)(k1));
            c3 = p0;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        c0 = AMPI_F(join32)(c0, c1);
        c2 = AMPI_F(join32)(c2, c3);
        AMPI_F(store64)(buf + i, AMPI_F(even64)(c0, c2));
        AMPI_F(store64)(buf + i + AMPI_WIDTH, AMPI_F(odd64)(c0, c2));
        counter = AMPI_F(add64)(counter, AMPI_F(word64)(AMPI_WIDTH / 2u));
    }
    return buf + (at & 3u);
}

/* ---- finite checks: see ampi_scalar_is_bad ---- */
AMPI_INNER AMPI_WORDS AMPI_F(carried)(const char *p, AMPI_WORDS exponents, AMPI_WORDS one) {
    return AMPI_ADD_WORDS(AMPI_AND(AMPI_LOAD_WORDS(p), exponents), one);
}
AMPI_OUTER int AMPI_F(is_bad)(const void *src, size_t bytes, amp_dtype t) {
    const AMPI_WORDS e = AMPI_WORD(ampi_exponents(t)), one = AMPI_WORD(ampi_signs(t) - ampi_exponents(t));
    const size_t step = 16u * AMPI_WIDTH;
    const char *p = (const char *)src;
    AMPI_WORDS any = AMPI_WORD(0);
    for (; bytes >= step; bytes -= step, p += step) {
        AMPI_WORDS v0 = AMPI_F(carried)(p, e, one);
        AMPI_WORDS v1 = AMPI_F(carried)(p + 4u * AMPI_WIDTH, e, one);
        AMPI_WORDS v2 = AMPI_F(carried)(p + 8u * AMPI_WIDTH, e, one);
        AMPI_WORDS v3 = AMPI_F(carried)(p + 12u * AMPI_WIDTH, e, one);
        AMPI_PREFETCH(p + 2048); /* each line of the step */
        if (AMPI_WIDTH > 4u) AMPI_PREFETCH(p + 2112);
        if (AMPI_WIDTH > 8u) AMPI_PREFETCH(p + 2176);
        if (AMPI_WIDTH > 8u) AMPI_PREFETCH(p + 2240);
        any = AMPI_OR(any, AMPI_OR(AMPI_OR(v0, v1), AMPI_OR(v2, v3)));
    }
    if (AMPI_ANY(AMPI_AND(any, AMPI_WORD(ampi_signs(t))))) return 1;
    return ampi_scalar_is_bad(p, bytes, t);
}

#  ifdef AMPI_HAS_STREAM
AMPI_OUTER void AMPI_F(stream)(char *dst, const char *buf, size_t pages, const char *next, size_t step) {
    size_t i, page, at, piece = 4096 / pages;
    for (i = 0; i < piece; i += 64) {
        for (page = 0; page < pages; page++) {
            const char *from = next + (page * 64 + i / 64) * step;
            AMPI_F(stream64)(dst + page * 4096 + i, buf + page * piece + i);
            for (at = 0; at < step; at += 64)
                AMPI_PREFETCH(from + at);
        }
    }
}
#  endif
#endif /* AMPI_PASS_VECTOR */

/* ---- weights in 16 + 16 bits and 16 + 8: elements at ... at + n of p, by amp_pair_unpack and amp_pair_pack, whose
   rules the lanes repeat.   tests: tests/test_layouts.c ---- */
#if AMPI_PASS == AMPI_PASS_SCALAR
AMPI_OUTER void AMPI_F(pair_widen)(float *w, const amp_param_entry *p, size_t at, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        w[i] = amp_weight_load(p, at + i);
}
AMPI_OUTER void AMPI_F(pair_narrow)(const amp_param_entry *p, size_t at, const float *w, const uint32_t *r, size_t n) {
    const amp_rounding how = r ? AMP_STOCHASTIC : AMP_NEAREST;
    size_t i;
    for (i = 0; i < n; i++)
        (void)ampi_pair_store(p, at + i, w[i], how, r ? r[i] : 0u);
}
#endif

#if AMPI_PASS == AMPI_PASS_VECTOR && defined(AMPI_HAS_SHIFT_EACH)
/* SPLIT and KAHAN: what is left of w beside x, its model copy. For FP16 in units of 2^-25 of x's exponent, of at least
   -14: see amp_split_pack. */
AMPI_INNER AMPI_WORDS AMPI_F(half_exponent)(AMPI_WORDS x) {
    return AMPI_MAX(AMPI_AND(x, AMPI_WORD(0x7f800000u)), AMPI_WORD(113u << 23));
}
AMPI_INNER AMPI_WORDS AMPI_F(pair_rest)(AMPI_FLOATS w, AMPI_WORDS x, amp_master layout, amp_dtype t) {
    const int exact = layout == AMP_MASTER_SPLIT && t == AMP_BF16;
    const AMPI_WORDS size = AMPI_AND(x, AMPI_WORD(0x7fffffffu));
    const AMPI_MASK kept = AMPI_GREATER(AMPI_WORD(exact ? 0x7f800001u : 0x7f800000u), size);
    AMPI_WORDS rest;
    if (exact) {
        rest = AMPI_MIN(AMPI_SUB_WORDS(AMPI_BITS(w), x), AMPI_WORD(32767));
    } else if (t == AMP_BF16) {
        rest = AMPI_F(encode)(AMPI_BITS(AMPI_SUB(w, AMPI_AS_FLOATS(x))), t, ampi_format_of(t).over);
    } else {
        const AMPI_WORDS units = AMPI_SUB_WORDS(AMPI_WORD(279u << 23), AMPI_F(half_exponent)(x));
        const AMPI_FLOATS left = AMPI_SUB(w, AMPI_AS_FLOATS(x));
        const AMPI_FLOATS r = AMPI_MUL(left, AMPI_AS_FLOATS(units));
        rest = AMPI_BITS(AMPI_ADD(r, AMPI_SET(12582912.0f)));
    }
    return AMPI_AND(rest, AMPI_SELECT(kept, AMPI_WORD(0xffffu), AMPI_WORD(0)));
}
AMPI_INNER AMPI_WORDS AMPI_F(pair_joined)(AMPI_WORDS x, AMPI_WORDS low, amp_master layout, amp_dtype t) {
    const AMPI_WORDS size = AMPI_AND(x, AMPI_WORD(0x7fffffffu));
    const AMPI_WORDS r = AMPI_SUB_WORDS(AMPI_XOR(low, AMPI_WORD(0x8000u)), AMPI_WORD(0x8000u));
    AMPI_FLOATS rest;
    if (layout == AMP_MASTER_KAHAN) {
        rest = AMPI_ADD(AMPI_AS_FLOATS(x), AMPI_AS_FLOATS(AMPI_SHL(low, 16)));
        low = AMPI_AND(low, AMPI_WORD(0x7fffu));
    } else if (t == AMP_BF16) {
        return AMPI_SELECT(AMPI_GREATER(size, AMPI_WORD(0x7f800000u)), x, AMPI_ADD_WORDS(x, r));
    } else {
        const AMPI_WORDS unit = AMPI_SUB_WORDS(AMPI_F(half_exponent)(x), AMPI_WORD(25u << 23));
        const AMPI_WORDS moved = AMPI_ADD_WORDS(r, AMPI_WORD(0x4b400000u));
        rest = AMPI_SUB(AMPI_AS_FLOATS(moved), AMPI_SET(12582912.0f)); /* r */
        rest = AMPI_MUL(rest, AMPI_AS_FLOATS(unit));
        rest = AMPI_ADD(AMPI_AS_FLOATS(x), rest);
        low = AMPI_SELECT(AMPI_GREATER(AMPI_WORD(0x7f800000u), size), low, AMPI_WORD(0));
    }
    return AMPI_SELECT(AMPI_GREATER(low, AMPI_WORD(0)), AMPI_BITS(rest), x); /* -0 + 0 would be 0 */
}
/* SPLIT8: see ampi_split8_round and the two after it. */
AMPI_INNER AMPI_WORDS AMPI_F(split8_tiny)(AMPI_WORDS a, const uint32_t *random, ampi_format f) {
    const AMPI_WORDS magic = AMPI_WORD((f.emin + 15u - f.mant) << 23);
    if (random) {
        const AMPI_WORDS e = AMPI_SHR(a, 23);
        const AMPI_WORDS hidden = AMPI_SELECT(AMPI_GREATER(e, AMPI_WORD(0)), AMPI_WORD(0x800000u), AMPI_WORD(0));
        const AMPI_WORDS m = AMPI_OR(AMPI_AND(a, AMPI_WORD(0x7fffffu)), hidden);
        const AMPI_WORDS shift = AMPI_SUB_WORDS(AMPI_WORD(15u - f.mant + f.emin), AMPI_MAX(e, AMPI_WORD(1)));
        return AMPI_ADD_WORDS(AMPI_F(shr_each)(m, shift), AMPI_F(carry)(m, shift, AMPI_LOAD_WORDS(random)));
    }
    return AMPI_SUB_WORDS(AMPI_BITS(AMPI_F(magic_add)(AMPI_AS_FLOATS(a), AMPI_AS_FLOATS(magic))), magic);
}
AMPI_INNER AMPI_WORDS AMPI_F(split8_rounded)(AMPI_WORDS a, const uint32_t *random, amp_dtype t) {
    const ampi_format f = ampi_format_of(t);
    const uint32_t drop = 15u - f.mant;
    AMPI_WORDS more = AMPI_AND(AMPI_SHR(a, drop), AMPI_WORD(1)), q;
    more = AMPI_ADD_WORDS(more, AMPI_WORD((1u << (drop - 1u)) - 1u));
    if (random) more = AMPI_SHR(AMPI_LOAD_WORDS(random), 32u - drop);
    q = AMPI_SUB_WORDS(a, AMPI_WORD((f.emin - 1u) << 23));
    q = AMPI_SHR(AMPI_ADD_WORDS(q, more), drop);
    if (f.emin > 1u) q = AMPI_SELECT(AMPI_GREATER(AMPI_WORD(f.emin << 23), a), AMPI_F(split8_tiny)(a, random, f), q);
    return AMPI_MIN(q, AMPI_WORD(f.over << 8));
}
AMPI_INNER void AMPI_F(split8_parts)(uint32_t *h, uint32_t *code, AMPI_WORDS w, const uint32_t *random, amp_dtype t) {
    const AMPI_WORDS a = AMPI_AND(w, AMPI_WORD(0x7fffffffu));
    const AMPI_WORDS q = AMPI_F(split8_rounded)(a, random, t);
    const AMPI_MASK nan = AMPI_GREATER(a, AMPI_WORD(0x7f800000u));
    AMPI_STORE_WORDS(h, AMPI_F(finish)(w, a, AMPI_SHR(AMPI_ADD_WORDS(q, AMPI_WORD(0x80u)), 8), t));
    AMPI_STORE_WORDS(code, AMPI_AND(q, AMPI_SELECT(nan, AMPI_WORD(0), AMPI_WORD(0xffu))));
}
AMPI_INNER AMPI_WORDS AMPI_F(split8_joined)(const char *model, AMPI_WORDS code, amp_dtype t) {
    const ampi_format f = ampi_format_of(t);
    const AMPI_WORDS sign = AMPI_WORD(0x80000000u), h = AMPI_F(load16)(model);
    const AMPI_WORDS r = AMPI_SUB_WORDS(AMPI_XOR(code, AMPI_WORD(0x80u)), AMPI_WORD(0x80u));
    const AMPI_WORDS q = AMPI_ADD_WORDS(AMPI_SHL(AMPI_AND(h, AMPI_WORD(0x7fffu)), 8), r);
    const AMPI_MASK over = AMPI_GREATER(AMPI_XOR(q, sign), AMPI_WORD(((f.over << 8) - 1u) ^ 0x80000000u));
    AMPI_WORDS x = AMPI_ADD_WORDS(AMPI_SHL(q, 15u - f.mant), AMPI_WORD((f.emin - 1u) << 23));
    if (f.emin > 1u) {
        const AMPI_WORDS moved = AMPI_OR(q, AMPI_WORD(0x4b000000u));
        const AMPI_WORDS unit = AMPI_WORD((f.emin - f.mant - 8u) << 23);
        const AMPI_FLOATS count = AMPI_SUB(AMPI_AS_FLOATS(moved), AMPI_SET(8388608.0f));
        const AMPI_FLOATS tiny = AMPI_MUL(count, AMPI_AS_FLOATS(unit));
        x = AMPI_SELECT(AMPI_GREATER(AMPI_WORD(1u << (f.mant + 8u)), q), AMPI_BITS(tiny), x);
    }
    return AMPI_SELECT(over, AMPI_F(widened)(model, t), AMPI_OR(x, AMPI_AND(AMPI_SHL(h, 16), sign)));
}

AMPI_INNER AMPI_WORDS AMPI_F(pair_load)(const char *model, const char *low, amp_master layout, amp_dtype t) {
    if (layout == AMP_MASTER_SPLIT8) return AMPI_F(split8_joined)(model, AMPI_F(load8)(low), t);
    return AMPI_F(pair_joined)(AMPI_F(widened)(model, t), AMPI_F(load16)(low), layout, t);
}
/* One step; model holds what w is rounded to already, but for SPLIT8. */
AMPI_INNER void AMPI_F(pair_store)(
    char *model, char *low, const float *w, const uint32_t *r, amp_master layout, amp_dtype t) {
    uint32_t h[AMPI_STEP], rest[AMPI_STEP];
    size_t i;
    for (i = 0; i < AMPI_STEP; i += AMPI_WIDTH)
        if (layout == AMP_MASTER_SPLIT8)
            AMPI_F(split8_parts)(h + i, rest + i, AMPI_LOAD_WORDS(w + i), r ? r + i : NULL, t);
        else
            AMPI_STORE_WORDS(
                rest + i, AMPI_F(pair_rest)(AMPI_LOAD(w + i), AMPI_F(widened)(model + 2u * i, t), layout, t));
    if (layout == AMP_MASTER_SPLIT8) AMPI_F(store_words_step)(model, t, h);
    AMPI_F(store_words_step)(low, ampi_low_type(layout), rest);
}
#  define AMPI_PAIRS(X) \
    X(AMP_MASTER_SPLIT, AMP_F16) \
    X(AMP_MASTER_SPLIT, AMP_BF16) \
    X(AMP_MASTER_SPLIT8, AMP_F16) \
    X(AMP_MASTER_SPLIT8, AMP_BF16) \
    X(AMP_MASTER_KAHAN, AMP_BF16)
#  define AMPI_IS_PAIR(p, L, T) ((p)->layout == (L) && (p)->model_dtype == (T))
AMPI_OUTER void AMPI_F(pair_widen)(float *w, const amp_param_entry *p, size_t at, size_t n) {
    const size_t size = amp_dtype_size(ampi_low_type(p->layout));
    const char *model = (const char *)p->model + 2u * at;
    const char *low = (const char *)p->low + size * at;
    const size_t whole = n - n % AMPI_WIDTH;
    size_t i;
#  define AMP_X(L, T) \
    for (i = 0; i < whole && AMPI_IS_PAIR(p, L, T); i += AMPI_WIDTH) \
        AMPI_STORE_WORDS(w + i, AMPI_F(pair_load)(model + 2u * i, low + size * i, L, T));
    AMPI_PAIRS(AMP_X)
#  undef AMP_X
    AMPI_F(done)();
    ampi_scalar_pair_widen(w + whole, p, at + whole, n - whole);
}
AMPI_OUTER void AMPI_F(pair_narrow)(const amp_param_entry *p, size_t at, const float *w, const uint32_t *r, size_t n) {
    const size_t size = amp_dtype_size(ampi_low_type(p->layout));
    char *model = (char *)p->model + 2u * at;
    char *low = (char *)p->low + size * at;
    const size_t whole = n - n % AMPI_STEP;
    size_t i;
    if (p->layout != AMP_MASTER_SPLIT8 && p->model_dtype == AMP_F16) AMPI_F(narrow_f16)(model, w, whole);
    if (p->layout != AMP_MASTER_SPLIT8 && p->model_dtype == AMP_BF16) AMPI_F(narrow_bf16)(model, w, whole);
#  define AMP_X(L, T) \
    for (i = 0; i < whole && AMPI_IS_PAIR(p, L, T); i += AMPI_STEP) \
        AMPI_F(pair_store)(model + 2u * i, low + size * i, w + i, r ? r + i : NULL, L, T);
    AMPI_PAIRS(AMP_X)
#  undef AMP_X
    AMPI_F(done)();
    ampi_scalar_pair_narrow(p, at + whole, w + whole, r ? r + whole : NULL, n - whole);
}
#  undef AMPI_PAIRS
#  undef AMPI_IS_PAIR
#endif

/* ---- products: a tile of c, AMPI_COLUMNS wide.   tests: tests/test_products.c, tests/test_ordered.c ---- */
#if AMPI_PASS == AMPI_PASS_SCALAR
#  define AMPI_COLUMNS 8u
/* Under these flags compilers may add up in a different order, but not what passes through memory. */
#if defined(__GNUC__) && (defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__))
#  define AMPI_KEEP_ORDER(x) __asm__ volatile("" : "+m"(x))
#else
#  define AMPI_KEEP_ORDER(x) (void)0
#endif
AMPI_OUTER void AMPI_F(tile_4)(size_t kc, const float *a, const float *b, float *c, int first) {
    float acc[4][8];
    size_t i, j;
    memset(acc, 0, sizeof acc);
    for (; kc--; a += 4, b += 8) {
        for (i = 0; i < 4; i++) {
            for (j = 0; j < 8; j++)
                acc[i][j] += a[i] * b[j];
        }
        AMPI_KEEP_ORDER(acc);
    }
    for (i = 0; i < 4; i++) {
        for (j = 0; j < 8; j++)
            c[i * AMPI_LDC + j] = first ? acc[i][j] : amp_add(c[i * AMPI_LDC + j], acc[i][j]);
    }
}
AMPI_OUTER void AMPI_F(fused)(size_t rows, size_t mr, size_t kc, const float *a, const float *b, float *c, int first) {
    size_t i, j, k;
    for (i = 0; i < rows; i++, c += AMPI_LDC) {
        const float z = amp_add(0.0f, 0.0f); /* see AMPI_F(tile) */
        float sum[8] = {z, z, z, z, z, z, z, z};
        for (k = 0; k < kc; k++) {
            for (j = 0; j < 8; j++)
                sum[j] = amp_fma(a[k * mr + i], b[k * 8 + j], sum[j]);
        }
        for (j = 0; j < 8; j++)
            c[j] = first ? sum[j] : amp_add(c[j], sum[j]);
    }
}
AMPI_OUTER void AMPI_F(pack4)(float *to, size_t width, const float *rows, size_t ld, size_t depth) {
    size_t k;
    for (k = 0; k < depth; k++, to += width) {
        to[0] = rows[k];
        to[1] = rows[ld + k];
        to[2] = rows[2 * ld + k];
        to[3] = rows[3 * ld + k];
    }
}
#endif

/* ---- `rows` is a constant wherever these are inlined: what lies beyond it is not compiled, and each p[i] and q[i] is
   a register. A list, no loop: with gcc -O1 they would be memory then ---- */
#if AMPI_PASS == AMPI_PASS_VECTOR
#  define AMPI_COLUMNS       (2u * AMPI_WIDTH)
#  define AMPI_MOST_ROWS     12
#  define AMPI_EIGHT_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#  define AMPI_EACH_ROW(X)   AMPI_EIGHT_ROWS(X) X(8) X(9) X(10) X(11)
AMPI_INNER void AMPI_F(tile_fma)(float a, AMPI_FLOATS x, AMPI_FLOATS y, AMPI_FLOATS *p, AMPI_FLOATS *q) {
    AMPI_FLOATS s = AMPI_SET(a);
    *p = AMPI_FMA(s, x, *p);
    *q = AMPI_FMA(s, y, *q);
}
AMPI_INNER void AMPI_F(tile_column)(uint32_t rows, const float *a, const float *b, AMPI_FLOATS *p, AMPI_FLOATS *q) {
    AMPI_FLOATS x = AMPI_LOAD(b), y = AMPI_LOAD(b + AMPI_WIDTH);
#  define AMPI_X(i) \
    if (rows > i) AMPI_F(tile_fma)(a[i], x, y, p + i, q + i);
    AMPI_EACH_ROW(AMPI_X)
#  undef AMPI_X
}
AMPI_INNER void AMPI_F(tile_row)(float *c, AMPI_FLOATS p, AMPI_FLOATS q, int first) {
    if (!first) {
        p = AMPI_ADD(p, AMPI_LOAD(c));
        q = AMPI_ADD(q, AMPI_LOAD(c + AMPI_WIDTH));
    }
    AMPI_STORE(c, p);
    AMPI_STORE(c + AMPI_WIDTH, q);
}
AMPI_INNER void AMPI_F(tile_end)(uint32_t rows, float *c, const AMPI_FLOATS *p, const AMPI_FLOATS *q, int first) {
#  define AMPI_X(i) \
    if (rows > i) AMPI_F(tile_row)(c + i * AMPI_LDC, p[i], q[i], first);
    AMPI_EACH_ROW(AMPI_X)
#  undef AMPI_X
}
AMPI_INNER void AMPI_F(tile)(uint32_t rows, size_t kc, const float *a, const float *b, float *c, int first) {
    /* zero, but -Ofast must not know, or -0 + 0 stays -0 */
    const AMPI_FLOATS z = AMPI_ADD(AMPI_SET(0.0f), AMPI_SET(0.0f));
    AMPI_FLOATS p[AMPI_MOST_ROWS] = {z, z, z, z, z, z, z, z, z, z, z, z};
    AMPI_FLOATS q[AMPI_MOST_ROWS] = {z, z, z, z, z, z, z, z, z, z, z, z};
    for (; kc--; a += rows, b += 2u * AMPI_WIDTH)
        AMPI_F(tile_column)(rows, a, b, p, q);
    if (first)
        AMPI_F(tile_end)(rows, c, p, q, 1);
    else
        AMPI_F(tile_end)(rows, c, p, q, 0);
}
#  define AMP_X(rows) \
    AMPI_OUTER void AMPI_F(tile_##rows)(size_t kc, const float *a, const float *b, float *c, int first) { \
        AMPI_F(tile)(rows, kc, a, b, c, first); \
    }
AMPI_TILES(AMP_X)
#  undef AMP_X
#  ifdef AMPI_HAS_FMA
#    define AMPI_WIDE_ROWS (AMPI_WIDTH == 8 ? 4u : 8u) /* AVX2 has 16 registers, others 32 */
/* At most 8 rows of a strip, or AMPI_WIDE_ROWS of two (`wide`), from column c on; `full` and `twice` are constants,
   too. */
AMPI_INNER void AMPI_F(direct_rows)(
    uint32_t rows, const ampi_direct *d, size_t r, size_t c, int wide, int full, int twice) {
    const AMPI_FLOATS z = AMPI_ADD(AMPI_SET(0.0f), AMPI_SET(0.0f)); /* see AMPI_F(tile) */
    AMPI_FLOATS p[8] = {z, z, z, z, z, z, z, z};
    AMPI_FLOATS q[8] = {z, z, z, z, z, z, z, z}, x, y = z, s;
    const size_t row = d->a_row, a_k = d->a_k, b_k = d->b_k, strip = d->b_strip, n = d->cols - c;
    const float *a = d->a + r * row, *b = d->b + c / AMPI_WIDTH * strip;
    float *to = d->c + r * d->c_row + c;
    size_t k;
    for (k = d->depth; k--; a += a_k, b += b_k) {
        x = full ? AMPI_LOAD(b) : AMPI_F(load_some)(b, n);
        if (wide) y = AMPI_LOAD(b + strip);
#  define AMPI_X(i) \
    if (rows > i) s = AMPI_SET(a[i * row]); \
    if (rows > i && twice) p[i] = AMPI_ADD(p[i], AMPI_MUL(s, x)); \
    if (rows > i && !twice) p[i] = AMPI_FMA(s, x, p[i]); \
    if (rows > i && wide) q[i] = AMPI_FMA(s, y, q[i]);
        AMPI_EIGHT_ROWS(AMPI_X)
#  undef AMPI_X
    }
#  define AMPI_X(i) \
    if (rows > i && twice) p[i] = AMPI_ADD(z, p[i]); \
    if (rows > i && full) AMPI_STORE(to + i * d->c_row, p[i]); \
    if (rows > i && !full) AMPI_F(store_some)(to + i * d->c_row, n, p[i]); \
    if (rows > i && wide) AMPI_STORE(to + i * d->c_row + AMPI_WIDTH, q[i]);
    AMPI_EIGHT_ROWS(AMPI_X)
#  undef AMPI_X
}
AMPI_INNER void AMPI_F(direct_block)(uint32_t rows, const ampi_direct *d, size_t r, int twice) {
    const uint32_t each = rows < AMPI_WIDE_ROWS ? rows : AMPI_WIDE_ROWS;
    size_t c = 0, i;
    for (; rows >= 4 && !twice && c + 2u * AMPI_WIDTH <= d->cols; c += 2u * AMPI_WIDTH)
        for (i = 0; i < rows; i += each)
            AMPI_F(direct_rows)(each, d, r + i, c, 1, 1, 0);
    for (; c + AMPI_WIDTH <= d->cols; c += AMPI_WIDTH)
        AMPI_F(direct_rows)(rows, d, r, c, 0, 1, twice);
    if (c < d->cols) AMPI_F(direct_rows)(rows, d, r, c, 0, 0, twice);
}
AMPI_INNER void AMPI_F(direct_blocks)(const ampi_direct *d, int twice) {
    size_t r = 0;
    for (; !twice && r + 8 <= d->rows; r += 8)
        AMPI_F(direct_block)(8, d, r, twice);
    for (; !twice && r + 4 <= d->rows; r += 4)
        AMPI_F(direct_block)(4, d, r, twice);
    for (; r < d->rows; r++)
        AMPI_F(direct_block)(1, d, r, twice);
}
/* k is 1: a row of D at a time, as memory takes them best. */
AMPI_INNER void AMPI_F(direct_outer)(const ampi_direct *d) {
    const AMPI_FLOATS z = AMPI_ADD(AMPI_SET(0.0f), AMPI_SET(0.0f)); /* see AMPI_F(tile) */
    const size_t whole = d->cols - d->cols % AMPI_WIDTH, rest = d->cols - whole;
    size_t r, c;
    for (r = 0; r < d->rows; r++) {
        const AMPI_FLOATS s = AMPI_SET(d->a[r * d->a_row]);
        float *to = d->c + r * d->c_row;
        for (c = 0; c < whole; c += AMPI_WIDTH)
            AMPI_STORE(to + c, AMPI_FMA(s, AMPI_LOAD(d->b + c), z));
        if (rest) AMPI_F(store_some)(to + c, rest, AMPI_FMA(s, AMPI_F(load_some)(d->b + c, rest), z));
    }
}
AMPI_OUTER void AMPI_F(direct)(const ampi_direct *d, int twice) {
    if (d->depth == 1 && !twice)
        AMPI_F(direct_outer)(d);
    else if (twice)
        AMPI_F(direct_blocks)(d, 1);
    else
        AMPI_F(direct_blocks)(d, 0);
    AMPI_F(done)();
}
#  else
AMPI_OUTER void AMPI_F(fused)(size_t rows, size_t mr, size_t kc, const float *a, const float *b, float *c, int first) {
    size_t i, k;
    for (i = 0; i < rows; i++, c += AMPI_LDC) {
        AMPI_FLOATS p = AMPI_SET(0.0f), q = p;
        for (k = 0; k < kc; k++) {
            AMPI_FLOATS x = AMPI_SET(a[k * mr + i]);
            p = AMPI_FUSE(x, AMPI_LOAD(b + k * AMPI_COLUMNS), p);
            q = AMPI_FUSE(x, AMPI_LOAD(b + k * AMPI_COLUMNS + AMPI_WIDTH), q);
        }
        AMPI_F(tile_row)(c, p, q, first);
    }
}
#  endif
#endif

/* ---- what a path puts into the table: each starts from the one below it and replaces what it does better.
   tests: tests/test_paths.c ---- */
#if AMPI_PASS == AMPI_PASS_SCALAR || AMPI_PASS == AMPI_PASS_VECTOR
/* the loops that each path has */
/* clang-format off */
#  define AMPI_LOOPS(X) \
    X(random) X(is_bad) X(scale) X(axpy) X(add_four) X(amax) X(fit_to) X(dots) X(squares) X(sum) X(count) X(largest) \
    X(exps) X(softmax_shares) X(few_terms) X(few_shares) X(targets) X(misses) X(grad_each) X(act) \
    X(act_grad) X(mask_of) X(mask_grad) X(drop) X(moment_widen) X(moment_narrow) X(prepare) X(count_sizes) \
    X(count_unchanged)
/* clang-format on */
static void AMPI_F(use)(ampi_kernels *k) {
    uint32_t i = 0;
    k->lanes = AMPI_WIDTH;
    k->nr = AMPI_COLUMNS;
#  define AMP_X(rows) \
    k->mr[i] = rows; \
    k->tile[i++] = AMPI_F(tile_##rows);
    AMPI_TILES(AMP_X)
#  undef AMP_X
#  ifdef AMPI_HAS_FMA
    k->fused = NULL;
    k->direct = AMPI_F(direct);
    k->rescale = AMPI_F(rescale);
    k->relu16 = AMPI_F(relu16);
#  else
    k->fused = AMPI_F(fused);
#  endif
#  define AMP_X(T, name, ...) \
    k->widen[AMP_##T] = AMPI_F(widen_##name); \
    k->narrow[AMP_##T] = AMPI_F(narrow_##name);
    AMPI_FORMATS(AMP_X)
#  undef AMP_X
#  if AMPI_PASS == AMPI_PASS_SCALAR || defined(AMPI_HAS_SHIFT_EACH)
    k->round = AMPI_F(round);
    k->pair_widen = AMPI_F(pair_widen);
    k->pair_narrow = AMPI_F(pair_narrow);
#  endif
#  define AMP_X(name) k->name = AMPI_F(name);
    AMPI_LOOPS(AMP_X)
#  undef AMP_X
#  define AMP_X(kind, rule, moments) k->update[kind] = AMPI_F(rule);
    AMP_UPDATE_LIST(AMP_X)
#  undef AMP_X
#  ifdef AMPI_HAS_STREAM
    k->stream = AMPI_F(stream);
    k->fence = ampi_sse2_fence;
#  endif
#  ifdef AMPI_HAS_PACK4
    k->pack4 = AMPI_F(pack4);
#  endif
#  if AMPI_PASS == AMPI_PASS_SCALAR
    k->widen[AMP_F32] = ampi_scalar_widen_f32;
    k->narrow[AMP_F32] = ampi_scalar_narrow_f32;
#  endif
}
/* Here ends what the path defined. */
#  undef AMPI_LOOPS
#  undef AMPI_F
#  undef AMPI_TARGET
#  undef AMPI_WIDTH
#  undef AMPI_ROWS_AT_ONCE
#  undef AMPI_TILES
#  undef AMPI_COLUMNS
#  undef AMPI_MM
#  undef AMPI_REG
#  undef AMPI_ASM1
#  undef AMPI_ASM2
#  undef AMPI_FIRST
#  undef AMPI_EQUAL
#  undef AMPI_HAS_FMA
#  undef AMPI_HAS_SHIFT_EACH
#  undef AMPI_HAS_SOME
#  undef AMPI_HAS_MASKS
#  undef AMPI_HAS_HALVES
#  undef AMPI_HAS_HALVES_OF_F8
#  undef AMPI_HAS_STREAM
#  undef AMPI_HAS_PACK4
#endif

#undef AMPI_INNER
#undef AMPI_OUTER
#undef AMPI_STEP
#undef AMPI_LEFT
#undef AMPI_BITS
#undef AMPI_AS_FLOATS
#undef AMPI_PASS
#endif /* AMPI_PASS */

/* ==== >>license ==================================================================================================
   MIT License. Copyright (c) 2026 amp authors

   Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
   documentation files (the "Software"), to deal in the Software without restriction, including without limitation
   the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and
   to permit persons to whom the Software is furnished to do so, subject to the following conditions: The above
   copyright notice and this permission notice shall be included in all copies or substantial portions of the
   Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
   LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT
   SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION
   OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER
   DEALINGS IN THE SOFTWARE. */
