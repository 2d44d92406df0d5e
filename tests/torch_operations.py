"""torch_operations.py [DEVICE...] - the PyTorch columns of docs/operations.md beside what torch.autocast does, for each operation of its
rows that can be called. cpu: BF16, executed. cuda: FP16; without a GPU PyTorch's FakeTensorMode says the dtypes, by the same dispatcher.

An outcome is two dtypes: the result's for FP32 operands, and for operands of lower precision. "lower" is (low, low); "F32" and "F32 output"
are (F32, F32), which no outcome tells apart; empty and "widest" are (F32, low); "banned" raises. A cell in parentheses is that of an
operation that is not in PyTorch's lists, and is made of others that are.
Last line: N passed, N failed, N skipped."""
import logging
import os
import re
import sys
import warnings

import torch
import torch.nn.functional as F  # noqa: F401 - in CALLS
from torch._subclasses.fake_tensor import FakeTensorMode

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'docs', 'operations.md')
SIGNATURES = {'lower': 'LL', 'F32': 'FF', 'F32 output': 'FF', '': 'FL', 'widest': 'FL', 'banned': 'banned'}

# Calls by name. x, y: [4, 4], symmetric and positive definite; v: [4]; b: [2, 4, 4]; s1, s2, s3: two images of two channels in one to three
# dimensions, k1, k2, k3 weights for them; n: labels; z: complex. What is not here is tried as torch.NAME(x), then with the module's name.
CALLS = {
    'conv1d': 'F.conv1d(s1, k1)', 'conv2d': 'F.conv2d(s2, k2)', 'conv3d': 'F.conv3d(s3, k3)', 'conv_tbc': 'torch.conv_tbc(b, b.expand(2, 4, 4), v)',
    'conv_transpose1d': 'F.conv_transpose1d(s1, k1)', 'conv_transpose2d': 'F.conv_transpose2d(s2, k2)',
    'conv_transpose3d': 'F.conv_transpose3d(s3, k3)', 'convolution': 'torch.convolution(s2, k2, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)',
    '_convolution': 'torch._convolution(s2, k2, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, False, False, False)',
    'linear': 'F.linear(x, y)', 'matmul': 'x @ y', 'mm': 'torch.mm(x, y)', 'mv': 'torch.mv(x, v)', 'bmm': 'torch.bmm(b, b)',
    'addmm': 'torch.addmm(x, x, y)', 'addmv': 'torch.addmv(v, x, v)', 'addr': 'torch.addr(x, v, v)', 'addbmm': 'torch.addbmm(x, b, b)',
    'baddbmm': 'torch.baddbmm(b, b, b)', 'ger': 'torch.ger(v, v)', 'einsum': 'torch.einsum("ij,jk->ik", x, y)',
    'chain_matmul': 'torch.chain_matmul(x, y, x)', 'linalg_multi_dot': 'torch.linalg.multi_dot([x, y, x])', 'linalg_vecdot': 'torch.linalg.vecdot(v, v)',
    '_addmm_activation': 'torch._addmm_activation(v, x, y)', 'scaled_dot_product_attention': 'F.scaled_dot_product_attention(b, b, b)',
    'lstm_cell': 'torch.lstm_cell(x, [x, x], w16, w16)[0]', 'gru_cell': 'torch.gru_cell(x, x, w12, w12)',
    'rnn_tanh_cell': 'torch.rnn_tanh_cell(x, x, y, y)', 'rnn_relu_cell': 'torch.rnn_relu_cell(x, x, y, y)', 'lstm': 'torch.lstm(b, [h, h], [w16, w16], False, 1, 0.0, False, False, False)[0]',
    'gru': 'torch.gru(b, h, [w12, w12], False, 1, 0.0, False, False, False)[0]', 'rnn_tanh': 'torch.rnn_tanh(b, h, [x, y], False, 1, 0.0, False, False, False)[0]',
    'rnn_relu': 'torch.rnn_relu(b, h, [x, y], False, 1, 0.0, False, False, False)[0]', 'prelu': 'F.prelu(x, v)', 'relu': 'torch.relu(x)', 'gelu': 'F.gelu(x)',
    'dropout': 'F.dropout(x)', 'sub': 'x - y', 'add': 'x + y', 'mul': 'x * y', 'div': 'x / y', 'add_n': None, 'bias_add': None, 'eq': None, 'equal': None,
    'ge': None, 'gt': None, 'le': None, 'lt': None, 'ne': None, 'cat': 'torch.cat([x, y])', 'stack': 'torch.stack([x, y])',
    'index_copy': 'torch.index_copy(x, 0, n, y)', 'index_put': 'torch.index_put(x, [n], v)', 'scatter_add': 'torch.scatter_add(x, 0, n[None], y)',
    'addcdiv': 'torch.addcdiv(x, x, y)', 'addcmul': 'torch.addcmul(x, x, y)', 'atan2': 'torch.atan2(x, y)', 'bilinear': 'F.bilinear(x, y, b)',
    'cross': 'torch.cross(x[:, :3], y[:, :3], dim=1)', 'dot': 'torch.dot(v, v)', 'vdot': 'torch.vdot(v, v)', 'tensordot': 'torch.tensordot(x, y, 1)',
    'grid_sampler': 'torch.grid_sampler(s2, g2, 0, 0, False)', 'grid_sampler_2d': 'torch.grid_sampler_2d(s2, g2, 0, 0, False)',
    'grid_sampler_3d': 'torch.grid_sampler_3d(s3, g3, 0, 0, False)', 'grid_sample': 'F.grid_sample(s2, g2, align_corners=False)', 'pow': 'torch.pow(x, 2.5)',
    'softplus': 'F.softplus(x)', 'logsumexp': 'torch.logsumexp(x, 0)', 'softmin': 'F.softmin(x, 0)', 'layer_norm': 'F.layer_norm(x, [4])',
    'native_layer_norm': 'torch.native_layer_norm(x, [4], None, None, 1e-5)[0]', 'group_norm': 'F.group_norm(s2, 1)', 'batch_norm': 'F.batch_norm(s2, None, None, training=True)',
    'rms_norm': 'torch.rms_norm(x, [4])', 'local_response_norm': 'F.local_response_norm(s2, 1)', 'normalize': 'F.normalize(x)',
    'frobenius_norm': 'torch.ops.aten.frobenius_norm(x, [0, 1])', 'nuclear_norm': 'torch.nuclear_norm(x)', 'renorm': 'torch.renorm(x, 2, 0, 1)', 'dist': 'torch.dist(x, y)',
    'cdist': 'torch.cdist(x, y)', 'pdist': 'F.pdist(x)', 'cosine_similarity': 'F.cosine_similarity(x, y)', 'cpu': None,
    'binary_cross_entropy': 'F.binary_cross_entropy(p, p)', 'binary_cross_entropy_with_logits': 'F.binary_cross_entropy_with_logits(x, p)',
    'cosine_embedding_loss': 'F.cosine_embedding_loss(x, y, v)', 'cross_entropy': 'F.cross_entropy(x, n)', 'cross_entropy_loss': 'torch.ops.aten.cross_entropy_loss(x, n)',
    'ctc_loss': 'F.ctc_loss(b.log_softmax(2), n[None, :2].expand(4, 2), torch.tensor([2] * 4), torch.tensor([2] * 4))',
    'hinge_embedding_loss': 'F.hinge_embedding_loss(x, y)', 'huber_loss': 'F.huber_loss(x, y)', 'kl_div': 'F.kl_div(x, p, reduction="sum")', 'l1_loss': 'F.l1_loss(x, y)',
    'margin_ranking_loss': 'F.margin_ranking_loss(v, v, v)', 'mse_loss': 'F.mse_loss(x, y)', 'multi_margin_loss': 'F.multi_margin_loss(x, n)',
    'multilabel_margin_loss': 'F.multilabel_margin_loss(x, n[None].expand(4, 4))', 'multilabel_soft_margin_loss': 'F.multilabel_soft_margin_loss(x, y)',
    'multilabel_margin_loss_forward': 'torch.ops.aten.multilabel_margin_loss_forward(x, n[None].expand(4, 4), 1)[0]', 'nll_loss': 'F.nll_loss(x, n)',
    'nll_loss2d': 'torch._C._nn.nll_loss2d(s2, torch.zeros(2, 4, 4, dtype=torch.long, device=x.device))', 'poisson_nll_loss': 'F.poisson_nll_loss(x, y)',
    'smooth_l1_loss': 'F.smooth_l1_loss(x, y)', 'soft_margin_loss': 'F.soft_margin_loss(x, y)', 'triplet_margin_loss': 'F.triplet_margin_loss(x, y, x)',
    'interpolate': 'F.interpolate(s2, scale_factor=2)', 'softmax': 'torch.softmax(x, 0)', 'log_softmax': 'torch.log_softmax(x, 0)', 'cumsum': 'torch.cumsum(x, 0)',
    'cumprod': 'torch.cumprod(x, 0)', 'norm': 'torch.norm(x)', 'linalg_vector_norm': 'torch.linalg.vector_norm(x)', 'linalg_matrix_norm': 'torch.linalg.matrix_norm(x)',
    'avg_pool3d': 'F.avg_pool3d(s3, 2)', 'max_pool3d': 'F.max_pool3d(s3, 2)', 'max_unpool2d': 'F.max_unpool2d(*F.max_pool2d(s2, 2, return_indices=True), 2)',
    'max_unpool3d': 'F.max_unpool3d(*F.max_pool3d(s3, 2, return_indices=True), 2)', 'adaptive_avg_pool3d': 'F.adaptive_avg_pool3d(s3, 2)',
    'adaptive_max_pool3d': 'F.adaptive_max_pool3d(s3, 2)', 'fractional_max_pool2d': 'F.fractional_max_pool2d(s2, 2, output_size=2)',
    'fractional_max_pool3d': 'F.fractional_max_pool3d(s3, 2, output_size=2)', 'reflection_pad1d': 'torch._C._nn.reflection_pad1d(s1, [1, 1])',
    'reflection_pad2d': 'torch._C._nn.reflection_pad2d(s2, [1, 1, 1, 1])', 'replication_pad1d': 'torch._C._nn.replication_pad1d(s1, [1, 1])',
    'replication_pad2d': 'torch._C._nn.replication_pad2d(s2, [1, 1, 1, 1])', 'replication_pad3d': 'torch._C._nn.replication_pad3d(s3, [1, 1, 1, 1, 1, 1])',
    'fake_quantize_per_tensor_affine': 'torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 255)', 'quantile': 'torch.quantile(x, 0.5)',
    'nanquantile': 'torch.nanquantile(x, 0.5)', 'polar': 'torch.polar(x, y).real', 'stft': None, 'view_as_complex': 'torch.view_as_complex(x[:, :2].contiguous()).real',
    'cholesky_solve': 'torch.cholesky_solve(x, y)', 'lu_solve': None, 'orgqr': 'torch.orgqr(x, v)', 'ormqr': 'torch.ormqr(x, v, y)', 'geqrf': 'torch.geqrf(x)[0]',
    '_lu_with_info': 'torch._lu_with_info(x)[0]', 'qr': 'torch.qr(x)[0]', 'svd': 'torch.svd(x)[0]', 'triangular_solve': 'torch.triangular_solve(x, y)[0]',
    'linalg_solve': 'torch.linalg.solve(x, y)', 'linalg_householder_product': 'torch.linalg.householder_product(x, v)', 'linalg_tensorinv': 'torch.linalg.tensorinv(x, ind=1)',
    'linalg_tensorsolve': 'torch.linalg.tensorsolve(x, v)', 'linalg_lstsq': 'torch.linalg.lstsq(x, y)[0]', 'linalg_matrix_rank': None,
}


def operands(device, dtype):
    torch.manual_seed(1)

    def t(*shape):
        return (torch.rand(*shape) * 0.5 + 0.25).to(device=device, dtype=dtype)
    x = (torch.eye(4) * 0.5 + 0.125).to(device=device, dtype=dtype)
    return dict(torch=torch, F=F, x=x, y=x.clone(), p=t(4, 4), v=t(4), b=t(2, 4, 4), h=t(1, 4, 4), w16=t(16, 4), w12=t(12, 4), s1=t(2, 2, 4), s2=t(2, 2, 4, 4),
                s3=t(2, 2, 4, 4, 4), k1=t(2, 2, 2), k2=t(2, 2, 2, 2), k3=t(2, 2, 2, 2, 2), g2=t(2, 3, 3, 2), g3=t(2, 3, 3, 3, 3),
                n=torch.arange(4, device=device))


def upsample(name):
    """torch._C._nn.upsample_*: the dimensions are the last digit or the last but one of the name."""
    m = re.match(r'_?upsample_\w+?(\d)d(_aa)?$', name)
    if not m:
        return None
    corners = '' if 'nearest' in name else ', False'
    return 'torch._C._nn.%s(s%s, [8] * %s%s)' % (name, m.group(1), m.group(1), corners)


def ways(name):
    """Texts of calls, the first that works is the one; none: not callable by itself."""
    if name in CALLS:
        return [CALLS[name]] if CALLS[name] else []
    if upsample(name):
        return [upsample(name)]
    dotted = re.sub('^(linalg|fft)_', r'\1.', name)
    return ['torch.%s(x)' % dotted]


def dtype_of(result):
    while not isinstance(result, torch.Tensor):
        result = result[0]
    if result.is_complex():
        result = torch.view_as_real(result.resolve_conj())
    return result.dtype


def outcome(name, device, low):
    """'LL', 'FF', 'FL', 'banned', or None and why it cannot be said."""
    letters, why = '', 'no call of its own'
    for text in ways(name):
        for dtype in (torch.float32, low):
            try:
                given = operands(device, dtype)
                with torch.autocast(device, low) if device == 'cpu' or torch.cuda.is_available() else Cuda(low):
                    got = dtype_of(eval(text, given))
            except Exception as error:  # of many kinds: what PyTorch does not have in a dtype, or does not have any more
                if 'unsafe to autocast' in str(error):
                    return 'banned', text
                return None, '%s: %s' % (text, str(error).split('\n')[0][:90])
            letters += {torch.float32: 'F', low: 'L'}.get(got, '?')
        return letters, text
    return None, why


class Cuda:
    """torch.autocast('cuda') switches itself off without a GPU; its two switches do not."""

    def __init__(self, dtype):
        self.dtype = dtype

    def __enter__(self):
        torch.set_autocast_enabled('cuda', True)
        torch.set_autocast_dtype('cuda', self.dtype)

    def __exit__(self, *_):
        torch.set_autocast_enabled('cuda', False)
        torch.clear_autocast_cache()


def rows():
    for line in open(PAGE, encoding='utf-8'):
        m = re.match(r'\| `(\w+)` \|([^|]*)\|([^|]*)\|([^|]*)\|', line)
        if m:
            yield m.group(1), {'cuda': m.group(3).replace('*', '').strip(), 'cpu': m.group(4).replace('*', '').strip()}


def main(devices):
    warnings.simplefilter('ignore')
    logging.disable(logging.CRITICAL)  # FakeTensorMode speaks of what it cannot do
    passed = failed = skipped = 0
    for device in devices:
        low = torch.bfloat16 if device == 'cpu' else torch.float16
        fake = device == 'cuda' and not torch.cuda.is_available()
        for name, cells in rows():
            if fake:
                with FakeTensorMode():
                    got, text = outcome(name, device, low)
            else:
                got, text = outcome(name, device, low)
            want = SIGNATURES[cells[device].strip('()')]
            if got is None:
                skipped += 1
                if os.environ.get('VERBOSE'):
                    print('%s: not called: %s: %s' % (device, name, text))
            elif got == want:
                passed += 1
            else:
                failed += 1
                print('FAIL %s: %s gives %s, the table says "%s"' % (device, text, got, cells[device]))
    if passed < 100 * len(devices):
        failed += 1
        print('FAIL only %d outcomes could be compared' % passed)
    print('torch %s: %d of %d outcomes of autocast are those of docs/operations.md, %d cannot be called here' %
          (torch.__version__, passed, passed + failed, skipped))
    print('%d passed, %d failed, 0 skipped' % (passed, failed))
    return failed != 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:] or ['cpu', 'cuda']))
