// overloads.cpp - the program of docs/faq.md: descs are variables, and every function with a desc takes a reference.
#ifndef OTHER_FILE_HAS_IT
#  define AMP_IMPLEMENTATION
#endif
#include "../../amp.h"

#include <cstdio>
#include <vector>

static int failed = 0;
static void ok(amp_status st, const char *what) {
    if (st != AMP_OK) {
        std::printf("%s: %s\n", what, amp_strerror(st));
        failed = 1;
    }
}
#define OK(call) ok(call, #call)

int main() {
    amp_ctx *ctx = nullptr;
    amp_cpu_desc cd = AMP_ZERO;
    cd.threads = 2;
    OK(amp_cpu_create(&ctx, cd));

    std::vector<float> w(12, 0.5f), x(6, 1.0f), row(2);
    std::vector<amp_f16> hx(6), hy(8), hdy(8), hdx(6);
    amp_cast_desc co = AMP_ZERO;
    co.rounding = AMP_STOCHASTIC;
    OK(amp_cast(ctx, amp_arr(hx.data(), AMP_F16), amp_arr(x.data(), AMP_F32), 6, co));
    OK(amp_cast(ctx, amp_arr(hx.data(), AMP_F16), amp_arr(x.data(), AMP_F32), 6, nullptr));

    amp_params *p = nullptr;
    amp_params_desc pd = AMP_ZERO;
    pd.model = AMP_F16;
    OK(amp_params_create(&p, ctx, pd));
    amp_param_desc e = AMP_ZERO;
    e.name = "fc.weight";
    e.count = w.size();
    e.init = w.data();
    OK(amp_params_add(p, e));
    OK(amp_params_commit(p));

    amp_scaler *s = nullptr;
    amp_scaler_desc sd = AMP_ZERO;
    sd.scale = 128.0f;
    OK(amp_scaler_create(&s, ctx, sd));
    amp_scaler_desc sd2 = AMP_ZERO;
    sd2.growth_interval = 100;
    OK(amp_scaler_configure(s, sd2));

    amp_linear_desc fc = AMP_ZERO;
    fc.rows = 2;
    fc.in = 3;
    fc.out = 4;
    fc.x = amp_arr(hx.data(), AMP_F16);
    fc.w = amp_param_model(p, 0);
    fc.y = amp_arr(hy.data(), AMP_F16);
    fc.dy = amp_arr(hdy.data(), AMP_F16);
    fc.dx = amp_arr(hdx.data(), AMP_F16);
    fc.dw = amp_param_grad(p, 0);
    OK(amp_linear_forward(ctx, fc));
    int32_t labels[2] = {1, 3};
    amp_xent_desc xe = AMP_ZERO;
    xe.rows = 2;
    xe.classes = 4;
    xe.logits = fc.y;
    xe.labels = labels;
    xe.row_loss = row.data();
    xe.dlogits = fc.dy;
    xe.scaler = s;
    OK(amp_softmax_cross_entropy(ctx, xe));
    amp_linear_xent_desc lx = AMP_ZERO;
    size_t lx_bytes = 1;
    lx.linear = fc;
    lx.linear.rows = 0;
    lx.linear.y.data = lx.linear.dy.data = lx.linear.dw.data = nullptr;
    OK(amp_linear_cross_entropy_bytes(ctx, &lx_bytes, lx));
    OK(amp_linear_cross_entropy(ctx, lx));
    OK(amp_linear_backward(ctx, fc));

    amp_step_desc d = AMP_ZERO;
    d.lr = 1e-3f;
    OK(amp_step(p, s, d));
    OK(amp_update(p, nullptr, d));
    OK(amp_inspect(p, nullptr, d));

    amp_gemm_desc g = AMP_ZERO;
    std::vector<float> out(4);
    g.m = 2;
    g.n = 2;
    g.k = 3;
    g.a = amp_arr(x.data(), AMP_F32);
    g.b = amp_arr(w.data(), AMP_F32);
    g.d = amp_arr(out.data(), AMP_F32);
    OK(amp_gemm(ctx, g));
    if (out[0] != 1.5f) failed = 1;

    amp_state_desc st = AMP_ZERO;
    st.params = &p;
    st.n_params = 1;
    st.scalers = &s;
    st.n_scalers = 1;
    if (amp_state_load(ctx, "no-such-file", st) == AMP_OK) failed = 1;
    if (amp_state_save(ctx, "no-such-dir/x", st) == AMP_OK) failed = 1;

    amp_scaler_destroy(s);
    amp_params_destroy(p);
    amp_ctx_destroy(ctx);
    return failed;
}
