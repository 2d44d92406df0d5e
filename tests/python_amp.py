"""What bindings/python promises: PYTHONPATH=build/python python3 tests/python_amp.py [SIZES]

SIZES: what the program of tools/python_bindings.py --sizes prints. Last line: N passed, N failed, N skipped.
"""
import ctypes as C
import copy
import gc
import itertools
import os
import pickle
import re
import subprocess
import sys

import numpy as np

import amp
from amp import _amp as c

passed = failed = 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAIL", what)


def refused(call, what, kind=amp.Error):
    try:
        call()
    except kind as e:
        check(len(str(e)) > 10, what)
    else:
        check(False, what)


def layouts(path):
    """Each struct and each field lies where the C compiler has it."""
    for line in open(path, encoding="utf-8"):
        name, value, *fields = line.split()
        if name.startswith("AMP_"):
            check(not fields and getattr(c, name) == int(value), line)
            continue
        kind = getattr(c, name)
        check(C.sizeof(kind) == int(value), line)
        for field in fields:
            f, offset = field.split("=")
            check(getattr(kind, f).offset == int(offset), f"{name}.{f} at {getattr(kind, f).offset}, not {offset}")


def conversions(ctx):
    x = np.float32([0, 1, -2, 1e-8, 65504, 70000, np.nan, np.pi])
    with np.errstate(over="ignore"):
        want = x.astype(np.float16)
    got = ctx.cast(x, amp.F16)
    check(got.dtype == np.float16 and np.array_equal(got, want, equal_nan=True), "cast to float16 is numpy's")
    bits = ctx.cast(x, amp.BF16)
    check(bits.dtype == np.uint16 and bits[1] == 0x3F80, "cast to bfloat16")
    check(ctx.cast(bits, amp.F32, amp.BF16)[7] == np.float32(3.140625), "and back")
    out = np.empty(8, np.float16)
    check(ctx.cast(x, amp.F16, out=out) is out and out[1] == 1, "into an array of the caller's")
    wide = ctx.cast(np.float64([1 + 2**-11 + 2**-40, 1e300]), amp.F16)
    check(wide[0] > 1 and np.isinf(wide[1]), "from float64, rounded once")
    check(ctx.cast(np.float32([0.1]), amp.F64)[0] == float(np.float32(0.1)), "to float64, exactly")
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    check(ctx.cast(a, amp.F16).shape == (2, 3), "the shape stays")
    up = ctx.cast(np.full(4096, 1 + 2**-12, np.float32), amp.F16, stochastic=True, seed=3)
    check(0.1 < (up > 1).mean() < 0.4, "stochastic rounding: a quarter goes up")
    check(amp.array(a).data == a.ctypes.data, "no copy is made")
    refused(lambda: amp.array(a.T), "a transposed array", TypeError)
    refused(lambda: amp.array(np.zeros(3, np.int64)), "integers", TypeError)
    refused(lambda: amp.array(np.zeros(3, np.uint8), amp.F16), "bytes as float16", TypeError)
    refused(lambda: ctx.cast(x, amp.F16, out=np.empty(3, np.float16)), "an output of another size", ValueError)


def looking(ctx):
    g = np.float32([0, 1e-8, 1e-3, 1, 3])
    h = ctx.histogram(g)
    check(h.total == 5 and h.zero == 1 and h.amax == 3 and h.pow2.sum() == 4 and h.pow2[127] == 1, "histogram")
    check(h.fates(amp.F16)["lost"] > 0 and h.fates(amp.F16, 65536)["lost"] == 0, "what FP16 would lose, without and with a scale")
    check(h.suggest_scale() >= 1, "a scale is suggested")
    check(ctx.all_finite([g, g]) and not ctx.all_finite([g, np.float32([np.inf])]), "all_finite")
    check(ctx.histogram([g, g]).total == 10, "histogram of two arrays")


def training(ctx):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((64, 3)).astype(np.float32)
    y = x @ np.float32([[1.0], [-2.0], [0.5]]) + 0.25
    p = amp.Params(ctx, {"w": np.zeros((3, 1), np.float32), "b": np.zeros(1, np.float32)}, keep_f32=["b"])
    s = amp.Scaler(ctx, growth_interval=100)
    check(s.scale == 65536 and p.model("w").dtype == np.float16 and p.master("w").dtype == np.float32, "defaults")
    losses = []
    for _ in range(200):
        d = x @ p.model("w").astype(np.float32) + p.master("b") - y
        losses.append(float((d * d).mean()))
        with np.errstate(over="ignore"):
            p.grad("w")[...] = 2 * x.T @ d / len(x) * s.scale
            p.grad("b")[...] = 2 * d.mean() * s.scale
        p.step(s, optimizer=amp.SGD, lr=0.1)
    last = p.last()
    check(losses[-1] < 1e-4 < 0.1 * losses[0], f"the loss: {losses[0]} -> {losses[-1]}")
    check(np.allclose(p.master("w").ravel(), [1, -2, 0.5], atol=0.01), "the weights")
    check(last["outcome"] == "stepped" and last["steps"] + last["skipped"] == 200 and 0 < last["skipped"] < 20, f"the record: {last}")
    before = p.master("w").copy()
    p.grad("w")[0] = np.inf
    p.step(s, optimizer=amp.SGD, lr=0.1)
    check(np.array_equal(before, p.master("w")) and "skipped" in p.last()["outcome"], "an overflow changes nothing")
    refused(lambda: p.step(s, optimizer=amp.SGD, lr=0.0), "a rate of 0")
    refused(lambda: p.step(s, rate=1.0), "a field that is not there", TypeError)
    s.scale = 1024
    check(s.scale == 1024 and s.info["good"] > 100, "the scale is set")
    view = p.master("w")
    del p
    gc.collect()
    check(view[0, 0] == before[0, 0], "a view keeps its set alive")


SCRIPT = """
import gc, sys
import numpy as np, amp
ctx = amp.Context(threads=1)
p = amp.Params(ctx, {"w": np.ones(1000, np.float32)})
s = amp.Scaler(ctx)
v = p.master("w")
p.step(s, lr=0.1)
def loss(): return float((p.master("w") ** 2).sum())
"""


def ends(text, what):
    """A process of its own runs this after SCRIPT, and ends as it should; a crash would be a signal."""
    run = subprocess.run([sys.executable, "-c", SCRIPT + text], capture_output=True, text=True, env=os.environ)
    check(run.returncode == 0 and not run.stderr, f"{what}: status {run.returncode} {run.stderr[-300:]}")


def lifetimes():
    """Whatever the order in which objects are closed, dropped or collected: amp's memory is given back once, and not used afterwards."""
    ends("loss()", "an ordinary script, which leaves all to the interpreter")
    ends("ctx.me = [ctx, p, s, v]", "a cycle that the interpreter finds at its end")
    text = "".join(f"del {', '.join(order)}; gc.collect()\n" + SCRIPT for order in itertools.permutations(["ctx", "p", "s", "v"]))
    ends(text, "every order of del")
    orders = itertools.permutations(["ctx", "p", "s"])
    text = "".join(f"v = None\n{'; '.join(o + '.close()' for o in order + order[:1])}\n" + SCRIPT for order in orders)
    ends(text, "every order of close")
    text = "for k in range(24):\n    ctx.me = [x for x in [ctx, p, s, v][k % 4:]]\n    del ctx, p, s, v, loss\n    gc.collect()\n    exec(SCRIPT)\n"
    ends(f"SCRIPT = {SCRIPT!r}\n" + text, "cycles of every kind")
    ctx = amp.Context(threads=1)
    p, s = amp.Params(ctx, {"w": np.ones(10, np.float32)}), amp.Scaler(ctx)
    for o in (ctx, p, s):
        refused(lambda: copy.copy(o), "a copy", TypeError)
        refused(lambda: copy.deepcopy(o), "a deep copy", TypeError)
        refused(lambda: pickle.dumps(o), "a pickle", TypeError)
    view = p.master("w")[2:5]
    refused(p.close, "closed while a view is in use", BufferError)
    refused(ctx.close, "the context, too", BufferError)
    view[:] = 3
    check(p.master("w")[3] == 3, "and all goes on")
    del view
    ctx.close()
    ctx.close()
    p.close()
    refused(lambda: p.step(s, lr=0.1), "a step after close", ValueError)
    refused(lambda: p.master("w"), "an array after close", ValueError)
    refused(lambda: s.scale, "a scale after close", ValueError)
    refused(lambda: ctx.cast(np.zeros(3, np.float32), amp.F16), "a cast after close", ValueError)
    refused(lambda: amp.Params(ctx, {"w": np.ones(3, np.float32)}), "a set on a closed context", ValueError)
    refused(lambda: amp.Scaler(ctx, scale=-1), "a scaler on a closed context", ValueError)


def names():
    """keep_f32 and no_decay take whole names, one of them or several."""
    ctx = amp.Context(threads=1)
    weights = {n: np.ones(4, np.float32) for n in ("w", "weight", "e")}
    p = amp.Params(ctx, weights, keep_f32="weight", no_decay=["e", "w"])
    check([p.model(n).dtype.name for n in weights] == ["float16", "float32", "float16"], "keep_f32 is one name")
    refused(lambda: amp.Params(ctx, weights, keep_f32="weigh"), "a name that is not there", ValueError)
    refused(lambda: amp.Params(ctx, weights, no_decay=["w", "x"]), "of no_decay, too", ValueError)
    for n in weights:
        p.grad(n)[...] = 0
    p.step(lr=0.5, weight_decay=0.5)
    check([float(p.master(n)[0]) for n in weights] == [1, 0.75, 1], "no_decay")


def all_of_the_header(ctx):
    """Whatever amp.h declares is there, with its fields and its value."""
    text = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "amp.h"), encoding="utf-8").read()
    text = text[:text.index("==== >>impl")]
    structs = set(re.findall(r"^(?:typedef )?struct (amp_\w+) \{", text, re.M))
    check(len(structs) > 50, "structs are found")
    for name in sorted(structs):
        check(getattr(getattr(c, name, None), "_fields_", None), f"the fields of {name}")
    constants = set(re.findall(r"^# *define (AMP_[A-Z0-9_]+) +\(*(?:-?\d+u?|\(size_t\)[-\d< ]+)\)*(?: +/\*.*)?$", text, re.M))
    constants |= set(re.findall(r"\bX\((AMP_[A-Z0-9_]+),", text))
    for body in re.findall(r"^typedef enum \w+ \{(.*?)\} AMP_INT", text, re.M | re.S):
        constants |= set(re.findall(r"\b(AMP_[A-Z0-9_]+)\b(?!_LIST|\()", re.sub(r"/\*.*?\*/", "", body))) - {"AMP_X"}
    check(len(constants) > 100 and sum(n.startswith("AMP_OP_") for n in dir(c)) > 200, "constants are found")
    for name in sorted(constants):
        check(hasattr(c, name), f"the constant {name}")
    f, d = C.POINTER(c.amp_fp8)(), c.amp_fp8_desc()
    ctx.check(amp.lib.amp_fp8_create_checked(C.byref(f), ctx.handle, amp.VERSION, C.sizeof(d), C.byref(d)))
    amp.lib.amp_fp8_destroy(f)
    policy = c.amp_policy()
    ctx.check(amp.lib.amp_policy_init(ctx.handle, C.byref(policy), c.AMP_O2, None))
    check(policy.master_weights == 1 and policy.cast_model == amp.F16, "a policy of level O2")


def main():
    if len(sys.argv) > 1:
        layouts(sys.argv[1])
    check(amp.VERSION > 0, "version")
    ctx = amp.Context(threads=1)
    conversions(ctx)
    looking(ctx)
    training(ctx)
    all_of_the_header(ctx)
    names()
    lifetimes()
    ctx.close()
    ctx.close()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
