
/* ---- avx2, with F16C.   tests: as sse2's ---- */
#ifdef AMPI_X86
#  define AMPI_AVX2     __attribute__((__target__("avx2,fma,f16c")))
#  define AMPI_F(name)  ampi_avx2_##name
#  define AMPI_TARGET   AMPI_AVX2
#  define AMPI_WIDTH    8u
#  define AMPI_TILES(X) X(6) X(4) X(1)
#  define AMPI_MM(name) _mm256_##name
#  define AMPI_REG      "x"
#  define AMPI_ASM1(op) "{v" op "ps %1, %0|v" op "ps %0, %1}"
#  define AMPI_ASM2(op) "{v" op "ps %2, %1, %0|v" op "ps %0, %1, %2}"
#  define AMPI_FIRST    "x"
#  define AMPI_EQUAL    "cmpeq"
#  define AMPI_HAS_FMA
#  define AMPI_HAS_SHIFT_EACH
#  define AMPI_HAS_SOME
#  define AMPI_HAS_HALVES
#  define AMPI_HAS_HALVES_OF_F8
#  define AMPI_HAS_STREAM
typedef __m256 ampi_avx2_floats;
typedef __m256i ampi_avx2_words, ampi_avx2_words64, ampi_avx2_mask;
typedef __m128i ampi_avx2_halves;
#  define AMPI_PASS AMPI_PASS_ALIKE
#  include AMP_SELF
/* clang-format off */
AMPI_OP __m256  ampi_avx2_fma(__m256 a, __m256 b, __m256 c)       { return _mm256_fmadd_ps(a, b, c); }
AMPI_OP __m256  ampi_avx2_larger_abs(__m256 a, __m256 b)          { return ampi_avx2_larger(ampi_avx2_size(b), a); }
AMPI_OP __m256i ampi_avx2_select(__m256i m, __m256i a, __m256i b) { return _mm256_blendv_epi8(b, a, m); }

AMPI_OP int     ampi_avx2_any(__m256i a)            { return !_mm256_testz_si256(a, a); }
AMPI_OP __m256i ampi_avx2_word64(uint64_t x)        { return _mm256_set1_epi64x((long long)x); }
AMPI_OP __m256i ampi_avx2_counters(void)            { return _mm256_setr_epi64x(0, 2, 1, 3); }
AMPI_OP __m128i ampi_avx2_low64(const void *p)      { return _mm_loadl_epi64((const __m128i *)p); }
AMPI_OP __m128i ampi_avx2_low128(const void *p)     { return _mm_loadu_si128((const __m128i *)p); }
AMPI_OP __m256i ampi_avx2_load16(const void *p)     { return _mm256_cvtepu16_epi32(ampi_avx2_low128(p)); }
AMPI_OP __m256i ampi_avx2_load8(const void *p)      { return _mm256_cvtepu8_epi32(ampi_avx2_low64(p)); }
AMPI_OP __m256i ampi_avx2_from_halves(__m128i h)    { return _mm256_castps_si256(_mm256_cvtph_ps(h)); }
AMPI_OP __m128i ampi_avx2_to_halves(__m256i x)      { return _mm256_cvtps_ph(_mm256_castsi256_ps(x), 0); }
AMPI_OP __m128i ampi_avx2_load_bytes(const void *p) { return _mm_cvtepi8_epi16(ampi_avx2_low64(p)); }
AMPI_OP __m256i ampi_avx2_first(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
AMPI_OP __m256 ampi_avx2_load_some(const float *p, size_t n) {
    return _mm256_maskload_ps(p, ampi_avx2_first(n));
}
AMPI_OP void ampi_avx2_store_some(float *p, size_t n, __m256 x) { _mm256_maskstore_ps(p, ampi_avx2_first(n), x); }
/* GCC 12 forgets it before a tail call: SSE code is 3 times slower then (Zen 5). */
AMPI_OP void ampi_avx2_done(void) { _mm256_zeroupper(); }
/* clang-format on */
/* 16-bit words in the upper halves of 32-bit ones, zeros below: the load puts them into both halves of the vector. */
AMPI_OP __m256i ampi_avx2_load_upper(const void *p) {
    const __m256i order =
        _mm256_setr_epi16(-1, 0x100, -1, 0x302, -1, 0x504, -1, 0x706, -1, 0x908, -1, 0xb0a, -1, 0xd0c, -1, 0xf0e);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(ampi_avx2_low128(p)), order);
}
AMPI_OP __m256i ampi_avx2_same16(__m256i mask, const void *a, const void *b) {
    return mask & _mm256_cvtepi16_epi32(_mm_cmpeq_epi16(ampi_avx2_low128(a), ampi_avx2_low128(b)));
}
AMPI_OP void ampi_avx2_store16(void *p, __m256i a, __m256i b) {
    ampi_avx2_store_words(p, _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8));
}
AMPI_OP void ampi_avx2_store8(void *p, __m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
    ampi_avx2_store_words(p, _mm256_permutevar8x32_epi32(bytes, order));
}
AMPI_OP void ampi_avx2_stream64(char *p, const char *b) {
    __m256i *to = (__m256i *)(void *)p;
    _mm256_stream_si256(to, ampi_avx2_load_words(b));
    _mm256_stream_si256(to + 1, ampi_avx2_load_words(b + 32));
}
#  define AMPI_PASS AMPI_PASS_VECTOR
#  include AMP_SELF
#endif
