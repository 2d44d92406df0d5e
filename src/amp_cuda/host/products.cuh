/* ==== >>cuda-products ================================================================================================
   tests: tests/test_products.c, tests/test_product_table.c */

static amp_status ampi_cu_epilogue(ampi_cuda *c, const amp_gemm_job *p, int add_bias) {
    size_t step = p->ldd; /* bits of every distance between rows */
    int wide;
    if (p->batch > 1u) step |= p->stride_d;
    if (p->m == 1u && p->batch == 1u) step = 0;
    wide = ampi_cu_wide(&p->d, step) && (p->aux.dtype == AMP_MASK || ampi_cu_wide(&p->aux, step));
    return ampi_cu_launch(c, ampi_cu_grid(c, ampi_cu_parts(p->batch * p->m * ampi_cu_parts(p->n, 8), AMP_BLOCK)),
        amp_gemm_masked(p) ? ampi_k_epilogue<1> : ampi_k_epilogue<0>, *p, add_bias, wide, ampi_cu_wide(&p->bias, 0));
}

static amp_status ampi_cu_activation(amp_ctx *ctx, const amp_activation_job *j) {
    const int wide = ampi_cu_wide(&j->in, 0) && ampi_cu_wide(&j->saved, 0) && ampi_cu_wide(&j->out, 0);
    const amp_dtype t = j->out.dtype;
    const int alike = j->in.dtype == t && (!j->saved.data || j->saved.dtype == t);
    const uint64_t work = ampi_cu_parts(j->count, 8u * AMP_BLOCK);
    ampi_cuda *c = ampi_cu_self(ctx);
    if (alike && t == AMP_F16) return ampi_cu_share(c, work, ampi_k_activation_alike<AMP_F16>, *j, wide);
    if (alike && t == AMP_BF16) return ampi_cu_share(c, work, ampi_k_activation_alike<AMP_BF16>, *j, wide);
    return ampi_cu_share(c, work, ampi_k_activation, *j, wide);
}
/* Only the activation: where dy and saved have the same 16 bits, the kernel that knows their format, which needs fewer
   registers, so that an SM holds more of it; else the epilogue of a product that is there already. */
static amp_status ampi_cu_act_grad(ampi_cuda *c, const amp_bias_grad_job *j) {
    amp_gemm_job p = AMP_ZERO;
    amp_activation_job a = AMP_ZERO;
    a.in = a.out = j->dy;
    a.saved = j->saved;
    a.act = j->act;
    a.count = j->rows * j->cols;
    if (j->dy.dtype == j->saved.dtype && amp_dtype_size(j->dy.dtype) == 2u) return ampi_cu_activation(c->ctx, &a);
    p.m = p.batch = 1;
    p.n = p.ldd = j->rows * j->cols;
    if (j->saved.dtype == AMP_MASK) {
        p.m = j->rows;
        p.n = p.ldd = j->cols;
    }
    p.d = j->dy;
    p.aux = j->saved;
    p.act = j->act;
    p.backward = 1;
    return ampi_cu_epilogue(c, &p, 0);
}
/* Fewer teams a block where else some SMs had none. */
static amp_status ampi_cu_bias_launch(ampi_cuda *c, ampi_k_bias_args *a) {
    const int words = a->alike && !a->wide, masked = a->job.act != AMP_ACT_NONE && a->job.saved.dtype == AMP_MASK;
    const uint64_t each = ampi_cu_parts(a->work, 2u * (uint64_t)c->sms);
    uint64_t blocks;
    a->teams = (uint32_t)(each < AMPI_TEAMS ? each : AMPI_TEAMS);
    blocks = ampi_cu_parts(a->work, a->teams);
    switch (words + 2 * masked) {
    case 0: return ampi_cu_share(c, blocks, ampi_k_bias_grad<0>, *a);
    case 1: return ampi_cu_share(c, blocks, ampi_k_bias_grad<1>, *a);
    case 2: return ampi_cu_share(c, blocks, ampi_k_bias_grad<2>, *a);
    default: return ampi_cu_share(c, blocks, ampi_k_bias_grad<3>, *a);
    }
}
/* Sums of parts go to the workspace, which is free between products: as many stripes of columns at a time as fit. */
static amp_status ampi_cu_bias_grad(amp_ctx *ctx, const amp_bias_grad_job *j) {
    ampi_cuda *c = ampi_cu_self(ctx);
    ampi_k_bias_args a = AMP_ZERO;
    uint64_t room;
    int mask;
    if (!j->dbias.data) return ampi_cu_act_grad(c, j);
    a.job = *j;
    a.parts = ampi_cu_parts(j->rows, AMP_ROWS);
    mask = j->act == AMP_ACT_NONE || j->saved.dtype == AMP_MASK; /* or nothing: any address will do */
    a.wide = ampi_cu_wide(&j->dy, j->ld) && j->cols % 8u == 0 && (mask || ampi_cu_wide(&j->saved, j->cols));
    a.alike = amp_dtype_size(j->dy.dtype) == 2u && (mask || j->dy.dtype == j->saved.dtype);
    a.partial = a.parts > 1u ? (float *)c->workspace : NULL;
    room = a.partial ? c->workspace_bytes / (4u * a.parts) / AMPI_K_STRIPE * AMPI_K_STRIPE : j->cols;
    if (room == 0 || j->step != 1u) {
        if (j->act != AMP_ACT_NONE) AMPI_TRY(ampi_cu_act_grad(c, j));
        return ampi_cu_launch(c, ampi_cu_grid(c, ampi_cu_parts(j->cols, AMP_BLOCK)), ampi_k_columns_alone, *j);
    }
    for (a.from = 0; a.from < j->cols; a.from += a.columns) {
        a.columns = j->cols - a.from < room ? j->cols - a.from : room;
        a.work = a.parts * ampi_cu_parts(a.columns, AMPI_K_STRIPE);
        AMPI_TRY(ampi_cu_bias_launch(c, &a));
        if (a.partial) AMPI_TRY(ampi_cu_launch(c, (unsigned)ampi_cu_parts(a.columns, AMPI_TEAM), ampi_k_columns, a));
    }
    return AMP_OK;
}
/* The column sums of a product's d, where its plan did not make them. */
static amp_status ampi_cu_column_sums(ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_plan *plan) {
    const amp_bias_grad_job sums = amp_gemm_sums(p);
    if (!p->dbias.data || (plan->lt && plan->epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD)) return AMP_OK;
    return ampi_cu_bias_grad(c->ctx, &sums);
}

