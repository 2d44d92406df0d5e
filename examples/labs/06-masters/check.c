/* check.c - the checker of lab 6: spacings of all halves, a step without masters to the bit, and a thousand steps with
 * masters whose updates are all smaller than half a spacing. */
#include "amp.h"
#include "lab.h"

#define CHECK_N 8

static float check_value(unsigned bits) {
    amp_f16 h;
    h.bits = (uint16_t)bits;
    return amp_f32_from_f16(h);
}

static void check_spacing(unsigned bits, const char *why) {
    amp_f16 h;
    float want = fabsf(check_value(bits + 1) - check_value(bits)), got;
    h.bits = (uint16_t)bits;
    lab_doing("spacing(%g)", (double)check_value(bits));
    got = spacing(h);
    if (got != want)
        lab_wrong(
            "spacing(%.9g) must be %g, and yours is %g: %s", (double)check_value(bits), (double)want, (double)got, why);
}

static void check_spacings(void) {
    unsigned bits;
    check_spacing(0x3c00, "from 1 to 2 halves are 2^-10 apart");
    check_spacing(0x3400, "it halves with every power of two");
    check_spacing(0xc000, "the sign does not matter");
    check_spacing(0x7bfe, "from 32768 on halves are 32 apart");
    check_spacing(0x3bff, "the next half away from zero is 1, still at the spacing below 1");
    check_spacing(0x0001, "subnormal halves are 2^-24 apart");
    check_spacing(0x0000, "subnormal halves are 2^-24 apart, and the first one follows 0");
    for (bits = 0; bits < 0x7bff; bits++) {
        check_spacing(bits, "found by trying all");
        check_spacing(bits | 0x8000u, "found by trying all");
    }
}

/* ---- steps ---- */

static const float check_weights[CHECK_N] = {0.25f, 1, -1, 100, 0.001f, 0, -0.333f, 2048};
static const float check_gradients[CHECK_N] = {-0.1f, 0.4f, 0.6f, 0.25f, 0.0001f, -0.00002f, 0, 900};

static void check_halves(amp_f16 *h, const float *x, float scale) {
    int i;
    for (i = 0; i < CHECK_N; i++)
        h[i] = amp_f16_from_f32(x[i] * scale);
}

/* How many halves lie from one to the other: 1 to the next one, 0 to itself. */
static int check_place(float half) {
    int bits = amp_f16_from_f32(half).bits;
    return bits & 0x8000 ? -(bits & 0x7fff) : bits;
}
static int check_moved(float from, float to) { return abs(check_place(to) - check_place(from)); }

static void check_pure(float scale, float lr) {
    amp_f16 w[CHECK_N], g[CHECK_N];
    float before[CHECK_N];
    size_t want_lost = 0, lost;
    int i;
    check_halves(w, check_weights, 1);
    check_halves(g, check_gradients, scale);
    for (i = 0; i < CHECK_N; i++)
        before[i] = amp_f32_from_f16(w[i]);
    lab_doing("pure_step");
    lost = pure_step(w, g, CHECK_N, scale, lr);
    for (i = 0; i < CHECK_N; i++) {
        float update = lr * (amp_f32_from_f16(g[i]) / scale);
        float want = amp_f32_from_f16(amp_f16_from_f32(before[i] - update)), got = amp_f32_from_f16(w[i]);
        want_lost += update != 0 && check_moved(before[i], want) < LAB6_MOVES;
        if (got != want)
            lab_wrong("pure_step: the weight %.7g with the update %.4g must become the half %.9g, and yours is %.9g",
                (double)before[i], (double)update, (double)want, (double)got);
    }
    if (lost != want_lost)
        lab_wrong("pure_step with lr %g: %d of %d updates are lost, and yours says %d: %s", (double)lr, (int)want_lost,
            CHECK_N, (int)lost,
            lost > want_lost      ? "a gradient of 0 asks for nothing, so nothing is lost"
                : LAB6_MOVES == 1 ? "compare the bits"
                                  : "see your variant");
}

static void check_begin(float *master, amp_f16 *model) {
    int i;
    lab_doing("masters_begin");
    masters_begin(master, model, check_weights, CHECK_N);
    for (i = 0; i < CHECK_N; i++) {
        if (master[i] != check_weights[i])
            lab_wrong("masters_begin: the master of %.9g is %.9g: a master is FP32 and begins without rounding",
                (double)check_weights[i], (double)master[i]);
        if (model[i].bits != amp_f16_from_f32(check_weights[i]).bits)
            lab_wrong("masters_begin: the copy of %.9g must be %.9g, and yours is %.9g", (double)check_weights[i],
                (double)amp_f32_from_f16(amp_f16_from_f32(check_weights[i])), (double)amp_f32_from_f16(model[i]));
    }
}

/* What a master that stands where it should not has probably gone through. */
static const char *check_reason(double moved, double want, double scale) {
    if (moved == 0) return "small updates must add up in the master";
    if (moved * want < 0) return "w = w - update, and nothing is read back from the copies";
    if (scale > 1 && fabs(moved) > 0.5 * scale * fabs(want)) return "gradients carry the scale";
    return "unscale and multiply with floats, and read nothing back from the copies";
}

static void check_run(float scale, float lr, int steps) {
    float master[CHECK_N];
    amp_f16 model[CHECK_N], g[CHECK_N];
    int i, k;
    check_begin(master, model);
    check_halves(g, check_gradients, scale);
    for (k = 1; k <= steps; k++) {
        lab_doing("masters_step");
        masters_step(master, model, g, CHECK_N, scale, lr);
        for (i = 0; i < CHECK_N; i++) {
            double update = (double)lr * (double)amp_f32_from_f16(g[i]) / (double)scale;
            double begin = (double)check_weights[i], want = begin - k * update;
            if (k == steps && fabs((double)master[i] - want) > 0.01 * fabs(k * update) + 1e-6 * fabs(begin) * k)
                lab_wrong(
                    "after step %d with updates of %.3g the master must go from %g to %.6g, and yours is %.6g: %s", k,
                    update, begin, want, (double)master[i],
                    check_reason((double)master[i] - begin, want - begin, (double)scale));
            if (k > 1 && k < steps) continue;
            if (model[i].bits != amp_f16_from_f32(master[i]).bits)
                lab_wrong("after step %d the master is %.9g and its copy %.9g: the copy must be the nearest half, %.9g",
                    k, (double)master[i], (double)amp_f32_from_f16(model[i]),
                    (double)amp_f32_from_f16(amp_f16_from_f32(master[i])));
        }
    }
}

int main(void) {
    lab_begin();
    check_spacings();
    check_pure(1, 0.5f);
    check_pure(1, 0.001f);
    check_pure(64, 0.001f);
    check_pure(64, 0.00000001f);
    check_run(1, 0.001f, 1);
    check_run(64, 0.001f, 1000);
    check_run(16, 0.000001f, 1000);
    lab_passed("without masters 0.25 stays 0.25; with them a thousand updates of 0.0001 arrive");
    return 0;
}
