/* ---- the loss scale: what a scaler remembers, and its scale after a good step and after a bad one ----
   tests: tests/test_scaler.c, tests/test_edges.c */

#define AMP_FOUND_INF      1u
#define AMP_FOUND_NAN      2u
#define AMP_FOUND_OVERFLOW 4u

typedef struct amp_scaler_state { /* in context memory */
    float scale, inverse;         /* inverse = 1 / scale, kept for products */
    float growth_factor, backoff_factor, min_scale, max_scale;
    int32_t growth_interval, growth_tracker, hysteresis, hysteresis_tracker;
    uint32_t mode, no_check, dead_after;
    uint32_t found; /* AMP_FOUND_* of everything checked since the last update */
    uint32_t stuck; /* overflows in a row that could not lower the scale */
    uint32_t _pad;
    uint64_t good, bad, bad_in_a_row, bad_nan, bad_inf, bad_overflow;
} amp_scaler_state;

/* PyTorch's is 1 / scale in double, then rounded to float. That is what one division of floats gives: 53 bits are at
   least 2 * 24 + 2 (Figueroa, "When is double rounding innocuous?", 1995). */
AMP_INLINE float amp_inverse_scale(float scale) { return amp_div(1.0f, scale); }

/* The scale after one update; every backend and every table test runs this function. */
AMP_INLINE void amp_scaler_next(amp_scaler_state *s) {
    uint32_t found = s->found;
    float next;
    s->found = 0;
    if (found) {
        s->bad++;
        s->bad_in_a_row++;
        s->bad_nan += (found & AMP_FOUND_NAN) != 0;
        s->bad_inf += (found & AMP_FOUND_INF) != 0;
        s->bad_overflow += (found & AMP_FOUND_OVERFLOW) != 0;
        s->growth_tracker = 0;
        if (s->hysteresis_tracker > INT32_MIN) s->hysteresis_tracker--;
        if (s->hysteresis_tracker > 0) return;
        next = amp_mul(s->scale, s->backoff_factor);
        if (s->mode != AMP_SCALER_DYNAMIC)
            next = s->scale;
        else if (amp_less(next, s->min_scale))
            next = s->min_scale;
        if (amp_less(next, s->scale))
            s->stuck = 0;
        else if (s->stuck < UINT32_MAX)
            s->stuck++;
        s->scale = next;
        s->inverse = amp_inverse_scale(next);
    } else {
        s->good++;
        s->bad_in_a_row = 0;
        s->stuck = 0;
        s->hysteresis_tracker = s->hysteresis;
        if (s->growth_tracker < INT32_MAX) s->growth_tracker++;
        if (s->mode != AMP_SCALER_DYNAMIC || s->growth_interval <= 0 || s->growth_tracker < s->growth_interval) return;
        s->growth_tracker = 0;
        next = amp_mul(s->scale, s->growth_factor);
        if (amp_is_finite(next)) s->scale = amp_less(next, s->max_scale) ? next : s->max_scale;
        s->inverse = amp_inverse_scale(s->scale);
    }
}
AMP_INLINE uint32_t amp_scaler_dead(const amp_scaler_state *s) { return s->stuck >= s->dead_after; }

