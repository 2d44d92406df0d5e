/* nvtx.c - AMP_CUDA_NVTX: each verb is a range of its name, which ends with it, also where it fails; a call that is
 * refused at the door is none. Built with nvtx/nvtx3/nvToolsExt.h, which declares the two functions below. */
#define AMP_CUDA_NVTX
#define AMP_IMPLEMENTATION
#include "../../amp.h"

static char ranges[1000]; /* of a program: ( and a name, ) */
static int depth;

int nvtxRangePushA(const char *message) {
    strcat(strcat(ranges, "("), message);
    return depth++;
}
int nvtxRangePop(void) {
    strcat(ranges, ")");
    return --depth;
}
/* What has been recorded since the last time. */
static int are(const char *wanted) {
    int good = !strcmp(ranges, wanted) && depth == 0;
    if (!good) fprintf(stderr, "%s, not %s, depth %d\n", ranges, wanted, depth);
    ranges[0] = 0;
    return good;
}

#define NEED(c) \
    do { \
        if (!(c)) return __LINE__ % 200 + 1; \
    } while (0)

static amp_status hook(amp_ctx *ctx, amp_params *p, void *user) {
    (void)user;
    return amp_zero(ctx, amp_param_grad(p, 0).data, 0);
}

int main(void) {
    amp_ctx *ctx = NULL;
    amp_cpu_desc d = AMP_ZERO;
    amp_param_desc w = AMP_ZERO;
    amp_step_desc step = AMP_ZERO;
    amp_gemm_desc wrong = AMP_ZERO;
    amp_params *p = NULL;
    float x[4] = {1, 2, 3, 4};
    amp_f16 y[4];
    d.threads = 1;
    NEED(amp_cpu_create(&ctx, &d) == AMP_OK && are(""));
    NEED(amp_cast(ctx, amp_arr(y, AMP_F16), amp_arr(x, AMP_F32), 4, NULL) == AMP_OK && are("(amp_cast)"));
    NEED(amp_cast(NULL, amp_arr(y, AMP_F16), amp_arr(x, AMP_F32), 4, NULL) == AMP_ERR_INVALID_ARG && are(""));
    wrong._end = 1;
    wrong.m = wrong.n = wrong.k = 2;
    NEED(amp_gemm(ctx, &wrong) == AMP_ERR_UNINIT && are("(amp_gemm)"));
    NEED(amp_free(ctx, x) == AMP_ERR_INVALID_ARG && are("(amp_free)"));
    NEED(amp_params_create(&p, ctx, NULL) == AMP_OK && are("(amp_params_create)"));
    w.count = 4;
    w.init = x;
    NEED(amp_params_add(p, &w) == AMP_OK && amp_params_commit(p) == AMP_OK);
    NEED(are("(amp_params_add)(amp_params_commit)"));
    step.lr = 0.1f;
    step.reduce_grads_fn = hook; /* the context is the hook's while it runs */
    NEED(amp_step(p, NULL, &step) == AMP_OK && are("(amp_step)(amp_zero)(amp_step)"));
    amp_params_destroy(p);
    NEED(are("(amp_params_destroy)"));
    ctx->in_use = 1; /* as if a different thread were inside */
    NEED(amp_sync(ctx) == AMP_ERR_BUSY && are(""));
    ctx->in_use = 0;
    amp_ctx_destroy(ctx);
    return !are("(amp_ctx_destroy)");
}
