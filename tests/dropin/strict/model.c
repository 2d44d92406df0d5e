#include "model.h"

float data[64];
size_t count = 64;
float scale = 0.25f;
int stream = 1;
const float *src = data;
float *dst = data;

float model_backward(amp_params *set, amp_scaler *scaler) {
    const amp_f16 *w = (const amp_f16 *)amp_param_model(set, 0).data;
    amp_f16 *g = (amp_f16 *)amp_param_grad(set, 0).data;
    amp_scaler_info info;
    float loss = 0.0f, gw = 0.0f, gb = 0.0f;
    if (amp_scaler_get(scaler, &info) != AMP_OK) return -1.0f;
    for (size_t i = 0; i < count; i++) {
        float x = src[i], y = amp_f32_from_f16(w[0]) * x + amp_f32_from_f16(w[1]), d = y - (3.0f * x - 1.0f);
        loss += d * d / (float)count;
        gw += 2.0f * d * x / (float)count;
        gb += 2.0f * d / (float)count;
    }
    g[0] = amp_f16_from_f32(gw * info.scale);
    g[1] = amp_f16_from_f32(gb * info.scale);
    return loss;
}
