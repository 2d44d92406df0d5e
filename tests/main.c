/* main.c - runs the tests of all files on all contexts.

   tests [-v] [--context NAME] [--filter TEXT] [--file NAME] [--slice I/N] [--list] [--full] [--counts]
         [--seed N] [--without NAMES]

   --without cpu-sse2,cpu-3: not on these contexts, which have their turn another day (tests/today.sh).
   --file step: the tests of tests/test_step.c. --slice 2/3: of the tests that would run on a context, each third from
   the second on. --counts: a line for each file of tests and context, "counts CONTEXT FILE N": of these
   tests/expected/floor.txt is made.

   The last line is "N passed, N failed, N skipped": one per test and context, and one skipped for each context that
   this machine or this build lacks. Exit status 1 if anything failed. */
#include "t.h"

#include <stdarg.h>
#include <time.h>
/* What no other process of this machine has now; 0 where nothing tells. */
#if defined(_WIN32)
#  include <process.h>
#  define process_number() ((unsigned long)_getpid())
#elif defined(__wasi__)
#  define process_number() 0ul
#else
#  include <unistd.h>
#  define process_number() ((unsigned long)getpid())
#endif

#ifndef T_NO_CUDA
#  include "../amp_cuda.cuh"
#endif

/* Sanitizers: a request for absurdly much memory is a test here; it must give NULL and not end the program. */
#if defined(__has_feature)
#  define T_FEATURE(x) __has_feature(x)
#else
#  define T_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || T_FEATURE(address_sanitizer) || \
    T_FEATURE(thread_sanitizer) || T_FEATURE(memory_sanitizer)
#  ifdef __cplusplus
extern "C" {
#  endif
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__msan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__msan_default_options(void) { return "allocator_may_return_null=1"; }
#  ifdef __cplusplus
}
#  endif
#endif

static const t_place places[] = {
    {"host", T_KIND_HOST, AMP_SIMD_AUTO, 0},
    {"cpu-scalar", T_KIND_CPU, AMP_SIMD_SCALAR, 1},
    {"cpu-sse2", T_KIND_CPU, AMP_SIMD_SSE2, 1},
    {"cpu-neon", T_KIND_CPU, AMP_SIMD_NEON, 1},
    {"cpu-avx2", T_KIND_CPU, AMP_SIMD_AVX2, 1},
    {"cpu-avx512", T_KIND_CPU, AMP_SIMD_AVX512, 1},
    {"cpu-2", T_KIND_CPU, AMP_SIMD_AUTO, 2},
    {"cpu-3", T_KIND_CPU, AMP_SIMD_AUTO, 3},
    {"cuda", T_KIND_CUDA, AMP_SIMD_AUTO, 0},
};
#define N_PLACES (sizeof places / sizeof places[0])

static struct {
    int full, verbose, counts, stop;
    unsigned slice, slices; /* --slice I/N */
    const char *file, *without;
    uint64_t seed;
    char dir[121]; /* of temporary files: the program's, so a build folder */
} options;

static struct {
    char name[40][256];
    size_t n;
} files;

/* Checks of the running test that the harness made: its copies. A test that has no others has checked nothing. */
static unsigned long long own_checks;

/* ---- checks ---------------------------------------------------------------------------------------------------- */

#define MAX_PRINTED 12u /* failures printed per test */

static void head(t_run *t, const char *file, int line) {
    const char *slash = strrchr(file, '/');
    printf("FAILED %s on %s, %s:%d: ", t->test, t->place->name, slash ? slash + 1 : file, line);
}

static void tail(t_run *t) {
    if (t->note[0]) printf("  [%s]", t->note);
    printf("\n");
    if (t->failures == MAX_PRINTED) printf("       ... more failures of this test are not printed\n");
    fflush(stdout);
}

static int count(t_run *t, int ok) { /* 1: print it */
    t->checks++;
    if (ok) return 0;
    return ++t->failures <= MAX_PRINTED;
}

int t_check(t_run *t, int ok, const char *file, int line, const char *format, ...) {
    if (count(t, ok)) {
        va_list args;
        head(t, file, line);
        va_start(args, format);
        vprintf(format, args);
        va_end(args);
        tail(t);
    }
    return ok;
}

int t_check_eq(t_run *t, long long a, long long b, const char *sa, const char *sb, const char *file, int line) {
    if (count(t, a == b)) {
        head(t, file, line);
        printf("%s == %s: %lld (0x%llx) and %lld (0x%llx)", sa, sb, a, (unsigned long long)a, b, (unsigned long long)b);
        tail(t);
    }
    return a == b;
}

int t_check_f32(t_run *t, float a, float b, const char *sa, const char *sb, const char *file, int line) {
    uint32_t ua, ub;
    memcpy(&ua, &a, 4);
    memcpy(&ub, &b, 4);
    if (count(t, ua == ub)) {
        head(t, file, line);
        printf("%s == %s: %.9g (%08x) and %.9g (%08x)", sa, sb, (double)a, ua, (double)b, ub);
        tail(t);
    }
    return ua == ub;
}

int t_check_f64(t_run *t, double a, double b, const char *sa, const char *sb, const char *file, int line) {
    int ok = memcmp(&a, &b, 8) == 0;
    if (count(t, ok)) {
        head(t, file, line);
        printf("%s == %s: %.17g and %.17g", sa, sb, a, b);
        tail(t);
    }
    return ok;
}

int t_check_near(
    t_run *t, double a, double b, double tolerance, const char *sa, const char *sb, const char *file, int line) {
    uint64_t ua, ub; /* classes are told by bits: true in every compiler mode */
    const uint64_t inf = 0x7ff0000000000000u, all = 0x7fffffffffffffffu;
    int ok;
    memcpy(&ua, &a, 8);
    memcpy(&ub, &b, 8);
    if ((ua & all) > inf || (ub & all) > inf)
        ok = (ua & all) > inf && (ub & all) > inf;
    else if ((ua & all) == inf || (ub & all) == inf)
        ok = ua == ub;
    else
        ok = (a > b ? a - b : b - a) <= tolerance;
    if (count(t, ok)) {
        head(t, file, line);
        printf("%s near %s: %.9g and %.9g differ by %.3g, allowed %.3g", sa, sb, a, b, a - b, tolerance);
        tail(t);
    }
    return ok;
}

/* An element of 1, 2, 4 or 8 bytes as a number, whatever the byte order of this machine. */
static unsigned long long element_bits(const unsigned char *p, size_t size) {
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (size) {
    case 1: return *p;
    case 2: memcpy(&u16, p, 2); return u16;
    case 4: memcpy(&u32, p, 4); return u32;
    case 8: memcpy(&u64, p, 8); return u64;
    default: return 0;
    }
}

int t_check_bits(
    t_run *t, const void *got, const void *want, size_t n, size_t size, const char *what, const char *file, int line) {
    int ok = n == 0 || memcmp(got, want, n * size) == 0;
    if (count(t, ok)) {
        const unsigned char *g = (const unsigned char *)got, *w = (const unsigned char *)want;
        int digits = (int)(2 * size);
        size_t i = 0, differ = 0, k;
        while (memcmp(g + i * size, w + i * size, size) == 0)
            i++;
        for (k = i; k < n; k++)
            differ += memcmp(g + k * size, w + k * size, size) != 0;
        head(t, file, line);
        printf("%s[%lu] is %0*llx, should be %0*llx (%lu of %lu differ)", what, (unsigned long)i, digits,
            element_bits(g + i * size, size), digits, element_bits(w + i * size, size), (unsigned long)differ,
            (unsigned long)n);
        tail(t);
    }
    return ok;
}

/* Does text contain one of the words in "a|b|c"? Cuts alternatives at its bars. */
static int names_one(const char *text, char *alternatives) {
    char *word = alternatives;
    while (word && *word) {
        char *bar = strchr(word, '|');
        if (bar) *bar++ = 0;
        if (strstr(text, word)) return 1;
        word = bar;
    }
    return 0;
}

/* Does text contain each of the words? They are separated by blanks; "a|b" stands for one of the two. */
static int names_all(const char *text, const char *words) {
    char buf[256], *rest = buf;
    if (strlen(words) >= sizeof buf) return 0;
    strcpy(buf, words);
    while (*rest) {
        char *word = rest, *blank = strchr(rest, ' ');
        rest = blank ? blank + 1 : rest + strlen(rest);
        if (blank) *blank = 0;
        if (*word && !names_one(text, word)) return 0;
    }
    return 1;
}

T_CALLED const char *t_called;
int t_check_status(
    t_run *t, amp_status got, amp_status want, const char *words, const char *call, const char *file, int line) {
    const char *text = amp_last_error(t->ctx);
    int ok = got == want && (!words || (t_names_verb(text) && names_all(text, words)));
    if (count(t, ok)) {
        head(t, file, line);
        printf("%s gives %d, should be %d", call, (int)got, (int)want);
        if (words) printf(" and name \"%s\" after \"%s: \"", words, t_called ? t_called : "");
        printf("; last error: \"%s\"", text);
        tail(t);
    }
    return ok;
}

void t_note(t_run *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(t->note, sizeof t->note, format, args);
    va_end(args);
}

void t_skip(t_run *t, const char *reason) { t->skip = reason; }

/* ---- data ------------------------------------------------------------------------------------------------------ */

uint64_t t_u64(t_run *t) { /* splitmix64 */
    uint64_t z = t->rng += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
uint32_t t_u32(t_run *t) { return (uint32_t)(t_u64(t) >> 32); }
uint32_t t_below(t_run *t, uint32_t n) { return (uint32_t)(((uint64_t)t_u32(t) * n) >> 32); }
double t_unit(t_run *t) { return (double)(t_u64(t) >> 11) * (1.0 / 9007199254740992.0); }
float t_real(t_run *t) { return (float)((t_unit(t) + t_unit(t) + t_unit(t) + t_unit(t) - 2.0) * 1.7320508); }

static float from_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}

float t_range(t_run *t, int emin, int emax) {
    uint32_t e = (uint32_t)(127 + emin + (int)t_below(t, (uint32_t)(emax - emin + 1)));
    return from_bits((t_u32(t) & 0x807fffffu) | (e << 23));
}

float t_pattern(t_run *t) {
    static const uint32_t special[] = {0, 1, 0x00000002, 0x007fffff, 0x00800000, 0x00800001, 0x33000000, 0x33000001,
        0x33800000, 0x33c00000, 0x387fc000, 0x387fdfff, 0x387fe000, 0x38800000, 0x3f800000, 0x3f801000, 0x3f803000,
        0x3f808000, 0x43e00000, 0x43e80000, 0x43e80001, 0x47600000, 0x476fffff, 0x47700000, 0x477fe000, 0x477fefff,
        0x477ff000, 0x477fffff, 0x47800000, 0x7f7f7fff, 0x7f7f8000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fa02000,
        0x7fbfffff, 0x7fc00000, 0x7fffffff, 0x3a800000, 0x3a800001, 0x3b000000, 0x37000000, 0x37000001, 0x37800000,
        0x00008000, 0x00008001};
    uint32_t u = t_u32(t), kind = t_below(t, 8);
    if (kind == 0) return from_bits(special[t_below(t, sizeof special / sizeof special[0])] | (u & 0x80000000u));
    if (kind == 1) return t_range(t, -27, 17);        /* where the small formats live */
    if (kind == 2) return from_bits(u & 0xffffe000u); /* ties and exact numbers */
    return from_bits(u);
}

void t_fill_real(t_run *t, void *host, amp_dtype dtype, size_t n, float size) {
    size_t i;
    for (i = 0; i < n; i++)
        amp_store(host, dtype, i, t_real(t) * size);
}

void t_fill_bits(t_run *t, void *host, size_t bytes) {
    unsigned char *p = (unsigned char *)host;
    size_t i;
    for (i = 0; i < bytes; i++)
        p[i] = (unsigned char)t_u32(t);
}

int t_full(void) { return options.full; }
int t_emulated(const t_run *t) {
#ifdef AMP_HOSTCUDA
    return t->place->kind == T_KIND_CUDA;
#else
    (void)t;
    return 0;
#endif
}
int t_slow(const t_run *t) { return t->place->kind == T_KIND_CUDA && !options.full; }
int t_twin(const t_run *t) {
    return t->place->kind == T_KIND_CPU && t->place->simd != AMP_SIMD_SCALAR && t->place->threads != 2 && !options.full;
}
int t_rounds(const t_run *t, int full_emulated, int full, int slow, int usual) {
    if (options.full) return t_emulated(t) ? full_emulated : full;
    if (t_twin(t)) return usual / 3;
    return t_slow(t) ? slow : usual;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static void *need(void *p) {
    if (!p) {
        fprintf(stderr, "the test program is out of memory\n");
        exit(2);
    }
    return p;
}

void *t_host(t_run *t, size_t bytes) {
    if (t->n_hosts == t->cap_hosts) {
        t->cap_hosts = t->cap_hosts ? 2 * t->cap_hosts : 64;
        t->hosts = (void **)need(realloc(t->hosts, t->cap_hosts * sizeof *t->hosts));
    }
    return t->hosts[t->n_hosts++] = need(calloc(bytes ? bytes : 1, 1));
}

#define GUARD  64u
#define POISON 0xa5

/* Writes or checks one guard. Big areas are poisoned in pieces, so that the harness itself needs little memory. */
static void poison(amp_ctx *ctx, unsigned char *dev, size_t bytes) {
    static unsigned char piece[65536];
    size_t i, n;
    memset(piece, POISON, bytes < sizeof piece ? bytes : sizeof piece);
    for (i = 0; i < bytes; i += n) {
        n = bytes - i < sizeof piece ? bytes - i : sizeof piece;
        if (amp_copy(ctx, dev + i, piece, n) != AMP_OK) {
            fprintf(stderr, "amp_copy failed: %s\n", amp_last_error(ctx));
            exit(2);
        }
    }
}

/* Where the address sanitizer runs, reading a guard is found, too. */
#if defined(__ELF__) && defined(__GNUC__) && !defined(__TINYC__)
extern void __asan_poison_memory_region(const volatile void *, size_t) __attribute__((weak));
extern void __asan_unpoison_memory_region(const volatile void *, size_t) __attribute__((weak));
static void close_guard(const unsigned char *guard) {
    if (__asan_poison_memory_region) __asan_poison_memory_region(guard, GUARD);
}
static void open_guard(const unsigned char *guard) {
    if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(guard, GUARD);
}
#else
static void close_guard(const unsigned char *guard) { (void)guard; }
static void open_guard(const unsigned char *guard) { (void)guard; }
#endif
static void *area(t_run *t, const void *host, size_t bytes, size_t offset) {
    t_area a;
    void *p = NULL;
    if (t->n_areas == t->cap_areas) {
        t->cap_areas = t->cap_areas ? 2 * t->cap_areas : 64;
        t->areas = (t_area *)need(realloc(t->areas, t->cap_areas * sizeof *t->areas));
    }
    a.ctx = t->ctx;
    a.bytes = bytes;
    a.front = 256 + offset;
    if (amp_alloc(t->ctx, &p, a.front + bytes + GUARD, "test") != AMP_OK) {
        fprintf(stderr, "%s: amp_alloc failed: %s\n", t->test, amp_last_error(t->ctx));
        exit(2);
    }
    a.base = (unsigned char *)p;
    a.data = a.base + a.front;
    t->areas[t->n_areas++] = a;
    if (host) {
        poison(a.ctx, a.data - GUARD, GUARD);
        poison(a.ctx, a.data + bytes, GUARD);
        t_set(t, a.data, host, bytes);
    } else
        poison(a.ctx, a.data - GUARD, GUARD + bytes + GUARD);
    close_guard(a.data - GUARD);
    close_guard(a.data + bytes);
    return a.data;
}

void *t_alloc(t_run *t, size_t bytes) { return area(t, NULL, bytes, 0); }
void *t_alloc_at(t_run *t, size_t bytes, size_t offset) { return area(t, NULL, bytes, offset); }
void *t_put(t_run *t, const void *host, size_t bytes) { return area(t, host, bytes, 0); }
void *t_put_at(t_run *t, const void *host, size_t bytes, size_t offset) { return area(t, host, bytes, offset); }

static void copy(t_run *t, void *dst, const void *src, size_t bytes, const char *call) {
    if (!bytes) return;
    t_check_status(t, amp_copy(t->ctx, dst, src, bytes), AMP_OK, NULL, call, __FILE__, __LINE__);
    own_checks++;
}
void t_set(t_run *t, void *dev, const void *host, size_t bytes) {
    copy(t, dev, host, bytes, "amp_copy to context memory");
}
void t_get(t_run *t, void *host, const void *dev, size_t bytes) {
    copy(t, host, dev, bytes, "amp_copy from context memory");
}

static void check_guard(t_run *t, const t_area *a, const unsigned char *guard, const char *side) {
    unsigned char got[GUARD];
    amp_status st;
    size_t k = 0;
    open_guard(guard);
    st = amp_copy(a->ctx, got, guard, GUARD);
    while (st == AMP_OK && k < GUARD && got[k] == POISON)
        k++;
    t_check(t, st == AMP_OK && k == GUARD, __FILE__, __LINE__,
        "something wrote %s an array of %lu bytes (byte %lu of the guard; copy gives %d)", side,
        (unsigned long)a->bytes, (unsigned long)k, (int)st);
}

void t_clear(t_run *t) {
    size_t i;
    for (i = 0; i < t->n_areas; i++) {
        const t_area *a = &t->areas[i];
        check_guard(t, a, a->data - GUARD, "before");
        check_guard(t, a, a->data + a->bytes, "after");
        t_check(t, amp_free(a->ctx, a->base) == AMP_OK, __FILE__, __LINE__, "amp_free of the test's memory: %s",
            amp_last_error(a->ctx));
    }
    for (i = 0; i < t->n_hosts; i++)
        free(t->hosts[i]);
    t->n_areas = t->n_hosts = 0;
}

/* ---- contexts -------------------------------------------------------------------------------------------------- */

amp_status t_create_cpu(amp_ctx **out, amp_simd simd, int32_t threads) {
    amp_cpu_desc d = AMP_ZERO;
    d.simd = simd;
    d.threads = threads;
    return amp_cpu_create(out, &d);
}

/* The default allocator of CPU contexts here: memory that is not zero by luck. */
static unsigned long allocations;
static void *noisy_alloc(size_t bytes, void *user) {
    void *p = malloc(bytes ? bytes : 1);
    allocations++;
    (void)user;
    if (p) memset(p, 0xc9, bytes);
    return p;
}
static void noisy_free(void *p, size_t bytes, void *user) {
    (void)user;
    if (p) memset(p, 0xc8, bytes);
    free(p);
}

unsigned long t_allocations(void) { return allocations; }

amp_status t_create(const t_place *place, amp_ctx **out, const amp_allocator *allocator, const amp_logger *logger) {
    amp_cpu_desc d = AMP_ZERO;
    if (place->kind == T_KIND_CUDA) {
#ifdef T_NO_CUDA
        *out = NULL;
        return AMP_ERR_NO_CUDA;
#else
        amp_cuda_desc c = AMP_ZERO;
        if (allocator) c.host = *allocator;
        if (logger) c.logger = *logger;
        return amp_cuda_create(out, &c);
#endif
    }
    d.simd = place->simd;
    d.threads = place->threads;
    d.allocator.alloc_fn = noisy_alloc;
    d.allocator.free_fn = noisy_free;
    if (allocator) d.allocator = *allocator;
    if (logger) d.logger = *logger;
    return amp_cpu_create(out, &d);
}

amp_status t_create_flags(const t_place *place, amp_ctx **out, uint32_t gemm_flags) {
    amp_cpu_desc d = AMP_ZERO;
    *out = NULL;
    if (place->kind == T_KIND_CUDA) {
#ifdef T_NO_CUDA
        return AMP_ERR_NO_CUDA;
#else
        amp_cuda_desc e = AMP_ZERO;
        e.gemm_flags = gemm_flags;
        return amp_cuda_create(out, &e);
#endif
    }
    d.simd = place->simd;
    d.threads = place->threads;
    d.gemm_flags = gemm_flags;
    return amp_cpu_create(out, &d);
}

void t_reference(t_run *t, int on) {
    if (on && !t->ref && t_create_cpu(&t->ref, AMP_SIMD_SCALAR, 1) != AMP_OK) {
        fprintf(stderr, "no reference context\n");
        exit(2);
    }
    t->ctx = on ? t->ref : t->own;
}

void t_blob_add(t_blob *b, const void *host, size_t bytes) {
    if (b->bytes + bytes > b->cap) {
        b->cap = 2 * (b->bytes + bytes);
        b->data = (unsigned char *)need(realloc(b->data, b->cap));
    }
    if (bytes) memcpy(b->data + b->bytes, host, bytes);
    b->bytes += bytes;
}

void t_blob_dev(t_run *t, t_blob *b, const void *dev, size_t bytes) {
    void *host = need(malloc(bytes ? bytes : 1));
    t_get(t, host, dev, bytes);
    t_blob_add(b, host, bytes);
    free(host);
}

uint64_t t_fingerprint(t_run *t, const amp_array *arrays, size_t n) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    size_t i, k;
    for (i = 0; i < n; i++) {
        t_blob b = AMP_ZERO;
        t_blob_dev(t, &b, arrays[i].data, arrays[i].count * amp_dtype_size(arrays[i].dtype));
        h = (h ^ b.bytes) * 0x100000001b3u;
        for (k = 0; k < b.bytes; k++)
            h = (h ^ b.data[k]) * 0x100000001b3u;
        free(b.data);
    }
    return h;
}

size_t t_compare(t_run *t, amp_array a, amp_array b, size_t count) {
    size_t size = amp_dtype_size(a.dtype), i;
    t_blob x = AMP_ZERO, y = AMP_ZERO;
    if (!CHECK_EQ(a.dtype, b.dtype)) return 0;
    t_blob_dev(t, &x, a.data, count * size);
    t_blob_dev(t, &y, b.data, count * size);
    for (i = 0; i < count; i++)
        if (memcmp(x.data + i * size, y.data + i * size, size) != 0) break;
    free(x.data);
    free(y.data);
    return i;
}

void t_same_everywhere(t_run *t, void (*scenario)(t_run *t, t_blob *b, const void *arg), const void *arg) {
    t_blob here = AMP_ZERO, there = AMP_ZERO;
    uint64_t rng = t->rng;
    scenario(t, &here, arg);
    t_reference(t, 1);
    t->rng = rng;
    scenario(t, &there, arg);
    t_reference(t, 0);
    t_check_eq(
        t, (long long)here.bytes, (long long)there.bytes, "bytes here", "bytes on the reference", __FILE__, __LINE__);
    if (here.bytes == there.bytes)
        t_check_bits(t, here.data, there.data, here.bytes, 1, "result here against the reference", __FILE__, __LINE__);
    free(here.data);
    free(there.data);
}

const char *t_file(const char *name) {
    const char *dir = getenv("TMPDIR");
    char full[256];
    size_t i;
    if (!dir || strlen(dir) > 120) dir = options.dir;
    snprintf(full, sizeof full, "%s/amp-test-%08lx-%lx-%.60s", dir, (unsigned long)(options.seed & 0xffffffffu),
        process_number(), name);
    for (i = 0; i < files.n; i++)
        if (strcmp(files.name[i], full) == 0) return files.name[i];
    if (files.n == sizeof files.name / sizeof files.name[0]) {
        fprintf(stderr, "too many temporary files\n");
        exit(2);
    }
    strcpy(files.name[files.n], full);
    return files.name[files.n++];
}

/* ---- run ------------------------------------------------------------------------------------------------------- */

/* CPU seconds, so that what else the machine does is not counted. */
#if defined(__wasi__) /* no such clock */
static double seconds(void) { return (double)time(NULL); }
#else
static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }
#endif

static unsigned flag_of(const t_place *p) {
    if (p->kind == T_KIND_HOST) return T_HOST;
    return p->kind == T_KIND_CPU ? T_CPU : T_CUDA;
}

static uint64_t hash_name(const char *s) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

/* What every test is checked for at its end, and what it must have done itself. */
static void check_end(t_run *t) {
    unsigned long long checked = t->checks - own_checks;
    t->ctx = t->own;
    t_note(t, "at the end");
    if (!checked && !t->skip)
        t_check(t, 0, __FILE__, __LINE__, "it checked nothing; a test that cannot run here says so with t_skip");
    if (t->own && !t->skip)
        t_check_status(t, amp_sync(t->own), AMP_OK, NULL, "amp_sync at the end", __FILE__, __LINE__);
    t_clear(t);
    if (t->own)
        t_check_eq(t, (long long)t_ledger(t->own, "total").bytes, 0, "bytes in the ledger at the end", "0", __FILE__,
            __LINE__);
}

typedef struct totals {
    unsigned long passed, failed, skipped;
    unsigned long long checks;
} totals;

static void run_test(const t_place *place, const t_test *test, totals *sum) {
    t_run t = AMP_ZERO;
    const char *verdict = "ok";
    double start = seconds();
    t.place = place;
    t.test = test->name;
    t.rng = options.seed ^ hash_name(test->name); /* the same numbers on every context */
    if (options.verbose) {
        printf("  %-11s %-34s ", place->name, test->name);
        fflush(stdout);
    }
    if (place->kind != T_KIND_HOST && t_create(place, &t.own, NULL, NULL) != AMP_OK) {
        t_check(&t, 0, __FILE__, __LINE__, "the context could be made before, and now it cannot");
    } else {
        t.ctx = t.own;
        own_checks = 0;
        test->fn(&t);
        check_end(&t);
    }
    amp_ctx_destroy(t.ref);
    amp_ctx_destroy(t.own);
    free(t.areas);
    free(t.hosts);
    sum->checks += t.checks;
    if (t.failures) {
        verdict = "FAILED";
        sum->failed++;
        if (t.failures > 1)
            printf("       %s on %s: %u of %llu checks failed\n", t.test, place->name, t.failures, t.checks);
    } else if (t.skip) {
        verdict = "skipped";
        sum->skipped++;
        printf("skipped: %s on %s: %s\n", t.test, place->name, t.skip);
    } else
        sum->passed++;
    if (options.verbose) printf("%s, %llu checks, %.2f CPU s\n", verdict, t.checks, seconds() - start);
}

static int usage(const char *wrong) {
    if (wrong) fprintf(stderr, "what is \"%s\"?\n", wrong);
    fprintf(stderr,
        "usage: tests [-v] [--context NAME] [--filter TEXT] [--file NAME] [--slice I/N] [--list] [--full] [--counts]\n"
        "             [--seed N] [--stop] [--without NAMES]\n");
    return 2;
}

/* Is name one of names, "cpu-sse2,cpu-3"? */
static int listed(const char *names, const char *name) {
    const size_t length = strlen(name);
    while (names) {
        if (strncmp(names, name, length) == 0 && (names[length] == ',' || names[length] == 0)) return 1;
        names = strchr(names, ',');
        if (names) names++;
    }
    return 0;
}

/* "2/3": the second of three. */
static int read_slice(const char *text) {
    char *end;
    options.slice = (unsigned)strtoul(text, &end, 10);
    options.slices = *end == '/' ? (unsigned)strtoul(end + 1, &end, 10) : 0;
    return *end == 0 && options.slice >= 1 && options.slice <= options.slices;
}

/* Can this context be made here? If not, says why and counts it: skipped where the machine or the build lacks it. */
static int place_works(const t_place *place, char *device, size_t room, totals *all) {
    amp_ctx *ctx = NULL;
    amp_status status;
    snprintf(device, room, "no context");
    if (place->kind == T_KIND_HOST) return 1;
    if (listed(options.without, place->name)) {
        printf("%-11s skipped: it has its turn another day\n", place->name);
        all->skipped++;
        return 0;
    }
    status = t_create(place, &ctx, NULL, NULL);
    if (status == AMP_ERR_UNSUPPORTED || status == AMP_ERR_NO_CUDA) {
        printf("%-11s skipped: %s\n", place->name, amp_strerror(status));
        all->skipped++;
        return 0;
    }
    if (status != AMP_OK) {
        printf("%-11s FAILED: %s\n", place->name, amp_strerror(status));
        all->failed++;
        return 0;
    }
    snprintf(device, room, "%s", amp_ctx_name(ctx));
    amp_ctx_destroy(ctx);
    return 1;
}

/* The tests of all files that run on this context and whose names contain filter: run, or only named. */
static void run_place(const t_place *place, const char *filter, int list, totals *sum) {
#define T_TABLE(name) {#name, t_suite_##name},
    static const struct {
        const char *name;
        const t_test *tests;
    } suites[] = {T_SUITES(T_TABLE){NULL, NULL}};
    unsigned place_in_slice = 0;
    size_t s, k;
    for (s = 0; suites[s].name; s++) {
        unsigned long long before = sum->checks;
        if (options.file && strcmp(suites[s].name, options.file) != 0) continue;
        for (k = 0; suites[s].tests[k].name; k++) {
            const t_test *test = &suites[s].tests[k];
            if (!(test->where & flag_of(place))) continue;
            if (filter && !strstr(test->name, filter)) continue;
            if (options.slices && place_in_slice++ % options.slices != options.slice - 1) continue;
            if (list)
                printf("%s %s\n", place->name, test->name);
            else
                run_test(place, test, sum);
            if (options.stop && sum->failed) return;
        }
        if (options.counts && !list) printf("counts %s %s %llu\n", place->name, suites[s].name, sum->checks - before);
    }
}

static void program_dir(const char *program) {
    const char *slash = program ? strrchr(program, '/') : NULL;
    size_t n = slash ? (size_t)(slash - program) : 0;
    if (n == 0 || n >= sizeof options.dir)
        strcpy(options.dir, ".");
    else
        memcpy(options.dir, program, n);
}

int main(int argc, char **argv) {
    const char *context = NULL, *filter = NULL;
    totals all = AMP_ZERO;
    int list = 0, i, known = 0;
    size_t p, k;
    options.seed = ((uint64_t)time(NULL) << 32 | process_number()) * 0x9e3779b97f4a7c15u >> 32;
    program_dir(argv[0]);
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0)
            options.verbose = 1;
        else if (strcmp(argv[i], "--full") == 0)
            options.full = 1;
        else if (strcmp(argv[i], "--stop") == 0) /* at the first that fails */
            options.stop = 1;
        else if (strcmp(argv[i], "--list") == 0)
            list = 1;
        else if (strcmp(argv[i], "--context") == 0 && i + 1 < argc)
            context = argv[++i];
        else if (strcmp(argv[i], "--filter") == 0 && i + 1 < argc)
            filter = argv[++i];
        else if (strcmp(argv[i], "--file") == 0 && i + 1 < argc)
            options.file = argv[++i];
        else if (strcmp(argv[i], "--without") == 0 && i + 1 < argc)
            options.without = argv[++i];
        else if (strcmp(argv[i], "--counts") == 0)
            options.counts = 1;
        else if (strcmp(argv[i], "--slice") == 0 && i + 1 < argc) {
            if (!read_slice(argv[++i])) return usage(argv[i]);
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            options.seed = strtoull(argv[++i], NULL, 0);
        else
            return usage(argv[i]);
    }
    for (p = 0; p < N_PLACES; p++)
        known |= !context || strcmp(context, places[p].name) == 0;
    if (!known) return usage(context);
    if (!list) {
        printf("seed %llu%s\n", (unsigned long long)options.seed, options.full ? ", full" : "");
        fflush(stdout);
    }
    for (p = 0; p < N_PLACES; p++) {
        const t_place *place = &places[p];
        totals sum = AMP_ZERO;
        double start = seconds();
        char device[128];
        if (context && strcmp(context, place->name) != 0) continue;
        if (!list && !place_works(place, device, sizeof device, &all)) continue;
        run_place(place, filter, list, &sum);
        if (list) continue;
        printf("%-11s %lu passed, %lu failed, %lu skipped, %llu checks, %.1f CPU s  (%s)\n", place->name, sum.passed,
            sum.failed, sum.skipped, sum.checks, seconds() - start, device);
        fflush(stdout);
        all.passed += sum.passed;
        all.failed += sum.failed;
        all.skipped += sum.skipped;
    }
    if (list) return 0;
    for (k = 0; k < files.n; k++)
        remove(files.name[k]);
    if (all.failed) printf("repeat with --seed %llu\n", (unsigned long long)options.seed);
    printf("%lu passed, %lu failed, %lu skipped\n", all.passed, all.failed, all.skipped);
    return all.failed != 0;
}
