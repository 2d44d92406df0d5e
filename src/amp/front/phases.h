/* ---- the phases of a set: which verb may be called when, and the sentence where it may not.

   A set is in one phase. The table says for each phase and verb which gradients the verb takes and the phase after it,
   or why it is refused. A phase belongs to the scaler that the set is tied to: to any other scaler, or to none, the set
   is as after that scaler's update.
   tests: tests/test_phases.c ---- */

typedef enum ampi_verb {
    AMPI_DO_UNSCALE,
    AMPI_DO_STEP, /* amp_step and amp_update */
    AMPI_DO_INSPECT,
    AMPI_DO_APPLY,
    AMPI_DO_ACCUMULATE,
    AMPI_DO_MEASURE, /* amp_grad_norm and amp_clip */
    AMPI_DO_NEXT,    /* the scaler moves on: amp_scaler_update and its like */
    AMPI_DO_LOAD,    /* amp_state_load; amp_state_save asks it, too */
    AMPI_VERBS
} ampi_verb;

typedef enum ampi_takes {
    AMPI_REFUSED = 0, /* the sentence says why */
    AMPI_NOTHING,
    AMPI_SCALED, /* gradients that carry the loss scale */
    AMPI_PLAIN,  /* gradients as they are: they were unscaled, or used */
    AMPI_SUMS    /* accumulators */
} ampi_takes;

typedef struct ampi_rule {
    ampi_takes takes;
    ampi_phase next;
    char why[72]; /* no pointer: the table stays read-only in position-independent code */
} ampi_rule;

#define AMPI_TWICE     "the set is unscaled already since the last amp_scaler_update"
#define AMPI_USED      "the set has stepped already since the last amp_scaler_update"
#define AMPI_NO_RECORD "amp_inspect comes first: its record is what an update reads"
#define AMPI_OPEN      "the set is inside an accumulation window"
#define AMPI_MIDST     "the set is between a check and amp_scaler_update"

/* clang-format off */
#define AMPI_GO(takes, next) {AMPI_##takes, AMPI_##next, ""}
#define AMPI_NO(why)         {AMPI_REFUSED, AMPI_READY, why}
static const ampi_rule ampi_rules[AMPI_PHASES][AMPI_VERBS] = {
    /* ready */
    {AMPI_GO(SCALED, UNSCALED), AMPI_GO(SCALED, STEPPED), AMPI_GO(SCALED, INSPECTED), AMPI_NO(AMPI_NO_RECORD),
     AMPI_GO(SCALED, ADDING), AMPI_GO(SCALED, READY),
     AMPI_GO(NOTHING, READY), AMPI_GO(NOTHING, READY)},
    /* unscaled */
    {AMPI_NO(AMPI_TWICE), AMPI_GO(PLAIN, STEPPED), AMPI_GO(PLAIN, INSPECTED), AMPI_NO(AMPI_NO_RECORD),
     AMPI_GO(PLAIN, ADDING), AMPI_GO(PLAIN, UNSCALED),
     AMPI_GO(NOTHING, READY), AMPI_NO(AMPI_MIDST)},
    /* stepped */
    {AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_NO(AMPI_NO_RECORD),
     AMPI_NO(AMPI_USED), AMPI_GO(PLAIN, STEPPED),
     AMPI_GO(NOTHING, READY), AMPI_GO(NOTHING, READY)},
    /* inspected */
    {AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_GO(PLAIN, INSPECTED),
     AMPI_NO(AMPI_USED), AMPI_GO(PLAIN, INSPECTED),
     AMPI_GO(NOTHING, READY), AMPI_NO(AMPI_MIDST)},
    /* adding */
    {AMPI_GO(SCALED, ADDING_UNSCALED), AMPI_GO(SUMS, SUMMED), AMPI_GO(SUMS, ADDED), AMPI_NO(AMPI_NO_RECORD),
     AMPI_GO(SCALED, ADDING), AMPI_GO(SUMS, ADDING),
     AMPI_GO(NOTHING, ADDING), AMPI_NO(AMPI_OPEN)},
    /* adding, gradients unscaled */
    {AMPI_NO(AMPI_TWICE), AMPI_GO(SUMS, STEPPED), AMPI_GO(SUMS, ADDED), AMPI_NO(AMPI_NO_RECORD),
     AMPI_GO(PLAIN, ADDING), AMPI_GO(SUMS, ADDING_UNSCALED),
     AMPI_GO(NOTHING, ADDING), AMPI_NO(AMPI_OPEN)},
    /* added */
    {AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_GO(SUMS, ADDED),
     AMPI_NO(AMPI_USED), AMPI_GO(SCALED, ADDED),
     AMPI_GO(NOTHING, READY), AMPI_NO(AMPI_MIDST)},
    /* summed */
    {AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_NO(AMPI_USED), AMPI_NO(AMPI_NO_RECORD),
     AMPI_NO(AMPI_USED), AMPI_GO(SCALED, SUMMED),
     AMPI_GO(NOTHING, READY), AMPI_GO(NOTHING, READY)}};
#undef AMPI_GO
#undef AMPI_NO
/* clang-format on */

static ampi_phase ampi_phase_after_update(const amp_params *p) { return ampi_rules[p->phase][AMPI_DO_NEXT].next; }

/* The set's phase as s sees it. An iteration in which s has checked nothing is a new one: after accumulated
   micro-batches it may have moved on before the step, which then was part of the iteration before. */
static ampi_phase ampi_phase_for(const amp_params *p, const amp_scaler *s) {
    const int now = ampi_is_on(s) && p->scaler == s && s->checked && !p->late;
    return now ? p->phase : ampi_phase_after_update(p);
}
static const ampi_rule *ampi_rule_of(const amp_params *p, const amp_scaler *s, ampi_verb verb) {
    return &ampi_rules[ampi_phase_for(p, s)][verb];
}

static int ampi_is_at_rest(const amp_params *p) { /* no gradient is half-way between unscale and update */
    const ampi_phase now = ampi_phase_for(p, p->scaler);
    return !p->holds && (now == AMPI_READY || now == AMPI_STEPPED || now == AMPI_SUMMED);
}

/* forgets the scaler, and with it the hold on its scale */
static void ampi_untie(amp_params *p) {
    if (!p->scaler) return;
    AMPI_UNLINK(amp_params, p->scaler->tied, p, next_tied);
    p->phase = ampi_phase_after_update(p);
    p->scaler = NULL;
    p->next_tied = NULL;
    p->holds = 0;
}
static void ampi_tie(amp_params *p, amp_scaler *s) {
    if (p->scaler == s) return;
    ampi_untie(p);
    p->phase = ampi_phase_after_update(p);
    p->scaler = s;
    p->next_tied = s->tied;
    s->tied = p;
}
static void ampi_enter_phase(amp_params *p, amp_scaler *s, ampi_phase next) {
    if (ampi_is_on(s))
        ampi_tie(p, s);
    else if (!p->holds)
        ampi_untie(p);
    p->late = 0;
    p->phase = next;
}

/* p and s (NULL allowed) as arguments of a step verb */
static amp_status ampi_check_pair(amp_ctx *ctx, const amp_params *p, const amp_scaler *s) {
    AMPI_TRY(ampi_check_params(ctx, p));
    return s ? ampi_check_scaler(ctx, s) : AMP_OK;
}

/* may the verb be called now? For verbs that change the phase. */
static amp_status ampi_check_phase(amp_ctx *ctx, const amp_params *p, const amp_scaler *s, const ampi_rule *rule) {
    AMPI_STAGE(p->n > 0, "the set has no parameters: nothing to check");
    AMPI_STAGE(rule->takes != AMPI_REFUSED, "%s", rule->why);
    AMPI_STAGE(!p->holds || !ampi_is_on(s) || p->scaler == s,
        "the set's accumulation window holds the scale of a different scaler, or was begun without one");
    return AMP_OK;
}

