/* ---- bytes of files: little-endian numbers and the checksum.   tests: tests/test_state.c, tests/fuzz_state.c ---- */

AMP_INLINE uint64_t ampi_get(const uint8_t *b, int bytes) {
    uint64_t x = 0;
    int i;
    for (i = 0; i < bytes; i++)
        x |= (uint64_t)b[i] << (8 * i);
    return x;
}
/* The checksum of state and plan files: XXH64 with seed 0, made from its specification (doc/xxhash_spec.md of
   github.com/Cyan4973/xxHash). Bytes may come in pieces of any size. */
#define AMPI_XXH_1 0x9e3779b185ebca87u
#define AMPI_XXH_2 0xc2b2ae3d27d4eb4fu
#define AMPI_XXH_3 0x165667b19e3779f9u
#define AMPI_XXH_4 0x85ebca77c2b2ae63u
#define AMPI_XXH_5 0x27d4eb2f165667c5u
typedef struct ampi_xxh {
    uint64_t lane[4], bytes;
    uint8_t rest[32]; /* bytes % 32 of them wait for a full stripe */
} ampi_xxh;
AMP_INLINE uint64_t ampi_word(const uint8_t *b) { /* little-endian; compilers make one load of it */
    uint64_t low = b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24;
    return low | (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}
AMP_INLINE uint64_t ampi_rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }
AMP_INLINE uint64_t ampi_xxh_round(uint64_t lane, uint64_t word) {
    return ampi_rotate(lane + word * AMPI_XXH_2, 31) * AMPI_XXH_1;
}
AMP_INLINE void ampi_xxh_stripe(ampi_xxh *h, const uint8_t *b) {
    int i;
    for (i = 0; i < 4; i++)
        h->lane[i] = ampi_xxh_round(h->lane[i], ampi_word(b + 8 * i));
}
AMP_INLINE ampi_xxh ampi_xxh_begin(void) {
    ampi_xxh h = AMP_ZERO;
    h.lane[0] = AMPI_XXH_1 + AMPI_XXH_2;
    h.lane[1] = AMPI_XXH_2;
    h.lane[3] = 0u - AMPI_XXH_1;
    return h;
}
AMP_INLINE void ampi_xxh_add(ampi_xxh *h, const void *data, size_t n) {
    const uint8_t *b = (const uint8_t *)data;
    size_t held = (size_t)(h->bytes % 32u), i = 0;
    h->bytes += n;
    if (held) {
        i = n < 32 - held ? n : 32 - held;
        memcpy(h->rest + held, b, i);
        if (held + i < 32) return;
        ampi_xxh_stripe(h, h->rest);
    }
    for (; n - i >= 32; i += 32)
        ampi_xxh_stripe(h, b + i);
    if (n > i) memcpy(h->rest, b + i, n - i);
}
AMP_INLINE uint64_t ampi_xxh_of_lanes(const ampi_xxh *h) {
    uint64_t x = ampi_rotate(h->lane[0], 1) + ampi_rotate(h->lane[1], 7);
    int i;
    x += ampi_rotate(h->lane[2], 12) + ampi_rotate(h->lane[3], 18);
    for (i = 0; i < 4; i++)
        x = (x ^ ampi_xxh_round(0, h->lane[i])) * AMPI_XXH_1 + AMPI_XXH_4;
    return x;
}
AMP_INLINE uint64_t ampi_xxh_end(const ampi_xxh *h) {
    size_t n = (size_t)(h->bytes % 32u), i = 0;
    uint64_t x = (h->bytes < 32 ? AMPI_XXH_5 : ampi_xxh_of_lanes(h)) + h->bytes;
    for (; n - i >= 8; i += 8)
        x = ampi_rotate(x ^ ampi_xxh_round(0, ampi_word(h->rest + i)), 27) * AMPI_XXH_1 + AMPI_XXH_4;
    for (; n - i >= 4; i += 4)
        x = ampi_rotate(x ^ ampi_get(h->rest + i, 4) * AMPI_XXH_1, 23) * AMPI_XXH_2 + AMPI_XXH_3;
    for (; i < n; i++)
        x = ampi_rotate(x ^ h->rest[i] * AMPI_XXH_5, 11) * AMPI_XXH_1;
    x = (x ^ x >> 33) * AMPI_XXH_2;
    x = (x ^ x >> 29) * AMPI_XXH_3;
    return x ^ x >> 32;
}
/* Writes a file that takes the place of `path` whole, durably and at once, or not at all: see >>state. */
AMP_API amp_status amp_write_file(amp_ctx *ctx, const char *path, const void *data, size_t bytes);

/* Sizes in messages: "%llu", AMPI_ULL(n). (unsigned long has 32 bits on Win64.) */
#define AMPI_ULL(x) ((unsigned long long)(x))

