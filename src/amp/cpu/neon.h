
/* ---- neon.   tests: as sse2's, on AArch64 (tests/matrix.sh) ---- */
#ifdef AMPI_NEON
#  define AMPI_F(name) ampi_neon_##name
#  define AMPI_TARGET
#  define AMPI_WIDTH    4u
#  define AMPI_TILES(X) X(12) X(4) X(1)
#  define AMPI_REG      "w"
#  define AMPI_ASM1(op) "f" op " %0.4s, %1.4s"
#  define AMPI_ASM2(op) "f" op " %0.4s, %1.4s, %2.4s"
#  define AMPI_FIRST    "w"
#  define AMPI_EQUAL    "cmeq"
#  define AMPI_HAS_FMA
#  define AMPI_HAS_SHIFT_EACH
#  define AMPI_HAS_HALVES
typedef float32x4_t ampi_neon_floats;
typedef uint32x4_t ampi_neon_words, ampi_neon_mask;
typedef uint64x2_t ampi_neon_words64;
typedef float16x4_t ampi_neon_halves;
#  define AMPI_PASS AMPI_PASS_ALIKE
#  include AMP_SELF
/* clang-format off */
AMPI_OP float32x4_t ampi_neon_fma(float32x4_t a, float32x4_t b, float32x4_t c) { return vfmaq_f32(c, a, b); }
AMPI_OP uint32x4_t  ampi_neon_select(uint32x4_t m, uint32x4_t a, uint32x4_t b) { return vbslq_u32(m, a, b); }

AMPI_OP float32x4_t ampi_neon_set(float x)                         { return vdupq_n_f32(x); }
AMPI_OP uint32x4_t  ampi_neon_word(uint32_t x)                     { return vdupq_n_u32(x); }
AMPI_OP uint32x4_t  ampi_neon_shl_each(uint32x4_t a, uint32x4_t n) { return vshlq_u32(a, (int32x4_t)n); }
AMPI_OP int         ampi_neon_any(uint32x4_t a)                    { return vmaxvq_u32(a) != 0; }
AMPI_OP uint64x2_t  ampi_neon_word64(uint64_t x)                   { return vdupq_n_u64(x); }
AMPI_OP uint64x2_t  ampi_neon_mul32(uint64x2_t a, uint64x2_t b)    { return vmull_u32(vmovn_u64(a), vmovn_u64(b)); }
AMPI_OP uint64x2_t  ampi_neon_even64(uint64x2_t a, uint64x2_t b)   { return vtrn1q_u64(a, b); }
AMPI_OP uint64x2_t  ampi_neon_odd64(uint64x2_t a, uint64x2_t b)    { return vtrn2q_u64(a, b); }
AMPI_OP uint8x8_t   ampi_neon_low64(const void *p)                 { return vld1_u8((const uint8_t *)p); }
AMPI_OP uint16x8_t  ampi_neon_low16(uint32x4_t a, uint32x4_t b)    { return vcombine_u16(vmovn_u32(a), vmovn_u32(b)); }
AMPI_OP void        ampi_neon_done(void)                           {}
/* clang-format on */
AMPI_OP uint64x2_t ampi_neon_counters(void) { return vcombine_u64(vcreate_u64(0), vcreate_u64(1)); }
AMPI_OP float32x4_t ampi_neon_fuse(float32x4_t a, float32x4_t b, float32x4_t c) {
    return ampi_neon_guard(vfmaq_f32(c, a, b));
}
AMPI_OP uint32x4_t ampi_neon_shr_each(uint32x4_t a, uint32x4_t n) { /* by a negative number: to the right */
    return vshlq_u32(a, vnegq_s32((int32x4_t)n));
}
AMPI_OP uint32x4_t ampi_neon_load_upper(const void *p) {
    return vshll_n_u16(vreinterpret_u16_u8(ampi_neon_low64(p)), 16);
}
AMPI_OP uint32x4_t ampi_neon_load16(const void *p) { return vmovl_u16(vreinterpret_u16_u8(ampi_neon_low64(p))); }
AMPI_OP uint32x4_t ampi_neon_min(uint32x4_t a, uint32x4_t b) {
    return (uint32x4_t)vminq_s32((int32x4_t)a, (int32x4_t)b);
}
AMPI_OP uint32x4_t ampi_neon_max(uint32x4_t a, uint32x4_t b) {
    return (uint32x4_t)vmaxq_s32((int32x4_t)a, (int32x4_t)b);
}
AMPI_OP float32x4_t ampi_neon_larger_abs(float32x4_t a, float32x4_t b) {
    __asm__("fmaxnm %0.4s, %0.4s, %1.4s" : "+w"(a) : "w"(vabsq_f32(b)));
    return a;
}
AMPI_OP uint32x4_t ampi_neon_nonzero(float32x4_t x) {
    uint32x4_t r;
    __asm__("facgt %0.4s, %1.4s, %2.4s" : "=w"(r) : "w"(x), "w"(vdupq_n_f32(0.0f)));
    return r;
}
AMPI_OP uint32x4_t ampi_neon_same16(uint32x4_t mask, const void *a, const void *b) {
    uint16x4_t x = vreinterpret_u16_u8(ampi_neon_low64(a)), y = vreinterpret_u16_u8(ampi_neon_low64(b));
    return mask & (uint32x4_t)vmovl_s16((int16x4_t)vceq_u16(x, y));
}
AMPI_OP uint32x4_t ampi_neon_load8(const void *p) {
    uint32_t x;
    memcpy(&x, p, 4);
    return vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(x)))));
}
AMPI_OP void ampi_neon_store16(void *p, uint32x4_t a, uint32x4_t b) {
    vst1q_u8((uint8_t *)p, vreinterpretq_u8_u16(ampi_neon_low16(a, b)));
}
AMPI_OP void ampi_neon_store8(void *p, uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d) {
    vst1q_u8((uint8_t *)p, vcombine_u8(vmovn_u16(ampi_neon_low16(a, b)), vmovn_u16(ampi_neon_low16(c, d))));
}
AMPI_OP uint32x4_t ampi_neon_from_halves(float16x4_t h) { return (uint32x4_t)vcvt_f32_f16(h); }
AMPI_OP float16x4_t ampi_neon_to_halves(uint32x4_t x) { return vcvt_f16_f32((float32x4_t)x); }
#  define AMPI_PASS AMPI_PASS_VECTOR
#  include AMP_SELF
#endif
