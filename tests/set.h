/* set.h - helpers for tests that need a parameter set. */
#ifndef SET_H
#define SET_H

#include "ref.h"

/* A committed set of n owned parameters with these counts, weights about normal(0, 1). amp_params_destroy ends it. */
static inline amp_params *set_new(t_run *t, amp_dtype model, amp_dtype grad, const size_t *counts, size_t n) {
    amp_params *p = NULL;
    amp_params_desc d = AMP_ZERO;
    size_t i, k;
    d.model = model;
    d.grad = grad;
    if (!CHECK_OK(amp_params_create(&p, t->ctx, &d))) return NULL;
    for (i = 0; i < n; i++) {
        amp_param_desc e = AMP_ZERO;
        float *w = (float *)t_host(t, 4 * counts[i]);
        for (k = 0; k < counts[i]; k++)
            w[k] = t_real(t);
        e.count = counts[i];
        e.init = w;
        CHECK_OK(amp_params_add(p, &e));
    }
    CHECK_OK(amp_params_commit(p));
    return p;
}

/* One parameter of n elements, FP16 copy, gradients of the given dtype. */
static inline amp_params *set_one(t_run *t, size_t n, amp_dtype grad) { return set_new(t, AMP_F16, grad, &n, 1); }

/* The bits of an array of context memory in host memory of the test. */
static inline void *set_bits(t_run *t, amp_array a, size_t n) {
    void *host = t_host(t, n * amp_dtype_size(a.dtype));
    t_get(t, host, a.data, n * amp_dtype_size(a.dtype));
    return host;
}

/* Gradient i, all elements: x, rounded to its dtype. */
static inline void set_grad(t_run *t, amp_params *p, size_t i, size_t n, float x) {
    amp_array g = amp_param_grad(p, i);
    void *host = t_host(t, n * amp_dtype_size(g.dtype));
    size_t k;
    for (k = 0; k < n; k++)
        amp_store(host, g.dtype, k, x);
    t_set(t, g.data, host, n * amp_dtype_size(g.dtype));
}

/* One element of gradient i as bits of its dtype. */
static inline void set_grad_bits(t_run *t, amp_params *p, size_t i, size_t k, uint32_t bits) {
    amp_array g = amp_param_grad(p, i);
    size_t size = amp_dtype_size(g.dtype);
    unsigned char b[4];
    ampi_store_pattern(b, g.dtype, 0, bits);
    t_set(t, (char *)g.data + k * size, b, size);
}

/* Inf of a dtype; E4M3, which has none: NaN. */
static inline uint32_t set_inf(amp_dtype t) { return t == AMP_F32 ? 0x7f800000u : ref_format_of(t).over; }
static inline uint32_t set_nan(amp_dtype t) {
    ref_format f;
    if (t == AMP_F32) return 0x7fc00000u;
    f = ref_format_of(t);
    return f.has_inf ? f.over | (1u << (f.mant - 1)) : f.over;
}

/* Every NaN becomes one: the payload of a NaN that arithmetic gives is a GPU's own. */
static inline void set_any_nan(void *x, amp_dtype dtype, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        if (amp_is_nan(amp_load(x, dtype, i))) amp_store(x, dtype, i, ref_f32(0x7fc00000));
}
static inline void set_blob_array(t_run *t, t_blob *b, amp_array a, size_t count, int any_nan) {
    size_t bytes = count * amp_dtype_size(a.dtype);
    void *host = t_host(t, bytes);
    t_get(t, host, a.data, bytes);
    if (any_nan) set_any_nan(host, a.dtype, count);
    t_blob_add(b, host, bytes);
}
static inline void set_blob_of(t_run *t, t_blob *b, amp_params *p, const size_t *counts, size_t n, int any_nan) {
    size_t i, k;
    for (i = 0; i < n; i++) {
        amp_array a[5], low = amp_param_get(p, i).low; /* patterns, no numbers */
        a[0] = amp_param_get(p, i).master;
        a[1] = amp_param_model(p, i);
        a[2] = amp_param_grad(p, i);
        a[3] = amp_param_get(p, i).moment[0];
        a[4] = amp_param_get(p, i).moment[1];
        for (k = 0; k < 5; k++)
            if (a[k].data && amp_dtype_size(a[k].dtype)) set_blob_array(t, b, a[k], counts[i], any_nan);
        if (low.data) set_blob_array(t, b, low, counts[i], 0);
    }
}
/* Codes and scales of parameter i, where its moments have 8 bits. */
static inline void set_blob_codes(t_run *t, t_blob *b, amp_params *p, size_t i) {
    const amp_param q = amp_param_get(p, i);
    size_t k;
    for (k = 0; k < 2; k++)
        if (q.moment_scale[k].data) {
            t_blob_dev(t, b, q.moment[k].data, q.count);
            t_blob_dev(t, b, q.moment_scale[k].data, q.moment_scale[k].count * sizeof(float));
        }
}
/* Everything that a skipped step must not change: masters, model copies, low parts, moments, gradients. */
static inline void set_blob(t_run *t, t_blob *b, amp_params *p, const size_t *counts, size_t n) {
    set_blob_of(t, b, p, counts, n, 0);
}
/* The same of a step that is taken although gradients are NaN. */
static inline void set_blob_any_nan(t_run *t, t_blob *b, amp_params *p, const size_t *counts, size_t n) {
    set_blob_of(t, b, p, counts, n, 1);
}

static inline amp_step_record set_poll(t_run *t, amp_params *p) {
    amp_step_record r;
    memset(&r, 0x77, sizeof r);
    CHECK_OK(amp_sync(t->ctx)); /* polling alone never waits */
    CHECK_OK(amp_step_poll(p, &r));
    return r;
}

static inline amp_scaler_info set_info(t_run *t, amp_scaler *s) {
    amp_scaler_info r;
    memset(&r, 0x77, sizeof r);
    CHECK_OK(amp_scaler_get(s, &r));
    return r;
}

#endif
