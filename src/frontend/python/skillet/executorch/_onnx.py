"""Writes quantized graphs of PyTorch (edge dialect) as ONNX files: node for node, in real numbers between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable

import numpy as np
import torch  # type: ignore[import-not-found,import-untyped,unused-ignore]
from skillet.conformance._onnx import ELEMENT_TYPES, IR_VERSION, OPSET, attribute, message, tensor, value_info
from torch._subclasses.fake_tensor import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    FakeTensor,
    unset_fake_temporarily,
)

if TYPE_CHECKING:
    from torch.export import ExportedProgram  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from torch.fx import Node  # type: ignore[import-not-found,import-untyped,unused-ignore]

DTYPES = {torch.float32: "float32", torch.uint8: "uint8", torch.int8: "int8"}
QUANTIZE = {"quantized_decomposed.quantize_per_tensor"}
DEQUANTIZE = {"quantized_decomposed.dequantize_per_tensor", "quantized_decomposed.dequantize_per_channel"}


class NoForm(ValueError):
    """A node that cannot be written as ONNX: it stays with ExecuTorch."""


def name_of(node: Node) -> str:
    """Returns the name of a call, such as `aten.relu` or `aten.add.Tensor`; empty for other nodes."""
    if node.op != "call_function":
        return ""
    return str(getattr(node.target, "name", lambda: "getitem")()).replace("::", ".")


def argument(node: Node, name: str, index: int, default: Any = None) -> Any:
    return node.args[index] if index < len(node.args) else node.kwargs.get(name, default)


def shape_of(node: Node) -> tuple[int, ...]:
    return tuple(int(size) for size in node.meta["val"].shape)


def pair(values: Any) -> list[int]:
    numbers = [int(one) for one in values]
    return numbers * 2 if len(numbers) == 1 else numbers


# ---- operations in ONNX: kind, attributes, inputs (nodes, or arrays of constants) --------------------------------

Form = tuple[str, dict[str, Any], list[Any]]


def convolution(node: Node) -> Form:
    x, weights, bias, strides, pads, dilations, is_transposed, more, groups = node.args
    if len(shape_of(x)) != 4:
        raise NoForm("only images of two dimensions")
    attributes = {"strides": pair(strides), "pads": pair(pads) * 2, "dilations": pair(dilations), "group": groups}
    if is_transposed:
        attributes["output_padding"] = pair(more)
    return "ConvTranspose" if is_transposed else "Conv", attributes, [x, weights, bias]


def linear(node: Node) -> Form:
    if len(shape_of(node.args[0])) != 2:
        raise NoForm("only matrices of two dimensions")
    return "Gemm", {"transB": 1}, [node.args[0], node.args[1], argument(node, "bias", 2)]


def clip(node: Node, low: Any, high: Any) -> Form:
    given = [None if one is None else np.float32(one) for one in (low, high)]
    return "Clip", {}, [node.args[0], *given]


def of_two(kind: str) -> Callable[[Node], Form]:
    def form(node: Node) -> Form:
        if node.kwargs.get("alpha", 1) != 1 or not all(hasattr(one, "meta") for one in node.args[:2]):
            raise NoForm("a factor or a number beside it")
        return kind, {}, list(node.args[:2])
    return form


def of_one(kind: str, **attributes: Any) -> Callable[[Node], Form]:
    return lambda node: (kind, attributes, [node.args[0]])


def mean(node: Node) -> Form:
    axes = [axis % len(shape_of(node.args[0])) for axis in argument(node, "dim", 1) or []]
    if not axes:
        raise NoForm("the mean of all")
    return "ReduceMean", {"keepdims": int(bool(argument(node, "keepdim", 2, False)))}, [node.args[0], np.array(axes, np.int64)]


def pool(node: Node) -> Form:
    is_max = "max_pool2d" in name_of(node)
    size = pair(node.args[1])
    attributes: dict[str, Any] = {"kernel_shape": size, "strides": pair(argument(node, "stride", 2) or size), "pads": pair(argument(node, "padding", 3, [0])) * 2}
    if is_max:
        attributes |= {"dilations": pair(argument(node, "dilation", 4, [1])), "ceil_mode": int(argument(node, "ceil_mode", 5, False))}
    else:
        attributes |= {"ceil_mode": int(argument(node, "ceil_mode", 4, False)), "count_include_pad": int(argument(node, "count_include_pad", 5, True))}
        if argument(node, "divisor_override", 6) is not None:
            raise NoForm("a divisor of its own")
    return "MaxPool" if is_max else "AveragePool", attributes, [node.args[0]]


def reshape(node: Node) -> Form:
    return "Reshape", {}, [node.args[0], np.array(shape_of(node), np.int64)]


def permute(node: Node) -> Form:
    rank = len(shape_of(node))
    return "Transpose", {"perm": [axis % rank for axis in argument(node, "dims", 1)]}, [node.args[0]]


def concat(node: Node) -> Form:
    return "Concat", {"axis": argument(node, "dim", 1, 0) % len(shape_of(node))}, list(node.args[0])


FORMS: dict[str, Callable[[Node], Form]] = {
    "aten.convolution": convolution,
    "aten.linear": linear,
    "aten.relu": of_one("Relu"),
    "aten.hardtanh": lambda node: clip(node, argument(node, "min_val", 1, -1.0), argument(node, "max_val", 2, 1.0)),
    "aten.clamp": lambda node: clip(node, argument(node, "min", 1), argument(node, "max", 2)),
    "aten.sigmoid": of_one("Sigmoid"),
    "aten.tanh": of_one("Tanh"),
    "aten.hardswish": of_one("HardSwish"),
    "aten.add.Tensor": of_two("Add"),
    "aten.sub.Tensor": of_two("Sub"),
    "aten.mul.Tensor": of_two("Mul"),
    "aten.mean.dim": mean,
    "aten.avg_pool2d": pool,
    "aten.max_pool2d": pool,
    "aten.view_copy": reshape,
    "aten.permute_copy": permute,
    "aten.cat": concat,
}
ACTIVATIONS = {"aten.relu", "aten.hardtanh", "aten.clamp"}  # merged into the operation before them
WITH_BIAS = {"aten.convolution", "aten.linear"}  # have a bias as third input, which may be in real numbers


class Writer:
    """Builds the ONNX graph of a program, or of NODES in it, all of which can be written as ONNX."""

    def __init__(self, program: ExportedProgram, nodes: set[Node] | None = None) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self._count = 0
        self._data = constants_of(program)
        graph = program.graph_module.graph
        wanted = set(graph.nodes) if nodes is None else nodes
        for node in graph.nodes:
            if node in wanted:
                self._add(node)
                if any(one not in wanted for one in node.users):
                    self._add_output(node)
            elif any(one in wanted for one in node.users) and node.name not in self._data:
                self._add_input(node)

    def file(self) -> bytes:
        graph = message(*((1, one) for one in self._nodes), (2, "pytorch"), *((5, one) for one in self._constants),
                        *((11, one) for one in self._inputs), *((12, one) for one in self._outputs))
        return message((1, IR_VERSION), (7, graph), (8, message((1, ""), (2, OPSET))))

    def _add(self, node: Node) -> None:
        name = name_of(node)
        if node.op == "placeholder":
            if node.name not in self._data:
                self._add_input(node)
        elif node.op == "output":
            for one in node.args[0]:
                self._add_output(one)
        elif name in QUANTIZE:
            scale, zero_point, *_ = node.args[1:]
            self._emit("QuantizeLinear", [self._value(node.args[0]), *self._steps(scale, zero_point, node.meta["val"].dtype)], node.name, {})
        elif name not in DEQUANTIZE:  # a dequantization is written once for each node that reads it
            kind, attributes, inputs = FORMS[name](node)
            scales = [scale_of(one, self._data) for one in inputs[:2]]
            values = [self._bias(one, *scales) if i == 2 and kind in ("Conv", "ConvTranspose", "Gemm") else self._value(one)
                      for i, one in enumerate(inputs)]
            self._emit(kind, values, node.name, attributes)

    def _add_input(self, node: Node) -> None:
        self._inputs.append(value_info(node.name, DTYPES[node.meta["val"].dtype], shape_of(node)))

    def _add_output(self, node: Node) -> None:
        value = self._value(node) if name_of(node) in DEQUANTIZE else node.name
        self._outputs.append(value_info(value, DTYPES[node.meta["val"].dtype], shape_of(node)))

    def _value(self, given: Any) -> str:
        if given is None:
            return ""
        if not hasattr(given, "meta"):
            return self._constant(np.asarray(given))
        if name_of(given) in DEQUANTIZE:
            return self._dequantized(given)
        return self._constant(self._data[given.name].numpy()) if given.name in self._data else given.name

    def _dequantized(self, node: Node) -> str:
        scale, zero_point, *more = node.args[1:]
        attributes = {}
        if "per_channel" in name_of(node):
            attributes["axis"] = int(more[0])
            scale, zero_point = (self._data[one.name].numpy() for one in (scale, zero_point))
        stored = node.args[0]
        steps = self._steps(scale, zero_point, stored.meta["val"].dtype)
        return self._emit("DequantizeLinear", [self._value(stored), *steps], self._fresh(node.name), attributes)

    def _bias(self, given: Any, x_scale: Any, weight_scale: Any) -> str:
        """Converts a bias to int32 in steps of the products, as quantized layers add it. Returns its name."""
        if given is None or x_scale is None or weight_scale is None or given.name not in self._data:
            return self._value(given)
        scale = np.atleast_1d(x_scale * weight_scale).astype(np.float32)
        steps = np.round(self._data[given.name].numpy().astype(np.float64) / scale).clip(-(2**31), 2**31 - 1).astype(np.int32)
        inputs = [self._constant(steps), self._constant(scale if scale.size > 1 else scale[0])]
        return self._emit("DequantizeLinear", inputs, self._fresh(given.name), {"axis": 0} if scale.size > 1 else {})

    def _steps(self, scale: Any, zero_point: Any, dtype: torch.dtype) -> list[str]:
        return [self._constant(np.float32(scale)), self._constant(np.asarray(zero_point).astype(DTYPES[dtype]))]

    def _constant(self, data: Any) -> str:
        name = self._fresh("c")
        self._constants.append(tensor(name, np.asarray(data)))
        return name

    def _fresh(self, name: str) -> str:
        self._count += 1
        return f"{name}.{self._count}"

    def _emit(self, kind: str, inputs: list[str], output: str, attributes: dict[str, Any]) -> str:
        self._nodes.append(message(*((1, one) for one in inputs), (2, output), (3, output), (4, kind),
                                   *((5, attribute(name, value)) for name, value in attributes.items())))
        return output


def constants_of(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """Returns the constants by the name of their placeholder.

    A partitioner gets fake tensors. They are replaced by their originals, or else by likely values."""
    signature = program.graph_signature
    places = {**signature.inputs_to_parameters, **signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}
    data = {name: program.state_dict[where] if where in program.state_dict else program.constants[where] for name, where in places.items()}
    with unset_fake_temporarily():
        held = originals(data.values())
        known = {name: held.get(id(one)) if isinstance(one, FakeTensor) else one for name, one in data.items()}
        return {name: likely(data[name]) if one is None else one.detach().cpu().contiguous() for name, one in known.items()}


def originals(tensors: Iterable[torch.Tensor]) -> dict[int, torch.Tensor]:
    """Maps the id of each fake tensor to its original, if PyTorch keeps originals in this form (2.13 and 2.15 do)."""
    converters = (one.fake_mode.fake_tensor_converter.meta_converter for one in tensors if isinstance(one, FakeTensor))
    try:
        converter = next(converters)
        return {id(converter.tensor_memo.get(number)): one for one, number in converter.describer.lookup_tensor.items()}
    except (AttributeError, StopIteration):
        return {}


def likely(given: FakeTensor) -> torch.Tensor:
    """Returns plausible constants: 8-bit weights with different values, scales and biases of 1/128, zero points of 0."""
    shape, count = tuple(given.shape), given.numel()
    if given.dtype in (torch.int8, torch.uint8):
        return (torch.arange(count) % 101).to(given.dtype).reshape(shape)
    return torch.full(shape, 1 / 128 if given.dtype.is_floating_point else 0, dtype=given.dtype)


def scale_of(given: Any, data: dict[str, torch.Tensor]) -> Any:
    """Returns the scale of a dequantized input, or None for other inputs."""
    if not hasattr(given, "meta") or name_of(given) not in DEQUANTIZE:
        return None
    scale = given.args[1]
    return data[scale.name].numpy().astype(np.float64) if hasattr(scale, "meta") else float(scale)


