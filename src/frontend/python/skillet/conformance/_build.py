"""Shared by the makers of operations: parameters as text, and random quantization and data derived from the case's name."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from skillet.conformance._model import Graph, Tensor, checked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Shape = Sequence[int]

DTYPES = {"u8": "uint8", "i8": "int8", "i16": "int16", "f32": "float32"}
ACTIVATIONS = {"none": 0, "relu": 1, "relun1": 2, "relu6": 3}
STEPS_OF_UNIFORM = 74.0  # the standard deviation of uniform values from 0 to 255
WIDTH = {"mid": 5.0, "fine": 1.25, "coarse": 40.0, "tiny": 0.04}  # an output's range, in standard deviations of its sums


def pair(text: str) -> tuple[int, int]:
    """Parses "k3x3" or "s2" to (rows, columns)."""
    first, _, second = text.lstrip("ksd").partition("x")
    return int(first), int(second or first)


def window_output(size: int, kernel: int, stride: int, dilation: int, padding: str) -> int:
    reach = (kernel - 1) * dilation + 1
    return -(-size // stride) if padding == "same" else (size - reach) // stride + 1


class Build:
    """A case under construction. PARAMS are the parameters in its name."""

    def __init__(self, name: str, params: dict[str, str]) -> None:
        self.graph, self.params = Graph(), params
        self.random = np.random.RandomState(zlib.crc32(name.encode()))
        self.dtype = DTYPES[params["type"]]

    def __getitem__(self, key: str) -> str:
        return self.params[key]

    def number(self, key: str) -> int:
        return int(self.params[key])

    @property
    def is_float(self) -> bool:
        return self.dtype == "float32"

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return (self.number("b"), *pair(self["size"]), self.number("c"))

    def drawn_scale(self, low: float = 0.02, high: float = 0.06) -> float:
        return float(np.float32(self.random.uniform(low, high)))

    def drawn_zero(self) -> int:
        if self.dtype in ("int16", "float32"):
            return 0
        low, high = (0, 255) if self.dtype == "uint8" else (-128, 127)
        kind = self.params.get("zp", "mid")
        return {"low": low, "high": high, "sym": (low + high + 1) // 2}.get(kind, int(self.random.randint(low + 85, high - 85)))

    def tensor(self, shape: Shape, scale: float | None = None, zero: int | None = None) -> Tensor:
        """Returns a tensor of the case's type. Quantization that is not given is random."""
        if self.is_float:
            return Tensor(tuple(shape), self.dtype)
        scale = self.drawn_scale() / (256 if self.dtype == "int16" else 1) if scale is None else scale
        return Tensor(tuple(shape), self.dtype, float(np.float32(scale)), self.drawn_zero() if zero is None else zero)

    def input(self, shape: Shape | None = None, **more: Any) -> int:
        return self.graph.input(self.tensor(self.shape if shape is None else shape, **more))

    def like(self, index: int, shape: Shape | None = None) -> Tensor:
        """Returns a tensor with the quantization of tensor INDEX."""
        one = self.graph.tensors[index]
        return Tensor(one.shape if shape is None else tuple(shape), one.dtype, one.scale, one.zero_point)

    def shape_of(self, index: int) -> tuple[int, ...]:
        return self.graph.tensors[index].shape

    def values(self, shape: Shape, dtype: str) -> Any:
        checked(tuple(shape))
        if dtype == "float32":
            return np.asarray(self.random.uniform(-3, 3, tuple(shape)), np.float32)
        if dtype == "bool":
            return self.random.randint(0, 2, tuple(shape)).astype(bool)
        info = np.iinfo(dtype)
        return self.random.randint(info.min, info.max + 1, tuple(shape), dtype=np.int64).astype(dtype)

    def constant_like(self, index: int, shape: Shape) -> int:
        """Adds a constant with random values in the type of tensor INDEX and its own scale."""
        one = self.tensor(shape) if self.graph.tensors[index].scale is not None else Tensor(tuple(shape), self.dtype)
        one.data = self.values(shape, one.dtype)
        return self.graph.add(one)

    def weights(self, shape: Shape, channel_axis: int, per_channel: bool) -> int:
        checked(tuple(shape))
        if self.is_float:
            return self.graph.constant(self.random.standard_normal(tuple(shape)), "float32")
        if self.dtype == "uint8":
            zero = int(self.random.randint(100, 157))
            return self.graph.constant(self.values(shape, "uint8"), "uint8", scale=self.drawn_scale(0.002, 0.02), zero_point=zero)
        scales = [self.drawn_scale(0.002, 0.02) for _ in range(shape[channel_axis] if per_channel else 1)]
        data = self.random.randint(-127, 128, tuple(shape))
        return self.graph.constant(data, "int8", scale=scales if per_channel else scales[0], axis=channel_axis)

    def sum_deviation(self, x: int, weights: int, terms: int) -> float:
        """Returns the standard deviation of a sum of TERMS products, in real numbers."""
        one, other = self.graph.tensors[x], self.graph.tensors[weights]
        scales = other.scale if isinstance(other.scale, list) else [float(other.scale or 0)]
        steps = STEPS_OF_UNIFORM * (256 if one.dtype == "int16" else 1)
        return float(float(one.scale or 0) * steps * float(np.mean(scales)) * STEPS_OF_UNIFORM * terms**0.5)  # type: ignore[arg-type]

    def bias(self, x: int, weights: int, channels: int, terms: int) -> int:
        if self.is_float:
            return self.graph.constant(self.random.standard_normal(channels), "float32")
        one, other = self.graph.tensors[x], self.graph.tensors[weights]
        scales = other.scale if isinstance(other.scale, list) else [other.scale]
        products = [float(np.float32(float(one.scale) * float(scale))) for scale in scales]  # type: ignore[arg-type]
        reach = max(1.0, self.sum_deviation(x, weights, terms) / float(np.mean(products)))
        data = np.rint(self.random.uniform(-reach, reach, channels))
        wide = len(products) > 1
        return self.graph.constant(data, "int64" if one.dtype == "int16" else "int32", scale=products if wide else products[0])

    def sums(self, shape: Shape, x: int, weights: int, terms: int) -> Tensor:
        """Returns the output of sums. Its range is that of the sums, or narrower or wider (parameter `scale`)."""
        if self.is_float:
            return Tensor(tuple(shape), "float32")
        steps = 65536 if self.dtype == "int16" else 256
        return self.tensor(shape, self.sum_deviation(x, weights, terms) * WIDTH[self.params.get("scale", "mid")] / steps)

    def inputs(self, which: int) -> list[Any]:
        """Returns data for the inputs. 0: a quarter of the values are the smallest or largest of the type; 1: uniform."""
        out = []
        for index in self.graph.inputs:
            one = self.graph.tensors[index]
            data = self.values(one.shape, one.dtype)
            if which == 0 and one.dtype not in ("float32", "bool"):
                info, drawn = np.iinfo(one.dtype), self.random.randint(0, 8, one.shape)
                data = np.where(drawn == 0, info.min, np.where(drawn == 1, info.max, data)).astype(one.dtype)
            out.append(data)
        return out
