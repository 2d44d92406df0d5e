/* ---- scalar: portable C. What rules for one element need stands at >>backend already ---- */
AMPI_ALWAYS float ampi_scalar_load(const float *p) { return *p; }
AMPI_ALWAYS void ampi_scalar_store(float *p, float x) { *p = x; }
AMPI_ALWAYS float ampi_scalar_fma(float a, float b, float c) { return a * b + c; }
AMPI_ALWAYS float ampi_scalar_larger(float a, float b) { return a > b ? a : b; }
/* These two without a guard: compilers are to vectorise loops of them. */
AMPI_ALWAYS float ampi_scalar_magic_add(float a, float b) { return a + b; }
AMPI_ALWAYS float ampi_scalar_magic_sub(float a, float b) { return a - b; }
AMPI_ALWAYS uint32_t ampi_scalar_load_words(const void *p) {
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}
AMPI_ALWAYS void ampi_scalar_store_words(uint32_t *p, uint32_t x) { *p = x; }
AMPI_ALWAYS int ampi_scalar_any(uint32_t a) { return a != 0; }
AMPI_ALWAYS float ampi_scalar_larger_abs(float a, float b) {
    return ampi_larger(a, ampi_float(ampi_bits(b) & 0x7fffffffu));
}
AMPI_ALWAYS int ampi_scalar_nonzero(float x) { return (ampi_bits(x) & 0x7fffffffu) - 1u < 0x7f800000u; }
AMPI_ALWAYS int ampi_scalar_same(int mask, float a, float b) {
    return mask & (ampi_bits(a) == ampi_bits(b)) & !amp_is_nan(b);
}
AMPI_ALWAYS uint32_t ampi_scalar_add_if(uint32_t sum, int mask) { return sum + (uint32_t)mask; }
AMPI_ALWAYS uint32_t ampi_scalar_load8(const void *p) { return *(const uint8_t *)p; }
AMPI_ALWAYS uint32_t ampi_scalar_load16(const void *p) {
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return h;
}
AMPI_ALWAYS int ampi_scalar_same16(int mask, const void *a, const void *b) { return mask & (memcmp(a, b, 2) == 0); }
AMPI_ALWAYS void ampi_scalar_store8(uint8_t *p, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    p[0] = (uint8_t)a;
    p[1] = (uint8_t)b;
    p[2] = (uint8_t)c;
    p[3] = (uint8_t)d;
}
AMPI_ALWAYS void ampi_scalar_done(void) {}

static void ampi_scalar_widen_f32(void *d, const void *s, size_t n) { memcpy(d, s, n * 4); }
static void ampi_scalar_narrow_f32(void *d, const void *s, size_t n) {
    if (d != s) memcpy(d, s, n * 4);
}
static void ampi_scalar_round(void *d, amp_dtype t, const void *s, size_t n, const uint32_t *r, int saturate) {
    amp_rounding how = r ? AMP_STOCHASTIC : AMP_NEAREST;
    size_t i;
    uint32_t u;
    for (i = 0; i < n; i++) {
        memcpy(&u, (const char *)s + 4 * i, 4);
        ampi_store_pattern(d, t, i, ampi_encode(u, t, how, r ? r[i] : 0, saturate));
    }
}
static const uint32_t *ampi_scalar_random(uint32_t *buf, size_t n, uint64_t seed, uint64_t stream, uint64_t at) {
    size_t i;
    for (i = 0; i < n + (at & 3u); i += 4)
        amp_philox(buf + i, seed, stream, (at >> 2) + i / 4);
    return buf + (at & 3u);
}
static int ampi_scalar_bad(const void *p, size_t bytes, amp_dtype t) {
    uint32_t e = ampi_exponents(t), sign = ampi_signs(t), any = 0, x[16], k;
    size_t i;
    for (i = 0; i + 64 <= bytes; i += 64) {
        memcpy(x, (const char *)p + i, 64);
        for (k = 0; k < 16; k++)
            any |= (x[k] & e) + (sign - e);
    }
    if (i < bytes) {
        memset(x, 0, 64);
        memcpy(x, (const char *)p + i, bytes - i);
        for (k = 0; k < 16; k++)
            any |= (x[k] & e) + (sign - e);
    }
    return (any & sign) != 0;
}
/* Under these flags compilers may add up in a different order, but not what passes through memory. */
#if defined(__GNUC__) && (defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__))
#  define AMPI_KEEP_ORDER(x) __asm__ volatile("" : "+m"(x))
#else
#  define AMPI_KEEP_ORDER(x) (void)0
#endif
static void ampi_scalar_tile_4(size_t kc, const float *a, const float *b, float *c, int first) {
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
static void ampi_scalar_fused(size_t rows, size_t mr, size_t kc, const float *a, const float *b, float *c, int first) {
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
static void ampi_scalar_pack4(float *to, size_t width, const float *rows, size_t ld, size_t depth) {
    size_t k;
    for (k = 0; k < depth; k++, to += width) {
        to[0] = rows[k];
        to[1] = rows[ld + k];
        to[2] = rows[2 * ld + k];
        to[3] = rows[3 * ld + k];
    }
}
#define AMPI_F(name) ampi_scalar_##name
#define AMPI_WIDTH   1u
#define AMPI_PASS    AMPI_PASS_SCALAR
#include AMP_SELF
#undef AMPI_F
#undef AMPI_WIDTH
/* Tables of kernels are filled by code: a const table of addresses would be writable data in PIC. */
static void ampi_use_scalar(ampi_kernels *k) {
    memset(k, 0, sizeof *k);
    ampi_scalar_use(k);
    k->simd = AMP_SIMD_SCALAR;
    k->name = "scalar";
    k->widen[AMP_F32] = ampi_scalar_widen_f32;
    k->narrow[AMP_F32] = ampi_scalar_narrow_f32;
    k->pack4 = ampi_scalar_pack4;
    k->mr[0] = 4;
    k->nr = 8;
    k->tile[0] = ampi_scalar_tile_4;
    k->fused = ampi_scalar_fused;
}

