/* ==== >>policy ===================================================================================================
   Automatic mixed precision: between amp_autocast_begin and _end verbs choose dtypes by themselves, and the FP32
   program stays as it is. The levels of Apex, PyTorch and MindSpore (O0..O3 ...) and the tables that say which
   operation gets which precision come after the API: >>levels, >>operations, docs/policy.md. */

typedef uint32_t amp_op; /* AMP_OP_LINEAR, AMP_OP_MATMUL, ...: >>operations */

typedef struct amp_policy amp_policy; /* a level (O0..O3, PyTorch, MindSpore) with its lists: >>levels */

/* In a scope amp_gemm and amp_linear_forward cast operands as the policy says. An output whose dtype is AMP_AUTO gets
   the dtype that the policy chooses: its memory must have room for 4 bytes per element (or for what amp_policy_output
   says), and the choice is returned (amp_gemm_desc.d_dtype, amp_linear_desc.record). An explicit output dtype is always
   obeyed. Outside a scope, and in a disabled region, nothing is cast, and AMP_AUTO is the dtype of the first input. FP8
   operands are never cast; a bias is read as it is, or from its model copy. Backward does what its layer's record says.
   If a parameter's model copy has the wanted dtype, it is used without a cast. FP32 parameters, and arrays with
   AMP_CACHE in flags, are cast once and kept until the outermost end, or until their set steps. The cast of an array
   that no set owns is kept for one iteration: until amp_scaler_update, a step of any set, or a forward after an
   amp_linear_backward or amp_linear_cross_entropy that read it for dx. Everything else is cast for one call. */

#define AMP_AUTOCAST_DEPTH 16                /* regions that can be open at a time */
#define AMP_AUTOCAST_SPARE ((size_t)1 << 20) /* bytes of the first arena for copies of one call */
#define AMP_CACHE          0x100u            /* amp_array.flags: an FP32 weight whose cast may be kept */

typedef struct amp_autocast_desc { /* "outer": of the surrounding region; without one, on and as AMP_PRESET_AMP */
    uint32_t _begin;
    uint32_t disabled;        /* 1: nothing is cast in this region, as in an outermost one of a disabled policy */
    const amp_policy *policy; /* copied; NULL => outer */
    amp_dtype low;            /* AMP_F16, AMP_BF16; AMP_AUTO => the policy's, if one is given, or outer */
    amp_dtype pin;            /* dtype that every operation of the region gets (to_float); AMP_AUTO => by the lists */
    uint32_t if_enabled;      /* 1: nothing happens unless an enabled region is open (with pin: custom_fwd's) */
    int32_t cache;            /* 0 => outer; 1 on; AMP_NONE off */
    size_t arena;   /* outermost: bytes for copies, and no more: NO_MEMORY when they are used up. 0 => room for copies
                       of the FP32 parameters and AMP_AUTOCAST_SPARE more (disabled: 0); it grows with what is needed */
    size_t entries; /* outermost: copies in the cache, one for each dtype and each capture; NO_MEMORY when they are used
                       up. 0 => one per FP32 parameter, and 64 */
    uint64_t _end;
} amp_autocast_desc;

/* Opens a region; desc NULL => defaults. An outermost begin allocates the arena (ledger label "autocast") if the
   present one is too small, and keeps it for the next scope. A verb that runs out of room there allocates
   a larger one, and the next outermost begin makes one of the size that was needed. In a capture the verb returns
   NO_MEMORY, and the sentence says how much is needed; so does amp_autocast_get (.peak). STAGE beyond
   AMP_AUTOCAST_DEPTH, CAPTURE if it had to allocate in a capture. Class: setup, or host where it need not allocate. */
AMP_API amp_status amp_autocast_begin(amp_ctx *ctx, const amp_autocast_desc *desc);
/* Closes the innermost region and drops the casts that amp_autocast_input made in it; the outermost one drops the
   cache. STAGE if none is open. Class: host. */
AMP_API amp_status amp_autocast_end(amp_ctx *ctx);
/* Frees the arena, as amp_ctx_destroy does. STAGE while a region is open. A graph captured in a scope may not be
   launched any more. Class: setup. */
AMP_API amp_status amp_autocast_release(amp_ctx *ctx);
/* For operations of your own: out[i] = in[i] as operation op wants its n inputs (n <= 8; give counts; one without data
   is skipped). It is in[i] itself, its model copy, or a cast. Read it until the end of the region (a cached one: of the
   outermost region). NO_MEMORY when a fixed arena is full. UNSUPPORTED for a banned operation, and for FP16 beside BF16
   where the widest is wanted. Class: enqueue. Numerics: to nearest even. */
AMP_API amp_status amp_autocast_input(amp_ctx *ctx, amp_array *out, amp_op op, const amp_array *in, size_t n);
/* The dtype that op's result gets here if it is AMP_AUTO; in: the dtype of its (widest) input. Class: host. */
AMP_API amp_dtype amp_autocast_output(const amp_ctx *ctx, amp_op op, amp_dtype in);
/* You changed this array (data NULL: any): its casts are made again. Verbs of amp do it for what they write, the end
   of an iteration for AMP_CACHE; call it if your loop ends otherwise (amp_gemm alone, no scaler). Class: host. */
AMP_API void amp_autocast_invalidate(amp_ctx *ctx, const void *data);
/* What a layer's forward did. You keep it beside the layer, and amp_linear_desc.record points to it. Forward writes it,
   backward reads it. The next layer's .from may point to it: then its x (or its logits) may be AMP_AUTO. */
typedef struct amp_precision {
    uint32_t made;  /* 1: forward has run */
    amp_dtype x;    /* dtype of x in memory */
    amp_dtype used; /* dtype in which the product read x and w */
    amp_dtype y;    /* dtype of y and aux in memory; also of dy if that is AMP_AUTO */
} amp_precision;

