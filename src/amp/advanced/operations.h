/* ==== >>operations ===============================================================================================
   What six systems do with 222 operations, and what a policy does with them. docs/operations.md is this table on a
   page.   tests: tests/test_policy.c, tests/torch_operations.py */

/* X(suffix of AMP_OP_, name, classes): one row per operation that a system classifies, under its PyTorch name where
   it has one. The classes are letters (amp_op_class), one per amp_system in its order: amp, PyTorch CUDA, PyTorch CPU,
   Apex O1, MindSpore white / black, MindSpore auto. Overloads and in-place forms share a row. A row's name is a name of
   PyTorch and Apex where their letter is a capital. A small letter: Apex lists it under other names only; PyTorch does
   not list it, and it gives that dtype because it is made of operations that are listed (tests/torch_operations.py).
   Names of MindSpore are in the second table. Sources: PyTorch's autocast_mode.h and .cpp (2.15), Apex's amp/lists and
   rnn_compat.py before their removal, MindSpore's train/amp.py and its documentation of level "auto". */
/* clang-format off */
#define AMP_OP_LIST(X) \
    X(CONV1D, conv1d, LLLLL_) X(CONV2D, conv2d, LLLLLL) X(CONV3D, conv3d, LLLLLL) \
    X(CONV_TBC, conv_tbc, LLLL__) X(CONV_TRANSPOSE1D, conv_transpose1d, LLLLL_) \
    X(CONV_TRANSPOSE2D, conv_transpose2d, LLLLLL) X(CONV_TRANSPOSE3D, conv_transpose3d, LLLLLL) \
    X(CONVOLUTION, convolution, LL___L) X(CONVOLUTION_INNER, _convolution, LLL___) \
    X(CUDNN_CONVOLUTION, cudnn_convolution, LL____) \
    X(CUDNN_CONVOLUTION_TRANSPOSE, cudnn_convolution_transpose, LL____) \
    X(CONV2D_BACKWARD_INPUT, conv2d_backward_input, L___L_) X(LINEAR, linear, LLLLLL) \
    X(MATMUL, matmul, LLLLLL) X(MM, mm, LLLL__) X(MV, mv, LL_L_L) X(BMM, bmm, LLLLLL) \
    X(ADDMM, addmm, LLLL_L) X(ADDMV, addmv, LL_L_L) X(ADDR, addr, LL_L__) \
    X(ADDBMM, addbmm, LLLL_L) X(BADDBMM, baddbmm, LLLL_L) X(GER, ger, L___L_) \
    X(EINSUM, einsum, LLl__L) X(CHAIN_MATMUL, chain_matmul, LLl___) \
    X(LINALG_MULTI_DOT, linalg_multi_dot, LLl___) X(LINALG_VECDOT, linalg_vecdot, LLL___) \
    X(ADDMM_ACTIVATION, _addmm_activation, L_L___) \
    X(SCALED_DOT_PRODUCT_ATTENTION, scaled_dot_product_attention, LLL___) \
    X(SCALED_DOT_PRODUCT_FLASH_ATTENTION, _scaled_dot_product_flash_attention, LL____) \
    X(NATIVE_MULTI_HEAD_ATTENTION, _native_multi_head_attention, L_L___) \
    X(THNN_FUSED_LSTM_CELL, _thnn_fused_lstm_cell, LL____) \
    X(THNN_FUSED_GRU_CELL, _thnn_fused_gru_cell, LL____) X(LSTM_CELL, lstm_cell, LL_LL_) \
    X(GRU_CELL, gru_cell, LL_LL_) X(RNN_TANH_CELL, rnn_tanh_cell, LLlLL_) \
    X(RNN_RELU_CELL, rnn_relu_cell, LLlL__) X(LSTM, lstm, L_lL__) X(GRU, gru, L__L__) \
    X(RNN_TANH, rnn_tanh, L_lL__) X(RNN_RELU, rnn_relu, L_lL__) \
    X(MKLDNN_RNN_LAYER, mkldnn_rnn_layer, L_L___) X(PRELU, prelu, LLLLLL) X(RELU, relu, ____L_) \
    X(GELU, gelu, ___F__) X(DROPOUT, dropout, ______) X(SUB, sub, W__w__) X(ADD, add, W__W__) \
    X(MUL, mul, W__W__) X(DIV, div, W__W__) X(EQ, eq, W__W__) X(EQUAL, equal, W__W__) \
    X(GE, ge, W__W__) X(GT, gt, W__W__) X(LE, le, W__W__) X(LT, lt, W__W__) X(NE, ne, W__W__) \
    X(BIAS_ADD, bias_add, W____W) X(ADD_N, add_n, W____W) X(CAT, cat, W_WW_W) \
    X(STACK, stack, W_WW__) X(INDEX_COPY, index_copy, W_W___) X(INDEX_PUT, index_put, WW____) \
    X(SCATTER_ADD, scatter_add, WW____) X(ADDCDIV, addcdiv, WW_W_W) X(ADDCMUL, addcmul, WW_W_W) \
    X(ATAN2, atan2, WW_W__) X(BILINEAR, bilinear, WW_W__) X(CROSS, cross, WW_W_W) \
    X(DOT, dot, WW_W_W) X(VDOT, vdot, WW____) X(TENSORDOT, tensordot, WWl___) \
    X(GRID_SAMPLER, grid_sampler, WWF___) X(GRID_SAMPLER_2D, grid_sampler_2d, W_F__W) \
    X(GRID_SAMPLER_3D, grid_sampler_3d, W_F__W) \
    X(GRID_SAMPLER_2D_CPU_FALLBACK, _grid_sampler_2d_cpu_fallback, W_F___) \
    X(GRID_SAMPLE, grid_sample, W_fF__) X(ACOS, acos, FF_F_F) X(ASIN, asin, FF_F_F) \
    X(COSH, cosh, FF_F_F) X(ERFINV, erfinv, FF_F_F) X(EXP, exp, FF_F_F) X(EXPM1, expm1, FF_F_F) \
    X(LOG, log, FF_F_F) X(LOG10, log10, FF_F_F) X(LOG2, log2, FF_F_F) X(LOG1P, log1p, FF___F) \
    X(RECIPROCAL, reciprocal, FF_F_F) X(RSQRT, rsqrt, FF_F_F) X(SINH, sinh, FF_F_F) \
    X(TAN, tan, FF_F_F) X(POW, pow, FF_F_F) X(SOFTPLUS, softplus, FF_F_F) \
    X(LOGSUMEXP, logsumexp, FF____) X(SOFTMIN, softmin, Ff_F__) X(LAYER_NORM, layer_norm, FF_FFF) \
    X(NATIVE_LAYER_NORM, native_layer_norm, FF____) X(GROUP_NORM, group_norm, FF_F_F) \
    X(BATCH_NORM, batch_norm, F___FF) X(RMS_NORM, rms_norm, FF____) \
    X(LOCAL_RESPONSE_NORM, local_response_norm, FffF__) X(NORMALIZE, normalize, Ff_F__) \
    X(FROBENIUS_NORM, frobenius_norm, FF____) X(NUCLEAR_NORM, nuclear_norm, FF____) \
    X(RENORM, renorm, FF_F_F) X(DIST, dist, FF_F__) X(PDIST, pdist, FF___F) \
    X(CDIST, cdist, FFF__F) X(COSINE_SIMILARITY, cosine_similarity, FF_F__) X(STD, std, F__F__) \
    X(VAR, var, F__F__) X(CPU, cpu, ___F__) X(BINARY_CROSS_ENTROPY, binary_cross_entropy, BBFB__) \
    X(BINARY_CROSS_ENTROPY_WITH_LOGITS, binary_cross_entropy_with_logits, FFFF_F) \
    X(COSINE_EMBEDDING_LOSS, cosine_embedding_loss, FFFF__) \
    X(CROSS_ENTROPY, cross_entropy, OffF__) X(CROSS_ENTROPY_LOSS, cross_entropy_loss, OfF___) \
    X(CTC_LOSS, ctc_loss, F_FF__) X(HINGE_EMBEDDING_LOSS, hinge_embedding_loss, FFFF__) \
    X(HUBER_LOSS, huber_loss, FFF___) X(KL_DIV, kl_div, FFFF_F) X(L1_LOSS, l1_loss, FFFF_F) \
    X(MARGIN_RANKING_LOSS, margin_ranking_loss, FFFF__) X(MSE_LOSS, mse_loss, FFFF_F) \
    X(MULTI_MARGIN_LOSS, multi_margin_loss, FFFF_F) \
    X(MULTILABEL_MARGIN_LOSS, multilabel_margin_loss, FFFF_F) \
    X(MULTILABEL_MARGIN_LOSS_FORWARD, multilabel_margin_loss_forward, F_F___) \
    X(MULTILABEL_SOFT_MARGIN_LOSS, multilabel_soft_margin_loss, Ff_F__) \
    X(NLL_LOSS, nll_loss, FFFF_F) X(NLL_LOSS2D, nll_loss2d, FFF__F) \
    X(POISSON_NLL_LOSS, poisson_nll_loss, FFFF__) X(SMOOTH_L1_LOSS, smooth_l1_loss, FFFF_F) \
    X(SOFT_MARGIN_LOSS, soft_margin_loss, FFFF_F) \
    X(TRIPLET_MARGIN_LOSS, triplet_margin_loss, FFFF_F) X(INTERPOLATE, interpolate, Ff_F__) \
    X(UPSAMPLE_NEAREST1D, upsample_nearest1d, FF____) \
    X(UPSAMPLE_NEAREST2D, upsample_nearest2d, FF____) \
    X(UPSAMPLE_NEAREST3D, upsample_nearest3d, FF____) \
    X(UPSAMPLE_NEAREST_EXACT1D, _upsample_nearest_exact1d, FF____) \
    X(UPSAMPLE_NEAREST_EXACT2D, _upsample_nearest_exact2d, FF____) \
    X(UPSAMPLE_NEAREST_EXACT3D, _upsample_nearest_exact3d, FF____) \
    X(UPSAMPLE_LINEAR1D, upsample_linear1d, FF____) \
    X(UPSAMPLE_BILINEAR2D, upsample_bilinear2d, FF____) \
    X(UPSAMPLE_BILINEAR2D_AA, _upsample_bilinear2d_aa, FF____) \
    X(UPSAMPLE_TRILINEAR3D, upsample_trilinear3d, FF____) \
    X(UPSAMPLE_BICUBIC2D, upsample_bicubic2d, FF____) \
    X(UPSAMPLE_BICUBIC2D_AA, _upsample_bicubic2d_aa, FF____) X(SOFTMAX, softmax, OO_F_F) \
    X(LOG_SOFTMAX, log_softmax, OO_F_F) X(SUM, sum, OO_F_F) X(MEAN, mean, O__F__) \
    X(PROD, prod, OOFF_F) X(CUMSUM, cumsum, OO_F_F) X(CUMPROD, cumprod, OO_F_F) \
    X(NORM, norm, OO_F_F) X(LINALG_VECTOR_NORM, linalg_vector_norm, OO____) \
    X(LINALG_MATRIX_NORM, linalg_matrix_norm, OO____) X(AVG_POOL3D, avg_pool3d, __F___) \
    X(MAX_POOL3D, max_pool3d, __F___) X(MAX_UNPOOL2D, max_unpool2d, __F___) \
    X(MAX_UNPOOL3D, max_unpool3d, __F___) X(ADAPTIVE_AVG_POOL3D, adaptive_avg_pool3d, __F___) \
    X(ADAPTIVE_MAX_POOL3D, adaptive_max_pool3d, __F___) \
    X(FRACTIONAL_MAX_POOL2D, fractional_max_pool2d, __F___) \
    X(FRACTIONAL_MAX_POOL3D, fractional_max_pool3d, __F___) \
    X(REFLECTION_PAD1D, reflection_pad1d, __F___) X(REFLECTION_PAD2D, reflection_pad2d, __F___) \
    X(REPLICATION_PAD1D, replication_pad1d, __F___) \
    X(REPLICATION_PAD2D, replication_pad2d, __F___) \
    X(REPLICATION_PAD3D, replication_pad3d, __F___) X(VIEW_AS_COMPLEX, view_as_complex, __F___) \
    X(FAKE_QUANTIZE_PER_TENSOR_AFFINE, fake_quantize_per_tensor_affine, __F___) \
    X(POLAR, polar, F_F___) X(QUANTILE, quantile, F_F___) X(NANQUANTILE, nanquantile, F_F___) \
    X(STFT, stft, F_F___) X(TRACE, trace, F_F___) X(CHOLESKY, cholesky, F_F___) \
    X(CHOLESKY_INVERSE, cholesky_inverse, F_F___) X(CHOLESKY_SOLVE, cholesky_solve, F_F___) \
    X(INVERSE, inverse, F_F___) X(LU_SOLVE, lu_solve, F_F___) X(ORGQR, orgqr, F_F___) \
    X(ORMQR, ormqr, F_F___) X(PINVERSE, pinverse, F_F___) X(GEQRF, geqrf, F_F___) \
    X(LU_WITH_INFO, _lu_with_info, F_F___) X(QR, qr, F_F___) X(SVD, svd, F_F___) \
    X(TRIANGULAR_SOLVE, triangular_solve, F_F___) X(FFT_FFT, fft_fft, F_F___) \
    X(FFT_IFFT, fft_ifft, F_F___) X(FFT_FFT2, fft_fft2, F_F___) X(FFT_IFFT2, fft_ifft2, F_F___) \
    X(FFT_FFTN, fft_fftn, F_F___) X(FFT_IFFTN, fft_ifftn, F_F___) X(FFT_RFFT, fft_rfft, F_F___) \
    X(FFT_IRFFT, fft_irfft, F_F___) X(FFT_RFFT2, fft_rfft2, F_F___) \
    X(FFT_IRFFT2, fft_irfft2, F_F___) X(FFT_RFFTN, fft_rfftn, F_F___) \
    X(FFT_IRFFTN, fft_irfftn, F_F___) X(FFT_HFFT, fft_hfft, F_F___) \
    X(FFT_IHFFT, fft_ihfft, F_F___) X(LINALG_COND, linalg_cond, F_F___) \
    X(LINALG_MATRIX_RANK, linalg_matrix_rank, F_F___) X(LINALG_SOLVE, linalg_solve, F_F___) \
    X(LINALG_CHOLESKY, linalg_cholesky, F_F___) X(LINALG_CHOLESKY_EX, linalg_cholesky_ex, F_F___) \
    X(LINALG_SVD, linalg_svd, F_F___) X(LINALG_SVDVALS, linalg_svdvals, F_F___) \
    X(LINALG_EIG, linalg_eig, F_F___) X(LINALG_EIGH, linalg_eigh, F_F___) \
    X(LINALG_EIGVALS, linalg_eigvals, F_F___) X(LINALG_EIGVALSH, linalg_eigvalsh, F_F___) \
    X(LINALG_INV, linalg_inv, F_F___) X(LINALG_INV_EX, linalg_inv_ex, F_F___) \
    X(LINALG_HOUSEHOLDER_PRODUCT, linalg_householder_product, F_F___) \
    X(LINALG_TENSORINV, linalg_tensorinv, F_F___) \
    X(LINALG_TENSORSOLVE, linalg_tensorsolve, F_F___) X(LINALG_QR, linalg_qr, F_F___) \
    X(LINALG_LSTSQ, linalg_lstsq, F_F___)
/* clang-format on */

/* X(suffix of AMP_OP_, other name, systems): further names. Systems that list the operation by this name: A Apex, M
   MindSpore white or black, S MindSpore auto. */
/* clang-format off */
#define AMP_OP_NAME_LIST(X) \
    X(CONV1D, nn.Conv1d, M) X(CONV2D, nn.Conv2d, M) X(CONV2D, Conv2D, MS) X(CONV2D, Conv2DExt, S) \
    X(CONV3D, nn.Conv3d, M) X(CONV3D, Conv3D, MS) X(CONV3D, Conv3DExt, S) \
    X(CONV_TRANSPOSE1D, nn.Conv1dTranspose, M) X(CONV_TRANSPOSE2D, nn.Conv2dTranspose, M) \
    X(CONV_TRANSPOSE2D, Conv2DTranspose, MS) X(CONV_TRANSPOSE2D, ConvTranspose2D, S) \
    X(CONV_TRANSPOSE3D, nn.Conv3dTranspose, M) X(CONV_TRANSPOSE3D, Conv3DTranspose, MS) \
    X(CONVOLUTION, Convolution, S) X(CONV2D_BACKWARD_INPUT, Conv2DBackpropInput, M) \
    X(LINEAR, nn.Dense, M) X(LINEAR, Dense, S) X(MATMUL, MatMul, MS) X(MATMUL, MatMulExt, S) \
    X(MATMUL, __matmul__, A) X(BMM, BatchMatMul, MS) X(BMM, BatchMatMulExt, S) X(ADDMM, Addmm, S) \
    X(GER, Ger, M) X(EINSUM, Einsum, S) X(LSTM_CELL, nn.LSTMCell, M) X(LSTM_CELL, LSTMCell, A) \
    X(GRU_CELL, nn.GRUCell, M) X(GRU_CELL, GRUCell, A) X(RNN_TANH_CELL, nn.RNNCell, M) \
    X(RNN_TANH_CELL, RNNTanhCell, A) X(LSTM, LSTM, A) X(GRU, GRU, A) X(RNN_TANH, RNN, A) \
    X(RNN_TANH, RNN_TANH, A) X(PRELU, PReLU, MS) X(RELU, ReLU, M) X(ADD, __add__, A) \
    X(ADD, __radd__, A) X(ADD, __iadd__, A) X(SUB, __sub__, A) X(SUB, __rsub__, A) \
    X(SUB, __isub__, A) X(MUL, __mul__, A) X(MUL, __rmul__, A) X(MUL, __imul__, A) \
    X(DIV, __div__, A) X(DIV, __rdiv__, A) X(DIV, __idiv__, A) X(DIV, __truediv__, A) \
    X(DIV, __rtruediv__, A) X(DIV, __itruediv__, A) X(EQ, __eq__, A) X(GE, __ge__, A) \
    X(GT, __gt__, A) X(LE, __le__, A) X(LT, __lt__, A) X(NE, __ne__, A) X(BIAS_ADD, BiasAdd, S) \
    X(ADD_N, AddN, S) X(CAT, Concat, S) X(ADDCDIV, Addcdiv, S) X(ADDCMUL, Addcmul, S) \
    X(CROSS, Cross, S) X(CROSS, _PyboostCrossPrim, S) X(DOT, Dot, S) \
    X(GRID_SAMPLER_2D, GridSampler2D, S) X(GRID_SAMPLER_3D, GridSampler3D, S) X(ACOS, ACos, S) \
    X(ASIN, Asin, S) X(COSH, Cosh, S) X(ERFINV, Erfinv, S) X(EXP, Exp, S) X(EXPM1, Expm1, S) \
    X(LOG, Log, S) X(LOG1P, Log1p, S) X(RECIPROCAL, Reciprocal, S) X(RSQRT, Rsqrt, S) \
    X(SINH, Sinh, S) X(TAN, Tan, S) X(POW, Pow, S) X(POW, __pow__, A) X(POW, __ipow__, A) \
    X(POW, __rpow__, A) X(SOFTPLUS, Softplus, S) X(SOFTPLUS, SoftplusExt, S) \
    X(LAYER_NORM, nn.LayerNorm, M) X(LAYER_NORM, LayerNorm, S) X(LAYER_NORM, LayerNormExt, S) \
    X(GROUP_NORM, GroupNorm, S) X(BATCH_NORM, nn.BatchNorm1d, M) X(BATCH_NORM, nn.BatchNorm2d, M) \
    X(BATCH_NORM, nn.BatchNorm3d, M) X(BATCH_NORM, BatchNorm, S) X(BATCH_NORM, BatchNormExt, S) \
    X(RENORM, Renorm, S) X(PDIST, Pdist, S) X(CDIST, Cdist, S) \
    X(BINARY_CROSS_ENTROPY_WITH_LOGITS, BCEWithLogitsLoss, S) X(KL_DIV, KLDivLoss, S) \
    X(MSE_LOSS, MSELossExt, S) X(MULTI_MARGIN_LOSS, MultiMarginLoss, S) \
    X(MULTILABEL_MARGIN_LOSS, MultilabelMarginLoss, S) X(SMOOTH_L1_LOSS, SmoothL1Loss, S) \
    X(SOFT_MARGIN_LOSS, SoftMarginLoss, S) X(TRIPLET_MARGIN_LOSS, TripletMarginLoss, S) \
    X(SOFTMAX, Softmax, S) X(LOG_SOFTMAX, LogSoftmax, S) X(LOG_SOFTMAX, LogSoftmaxExt, S) \
    X(SUM, SumExt, S) X(PROD, ReduceProd, S) X(PROD, ProdExt, S) X(CUMSUM, CumSum, S) \
    X(CUMSUM, CumsumExt, S) X(CUMPROD, CumProd, S) X(NORM, Norm, S) \
    X(RNN_RELU_CELL, RNNReLUCell, A) X(RNN_RELU, RNN_RELU, A) X(ADDBMM, Addbmm, S) \
    X(ADDMV, Addmv, S) X(BADDBMM, Baddbmm, S) X(MV, Mv, S) X(LOG10, Log10, S) X(LOG2, Log2, S) \
    X(L1_LOSS, L1LossExt, S) X(NLL_LOSS, NLLLoss, S) X(NLL_LOSS2D, NLLLoss2d, S)
/* clang-format on */

/* Values of amp_op. */
enum {
    AMP_OP_NONE = 0, /* an operation that no list knows */
#define AMP_X(suffix, name, classes) AMP_OP_##suffix,
    AMP_OP_LIST(AMP_X)
#undef AMP_X
        AMP_OP_COUNT
};

typedef enum amp_op_class {
    AMP_CLASS_NONE = 0, /* '_'  not listed: computed in the dtype of its inputs */
    AMP_CLASS_LOWER,    /* 'L'  inputs cast to FP16 or BF16 */
    AMP_CLASS_F32,      /* 'F'  inputs cast to FP32 */
    AMP_CLASS_F32_OUT,  /* 'O'  inputs as they are, computed and returned in FP32 */
    AMP_CLASS_WIDEST,   /* 'W'  inputs cast to the widest among them */
    AMP_CLASS_BANNED    /* 'B'  refused: amp_op_note says why, and what to use instead */
} AMP_INT amp_op_class;

typedef enum amp_system {
    AMP_SYSTEM_AMP = 0,        /* ours: PyTorch's CUDA class; where it has none, the caution of the others */
    AMP_SYSTEM_PYTORCH_CUDA,   /* torch.autocast("cuda") */
    AMP_SYSTEM_PYTORCH_CPU,    /* torch.autocast("cpu") */
    AMP_SYSTEM_APEX,           /* apex.amp O1 */
    AMP_SYSTEM_MINDSPORE,      /* white list (O1: 'L') and black list (O2: 'F') */
    AMP_SYSTEM_MINDSPORE_AUTO, /* auto white, auto black and auto promote */
    AMP_SYSTEM_COUNT
} AMP_INT amp_system;

/* ---- what the lists say; names ("unknown ..." otherwise). Class of all: host. Threads: safe ---- */

/* *out = the operation of that name: "matmul", "nn.Dense", "F.linear", "torch.matmul", "aten::norm.Scalar". Exact
   first; then without a leading "torch.nn.functional." (and its shorter forms), "Tensor.", "aten::", "ops.",
   "mindspore.", without ".Overload" after "aten::", and without the "_" of an in-place form. INVALID_ARG for an unknown
   name: *out is AMP_OP_NONE then. */
AMP_API amp_status amp_op_find(amp_op *out, const char *name);
/* Its name, "" for AMP_OP_NONE and unknown numbers. */
AMP_API const char *amp_op_name(amp_op op);
/* Name k of a system's own list for the operation: k = 0, 1, ... until it returns NULL. */
AMP_API const char *amp_op_listed(amp_op op, amp_system system, size_t k);
/* Class in a system's lists, or what PyTorch's lists make of an operation that is composed of listed ones
   (amp_op_listed has no name for it then); AMP_CLASS_NONE for all others. */
AMP_API amp_op_class amp_op_class_of(amp_op op, amp_system system);
/* Why an operation is banned and what to use, or why our class is not PyTorch's; "" if there is nothing to say. */
AMP_API const char *amp_op_note(amp_op op);
AMP_API const char *amp_op_class_name(amp_op_class c); /* "lower", "f32", "f32 output", "widest", "banned", "none" */
AMP_API const char *amp_system_name(amp_system s);     /* "amp", "pytorch-cuda", "apex", ... */
AMP_API const char *amp_preset_name(amp_preset p);     /* "O1", "mindspore-O2", ...: what amp_preset_find takes */

/* ---- what a policy does with an operation: level, lists and edits together. Class of all: host ---- */

AMP_API amp_op_class amp_policy_class(const amp_policy *policy, amp_op op);
/* The dtype of its result when it is left automatic and the (widest) input has dtype `in`: what to allocate. */
AMP_API amp_dtype amp_policy_output(const amp_policy *policy, amp_op op, amp_dtype in);
/* 1: parameters of this operation stay FP32: amp_param_desc.keep_f32. */
AMP_API uint32_t amp_policy_keep_f32(const amp_policy *policy, amp_op op);
/* The operations that get class c under the policy, into out[cap] (NULL if cap is 0); returns how many there are. */
AMP_API size_t amp_policy_list(amp_op *out, size_t cap, const amp_policy *policy, amp_op_class c);
/* One edit of the lists: operation op gets class c. Warnings (log events): a banned operation allowed, an FP32
   operation lowered. */
AMP_API amp_status amp_policy_edit(amp_ctx *ctx, amp_policy *policy, amp_op op, amp_op_class c);
/* MindSpore's custom_mixed_precision: exactly one of the lists, which replaces the default one. white: those operations
   in half and back to FP32, nothing else; black: everything in half but those, FP32 parameters. A default black entry
   (MindSpore's list) that is left out gives a warning. INVALID_ARG: both lists or neither, an unknown operation, n 0,
   dtype not AMP_F16 / AMP_BF16 (AMP_AUTO => AMP_F16). */
AMP_API amp_status amp_policy_custom(amp_ctx *ctx, amp_policy *policy, const amp_op *white, size_t n_white,
    const amp_op *black, size_t n_black, amp_dtype dtype);

