/* ---- plan files: what was found out about products, for the next run on the same kind of device.
   tests: tests/cuda_verbs.cpp ---- */

typedef struct ampi_cu_plan_head {
    char magic[8];
    uint64_t library, plan_bytes;
    char device[64];
    uint64_t sms, workspace, count;
    uint64_t sum; /* XXH64 of what comes before it and of the plans after it */
} ampi_cu_plan_head;
typedef struct ampi_cu_plan_file { /* a file as it is, in host memory */
    ampi_cu_plan_head head;
    ampi_cu_plan plans[1]; /* head.count of them */
} ampi_cu_plan_file;

static size_t ampi_cu_plan_bytes(uint64_t count) {
    return offsetof(ampi_cu_plan_file, plans) + (size_t)count * sizeof(ampi_cu_plan);
}
static void ampi_cu_plan_describe(const ampi_cuda *c, ampi_cu_plan_head *h) {
    memset(h, 0, sizeof *h);
    memcpy(h->magic, "AMPPLAN5", 8);
    h->library = (uint64_t)cublasLtGetVersion();
    h->plan_bytes = sizeof(ampi_cu_plan);
    snprintf(h->device, sizeof h->device, "%.48s sm_%d", c->name + sizeof AMPI_CU_KIND - 1, c->arch);
    h->sms = (uint64_t)c->sms;
    h->workspace = c->workspace_bytes;
}
static uint64_t ampi_cu_plan_sum(const ampi_cu_plan_file *f) {
    ampi_xxh h = ampi_xxh_begin();
    ampi_xxh_add(&h, &f->head, offsetof(ampi_cu_plan_head, sum));
    ampi_xxh_add(&h, f->plans, (size_t)f->head.count * sizeof *f->plans);
    return ampi_xxh_end(&h);
}
/* The head of a file that this version has written, as far as the head tells. */
static int ampi_cu_plan_read_head(FILE *file, ampi_cu_plan_head *h) {
    if (fread(h, sizeof *h, 1, file) != 1 || memcmp(h->magic, "AMPPLAN5", 8) != 0) return 0;
    return h->count <= AMPI_CU_MOST && h->plan_bytes == sizeof(ampi_cu_plan);
}
static int ampi_cu_plan_read(FILE *file, ampi_cu_plan_file *f) { /* what comes after it */
    if (fread(f->plans, sizeof *f->plans, (size_t)f->head.count, file) != f->head.count || fgetc(file) != EOF) return 0;
    return f->head.sum == ampi_cu_plan_sum(f);
}

static int ampi_cu_plan_order(const void *a, const void *b) { /* of qsort: the least recently used one first */
    uint64_t x = ((const ampi_cu_plan *)a)->used, y = ((const ampi_cu_plan *)b)->used;
    return x < y ? -1 : x > y;
}
static void ampi_cu_plan_collect(const ampi_cuda *c, ampi_cu_plan_file *f) {
    uint32_t i;
    ampi_cu_plan_describe(c, &f->head);
    for (i = 0; i < c->n_begun; i++)
        if (c->plans[i].used && c->plans[i].lt) f->plans[f->head.count++] = c->plans[i];
    qsort(f->plans, (size_t)f->head.count, sizeof *f->plans, ampi_cu_plan_order);
    for (i = 0; i < f->head.count; i++) { /* what is of this context alone */
        f->plans[i].why = NULL;
        f->plans[i].used = f->plans[i].next = 0;
    }
    f->head.sum = ampi_cu_plan_sum(f);
}
static amp_status ampi_cu_plans_save(amp_ctx *ctx, const char *path) {
    const ampi_cuda *c = ampi_cu_of(ctx);
    ampi_cu_plan_file *f;
    amp_status s;
    if (!c) return amp_fail(ctx, AMP_ERR_INVALID_ARG, "ctx is not a CUDA context");
    if (!path) return amp_fail(ctx, AMP_ERR_INVALID_ARG, "path is NULL");
    f = (ampi_cu_plan_file *)ampi_cu_host_new(&c->host, ampi_cu_plan_bytes(c->n_begun));
    if (!f) return amp_fail(ctx, AMP_ERR_NO_MEMORY, "no host memory");
    ampi_cu_plan_collect(c, f);
    s = amp_write_file(ctx, path, f, ampi_cu_plan_bytes(f->head.count));
    ampi_cu_host_drop(&c->host, f, ampi_cu_plan_bytes(c->n_begun));
    return s;
}
extern "C" amp_status amp_cuda_plans_save(amp_ctx *ctx, const char *path) {
    AMP_VERB(ctx, "amp_cuda_plans_save", ampi_cu_plans_save(ctx, path));
}

static void ampi_cu_plan_adopt(ampi_cuda *c, const ampi_cu_plan *from) {
    ampi_cu_plan *plan = ampi_cu_plan_find(c, &from->key);
    if (plan)
        ampi_cu_plan_forget(c, plan);
    else
        plan = ampi_cu_plan_room(c);
    *plan = *from;
    plan->unchecked = 1;
    plan->why = "a plan from a file";
    ampi_cu_plan_keep(c, plan);
}
static amp_status ampi_cu_plan_same(amp_ctx *ctx, const char *path, const ampi_cu_plan_head *h) {
    ampi_cu_plan_head mine;
    ampi_cu_plan_describe(ampi_cu_self(ctx), &mine);
    if (memcmp(&mine, h, offsetof(ampi_cu_plan_head, count)) == 0) return AMP_OK;
    return amp_fail(ctx, AMP_ERR_FORMAT,
        "%s was made with cuBLASLt %llu on %.63s with %llu SMs; here is %llu, %s, %llu (or the workspace differs)",
        path, AMPI_ULL(h->library), h->device, AMPI_ULL(h->sms), AMPI_ULL(mine.library), mine.device,
        AMPI_ULL(mine.sms));
}
static amp_status ampi_cu_plans_read(amp_ctx *ctx, const char *path, FILE *file, ampi_cu_plan_file **out) {
    ampi_cu_plan_head head;
    int good = ampi_cu_plan_read_head(file, &head);
    if (good) {
        *out = (ampi_cu_plan_file *)ampi_cu_host_new(&ampi_cu_self(ctx)->host, ampi_cu_plan_bytes(head.count));
        if (!*out) return amp_fail(ctx, AMP_ERR_NO_MEMORY, "no host memory");
        (*out)->head = head;
        good = ampi_cu_plan_read(file, *out);
    }
    if (!good) return amp_fail(ctx, AMP_ERR_FORMAT, "%s is not a plan file of this version, or damaged", path);
    return ampi_cu_plan_same(ctx, path, &(*out)->head);
}
static amp_status ampi_cu_plans_load(amp_ctx *ctx, const char *path) {
    const ampi_cuda *c = ampi_cu_of(ctx);
    ampi_cu_plan_file *f = NULL;
    struct stat there;
    FILE *file;
    amp_status s;
    uint64_t i;
    if (!c) return amp_fail(ctx, AMP_ERR_INVALID_ARG, "ctx is not a CUDA context");
    if (!path) return amp_fail(ctx, AMP_ERR_INVALID_ARG, "path is NULL");
    if (stat(path, &there) == 0 && (there.st_mode & S_IFMT) != S_IFREG) /* to open a fifo might never end */
        return amp_fail(ctx, AMP_ERR_IO, "%s: a regular file is needed", path);
    file = fopen(path, "rb");
    if (!file) return amp_fail(ctx, AMP_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    s = ampi_cu_plans_read(ctx, path, file, &f);
    (void)fclose(file);
    for (i = 0; s == AMP_OK && i < f->head.count; i++)
        ampi_cu_plan_adopt(ampi_cu_self(ctx), &f->plans[i]);
    if (f) ampi_cu_host_drop(&c->host, f, ampi_cu_plan_bytes(f->head.count));
    return s;
}
extern "C" amp_status amp_cuda_plans_load(amp_ctx *ctx, const char *path) {
    AMP_VERB(ctx, "amp_cuda_plans_load", ampi_cu_plans_load(ctx, path));
}

extern "C" amp_status amp_cuda_plans_get(const amp_ctx *ctx, amp_cuda_plans *out) {
    const ampi_cuda *c = ampi_cu_of(ctx);
    if (!out) return AMP_ERR_INVALID_ARG;
    memset(out, 0, sizeof *out);
    if (!c) return AMP_ERR_INVALID_ARG;
    out->searches = c->searches;
    out->room = c->n_plans;
    return AMP_OK;
}
