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

