#ifdef AMPI_X86
#  ifndef __clang__
#    pragma GCC diagnostic push
#    pragma GCC diagnostic ignored "-Wuninitialized" /* GCC bug 105593: its own _mm512_undefined_*() */
#    pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#  endif
#  define AMPI_HAS_STREAM

/* ---- sse2 ---- */
typedef __m128 ampi_sse2_floats;
typedef __m128i ampi_sse2_words, ampi_sse2_words64, ampi_sse2_mask;
#  define AMPI_F(name) ampi_sse2_##name
#  define AMPI_TARGET
#  define AMPI_WIDTH    4u
#  define AMPI_MM(name) _mm_##name
#  define AMPI_SI(name) _mm##name##_si128
#  define AMPI_REG      "x"
AMPI_ALWAYS __m128i ampi_sse2_word64(uint64_t x) { return _mm_set1_epi64x((long long)x); }
AMPI_ALWAYS __m128i ampi_sse2_bits(__m128 x) { return _mm_castps_si128(x); }
AMPI_ALWAYS __m128 ampi_sse2_as_floats(__m128i x) { return _mm_castsi128_ps(x); }
#  define AMPI_PASS AMPI_PASS_X86
#  include AMP_SELF
#  ifdef __AVX__ /* the same registers: no mixing of encodings */
#    define AMPI_SSE2_ASM(op, r, a) __asm__("v" op " %1, %0, %0" : "+x"(r) : "x"(a))
#    define AMPI_SSE2_SQRT          "vsqrtps %1, %0"
#  else
#    define AMPI_SSE2_ASM(op, r, a) __asm__(op " %1, %0" : "+x"(r) : "x"(a))
#    define AMPI_SSE2_SQRT          "sqrtps %1, %0"
#  endif
AMPI_ALWAYS __m128 ampi_sse2_div(__m128 a, __m128 b) {
    AMPI_SSE2_ASM("divps", a, b);
    return a;
}
AMPI_ALWAYS __m128 ampi_sse2_larger(__m128 a, __m128 b) {
    AMPI_SSE2_ASM("maxps", a, b);
    return a;
}
AMPI_ALWAYS __m128 ampi_sse2_smaller(__m128 a, __m128 b) {
    AMPI_SSE2_ASM("minps", a, b);
    return a;
}
AMPI_ALWAYS __m128 ampi_sse2_sqrt(__m128 a) {
    __m128 r;
    __asm__(AMPI_SSE2_SQRT : "=x"(r) : "x"(a));
    return r;
}
AMPI_ALWAYS __m128 ampi_sse2_fma(__m128 a, __m128 b, __m128 c) { return ampi_sse2_add(_mm_mul_ps(a, b), c); }
#  ifdef __FMA__
AMPI_ALWAYS __m128 ampi_sse2_fuse(__m128 a, __m128 b, __m128 c) { return ampi_sse2_guard(_mm_fmadd_ps(a, b, c)); }
#  else
AMPI_ALWAYS __m128d ampi_sse2_guard_doubles(__m128d x) {
    __asm__("" : "+x"(x));
    return x;
}
AMPI_ALWAYS __m128d ampi_sse2_product(__m128 a, __m128 b) { /* of the lower half, exact */
    return ampi_sse2_guard_doubles(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)));
}
/* see amp_fma; bits that are 0 in a double that is a float, or halfway between two */
AMPI_ALWAYS __m128 ampi_sse2_fuse(__m128 a, __m128 b, __m128 c) {
    const __m128i halfway = _mm_set1_epi32(0x0fffffff);
    __m128d low = ampi_sse2_product(a, b), high = ampi_sse2_product(_mm_movehl_ps(a, a), _mm_movehl_ps(b, b));
    __m128 ends;
    low = ampi_sse2_guard_doubles(_mm_add_pd(low, _mm_cvtps_pd(c)));
    high = ampi_sse2_guard_doubles(_mm_add_pd(high, _mm_cvtps_pd(_mm_movehl_ps(c, c))));
    ends = _mm_shuffle_ps(_mm_castpd_ps(low), _mm_castpd_ps(high), _MM_SHUFFLE(2, 0, 2, 0));
    if (_mm_movemask_epi8(_mm_cmpeq_epi32(_mm_and_si128(_mm_castps_si128(ends), halfway), _mm_setzero_si128()))) {
        float x[3][4];
        uint32_t k;
        _mm_storeu_ps(x[0], a);
        _mm_storeu_ps(x[1], b);
        _mm_storeu_ps(x[2], c);
        for (k = 0; k < 4; k++)
            x[0][k] = amp_fma(x[0][k], x[1][k], x[2][k]);
        return _mm_loadu_ps(x[0]);
    }
    return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}
#  endif
AMPI_ALWAYS __m128i ampi_sse2_shr(__m128i a, uint32_t n) { return _mm_srli_epi32(a, (int)n); }
AMPI_ALWAYS __m128i ampi_sse2_shl(__m128i a, uint32_t n) { return _mm_slli_epi32(a, (int)n); }
AMPI_ALWAYS __m128i ampi_sse2_greater(__m128i a, __m128i b) { return _mm_cmpgt_epi32(a, b); }
AMPI_ALWAYS __m128 ampi_sse2_size(__m128 x) { return _mm_and_ps(x, _mm_castsi128_ps(_mm_set1_epi32(0x7fffffff))); }
AMPI_ALWAYS __m128 ampi_sse2_larger_abs(__m128 a, __m128 b) { return ampi_sse2_larger(ampi_sse2_size(b), a); }
AMPI_ALWAYS __m128i ampi_sse2_nonzero(__m128 x) {
    __m128 r = _mm_setzero_ps();
    AMPI_SSE2_ASM("cmpltps", r, ampi_sse2_size(x));
    return _mm_castps_si128(r);
}
AMPI_ALWAYS __m128i ampi_sse2_same(__m128i mask, __m128 a, __m128 b) {
    AMPI_SSE2_ASM("cmpeqps", a, b);
    return _mm_and_si128(mask, _mm_castps_si128(a));
}
AMPI_ALWAYS __m128i ampi_sse2_same16(__m128i mask, const void *a, const void *b) {
    __m128i r = _mm_cmpeq_epi16(_mm_loadl_epi64((const __m128i *)a), _mm_loadl_epi64((const __m128i *)b));
    return _mm_and_si128(mask, _mm_unpacklo_epi16(r, r));
}
AMPI_ALWAYS __m128i ampi_sse2_add_if(__m128i sum, __m128i mask) { return _mm_sub_epi32(sum, mask); }
AMPI_ALWAYS __m128i ampi_sse2_select(__m128i m, __m128i a, __m128i b) {
    return _mm_or_si128(_mm_and_si128(m, a), _mm_andnot_si128(m, b));
}
AMPI_ALWAYS __m128i ampi_sse2_min(__m128i a, __m128i b) { return ampi_sse2_select(ampi_sse2_greater(a, b), b, a); }
AMPI_ALWAYS __m128i ampi_sse2_max(__m128i a, __m128i b) { return ampi_sse2_select(ampi_sse2_greater(a, b), a, b); }
AMPI_ALWAYS int ampi_sse2_any(__m128i a) {
    return _mm_movemask_epi8(_mm_cmpeq_epi32(a, _mm_setzero_si128())) != 0xffff;
}
AMPI_ALWAYS __m128i ampi_sse2_load16(const void *p) {
    return _mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)p), _mm_setzero_si128());
}
AMPI_ALWAYS __m128i ampi_sse2_load8(const void *p) {
    const __m128i zero = _mm_setzero_si128();
    int32_t x;
    memcpy(&x, p, 4);
    return _mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(x), zero), zero);
}
AMPI_ALWAYS __m128i ampi_sse2_signed16(__m128i a) { return _mm_srai_epi32(_mm_slli_epi32(a, 16), 16); }
AMPI_ALWAYS void ampi_sse2_store16(void *p, __m128i a, __m128i b) { /* the pack saturates signed numbers */
    _mm_storeu_si128((__m128i *)p, _mm_packs_epi32(ampi_sse2_signed16(a), ampi_sse2_signed16(b)));
}
AMPI_ALWAYS void ampi_sse2_store8(void *p, __m128i a, __m128i b, __m128i c, __m128i d) {
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d)));
}
AMPI_ALWAYS __m128i ampi_sse2_counters(void) { return _mm_set_epi64x(1, 0); }
AMPI_ALWAYS void ampi_sse2_done(void) {}
AMPI_ALWAYS void ampi_sse2_stream64(char *p, const char *b) {
    __m128i *to = (__m128i *)(void *)p;
    _mm_stream_si128(to, ampi_sse2_load_words(b));
    _mm_stream_si128(to + 1, ampi_sse2_load_words(b + 16));
    _mm_stream_si128(to + 2, ampi_sse2_load_words(b + 32));
    _mm_stream_si128(to + 3, ampi_sse2_load_words(b + 48));
}
#  define AMPI_PASS AMPI_PASS_VECTOR
#  include AMP_SELF
static void ampi_sse2_fence(void) { _mm_sfence(); }
static void ampi_sse2_tile_4(size_t kc, const float *a, const float *b, float *c, int first) {
    ampi_sse2_tile(4, kc, a, b, c, first);
}
static void ampi_sse2_tile_1(size_t kc, const float *a, const float *b, float *c, int first) {
    ampi_sse2_tile(1, kc, a, b, c, first);
}
static void ampi_sse2_fused(size_t rows, size_t mr, size_t kc, const float *a, const float *b, float *c, int first) {
    size_t i, k;
    for (i = 0; i < rows; i++, c += AMPI_LDC) {
        __m128 p = _mm_setzero_ps(), q = _mm_setzero_ps();
        for (k = 0; k < kc; k++) {
            __m128 x = _mm_set1_ps(a[k * mr + i]);
            p = ampi_sse2_fuse(x, ampi_sse2_load(b + k * 8), p);
            q = ampi_sse2_fuse(x, ampi_sse2_load(b + k * 8 + 4), q);
        }
        ampi_sse2_tile_row(c, p, q, first);
    }
}
static void ampi_sse2_pack4(float *to, size_t width, const float *rows, size_t ld, size_t depth) {
    size_t k;
    for (k = 0; k + 4 <= depth; k += 4, to += 4 * width) {
        __m128 a = _mm_loadu_ps(rows + k), b = _mm_loadu_ps(rows + ld + k);
        __m128 c = _mm_loadu_ps(rows + 2 * ld + k), d = _mm_loadu_ps(rows + 3 * ld + k);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        _mm_storeu_ps(to, a);
        _mm_storeu_ps(to + width, b);
        _mm_storeu_ps(to + 2 * width, c);
        _mm_storeu_ps(to + 3 * width, d);
    }
    ampi_scalar_pack4(to, width, rows + k, ld, depth - k);
}
static void ampi_use_sse2(ampi_kernels *k) {
    ampi_sse2_use(k);
    k->simd = AMP_SIMD_SSE2;
    k->name = "sse2";
    k->fence = ampi_sse2_fence;
    k->pack4 = ampi_sse2_pack4;
    k->mr[0] = 4;
    k->mr[1] = 1;
    k->nr = 8;
    k->tile[0] = ampi_sse2_tile_4;
    k->tile[1] = ampi_sse2_tile_1;
    k->fused = ampi_sse2_fused;
}
#  undef AMPI_F
#  undef AMPI_TARGET
#  undef AMPI_WIDTH
#  undef AMPI_MM
#  undef AMPI_SI
#  undef AMPI_SSE2_ASM
#  undef AMPI_SSE2_SQRT

