#define AMP_IMPLEMENTATION
#include <amp.h>

int main(void) {
    amp_ctx *ctx;
    if (amp_version() != AMP_VERSION) return 1;
    if (amp_cpu_create(&ctx, NULL) != AMP_OK) return 2;
    amp_ctx_destroy(ctx);
    return 0;
}
