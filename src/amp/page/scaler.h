/* ==== >>scaler ===================================================================================================
   Multiply the loss (in practice: the gradient of the logits) by the scale, so that small FP16 gradients survive;
   gradients are divided by it before use. If they overflowed, the step is skipped and the scale backs off. After
   growth_interval good steps in a row it grows. The rule is PyTorch's, without its pitfalls: see docs/semantics.md.
   NULL means a scaler that is OFF, in every function and every desc, so that one loop serves FP16 and BF16. Two
   functions refuse it: amp_scaler_configure, and amp_unscale with a dst, which gets its context from the scaler. */

typedef enum amp_scaler_mode {
    AMP_SCALER_DYNAMIC = 0,
    AMP_SCALER_STATIC, /* the scale changes only by amp_scaler_set_scale; overflowing steps are still skipped */
    AMP_SCALER_OFF     /* as if there were no scaler: scale 1, nothing tested, every step taken. Same as passing NULL */
} AMP_INT amp_scaler_mode;

typedef struct amp_scaler_desc {
    uint32_t _begin;
    amp_scaler_mode mode;
    float scale;             /* initial scale: 0 => 65536 */
    float growth_factor;     /* 0 => 2; else > 1 */
    float backoff_factor;    /* 0 => 0.5; else in (0, 1) */
    int32_t growth_interval; /* 0 => 2000 good updates in a row; AMP_NONE => never grows */
    int32_t hysteresis;      /* 0 => 1: overflows in a row before the scale backs off (Apex's rule) */
    float min_scale;         /* floor of backing off: 0 => 1, or the initial scale if that is smaller */
    float max_scale;         /* ceiling of growing: 0 => none (a growth to Inf is refused) */
    uint32_t dead_after;     /* 0 => 10: overflows in a row at the lowest scale => "dead" */
    uint32_t no_check;       /* 1: overflow is not looked for and never skips (static loss scale of Apex) */
    uint32_t flags;          /* 0 */
    uint64_t _end;
} amp_scaler_desc;

/* amp_status amp_scaler_create(amp_scaler **out, amp_ctx *ctx, const amp_scaler_desc *desc)
   desc NULL => defaults. A scale that is not finite and > 0, or whose reciprocal is not finite (scale <= 2^-128), is
   refused, as are factors outside their range, min_scale above scale, max_scale below it. Class: setup. */
#define amp_scaler_create(out, ctx, ...) \
    amp_scaler_create_checked((out), (ctx), AMP_VERSION, sizeof(amp_scaler_desc), __VA_ARGS__)
AMP_API amp_status amp_scaler_create_checked(
    amp_scaler **out, amp_ctx *ctx, int version, size_t size, const amp_scaler_desc *desc);
AMP_API void amp_scaler_destroy(amp_scaler *s); /* NULL is fine. Class: setup */
/* The number to multiply a loss by, and its reciprocal (for amp_gemm_desc.alpha_ptr: the product then leaves unscaled
   gradients). They are in context memory, always current, and valid until the scaler is destroyed. For a NULL scaler
   both return NULL, and every field for such a pointer reads that as 1. In a kernel of yours: scale = scale_ptr ?
   *scale_ptr : 1. Class: host. */
AMP_API const float *amp_scaler_scale_ptr(const amp_scaler *s);
AMP_API const float *amp_scaler_inverse_ptr(const amp_scaler *s);

typedef struct amp_scaler_info {
    float scale;
    int32_t growth_tracker;     /* good updates in a row since the scale last changed */
    int32_t hysteresis_tracker; /* overflows left before a backoff; may be negative, as in Apex */
    uint32_t dead; /* 1: dead_after overflows in a row could not lower the scale: this run no longer learns */
    uint64_t good, bad, bad_in_a_row;        /* updates without and with overflow */
    uint64_t bad_nan, bad_inf, bad_overflow; /* NaN seen; Inf seen; finite, but not after unscaling: any of them */
} amp_scaler_info;
/* The state of s; of NULL: that of a scaler that is off (scale 1). Class: query. */
AMP_API amp_status amp_scaler_get(amp_scaler *s, amp_scaler_info *out);
/* Sets the scale by hand, as PyTorch's update(new_scale): all sets start anew, what was found is forgotten, and the
   growth tracker stays. Refuses what create refuses. Lowers the floor or raises the ceiling if needed. OFF: the scale
   is for the mode after it. Class: query. */
AMP_API amp_status amp_scaler_set_scale(amp_scaler *s, float scale);
/* Sets what amp_scaler_get gives. Get it, change what you know (PyTorch's state_dict: scale and _growth_tracker),
   and set it. Otherwise as set_scale. dead = 0 also forgets the overflows that led to it. OFF: nothing. Class: query.
   */
AMP_API amp_status amp_scaler_set(amp_scaler *s, const amp_scaler_info *info);
/* Replaces the rule; keeps scale, trackers and counters. desc->scale must be 0. OFF: the scale is 1 until another mode
   restores the previous one (of a scaler that began OFF: create's); to OFF and back, all sets start anew, and STAGE
   inside an accumulation window. Class: query. */
AMP_API amp_status amp_scaler_configure(amp_scaler *s, const amp_scaler_desc *desc);
/* The verbs in PyTorch's order. Each parameter set goes through READY -> UNSCALED -> STEPPED on its own;
   amp_scaler_update starts the next iteration for all sets of the scaler. That is host state, checked when the verb is
   called, not when it runs; a verb out of order returns STAGE. A scaler and its sets may be destroyed in any order.

   amp_scaler_unscale: every gradient g becomes g / scale, in place, computed in FP32 and rounded to g's dtype; Inf, NaN
   and finite numbers that overflow in the multiplication are recorded for the set's next update and for the scaler.
   Optional: an update does it by itself, without writing. STAGE when the set is already unscaled or stepped. OFF:
   nothing. Class: enqueue. */
AMP_API amp_status amp_scaler_unscale(amp_scaler *s, amp_params *p);
/* The same for n arrays outside a parameter set, for loops with their own optimizer. It may be called for several
   lists. dst[i] = grads[i] / scale, rounded to dst[i]'s dtype; dst NULL => in place, and no two overlap. For FP16
   gradients give FP32 arrays: written back as FP16, the small ones that scaling saved would be lost again. Skip your
   update if the report's nan + inf > 0 (overflow in the division counts as inf). Class: enqueue if report is NULL, else
   query. */
AMP_API amp_status amp_unscale(
    amp_scaler *s, const amp_array *dst, amp_finite_report *report, const amp_array *grads, size_t n);
/* The next loss scale, from everything checked since the last update; all sets are READY again. STAGE when nothing was
   checked, or while a window holds the scale. OFF: nothing. Class: enqueue. */
AMP_API amp_status amp_scaler_update(amp_scaler *s);

