/* openmp.c - a loop over the batch in OpenMP's threads. With a context for each thread every product is right. With one
   context for all of them every product is right or refused, and none is wrong. The exit status tells what failed. */
#ifndef OTHER_FILE_HAS_IT
#  define AMP_IMPLEMENTATION
#endif
#include "../../amp.h"
#include <omp.h>

enum { N = 48, JOBS = 64, THREADS = 4, ROUNDS = 2000 };
static float a[JOBS][N * N], b[JOBS][N * N], d[JOBS][N * N], want[JOBS][N * N];
static amp_status status[JOBS];

static amp_status product(amp_ctx *ctx, int job, float *to) {
    amp_gemm_desc g = AMP_ZERO;
    g.m = g.n = g.k = N;
    g.a = amp_arr(a[job], AMP_F32);
    g.b = amp_arr(b[job], AMP_F32);
    g.d = amp_arr(to, AMP_F32);
    return amp_gemm(ctx, &g);
}

static void batch(amp_ctx *const *ctx, int n_contexts) {
    int i;
    memset(d, 0, sizeof d);
#pragma omp parallel for num_threads(THREADS)
    for (i = 0; i < JOBS; i++)
        status[i] = product(ctx[omp_get_thread_num() % n_contexts], i, d[i]);
}
/* How many products were refused; -1 if one is wrong, or a refused one was touched. */
static int refused(void) {
    static const float zeros[N * N];
    int i, n = 0;
    for (i = 0; i < JOBS; i++) {
        int busy = status[i] == AMP_ERR_BUSY;
        if (!busy && status[i] != AMP_OK) return -1;
        if (memcmp(d[i], busy ? zeros : want[i], sizeof d[i]) != 0) return -1;
        n += busy;
    }
    return n;
}

int main(void) {
    amp_ctx *each[THREADS], *shared = NULL;
    amp_cpu_desc one = AMP_ZERO;
    int i, k, n = 0;
    for (i = 0; i < JOBS; i++)
        for (k = 0; k < N * N; k++) {
            a[i][k] = (float)((i * 31 + k * 7) % 97) / 97.0f;
            b[i][k] = (float)((i * 17 + k * 5) % 89) / 89.0f;
        }
    if (amp_cpu_create(&shared, NULL) != AMP_OK) return 1;
    for (i = 0; i < JOBS; i++)
        if (product(shared, i, want[i]) != AMP_OK) return 2;
    one.threads = 1;
    for (i = 0; i < THREADS; i++)
        if (amp_cpu_create(&each[i], &one) != AMP_OK) return 3;
    batch(each, THREADS);
    if (refused() != 0) return 4;
    for (i = 0; i < ROUNDS && n == 0; i++) { /* until two threads have met: in practice in the first round */
        batch(&shared, 1);
        n = refused();
    }
    if (n < 0) return 5;
    if (n == 0) return 6;
    if (!strstr(amp_last_error(shared), "amp_gemm: a different thread")) return 7;
    batch(&shared, 1); /* nothing is damaged: what is called alone is right */
    for (i = 0; i < JOBS; i++)
        status[i] = product(shared, i, d[i]);
    if (refused() != 0) return 8;
    for (i = 0; i < THREADS; i++)
        amp_ctx_destroy(each[i]);
    amp_ctx_destroy(shared);
    return 0;
}
