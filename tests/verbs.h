/* verbs.h - every verb that works on a context: X(function, class). The classes are what "Class:" in the comments of
   amp.h says, and tests/headers.sh compares; enqueue_or_query: a query if it is asked for a report. A verb that is of
   class host when there is nothing to allocate stands as setup. Tests that must miss none go through this list. */
#ifndef VERBS_H
#define VERBS_H

#define VERB_LIST(X) \
    X(amp_alloc, setup) \
    X(amp_free, setup) \
    X(amp_copy, query) \
    X(amp_copy_async, enqueue) \
    X(amp_zero, enqueue) \
    X(amp_sync, query) \
    X(amp_cast, enqueue) \
    X(amp_all_finite, query) \
    X(amp_histogram_count, query) \
    X(amp_params_create, setup) \
    X(amp_params_add, setup) \
    X(amp_params_commit, setup) \
    X(amp_params_destroy, setup) \
    X(amp_params_master_to_model, enqueue) \
    X(amp_params_model_to_master, enqueue) \
    X(amp_params_grads_to, enqueue) \
    X(amp_params_zero_grad, enqueue) \
    X(amp_params_use, setup) \
    X(amp_params_set_steps, query) \
    X(amp_scaler_create, setup) \
    X(amp_scaler_destroy, setup) \
    X(amp_scaler_get, query) \
    X(amp_scaler_set_scale, query) \
    X(amp_scaler_set, query) \
    X(amp_scaler_configure, query) \
    X(amp_scaler_unscale, enqueue) \
    X(amp_unscale, enqueue_or_query) \
    X(amp_scaler_update, enqueue) \
    X(amp_step, enqueue) \
    X(amp_update, enqueue) \
    X(amp_inspect, enqueue) \
    X(amp_apply, enqueue) \
    X(amp_window_begin, host) \
    X(amp_window_end, host) \
    X(amp_accumulate, enqueue) \
    X(amp_param_read, query) \
    X(amp_param_write, query) \
    X(amp_grad_norm, query) \
    X(amp_clip, enqueue) \
    X(amp_step_poll, host) \
    X(amp_report, query) \
    X(amp_watch_array, query) \
    X(amp_autocast_begin, setup) \
    X(amp_autocast_release, setup) \
    X(amp_autocast_input, enqueue) \
    X(amp_snapshot_begin, setup) \
    X(amp_linear_cross_entropy, enqueue) \
    X(amp_linear_cross_entropy_bytes, host) \
    X(amp_dropout, enqueue) \
    X(amp_fp8_create, setup) \
    X(amp_fp8_destroy, setup) \
    X(amp_quantize, enqueue) \
    X(amp_fp8_get, query) \
    X(amp_gemm, enqueue) \
    X(amp_gemm_explain, host) \
    X(amp_gemm_tune, setup) \
    X(amp_linear_forward, enqueue) \
    X(amp_linear_backward, enqueue) \
    X(amp_linear_tune, setup) \
    X(amp_column_sums, enqueue) \
    X(amp_activation, enqueue) \
    X(amp_softmax_cross_entropy, enqueue) \
    X(amp_state_save, query) \
    X(amp_state_load, query)

#endif
