/* ==== >>fp8 ======================================================================================================
   FP8 with a scale per tensor: q = x * scale, rounded to FP32, then to the nearest FP8 number; a product multiplies by
   1 / scale. What is finite saturates; Inf and NaN stay (E4M3, which has no Inf: NaN), so that a loss scaler sees them.
       scale = the format's largest finite number / 2^margin / amax, one FP32 division; if that is Inf, the largest
               float; with power_of_two rounded down to one. amax: the largest |x| of the tensor that is not NaN
   Current scaling: the amax of the tensor that is cast, which is read twice; 1 if it is 0 or Inf.
   Delayed scaling: the largest amax of the last `history` casts before this one, so the tensor is read once. An amax of
   0 is not remembered. Before the first, the scale is 1; while an Inf is among them, it stays as it is.
   This is TransformerEngine's definition (transformer_engine/common/recipe), but that there Inf saturates.
   tests: tests/test_fp8.c */

struct amp_fp8_desc {
    uint32_t _begin;
    uint32_t tensors;            /* 0 => 3: x, w and dy of a layer, in this order */
    uint32_t history;            /* 0 => current scaling; 1 .. 65536 => delayed scaling (TransformerEngine: 1024) */
    uint32_t margin;             /* 0 .. 6: that many powers of two are left free */
    uint32_t power_of_two;       /* 1: see above */
    amp_dtype forward, backward; /* formats of layers: of x and w, of dy: AMP_AUTO => AMP_F8E4M3 and AMP_F8E5M2 */
    uint32_t flags;              /* 0 */
    uint64_t _end;
};

/* amp_quantize: both outputs have one format, and nothing overlaps; rows or cols 0: nothing happens. Finite numbers
   saturate; Inf and NaN stay (E4M3: NaN). amp_fp8_inverse_ptr: context memory, valid until destroy; of the last cast, 1
   before it; NULL past the end.
   amp_fp8_info: scale and amax of the last cast (1 and 0 before it), largest: of the amaxes that are remembered.

   A layer with .fp8 quantises x and w in forward and makes y of them; its backward takes dy through the act, adds up
   dbias as always, quantises dy, and x and w again with forward's scales (keep), transposed where hardware multiplies
   x w^T only. In a scope with AMP_PRESET_FP8, and outside of scopes; in other scopes, in disabled regions and with a
   pin the layer runs as if .fp8 were NULL. Give a record there: backward does what it says. */

