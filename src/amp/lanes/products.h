/* ---- products: a tile of c, AMPI_COLUMNS wide.   tests: tests/test_products.c, tests/test_ordered.c ---- */
#if AMPI_PASS == AMPI_PASS_SCALAR
#  define AMPI_COLUMNS 8u
/* Under these flags compilers may add up in a different order, but not what passes through memory. */
#if defined(__GNUC__) && (defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__))
#  define AMPI_KEEP_ORDER(x) __asm__ volatile("" : "+m"(x))
#else
#  define AMPI_KEEP_ORDER(x) (void)0
#endif
AMPI_OUTER void AMPI_F(tile_4)(size_t kc, const float *a, const float *b, float *c, int first) {
    float acc[4][8];
    size_t i, j;
    memset(acc, 0, sizeof acc);
    for (; kc--; a += 4, b += 8) {
        for (i = 0; i < 4; i++) {
            for (j = 0; j < 8; j++)
                acc[i][j] += a[i] * b[j];
        }
        AMPI_KEEP_ORDER(acc);
    }
    for (i = 0; i < 4; i++) {
        for (j = 0; j < 8; j++)
            c[i * AMPI_LDC + j] = first ? acc[i][j] : amp_add(c[i * AMPI_LDC + j], acc[i][j]);
    }
}
AMPI_OUTER void AMPI_F(fused)(size_t rows, size_t mr, size_t kc, const float *a, const float *b, float *c, int first) {
    size_t i, j, k;
    for (i = 0; i < rows; i++, c += AMPI_LDC) {
        const float z = amp_add(0.0f, 0.0f); /* see AMPI_F(tile) */
        float sum[8] = {z, z, z, z, z, z, z, z};
        for (k = 0; k < kc; k++) {
            for (j = 0; j < 8; j++)
                sum[j] = amp_fma(a[k * mr + i], b[k * 8 + j], sum[j]);
        }
        for (j = 0; j < 8; j++)
            c[j] = first ? sum[j] : amp_add(c[j], sum[j]);
    }
}
AMPI_OUTER void AMPI_F(pack4)(float *to, size_t width, const float *rows, size_t ld, size_t depth) {
    size_t k;
    for (k = 0; k < depth; k++, to += width) {
        to[0] = rows[k];
        to[1] = rows[ld + k];
        to[2] = rows[2 * ld + k];
        to[3] = rows[3 * ld + k];
    }
}
#endif

/* ---- `rows` is a constant wherever these are inlined: what lies beyond it is not compiled, and each p[i] and q[i] is
   a register. A list, no loop: with gcc -O1 they would be memory then ---- */
#if AMPI_PASS == AMPI_PASS_VECTOR
#  define AMPI_COLUMNS       (2u * AMPI_WIDTH)
#  define AMPI_MOST_ROWS     12
#  define AMPI_EIGHT_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#  define AMPI_EACH_ROW(X)   AMPI_EIGHT_ROWS(X) X(8) X(9) X(10) X(11)
AMPI_INNER void AMPI_F(tile_fma)(float a, AMPI_FLOATS x, AMPI_FLOATS y, AMPI_FLOATS *p, AMPI_FLOATS *q) {
    AMPI_FLOATS s = AMPI_SET(a);
    *p = AMPI_FMA(s, x, *p);
    *q = AMPI_FMA(s, y, *q);
}
AMPI_INNER void AMPI_F(tile_column)(uint32_t rows, const float *a, const float *b, AMPI_FLOATS *p, AMPI_FLOATS *q) {
    AMPI_FLOATS x = AMPI_LOAD(b), y = AMPI_LOAD(b + AMPI_WIDTH);
#  define AMPI_X(i) \
    if (rows > i) AMPI_F(tile_fma)(a[i], x, y, p + i, q + i);
    AMPI_EACH_ROW(AMPI_X)
#  undef AMPI_X
}
AMPI_INNER void AMPI_F(tile_row)(float *c, AMPI_FLOATS p, AMPI_FLOATS q, int first) {
    if (!first) {
        p = AMPI_ADD(p, AMPI_LOAD(c));
        q = AMPI_ADD(q, AMPI_LOAD(c + AMPI_WIDTH));
    }
    AMPI_STORE(c, p);
    AMPI_STORE(c + AMPI_WIDTH, q);
}
AMPI_INNER void AMPI_F(tile_end)(uint32_t rows, float *c, const AMPI_FLOATS *p, const AMPI_FLOATS *q, int first) {
#  define AMPI_X(i) \
    if (rows > i) AMPI_F(tile_row)(c + i * AMPI_LDC, p[i], q[i], first);
    AMPI_EACH_ROW(AMPI_X)
#  undef AMPI_X
}
AMPI_INNER void AMPI_F(tile)(uint32_t rows, size_t kc, const float *a, const float *b, float *c, int first) {
    /* zero, but -Ofast must not know, or -0 + 0 stays -0 */
    const AMPI_FLOATS z = AMPI_ADD(AMPI_SET(0.0f), AMPI_SET(0.0f));
    AMPI_FLOATS p[AMPI_MOST_ROWS] = {z, z, z, z, z, z, z, z, z, z, z, z};
    AMPI_FLOATS q[AMPI_MOST_ROWS] = {z, z, z, z, z, z, z, z, z, z, z, z};
    for (; kc--; a += rows, b += 2u * AMPI_WIDTH)
        AMPI_F(tile_column)(rows, a, b, p, q);
    if (first)
        AMPI_F(tile_end)(rows, c, p, q, 1);
    else
        AMPI_F(tile_end)(rows, c, p, q, 0);
}
#  define AMP_X(rows) \
    AMPI_OUTER void AMPI_F(tile_##rows)(size_t kc, const float *a, const float *b, float *c, int first) { \
        AMPI_F(tile)(rows, kc, a, b, c, first); \
    }
AMPI_TILES(AMP_X)
#  undef AMP_X
#  ifdef AMPI_HAS_FMA
#    define AMPI_WIDE_ROWS (AMPI_WIDTH == 8 ? 4u : 8u) /* AVX2 has 16 registers, others 32 */
/* At most 8 rows of a strip, or AMPI_WIDE_ROWS of two (`wide`), from column c on; `full` and `twice` are constants,
   too. */
AMPI_INNER void AMPI_F(direct_rows)(
    uint32_t rows, const ampi_direct *d, size_t r, size_t c, int wide, int full, int twice) {
    const AMPI_FLOATS z = AMPI_ADD(AMPI_SET(0.0f), AMPI_SET(0.0f)); /* see AMPI_F(tile) */
    AMPI_FLOATS p[8] = {z, z, z, z, z, z, z, z};
    AMPI_FLOATS q[8] = {z, z, z, z, z, z, z, z}, x, y = z, s;
    const size_t row = d->a_row, a_k = d->a_k, b_k = d->b_k, strip = d->b_strip, n = d->cols - c;
    const float *a = d->a + r * row, *b = d->b + c / AMPI_WIDTH * strip;
    float *to = d->c + r * d->c_row + c;
    size_t k;
    for (k = d->depth; k--; a += a_k, b += b_k) {
        x = full ? AMPI_LOAD(b) : AMPI_F(load_some)(b, n);
        if (wide) y = AMPI_LOAD(b + strip);
#  define AMPI_X(i) \
    if (rows > i) s = AMPI_SET(a[i * row]); \
    if (rows > i && twice) p[i] = AMPI_ADD(p[i], AMPI_MUL(s, x)); \
    if (rows > i && !twice) p[i] = AMPI_FMA(s, x, p[i]); \
    if (rows > i && wide) q[i] = AMPI_FMA(s, y, q[i]);
        AMPI_EIGHT_ROWS(AMPI_X)
#  undef AMPI_X
    }
#  define AMPI_X(i) \
    if (rows > i && twice) p[i] = AMPI_ADD(z, p[i]); \
    if (rows > i && full) AMPI_STORE(to + i * d->c_row, p[i]); \
    if (rows > i && !full) AMPI_F(store_some)(to + i * d->c_row, n, p[i]); \
    if (rows > i && wide) AMPI_STORE(to + i * d->c_row + AMPI_WIDTH, q[i]);
    AMPI_EIGHT_ROWS(AMPI_X)
#  undef AMPI_X
}
AMPI_INNER void AMPI_F(direct_block)(uint32_t rows, const ampi_direct *d, size_t r, int twice) {
    const uint32_t each = rows < AMPI_WIDE_ROWS ? rows : AMPI_WIDE_ROWS;
    size_t c = 0, i;
    for (; rows >= 4 && !twice && c + 2u * AMPI_WIDTH <= d->cols; c += 2u * AMPI_WIDTH)
        for (i = 0; i < rows; i += each)
            AMPI_F(direct_rows)(each, d, r + i, c, 1, 1, 0);
    for (; c + AMPI_WIDTH <= d->cols; c += AMPI_WIDTH)
        AMPI_F(direct_rows)(rows, d, r, c, 0, 1, twice);
    if (c < d->cols) AMPI_F(direct_rows)(rows, d, r, c, 0, 0, twice);
}
AMPI_INNER void AMPI_F(direct_blocks)(const ampi_direct *d, int twice) {
    size_t r = 0;
    for (; !twice && r + 8 <= d->rows; r += 8)
        AMPI_F(direct_block)(8, d, r, twice);
    for (; !twice && r + 4 <= d->rows; r += 4)
        AMPI_F(direct_block)(4, d, r, twice);
    for (; r < d->rows; r++)
        AMPI_F(direct_block)(1, d, r, twice);
}
/* k is 1: a row of D at a time, as memory takes them best. */
AMPI_INNER void AMPI_F(direct_outer)(const ampi_direct *d) {
    const AMPI_FLOATS z = AMPI_ADD(AMPI_SET(0.0f), AMPI_SET(0.0f)); /* see AMPI_F(tile) */
    const size_t whole = d->cols - d->cols % AMPI_WIDTH, rest = d->cols - whole;
    size_t r, c;
    for (r = 0; r < d->rows; r++) {
        const AMPI_FLOATS s = AMPI_SET(d->a[r * d->a_row]);
        float *to = d->c + r * d->c_row;
        for (c = 0; c < whole; c += AMPI_WIDTH)
            AMPI_STORE(to + c, AMPI_FMA(s, AMPI_LOAD(d->b + c), z));
        if (rest) AMPI_F(store_some)(to + c, rest, AMPI_FMA(s, AMPI_F(load_some)(d->b + c, rest), z));
    }
}
AMPI_OUTER void AMPI_F(direct)(const ampi_direct *d, int twice) {
    if (d->depth == 1 && !twice)
        AMPI_F(direct_outer)(d);
    else if (twice)
        AMPI_F(direct_blocks)(d, 1);
    else
        AMPI_F(direct_blocks)(d, 0);
    AMPI_F(done)();
}
#  else
AMPI_OUTER void AMPI_F(fused)(size_t rows, size_t mr, size_t kc, const float *a, const float *b, float *c, int first) {
    size_t i, k;
    for (i = 0; i < rows; i++, c += AMPI_LDC) {
        AMPI_FLOATS p = AMPI_SET(0.0f), q = p;
        for (k = 0; k < kc; k++) {
            AMPI_FLOATS x = AMPI_SET(a[k * mr + i]);
            p = AMPI_FUSE(x, AMPI_LOAD(b + k * AMPI_COLUMNS), p);
            q = AMPI_FUSE(x, AMPI_LOAD(b + k * AMPI_COLUMNS + AMPI_WIDTH), q);
        }
        AMPI_F(tile_row)(c, p, q, first);
    }
}
#  endif
#endif

