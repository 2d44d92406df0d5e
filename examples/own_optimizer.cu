/* own_optimizer.cu - an optimizer that amp does not have, with amp's loss scaling: Yogi, one function for CPU and GPU.
 *
 *     nvcc -O2 -arch=native -I. examples/own_optimizer.cu -lcublasLt -o own_optimizer && ./own_optimizer
 *     c++ -O2 -I. -x c++ examples/own_optimizer.cu -lm -pthread -o own_optimizer && ./own_optimizer    (CPU only)
 *
 * amp_inspect looks at the gradients and leaves a record where the weights are, on the device: whether to skip this
 * step, the factors that unscale and clip, how many steps were taken. The update reads it there, so nothing waits for
 * the host. amp_param_entry_get says how a weight is kept, and the same code works for all layouts. Output with nvcc:
 *   > cpu:  FP32 masters: 400 steps, 5 skipped, loss scale 2^29, mean miss 1 -> 0.000
 *   > cpu:  16 + 16 bits: 400 steps, 5 skipped, loss scale 2^29, mean miss 1 -> 0.000
 *   > cuda: FP32 masters: 400 steps, 5 skipped, loss scale 2^29, mean miss 1 -> 0.000
 *   > cuda: 16 + 16 bits: 400 steps, 5 skipped, loss scale 2^29, mean miss 1 -> 0.000
 *   > weights and moments equal bit for bit
 * Without CUDA the first two lines are all. Without loss scaling (scaling.mode = AMP_SCALER_OFF) the mean miss would
 * end at 0.286.
 */
#define AMP_IMPLEMENTATION
#if defined(__CUDACC__) || defined(AMP_HOSTCUDA) /* nvcc, or the tests' runtime that executes CUDA on a CPU */
#  define WITH_CUDA
#  define AMP_CUDA_IMPLEMENTATION
#  include "amp_cuda.cuh"
#  include <cuda_runtime.h>
#else
#  include "amp.h"
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AMP(call) \
    do { \
        amp_status s_ = (call); \
        const char *why_ = amp_last_error(ctx); /* "" without a context */ \
        if (s_ != AMP_OK) { \
            fprintf(stderr, "%s: %s\n", #call, *why_ ? why_ : amp_strerror(s_)); \
            exit(1); \
        } \
    } while (0)

/* ---- one function per element, run by a loop or by a kernel ------------------------------------------------------ */

#ifdef WITH_CUDA
template <class F> static __global__ void each(F f, size_t n) {
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        f(i);
}
#endif
template <class F> static void for_each(amp_ctx *ctx, size_t n, F f) {
#ifdef WITH_CUDA
    if (strncmp(amp_ctx_name(ctx), "cuda", 4) == 0) {
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3((unsigned)(n < 65536 ? (n + 255) / 256 : 256));
        config.blockDim = dim3(256);
        config.stream = amp_cuda_stream(ctx);
        if (cudaLaunchKernelEx(&config, each<F>, f, n) != cudaSuccess) {
            fputs("a launch failed\n", stderr);
            exit(1);
        }
        return;
    }
#endif
    (void)ctx;
    for (size_t i = 0; i < n; i++)
        f(i);
}

/* ==== the optimizer ==================================================================================================
   Yogi (Zaheer, Reddi, Sachan, Kale, Kumar, "Adaptive methods for nonconvex optimization", NeurIPS 2018): Adam, but the
   second moment moves towards g^2 by an amount that does not depend on how far away it is:
       m = b1 m + (1 - b1) g;   v = v - (1 - b2) sign(v - g^2) g^2;   w = w - lr m / (sqrt(v) + eps)
   v starts as the first g^2 instead of zero, so no bias correction. amp_add and its like are plain + - * / that no
   compiler flag turns into a fused multiply-add: that makes the bits the same everywhere.
   Two ways to the weights. With an array u, the kernel writes m / (sqrt(v) + eps) there, and amp_apply does the rest:
   learning rate, weight decay, layout, rounding, overflow; nothing when the step is skipped. Without, the kernel does
   it in the same pass, but for the decay, which this run does not ask for. */

struct yogi { /* by value to the kernel; what it points to is context memory */
    const amp_step_record *r;
    amp_param_entry
        e; /* weights in any layout, gradients of any dtype; the moments are FP32, as amp_params_create was told */
    float *u;
    uint32_t param;
    float b1, b2, eps;

    AMP_HD void operator()(size_t i) const {
        if (r->skip) return; /* overflow: change nothing. On the device, no round trip */
        float *m = (float *)e.moment[0] + i, *v = (float *)e.moment[1] + i;
        float g = amp_mul(amp_mul(amp_load(e.grad, e.grad_dtype, i), r->inv_scale), r->clip), g2 = amp_mul(g, g);
        if (r->steps == 1)
            *v = g2; /* steps counts taken steps only, this one included */
        else if (*v > g2)
            *v = amp_sub(*v, amp_mul(amp_sub(1.0f, b2), g2));
        else
            *v = amp_add(*v, amp_mul(amp_sub(1.0f, b2), g2));
        *m = amp_add(amp_mul(b1, *m), amp_mul(amp_sub(1.0f, b1), g));
        float way = amp_div(*m, amp_add(amp_sqrt(*v), eps));
        if (u)
            u[i] = way;
        else
            amp_weight_store(&e, i, amp_sub(amp_weight_load(&e, i), amp_mul(r->rate[e.group].lr, way)), r, param);
    }
};

/* In place of amp_step. u: room for the longest parameter, or NULL. */
static void yogi_step(amp_ctx *ctx, amp_params *p, amp_scaler *s, float *u, float lr) {
    amp_step_desc d = AMP_ZERO;
    d.lr = lr;
    d.clip_norm = 1e-4f;
    AMP(amp_inspect(p, s, &d)); /* finite? norm, clip coefficient, step count, rates */
    for (size_t i = 0; i < amp_params_count(p); i++) {
        yogi y = {amp_step_record_ptr(p), amp_param_entry_get(p, i), u, (uint32_t)i, 0.9f, 0.999f, 1e-12f};
        for_each(ctx, y.e.count, y);
        if (u) AMP(amp_apply(p, i, amp_arr(u, AMP_F32), 1));
    }
    AMP(amp_scaler_update(s)); /* the next loss scale */
}

/* ==== something to train =============================================================================================
   Each weight has a target; the loss is half the sum of stiffness * (w - target)^2. Stiffness falls from 1e-4 to 2e-8,
   and with it the gradients: FP16 holds the smallest ones only when they are multiplied by a loss scale. This stands
   for forward and backward. */

struct backward {
    const float *scale; /* the loss scale, read on the device */
    const float *target;
    amp_array w16, g;

    AMP_HD void operator()(size_t i) const {
        float miss = amp_sub(amp_load(w16.data, w16.dtype, i), target[i]);
        float stiff = amp_div(1e-4f, (float)(i + 1));
        amp_store(g.data, g.dtype, i, amp_mul(amp_mul(miss, stiff), *scale));
    }
};

enum { PARAMS = 2, STEPS = 400, MOST = 5000 };
static const size_t count[PARAMS] = {MOST, 777};

typedef struct result { float w[PARAMS][MOST], m[PARAMS][MOST], v[PARAMS][MOST]; } result;

static double mean_miss(const float *w, const float *target, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fabs((double)w[i] - (double)target[i]);
    return sum / (double)n;
}

static void train(amp_ctx *ctx, amp_master master, int apply, result *r) {
    static float target[PARAMS][MOST];
    amp_params_desc layout = AMP_ZERO;
    amp_scaler_desc scaling = AMP_ZERO;
    amp_step_record last;
    amp_scaler_info now;
    amp_params *p;
    amp_scaler *s;
    void *goal[PARAMS], *u = NULL;
    memset(r, 0, sizeof *r);
    layout.master = master;
    AMP(amp_params_create(&p, ctx, &layout)); /* FP16 copies and gradients, two FP32 moment arrays: ours to use */
    for (size_t i = 0; i < PARAMS; i++) {
        amp_param_desc d = AMP_ZERO;
        d.count = count[i];
        AMP(amp_params_add(p, &d));
        for (size_t k = 0; k < count[i]; k++)
            target[i][k] = amp_random(1, i, k) & 1u ? 1.0f : -1.0f;
        AMP(amp_alloc(ctx, &goal[i], count[i] * sizeof(float), NULL));
        AMP(amp_copy(ctx, goal[i], target[i], count[i] * sizeof(float)));
    }
    AMP(amp_params_commit(p));
    scaling.scale = 17179869184.0f; /* 2^34: too high, so that steps are skipped at first */
    AMP(amp_scaler_create(&s, ctx, &scaling));
    if (apply) AMP(amp_alloc(ctx, &u, MOST * sizeof(float), "u"));

    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < PARAMS; i++) {
            backward b = {amp_scaler_scale_ptr(s), (const float *)goal[i], amp_param_model(p, i), amp_param_grad(p, i)};
            for_each(ctx, count[i], b);
        }
        yogi_step(ctx, p, s, (float *)u, 0.02f);
    }
    AMP(amp_sync(ctx));
    AMP(amp_step_poll(p, &last));
    AMP(amp_scaler_get(s, &now));
    for (size_t i = 0; i < PARAMS; i++) {
        AMP(amp_param_read(p, i, r->w[i]));
        AMP(amp_copy(ctx, r->m[i], amp_param_get(p, i).moment[0].data, count[i] * sizeof(float)));
        AMP(amp_copy(ctx, r->v[i], amp_param_get(p, i).moment[1].data, count[i] * sizeof(float)));
        AMP(amp_free(ctx, goal[i]));
    }
    AMP(amp_free(ctx, u));
    printf("%-5s %s: %d steps, %d skipped, loss scale 2^%g, mean miss 1 -> %.3f\n",
        strncmp(amp_ctx_name(ctx), "cuda", 4) ? "cpu:" : "cuda:",
        master == AMP_MASTER_SPLIT ? "16 + 16 bits" : "FP32 masters", STEPS, (int)last.skipped, log2((double)now.scale),
        (mean_miss(r->w[0], target[0], count[0]) + mean_miss(r->w[1], target[1], count[1])) / 2);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

int main(void) {
    static result cpu[2];
    amp_ctx *ctx = NULL;
    AMP(amp_cpu_create(&ctx, NULL));
    train(ctx, AMP_MASTER_F32, 0, &cpu[0]);   /* the kernel writes the weights */
    train(ctx, AMP_MASTER_SPLIT, 1, &cpu[1]); /* amp_apply does */
    amp_ctx_destroy(ctx);
#ifdef WITH_CUDA
    static result cuda[2];
    int equal;
    ctx = NULL;
    if (!amp_cuda_available()) {
        puts("cuda: skipped: no CUDA device");
        return 0;
    }
    AMP(amp_cuda_create(&ctx, NULL));
    train(ctx, AMP_MASTER_F32, 0, &cuda[0]);   /* the kernel writes the weights */
    train(ctx, AMP_MASTER_SPLIT, 1, &cuda[1]); /* amp_apply does */
    amp_ctx_destroy(ctx);
    equal = memcmp(cpu, cuda, sizeof cpu) == 0;
    puts(equal ? "weights and moments equal bit for bit" : "NOT EQUAL");
    return equal ? 0 : 1;
#else
    return 0;
#endif
}
