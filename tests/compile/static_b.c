#define AMP_STATIC
#include "../../amp.h"

int other_half(void);
int other_half(void) {
    amp_ctx *ctx = NULL;
    float x[3] = {1, 2, 3};
    amp_f16 y[3];
    if (amp_cpu_create(&ctx, NULL) != AMP_OK) return 0;
    if (amp_cast(ctx, amp_arr(y, AMP_F16), amp_arr(x, AMP_F32), 3, NULL) != AMP_OK) return 0;
    if (y[2].bits != 0x4200) return 0;
    amp_ctx_destroy(ctx);
    return 1;
}
