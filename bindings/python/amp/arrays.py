"""Arrays of other libraries as amp's, and amp's as theirs, in place: DLPack, __array_interface__, __cuda_array_interface__."""
import ctypes as C

import numpy as np

from . import _amp as c
from .files import _NUMPY, dtype_of

CPU, CUDA, PINNED, MANAGED = (1, 2, 3, 13)  # DLPack's numbers
_CODES = {  # DLPack's (code, bits)
    c.AMP_F64: (2, 64), c.AMP_F32: (2, 32), c.AMP_F16: (2, 16), c.AMP_BF16: (4, 16), c.AMP_F8E4M3: (10, 8), c.AMP_F8E5M2: (12, 8)}
_DTYPES = {code: dtype for dtype, code in _CODES.items()}


class _Tensor(C.Structure):  # DLTensor
    _fields_ = [("data", C.c_void_p), ("device", C.c_int32 * 2), ("ndim", C.c_int32), ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16),
                ("shape", C.POINTER(C.c_int64)), ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


class _Versioned(C.Structure):  # DLManagedTensorVersioned
    _fields_ = [("major", C.c_uint32), ("minor", C.c_uint32), ("manager", C.c_void_p), ("deleter", C.c_void_p), ("flags", C.c_uint64), ("tensor", _Tensor)]


_valid = C.PYFUNCTYPE(C.c_int, C.py_object, C.c_char_p)(("PyCapsule_IsValid", C.pythonapi))
_pointer = C.PYFUNCTYPE(C.c_void_p, C.py_object, C.c_char_p)(("PyCapsule_GetPointer", C.pythonapi))


def _opened(capsule):
    """The tensor in a capsule, and whether it is to be read only."""
    if _valid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise BufferError(f"amp: DLPack {managed.major}.{managed.minor} is not known here, 1 is")
        return managed.tensor, bool(managed.flags & 1)
    if _valid(capsule, b"dltensor"):
        return _Tensor.from_address(_pointer(capsule, b"dltensor")), False
    raise BufferError("amp: __dlpack__ gave no capsule of a tensor, or one that is used up")


class Borrowed:
    """The amp_array .raw of somebody's array, with .shape, .device (kind, number) and .readonly. It keeps that array alive as long as it is itself."""

    def __init__(self, keep, data, dtype, shape, device, readonly):
        self.keep, self.shape, self.device, self.readonly = keep, tuple(shape), device, readonly
        self.raw = c.amp_array()
        self.raw.data, self.raw.dtype, self.raw.count = data, dtype, int(np.prod(self.shape, dtype=np.int64))


def _compact(shape, strides):
    """Strides in elements: by rows, without gaps."""
    step = 1
    for n, stride in zip(reversed(shape), reversed(strides)):
        if n != 1 and stride != step:
            return 0 in shape
        step *= n
    return True


def _bits(kind, dtype, what):
    """The dtype of an array whose library has only the bits, as uint16 or uint8."""
    if dtype is None:
        raise TypeError(f"amp: {what} needs dtype=amp.BF16, amp.F8E4M3 or amp.F8E5M2, or is not one of amp's")
    if np.dtype(_NUMPY[dtype]) != kind:
        raise TypeError(f"amp: an array of {np.dtype(_NUMPY[dtype])} is needed for this dtype, not of {what}")
    return dtype


def _numpy(a, dtype):
    if not a.flags.c_contiguous:
        raise TypeError("amp: a contiguous array is needed, and this one is not: copy it")
    if not a.dtype.isnative:
        raise TypeError(f"amp: the numbers of this array have their bytes in another order than this machine's: {a.dtype.str}")
    dtype = dtype_of(a) if dtype is None else _bits(a.dtype, dtype, a.dtype)
    return Borrowed(a, a.ctypes.data, dtype, a.shape, (CPU, 0), not a.flags.writeable)


def _dlpack(a, dtype, stream):
    arguments = {} if stream is None else {"stream": stream}
    try:
        capsule = a.__dlpack__(max_version=(1, 1), **arguments)
    except TypeError:  # a library of before 2023
        capsule = a.__dlpack__(**arguments)
    t, readonly = _opened(capsule)
    shape = t.shape[:t.ndim]
    if t.strides and not _compact(shape, t.strides[:t.ndim]):
        raise TypeError("amp: a contiguous array is needed, and this one is not: copy it")
    own = _DTYPES.get((t.code, t.bits)) if t.lanes == 1 else None
    if own is None:
        what = f"an array of DLPack's type {t.code}, {t.bits} bits, {t.lanes} lanes"
        own = _bits(np.dtype(f"u{t.bits // 8}") if (t.code, t.lanes) == (1, 1) and t.bits in (8, 16) else None, dtype, what)
    if dtype not in (None, own):
        raise TypeError("amp: this array says itself which dtype it has, and it is another one than dtype=")
    # the capsule is not marked as used: when it goes, its maker is told so
    return Borrowed(capsule, (t.data or 0) + t.byte_offset, own, shape, tuple(t.device), readonly)


def _cuda_interface(a, dtype, stream):
    face = a.__cuda_array_interface__
    kind, shape, (data, readonly) = np.dtype(face["typestr"]), face["shape"], face["data"]
    if face.get("mask") is not None:
        raise TypeError("amp: an array with a mask")
    strides = face.get("strides")
    if strides is not None and (any(s % kind.itemsize for s in strides) or not _compact(shape, [s // kind.itemsize for s in strides])):
        raise TypeError("amp: a contiguous array is needed, and this one is not: copy it")
    if face.get("stream") not in (None, stream):
        raise BufferError("amp: this array's work is queued on another stream than the context's: synchronize it, and give it without a stream")
    if kind.byteorder == ">":
        raise TypeError(f"amp: {face['typestr']} has its bytes in the other order")
    dtype = dtype_of(np.empty(0, kind)) if dtype is None else _bits(kind, dtype, kind)
    return Borrowed(a, data, dtype, shape, (CUDA, None), readonly)


def _lies_on(device, number):
    """Refuses an array that a context cannot reach: number None: the CPU; else that GPU."""
    host = device[0] in (CPU, PINNED, MANAGED)
    here = device[0] == MANAGED or (device[0] == CUDA and device[1] in (None, number))
    if host if number is None else here:
        return
    kinds = {CPU: "the CPU", CUDA: "a GPU", PINNED: "the CPU, page-locked"}
    raise ValueError(f"amp: the array lies on {kinds.get(device[0], f'a device of kind {device[0]} in DLPack')}{'' if device[0] != CUDA or device[1] is None else f' ({device[1]})'}, "
                     f"the context is on {'the CPU' if number is None else f'GPU {number}'}: copy it")


ANYWHERE = -1


def borrow(a, dtype=None, writable=False, stream=None, on=ANYWHERE):
    """Any array, where it lies. dtype: of bits (uint16, uint8), or None. stream: what work on it is queued on, for arrays on a GPU. on: a GPU's number, None
    for the CPU, or ANYWHERE."""
    if on != ANYWHERE and hasattr(a, "__dlpack__"):
        _lies_on(tuple(a.__dlpack_device__()), on)
    if isinstance(a, np.ndarray):
        b = _numpy(a, dtype)
    elif hasattr(a, "__dlpack__"):
        b = _dlpack(a, dtype, stream if a.__dlpack_device__()[0] == CUDA else None)
    elif hasattr(a, "__cuda_array_interface__"):
        b = _cuda_interface(a, dtype, stream)
    elif hasattr(a, "__array_interface__"):
        b = _numpy(np.asarray(a), dtype)
    else:
        raise TypeError(f"amp: a {type(a).__name__} is no array: neither numpy's, nor one with __dlpack__, __array_interface__ or __cuda_array_interface__")
    if on != ANYWHERE:
        _lies_on(b.device, on)
    if writable and b.readonly:
        raise TypeError("amp: this array is read-only, and something would be written to it")
    return b


class Array:
    """Memory of amp's: .dtype, .shape, .device. It is given to other libraries where it lies, by DLPack and by the two array interfaces, in which
    the bits of BF16 and FP8 are uint16 and uint8; DLPack has those formats. It keeps what owns the memory alive, and so does whatever is made of it."""

    def __init__(self, ctx, bits, dtype):
        self.ctx, self._bits, self.dtype, self.shape = ctx, bits, dtype, bits.shape
        self.device = (CPU, 0) if ctx.device is None else (CUDA, ctx.device)

    def numpy(self):
        """On the CPU a view, on a GPU a copy."""
        return self._bits if self.ctx.device is None else self.ctx.to_host(self)

    @property
    def __array_interface__(self):
        if self.ctx.device is not None:
            raise AttributeError("amp: this array is on a GPU: .numpy() copies it")
        return self._bits.__array_interface__

    @property
    def __cuda_array_interface__(self):
        if self.ctx.device is None:
            raise AttributeError("amp: this array is on the CPU")
        face = self._bits.__array_interface__
        return {"version": 3, "shape": self.shape, "typestr": face["typestr"], "data": (face["data"][0], False), "strides": None, "stream": self.ctx.stream}

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None, **arguments):
        """numpy's own capsule, in which dtype and device are put right. On a GPU all work on the array is done then, so that any stream will do."""
        if self.ctx.device is not None:
            self.ctx.sync()
            if arguments.pop("copy", None) or arguments.pop("dl_device", None) not in (None, self.device):
                raise BufferError("amp: an array on a GPU is given where it lies, and not as a copy")
        try:
            capsule = self._bits.__dlpack__(**arguments)
        except TypeError:  # a numpy of before 2.1
            capsule = self._bits.__dlpack__()
        tensor, _ = _opened(capsule)
        tensor.code, tensor.bits = _CODES[self.dtype]
        tensor.device[:] = self.device
        return capsule
