#elif defined(AMPI_NEON)

/* ---- neon ---- */
#  define AMPI_HAS_SHIFT_EACH
#  define AMPI_HAS_HALVES
typedef float32x4_t ampi_neon_floats;
typedef uint32x4_t ampi_neon_words, ampi_neon_mask;
typedef uint64x2_t ampi_neon_words64;
#  define AMPI_F(name) ampi_neon_##name
#  define AMPI_TARGET
#  define AMPI_WIDTH 4u
AMPI_ALWAYS float32x4_t ampi_neon_guard(float32x4_t x) {
    __asm__("" : "+w"(x));
    return x;
}
AMPI_ALWAYS float32x4_t ampi_neon_set(float x) { return vdupq_n_f32(x); }
AMPI_ALWAYS float32x4_t ampi_neon_load(const float *p) { return vld1q_f32(p); }
AMPI_ALWAYS void ampi_neon_store(float *p, float32x4_t x) { vst1q_f32(p, x); }
AMPI_ALWAYS float32x4_t ampi_neon_add(float32x4_t a, float32x4_t b) { return ampi_neon_guard(vaddq_f32(a, b)); }
AMPI_ALWAYS float32x4_t ampi_neon_sub(float32x4_t a, float32x4_t b) { return ampi_neon_guard(vsubq_f32(a, b)); }
AMPI_ALWAYS float32x4_t ampi_neon_mul(float32x4_t a, float32x4_t b) { return ampi_neon_guard(vmulq_f32(a, b)); }
AMPI_ALWAYS float32x4_t ampi_neon_fma(float32x4_t a, float32x4_t b, float32x4_t c) { return vfmaq_f32(c, a, b); }
AMPI_ALWAYS float32x4_t ampi_neon_fuse(float32x4_t a, float32x4_t b, float32x4_t c) {
    return ampi_neon_guard(vfmaq_f32(c, a, b));
}
AMPI_ALWAYS float32x4_t ampi_neon_div(float32x4_t a, float32x4_t b) {
    float32x4_t r;
    __asm__("fdiv %0.4s, %1.4s, %2.4s" : "=w"(r) : "w"(a), "w"(b));
    return r;
}
AMPI_ALWAYS float32x4_t ampi_neon_larger(float32x4_t a, float32x4_t b) {
    float32x4_t r;
    __asm__("fmax %0.4s, %1.4s, %2.4s" : "=w"(r) : "w"(a), "w"(b));
    return r;
}
AMPI_ALWAYS float32x4_t ampi_neon_smaller(float32x4_t a, float32x4_t b) {
    float32x4_t r;
    __asm__("fmin %0.4s, %1.4s, %2.4s" : "=w"(r) : "w"(a), "w"(b));
    return r;
}
AMPI_ALWAYS float32x4_t ampi_neon_sqrt(float32x4_t a) {
    float32x4_t r;
    __asm__("fsqrt %0.4s, %1.4s" : "=w"(r) : "w"(a));
    return r;
}
AMPI_ALWAYS uint32x4_t ampi_neon_bits(float32x4_t x) { return vreinterpretq_u32_f32(x); }
AMPI_ALWAYS float32x4_t ampi_neon_as_floats(uint32x4_t x) { return vreinterpretq_f32_u32(x); }
AMPI_ALWAYS int32x4_t ampi_neon_as_signed(uint32x4_t x) { return vreinterpretq_s32_u32(x); }
AMPI_ALWAYS uint32x4_t ampi_neon_word(uint32_t x) { return vdupq_n_u32(x); }
AMPI_ALWAYS uint32x4_t ampi_neon_load_words(const void *p) {
    return vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)p));
}
AMPI_ALWAYS void ampi_neon_store_words(void *p, uint32x4_t x) { vst1q_u8((uint8_t *)p, vreinterpretq_u8_u32(x)); }
AMPI_ALWAYS uint32x4_t ampi_neon_and_words(uint32x4_t a, uint32x4_t b) { return vandq_u32(a, b); }
AMPI_ALWAYS uint32x4_t ampi_neon_or_words(uint32x4_t a, uint32x4_t b) { return vorrq_u32(a, b); }
AMPI_ALWAYS uint32x4_t ampi_neon_xor_words(uint32x4_t a, uint32x4_t b) { return veorq_u32(a, b); }
AMPI_ALWAYS uint32x4_t ampi_neon_add_words(uint32x4_t a, uint32x4_t b) { return vaddq_u32(a, b); }
AMPI_ALWAYS uint32x4_t ampi_neon_sub_words(uint32x4_t a, uint32x4_t b) { return vsubq_u32(a, b); }
AMPI_ALWAYS uint32x4_t ampi_neon_shl(uint32x4_t a, uint32_t n) { return vshlq_u32(a, vdupq_n_s32((int32_t)n)); }
AMPI_ALWAYS uint32x4_t ampi_neon_shr(uint32x4_t a, uint32_t n) { /* by a negative number: to the right */
    return vshlq_u32(a, vdupq_n_s32(-(int32_t)n));
}
AMPI_ALWAYS uint32x4_t ampi_neon_shl_each(uint32x4_t a, uint32x4_t n) { return vshlq_u32(a, ampi_neon_as_signed(n)); }
AMPI_ALWAYS uint32x4_t ampi_neon_shr_each(uint32x4_t a, uint32x4_t n) {
    return vshlq_u32(a, vnegq_s32(ampi_neon_as_signed(n)));
}
AMPI_ALWAYS uint32x4_t ampi_neon_greater(uint32x4_t a, uint32x4_t b) {
    return vcgtq_s32(ampi_neon_as_signed(a), ampi_neon_as_signed(b));
}
AMPI_ALWAYS float32x4_t ampi_neon_larger_abs(float32x4_t a, float32x4_t b) {
    __asm__("fmaxnm %0.4s, %0.4s, %1.4s" : "+w"(a) : "w"(vabsq_f32(b)));
    return a;
}
AMPI_ALWAYS uint32x4_t ampi_neon_nonzero(float32x4_t x) {
    uint32x4_t r;
    __asm__("facgt %0.4s, %1.4s, %2.4s" : "=w"(r) : "w"(x), "w"(vdupq_n_f32(0.0f)));
    return r;
}
AMPI_ALWAYS uint32x4_t ampi_neon_same(uint32x4_t mask, float32x4_t a, float32x4_t b) {
    uint32x4_t r;
    __asm__("fcmeq %0.4s, %1.4s, %2.4s" : "=w"(r) : "w"(a), "w"(b));
    return vandq_u32(mask, r);
}
AMPI_ALWAYS uint32x4_t ampi_neon_same16(uint32x4_t mask, const void *a, const void *b) {
    uint16x4_t x = vreinterpret_u16_u8(vld1_u8((const uint8_t *)a));
    uint16x4_t y = vreinterpret_u16_u8(vld1_u8((const uint8_t *)b));
    return vandq_u32(mask, vreinterpretq_u32_s32(vmovl_s16(vreinterpret_s16_u16(vceq_u16(x, y)))));
}
AMPI_ALWAYS uint32x4_t ampi_neon_add_if(uint32x4_t sum, uint32x4_t mask) { return vsubq_u32(sum, mask); }
AMPI_ALWAYS uint32x4_t ampi_neon_min(uint32x4_t a, uint32x4_t b) {
    return vreinterpretq_u32_s32(vminq_s32(ampi_neon_as_signed(a), ampi_neon_as_signed(b)));
}
AMPI_ALWAYS uint32x4_t ampi_neon_max(uint32x4_t a, uint32x4_t b) {
    return vreinterpretq_u32_s32(vmaxq_s32(ampi_neon_as_signed(a), ampi_neon_as_signed(b)));
}
AMPI_ALWAYS uint32x4_t ampi_neon_select(uint32x4_t m, uint32x4_t a, uint32x4_t b) { return vbslq_u32(m, a, b); }
AMPI_ALWAYS int ampi_neon_any(uint32x4_t a) { return vmaxvq_u32(a) != 0; }
AMPI_ALWAYS uint32x4_t ampi_neon_load16(const void *p) {
    return vmovl_u16(vreinterpret_u16_u8(vld1_u8((const uint8_t *)p)));
}
AMPI_ALWAYS uint32x4_t ampi_neon_load8(const void *p) {
    uint32_t x;
    memcpy(&x, p, 4);
    return vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(x)))));
}
AMPI_ALWAYS uint16x8_t ampi_neon_low16(uint32x4_t a, uint32x4_t b) { return vcombine_u16(vmovn_u32(a), vmovn_u32(b)); }
AMPI_ALWAYS void ampi_neon_store16(void *p, uint32x4_t a, uint32x4_t b) {
    vst1q_u8((uint8_t *)p, vreinterpretq_u8_u16(ampi_neon_low16(a, b)));
}
AMPI_ALWAYS void ampi_neon_store8(void *p, uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d) {
    vst1q_u8((uint8_t *)p, vcombine_u8(vmovn_u16(ampi_neon_low16(a, b)), vmovn_u16(ampi_neon_low16(c, d))));
}
AMPI_ALWAYS uint64x2_t ampi_neon_word64(uint64_t x) { return vdupq_n_u64(x); }
AMPI_ALWAYS uint64x2_t ampi_neon_add64(uint64x2_t a, uint64x2_t b) { return vaddq_u64(a, b); }
AMPI_ALWAYS uint64x2_t ampi_neon_xor64(uint64x2_t a, uint64x2_t b) { return veorq_u64(a, b); }
AMPI_ALWAYS uint64x2_t ampi_neon_mul32(uint64x2_t a, uint64x2_t b) { return vmull_u32(vmovn_u64(a), vmovn_u64(b)); }
AMPI_ALWAYS uint64x2_t ampi_neon_high32(uint64x2_t a) { return vshrq_n_u64(a, 32); }
AMPI_ALWAYS uint64x2_t ampi_neon_join32(uint64x2_t low, uint64x2_t high) { return vsliq_n_u64(low, high, 32); }
AMPI_ALWAYS uint64x2_t ampi_neon_even64(uint64x2_t a, uint64x2_t b) { return vtrn1q_u64(a, b); }
AMPI_ALWAYS uint64x2_t ampi_neon_odd64(uint64x2_t a, uint64x2_t b) { return vtrn2q_u64(a, b); }
AMPI_ALWAYS uint64x2_t ampi_neon_counters(void) { return vcombine_u64(vcreate_u64(0), vcreate_u64(1)); }
AMPI_ALWAYS void ampi_neon_store64(void *p, uint64x2_t x) { vst1q_u8((uint8_t *)p, vreinterpretq_u8_u64(x)); }
AMPI_ALWAYS void ampi_neon_done(void) {}
AMPI_ALWAYS uint32x4_t ampi_neon_load_halves(const void *p) {
    return ampi_neon_bits(vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8((const uint8_t *)p))));
}
AMPI_ALWAYS void ampi_neon_store_halves(char *d, const char *s) {
    uint32_t k;
    for (k = 0; k < 4; k++) {
        float16x4_t h = vcvt_f16_f32(ampi_neon_as_floats(ampi_neon_load_words(s + 16 * k)));
        vst1_u8((uint8_t *)d + 8 * k, vreinterpret_u8_f16(h));
    }
}
#  define AMPI_PASS  AMPI_PASS_VECTOR
#  include AMP_SELF
static void ampi_neon_tile_12(size_t kc, const float *a, const float *b, float *c, int first) {
    ampi_neon_tile(12, kc, a, b, c, first);
}
static void ampi_neon_tile_4(size_t kc, const float *a, const float *b, float *c, int first) {
    ampi_neon_tile(4, kc, a, b, c, first);
}
static void ampi_neon_tile_1(size_t kc, const float *a, const float *b, float *c, int first) {
    ampi_neon_tile(1, kc, a, b, c, first);
}
static void ampi_use_neon(ampi_kernels *k) {
    ampi_neon_use(k);
    k->simd = AMP_SIMD_NEON;
    k->name = "neon";
    k->mr[0] = 12;
    k->mr[1] = 4;
    k->mr[2] = 1;
    k->nr = 8;
    k->tile[0] = ampi_neon_tile_12;
    k->tile[1] = ampi_neon_tile_4;
    k->tile[2] = ampi_neon_tile_1;
    k->fused = NULL;
}
#  undef AMPI_F
#  undef AMPI_TARGET
#  undef AMPI_WIDTH
#  undef AMPI_HAS_SHIFT_EACH
#  undef AMPI_HAS_HALVES
#endif
