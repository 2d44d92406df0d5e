/* test_product_table.c - each row of docs/products.md: PyTorch's products by amp_gemm.  Guards: >>products.

   A row names the dimensions of its arrays by letters, so the reference is one loop over all letters, in double: it
   knows nothing of transposes, leading dimensions, strides or batches. The bound is that of amp.h; where several calls
   add up in out, each call's. */
#include "product_table.h"
#include "ref.h"

#define EPS ref_eps(t)

typedef struct setting { /* what the code of a row sees */
    amp_ctx *ctx;
    size_t m, n, k, b, c, ldx, ldy, ldo, sx;
    float alpha, beta;
    amp_array x, y, in, out;
    float used_alpha, used_beta; /* what the row says */
    size_t calls;
} setting;

typedef struct row {
    const char *name, *x, *y, *in, *out, *beta, *calls;
    int relu;
    amp_status (*run)(setting *s);
} row;

static amp_array at(amp_array a, size_t element) {
    a.data = (char *)a.data + element * amp_dtype_size(a.dtype);
    return a;
}

#define BASE(code) code
#define RUN(name, torch, alpha_, x_, y_, beta_, in_, relu_, out_, calls_, code) \
    static amp_status run_##name(setting *s) { \
        size_t m = s->m, n = s->n, k = s->k, b = s->b, c = s->c, ldx = s->ldx, ldy = s->ldy, ldo = s->ldo, sx = s->sx, \
               i; \
        float alpha = s->alpha, beta = s->beta; \
        amp_array x = s->x, y = s->y, in = s->in, out = s->out; \
        amp_status st = AMP_OK; \
        s->used_alpha = alpha_; \
        s->used_beta = beta_; \
        s->calls = calls_; \
        for (i = 0; st == AMP_OK && i < s->calls; i++) { \
            amp_gemm_desc g = AMP_ZERO; \
            PRODUCT_BASE(BASE); \
            code; \
            st = amp_gemm(s->ctx, &g); \
        } \
        (void)b; \
        (void)c; \
        (void)ldx; \
        (void)ldy; \
        (void)ldo; \
        (void)sx; \
        (void)alpha; \
        (void)beta; \
        (void)in; \
        return st; \
    }
PRODUCT_TABLE(RUN)
#undef RUN

/* ---- arrays by letters ---- */

static const char letters[] = "cbmnk1";
enum { LETTERS = 6, MOST_DIMS = 5 };

typedef struct tensor {
    size_t dims, letter[MOST_DIMS], step[MOST_DIMS], span;
} tensor; /* span: elements it takes in memory */

static size_t letter_of(char c) { return (size_t)(strchr(letters, c) - letters); }

static tensor layout(const char *spec, const size_t *size, size_t slack) {
    tensor a;
    size_t room[MOST_DIMS], d;
    memset(&a, 0, sizeof a);
    for (; *spec; spec++) {
        if (*spec == '+') {
            room[a.dims - 1] += slack;
            continue;
        }
        a.letter[a.dims] = letter_of(*spec);
        room[a.dims] = size[a.letter[a.dims]];
        a.dims++;
    }
    a.span = 1;
    for (d = a.dims; d-- > 0; a.span *= room[d])
        a.step[d] = a.span;
    return a;
}
static size_t offset(const tensor *a, const size_t *index) {
    size_t d, o = 0;
    for (d = 0; d < a->dims; d++)
        o += index[a->letter[d]] * a->step[d];
    return o;
}
static int has(const char *spec, size_t letter) { return strchr(spec, letters[letter]) != NULL; }
static size_t between_rows(const tensor *a) { return a->dims > 1 ? a->step[a->dims - 2] : 1; }

/* index: the next combination of the letters that spec has (those before: of which `in` is 1); 0 when there is none */
static int next(size_t *index, const size_t *size, const char *spec, int in) {
    size_t l;
    for (l = 0; l < LETTERS; l++) {
        if (has(spec, l) != in) continue;
        if (++index[l] < size[l]) return 1;
        index[l] = 0;
    }
    return 0;
}

/* NaN also in the gaps of a slice, which nobody may read. */
static void *fill(t_run *t, const tensor *a, amp_dtype type, int nan) {
    unsigned char *x = (unsigned char *)t_host(t, a->span * amp_dtype_size(type));
    size_t i;
    for (i = 0; i < a->span; i++)
        amp_store(x, type, i, nan ? ref_f32(0x7fc00000) : t_real(t));
    return x;
}
static void *fill_letters(t_run *t, const tensor *a, amp_dtype type, const size_t *size, const char *spec) {
    void *x = fill(t, a, type, 1);
    size_t index[LETTERS] = {0, 0, 0, 0, 0, 0};
    do
        amp_store(x, type, offset(a, index), t_real(t));
    while (next(index, size, spec, 1));
    return x;
}

static void check_row(t_run *t, const row *r) {
    static const amp_dtype types[3] = {AMP_F32, AMP_F16, AMP_BF16};
    static const float alphas[4] = {1.0f, -0.5f, 3.0f, 0.25f}, betas[4] = {0.0f, 1.0f, -0.75f, 0.5f};
    int round, rounds = t_rounds(t, 15, 300, 3, 20);
    uint32_t longest = t_slow(t) ? 12 : 24;
    for (round = 0; round < rounds; round++) {
        setting s;
        size_t size[LETTERS], given[LETTERS], index[LETTERS], l, bytes, terms = 1, slack = 1 + t_below(t, 9), i;
        tensor x, y, in, out;
        amp_dtype type = types[round < 3 ? (uint32_t)round : t_below(t, 3)], type_out = t_below(t, 2) ? AMP_F32 : type,
                  type_in = type_out;
        int in_place = strcmp(r->in, "=") == 0, bias = r->in[0] && strcmp(r->beta, "1") == 0, adds_up = 0;
        const char *spec_in = in_place ? r->out : r->in;
        void *hx, *hy, *hin = NULL;
        unsigned char *before, *got, *written;
        char used[32];
        memset(&s, 0, sizeof s);
        for (l = 0; l < LETTERS; l++)
            size[l] = 1 + t_below(t, l < 2 ? 3u : longest);
        size[letter_of('1')] = 1;
        snprintf(used, sizeof used, "%s%s", r->x, r->y);
        for (l = 0; l < LETTERS; l++) {
            given[l] = has(used, l) ? size[l] : 1 + t_below(t, 9); /* a letter that the row lacks may have any value */
            if (!has(used, l)) size[l] = 1;
            if (!has(r->out, l)) terms *= size[l];
            if (letters[l] != '1' && has(r->calls, l) && !has(r->out, l))
                adds_up = 1; /* calls that add to one element */
        }
        x = layout(r->x, size, slack);
        y = layout(r->y, size, slack);
        in = layout(spec_in, size, slack);
        out = layout(r->out, size, slack);
        s.ctx = t->ctx;
        s.c = given[0];
        s.b = given[1];
        s.m = given[2];
        s.n = given[3];
        s.k = given[4];
        s.ldx = between_rows(&x);
        s.ldy = between_rows(&y);
        s.ldo = between_rows(&out);
        s.sx = x.dims ? x.step[0] : 1;
        s.alpha = alphas[t_below(t, 4)];
        s.beta = betas[round < 4 ? (uint32_t)round : t_below(t, 4)];
        if (bias) type_in = types[t_below(t, 3)];
        t_note(t, "round %d: %s -> %s, c %d b %d m %d n %d k %d, alpha %g, beta %g", round, amp_dtype_name(type),
            amp_dtype_name(type_out), (int)s.c, (int)s.b, (int)s.m, (int)s.n, (int)s.k, (double)s.alpha,
            (double)s.beta);

        hx = fill_letters(t, &x, type, size, r->x);
        hy = fill_letters(t, &y, type, size, r->y);
        s.x = amp_arrn(t_put(t, hx, x.span * amp_dtype_size(type)), type, x.span);
        s.y = amp_arrn(t_put(t, hy, y.span * amp_dtype_size(type)), type, y.span);
        bytes = out.span * amp_dtype_size(type_out);
        before = (unsigned char *)fill(t, &out, type_out, 1);
        if (spec_in[0]) { /* with beta 0 it is not read: NaN in it is harmless, in PyTorch too */
            hin = bias || s.beta != 0.0f ? fill_letters(t, &in, type_in, size, spec_in) : fill(t, &in, type_in, 1);
            if (in_place)
                memcpy(before, hin, bytes);
            else
                s.in = amp_arrn(t_put(t, hin, in.span * amp_dtype_size(type_in)), type_in, in.span);
        }
        s.out = amp_arrn(t_put(t, before, bytes), type_out, out.span);
        if (!CHECK_OK(r->run(&s))) {
            t_clear(t);
            continue;
        }
        got = (unsigned char *)t_host(t, bytes);
        written = (unsigned char *)t_host(t, out.span);
        t_get(t, got, s.out.data, bytes);

        memset(index, 0, sizeof index);
        do { /* every element of out; inside, the sum over the other letters */
            double sum = 0, mag = 0, extra = 0, exact, result, bound;
            size_t o = offset(&out, index);
            do {
                double p =
                    (double)amp_load(hx, type, offset(&x, index)) * (double)amp_load(hy, type, offset(&y, index));
                sum += p;
                mag += fabs(p);
            } while (next(index, size, r->out, 0));
            exact = (double)s.used_alpha * sum;
            mag *= fabs((double)s.used_alpha);
            if (hin && s.used_beta != 0.0f) {
                double v = (double)s.used_beta * (double)amp_load(hin, type_in, offset(&in, index));
                exact += v;
                mag += fabs(v);
                if (bias && t->place->kind == T_KIND_CUDA && type_out != AMP_F32) { /* both may be rounded first */
                    extra = ref_half_ulp(1.01 * (double)s.used_alpha * sum, type_out);
                    if (type_in != type_out) extra += ref_half_ulp(v, type_out);
                }
            }
            if (r->relu) exact = ref_act(AMP_RELU, exact);
            result = (double)amp_load(got, type_out, o);
            bound = extra + 1.000001 * fmax(ref_half_ulp(exact, type_out), ref_half_ulp(result, type_out));
            if (!adds_up)
                bound += ((double)terms + 4) * EPS * mag;
            else
                bound = (double)s.calls * (bound + ref_half_ulp(mag, type_out) + ((double)terms + 4) * EPS * 2 * mag);
            if (!(fabs(result - exact) <= bound)) {
                t_check(t, 0, __FILE__, __LINE__, "element %d is %.9g, should be %.9g +- %.3g", (int)o, result, exact,
                    bound);
                goto done;
            }
            written[o] = 1;
        } while (next(index, size, r->out, 1));
        for (i = 0; i < out.span; i++) /* the gaps of a slice stay as they were */
            if (!written[i] &&
                memcmp(got + i * amp_dtype_size(type_out), before + i * amp_dtype_size(type_out),
                    amp_dtype_size(type_out)) != 0) {
                t_check(t, 0, __FILE__, __LINE__, "element %d is not part of the result, but was written", (int)i);
                break;
            }
        CHECK(1);
    done:
        t_clear(t);
    }
}

#define TEST(name, torch, alpha_, x_, y_, beta_, in_, relu_, out_, calls_, code) \
    static void test_##name(t_run *t) { \
        static const row r = {#name, x_, y_, in_, out_, #beta_, #calls_, relu_, run_##name}; \
        check_row(t, &r); \
    }
PRODUCT_TABLE(TEST)
#undef TEST

#define ENTRY(name, torch, alpha_, x_, y_, beta_, in_, relu_, out_, calls_, code) \
    {"product." #name, test_##name, T_ALL},
const t_test t_suite_product_table[] = {PRODUCT_TABLE(ENTRY){NULL, NULL, 0}};
