"""The C interface (skillet.h): its functions, its structs, its errors as exceptions."""

from __future__ import annotations

import ctypes
import functools
import operator
import os
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from skillet import _paths

MAX_RANK = 8


class Error(Exception):
    """An error that the library reported. Subclasses give the reason."""


class InvalidArgument(Error, ValueError):
    """An unknown device or option, an index or size that does not fit."""


class WrongType(InvalidArgument, TypeError):
    """The value is not text, a number or memory."""


class Closed(InvalidArgument):
    """The session, device or buffer has been closed."""


class Malformed(Error, ValueError):
    """The model file is damaged."""


class Unsupported(Error):
    """The request is valid, but neither the chip nor the CPU kernels can do it."""


class OutOfRange(Error, ValueError):
    """A value does not fit a field or a buffer."""


class IoFailed(Error, OSError):
    """The operating system reported an error."""


class DeviceFault(Error):
    """The device reported a fault."""


class TimedOut(Error, TimeoutError):
    """The device did not finish in time."""


class InternalError(Error):
    """A bug in Skillet, or out of memory."""


_ERRORS: dict[int, type[Error]] = {
    1: InvalidArgument,
    2: Malformed,
    3: Unsupported,
    4: OutOfRange,
    5: IoFailed,
    6: DeviceFault,
    7: TimedOut,
}


class TensorStruct(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("type", c_int),
        ("rank", c_int32),
        ("dims", c_int32 * MAX_RANK),
        ("bytes", c_size_t),
        ("scale", c_float),
        ("zero_point", c_int32),
    ]


class OptionStruct(ctypes.Structure):
    _fields_ = [("key", c_char_p), ("value", c_char_p)]


class OptionsStruct(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("tuned", c_int32),
        ("no_fallback", c_int32),
        ("timeout_ms", c_uint32),
        ("cache_dir", c_char_p),
        ("allow_unproven", c_int32),
        ("reserved", c_int32),
        ("cores", c_int32),
        ("per_channel", c_char_p),
        ("more", POINTER(OptionStruct)),
        ("more_count", c_size_t),
    ]


class DeviceStruct(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("device", c_char_p),
        ("title", c_char_p),
        ("kernel_driver", c_char_p),
        ("note", c_char_p),
        ("usable", c_int32),
        ("simulated", c_int32),
    ]


class BufferStruct(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("data", c_void_p),
        ("bytes", c_size_t),
        ("dmabuf_fd", c_int),
        ("serial", c_uint64),
    ]


class OpStruct(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("kind", c_char_p),
        ("output", c_char_p),
        ("why", c_char_p),
        ("note", c_char_p),
        ("part", c_uint32),
        ("on_npu", c_int32),
        ("unproven", c_int32),
        ("failed", c_int32),
        ("ms", c_double),
        ("part_ms", c_double),
    ]


class UseStruct(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("ops", c_size_t),
        ("npu_ops", c_size_t),
        ("part_ops", c_size_t),
        ("folded_ops", c_size_t),
    ]


class MakerStruct(ctypes.Structure):
    _fields_ = [("struct_bytes", c_size_t), ("kind", c_char_p), ("place", c_size_t)]


LogFunction = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)

_POINTERS = POINTER(c_void_p)
# name: (result type, argument types). A function with result `status` raises an exception on error.
_STATUS = "status"
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "skillet_list_devices": (_STATUS, [_POINTERS]),
    "skillet_list_count": (c_size_t, [c_void_p]),
    "skillet_list_at": (_STATUS, [c_void_p, c_size_t, POINTER(DeviceStruct)]),
    "skillet_free_list": (None, [c_void_p]),
    "skillet_options_help": (c_char_p, []),
    "skillet_open": (_STATUS, [c_char_p, _POINTERS]),
    "skillet_close": (None, [c_void_p]),
    "skillet_load_file": (_STATUS, [c_void_p, c_char_p, POINTER(OptionsStruct), _POINTERS]),
    "skillet_load_memory": (_STATUS, [c_void_p, c_void_p, c_size_t, POINTER(OptionsStruct), _POINTERS]),
    "skillet_close_model": (None, [c_void_p]),
    "skillet_input_count": (c_size_t, [c_void_p]),
    "skillet_output_count": (c_size_t, [c_void_p]),
    "skillet_input_info": (_STATUS, [c_void_p, c_size_t, POINTER(TensorStruct)]),
    "skillet_output_info": (_STATUS, [c_void_p, c_size_t, POINTER(TensorStruct)]),
    "skillet_output_maker": (_STATUS, [c_void_p, c_size_t, POINTER(MakerStruct)]),
    "skillet_run_on": (_STATUS, [c_void_p, _POINTERS, _POINTERS]),
    "skillet_start_on": (_STATUS, [c_void_p, _POINTERS, _POINTERS]),
    "skillet_wait": (_STATUS, [c_void_p]),
    "skillet_copied_bytes": (c_uint64, [c_void_p]),
    "skillet_buffer_alloc": (_STATUS, [c_void_p, c_size_t, _POINTERS, POINTER(c_int)]),
    "skillet_buffer_import": (_STATUS, [c_void_p, c_int, _POINTERS, POINTER(c_size_t)]),
    "skillet_buffer_free": (_STATUS, [c_void_p, c_void_p]),
    "skillet_buffer_find": (c_int, [c_void_p, c_size_t, POINTER(BufferStruct)]),
    "skillet_explain": (c_char_p, [c_void_p]),
    "skillet_get_use": (_STATUS, [c_void_p, POINTER(UseStruct)]),
    "skillet_op_count": (c_size_t, [c_void_p]),
    "skillet_op": (_STATUS, [c_void_p, c_size_t, POINTER(OpStruct)]),
    "skillet_set_log": (_STATUS, [LogFunction, c_void_p, c_int]),
    "skillet_last_error": (c_char_p, []),
    "skillet_version": (c_char_p, []),
}


@functools.cache
def library() -> ctypes.CDLL:
    """Returns the library, which is loaded at the first call. Raises ImportError if it is missing or too old."""
    name = _paths.library_name()
    try:
        loaded = ctypes.CDLL(name)
        for function, (result, arguments) in _FUNCTIONS.items():
            entry = getattr(loaded, function)
            entry.argtypes = arguments
            entry.restype = c_int if result is _STATUS else result
    except (OSError, AttributeError) as cause:
        raise ImportError(
            f"{cause}; the C library is looked for as SKILLET_C_LIBRARY says, in {_paths.PACKAGE / 'lib'}, "
            "and where the system has its libraries"
        ) from cause
    return loaded


def call(function: str, *arguments: Any) -> None:
    """Calls a function that returns a status, without holding Python's global lock.
    Raises the exception of that status."""
    loaded = library()
    status: int = getattr(loaded, function)(*arguments)
    if status != 0:
        raise _ERRORS.get(status, InternalError)(text(loaded.skillet_last_error()))


def c_text(value: Any, what: str) -> bytes:
    """Encodes VALUE, text or a path, for C.
    Raises InvalidArgument if it contains a NUL, at which C would cut it off."""
    try:
        raw = os.fsencode(value)
    except (TypeError, UnicodeError):
        raise WrongType(f"{what}: must be a text, not {value!r}") from None
    if b"\0" in raw:
        raise InvalidArgument(f"{what}: {value!r} holds a NUL")
    return raw


def whole(value: Any, what: str, lowest: int, highest: int) -> int:
    """Returns VALUE as an integer.
    Raises InvalidArgument if it is not from LOWEST to HIGHEST, since ctypes would truncate it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise WrongType(f"{what}: must be a whole number, not {value!r}") from None
    if not lowest <= number <= highest:
        raise InvalidArgument(f"{what}: {number} is not from {lowest} to {highest}")
    return number


def text(raw: bytes | None) -> str:
    return "" if raw is None else raw.decode(errors="replace")


def version() -> str:
    """Returns the version of the library, such as "0.1.0"."""
    return text(library().skillet_version())


def options_help() -> str:
    """Returns one line for each option that Session() accepts by name."""
    return text(library().skillet_options_help())
