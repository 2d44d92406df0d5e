/* ==== >>front-plan ===============================================================================================
   The memory plan.   tests: tests/test_memory.c */

static void ampi_plan_param(ampi_layout *to, uint64_t count, const amp_params_desc *d, uint32_t keep_f32) {
    static const amp_param_desc none = AMP_ZERO; /* nothing is adopted */
    amp_param_entry e = AMP_ZERO;
    e.count = count;
    e.model_dtype = keep_f32 ? AMP_F32 : d->model;
    e.grad_dtype = keep_f32 ? AMP_F32 : d->grad;
    e.moment_dtype = d->moment;
    e.layout = ampi_layout_for(d->master, e.model_dtype);
    ampi_place_entry(to, &e, d, &none);
}
AMP_API amp_status amp_plan_memory(amp_plan *out, const amp_policy *policy, const amp_params_desc *layout,
    const amp_plan_layer *layers, size_t n, amp_dtype in) {
    amp_params_desc d;
    ampi_layout set = AMP_ZERO;
    amp_plan p = AMP_ZERO;
    size_t i, k;
    if (in == AMP_AUTO) in = AMP_F32;
    if (!policy || !out || (n && !layers) || !ampi_is_dtype(in)) return AMP_ERR_INVALID_ARG;
    d = ampi_params_defaults(layout ? *layout : amp_policy_params_desc(policy));
    if (!ampi_is_layout(&d)) return AMP_ERR_INVALID_ARG;
    for (i = 0; i < n; i++) {
        const amp_plan_layer *l = &layers[i];
        uint32_t keep = amp_policy_keep_f32(policy, l->op) && ampi_policy_mode(policy) == AMPI_ALL_LOWER;
        amp_dtype y = amp_policy_output(policy, l->op, in);
        if ((l->weight | l->bias | l->saved | l->saved_f32 | l->saved_bits) >> 56) return AMP_ERR_INVALID_ARG;
        for (k = 0; k < 2; k++) {
            uint64_t count = k ? l->bias : l->weight;
            uint32_t f32 = keep || (k && l->keep_bias);
            if (count) ampi_plan_param(&set, count, &d, f32);
            if (ampi_policy_mode(policy) != AMPI_AS_IS && (f32 || d.model == AMP_F32))
                p.casts += ampi_round256(count * 2u);
        }
        p.saved += l->saved * amp_dtype_size(y) + l->saved_f32 * 4u + (l->saved_bits + 7u) / 8u;
    }
    (void)ampi_place_tables(&set);
    p.master = set.bytes[AMPI_MASTERS];
    p.model = set.bytes[AMPI_MODELS];
    p.grad = set.bytes[AMPI_GRADS];
    p.moments = set.bytes[AMPI_MOMENTS];
    p.accum = set.bytes[AMPI_ACCUMS];
    p.tables = set.bytes[AMPI_TABLES];
    p.total = p.master + p.model + p.grad + p.moments + p.accum + p.tables + p.casts + p.saved;
    *out = p;
    return AMP_OK;
}

