/* check.c - the checker of lab 10. Of 65536 words that have each value of 16 bits once, in both halves, exactly as many
 * must round up as x is away from its lower neighbour: that is what unbiased means, with nothing left to chance. */
#include "amp.h"
#include "lab.h"

#include <time.h>

static float check_value(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
static double check_bf16(uint16_t h) { return (double)check_value((uint32_t)h << 16); }
static uint32_t check_word(uint32_t i) { return i * 0x10001u; }

/* ---- one number ---- */

static void check_exact(uint32_t bits, const char *what) { /* BF16 has it */
    uint32_t i;
    lab_doing("bf16_stochastic(%g, word)", (double)check_value(bits));
    for (i = 0; i < 65536; i++) {
        uint16_t y = bf16_stochastic(check_value(bits), check_word(i));
        if (y == bits >> 16) continue;
        lab_wrong("%g becomes %g (%04x) with the word 0x%08x: %s", (double)check_value(bits), check_bf16(y),
            (unsigned)y, (unsigned)check_word(i), what);
    }
}
static void check_nan(uint32_t bits) {
    uint32_t i;
    lab_doing("bf16_stochastic(NaN, word)");
    for (i = 0; i < 65536; i++) {
        uint16_t y = bf16_stochastic(check_value(bits), check_word(i));
        if ((y & 0x7fffu) > 0x7f80u && (uint32_t)y >> 15 == bits >> 31) continue;
        if ((y & 0x7fffu) > 0x7f80u)
            lab_wrong("the NaN 0x%08x becomes the NaN 0x%04x: its sign stays", (unsigned)bits, (unsigned)y);
        lab_wrong("the NaN 0x%08x becomes %g with the word 0x%08x: a NaN must stay a NaN", (unsigned)bits,
            check_bf16(y), (unsigned)check_word(i));
    }
}

static const char *check_why(uint32_t low, uint32_t up) {
    if (up == 0) return "it cuts off, rounds to nearest, or the noise has too few bits";
    if (up == 65536) return "it rounds away from zero, whatever the word";
    if (up == low + 1) return "one word too many: up if noise + cut-off bits reach 65536, and not before";
    if (up + 1 == low) return "one word too few: up if noise + cut-off bits reach 65536";
    if (up + low == 65536) return "the two directions are exchanged";
    if (up == (low + 32768) % 65536) return "after the noise the rest is cut off, not rounded to nearest";
    return "each of the 16 bits that are cut off needs one random bit, and no other bit gets one";
}
static void check_share(uint32_t bits) {
    uint32_t i, up = 0, low = bits & 0xffffu;
    uint16_t down = (uint16_t)(bits >> 16);
    float x = check_value(bits);
    lab_doing("bf16_stochastic(%.9g, word)", (double)x);
    for (i = 0; i < 65536; i++) {
        uint16_t y = bf16_stochastic(x, check_word(i));
        if (y == down + 1) {
            up++;
        } else if (y != down) {
            lab_wrong(
                "%.9g becomes %g with the word 0x%08x, which is neither of the two neighbours %g and %g: the noise may "
                "reach only the 16 bits that are cut off",
                (double)x, check_bf16(y), (unsigned)check_word(i), check_bf16(down), check_bf16((uint16_t)(down + 1)));
        }
    }
    if (up == low) return;
    lab_wrong("%.9g must become %g with %u of 65536 words and %g with the others, and yours does with %u: %s",
        (double)x, check_bf16((uint16_t)(down + 1)), (unsigned)low, check_bf16(down), (unsigned)up, check_why(low, up));
}

/* Numbers that nobody can know before, drawn by the clock. */
static void check_fresh(void) {
    uint32_t state = (uint32_t)time(NULL), i, k, up;
    lab_doing("bf16_stochastic of numbers that are drawn anew");
    for (k = 0; k < 8; k++) {
        uint32_t bits, low;
        state = state * 1664525u + 1013904223u;
        bits = (state & 0x80ffffffu) | (64u + k * 16u) << 23;
        low = bits & 0xffffu;
        for (i = 0, up = 0; i < 65536; i++)
            up += (uint32_t)bf16_stochastic(check_value(bits), check_word(i)) - (bits >> 16);
        if (up != low)
            lab_wrong("a number that is drawn anew goes up with too many words or too few, and those before did not: "
                      "one rule must hold for all numbers");
    }
}

/* ---- an array ---- */

enum { CHECK_N = 1024, CHECK_MOST = 5000 };

typedef struct check_piece { /* what is asked for */
    size_t n, first;
    uint64_t seed, step;
} check_piece;

static uint64_t check_step(const check_piece *p) { return p->step + LAB10_OFFSET; } /* 0, or of a class's variant */
static uint32_t check_right(const check_piece *p, size_t i) { return amp_random(p->seed, check_step(p), p->first + i); }
static uint32_t check_no_first(const check_piece *p, size_t i) { return amp_random(p->seed, check_step(p), i); }
static uint32_t check_no_step(const check_piece *p, size_t i) { return amp_random(p->seed, 0, p->first + i); }
static uint32_t check_no_seed(const check_piece *p, size_t i) { return amp_random(0, check_step(p), p->first + i); }
static uint32_t check_added(const check_piece *p, size_t i) {
    return amp_random(p->seed, 0, check_step(p) + p->first + i);
}
static uint32_t check_pairs(const check_piece *p, size_t i) {
    return amp_random(p->seed, check_step(p), (p->first + i) / 2);
}
static uint32_t check_one(const check_piece *p, size_t i) {
    return amp_random(p->seed, check_step(p), p->first + i * 0);
}
static uint32_t check_swapped(const check_piece *p, size_t i) {
    return amp_random(p->seed, p->first + i, check_step(p));
}

typedef struct check_words {
    uint32_t (*of)(const check_piece *p, size_t i);
    const char *sentence;
} check_words;

/* clang-format off */
static const check_words check_mistakes[] = {
    {check_one, "all elements share one word, so they all err to the same side"},
    {check_pairs, "two neighbours share a word, so they err to the same side"},
    {check_no_first, "each piece begins with the words of element 0 again: element first + i takes its own"},
    {check_no_step, "each step takes the same words again, so an element errs to the same side for ever"},
    {check_added, "element e has in step t + 1 the word of element e + 1 in step t: step and e are two arguments"},
    {check_no_seed, "the seed has no effect"},
    {check_swapped, "step and element are exchanged: the step is amp_random's second argument"},
};
/* clang-format on */

static float check_x[CHECK_MOST];
static uint16_t check_y[CHECK_MOST];

static int check_is(const check_piece *p, uint32_t (*word)(const check_piece *p, size_t i)) {
    size_t i;
    for (i = 0; i < p->n; i++)
        if (check_y[i] != bf16_stochastic(check_x[i], word(p, i))) return 0;
    return 1;
}
static void check_array(size_t n, size_t first, uint64_t seed, uint64_t step) {
    check_piece p;
    size_t i;
    const char *why = "element e takes the word amp_random(seed, step, e), and nothing that was called before counts";
    p.n = n;
    p.first = first;
    p.seed = seed;
    p.step = step;
    lab_doing("round_piece with n %d, first %d", (int)n, (int)first);
    for (i = 0; i < CHECK_MOST; i++)
        check_y[i] = 0xfefe;
    round_piece(check_y, check_x, n, first, seed, step);
    for (i = n; i < CHECK_MOST; i++)
        if (check_y[i] != 0xfefe) lab_wrong("with n %d, y[%d] was written", (int)n, (int)i);
    if (check_is(&p, check_right)) return;
    for (i = 0; i < sizeof check_mistakes / sizeof *check_mistakes; i++)
        if (check_is(&p, check_mistakes[i].of)) {
            why = check_mistakes[i].sentence;
            break;
        }
    for (i = 0; check_y[i] == bf16_stochastic(check_x[i], check_right(&p, i)); i++) {
    }
    if (check_y[i] == 0xfefe) why = "nobody wrote it";
    lab_wrong("with n %lu, first %lu, seed %llu, step %llu, y[%lu] is %g and must be %g: %s", (unsigned long)n,
        (unsigned long)first, (unsigned long long)seed, (unsigned long long)step, (unsigned long)i,
        check_bf16(check_y[i]), check_bf16(bf16_stochastic(check_x[i], check_right(&p, i))), why);
}

/* 1024 weights of 1 get 4096 updates of 2^-12 each. To nearest, each stays 1. The mean must end near 2: one rounding
   errs by at most half a spacing of 2^-7 (standard deviation), so the mean of all by 2^-8 * sqrt(4096 / 1024); times
   5 here. */
static double check_training(void) {
    static float weight[CHECK_N];
    size_t i;
    int step;
    double mean = 0;
    lab_doing("round_piece in training");
    for (i = 0; i < CHECK_N; i++)
        weight[i] = 1;
    for (step = 0; step < 4096; step++) {
        for (i = 0; i < CHECK_N; i++)
            weight[i] += 1.0f / 4096;
        round_piece(check_y, weight, CHECK_N, 0, 11, (uint64_t)step);
        for (i = 0; i < CHECK_N; i++)
            weight[i] = (float)check_bf16(check_y[i]);
    }
    for (i = 0; i < CHECK_N; i++)
        mean += (double)weight[i] / CHECK_N;
    if (fabs(mean - 2) > 5.0 / 128)
        lab_wrong(
            "1024 weights of 1 with 4096 updates of 2^-12 end at %.4f in the mean, and it must be 2 +- 0.04", mean);
    return mean;
}

int main(void) {
    static const uint32_t exact[] = {0x3f800000, 0x00000000, 0x80000000, 0xc0200000, 0x00010000, 0x7f7f0000};
    static const uint32_t between[] = {0x3f803000, 0x3f80c000, 0x3f808000, 0x3f800001, 0x3f80ffff, 0xbf804000,
        0xc123a5f0, 0x3fff8001, 0x00008123, 0x007fc000, 0x7f7f4000};
    static const uint32_t nans[] = {0x7fc00000, 0x7f800001, 0x7fffffff, 0xff80ffff, 0xffffffff};
    size_t i;
    double mean;
    lab_begin();
    (void)bf16_stochastic(1.0f, 0); /* what an unfinished file says first */
    for (i = 0; i < sizeof between / sizeof *between; i++)
        check_share(between[i]);
    for (i = 0; i < sizeof exact / sizeof *exact; i++)
        check_exact(exact[i], "BF16 has this number, so no word may change it");
    check_exact(0x7f800000, "Inf stays Inf");
    check_exact(0xff800000, "-Inf stays -Inf");
    for (i = 0; i < sizeof nans / sizeof *nans; i++)
        check_nan(nans[i]);
    check_fresh();
    for (i = 0; i < CHECK_MOST; i++)
        check_x[i] = 1.0f + (float)(i + 1) / 140000.0f;
    check_array(1000, 0, 3, 0);
    check_array(1000, 0, 3, 1);
    check_array(500, 300, 3, 1);
    check_array(500, 300, 4, 2);
    check_array(0, 0, 4, 2);
    check_array(1000, 0, 3, 0); /* again: the same */
    check_array(5000, 0, 3, 1);
    check_array(1000, 70000, 3, 1); /* large weights, long runs, seeds of 64 bits: no argument is cut */
    check_array(1000, 4000000000u, 3, 1);
    check_array(1000, 0, 3, 70000);
    check_array(1000, 0, 3, (uint64_t)1 << 40);
    check_array(1000, 0, 300, 1);
    check_array(1000, 0, (uint64_t)1 << 40 | 3, 1);
    mean = check_training();
    lab_passed(
        "unbiased over all 65536 words; 1024 weights of 1 with 4096 updates of 2^-12 end at %.3f, and to nearest "
        "they would stay 1",
        mean);
    return 0;
}
