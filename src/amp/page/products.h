/* ==== >>products =================================================================================================
   Row-major, FP32 accumulation. Error of one element against the exact result of the operands as stored:
       |d - exact| <= (k + 4) * 2^-24 * (|alpha| * sum |a||b| + |beta * c| + |bias|) + half a unit in the last place
   of d. On CUDA without AMP_GEMM_ORDERED read 2^-23 for 2^-24; FP8 adds 2^-6 * |alpha| * sum |a||b| (k * 2^-13 if
   AMP_GEMM_FAST_FP8; random terms: 2^-11). There, if d has 16 bits, these are rounded to d's dtype first: a bias of a
   different dtype; the value that backward multiplies by act'; the value before an act other than ReLU (GELU: on some
   GPUs); the sums before c or a bias (on some GPUs), or a bias_per_row. With sum_batches k is that of all batches. Any
   thread count gives the same bits. Other SIMD paths and devices agree within the bound, to the bit in ordered mode.
   Inf and NaN propagate (Inf saturates in an FP8 d). a and b have one dtype (FP8 formats may mix); c has d's dtype. */

/* GELU: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as in GPT-2; GELU_ERF: x Phi(x), PyTorch's default; SILU: x
   sigmoid(x). Largest errors in FP32, of the value and of the derivative: GELU 2.5e-7 |x| and 3e-7 (6e-6 and 4e-5 in a
   16-bit product on CUDA); GELU_ERF 3.5e-7 |x| and 3.5e-7; SILU 3e-7 |x| and 3e-7; TANH and SIGMOID 2.5e-7 |y| +
   2^-126, and 1.5e-7 from y as it is stored. */
typedef enum amp_act {
    AMP_ACT_NONE = 0,
    AMP_RELU,
    AMP_GELU,
    AMP_GELU_ERF,
    AMP_SILU,
    AMP_TANH,
    AMP_SIGMOID,
    AMP_ACT_COUNT
} AMP_INT amp_act;

/* Flags of amp_gemm_desc and amp_linear_desc, or of all products of a context (its desc's gemm_flags). The first four
   are permissions: ignored where there is no faster way, and beside AMP_GEMM_ORDERED. AMP_GEMM_ORDERED uses no Tensor
   Cores on CUDA. On the CPU most products take as long with it as without. Those of at most 4 rows take up to 5 times
   as long; those of F32 on AMP_SIMD_SCALAR and _SSE2, which lack fused multiply-add, 11 times (make bench-gemm). */
#define AMP_GEMM_TF32     1u  /* F32 operands may be rounded to TF32: error 2^-11 of each; CUDA, sm_80+: Tensor Cores */
#define AMP_GEMM_REDUCED  2u  /* partial sums over k may be rounded to d's dtype: Inf in F16 from 65520 up */
#define AMP_GEMM_F16_SUM  4u  /* F16 sums: error k * 2^-11 of sum |a||b|, Inf from 65520 up; faster on GeForce */
#define AMP_GEMM_FAST_FP8 8u  /* FP8 products may be summed with fewer bits: for forward products */
#define AMP_GEMM_EMULATE  16u /* CUDA: FP8 products that cuBLASLt refuses run in a plain, slow kernel */
#define AMP_GEMM_ORDERED  32u /* sums in the order that >>numerics gives: the same bits on every device and path */

typedef struct amp_gemm_desc { /* D[m,n] = act( alpha * op(A)[m,k] * op(B)[k,n] + beta * C[m,n] + bias[n] ) */
    uint32_t _begin;
    amp_act act;
    uint32_t backward;          /* 1: the value before act times act's derivative at aux. No bias */
    uint32_t trans_a, trans_b;  /* 1: A is stored [k,m], B is stored [n,k] */
    uint32_t flags;             /* AMP_GEMM_*, or 0 */
    uint32_t bias_per_row;      /* 1: bias and dbias have m elements, one for each row of d: images, channels first */
    uint32_t sum_batches, _pad; /* sum_batches 1: all batches add up to one d = act(alpha * sum op(A) op(B) + beta * C
                                  + bias), batch after batch, each along k. On CUDA fast only if d is F32 */
    amp_dtype pin;        /* a and b are read in this dtype; AMP_AUTO => as the scope says, else as they are. The copies
                           need an arena: STAGE before the first amp_autocast_begin */
    size_t m, n, k;       /* any may be 0: m or n 0: only dbias is written, 0; k 0 gives the product 0 */
    amp_array a, b, c, d; /* c: data NULL => d; read only when beta is not 0 (NaN in it is harmless otherwise) */
    amp_array bias;       /* n elements (bias_per_row: m) of any dtype, or data NULL */
    amp_array aux; /* [m,n] with d's leading dimension and stride, or data NULL. Output: the value before act. backward:
                      input, as forward left it; for TANH, SIGMOID and ReLU forward's d. ReLU: both may be AMP_MASK */
    /* output, as many as bias, any dtype, or data NULL: sums of d's columns (bias_per_row: rows). A bias gradient if d
       is a dy; if d is a dw: amp_column_sums. Needs one d (batch 1 or sum_batches), packed */
    amp_array dbias;
    size_t lda, ldb, ldc, ldd;           /* elements between rows as stored; 0 => packed */
    size_t batch;                        /* 0 => 1 */
    size_t stride_a, stride_b, stride_c; /* elements between batches; 0 => packed, or AMP_BROADCAST */
    size_t stride_d;                     /* 0 => packed; n, with ldd = batch * n: rows of the batches alternate */
    amp_optional alpha;                  /* not given: 1. With 0 a and b are not read */
    amp_optional beta;                   /* not given: 0, or 1 beside beta_ptr. With 0 c is not read */
    const float *alpha_ptr, *beta_ptr;   /* context memory: one more factor, read when the product runs; NULL => 1.
                           If beta * *beta_ptr is 0, c has no effect, nor has NaN in it; it must still be there. An
                           *alpha_ptr of 0 is a factor like any other: NaN and Inf of a and b stay NaN */
    const float *scale_a, *scale_b;      /* context memory, FP8 a, b only: factors of their elements; NULL => 1 */
    const float *scale_d;                /* context memory, FP8 d only: d = scale_d * act(...), saturated; NULL => 1 */
    float *amax_d;      /* output in context memory, FP8 d only: largest |act(...)|, before scale_d; or NULL */
    amp_dtype *d_dtype; /* host: d's dtype is returned here. Needed when d.dtype is AMP_AUTO, else NULL is fine */
    uint64_t _end;
} amp_gemm_desc;

/* d may be c, with the same leading dimension and stride; otherwise d overlaps no input. An FP8 d saturates. FP8 on
   CUDA without AMP_GEMM_EMULATE needs sm_89+ and an algorithm of cuBLASLt. As far as is known it has: x w^T only
   (trans_a 0, trans_b 1; sm_100: any), not both E5M2, n, k, leading dimensions and strides multiples of 16 (any m), a,
   b and d aligned to 16 bytes; for an FP8 d beta 0, and no E5M2 of two E4M3; else UNSUPPORTED says why. Class: enqueue.
   */
AMP_API amp_status amp_gemm(amp_ctx *ctx, const amp_gemm_desc *desc);
/* One sentence on how amp_gemm(ctx, desc) runs, and why, into text[bytes], cut to fit; *d_dtype is set. Class: host. */
AMP_API amp_status amp_gemm_explain(amp_ctx *ctx, char *text, size_t bytes, const amp_gemm_desc *desc);
/* CUDA: times cuBLASLt's candidates for this product with a cold L2 (for which it takes memory of twice that size), and
   keeps the fastest for its shape. Outputs stay, *d_dtype is set. The CPU has nothing to choose. Class: setup. */
AMP_API amp_status amp_gemm_tune(amp_ctx *ctx, const amp_gemm_desc *desc);

typedef struct amp_linear_desc { /* one layer: fill it once, use it for forward and backward */
    uint32_t _begin;
    amp_act act;
    size_t rows, in, out; /* batch, input features, output features; rows may be 0 */
    amp_array x;          /* [rows, in] */
    amp_array w;          /* [out, in], same dtype as x */
    amp_array bias;       /* [out] or data NULL; any dtype */
    amp_array y;          /* [rows, out]  = act(x w^T + bias): forward's output */
    amp_array aux;        /* [rows, out], y's dtype: the value before act, which backward of GELU, GELU_ERF and SILU
                             reads (or FP8, saturated); or ReLU's AMP_MASK, read instead of y; else NULL */
    amp_array dy;         /* [rows, out], gradient of y; with an act it is OVERWRITTEN by the gradient before act */
    amp_array dx;         /* [rows, in] output = dy w, or data NULL. dy and w have one dtype */
    amp_array dw;         /* [out, in] output = dy^T x, or data NULL. dy and x have one dtype */
    amp_array dbias;      /* [out] output = column sums of dy, or data NULL; any dtype */
    uint32_t accumulate;  /* 1: dw and dbias are added to what is there */
    uint32_t flags;       /* AMP_GEMM_* for its products, or 0 */
    uint32_t w_in_out;    /* 1: w is stored [in, out], as for y = x w, and so is dw; all else is as without it */
    uint32_t _pad;
    amp_precision *record;     /* host: written by forward, read by backward. NULL: no AUTO; x, w and dy have one dtype;
                                  if dx or dw is given, forward is refused where a scope would cast x or w */
    const amp_precision *from; /* host: the record of the layer that made x, if x.dtype is AMP_AUTO */
    amp_dtype pin;             /* x, w and dy are read in this dtype, see amp_gemm_desc.pin */
    uint32_t fp8_keep;         /* 1: forward with the scales of the last one: evaluation (>>fp8: keep) */
    amp_fp8 *fp8; /* NULL, or: its tensors fp8_first, + 1 and + 2 make FP8 copies of x, w and dy (F32 or 16 bits) ... */
    size_t fp8_first, scratch_bytes;
    void *scratch; /* ... in this context memory, which layers may share: rows*in + out*in + 2*rows*out + 1024 bytes */
    /* Host, or NULL. Two layers in a chain, b.x = a.y: with a.after = &b and b.before = &a b's backward also does the
       act and the dbias of a, inside the product that makes its dx, which is then the gradient before a's act. */
    const struct amp_linear_desc *before, *after;
    uint64_t _end;
} amp_linear_desc;

/* With a record, y, aux, dy and dx may be AMP_AUTO: y as the scope chooses, aux and dy as y, dx as x. dw and dbias
   always have a dtype. All matrices are packed row-major. A layer's y is the next layer's x, and the next layer's dx is
   this layer's dy. Backward of ReLU (0 where y <= 0, else dy, also where y is NaN), TANH and SIGMOID reads y; the
   others read aux. Class: enqueue. Numerics: products' bound. */
AMP_API amp_status amp_linear_forward(amp_ctx *ctx, const amp_linear_desc *l);
AMP_API amp_status amp_linear_backward(amp_ctx *ctx, const amp_linear_desc *l);
/* dst[cols] = sums over the rows of src[rows, cols]: a bias gradient alone, as amp_linear_backward's dbias. Any dtypes.
   ld: elements between rows of src, 0 => cols. accumulate 1: added to dst, in double. The sum is rounded to FP32, then
   to dst's dtype. rows 0: dst becomes 0, or stays with accumulate 1. dst and src do not overlap. Class: enqueue.
   Numerics: the rule of sums (>>sums), bit contract. */
AMP_API amp_status amp_column_sums(
    amp_ctx *ctx, amp_array dst, amp_array src, size_t rows, size_t cols, size_t ld, uint32_t accumulate);
/* amp_gemm_tune for each of its products whose output (y, dx, dw) is given; writes the record. Class: setup. */
AMP_API amp_status amp_linear_tune(amp_ctx *ctx, const amp_linear_desc *l);

/* FP8 with a scale per tensor: desc and rules at >>fp8. desc NULL: current scaling, for one layer. Class: setup. */
#define amp_fp8_create(out, ctx, ...) \
    amp_fp8_create_checked((out), (ctx), AMP_VERSION, sizeof(amp_fp8_desc), __VA_ARGS__)
typedef struct amp_fp8_desc amp_fp8_desc;
AMP_API amp_status amp_fp8_create_checked(
    amp_fp8 **out, amp_ctx *ctx, int version, size_t size, const amp_fp8_desc *desc);
AMP_API void amp_fp8_destroy(amp_fp8 *f); /* NULL is fine. Class: setup */
/* dst[rows, cols] and dst_t[cols, rows], FP8 (the data of one may be NULL): src[rows, cols], F32 or 16 bits, times the
   scale of tensor i, saturated. keep 1: uses the scale of its last cast and records nothing. Class: enqueue. Bit
   contract. */
AMP_API amp_status amp_quantize(
    amp_fp8 *f, size_t i, amp_array dst, amp_array dst_t, amp_array src, size_t rows, size_t cols, uint32_t keep);
AMP_API const float *amp_fp8_inverse_ptr(const amp_fp8 *f, size_t i);     /* 1 / scale, for scale_a, _b. Class: host */
typedef struct amp_fp8_info { float scale, amax, largest; } amp_fp8_info; /* of the last cast; of the history */
AMP_API amp_status amp_fp8_get(amp_fp8 *f, size_t i, amp_fp8_info *out);  /* Class: query */

typedef struct amp_activation_desc { /* y[i] = act(x[i]); or, with dx, dx[i] = dy[i] times act's derivative */
    uint32_t _begin;
    amp_act act; /* not AMP_ACT_NONE */
    size_t count;
    amp_array x;  /* the value before act: read by forward, and by backward of GELU, GELU_ERF and SILU */
    amp_array y;  /* forward's output, may be x, AMP_AUTO => x's dtype; read by backward of ReLU, TANH and SIGMOID */
    amp_array dy; /* gradient of y, for backward */
    amp_array dx; /* backward's output, may be dy; AMP_AUTO => dy's dtype. data NULL: forward */
    uint64_t _end;
} amp_activation_desc;

/* An activation without a product, forward or backward; any dtypes, each result rounded once, to nearest. Two arrays
   are the same (with one element size) or do not overlap. Class: enqueue. Numerics: bit contract; errors: amp_act. */
AMP_API amp_status amp_activation(amp_ctx *ctx, const amp_activation_desc *desc);

typedef struct amp_xent_desc {
    uint32_t _begin;
    uint32_t sum; /* 0: mean over the rows that count; 1: sum */
    size_t rows, classes;
    size_t ld;        /* elements between rows of logits, targets and dlogits; 0 => classes */
    amp_array logits; /* [rows, classes] */
    /* The right answers, in one of four fields. Labels: context memory, [rows], 0 .. classes-1; a negative label leaves
       its row out (gradient 0). Or targets, [rows, classes], any dtype: each row should sum to 1 */
    const int32_t *labels;
    const int64_t *labels64;
    const uint8_t *labels8;
    amp_array targets;
    amp_array weights;   /* of the classes, [classes], any dtype, or data NULL: 1 each */
    float *loss;         /* context memory, one float, or NULL: mean or sum of row_loss, NOT scaled */
    float *row_loss;     /* context memory, [rows]: -log softmax(logits)[label]; NULL only if loss is NULL */
    amp_array dlogits;   /* output [rows, classes] or data NULL: gradient TIMES THE LOSS SCALE; may be logits. With a
                           count of rows * ld or more, zeros are written to the columns from classes to ld */
    amp_scaler *scaler;  /* NULL => 1. Read where the verb runs: no host synchronisation */
    amp_optional factor; /* one more factor of the gradient, e.g. 1/N for N micro-batches; not given: 1 */
    float smoothing;     /* s, in [0, 1]: label smoothing; targets are (1-s) * one-hot (or targets) + s / classes */
    uint32_t softmax;    /* 1: no gradient; dlogits = softmax(logits) * factor, to sample from. Labels, targets,
                            weights, loss, row_loss and scaler NULL, smoothing 0 */
    const amp_precision *from; /* host: record of the layer that made logits of dtype AMP_AUTO; dlogits AUTO: same */
    uint64_t _end;
} amp_xent_desc;

/* Softmax cross-entropy and its gradient, computed in FP32, sums by the rule of sums (>>sums). A label >= classes makes
   the loss and the gradient of its row NaN. All rows left out: loss 0 (PyTorch: NaN). Weights w: target c of a row is
   multiplied by w[c]. The mean divides the sum by the sum of w[label] over the rows that count (by 1 if it is 0); with
   targets, by the number of rows. A target or a weight of 0 adds nothing to a loss, whatever the logit (PyTorch: NaN
   at -Inf). Class: enqueue. Numerics: bit contract. */
AMP_API amp_status amp_softmax_cross_entropy(amp_ctx *ctx, const amp_xent_desc *desc);

/* The last layer and its loss, `chunk` rows at a time: the logits are never in memory as a whole. */
typedef struct amp_linear_xent_desc {
    uint32_t _begin, _pad;
    amp_linear_desc linear; /* as for amp_linear_forward and _backward. y: its dtype alone; aux, dy: leave zero; no act,
                               before, after. dx, dw and dbias data NULL: the loss alone. scratch NULL, with FP8 too */
    amp_xent_desc xent;   /* as for amp_softmax_cross_entropy. rows, classes, ld: 0 or the layer's; logits, dlogits: no
                               data, dlogits.dtype AMP_AUTO => what products read w in (FP8: y's dtype) */
    size_t chunk;         /* 0 => as many as have 64 MiB of logits in FP32, a multiple of 256, at least 256 */
    void *scratch;        /* context memory, aligned to 256 bytes: afterwards the last piece's logits, or gradient */
    size_t scratch_bytes; /* at least what amp_linear_cross_entropy_bytes says */
    uint64_t _end;
} amp_linear_xent_desc;

/* Loss, row losses, dx, dw and dbias as from forward, cross-entropy and backward in a row; the mean is over all rows.
   With several pieces dw and dbias are summed in FP32 and rounded once. FP8 quantises w once, and x and the gradient of
   the logits piece by piece, each with the scale of its piece (delayed: each piece adds one to the history). Outputs do
   not overlap inputs. Class: enqueue. Numerics: products' bound. With AMP_GEMM_ORDERED, no FP8, no accumulate, FP32 dw
   and a chunk that is a multiple of 256, loss, dx and dw have the bits of one piece; dbias is a sum of sums. */
AMP_API amp_status amp_linear_cross_entropy(amp_ctx *ctx, const amp_linear_xent_desc *desc);
/* *bytes: the scratch that it needs; desc without scratch. Class: host. */
AMP_API amp_status amp_linear_cross_entropy_bytes(amp_ctx *ctx, size_t *bytes, const amp_linear_xent_desc *desc);

typedef struct amp_rng { uint64_t seed, stream, offset; } amp_rng; /* a place in the sequence of amp_random */

typedef struct amp_dropout_desc {
    uint32_t _begin;
    float p; /* share that is dropped, in [0, 1] */
    size_t count;
    amp_array x, y; /* y[i] = x[i] / (1 - p), or 0; may be one array. y.dtype AMP_AUTO => x's */
    amp_rng rng;    /* element i draws amp_random(seed, stream, offset + i): dropped if below p */
    uint64_t _end;
} amp_dropout_desc;

/* Dropout without a stored mask: backward is the same call on the gradient (x = dy, y = dx) with the same rng. Add
   count to rng.offset for the next call. Class: enqueue. Numerics: one FP32 product, rounded to y's dtype; a dropped
   NaN becomes 0. */
AMP_API amp_status amp_dropout(amp_ctx *ctx, const amp_dropout_desc *desc);

