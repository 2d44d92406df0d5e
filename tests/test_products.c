/* test_products.c - amp_gemm, amp_linear_*, amp_softmax_cross_entropy.  Guards: >>products.

   Products are compared with sums in double and must keep the bound that amp.h states:
   |d - exact| <= (k + 4) * 2^-24 * (|alpha| sum |a||b| + |beta c| + |bias|) + half a unit in the last place of d,
   with 2^-23 on CUDA. With AMP_GEMM_ORDERED they must be the bits of ref_ordered_sum's six lines and the epilogue. */
#include "set.h"

#define EPS ref_eps(t)

static size_t pick_size(t_run *t) {
    static const size_t list[] = {1, 2, 3, 5, 8, 17, 33, 64, 100};
    return list[t_below(t, t_slow(t) ? 7 : 9)];
}

/* Rows x cols numbers of dtype with leading dimension ld, `count` elements in all, the gaps filled with NaN: nobody may
   read them. */
static void *matrix(
    t_run *t, amp_dtype type, size_t count, size_t batch, size_t stride, size_t rows, size_t ld, size_t cols) {
    size_t size = amp_dtype_size(type), b, r, c;
    unsigned char *x = (unsigned char *)t_host(t, count * size);
    memset(x, 0xff, count * size); /* NaN in every format */
    for (b = 0; b < batch; b++)
        for (r = 0; r < rows; r++)
            for (c = 0; c < cols; c++)
                amp_store(x, type, b * stride + r * ld + c, t_real(t));
    return x;
}

static size_t span(size_t batch, size_t stride, size_t rows, size_t ld, size_t cols) {
    return rows && cols ? (batch - 1) * stride + (rows - 1) * ld + cols : 0;
}

/* One element may be off by the bound; beyond that it says where. */
static int check_element(t_run *t, double got, double exact, double magnitude, size_t k, amp_dtype type, double extra,
    size_t b, size_t i, size_t j) {
    double half = fmax(ref_half_ulp(exact, type), ref_half_ulp(got, type));
    double bound = ((double)k + 4.0) * EPS * magnitude * 1.13 /* slope of GELU */ + extra + half * 1.000001;
    if (fabs(got - exact) <= bound) return 1;
    return t_check(t, 0, __FILE__, __LINE__, "batch %d, row %d, column %d is %.9g, should be %.9g +- %.3g", (int)b,
        (int)i, (int)j, got, exact, bound);
}

/* ---- a grid of random products: every dtype, layout, epilogue and number that amp_gemm takes ---- */

/* The matrices of all batches as they lie in memory, `stride` elements apart; 0: the same one for all. */
typedef struct grid_matrix {
    amp_dtype type;
    size_t rows, cols, ld, stride;
    unsigned char *host;
} grid_matrix;

static double at(const grid_matrix *x, size_t b, size_t row, size_t col) {
    return (double)amp_load(x->host, x->type, b * x->stride + row * x->ld + col);
}
static size_t elements(const grid_matrix *x, size_t batch) { return span(batch, x->stride, x->rows, x->ld, x->cols); }
static size_t bytes_of(const grid_matrix *x, size_t batch) { return elements(x, batch) * amp_dtype_size(x->type); }

/* Random numbers, or NaN everywhere: what nobody may read. */
static void fill_matrix(t_run *t, grid_matrix *x, size_t batch, int poisoned) {
    size_t matrices = x->stride ? batch : 1;
    if (poisoned) matrices = 0;
    x->host = (unsigned char *)matrix(t, x->type, elements(x, batch), matrices, x->stride, x->rows, x->ld, x->cols);
}

typedef enum use_of_c { NO_C, C_IS_D, OWN_C, D_AS_C } use_of_c; /* D_AS_C: C is NULL, and there is a beta */

typedef struct grid_case {
    amp_gemm_desc g;
    grid_matrix a, b, c, d, aux; /* aux: what the forward product left, or what this one leaves */
    void *bias;
    size_t batch, odd; /* odd 0: aligned, no gaps, as Tensor Cores like it */
    int f8, grad;      /* grad: an activation's backward */
    int native;        /* an FP8 product as cuBLASLt has it */
    use_of_c use_c;
    double alpha, beta; /* with their factors on the device and the scales of a and b */
    float scale_d;
} grid_case;

static int is_f8(amp_dtype t) { return t == AMP_F8E4M3 || t == AMP_F8E5M2; }

static void grid_problem(t_run *t, grid_case *c) {
    static const amp_dtype outs[5] = {AMP_F32, AMP_F16, AMP_BF16, AMP_F32, AMP_F16};
    amp_gemm_desc *g = &c->g;
    int tensor;
    c->a.type = c->b.type = ref_dtypes[t_below(t, 5)];
    c->d.type = outs[t_below(t, 5)];
    g->m = pick_size(t);
    g->n = pick_size(t);
    g->k = pick_size(t);
    c->batch = t_below(t, 4) == 0 ? 1 + t_below(t, 3) : 1;
    c->use_c = (use_of_c)t_below(t, 4);
    tensor = (int)t_below(t, 2) || c->native;
    if (c->native) c->a.type = c->b.type = AMP_F8E4M3;
    c->odd = !tensor;
    c->f8 = is_f8(c->a.type);
    if (c->f8 && !c->native) c->b.type = t_below(t, 2) ? AMP_F8E4M3 : AMP_F8E5M2;
    if (!c->native && t_below(t, c->f8 ? 3 : 20) == 0) c->d.type = t_below(t, 2) ? AMP_F8E4M3 : AMP_F8E5M2;
    if (tensor) {
        g->m = 16 * (1 + t_below(t, 3));
        g->n = 16 * (1 + t_below(t, 3));
        g->k = 16 * (1 + t_below(t, 3));
        if (is_f8(c->d.type)) c->use_c = NO_C;
    }
    g->batch = c->batch == 1 && t_below(t, 2) ? 0 : c->batch;
    g->trans_b = 1;
    if (!tensor || !c->f8) {
        g->trans_a = t_below(t, 2);
        g->trans_b = t_below(t, 2);
    }
    g->act = (amp_act)t_below(t, 3);
    g->backward = t_below(t, 3) == 0;
    c->grad = g->backward && g->act != AMP_ACT_NONE;
}

/* A leading dimension: packed, which 0 says too, or with a gap. */
static size_t grid_ld(t_run *t, grid_matrix *x, size_t gap) {
    x->ld = x->cols + (t_below(t, 3) ? 0 : gap * t_below(t, 9));
    return x->ld == x->cols ? 0 : x->ld;
}

static void grid_layout(t_run *t, grid_case *c) {
    amp_gemm_desc *g = &c->g;
    uint32_t how;
    c->a.rows = g->trans_a ? g->k : g->m;
    c->a.cols = g->trans_a ? g->m : g->k;
    c->b.rows = g->trans_b ? g->n : g->k;
    c->b.cols = g->trans_b ? g->k : g->n;
    c->d.rows = g->m;
    c->d.cols = g->n;
    g->lda = grid_ld(t, &c->a, c->odd);
    g->ldb = grid_ld(t, &c->b, c->odd);
    g->ldd = grid_ld(t, &c->d, c->odd);
    c->a.stride = c->a.rows * c->a.ld;
    c->b.stride = c->b.rows * c->b.ld;
    c->d.stride = c->d.rows * c->d.ld;
    c->c = c->d;
    if (c->use_c == OWN_C) {
        c->c.ld = g->n + (t_below(t, 2) ? 0 : t_below(t, 5));
        c->c.stride = g->m * c->c.ld;
        if (c->c.ld != g->n) g->ldc = c->c.ld;
    }
    if (c->use_c == C_IS_D) g->ldc = g->ldd;
    if (c->batch == 1) return;
    how = t_below(t, 3);
    if (how == 1 && c->odd) { /* gaps between the batches */
        g->stride_a = c->a.stride += 5;
        g->stride_d = c->d.stride += 3;
        if (c->use_c != OWN_C) c->c.stride = c->d.stride;
        if (c->use_c == C_IS_D) g->stride_c = c->d.stride;
    }
    if (how == 2) { /* the same matrix for all */
        c->b.stride = 0;
        g->stride_b = AMP_BROADCAST;
        if (c->use_c != OWN_C) return;
        c->c.stride = 0;
        g->stride_c = AMP_BROADCAST;
    }
}

/* A factor on the device, one time in `rarely`; else none, and 1. */
static const float *grid_factor(t_run *t, int possible, uint32_t rarely, float x, double *into) {
    if (!possible || t_below(t, rarely) != 0) return NULL;
    *into *= (double)x;
    return (const float *)t_put(t, &x, 4);
}

static void grid_numbers(t_run *t, grid_case *c) {
    static const float scales[2] = {0.25f, 100.0f};
    const amp_optional no_number = AMP_ZERO;
    amp_gemm_desc *g = &c->g;
    double scale_d = 1;
    int beta_is_1;
    c->alpha = 1;
    if (t_below(t, 2)) { /* else not given: 1 */
        c->alpha = -0.5;
        if (t_below(t, 2) == 0) c->alpha = t_below(t, 4) ? 3.0 : 0.0;
        g->alpha = amp_opt((float)c->alpha);
    }
    c->beta = 0;
    if (c->use_c != NO_C) c->beta = t_below(t, 2) ? 1.0 : -0.75;
    if (c->use_c != NO_C || t_below(t, 2)) g->beta = amp_opt((float)c->beta);
    g->alpha_ptr = grid_factor(t, 1, 3, 0.375f, &c->alpha);
    beta_is_1 = c->beta == 1.0;
    g->beta_ptr = grid_factor(t, c->use_c != NO_C, 3, -1.5f, &c->beta);
    if (g->beta_ptr && beta_is_1 && t_below(t, 2)) g->beta = no_number; /* beside beta_ptr: 1 */
    g->scale_a = grid_factor(t, c->f8, 2, 0.5f, &c->alpha);
    g->scale_b = grid_factor(t, c->f8, 2, 1.7f, &c->alpha);
    g->scale_d = grid_factor(t, is_f8(c->d.type), 2, scales[t_below(t, 2)], &scale_d);
    c->scale_d = (float)scale_d;
    if (is_f8(c->d.type) && t_below(t, 2)) {
        float old = 1e30f;
        g->amax_d = (float *)t_put(t, &old, 4);
    }
    g->flags = t_below(t, 4) ? AMP_GEMM_EMULATE : 0;
    if (t_below(t, 4) == 0) g->flags |= AMP_GEMM_FAST_FP8;
    if (t_below(t, 3) == 0) g->flags |= AMP_GEMM_ORDERED;
    if (c->native) g->flags &= ~(AMP_GEMM_EMULATE | AMP_GEMM_ORDERED);
}

/* In context memory, aligned or up to two elements off. */
static amp_array grid_put(t_run *t, const grid_case *c, const grid_matrix *x) {
    size_t off = c->odd * amp_dtype_size(x->type) * t_below(t, 3);
    return amp_arrn(t_put_at(t, x->host, bytes_of(x, c->batch), off), x->type, elements(x, c->batch));
}

static void grid_operands(t_run *t, grid_case *c) {
    amp_gemm_desc *g = &c->g;
    int reads_d = c->use_c == C_IS_D || c->use_c == D_AS_C;
    fill_matrix(t, &c->a, c->batch, 0);
    fill_matrix(t, &c->b, c->batch, 0);
    fill_matrix(t, &c->d, c->batch, !reads_d);
    g->a = grid_put(t, c, &c->a);
    g->b = grid_put(t, c, &c->b);
    g->d = grid_put(t, c, &c->d);
    if (c->use_c == C_IS_D) g->c = g->d;
    if (reads_d) c->c.host = c->d.host;
    if (c->use_c == OWN_C) {
        fill_matrix(t, &c->c, c->batch, 0);
        g->c = amp_arr(t_put(t, c->c.host, bytes_of(&c->c, c->batch)), c->c.type);
    }
    if (!g->backward && t_below(t, 2)) {
        amp_dtype type = t_below(t, 2) ? AMP_F32 : c->d.type;
        const size_t size = amp_dtype_size(type), shift = t_below(t, 2) * size; /* it may begin anywhere */
        char *host = (char *)t_host(t, shift + g->n * size);
        c->bias = matrix(t, type, g->n, 1, 0, 1, g->n, g->n);
        memcpy(host + shift, c->bias, g->n * size);
        g->bias = amp_arr((char *)t_put(t, host, shift + g->n * size) + shift, type);
    }
    c->aux = c->d;
    c->aux.host = NULL;
    if (c->grad) {
        if (t_below(t, 3) == 0) c->aux.type = AMP_F32;
        fill_matrix(t, &c->aux, c->batch, 0);
        g->aux = amp_arr(t_put(t, c->aux.host, bytes_of(&c->aux, c->batch)), c->aux.type);
    } else if (!g->backward && t_below(t, 3) == 0) {
        if (is_f8(c->d.type) && t_below(t, 3)) c->aux.type = t_below(t, 2) ? AMP_BF16 : AMP_F16;
        g->aux = amp_arr(t_alloc(t, bytes_of(&c->aux, c->batch)), c->aux.type);
    }
    if (c->batch == 1 && c->d.ld == g->n && t_below(t, 3) == 0)
        g->dbias = amp_arr(t_alloc(t, 4 * g->n), t_below(t, 2) ? AMP_F32 : c->d.type);
}

static void grid_note(t_run *t, const grid_case *c, int round) {
    static const char *const act_names[3] = {"none", "relu", "gelu"};
    static const char *const c_names[4] = {"none", "d", "its own", "d by NULL"};
    const amp_gemm_desc *g = &c->g;
    t_note(t,
        "round %d: %s x %s -> %s, m %d n %d k %d, trans %d%d, batch %d, alpha %g, beta %g, c %s, act %s%s, flags %d",
        round, amp_dtype_name(c->a.type), amp_dtype_name(c->b.type), amp_dtype_name(c->d.type), (int)g->m, (int)g->n,
        (int)g->k, (int)g->trans_a, (int)g->trans_b, (int)c->batch, c->alpha, c->beta, c_names[c->use_c],
        act_names[g->act], g->backward ? "'" : "", (int)g->flags);
}

/* What one element must be, in double. */
typedef struct grid_element {
    double before, after; /* the activation */
    double magnitude;     /* of all that was added */
    double extra;         /* roundings that the bound does not have: of a bias, of what GELU's gradient multiplies */
} grid_element;

static grid_element exact_element(t_run *t, const grid_case *c, size_t b, size_t i, size_t j) {
    const amp_gemm_desc *g = &c->g;
    grid_element e = {0, 0, 0, 0};
    int rounds_first = t->place->kind == T_KIND_CUDA && c->d.type != AMP_F32;
    int short_sums = t->place->kind == T_KIND_CUDA && c->f8 && !(g->flags & AMP_GEMM_ORDERED);
    size_t l;
    for (l = 0; l < g->k; l++) {
        double x = g->trans_a ? at(&c->a, b, l, i) : at(&c->a, b, i, l);
        double y = g->trans_b ? at(&c->b, b, j, l) : at(&c->b, b, l, j);
        e.before += x * y;
        e.magnitude += fabs(x * y);
    }
    e.before *= c->alpha;
    e.magnitude *= fabs(c->alpha);
    if (short_sums) e.extra = 1.13 * ldexp(e.magnitude, -11); /* of FP8 on Tensor Cores */
    if (rounds_first && (c->bias || c->use_c != NO_C))
        e.extra += 1.13 * ref_half_ulp(e.before, c->d.type); /* where k is split */
    if (c->use_c != NO_C) {
        double x = c->beta * at(&c->c, b, i, j);
        e.before += x;
        e.magnitude += fabs(x);
    }
    if (c->bias) {
        double x = (double)amp_load(c->bias, g->bias.dtype, j);
        amp_dtype type = c->d.type; /* in which cuBLASLt reads a bias */
        if (c->f8) type = type == AMP_F16 ? AMP_F16 : AMP_BF16;
        if (rounds_first && c->use_c != NO_C) e.extra += 1.13 * ref_half_ulp(e.before, c->d.type); /* likewise */
        if (rounds_first && g->bias.dtype != type) e.extra += ref_half_ulp(x, type) * 1.13;
        e.before += x;
        e.magnitude += fabs(x);
    }
    if (c->grad) {
        double x = at(&c->aux, b, i, j), slope = g->act == AMP_GELU ? ref_gelu_grad(x) : (double)(x > 0.0);
        if (rounds_first) e.extra += 1.13 * ref_half_ulp(e.before, c->d.type);
        e.extra += (rounds_first ? 4e-5 : 4e-6) * fabs(e.before); /* cuBLASLt's derivative of GELU, or ours */
        e.after = e.before * slope;
        return e;
    }
    if (g->act == AMP_GELU) e.extra += 4e-7 * fabs(e.before);
    if (g->act == AMP_GELU && rounds_first) e.extra += 6e-6;          /* cuBLASLt's */
    if (rounds_first && (g->act == AMP_GELU || (c->f8 && c->bias))) { /* of FP8, before a bias, too */
        double bias = c->bias && c->f8 ? (double)amp_load(c->bias, g->bias.dtype, j) : 0.0;
        e.extra += 1.13 * ref_half_ulp(fabs(e.before) + fabs(bias), c->d.type);
    }
    e.after = ref_act(g->act, e.before);
    return e;
}

/* The same element in the ordered mode: the only right bits of d and of an aux that is written, and |act(...)|. */
typedef struct grid_bits {
    uint32_t d, aux;
    float size;
} grid_bits;
static uint32_t bits_in(float x, amp_dtype type, int saturate) {
    return type == AMP_F32 ? ref_f32_bits(x) : ref_encode((double)x, type, saturate);
}
static uint32_t bits_at(const grid_matrix *x, size_t b, size_t row, size_t col) {
    return ampi_load_pattern(x->host, x->type, b * x->stride + row * x->ld + col);
}
static grid_bits ordered_element(const grid_case *c, size_t b, size_t i, size_t j) {
    const amp_gemm_desc *g = &c->g;
    float x[100], y[100], v, w;
    grid_bits r;
    size_t l;
    for (l = 0; l < g->k; l++) {
        x[l] = (float)(g->trans_a ? at(&c->a, b, l, i) : at(&c->a, b, i, l));
        y[l] = (float)(g->trans_b ? at(&c->b, b, j, l) : at(&c->b, b, l, j));
    }
    v = ref_mul((float)c->alpha, ref_ordered_sum(x, y, c->alpha != 0.0 ? g->k : 0));
    if (c->use_c != NO_C) v = ref_add(v, ref_mul((float)c->beta, (float)at(&c->c, b, i, j)));
    if (c->bias) v = ref_add(v, amp_load(c->bias, g->bias.dtype, j));
    w = c->grad ? ampi_act_grad(g->act, v, (float)at(&c->aux, b, i, j)) : v;
    if (!g->backward) w = ampi_act(g->act, v);
    r.aux = bits_in(v, c->aux.type, 0);
    r.size = fabsf(w);
    r.d = bits_in(is_f8(c->d.type) ? ref_mul(w, c->scale_d) : w, c->d.type, 1);
    return r;
}
static int ordered_results(t_run *t, const grid_case *c, const grid_matrix *got) {
    const amp_gemm_desc *g = &c->g;
    float amax = 0, found = 0;
    size_t b, i, j;
    for (b = 0; b < c->batch; b++)
        for (i = 0; i < g->m; i++)
            for (j = 0; j < g->n; j++) {
                grid_bits want = ordered_element(c, b, i, j);
                amax = fmaxf(amax, want.size);
                if (bits_at(got, b, i, j) != want.d)
                    return t_check(t, 0, __FILE__, __LINE__, "ordered: row %d, column %d is 0x%x, should be 0x%x",
                        (int)i, (int)j, (unsigned)bits_at(got, b, i, j), (unsigned)want.d);
                if (g->aux.data && !c->grad && bits_at(&c->aux, b, i, j) != want.aux)
                    return t_check(t, 0, __FILE__, __LINE__, "ordered: aux of row %d, column %d", (int)i, (int)j);
            }
    if (g->amax_d) {
        t_get(t, &found, g->amax_d, 4);
        CHECK_F32(found, amax);
    }
    return CHECK(1);
}

static double saturated(double x, amp_dtype type) {
    double most = type == AMP_F8E4M3 ? 448.0 : 57344.0;
    if (!is_f8(type) || fabs(x) <= most) return x;
    return x > 0.0 ? most : -most;
}

/* All elements of d and of an aux that was written, and the amax; 0: one is wrong. */
static int grid_results(t_run *t, const grid_case *c, const grid_matrix *got) {
    const amp_gemm_desc *g = &c->g;
    double amax = 0, amax_bound = 0, scale = (double)c->scale_d;
    size_t b, i, j;
    for (b = 0; b < c->batch; b++)
        for (i = 0; i < g->m; i++)
            for (j = 0; j < g->n; j++) {
                grid_element e = exact_element(t, c, b, i, j);
                double want = saturated(e.after * scale, c->d.type);
                double bound = ((double)g->k + 4) * EPS * e.magnitude * 1.13 + e.extra;
                int writes_aux = g->aux.data && !c->grad, aux_saturates = is_f8(c->d.type) && fabs(e.before) > 440.0;
                amax = fmax(amax, fabs(e.after));
                amax_bound = fmax(amax_bound, bound);
                if (!check_element(
                        t, at(got, b, i, j), want, e.magnitude * scale, g->k, c->d.type, e.extra * scale, b, i, j))
                    return 0;
                if (writes_aux && !aux_saturates &&
                    !check_element(t, at(&c->aux, b, i, j), e.before, e.magnitude, g->k, c->aux.type, e.extra, b, i, j))
                    return 0;
            }
    if (g->amax_d) {
        float found = -1;
        t_get(t, &found, g->amax_d, 4);
        CHECK_NEAR((double)found, amax, amax_bound + 1e-6 * amax);
    }
    return 1;
}

/* The column sums of what was written; a failure names row m. 0: one is wrong. */
static int grid_sums(t_run *t, const grid_case *c, const grid_matrix *got) {
    const amp_gemm_desc *g = &c->g;
    unsigned char sums[400];
    size_t i, j;
    if (!g->dbias.data) return 1;
    t_get(t, sums, g->dbias.data, g->n * amp_dtype_size(g->dbias.dtype));
    for (j = 0; j < g->n; j++) {
        double sum = 0, magnitude = 0, roundings = 0, out = (double)amp_load(sums, g->dbias.dtype, j);
        for (i = 0; i < g->m; i++) {
            double x = at(got, 0, i, j);
            sum += x;
            magnitude += fabs(x);
            roundings += ref_half_ulp(x, c->d.type);
        }
        if (is_f8(g->dbias.dtype) && fabs(sum) > 440.0) continue;
        if (!check_element(t, out, sum, magnitude, g->m, g->dbias.dtype, roundings, 0, g->m, j)) return 0;
    }
    return 1;
}

static void grid_padding(t_run *t, const grid_case *c, const grid_matrix *got) { /* between rows and batches */
    size_t size = amp_dtype_size(c->d.type), i;
    for (i = 0; i < elements(&c->d, c->batch); i++) {
        size_t col = i % c->d.stride % c->d.ld, row = i % c->d.stride / c->d.ld;
        if (col < c->d.cols && row < c->d.rows) continue;
        if (memcmp(got->host + i * size, c->d.host + i * size, size) == 0) continue;
        t_check(t, 0, __FILE__, __LINE__, "padding element %d was written", (int)i);
        return;
    }
    CHECK(1);
}

static void gemm_grid(t_run *t) {
    int round, rounds = t_rounds(t, 1500, 60000, 90, 1200), cuda = t->place->kind == T_KIND_CUDA;
    size_t unsupported = 0, f8_ran = 0;
    for (round = 0; round < rounds; round++, t_clear(t)) {
        grid_case c = AMP_ZERO;
        grid_matrix got;
        amp_status st;
        int native_f8;
        c.native = round % 15 == 7;
        grid_problem(t, &c);
        grid_layout(t, &c);
        grid_numbers(t, &c);
        grid_operands(t, &c);
        grid_note(t, &c, round);
        native_f8 = c.f8 && !(c.g.flags & (AMP_GEMM_EMULATE | AMP_GEMM_ORDERED));
        st = amp_gemm(t->ctx, &c.g);
        if (st == AMP_ERR_UNSUPPORTED && cuda && native_f8) { /* says why */
            CHECK(strstr(amp_last_error(t->ctx), "FP8") != NULL);
            unsupported++;
            continue;
        }
        if (!CHECK_OK(st)) continue;
        f8_ran += native_f8;
        got = c.d;
        got.host = (unsigned char *)t_host(t, bytes_of(&got, c.batch));
        t_get(t, got.host, c.g.d.data, bytes_of(&got, c.batch));
        if (c.g.aux.data && !c.grad) {
            c.aux.host = (unsigned char *)t_host(t, bytes_of(&c.aux, c.batch));
            t_get(t, c.aux.host, c.g.aux.data, bytes_of(&c.aux, c.batch));
        }
        if (c.g.flags & AMP_GEMM_ORDERED && !ordered_results(t, &c, &got)) continue;
        if (grid_results(t, &c, &got) && grid_sums(t, &c, &got)) grid_padding(t, &c, &got);
    }
    t_note(t, "%d combinations unsupported, %d FP8 products without emulation", (int)unsupported, (int)f8_ran);
    CHECK(unsupported < (size_t)rounds / 4);
    CHECK(f8_ran > 0 || !ref_has_f8(t->ctx));
}

static void gemm_large(t_run *t) { /* more than one block in each direction, and in depth */
    static const size_t sizes[][3] = {{130, 260, 700}, {257, 65, 513}, {1, 700, 300}, {600, 1, 1030}, {4, 33000, 3},
        {3, 65, 35000}, {700, 1, 300}, {512, 13, 520}, {13, 512, 520},
        {13, 512, 520}}; /* of whole blocks: nothing after the last strip; B as it is, and transposed */
    size_t s;
    for (s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2], i, j, l, tries;
        amp_gemm_desc d = AMP_ZERO;
        float *a, *b, *got;
        if (t_slow(t) && s != 2) continue;
        d.m = m;
        d.n = n;
        d.k = k;
        d.trans_b = (uint32_t)s & 1u;
        a = (float *)matrix(t, AMP_F32, m * k, 1, 0, 1, m * k, m * k);
        b = (float *)matrix(t, AMP_F32, n * k, 1, 0, 1, n * k, n * k);
        got = (float *)t_host(t, 4 * m * n);
        d.a = amp_arr(t_put(t, a, 4 * m * k), AMP_F32);
        d.b = amp_arr(t_put(t, b, 4 * n * k), AMP_F32);
        d.d = amp_arr(t_alloc(t, 4 * m * n), AMP_F32);
        t_note(t, "m %d n %d k %d", (int)m, (int)n, (int)k);
        CHECK_OK(amp_gemm(t->ctx, &d));
        t_get(t, got, d.d.data, 4 * m * n);
        for (tries = 0; tries < 3000; tries++) {
            double sum = 0, size = 0;
            i = t_below(t, (uint32_t)m);
            j = t_below(t, (uint32_t)n);
            for (l = 0; l < k; l++) {
                double x = (double)a[i * k + l] * (double)(d.trans_b ? b[j * k + l] : b[l * n + j]);
                sum += x;
                size += fabs(x);
            }
            if (!check_element(t, (double)got[i * n + j], sum, size, k, AMP_F32, 0.0, 0, i, j)) break;
        }
        CHECK(1);
        t_clear(t);
    }
}

static void gemm_exact(t_run *t) { /* small integers have exact products in every dtype: no tolerance at all */
    size_t d, i, j, l, m = 19, n = 23, k = 31;
    for (d = 0; d < 5; d++) {
        amp_dtype type = ref_dtypes[d];
        size_t size = amp_dtype_size(type);
        amp_gemm_desc g = AMP_ZERO;
        void *a = t_host(t, m * k * size), *b = t_host(t, k * n * size);
        float *want = (float *)t_host(t, 4 * m * n), *got = (float *)t_host(t, 4 * m * n);
        amp_status st;
        for (i = 0; i < m * k; i++)
            amp_store(a, type, i, (float)t_below(t, 9) - 4.0f);
        for (i = 0; i < k * n; i++)
            amp_store(b, type, i, (float)t_below(t, 9) - 4.0f);
        for (i = 0; i < m; i++)
            for (j = 0; j < n; j++)
                for (l = 0; l < k; l++)
                    want[i * n + j] += amp_load(a, type, i * k + l) * amp_load(b, type, l * n + j);
        g.m = m;
        g.n = n;
        g.k = k;
        g.a = amp_arr(t_put(t, a, m * k * size), type);
        g.b = amp_arr(t_put(t, b, k * n * size), type);
        g.d = amp_arr(t_alloc(t, 4 * m * n), AMP_F32);
        st = amp_gemm(t->ctx, &g);
        t_note(t, "%s", amp_dtype_name(type));
        if (st == AMP_ERR_UNSUPPORTED && t->place->kind == T_KIND_CUDA && d > 2) {
            t_clear(t);
            continue;
        }
        CHECK_OK(st);
        t_get(t, got, g.d.data, 4 * m * n);
        for (i = 0; i < m * n; i++)
            got[i] += 0.0f; /* -0 and 0 are both right */
        CHECK_BITS(got, want, m * n, 4);
        t_clear(t);
    }
}

static void gemm_nothing(t_run *t) { /* sizes of 0, and C that must not be read */
    float a[6] = {1, 2, 3, 4, 5, 6}, nan[4], got[4];
    amp_gemm_desc d = AMP_ZERO;
    size_t i;
    for (i = 0; i < 4; i++)
        nan[i] = ref_f32(0x7fc00000);
    d.a = amp_arr(t_put(t, a, sizeof a), AMP_F32);
    d.b = amp_arr(t_put(t, a, sizeof a), AMP_F32);
    d.d = amp_arr(t_put(t, nan, sizeof nan), AMP_F32);
    d.m = 0;
    d.n = 2;
    d.k = 3;
    CHECK_OK(amp_gemm(t->ctx, &d));
    d.m = 2;
    d.n = 0;
    CHECK_OK(amp_gemm(t->ctx, &d));
    t_get(t, got, d.d.data, sizeof got);
    CHECK_BITS(got, nan, 4, 4);
    d.n = 2;
    d.k = 3; /* a product first, so that scratch memory is not zero by luck */
    CHECK_OK(amp_gemm(t->ctx, &d));
    t_get(t, got, d.d.data, sizeof got);
    CHECK(got[0] == 22 && got[3] == 64);
    d.k = 0; /* now the product is 0 */
    CHECK_OK(amp_gemm(t->ctx, &d));
    t_get(t, got, d.d.data, sizeof got);
    CHECK(got[0] == 0 && got[1] == 0 && got[2] == 0 && got[3] == 0);
    t_note(t, "k = 0 with beta, bias and no A or B at all");
    {
        amp_gemm_desc e = AMP_ZERO;
        float c[4] = {1, 2, 3, 4}, bias[2] = {10, 20};
        e.m = e.n = 2;
        e.beta = amp_opt(2.0f);
        e.a.dtype = e.b.dtype = AMP_F32;
        e.c = amp_arr(t_put(t, c, sizeof c), AMP_F32);
        e.d = amp_arr(t_put(t, nan, sizeof nan), AMP_F32);
        e.bias = amp_arr(t_put(t, bias, sizeof bias), AMP_F32);
        CHECK_OK(amp_gemm(t->ctx, &e));
        t_get(t, got, e.d.data, sizeof got);
        CHECK(got[0] == 12 && got[1] == 24 && got[2] == 16 && got[3] == 28);
    }
    t_note(t, "NaN in C with beta 0 is harmless; NaN and Inf in A and B propagate");
    d.k = 3;
    d.c = amp_arr(t_put(t, nan, sizeof nan), AMP_F32);
    t_set(t, d.d.data, nan, sizeof nan);
    CHECK_OK(amp_gemm(t->ctx, &d));
    t_get(t, got, d.d.data, sizeof got);
    CHECK(got[0] == 22 && got[1] == 28 && got[2] == 49 && got[3] == 64);
    a[4] = ref_f32(0x7f800000);
    t_set(t, d.a.data, a, sizeof a);
    CHECK_OK(amp_gemm(t->ctx, &d));
    t_get(t, got, d.d.data, sizeof got);
    CHECK(got[0] == 22 && got[1] == 28 && got[2] > 3.4e38f && got[3] > 3.4e38f);
    a[4] = ref_f32(0x7fc00000);
    t_set(t, d.a.data, a, sizeof a);
    d.act = AMP_RELU; /* an activation does not hide it */
    CHECK_OK(amp_gemm(t->ctx, &d));
    t_get(t, got, d.d.data, sizeof got);
    CHECK(got[0] == 22 && amp_is_nan(got[2]) && amp_is_nan(got[3]));
    d.act = AMP_GELU;
    CHECK_OK(amp_gemm(t->ctx, &d));
    t_get(t, got, d.d.data, sizeof got);
    CHECK(got[0] == 22 && amp_is_nan(got[2]) && amp_is_nan(got[3]));
}

/* Factors that programs compute: 0 is 0, what is not given is the default, and a bare number is refused. */
static void gemm_factors(t_run *t) {
    float a[4] = {1, 2, 3, 4}, c[4] = {10, 20, 30, 40}, bad[4], got[4], inf = ref_f32(0x7f800000), two = 2;
    amp_gemm_desc d = AMP_ZERO, e;
    size_t i;
    for (i = 0; i < 4; i++)
        bad[i] = ref_f32(0x7fc00000);
    d.m = d.n = d.k = 2;
    d.a = d.b = amp_arr(t_put(t, a, sizeof a), AMP_F32);
    d.c = amp_arr(t_put(t, c, sizeof c), AMP_F32);
    d.d = amp_arr(t_alloc(t, sizeof got), AMP_F32);
    t_note(t, "neither given: 1 and 0");
    CHECK_OK(amp_gemm(t->ctx, &d));
    t_get(t, got, d.d.data, sizeof got);
    CHECK_F32(got[0], 7);
    CHECK_F32(got[3], 22);
    t_note(t, "alpha 0: a and b are not read, nor alpha_ptr; beta * c and the epilogue are left");
    e = d;
    e.a = e.b = amp_arr(t_put(t, bad, sizeof bad), AMP_F32);
    e.alpha = amp_opt(0);
    e.alpha_ptr = (const float *)t_put(t, &inf, 4);
    e.beta = amp_opt(-1);
    e.act = AMP_RELU;
    e.bias = amp_arr(t_put(t, c + 1, 8), AMP_F32);
    CHECK_OK(amp_gemm(t->ctx, &e));
    t_get(t, got, e.d.data, sizeof got);
    CHECK_F32(got[0], 10);
    CHECK_F32(got[1], 10);
    CHECK_F32(got[2], 0);
    CHECK_F32(got[3], 0);
    t_note(t, "alpha 0 still needs a and b that fit");
    e.a.count = 3;
    CHECK_STATUS(amp_gemm(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_gemm desc.a count 3");
    t_note(t, "beta 0: c is not read, nor beta_ptr");
    e = d;
    e.c = amp_arr(t_put(t, bad, sizeof bad), AMP_F32);
    e.beta = amp_opt(0);
    e.beta_ptr = (const float *)t_put(t, &inf, 4);
    CHECK_OK(amp_gemm(t->ctx, &e));
    t_get(t, got, e.d.data, sizeof got);
    CHECK_F32(got[0], 7);
    t_note(t, "beta_ptr alone");
    e = d;
    e.beta_ptr = (const float *)t_put(t, &two, 4);
    CHECK_OK(amp_gemm(t->ctx, &e));
    t_get(t, got, e.d.data, sizeof got);
    CHECK_F32(got[0], 27);
    t_note(t, "bare numbers");
    e = d;
    e.alpha.value = 0.5f;
    CHECK_STATUS(amp_gemm(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_gemm desc.alpha 0.5 amp_opt(0.5)");
    CHECK_STATUS(amp_gemm_tune(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_gemm_tune desc.alpha amp_opt");
    e = d;
    e.beta.value = 2;
    CHECK_STATUS(amp_gemm(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_gemm desc.beta amp_opt(2)");
}

/* Factors in context memory that are 0: c does not count then, be it NaN or memory that was never written; a and b do.
   All ways of a product: dtypes, ordered or not, with and without k, c apart or d itself, a factor on the host, too. */
static void zero_factor_one(t_run *t, amp_dtype type, size_t k, uint32_t flags, int apart, int scaled) {
    const uint32_t bad[4] = {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}; /* NaN in every dtype */
    const float zero = 0, least = ref_f32(1);
    float ones[4], got[4];
    amp_gemm_desc d = AMP_ZERO;
    size_t i, bytes = 4 * amp_dtype_size(type);
    for (i = 0; i < 4; i++)
        amp_store(ones, type, i, 1.0f);
    d.m = d.n = 2;
    d.k = k;
    d.flags = flags;
    d.a = d.b = amp_arr(t_put(t, ones, bytes), type);
    d.d = amp_arr(t_put(t, bad, bytes), type);
    if (apart) d.c = amp_arr(t_put(t, bad, bytes), type);
    d.beta_ptr = (const float *)t_put(t, scaled ? &least : &zero, 4); /* least * 0.25 is 0 */
    if (scaled) d.beta = amp_opt(0.25f);
    t_note(t, "%s, k %d, flags %u, c %s, beta %s", amp_dtype_name(type), (int)k, (unsigned)flags,
        apart ? "apart" : "is d", scaled ? "times *beta_ptr is 0" : "on the device 0");
    CHECK_OK(amp_gemm(t->ctx, &d));
    t_get(t, got, d.d.data, bytes);
    for (i = 0; i < 4; i++)
        CHECK_F32(amp_load(got, type, i), (float)k);
    d.c = d.a;
    d.d = amp_arr(t_put(t, bad, bytes), type);
    d.a = amp_arr(t_put(t, bad, bytes), type);
    d.alpha_ptr = (const float *)t_put(t, &zero, 4);
    d.beta = amp_opt(1);
    d.beta_ptr = NULL;
    CHECK_OK(amp_gemm(t->ctx, &d));
    t_get(t, got, d.d.data, bytes);
    for (i = 0; i < 4; i++)
        CHECK(k ? amp_is_nan(amp_load(got, type, i)) : amp_load(got, type, i) == 1.0f);
    t_clear(t);
}
static void gemm_zero_factors(t_run *t) {
    static const amp_dtype types[3] = {AMP_F32, AMP_F16, AMP_BF16};
    int i, way;
    for (i = 0; i < 3; i++)
        for (way = 0; way < 16; way++)
            zero_factor_one(t, types[i], way & 1 ? 2 : 0, way & 2 ? AMP_GEMM_ORDERED : 0, way & 4, way & 8);
}

/* Backward of no activation is the product itself: aux is neither read nor written. */
static void gemm_backward_of_none(t_run *t) {
    float a[4] = {1, 2, 3, 4}, aux[4], got[4];
    amp_gemm_desc d = AMP_ZERO;
    size_t i;
    for (i = 0; i < 4; i++)
        aux[i] = ref_f32(0x7fc00000);
    d.m = d.n = d.k = 2;
    d.backward = 1;
    d.a = d.b = amp_arr(t_put(t, a, sizeof a), AMP_F32);
    d.d = amp_arr(t_alloc(t, sizeof got), AMP_F32);
    CHECK_OK(amp_gemm(t->ctx, &d));
    d.aux = amp_arr(t_put(t, aux, sizeof aux), AMP_F32);
    CHECK_OK(amp_gemm(t->ctx, &d));
    t_get(t, got, d.d.data, sizeof got);
    CHECK_F32(got[0], 7);
    t_get(t, got, d.aux.data, sizeof got);
    CHECK_BITS(got, aux, 4, 4);
}

static void gemm_errors(t_run *t) {
    float x[64] = {0};
    void *pa = t_put(t, x, sizeof x), *pb = t_put(t, x, sizeof x), *pd = t_put(t, x, sizeof x);
    amp_gemm_desc good = AMP_ZERO, d;
    good.m = 2;
    good.n = 3;
    good.k = 4;
    good.a = amp_arr(pa, AMP_F32);
    good.b = amp_arr(pb, AMP_F32);
    good.d = amp_arr(pd, AMP_F32);
    CHECK_OK(amp_gemm(t->ctx, &good));
    CHECK_EQ(amp_gemm(NULL, &good), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_gemm(t->ctx, NULL), AMP_ERR_INVALID_ARG, "amp_gemm desc");
    d = good;
    d._begin = 1;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_UNINIT, "amp_gemm");
    d = good;
    d._end = 1;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_UNINIT, "amp_gemm");
    d = good;
    d.a.data = NULL;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.a");
    d = good;
    d.b.data = NULL;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.b");
    d = good;
    d.d.data = NULL;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.d|desc.c");
    d = good;
    d.a.dtype = AMP_AUTO;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.a");
    d = good;
    d.d.dtype = AMP_DTYPE_COUNT;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.d|desc.c");
    d = good;
    d.lda = 3;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm lda 3");
    d = good;
    d.ldb = 2;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm ldb 2");
    d = good;
    d.ldd = 2;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm ldd 2");
    d = good;
    d.trans_a = 1;
    d.lda = 1;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm lda 1");
    d = good;
    d.a.count = 7;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.a count 7");
    d = good;
    d.b.count = 11;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.b count 11");
    d = good;
    d.d.count = 5;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm count 5");
    d = good;
    d.bias = amp_arrn(pa, AMP_F32, 2);
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.bias count 2");
    d = good;
    d.aux = amp_arrn(pa, AMP_F32, 5);
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.aux count 5");
    d = good;
    d.batch = 2;
    d.stride_d = AMP_BROADCAST;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm stride_d");
    d = good;
    d.batch = 2;
    d.stride_d = 3;
    d.ldd = 5;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm stride_d");
    d = good;
    d.batch = 2;
    d.stride_d = 3;
    d.ldd = 6;
    CHECK_OK(amp_gemm(t->ctx, &d)); /* side by side in the rows */
    d = good;
    d.batch = 2;
    d.stride_d = 2;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm stride_d");
    d = good;
    d.act = (amp_act)99;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm act");
    d = good;
    d.m = (size_t)-1 / 2;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm");
    d = good;
    d.b.dtype = AMP_F16;
    CHECK(amp_gemm(t->ctx, &d) != AMP_OK && strstr(amp_last_error(t->ctx), "f16") != NULL);
    d = good;
    d.beta = amp_opt(1);
    d.c = amp_arr(pb, AMP_F16);
    CHECK(amp_gemm(t->ctx, &d) != AMP_OK && strstr(amp_last_error(t->ctx), "desc.c") != NULL);
    d = good;
    d.d = d.a;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.d overlap");
    d = good;
    d.d.data = (char *)pa + 28;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.d overlap");
    d = good;
    d.d.data = (char *)pb + 44;
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.d overlap");
    d = good;
    d.beta = amp_opt(1);
    d.c = amp_arr((char *)pd + 4, AMP_F32);
    CHECK_STATUS(amp_gemm(t->ctx, &d), AMP_ERR_INVALID_ARG, "amp_gemm desc.c overlap");
    d = good;
    d.beta = amp_opt(1);
    d.c = d.d;
    CHECK_OK(amp_gemm(t->ctx, &d));
}

/* The same bits for any number of threads, on one SIMD path. */
static void threads_do_not_matter(t_run *t) {
    static const int32_t threads[] = {1, 2, 3, 5};
    size_t m = 150, n = 200, k = 330, i;
    unsigned char *a = (unsigned char *)matrix(t, AMP_F16, m * k, 1, 0, 1, m * k, m * k),
                  *b = (unsigned char *)matrix(t, AMP_F16, n * k, 1, 0, 1, n * k, n * k);
    float *dy = (float *)t_host(t, 4 * m * n), *dy2 = (float *)t_host(t, 4 * m * n),
          *first = (float *)t_host(t, 4 * m * n), *next = (float *)t_host(t, 4 * m * n);
    float *few_first[2];
    float *sums = (float *)t_host(t, 4 * n), *sums2 = (float *)t_host(t, 4 * n);
    for (i = 0; i < m * n; i++)
        dy[i] = t_real(t);
    few_first[0] = (float *)t_host(t, 4 * 1800);
    few_first[1] = (float *)t_host(t, 4 * 1800);
    for (i = 0; i < 4; i++) {
        amp_ctx *c = NULL;
        amp_gemm_desc d = AMP_ZERO;
        amp_linear_desc l = AMP_ZERO;
        if (!CHECK_EQ(t_create_cpu(&c, t->place->simd, threads[i]), AMP_OK)) return;
        d.m = m;
        d.n = n;
        d.k = k;
        d.act = AMP_GELU;
        d.a = amp_arr(a, AMP_F16);
        d.b = amp_arr(b, AMP_F16);
        d.d = amp_arr(i ? next : first, AMP_F32);
        t_note(t, "%s", amp_ctx_name(c));
        CHECK_EQ(amp_gemm(c, &d), AMP_OK);
        if (i) CHECK_BITS(next, first, m * n, 4);
        for (d.trans_b = 0; d.trans_b < 2; d.trans_b++) { /* few rows go another way */
            d.m = 3;
            d.n = 600;
            d.k = 110;
            d.d = amp_arr(i ? next : few_first[d.trans_b], AMP_F32);
            CHECK_EQ(amp_gemm(c, &d), AMP_OK);
            if (i) CHECK_BITS(next, few_first[d.trans_b], 1800, 4);
        }
        memcpy(dy2, dy, 4 * m * n);
        l.rows = m;
        l.in = 1;
        l.out = n;
        l.dy = amp_arr(dy2, AMP_F32);
        l.dbias = amp_arr(i ? sums2 : sums, AMP_F32);
        CHECK_EQ(amp_linear_backward(c, &l), AMP_OK);
        if (i) CHECK_BITS(sums2, sums, n, 4);
        amp_ctx_destroy(c);
    }
}

/* ---- linear ---- */

typedef struct layer {
    size_t rows, in, out;
    amp_act act;
    int bias;
    amp_dtype type;
} layer;

static void forward_f64(
    const layer *l, const double *x, const double *w, const double *bias, double *before, double *y) {
    size_t r, o, i;
    for (r = 0; r < l->rows; r++)
        for (o = 0; o < l->out; o++) {
            double s = bias ? bias[o] : 0.0;
            for (i = 0; i < l->in; i++)
                s += x[r * l->in + i] * w[o * l->in + i];
            before[r * l->out + o] = s;
            y[r * l->out + o] = ref_act(l->act, s);
        }
}

static double *as_f64(t_run *t, const void *host, amp_dtype type, size_t n) {
    double *x = (double *)t_host(t, 8 * n);
    size_t i;
    for (i = 0; i < n; i++)
        x[i] = (double)amp_load(host, type, i);
    return x;
}

static void check_close(
    t_run *t, const char *what, const void *got, amp_dtype type, const double *want, const double *bound, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) {
        double g = (double)amp_load(got, type, i),
               limit = bound[i] + 1.000001 * fmax(ref_half_ulp(want[i], type), ref_half_ulp(g, type));
        if (!(fabs(g - want[i]) <= limit)) {
            t_check(
                t, 0, __FILE__, __LINE__, "%s[%d] is %.9g, should be %.9g +- %.3g", what, (int)i, g, want[i], limit);
            return;
        }
    }
    CHECK(1);
}

static void linear_layers(t_run *t) {
    static const amp_dtype types[3] = {AMP_F32, AMP_F16, AMP_BF16};
    int round, rounds = t_rounds(t, 600, 12000, 24, 400);
    for (round = 0; round < rounds; round++) {
        layer L;
        amp_linear_desc l = AMP_ZERO;
        size_t nx, nw, ny, size, i, r, o;
        void *x, *w, *dy, *y, *aux, *dx, *dw, *db, *bias = NULL, *dw0, *db0;
        double *fx, *fw, *fb = NULL, *fdy, *fy, *before, *want, *bound;
        amp_dtype bt;
        L.rows = round % 29 == 28 ? 0 : pick_size(t);
        L.in = pick_size(t);
        L.out = pick_size(t);
        L.act = (amp_act)(round % 3);
        L.bias = (int)t_below(t, 2);
        L.type = types[t_below(t, 3)];
        bt = t_below(t, 2) ? AMP_F32 : L.type;
        nx = L.rows * L.in;
        nw = L.out * L.in;
        ny = L.rows * L.out;
        size = amp_dtype_size(L.type);
        x = t_host(t, nx * size);
        w = t_host(t, nw * size);
        dy = t_host(t, ny * size);
        t_fill_real(t, x, L.type, nx, 1.0f);
        t_fill_real(t, w, L.type, nw, 0.5f);
        t_fill_real(t, dy, L.type, ny, 1.0f);
        l.rows = L.rows;
        l.in = L.in;
        l.out = L.out;
        l.act = L.act;
        l.x = amp_arrn(t_put_at(t, x, nx * size, size), L.type, nx);
        l.w = amp_arrn(t_put_at(t, w, nw * size, size), L.type, nw);
        l.y = amp_arr(t_alloc(t, ny * size), L.type);
        if (L.bias) {
            bias = t_host(t, L.out * amp_dtype_size(bt));
            t_fill_real(t, bias, bt, L.out, 1.0f);
            l.bias = amp_arr(t_put(t, bias, L.out * amp_dtype_size(bt)), bt);
        }
        if (L.act == AMP_GELU || t_below(t, 2)) l.aux = amp_arr(t_alloc(t, ny * size), L.type);
        t_note(t, "round %d: %s, rows %d, in %d, out %d, act %d, bias %d", round, amp_dtype_name(L.type), (int)L.rows,
            (int)L.in, (int)L.out, (int)L.act, L.bias);
        if (!CHECK_OK(amp_linear_forward(t->ctx, &l))) {
            t_clear(t);
            continue;
        }
        fx = as_f64(t, x, L.type, nx);
        fw = as_f64(t, w, L.type, nw);
        if (bias) fb = as_f64(t, bias, bt, L.out);
        before = (double *)t_host(t, 8 * ny);
        fy = (double *)t_host(t, 8 * ny);
        bound = (double *)t_host(t, 8 * (ny + nw + nx + L.out));
        forward_f64(&L, fx, fw, fb, before, fy);
        for (r = 0; r < L.rows; r++)
            for (o = 0; o < L.out; o++) {
                double s = fb ? fabs(fb[o]) : 0.0;
                for (i = 0; i < L.in; i++)
                    s += fabs(fx[r * L.in + i] * fw[o * L.in + i]);
                bound[r * L.out + o] = ((double)L.in + 4) * EPS * s * 1.13 +
                    (L.act == AMP_GELU ? 4e-7 * fabs(before[r * L.out + o]) : 0.0);
                if (fb && t->place->kind == T_KIND_CUDA && L.type != AMP_F32) { /* rounded first: the bias, the sum */
                    if (bt != L.type) bound[r * L.out + o] += 1.13 * ref_half_ulp(fb[o], L.type);
                    bound[r * L.out + o] += 1.13 * ref_half_ulp(before[r * L.out + o] - fb[o], L.type);
                }
                if (L.act == AMP_GELU && t->place->kind == T_KIND_CUDA && L.type != AMP_F32)
                    bound[r * L.out + o] += 1.13 * ref_half_ulp(before[r * L.out + o], L.type);
            }
        y = t_host(t, ny * size);
        aux = t_host(t, ny * size);
        t_get(t, y, l.y.data, ny * size);
        check_close(t, "y", y, L.type, fy, bound, ny);
        if (l.aux.data) {
            t_get(t, aux, l.aux.data, ny * size);
            check_close(t, "aux", aux, L.type, before, bound, ny);
        }
        /* backward, from what forward stored */
        l.accumulate = t_below(t, 2);
        l.dy = amp_arr(t_put(t, dy, ny * size), L.type);
        dw0 = t_host(t, nw * size);
        db0 = t_host(t, L.out * 4);
        t_fill_real(t, dw0, L.type, nw, 1.0f);
        t_fill_real(t, db0, AMP_F32, L.out, 1.0f);
        if (t_below(t, 6)) l.dx = amp_arr(t_alloc(t, nx * size), L.type);
        if (t_below(t, 6)) l.dw = amp_arr(t_put(t, dw0, nw * size), L.type);
        if (t_below(t, 6)) l.dbias = amp_arr(t_put(t, db0, L.out * 4), AMP_F32);
        if (!CHECK_OK(amp_linear_backward(t->ctx, &l))) {
            t_clear(t);
            continue;
        }
        for (i = 0; i < ny; i++) /* the gradient before act replaces dy: bits */
            if (L.act != AMP_ACT_NONE)
                amp_store(dy, L.type, i,
                    ampi_act_grad(L.act, amp_load(dy, L.type, i), amp_load(L.act == AMP_GELU ? aux : y, L.type, i)));
        {
            void *got = t_host(t, ny * size);
            t_get(t, got, l.dy.data, ny * size);
            CHECK_BITS(got, dy, ny, size);
        }
        fdy = as_f64(t, dy, L.type, ny);
        want = (double *)t_host(t, 8 * (nx + nw + L.out));
        if (l.dx.data) {
            for (r = 0; r < L.rows; r++)
                for (i = 0; i < L.in; i++) {
                    double s = 0, m = 0;
                    for (o = 0; o < L.out; o++) {
                        double v = fdy[r * L.out + o] * fw[o * L.in + i];
                        s += v;
                        m += fabs(v);
                    }
                    want[r * L.in + i] = s;
                    bound[r * L.in + i] = ((double)L.out + 4) * EPS * m;
                }
            dx = t_host(t, nx * size);
            t_get(t, dx, l.dx.data, nx * size);
            check_close(t, "dx", dx, L.type, want, bound, nx);
        }
        if (l.dw.data) {
            for (o = 0; o < L.out; o++)
                for (i = 0; i < L.in; i++) {
                    double s = l.accumulate ? (double)amp_load(dw0, L.type, o * L.in + i) : 0.0, m = fabs(s);
                    for (r = 0; r < L.rows; r++) {
                        double v = fdy[r * L.out + o] * fx[r * L.in + i];
                        s += v;
                        m += fabs(v);
                    }
                    want[o * L.in + i] = s;
                    bound[o * L.in + i] = ((double)L.rows + 4) * EPS * m;
                }
            dw = t_host(t, nw * size);
            t_get(t, dw, l.dw.data, nw * size);
            check_close(t, "dw", dw, L.type, want, bound, nw);
        }
        if (l.dbias.data) {
            for (o = 0; o < L.out; o++) {
                double s = l.accumulate ? (double)amp_load(db0, AMP_F32, o) : 0.0, m = fabs(s);
                for (r = 0; r < L.rows; r++) {
                    s += fdy[r * L.out + o];
                    m += fabs(fdy[r * L.out + o]);
                }
                want[o] = s;
                bound[o] = ((double)L.rows + 4) * EPS * m;
            }
            db = t_host(t, L.out * 4);
            t_get(t, db, l.dbias.data, L.out * 4);
            check_close(t, "dbias", db, AMP_F32, want, bound, L.out);
        }
        t_clear(t);
    }
}

/* Would a step of the gradient check, 1e-5, take one of them across 0? */
static int any_near_0(const double *x, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        if (fabs(x[i]) < 1e-4) return 1;
    return 0;
}
/* Two layers and a loss in double: amp's gradients against finite differences of the double forward pass. */
static void gradient_check(t_run *t) {
    static const amp_act acts[3] = {AMP_GELU, AMP_RELU, AMP_ACT_NONE};
    size_t a, i, k, rows = 5, in = 7, mid = 6, classes = 4;
    for (a = 0; a < 3; a++) {
        layer L1, L2;
        float *x = (float *)t_host(t, 4 * rows * in), *w1 = (float *)t_host(t, 4 * mid * in),
              *b1 = (float *)t_host(t, 4 * mid), *w2 = (float *)t_host(t, 4 * classes * mid);
        float *dw1 = (float *)t_host(t, 4 * mid * in), *db1 = (float *)t_host(t, 4 * mid), loss_got = 0;
        int32_t labels[5];
        amp_linear_desc l1 = AMP_ZERO, l2 = AMP_ZERO;
        amp_xent_desc e = AMP_ZERO;
        double *fx, *fw1, *fb1, *fw2, before[64], h[64], z[64], z2[64];
        L1.rows = rows;
        L1.in = in;
        L1.out = mid;
        L1.act = acts[a];
        L1.bias = 1;
        L1.type = AMP_F32;
        L2.rows = rows;
        L2.in = mid;
        L2.out = classes;
        L2.act = AMP_ACT_NONE;
        L2.bias = 0;
        L2.type = AMP_F32;
        do {
            t_fill_real(t, x, AMP_F32, rows * in, 1.0f);
            t_fill_real(t, w1, AMP_F32, mid * in, 0.5f);
            t_fill_real(t, b1, AMP_F32, mid, 0.5f);
            fx = as_f64(t, x, AMP_F32, rows * in);
            fw1 = as_f64(t, w1, AMP_F32, mid * in);
            fb1 = as_f64(t, b1, AMP_F32, mid);
            forward_f64(&L1, fx, fw1, fb1, before, h);
        } while (any_near_0(before, rows * mid)); /* where ReLU has no derivative */
        t_fill_real(t, w2, AMP_F32, classes * mid, 0.5f);
        fw2 = as_f64(t, w2, AMP_F32, classes * mid);
        for (i = 0; i < rows; i++)
            labels[i] = (int32_t)t_below(t, (uint32_t)classes);
        l1.rows = rows;
        l1.in = in;
        l1.out = mid;
        l1.act = acts[a];
        l1.x = amp_arr(t_put(t, x, 4 * rows * in), AMP_F32);
        l1.w = amp_arr(t_put(t, w1, 4 * mid * in), AMP_F32);
        l1.bias = amp_arr(t_put(t, b1, 4 * mid), AMP_F32);
        l1.y = amp_arr(t_alloc(t, 4 * rows * mid), AMP_F32);
        l1.aux = amp_arr(t_alloc(t, 4 * rows * mid), AMP_F32);
        l1.dy = amp_arr(t_alloc(t, 4 * rows * mid), AMP_F32);
        l1.dw = amp_arr(t_alloc(t, 4 * mid * in), AMP_F32);
        l1.dbias = amp_arr(t_alloc(t, 4 * mid), AMP_F32);
        l2.rows = rows;
        l2.in = mid;
        l2.out = classes;
        l2.x = l1.y;
        l2.w = amp_arr(t_put(t, w2, 4 * classes * mid), AMP_F32);
        l2.y = amp_arr(t_alloc(t, 4 * rows * classes), AMP_F32);
        l2.dx = l1.dy;
        l2.dy = amp_arr(t_alloc(t, 4 * rows * classes), AMP_F32);
        e.rows = rows;
        e.classes = classes;
        e.logits = l2.y;
        e.dlogits = l2.dy;
        e.labels = (const int32_t *)t_put(t, labels, sizeof labels);
        e.loss = (float *)t_alloc(t, 4);
        e.row_loss = (float *)t_alloc(t, 4 * rows);
        CHECK_OK(amp_linear_forward(t->ctx, &l1));
        CHECK_OK(amp_linear_forward(t->ctx, &l2));
        CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
        CHECK_OK(amp_linear_backward(t->ctx, &l2));
        CHECK_OK(amp_linear_backward(t->ctx, &l1));
        t_get(t, dw1, l1.dw.data, 4 * mid * in);
        t_get(t, db1, l1.dbias.data, 4 * mid);
        t_get(t, &loss_got, e.loss, 4);
        t_note(t, "act %d", (int)acts[a]);
        for (k = 0; k < mid * in + mid; k++) { /* every weight and bias of the first layer */
            double *at = k < mid * in ? &fw1[k] : &fb1[k - mid * in], keep = *at, loss[3], step = 1e-5;
            int s;
            for (s = 0; s < 3; s++) {
                *at = keep + (s == 0 ? -step : s == 1 ? step : 0.0);
                forward_f64(&L1, fx, fw1, fb1, before, h);
                forward_f64(&L2, h, fw2, NULL, z2, z);
                loss[s] = 0;
                for (i = 0; i < rows; i++) {
                    double sum = 0;
                    size_t c;
                    for (c = 0; c < classes; c++)
                        sum += exp(z[i * classes + c]);
                    loss[s] += (log(sum) - z[i * classes + (size_t)labels[i]]) / (double)rows;
                }
            }
            *at = keep;
            CHECK_NEAR(
                k < mid * in ? (double)dw1[k] : (double)db1[k - mid * in], (loss[1] - loss[0]) / (2 * step), 2e-5);
            if (k == 0) CHECK_NEAR((double)loss_got, loss[2], 1e-6);
        }
        t_clear(t);
    }
}

/* ReLU's backward gives 0 where y <= 0, else dy: of 19 values of y in a row of odd length, so that all paths meet them,
   with dy a number, NaN and Inf; in a layer of its own, with column sums, and in the product that made dy. */
#define RELU_ROW 19
static amp_array relu_put(t_run *t, const float *x, amp_dtype type) {
    float bits[RELU_ROW];
    size_t i;
    for (i = 0; i < RELU_ROW; i++)
        amp_store(bits, type, i, x[i]);
    return amp_arr(t_put(t, bits, RELU_ROW * amp_dtype_size(type)), type);
}
static int relu_passes(float y) { return !(y <= 0.0f); }
static void relu_backward_one(t_run *t, amp_dtype type, amp_dtype saved, float dy, int how) {
    static const uint32_t patterns[8] = {
        0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7fc00000, 0xffc00000, 0x7f800000, 0xff800000};
    float y[RELU_ROW], x[RELU_ROW], unit[RELU_ROW], got[RELU_ROW], bits[RELU_ROW];
    size_t i;
    amp_linear_desc l = AMP_ZERO;
    amp_gemm_desc g = AMP_ZERO;
    for (i = 0; i < RELU_ROW; i++) {
        y[i] = ref_f32(patterns[i % 8]);
        x[i] = dy;
        unit[i] = 1;
    }
    l.rows = g.m = g.k = 1;
    l.in = 1;
    l.out = g.n = RELU_ROW;
    l.act = g.act = AMP_RELU;
    l.dbias = how == 1 ? amp_arr(t_alloc(t, sizeof x), AMP_F32) : l.dbias;
    l.y = g.aux = relu_put(t, y, saved);
    l.dy = g.b = relu_put(t, x, type);
    g.a = relu_put(t, unit, type);
    g.backward = 1;
    g.d = how == 2 ? relu_put(t, unit, type) : l.dy;
    CHECK_OK(how == 2 ? amp_gemm(t->ctx, &g) : amp_linear_backward(t->ctx, &l));
    t_get(t, bits, g.d.data, RELU_ROW * amp_dtype_size(type));
    for (i = 0; i < RELU_ROW; i++) {
        float want = relu_passes(y[i]) ? dy : 0.0f;
        got[i] = amp_load(bits, type, i);
        t_note(t, "%s, y %s, way %d, y[%d] %g, dy %g", amp_dtype_name(type), amp_dtype_name(saved), how, (int)i,
            (double)y[i], (double)dy);
        CHECK(amp_is_nan(want) ? amp_is_nan(got[i]) : ref_f32_bits(got[i]) == ref_f32_bits(want));
    }
    t_clear(t);
}
static void relu_backward(t_run *t) {
    static const amp_dtype types[3] = {AMP_F32, AMP_F16, AMP_BF16};
    const float dy[3] = {5.0f, ref_f32(0x7fc00000), ref_f32(0xff800000)};
    int i, s, v, how;
    for (i = 0; i < 3; i++)
        for (s = 0; s < 3; s++)
            for (v = 0; v < 3; v++)
                for (how = 0; how < 3; how++)
                    relu_backward_one(t, types[i], types[s], dy[v], how);
}
static void relu_at_zero(t_run *t) { /* derivative 0 where y = 0, also for -0, and 1 at the least y above it */
    float y[4] = {0.0f, -0.0f, 1e-30f, 2.0f}, dy[4] = {5, 6, 7, 8};
    float got[4];
    amp_linear_desc l = AMP_ZERO;
    l.rows = 1;
    l.in = 1;
    l.out = 4;
    l.act = AMP_RELU;
    l.y = amp_arr(t_put(t, y, sizeof y), AMP_F32);
    l.dy = amp_arr(t_put(t, dy, sizeof dy), AMP_F32);
    CHECK_OK(amp_linear_backward(t->ctx, &l));
    t_get(t, got, l.dy.data, sizeof got);
    CHECK(got[0] == 0 && got[1] == 0 && got[2] == 7 && got[3] == 8);
}

static void activations_keep_nan(t_run *t) { /* forward and backward: NaN and Inf are data */
    const float nan = ref_f32(0x7fc00000), inf = ref_f32(0x7f800000);
    float x[5], w[1] = {1}, got[5], dy[5];
    int act;
    x[0] = nan;
    x[1] = inf;
    x[2] = -inf;
    x[3] = 1;
    x[4] = -1;
    for (act = 0; act < 3; act++) {
        amp_linear_desc l = AMP_ZERO;
        l.rows = 5;
        l.in = l.out = 1;
        l.act = (amp_act)act;
        l.x = amp_arr(t_put(t, x, sizeof x), AMP_F32);
        l.w = amp_arr(t_put(t, w, 4), AMP_F32);
        l.y = amp_arr(t_alloc(t, 20), AMP_F32);
        l.aux = amp_arr(t_alloc(t, 20), AMP_F32);
        CHECK_OK(amp_linear_forward(t->ctx, &l));
        t_get(t, got, l.y.data, 20);
        t_note(t, "act %d", act);
        CHECK(amp_is_nan(got[0]));
        CHECK(ref_f32_bits(got[1]) == 0x7f800000u);
        CHECK(act ? got[2] == 0.0f : ref_f32_bits(got[2]) == 0xff800000u);
        dy[0] = 1;
        dy[1] = 2;
        dy[2] = 3;
        dy[3] = nan;
        dy[4] = inf;
        l.dy = amp_arr(t_put(t, dy, 20), AMP_F32);
        CHECK_OK(amp_linear_backward(t->ctx, &l));
        t_get(t, got, l.dy.data, 20);
        CHECK(act == AMP_GELU ? amp_is_nan(got[0]) : got[0] == 1.0f); /* what came is passed on, or is NaN */
        CHECK(got[1] == 2.0f);
        CHECK(act ? got[2] == 0.0f : got[2] == 3.0f);
        CHECK(amp_is_nan(got[3]));
        CHECK(act == AMP_RELU ? got[4] == 0.0f : !amp_is_finite(got[4])); /* ReLU passes nothing where y = 0 */
    }
}

static void linear_errors(t_run *t) {
    float x[64] = {0};
    void *p[8];
    amp_linear_desc good = AMP_ZERO, l;
    int i;
    for (i = 0; i < 8; i++)
        p[i] = t_put(t, x, sizeof x);
    good.rows = 2;
    good.in = 3;
    good.out = 4;
    good.act = AMP_GELU;
    good.x = amp_arr(p[0], AMP_F32);
    good.w = amp_arr(p[1], AMP_F32);
    good.y = amp_arr(p[2], AMP_F32);
    good.aux = amp_arr(p[3], AMP_F32);
    good.dy = amp_arr(p[4], AMP_F32);
    good.dx = amp_arr(p[5], AMP_F32);
    good.dw = amp_arr(p[6], AMP_F32);
    good.dbias = amp_arr(p[7], AMP_F32);
    CHECK_OK(amp_linear_forward(t->ctx, &good));
    CHECK_OK(amp_linear_backward(t->ctx, &good));
    CHECK_EQ(amp_linear_forward(NULL, &good), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_linear_backward(NULL, &good), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_linear_forward(t->ctx, NULL), AMP_ERR_INVALID_ARG, "amp_linear_forward");
    CHECK_STATUS(amp_linear_backward(t->ctx, NULL), AMP_ERR_INVALID_ARG, "amp_linear_backward");
    l = good;
    l._begin = 1;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_UNINIT, "amp_linear_forward");
    l = good;
    l._end = 1;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_UNINIT, "amp_linear_backward");
    l = good;
    l.flags = 64;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_forward flags");
    l = good;
    l.act = (amp_act)99;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_backward act");
    l = good;
    l.in = 0;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_forward in");
    l = good;
    l.out = 0;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_backward out");
    l = good;
    l.x.data = NULL;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_forward x");
    l = good;
    l.w.data = NULL;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_forward w");
    l = good;
    l.y.data = NULL;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_forward y");
    l = good;
    l.x.count = 5;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_forward x count 5");
    l = good;
    l.aux.dtype = AMP_F16;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_forward aux");
    l = good;
    l.w.dtype = AMP_F16;
    CHECK(amp_linear_forward(t->ctx, &l) != AMP_OK);
    CHECK(strstr(amp_last_error(t->ctx), "amp_linear_forward") != NULL);
    l = good;
    l.dy.data = NULL;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_backward dy");
    l = good;
    l.aux.data = NULL;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_backward aux"); /* GELU needs it */
    l = good;
    l.act = AMP_RELU;
    l.y.data = NULL;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_backward y");
    l = good;
    l.w.data = NULL;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_backward w");
    l = good;
    l.x.data = NULL;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_backward x");
    l = good;
    l.w.dtype = AMP_BF16;
    CHECK(amp_linear_backward(t->ctx, &l) != AMP_OK && strstr(amp_last_error(t->ctx), "dy") != NULL);
    l = good;
    l.dw.count = 11;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_backward dw count 11");
    l = good;
    l.w.data = NULL;
    l.dx.data = NULL;
    CHECK_OK(amp_linear_backward(t->ctx, &l)); /* not needed then */
}

/* ---- softmax cross-entropy ---- */

typedef struct xent_ref { double *row, *grad, loss; } xent_ref;

static xent_ref xent_f64(t_run *t, const void *logits, amp_dtype type, const amp_xent_desc *e, const int32_t *labels,
    size_t ld, double scale) {
    xent_ref r;
    size_t i, c, counted = 0;
    double factor = e->factor.given ? (double)e->factor.value : 1.0, s = (double)e->smoothing;
    r.row = (double *)t_host(t, 8 * e->rows);
    r.grad = (double *)t_host(t, 8 * e->rows * e->classes);
    r.loss = 0;
    for (i = 0; i < e->rows; i++)
        counted += labels[i] >= 0;
    for (i = 0; i < e->rows; i++) {
        double max = -(double)INFINITY, sum = 0, all = 0, weight = e->sum || !counted ? 1.0 : 1.0 / (double)counted;
        if (labels[i] < 0) continue;
        for (c = 0; c < e->classes; c++)
            max = fmax(max, (double)amp_load(logits, type, i * ld + c));
        for (c = 0; c < e->classes; c++) {
            sum += exp((double)amp_load(logits, type, i * ld + c) - max);
            all += (double)amp_load(logits, type, i * ld + c);
        }
        if ((size_t)labels[i] >= e->classes) {
            r.row[i] = (double)NAN;
            for (c = 0; c < e->classes; c++)
                r.grad[i * e->classes + c] = (double)NAN;
            r.loss = (double)NAN;
            continue;
        }
        r.row[i] = (1 - s) * (max + log(sum) - (double)amp_load(logits, type, i * ld + (size_t)labels[i])) +
            s * (max + log(sum) - all / (double)e->classes);
        r.loss += r.row[i] * weight;
        for (c = 0; c < e->classes; c++)
            r.grad[i * e->classes + c] = (exp((double)amp_load(logits, type, i * ld + c) - max) / sum -
                                             (c == (size_t)labels[i] ? 1 - s : 0.0) - s / (double)e->classes) *
                weight * factor * scale;
    }
    return r;
}

static void xent_values(t_run *t) {
    static const amp_dtype types[3] = {AMP_F32, AMP_F16, AMP_BF16};
    static const size_t class_list[] = {1, 2, 3, 4, 7, 10, 16, 17, 100, 1000, 5000};
    int round, rounds = t_rounds(t, 300, 6000, 20, 250);
    for (round = 0; round < rounds; round++) {
        amp_xent_desc e = AMP_ZERO;
        amp_dtype type = types[t_below(t, 3)], gt = types[t_below(t, 3)];
        size_t rows = 1 + t_below(t, t_slow(t) || t_below(t, 3) ? 40 : 150);
        size_t classes = class_list[t_below(t, t_slow(t) ? 9 : 11)], ld = classes + (t_below(t, 2) ? 0 : t_below(t, 7)),
               i, c, n = (rows - 1) * ld + classes;
        size_t size = amp_dtype_size(type), gsize;
        float spread = t_below(t, 3) == 0 ? 30.0f : 3.0f, scale = 1.0f, loss = -1, *row;
        amp_scaler *s = NULL;
        amp_scaler_desc sd = AMP_ZERO;
        void *x = t_host(t, n * size), *g;
        int32_t *labels = (int32_t *)t_host(t, 4 * rows);
        int in_place = t_below(t, 3) == 0;
        xent_ref want;
        if (classes >= 1000 && rows > 5) rows = 5;
        n = (rows - 1) * ld + classes;
        if (in_place) gt = type;
        gsize = amp_dtype_size(gt);
        memset(x, 0xff, n * size); /* NaN between the rows */
        for (i = 0; i < rows; i++)
            for (c = 0; c < classes; c++)
                amp_store(x, type, i * ld + c, t_real(t) * spread);
        for (i = 0; i < rows; i++)
            labels[i] = t_below(t, 5) ? (int32_t)t_below(t, (uint32_t)classes) : t_below(t, 2) ? -1 : -100;
        if (round % 10 == 9)
            for (i = 0; i < rows; i++)
                labels[i] = -1; /* all left out */
        if (round % 10 == 8) labels[t_below(t, (uint32_t)rows)] = t_below(t, 2) ? (int32_t)classes : 0x7fffffff;
        e.rows = rows;
        e.classes = classes;
        e.ld = ld == classes ? 0 : ld;
        e.sum = t_below(t, 2);
        e.smoothing = t_below(t, 2) ? 0.0f : 0.1f;
        if (t_below(t, 2)) e.factor = amp_opt(t_below(t, 8) ? 0.25f : 0.0f);
        e.logits = amp_arrn(t_put_at(t, x, n * size, size), type, n);
        e.dlogits = e.logits;
        if (!in_place) {
            g = t_host(t, n * gsize);
            memset(g, 0xee, n * gsize);
            e.dlogits = amp_arrn(t_put_at(t, g, n * gsize, gsize), gt, n);
        }
        e.labels = (const int32_t *)t_put(t, labels, 4 * rows);
        e.loss = (float *)t_alloc(t, 4);
        e.row_loss = (float *)t_alloc(t, 4 * rows);
        if (t_below(t, 2)) {
            sd.scale = scale = gt == AMP_F16 ? 64.0f : 4096.0f;
            CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
            e.scaler = s;
        }
        t_note(t, "round %d: %s to %s%s, %d rows, %d classes, ld %d, sum %d, smoothing %g, scale %g", round,
            amp_dtype_name(type), amp_dtype_name(gt), in_place ? " in place" : "", (int)rows, (int)classes, (int)ld,
            (int)e.sum, (double)e.smoothing, (double)scale);
        if (CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e))) {
            double worst = 0;
            want = xent_f64(t, x, type, &e, labels, ld, (double)scale);
            row = (float *)t_host(t, 4 * rows);
            t_get(t, row, e.row_loss, 4 * rows);
            t_get(t, &loss, e.loss, 4);
            for (i = 0; i < rows; i++)
                CHECK_NEAR((double)row[i], want.row[i], 1e-6 * (1 + (double)spread * 4));
            CHECK_NEAR((double)loss, want.loss, 1e-6 * (1 + (double)spread * 4) * (e.sum ? (double)rows : 1.0));
            g = t_host(t, n * gsize);
            t_get(t, g, e.dlogits.data, n * gsize);
            for (i = 0; i < rows; i++)
                for (c = 0; c < classes; c++) {
                    double got = (double)amp_load(g, gt, i * ld + c), w = want.grad[i * classes + c],
                           limit = 2e-6 * (double)scale * (1 + (double)spread / 10) +
                        1.00001 * fmax(ref_half_ulp(w, gt), ref_half_ulp(got, gt));
                    if (w != w) {
                        if (got == got) {
                            t_check(t, 0, __FILE__, __LINE__, "dlogits of a wrong label are not NaN");
                            i = rows;
                            break;
                        }
                        continue;
                    }
                    if (!(fabs(got - w) <= limit)) {
                        t_check(t, 0, __FILE__, __LINE__, "dlogits[%d, %d] is %.9g, should be %.9g +- %.2g", (int)i,
                            (int)c, got, w, limit);
                        i = rows;
                        break;
                    }
                    if (fabs(got - w) > worst) worst = fabs(got - w);
                }
            for (i = 0; i + 1 < rows && ld > classes; i++) { /* between the rows nothing was written */
                const unsigned char *gap = (const unsigned char *)g + (i * ld + classes) * gsize;
                for (c = 0; c < (ld - classes) * gsize; c++)
                    if (gap[c] != (in_place ? 0xff : 0xee)) {
                        t_check(t, 0, __FILE__, __LINE__, "the padding behind row %d was written", (int)i);
                        i = rows;
                        break;
                    }
            }
        }
        amp_scaler_destroy(s);
        t_clear(t);
    }
}

/* Extreme logits: no overflow inside. */
static void xent_extremes(t_run *t) {
    float x[4][3] = {{3e38f, -3e38f, 0}, {-1e30f, -1e30f, -1e30f}, {1000, 999, -1000}, {88, 89, 90}}, row[4], g[4][3],
          loss;
    int32_t labels[4] = {0, 1, 1, 2};
    amp_xent_desc e = AMP_ZERO;
    e.rows = 4;
    e.classes = 3;
    e.sum = 1;
    e.logits = amp_arr(t_put(t, x, sizeof x), AMP_F32);
    e.dlogits = amp_arr(t_alloc(t, sizeof g), AMP_F32);
    e.labels = (const int32_t *)t_put(t, labels, sizeof labels);
    e.loss = (float *)t_alloc(t, 4);
    e.row_loss = (float *)t_alloc(t, sizeof row);
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    t_get(t, row, e.row_loss, sizeof row);
    t_get(t, g, e.dlogits.data, sizeof g);
    t_get(t, &loss, e.loss, 4);
    CHECK_NEAR((double)row[0], 0.0, 1e-7);
    CHECK_NEAR((double)row[1], log(3.0), 1e-6);
    CHECK_NEAR((double)row[2], 1.0 + log1p(exp(-1.0)), 1e-6);
    CHECK_NEAR((double)row[3], log1p(exp(-1.0) + exp(-2.0)), 1e-6);
    CHECK(g[0][0] == 0 && g[0][1] == 0 && g[0][2] == 0);
    CHECK_NEAR((double)g[1][0], 1.0 / 3, 1e-7);
    CHECK_NEAR((double)g[1][1], -2.0 / 3, 1e-7);
    CHECK_NEAR((double)loss, (double)row[0] + (double)row[1] + (double)row[2] + (double)row[3], 1e-6);
    t_note(t, "NaN and Inf among the logits make their row NaN, and no other");
    x[0][1] = ref_f32(0x7fc00000);
    x[1][0] = ref_f32(0x7fc00000);
    x[2][2] = ref_f32(0x7f800000);
    t_set(t, e.logits.data, x, sizeof x);
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    t_get(t, row, e.row_loss, sizeof row);
    t_get(t, g, e.dlogits.data, sizeof g);
    t_get(t, &loss, e.loss, 4);
    CHECK(amp_is_nan(row[0]) && amp_is_nan(row[1]) && !amp_is_finite(row[2]) && amp_is_finite(row[3]) &&
        amp_is_nan(loss));
    CHECK(amp_is_nan(g[0][0]) && amp_is_nan(g[0][1]) && amp_is_nan(g[1][2]) && amp_is_nan(g[2][2]) &&
        amp_is_finite(g[3][0]));
    t_note(t, "minus Inf is a class that cannot be");
    x[0][1] = ref_f32(0xff800000);
    x[0][0] = 1;
    x[0][2] = 1;
    t_set(t, e.logits.data, x, sizeof x);
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    t_get(t, row, e.row_loss, sizeof row);
    t_get(t, g, e.dlogits.data, sizeof g);
    CHECK_NEAR((double)row[0], log(2.0), 1e-6);
    CHECK(g[0][1] == 0.0f && g[0][0] == -0.5f && g[0][2] == 0.5f);
    t_note(t, "without loss, or without gradient");
    e.loss = NULL;
    e.row_loss = NULL;
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    e.dlogits = amp_arr(NULL, AMP_AUTO);
    e.row_loss = (float *)t_alloc(t, sizeof row);
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    t_note(t, "no rows: loss 0");
    e.rows = 0;
    e.loss = (float *)t_alloc(t, 4);
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    t_get(t, &loss, e.loss, 4);
    CHECK_F32(loss, 0.0f);
}

static void xent_loss_is_the_sum_of_rows(t_run *t) { /* by the rule of sums, rounded once */
    size_t rows = t_slow(t) ? 3000 : 70000, i, counted = 0;
    float *x = (float *)t_host(t, 8 * rows), *row = (float *)t_host(t, 4 * rows), loss = 0;
    int32_t *labels = (int32_t *)t_host(t, 4 * rows);
    amp_xent_desc e = AMP_ZERO;
    for (i = 0; i < rows; i++) {
        x[2 * i] = t_real(t);
        x[2 * i + 1] = t_real(t);
        labels[i] = (int32_t)t_below(t, 3) - 1;
        counted += labels[i] >= 0;
    }
    e.rows = rows;
    e.classes = 2;
    e.logits = amp_arr(t_put(t, x, 8 * rows), AMP_F32);
    e.labels = (const int32_t *)t_put(t, labels, 4 * rows);
    e.loss = (float *)t_alloc(t, 4);
    e.row_loss = (float *)t_alloc(t, 4 * rows);
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    t_get(t, row, e.row_loss, 4 * rows);
    t_get(t, &loss, e.loss, 4);
    CHECK_NEAR((double)loss, ref_sum(row, rows) / (double)counted, 1.001 * 2 * ref_half_ulp((double)loss, AMP_F32));
    e.sum = 1;
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    t_get(t, &loss, e.loss, 4);
    CHECK_F32(loss, (float)ref_sum(row, rows));
}

static void xent_scenario(t_run *t, t_blob *b, const void *arg) {
    size_t rows = 37, classes = 2100, i;
    float *x = (float *)t_host(t, 4 * rows * classes);
    int32_t labels[37];
    amp_xent_desc e = AMP_ZERO;
    (void)arg;
    for (i = 0; i < rows * classes; i++)
        x[i] = t_real(t) * 4.0f;
    for (i = 0; i < rows; i++)
        labels[i] = (int32_t)t_below(t, (uint32_t)classes + 300) - 300;
    e.rows = rows;
    e.classes = classes;
    e.smoothing = 0.05f;
    e.factor = amp_opt(0.3f);
    e.logits = amp_arr(t_put(t, x, 4 * rows * classes), AMP_F32);
    e.dlogits = amp_arr(t_alloc(t, 2 * rows * classes), AMP_F16);
    e.labels = (const int32_t *)t_put(t, labels, sizeof labels);
    e.loss = (float *)t_alloc(t, 4);
    e.row_loss = (float *)t_alloc(t, 4 * rows);
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    t_blob_dev(t, b, e.loss, 4);
    t_blob_dev(t, b, e.row_loss, 4 * rows);
    t_blob_dev(t, b, e.dlogits.data, 2 * rows * classes);
}
static void xent_same_everywhere(t_run *t) { t_same_everywhere(t, xent_scenario, NULL); }

/* The activation's backward is arithmetic: bits. */
static void act_grad_scenario(t_run *t, t_blob *b, const void *arg) {
    size_t n = t_slow(t) ? 3000 : 70001, i;
    int act;
    float *x = (float *)t_host(t, 4 * n), *dy = (float *)t_host(t, 4 * n);
    (void)arg;
    for (i = 0; i < n; i++) {
        x[i] = t_range(t, -20, 4);
        dy[i] = t_real(t);
    }
    for (act = 1; act < 3; act++) {
        amp_linear_desc l = AMP_ZERO;
        l.rows = 1;
        l.in = 1;
        l.out = n;
        l.act = (amp_act)act;
        l.y = l.aux = amp_arr(t_put(t, x, 4 * n), AMP_F32);
        l.dy = amp_arr(t_put(t, dy, 4 * n), AMP_F32);
        CHECK_OK(amp_linear_backward(t->ctx, &l));
        t_blob_dev(t, b, l.dy.data, 4 * n);
    }
}
static void act_grad_same_everywhere(t_run *t) { t_same_everywhere(t, act_grad_scenario, NULL); }

/* A device array as bits, every NaN the same: which payload survives arithmetic is nobody's promise. */
static void blob_floats(t_run *t, t_blob *b, const void *dev, amp_dtype type, size_t n) {
    size_t size = amp_dtype_size(type), i;
    char *host = (char *)t_host(t, n * size);
    t_get(t, host, dev, n * size);
    for (i = 0; i < n; i++)
        if (amp_is_nan(amp_load(host, type, i))) ampi_store_pattern(host, type, i, set_nan(type));
    t_blob_add(b, host, n * size);
}
/* Gradients of 16 bits through an activation, in rows of any length at any address, alone and with column sums. */
static void act_rows_scenario(t_run *t, t_blob *b, const void *arg) {
    static const size_t columns[] = {1, 7, 8, 13, 31, 64, 129, 255, 264, 519}, most[] = {70, 1, 33, 2};
    size_t c, i;
    (void)arg;
    for (c = 0; c < 60; c++) {
        size_t cols = columns[c % 10], rows = most[c % 4], n = rows * cols, shift = t_below(t, 8);
        amp_dtype type = c / 30 ? AMP_BF16 : AMP_F16, other = t_below(t, 6) ? type : AMP_F32;
        void *dy = t_host(t, 2 * n), *saved = t_host(t, 4 * n);
        int sums = t_below(t, 4) != 0;
        amp_linear_desc l = AMP_ZERO;
        for (i = 0; i < n; i++) {
            float odd = t_below(t, 2) ? t_pattern(t) : ref_f32(0x7fc00000u | (t_u32(t) & 0x803fe000u)); /* any NaN */
            amp_store(dy, type, i, t_below(t, 400) ? t_real(t) : odd);
            amp_store(saved, other, i, t_below(t, 50) ? t_real(t) : t_pattern(t));
        }
        l.rows = rows;
        l.in = 1;
        l.out = cols;
        l.act = (amp_act)((c + c / 10) % AMP_ACT_COUNT);
        l.y = l.aux = amp_arr(t_put_at(t, saved, n * amp_dtype_size(other), shift * amp_dtype_size(other)), other);
        l.dy = amp_arr(t_put_at(t, dy, 2 * n, 2u * t_below(t, 8)), type);
        if (sums) l.dbias = amp_arr(t_alloc(t, 4 * cols), AMP_F32);
        CHECK_OK(amp_linear_backward(t->ctx, &l));
        if (l.act == AMP_ACT_NONE || l.act == AMP_RELU)
            t_blob_dev(t, b, l.dy.data, 2 * n); /* a NaN that passes keeps what it carries */
        else
            blob_floats(t, b, l.dy.data, type, n);
        if (sums) blob_floats(t, b, l.dbias.data, AMP_F32, cols);
        t_note(t, "%d rows of %d columns, act %d", (int)rows, (int)cols, (int)l.act);
        t_clear(t);
    }
}
static void act_rows(t_run *t) { t_same_everywhere(t, act_rows_scenario, NULL); }

/* The gradient of a product's activation in more groups of eight than the smallest grid has threads, in rows that end
   within one. The products are exact: k is 1. */
static void act_many_scenario(t_run *t, t_blob *b, const void *arg) {
    const size_t m = 400, n = 101;
    size_t i;
    int act;
    (void)arg;
    for (act = 1; act < AMP_ACT_COUNT; act++) {
        void *x = t_host(t, 2 * m), *w = t_host(t, 2 * n), *aux = t_host(t, 2 * m * n);
        amp_gemm_desc g = AMP_ZERO;
        t_fill_real(t, x, AMP_F16, m, 1.0f);
        t_fill_real(t, aux, AMP_F16, m * n, 1.0f);
        for (i = 0; i < n; i++)
            amp_store(w, AMP_F16, i, (float)(1 << i % 5));
        g.m = m;
        g.n = n;
        g.k = 1;
        g.act = (amp_act)act;
        g.backward = 1;
        g.a = amp_arr(t_put(t, x, 2 * m), AMP_F16);
        g.b = amp_arr(t_put(t, w, 2 * n), AMP_F16);
        g.aux = amp_arr(t_put(t, aux, 2 * m * n), AMP_F16);
        g.d = amp_arr(t_alloc(t, 2 * m * n), AMP_F16);
        CHECK_OK(amp_gemm(t->ctx, &g));
        t_blob_dev(t, b, g.d.data, 2 * m * n);
        t_clear(t);
    }
}
static void act_many(t_run *t) { t_same_everywhere(t, act_many_scenario, NULL); }

static const size_t few[] = {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 63, 65, 127, 300, 1023, 1024, 1025, 2049, 5000};
#define N_FEW (sizeof few / sizeof few[0])

/* Activations forward and backward, any floats: specials, all exponents. The product in front of them is x * 1. */
static void act_bits_scenario(t_run *t, t_blob *b, const void *arg) {
    size_t c, i, n;
    int act;
    (void)arg;
    for (c = 0; c < N_FEW; c++)
        for (act = 1; act < AMP_ACT_COUNT; act++) {
            amp_linear_desc l = AMP_ZERO;
            float one = 1.0f, *x, *dy;
            if (few[c] > 1100 && t_slow(t)) continue;
            n = few[c];
            x = (float *)t_host(t, 4 * n);
            dy = (float *)t_host(t, 4 * n);
            for (i = 0; i < n; i++) {
                x[i] = i % 3 ? t_pattern(t) : t_range(t, -6, 7);
                dy[i] = i % 5 ? t_real(t) : t_pattern(t);
            }
            l.rows = 1;
            l.in = 1;
            l.out = n;
            l.act = (amp_act)act;
            l.x = amp_arr(t_put(t, &one, 4), AMP_F32);
            l.w = amp_arr(t_put(t, x, 4 * n), AMP_F32);
            l.y = amp_arr(t_alloc(t, 4 * n), AMP_F32);
            l.aux = amp_arr(t_alloc(t, 4 * n), AMP_F32);
            CHECK_OK(amp_linear_forward(t->ctx, &l));
            if (t->place->kind != T_KIND_CUDA)
                blob_floats(t, b, l.y.data, AMP_F32, n); /* a GPU library has its own activation */
            t_set(t, l.aux.data, x, 4 * n);
            t_set(t, l.y.data, x, 4 * n);
            l.dy = amp_arr(t_put(t, dy, 4 * n), AMP_F32);
            CHECK_OK(amp_linear_backward(t->ctx, &l));
            blob_floats(t, b, l.dy.data, AMP_F32, n);
            t_note(t, "act %d, n %d", act, (int)n);
        }
}
static void act_bits(t_run *t) { t_same_everywhere(t, act_bits_scenario, NULL); }

/* Logit i of a row of this kind: small, large, all equal, any size, or with Inf and NaN. */
static float logit_of_kind(t_run *t, size_t kind, size_t i) {
    if (kind == 0) return t_real(t) * 5.0f;
    if (kind == 1) return t_real(t) * 60.0f;
    if (kind == 2) return -1.5f;
    if (kind == 3) return t_range(t, -20, 6);
    return i % 2 ? ref_f32(0xff800000u) : t_pattern(t);
}

/* Any number of classes, every dtype, in place and not, gradients of a different dtype, rows apart, Inf and NaN among
   the logits. */
static void xent_bits_scenario(t_run *t, t_blob *b, const void *arg) {
    size_t c, i, r, rows = 5;
    (void)arg;
    for (c = 0; c < N_FEW; c++) {
        amp_dtype type = ref_dtypes[c % 5], to = c % 4 != 1 && c % 3 == 2 ? ref_dtypes[c / 3 % 5] : type;
        size_t classes = few[c], ld = classes + c % 3, size = amp_dtype_size(type), n = rows * ld;
        void *x = t_host(t, n * size), *none = t_host(t, n * 4u);
        int32_t labels[5];
        amp_xent_desc e = AMP_ZERO;
        if (classes > 1100 && t_slow(t)) continue;
        for (r = 0; r < rows; r++) {
            labels[r] = (int32_t)t_below(t, (uint32_t)classes);
            for (i = 0; i < ld; i++)
                amp_store(x, type, r * ld + i, logit_of_kind(t, r, i));
        }
        if (c % 4 == 3) labels[1] = -1;
        e.rows = rows;
        e.classes = classes;
        e.ld = ld;
        e.smoothing = c % 2 ? 0.1f : 0.0f;
        e.factor = amp_opt(c % 3 ? 1.0f : 1000.0f);
        e.logits = amp_arr(t_put(t, x, n * size), type);
        memset(none, 0, n * 4u);
        e.dlogits = c % 4 == 1 ? e.logits : amp_arr(t_put(t, none, n * amp_dtype_size(to)), to);
        e.labels = (const int32_t *)t_put(t, labels, sizeof labels);
        e.loss = (float *)t_alloc(t, 4);
        e.row_loss = (float *)t_alloc(t, 4 * rows);
        CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
        blob_floats(t, b, e.row_loss, AMP_F32, rows);
        blob_floats(t, b, e.dlogits.data, to, n);
        t_note(t, "%s, classes %d", amp_dtype_name(type), (int)classes);
    }
}
static void xent_bits(t_run *t) { t_same_everywhere(t, xent_bits_scenario, NULL); }

/* More rows than one chunk of the rule of sums has, some left out; more than a thread or a team takes at once. */
static void xent_rows_scenario(t_run *t, t_blob *b, const void *arg) {
    const size_t each[3][2] = {{AMP_CHUNK + 3, 3}, {3000, 17}, {700, 5}};
    size_t k, i;
    (void)arg;
    for (k = 0; k < 3; k++) {
        const size_t rows = each[k][0], classes = each[k][1], n = rows * classes;
        uint16_t *x = (uint16_t *)t_host(t, 2 * n);
        int32_t *labels = (int32_t *)t_host(t, 4 * rows);
        amp_xent_desc e = AMP_ZERO;
        for (i = 0; i < n; i++)
            amp_store(x, AMP_F16, i, t_real(t));
        for (i = 0; i < rows; i++)
            labels[i] = (int32_t)t_below(t, (uint32_t)classes + 1) - 1;
        e.rows = rows;
        e.classes = classes;
        e.logits = e.dlogits = amp_arr(t_put(t, x, 2 * n), AMP_F16);
        e.labels = (const int32_t *)t_put(t, labels, 4 * rows);
        e.loss = (float *)t_alloc(t, 4);
        e.row_loss = (float *)t_alloc(t, 4 * rows);
        CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
        t_blob_dev(t, b, e.loss, 4);
        t_blob_dev(t, b, e.dlogits.data, 2 * n);
    }
}
static void xent_many_rows(t_run *t) { t_same_everywhere(t, xent_rows_scenario, NULL); }

/* Rows of three chunks that begin at odd elements: a largest logit that grows from chunk to chunk, or falls; whole
   parts of -Inf, the first among them. Floats with label smoothing, whose mean is a sum of its own. */
static float logit_of_wide(size_t row, size_t i, float noise) {
    float slope = (float)i * (1.0f / 8192.0f);
    if (row == 0) return slope + noise;
    if (row == 1) return 9.0f - slope + noise;
    return i < 4096u || i % 8192u < 2048u ? ref_f32(0xff800000u) : noise;
}
static void xent_wide_scenario(t_run *t, t_blob *b, const void *arg) {
    const size_t rows = 3;
    size_t type, r, i;
    (void)arg;
    for (type = 0; type < 2; type++) {
        amp_dtype dtype = type ? AMP_F32 : AMP_F16;
        const size_t classes = type ? 2 * AMP_CHUNK + 1 : 136001,
                     n = rows * classes; /* the last chunk of one, or of many */
        const double smoothing = type ? 0.125 : 0.0;
        void *x = t_host(t, n * amp_dtype_size(dtype)), *dx = t_host(t, n * amp_dtype_size(dtype));
        const int32_t labels[3] = {(int32_t)classes - 1, 77, 4099};
        float row_loss[3], loss;
        amp_xent_desc e = AMP_ZERO;
        for (i = 0; i < n; i++)
            amp_store(x, dtype, i, logit_of_wide(i / classes, i % classes, t_real(t)));
        e.rows = rows;
        e.classes = classes;
        e.logits = amp_arr(t_put(t, x, n * amp_dtype_size(dtype)), dtype);
        e.dlogits = amp_arr(t_put(t, x, n * amp_dtype_size(dtype)), dtype);
        e.labels = (const int32_t *)t_put(t, labels, sizeof labels);
        e.loss = (float *)t_alloc(t, 4);
        e.row_loss = (float *)t_alloc(t, sizeof row_loss);
        e.factor = amp_opt(30000.0f);
        e.smoothing = (float)smoothing;
        CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
        t_get(t, row_loss, e.row_loss, sizeof row_loss);
        t_get(t, &loss, e.loss, 4);
        t_get(t, dx, e.dlogits.data, n * amp_dtype_size(dtype));
        for (r = 0; r < rows; r++) {
            double sum = 0, mean = 0, all = 0, want;
            for (i = 0; i < classes; i++) {
                double logit = (double)amp_load(x, dtype, r * classes + i);
                sum += exp(logit);
                mean += logit / (double)classes;
            }
            want = log(sum) - (1.0 - smoothing) * (double)amp_load(x, dtype, r * classes + (size_t)labels[r]);
            if (type) want -= smoothing * mean;
            if (r == 2 && type)
                CHECK(row_loss[r] > 3.402823466e38f); /* the mean is -Inf */
            else
                CHECK_NEAR((double)row_loss[r], want, 1e-5);
            for (i = 0; i < classes; i++)
                all += (double)amp_load(dx, dtype, r * classes + i);
            CHECK_NEAR(
                all, 0.0, dtype == AMP_F32 ? 0.1 : 40.0); /* a softmax less one: F16 rounds 10,000 at the label */
        }
        if (!type) CHECK_F32(amp_load(dx, dtype, 2 * classes), 0.0f);
        t_blob_dev(t, b, e.row_loss, sizeof row_loss);
        t_blob_dev(t, b, e.dlogits.data, n * amp_dtype_size(dtype));
    }
}
static void xent_wide(t_run *t) { t_same_everywhere(t, xent_wide_scenario, NULL); }

/* Sums over the rows by the rule of columns, of aligned rows and others. */
static void col_sum_scenario(t_run *t, t_blob *b, const void *arg) {
    static const size_t most[] = {1, 5, 32, 33, 64, 65, 257, 300, 530}, parts = 4197; /* many sums of 32 rows */
    size_t c, i;
    (void)arg;
    for (c = 0; c < N_FEW; c++) {
        amp_dtype type = c % 2 ? AMP_F16 : AMP_F32;
        size_t cols = few[c], rows = cols == 8 ? parts : most[t_slow(t) ? c % 6 : c % 9], size = amp_dtype_size(type);
        void *x = t_host(t, rows * cols * size);
        float *as_float = (float *)t_host(t, rows * cols * 4), *sums = (float *)t_host(t, 4 * cols);
        amp_linear_desc l = AMP_ZERO;
        for (i = 0; i < rows * cols; i++) {
            amp_store(x, type, i, t_range(t, -12, 12));
            as_float[i] = amp_load(x, type, i);
        }
        l.rows = rows;
        l.in = 1;
        l.out = cols;
        l.dy = amp_arr(t_put(t, x, rows * cols * size), type);
        l.dbias = amp_arr(t_alloc(t, 4 * cols), AMP_F32);
        CHECK_OK(amp_linear_backward(t->ctx, &l));
        t_get(t, sums, l.dbias.data, 4 * cols);
        t_note(t, "%d rows of %d columns", (int)rows, (int)cols);
        for (i = 0; i < cols; i++)
            CHECK_F32(sums[i], (float)ref_sum_column(as_float + i, rows, cols));
        t_blob_dev(t, b, l.dbias.data, 4 * cols);
    }
}
static void col_sum_bits(t_run *t) { t_same_everywhere(t, col_sum_scenario, NULL); }

/* Columns from classes to ld: zeros if dlogits says by its count that they are its own, else untouched. */
static void xent_padding(t_run *t) {
    static const amp_dtype dtypes[] = {AMP_F32, AMP_F16, AMP_BF16};
    size_t rows = 5, classes = 13, ld = 24, d, i;
    int32_t labels[5] = {0, 12, -1, 13, 4}; /* one left out, one wrong */
    int own, in_place;
    for (d = 0; d < 3; d++)
        for (own = 0; own < 2; own++)
            for (in_place = 0; in_place < 2; in_place++) {
                size_t size = amp_dtype_size(dtypes[d]), n = rows * ld;
                char *host = (char *)t_host(t, n * size), *got = (char *)t_host(t, n * size);
                amp_xent_desc x = AMP_ZERO;
                for (i = 0; i < n; i++)
                    amp_store(host, dtypes[d], i, t_real(t) + 5.0f); /* no gradient is like that */
                x.rows = rows;
                x.classes = classes;
                x.ld = ld;
                x.logits = amp_arr(t_put(t, host, n * size), dtypes[d]);
                x.dlogits = in_place ? x.logits : amp_arr(t_put(t, host, n * size), dtypes[d]);
                x.dlogits.count = own ? n : n - 1;
                x.labels = (const int32_t *)t_put(t, labels, sizeof labels);
                CHECK_OK(amp_softmax_cross_entropy(t->ctx, &x));
                t_get(t, got, x.dlogits.data, n * size);
                t_note(t, "%s, own %d, in place %d", amp_dtype_name(dtypes[d]), own, in_place);
                for (i = 0; i < n; i++) {
                    int touched = memcmp(got + i * size, host + i * size, size) != 0;
                    if (i % ld < classes)
                        CHECK(touched);
                    else if (own)
                        CHECK_F32(amp_load(got, dtypes[d], i), 0.0f);
                    else
                        CHECK(!touched);
                }
                t_clear(t);
            }
}
static void xent_softmax(t_run *t) { /* no labels: the shares themselves, to sample from */
    size_t rows = 3, sizes[3] = {1, 50, 5001}, k, i, r;
    for (k = 0; k < 3; k++) {
        size_t classes = sizes[k], ld = classes + 3;
        float *z = (float *)t_host(t, 4 * rows * ld), *p = (float *)t_host(t, 4 * rows * ld);
        amp_xent_desc x = AMP_ZERO;
        for (i = 0; i < rows * ld; i++)
            z[i] = t_real(t) * 4.0f;
        x.rows = rows;
        x.classes = classes;
        x.ld = ld;
        x.softmax = 1;
        x.logits = amp_arr(t_put(t, z, 4 * rows * ld), AMP_F32);
        x.dlogits = amp_arrn(t_put(t, z, 4 * rows * ld), AMP_F32, rows * ld);
        CHECK_OK(amp_softmax_cross_entropy(t->ctx, &x));
        t_get(t, p, x.dlogits.data, 4 * rows * ld);
        t_note(t, "%lu classes", (unsigned long)classes);
        for (r = 0; r < rows; r++) {
            double all = 0, sum = 0;
            for (i = 0; i < classes; i++)
                all += exp((double)z[r * ld + i]);
            for (i = 0; i < classes; i++) {
                double want = exp((double)z[r * ld + i]) / all;
                CHECK_NEAR((double)p[r * ld + i], want, want * 4e-6 + 1e-30); /* of logits up to 28 apart */
                sum += (double)p[r * ld + i];
            }
            CHECK_NEAR(sum, 1.0, 1e-6);
            for (i = classes; i < ld; i++)
                CHECK_F32(p[r * ld + i], 0.0f);
        }
        x.factor = amp_opt(0.5f);
        x.dlogits.dtype = AMP_AUTO;
        CHECK_OK(amp_softmax_cross_entropy(t->ctx, &x));
        CHECK_F32(*(float *)set_bits(t, amp_arr(x.dlogits.data, AMP_F32), 1), ref_mul(p[0], 0.5f));
        t_clear(t);
    }
}

/* ---- what is right: labels of three types, weights of the classes, a target for each class ---- */

/* e.labels, as every type that they have; what is not negative fits in a byte. */
static void xent_label_types(t_run *t) {
    size_t rows = 300, classes = 11, i, k;
    int32_t labels[300];
    int64_t labels64[300];
    uint8_t labels8[300];
    float *x = (float *)t_host(t, 4 * rows * classes), *want = (float *)t_host(t, 4 * rows * classes);
    float *got = (float *)t_host(t, 4 * rows * classes), loss[4];
    amp_xent_desc e = AMP_ZERO;
    for (i = 0; i < rows * classes; i++)
        x[i] = t_real(t) * 3.0f;
    for (i = 0; i < rows; i++) {
        labels8[i] = (uint8_t)t_below(t, (uint32_t)classes + 1); /* some are wrong */
        labels64[i] = labels[i] = labels8[i];
    }
    e.rows = rows;
    e.classes = classes;
    e.logits = amp_arr(t_put(t, x, 4 * rows * classes), AMP_F32);
    e.dlogits = amp_arr(t_alloc(t, 4 * rows * classes), AMP_F32);
    e.loss = (float *)t_alloc(t, 4);
    e.row_loss = (float *)t_alloc(t, 4 * rows);
    for (k = 0; k < 4; k++) {
        e.labels = k == 0 ? (const int32_t *)t_put(t, labels, sizeof labels) : NULL;
        e.labels8 = k == 1 ? (const uint8_t *)t_put(t, labels8, sizeof labels8) : NULL;
        if (k == 3) labels64[4] = (int64_t)1 << 32; /* not 0 */
        if (k == 3) labels64[5] = -((int64_t)1 << 40);
        e.labels64 = k > 1 ? (const int64_t *)t_put(t, labels64, sizeof labels64) : NULL;
        e.sum = k == 3;
        CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
        t_get(t, k ? got : want, e.dlogits.data, 4 * rows * classes);
        t_get(t, &loss[k], e.loss, 4);
        t_note(t, "type %d", (int)k);
        if (k == 1 || k == 2) CHECK(memcmp(got, want, 4 * rows * classes) == 0);
        if (k == 1 || k == 2) CHECK(memcmp(&loss[k], &loss[0], 4) == 0);
    }
    CHECK(amp_is_nan(got[4 * classes]));
    CHECK_F32(got[5 * classes], 0.0f);
}

/* As PyTorch has them, in double: row losses, gradients, loss. NULL: no weights, no targets. */
static void xent_each_f64(t_run *t, const amp_xent_desc *e, const float *x, const int32_t *labels, const float *w,
    const float *targets, double *row, double *grad, double *loss) {
    size_t r, c, n = e->classes;
    double s = (double)e->smoothing, counted = 0, *q = (double *)t_host(t, 8 * n);
    for (*loss = 0, r = 0; r < e->rows; r++) {
        double sum = 0, all = 0, miss = 0;
        size_t label = (size_t)(labels[r] < 0 ? 0 : labels[r]);
        for (c = 0; c < n; c++)
            sum += exp((double)x[r * n + c]);
        for (c = 0; c < n; c++) {
            double target = targets ? (double)targets[r * n + c] : c == label ? 1.0 : 0.0;
            q[c] = ((1 - s) * target + s / (double)n) * (w ? (double)w[c] : 1.0);
            if (!targets && labels[r] < 0) q[c] = 0;
            all += q[c];
            miss += q[c] * (log(sum) - (double)x[r * n + c]);
        }
        for (c = 0; c < n; c++)
            grad[r * n + c] = exp((double)x[r * n + c]) / sum * all - q[c];
        row[r] = miss;
        *loss += miss;
        if (targets)
            counted += 1;
        else if (labels[r] >= 0)
            counted += w ? (double)w[label] : 1.0;
    }
    if (e->sum || counted == 0) return;
    *loss /= counted;
    for (r = 0; r < e->rows * n; r++)
        grad[r] /= counted;
}
static void xent_weights(t_run *t) {
    static const size_t class_list[] = {1, 3, 10, 40, 2100};
    static const float smooth[] = {0.0f, 0.1f, 1.0f};
    int k;
    for (k = 0; k < 60; k++) { /* weights, targets or both; sum or mean; smoothing */
        size_t classes = class_list[(size_t)k % (t_slow(t) ? 4 : 5)], rows = 7, n = rows * classes, i;
        float *x = (float *)t_host(t, 4 * n), *p = (float *)t_host(t, 4 * n), *g = (float *)t_host(t, 4 * n);
        float *w = (float *)t_host(t, 4 * classes), row[7], loss;
        double want_row[7], *want = (double *)t_host(t, 8 * n), want_loss;
        int32_t labels[7];
        int weighted = k % 3 != 0, soft = k % 3 != 1;
        amp_xent_desc e = AMP_ZERO;
        for (i = 0; i < n; i++) {
            x[i] = t_real(t) * 3.0f;
            p[i] = t_below(t, 3) ? (t_real(t) + 1.0f) / (float)classes : 0.0f;
        }
        for (i = 0; i < classes; i++)
            w[i] = t_below(t, 6) ? fabsf(t_real(t)) + 0.5f : 0.0f;
        for (i = 0; i < rows; i++)
            labels[i] = (int32_t)t_below(t, (uint32_t)classes + 1) - 1;
        e.rows = rows;
        e.classes = classes;
        e.sum = (uint32_t)k / 5 % 2;
        e.smoothing = smooth[k / 3 % 3];
        e.logits = amp_arr(t_put(t, x, 4 * n), AMP_F32);
        e.dlogits = k % 4 ? amp_arr(t_alloc(t, 4 * n), AMP_F32) : e.logits;
        if (soft) e.targets = amp_arr(t_put(t, p, 4 * n), AMP_F32);
        if (!soft) e.labels = (const int32_t *)t_put(t, labels, sizeof labels);
        if (weighted) e.weights = amp_arr(t_put(t, w, 4 * classes), AMP_F32);
        e.loss = (float *)t_alloc(t, 4);
        e.row_loss = (float *)t_alloc(t, sizeof row);
        t_note(t, "%d classes, weights %d, targets %d, sum %d, smoothing %g", (int)classes, weighted, soft, (int)e.sum,
            (double)e.smoothing);
        CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
        t_get(t, g, e.dlogits.data, 4 * n);
        t_get(t, row, e.row_loss, sizeof row);
        t_get(t, &loss, e.loss, 4);
        xent_each_f64(t, &e, x, labels, weighted ? w : NULL, soft ? p : NULL, want_row, want, &want_loss);
        for (i = 0; i < rows; i++)
            CHECK_NEAR((double)row[i], want_row[i], 1e-5 * (1 + fabs(want_row[i])));
        for (i = 0; i < n; i++)
            CHECK_NEAR((double)g[i], want[i], 2e-6 * (1 + fabs(want[i])));
        CHECK_NEAR((double)loss, want_loss, 3e-5 * (1 + fabs(want_loss)));
        t_clear(t);
    }
}
/* A one-hot target is a label, to the bit, where each class has a target: weights with smoothing. Impossible classes
   (logits of -Inf) do no harm where their target is 0, and weights of 0 everywhere give nothing at all. */
static void xent_one_hot(t_run *t) {
    float x[4][5] = {{1, 2, 3, 4, 5}, {0}, {3, -1, 2, 0, 1}, {2, 2, 2, 2, 1}}, hot[4][5] = {{0}}, g[2][4][5], row[2][4];
    float w[5] = {0.5f, 2.0f, 1.5f, 0.25f, 1.0f}, none[5] = {0}, loss;
    int32_t labels[4] = {0, 3, 2, 1};
    int i;
    amp_xent_desc e = AMP_ZERO;
    for (i = 0; i < 4; i++)
        hot[i][labels[i]] = 1.0f;
    e.rows = 4;
    e.classes = 5;
    e.sum = 1;
    e.smoothing = 0.2f;
    e.logits = amp_arr(t_put(t, x, sizeof x), AMP_F32);
    e.dlogits = amp_arr(t_alloc(t, sizeof x), AMP_F32);
    e.weights = amp_arr(t_put(t, w, sizeof w), AMP_F32);
    e.row_loss = (float *)t_alloc(t, sizeof row[0]);
    e.loss = (float *)t_alloc(t, 4);
    for (i = 0; i < 2; i++) {
        e.labels = i ? NULL : (const int32_t *)t_put(t, labels, sizeof labels);
        e.targets = amp_arr(i ? t_put(t, hot, sizeof hot) : NULL, AMP_F32);
        CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
        t_get(t, g[i], e.dlogits.data, sizeof g[i]);
        t_get(t, row[i], e.row_loss, sizeof row[i]);
    }
    CHECK(memcmp(g[0], g[1], sizeof g[0]) == 0 && memcmp(row[0], row[1], sizeof row[0]) == 0);
    t_note(t, "-Inf where the target is 0");
    x[0][1] = x[2][4] = ref_f32(0xff800000);
    e.smoothing = 0.0f;
    t_set(t, e.logits.data, x, sizeof x);
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    t_get(t, g[0], e.dlogits.data, sizeof g[0]);
    t_get(t, &loss, e.loss, 4);
    CHECK(amp_is_finite(loss));
    CHECK_F32(g[0][0][1], 0.0f);
    t_note(t, "weights of 0: the mean of nothing");
    e.sum = 0;
    e.labels = (const int32_t *)t_put(t, labels, sizeof labels);
    e.targets.data = NULL;
    e.weights = amp_arr(t_put(t, none, sizeof none), AMP_F32);
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    t_get(t, g[0], e.dlogits.data, sizeof g[0]);
    t_get(t, &loss, e.loss, 4);
    CHECK_F32(loss, 0.0f);
    CHECK(g[0][0][2] == 0 && g[0][3][0] == 0);
    t_note(t, "weight 0: an impossible label costs nothing, a NaN does not go away");
    w[0] = w[2] = 0.0f;
    x[0][0] = ref_f32(0xff800000);
    x[2][0] = ref_f32(0x7fc00000);
    e.weights = amp_arr(t_put(t, w, sizeof w), AMP_F32);
    t_set(t, e.logits.data, x, sizeof x);
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    t_get(t, row[0], e.row_loss, sizeof row[0]);
    CHECK_F32(row[0][0], 0.0f);
    CHECK(amp_is_nan(row[0][2]));
    t_note(t, "all smoothing: the label does not matter, -Inf elsewhere does");
    e.weights.data = NULL;
    e.smoothing = 1.0f;
    x[0][0] = 1.0f;
    x[0][1] = 0.0f;
    x[2][0] = 3.0f;
    t_set(t, e.logits.data, x, sizeof x);
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    t_get(t, row[0], e.row_loss, sizeof row[0]);
    t_get(t, g[0], e.dlogits.data, sizeof g[0]);
    CHECK_NEAR((double)row[0][3], log(4 * exp(2.0) + exp(1.0)) - 9.0 / 5, 1e-6);
    CHECK_F32(g[0][3][0], g[0][3][3]);
    CHECK(!amp_is_finite(row[0][2]));
}
/* Every dtype of weights and targets, every number of classes, rows apart. */
static void xent_each_scenario(t_run *t, t_blob *b, const void *arg) {
    size_t c, i, rows = 5;
    (void)arg;
    for (c = 0; c < N_FEW; c++) {
        amp_dtype type = ref_dtypes[c % 5], other = ref_dtypes[(c + c / 5 + 1) % 5];
        size_t classes = few[c], ld = classes + c % 3, n = rows * ld;
        void *x = t_host(t, n * 4), *p = t_host(t, n * 4), *w = t_host(t, classes * 4);
        int64_t labels[5];
        amp_xent_desc e = AMP_ZERO;
        if (classes > 1100 && t_slow(t)) continue;
        for (i = 0; i < n; i++) {
            amp_store(x, type, i, logit_of_kind(t, i / ld, i % ld));
            amp_store(p, other, i, i % 4 ? (t_real(t) + 1.0f) * 0.25f : 0.0f);
        }
        for (i = 0; i < classes; i++)
            amp_store(w, other, i, i % 7 ? t_real(t) + 1.25f : 0.0f);
        for (i = 0; i < rows; i++)
            labels[i] = (int64_t)t_below(t, (uint32_t)classes + 1) - 1;
        e.rows = rows;
        e.classes = classes;
        e.ld = ld;
        e.smoothing = c % 2 ? 0.1f : 0.0f;
        e.logits = amp_arr(t_put(t, x, n * amp_dtype_size(type)), type);
        e.dlogits = c % 4 == 1 ? e.logits : amp_arr(t_put(t, x, n * amp_dtype_size(type)), type);
        if (c % 3) e.labels64 = (const int64_t *)t_put(t, labels, sizeof labels);
        if (c % 3 == 0) e.targets = amp_arr(t_put(t, p, n * amp_dtype_size(other)), other);
        if (c % 3 || c % 2) e.weights = amp_arr(t_put(t, w, classes * amp_dtype_size(other)), other);
        e.loss = (float *)t_alloc(t, 4);
        e.row_loss = (float *)t_alloc(t, 4 * rows);
        CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
        blob_floats(t, b, e.loss, AMP_F32, 1);
        blob_floats(t, b, e.row_loss, AMP_F32, rows);
        blob_floats(t, b, e.dlogits.data, type, n);
        t_note(t, "%s and %s, classes %d", amp_dtype_name(type), amp_dtype_name(other), (int)classes);
    }
}
static void xent_each(t_run *t) { t_same_everywhere(t, xent_each_scenario, NULL); }

static void xent_errors(t_run *t) {
    float x[64] = {0}, row[4] = {0};
    int32_t labels[4] = {0, 1, 2, 0};
    void *px = t_put(t, x, sizeof x), *pg = t_put(t, x, sizeof x);
    amp_xent_desc good = AMP_ZERO, e;
    good.rows = 4;
    good.classes = 3;
    good.logits = amp_arr(px, AMP_F32);
    good.dlogits = amp_arr(pg, AMP_F32);
    good.labels = (const int32_t *)t_put(t, labels, sizeof labels);
    good.loss = (float *)t_put(t, row, 4);
    good.row_loss = (float *)t_put(t, row, sizeof row);
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &good));
    CHECK_EQ(amp_softmax_cross_entropy(NULL, &good), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, NULL), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy");
    e = good;
    e._begin = 1;
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_UNINIT, "amp_softmax_cross_entropy");
    e = good;
    e._end = 1;
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_UNINIT, "amp_softmax_cross_entropy");
    e = good;
    e.classes = 0;
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy classes");
    e = good;
    e.ld = 2;
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy ld 2");
    e = good;
    e.logits.data = NULL;
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy logits");
    e = good;
    e.logits.count = 11;
    CHECK_STATUS(
        amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy logits count 11");
    e = good;
    e.dlogits.count = 11;
    CHECK_STATUS(
        amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy dlogits count 11");
    e = good;
    e.labels = NULL;
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy labels");
    e = good;
    e.softmax = 1;
    CHECK_STATUS(
        amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy softmax labels loss");
    e = good;
    e.labels8 = (const uint8_t *)good.labels;
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy 2 labels8");
    e = good;
    e.weights = amp_arrn(px, AMP_F32, 2);
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy weights");
    e = good;
    e.labels = NULL;
    e.targets = good.dlogits;
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "desc.dlogits overlaps desc.targets");
    e.targets = amp_arrn(px, AMP_F32, 11);
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "desc.targets.count is 11");
    e = good; /* what lies behind the last row's classes: written where the gradient has whole rows */
    e.ld = 4;
    e.row_loss = (float *)pg + 15;
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    e.dlogits.count = 16;
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "desc.row_loss overlaps desc.dlogits");
    e = good;
    e.row_loss = NULL;
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy row_loss");
    e = good;
    e.smoothing = -0.1f;
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy smoothing");
    e = good;
    e.smoothing = 1.5f;
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy smoothing");
    e = good;
    e.factor.value = 0.5f;
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG,
        "amp_softmax_cross_entropy desc.factor amp_opt(0.5)");
    e = good;
    e.factor = amp_opt(ref_f32(0x7fc00000));
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy factor");
    e = good;
    e.dlogits.data = (char *)px + 4;
    CHECK_STATUS(
        amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy dlogits overlap");
    e = good;
    e.dlogits = amp_arr(px, AMP_F16);
    CHECK_STATUS(
        amp_softmax_cross_entropy(t->ctx, &e), AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy dlogits overlap");
}

/* ---- the last layer and its loss in pieces ---- */

enum { V_ROWS = 700, V_IN = 24, V_OUT = 50 };
typedef struct vocabulary {
    amp_linear_xent_desc d;
    amp_linear_desc l; /* the same by three verbs */
    amp_xent_desc x;
    size_t nx, nw, ny;
} vocabulary;
/* Inputs of dtype `type`, dw of dtype `dw`; the same gradients of before in both. */
static void vocabulary_new(t_run *t, vocabulary *v, amp_dtype type, amp_dtype dw, size_t rows) {
    size_t i, size = amp_dtype_size(type);
    void *x, *w;
    float *old = (float *)t_host(t, 4 * V_OUT * V_IN), bias[V_OUT], weights[V_OUT];
    int32_t *labels = (int32_t *)t_host(t, 4 * (rows + 1));
    memset(v, 0, sizeof *v);
    v->nx = rows * V_IN;
    v->nw = V_OUT * V_IN;
    v->ny = rows * V_OUT;
    x = t_host(t, 4 * v->nx + 4);
    w = t_host(t, 4 * v->nw);
    for (i = 0; i < v->nx; i++)
        amp_store(x, type, i, t_real(t));
    for (i = 0; i < v->nw; i++)
        amp_store(w, type, i, t_real(t));
    for (i = 0; i < v->nw; i++)
        amp_store(old, dw, i, t_real(t) * 0.01f);
    for (i = 0; i < V_OUT; i++) {
        bias[i] = t_real(t);
        weights[i] = fabsf(t_real(t)) + 0.5f;
    }
    for (i = 0; i < rows; i++)
        labels[i] = (int32_t)t_below(t, V_OUT + 5) - 5;
    v->l.rows = rows;
    v->l.in = V_IN;
    v->l.out = V_OUT;
    v->l.x = amp_arr(t_put(t, x, size * v->nx + 4), type);
    v->l.w = amp_arr(t_put(t, w, size * v->nw), type);
    v->l.bias = amp_arr(t_put(t, bias, sizeof bias), AMP_F32);
    v->x.rows = rows;
    v->x.classes = V_OUT;
    v->x.labels = (const int32_t *)t_put(t, labels, 4 * (rows + 1));
    v->x.weights = amp_arr(t_put(t, weights, sizeof weights), AMP_F32);
    v->x.smoothing = 0.1f;
    v->d.linear = v->l;
    v->d.xent = v->x;
    v->d.linear.dx = amp_arr(t_alloc(t, 4 * v->nx + 4), type);
    v->d.linear.dw = amp_arr(t_put(t, old, 4 * v->nw), dw);
    v->d.linear.dbias = amp_arr(t_put(t, bias, sizeof bias), AMP_F32);
    v->d.linear.y.dtype = type;
    v->d.xent.loss = (float *)t_alloc(t, 4);
    v->d.xent.row_loss = (float *)t_alloc(t, 4 * (rows + 1));
    v->l.dx = amp_arr(t_alloc(t, 4 * v->nx + 4), type);
    v->l.dw = amp_arr(t_put(t, old, 4 * v->nw), dw);
    v->l.dbias = amp_arr(t_put(t, bias, sizeof bias), AMP_F32);
    v->l.y = v->l.dy = amp_arr(t_alloc(t, 4 * v->ny + 4), type);
    v->x.logits = v->x.dlogits = v->l.y;
    v->x.loss = (float *)t_alloc(t, 4);
    v->x.row_loss = (float *)t_alloc(t, 4 * (rows + 1));
}
static void vocabulary_scratch(t_run *t, vocabulary *v) {
    size_t bytes = 0;
    CHECK_OK(amp_linear_cross_entropy_bytes(t->ctx, &bytes, &v->d));
    v->d.scratch = t_alloc(t, bytes + 256);
    v->d.scratch = (char *)v->d.scratch + (256 - ((uintptr_t)v->d.scratch & 255u)) % 256u;
    v->d.scratch_bytes = bytes;
}
static void vocabulary_three(t_run *t, const vocabulary *v) {
    CHECK_OK(amp_linear_forward(t->ctx, &v->l));
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &v->x));
    CHECK_OK(amp_linear_backward(t->ctx, &v->l));
}
static void vocabulary_near(t_run *t, amp_array got, amp_array want, size_t n, double limit) {
    void *a = t_host(t, 4 * n + 1), *b = t_host(t, 4 * n + 1);
    size_t i;
    t_get(t, a, got.data, n * amp_dtype_size(got.dtype));
    t_get(t, b, want.data, n * amp_dtype_size(want.dtype));
    for (i = 0; i < n; i++)
        CHECK_NEAR((double)amp_load(a, got.dtype, i), (double)amp_load(b, want.dtype, i), limit);
}
static void vocabulary_equal(t_run *t, amp_array got, amp_array want, size_t n) {
    size_t bytes = n * amp_dtype_size(got.dtype);
    void *a = t_host(t, bytes + 1), *b = t_host(t, bytes + 1);
    t_get(t, a, got.data, bytes);
    t_get(t, b, want.data, bytes);
    CHECK(memcmp(a, b, bytes) == 0);
}
/* In ordered mode and with pieces of 256 rows: bit for bit what three verbs give. Else within the products' bound. */
static void vocabulary_pieces(t_run *t) {
    static const amp_dtype types[] = {AMP_F32, AMP_F16, AMP_BF16};
    static const size_t chunks[] = {0, 256, 512, 100, 1, 5000};
    int k;
    for (k = 0; k < 18; k++) {
        amp_dtype type = types[k % 3], dw = k % 2 ? AMP_F32 : type;
        size_t rows = t_slow(t) ? 300 : V_ROWS, chunk = chunks[k / 3];
        int accumulate = k % 4 > 1, exact = !accumulate && dw == AMP_F32 && (chunk % 256 == 0 || chunk >= rows);
        double limit = type == AMP_F32 ? 3e-6 : type == AMP_F16 ? 2e-3 : 1.6e-2;
        amp_scaler_desc sd = AMP_ZERO;
        amp_scaler *s = NULL;
        vocabulary v;
        if (t_slow(t) && k != 1 && k != 10) continue;
        if (chunk == 1) rows = 20;
        sd.scale = 16.0f;
        CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
        vocabulary_new(t, &v, type, dw, rows);
        v.d.chunk = chunk;
        v.x.scaler = v.d.xent.scaler = s;
        v.l.accumulate = v.d.linear.accumulate = (uint32_t)accumulate;
        v.l.flags = v.d.linear.flags = k % 5 ? AMP_GEMM_ORDERED : 0;
        if (k % 5 == 0) exact = 0;
        vocabulary_scratch(t, &v);
        t_note(t, "%s, dw %s, chunk %d, accumulate %d, ordered %d", amp_dtype_name(type), amp_dtype_name(dw),
            (int)chunk, accumulate, k % 5 != 0);
        CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
        vocabulary_three(t, &v);
        if (exact) {
            vocabulary_equal(t, v.d.linear.dx, v.l.dx, v.nx);
            vocabulary_equal(t, v.d.linear.dw, v.l.dw, v.nw);
        }
        if (k % 5) vocabulary_equal(t, amp_arr(v.d.xent.row_loss, AMP_F32), amp_arr(v.x.row_loss, AMP_F32), rows);
        if (k % 5) vocabulary_equal(t, amp_arr(v.d.xent.loss, AMP_F32), amp_arr(v.x.loss, AMP_F32), 1);
        vocabulary_near(t, amp_arr(v.d.xent.loss, AMP_F32), amp_arr(v.x.loss, AMP_F32), 1, 1e-5);
        vocabulary_near(t, v.d.linear.dx, v.l.dx, v.nx, limit);
        vocabulary_near(t, v.d.linear.dw, v.l.dw, v.nw, limit);
        vocabulary_near(t, v.d.linear.dbias, v.l.dbias, V_OUT, 3e-5);
        amp_scaler_destroy(s);
        t_clear(t);
    }
}
/* The loss alone; parts of the gradient alone; nothing at all. */
static void vocabulary_parts(t_run *t) {
    amp_array none = AMP_ZERO;
    size_t bytes;
    float loss = -1;
    int k;
    for (k = 0; k < 4; k++) {
        vocabulary v;
        vocabulary_new(t, &v, AMP_F32, AMP_F32, 300);
        v.d.chunk = 128;
        v.l.flags = v.d.linear.flags = AMP_GEMM_ORDERED;
        if (k != 1) v.d.linear.dx = none;
        if (k != 2) v.d.linear.dw = none;
        if (k != 3) v.d.linear.dbias = none;
        vocabulary_scratch(t, &v);
        CHECK_EQ(v.d.scratch_bytes, 128 * V_OUT * 4); /* one piece of logits, which become their gradient */
        CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
        vocabulary_three(t, &v);
        vocabulary_equal(t, amp_arr(v.d.xent.row_loss, AMP_F32), amp_arr(v.x.row_loss, AMP_F32), 300);
        if (k == 1) vocabulary_equal(t, v.d.linear.dx, v.l.dx, v.nx);
        if (k == 2) vocabulary_near(t, v.d.linear.dw, v.l.dw, v.nw, 1e-6);
        if (k == 3) vocabulary_near(t, v.d.linear.dbias, v.l.dbias, V_OUT, 1e-6);
        t_clear(t);
    }
    for (k = 0; k < 2; k++) { /* no rows: loss 0, dw and dbias 0 or as they were */
        vocabulary v;
        float *old, *dw;
        vocabulary_new(t, &v, AMP_F16, AMP_F32, 0);
        old = (float *)t_host(t, 4 * v.nw);
        dw = (float *)t_host(t, 4 * v.nw);
        v.d.linear.accumulate = (uint32_t)k;
        t_get(t, old, v.d.linear.dw.data, 4 * v.nw);
        CHECK_OK(amp_linear_cross_entropy_bytes(t->ctx, &bytes, &v.d));
        CHECK_EQ(bytes, 0);
        CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
        t_get(t, dw, v.d.linear.dw.data, 4 * v.nw);
        t_get(t, &loss, v.d.xent.loss, 4);
        CHECK_F32(loss, 0.0f);
        CHECK_F32(dw[7], k ? old[7] : 0.0f);
        t_clear(t);
    }
}
/* In a scope an FP32 w is cast once, whatever the number of pieces; what forward did is returned. */
static void vocabulary_scopes(t_run *t) {
    amp_autocast_desc scope = AMP_ZERO;
    amp_precision record = AMP_ZERO;
    vocabulary v;
    vocabulary_new(t, &v, AMP_F32, AMP_F32, 300);
    v.d.chunk = 64;
    v.d.linear.y.dtype = AMP_AUTO;
    v.d.linear.dx.dtype = AMP_AUTO;
    v.d.linear.record = &record;
    scope.low = AMP_F16;
    CHECK_OK(amp_autocast_begin(t->ctx, &scope));
    vocabulary_scratch(t, &v);
    CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
    CHECK_EQ(amp_autocast_get(t->ctx).casts, 2); /* x and w */
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    CHECK(record.made && record.used == AMP_F16 && record.x == AMP_F32);
    vocabulary_three(t, &v);
    v.d.linear.dx.dtype = AMP_F32;
    vocabulary_near(t, amp_arr(v.d.xent.loss, AMP_F32), amp_arr(v.x.loss, AMP_F32), 1, 2e-3);
    vocabulary_near(t, v.d.linear.dx, v.l.dx, v.nx, 1e-4);
    vocabulary_near(t, v.d.linear.dw, v.l.dw, v.nw, 1e-3);
}
/* FP8: one piece is to the bit what three verbs give; w is quantised once, whatever the number of pieces. */
static void vocabulary_fp8(t_run *t) {
    int k;
    for (k = 0; k < 4; k += t_slow(t) ? 3 : 1) {
        amp_fp8_desc delayed = AMP_ZERO;
        amp_fp8 *fp8 = NULL, *beside = NULL;
        amp_fp8_info w, w3;
        vocabulary v;
        vocabulary_new(t, &v, AMP_BF16, AMP_F32, 256);
        v.l.flags = v.d.linear.flags = AMP_GEMM_EMULATE | AMP_GEMM_ORDERED;
        v.l.w_in_out = v.d.linear.w_in_out = (uint32_t)k / 2;
        v.d.chunk = k % 2 ? 96 : 256;
        delayed.history = 3;
        CHECK_OK(amp_fp8_create(&fp8, t->ctx, &delayed));
        CHECK_OK(amp_fp8_create(&beside, t->ctx, &delayed));
        v.d.linear.fp8 = fp8;
        v.l.fp8 = beside;
        v.d.linear.y.count = 1; /* of no data: not looked at */
        v.l.scratch_bytes = v.nx + v.nw + 2 * v.ny + 1024;
        v.l.scratch = t_alloc(t, v.l.scratch_bytes);
        vocabulary_scratch(t, &v);
        t_note(t, "chunk %d, w_in_out %d", (int)v.d.chunk, k / 2);
        CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
        vocabulary_three(t, &v);
        CHECK_OK(amp_fp8_get(fp8, 1, &w));
        CHECK_OK(amp_fp8_get(beside, 1, &w3));
        CHECK(memcmp(&w, &w3, sizeof w) == 0);
        if (k % 2 == 0) {
            vocabulary_equal(t, amp_arr(v.d.xent.row_loss, AMP_F32), amp_arr(v.x.row_loss, AMP_F32), 256);
            vocabulary_equal(t, v.d.linear.dx, v.l.dx, v.nx);
            vocabulary_equal(t, v.d.linear.dw, v.l.dw, v.nw);
        }
        vocabulary_near(t, amp_arr(v.d.xent.loss, AMP_F32), amp_arr(v.x.loss, AMP_F32), 1, 0.05);
        vocabulary_near(t, v.d.linear.dx, v.l.dx, v.nx, 0.02);
        vocabulary_near(t, v.d.linear.dw, v.l.dw, v.nw, 0.02);
        amp_fp8_destroy(beside);
        amp_fp8_destroy(fp8);
        t_clear(t);
    }
}
/* Answers of each kind, one of 256 rows a piece: no rows, classes and ld given, a sum, a factor, no loss asked for. */
static void vocabulary_answers(t_run *t) {
    enum { ROWS = 300 };
    int k;
    for (k = 0; k < 5; k++) {
        vocabulary v;
        int64_t wide[ROWS];
        uint8_t small[ROWS];
        float *targets = (float *)t_host(t, 4 * ROWS * V_OUT);
        amp_array none = AMP_ZERO;
        size_t i;
        vocabulary_new(t, &v, AMP_F32, AMP_F32, ROWS);
        for (i = 0; i < ROWS; i++) {
            wide[i] = (int64_t)t_below(t, V_OUT + 5) - 5;
            small[i] = (uint8_t)t_below(t, V_OUT);
        }
        for (i = 0; i < ROWS * V_OUT; i++)
            targets[i] = t_below(t, 4) ? 0.0f : fabsf(t_real(t)) / V_OUT;
        v.x.labels = NULL;
        if (k == 0) v.x.labels64 = (const int64_t *)t_put(t, wide, sizeof wide);
        if (k == 1) v.x.labels8 = (const uint8_t *)t_put(t, small, sizeof small);
        if (k >= 2) v.x.targets = amp_arr(t_put(t, targets, 4 * ROWS * V_OUT), AMP_F32);
        if (k == 3) v.x.weights = none;
        v.x.sum = (uint32_t)k % 2;
        v.x.factor = amp_opt(0.5f);
        v.d.xent.labels = NULL;
        v.d.xent.labels64 = v.x.labels64;
        v.d.xent.labels8 = v.x.labels8;
        v.d.xent.targets = v.x.targets;
        v.d.xent.weights = v.x.weights;
        v.d.xent.sum = v.x.sum;
        v.d.xent.factor = v.x.factor;
        v.d.xent.rows = v.d.xent.classes = v.d.xent.ld = 0;
        if (k == 4) v.d.xent.loss = v.d.xent.row_loss = NULL;
        v.d.chunk = 256;
        v.l.flags = v.d.linear.flags = AMP_GEMM_ORDERED;
        vocabulary_scratch(t, &v);
        t_note(t, "answers %d", k);
        CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
        vocabulary_three(t, &v);
        vocabulary_equal(t, v.d.linear.dx, v.l.dx, v.nx);
        vocabulary_equal(t, v.d.linear.dw, v.l.dw, v.nw);
        if (k < 4) vocabulary_equal(t, amp_arr(v.d.xent.row_loss, AMP_F32), amp_arr(v.x.row_loss, AMP_F32), ROWS);
        if (k < 4) vocabulary_equal(t, amp_arr(v.d.xent.loss, AMP_F32), amp_arr(v.x.loss, AMP_F32), 1);
        t_clear(t);
    }
}
/* In a scope that stays open a loop without a scaler and a set changes w itself: the cast of the call before is not
   read again once it was read for dx; one that was only evaluated is kept. */
static void vocabulary_iterations(t_run *t) {
    vocabulary v;
    float first, kept, then, want, *w;
    size_t i;
    vocabulary_new(t, &v, AMP_F32, AMP_F32, 20);
    v.d.linear.w.flags = AMP_CACHE;
    v.d.linear.y.dtype = AMP_AUTO;
    w = (float *)v.l.w.data; /* on a CPU */
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    vocabulary_scratch(t, &v);
    CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
    first = *v.d.xent.loss;
    CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
    CHECK_F32(*v.d.xent.loss, first);
    for (i = 0; i < v.nw; i++)
        w[i] *= 0.5f;
    CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
    then = *v.d.xent.loss;
    v.d.linear.dx.data = v.d.linear.dw.data = v.d.linear.dbias.data = NULL;
    CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
    for (i = 0; i < v.nw; i++)
        w[i] *= 0.5f;
    CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
    kept = *v.d.xent.loss;
    for (i = 0; i < v.nw; i++)
        w[i] *= 2.0f;
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
    want = *v.d.xent.loss;
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    CHECK(then != first);
    CHECK_F32(then, want);
    CHECK_F32(kept, want);
}
/* What the scratch must have, of layers that are only described; what is in it afterwards. */
static void vocabulary_room_of(t_run *t, size_t classes, amp_dtype type, amp_dtype logits, amp_dtype dw, size_t want) {
    static float there; /* never read: the query looks at no array */
    amp_linear_xent_desc d = AMP_ZERO;
    size_t bytes = 0;
    d.linear.rows = 3000; /* with 2^17 classes no more than a size_t of 32 bits can count */
    d.linear.in = 16;
    d.linear.out = classes;
    d.linear.x = d.linear.w = amp_arr(&there, type);
    d.linear.y.dtype = logits;
    d.xent.labels8 = (const uint8_t *)&there;
    d.xent.loss = d.xent.row_loss = &there;
    if (dw != AMP_AUTO) d.linear.dw = amp_arr(&there, dw);
    t_note(t, "%d classes", (int)classes);
    CHECK_OK(amp_linear_cross_entropy_bytes(t->ctx, &bytes, &d));
    CHECK_EQ(bytes, want);
}
static void vocabulary_rooms(t_run *t) {
    enum { MANY = 131072 };
    int gradient;
    vocabulary_room_of(t, MANY, AMP_F32, AMP_F32, AMP_AUTO, 256u * MANY * 4u); /* at least 256 rows */
    vocabulary_room_of(t, MANY, AMP_F16, AMP_F16, AMP_F32, 256u * MANY * 2u);  /* the gradient in the logits' place */
    vocabulary_room_of(t, 50257, AMP_F32, AMP_F32, AMP_F32, 256u * 50257u * 4u);
    vocabulary_room_of(t, 10000, AMP_F32, AMP_F32, AMP_F32, 1536u * 10000u * 4u); /* 64 MiB, a multiple of 256 rows */
    vocabulary_room_of(t, MANY, AMP_F16, AMP_F32, AMP_AUTO, 256u * MANY * 4u);    /* the loss alone */
    vocabulary_room_of(
        t, MANY, AMP_F16, AMP_F32, AMP_F32, 256u * MANY * (4u + 2u)); /* logits, and what products read */
    vocabulary_room_of(t, MANY, AMP_F16, AMP_F16, AMP_F16, 256u * MANY * 2u + 16u * MANY * 4u); /* dw in FP32 */
    for (gradient = 0; gradient < 2; gradient++) {
        amp_array none = AMP_ZERO, last;
        vocabulary v;
        vocabulary_new(t, &v, AMP_F32, AMP_F32, 300);
        if (!gradient) v.d.linear.dx = v.d.linear.dw = v.d.linear.dbias = none;
        v.d.chunk = 256;
        v.l.flags = v.d.linear.flags = AMP_GEMM_ORDERED;
        vocabulary_scratch(t, &v);
        CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
        if (gradient) vocabulary_three(t, &v);
        if (!gradient) CHECK_OK(amp_linear_forward(t->ctx, &v.l));
        last = amp_arr((float *)v.l.y.data + 256 * V_OUT, AMP_F32);
        vocabulary_equal(t, amp_arr(v.d.scratch, AMP_F32), last, 44 * V_OUT);
        t_clear(t);
    }
}
/* Logits in FP32 of a layer in 16 bits, their gradient in what products read; dw and dbias of 16 bits are those in
   FP32, rounded once. */
static void vocabulary_rounded_once(t_run *t) {
    static const amp_dtype types[] = {AMP_F16, AMP_BF16};
    int k;
    for (k = 0; k < 2; k++) {
        amp_dtype type = types[k];
        vocabulary v;
        amp_array dw, dbias;
        vocabulary_new(t, &v, type, AMP_F32, 300);
        v.d.linear.y.dtype = AMP_F32;
        v.d.linear.dx.data = NULL;
        v.d.chunk = 100;
        dw = amp_arr(t_alloc(t, 2 * v.nw), type);
        dbias = amp_arr(t_alloc(t, 2 * V_OUT), type);
        vocabulary_scratch(t, &v);
        CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
        CHECK_OK(amp_cast(t->ctx, dw, v.d.linear.dw, v.nw, NULL));
        CHECK_OK(amp_cast(t->ctx, dbias, v.d.linear.dbias, V_OUT, NULL));
        v.d.linear.dw = amp_arr(t_alloc(t, 2 * v.nw), type);
        v.d.linear.dbias = amp_arr(t_alloc(t, 2 * V_OUT), type);
        vocabulary_scratch(t, &v);
        CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
        vocabulary_equal(t, v.d.linear.dw, dw, v.nw);
        vocabulary_equal(t, v.d.linear.dbias, dbias, V_OUT);
        t_clear(t);
    }
}
/* Of a gradient that is not in the products' dtype a scope's arena holds the cast of one piece at a time. */
static void vocabulary_arena(t_run *t) {
    enum { ROWS = 300, CHUNK = 128, OUT = 32, WHOLE = (ROWS * V_IN * 2 + 255) / 256 * 256 };
    vocabulary v;
    vocabulary_new(t, &v, AMP_F32, AMP_F32, ROWS);
    v.d.linear.out = OUT;
    v.d.xent.classes = 0;
    v.d.xent.dlogits.dtype = AMP_F32;
    v.d.linear.y.dtype = AMP_AUTO;
    v.d.chunk = CHUNK;
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    vocabulary_scratch(t, &v);
    CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
    CHECK_EQ(amp_autocast_get(t->ctx).peak, WHOLE + OUT * V_IN * 2 + CHUNK * OUT * 2);
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
}
/* A delayed scale's history gets a number per piece; with fp8_keep, to evaluate, nothing is remembered. */
static void vocabulary_fp8_pieces(t_run *t) {
    amp_fp8_desc delayed = AMP_ZERO;
    amp_fp8 *fp8 = NULL;
    amp_fp8_info x, w, dy, after;
    amp_array none = AMP_ZERO;
    float most[3] = {0, 0, 0};
    amp_bf16 *host;
    vocabulary v;
    size_t i;
    vocabulary_new(t, &v, AMP_BF16, AMP_F32, 256);
    v.d.linear.flags = AMP_GEMM_EMULATE;
    v.d.chunk = 96; /* and 96 and 64 */
    delayed.history = 3;
    CHECK_OK(amp_fp8_create(&fp8, t->ctx, &delayed));
    v.d.linear.fp8 = fp8;
    vocabulary_scratch(t, &v);
    CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
    host = (amp_bf16 *)t_host(t, 2 * v.nx);
    t_get(t, host, v.d.linear.x.data, 2 * v.nx);
    for (i = 0; i < v.nx; i++) {
        float size = fabsf(amp_f32_from_bf16(host[i])), *to = &most[i / (96 * V_IN)];
        if (size > *to) *to = size;
    }
    CHECK_OK(amp_fp8_get(fp8, 0, &x));
    CHECK_OK(amp_fp8_get(fp8, 1, &w));
    CHECK_OK(amp_fp8_get(fp8, 2, &dy));
    CHECK_F32(x.amax, most[2]);
    for (i = 0; i < 2; i++)
        if (most[i] > most[2]) most[2] = most[i];
    CHECK_F32(x.largest, most[2]);
    v.d.linear.dx = v.d.linear.dw = v.d.linear.dbias = none;
    v.d.linear.fp8_keep = 1;
    CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
    CHECK_OK(amp_fp8_get(fp8, 0, &after));
    CHECK(memcmp(&x, &after, sizeof x) == 0);
    CHECK_OK(amp_fp8_get(fp8, 1, &after));
    CHECK(memcmp(&w, &after, sizeof w) == 0);
    CHECK_OK(amp_fp8_get(fp8, 2, &after));
    CHECK(memcmp(&dy, &after, sizeof dy) == 0);
    amp_fp8_destroy(fp8);
}
static void vocabulary_scenario(t_run *t, t_blob *b, const void *arg) {
    vocabulary v;
    (void)arg;
    vocabulary_new(t, &v, AMP_F16, AMP_F16, 300);
    v.d.chunk = 130;
    v.d.linear.flags = AMP_GEMM_ORDERED;
    vocabulary_scratch(t, &v);
    CHECK_OK(amp_linear_cross_entropy(t->ctx, &v.d));
    t_blob_dev(t, b, v.d.xent.loss, 4);
    t_blob_dev(t, b, v.d.linear.dx.data, 2 * v.nx);
    t_blob_dev(t, b, v.d.linear.dw.data, 2 * v.nw);
    t_blob_dev(t, b, v.d.linear.dbias.data, 4 * V_OUT);
}
static void vocabulary_same_everywhere(t_run *t) { t_same_everywhere(t, vocabulary_scenario, NULL); }
static void vocabulary_errors(t_run *t) {
    vocabulary v;
    amp_linear_xent_desc e;
    size_t bytes;
    vocabulary_new(t, &v, AMP_F32, AMP_F16, 300);
    vocabulary_scratch(t, &v);
    CHECK_STATUS(amp_linear_cross_entropy(t->ctx, NULL), AMP_ERR_INVALID_ARG, "amp_linear_cross_entropy: desc is NULL");
    CHECK_STATUS(amp_linear_cross_entropy_bytes(t->ctx, NULL, &v.d), AMP_ERR_INVALID_ARG, "bytes is NULL");
    CHECK_EQ(amp_linear_cross_entropy_bytes(NULL, &bytes, &v.d), AMP_ERR_INVALID_ARG);
#define REFUSED(change, status, words) \
    e = v.d; \
    change; \
    CHECK_STATUS(amp_linear_cross_entropy(t->ctx, &e), status, words)
    REFUSED(e._end = 1, AMP_ERR_UNINIT, "not zero-initialised");
    REFUSED(e.linear._begin = 1, AMP_ERR_UNINIT, "not zero-initialised");
    REFUSED(e.xent._end = 1, AMP_ERR_UNINIT, "not zero-initialised");
    REFUSED(e.linear.act = AMP_RELU, AMP_ERR_INVALID_ARG, "desc.linear act");
    REFUSED(e.linear.before = &v.l, AMP_ERR_INVALID_ARG, "desc.linear before");
    REFUSED(e.linear.after = &v.l, AMP_ERR_INVALID_ARG, "desc.linear after");
    REFUSED(e.linear.y.data = v.l.y.data, AMP_ERR_INVALID_ARG, "desc.linear.y no data");
    REFUSED(e.linear.aux.data = v.l.y.data, AMP_ERR_INVALID_ARG, "aux no data");
    REFUSED(e.linear.dy.data = v.l.y.data, AMP_ERR_INVALID_ARG, "dy no data");
    REFUSED(e.xent.softmax = 1, AMP_ERR_INVALID_ARG, "desc.xent.softmax");
    REFUSED(e.xent.dlogits.data = v.l.y.data, AMP_ERR_INVALID_ARG, "dlogits no data");
    REFUSED(e.xent.rows = 7, AMP_ERR_INVALID_ARG, "desc.xent.rows is 7, but desc.linear.rows is 300");
    REFUSED(e.xent.classes = 7, AMP_ERR_INVALID_ARG, "desc.xent.classes is 7");
    REFUSED(e.xent.ld = 64, AMP_ERR_INVALID_ARG, "desc.xent.ld is 64");
    REFUSED(e.xent.labels = NULL, AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy: desc.labels");
    REFUSED(e.xent.smoothing = 2, AMP_ERR_INVALID_ARG, "amp_softmax_cross_entropy: desc.smoothing is 2");
    REFUSED(e.scratch = NULL, AMP_ERR_INVALID_ARG, "desc.scratch has 0 bytes");
    REFUSED(e.scratch_bytes--, AMP_ERR_INVALID_ARG, "desc.scratch bytes are needed");
    REFUSED(e.scratch = (char *)e.scratch + 4, AMP_ERR_INVALID_ARG, "desc.scratch is not aligned to 256 bytes");
    REFUSED(e.linear.dx = e.linear.x, AMP_ERR_INVALID_ARG, "desc.linear.dx overlaps desc.linear.x");
    REFUSED(e.linear.x.count = 5, AMP_ERR_INVALID_ARG, "desc.linear.x.count is 5");
    REFUSED(e.linear.out = 0, AMP_ERR_INVALID_ARG, "desc.linear.out is 0");
    REFUSED(e.linear.w.dtype = AMP_F16, AMP_ERR_UNSUPPORTED, "one dtype");
#undef REFUSED
}

const t_test t_suite_products[] = {{"gemm.grid", gemm_grid, T_ALL}, {"gemm.large", gemm_large, T_ALL},
    {"gemm.exact", gemm_exact, T_ALL}, {"gemm.nothing", gemm_nothing, T_ALL}, {"gemm.factors", gemm_factors, T_ALL},
    {"gemm.zero_factors", gemm_zero_factors, T_ALL}, {"gemm.backward_of_none", gemm_backward_of_none, T_ALL},
    {"gemm.errors", gemm_errors, T_ALL}, {"gemm.threads_do_not_matter", threads_do_not_matter, T_CPU},
    {"linear.layers", linear_layers, T_ALL}, {"linear.gradient_check", gradient_check, T_ALL},
    {"linear.relu_at_zero", relu_at_zero, T_ALL}, {"linear.relu_backward", relu_backward, T_ALL},
    {"linear.activations_keep_nan", activations_keep_nan, T_ALL}, {"linear.errors", linear_errors, T_ALL},
    {"linear.act_grad_same_everywhere", act_grad_same_everywhere, T_ALL}, {"xent.values", xent_values, T_ALL},
    {"xent.extremes", xent_extremes, T_ALL}, {"xent.loss_is_the_sum_of_rows", xent_loss_is_the_sum_of_rows, T_ALL},
    {"xent.same_everywhere", xent_same_everywhere, T_ALL}, {"linear.act_bits", act_bits, T_ALL},
    {"linear.act_rows", act_rows, T_ALL}, {"linear.act_many", act_many, T_ALL},
    {"linear.col_sum_bits", col_sum_bits, T_ALL}, {"xent.bits", xent_bits, T_ALL}, {"xent.wide_rows", xent_wide, T_ALL},
    {"xent.many_rows", xent_many_rows, T_ALL}, {"xent.padding", xent_padding, T_ALL},
    {"xent.label_types", xent_label_types, T_ALL}, {"xent.weights", xent_weights, T_ALL},
    {"xent.one_hot", xent_one_hot, T_ALL}, {"xent.each", xent_each, T_ALL}, {"xent.softmax", xent_softmax, T_ALL},
    {"xent.errors", xent_errors, T_ALL}, {"vocabulary.pieces", vocabulary_pieces, T_ALL},
    {"vocabulary.parts", vocabulary_parts, T_ALL}, {"vocabulary.scopes", vocabulary_scopes, T_ALL},
    {"vocabulary.answers", vocabulary_answers, T_ALL}, {"vocabulary.rooms", vocabulary_rooms, T_ALL},
    {"vocabulary.iterations", vocabulary_iterations, T_CPU},
    {"vocabulary.rounded_once", vocabulary_rounded_once, T_ALL}, {"vocabulary.arena", vocabulary_arena, T_ALL},
    {"vocabulary.fp8_pieces", vocabulary_fp8_pieces, T_ALL}, {"vocabulary.fp8", vocabulary_fp8, T_ALL},
    {"vocabulary.same_everywhere", vocabulary_same_everywhere, T_ALL}, {"vocabulary.errors", vocabulary_errors, T_ALL},
    {NULL, NULL, 0}};
