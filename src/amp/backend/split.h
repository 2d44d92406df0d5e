/* ---- weights in 16 + 16 bits, and in 16 + 8 ----
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

/* SPLIT8: w as a number of 24 bits, whose upper 16 are the model copy h.
   It has the exponents of h's format and 8 more bits of mantissa (BF16: 15 in all, FP16: 18), and w is rounded to it as
   ampi_encode rounds, to nearest even or stochastically. h is that rounded once more, to nearest, a tie away from zero;
   the code is what is left, from -128 to 127 in steps of 1/256 of the spacing of h: the lower 8 bits. NaN lives in h
   alone. What FP16 cannot hold, but 24 bits can, is Inf in h and comes back. */
AMP_INLINE uint32_t ampi_split8_round(uint32_t a, amp_dtype t, amp_rounding how, uint32_t r) { /* a magnitude */
    const ampi_format f = ampi_format_of(t);
    const uint32_t bias = (f.emin - 1u) << 23;
    const uint32_t drop = 15u - f.mant;
    const uint32_t half = 1u << (drop - 1u);
    uint32_t more = r >> (32u - drop);
    if (f.emin > 1u && a < f.emin << 23) return ampi_on_grid(a, f.mant + 8u, f.emin, how, r);
    if (how == AMP_NEAREST) more = half - 1u + (a >> drop & 1u);
    return (a - bias + more) >> drop; /* what that gives, too */
}
AMP_INLINE uint32_t amp_split8_pack(float w, amp_dtype t, amp_rounding how, uint32_t r) {
    const uint32_t most = ampi_format_of(t).over << 8;
    const uint32_t u = ampi_bits(w);
    const uint32_t a = u & 0x7fffffffu;
    uint32_t q, h;
    if (a > 0x7f800000u) return ampi_encode(u, t, AMP_NEAREST, 0, 0);
    q = ampi_split8_round(a, t, how, r);
    if (q > most) q = most;
    h = (q + 0x80u) >> 8;
    h |= (u >> 31) << 15;
    return h | (q & 0xffu) << 16;
}
AMP_INLINE float amp_split8_unpack(uint32_t packed, amp_dtype t) {
    const ampi_format f = ampi_format_of(t);
    const uint32_t sign = packed << 16 & 0x80000000u;
    const uint32_t code = packed >> 16 & 0xffu;
    const uint32_t bias = (f.emin - 1u) << 23;
    uint32_t q = (packed & 0x7fffu) << 8;
    float x;
    q += (code ^ 0x80u) - 0x80u;
    if (q >= f.over << 8) return ampi_float(ampi_decode(packed & 0xffffu, t));
    if (f.emin > 1u && q >> (f.mant + 8u) == 0) {
        x = amp_mul((float)(int32_t)q, ampi_float((f.emin - f.mant - 8u) << 23));
        return ampi_float(sign | ampi_bits(x));
    }
    return ampi_float(sign | ((q << (15u - f.mant)) + bias));
}
AMP_INLINE int ampi_has_low(amp_master layout) { return layout != AMP_MASTER_F32 && layout != AMP_MASTER_NONE; }
/* How the low parts of a layout look as an array: patterns of this many bits. */
AMP_INLINE amp_dtype ampi_low_type(amp_master layout) { return layout == AMP_MASTER_SPLIT8 ? AMP_F8E4M3 : AMP_BF16; }

