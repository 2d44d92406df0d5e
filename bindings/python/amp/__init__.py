"""amp from Python: the scaler, casts, the histogram and the optimizer step on arrays, without copies.

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
amp's own sentence. numpy has no bfloat16 and no FP8: those arrays are uint16 and uint8 with dtype=amp.BF16, ... given.
One thread at a time per Context; threads that have Contexts of their own do not get into each other's way.
Wherever an array is taken it may be another library's: PyTorch's, JAX's, CuPy's, by DLPack, __array_interface__ or __cuda_array_interface__.
p.array("w", "model") goes the other way: torch.from_dlpack(...) of it is the same memory, BF16 included.
p.save("run.safetensors", "weights") and p.load exchange weights, model copies and moments with other programs; amp.read_safetensors, write_npy, ...
Context(device=0) is a GPU, if there is a libamp_cuda.so beside libamp.so (make python-cuda) or named by AMP_CUDA_LIBRARY.
Objects, and arrays of their memory, keep their Context alive, and Context.close() closes what was made on it. close()
raises BufferError while arrays of amp's are in use.
Objects cannot be copied or pickled.
"""
import ctypes as C
import os
import threading

import numpy as np

from . import _amp as c
from . import arrays
from .arrays import Array, borrow
from .files import _NUMPY, read_npy, read_safetensors, write_npy, write_safetensors

_LIBRARY = os.environ.get("AMP_LIBRARY") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "libamp.so")
_CUDA_LIBRARY = os.environ.get("AMP_CUDA_LIBRARY") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "libamp_cuda.so")
lib = C.CDLL(_LIBRARY, C.RTLD_GLOBAL)  # the other one uses it
cuda = C.CDLL(_CUDA_LIBRARY) if os.path.exists(_CUDA_LIBRARY) else None
for _name, (_result, _arguments) in c.FUNCTIONS.items():
    _function = getattr(lib, _name, None) or getattr(cuda, _name, None)
    if _function is not None:  # else one of a backend that is not there
        _function.restype, _function.argtypes = _result, _arguments
VERSION = lib.amp_version()

F32, F16, BF16, F8E4M3, F8E5M2 = c.AMP_F32, c.AMP_F16, c.AMP_BF16, c.AMP_F8E4M3, c.AMP_F8E5M2
F64 = c.AMP_F64  # for cast and all_finite alone
ADAMW, ADAM, SGD, LION = c.AMP_ADAMW, c.AMP_ADAM, c.AMP_SGD, c.AMP_LION


class Error(RuntimeError):
    """What amp refused or could not do: .status, and its sentence."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def array(a, dtype=None, writable=False):
    """The amp_array of anybody's array, for functions of amp.lib. It lies where it lay: contiguous arrays only. Keep `a` as long as it is used."""
    b = borrow(a, dtype, writable)
    b.raw.borrowed = b
    return b.raw


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
        owner._made.uses.add(id(self))  # in one operation, where += would be three: views come and go in any thread

    def __del__(self):
        self.owner._made.uses.discard(id(self))


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
    """What the library made: destroyed once, after what was made on it, in whatever order Python ends its objects, and in no other
    thread than works with its context: there a call may be running, which the end of an object must not meet."""

    def __init__(self, handle, destroy, on=None):
        self.handle, self.destroy, self.on = handle, destroy, on
        self.children, self.uses = set(), set()
        self.root, self.thread, self.dropped = on.root if on else self, threading.get_ident(), []
        if on:
            on.children.add(self)

    def enter(self):
        """Before a call: what other threads have dropped meanwhile."""
        self.root.thread = threading.get_ident()
        while self.root.dropped:
            self.root.dropped.pop().end()

    def drop(self):
        """Nothing refers to it any more, which the garbage collector may find out in any thread."""
        if self.root is self or self.root.thread == threading.get_ident():
            self.end()
        else:
            self.root.dropped.append(self)

    def used(self):
        # of a list: the garbage collector may end a child meanwhile, which leaves the set
        return bool(self.uses) or any(child.used() for child in list(self.children))

    def end(self):
        handle, self.handle = self.handle, None
        if not handle:
            return
        for child in list(self.children):
            child.end()
        if self.on:
            self.on.children.discard(self)
        self.destroy(handle)


class _Object:
    _made = None

    @property
    def handle(self):
        if not self._made or not self._made.handle:
            raise ValueError(f"amp: this {type(self).__name__} is closed")
        self._made.enter()
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
            self._made.drop()

    def __reduce_ex__(self, protocol):  # of copy.copy, copy.deepcopy and pickle
        raise TypeError(f"amp: a {type(self).__name__} cannot be copied or pickled")


class Context(_Object):
    """The CPU, with this many threads (0: as amp chooses); or GPU number `device`."""

    def __init__(self, threads=0, device=None):
        handle = C.POINTER(c.amp_ctx)()
        if device is None:
            desc, create = c.amp_cpu_desc(), lib.amp_cpu_create_checked
            desc.threads = threads
        elif cuda is None:
            raise Error(c.AMP_ERR_NO_CUDA, f"amp: no {_CUDA_LIBRARY}: make python-cuda makes it, or AMP_CUDA_LIBRARY names one")
        else:
            desc, create = c.amp_cuda_desc(), cuda.amp_cuda_create_checked
            desc.device = device
        status = create(C.byref(handle), VERSION, C.sizeof(desc), C.byref(desc))
        if status:
            raise Error(status, lib.amp_strerror(status).decode())
        self._made = _Made(handle, lib.amp_ctx_destroy)
        self.device = device
        self.stream = cuda.amp_cuda_stream(handle) if device is not None else None  # a number

    def check(self, status):
        if status:
            raise Error(status, (lib.amp_last_error(self.handle) or lib.amp_strerror(status)).decode())

    def sync(self):
        """Waits for what is queued, and says what failed meanwhile."""
        self.check(lib.amp_sync(self.handle))

    def borrow(self, a, dtype=None, writable=False):
        """Anybody's array, as long as what is returned lives; refused if it does not lie where this context works."""
        return borrow(a, dtype, writable, self.stream, self.device)

    def empty(self, shape, dtype):
        """An Array in this context's memory, with anything in it."""
        shape = tuple(np.atleast_1d(shape).tolist()) if not isinstance(shape, tuple) else shape
        memory = _Memory(self, int(np.prod(shape, dtype=np.int64)) * np.dtype(_NUMPY[dtype]).itemsize)
        return Array(self, _view(memory.raw(dtype), shape, memory), dtype)

    def to_host(self, a):
        """A copy of an Array in numpy's memory."""
        out = np.empty(a.shape, _NUMPY[a.dtype])
        self.check(lib.amp_copy(self.handle, out.ctypes.data, a._bits.ctypes.data, out.nbytes))
        return out

    def floats(self, a):
        """A numpy array of float32 from anybody's array of numbers."""
        if not isinstance(a, (np.ndarray, np.generic)) and (hasattr(a, "__dlpack__") or hasattr(a, "__cuda_array_interface__")):
            a = (self if borrow(a, stream=self.stream).device[0] == arrays.CUDA else _host()).cast(a, F32)
        return np.asarray(a.numpy() if isinstance(a, Array) else a, np.float32, order="C")

    def cast(self, src, dtype, src_dtype=None, out=None, stochastic=False, seed=0):
        """src as that format: a new numpy array of the same shape (on a GPU an Array), or `out`. To nearest even, or stochastically."""
        if self.device is None and isinstance(src, (np.ndarray, np.generic, int, float, list, tuple)):
            src = np.asarray(src, order="C")
        src = self.borrow(src, src_dtype)
        if out is None:
            out = np.empty(src.shape, _NUMPY[dtype]) if self.device is None else self.empty(src.shape, dtype)
        to = self.borrow(out, None if isinstance(out, Array) else dtype, True)
        if to.raw.dtype != dtype:
            raise TypeError("amp: out has another dtype")
        desc = c.amp_cast_desc()
        desc.rounding = c.AMP_STOCHASTIC if stochastic else c.AMP_NEAREST
        desc.seed = seed
        if to.raw.count != src.raw.count:
            raise ValueError("amp: out has a different size than src")
        self.check(lib.amp_cast(self.handle, to.raw, src.raw, src.raw.count, C.byref(desc)))
        self.sync()  # what was borrowed is given back here
        return out

    def _arrays(self, arrays, dtype):
        arrays = [self.borrow(a, dtype) for a in (arrays if isinstance(arrays, (list, tuple)) else [arrays])]
        return (c.amp_array * len(arrays))(*[a.raw for a in arrays]), len(arrays), arrays

    def histogram(self, arrays, dtype=None):
        """The exponents of one array or of several together: a Histogram."""
        raw = c.amp_histogram()
        these, n, _keep = self._arrays(arrays, dtype)
        self.check(lib.amp_histogram_count(self.handle, C.byref(raw), these, n))
        return Histogram(raw)

    def all_finite(self, arrays, dtype=None):
        """True, or False if there is an Inf or a NaN."""
        report = C.pointer(c.amp_finite_report())
        these, n, _keep = self._arrays(arrays, dtype)
        self.check(lib.amp_all_finite(self.handle, report, these, n))
        return report.contents.inf == 0 and report.contents.nan == 0


_HOST = threading.local()


def _host():
    """This thread's context for arrays that are not in context memory. Each thread has its own, because one is for one
    thread at a time."""
    if not hasattr(_HOST, "ctx"):
        _HOST.ctx = Context(threads=1)
    return _HOST.ctx


def _converted(values, to, dtype):
    """Values of a file as an array of the format `to`: the same array if they are in it. Refused if not of `dtype`."""
    if dtype == to and isinstance(values, (np.ndarray, np.generic)):
        return borrow(np.asarray(values, order="C"), dtype).keep
    return _host().cast(values, to, dtype)


class _Memory(_Object):
    """Context memory, given back with the last view of it; the context stays until then."""

    def __init__(self, ctx, size):
        self.ctx, self.size, at, on = ctx, size, C.c_void_p(), ctx.handle
        ctx.check(lib.amp_alloc(on, C.byref(at), max(size, 1), b"python"))
        self._made = _Made(at, lambda memory: lib.amp_free(on, memory), ctx._made)

    def raw(self, dtype):
        out = c.amp_array()
        out.data, out.dtype, out.count = self.handle.value, dtype, self.size // np.dtype(_NUMPY[dtype]).itemsize
        return out


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
        self.ctx, self._desc, self._made = ctx, desc, _Made(handle, lib.amp_params_destroy, ctx._made)
        self.names, self.shapes = list(weights), {}
        keep_f32, no_decay = self._named(keep_f32), self._named(no_decay)
        for name, values in weights.items():
            values = ctx.floats(values)
            one = self._one(name, values)
            one.keep_f32, one.no_decay = name in keep_f32, name in no_decay
            ctx.check(lib.amp_params_add(handle, C.byref(one)))
            self.shapes[name] = values.shape
        ctx.check(lib.amp_params_commit(handle))

    def _one(self, name, values):
        one = c.amp_param_desc()
        one.name, one.count, one.init = name.encode(), values.size, values.ctypes.data_as(type(one.init))
        return one

    def _named(self, names):
        names = {names} if isinstance(names, str) else set(names)
        if names - set(self.names):
            raise ValueError(f"amp: no parameter is called {sorted(names - set(self.names))[0]!r}")
        return names

    def _index(self, name):
        if name not in self.names:
            raise ValueError(f"amp: no parameter is called {name!r}")
        return self.names.index(name)

    def array(self, name, part="master"):
        """Its "master", "model", "grad", "low", "accum" or "moment0" and "moment1" in place: an Array, or None where the set has none."""
        one = lib.amp_param_get(self.handle, self._index(name))
        a = one.moment[int(part[-1])] if part in ("moment0", "moment1") else getattr(one, part)
        if a.data and a.dtype not in _NUMPY:
            raise ValueError(f"amp: {part} has codes of 8 bits, which numpy cannot look at: amp_state_save saves them")
        return Array(self.ctx, _view(a, self.shapes[name], self), a.dtype) if a.data else None

    def _part(self, name, part):
        a = self.array(name, part)
        if a is not None and self.ctx.device is not None:
            raise TypeError(f'amp: on a GPU numpy cannot look at it: p.array({name!r}, "{part}"), or .numpy() of that, a copy')
        return a.numpy() if a is not None else None

    def master(self, name):
        return self._part(name, "master")

    def model(self, name):
        return self._part(name, "model")

    def grad(self, name):
        return self._part(name, "grad")

    def read(self, name):
        """Its weights as float32, whatever the layout: a copy."""
        out = np.empty(self.shapes[name], np.float32)
        self.ctx.check(lib.amp_param_read(self.handle, self._index(name), out.ctypes.data_as(C.POINTER(C.c_float))))
        return out

    def write(self, name, values):
        """Its weights from anybody's array of that shape, and with them its model copy."""
        values = self.ctx.floats(values)
        if values.shape != self.shapes[name]:
            raise ValueError(f"amp: {name} has shape {self.shapes[name]}, not {values.shape}")
        self.ctx.check(lib.amp_param_write(self.handle, self._index(name), values.ctypes.data_as(C.POINTER(C.c_float))))

    @property
    def steps(self):
        """Steps taken: Adam's t. It may be set, for a run that began elsewhere."""
        self.ctx.sync()
        return self.last()["steps"]

    @steps.setter
    def steps(self, value):
        self.ctx.check(lib.amp_params_set_steps(self.handle, value))

    def tensors(self, part="weights", moments=("exp_avg", "exp_avg_sq")):
        """{"name": (array, dtype)}: "weights", as FP32; "model", the copies that products read; or "moments", "name.exp_avg" and so on, and "name.step"."""
        out = {}
        for name in self.names:
            if part == "weights":
                out[name] = self.read(name), F32
            elif part == "model":
                a = self.array(name, "model")
                out[name] = a.numpy(), a.dtype
            elif part == "moments":
                for k, a in enumerate(self._moments(name, moments)):
                    out[f"{name}.{moments[k]}"] = a.numpy(), a.dtype
                out[f"{name}.step"] = np.float32(self.steps), F32
            else:
                raise ValueError(f'amp: "weights", "model" or "moments", not {part!r}')
        return out

    def _moments(self, name, moments):
        arrays = [self.array(name, f"moment{k}") for k in range(len(moments))]
        if None in arrays:
            raise ValueError(f"amp: this set has not the moments {', '.join(moments)}")
        return arrays

    def save(self, path, part="weights", **names):
        """tensors(part) as a safetensors file."""
        write_safetensors(path, self.tensors(part, **names))

    def load(self, path, part="weights", moments=("exp_avg", "exp_avg_sq")):
        """From a safetensors file, or a dict as tensors() gives. Nothing changes unless it has every tensor in its
        shape, of its dtype, and with values that the set can hold. Moments are refused in the middle of a step. Of
        weights and of model copies it makes both, FP32 weights and copies."""
        wanted = {name: name for name in self.names}
        if part == "moments":
            wanted = {f"{name}.{m}": name for name in self.names for m in moments}
        elif part not in ("weights", "model"):
            raise ValueError(f'amp: "weights", "model" or "moments", not {part!r}')
        tensors = path if isinstance(path, dict) else read_safetensors(path, {*wanted, *(f"{name}.step" for name in self.names)})
        for key, name in wanted.items():
            if key not in tensors or tensors[key][0].shape != self.shapes[name]:
                raise ValueError(f"amp: {key} of shape {self.shapes[name]} is wanted, and " + (f"there it has {tensors[key][0].shape}" if key in tensors else "it is not there"))
        if part == "moments":
            steps = {self._steps_in(tensors, name, moments) for name in self.names}
            if len(steps) != 1 or not 0 <= min(steps) < 2**53:
                raise ValueError(f"amp: steps are {sorted(steps)}: a set has one count, the same for all parameters")
            places = [(f"{name}.{m}", a) for name in self.names for m, a in zip(moments, self._moments(name, moments))]
            places = [(a, _converted(tensors[key][0], a.dtype, tensors[key][1])) for key, a in places]
            self.steps = int(steps.pop())  # before the copies: it is refused in the middle of a step, and they are not
            for a, values in places:
                self.ctx.check(lib.amp_copy(self.ctx.handle, a._bits.ctypes.data, values.ctypes.data, values.nbytes))
            return
        weights = {name: _converted(tensors[name][0], F32, tensors[name][1]) for name in self.names}
        for name, values in weights.items():
            self._try(name, values)
        for name, values in weights.items():
            self.write(name, values)

    def _try(self, name, values):
        """Refuses weights that write would refuse, by adding them to a set of the same layout, which is then dropped.
        Only AMP_MASTER_SPLIT and SPLIT8 cannot hold them all."""
        if self._desc.master not in (c.AMP_MASTER_SPLIT, c.AMP_MASTER_SPLIT8):
            return
        one, other = self._one(name, values), C.POINTER(c.amp_params)()
        one.keep_f32 = lib.amp_param_model(self.handle, self._index(name)).dtype == F32
        create, desc = lib.amp_params_create_checked, self._desc
        self.ctx.check(create(C.byref(other), self.ctx.handle, VERSION, C.sizeof(desc), C.byref(desc)))
        try:
            self.ctx.check(lib.amp_params_add(other, C.byref(one)))
        finally:
            lib.amp_params_destroy(other)

    def _steps_in(self, tensors, name, moments):
        """Steps taken, by a file of moments. PyTorch's SGD keeps no count; its momentum says that there has been a step."""
        key = f"{name}.step"
        if key not in tensors and len(moments) == 1:
            return float(max(self.steps, 1))
        if key not in tensors or np.size(tensors[key][0]) != 1:
            raise ValueError(f"amp: {key}, one number, is wanted")
        values, dtype = np.ravel(tensors[key][0]), tensors[key][1]
        return float((values if values.dtype.kind == "f" else _host().cast(values, F32, dtype))[0])

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
