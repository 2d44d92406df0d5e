/* hostile.c - macros that real headers (windows.h, complex.h, altivec.h, CUDA, old code) are known to define, before
   amp.h. System headers come first, as these macros would break them too. */
#include <complex.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __unix__
#  include <pthread.h>
#  include <sys/types.h>
#  include <unistd.h>
#endif
#if defined(__x86_64__) || defined(__i386__)
#  include <immintrin.h>
#endif
#if defined(__ARM_NEON)
#  include <arm_neon.h>
#endif

static size_t allocated, released;
static void *hostile_malloc(size_t n) {
    allocated++;
    return malloc(n);
}
static void hostile_free(void *p) {
    released += p != NULL;
    free(p);
}

#define malloc(n)    hostile_malloc(n)
#define free(p)      hostile_free(p)
#define calloc(a, b) amp_must_not_call_calloc
#define min(a, b)    amp_must_not_use_min
#define max(a, b)    amp_must_not_use_max
#define abs(a)       amp_must_not_use_abs
#define swap(a, b)   amp_must_not_use_swap
#define assert(x)    amp_must_not_use_assert
#define near
#define far
#define small     char
#define hyper     __int64
#define interface struct
#define IN
#define OUT
#define OPTIONAL
#define CONST        const
#define VOID         void
#define ERROR        0
#define TRUE         1
#define FALSE        0
#define NONE         0
#define DEBUG        1
#define vector       amp_must_not_use_vector
#define pixel        amp_must_not_use_pixel
#define unix         1
#define linux        1
#define major(x)     amp_must_not_use_major
#define minor(x)     amp_must_not_use_minor
#define __noinline__ __attribute__((noinline))
#ifdef I
#  undef I
#endif
#define I      amp_must_not_use_I
#define U8     amp_must_not_use_U8
#define U32    amp_must_not_use_U32
#define BYTE   amp_must_not_use_BYTE
#define status amp_must_not_use_status_as_a_macro_would
#undef status
#define private public
#define register
#define likely(x)   (x)
#define unlikely(x) (x)
#define offsetof_   0
#define CHECK(x)    amp_must_not_use_CHECK
#define LOG(x)      amp_must_not_use_LOG
#define MIN(a, b)   amp_must_not_use_MIN
#define MAX(a, b)   amp_must_not_use_MAX

#define AMP_IMPLEMENTATION
#include "../../amp.h"

int main(void) {
    amp_ctx *ctx = NULL;
    float x[3] = {1, 2, 3};
    amp_f16 y[3];
    if (amp_cpu_create(&ctx, NULL) != AMP_OK) return 1;
    if (amp_cast(ctx, amp_arr(y, AMP_F16), amp_arr(x, AMP_F32), 3, NULL) != AMP_OK) return 2;
    if (y[1].bits != 0x4000) return 3;
    amp_ctx_destroy(ctx);
    return !(allocated > 0 && allocated == released); /* its calls of malloc and free went through the macros */
}
