"""Gives the library access to the memory of Python's objects, and Python to the library's."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from skillet._library import InvalidArgument, WrongType

if TYPE_CHECKING:
    import numpy
    from typing_extensions import TypeAlias

    Array: TypeAlias = "numpy.ndarray[Any, numpy.dtype[Any]]"
    # Objects with the buffer protocol: arrays, bytearray, memoryview. Also bytes if the memory is only read.
    Bytes: TypeAlias = Union[Array, bytes, bytearray, memoryview]


def borrow(owner: Bytes, nbytes: int, what: str, writable: bool) -> ctypes.Array[ctypes.c_ubyte]:
    """Returns the memory of OWNER, and keeps OWNER alive. Copies it if OWNER is read-only.

    Raises InvalidArgument if the memory is not NBYTES in one piece, or is read-only although WRITABLE is set."""
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
    """Returns a view of NBYTES at ADDRESS. The view keeps OWNER alive, which frees the memory."""
    view = (ctypes.c_ubyte * nbytes).from_address(address)
    view.owner = owner  # type: ignore[attr-defined]
    return view
