"""amp from Python: the scaler, casts, the histogram and the optimizer step on numpy arrays, without copies, on the CPU.

    pip install .                              # or: make python, and PYTHONPATH=build/python
    python3

    import numpy as np, amp
    ctx = amp.Context()
    half = ctx.cast(np.float32([1, 1e-8, 70000]), amp.F16)             # array([1., 0., inf], dtype=float16)
    print(ctx.histogram(gradients).fates(amp.F16, 65536))              # what FP16 would make of them, times a loss scale
    p = amp.Params(ctx, {"w": w, "b": b})                              # FP32 masters, FP16 copies and gradients
    s = amp.Scaler(ctx)
    p.grad("w")[...] = ...                                             # times s.scale; a numpy view, nothing is copied
    p.step(s, optimizer=amp.SGD, lr=0.1); print(p.last())

Every function of amp.h is amp.lib.amp_NAME, with its types; every struct and constant of it is in amp.c. A failing call raises amp.Error with
amp's own sentence. numpy has no bfloat16 and no FP8: those arrays are uint16 and uint8 with dtype=amp.BF16, ... given. One thread per Context.
Objects keep their Context alive, and Context.close() closes what was made on it. close() raises BufferError while arrays of amp's are in use.
Objects cannot be copied or pickled.
"""
import ctypes as C
import os

import numpy as np

from . import _amp as c

_LIBRARY = os.environ.get("AMP_LIBRARY") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "libamp.so")
lib = C.CDLL(_LIBRARY)
for _name, (_result, _arguments) in c.FUNCTIONS.items():
    _function = getattr(lib, _name, None)
    if _function is not None:  # a function of a backend that is not in this library
        _function.restype, _function.argtypes = _result, _arguments
VERSION = lib.amp_version()

F32, F16, BF16, F8E4M3, F8E5M2 = c.AMP_F32, c.AMP_F16, c.AMP_BF16, c.AMP_F8E4M3, c.AMP_F8E5M2
F64 = c.AMP_F64  # for cast and all_finite alone
ADAMW, ADAM, SGD, LION = c.AMP_ADAMW, c.AMP_ADAM, c.AMP_SGD, c.AMP_LION
_NUMPY = {F64: np.float64, F32: np.float32, F16: np.float16, BF16: np.uint16, F8E4M3: np.uint8, F8E5M2: np.uint8}


class Error(RuntimeError):
    """What amp refused or could not do: .status, and its sentence."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def array(a, dtype=None, writable=False):
    """The amp_array of a numpy array. It lies where it lay: contiguous arrays only."""
    if not isinstance(a, np.ndarray) or not a.flags.c_contiguous or (writable and not a.flags.writeable):
        raise TypeError("amp: a contiguous numpy array is needed" + (", writable" if writable else ""))
    if dtype is None:
        dtype = {"float64": F64, "float32": F32, "float16": F16}.get(a.dtype.name)
        if dtype is None:
            raise TypeError(f"amp: {a.dtype} needs dtype=amp.BF16, amp.F8E4M3 or amp.F8E5M2, or is not one of amp's")
    if np.dtype(_NUMPY[dtype]) != a.dtype:
        raise TypeError(f"amp: an array of {np.dtype(_NUMPY[dtype])} is needed for this dtype, not of {a.dtype}")
    out = c.amp_array()
    out.data, out.dtype, out.count = a.ctypes.data, dtype, a.size
    return out


def _view(a, shape, owner):
    """A numpy array over memory of amp's; it keeps its owner alive, and the owner is not closed before it is gone."""
    size = np.dtype(_NUMPY[a.dtype]).itemsize * a.count
    buffer = (C.c_char * size).from_address(a.data)
    buffer.use = _Use(owner)
    return np.frombuffer(buffer, dtype=_NUMPY[a.dtype]).reshape(shape)


class _Use:
    """Of an object, by a view of its memory."""

    def __init__(self, owner):
        self.owner = owner
        owner._made.uses += 1

    def __del__(self):
        self.owner._made.uses -= 1


class Histogram:
    """Exponents of finite values: counts .pow2[e] of |x| in [2^(e-127), 2^(e-126)), .zero, .inf, .nan, .total, .amax."""

    def __init__(self, raw):
        self.raw = raw
        self.pow2 = np.array(raw.pow2)
        self.total, self.zero, self.inf, self.nan, self.amax = raw.total, raw.zero, raw.inf, raw.nan, raw.amax

    def fates(self, dtype, scale=1.0):
        """What a format makes of them, times scale: the fields of amp_fates as a dict."""
        f = lib.amp_histogram_fates(C.byref(self.raw), dtype, scale)
        return {name: getattr(f, name) for name, _ in f._fields_ if not name.startswith("_")}

    def suggest_scale(self):
        return lib.amp_histogram_suggest_scale(C.byref(self.raw))


class _Made:
    """What the library made: destroyed once, after what was made on it, in whatever order Python ends its objects."""

    def __init__(self, handle, destroy, on=None):
        self.handle, self.destroy, self.on = handle, destroy, on
        self.children, self.uses = set(), 0
        if on:
            on.children.add(self)

    def used(self):
        return self.uses or any(child.used() for child in self.children)

    def end(self):
        handle, self.handle = self.handle, None
        if not handle:
            return
        while self.children:
            self.children.pop().end()
        if self.on:
            self.on.children.discard(self)
        self.destroy(handle)


class _Object:
    _made = None

    @property
    def handle(self):
        if not self._made or not self._made.handle:
            raise ValueError(f"amp: this {type(self).__name__} is closed")
        return self._made.handle

    def close(self):
        """Gives back what it holds; a second time it does nothing."""
        if not self._made:
            return
        if self._made.used():
            raise BufferError(f"amp: this {type(self).__name__} has arrays that are in use: delete them, or copy them, first")
        self._made.end()

    def __del__(self):
        if self._made:
            self._made.end()

    def __reduce_ex__(self, protocol):  # of copy.copy, copy.deepcopy and pickle
        raise TypeError(f"amp: a {type(self).__name__} cannot be copied or pickled")


class Context(_Object):
    """The CPU, with this many threads (0: as amp chooses)."""

    def __init__(self, threads=0):
        desc, handle = c.amp_cpu_desc(), C.POINTER(c.amp_ctx)()
        desc.threads = threads
        status = lib.amp_cpu_create_checked(C.byref(handle), VERSION, C.sizeof(desc), C.byref(desc))
        if status:
            raise Error(status, lib.amp_strerror(status).decode())
        self._made = _Made(handle, lib.amp_ctx_destroy)

    def check(self, status):
        if status:
            raise Error(status, (lib.amp_last_error(self.handle) or lib.amp_strerror(status)).decode())

    def cast(self, src, dtype, src_dtype=None, out=None, stochastic=False, seed=0):
        """src as that format: a new numpy array of the same shape, or `out`. Rounds to nearest even, or stochastically."""
        src = np.ascontiguousarray(src)
        if out is None:
            out = np.empty(src.shape, _NUMPY[dtype])
        desc = c.amp_cast_desc()
        desc.rounding = c.AMP_STOCHASTIC if stochastic else c.AMP_NEAREST
        desc.seed = seed
        if out.size != src.size:
            raise ValueError("amp: out has a different size than src")
        self.check(lib.amp_cast(self.handle, array(out, dtype, True), array(src, src_dtype), src.size, C.byref(desc)))
        return out

    def _arrays(self, arrays, dtype):
        arrays = arrays if isinstance(arrays, (list, tuple)) else [arrays]
        return (c.amp_array * len(arrays))(*[array(a, dtype) for a in arrays]), len(arrays)

    def histogram(self, arrays, dtype=None):
        """The exponents of one array or of several together: a Histogram."""
        raw = c.amp_histogram()
        these, n = self._arrays(arrays, dtype)
        self.check(lib.amp_histogram_count(self.handle, C.byref(raw), these, n))
        return Histogram(raw)

    def all_finite(self, arrays, dtype=None):
        """True, or False if there is an Inf or a NaN."""
        report = C.pointer(c.amp_finite_report())
        these, n = self._arrays(arrays, dtype)
        self.check(lib.amp_all_finite(self.handle, report, these, n))
        return report.contents.inf == 0 and report.contents.nan == 0


class Scaler(_Object):
    """A loss scaler. Fields of amp_scaler_desc by name: Scaler(ctx, scale=1024, growth_interval=100)."""

    def __init__(self, ctx, **fields):
        desc, handle = c.amp_scaler_desc(), C.POINTER(c.amp_scaler)()
        _fill(desc, fields)
        ctx.check(lib.amp_scaler_create_checked(C.byref(handle), ctx.handle, VERSION, C.sizeof(desc), C.byref(desc)))
        self.ctx, self._made = ctx, _Made(handle, lib.amp_scaler_destroy, ctx._made)

    @property
    def info(self):
        """The fields of amp_scaler_info as a dict."""
        out = c.amp_scaler_info()
        self.ctx.check(lib.amp_scaler_get(self.handle, C.byref(out)))
        return {name: getattr(out, name) for name, _ in out._fields_ if not name.startswith("_")}

    @property
    def scale(self):
        return self.info["scale"]

    @scale.setter
    def scale(self, value):
        self.ctx.check(lib.amp_scaler_set_scale(self.handle, value))


def _fill(desc, fields):
    kinds = dict(desc._fields_)
    for name, value in fields.items():
        if name not in kinds or name.startswith("_"):
            raise TypeError(f"amp: {type(desc).__name__} has no field {name}")
        if kinds[name] is c.amp_optional:
            optional = c.amp_optional()
            optional.value, optional.given = value, 1
            value = optional
        setattr(desc, name, value)


class Params(_Object):
    """A parameter set from {"name": array of float32}: copied in; .master, .model and .grad are views of amp's arrays.
    keep_f32 and no_decay: names of parameters, or one name.

    Fields of amp_params_desc by name: Params(ctx, weights, model=amp.BF16, grad=amp.F32)."""

    def __init__(self, ctx, weights, keep_f32=(), no_decay=(), **fields):
        desc, handle = c.amp_params_desc(), C.POINTER(c.amp_params)()
        _fill(desc, fields)
        ctx.check(lib.amp_params_create_checked(C.byref(handle), ctx.handle, VERSION, C.sizeof(desc), C.byref(desc)))
        self.ctx, self._made = ctx, _Made(handle, lib.amp_params_destroy, ctx._made)
        self.names, self.shapes = list(weights), {}
        keep_f32, no_decay = self._named(keep_f32), self._named(no_decay)
        for name, values in weights.items():
            values = np.ascontiguousarray(values, np.float32)
            one = c.amp_param_desc()
            one.name, one.count, one.init = name.encode(), values.size, values.ctypes.data_as(type(one.init))
            one.keep_f32, one.no_decay = name in keep_f32, name in no_decay
            ctx.check(lib.amp_params_add(handle, C.byref(one)))
            self.shapes[name] = values.shape
        ctx.check(lib.amp_params_commit(handle))

    def _named(self, names):
        names = {names} if isinstance(names, str) else set(names)
        if names - set(self.names):
            raise ValueError(f"amp: no parameter is called {sorted(names - set(self.names))[0]!r}")
        return names

    def _part(self, name, part):
        a = getattr(lib.amp_param_get(self.handle, self.names.index(name)), part)
        return _view(a, self.shapes[name], self) if a.data else None

    def master(self, name):
        return self._part(name, "master")

    def model(self, name):
        return self._part(name, "model")

    def grad(self, name):
        return self._part(name, "grad")

    def step(self, scaler=None, **fields):
        """amp_step, with the fields of amp_step_desc by name: p.step(s, optimizer=amp.ADAMW, lr=1e-3, clip_norm=1.0)."""
        desc = c.amp_step_desc()
        _fill(desc, fields)
        self.ctx.check(lib.amp_step(self.handle, scaler.handle if scaler else None, C.byref(desc)))

    def last(self):
        """The record of the last step: .outcome by name, .skipped, .scale and the other fields of amp_step_record."""
        out = c.amp_step_record()
        self.ctx.check(lib.amp_step_poll(self.handle, C.byref(out)))
        record = {name: getattr(out, name) for name, _ in out._fields_ if not name.startswith("_") and name != "rate"}
        record["outcome"] = lib.amp_outcome_name(out.outcome).decode()
        return record
