#ifdef __cplusplus
} /* extern "C" */

/* C++ cannot take the address of a compound literal: every function with a desc also takes a reference. */
extern "C++" {
#  define AMPI_REF(name, desc) \
    static inline amp_status name(amp_ctx *c, const desc &d) { return name(c, &d); }
#  define AMPI_REF_STEP(name) \
    static inline amp_status name(amp_params *p, amp_scaler *s, const amp_step_desc &d) { return name(p, s, &d); }
AMPI_REF(amp_gemm, amp_gemm_desc)
AMPI_REF(amp_gemm_tune, amp_gemm_desc)
AMPI_REF(amp_linear_forward, amp_linear_desc)
AMPI_REF(amp_linear_backward, amp_linear_desc)
AMPI_REF(amp_linear_tune, amp_linear_desc)
AMPI_REF(amp_softmax_cross_entropy, amp_xent_desc)
AMPI_REF(amp_autocast_begin, amp_autocast_desc)
AMPI_REF(amp_dropout, amp_dropout_desc)
AMPI_REF_STEP(amp_step)
AMPI_REF_STEP(amp_update)
AMPI_REF_STEP(amp_inspect)
#  undef AMPI_REF
#  undef AMPI_REF_STEP
static inline amp_status amp_cast(amp_ctx *c, amp_array dst, amp_array src, size_t n, const amp_cast_desc &d) {
    return amp_cast(c, dst, src, n, &d);
}
static inline amp_status amp_gemm_explain(amp_ctx *c, char *text, size_t bytes, const amp_gemm_desc &d) {
    return amp_gemm_explain(c, text, bytes, &d);
}
static inline amp_status amp_policy_init(amp_ctx *c, amp_policy *p, amp_preset l, const amp_policy_desc &d) {
    return amp_policy_init(c, p, l, &d);
}
static inline amp_status amp_params_add(amp_params *p, const amp_param_desc &d) { return amp_params_add(p, &d); }
static inline amp_status amp_scaler_configure(amp_scaler *s, const amp_scaler_desc &d) {
    return amp_scaler_configure(s, &d);
}
static inline amp_status amp_state_save(amp_ctx *c, const char *path, const amp_state_desc &s) {
    return amp_state_save(c, path, &s);
}
static inline amp_status amp_state_load(amp_ctx *c, const char *path, const amp_state_desc &s) {
    return amp_state_load(c, path, &s);
}
static inline amp_status amp_cpu_create_checked(amp_ctx **out, int version, size_t size, const amp_cpu_desc &d) {
    return amp_cpu_create_checked(out, version, size, &d);
}
static inline amp_status amp_params_create_checked(
    amp_params **out, amp_ctx *c, int version, size_t size, const amp_params_desc &d) {
    return amp_params_create_checked(out, c, version, size, &d);
}
static inline amp_status amp_scaler_create_checked(
    amp_scaler **out, amp_ctx *c, int version, size_t size, const amp_scaler_desc &d) {
    return amp_scaler_create_checked(out, c, version, size, &d);
}
static inline amp_status amp_fp8_create_checked(
    amp_fp8 **out, amp_ctx *c, int version, size_t size, const amp_fp8_desc &d) {
    return amp_fp8_create_checked(out, c, version, size, &d);
}
} /* extern "C++" */
#endif

#if defined(__GNUC__)
#  pragma GCC diagnostic pop
#endif
#endif /* AMP_H */

