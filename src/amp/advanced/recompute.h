/* ---- recompute: the second forward is the first, bit for bit. What to keep: examples/recompute_plan.h ----
   tests: tests/test_memory.c */

typedef struct amp_snapshot { /* what a segment's forward saw; plain data. Do not change it */
    amp_policy policy;
    amp_dtype low, pin;
    uint32_t enabled, cache, outside, _pad; /* outside: no region was open */
    amp_rng rng;
    uint64_t iteration, weights; /* of the scaler (0: none); changes of weights so far on the context */
} amp_snapshot;

/* Before a segment's forward: remembers the region, rng (NULL: none) and the iteration of the scaler (NULL: none).
   Class: host. */
AMP_API amp_status amp_snapshot_take(amp_ctx *ctx, amp_snapshot *out, const amp_rng *rng, const amp_scaler *scaler);
/* Before its recompute: opens exactly that region (close it with amp_autocast_end) and sets *rng (NULL: not). STAGE if
   weights or the loss scale have changed since: the result would be different. Class: as amp_autocast_begin. */
AMP_API amp_status amp_snapshot_begin(amp_ctx *ctx, amp_rng *rng, const amp_snapshot *snapshot);

typedef struct amp_autocast_info { /* of the innermost region; counters since the outermost begin, also after its end */
    uint32_t depth, enabled, cache; /* depth: regions open */
    amp_dtype low, pin;
    uint32_t _pad;
    uint64_t casts, hits, resolved; /* made; answered from the cache; answered by a model copy */
    size_t arena, used, peak;       /* bytes; peak: what the scope needs, so the .arena that is just large enough */
} amp_autocast_info;
AMP_API amp_autocast_info amp_autocast_get(const amp_ctx *ctx); /* Class: host. */

