/* test_policy.c - operation lists, policies, the autocast scope.  Guards: >>policy. */
#include "set.h"
#include "../examples/digits_data.h"

#include <math.h>

/* ---- lists: a second transcription, from the reference's text -------------------------------------------------- */

typedef struct listing {
    amp_system system;
    amp_op_class c;
    const char *names;
} listing;

static const listing listings[] = {
    {AMP_SYSTEM_PYTORCH_CUDA, AMP_CLASS_LOWER,
        "_convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution "
        "cudnn_convolution "
        "cudnn_convolution_transpose prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm "
        "bmm chain_matmul "
        "linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell "
        "_scaled_dot_product_flash_attention scaled_dot_product_attention"},
    {AMP_SYSTEM_PYTORCH_CUDA, AMP_CLASS_F32,
        "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm "
        "native_layer_norm group_norm "
        "frobenius_norm nuclear_norm cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d "
        "hinge_embedding_loss kl_div "
        "l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss "
        "triplet_margin_loss "
        "multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest1d "
        "upsample_nearest2d "
        "upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d "
        "upsample_linear1d "
        "upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d upsample_bicubic2d _upsample_bicubic2d_aa "
        "rms_norm"},
    {AMP_SYSTEM_PYTORCH_CUDA, AMP_CLASS_F32_OUT,
        "prod softmax log_softmax cumprod cumsum linalg_vector_norm linalg_matrix_norm sum norm"},
    {AMP_SYSTEM_PYTORCH_CUDA, AMP_CLASS_WIDEST,
        "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add"},
    {AMP_SYSTEM_PYTORCH_CUDA, AMP_CLASS_BANNED, "binary_cross_entropy"},
    {AMP_SYSTEM_PYTORCH_CPU, AMP_CLASS_LOWER,
        "conv1d conv2d conv3d bmm mm linalg_vecdot baddbmm addmm _addmm_activation addbmm linear _convolution matmul "
        "conv_tbc mkldnn_rnn_layer "
        "conv_transpose1d conv_transpose2d conv_transpose3d prelu scaled_dot_product_attention "
        "_native_multi_head_attention"},
    {AMP_SYSTEM_PYTORCH_CPU, AMP_CLASS_F32,
        "avg_pool3d binary_cross_entropy grid_sampler polar prod quantile nanquantile stft cdist grid_sampler_2d "
        "_grid_sampler_2d_cpu_fallback "
        "grid_sampler_3d trace view_as_complex cholesky cholesky_inverse cholesky_solve inverse lu_solve orgqr ormqr "
        "pinverse max_pool3d "
        "max_unpool2d max_unpool3d adaptive_avg_pool3d reflection_pad1d reflection_pad2d replication_pad1d "
        "replication_pad2d replication_pad3d "
        "mse_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss poisson_nll_loss smooth_l1_loss "
        "cross_entropy_loss l1_loss "
        "huber_loss margin_ranking_loss soft_margin_loss triplet_margin_loss multi_margin_loss ctc_loss kl_div "
        "multilabel_margin_loss "
        "binary_cross_entropy_with_logits fft_fft fft_ifft fft_fft2 fft_ifft2 fft_fftn fft_ifftn fft_rfft fft_irfft "
        "fft_rfft2 fft_irfft2 "
        "fft_rfftn fft_irfftn fft_hfft fft_ihfft linalg_cond linalg_matrix_rank linalg_solve linalg_cholesky "
        "linalg_svdvals linalg_eigvals "
        "linalg_eigvalsh linalg_inv linalg_householder_product linalg_tensorinv linalg_tensorsolve "
        "fake_quantize_per_tensor_affine geqrf "
        "_lu_with_info qr svd triangular_solve fractional_max_pool2d fractional_max_pool3d adaptive_max_pool3d "
        "multilabel_margin_loss_forward "
        "linalg_qr linalg_cholesky_ex linalg_svd linalg_eig linalg_eigh linalg_lstsq linalg_inv_ex"},
    {AMP_SYSTEM_PYTORCH_CPU, AMP_CLASS_WIDEST, "stack cat index_copy"},
    {AMP_SYSTEM_APEX, AMP_CLASS_LOWER,
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc linear prelu addmm addmv "
        "addr matmul mm mv __matmul__ "
        "addbmm baddbmm bmm RNN RNN_RELU RNN_TANH GRU LSTM rnn_relu rnn_tanh gru lstm RNNReLUCell RNNTanhCell "
        "LSTMCell GRUCell rnn_relu_cell "
        "rnn_tanh_cell gru_cell lstm_cell"},
    {AMP_SYSTEM_APEX, AMP_CLASS_F32,
        "interpolate grid_sample softplus softmin log_softmax softmax gelu layer_norm group_norm local_response_norm "
        "normalize cosine_similarity "
        "poisson_nll_loss cosine_embedding_loss cross_entropy hinge_embedding_loss kl_div l1_loss mse_loss "
        "margin_ranking_loss "
        "multilabel_margin_loss multilabel_soft_margin_loss multi_margin_loss nll_loss "
        "binary_cross_entropy_with_logits smooth_l1_loss "
        "soft_margin_loss triplet_margin_loss ctc_loss acos asin cosh erfinv exp expm1 log log10 log2 reciprocal "
        "rsqrt sinh tan pow __pow__ "
        "__ipow__ __rpow__ cumprod cumsum dist norm prod std sum var renorm mean cpu"},
    {AMP_SYSTEM_APEX, AMP_CLASS_WIDEST,
        "addcdiv addcmul atan2 cross bilinear dot add div mul eq equal ge gt le lt ne cat stack __add__ __radd__ "
        "__iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ "
        "__imul__ __div__ __rdiv__ __idiv__ __truediv__ __rtruediv__ __itruediv__ __eq__ __ge__ __gt__ __le__ __lt__ "
        "__ne__"},
    {AMP_SYSTEM_APEX, AMP_CLASS_BANNED, "binary_cross_entropy"},
    {AMP_SYSTEM_MINDSPORE, AMP_CLASS_LOWER,
        "nn.Conv1d nn.Conv2d nn.Conv3d nn.Conv1dTranspose nn.Conv2dTranspose nn.Conv3dTranspose nn.Dense nn.LSTMCell "
        "nn.RNNCell nn.GRUCell "
        "Conv2D Conv3D Conv2DTranspose Conv3DTranspose Conv2DBackpropInput MatMul BatchMatMul PReLU ReLU Ger"},
    {AMP_SYSTEM_MINDSPORE, AMP_CLASS_F32, "nn.BatchNorm1d nn.BatchNorm2d nn.BatchNorm3d nn.LayerNorm"},
    {AMP_SYSTEM_MINDSPORE_AUTO, AMP_CLASS_LOWER,
        "Conv2D Conv2DExt Conv3D Conv3DExt Conv2DTranspose ConvTranspose2D Conv3DTranspose Convolution MatMul "
        "MatMulExt BatchMatMul BatchMatMulExt "
        "PReLU Einsum Dense Addmm Addbmm Addmv Baddbmm Mv"},
    {AMP_SYSTEM_MINDSPORE_AUTO, AMP_CLASS_F32,
        "Pow ACos Asin Cosh Erfinv Exp Expm1 Log Log10 Log1p Log2 Reciprocal Rsqrt Sinh Tan Softplus SoftplusExt "
        "LayerNorm LayerNormExt BatchNorm "
        "BatchNormExt GroupNorm KLDivLoss SmoothL1Loss MultilabelMarginLoss SoftMarginLoss TripletMarginLoss "
        "MultiMarginLoss BCEWithLogitsLoss "
        "Pdist Cdist Renorm MSELossExt L1LossExt NLLLoss NLLLoss2d ReduceProd Softmax LogSoftmax LogSoftmaxExt "
        "CumProd CumSum CumsumExt ProdExt "
        "SumExt Norm"},
    {AMP_SYSTEM_MINDSPORE_AUTO, AMP_CLASS_WIDEST,
        "Addcdiv Addcmul Cross _PyboostCrossPrim Dot GridSampler2D GridSampler3D BiasAdd AddN Concat"},
};
#define N_LISTINGS (sizeof listings / sizeof listings[0])

/* Not in PyTorch's lists, but made of operations that are: what autocast gives them (tests/torch_operations.py) */
static const listing composed[] = {
    {AMP_SYSTEM_PYTORCH_CPU, AMP_CLASS_LOWER,
        "einsum chain_matmul linalg_multi_dot tensordot lstm rnn_tanh rnn_relu rnn_tanh_cell rnn_relu_cell"},
    {AMP_SYSTEM_PYTORCH_CPU, AMP_CLASS_F32, "cross_entropy grid_sample local_response_norm"},
    {AMP_SYSTEM_PYTORCH_CUDA, AMP_CLASS_F32,
        "cross_entropy cross_entropy_loss interpolate local_response_norm multilabel_soft_margin_loss normalize "
        "softmin"},
};
/* How many operations of composed a system has; class and that no list names them are checked. */
static size_t policy_composed(t_run *t, amp_system system) {
    size_t i, n = 0;
    for (i = 0; i < sizeof composed / sizeof composed[0]; i++) {
        const listing *l = &composed[i];
        const char *at = l->names;
        while (l->system == system && *at) {
            char name[64];
            size_t length = strcspn(at, " ");
            amp_op op = AMP_OP_NONE;
            memcpy(name, at, length);
            name[length] = 0;
            at += length + (at[length] == ' ');
            n++;
            t_note(t, "%s: %s", amp_system_name(system), name);
            CHECK_EQ(amp_op_find(&op, name), AMP_OK);
            CHECK_EQ(amp_op_class_of(op, system), l->c);
            CHECK(amp_op_listed(op, system, 0) == NULL);
        }
    }
    return n;
}

static void policy_lists(t_run *t) {
    size_t listed[AMP_SYSTEM_COUNT] = {0}, i, k;
    uint32_t op;
    int s;
    for (i = 0; i < N_LISTINGS; i++) {
        const listing *l = &listings[i];
        const char *at = l->names;
        while (*at) {
            char name[64];
            size_t n = strcspn(at, " ");
            amp_op found = AMP_OP_COUNT;
            int named = 0;
            memcpy(name, at, n);
            name[n] = 0;
            at += n + (at[n] == ' ');
            t_note(t, "%s: %s", amp_system_name(l->system), name);
            listed[l->system]++;
            if (!CHECK_EQ(amp_op_find(&found, name), AMP_OK)) continue;
            CHECK_EQ(amp_op_class_of(found, l->system), l->c);
            for (k = 0; amp_op_listed(found, l->system, k); k++)
                named += strcmp(amp_op_listed(found, l->system, k), name) == 0;
            CHECK_EQ(named, 1);
        }
    }
    for (s = 1; s < AMP_SYSTEM_COUNT; s++) { /* and nothing else is listed */
        size_t n = 0, without_name = 0;
        for (op = 0; op < AMP_OP_COUNT; op++) {
            int classified = amp_op_class_of((amp_op)op, (amp_system)s) != AMP_CLASS_NONE;
            for (k = 0; amp_op_listed((amp_op)op, (amp_system)s, k); k++) {
            }
            n += k;
            without_name += classified && k == 0;
            CHECK(classified || k == 0);
        }
        t_note(t, "names of %s", amp_system_name((amp_system)s));
        CHECK_EQ(n, listed[s]);
        CHECK_EQ(without_name, policy_composed(t, (amp_system)s));
    }
}

static void policy_names(t_run *t) {
    static const struct {
        const char *name;
        amp_op op;
    } good[] = {{"F.linear", AMP_OP_LINEAR}, {"torch.matmul", AMP_OP_MATMUL},
        {"torch.nn.functional.softmax", AMP_OP_SOFTMAX}, {"aten::norm.Scalar", AMP_OP_NORM},
        {"aten::pow.Tensor_Tensor", AMP_OP_POW}, {"Tensor.cpu", AMP_OP_CPU}, {"torch.linalg.inv", AMP_OP_LINALG_INV},
        {"torch.fft.rfft2", AMP_OP_FFT_RFFT2}, {"ops.MatMul", AMP_OP_MATMUL}, {"mindspore.nn.Dense", AMP_OP_LINEAR},
        {"layer_norm", AMP_OP_LAYER_NORM}, {"torch.ops.aten.sum.dim_IntList", AMP_OP_SUM},
        {"nn.functional.gelu", AMP_OP_GELU}, {"nn.Dense", AMP_OP_LINEAR}, {"mindspore.ops.ReLU", AMP_OP_RELU},
        {"torch.nn.Conv2d", AMP_OP_CONV2D}, {"mindspore.nn.Conv2dTranspose", AMP_OP_CONV_TRANSPOSE2D},
        {"Tensor.__matmul__", AMP_OP_MATMUL}, {"Tensor.__rsub__", AMP_OP_SUB}, {"torch.Tensor.add_", AMP_OP_ADD},
        {"torch.exp_", AMP_OP_EXP}, {"aten::add_.Tensor", AMP_OP_ADD},
        {"mindspore.mint.nn.functional.linear", AMP_OP_LINEAR}, {"mint.matmul", AMP_OP_MATMUL},
        {"P.BatchMatMul", AMP_OP_BMM}, {"mindspore.ops.operations.Conv2D", AMP_OP_CONV2D},
        {"F.scaled_dot_product_attention", AMP_OP_SCALED_DOT_PRODUCT_ATTENTION},
        {"aten::_convolution.deprecated", AMP_OP_CONVOLUTION_INNER}, {"aten::linalg_cond.p_str", AMP_OP_LINALG_COND},
        {"torch.nn.RNNCell", AMP_OP_RNN_TANH_CELL}};
    static const char *const bad[] = {"", "matmul2", "Matmul", "matmul ", "torch.", "F.", "nn.", "aten::", "conv",
        "linalg.", "norm.Scalar", "tensor.cpu", "none", "_", "exp__", "__matmul", "torch.nn.Conv2", "P.", "sub_ ",
        "torch.nn.Linear" /* no system lists it by this name */,
        "a_name_that_is_far_longer_than_any_name_of_an_operation_could_be_in_any_of_these_systems"};
    size_t i;
    uint32_t op;
    amp_op found;
    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        t_note(t, "%s", good[i].name);
        CHECK_EQ(amp_op_find(&found, good[i].name), AMP_OK);
        CHECK_EQ(found, good[i].op);
    }
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t size = strlen(bad[i]) + 1;
        char *own = (char *)t_host(t, size); /* where a sanitizer sees a byte before it read */
        memcpy(own, bad[i], size);
        t_note(t, "\"%s\"", own);
        found = AMP_OP_LINEAR;
        CHECK_EQ(amp_op_find(&found, own), AMP_ERR_INVALID_ARG);
        CHECK_EQ(found, AMP_OP_NONE);
    }
    CHECK_EQ(amp_op_find(&found, NULL), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_op_find(NULL, "linear"), AMP_ERR_INVALID_ARG);
    for (op = 1; op < AMP_OP_COUNT; op++) { /* every row is found by its own name, once */
        CHECK(amp_op_find(&found, amp_op_name((amp_op)op)) == AMP_OK && found == (amp_op)op);
        if (amp_op_listed((amp_op)op, AMP_SYSTEM_PYTORCH_CUDA, 0)) /* ours is PyTorch's CUDA class where it lists it */
            CHECK(amp_op_class_of((amp_op)op, AMP_SYSTEM_AMP) == amp_op_class_of((amp_op)op, AMP_SYSTEM_PYTORCH_CUDA));
    }
    CHECK_EQ(strcmp(amp_op_name(AMP_OP_NONE), ""), 0);
    CHECK_EQ(strcmp(amp_op_name(AMP_OP_COUNT), ""), 0);
    CHECK_EQ(amp_op_class_of(AMP_OP_COUNT, AMP_SYSTEM_AMP), AMP_CLASS_NONE);
    CHECK_EQ(amp_op_class_of(AMP_OP_LINEAR, AMP_SYSTEM_COUNT), AMP_CLASS_NONE);
    CHECK(strstr(amp_op_note(AMP_OP_BINARY_CROSS_ENTROPY), "binary_cross_entropy_with_logits") != NULL);
    CHECK_EQ(amp_op_class_of(AMP_OP_BATCH_NORM, AMP_SYSTEM_PYTORCH_CUDA), AMP_CLASS_NONE);
    CHECK_EQ(amp_op_class_of(AMP_OP_SOFTMAX, AMP_SYSTEM_PYTORCH_CPU), AMP_CLASS_NONE);
}

/* ---- policies -------------------------------------------------------------------------------------------------- */

typedef struct events {
    unsigned warnings, errors;
    char last[400];
} events;
static void on_event(amp_log_level level, amp_status status, const char *text, void *user) {
    events *e = (events *)user;
    (void)status;
    if (level == AMP_LOG_WARNING) e->warnings++;
    if (level == AMP_LOG_ERROR) e->errors++;
    snprintf(e->last, sizeof e->last, "%s", text);
}
static amp_ctx *context_with(t_run *t, events *e) {
    amp_cpu_desc d = AMP_ZERO;
    memset(e, 0, sizeof *e);
    d.threads = 1;
    d.logger.fn = on_event;
    d.logger.user = e;
    CHECK_OK(amp_cpu_create(&t->ctx, &d));
    return t->ctx;
}

/* Apex's table, MindSpore's and PyTorch's. */
static void policy_levels(t_run *t) {
    static const struct {
        amp_preset preset;
        amp_dtype cast, low;
        int autocast, norms, master;
        amp_scaler_mode scaling;
        float scale, max;
        amp_dtype model;
        amp_master kind;
    } rows[] = {{AMP_O0, AMP_F32, AMP_F16, 0, 0, 0, AMP_SCALER_OFF, 1, 16777216, AMP_F32, AMP_MASTER_F32},
        {AMP_O1, AMP_AUTO, AMP_F16, 1, 0, 0, AMP_SCALER_DYNAMIC, 65536, 16777216, AMP_F32, AMP_MASTER_F32},
        {AMP_O2, AMP_F16, AMP_F16, 0, 1, 1, AMP_SCALER_DYNAMIC, 65536, 16777216, AMP_F16, AMP_MASTER_F32},
        {AMP_O3, AMP_F16, AMP_F16, 0, 0, 0, AMP_SCALER_OFF, 1, 16777216, AMP_F16, AMP_MASTER_NONE},
        {AMP_PRESET_MINDSPORE_O0, AMP_AUTO, AMP_F16, 0, 0, 1, AMP_SCALER_OFF, 1, 0, AMP_F32, AMP_MASTER_F32},
        {AMP_PRESET_MINDSPORE_O1, AMP_AUTO, AMP_F16, 1, 0, 1, AMP_SCALER_OFF, 1, 0, AMP_F32, AMP_MASTER_F32},
        {AMP_PRESET_MINDSPORE_O2, AMP_F16, AMP_F16, 0, 1, 1, AMP_SCALER_DYNAMIC, 16777216, 0, AMP_F16, AMP_MASTER_F32},
        {AMP_PRESET_MINDSPORE_O3, AMP_F16, AMP_F16, 0, 0, 1, AMP_SCALER_OFF, 1, 0, AMP_F16, AMP_MASTER_F32},
        {AMP_PRESET_MINDSPORE_AUTO, AMP_AUTO, AMP_F16, 1, 0, 1, AMP_SCALER_OFF, 1, 0, AMP_F32, AMP_MASTER_F32},
        {AMP_PRESET_PYTORCH_CUDA, AMP_AUTO, AMP_F16, 1, 0, 1, AMP_SCALER_DYNAMIC, 65536, 0, AMP_F32, AMP_MASTER_F32},
        {AMP_PRESET_PYTORCH_CPU, AMP_AUTO, AMP_BF16, 1, 0, 1, AMP_SCALER_OFF, 65536, 0, AMP_F32, AMP_MASTER_F32},
        {AMP_PRESET_AMP, AMP_AUTO, AMP_F16, 1, 0, 1, AMP_SCALER_DYNAMIC, 65536, 0, AMP_F32, AMP_MASTER_F32}};
    size_t i;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        amp_policy p, q;
        amp_params_desc d;
        amp_scaler_desc s;
        amp_scaler *scaler = NULL;
        amp_params *params = NULL;
        amp_policy_desc twin = AMP_ZERO;
        amp_preset found;
        amp_dtype low;
        char text[40];
        t_note(t, "%s", amp_preset_name(rows[i].preset));
        CHECK_OK(amp_policy_init(t->ctx, &p, rows[i].preset, NULL));
        CHECK_EQ(p.cast_model, rows[i].cast);
        CHECK_EQ(p.low, rows[i].low);
        CHECK_EQ(p.autocast, rows[i].autocast);
        CHECK_EQ(p.keep_norms, rows[i].norms);
        CHECK_EQ(p.master_weights, rows[i].master);
        CHECK_EQ(p.scaling, rows[i].scaling);
        CHECK_EQ(p.loss_scale, rows[i].scale);
        CHECK_EQ(p.max_scale, rows[i].max);
        CHECK_EQ(p.enabled, 1);
        CHECK_EQ(p.num_losses, 1);
        d = amp_policy_params_desc(&p);
        CHECK_EQ(d.model, rows[i].model);
        CHECK_EQ(d.master, rows[i].kind);
        CHECK_OK(amp_params_create(&params, t->ctx, &d));
        amp_params_destroy(params);
        s = amp_policy_scaler_desc(&p);
        CHECK_EQ(s.mode, rows[i].scaling);
        CHECK_OK(amp_scaler_create(&scaler, t->ctx, &s));
        CHECK_F32(t_scale(scaler), s.mode == AMP_SCALER_OFF ? 1.0f : rows[i].scale);
        amp_scaler_destroy(scaler);
        /* the BF16 twin: the same, in BF16, without a loss scale */
        twin.low = AMP_BF16;
        CHECK_OK(amp_policy_init(t->ctx, &q, rows[i].preset, &twin));
        CHECK_EQ(q.low, AMP_BF16);
        CHECK_EQ(q.cast_model, rows[i].cast == AMP_F16 ? AMP_BF16 : rows[i].cast);
        CHECK_EQ(q.scaling, AMP_SCALER_OFF);
        CHECK_EQ(q.autocast, rows[i].autocast);
        CHECK_EQ(q.keep_norms, rows[i].norms);
        CHECK_EQ(q.master_weights, rows[i].master);
        /* names */
        found = (amp_preset)-1;
        CHECK_OK(amp_preset_find(&found, NULL, amp_preset_name(rows[i].preset)));
        CHECK_EQ(found, rows[i].preset);
        CHECK_OK(amp_preset_find(&found, &low, amp_preset_name(rows[i].preset)));
        CHECK_EQ(found, rows[i].preset);
        CHECK_EQ(low, AMP_AUTO);
        snprintf(text, sizeof text, "%s-bf16", amp_preset_name(rows[i].preset));
        CHECK_OK(amp_preset_find(&found, &low, text));
        CHECK_EQ(found, rows[i].preset);
        CHECK_EQ(low, AMP_BF16);
        CHECK_EQ(amp_preset_find(&found, NULL, text), AMP_ERR_INVALID_ARG);
    }
    {
        amp_preset p;
        amp_dtype low;
        CHECK_EQ(amp_preset_find(&p, &low, "O4"), AMP_ERR_INVALID_ARG);
        CHECK_EQ(amp_preset_find(&p, &low, "O1-fp8"), AMP_ERR_INVALID_ARG);
        CHECK_EQ(amp_preset_find(&p, &low, ""), AMP_ERR_INVALID_ARG);
    }
    { /* classes by level */
        amp_policy p;
        CHECK_OK(amp_policy_init(t->ctx, &p, AMP_O2, NULL));
        CHECK_EQ(amp_policy_class(&p, AMP_OP_LINEAR), AMP_CLASS_LOWER);
        CHECK_EQ(amp_policy_class(&p, AMP_OP_EXP), AMP_CLASS_LOWER);
        CHECK_EQ(amp_policy_class(&p, AMP_OP_BATCH_NORM), AMP_CLASS_F32);
        CHECK_EQ(amp_policy_class(&p, AMP_OP_LAYER_NORM), AMP_CLASS_LOWER);
        CHECK_EQ(amp_policy_keep_f32(&p, AMP_OP_BATCH_NORM), 1);
        CHECK_EQ(amp_policy_keep_f32(&p, AMP_OP_LINEAR), 0);
        CHECK_OK(amp_policy_init(t->ctx, &p, AMP_PRESET_MINDSPORE_O2, NULL));
        CHECK_EQ(amp_policy_class(&p, AMP_OP_LAYER_NORM), AMP_CLASS_F32);
        CHECK_EQ(amp_policy_class(&p, AMP_OP_BATCH_NORM), AMP_CLASS_F32);
        CHECK_OK(amp_policy_init(t->ctx, &p, AMP_O3, NULL));
        CHECK_EQ(amp_policy_class(&p, AMP_OP_BATCH_NORM), AMP_CLASS_LOWER);
        CHECK_OK(amp_policy_init(t->ctx, &p, AMP_PRESET_MINDSPORE_O1, NULL));
        CHECK_EQ(amp_policy_class(&p, AMP_OP_RELU), AMP_CLASS_LOWER);
        CHECK_EQ(amp_policy_class(&p, AMP_OP_LAYER_NORM), AMP_CLASS_NONE);
        CHECK_EQ(amp_policy_output(&p, AMP_OP_LINEAR, AMP_F32), AMP_F32);
        CHECK_OK(amp_policy_init(t->ctx, &p, AMP_O1, NULL));
        CHECK_EQ(amp_policy_output(&p, AMP_OP_LINEAR, AMP_F32), AMP_F16);
        CHECK_EQ(amp_policy_output(&p, AMP_OP_SOFTMAX, AMP_F16), AMP_F32);
        CHECK_EQ(amp_policy_output(&p, AMP_OP_RELU, AMP_F16), AMP_F16);
        CHECK_EQ(amp_policy_output(&p, AMP_OP_CAT, AMP_F32), AMP_F32);
        CHECK_OK(amp_policy_init(t->ctx, &p, AMP_O0, NULL));
        CHECK_EQ(amp_policy_class(&p, AMP_OP_LINEAR), AMP_CLASS_NONE);
        CHECK_EQ(amp_policy_list(NULL, 0, &p, AMP_CLASS_LOWER), 0);
    }
}

/* A property has our name and, for those who come from there, theirs: one meaning. */
static void policy_property_names(t_run *t) {
    static const struct {
        const char *ours, *theirs, *value;
    } rows[] = {{"low", "dtype", "bfloat16"}, {"cast_model", "cast_model_type", "float32"},
        {"cast_model", "cast_model_type", "False"}, {"autocast", "patch_torch_functions", "False"},
        {"keep_norms", "keep_batchnorm_fp32", "False"}, {"cast_outputs", "cast_model_outputs", "float16"},
        {"min_scale", "min_loss_scale", "16"}, {"max_scale", "max_loss_scale", "4096"}};
    size_t i;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        amp_policy level, a, b;
        CHECK_OK(amp_policy_init(t->ctx, &level, AMP_O2, NULL));
        a = level;
        b = level;
        t_note(t, "%s = %s", rows[i].ours, rows[i].value);
        CHECK_OK(amp_policy_set(t->ctx, &a, rows[i].ours, rows[i].value));
        CHECK_OK(amp_policy_set(t->ctx, &b, rows[i].theirs, rows[i].value));
        CHECK_BITS(&a, &b, sizeof a, 1);
        if (strcmp(rows[i].ours, "autocast") != 0) CHECK(memcmp(&a, &level, sizeof a) != 0);
        CHECK_STATUS(amp_policy_set(t->ctx, &a, rows[i].ours, "?"), AMP_ERR_INVALID_ARG, rows[i].ours);
        CHECK_STATUS(amp_policy_set(t->ctx, &a, rows[i].theirs, "?"), AMP_ERR_INVALID_ARG, rows[i].theirs);
    }
}

/* A later override undoes an earlier one, the loss scale with it: a file's BF16, the command line's F16. */
static void policy_set_twice(t_run *t) {
    static const amp_preset levels[] = {AMP_O1, AMP_O2, AMP_PRESET_PYTORCH_CUDA, AMP_PRESET_PYTORCH_CPU,
        AMP_PRESET_MINDSPORE_O2, AMP_PRESET_FP8, AMP_PRESET_AMP};
    amp_policy level, p;
    size_t i;
    CHECK_OK(amp_policy_init(t->ctx, &level, AMP_O1, NULL));
    p = level;
    CHECK_OK(amp_policy_set(t->ctx, &p, "dtype", "bfloat16"));
    CHECK_EQ(amp_policy_scaler_desc(&p).mode, AMP_SCALER_OFF);
    CHECK_OK(amp_policy_set(t->ctx, &p, "dtype", "float16"));
    CHECK_EQ(amp_policy_scaler_desc(&p).mode, AMP_SCALER_DYNAMIC);
    CHECK_BITS(&p, &level, sizeof p, 1);
    CHECK_OK(amp_policy_set(t->ctx, &p, "enabled", "False"));
    CHECK_EQ(amp_policy_scaler_desc(&p).mode, AMP_SCALER_OFF);
    CHECK_OK(amp_policy_set(t->ctx, &p, "enabled", "True"));
    CHECK_BITS(&p, &level, sizeof p, 1);
    t_note(t, "levels that begin with BF16");
    for (i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        amp_policy_desc o = AMP_ZERO;
        o.low = AMP_BF16;
        CHECK_OK(amp_policy_init(t->ctx, &p, levels[i], &o));
        CHECK_EQ(amp_policy_scaler_desc(&p).mode, AMP_SCALER_OFF);
        o.low = AMP_F16;
        CHECK_OK(amp_policy_init(t->ctx, &level, levels[i], &o));
        CHECK_EQ(amp_policy_scaler_desc(&level).mode, AMP_SCALER_DYNAMIC);
        CHECK_OK(amp_policy_set(t->ctx, &p, "low", "f16"));
        CHECK_BITS(&p, &level, sizeof p, 1);
    }
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_O2, NULL));
    CHECK_OK(amp_policy_set(t->ctx, &p, "cast_model_type", "torch.bfloat16"));
    CHECK_EQ(amp_policy_scaler_desc(&p).mode, AMP_SCALER_OFF);
    CHECK_OK(amp_policy_set(t->ctx, &p, "cast_model_type", "torch.float16"));
    CHECK_EQ(amp_policy_scaler_desc(&p).mode, AMP_SCALER_DYNAMIC);
    CHECK_OK(amp_policy_set(t->ctx, &p, "loss_scale", "1")); /* asked for */
    CHECK_OK(amp_policy_set(t->ctx, &p, "dtype", "bfloat16"));
    CHECK_OK(amp_policy_set(t->ctx, &p, "dtype", "float16"));
    CHECK_EQ(amp_policy_scaler_desc(&p).mode, AMP_SCALER_OFF);
}

/* Every override rule and every error. */
static void policy_overrides(t_run *t) {
    static const struct {
        amp_preset preset;
        const char *property, *value;
        int ok;
        const char *words;
    } rows[] = {{AMP_O1, "cast_model_type", "torch.float16", 0, "cast_model_type O1"},
        {AMP_O1, "cast_model_type", "bfloat16", 0, "cast_model_type O1"},
        {AMP_O1, "cast_model_type", "torch.float32", 1, ""}, {AMP_O1, "cast_model_type", "False", 1, ""},
        {AMP_O1, "cast_model_type", "None", 1, ""}, {AMP_O2, "cast_model_type", "float16", 1, ""},
        {AMP_O2, "cast_model_type", "float64", 0, "cast_model_type"}, {AMP_O0, "cast_model_type", "float16", 1, ""},
        {AMP_O1, "patch_torch_functions", "True", 1, ""}, {AMP_O1, "patch_torch_functions", "False", 1, ""},
        {AMP_O0, "patch_torch_functions", "True", 0, "patch_torch_functions O0"},
        {AMP_O2, "patch_torch_functions", "True", 0, "patch_torch_functions O2"},
        {AMP_O3, "patch_torch_functions", "True", 0, "patch_torch_functions O3"},
        {AMP_O2, "patch_torch_functions", "False", 1, ""},
        {AMP_O1, "keep_batchnorm_fp32", "True", 0, "keep_batchnorm_fp32 O1"},
        {AMP_O1, "keep_batchnorm_fp32", "False", 0, "keep_batchnorm_fp32 O1"},
        {AMP_O1, "keep_batchnorm_fp32", "None", 1, ""}, {AMP_O2, "keep_batchnorm_fp32", "False", 1, ""},
        {AMP_O3, "keep_batchnorm_fp32", "True", 1, ""},
        {AMP_O2, "keep_batchnorm_fp32", "yes", 0, "keep_batchnorm_fp32 yes"},
        {AMP_O2, "keep_batchnorm_fp32", "true", 0, "keep_batchnorm_fp32"},
        {AMP_O1, "master_weights", "True", 0, "master_weights O1"},
        {AMP_O1, "master_weights", "False", 0, "master_weights O1"}, {AMP_O2, "master_weights", "False", 1, ""},
        {AMP_O3, "master_weights", "True", 1, ""}, {AMP_O2, "loss_scale", "dynamic", 1, ""},
        {AMP_O0, "loss_scale", "dynamic", 1, ""}, {AMP_O1, "loss_scale", "128.0", 1, ""},
        {AMP_O1, "loss_scale", " 128 ", 1, ""}, {AMP_O1, "loss_scale", "Dynamic", 0, "loss_scale Dynamic"},
        {AMP_O1, "loss_scale", "", 0, "loss_scale"}, {AMP_O1, "loss_scale", "12x", 0, "loss_scale"},
        {AMP_O1, "loss_scale", "0", 0, "loss_scale"}, {AMP_O1, "loss_scale", "-1", 0, "loss_scale"},
        {AMP_O1, "loss_scale", "inf", 0, "loss_scale"}, {AMP_O1, "loss_scale", "nan", 0, "loss_scale"},
        {AMP_O1, "loss_scale", "3.4e38", 1, ""}, {AMP_O1, "loss_scale", "3.41e38", 0, "loss_scale"},
        {AMP_O1, "loss_scale", "1e-40", 0, "loss_scale"}, {AMP_O1, "min_loss_scale", "128", 1, ""},
        {AMP_O1, "min_loss_scale", "0", 0, "min_loss_scale"}, {AMP_O1, "max_loss_scale", "65536", 1, ""},
        {AMP_O1, "max_loss_scale", "3400e35", 1, ""}, /* the limit itself; "3.4e38" is read as one ulp less */
        {AMP_O1, "max_loss_scale", "-3", 0, "max_loss_scale"}, {AMP_O1, "max_loss_scale", "x", 0, "max_loss_scale"},
        {AMP_O1, "min_loss_scale", "3e7", 0, "min_loss_scale max_loss_scale"}, {AMP_O1, "num_losses", "3", 1, ""},
        {AMP_O1, "num_losses", "0", 0, "num_losses"}, {AMP_O1, "num_losses", "2.5", 0, "num_losses"},
        {AMP_O1, "num_losses", "-1", 0, "num_losses"}, {AMP_O2, "cast_model_outputs", "float16", 1, ""},
        {AMP_O2, "cast_model_outputs", "int8", 0, "cast_model_outputs"}, {AMP_O1, "enabled", "False", 1, ""},
        {AMP_O1, "enabled", "maybe", 0, "enabled maybe"}, {AMP_O1, "opt_lvl", "O2", 0, "opt_lvl"},
        {AMP_O2, "dtype", "bfloat16", 1, ""}, {AMP_O2, "dtype", "float32", 0, "f32"},
        {AMP_PRESET_MINDSPORE_O2, "patch_torch_functions", "False", 0, "patch_torch_functions mindspore-O2"},
        {AMP_PRESET_MINDSPORE_O2, "master_weights", "True", 0, "master_weights"},
        {AMP_PRESET_MINDSPORE_O2, "num_losses", "2", 0, "num_losses"},
        {AMP_PRESET_MINDSPORE_O2, "keep_batchnorm_fp32", "False", 1, ""},
        {AMP_PRESET_MINDSPORE_O2, "cast_model_type", "float32", 1, ""},
        {AMP_PRESET_MINDSPORE_O0, "loss_scale", "128", 1, ""}, {AMP_PRESET_MINDSPORE_O1, "dtype", "f32", 0, "f16"},
        {AMP_PRESET_PYTORCH_CUDA, "cast_model_type", "float16", 0, "cast_model_type pytorch-cuda"},
        {AMP_PRESET_PYTORCH_CUDA, "keep_batchnorm_fp32", "True", 0, "keep_batchnorm_fp32"},
        {AMP_PRESET_PYTORCH_CUDA, "master_weights", "True", 0, "master_weights"},
        {AMP_PRESET_PYTORCH_CUDA, "cast_model_outputs", "float32", 0, "cast_model_outputs"},
        {AMP_PRESET_PYTORCH_CUDA, "num_losses", "2", 0, "num_losses"},
        {AMP_PRESET_PYTORCH_CUDA, "min_loss_scale", "2", 0, "min_loss_scale"},
        {AMP_PRESET_PYTORCH_CUDA, "dtype", "bf16", 1, ""}, {AMP_PRESET_PYTORCH_CUDA, "dtype", "f32", 0, "f16"}};
    size_t i;
    amp_policy p, q;
    amp_policy_desc o = AMP_ZERO, none = AMP_ZERO;
    amp_scaler_desc s;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        t_note(t, "%s, %s = %s", amp_preset_name(rows[i].preset), rows[i].property, rows[i].value);
        CHECK_OK(amp_policy_init(t->ctx, &p, rows[i].preset, NULL));
        q = p;
        if (rows[i].ok)
            CHECK_OK(amp_policy_set(t->ctx, &p, rows[i].property, rows[i].value));
        else {
            CHECK_STATUS(
                amp_policy_set(t->ctx, &p, rows[i].property, rows[i].value), AMP_ERR_INVALID_ARG, rows[i].words);
            CHECK_BITS(&p, &q, sizeof p, 1); /* untouched */
        }
        if (strcmp(rows[i].value, "None") == 0) CHECK_BITS(&p, &q, sizeof p, 1);
    }
    t_note(t, "descs");
#define REFUSED(preset, word) \
    CHECK_STATUS(amp_policy_init(t->ctx, &p, preset, &o), AMP_ERR_INVALID_ARG, word); \
    o = none
#define TAKEN(preset) \
    CHECK_OK(amp_policy_init(t->ctx, &p, preset, &o)); \
    o = none
    CHECK_STATUS(amp_policy_init(t->ctx, &p, AMP_PRESET_COUNT, NULL), AMP_ERR_INVALID_ARG, "preset");
    CHECK_STATUS(amp_policy_init(t->ctx, NULL, AMP_O1, NULL), AMP_ERR_INVALID_ARG, "policy");
    o._begin = 1;
    CHECK_STATUS(amp_policy_init(t->ctx, &p, AMP_O1, &o), AMP_ERR_UNINIT, "_begin");
    o = none;
    o.cast_model = AMP_F16;
    REFUSED(AMP_O1, "amp_policy_init cast_model");
    o.cast_model = AMP_F32;
    TAKEN(AMP_O1);
    o.cast_model = AMP_F8E4M3;
    REFUSED(AMP_O2, "amp_policy_init cast_model");
    o.cast_model = AMP_NONE;
    TAKEN(AMP_O1);
    CHECK_EQ(p.cast_model, AMP_AUTO);
    o.cast_model = AMP_NONE;
    REFUSED(AMP_PRESET_PYTORCH_CUDA, "cast_model pytorch-cuda");
    o.cast_outputs = AMP_F8E4M3;
    REFUSED(AMP_O2, "cast_outputs f8e4m3");
    o.cast_outputs = AMP_BF16;
    TAKEN(AMP_O2);
    CHECK_EQ(p.cast_outputs, AMP_BF16);
    o.cast_model = AMP_NONE;
    TAKEN(AMP_O2);
    CHECK_EQ(p.cast_model, AMP_AUTO);
    CHECK_EQ(amp_policy_params_desc(&p).model, AMP_F32);
    o.autocast = 1;
    REFUSED(AMP_O2, "autocast");
    o.autocast = 2;
    REFUSED(AMP_O1, "autocast");
    o.keep_norms = AMP_NONE;
    REFUSED(AMP_O1, "keep_norms");
    o.keep_norms = AMP_NONE;
    TAKEN(AMP_O2);
    CHECK_EQ(p.keep_norms, 0);
    o.master_weights = 1;
    REFUSED(AMP_O1, "master_weights");
    o.master_weights = AMP_NONE;
    TAKEN(AMP_O2);
    CHECK_EQ(amp_policy_params_desc(&p).master, AMP_MASTER_NONE);
    o.low = AMP_F8E5M2;
    REFUSED(AMP_O1, "f8e5m2");
    o.cast_model = AMP_BF16;
    TAKEN(AMP_O2);
    CHECK_EQ(p.low, AMP_BF16);
    o.enabled = AMP_NONE;
    TAKEN(AMP_O2);
    CHECK_EQ(amp_policy_class(&p, AMP_OP_LINEAR), AMP_CLASS_NONE);
    CHECK_EQ(amp_policy_scaler_desc(&p).mode, AMP_SCALER_OFF);
    CHECK_EQ(amp_policy_params_desc(&p).model, AMP_F32);
    o.loss_scale = "128";
    o.num_losses = 3;
    TAKEN(AMP_O1);
    s = amp_policy_scaler_desc(&p);
    CHECK_EQ(s.mode, AMP_SCALER_STATIC);
    CHECK_F32(s.scale, 128.0f);
    CHECK_EQ(s.no_check, 1);
    CHECK_EQ(p.num_losses, 3);
    {
        amp_policy_desc fixed = AMP_ZERO; /* 7 b: only Apex leaves the check out */
        int preset;
        fixed.loss_scale = "128";
        for (preset = 0; preset < AMP_PRESET_COUNT; preset++) {
            int apex = strncmp(amp_preset_name((amp_preset)preset), "O", 1) == 0;
            t_note(t, "%s", amp_preset_name((amp_preset)preset));
            CHECK_OK(amp_policy_init(t->ctx, &p, (amp_preset)preset, &fixed));
            s = amp_policy_scaler_desc(&p);
            if (s.mode == AMP_SCALER_STATIC) CHECK_EQ(s.no_check, apex);
        }
        TAKEN(AMP_O1);
    }
    o.loss_scale = "dynamic";
    o.min_scale = 16;
    o.max_scale = 1024;
    TAKEN(AMP_O0);
    s = amp_policy_scaler_desc(&p);
    CHECK_EQ(s.mode, AMP_SCALER_DYNAMIC);
    CHECK_F32(s.scale, 1024.0f);
    CHECK_F32(s.min_scale, 16.0f);
    CHECK_F32(s.max_scale, 1024.0f);
    CHECK_EQ(s.growth_interval, 2000);
    o.min_scale = 2048;
    o.max_scale = 1024;
    REFUSED(AMP_O2, "min_scale");
    o.num_losses = 2;
    REFUSED(AMP_PRESET_PYTORCH_CUDA, "num_losses");
    o.min_scale = -1;
    REFUSED(AMP_O2, "min_scale");
#undef REFUSED
#undef TAKEN
}

static void policy_edits(t_run *t) {
    events e;
    amp_policy p;
    amp_policy_desc o = AMP_ZERO;
    amp_op list[AMP_OP_COUNT];
    size_t n, i;
    context_with(t, &e);
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_PRESET_PYTORCH_CUDA, NULL));
    CHECK_OK(amp_policy_edit(t->ctx, &p, AMP_OP_RELU, AMP_CLASS_LOWER));
    CHECK_EQ(e.warnings, 0);
    CHECK_EQ(amp_policy_class(&p, AMP_OP_RELU), AMP_CLASS_LOWER);
    CHECK_OK(amp_policy_edit(t->ctx, &p, AMP_OP_LINEAR, AMP_CLASS_F32));
    CHECK_EQ(e.warnings, 0);
    CHECK_EQ(amp_policy_class(&p, AMP_OP_LINEAR), AMP_CLASS_F32);
    CHECK_OK(amp_policy_edit(t->ctx, &p, AMP_OP_EXP, AMP_CLASS_LOWER));
    CHECK_EQ(e.warnings, 1);
    CHECK(strstr(e.last, "exp") != NULL);
    CHECK_OK(amp_policy_edit(t->ctx, &p, AMP_OP_BINARY_CROSS_ENTROPY, AMP_CLASS_F32));
    CHECK_EQ(e.warnings, 2);
    CHECK(strstr(e.last, "with_logits") != NULL);
    CHECK_STATUS(amp_policy_edit(t->ctx, &p, AMP_OP_NONE, AMP_CLASS_F32), AMP_ERR_INVALID_ARG, "op");
    CHECK_STATUS(amp_policy_edit(t->ctx, &p, AMP_OP_COUNT, AMP_CLASS_F32), AMP_ERR_INVALID_ARG, "op");
    CHECK_STATUS(amp_policy_edit(t->ctx, &p, AMP_OP_EXP, (amp_op_class)9), AMP_ERR_INVALID_ARG, "class");
    CHECK_STATUS(amp_policy_edit(t->ctx, NULL, AMP_OP_EXP, AMP_CLASS_F32), AMP_ERR_INVALID_ARG, "policy");
    /* custom_mixed_precision: exactly one list */
    list[0] = AMP_OP_LINEAR;
    list[1] = AMP_OP_EXP;
    CHECK_STATUS(amp_policy_custom(t->ctx, &p, list, 2, list, 2, AMP_F16), AMP_ERR_INVALID_ARG, "both");
    CHECK_STATUS(amp_policy_custom(t->ctx, &p, NULL, 0, NULL, 0, AMP_F16), AMP_ERR_INVALID_ARG, "no");
    CHECK_STATUS(amp_policy_custom(t->ctx, &p, list, 0, NULL, 0, AMP_F16), AMP_ERR_INVALID_ARG, "n_white");
    CHECK_STATUS(amp_policy_custom(t->ctx, &p, list, 2, NULL, 0, AMP_F32), AMP_ERR_INVALID_ARG, "f32");
    list[1] = AMP_OP_NONE;
    CHECK_STATUS(amp_policy_custom(t->ctx, &p, NULL, 0, list, 2, AMP_F16), AMP_ERR_INVALID_ARG, "black[1]");
    list[1] = AMP_OP_EXP;
    e.warnings = 0;
    CHECK_OK(amp_policy_custom(t->ctx, &p, list, 2, NULL, 0, AMP_AUTO));
    CHECK_EQ(e.warnings, 0);
    CHECK_EQ(amp_policy_class(&p, AMP_OP_LINEAR), AMP_CLASS_LOWER);
    CHECK_EQ(amp_policy_class(&p, AMP_OP_EXP), AMP_CLASS_LOWER);
    CHECK_EQ(amp_policy_class(&p, AMP_OP_MATMUL), AMP_CLASS_NONE);
    CHECK_EQ(amp_policy_list(NULL, 0, &p, AMP_CLASS_LOWER), 2);
    CHECK_EQ(amp_policy_output(&p, AMP_OP_LINEAR, AMP_F32), AMP_F32);
    CHECK_OK(amp_policy_custom(
        t->ctx, &p, NULL, 0, list, 1, AMP_BF16)); /* without batch norm and layer norm: two warnings */
    CHECK_EQ(e.warnings, 2);
    CHECK_EQ(amp_policy_class(&p, AMP_OP_LINEAR), AMP_CLASS_F32);
    CHECK_EQ(amp_policy_class(&p, AMP_OP_LAYER_NORM), AMP_CLASS_LOWER);
    CHECK_EQ(p.cast_model, AMP_BF16);
    /* get_black_list() and append, as there */
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_PRESET_MINDSPORE_O2, NULL));
    n = amp_policy_list(list, AMP_OP_COUNT, &p, AMP_CLASS_F32);
    CHECK_EQ(n, 2);
    for (i = 0; i < n; i++)
        CHECK(list[i] == AMP_OP_LAYER_NORM || list[i] == AMP_OP_BATCH_NORM);
    list[1] = AMP_OP_SOFTMAX;
    CHECK_EQ(amp_policy_list(list, 1, &p, AMP_CLASS_F32), 2); /* writes no more than one */
    CHECK_EQ(list[1], AMP_OP_SOFTMAX);
    (void)amp_policy_list(list, AMP_OP_COUNT, &p, AMP_CLASS_F32);
    list[n++] = AMP_OP_SOFTMAX;
    e.warnings = 0;
    CHECK_OK(amp_policy_custom(t->ctx, &p, NULL, 0, list, n, AMP_F16));
    CHECK_EQ(e.warnings, 0);
    CHECK_EQ(amp_policy_class(&p, AMP_OP_SOFTMAX), AMP_CLASS_F32);
    CHECK_EQ(amp_policy_keep_f32(&p, AMP_OP_LAYER_NORM), 1);
    /* PyTorch's CPU autocast with another dtype: a warning, and off */
    o.low = AMP_F32;
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_PRESET_PYTORCH_CPU, &o));
    CHECK_EQ(e.warnings, 1);
    CHECK_EQ(p.enabled, 0);
    amp_ctx_destroy(t->ctx);
    t->ctx = NULL;
}

/* ---- the scope ------------------------------------------------------------------------------------------------- */

#define ROWS 5u
#define IN   12u
#define OUT  7u

typedef struct data {
    float *hx, *hw, *hb;
    amp_array x, w, b;
} data;
static data make_data(t_run *t) {
    data d;
    d.hx = (float *)t_host(t, 4 * ROWS * IN);
    d.hw = (float *)t_host(t, 4 * OUT * IN);
    d.hb = (float *)t_host(t, 4 * OUT);
    t_fill_real(t, d.hx, AMP_F32, ROWS * IN, 1);
    t_fill_real(t, d.hw, AMP_F32, OUT * IN, 1);
    t_fill_real(t, d.hb, AMP_F32, OUT, 1);
    d.x = amp_arr(t_put(t, d.hx, 4 * ROWS * IN), AMP_F32);
    d.w = amp_arr(t_put(t, d.hw, 4 * OUT * IN), AMP_F32);
    d.b = amp_arr(t_put(t, d.hb, 4 * OUT), AMP_F32);
    d.w.flags = AMP_CACHE;
    return d;
}
static amp_array cast_to(t_run *t, amp_array a, amp_dtype to, size_t n) {
    amp_array out = amp_arr(t_alloc(t, n * amp_dtype_size(to)), to);
    a.flags = 0;
    CHECK_OK(amp_cast(t->ctx, out, a, n, NULL));
    return out;
}
#define INFO(c, h, r) \
    do { \
        amp_autocast_info info_ = amp_autocast_get(t->ctx); \
        CHECK_EQ(info_.casts, c); \
        CHECK_EQ(info_.hits, h); \
        CHECK_EQ(info_.resolved, r); \
    } while (0)
static amp_status input(t_run *t, amp_array *out, amp_op op, amp_array in, size_t count) { /* a single one */
    in.count = count;
    return amp_autocast_input(t->ctx, out, op, &in, 1);
}
static void same_bits(t_run *t, amp_array a, amp_array b, size_t n) { CHECK_EQ(t_compare(t, a, b, n), n); }
static void finish(t_run *t) { CHECK_OK(amp_autocast_release(t->ctx)); }

/* cache rules, with the number of casts */
static void scope_cache(t_run *t) {
    data d = make_data(t);
    amp_autocast_desc s = AMP_ZERO;
    amp_array out, again, low = cast_to(t, d.w, AMP_F16, OUT * IN), bf = cast_to(t, d.w, AMP_BF16, OUT * IN);
    int k;
    s.arena = 1u << 16;
    for (k = 0; k < 2; k++) { /* the second scope casts again: dropped at the outermost end */
        CHECK_OK(amp_autocast_begin(t->ctx, &s));
        CHECK_OK(input(t, &out, AMP_OP_MATMUL, d.w, OUT * IN));
        INFO(1, 0, 0);
        same_bits(t, out, low, OUT * IN);
        CHECK_OK(input(t, &again, AMP_OP_LINEAR, d.w, OUT * IN));
        INFO(1, 1, 0);
        CHECK(again.data == out.data);
        CHECK_OK(amp_autocast_begin(t->ctx, NULL)); /* nested: shares the cache, and its end keeps it */
        CHECK_EQ(amp_autocast_get(t->ctx).depth, 2);
        CHECK_OK(input(t, &again, AMP_OP_MM, d.w, OUT * IN));
        INFO(1, 2, 0);
        CHECK_OK(amp_autocast_end(t->ctx));
        CHECK_OK(input(t, &again, AMP_OP_MM, d.w, OUT * IN));
        INFO(1, 3, 0);
        CHECK(again.data == out.data);
        CHECK_OK(input(t, &out, AMP_OP_MATMUL, d.x, ROWS * IN));
        INFO(2, 3, 0); /* activations are not cached */
        CHECK_OK(input(t, &again, AMP_OP_MATMUL, d.x, ROWS * IN));
        INFO(3, 3, 0);
        CHECK(again.data != out.data);
        CHECK_OK(input(t, &out, AMP_OP_MATMUL, low, OUT * IN));
        INFO(3, 3, 0); /* low already */
        CHECK(out.data == low.data);
        CHECK_OK(input(t, &out, AMP_OP_EXP, low, OUT * IN));
        INFO(4, 3, 0); /* up to FP32: not cached */
        CHECK_EQ(out.dtype, AMP_F32);
        CHECK_OK(input(t, &out, AMP_OP_EXP, d.w, OUT * IN));
        INFO(4, 3, 0);
        CHECK(out.data == d.w.data);
        CHECK_OK(input(t, &out, AMP_OP_RELU, d.w, OUT * IN));
        INFO(4, 3, 0); /* unlisted */
        CHECK_OK(input(t, &out, AMP_OP_SOFTMAX, low, OUT * IN));
        INFO(4, 3, 0); /* FP32 output: inputs as they are */
        CHECK(out.data == low.data);
        CHECK_OK(amp_autocast_end(t->ctx));
        INFO(4, 3, 0); /* still there */
    }
    /* another lower dtype in a nested region gets its own copy (PyTorch's cache would answer with the wrong one) */
    CHECK_OK(amp_autocast_begin(t->ctx, &s));
    CHECK_OK(input(t, &out, AMP_OP_MATMUL, d.w, OUT * IN));
    {
        amp_autocast_desc n = AMP_ZERO;
        n.low = AMP_BF16;
        CHECK_OK(amp_autocast_begin(t->ctx, &n));
    }
    CHECK_OK(input(t, &again, AMP_OP_MATMUL, d.w, OUT * IN));
    INFO(2, 0, 0);
    same_bits(t, again, bf, OUT * IN);
    CHECK_OK(input(t, &again, AMP_OP_MATMUL, low, OUT * IN));
    CHECK_EQ(again.dtype, AMP_BF16);
    INFO(3, 0, 0);
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(input(t, &again, AMP_OP_MATMUL, d.w, OUT * IN));
    INFO(3, 1, 0);
    CHECK(again.data == out.data);
    /* invalidation: cast again, into the same place */
    amp_autocast_invalidate(t->ctx, d.x.data);
    CHECK_OK(input(t, &again, AMP_OP_MATMUL, d.w, OUT * IN));
    INFO(3, 2, 0);
    t_set(t, d.w.data, d.hx, 4 * IN);
    amp_autocast_invalidate(t->ctx, d.w.data);
    CHECK_OK(input(t, &again, AMP_OP_MATMUL, d.w, OUT * IN));
    INFO(4, 2, 0);
    CHECK(again.data == out.data);
    same_bits(t, again, cast_to(t, d.w, AMP_F16, OUT * IN), OUT * IN);
    amp_autocast_invalidate(t->ctx, NULL);
    CHECK_OK(input(t, &again, AMP_OP_MATMUL, d.w, OUT * IN));
    INFO(5, 2, 0);
    /* cache off: each use is cast; on again: the old entry answers */
    {
        amp_autocast_desc n = AMP_ZERO;
        n.cache = AMP_NONE;
        CHECK_OK(amp_autocast_begin(t->ctx, &n));
    }
    CHECK_OK(input(t, &again, AMP_OP_MATMUL, d.w, OUT * IN));
    CHECK_OK(input(t, &again, AMP_OP_MATMUL, d.w, OUT * IN));
    INFO(7, 2, 0);
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    CHECK_EQ(amp_autocast_get(t->ctx).cache, 0);
    CHECK_OK(amp_autocast_end(t->ctx)); /* inherited */
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(input(t, &again, AMP_OP_MATMUL, d.w, OUT * IN));
    INFO(7, 3, 0);
    /* disabled region, and enabled again inside it */
    {
        amp_autocast_desc n = AMP_ZERO;
        n.disabled = 1;
        CHECK_OK(amp_autocast_begin(t->ctx, &n));
    }
    CHECK_EQ(amp_autocast_get(t->ctx).enabled, 0);
    CHECK_OK(input(t, &again, AMP_OP_MATMUL, d.w, OUT * IN));
    INFO(7, 3, 0);
    CHECK(again.data == d.w.data);
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    CHECK_EQ(amp_autocast_get(t->ctx).enabled, 1);
    CHECK_EQ(amp_autocast_get(t->ctx).cache, 1);
    CHECK_EQ(amp_autocast_get(t->ctx).low, AMP_F16);
    CHECK_OK(input(t, &again, AMP_OP_MATMUL, d.w, OUT * IN));
    INFO(7, 4, 0);
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(input(t, &again, AMP_OP_MATMUL, d.w, OUT * IN));
    CHECK(again.data == d.w.data); /* outside */
    finish(t);
}

static void scope_params(t_run *t) {
    static const size_t counts[] = {OUT * IN, 33};
    amp_params *half = set_new(t, AMP_F16, AMP_F32, counts, 2), *full = set_new(t, AMP_F32, AMP_F32, counts, 2),
               *other = set_new(t, AMP_F32, AMP_F32, counts, 1);
    amp_array out, again, view;
    amp_step_desc step = AMP_ZERO;
    double norm = 0;
    step.lr = 0.125f;
    CHECK_OK(amp_autocast_begin(t->ctx, NULL)); /* the default arena has room for every FP32 parameter */
    CHECK_OK(input(t, &out, AMP_OP_LINEAR, amp_param_get(half, 0).master, counts[0]));
    INFO(0, 0, 1);
    CHECK(out.data == amp_param_model(half, 0).data);
    CHECK_EQ(out.dtype, AMP_F16);
    view = amp_param_get(half, 0).master;
    view.data = (float *)view.data + IN;
    view.count -= IN; /* a view of it: the same place of the copy */
    CHECK_OK(input(t, &out, AMP_OP_LINEAR, view, view.count));
    INFO(0, 0, 2);
    CHECK(out.data == (char *)amp_param_model(half, 0).data + 2 * IN);
    CHECK_OK(input(t, &out, AMP_OP_EXP, amp_param_get(half, 0).master, counts[0]));
    INFO(0, 0, 2);
    CHECK(out.data == amp_param_get(half, 0).master.data);
    CHECK_OK(input(t, &out, AMP_OP_LINEAR, amp_param_model(full, 0), counts[0]));
    INFO(1, 0, 2); /* no copy: cast, once */
    CHECK_OK(input(t, &again, AMP_OP_LINEAR, amp_param_get(full, 0).master, counts[0]));
    INFO(1, 1, 2);
    CHECK(out.data == again.data);
    CHECK_OK(input(t, &again, AMP_OP_LINEAR, amp_param_model(full, 1), counts[1]));
    INFO(2, 1, 2);
    view = amp_param_get(full, 0).master;
    view.count = IN;
    view.flags = AMP_CACHE;
    CHECK_OK(input(t, &again, AMP_OP_LINEAR, view, IN));
    CHECK_OK(input(t, &again, AMP_OP_LINEAR, view, IN));
    INFO(4, 1, 2); /* views are not cached */
    CHECK_OK(input(t, &again, AMP_OP_LINEAR, amp_param_model(other, 0), counts[0]));
    INFO(5, 1, 2);
    CHECK_OK(amp_step(other, NULL, &step)); /* another set: no effect on this one */
    CHECK_OK(input(t, &again, AMP_OP_LINEAR, amp_param_model(full, 0), counts[0]));
    INFO(5, 2, 2);
    set_grad(t, full, 0, counts[0], 1.0f);
    CHECK_OK(amp_step(full, NULL, &step));
    CHECK_OK(input(t, &again, AMP_OP_LINEAR, amp_param_model(full, 0), counts[0]));
    INFO(6, 2, 2);
    CHECK(out.data == again.data);
    same_bits(t, again, cast_to(t, amp_param_model(full, 0), AMP_F16, counts[0]), counts[0]);
    CHECK_OK(t_update(full, NULL, &step, AMP_ADAMW));
    CHECK_OK(input(t, &again, AMP_OP_LINEAR, amp_param_model(full, 0), counts[0]));
    INFO(7, 2, 2);
    CHECK_OK(amp_params_master_to_model(full));
    CHECK_OK(input(t, &again, AMP_OP_LINEAR, amp_param_model(full, 0), counts[0]));
    INFO(8, 2, 2);
    CHECK_OK(amp_grad_norm(full, NULL, &norm)); /* changes no weight */
    {
        float *h = (float *)t_host(t, 4 * OUT * IN);
        CHECK_OK(amp_param_read(full, 0, h));
        CHECK_OK(amp_param_write(other, 0, h));
    }
    CHECK_OK(input(t, &again, AMP_OP_LINEAR, amp_param_model(full, 0), counts[0]));
    INFO(8, 3, 2);
    {
        float *zeros = (float *)t_host(t, 4 * OUT * IN);
        CHECK_OK(amp_param_write(full, 0, zeros));
    }
    CHECK_OK(input(t, &again, AMP_OP_LINEAR, amp_param_model(full, 0), counts[0]));
    INFO(9, 3, 2);
    same_bits(t, again, cast_to(t, amp_param_model(full, 0), AMP_F16, counts[0]), counts[0]);
    amp_params_destroy(full); /* its casts go with it: the next set may lie at the same address */
    full = set_new(t, AMP_F32, AMP_F32, counts, 2);
    CHECK_OK(input(t, &again, AMP_OP_LINEAR, amp_param_model(full, 0), counts[0]));
    INFO(10, 3, 2);
    same_bits(t, again, cast_to(t, amp_param_model(full, 0), AMP_F16, counts[0]), counts[0]);
    CHECK_OK(amp_autocast_end(t->ctx));
    finish(t);
    amp_params_destroy(half);
    amp_params_destroy(full);
    amp_params_destroy(other);
    { /* one buffer, first nobody's, then adopted by one set, then by another: each change of it is seen */
        float *h = (float *)t_host(t, 4 * OUT * IN), *w;
        amp_array a;
        amp_param_desc e = AMP_ZERO;
        amp_params_desc d = AMP_ZERO;
        int k;
        t_fill_real(t, h, AMP_F32, OUT * IN, 1);
        w = (float *)t_put(t, h, 4 * OUT * IN);
        a = amp_arr(w, AMP_F32);
        a.flags = AMP_CACHE;
        d.model = AMP_F32;
        e.count = OUT * IN;
        e.master = w;
        {
            amp_autocast_desc s = AMP_ZERO;
            s.arena = 1u << 16;
            CHECK_OK(amp_autocast_begin(t->ctx, &s));
        }
        CHECK_OK(input(t, &out, AMP_OP_LINEAR, a, OUT * IN));
        INFO(1, 0, 0);
        for (k = 0; k < 2; k++) {
            amp_params *p = NULL;
            CHECK_OK(amp_params_create(&p, t->ctx, &d));
            CHECK_OK(amp_params_add(p, &e));
            CHECK_OK(amp_params_commit(p));
            t_fill_real(t, h, AMP_F32, OUT * IN, 1);
            t_set(t, w, h, 4 * OUT * IN);
            CHECK_OK(input(t, &again, AMP_OP_LINEAR, a, OUT * IN));
            INFO(2 + 2 * k, k, 0);
            same_bits(t, again, cast_to(t, a, AMP_F16, OUT * IN), OUT * IN);
            set_grad(t, p, 0, OUT * IN, 1.0f);
            CHECK_OK(amp_step(p, NULL, &step));
            CHECK_OK(input(t, &again, AMP_OP_LINEAR, a, OUT * IN));
            INFO(3 + 2 * k, k, 0);
            CHECK_OK(input(t, &again, AMP_OP_LINEAR, a, OUT * IN));
            INFO(3 + 2 * k, k + 1, 0);
            same_bits(t, again, cast_to(t, a, AMP_F16, OUT * IN), OUT * IN);
            amp_params_destroy(p);
        }
        CHECK_OK(amp_autocast_end(t->ctx));
        finish(t);
    }
}

static void scope_errors(t_run *t) {
    data d = make_data(t);
    amp_autocast_desc s = AMP_ZERO;
    amp_array out, two[2], got[2];
    amp_policy p;
    int i;
    CHECK_STATUS(amp_autocast_end(t->ctx), AMP_ERR_STAGE, "region");
    s._end = 1;
    CHECK_STATUS(amp_autocast_begin(t->ctx, &s), AMP_ERR_UNINIT, "_end");
    s._end = 0;
    s.low = AMP_F32;
    CHECK_STATUS(amp_autocast_begin(t->ctx, &s), AMP_ERR_INVALID_ARG, "low");
    s.low = AMP_AUTO;
    s.pin = AMP_F8E4M3;
    CHECK_STATUS(amp_autocast_begin(t->ctx, &s), AMP_ERR_INVALID_ARG, "pin");
    s.pin = AMP_AUTO;
    s.cache = 3;
    CHECK_STATUS(amp_autocast_begin(t->ctx, &s), AMP_ERR_INVALID_ARG, "cache");
    s.cache = 0;
    CHECK_EQ(amp_autocast_get(t->ctx).depth, 0);
    s.arena = 512;
    s.entries = 1;
    CHECK_OK(amp_autocast_begin(t->ctx, &s));
    CHECK_EQ(amp_autocast_get(t->ctx).arena, 512);
    CHECK_EQ(t_ledger(t->ctx, "autocast").bytes, 512);
    CHECK_OK(input(t, &out, AMP_OP_MATMUL, d.w, OUT * IN)); /* 168 bytes: 256 */
    CHECK_OK(input(t, &out, AMP_OP_MATMUL, d.x, ROWS * IN));
    memset(&out, 0x5a, sizeof out);
    {
        amp_array was = out;
        CHECK_STATUS(input(t, &out, AMP_OP_MATMUL, d.x, ROWS * IN), AMP_ERR_NO_MEMORY, "arena 512 256");
        CHECK_BITS(&out, &was, sizeof out, 1);
    }
    CHECK_EQ(amp_autocast_get(t->ctx).peak, 512);
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_begin(t->ctx, &s));
    two[0] = two[1] = amp_arrn(d.x.data, AMP_F32, ROWS * IN); /* one fits, three do not: nothing stays in use */
    {
        amp_array three[3], none[3];
        three[0] = three[1] = three[2] = two[0];
        CHECK_STATUS(amp_autocast_input(t->ctx, none, AMP_OP_MM, three, 3), AMP_ERR_NO_MEMORY, "arena");
    }
    CHECK_EQ(amp_autocast_get(t->ctx).used, 0);
    CHECK_OK(amp_autocast_input(t->ctx, got, AMP_OP_MM, two, 2));
    CHECK_STATUS(amp_autocast_release(t->ctx), AMP_ERR_STAGE, "open");
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_begin(t->ctx, &s)); /* temporary casts of a region are given back at its end */
    for (i = 0; i < 3; i++) {
        CHECK_OK(amp_autocast_begin(t->ctx, NULL));
        CHECK_OK(input(t, &out, AMP_OP_MATMUL, d.x, ROWS * IN));
        CHECK_OK(amp_autocast_end(t->ctx));
    }
    CHECK_OK(input(t, &out, AMP_OP_MATMUL, d.w, OUT * IN));
    d.b.flags = AMP_CACHE;
    CHECK_STATUS(input(t, &out, AMP_OP_MATMUL, d.b, OUT), AMP_ERR_NO_MEMORY, "entries");
    d.b.flags = 0;
    CHECK_STATUS(input(t, &out, AMP_OP_BINARY_CROSS_ENTROPY, d.x, ROWS * IN), AMP_ERR_UNSUPPORTED,
        "binary_cross_entropy_with_logits");
    CHECK_STATUS(input(t, &out, AMP_OP_COUNT, d.x, 1), AMP_ERR_INVALID_ARG, "op");
    CHECK_STATUS(input(t, &out, AMP_OP_MM, d.x, 0), AMP_ERR_INVALID_ARG, "in[0].count");
    CHECK_STATUS(input(t, NULL, AMP_OP_MM, d.x, 4), AMP_ERR_INVALID_ARG, "out");
    d.x.flags = 2;
    CHECK_STATUS(input(t, &out, AMP_OP_MM, d.x, 4), AMP_ERR_INVALID_ARG, "flags");
    d.x.flags = 0;
    for (i = 1; i < AMP_AUTOCAST_DEPTH; i++)
        CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    CHECK_STATUS(amp_autocast_begin(t->ctx, NULL), AMP_ERR_STAGE, "16");
    for (i = 0; i < AMP_AUTOCAST_DEPTH; i++)
        CHECK_OK(amp_autocast_end(t->ctx));
    /* widest */
    s.arena = 4096;
    CHECK_OK(amp_autocast_begin(t->ctx, &s));
    two[0] = amp_arrn(d.x.data, AMP_F32, 8);
    two[1] = cast_to(t, d.x, AMP_F16, 8);
    two[1].count = 8;
    CHECK_OK(amp_autocast_input(t->ctx, got, AMP_OP_CAT, two, 2));
    CHECK_EQ(got[0].dtype, AMP_F32);
    CHECK_EQ(got[1].dtype, AMP_F32);
    CHECK(got[0].data == two[0].data);
    CHECK_OK(amp_autocast_input(t->ctx, got, AMP_OP_CAT, &two[1], 1));
    CHECK_EQ(got[0].dtype, AMP_F16);
    CHECK(got[0].data == two[1].data);
    two[0] = cast_to(t, d.x, AMP_BF16, 8);
    two[0].count = 8;
    CHECK_STATUS(amp_autocast_input(t->ctx, got, AMP_OP_CAT, two, 2), AMP_ERR_UNSUPPORTED, "f16 bf16");
    CHECK_OK(amp_autocast_input(t->ctx, got, AMP_OP_CAT, two, 1));
    CHECK_EQ(got[0].dtype, AMP_BF16);
    CHECK_OK(amp_autocast_input(t->ctx, got, AMP_OP_MM, two, 2));
    CHECK_EQ(got[0].dtype, AMP_F16);
    CHECK_EQ(got[1].dtype, AMP_F16); /* both to the lower dtype */
    two[0] = cast_to(t, d.x, AMP_F8E4M3, 8);
    two[0].count = 8;
    CHECK_OK(amp_autocast_input(t->ctx, got, AMP_OP_MM, two, 1));
    CHECK_EQ(got[0].dtype, AMP_F8E4M3); /* FP8 is left alone */
    CHECK_EQ(amp_autocast_output(t->ctx, AMP_OP_MM, AMP_F32), AMP_F16);
    CHECK_EQ(amp_autocast_output(t->ctx, AMP_OP_SUM, AMP_F16), AMP_F32);
    CHECK_EQ(amp_autocast_output(t->ctx, AMP_OP_RELU, AMP_BF16), AMP_BF16);
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_EQ(amp_autocast_output(t->ctx, AMP_OP_MM, AMP_F32), AMP_F32);
    /* a disabled policy opens a region in which nothing happens, and no arena is made for it */
    finish(t);
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_O0, NULL));
    memset(&s, 0, sizeof s);
    s.policy = &p;
    CHECK_OK(amp_autocast_begin(t->ctx, &s));
    CHECK_EQ(amp_autocast_get(t->ctx).arena, 0);
    CHECK_EQ(amp_autocast_get(t->ctx).enabled, 0);
    CHECK_OK(input(t, &out, AMP_OP_MM, d.x, ROWS * IN));
    CHECK(out.data == d.x.data);
    CHECK_OK(amp_autocast_end(t->ctx));
    finish(t);
}

/* Verbs in a scope: bits of the hand-written calls, dtype choices, explicit outputs, pins. */
static void scope_verbs(t_run *t) {
    data d = make_data(t);
    amp_array xh = cast_to(t, d.x, AMP_F16, ROWS * IN), wh = cast_to(t, d.w, AMP_F16, OUT * IN),
              xb = cast_to(t, d.x, AMP_BF16, ROWS * IN), wb = cast_to(t, d.w, AMP_BF16, OUT * IN);
    amp_array y = amp_arr(t_alloc(t, 4 * ROWS * OUT), AMP_AUTO), want = amp_arr(t_alloc(t, 4 * ROWS * OUT), AMP_F16);
    amp_precision rec = AMP_ZERO;
    amp_dtype chosen = AMP_AUTO;
    amp_gemm_desc g = AMP_ZERO, h;
    amp_linear_desc l = AMP_ZERO, m;
    amp_autocast_desc s = AMP_ZERO, n = AMP_ZERO;
    s.arena = 1u << 16;
    l.rows = ROWS;
    l.in = IN;
    l.out = OUT;
    l.x = d.x;
    l.w = d.w;
    l.bias = d.b;
    l.y = y;
    l.act = AMP_RELU;
    g.m = ROWS;
    g.n = OUT;
    g.k = IN;
    g.a = d.x;
    g.b = d.w;
    g.trans_b = 1;
    g.d = y;
    /* automatic without a way to return the choice; outside a scope automatic is the input's dtype */
    CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, "d_dtype");
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "record");
    g.d_dtype = &chosen;
    l.record = &rec;
    CHECK_OK(amp_gemm(t->ctx, &g));
    CHECK_EQ(chosen, AMP_F32);
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    CHECK_EQ(rec.y, AMP_F32);
    CHECK_EQ(rec.used, AMP_F32);
    CHECK_EQ(rec.x, AMP_F32);
    CHECK_OK(amp_autocast_begin(t->ctx, &s));
    CHECK_OK(amp_gemm(t->ctx, &g));
    CHECK_EQ(chosen, AMP_F16);
    INFO(2, 0, 0);
    h = g;
    h.a = xh;
    h.b = wh;
    h.d = want;
    h.d_dtype = NULL;
    CHECK_OK(amp_gemm(t->ctx, &h));
    y.dtype = chosen;
    same_bits(t, y, want, ROWS * OUT);
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    CHECK_EQ(rec.y, AMP_F16);
    CHECK_EQ(rec.used, AMP_F16);
    CHECK_EQ(rec.x, AMP_F32);
    INFO(3, 1, 0);
    m = l;
    m.x = xh;
    m.w = wh;
    m.y = want;
    m.record = NULL;
    CHECK_OK(amp_linear_forward(t->ctx, &m));
    same_bits(t, y, want, ROWS * OUT);
    CHECK_EQ(amp_autocast_get(t->ctx).used, 256); /* the verb gave its temporary copy back */
    /* an explicit output is obeyed */
    l.y.dtype = AMP_F32;
    m.y.dtype = AMP_F32;
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    CHECK_EQ(rec.y, AMP_F32);
    CHECK_EQ(rec.used, AMP_F16);
    CHECK_OK(amp_linear_forward(t->ctx, &m));
    same_bits(t, l.y, m.y, ROWS * OUT);
    /* one operation pinned: to_float of a layer */
    l.pin = AMP_BF16;
    l.y.dtype = AMP_AUTO;
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    CHECK_EQ(rec.y, AMP_BF16);
    CHECK_EQ(rec.used, AMP_BF16);
    m.x = xb;
    m.w = wb;
    m.y.dtype = AMP_BF16;
    m.pin = AMP_BF16; /* or the scope would cast them to its F16, and the product go another way */
    CHECK_OK(amp_linear_forward(t->ctx, &m));
    y.dtype = AMP_BF16;
    same_bits(t, y, m.y, ROWS * OUT);
    { /* only the scope's own dtype is cached */
        amp_autocast_info before = amp_autocast_get(t->ctx);
        CHECK_OK(amp_linear_forward(t->ctx, &l));
        INFO(before.casts + 2, before.hits, 0);
    }
    l.pin = AMP_F32;
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    CHECK_EQ(rec.y, AMP_F32);
    l.pin = AMP_F8E4M3;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "pin");
    l.pin = AMP_AUTO;
    { /* x in half, y in FP32 by request: dx is left automatic and has x's dtype, as the gradient of that tensor */
        amp_linear_desc b = l;
        float *hdy = (float *)t_host(t, 4 * ROWS * OUT);
        amp_array dyh,
            dx = amp_arr(t_alloc(t, 4 * ROWS * IN), AMP_AUTO), dxw = amp_arr(t_alloc(t, 2 * ROWS * IN), AMP_F16),
            dw = amp_arr(t_alloc(t, 4 * OUT * IN), AMP_F32), dww = amp_arr(t_alloc(t, 4 * OUT * IN), AMP_F32);
        t_fill_real(t, hdy, AMP_F32, ROWS * OUT, 1);
        b.act = AMP_ACT_NONE;
        b.x = xh;
        b.y.dtype = AMP_F32;
        CHECK_OK(amp_linear_forward(t->ctx, &b));
        CHECK_EQ(rec.x, AMP_F16);
        CHECK_EQ(rec.y, AMP_F32);
        CHECK_EQ(rec.used, AMP_F16);
        b.dy = amp_arr(t_put(t, hdy, 4 * ROWS * OUT), AMP_AUTO);
        b.dx = dx;
        b.dw = dw;
        CHECK_OK(amp_linear_backward(t->ctx, &b));
        dyh = amp_arr(b.dy.data, AMP_F32);
        dyh = cast_to(t, dyh, AMP_F16, ROWS * OUT);
        b.record = NULL;
        b.w = wh;
        b.y.dtype = AMP_F16;
        b.dy = dyh;
        b.dx = dxw;
        b.dw = dww;
        CHECK_OK(amp_linear_backward(t->ctx, &b));
        dx.dtype = AMP_F16;
        same_bits(t, dx, dxw, ROWS * IN);
        same_bits(t, dw, dww, OUT * IN);
    }
    { /* a bias that is a parameter with a model copy: the copy */
        static const size_t counts[] = {OUT * IN, OUT};
        amp_params *p = set_new(t, AMP_F16, AMP_F16, counts, 2);
        amp_linear_desc b = l;
        b.w = amp_param_get(p, 0).master;
        b.bias = amp_param_get(p, 1).master;
        CHECK_OK(amp_linear_forward(t->ctx, &b));
        CHECK_EQ(rec.y, AMP_F16);
        m = b;
        m.x = xh;
        m.w = amp_param_model(p, 0);
        m.bias = amp_param_model(p, 1);
        m.y = want;
        m.record = NULL;
        CHECK_OK(amp_linear_forward(t->ctx, &m));
        y.dtype = AMP_F16;
        same_bits(t, y, want, ROWS * OUT);
        amp_params_destroy(p);
    }
    /* a region pinned: to_float, and custom_fwd(cast_inputs) */
    n.pin = AMP_BF16;
    CHECK_OK(amp_autocast_begin(t->ctx, &n));
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    CHECK_EQ(rec.y, AMP_BF16);
    CHECK_EQ(amp_autocast_output(t->ctx, AMP_OP_EXP, AMP_F32), AMP_BF16);
    CHECK_OK(amp_autocast_end(t->ctx));
    n.pin = AMP_F32;
    n.if_enabled = 1;
    CHECK_OK(amp_autocast_begin(t->ctx, &n));
    g.a = xh;
    CHECK_OK(amp_gemm(t->ctx, &g));
    CHECK_EQ(chosen, AMP_F32);
    g.a = d.x;
    CHECK_OK(amp_autocast_end(t->ctx));
    { /* packed batches: all of their elements are cast */
        enum { M = 9, K = 7, B = 5 };
        amp_gemm_desc b = AMP_ZERO;
        float *ha = (float *)t_host(t, 4 * B * M * K), *hb = (float *)t_host(t, 4 * B * K * OUT);
        amp_array want;
        t_fill_real(t, ha, AMP_F32, B * M * K, 1);
        t_fill_real(t, hb, AMP_F32, B * K * OUT, 1);
        b.m = M;
        b.k = K;
        b.n = OUT;
        b.batch = B;
        b.a = amp_arr(t_put(t, ha, 4 * B * M * K), AMP_F32);
        b.b = amp_arr(t_put(t, hb, 4 * B * K * OUT), AMP_F32);
        b.d = amp_arr(t_alloc(t, 4 * B * M * OUT), AMP_F32);
        CHECK_OK(amp_gemm(t->ctx, &b));
        b.a = cast_to(t, b.a, AMP_F16, B * M * K);
        b.b = cast_to(t, b.b, AMP_F16, B * K * OUT);
        want = b.d;
        b.d = amp_arr(t_alloc(t, 4 * B * M * OUT), AMP_F32);
        CHECK_OK(amp_gemm(t->ctx, &b));
        same_bits(t, want, b.d, B * M * OUT);
    }
    /* beta: d's contents need a dtype; c gives it */
    g.beta = amp_opt(1);
    CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, "beta");
    g.c = amp_arr(t_put(t, d.hx, 4 * ROWS * OUT), AMP_F32);
    CHECK_OK(amp_gemm(t->ctx, &g));
    CHECK_EQ(chosen, AMP_F32);
    CHECK_OK(amp_autocast_end(t->ctx));
    n.pin = AMP_BF16;
    CHECK_OK(amp_autocast_begin(t->ctx, &n)); /* no enabled region around it: nothing happens */
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    CHECK_EQ(rec.y, AMP_F32);
    CHECK_EQ(amp_autocast_get(t->ctx).enabled, 0);
    CHECK_OK(amp_autocast_end(t->ctx));
    /* no arena: a cast is refused with what to do; outputs untouched */
    finish(t);
    CHECK_OK(amp_autocast_release(t->ctx));
    l.pin = AMP_F16;
    rec.made = 0;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_STAGE, "arena amp_autocast_begin pinned 256");
    CHECK_EQ(rec.made, 0);
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_linear_forward(t->ctx, &l)); /* the arena stays, for backwards outside of the scope */
    CHECK_EQ(rec.made, 1);
    { /* backward reads what forward did: by the record, or by a pin */
        amp_linear_desc b = l;
        float *hdy = (float *)t_host(t, 4 * ROWS * OUT);
        amp_array dw[3];
        int i;
        t_fill_real(t, hdy, AMP_F32, ROWS * OUT, 1);
        b.act = AMP_ACT_NONE;
        for (i = 0; i < 3; i++) {
            dw[i] = amp_arr(t_alloc(t, 4 * OUT * IN), AMP_F32);
            b.record = i == 0 ? &rec : NULL;
            b.pin = i < 2 ? AMP_F16 : AMP_AUTO;
            b.dy = amp_arr(t_put(t, hdy, 4 * ROWS * OUT), AMP_F32);
            b.dw = dw[i];
            CHECK_OK(amp_linear_backward(t->ctx, &b));
        }
        same_bits(t, dw[1], dw[0], OUT * IN);
        CHECK(t_compare(t, dw[2], dw[0], OUT * IN) != OUT * IN);
    }
    rec.made = 0;
    l.pin = AMP_AUTO;
    /* errors of records */
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_STAGE, "record");
    l.x.dtype = AMP_AUTO;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "from");
    l.from = &rec;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_STAGE, "from");
    finish(t);
}

/* ---- the digits networks in FP32, wrapped, against their hand-written counterparts ----------------------------- */

enum { MOST = 8, PIXELS = DIGITS_SIDE * DIGITS_SIDE, CLASSES = 10 };

typedef struct shape {
    const char *name;
    size_t layers, hidden, rows, steps;
    amp_act act;
    int glorot;
} shape;
typedef struct net {
    const shape *s;
    amp_params *p;
    amp_scaler *sc;
    amp_linear_desc l[MOST];
    amp_xent_desc e;
    amp_array x, h[MOST], aux[MOST], d[MOST];
    int32_t *labels;
} net;

/* examples/digits.c: its layers, its initialisation; buffers with room for FP32, dtypes left automatic */
static void net_new(t_run *t, net *n, const shape *s, const amp_params_desc *pd, const amp_scaler_desc *sd) {
    size_t i, k;
    memset(n, 0, sizeof *n);
    n->s = s;
    CHECK_OK(amp_params_create(&n->p, t->ctx, pd));
    for (i = 0; i < s->layers; i++) {
        amp_param_desc w = AMP_ZERO, b = AMP_ZERO;
        amp_linear_desc *l = &n->l[i];
        float *init, bound;
        l->rows = s->rows;
        l->in = i ? s->hidden : (size_t)PIXELS;
        l->out = i + 1 < s->layers ? s->hidden : (size_t)CLASSES;
        l->act = i + 1 < s->layers ? s->act : AMP_ACT_NONE;
        bound = (float)sqrt(6.0 / (double)(s->glorot ? l->in + l->out : l->in));
        w.count = l->in * l->out;
        b.count = l->out;
        w.init = init = (float *)t_host(t, 4 * w.count);
        for (k = 0; k < w.count; k++)
            init[k] = bound * (float)(2.0 * amp_random(1, 1000 + i, k) / 4294967296.0 - 1.0);
        CHECK_OK(amp_params_add(n->p, &w));
        CHECK_OK(amp_params_add(n->p, &b));
    }
    CHECK_OK(amp_params_commit(n->p));
    CHECK_OK(amp_scaler_create(&n->sc, t->ctx, sd));
    n->x = amp_arr(t_alloc(t, 4 * s->rows * PIXELS), AMP_F32);
    n->labels = (int32_t *)t_alloc(t, 4 * s->rows);
    for (i = 0; i < s->layers; i++) {
        amp_linear_desc *l = &n->l[i];
        n->h[i] = amp_arr(t_alloc(t, 4 * s->rows * l->out), AMP_AUTO);
        n->d[i] = amp_arr(t_alloc(t, 4 * s->rows * l->out), AMP_AUTO);
        if (l->act == AMP_GELU) n->aux[i] = amp_arr(t_alloc(t, 4 * s->rows * l->out), AMP_AUTO);
        l->bias = amp_param_model(n->p, 2 * i + 1);
        l->dw = amp_param_grad(n->p, 2 * i);
        l->dbias = amp_param_grad(n->p, 2 * i + 1);
    }
    n->e.rows = s->rows;
    n->e.classes = CLASSES;
    n->e.labels = n->labels;
    n->e.scaler = n->sc;
    n->e.loss = (float *)t_alloc(t, 4);
    n->e.row_loss = (float *)t_alloc(t, 4 * s->rows);
}
static void net_free(net *n) {
    amp_params_destroy(n->p);
    amp_scaler_destroy(n->sc);
}

static void net_input(t_run *t, net *n, size_t step) { /* digits step * rows and up */
    size_t i, k;
    float *x = (float *)t_host(t, 4 * n->s->rows * PIXELS);
    int32_t *labels = (int32_t *)t_host(t, 4 * n->s->rows);
    for (i = 0; i < n->s->rows; i++) {
        const char *text = digits_data[(step * n->s->rows + i) % DIGITS_COUNT];
        labels[i] = text[0] - '0';
        for (k = 0; k < PIXELS; k++)
            x[i * PIXELS + k] = (float)(strchr(DIGITS_INK, text[2 + k]) - DIGITS_INK) / 16.0f;
    }
    t_set(t, n->x.data, x, 4 * n->s->rows * PIXELS);
    t_set(t, n->labels, labels, 4 * n->s->rows);
}
static void net_step(t_run *t, net *n, t_blob *b) {
    amp_step_desc step = AMP_ZERO;
    step.lr = 0.005f;
    CHECK_OK(amp_step(n->p, n->sc, &step));
    t_blob_dev(t, b, n->e.loss, 4);
}

/* the FP32 program; every dtype but the gradients' is left automatic */
static void net_wrapped(t_run *t, net *n, const amp_policy *policy, int inside, t_blob *b) {
    amp_precision r[MOST];
    amp_autocast_desc scope = AMP_ZERO;
    size_t i, step, last = n->s->layers - 1;
    memset(r, 0, sizeof r);
    for (i = 0; i <= last; i++) {
        amp_linear_desc *l = &n->l[i];
        l->x = i ? n->h[i - 1] : n->x;
        l->w = amp_param_model(n->p, 2 * i);
        l->y = n->h[i];
        l->aux = n->aux[i];
        l->dy = n->d[i];
        if (i) l->dx = n->d[i - 1];
        l->record = &r[i];
        if (i) l->from = &r[i - 1];
    }
    n->e.from = &r[last];
    n->e.logits = n->h[last];
    n->e.dlogits = n->d[last];
    scope.policy = policy;
    for (step = 0; step < n->s->steps; step++) {
        net_input(t, n, step);
        CHECK_OK(amp_autocast_begin(t->ctx, &scope));
        for (i = 0; i <= last; i++)
            CHECK_OK(amp_linear_forward(t->ctx, &n->l[i]));
        CHECK_OK(amp_softmax_cross_entropy(t->ctx, &n->e));
        if (!inside) CHECK_OK(amp_autocast_end(t->ctx));
        for (i = last + 1; i-- > 0;)
            CHECK_OK(amp_linear_backward(t->ctx, &n->l[i]));
        if (inside) CHECK_OK(amp_autocast_end(t->ctx));
        net_step(t, n, b);
    }
}

/* what somebody would write by hand: c is the dtype of products, y that of what they return */
static void net_hand(t_run *t, net *n, amp_dtype c, amp_dtype y, t_blob *b) {
    amp_array x[MOST], w[MOST], d[MOST]; /* what products read */
    size_t i, step, last = n->s->layers - 1;
    int back = c != y; /* results return to FP32 and are cast again */
    for (i = 0; i <= last; i++) {
        amp_linear_desc *l = &n->l[i];
        n->h[i].dtype = n->d[i].dtype = y;
        if (n->aux[i].data) n->aux[i].dtype = y;
        w[i] = amp_arr(t_alloc(t, 4 * l->in * l->out), c);
        x[i] = i && !back ? n->h[i - 1] : amp_arr(t_alloc(t, 4 * l->rows * l->in), c);
        d[i] = back ? amp_arr(t_alloc(t, 4 * l->rows * l->out), c) : n->d[i];
        l->x = x[i];
        l->w = w[i];
        l->y = n->h[i];
        l->aux = n->aux[i];
        if (i) l->dx = n->d[i - 1];
    }
    n->e.logits = n->h[last];
    n->e.dlogits = n->d[last];
    for (step = 0; step < n->s->steps; step++) {
        net_input(t, n, step);
        for (i = 0; i <= last; i++) {
            amp_linear_desc *l = &n->l[i];
            CHECK_OK(amp_cast(t->ctx, w[i], amp_param_model(n->p, 2 * i), l->in * l->out, NULL));
            if (i == 0 || back) CHECK_OK(amp_cast(t->ctx, x[i], i ? n->h[i - 1] : n->x, l->rows * l->in, NULL));
            CHECK_OK(amp_linear_forward(t->ctx, l));
        }
        CHECK_OK(amp_softmax_cross_entropy(t->ctx, &n->e));
        for (i = last + 1; i-- > 0;) {
            amp_linear_desc l = n->l[i];
            l.dy = n->d[i];
            if (back) { /* the activation's gradient in FP32, then down for the products */
                l.dx = l.dw = l.dbias = amp_arr(NULL, AMP_AUTO);
                if (l.act) CHECK_OK(amp_linear_backward(t->ctx, &l));
                CHECK_OK(amp_cast(t->ctx, d[i], n->d[i], l.rows * l.out, NULL));
                l = n->l[i];
                l.dy = d[i];
                l.act = AMP_ACT_NONE;
            }
            CHECK_OK(amp_linear_backward(t->ctx, &l));
        }
        net_step(t, n, b);
    }
}

static void digits_levels(t_run *t, const shape *full) {
    static const struct {
        amp_preset preset;
        amp_dtype low, c, y, model;
        amp_master master;
        amp_scaler_mode scaling;
        float scale;
    } rows[] = {{AMP_O0, AMP_AUTO, AMP_F32, AMP_F32, AMP_F32, AMP_MASTER_F32, AMP_SCALER_OFF, 0},
        {AMP_O1, AMP_AUTO, AMP_F16, AMP_F16, AMP_F32, AMP_MASTER_F32, AMP_SCALER_DYNAMIC, 65536},
        {AMP_O2, AMP_AUTO, AMP_F16, AMP_F16, AMP_F16, AMP_MASTER_F32, AMP_SCALER_DYNAMIC, 65536},
        {AMP_O3, AMP_AUTO, AMP_F16, AMP_F16, AMP_F16, AMP_MASTER_NONE, AMP_SCALER_OFF, 0},
        {AMP_PRESET_MINDSPORE_O1, AMP_AUTO, AMP_F16, AMP_F32, AMP_F32, AMP_MASTER_F32, AMP_SCALER_OFF, 0},
        {AMP_O1, AMP_BF16, AMP_BF16, AMP_BF16, AMP_F32, AMP_MASTER_F32, AMP_SCALER_OFF, 0},
        {AMP_O2, AMP_BF16, AMP_BF16, AMP_BF16, AMP_BF16, AMP_MASTER_F32, AMP_SCALER_OFF, 0},
        {AMP_O3, AMP_BF16, AMP_BF16, AMP_BF16, AMP_BF16, AMP_MASTER_NONE, AMP_SCALER_OFF, 0},
        {AMP_PRESET_MINDSPORE_O0, AMP_AUTO, AMP_F32, AMP_F32, AMP_F32, AMP_MASTER_F32, AMP_SCALER_OFF, 0},
        {AMP_PRESET_MINDSPORE_O1, AMP_BF16, AMP_BF16, AMP_F32, AMP_F32, AMP_MASTER_F32, AMP_SCALER_OFF, 0},
        {AMP_PRESET_MINDSPORE_O2, AMP_AUTO, AMP_F16, AMP_F16, AMP_F16, AMP_MASTER_F32, AMP_SCALER_DYNAMIC, 16777216},
        {AMP_PRESET_MINDSPORE_O3, AMP_AUTO, AMP_F16, AMP_F16, AMP_F16, AMP_MASTER_F32, AMP_SCALER_OFF, 0},
        {AMP_PRESET_MINDSPORE_AUTO, AMP_AUTO, AMP_F16, AMP_F16, AMP_F32, AMP_MASTER_F32, AMP_SCALER_OFF, 0},
        {AMP_PRESET_PYTORCH_CUDA, AMP_AUTO, AMP_F16, AMP_F16, AMP_F32, AMP_MASTER_F32, AMP_SCALER_DYNAMIC, 65536},
        {AMP_PRESET_PYTORCH_CPU, AMP_AUTO, AMP_BF16, AMP_BF16, AMP_F32, AMP_MASTER_F32, AMP_SCALER_OFF, 0},
        {AMP_PRESET_AMP, AMP_BF16, AMP_BF16, AMP_BF16, AMP_F32, AMP_MASTER_F32, AMP_SCALER_OFF, 0}};
    shape s = *full;
    size_t i, k;
    if (t_slow(t)) {
        s.hidden = 16;
        s.rows = 8;
        s.steps = 2;
        if (s.layers > 4) s.layers = 4;
    }
    for (i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        net a, b;
        t_blob la = AMP_ZERO, lb = AMP_ZERO;
        amp_policy policy;
        amp_policy_desc o = AMP_ZERO;
        amp_params_desc pd = AMP_ZERO, mine;
        amp_scaler_desc sd = AMP_ZERO, theirs;
        const size_t row = i / 2;
        const int inside = i % 2;
        if (t_slow(t) && inside != (int)((row + (s.act == AMP_GELU)) % 2))
            continue; /* there each network has each level one way */
        o.low = rows[row].low;
        t_note(t, "%s: %s %s, backward %s", s.name, amp_preset_name(rows[row].preset), amp_dtype_name(rows[row].low),
            inside ? "inside" : "outside");
        CHECK_OK(amp_policy_init(t->ctx, &policy, rows[row].preset, &o));
        mine = amp_policy_params_desc(&policy);
        theirs = amp_policy_scaler_desc(&policy);
        net_new(t, &a, &s, &mine, &theirs);
        pd.model = rows[row].model;
        pd.master = rows[row].master;
        sd.mode = rows[row].scaling;
        sd.scale = rows[row].scale;
        net_new(t, &b, &s, &pd, &sd);
        net_wrapped(t, &a, &policy, inside, &la);
        net_hand(t, &b, rows[row].c, rows[row].y, &lb);
        CHECK_EQ(la.bytes, 4 * s.steps);
        CHECK_EQ(lb.bytes, 4 * s.steps);
        CHECK_BITS(la.data, lb.data, la.bytes / 4, 4);
        for (k = 0; k < 2 * s.layers; k++)
            same_bits(t, amp_param_model(a.p, k), amp_param_model(b.p, k), amp_param_model(a.p, k).count);
        CHECK_F32(t_scale(a.sc), t_scale(b.sc));
        if (!t_slow(t) && !s.glorot && rows[row].scale < 70000.0f) { /* it learns */
            float first, last;
            memcpy(&first, la.data, 4);
            memcpy(&last, la.data + la.bytes - 4, 4);
            CHECK(last < 0.8f * first);
        }
        free(la.data);
        free(lb.data);
        net_free(&a);
        net_free(&b);
        t_clear(t);
    }
    finish(t);
}
static void scope_digits(t_run *t) {
    static const shape s = {"plain", 3, 64, 32, 12, AMP_RELU, 0};
    digits_levels(t, &s);
}
static void scope_digits_deep(t_run *t) {
    static const shape s = {"deep", 8, 64, 32, 3, AMP_GELU, 1};
    digits_levels(t, &s);
}

/* ---- captures: a backend that says it captures ----------------------------------------------------------------- */

static uint64_t fake_capture;
static void fake_destroy(amp_ctx *c) { (void)c; }
static amp_status fake_alloc(amp_ctx *c, void **out, size_t bytes) {
    *out = malloc(bytes);
    return *out ? AMP_OK : amp_fail(c, AMP_ERR_NO_MEMORY, "fake");
}
static void fake_release(amp_ctx *c, void *p, size_t bytes) {
    (void)c;
    (void)bytes;
    free(p);
}
static amp_status fake_copy(amp_ctx *c, void *d, const void *s, size_t n) {
    (void)c;
    memmove(d, s, n);
    return AMP_OK;
}
static amp_status fake_zero(amp_ctx *c, void *d, size_t n) {
    (void)c;
    memset(d, 0, n);
    return AMP_OK;
}
static amp_status fake_sync(amp_ctx *c) {
    (void)c;
    return AMP_OK;
}
static amp_status fake_wait(amp_ctx *c) { return fake_capture ? amp_fail(c, AMP_ERR_CAPTURE, "capturing") : AMP_OK; }
static uint64_t fake_id(amp_ctx *c) {
    (void)c;
    return fake_capture;
}
static amp_status fake_cast(amp_ctx *c, amp_array d, amp_array s, size_t n, const amp_cast_desc *o) {
    size_t i;
    (void)c;
    (void)o;
    for (i = 0; i < n; i++)
        amp_store(d.data, d.dtype, i, amp_load(s.data, s.dtype, i));
    return AMP_OK;
}

/* A layer as in GPT-2 in a scope of defaults: the first step fits its arena, the second one makes it exact, and
   from then on nothing is allocated. The bits are those of a fixed arena that is large enough. */
enum { G_ROWS = 2, G_IN = 768, G_OUT = 3072 };
static void gpt_step(t_run *t, const amp_autocast_desc *scope, const amp_linear_desc *l, t_blob *b) {
    CHECK_OK(amp_autocast_begin(t->ctx, scope));
    CHECK_OK(amp_linear_forward(t->ctx, l));
    CHECK_OK(amp_linear_backward(t->ctx, l));
    CHECK_OK(amp_autocast_end(t->ctx));
    t_blob_dev(t, b, l->y.data, 4 * G_ROWS * G_OUT);
    t_blob_dev(t, b, l->dx.data, 4 * G_ROWS * G_IN);
    t_blob_dev(t, b, l->dw.data, 4 * G_OUT * G_IN);
}
static amp_array gpt_array(t_run *t, size_t n) {
    float *x = (float *)t_host(t, 4 * n);
    size_t i;
    for (i = 0; i < n; i++)
        x[i] = (float)((i * 7919u) % 1009u) / 1009.0f - 0.5f;
    return amp_arrn(t_put(t, x, 4 * n), AMP_F32, n);
}
static void scope_fits_itself(t_run *t) {
    amp_linear_desc l = AMP_ZERO;
    amp_precision record = AMP_ZERO;
    amp_autocast_desc fixed = AMP_ZERO;
    t_blob want = AMP_ZERO, got = AMP_ZERO;
    size_t need, step;
    l.rows = G_ROWS;
    l.in = G_IN;
    l.out = G_OUT;
    l.x = gpt_array(t, G_ROWS * G_IN);
    l.w = gpt_array(t, G_OUT * G_IN);
    l.y = gpt_array(t, G_ROWS * G_OUT);
    l.dy = gpt_array(t, G_ROWS * G_OUT);
    l.dx = gpt_array(t, G_ROWS * G_IN);
    l.dw = gpt_array(t, G_OUT * G_IN);
    l.record = &record;
    fixed.arena = (size_t)16 << 20;
    gpt_step(t, &fixed, &l, &want);
    need = amp_autocast_get(t->ctx).peak;
    CHECK(need > AMP_AUTOCAST_SPARE && need < fixed.arena);
    CHECK_OK(amp_autocast_release(t->ctx));
    fixed.arena = need - 256;
    CHECK_OK(amp_autocast_begin(t->ctx, &fixed)); /* a fixed arena does not grow */
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_NO_MEMORY, "amp_linear_backward arena grows");
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    fixed.arena = need; /* .peak is what is needed */
    got.bytes = 0;
    gpt_step(t, &fixed, &l, &got);
    CHECK_BITS(got.data, want.data, want.bytes, 1);
    CHECK_OK(amp_autocast_release(t->ctx));
    for (step = 0; step < 3; step++) {
        unsigned long before;
        size_t arena;
        t_note(t, "step %lu", (unsigned long)step);
        got.bytes = 0;
        before = t_allocations();
        gpt_step(t, NULL, &l, &got);
        if (step == 2) CHECK_EQ(t_allocations() - before, 0); /* of the host, either */
        CHECK_BITS(got.data, want.data, want.bytes, 1);
        CHECK_EQ(amp_autocast_get(t->ctx).peak, need);
        arena = amp_autocast_get(t->ctx).arena;
        if (step == 0)
            CHECK(arena >= need); /* so that a capture may begin its scope now */
        else
            CHECK_EQ(arena, need);
        if (step > 0) CHECK_EQ(t_ledger(t->ctx, "autocast").bytes, need);
    }
    finish(t);
    free(want.data);
    free(got.data);
}

/* Copies of different regions and calls, cached and not, across growth: none is lost. */
static void scope_keeps_copies(t_run *t) {
    enum { N = 200000, REGIONS = 6 };
    amp_array x[REGIONS], out[REGIONS], kept, w = gpt_array(t, N);
    size_t i, k;
    w.flags = AMP_CACHE;
    for (i = 0; i < REGIONS; i++)
        x[i] = gpt_array(t, N - i);
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    CHECK_OK(input(t, &kept, AMP_OP_MATMUL, w, N));
    for (i = 0; i < REGIONS; i++) {
        CHECK_OK(amp_autocast_begin(t->ctx, NULL));
        CHECK_OK(input(t, &out[i], AMP_OP_MATMUL, x[i], N - i));
        for (k = 0; k <= i; k++) {
            amp_f16 *half = (amp_f16 *)set_bits(t, amp_arr(out[k].data, AMP_F16), N - k);
            size_t bad = 0, e;
            for (e = 0; e < N - k; e++)
                bad += half[e].bits != amp_f16_from_f32((float)((e * 7919u) % 1009u) / 1009.0f - 0.5f).bits;
            CHECK_EQ(bad, 0);
        }
    }
    CHECK_OK(input(t, &out[0], AMP_OP_MATMUL, w, N));
    CHECK(out[0].data == kept.data); /* a hit, in an arena that was outgrown */
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    CHECK_OK(input(t, &out[0], AMP_OP_MATMUL, x[0], 100));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(input(t, &out[1], AMP_OP_MATMUL, x[1], 100));
    CHECK(out[1].data == out[0].data); /* a region's end in the arena that came last gives back its own room alone */
    CHECK_EQ(amp_autocast_get(t->ctx).used, amp_autocast_get(t->ctx).peak);
    for (i = 0; i < REGIONS; i++)
        CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_EQ(amp_autocast_get(t->ctx).used, ((size_t)N * 2 + 255) / 256 * 256);
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    CHECK_EQ(t_ledger(t->ctx, "autocast").bytes, 0);
}

static void scope_capture(t_run *t) {
    amp_backend b = AMP_ZERO;
    float w[64] = {0};
    amp_array a = amp_arr(w, AMP_F32), eager, graph, out;
    amp_autocast_desc s = AMP_ZERO;
    b.version = AMP_VERSION;
    b.size = sizeof b;
    b.name = "fake";
    b.destroy = fake_destroy;
    b.alloc = fake_alloc;
    b.release = fake_release;
    b.copy = fake_copy;
    b.copy_async = fake_copy;
    b.zero = fake_zero;
    b.sync = fake_sync;
    b.may_wait = fake_wait;
    b.cast = fake_cast;
    b.capture_id = fake_id;
    fake_capture = 0;
    a.flags = AMP_CACHE;
    CHECK_OK(amp_ctx_create_backend(&t->ctx, &b, NULL, NULL, NULL));
    s.arena = 1024;
    fake_capture = 5;
    CHECK_STATUS(amp_autocast_begin(t->ctx, &s), AMP_ERR_CAPTURE, "captur"); /* it would have to allocate */
    CHECK_EQ(amp_autocast_get(t->ctx).depth, 0);
    fake_capture = 0;
    CHECK_OK(amp_autocast_begin(t->ctx, &s));
    CHECK_OK(input(t, &eager, AMP_OP_MM, a, 64));
    INFO(1, 0, 0);
    fake_capture = 7; /* a capture begins inside the scope: casts from outside are no hits */
    CHECK_OK(input(t, &graph, AMP_OP_MM, a, 64));
    INFO(2, 0, 0);
    CHECK(graph.data != eager.data);
    CHECK_OK(input(t, &out, AMP_OP_MM, a, 64));
    INFO(2, 1, 0);
    CHECK(out.data == graph.data);
    fake_capture = 0; /* nor casts of the capture outside it */
    CHECK_OK(input(t, &out, AMP_OP_MM, a, 64));
    INFO(2, 2, 0);
    CHECK(out.data == eager.data);
    fake_capture = 8;
    CHECK_OK(input(t, &out, AMP_OP_MM, a, 64));
    INFO(3, 2, 0);
    CHECK(out.data != graph.data && out.data != eager.data);
    fake_capture = 0;
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_EQ(t_ledger(t->ctx, "autocast").bytes, 1024);
    CHECK_OK(amp_autocast_begin(t->ctx, &s)); /* graphs own the old arena: a new one for eager work */
    CHECK_EQ(t_ledger(t->ctx, "autocast").bytes, 2048);
    CHECK_OK(input(t, &out, AMP_OP_MM, a, 64));
    CHECK(out.data != graph.data && out.data != eager.data);
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_begin(t->ctx, &s));
    CHECK_EQ(t_ledger(t->ctx, "autocast").bytes, 2048);
    CHECK_OK(amp_autocast_end(t->ctx));
    fake_capture = 9; /* begin and end inside a capture, with the arena that is there */
    CHECK_OK(amp_autocast_begin(t->ctx, &s));
    CHECK_OK(input(t, &out, AMP_OP_MM, a, 64));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_STATUS(amp_autocast_release(t->ctx), AMP_ERR_CAPTURE, "captur");
    fake_capture = 0;
    CHECK_OK(amp_autocast_release(t->ctx));
    s.arena = 0; /* one that fits itself: not in a capture, which is told the need; after a step it has room there */
    a = amp_arr(t_host(t, 4000000), AMP_F32);
    CHECK_OK(amp_autocast_begin(t->ctx, &s));
    fake_capture = 10;
    CHECK_STATUS(input(t, &out, AMP_OP_MM, a, 1000000), AMP_ERR_NO_MEMORY, "captured 2000128 step");
    fake_capture = 0;
    CHECK_OK(input(t, &out, AMP_OP_MM, a, 1000000));
    CHECK_OK(amp_autocast_end(t->ctx));
    fake_capture = 11;
    CHECK_OK(amp_autocast_begin(t->ctx, &s));
    CHECK_OK(input(t, &out, AMP_OP_MM, a, 1000000));
    CHECK_OK(amp_autocast_end(t->ctx));
    s.arena = 1u << 30;
    CHECK_STATUS(amp_autocast_begin(t->ctx, &s), AMP_ERR_CAPTURE, "1073741824 captured step");
    fake_capture = 0;
    CHECK_OK(amp_autocast_release(t->ctx));
    CHECK_EQ(t_ledger(t->ctx, "autocast").bytes, 0);
    amp_ctx_destroy(t->ctx);
    t->ctx = NULL;
}

/* A product that a policy calls "widest": an FP32 operand makes the other one FP32. Outside a region they do not fit */
static void scope_widest_product(t_run *t) {
    static const float b[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    static const uint16_t one[4] = {0x3c00, 0, 0, 0x3c00};
    amp_policy policy;
    amp_autocast_desc s = AMP_ZERO;
    amp_gemm_desc g = AMP_ZERO;
    float d[4] = {0};
    CHECK_OK(amp_policy_init(t->ctx, &policy, AMP_O1, NULL));
    CHECK_OK(amp_policy_edit(t->ctx, &policy, AMP_OP_MATMUL, AMP_CLASS_WIDEST));
    s.policy = &policy;
    s.arena = 4096;
    g.m = g.n = g.k = 2;
    g.a = amp_arr(t_put(t, one, sizeof one), AMP_F16);
    g.b = amp_arr(t_put(t, b, sizeof b), AMP_F32);
    g.d = amp_arr(t_put(t, d, sizeof d), AMP_F32);
    CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_UNSUPPORTED, "dtype");
    CHECK_OK(amp_autocast_begin(t->ctx, &s));
    CHECK_OK(amp_gemm(t->ctx, &g));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    t_get(t, d, g.d.data, sizeof d);
    CHECK_BITS(d, b, 4, 4);
}

/* A verb writes one number in the middle of a cached weight: the next product reads it. `to` and `three` are one float,
   in context memory; spare has room for the outputs that are not looked at. */
typedef struct written { void *to, *three, *spare; } written;
static amp_status write_by_layer(t_run *t, const written *w, int how) {
    const amp_array to = amp_arr(w->to, AMP_F32), three = amp_arr(w->three, AMP_F32);
    const amp_array spare = amp_arr(w->spare, AMP_F32);
    amp_gemm_desc g = AMP_ZERO;
    amp_linear_desc l = AMP_ZERO;
    amp_xent_desc x = AMP_ZERO;
    const int32_t label = 0;
    g.m = g.n = g.k = 1;
    g.a = g.b = three;
    g.d = how == 0 ? to : spare;
    if (how == 1) {
        g.act = AMP_GELU;
        g.aux = to;
    }
    if (how == 2) g.dbias = to;
    if (how < 3) return amp_gemm(t->ctx, &g);
    l.rows = l.in = l.out = 1;
    l.x = l.w = three;
    l.dy = how == 3 ? to : three;
    l.y = spare; /* 0: ReLU's backward writes 0 */
    if (how == 3) l.act = AMP_RELU;
    if (how == 4) l.dw = to;
    if (how == 5) l.dbias = to;
    if (how == 6) l.dx = to;
    l.accumulate = 1;
    if (how < 7) return amp_linear_backward(t->ctx, &l);
    x.rows = x.classes = 1; /* one class: loss and gradient are 0 */
    x.logits = three;
    x.labels = (const int32_t *)t_put(t, &label, 4);
    x.row_loss = (float *)(how == 8 ? w->to : w->spare);
    if (how == 7) x.dlogits = to;
    if (how == 9) x.loss = (float *)w->to;
    return amp_softmax_cross_entropy(t->ctx, &x);
}
static amp_status write_grads(t_run *t, const written *w, int clip) {
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc d = AMP_ZERO;
    amp_params *p = NULL;
    amp_status st;
    pd.model = AMP_F32;
    d.count = 1;
    d.grad = amp_arr(w->to, AMP_F32);
    CHECK_OK(amp_params_create(&p, t->ctx, &pd));
    CHECK_OK(amp_params_add(p, &d));
    CHECK_OK(amp_params_commit(p));
    st = clip ? amp_clip(p, NULL, 0, 0.5f) : amp_params_zero_grad(p);
    amp_params_destroy(p);
    return st;
}
static amp_status write_one(t_run *t, const written *w, int how) {
    const amp_array to = amp_arrn(w->to, AMP_F32, 1), three = amp_arrn(w->three, AMP_F32, 1);
    amp_dropout_desc dropout = AMP_ZERO;
    amp_activation_desc act = AMP_ZERO;
    amp_scaler *s = NULL;
    amp_status st;
    if (how >= 9 && how < 19) return write_by_layer(t, w, how - 9);
    if (how == 7 || how == 8) return write_grads(t, w, how - 7);
    if (how == 0) return amp_zero(t->ctx, w->to, 4);
    if (how == 1) return amp_copy(t->ctx, w->to, w->three, 4);
    if (how == 2) return amp_copy_async(t->ctx, w->to, w->three, 4);
    if (how == 3) return amp_cast(t->ctx, to, three, 1, NULL);
    dropout.count = act.count = 1;
    dropout.x = act.x = three;
    dropout.y = act.y = to;
    act.act = AMP_GELU;
    if (how == 4) return amp_dropout(t->ctx, &dropout);
    if (how == 5) return amp_activation(t->ctx, &act);
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    st = how == 6 ? amp_unscale(s, &to, NULL, &three, 1) : amp_unscale(s, NULL, NULL, &to, 1);
    amp_scaler_destroy(s);
    return st;
}
static float product_with(t_run *t, amp_array w, uint32_t flags) { /* 1 x 4 times 4 x 1 */
    const float x[4] = {1, 2, 4, 8};
    float y = 0;
    amp_gemm_desc d = AMP_ZERO;
    d.m = d.n = 1;
    d.k = 4;
    d.a = amp_arr(t_put(t, x, 16), AMP_F32);
    d.b = w;
    d.b.flags = flags;
    d.d = amp_arr(t_alloc(t, 4), AMP_F32);
    CHECK_OK(amp_gemm(t->ctx, &d));
    t_get(t, &y, d.d.data, 4);
    return y;
}
static void written_in_a_scope(t_run *t) {
    const float ones[4] = {1, 1, 1, 1}, three = 3, zero = 0;
    int how;
    for (how = 0; how < 20; how++) {
        amp_array w = amp_arrn(t_put(t, ones, 16), AMP_F32, 4);
        written x;
        float before, after, plain;
        uint64_t casts;
        t_note(t, "way %d", how);
        x.to = (float *)w.data + 1;
        x.three = t_put(t, &three, 4);
        x.spare = t_put(t, &zero, 4);
        CHECK_OK(amp_autocast_begin(t->ctx, NULL));
        before = product_with(t, w, AMP_CACHE);
        casts = amp_autocast_get(t->ctx).hits;
        CHECK_F32(product_with(t, w, AMP_CACHE), before);
        CHECK_EQ(amp_autocast_get(t->ctx).hits, casts + 1); /* what was written to other memory dropped nothing */
        CHECK_OK(write_one(t, &x, how));
        after = product_with(t, w, AMP_CACHE);
        plain = product_with(t, w, 0);
        CHECK(after == plain && after != before);
        CHECK_OK(amp_autocast_end(t->ctx));
        t_clear(t);
    }
    CHECK_OK(amp_autocast_release(t->ctx));
}
static void freed_in_a_scope(t_run *t) { /* memory that comes back at the same address is not the same weight */
    const float values[2][4] = {{1, 1, 1, 1}, {3, 3, 3, 3}};
    void *p = NULL;
    int i;
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    for (i = 0; i < 2; i++) {
        amp_array w;
        CHECK_OK(amp_alloc(t->ctx, &p, 16, NULL));
        w = amp_arrn(p, AMP_F32, 4);
        memcpy(p, values[i], 16); /* as a program's own code writes it */
        CHECK_F32(product_with(t, w, AMP_CACHE), i ? 45.0f : 15.0f);
        CHECK_OK(amp_free(t->ctx, p));
    }
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
}

const t_test t_suite_policy[] = {{"autocast.written_in_a_scope", written_in_a_scope, T_ALL},
    {"autocast.freed_in_a_scope", freed_in_a_scope, T_CPU}, {"policy_lists", policy_lists, T_HOST},
    {"policy_names", policy_names, T_HOST}, {"policy_levels", policy_levels, T_ALL},
    {"policy_property_names", policy_property_names, T_CPU}, {"policy_set_twice", policy_set_twice, T_CPU},
    {"policy_overrides", policy_overrides, T_CPU}, {"policy_edits", policy_edits, T_HOST},
    {"scope_cache", scope_cache, T_ALL}, {"scope_params", scope_params, T_ALL}, {"scope_errors", scope_errors, T_ALL},
    {"scope_widest_product", scope_widest_product, T_ALL}, {"scope_verbs", scope_verbs, T_ALL},
    {"scope_digits", scope_digits, T_ALL}, {"scope_digits_deep", scope_digits_deep, T_ALL},
    {"scope_capture", scope_capture, T_HOST}, {"scope_fits_itself", scope_fits_itself, T_ALL},
    {"scope_keeps_copies", scope_keeps_copies, T_ALL}, {NULL, NULL, 0}};
