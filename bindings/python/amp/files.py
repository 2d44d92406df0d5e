"""safetensors and .npy files for the package amp, without the safetensors package. A file is replaced as a whole or not at all.

Tensors are numpy arrays. numpy has no BF16 and no FP8: their bits are uint16 and uint8, and the dtype stands beside the array."""
import json
import os
import threading

import numpy as np

from . import _amp as c

_NUMPY = {c.AMP_F64: np.float64, c.AMP_F32: np.float32, c.AMP_F16: np.float16, c.AMP_BF16: np.uint16, c.AMP_F8E4M3: np.uint8, c.AMP_F8E5M2: np.uint8}
_NAMES = {c.AMP_F64: "F64", c.AMP_F32: "F32", c.AMP_F16: "F16", c.AMP_BF16: "BF16", c.AMP_F8E4M3: "F8_E4M3", c.AMP_F8E5M2: "F8_E5M2"}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


def dtype_of(a):
    """The dtype that an array says by itself; bits of BF16 and FP8 do not."""
    dtype = {"float64": c.AMP_F64, "float32": c.AMP_F32, "float16": c.AMP_F16}.get(a.dtype.name)
    if dtype is None:
        raise TypeError(f"amp: {a.dtype} needs dtype=amp.BF16, amp.F8E4M3 or amp.F8E5M2, or is not one of amp's")
    return dtype


def _replace(path, write):
    """write(file) makes a new file, which then takes the place of the old one."""
    path = os.fspath(path)
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.tmp"  # no other writer's
    try:
        with open(temporary, "wb") as f:
            write(f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


def write_safetensors(path, tensors, metadata=None):
    """tensors: {"name": array}, or {"name": (array, dtype)} for BF16 and FP8. metadata: {"word": "word"}."""
    rows = []
    for name, given in tensors.items():
        a, dtype = given if isinstance(given, tuple) else (given, None)
        a = np.asarray(a)
        dtype = dtype_of(a) if dtype is None else dtype
        if a.dtype != _NUMPY[dtype]:
            raise TypeError(f"amp: {name} is an array of {a.dtype}, and {_NAMES[dtype]} is kept in {np.dtype(_NUMPY[dtype])}")
        rows.append((name, dtype, a.shape, np.ascontiguousarray(a, a.dtype.newbyteorder("<"))))
    rows.sort(key=lambda row: -row[3].itemsize)  # so that all are aligned
    header, at = {"__metadata__": dict(metadata)} if metadata else {}, 0
    for name, dtype, shape, a in rows:
        header[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    _replace(path, lambda f: [f.write(part) for part in (len(text).to_bytes(8, "little"), text, *(a.tobytes() for *_, a in rows))])


def _once(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name twice")
    return dict(pairs)


def _natural(values, least=0, most=None):
    good = isinstance(values, list) and least <= len(values) and (most is None or len(values) <= most)
    return good and all(type(v) is int and v >= 0 for v in values)


def _tensor(name, row, data, wanted):
    """The array of one row of a header, which may hold anything; None if it is not wanted."""
    if not isinstance(row, dict) or set(row) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{name}: not dtype, shape and data_offsets")
    if wanted and row["dtype"] not in _DTYPES:
        raise ValueError(f"{name}: amp has no dtype {row['dtype']}")
    if not _natural(row["shape"], 0, 8) or not _natural(row["data_offsets"], 2, 2):
        raise ValueError(f"{name}: shape and data_offsets are not numbers from 0 on, at most 8 and two of them")
    if not wanted:
        return None
    kind, count, (begin, end) = np.dtype(_NUMPY[_DTYPES[row["dtype"]]]), 1, row["data_offsets"]
    for n in row["shape"]:
        count *= n
    if begin > end or end > len(data) or end - begin != count * kind.itemsize:
        raise ValueError(f"{name}: {row['dtype']} of shape {row['shape']} does not fit bytes {begin} to {end} of {len(data)}")
    a = np.frombuffer(data, kind.newbyteorder("<"), count, begin) if count else np.zeros(0, kind)
    return np.require(a.astype(kind, copy=False).reshape(row["shape"]), requirements="A"), _DTYPES[row["dtype"]]


def read_safetensors(path, names=None):
    """{"name": (array, dtype)}, of all tensors, or of `names` alone: others may have dtypes that amp has not. ValueError says what is wrong
    with the file."""
    with open(path, "rb") as f:
        file = bytearray(f.read())  # arrays in it can be written to
    try:
        length = int.from_bytes(file[:8], "little")
        if len(file) < 8 or length > len(file) - 8:
            raise ValueError("the header is longer than the file")
        header = json.loads(file[8:8 + length].decode(), object_pairs_hook=_once)
        if not isinstance(header, dict):
            raise ValueError("the header is not in braces")
        header.pop("__metadata__", None)
        data = memoryview(file)[8 + length:]
        tensors = {name: _tensor(name, row, data, names is None or name in names) for name, row in header.items()}
        at = 0
        for begin, end in sorted(row["data_offsets"] for row in header.values()):
            if begin != at:
                raise ValueError(f"tensors overlap, or there are bytes between them, at byte {begin}")
            at = end
        if at != len(data):
            raise ValueError(f"{len(data) - at} bytes that no tensor has")
    except (ValueError, RecursionError) as e:
        raise ValueError(f"amp: {os.fspath(path)}: {e}") from None
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def write_npy(path, a):
    """One array of float64, float32 or float16: .npy has no BF16 and no FP8."""
    a = np.asarray(a)
    dtype_of(a)
    _replace(path, lambda f: np.lib.format.write_array(f, a, (1, 0), allow_pickle=False))


def read_npy(path):
    """The array, in this machine's byte order."""
    try:
        with open(path, "rb") as f:
            a = np.lib.format.read_array(f, allow_pickle=False)
            if f.read(1):
                raise ValueError("bytes behind the array")
        dtype_of(a)
    except (ValueError, TypeError, EOFError) as e:
        raise ValueError(f"amp: {os.fspath(path)}: {e}") from None
    return np.asarray(a, a.dtype.newbyteorder("="), "C")
