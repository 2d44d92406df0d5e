// Fits 3 x - 1 in FP16 and prints what it found.
#include "model.h"
#include <cstdio>

namespace {
int failures = 0;
void check(amp_status status, const amp_ctx *ctx) {
    if (status == AMP_OK) return;
    failures++;
    std::fprintf(stderr, "%s\n", amp_last_error(ctx));
}
} // namespace

int main() {
    amp_ctx *ctx = nullptr;
    amp_params *set = nullptr;
    amp_scaler *scaler = nullptr;
    for (std::size_t i = 0; i < count; i++)
        dst[i] = (static_cast<float>(i) - 32.0f) / 32.0f * scale * 4.0f * static_cast<float>(stream);
    check(amp_cpu_create(&ctx, nullptr), ctx);
    check(amp_params_create(&set, ctx, nullptr), ctx);
    const float start[2] = {0.0f, 0.0f};
    amp_param_desc line = AMP_ZERO;
    line.name = "line";
    line.count = 2;
    line.init = start;
    check(amp_params_add(set, line), ctx);
    check(amp_params_commit(set), ctx);
    check(amp_scaler_create(&scaler, ctx, nullptr), ctx);
    amp_step_desc step = AMP_ZERO;
    step.optimizer = AMP_ADAM;
    step.lr = 0.05f;
    float loss = 0.0f;
    for (int i = 0; i < 300; i++) {
        loss = model_backward(set, scaler);
        check(amp_step(set, scaler, step), ctx);
    }
    amp_step_record last;
    check(amp_step_poll(set, &last), ctx);
    float w[2] = {0.0f, 0.0f};
    check(amp_param_read(set, 0, w), ctx);
    std::printf("w %.2f b %.2f, %d skipped, scale %g\n", static_cast<double>(w[0]), static_cast<double>(w[1]),
        static_cast<int>(last.skipped), static_cast<double>(last.scale));
    amp_scaler_destroy(scaler);
    amp_params_destroy(set);
    amp_ctx_destroy(ctx);
    return failures == 0 && loss < 0.01f && w[0] > 2.9f && w[0] < 3.1f && w[1] < -0.9f && w[1] > -1.1f ? 0 : 1;
}
