#!/usr/bin/env python3
"""torch_exchange.py RECIPE PROGRAM - a PyTorch run that goes on in amp and comes back, by the two functions of docs/coming-from.md.

PROGRAM is examples/exchange.c, whose loss is that of loss() here; then the same by bindings/python (its folder in PYTHONPATH). 30 steps of Adam,
the second 10 of them elsewhere, are the 30 steps that PyTorch takes alone. Last line: N passed, N failed, N skipped."""
import importlib.util
import os
import subprocess
import sys
import tempfile

import torch

passed = failed = skipped = 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print("ok  " if good else "FAIL", "exchange:", what)


def begin():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def target(i, p):
    k = torch.arange(p.numel()).reshape(p.shape)
    return ((7 * k + 3 * i) % 11).float() / 8 - 0.625


def steps(model, optimizer, n):
    for _ in range(n):
        optimizer.zero_grad()
        sum(((p - target(i, p)) ** 2).sum() / 2 for i, p in enumerate(model.parameters())).backward()
        optimizer.step()


def difference(a, b):
    return max(float((p - q).detach().abs().max()) for p, q in zip(a.parameters(), b.parameters()))


def in_c():
    subprocess.run([sys.argv[2], "10", "here", "there"], check=True)


def in_python():
    import amp
    ctx, n = amp.Context(threads=1), {"0.weight": (16, 8), "0.bias": (16,), "2.weight": (1, 16), "2.bias": (1,)}
    p = amp.Params(ctx, {name: torch.zeros(shape) for name, shape in n.items()}, grad=amp.F32)
    p.load("here.weights.safetensors", "weights")
    p.load("here.moments.safetensors", "moments")
    for _ in range(10):
        for i, name in enumerate(n):
            w = torch.from_dlpack(p.array(name))
            torch.from_dlpack(p.array(name, "grad"))[...] = w - target(i, w)
        p.step(None, optimizer=amp.ADAM, lr=0.01)
    p.save("there.weights.safetensors", "weights")
    p.save("there.moments.safetensors", "moments")


def dlpack():
    """What numpy cannot show: BF16 and FP8, both ways, in place."""
    import amp
    ctx = amp.Context(threads=1)
    x = torch.tensor([1.0, -2.5, 0.0078125])
    p = amp.Params(ctx, {"w": x}, model=amp.BF16)
    m = torch.from_dlpack(p.array("w", "model"))
    check(m.dtype == torch.bfloat16 and torch.equal(m, x.bfloat16()), "a BF16 model copy is a bfloat16 tensor")
    m[0] = 7
    check(p.model("w")[0] == 0x40E0, "the same memory")
    check(ctx.cast(x.bfloat16(), amp.F32).tolist() == x.tolist() and ctx.cast(x.to(torch.float8_e5m2), amp.F32).tolist() == x.tolist(), "bfloat16 and FP8 tensors are taken")
    half = torch.empty(3, dtype=torch.float16)
    ctx.cast(x, amp.F16, out=half)
    check(torch.equal(half, x.half()), "and written to")

    def outlives():
        return torch.from_dlpack(amp.Context(threads=1).empty((1 << 22,), amp.F32))
    t = outlives()
    t.fill_(3)
    check(float(t[-1]) == 3, "a tensor keeps the context whose memory it is")


def main():
    global skipped
    if not importlib.util.find_spec("safetensors"):
        print(f"skipped: exchange: {sys.executable} cannot import safetensors")
        skipped += 1
    else:
        recipe = {}
        with open(sys.argv[1], encoding="utf-8") as f:
            exec(f.read(), recipe)  # the page is ours
        alone, optimizer = begin()
        steps(alone, optimizer, 30)
        for where, go_on in (("examples/exchange.c", in_c), ("bindings/python", in_python)):
            model, optimizer = begin()
            steps(model, optimizer, 10)
            recipe["to_files"](model, optimizer, "here")
            go_on()
            other, other_optimizer = begin()
            recipe["from_files"](other, other_optimizer, "there")
            moved, step = difference(model, other), float(other_optimizer.state[next(other.parameters())]["step"])
            steps(other, other_optimizer, 10)
            error = difference(alone, other)
            check(moved > 0.01 and step == 20 and error < 1e-6, f"10 of 30 steps in {where}: {error:.1e} from PyTorch alone")
            fresh, fresh_optimizer = begin()
            recipe["from_files"](fresh, fresh_optimizer, "there")
            fresh_optimizer.state.clear()
            steps(fresh, fresh_optimizer, 10)
            check(difference(alone, fresh) > 1e-3, f"without moments: {difference(alone, fresh):.1e}")
    if importlib.util.find_spec("numpy"):
        dlpack()
    else:
        print(f"skipped: DLPack beside torch: {sys.executable} cannot import numpy")
        skipped += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0


with tempfile.TemporaryDirectory() as folder:
    sys.argv[1:] = [os.path.abspath(word) for word in sys.argv[1:]]
    os.chdir(folder)
    status = main()
sys.exit(status)
