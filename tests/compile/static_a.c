/* static_a.c, static_b.c - two private copies of amp.h in one program. */
#define AMP_STATIC
#include "../../amp.h"

int other_half(void);
int main(void) {
    amp_ctx *ctx = NULL;
    float x[3] = {1, 2, 3};
    amp_bf16 y[3];
    if (amp_cpu_create(&ctx, NULL) != AMP_OK) return 1;
    if (amp_cast(ctx, amp_arr(y, AMP_BF16), amp_arr(x, AMP_F32), 3, NULL) != AMP_OK) return 2;
    if (y[2].bits != 0x4040) return 3;
    amp_ctx_destroy(ctx);
    return !other_half();
}
