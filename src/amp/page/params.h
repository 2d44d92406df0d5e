/* ==== >>params ===================================================================================================
   A set holds, for each parameter: the FP32 master weight, a model copy in the model's dtype (which products read), a
   gradient, and the optimizer's moments. Arrays are yours ("adopted") or the set's ("owned"), in any mix. Owned arrays
   of one kind lie in one block, in order, each padded with zeros to 256 bytes: one call all-reduces all gradients of
   one dtype, if all are owned. */

/* How the weights of a 16-bit model copy are kept; the update rule is the same for all. */
typedef enum amp_master {
    AMP_MASTER_F32 = 0, /* FP32 master weights */
    AMP_MASTER_NONE,    /* only the model copy. Loses small updates: for comparison, or BF16 with .stochastic steps */
    AMP_MASTER_SPLIT,   /* the model copy is the top of the master, 16 more bits hold the rest: see amp_split_pack */
    AMP_MASTER_KAHAN,   /* BF16: the copy + a BF16 number, compensated summation: about 16 bits, for comparison */
    AMP_MASTER_SPLIT8   /* SPLIT with 8 bits: amp_split8_pack, docs/memory.md. FP16: |w| > 65519.875 may overflow */
} AMP_INT amp_master;
typedef enum amp_optimizer { AMP_ADAMW = 0, AMP_ADAM, AMP_SGD, AMP_LION, AMP_OPTIMIZER_COUNT } AMP_INT amp_optimizer;

typedef struct amp_params_desc {
    uint32_t _begin;
    amp_dtype model; /* AMP_AUTO => AMP_F16; also AMP_BF16, AMP_F32 (then the master is the model copy) */
    amp_dtype grad;  /* AMP_AUTO => the model's dtype */
    amp_master master;
    int32_t moments;  /* moment arrays kept: 0 => 2 (Adam, AdamW); 1: Lion, SGD with momentum; AMP_NONE for none */
    amp_dtype moment; /* AMP_AUTO => AMP_F32; AMP_BF16, AMP_MOMENT_8BIT: less memory, always rounded stochastically */
    uint32_t accumulate; /* 1: FP32 accumulators for amp_accumulate */
    uint32_t flags;      /* 0 */
    const char *label;   /* of the ledger's rows label.master, .model, .grad ...; at most 23 chars; NULL => "params" */
    uint64_t _end;
} amp_params_desc;

/* amp_status amp_params_create(amp_params **out, amp_ctx *ctx, const amp_params_desc *desc)
   An empty set. desc NULL => defaults. Class: setup. */
#define amp_params_create(out, ctx, ...) \
    amp_params_create_checked((out), (ctx), AMP_VERSION, sizeof(amp_params_desc), __VA_ARGS__)
AMP_API amp_status amp_params_create_checked(
    amp_params **out, amp_ctx *ctx, int version, size_t size, const amp_params_desc *desc);

typedef struct amp_param_desc {
    uint32_t _begin;
    uint32_t keep_f32; /* 1: model copy and gradient stay FP32 (norms, biases); the master is the model copy then */
    const char *name;  /* copied; unique in the set; NULL => "0", "1", ... by index */
    size_t count;      /* elements; 0 => rows * cols */
    size_t rows, cols; /* for optimizers that need a shape; 0, 0 => 1 x count; else rows * cols == count */
    const float *init; /* host array of count floats, copied at once; NULL => zeros, or what adopted arrays hold. Large
                          sets: NULL, and amp_param_write after commit; with FP32 masters it copies once */
    float *master;     /* adopted context memory: holds the weights unless init is given. NULL: owned */
    amp_array model;   /* adopted: gives the weights without init and master; dtype as the set's. data NULL: owned */
    amp_array grad;    /* adopted: any dtype, AMP_AUTO => the set's. data NULL: owned */
    uint32_t no_decay; /* 1: weight decay does not apply */
    uint32_t group;    /* 0 .. AMP_GROUPS - 1: whose hyper-parameters it takes, see amp_step_desc.groups */
    uint64_t _end;
} amp_param_desc;

/* Adds a parameter; its index is the number of parameters added before it. Adopted arrays stay yours.
   Errors: INVALID_ARG (no elements, name twice, dtype; a weight that FP16 under SPLIT, SPLIT8 cannot hold: NaN, |w| >=
   65520, 65519.9375), STAGE after commit, NO_MEMORY; nothing is added then. Class: setup. */
AMP_API amp_status amp_params_add(amp_params *p, const amp_param_desc *desc);
/* Allocates owned arrays, fills masters and model copies (rounded; beyond FP16: Inf), and zeroes owned gradients and
   moments. If it fails, nothing is allocated, and you may try again. INVALID_ARG: adopted arrays overlap. Tied weights
   are one parameter used twice: the second backward adds to its gradient (accumulate, or beta 1). Class: setup. */
AMP_API amp_status amp_params_commit(amp_params *p);
/* Adopted arrays are left alone. NULL is fine. Class: setup. */
AMP_API void amp_params_destroy(amp_params *p);

typedef struct amp_param { /* arrays have count elements; data NULL: the layout has no such array */
    const char *name;      /* valid as long as the set */
    size_t rows, cols, count;
    amp_array model;           /* what products read */
    amp_array grad;            /* see amp_params_desc.grad */
    amp_array master;          /* FP32 weights; an FP32 model copy is the same array */
    amp_array low;             /* remainders (as patterns: SPLIT's of BF16, SPLIT8's of F8E4M3), or compensations */
    amp_array accum;           /* FP32 accumulators */
    amp_array moment[2];       /* momentum or first moment, second moment; of AMP_MOMENT_8BIT a byte per element */
    amp_array moment_scale[2]; /* of AMP_MOMENT_8BIT: FP32, one per 256 elements: see amp_moment_load */
} amp_param;

/* Parameter i; all zero past the end; no arrays before commit. find: index, or amp_params_count(p). Class: host. */
AMP_API amp_param amp_param_get(const amp_params *p, size_t i);
AMP_API amp_array amp_param_model(const amp_params *p, size_t i);
AMP_API amp_array amp_param_grad(const amp_params *p, size_t i);
AMP_API size_t amp_params_count(const amp_params *p);
AMP_API size_t amp_params_find(const amp_params *p, const char *name);
/* The weights of parameter i as floats, whatever the layout; host arrays of its count. Write renews the model copy too,
   not the moments; INVALID_ARG for a weight that SPLIT, SPLIT8 cannot hold (amp_params_add). Class: query. */
AMP_API amp_status amp_param_read(const amp_params *p, size_t i, float *dst);
AMP_API amp_status amp_param_write(amp_params *p, size_t i, const float *src);
/* For all parameters. master_to_model: after you changed FP32 masters. model_to_master: after you changed model copies
   (moments stay; low parts are forgotten). grads_to: dst[i] = gradient i in dst[i].dtype; dst[i].data NULL is skipped;
   n = number of parameters. zero_grad: gradients = 0. Class: enqueue. Numerics: to nearest even. */
AMP_API amp_status amp_params_master_to_model(amp_params *p);
AMP_API amp_status amp_params_model_to_master(amp_params *p);
AMP_API amp_status amp_params_grads_to(amp_params *p, const amp_array *dst, size_t n);
AMP_API amp_status amp_params_zero_grad(amp_params *p);
/* Which parameters have a gradient (PyTorch: not None) from now on: used[i], one per parameter; NULL: all, as after
   commit. The others take no part in steps, checks, norms and clipping: their weights and moments stay, without decay.
   The step count is the set's. Only SGD counts its first step for each parameter, and again if its momentum is all 0
   when it comes back into use. INVALID_ARG if none is used. STAGE between unscale and update and inside an accumulation
   window (there, set the gradient to 0). A graph captured before must not be launched any more. Class: setup. */
AMP_API amp_status amp_params_use(amp_params *p, const uint8_t *used);
/* Sets the number of steps taken, for a run that began elsewhere: Adam's t continues from it, and SGD's buffers count
   as filled unless steps is 0. The rest of the record is as after commit. Class: query. */
AMP_API amp_status amp_params_set_steps(amp_params *p, uint64_t steps);

