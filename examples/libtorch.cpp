/* libtorch.cpp - mixed precision for a torch::nn module in C++, where libtorch has autocast but no GradScaler (asked
 * for since 2020: pytorch issue 44710) and no master weights. amp has both, on the module's own tensors.
 *
 *     make build/libtorch && build/libtorch       (needs a python3 that can import torch: its headers, its libraries)
 *
 * The same network learns the built-in digits four times. Its loss is a mean over 65,536 places per image, of which one
 * carries a digit, as in segmentation: that makes gradients small, on purpose, and FP16 rounds most of them to zero.
 *
 *     fp32             an FP32 module; amp is its AdamW
 *     fp16, no scaler  the same in an autocast region, which is all that libtorch offers
 *     fp16 + amp       and with amp's loss scaler
 *     half + amp       a module that was made kHalf: amp has FP32 master weights, and the loss scaler
 *
 * On a GPU: amp_cuda_create with .stream = c10::cuda::getCurrentCUDAStream(), and the module moved to(torch::kCUDA).
 */
#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#ifndef AMP_LINKED /* with it, amp's code comes from another object */
#  define AMP_IMPLEMENTATION
#endif
#include "amp.h"

#define PROGRAM "libtorch"
#include "digits_load.h" /* the images */
#include "program.h"     /* fail, must, claim */

#include <time.h>
#include <unistd.h>

/* What libtorch lacks: adopts the parameters of a module, and their gradients; nothing is copied. Weights of a kHalf or
   kBFloat16 module get FP32 masters, those of an FP32 module are the masters. */
class Trainer {
  public:
    Trainer(amp_ctx *context, torch::nn::Module &module, bool scaled) : ctx(context), weights(trained(module)) {
        amp_params_desc set = AMP_ZERO;
        amp_scaler_desc scaling = AMP_ZERO;
        set.model = dtype(weights.at(0));
        must(ctx, amp_params_create(&params, ctx, set));
        for (torch::Tensor &w : weights) {
            amp_param_desc d = AMP_ZERO;
            if (!w.is_contiguous() || dtype(w) != set.model)
                fail("a parameter is not contiguous, or of a dtype of its own");
            w.mutable_grad() = torch::zeros_like(w); /* backward adds to it, in place */
            d.count = static_cast<size_t>(w.numel());
            d.no_decay = w.dim() < 2;
            if (set.model == AMP_F32)
                d.master = w.data_ptr<float>();
            else
                d.model = amp_arrn(w.data_ptr(), set.model, d.count);
            d.grad = amp_arrn(w.grad().data_ptr(), set.model, d.count);
            must(ctx, amp_params_add(params, d));
        }
        must(ctx, amp_params_commit(params));
        scaling.growth_interval = 100; /* the default of 2000 is for longer runs */
        if (scaled) must(ctx, amp_scaler_create(&scaler, ctx, scaling));
    }
    ~Trainer() {
        amp_scaler_destroy(scaler);
        amp_params_destroy(params);
    }
    Trainer(const Trainer &) = delete;
    Trainer &operator=(const Trainer &) = delete;

    /* The loss to call backward() on. The scale is read where the step leaves it, so a GPU's host would not wait. */
    torch::Tensor scale(const torch::Tensor &loss) const {
        if (!scaler) return loss;
        void *now = const_cast<float *>(amp_scaler_scale_ptr(scaler));
        return loss * torch::from_blob(now, {}, torch::TensorOptions().dtype(torch::kFloat).device(loss.device()));
    }
    /* Checks, unscales, updates or skips, sets the next scale, zeroes the gradients. Not module.zero_grad(), which
       would give the gradients away. */
    void step(float lr) {
        amp_step_desc d = AMP_ZERO;
        d.lr = lr;
        d.weight_decay = 0.01f;
        must(ctx, amp_step(params, scaler, d));
        must(ctx, amp_params_zero_grad(params));
    }
    amp_step_record record() const {
        amp_step_record r;
        must(ctx, amp_step_poll(params, &r));
        return r;
    }
    bool still_adopted() const { /* the module's tensors are those that amp updates */
        for (size_t i = 0; i < weights.size(); i++)
            if (weights[i].data_ptr() != amp_param_model(params, i).data ||
                weights[i].grad().data_ptr() != amp_param_grad(params, i).data)
                return false;
        return true;
    }

  private:
    static std::vector<torch::Tensor> trained(const torch::nn::Module &module) { /* the frozen ones have no gradients */
        std::vector<torch::Tensor> found;
        for (const torch::Tensor &w : module.parameters())
            if (w.requires_grad()) found.push_back(w);
        return found;
    }
    static amp_dtype dtype(const torch::Tensor &t) {
        if (t.scalar_type() == torch::kHalf) return AMP_F16;
        if (t.scalar_type() == torch::kBFloat16) return AMP_BF16;
        if (t.scalar_type() != torch::kFloat) fail("a parameter is neither FP32 nor FP16 nor BF16");
        return AMP_F32;
    }
    amp_ctx *ctx;
    std::vector<torch::Tensor> weights;
    amp_params *params = nullptr;
    amp_scaler *scaler = nullptr;
};

class Autocast { /* FP16 for the operations that PyTorch lists, while it lives; then as it was */
  public:
    explicit Autocast(bool on)
        : was_on(at::autocast::is_autocast_enabled(at::kCPU)), was(at::autocast::get_autocast_dtype(at::kCPU)) {
        at::autocast::set_autocast_enabled(at::kCPU, on);
        at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
    }
    ~Autocast() {
        at::autocast::clear_cache();
        at::autocast::set_autocast_enabled(at::kCPU, was_on);
        at::autocast::set_autocast_dtype(at::kCPU, was);
    }

  private:
    bool was_on;
    at::ScalarType was;
};

/* ==== the experiment ============================================================================================== */

enum { FP32, UNSCALED, SCALED, HALF, MODES };
static const char *const names[MODES] = {"fp32", "fp16, no scaler", "fp16 + amp", "half + amp"};
static const double PLACES = 65536; /* that the loss is a mean over, per image */

struct Result {
    double loss, accuracy;
    amp_step_record record;
    bool adopted;
};

static double seconds() {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static torch::Tensor pixels(const images &m) {
    return torch::from_blob(m.x, {(int64_t)m.count, (int64_t)m.pixels}, torch::kFloat);
}
static torch::Tensor labels(const images &m) {
    return torch::from_blob(m.label, {(int64_t)m.count}, torch::kInt).to(torch::kLong);
}
static Result train(amp_ctx *ctx, int mode, int steps, const images &data, const images &test) {
    torch::manual_seed(1);
    torch::nn::Sequential net(torch::nn::Linear(64, 256), torch::nn::GELU(), torch::nn::Linear(256, 10));
    torch::Tensor x = pixels(data), t = labels(data);
    const double start = seconds();
    Result r = {};
    if (mode == HALF) net->to(torch::kHalf);
    const torch::ScalarType in = mode == HALF ? torch::kHalf : torch::kFloat;
    Trainer trainer(ctx, *net, mode == SCALED || mode == HALF);
    for (int i = 0; i < steps; i++) {
        torch::Tensor rows = torch::randint((int64_t)data.count, {128}), out;
        {
            Autocast region(mode == UNSCALED || mode == SCALED);
            out = net->forward(x.index_select(0, rows).to(in));
        }
        torch::Tensor loss =
            torch::nn::functional::cross_entropy(out.to(torch::kFloat), t.index_select(0, rows)) / PLACES;
        trainer.scale(loss).backward();
        trainer.step(1e-3f);
        r.loss = loss.item<double>() * PLACES;
        if (isatty(2) && i % 20 == 19)
            fprintf(stderr, "\r%-16s %4d/%d  loss %.4f  %3.0f s left  ", names[mode], i + 1, steps, r.loss,
                (seconds() - start) / (i + 1) * ((MODES - mode) * steps - i - 1));
    }
    if (isatty(2)) fprintf(stderr, "\r%60s\r", "");
    torch::NoGradGuard no_gradients;
    r.accuracy = net->forward(pixels(test).to(in)).argmax(1).eq(labels(test)).to(torch::kDouble).mean().item<double>();
    r.record = trainer.record();
    r.adopted = trainer.still_adopted();
    return r;
}

int main(int argc, char **argv) {
    const bool check = argc == 2 && !strcmp(argv[1], "--check");
    const int steps = 300;
    Result r[MODES];
    images data, test;
    amp_ctx *ctx;
    int wrong = 0;
    if (argc > 2 || (argc == 2 && !check)) fail("'%s': the only option is --check", argv[1]);
    must(nullptr, amp_cpu_create(&ctx, nullptr));
    load_builtin(&data, &test);
    printf("%-16s %8s %14s %8s %6s\n", "", "loss", "test accuracy", "skipped", "scale");
    for (int m = 0; m < MODES; m++) {
        r[m] = train(ctx, m, steps, data, test);
        printf("%-16s %8.4f %13.2f%% %8d %6.6g\n", names[m], r[m].loss, 100 * r[m].accuracy, (int)r[m].record.skipped,
            (double)r[m].record.scale);
    }
    for (int m = 0; check && m < MODES; m++) {
        const double ratio = r[m].loss / r[FP32].loss;
        wrong += claim(r[m].adopted, "%s: the module's own tensors were trained", names[m]);
        if (m == UNSCALED)
            wrong += claim(ratio > 2 || ratio != ratio, "%s: %.1f times fp32's loss", names[m], ratio);
        else
            wrong += claim(ratio > 0.9 && ratio < 1.1, "%s: %.3f of fp32's loss", names[m], ratio);
    }
    amp_ctx_destroy(ctx);
    images_free(&data);
    images_free(&test);
    return wrong != 0;
}
