"""Writes graphs as ONNX files: each operation in real numbers between DequantizeLinear and QuantizeLinear, channels first."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from skillet.conformance._model import Graph, Operation

    Attributes = dict[str, Any]

OPSET, IR_VERSION = 20, 9
ELEMENT_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}
FIRST, BACK = (0, 3, 1, 2), (0, 2, 3, 1)  # transposes to channels first, and back to the order of .tflite files
AXIS = {0: 0, 1: 2, 2: 3, 3: 1}  # with four axes: the position of a channels-last axis in channels-first order


class NoForm(ValueError):
    """A part of the model that ONNX cannot express."""


# ---- protobuf: a message is a list of fields, each a number and its content -----------------------------------

def varint(value: int) -> bytes:
    out, value = bytearray(), value & (1 << 64) - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def message(*fields: tuple[int, Any]) -> bytes:
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            out += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def tensor(name: str, data: Any) -> bytes:
    return message(*((1, int(size)) for size in data.shape), (2, ELEMENT_TYPES[data.dtype.name]), (8, name), (9, np.ascontiguousarray(data).tobytes()))


def attribute(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        return message((1, name), (4, value), (20, 3))
    if isinstance(value, float):
        return message((1, name), (2, value), (20, 1))
    if isinstance(value, int):
        return message((1, name), (3, value), (20, 2))
    return message((1, name), *((8, int(one)) for one in value), (20, 7))


def value_info(name: str, dtype: str, shape: tuple[int, ...]) -> bytes:
    dims = message(*((1, message((1, int(size)))) for size in shape))
    return message((1, name), (2, message((1, message((1, ELEMENT_TYPES[dtype]), (2, dims))))))


def first(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(shape[at] for at in FIRST) if len(shape) == 4 else tuple(shape)


class Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._count = 0

    def name(self, what: str) -> str:
        self._count += 1
        return f"{what}_{self._count}"

    def constant(self, data: Any) -> str:
        name = self.name("c")
        self._constants.append(tensor(name, data))
        return name

    def node(self, op: str, inputs: list[str], output: str = "", **attributes: Any) -> str:
        output = output or self.name(op)
        self._nodes.append(message(*((1, one) for one in inputs), *((2, one) for one in output.split()), (4, op), *((5, attribute(*one)) for one in attributes.items())))
        return output

    def _dequantized(self, x: str, scale: Any, zero: Any, axis: int) -> str:
        scales = np.asarray(scale, np.float32)
        points = self.constant(np.full(scales.shape, zero[0], zero[1]))
        attributes: Attributes = {"axis": axis} if scales.ndim else {}
        return self.node("DequantizeLinear", [x, self.constant(scales), points], **attributes)

    def real(self, index: int, data: Any = None, axis: int = 0) -> str:
        """Adds a tensor in real numbers and returns its name.

        DATA replaces the values of a constant. AXIS is the axis of its scales."""
        one = self.graph.tensors[index]
        if data is None and one.data is not None:
            data = one.data.transpose(FIRST) if one.data.ndim == 4 else one.data
        name = f"t{index}" if data is None else self.constant(data)
        if one.dtype == "float32":
            return name
        if one.scale is None:
            raise NoForm(f"a tensor of {one.dtype} without a scale")
        return self._dequantized(name, one.scale, (one.zero_point, one.dtype), axis)

    def give(self, index: int, real: str) -> None:
        one = self.graph.tensors[index]
        if one.dtype == "float32":
            self.node("Identity", [real], f"t{index}")
        else:
            scale, zero = self.constant(np.asarray(one.scale, np.float32)), self.constant(np.asarray(one.zero_point, one.dtype))
            self.node("QuantizeLinear", [real, scale, zero], f"t{index}")

    def file(self) -> bytes:
        for one in self.graph.tensors:
            if one.dtype == "int16":
                raise NoForm("16-bit activations")
        for operation in self.graph.operations:
            make = MAKERS.get(operation.name)
            if make is None:
                raise NoForm(operation.name)
            made = make(self, operation, operation.options[1] if operation.options else {})
            for index, real in zip(operation.outputs, made if isinstance(made, list) else [made]):
                self.give(index, real)
        tensors = self.graph.tensors
        kinds = [(f"t{at}", tensors[at].dtype, first(tensors[at].shape)) for at in (*self.graph.inputs, *self.graph.outputs)]
        for _, dtype, _ in kinds:
            if dtype not in ELEMENT_TYPES:
                raise NoForm(dtype)
        infos, count = [value_info(*one) for one in kinds], len(self.graph.inputs)
        graph = message(*((1, one) for one in self._nodes), (2, "main"), *((5, one) for one in self._constants), *((11, one) for one in infos[:count]),
                        *((12, one) for one in infos[count:]))
        return message((1, IR_VERSION), (7, graph), (8, message((1, ""), (2, OPSET))))


# ---- operations: each function returns the name of its result in real numbers ---------------------------------

def activated(w: Writer, x: str, options: Attributes) -> str:
    bounds = {0: None, 1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}[options.get("activation", 0)]
    if bounds is None:
        return x
    return w.node("Relu", [x]) if bounds[1] is None else clipped(w, x, bounds)


def clipped(w: Writer, x: str, bounds: tuple[float, float]) -> str:
    return w.node("Clip", [x, *(w.constant(np.float32(one)) for one in bounds)])


def margins(size: int, kernel: int, stride: int, dilation: int, out: int) -> tuple[int, int]:
    total = max(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - size)
    return total // 2, total - total // 2


def window(w: Writer, operation: Operation, options: Attributes, x: int, kernel: tuple[int, ...]) -> Attributes:
    (_, height, width, _), (_, out_height, out_width, _) = w.graph.tensors[x].shape, w.graph.tensors[operation.outputs[0]].shape
    strides, dilations = (options["stride_h"], options["stride_w"]), (options.get("dilation_h", 1), options.get("dilation_w", 1))
    out = {"kernel_shape": kernel, "strides": strides}
    if not options["padding"]:
        pads = [margins(*one) for one in zip((height, width), kernel, strides, dilations, (out_height, out_width))]
        out["pads"] = (pads[0][0], pads[1][0], pads[0][1], pads[1][1])
    return out | ({"dilations": dilations} if "dilation_h" in options else {})


def conv(w: Writer, operation: Operation, options: Attributes) -> str:
    x, weights, bias = operation.inputs
    data = w.graph.tensors[weights].data
    is_depthwise = operation.name == "DEPTHWISE_CONV_2D"
    data = data.transpose((3, 0, 1, 2)) if is_depthwise else data.transpose(FIRST)
    groups: Attributes = {"group": int(w.graph.tensors[x].shape[3])} if is_depthwise else {}
    inputs = [w.real(x), w.real(weights, data), w.real(bias)]
    return activated(w, w.node("Conv", inputs, **window(w, operation, options, x, data.shape[2:]), **groups), options)


def transpose_conv(w: Writer, operation: Operation, options: Attributes) -> str:
    _, weights, x, *bias = operation.inputs
    data = w.graph.tensors[weights].data.transpose((3, 0, 1, 2))  # outputs, rows, columns, inputs become inputs, outputs, rows, columns
    strides, kernel = (options["stride_h"], options["stride_w"]), data.shape[2:]
    sizes, outs = w.graph.tensors[x].shape[1:3], w.graph.tensors[operation.outputs[0]].shape[1:3]
    pads, more = [], []
    for size, out, filter_size, stride in zip(sizes, outs, kernel, strides):
        surplus = (size - 1) * stride + filter_size - out
        pads.append(max(surplus, 0) // 2)
        more.append((max(surplus, 0) - pads[-1], max(-surplus, 0)))
    if any(missing >= stride for (_, missing), stride in zip(more, strides)):
        raise NoForm("TRANSPOSE_CONV with a filter smaller than its stride")
    return w.node("ConvTranspose", [w.real(x), w.real(weights, data, 1), *(w.real(one) for one in bias)], strides=strides, kernel_shape=kernel,
                  pads=(*pads, *(one for one, _ in more)), output_padding=tuple(missing for _, missing in more))


def pool(w: Writer, operation: Operation, options: Attributes) -> str:
    x = operation.inputs[0]
    op = "MaxPool" if operation.name == "MAX_POOL_2D" else "AveragePool"
    return activated(w, w.node(op, [w.real(x)], **window(w, operation, options, x, (options["filter_h"], options["filter_w"]))), options)


def dense(w: Writer, operation: Operation, options: Attributes) -> str:
    x, weights = operation.inputs[:2]
    inputs = [w.real(x), w.real(weights), *(w.real(one) for one in operation.inputs[2:])]
    return activated(w, w.node("Gemm", inputs, transB=1), options)


def operand(w: Writer, index: int, rank: int) -> str:
    one = w.graph.tensors[index]
    is_channel = one.data is not None and one.data.ndim == 1 and rank == 4 and one.data.size > 1
    return w.real(index, one.data.reshape((1, -1, 1, 1)) if is_channel else None)


def binary(w: Writer, operation: Operation, options: Attributes) -> str:
    op = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "MAXIMUM": "Max", "MINIMUM": "Min", "PRELU": "PRelu"}[operation.name]
    rank = len(w.graph.tensors[operation.outputs[0]].shape)
    slopes = {one: w.graph.tensors[one].data.reshape((-1, 1, 1)) for one in operation.inputs[1:] if op == "PRelu"}
    inputs = [w.real(one, slopes[one]) if one in slopes else operand(w, one, rank) for one in operation.inputs]
    return activated(w, w.node(op, inputs), options)


def unary(op: str, **attributes: Any) -> Callable[[Writer, Operation, Attributes], str]:
    return lambda w, operation, options: w.node(op, [w.real(operation.inputs[0])], **attributes)


def same(w: Writer, operation: Operation, options: Attributes) -> str:
    return w.real(operation.inputs[0])


def over_channels(op: str) -> Callable[[Writer, Operation, Attributes], str]:
    def make(w: Writer, operation: Operation, options: Attributes) -> str:
        rank = len(w.graph.tensors[operation.inputs[0]].shape)
        if options.get("beta", 1) != 1:
            raise NoForm("a softmax with a factor")
        return w.node(op, [w.real(operation.inputs[0])], axis=1 if rank == 4 else rank - 1)
    return make


def bounded(low: float, high: float) -> Callable[[Writer, Operation, Attributes], str]:
    return lambda w, operation, options: clipped(w, w.real(operation.inputs[0]), (low, high))


def four(w: Writer, *indices: int) -> None:
    """Raises NoForm unless all tensors have four axes: others have no channels-first order."""
    for index in indices:
        if len(w.graph.tensors[index].shape) != 4:
            raise NoForm("a change of the number of axes")


def reduction(op: str) -> Callable[[Writer, Operation, Attributes], str]:
    def make(w: Writer, operation: Operation, options: Attributes) -> str:
        x, axes = operation.inputs
        out = w.graph.tensors[operation.outputs[0]].shape
        four(w, x)
        if len(out) == 3 or len(out) == 2 and list(w.graph.tensors[axes].data) == [3]:
            raise NoForm("a reduction that leaves three axes")
        moved = np.array([AXIS[int(one)] for one in w.graph.tensors[axes].data], np.int64)
        return w.node(op, [w.real(x), w.constant(moved)], keepdims=int(options["keep_dims"]))
    return make


def concat(w: Writer, operation: Operation, options: Attributes) -> str:
    four(w, *operation.inputs)
    return w.node("Concat", [w.real(one) for one in operation.inputs], axis=AXIS[int(options["axis"])])


def split(w: Writer, operation: Operation, options: Attributes) -> list[str]:
    axis, x = operation.inputs
    made = [w.name("Split") for _ in operation.outputs]
    w.node("Split", [w.real(x)], " ".join(made), axis=AXIS[int(w.graph.tensors[axis].data.item())], num_outputs=len(made))
    return made


def pad(w: Writer, operation: Operation, options: Attributes) -> str:
    x, sizes = operation.inputs[:2]
    data = w.graph.tensors[sizes].data
    pads = np.array([data[at][side] for side in (0, 1) for at in FIRST], np.int64)
    value = [w.node("Squeeze", [w.real(one)]) for one in operation.inputs[2:]]
    return w.node("Pad", [w.real(x), w.constant(pads), *value], mode="reflect" if operation.name == "MIRROR_PAD" else "constant")


def cut(w: Writer, operation: Operation, options: Attributes) -> str:
    x, *constants = operation.inputs
    begin, second, *step = (w.graph.tensors[one].data.astype(np.int64) for one in constants)
    end = begin + second if operation.name == "SLICE" else second
    parts = [begin[list(FIRST)], end[list(FIRST)], np.arange(4, dtype=np.int64), *(one[list(FIRST)] for one in step)]
    return w.node("Slice", [w.real(x), *(w.constant(one) for one in parts)])


def transpose(w: Writer, operation: Operation, options: Attributes) -> str:
    order = w.graph.tensors[operation.inputs[1]].data
    return w.node("Transpose", [w.real(operation.inputs[0])], perm=[AXIS[int(order[at])] for at in FIRST])


def gather(w: Writer, operation: Operation, options: Attributes) -> str:
    x, picked = operation.inputs
    return w.node("Gather", [w.real(x), w.constant(w.graph.tensors[picked].data)], axis=AXIS[int(options["axis"])])


def blocks(op: str) -> Callable[[Writer, Operation, Attributes], str]:
    return lambda w, operation, options: w.node(op, [w.real(operation.inputs[0])], blocksize=int(options["block_size"]))


def resize(w: Writer, operation: Operation, options: Attributes) -> str:
    x = operation.inputs[0]
    sizes = np.array(first(w.graph.tensors[operation.outputs[0]].shape), np.int64)
    way = "align_corners" if options["align_corners"] else "half_pixel" if options["half_pixel_centers"] else "asymmetric"
    is_nearest = operation.name == "RESIZE_NEAREST_NEIGHBOR"
    rounding = {"nearest_mode": "floor" if way == "asymmetric" else "round_prefer_ceil"} if is_nearest else {}
    return w.node("Resize", [w.real(x), "", "", w.constant(sizes)], mode="nearest" if is_nearest else "linear",
                  coordinate_transformation_mode=way, **rounding)


MAKERS: dict[str, Callable[[Writer, Operation, Attributes], str | list[str]]] = {
    "CONV_2D": conv, "DEPTHWISE_CONV_2D": conv, "TRANSPOSE_CONV": transpose_conv, "AVERAGE_POOL_2D": pool, "MAX_POOL_2D": pool, "FULLY_CONNECTED": dense,
    "ADD": binary, "SUB": binary, "MUL": binary, "MAXIMUM": binary, "MINIMUM": binary, "PRELU": binary,
    "RELU": unary("Relu"), "RELU6": bounded(0, 6), "RELU_N1_TO_1": bounded(-1, 1), "HARD_SWISH": unary("HardSwish"), "ABS": unary("Abs"), "EXP": unary("Exp"), "SQRT": unary("Sqrt"),
    "LEAKY_RELU": unary("LeakyRelu", alpha=0.3), "GELU": unary("Gelu"), "LOGISTIC": unary("Sigmoid"), "TANH": unary("Tanh"), "QUANTIZE": same,
    "DEQUANTIZE": same, "SOFTMAX": over_channels("Softmax"), "LOG_SOFTMAX": over_channels("LogSoftmax"),
    "MEAN": reduction("ReduceMean"), "SUM": reduction("ReduceSum"), "REDUCE_MAX": reduction("ReduceMax"), "REDUCE_MIN": reduction("ReduceMin"),
    "CONCATENATION": concat, "SPLIT": split, "PAD": pad, "PADV2": pad, "MIRROR_PAD": pad, "SLICE": cut, "STRIDED_SLICE": cut, "TRANSPOSE": transpose, "GATHER": gather,
    "SPACE_TO_DEPTH": blocks("SpaceToDepth"), "DEPTH_TO_SPACE": blocks("DepthToSpace"), "RESIZE_BILINEAR": resize, "RESIZE_NEAREST_NEIGHBOR": resize,
}
