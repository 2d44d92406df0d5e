/* rounding.c - verbs give the same bits whatever rounding mode their caller has set, also where gcc computes in x87
   registers although the machine has SSE2 (-mfpmath=387): two control words, and verbs need both. With an argument it
   prints a hash of the bits: compile.sh compares builds. */
#define AMP_NO_SIMD
#define AMP_IMPLEMENTATION
#include "../../amp.h"

#include <fenv.h>
#include <stdio.h>

enum { N = 257 };
typedef struct result {
    float weights[N], activations[N];
    double norm;
} result;

static int run(int mode, result *r) {
    amp_ctx *ctx = NULL;
    amp_params *p = NULL;
    amp_activation_desc act = AMP_ZERO;
    amp_step_desc step = AMP_ZERO;
    amp_param_desc d = AMP_ZERO;
    amp_params_desc pd = AMP_ZERO;
    float w[N], x[N];
    int i, k, bad = amp_cpu_create(&ctx, NULL) != AMP_OK;
    for (i = 0; i < N; i++) {
        w[i] = (float)(i * 7919 % 1009) / 1009.0f;
        x[i] = (float)(i - 128) / 37.0f;
    }
    pd.model = AMP_F32;
    d.count = N;
    d.init = w;
    bad |= amp_params_create(&p, ctx, &pd) != AMP_OK || amp_params_add(p, &d) != AMP_OK;
    bad |= amp_params_commit(p) != AMP_OK;
    memcpy(amp_param_grad(p, 0).data, x, sizeof x);
    step.lr = 0.01f;
    step.clip_norm = 1.0f;
    act.count = N;
    act.act = AMP_GELU;
    act.x = amp_arr(x, AMP_F32);
    act.y = amp_arr(r->activations, AMP_F32);
    bad |= fesetround(mode) != 0;
    for (k = 0; k < 5; k++)
        bad |= amp_step(p, NULL, &step) != AMP_OK;
    bad |= amp_grad_norm(p, NULL, &r->norm) != AMP_OK || amp_activation(ctx, &act) != AMP_OK;
    bad |= fegetround() != mode || fesetround(FE_TONEAREST) != 0;
    bad |= amp_param_read(p, 0, r->weights) != AMP_OK;
    amp_params_destroy(p);
    amp_ctx_destroy(ctx);
    return bad;
}

int main(int argc, char **argv) {
    static result nearest, upward;
    uint32_t word, hash = 2166136261u;
    size_t i;
    (void)argv;
    if (run(FE_TONEAREST, &nearest) || run(FE_UPWARD, &upward)) return 2;
    for (i = 0; i < sizeof nearest; i += 4) {
        memcpy(&word, (const char *)&nearest + i, 4);
        hash = (hash ^ word) * 16777619u;
    }
    if (argc > 1) printf("%08lx\n", (unsigned long)hash);
    return memcmp(&nearest, &upward, sizeof nearest) != 0;
}
