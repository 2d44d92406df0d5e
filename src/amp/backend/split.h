/* ---- weights in 16 + 16 bits ----
   The model copy h is w rounded to nearest even; a 16-bit remainder r holds the rest. The low half of the result is h,
   the high half r as two's complement.   tests: tests/test_layouts.c, tests/exhaustive.c
   FP16: r = (w - h) in units of 2^(E-25), E the exponent of h (at least -14): |r| <= 2^14, exact for zero and where h
         is a normal half; else within 2^-40 (rounded to nearest even). |w| >= 65520 and NaN live in h alone, as Inf and
         NaN.
   BF16: r = bits(w) - (h << 16): exact, but for a tie that rounds down (low bits exactly 0x8000), which comes back one
         ulp closer to zero. NaN stays NaN. */
AMP_INLINE uint32_t amp_split_pack(float w, amp_dtype t) {
    uint32_t u = ampi_bits(w), h = ampi_encode(u, t, AMP_NEAREST, 0, 0), e, r;
    if (t == AMP_BF16) {
        int32_t d = (int32_t)(u - (h << 16));
        if ((h & 0x7fffu) > 0x7f80u) return h;
        return h | (uint32_t)(d > 32767 ? 32767 : d) << 16;
    }
    if ((h & 0x7c00u) == 0x7c00u) return h;
    e = (h >> 10) & 31u;
    e = e ? e : 1u; /* h is in [2^(e-15), 2^(e-14)): the unit is 2^(e-40) */
    r = ampi_bits(amp_add(
            amp_mul(amp_sub(w, ampi_float(ampi_decode(h, t))), ampi_float((127u + 40u - e) << 23)), 12582912.0f)) -
        0x4b400000u;
    return h | (r << 16);
}
AMP_INLINE float amp_split_unpack(uint32_t packed, amp_dtype t) {
    uint32_t h = packed & 0xffffu, e;
    int32_t r = (int32_t)(packed >> 16) - (packed >> 31 ? 65536 : 0);
    if (t == AMP_BF16) return ampi_float((h & 0x7fffu) > 0x7f80u ? ampi_decode(h, t) : (h << 16) + (uint32_t)r);
    if (r == 0 || (h & 0x7c00u) == 0x7c00u) return ampi_float(ampi_decode(h, t));
    e = (h >> 10) & 31u;
    e = e ? e : 1u;
    return amp_add(ampi_float(ampi_decode(h, t)), amp_mul((float)r, ampi_float((127u - 40u + e) << 23)));
}
/* KAHAN: w = h + c, both BF16, packed the same way. */
AMP_INLINE uint32_t amp_kahan_pack(float w) {
    uint32_t h = ampi_encode(ampi_bits(w), AMP_BF16, AMP_NEAREST, 0, 0);
    if ((h & 0x7f80u) == 0x7f80u) return h;
    return h | ampi_encode(ampi_bits(amp_sub(w, ampi_float(h << 16))), AMP_BF16, AMP_NEAREST, 0, 0) << 16;
}
AMP_INLINE float amp_kahan_unpack(uint32_t packed) { /* c = +-0 adds nothing, so that the sign of a zero weight stays */
    float h = ampi_float(ampi_decode(packed & 0xffffu, AMP_BF16));
    return packed >> 16 << 17 ? amp_add(h, ampi_float(packed & 0xffff0000u)) : h;
}

