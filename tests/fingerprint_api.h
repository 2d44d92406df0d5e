/* fingerprint_api.h - the part of the API that fingerprint.c calls and that may change its form.

   fingerprint.c uses nothing of amp.h whose signature is expected to change except through this file, so that a changed
   API needs edits here alone, and the recorded numbers stay comparable. Every fp_ function takes all that any form of
   the call could need (the context, the set, the scaler), and gives its results the same way for ever. */
#ifndef FINGERPRINT_API_H
#define FINGERPRINT_API_H

#include "../amp.h"
#include "../amp_cuda.cuh"
#include "../examples/recompute_plan.h"

/* ---- names of descs ---- */

typedef amp_linear_desc fp_linear_desc;
typedef amp_xent_desc fp_xent_desc;
typedef amp_state_desc fp_state_desc;
typedef recompute_layer fp_recompute_layer;
typedef recompute_plan fp_recompute_plan;

typedef struct fp_policy_desc { /* the overrides by Apex's names */
    amp_dtype low, cast_model_type, cast_model_outputs;
    int32_t no_cast_model_type, enabled, patch_torch_functions, keep_batchnorm_fp32, master_weights;
    const char *loss_scale;
    float min_loss_scale;
    uint32_t num_losses;
} fp_policy_desc;

/* ---- numbers in descs ---- */

#define FP_HYPER(x)  amp_opt(x) /* beta1, beta2, eps of steps and groups */
#define FP_FACTOR(x) amp_opt(x) /* alpha and beta of products, factor of the loss */

/* ---- the context and its memory ---- */

static inline amp_status fp_cpu_create(amp_ctx **out, amp_simd simd, int32_t threads) {
    amp_cpu_desc d = AMP_ZERO;
    d.simd = simd;
    d.threads = threads;
    return amp_cpu_create(out, &d);
}

static inline amp_status fp_cuda_create(amp_ctx **out) { return amp_cuda_create(out, NULL); }

static inline amp_status fp_alloc(amp_ctx *ctx, void **out, size_t bytes, const char *label) {
    return amp_alloc(ctx, out, bytes, label);
}

static inline amp_ledger_row fp_ledger_find(amp_ctx *ctx, const char *label) {
    amp_ledger_row row = AMP_ZERO;
    amp_ledger(ctx, &row, 1, label);
    return row;
}

/* ---- arrays ---- */

static inline amp_status fp_cast(amp_ctx *ctx, amp_array dst, amp_array src, size_t n, const amp_cast_desc *d) {
    return amp_cast(ctx, dst, src, n, d);
}

static inline amp_status fp_all_finite(amp_ctx *ctx, const amp_array *a, size_t n, amp_finite_report *out) {
    return amp_all_finite(ctx, out, a, n);
}

static inline amp_status fp_histogram_count(amp_ctx *ctx, const amp_array *a, size_t n, amp_histogram *out) {
    return amp_histogram_count(ctx, out, a, n);
}

/* The shares of what is lost, subnormal and overflowing. */
static inline void fp_histogram_fates(const amp_histogram *h, amp_dtype t, float scale, double out[3]) {
    amp_fates fates = amp_histogram_fates(h, t, scale);
    out[0] = fates.lost;
    out[1] = fates.subnormal;
    out[2] = fates.overflow;
}

static inline void fp_histogram_add(amp_histogram *sum, const amp_histogram *more) { amp_histogram_add(sum, more); }

static inline float fp_histogram_suggest_scale(const amp_histogram *h) { return amp_histogram_suggest_scale(h); }

/* ---- parameter sets ---- */

static inline amp_status fp_params_create(amp_params **out, amp_ctx *ctx, const amp_params_desc *d) {
    return amp_params_create(out, ctx, d);
}

static inline const char *fp_param_name(const amp_params *p, size_t i) {
    const char *name = amp_param_get(p, i).name;
    return name ? name : "";
}

static inline amp_array fp_param_master(const amp_params *p, size_t i) { return amp_param_get(p, i).master; }

static inline amp_array fp_param_low(const amp_params *p, size_t i) { return amp_param_get(p, i).low; }

static inline amp_array fp_param_accum(const amp_params *p, size_t i) { return amp_param_get(p, i).accum; }

static inline amp_array fp_param_moment(const amp_params *p, size_t i, int k) { return amp_param_get(p, i).moment[k]; }

static inline amp_status fp_param_read(amp_ctx *ctx, amp_params *p, size_t i, float *dst) {
    (void)ctx;
    return amp_param_read(p, i, dst);
}

static inline amp_status fp_param_write(amp_ctx *ctx, amp_params *p, size_t i, const float *src) {
    (void)ctx;
    return amp_param_write(p, i, src);
}

static inline amp_status fp_master_to_model(amp_ctx *ctx, amp_params *p) {
    (void)ctx;
    return amp_params_master_to_model(p);
}

static inline amp_status fp_model_to_master(amp_ctx *ctx, amp_params *p) {
    (void)ctx;
    return amp_params_model_to_master(p);
}

static inline amp_status fp_grads_to(amp_ctx *ctx, amp_params *p, const amp_array *dst, size_t n) {
    (void)ctx;
    return amp_params_grads_to(p, dst, n);
}

static inline amp_status fp_zero_grad(amp_ctx *ctx, amp_params *p) {
    (void)ctx;
    return amp_params_zero_grad(p);
}

/* ---- the loss scaler ---- */

static inline amp_status fp_scaler_create(amp_scaler **out, amp_ctx *ctx, const amp_scaler_desc *d) {
    return amp_scaler_create(out, ctx, d);
}

static inline amp_status fp_scaler_scale(amp_ctx *ctx, amp_scaler *s, float *out) {
    amp_scaler_info info;
    amp_status st = amp_scaler_get(s, &info);
    (void)ctx;
    if (st == AMP_OK) *out = info.scale;
    return st;
}

static inline amp_status fp_scaler_get(amp_ctx *ctx, amp_scaler *s, amp_scaler_info *out) {
    (void)ctx;
    return amp_scaler_get(s, out);
}

static inline amp_status fp_scaler_set_scale(amp_ctx *ctx, amp_scaler *s, float scale) {
    (void)ctx;
    return amp_scaler_set_scale(s, scale);
}

static inline amp_status fp_scaler_configure(amp_ctx *ctx, amp_scaler *s, const amp_scaler_desc *d) {
    (void)ctx;
    return amp_scaler_configure(s, d);
}

static inline amp_status fp_scaler_unscale(amp_ctx *ctx, amp_scaler *s, amp_params *p) {
    (void)ctx;
    return amp_scaler_unscale(s, p);
}

static inline amp_status fp_scaler_update(amp_ctx *ctx, amp_scaler *s) {
    (void)ctx;
    return amp_scaler_update(s);
}

static inline amp_status fp_unscale(
    amp_ctx *ctx, amp_scaler *s, const amp_array *dst, const amp_array *src, size_t n, amp_finite_report *out) {
    (void)ctx;
    return amp_unscale(s, dst, out, src, n);
}

/* ---- the step ---- */

static inline amp_status fp_step(amp_ctx *ctx, amp_params *p, amp_scaler *s, const amp_step_desc *d) {
    (void)ctx;
    return amp_step(p, s, d);
}

/* The update alone, with the optimizer of the desc. */
static inline amp_status fp_update(amp_ctx *ctx, amp_params *p, amp_scaler *s, const amp_step_desc *d) {
    (void)ctx;
    return amp_update(p, s, d);
}

static inline amp_status fp_inspect(amp_ctx *ctx, amp_params *p, amp_scaler *s, const amp_step_desc *d) {
    (void)ctx;
    return amp_inspect(p, s, d);
}

static inline amp_status fp_accumulate(amp_ctx *ctx, amp_params *p, amp_scaler *s, uint32_t keep_going) {
    (void)ctx;
    return amp_accumulate(p, s, keep_going);
}

static inline amp_status fp_window_begin(amp_ctx *ctx, amp_params *p, amp_scaler *s) {
    (void)ctx;
    return amp_window_begin(p, s);
}

static inline amp_status fp_window_end(amp_ctx *ctx, amp_params *p) {
    (void)ctx;
    return amp_window_end(p);
}

static inline amp_status fp_grad_norm(amp_ctx *ctx, amp_params *p, amp_scaler *s, double *out) {
    (void)ctx;
    return amp_grad_norm(p, s, out);
}

static inline amp_status fp_clip(amp_ctx *ctx, amp_params *p, amp_scaler *s, float max_norm) {
    (void)ctx;
    return amp_clip(p, s, max_norm, 0.0f);
}

static inline amp_status fp_clip_value(amp_ctx *ctx, amp_params *p, amp_scaler *s, float limit) {
    (void)ctx;
    return amp_clip(p, s, 0.0f, limit);
}

static inline amp_status fp_step_poll(amp_ctx *ctx, amp_params *p, amp_step_record *out) {
    (void)ctx;
    return amp_step_poll(p, out);
}

/* ---- policy and scope ---- */

static inline amp_status fp_op_find(const char *name, amp_op *out) { return amp_op_find(out, name); }

static inline amp_status fp_preset_find(const char *name, amp_preset *preset, amp_dtype *low) {
    return amp_preset_find(preset, low, name);
}

static inline size_t fp_policy_list(const amp_policy *p, amp_op_class c, amp_op *out, size_t cap) {
    return amp_policy_list(out, cap, p, c);
}

static inline amp_status fp_policy_init(amp_ctx *ctx, amp_policy *out, amp_preset preset, const fp_policy_desc *d) {
    amp_policy_desc e = AMP_ZERO;
    if (!d) return amp_policy_init(ctx, out, preset, NULL);
    e.low = d->low;
    e.cast_model = d->no_cast_model_type ? AMP_NONE : (int32_t)d->cast_model_type;
    e.cast_outputs = d->cast_model_outputs;
    e.enabled = d->enabled;
    e.autocast = d->patch_torch_functions;
    e.keep_norms = d->keep_batchnorm_fp32;
    e.master_weights = d->master_weights;
    e.loss_scale = d->loss_scale;
    e.min_scale = d->min_loss_scale;
    e.num_losses = d->num_losses;
    return amp_policy_init(ctx, out, preset, &e);
}

static inline amp_status fp_policy_set(amp_ctx *ctx, amp_policy *p, const char *property, const char *value) {
    return amp_policy_set(ctx, p, property, value);
}

static inline amp_status fp_policy_edit(amp_ctx *ctx, amp_policy *p, amp_op op, amp_op_class c) {
    return amp_policy_edit(ctx, p, op, c);
}

static inline amp_status fp_policy_custom(amp_ctx *ctx, amp_policy *p, const amp_op *white, size_t n_white,
    const amp_op *black, size_t n_black, amp_dtype t) {
    return amp_policy_custom(ctx, p, white, n_white, black, n_black, t);
}

static inline amp_status fp_autocast_begin(amp_ctx *ctx, const amp_autocast_desc *d) {
    return amp_autocast_begin(ctx, d);
}

static inline amp_status fp_autocast_end(amp_ctx *ctx) { return amp_autocast_end(ctx); }

static inline amp_status fp_autocast_release(amp_ctx *ctx) { return amp_autocast_release(ctx); }

static inline amp_status fp_autocast_input(amp_ctx *ctx, amp_op op, amp_array in, size_t n, amp_array *out) {
    in.count = n;
    return amp_autocast_input(ctx, out, op, &in, 1);
}

static inline amp_status fp_autocast_inputs(amp_ctx *ctx, amp_op op, const amp_array *in, size_t n, amp_array *out) {
    return amp_autocast_input(ctx, out, op, in, n);
}

static inline amp_dtype fp_autocast_output(amp_ctx *ctx, amp_op op, amp_dtype in) {
    return amp_autocast_output(ctx, op, in);
}

static inline amp_autocast_info fp_autocast_get(amp_ctx *ctx) { return amp_autocast_get(ctx); }

/* ---- products, losses, dropout ---- */

/* The value before act times act's derivative at aux. */
static inline void fp_gemm_backward(amp_gemm_desc *d, amp_act act) {
    d->act = act;
    d->backward = 1;
}

/* The backward of b does the act and the dbias of a. */
static inline void fp_linear_fuse(fp_linear_desc *a, fp_linear_desc *b) {
    a->after = b;
    b->before = a;
}

static inline amp_status fp_gemm(amp_ctx *ctx, const amp_gemm_desc *d) { return amp_gemm(ctx, d); }

/* Is a sentence given? (Not which.) */
static inline amp_status fp_gemm_explain(amp_ctx *ctx, const amp_gemm_desc *d) {
    char text[512];
    return amp_gemm_explain(ctx, text, sizeof text, d);
}

static inline amp_status fp_gemm_tune(amp_ctx *ctx, const amp_gemm_desc *d) { return amp_gemm_tune(ctx, d); }

static inline amp_status fp_linear_forward(amp_ctx *ctx, const fp_linear_desc *d) { return amp_linear_forward(ctx, d); }

static inline amp_status fp_linear_backward(amp_ctx *ctx, const fp_linear_desc *d) {
    return amp_linear_backward(ctx, d);
}

static inline amp_status fp_xent(amp_ctx *ctx, const fp_xent_desc *d) { return amp_softmax_cross_entropy(ctx, d); }

static inline amp_status fp_dropout(amp_ctx *ctx, const amp_dropout_desc *d) { return amp_dropout(ctx, d); }

/* ---- plans, snapshots, state ---- */

static inline amp_status fp_plan_memory(amp_ctx *ctx, const amp_policy *policy, const amp_params_desc *layout,
    const amp_plan_layer *layers, size_t n, amp_dtype in, amp_plan *out) {
    (void)ctx;
    return amp_plan_memory(out, policy, layout, layers, n, in);
}

static inline amp_status fp_recompute_status(recompute_result r) {
    if (r == RECOMPUTE_OK) return AMP_OK;
    return r == RECOMPUTE_INVALID ? AMP_ERR_INVALID_ARG : AMP_ERR_NO_MEMORY;
}

static inline amp_status fp_recompute_optimal(
    amp_ctx *ctx, const fp_recompute_layer *layers, size_t n, uint64_t budget, uint8_t *keep, fp_recompute_plan *out) {
    (void)ctx;
    return fp_recompute_status(recompute_optimal(out, keep, layers, n, budget));
}

static inline amp_status fp_recompute_sqrt(
    amp_ctx *ctx, const fp_recompute_layer *layers, size_t n, uint8_t *keep, fp_recompute_plan *out) {
    (void)ctx;
    return fp_recompute_status(recompute_sqrt(out, keep, layers, n));
}

static inline amp_status fp_recompute_evaluate(
    amp_ctx *ctx, const fp_recompute_layer *layers, size_t n, const uint8_t *keep, fp_recompute_plan *out) {
    (void)ctx;
    return fp_recompute_status(recompute_evaluate(out, layers, n, keep));
}

static inline amp_status fp_snapshot_take(amp_ctx *ctx, amp_snapshot *out, const amp_rng *rng, const amp_scaler *s) {
    return amp_snapshot_take(ctx, out, rng, s);
}

static inline amp_status fp_snapshot_begin(amp_ctx *ctx, const amp_snapshot *snapshot, amp_rng *rng) {
    return amp_snapshot_begin(ctx, rng, snapshot);
}

static inline amp_status fp_state_save(amp_ctx *ctx, const char *path, const fp_state_desc *d) {
    return amp_state_save(ctx, path, d);
}

static inline amp_status fp_state_load(amp_ctx *ctx, const char *path, const fp_state_desc *d) {
    return amp_state_load(ctx, path, d);
}

#endif
