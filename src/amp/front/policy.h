/* ==== >>front-policy =============================================================================================
   Levels, their overrides, the autocast scope.   tests: tests/test_policy.c */

AMP_API const char *amp_preset_name(amp_preset preset) {
    static const char names[AMP_PRESET_COUNT][16] = {
#define AMP_X(name, text) text,
        AMP_PRESET_LIST(AMP_X)
#undef AMP_X
    };
    return (uint32_t)preset < (uint32_t)AMP_PRESET_COUNT ? names[preset] : "unknown preset";
}

AMP_API amp_status amp_preset_find(amp_preset *preset, amp_dtype *low, const char *name) {
    static const struct {
        char suffix[8];
        amp_dtype low;
    } variants[] = {{"", AMP_AUTO}, {"-bf16", AMP_BF16}, {"-f16", AMP_F16}};
    size_t i, k;
    if (!name || !preset) return AMP_ERR_INVALID_ARG;
    for (i = 0; i < AMP_PRESET_COUNT; i++) {
        const char *level = amp_preset_name((amp_preset)i);
        size_t n = strlen(level);
        if (strncmp(name, level, n) != 0) continue;
        for (k = 0; k < (low ? 3u : 1u); k++) {
            if (strcmp(name + n, variants[k].suffix) != 0) continue;
            *preset = (amp_preset)i;
            if (low) *low = variants[k].low;
            return AMP_OK;
        }
    }
    return AMP_ERR_INVALID_ARG;
}

/* ---- levels ---- */

enum { AMPI_OURS = 1, AMPI_APEX = 2, AMPI_PYTORCH = 4, AMPI_MINDSPORE = 8, AMPI_ALL = 15 }; /* families of levels */
enum { AMPI_KEEP, AMPI_TO_F32, AMPI_TO_LOW };                                               /* of the model */
typedef struct ampi_level { uint8_t family, lists, autocast, model, norms, masters, results, dynamic; } ampi_level;
/* clang-format off */
static const ampi_level ampi_levels[AMP_PRESET_COUNT] = { /* as in amp_policy */
    {AMPI_OURS,      AMP_SYSTEM_AMP,            1, AMPI_KEEP,   0, 1, 0, 1},
    {AMPI_APEX,      AMP_SYSTEM_APEX,           0, AMPI_TO_F32, 0, 0, 0, 0}, /* O0 */
    {AMPI_APEX,      AMP_SYSTEM_APEX,           1, AMPI_KEEP,   0, 0, 0, 1},
    {AMPI_APEX,      AMP_SYSTEM_APEX,           0, AMPI_TO_LOW, 1, 1, 0, 1},
    {AMPI_APEX,      AMP_SYSTEM_APEX,           0, AMPI_TO_LOW, 0, 0, 0, 0}, /* O3 */
    {AMPI_PYTORCH,   AMP_SYSTEM_PYTORCH_CUDA,   1, AMPI_KEEP,   0, 1, 0, 1},
    {AMPI_PYTORCH,   AMP_SYSTEM_PYTORCH_CPU,    1, AMPI_KEEP,   0, 1, 0, 1}, /* the scale: if FP16 is asked for */
    {AMPI_MINDSPORE, AMP_SYSTEM_MINDSPORE,      0, AMPI_KEEP,   0, 1, 0, 0}, /* O0 */
    {AMPI_MINDSPORE, AMP_SYSTEM_MINDSPORE,      1, AMPI_KEEP,   0, 1, 1, 0},
    {AMPI_MINDSPORE, AMP_SYSTEM_MINDSPORE,      0, AMPI_TO_LOW, 1, 1, 0, 1},
    {AMPI_MINDSPORE, AMP_SYSTEM_MINDSPORE,      0, AMPI_TO_LOW, 0, 1, 0, 0}, /* O3 */
    {AMPI_MINDSPORE, AMP_SYSTEM_MINDSPORE_AUTO, 1, AMPI_KEEP,   0, 1, 0, 0},
    {AMPI_OURS,      AMP_SYSTEM_AMP,            1, AMPI_KEEP,   0, 1, 0, 1}}; /* FP8; the scale: if FP16 is asked for */
/* clang-format on */
static int ampi_family(amp_preset p) { return ampi_levels[p].family; }
static int ampi_is_half(amp_dtype t) { return t == AMP_F16 || t == AMP_BF16; }
static int ampi_is_model_dtype(amp_dtype t) { return t == AMP_F32 || ampi_is_half(t); }

static void ampi_policy_dynamic(amp_policy *p, float scale) {
    p->scaling = AMP_SCALER_DYNAMIC;
    p->loss_scale = scale;
    p->growth_interval = 2000;
}
static amp_dtype ampi_policy_low(amp_preset preset, amp_dtype low) {
    if (low != AMP_AUTO) return low;
    return preset == AMP_PRESET_PYTORCH_CPU || preset == AMP_PRESET_FP8 ? AMP_BF16 : AMP_F16;
}
static void ampi_policy_level(amp_policy *p, amp_preset preset, amp_dtype low) {
    const ampi_level *l = &ampi_levels[preset];
    memset(p, 0, sizeof *p);
    p->preset = preset;
    p->lists = l->lists;
    p->enabled = 1;
    p->low = ampi_policy_low(preset, low);
    p->autocast = l->autocast;
    if (l->model == AMPI_TO_F32) p->cast_model = AMP_F32;
    if (l->model == AMPI_TO_LOW) p->cast_model = p->low;
    if (l->model != AMPI_KEEP) p->cast_outputs = AMP_F32;
    p->keep_norms = l->norms;
    p->master_weights = l->masters;
    p->results_f32 = l->results;
    p->scaling = AMP_SCALER_OFF;
    p->loss_scale = 1.0f;
    p->num_losses = 1;
    if (l->family == AMPI_APEX) p->max_scale = 16777216.0f;
    if (l->dynamic && p->low == AMP_F16)
        ampi_policy_dynamic(p, preset == AMP_PRESET_MINDSPORE_O2 ? 16777216.0f : 65536.0f);
}

/* ---- overrides: a property by name gets a value; one function per property ---- */

typedef enum ampi_property {
    AMPI_P_ENABLED,
    AMPI_P_AUTOCAST,
    AMPI_P_CAST_MODEL,
    AMPI_P_KEEP_NORMS,
    AMPI_P_MASTER_WEIGHTS,
    AMPI_P_CAST_OUTPUTS,
    AMPI_P_NUM_LOSSES,
    AMPI_P_MIN_SCALE,
    AMPI_P_MAX_SCALE,
    AMPI_P_LOW,
    AMPI_P_LOSS_SCALE,
    AMPI_P_COUNT
} ampi_property;

typedef enum ampi_value_kind { AMPI_V_SWITCH, AMPI_V_DTYPE, AMPI_V_NUMBER, AMPI_V_DYNAMIC } ampi_value_kind;
typedef struct ampi_value { /* of an override */
    ampi_value_kind kind;
    uint32_t on;     /* a switch */
    amp_dtype dtype; /* AMP_AUTO: False */
    double number;
} ampi_value;
static ampi_value ampi_value_of(ampi_value_kind kind, uint32_t on, amp_dtype dtype, double number) {
    ampi_value v;
    v.kind = kind;
    v.on = on;
    v.dtype = dtype;
    v.number = number;
    return v;
}

typedef struct ampi_override { /* who overrides what, for sentences */
    amp_ctx *ctx;
    const char *name; /* that the caller used */
    amp_policy *p;
    ampi_property property;
} ampi_override;

/* In the order of ampi_property: our name and theirs, the families that have it, why others do not, why O1 refuses it.
   */
static const struct {
    char ours[16], theirs[24];
    uint8_t takes, families; /* takes: ampi_value_kind */
    char missing[40], o1[64];
} ampi_properties[AMPI_P_COUNT] = {
    {"enabled", "enabled", AMPI_V_SWITCH, AMPI_ALL, "", ""},
    {"autocast", "patch_torch_functions", AMPI_V_SWITCH, AMPI_APEX, "", ""},
    {"cast_model", "cast_model_type", AMPI_V_DTYPE, AMPI_APEX | AMPI_MINDSPORE, ": autocast leaves parameters in FP32",
        "inserts casts around operations: the model itself stays FP32"},
    {"keep_norms", "keep_batchnorm_fp32", AMPI_V_SWITCH, AMPI_APEX | AMPI_MINDSPORE, "",
        "runs batch norm in FP32 anyway: the model is not cast"},
    {"master_weights", "master_weights", AMPI_V_SWITCH, AMPI_APEX, ": its parameters are FP32",
        "has FP32 parameters: they are the masters"},
    {"cast_outputs", "cast_model_outputs", AMPI_V_DTYPE, AMPI_APEX | AMPI_MINDSPORE, "", ""},
    {"num_losses", "num_losses", AMPI_V_NUMBER, AMPI_APEX | AMPI_OURS, "", ""},
    {"min_scale", "min_loss_scale", AMPI_V_NUMBER, AMPI_ALL - AMPI_PYTORCH, "", ""},
    {"max_scale", "max_loss_scale", AMPI_V_NUMBER, AMPI_ALL - AMPI_PYTORCH, "", ""},
    {"low", "dtype", AMPI_V_DTYPE, AMPI_ALL, "", ""},
    {"loss_scale", "loss_scale", AMPI_V_DYNAMIC, AMPI_ALL, "", ""},
};

#define AMPI_ALLOW(condition, ...) \
    do { \
        if (!(condition)) return amp_fail(o->ctx, AMP_ERR_INVALID_ARG, __VA_ARGS__); \
    } while (0)

static amp_status ampi_set_enabled(const ampi_override *o, uint32_t on) {
    o->p->enabled = on;
    if (!on) o->p->scaling = AMP_SCALER_OFF;
    return AMP_OK;
}
static amp_status ampi_set_switch(uint32_t *field, uint32_t on) {
    *field = on;
    return AMP_OK;
}
static amp_status ampi_set_autocast(const ampi_override *o, uint32_t on) {
    AMPI_ALLOW(!on || o->p->preset == AMP_O1, "%s = True comes with O1 only, not with %s", o->name,
        amp_preset_name(o->p->preset));
    o->p->autocast = on;
    return AMP_OK;
}
static amp_status ampi_set_cast_model(const ampi_override *o, amp_dtype t) { /* AMP_AUTO: no cast */
    AMPI_ALLOW(
        t == AMP_AUTO || ampi_is_model_dtype(t), "%s is %s; f32, f16 or bf16 is needed", o->name, amp_dtype_name(t));
    o->p->cast_model = t;
    if (ampi_is_half(t)) o->p->low = t;
    if (t != AMP_AUTO && o->p->cast_outputs == AMP_AUTO) o->p->cast_outputs = AMP_F32;
    return AMP_OK;
}
static amp_status ampi_set_cast_outputs(const ampi_override *o, amp_dtype t) {
    AMPI_ALLOW(ampi_is_model_dtype(t), "%s is %s; f32, f16 or bf16 is needed", o->name, amp_dtype_name(t));
    o->p->cast_outputs = t;
    return AMP_OK;
}
static amp_status ampi_set_num_losses(const ampi_override *o, double n) {
    AMPI_ALLOW(
        n >= 1.0 && n < 2147483647.0 && (double)(int32_t)n >= n, "%s is %g; a whole number >= 1 is needed", o->name, n);
    o->p->num_losses = (uint32_t)n;
    return AMP_OK;
}
static amp_status ampi_set_limit(const ampi_override *o, float *limit, double scale) { /* min_scale or max_scale */
    AMPI_ALLOW(scale > 0.0 && scale <= 3.4e38 && amp_is_finite(ampi_inverse((float)scale)),
        "%s is %g; a finite number > 0 with a finite reciprocal is needed", o->name, scale);
    *limit = (float)scale;
    return AMP_OK;
}
static amp_status ampi_set_low(const ampi_override *o, amp_dtype t) {
    amp_policy *p = o->p;
    if (!ampi_is_half(t) && p->preset == AMP_PRESET_PYTORCH_CPU && (uint32_t)t < (uint32_t)AMP_DTYPE_COUNT) {
        amp_log_event(
            o->ctx, AMP_LOG_WARNING, "pytorch-cpu supports bf16 and f16, not %s: disabled", amp_dtype_name(t));
        return ampi_set_enabled(o, 0);
    }
    AMPI_ALLOW(ampi_is_half(t), "%s is %s; f16 or bf16 is needed", o->name, amp_dtype_name(t));
    if (p->cast_model == p->low) p->cast_model = t;
    p->low = t;
    if (t == AMP_BF16 && p->scaling == AMP_SCALER_DYNAMIC) {
        p->scaling = AMP_SCALER_OFF;
        p->loss_scale = 1.0f;
    }
    return AMP_OK;
}
static amp_status ampi_set_loss_scale(const ampi_override *o, ampi_value v) {
    amp_policy *p = o->p;
    if (v.kind == AMPI_V_DYNAMIC) {
        if (p->scaling != AMP_SCALER_DYNAMIC)
            ampi_policy_dynamic(p, ampi_family(p->preset) == AMPI_MINDSPORE ? 16777216.0f : 65536.0f);
        return AMP_OK;
    }
    AMPI_ALLOW(v.number > 0.0 && v.number <= 3.4e38 && amp_is_finite(ampi_inverse((float)v.number)),
        "%s is %g; a finite number > 0 with a finite reciprocal is needed", o->name, v.number);
    p->loss_scale = (float)v.number;
    p->scaling = p->loss_scale == 1.0f ? AMP_SCALER_OFF : AMP_SCALER_STATIC;
    p->growth_interval = 0;
    return AMP_OK;
}

/* One override. The value is of the kind that the property takes. */
static amp_status ampi_policy_override(const ampi_override *o, ampi_value v) {
    amp_policy *p = o->p;
    const char *missing = ampi_properties[o->property].missing, *o1 = ampi_properties[o->property].o1;
    int f32_model = o->property == AMPI_P_CAST_MODEL && (v.dtype == AMP_F32 || v.dtype == AMP_AUTO);
    AMPI_ALLOW(ampi_properties[o->property].families & ampi_family(p->preset), "%s is not a property of %s%s", o->name,
        amp_preset_name(p->preset), missing);
    AMPI_ALLOW(p->preset != AMP_O1 || !o1[0] || f32_model, "%s is given, but O1 %s", o->name, o1);
    switch (o->property) {
    case AMPI_P_ENABLED: return ampi_set_enabled(o, v.on);
    case AMPI_P_AUTOCAST: return ampi_set_autocast(o, v.on);
    case AMPI_P_CAST_MODEL: return ampi_set_cast_model(o, v.dtype);
    case AMPI_P_KEEP_NORMS: return ampi_set_switch(&p->keep_norms, v.on);
    case AMPI_P_MASTER_WEIGHTS: return ampi_set_switch(&p->master_weights, v.on);
    case AMPI_P_CAST_OUTPUTS: return ampi_set_cast_outputs(o, v.dtype);
    case AMPI_P_NUM_LOSSES: return ampi_set_num_losses(o, v.number);
    case AMPI_P_MIN_SCALE: return ampi_set_limit(o, &p->min_scale, v.number);
    case AMPI_P_MAX_SCALE: return ampi_set_limit(o, &p->max_scale, v.number);
    case AMPI_P_LOW: return ampi_set_low(o, v.dtype);
    case AMPI_P_LOSS_SCALE: return ampi_set_loss_scale(o, v);
    case AMPI_P_COUNT: break;
    }
    return AMP_OK;
}

/* What no single override can see; then the policy is as asked for. */
static amp_status ampi_policy_finish(amp_ctx *ctx, amp_policy *out, amp_policy *p) {
    AMPI_CHECK(p->min_scale <= 0.0f || p->max_scale <= 0.0f || p->min_scale <= p->max_scale,
        "min_scale (min_loss_scale) %g is above max_scale (max_loss_scale) %g", (double)p->min_scale,
        (double)p->max_scale);
    if (p->scaling == AMP_SCALER_DYNAMIC) {
        if (p->max_scale > 0.0f && p->loss_scale > p->max_scale)
            p->loss_scale = p->max_scale; /* Apex: min(max, init) */
        if (p->loss_scale < p->min_scale) p->loss_scale = p->min_scale;
    }
    *out = *p;
    return AMP_OK;
}

/* ---- overrides from a desc ---- */

static amp_status ampi_override_switch(ampi_override *o, ampi_property property, int32_t given) {
    if (given == 0) return AMP_OK;
    o->property = property;
    o->name = ampi_properties[property].ours;
    AMPI_ALLOW(given == 1 || given == AMP_NONE, "overrides.%s is %d; 1, AMP_NONE or 0 is needed", o->name, (int)given);
    return ampi_policy_override(o, ampi_value_of(AMPI_V_SWITCH, given == 1, AMP_AUTO, 0.0));
}
static amp_status ampi_override_dtype(ampi_override *o, ampi_property property, int32_t given) { /* AMP_NONE: False */
    amp_dtype t = given == AMP_NONE ? AMP_AUTO : (amp_dtype)given;
    if (given == 0) return AMP_OK;
    o->property = property;
    o->name = ampi_properties[property].ours;
    return ampi_policy_override(o, ampi_value_of(AMPI_V_DTYPE, 0, t, 0.0));
}
static amp_status ampi_override_number(ampi_override *o, ampi_property property, double given) {
    if (given == 0.0) return AMP_OK;
    o->property = property;
    o->name = ampi_properties[property].ours;
    return ampi_policy_override(o, ampi_value_of(AMPI_V_NUMBER, 0, AMP_AUTO, given));
}

/* [sign] digits [. digits] [e [sign] digits], blanks around it: as strtod in the C locale, whatever the program's. */
static const char *ampi_parse_digits(const char *text, double *x, int *digits) {
    *digits = 0;
    for (; *text >= '0' && *text <= '9'; text++, ++*digits)
        *x = *x * 10.0 + (double)(*text - '0');
    return text;
}
static const char *ampi_parse_exponent(const char *text, int *exponent) {
    const char *at;
    double x = 0.0;
    int digits;
    if (*text != 'e' && *text != 'E') return text;
    at = text + 1 + (text[1] == '-' || text[1] == '+');
    at = ampi_parse_digits(at, &x, &digits);
    if (digits == 0) return text;
    if (x > 9999.0) x = 9999.0;
    *exponent += text[1] == '-' ? -(int)x : (int)x;
    return at;
}
static int ampi_parse_number(double *number, const char *text) { /* 1: all of it is a number */
    double x = 0.0, ten = 1.0;
    int whole, part = 0, exponent = 0, i;
    const char *at = text + strspn(text, " "), *end;
    int minus = *at == '-';
    at += minus || *at == '+';
    end = ampi_parse_digits(at, &x, &whole);
    if (*end == '.') end = ampi_parse_digits(end + 1, &x, &part);
    if (whole + part == 0 || whole + part > 300) return 0;
    exponent = -part;
    end = ampi_parse_exponent(end, &exponent);
    if (end[strspn(end, " ")]) return 0;
    for (i = exponent < 0 ? -exponent : exponent; i > 0 && ten < 1e300; i--)
        ten *= 10.0;
    if (i > 0) return 0; /* no float is that large or small */
    x = exponent < 0 ? x / ten : x * ten;
    *number = minus ? -x : x;
    return 1;
}
static amp_status ampi_override_scale(ampi_override *o, const char *text) {
    ampi_value v = ampi_value_of(AMPI_V_DYNAMIC, 0, AMP_AUTO, 0.0);
    if (!text) return AMP_OK;
    if (strcmp(text, "dynamic") != 0) v.kind = AMPI_V_NUMBER;
    AMPI_ALLOW(v.kind == AMPI_V_DYNAMIC || ampi_parse_number(&v.number, text),
        "loss_scale is \"%s\"; \"dynamic\" or a number is needed", text);
    o->property = AMPI_P_LOSS_SCALE;
    o->name = "loss_scale";
    return ampi_policy_override(o, v);
}

static amp_status ampi_do_policy_init(
    amp_ctx *ctx, amp_policy *policy, amp_preset preset, const amp_policy_desc *overrides) {
    amp_policy_desc d = AMP_ZERO;
    amp_policy p;
    ampi_override o;
    AMPI_CHECK(policy, "policy is NULL");
    AMPI_CHECK((uint32_t)preset < (uint32_t)AMP_PRESET_COUNT, "preset is %d: no such level", (int)preset);
    if (overrides) {
        AMPI_CHECK_DESC(overrides);
        d = *overrides;
    }
    o.ctx = ctx;
    o.name = "";
    o.p = &p;
    o.property = AMPI_P_COUNT;
    ampi_policy_level(&p, preset, ampi_is_half(d.low) ? d.low : AMP_AUTO);
    AMPI_TRY(ampi_override_switch(&o, AMPI_P_ENABLED, d.enabled));
    AMPI_TRY(ampi_override_dtype(&o, AMPI_P_CAST_MODEL, d.cast_model));
    AMPI_TRY(ampi_override_switch(&o, AMPI_P_AUTOCAST, d.autocast));
    AMPI_TRY(ampi_override_switch(&o, AMPI_P_KEEP_NORMS, d.keep_norms));
    AMPI_TRY(ampi_override_switch(&o, AMPI_P_MASTER_WEIGHTS, d.master_weights));
    AMPI_TRY(ampi_override_dtype(&o, AMPI_P_CAST_OUTPUTS, (int32_t)d.cast_outputs));
    AMPI_TRY(ampi_override_number(&o, AMPI_P_NUM_LOSSES, (double)d.num_losses));
    AMPI_TRY(ampi_override_number(&o, AMPI_P_MIN_SCALE, (double)d.min_scale));
    AMPI_TRY(ampi_override_number(&o, AMPI_P_MAX_SCALE, (double)d.max_scale));
    AMPI_TRY(ampi_override_dtype(&o, AMPI_P_LOW, (int32_t)d.low));
    AMPI_TRY(ampi_override_scale(&o, d.loss_scale));
    return ampi_policy_finish(ctx, policy, &p);
}
AMP_API amp_status amp_policy_init(
    amp_ctx *ctx, amp_policy *policy, amp_preset preset, const amp_policy_desc *overrides) {
    AMP_VERB(ctx, "amp_policy_init", ampi_do_policy_init(ctx, policy, preset, overrides));
}

/* ---- overrides from text ---- */

static amp_status ampi_parse_switch(const ampi_override *o, ampi_value *v, const char *text) {
    v->on = strcmp(text, "True") == 0;
    AMPI_ALLOW(v->on || strcmp(text, "False") == 0, "%s is \"%s\"; True, False or None is needed", o->name, text);
    return AMP_OK;
}
static amp_status ampi_parse_dtype(const ampi_override *o, ampi_value *v, const char *text) {
    static const struct {
        char text[12];
        amp_dtype dtype;
    } names[] = {{"float32", AMP_F32}, {"f32", AMP_F32}, {"float16", AMP_F16}, {"half", AMP_F16}, {"f16", AMP_F16},
        {"bfloat16", AMP_BF16}, {"bf16", AMP_BF16}, {"False", AMP_AUTO}};
    size_t n = sizeof names / sizeof names[0], i = 0;
    const char *bare = text;
    if (o->property != AMPI_P_CAST_MODEL) n--; /* "False" is a value of that one only */
    if (strncmp(text, "torch.", 6) == 0 || strncmp(text, "mindspore.", 10) == 0) bare = strchr(text, '.') + 1;
    while (i < n && strcmp(names[i].text, bare) != 0)
        i++;
    AMPI_ALLOW(i < n, "%s is \"%s\"; float32, float16 or bfloat16 is needed", o->name, text);
    v->dtype = names[i].dtype;
    return AMP_OK;
}

static amp_status ampi_do_policy_set(amp_ctx *ctx, amp_policy *policy, const char *property, const char *value) {
    ampi_override override, *o = &override;
    ampi_value v = ampi_value_of(AMPI_V_SWITCH, 0, AMP_AUTO, 0.0);
    amp_policy p;
    uint32_t k = 0;
    o->ctx = ctx;
    o->name = property;
    o->p = &p;
    AMPI_ALLOW(policy, "policy is NULL");
    AMPI_ALLOW(property, "property is NULL");
    AMPI_ALLOW(value, "value is NULL");
    AMPI_REQUIRE(!policy->_begin && !policy->_end, AMP_ERR_UNINIT, "policy is not made by amp_policy_init");
    while (k < AMPI_P_COUNT && strcmp(ampi_properties[k].ours, property) != 0 &&
        strcmp(ampi_properties[k].theirs, property) != 0)
        k++;
    AMPI_ALLOW(k < AMPI_P_COUNT, "\"%s\" is not a property", property);
    if (strcmp(value, "None") == 0) return AMP_OK;
    p = *policy;
    o->property = (ampi_property)k;
    v.kind = (ampi_value_kind)ampi_properties[k].takes;
    if (v.kind == AMPI_V_SWITCH) AMPI_TRY(ampi_parse_switch(o, &v, value));
    if (v.kind == AMPI_V_DTYPE) AMPI_TRY(ampi_parse_dtype(o, &v, value));
    if (v.kind == AMPI_V_NUMBER)
        AMPI_ALLOW(ampi_parse_number(&v.number, value), "%s is \"%s\"; a number is needed", property, value);
    if (v.kind == AMPI_V_DYNAMIC)
        AMPI_TRY(ampi_override_scale(o, value));
    else
        AMPI_TRY(ampi_policy_override(o, v));
    return ampi_policy_finish(ctx, policy, &p);
}
AMP_API amp_status amp_policy_set(amp_ctx *ctx, amp_policy *policy, const char *property, const char *value) {
    AMP_VERB(ctx, "amp_policy_set", ampi_do_policy_set(ctx, policy, property, value));
}

/* ---- descs ---- */

typedef enum ampi_policy_way { AMPI_AS_IS, AMPI_BY_LISTS, AMPI_ALL_LOWER } ampi_policy_way;
static ampi_policy_way ampi_policy_mode(const amp_policy *p) {
    if (!p->enabled) return AMPI_AS_IS;
    if (p->autocast) return AMPI_BY_LISTS;
    return ampi_is_half(p->cast_model) ? AMPI_ALL_LOWER : AMPI_AS_IS;
}

AMP_API amp_params_desc amp_policy_params_desc(const amp_policy *policy) {
    amp_params_desc d = AMP_ZERO;
    d.model = AMP_F32;
    d.master = AMP_MASTER_F32;
    if (!policy || ampi_policy_mode(policy) != AMPI_ALL_LOWER) return d;
    d.model = policy->cast_model;
    if (!policy->master_weights) d.master = AMP_MASTER_NONE;
    return d;
}
AMP_API amp_scaler_desc amp_policy_scaler_desc(const amp_policy *policy) {
    amp_scaler_desc d = AMP_ZERO;
    d.mode = policy && policy->enabled ? policy->scaling : AMP_SCALER_OFF;
    if (d.mode == AMP_SCALER_OFF) return d;
    d.scale = policy->loss_scale;
    if (d.mode == AMP_SCALER_STATIC) d.no_check = ampi_family(policy->preset) == AMPI_APEX;
    if (d.mode == AMP_SCALER_DYNAMIC) {
        d.growth_interval = policy->growth_interval;
        d.min_scale = policy->min_scale;
        d.max_scale = policy->max_scale;
    }
    return d;
}

