"""Graphs of a few operations, and their .tflite files."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from skillet.conformance._flatbuffer import write

if TYPE_CHECKING:
    from typing import Any

    from skillet.conformance._flatbuffer import Table

TYPE_CODES = {"float32": 0, "int32": 2, "uint8": 3, "int64": 4, "bool": 6, "int16": 7, "int8": 9}

# Options of an operation: its number in the schema's union, and its fields in order ("b": a byte, an enum or a bool).
OPTIONS: dict[str, tuple[int, str]] = {
    "Conv2DOptions": (1, "padding:b stride_w:i stride_h:i activation:b dilation_w:i dilation_h:i"),
    "DepthwiseConv2DOptions": (2, "padding:b stride_w:i stride_h:i multiplier:i activation:b dilation_w:i dilation_h:i"),
    "Pool2DOptions": (5, "padding:b stride_w:i stride_h:i filter_w:i filter_h:i activation:b"),
    "FullyConnectedOptions": (8, "activation:b format:b keep_num_dims:b"),
    "SoftmaxOptions": (9, "beta:f"),
    "ConcatenationOptions": (10, "axis:i activation:b"),
    "AddOptions": (11, "activation:b pot_scale_int16:b"),
    "L2NormOptions": (12, "activation:b"),
    "ResizeBilinearOptions": (15, "height:i width:i align_corners:b half_pixel_centers:b"),
    "ReshapeOptions": (17, "new_shape:vec:i"),
    "SpaceToDepthOptions": (19, "block_size:i"),
    "MulOptions": (21, "activation:b"),
    "GatherOptions": (23, "axis:i batch_dims:i"),
    "ReducerOptions": (27, "keep_dims:b"),
    "SubOptions": (28, "activation:b pot_scale_int16:b"),
    "DivOptions": (29, "activation:b"),
    "SqueezeOptions": (30, "squeeze_dims:vec:i"),
    "StridedSliceOptions": (32, "begin_mask:i end_mask:i ellipsis_mask:i new_axis_mask:i shrink_axis_mask:i"),
    "SplitOptions": (35, "num_splits:i"),
    "ArgMaxOptions": (40, "output_type:b"),
    "TransposeConvOptions": (49, "padding:b stride_w:i stride_h:i activation:b"),
    "ArgMinOptions": (57, "output_type:b"),
    "PackOptions": (59, "values_count:i axis:i"),
    "UnpackOptions": (64, "num:i axis:i"),
    "ResizeNearestNeighborOptions": (74, "align_corners:b half_pixel_centers:b"),
    "LeakyReluOptions": (75, "alpha:f"),
    "MirrorPadOptions": (77, "mode:b"),
    "SplitVOptions": (79, "num_splits:i"),
    "DepthToSpaceOptions": (94, "block_size:i"),
    "BatchMatMulOptions": (101, "adj_x:b adj_y:b"),
    "GeluOptions": (116, "approximate:b"),
}


MOST_VALUES = 1 << 26  # in a tensor


def checked(shape: tuple[int, ...]) -> tuple[int, ...]:
    if math.prod(shape) > MOST_VALUES or min(shape, default=1) < 1:
        raise ValueError(f"a tensor of {'x'.join(map(str, shape))} values")
    return shape


@dataclass
class Tensor:
    shape: tuple[int, ...]
    dtype: str
    scale: float | list[float] | None = None
    zero_point: int = 0
    axis: int = 0  # axis of the scales
    data: Any = None  # values of a constant

    def table(self, name: str, buffer: int) -> Table:
        out: Table = {0: ("vec:i", self.shape), 1: ("b", TYPE_CODES[self.dtype]), 2: ("I", buffer), 3: ("str", name)}
        if self.scale is not None:
            scales = self.scale if isinstance(self.scale, list) else [self.scale]
            out[4] = ("table", {2: ("vec:f", scales), 3: ("vec:q", [self.zero_point] * len(scales)), 6: ("i", self.axis)})
        return out


@dataclass
class Operation:
    name: str
    code: int
    version: int
    inputs: list[int]
    outputs: list[int]
    options: tuple[str, dict[str, Any]] | None

    def table(self, index: int) -> Table:
        out: Table = {0: ("I", index), 1: ("vec:i", self.inputs), 2: ("vec:i", self.outputs)}
        if self.options:
            number, fields = OPTIONS[self.options[0]]
            values = dict(self.options[1])
            kinds = [one.split(":", 1) for one in fields.split()]
            table: Table = {slot: (kind, values.pop(key)) for slot, (key, kind) in enumerate(kinds) if key in values}
            assert not values, f"{self.options[0]} has no {list(values)}"
            out[3], out[4] = ("B", number), ("table", table)
        return out


@dataclass
class Graph:
    tensors: list[Tensor] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def add(self, tensor: Tensor) -> int:
        checked(tensor.shape)
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def input(self, tensor: Tensor) -> int:
        self.inputs.append(self.add(tensor))
        return self.inputs[-1]

    def constant(self, values: Any, dtype: str = "int32", **more: Any) -> int:
        data = np.ascontiguousarray(np.array(values, dtype=dtype))
        return self.add(Tensor(tuple(data.shape), dtype, data=data, **more))

    def operation(self, name: str, code: int, version: int, inputs: list[int], *outputs: Tensor,
                  options: tuple[str, dict[str, Any]] | None = None) -> int:
        """Adds an operation. Returns the index of its first output."""
        made = [self.add(tensor) for tensor in outputs]
        self.operations.append(Operation(name, code, version, inputs, made, options))
        return made[0]

    def file(self) -> bytes:
        buffers: list[Table] = [{}]
        tensors = []
        for index, tensor in enumerate(self.tensors):
            if tensor.data is not None:
                buffers.append({0: ("raw", tensor.data.tobytes())})
            tensors.append(tensor.table(f"t{index}", len(buffers) - 1 if tensor.data is not None else 0))
        codes: list[Table] = [{0: ("b", min(one.code, 127)), 2: ("i", one.version), 3: ("i", one.code)} for one in self.operations]
        graph: Table = {0: ("tables", tensors), 1: ("vec:i", self.inputs), 2: ("vec:i", self.outputs),
                        3: ("tables", [one.table(index) for index, one in enumerate(self.operations)]), 4: ("str", "main")}
        return write({0: ("I", 3), 1: ("tables", codes), 2: ("tables", [graph]), 4: ("tables", buffers)}, b"TFL3")
