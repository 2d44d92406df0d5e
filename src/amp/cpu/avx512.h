
/* ---- avx512: F, BW, DQ and VL.   tests: as sse2's ---- */
#ifdef AMPI_X86
#  ifndef __clang__
#    pragma GCC diagnostic push
#    pragma GCC diagnostic ignored "-Wuninitialized" /* GCC bug 105593: its own _mm512_undefined_*() */
#    pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#  endif
#  define AMPI_AVX512   __attribute__((__target__("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#  define AMPI_F(name)  ampi_avx512_##name
#  define AMPI_TARGET   AMPI_AVX512
#  define AMPI_WIDTH    16u
#  define AMPI_TILES(X) X(12) X(8) X(4) X(1)
#  define AMPI_MM(name) _mm512_##name
#  define AMPI_REG      "v"
#  define AMPI_ASM1(op) "{v" op "ps %1, %0|v" op "ps %0, %1}"
#  define AMPI_ASM2(op) "{v" op "ps %2, %1, %0|v" op "ps %0, %1, %2}"
#  define AMPI_FIRST    "v"
#  define AMPI_HAS_FMA
#  define AMPI_HAS_SHIFT_EACH
#  define AMPI_HAS_SOME
#  define AMPI_HAS_MASKS
#  define AMPI_HAS_HALVES
#  define AMPI_HAS_HALVES_OF_F8
#  define AMPI_HAS_STREAM
typedef __m512 ampi_avx512_floats;
typedef __m512i ampi_avx512_words, ampi_avx512_words64;
typedef __mmask16 ampi_avx512_mask;
typedef __m256i ampi_avx512_halves;
#  define AMPI_PASS AMPI_PASS_ALIKE
#  include AMP_SELF
/* clang-format off */
AMPI_OP __m512    ampi_avx512_fma(__m512 a, __m512 b, __m512 c)         { return _mm512_fmadd_ps(a, b, c); }
AMPI_OP __mmask16 ampi_avx512_greater(__m512i a, __m512i b)             { return _mm512_cmpgt_epi32_mask(a, b); }
AMPI_OP __m512i   ampi_avx512_select(__mmask16 m, __m512i a, __m512i b) { return _mm512_mask_mov_epi32(b, m, a); }

AMPI_OP int     ampi_avx512_any(__m512i a)            { return _mm512_test_epi32_mask(a, a) != 0; }
AMPI_OP __m512i ampi_avx512_word64(uint64_t x)        { return _mm512_set1_epi64((long long)x); }
AMPI_OP __m512i ampi_avx512_counters(void)            { return _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7); }
AMPI_OP __m128i ampi_avx512_low128(const void *p)     { return _mm_loadu_si128((const __m128i *)p); }
AMPI_OP __m256i ampi_avx512_low256(const void *p)     { return _mm256_loadu_si256((const __m256i *)p); }
AMPI_OP __m512i ampi_avx512_load16(const void *p)     { return _mm512_cvtepu16_epi32(ampi_avx512_low256(p)); }
AMPI_OP __m512i ampi_avx512_load8(const void *p)      { return _mm512_cvtepu8_epi32(ampi_avx512_low128(p)); }
AMPI_OP __m512i ampi_avx512_from_halves(__m256i h)    { return _mm512_castps_si512(_mm512_cvtph_ps(h)); }
AMPI_OP __m256i ampi_avx512_load_bytes(const void *p) { return _mm256_cvtepi8_epi16(ampi_avx512_low128(p)); }
AMPI_OP void    ampi_avx512_done(void)                { _mm256_zeroupper(); }
/* clang-format on */
AMPI_OP __m512i ampi_avx512_load_upper(const void *p) { return _mm512_slli_epi32(ampi_avx512_load16(p), 16); }
AMPI_OP __mmask16 ampi_avx512_first(size_t n) { return (__mmask16)((1u << n) - 1u); }
AMPI_OP __m512 ampi_avx512_load_some(const float *p, size_t n) {
    return _mm512_maskz_loadu_ps(ampi_avx512_first(n), p);
}
AMPI_OP void ampi_avx512_store_some(float *p, size_t n, __m512 x) { _mm512_mask_storeu_ps(p, ampi_avx512_first(n), x); }
AMPI_OP __m512 ampi_avx512_larger_abs(__m512 a, __m512 b) {
    __asm__("{vrangeps $11, %1, %0, %0|vrangeps %0, %0, %1, 11}"
        : "+v"(a)
        : "v"(b)); /* 11: of sizes, with a sign of 0 */
    return a;
}
AMPI_OP __mmask16 ampi_avx512_nonzero(__m512 x) {
    __mmask16 r;
    __asm__("{vcmpneq_oqps %2, %1, %0|vcmpneq_oqps %0, %1, %2}" : "=k"(r) : "v"(x), "v"(_mm512_setzero_ps()));
    return r;
}
AMPI_OP __mmask16 ampi_avx512_same(__mmask16 mask, __m512 a, __m512 b) {
    __mmask16 r;
    __asm__("{vcmpeqps %2, %1, %0%{%3%}|vcmpeqps %0%{%3%}, %1, %2}" : "=k"(r) : "v"(a), "v"(b), "Yk"(mask));
    return r;
}
AMPI_OP __mmask16 ampi_avx512_same16(__mmask16 mask, const void *a, const void *b) {
    return _mm256_mask_cmpeq_epi16_mask(mask, ampi_avx512_low256(a), ampi_avx512_low256(b));
}
AMPI_OP __m512i ampi_avx512_add_if(__m512i sum, __mmask16 mask) {
    return _mm512_mask_sub_epi32(sum, mask, sum, _mm512_set1_epi32(-1));
}
AMPI_OP void ampi_avx512_store16(void *p, __m512i a, __m512i b) {
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    ampi_avx512_store_words(p, _mm512_permutexvar_epi64(order, _mm512_packus_epi32(a, b)));
}
AMPI_OP void ampi_avx512_store8(void *p, __m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i bytes = _mm512_packus_epi16(_mm512_packus_epi32(a, b), _mm512_packus_epi32(c, d));
    ampi_avx512_store_words(p, _mm512_permutexvar_epi32(order, bytes));
}
AMPI_OP void ampi_avx512_stream64(char *p, const char *b) {
    _mm512_stream_si512((__m512i *)(void *)p, ampi_avx512_load_words(b));
}
AMPI_OP __m256i ampi_avx512_to_halves(__m512i x) { /* the plain form, as a macro at -O0, has a sign conversion in it */
    return _mm512_maskz_cvtps_ph((__mmask16)0xffffu, _mm512_castsi512_ps(x), 0);
}
#  define AMPI_PASS AMPI_PASS_VECTOR
#  include AMP_SELF
/* VCVTNE2PS2BF16 rounds to nearest in any mode, but takes subnormals for 0: a step that holds one (2x - 1 < 2^24 - 1
   unsigned) is done again with integers. */
#  if defined(__clang__) ? __clang_major__ >= 9 : __GNUC__ >= 10
#    define AMPI_HAS_BF16
#    define AMPI_AVX512_BF16 __attribute__((__target__("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")))
AMPI_AVX512_BF16 AMPI_ALWAYS __m512i ampi_avx512_less_tiny(__m512i least, __m512i x) {
    return _mm512_min_epu32(least, _mm512_add_epi32(_mm512_add_epi32(x, x), _mm512_set1_epi32(-1)));
}
AMPI_AVX512_BF16 AMPI_ALWAYS __m512i ampi_avx512_to_bf16(__m512i low, __m512i high) {
    __m512i r;
    __asm__("{vcvtne2ps2bf16 %2, %1, %0|vcvtne2ps2bf16 %0, %1, %2}" : "=v"(r) : "v"(high), "v"(low));
    return r;
}
AMPI_AVX512_BF16 AMPI_ALWAYS void ampi_avx512_bf16_step(char *d, const char *s) {
    __m512i v0 = ampi_avx512_load_words(s), v1 = ampi_avx512_load_words(s + 64);
    __m512i v2 = ampi_avx512_load_words(s + 128), v3 = ampi_avx512_load_words(s + 192);
    __m512i tiny = ampi_avx512_less_tiny(_mm512_set1_epi32(-1), v0);
    tiny = ampi_avx512_less_tiny(tiny, v1);
    tiny = ampi_avx512_less_tiny(tiny, v2);
    tiny = ampi_avx512_less_tiny(tiny, v3);
    ampi_avx512_store_words(d, ampi_avx512_to_bf16(v0, v1));
    ampi_avx512_store_words(d + 64, ampi_avx512_to_bf16(v2, v3));
    /* not ampi_avx512_narrow_bf16(d, s, 64): clang 14 -O1 never ends */
    if (_mm512_cmplt_epu32_mask(tiny, _mm512_set1_epi32(0x00ffffff))) ampi_avx512_narrow_step(d, s, AMP_BF16);
}
AMPI_AVX512_BF16 static void ampi_avx512_narrow_bf16_hw(void *dst, const void *src, size_t n) {
    char *d = (char *)dst;
    const char *s = (const char *)src;
    size_t i;
    for (i = 0; i + 64 <= n; i += 64)
        ampi_avx512_bf16_step(d + 2 * i, s + 4 * i);
    if (i < n) ampi_avx512_narrow_bf16(d + 2 * i, s + 4 * i, n - i);
}
#  endif
#  ifndef __clang__
#    pragma GCC diagnostic pop
#  endif
#endif
