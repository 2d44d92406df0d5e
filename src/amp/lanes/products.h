/* ---- products: a tile of c, two vectors wide. `rows` is a constant wherever these are inlined: what lies beyond it is
   not compiled, and each p[i] and q[i] is a register ---- */
#  define AMPI_MOST_ROWS 12
AMPI_INNER void AMPI_F(tile_fma)(float a, AMPI_FLOATS x, AMPI_FLOATS y, AMPI_FLOATS *p, AMPI_FLOATS *q) {
    AMPI_FLOATS s = AMPI_SET(a);
    *p = AMPI_FMA(s, x, *p);
    *q = AMPI_FMA(s, y, *q);
}
AMPI_INNER void AMPI_F(tile_column)(uint32_t rows, const float *a, const float *b, AMPI_FLOATS *p, AMPI_FLOATS *q) {
    AMPI_FLOATS x = AMPI_LOAD(b), y = AMPI_LOAD(b + AMPI_WIDTH);
    AMPI_F(tile_fma)(a[0], x, y, p, q);
    if (rows > 1) AMPI_F(tile_fma)(a[1], x, y, p + 1, q + 1);
    if (rows > 2) AMPI_F(tile_fma)(a[2], x, y, p + 2, q + 2);
    if (rows > 3) AMPI_F(tile_fma)(a[3], x, y, p + 3, q + 3);
    if (rows > 4) AMPI_F(tile_fma)(a[4], x, y, p + 4, q + 4);
    if (rows > 5) AMPI_F(tile_fma)(a[5], x, y, p + 5, q + 5);
    if (rows > 6) AMPI_F(tile_fma)(a[6], x, y, p + 6, q + 6);
    if (rows > 7) AMPI_F(tile_fma)(a[7], x, y, p + 7, q + 7);
    if (rows > 8) AMPI_F(tile_fma)(a[8], x, y, p + 8, q + 8);
    if (rows > 9) AMPI_F(tile_fma)(a[9], x, y, p + 9, q + 9);
    if (rows > 10) AMPI_F(tile_fma)(a[10], x, y, p + 10, q + 10);
    if (rows > 11) AMPI_F(tile_fma)(a[11], x, y, p + 11, q + 11);
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
    AMPI_F(tile_row)(c, p[0], q[0], first);
    if (rows > 1) AMPI_F(tile_row)(c + 1 * AMPI_LDC, p[1], q[1], first);
    if (rows > 2) AMPI_F(tile_row)(c + 2 * AMPI_LDC, p[2], q[2], first);
    if (rows > 3) AMPI_F(tile_row)(c + 3 * AMPI_LDC, p[3], q[3], first);
    if (rows > 4) AMPI_F(tile_row)(c + 4 * AMPI_LDC, p[4], q[4], first);
    if (rows > 5) AMPI_F(tile_row)(c + 5 * AMPI_LDC, p[5], q[5], first);
    if (rows > 6) AMPI_F(tile_row)(c + 6 * AMPI_LDC, p[6], q[6], first);
    if (rows > 7) AMPI_F(tile_row)(c + 7 * AMPI_LDC, p[7], q[7], first);
    if (rows > 8) AMPI_F(tile_row)(c + 8 * AMPI_LDC, p[8], q[8], first);
    if (rows > 9) AMPI_F(tile_row)(c + 9 * AMPI_LDC, p[9], q[9], first);
    if (rows > 10) AMPI_F(tile_row)(c + 10 * AMPI_LDC, p[10], q[10], first);
    if (rows > 11) AMPI_F(tile_row)(c + 11 * AMPI_LDC, p[11], q[11], first);
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
#endif /* AMPI_PASS_VECTOR */

