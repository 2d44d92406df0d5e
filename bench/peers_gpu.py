#!/usr/bin/env python3
"""peers_gpu.py - PyTorch's side of bench_gpu and train: eager, compiled, in a CUDA graph. They start it, and ask it for timings inside
their own rounds. A question is a line, "VERB CALLS KEY"; the answer is "ok NUMBER" or "no REASON". The first line says what this is.

    time CALLS KEY     seconds of that many calls; the first question about a KEY makes it and warms it up
    memory 0 KEY       peak bytes of GPU memory while it was made and warmed up, beyond what was there before
    forget 0           frees everything

    matmul DTYPE M N K nn|nt|tn            torch.matmul, f8e4m3: torch._scaled_mm; matmul-host: the host's time for the call alone
    linear DTYPE ROWS IN OUT eager|compiled            F.linear, GELU (tanh), and the gradients of x, w and bias
    block DTYPE ROWS IN OUT eager|compiled             linear, GELU, linear back to IN, and all gradients
    step gpt2 WIDTH BLOCKS VOCAB CONTEXT eager|foreach|graph
    step small TENSORS EVEN ODD eager|foreach|graph    gradients to FP32, GradScaler + fused AdamW, weights to FP16
    train mlp|gpt2 ROWS WIDTH LAYERS VOCAB CONTEXT MODE   whole steps of the models of train.h; MODE: fp32 tf32 amp bf16, -compiled
"""
import gc
import os
import sys
import time

answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # whatever else is printed goes to stderr


def answer(text):
    answers.write(text.replace("\n", " ") + "\n")


device = "cpu" if "cpu" in sys.argv[1:] else "cuda"
try:
    import torch
    import torch.nn.functional as F
except Exception as e:  # also one that is installed and broken
    answer("no torch: %s" % e)
    sys.exit(0)
if device == "cuda" and not torch.cuda.is_available():
    answer("no CUDA in this torch (%s)" % torch.__version__)
    sys.exit(0)

CUDA = device == "cuda"
DTYPES = {"f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
torch.manual_seed(1)


def sync():
    if CUDA:
        torch.cuda.synchronize()


def normal(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=device).to(dtype)


def compiled(fn):
    if not hasattr(torch, "compile"):
        raise RuntimeError("this torch has no torch.compile")
    return torch.compile(fn)


def graphed(fn):
    if not CUDA:
        raise RuntimeError("no CUDA graphs on a CPU")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            fn()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fn()
    return graph.replay


def adamw(params, lr, capturable=False):
    if CUDA:
        return torch.optim.AdamW(params, lr=lr, fused=True, capturable=capturable)
    return torch.optim.AdamW(params, lr=lr)


def grad_scaler():
    if not CUDA and not hasattr(torch, "amp"):
        raise RuntimeError("no GradScaler on a CPU in this torch")
    if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(device)
    if not CUDA:
        raise RuntimeError("no GradScaler on a CPU in this torch")
    return torch.cuda.amp.GradScaler()


# ---- the cases: each returns a function of no arguments ----

def matmul(dtype, m, n, k, form):
    m, n, k = int(m), int(n), int(k)
    if dtype == "f8e4m3":  # x w^T alone
        a, b = normal(m, k).to(torch.float8_e4m3fn), normal(n, k).to(torch.float8_e4m3fn).t()
        one = torch.ones((), device=device)
        return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    if CUDA:
        torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    t = DTYPES[dtype]
    a = normal(k, m, dtype=t).t() if form[0] == "t" else normal(m, k, dtype=t)
    b = normal(n, k, dtype=t).t() if form[1] == "t" else normal(k, n, dtype=t)
    return lambda: torch.matmul(a, b)


def linear(dtype, rows, n_in, n_out, how):
    rows, n_in, n_out, t = int(rows), int(n_in), int(n_out), DTYPES[dtype]
    x, w, b = normal(rows, n_in, dtype=t), (normal(n_out, n_in) / n_in ** 0.5).to(t), normal(n_out, dtype=t)
    for v in (x, w, b):
        v.requires_grad_(True)
    dy = normal(rows, n_out, dtype=t)

    def layer(x, w, b):
        return F.gelu(F.linear(x, w, b), approximate="tanh")
    if how == "compiled":
        layer = compiled(layer)
    return lambda: torch.autograd.grad(layer(x, w, b), (x, w, b), dy)


def block(dtype, rows, n_in, n_out, how):
    rows, n_in, n_out, t = int(rows), int(n_in), int(n_out), DTYPES[dtype]
    inputs = [normal(rows, n_in).to(t), (normal(n_out, n_in) / n_in ** 0.5).to(t), normal(n_out).to(t), (normal(n_in, n_out) / n_out ** 0.5).to(t), normal(n_in).to(t)]
    for v in inputs:
        v.requires_grad_(True)
    dy = normal(rows, n_in, dtype=t)

    def layers(x, w, b, w2, b2):
        return F.linear(F.gelu(F.linear(x, w, b), approximate="tanh"), w2, b2)
    if how == "compiled":
        layers = compiled(layers)
    return lambda: torch.autograd.grad(layers(*inputs), inputs, dy)


def gpt2_counts(width, blocks, vocab, context):
    block = [width, width, 3 * width * width, 3 * width, width * width, width, width, width, 4 * width * width, 4 * width, 4 * width * width, width]
    return [vocab * width, context * width] + block * blocks + [width, width]


def step(kind, *args):
    how, numbers = args[-1], [int(v) for v in args[:-1]]
    counts = gpt2_counts(*numbers) if kind == "gpt2" else [numbers[1 + i % 2] for i in range(numbers[0])]
    params = [torch.nn.Parameter(0.02 * normal(n)) for n in counts]
    grads = [0.1 * normal(n) for n in counts]
    grads = [g.half() for g in grads]
    halves = [p.detach().half() for p in params]
    for p in params:
        p.grad = torch.zeros_like(p)
    optimizer, scaler = adamw(params, 1e-4, capturable=how == "graph"), grad_scaler()
    scaler.scale(torch.zeros(1, device=device))  # makes the scale
    masters, wide = [p.detach() for p in params], [p.grad for p in params]

    def casts(to, from_):
        if how == "foreach":
            torch._foreach_copy_(to, from_)
        else:
            for a, b in zip(to, from_):
                a.copy_(b)

    def tail():
        casts(wide, grads)
        scaler.step(optimizer)
        scaler.update()
        casts(halves, masters)
    return graphed(tail) if how == "graph" else tail


class Mlp(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.gelu(layer(x), approximate="tanh")
        return self.layers[-1](x)


class Gpt2(torch.nn.Module):
    """The linear layers in their order; in place of attention the projection reads the first third of qkv."""

    def __init__(self, width, blocks, vocab, context):
        super().__init__()
        self.width = width
        shapes = ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))
        self.layers = torch.nn.ModuleList(torch.nn.Linear(i, o) for _ in range(blocks) for i, o in shapes)
        self.head = torch.nn.Linear(width, vocab, bias=False)
        self.idle = torch.nn.ParameterList(torch.nn.Parameter(torch.ones(n)) for n in [context * width] + [width] * (4 * blocks + 2))

    def forward(self, x):
        for i in range(0, len(self.layers), 4):
            x = self.layers[i + 1](self.layers[i](x)[:, :self.width])
            x = self.layers[i + 3](F.gelu(self.layers[i + 2](x), approximate="tanh"))
        return self.head(x)


def train(model, rows, width, layers, vocab, context, mode):
    rows, width, layers, vocab, context = int(rows), int(width), int(layers), int(vocab), int(context)
    net = (Gpt2(width, layers, vocab, context) if vocab else Mlp(width, layers)).to(device)
    for p in net.parameters():  # layer norms and positions have no work here, but the optimizer sees them
        p.grad = torch.zeros_like(p)
    idle = set(net.idle) if vocab else set()
    busy = [p for p in net.parameters() if p not in idle]
    x = normal(rows, width)
    labels = torch.randint(vocab or width, (rows,), device=device)
    low = {"amp": torch.float16, "bf16": torch.bfloat16}.get(mode.split("-")[0])
    optimizer = adamw(net.parameters(), 0.0)  # as ours while it is timed: the weights stay
    scaler = grad_scaler() if low is torch.float16 else None

    def loss_of(x, labels):
        return F.cross_entropy(net(x), labels)
    forward = compiled(loss_of) if mode.endswith("compiled") else loss_of

    def one():
        if CUDA:
            torch.backends.cuda.matmul.allow_tf32 = mode == "tf32"
        for p in busy:
            p.grad = None
        with torch.autocast(device, dtype=low or torch.bfloat16, enabled=low is not None):
            loss = forward(x, labels)
        if scaler:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
        return loss
    loss = float(one())
    if not loss == loss or loss in (float("inf"), float("-inf")):
        raise RuntimeError("the loss is not finite")
    return one


CASES = {"matmul": matmul, "matmul-host": matmul, "linear": linear, "block": block, "step": step, "train": train}
made = {}


def case(key):
    if key not in made:
        name, *args = key.split()
        before = torch.cuda.memory_allocated() if CUDA else 0
        if CUDA:
            torch.cuda.reset_peak_memory_stats()
        fn = CASES[name](*args)
        for _ in range(20 if CUDA and name == "train" else 3):  # the loss scale settles, too
            fn()
        sync()
        made[key] = (fn, torch.cuda.max_memory_allocated() - before if CUDA else 0)
        if name in ("matmul", "matmul-host", "linear", "block"):  # one at a time
            for other in [k for k in made if k != key and k.split()[0] == name]:
                del made[other]
    return made[key]


def seconds(key, calls):
    fn = case(key)[0]
    if CUDA and not key.startswith("matmul-host"):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(calls):
            fn()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3
    sync()
    t = time.perf_counter()
    for _ in range(calls):
        fn()
    t = time.perf_counter() - t
    sync()
    return t


answer("torch %s, %s" % (torch.__version__, torch.cuda.get_device_name(0) if CUDA else "CPU, %d threads" % torch.get_num_threads()))
for question in sys.stdin:
    words = question.split(None, 2)
    if len(words) < 2:
        continue
    verb, calls, key = words[0], int(words[1]), words[2].strip() if len(words) > 2 else ""
    try:
        if verb == "time":
            answer("ok %.9g" % seconds(key, calls))
        elif verb == "memory":
            answer("ok %d" % case(key)[1] if CUDA else "no memory is counted but on a GPU")
        else:
            made.clear()
            gc.collect()
            if CUDA:
                torch.cuda.empty_cache()
            answer("ok 0")
    except Exception as e:
        answer("no %s: %s" % (type(e).__name__, str(e)[:200]))
