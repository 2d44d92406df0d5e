/* failing_driver.c - for tests/failing_driver.sh. With -DDRIVER a libcuda.so.1 that cannot be started, in the way that
   DRIVER_FAILS names: a CUresult of cuInit, "empty" (no device in the list), "old" (made for CUDA 12.2), or "other"
   (none of NVIDIA's). Without: a program that makes a context, twice, and prints what comes of it. */
#ifndef DRIVER
#  include "../amp.h"
#  include "../amp_cuda.cuh"
#  include <stdio.h>

static void say(amp_log_level level, amp_status status, const char *text, void *user) {
    (void)level;
    (void)status;
    (void)user;
    printf("%s\n", text);
}
int main(void) {
    amp_ctx *ctx = NULL;
    amp_cuda_desc d = AMP_ZERO;
    amp_status first, second;
    first = amp_cuda_create(&ctx, &d);
    d.logger.fn = say;
    second = amp_cuda_create(&ctx, &d);
    printf("available %d, status %d, again %d, context %s\n", amp_cuda_available(), (int)first, (int)second,
        ctx ? "made" : "none");
    amp_ctx_destroy(ctx);
    return 0;
}
#else
#  include <stdio.h>
#  include <stdlib.h>
#  include <string.h>

static int nothing(void) { return 801; } /* CUDA_ERROR_NOT_SUPPORTED */
static int fine(void) { return 0; }
static int is(const char *way) { return getenv("DRIVER_FAILS") && !strcmp(getenv("DRIVER_FAILS"), way); }

int cuInit(unsigned flags) {
    int code = getenv("DRIVER_FAILS") ? atoi(getenv("DRIVER_FAILS")) : 0;
    (void)flags;
    return is("empty") ? 100 : code;
}
int cuDriverGetVersion(int *version) {
    *version = is("old") ? 12020 : 13000;
    return 0;
}
int cuDeviceGetCount(int *count) {
    *count = is("empty") ? 0 : 1;
    return 0;
}
int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 1;
    (void)device;
    return 0;
}
int cuDeviceGetName(char *name, int bytes, int device) {
    (void)device;
    return snprintf(name, (size_t)bytes, "none") < 0;
}
/* Tables of functions that only NVIDIA knows. */
int cuGetExportTable(const void **table, const void *id) {
    static const unsigned char probe[4] = {0x51, 0x19, 0xcf, 0xf8};
    static const void *functions[128];
    int i;
    if (!memcmp(id, probe, 4)) return 801;
    functions[0] = (const void *)sizeof functions;
    for (i = 1; i < 128; i++)
        functions[i] = (const void *)&fine;
    *table = functions;
    return 0;
}
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *found);
int cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags) {
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *found) {
    static const struct {
        const char *name;
        void *function;
    } known[] = {{"cuInit", (void *)&cuInit}, {"cuDriverGetVersion", (void *)&cuDriverGetVersion},
        {"cuDeviceGetCount", (void *)&cuDeviceGetCount}, {"cuDeviceGet", (void *)&cuDeviceGet},
        {"cuDeviceGetAttribute", (void *)&cuDeviceGetAttribute}, {"cuDeviceGetName", (void *)&cuDeviceGetName},
        {"cuGetExportTable", (void *)&cuGetExportTable}, {"cuGetProcAddress", (void *)&cuGetProcAddress_v2}};
    size_t i;
    (void)version;
    (void)flags;

    *function = (void *)&nothing;
    for (i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name)) *function = known[i].function;
    if (found) *found = 0;
    return 0;
}
#endif
