/* called.h - which verb was called last: its sentence must begin with that name. Included after amp.h: from here on a
   call of a verb by its name goes through a macro that notes it. What calls it (T_CALLED is for several threads). */
#ifndef CALLED_H
#define CALLED_H

#if defined(__GNUC__) && !defined(__TINYC__)
#  define T_CALLED __thread
#else
#  define T_CALLED
#endif
#ifdef __cplusplus
extern "C" {
#endif
extern T_CALLED const char *t_called; /* NULL: none since it was set so */
#ifdef __cplusplus
}
#endif
#define T_CALL(verb, name, ...) (t_called = #name, verb(__VA_ARGS__))

#define amp_alloc(...)                  T_CALL(amp_alloc, amp_alloc, __VA_ARGS__)
#define amp_free(...)                   T_CALL(amp_free, amp_free, __VA_ARGS__)
#define amp_copy(...)                   T_CALL(amp_copy, amp_copy, __VA_ARGS__)
#define amp_copy_async(...)             T_CALL(amp_copy_async, amp_copy_async, __VA_ARGS__)
#define amp_zero(...)                   T_CALL(amp_zero, amp_zero, __VA_ARGS__)
#define amp_sync(...)                   T_CALL(amp_sync, amp_sync, __VA_ARGS__)
#define amp_cast(...)                   T_CALL(amp_cast, amp_cast, __VA_ARGS__)
#define amp_all_finite(...)             T_CALL(amp_all_finite, amp_all_finite, __VA_ARGS__)
#define amp_histogram_count(...)        T_CALL(amp_histogram_count, amp_histogram_count, __VA_ARGS__)
#define amp_params_create_checked(...)  T_CALL(amp_params_create_checked, amp_params_create, __VA_ARGS__)
#define amp_params_add(...)             T_CALL(amp_params_add, amp_params_add, __VA_ARGS__)
#define amp_params_commit(...)          T_CALL(amp_params_commit, amp_params_commit, __VA_ARGS__)
#define amp_params_master_to_model(...) T_CALL(amp_params_master_to_model, amp_params_master_to_model, __VA_ARGS__)
#define amp_params_model_to_master(...) T_CALL(amp_params_model_to_master, amp_params_model_to_master, __VA_ARGS__)
#define amp_params_grads_to(...)        T_CALL(amp_params_grads_to, amp_params_grads_to, __VA_ARGS__)
#define amp_params_zero_grad(...)       T_CALL(amp_params_zero_grad, amp_params_zero_grad, __VA_ARGS__)
#define amp_params_use(...)             T_CALL(amp_params_use, amp_params_use, __VA_ARGS__)
#define amp_params_set_steps(...)       T_CALL(amp_params_set_steps, amp_params_set_steps, __VA_ARGS__)
#define amp_scaler_create_checked(...)  T_CALL(amp_scaler_create_checked, amp_scaler_create, __VA_ARGS__)
#define amp_scaler_get(...)             T_CALL(amp_scaler_get, amp_scaler_get, __VA_ARGS__)
#define amp_scaler_set_scale(...)       T_CALL(amp_scaler_set_scale, amp_scaler_set_scale, __VA_ARGS__)
#define amp_scaler_set(...)             T_CALL(amp_scaler_set, amp_scaler_set, __VA_ARGS__)
#define amp_scaler_configure(...)       T_CALL(amp_scaler_configure, amp_scaler_configure, __VA_ARGS__)
#define amp_scaler_unscale(...)         T_CALL(amp_scaler_unscale, amp_scaler_unscale, __VA_ARGS__)
#define amp_unscale(...)                T_CALL(amp_unscale, amp_unscale, __VA_ARGS__)
#define amp_scaler_update(...)          T_CALL(amp_scaler_update, amp_scaler_update, __VA_ARGS__)
#define amp_step(...)                   T_CALL(amp_step, amp_step, __VA_ARGS__)
#define amp_update(...)                 T_CALL(amp_update, amp_update, __VA_ARGS__)
#define amp_inspect(...)                T_CALL(amp_inspect, amp_inspect, __VA_ARGS__)
#define amp_apply(...)                  T_CALL(amp_apply, amp_apply, __VA_ARGS__)
#define amp_window_begin(...)           T_CALL(amp_window_begin, amp_window_begin, __VA_ARGS__)
#define amp_window_end(...)             T_CALL(amp_window_end, amp_window_end, __VA_ARGS__)
#define amp_accumulate(...)             T_CALL(amp_accumulate, amp_accumulate, __VA_ARGS__)
#define amp_param_read(...)             T_CALL(amp_param_read, amp_param_read, __VA_ARGS__)
#define amp_param_write(...)            T_CALL(amp_param_write, amp_param_write, __VA_ARGS__)
#define amp_grad_norm(...)              T_CALL(amp_grad_norm, amp_grad_norm, __VA_ARGS__)
#define amp_clip(...)                   T_CALL(amp_clip, amp_clip, __VA_ARGS__)
#define amp_step_poll(...)              T_CALL(amp_step_poll, amp_step_poll, __VA_ARGS__)
#define amp_report(...)                 T_CALL(amp_report, amp_report, __VA_ARGS__)
#define amp_watch_array(...)            T_CALL(amp_watch_array, amp_watch_array, __VA_ARGS__)
#define amp_autocast_begin(...)         T_CALL(amp_autocast_begin, amp_autocast_begin, __VA_ARGS__)
#define amp_autocast_release(...)       T_CALL(amp_autocast_release, amp_autocast_release, __VA_ARGS__)
#define amp_autocast_input(...)         T_CALL(amp_autocast_input, amp_autocast_input, __VA_ARGS__)
#define amp_snapshot_begin(...)         T_CALL(amp_snapshot_begin, amp_snapshot_begin, __VA_ARGS__)
#define amp_linear_cross_entropy(...)   T_CALL(amp_linear_cross_entropy, amp_linear_cross_entropy, __VA_ARGS__)
#define amp_linear_cross_entropy_bytes(...) \
    T_CALL(amp_linear_cross_entropy_bytes, amp_linear_cross_entropy_bytes, __VA_ARGS__)
#define amp_dropout(...)               T_CALL(amp_dropout, amp_dropout, __VA_ARGS__)
#define amp_fp8_create_checked(...)    T_CALL(amp_fp8_create_checked, amp_fp8_create, __VA_ARGS__)
#define amp_quantize(...)              T_CALL(amp_quantize, amp_quantize, __VA_ARGS__)
#define amp_fp8_get(...)               T_CALL(amp_fp8_get, amp_fp8_get, __VA_ARGS__)
#define amp_column_sums(...)           T_CALL(amp_column_sums, amp_column_sums, __VA_ARGS__)
#define amp_activation(...)            T_CALL(amp_activation, amp_activation, __VA_ARGS__)
#define amp_gemm(...)                  T_CALL(amp_gemm, amp_gemm, __VA_ARGS__)
#define amp_gemm_explain(...)          T_CALL(amp_gemm_explain, amp_gemm_explain, __VA_ARGS__)
#define amp_gemm_tune(...)             T_CALL(amp_gemm_tune, amp_gemm_tune, __VA_ARGS__)
#define amp_linear_forward(...)        T_CALL(amp_linear_forward, amp_linear_forward, __VA_ARGS__)
#define amp_linear_backward(...)       T_CALL(amp_linear_backward, amp_linear_backward, __VA_ARGS__)
#define amp_linear_tune(...)           T_CALL(amp_linear_tune, amp_linear_tune, __VA_ARGS__)
#define amp_softmax_cross_entropy(...) T_CALL(amp_softmax_cross_entropy, amp_softmax_cross_entropy, __VA_ARGS__)
#define amp_state_save(...)            T_CALL(amp_state_save, amp_state_save, __VA_ARGS__)
#define amp_state_load(...)            T_CALL(amp_state_load, amp_state_load, __VA_ARGS__)
#define amp_autocast_end(...)          T_CALL(amp_autocast_end, amp_autocast_end, __VA_ARGS__)
#define amp_policy_init(...)           T_CALL(amp_policy_init, amp_policy_init, __VA_ARGS__)
#define amp_policy_set(...)            T_CALL(amp_policy_set, amp_policy_set, __VA_ARGS__)
#define amp_policy_edit(...)           T_CALL(amp_policy_edit, amp_policy_edit, __VA_ARGS__)
#define amp_policy_custom(...)         T_CALL(amp_policy_custom, amp_policy_custom, __VA_ARGS__)
#define amp_snapshot_take(...)         T_CALL(amp_snapshot_take, amp_snapshot_take, __VA_ARGS__)
/* 1: the sentence begins with the verb that was called, or none was called by its name. */
static inline int t_names_verb(const char *sentence) {
    size_t n = t_called ? strlen(t_called) : 0;
    return !n || (strncmp(sentence, t_called, n) == 0 && sentence[n] == ':');
}

#endif
