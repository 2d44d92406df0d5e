/* t.h - the test harness: one suite of tests, run on every context.

   A test is  void fn(t_run *t);  and sits in the table of its file. It gets a fresh context in t->ctx (NULL for tests
   marked T_HOST) and touches context memory only through t_alloc, t_put, t_set and t_get, so that the same test works
   on a device. Every area that it gets has guards before and after it, which are checked when the test ends. */
#ifndef T_H
#define T_H

#include "../amp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "called.h"

typedef enum t_kind { T_KIND_HOST, T_KIND_CPU, T_KIND_CUDA } t_kind;

typedef struct t_place { /* where tests run */
    const char *name;
    t_kind kind;
    amp_simd simd;
    int32_t threads;
} t_place;

typedef struct t_area { /* context memory of a test */
    amp_ctx *ctx;
    unsigned char *base, *data;
    size_t bytes, front;
} t_area;

typedef struct t_run { /* one test on one context */
    const t_place *place;
    const char *test;
    amp_ctx *ctx; /* the context under test; NULL for T_HOST */
    amp_ctx *own; /* the same, also while t_reference has put a different one into ctx */
    amp_ctx *ref; /* portable C, one thread: made by t_reference */
    uint64_t rng;
    unsigned long long checks;
    unsigned failures;
    const char *skip; /* reason, when the test cannot run here */
    char note[200];
    t_area *areas;
    size_t n_areas, cap_areas;
    void **hosts;
    size_t n_hosts, cap_hosts;
} t_run;

#define T_HOST 1u /* needs no context, or makes its own: runs once */
#define T_CPU  2u
#define T_CUDA 4u
#define T_ALL  (T_CPU | T_CUDA)

typedef struct t_test {
    const char *name;
    void (*fn)(t_run *t);
    unsigned where;
} t_test;

/* One table per file, ended by a NULL name. */
/* clang-format off */
#define T_SUITES(X) \
    X(formats) X(arrays) X(context) X(scaler) X(params) X(step) X(phases) X(policy) X(products) X(product_table) \
    X(ordered) X(fp8) X(paths) X(memory) X(state) X(layouts) X(modes) X(threads) X(refusals) X(promises) X(resume) \
    X(report) X(edges) X(layers) X(moments)
/* clang-format on */
#define T_DECLARE(name) extern const t_test t_suite_##name[];
T_SUITES(T_DECLARE)
#undef T_DECLARE

/* ---- checks: each returns 1 when it holds ---- */

#if defined(__GNUC__) || defined(__clang__)
#  define T_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#  define T_PRINTF(a, b)
#endif

int t_check(t_run *t, int ok, const char *file, int line, const char *format, ...) T_PRINTF(5, 6);
int t_check_eq(t_run *t, long long a, long long b, const char *sa, const char *sb, const char *file, int line);
int t_check_f32(t_run *t, float a, float b, const char *sa, const char *sb, const char *file, int line);
int t_check_f64(t_run *t, double a, double b, const char *sa, const char *sb, const char *file, int line);
int t_check_near(
    t_run *t, double a, double b, double tolerance, const char *sa, const char *sb, const char *file, int line);
int t_check_bits(
    t_run *t, const void *got, const void *want, size_t n, size_t size, const char *what, const char *file, int line);
int t_check_status(
    t_run *t, amp_status got, amp_status want, const char *words, const char *call, const char *file, int line);

#define CHECK(c)        t_check(t, (c) ? 1 : 0, __FILE__, __LINE__, "%s", #c)
#define CHECK_EQ(a, b)  t_check_eq(t, (long long)(a), (long long)(b), #a, #b, __FILE__, __LINE__)
#define CHECK_F32(a, b) t_check_f32(t, a, b, #a, #b, __FILE__, __LINE__) /* by bits */
#define CHECK_F64(a, b) t_check_f64(t, a, b, #a, #b, __FILE__, __LINE__) /* by bits */
#define CHECK_OK(call)  t_check_status(t, call, AMP_OK, NULL, #call, __FILE__, __LINE__)

/* Within tol of each other; NaN equals NaN only, Inf equals Inf only. */
#define CHECK_NEAR(a, b, tol)          t_check_near(t, a, b, tol, #a, #b, __FILE__, __LINE__)
/* The bits of n elements of size 1, 2, 4 or 8. */
#define CHECK_BITS(got, want, n, size) t_check_bits(t, got, want, n, size, #got, __FILE__, __LINE__)
/* The status, and that amp_last_error(t->ctx) begins with the verb and names each of the words (separated by blanks;
   a|b: one of them). status and words call no verb: they may be evaluated after the call. */
#define CHECK_STATUS(call, status, words) \
    (t_called = NULL, t_check_status(t, call, status, words, #call, __FILE__, __LINE__))

/* What is being tried now: printed with a failure. */
void t_note(t_run *t, const char *format, ...) T_PRINTF(2, 3);
/* This test cannot run here. Return after it. */
void t_skip(t_run *t, const char *reason);

/* ---- data ---- */

uint64_t t_u64(t_run *t);
uint32_t t_u32(t_run *t);
uint32_t t_below(t_run *t, uint32_t n);      /* 0 .. n-1 */
double t_unit(t_run *t);                     /* [0, 1) */
float t_real(t_run *t);                      /* about normal(0, 1) */
float t_range(t_run *t, int emin, int emax); /* +-[2^emin, 2^(emax+1)), exponents equally likely */
float t_pattern(t_run *t);                   /* any 32 bits, the interesting ones more often */
void t_fill_real(t_run *t, void *host, amp_dtype dtype, size_t n, float size); /* t_real() * size, rounded to dtype */
void t_fill_bits(t_run *t, void *host, size_t bytes);

int t_full(void);               /* --full: whole grids */
int t_emulated(const t_run *t); /* CUDA on the host runtime: a thousand times slower than a GPU */
int t_slow(const t_run *t);     /* keep sizes small here (a device that may be emulated) */
int t_twin(const t_run *t);     /* a third is enough here: the text of cpu-2, other vectors or number of threads */
/* How many rounds a test of random cases takes: with --full, emulated and not; where it is slow; elsewhere. */
int t_rounds(const t_run *t, int full_emulated, int full, int slow, int usual);

/* ---- memory ---- */

void *t_host(t_run *t, size_t bytes);                    /* host memory, zeroed, freed by the harness */
void *t_alloc(t_run *t, size_t bytes);                   /* context memory filled with 0xa5 */
void *t_alloc_at(t_run *t, size_t bytes, size_t offset); /* the same, `offset` bytes after a 256-byte boundary */
void *t_put(t_run *t, const void *host, size_t bytes);   /* a copy of host memory in context memory */
void *t_put_at(t_run *t, const void *host, size_t bytes, size_t offset);
void t_set(t_run *t, void *dev, const void *host, size_t bytes);
void t_get(t_run *t, void *host, const void *dev, size_t bytes);
void t_clear(t_run *t); /* checks all guards, frees context and host memory of the test */

/* The ledger's row of a label; all zero if it was never used. */
static inline amp_ledger_row t_ledger(const amp_ctx *ctx, const char *label) {
    amp_ledger_row row = AMP_ZERO;
    (void)amp_ledger(ctx, &row, 1, label);
    return row;
}

/* ---- contexts ---- */

/* A context like t->place, with these hooks (either may be NULL); the allocator is that of host memory. */
amp_status t_create(const t_place *place, amp_ctx **out, const amp_allocator *allocator, const amp_logger *logger);
/* A context like t->place whose products have these flags. */
amp_status t_create_flags(const t_place *place, amp_ctx **out, uint32_t gemm_flags);
/* A CPU context by hand. */
amp_status t_create_cpu(amp_ctx **out, amp_simd simd, int32_t threads);

/* How often CPU contexts of t_create without an allocator have asked for memory, host or context memory. */
unsigned long t_allocations(void);

/* on = 1: t->ctx is portable C with one thread from here on; 0: t->ctx is the context under test again. */
void t_reference(t_run *t, int on);

/* What a scenario computed, to be compared between contexts. */
typedef struct t_blob {
    unsigned char *data;
    size_t bytes, cap;
} t_blob;
void t_blob_add(t_blob *b, const void *host, size_t bytes);
void t_blob_dev(t_run *t, t_blob *b, const void *dev, size_t bytes);
/* Runs it here and on the reference, with the same random numbers, and compares. */
void t_same_everywhere(t_run *t, void (*scenario)(t_run *t, t_blob *b, const void *arg), const void *arg);

/* A number of the bits of n arrays with counts, to compare before and after. */
uint64_t t_fingerprint(t_run *t, const amp_array *arrays, size_t n);
/* The index of the first of count elements whose bits differ between two arrays of one dtype; count if none does. */
size_t t_compare(t_run *t, amp_array a, amp_array b, size_t count);

/* A file name for a temporary file; the file is removed at the end of the run. */
const char *t_file(const char *name);

/* The loss scale of s (NULL: 1); -1 if it cannot be read. */
static inline float t_scale(amp_scaler *s) {
    amp_scaler_info i = AMP_ZERO;
    return amp_scaler_get(s, &i) == AMP_OK ? i.scale : -1.0f;
}

/* A step that leaves the weights where they are: a learning rate of 0. */
static inline amp_step_desc t_rate_0(void) {
    amp_step_desc d = AMP_ZERO;
    d.lr = AMP_NONE;
    return d;
}

/* amp_update with this optimizer. desc may be NULL: for checks of arguments. */
static inline amp_status t_update(amp_params *p, amp_scaler *s, const amp_step_desc *desc, amp_optimizer optimizer) {
    amp_step_desc d = AMP_ZERO;
    if (!desc) return amp_update(p, s, NULL);
    d = *desc;
    d.optimizer = optimizer;
    return amp_update(p, s, &d);
}

#endif
