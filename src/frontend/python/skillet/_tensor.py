"""Describes an input or output of a model."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillet._library import InvalidArgument, TensorStruct, Unsupported, call, text

if TYPE_CHECKING:
    from typing import Any

    import numpy

    from skillet._memory import Array

# Indexed by skillet_type.
_TYPES = ("float32", "float16", "int8", "uint8", "int16", "int32", "int64", "bool")


@dataclass(frozen=True)
class TensorInfo:
    name: str
    type: str  # NumPy's name of the type; "" if NumPy has no such type
    shape: tuple[int, ...]  # outermost first; images are N, height, width, channels
    nbytes: int
    scale: float  # real = scale * (stored - zero_point); 0: not quantized
    zero_point: int

    @property
    def dtype(self) -> numpy.dtype[Any]:
        import numpy

        if not self.type:
            raise Unsupported(f"'{self.name}': NumPy has no type for it")
        return numpy.dtype(self.type)

    def empty(self) -> Array:
        """Returns an uninitialized array of the tensor's type and shape."""
        import numpy

        array: Array = numpy.empty(self.shape, self.dtype)
        return array

    def check(self, array: Any) -> Array:
        """Returns ARRAY in contiguous memory.

        Raises InvalidArgument, with a hint, if its type or shape is not the tensor's."""
        import numpy

        given = numpy.asarray(array)
        if given.dtype != self.dtype:
            hint = "; quantize() makes it" if self.scale and given.dtype.kind == "f" else ""
            raise InvalidArgument(f"'{self.name}' takes {self.type}, not {given.dtype}{hint}")
        if given.shape != self.shape:
            raise InvalidArgument(f"'{self.name}' has shape {self.shape}, not {given.shape}")
        whole: Array = numpy.ascontiguousarray(given).reshape(self.shape)
        return whole

    def quantize(self, real: Any) -> Array:
        """Converts real numbers to the model's quantized type.

        Rounds to nearest, halves away from zero as TensorFlow Lite does, and clamps to the range of the type.
        Raises InvalidArgument for NaN, and for a tensor that is not quantized with one scale."""
        import numpy

        self._need_scale()
        given = numpy.asarray(real, numpy.float64)
        if numpy.isnan(given).any():
            raise InvalidArgument(f"'{self.name}' cannot hold NaN")
        steps = numpy.clip(given / self.scale, -(2.0**40), 2.0**40)
        whole = numpy.trunc(steps)
        stored = whole + numpy.where(numpy.abs(steps - whole) >= 0.5, numpy.copysign(1.0, steps), 0.0) + self.zero_point
        bounds = numpy.iinfo(self.dtype)
        array: Array = numpy.clip(stored, bounds.min, bounds.max).astype(self.dtype)
        return array

    def dequantize(self, stored: Any) -> Array:
        """Converts quantized values, in the model's own type and of any shape, to real numbers."""
        import numpy

        self._need_scale()
        given = numpy.asarray(stored)
        if given.dtype != self.dtype:
            raise InvalidArgument(f"'{self.name}' stores {self.type}, not {given.dtype}")
        real = self.scale * (given.astype(numpy.float64) - self.zero_point)
        array: Array = numpy.asarray(real, numpy.float32)
        return array

    def _need_scale(self) -> None:
        if not self.scale:
            raise InvalidArgument(f"'{self.name}' is not quantized with one scale")


def read(function: str, model: int, index: int) -> TensorInfo:
    raw = TensorStruct()
    call(function, model, index, ctypes.byref(raw))
    return TensorInfo(
        name=text(raw.name),
        type=_TYPES[raw.type] if raw.type < len(_TYPES) else "",
        shape=tuple(raw.dims[: raw.rank]),
        nbytes=raw.bytes,
        scale=raw.scale,
        zero_point=raw.zero_point,
    )
