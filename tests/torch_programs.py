#!/usr/bin/env python3
"""torch_programs.py gpt|convnet|muon PROGRAM - what tests/torch_gpt.c, torch_convnet.c and torch_muon.c write, beside PyTorch.

gpt, convnet: loss and gradients of examples/gpt.c's small network and of examples/convnet.c's, beside autograd's in double. muon: 100 steps of docs/recipes.md's Muon, beside
torch.optim.Muon and the same in double. A line for each comparison; last line: N passed, N failed, N skipped."""
import array
import subprocess
import sys

import torch
import torch.nn.functional as F

counts = [0, 0, 0]


def verdict(good, text):
    counts[0 if good else 1] += 1
    print(text, "ok" if good else "FAILED")


class Reader:
    def __init__(self, program):
        self.data = subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout
        self.at = 0

    def more(self):
        return self.at < len(self.data)

    def fields(self):
        end = self.data.index(b"\n", self.at)
        line = self.data[self.at:end].decode()
        self.at = end + 1
        return line.split(",")

    def numbers(self, kind, n):
        a = array.array(kind)
        a.frombytes(self.data[self.at:self.at + 4 * n])
        self.at += 4 * n
        return torch.tensor(a)


def gpt_loss(w, tokens, labels, layers, heads, width, tied):
    """The network as GPT-2 defines it, of PyTorch's own layers."""
    batch, context = tokens.shape
    x = w["wte"][tokens] + w["wpe"]

    def norm(x, name):
        return F.layer_norm(x, (width,), w[name + ".gain"].flatten(), w[name + ".bias"].flatten(), 1e-5)

    def linear(x, name):
        return F.linear(x, w[name + ".weight"], w[name + ".bias"].flatten())

    for i in range(layers):
        q, k, v = (part.view(batch, context, heads, width // heads).transpose(1, 2) for part in linear(norm(x, f"{i}.n1"), f"{i}.qkv").chunk(3, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(y.transpose(1, 2).reshape(batch, context, width), f"{i}.proj")
        x = x + linear(F.gelu(linear(norm(x, f"{i}.n2"), f"{i}.up"), approximate="tanh"), f"{i}.down")
    logits = F.linear(norm(x, "n"), w["wte" if tied else "head"])
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def gpt(read):
    while read.more():
        mode, *fields = read.fields()
        tied, layers, heads, width, context, batch, vocab = (int(f) for f in fields[:7])
        loss, n = float(fields[7]), int(fields[8])
        tokens, labels = (read.numbers("i", batch * context).long().view(batch, context) for _ in range(2))
        weights, gradients = {}, {}
        for _ in range(n):
            name, rows, cols = read.fields()
            shape = (int(rows), int(cols))
            weights[name] = torch.nn.Parameter(read.numbers("f", shape[0] * shape[1]).view(shape).double())
            gradients[name] = read.numbers("f", shape[0] * shape[1]).view(shape).double()
        exact = gpt_loss(weights, tokens, labels, layers, heads, width, tied)
        exact.backward()
        exact = float(exact.detach())
        errors = {name: float((gradients[name] - p.grad).norm() / p.grad.norm()) for name, p in weights.items()}
        worst = max(errors, key=errors.get)
        bound = 2e-5 if mode == "fp32" else 2e-2
        good = errors[worst] < bound and abs(loss / exact - 1) < bound
        verdict(good, f"gpt, {mode}, {'tied' if tied else 'own'} head: loss {loss:.6f}, PyTorch's in double {exact:.6f}; "
                f"gradients of {n} parameters differ by {errors[worst]:.1e} at most ({worst}), bound {bound:.0e}")


def convnet_loss(w, x, labels):
    """Three times convolution, batch norm, ReLU; pooling after the second and third; a linear layer of pixels, then channels."""
    x = x.unsqueeze(1)
    for i in range(3):
        weight, gain, bias = w[3 * i:3 * i + 3]
        x = F.conv2d(x, weight.view(len(gain), 3, 3, -1).permute(0, 3, 1, 2), padding=1)
        x = F.relu(F.batch_norm(x, None, None, gain, bias, training=True, eps=1e-5))
        x = F.max_pool2d(x, 2) if i else x
    return F.cross_entropy(F.linear(x.permute(0, 2, 3, 1).flatten(1), w[9].view(10, -1), w[10]), labels)


def convnet(read):
    while read.more():
        mode, *fields = read.fields()
        batch, height, width = (int(f) for f in fields[:3])
        loss, n = float(fields[3]), int(fields[4])
        x = read.numbers("f", batch * height * width).view(batch, height, width).double()
        labels = read.numbers("i", batch).long()
        weights, gradients = [], []
        for _ in range(n):
            count = int(read.fields()[0])
            weights.append(torch.nn.Parameter(read.numbers("f", count).double()))
            gradients.append(read.numbers("f", count).double())
        exact = convnet_loss(weights, x, labels)
        exact.backward()
        exact = float(exact.detach())
        errors = [float((g - p.grad).norm() / p.grad.norm()) for g, p in zip(gradients, weights)]
        # In 16 bits pooling now and then takes the other one of two nearly equal elements: what is behind it (9 and 10, the linear layer, and
        # 7 and 8, which add up all places) agrees to the format's precision, what is before it as far as that goes.
        exact_ones, bound = {"fp32": (2e-5, 2e-5), "fp16": (2e-2, 8e-2), "bf16": (8e-2, 3e-1)}[mode]
        verdict(max(errors) < bound and max(errors[7:]) < exact_ones and abs(loss / exact - 1) < exact_ones, f"convnet, {mode}: loss {loss:.6f}, PyTorch's in double {exact:.6f}; "
                f"gradients of {n} parameters differ by {max(errors):.1e} at most, bound {bound:.0e}; of those after pooling by {max(errors[7:]):.1e}")


def muon_in_double(w, gradients, lr, decay):
    """What torch.optim.Muon does, without BF16."""
    momentum = torch.zeros_like(w)
    for g in gradients:
        momentum = 0.95 * momentum + g
        x = 0.95 * momentum + g
        x = x / x.norm()
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        w = w * (1 - lr * decay) - lr * x
    return w


def muon(read):
    rows, cols, steps = (int(f) for f in read.fields())
    numbers = [read.numbers("f", rows * cols).view(rows, cols) for _ in range(steps + 2)]
    before, gradients, after = numbers[0], numbers[1:-1], numbers[-1]
    if not hasattr(torch.optim, "Muon"):
        counts[2] += 1
        print(f"skipped: PyTorch {torch.__version__} has no torch.optim.Muon")
        return
    lr, decay = 0.02, 0.01
    w = torch.nn.Parameter(before.clone())
    optimizer = torch.optim.Muon([w], lr=lr, weight_decay=decay, momentum=0.95, nesterov=True)
    for g in gradients:
        w.grad = g.clone()
        optimizer.step()
    exact = muon_in_double(before.double(), [g.double() for g in gradients], lr, decay)
    moved = float((exact - before).norm())
    ours, theirs, between = (float((a.detach().double() - b).norm()) / moved for a, b in ((after, exact), (w, exact), (after, w.detach().double())))
    # Both round to BF16 (2^-9) in each of 15 products a step; the errors of steps are independent of each other.
    verdict(between < 0.02 and ours < 2 * theirs + 1e-3, f"Muon, {steps} steps: weights moved by {moved:.2f}; amp and torch.optim.Muon differ by {between:.1e} of that, "
            f"from double by {ours:.1e} and {theirs:.1e}")


def main():
    {"gpt": gpt, "convnet": convnet, "muon": muon}[sys.argv[1]](Reader(sys.argv[2]))
    print("{} passed, {} failed, {} skipped".format(*counts))
    return counts[1] != 0 or not any(counts)


sys.exit(main())
