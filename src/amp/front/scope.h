/* ---- the autocast scope: its regions, its arena, the casts of operands and their cache.
   tests: tests/test_policy.c, tests/test_context.c ---- */

typedef struct ampi_mark { /* copies for one call or region that are made after it go when it is popped */
    size_t high, temps, arenas;
} ampi_mark;
typedef struct ampi_region {
    amp_policy policy;
    amp_dtype low, pin;
    uint32_t enabled, cache;
    uint32_t outside; /* 1: as if no region were open */
    ampi_mark opened;
} ampi_region;

typedef struct ampi_reach { /* addresses from .. to; both 0: none */
    uintptr_t from, to;
} ampi_reach;
/* Each verb asks whether it writes to a source: first of all of them, then of so many entries at a time. */
#define AMPI_CACHED_GROUP 32u
typedef struct ampi_cached {
    ampi_reach group; /* in the first entry of a group: of all its sources */
    const void *source;
    const amp_params *set; /* whose parameter it is, or NULL */
    size_t count;
    char *copy;
    uint64_t capture; /* the capture that the cast belongs to, 0: none. Only that one may use it */
    amp_dtype dtype;
    uint32_t valid; /* 2: no set owns the source, and a backward has read it: for backwards only */
} ampi_cached;

typedef enum ampi_reader { AMPI_FORWARD, AMPI_BACKWARD, AMPI_BOTH, AMPI_PLAN } ampi_reader; /* PLAN: not yet */

typedef struct ampi_arenas {
    void **list;
    size_t n, cap;
} ampi_arenas;

struct ampi_scope {
    ampi_region region[AMP_AUTOCAST_DEPTH];
    size_t depth;
    ampi_cached *cached;
    ampi_reach sources; /* of all that is cached */
    size_t n_cached, cap_cached;
    char *arena; /* cached copies from below, copies for one call or region from above */
    size_t bytes, low, high;
    size_t kept, temps; /* bytes of cached copies and of the others, in whatever arena */
    size_t need;      /* largest sum of the two so far, in all scopes: the next outermost begin makes that much room */
    size_t arenas;    /* how many there have been */
    int32_t entered;  /* 1: a region has been opened */
    int32_t fixed;    /* 1: the arena has the size that amp_autocast_desc.arena says, and does not grow */
    int32_t captured; /* a captured graph uses this arena: it may not serve other scopes */
    int32_t _pad;
    ampi_arenas outgrown; /* that became too small in this scope, with copies that still count */
    ampi_arenas retired;  /* of captured graphs; freed with the context */
    amp_autocast_info info;
};

static void ampi_free_arenas(amp_ctx *ctx, ampi_arenas *a) {
    while (a->n)
        ampi_free_block(ctx, a->list[--a->n]);
}
static void ampi_scope_destroy(amp_ctx *ctx) {
    ampi_scope *s = ctx->scope;
    if (!s) return;
    ampi_free_arenas(ctx, &s->retired);
    ampi_free_arenas(ctx, &s->outgrown);
    ampi_free_block(ctx, s->arena);
    ampi_host_drop(ctx, s->outgrown.list, s->outgrown.cap * sizeof *s->outgrown.list);
    ampi_host_drop(ctx, s->retired.list, s->retired.cap * sizeof *s->retired.list);
    ampi_host_drop(ctx, s->cached, s->cap_cached * sizeof *s->cached);
    ampi_host_drop(ctx, s, sizeof *s);
    ctx->scope = NULL;
}

static ampi_region *ampi_region_of(const amp_ctx *ctx) {
    return ctx->scope && ctx->scope->depth ? &ctx->scope->region[ctx->scope->depth - 1] : NULL;
}
/* The innermost region or, where none is open, what an outermost begin starts from. */
static ampi_region ampi_region_now(const amp_ctx *ctx) {
    const ampi_region *now = ampi_region_of(ctx);
    ampi_region r;
    if (now) return *now;
    memset(&r, 0, sizeof r);
    ampi_policy_level(&r.policy, AMP_PRESET_AMP, AMP_AUTO);
    r.low = r.policy.low;
    r.cache = r.outside = 1;
    return r;
}
/* Temporary copies of one verb: made after the mark, popped at its end (the stream's order keeps them until their
   reader has run). An arena that came after the mark holds no older ones. */
static ampi_mark ampi_scope_mark(const amp_ctx *ctx) {
    ampi_mark m = AMP_ZERO;
    if (!ctx->scope) return m;
    m.high = ctx->scope->high;
    m.temps = ctx->scope->temps;
    m.arenas = ctx->scope->arenas;
    return m;
}
static void ampi_scope_pop(amp_ctx *ctx, ampi_mark mark) {
    ampi_scope *s = ctx->scope;
    if (!s) return;
    s->high = mark.arenas == s->arenas ? mark.high : s->bytes;
    s->temps = mark.temps;
}
static uint64_t ampi_capture_id(amp_ctx *ctx) { return ctx->b->capture_id ? (ctx->b->capture_id)(ctx) : 0; }

/* Cached casts of a set (NULL: any), of an array (NULL: any) are stale. */
static void ampi_stale(amp_ctx *ctx, const amp_params *set, const void *data) {
    size_t i, n = ctx->scope ? ctx->scope->n_cached : 0;
    ctx->weights++;
    for (i = 0; i < n; i++) {
        ampi_cached *k = &ctx->scope->cached[i];
        if ((!set || k->set == set) && (!data || k->source == data)) k->valid = 0;
    }
}
static void ampi_reach_add(ampi_reach *r, const ampi_cached *k) {
    const uintptr_t from = (uintptr_t)k->source, to = from + k->count * sizeof(float);
    if (!r->to || from < r->from) r->from = from;
    if (to > r->to) r->to = to;
}
static int ampi_reaches(const ampi_reach *r, const void *data, size_t bytes) {
    return ampi_overlap((const void *)r->from, r->to - r->from, data, bytes);
}
static void ampi_drop_casts(ampi_scope *s, const void *data, size_t bytes) {
    size_t group, end, i;
    if (!ampi_reaches(&s->sources, data, bytes)) return;
    for (group = 0; group < s->n_cached; group = end) {
        end = group + AMPI_CACHED_GROUP;
        if (!ampi_reaches(&s->cached[group].group, data, bytes)) continue;
        for (i = group; i < end && i < s->n_cached; i++)
            if (ampi_overlap(s->cached[i].source, s->cached[i].count * sizeof(float), data, bytes))
                s->cached[i].valid = 0;
    }
}
static void ampi_iteration_ended(amp_ctx *ctx) {
    size_t i, n = ctx->scope ? ctx->scope->n_cached : 0;
    for (i = 0; i < n; i++)
        if (!ctx->scope->cached[i].set) ctx->scope->cached[i].valid = 0;
}
static void ampi_weights_changed(amp_ctx *ctx, const amp_params *p) {
    ampi_stale(ctx, p, NULL);
    ampi_iteration_ended(ctx);
}
static void ampi_do_autocast_invalidate(amp_ctx *ctx, const void *data) { ampi_stale(ctx, NULL, data); }
AMP_API void amp_autocast_invalidate(amp_ctx *ctx, const void *data) {
    AMPI_VOID_VERB(ctx, autocast_invalidate, (ctx, data));
}

/* ---- the scope: opening and closing regions ---- */

/* What a new outermost region needs: bytes of arena, entries of the cache. */
static void ampi_scope_need(
    const amp_ctx *ctx, const amp_autocast_desc *d, int enabled, size_t *bytes, size_t *entries) {
    const amp_params *p;
    size_t i;
    *bytes = AMP_AUTOCAST_SPARE;
    *entries = 64;
    for (p = ctx->sets; p; p = p->next)
        for (i = 0; i < p->n; i++) {
            if (!p->entries[i].master || p->entries[i].model) continue;
            *bytes += (size_t)ampi_round256(p->entries[i].count * 2u); /* FP32, without a copy */
            ++*entries;
        }
    if (!enabled) *bytes = 0;
    if (ctx->scope && *bytes < ctx->scope->need) *bytes = ctx->scope->need;
    if (d->arena) *bytes = d->arena;
    if (d->entries) *entries = d->entries;
}
static amp_status ampi_scope_entries(amp_ctx *ctx, size_t entries) {
    ampi_scope *s = ctx->scope;
    ampi_cached *c;
    if (entries <= s->cap_cached) return AMP_OK;
    c = (ampi_cached *)ampi_host_new(ctx, entries * sizeof *c);
    AMPI_REQUIRE(c, AMP_ERR_NO_MEMORY, "no host memory for %llu entries", AMPI_ULL(entries));
    ampi_host_drop(ctx, s->cached, s->cap_cached * sizeof *s->cached);
    s->cached = c;
    s->cap_cached = entries;
    return AMP_OK;
}
/* The arena goes to a list: that of outgrown ones, or that of those which graphs use. */
static amp_status ampi_scope_put_away(amp_ctx *ctx) {
    ampi_scope *s = ctx->scope;
    ampi_arenas *to = s->captured ? &s->retired : &s->outgrown;
    void **list;
    if (!s->arena) return AMP_OK;
    list = (void **)ampi_grow(&ctx->host, to->list, to->n, &to->cap, sizeof *list);
    AMPI_MEMORY(list);
    to->list = list;
    list[to->n++] = s->arena;
    s->arena = NULL;
    s->bytes = s->low = s->high = 0;
    s->captured = 0;
    return AMP_OK;
}
/* A new arena in place of the one that there is; no copies are moved. */
static amp_status ampi_scope_new_arena(amp_ctx *ctx, size_t bytes) {
    ampi_scope *s = ctx->scope;
    void *arena = NULL;
    AMPI_TRY(ampi_alloc_block(ctx, &arena, bytes, "autocast", 0));
    if (ampi_scope_put_away(ctx) != AMP_OK) {
        ampi_free_block(ctx, arena);
        return AMP_ERR_NO_MEMORY;
    }
    s->arena = (char *)arena;
    s->bytes = s->high = bytes;
    s->low = 0;
    s->arenas++;
    return AMP_OK;
}
/* One arena of `bytes` for a new outermost region: larger if it was, but for what the growth of the scope before added
   without need. In a capture what is there will do. */
static amp_status ampi_scope_arena(amp_ctx *ctx, size_t bytes) {
    ampi_scope *s = ctx->scope;
    int grown = s->outgrown.n != 0, replace = s->captured && bytes;
    int capturing = ampi_capture_id(ctx) != 0;
    if (bytes <= s->bytes && (capturing || (!grown && !replace))) return AMP_OK;
    AMPI_REQUIRE(!capturing, AMP_ERR_CAPTURE,
        "the arena has %llu bytes and %llu are needed, but the stream is being captured: run a step before",
        AMPI_ULL(s->bytes), AMPI_ULL(bytes));
    AMPI_TRY((ctx->b->may_wait)(ctx));
    if (bytes < s->bytes && !grown) bytes = s->bytes;
    if (bytes != s->bytes || replace) AMPI_TRY(ampi_scope_new_arena(ctx, bytes));
    if (s->outgrown.n) AMPI_TRY((ctx->b->sync)(ctx));
    ampi_free_arenas(ctx, &s->outgrown);
    return AMP_OK;
}
static amp_status ampi_scope_outermost(amp_ctx *ctx, const amp_autocast_desc *d, int enabled) {
    ampi_scope *s = ctx->scope;
    size_t bytes, entries;
    ampi_scope_need(ctx, d, enabled, &bytes, &entries);
    AMPI_CHECK(entries <= (size_t)-1 / sizeof *s->cached, "desc.entries %llu is too large", AMPI_ULL(entries));
    AMPI_CHECK(bytes <= (size_t)-1 - 255u, "desc.arena %llu is too large", AMPI_ULL(bytes));
    AMPI_TRY(ampi_scope_entries(ctx, entries));
    AMPI_TRY(ampi_scope_arena(ctx, (size_t)ampi_round256(bytes)));
    s->fixed = d->arena != 0;
    s->entered = 1;
    s->low = s->kept = s->temps = 0;
    s->high = s->bytes;
    memset(&s->info, 0, sizeof s->info);
    return AMP_OK;
}

/* Opens a region; d has been checked. */
static amp_status ampi_region_open(amp_ctx *ctx, const amp_autocast_desc *d, const ampi_region *r) {
    ampi_scope *s = ctx->scope;
    if (!s) ctx->scope = s = (ampi_scope *)ampi_host_new(ctx, sizeof *s);
    AMPI_MEMORY(s);
    AMPI_STAGE(s->depth < AMP_AUTOCAST_DEPTH, "%d regions are open already", AMP_AUTOCAST_DEPTH);
    if (s->depth == 0) AMPI_TRY(ampi_scope_outermost(ctx, d, r->enabled != 0));
    s->region[s->depth] = *r;
    s->region[s->depth++].opened = ampi_scope_mark(ctx);
    return AMP_OK;
}

static amp_status ampi_check_autocast(amp_ctx *ctx, const amp_autocast_desc *d) {
    AMPI_REQUIRE(!d->policy || AMPI_CLEAN(d->policy), AMP_ERR_UNINIT, "desc.policy is not made by amp_policy_init");
    AMPI_CHECK(
        d->low == AMP_AUTO || ampi_is_half(d->low), "desc.low is %s; f16 or bf16 is needed", amp_dtype_name(d->low));
    AMPI_CHECK(d->pin == AMP_AUTO || ampi_is_model_dtype(d->pin), "desc.pin is %s; f32, f16 or bf16 is needed",
        amp_dtype_name(d->pin));
    AMPI_CHECK(d->cache == 0 || d->cache == 1 || d->cache == AMP_NONE, "desc.cache is %d; 1, AMP_NONE or 0 is needed",
        (int)d->cache);
    return AMP_OK;
}

static amp_status ampi_do_autocast_begin(amp_ctx *ctx, const amp_autocast_desc *desc) {
    amp_autocast_desc d = AMP_ZERO;
    ampi_region r;
    AMPI_TAKE_DESC(&d, desc);
    AMPI_TRY(ampi_check_autocast(ctx, &d));
    r = ampi_region_now(ctx);
    if (d.if_enabled && !r.enabled)
        return ampi_region_open(ctx, &d, &r); /* nothing happens, but it is closed like any other */
    r.outside = 0;
    if (d.policy) {
        r.policy = *d.policy;
        r.low = d.policy->low;
    }
    if (d.low != AMP_AUTO) r.low = d.low;
    if (d.cache) r.cache = d.cache == 1;
    r.pin = d.disabled ? AMP_AUTO : d.pin; /* a nested region without a pin goes by the lists again */
    r.enabled = !d.disabled && (r.pin != AMP_AUTO || ampi_policy_mode(&r.policy) != AMPI_AS_IS);
    return ampi_region_open(ctx, &d, &r);
}
AMP_API amp_status amp_autocast_begin(amp_ctx *ctx, const amp_autocast_desc *desc) {
    AMPI_VERB(ctx, autocast_begin, (ctx, desc));
}

static amp_status ampi_do_autocast_end(amp_ctx *ctx) {
    ampi_scope *s = ctx->scope;
    AMPI_STAGE(s && s->depth, "no region is open");
    ampi_scope_pop(ctx, s->region[--s->depth].opened);
    if (s->depth == 0) {
        s->n_cached = 0;
        s->sources.from = s->sources.to = 0;
        s->low = s->kept = 0;
    }
    return AMP_OK;
}
AMP_API amp_status amp_autocast_end(amp_ctx *ctx) { AMPI_VERB(ctx, autocast_end, (ctx)); }

static amp_status ampi_do_autocast_release(amp_ctx *ctx) {
    if (!ctx->scope) return AMP_OK;
    AMPI_STAGE(ctx->scope->depth == 0, "%llu regions are open", AMPI_ULL(ctx->scope->depth));
    AMPI_TRY(ampi_do_sync(ctx));
    ampi_scope_destroy(ctx);
    return AMP_OK;
}
AMP_API amp_status amp_autocast_release(amp_ctx *ctx) { AMPI_VERB(ctx, autocast_release, (ctx)); }

AMP_API amp_autocast_info amp_autocast_get(const amp_ctx *ctx) {
    amp_autocast_info info = AMP_ZERO;
    const ampi_scope *s = ctx ? ctx->scope : NULL;
    const ampi_region *r = ctx ? ampi_region_of(ctx) : NULL;
    if (!s) return info;
    info = s->info;
    info.arena = s->bytes;
    if (!r) return info;
    info.depth = (uint32_t)s->depth;
    info.used = s->kept + s->temps;
    info.enabled = r->enabled;
    info.cache = r->cache;
    info.low = r->low;
    info.pin = r->pin;
    return info;
}

/* ---- the scope: operands ---- */

/* The dtype of an operation's result when it is left automatic. */
static amp_dtype ampi_class_output(const amp_policy *p, amp_op_class c, amp_dtype low, amp_dtype in) {
    if (c == AMP_CLASS_LOWER) return p->results_f32 ? AMP_F32 : low;
    return c == AMP_CLASS_F32 || c == AMP_CLASS_F32_OUT ? AMP_F32 : in;
}
/* What the innermost region does with op; *want: dtype that its inputs are cast to, AMP_AUTO: none (or the widest). */
static amp_op_class ampi_region_class(const amp_ctx *ctx, amp_op op, amp_dtype *want) {
    const ampi_region *r = ampi_region_of(ctx);
    amp_op_class c;
    *want = AMP_AUTO;
    if (!r || !r->enabled) return AMP_CLASS_NONE;
    if (r->pin != AMP_AUTO) {
        *want = r->pin;
        return r->pin == AMP_F32 ? AMP_CLASS_F32 : AMP_CLASS_LOWER;
    }
    c = amp_policy_class(&r->policy, op);
    if (c == AMP_CLASS_LOWER) *want = r->low;
    if (c == AMP_CLASS_F32) *want = AMP_F32;
    return c;
}
AMP_API amp_dtype amp_autocast_output(const amp_ctx *ctx, amp_op op, amp_dtype in) {
    const ampi_region *r = ctx ? ampi_region_of(ctx) : NULL;
    amp_dtype want;
    amp_op_class c;
    if (!r) return in;
    c = ampi_region_class(ctx, op, &want);
    return r->pin != AMP_AUTO && want != AMP_AUTO ? want : ampi_class_output(&r->policy, c, r->low, in);
}

/* The parameter whose FP32 weights lie at `data`, and how many elements into it; NULL: none. */
static const amp_param_entry *ampi_find_weight(
    const amp_ctx *ctx, const void *data, const amp_params **set, size_t *at) {
    const amp_params *p;
    size_t i;
    for (p = ctx->sets; p; p = p->next)
        for (i = 0; i < p->n; i++) {
            uintptr_t a = (uintptr_t)p->entries[i].master, x = (uintptr_t)data;
            if (!a || x < a || x - a >= (uintptr_t)p->entries[i].count * 4u || (x - a) % 4u) continue;
            *set = p;
            *at = (size_t)(x - a) / 4u;
            return &p->entries[i];
        }
    return NULL;
}

static void ampi_scope_needs(ampi_scope *s, size_t more) {
    const size_t all = s->kept + s->temps + more;
    if (s->info.peak < all) s->info.peak = all;
    if (s->need < s->info.peak) s->need = s->info.peak;
}
/* The arena is full: a larger one for what comes, while the copies that are made stay where they are. It would have
   held them, too: so the next scope, which may be captured, has room without a new one. */
static amp_status ampi_scope_grow(amp_ctx *ctx, size_t bytes) {
    ampi_scope *s = ctx->scope;
    AMPI_STAGE(s && s->entered,
        "a cast needs %llu bytes, but there is no autocast arena: call amp_autocast_begin before, or give operands "
        "of the pinned dtype",
        AMPI_ULL(bytes));
    AMPI_REQUIRE(!s->fixed, AMP_ERR_NO_MEMORY,
        "the autocast arena of %llu bytes is full: %llu more are needed for a cast, %llu are left "
        "(amp_autocast_desc.arena; 0: it grows)",
        AMPI_ULL(s->bytes), AMPI_ULL(bytes), AMPI_ULL(s->bytes - s->kept - s->temps));
    if (ampi_capture_id(ctx)) ampi_scope_needs(s, bytes);
    AMPI_REQUIRE(ampi_capture_id(ctx) == 0, AMP_ERR_NO_MEMORY,
        "the autocast arena of %llu bytes is full, and cannot grow while the stream is being captured: %llu bytes "
        "are needed so far. Run a step before, or give amp_autocast_desc.arena",
        AMPI_ULL(s->bytes), AMPI_ULL(s->kept + s->temps + bytes));
    return ampi_scope_new_arena(ctx, 2 * (s->kept + s->temps + bytes));
}
/* Room in the arena: from below for a copy that stays in the cache, from above for one that goes with its call or
   region. */
static amp_status ampi_scope_room(amp_ctx *ctx, size_t bytes, int cached, char **out) {
    ampi_scope *s = ctx->scope;
    bytes = (size_t)ampi_round256(bytes);
    if (!s || bytes > s->bytes || s->kept + s->temps > s->bytes - bytes) AMPI_TRY(ampi_scope_grow(ctx, bytes));
    if (ampi_capture_id(ctx)) s->captured = 1;
    *out = cached ? s->arena + s->low : s->arena + s->high - bytes;
    if (cached) {
        s->low += bytes;
        s->kept += bytes;
    } else {
        s->high -= bytes;
        s->temps += bytes;
    }
    ampi_scope_needs(s, 0);
    return AMP_OK;
}

static ampi_cached *ampi_cached_find(const ampi_scope *s, const ampi_cached *like) {
    size_t i;
    for (i = 0; i < s->n_cached; i++) {
        ampi_cached *k = &s->cached[i];
        if (k->source == like->source && k->count == like->count && k->dtype == like->dtype &&
            k->capture == like->capture)
            return k;
    }
    return NULL;
}
/* The entry of a weight's cast; one that is not valid has room for it and is to be filled. */
static amp_status ampi_cached_entry(amp_ctx *ctx, ampi_cached like, ampi_cached **entry) {
    ampi_scope *s = ctx->scope;
    ampi_cached *k = ampi_cached_find(s, &like);
    if (!k) {
        AMPI_REQUIRE(s->n_cached < s->cap_cached, AMP_ERR_NO_MEMORY,
            "all %llu entries of the autocast cache are in use (amp_autocast_desc.entries)", AMPI_ULL(s->cap_cached));
        AMPI_TRY(ampi_scope_room(ctx, like.count * amp_dtype_size(like.dtype), 1, &like.copy));
        k = &s->cached[s->n_cached];
        *k = like;
        ampi_reach_add(&s->sources, k);
        ampi_reach_add(&s->cached[s->n_cached / AMPI_CACHED_GROUP * AMPI_CACHED_GROUP].group, k);
        s->n_cached++;
    }
    if (k->set != like.set) k->valid = 0; /* the memory was adopted by a different set */
    k->set = like.set;
    *entry = k;
    return AMP_OK;
}

static int ampi_needs_cast(amp_array a, size_t n, amp_dtype want) {
    if (want == AMP_AUTO || !a.data || n == 0 || a.dtype == want) return 0;
    if (ampi_is_f8(a.dtype) || !ampi_is_dtype(a.dtype)) return 0;
    return a.count == 0 || a.count >= n; /* too short: the verb will say so */
}

/* A cached cast is read: is it what is wanted? A backward, alone or behind its forward in one verb, ends the iteration
   for an array that no set owns: a forward that comes after it casts anew. */
static int ampi_cached_read(ampi_cached *k, ampi_reader reader) {
    const int fresh = k->valid == 1 || (k->valid == 2 && reader == AMPI_BACKWARD);
    const uint32_t ends = (reader == AMPI_BACKWARD || reader == AMPI_BOTH) && !k->set;
    k->valid = fresh ? 1u + ends : 0u;
    return fresh;
}
/* The entry of a weight's cast, made if there is none. For a plan nothing is made: *k is NULL then. */
static amp_status ampi_cached_cast(amp_ctx *ctx, ampi_cached like, int plan, ampi_cached **k) {
    if (!plan) return ampi_cached_entry(ctx, like, k);
    *k = ampi_cached_find(ctx->scope, &like);
    return AMP_OK;
}
/* *out = a in dtype `want` (AMP_AUTO: as it is). */
static amp_status ampi_operand(
    amp_ctx *ctx, amp_array a, size_t n, amp_dtype want, ampi_reader reader, amp_array *out) {
    const int plan = reader == AMPI_PLAN;
    const ampi_region *r = ampi_region_of(ctx);
    const amp_params *set = NULL;
    const amp_param_entry *e = NULL;
    amp_cast_desc how = AMP_ZERO;
    ampi_cached *k = NULL;
    size_t at = 0;
    int weight = (a.flags & AMP_CACHE) != 0; /* a whole one, in FP32: its cast may be kept */
    char *to;
    a.flags &= ~AMP_CACHE;
    *out = a;
    if (!ampi_needs_cast(a, n, want)) return AMP_OK;
    if (a.dtype == AMP_F32) e = ampi_find_weight(ctx, a.data, &set, &at);
    out->dtype = want;
    if (e && e->model && e->model_dtype == want) {
        out->data = (char *)e->model + at * amp_dtype_size(want);
        if (ctx->scope && !plan) ctx->scope->info.resolved++;
        return AMP_OK;
    }
    if (e) weight = at == 0 && n == e->count;
    if (weight && r && r->cache && a.dtype == AMP_F32 && want == r->low) {
        ampi_cached like = AMP_ZERO;
        like.source = a.data;
        like.set = set;
        like.count = n;
        like.capture = ampi_capture_id(ctx);
        like.dtype = want;
        AMPI_TRY(ampi_cached_cast(ctx, like, plan, &k));
    }
    if (k) {
        out->data = k->copy;
    } else {
        AMPI_TRY(ampi_scope_room(ctx, n * amp_dtype_size(want), 0, &to));
        out->data = to;
    }
    if (plan) return AMP_OK;
    if (k && ampi_cached_read(k, reader)) {
        ctx->scope->info.hits++;
        return AMP_OK;
    }
    AMPI_TRY((ctx->b->cast)(ctx, *out, a, n, &how));
    ctx->scope->info.casts++;
    if (!k) return AMP_OK;
    k->valid = 1;
    (void)ampi_cached_read(k, reader);
    return AMP_OK;
}

/* The dtype that op's inputs are cast to here; AMP_AUTO: none. */
static amp_status ampi_autocast_want(amp_ctx *ctx, amp_op op, const amp_array *in, size_t n, amp_dtype *want) {
    amp_op_class c = ampi_region_class(ctx, op, want);
    int f32 = 0, f16 = 0, bf16 = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        f32 |= in[i].data && in[i].dtype == AMP_F32;
        f16 |= in[i].data && in[i].dtype == AMP_F16;
        bf16 |= in[i].data && in[i].dtype == AMP_BF16;
    }
    AMPI_REQUIRE(c != AMP_CLASS_BANNED, AMP_ERR_UNSUPPORTED, "%s is banned here: %s", amp_op_name(op), amp_op_note(op));
    if (c != AMP_CLASS_WIDEST) return AMP_OK;
    if (f32) *want = AMP_F32;
    AMPI_REQUIRE(
        f32 || !f16 || !bf16, AMP_ERR_UNSUPPORTED, "%s has f16 and bf16 inputs: neither is wider", amp_op_name(op));
    return AMP_OK;
}

static amp_status ampi_do_autocast_input(amp_ctx *ctx, amp_array *out, amp_op op, const amp_array *in, size_t n) {
    amp_array made[8];
    amp_dtype want;
    size_t i;
    ampi_mark mark;
    if (n == 0) return AMP_OK;
    AMPI_CHECK(in, "in is NULL");
    AMPI_CHECK(out, "out is NULL");
    AMPI_CHECK(n <= 8, "n is %llu; at most 8 inputs", AMPI_ULL(n));
    AMPI_CHECK(op < AMP_OP_COUNT, "op is %lu: no such operation", (unsigned long)op);
    for (i = 0; i < n; i++) {
        if (!in[i].data) continue;
        AMPI_CHECK(in[i].count > 0, "in[%llu].count is 0; the number of elements is needed", AMPI_ULL(i));
        AMPI_CHECK(in[i].count <= (size_t)-1 / 8, "in[%llu].count is too large", AMPI_ULL(i));
        AMPI_TRY(ampi_check_array(ctx, "in", in[i], in[i].count, 0));
    }
    AMPI_TRY(ampi_autocast_want(ctx, op, in, n, &want));
    mark = ampi_scope_mark(ctx);
    for (i = 0; i < n; i++) {
        amp_status st = ampi_operand(ctx, in[i], in[i].count, want, AMPI_FORWARD, &made[i]);
        if (st == AMP_OK) continue;
        ampi_scope_pop(ctx, mark);
        return st;
    }
    memcpy(out, made, n * sizeof *out);
    return AMP_OK;
}
AMP_API amp_status amp_autocast_input(amp_ctx *ctx, amp_array *out, amp_op op, const amp_array *in, size_t n) {
    AMPI_VERB(ctx, autocast_input, (ctx, out, op, in, n));
}

