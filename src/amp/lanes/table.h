/* ---- what a path puts into the table: each starts from the one below it and replaces what it does better ---- */
#if AMPI_PASS == AMPI_PASS_SCALAR || AMPI_PASS == AMPI_PASS_VECTOR
static void AMPI_F(use)(ampi_kernels *k) {
    k->lanes = AMPI_WIDTH;
    AMPI_FORMATS(AMPI_FORMAT_USE)
#  if AMPI_PASS == AMPI_PASS_SCALAR || defined(AMPI_HAS_SHIFT_EACH)
    k->round = AMPI_F(round);
#  endif
    k->random = AMPI_F(random);
    k->bad = AMPI_F(bad);
    k->scale = AMPI_F(scale);
    k->axpy = AMPI_F(axpy);
    k->amax = AMPI_F(amax);
    k->fit = AMPI_F(fit);
    k->dot = AMPI_F(dot);
    k->squares = AMPI_F(squares);
    k->sum = AMPI_F(sum);
    k->count = AMPI_F(count);
    k->top = AMPI_F(top);
    k->exps = AMPI_F(exps);
    k->shares = AMPI_F(shares);
    k->act = AMPI_F(act);
    k->act_grad = AMPI_F(act_grad);
    k->drop = AMPI_F(drop);
    k->prepare = AMPI_F(prepare);
    k->sizes = AMPI_F(sizes);
    k->still = AMPI_F(still);
#  define AMP_X(kind, rule, moments) k->update[kind] = AMPI_F(rule);
    AMP_UPDATE_LIST(AMP_X)
#  undef AMP_X
#  ifdef AMPI_HAS_STREAM
    k->stream = AMPI_F(stream);
#  endif
}
#endif

#undef AMPI_INNER
#undef AMPI_OUTER
#undef AMPI_STEP
#undef AMPI_LEFT
#undef AMPI_PASS
#endif /* AMPI_PASS */

