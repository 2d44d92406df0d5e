/* torch_gpt.c - the loss and the gradients of examples/gpt.c's small check, written to standard output for
   tests/torch_programs.py, which computes them with PyTorch's autograd in double. For each run a line of text (mode,
   tied, layers, heads, width, context, batch, vocab, loss, number of parameters); tokens and labels as int32; then for
   each parameter a line with its name, rows and columns, and floats: its weights, its gradients without the scale. */
#define main gpt_main
#include "../examples/gpt.c"
#undef main

static void dump(amp_ctx *ctx, const gpt_mode *m, int tied) {
    static gpt g;
    text random = AMP_ZERO;
    amp_scaler_info now;
    size_t i, k;
    random.vocab = small.vocab;
    gpt_create(&g, ctx, &small, m, tied, 1, 7);
    draw_batch(&g, &random, 7, 0);
    gpt_forward(&g, 1);
    gpt_backward(&g);
    must(ctx, amp_scaler_get(g.scaler, &now));
    printf("%s,%d,%d,%d,%d,%d,%d,%d,%.9g,%d\n", m->name, tied, (int)small.layers, (int)small.heads, (int)small.width,
        (int)small.context, (int)small.batch, (int)small.vocab, gpt_loss(&g), (int)amp_params_count(g.params));
    fwrite(g.host, sizeof *g.host, 2 * g.rows, stdout); /* tokens, labels */
    for (i = 0; i < amp_params_count(g.params); i++) {
        amp_param p = amp_param_get(g.params, i);
        float *w = (float *)allocate(2 * p.count, sizeof *w);
        void *host = allocate(p.count, amp_dtype_size(p.grad.dtype));
        must(ctx, amp_param_read(g.params, i, w));
        must(ctx, amp_copy(ctx, host, p.grad.data, p.count * amp_dtype_size(p.grad.dtype)));
        for (k = 0; k < p.count; k++)
            w[p.count + k] = amp_load(host, p.grad.dtype, k) / now.scale;
        printf("%s,%d,%d\n", p.name, (int)p.rows, (int)p.cols);
        fwrite(w, sizeof *w, 2 * p.count, stdout);
        free(w);
        free(host);
    }
    gpt_destroy(&g);
}
int main(void) {
    amp_ctx *ctx;
    must(NULL, amp_cpu_create(&ctx, NULL));
    dump(ctx, &modes[FP32], 1);
    dump(ctx, &modes[FP32], 0);
    dump(ctx, &modes[FP16_STATIC], 1);
    amp_ctx_destroy(ctx);
    (void)gpt_main;
    return fflush(stdout) != 0;
}
