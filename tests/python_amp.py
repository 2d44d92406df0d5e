"""What bindings/python promises: PYTHONPATH=build/python python3 tests/python_amp.py [SIZES]

SIZES: what the program of tools/python_bindings.py --sizes prints. Last line: N passed, N failed, N skipped.
"""
import ctypes as C
import copy
import gc
import importlib.util
import itertools
import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import weakref

import numpy as np

import amp
from amp import _amp as c

passed = failed = skipped = 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAIL", what)


def refused(call, what, kind=amp.Error, words=""):
    try:
        call()
    except kind as e:
        check(len(str(e)) > 10 and words in str(e), f"{what}: {e}")
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
    kept_by_arrays()
    dropped_elsewhere()
    ended_meanwhile()
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


KEPT = """
def used(what):
    ctx = amp.Context(threads=1)
    return what(ctx.empty((1 << 22,), amp.F32))  # so large that it is unmapped when it is freed
a = used(%s)
gc.collect()
b = np.asarray(a)
b[...] = 3
assert b[0] == b[-1] == 3
"""


def kept_by_arrays():
    """An array of a context's memory keeps the context, by whatever way it is looked at, and no longer."""
    for what in ("lambda e: e", "lambda e: e.numpy()", "np.from_dlpack", "np.asarray",
                 "lambda e: e.numpy()[1:].view(np.int32)"):
        ends(KEPT % what, f"{what} of empty() outlives its context's name")
    ends("ctx.me = [ctx, ctx.empty((9,), amp.F32), ctx.empty((9,), amp.F32).numpy()]", "memory of a context in a cycle")
    ctx = amp.Context(threads=1)
    kept, view, two = weakref.ref(ctx), ctx.empty((3,), amp.F32).numpy()[1:], ctx.empty((3,), amp.F32)
    refused(ctx.close, "a context with arrays is not closed", BufferError)
    del ctx, two
    gc.collect()
    check(kept() is not None, "a view of a view keeps the context")
    del view
    gc.collect()
    check(kept() is None, "and no longer than it lives")


def dropped_elsewhere():
    """What another thread drops while a call of this one runs is ended by the next call."""
    ctx = amp.Context(threads=1)
    total = amp.c.amp_ledger_row()
    amp.lib.amp_ledger(ctx.handle, C.byref(total), 1, None)
    before = total.bytes
    held = [amp.Params(ctx, {"w": np.ones(10, np.float32)}), ctx.empty((9,), amp.F32), amp.Scaler(ctx)]
    made = [held[0]._made, held[2]._made]
    check(amp.lib.amp_verb_begin(ctx.handle, b"amp_cast") == 0, "inside a call")
    other = threading.Thread(target=held.clear)
    other.start()
    other.join()
    check(all(m.handle for m in made), "what another thread drops meanwhile is not touched")
    amp.lib.amp_verb_end(ctx.handle, 0)
    ctx.sync()
    check(not any(m.handle for m in made), "the next call ends it")
    amp.lib.amp_ledger(ctx.handle, C.byref(total), 1, None)
    check(total.bytes == before, "and nothing of it is left")
    ctx.close()


def ended_meanwhile():
    """The garbage collector and other threads end objects between any two operations of Python's."""
    ctx = amp.Context(threads=1)
    for _ in range(9):
        s = amp.Scaler(ctx)
        s.me, s._made.used = s, lambda: gc.collect() < 0  # a cycle, and the collector runs when close() asks for uses
    del s
    try:
        ctx.close()
    except RuntimeError as e:
        check(False, f"closed while the collector ends what was made on it: {e}")
    p, others = amp.Params(amp.Context(threads=1), {"w": np.ones(10, np.float32)}), []

    def switch(frame, event, _):  # another view comes, as if in another thread, between any two operations of _Use's
        frame.f_trace_opcodes = frame.f_code.co_name in ("__init__", "__del__") and "owner" in frame.f_code.co_names
        if event == "opcode":
            others.append(p.master("w"))
        return switch
    sys.settrace(switch)
    view = p.master("w")
    sys.settrace(None)
    check(len(others) > 5, "views come in between")
    del view, others[:]
    try:
        p.close()
    except BufferError as e:
        check(False, f"views are miscounted: {e}")


def threads(folder):
    """Threads that have a context and a set each, and threads that write one file, work as if they were alone."""
    wrong, n, path = [], 1 << 18, os.path.join(folder, "written_by_all")

    def work(k):
        half = np.full(n, k, np.float16)
        try:
            ctx = amp.Context(threads=1)
            p = amp.Params(ctx, {"w": np.zeros(n, np.float32)})
            moments = {"w.exp_avg": (half, amp.F16), "w.exp_avg_sq": (half, amp.F16),
                       "w.step": (np.uint16([0x40E0]), amp.BF16)}
            for _ in range(40):
                p.load({"w": (half, amp.F16)}, "model")
                p.load(moments, "moments")
                p.write("w", by_dlpack(half))
                if p.read("w")[-1] != k or p.steps != 7:
                    wrong.append(f"{k}: values of another thread")
        except Exception as e:
            wrong.append(f"{k}: {e!r}")

    def write(k):
        try:
            for _ in range(40):
                amp.write_safetensors(path, {"w": np.full(1000 * k, k, np.float32)})
                w = amp.read_safetensors(path)["w"][0]
                if w.size != 1000 * w[0]:
                    wrong.append(f"{k}: a file of two threads")
        except Exception as e:
            wrong.append(f"{k}: {e!r}")
    for what in (work, write):
        those = [threading.Thread(target=what, args=(k,)) for k in (1, 2, 3)]
        for t in those:
            t.start()
        for t in those:
            t.join()
        check(not wrong, f"threads that {what.__name__} at the same time: {wrong[:3]}")
        wrong.clear()
    check(not [name for name in os.listdir(folder) if name.endswith(".tmp")], "no file is left over")


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


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a.view(np.uint8) if a.ndim else a, b.view(np.uint8) if b.ndim else b)


def files(folder):
    """safetensors and .npy files: what is written is read, and what is wrong is refused."""
    global skipped
    path, x = os.path.join(folder, "a.safetensors"), np.float32([[1, -2, 0.5], [448, 0, 3]])
    tensors = {"f8": (np.uint8([0x38, 0x7E]), amp.F8E4M3), "half": (x.astype(np.float16), amp.F16), "bits": (np.uint16([[0x3F80]]), amp.BF16), "x": (x, amp.F32),
               "e5m2": (np.uint8([0x3C]), amp.F8E5M2), "double": (np.float64([0.1]), amp.F64), "one": (np.float32(7), amp.F32), "none": (np.zeros((0, 3), np.float32), amp.F32),
               'gr\u00f6\u00dfe "\\': (x.T.copy(), amp.F32)}
    amp.write_safetensors(path, tensors, {"note": "of a test"})
    got = amp.read_safetensors(path)
    check({n: a for n, (_, a) in got.items()} == {n: a for n, (_, a) in tensors.items()} and all(same(got[n][0], np.asarray(a)) for n, (a, _) in tensors.items()), f"round trip: {got}")
    got["x"][0][0, 0] = 9
    amp.write_safetensors(path, {"x": x.T})
    check(same(amp.read_safetensors(path)["x"][0], np.ascontiguousarray(x.T)), "an array by columns is written by rows")
    if importlib.util.find_spec("safetensors"):
        from safetensors import deserialize
        amp.write_safetensors(path, tensors, {"note": "of a test"})
        with open(path, "rb") as f:
            theirs = {n: (t["dtype"], list(t["shape"]), bytes(t["data"])) for n, t in deserialize(f.read())}
        kinds = {amp.F64: "F64", amp.F32: "F32", amp.F16: "F16", amp.BF16: "BF16", amp.F8E4M3: "F8_E4M3", amp.F8E5M2: "F8_E5M2"}
        check(theirs == {n: (kinds[d], list(np.shape(a)), np.asarray(a).tobytes()) for n, (a, d) in tensors.items()}, f"the safetensors package reads it: {theirs}")
    else:
        skipped += 1
        print(f"skipped: python_amp: {sys.executable} cannot import safetensors")
    refused(lambda: amp.write_safetensors(path, {"x": x, "bits": np.uint16([1])}), "bits without a dtype", TypeError)
    refused(lambda: amp.write_safetensors(path, {"x": (x, amp.F16)}), "an array of another format", TypeError)
    check("x" in amp.read_safetensors(path) and os.listdir(folder) == ["a.safetensors"], "the file that was there is there still, and nothing else")

    def wrong(header, size, words):
        with open(path, "wb") as f:
            f.write(len(header).to_bytes(8, "little") + header + bytes(size))
        refused(lambda: amp.read_safetensors(path), f"{header} {size}", ValueError, words)
    a = b'"dtype":"F32","shape":[2],"data_offsets":[0,8]'
    for header, size, words in (
            (b"", 0, "Expecting"), (b"[]", 0, "braces"), (b'{"a":{' + a + b"}", 8, "delimiter"), (b'{"a":{' + a + b'},"a":{' + a + b"}}", 8, "twice"), (b'{"a":{' + a + b',"b":1}}', 8, "not dtype"),
            (b'{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}', 8, "I64"), (b'{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}', 8, "numbers"),
            (b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}}', 8, "numbers"), (b'{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}', 8, "does not fit"),
            (b'{"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}', 8, "numbers"), (b'{"a":{' + a + b"}}", 4, "does not fit"), (b'{"a":{' + a + b"}}", 9, "no tensor has"),
            (b'{"a":{' + a + b'},"b":{"dtype":"F16","shape":[1],"data_offsets":[6,8]}}', 8, "overlap"), (b"\xff", 0, "decode"), (b"[" * 100000, 0, "recursion")):
        wrong(header, size, words)
    with open(path, "wb") as f:
        f.write(b"\xff" * 12)
    refused(lambda: amp.read_safetensors(path), "a header longer than the file", ValueError, "longer")

    npy = os.path.join(folder, "a.npy")
    for a in (x, x.astype(np.float16), np.float64([0.1]), np.float32(7), x.T):
        amp.write_npy(npy, a)
        check(np.array_equal(np.load(npy), a) and same(amp.read_npy(npy), np.ascontiguousarray(a).reshape(a.shape)), f"npy of {a.dtype} {a.shape}")
    np.save(npy, x.astype(">f4"))
    check(same(amp.read_npy(npy), x), "the other byte order")
    refused(lambda: amp.write_npy(npy, np.uint16([1])), "BF16 in npy", TypeError)
    np.save(npy, np.arange(3))
    refused(lambda: amp.read_npy(npy), "integers", ValueError)
    with open(npy, "wb") as f:
        f.write(b"\x93NUMPY\1\0\xff\0{}")
    refused(lambda: amp.read_npy(npy), "a short npy", ValueError)


def continued(folder):
    """A run that goes on in another set, by files."""
    path = os.path.join(folder, "run.safetensors")
    start = {"w": np.float32([[1, 2, 3], [4, 5, 6]]), "b": np.float32([0.5])}

    def steps(p, n):
        for _ in range(n):
            for name in p.names:
                p.grad(name)[...] = (p.read(name) - 0.25).astype(p.grad(name).dtype)
            p.step(None, optimizer=amp.ADAM, lr=0.01)
    for fields in ({}, {"model": amp.BF16, "moment": amp.BF16}, {"master": c.AMP_MASTER_SPLIT}):
        ctx = amp.Context(threads=1)
        fields = {"grad": amp.F32, **fields}
        p, q, r = amp.Params(ctx, start, **fields), amp.Params(ctx, {n: 0 * a for n, a in start.items()}, **fields), amp.Params(ctx, start, **fields)
        steps(p, 5)
        p.save(path)
        p.save(path + "2", "moments")
        q.load(path)
        r.load(path)
        q.load(path + "2", "moments")
        check(q.steps == 5 and all(same(p.read(n), q.read(n)) and same(p.model(n), q.model(n)) for n in start), "weights, copies and steps are there")
        for s in (p, q, r):
            steps(s, 5)
        check(all(same(p.read(n), q.read(n)) for n in start) and not same(p.read("w"), r.read("w")), f"{fields}: the moments make the difference")
    half = {n: (np.ones_like(a, np.float16), amp.F16) for n, a in start.items()}
    p.load(half, "model")
    check(p.read("w").min() == p.read("w").max() == 1 and p.model("w").astype(np.float32).max() == 1, "from model copies")
    before = p.read("w")
    refused(lambda: p.load({"w": (start["w"] * 2, amp.F32)}), "a tensor that is missing", ValueError, "not there")
    refused(lambda: p.load({"w": (start["w"].T * 2, amp.F32), "b": (start["b"], amp.F32)}), "another shape", ValueError, "(3, 2)")
    tensors = p.tensors("moments")
    tensors["b.step"] = (np.float32(4), amp.F32)
    refused(lambda: p.load(tensors, "moments"), "steps that differ", ValueError, "[4.0, 10.0]")
    del tensors["b.step"]
    refused(lambda: p.load(tensors, "moments"), "no count of steps", ValueError, "b.step")
    check(same(before, p.read("w")), "and nothing has changed")
    all_or_nothing(start)


def ahead(p, part):
    """What a set has, and 1 more of everything."""
    return {key: (np.asarray(a) + np.float32(1), dtype) for key, (a, dtype) in p.tensors(part).items()}


def unchanged(p, what, part, wrong, kind=amp.Error, words=""):
    """Of these tensors the first could be taken; all together are refused, and nothing has changed."""
    def all_of():
        arrays = [p.array(name, kept) for name in p.names for kept in ("master", "model", "low", "moment0", "moment1")]
        return [a.numpy().copy() for a in arrays if a is not None] + [np.array(p.steps)]
    before = all_of()
    refused(lambda: p.load({**ahead(p, part), **wrong}, part), what, kind, words)
    check(all(same(a, b) for a, b in zip(before, all_of())), f"{what}: something has changed")


def all_or_nothing(start):
    """A load that is refused, for whatever tensor and at whatever moment, has changed nothing."""
    ctx = amp.Context(threads=1)
    s = amp.Scaler(ctx)
    for fields in ({}, {"master": c.AMP_MASTER_SPLIT}, {"master": c.AMP_MASTER_SPLIT8}):
        p = amp.Params(ctx, {**start, "z": np.float32([3, 4]), "last": np.float32([1])}, keep_f32="last", **fields)
        for name in p.names:
            p.grad(name)[...] = 0.5
        p.step(None, lr=0.1)
        for wrong in ((np.int32([3, 4]), amp.F32), (np.float64([3, 4]), amp.F32), (np.array([3, 4], ">f4"), amp.F32),
                      (np.float32([3, 4]), amp.BF16)):
            what = f"{fields}: {wrong[0].dtype.str} as {wrong[1]}"
            unchanged(p, what, "weights", {"z": wrong}, TypeError)
            unchanged(p, f"{what}, of moments", "moments", {"z.exp_avg": wrong}, TypeError)
        for value in (70000, np.nan) if fields else ():
            wrong = {"z": (np.float32([1, value]), amp.F32)}
            unchanged(p, f"{fields}: {value}, which it cannot hold", "weights", wrong, words="cannot hold")
        p.load({**p.tensors(), "last": (np.float32([70000]), amp.F32)})
        check(p.read("last")[0] == 70000, f"{fields}: an FP32 parameter can hold it")
        for name in p.names:
            p.grad(name)[...] = 1
        ctx.check(amp.lib.amp_scaler_unscale(s.handle, p.handle))
        unchanged(p, f"{fields}: moments in the middle of a step", "moments", {}, words="in the middle")
        p.step(s, lr=0.1)
        m = {**ahead(p, "moments"), **{f"{name}.step": (np.float32(9), amp.F32) for name in p.names}}
        p.load(m, "moments")
        got = p.tensors("moments")
        check(p.steps == 9 and all(same(np.asarray(a), m[key][0]) for key, (a, _) in got.items()), "and taken after it")


def from_torch(folder):
    """What files of PyTorch programs have: scalars, tensors that are not floats, and a momentum without a count of steps."""
    path, ctx = os.path.join(folder, "torch.safetensors"), amp.Context(threads=1)
    p = amp.Params(ctx, {"logit_scale": np.float32(2.5)}, model=amp.F32)
    check(p.read("logit_scale").shape == () and ctx.cast(np.float32(1.5), amp.F16).shape == (), "a scalar is one")
    p.save(path)
    with open(path, "rb") as f:
        length = int.from_bytes(f.read(8), "little")
        header, data = f.read(length).rstrip(), f.read()
    header = header[:-1] + b',"num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[4,12]}}'
    with open(path, "wb") as f:
        f.write(len(header).to_bytes(8, "little") + header + data + bytes(8))
    p.write("logit_scale", 0)
    p.load(path)
    check(p.read("logit_scale") == 2.5 and list(amp.read_safetensors(path, ["logit_scale"])) == ["logit_scale"], "beside a tensor that nobody wants")
    refused(lambda: amp.read_safetensors(path), "which is refused if it is wanted", ValueError, "I64")
    p.load({"logit_scale.momentum_buffer": (np.float32(2), amp.F32)}, "moments", moments=("momentum_buffer",))
    p.grad("logit_scale")[...] = 1
    p.step(None, optimizer=amp.SGD, lr=1.0, momentum=0.5)
    check(p.read("logit_scale") == 0.5 and p.steps == 2, f"SGD goes on with its momentum: {p.read('logit_scale')}")
    p.load({"logit_scale.momentum_buffer": (np.float32(2), amp.F32), "logit_scale.step": (np.uint16([0x40E0]), amp.BF16)}, "moments", moments=("momentum_buffer",))
    check(p.steps == 7, "a count in any format")
    refused(lambda: ctx.all_finite(np.array([np.inf], ">f4" if sys.byteorder == "little" else "<f4")), "bytes in the other order", TypeError, "order")
    small = amp.Params(ctx, {"w": np.zeros(300, np.float32)}, moment=c.AMP_MOMENT_8BIT)
    refused(lambda: small.save(path, "moments"), "8-bit moments", ValueError, "8 bits")


class Foreign:
    """Another library's array, which has but the attributes that are given to it."""

    def __init__(self, **attributes):
        self.__class__ = type("Foreign", (), attributes)


def by_dlpack(a, versioned=True):
    """An array that has DLPack and nothing else."""
    def give(self, **arguments):
        if not versioned and "max_version" in arguments:
            raise TypeError("an old library")
        return a.__dlpack__(**arguments)
    return Foreign(__dlpack__=give, __dlpack_device__=lambda self: a.__dlpack_device__())


def on_gpu(**other):
    return Foreign(__cuda_array_interface__={"shape": (2, 3), "typestr": "<f4", "data": (0x7F0000000100, False), "version": 3, "strides": None, **other})


def sharing():
    """DLPack and the array interfaces, both ways: nothing is copied, and it lives as long as it is used."""
    ctx = amp.Context(threads=1)
    x = np.float32([[1, -2, 0.5], [448, 0, 3]])
    for versioned in (True, False):
        f = by_dlpack(x, versioned)
        check(amp.array(f).data == x.ctypes.data and amp.array(f).count == 6, "a tensor of DLPack lies where it lay")
        check(same(ctx.cast(f, amp.F16), x.astype(np.float16)) and ctx.histogram(f).total == 6 and ctx.all_finite([f, x]), "and may stand where an array does")
        out = np.zeros((2, 3), np.float16)
        ctx.cast(f, amp.F16, out=by_dlpack(out, versioned))
        check(same(out, x.astype(np.float16)), "as an output, too")
    users = sys.getrefcount(x)
    b = amp.arrays.borrow(by_dlpack(x))
    check(sys.getrefcount(x) == users + 2 or sys.getrefcount(x) == users + 1, "what is borrowed lives")
    del b, f
    gc.collect()
    check(sys.getrefcount(x) < users, "and is given back, without the last of those above")
    check(same(ctx.cast(Foreign(__array_interface__=x.__array_interface__, keep=x), amp.F16), x.astype(np.float16)), "__array_interface__")
    check(ctx.cast(by_dlpack(np.uint16([0x3F80])), amp.F32, amp.BF16)[0] == 1, "bits by DLPack, with their dtype")
    const = x.copy()
    const.flags.writeable = False
    refused(lambda: ctx.cast(x, amp.F32, out=const), "a read-only output", TypeError, "read-only")
    refused(lambda: amp.array(by_dlpack(x[:, ::2])), "strides", TypeError, "contiguous")
    refused(lambda: amp.array(by_dlpack(x.T)), "columns", TypeError, "contiguous")
    check(amp.array(by_dlpack(x[1:, None])).data == x[1:].ctypes.data, "an offset, and an axis of 1")
    refused(lambda: amp.array(by_dlpack(np.arange(3))), "integers", TypeError, "64 bits")
    refused(lambda: amp.array(by_dlpack(x), amp.F16), "a dtype that is not its own", TypeError, "says itself")
    refused(lambda: amp.array(Foreign(__dlpack__=lambda self, **k: None, __dlpack_device__=lambda self: (1, 0))), "no capsule", BufferError, "no capsule")
    refused(lambda: amp.array("text"), "no array", TypeError, "is no array")

    b = amp.arrays.borrow(on_gpu())
    check((b.raw.data, b.raw.dtype, b.raw.count, b.shape, b.device) == (0x7F0000000100, amp.F32, 6, (2, 3), (2, None)), "__cuda_array_interface__")
    check(amp.array(on_gpu(strides=(12, 4))).count == 6 and amp.array(on_gpu(typestr="<u2"), amp.BF16).dtype == amp.BF16, "with strides of rows, with bits")
    refused(lambda: ctx.cast(on_gpu(), amp.F16), "an array on a GPU, on the CPU", ValueError, "lies on a GPU")
    refused(lambda: ctx.histogram([x, on_gpu()]), "one of two", ValueError, "lies on a GPU")
    far = Foreign(__dlpack__=lambda self, **k: 1 / 0, __dlpack_device__=lambda self: (10, 0))
    refused(lambda: ctx.cast(far, amp.F16), "a device of another kind", ValueError, "of kind 10")
    for other, kind, words in (({"strides": (4, 8)}, TypeError, "contiguous"), ({"mask": 1}, TypeError, "mask"), ({"typestr": ">f4"}, TypeError, "order"), ({"typestr": "<i4"}, TypeError, "int32"),
                               ({"typestr": "<u2"}, TypeError, "dtype="), ({"stream": 7}, BufferError, "stream")):
        refused(lambda: amp.array(on_gpu(**other)), f"on a GPU with {other}", kind, words)
    refused(lambda: amp.array(on_gpu(data=(256, True)), writable=True), "a read-only array on a GPU", TypeError, "read-only")
    if amp.cuda is None:
        refused(lambda: amp.Context(device=0), "no CUDA library", words="libamp_cuda.so")

    p = amp.Params(ctx, {"w": by_dlpack(x), "v": x.astype(np.float16)}, model=amp.BF16)
    check(same(p.master("w"), x) and same(p.master("v"), x), "weights from DLPack, and from another format")
    w, m = p.array("w"), p.array("w", "model")
    check(w.dtype == amp.F32 and m.dtype == amp.BF16 and m.shape == (2, 3) and p.array("w", "low") is None and p.array("w", "moment1").dtype == amp.F32, "arrays of a set")
    theirs = np.from_dlpack(w)
    check(theirs.ctypes.data == p.master("w").ctypes.data and same(theirs, x), "numpy takes it by DLPack")
    check(np.asarray(w).ctypes.data == theirs.ctypes.data and not hasattr(w, "__cuda_array_interface__"), "and by __array_interface__")
    capsule = amp.arrays._opened(m.__dlpack__())[0]
    check((capsule.code, capsule.bits, capsule.lanes) == (4, 16, 1) and m.__dlpack_device__() == (1, 0), "BF16 says that it is BF16")
    check(same(ctx.cast(m, amp.F32), ctx.cast(p.model("w"), amp.F32, amp.BF16)), "so that no dtype need be given")
    refused(p.close, "closed while numpy has it", BufferError)
    del p, w, m, capsule
    gc.collect()
    theirs[0, 0] = 5
    refused(ctx.close, "nor its context", BufferError)
    del theirs
    gc.collect()
    e = ctx.empty((2, 2), amp.F8E4M3)
    ctx.cast(x[:, :2].copy(), amp.F8E4M3, out=e)
    check(e.numpy().tolist() == [[0x38, 0xC0], [0x7E, 0]], "memory of the context")
    del e
    ctx.close()


def on_a_gpu(folder):
    """The same on a GPU, or on the simulated one of tests/hostcuda: with AMP_CUDA_LIBRARY, or after make python-cuda."""
    ctx, host = amp.Context(device=0), amp.Context(threads=1)
    x = np.float32([[1, -2, 0.5], [448, 0, 3]])
    p = amp.Params(ctx, {"w": x, "b": np.float32([1])})
    w = p.array("w")
    face = w.__cuda_array_interface__
    check(w.__dlpack_device__() == (2, 0) and face["shape"] == (2, 3) and face["typestr"] == "<f4" and face["stream"] == ctx.stream, f"exported: {face}")
    check(same(w.numpy(), x) and not hasattr(w, "__array_interface__"), "numpy gets a copy")
    refused(lambda: p.master("w"), "a view of a GPU's memory", TypeError, "on a GPU")
    by_face, capsule = Foreign(__cuda_array_interface__=face), by_dlpack(w)
    check(same(ctx.cast(by_face, amp.F16).numpy(), x.astype(np.float16)), "__cuda_array_interface__ is taken")
    check(same(ctx.cast(ctx.cast(capsule, amp.BF16), amp.F32).numpy(), x), "DLPack, too, and BF16 says what it is")
    check(ctx.histogram([w, capsule]).total == 12 and ctx.all_finite(by_face), "they are looked at")
    refused(lambda: ctx.cast(x, amp.F16), "an array of the CPU", ValueError, "lies on the CPU")
    refused(lambda: host.cast(w, amp.F16), "an array of a GPU", ValueError, "lies on a GPU (0)")
    refused(lambda: ctx.cast(Foreign(__cuda_array_interface__={**face, "stream": 7}), amp.F16), "another stream", BufferError, "stream")
    ctx.cast(w, amp.F16, out=p.array("w", "grad"))
    p.step(None, optimizer=amp.ADAM, lr=0.1)
    path = os.path.join(folder, "gpu")
    p.save(path)
    p.save(path + "2", "moments")
    q, h = amp.Params(ctx, {"w": capsule, "b": np.zeros(1)}), amp.Params(host, {"w": x, "b": np.zeros(1)})
    check(same(q.read("w"), p.read("w")), "weights from a GPU's array")
    for s in (q, h):
        s.load(path)
        s.load(path + "2", "moments")
    check(q.steps == h.steps == 1 and all(same(p.read(n), s.read(n)) for n in p.names for s in (q, h)), "by files to a GPU and to the CPU")
    check(same(p.array("w", "moment1").numpy(), h.array("w", "moment1").numpy()), "moments, too")
    refused(ctx.close, "closed while its arrays are in use", BufferError)
    del w, by_face, capsule, p, q, h, s
    gc.collect()
    ctx.close()


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


def shown(folder):
    """The program of docs/build.md prints what the page says."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "docs", "build.md"), encoding="utf-8") as f:
        program, want = re.search(r"^```python\n(.*?)^```\n```output\n(.*?)^```", f.read(), re.M | re.S).groups()
    here = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(os.path.abspath(amp.__file__))))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], cwd=folder, env=here, capture_output=True, text=True, check=False)
    check(done.stdout == want, f"docs/build.md: {done.stdout}{done.stderr}")
    check(os.path.exists(os.path.join(folder, "w.safetensors")), "docs/build.md: nothing was saved")


def main():
    global skipped
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
    with tempfile.TemporaryDirectory() as folder:
        files(folder)
        shown(folder)
        continued(folder)
        from_torch(folder)
        threads(folder)
        if amp.cuda is not None:
            on_a_gpu(folder)
        else:
            skipped += 1
            print("skipped: python_amp: arrays on a GPU: there is no libamp_cuda.so")
    sharing()
    ctx.close()
    ctx.close()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
