/* ---- plan files: what was found out about products, for the next run on the same kind of device.
   tests: tests/cuda_verbs.cpp ---- */

typedef struct ampi_cu_plan_head {
    char magic[8];
    uint64_t library, plan_bytes;
    char device[64];
    uint64_t sms, workspace, count;
    uint64_t sum; /* XXH64 of what comes before it and of the plans after it */
} ampi_cu_plan_head;
typedef struct ampi_cu_plan_file { /* `count` plans of it are in the file */
    ampi_cu_plan_head head;
    ampi_cu_plan plans[AMPI_CU_PLANS];
} ampi_cu_plan_file;

static void ampi_cu_plan_describe(const ampi_cuda *c, ampi_cu_plan_head *h) {
    memset(h, 0, sizeof *h);
    memcpy(h->magic, "AMPPLAN4", 8);
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
static int ampi_cu_plan_read(FILE *file, ampi_cu_plan_file *f) {
    if (fread(&f->head, sizeof f->head, 1, file) != 1 || memcmp(f->head.magic, "AMPPLAN4", 8) != 0) return 0;
    if (f->head.count > AMPI_CU_PLANS || f->head.plan_bytes != sizeof *f->plans) return 0;
    if (fread(f->plans, sizeof *f->plans, (size_t)f->head.count, file) != f->head.count || fgetc(file) != EOF) return 0;
    return f->head.sum == ampi_cu_plan_sum(f);
}

static amp_status ampi_cu_plans_save(amp_ctx *ctx, const char *path) {
    const ampi_cuda *c = ampi_cu_of(ctx);
    ampi_cu_plan_file f;
    uint32_t i;
    if (!c) return amp_fail(ctx, AMP_ERR_INVALID_ARG, "ctx is not a CUDA context");
    if (!path) return amp_fail(ctx, AMP_ERR_INVALID_ARG, "path is NULL");
    ampi_cu_plan_describe(c, &f.head);
    for (i = 0; i < AMPI_CU_PLANS; i++) { /* the oldest first, as they were made */
        const ampi_cu_plan *p = &c->plans[(c->next_plan + i) % AMPI_CU_PLANS];
        if (!p->used || !p->lt) continue;
        f.plans[f.head.count] = *p;
        f.plans[f.head.count++].why = NULL;
    }
    f.head.sum = ampi_cu_plan_sum(&f);
    return amp_write_file(ctx, path, &f, offsetof(ampi_cu_plan_file, plans) + (size_t)f.head.count * sizeof *f.plans);
}
extern "C" amp_status amp_cuda_plans_save(amp_ctx *ctx, const char *path) {
    AMP_VERB(ctx, "amp_cuda_plans_save", ampi_cu_plans_save(ctx, path));
}

static void ampi_cu_plan_adopt(ampi_cuda *c, const ampi_cu_plan *from) {
    ampi_cu_plan *plan = ampi_cu_plan_find(c, &from->key);
    if (!plan) {
        plan = &c->plans[c->next_plan];
        c->next_plan = (c->next_plan + 1u) % AMPI_CU_PLANS;
    }
    *plan = *from;
    plan->unchecked = plan->used = 1;
    plan->why = "a plan from a file";
}

static amp_status ampi_cu_plans_load(amp_ctx *ctx, const char *path) {
    ampi_cuda *c = ampi_cu_of(ctx) ? (ampi_cuda *)amp_ctx_self(ctx) : NULL;
    ampi_cu_plan_head mine;
    ampi_cu_plan_file f;
    struct stat there;
    FILE *file;
    uint64_t i;
    int good;
    if (!c) return amp_fail(ctx, AMP_ERR_INVALID_ARG, "ctx is not a CUDA context");
    if (!path) return amp_fail(ctx, AMP_ERR_INVALID_ARG, "path is NULL");
    if (stat(path, &there) == 0 && (there.st_mode & S_IFMT) != S_IFREG) /* to open a fifo might never end */
        return amp_fail(ctx, AMP_ERR_IO, "%s: a regular file is needed", path);
    file = fopen(path, "rb");
    if (!file) return amp_fail(ctx, AMP_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    good = ampi_cu_plan_read(file, &f);
    (void)fclose(file);
    if (!good) return amp_fail(ctx, AMP_ERR_FORMAT, "%s is not a plan file of this version, or damaged", path);
    ampi_cu_plan_describe(c, &mine);
    if (memcmp(&mine, &f.head, offsetof(ampi_cu_plan_head, count)) != 0)
        return amp_fail(ctx, AMP_ERR_FORMAT,
            "%s was made with cuBLASLt %llu on %.63s with %llu SMs; here is %llu, %s, %llu (or the workspace "
            "differs)",
            path, AMPI_ULL(f.head.library), f.head.device, AMPI_ULL(f.head.sms), AMPI_ULL(mine.library), mine.device,
            AMPI_ULL(mine.sms));
    for (i = 0; i < f.head.count; i++)
        ampi_cu_plan_adopt(c, &f.plans[i]);
    return AMP_OK;
}
extern "C" amp_status amp_cuda_plans_load(amp_ctx *ctx, const char *path) {
    AMP_VERB(ctx, "amp_cuda_plans_load", ampi_cu_plans_load(ctx, path));
}

