"""Reads the dimensions of a model of one operation from its .tflite file."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

NAMES = {0: "ADD", 1: "AVERAGE_POOL_2D", 2: "CONCATENATION", 3: "CONV_2D", 4: "DEPTHWISE_CONV_2D", 5: "DEPTH_TO_SPACE", 6: "DEQUANTIZE", 9: "FULLY_CONNECTED",
         11: "L2_NORMALIZATION", 14: "LOGISTIC", 17: "MAX_POOL_2D", 18: "MUL", 19: "RELU", 20: "RELU_N1_TO_1", 21: "RELU6", 22: "RESHAPE", 23: "RESIZE_BILINEAR",
         25: "SOFTMAX", 26: "SPACE_TO_DEPTH", 28: "TANH", 34: "PAD", 36: "GATHER", 39: "TRANSPOSE", 40: "MEAN", 41: "SUB", 42: "DIV", 43: "SQUEEZE", 45: "STRIDED_SLICE",
         47: "EXP", 49: "SPLIT", 54: "PRELU", 55: "MAXIMUM", 57: "MINIMUM", 60: "PADV2", 65: "SLICE", 67: "TRANSPOSE_CONV", 74: "SUM", 75: "SQRT", 76: "RSQRT",
         82: "REDUCE_MAX", 83: "PACK", 88: "UNPACK", 89: "REDUCE_MIN", 97: "RESIZE_NEAREST_NEIGHBOR", 98: "LEAKY_RELU", 100: "MIRROR_PAD", 101: "ABS",
         114: "QUANTIZE", 117: "HARD_SWISH", 150: "GELU"}
CONVOLUTIONS = (3, 4)
AXES = ("n", "height", "width", "channels")


class Table:
    """A FlatBuffers table. Invalid data raises struct.error or IndexError."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        self._vtable = at - self._number("i", at)

    def _number(self, code: str, at: int) -> int:
        if at < 0:
            raise IndexError(at)
        return int(struct.unpack_from("<" + code, self._data, at)[0])

    def _place(self, slot: int) -> int:
        offset = self._number("H", self._vtable + 4 + 2 * slot) if 4 + 2 * slot < self._number("H", self._vtable) else 0
        return self._at + offset if offset else 0

    def number(self, slot: int, code: str = "i") -> int:
        place = self._place(slot)
        return self._number(code, place) if place else 0

    def table(self, slot: int) -> Table | None:
        place = self._place(slot)
        return Table(self._data, place + self._number("I", place)) if place else None

    def numbers(self, slot: int, code: str = "i") -> list[int]:
        place = self._place(slot)
        if not place:
            return []
        place += self._number("I", place)
        return list(struct.unpack_from(f"<{self._number('I', place)}{code}", self._data, place + 4))

    def tables(self, slot: int) -> list[Table]:
        begin = self._place(slot)
        begin += self._number("I", begin) + 4 if begin else 0
        return [Table(self._data, begin + 4 * i + offset) for i, offset in enumerate(self.numbers(slot, "I"))]


def _shape(prefix: str, tensor: Table) -> dict[str, int]:
    shape = tensor.numbers(0)
    out = dict(zip(AXES[-len(shape):], shape[-len(AXES):]))
    out.pop("n", None)
    quantization = tensor.table(4)
    points = quantization.numbers(3, "q") if quantization else []
    return {f"{prefix}_{name}": value for name, value in (*out.items(), *(("zero_point", one) for one in points[:1]))}


def dimensions(file: Path) -> tuple[str, dict[str, int]] | None:
    """Returns the operation's name, with its stride if that is not 1, and its dimensions by name.

    Returns None if the file has several operations, or is not a model."""
    try:
        data = file.read_bytes()
        model = Table(data, struct.unpack_from("<I", data)[0])
        graph = model.tables(2)[0]
        (operation,) = graph.tables(3)
        tensors = graph.tables(0)
        code = model.tables(1)[operation.number(0)]
        number = max(code.number(0, "b"), code.number(3))
        name = NAMES.get(number, f"operation {number}")
        inputs, outputs = operation.numbers(1), operation.numbers(2)
        out = _shape("in", tensors[inputs[0]]) | _shape("out", tensors[outputs[0]])
        if number in CONVOLUTIONS:
            _, height, width, _ = tensors[inputs[1]].numbers(0)
            out |= {"kernel_height": height, "kernel_width": width}
            options = operation.table(4)
            stride = options.number(1) if options else 1
            name += f" stride {stride}" if stride > 1 else ""
    except (OSError, ValueError, IndexError, struct.error, MemoryError):
        return None
    sizes = [name for name in out if not name.endswith("point")]
    products = {f"{a} * {b}": out[a] * out[b] for a, b in itertools.combinations(sizes, 2)}
    return name, out | products
