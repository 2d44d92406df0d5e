/* ---- what a path puts into the table: each starts from the one below it and replaces what it does better.
   tests: tests/test_paths.c ---- */
#if AMPI_PASS == AMPI_PASS_SCALAR || AMPI_PASS == AMPI_PASS_VECTOR
/* the loops that each path has */
/* clang-format off */
#  define AMPI_LOOPS(X) \
    X(random) X(is_bad) X(scale) X(axpy) X(add_four) X(amax) X(fit_to) X(dots) X(squares) X(sum) X(count) X(largest) \
    X(exps) X(softmax_shares) X(few_terms) X(few_shares) X(targets) X(misses) X(grad_each) X(act) \
    X(act_grad) X(mask_of) X(mask_grad) X(drop) X(moment_widen) X(moment_narrow) X(prepare) X(count_sizes) \
    X(count_unchanged)
/* clang-format on */
static void AMPI_F(use)(ampi_kernels *k) {
    uint32_t i = 0;
    k->lanes = AMPI_WIDTH;
    k->nr = AMPI_COLUMNS;
#  define AMP_X(rows) \
    k->mr[i] = rows; \
    k->tile[i++] = AMPI_F(tile_##rows);
    AMPI_TILES(AMP_X)
#  undef AMP_X
#  ifdef AMPI_HAS_FMA
    k->fused = NULL;
    k->direct = AMPI_F(direct);
    k->rescale = AMPI_F(rescale);
    k->relu16 = AMPI_F(relu16);
#  else
    k->fused = AMPI_F(fused);
#  endif
#  define AMP_X(T, name, ...) \
    k->widen[AMP_##T] = AMPI_F(widen_##name); \
    k->narrow[AMP_##T] = AMPI_F(narrow_##name);
    AMPI_FORMATS(AMP_X)
#  undef AMP_X
#  if AMPI_PASS == AMPI_PASS_SCALAR || defined(AMPI_HAS_SHIFT_EACH)
    k->round = AMPI_F(round);
    k->pair_widen = AMPI_F(pair_widen);
    k->pair_narrow = AMPI_F(pair_narrow);
#  endif
#  define AMP_X(name) k->name = AMPI_F(name);
    AMPI_LOOPS(AMP_X)
#  undef AMP_X
#  define AMP_X(kind, rule, moments) k->update[kind] = AMPI_F(rule);
    AMP_UPDATE_LIST(AMP_X)
#  undef AMP_X
#  ifdef AMPI_HAS_STREAM
    k->stream = AMPI_F(stream);
    k->fence = ampi_sse2_fence;
#  endif
#  ifdef AMPI_HAS_PACK4
    k->pack4 = AMPI_F(pack4);
#  endif
#  if AMPI_PASS == AMPI_PASS_SCALAR
    k->widen[AMP_F32] = ampi_scalar_widen_f32;
    k->narrow[AMP_F32] = ampi_scalar_narrow_f32;
#  endif
}
/* Here ends what the path defined. */
#  undef AMPI_LOOPS
#  undef AMPI_F
#  undef AMPI_TARGET
#  undef AMPI_WIDTH
#  undef AMPI_ROWS_AT_ONCE
#  undef AMPI_TILES
#  undef AMPI_COLUMNS
#  undef AMPI_MM
#  undef AMPI_REG
#  undef AMPI_ASM1
#  undef AMPI_ASM2
#  undef AMPI_FIRST
#  undef AMPI_EQUAL
#  undef AMPI_HAS_FMA
#  undef AMPI_HAS_SHIFT_EACH
#  undef AMPI_HAS_SOME
#  undef AMPI_HAS_MASKS
#  undef AMPI_HAS_HALVES
#  undef AMPI_HAS_HALVES_OF_F8
#  undef AMPI_HAS_STREAM
#  undef AMPI_HAS_PACK4
#endif

#undef AMPI_INNER
#undef AMPI_OUTER
#undef AMPI_STEP
#undef AMPI_LEFT
#undef AMPI_BITS
#undef AMPI_AS_FLOATS
#undef AMPI_PASS
#endif /* AMPI_PASS */

