/* ---- rounding eight floats to patterns, to nearest and stochastically, and the random numbers for that ----
   tests: tests/test_formats.c, tests/test_arrays.c, tests/test_layouts.c */

/* A float below 32,768 to a half, stochastically: in steps of the half, |x| is q + F; F's 32 bits are added to r, whose
   carry goes into q. All of it is exact; see ampi_rounded. */
AMPI_K uint32_t ampi_k_drawn_half(uint32_t x, uint32_t r) {
    uint32_t a = x & 0x7fffffffu, binade = (a > 0x38800000u ? a : 0x38800000u) & 0x7f800000u, q;
    float steps = amp_mul(ampi_float(a), ampi_float(0x84000000u - binade)); /* times 2^10 / binade */
    float whole = AMP_FLOOR(steps);
    uint64_t sum = (uint64_t)AMP_TO_U32(amp_mul(amp_sub(steps, whole), 4294967296.0f)) + r;
    q = AMP_TO_U32(whole) + (uint32_t)(sum >> 32) + (binade >> 13) - 0x1c400u;
    return (x >> 16 & 0x8000u) | q;
}
/* Eight float bits to patterns. To nearest, the quick way: into words as they will lie in memory; 0 where it is wrong,
   which is seldom: NaN, Inf, overflow. */
AMPI_K int ampi_k_quick_words(uint32_t w[4], const uint32_t x[8], amp_dtype t) {
    uint32_t k;
    if (amp_dtype_size(t) == 1u) {
        AMP_UNROLL
        for (k = 0; k < 2u; k++)
            w[k] = AMP_TO_F8(x + 4 * k, t);
        return ampi_k_largest8(x) < ampi_format_of(t).limit;
    }
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        if (t == AMP_F16) w[k] = AMP_TO_HALVES(x[2 * k], x[2 * k + 1]);
        if (t == AMP_BF16) w[k] = AMP_TO_BF16S(x[2 * k], x[2 * k + 1]);
    }
    return (ampi_k_odd(w[0], w[1], t) | ampi_k_odd(w[2], w[3], t)) == 0;
}
AMPI_K void ampi_k_exact_words(
    uint32_t w[4], const uint32_t x[8], amp_dtype t, amp_rounding how, const uint32_t r[8], int saturate) {
    const uint32_t each = amp_dtype_size(t) == 1u ? 4u : 2u;
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u / each; k++)
        w[k] = 0;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        w[k / each] |= ampi_encode(x[k], t, how, r[k], saturate) << (32u / each * (k % each));
}
/* Stochastic, the quick way, for 16 bits, of the first n; 0 where it may be wrong: NaN, Inf, the last binade, which the
   sum of squares shows, for none takes from another. Of BF16 the fraction is what is cut off, so it is added where it
   lies. */
AMPI_K int ampi_k_drawn_words(uint32_t w[4], const uint32_t x[8], amp_dtype t, const uint32_t r[8], uint32_t n) {
    const uint32_t limit = t == AMP_BF16 ? 0x7f800000u : 0x4e800000u; /* Inf; 32,768 squared */
    uint32_t k;
    float sum = 0.0f;
    AMP_UNROLL
    for (k = 0; k < n; k++)
        sum = AMP_FMA(ampi_float(x[k]), ampi_float(x[k]), sum);
    AMP_UNROLL
    for (k = 0; k < n / 2u; k++) {
        uint32_t a = x[2u * k], b = x[2u * k + 1u];
        if (t == AMP_BF16)
            w[k] = ((a + (r[2u * k] >> 16)) >> 16) | ((b + (r[2u * k + 1u] >> 16)) & 0xffff0000u);
        else
            w[k] = ampi_k_drawn_half(a, r[2u * k]) | ampi_k_drawn_half(b, r[2u * k + 1u]) << 16;
    }
    return ampi_bits(sum) < limit;
}
AMPI_K int ampi_k_short_words(uint32_t w[4], const uint32_t x[8], amp_dtype t, amp_rounding how, const uint32_t r[8]) {
    if (how == AMP_NEAREST) return ampi_k_quick_words(w, x, t);
    return amp_dtype_size(t) == 2u && ampi_k_drawn_words(w, x, t, r, 8);
}
#define AMPI_FORMAT_PATTERN8(T, ...) \
case AMP_##T: \
    if (!ampi_k_short_words(w, x, AMP_##T, how, r)) ampi_k_exact_words(w, x, AMP_##T, how, r, saturate); \
    break;
AMPI_K void ampi_k_pattern8(uint32_t x[8], amp_dtype t, amp_rounding how, const uint32_t r[8], int saturate) {
    uint32_t w[4] = {0, 0, 0, 0}, k;
    switch (t) {
        AMPI_FORMATS(AMPI_FORMAT_PATTERN8)
    default: return;
    }
    if (amp_dtype_size(t) == 2u) {
        AMP_UNROLL
        for (k = 0; k < 4u; k++)
            ampi_k_unpack2(x + 2u * k, w[k]);
    } else {
        ampi_k_unpack4(x, w[0]);
        ampi_k_unpack4(x + 4, w[1]);
    }
}
AMPI_K void ampi_k_nearest8(uint32_t x[8], amp_dtype t) {
    const uint32_t none[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ampi_k_pattern8(x, t, AMP_NEAREST, none, 0);
}
/* The keys of amp_philox's rounds: made once, by the host where it knows the seed. */
typedef struct ampi_k_keys { uint32_t of[20]; } ampi_k_keys;
AMP_INLINE ampi_k_keys ampi_k_keys_of(uint64_t seed) {
    ampi_k_keys keys;
    uint32_t k;
    for (k = 0; k < 10u; k++) {
        keys.of[2u * k] = (uint32_t)seed + k * 0x9E3779B9u;
        keys.of[2u * k + 1u] = (uint32_t)(seed >> 32) + k * 0xBB67AE85u;
    }
    return keys;
}
AMPI_K void ampi_k_philox_begin(uint32_t c[4], uint64_t stream, uint64_t counter) {
    c[0] = (uint32_t)counter;
    c[1] = (uint32_t)(counter >> 32);
    c[2] = (uint32_t)stream;
    c[3] = (uint32_t)(stream >> 32);
}
AMPI_K void ampi_k_philox_round(uint32_t c[4], uint32_t key0, uint32_t key1) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
    c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ key0;
    c[1] = (uint32_t)p1;
    c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ key1;
    c[3] = (uint32_t)p0;
}
AMPI_K void ampi_k_philox(uint32_t c[4], const ampi_k_keys *keys, uint64_t stream, uint64_t counter) {
    uint32_t k;
    ampi_k_philox_begin(c, stream, counter);
    AMP_UNROLL
    for (k = 0; k < 20u; k += 2u)
        ampi_k_philox_round(c, keys->of[k], keys->of[k + 1u]);
}
/* Where the seed is known on the device only, the keys are in shared memory: those of two rounds come in one load. */
#define AMPI_KEYS 5u /* loads */
AMPI_K ampi_k_u4 ampi_k_two_keys(uint64_t seed, uint32_t i) {
    ampi_k_u4 key;
    key.x = (uint32_t)seed + 2u * i * 0x9E3779B9u;
    key.y = (uint32_t)(seed >> 32) + 2u * i * 0xBB67AE85u;
    key.z = key.x + 0x9E3779B9u;
    key.w = key.y + 0xBB67AE85u;
    return key;
}
/* amp_random of four and of eight in a row; index: a multiple of 4 */
AMPI_K void ampi_k_draw4(uint32_t r[4], const ampi_k_u4 *keys, uint64_t stream, uint64_t index) {
    uint32_t k;
    ampi_k_philox_begin(r, stream, index >> 2);
    AMP_UNROLL
    for (k = 0; k < AMPI_KEYS; k++) {
        ampi_k_u4 key = keys[k];
        ampi_k_philox_round(r, key.x, key.y);
        ampi_k_philox_round(r, key.z, key.w);
    }
}
AMPI_K void ampi_k_draw8(uint32_t r[8], const ampi_k_u4 *keys, uint64_t stream, uint64_t index) {
    uint32_t k;
    ampi_k_philox_begin(r, stream, index >> 2);
    ampi_k_philox_begin(r + 4, stream, (index >> 2) + 1u);
    AMP_UNROLL
    for (k = 0; k < AMPI_KEYS; k++) {
        ampi_k_u4 key = keys[k];
        ampi_k_philox_round(r, key.x, key.y);
        ampi_k_philox_round(r + 4, key.x, key.y);
        ampi_k_philox_round(r, key.z, key.w);
        ampi_k_philox_round(r + 4, key.z, key.w);
    }
}
/* amp_random of eight in a row; keys: of the seed */
AMPI_K void ampi_k_random8(uint32_t r[8], const ampi_k_keys *keys, uint64_t stream, uint64_t index) {
    uint32_t w[12], k;
    ampi_k_philox(w, keys, stream, index >> 2);
    ampi_k_philox(w + 4, keys, stream, (index + 4u) >> 2); /* indices wrap at 2^64, blocks at 2^62 */
    if (index & 3u) {
        ampi_k_philox(w + 8, keys, stream, (index + 8u) >> 2);
        AMP_UNROLL
        for (k = 0; k < 10u; k++)
            w[k] = index & 2u ? w[k + 2u] : w[k];
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            w[k] = index & 1u ? w[k + 1u] : w[k];
    }
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        r[k] = w[k];
}

