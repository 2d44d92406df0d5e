/* ==== >>front-params =============================================================================================
   Parameter sets.   tests: tests/test_params.c, tests/test_layouts.c, tests/test_step.c, tests/test_resume.c */

typedef struct ampi_param { /* what amp_params_add was told, with defaults filled in */
    amp_param_desc d;
    char *name;  /* our copy; d.name is not used after amp_params_add */
    float *init; /* our copy of d.init, until commit */
    int unused;  /* 1: amp_params_use has left it out */
} ampi_param;

#define AMPI_PARAMS ((size_t)64) /* parameters of a piece of the list: pieces stay where they are, so none is copied */

typedef struct ampi_name_slot { /* of the table of names */
    uint32_t hash, place;       /* place: index of the parameter + 1; 0: the slot is free */
} ampi_name_slot;

/* What a set's gradients and accumulators are: see ampi_rules. */
typedef enum ampi_phase {
    AMPI_READY = 0,       /* gradients carry the loss scale */
    AMPI_UNSCALED,        /* amp_scaler_unscale has divided them by it */
    AMPI_STEPPED,         /* a step has used them */
    AMPI_INSPECTED,       /* amp_inspect has: amp_apply may follow */
    AMPI_ADDING,          /* the accumulators hold micro-batches; gradients carry the loss scale */
    AMPI_ADDING_UNSCALED, /* the same, but gradients are unscaled */
    AMPI_ADDED,           /* amp_inspect has used the accumulators: amp_apply may follow */
    AMPI_SUMMED,          /* a step has used the accumulators; gradients carry the loss scale */
    AMPI_PHASES
} ampi_phase;

/* What a set owns: one block of context memory per kind, each with its label in the ledger. */
typedef enum ampi_arena {
    AMPI_MASTERS = 0, /* FP32 masters, or the low parts of SPLIT, SPLIT8 and KAHAN */
    AMPI_MODELS,
    AMPI_GRADS,
    AMPI_MOMENTS,
    AMPI_ACCUMS,
    AMPI_TABLES, /* records, totals, the list of parameters and that of chunks */
    AMPI_ARENAS
} ampi_arena;

struct amp_params {
    amp_ctx *ctx;
    amp_params_desc desc; /* resolved */
    char label[24];
    ampi_param **pieces;
    size_t n_pieces, cap_pieces;
    size_t n;                 /* parameters, see ampi_param_at */
    amp_param_entry *entries; /* host copy of the table */
    ampi_name_slot *names;
    size_t n_names; /* slots: a power of two, at least twice as many as parameters; 0: no table yet */
    int committed;
    int stochastic; /* a model copy may differ from the rounded master */
    uint32_t count; /* of the last inspection's desc: count_lost */
    int drawn;      /* the last step that counted them rounds model copies stochastically */
    void *arena[AMPI_ARENAS];
    amp_param_table table;
    amp_step_record *record; /* context memory: of steps, and of norms asked for by hand */
    amp_step_record *probe;
    amp_step_mirror *mirror;
    ampi_phase phase;
    int32_t late;          /* 1: the phase is of an iteration that its scaler has ended before */
    int32_t holds;         /* 1: its accumulation window (amp_window_begin) holds the scaler's scale */
    amp_scaler *scaler;    /* whose iteration the phase belongs to, and whose scale is held; NULL: none */
    amp_params *next_tied; /* in that scaler's list of such sets */
    amp_params *next;      /* in the context's list of committed sets */
};
static ampi_param *ampi_param_at(const amp_params *p, size_t i) { return &p->pieces[i / AMPI_PARAMS][i % AMPI_PARAMS]; }
#define AMPI_MAX_PARAMS 0xffffff /* the index has 24 bits of a random stream's number, see amp_draw_of */
static void ampi_untie(amp_params *p);
static void ampi_weights_changed(amp_ctx *ctx, const amp_params *p); /* casts of them are made again */
static void ampi_iteration_ended(amp_ctx *ctx);                      /* casts of arrays that no set owns, too */

static amp_params_desc ampi_params_defaults(amp_params_desc d) {
    if (d.model == AMP_AUTO) d.model = AMP_F16;
    if (d.grad == AMP_AUTO) d.grad = d.model;
    if (d.moments == 0)
        d.moments = 2;
    else if (d.moments == AMP_NONE)
        d.moments = 0;
    if (d.moment == AMP_AUTO) d.moment = AMP_F32;
    return d;
}

static int ampi_is_layout(const amp_params_desc *d) { /* d with its defaults filled in */
    int model = d->model == AMP_F16 || d->model == AMP_BF16 || d->model == AMP_F32;
    int master = (uint32_t)d->master <= (uint32_t)AMP_MASTER_SPLIT8;
    int kahan = d->master != AMP_MASTER_KAHAN || d->model == AMP_BF16;
    int kept = d->moment == AMP_F32 || d->moment == AMP_BF16 || d->moment == AMP_MOMENT_8BIT;
    int moments = d->moments >= 0 && d->moments <= AMP_MOMENTS && kept;
    return model && master && kahan && moments && ampi_is_dtype(d->grad);
}
static amp_master ampi_layout_for(amp_master set, amp_dtype model) { /* an FP32 model copy is the master */
    return model == AMP_F32 ? AMP_MASTER_F32 : set;
}

static size_t ampi_moment_bytes(amp_dtype t) { return t == AMP_MOMENT_8BIT ? 1 : amp_dtype_size(t); }

AMP_API amp_layout amp_layout_bytes(const amp_params_desc *desc) {
    amp_params_desc d = AMP_ZERO;
    amp_layout l = AMP_ZERO;
    amp_master kept;
    if (desc) d = *desc;
    d = ampi_params_defaults(d);
    if (!ampi_is_layout(&d)) return l;
    kept = ampi_layout_for(d.master, d.model);
    if (kept == AMP_MASTER_F32) l.master = 4;
    if (ampi_has_low(kept)) l.master = (uint32_t)amp_dtype_size(ampi_low_type(kept));
    if (d.model != AMP_F32) l.model = (uint32_t)amp_dtype_size(d.model);
    l.grad = (uint32_t)amp_dtype_size(d.grad);
    l.moments = (uint32_t)d.moments * (uint32_t)ampi_moment_bytes(d.moment);
    if (d.accumulate) l.accum = 4;
    l.total = l.master + l.model + l.grad + l.moments + l.accum;
    return l;
}

static amp_status ampi_check_layout(amp_ctx *ctx, const amp_params_desc *d) {
    if (ampi_is_layout(d)) return AMP_OK;
    AMPI_CHECK(d->model == AMP_F16 || d->model == AMP_BF16 || d->model == AMP_F32,
        "desc.model is %d (%s); f16, bf16 or f32 is needed", (int)d->model, amp_dtype_name(d->model));
    AMPI_CHECK(ampi_is_dtype(d->grad), "desc.grad is %d (%s)", (int)d->grad, amp_dtype_name(d->grad));
    AMPI_CHECK((uint32_t)d->master <= (uint32_t)AMP_MASTER_SPLIT8, "desc.master is %d", (int)d->master);
    AMPI_CHECK(d->master != AMP_MASTER_KAHAN || d->model == AMP_BF16,
        "desc.master AMP_MASTER_KAHAN needs a bf16 model, not %s", amp_dtype_name(d->model));
    AMPI_CHECK(d->moments >= 0 && d->moments <= AMP_MOMENTS,
        "desc.moments is %d; 0 (for 2), 1 to %d or AMP_NONE is needed", (int)d->moments, AMP_MOMENTS);
    return AMPI_INVALID(
        "desc.moment is %d (%s); f32, bf16 or AMP_MOMENT_8BIT is needed", (int)d->moment, amp_dtype_name(d->moment));
}

static amp_status ampi_do_params_create(
    amp_params **out, amp_ctx *ctx, int version, size_t size, const amp_params_desc *desc) {
    amp_params_desc d = AMP_ZERO;
    amp_params *p;
    AMPI_CHECK_CREATE(out, version, size, &d, desc);
    AMPI_HAS(inspect);
    if (!d.label) d.label = "params";
    AMPI_CHECK(strlen(d.label) < sizeof p->label, "desc.label is longer than 23 characters");
    AMPI_CHECK(d.flags == 0, "desc.flags is not 0");
    d = ampi_params_defaults(d);
    AMPI_TRY(ampi_check_layout(ctx, &d));
    p = (amp_params *)ampi_host_new(ctx, sizeof *p);
    AMPI_MEMORY(p);
    p->ctx = ctx;
    p->desc = d;
    memcpy(p->label, d.label, strlen(d.label));
    p->desc.label = NULL;
    *out = p;
    return AMP_OK;
}
AMP_API amp_status amp_params_create_checked(
    amp_params **out, amp_ctx *ctx, int version, size_t size, const amp_params_desc *desc) {
    if (out) *out = NULL;
    AMPI_VERB(ctx, params_create, (out, ctx, version, size, desc));
}

AMP_API size_t amp_params_count(const amp_params *p) { return p ? p->n : 0; }
/* ---- parameters by name: a table of slots; a name is in the first free one from where its hash points ---- */
static uint32_t ampi_name_hash(const char *name) { /* FNV-1a */
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}
static void ampi_name_link(amp_params *p, ampi_name_slot name) {
    size_t i = name.hash & (p->n_names - 1);
    while (p->names[i].place)
        i = (i + 1) & (p->n_names - 1);
    p->names[i] = name;
}
static amp_status ampi_names_grow(amp_params *p) { /* twice the slots */
    ampi_name_slot *old = p->names;
    const size_t n_old = p->n_names, n_new = n_old ? 2 * n_old : 16;
    ampi_name_slot *names = (ampi_name_slot *)ampi_host_new(p->ctx, n_new * sizeof *names);
    size_t i;
    if (!names) return AMP_ERR_NO_MEMORY;
    p->names = names;
    p->n_names = n_new;
    for (i = 0; i < n_old; i++)
        if (old[i].place) ampi_name_link(p, old[i]);
    ampi_host_drop(p->ctx, old, n_old * sizeof *old);
    return AMP_OK;
}
static size_t ampi_param_find(const amp_params *p, const char *name, uint32_t hash) {
    const size_t mask = p->n_names - 1;
    size_t i;
    if (!p->n) return 0;
    for (i = hash & mask; p->names[i].place; i = (i + 1) & mask) {
        const size_t at = p->names[i].place - 1;
        if (p->names[i].hash == hash && strcmp(ampi_param_at(p, at)->name, name) == 0) return at;
    }
    return p->n;
}
AMP_API size_t amp_params_find(const amp_params *p, const char *name) {
    return p && name ? ampi_param_find(p, name, ampi_name_hash(name)) : amp_params_count(p);
}

/* count, rows and cols from what is given of them */
static amp_status ampi_param_shape(amp_ctx *ctx, const char *name, amp_param_desc *d) {
    size_t area;
    AMPI_CHECK(!d->rows == !d->cols, "desc.%s of \"%s\" is 0, but desc.%s is %llu", d->rows ? "cols" : "rows", name,
        d->rows ? "rows" : "cols", AMPI_ULL(d->rows | d->cols));
    AMPI_CHECK(ampi_product(&area, d->rows, d->cols) && d->count <= (size_t)-1 / 32 && area <= (size_t)-1 / 32,
        "desc.count of \"%s\" is too large", name);
    if (d->count == 0) d->count = area;
    AMPI_CHECK(d->count != 0, "desc.count of \"%s\" is 0", name);
    AMPI_CHECK(!area || area == d->count, "desc.count of \"%s\" is %llu, but desc.rows * desc.cols is %llu", name,
        AMPI_ULL(d->count), AMPI_ULL(area));
    if (area == 0) {
        d->rows = 1;
        d->cols = d->count;
    }
    return AMP_OK;
}

/* the model copy, the gradient and the master: their dtypes, and which of them are adopted */
static amp_status ampi_param_arrays(amp_params *p, const char *name, amp_param_desc *d) {
    const char *given = d->master ? "master" : "model"; /* of FP32 weights */
    amp_dtype model = d->keep_f32 ? AMP_F32 : p->desc.model;
    amp_ctx *ctx = p->ctx;
    if (d->model.dtype == AMP_AUTO) d->model.dtype = model;
    if (d->grad.dtype == AMP_AUTO) d->grad.dtype = d->keep_f32 ? AMP_F32 : p->desc.grad;
    AMPI_CHECK(d->model.dtype == model, "desc.model.dtype of \"%s\" is %s, but its model copy is %s", name,
        amp_dtype_name(d->model.dtype), amp_dtype_name(model));
    AMPI_TRY(ampi_check_array(ctx, "desc.model", d->model, d->count, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.grad", d->grad, d->count, 0));
    AMPI_CHECK(ampi_is_dtype(d->grad.dtype), "desc.grad.dtype of \"%s\" is %d", name, (int)d->grad.dtype);
    if (model == AMP_F32) { /* one FP32 array is master and model copy */
        AMPI_CHECK(!d->master || !d->model.data || d->model.data == (void *)d->master,
            "desc.master and desc.model of \"%s\" differ, but an FP32 model copy is the master", name);
        if (!d->master) memcpy(&d->master, &d->model.data, sizeof d->master);
        d->model.data = NULL;
    } else if (p->desc.master != AMP_MASTER_F32 && d->master) {
        return AMPI_INVALID("desc.master of \"%s\" is given, but the set's layout has no FP32 masters", name);
    }
    AMPI_CHECK((uintptr_t)d->master % sizeof(float) == 0, "desc.%s of \"%s\" is not aligned to 4 bytes", given, name);
    return AMP_OK;
}

/* SPLIT and SPLIT8 keep the master's upper half in the model copy, so what FP16 cannot hold has no master */
static amp_status ampi_check_weights(const amp_params *p, const amp_param_desc *d, const char *name, const float *w) {
    const amp_master kept = p->desc.master;
    const uint32_t inf = ampi_format_of(AMP_F16).over;
    const char *needs = "AMP_MASTER_SPLIT needs |w| < 65520";
    amp_ctx *ctx = p->ctx;
    size_t i;
    if (kept == AMP_MASTER_SPLIT8)
        needs = "AMP_MASTER_SPLIT8 needs |w| < 65519.9375";
    else if (kept != AMP_MASTER_SPLIT)
        return AMP_OK;
    for (i = 0; i < d->count && d->model.dtype == AMP_F16; i++) {
        const uint32_t copy = amp_pair_pack(w[i], kept, AMP_F16, AMP_NEAREST, 0) & 0x7fffu;
        AMPI_CHECK(copy < inf, "weight %llu of \"%s\" is %g, which FP16 cannot hold (%s)", AMPI_ULL(i), name,
            (double)w[i], needs);
    }
    return AMP_OK;
}

static void ampi_param_forget_init(const amp_ctx *ctx, ampi_param *q) {
    ampi_host_drop(ctx, q->init, q->d.count * sizeof(float));
    q->init = NULL;
}
static void ampi_param_free(const amp_ctx *ctx, ampi_param *q) {
    ampi_param_forget_init(ctx, q);
    if (q->name) ampi_host_drop(ctx, q->name, strlen(q->name) + 1);
    q->name = NULL;
}

static amp_status ampi_pieces_grow(amp_params *p) { /* room for one parameter more */
    const amp_allocator *host = &p->ctx->host;
    ampi_param **pieces = p->pieces;
    if (p->n < p->n_pieces * AMPI_PARAMS) return AMP_OK;
    pieces = (ampi_param **)ampi_grow(host, pieces, p->n_pieces, &p->cap_pieces, sizeof *pieces);
    if (!pieces) return AMP_ERR_NO_MEMORY;
    p->pieces = pieces;
    pieces[p->n_pieces] = (ampi_param *)ampi_host_take(host, AMPI_PARAMS * sizeof **pieces);
    if (!pieces[p->n_pieces]) return AMP_ERR_NO_MEMORY;
    p->n_pieces++;
    return AMP_OK;
}
/* a place in the list, and in the table of names */
static amp_status ampi_param_append(amp_params *p, const ampi_param *q, uint32_t hash) {
    ampi_name_slot name;
    AMPI_TRY(ampi_pieces_grow(p));
    if (2 * (p->n + 1) > p->n_names) AMPI_TRY(ampi_names_grow(p));
    *ampi_param_at(p, p->n++) = *q;
    name.hash = hash;
    name.place = (uint32_t)p->n;
    ampi_name_link(p, name);
    return AMP_OK;
}
/* copies of what the caller may change from now on */
static amp_status ampi_param_keep(amp_params *p, const char *name, uint32_t hash, ampi_param *q) {
    const amp_allocator *host = &p->ctx->host;
    size_t len = strlen(name) + 1;
    q->name = (char *)ampi_host_alloc(host, len);
    if (!q->name) return AMP_ERR_NO_MEMORY;
    memcpy(q->name, name, len);
    if (q->d.init) {
        q->init = (float *)ampi_host_alloc(host, q->d.count * sizeof(float));
        if (!q->init) return AMP_ERR_NO_MEMORY;
        memcpy(q->init, q->d.init, q->d.count * sizeof(float));
    }
    return ampi_param_append(p, q, hash);
}

static amp_status ampi_do_params_add(amp_params *p, const amp_param_desc *desc) {
    amp_ctx *ctx = p->ctx;
    ampi_param q = AMP_ZERO;
    char number[24];
    const char *name;
    uint32_t hash;
    AMPI_CHECK_DESC(desc);
    AMPI_STAGE(!p->committed, "the set is committed");
    AMPI_CHECK(p->n < AMPI_MAX_PARAMS, "the set has %d parameters, and more are not possible", AMPI_MAX_PARAMS);
    q.d = *desc;
    name = desc->name ? desc->name : number;
    if (!desc->name) snprintf(number, sizeof number, "%llu", AMPI_ULL(p->n));
    AMPI_CHECK(strlen(name) <= 255, "desc.name is longer than 255 characters");
    hash = ampi_name_hash(name);
    AMPI_CHECK(ampi_param_find(p, name, hash) == p->n, "desc.name \"%s\" is taken", name);
    AMPI_TRY(ampi_param_shape(ctx, name, &q.d));
    AMPI_CHECK(
        q.d.group < AMP_GROUPS, "desc.group of \"%s\" is %u; at most %d groups", name, (unsigned)q.d.group, AMP_GROUPS);
    AMPI_TRY(ampi_param_arrays(p, name, &q.d));
    if (q.d.init) AMPI_TRY(ampi_check_weights(p, &q.d, name, q.d.init));
    if (ampi_param_keep(p, name, hash, &q) != AMP_OK) {
        ampi_param_free(ctx, &q);
        return amp_fail(ctx, AMP_ERR_NO_MEMORY, "no host memory");
    }
    return AMP_OK;
}
AMP_API amp_status amp_params_add(amp_params *p, const amp_param_desc *desc) { AMPI_VERB_OF(p, params_add, (p, desc)); }

static void ampi_params_undo(amp_params *p) { /* back to "not committed" */
    size_t i;
    ampi_untie(p);
    if (p->committed) {
        AMPI_UNLINK(amp_params, p->ctx->sets, p, next);
        ampi_weights_changed(p->ctx, p);
    }
    for (i = 0; i < AMPI_ARENAS; i++) {
        ampi_free_block(p->ctx, p->arena[i]);
        p->arena[i] = NULL;
    }
    if (p->ctx->b->mirror_destroy) (p->ctx->b->mirror_destroy)(p->ctx, p->mirror);
    p->mirror = NULL;
    ampi_host_drop(p->ctx, p->entries, p->n * sizeof *p->entries);
    p->entries = NULL;
    p->record = p->probe = NULL;
    memset(&p->table, 0, sizeof p->table);
    p->committed = 0;
}

static void ampi_do_params_destroy(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    size_t i;
    ampi_params_undo(p);
    for (i = 0; i < p->n; i++)
        ampi_param_free(ctx, ampi_param_at(p, i));
    for (i = 0; i < p->n_pieces; i++)
        ampi_host_drop(ctx, p->pieces[i], AMPI_PARAMS * sizeof **p->pieces);
    ampi_host_drop(ctx, p->pieces, p->cap_pieces * sizeof *p->pieces);
    ampi_host_drop(ctx, p->names, p->n_names * sizeof *p->names);
    ampi_host_drop(ctx, p, sizeof *p);
}
AMP_API void amp_params_destroy(amp_params *p) { AMPI_DESTROY(AMPI_CTX(p), params_destroy, (p)); }

/* ---- layout: where the arrays of a set are in its arenas ----
   The same walk measures (base NULL: every piece is NULL) and places. */
typedef struct ampi_layout {
    char *base[AMPI_ARENAS];
    uint64_t bytes[AMPI_ARENAS]; /* used so far, saturating; each piece is a multiple of 256 */
    uint64_t params, chunks;     /* walked over so far */
} ampi_layout;

static void *ampi_place(ampi_layout *l, ampi_arena which, uint64_t bytes) { /* the next piece of an arena */
    uint64_t at = l->bytes[which], end = at + ampi_round256(bytes);
    l->bytes[which] = end < at ? UINT64_MAX : end;
    return bytes && l->base[which] ? l->base[which] + at : NULL;
}

/* bytes of a moment array: 8-bit codes are followed by their scales */
static uint64_t ampi_moment_array(amp_dtype t, uint64_t n) {
    return t == AMP_MOMENT_8BIT ? ampi_round256(n) + ampi_moment_blocks(n) * sizeof(float) : n * amp_dtype_size(t);
}
/* the arrays of one parameter: adopted ones are where they are */
static void ampi_place_entry(
    ampi_layout *l, amp_param_entry *e, const amp_params_desc *set, const amp_param_desc *adopted) {
    uint64_t n = e->count;
    int k;
    if (e->layout == AMP_MASTER_F32)
        e->master = adopted->master ? adopted->master : ampi_place(l, AMPI_MASTERS, 4 * n);
    else if (e->layout != AMP_MASTER_NONE)
        e->low = ampi_place(l, AMPI_MASTERS, n * amp_dtype_size(ampi_low_type(e->layout)));
    if (e->model_dtype != AMP_F32)
        e->model = adopted->model.data ? adopted->model.data : ampi_place(l, AMPI_MODELS, 2 * n);
    e->grad = adopted->grad.data ? adopted->grad.data : ampi_place(l, AMPI_GRADS, n * amp_dtype_size(e->grad_dtype));
    for (k = 0; k < set->moments; k++)
        e->moment[k] = ampi_place(l, AMPI_MOMENTS, ampi_moment_array(e->moment_dtype, n));
    if (set->accumulate) e->accum = (float *)ampi_place(l, AMPI_ACCUMS, 4 * n);
    e->first_chunk = (uint32_t)l->chunks;
    l->params++;
    l->chunks += (n - 1) / AMP_CHUNK + 1;
}

typedef struct ampi_tables { /* what the arena of tables holds */
    amp_step_record *record, *probe;
    amp_param_table table;
} ampi_tables;

static ampi_tables ampi_place_tables(ampi_layout *l) { /* after every parameter */
    ampi_tables t = AMP_ZERO;
    t.record = (amp_step_record *)ampi_place(l, AMPI_TABLES, sizeof *t.record);
    t.probe = (amp_step_record *)ampi_place(l, AMPI_TABLES, sizeof *t.probe);
    t.table.totals = (amp_totals *)ampi_place(l, AMPI_TABLES, sizeof *t.table.totals);
    t.table.entries = (amp_param_entry *)ampi_place(l, AMPI_TABLES, l->params * sizeof *t.table.entries);
    t.table.chunks = (amp_chunk *)ampi_place(l, AMPI_TABLES, l->chunks * sizeof *t.table.chunks);
    t.table.partials = (amp_partial *)ampi_place(l, AMPI_TABLES, l->chunks * sizeof *t.table.partials);
    t.table.counts = (amp_update_count *)ampi_place(l, AMPI_TABLES, l->params * sizeof *t.table.counts);
    t.table.n_entries = (uint32_t)l->params;
    t.table.n_chunks = (uint32_t)l->chunks;
    return t;
}

static void ampi_place_set(ampi_layout *l, amp_params *p) {
    ampi_tables t;
    size_t i;
    memset(l->bytes, 0, sizeof l->bytes);
    l->params = l->chunks = 0;
    for (i = 0; i < p->n; i++)
        ampi_place_entry(l, &p->entries[i], &p->desc, &ampi_param_at(p, i)->d);
    t = ampi_place_tables(l);
    p->record = t.record;
    p->probe = t.probe;
    p->table = t.table;
    for (i = 0; i < p->n; i++)
        p->table.n_elements += p->entries[i].count;
}

/* ---- weights between host and context memory ---- */

static amp_array ampi_entry_array(void *data, amp_dtype t, uint64_t count) {
    return data ? amp_arrn(data, t, (size_t)count) : amp_arr(NULL, AMP_AUTO);
}
static amp_array ampi_entry_master(const amp_param_entry *e) { return ampi_entry_array(e->master, AMP_F32, e->count); }
static amp_array ampi_entry_model(const amp_param_entry *e) { /* what products read */
    return ampi_entry_array(e->model ? e->model : e->master, e->model_dtype, e->count);
}
static amp_array ampi_entry_grad(const amp_param_entry *e) {
    return ampi_entry_array(e->grad, e->grad_dtype, e->count);
}
static amp_array ampi_entry_moment(const amp_param_entry *e, size_t k) {
    return ampi_entry_array(e->moment[k], e->moment_dtype, e->count);
}
/* The same, for counting zeros: those of codes are E4M3's. */
static amp_array ampi_entry_zeros(const amp_param_entry *e, size_t k) {
    const amp_dtype t = e->moment_dtype == AMP_MOMENT_8BIT ? AMP_F8E4M3 : e->moment_dtype;
    return ampi_entry_array(e->moment[k], t, e->count);
}
static amp_array ampi_entry_scale(const amp_param_entry *e, uint32_t k) { /* of 8-bit moments */
    if (!e->moment[k] || e->moment_dtype != AMP_MOMENT_8BIT) return amp_arr(NULL, AMP_AUTO);
    return amp_arrn(ampi_moment_scales(e, k), AMP_F32, (size_t)ampi_moment_blocks(e->count));
}
static amp_array ampi_entry_low(const amp_param_entry *e) {
    return ampi_entry_array(e->low, ampi_low_type(e->layout), e->count);
}

/* Weights without FP32 masters travel as model copies and low parts, a block of at most this many at a time. */
#define AMPI_BLOCK_WEIGHTS ((size_t)1 << 19)

typedef struct ampi_staging { /* host memory for one block */
    uint16_t *model, *low;    /* SPLIT8's low parts are bytes */
    size_t weights;
} ampi_staging;

static amp_status ampi_staging_begin(amp_ctx *ctx, uint64_t count, ampi_staging *b) {
    b->weights = count < AMPI_BLOCK_WEIGHTS ? (size_t)count : AMPI_BLOCK_WEIGHTS;
    b->model = (uint16_t *)ampi_host_new(ctx, 4 * b->weights);
    AMPI_MEMORY(b->model);
    b->low = b->model + b->weights;
    return AMP_OK;
}
static void ampi_staging_end(amp_ctx *ctx, ampi_staging *b) { ampi_host_drop(ctx, b->model, 4 * b->weights); }

static uint32_t ampi_weight_pack(const amp_param_entry *e, float w) { /* the low part above the model copy */
    if (e->low) return amp_pair_pack(w, e->layout, e->model_dtype, AMP_NEAREST, 0);
    return ampi_encode(ampi_bits(w), e->model_dtype, AMP_NEAREST, 0, 0);
}

static amp_status ampi_block_write(
    amp_ctx *ctx, const amp_param_entry *e, const ampi_staging *b, size_t from, size_t n, const float *src) {
    const amp_dtype low = ampi_low_type(e->layout);
    const size_t size = amp_dtype_size(low);
    size_t i;
    for (i = 0; i < n; i++) {
        uint32_t both = ampi_weight_pack(e, src[from + i]);
        b->model[i] = (uint16_t)both;
        if (e->low) ampi_store_pattern(b->low, low, i, both >> 16);
    }
    AMPI_TRY((ctx->b->copy)(ctx, (char *)e->model + 2 * from, b->model, 2 * n));
    return e->low ? (ctx->b->copy)(ctx, (char *)e->low + from * size, b->low, n * size) : AMP_OK;
}

static amp_status ampi_block_read(
    amp_ctx *ctx, const amp_param_entry *e, const ampi_staging *b, size_t from, size_t n, float *dst) {
    const size_t size = amp_dtype_size(ampi_low_type(e->layout));
    amp_param_entry host = *e; /* its arrays in host memory */
    size_t i;
    AMPI_TRY((ctx->b->copy)(ctx, b->model, (const char *)e->model + 2 * from, 2 * n));
    if (e->low) AMPI_TRY((ctx->b->copy)(ctx, b->low, (const char *)e->low + from * size, n * size));
    host.model = b->model;
    host.low = e->low ? b->low : NULL;
    for (i = 0; i < n; i++)
        dst[from + i] = amp_weight_load(&host, i);
    return AMP_OK;
}

/* All weights of an entry: from src if it is given, else to dst. The caller casts the model copy of an FP32 master. */
static amp_status ampi_move_staged(
    amp_ctx *ctx, const amp_param_entry *e, const ampi_staging *b, float *dst, const float *src) {
    size_t from, n, count = (size_t)e->count;
    if (e->master && src) return (ctx->b->copy)(ctx, e->master, src, 4 * count);
    if (e->master) return (ctx->b->copy)(ctx, dst, e->master, 4 * count);
    for (from = 0; from < count; from += n) {
        n = count - from < b->weights ? count - from : b->weights;
        if (src)
            AMPI_TRY(ampi_block_write(ctx, e, b, from, n, src));
        else
            AMPI_TRY(ampi_block_read(ctx, e, b, from, n, dst));
    }
    return AMP_OK;
}
static amp_status ampi_move_weights(amp_ctx *ctx, const amp_param_entry *e, float *dst, const float *src) {
    ampi_staging b = {NULL, NULL, 0};
    amp_status st;
    if (!e->master) AMPI_TRY(ampi_staging_begin(ctx, e->count, &b));
    st = ampi_move_staged(ctx, e, &b, dst, src);
    if (!e->master) ampi_staging_end(ctx, &b);
    return st;
}

static amp_status ampi_cast_entry(amp_ctx *ctx, amp_array dst, amp_array src) { /* to nearest */
    amp_cast_desc c = AMP_ZERO;
    return (ctx->b->cast)(ctx, dst, src, src.count, &c);
}
static amp_status ampi_renew_model(amp_ctx *ctx, const amp_param_entry *e) { /* where masters give it */
    return e->master && e->model ? ampi_cast_entry(ctx, ampi_entry_model(e), ampi_entry_master(e)) : AMP_OK;
}

/* ---- commit, in the order of its steps ---- */

static amp_status ampi_commit_entries(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    size_t i;
    if (p->n == 0) return AMP_OK;
    p->entries = (amp_param_entry *)ampi_host_new(ctx, p->n * sizeof *p->entries);
    AMPI_MEMORY(p->entries);
    for (i = 0; i < p->n; i++) {
        const amp_param_desc *d = &ampi_param_at(p, i)->d;
        amp_param_entry *e = &p->entries[i];
        e->count = d->count;
        e->layout = ampi_layout_for(p->desc.master, d->model.dtype);
        e->model_dtype = d->model.dtype;
        e->grad_dtype = d->grad.dtype;
        e->moment_dtype = p->desc.moment;
        e->no_decay = d->no_decay != 0;
        e->group = d->group;
    }
    return AMP_OK;
}

static amp_status ampi_commit_arenas(amp_params *p) {
    static const char suffix[AMPI_ARENAS][9] = {".master", ".model", ".grad", ".moments", ".accum", ".tables"};
    amp_ctx *ctx = p->ctx;
    ampi_layout l = AMP_ZERO;
    char label[sizeof p->label + sizeof ".moments"];
    int k, fits;
    ampi_place_set(&l, p);
    fits = l.chunks <= 0xffffffffu;
    for (k = 0; k < AMPI_ARENAS; k++)
        fits &= l.bytes[k] < (size_t)-1;
    AMPI_CHECK(fits, "the set is too large");
    for (k = 0; k < AMPI_ARENAS; k++) {
        snprintf(label, sizeof label, "%.23s%.8s", p->label, suffix[k]);
        AMPI_TRY(ampi_alloc_block(ctx, &p->arena[k], (size_t)l.bytes[k], label, 1));
        l.base[k] = (char *)p->arena[k];
    }
    ampi_place_set(&l, p);
    return AMP_OK;
}

/* The list of chunks has those of the parameters in use; returns their number. */
static size_t ampi_chunks_in_use(const amp_params *p, const uint8_t *used, amp_chunk *chunks, uint64_t *elements) {
    size_t i, k, at = 0;
    *elements = 0;
    for (i = 0; i < p->n; i++) {
        if (used && !used[i]) continue;
        *elements += p->entries[i].count;
        for (k = 0; k * AMP_CHUNK < p->entries[i].count; k++, at++) {
            if (!chunks) continue;
            chunks[at].param = (uint32_t)i;
            chunks[at].index = (uint32_t)k;
        }
    }
    return at;
}
/* That list, of n chunks, goes to the backend. */
static amp_status ampi_send_chunks(amp_params *p, const uint8_t *used, size_t n, uint64_t *elements) {
    amp_ctx *ctx = p->ctx;
    amp_chunk *chunks = (amp_chunk *)ampi_host_new(ctx, n * sizeof *chunks);
    amp_status st;
    AMPI_MEMORY(chunks);
    (void)ampi_chunks_in_use(p, used, chunks, elements);
    st = (ctx->b->copy)(ctx, p->table.chunks, chunks, n * sizeof *chunks);
    ampi_host_drop(ctx, chunks, n * sizeof *chunks);
    return st;
}
static amp_status ampi_send_entries(amp_params *p) {
    return (p->ctx->b->copy)(p->ctx, p->table.entries, p->entries, p->n * sizeof *p->entries);
}
static amp_status ampi_commit_tables(amp_params *p) {
    uint64_t elements;
    if (p->n == 0) return AMP_OK;
    AMPI_TRY(ampi_send_chunks(p, NULL, p->table.n_chunks, &elements));
    return ampi_send_entries(p);
}

/* the most weights of a parameter that are written through host memory; 0: none are */
static uint64_t ampi_most_staged(const amp_params *p) {
    uint64_t most = 0;
    size_t i;
    for (i = 0; i < p->n; i++)
        if (ampi_param_at(p, i)->init && !p->entries[i].master && p->entries[i].count > most)
            most = p->entries[i].count;
    return most;
}
static amp_status ampi_commit_staged(amp_params *p, const ampi_staging *b) {
    amp_ctx *ctx = p->ctx;
    size_t i;
    for (i = 0; i < p->n; i++) { /* from init; else from what was adopted; else the zeros that are there */
        const ampi_param *q = ampi_param_at(p, i);
        const amp_param_entry *e = &p->entries[i];
        if (q->init) AMPI_TRY(ampi_move_staged(ctx, e, b, NULL, q->init));
        if (q->init || q->d.master)
            AMPI_TRY(ampi_renew_model(ctx, e));
        else if (e->master && q->d.model.data)
            AMPI_TRY(ampi_cast_entry(ctx, ampi_entry_master(e), ampi_entry_model(e)));
    }
    return AMP_OK;
}
/* Host memory comes first: without it nothing that was adopted changes. */
static amp_status ampi_commit_weights(amp_params *p) {
    ampi_staging b = {NULL, NULL, 0};
    uint64_t most = ampi_most_staged(p);
    amp_status st;
    if (most) AMPI_TRY(ampi_staging_begin(p->ctx, most, &b));
    st = ampi_commit_staged(p, &b);
    if (most) ampi_staging_end(p->ctx, &b);
    return st;
}

/* Adopted arrays, into r if that is not NULL; returns how many. */
static size_t ampi_adopted(const amp_params *p, ampi_range *r) {
    size_t i, k, n = 0;
    for (i = 0; i < p->n; i++) {
        const amp_param_desc *d = &ampi_param_at(p, i)->d;
        const ampi_range all[3] = {
            {(uintptr_t)d->master, d->count * sizeof *d->master, i, "master"},
            {(uintptr_t)d->model.data, d->count * amp_dtype_size(d->model.dtype), i, "model copy"},
            {(uintptr_t)d->grad.data, d->count * amp_dtype_size(d->grad.dtype), i, "gradient"},
        };
        for (k = 0; k < 3; k++) {
            if (!all[k].first) continue;
            if (r) r[n] = all[k];
            n++;
        }
    }
    return n;
}
/* A step would update twice what two parameters share. */
static amp_status ampi_check_adopted(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    const size_t n = ampi_adopted(p, NULL);
    const ampi_range *meet;
    ampi_range *r;
    amp_status st = AMP_OK;
    if (!n) return AMP_OK;
    r = (ampi_range *)ampi_host_new(ctx, n * sizeof *r);
    AMPI_MEMORY(r);
    (void)ampi_adopted(p, r);
    meet = ampi_ranges_meet(r, n);
    if (meet)
        st = AMPI_INVALID("the %s of \"%.60s\" overlaps the %s of \"%.60s\" (tied weights are one parameter that is "
                          "used twice, and its gradients add up)",
            meet->what, ampi_param_at(p, meet->owner)->name, meet[-1].what, ampi_param_at(p, meet[-1].owner)->name);
    ampi_host_drop(ctx, r, n * sizeof *r);
    return st;
}

static amp_status ampi_commit(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    AMPI_TRY((ctx->b->may_wait)(ctx));
    AMPI_TRY(ampi_check_adopted(p));
    AMPI_TRY(ampi_commit_entries(p));
    if (ctx->b->mirror_create) AMPI_TRY((ctx->b->mirror_create)(ctx, &p->mirror));
    AMPI_TRY(ampi_commit_arenas(p));
    AMPI_TRY(ampi_commit_tables(p));
    AMPI_TRY(ampi_commit_weights(p));
    return ampi_settle(ctx, (ctx->b->sync)(ctx));
}

static amp_status ampi_do_params_commit(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    amp_status st;
    size_t i;
    AMPI_STAGE(!p->committed, "the set is committed already");
    st = ampi_commit(p);
    if (st != AMP_OK) {
        ampi_params_undo(p);
        return st;
    }
    for (i = 0; i < p->n; i++)
        ampi_param_forget_init(p->ctx, ampi_param_at(p, i));
    p->committed = 1;
    p->next = p->ctx->sets;
    p->ctx->sets = p;
    return AMP_OK;
}
AMP_API amp_status amp_params_commit(amp_params *p) { AMPI_VERB_OF(p, params_commit, (p)); }

AMP_API amp_param_entry amp_param_entry_get(const amp_params *p, size_t i) {
    amp_param_entry none = AMP_ZERO;
    return p && p->committed && i < p->n ? p->entries[i] : none;
}
AMP_API amp_array amp_param_model(const amp_params *p, size_t i) {
    const amp_param_entry e = amp_param_entry_get(p, i);
    return ampi_entry_model(&e);
}
AMP_API amp_array amp_param_grad(const amp_params *p, size_t i) {
    const amp_param_entry e = amp_param_entry_get(p, i);
    return ampi_entry_grad(&e);
}
AMP_API amp_param amp_param_get(const amp_params *p, size_t i) {
    const amp_param_entry e = amp_param_entry_get(p, i);
    amp_param view = AMP_ZERO;
    size_t k;
    if (!p || i >= p->n) return view;
    view.name = ampi_param_at(p, i)->name;
    view.rows = ampi_param_at(p, i)->d.rows;
    view.cols = ampi_param_at(p, i)->d.cols;
    view.count = ampi_param_at(p, i)->d.count;
    view.model = ampi_entry_model(&e);
    view.grad = ampi_entry_grad(&e);
    view.master = ampi_entry_master(&e);
    view.low = ampi_entry_low(&e);
    view.accum = ampi_entry_array(e.accum, AMP_F32, e.count);
    for (k = 0; k < AMP_MOMENTS; k++) {
        view.moment[k] = ampi_entry_moment(&e, k);
        view.moment_scale[k] = ampi_entry_scale(&e, (uint32_t)k);
    }
    return view;
}
AMP_API const amp_step_record *amp_step_record_ptr(const amp_params *p) { return p ? p->record : NULL; }

/* a committed set of this context */
static amp_status ampi_check_params(amp_ctx *ctx, const amp_params *p) {
    AMPI_CHECK(p, "p is NULL");
    AMPI_CHECK(p->ctx == ctx, "p belongs to a different context");
    AMPI_STAGE(p->committed, "the set is not committed (amp_params_commit)");
    return AMP_OK;
}

/* parameter i as an argument */
static amp_status ampi_check_param(amp_ctx *ctx, const amp_params *p, size_t i, const char *name, const void *host) {
    AMPI_TRY(ampi_check_params(ctx, p));
    AMPI_CHECK(i < p->n, "i is %llu, but the set has %llu parameters", AMPI_ULL(i), AMPI_ULL(p->n));
    AMPI_CHECK(host, "%s is NULL", name);
    return (ctx->b->may_wait)(ctx);
}
static amp_status ampi_do_param_read(const amp_params *p, size_t i, float *dst) {
    amp_ctx *ctx = p->ctx;
    AMPI_TRY(ampi_check_param(ctx, p, i, "dst", dst));
    return ampi_move_weights(ctx, &p->entries[i], dst, NULL);
}
AMP_API amp_status amp_param_read(const amp_params *p, size_t i, float *dst) {
    AMPI_VERB_OF(p, param_read, (p, i, dst));
}
static amp_status ampi_do_param_write(amp_params *p, size_t i, const float *src) {
    amp_ctx *ctx = p->ctx;
    AMPI_TRY(ampi_check_param(ctx, p, i, "src", src));
    AMPI_TRY(ampi_check_weights(p, &ampi_param_at(p, i)->d, ampi_param_at(p, i)->name, src));
    AMPI_TRY(ampi_move_weights(ctx, &p->entries[i], NULL, src));
    ampi_weights_changed(ctx, p);
    return ampi_renew_model(ctx, &p->entries[i]);
}
AMP_API amp_status amp_param_write(amp_params *p, size_t i, const float *src) {
    AMPI_VERB_OF(p, param_write, (p, i, src));
}

static amp_status ampi_do_params_master_to_model(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    size_t i;
    AMPI_TRY(ampi_check_params(ctx, p));
    for (i = 0; i < p->n; i++)
        AMPI_TRY(ampi_renew_model(ctx, &p->entries[i]));
    p->stochastic = 0;
    ampi_weights_changed(ctx, p);
    return AMP_OK;
}
AMP_API amp_status amp_params_master_to_model(amp_params *p) { AMPI_VERB_OF(p, params_master_to_model, (p)); }
static amp_status ampi_do_params_model_to_master(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    size_t i;
    AMPI_TRY(ampi_check_params(ctx, p));
    for (i = 0; i < p->n; i++) {
        const amp_param_entry *e = &p->entries[i];
        if (e->master && e->model) AMPI_TRY(ampi_cast_entry(ctx, ampi_entry_master(e), ampi_entry_model(e)));
        if (e->low) AMPI_TRY((ctx->b->zero)(ctx, e->low, (size_t)e->count * amp_dtype_size(ampi_low_type(e->layout))));
    }
    p->stochastic = 0;
    ampi_weights_changed(ctx, p);
    return AMP_OK;
}
AMP_API amp_status amp_params_model_to_master(amp_params *p) { AMPI_VERB_OF(p, params_model_to_master, (p)); }
/* dst[i] does not touch a gradient that is still to be read, those after i, nor what was written before it */
static amp_status ampi_check_apart(amp_ctx *ctx, const amp_array *dst, size_t i, const amp_params *p) {
    size_t k, bytes = (size_t)p->entries[i].count * amp_dtype_size(dst[i].dtype);
    if (!dst[i].data) return AMP_OK;
    for (k = 0; k < i; k++) {
        size_t before = (size_t)p->entries[k].count * amp_dtype_size(dst[k].dtype);
        int meet = ampi_overlap(dst[i].data, bytes, dst[k].data, before);
        AMPI_CHECK(!meet, "dst[%llu] overlaps dst[%llu]", AMPI_ULL(i), AMPI_ULL(k));
    }
    for (k = i + 1; k < p->n; k++) {
        amp_array g = amp_param_grad(p, k);
        size_t after = g.count * amp_dtype_size(g.dtype);
        int meet = dst[k].data && ampi_overlap(dst[i].data, bytes, g.data, after);
        AMPI_CHECK(!meet, "dst[%llu] overlaps the gradient of parameter %llu", AMPI_ULL(i), AMPI_ULL(k));
    }
    return AMP_OK;
}
static amp_status ampi_do_params_grads_to(amp_params *p, const amp_array *dst, size_t n) {
    amp_ctx *ctx = p->ctx;
    char name[40];
    size_t i;
    AMPI_TRY(ampi_check_params(ctx, p));
    AMPI_CHECK(n == p->n, "n is %llu, but the set has %llu parameters", AMPI_ULL(n), AMPI_ULL(p->n));
    AMPI_CHECK(!n || dst, "dst is NULL");
    for (i = 0; i < n; i++) { /* all of them before the first is written */
        const amp_array g = amp_param_grad(p, i);
        snprintf(name, sizeof name, "dst[%llu]", AMPI_ULL(i));
        if (dst[i].data) AMPI_TRY(ampi_check_map(ctx, name, dst[i], "its gradient", g, g.count));
        AMPI_TRY(ampi_check_apart(ctx, dst, i, p));
    }
    for (i = 0; i < n; i++)
        if (dst[i].data) AMPI_TRY(ampi_do_cast(ctx, dst[i], amp_param_grad(p, i), (size_t)p->entries[i].count, NULL));
    return AMP_OK;
}
AMP_API amp_status amp_params_grads_to(amp_params *p, const amp_array *dst, size_t n) {
    AMPI_VERB_OF(p, params_grads_to, (p, dst, n));
}
static void ampi_wrote_grads(const amp_params *p) { /* or sums of them */
    size_t i;
    for (i = 0; i < p->n && p->ctx->scope; i++) {
        ampi_wrote_array(p->ctx, amp_param_grad(p, i), (size_t)p->entries[i].count);
        ampi_wrote(p->ctx, p->entries[i].accum, (size_t)p->entries[i].count * sizeof(float));
    }
}
static amp_status ampi_do_params_zero_grad(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    size_t i;
    AMPI_TRY(ampi_check_params(ctx, p));
    ampi_wrote_grads(p);
    for (i = 0; i < p->n; i++)
        AMPI_TRY((ctx->b->zero)(
            ctx, p->entries[i].grad, (size_t)p->entries[i].count * amp_dtype_size(p->entries[i].grad_dtype)));
    return AMP_OK;
}
AMP_API amp_status amp_params_zero_grad(amp_params *p) { AMPI_VERB_OF(p, params_zero_grad, (p)); }

static amp_status ampi_set_record(amp_ctx *ctx, const amp_params *p, const amp_step_record *r) {
    if (!ctx->b->set_record) return (ctx->b->copy)(ctx, p->record, r, sizeof *r);
    return (ctx->b->set_record)(ctx, p->record, p->mirror, r);
}
static int ampi_is_at_rest(const amp_params *p);
/* Which parameters have not been stepped yet: SGD's first update of one is its own. A momentum that is all 0 tells. Of
   those that come into use (used NULL: all of them do), or of all. */
static amp_status ampi_first_steps(amp_params *p, const uint8_t *used, int all) {
    amp_ctx *ctx = p->ctx;
    amp_step_record r;
    size_t i;
    AMPI_TRY((ctx->b->copy)(ctx, &r, p->record, sizeof r));
    for (i = 0; i < p->n; i++) {
        amp_param_entry *e = &p->entries[i];
        amp_array a = ampi_entry_zeros(e, 0);
        amp_histogram h = AMP_ZERO;
        if (!all && (!ampi_param_at(p, i)->unused || (used && !used[i]))) continue;
        e->before = r.steps ? AMPI_HAS_STEPPED : 0;
        if (!a.data || !r.steps || !ctx->b->histogram) continue;
        AMPI_TRY((ctx->b->histogram)(ctx, &a, 1, &h));
        if (h.zero == h.total && r.steps < AMPI_HAS_STEPPED) e->before = (uint32_t)r.steps;
    }
    return ampi_send_entries(p);
}
static amp_status ampi_do_params_use(amp_params *p, const uint8_t *used) {
    amp_ctx *ctx = p->ctx;
    uint64_t elements;
    size_t i, n;
    AMPI_TRY(ampi_check_params(ctx, p));
    if (p->n == 0) return AMP_OK;
    n = ampi_chunks_in_use(p, used, NULL, &elements);
    AMPI_CHECK(n, "used has no parameter of %llu: leave the step out", AMPI_ULL(p->n));
    AMPI_STAGE(ampi_is_at_rest(p), "the set is in the middle of a step or a window");
    AMPI_TRY((ctx->b->may_wait)(ctx));
    AMPI_TRY(ampi_first_steps(p, used, 0));
    AMPI_TRY(ampi_send_chunks(p, used, n, &elements));
    p->table.n_chunks = (uint32_t)n;
    p->table.n_elements = elements;
    for (i = 0; i < p->n; i++)
        ampi_param_at(p, i)->unused = used && !used[i];
    return AMP_OK;
}
AMP_API amp_status amp_params_use(amp_params *p, const uint8_t *used) { AMPI_VERB_OF(p, params_use, (p, used)); }
static amp_status ampi_do_params_set_steps(amp_params *p, uint64_t steps) {
    amp_ctx *ctx = p->ctx;
    amp_step_record r = AMP_ZERO;
    size_t i;
    AMPI_TRY(ampi_check_params(ctx, p));
    AMPI_STAGE(ampi_is_at_rest(p), "the set is in the middle of a step or a window");
    AMPI_TRY((ctx->b->may_wait)(ctx));
    for (i = 0; i < p->n; i++)
        p->entries[i].before = steps ? AMPI_HAS_STEPPED : 0;
    if (p->n) AMPI_TRY(ampi_send_entries(p));
    r.steps = steps;
    return ampi_set_record(ctx, p, &r);
}
AMP_API amp_status amp_params_set_steps(amp_params *p, uint64_t steps) {
    AMPI_VERB_OF(p, params_set_steps, (p, steps));
}

