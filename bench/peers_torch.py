#!/usr/bin/env python3
"""peers_torch.py - losses, checks and updates beside PyTorch's CPU operators, in one process and one thread; make bench-peers.

    PYTHONPATH=build/python python3 bench/peers_torch.py avx2|avx512 [ROWS]        ROWS: only rows whose name has this in it

The two take turns in each round. A ratio is the median over rounds of (PyTorch's time / ours), thread CPU time: above 1 amp is faster, then
its 10 and 90 % quantiles. Arrays are PyTorch's; what a call destroys is written again before it, which is not timed. A call of amp costs
2 us of ctypes, one of PyTorch its own way through Python."""
import ctypes as C
import os
import statistics
import sys
import time

path, only = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
if path == "avx2":  # before PyTorch looks at the processor
    os.environ.update(ATEN_CPU_CAPABILITY="avx2", ONEDNN_MAX_CPU_ISA="AVX2", MKL_ENABLE_INSTRUCTIONS="AVX2")
import amp
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
ROUNDS, LARGE = 15, 1 << 23
DTYPES = {torch.float32: amp.F32, torch.float16: amp.F16, torch.bfloat16: amp.BF16, torch.float8_e5m2: amp.F8E5M2}


class Context(amp.Context):
    """One thread on a path that is named."""

    def __init__(self, simd):
        handle, desc = C.POINTER(amp.c.amp_ctx)(), amp.c.amp_cpu_desc()
        desc.threads, desc.simd = 1, simd
        status = amp.lib.amp_cpu_create_checked(C.byref(handle), amp.VERSION, C.sizeof(desc), C.byref(desc))
        if status:
            print(f"this machine has no {path}: skipped")
            sys.exit(0)
        self._made, self.device, self.stream = amp._Made(handle, amp.lib.amp_ctx_destroy), None, None


ctx = Context({"avx2": amp.c.AMP_SIMD_AVX2, "avx512": amp.c.AMP_SIMD_AVX512}[path])


def raw(t):
    a = amp.c.amp_array()
    a.data, a.dtype, a.count = t.data_ptr(), DTYPES[t.dtype], t.numel()
    return a


def row(name, ours, theirs, before=lambda: None):
    if only not in name:
        return

    def seconds(fn, calls):
        took = 0
        for _ in range(calls):
            before()
            t = time.thread_time()
            fn()
            took += time.thread_time() - t
        return took / calls

    theirs(), ours()
    calls = max(1, int(4e-3 / seconds(ours, 3)))
    times = [(seconds(ours, calls), seconds(theirs, calls)) for _ in range(ROUNDS)]
    ratios = sorted(t / o for o, t in times)
    print("%-38s %10.1f us  torch %10.1f us %6.2f [%.2f, %.2f]" % (name, statistics.median(o for o, _ in times) * 1e6,
          statistics.median(t for _, t in times) * 1e6, statistics.median(ratios), ratios[ROUNDS // 10], ratios[-1 - ROUNDS // 10]), flush=True)


def loss(rows, classes, dtype, autocast):
    x = torch.randn(rows, classes).to(dtype).requires_grad_()
    labels, gradient = torch.randint(classes, (rows,)), torch.empty_like(x)
    value, each = torch.empty(1), torch.empty(rows)
    d = amp.c.amp_xent_desc()
    d.rows, d.classes, d.logits, d.dlogits = rows, classes, raw(x), raw(gradient)
    d.labels64 = C.cast(labels.data_ptr(), type(d.labels64))
    d.loss, d.row_loss = C.cast(value.data_ptr(), type(d.loss)), C.cast(each.data_ptr(), type(d.row_loss))

    def theirs():
        x.grad = None
        with torch.autocast("cpu", torch.float16, enabled=autocast):
            out = F.cross_entropy(x, labels)
        out.backward()

    name = "loss %d x %d %s%s" % (rows, classes, str(dtype)[6:], ", autocast" if autocast else "")
    row(name, lambda: ctx.check(amp.lib.amp_softmax_cross_entropy(ctx.handle, C.byref(d))), theirs)


def unscale(dtype):
    scaler = amp.Scaler(ctx)
    fresh = torch.randn(LARGE).to(dtype)
    g = fresh.clone()
    found, inverse, report, a = torch.zeros(1), torch.full((1,), 1 / scaler.scale), amp.c.amp_finite_report(), raw(g)

    def ours():
        ctx.check(amp.lib.amp_unscale(scaler.handle, None, C.byref(report), C.byref(a), 1))

    row("unscale %s, 8 M" % str(dtype)[6:], ours, lambda: torch._amp_foreach_non_finite_check_and_unscale_([g], found, inverse),
        lambda: g.copy_(fresh))


def parameters():
    """AdamW on FP32 weights without a scaler, and the norm of the gradients, of a set and of a torch.nn.Parameter."""
    w, g = torch.randn(LARGE), torch.randn(LARGE)
    p = amp.Params(ctx, {"w": w.numpy()}, model=amp.F32, grad=amp.F32)
    p.grad("w")[...] = g.numpy()
    theirs = torch.nn.Parameter(w)
    theirs.grad = g
    optimizer, norm = torch.optim.AdamW([theirs], lr=1e-3, weight_decay=0.01, fused=True), C.c_double()
    row("norm float32, 8 M", lambda: ctx.check(amp.lib.amp_grad_norm(p.handle, None, C.byref(norm))), lambda: torch._foreach_norm([g]))
    row("AdamW float32, 8 M, no scaler", lambda: p.step(optimizer=amp.ADAMW, lr=1e-3, weight_decay=0.01), optimizer.step)


def cast(dtype):
    x, y = torch.randn(LARGE), torch.empty(LARGE, dtype=dtype)
    row("cast float32->%s, 8 M" % str(dtype)[6:], lambda: ctx.check(amp.lib.amp_cast(ctx.handle, raw(y), raw(x), LARGE, None)), lambda: y.copy_(x))


def activation(name, count, dtype, act, theirs):
    x = torch.randn(count).to(dtype)
    y, d = torch.empty_like(x), amp.c.amp_activation_desc()
    d.act, d.count, d.x, d.y = act, count, raw(x), raw(y)
    row("%s %s, %d" % (name, str(dtype)[6:], count), lambda: ctx.check(amp.lib.amp_activation(ctx.handle, C.byref(d))), lambda: theirs(x))


def relu_gradient(count, dtype):
    y, dy = torch.relu(torch.randn(count)).to(dtype), torch.randn(count).to(dtype)
    dx, d = torch.empty_like(y), amp.c.amp_activation_desc()
    d.act, d.count, d.x, d.y, d.dy, d.dx = amp.c.AMP_RELU, count, raw(y), raw(y), raw(dy), raw(dx)
    row("ReLU gradient %s, %d" % (str(dtype)[6:], count), lambda: ctx.check(amp.lib.amp_activation(ctx.handle, C.byref(d))),
        lambda: torch.ops.aten.threshold_backward(dy, y, 0))


def column_sums(rows, cols, dtype):
    x, y = torch.randn(rows, cols).to(dtype), torch.empty(cols)
    row("column sums %d x %d %s" % (rows, cols, str(dtype)[6:]),
        lambda: ctx.check(amp.lib.amp_column_sums(ctx.handle, raw(y), raw(x), rows, cols, 0, 0)), lambda: torch.sum(x, 0))


print("%s, torch %s (%s); one thread, thread CPU time; ratio above 1: amp is faster" % (
    amp.lib.amp_ctx_name(ctx.handle).decode(), torch.__version__, torch.backends.cpu.get_cpu_capability()))
loss(4096, 10, torch.float32, False)
loss(4096, 10, torch.float16, True)
loss(512, 1000, torch.float32, False)
unscale(torch.float32)
unscale(torch.float16)
parameters()
cast(torch.float8_e5m2)
cast(torch.bfloat16)
cast(torch.float16)
for kind in (torch.float32, torch.float16):
    activation("ReLU", 1 << 16, kind, amp.c.AMP_RELU, F.relu)
    activation("ReLU", LARGE, kind, amp.c.AMP_RELU, F.relu)
    relu_gradient(1 << 16, kind)
    relu_gradient(LARGE, kind)
    activation("GELU", 1 << 16, kind, amp.c.AMP_GELU, lambda x: F.gelu(x, approximate="tanh"))
    column_sums(512, 768, kind)
    column_sums(4096, 1024, kind)
