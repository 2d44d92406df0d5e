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

