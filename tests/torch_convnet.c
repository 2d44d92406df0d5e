/* torch_convnet.c - the loss and the gradients of examples/convnet.c's network for its first images, written to
   standard output for tests/torch_programs.py. For each mode a line of text (mode, images, height, width, loss,
   number of parameters); images as floats, labels as int32; then for each parameter its number of elements, and
   floats: its weights, its gradients without the scale. */
#define main convnet_main
#include "../examples/convnet.c"
#undef main

static void dump(amp_ctx *ctx, const struct mode *m, const images *data, const images *test) {
    enum { BATCH = 24 };
    static network net;
    amp_scaler_info now;
    float loss;
    size_t i, k;
    network_create(&net, ctx, m, data, BATCH, 3);
    upload(&net, data, test);
    for (i = 0; i < BATCH; i++) {
        int32_t number = (int32_t)i;
        must(ctx, amp_copy(ctx, net.order + i, &number, sizeof number));
    }
    network_input(&net, 0);
    network_forward(&net, 1);
    net.loss.dlogits = net.loss.logits;
    must(ctx, amp_softmax_cross_entropy(ctx, &net.loss));
    network_backward(&net);
    must(ctx, amp_copy(ctx, &loss, net.loss.loss, sizeof loss));
    must(ctx, amp_scaler_get(net.scaler, &now));
    printf("%s,%d,%d,%d,%.9g,%d\n", m->name, BATCH, (int)data->rows, (int)data->cols, (double)loss,
        (int)amp_params_count(net.params));
    fwrite(data->x, sizeof *data->x, BATCH * data->pixels, stdout);
    fwrite(data->label, sizeof *data->label, BATCH, stdout);
    for (i = 0; i < amp_params_count(net.params); i++) {
        amp_param p = amp_param_get(net.params, i);
        float *w = (float *)allocate(2 * p.count, sizeof *w);
        must(ctx, amp_param_read(net.params, i, w));
        for (k = 0; k < p.count; k++) /* on the CPU context memory is host memory */
            w[p.count + k] = amp_load(p.grad.data, p.grad.dtype, k) / now.scale;
        printf("%d\n", (int)p.count);
        fwrite(w, sizeof *w, 2 * p.count, stdout);
        free(w);
    }
    network_destroy(&net);
}
int main(void) {
    images data, test;
    amp_ctx *ctx;
    int m;
    load_builtin(&data, &test);
    must(NULL, amp_cpu_create(&ctx, NULL));
    for (m = 0; m < MODES; m++)
        dump(ctx, &modes[m], &data, &test);
    amp_ctx_destroy(ctx);
    images_free(&data);
    images_free(&test);
    (void)convnet_main;
    return fflush(stdout) != 0;
}
