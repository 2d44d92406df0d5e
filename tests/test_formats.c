/* test_formats.c - statuses, storage formats, scalar conversions, random numbers, exp / log / GELU.
   Guards: >>status, >>formats.

   Every conversion is compared with ref.h, which rounds by looking numbers up in the table of all numbers of the
   format. */
#include "ref.h"

static const amp_dtype small[4] = {AMP_F16, AMP_BF16, AMP_F8E4M3, AMP_F8E5M2};

static uint32_t encode(float x, amp_dtype t, int saturate) { /* through the public names where there are any */
    if (t == AMP_F16 && !saturate) return amp_f16_from_f32(x).bits;
    if (t == AMP_BF16 && !saturate) return amp_bf16_from_f32(x).bits;
    if (t == AMP_F8E4M3) return saturate ? amp_f8e4m3_from_f32_sat(x).bits : amp_f8e4m3_from_f32(x).bits;
    if (t == AMP_F8E5M2) return saturate ? amp_f8e5m2_from_f32_sat(x).bits : amp_f8e5m2_from_f32(x).bits;
    return ampi_encode(ref_f32_bits(x), t, AMP_NEAREST, 0, saturate);
}

static uint32_t encode_sr(float x, amp_dtype t, uint32_t r) {
    if (t == AMP_F16) return amp_f16_from_f32_sr(x, r).bits;
    if (t == AMP_BF16) return amp_bf16_from_f32_sr(x, r).bits;
    if (t == AMP_F8E4M3) return amp_f8e4m3_from_f32_sr(x, r).bits;
    return amp_f8e5m2_from_f32_sr(x, r).bits;
}

static float decode(uint32_t b, amp_dtype t) {
    amp_f16 f16;
    amp_bf16 bf16;
    amp_f8e4m3 e4m3;
    amp_f8e5m2 e5m2;
    f16.bits = bf16.bits = (uint16_t)b;
    e4m3.bits = e5m2.bits = (uint8_t)b;
    if (t == AMP_F16) return amp_f32_from_f16(f16);
    if (t == AMP_BF16) return amp_f32_from_bf16(bf16);
    if (t == AMP_F8E4M3) return amp_f32_from_f8e4m3(e4m3);
    return amp_f32_from_f8e5m2(e5m2);
}

static void check_encode(t_run *t, float x, amp_dtype type) {
    int sat;
    for (sat = 0; sat < 2; sat++) {
        uint32_t got = encode(x, type, sat), want = ref_encode(ref_f32_as_f64(x), type, sat);
        t_check(t, got == want, __FILE__, __LINE__, "%s from %08x%s is %x, should be %x", amp_dtype_name(type),
            ref_f32_bits(x), sat ? " saturating" : "", got, want);
    }
}

static void check_encode_f64(t_run *t, double x) {
    uint32_t got = amp_f16_from_f64(x).bits, want = ref_encode(x, AMP_F16, 0);
    t_check(t, got == want, __FILE__, __LINE__, "f16 from %a is %x, should be %x", x, got, want);
    got = amp_bf16_from_f64(x).bits;
    want = ref_encode(x, AMP_BF16, 0);
    t_check(t, got == want, __FILE__, __LINE__, "bf16 from %a is %x, should be %x", x, got, want);
}

/* ---- status, names, small helpers ---- */

static void status_texts(t_run *t) {
    static const amp_status all[] = {
#define X(name, value, text) name,
        AMP_STATUS_LIST(X)
#undef X
    };
    size_t i, k, n = sizeof all / sizeof all[0];
    CHECK_EQ(n, 14);
    for (i = 0; i < n; i++) {
        CHECK_EQ(all[i], -(int)i);
        CHECK(amp_strerror(all[i]) != NULL && strlen(amp_strerror(all[i])) > 3);
        for (k = 0; k < i; k++)
            CHECK(strcmp(amp_strerror(all[i]), amp_strerror(all[k])) != 0);
    }
    CHECK(strcmp(amp_strerror(AMP_OK), "success") == 0);
    CHECK(amp_strerror((amp_status)1) != NULL);
    CHECK(amp_strerror((amp_status)-1000) != NULL);
    CHECK(amp_strerror(AMP_STATUS_FORCE_INT) != NULL);
    CHECK(strlen(amp_strerror((amp_status)-1000)) > 3);
    CHECK_EQ(amp_version(), AMP_VERSION);
    CHECK_EQ(AMP_VERSION, AMP_VERSION_MAJOR * 10000 + AMP_VERSION_MINOR * 100 + AMP_VERSION_PATCH);
}

static void names_and_sizes(t_run *t) {
    static const size_t size[] = {0, 4, 2, 2, 1, 1, 0};
    amp_array a;
    float x[3];
    int i, k;
    CHECK_EQ(AMP_AUTO, 0);
    CHECK_EQ(AMP_DTYPE_COUNT, 6);
    for (i = 0; i <= (int)AMP_DTYPE_COUNT; i++)
        CHECK_EQ(amp_dtype_size((amp_dtype)i), size[i]);
    for (i = 1; i < (int)AMP_DTYPE_COUNT; i++)
        for (k = 0; k < i; k++)
            CHECK(strcmp(amp_dtype_name((amp_dtype)i), amp_dtype_name((amp_dtype)k)) != 0);
    CHECK(strcmp(amp_dtype_name(AMP_F32), "f32") == 0);
    CHECK(strcmp(amp_dtype_name(AMP_F16), "f16") == 0);
    CHECK(amp_dtype_name(AMP_DTYPE_COUNT) != NULL);
    CHECK(amp_dtype_name((amp_dtype)7) != NULL);
    CHECK(strcmp(amp_outcome_name(AMP_STEPPED), "stepped") == 0);
    for (i = 0; i <= (int)AMP_SKIPPED_OVERFLOW; i++)
        for (k = 0; k < i; k++)
            CHECK(strcmp(amp_outcome_name((amp_outcome)i), amp_outcome_name((amp_outcome)k)) != 0);
    CHECK(strstr(amp_outcome_name(AMP_SKIPPED_INF), "inf") != NULL);
    CHECK(amp_outcome_name((amp_outcome)7) != NULL);
    CHECK_EQ(sizeof(amp_f16), 2);
    CHECK_EQ(sizeof(amp_bf16), 2);
    CHECK_EQ(sizeof(amp_f8e4m3), 1);
    CHECK_EQ(sizeof(amp_f8e5m2), 1);
    a = amp_arr(x, AMP_F32);
    CHECK(a.data == (void *)x && a.dtype == AMP_F32 && a.flags == 0 && a.count == 0);
    a = amp_arrn(x, AMP_BF16, 3);
    CHECK(a.data == (void *)x && a.dtype == AMP_BF16 && a.flags == 0 && a.count == 3);
}

static void finite_tests(t_run *t) {
    static const struct {
        uint32_t bits;
        int finite, nan;
    } c[] = {
        {0, 1, 0},
        {0x80000000, 1, 0},
        {1, 1, 0},
        {0x7f7fffff, 1, 0},
        {0xff7fffff, 1, 0},
        {0x7f800000, 0, 0},
        {0xff800000, 0, 0},
        {0x7f800001, 0, 1},
        {0x7fc00000, 0, 1},
        {0xffffffff, 0, 1},
    };
    size_t i;
    for (i = 0; i < sizeof c / sizeof c[0]; i++) {
        t_note(t, "%08x", c[i].bits);
        CHECK_EQ(amp_is_finite(ref_f32(c[i].bits)) != 0, c[i].finite);
        CHECK_EQ(amp_is_nan(ref_f32(c[i].bits)) != 0, c[i].nan);
    }
}

static uint32_t bits_at(const unsigned char *p, size_t size) {
    uint32_t u32 = 0;
    uint16_t u16 = 0;
    if (size == 1) return *p;
    memcpy(size == 2 ? (void *)&u16 : (void *)&u32, p, size);
    return size == 2 ? u16 : u32;
}

static void check_load_store(t_run *t, amp_dtype type, size_t offset, size_t i) {
    unsigned char raw[64], before[64];
    size_t size = amp_dtype_size(type), at = offset + i * size;
    float x = t_range(t, -4, 4);
    uint32_t want = type == AMP_F32 ? ref_f32_bits(x) : ref_encode((double)x, type, 0);
    t_fill_bits(t, raw, sizeof raw);
    memcpy(before, raw, sizeof raw);
    t_note(t, "%s[%d] at %d", amp_dtype_name(type), (int)i, (int)offset);
    amp_store(raw + offset, type, i, x);
    CHECK_EQ(bits_at(raw + at, size), want);
    CHECK_EQ(ref_f32_bits(amp_load(raw + offset, type, i)), ref_decode(want, type));
    memcpy(before + at, raw + at, size);
    CHECK_BITS(raw, before, sizeof raw, 1);
}

static void load_store(t_run *t) { /* any element, any alignment, neighbours untouched */
    size_t d, i, offset;
    for (d = 0; d < 5; d++)
        for (offset = 0; offset < 4; offset++)
            for (i = 0; i < 4; i++)
                check_load_store(t, ref_dtypes[d], offset, i);
}

/* ---- conversions ---- */

static void decode_all(t_run *t) {
    size_t d;
    for (d = 0; d < 4; d++) {
        uint32_t n = 1u << ref_format_of(small[d]).bits, p;
        for (p = 0; p < n; p++) {
            uint32_t got = ref_f32_bits(decode(p, small[d])), want = ref_decode(p, small[d]);
            t_check(t, got == want, __FILE__, __LINE__, "%s %x is %08x, should be %08x", amp_dtype_name(small[d]), p,
                got, want);
        }
    }
}

static void round_trip_all(t_run *t) { /* every number of a format comes back; NaN comes back quiet */
    size_t d;
    for (d = 0; d < 4; d++) {
        ref_format f = ref_format_of(small[d]);
        uint32_t n = 1u << f.bits, p, mask = (1u << (f.bits - 1)) - 1u;
        for (p = 0; p < n; p++) {
            uint32_t got = encode(decode(p, small[d]), small[d], 0), want = p;
            if (f.has_inf && (p & mask) > f.over) want |= 1u << (f.mant - 1);
            t_check(t, got == want, __FILE__, __LINE__, "%s %x comes back as %x, should be %x",
                amp_dtype_name(small[d]), p, got, want);
        }
    }
}

/* Known answers: reference/amp-semantics 8 and cpu-anchors 5 (hardware F16C, numpy, TestFloat, ml_dtypes). */
static void anchors(t_run *t) {
    static const struct {
        amp_dtype type;
        uint32_t f32, want;
    } c[] = {{AMP_F16, 0x477fe000, 0x7bff}, {AMP_F16, 0x477fefff, 0x7bff}, {AMP_F16, 0x477ff000, 0x7c00},
        {AMP_F16, 0x38800000, 0x0400}, {AMP_F16, 0x387fe000, 0x0400}, {AMP_F16, 0x387fdfff, 0x03ff},
        {AMP_F16, 0x387fc000, 0x03ff}, {AMP_F16, 0x33800000, 0x0001}, {AMP_F16, 0x33000000, 0x0000},
        {AMP_F16, 0x33000001, 0x0001}, {AMP_F16, 0x33400000, 0x0001}, {AMP_F16, 0x33c00000, 0x0002},
        {AMP_F16, 0x3f801000, 0x3c00}, {AMP_F16, 0x3f801800, 0x3c01}, {AMP_F16, 0x3f803000, 0x3c02},
        {AMP_F16, 0x388bcf65, 0x045e}, {AMP_F16, 0x3dcccccd, 0x2e66}, {AMP_F16, 0x322bcc77, 0x0000},
        {AMP_F16, 0x80000000, 0x8000}, {AMP_F16, 0x7f800000, 0x7c00}, {AMP_F16, 0xff800000, 0xfc00},
        {AMP_F16, 0x7fc00000, 0x7e00}, {AMP_F16, 0x7f7fffff, 0x7c00}, {AMP_F16, 0x7f800001, 0x7e00},
        {AMP_F16, 0x7fa02000, 0x7f01}, {AMP_F16, 0xffffffff, 0xffff}, {AMP_F16, 0x00000001, 0x0000},
        {AMP_F16, 0x807fffff, 0x8000}, {AMP_BF16, 0x477fe000, 0x4780}, {AMP_BF16, 0x477fefff, 0x4780},
        {AMP_BF16, 0x477ff000, 0x4780}, {AMP_BF16, 0x38800000, 0x3880}, {AMP_BF16, 0x387fe000, 0x3880},
        {AMP_BF16, 0x33800000, 0x3380}, {AMP_BF16, 0x33000001, 0x3300}, {AMP_BF16, 0x33400000, 0x3340},
        {AMP_BF16, 0x3f801000, 0x3f80}, {AMP_BF16, 0x3f803000, 0x3f80}, {AMP_BF16, 0x388bcf65, 0x388c},
        {AMP_BF16, 0x3dcccccd, 0x3dcd}, {AMP_BF16, 0x322bcc77, 0x322c}, {AMP_BF16, 0x80000000, 0x8000},
        {AMP_BF16, 0x7f800000, 0x7f80}, {AMP_BF16, 0x7fc00000, 0x7fc0}, {AMP_BF16, 0x7f7fffff, 0x7f80},
        {AMP_BF16, 0x7f800001, 0x7fc0}, {AMP_BF16, 0x7fffffff, 0x7fff}, {AMP_BF16, 0x00008001, 0x0001},
        {AMP_BF16, 0x00008000, 0x0000}, {AMP_BF16, 0x00018000, 0x0002}, {AMP_BF16, 0x7f7f7fff, 0x7f7f},
        {AMP_BF16, 0x7f7f8000, 0x7f80}, {AMP_F8E4M3, 0x43e00000, 0x7e}, {AMP_F8E4M3, 0x43e80000, 0x7e},
        {AMP_F8E4M3, 0x43e80001, 0x7f}, {AMP_F8E4M3, 0x3a800000, 0x00}, {AMP_F8E4M3, 0x3a800001, 0x01},
        {AMP_F8E4M3, 0x3b000000, 0x01}, {AMP_F8E4M3, 0x3f800000, 0x38}, {AMP_F8E4M3, 0x7f800000, 0x7f},
        {AMP_F8E4M3, 0xff800000, 0xff}, {AMP_F8E4M3, 0x7fc00000, 0x7f}, {AMP_F8E4M3, 0x80000000, 0x80},
        {AMP_F8E4M3, 0x3c800000, 0x08}, {AMP_F8E5M2, 0x476fffff, 0x7b}, {AMP_F8E5M2, 0x47700000, 0x7c},
        {AMP_F8E5M2, 0x37000000, 0x00}, {AMP_F8E5M2, 0x37000001, 0x01}, {AMP_F8E5M2, 0x37800000, 0x01},
        {AMP_F8E5M2, 0x3f800000, 0x3c}, {AMP_F8E5M2, 0xff800000, 0xfc}, {AMP_F8E5M2, 0x7fc00000, 0x7e},
        {AMP_F8E5M2, 0x7f800001, 0x7e}, {AMP_F8E5M2, 0x7fa00000, 0x7f}, {AMP_F8E5M2, 0x47600000, 0x7b}};
    size_t i;
    for (i = 0; i < sizeof c / sizeof c[0]; i++) {
        t_note(t, "%s from %08x", amp_dtype_name(c[i].type), c[i].f32);
        CHECK_EQ(encode(ref_f32(c[i].f32), c[i].type, 0), c[i].want);
        check_encode(t, ref_f32(c[i].f32), c[i].type); /* and the table of ref.h agrees with the anchors */
    }
    CHECK_EQ(amp_f8e4m3_from_f32_sat(ref_f32(0x43e80001)).bits, 0x7e);
    CHECK_EQ(amp_f8e4m3_from_f32_sat(ref_f32(0xff800000)).bits, 0xfe);
    CHECK_EQ(amp_f8e4m3_from_f32_sat(ref_f32(0x7fc00000)).bits, 0x7f);
    CHECK_EQ(amp_f8e5m2_from_f32_sat(ref_f32(0x7f800000)).bits, 0x7b);
    CHECK_EQ(amp_f8e5m2_from_f32_sat(ref_f32(0x7fc00000)).bits, 0x7e);
}

/* v, which is not negative, the two floats above it and the two below it, as far as there are any; with both signs. */
static void check_around(t_run *t, double v, amp_dtype type) {
    int at = (int)ref_f32_bits((float)v), k;
    for (k = at - 2; k <= at + 2; k++) {
        if (k < 0) continue;
        check_encode(t, ref_f32((uint32_t)k), type);
        check_encode(t, ref_f32((uint32_t)k | 0x80000000u), type);
    }
}

static void every_midpoint(t_run *t) { /* each number, each midpoint, and the floats next to them */
    size_t d;
    for (d = 0; d < 4; d++) {
        ref_format f = ref_format_of(small[d]);
        uint32_t c;
        for (c = 0; c <= f.max; c++) {
            double v = ref_value(&f, c), above = ref_value(&f, c + 1);
            check_around(t, v, small[d]);
            check_around(t, 0.5 * (v + above), small[d]);
        }
    }
}

static void random_floats(t_run *t) {
    long i, n = t_full() ? 20000000 : 400000;
    size_t d;
    for (i = 0; i < n; i++) {
        float x = t_pattern(t);
        for (d = 0; d < 4; d++)
            check_encode(t, x, small[d]);
    }
}

static void doubles(t_run *t) {
    static const double odd[] = {0.0, -0.0, 1e300, -1e300, 1.7976931348623157e308, 4.9406564584124654e-324,
        -4.9406564584124654e-324, 2.2250738585072014e-308, 65519.99999999999, 65520.0, 65504.0, 3.3895313892515355e38,
        3.3961775292304e38, 3.4028236692093846e38, 1e-45, 9.183549615799121e-41, 4.591774807899561e-41,
        4.5917748078995613e-41, 1.401298464324817e-45, 2.98023223876953125e-8, 2.9802322387695316e-8, 1e-8, 0.1};
    static const uint64_t bits[] = {0x3ff0020000001000u, 0x7ff0000000000000u, 0xfff0000000000000u, 0x7ff0000000000001u,
        0x7ff8000000000000u, 0xffffffffffffffffu, 0x7ff4000000000000u, 0x000fffffffffffffu, 0x800fffffffffffffu,
        0x36a0000000000000u, 0x3690000000000000u, 0x3690000000000001u, 0x380fffffffffffffu, 0x380ffffff0000000u,
        0x47efffffe0000000u, 0x47effffff0000000u, 0x47efffffffffffffu};
    size_t i, d;
    long k, n = t_full() ? 20000000 : 300000;
    for (i = 0; i < sizeof odd / sizeof odd[0]; i++)
        check_encode_f64(t, odd[i]);
    for (i = 0; i < sizeof bits / sizeof bits[0]; i++)
        check_encode_f64(t, ref_f64(bits[i]));
    /* through float it is rounded twice */
    CHECK_EQ(amp_f16_from_f64(ref_f64(0x3ff0020000001000u)).bits, 0x3c01);
    CHECK_EQ(amp_f16_from_f32((float)ref_f64(0x3ff0020000001000u)).bits, 0x3c00);
    for (d = 0; d < 2; d++) { /* midpoints and their neighbours in double: where rounding twice goes wrong */
        ref_format f = ref_format_of(small[d]);
        uint32_t c;
        for (c = 0; c <= f.max; c++) {
            double m = 0.5 * (ref_value(&f, c) + ref_value(&f, c + 1));
            uint64_t u = ref_f64_bits(m);
            check_encode_f64(t, m);
            check_encode_f64(t, ref_f64(u + 1));
            check_encode_f64(t, ref_f64(u - 1));
            check_encode_f64(t, -ref_f64(u + (1u << t_below(t, 28))));
            check_encode_f64(t, -ref_f64(u - (1u << t_below(t, 28))));
        }
    }
    for (k = 0; k < n; k++) {
        uint64_t u = t_u64(t);
        int within_f16 = k % 4 != 0, few_bits = k % 3 == 0; /* few bits make ties */
        if (within_f16) u = (u & 0x800fffffffffffffu) | (uint64_t)(1023 - 40 + t_below(t, 60)) << 52;
        if (few_bits) u &= ~(uint64_t)0 << t_below(t, 52);
        check_encode_f64(t, ref_f64(u));
    }
}

/* ---- stochastic rounding ---- */

/* One x that lies part / 2^k of the way from pattern c to the next one: of the random numbers i * 2^(32-k), for all i
   below 2^k, exactly `part` round it up. Checks nothing if float's own grid has no such x. */
static void check_share(t_run *t, amp_dtype type, uint32_t c, uint32_t part, int k, int negative) {
    ref_format f = ref_format_of(type);
    uint32_t mask = (1u << (f.bits - 1)) - 1u, steps = 1u << k, up = 0, i;
    double low = ref_value(&f, c), high = ref_value(&f, c + 1);
    double exact = low + (high - low) * ((double)part / (double)steps);
    float x = (float)exact;
    if ((double)x != exact) return;
    if (negative) x = -x;
    t_note(t, "%s: %a lies %u/%u above its lower neighbour", amp_dtype_name(type), (double)x, part, steps);
    for (i = 0; i < steps; i++) {
        uint32_t got = encode_sr(x, type, i << (32 - k)) & mask;
        if (got == c + 1)
            up++;
        else if (got != c) {
            CHECK_EQ(got, c);
            return;
        }
    }
    CHECK_EQ(up, part);
}

/* The share of the random numbers that round away from zero is exactly the distance from the lower neighbour. */
static void stochastic_exact(t_run *t) {
    size_t d;
    int j, rounds = t_full() ? 400 : 60;
    for (d = 0; d < 4; d++) {
        ref_format f = ref_format_of(small[d]);
        int k = 23 - f.mant < 16 ? 23 - f.mant : 16;
        uint32_t steps = 1u << k;
        check_share(t, small[d], t_below(t, f.max), 0, k, 0);
        check_share(t, small[d], t_below(t, f.max), 1, k, 1);
        check_share(t, small[d], t_below(t, f.max), steps - 1, k, 0);
        check_share(t, small[d], t_below(t, f.max), steps / 2, k, 1);
        for (j = 4; j < rounds; j++) {
            int subnormal = j % 8 == 7;
            uint32_t c = t_below(t, subnormal ? 1u << f.mant : f.max);
            check_share(t, small[d], c, t_below(t, steps), k, j % 2);
        }
    }
}

static void check_bounds(t_run *t, float x, amp_dtype type, uint32_t r) {
    ref_format f = ref_format_of(type);
    uint32_t mask = (1u << (f.bits - 1)) - 1u, nearest = encode(x, type, 0);
    uint32_t lowest = encode_sr(x, type, 0), highest = encode_sr(x, type, 0xffffffffu), c, first;
    double v = fabs((double)x), low, high, ups;
    t_note(t, "%s from %08x", amp_dtype_name(type), ref_f32_bits(x));
    if ((nearest & mask) > f.max) { /* NaN, Inf or overflow: never random */
        CHECK_EQ(encode_sr(x, type, r), nearest);
        CHECK_EQ(lowest, nearest);
        CHECK_EQ(highest, nearest);
        return;
    }
    c = ref_floor(&f, v);
    CHECK_EQ(lowest & ~mask, nearest & ~mask);
    CHECK_EQ(lowest & mask, c);
    if (c == f.max) { /* between the largest number and the limit */
        CHECK_EQ(highest & mask, f.max);
        return;
    }
    low = ref_value(&f, c);
    high = ref_value(&f, c + 1);
    if (v == low) {
        CHECK_EQ(highest & mask, c);
        CHECK_EQ(encode_sr(x, type, r) & mask, c);
        return;
    }
    ups = floor((v - low) / (high - low) * 4294967296.0); /* how many of the 2^32 random numbers round up */
    if (!(ups > 0.0)) {
        CHECK_EQ(highest & mask, c);
        return;
    }
    first = (uint32_t)(4294967296.0 - ups);
    CHECK_EQ(encode_sr(x, type, first) & mask, c + 1);
    CHECK_EQ(encode_sr(x, type, first - 1u) & mask, first ? c : c + 1);
    CHECK_EQ(encode_sr(x, type, r) & mask, r >= first ? c + 1 : c);
}

/* For any float: the result is one of the two neighbours; it moves up exactly at r = 2^32 - F; exact numbers never
   move; what overflows in nearest mode overflows for every r and nothing else does; the sign is kept. */
static void stochastic_bounds(t_run *t) {
    long i, n = t_full() ? 2000000 : 60000;
    size_t d;
    for (i = 0; i < n; i++) {
        float x = t_pattern(t);
        for (d = 0; d < 4; d++)
            check_bounds(t, x, small[d], t_u32(t));
    }
}

/* ---- random numbers ---- */

static void philox_known_answers(t_run *t) { /* Random123, kat_vectors, philox4x32 10 */
    static const struct {
        uint64_t seed, stream, counter;
        uint32_t want[4];
#define ONES 0xffffffffffffffffu
    } c[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {ONES, ONES, ONES, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u,
            {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    uint32_t got[4];
    size_t i;
    int k;
    for (i = 0; i < 3; i++) {
        amp_philox(got, c[i].seed, c[i].stream, c[i].counter);
        CHECK_BITS(got, c[i].want, 4, 4);
    }
    for (k = 0; k < 200; k++) { /* one number per element: word index % 4 of block index / 4 */
        uint64_t seed = t_u64(t), stream = t_u64(t), index = t_u64(t);
        amp_philox(got, seed, stream, index / 4);
        CHECK_EQ(amp_random(seed, stream, index), got[index % 4]);
    }
}

static void random_is_uniform(t_run *t) { /* catches a stuck or shared word, not a weak generator */
    uint32_t count[16] = {0}, i, n = 65536;
    uint64_t seed = t_u64(t), stream = t_u64(t);
    for (i = 0; i < n; i++)
        count[amp_random(seed, stream, i) >> 28]++;
    for (i = 0; i < 16; i++)
        CHECK(count[i] > n / 16 - 400 && count[i] < n / 16 + 400); /* 6.5 sigma */
    CHECK(amp_random(seed, stream, 0) != amp_random(seed + 1, stream, 0) ||
        amp_random(seed, stream, 1) != amp_random(seed + 1, stream, 1));
    CHECK(amp_random(seed, stream, 0) != amp_random(seed, stream + 1, 0) ||
        amp_random(seed, stream, 1) != amp_random(seed, stream + 1, 1));
}

/* ---- exp, log, GELU: sampled here, every float in exhaustive.c ---- */

static double ulps(double got, double want) { return fabs(got - want) / (2.0 * ref_half_ulp(want, AMP_F32)); }

static void exp_log_special(t_run *t) {
    CHECK_F32(amp_exp(0.0f), 1.0f);
    CHECK_F32(amp_exp(-0.0f), 1.0f);
    CHECK_F32(amp_exp(ref_f32(0xff800000)), 0.0f);
    CHECK_F32(amp_exp(-200.0f), 0.0f);
    CHECK_EQ(ref_f32_bits(amp_exp(ref_f32(0x7f800000))), 0x7f800000);
    CHECK_EQ(ref_f32_bits(amp_exp(89.0f)), 0x7f800000);
    CHECK(amp_is_nan(amp_exp(ref_f32(0x7fc00000))));
    CHECK(amp_is_nan(amp_exp(ref_f32(0xffc00001))));
    CHECK_F32(amp_log(1.0f), 0.0f);
    CHECK_EQ(ref_f32_bits(amp_log(0.0f)), 0xff800000);
    CHECK_EQ(ref_f32_bits(amp_log(-0.0f)), 0xff800000);
    CHECK_EQ(ref_f32_bits(amp_log(ref_f32(0x7f800000))), 0x7f800000);
    CHECK(amp_is_nan(amp_log(-1.0f)));
    CHECK(amp_is_nan(amp_log(ref_f32(0x80000001))));
    CHECK(amp_is_nan(amp_log(ref_f32(0xff800000))));
    CHECK(amp_is_nan(amp_log(ref_f32(0x7fc00000))));
    CHECK(amp_is_nan(amp_log(ref_f32(0x7f800001))));
}

static void exp_log(t_run *t) {
    long i, n = t_full() ? 20000000 : 500000;
    double worst_exp = 0, worst_log = 0, e;
    exp_log_special(t);
    for (i = 0; i < n; i++) {
        float x = i % 2 ? t_pattern(t) : (float)((t_unit(t) * 2 - 1) * 88.7);
        double want = exp((double)x);
        if (!amp_is_nan(x) && want >= 1.1754943508222875e-38 && x <= 88.72283f) {
            e = ulps((double)amp_exp(x), want);
            if (e > worst_exp) worst_exp = e;
        } else if (!amp_is_nan(x) && x < 0.0f)
            CHECK_NEAR((double)amp_exp(x), want, 2.9e-45); /* subnormal: within two steps */
        x = i % 2 ? fabsf(t_pattern(t)) : (float)(0.5 + t_unit(t));
        if (amp_is_finite(x) && x > 0.0f && x != 1.0f) {
            e = ulps((double)amp_log(x), log((double)x));
            if (e > worst_log) worst_log = e;
        }
    }
    t_note(t, "worst of the sample: exp %.3f, log %.3f ulp", worst_exp, worst_log);
    CHECK(worst_exp <= 1.0);
    CHECK(worst_log <= 1.5);
}

/* Against libm's: random numbers, sums that cancel, and sums next to the middle between two floats, where rounding
   twice goes wrong, among them subnormal ones. */
static void fused(t_run *t) {
    long i, n = t_full() ? 20000000 : 400000;
    for (i = 0; i < n; i++) {
        float a = t_pattern(t), b = t_pattern(t), c = t_pattern(t), got, want;
        if (i % 4 == 1) c = -a * b;
        if (i % 4 >= 2) { /* a * b is about half a step of c, or exactly that */
            int e = (int)t_below(t, 200) - 100;
            float tail = ldexpf(1.0f, -(int)t_below(t, 24));
            c = (float)ldexp(1.0 + (double)t_below(t, 1u << 23) / (1u << 23), i % 4 == 2 ? e : -126);
            a = (float)ldexp(1.0 + (double)tail, (i % 4 == 2 ? e : -126) - 24 - 5);
            b = t_below(t, 2) ? 32.0f : 32.0f * (1.0f - tail);
            if (t_below(t, 2)) a = -a;
        }
        if (i % 16 == 7) { /* c subnormal, a * b half of its last place, and a little less or not */
            c = ref_f32(t_below(t, 1u << 23));
            a = ldexpf(t_below(t, 2) ? 1.0f + ldexpf(1.0f, -23) : 1.0f, -75);
            b = ldexpf(1.0f - ldexpf(1.0f, -23), -75);
        }
        got = amp_fma(a, b, c);
        want = ref_fmaf(a, b, c);
        if (amp_is_nan(want))
            CHECK(amp_is_nan(got));
        else
            CHECK_EQ(ref_f32_bits(got), ref_f32_bits(want));
    }
}

/* The tanh form in double is the reference; errors are relative to the size of the numbers involved. */
static void gelu(t_run *t) {
    long i, n = t_full() ? 5000000 : 200000;
    double worst = 0, worst_grad = 0, e;
    CHECK_F32(amp_gelu(0.0f), 0.0f);
    CHECK_F32(amp_gelu(100.0f), 100.0f);
    CHECK(amp_gelu(-100.0f) == 0.0f);
    CHECK(amp_gelu(ref_f32(0xff800000)) == 0.0f);
    CHECK_EQ(ref_f32_bits(amp_gelu(ref_f32(0x7f800000))), 0x7f800000);
    CHECK(amp_is_nan(amp_gelu(ref_f32(0x7fc00000))));
    CHECK(amp_is_nan(amp_gelu_grad(ref_f32(0x7fc00000))));
    CHECK_F32(amp_gelu_grad(0.0f), 0.5f);
    CHECK_F32(amp_gelu_grad(50.0f), 1.0f);
    CHECK_F32(amp_gelu_grad(-50.0f), 0.0f);
    CHECK_F32(amp_gelu_grad(ref_f32(0x7f800000)), 1.0f);
    CHECK_F32(amp_gelu_grad(ref_f32(0xff800000)), 0.0f);
    for (i = 0; i < n; i++) {
        float x = i % 2 ? (float)((t_unit(t) * 2 - 1) * 6.0) : t_range(t, -100, 5);
        e = fabs((double)amp_gelu(x) - ref_gelu((double)x)) / (fabs((double)x) + 1e-300);
        if (e > worst) worst = e;
        e = fabs((double)amp_gelu_grad(x) - ref_gelu_grad((double)x));
        if (e > worst_grad) worst_grad = e;
    }
    t_note(t, "worst of the sample: gelu %.3g of |x|, derivative %.3g", worst, worst_grad);
    CHECK(worst <= 2.5e-7);
    CHECK(worst_grad <= 3e-7);
}

/* What a sum of squares is multiplied with: by the rule of >>backend, which numbers rarely tell from one near it. */
static void squares(t_run *t) {
    const float up = ldexpf(1.0f, 96), down = ldexpf(1.0f, -96), least = ldexpf(1.0f, -100);
    CHECK_F32(amp_squares_by(least), 1.0f);
    CHECK_F32(amp_squares_by(ref_f32(ref_f32_bits(least) - 1u)), up);
    CHECK_F32(amp_squares_by(0.0f), up);
    CHECK_F32(amp_squares_by(3.402823466e38f), 1.0f);
    CHECK_F32(amp_squares_by(ref_f32(0x7f800000u)), down);
    CHECK_F32(amp_squares_by(ref_f32(0x7fc00000u)), down);
    CHECK_F64(amp_squares_sum(1.5f, 1.0f), 1.5);
    CHECK_F64(amp_squares_sum(1.5f, up), ldexp(1.5, -192));
    CHECK_F64(amp_squares_sum(1.5f, down), ldexp(1.5, 192));
}

/* The same bits on every machine, with every compiler and flag: a hash of many results. It changes when a function is
   changed on purpose. A NaN counts as a class and is told by its bits, also where compilers believe there is none. */
static void pinned_bits(t_run *t) {
    uint64_t h = 0xcbf29ce484222325u;
    uint32_t i, k;
    for (i = 0; i < 1u << 16; i++) {
        float x = ref_f32(i * 65521u + i % 977u), y[4];
        y[0] = amp_exp(x);
        y[1] = amp_log(x);
        y[2] = amp_gelu(x);
        y[3] = amp_gelu_grad(x);
        for (k = 0; k < 4; k++) {
            uint32_t u = ref_f32_bits(y[k]), nan = (u & 0x7fffffffu) > 0x7f800000u;
            h = (h ^ (nan ? 0x7fc00000u : u)) * 0x100000001b3u;
        }
    }
    t_check(t, h == 0xc487a2803f59b3a2u, __FILE__, __LINE__, "the hash is %016llx", (unsigned long long)h);
}

const t_test t_suite_formats[] = {
    {"math.pinned_bits", pinned_bits, T_HOST},
    {"status.texts", status_texts, T_HOST},
    {"formats.names_and_sizes", names_and_sizes, T_HOST},
    {"formats.finite_tests", finite_tests, T_HOST},
    {"formats.load_store", load_store, T_HOST},
    {"formats.decode_all", decode_all, T_HOST},
    {"formats.round_trip_all", round_trip_all, T_HOST},
    {"formats.anchors", anchors, T_HOST},
    {"formats.every_midpoint", every_midpoint, T_HOST},
    {"formats.random_floats", random_floats, T_HOST},
    {"formats.doubles", doubles, T_HOST},
    {"formats.stochastic_exact", stochastic_exact, T_HOST},
    {"formats.stochastic_bounds", stochastic_bounds, T_HOST},
    {"random.philox_known_answers", philox_known_answers, T_HOST},
    {"random.is_uniform", random_is_uniform, T_HOST},
    {"math.exp_log", exp_log, T_HOST},
    {"math.fused", fused, T_HOST},
    {"math.gelu", gelu, T_HOST},
    {"math.squares", squares, T_HOST},
    {NULL, NULL, 0},
};
