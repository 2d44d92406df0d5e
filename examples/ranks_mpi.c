/* ranks_mpi.c - data parallel over MPI: many processes train one network, and each has the same bits after every step.
 *
 *     mpicc -std=c99 -O2 examples/ranks_mpi.c -I. -lm -pthread -o ranks_mpi && mpirun -n 4 ranks_mpi     (--help)
 *     mpirun -n 4 ranks_mpi --model gpt      the transformer of gpt.c instead of the dense network (ranks_model.h)
 *
 * A step has a batch of `parts` equal parts; a process computes the gradients of some of them, and amp_step brings the
 * processes together by its hooks. Two ways:
 *
 *     plain      every rank has everything. The hook adds the gradients up, then every rank takes the same step.
 *     sharded    ZeRO, stage 1 (Rajbhandari et al., arXiv 1910.02054): every rank has 16-bit weights and gradients,
 *                but masters and moments of its piece of each layer only. The hook gives a rank the sum of its piece; a
 *                second hook adds up what the step wants to know of all gradients (an overflow, the norm); then the
 *                16-bit weights are gathered.
 *
 * The order of a sum. MPI may add up in any order, and FP32 sums depend on it. Here parts are added in pairs, pairs in
 * pairs, and so on, within a rank and among ranks alike, so 1, 2 and 4 processes make the same sums: all runs, plain
 * or sharded, end with the same state file, byte for byte. (Within a bound only: --any-order, which leaves sums to MPI,
 * and clipping by norm in sharded runs, whose sum of squares is divided among ranks.) A process that dies ends all;
 * --resume continues from the state file with any number of ranks.
 *
 * This is for CPU contexts; for GPUs see ranks_nccl.cu.
 */
#define _POSIX_C_SOURCE 200809L
#define AMP_IMPLEMENTATION
#include "amp.h"
#define PROGRAM "ranks_mpi"
#include "ranks_model.h" /* what is trained */

#include <mpi.h>
#include <signal.h>

static const char *const modes[2] = {"plain", "sharded"};
enum { MAX_RANKS = 64, MAX_LEVELS = 7, GROWTH = 20, BYTES = 5, KEEP_EVERY = 100 };
#define FIRST_SCALE 16777216.0f /* far too high: the first steps overflow by themselves, until it fits */

typedef struct options {
    task t;
    size_t until, ranks, kill_rank, kill_step;
    size_t bad_step; /* of a gradient that is Inf, in the last part; 0: none */
    float lr, clip;
    int any_order, resume, check;
    const char *model, *mode, *state;
} options;

typedef struct result { /* what a run leaves behind, right on rank 0; the state file has all that matters */
    double score, seconds, bytes[BYTES];
    double sent;       /* bytes, by the rank, for gradients and weights */
    double error_most; /* --any-order: of a sum, in units of its bound */
    size_t skipped;
    float loss, scale; /* of the last step */
    float *weights;    /* --check: all masters */
    size_t count;      /* ... this many */
    uint64_t hash;     /* of the state file */
} result;

typedef struct run {
    const options *o;
    int sharded, rank, ranks;
    MPI_Comm comm;
    amp_ctx *ctx;
    model m;
    amp_params *copies; /* the model's: 16-bit weights and FP32 gradients, of all layers */
    amp_params *mine; /* masters and moments of this rank's part of each layer; its other arrays are those of copies */
    size_t layers, weights;  /* parameters of copies, and their elements */
    float *tree[MAX_LEVELS]; /* gradients: sums of 2^level parts that wait for the next as many */
    float *received;         /* a piece from each rank */
    size_t step;
    result end;
} run;

/* ---- who has what ---- */

static size_t piece_start(size_t count, int rank, int ranks) { return count * (size_t)rank / (size_t)ranks; }
static size_t layer_size(const run *r, size_t i) { return amp_param_model(r->copies, i).count; }
/* Elements [*first, *first + returned) of layer i are rank q's. plain: all are everyone's. */
static size_t piece(const run *r, size_t i, int q, size_t *first) {
    size_t count = layer_size(r, i);
    *first = r->sharded ? piece_start(count, q, r->ranks) : 0;
    return r->sharded ? piece_start(count, q + 1, r->ranks) - *first : count;
}
/* Masters and moments beside the arrays of copies, which they begin as: of a rank's pieces, or of everything (-1). */
static amp_params *make_params(const run *r, const char *label, int of_rank) {
    amp_params_desc desc = AMP_ZERO;
    amp_params *p;
    size_t i;
    desc.label = label;
    must(r->ctx, amp_params_create(&p, r->ctx, &desc));
    for (i = 0; i < r->layers; i++) {
        amp_param all = amp_param_get(r->copies, i);
        amp_param_desc d = AMP_ZERO;
        size_t first = 0;
        d.name = all.name;
        d.keep_f32 = all.model.dtype == AMP_F32;
        d.count = of_rank < 0 ? all.count : piece(r, i, of_rank, &first);
        d.model = from_element(all.model, first);
        d.grad = from_element(all.grad, first);
        must(r->ctx, amp_params_add(p, &d));
    }
    must(r->ctx, amp_params_commit(p));
    return p;
}

/* ---- sums and gathers ---- */

static void add(float *to, const float *more, size_t n) {
    size_t k;
    for (k = 0; k < n; k++)
        to[k] += more[k];
}
/* received[0] += all the others, in pairs of pairs: with more parts per rank it is the same tree. */
static void add_ranks(float *received, size_t n, int ranks) {
    int step, q;
    for (step = 1; step < ranks; step *= 2)
        for (q = 0; q + step < ranks; q += 2 * step)
            add(received + (size_t)q * n, received + (size_t)(q + step) * n, n);
}
/* Part k of this rank's has its gradients in copies: what it completes is added up there; the rest waits. */
static void add_part(run *r, size_t k) {
    size_t parts = r->o->t.parts / (size_t)r->ranks, at = 0, i;
    int level, last = k + 1 == parts;
    for (i = 0; i < r->layers; i++) {
        amp_array g = amp_param_grad(r->copies, i);
        for (level = 0; (k >> level) & 1; level++)
            add((float *)g.data, r->tree[level] + at, g.count);
        if (!last) memcpy(r->tree[level] + at, g.data, g.count * sizeof(float));
        at += g.count;
    }
}

typedef struct pieces { int count[MAX_RANKS], first[MAX_RANKS], mine, places[MAX_RANKS], same[MAX_RANKS]; } pieces;
static pieces pieces_of(const run *r, size_t i) { /* always divided, in plain runs as well */
    pieces p;
    size_t count = layer_size(r, i);
    int q;
    p.mine = (int)(piece_start(count, r->rank + 1, r->ranks) - piece_start(count, r->rank, r->ranks));
    for (q = 0; q < r->ranks; q++) {
        p.first[q] = (int)piece_start(count, q, r->ranks);
        p.count[q] = (int)piece_start(count, q + 1, r->ranks) - p.first[q];
        p.same[q] = p.mine;
        p.places[q] = q * p.mine;
    }
    return p;
}
static void gather_pieces(
    run *r, size_t i, amp_array a) { /* each rank has its piece of layer i right: now all have all */
    pieces p = pieces_of(r, i);
    MPI_Datatype type = a.dtype == AMP_F32 ? MPI_FLOAT : MPI_UINT16_T;
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a.data, p.count, p.first, type, r->comm);
    r->end.sent += (double)p.mine * (double)(r->ranks - 1) * (double)amp_dtype_size(a.dtype);
}
/* Each rank gets the sum of its piece of layer i, from everyone's, in received[0]. */
static void sum_piece(run *r, const float *g, const pieces *p) {
    MPI_Alltoallv(g, p->count, p->first, MPI_FLOAT, r->received, p->same, p->places, MPI_FLOAT, r->comm);
    add_ranks(r->received, (size_t)p->mine, r->ranks);
}
static result run_with(const options *o, size_t ranks, int sharded);
#include "ranks_check.h" /* --check: is all as the comment says? */

static void sum_in_any_order(run *r, float *g, const pieces *p) {
    float *own = g + p->first[r->rank];
    if (r->o->check) prepare_check(r, g, p);
    if (r->sharded) {
        MPI_Reduce_scatter(g, r->received, p->count, MPI_FLOAT, MPI_SUM, r->comm);
        memcpy(own, r->received, (size_t)p->mine * sizeof *own);
    } else {
        MPI_Allreduce(MPI_IN_PLACE, g, p->first[r->ranks - 1] + p->count[r->ranks - 1], MPI_FLOAT, MPI_SUM, r->comm);
    }
    if (r->o->check) check_sums(r, own, p);
}
/* .reduce_grads_fn: before amp_step reads the gradients, which still carry the loss scale; Inf and NaN travel. */
static amp_status reduce_gradients(amp_ctx *ctx, amp_params *params, void *user) {
    run *r = (run *)user;
    size_t i;
    (void)ctx, (void)params;
    for (i = 0; i < r->layers; i++) {
        amp_array g = amp_param_grad(r->copies, i);
        pieces p = pieces_of(r, i);
        float *own = (float *)g.data + p.first[r->rank];
        r->end.sent += (double)((int)g.count - p.mine) * sizeof(float);
        if (r->o->any_order) {
            sum_in_any_order(r, (float *)g.data, &p);
            continue;
        }
        sum_piece(r, (float *)g.data, &p);
        memcpy(own, r->received, (size_t)p.mine * sizeof(float));
        if (!r->sharded) gather_pieces(r, i, g);
    }
    return AMP_OK;
}
/* .reduce_totals_fn of sharded runs: what this rank's pieces add up to becomes what all add up to. */
static amp_status reduce_totals(amp_ctx *ctx, amp_totals *totals, void *user) {
    run *r = (run *)user;
    amp_totals all[MAX_RANKS];
    int q;
    (void)ctx;
    MPI_Allgather(totals, sizeof *totals, MPI_BYTE, all, sizeof *totals, MPI_BYTE, r->comm);
    totals->sum = 0;
    totals->nan = totals->inf = totals->overflow = 0;
    for (q = 0; q < r->ranks; q++) { /* in the order of ranks, on every rank */
        totals->sum += all[q].sum;
        totals->nan += all[q].nan;
        totals->inf += all[q].inf;
        totals->overflow += all[q].overflow;
    }
    return AMP_OK;
}

/* ---- equal bits ---- */

static void compare_ranks(run *r, const amp_step_record *record) { /* what every rank should have */
    uint64_t h = HASH_START, all[MAX_RANKS];
    amp_scaler_info info;
    size_t i;
    int q;
    must(r->ctx, amp_scaler_get(r->m.scaler, &info));
    h = hash_more(hash_more(h, &info, sizeof info), &record->steps, sizeof record->steps);
    for (i = 0; i < r->layers; i++) {
        amp_array m = amp_param_model(r->copies, i), w = amp_param_get(r->mine, i).master;
        h = hash_more(h, m.data, m.count * amp_dtype_size(m.dtype));
        if (!r->sharded) h = hash_more(h, w.data, w.count * sizeof(float));
    }
    MPI_Allgather(&h, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, r->comm);
    for (q = 1; q < r->ranks; q++)
        if (all[q] != all[0]) fail("after step %lu rank %d has not the bits of rank 0", (unsigned long)r->step, q);
}

/* ---- the state file: what one process would have, whoever writes and whoever reads ---- */

/* One array of layer i: all of it on rank 0 (part NULL on the others), and what of it is this rank's. */
static void exchange(run *r, size_t i, float *whole, amp_array part, int load) {
    pieces p = pieces_of(r, i);
    size_t bytes = part.count * sizeof(float);
    if (part.data == amp_param_model(r->mine, i).data) { /* an FP32 master is the weight itself: all have all of it */
        amp_array w = amp_param_model(r->copies, i);
        if (load) MPI_Bcast(w.data, (int)w.count, MPI_FLOAT, 0, r->comm);
        return;
    }
    if (!r->sharded && r->rank == 0) memcpy(load ? part.data : whole, load ? whole : part.data, bytes);
    if (!r->sharded && load) MPI_Bcast(part.data, (int)part.count, MPI_FLOAT, 0, r->comm);
    if (r->sharded && load) MPI_Scatterv(whole, p.count, p.first, MPI_FLOAT, part.data, p.mine, MPI_FLOAT, 0, r->comm);
    if (r->sharded && !load) MPI_Gatherv(part.data, p.mine, MPI_FLOAT, whole, p.count, p.first, MPI_FLOAT, 0, r->comm);
}
static void keep_state(run *r, int load) {
    amp_params *whole = NULL;
    amp_state_desc state = AMP_ZERO;
    amp_step_record record;
    amp_scaler_info info;
    uint64_t user[3]; /* steps; skipped ones; taken ones */
    size_t i, k;
    must(r->ctx, amp_step_poll(r->mine, &record));
    user[0] = r->step;
    user[1] = r->end.skipped;
    user[2] = record.steps;
    if (r->rank == 0) { /* model copies and gradients are there already */
        whole = make_params(r, "whole", -1);
        must(r->ctx, amp_params_set_steps(whole, record.steps));
    }
    state.params = &whole;
    state.n_params = 1;
    state.scalers = &r->m.scaler;
    state.n_scalers = 1;
    state.user = user;
    state.user_bytes = sizeof user;
    if (load && whole) must(r->ctx, amp_state_load(r->ctx, r->o->state, &state));
    for (i = 0; i < r->layers; i++) {
        amp_param all = amp_param_get(whole, i), own = amp_param_get(r->mine, i);
        exchange(r, i, (float *)all.master.data, own.master, load);
        for (k = 0; k < 2; k++)
            exchange(r, i, (float *)all.moment[k].data, own.moment[k], load);
    }
    if (!load && whole) must(r->ctx, amp_state_save(r->ctx, r->o->state, &state));
    if (r->o->check && whole) keep_weights(r, whole);
    amp_params_destroy(whole);
    if (!load) return;
    must(r->ctx, amp_scaler_get(r->m.scaler, &info)); /* the rest, from rank 0 */
    MPI_Bcast(&info, sizeof info, MPI_BYTE, 0, r->comm);
    MPI_Bcast(user, 3, MPI_UINT64_T, 0, r->comm);
    must(r->ctx, amp_scaler_set(r->m.scaler, &info));
    must(r->ctx, amp_params_set_steps(r->mine, user[2]));
    must(r->ctx, amp_params_master_to_model(r->mine));
    r->step = (size_t)user[0];
    r->end.skipped = (size_t)user[1];
    for (i = 0; r->sharded && i < r->layers; i++)
        gather_pieces(r, i, amp_param_model(r->copies, i));
}

/* ---- a run ---- */

static void run_create(run *r, const options *o, int sharded, MPI_Comm comm) {
    amp_cpu_desc cpu = AMP_ZERO;
    amp_scaler_desc scaling = AMP_ZERO;
    size_t most = 0, levels = 0, i;
    float *sums;
    memset(r, 0, sizeof *r);
    r->o = o;
    r->sharded = sharded;
    r->comm = comm;
    MPI_Comm_rank(comm, &r->rank);
    MPI_Comm_size(comm, &r->ranks);
    cpu.threads = 1;
    cpu.gemm_flags = AMP_GEMM_ORDERED; /* products, too, add up in one order */
    must(NULL, amp_cpu_create(&r->ctx, &cpu));
    scaling.scale = FIRST_SCALE;
    scaling.growth_interval = GROWTH;
    model_create(&r->m, &o->t, r->ctx, &scaling);
    r->copies = r->m.params;
    r->layers = amp_params_count(r->copies);
    for (i = 0; i < r->layers; i++) {
        r->weights += layer_size(r, i);
        if (layer_size(r, i) > most) most = layer_size(r, i);
    }
    r->mine = make_params(r, "mine", r->rank);
    while ((size_t)2 << levels <= o->t.parts / (size_t)r->ranks)
        levels++;
    must(r->ctx, amp_alloc(r->ctx, (void **)&sums, (levels * r->weights + most + MAX_RANKS) * sizeof(float), "sums"));
    for (i = 0; i < levels; i++)
        r->tree[i] = sums + most + MAX_RANKS + i * r->weights;
    r->received = sums;
}
static void run_destroy(run *r) {
    must(r->ctx, amp_free(r->ctx, r->received));
    amp_params_destroy(r->mine);
    model_destroy(&r->m);
    amp_ctx_destroy(r->ctx);
}

/* The gradients of this rank's parts of the batch, added up in copies; returns the sum of their losses. */
static float gradients(run *r) {
    size_t all = r->o->t.parts, parts = all / (size_t)r->ranks, k;
    float loss = 0;
    for (k = 0; k < parts; k++) {
        size_t part = (size_t)r->rank * parts + k;
        loss += model_gradients(&r->m, r->step, part);
        if (r->step + 1 == r->o->bad_step && part == all - 1)
            amp_store(amp_param_grad(r->copies, 0).data, AMP_F32, 0, INFINITY);
        add_part(r, k);
    }
    return loss;
}
static void train(run *r, const char *name) {
    const options *o = r->o;
    amp_step_desc d = AMP_ZERO;
    amp_step_record record;
    double start = seconds();
    size_t begin = r->step, i;
    d.lr = o->lr;
    d.clip_norm = o->clip;
    d.micro_batches = (uint32_t)o->t.parts; /* gradients are sums over the parts: now their mean */
    d.reduce_grads_fn = reduce_gradients;
    d.reduce_totals_fn = r->sharded ? reduce_totals : NULL;
    d.user = r;
    if (begin >= o->until) fail("%s is of step %lu already", o->state, (unsigned long)begin);
    while (r->step < o->until) {
        float loss = gradients(r);
        if (r->step + 1 == o->kill_step && r->rank == (int)o->kill_rank) raise(SIGKILL);
        must(r->ctx, amp_step(r->mine, r->m.scaler, &d));
        must(r->ctx, amp_step_poll(r->mine, &record));
        for (i = 0; r->sharded && i < r->layers; i++)
            gather_pieces(r, i, amp_param_model(r->copies, i));
        r->step++;
        r->end.skipped += record.outcome != AMP_STEPPED;
        compare_ranks(r, &record);
        if (r->step % KEEP_EVERY == 0 || r->step == o->until) keep_state(r, 0);
        MPI_Reduce(&loss, &r->end.loss, 1, MPI_FLOAT, MPI_SUM, 0, r->comm);
        r->end.loss /= (float)o->t.parts;
        r->end.scale = record.scale;
        if (r->rank == 0 && !o->check)
            show_progress(name, start, r->step - begin, o->until - begin, r->end.loss, record.scale);
    }
    r->end.seconds = (seconds() - start) / (double)(r->step - begin);
    r->end.sent /= (double)(r->step - begin);
}

static double largest(const run *r, double x) { /* over all ranks */
    double most;
    MPI_Allreduce(&x, &most, 1, MPI_DOUBLE, MPI_MAX, r->comm);
    return most;
}
/* Ranks 0 .. ranks - 1 of all train; the others wait. */
static result run_with(const options *o, size_t ranks, int sharded) {
    static const char *const labels[BYTES] = {"copies.model", "copies.grad", "mine.master", "mine.moments", "sums"};
    static run r;
    MPI_Comm comm;
    char name[32];
    int rank, i;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, (size_t)rank < ranks ? 0 : MPI_UNDEFINED, rank, &comm);
    if (comm != MPI_COMM_NULL) {
        sprintf(name, "%s x %lu", modes[sharded], (unsigned long)ranks);
        run_create(&r, o, sharded, comm);
        for (i = 0; i < BYTES; i++)
            r.end.bytes[i] = largest(&r, bytes_of(r.ctx, labels[i]) / (double)r.weights);
        if (o->resume) keep_state(&r, 1);
        train(&r, name);
        r.end.sent = largest(&r, r.end.sent / (double)r.weights);
        r.end.error_most = largest(&r, r.end.error_most);
        r.end.score = model_score(&r.m);
        if (r.rank == 0) r.end.hash = file_hash(o->state);
        run_destroy(&r);
        MPI_Comm_free(&comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return r.end;
}

/* ---- the program ---- */

static void table(const options *o, size_t world) {
    size_t ranks, i;
    int sharded, rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("bytes per weight, on the rank that has most: model grad master moments sums, all; sent in a step\n"
               "mode    ranks    loss %8s skipped scale model  grad master moments  sums   all  sent ms/step  state\n",
            o->t.is_gpt ? "on new" : "% right");
    for (sharded = 0; sharded < 2; sharded++)
        for (ranks = o->ranks ? o->ranks : 1; ranks <= (o->ranks ? o->ranks : world); ranks *= 2) {
            result r;
            double all = 0;
            if (o->mode && !strcmp(o->mode, modes[!sharded])) continue;
            r = run_with(o, ranks, sharded);
            for (i = 0; i < BYTES; i++)
                all += r.bytes[i];
            if (rank) continue;
            printf("%-7s %5lu %7.4f %8.4g %7lu 2^%-3.0f", modes[sharded], (unsigned long)ranks, (double)r.loss, r.score,
                (unsigned long)r.skipped, log2((double)r.scale));
            printf(" %5.2f %5.2f %6.2f %7.2f %5.2f %5.2f %5.2f %7.2f  %016llx\n", r.bytes[0], r.bytes[1], r.bytes[2],
                r.bytes[3], r.bytes[4], all, r.sent, 1e3 * r.seconds, (unsigned long long)r.hash);
        }
}
int main(int argc, char **argv) {
    options o = AMP_ZERO;
    const option list[] = {
        {"--model", OPTION_TEXT, &o.model, "digits or gpt (digits)"},
        {"--mode", OPTION_TEXT, &o.mode, "plain or sharded: only that one"},
        {"--ranks", OPTION_COUNT, &o.ranks, "only with this many; else with 1, 2, 4 ... of the processes"},
        {"--steps", OPTION_COUNT, &o.until, "(600)"},
        {"--parts", OPTION_COUNT, &o.t.parts, "of a batch, a power of two, at least as many as ranks (4)"},
        {"--rows", OPTION_COUNT, &o.t.rows, "images of a part (8); gpt: sequences (4)"},
        {"--width", OPTION_COUNT, &o.t.width, "of the hidden layers (128); gpt: of the blocks (64)"},
        {"--layers", OPTION_COUNT, &o.t.layers, "(3); gpt: blocks (2)"},
        {"--lr", OPTION_REAL, &o.lr, "learning rate (0.001)"},
        {"--clip", OPTION_REAL, &o.clip, "clips gradients by that norm"},
        {"--any-order", OPTION_FLAG, &o.any_order, "sums in the order of MPI's choice"},
        {"--data", OPTION_TEXT, &o.t.data, "IDX files (MNIST ...) in that folder; gpt: a text (build/shakespeare.txt)"},
        {"--state", OPTION_TEXT, &o.state, "file, kept every 100 steps (ranks_mpi.state)"},
        {"--resume", OPTION_FLAG, &o.resume, "continues from there, with any number of ranks"},
        {"--kill", OPTION_COUNT, &o.kill_rank, "that rank, from 1 on, dies ..."},
        {"--at", OPTION_COUNT, &o.kill_step, "... in that step"},
        {"--check", OPTION_FLAG, &o.check, "is all as the comment says? With 4 processes, in seconds"},
    };
    int world, wrong = 0;
    o.t.parts = 4;
    o.until = 600;
    o.lr = 1e-3f;
    o.state = "ranks_mpi.state";
    MPI_Init(&argc, &argv); /* its default: an error ends all processes, with a message */
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    if (parse_options(argc, argv, list, sizeof list / sizeof *list, "usage: mpirun -n RANKS ranks_mpi [options]")) {
        if (o.check && world != 4) fail("--check: with mpirun -n 4");
        if (o.ranks > (size_t)world) fail("--ranks %lu: there are %d processes", (unsigned long)o.ranks, world);
        if (o.t.parts & (o.t.parts - 1) || o.ranks & (o.ranks - 1) || o.t.parts < (size_t)world ||
            o.t.parts >> MAX_LEVELS)
            fail("--parts, --ranks: powers of two are needed, and at least a part for each process");
        one_of("--mode", o.mode, modes[0], modes[1]);
        one_of("--model", o.model, "digits", "gpt");
        o.t.is_gpt = o.model && !strcmp(o.model, "gpt");
        task_load(&o.t, o.check);
        if (o.check)
            wrong = check(o);
        else
            table(&o, (size_t)world);
        task_free(&o.t);
    }
    MPI_Finalize();
    return wrong != 0;
}
