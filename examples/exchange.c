/* exchange.c - a set's FP32 weights, 16-bit copies and moments in files that other programs read and write.
 *
 *     cc -std=c99 -O2 examples/exchange.c -I. -lm -pthread -o exchange
 *     ./exchange                  takes 10 steps, writes files, and goes on with a set that is made from them
 *     ./exchange STEPS FROM TO    STEPS steps from FROM.weights.safetensors and FROM.moments.safetensors, to TO. ...
 *     ./exchange FILE             what is in a .safetensors or .npy file
 *   > 10 steps, then run.weights.safetensors, run.model.safetensors, run.moments.safetensors and run.npy
 *   > 10 more: the same bits as without the files
 *
 * Tensors have the names that PyTorch gives: "0.weight", and of Adam "0.weight.exp_avg", ".exp_avg_sq" and ".step".
 * docs/coming-from.md shows PyTorch's side. The formats are in tensor_files.h. The loss is |weights - target|^2 / 2: it
 * is the files that matter here.
 */
#define AMP_IMPLEMENTATION
#include "amp.h"
#define PROGRAM "exchange"
#include "tensor_files.h"

/* The shapes are the program's own: a set knows rows and columns. */
static const struct shape {
    const char *name;
    size_t dims, rows, cols;
} shapes[] = {{"0.weight", 2, 16, 8}, {"0.bias", 1, 1, 16}, {"2.weight", 2, 1, 16}, {"2.bias", 1, 1, 1}};
enum { PARAMS = 4, LARGEST = 128 };
static const char *const of_moment[2] = {".exp_avg", ".exp_avg_sq"}; /* of SGD the first is ".momentum_buffer" */

static amp_params *new_set(amp_ctx *ctx) {
    amp_params *p;
    size_t i;
    must(ctx, amp_params_create(&p, ctx, &(amp_params_desc){.grad = AMP_F32}));
    for (i = 0; i < PARAMS; i++) {
        amp_param_desc d = AMP_ZERO;
        d.name = shapes[i].name;
        d.rows = shapes[i].rows;
        d.cols = shapes[i].cols;
        d.keep_f32 = shapes[i].dims == 1;
        must(ctx, amp_params_add(p, &d));
    }
    must(ctx, amp_params_commit(p));
    return p;
}

/* ---- a set to tensors ---- */
static tensor *new_tensor(tensor *t, size_t i, const char *ending, amp_dtype dtype) { /* as parameter i is */
    const struct shape *s = &shapes[i];
    memset(t, 0, sizeof *t);
    snprintf(t->name, sizeof t->name, "%s%s", s->name, ending);
    t->dtype = dtype;
    t->dims = s->dims;
    t->shape[0] = s->dims == 1 ? s->cols : s->rows;
    t->shape[1] = s->cols;
    t->count = s->rows * s->cols;
    t->data = (unsigned char *)allocate(t->count, amp_dtype_size(dtype));
    return t;
}
static void copy_out(amp_ctx *ctx, tensor *t, size_t i, const char *ending, amp_array a) {
    new_tensor(t, i, ending, a.dtype);
    must(ctx, amp_copy(ctx, t->data, a.data, t->count * amp_dtype_size(a.dtype)));
}
typedef struct file_name { char path[256]; } file_name;
static file_name name_of(const char *base, const char *what) {
    file_name f;
    if (snprintf(f.path, sizeof f.path, "%s.%s", base, what) >= (int)sizeof f.path)
        fail("%s: the path is too long", base);
    return f;
}
static void write_and_free(const char *base, const char *what, tensor *t, size_t n) {
    const file_name f = name_of(base, what);
    write_tensors(f.path, t, n);
    while (n--)
        free(t[n].data);
}
static void save(amp_ctx *ctx, amp_params *p, const char *base) {
    tensor t[3 * PARAMS];
    amp_step_record record;
    size_t i, k, n = 0;
    for (i = 0; i < PARAMS; i++)
        must(ctx, amp_param_read(p, i, (float *)new_tensor(&t[i], i, "", AMP_F32)->data)); /* whatever the layout */
    write_and_free(base, "weights.safetensors", t, PARAMS);
    for (i = 0; i < PARAMS; i++)
        copy_out(ctx, &t[i], i, "", amp_param_model(p, i));
    write_and_free(base, "model.safetensors", t, PARAMS);
    copy_out(ctx, t, 0, "", amp_param_model(p, 0));
    write_and_free(base, "npy", t, 1);
    must(ctx, amp_sync(ctx)); /* so that the record is that of the last step */
    must(ctx, amp_step_poll(p, &record));
    for (i = 0; i < PARAMS; i++) {
        float steps = (float)record.steps;
        for (k = 0; k < 2; k++)
            copy_out(ctx, &t[n++], i, of_moment[k], amp_param_get(p, i).moment[k]);
        new_tensor(&t[n], i, ".step", AMP_F32);
        t[n].dims = 0;
        t[n].count = 1;
        memcpy(t[n++].data, &steps, sizeof steps);
    }
    write_and_free(base, "moments.safetensors", t, n);
}

/* ---- tensors to a set ---- */
static tensor_file *open_file(const char *base, const char *what) {
    const file_name f = name_of(base, what);
    return read_tensors(f.path);
}
/* A tensor's numbers in the dtype wanted here; where the file has another one, they are rounded to nearest. */
static void get(tensor_file *f, size_t i, const char *ending, void *out, amp_dtype dtype, size_t count) {
    char name[128];
    const tensor *t;
    size_t k;
    snprintf(name, sizeof name, "%s%s", shapes[i].name, ending);
    t = find_tensor(f, name);
    if (t->count != count || (t->dims == 2 && t->shape[1] != shapes[i].cols))
        fail("%s: %s has another shape than this network", f->path, name);
    for (k = 0; k < count; k++)
        amp_store(out, dtype, k, amp_load(t->data, t->dtype, k));
}
static void load(amp_ctx *ctx, amp_params *p, const char *base) {
    tensor_file *weights = open_file(base, "weights.safetensors"), *moments = open_file(base, "moments.safetensors");
    float x[LARGEST], steps = 0, first = 0;
    size_t i, k;
    for (i = 0; i < PARAMS; i++) {
        amp_param e = amp_param_get(p, i);
        get(weights, i, "", x, AMP_F32, e.count);
        must(ctx, amp_param_write(p, i, x)); /* the 16-bit copy, too */
        for (k = 0; k < 2; k++) {
            get(moments, i, of_moment[k], x, e.moment[k].dtype, e.count);
            must(ctx, amp_copy(ctx, e.moment[k].data, x, e.count * amp_dtype_size(e.moment[k].dtype)));
        }
        get(moments, i, ".step", i ? &steps : &first, AMP_F32, 1);
        if (i && steps != first) fail("%s: the steps differ: a set has one count", moments->path);
    }
    if (!(first >= 0 && first < 9007199254740992.0f)) fail("%s: %g steps", moments->path, (double)first);
    must(ctx, amp_params_set_steps(p, (uint64_t)first));
    free_tensors(weights);
    free_tensors(moments);
}

/* ---- the run ---- */
static void train(amp_ctx *ctx, amp_params *p, int steps) {
    float g[LARGEST];
    size_t i, k;
    while (steps-- > 0) {
        for (i = 0; i < PARAMS; i++) {
            amp_param e = amp_param_get(p, i);
            must(ctx, amp_param_read(p, i, g));
            for (k = 0; k < e.count; k++)
                g[k] -= (float)((7 * k + 3 * i) % 11) / 8 - 0.625f; /* the target */
            must(ctx, amp_copy(ctx, e.grad.data, g, e.count * sizeof *g));
        }
        must(ctx, amp_step(p, NULL, &(amp_step_desc){.optimizer = AMP_ADAM, .lr = 0.01f}));
    }
}
static void list(const char *path) {
    tensor_file *f = read_tensors(path);
    size_t i, k;
    for (i = 0; i < f->n; i++) {
        double sum = 0;
        for (k = 0; k < f->t[i].count; k++)
            sum += (double)amp_load(f->t[i].data, f->t[i].dtype, k);
        printf("%s %s ", *f->t[i].name ? f->t[i].name : "-", amp_dtype_name(f->t[i].dtype));
        print_shape(stdout, &f->t[i], "[]", "");
        printf(" sum %.9g\n", sum);
    }
    free_tensors(f);
}
static void demonstrate(amp_ctx *ctx, amp_params *p) {
    amp_params *q = new_set(ctx);
    train(ctx, p, 10);
    save(ctx, p, "run");
    puts("10 steps, then run.weights.safetensors, run.model.safetensors, run.moments.safetensors and run.npy");
    train(ctx, p, 10);
    load(ctx, q, "run");
    train(ctx, q, 10);
    printf(
        "10 more: %s as without the files\n", weights_hash(ctx, p) == weights_hash(ctx, q) ? "the same bits" : "NOT");
    amp_params_destroy(q);
}
int main(int argc, char **argv) {
    amp_ctx *ctx = open_context("cpu", &(amp_cpu_desc){.threads = 1});
    amp_params *p = new_set(ctx);
    int steps = argc == 4 ? (int)option_number("STEPS", argv[1], 1, 1e9, 1) : 0;
    if (argc == 1)
        demonstrate(ctx, p);
    else if (argc == 2)
        list(argv[1]);
    else if (argc != 4 || steps <= 0)
        fail("nothing, a FILE, or STEPS FROM TO");
    else {
        load(ctx, p, argv[2]);
        train(ctx, p, steps);
        save(ctx, p, argv[3]);
    }
    amp_params_destroy(p);
    amp_ctx_destroy(ctx);
    return 0;
}
