/* second.c - a file that only uses the header, linked to a file that has the implementation. */
#include "../../amp.h"

int second_file(void);
int second_file(void) {
    amp_ctx *ctx = NULL;
    int ok = amp_cpu_create(&ctx, NULL) == AMP_OK;
    amp_ctx_destroy(ctx);
    return ok ? amp_version() : -1;
}
