/* program.h - what the larger examples say and do alike: end with one clear line, read options, open a context,
 * allocate host memory, count the claims of --check, and make a number of all weights. Include it after amp.h, with
 * PROGRAM defined: the name that begins a line of failure.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "amp.h"
#ifdef WITH_CUDA
#  include "amp_cuda.cuh"
#endif

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#  include <direct.h>
#  include <io.h>
#  define make_dir(path)   _mkdir(path)
#  define remove_dir(path) _rmdir(path)
#  define on_terminal()    _isatty(1)
#  define may_write(path)  (_access(path, 2) == 0)
#  ifndef S_ISDIR
#    define S_ISDIR(mode) (((mode) & S_IFMT) == S_IFDIR)
#  endif
#else
#  include <unistd.h>
#  define make_dir(path)   mkdir(path, 0777)
#  define remove_dir(path) rmdir(path)
#  define on_terminal()    isatty(1)
#  define may_write(path)  (access(path, W_OK) == 0)
#endif

#ifdef __GNUC__
#  define PROGRAM_FN static __attribute__((unused)) /* a program need not call them all */
#else
#  define PROGRAM_FN static
#endif

PROGRAM_FN void end_with(int status, const char *format, va_list args) { /* one clear line */
    fputs(PROGRAM ": ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    exit(status);
}
PROGRAM_FN void fail(const char *format, ...) { /* status 1 */
    va_list args;
    va_start(args, format);
    end_with(1, format, args);
    va_end(args);
}

PROGRAM_FN void must(amp_ctx *ctx, amp_status status) { /* a verb failed: amp.h knows why */
    if (status != AMP_OK) fail("%s", *amp_last_error(ctx) ? amp_last_error(ctx) : amp_strerror(status));
}

/* ---- the command line: what is wrong with it is said in the same words by all programs, with status 2 ---- */

PROGRAM_FN void option_refuse(const char *format, ...) {
    va_list args;
    va_start(args, format);
    end_with(2, format, args);
    va_end(args);
}
PROGRAM_FN void option_unknown(const char *option) { option_refuse("unknown option '%s', see --help", option); }
PROGRAM_FN void option_help(const char *argument, const char *text) { /* prints it and ends where help is asked for */
    if (strcmp(argument, "--help") && strcmp(argument, "-h")) return;
    fputs(text, stdout);
    exit(0);
}
/* The value of an option: text is what stands behind it, NULL or "" if nothing does. */
PROGRAM_FN const char *option_text(const char *option, const char *text) {
    if (!text || !*text) option_refuse("%s needs a value, see --help", option);
    return text;
}
PROGRAM_FN double option_number(const char *option, const char *text, double low, double high, int whole) {
    char *end;
    double v = strtod(option_text(option, text), &end);
    int is_number = end != text && !*end && v >= low && v <= high;
    if (whole && !(is_number && v - (double)(long long)v >= 0 && v - (double)(long long)v <= 0))
        option_refuse("%s: '%s' is not a whole number from %.0f to %.0f", option, text, low, high);
    if (!is_number) option_refuse("%s: '%s' is not a number from %g to %g", option, text, low, high);
    return v;
}
PROGRAM_FN int option_choice(const char *option, const char *text, const char *const *names, int n) { /* its place */
    char list[256] = "";
    int i;
    (void)option_text(option, text);
    for (i = 0; i < n; i++) {
        if (!strcmp(text, names[i])) return i;
        if (i) strcat(list, i + 1 == n ? " or " : ", ");
        strcat(list, names[i]);
    }
    option_refuse("%s: '%s' is not %s", option, text, list);
    return 0;
}
PROGRAM_FN const char *option_device(const char *option, const char *text) {
    static const char *const devices[] = {"cpu", "cuda"};
    return devices[option_choice(option, text, devices, 2)];
}

/* --device: "cuda", "cpu", or NULL for a GPU if the program was built for one and there is one. On a GPU only the flags
   of products are taken from cpu. */
PROGRAM_FN amp_ctx *open_context(const char *device, const amp_cpu_desc *cpu) {
    amp_ctx *ctx = NULL;
    amp_status status;
    int cuda = device && !strcmp(device, "cuda");
#ifdef WITH_CUDA
    if (!device || cuda) {
        amp_cuda_desc gpu = AMP_ZERO;
        gpu.gemm_flags = cpu->gemm_flags;
        status = amp_cuda_create(&ctx, &gpu);
        if (status == AMP_OK) return ctx;
        if (cuda) fail("--device cuda: %s", amp_strerror(status));
        if (status != AMP_ERR_NO_CUDA) fail("the GPU: %s (--device cpu does without it)", amp_strerror(status));
    }
#endif
    if (cuda) fail("--device cuda: this program was built without CUDA");
    status = amp_cpu_create(&ctx, cpu);
    if (status == AMP_ERR_UNSUPPORTED) fail("--simd: this machine does not have that code path");
    must(NULL, status);
    return ctx;
}

/* --moments: how the optimizer's moments are kept */
PROGRAM_FN amp_dtype moment_format(const char *text) {
    static const char *const names[] = {"fp32", "bf16", "8bit"};
    static const amp_dtype formats[] = {AMP_F32, AMP_BF16, AMP_MOMENT_8BIT};
    return formats[option_choice("--moments", text, names, 3)];
}

PROGRAM_FN void *allocate(size_t count, size_t size) { /* host memory, zeroed */
    void *p = calloc(count ? count : 1, size);
    if (!p) fail("no memory for %lu x %lu bytes", (unsigned long)count, (unsigned long)size);
    return p;
}

/* --check says each thing that it claims, and counts those that do not hold: 0 or 1. */
PROGRAM_FN int claim(int holds, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs(holds ? "ok    " : "WRONG ", stdout);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
    return holds ? 0 : 1;
}

/* FNV-1a over the bits of all weights: two runs with the same number ended with the same weights. Waits. */
PROGRAM_FN uint64_t weights_hash(amp_ctx *ctx, amp_params *params) {
    uint64_t h = 0xcbf29ce484222325u;
    size_t p, i;
    for (p = 0; p < amp_params_count(params); p++) {
        size_t count = amp_param_get(params, p).count;
        float *w = (float *)allocate(count, sizeof *w);
        must(ctx, amp_param_read(params, p, w));
        for (i = 0; i < count; i++) {
            uint32_t bits;
            memcpy(&bits, &w[i], sizeof bits);
            h = (h ^ bits) * 0x100000001b3u;
        }
        free(w);
    }
    return h;
}
#endif
