/* ==== >>formats ==================================================================================================
   Scalar conversions: inline, pure, integer-only, usable in device code. Every faster path equals them. From float or
   double, rounded once to nearest even. _sat: what is beyond the range becomes the largest finite number instead of Inf
   or NaN. _sr: stochastic, with r uniform in [0, 2^32), e.g. from amp_random(). To float: exact. */

AMP_INLINE amp_f16 amp_f16_from_f32(float x);
AMP_INLINE amp_bf16 amp_bf16_from_f32(float x);
AMP_INLINE amp_f8e4m3 amp_f8e4m3_from_f32(float x);
AMP_INLINE amp_f8e5m2 amp_f8e5m2_from_f32(float x);
AMP_INLINE amp_f8e4m3 amp_f8e4m3_from_f32_sat(float x);
AMP_INLINE amp_f8e5m2 amp_f8e5m2_from_f32_sat(float x);
AMP_INLINE amp_f16 amp_f16_from_f32_sr(float x, uint32_t r);
AMP_INLINE amp_bf16 amp_bf16_from_f32_sr(float x, uint32_t r);
AMP_INLINE amp_f8e4m3 amp_f8e4m3_from_f32_sr(float x, uint32_t r);
AMP_INLINE amp_f8e5m2 amp_f8e5m2_from_f32_sr(float x, uint32_t r);
AMP_INLINE amp_f16 amp_f16_from_f64(double x);
AMP_INLINE amp_bf16 amp_bf16_from_f64(double x);
AMP_INLINE float amp_f32_from_f16(amp_f16 h);
AMP_INLINE float amp_f32_from_bf16(amp_bf16 h);
AMP_INLINE float amp_f32_from_f8e4m3(amp_f8e4m3 h);
AMP_INLINE float amp_f32_from_f8e5m2(amp_f8e5m2 h);
/* Element i of an array of any dtype but AMP_F64; store rounds to nearest even. Any address on the host; on a device
   one that is aligned to the element. They are for a few elements. For whole rows of 16-bit numbers, amp_cast the row
   to float scratch and back, which is several times faster (make bench prints both; F16 is faster with -mf16c). */
AMP_INLINE float amp_load(const void *data, amp_dtype t, size_t i);
AMP_INLINE void amp_store(void *data, amp_dtype t, size_t i, float x);
/* Is x neither Inf nor NaN? Is it NaN? They test the bits: right under -ffast-math, too, unlike isfinite(). */
AMP_INLINE int amp_is_finite(float x);
AMP_INLINE int amp_is_nan(float x);
/* How a number is narrowed. With saturation, finite numbers and Inf beyond the range become the largest finite one
   (OCP's rule); NaN stays NaN. Without, they become Inf, or NaN in E4M3, which has no Inf. */
typedef enum amp_rounding { AMP_NEAREST = 0, AMP_STOCHASTIC } AMP_INT amp_rounding;

/* Counter-based random numbers: the same (seed, stream, counter) gives the same numbers on every backend, in any order.
   Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). amp_random() is word
   index % 4 of block index / 4: one 32-bit number per element. */
AMP_INLINE void amp_philox(uint32_t out[4], uint64_t seed, uint64_t stream, uint64_t counter);
AMP_INLINE uint32_t amp_random(uint64_t seed, uint64_t stream, uint64_t index);

