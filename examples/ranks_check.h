/* ranks_check.h - ranks_mpi.c --check: do 1, 2 and 4 processes, plain and sharded, end with the same state file? */
#ifndef RANKS_CHECK_H
#define RANKS_CHECK_H

/* MPI's sums beside ours. A sum of n terms in any order is within (n - 1) 2^-24 sum |g| of the exact one, but for terms
   of higher order; so two of them are within twice that of each other. */
static float *our_sums;
static double *sum_bounds;
static void prepare_check(run *r, const float *g, const pieces *p) {
    int k, q;
    our_sums = (float *)allocate((size_t)p->mine, sizeof *our_sums);
    sum_bounds = (double *)allocate((size_t)p->mine, sizeof *sum_bounds);
    MPI_Alltoallv(g, p->count, p->first, MPI_FLOAT, r->received, p->same, p->places, MPI_FLOAT, r->comm);
    for (q = 0; q < r->ranks; q++)
        for (k = 0; k < p->mine; k++)
            sum_bounds[k] += 2.01 * (r->ranks - 1) / 16777216.0 * fabs((double)r->received[p->places[q] + k]);
    add_ranks(r->received, (size_t)p->mine, r->ranks);
    memcpy(our_sums, r->received, (size_t)p->mine * sizeof *our_sums);
}
static void check_sums(run *r, const float *own, const pieces *p) {
    int k;
    for (k = 0; k < p->mine; k++) {
        double error = fabs((double)own[k] - (double)our_sums[k]), bound = sum_bounds[k];
        if (error > r->end.error_most * bound) r->end.error_most = bound > 0 ? error / bound : 2;
    }
    free(our_sums);
    free(sum_bounds);
}

static void keep_weights(run *r, const amp_params *whole) {
    size_t at = 0, i;
    if (!r->end.weights) r->end.weights = (float *)allocate(r->weights, sizeof(float));
    r->end.count = r->weights;
    for (i = 0; i < r->layers; i++) {
        amp_array w = amp_param_get(whole, i).master;
        memcpy(r->end.weights + at, w.data, w.count * sizeof(float));
        at += w.count;
    }
}
static double distance(const result *a, const result *b) { /* of the weights; on rank 0 */
    double most = 0;
    size_t k;
    for (k = 0; a->weights && b->weights && k < a->count; k++) {
        double d = fabs((double)a->weights[k] - (double)b->weights[k]);
        if (!(d <= most)) most = d; /* NaN stays */
    }
    return most;
}
static int check(options o) {
    result one, r, clipped;
    size_t ranks;
    int rank, wrong = 0, sharded;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#define CLAIM(...) \
    if (rank == 0) wrong += claim(__VA_ARGS__)
    o.until = 40;
    one = run_with(&o, 1, 0);
    o.bad_step = 30;
    r = one;
    one = run_with(&o, 1, 0);
    CLAIM(r.skipped > 0 && one.skipped == r.skipped + 1 && (o.t.is_gpt ? one.score < 3.3 : one.score > 60),
        "one process: %lu steps overflow until the scale fits, 1 by an Inf planted in step 30; %s %.4g",
        (unsigned long)r.skipped, o.t.is_gpt ? "loss on new text" : "percent right", one.score);
    free(r.weights);
    for (ranks = 2; ranks <= 4; ranks *= 2)
        for (sharded = 0; sharded < 2; sharded++) {
            r = run_with(&o, ranks, sharded);
            CLAIM(r.hash == one.hash && r.skipped == one.skipped,
                "%lu processes, %s: equal bits on all ranks after each step, and the state file of one process",
                (unsigned long)ranks, modes[sharded]);
            free(r.weights);
        }
    o.any_order = 1;
    for (sharded = 0; sharded < 2; sharded++) {
        r = run_with(&o, 4, sharded);
        CLAIM(r.error_most <= 1 && r.skipped == one.skipped,
            "4 processes, %s, in MPI's order: equal on all ranks; a sum differs by %.2f of its bound; weights by %.0e",
            modes[sharded], r.error_most, distance(&r, &one));
        free(r.weights);
    }
    o.any_order = 0;
    /* up to the first step that is not skipped; later two such runs drift apart: what differs by a rounding is rounded
       again, and AdamW makes steps of full length of gradients that are nothing but rounding */
    for (o.until = 1; (r = run_with(&o, 4, 0)).skipped == o.until; o.until++)
        free(r.weights);
    free(r.weights);
    o.clip = 0.05f;
    clipped = run_with(&o, 1, 0);
    CLAIM(clipped.hash != r.hash && clipped.skipped + 1 == o.until,
        "step %lu, the first that is not skipped, clipped by norm: a different state file", (unsigned long)o.until);
    for (sharded = 0; sharded < 2; sharded++) {
        double d;
        r = run_with(&o, 4, sharded);
        d = distance(&r, &clipped);
        CLAIM(sharded ? d <= 1e-6 : r.hash == clipped.hash,
            "4 processes, %s, clipped by norm: weights differ by %.0e from those of one process (bound: %s)",
            modes[sharded], d, sharded ? "1e-06" : "0, state file and all");
        free(r.weights);
    }
    free(clipped.weights);
    o.clip = 0;
    o.until = 20; /* a run in two halves */
    r = run_with(&o, 4, 1);
    free(r.weights);
    o.until = 40;
    o.resume = 1;
    r = run_with(&o, 2, 0);
    CLAIM(
        r.hash == one.hash, "20 steps with 4 processes, sharded, then 20 with 2, plain: the state file of one process");
    free(r.weights);
    free(one.weights);
    if (rank == 0) remove(o.state);
    MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return wrong;
}

#endif
