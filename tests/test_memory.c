/* test_memory.c - memory plans against the ledger, recompute plans against brute force, snapshots, dropout.  Guards:
   >>memory plan. */
#include "set.h"
#include "../examples/recompute_plan.h"

/* ---- plans ----------------------------------------------------------------------------------------------------- */

/* What is planned is what the ledger says, to the byte, under every policy and some layouts. */
static void plan_ledger(t_run *t) {
    static const amp_plan_layer layers[] = {{"embed", AMP_OP_LINEAR, 0, 300 * 70, 300, 64 * 300, 0, 0},
        {"norm", AMP_OP_LAYER_NORM, 0, 300, 300, 64 * 300, 2 * 64, 0},
        {"bn", AMP_OP_BATCH_NORM, 0, 300, 300, 64 * 300, 600, 0},
        {"act", AMP_OP_RELU, 0, 0, 0, 64 * 300, 0, 64 * 8 * 38}, /* and a mask of 64 rows of 300 */
        {"wide", AMP_OP_MATMUL, 1, 300 * 701, 701, 64 * 701, 0, 0}, {"odd", AMP_OP_LINEAR, 0, 1, 0, 1, 1, 3},
        {"loss", AMP_OP_CROSS_ENTROPY, 0, 0, 0, 64, 64, 0}};
    enum { N = sizeof layers / sizeof layers[0] };
    uint32_t preset;
    int variant;
    for (preset = 0; preset < AMP_PRESET_COUNT; preset++)
        for (variant = 0; variant < 6; variant++) {
            amp_policy p;
            amp_policy_desc o = AMP_ZERO;
            amp_params_desc d;
            amp_plan plan;
            amp_params *set = NULL;
            uint64_t saved = 0;
            void *acts[N], *stats[N], *masks[N];
            size_t i;
            o.low = variant == 1 ? AMP_BF16 : AMP_AUTO;
            t_note(t, "%s, variant %d", amp_preset_name((amp_preset)preset), variant);
            CHECK_OK(amp_policy_init(t->ctx, &p, (amp_preset)preset, &o));
            d = amp_policy_params_desc(&p);
            if (variant == 2) {
                d.moments = AMP_NONE;
                d.grad = AMP_F32;
            }
            if (variant == 3) {
                d.moments = 1;
                d.master = AMP_MASTER_NONE;
                d.model = AMP_F16;
            }
            if (variant == 4) {
                d.master = AMP_MASTER_SPLIT;
                d.model = AMP_BF16;
                d.moment = AMP_BF16;
                d.accumulate = 1;
            }
            if (variant == 5) {
                d.moment = AMP_MOMENT_8BIT;
                d.master = AMP_MASTER_SPLIT8;
            }
            d.label = "plan";
            CHECK_EQ(amp_plan_memory(&plan, &p, variant < 2 ? NULL : &d, layers, N, AMP_F32), AMP_OK);
            CHECK_OK(amp_params_create(&set, t->ctx, &d));
            for (i = 0; i < N; i++) {
                amp_param_desc w = AMP_ZERO;
                w.keep_f32 = d.model != AMP_F32 && p.cast_model != AMP_AUTO && p.preset != AMP_O0 &&
                    amp_policy_keep_f32(&p, layers[i].op);
                w.count = (size_t)layers[i].weight;
                if (w.count) CHECK_OK(amp_params_add(set, &w));
                w.keep_f32 |= layers[i].keep_bias;
                w.count = (size_t)layers[i].bias;
                if (w.count) CHECK_OK(amp_params_add(set, &w));
                CHECK_OK(amp_alloc(t->ctx, &acts[i],
                    (size_t)layers[i].saved * amp_dtype_size(amp_policy_output(&p, layers[i].op, AMP_F32)), "acts"));
                CHECK_OK(amp_alloc(t->ctx, &stats[i], (size_t)layers[i].saved_f32 * 4, "acts"));
                CHECK_OK(amp_alloc(t->ctx, &masks[i], (size_t)(layers[i].saved_bits + 7) / 8, "acts"));
            }
            CHECK_OK(amp_params_commit(set));
            CHECK_EQ(plan.master, t_ledger(t->ctx, "plan.master").bytes);
            CHECK_EQ(plan.model, t_ledger(t->ctx, "plan.model").bytes);
            CHECK_EQ(plan.grad, t_ledger(t->ctx, "plan.grad").bytes);
            CHECK_EQ(plan.moments, t_ledger(t->ctx, "plan.moments").bytes);
            CHECK_EQ(plan.accum, t_ledger(t->ctx, "plan.accum").bytes);
            CHECK_EQ(plan.tables, t_ledger(t->ctx, "plan.tables").bytes);
            CHECK_EQ(plan.saved, t_ledger(t->ctx, "acts").bytes);
            saved = t_ledger(t->ctx, "total").bytes;
            {
                amp_autocast_desc s = AMP_ZERO;
                s.policy = &p;
                CHECK_OK(amp_autocast_begin(t->ctx, &s));
                CHECK_OK(amp_autocast_end(t->ctx));
            }
            if (p.autocast || p.cast_model == AMP_F16 || p.cast_model == AMP_BF16)
                CHECK_EQ(plan.casts + AMP_AUTOCAST_SPARE, t_ledger(t->ctx, "autocast").bytes);
            else {
                CHECK_EQ(plan.casts, 0);
                CHECK_EQ(t_ledger(t->ctx, "autocast").bytes, 0);
            }
            CHECK_EQ(plan.total, saved + plan.casts);
            CHECK_OK(amp_autocast_release(t->ctx));
            for (i = 0; i < N; i++) {
                CHECK_OK(amp_free(t->ctx, acts[i]));
                CHECK_OK(amp_free(t->ctx, stats[i]));
                CHECK_OK(amp_free(t->ctx, masks[i]));
            }
            amp_params_destroy(set);
        }
}

static void plan_bytes_per_parameter(t_run *t) { /* the arithmetic that everybody gets wrong */
    amp_plan_layer l = AMP_ZERO;
    amp_policy p;
    amp_plan plan;
    amp_params_desc d = AMP_ZERO;
    uint64_t n = 1u << 20;
    l.op = AMP_OP_LINEAR;
    l.weight = n;
    l.saved = n;
#define STATE() (plan.master + plan.model + plan.grad + plan.moments)
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_O0, NULL));
    CHECK_EQ(amp_plan_memory(&plan, &p, NULL, &l, 1, AMP_F32), AMP_OK);
    CHECK_EQ(STATE(), 16 * n);
    CHECK_EQ(plan.saved, 4 * n);
    CHECK_EQ(plan.casts, 0);
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_O1, NULL));
    CHECK_EQ(amp_plan_memory(&plan, &p, NULL, &l, 1, AMP_F32), AMP_OK);
    CHECK_EQ(STATE(), 16 * n);
    CHECK_EQ(plan.saved, 2 * n);
    CHECK_EQ(plan.casts, 2 * n);
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_O2, NULL));
    CHECK_EQ(amp_plan_memory(&plan, &p, NULL, &l, 1, AMP_F32), AMP_OK);
    CHECK_EQ(STATE(), 16 * n);
    CHECK_EQ(plan.saved, 2 * n);
    CHECK_EQ(plan.casts, 0);
    d.grad = AMP_F32;
    CHECK_EQ(amp_plan_memory(&plan, &p, &d, &l, 1, AMP_F32), AMP_OK);
    CHECK_EQ(STATE(), 18 * n);
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_O3, NULL));
    CHECK_EQ(amp_plan_memory(&plan, &p, NULL, &l, 1, AMP_F32), AMP_OK);
    CHECK_EQ(STATE(), 12 * n);
#undef STATE
    CHECK_EQ(amp_plan_memory(&plan, NULL, NULL, &l, 1, AMP_F32), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_plan_memory(&plan, &p, NULL, NULL, 1, AMP_F32), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_plan_memory(NULL, &p, NULL, &l, 1, AMP_F32), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_plan_memory(&plan, &p, NULL, NULL, 0, AMP_F32), AMP_OK);
    d.moments = 3;
    CHECK_EQ(amp_plan_memory(&plan, &p, &d, &l, 1, AMP_F32), AMP_ERR_INVALID_ARG);
}

/* ---- recompute plans ------------------------------------------------------------------------------------------- */

/* The run itself: what is in memory, step by step. */
static uint64_t simulate(const recompute_layer *l, size_t n, const uint8_t *keep, uint64_t *extra) {
    uint64_t have[16], now = 0, peak = 0;
    size_t i, k, s;
    memset(have, 0, sizeof have);
    *extra = 0;
#define TAKE(j) \
    do { \
        have[j] = l[j].bytes; \
        now += have[j]; \
        if (now + l[j].work > peak) peak = now + l[j].work; \
    } while (0)
#define DROP(j) \
    do { \
        now -= have[j]; \
        have[j] = 0; \
    } while (0)
    for (i = 0; i < n; i++) { /* forward; a layer that is not kept goes when the next one has run */
        TAKE(i);
        if (i && !keep[i - 1]) DROP(i - 1);
    }
    if (n && !keep[n - 1]) DROP(n - 1);
    for (i = n; i-- > 0;) { /* backward */
        if (!keep[i]) {     /* the end of a run that is not kept: again from its start */
            for (s = i; s > 0 && !keep[s - 1]; s--) {
            }
            for (k = s; k <= i; k++) {
                TAKE(k);
                *extra += l[k].cost;
            }
            if (i + 1 < n && now + l[i + 1].work > peak)
                peak = now + l[i + 1].work; /* backward of the kept layer behind it, which has been waiting */
            if (i + 1 < n) DROP(i + 1);
            for (k = i + 1; k-- > s;) {
                if (now + l[k].work > peak) peak = now + l[k].work;
                DROP(k);
            }
            i = s;
            continue;
        }
        if (i && !keep[i - 1]) continue; /* its input must be recomputed first */
        if (now + l[i].work > peak) peak = now + l[i].work;
        DROP(i);
    }
#undef TAKE
#undef DROP
    return peak;
}

static void recompute_brute(t_run *t) {
    int round, rounds = t_full() ? 4000 : 700;
    for (round = 0; round < rounds; round++) {
        recompute_layer l[12];
        uint8_t keep[12], best_keep[12];
        size_t n = (size_t)round % 11,
               i; /* not drawn: 2^n choices are checked, and tests/expected/floor.txt wants their number */
        uint32_t bits, shape = t_below(t, 4);
        uint64_t least = UINT64_MAX, budget, best = UINT64_MAX;
        recompute_plan p, q;
        for (i = 0; i < n; i++) {
            l[i].bytes = shape == 0 ? 10 : t_below(t, shape == 1 ? 5 : 1000);
            l[i].work = shape == 0 ? 0 : t_below(t, shape == 2 ? 2000 : 300);
            l[i].cost = shape == 3 ? 1 : t_below(t, 50);
        }
        for (bits = 0; bits < 1u << n; bits++) { /* the peak formula against the run, for every choice */
            uint64_t extra;
            for (i = 0; i < n; i++)
                keep[i] = (bits >> i) & 1u;
            CHECK_EQ(recompute_evaluate(&p, l, n, keep), RECOMPUTE_OK);
            if (round < 60) {
                t_note(t, "round %d, n %d, choice %x", round, (int)n, (unsigned)bits);
                CHECK_EQ(p.peak, simulate(l, n, keep, &extra));
                CHECK_EQ(p.extra, extra);
            }
            if (p.peak < least) least = p.peak;
        }
        budget = least + t_below(t, shape == 1 ? 8 : 1500);
        if (round % 7 == 0) budget = least;
        for (bits = 0; bits < 1u << n; bits++) {
            for (i = 0; i < n; i++)
                keep[i] = (bits >> i) & 1u;
            (void)recompute_evaluate(&p, l, n, keep);
            if (p.peak <= budget && p.extra < best) best = p.extra;
        }
        t_note(t, "round %d, n %d, budget %lu", round, (int)n, (unsigned long)budget);
        memset(best_keep, 0x33, sizeof best_keep);
        if (!CHECK_EQ(recompute_optimal(&p, best_keep, l, n, budget), RECOMPUTE_OK)) continue;
        CHECK_EQ(p.least, least);
        CHECK_EQ(p.extra, best);
        CHECK_EQ(p.exact, 1);
        CHECK(p.peak <= budget);
        (void)recompute_evaluate(&q, l, n, best_keep);
        CHECK_EQ(q.peak, p.peak);
        CHECK_EQ(q.extra, p.extra);
        CHECK_EQ(q.kept, p.kept);
        CHECK_EQ(q.base, p.base);
        if (least) {
            CHECK_EQ(recompute_optimal(&q, best_keep, l, n, least - 1), RECOMPUTE_OVER_BUDGET);
            CHECK_EQ(q.least, least);
        }
    }
}

static void recompute_large(t_run *t) {
    enum { N = 400 };
    static const uint64_t one = 1u << 20;
    recompute_layer *l = (recompute_layer *)t_host(t, N * sizeof *l);
    uint8_t *keep = (uint8_t *)t_host(t, N);
    recompute_plan p, q;
    size_t i;
    for (i = 0; i < N; i++) {
        l[i].bytes = one;
        l[i].cost = 1;
    }
    CHECK_EQ(recompute_sqrt(&q, keep, l, N), RECOMPUTE_OK); /* 20 kept, 19 between them */
    CHECK_EQ(q.kept, 20);
    CHECK_EQ(q.peak, 39 * one);
    CHECK(q.peak <= 40 * one);
    CHECK_EQ(q.extra, N - 20);
    CHECK_EQ(recompute_optimal(&p, keep, l, N, q.peak), RECOMPUTE_OK);
    CHECK_EQ(p.exact, 1);
    CHECK(p.extra <= q.extra);
    CHECK(p.peak <= q.peak);
    CHECK(p.least <= 29 * one); /* about sqrt(2 n) */
    CHECK_EQ(recompute_optimal(&p, keep, l, N, N * one), RECOMPUTE_OK);
    CHECK_EQ(p.extra, 0);
    CHECK_EQ(p.kept, N);
    CHECK_EQ(p.peak, N * one);
    for (i = 0; i < N; i++) {
        l[i].bytes = 1000000u + t_u32(t) % 1000000u;
        l[i].cost = 1000000u + t_u32(t) % 1000000u;
        l[i].work = t_u32(t) % 10000u;
    }
    CHECK_EQ(recompute_sqrt(&q, keep, l, N), RECOMPUTE_OK);
    /* random sizes: perhaps thinned, never over the budget */
    CHECK_EQ(recompute_optimal(&p, keep, l, 60, 30u * 1500000u), RECOMPUTE_OK);
    CHECK(p.peak <= 30u * 1500000u);
    CHECK_EQ(recompute_optimal(&p, keep, l, 70000, 1), RECOMPUTE_INVALID);
    CHECK_EQ(recompute_sqrt(&p, keep, l, 70000), RECOMPUTE_INVALID);
    CHECK_EQ(recompute_evaluate(&p, l, 70000, keep), RECOMPUTE_INVALID);
    l[3].bytes = (uint64_t)1 << 60;
    CHECK_EQ(recompute_optimal(&p, keep, l, N, 1), RECOMPUTE_INVALID);
    CHECK_EQ(recompute_optimal(&p, keep, l, 3, (uint64_t)1 << 40), RECOMPUTE_OK);
    CHECK_EQ(recompute_optimal(&p, keep, NULL, 2, 1), RECOMPUTE_INVALID);
    CHECK_EQ(recompute_optimal(&p, NULL, l, 2, 1), RECOMPUTE_INVALID);
    CHECK_EQ(recompute_optimal(NULL, keep, l, 2, 1), RECOMPUTE_INVALID);
}

/* ---- dropout --------------------------------------------------------------------------------------------------- */

static void dropout_bits(t_run *t) {
    static const float ps[] = {0.0f, 0.1f, 0.5f, 0.9f, 1.0f, 1e-9f};
    static const size_t counts[] = {0, 1, 3, 5, 64, 1001, 70003};
    size_t a, b, i, k, c;
    for (a = 0; a < 5; a++)
        for (b = 0; b < 5; b++)
            for (c = 0; c < 7; c++) {
                amp_dtype from = ref_dtypes[a], to = ref_dtypes[b];
                size_t n = counts[c], sf = amp_dtype_size(from), st = amp_dtype_size(to), dropped = 0;
                void *x, *want, *got;
                amp_dropout_desc d = AMP_ZERO;
                if (n > 2000 && ((a + b) % 3 || t_slow(t))) continue;
                x = t_host(t, n * sf);
                want = t_host(t, n * st);
                got = t_host(t, n * (sf > st ? sf : st));
                t_fill_real(t, x, from, n, 3.0f);
                if (n) ampi_store_pattern(x, from, n / 2, set_nan(from));
                k = (a + b + c) % 6;
                d.p = ps[k];
                d.rng.seed = t_u64(t);
                d.rng.stream = t_u64(t);
                d.rng.offset = t_u64(t) >> (t_below(t, 2) ? 60 : 10);
                d.count = n;
                d.x = amp_arr(t_put_at(t, x, n * sf, t_below(t, 2) * t_below(t, 8) * sf), from);
                d.y = amp_arr(t_alloc_at(t, n * st, t_below(t, 2) * t_below(t, 8) * st), to);
                t_note(t, "%s to %s, n %d, p %g", amp_dtype_name(from), amp_dtype_name(to), (int)n, (double)d.p);
                CHECK_OK(amp_dropout(t->ctx, &d));
                for (i = 0; i < n; i++) {
                    volatile float f = (float)(1.0 / (1.0 - (double)d.p)), y = amp_load(x, from, i);
                    int drop = (double)amp_random(d.rng.seed, d.rng.stream, d.rng.offset + i) <
                        floor((double)d.p * 4294967296.0);
                    y = drop ? 0.0f : y * f;
                    dropped += (size_t)drop;
                    amp_store(want, to, i, y);
                }
                t_get(t, got, d.y.data, n * st);
                set_any_nan(got, to, n);
                set_any_nan(want, to, n);
                CHECK_BITS(got, want, n, st);
                if (n > 1000 && k == 2) /* half of them, within 6 standard deviations */
                    CHECK(fabs((double)dropped - 0.5 * (double)n) <= 3.0 * sqrt((double)n));
                t_get(t, got, d.x.data, n * sf);
                CHECK_BITS(got, x, n * sf, 1);
                if (from == to && n) { /* in place; in two halves with the offset moved on */
                    size_t cut = n / 3;
                    amp_dropout_desc h = d;
                    h.y = h.x;
                    h.y.dtype = AMP_AUTO;
                    h.count = cut;
                    CHECK_OK(amp_dropout(t->ctx, &h));
                    h.x.data = h.y.data = (char *)d.x.data + cut * sf;
                    h.count = n - cut;
                    h.rng.offset += cut;
                    CHECK_OK(amp_dropout(t->ctx, &h));
                    t_get(t, got, d.x.data, n * sf);
                    set_any_nan(got, to, n);
                    CHECK_BITS(got, want, n, st);
                }
                t_clear(t);
            }
    for (c = 1; c < 70; c += 7) { /* random words are numbered modulo 2^64 */
        float x[100], got[100], want[100];
        amp_dropout_desc d = AMP_ZERO;
        for (i = 0; i < 100; i++)
            x[i] = t_real(t);
        d.p = 0.5f;
        d.count = 100;
        d.rng.seed = 3;
        d.rng.stream = 9;
        d.rng.offset = (uint64_t)0 - c;
        d.x = amp_arr(t_put(t, x, sizeof x), AMP_F32);
        d.y = amp_arr(t_alloc(t, sizeof x), AMP_F32);
        CHECK_OK(amp_dropout(t->ctx, &d));
        t_get(t, got, d.y.data, sizeof got);
        for (i = 0; i < 100; i++)
            want[i] = amp_random(3, 9, d.rng.offset + i) < 0x80000000u ? 0.0f : x[i] * 2.0f;
        CHECK_BITS(got, want, 100, 4);
    }
    { /* p exactly at an element's number: it is kept */
        amp_dropout_desc d = AMP_ZERO;
        float one = 1.0f, y = 0.0f;
        for (i = 0; (amp_random(77, 5, i) & 0xffu) || amp_random(77, 5, i) > 0x80000000u; i++) {
        }
        d.p = (float)((double)amp_random(77, 5, i) / 4294967296.0);
        d.count = 1;
        d.rng.seed = 77;
        d.rng.stream = 5;
        d.rng.offset = i;
        d.x = amp_arr(t_put(t, &one, 4), AMP_F32);
        d.y = amp_arr(t_alloc(t, 4), AMP_F32);
        CHECK_OK(amp_dropout(t->ctx, &d));
        t_get(t, &y, d.y.data, 4);
        CHECK_F32(y, (float)(1.0 / (1.0 - (double)d.p)));
    }
    {
        amp_dropout_desc d = AMP_ZERO;
        float x[4] = {1, 2, 3, 4};
        d.count = 4;
        d.x = amp_arr(t_put(t, x, 16), AMP_F32);
        d.y = d.x;
        d.p = -0.1f;
        CHECK_STATUS(amp_dropout(t->ctx, &d), AMP_ERR_INVALID_ARG, "p");
        d.p = 1.5f;
        CHECK_STATUS(amp_dropout(t->ctx, &d), AMP_ERR_INVALID_ARG, "p");
        d.p = ref_f32(0x7fc00000u);
        CHECK_STATUS(amp_dropout(t->ctx, &d), AMP_ERR_INVALID_ARG, "p");
        d.p = 0.5f;
        d.y.data = (char *)d.x.data + 4;
        d.count = 3;
        CHECK_STATUS(amp_dropout(t->ctx, &d), AMP_ERR_INVALID_ARG, "overlap");
        d.y = d.x;
        d.x.data = NULL;
        CHECK_STATUS(amp_dropout(t->ctx, &d), AMP_ERR_INVALID_ARG, "x");
        d.x = d.y;
        d.x.count = 2;
        CHECK_STATUS(amp_dropout(t->ctx, &d), AMP_ERR_INVALID_ARG, "count");
        d.x.count = 0;
        d._begin = 1;
        CHECK_STATUS(amp_dropout(t->ctx, &d), AMP_ERR_UNINIT, "_begin");
        d._begin = 0;
        CHECK_STATUS(amp_dropout(t->ctx, NULL), AMP_ERR_INVALID_ARG, "desc");
        CHECK_OK(amp_dropout(t->ctx, &d));
    }
}

/* ---- recompute ------------------------------------------------------------------------------------------------- */

enum { R = 8, D = 24 };
static void segment(t_run *t, const amp_array *x, amp_params *p, amp_array *y, amp_precision *rec,
    amp_rng *rng) { /* linear, GELU, dropout; twice */
    size_t i;
    for (i = 0; i < 2; i++) {
        amp_linear_desc l = AMP_ZERO;
        amp_dropout_desc d = AMP_ZERO;
        l.rows = R;
        l.in = D;
        l.out = D;
        l.act = AMP_GELU;
        l.record = &rec[i];
        l.x = i ? y[0] : *x;
        if (i) {
            l.from = &rec[0];
            l.x.dtype = AMP_AUTO;
        }
        l.w = amp_param_model(p, i);
        l.y = y[i];
        CHECK_OK(amp_linear_forward(t->ctx, &l));
        d.x = y[i];
        d.x.dtype = rec[i].y;
        d.y = d.x;
        d.count = R * D;
        d.p = 0.3f;
        d.rng = *rng;
        CHECK_OK(amp_dropout(t->ctx, &d));
        rng->offset += d.count;
    }
}

static void recompute_bits(t_run *t) {
    static const size_t counts[] = {D * D, D * D};
    static const amp_dtype model[] = {AMP_F32, AMP_F16, AMP_BF16, AMP_F32, AMP_F32, AMP_F32};
    int c, where;
    for (c = 0; c < 6; c++)
        for (where = 0; where < 3; where++) { /* recomputed outside every region, in the same one, in a different one */
            amp_params *p = set_new(t, model[c], AMP_F32, counts, 2);
            amp_scaler *s = NULL;
            float *hx = (float *)t_host(t, 4 * R * D);
            amp_array x, y[2], z[2], list[2];
            amp_precision rec[2], rec2[2];
            amp_rng rng, back;
            amp_snapshot snap;
            amp_scaler *gone = NULL;
            amp_autocast_desc a = AMP_ZERO, n = AMP_ZERO;
            amp_policy policy;
            amp_policy_desc o = AMP_ZERO;
            amp_step_desc step = AMP_ZERO;
            uint64_t before;
            size_t i;
            t_note(t, "case %d, place %d", c, where);
            memset(rec, 0, sizeof rec);
            memset(rec2, 0, sizeof rec2);
            memset(&back, 0, sizeof back);
            CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
            t_fill_real(t, hx, AMP_F32, R * D, 1);
            x = amp_arr(t_put(t, hx, 4 * R * D), AMP_F32);
            for (i = 0; i < 2; i++) {
                y[i] = amp_arr(t_alloc(t, 4 * R * D), AMP_AUTO);
                z[i] = amp_arr(t_alloc(t, 4 * R * D), AMP_AUTO);
            }
            o.low = c == 2 || c == 3 ? AMP_BF16 : AMP_AUTO;
            CHECK_OK(amp_policy_init(t->ctx, &policy, model[c] == AMP_F32 ? AMP_O1 : AMP_O2, &o));
            a.policy = &policy;
            if (c == 4) {
                a.pin = AMP_BF16;
                a.cache = AMP_NONE;
            }
            if (c == 5) a.disabled = 1; /* forward cast nothing: neither may its recompute */
            rng.seed = t_u64(t);
            rng.stream = 7;
            rng.offset = 1000 + t_below(t, 5);
            CHECK_OK(amp_autocast_begin(t->ctx, &a));
            CHECK_OK(amp_snapshot_take(t->ctx, &snap, &rng, s));
            segment(t, &x, p, y, rec, &rng);
            for (i = 0; i < 2; i++) {
                list[i] = y[i];
                list[i].dtype = rec[i].y;
                list[i].count = R * D;
            }
            before = t_fingerprint(t, list, 2);
            if (where == 0) CHECK_OK(amp_autocast_end(t->ctx));
            n.low = AMP_BF16;
            n.disabled = c == 1;
            if (where == 2) CHECK_OK(amp_autocast_begin(t->ctx, &n));
            CHECK_OK(amp_snapshot_begin(t->ctx, &back, &snap));
            CHECK_EQ(amp_autocast_get(t->ctx).cache, c != 4);
            CHECK_EQ(back.offset, rng.offset - 2 * R * D);
            CHECK_EQ(back.seed, rng.seed);
            segment(t, &x, p, z, rec2, &back);
            CHECK_OK(amp_autocast_end(t->ctx));
            CHECK_EQ(back.offset, rng.offset);
            for (i = 0; i < 2; i++) {
                amp_array got = z[i];
                got.dtype = rec2[i].y;
                CHECK_EQ(rec2[i].y, rec[i].y);
                CHECK_EQ(rec2[i].used, rec[i].used);
                CHECK_EQ(t_compare(t, list[i], got, R * D), R * D);
                list[i].data = z[i].data;
            }
            CHECK_EQ(t_fingerprint(t, list, 2), before);
            { /* the verifier sees one changed bit */
                unsigned char byte;
                t_get(t, &byte, (char *)z[1].data + 11, 1);
                byte ^= 1;
                t_set(t, (char *)z[1].data + 11, &byte, 1);
                CHECK(t_fingerprint(t, list, 2) != before);
                y[1].dtype = list[1].dtype;
                CHECK_EQ(t_compare(t, y[1], list[1], R * D), 11 / amp_dtype_size(list[1].dtype));
            }
            if (where == 2) CHECK_OK(amp_autocast_end(t->ctx));
            if (where) CHECK_OK(amp_autocast_end(t->ctx));
            /* afterwards it would not be the same */
            CHECK_OK(amp_scaler_set_scale(s, 8.0f));
            CHECK_STATUS(amp_snapshot_begin(t->ctx, &back, &snap), AMP_ERR_STAGE, "scale");
            CHECK_OK(amp_scaler_create(&gone, t->ctx, NULL));
            CHECK_OK(amp_snapshot_take(t->ctx, &snap, NULL, gone));
            amp_scaler_destroy(gone);
            CHECK_STATUS(amp_snapshot_begin(t->ctx, NULL, &snap), AMP_ERR_STAGE, "scaler destroyed");
            CHECK_OK(amp_snapshot_take(t->ctx, &snap, NULL, NULL));
            step.lr = 0.1f;
            CHECK_OK(amp_step(p, NULL, &step));
            CHECK_STATUS(amp_snapshot_begin(t->ctx, NULL, &snap), AMP_ERR_STAGE, "weights");
            CHECK_EQ(amp_autocast_get(t->ctx).depth, 0);
            amp_scaler_destroy(s);
            amp_params_destroy(p);
            t_clear(t);
        }
    CHECK_OK(amp_autocast_release(t->ctx));
    {
        amp_rng r;
        amp_snapshot s;
        memset(&s, 1, sizeof s);
        CHECK_STATUS(amp_snapshot_begin(t->ctx, &r, NULL), AMP_ERR_INVALID_ARG, "snapshot");
        CHECK_STATUS(amp_snapshot_begin(t->ctx, &r, &s), AMP_ERR_UNINIT, "snapshot");
    }
}

/* A layer quantises outside of every region: its recompute does so, too, and an empty if_enabled changes nothing. */
static void snapshot_fp8(t_run *t) {
    enum { N = 16 };
    float *h = (float *)t_host(t, 4 * N * N);
    amp_fp8 *f = NULL;
    amp_snapshot snap;
    amp_autocast_desc a = AMP_ZERO;
    amp_linear_desc l = AMP_ZERO;
    amp_precision record = AMP_ZERO;
    t_fill_real(t, h, AMP_F32, N * N, 1);
    CHECK_OK(amp_fp8_create(&f, t->ctx, NULL));
    l.rows = l.in = l.out = N;
    l.flags = AMP_GEMM_EMULATE;
    l.x = amp_arr(t_put(t, h, 4 * N * N), AMP_F32);
    l.w = amp_arr(t_put(t, h, 4 * N * N), AMP_F32);
    l.y = amp_arr(t_alloc(t, 4 * N * N), AMP_F32);
    l.fp8 = f;
    l.record = &record;
    l.scratch_bytes = 8u << 10;
    l.scratch = t_alloc(t, l.scratch_bytes);
    CHECK_OK(amp_snapshot_take(t->ctx, &snap, NULL, NULL));
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    CHECK_EQ(record.used, AMP_F8E4M3);
    record.used = AMP_AUTO;
    l.fp8_keep = 1;
    CHECK_OK(amp_snapshot_begin(t->ctx, NULL, &snap));
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_EQ(record.used, AMP_F8E4M3);
    record.used = AMP_AUTO;
    a.if_enabled = 1;
    CHECK_OK(amp_autocast_begin(t->ctx, &a));
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_EQ(record.used, AMP_F8E4M3);
    a.if_enabled = 0;
    a.disabled = 1;
    CHECK_OK(amp_autocast_begin(t->ctx, &a));
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_EQ(record.used, AMP_F32);
    CHECK_OK(amp_autocast_release(t->ctx));
    l.y = l.w; /* its copy is what the product reads */
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "y overlaps w");
    amp_fp8_destroy(f);
}

static void scenario(t_run *t, t_blob *b, const void *arg) { /* dropout on this context and on the reference */
    size_t n = 5000;
    float *x = (float *)t_host(t, 4 * n);
    amp_dropout_desc d = AMP_ZERO;
    (void)arg;
    t_fill_real(t, x, AMP_F32, n, 1);
    d.p = 0.25f;
    d.count = n;
    d.rng.seed = 3;
    d.rng.stream = 9;
    d.rng.offset = 2;
    d.x = amp_arr(t_put(t, x, 4 * n), AMP_F32);
    d.y = amp_arr(t_alloc(t, 2 * n), AMP_F16);
    CHECK_OK(amp_dropout(t->ctx, &d));
    t_blob_dev(t, b, d.y.data, 2 * n);
}
static void dropout_everywhere(t_run *t) { t_same_everywhere(t, scenario, NULL); }

const t_test t_suite_memory[] = {{"plan_ledger", plan_ledger, T_ALL},
    {"plan_bytes_per_parameter", plan_bytes_per_parameter, T_ALL}, {"recompute_brute", recompute_brute, T_CPU},
    {"recompute_large", recompute_large, T_CPU}, {"dropout_bits", dropout_bits, T_ALL},
    {"dropout_everywhere", dropout_everywhere, T_ALL}, {"recompute_bits", recompute_bits, T_ALL},
    {"snapshot_fp8", snapshot_fp8, T_ALL}, {NULL, NULL, 0}};
