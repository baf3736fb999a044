"""Memory of Python's objects for the library, and the library's for Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from skillet._library import InvalidArgument, WrongType

if TYPE_CHECKING:
    import numpy
    from typing_extensions import TypeAlias

    Array: TypeAlias = "numpy.ndarray[Any, numpy.dtype[Any]]"
    # Whatever has the buffer protocol: arrays, bytearray, memoryview; bytes where it is only read.
    Bytes: TypeAlias = Union[Array, bytes, bytearray, memoryview]


def borrow(owner: Bytes, nbytes: int, what: str, writable: bool) -> ctypes.Array[ctypes.c_ubyte]:
    """The memory of OWNER, which the result keeps alive; a copy where it is only read and Python may not write to it."""
    try:
        view = memoryview(owner)  # type: ignore[arg-type]
    except TypeError:
        raise WrongType(f"{what}: {type(owner).__name__} is no memory (an array, a bytearray, a view)") from None
    if not view.c_contiguous:
        raise InvalidArgument(f"{what}: its memory is not in one piece, in C order")
    if view.nbytes != nbytes:
        raise InvalidArgument(f"{what}: {view.nbytes} bytes, not {nbytes}")
    if writable and view.readonly:
        raise InvalidArgument(f"{what}: is read-only")
    kind = ctypes.c_ubyte * nbytes
    if nbytes == 0:
        return kind()
    return kind.from_buffer_copy(view) if view.readonly else kind.from_buffer(view)


def pointers(memory: Sequence[ctypes.Array[ctypes.c_ubyte]]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * max(len(memory), 1))(*[ctypes.addressof(one) for one in memory])


def view_of(address: int, nbytes: int, owner: object) -> ctypes.Array[ctypes.c_ubyte]:
    """Memory at ADDRESS, which OWNER frees when nobody uses it any more: what is made of the result keeps OWNER alive."""
    view = (ctypes.c_ubyte * nbytes).from_address(address)
    view.owner = owner  # type: ignore[attr-defined]
    return view
