/* switches.c - what each configuration macro does, seen from outside. Built once with none and once with each. */
#include <stdlib.h>

#ifdef TEST_OWN_MALLOC
static size_t allocated, released;
void *amp_test_malloc(size_t n);
void amp_test_free(void *p);
void *amp_test_malloc(size_t n) {
    allocated++;
    return malloc(n);
}
void amp_test_free(void *p) {
    released += p != NULL;
    free(p);
}
#  define AMP_MALLOC(n) amp_test_malloc(n)
#  define AMP_FREE(p)   amp_test_free(p)
#endif
#ifndef OTHER_FILE_HAS_IT
#  define AMP_IMPLEMENTATION
#endif
#include "../../amp.h"

#define NEED(c) \
    do { \
        if (!(c)) return __LINE__ % 200 + 1; \
    } while (0)

int main(void) {
    amp_ctx *ctx = NULL;
    amp_cpu_desc d = AMP_ZERO;
    amp_state_desc st = AMP_ZERO;
    float x[1000], back[1000];
    amp_f16 y[1000];
    void *p = NULL;
    int i;
    d.threads = 4;
    for (i = 0; i < 1000; i++)
        x[i] = (float)i * 0.37f;
    NEED(amp_cpu_create(&ctx, &d) == AMP_OK);
    NEED(amp_cast(ctx, amp_arr(y, AMP_F16), amp_arr(x, AMP_F32), 1000, NULL) == AMP_OK);
    NEED(amp_cast(ctx, amp_arr(back, AMP_F32), amp_arr(y, AMP_F16), 1000, NULL) == AMP_OK);
    for (i = 0; i < 1000; i++) {
        NEED(y[i].bits == amp_f16_from_f32(x[i]).bits);
        NEED(back[i] == amp_f32_from_f16(y[i]));
    }
    NEED(amp_alloc(ctx, &p, 5000, NULL) == AMP_OK);
    NEED(p && (uintptr_t)p % 256 == 0);
    NEED(amp_free(ctx, p) == AMP_OK);
#ifdef AMP_NO_THREADS
    NEED(strstr(amp_ctx_name(ctx), "1 thread") != NULL);
#else
    NEED(strstr(amp_ctx_name(ctx), "4 threads") != NULL);
#endif
#ifdef AMP_NO_STDIO
    NEED(amp_state_save(ctx, "never-made", &st) == AMP_ERR_UNSUPPORTED);
    NEED(amp_state_load(ctx, "never-made", &st) == AMP_ERR_UNSUPPORTED);
    NEED(strstr(amp_last_error(ctx), "AMP_NO_STDIO") != NULL);
#else
    NEED(amp_state_load(ctx, "never-made", &st) == AMP_ERR_IO);
#endif
#ifdef AMP_NO_SIMD
    {
        amp_ctx *c2 = NULL;
        amp_cpu_desc e = AMP_ZERO;
        NEED(strstr(amp_ctx_name(ctx), "scalar") != NULL);
        e.simd = AMP_SIMD_AVX2;
        NEED(amp_cpu_create(&c2, &e) == AMP_ERR_UNSUPPORTED && !c2);
    }
#endif
    amp_ctx_destroy(ctx);
#ifdef TEST_OWN_MALLOC
    NEED(allocated > 0 && allocated == released);
#endif
    return 0;
}
