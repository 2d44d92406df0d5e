/* check.c - the checker of lab 11: all codes, both sides of each limit, all exponents, then blocks of all sizes. */
#include "amp.h"
#include "lab.h"

static const float check_values[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

/* ---- one scale for a tensor ---- */

static void check_tensor(const char *what, const float *x, size_t n) {
    static amp_f8e4m3 code[1000];
    float scale = -1, amax = 0, want;
    size_t i;
    for (i = 0; i < n; i++)
        amax = fmaxf(amax, fabsf(x[i]));
    want = amax > 0 ? 448 / amax : 1;
    lab_doing("quantize_tensor of %s", what);
    quantize_tensor(&scale, code, x, n);
    if (!(fabsf(scale - want) <= 1e-6f * want))
        lab_wrong("quantize_tensor of %s: the largest |x| is %g, so the scale must be %g, and yours is %g", what,
            (double)amax, (double)want, (double)scale);
    for (i = 0; i < n; i++) {
        amp_f8e4m3 right = amp_f8e4m3_from_f32_sat(x[i] * scale);
        if (code[i].bits != right.bits)
            lab_wrong("quantize_tensor of %s: %g times %g must become %g, and yours is %g", what, (double)x[i],
                (double)scale, (double)amp_f32_from_f8e4m3(right), (double)amp_f32_from_f8e4m3(code[i]));
    }
}

/* ---- E2M1 ---- */

static unsigned check_right_code(float x) {
    unsigned best = 0, k, sign = signbit(x) ? 8 : 0;
    for (k = 1; k < 8; k++) {
        float d = fabsf(check_values[k] - fabsf(x)), nearest = fabsf(check_values[best] - fabsf(x));
        if (d < nearest || (d == nearest && k % 2 == 0)) best = k;
    }
    return sign | best;
}

static float check_value(unsigned code) { return (code & 8 ? -1.0f : 1.0f) * check_values[code & 7]; }

static void check_code(float x, const char *why) {
    unsigned want = check_right_code(x), got;
    lab_doing("e2m1_from_float(%g)", (double)x);
    got = e2m1_from_float(x);
    if (got == want) return;
    if (got > 15) lab_wrong("e2m1_from_float(%g) must be a code of 4 bits, %u, and yours is %u", (double)x, want, got);
    lab_wrong("e2m1_from_float(%.9g) must be %g (code %u), and yours is %g (code %u): %s", (double)x,
        (double)check_value(want), want, (double)check_value(got), got, why);
}

static void check_e2m1(void) {
    static const float middle[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5};
    unsigned k, i;
    for (k = 0; k < 16; k++) {
        float got;
        lab_doing("float_from_e2m1(%u)", k);
        got = float_from_e2m1(k);
        if (got != check_value(k))
            lab_wrong("float_from_e2m1(%u) must be %g, and yours is %g", k, (double)check_value(k), (double)got);
    }
    for (k = 0; k < 16; k++)
        check_code(check_value(k), "it is one of the values itself");
    for (k = 0; k < 7; k++) {
        check_code(nextafterf(middle[k], 0), "that one is nearer");
        check_code(nextafterf(middle[k], 9), "that one is nearer; cutting bits off is not rounding");
        check_code(middle[k], "it is in the middle, and the even code wins");
        check_code(-middle[k], "it is in the middle, and the even code wins");
    }
    check_code(6.5f, "beyond 6 it is 6");
    check_code(-1000, "beyond 6 it is 6");
    for (i = 0; i < 100000; i++)
        check_code((float)(amp_random(3, 0, i) >> 8) / 1048576 - 8, "found by trying many");
}

/* ---- E8M0 ---- */

static uint8_t check_right_scale(float amax) {
    int e;
    if (amax == 0) return 0;
    (void)frexp((double)amax, &e);
    e += -1 - LAB11_SHIFT + 127;
    return (uint8_t)(e < 0 ? 0 : e);
}

static void check_scale(float amax) {
    uint8_t want = check_right_scale(amax), got;
    lab_doing("e8m0_for(%g)", (double)amax);
    got = e8m0_for(amax);
    if (got != want)
        lab_wrong("e8m0_for(%.9g) must be code %u, 2^%d, and yours is %u, 2^%d", (double)amax, want, want - 127, got,
            got - 127);
}

static void check_scales(void) {
    int e;
    check_scale(4);
    check_scale(6);
    check_scale(7.99f);
    check_scale(8);
    check_scale(1);
    check_scale(0.3f);
    check_scale(0);
    for (e = -149; e < 128; e++) {
        float power = (float)ldexp(1, e);
        check_scale(power);
        check_scale(nextafterf(power, 0));
        check_scale(1.5f * power);
    }
}

/* ---- blocks ---- */

static void check_block(const char *what, const float x[BLOCK]) {
    uint8_t scale = 200, code[BLOCK + 1], want;
    float amax = 0, back[BLOCK];
    int i;
    memset(code, 0xee, sizeof code);
    for (i = 0; i < BLOCK; i++)
        amax = fmaxf(amax, fabsf(x[i]));
    want = check_right_scale(amax);
    lab_doing("quantize_block of %s", what);
    quantize_block(&scale, code, x);
    if (scale != want)
        lab_wrong("quantize_block of %s: the largest |x| is %g, so the scale must be 2^%d, and yours is 2^%d", what,
            (double)amax, want - 127, scale - 127);
    if (code[BLOCK] != 0xee) lab_wrong("quantize_block of %s writes beyond its 32 codes", what);
    for (i = 0; i < BLOCK; i++) {
        unsigned right = check_right_code((float)ldexp((double)x[i], 127 - want));
        if (code[i] != right)
            lab_wrong("quantize_block of %s: element %d, %g over 2^%d, must be %g (code %u), and yours is code %u",
                what, i, (double)x[i], want - 127, (double)check_value(right), right, code[i]);
    }
    lab_doing("dequantize_block of %s", what);
    dequantize_block(back, scale, code);
    for (i = 0; i < BLOCK; i++)
        if (back[i] != (float)ldexp((double)check_value(code[i]), want - 127))
            lab_wrong("dequantize_block of %s: element %d must be %g, and yours is %g", what, i,
                ldexp((double)check_value(code[i]), want - 127), (double)back[i]);
}

static void check_fill(float *x, size_t n, int e) {
    size_t i;
    for (i = 0; i < n; i++)
        x[i] = (float)ldexp((double)(amp_random(11, (uint64_t)(e + 200), i) >> 8) / 8388608 - 1, e);
}

int main(void) {
    static float x[1000];
    int e;
    lab_begin();
    check_fill(x, 1000, 0);
    check_tensor("1000 numbers near 1", x, 1000);
    x[7] = -300;
    check_tensor("1000 numbers near 1 with one of -300", x, 1000);
    check_fill(x, 1000, -20);
    check_tensor("1000 numbers near 2^-20", x, 1000);
    memset(x, 0, sizeof x);
    check_tensor("nothing but 0", x, 10);
    check_e2m1();
    check_scales();
    check_block("nothing but 0", x);
    for (e = -100; e <= 100; e += 10) {
        char what[40];
        snprintf(what, sizeof what, "numbers near 2^%d", e);
        check_fill(x, BLOCK, e);
        check_block(what, x);
    }
    check_fill(x, BLOCK, 0);
    x[BLOCK - 1] = -300;
    check_block("numbers near 1 with one of -300", x);
    lab_passed("E4M3 with one scale, and E2M1 with an E8M0 scale for each block of 32");
    return 0;
}
