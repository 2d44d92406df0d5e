/* ---- avx2, with F16C. It helps FP8 too: an E5M2 byte is the upper byte of a half; E4M3 moved up by 7 is a half 256
   times too small, its NaN apart ---- */
#  define AMPI_HAS_VEX
#  define AMPI_HAS_SHIFT_EACH
#  define AMPI_HAS_HALVES
#  define AMPI_HAS_HALVES_OF_F8
typedef __m256 ampi_avx2_floats;
typedef __m256i ampi_avx2_words, ampi_avx2_words64, ampi_avx2_mask;
#  define AMPI_AVX2     __attribute__((target("avx2,fma,f16c")))
#  define AMPI_AVX2_OP  AMPI_AVX2 AMPI_ALWAYS
#  define AMPI_F(name)  ampi_avx2_##name
#  define AMPI_TARGET   AMPI_AVX2
#  define AMPI_WIDTH    8u
#  define AMPI_MM(name) _mm256_##name
#  define AMPI_SI(name) _mm256##name##_si256
AMPI_AVX2_OP __m256i ampi_avx2_word64(uint64_t x) { return _mm256_set1_epi64x((long long)x); }
AMPI_AVX2_OP __m256i ampi_avx2_bits(__m256 x) { return _mm256_castps_si256(x); }
AMPI_AVX2_OP __m256 ampi_avx2_as_floats(__m256i x) { return _mm256_castsi256_ps(x); }
#  define AMPI_PASS AMPI_PASS_X86
#  include AMP_SELF
AMPI_AVX2_OP __m256 ampi_avx2_fma(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
AMPI_AVX2_OP __m256i ampi_avx2_shr(__m256i a, uint32_t n) { return _mm256_srli_epi32(a, (int)n); }
AMPI_AVX2_OP __m256i ampi_avx2_shl(__m256i a, uint32_t n) { return _mm256_slli_epi32(a, (int)n); }
AMPI_AVX2_OP __m256i ampi_avx2_greater(__m256i a, __m256i b) { return _mm256_cmpgt_epi32(a, b); }
AMPI_AVX2_OP __m256 ampi_avx2_size(__m256 x) {
    return _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)));
}
AMPI_AVX2_OP __m256 ampi_avx2_larger_abs(__m256 a, __m256 b) { return ampi_avx2_larger(ampi_avx2_size(b), a); }
AMPI_AVX2_OP __m256i ampi_avx2_nonzero(__m256 x) { /* valgrind takes NaN for unequal even in neq_oq */
    __m256i r;
    __asm__("vcmplt_oqps %2, %1, %0" : "=x"(r) : "x"(_mm256_setzero_ps()), "x"(ampi_avx2_size(x)));
    return r;
}
AMPI_AVX2_OP __m256i ampi_avx2_same(__m256i mask, __m256 a, __m256 b) {
    __m256i r;
    __asm__("vcmpeqps %2, %1, %0" : "=x"(r) : "x"(a), "x"(b));
    return _mm256_and_si256(mask, r);
}
AMPI_AVX2_OP __m256i ampi_avx2_same16(__m256i mask, const void *a, const void *b) {
    __m128i r = _mm_cmpeq_epi16(_mm_loadu_si128((const __m128i *)a), _mm_loadu_si128((const __m128i *)b));
    return _mm256_and_si256(mask, _mm256_cvtepi16_epi32(r));
}
AMPI_AVX2_OP __m256i ampi_avx2_add_if(__m256i sum, __m256i mask) { return _mm256_sub_epi32(sum, mask); }
AMPI_AVX2_OP __m256i ampi_avx2_select(__m256i m, __m256i a, __m256i b) { return _mm256_blendv_epi8(b, a, m); }
AMPI_AVX2_OP int ampi_avx2_any(__m256i a) { return !_mm256_testz_si256(a, a); }
AMPI_AVX2_OP __m256i ampi_avx2_load16(const void *p) {
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
}
AMPI_AVX2_OP __m256i ampi_avx2_load8(const void *p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}
AMPI_AVX2_OP void ampi_avx2_store16(void *p, __m256i a, __m256i b) {
    ampi_avx2_store_words(p, _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8));
}
AMPI_AVX2_OP void ampi_avx2_store8(void *p, __m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
    ampi_avx2_store_words(p, _mm256_permutevar8x32_epi32(bytes, order));
}
AMPI_AVX2_OP __m256i ampi_avx2_counters(void) { return _mm256_setr_epi64x(0, 2, 1, 3); }
/* GCC 12 forgets it before a tail call: SSE code is 3 times slower then (Zen 5). */
AMPI_AVX2_OP void ampi_avx2_done(void) { _mm256_zeroupper(); }
AMPI_AVX2_OP void ampi_avx2_stream64(char *p, const char *b) {
    __m256i *to = (__m256i *)(void *)p;
    _mm256_stream_si256(to, ampi_avx2_load_words(b));
    _mm256_stream_si256(to + 1, ampi_avx2_load_words(b + 32));
}
AMPI_AVX2_OP __m256i ampi_avx2_from_halves(__m128i h) { return _mm256_castps_si256(_mm256_cvtph_ps(h)); }
AMPI_AVX2_OP __m256i ampi_avx2_load_halves(const void *p) {
    return ampi_avx2_from_halves(_mm_loadu_si128((const __m128i *)p));
}
AMPI_AVX2_OP __m256i ampi_avx2_load_e5m2(const void *p) {
    __m128i h = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)p));
    return ampi_avx2_from_halves(_mm_slli_epi16(h, 8));
}
AMPI_AVX2_OP __m256i ampi_avx2_load_e4m3(const void *p) {
    __m128i h = _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)p)), nan;
    h = _mm_and_si128(_mm_slli_epi16(h, 7), _mm_set1_epi16((short)0xbf80));
    nan = _mm_and_si128(_mm_add_epi16(h, _mm_set1_epi16(0x80)), _mm_set1_epi16(0x4000));
    h = _mm_or_si128(h, nan);
    return ampi_avx2_bits(ampi_avx2_mul(_mm256_cvtph_ps(h), ampi_avx2_set(256.0f)));
}
AMPI_AVX2_OP void ampi_avx2_store_two_halves(char *p, const char *s) {
    __m128i a = _mm256_cvtps_ph(ampi_avx2_as_floats(ampi_avx2_load_words(s)), 0);
    __m128i b = _mm256_cvtps_ph(ampi_avx2_as_floats(ampi_avx2_load_words(s + 32)), 0);
    __asm__("" : "+x"(a)); /* in registers: the forms that convert into memory are slow on some machines */
    __asm__("" : "+x"(b));
    _mm_storeu_si128((__m128i *)(void *)p, a);
    _mm_storeu_si128((__m128i *)(void *)(p + 16), b);
}
AMPI_AVX2_OP void ampi_avx2_store_halves(char *p, const char *s) {
    ampi_avx2_store_two_halves(p, s);
    ampi_avx2_store_two_halves(p + 32, s + 64);
}
#  define AMPI_PASS AMPI_PASS_VECTOR
#  include AMP_SELF
AMPI_AVX2 static void ampi_avx2_tile_6(size_t kc, const float *a, const float *b, float *c, int first) {
    ampi_avx2_tile(6, kc, a, b, c, first);
}
AMPI_AVX2 static void ampi_avx2_tile_4(size_t kc, const float *a, const float *b, float *c, int first) {
    ampi_avx2_tile(4, kc, a, b, c, first);
}
AMPI_AVX2 static void ampi_avx2_tile_1(size_t kc, const float *a, const float *b, float *c, int first) {
    ampi_avx2_tile(1, kc, a, b, c, first);
}
static void ampi_use_avx2(ampi_kernels *k) {
    ampi_avx2_use(k);
    k->simd = AMP_SIMD_AVX2;
    k->name = "avx2";
    k->mr[0] = 6;
    k->mr[1] = 4;
    k->mr[2] = 1;
    k->nr = 16;
    k->tile[0] = ampi_avx2_tile_6;
    k->tile[1] = ampi_avx2_tile_4;
    k->tile[2] = ampi_avx2_tile_1;
    k->fused = NULL;
}
#  undef AMPI_F
#  undef AMPI_TARGET
#  undef AMPI_WIDTH
#  undef AMPI_MM
#  undef AMPI_SI
#  undef AMPI_REG

