#ifdef __cplusplus
} /* extern "C" */

/* C++ cannot take the address of a compound literal: each of these functions also takes a reference. A row: name,
   desc, the arguments before it, and how they are declared.   tests: tests/compile.sh, tests/compile/overloads.cpp */
extern "C++" {
#  define AMPI_EACH(...) __VA_ARGS__
#  define AMPI_REF(name, desc, arguments, ...) \
    static inline amp_status name(__VA_ARGS__, const desc &d) { return name(AMPI_EACH arguments, &d); }
AMPI_REF(amp_gemm, amp_gemm_desc, (c), amp_ctx *c)
AMPI_REF(amp_gemm_tune, amp_gemm_desc, (c), amp_ctx *c)
AMPI_REF(amp_gemm_explain, amp_gemm_desc, (c, text, bytes), amp_ctx *c, char *text, size_t bytes)
AMPI_REF(amp_linear_forward, amp_linear_desc, (c), amp_ctx *c)
AMPI_REF(amp_linear_backward, amp_linear_desc, (c), amp_ctx *c)
AMPI_REF(amp_linear_tune, amp_linear_desc, (c), amp_ctx *c)
AMPI_REF(amp_activation, amp_activation_desc, (c), amp_ctx *c)
AMPI_REF(amp_softmax_cross_entropy, amp_xent_desc, (c), amp_ctx *c)
AMPI_REF(amp_linear_cross_entropy, amp_linear_xent_desc, (c), amp_ctx *c)
AMPI_REF(amp_linear_cross_entropy_bytes, amp_linear_xent_desc, (c, bytes), amp_ctx *c, size_t *bytes)
AMPI_REF(amp_dropout, amp_dropout_desc, (c), amp_ctx *c)
AMPI_REF(amp_cast, amp_cast_desc, (c, dst, src, n), amp_ctx *c, amp_array dst, amp_array src, size_t n)
AMPI_REF(amp_step, amp_step_desc, (p, s), amp_params *p, amp_scaler *s)
AMPI_REF(amp_update, amp_step_desc, (p, s), amp_params *p, amp_scaler *s)
AMPI_REF(amp_inspect, amp_step_desc, (p, s), amp_params *p, amp_scaler *s)
AMPI_REF(amp_params_add, amp_param_desc, (p), amp_params *p)
AMPI_REF(amp_scaler_configure, amp_scaler_desc, (s), amp_scaler *s)
AMPI_REF(amp_autocast_begin, amp_autocast_desc, (c), amp_ctx *c)
AMPI_REF(amp_policy_init, amp_policy_desc, (c, p, l), amp_ctx *c, amp_policy *p, amp_preset l)
AMPI_REF(amp_state_save, amp_state_desc, (c, path), amp_ctx *c, const char *path)
AMPI_REF(amp_state_load, amp_state_desc, (c, path), amp_ctx *c, const char *path)
AMPI_REF(amp_cpu_create_checked, amp_cpu_desc, (o, version, size), amp_ctx **o, int version, size_t size)
AMPI_REF(amp_params_create_checked, amp_params_desc, (o, c, v, size), amp_params **o, amp_ctx *c, int v, size_t size)
AMPI_REF(amp_scaler_create_checked, amp_scaler_desc, (o, c, v, size), amp_scaler **o, amp_ctx *c, int v, size_t size)
AMPI_REF(amp_fp8_create_checked, amp_fp8_desc, (o, c, v, size), amp_fp8 **o, amp_ctx *c, int v, size_t size)
#  undef AMPI_REF
#  undef AMPI_EACH
} /* extern "C++" */
#endif

#pragma pack(pop)
#if defined(__GNUC__)
#  pragma GCC diagnostic pop
#endif
#endif /* AMP_H */

