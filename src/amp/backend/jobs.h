/* ---- a parameter set, as backends see it; then the jobs, which is what a backend is asked to do ----
   tests: tests/test_step.c, tests/test_params.c, tests/test_context.c (a backend of the test's own) */

#define AMP_CHUNK        65536u /* elements per chunk: unit of work and of every reduction */
#define AMP_PART         2048u  /* elements of a part: what is added up in FP32 */
#define AMP_PARTS        (AMP_CHUNK / AMP_PART)
#define AMP_LANES        256u
#define AMP_ROWS         32u /* of a part of a column, whose sums go to this many lanes */
#define AMP_COLUMN_LANES 8u
#define AMP_MOMENTS      ((int)(sizeof((amp_param *)0)->moment / sizeof(amp_array)))

typedef struct amp_param_entry {
    void *master; /* float, or NULL */
    void *model;  /* NULL when the master is the model copy */
    void *low;    /* SPLIT, KAHAN: 16-bit; SPLIT8: a byte; else NULL */
    void *grad;
    float *accum; /* or NULL */
    void *moment[AMP_MOMENTS];
    uint64_t count;
    uint32_t first_chunk; /* index of its first chunk; the others follow */
    uint32_t no_decay;
    amp_dtype model_dtype, grad_dtype, moment_dtype;
    amp_master layout; /* what it really has: F32 also for FP32 model copies */
    uint32_t group;
    uint32_t before; /* steps of the set before this parameter's first one; AMPI_HAS_STEPPED: it has been stepped */
} amp_param_entry;
#define AMPI_HAS_STEPPED 0xffffffffu

typedef struct amp_chunk { uint32_t param, index; } amp_chunk; /* elements [index * AMP_CHUNK, ...) of a parameter */

typedef struct amp_faults { /* what is wrong in one chunk */
    uint32_t nan, inf, overflow;
    uint32_t first; /* offset of the first bad element in the chunk; AMP_CHUNK if none */
} amp_faults;

typedef struct amp_partial { /* what inspection finds in one chunk; a backend uses as much of it as it wants */
    double sum[AMP_PARTS];   /* of squares of unscaled gradients, by the rule of sums */
    amp_faults faults;
} amp_partial;

AMP_INLINE uint64_t ampi_round256(uint64_t n) { return (n + 255u) & ~(uint64_t)255u; }

/* Faults of a chunk, one rule for every backend. A NaN or Inf gradient counts as such; a finite gradient whose product
   overflows, as FP32 or as it is stored, counts as overflow. */
AMP_INLINE amp_faults amp_no_faults(void) {
    amp_faults f = AMP_ZERO;
    f.first = AMP_CHUNK;
    return f;
}
/* Gradient g at offset `at`, whose product with 1 / scale is u. */
AMP_INLINE void amp_count_fault(amp_faults *f, float g, float u, uint32_t at) {
    uint32_t bits = ampi_bits(g) & 0x7fffffffu;
    uint32_t nan = bits > 0x7f800000u, inf = bits == 0x7f800000u;
    uint32_t overflow = bits < 0x7f800000u && !amp_is_finite(u);
    f->nan += nan;
    f->inf += inf;
    f->overflow += overflow;
    if ((nan | inf | overflow) && at < f->first) f->first = at;
}
AMP_INLINE void amp_count_f64(amp_faults *f, uint64_t x, uint32_t at) { /* a double */
    uint32_t fault = ampi_f64_fault(x);
    f->nan += fault == 2u;
    f->inf += fault == 1u;
    if (fault && at < f->first) f->first = at;
}
/* Product u, stored as something whose value is `stored`. */
AMP_INLINE void amp_count_lost(amp_faults *f, float u, float stored, uint32_t at) {
    if (!amp_is_finite(u) || amp_is_finite(stored)) return;
    f->overflow++;
    if (at < f->first) f->first = at;
}
/* Whether amp_count_lost can find anything when gradients of dtype `from` times inv are stored as `to`. */
AMP_INLINE int amp_may_lose(float inv, amp_dtype from, amp_dtype to) {
    return to != AMP_F32 && (to != from || amp_less(1.0f, inv));
}
AMP_INLINE uint32_t amp_found(uint64_t nan, uint64_t inf, uint64_t overflow) { /* AMP_FOUND_* */
    uint32_t found = nan ? AMP_FOUND_NAN : 0u;
    if (inf) found |= AMP_FOUND_INF;
    if (overflow) found |= AMP_FOUND_OVERFLOW;
    return found;
}
AMP_INLINE uint32_t amp_totals_found(const amp_totals *t) { return amp_found(t->nan, t->inf, t->overflow); }

/* The range of a sum of squares, from that of a part: what u is multiplied with before it is squared. 1, or a power of
   two, with which the part is added up again. */
AMP_INLINE float amp_squares_by(float sum) {
    uint32_t s = ampi_bits(sum) & 0x7fffffffu;
    if (s >= 0x7f800000u) return ampi_float((127u - 96u) << 23);
    return ampi_float(s < (127u - 100u) << 23 ? (127u + 96u) << 23 : 127u << 23);
}
AMP_INLINE double amp_squares_sum(float sum, float by) { /* of u, from that of u * by */
    double back = amp_widen(ampi_float((254u << 23) - ampi_bits(by)));
    return amp_dmul(amp_dmul(amp_widen(sum), back), back);
}

/* What the last update of a parameter with .count_lost did, in the blocks that it counts. An update that is NaN is
   none, and a weight that is NaN loses none. Sums and a maximum: the order of elements does not matter. */
#define AMP_COUNT_BLOCK 1024u
AMP_INLINE int amp_is_counted(uint64_t i, uint32_t every) { return (uint32_t)(i / AMP_COUNT_BLOCK) % every == 0; }
typedef struct amp_update_count {
    uint64_t updates; /* weights whose update was not 0 */
    uint64_t lost;    /* those of them that are stored as they were, bit for bit */
    uint32_t ratio;   /* largest |update| / spacing of the weight before it, as float bits; see amp_spacing_of */
    uint32_t _pad;
} amp_update_count;

typedef struct amp_param_table { /* every array in context memory, built once by amp_params_commit */
    amp_param_entry *entries;
    amp_chunk *chunks;
    amp_partial *partials;    /* one per chunk */
    amp_update_count *counts; /* one per parameter; zeros when an update that counts begins */
    amp_totals *totals;
    uint32_t n_entries, n_chunks;
    uint64_t n_elements; /* of all parameters */
} amp_param_table;

/* ---- jobs: arguments checked, defaults filled in, choices made by the front. They point to context memory ---- */

/* Where a device leaves a copy of the record for the host to read without waiting: 32 bits of it in the low half of
   each word, the number of the copy in the high half. It is whole when all numbers are equal, whatever came first. */
typedef struct amp_step_mirror { uint64_t word[sizeof(amp_step_record) / 4u]; } amp_step_mirror;

typedef struct amp_hyper { /* an amp_group, resolved */
    float lr, beta1, beta2, eps, weight_decay, momentum, dampening;
    uint32_t _pad;
    const float *lr_ptr; /* NULL: lr */
} amp_hyper;

/* sum_gradients: u = g * factor, factor = 1 / (scale * micro-batches). Squares of u are added up, and what is not
   finite is counted, into partials and totals. */
typedef struct amp_sum_job {
    amp_param_table table;
    const amp_scaler_state *scale; /* the scale that the gradients carry; NULL: none */
    const amp_step_record *window; /* divide by the number of micro-batches in its window; NULL: by `divide` */
    uint32_t divide;               /* >= 1 */
    uint32_t accum;                /* 1: the accumulators take the place of the gradients */
    uint32_t write;                /* 1: g = u, rounded, and what overflows there is counted, too. Not with accum */
    uint32_t _pad;
} amp_sum_job;

typedef enum amp_purpose {
    AMP_FOR_NORM,       /* norm and clip coefficient; nothing is judged: summed 1, fresh 1, scaler NULL */
    AMP_FOR_UNSCALE,    /* the gradients are written back unscaled: summed 1, fresh 1, sum.write 1, scaler given */
    AMP_FOR_ACCUMULATE, /* a micro-batch joins the window, or is dropped, or spoils it: summed is 1 when it is judged */
    AMP_FOR_STEP        /* a step is taken or skipped. With sum.accum the window is used up */
} AMP_INT amp_purpose;

/* conclude: from totals to the record. A step is judged (not finite: skip, and the scaler is told) when fresh is 1 and
   scaler is given; then summed is 1, too. */
typedef struct amp_inspect_job {
    amp_sum_job sum;
    amp_step_record *record;
    amp_step_mirror *mirror;  /* what the backend's mirror_create gave; NULL for a record that nobody polls */
    amp_scaler_state *scaler; /* or NULL */
    amp_purpose purpose;
    uint32_t summed; /* 1: totals are those of `sum`; 0: nothing was added up */
    /* 1: forget what the record says; 0: these gradients were unscaled before, and that judgement stands */
    uint32_t fresh;
    uint32_t next_scale; /* 1: then the next loss scale */
    uint32_t keep_going; /* AMP_FOR_ACCUMULATE: 1: a bad micro-batch is dropped; 0: it spoils the window */
    float clip_norm;     /* 0: none */
    uint32_t stochastic; /* AMP_FOR_STEP, these three: how the update will round, and its coefficients */
    uint32_t _pad;
    uint64_t seed;
    amp_hyper group[AMP_GROUPS];
} amp_inspect_job;

/* Optimizers. An update is a rule for one weight, at >>lanes: adam_one(w, m, v, u, c) ...; an optimizer is an update
   with its kind of weight decay and its default of beta2. To add one: its name in amp_optimizer (>>params), its formula
   at >>step, its rows here, its rule at >>lanes. */
/* clang-format off */
#define AMP_UPDATE_LIST(X) /* kind, rule, how many moment arrays it works on at this momentum, m before v */ \
    X(AMP_UPDATE_ADAM, adam, 2) \
    X(AMP_UPDATE_SGD,  sgd,  ampi_nonzero(momentum)) \
    X(AMP_UPDATE_LION, lion, 1)
#define AMP_OPTIMIZER_LIST(X) /* name, update, 1: weight decay multiplies w, 0: it is added to u; beta2 */ \
    X(AMP_ADAMW, AMP_UPDATE_ADAM, 1, 0.999f) \
    X(AMP_ADAM,  AMP_UPDATE_ADAM, 0, 0.999f) \
    X(AMP_SGD,   AMP_UPDATE_SGD,  0, 0.999f) \
    X(AMP_LION,  AMP_UPDATE_LION, 1, 0.99f)
#define AMP_X(kind, rule, moments) kind,
typedef enum amp_update_kind { AMP_UPDATE_LIST(AMP_X) AMP_UPDATE_COUNT } AMP_INT amp_update_kind;
#undef AMP_X
/* clang-format on */

AMP_INLINE int amp_moments_of(amp_update_kind update, float momentum) {
    switch (update) {
#define AMP_X(kind, rule, moments) \
case kind: return moments;
        AMP_UPDATE_LIST(AMP_X)
#undef AMP_X
    case AMP_UPDATE_COUNT: break;
    }
    return 0;
}

typedef struct amp_update_job {
    amp_param_table table;
    amp_step_record *record; /* read; weight_overflow and moment_overflow are written, */
    amp_step_mirror *mirror; /* there too */
    amp_update_kind kind;
    uint32_t decoupled; /* 1: weight decay multiplies w */
    uint32_t nesterov;
    float clip_value; /* 0: none */
    uint32_t accum;   /* 1: take the accumulators and write zeros to them */
    amp_dtype moment; /* of every parameter */
    uint32_t count;   /* not 0: lost updates of the weights that amp_is_counted(i, count) go to table.counts */
    uint32_t pairs;   /* 1: parameters have low parts beside their model copies */
    amp_hyper group[AMP_GROUPS];
} amp_update_job;

typedef struct amp_apply_job { /* w = w * decay - lr * u for one parameter, unless the record says skip */
    amp_param_table table;
    amp_step_record *record; /* as in amp_update_job */
    amp_step_mirror *mirror;
    const float *u;
    uint32_t param;
    uint32_t with_rates; /* 1: lr and decay of the parameter's group; 0: lr 1, decay 1 */
    uint32_t accum;      /* 1: then write zeros to its accumulators, also when skipping */
    uint32_t count;      /* as in amp_update_job */
} amp_apply_job;

typedef struct amp_add_job { /* accum += u, unless the record says skip */
    amp_param_table table;
    const amp_step_record *record;
} amp_add_job;

typedef struct amp_clip_job { /* g = clamp(g * record->clip, +-limit * scale), in place */
    amp_param_table table;
    const amp_step_record *record;  /* NULL: no factor */
    const amp_scaler_state *scaler; /* NULL: 1 */
    float limit;                    /* 0: none */
    uint32_t accum;                 /* 1: the accumulators instead of the gradients */
} amp_clip_job;

/* ---- products and losses: jobs   tests: tests/test_products.c, tests/test_fp8.c ---- */

#define AMPI_GEMM_PERMISSIONS (AMP_GEMM_TF32 | AMP_GEMM_REDUCED | AMP_GEMM_F16_SUM | AMP_GEMM_FAST_FP8)
#define AMPI_GEMM_FLAGS       (AMPI_GEMM_PERMISSIONS | AMP_GEMM_EMULATE | AMP_GEMM_ORDERED)

/* A product's job is its desc with everything filled in: m, n and batch > 0; ld and stride complete, a broadcast stride
   0; alpha.value and beta.value, c (d, where the desc had none); flags with the context's, permissions without
   AMP_GEMM_ORDERED only; trans_a, trans_b and backward 0 or 1, backward never with AMP_ACT_NONE;
   bias_per_row 0 without bias and dbias; sum_batches 0 with batch 1; aux AMP_MASK with AMP_RELU only, its rows packed,
   whatever ldd is. data NULL: c is not read (beta is 0; ldc and stride_c are d's), there is no bias, aux or
   dbias. d_dtype and pin are done with: NULL and AMP_AUTO. */
typedef amp_gemm_desc amp_gemm_job;
AMP_INLINE size_t amp_gemm_outputs(const amp_gemm_job *j) { return j->sum_batches ? 1 : j->batch; } /* of batches */
AMP_INLINE size_t amp_gemm_biases(const amp_gemm_job *j) { return j->bias_per_row ? j->m : j->n; }
AMP_INLINE int amp_gemm_masked(const amp_gemm_job *j) { return j->aux.data && j->aux.dtype == AMP_MASK; }
AMP_INLINE size_t amp_gemm_mask_bytes(const amp_gemm_job *j) {
    return amp_gemm_outputs(j) * j->m * ampi_mask_pitch(j->n);
}

typedef struct amp_bias_grad_job { /* dy = act_grad(dy, saved) in place unless act is NONE; then column sums of dy */
    amp_array dy, saved;           /* [rows, cols]; saved: ReLU's may be AMP_MASK */
    amp_array dbias;               /* [cols], or data NULL */
    size_t rows, cols, ld, step;   /* elements between rows, and columns; with an act ld is cols, and step is 1 */
    amp_act act;
    uint32_t accumulate; /* 1: add to dbias */
} amp_bias_grad_job;
AMP_INLINE amp_bias_grad_job amp_gemm_sums(const amp_gemm_job *j) { /* those that a product's dbias gets, of its d */
    amp_bias_grad_job s = AMP_ZERO;
    s.dy = j->d;
    s.dbias = j->dbias;
    s.rows = j->bias_per_row ? j->n : j->m;
    s.cols = amp_gemm_biases(j);
    s.ld = j->bias_per_row ? 1 : j->n;
    s.step = j->bias_per_row ? j->n : 1;
    return s;
}

/* The mean is that of all rows, which labels and row_loss are about; logits, targets and dlogits have `rows` of them,
   from number `first` on. The loss is made with the last. */
typedef struct amp_xent_job { /* rows > 0 */
    size_t all, first, rows, classes, ld;
    amp_array logits, dlogits;
    amp_array targets, weights; /* or data NULL */
    const void *labels;         /* NULL: softmax, or targets */
    float *loss, *row_loss;
    const amp_scaler_state *scaler; /* NULL: scale 1 */
    float factor, smoothing;
    uint32_t sum;
    uint32_t softmax;     /* 1: dlogits gets exp(x - max) / sum * factor */
    uint32_t label_bytes; /* 4 or 8: signed; 1: unsigned */
    uint32_t each;        /* 1: every class has a target of its own: targets, or weights with smoothing */
    size_t padding;       /* columns of dlogits after its classes that are written as zeros: 0, or ld - classes */
} amp_xent_job;

/* Of one tensor, in context memory. Members of 4 bytes: a state file has them as words. */
typedef struct amp_fp8_state { /* 32 bytes: cuBLASLt wants what it reads, inverse and scale, at multiples of 16 */
    float inverse;             /* 1 / scale */
    float amax;                /* of the last cast */
    float window;              /* delayed scaling: the largest of the history */
    uint32_t at;               /* where in the history the next amax goes */
    float scale;               /* of the last cast: q = x * scale */
    uint32_t found;            /* bits of the amax of a cast that is running, and its blocks that are done; else 0 */
    uint32_t ticket;           /* see found */
    uint32_t _pad;
} amp_fp8_state;

typedef struct amp_quantize_job { /* rows, cols > 0 */
    size_t rows, cols;
    amp_array src, dst, dst_t; /* see amp_quantize */
    amp_fp8_state *state;
    float *history; /* delayed scaling: n_history numbers; NULL: current scaling */
    uint32_t n_history;
    uint32_t power_of_two;
    uint32_t keep;
    float most; /* the format's largest finite number / 2^margin */
} amp_quantize_job;

typedef struct amp_activation_job { /* out[i] = act(in[i]), or in[i] * act'(saved[i]) where saved is there; count > 0 */
    amp_array in, saved, out;
    size_t count;
    amp_act act;
    uint32_t _pad;
} amp_activation_job;
typedef amp_dropout_desc amp_dropout_job; /* count > 0, y's dtype known; see amp_dropout_one */

/* ---- products: the math of one element   tests: tests/test_products.c, tests/test_ordered.c ---- */

/* All factors of a sum over k in one, and those of c; read where the product runs. Where those of c give 0, c does not
   count, whatever it is (BLAS's rule; so does cuBLASLt with factors on the device). A sum over k always counts. */
AMP_INLINE float amp_gemm_alpha(const amp_gemm_job *j) {
    float alpha = j->alpha_ptr ? amp_mul(j->alpha.value, *j->alpha_ptr) : j->alpha.value;
    if (j->scale_a) alpha = amp_mul(alpha, *j->scale_a);
    return j->scale_b ? amp_mul(alpha, *j->scale_b) : alpha;
}
AMP_INLINE float amp_gemm_beta(const amp_gemm_job *j) {
    return j->beta_ptr ? amp_mul(j->beta.value, *j->beta_ptr) : j->beta.value;
}

/* The epilogue of a product, each operation rounded once. First from a sum over k to the value before the act; c and
   bias are used where the job has them. */
AMP_INLINE float amp_epilogue_before(const amp_gemm_job *j, float sum, float alpha, float beta, float c, float bias) {
    float v = amp_mul(alpha, sum);
    if (j->c.data && ampi_nonzero(beta)) v = amp_add(v, amp_mul(beta, c));
    return j->bias.data ? amp_add(v, bias) : v;
}
/* A value for an FP8 d: the largest magnitude (float bits) is noted, then it is scaled and saturated. NaN stays NaN. */
AMP_INLINE float amp_epilogue_f8(float v, amp_dtype t, const float *scale, uint32_t *amax) {
    uint32_t most = ampi_decode_any(ampi_format_of(t).maxf, t), size = ampi_bits(v) & 0x7fffffffu;
    if (size > *amax) *amax = size;
    if (scale) v = amp_mul(v, *scale);
    size = ampi_bits(v) & 0x7fffffffu;
    return size > most && size <= 0x7f800000u ? ampi_float(most | (ampi_bits(v) & 0x80000000u)) : v;
}
/* The value before act as aux gets it: FP8 saturates, for derivatives are constant out there. */
AMP_INLINE float amp_epilogue_aux(const amp_gemm_job *j, float v) {
    uint32_t unused = 0;
    return amp_dtype_size(j->aux.dtype) == 1u ? amp_epilogue_f8(v, j->aux.dtype, NULL, &unused) : v;
}

