/* train.c - whole training steps on the CPU context: the small twin of bench_gpu's part "train", from the same source
   (train.h).

       train [--out DIR] [--tiny] [--threads N] [--peer COMMAND]
             --peer: for example "python3 bench/peers_gpu.py --device cpu"

   No targets: a CPU computes in FP32, whatever the numbers are stored in. It shows the memory that each format needs,
   and that the model learns. */
#define _GNU_SOURCE
#ifndef AMP_LINKED /* with it, amp's code comes from another object */
#  define AMP_IMPLEMENTATION
#endif
#include "../amp.h"
#include "train.h"

static int threads;
static amp_status open_cpu(amp_ctx **ctx) {
    amp_cpu_desc d = AMP_ZERO;
    d.threads = threads;
    return amp_cpu_create(ctx, &d);
}

int main(int argc, char **argv) {
    static const train_device cpu = {"CPU", open_cpu, NULL, NULL, NULL, 0, 0, 0};
    static const train_shape large[2] = {{"mlp", 256, 512, 4, 0, 0}, {"gpt2", 64, 128, 12, 2048, 64}};
    static const train_shape tiny[2] = {{"mlp", 16, 32, 4, 0, 0}, {"gpt2", 16, 32, 2, 64, 8}};
    const char *peer = NULL;
    double t = now();
    amp_ctx *ctx;
    int i;
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--out") && i + 1 < argc)
            bench.out = argv[++i];
        else if (!strcmp(argv[i], "--peer") && i + 1 < argc)
            peer = argv[++i];
        else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
            threads = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--tiny"))
            bench.tiny = 1;
        else {
            fprintf(stderr, "usage: train [--out DIR] [--tiny] [--threads N] [--peer COMMAND]\n");
            return 2;
        }
    }
    peer_open(peer);
    if (open_cpu(&ctx) != AMP_OK) {
        puts("no context");
        return 1;
    }
    printf("amp %d.%d.%d, %s%s%s\n", AMP_VERSION_MAJOR, AMP_VERSION_MINOR, AMP_VERSION_PATCH, amp_ctx_name(ctx),
        *bench.peer ? "; " : "", bench.peer);
    amp_ctx_destroy(ctx);
    table_begin("train", "");
    head("Whole training steps (ratio: how much faster, or less memory, than the anchor)");
    for (i = 0; i < 2; i++)
        train_rows(&cpu, bench.tiny ? &tiny[i] : &large[i], 10, rounds_of(9));
    peer_close();
    i = table_end();
    printf("%.0f seconds\n", now() - t);
    return i;
}
