/* ==== >>step =====================================================================================================
   u = clip(g / scale), computed as two FP32 multiplications, then
     SGD    u += wd*w;  buf = first step ? u : momentum*buf + (1-dampening)*u;  w -= lr*buf
            (nesterov: w -= lr * (u + momentum*buf))
     Adam   u += wd*w;  m = b1*m + (1-b1)*u;  v = b2*v + (1-b2)*(u*u); w -= (lr/bc1) * (m / (sqrt(v)/sqrt(bc2) + eps))
     AdamW  w *= 1 - lr*wd, then as Adam without the first term          (bc = 1 - beta^t; t counts taken steps only)
     Lion   w *= 1 - lr*wd;  w -= lr * sign(b1*m + (1-b1)*u);  m = b2*m + (1-b2)*u     (b2 0.99; arXiv 2302.06675)
   Each operation is rounded to FP32 on its own, without fused multiply-add; bc1, bc2, lr/bc1 and 1/sqrt(bc2) are
   computed once per step in double, powers by repeated squaring. They are torch.optim's; Lion is the paper's. */

#define AMP_GROUPS 8 /* parameter groups with hyper-parameters of their own */

typedef struct amp_group {     /* the hyper-parameters of a parameter group; defaults as in amp_step_desc */
    float lr;                  /* learning rate, > 0; AMP_NONE: a rate of 0. Needed unless lr_ptr is given */
    amp_optional beta1, beta2; /* not given => 0.9, 0.999, or what the formula says */
    amp_optional eps;          /* not given => 1e-8; 0: 2^-100, so that a weight without gradients stays */
    float weight_decay;        /* 0 => none; applies to parameters without no_decay */
    float momentum, dampening; /* SGD; 0 => none */
    const float *lr_ptr; /* context memory, read when the step runs (so a captured graph follows it; Inf and NaN skip
                            the step: AMP_SKIPPED_RATE); NULL => lr */
} amp_group;

typedef struct amp_totals { /* what an inspection adds up, in context memory */
    double sum;             /* of squares of unscaled gradients */
    uint64_t nan, inf, overflow;
    uint64_t first_index; /* the first bad element of this set, and its parameter: not to be added up */
    uint32_t first_param, _pad;
} amp_totals;

typedef struct amp_step_desc {
    uint32_t _begin;
    amp_optimizer optimizer; /* 0 => AMP_ADAMW */
    float lr;                /* of group 0, as in amp_group; so are the fields down to momentum, and lr_ptr */
    amp_optional beta1, beta2, eps;
    float weight_decay;
    float momentum, dampening;
    uint32_t nesterov; /* SGD; 1 needs momentum > 0 and dampening 0 (in every group) */
    float clip_norm;   /* 0 => off; else gradients times min(1, clip_norm / (norm + 1e-6)), norm over the whole set. The
                          factor is 0 if one is Inf or NaN and the step is taken anyway (no scaler, or no_check) */
    float clip_value;  /* 0 => off; else clamp each then to [-clip_value, clip_value] */
    uint32_t stochastic; /* 1: model copies (SPLIT8: weights) are rounded stochastically: amp_random(seed, (step << 24)
                            + parameter, element). BF16 moments always: seed + 1, + 2; 8-bit: + 1. Not SPLIT, KAHAN */
    uint32_t micro_batches; /* 0 => 1; N: the gradients are sums of N micro-batches, divide them by scale * N */
    uint32_t unscaled;      /* 1: the gradients carry no loss scale (amp_scaler_inverse_ptr); they are still checked */
    uint32_t n_groups;      /* groups[0] is group 1, and so on; at most AMP_GROUPS - 1. Other groups are as group 0 */
    uint32_t count_lost;    /* N: count updates, and those that change no bit, in 1 of N blocks of 1024; 0: no */
    uint64_t seed;
    const float *lr_ptr;     /* of group 0 */
    const amp_group *groups; /* host array, read when the verb is called */
    /* For several devices. reduce_grads_fn is called before the gradients are read: sum the scaled gradients over the
       ranks there (Inf and NaN stay; STAGE if they were unscaled or accumulated). reduce_totals_fn is called between
       the sums and what is computed from them: for sharded sets, add up sum, nan, inf and overflow of *totals over the
       ranks (with a scaler: STAGE likewise). Both are called while the verb enqueues, on its thread, must queue their
       work on the context's stream, and may call verbs of this context that neither change the set nor measure its
       gradients. If one fails, so does the verb, without a step. */
    amp_status (*reduce_grads_fn)(amp_ctx *ctx, amp_params *p, void *user);
    amp_status (*reduce_totals_fn)(amp_ctx *ctx, amp_totals *totals, void *user);
    void *user;
    uint64_t _end;
} amp_step_desc;

/* One step of one set with one scaler: check, norm, clip, unscale, update, model copies, next loss scale. If a
   gradient, or its unscaled product, is not finite, only the scaler and the counters change. s NULL or OFF: no check,
   every step is taken. Gradients are only read. FP32 gradients: the same bits as the separate verbs in a row. 16-bit
   gradients: more accurate, because amp_scaler_unscale and amp_clip round what they write. The set may be UNSCALED
   by s: then gradients are taken as they are. STAGE: not committed, no parameters, or stepped since the last update.
   With several sets of one scaler call amp_update on each, then amp_scaler_update once: the scale must not move before
   all their gradients have been used. Class: enqueue. */
AMP_API amp_status amp_step(amp_params *p, amp_scaler *s, const amp_step_desc *desc);
/* amp_step without the next loss scale. One scaler may serve several sets, each skipping on its own. Class: enqueue. */
AMP_API amp_status amp_update(amp_params *p, amp_scaler *s, const amp_step_desc *desc);
/* Gradient accumulation over a window of micro-batches, in one of two ways.
   Scaled: let the products add to the gradients (amp_linear_desc.accumulate), call only amp_step at the end, with
   .micro_batches = how many there were, then amp_params_zero_grad. amp_window_begin makes a mistake visible: until the
   set's next step or amp_window_end, changing the scale of s returns STAGE.
   Unscaled (amp_params_desc.accumulate): after each micro-batch amp_accumulate adds g / scale to FP32 accumulators; the
   scale may move between them (amp_scaler_update). The next step uses the accumulators instead of the gradients,
   divided by the number of micro-batches in them or by .micro_batches (1 for the sum), and writes zeros to them. A
   micro-batch that is not finite: with keep_going = 1 it is dropped and the others are averaged; with 0 the window is
   lost. The step of a window that is lost or has none left is skipped. Class: enqueue. */
AMP_API amp_status amp_accumulate(amp_params *p, amp_scaler *s, uint32_t keep_going);
AMP_API amp_status amp_window_begin(amp_params *p, amp_scaler *s); /* Class: host */
AMP_API amp_status amp_window_end(amp_params *p);                  /* Class: host */

/* The first half of a step, for an optimizer of your own: check, norm, clip coefficient, step count and rates go to the
   set's record. Then run your update, then amp_scaler_update. It ends a window whose sums stay: amp_apply makes them 0,
   in a skipped step, too; without it do so yourself (amp_zero of each .accum). Class: enqueue. */
AMP_API amp_status amp_inspect(amp_params *p, amp_scaler *s, const amp_step_desc *desc);
/* The other half. u is an update computed elsewhere (FP32, one number per weight of parameter i). It is applied as ours
   are: not in a skipped step, in the set's layout, rounded and checked for overflow. It may be the set's gradient or
   accumulators, but overlaps nothing else of the parameter. with_rates 0: w = w - u; 1:
   w = w * (1 - lr*wd) - lr * u, with the rates of the parameter's group. Once for each parameter (not checked),
   after amp_inspect and before amp_scaler_update (else STAGE). Class: enqueue. */
AMP_API amp_status amp_apply(amp_params *p, size_t i, amp_array u, uint32_t with_rates);
/* L2 norm of the set's gradients as one vector, in unscaled terms (divided by the scale while the set is READY and s is
   given), of accumulated ones that of their sum: finite if and only if every gradient is. Class: query. */
AMP_API amp_status amp_grad_norm(amp_params *p, amp_scaler *s, double *norm);
/* Clips the gradients in place, in unscaled terms as above: by norm as clip_norm above (not if the norm is not finite),
   then each to [-max_value, max_value] (NaN stays NaN); 0 => off; one must be > 0. Class: enqueue. */
AMP_API amp_status amp_clip(amp_params *p, amp_scaler *s, float max_norm, float max_value);

typedef enum amp_outcome {
    AMP_NO_STEP = 0, /* none so far */
    AMP_STEPPED,
    AMP_SKIPPED_INF,      /* a gradient was Inf (and none NaN) */
    AMP_SKIPPED_NAN,      /* a gradient was NaN */
    AMP_SKIPPED_OVERFLOW, /* gradients finite, but one is not after division by the scale */
    AMP_SKIPPED_WINDOW,   /* an accumulation window that was lost, or all of whose micro-batches were dropped */
    AMP_SKIPPED_RATE      /* gradients were good, but a learning rate at an lr_ptr was Inf or NaN */
} AMP_INT amp_outcome;
AMP_API const char *amp_outcome_name(amp_outcome o); /* "stepped", "skipped: inf", ...; never NULL. Class: host. */
/* lr; lr/bc1; 1 - lr*weight_decay; 1/sqrt(bc2) */
typedef struct amp_rates { float lr, step_size, decay, rsqrt_bc2; } amp_rates;

/* What the last inspection of a set found; also the record that kernels read. */
typedef struct amp_step_record {
    float inv_scale; /* gradients were read as g * inv_scale ... */
    float clip;      /* ... * clip */
    uint32_t skip;   /* 1: an update must change nothing */
    amp_outcome outcome;
    uint64_t nan, inf, overflow; /* elements */
    uint64_t first_index;        /* the first bad element, of parameter first_param; meaningful when skipped */
    uint32_t first_param;
    float scale; /* loss scale of these gradients */
    double norm; /* of the unscaled gradients before clipping; -1 if it was not computed (no scaler and no clip_norm) */
    uint64_t steps, skipped;          /* taken and skipped so far: steps is Adam's t */
    uint32_t window_good, window_bad; /* micro-batches accumulated into the open window, and dropped from it */
    uint32_t window_lost;             /* 1: a bad micro-batch spoilt the whole window */
    uint32_t weight_overflow; /* 1: an update gave a weight that its 16-bit copy cannot hold (it became Inf). Stays 1 */
    uint64_t seed;            /* of the step: how its update rounds, and (stochastic) whether model copies, too */
    uint32_t stochastic, moment_overflow; /* 1: Adam's v is Inf, by a gradient above 1.8e19: no more updates. Stays 1 */
    amp_rates rate[AMP_GROUPS];
} amp_step_record;

/* The record of the set's last inspection that has finished; if a GPU is just writing it, what the previous call gave.
   Never waits: after amp_sync it is the record of the last step enqueued. Class: host. */
AMP_API amp_status amp_step_poll(amp_params *p, amp_step_record *out);
/* Its address in context memory, for kernels of your own optimizer. Class: host. */
AMP_API const amp_step_record *amp_step_record_ptr(const amp_params *p);

typedef struct amp_report_row {      /* what precision does to a run: docs/doctor.md */
    const char *name;                /* of the parameter, whose gradient it is about, or of your array */
    amp_histogram values;            /* as they are: a gradient with its loss scale */
    amp_fates fate[AMP_DTYPE_COUNT]; /* of these values in each format */
    uint64_t updates, lost;          /* of the last step that counted them: see count_lost */
    float ratio;       /* largest |update| / spacing of its weight (F32, SPLIT: FP32's; KAHAN: 16 bits'); huge at 0 */
    int32_t low, high; /* nonzero values are in [2^low, 2^(high + 1)); low -127: also subnormals; 1, 0: no values */
    char advice[140];  /* where there is a problem one sentence, else "" */
} amp_report_row;
/* rows[0]: all parameters; then each (no values if not in use), then arrays[k] as names[k]; cap >= 1 + parameters + n.
   Reads and waits for each gradient: call it every thousandth step. Class: query. Numerics: exact. */
AMP_API amp_status amp_report(amp_params *p, amp_scaler *s, amp_report_row *rows, size_t cap, const amp_array *arrays,
    const char *const *names, size_t n);
/* n rows as a table, advice below it. Like snprintf it returns the length; text NULL: only that. Class: host. */
AMP_API size_t amp_report_text(char *text, size_t bytes, const amp_report_row *rows, size_t n);
typedef struct amp_watch {   /* yours, zero to begin with */
    uint32_t on, seen;       /* on 0, or w NULL: class host, does nothing; 1: query. seen: arrays looked at */
    const char *where;       /* name of the first bad array, after which nothing is looked at; NULL: none so far */
    amp_finite_report found; /* in it */
} amp_watch;
/* Looks for Inf and NaN in a. Call it after each verb of a repeated step: docs/doctor.md. Class: query, or host. */
AMP_API amp_status amp_watch_array(amp_ctx *ctx, amp_watch *w, const char *name, amp_array a);

