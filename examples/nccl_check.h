/* nccl_check.h - ranks_nccl.cu --check: sums within their bound, equal bits on all ranks, two ranks as one. */
#ifndef NCCL_CHECK_H
#define NCCL_CHECK_H

/* What --check needs of other ranks' memory; threads of one process only. */
static float *local_gradients[MAX_RANKS][NET_LAYERS];

static void keep_gradients(run *r, size_t i) { /* as this rank has made them */
    amp_array g = amp_param_grad(r->copies, i);
    void *raw = allocate(g.count, sizeof(float));
    must(r->ctx, amp_copy(r->ctx, raw, g.data, g.count * amp_dtype_size(g.dtype)));
    local_gradients[r->rank][i] = (float *)allocate(g.count, sizeof(float));
    for (size_t k = 0; k < g.count; k++)
        local_gradients[r->rank][i][k] = amp_load(raw, g.dtype, k);
    free(raw);
}
static void check_sums(run *r) {
    context_waits(r);
    must(r->ctx, amp_sync(r->ctx));
    pthread_barrier_wait(&everyone);
    for (size_t i = 0; i < r->o->s.layers; i++) {
        amp_array g = piece_of(r, amp_param_grad(r->copies, i));
        void *raw = allocate(g.count, sizeof(float));
        size_t first = r->sharded ? (size_t)r->rank * g.count : 0;
        double u = g.dtype == AMP_F32 ? ldexp(1, -24) : ldexp(1, -11), least = g.dtype == AMP_F32 ? 0 : ldexp(1, -25);
        must(r->ctx, amp_copy(r->ctx, raw, g.data, g.count * amp_dtype_size(g.dtype)));
        for (size_t k = 0; k < g.count; k++) {
            double exact = 0, size = 0, error, bound;
            for (int q = 0; q < r->ranks; q++) {
                exact += (double)local_gradients[q][i][first + k];
                size += fabs((double)local_gradients[q][i][first + k]);
            }
            error = fabs((double)amp_load(raw, g.dtype, k) - exact);
            bound = 1.01 * (r->ranks - 1) * (u * size + least); /* 1.01: terms of higher order */
            if (!(error <= r->end.bound * bound))
                r->end.bound = bound > 0 ? error / bound : error > 0 ? 2 : r->end.bound;
        }
        free(raw);
    }
    pthread_barrier_wait(&everyone);
    for (size_t i = 0; i < r->o->s.layers; i++)
        free(local_gradients[r->rank][i]);
}

static double distance(const options *o, const result *a, const result *b) {
    double most = 0;
    for (size_t k = 0; k < all_weights(&o->s); k++) {
        double d = fabs((double)a->weights[k] - (double)b->weights[k]);
        if (!(d <= most)) most = d; /* NaN stays */
    }
    return most;
}
static int check_split8(options o, const images *train_set, const images *test) {
    result one, r;
    int wrong;
    o.masters = "split8";
    o.parts = 2;
    one = run_with(&o, train_set, test, 1, 0);
    o.parts = 1;
    o.every = o.steps;
    r = run_with(&o, train_set, test, 2, 1);
    wrong = claim(r.hash == one.hash && r.skipped == one.skipped,
        "2 ranks, sharded, masters in 16 + 8 bits: the 16-bit weights of one rank, bit for bit");
    free(one.weights);
    free(r.weights);
    return wrong;
}
static int check(options o, const images *train_set, const images *test) {
    result one, r, plain;
    int wrong = 0;
    o.s.width = 16;
    o.s.layers = 3;
    o.s.rows = 4;
    o.steps = 14;
    o.bad_step = 12;
    o.ordered = 1;
    o.every = 1;
    o.parts = 2;
    one = run_with(&o, train_set, test, 1, 0); /* the batch of 2 ranks, on one */
    wrong += claim(one.bad_skipped && one.skipped > 1 && one.skipped < 12,
        "1 rank: %lu steps skipped, one of them for an Inf planted in step 12; loss %.2f", (unsigned long)one.skipped,
        (double)one.loss);
    o.parts = 1;
    plain = run_with(&o, train_set, test, 2, 0);
    wrong += claim(plain.masters == one.masters && plain.hash == one.hash && plain.skipped == one.skipped,
        "2 ranks, plain: equal bits on both after each step, and the masters of one rank, bit for bit");
    o.every = o.steps; /* no look, which waits, between the gathering of weights and the next forward */
    r = run_with(&o, train_set, test, 2, 1);
    o.every = 1;
    wrong += claim(r.hash == one.hash && r.skipped == one.skipped,
        "2 ranks, sharded: equal bits on both at the end, and the 16-bit weights of one rank, bit for bit");
    wrong += claim(r.bytes[2] < 0.6 * plain.bytes[2] && r.bytes[3] < 0.6 * plain.bytes[3],
        "2 ranks: masters and moments take %.1f bytes per weight on a rank, sharded %.1f",
        plain.bytes[2] + plain.bytes[3], r.bytes[2] + r.bytes[3]);
    free(r.weights);
    free(plain.weights);
    free(one.weights);
    wrong += check_split8(o, train_set, test);
    o.clip = 0.5f;
    plain = run_with(&o, train_set, test, 4, 0);
    r = run_with(&o, train_set, test, 4, 1);
    wrong += claim(plain.bound > 0 && plain.bound <= 1 && r.bound > 0 && r.bound <= 1 && r.bad_skipped,
        "4 ranks, plain and sharded: equal bits on all after each step; sums reach %.2f and %.2f of their bound",
        plain.bound, r.bound);
    wrong += claim(distance(&o, &plain, &r) <= 0.001,
        "4 ranks, clipped by norm: 16-bit weights of plain and sharded runs differ by %.0e (bound: 0.001)",
        distance(&o, &plain, &r));
    free(r.weights);
    o.wire = "f16";
    r = run_with(&o, train_set, test, 4, 1);
    wrong += claim(r.bound > 0 && r.bound <= 1 && r.bad_skipped,
        "4 ranks, sharded, sums in FP16: equal bits on all after each step; sums reach %.2f of their bound", r.bound);
    free(r.weights);
    free(plain.weights);
    return wrong;
}

#endif
