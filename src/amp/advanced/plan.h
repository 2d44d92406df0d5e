/* ==== >>plan =====================================================================================================
   Where the bytes go, before anything is allocated. Mixed precision halves activations, not model state: FP32 Adam has
   4 + 4 + 4 + 4 = 16 bytes per parameter, FP16 copies and gradients with FP32 masters 2 + 2 + 4 + 8 = 16.
   tests: tests/test_memory.c */

/* Bytes per parameter of a layout (of a parameter without keep_f32), by ledger class; _end and label of desc are not
   read. NULL desc => defaults. All zero if there is no such layout. Scales of AMP_MOMENT_8BIT, 1/64 byte per
   moment, are not in it, but in amp_plan_memory. Class: host. */
typedef struct amp_layout { uint32_t master, model, grad, moments, accum, total; } amp_layout;
AMP_API amp_layout amp_layout_bytes(const amp_params_desc *desc);

typedef struct amp_plan_layer {
    const char *name;      /* for your table; NULL is fine */
    amp_op op;             /* decides dtypes: AMP_OP_LINEAR, AMP_OP_LAYER_NORM, ... */
    uint32_t keep_bias;    /* 1: the bias has keep_f32 */
    uint64_t weight, bias; /* elements; each that is not 0 is one parameter */
    uint64_t saved;        /* elements that backward needs, in the dtype of op's result: y, aux, ... */
    uint64_t saved_f32;    /* elements of 4 bytes under any policy: statistics, labels */
    uint64_t saved_bits;   /* AMP_MASK: rows * 8 * ((columns + 7) / 8); 8 for each element that is kept in FP8 */
} amp_plan_layer;

typedef struct amp_plan { /* bytes; the first six are the rows of the ledger for the set, exactly */
    uint64_t master, model, grad, moments, accum, tables;
    uint64_t casts; /* copies of FP32 parameters in a scope; with AMP_AUTOCAST_SPARE: the arena of amp_autocast_begin */
    uint64_t saved; /* activations */
    uint64_t total;
} amp_plan;

/* The plan of n layers under a policy, with one set of parameters. layout NULL => amp_policy_params_desc(policy),
   Adam's two moments. `in` is the dtype of the inputs: it matters for operations of class none. Class: host. */
AMP_API amp_status amp_plan_memory(amp_plan *out, const amp_policy *policy, const amp_params_desc *layout,
    const amp_plan_layer *layers, size_t n, amp_dtype in);

