/* ---- what a path puts into the table: each starts from the one below it and replaces what it does better.
   tests: tests/test_paths.c ---- */
#if AMPI_PASS == AMPI_PASS_SCALAR || AMPI_PASS == AMPI_PASS_VECTOR
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
#  endif
    k->random = AMPI_F(random);
    k->is_bad = AMPI_F(is_bad);
    k->scale = AMPI_F(scale);
    k->axpy = AMPI_F(axpy);
    k->amax = AMPI_F(amax);
    k->fit_to = AMPI_F(fit_to);
    k->dots = AMPI_F(dots);
    k->squares = AMPI_F(squares);
    k->sum = AMPI_F(sum);
    k->count = AMPI_F(count);
    k->largest = AMPI_F(largest);
    k->exps = AMPI_F(exps);
    k->softmax_shares = AMPI_F(softmax_shares);
    k->targets = AMPI_F(targets);
    k->misses = AMPI_F(misses);
    k->grad_each = AMPI_F(grad_each);
    k->act = AMPI_F(act);
    k->act_grad = AMPI_F(act_grad);
    k->drop = AMPI_F(drop);
    k->prepare = AMPI_F(prepare);
    k->count_sizes = AMPI_F(count_sizes);
    k->count_unchanged = AMPI_F(count_unchanged);
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
#  undef AMPI_F
#  undef AMPI_TARGET
#  undef AMPI_WIDTH
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
#undef AMPI_PASS
#endif /* AMPI_PASS */

