/* ==== >>levels ===================================================================================================
   A level is what other systems call opt_level or amp_level, made into a policy for the autocast scope and into descs
   of parameter sets and scalers.   tests: tests/test_policy.c */

/* clang-format off */
#define AMP_PRESET_LIST(X) \
    X(AMP_PRESET_AMP,            "amp")            /* our lists; FP32 parameters; dynamic loss scale */ \
    X(AMP_O0,                    "O0")             /* Apex: FP32 */ \
    X(AMP_O1,                    "O1")             /*       lists; FP32 parameters; dynamic loss scale */ \
    X(AMP_O2,                    "O2")             /*       half model, FP32 norms and masters; dynamic loss scale */ \
    X(AMP_O3,                    "O3")             /*       half everything */ \
    X(AMP_PRESET_PYTORCH_CUDA,   "pytorch-cuda")   /* autocast + GradScaler */ \
    X(AMP_PRESET_PYTORCH_CPU,    "pytorch-cpu")    /* autocast in BF16, no scaler */ \
    X(AMP_PRESET_MINDSPORE_O0,   "mindspore-O0")   /* FP32 */ \
    X(AMP_PRESET_MINDSPORE_O1,   "mindspore-O1")   /* white list in half, results back to FP32 */ \
    X(AMP_PRESET_MINDSPORE_O2,   "mindspore-O2")   /* half but for the black list; dynamic loss scale from 2^24 */ \
    X(AMP_PRESET_MINDSPORE_O3,   "mindspore-O3")   /* half everything; FP32 masters */ \
    X(AMP_PRESET_MINDSPORE_AUTO, "mindspore-auto") /* auto lists */ \
    X(AMP_PRESET_FP8,            "fp8")            /* as amp in BF16, layers with .fp8 in FP8 (>>fp8); no loss scale */
#define AMP_X(name, text) name,
typedef enum amp_preset { AMP_PRESET_LIST(AMP_X) AMP_PRESET_COUNT } AMP_INT amp_preset;
#undef AMP_X
/* clang-format on */

struct amp_policy { /* made by amp_policy_init; plain data, copy it freely */
    uint32_t _begin;
    amp_preset preset;
    uint32_t lists;          /* amp_system: whose lists say what an operation gets */
    amp_dtype low;           /* AMP_F16 or AMP_BF16: what "lower precision" is */
    uint32_t enabled;        /* 0: as if the policy were not there */
    uint32_t autocast;       /* 1: operations choose by the lists */
    amp_dtype cast_model;    /* dtype of model copies and of every operation; AMP_AUTO: no such cast */
    uint32_t keep_norms;     /* 1: with cast_model, batch norm (MindSpore: its black list) stays FP32 */
    uint32_t master_weights; /* 1: FP32 masters beside half model copies */
    uint32_t results_f32;    /* 1: lower-precision operations return FP32 (MindSpore O1) */
    amp_dtype cast_outputs;  /* dtype that the model returns; AMP_AUTO: as it comes */
    amp_scaler_mode scaling;
    float loss_scale;           /* initial or static (Apex: then overflow is not looked for) */
    float min_scale, max_scale; /* 0: the scaler's default */
    int32_t growth_interval;
    uint32_t num_losses, flags; /* scalers to make; 0 */
    char edits[256];            /* of the lists, by amp_op: amp_policy_edit */
    uint64_t _end;
};

typedef struct amp_policy_desc { /* 0 keeps what the level says. Switches: 1 is True, AMP_NONE is False */
    uint32_t _begin;
    amp_dtype low; /* AMP_F16 or AMP_BF16: the BF16 twin of a level. BF16 needs no loss scale: it is off then */
    int32_t enabled, autocast, keep_norms, master_weights;
    int32_t cast_model;         /* AMP_F32, AMP_F16, AMP_BF16; AMP_NONE: the model is not cast */
    amp_dtype cast_outputs;     /* AMP_F32, AMP_F16, AMP_BF16 */
    const char *loss_scale;     /* "dynamic", or a number > 0 as text: "128.0" */
    float min_scale, max_scale; /* of a dynamic loss scale */
    uint32_t num_losses;
    uint64_t _end;
} amp_policy_desc;

/* *policy = a level with overrides (NULL => none), by the rules of the level's system: what it has no word for, or
   refuses, is INVALID_ARG here (docs/policy.md has the rules). On failure *policy is as it was. Class: host. */
AMP_API amp_status amp_policy_init(
    amp_ctx *ctx, amp_policy *policy, amp_preset preset, const amp_policy_desc *overrides);
/* One override as text, e.g. from a command line, by our name or theirs: "keep_norms" or "keep_batchnorm_fp32" "True",
   "loss_scale" "dynamic", "cast_model_type" "torch.float16" or "False", "dtype" "bfloat16". "None" changes nothing.
   Class: host. */
AMP_API amp_status amp_policy_set(amp_ctx *ctx, amp_policy *policy, const char *property, const char *value);
/* "O1", "mindspore-O2" ...; an optional "-bf16" or "-f16" selects that variant: *low, which is AMP_AUTO without one
   (low NULL: no suffix is allowed). INVALID_ARG for an unknown name. Class: host. */
AMP_API amp_status amp_preset_find(amp_preset *preset, amp_dtype *low, const char *name);
/* The descs for amp_params_create and amp_scaler_create (make num_losses scalers). A static scale of 1 becomes
   AMP_SCALER_OFF; any other of O0 to O3 does not look for overflow, as in Apex; of the rest it does. Class: host. */
AMP_API amp_params_desc amp_policy_params_desc(const amp_policy *policy);
AMP_API amp_scaler_desc amp_policy_scaler_desc(const amp_policy *policy);

