/* ---- cross-entropy: what every backend does with the logits of a row, and the factors of loss and gradients ----
   tests: tests/test_products.c */

/* One row of cross-entropy, in this order on every backend, with t(x, max) = 2^24 e^(x - max) of ampi_scalar_exp_term:
     max  = largest logit that is not NaN, at least AMP_XENT_LEAST;  mean = (sum of x) / classes when smoothing
     sum  = sum of t(x, max) as float, by the rule of sums but for this: a part adds up t(x, its own largest), so that
            it is read once; with the largest of its chunk and those before it, that sum is multiplied by e^(old - new)
            in double, and so is what the lanes of an array have added up before
     loss = (1-s) * ((max - x[label]) + log(sum / 2^24))  [+ s * ((max - mean) + log(sum / 2^24))]
     dx   = fma(t, factor * (1 / sum), -factor * (s / classes))
            at the label ((t / sum - (1-s)) - s / classes) * factor
   With weights the loss times w[label] (0 if that is 0, whatever x[label] is), and factor times w[label] for factor.
   Where each class has its own target (targets, weights with smoothing), with q = (s / classes + (1-s) * target) [* w]:
     loss = (sum of (max - x) * q, where q is not 0) + (sum of q) * log(sum / 2^24)
     dx   = fma(t, factor * ((sum of q) / sum), -(q * factor)) */
#define AMP_XENT_LEAST (-3.402823466e38f) /* not -Inf: of a part that is all -Inf the terms are 0 and no NaN */
AMP_INLINE float amp_xent_term(float x, float max) { return ampi_scalar_exp_term(amp_sub(x, max)); }
AMP_INLINE double amp_xent_rescaled(double sum, float max, float larger) {
    return amp_dmul(sum, amp_dmul(amp_widen(amp_xent_term(max, larger)), 1.0 / 16777216.0));
}
AMP_INLINE float amp_xent_loss_one(float smoothing, float max, float target, float mean, float sum) {
    float log_sum = amp_log(amp_mul(sum, 5.9604644775390625e-8f));
    float loss = amp_add(amp_sub(max, target), log_sum);
    if (!ampi_nonzero(smoothing)) return loss;
    loss = amp_mul(amp_sub(1.0f, smoothing), loss);
    return amp_add(loss, amp_mul(smoothing, amp_add(amp_sub(max, mean), log_sum)));
}
/* The label of a row, one of all; negative: left out. */
AMP_INLINE int64_t amp_xent_label(const amp_xent_job *j, size_t row) {
    if (j->label_bytes == 4u) return ((const int32_t *)j->labels)[row];
    if (j->label_bytes == 8u) return ((const int64_t *)j->labels)[row];
    return j->label_bytes ? (int64_t)((const uint8_t *)j->labels)[row] : 0;
}
AMP_INLINE int amp_xent_is_wrong(const amp_xent_job *j, int64_t label) { return (uint64_t)label >= j->classes; }
/* What it counts in the mean. */
AMP_INLINE float amp_xent_row_weight(const amp_xent_job *j, int64_t label) {
    if (label < 0) return 0.0f;
    if (!j->weights.data || !j->labels || amp_xent_is_wrong(j, label)) return 1.0f;
    return amp_load(j->weights.data, j->weights.dtype, (size_t)label);
}
/* Where each class has a target of its own: q, what is added up of it for the loss, and its gradient. */
AMP_INLINE float amp_xent_target(float keep, float share, float target) {
    return amp_add(share, amp_mul(keep, target));
}
AMP_INLINE float amp_xent_miss(float q, float max, float x) {
    return ampi_nonzero(q) ? amp_mul(amp_sub(max, x), q) : q;
}
AMP_INLINE float amp_xent_loss_each(float misses, float q, float sum) {
    return amp_add(misses, amp_mul(q, amp_log(amp_mul(sum, 5.9604644775390625e-8f))));
}
/* What the gradients of a row need. */
typedef struct amp_xent_row {
    float max, sum, target;    /* target: the logit at the label */
    float by, less;            /* for all but the label: fma(t, by, -less) */
    float keep, share, factor; /* for the label */
} amp_xent_row;
/* From max, sum and target to all of it. q: the sum of the targets. The first half is the same for all rows. */
AMP_INLINE void amp_xent_row_begin(amp_xent_row *r, const amp_xent_job *j) {
    r->keep = amp_sub(1.0f, j->smoothing);
    r->share = amp_div(j->smoothing, (float)j->classes);
}
AMP_INLINE void amp_xent_row_factors(amp_xent_row *r, float factor, float q) {
    r->factor = factor;
    r->by = amp_mul(factor, amp_div(q, r->sum));
    r->less = amp_mul(factor, r->share);
}
AMP_INLINE void amp_xent_row_end(amp_xent_row *r, const amp_xent_job *j, float factor, float q) {
    amp_xent_row_begin(r, j);
    amp_xent_row_factors(r, factor, q);
}
AMP_INLINE float amp_xent_grad_at(const amp_xent_row *r, float term) { /* at the label, whose term it is */
    return amp_mul(amp_sub(amp_sub(amp_div(term, r->sum), r->keep), r->share), r->factor);
}
AMP_INLINE float amp_xent_grad_label(const amp_xent_row *r) {
    return amp_xent_grad_at(r, amp_xent_term(r->target, r->max));
}
AMP_INLINE float amp_xent_grad_one(const amp_xent_row *r, float x) {
    return amp_fma(amp_xent_term(x, r->max), r->by, amp_negative(r->less));
}
AMP_INLINE float amp_xent_grad_each(const amp_xent_row *r, float x, float q) {
    return amp_fma(amp_xent_term(x, r->max), r->by, amp_negative(amp_mul(q, r->factor)));
}
/* The factors of the loss and of every gradient; counted: the sum of what the rows count, by the rule of sums. */
AMP_INLINE double amp_xent_weight(const amp_xent_job *j, double counted) {
    return j->sum || !ampi_nonzero(amp_narrow(counted)) ? 1.0 : amp_ddiv(1.0, counted);
}
AMP_INLINE float amp_xent_factor(const amp_xent_job *j, double counted) {
    float scale = j->scaler ? j->scaler->scale : 1.0f;
    return amp_mul(amp_mul(j->factor, scale), amp_narrow(amp_xent_weight(j, counted)));
}

