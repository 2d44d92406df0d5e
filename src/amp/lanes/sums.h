#if AMPI_PASS == AMPI_PASS_SCALAR || AMPI_PASS == AMPI_PASS_VECTOR
/* ---- sums, maxima, counts.   tests: tests/test_arrays.c, tests/test_step.c, tests/test_report.c ---- */
/* Terms of a part: numbers, or squares of products with `by`. */
AMPI_INNER AMPI_FLOATS AMPI_F(term)(const char *g, amp_dtype t, int square, AMPI_FLOATS by) {
    AMPI_WORDS bits = t == AMP_F32 ? AMPI_LOAD_WORDS(g) : AMPI_F(widened)(g, t);
    AMPI_FLOATS x = AMPI_AS_FLOATS(bits);
    if (!square) return x;
    x = AMPI_MUL(x, by);
    return AMPI_MUL(x, x);
}
/* From the first number to the last, as memory gives most; the lanes lie in the L1 cache. What is left of the last row
   goes through a padded copy. */
#  define AMPI_STRIP (4u * AMPI_WIDTH)
AMPI_INNER void AMPI_F(strip)(float *lane, const char *g, amp_dtype t, int square, AMPI_FLOATS by) {
    const size_t next = amp_dtype_size(t) * AMPI_WIDTH;
#  define AMPI_X(v) \
    AMPI_STORE( \
        lane + v * AMPI_WIDTH, AMPI_ADD(AMPI_LOAD(lane + v * AMPI_WIDTH), AMPI_F(term)(g + v * next, t, square, by)));
    AMPI_X(0)
    AMPI_X(1)
    AMPI_X(2)
    AMPI_X(3)
#  undef AMPI_X
}
AMPI_INNER float AMPI_F(part)(const char *g, amp_dtype t, size_t n, int square, float by) {
    const size_t size = amp_dtype_size(t);
    AMPI_LINES float lane[AMP_LANES];
    size_t lanes = AMPI_STRIP, h, i, j; /* lanes beyond the first power of two stay 0 */
    while (lanes < n && lanes < AMP_LANES)
        lanes *= 2u;
    memset(lane, 0, lanes * sizeof *lane);
    for (i = 0; i + AMPI_STRIP <= n; i += AMPI_STRIP)
        AMPI_F(strip)(lane + i % AMP_LANES, g + i * size, t, square, AMPI_SET(by));
    if (i < n) {
        char left[AMPI_STRIP * 4u];
        memset(left, 0, sizeof left);
        memcpy(left, g + i * size, (n - i) * size);
        AMPI_F(strip)(lane + i % AMP_LANES, left, t, square, AMPI_SET(by));
    }
    for (h = lanes / 2u; h >= AMPI_WIDTH; h /= 2u)
        for (j = 0; j < h; j += AMPI_WIDTH)
            AMPI_STORE(lane + j, AMPI_ADD(AMPI_LOAD(lane + j), AMPI_LOAD(lane + j + h)));
    AMPI_F(done)();
    for (; h; h /= 2u)
        for (j = 0; j < h; j++)
            lane[j] = amp_add(lane[j], lane[j + h]);
    return lane[0];
}
AMPI_OUTER float AMPI_F(sum)(const float *u, size_t n) { return AMPI_F(part)((const char *)u, AMP_F32, n, 0, 1.0f); }
AMPI_OUTER float AMPI_F(squares)(const char *g, amp_dtype t, size_t n, float by) {
    if (t == AMP_F32) return AMPI_F(part)(g, AMP_F32, n, 1, by);
    if (t == AMP_F16) return AMPI_F(part)(g, AMP_F16, n, 1, by);
    return AMPI_F(part)(g, AMP_BF16, n, 1, by);
}
/* Four rows are added to sums that are loaded and stored once. The last vector may lie over the one before it: it is
   added up first and stored last. */
AMPI_INNER AMPI_FLOATS AMPI_F(four_added)(const float *to, const char *x, size_t step, amp_dtype t, size_t c) {
    const AMPI_FLOATS by = AMPI_SET(1.0f);
    AMPI_FLOATS sum = AMPI_LOAD(to + c);
    x += c * amp_dtype_size(t);
    sum = AMPI_ADD(sum, AMPI_F(term)(x, t, 0, by));
    sum = AMPI_ADD(sum, AMPI_F(term)(x + step, t, 0, by));
    sum = AMPI_ADD(sum, AMPI_F(term)(x + 2u * step, t, 0, by));
    return AMPI_ADD(sum, AMPI_F(term)(x + 3u * step, t, 0, by));
}
AMPI_INNER void AMPI_F(add_four_of)(float *to, const char *x, size_t step, amp_dtype t, size_t n) {
    const size_t end = n - AMPI_WIDTH;
    const AMPI_FLOATS last = AMPI_F(four_added)(to, x, step, t, end);
    size_t c;
    for (c = 0; c < end; c += AMPI_WIDTH)
        AMPI_STORE(to + c, AMPI_F(four_added)(to, x, step, t, c));
    AMPI_STORE(to + end, last);
}
AMPI_OUTER void AMPI_F(add_four)(float *to, const char *x, size_t step, amp_dtype t, size_t n) {
    if (t == AMP_F32) AMPI_F(add_four_of)(to, x, step, AMP_F32, n);
#  ifdef AMPI_HAS_FMA
    if (t == AMP_F16) AMPI_F(add_four_of)(to, x, step, AMP_F16, n);
    if (t == AMP_BF16) AMPI_F(add_four_of)(to, x, step, AMP_BF16, n);
#  endif
    AMPI_F(done)();
}
AMPI_OUTER float AMPI_F(largest)(const float *u, size_t n, float top) {
    AMPI_FLOATS most = AMPI_SET(top);
    float lane[AMPI_WIDTH];
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH)
        most = AMPI_LARGER(AMPI_LOAD(u + i), most);
    AMPI_STORE(lane, most);
    for (; i < n; i++)
        top = u[i] > top ? u[i] : top;
    for (i = 0; i < AMPI_WIDTH; i++)
        top = lane[i] > top ? lane[i] : top;
    return top;
}
/* The sum of a row of few classes: AMPI_F(part) with a row in each lane. */
AMPI_INNER AMPI_FLOATS AMPI_F(few_sum)(const float *x, size_t classes) {
    AMPI_FLOATS s[AMPI_XENT_CLASSES];
    size_t c, h;
    for (c = 0; c < AMPI_XENT_CLASSES; c++)
        s[c] = c < classes ? AMPI_ADD(AMPI_SET(0.0f), AMPI_LOAD(x + c * AMPI_XENT_ROWS)) : AMPI_SET(0.0f);
    for (h = AMPI_XENT_CLASSES / 2u; h; h /= 2u)
        for (c = 0; c < h; c++)
            s[c] = AMPI_ADD(s[c], s[c + h]);
    return s[0];
}
AMPI_OUTER void AMPI_F(few_terms)(float *x, size_t classes, float *max, float *all, float *sum) {
    size_t i, c;
    for (i = 0; i < AMPI_XENT_ROWS; i += AMPI_WIDTH) {
        AMPI_FLOATS top = AMPI_SET(AMP_XENT_LEAST);
        if (all) AMPI_STORE(all + i, AMPI_F(few_sum)(x + i, classes));
        for (c = 0; c < classes; c++)
            top = AMPI_LARGER(AMPI_LOAD(x + c * AMPI_XENT_ROWS + i), top);
        for (c = 0; c < classes; c++) {
            float *at = x + c * AMPI_XENT_ROWS + i;
            AMPI_STORE(at, AMPI_F(exp_term)(AMPI_SUB(AMPI_LOAD(at), top)));
        }
        AMPI_STORE(max + i, top);
        AMPI_STORE(sum + i, AMPI_F(few_sum)(x + i, classes));
    }
    AMPI_F(done)();
}
AMPI_OUTER void AMPI_F(few_shares)(float *x, size_t classes, const float *by, const float *less) {
    size_t i, c;
    for (c = 0; c < classes; c++)
        for (i = 0; i < AMPI_XENT_ROWS; i += AMPI_WIDTH) {
            float *at = x + c * AMPI_XENT_ROWS + i;
            AMPI_STORE(at, AMPI_FUSE(AMPI_LOAD(at), AMPI_LOAD(by + i), AMPI_NEGATIVE(AMPI_LOAD(less + i))));
        }
    AMPI_F(done)();
}
/* |x| as bits, 0 for NaN. */
AMPI_INNER AMPI_WORDS AMPI_F(size_word)(AMPI_FLOATS x) {
    AMPI_WORDS a = AMPI_AND(AMPI_BITS(x), AMPI_WORD(0x7fffffffu));
    return AMPI_SELECT(AMPI_GREATER(a, AMPI_WORD(0x7f800000u)), AMPI_WORD(0), a);
}
AMPI_INNER AMPI_WORDS AMPI_F(larger_size)(AMPI_WORDS most, AMPI_FLOATS x) {
    return AMPI_MAX(most, AMPI_F(size_word)(x));
}
AMPI_INNER uint32_t AMPI_F(largest_word)(AMPI_WORDS most, uint32_t top) {
    uint32_t lane[AMPI_WIDTH];
    size_t i;
    AMPI_STORE_WORDS(lane, most);
    for (i = 0; i < AMPI_WIDTH; i++)
        top = top < lane[i] ? lane[i] : top;
    return top;
}
/* One maximum is carried along, not two: gcc 12 with -O3 loses elements of two (scalar). */
AMPI_OUTER uint32_t AMPI_F(amax)(const float *u, size_t n, uint32_t amax) {
    AMPI_WORDS most = AMPI_WORD(0);
    size_t i;
    for (i = 0; i + 2u * AMPI_WIDTH <= n; i += 2u * AMPI_WIDTH) {
        AMPI_WORDS pair = AMPI_F(larger_size)(AMPI_F(size_word)(AMPI_LOAD(u + i)), AMPI_LOAD(u + i + AMPI_WIDTH));
        most = AMPI_MAX(most, pair);
    }
    for (; i + AMPI_WIDTH <= n; i += AMPI_WIDTH)
        most = AMPI_F(larger_size)(most, AMPI_LOAD(u + i));
    amax = AMPI_F(largest_word)(most, amax);
    AMPI_F(done)();
    return AMPI_LEFT(i, n) ? ampi_scalar_amax(u + i, n - i, amax) : amax;
}
AMPI_OUTER uint32_t AMPI_F(fit_to)(float *to, const float *u, size_t n, float by, uint32_t limit, uint32_t amax) {
    AMPI_WORDS most = AMPI_WORD(0);
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS x = AMPI_LOAD(u + i);
        most = AMPI_F(larger_size)(most, x);
        AMPI_STORE(to + i, AMPI_F(fit_one)(x, AMPI_SET(by), AMPI_WORD(limit)));
    }
    amax = AMPI_F(largest_word)(most, amax);
    AMPI_F(done)();
    return AMPI_LEFT(i, n) ? ampi_scalar_fit_to(to + i, u + i, n - i, by, limit, amax) : amax;
}
/* Of a product's factors: fused operations make a NaN quiet. */
AMPI_INNER AMPI_FLOATS AMPI_F(factor)(const char *p, amp_dtype t) {
    if (t == AMP_F32) return AMPI_AS_FLOATS(AMPI_LOAD_WORDS(p));
    if (t == AMP_BF16) return AMPI_AS_FLOATS(AMPI_SHL(AMPI_F(load16)(p), 16));
    return AMPI_AS_FLOATS(AMPI_F(widened)(p, t));
}
/* Rows of b that are read at a time: with four of them 16 sums and their terms want 32 registers. */
#  if defined(AMPI_HAS_FMA) && AMPI_WIDTH != 8
#    define AMPI_ROWS_AT_ONCE 4
#  else
#    define AMPI_ROWS_AT_ONCE 2
#  endif
/* lane[r * W .. r * W + W]: the products of a with row r of b, added up by lanes, for r < `rows`, which is the constant
   above; n: a multiple of 4 W. The processor fetches four rows by itself; two are fetched here. */
AMPI_INNER void AMPI_F(rows_of)(
    amp_dtype t, int rows, float *lane, const float *a, const char *b, size_t step, size_t n) {
    const size_t next = amp_dtype_size(t) * AMPI_WIDTH;
    const AMPI_FLOATS z = AMPI_SET(0.0f);
    AMPI_FLOATS p[4] = {z, z, z, z}, q[4] = {z, z, z, z}, r[4] = {z, z, z, z}, s[4] = {z, z, z, z}, x;
    for (; n; n -= 4u * AMPI_WIDTH, a += 4u * AMPI_WIDTH, b += 4u * next) {
#  define AMPI_X(v) \
    x = AMPI_LOAD(a + v * AMPI_WIDTH); \
    AMPI_GUARD(x); /* in a register: gcc would load it once for each row */ \
    p[v] = AMPI_FMA(x, AMPI_F(factor)(b + v * next, t), p[v]); \
    q[v] = AMPI_FMA(x, AMPI_F(factor)(b + step + v * next, t), q[v]); \
    if (rows == 4) r[v] = AMPI_FMA(x, AMPI_F(factor)(b + 2u * step + v * next, t), r[v]); \
    if (rows == 4) s[v] = AMPI_FMA(x, AMPI_F(factor)(b + 3u * step + v * next, t), s[v]); \
    if (rows == 2 && v * next % 64u == 0) AMPI_PREFETCH(b + 2u * step + v * next); \
    if (rows == 2 && v * next % 64u == 0) AMPI_PREFETCH(b + 3u * step + v * next);
        AMPI_X(0)
        AMPI_X(1)
        AMPI_X(2)
        AMPI_X(3)
#  undef AMPI_X
    }
    AMPI_STORE(lane, AMPI_ADD(AMPI_ADD(p[0], p[1]), AMPI_ADD(p[2], p[3])));
    AMPI_STORE(lane + AMPI_WIDTH, AMPI_ADD(AMPI_ADD(q[0], q[1]), AMPI_ADD(q[2], q[3])));
    if (rows == 2) return;
    AMPI_STORE(lane + 2u * AMPI_WIDTH, AMPI_ADD(AMPI_ADD(r[0], r[1]), AMPI_ADD(r[2], r[3])));
    AMPI_STORE(lane + 3u * AMPI_WIDTH, AMPI_ADD(AMPI_ADD(s[0], s[1]), AMPI_ADD(s[2], s[3])));
}
AMPI_OUTER void AMPI_F(rows)(float *lane, const float *a, const char *b, size_t step, amp_dtype t, size_t n) {
    if (t == AMP_F32) AMPI_F(rows_of)(AMP_F32, AMPI_ROWS_AT_ONCE, lane, a, b, step, n);
#  ifdef AMPI_HAS_FMA
    if (t == AMP_F16) AMPI_F(rows_of)(AMP_F16, AMPI_ROWS_AT_ONCE, lane, a, b, step, n);
    if (t == AMP_BF16) AMPI_F(rows_of)(AMP_BF16, AMPI_ROWS_AT_ONCE, lane, a, b, step, n);
#  endif
}
/* to[r] += a times row r of b, r < count, which is 4 or AMPI_DOT_ROWS. */
AMPI_OUTER void AMPI_F(some_dots)(
    float *to, size_t count, const float *a, const char *b, size_t step, amp_dtype t, size_t n) {
    const size_t size = amp_dtype_size(t), rest = n % (4u * AMPI_WIDTH), whole = n - rest;
    float lane[AMPI_DOT_ROWS * AMPI_WIDTH], left[AMPI_DOT_ROWS * 4u * AMPI_WIDTH], sum[AMPI_DOT_ROWS] = {0};
    const float *last = (const float *)(const void *)b + whole;
    size_t ld = step / 4u, r;
    for (r = 0; r < count && whole; r += AMPI_ROWS_AT_ONCE)
        AMPI_F(rows)(lane + r * AMPI_WIDTH, a, b + r * step, step, t, whole);
    if (t != AMP_F32 && rest) {
        for (r = 0; r < count; r++) {
            const char *from = b + r * step + whole * size;
            if (t == AMP_F16)
                AMPI_F(widen_f16)(left + r * 4u * AMPI_WIDTH, from, rest);
            else
                AMPI_F(widen_bf16)(left + r * 4u * AMPI_WIDTH, from, rest);
        }
        last = left;
        ld = 4u * AMPI_WIDTH;
    }
    AMPI_F(done)();
    if (whole) ampi_chains(sum, count, lane, AMPI_WIDTH, AMPI_WIDTH, NULL);
    if (rest) ampi_chains(sum, count, last, ld, rest, a + whole);
    for (r = 0; r < count; r++)
        to[r] += sum[r];
}
AMPI_OUTER void AMPI_F(dots)(float *to, size_t rows, const float *a, const char *b, size_t ld, amp_dtype t, size_t n) {
    const size_t size = amp_dtype_size(t), most = n <= AMPI_DOT ? AMPI_DOT_ROWS : 4u;
    size_t r, each, k, part;
    for (r = 0; r < rows && rows - r >= 4; r += each)
        for (each = rows - r < most ? 4u : most, k = 0; k < n; k += part) {
            part = n - k < AMPI_DOT ? n - k : AMPI_DOT;
            AMPI_F(some_dots)(to + r, each, a + k, b + (r * ld + k) * size, ld * size, t, part);
        }
    for (; r < rows; r++)
        for (k = 0; k < n; k += part) { /* one row, taken for 4 */
            float four[4] = {to[r], 0, 0, 0};
            part = n - k < AMPI_DOT ? n - k : AMPI_DOT;
            AMPI_F(some_dots)(four, 4, a + k, b + (r * ld + k) * size, 0, t, part);
            to[r] = four[0];
        }
}
/* The exponents of one vector; what is found on the way goes into the counters. */
AMPI_INNER AMPI_WORDS AMPI_F(exponents)(const float *u, AMPI_WORDS *most, AMPI_WORDS *zero, AMPI_WORDS *nan) {
    const AMPI_WORDS none = AMPI_WORD(0), one = AMPI_WORD(1), inf = AMPI_WORD(0x7f800000u);
    AMPI_WORDS a = AMPI_AND(AMPI_BITS(AMPI_LOAD(u)), AMPI_WORD(0x7fffffffu));
    *most = AMPI_MAX(*most, AMPI_SELECT(AMPI_GREATER(inf, a), a, none));
    *zero = AMPI_ADD_WORDS(*zero, AMPI_SELECT(AMPI_GREATER(one, a), one, none));
    *nan = AMPI_ADD_WORDS(*nan, AMPI_SELECT(AMPI_GREATER(a, inf), one, none));
    return AMPI_SHR(a, 23);
}
AMPI_OUTER void AMPI_F(count)(uint8_t *exponent, const float *u, size_t n, uint32_t found[3]) {
    AMPI_WORDS most = AMPI_WORD(0), zero = most, nan = most;
    uint32_t lane[3][AMPI_WIDTH];
    size_t i;
    for (i = 0; i < n; i += 4u * AMPI_WIDTH) {
        AMPI_WORDS e0 = AMPI_F(exponents)(u + i, &most, &zero, &nan);
        AMPI_WORDS e1 = AMPI_F(exponents)(u + i + AMPI_WIDTH, &most, &zero, &nan);
        AMPI_WORDS e2 = AMPI_F(exponents)(u + i + 2u * AMPI_WIDTH, &most, &zero, &nan);
        AMPI_WORDS e3 = AMPI_F(exponents)(u + i + 3u * AMPI_WIDTH, &most, &zero, &nan);
        AMPI_F(store8)(exponent + i, e0, e1, e2, e3);
    }
    AMPI_STORE_WORDS(lane[0], most);
    AMPI_STORE_WORDS(lane[1], zero);
    AMPI_STORE_WORDS(lane[2], nan);
    for (i = 0; i < AMPI_WIDTH; i++) {
        found[0] = found[0] < lane[0][i] ? lane[0][i] : found[0];
        found[1] += lane[1][i];
        found[2] += lane[2][i];
    }
}
#endif

