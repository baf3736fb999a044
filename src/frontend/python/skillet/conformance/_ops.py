"""Defines the operations: the parameters of each with their choices (the usual one first), and how to make a case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skillet.conformance._build import ACTIVATIONS, Build, pair, window_output
from skillet.conformance._model import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Family:
    make: Callable[[Build], None]
    types: list[str]
    choices: dict[str, list[str]]
    grid: int  # number of cases in the grid


FAMILIES: dict[str, Family] = {}
SIZES = "16x16 1x1 7x7 13x15 33x31 1x16 5x5 2x2 3x3 4x4 8x8 9x9 14x14 15x13 16x1 17x17 28x28 31x33 32x32 56x56 40x60 64x64 112x112"
SMALL_SIZES = "8x8 1x1 7x9 1x16 17x15 3x3 5x5 2x2 4x4 16x1 12x16 14x14 33x34"
CHANNELS = "16 1 3 5 8 17 33 64 2 4 7 9 12 15 24 31 32 48 63 65 96 128 160 256 384 512"
FEW_CHANNELS = "16 1 3 8 17 33 4 5 15 32 64"
ZEROS = "mid low high sym"
SCALES = "mid fine coarse"


def family(names: str, types: str = "u8 i8", grid: int = 0, **choices: str) -> Callable[[Callable[[Build], None]], Callable[[Build], None]]:
    def add(make: Callable[[Build], None]) -> Callable[[Build], None]:
        for name in names.split():
            FAMILIES[name] = Family(make, types.split(), {key: value.split() for key, value in choices.items()}, grid)
        return make
    return add


def activation(b: Build) -> int:
    return ACTIVATIONS[b.params.get("act", "none")]


def by_type(b: Build, i16: int, others: int) -> int:
    return i16 if b.dtype == "int16" else others


# ---- windows -------------------------------------------------------------------------------------------------

def conv(b: Build, x: int, out_channels: int, kernel: str, stride: str, dilation: str, padding: str) -> int:
    batch, height, width, channels = b.shape_of(x)
    (kh, kw), (sh, sw), (dh, dw) = pair(kernel), pair(stride), pair(dilation)
    weights = b.weights((out_channels, kh, kw, channels), 0, b.params.get("pc") == "pc")
    operands = [x, weights, b.bias(x, weights, out_channels, kh * kw * channels)]
    shape = (batch, window_output(height, kh, sh, dh, padding), window_output(width, kw, sw, dw, padding), out_channels)
    options = dict(padding=int(padding == "valid"), stride_w=sw, stride_h=sh, activation=activation(b), dilation_w=dw, dilation_h=dh)
    return b.graph.operation("CONV_2D", 3, by_type(b, 4, 3), operands, b.sums(shape, x, weights, kh * kw * channels),
                             options=("Conv2DOptions", options))


def depthwise(b: Build, x: int, multiplier: int, kernel: str, stride: str, dilation: str, padding: str) -> int:
    batch, height, width, channels = b.shape_of(x)
    (kh, kw), (sh, sw), (dh, dw) = pair(kernel), pair(stride), pair(dilation)
    weights = b.weights((1, kh, kw, channels * multiplier), 3, b.params.get("pc") == "pc")
    operands = [x, weights, b.bias(x, weights, channels * multiplier, kh * kw)]
    shape = (batch, window_output(height, kh, sh, dh, padding), window_output(width, kw, sw, dw, padding), channels * multiplier)
    options = dict(padding=int(padding == "valid"), stride_w=sw, stride_h=sh, multiplier=multiplier, activation=activation(b),
                   dilation_w=dw, dilation_h=dh)
    return b.graph.operation("DEPTHWISE_CONV_2D", 4, by_type(b, 5, 3), operands, b.sums(shape, x, weights, kh * kw),
                             options=("DepthwiseConv2DOptions", options))


@family("conv2d", "u8 i8 i16 f32", grid=7000, size=SIZES, c=CHANNELS, o=CHANNELS, k="k3x3 k1x1 k2x2 k1x3 k3x1 k4x4 k5x5 k7x7 k3x5",
        s="s1 s2 s3 s4 s1x2 s2x1", d="d1 d2 d1x2 d3 d2x1", pad="same valid", act="none relu relu6 relun1", pc="pt pc", zp=ZEROS, scale=SCALES,
        b="1 2")
def make_conv(b: Build) -> None:
    b.graph.outputs = [conv(b, b.input(), b.number("o"), b["k"], b["s"], b["d"], b["pad"])]


@family("depthwise", "u8 i8 i16 f32", grid=3500, size=SIZES, c=CHANNELS, k="k3x3 k1x1 k2x2 k1x3 k3x1 k4x4 k5x5 k7x7", s="s1 s2 s3",
        d="d1 d2 d1x2 d3 d2x1", pad="same valid", act="none relu relu6", m="1 2 3 8", pc="pt pc", zp=ZEROS, scale=SCALES, b="1 2")
def make_depthwise(b: Build) -> None:
    b.graph.outputs = [depthwise(b, b.input(), b.number("m"), b["k"], b["s"], b["d"], b["pad"])]


@family("transpose_conv", "u8 i8 f32", grid=1500, size=SMALL_SIZES, c=FEW_CHANNELS, o=FEW_CHANNELS, k="k2x2 k1x1 k3x3 k4x4 k5x5 k2x3",
        s="s2 s1 s3 s2x1", pad="same valid", pc="pt pc", zp=ZEROS, scale=SCALES, bias="no yes")
def make_transpose_conv(b: Build) -> None:
    x, (kh, kw), (sh, sw), channels = b.input(), pair(b["k"]), pair(b["s"]), b.number("o")
    _, height, width, depth = b.shape
    same = b["pad"] == "same"
    shape = (1, height * sh if same else (height - 1) * sh + max(kh, sh), width * sw if same else (width - 1) * sw + max(kw, sw), channels)
    weights = b.weights((channels, kh, kw, depth), 0, b["pc"] == "pc")
    options = dict(padding=int(not same), stride_w=sw, stride_h=sh)
    terms = max(1, depth * kh * kw // (sh * sw))
    operands = [b.graph.constant(shape), weights, x, *([b.bias(x, weights, channels, terms)] if b["bias"] == "yes" else [])]
    version = 3 if len(operands) > 3 else 2 if b.dtype == "int8" else 1
    b.graph.outputs = [b.graph.operation("TRANSPOSE_CONV", 67, version, operands, b.sums(shape, x, weights, terms), options=("TransposeConvOptions", options))]


def pool(b: Build, x: int, name: str, kernel: str, stride: str, padding: str) -> int:
    batch, height, width, channels = b.shape_of(x)
    (kh, kw), (sh, sw) = pair(kernel), pair(stride)
    shape = (batch, window_output(height, kh, sh, 1, padding), window_output(width, kw, sw, 1, padding), channels)
    options = dict(padding=int(padding == "valid"), stride_w=sw, stride_h=sh, filter_w=kw, filter_h=kh, activation=activation(b))
    op, code = {"average_pool": ("AVERAGE_POOL_2D", 1), "max_pool": ("MAX_POOL_2D", 17)}[name]
    return b.graph.operation(op, code, by_type(b, 3, 2), [x], b.like(x, shape), options=("Pool2DOptions", options))


@family("average_pool max_pool", "u8 i8 i16 f32", grid=1000, size=SIZES, c=FEW_CHANNELS, k="k2x2 k1x1 k3x3 k1x2 k3x1 k5x5 k7x7 k8x8",
        s="s2 s1 s3 s1x2", pad="valid same", act="none relu relu6", zp=ZEROS, b="1 2")
def make_pool(b: Build) -> None:
    b.graph.outputs = [pool(b, b.input(), b["op"], b["k"], b["s"], b["pad"])]


# ---- matrices ------------------------------------------------------------------------------------------------

def dense(b: Build, x: int, rows: int, depth: int, out_channels: int) -> int:
    weights = b.weights((out_channels, depth), 0, b.params.get("pc") == "pc")
    operands = [x, weights]
    if b.params.get("bias") != "no":
        operands.append(b.bias(x, weights, out_channels, depth))
    return b.graph.operation("FULLY_CONNECTED", 9, by_type(b, 7, 4), operands, b.sums((rows, out_channels), x, weights, depth),
                             options=("FullyConnectedOptions", dict(activation=activation(b))))


@family("fully_connected", "u8 i8 i16 f32", grid=1500, rows="1 2 3 4 7 16", c=CHANNELS + " 511 1000 1024", o=CHANNELS + " 1000 1001",
        act="none relu relu6", zp=ZEROS, scale=SCALES, bias="yes no", pc="pt pc")
def make_dense(b: Build) -> None:
    b.graph.outputs = [dense(b, b.input((b.number("rows"), b.number("c"))), b.number("rows"), b.number("c"), b.number("o"))]


@family("batch_matmul", "i8 f32", grid=200, rows="4 1 3 16 17", c="16 1 3 8 33 64", o="16 1 5 32 33", adj="none x y", heads="1 2 3")
def make_matmul(b: Build) -> None:
    heads, rows, depth, columns, adj = b.number("heads"), b.number("rows"), b.number("c"), b.number("o"), b["adj"]
    x = b.input((heads, depth, rows) if adj == "x" else (heads, rows, depth))
    y = b.input((heads, columns, depth) if adj == "y" else (heads, depth, columns))
    b.graph.outputs = [b.graph.operation("BATCH_MATMUL", 126, 2, [x, y], b.tensor((heads, rows, columns), 0.04 * 0.04 * 5e3 * depth**0.5 * 5 / 256),
                                         options=("BatchMatMulOptions", dict(adj_x=int(adj == "x"), adj_y=int(adj == "y"))))]


# ---- element by element --------------------------------------------------------------------------------------

BINARY = {"add": ("ADD", 0, "AddOptions"), "sub": ("SUB", 41, "SubOptions"), "mul": ("MUL", 18, "MulOptions"), "maximum": ("MAXIMUM", 55, None),
          "minimum": ("MINIMUM", 57, None), "squared_difference": ("SQUARED_DIFFERENCE", 99, None)}


def binary(b: Build, name: str, x: int, y: int) -> int:
    op, code, options = BINARY[name]
    if options is None and name != "squared_difference":
        out = b.like(x)
    else:
        reach = {"mul": 0.04 * 128, "squared_difference": 0.04 * 256}.get(name, 2.0) * WIDTHS[b.params.get("scale", "mid")]
        out = b.tensor(b.shape_of(x), b.drawn_scale() * reach / (256 if b.dtype == "int16" else 1))
    return b.graph.operation(op, code, 2, [x, y], out, options=(options, dict(activation=activation(b))) if options else None)


WIDTHS = {"mid": 1.0, "fine": 0.2, "coarse": 6.0}


def other_operand(b: Build, x: int) -> int:
    """Adds the second operand. "tensor": an input of the same shape; "pixel": an input with one value per channel; others are constants."""
    kind, same_quantization = b["with"], b["op"] in ("maximum", "minimum")
    shape = {"channel": (b.shape[3],), "scalar": (1,), "pixel": (1, 1, 1, b.shape[3])}.get(kind, b.shape)
    tensor = b.like(x, shape) if same_quantization else b.tensor(shape)
    if kind in ("tensor", "pixel"):
        return b.graph.input(tensor)
    tensor.data = b.values(shape, tensor.dtype)
    return b.graph.add(tensor)


@family("add mul", "u8 i8 i16 f32", grid=700, size=SMALL_SIZES, c=CHANNELS, act="none relu relu6 relun1", zp=ZEROS, scale=SCALES,
        **{"with": "tensor const channel scalar pixel", "b": "1 2"})
@family("sub", "u8 i8", grid=700, size=SMALL_SIZES, c=CHANNELS, act="none relu relu6 relun1", zp=ZEROS, scale=SCALES,
        **{"with": "tensor const channel scalar pixel"})
@family("maximum minimum", "u8 i8", grid=300, size=SMALL_SIZES, c=FEW_CHANNELS, zp=ZEROS, **{"with": "tensor const channel scalar pixel"})
@family("squared_difference", "i8 f32", grid=200, size=SMALL_SIZES, c=FEW_CHANNELS, zp=ZEROS, scale=SCALES, **{"with": "tensor channel scalar pixel"})
def make_binary(b: Build) -> None:
    x = b.input()
    b.graph.outputs = [binary(b, b["op"], x, other_operand(b, x))]


# name: operation, code, options, and quantization of the output for 8-bit and 16-bit types ("": random).
CENTRE, LOWEST, HIGHEST = "centre", "lowest", "highest"
UNARY: dict[str, tuple[str, int, tuple[str, dict[str, float]] | None, tuple[float, str] | None]] = {
    "relu": ("RELU", 19, None, None), "relu6": ("RELU6", 21, None, None), "relun1": ("RELU_N1_TO_1", 20, None, None),
    "hard_swish": ("HARD_SWISH", 117, None, None), "abs": ("ABS", 101, None, None),
    "leaky_relu": ("LEAKY_RELU", 98, ("LeakyReluOptions", dict(alpha=0.3)), None),
    "gelu": ("GELU", 150, ("GeluOptions", dict(approximate=0)), None), "exp": ("EXP", 47, None, None),
    "logistic": ("LOGISTIC", 14, None, (256, LOWEST)), "tanh": ("TANH", 28, None, (128, CENTRE)),
    "softmax": ("SOFTMAX", 25, ("SoftmaxOptions", dict(beta=1.0)), (256, LOWEST)),
    "log_softmax": ("LOG_SOFTMAX", 50, None, (16, HIGHEST)), "l2_normalization": ("L2_NORMALIZATION", 11, ("L2NormOptions", {}), (128, CENTRE)),
}


def unary(b: Build, name: str, x: int, given: Tensor | None = None) -> int:
    op, code, options, fixed = UNARY[name]
    if name == "softmax":
        options = ("SoftmaxOptions", dict(beta=float(b["beta"])))
    out = given or b.tensor(b.shape_of(x))
    if fixed and not b.is_float:
        low = {"uint8": 0, "int8": -128, "int16": 0}[b.dtype]
        zero = {LOWEST: low, CENTRE: low + 128, HIGHEST: low + 255}[fixed[1]]
        out = b.tensor(b.shape_of(x), 1 / 32768 if b.dtype == "int16" else 1 / fixed[0], 0 if b.dtype == "int16" else zero)
    version = {"relun1": 1, "hard_swish": 1}.get(name, by_type(b, 3, 2))
    return b.graph.operation(op, code, version, [x], out, options=options)


@family("relu relu6", "u8 i8", grid=150, size=SMALL_SIZES, c=FEW_CHANNELS, zp=ZEROS)
@family("relun1 hard_swish leaky_relu gelu", "u8 i8", grid=150, size=SMALL_SIZES, c=FEW_CHANNELS, zp=ZEROS)
@family("abs exp", "i8", grid=80, size=SMALL_SIZES, c=FEW_CHANNELS, zp=ZEROS)
@family("logistic tanh", "u8 i8 i16", grid=150, size=SMALL_SIZES, c=FEW_CHANNELS, zp=ZEROS)
@family("softmax", "u8 i8 i16", grid=150, size=SMALL_SIZES, c=FEW_CHANNELS, zp=ZEROS, beta="1 0.25")
@family("log_softmax l2_normalization", "u8 i8", grid=100, size=SMALL_SIZES, c=FEW_CHANNELS, zp=ZEROS)
def make_unary(b: Build) -> None:
    b.graph.outputs = [unary(b, b["op"], b.input())]


@family("prelu", "u8 i8", grid=150, size=SMALL_SIZES, c=FEW_CHANNELS, zp=ZEROS)
def make_prelu(b: Build) -> None:
    x = b.input()
    slopes = b.constant_like(x, (1, 1, b.shape[3]))
    b.graph.outputs = [b.graph.operation("PRELU", 54, 1, [x, slopes], b.tensor(b.shape))]


@family("quantize", "u8 i8", grid=150, size=SMALL_SIZES, c=FEW_CHANNELS, zp=ZEROS, to="same other")
def make_requantize(b: Build) -> None:
    x = b.input()
    out = b.tensor(b.shape)
    if b["to"] == "other":
        out.dtype, out.zero_point = ("int8", out.zero_point - 128) if b.dtype == "uint8" else ("uint8", out.zero_point + 128)
    b.graph.outputs = [b.graph.operation("QUANTIZE", 114, 2, [x], out)]


@family("dequantize", "u8 i8", grid=60, size=SMALL_SIZES, c=FEW_CHANNELS, zp=ZEROS)
def make_dequantize(b: Build) -> None:
    b.graph.outputs = [b.graph.operation("DEQUANTIZE", 6, 2, [b.input()], Tensor(b.shape, "float32"))]


@family("float_quantize", "u8 i8", grid=60, size=SMALL_SIZES, c=FEW_CHANNELS, zp=ZEROS)
def make_quantize(b: Build) -> None:
    x = b.graph.input(Tensor(b.shape, "float32"))
    b.graph.outputs = [b.graph.operation("QUANTIZE", 114, 1, [x], b.tensor(b.shape))]


# ---- over axes -----------------------------------------------------------------------------------------------

AXES = {"hw": [1, 2], "h": [1], "w": [2], "c": [3], "hwc": [1, 2, 3]}


@family("mean sum", "u8 i8", grid=300, size=SMALL_SIZES, c=FEW_CHANNELS, axes="hw h w c hwc", keep="yes no", zp=ZEROS, b="1 2")
@family("reduce_max reduce_min", "u8 i8", grid=150, size=SMALL_SIZES, c=FEW_CHANNELS, axes="hw h w c hwc", keep="yes no", zp=ZEROS)
def make_reduction(b: Build) -> None:
    x, axes, keep = b.input(), AXES[b["axes"]], b["keep"] == "yes"
    shape = [1 if axis in axes else size for axis, size in enumerate(b.shape) if keep or axis not in axes]
    op, code = {"mean": ("MEAN", 40), "sum": ("SUM", 74), "reduce_max": ("REDUCE_MAX", 82), "reduce_min": ("REDUCE_MIN", 89)}[b["op"]]
    out = b.like(x, shape) if code > 80 else b.tensor(shape, b.drawn_scale() * (np.prod([b.shape[a] for a in axes]) ** 0.5 if code == 74 else 0.5))
    b.graph.outputs = [b.graph.operation(op, code, 2, [x, b.graph.constant(axes)], out, options=("ReducerOptions", dict(keep_dims=int(keep))))]


@family("arg_max", "u8 i8", grid=80, size=SMALL_SIZES, c=FEW_CHANNELS, axis="3 1 2")
def make_arg_max(b: Build) -> None:
    x, axis = b.input(), b.number("axis")
    out = Tensor(tuple(size for at, size in enumerate(b.shape) if at != axis), "int32")
    b.graph.outputs = [b.graph.operation("ARG_MAX", 56, 2, [x, b.graph.constant(axis)], out, options=("ArgMaxOptions", dict(output_type=2)))]
