/* ==== >>cpu ======================================================================================================
   Arrays go through blocks of AMPI_BLOCK elements that stay in the L1 cache: widened to float, worked on, narrowed. So
   each piece of arithmetic exists once, for floats, and every dtype works with every verb. The loops are written once
   too, at >>lanes, and compiled for each SIMD path: scalar, sse2, avx2, avx512, neon. Kernels may assume the default
   floating-point environment: verbs and workers see to it.  tests: tests/fingerprint.c, tests/exhaustive.c */

#ifdef AMPI_FRONT_O1
#  pragma GCC pop_options
#endif
#if defined(__GNUC__) && !defined(__TINYC__)
#  define AMPI_PREFETCH(p) __builtin_prefetch(p)
#  define AMPI_LINES       __attribute__((__aligned__(64))) /* no vector lies in two lines of the cache */
#else
#  define AMPI_PREFETCH(p) ((void)(p))
#  define AMPI_LINES
#endif
#define AMPI_BLOCK        1024u
#define AMPI_DOT          2048u /* terms of a dot that are added up by lanes */
#define AMPI_DOT_ROWS     16u   /* dots at a time */
#define AMPI_XENT_CLASSES 16u   /* at most so many are few */
#define AMPI_XENT_ROWS    64u
/* Products: depth, rows and columns of a packed block; rows and columns are multiples of every mr and nr. */
#define AMPI_KC           256u
#define AMPI_MC           528u
#define AMPI_NC           512u
#define AMPI_SMALL        8192u           /* at most so many numbers of A and B are multiplied where they lie */
#define AMPI_FEW          4u              /* at most this many rows are multiplied without packing */
#define AMPI_LDC          (AMPI_NC + 16u) /* no power of two: rows of a tile lie in different cache sets */

/* Lost updates of a chunk: sums by lanes of a vector, and what is known of the elements of a block. */
#define AMPI_WIDEST 16u
typedef struct ampi_tally {
    amp_spacing spacing;
    uint32_t again; /* 1: weights are kept in 16 bits, and looked at when they are stored */
    uint32_t updates[AMPI_WIDEST];
    uint32_t lost[AMPI_WIDEST];
    float ratio[AMPI_WIDEST];              /* without spacing.rest */
    size_t at;                             /* where its kernels begin */
    AMPI_LINES char moved[4 * AMPI_BLOCK]; /* again: masks, set where there is an update and the weight is not NaN */
    uint16_t was[2][AMPI_BLOCK];           /* again: model copies and low parts before it */
    float old[AMPI_BLOCK];                 /* weights before it */
} ampi_tally;
/* A small product from where its numbers lie: c[rows][cols] = a[rows][depth] b[depth][cols], B in strips of `lanes`
   columns. */
typedef struct ampi_direct {
    const float *a, *b;
    float *c;
    size_t rows, cols, depth;
    size_t a_row, a_k, b_k, b_strip, c_row; /* from one row, k or strip to the next */
} ampi_direct;
static const uint32_t ampi_places[AMPI_WIDEST] = {/* bits of a mask, lane by lane */
    1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
/* One SIMD path. n is at most AMPI_BLOCK where floats are named; void pointers may be unaligned. */
typedef struct ampi_kernels {
    amp_simd simd;
    uint32_t pages; /* for stream: 1, 2 or 4 */
    const char *name;
    void (*widen[AMP_DTYPE_COUNT])(void *f32, const void *src, size_t n);
    void (*narrow[AMP_DTYPE_COUNT])(void *dst, const void *f32, size_t n); /* to nearest */
    /* r: a random word per element; NULL: to nearest */
    void (*round)(void *dst, amp_dtype t, const void *f32, size_t n, const uint32_t *r, int saturate);
    /* the words at .. at + n of the sequence, in buf[n + 64] */
    const uint32_t *(*random)(uint32_t *buf, size_t n, uint64_t seed, uint64_t stream, uint64_t at);
    int (*is_bad)(const void *src, size_t bytes, amp_dtype t);   /* is any element not finite? */
    int (*scale)(float *to, const float *u, size_t n, float by); /* to = u * by, maybe in place; is any not finite? */
    /* scale from F16 or BF16 to the same; NULL: widen, scale and narrow do it */
    int (*rescale)(void *to, const void *from, amp_dtype t, size_t n, float by);
    void (*axpy)(float *to, const float *u, size_t n, float by); /* to += by * u: product and sum are rounded */
    /* to += a row of x, four times; x: `step` bytes from row to row, of dtypes as in dots; n >= lanes */
    void (*add_four)(float *to, const char *x, size_t step, amp_dtype t, size_t n);
    /* the larger of amax and the largest |u|, as bits; NaN does not count. fit_to: and to = u * by: AMPI_F(fit_one) */
    uint32_t (*amax)(const float *u, size_t n, uint32_t amax);
    uint32_t (*fit_to)(float *to, const float *u, size_t n, float by, uint32_t limit, uint32_t amax);
    /* to[r] += a times row r of b, ld elements from one to the next, of F32 or, on paths that have `direct`, of F16 or
       BF16; any n, AMPI_DOT at a time. The order is the path's own: by lanes, whose sums are added one by one, then
       what is left of n */
    void (*dots)(float *to, size_t rows, const float *a, const char *b, size_t ld, amp_dtype t, size_t n);
    /* sums of one part, by the rule: n <= AMP_PART */
    float (*squares)(const char *g, amp_dtype t, size_t n, float by); /* of (g[i] * by)^2; not FP8 */
    float (*sum)(const float *u, size_t n);
    /* exponents; found: most finite |u|, zeros, NaN. n: a multiple of 64 */
    void (*count)(uint8_t *exponent, const float *u, size_t n, uint32_t found[3]);
    float (*largest)(const float *u, size_t n, float top);            /* the largest of them and top */
    void (*exps)(float *u, size_t n, float top);                      /* 2^24 e^(u - top), see AMPI_F(exp_term) */
    void (*softmax_shares)(float *u, size_t n, float by, float less); /* u * by - less, rounded once */
    /* cross-entropy of few classes: a lane is a row of x[classes][AMPI_XENT_ROWS]. Largest logits, their sum unless
       NULL, terms in their place and the sum of these; then gradients */
    void (*few_terms)(float *x, size_t classes, float *max, float *all, float *sum);
    void (*few_shares)(float *x, size_t classes, const float *by, const float *less);
    /* cross-entropy with a target for each class, see amp_xent_target, _miss, _grad_each; w: NULL, or factors of q */
    void (*targets)(float *q, const float *w, size_t n, float keep, float share);
    void (*misses)(float *x, const float *q, size_t n, float max);
    void (*grad_each)(float *term, const float *q, size_t n, float by, float factor);
    /* to: x, or dy, or an array of its own */
    void (*act)(float *to, const float *x, size_t n, amp_act act);
    void (*act_grad)(float *to, const float *dy, const float *saved, size_t n, amp_act act);
    /* ReLU of F16 or BF16 to the same, or its gradient if saved is not NULL; NULL: widen, act and narrow do it */
    void (*relu16)(char *to, const char *x, const char *saved, amp_dtype t, size_t n);
    void (*mask_of)(uint8_t *bits, const float *y, size_t n);    /* of ReLU's y */
    void (*mask_grad)(float *dy, const uint8_t *bits, size_t n); /* dy = 0 where the bit is 0 */
    void (*drop)(float *u, const uint32_t *random, size_t n, uint32_t threshold, float factor);
    /* 8-bit moments in blocks, which: 0 or 1; r: a random word per element. Floats and codes up to the next multiple of
       64 may be written */
    void (*moment_widen)(float *x, const uint8_t *code, const float *scale, size_t n, uint32_t which);
    void (*moment_narrow)(uint8_t *code, float *scale, float *x, const uint32_t *r, size_t n, uint32_t which);
    /* weights of SPLIT, SPLIT8 and KAHAN; r: a random word per element, for SPLIT8; NULL: to nearest */
    void (*pair_widen)(float *w, const amp_param_entry *p, size_t at, size_t n);
    void (*pair_narrow)(const amp_param_entry *p, size_t at, const float *w, const uint32_t *r, size_t n);
    void (*prepare)(float *to, const float *u, size_t n, const amp_coef *c);
    /* u: not prepared yet; m, v: NULL where the kind needs no such array; steps: NULL, or for what was subtracted from
       the weights, u itself perhaps */
    int (*update[AMP_UPDATE_COUNT])(/* 1: an element of v is Inf */
        float *w, float *m, float *v, const float *u, size_t n, const amp_coef *c, float *steps);
    /* after w = tally->old has become w, by updates u * by */
    void (*count_sizes)(ampi_tally *tally, const float *w, const float *u, size_t n, float by);
    /* after model copies and low parts, unless NULL, have become these */
    void (*count_unchanged)(ampi_tally *tally, const char *model, const char *low, size_t n);
    /* see ampi_cast_stream; NULL: none */
    void (*stream)(char *dst, const char *buf, size_t pages, const char *next, size_t step);
    void (*fence)(void); /* after the last stream */
    /* products: c[mr][nr], row stride AMPI_LDC, += a[kc][mr] b[kc][nr], both packed; `first`: = instead of +=. Each
       element is the same chain of operations whatever mr is */
    uint32_t mr[4], nr, lanes; /* mr: falling; 0: no more */
    void (*tile[4])(size_t kc, const float *a, const float *b, float *c, int first);
    /* the same for `rows` of a strip of width mr, each multiply-add rounded once; NULL: that is what tile does */
    void (*fused)(size_t rows, size_t mr, size_t kc, const float *a, const float *b, float *c, int first);
    /* the same chains without packing; twice: a term is rounded, then its sum, as axpy does. NULL: FMA
       rounds twice */
    void (*direct)(const ampi_direct *d, int twice);
    /* to[k * width + r] = rows[r * ld + k], r < 4 */
    void (*pack4)(float *to, size_t width, const float *rows, size_t ld, size_t depth);
} ampi_kernels;

/* to[r] += rows[r * ld + k], times a[k] unless a is NULL, for k = 0, 1 ... and r < count, a multiple of 4 and at most
   AMPI_DOT_ROWS: chains of several groups do not wait for each other. */
#ifdef AMPI_X86
static __m128 ampi_four_terms(__m128 x, const float *a, size_t k) { return a ? _mm_mul_ps(_mm_set1_ps(a[k]), x) : x; }
static __m128 ampi_four_chains(__m128 sum, const float *rows, size_t ld, size_t k, const float *a) {
    __m128 s = _mm_loadu_ps(rows + k), t = _mm_loadu_ps(rows + ld + k);
    __m128 u = _mm_loadu_ps(rows + 2 * ld + k), v = _mm_loadu_ps(rows + 3 * ld + k);
    _MM_TRANSPOSE4_PS(s, t, u, v);
    sum = _mm_add_ps(sum, ampi_four_terms(s, a, k));
    sum = _mm_add_ps(sum, ampi_four_terms(t, a, k + 1));
    sum = _mm_add_ps(sum, ampi_four_terms(u, a, k + 2));
    return _mm_add_ps(sum, ampi_four_terms(v, a, k + 3));
}
static __m128 ampi_four_next(__m128 sum, const float *rows, size_t ld, size_t k, const float *a) {
    __m128 s = _mm_setr_ps(rows[k], rows[ld + k], rows[2 * ld + k], rows[3 * ld + k]);
    return _mm_add_ps(sum, ampi_four_terms(s, a, k));
}
static void ampi_chains(float *to, size_t count, const float *rows, size_t ld, size_t n, const float *a) {
    const size_t groups = count / 4u, four = 4u * ld;
    __m128 sum[AMPI_DOT_ROWS / 4u];
    size_t g, k, left;
    for (g = 0; g < groups; g++)
        sum[g] = _mm_loadu_ps(to + 4 * g);
    for (k = 0; k < n - n % 4u; k += 4)
        for (g = 0; g < groups; g++)
            sum[g] = ampi_four_chains(sum[g], rows + g * four, ld, k, a);
    for (left = n % 4u; left; left--, k++) /* gcc 12 at -O3 knows that it ends */
        for (g = 0; g < groups; g++)
            sum[g] = ampi_four_next(sum[g], rows + g * four, ld, k, a);
    for (g = 0; g < groups; g++)
        _mm_storeu_ps(to + 4 * g, sum[g]);
}
#else
static void ampi_chains(float *to, size_t count, const float *rows, size_t ld, size_t n, const float *a) {
    size_t k, r;
    for (r = 0; r < count; r++) {
        float sum = to[r];
        for (k = 0; k < n; k++)
            sum += a ? a[k] * rows[r * ld + k] : rows[r * ld + k];
        to[r] = sum;
    }
}
#endif

/* to[c] += x[c], in doubles. */
static void ampi_add_doubles(double *to, const double *x, size_t n) {
    size_t i = 0;
#ifdef AMPI_X86
    for (; i + 2 <= n; i += 2)
        _mm_storeu_pd(to + i, _mm_add_pd(_mm_loadu_pd(to + i), _mm_loadu_pd(x + i)));
#endif
    for (; i < n; i++)
        to[i] = amp_dadd(to[i], x[i]);
}
static void ampi_add_floats(double *to, const float *x, size_t n) {
    size_t i = 0;
#ifdef AMPI_X86
    for (; i + 4 <= n; i += 4) {
        const __m128 four = _mm_loadu_ps(x + i);
        _mm_storeu_pd(to + i, _mm_add_pd(_mm_loadu_pd(to + i), _mm_cvtps_pd(four)));
        _mm_storeu_pd(to + i + 2, _mm_add_pd(_mm_loadu_pd(to + i + 2), _mm_cvtps_pd(_mm_movehl_ps(four, four))));
    }
#endif
    for (; i < n; i++)
        to[i] = amp_dadd(to[i], amp_widen(x[i]));
}

#if defined(AMPI_X86) || defined(AMPI_NEON)
#  define AMPI_ALWAYS __attribute__((__always_inline__)) static inline
#else
#  define AMPI_ALWAYS static inline /* not AMP_INLINE: these are for the host only */
#endif
