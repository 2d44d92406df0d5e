/* ---- avx512: F, BW, DQ and VL ---- */
typedef __m512 ampi_avx512_floats;
typedef __m512i ampi_avx512_words, ampi_avx512_words64;
typedef __mmask16 ampi_avx512_mask;
#  define AMPI_AVX512    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#  define AMPI_AVX512_OP AMPI_AVX512 AMPI_ALWAYS
#  define AMPI_F(name)   ampi_avx512_##name
#  define AMPI_TARGET    AMPI_AVX512
#  define AMPI_WIDTH     16u
#  define AMPI_MM(name)  _mm512_##name
#  define AMPI_SI(name)  _mm512##name##_si512
#  define AMPI_REG       "v"
AMPI_AVX512_OP __m512i ampi_avx512_word64(uint64_t x) { return _mm512_set1_epi64((long long)x); }
AMPI_AVX512_OP __m512i ampi_avx512_bits(__m512 x) { return _mm512_castps_si512(x); }
AMPI_AVX512_OP __m512 ampi_avx512_as_floats(__m512i x) { return _mm512_castsi512_ps(x); }
#  define AMPI_PASS AMPI_PASS_X86
#  include AMP_SELF
AMPI_AVX512_OP __m512 ampi_avx512_fma(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
AMPI_AVX512_OP __m512i ampi_avx512_shr(__m512i a, uint32_t n) { /* srli and slli need a literal at -O0 */
    return _mm512_srlv_epi32(a, ampi_avx512_word(n));
}
AMPI_AVX512_OP __m512i ampi_avx512_shl(__m512i a, uint32_t n) { return _mm512_sllv_epi32(a, ampi_avx512_word(n)); }
AMPI_AVX512_OP __mmask16 ampi_avx512_greater(__m512i a, __m512i b) { return _mm512_cmpgt_epi32_mask(a, b); }
AMPI_AVX512_OP __m512 ampi_avx512_larger_abs(__m512 a, __m512 b) {
    __asm__("vrangeps $11, %1, %0, %0" : "+v"(a) : "v"(b)); /* 11: of sizes, with a sign of 0 */
    return a;
}
AMPI_AVX512_OP __mmask16 ampi_avx512_nonzero(__m512 x) {
    __mmask16 r;
    __asm__("vcmpneq_oqps %2, %1, %0" : "=k"(r) : "v"(x), "v"(_mm512_setzero_ps()));
    return r;
}
AMPI_AVX512_OP __mmask16 ampi_avx512_same(__mmask16 mask, __m512 a, __m512 b) {
    __mmask16 r;
    __asm__("vcmpeqps %2, %1, %0%{%3%}" : "=k"(r) : "v"(a), "v"(b), "Yk"(mask));
    return r;
}
AMPI_AVX512_OP __mmask16 ampi_avx512_same16(__mmask16 mask, const void *a, const void *b) {
    __m256i x = _mm256_loadu_si256((const __m256i *)a);
    return _mm256_mask_cmpeq_epi16_mask(mask, x, _mm256_loadu_si256((const __m256i *)b));
}
AMPI_AVX512_OP __m512i ampi_avx512_add_if(__m512i sum, __mmask16 mask) {
    return _mm512_mask_sub_epi32(sum, mask, sum, _mm512_set1_epi32(-1));
}
AMPI_AVX512_OP __m512i ampi_avx512_select(__mmask16 m, __m512i a, __m512i b) { return _mm512_mask_mov_epi32(b, m, a); }
AMPI_AVX512_OP int ampi_avx512_any(__m512i a) { return _mm512_test_epi32_mask(a, a) != 0; }
AMPI_AVX512_OP __m512i ampi_avx512_load16(const void *p) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
}
AMPI_AVX512_OP __m512i ampi_avx512_load8(const void *p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}
AMPI_AVX512_OP void ampi_avx512_store16(void *p, __m512i a, __m512i b) {
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    ampi_avx512_store_words(p, _mm512_permutexvar_epi64(order, _mm512_packus_epi32(a, b)));
}
AMPI_AVX512_OP void ampi_avx512_store8(void *p, __m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i bytes = _mm512_packus_epi16(_mm512_packus_epi32(a, b), _mm512_packus_epi32(c, d));
    ampi_avx512_store_words(p, _mm512_permutexvar_epi32(order, bytes));
}
AMPI_AVX512_OP __m512i ampi_avx512_counters(void) { return _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7); }
AMPI_AVX512_OP void ampi_avx512_done(void) { _mm256_zeroupper(); }
AMPI_AVX512_OP void ampi_avx512_stream64(char *p, const char *b) {
    _mm512_stream_si512((__m512i *)(void *)p, ampi_avx512_load_words(b));
}
AMPI_AVX512_OP __m512i ampi_avx512_from_halves(__m256i h) { return _mm512_castps_si512(_mm512_cvtph_ps(h)); }
AMPI_AVX512_OP __m512i ampi_avx512_load_halves(const void *p) {
    return ampi_avx512_from_halves(_mm256_loadu_si256((const __m256i *)p));
}
AMPI_AVX512_OP __m512i ampi_avx512_load_e5m2(const void *p) {
    __m256i h = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
    return ampi_avx512_from_halves(_mm256_slli_epi16(h, 8));
}
AMPI_AVX512_OP __m512i ampi_avx512_load_e4m3(const void *p) {
    __m256i h = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)), nan;
    h = _mm256_and_si256(_mm256_slli_epi16(h, 7), _mm256_set1_epi16((short)0xbf80));
    nan = _mm256_and_si256(_mm256_add_epi16(h, _mm256_set1_epi16(0x80)), _mm256_set1_epi16(0x4000));
    h = _mm256_or_si256(h, nan);
    return ampi_avx512_bits(ampi_avx512_mul(_mm512_cvtph_ps(h), ampi_avx512_set(256.0f)));
}
AMPI_AVX512_OP void ampi_avx512_store_two_halves(char *p, const char *s) {
    const __mmask16 all = (__mmask16)0xffffu; /* the plain form, as a macro at -O0, has a sign conversion in it */
    __m256i a = _mm512_maskz_cvtps_ph(all, ampi_avx512_as_floats(ampi_avx512_load_words(s)), 0);
    __m256i b = _mm512_maskz_cvtps_ph(all, ampi_avx512_as_floats(ampi_avx512_load_words(s + 64)), 0);
    __asm__("" : "+v"(a));
    __asm__("" : "+v"(b));
    _mm256_storeu_si256((__m256i *)(void *)p, a);
    _mm256_storeu_si256((__m256i *)(void *)(p + 32), b);
}
AMPI_AVX512_OP void ampi_avx512_store_halves(char *p, const char *s) {
    ampi_avx512_store_two_halves(p, s);
    ampi_avx512_store_two_halves(p + 64, s + 128);
}
#  define AMPI_PASS AMPI_PASS_VECTOR
#  include AMP_SELF
/* VCVTNE2PS2BF16 rounds to nearest in any mode, but takes subnormals for 0: a step that holds one (2x - 1 < 2^24 - 1
   unsigned) is done again with integers. */
#  if defined(__clang__) ? __clang_major__ >= 9 : __GNUC__ >= 10
#    define AMPI_HAS_BF16
#    define AMPI_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")))
AMPI_AVX512_BF16 AMPI_ALWAYS __m512i ampi_avx512_less_tiny(__m512i least, __m512i x) {
    return _mm512_min_epu32(least, _mm512_add_epi32(_mm512_add_epi32(x, x), _mm512_set1_epi32(-1)));
}
AMPI_AVX512_BF16 AMPI_ALWAYS __m512i ampi_avx512_to_bf16(__m512i low, __m512i high) {
    __m512i r;
    __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(r) : "v"(high), "v"(low));
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
AMPI_AVX512 static void ampi_avx512_tile_12(size_t kc, const float *a, const float *b, float *c, int first) {
    ampi_avx512_tile(12, kc, a, b, c, first);
}
AMPI_AVX512 static void ampi_avx512_tile_8(size_t kc, const float *a, const float *b, float *c, int first) {
    ampi_avx512_tile(8, kc, a, b, c, first);
}
AMPI_AVX512 static void ampi_avx512_tile_4(size_t kc, const float *a, const float *b, float *c, int first) {
    ampi_avx512_tile(4, kc, a, b, c, first);
}
AMPI_AVX512 static void ampi_avx512_tile_1(size_t kc, const float *a, const float *b, float *c, int first) {
    ampi_avx512_tile(1, kc, a, b, c, first);
}
#  undef AMPI_F
#  undef AMPI_TARGET
#  undef AMPI_WIDTH
#  undef AMPI_MM
#  undef AMPI_SI
#  undef AMPI_REG
#  undef AMPI_HAS_VEX
#  undef AMPI_HAS_SHIFT_EACH
#  undef AMPI_HAS_HALVES
#  undef AMPI_HAS_HALVES_OF_F8
#  undef AMPI_HAS_STREAM
#  ifndef __clang__
#    pragma GCC diagnostic pop
#  endif

/* CPUID and XGETBV ourselves: __builtin_cpu_supports does not know "f16c" in older compilers. */
typedef struct ampi_cpuid {
    amp_simd best;
    int32_t bf16; /* AVX512_BF16 */
    int32_t amd;
} ampi_cpuid;
#  define AMPI_CPUID_AVX2_C   (1u << 27 | 1u << 28 | 1u << 29 | 1u << 12) /* leaf 1, ECX: OSXSAVE AVX F16C FMA */
#  define AMPI_CPUID_AVX2_B   (1u << 5)                                   /* leaf 7, EBX */
#  define AMPI_CPUID_AVX512_B (1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) /* leaf 7, EBX: F DQ BW VL */
static int ampi_has_all(unsigned word, unsigned bits) { return (word & bits) == bits; }
static ampi_cpuid ampi_cpuid_read(void) {
    ampi_cpuid is = {AMP_SIMD_SSE2, 0, 0};
    unsigned a, b, c, d, saved_by_os, high;
    if (!__get_cpuid(0, &a, &b, &c, &d)) return is;
    is.amd = b == 0x68747541u; /* "Auth"enticAMD */
    if (!__get_cpuid(1, &a, &b, &c, &d)) return is;
    if (!ampi_has_all(c, AMPI_CPUID_AVX2_C)) return is;
    __asm__ volatile("xgetbv" : "=a"(saved_by_os), "=d"(high) : "c"(0));
    if (!ampi_has_all(saved_by_os, 0x06u)) return is;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return is;
    if (!ampi_has_all(b, AMPI_CPUID_AVX2_B)) return is;
    is.best = AMP_SIMD_AVX2;
    if (!ampi_has_all(saved_by_os, 0xe6u) || !ampi_has_all(b, AMPI_CPUID_AVX512_B)) return is;
    is.best = AMP_SIMD_AVX512;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) is.bf16 = (int32_t)(a >> 5) & 1;
    return is;
}
static void ampi_use_avx512(ampi_kernels *k, int bf16) {
    ampi_avx512_use(k);
    k->simd = AMP_SIMD_AVX512;
    k->name = "avx512";
    k->mr[0] = 12;
    k->mr[1] = 8;
    k->mr[2] = 4;
    k->mr[3] = 1;
    k->nr = 32;
    k->tile[0] = ampi_avx512_tile_12;
    k->tile[1] = ampi_avx512_tile_8;
    k->tile[2] = ampi_avx512_tile_4;
    k->tile[3] = ampi_avx512_tile_1;
#  ifdef AMPI_HAS_BF16
    if (bf16) k->narrow[AMP_BF16] = ampi_avx512_narrow_bf16_hw;
#  else
    (void)bf16;
#  endif
}
