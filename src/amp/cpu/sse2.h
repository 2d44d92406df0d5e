
/* ---- sse2.   tests: tests/test_arrays.c ---- */
#ifdef AMPI_X86
#  define AMPI_F(name) ampi_sse2_##name
#  define AMPI_TARGET
#  define AMPI_WIDTH    4u
#  define AMPI_TILES(X) X(4) X(1)
#  define AMPI_MM(name) _mm_##name
#  define AMPI_REG      "x"
#  ifdef __AVX__ /* the same registers: no mixing of encodings */
#    define AMPI_ASM1(op) "{v" op "ps %1, %0|v" op "ps %0, %1}"
#    define AMPI_ASM2(op) "{v" op "ps %2, %1, %0|v" op "ps %0, %1, %2}"
#    define AMPI_FIRST    "x"
#  else
#    define AMPI_ASM1(op) "{" op "ps %1, %0|" op "ps %0, %1}"
#    define AMPI_ASM2(op) "{" op "ps %2, %0|" op "ps %0, %2}"
#    define AMPI_FIRST    "0"
#  endif
#  define AMPI_EQUAL "cmpeq"
#  define AMPI_HAS_STREAM
#  define AMPI_HAS_PACK4
typedef __m128 ampi_sse2_floats;
typedef __m128i ampi_sse2_words, ampi_sse2_words64, ampi_sse2_mask;
#  define AMPI_PASS AMPI_PASS_ALIKE
#  include AMP_SELF
/* clang-format off */
AMPI_OP __m128  ampi_sse2_fma(__m128 a, __m128 b, __m128 c)       { return ampi_sse2_add(_mm_mul_ps(a, b), c); }
AMPI_OP __m128  ampi_sse2_larger_abs(__m128 a, __m128 b)          { return ampi_sse2_larger(ampi_sse2_size(b), a); }
AMPI_OP __m128i ampi_sse2_select(__m128i m, __m128i a, __m128i b) { return (m & a) | (~m & b); }

AMPI_OP __m128i ampi_sse2_min(__m128i a, __m128i b) { return ampi_sse2_select(ampi_sse2_greater(a, b), b, a); }
AMPI_OP __m128i ampi_sse2_max(__m128i a, __m128i b) { return ampi_sse2_select(ampi_sse2_greater(a, b), a, b); }
AMPI_OP __m128i ampi_sse2_word64(uint64_t x)        { return _mm_set1_epi64x((long long)x); }
AMPI_OP __m128i ampi_sse2_counters(void)            { return _mm_set_epi64x(1, 0); }
AMPI_OP __m128i ampi_sse2_low64(const void *p)      { return _mm_loadl_epi64((const __m128i *)p); }
AMPI_OP __m128i ampi_sse2_signed16(__m128i a)       { return _mm_srai_epi32(_mm_slli_epi32(a, 16), 16); }
AMPI_OP void    ampi_sse2_done(void)                {}
/* clang-format on */
AMPI_OP int ampi_sse2_any(__m128i a) { return _mm_movemask_epi8(_mm_cmpeq_epi32(a, _mm_setzero_si128())) != 0xffff; }
AMPI_OP __m128i ampi_sse2_load_upper(const void *p) {
    return _mm_unpacklo_epi16(_mm_setzero_si128(), ampi_sse2_low64(p));
}
AMPI_OP __m128i ampi_sse2_load16(const void *p) { return _mm_unpacklo_epi16(ampi_sse2_low64(p), _mm_setzero_si128()); }
AMPI_OP __m128i ampi_sse2_load8(const void *p) {
    const __m128i zero = _mm_setzero_si128();
    int32_t x;
    memcpy(&x, p, 4);
    return _mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(x), zero), zero);
}
AMPI_OP __m128i ampi_sse2_same16(__m128i mask, const void *a, const void *b) {
    __m128i r = _mm_cmpeq_epi16(ampi_sse2_low64(a), ampi_sse2_low64(b));
    return mask & _mm_unpacklo_epi16(r, r);
}
AMPI_OP void ampi_sse2_store16(void *p, __m128i a, __m128i b) { /* the pack saturates signed numbers */
    ampi_sse2_store_words(p, _mm_packs_epi32(ampi_sse2_signed16(a), ampi_sse2_signed16(b)));
}
AMPI_OP void ampi_sse2_store8(void *p, __m128i a, __m128i b, __m128i c, __m128i d) {
    ampi_sse2_store_words(p, _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d)));
}
#  ifdef __FMA__
AMPI_OP __m128 ampi_sse2_fuse(__m128 a, __m128 b, __m128 c) { return ampi_sse2_guard(_mm_fmadd_ps(a, b, c)); }
#  else
AMPI_OP __m128d ampi_sse2_guard_doubles(__m128d x) {
    __asm__("" : "+x"(x));
    return x;
}
AMPI_OP __m128d ampi_sse2_product(__m128 a, __m128 b) { /* of the lower half, exact */
    return ampi_sse2_guard_doubles(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)));
}
/* Where a double may lie halfway between two floats: its lower 28 bits are 0, as those of a float are. */
AMPI_OP __m128i ampi_sse2_halfway(__m128d low, __m128d high) {
    __m128 ends = _mm_shuffle_ps(_mm_castpd_ps(low), _mm_castpd_ps(high), _MM_SHUFFLE(2, 0, 2, 0));
    return _mm_cmpeq_epi32(_mm_castps_si128(ends) & _mm_set1_epi32(0x0fffffff), _mm_setzero_si128());
}
/* Bits in which a double is not the float nearest to it, by halves. */
AMPI_OP __m128 ampi_sse2_unlike(__m128d x, __m128 nearest) {
    return _mm_castsi128_ps(_mm_castpd_si128(x) ^ _mm_castpd_si128(_mm_cvtps_pd(nearest)));
}
/* A sum that is a float is right: e^0 and zeros give such. */
AMPI_RARE __m128 ampi_sse2_fuse_each(__m128 a, __m128 b, __m128 c, __m128d low, __m128d high) {
    const __m128 sum = ampi_sse2_guard(_mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high)));
    const __m128 l = ampi_sse2_unlike(low, sum), h = ampi_sse2_unlike(high, _mm_movehl_ps(sum, sum));
    __m128i bits = _mm_castps_si128(_mm_shuffle_ps(l, h, _MM_SHUFFLE(2, 0, 2, 0)));
    float x[3][4];
    uint32_t k;
    bits |= _mm_castps_si128(_mm_shuffle_ps(l, h, _MM_SHUFFLE(3, 1, 3, 1)));
    bits = _mm_cmpeq_epi32(bits, _mm_setzero_si128());
    if (!_mm_movemask_epi8(_mm_andnot_si128(bits, ampi_sse2_halfway(low, high)))) return sum;
    ampi_sse2_store(x[0], a);
    ampi_sse2_store(x[1], b);
    ampi_sse2_store(x[2], c);
    for (k = 0; k < 4; k++)
        x[0][k] = amp_fma(x[0][k], x[1][k], x[2][k]);
    return ampi_sse2_load(x[0]);
}
AMPI_OP __m128 ampi_sse2_fuse(__m128 a, __m128 b, __m128 c) { /* see amp_fma */
    __m128d low = ampi_sse2_product(a, b), high = ampi_sse2_product(_mm_movehl_ps(a, a), _mm_movehl_ps(b, b));
    low = ampi_sse2_guard_doubles(_mm_add_pd(low, _mm_cvtps_pd(c)));
    high = ampi_sse2_guard_doubles(_mm_add_pd(high, _mm_cvtps_pd(_mm_movehl_ps(c, c))));
    if (_mm_movemask_epi8(ampi_sse2_halfway(low, high))) return ampi_sse2_fuse_each(a, b, c, low, high);
    return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}
#  endif
AMPI_OP void ampi_sse2_stream64(char *p, const char *b) {
    __m128i *to = (__m128i *)(void *)p;
    _mm_stream_si128(to, ampi_sse2_load_words(b));
    _mm_stream_si128(to + 1, ampi_sse2_load_words(b + 16));
    _mm_stream_si128(to + 2, ampi_sse2_load_words(b + 32));
    _mm_stream_si128(to + 3, ampi_sse2_load_words(b + 48));
}
static void ampi_sse2_fence(void) { _mm_sfence(); }
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
#  define AMPI_PASS AMPI_PASS_VECTOR
#  include AMP_SELF
#endif
