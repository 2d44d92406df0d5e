/* fuzz.h - what the fuzzers share. A fuzzer is a function of bytes, LLVMFuzzerTestOneInput: they drive every choice, so
   that libFuzzer can vary them and a finding is a file of bytes. FUZZ_LIBFUZZER: libFuzzer's main. Else the main at the
   end of this file makes the bytes from seeds:
       fuzz_X [--seed N] [--count N] [--seconds N] [--bytes N] [FILE...]
   one run per seed from N on (1), --count of them (20), or as many as --seconds allow, of --bytes bytes each; FILE: the
   bytes of a finding. Last line: N passed, N failed, N skipped. A finding is written to fuzz-SEED, which libFuzzer
   reads, too. */
#ifndef FUZZ_H
#define FUZZ_H

#if !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE)
#  define _POSIX_C_SOURCE 200112L /* clock_gettime */
#endif
#include "../amp.h"
#ifdef FUZZ_CUDA
#  include "../amp_cuda.cuh"
#endif

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
#if defined(__SANITIZE_ADDRESS__) || (defined(__clang__) && defined(FUZZ_SANITIZED))
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
#endif
#ifdef __cplusplus
}
#endif

/* ---- choices ---- */

static struct {
    const uint8_t *data;
    size_t n, at;
    uint64_t random; /* of fuzz_random, for contents of arrays */
} fuzz;

static inline void fuzz_begin(const uint8_t *data, size_t n) {
    fuzz.data = data;
    fuzz.n = n;
    fuzz.at = 0;
    fuzz.random = 1;
}
static inline int fuzz_left(void) { return fuzz.at < fuzz.n; }
static inline uint32_t fuzz_byte(void) { return fuzz.at < fuzz.n ? fuzz.data[fuzz.at++] : 255; }
static inline uint32_t fuzz_u32(void) {
    uint32_t x = fuzz_byte() << 24;
    x |= fuzz_byte() << 16;
    x |= fuzz_byte() << 8;
    return x | fuzz_byte();
}
static inline uint32_t fuzz_below(uint32_t n) { /* 0 .. n-1 */
    if (n <= 1) return 0;
    if (n <= 256) return fuzz_byte() % n;
    return fuzz_u32() % n;
}
static inline int fuzz_percent(uint32_t p) { return fuzz_byte() * 100u < p * 255u; } /* never without bytes */
static inline uint64_t fuzz_random(void) {
    fuzz.random ^= fuzz.random << 13;
    fuzz.random ^= fuzz.random >> 7;
    fuzz.random ^= fuzz.random << 17;
    return fuzz.random * 0x2545f4914f6cdd1du;
}
static inline void fuzz_random_from(uint32_t seed) {
    fuzz.random = ((uint64_t)seed + 1) * 0x9e3779b97f4a7c15u;
    if (!fuzz.random) fuzz.random = 1;
}

static inline float fuzz_special(void) {
    static const uint32_t bits[] = {0, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0x40000000, 0x3a83126f,
        0x322bcc77, 0x7f7fffff, 0xff7fffff, 1, 0x00800000, 0x477fe000, 0x477ff000, 0x47800000, 0x3f666666, 0x3f7fbe77,
        0x43e00000, 0x7149f2ca, 0x7f800000, 0xff800000, 0x7fc00000, 0x7fa00000, 0x80000001, 0x00400000};
    uint32_t k = fuzz_below(sizeof bits / sizeof bits[0] + 1);
    return ampi_float(k < sizeof bits / sizeof bits[0] ? bits[k] : fuzz_u32());
}
static inline float fuzz_real(void) { return ((float)fuzz_below(256) - 128.0f) / 64.0f; }

/* ---- what is seen ---- */

static inline uint64_t fuzz_hash(uint64_t h, const void *data, size_t n) {
    const unsigned char *b = (const unsigned char *)data;
    uint64_t x;
    for (; n >= 8; n -= 8, b += 8) {
        memcpy(&x, b, 8);
        h = (h ^ x) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    for (; n; n--, b++) {
        h = (h ^ *b) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}
static inline uint64_t fuzz_hash_u64(uint64_t h, uint64_t x) { return fuzz_hash(h, &x, sizeof x); }

/* ---- findings ---- */

static struct {
    uint64_t seed;
    unsigned long run, failed;
    char where[200]; /* the call that is made now */
    char counts[300];
} fuzz_now;

#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 1, 2)))
#endif
static inline void fuzz_where(const char *format, ...) {
    va_list va;
    va_start(va, format);
    vsnprintf(fuzz_now.where, sizeof fuzz_now.where, format, va);
    va_end(va);
}

static inline void fuzz_keep_input(void) {
    char name[64];
    FILE *f;
    snprintf(name, sizeof name, "fuzz-%llu", AMPI_ULL(fuzz_now.seed));
    f = fopen(name, "wb");
    if (!f) return;
    (void)fwrite(fuzz.data, 1, fuzz.n, f);
    (void)fclose(f);
    fprintf(stderr, "its bytes are in %s\n", name);
}

/* The end: something does not hold. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 1, 2), noreturn))
#endif
static inline void fuzz_fail(const char *format, ...) {
    va_list va;
    fflush(stdout);
    fprintf(stderr, "FAILED seed %llu, %s: ", AMPI_ULL(fuzz_now.seed), fuzz_now.where);
    va_start(va, format);
    vfprintf(stderr, format, va);
    va_end(va);
    fprintf(stderr, "\n");
#ifdef FUZZ_LIBFUZZER
    abort();
#else
    fuzz_keep_input();
    fflush(stderr);
    printf("%lu passed, 1 failed, 0 skipped\n", fuzz_now.run);
    fflush(stdout);
    if (getenv("FUZZ_ABORT")) abort();
    _Exit(1);
#endif
}

/* ---- contexts ---- */

/* Context memory in host memory, for reading: the same address, or a copy in `room`. */
static inline const void *fuzz_look(amp_ctx *bystander, void *room, const void *memory, size_t bytes) {
#ifdef FUZZ_CUDA
    if (amp_copy(bystander, room, memory, bytes) != AMP_OK) fuzz_fail("copy: %s", amp_last_error(bystander));
    return room;
#else
    (void)bystander;
    (void)room;
    (void)bytes;
    return memory;
#endif
}

/* ---- main ---- */

#ifndef FUZZ_LIBFUZZER
static void fuzz_one_file(const char *name) {
    FILE *f = fopen(name, "rb");
    uint8_t *data = (uint8_t *)malloc(1 << 20);
    size_t n = f && data ? fread(data, 1, 1 << 20, f) : 0;
    if (!f) fuzz_fail("%s cannot be read", name);
    (void)fclose(f);
    (void)LLVMFuzzerTestOneInput(data, n);
    free(data);
    fuzz_now.run++;
}
static void fuzz_one_seed(uint8_t *data, size_t n) {
    uint64_t x = (fuzz_now.seed + 1) * 0x9e3779b97f4a7c15u;
    size_t i;
    for (i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        data[i] = (uint8_t)(x >> 32);
    }
    (void)LLVMFuzzerTestOneInput(data, n);
    fuzz_now.run++;
    fuzz_now.seed++;
}
static double fuzz_seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs the inputs that the arguments ask for. bytes: of an input, when none are given. */
static int fuzz_main(int argc, char **argv, size_t bytes) {
    unsigned long count = 20, seconds = 0, files = 0;
    double end;
    uint8_t *data;
    int i;
    fuzz_now.seed = 1;
    for (i = 1; i < argc; i++) {
        unsigned long long number = i + 1 < argc ? strtoull(argv[i + 1], NULL, 10) : 0;
        if (strcmp(argv[i], "--seed") == 0)
            fuzz_now.seed = number;
        else if (strcmp(argv[i], "--count") == 0)
            count = (unsigned long)number;
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = (unsigned long)number;
        else if (strcmp(argv[i], "--bytes") == 0)
            bytes = (size_t)number;
        else {
            fuzz_one_file(argv[i]);
            files++;
            continue;
        }
        i++;
    }
    data = (uint8_t *)malloc(bytes ? bytes : 1);
    end = fuzz_seconds() + (double)seconds;
    while (!files && data && (seconds ? fuzz_seconds() < end : fuzz_now.run < count))
        fuzz_one_seed(data, bytes);
    free(data);
    if (fuzz_now.counts[0]) printf("%s\n", fuzz_now.counts);
    printf("%lu passed, %lu failed, 0 skipped\n", fuzz_now.run, fuzz_now.failed);
    return fuzz_now.failed != 0;
}
#endif

#endif
