/* ==== >>front-operations =========================================================================================
   The tables of operations, and what a policy does with them.   tests: tests/test_policy.c, tests/test_edges.c */

typedef char ampi_edits_fit[(size_t)AMP_OP_COUNT <= sizeof((amp_policy *)0)->edits ? 1 : -1];

typedef struct ampi_op_row { char name[40], classes[8]; } ampi_op_row;
typedef struct ampi_op_alias {
    char name[28], systems[4];
    uint32_t op;
} ampi_op_alias;
static const ampi_op_row ampi_op_rows[] = {/* no pointers: stays read-only in position-independent code */
    {"", "______"},
#define AMP_X(suffix, name, classes) {#name, #classes},
    AMP_OP_LIST(AMP_X)
#undef AMP_X
};
static const ampi_op_alias ampi_op_aliases[] = {
#define AMP_X(suffix, name, systems) {#name, #systems, AMP_OP_##suffix},
    AMP_OP_NAME_LIST(AMP_X)
#undef AMP_X
};
#define AMPI_ALIASES (sizeof ampi_op_aliases / sizeof ampi_op_aliases[0])

static int ampi_is_name(const char *row, const char *name, size_t len) {
    return strlen(row) == len && memcmp(row, name, len) == 0;
}
static amp_op ampi_op_exact(const char *name, size_t len) { /* AMP_OP_NONE: no such name */
    uint32_t i;
    for (i = 1; i < AMP_OP_COUNT; i++)
        if (ampi_is_name(ampi_op_rows[i].name, name, len)) return i;
    for (i = 0; i < AMPI_ALIASES; i++)
        if (ampi_is_name(ampi_op_aliases[i].name, name, len)) return ampi_op_aliases[i].op;
    return AMP_OP_NONE;
}

/* "torch.matmul" -> "matmul". One prefix goes; what is left is a name, or a module and a name. */
static const char *ampi_op_bare(const char *name, int *aten) {
    static const char prefixes[][32] = {"torch.nn.functional.", "nn.functional.", "F.", "torch.ops.aten.",
        "aten::", "torch.Tensor.", "Tensor.", "torch.", "mindspore.ops.operations.", "mindspore.ops.",
        "mindspore.mint.nn.functional.", "mindspore.mint.", "mindspore.", "ops.", "mint.", "P."};
    size_t i, n;
    *aten = 0;
    for (i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        n = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], n) != 0) continue;
        *aten = strstr(prefixes[i], "aten") != NULL;
        return name + n;
    }
    return name;
}
/* "linalg.inv" is listed as "linalg_inv", and "fft.fft" as "fft_fft". */
static amp_op ampi_op_of_module(const char *name, size_t len) {
    char copy[40];
    if (len >= sizeof copy) return AMP_OP_NONE;
    if (strncmp(name, "linalg.", 7) != 0 && strncmp(name, "fft.", 4) != 0) return AMP_OP_NONE;
    memcpy(copy, name, len);
    copy[strcspn(name, ".")] = '_';
    return ampi_op_exact(copy, len);
}

AMP_API amp_status amp_op_find(amp_op *out, const char *name) {
    size_t len;
    amp_op op;
    int aten;
    if (!out) return AMP_ERR_INVALID_ARG;
    *out = AMP_OP_NONE;
    if (!name) return AMP_ERR_INVALID_ARG;
    op = ampi_op_exact(name, strlen(name));
    name = ampi_op_bare(name, &aten);
    len = strlen(name);
    if (!op) op = ampi_op_exact(name, len);
    if (!op && aten) {
        len = strcspn(name, "."); /* without the overload */
        op = ampi_op_exact(name, len);
    }
    if (!op && len > 1 && name[len - 1] == '_' && name[len - 2] != '_')
        op = ampi_op_exact(name, len - 1); /* in place */
    if (!op) op = ampi_op_of_module(name, len);
    *out = op;
    return op ? AMP_OK : AMP_ERR_INVALID_ARG;
}

static int ampi_is_op(amp_op op) { return op > 0u && op < (amp_op)AMP_OP_COUNT; }
AMP_API const char *amp_op_name(amp_op op) { return ampi_is_op(op) ? ampi_op_rows[op].name : ""; }

static const char ampi_letters[] = "-LFOWB"; /* by amp_op_class; '_' in the lists is none of them */
static amp_op_class ampi_class_of_letter(char c) {
    const char *at = strchr(ampi_letters, c >= 'a' ? c - 'a' + 'A' : c);
    return at && c ? (amp_op_class)(at - ampi_letters) : AMP_CLASS_NONE;
}
AMP_API amp_op_class amp_op_class_of(amp_op op, amp_system system) {
    if (!ampi_is_op(op) || (uint32_t)system >= (uint32_t)AMP_SYSTEM_COUNT) return AMP_CLASS_NONE;
    return ampi_class_of_letter(ampi_op_rows[op].classes[system]);
}

AMP_API const char *amp_op_listed(amp_op op, amp_system system, size_t k) {
    static const char letter[] = "...AMS"; /* in ampi_op_alias.systems */
    size_t i;
    if (amp_op_class_of(op, system) == AMP_CLASS_NONE) return NULL;
    if (system <= AMP_SYSTEM_APEX && ampi_op_rows[op].classes[system] < 'a') { /* listed under the row's own name */
        if (k == 0) return ampi_op_rows[op].name;
        k--;
    }
    for (i = 0; i < AMPI_ALIASES; i++) {
        if (ampi_op_aliases[i].op != op || !strchr(ampi_op_aliases[i].systems, letter[system])) continue;
        if (k == 0) return ampi_op_aliases[i].name;
        k--;
    }
    return NULL;
}

AMP_API const char *amp_op_note(amp_op op) {
    static const char banned[] =
        "an FP16 input forces an FP16 gradient, and the gradient 1 / (p (1 - p)) may not be representable; "
        "casting the input up does not help. Use binary_cross_entropy_with_logits on the values before the sigmoid";
    if (op == AMP_OP_BINARY_CROSS_ENTROPY) return banned;
    if (op == AMP_OP_CROSS_ENTROPY || op == AMP_OP_CROSS_ENTROPY_LOSS)
        return "amp_softmax_cross_entropy reads half logits and computes in FP32: a cast before it would change no bit";
    if (op == AMP_OP_BATCH_NORM)
        return "PyTorch lists it nowhere, because cuDNN keeps its statistics in FP32; Apex O2 and MindSpore keep it in "
               "FP32, and so do we";
    if (op == AMP_OP_GELU) return "Apex computes it in FP32; our fused GELU does so inside, on any dtype";
    if (op == AMP_OP_RELU) return "MindSpore's white list has it; ReLU is exact in every dtype";
    if (op == AMP_OP_MEAN)
        return "a sum of half numbers overflows long before their mean: accumulated and returned in FP32";
    return "";
}

AMP_API const char *amp_op_class_name(amp_op_class c) {
    static const char names[][12] = {"none", "lower", "f32", "f32 output", "widest", "banned"};
    return (uint32_t)c <= (uint32_t)AMP_CLASS_BANNED ? names[c] : "unknown class";
}
AMP_API const char *amp_system_name(amp_system s) {
    static const char names[AMP_SYSTEM_COUNT][16] = {
        "amp", "pytorch-cuda", "pytorch-cpu", "apex", "mindspore", "mindspore-auto"};
    return AMPI_BELOW(s, AMP_SYSTEM_COUNT) ? names[s] : "unknown system";
}

/* ---- policies ---- */

/* Where every operation is lower precision: one that stays FP32 beside keep_norms. */
static int ampi_is_norm(const amp_policy *p, amp_op op) {
    if (ampi_family(p->preset) == AMPI_MINDSPORE) return amp_op_class_of(op, AMP_SYSTEM_MINDSPORE) == AMP_CLASS_F32;
    return op == AMP_OP_BATCH_NORM;
}
AMP_API amp_op_class amp_policy_class(const amp_policy *policy, amp_op op) {
    ampi_policy_way mode = policy ? ampi_policy_mode(policy) : AMPI_AS_IS;
    amp_op_class listed;
    if (mode == AMPI_AS_IS || op >= (amp_op)AMP_OP_COUNT) return AMP_CLASS_NONE;
    if (policy->edits[op]) return ampi_class_of_letter(policy->edits[op]);
    if (mode == AMPI_ALL_LOWER) return policy->keep_norms && ampi_is_norm(policy, op) ? AMP_CLASS_F32 : AMP_CLASS_LOWER;
    listed = amp_op_class_of(op, (amp_system)policy->lists);
    if (policy->preset == AMP_PRESET_MINDSPORE_O1 && listed != AMP_CLASS_LOWER) return AMP_CLASS_NONE; /* black: O2's */
    return listed;
}
AMP_API amp_dtype amp_policy_output(const amp_policy *policy, amp_op op, amp_dtype in) {
    return policy ? ampi_class_output(policy, amp_policy_class(policy, op), policy->low, in) : in;
}
AMP_API uint32_t amp_policy_keep_f32(const amp_policy *policy, amp_op op) {
    if (!policy || ampi_policy_mode(policy) != AMPI_ALL_LOWER) return 1; /* parameters are FP32 anyway */
    return amp_policy_class(policy, op) != AMP_CLASS_LOWER;
}

static amp_status ampi_do_policy_edit(amp_ctx *ctx, amp_policy *policy, amp_op op, amp_op_class c) {
    amp_op_class old;
    AMPI_CHECK(policy, "policy is NULL");
    AMPI_CHECK(ampi_is_op(op), "op is %llu: no such operation", AMPI_ULL(op));
    AMPI_CHECK((uint32_t)c <= (uint32_t)AMP_CLASS_BANNED, "c is %d: no such class", (int)c);
    old = amp_policy_class(policy, op);
    if (old == AMP_CLASS_BANNED && c != AMP_CLASS_BANNED)
        amp_log_event(ctx, AMP_LOG_WARNING, "%s was banned: %s", amp_op_name(op), amp_op_note(op));
    if ((old == AMP_CLASS_F32 || old == AMP_CLASS_F32_OUT) && (c == AMP_CLASS_LOWER || c == AMP_CLASS_NONE))
        amp_log_event(ctx, AMP_LOG_WARNING, "%s was in FP32 and may now overflow or lose accuracy in %s",
            amp_op_name(op), amp_dtype_name(policy->low));
    policy->edits[op] = ampi_letters[c];
    return AMP_OK;
}
AMP_API amp_status amp_policy_edit(amp_ctx *ctx, amp_policy *policy, amp_op op, amp_op_class c) {
    AMPI_VERB(ctx, policy_edit, (ctx, policy, op, c));
}

AMP_API size_t amp_policy_list(amp_op *out, size_t cap, const amp_policy *policy, amp_op_class c) {
    uint32_t i;
    size_t n = 0;
    for (i = 1; policy && i < AMP_OP_COUNT; i++)
        if (amp_policy_class(policy, (amp_op)i) == c) {
            if (out && n < cap) out[n] = (amp_op)i;
            n++;
        }
    return n;
}

static int ampi_is_in(const amp_op *list, size_t n, amp_op op) {
    size_t i;
    for (i = 0; i < n; i++)
        if (list[i] == op) return 1;
    return 0;
}
static amp_status ampi_do_policy_custom(amp_ctx *ctx, amp_policy *policy, const amp_op *white, size_t n_white,
    const amp_op *black, size_t n_black, amp_dtype dtype) {
    const amp_op *list = white ? white : black;
    const char *name = white ? "white" : "black";
    char inside = white ? 'L' : 'F';
    char outside = white ? '-' : 'L';
    size_t n = white ? n_white : n_black, i;
    amp_policy p;
    amp_op op;
    AMPI_CHECK(policy, "policy is NULL");
    AMPI_CHECK(!white || !black, "both lists are given; exactly one of white and black is needed");
    AMPI_CHECK(list, "no list is given; exactly one of white and black is needed");
    AMPI_CHECK(n > 0, "n_%s is 0", name);
    if (dtype == AMP_AUTO) dtype = AMP_F16;
    AMPI_CHECK(ampi_is_half(dtype), "dtype is %s; f16 or bf16 is needed", amp_dtype_name(dtype));
    for (i = 0; i < n; i++)
        AMPI_CHECK(ampi_is_op(list[i]), "%s[%llu] is %llu: no such operation", name, AMPI_ULL(i), AMPI_ULL(list[i]));
    ampi_policy_level(&p, white ? AMP_PRESET_MINDSPORE_O1 : AMP_PRESET_MINDSPORE_O2, dtype);
    for (op = 1; op < (amp_op)AMP_OP_COUNT; op++) {
        int in = ampi_is_in(list, n, op);
        p.edits[op] = in ? inside : outside;
        if (!in && !white && amp_op_class_of(op, AMP_SYSTEM_MINDSPORE) == AMP_CLASS_F32)
            amp_log_event(ctx, AMP_LOG_WARNING, "%s is left out of the black list: it will run in %s", amp_op_name(op),
                amp_dtype_name(dtype));
    }
    *policy = p;
    return AMP_OK;
}
AMP_API amp_status amp_policy_custom(amp_ctx *ctx, amp_policy *policy, const amp_op *white, size_t n_white,
    const amp_op *black, size_t n_black, amp_dtype dtype) {
    AMPI_VERB(ctx, policy_custom, (ctx, policy, white, n_white, black, n_black, dtype));
}

