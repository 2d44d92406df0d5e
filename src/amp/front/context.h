/* ==== >>front-context ============================================================================================
   Contexts and their memory.   tests: tests/test_context.c */

static int ampi_is_usable(const amp_backend *b) {
    int memory = b->alloc && b->release && b->copy && b->copy_async && b->zero;
    return b->name && b->destroy && memory && b->sync && b->may_wait && b->cast;
}
AMP_API amp_status amp_ctx_create_backend(
    amp_ctx **out, const amp_backend *backend, void *self, const amp_allocator *host, const amp_logger *logger) {
    amp_allocator none = AMP_ZERO;
    amp_ctx *ctx;
    if (!out) return AMP_ERR_INVALID_ARG;
    *out = NULL;
    if (!backend) return AMP_ERR_INVALID_ARG;
    if (backend->version != (uint32_t)AMP_VERSION || backend->size != sizeof *backend) return AMP_ERR_VERSION;
    if (!ampi_is_usable(backend)) return AMP_ERR_INVALID_ARG;
    if (!host) host = &none;
    ctx = (amp_ctx *)ampi_host_alloc(host, sizeof *ctx);
    if (!ctx) return AMP_ERR_NO_MEMORY;
    ctx->table = *backend;
    ctx->b = &ctx->table;
    ctx->self = self;
    ctx->host = *host;
    if (logger) ctx->log = *logger;
    ctx->rows = (amp_ledger_row *)ampi_grow(host, NULL, 0, &ctx->cap_rows, sizeof *ctx->rows);
    if (!ctx->rows) {
        ampi_host_free(host, ctx, sizeof *ctx);
        return AMP_ERR_NO_MEMORY;
    }
    memcpy(ctx->rows[0].label, "total", 6);
    ctx->n_rows = 1;
    *out = ctx;
    return AMP_OK;
}

AMP_API void *amp_ctx_self(const amp_ctx *ctx) { return ctx->self; }
AMP_API const char *amp_last_error(const amp_ctx *ctx) {
    const char *refused = ctx ? ampi_refusal(ctx) : "";
    return refused ? refused : ctx->error;
}
AMP_API const char *amp_ctx_name(const amp_ctx *ctx) { return ctx ? ctx->b->name : ""; }

static void ampi_scope_destroy(amp_ctx *ctx);
static void ampi_do_params_destroy(amp_params *p);
static void ampi_do_scaler_destroy(amp_scaler *s);
static void ampi_do_fp8_destroy(amp_fp8 *f);
AMP_API void amp_ctx_destroy(amp_ctx *ctx) {
    amp_allocator host;
    int error = errno, before;
    ampi_end_left(ctx);
    before = ampi_hold(); /* the backend's part follows the verb's end */
    if (amp_verb_begin(ctx, "amp_ctx_destroy" AMPI_BUSY) != AMP_OK) {
        ampi_release(before);
        return;
    }
    ampi_scope_destroy(ctx);
    while (ctx->sets) {
        amp_log_event(ctx, AMP_LOG_WARNING, "a parameter set was not destroyed");
        ampi_do_params_destroy(ctx->sets);
    }
    while (ctx->scalers) {
        amp_log_event(ctx, AMP_LOG_WARNING, "a scaler was not destroyed");
        ampi_do_scaler_destroy(ctx->scalers);
    }
    while (ctx->fp8s) {
        amp_log_event(ctx, AMP_LOG_WARNING, "an amp_fp8 was not destroyed");
        ampi_do_fp8_destroy(ctx->fp8s);
    }
    while (ctx->n_blocks) {
        const ampi_block b = ctx->blocks[ctx->n_blocks - 1];
        amp_log_event(
            ctx, AMP_LOG_WARNING, "%llu bytes of \"%s\" were not freed", AMPI_ULL(b.bytes), ctx->rows[b.row].label);
        ctx->n_blocks--;
        (ctx->b->release)(ctx, b.ptr, b.bytes);
    }
    (void)amp_verb_end(ctx, AMP_OK);
    (ctx->b->destroy)(ctx);
    host = ctx->host;
    ampi_host_free(&host, ctx->blocks, ctx->cap_blocks * sizeof *ctx->blocks);
    ampi_host_free(&host, ctx->rows, ctx->cap_rows * sizeof *ctx->rows);
    ampi_host_free(&host, ctx, sizeof *ctx);
    errno = error;
    ampi_release(before);
}

static void ampi_ledger_add(amp_ledger_row *r, size_t bytes) {
    r->bytes += bytes;
    if (r->peak < r->bytes) r->peak = r->bytes;
}

static amp_status ampi_backend_zeros(amp_ctx *ctx, void **out, size_t bytes) {
    amp_status st;
    if (ctx->b->alloc_zeros) return (ctx->b->alloc_zeros)(ctx, out, bytes);
    AMPI_TRY((ctx->b->alloc)(ctx, out, bytes));
    st = (ctx->b->zero)(ctx, *out, bytes);
    if (st != AMP_OK) (ctx->b->release)(ctx, *out, bytes);
    return st;
}
static amp_status ampi_alloc_block(amp_ctx *ctx, void **out, size_t bytes, const char *label, int zeros) {
    amp_ledger_row *rows = ctx->rows;
    ampi_block *blocks;
    void *p = NULL;
    size_t row;
    amp_status st;
    AMPI_CHECK(out, "out is NULL");
    *out = NULL;
    if (!label) label = "user";
    AMPI_CHECK(strlen(label) <= 31, "label \"%s\" is longer than 31 characters", label);
    if (bytes == 0) return AMP_OK;
    for (row = 1; row < ctx->n_rows; row++)
        if (strcmp(rows[row].label, label) == 0) break;
    if (row == ctx->n_rows)
        rows = (amp_ledger_row *)ampi_grow(&ctx->host, rows, ctx->n_rows, &ctx->cap_rows, sizeof *rows);
    if (rows) ctx->rows = rows;
    blocks = (ampi_block *)ampi_grow(&ctx->host, ctx->blocks, ctx->n_blocks, &ctx->cap_blocks, sizeof *blocks);
    if (blocks) ctx->blocks = blocks;
    AMPI_REQUIRE(rows && blocks, AMP_ERR_NO_MEMORY, "no memory for the ledger");
    AMPI_TRY(zeros ? ampi_backend_zeros(ctx, &p, bytes) : (ctx->b->alloc)(ctx, &p, bytes));
    st = ampi_settle(ctx, AMP_OK);
    if (st != AMP_OK) {
        (ctx->b->release)(ctx, p, bytes);
        return st;
    }
    if (row == ctx->n_rows) {
        memset(&rows[row], 0, sizeof rows[row]);
        memcpy(rows[row].label, label, strlen(label));
        ctx->n_rows++;
    }
    ampi_ledger_add(&rows[0], bytes);
    ampi_ledger_add(&rows[row], bytes);
    blocks += ctx->n_blocks++;
    blocks->ptr = p;
    blocks->bytes = bytes;
    blocks->row = row;
    blocks->given = 0;
    *out = p;
    return AMP_OK;
}
static amp_status ampi_do_alloc(amp_ctx *ctx, void **out, size_t bytes, const char *label) {
    AMPI_CHECK(!label || strcmp(label, "total") != 0, "label \"total\" is that of all rows");
    AMPI_TRY(ampi_alloc_block(ctx, out, bytes, label, 0));
    if (*out) ctx->blocks[ctx->n_blocks - 1].given = 1;
    return AMP_OK;
}
AMP_API amp_status amp_alloc(amp_ctx *ctx, void **out, size_t bytes, const char *label) {
    if (out) *out = NULL;
    AMPI_VERB(ctx, alloc, (ctx, out, bytes, label));
}

static void ampi_drop_casts(ampi_scope *s, const void *data, size_t bytes);
/* A verb writes here, or frees it: the casts of what lies there are stale. */
static void ampi_wrote(amp_ctx *ctx, const void *data, size_t bytes) {
    if (ctx->scope && data) ampi_drop_casts(ctx->scope, data, bytes);
}
/* The block that begins at ptr, usually a young one; or NULL. */
static ampi_block *ampi_block_at(amp_ctx *ctx, const void *ptr) {
    size_t i = ctx->n_blocks;
    while (i > 0 && ctx->blocks[i - 1].ptr != ptr)
        i--;
    return i ? &ctx->blocks[i - 1] : NULL;
}
static void ampi_free_block(amp_ctx *ctx, void *ptr) { /* NULL is fine */
    ampi_block *b = ptr ? ampi_block_at(ctx, ptr) : NULL;
    if (!b) return;
    ampi_wrote(ctx, ptr, b->bytes);
    (ctx->b->release)(ctx, ptr, b->bytes);
    ctx->rows[0].bytes -= b->bytes;
    ctx->rows[b->row].bytes -= b->bytes;
    ctx->n_blocks--;
    memmove(b, b + 1, (size_t)(&ctx->blocks[ctx->n_blocks] - b) * sizeof *b);
}
static amp_status ampi_do_free(amp_ctx *ctx, void *ptr) {
    const ampi_block *b = ampi_block_at(ctx, ptr);
    AMPI_CHECK(!ptr || (b && b->given), "ptr was not given by amp_alloc of this context, or is freed already");
    ampi_free_block(ctx, ptr);
    return AMP_OK;
}
AMP_API amp_status amp_free(amp_ctx *ctx, void *ptr) { AMPI_VERB(ctx, free, (ctx, ptr)); }

AMP_API size_t amp_ledger(const amp_ctx *ctx, amp_ledger_row *out, size_t cap, const char *label) {
    size_t i, n = 0;
    if (!ctx) return 0;
    for (i = 0; i < ctx->n_rows; i++) {
        if (label && strcmp(ctx->rows[i].label, label) != 0) continue;
        if (out && n < cap) out[n] = ctx->rows[i];
        n++;
    }
    return n;
}

static amp_status ampi_do_copy(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    if (bytes == 0) return AMP_OK;
    AMPI_CHECK(dst && src, "%s is NULL", dst ? "src" : "dst");
    AMPI_TRY((ctx->b->may_wait)(ctx));
    ampi_wrote(ctx, dst, bytes);
    return (ctx->b->copy)(ctx, dst, src, bytes);
}
AMP_API amp_status amp_copy(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    AMPI_VERB(ctx, copy, (ctx, dst, src, bytes));
}
static amp_status ampi_do_copy_async(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    if (bytes == 0) return AMP_OK;
    AMPI_CHECK(dst && src, "%s is NULL", dst ? "src" : "dst");
    ampi_wrote(ctx, dst, bytes);
    return (ctx->b->copy_async)(ctx, dst, src, bytes);
}
AMP_API amp_status amp_copy_async(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    AMPI_VERB(ctx, copy_async, (ctx, dst, src, bytes));
}
static amp_status ampi_do_zero(amp_ctx *ctx, void *dst, size_t bytes) {
    if (bytes == 0) return AMP_OK;
    AMPI_CHECK(dst, "dst is NULL");
    ampi_wrote(ctx, dst, bytes);
    return (ctx->b->zero)(ctx, dst, bytes);
}
AMP_API amp_status amp_zero(amp_ctx *ctx, void *dst, size_t bytes) { AMPI_VERB(ctx, zero, (ctx, dst, bytes)); }
static amp_status ampi_do_sync(amp_ctx *ctx) {
    AMPI_TRY((ctx->b->may_wait)(ctx));
    return (ctx->b->sync)(ctx);
}
AMP_API amp_status amp_sync(amp_ctx *ctx) { AMPI_VERB(ctx, sync, (ctx)); }

