/* check.c - the checker of lab 2: each sum to the bit, on numbers where each mistake shows. */
#include "amp.h"
#include "lab.h"

#define CHECK_MAX 4096

static float check_round(float x) { return amp_f32_from_f16(amp_f16_from_f32(x)); }

static float check_in_order(const float *x, size_t n) {
    float s = 0;
    size_t i;
    for (i = 0; i < n; i++)
        s = check_round(s + x[i]);
    return s;
}

static float check_pairwise(const float *x, size_t n) {
    if (n == 0) return 0;
    if (n == 1) return x[0];
    if (n <= LAB2_BLOCK) return check_in_order(x, n);
    return check_round(check_pairwise(x, n / 2) + check_pairwise(x + n / 2, n - n / 2));
}

static float check_compensated(const float *x, size_t n) {
    float s = 0, c = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        float y = check_round(x[i] - c);
        float t = check_round(s + y);
        c = check_round(check_round(t - s) - y);
        s = t;
    }
    return s;
}

static double check_exact(const float *x, size_t n) {
    double s = 0;
    size_t i;
    for (i = 0; i < n; i++)
        s += (double)x[i];
    return s;
}

/* ---- numbers ---- */

typedef struct check_numbers {
    const char *what;
    size_t n;
    float first, others; /* random: between -others and others */
    int random;
} check_numbers;

static const check_numbers check_arrays[] = {
    {"no number", 0, 0, 0, 0},
    {"the one number 3", 1, 3, 3, 0},
    {"the two numbers 1 and 2", 2, 1, 2, 0},
    {"the three numbers 1, 2, 2", 3, 1, 2, 0},
    {"100 ones", 100, 1, 1, 0},
    {"4096 ones", 4096, 1, 1, 0},
    {"1 and then 4095 times 2^-12", 4096, 1, 0.000244140625f, 0},
    {"2048 and then 999 ones", 1000, 2048, 1, 0},
    {"1000 times 0.01", 1000, 0.01f, 0.01f, 0},
    {"777 random numbers", 777, 0.3f, 1, 1},
    {"4096 random numbers", 4096, -2, 3, 1},
    {"the one number -0", 1, -0.0f, 0, 0},
    {"63 random numbers", 63, 5, 40, 1},
    {"1025 random numbers", 1025, 700, 0.5f, 1},
};
#define CHECK_ARRAYS (sizeof check_arrays / sizeof *check_arrays)

static void check_fill(float *x, const check_numbers *a) {
    size_t i;
    for (i = 0; i < a->n; i++) {
        float share = (float)(amp_random(2, a->n, i) >> 8) / 8388608.0f - 1.0f;
        x[i] = check_round(a->random ? a->others * share : a->others);
    }
    if (a->n > 0) x[0] = check_round(a->first);
    x[a->n] = 1000; /* not one of them */
}

/* ---- functions ---- */

typedef float check_sum(const float *x, size_t n);

/* What a sum that is not the wanted one has probably done. */
static const char *check_reason(const char *name, const float *x, size_t n, float got) {
    double exact = check_exact(x, n);
    if (got >= 999 && (float)exact < 500) return "x[n] is not one of the n numbers";
    if (n == 1 && x[0] == 0 && got == 0 && strcmp(name, "sum_pairwise") != 0)
        return "the sum begins at 0, and 0 + -0 is 0";
    if (n == 1 && x[0] == 0 && got == 0) return "the sum of one number is that number, with its sign";
    if (strcmp(name, "sum_in_order") == 0 && (double)got == (double)check_round((float)exact))
        return "that is the exact sum, rounded once; here every addition is rounded to a half";
    if (got != check_round(got)) return "that is no half: the result of every operation goes through r()";
    if (strcmp(name, "sum_compensated") == 0 && got == check_in_order(x, n))
        return "that is the plain sum: what an addition has added too much must be taken off the next number";
    if (strcmp(name, "sum_pairwise") == 0 && got == check_in_order(x, n))
        return "that is the sum from the first to the last";
    if (strcmp(name, "sum_in_order") == 0) return "every number counts, from the first to the last";
    if (strcmp(name, "sum_pairwise") == 0) return "the first n / 2 numbers, rounded down, and all the others";
    return "the page's four lines in their order, with r() around each operation";
}

static void check_function(const char *name, check_sum *yours, check_sum *right) {
    static float x[CHECK_MAX + 1];
    size_t k;
    for (k = 0; k < CHECK_ARRAYS; k++) {
        const check_numbers *a = &check_arrays[k];
        float want, got;
        check_fill(x, a);
        want = right(x, a->n);
        lab_doing("%s of %s", name, a->what);
        got = yours(x, a->n);
        if (memcmp(&want, &got, 4) == 0) continue;
        lab_wrong("%s of %s must be %.9g, and yours is %.9g: %s", name, a->what, (double)want, (double)got,
            check_reason(name, x, a->n, got));
    }
}

static void check_stand(float x) {
    float want = 0, got;
    x = check_round(x);
    while (check_round(want + x) != want)
        want = check_round(want + x);
    lab_doing("stands_still_at(%g)", (double)x);
    got = stands_still_at(x);
    if (got != want)
        lab_wrong("the sum of halves %.6g + %.6g + ... stands still at %.9g, and yours says %.9g", (double)x, (double)x,
            (double)want, (double)got);
}

int main(void) {
    static const float steps[] = {1, 3, 0.01f, -1, -0.3f, 0, 5.9604645e-8f, 1000};
    size_t i;
    lab_begin();
    check_function("sum_in_order", sum_in_order, check_in_order);
    for (i = 0; i < sizeof steps / sizeof *steps; i++)
        check_stand(steps[i]);
    for (i = 0; i < 40; i++) { /* of 2^-6 .. 2^6, of both signs */
        uint32_t word = amp_random(22, 0, i);
        float x = ldexpf(1.0f + (float)(word >> 22) / 1024.0f, (int)(word % 13) - 6);
        check_stand(word & 0x10000u ? -x : x);
    }
    check_function("sum_pairwise", sum_pairwise, check_pairwise);
    check_function("sum_compensated", sum_compensated, check_compensated);
    lab_passed("the sum of 4096 ones is 2048 in order, 4096 in pairs, and 4096 compensated");
    return 0;
}
