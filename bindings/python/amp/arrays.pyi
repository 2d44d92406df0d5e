"""The types of arrays.py."""
from typing import Any, Dict, Optional, Tuple

import numpy.typing as npt

from . import _amp as c

CPU: int
CUDA: int
PINNED: int
MANAGED: int
ANYWHERE: Any

class Borrowed:
    raw: c.amp_array
    keep: Any
    shape: Tuple[int, ...]
    device: Tuple[int, int]
    readonly: bool
    def __init__(self, keep: Any, data: Optional[int], dtype: int, shape: Any, device: Any, readonly: bool) -> None: ...

def borrow(a: Any, dtype: Optional[int] = None, writable: bool = False, stream: Any = None, on: Any = ...) -> Borrowed: ...

class Array:
    shape: Tuple[int, ...]
    dtype: int
    def __init__(self, ctx: Any, bits: Any, dtype: int) -> None: ...
    def numpy(self) -> npt.NDArray[Any]: ...
    @property
    def __array_interface__(self) -> Dict[str, Any]: ...
    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]: ...
    def __dlpack_device__(self) -> Tuple[int, int]: ...
    def __dlpack__(self, stream: Any = None, **arguments: Any) -> Any: ...
