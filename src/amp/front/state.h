/* ---- state files: sections, writing, reading.   tests: tests/test_state.c, tests/test_resume.c, tests/fuzz_state.c
   ---- */

#  define AMPI_STATE_BUFFER ((size_t)1 << 20)

static void ampi_put(uint8_t *b, uint64_t x, int bytes) {
    int i;
    for (i = 0; i < bytes; i++)
        b[i] = (uint8_t)(x >> (8 * i));
}

/* elements between this machine's order and little-endian, in place */
static void ampi_little_endian(uint8_t *b, size_t elements, size_t size) {
    const uint16_t one = 1;
    uint8_t first, t;
    size_t i;
    memcpy(&first, &one, 1);
    if (first) return;
    for (; elements--; b += size)
        for (i = 0; i < size / 2; i++) {
            t = b[i];
            b[i] = b[size - 1 - i];
            b[size - 1 - i] = t;
        }
}

/* fields of 4, 4 and 8 bytes, and one more of 8 */
static void ampi_put_head(uint8_t *b, uint64_t p, uint64_t q, uint64_t r) {
    ampi_put(b, p, 4);
    ampi_put(b + 4, q, 4);
    ampi_put(b + 8, r, 8);
}
static void ampi_put_fields(uint8_t *b, uint64_t p, uint64_t q, uint64_t r, uint64_t s) {
    ampi_put_head(b, p, q, r);
    ampi_put(b + 16, s, 8);
}

/* ---- the sections of a file: one walk declares them in order; a visitor counts, writes, checks or applies ---- */

typedef enum ampi_section_kind {
    AMPI_SECTION_SET = 0,
    AMPI_SECTION_ARRAY,
    AMPI_SECTION_SCALER,
    AMPI_SECTION_FP8,
    AMPI_SECTION_USER,
    AMPI_SECTION_END,
    AMPI_SECTION_KINDS
} ampi_section_kind;

/* clang-format off */
static const struct { char tag[8], name[24], differs[64]; } ampi_section_kinds[AMPI_SECTION_KINDS] = {
    {"SET ", "parameter set",    "a parameter set has a different number of parameters or moments"},
    {"PRM ", "an array of set",  ""}, /* see ampi_differs */
    {"SCL ", "scaler",           "a scaler has a different size"},
    {"FP8 ", "amp_fp8",          "an amp_fp8 has different tensors or a different history"},
    {"USER", "the user's bytes", "the user's bytes have a different size"},
    {"END ", "the end of file",  ""}, /* where there is no section left */
};
/* clang-format on */

typedef struct ampi_elements { /* elements of `size` bytes; little-endian in the file */
    void *ptr;                 /* NULL: none */
    size_t count, size;
    int host; /* 1: in host memory, 0: in context memory */
} ampi_elements;

typedef struct ampi_section {
    ampi_section_kind kind;
    size_t index;       /* of the set or scaler that it belongs to */
    amp_params *p;      /* a set, or that of an array */
    size_t param;       /* of an array: which parameter's */
    amp_scaler *scaler; /* a scaler */
    int optional;       /* 1: model copies, in the file only when masters do not give them */
    uint8_t fields[24 + 256];
    size_t n_fixed;         /* bytes of fields that a file must have exactly so */
    size_t n_fields;        /* all of them; the rest are values, saved and loaded */
    ampi_elements elements; /* after the fields */
} ampi_section;

#  define AMPI_STATE_VERSION 2u
typedef struct ampi_file { /* being written or read */
    amp_ctx *ctx;
    const char *path;
    ampi_replacement *to; /* writing */
    FILE *f;              /* reading */
    uint8_t *buffer;      /* host memory, of buffer_bytes: pieces to write, or all that was read */
    size_t buffer_bytes;
    size_t staged;        /* bytes of the buffer in use */
    ampi_xxh sum;         /* of everything so far */
    uint64_t sections;    /* counted, or still to be read */
    int known;            /* reading: 1: it is an amp state file, so it ends with its checksum */
    int ready;            /* 1: `next` is read */
    uint8_t next[16 + 8]; /* head of the next section; of an array its first two fields, too */
} ampi_file;

typedef amp_status ampi_visit(ampi_file *f, ampi_section *s);

/* the arrays of a parameter that are saved, by their number in the file; {NULL}: the layout has no such array */
enum {
    AMPI_SAVED_WEIGHTS = 0,
    AMPI_SAVED_MOMENT,
    AMPI_SAVED_MOMENT2,
    AMPI_SAVED_MODEL,
    AMPI_SAVED_LOW,
    AMPI_SAVED_SCALE,
    AMPI_SAVED_SCALE2,
    AMPI_SAVED,                          /* how many */
    AMPI_SAVED_COMPENSATION = AMPI_SAVED /* KAHAN's low part, in the file: of SPLIT's dtype, but no remainder */
};
static amp_array ampi_saved_array(const amp_param_entry *e, int which) {
    switch (which) {
    case AMPI_SAVED_WEIGHTS: return e->master ? ampi_entry_master(e) : ampi_entry_model(e);
    case AMPI_SAVED_MOMENT: return ampi_entry_moment(e, 0);
    case AMPI_SAVED_MOMENT2: return ampi_entry_moment(e, 1);
    case AMPI_SAVED_LOW: return ampi_entry_low(e);
    case AMPI_SAVED_SCALE: return ampi_entry_scale(e, 0);
    case AMPI_SAVED_SCALE2: return ampi_entry_scale(e, 1);
    default: return ampi_entry_array(e->master ? e->model : NULL, e->model_dtype, e->count);
    }
}

static uint64_t ampi_saved_number(const amp_param_entry *e, int which) {
    return which == AMPI_SAVED_LOW && e->layout == AMP_MASTER_KAHAN ? (uint64_t)AMPI_SAVED_COMPENSATION
                                                                    : (uint64_t)which;
}
static amp_status ampi_walk_set(ampi_file *f, ampi_visit *visit, amp_params *p, size_t index) {
    ampi_section s;
    size_t i, len;
    int which;
    memset(&s, 0, sizeof s);
    s.index = index;
    s.p = p;
    s.n_fixed = 8;
    s.n_fields = 24;
    ampi_put_fields(s.fields, p->n, (uint64_t)p->desc.moments, 0, 0); /* then steps and skipped */
    AMPI_TRY((visit)(f, &s));
    s.kind = AMPI_SECTION_ARRAY;
    for (i = 0; i < p->n; i++)
        for (which = 0; which < AMPI_SAVED; which++) {
            amp_array a = ampi_saved_array(&p->entries[i], which);
            if (!a.data) continue;
            s.param = i;
            s.optional = which == AMPI_SAVED_MODEL;
            s.elements.ptr = a.data;
            s.elements.count = a.count;
            s.elements.size = ampi_moment_bytes(a.dtype);
            len = strlen(ampi_param_at(p, i)->name);
            memset(s.fields, 0, sizeof s.fields);
            ampi_put_fields(s.fields, i, ampi_saved_number(&p->entries[i], which),
                (uint64_t)a.dtype | (uint64_t)len << 32, a.count);
            memcpy(s.fields + 24, ampi_param_at(p, i)->name, len);
            s.n_fixed = s.n_fields = 24 + ((len + 7) & ~(size_t)7);
            AMPI_TRY((visit)(f, &s));
        }
    return AMP_OK;
}

/* clang-format off */
#  define AMPI_SCALER_FIELDS(X) /* name, bytes */ \
    X(scale, 4) X(growth_factor, 4) X(backoff_factor, 4) X(min_scale, 4) X(max_scale, 4) \
    X(growth_interval, 4) X(growth_tracker, 4) X(hysteresis, 4) X(hysteresis_tracker, 4) \
    X(mode, 4) X(no_check, 4) X(dead_after, 4) X(found, 4) X(stuck, 4) \
    X(good, 8) X(bad, 8) X(bad_in_a_row, 8) X(bad_nan, 8) X(bad_inf, 8) X(bad_overflow, 8)
/* clang-format on */
#  define AMPI_SCALER_BYTES (14 * 4 + 6 * 8)

static amp_status ampi_walk_fp8(ampi_file *f, const amp_state_desc *st, ampi_visit *visit) {
    ampi_section s;
    size_t i;
    memset(&s, 0, sizeof s);
    s.kind = AMPI_SECTION_FP8;
    s.n_fixed = s.n_fields = 8;
    for (i = 0; i < st->n_fp8; i++) {
        const amp_fp8 *p = st->fp8[i];
        s.index = i;
        ampi_put(s.fields, p->desc.tensors, 4);
        ampi_put(s.fields + 4, p->desc.history, 4);
        s.elements.ptr = p->states;
        s.elements.count = p->words;
        s.elements.size = 4;
        AMPI_TRY((visit)(f, &s));
    }
    return AMP_OK;
}
static amp_status ampi_walk(ampi_file *f, const amp_state_desc *st, ampi_visit *visit) {
    ampi_section s;
    size_t i;
    for (i = 0; i < st->n_params; i++)
        AMPI_TRY(ampi_walk_set(f, visit, st->params[i], i));
    memset(&s, 0, sizeof s);
    s.kind = AMPI_SECTION_SCALER;
    s.n_fields = AMPI_SCALER_BYTES;
    for (i = 0; i < st->n_scalers; i++) {
        s.index = i;
        s.scaler = st->scalers[i];
        AMPI_TRY((visit)(f, &s));
    }
    AMPI_TRY(ampi_walk_fp8(f, st, visit));
    if (st->user_bytes == 0) return AMP_OK;
    memset(&s, 0, sizeof s);
    s.kind = AMPI_SECTION_USER;
    s.elements.ptr = st->user;
    s.elements.count = st->user_bytes;
    s.elements.size = 1;
    s.elements.host = 1;
    return (visit)(f, &s);
}

static uint64_t ampi_section_tag(const ampi_section *s) {
    return ampi_get((const uint8_t *)ampi_section_kinds[s->kind].tag, 4);
}
static size_t ampi_section_bytes(const ampi_section *s) { return s->n_fields + s->elements.count * s->elements.size; }

/* ---- values between a set or scaler and its section's fields ---- */

static void ampi_scaler_put(const amp_scaler_state *t, uint8_t *b) {
#  define AMPI_X(name, size) \
    memcpy(b, &t->name, size); \
    ampi_little_endian(b, 1, size); \
    b += size;
    AMPI_SCALER_FIELDS(AMPI_X)
#  undef AMPI_X
}
static void ampi_scaler_get(amp_scaler_state *t, uint8_t *b) { /* leaves b in this machine's order */
#  define AMPI_X(name, size) \
    ampi_little_endian(b, 1, size); \
    memcpy(&t->name, b, size); \
    b += size;
    AMPI_SCALER_FIELDS(AMPI_X)
#  undef AMPI_X
}

static amp_status ampi_values_save(ampi_file *f, ampi_section *s) {
    amp_scaler_state t;
    amp_step_record r;
    if (s->kind == AMPI_SECTION_SET) {
        AMPI_TRY((f->ctx->b->copy)(f->ctx, &r, s->p->record, sizeof r));
        ampi_put(s->fields + 8, r.steps, 8);
        ampi_put(s->fields + 16, r.skipped, 8);
    }
    if (s->kind == AMPI_SECTION_SCALER) {
        AMPI_TRY(ampi_scaler_read(s->scaler, &t));
        ampi_scaler_put(&t, s->fields);
    }
    return AMP_OK;
}

/* Has the checksum at the end of the file the value that it should have? Asked when something is wrong, so that damage
   is called by its name. Moves the position. */
static int ampi_is_sealed(ampi_file *f) {
    ampi_xxh h = ampi_xxh_begin();
    uint8_t b[4096 + 8];
    size_t held = 0, n;
    rewind(f->f);
    while ((n = fread(b + held, 1, sizeof b - held, f->f)) > 0) {
        n += held;
        held = n < 8 ? n : 8; /* the last 8 bytes may be the checksum */
        ampi_xxh_add(&h, b, n - held);
        memmove(b, b + n - held, held);
    }
    return held == 8 && ampi_word(b) == ampi_xxh_end(&h);
}
#  if defined(__GNUC__) || defined(__clang__)
__attribute__((__format__(__printf__, 2, 3)))
#  endif
static amp_status ampi_bad_file(ampi_file *f, const char *format, ...) {
    amp_ctx *ctx = f->ctx;
    char what[200];
    va_list va;
    va_start(va, format);
    ampi_message(what, sizeof what, format, va);
    va_end(va);
    AMPI_REQUIRE(!f->known || ampi_is_sealed(f), AMP_ERR_FORMAT,
        "%s: its checksum does not match: the file is truncated or damaged (%s)", f->path, what);
    return amp_fail(ctx, AMP_ERR_FORMAT, "%s: %s", f->path, what);
}

static int ampi_is_amax(float x) { return ampi_bits(x) <= 0x7f800000u; } /* 0 .. Inf */
/* the state that a scaler gets from its section: no other than one that create and steps can make. What the sums of a
   window had is found after its iteration's end. */
static amp_status ampi_scaler_from(ampi_file *f, ampi_section *s, amp_scaler_state *t) {
    const uint32_t all = AMP_FOUND_NAN | AMP_FOUND_INF | AMP_FOUND_OVERFLOW;
    const char *fault;
    double is = 0.0;
    AMPI_TRY(ampi_scaler_read(s->scaler, t));
    ampi_scaler_get(t, s->fields);
    if (!ampi_is_scale(t->scale)) return ampi_bad_file(f, "its loss scale is not usable");
    t->inverse = ampi_inverse(t->scale);
    if (t->mode == AMP_SCALER_OFF)
        return ampi_is_on(s->scaler) ? ampi_bad_file(f, "it was saved from a scaler that was off") : AMP_OK;
    fault = ampi_rule_fault(t, &is);
    if (fault) return ampi_bad_file(f, "its scaler's %s is %g", fault, is);
    if (t->hysteresis_tracker > t->hysteresis || t->growth_tracker < 0 || t->found > all)
        return ampi_bad_file(f, "its scaler's counts are none that steps make");
    return AMP_OK;
}
/* an amp_fp8's words as they were read: scales, what is remembered of it, and a place in the history that it has */
static amp_status ampi_fp8_from(ampi_file *f, const ampi_section *s, const uint8_t *words) {
    const size_t states = (size_t)ampi_get(s->fields, 4) * sizeof(amp_fp8_state);
    const size_t history = (size_t)ampi_get(s->fields + 4, 4);
    const size_t bytes = s->elements.count * s->elements.size;
    amp_fp8_state t;
    float amax;
    size_t i;
    for (i = 0; i < states; i += sizeof t) {
        memcpy(&t, words + i, sizeof t);
        if (!ampi_is_scale(t.scale) || !ampi_is_positive(t.inverse) || !amp_is_finite(t.inverse))
            return ampi_bad_file(f, "an FP8 scale is not usable");
        if (!ampi_is_amax(t.amax) || !ampi_is_amax(t.window) || t.found || t.ticket || (t.at && t.at >= history))
            return ampi_bad_file(f, "an FP8 tensor's state is none that casts make");
    }
    for (; i < bytes; i += sizeof amax) {
        memcpy(&amax, words + i, sizeof amax);
        if (!ampi_is_amax(amax)) return ampi_bad_file(f, "an FP8 history has a number that is no magnitude");
    }
    return AMP_OK;
}

static amp_status ampi_values_apply(ampi_file *f, ampi_section *s) {
    amp_params *p = s->p;
    amp_scaler_state t;
    amp_step_record r;
    if (s->kind == AMPI_SECTION_SET) {
        memset(&r, 0, sizeof r);
        r.steps = ampi_get(s->fields + 8, 8);
        r.skipped = ampi_get(s->fields + 16, 8);
        p->stochastic = 0;
        p->phase = ampi_rules[p->phase][AMPI_DO_LOAD].next;
        return ampi_set_record(f->ctx, p, &r);
    }
    if (s->optional) p->stochastic = 1;
    if (s->kind == AMPI_SECTION_SCALER) {
        AMPI_TRY(ampi_scaler_from(f, s, &t));
        if (!ampi_is_on(s->scaler)) return AMP_OK;
        AMPI_TRY(ampi_scaler_write(s->scaler, &t));
        ampi_next_iteration(s->scaler);
    }
    return AMP_OK;
}

/* ---- writing ---- */

static amp_status ampi_emit(ampi_file *f, const void *data, size_t n) {
    ampi_xxh_add(&f->sum, data, n);
    return ampi_replacement_put(f->to, data, n);
}

static int ampi_is_saved(const ampi_section *s) { return !s->optional || s->p->stochastic; }

static amp_status ampi_visit_count(ampi_file *f, ampi_section *s) {
    f->sections += (uint64_t)ampi_is_saved(s);
    return AMP_OK;
}
static amp_status ampi_visit_write(ampi_file *f, ampi_section *s) {
    const ampi_elements *a = &s->elements;
    size_t i, n, bytes = a->count * a->size;
    uint8_t head[16];
    if (!ampi_is_saved(s)) return AMP_OK;
    AMPI_TRY(ampi_values_save(f, s));
    ampi_put_head(head, ampi_section_tag(s), s->index, ampi_section_bytes(s));
    AMPI_TRY(ampi_emit(f, head, sizeof head));
    AMPI_TRY(ampi_emit(f, s->fields, s->n_fields));
    for (i = 0; i < bytes; i += n) {
        const uint8_t *from = (const uint8_t *)a->ptr + i;
        n = bytes - i < AMPI_STATE_BUFFER ? bytes - i : AMPI_STATE_BUFFER;
        if (a->host)
            memcpy(f->buffer, from, n);
        else
            AMPI_TRY((f->ctx->b->copy)(f->ctx, f->buffer, from, n));
        ampi_little_endian(f->buffer, n / a->size, a->size);
        AMPI_TRY(ampi_emit(f, f->buffer, n));
    }
    return AMP_OK;
}

static amp_status ampi_state_write(ampi_file *f, const amp_state_desc *st) {
    uint8_t b[16];
    AMPI_TRY(ampi_walk(f, st, ampi_visit_count));
    memcpy(b, "AMPSTATE", 8);
    ampi_put(b + 8, AMPI_STATE_VERSION, 4);
    ampi_put(b + 12, f->sections, 4);
    AMPI_TRY(ampi_emit(f, b, 16));
    AMPI_TRY(ampi_walk(f, st, ampi_visit_write));
    ampi_put(b, ampi_xxh_end(&f->sum), 8);
    return ampi_replacement_put(f->to, b, 8);
}

/* ---- reading: once, into host memory; what was verified there is then applied ---- */

static amp_status ampi_read_raw(ampi_file *f, void *data, size_t n) {
    errno = 0;
    if (fread(data, 1, n, f->f) == n) return AMP_OK;
    if (!ferror(f->f)) return ampi_bad_file(f, "the file is truncated");
    return amp_fail(f->ctx, AMP_ERR_IO, "%s: read failed: %s", f->path, ampi_reason());
}
static amp_status ampi_read(ampi_file *f, void *data, size_t n) { /* in pieces that are still in the caches to add up */
    uint8_t *b = (uint8_t *)data;
    size_t i, piece;
    for (i = 0; i < n; i += piece) {
        piece = n - i < AMPI_STATE_BUFFER ? n - i : AMPI_STATE_BUFFER;
        AMPI_TRY(ampi_read_raw(f, b + i, piece));
        ampi_xxh_add(&f->sum, b + i, piece);
    }
    return AMP_OK;
}

static int ampi_next_is(const ampi_file *f, ampi_section_kind kind) {
    return memcmp(f->next, ampi_section_kinds[kind].tag, 4) == 0;
}

static amp_status ampi_next_read(ampi_file *f) { /* f->next, unless it is there */
    if (f->ready) return AMP_OK;
    f->ready = 1;
    memset(f->next, 0, sizeof f->next);
    memcpy(f->next, ampi_section_kinds[AMPI_SECTION_END].tag, 4);
    if (f->sections == 0) return AMP_OK;
    f->sections--;
    AMPI_TRY(ampi_read(f, f->next, 16));
    return ampi_next_is(f, AMPI_SECTION_ARRAY) ? ampi_read(f, f->next + 16, 8) : AMP_OK;
}

/* the next section of the file is s, by its kind and index */
static amp_status ampi_next_must_be(ampi_file *f, const ampi_section *s) {
    uint64_t index;
    char tag[5];
    int k;
    AMPI_TRY(ampi_next_read(f));
    for (k = 0; k < AMPI_SECTION_KINDS && !ampi_next_is(f, (ampi_section_kind)k); k++) {
    }
    memcpy(tag, f->next, 4);
    tag[4] = 0;
    tag[strspn(tag, "ABCDEFGHIJKLMNOPQRSTUVWXYZ ")] = 0;
    if (k == AMPI_SECTION_KINDS)
        return ampi_bad_file(f, "section \"%s\" is not known to this amp, or the file is damaged", tag);
    index = ampi_get(f->next + 4, 4);
    if (k == (int)s->kind && index == s->index) return AMP_OK;
    return ampi_bad_file(f, "%s %llu stands where %s %llu is expected: a section is missing, duplicated or unexpected",
        ampi_section_kinds[k].name, AMPI_ULL(index), ampi_section_kinds[s->kind].name, AMPI_ULL(s->index));
}

static amp_status ampi_differs(ampi_file *f, const ampi_section *s) {
    if (s->kind != AMPI_SECTION_ARRAY) return ampi_bad_file(f, "%s", ampi_section_kinds[s->kind].differs);
    return ampi_bad_file(f,
        "parameter %llu has a different name than \"%.100s\", or a different dtype, count or layout",
        AMPI_ULL(s->param), ampi_param_at(s->p, s->param)->name);
}

/* The file says whether an optional section was saved. */
static amp_status ampi_is_in_file(ampi_file *f, const ampi_section *s, int *is) {
    *is = 1;
    if (!s->optional) return AMP_OK;
    AMPI_TRY(ampi_next_read(f));
    *is = ampi_next_is(f, s->kind) && ampi_get(f->next + 4, 4) == s->index;
    *is &= memcmp(f->next + 16, s->fields, 8) == 0; /* which array of which parameter */
    return AMP_OK;
}

/* How a section is staged: 1 byte, whether the file had it; then its payload, elements in this machine's order. */
static size_t ampi_staged_bytes(const ampi_section *s) { return 1 + ampi_section_bytes(s); }
static amp_status ampi_visit_measure(ampi_file *f, ampi_section *s) {
    f->buffer_bytes += ampi_staged_bytes(s);
    return AMP_OK;
}
static uint8_t *ampi_next_staged(ampi_file *f, const ampi_section *s) {
    uint8_t *at = f->buffer + f->staged;
    f->staged += ampi_staged_bytes(s);
    return at;
}

/* The section must come now. Its payload goes to `to`, its values to s->fields, too. */
static amp_status ampi_read_section(ampi_file *f, ampi_section *s, uint8_t *to) {
    const ampi_elements *a = &s->elements;
    size_t had = s->kind == AMPI_SECTION_ARRAY ? 8 : 0, bytes = ampi_section_bytes(s);
    AMPI_TRY(ampi_next_must_be(f, s));
    if (ampi_get(f->next + 8, 8) != bytes) return ampi_differs(f, s);
    memcpy(to, f->next + 16, had);
    AMPI_TRY(ampi_read(f, to + had, s->n_fields - had));
    if (memcmp(to, s->fields, s->n_fixed) != 0) return ampi_differs(f, s);
    memcpy(s->fields, to, s->n_fields);
    AMPI_TRY(ampi_read(f, to + s->n_fields, bytes - s->n_fields));
    ampi_little_endian(to + s->n_fields, a->count, a->size);
    f->ready = 0;
    return AMP_OK;
}
static amp_status ampi_visit_read(ampi_file *f, ampi_section *s) { /* changes nothing */
    amp_scaler_state t;
    uint8_t *at = ampi_next_staged(f, s);
    int is;
    AMPI_TRY(ampi_is_in_file(f, s, &is));
    at[0] = (uint8_t)is;
    if (!is) return AMP_OK;
    AMPI_TRY(ampi_read_section(f, s, at + 1));
    if (s->kind == AMPI_SECTION_FP8) return ampi_fp8_from(f, s, at + 1 + s->n_fields);
    return s->kind == AMPI_SECTION_SCALER ? ampi_scaler_from(f, s, &t) : AMP_OK;
}
static amp_status ampi_visit_apply(ampi_file *f, ampi_section *s) {
    const ampi_elements *a = &s->elements;
    const uint8_t *at = ampi_next_staged(f, s);
    size_t bytes = a->count * a->size;
    if (!at[0]) return AMP_OK;
    memcpy(s->fields, at + 1, s->n_fields);
    at += 1 + s->n_fields;
    if (a->host) memcpy(a->ptr, at, bytes);
    if (!a->host && bytes) AMPI_TRY((f->ctx->b->copy)(f->ctx, a->ptr, at, bytes));
    return ampi_values_apply(f, s);
}

static amp_status ampi_read_head(ampi_file *f) {
    uint8_t head[16];
    uint64_t version;
    AMPI_TRY(ampi_read(f, head, sizeof head));
    if (memcmp(head, "AMPSTATE", 8) != 0) return ampi_bad_file(f, "not an amp state file");
    f->known = 1;
    f->sections = ampi_get(head + 12, 4);
    version = ampi_get(head + 8, 4);
    if (version == AMPI_STATE_VERSION) return AMP_OK;
    return ampi_bad_file(f, "version %llu, which this amp does not know", AMPI_ULL(version));
}
static amp_status ampi_read_end(ampi_file *f) {
    const uint64_t sum = ampi_xxh_end(&f->sum);
    ampi_section end;
    uint8_t b[8];
    memset(&end, 0, sizeof end);
    end.kind = AMPI_SECTION_END;
    AMPI_TRY(ampi_next_must_be(f, &end));
    AMPI_TRY(ampi_read_raw(f, b, 8));
    if (ampi_get(b, 8) != sum) return ampi_bad_file(f, "the file changed while it was read");
    return fgetc(f->f) == EOF ? AMP_OK : ampi_bad_file(f, "trailing data after the last section");
}
static amp_status ampi_state_read(ampi_file *f, const amp_state_desc *st) {
    AMPI_TRY(ampi_read_head(f));
    AMPI_TRY(ampi_walk(f, st, ampi_visit_read));
    return ampi_read_end(f);
}

/* ---- the verbs ---- */

static const char *ampi_stays(
    const amp_params *p) { /* why a set may not go to a file, or come from one; NULL: it may */
    const ampi_rule *rule = ampi_rule_of(p, p->scaler, AMPI_DO_LOAD);
    if (p->holds) return AMPI_OPEN;
    return rule->takes == AMPI_REFUSED ? rule->why : NULL;
}
static amp_status ampi_state_check(amp_ctx *ctx, const char *path, const amp_state_desc *st) {
    size_t i;
    AMPI_CHECK(st, "state is NULL");
    AMPI_REQUIRE(AMPI_CLEAN(st), AMP_ERR_UNINIT, "state is not zero-initialised (_begin or _end is not 0)");
    AMPI_CHECK(path && *path, "path is %s", path ? "empty" : "NULL");
    AMPI_CHECK(!st->flags, "state.flags is not 0");
    AMPI_CHECK(!st->n_params || st->params, "state.params is NULL");
    AMPI_CHECK(!st->n_scalers || st->scalers, "state.scalers is NULL");
    AMPI_CHECK(!st->user_bytes || st->user, "state.user is NULL");
    for (i = 0; i < st->n_params; i++) {
        const amp_params *p = st->params[i];
        AMPI_CHECK(p, "state.params[%llu] is NULL", AMPI_ULL(i));
        AMPI_CHECK(p->ctx == ctx, "state.params[%llu] belongs to a different context", AMPI_ULL(i));
        AMPI_STAGE(p->committed, "state.params[%llu] is not committed (amp_params_commit)", AMPI_ULL(i));
        AMPI_STAGE(!ampi_stays(p), "state.params[%llu]: %s", AMPI_ULL(i), ampi_stays(p));
    }
    for (i = 0; i < st->n_scalers; i++) {
        const amp_scaler *s = st->scalers[i];
        if (!s) continue;
        AMPI_CHECK(s->ctx == ctx, "state.scalers[%llu] belongs to a different context", AMPI_ULL(i));
        AMPI_STAGE(!s->checked, "state.scalers[%llu] is between a check and amp_scaler_update", AMPI_ULL(i));
    }
    AMPI_CHECK(!st->n_fp8 || st->fp8, "state.fp8 is NULL");
    for (i = 0; i < st->n_fp8; i++)
        AMPI_CHECK(st->fp8[i] && st->fp8[i]->ctx == ctx, "state.fp8[%llu] is NULL, or belongs to a different context",
            AMPI_ULL(i));
    return (ctx->b->may_wait)(ctx);
}

/* Loading gives the scalers their scale. */
static amp_status ampi_check_loaded(amp_ctx *ctx, const amp_state_desc *st) {
    size_t i;
    for (i = 0; i < st->n_scalers; i++)
        AMPI_STAGE(!st->scalers[i] || !ampi_held(st->scalers[i], NULL),
            "an accumulation window (amp_window_begin) holds the scale of state.scalers[%llu]", AMPI_ULL(i));
    return AMP_OK;
}
static amp_status ampi_file_begin(ampi_file *f, size_t buffer_bytes) {
    amp_ctx *ctx = f->ctx;
    f->sum = ampi_xxh_begin();
    f->buffer_bytes = buffer_bytes;
    f->buffer = (uint8_t *)ampi_host_take(&ctx->host, buffer_bytes); /* written before it is read: not zeroed */
    ampi_host_large_pages(&ctx->host, f->buffer, buffer_bytes);
    AMPI_REQUIRE(f->buffer, AMP_ERR_NO_MEMORY, "%llu bytes of host memory are needed", AMPI_ULL(buffer_bytes));
    return AMP_OK;
}
static ampi_file ampi_file_of(amp_ctx *ctx, const char *path) {
    ampi_file f = AMP_ZERO;
    f.ctx = ctx;
    f.path = path;
    return f;
}

static amp_status ampi_do_state_save(amp_ctx *ctx, const char *path, const amp_state_desc *state) {
    ampi_file f = ampi_file_of(ctx, path);
    ampi_replacement to;
    amp_status st;
    ampi_verb_hold(ctx);
    AMPI_TRY(ampi_state_check(ctx, path, state));
    AMPI_TRY(ampi_file_begin(&f, AMPI_STATE_BUFFER));
    f.to = &to;
    st = ampi_replacement_begin(&to, ctx, path);
    if (st == AMP_OK) st = ampi_replacement_end(&to, ampi_state_write(&f, state));
    ampi_host_drop(ctx, f.buffer, f.buffer_bytes);
    return st;
}
AMP_API amp_status amp_state_save(amp_ctx *ctx, const char *path, const amp_state_desc *state) {
    AMPI_VERB(ctx, state_save, (ctx, path, state));
}

static amp_status ampi_state_apply(ampi_file *f, const amp_state_desc *st) {
    size_t i;
    f->staged = 0;
    AMPI_TRY(ampi_walk(f, st, ampi_visit_apply));
    for (i = 0; i < st->n_params; i++) {
        if (st->params[i]->n) AMPI_TRY(ampi_first_steps(st->params[i], NULL, 1));
        if (!st->params[i]->stochastic) AMPI_TRY(ampi_do_params_master_to_model(st->params[i]));
    }
    return AMP_OK;
}
static amp_status ampi_state_load(ampi_file *f, const amp_state_desc *state) {
    amp_ctx *ctx = f->ctx;
    char reason[160];
    amp_status st;
    size_t i, n;
    AMPI_TRY(ampi_state_read(f, state));
    st = ampi_state_apply(f, state);
    for (i = 0; i < state->n_params; i++)
        ampi_weights_changed(ctx, state->params[i]);
    if (st != AMP_OK) { /* the device failed, not the file */
        n = ampi_name_verb(ctx, reason, sizeof reason);
        snprintf(reason, sizeof reason, "%.159s", strlen(ctx->error) > n ? ctx->error + n : "");
        return amp_fail(ctx, st, "%s: state undefined, load it again: %s", f->path, reason);
    }
    return AMP_OK;
}

static amp_status ampi_do_state_load(amp_ctx *ctx, const char *path, const amp_state_desc *state) {
    ampi_file f = ampi_file_of(ctx, path);
    amp_status st;
    unsigned mode;
    int32_t is;
    ampi_verb_hold(ctx);
    AMPI_TRY(ampi_state_check(ctx, path, state));
    AMPI_TRY(ampi_check_loaded(ctx, state));
    AMPI_TRY(ampi_check_kind(ctx, path, path, &is, &mode));
    (void)ampi_walk(&f, state, ampi_visit_measure);
    AMPI_TRY(ampi_file_begin(&f, f.buffer_bytes + 1));
    errno = 0;
    f.f = fopen(path, "rb");
    if (f.f)
        st = ampi_state_load(&f, state);
    else
        st = amp_fail(ctx, AMP_ERR_IO, "%s: cannot be opened: %s", path, ampi_reason());
    if (f.f) (void)fclose(f.f);
    ampi_host_drop(ctx, f.buffer, f.buffer_bytes);
    return st;
}
AMP_API amp_status amp_state_load(amp_ctx *ctx, const char *path, const amp_state_desc *state) {
    AMPI_VERB(ctx, state_load, (ctx, path, state));
}

#else
#  define AMPI_X(name) \
    AMP_API amp_status name(amp_ctx *ctx, const char *path, const amp_state_desc *state) { \
        (void)path; \
        (void)state; \
        AMP_VERB(ctx, #name, amp_fail(ctx, AMP_ERR_UNSUPPORTED, "built with AMP_NO_STDIO")); \
    }
AMPI_X(amp_state_save)
AMPI_X(amp_state_load)
#  undef AMPI_X
AMP_API amp_status amp_write_file(amp_ctx *ctx, const char *path, const void *data, size_t bytes) {
    (void)data;
    (void)bytes;
    return amp_fail(ctx, AMP_ERR_UNSUPPORTED, "%s: built with AMP_NO_STDIO", path);
}
#endif /* AMP_NO_STDIO */

