/* ---- FP8 with a scale per tensor: the rules of >>fp8 ----
   Which scale an amax makes, which one a cast uses, and what a cast leaves for the next. Every backend calls these.
   tests: tests/test_fp8.c */

/* The scale for an amax; `otherwise` for 0 and Inf. Of an amax so small that the quotient is Inf, the largest float. */
AMP_INLINE float amp_fp8_scale_of(const amp_quantize_job *j, float amax, float otherwise) {
    uint32_t scale;
    if (!ampi_nonzero(amax) || !amp_is_finite(amax)) return otherwise;
    scale = ampi_bits(amp_div(j->most, amax));
    if (scale > 0x7f7fffffu) scale = 0x7f7fffffu;
    return ampi_float(j->power_of_two ? scale & 0x7f800000u : scale);
}
/* The scale that a cast uses. Current scaling: what amp_fp8_end has left. */
AMP_INLINE float amp_fp8_begin(const amp_quantize_job *j) {
    if (j->keep || !j->history) return j->state->scale;
    return amp_fp8_scale_of(j, j->state->window, j->state->scale);
}
/* What a cast leaves, by one thread. 1: the history has a new amax, so its largest is wanted. */
AMP_INLINE int amp_fp8_end(const amp_quantize_job *j, float amax) {
    amp_fp8_state *s = j->state;
    s->scale = j->history ? amp_fp8_begin(j) : amp_fp8_scale_of(j, amax, 1.0f);
    s->inverse = amp_div(1.0f, s->scale);
    s->amax = amax;
    if (!j->history || !ampi_nonzero(amax)) return 0;
    j->history[s->at % j->n_history] = amax;
    s->at = (s->at + 1u) % j->n_history;
    return 1;
}
AMP_INLINE uint32_t amp_fp8_most(amp_dtype t) { return ampi_decode_any(ampi_format_of(t).maxf, t); } /* float bits */

