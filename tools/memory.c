/* memory.c - makes docs/memory.md: what a run's memory is, from amp_layout_bytes and amp_plan_memory. `make docs`. */
#include "../amp.h"
#include <stdio.h>
#include <stdlib.h>

static const char introduction[] =
    "# Where the memory goes\n"
    "\n"
    "Made by `make docs` from the API (tools/memory.c); `make test` compares.\n"
    "\n"
    "## Bytes per parameter\n"
    "\n"
    "Adam's two moments and the gradient are in it: `amp_layout_bytes`, and for the scales of 8-bit moments\n"
    "`amp_plan_memory`. Gradients have the model's dtype; FP32 gradients beside a 16-bit model are 2 more, "
    "accumulators\n"
    "(`.accumulate`) 4 more, a parameter with `keep_f32` is as in the first row. *Released*: gradients have the memory "
    "of\n"
    "one layer, because each layer steps in backward (`examples/release.c`); of that layer the column has nothing.\n"
    "\n"
    "| weights | `model`, `master` | FP32 moments | BF16 moments | 8-bit moments | 8-bit, released | one FP32 moment | "
    "one, 8-bit | none |\n"
    "|---|---|---|---|---|---|---|---|---|\n";

typedef struct layout {
    const char *text, *fields;
    amp_dtype model;
    amp_master master;
} layout;
static const layout layouts[] = {
    {"FP32", "F32", AMP_F32, AMP_MASTER_F32},
    {"FP32 masters, 16-bit copies", "F16 or BF16, F32", AMP_BF16, AMP_MASTER_F32},
    {"16 + 16 bits, lossless", "F16 or BF16, SPLIT", AMP_BF16, AMP_MASTER_SPLIT},
    {"BF16 + BF16 compensation", "BF16, KAHAN", AMP_BF16, AMP_MASTER_KAHAN},
    {"16 + 8 bits", "F16 or BF16, SPLIT8", AMP_BF16, AMP_MASTER_SPLIT8},
    {"BF16, rounded stochastically", "BF16, NONE", AMP_BF16, AMP_MASTER_NONE},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static const char codes[] =
    "\n"
    "## 8-bit moments\n"
    "\n"
    "`amp_params_desc.moment = AMP_MOMENT_8BIT`: a byte per element and an FP32 scale per 256, the largest "
    "magnitude of\n"
    "the block. The first moment has a sign and 7 bits, s (s + 1/2) / (3/2) with s = (k/127)^2; the second 8 bits,\n"
    "(k/255)^4. Both are rounded stochastically, as BF16 moments are, from one random word, and the update is "
    "computed\n"
    "in FP32 from what they stand for. A second moment that is not 0 does not become 0: it is at least 2^-32 of its\n"
    "block's largest. `amp_param` gives codes (`moment`) and scales (`moment_scale`), `amp_moment_load` reads an "
    "element.\n"
    "They are in state files, step on every optimizer, layout and context with the same bits, and a skipped step "
    "leaves\n"
    "them alone. `amp_report` says where half of the first moments fell to 0 beside the largest of their blocks. A "
    "second\n"
    "moment that overflows stays at the largest number instead of Inf, and `moment_overflow` tells.\n"
    "\n"
    "The code was measured, not chosen: `make bench-moments` trains gpt.c and convnet.c for 1,000 steps with FP32 "
    "moments\n"
    "and keeps others beside them in each code. *Error*: of a step's update, root of the sum of squares, over that of\n"
    "FP32's update; *path*: the same of the sum of all updates; *largest*: an update that FP32 moments keep below 1.6\n"
    "(gpt.c) and 1.2 (convnet.c). Blocks of 256, rounded stochastically, where nothing else is said.\n"
    "\n";

static const char measured[] =
    "| code of the first moment, FP32 second | gpt.c: error | path | largest | convnet.c: error |\n"
    "|---|---|---|---|---|\n"
    "| linear | 0.144 | 0.076 | 118.5 | 0.027 |\n"
    "| square of equal steps | 0.038 | 0.031 | 11.3 | 0.020 |\n"
    "| cube | 0.030 | 0.024 | 1.7 | 0.024 |\n"
    "| fourth power (500 steps of gpt.c) | 0.033 | 0.029 | 1.7 | 0.030 |\n"
    "| **s (s + 1/2) / (3/2), s a square (500 steps)** | 0.029 | 0.024 | 1.7 | 0.024 |\n"
    "| 2x / (1 + x) in equal steps, as FlashOptim | 0.089 | 0.065 | 51.3 | 0.018 |\n"
    "| FP8 E4M3, block scale | 0.074 | 0.061 | 1.6 | 0.066 |\n"
    "| FP8 E5M2, block scale | 0.147 | 0.122 | 1.9 | 0.130 |\n"
    "| dynamic map (decades, arXiv 2110.02861) | 0.042 | 0.034 | 1.6 | 0.033 |\n"
    "\n"
    "| code of the second moment, FP32 first | gpt.c: error | path | largest | convnet.c: error |\n"
    "|---|---|---|---|---|\n"
    "| linear | 868 | 357 | 139710 | 4317 |\n"
    "| square (the root in equal steps, as FlashOptim) | 0.233 | 0.194 | 222.1 | 0.018 |\n"
    "| square, never to 0 | 0.040 | 0.025 | 1.7 | 0.018 |\n"
    "| cube | 0.033 | 0.021 | 1.6 | 0.017 |\n"
    "| **fourth power, never to 0** | 0.033 | 0.021 | 1.6 | 0.020 |\n"
    "| eighth power, never to 0 | 0.045 | 0.029 | 1.7 | 0.028 |\n"
    "| FP8 E4M3 | 0.118 | 0.090 | 88.7 | 0.056 |\n"
    "| its root in FP8 E4M3 | 0.135 | 0.091 | 1.7 | 0.095 |\n"
    "| dynamic map | 0.043 | 0.028 | 1.6 | 0.025 |\n"
    "| dynamic map of the root | 0.048 | 0.031 | 1.6 | 0.027 |\n"
    "\n"
    "What decides is the range: the smallest code of m must not be above the root of v's smallest, or an m that is\n"
    "rounded up meets a v that is not (the square's 11.3); and where v falls to 0 the update is m / eps. Rounded to\n"
    "nearest, the square has half of the error in one step (0.018), but then a momentum of 0.99 or more, and v, do "
    "not\n"
    "move by less than half the distance of two codes.\n"
    "\n"
    "What it does to a run, beside FP32 moments, means of 3 seeds: `build/convnet --mode fp32 --moments 8bit` 99.26 %\n"
    "of the test images, with FP32 99.26 %, with BF16 99.35 %. `build/digits --net both --mode fp32,amp-dynamic,bf16\n"
    "--seeds 3 --moments 8bit`: 95.0, 95.0 and 95.1 %, with FP32 moments 95.0, 95.1 and 95.0; the deep network 97.0, "
    "97.3\n"
    "and 97.0 %, with FP32 moments 97.0, 97.3 and 96.9.\n"
    "On an H100 a step over GPT-2's 124M weights in BF16, SPLIT8, takes 0.98 ms with 8-bit moments and 1.16 ms with "
    "FP32\n"
    "ones: 14 and 26 bytes per weight at 1,772 and 2,784 GB/s (`make bench-gpu PART=step`, after the table of\n"
    "bench/results was made).\n"
    "A small GPT, `build/gpt --mode fp32,bf16 --seeds 3 --layers 2 --width 64 --heads 4 --context 32 --steps 500\n"
    "--moments 8bit`: validation 2.3785 in FP32 and 2.3781 in BF16, with FP32 moments 2.3788 and 2.3790. The same GPT "
    "in\n"
    "BF16 with `--act gelu-fp8`, GELU's aux in FP8: 2.3788, beside 2.3790.\n";

static const char eight[] =
    "\n"
    "## Weights in 24 bits\n"
    "\n"
    "`.master = AMP_MASTER_SPLIT8`: the model copy and a byte. The weight is a number of 24 bits with the "
    "exponents of the\n"
    "copy's format and 8 more bits of mantissa: 15 with BF16, 18 with FP16. An update is computed in FP32 and "
    "rounded to\n"
    "it, to nearest even, or stochastically with `amp_step_desc.stochastic`; what is kept is off by at most half "
    "a step,\n"
    "1/512 of the spacing of model copies (stochastically: less than a step). The model copy is the upper 16 "
    "bits, rounded\n"
    "to nearest, ties away from zero. SPLIT loses nothing, so this is what a byte costs. `make bench-masters` "
    "subtracts\n"
    "each update of 1,000 steps of gpt.c from weights in each layout. *Path*: how far they end from where FP64 "
    "sums end,\n"
    "root of the sum of squares, over that of the way; *lost*: updates that leave all bits as they were. Then "
    "the same with\n"
    "updates 1/256 as large, as a learning rate near 0 makes them.\n"
    "\n"
    "| weights | path | lost | 1/256: path | lost |\n"
    "|---|---|---|---|---|\n"
    "| FP32 | 0.0000 | 0.000 | 0.0006 | 0.002 |\n"
    "| BF16, SPLIT | 0.0000 | 0.000 | 0.0006 | 0.002 |\n"
    "| BF16, SPLIT8, to nearest | 0.0006 | 0.003 | 0.226 | 0.298 |\n"
    "| BF16, SPLIT8, stochastically | 0.0008 | 0.003 | 0.076 | 0.276 |\n"
    "| FP16, SPLIT8, to nearest | 0.0001 | 0.000 | 0.120 | 0.052 |\n"
    "| FP16, SPLIT8, stochastically | 0.0001 | 0.000 | 0.020 | 0.051 |\n"
    "| BF16, KAHAN | 0.0002 | 0.001 | 0.095 | 0.120 |\n"
    "| BF16 alone, to nearest | 0.28 | 0.386 | 1.00 | 0.983 |\n"
    "| BF16 alone, stochastically | 0.091 | 0.353 | 1.81 | 0.968 |\n"
    "\n"
    "To nearest is the default, because updates of the usual size end closer; where the learning rate falls to "
    "nearly 0,\n"
    "`.stochastic` keeps on average what nearest loses. `count_lost` and `amp_report` say when that is. The "
    "small GPT from\n"
    "above, `build/gpt --mode fp32,bf16,split8,split8-stochastic --seeds 3 --layers 2 --width 64 --heads 4 "
    "--context 32\n"
    "--steps 500`: validation 2.3789 with SPLIT8, both ways, 2.3788 with FP32 weights, 2.3790 with BF16 copies "
    "of FP32\n"
    "masters. With `--moments 8bit`, so in 7.03 bytes: 2.3783 to nearest, 2.3784 stochastically.\n"
    "\n"
    "The GPT of `make gpt`, with four layers and 2,000 steps, on an H100: validation, means of 3 seeds, which lie "
    "within\n"
    "0.006 of their mean. `make gpt DEVICE=cuda GPT_ARGS='--mode bf16,split,split8,split8-stochastic --seeds 3 "
    "--moments\n"
    "8bit'` is the last column.\n"
    "\n"
    "| weights | FP32 moments | BF16 | 8 bits |\n"
    "|---|---|---|---|\n"
    "| FP32, BF16 copies | 1.8819 | 1.8820 | 1.8811 |\n"
    "| FP16, SPLIT | 1.8820 | 1.8820 | 1.8810 |\n"
    "| BF16, SPLIT8, to nearest | 1.8817 | 1.8818 | 1.8807 |\n"
    "| BF16, SPLIT8, stochastically | 1.8821 | 1.8818 | 1.8811 |\n"
    "\n"
    "FP16 weights that are given need |w| < 65519.9375. A step that rounds one to 65520 or more (drawn, from "
    "above\n"
    "65519.875 on) leaves Inf in the model copy and sets `weight_overflow` in the step's record; up to 65536 the "
    "weight\n"
    "itself is kept, and a later step can bring it back. A state file of SPLIT8 loads into SPLIT8 only: "
    "`amp_param_read`\n"
    "and `amp_param_write` take weights from one layout to a different one, and round to nearest.\n";

static const char peers[] =
    "\n"
    "## Beside others\n"
    "\n"
    "Bytes per parameter with Adam, the gradient included; theirs from their documents and papers, not measured here.\n"
    "\n"
    "| system | bytes | what is kept |\n"
    "|---|---|---|\n"
    "| PyTorch AMP with FP32 weights | 16, and 2 for the casts of weights in a region | FP32 weights, gradients, "
    "moments |\n"
    "| masters and 16-bit copies, as in Apex O2 or Megatron | 16 to 18 | FP32 masters and moments; gradients in 2 "
    "or 4 |\n"
    "| optimi, BF16 with Kahan summation | 10 to 12 | BF16 weights, compensation, moments |\n"
    "| bitsandbytes, torchao: 8-bit Adam on FP32 weights | about 10 | FP32 weights and gradients, 8-bit moments |\n"
    "| LLMQ | 8 | BF16 weights, FP8 first moment |\n"
    "| FlashOptim (arXiv 2602.23349) | 7; 5 with gradient release | weight and 8-bit remainder, companded 8-bit "
    "moments |\n"
    "| amp, SPLIT and 8-bit moments | 8.03; 6.03 with gradient release | the weight to the last bit, 8-bit moments |\n"
    "| amp, SPLIT8 and 8-bit moments | 7.03; 5.03 with gradient release | the weight in 24 bits, 8-bit moments |\n"
    "| amp, no masters, stochastic, 8-bit moments | 6.03; 4.03 with gradient release | BF16 weights, 8-bit moments "
    "|\n";

static const char advice[] =
    "\n"
    "## When it does not fit\n"
    "\n"
    "In this order, for each costs more than the one before it:\n"
    "\n"
    "1. A 16-bit model (FP16 with a loss scale, or BF16): activations are half. `docs/policy.md`.\n"
    "2. `.master = AMP_MASTER_SPLIT`: 2 bytes per parameter less, and no bit of a weight is lost.\n"
    "3. `.moment = AMP_MOMENT_8BIT`: 6 bytes less; BF16 moments: 4 less.\n"
    "4. `.master = AMP_MASTER_SPLIT8`: 1 byte less than SPLIT; `count_lost` says whether updates are lost.\n"
    "5. The head and its loss in chunks of rows (`amp_linear_cross_entropy`): the logits' memory, often the largest\n"
    "   array, divides by the number of chunks.\n"
    "6. Gradient release (`examples/release.c`): 2 bytes less, 4 in FP32, without clipping by norm, with a static loss "
    "scale\n"
    "   or none. The same bits.\n"
    "7. Recomputation of activations (`examples/recompute.c` plans which), or smaller batches with accumulation.\n"
    "8. Moments and masters in host memory (`examples/offload.cu`), at the price of the bus.\n"
    "9. BF16 weights without masters (`AMP_MASTER_NONE` with `.stochastic`): watch `count_lost` and the validation "
    "loss.\n";

static amp_ctx *ctx;
static amp_policy policy_of(amp_dtype model) {
    amp_policy p;
    amp_policy_desc twin = AMP_ZERO;
    twin.low = model == AMP_F32 ? AMP_F16 : model;
    if (amp_policy_init(ctx, &p, model == AMP_F32 ? AMP_O0 : AMP_O3, &twin) != AMP_OK) exit(1);
    return p;
}
static amp_plan plan_of(const amp_params_desc *d, const amp_plan_layer *layers, size_t n) {
    const amp_policy p = policy_of(d->model);
    amp_plan plan;
    if (amp_plan_memory(&plan, &p, d, layers, n, d->model) != AMP_OK) exit(1);
    return plan;
}
static uint64_t state(const amp_plan *p) { return p->master + p->model + p->grad + p->moments; }

static void bytes_cell(const layout *l, int32_t moments, amp_dtype moment, int released) {
    amp_params_desc d = AMP_ZERO;
    amp_plan_layer one = AMP_ZERO;
    amp_plan plan;
    amp_layout bytes;
    d.model = l->model;
    d.master = l->master;
    d.moments = moments;
    d.moment = moment;
    one.op = AMP_OP_LINEAR;
    one.weight = (uint64_t)1 << 24;
    plan = plan_of(&d, &one, 1);
    bytes = amp_layout_bytes(&d);
    if (moment != AMP_MOMENT_8BIT && state(&plan) != one.weight * bytes.total) exit(1); /* both say the same */
    if (released) plan.grad = 0;
    printf(" %.*f |", moment == AMP_MOMENT_8BIT ? 2 : 0, (double)state(&plan) / (double)one.weight);
}
static void bytes_table(void) {
    int i;
    for (i = 0; i < LAYOUTS; i++) {
        printf("| %s | %s |", layouts[i].text, layouts[i].fields);
        bytes_cell(&layouts[i], 2, AMP_F32, 0);
        bytes_cell(&layouts[i], 2, AMP_BF16, 0);
        bytes_cell(&layouts[i], 2, AMP_MOMENT_8BIT, 0);
        bytes_cell(&layouts[i], 2, AMP_MOMENT_8BIT, 1);
        bytes_cell(&layouts[i], 1, AMP_F32, 0);
        bytes_cell(&layouts[i], 1, AMP_MOMENT_8BIT, 0);
        bytes_cell(&layouts[i], AMP_NONE, AMP_F32, 0);
        printf("\n");
    }
}

/* ---- GPT-2, as examples/gpt.c has it: what backward needs is kept, the head is tied, its loss in 8 chunks ---- */

typedef struct shape {
    const char *name;
    uint64_t layers, heads, width;
} shape;
static const shape shapes[] = {{"124M", 12, 12, 768}, {"355M", 24, 16, 1024}, {"1.5B", 48, 25, 1600}};
enum { CONTEXT = 1024, VOCAB = 50304, PER_LAYER = 8, CHUNKS = 8 };
static amp_plan_layer layer(uint64_t weight, uint64_t bias, uint64_t saved) {
    amp_plan_layer l = AMP_ZERO;
    l.op = AMP_OP_LINEAR;
    l.weight = weight;
    l.bias = bias;
    l.saved = saved;
    return l;
}
static size_t norm(amp_plan_layer *l, uint64_t width, uint64_t rows) { /* gain and bias stay FP32 */
    l[0] = layer(0, width, rows * width);
    l[1] = layer(0, width, 0);
    l[0].saved_f32 = 2 * rows;
    l[0].keep_bias = l[1].keep_bias = 1;
    return 2;
}
static amp_plan gpt(const shape *s, const amp_params_desc *d, uint64_t sequences, int released, uint64_t bits) {
    static amp_plan_layer l[48 * PER_LAYER + 8];
    amp_plan plan;
    const uint64_t c = s->width, rows = sequences * CONTEXT;
    size_t n = 0;
    uint64_t i;
    l[n++] = layer(VOCAB * c, CONTEXT * c, rows * c);
    for (i = 0; i < s->layers; i++) {
        n += norm(l + n, c, rows);
        l[n++] = layer(3 * c * c, 3 * c, rows * (3 * c + s->heads * CONTEXT + c)); /* heads, probabilities, joined */
        l[n++] = layer(c * c, c, rows * c);
        n += norm(l + n, c, rows);
        l[n++] =
            layer(4 * c * c, 4 * c, (bits ? 1 : 2) * rows * 4 * c); /* after GELU, and before it, or so many bits */
        l[n - 1].saved_bits = bits * rows * 4 * c;
        l[n++] = layer(4 * c * c, c, rows * c);
    }
    n += norm(l + n, c, rows);
    l[n++] = layer(0, 0, rows * VOCAB / CHUNKS);
    plan = plan_of(d, l, n);
    if (released) { /* one layer's gradient is there at a time, at most the embedding's */
        plan.total -= plan.grad;
        plan.grad = (VOCAB + CONTEXT) * c * amp_dtype_size(d->model);
        plan.total += plan.grad;
    }
    return plan;
}
typedef struct option {
    const char *text;
    amp_dtype model;
    amp_master master;
    amp_dtype moment;
    int released;
    uint64_t bits; /* kept before the act: 0: GELU's 16 or 32, FP8's 8, ReLU's 1 */
} option;
static const option options[] = {
    {"FP32", AMP_F32, AMP_MASTER_F32, AMP_F32, 0, 0},
    {"BF16, masters", AMP_BF16, AMP_MASTER_F32, AMP_F32, 0, 0},
    {"BF16, SPLIT", AMP_BF16, AMP_MASTER_SPLIT, AMP_F32, 0, 0},
    {"BF16, SPLIT, BF16 moments", AMP_BF16, AMP_MASTER_SPLIT, AMP_BF16, 0, 0},
    {"BF16, SPLIT, 8-bit moments", AMP_BF16, AMP_MASTER_SPLIT, AMP_MOMENT_8BIT, 0, 0},
    {"the same, gradients released", AMP_BF16, AMP_MASTER_SPLIT, AMP_MOMENT_8BIT, 1, 0},
    {"BF16, SPLIT8, 8-bit moments", AMP_BF16, AMP_MASTER_SPLIT8, AMP_MOMENT_8BIT, 0, 0},
    {"the same, gradients released", AMP_BF16, AMP_MASTER_SPLIT8, AMP_MOMENT_8BIT, 1, 0},
    {"BF16 stochastic, 8-bit moments", AMP_BF16, AMP_MASTER_NONE, AMP_MOMENT_8BIT, 0, 0},
    {"the same, gradients released", AMP_BF16, AMP_MASTER_NONE, AMP_MOMENT_8BIT, 1, 0},
    {"the same, GELU's aux in FP8", AMP_BF16, AMP_MASTER_NONE, AMP_MOMENT_8BIT, 1, 8},
    {"the same, ReLU for GELU", AMP_BF16, AMP_MASTER_NONE, AMP_MOMENT_8BIT, 1, 1},
};
static uint64_t most_sequences(const shape *s, const amp_params_desc *d, double bytes, const option *o) {
    uint64_t low = 0, high = 4096;
    while (high - low > 1) {
        const uint64_t mid = (low + high) / 2;
        if ((double)gpt(s, d, mid, o->released, o->bits).total <= bytes)
            low = mid;
        else
            high = mid;
    }
    return low;
}
static void gpt_table(void) {
    static const double sizes[] = {8, 16, 24, 80};
    size_t i, k, j;
    printf(
        "\n## GPT-2\n\n"
        "By `amp_plan_memory`, layers as in examples/gpt.c, which keeps the probabilities of attention; a head with "
        "the\n"
        "embedding's weights, its loss in %d chunks. Model state in GB (10^9): masters, model copies, gradients, "
        "moments.\n"
        "Then how many sequences of %d tokens fit beside it on a card of so many GB, 1 GB of them for the driver, the\n"
        "libraries and scratch; \"-\": not one.\n\n"
        "| | precision | state | GB per sequence | 8 | 16 | 24 | 80 |\n|---|---|---|---|---|---|---|---|\n",
        CHUNKS, CONTEXT);
    for (i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (k = 0; k < sizeof options / sizeof *options; k++) {
            amp_params_desc d = AMP_ZERO;
            amp_plan one, two;
            d.model = options[k].model;
            d.master = options[k].master;
            d.moment = options[k].moment;
            one = gpt(&shapes[i], &d, 1, options[k].released, options[k].bits);
            two = gpt(&shapes[i], &d, 2, options[k].released, options[k].bits);
            printf("| %s | %s | %.2f | %.2f |", shapes[i].name, options[k].text, (double)state(&one) / 1e9,
                (double)(two.saved - one.saved) / 1e9);
            for (j = 0; j < sizeof sizes / sizeof *sizes; j++) {
                const uint64_t fits = most_sequences(&shapes[i], &d, (sizes[j] - 1) * 1e9, &options[k]);
                if (fits)
                    printf(" %llu |", (unsigned long long)fits);
                else
                    printf(" - |");
            }
            printf("\n");
        }
}

/* ---- activations ---- */

static const char activations[] =
    "\n"
    "## Bytes per activation\n"
    "\n"
    "Per element of a layer's output, in its dtype: 4 bytes in FP32, 2 in FP16 and BF16.\n"
    "\n"
    "| layer | kept for backward |\n"
    "|---|---|\n"
    "| linear, without activation | its input, which is the output of the layer before it |\n"
    "| with ReLU, tanh, sigmoid | the same; backward reads y, which the next layer keeps anyway |\n"
    "| with ReLU, `aux` of AMP_MASK | a bit, which backward reads instead of y; less memory where nobody else keeps y: "
    "before pooling, a sum |\n"
    "| with GELU, SiLU | `aux`, the value before the activation: one array more; in FP8 a byte |\n"
    "| dropout | nothing: its numbers are drawn again |\n"
    "| layer norm | its input, and 8 bytes per row |\n"
    "| cross-entropy | the logits, in place of which their gradients are written |\n"
    "| weights in an autocast region | 2 bytes per FP32 parameter, until `amp_autocast_release` |\n";

int main(void) {
    if (amp_cpu_create(&ctx, NULL) != AMP_OK) return 1;
    printf("%s", introduction);
    bytes_table();
    printf("%s%s%s%s%s", activations, codes, measured, eight, peers);
    printf("%s", advice);
    gpt_table();
    amp_ctx_destroy(ctx);
    return 0;
}
