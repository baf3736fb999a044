"""Random quantized operations that Vela accepts: functions of a random state that return a case of conformance/one_op.py.

Imported by vela_suite.py, which compiles and runs them."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "../conformance"))
from one_op import RELU, RELU6, SAME, VALID, case, constant, file_bytes, model_bytes, tensor, tensor_json  # noqa: E402, F401

OPS = {}
ZERO = {"int8": (-128, 127), "uint8": (0, 255), "int16": (0, 0)}


def op(*types):
    """Registers an operation for each of `types`, the types of activations."""
    def add(make):
        for dtype in types:
            OPS[f"{make.__name__}_{dtype}"] = lambda random, make=make, dtype=dtype: make(random, dtype)
        return make
    return add


def pick(random, *choices):
    return choices[random.randint(len(choices))]


def quantized(random, shape, dtype, scale=None, zero=None):
    low, high = ZERO[dtype]
    if scale is None:
        scale = float(np.float32(random.uniform(0.01, 0.2) * (0.01 if dtype == "int16" else 1)))
    return tensor(shape, dtype, scale, int(random.randint(low, high + 1)) if zero is None else zero)


def like(t, shape=None):
    return tensor(t["shape"] if shape is None else shape, t["dtype"], t["scale"], t["zero_point"])


def weights(random, shape, dtype, axis):
    if dtype == "uint8":
        return constant(random.randint(0, 256, shape), "uint8", 0.01, int(random.randint(0, 256)))
    scales = [float(np.float32(random.uniform(0.002, 0.02))) for _ in range(shape[axis])]
    return constant(random.randint(-127, 128, shape), "int8", scales, 0, axis)


def bias(random, channels, dtype):
    wide = dtype == "int16"
    return constant(random.randint(-2000, 2000, channels), "int64" if wide else "int32", 1e-3)


def window(size, kernel, stride, padding, dilation=1):
    covered = (kernel - 1) * dilation + 1
    return -(-size // stride) if padding == SAME else (size - covered) // stride + 1


def steps(random):
    return dict(padding=pick(random, SAME, VALID), stride_w=random.randint(1, 4), stride_h=random.randint(1, 4),
                fused_activation_function=pick(random, 0, RELU, RELU6))


@op("int8", "uint8", "int16")
def conv(random, dtype):
    kernel, dilation = (random.randint(1, 6), random.randint(1, 6)), random.randint(1, 3)
    h, w, c, channels = random.randint(12, 24), random.randint(12, 24), random.randint(1, 50), random.randint(1, 40)
    options = steps(random)
    if dilation > 1:
        options["stride_h"] = options["stride_w"] = 1
    out = [1, window(h, kernel[0], options["stride_h"], options["padding"], dilation),
           window(w, kernel[1], options["stride_w"], options["padding"], dilation), channels]
    return case("", ("CONV_2D", 3), [quantized(random, [1, h, w, c], dtype), weights(random, (channels, *kernel, c), dtype, 0),
                                     bias(random, channels, dtype)], quantized(random, out, dtype, 0.5 if dtype != "int16" else 0.01),
                ("Conv2DOptions", dict(options, dilation_w_factor=dilation, dilation_h_factor=dilation)), 4 if dtype == "int16" else 3)


@op("int8", "uint8", "int16")
def depthwise(random, dtype):
    kernel, c = (random.randint(1, 6), random.randint(1, 6)), random.randint(1, 70)
    h, w, options = random.randint(8, 20), random.randint(8, 20), steps(random)
    options["stride_h"] = options["stride_w"]
    out = [1, window(h, kernel[0], options["stride_h"], options["padding"]),
           window(w, kernel[1], options["stride_w"], options["padding"]), c]
    return case("", ("DEPTHWISE_CONV_2D", 4), [quantized(random, [1, h, w, c], dtype), weights(random, (1, *kernel, c), dtype, 3),
                                               bias(random, c, dtype)], quantized(random, out, dtype, 0.1 if dtype != "int16" else 0.001),
                ("DepthwiseConv2DOptions", dict(options, depth_multiplier=1)), 3)


@op("int8", "uint8", "int16")
def fully_connected(random, dtype):
    rows, depth, channels = pick(random, 1, 1, 3, 4, 8), random.randint(1, 200), random.randint(1, 70)
    one = constant(random.randint(-127, 128, (channels, depth)), "int8", 0.01) if dtype != "uint8" else \
        weights(random, (channels, depth), dtype, 0)
    first = quantized(random, [rows, depth], dtype)
    sums = constant(random.randint(-2000, 2000, channels), "int64" if dtype == "int16" else "int32", first["scale"] * one["scale"])
    return case("", ("FULLY_CONNECTED", 9), [first, one, sums],
                quantized(random, [rows, channels], dtype, 0.5 if dtype != "int16" else 0.01),
                ("FullyConnectedOptions", dict(fused_activation_function=pick(random, 0, RELU))), 4)


@op("int8")
def transpose_conv(random, dtype):
    stride, kernel = pick(random, 1, 2), random.randint(2, 5)
    h, w, c, channels = random.randint(2, 9), random.randint(2, 9), random.randint(1, 30), random.randint(1, 30)
    padding = pick(random, SAME, VALID)
    size = [x * stride if padding == SAME else x * stride + max(kernel - stride, 0) for x in (h, w)]
    return case("", ("TRANSPOSE_CONV", 67), [constant([1, *size, channels]), weights(random, (channels, kernel, kernel, c), dtype, 0),
                                             quantized(random, [1, h, w, c], dtype), bias(random, channels, dtype)],
                quantized(random, [1, *size, channels], dtype, 0.3),
                ("TransposeConvOptions", dict(padding=padding, stride_w=stride, stride_h=stride)), 3)


def pooling(random, dtype, name, code, most):
    kernel = (random.randint(1, most), random.randint(1, most))
    h, w, c, options = random.randint(8, 20), random.randint(8, 20), random.randint(1, 40), steps(random)
    out = [1, window(h, kernel[0], options["stride_h"], options["padding"]),
           window(w, kernel[1], options["stride_w"], options["padding"]), c]
    first = quantized(random, [1, h, w, c], dtype)
    return case("", (name, code), [first], like(first, out),
                ("Pool2DOptions", dict(options, filter_height=kernel[0], filter_width=kernel[1])), 3)


@op("int8", "uint8", "int16")
def average_pool(random, dtype):
    return pooling(random, dtype, "AVERAGE_POOL_2D", 1, 8)


@op("int8", "uint8", "int16")
def max_pool(random, dtype):
    return pooling(random, dtype, "MAX_POOL_2D", 17, 8)


def operands(random, dtype):
    shape = [1, random.randint(1, 16), random.randint(1, 16), random.randint(1, 40)]
    second = [d if random.randint(3) else 1 for d in shape]
    return quantized(random, shape, dtype), second, shape


def binary(random, dtype, name, code, options, scale=1):
    first, second, shape = operands(random, dtype)
    out = quantized(random, shape, dtype, float(np.float32(first["scale"] * scale * random.uniform(0.8, 2))))
    rest = quantized(random, second, dtype)
    return case("", (name, code), [first, rest] if random.randint(2) else [rest, first], out,
                (options, dict(fused_activation_function=pick(random, 0, RELU))), 2)


@op("int8", "uint8", "int16")
def add(random, dtype):
    return binary(random, dtype, "ADD", 0, "AddOptions")


@op("int8", "uint8", "int16")
def sub(random, dtype):
    return binary(random, dtype, "SUB", 41, "SubOptions")


@op("int8", "uint8", "int16")
def mul(random, dtype):
    return binary(random, dtype, "MUL", 18, "MulOptions", 0.2)


def smaller_or_larger(random, dtype, name, code):
    first, second, shape = operands(random, dtype)
    return case("", (name, code), [first, like(first, second)], like(first, shape), None, 2)


@op("int8", "uint8")
def minimum(random, dtype):
    return smaller_or_larger(random, dtype, "MINIMUM", 57)


@op("int8", "uint8")
def maximum(random, dtype):
    return smaller_or_larger(random, dtype, "MAXIMUM", 55)


@op("int8")
def squared_difference(random, dtype):
    first, second, shape = operands(random, dtype)
    return case("", ("SQUARED_DIFFERENCE", 99), [first, quantized(random, second, dtype)], quantized(random, shape, dtype, 0.5),
                None, 2)


def unary(random, dtype, name, code, options=None, scale=None, zero=None, version=2, spread=None):
    shape = [1, random.randint(1, 16), random.randint(1, 16), random.randint(1, 40)]
    first = quantized(random, shape, dtype, spread)
    return case("", (name, code), [first], quantized(random, shape, dtype, scale, zero), options, version)


@op("int8")
def absolute(random, dtype):
    return unary(random, dtype, "ABS", 101, None)


@op("int8", "uint8")
def logistic(random, dtype):
    return unary(random, dtype, "LOGISTIC", 14, None, 1 / 256, -128 if dtype == "int8" else 0)


@op("int8", "uint8")
def tanh(random, dtype):
    return unary(random, dtype, "TANH", 28, None, 1 / 128, 0 if dtype == "int8" else 128)


@op("int16")
def logistic_16(random, dtype):
    return unary(random, dtype, "LOGISTIC", 14, None, 1 / 32768, 0, 3, spread=8 / 32768)


@op("int16")
def tanh_16(random, dtype):
    return unary(random, dtype, "TANH", 28, None, 1 / 32768, 0, 3, spread=8 / 32768)


@op("int8", "uint8")
def hard_swish(random, dtype):
    return unary(random, dtype, "HARD_SWISH", 117, None, version=1)


@op("int8", "uint8", "int16")
def leaky_relu(random, dtype):
    return unary(random, dtype, "LEAKY_RELU", 98, ("LeakyReluOptions", dict(alpha=float(np.float32(random.uniform(0.01, 0.4))))))


@op("int8", "uint8")
def relu(random, dtype):
    return unary(random, dtype, *pick(random, ("RELU", 19), ("RELU6", 21)))


@op("int8", "uint8", "int16")
def quantize(random, dtype):
    shape = [1, random.randint(1, 16), random.randint(1, 16), random.randint(1, 40)]
    return case("", ("QUANTIZE", 114), [quantized(random, shape, dtype)],
                quantized(random, shape, "int8" if dtype != "int8" else pick(random, "int8", "uint8")), None, 2)


@op("int8", "uint8")
def softmax(random, dtype):
    return unary(random, dtype, "SOFTMAX", 25, ("SoftmaxOptions", dict(beta=1.0)), 1 / 256, -128 if dtype == "int8" else 0)


@op("int8", "uint8")
def mean(random, dtype):
    shape = [1, random.randint(1, 12), random.randint(1, 12), random.randint(1, 40)]
    return case("", ("MEAN", 40), [quantized(random, shape, dtype), constant([1, 2])], quantized(random, [1, 1, 1, shape[3]], dtype),
                ("ReducerOptions", dict(keep_dims=True)), 2)


def resize(random, dtype, name, code, options):
    factor, h, w, c = pick(random, 2, 4), random.randint(2, 8), random.randint(2, 8), random.randint(1, 30)
    corners = bool(random.randint(2))
    size = [(x - 1) * factor + 1 if corners else x * factor for x in (h, w)]
    first = quantized(random, [1, h, w, c], dtype)
    half = not corners and factor == 2 and bool(random.randint(2))
    return case("", (name, code), [first, constant(size)], like(first, [1, *size, c]),
                (options, dict(align_corners=corners, half_pixel_centers=half)), 3)


@op("int8", "uint8")
def resize_nearest(random, dtype):
    return resize(random, dtype, "RESIZE_NEAREST_NEIGHBOR", 97, "ResizeNearestNeighborOptions")


@op("int8", "uint8")
def resize_bilinear(random, dtype):
    return resize(random, dtype, "RESIZE_BILINEAR", 23, "ResizeBilinearOptions")


@op("int8", "uint8", "int16")
def concatenation(random, dtype):
    axis = random.randint(1, 4)
    shapes = [[1, 6, 5, 20], [1, 6, 5, 20]]
    shapes[1][axis] = random.randint(1, 30)
    out = list(shapes[0])
    out[axis] += shapes[1][axis]
    first = quantized(random, shapes[0], dtype)
    return case("", ("CONCATENATION", 2), [first, like(first, shapes[1])], like(first, out),
                ("ConcatenationOptions", dict(axis=axis)), 3)


@op("int8", "uint8")
def pad(random, dtype):
    shape = [1, random.randint(1, 10), random.randint(1, 10), random.randint(1, 30)]
    amounts = random.randint(0, 4, (4, 2))
    amounts[0] = amounts[3] = 0
    first = quantized(random, shape, dtype)
    return case("", ("PAD", 34), [first, constant(amounts)], like(first, list(np.array(shape) + amounts.sum(1))), None, 2)


@op("int8", "uint8")
def strided_slice(random, dtype):
    first = quantized(random, [1, 9, 11, 24], dtype)
    begin = [0, *(int(random.randint(0, 5)) for _ in range(3))]
    end = [1, *(int(random.randint(b + 1, d + 1)) for b, d in zip(begin[1:], (9, 11, 24)))]
    return case("", ("STRIDED_SLICE", 45), [first, constant(begin), constant(end), constant([1, 1, 1, 1])],
                like(first, [e - b for b, e in zip(begin, end)]), ("StridedSliceOptions", {}), 2)


@op("int8", "uint8")
def transpose(random, dtype):
    first, order = quantized(random, [1, 5, 7, 12], dtype), [0, *(1 + random.permutation(3))]
    return case("", ("TRANSPOSE", 39), [first, constant(order)], like(first, [first["shape"][i] for i in order]),
                None, 2)


@op("int8", "uint8")
def arg_max(random, dtype):
    shape = [1, random.randint(1, 9), random.randint(1, 9), random.randint(2, 100)]
    return case("", ("ARG_MAX", 56), [quantized(random, shape, dtype), constant([3])], tensor(shape[:3], "int32"),
                ("ArgMaxOptions", dict(output_type=2)), 2)
