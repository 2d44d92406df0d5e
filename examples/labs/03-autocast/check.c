/* check.c - the checker of lab 3. It reads answers.txt, and asks amp itself what is right: the model's two products run
 * in an autocast region, the other operations are looked up there, and the sums are added up. */
#include "amp.h"
#include "lab.h"
#include <ctype.h>

#define CHECK_QUESTIONS 20

typedef struct check_truth {
    const char *kind; /* dtype, number, word */
    amp_dtype dtype;
    double number;
    const char *word;
} check_truth;

static char check_answers[CHECK_QUESTIONS + 1][40]; /* "" : no such line */
static char check_why[400];                         /* the sentence */
static check_truth check_right[CHECK_QUESTIONS + 1];

/* What a wrong answer should make one think of; it does not say the right one. */
static const char *const check_hints[CHECK_QUESTIONS + 1] = {"",
    "autocast casts operands where they are used, and does not touch what is stored",
    "a linear layer is a product, and products are what Tensor Cores are for",
    "relu is on no list: it computes in the dtype of what it gets",
    "a norm adds up squares, and autocast has a list for that",
    "fc2 is a product too; its operands are cast, whatever they were",
    "cross_entropy has a logarithm, exponentials and a sum in it",
    "a gradient has the dtype of the thing that it is the gradient of",
    "a gradient has the dtype of the thing that it is the gradient of",
    "where dtypes meet in an addition the wider one wins, and nothing is lost",
    "exponentials and a sum: on which list is it?",
    "nothing is cast in a disabled region: a product computes in the dtype of its operands",
    "the region says which 16-bit format products get",
    "the list of operations does not depend on which 16-bit format the region has",
    "the addend is no float, and each of the thousand additions rounds a little: the sum is not exact",
    "the larger the sum, the further apart are halves: the addend is rounded to a multiple of that distance",
    "the addend as a half is another number, and an FP32 sum adds that up faithfully",
    "from 65520 on a half is Inf; the square of what reaches it?", "BF16 has the 8 exponent bits of a float",
    "a BF16 number stores 7 bits of mantissa", "which of the two has 5 bits of exponent?"};

/* ---- what is right ---- */

static void check_is_dtype(int question, amp_dtype t) {
    check_right[question].kind = "dtype";
    check_right[question].dtype = t;
}
static void check_is_number(int question, double x) {
    check_right[question].kind = "number";
    check_right[question].number = x;
}
static void check_is_word(int question, const char *word) {
    check_right[question].kind = "word";
    check_right[question].word = word;
}

static void check_ok(amp_ctx *ctx, amp_status status) {
    if (status != AMP_OK) lab_wrong("the checker itself fails: %s", amp_last_error(ctx));
}

/* The dtype that a product of FP32 arrays gets in the open region. */
static amp_dtype check_product(amp_ctx *ctx, amp_dtype stored) {
    static float x[16], w[16], y[16];
    amp_precision record = AMP_ZERO;
    amp_linear_desc l = AMP_ZERO;
    l.rows = l.in = l.out = 4;
    l.x = amp_arr(x, stored);
    l.w = amp_arr(w, stored);
    l.y = amp_arr(y, AMP_AUTO);
    l.record = &record;
    check_ok(ctx, amp_linear_forward(ctx, &l));
    return record.y;
}

static void check_region(amp_ctx *ctx, amp_dtype low, int product, int norm) {
    amp_autocast_desc region = AMP_ZERO;
    region.low = low;
    check_ok(ctx, amp_autocast_begin(ctx, &region));
    check_is_dtype(product, check_product(ctx, AMP_F32));
    check_is_dtype(norm, amp_autocast_output(ctx, AMP_OP_LAYER_NORM, low));
    if (product == 2) {
        amp_autocast_desc inside = AMP_ZERO;
        check_is_dtype(3, amp_autocast_output(ctx, AMP_OP_RELU, check_right[2].dtype));
        check_is_dtype(5, check_product(ctx, check_right[4].dtype));
        check_is_dtype(6, amp_autocast_output(ctx, AMP_OP_CROSS_ENTROPY, check_right[5].dtype));
        check_is_dtype(9, amp_autocast_output(ctx, AMP_OP_ADD, AMP_F32));
        check_is_dtype(10, amp_autocast_output(ctx, AMP_OP_SOFTMAX, AMP_F16));
        inside.disabled = 1;
        check_ok(ctx, amp_autocast_begin(ctx, &inside));
        check_is_dtype(11, check_product(ctx, AMP_F16));
        check_ok(ctx, amp_autocast_end(ctx));
    }
    check_ok(ctx, amp_autocast_end(ctx));
}

static float check_half(float x) { return amp_f32_from_f16(amp_f16_from_f32(x)); }

static void check_sums(void) {
    float wide = 0, half = 0, mixed = 0, addend = (float)LAB3_ADDEND;
    int i, n = 1;
    for (i = 0; i < 1000; i++) {
        wide += addend;
        half = check_half(half + check_half(addend));
        mixed += check_half(addend);
    }
    while (amp_is_finite(check_half((float)(n * n))))
        n++;
    check_is_number(14, (double)wide);
    check_is_number(15, (double)half);
    check_is_number(16, (double)mixed);
    check_is_number(17, n);
    check_is_word(18, amp_is_finite(amp_f32_from_bf16(amp_bf16_from_f32((float)(n * n)))) ? "yes" : "no");
    for (n = 1; amp_f32_from_bf16(amp_bf16_from_f32(1 + ldexpf(1, -n))) > 1; n++)
        ;
    check_is_number(19, n);
}

static void check_truths(void) {
    amp_ctx *ctx;
    check_ok(NULL, amp_cpu_create(&ctx, NULL));
    check_is_dtype(1, AMP_F32); /* an autocast region never changes what is stored */
    check_region(ctx, LAB3_BF16 ? AMP_BF16 : AMP_F16, 2, 4);
    check_region(ctx, LAB3_BF16 ? AMP_F16 : AMP_BF16, 12, 13);
    check_is_dtype(7, check_right[1].dtype);
    check_is_dtype(8, check_right[5].dtype);
    check_sums();
    check_is_dtype(20, AMP_F16); /* 2^-24 is its smallest number; BF16 has the range of a float */
    amp_ctx_destroy(ctx);
}

/* ---- what is answered ---- */

/* The line "why: ...": 1 if it is one. */
static int check_read_why(char *line, int at) {
    size_t i;
    if (strncmp(line, "why:", 4) != 0) return 0;
    line += 4 + strspn(line + 4, " \t");
    line[strcspn(line, "\r\n")] = 0;
    if (strcmp(line, "?") == 0) lab_wrong("answers.txt:%d: the sentence after why: is still to be written", at);
    if (check_why[0]) lab_wrong("answers.txt:%d: a second line with why:", at);
    for (i = 0; line[i]; i++)
        check_why[i] = (char)tolower((unsigned char)line[i]);
    return 1;
}

static void check_read(void) {
    char line[sizeof check_why], word[40];
    int question, at = 0;
    FILE *f = fopen(LAB_ANSWERS, "r");
    if (!f) lab_wrong("there is no answers.txt");
    while (fgets(line, sizeof line, f)) {
        at++;
        if (line[0] == '#' || strspn(line, " \t\r\n") == strlen(line) || check_read_why(line, at)) continue;
        if (sscanf(line, "%d : %39s", &question, word) != 2 || question < 1 || question > CHECK_QUESTIONS) {
            line[strcspn(line, "\r\n")] = 0;
            lab_wrong("answers.txt:%d: \"%.40s\" is no answer; write the number of the question, a colon, one word", at,
                line);
        }
        if (strcmp(word, "?") == 0)
            lab_wrong("answers.txt:%d: the answer to question %d is still to be written", at, question);
        if (check_answers[question][0]) lab_wrong("answers.txt:%d: a second answer to question %d", at, question);
        strcpy(check_answers[question], word);
    }
    fclose(f);
}

static amp_dtype check_dtype_of(const char *word) {
    static const struct {
        const char *word;
        amp_dtype dtype;
    } names[] = {{"f32", AMP_F32}, {"fp32", AMP_F32}, {"float32", AMP_F32}, {"float", AMP_F32}, {"f16", AMP_F16},
        {"fp16", AMP_F16}, {"float16", AMP_F16}, {"half", AMP_F16}, {"bf16", AMP_BF16}, {"bfloat16", AMP_BF16}};
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(word, names[i].word) == 0) return names[i].dtype;
    return AMP_AUTO;
}

static int check_is_right(int question, const char *answer) {
    const check_truth *t = &check_right[question];
    char *end;
    if (strcmp(t->kind, "dtype") == 0) {
        if (check_dtype_of(answer) == AMP_AUTO)
            lab_wrong("question %d: \"%s\" is no dtype: write f32, f16 or bf16", question, answer);
        return check_dtype_of(answer) == t->dtype;
    }
    if (strcmp(t->kind, "word") == 0) return strcmp(answer, t->word) == 0;
    if (fabs(strtod(answer, &end) - t->number) >= 0.001) return 0;
    if (*end) lab_wrong("question %d: \"%s\" is no number", question, answer);
    return 1;
}

/* ---- the sentence ---- */

static int check_words(const char *text) {
    int n = 0;
    for (text += strspn(text, " \t"); *text; text += strspn(text, " \t")) {
        text += strcspn(text, " \t");
        n++;
    }
    return n;
}
static int check_names_one(const char *const *words) {
    for (; *words; words++)
        if (strstr(check_why, *words)) return 1;
    return 0;
}

/* Tries do not help: what is missing is said, not the word for it, and a teacher reads the sentence. */
static void check_sentence(void) {
    static const char *const computes[] = {
        "mean", "average", "variance", "square", "sum", "adds", "add up", "subtract", "difference", "deviation", NULL};
    static const char *const lacks[] = {"precis", "accura", "round", "significant", "mantissa", "fraction bit",
        "coarse", "spacing", "apart", "swamp", "resolution", "8 bits", "7 bits", "cancel", NULL};
    if (!check_why[0]) lab_wrong("there is no line that begins with why:");
    if (check_words(check_why) < 8) lab_wrong("why: a sentence has at least eight words");
    if (!check_names_one(computes)) lab_wrong("why: the sentence does not say what a layer norm computes from its row");
    if (!check_names_one(lacks))
        lab_wrong("why: the sentence does not say what the 16 bits of BF16 are short of; question 19 is about that");
}

int main(void) {
    int q;
    size_t i;
    lab_begin();
    check_read();
    check_truths();
    for (q = 1; q <= CHECK_QUESTIONS; q++) {
        char *answer = check_answers[q];
        for (i = 0; answer[i]; i++)
            answer[i] = (char)tolower((unsigned char)answer[i]);
        if (!answer[0]) lab_wrong("there is no answer to question %d", q);
        if (!check_is_right(q, answer)) lab_wrong("question %d: not %s: %s", q, answer, check_hints[q]);
    }
    check_sentence();
    lab_passed("all 20 answers are what amp itself does; the sentence is for a person to read");
    return 0;
}
