#!/usr/bin/env python3
"""exchange.py PROGRAM - examples/exchange.c beside numpy and the safetensors package, in a folder where it has run without arguments.

They read what it wrote, and it reads what they write. Last line: N passed, N failed, N skipped."""
import importlib.util
import subprocess
import sys

import numpy as np

passed = failed = skipped = 0


def check(good, what):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAIL exchange:", what)


def listed(path):
    """What the program says of a file: {name: (dtype, shape, sum)}"""
    out = subprocess.run([*sys.argv[1:], path], stdout=subprocess.PIPE, check=True, text=True).stdout
    rows = [line.rsplit(" ", 2) for line in out.splitlines()]
    return {first.split(" ", 1)[0]: (first.split(" ", 2)[1], first.split(" ", 2)[2], float(total)) for first, _, total in rows}


def npy():
    a = np.load("run.npy", allow_pickle=False)
    check(a.dtype == np.float16 and a.shape == (16, 8), f"numpy reads {a.dtype} {a.shape}")
    check(open("run.npy", "rb").read().index(b"\n") % 64 == 63, "the data of run.npy is aligned")
    for b in (np.arange(6, dtype=np.float32).reshape(2, 3), np.full(5, 0.125, np.float16), np.float32(7), np.ones((2, 1, 4), np.float32)):
        for version in ((1, 0), (2, 0), (3, 0)):
            with open("other.npy", "wb") as f:
                np.lib.format.write_array(f, np.asarray(b), version)
            got = listed("other.npy")["-"]
            check(got == ("f16" if b.dtype == np.float16 else "f32", str(list(b.shape)), float(np.sum(b, dtype=np.float64))), f"{b.shape} {version}: {got}")
    for b in (np.zeros((3, 2), np.float32).T, np.zeros(3, ">f4"), np.zeros(3, np.int32), np.zeros(3, "f4,f4")):
        np.save("other.npy", b)
        check(subprocess.run([*sys.argv[1:], "other.npy"], stderr=subprocess.DEVNULL, check=False).returncode == 1, f"{b.dtype}, not in C's order: refused")
    return a


def spec(kind, shape, a):
    """What serialize_file takes: the package's older versions a dict."""
    import safetensors as st
    if hasattr(st, "TensorSpec"):
        return st.TensorSpec(dtype=kind, shape=shape, data_ptr=a.ctypes.data, data_len=a.nbytes)
    return {"dtype": kind, "shape": shape, "data": a.tobytes()}


def safetensors(half):
    from safetensors import deserialize, serialize_file
    kinds = {"F32": np.float32, "F16": np.float16}
    names = {"0.weight": [16, 8], "0.bias": [16], "2.weight": [1, 16], "2.bias": [1]}
    files = {}
    for what in ("weights", "model", "moments"):
        read = deserialize(open(f"run.{what}.safetensors", "rb").read())
        files[what] = {name: np.frombuffer(bytes(t["data"]), kinds[t["dtype"]]).reshape(t["shape"]) for name, t in read}
    weights, model, moments = files["weights"], files["model"], files["moments"]
    check({n: list(a.shape) for n, a in weights.items()} == names, f"the weights: {weights.keys()}")
    check(all(a.dtype == np.float32 and np.abs(a).max() > 0.05 for a in weights.values()), "which are FP32, and no zeros")
    check(all(np.array_equal(model[n], a.astype(np.float16) if a.ndim == 2 else a) for n, a in weights.items()), "the model is their FP16 copy")
    check(all(model[n].dtype == (np.float16 if len(names[n]) == 2 else np.float32) for n in names), "and FP32 where the set keeps it")
    check(np.array_equal(half, model["0.weight"]), "run.npy is one of them")
    check(sorted(moments) == sorted(n + e for n in names for e in (".exp_avg", ".exp_avg_sq", ".step")), f"the moments: {moments.keys()}")
    check(all(moments[n + ".step"] == 10 and moments[n + ".exp_avg_sq"].min() >= 0 and moments[n + ".exp_avg"].shape == tuple(names[n]) for n in names), "of 10 steps")

    # each format, some bits of which the sum is known, a name in UTF-8, a shape with a 0, metadata with escapes
    x = np.float32([1, -2, 0.5, 448])
    data = {"a.f32": ("float32", "f32", x), "b": ("float16", "f16", x.astype(np.float16)), "c": ("bfloat16", "bf16", (x.view(np.uint32) >> 16).astype(np.uint16)),
            "d": ("float8_e4m3fn", "f8e4m3", np.uint8([0x38, 0xC0, 0x30, 0x7E])), "gr\u00f6\u00dfe": ("float8_e5m2", "f8e5m2", np.uint8([0x3C, 0xC0, 0x38, 0x5F]))}
    tensors = {name: spec(kind, [2, 2], a) for name, (kind, _, a) in data.items()}
    none, integers = np.zeros((3, 0), np.float32), np.zeros(1, np.int64)
    tensors["empty"] = spec("float32", [3, 0], none)
    serialize_file(tensors, "other.safetensors", {"note": 'a "quoted" \\ text\n'})
    got = listed("other.safetensors")
    check(sorted(got) == sorted(tensors), f"names: {got.keys()}")
    for name, (_, kind, _) in data.items():
        check(got.get(name) == (kind, "[2, 2]", 447.5), f"{name}: {got.get(name)}")
    check(got.get("empty") == ("f32", "[3, 0]", 0.0), "a tensor without elements")
    serialize_file({"i": spec("int64", [1], integers)}, "other.safetensors", None)
    check(subprocess.run([*sys.argv[1:], "other.safetensors"], stderr=subprocess.DEVNULL, check=False).returncode == 1, "integers: refused")


half_copy = npy()
if importlib.util.find_spec("safetensors"):
    safetensors(half_copy)
else:
    skipped += 1
    print(f"skipped: exchange: {sys.executable} cannot import safetensors")
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(failed != 0)
