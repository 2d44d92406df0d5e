#!/usr/bin/env python3
"""torch_steps.py PROGRAM - the steps that tests/torch_steps.c took, taken by PyTorch's CPU optimizers in double.

Prints, for each rule, the largest difference of a weight after the last step, the bound that tests/test_step.c derives for it, and what
PyTorch itself loses in FP32. PyTorch has no Lion: its lines follow the paper, arXiv 2302.06675. Last line: N passed, N failed, N skipped."""
import array
import subprocess
import sys

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not importable")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr, weight_decay):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(group["lr"] * torch.sign(B1 * m + (1 - B1) * p.grad))
                m.mul_(B2_LION).add_(p.grad, alpha=1 - B2_LION)


def f32(x):
    return float(torch.tensor(x, dtype=torch.float32))


B1, B2, B2_LION, EPS = f32(0.9), f32(0.999), f32(0.99), f32(1e-8)  # amp's hyper-parameters are floats


def optimizer(name, params, lr, decay, momentum, dampening, nesterov):
    if name.startswith("SGD"):
        return torch.optim.SGD(params, lr=lr, weight_decay=decay, momentum=momentum, dampening=dampening, nesterov=bool(nesterov))
    if name.startswith("Lion"):
        return Lion(params, lr, decay)
    kind = torch.optim.AdamW if name.startswith("AdamW") else torch.optim.Adam
    return kind(params, lr=lr, betas=(B1, B2), eps=EPS, weight_decay=decay)


def run(dtype, name, before, gradients, hyper):
    """The weights after all steps, the largest weight and the largest update."""
    w = torch.nn.Parameter(before.to(dtype))
    o = optimizer(name, [w], *hyper)
    largest = weight = 0.0
    for g in gradients:
        old = w.detach().clone()
        w.grad = g.to(dtype)
        o.step()
        largest = max(largest, float((w.detach() - old).abs().max()))
        weight = max(weight, float(w.detach().abs().max()))
    return w.detach().double(), weight, largest


def main():
    out = subprocess.run([sys.argv[1]], stdout=subprocess.PIPE, check=True).stdout
    at = passed = failed = 0
    print(f"PyTorch {torch.__version__}; largest difference of a weight from PyTorch in double")
    while at < len(out):
        line = out[at:out.index(b"\n", at)]
        at += len(line) + 1
        name, *fields = line.decode().split(",")
        n, steps, hyper = int(fields[0]), int(fields[1]), [float(x) for x in fields[2:]]
        floats = array.array("f")
        floats.frombytes(out[at:at + 4 * n * (steps + 2)])
        at += 4 * n * (steps + 2)
        rows = torch.tensor(floats).reshape(steps + 2, n)
        before, gradients, after = rows[0], rows[1:-1], rows[-1].double()
        exact, weight, largest = run(torch.float64, name, before, gradients, hyper)
        single, _, _ = run(torch.float32, name, before, gradients, hyper)
        memory = 4.0
        if name.startswith("SGD"):
            memory += 3 / (1 - hyper[2])
        if name.startswith("Adam"):
            memory += 3 / (1 - B1) + 2 * min(steps, 1 / (1 - B2))
        bound = steps * 2.0**-24 * (3 * max(weight, 1.0) + memory * largest)
        error = float((after - exact).abs().max())
        good = error <= bound
        passed, failed = passed + good, failed + (not good)
        print(f"{name:24s} {steps} steps: {error:.2e}, bound {bound:.2e} {'ok' if good else 'FAILED'}; PyTorch in FP32: {float((single - exact).abs().max()):.2e}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0 or passed == 0


sys.exit(main())
