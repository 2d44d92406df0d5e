/* scope.c - what an open autocast scope costs a small verb: verbs look for kept casts of what they write. Times of one
   call beside the same call outside of a scope, in one process, in turn; its output lies behind all weights, or between
   two of them.   make bench-scope */
#define _GNU_SOURCE
#define AMP_IMPLEMENTATION
#include "../amp.h"

#include "common.h"

enum { N = 64, MOST = 1000, CALLS = 2000 };
static const size_t kept[] = {0, 10, 100, MOST};
#define CASES (1 + sizeof kept / sizeof kept[0])

static void check(amp_ctx *ctx, amp_status s) {
    if (s == AMP_OK) return;
    fprintf(stderr, "%s\n", amp_last_error(ctx));
    exit(1);
}
/* So many FP32 weights are cast, and their casts kept. */
static void open_scope(amp_ctx *ctx, float *weights, size_t casts) {
    amp_autocast_desc d = AMP_ZERO;
    size_t i;
    d.entries = MOST;
    check(ctx, amp_autocast_begin(ctx, &d));
    for (i = 0; i < casts; i++) {
        amp_array w = amp_arrn(weights + (i + (i >= casts / 2)) * N, AMP_F32, N), out; /* room in the middle */
        w.flags = AMP_CACHE;
        check(ctx, amp_autocast_input(ctx, &out, AMP_OP_LINEAR, &w, 1));
    }
}
static double time_of(amp_ctx *ctx, int verb, float *x, float *y) {
    amp_activation_desc a = AMP_ZERO;
    double begin = now();
    int i;
    a.act = AMP_RELU;
    a.count = N;
    a.x = amp_arr(x, AMP_F32);
    a.y = amp_arr(y, AMP_F32);
    for (i = 0; i < CALLS; i++)
        check(ctx, verb ? amp_activation(ctx, &a) : amp_cast(ctx, amp_arr(y, AMP_F16), a.x, 1, NULL));
    return (now() - begin) / CALLS;
}
int main(void) {
    static const char *const verbs[] = {"cast, 1 element", "activation, 64"};
    static const char *const places[] = {"behind", "between"};
    static float weights[(MOST + 2) * N], x[N];
    double t[CASES][ROUNDS];
    amp_cpu_desc d = AMP_ZERO;
    amp_ctx *ctx;
    int which, round;
    size_t c;
    clock_used = CLOCK_THREAD_CPUTIME_ID;
    d.threads = 1;
    if (amp_cpu_create(&ctx, &d) != AMP_OK) return 1;
    for (which = 0; which < 4; which++) {
        const int verb = which / 2, between = which % 2;
        for (round = 0; round < ROUNDS; round++)
            for (c = 0; c < CASES; c++) {
                size_t casts = c ? kept[c - 1] : 0;
                if (c) open_scope(ctx, weights, casts);
                t[c][round] = time_of(ctx, verb, x, weights + (between ? casts / 2 : MOST + 1) * N);
                if (c) check(ctx, amp_autocast_end(ctx));
            }
        printf("%-15s %-8s outside %6.1f ns", verbs[verb], places[between], quantile(t[0], ROUNDS, 0.25) * 1e9);
        for (c = 1; c < CASES; c++)
            printf("   %4d casts: %5.2f of it", (int)kept[c - 1],
                quantile(t[c], ROUNDS, 0.25) / quantile(t[0], ROUNDS, 0.25));
        printf("\n");
    }
    amp_ctx_destroy(ctx);
    return 0;
}
