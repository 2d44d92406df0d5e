/* ==== >>front-policy =============================================================================================
   Levels, their overrides, the autocast scope.   tests: tests/test_policy.c */

AMP_API const char *amp_preset_name(amp_preset preset) {
    static const char names[AMP_PRESET_COUNT][16] = {
#define AMP_X(name, text) text,
        AMP_PRESET_LIST(AMP_X)
#undef AMP_X
    };
    return AMPI_BELOW(preset, AMP_PRESET_COUNT) ? names[preset] : "unknown preset";
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
static uint32_t ampi_family(amp_preset p) { return ampi_levels[p].family; }
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
    if (!l->dynamic) return;
    ampi_policy_dynamic(p, preset == AMP_PRESET_MINDSPORE_O2 ? 16777216.0f : 65536.0f);
    if (p->low == AMP_BF16) p->scaling = AMP_SCALER_OFF;
}
/* BF16 needs no dynamic loss scale; its number stays, so that F16 gets it back. */
static void ampi_policy_lower(amp_policy *p, amp_dtype low) {
    p->low = low;
    if (low == AMP_BF16 && p->scaling == AMP_SCALER_DYNAMIC)
        p->scaling = AMP_SCALER_OFF;
    else if (low == AMP_F16 && p->scaling == AMP_SCALER_OFF && p->loss_scale != 1.0f)
        p->scaling = AMP_SCALER_DYNAMIC;
}

/* ---- overrides: a property by name gets a value ---- */

/* clang-format off */
/* Our name, which is amp_policy_desc's, and theirs, what it takes, the families that have it, why others do not, why O1
   refuses it; in the order in which they are set. ampi_override_apply does it. */
#define AMPI_PROPERTY_LIST(X) \
    X(enabled,        "enabled",               SWITCH, AMPI_ALL, "", "") \
    X(cast_model,     "cast_model_type",       DTYPE,  AMPI_APEX | AMPI_MINDSPORE, \
        ": autocast leaves parameters in FP32", "inserts casts around operations: the model itself stays FP32") \
    X(autocast,       "patch_torch_functions", SWITCH, AMPI_APEX, "", "") \
    X(keep_norms,     "keep_batchnorm_fp32",   SWITCH, AMPI_APEX | AMPI_MINDSPORE, "", \
        "runs batch norm in FP32 anyway: the model is not cast") \
    X(master_weights, "master_weights",        SWITCH, AMPI_APEX, ": its parameters are FP32", \
        "has FP32 parameters: they are the masters") \
    X(cast_outputs,   "cast_model_outputs",    DTYPE,  AMPI_APEX | AMPI_MINDSPORE, "", "") \
    X(num_losses,     "num_losses",            NUMBER, AMPI_APEX | AMPI_OURS, "", "") \
    X(min_scale,      "min_loss_scale",        NUMBER, AMPI_ALL - AMPI_PYTORCH, "", "") \
    X(max_scale,      "max_loss_scale",        NUMBER, AMPI_ALL - AMPI_PYTORCH, "", "") \
    X(low,            "dtype",                 DTYPE,  AMPI_ALL, "", "") \
    X(loss_scale,     "loss_scale",            SCALE,  AMPI_ALL, "", "")
/* clang-format on */

typedef enum ampi_wants { AMPI_WANTS_SWITCH, AMPI_WANTS_DTYPE, AMPI_WANTS_NUMBER, AMPI_WANTS_SCALE } ampi_wants;
typedef struct ampi_override {
    amp_policy *p;
    const char *name; /* that the caller used, for sentences */
    double x;         /* a switch: 0 or 1; a dtype (AMP_AUTO: False); a number */
    int dynamic;      /* 1: of loss_scale */
} ampi_override;

static amp_status ampi_set_switch(const ampi_override *o, uint32_t *field) {
    *field = o->x != 0.0;
    return AMP_OK;
}
static amp_status ampi_set_autocast(amp_ctx *ctx, const ampi_override *o) {
    AMPI_CHECK(o->x == 0.0 || o->p->preset == AMP_O1, "%s = True comes with O1 only, not with %s", o->name,
        amp_preset_name(o->p->preset));
    return ampi_set_switch(o, &o->p->autocast);
}
static amp_status ampi_set_cast_model(amp_ctx *ctx, const ampi_override *o) { /* AMP_AUTO: no cast */
    amp_dtype t = (amp_dtype)o->x;
    AMPI_CHECK(
        t == AMP_AUTO || ampi_is_model_dtype(t), "%s is %s; f32, f16 or bf16 is needed", o->name, amp_dtype_name(t));
    o->p->cast_model = t;
    if (ampi_is_half(t)) ampi_policy_lower(o->p, t);
    if (t != AMP_AUTO && o->p->cast_outputs == AMP_AUTO) o->p->cast_outputs = AMP_F32;
    return AMP_OK;
}
static amp_status ampi_set_cast_outputs(amp_ctx *ctx, const ampi_override *o) {
    amp_dtype t = (amp_dtype)o->x;
    AMPI_CHECK(ampi_is_model_dtype(t), "%s is %s; f32, f16 or bf16 is needed", o->name, amp_dtype_name(t));
    o->p->cast_outputs = t;
    return AMP_OK;
}
static amp_status ampi_set_num_losses(amp_ctx *ctx, const ampi_override *o) {
    int whole = o->x >= 1.0 && o->x < 2147483647.0 && (double)(int32_t)o->x >= o->x;
    AMPI_CHECK(whole, "%s is %g; a whole number >= 1 is needed", o->name, o->x);
    o->p->num_losses = (uint32_t)o->x;
    return AMP_OK;
}
static amp_status ampi_set_scale(amp_ctx *ctx, const ampi_override *o, float *scale) {
    AMPI_CHECK(o->x > 0.0 && o->x <= 3.4e38 && amp_is_finite(ampi_inverse((float)o->x)),
        "%s is %g; a finite number > 0 with a finite reciprocal is needed", o->name, o->x);
    *scale = (float)o->x;
    return AMP_OK;
}
static amp_status ampi_set_low(amp_ctx *ctx, const ampi_override *o) {
    amp_policy *p = o->p;
    amp_dtype t = (amp_dtype)o->x;
    if (!ampi_is_half(t) && p->preset == AMP_PRESET_PYTORCH_CPU && AMPI_BELOW(t, AMP_DTYPE_COUNT)) {
        amp_log_event(ctx, AMP_LOG_WARNING, "pytorch-cpu supports bf16 and f16, not %s: disabled", amp_dtype_name(t));
        p->enabled = 0;
        p->scaling = AMP_SCALER_OFF;
        return AMP_OK;
    }
    AMPI_CHECK(ampi_is_half(t), "%s is %s; f16 or bf16 is needed", o->name, amp_dtype_name(t));
    if (p->cast_model == p->low) p->cast_model = t;
    ampi_policy_lower(p, t);
    return AMP_OK;
}
static amp_status ampi_set_loss_scale(amp_ctx *ctx, const ampi_override *o) {
    amp_policy *p = o->p;
    if (!o->dynamic) {
        AMPI_TRY(ampi_set_scale(ctx, o, &p->loss_scale));
        p->scaling = p->loss_scale == 1.0f ? AMP_SCALER_OFF : AMP_SCALER_STATIC;
        p->growth_interval = 0;
    } else if (p->scaling != AMP_SCALER_DYNAMIC) {
        ampi_policy_dynamic(p, ampi_family(p->preset) == AMPI_MINDSPORE ? 16777216.0f : 65536.0f);
    }
    return AMP_OK;
}

#define AMP_X(name, theirs, wants, families, missing, o1) AMPI_P_##name,
typedef enum ampi_property { AMPI_PROPERTY_LIST(AMP_X) AMPI_PROPERTIES } ampi_property;
#undef AMP_X
typedef struct ampi_property_row {
    char ours[16], theirs[24];
    ampi_wants wants;
    uint8_t families;
    char missing[40], o1[64];
} ampi_property_row;
#define AMP_X(name, theirs, wants, families, missing, o1) {#name, theirs, AMPI_WANTS_##wants, families, missing, o1},
static const ampi_property_row ampi_properties[AMPI_PROPERTIES] = {AMPI_PROPERTY_LIST(AMP_X)};
#undef AMP_X

static amp_status ampi_override_apply(amp_ctx *ctx, const ampi_override *o, ampi_property property) {
    amp_policy *p = o->p;
    switch (property) {
    case AMPI_P_enabled: return ampi_set_switch(o, &p->enabled);
    case AMPI_P_keep_norms: return ampi_set_switch(o, &p->keep_norms);
    case AMPI_P_master_weights: return ampi_set_switch(o, &p->master_weights);
    case AMPI_P_cast_model: return ampi_set_cast_model(ctx, o);
    case AMPI_P_autocast: return ampi_set_autocast(ctx, o);
    case AMPI_P_cast_outputs: return ampi_set_cast_outputs(ctx, o);
    case AMPI_P_num_losses: return ampi_set_num_losses(ctx, o);
    case AMPI_P_min_scale: return ampi_set_scale(ctx, o, &p->min_scale);
    case AMPI_P_max_scale: return ampi_set_scale(ctx, o, &p->max_scale);
    case AMPI_P_low: return ampi_set_low(ctx, o);
    case AMPI_P_loss_scale: return ampi_set_loss_scale(ctx, o);
    case AMPI_PROPERTIES: break;
    }
    return AMP_OK;
}
static amp_status ampi_override_set(amp_ctx *ctx, ampi_override *o, ampi_property property) {
    const ampi_property_row *row = &ampi_properties[property];
    int f32_model = property == AMPI_P_cast_model && ((amp_dtype)o->x == AMP_F32 || (amp_dtype)o->x == AMP_AUTO);
    AMPI_CHECK(row->families & ampi_family(o->p->preset), "%s is not a property of %s%s", o->name,
        amp_preset_name(o->p->preset), row->missing);
    AMPI_CHECK(o->p->preset != AMP_O1 || !row->o1[0] || f32_model, "%s is given, but O1 %s", o->name, row->o1);
    return ampi_override_apply(ctx, o, property);
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
    i = exponent < 0 ? -exponent : exponent;
    if (i > 300) return 0; /* no float is that large or small */
    while (i--)
        ten *= 10.0;
    x = exponent < 0 ? x / ten : x * ten;
    *number = minus ? -x : x;
    return 1;
}
static amp_status ampi_scale_of(amp_ctx *ctx, ampi_override *o, const char *text) {
    o->dynamic = strcmp(text, "dynamic") == 0;
    AMPI_CHECK(
        o->dynamic || ampi_parse_number(&o->x, text), "loss_scale is \"%s\"; \"dynamic\" or a number is needed", text);
    return AMP_OK;
}

/* ---- overrides from a desc: what each kind of field gives; *is: it is given ---- */

static amp_status ampi_given_SWITCH(amp_ctx *ctx, ampi_override *o, int *is, int32_t field) {
    *is = field != 0;
    AMPI_CHECK(field == 0 || field == 1 || field == AMP_NONE, "overrides.%s is %d; 1, AMP_NONE or 0 is needed", o->name,
        (int)field);
    o->x = field == 1;
    return AMP_OK;
}
static amp_status ampi_given_DTYPE(amp_ctx *ctx, ampi_override *o, int *is, int32_t field) { /* AMP_NONE: False */
    (void)ctx;
    *is = field != 0;
    o->x = field == AMP_NONE ? (double)AMP_AUTO : field;
    return AMP_OK;
}
static amp_status ampi_given_NUMBER(amp_ctx *ctx, ampi_override *o, int *is, double field) {
    (void)ctx;
    *is = field != 0.0;
    o->x = field;
    return AMP_OK;
}
static amp_status ampi_given_SCALE(amp_ctx *ctx, ampi_override *o, int *is, const char *field) {
    *is = field != NULL;
    return field ? ampi_scale_of(ctx, o, field) : AMP_OK;
}
/* fields of a kind have types of their own */
#define AMPI_AS_SWITCH(field) (field)
#define AMPI_AS_DTYPE(field)  ((int32_t)(field))
#define AMPI_AS_NUMBER(field) ((double)(field))
#define AMPI_AS_SCALE(field)  (field)
static amp_status ampi_override_all(amp_ctx *ctx, ampi_override *o, const amp_policy_desc *d) {
    int is = 0;
#define AMP_X(field, theirs, wants, ...) \
    o->name = #field; \
    AMPI_TRY(ampi_given_##wants(ctx, o, &is, AMPI_AS_##wants(d->field))); \
    if (is) AMPI_TRY(ampi_override_set(ctx, o, AMPI_P_##field));
    AMPI_PROPERTY_LIST(AMP_X)
#undef AMP_X
    return AMP_OK;
}

static amp_status ampi_do_policy_init(
    amp_ctx *ctx, amp_policy *policy, amp_preset preset, const amp_policy_desc *overrides) {
    amp_policy_desc d = AMP_ZERO;
    amp_policy p;
    ampi_override o = AMP_ZERO;
    AMPI_CHECK(policy, "policy is NULL");
    AMPI_CHECK(AMPI_BELOW(preset, AMP_PRESET_COUNT), "preset is %d: no such level", (int)preset);
    AMPI_TAKE_DESC(&d, overrides);
    o.p = &p;
    ampi_policy_level(&p, preset, ampi_is_half(d.low) ? d.low : AMP_AUTO);
    AMPI_TRY(ampi_override_all(ctx, &o, &d));
    return ampi_policy_finish(ctx, policy, &p);
}
AMP_API amp_status amp_policy_init(
    amp_ctx *ctx, amp_policy *policy, amp_preset preset, const amp_policy_desc *overrides) {
    AMPI_VERB(ctx, policy_init, (ctx, policy, preset, overrides));
}

/* ---- overrides from text ---- */

static amp_status ampi_parse_switch(amp_ctx *ctx, ampi_override *o, const char *text) {
    o->x = strcmp(text, "True") == 0;
    AMPI_CHECK(o->x == 1.0 || strcmp(text, "False") == 0, "%s is \"%s\"; True, False or None is needed", o->name, text);
    return AMP_OK;
}
static amp_status ampi_parse_dtype(amp_ctx *ctx, ampi_override *o, const char *text, int may_be_false) {
    static const struct {
        char text[12];
        amp_dtype dtype;
    } names[] = {{"float32", AMP_F32}, {"f32", AMP_F32}, {"float16", AMP_F16}, {"half", AMP_F16}, {"f16", AMP_F16},
        {"bfloat16", AMP_BF16}, {"bf16", AMP_BF16}, {"False", AMP_AUTO}};
    size_t n = sizeof names / sizeof names[0], i = 0;
    const char *bare = text;
    if (!may_be_false) n--;
    if (strncmp(text, "torch.", 6) == 0 || strncmp(text, "mindspore.", 10) == 0) bare = strchr(text, '.') + 1;
    while (i < n && strcmp(names[i].text, bare) != 0)
        i++;
    AMPI_CHECK(i < n, "%s is \"%s\"; float32, float16 or bfloat16 is needed", o->name, text);
    o->x = names[i].dtype;
    return AMP_OK;
}
static amp_status ampi_parse_value(amp_ctx *ctx, ampi_override *o, ampi_property property, const char *text) {
    switch (ampi_properties[property].wants) {
    case AMPI_WANTS_SWITCH: return ampi_parse_switch(ctx, o, text);
    case AMPI_WANTS_DTYPE: return ampi_parse_dtype(ctx, o, text, property == AMPI_P_cast_model);
    case AMPI_WANTS_SCALE: return ampi_scale_of(ctx, o, text);
    case AMPI_WANTS_NUMBER: break;
    }
    AMPI_CHECK(ampi_parse_number(&o->x, text), "%s is \"%s\"; a number is needed", o->name, text);
    return AMP_OK;
}
static int ampi_property_is(const ampi_property_row *row, const char *name) {
    return strcmp(row->ours, name) == 0 || strcmp(row->theirs, name) == 0;
}

static amp_status ampi_do_policy_set(amp_ctx *ctx, amp_policy *policy, const char *property, const char *value) {
    ampi_override o = AMP_ZERO;
    amp_policy p;
    uint32_t k = 0;
    AMPI_CHECK(policy, "policy is NULL");
    AMPI_CHECK(property, "property is NULL");
    AMPI_CHECK(value, "value is NULL");
    AMPI_REQUIRE(AMPI_CLEAN(policy), AMP_ERR_UNINIT, "policy is not made by amp_policy_init");
    while (k < AMPI_PROPERTIES && !ampi_property_is(&ampi_properties[k], property))
        k++;
    AMPI_CHECK(k < AMPI_PROPERTIES, "\"%s\" is not a property", property);
    if (strcmp(value, "None") == 0) return AMP_OK;
    p = *policy;
    o.p = &p;
    o.name = property;
    AMPI_TRY(ampi_parse_value(ctx, &o, (ampi_property)k, value));
    AMPI_TRY(ampi_override_set(ctx, &o, (ampi_property)k));
    return ampi_policy_finish(ctx, policy, &p);
}
AMP_API amp_status amp_policy_set(amp_ctx *ctx, amp_policy *policy, const char *property, const char *value) {
    AMPI_VERB(ctx, policy_set, (ctx, policy, property, value));
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

