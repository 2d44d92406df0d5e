#!/usr/bin/env python3
"""peers.py - the conversions of numpy, ml_dtypes and PyTorch, one thread, beside a copy of the same bytes by numpy. Prints GB/s; what is not
installed is skipped with a line. Products in BF16 by PyTorch are oneDNN's. With --step: PyTorch's AdamW at 32 M parameters instead, and a half
copy after it."""
import statistics
import sys
import time

import numpy as np

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
    print("ml_dtypes: not installed, skipped")
try:
    import torch
    torch.set_num_threads(1)
except ImportError:
    torch = None
    print("torch: not installed, skipped")


def seconds(fn, n):
    repeat = max(1, 2_000_000 // n)
    fn()
    rounds = []
    for _ in range(9):
        t = time.perf_counter()
        for _ in range(repeat):
            fn()
        rounds.append((time.perf_counter() - t) / repeat)
    return statistics.median(rounds)



def step(n):  # FP32 weights and gradients, then the FP16 copy that the next forward pass reads
    w = torch.nn.Parameter(torch.ones(n))
    w.grad = torch.full((n,), 1e-3)
    half = torch.empty(n, dtype=torch.float16)
    for kind in ("fused", "foreach"):
        try:
            optimizer = torch.optim.AdamW([w], lr=1e-3, weight_decay=0.01, **{kind: True})

            def both():
                optimizer.step()
                half.copy_(w.detach())

            print("  f32        torch %s AdamW (%s), then a half copy %10.3f ns/param" % (torch.__version__, kind, seconds(both, n) / n * 1e9))
        except (RuntimeError, TypeError) as e:
            print("  torch AdamW (%s): skipped, %s" % (kind, str(e).split("\n")[0]))


if "--step" in sys.argv:
    if torch:
        step(1 << 25)
    sys.exit(0)

print("%-28s %10s %10s %10s" % ("", "4096", "131072", "16777216"))
rows = {}
for n in (4096, 131072, 1 << 24):
    x = np.random.default_rng().standard_normal(n).astype(np.float32)
    h = x.astype(np.float16)
    half, wide, a, b = np.empty_like(h), np.empty_like(x), np.ones(3 * n, np.uint8), np.ones(3 * n, np.uint8)
    work = [("numpy copy of the same bytes", lambda: np.copyto(b, a), 6), ("numpy f32->f16", lambda: np.copyto(half, x, casting="same_kind"), 6), ("numpy f16->f32", lambda: np.copyto(wide, h), 6)]
    if ml_dtypes:
        e = np.empty(n, ml_dtypes.float8_e4m3fn)
        work.append(("ml_dtypes f32->f8e4m3", lambda: np.copyto(e, x, casting="unsafe"), 5))
    if torch:
        t = torch.from_numpy(x)
        th, tb = torch.empty(n, dtype=torch.float16), torch.empty(n, dtype=torch.bfloat16)
        work += [("torch f32->f16", lambda: th.copy_(t), 6), ("torch f32->bf16", lambda: tb.copy_(t), 6), ("torch f16->f32", lambda: t.copy_(th), 6)]
    for name, fn, size in work:
        rows.setdefault(name, []).append(size * n / seconds(fn, n) * 1e-9)
for name, values in rows.items():
    print("%-28s " % name + " ".join("%10.2f" % v for v in values))
if torch:
    a = torch.randn(1024, 1024).bfloat16()
    print("torch bf16 1024 x 1024 x 1024 (oneDNN: %s) %10.1f GFLOP/s" % (torch.backends.mkldnn.is_available(), 2 * 1024**3 / seconds(lambda: a @ a, 1 << 20) * 1e-9))
else:
    print("oneDNN: measured through torch, skipped")
sys.exit(0)
