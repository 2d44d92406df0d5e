/* strict.c - a plain C99 program under the strictest warnings, with the implementation in it. Calls something of every
   section: a test that compiles nothing would pass otherwise. The exit status names the line that failed. */
#define AMP_IMPLEMENTATION
#include "../../amp.h"

#define NEED(c) \
    do { \
        if (!(c)) return __LINE__ % 200 + 1; \
    } while (0)

int main(void) {
    amp_ctx *ctx = NULL;
    amp_cpu_desc cd = AMP_ZERO;
    amp_params *p = NULL;
    amp_param_desc e = AMP_ZERO;
    amp_scaler *s = NULL;
    amp_step_desc d = AMP_ZERO;
    amp_gemm_desc g = AMP_ZERO;
    amp_xent_desc x = AMP_ZERO;
    amp_finite_report report;
    amp_histogram hist;
    amp_state_desc st = AMP_ZERO;
    float w[4] = {1, 2, 3, 4}, y[4], row[2];
    int32_t labels[2] = {0, 1};
    amp_f16 h[4];
    amp_array list[1];
    uint32_t r[4];

    NEED(amp_version() == AMP_VERSION);
    NEED(amp_strerror(AMP_OK)[0] == 's');
    NEED(amp_f16_from_f32(1.0f).bits == 0x3c00);
    NEED(amp_bf16_from_f64(1.0).bits == 0x3f80);
    amp_philox(r, 0, 0, 0);
    NEED(r[0] == 0x6627e8d5u);

    cd.threads = 2;
    NEED(amp_cpu_create(&ctx, &cd) == AMP_OK);
    NEED(amp_cast(ctx, amp_arr(h, AMP_F16), amp_arr(w, AMP_F32), 4, NULL) == AMP_OK);
    NEED(h[3].bits == 0x4400);
    list[0] = amp_arrn(w, AMP_F32, 4);
    NEED(amp_all_finite(ctx, &report, list, 1) == AMP_OK);
    NEED(report.nan + report.inf == 0);
    NEED(amp_histogram_count(ctx, &hist, list, 1) == AMP_OK);
    NEED(hist.total == 4);

    e.count = 4;
    e.init = w;
    NEED(amp_params_create(&p, ctx, NULL) == AMP_OK);
    NEED(amp_params_add(p, &e) == AMP_OK);
    NEED(amp_params_commit(p) == AMP_OK);
    NEED(amp_scaler_create(&s, ctx, NULL) == AMP_OK);
    d.lr = 1e-3f;
    NEED(amp_step(p, s, &d) == AMP_OK);

    g.m = g.n = g.k = 2;
    g.a = g.b = amp_arr(w, AMP_F32);
    g.d = amp_arr(y, AMP_F32);
    NEED(amp_gemm(ctx, &g) == AMP_OK);
    NEED(y[0] == 7.0f && y[3] == 22.0f);
    x.rows = x.classes = 2;
    x.logits = amp_arr(y, AMP_F32);
    x.labels = labels;
    x.row_loss = row;
    NEED(amp_softmax_cross_entropy(ctx, &x) == AMP_OK);

    NEED(amp_state_load(ctx, "no-such-file", &st) != AMP_OK);
    NEED(amp_last_error(ctx)[0] == 'a');
    amp_scaler_destroy(s);
    amp_params_destroy(p);
    amp_ctx_destroy(ctx);
    return 0;
}
