/* check.c - the checker of lab 1. The cases go from the simple to the rare, so that the first one that fails names the
 * mistake; then all halves, both neighbours of every rounding limit, and two million floats of all kinds. */
#include "amp.h"
#include "lab.h"

typedef struct check_case {
    uint32_t bits; /* of the float */
    uint16_t want;
    const char *why;
} check_case;

static const check_case check_cases[] = {
    {0x3f800000, 0x3c00, "the exponent's bias is 127 in a float and 15 in a half"},
    {0xc0000000, 0xc000, "the sign is the top bit"},
    {0x3fc00000, 0x3e00, "the mantissa's upper 10 bits stay"},
    {0x477fe000, 0x7bff, "it is the largest half"},
    {0x00000000, 0x0000, "zero stays zero"},
    {0x80000000, 0x8000, "the sign of zero is kept"},
    {0x3f801800, 0x3c01, "that one is nearer; cutting bits off is not rounding"},
    {0x3f800800, 0x3c00, "that one is nearer"},
    {0x3f801000, 0x3c00, "it is in the middle, and the even neighbour is below"},
    {0x3f803000, 0x3c02, "it is in the middle, and the even neighbour is above"},
    {0x3f801001, 0x3c01, "it is just above the middle: all 13 bits that are cut off count, not only the first"},
    {0x44fff800, 0x6800, "rounding carries into the exponent"},
    {0x477fefff, 0x7bff, "numbers below 65520 round down to 65504"},
    {0x477ff000, 0x7c00, "the number after 65504 would be 65536, and from the middle on it is Inf"},
    {0x7149f2ca, 0x7c00, "it is beyond the range"},
    {0x7f800000, 0x7c00, "Inf stays Inf"},
    {0xff800000, 0xfc00, "-Inf stays -Inf"},
    {0x38800000, 0x0400, "it is the smallest normal half"},
    {0x38000000, 0x0200, "below 2^-14 halves are subnormal, in steps of 2^-24"},
    {0x33800000, 0x0001, "it is the smallest subnormal half, not 0"},
    {0x33c00000, 0x0002, "it is in the middle between 2^-24 and 2^-23, and the even neighbour is above"},
    {0x33000000, 0x0000, "it is in the middle between 0 and 2^-24, and 0 is even"},
    {0x33bfffff, 0x0001, "it is just below the middle; round once, not first to 11 bits and then to a subnormal"},
    {0x33000001, 0x0001, "it is just above the middle between 0 and 2^-24"},
    {0x32000000, 0x0000, "it is nearer to 0 than to 2^-24"},
    {0x387fe000, 0x0400, "it is in the middle between the largest subnormal half and 2^-14"},
    {0x00000001, 0x0000, "subnormal floats are far below 2^-25"},
};

static float check_value(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

/* Between the halves with the bits h and h + 1, which are positive; after 65504 comes 65536. */
static int check_is_middle(float x, uint16_t h) {
    amp_f16 below, above;
    below.bits = h;
    above.bits = (uint16_t)(h + 1);
    return 2 * (double)x == (double)amp_f32_from_f16(below) + (h == 0x7bff ? 65536 : (double)amp_f32_from_f16(above));
}

/* The half nearest to x; from the middle between two as this class rounds. */
static uint16_t check_right(float x) {
    uint16_t even = amp_f16_from_f32(x).bits, sign = even & 0x8000u, h = even & 0x7fffu;
    if (LAB1_TIES == 0 || !amp_is_finite(x)) return even;
    if (h > 0 && check_is_middle(fabsf(x), (uint16_t)(h - 1)))
        return LAB1_TIES == 1 ? even : (uint16_t)(sign | (h - 1));
    if (h < 0x7c00 && check_is_middle(fabsf(x), h)) return LAB1_TIES == 1 ? (uint16_t)(sign | (h + 1)) : even;
    return even;
}

/* As people write it: 0.1, 65504, 1.5 * 2^-24. */
static const char *check_number(char text[40], double x) {
    int e = 0;
    double m = 2.0 * frexp(x, &e);
    if (x == 0) {
        snprintf(text, 40, "%s", signbit(x) ? "-0" : "0");
    } else if (fabs(x) >= 0.0009765625) { /* Inf and NaN, too */
        snprintf(text, 40, "%.9g", x);
    } else if (fabs(m) == 1) {
        snprintf(text, 40, "%s2^%d", m < 0 ? "-" : "", e - 1);
    } else {
        snprintf(text, 40, "%.8g * 2^%d", m, e - 1);
    }
    return text;
}

static const char *check_half_text(char text[60], uint16_t h) {
    char number[40];
    amp_f16 half;
    half.bits = h;
    snprintf(text, 60, "%s (%04x)", check_number(number, (double)amp_f32_from_f16(half)), (unsigned)h);
    return text;
}

static int check_half_is_nan(uint16_t h) { return (h & 0x7fffu) > 0x7c00u; }

/* One float: the sentence if it is wrong. */
static void check_float(float x, uint16_t want, const char *why) {
    char from[40], is[60], should[60];
    uint16_t got = half_from_float(x);
    check_half_text(is, got);
    if (amp_is_nan(x)) {
        if (check_half_is_nan(got)) return;
        lab_wrong("NaN (%08x) must stay NaN, and your half is %s: a payload may be in the bits that are cut off alone",
            (unsigned)bits_of(x), is);
    }
    if (got == want) return;
    lab_wrong("%s must become %s, and your half is %s: %s", check_number(from, (double)x),
        check_half_text(should, want), is, why);
}

static void check_reference(float x) {
    uint16_t want = check_right(x);
    if (half_from_float(x) == want && !amp_is_nan(x)) return;
    check_float(x, want, "found by trying many");
}

/* Every half as a float. */
static void check_all_halves(void) {
    char a[40], b[40];
    uint32_t h;
    for (h = 0; h < 65536; h++) {
        amp_f16 half;
        float want, got;
        half.bits = (uint16_t)h;
        want = amp_f32_from_f16(half);
        lab_doing("float_from_half(0x%04x)", (unsigned)h);
        got = float_from_half((uint16_t)h);
        if (amp_is_nan(want) && amp_is_nan(got)) continue;
        if (memcmp(&want, &got, 4) == 0) continue;
        lab_wrong("float_from_half(0x%04x) must be %s, and yours is %s", (unsigned)h, check_number(a, (double)want),
            check_number(b, (double)got));
    }
}

/* The middle between each two neighbours, with the floats beside it. */
static void check_all_limits(void) {
    uint16_t h;
    lab_doing("half_from_float of a number between two halves");
    for (h = 0; h < 0x7bff; h++) {
        amp_f16 a, b;
        float middle;
        uint32_t u;
        a.bits = h;
        b.bits = (uint16_t)(h + 1);
        middle = 0.5f * (amp_f32_from_f16(a) + amp_f32_from_f16(b));
        memcpy(&u, &middle, 4);
        check_reference(middle);
        check_reference(check_value(u - 1));
        check_reference(check_value(u + 1));
        check_reference(check_value(u | 0x80000000u));
    }
}

int main(void) {
    size_t i;
    uint32_t k;
    lab_begin();
    lab_doing("float_from_half(0x3c00)");
    (void)float_from_half(0x3c00); /* an unfinished file says first what it says of an ordinary number */
    check_all_halves();
    for (i = 0; i < sizeof check_cases / sizeof *check_cases; i++) {
        const check_case *c = &check_cases[i];
        float x = check_value(c->bits);
        lab_doing("half_from_float(%.9g)", (double)x);
        check_float(x, check_right(x), check_right(x) == c->want ? c->why : "it is in the middle: see your variant");
    }
    lab_doing("half_from_float(NaN)");
    check_float(check_value(0x7fc00000), 0, "");
    check_float(check_value(0x7f800001), 0, "");
    check_float(check_value(0xff802000), 0, "");
    check_all_limits();
    lab_doing("half_from_float of a random number");
    for (k = 0; k < 2000000; k++)
        check_reference(check_value(amp_random(1, 1, k)));
    lab_passed("your two functions agree with amp's on all 65536 halves and on 2.1 million floats");
    return 0;
}
