/* ---- moments in 8 bits (AMP_MOMENT_8BIT) ----
   A block of AMP_MOMENT_BLOCK elements has a scale, its largest magnitude as a normal number, or 0. A code k says which
   share of it an element is: of the second moment (k / 255)^4; of the first, with a sign (0x80), s (s + 1/2) / (3/2),
   s = (k / 127)^2. Rounded stochastically between the neighbours, with 16 bits of amp_random(seed + 1, ...) each: m
   takes the lower half, v the upper one. A v that is not 0 never becomes 0, so it is at least 2^-32 of its block's
   largest, and its root no less than the smallest m: an update is not divided by eps alone. Inf and NaN become the
   largest magnitude. Why these codes: docs/memory.md.
   The scales follow the codes, which begin and end at multiples of 256 bytes.   tests: tests/test_moments.c */
#define AMP_MOMENT_BLOCK       256u
#define AMPI_MOMENT_TOP(which) ((which) ? 255u : 127u)

AMP_INLINE uint64_t ampi_moment_blocks(uint64_t count) { return (count + AMP_MOMENT_BLOCK - 1u) / AMP_MOMENT_BLOCK; }
AMP_INLINE float *ampi_moment_scales(const amp_param_entry *e, uint32_t which) {
    return (float *)(void *)((char *)e->moment[which] + ampi_round256(e->count));
}
/* From the bits of a block's largest magnitude, and back; 0 for 0. */
AMP_INLINE float ampi_moment_scale(uint32_t amax) {
    if (amax == 0) return 0.0f;
    amax = amax < 0x00800000u ? 0x00800000u : amax;
    return ampi_float(amax > 0x7f7fffffu ? 0x7f7fffffu : amax);
}
/* Of a scale as above. Not by ampi_nonzero: for sm_100 nvcc makes a comparison of that here, which may flush. */
AMP_INLINE float ampi_moment_inverse(float scale) { return ampi_bits(scale) != 0 ? amp_div(1.0f, scale) : 0.0f; }

