/* ranks_nccl.cu - data parallel over NCCL, a rank per GPU: what ranks_mpi.c does, with the sums beside backward.
 *
 *     nvcc -O2 -arch=native -I. examples/ranks_nccl.cu -lcublasLt -lnccl -o ranks_nccl && ./ranks_nccl      (--help)
 *
 * One process, a thread for each GPU; or, with --rank N --of RANKS --id FILE, a process for each (by a launcher that
 * ends all of them when one ends, such as mpirun: NCCL itself waits for ranks that are gone). Each layer is a bucket:
 *
 *     context's stream   forward 1 2 3   loss   backward 3 2 1      hook   step
 *     second stream                               sum of 3   2   1 |     | sharded: gather weights 1 2 3
 *
 * A bucket is added up as soon as its backward has run, while the next backward runs; the hook of the step only waits.
 *
 *     plain      every rank has everything: all-reduce of gradients, then every rank takes the same step.
 *     sharded    ZeRO, stage 1 (arXiv 1910.02054): masters and moments of a rank's piece of each bucket only:
 *                reduce-scatter, a step that adds up what it wants to know of all gradients in its second hook, and an
 *                all-gather of the 16-bit weights: the next forward of a layer waits for its own, not for all.
 *
 * NCCL adds up in an order of its own, the same for all ranks. So all ranks hold equal bits, an overflow on one rank
 * skips the step on all, and a sum of R gradients is within (R - 1) 2^-24 sum |g| of the exact one (2^-11 with
 * --wire f16, which halves what is sent). With 2 ranks there is one order: the bits of one rank with the same batch.
 */
#define AMP_IMPLEMENTATION
#define AMP_CUDA_IMPLEMENTATION
#include "amp_cuda.cuh"

#define PROGRAM "ranks_nccl"
#include "digits_net.h"

#include <cuda_runtime.h>
#include <nccl.h>
#include <pthread.h>

#define CUDA(call) \
    do { \
        cudaError_t e_ = (call); \
        if (e_ != cudaSuccess) fail("%s: %s", #call, cudaGetErrorString(e_)); \
    } while (0)
#define NCCL(call) \
    do { \
        ncclResult_t e_ = (call); \
        if (e_ != ncclSuccess) fail("%s: %s", #call, ncclGetErrorString(e_)); \
    } while (0)

static const char *const modes[2] = {"plain", "sharded"};
static pthread_barrier_t everyone;
enum { MAX_RANKS = 64, GROWTH = 20, BYTES = 4 }; /* buckets are padded to a multiple of MAX_RANKS elements */
#define FIRST_SCALE 16777216.0f /* far too high: the first steps overflow by themselves, until it fits */

typedef struct options {
    shape s;
    size_t steps, ranks, of, rank; /* rank: 1 .. of, of this process; 0: all ranks are threads here */
    size_t parts;                  /* of s.rows images, which a rank does one after another: 1, but in --check */
    size_t every;                  /* steps between two looks at losses, and whether ranks have equal bits */
    size_t bad_step;               /* of an image that is Inf, on the last rank, in its last part; 0: none */
    float lr, clip;
    int ordered, check;
    const char *mode, *wire, *masters, *id, *data;
} options;

typedef struct result {
    double bytes[BYTES], seconds, accuracy, bound; /* bound: largest error of a sum, in units of its bound */
    size_t skipped;
    int bad_skipped;
    float loss, scale, *weights;
    uint64_t hash, masters; /* of 16-bit weights; of masters, in plain runs */
} result;

typedef struct run {
    const options *o;
    const images *train_set, *test;
    ncclUniqueId id;
    int sharded, rank, ranks;
    ncclComm_t comm;
    cudaStream_t second;
    cudaEvent_t there, back, made[NET_LAYERS], gathered[NET_LAYERS];
    amp_ctx *ctx;
    amp_params *copies, *mine; /* copies: 16-bit weights, gradients; mine: what this rank steps; plain: one set */
    amp_scaler *scaler;
    net n;
    digits train;
    uint64_t *hashes; /* context memory: of all ranks */
    size_t step;
    result end;
} run;

/* ---- setting up ---- */

static size_t padded(const shape *s, size_t i) { return (layer_count(s, i) + MAX_RANKS - 1) / MAX_RANKS * MAX_RANKS; }
static amp_array piece_of(const run *r, amp_array a) { /* this rank's; all, in plain runs */
    size_t n = a.count / (size_t)r->ranks;
    if (r->sharded) a = amp_arrn((char *)a.data + (size_t)r->rank * n * amp_dtype_size(a.dtype), a.dtype, n);
    return a;
}
static amp_params *make_params(const run *r, const amp_params_desc *desc, const amp_params *from) {
    amp_params *p;
    must(r->ctx, amp_params_create(&p, r->ctx, desc));
    for (size_t i = 0; i < r->o->s.layers; i++) {
        amp_param_desc d = AMP_ZERO;
        float *init = (float *)allocate(padded(&r->o->s, i), sizeof *init);
        layer_init(init, &r->o->s, i, 1);
        d.count = padded(&r->o->s, i);
        d.init = init;
        if (from) {
            d.model = piece_of(r, amp_param_model(from, i));
            d.grad = piece_of(r, amp_param_grad(from, i));
            d.count = d.model.count;
            d.init = init + (size_t)r->rank * d.count;
        }
        must(r->ctx, amp_params_add(p, &d)); /* copies init */
        free(init);
    }
    must(r->ctx, amp_params_commit(p));
    return p;
}
static void run_create(run *r) {
    const options *o = r->o;
    const amp_master master = strcmp(o->masters, "f32") ? AMP_MASTER_SPLIT8 : AMP_MASTER_F32;
    amp_cuda_desc cuda = AMP_ZERO;
    amp_params_desc desc = AMP_ZERO;
    amp_scaler_desc scaling = AMP_ZERO;
    amp_array model[NET_LAYERS], grad[NET_LAYERS];
    CUDA(cudaSetDevice(o->rank ? 0 : r->rank)); /* a process of its own sees one GPU: CUDA_VISIBLE_DEVICES */
    NCCL(ncclCommInitRank(&r->comm, r->ranks, r->id, r->rank));
    if (o->rank == 1) remove(o->id); /* all have read it */
    cuda.device = AMP_NONE;          /* the current one */
    cuda.gemm_flags = o->ordered ? AMP_GEMM_ORDERED : 0;
    must(NULL, amp_cuda_create(&r->ctx, &cuda));
    CUDA(cudaStreamCreateWithFlags(&r->second, cudaStreamNonBlocking));
    for (cudaEvent_t *e : {&r->there, &r->back})
        CUDA(cudaEventCreateWithFlags(e, cudaEventDisableTiming));
    for (size_t i = 0; i < o->s.layers; i++)
        for (cudaEvent_t *e : {&r->made[i], &r->gathered[i]})
            CUDA(cudaEventCreateWithFlags(e, cudaEventDisableTiming));
    desc.grad = strcmp(o->wire, "f16") ? AMP_F32 : AMP_F16;
    desc.label = "params";
    desc.master = r->sharded ? AMP_MASTER_NONE : master;
    desc.moments = r->sharded ? AMP_NONE : 2;
    r->mine = r->copies = make_params(r, &desc, NULL);
    if (r->sharded) {
        desc.master = master;
        desc.moments = 2;
        r->mine = make_params(r, &desc, r->copies);
    }
    scaling.scale = FIRST_SCALE;
    scaling.growth_interval = GROWTH;
    must(r->ctx, amp_scaler_create(&r->scaler, r->ctx, &scaling));
    for (size_t i = 0; i < o->s.layers; i++) {
        model[i] = amp_param_model(r->copies, i);
        grad[i] = amp_param_grad(r->copies, i);
    }
    net_create(&r->n, r->ctx, &o->s, model, grad, r->scaler);
    r->hashes = (uint64_t *)net_alloc(&r->n, (size_t)r->ranks * sizeof(uint64_t), "hashes");
    r->train = digits_to(r->ctx, r->train_set, AMP_F16);
}
static void run_destroy(run *r) {
    must(r->ctx, amp_sync(r->ctx));
    CUDA(cudaStreamSynchronize(r->second));
    digits_free(r->ctx, &r->train);
    net_destroy(&r->n);
    amp_scaler_destroy(r->scaler);
    if (r->sharded) amp_params_destroy(r->mine);
    amp_params_destroy(r->copies);
    for (cudaEvent_t e : {r->there, r->back})
        CUDA(cudaEventDestroy(e));
    for (size_t i = 0; i < r->o->s.layers; i++)
        for (cudaEvent_t e : {r->made[i], r->gathered[i]})
            CUDA(cudaEventDestroy(e));
    CUDA(cudaStreamDestroy(r->second));
    NCCL(ncclCommDestroy(r->comm));
    amp_ctx_destroy(r->ctx);
}

/* ---- the two streams ---- */

static void second_waits(run *r, cudaEvent_t e) { /* for all that is queued on the context's stream */
    CUDA(cudaEventRecord(e, amp_cuda_stream(r->ctx)));
    CUDA(cudaStreamWaitEvent(r->second, e, 0));
}
static void context_waits(run *r) { /* for all that is queued on the second stream */
    CUDA(cudaEventRecord(r->back, r->second));
    CUDA(cudaStreamWaitEvent(amp_cuda_stream(r->ctx), r->back, 0));
}
static void queue_sum(run *r, size_t i) { /* of bucket i, after its backward */
    amp_array g = amp_param_grad(r->copies, i), part = piece_of(r, g);
    ncclDataType_t type = g.dtype == AMP_F32 ? ncclFloat32 : ncclFloat16;
    second_waits(r, r->made[i]);
    if (r->sharded)
        NCCL(ncclReduceScatter(g.data, part.data, part.count, type, ncclSum, r->comm, r->second));
    else
        NCCL(ncclAllReduce(g.data, g.data, g.count, type, ncclSum, r->comm, r->second));
}
static void queue_gather(run *r) { /* sharded: the 16-bit weights that each rank's step has made */
    second_waits(r, r->there);
    for (size_t i = 0; i < r->o->s.layers; i++) {
        amp_array m = amp_param_model(r->copies, i), part = piece_of(r, m);
        NCCL(ncclAllGather(part.data, m.data, part.count, ncclFloat16, r->comm, r->second));
        CUDA(cudaEventRecord(r->gathered[i], r->second));
    }
}
static amp_status reduce_gradients(amp_ctx *ctx, amp_params *p, void *user) { /* they are on their way already */
    (void)ctx, (void)p;
    context_waits((run *)user);
    return AMP_OK;
}
static amp_status reduce_totals(amp_ctx *ctx, amp_totals *t, void *user) { /* t: device memory */
    run *r = (run *)user;
    (void)ctx;
    second_waits(r, r->there);
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(&t->sum, &t->sum, 1, ncclDouble, ncclSum, r->comm, r->second));
    NCCL(ncclAllReduce(&t->nan, &t->nan, 3, ncclUint64, ncclSum, r->comm, r->second)); /* nan, inf, overflow */
    NCCL(ncclGroupEnd());
    context_waits(r);
    return AMP_OK;
}

static result run_with(const options *o, const images *train_set, const images *test, size_t ranks, int sharded);
#include "nccl_check.h" /* --check: is all as the comment says? */

/* ---- a step ---- */

static void set_pixel(run *r, size_t row, float x) { /* waits */
    amp_f16 half = amp_f16_from_f32(x);
    must(r->ctx, amp_copy(r->ctx, (amp_f16 *)r->train.x.data + row * r->o->s.pixels, &half, sizeof half));
}
static void gradients(run *r, size_t at, int looking) {
    const options *o = r->o;
    for (size_t part = 0; part < o->parts; part++, at += o->s.rows) {
        net_input(&r->n, &r->train, at);
        for (size_t i = 0; i < o->s.layers; i++) {
            if (r->sharded) CUDA(cudaStreamWaitEvent(amp_cuda_stream(r->ctx), r->gathered[i], 0));
            net_forward_layer(&r->n, i);
        }
        net_loss(&r->n);
        for (size_t i = o->s.layers; i-- > 0;) {
            r->n.layer[i].accumulate = part > 0;
            net_backward_layer(&r->n, i);
            if (part + 1 < o->parts) continue;
            if (looking) keep_gradients(r, i);
            queue_sum(r, i);
        }
    }
}
/* Waits. Equal on all ranks: 16-bit weights, the scale and its counts, in plain runs masters as well. */
static void compare_ranks(run *r) {
    uint64_t h = HASH_START, all[MAX_RANKS];
    amp_scaler_info info;
    must(r->ctx, amp_scaler_get(r->scaler, &info)); /* waits for the step, ... */
    CUDA(cudaStreamSynchronize(r->second));         /* ... and for the weights */
    r->end.scale = info.scale;
    h = hash_more(h, &info, sizeof info);
    for (size_t i = 0; i < r->o->s.layers; i++) {
        amp_array m = amp_param_model(r->copies, i);
        void *raw = allocate(m.count, sizeof(float));
        must(r->ctx, amp_copy(r->ctx, raw, m.data, m.count * sizeof(amp_f16)));
        h = hash_more(h, raw, layer_count(&r->o->s, i) * sizeof(amp_f16));
        if (!r->sharded) must(r->ctx, amp_param_read(r->mine, i, (float *)raw));
        if (!r->sharded) h = hash_more(h, raw, m.count * sizeof(float));
        free(raw);
    }
    must(r->ctx, amp_copy(r->ctx, r->hashes + r->rank, &h, sizeof h));
    NCCL(ncclAllGather(r->hashes + r->rank, r->hashes, 1, ncclUint64, r->comm, r->second));
    context_waits(r);
    must(r->ctx, amp_copy(r->ctx, all, r->hashes, (size_t)r->ranks * sizeof h));
    for (int q = 1; q < r->ranks; q++)
        if (all[q] != all[0]) fail("after step %lu rank %d has not the bits of rank 0", (unsigned long)r->step, q);
}
static void train(run *r) {
    const options *o = r->o;
    amp_step_desc d = AMP_ZERO;
    amp_step_record record;
    double start = seconds();
    size_t mine = o->parts * o->s.rows, batch = (size_t)r->ranks * mine;
    d.lr = o->lr;
    d.clip_norm = o->clip;
    d.micro_batches = (uint32_t)((size_t)r->ranks * o->parts); /* gradients are sums: now their mean */
    d.reduce_grads_fn = reduce_gradients;
    d.reduce_totals_fn = r->sharded ? reduce_totals : NULL;
    d.user = r;
    if (r->sharded) queue_gather(r); /* the first weights, as the masters' layout rounds them */
    for (r->step = 1; r->step <= o->steps; r->step++) {
        size_t at = r->step % (r->train.count / batch) * batch + (size_t)r->rank * mine, last = at + mine - o->s.rows;
        int bad = r->step == o->bad_step && r->rank == r->ranks - 1;
        int looking = o->check && r->step + 1 == o->bad_step, due = r->step % o->every == 0 || r->step == o->steps;
        if (bad) set_pixel(r, last, INFINITY);
        gradients(r, at, looking);
        if (looking) check_sums(r);
        must(r->ctx, amp_step(r->mine, r->scaler, &d));
        if (r->sharded) queue_gather(r);
        if (bad) set_pixel(r, last, 0.0f);
        if (!due) continue; /* the host only looks now and then: it would wait */
        compare_ranks(r);
        must(r->ctx, amp_step_poll(r->mine, &record));
        r->end.skipped = (size_t)record.skipped;
        if (r->step == o->bad_step) r->end.bad_skipped = record.outcome != AMP_STEPPED;
        r->end.loss = net_read_loss(&r->n);
        if (r->rank == 0 && !o->check)
            show_progress(modes[r->sharded], start, r->step, o->steps, r->end.loss, r->end.scale);
    }
    r->end.seconds = (seconds() - start) / (double)o->steps;
}
static void collect(run *r) { /* accuracy; 16-bit weights, which all ranks have */
    static const char *const labels[BYTES] = {"params.model", "params.grad", "params.master", "params.moments"};
    digits d = digits_to(r->ctx, r->test, AMP_F16);
    size_t at = 0;
    r->end.accuracy = net_accuracy(&r->n, &d, r->test->label);
    digits_free(r->ctx, &d);
    r->end.weights = (float *)allocate(all_weights(&r->o->s), sizeof(float));
    for (int k = 0; k < BYTES; k++)
        r->end.bytes[k] = bytes_of(r->ctx, labels[k]) / (double)all_weights(&r->o->s);
    for (size_t i = 0; i < r->o->s.layers; i++) {
        size_t n = layer_count(&r->o->s, i);
        amp_f16 *half = (amp_f16 *)allocate(n, sizeof *half);
        must(r->ctx, amp_copy(r->ctx, half, amp_param_model(r->copies, i).data, n * sizeof *half));
        r->end.hash = hash_more(r->end.hash, half, n * sizeof *half);
        for (size_t k = 0; k < n; k++)
            r->end.weights[at++] = amp_f32_from_f16(half[k]);
        if (!r->sharded) { /* masters of all, here */
            float *w = (float *)allocate(padded(&r->o->s, i), sizeof *w);
            must(r->ctx, amp_param_read(r->mine, i, w));
            memcpy(r->end.weights + at - n, w, n * sizeof *w);
            r->end.masters = hash_more(r->end.masters, w, n * sizeof *w);
            free(w);
        }
        free(half);
    }
}
static void *rank_main(void *user) {
    run *r = (run *)user;
    run_create(r);
    train(r);
    if (r->rank == 0) collect(r);
    run_destroy(r);
    return NULL;
}

/* ---- ranks: threads here, or this process is one ---- */

static ncclUniqueId shared_id(const options *o) { /* rank 0 makes it and writes it to a file, the others read it */
    ncclUniqueId id;
    if (o->rank <= 1) NCCL(ncclGetUniqueId(&id));
    if (!o->rank) return id;
    char name[512];
    snprintf(name, sizeof name, "%.500s.tmp", o->id);
    FILE *f = o->rank == 1 ? fopen(name, "wb") : NULL;
    if (o->rank == 1 && (!f || fwrite(&id, sizeof id, 1, f) != 1 || fclose(f) || rename(name, o->id)))
        fail("--id %s: cannot be written", o->id);
    while (o->rank > 1 && !(f = fopen(o->id, "rb")))
        usleep(10000);
    if (o->rank > 1 && (fread(&id, sizeof id, 1, f) != 1 || fclose(f))) fail("--id %s: cannot be read", o->id);
    return id;
}
static result run_with(const options *o, const images *train_set, const images *test, size_t ranks, int sharded) {
    static run all[MAX_RANKS];
    pthread_t thread[MAX_RANKS];
    ncclUniqueId id = shared_id(o);
    size_t here = o->rank ? 1 : ranks;
    memset(all, 0, sizeof all);
    pthread_barrier_init(&everyone, NULL, (unsigned)here);
    for (size_t q = 0; q < here; q++) {
        run *r = &all[q];
        r->o = o;
        r->train_set = train_set;
        r->test = test;
        r->id = id;
        r->sharded = sharded;
        r->ranks = (int)(o->rank ? o->of : ranks);
        r->rank = (int)(o->rank ? o->rank - 1 : q);
        r->end.hash = HASH_START;
        if (pthread_create(&thread[q], NULL, rank_main, r)) fail("no thread for rank %lu", (unsigned long)q);
    }
    for (size_t q = 0; q < here; q++)
        pthread_join(thread[q], NULL);
    pthread_barrier_destroy(&everyone);
    for (size_t q = 1; q < here; q++)
        if (all[q].end.bound > all[0].end.bound) all[0].end.bound = all[q].end.bound;
    return all[0].end;
}

int main(int argc, char **argv) {
    options o = AMP_ZERO;
    const option list[] = {
        {"--ranks", OPTION_COUNT, &o.ranks, "threads of this process, each with a GPU (as many as there are)"},
        {"--rank", OPTION_COUNT, &o.rank, "this process is that one, from 1 on, ..."},
        {"--of", OPTION_COUNT, &o.of, "... of this many, each with a GPU; with --mode and --id"},
        {"--id", OPTION_TEXT, &o.id, "file that does not exist yet, on a disk of all ranks"},
        {"--mode", OPTION_TEXT, &o.mode, "plain or sharded: only that one"},
        {"--wire", OPTION_TEXT, &o.wire, "f32 or f16: gradients, and their sums (f32)"},
        {"--masters", OPTION_TEXT, &o.masters, "f32, or split8: a byte beside the model's 16 bits (f32)"},
        {"--steps", OPTION_COUNT, &o.steps, "(600)"},
        {"--rows", OPTION_COUNT, &o.s.rows, "images of a rank in a step (32)"},
        {"--width", OPTION_COUNT, &o.s.width, "of the hidden layers (1024)"},
        {"--layers", OPTION_COUNT, &o.s.layers, "(4)"},
        {"--lr", OPTION_REAL, &o.lr, "learning rate (0.001)"},
        {"--clip", OPTION_REAL, &o.clip, "clips gradients by that norm"},
        {"--data", OPTION_TEXT, &o.data, "folder of IDX files (MNIST ...) instead of the built-in digits"},
        {"--check", OPTION_FLAG, &o.check, "is all as the comment says? With 4 GPUs, in seconds"},
    };
    images train_set, test;
    int devices = 0, wrong = 0;
    o.s.layers = 4;
    o.s.width = 1024;
    o.s.rows = 32;
    o.parts = 1;
    o.steps = 600;
    o.every = 50;
    o.lr = 1e-3f;
    o.wire = "f32";
    o.masters = "f32";
    if (!parse_options(argc, argv, list, sizeof list / sizeof *list, "usage: ranks_nccl [options]")) return 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < (o.check ? 4 : 1)) {
        puts(o.check ? "skipped: no 4 CUDA devices" : "skipped: no CUDA device");
        return 77;
    }
    if (o.of && !o.rank) fail("--of: --rank is needed, too");
    if (o.rank && (o.rank > o.of || !o.id || !o.mode)) fail("--rank: --of, --id and --mode are needed, too");
    if (!o.ranks) o.ranks = o.rank ? o.of : (size_t)devices;
    if (MAX_RANKS % o.ranks)
        fail("--ranks %lu: a power of two is needed, at most %d", (unsigned long)o.ranks, MAX_RANKS);
    one_of("--mode", o.mode, modes[0], modes[1]);
    one_of("--wire", o.wire, "f32", "f16");
    one_of("--masters", o.masters, "f32", "split8");
    load_data(o.data, &o.s, o.check ? 4 : o.ranks, &train_set, &test);
    if (o.check) {
        wrong = check(o, &train_set, &test);
    } else {
        puts("bytes per weight on a rank: model grad master moments, all\n"
             "mode    ranks wire   loss accuracy skip scale model  grad master moments   all  ms/step  weights");
        for (int sharded = 0; sharded < 2; sharded++) {
            if (o.mode && !strcmp(o.mode, modes[!sharded])) continue;
            result r = run_with(&o, &train_set, &test, o.ranks, sharded);
            if (o.rank > 1) continue; /* rank 0 prints */
            printf("%-7s %5lu %4s %6.4f %6.1f %% %4lu 2^%-3.0f %5.2f %5.2f %6.2f %7.2f %5.2f %8.2f  %016llx\n",
                modes[sharded], (unsigned long)o.ranks, o.wire, (double)r.loss, 100 * r.accuracy,
                (unsigned long)r.skipped, log2((double)r.scale), r.bytes[0], r.bytes[1], r.bytes[2], r.bytes[3],
                r.bytes[0] + r.bytes[1] + r.bytes[2] + r.bytes[3], 1e3 * r.seconds, (unsigned long long)r.hash);
            free(r.weights);
        }
    }
    images_free(&train_set);
    images_free(&test);
    return wrong != 0;
}
