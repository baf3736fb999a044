"""Random operations with int16 activations (int8 weights), and with types that the families of grid.py omit.

Imported by grid.py, which runs them."""

import numpy as np

from grid import broadcast_pair, family, matmul_shapes, pick, shape_of
from one_op import RELU, RELU6, SAME, VALID, case, constant, tensor

ACTIVATIONS = (0, RELU, RELU6)


def q16(random, shape, low=0.0001, high=0.01, **more):
    return tensor(shape, "int16", float(np.float32(random.uniform(low, high))), 0, **more)


def weights(random, shape, axis, per_channel=True):
    channels = shape[axis]
    scales = [float(np.float32(random.uniform(0.002, 0.02))) for _ in range(channels)] if per_channel else 0.01
    return constant(random.randint(-127, 128, shape), "int8", scales, 0, axis)


def wide_bias(random, channels, dtype):
    return constant(random.randint(-10**6, 10**6, channels), dtype, 1e-5)


def steps(random, most=3):
    return dict(padding=pick(random, SAME, VALID), stride_w=random.randint(1, most), stride_h=random.randint(1, most),
                fused_activation_function=pick(random, *ACTIVATIONS))


def window(size, filter_size, stride, padding, dilation=1):
    covered = (filter_size - 1) * dilation + 1
    return -(-size // stride) if padding == SAME else (size - covered) // stride + 1


@family()
def int16_conv(random):
    kernel, dilation = (random.randint(1, 4), random.randint(1, 4)), random.randint(1, 3)
    h, w, c = random.randint(8, 14), random.randint(8, 14), random.randint(1, 40)
    channels, options = random.randint(1, 9), steps(random)
    out = [random.randint(1, 3), window(h, kernel[0], options["stride_h"], options["padding"], dilation),
           window(w, kernel[1], options["stride_w"], options["padding"], dilation), channels]
    return case("", ("CONV_2D", 3), [q16(random, [out[0], h, w, c]), weights(random, (channels, *kernel, c), 0),
                                     wide_bias(random, channels, "int64")], q16(random, out, 0.01, 0.1),
                ("Conv2DOptions", dict(options, dilation_w_factor=dilation, dilation_h_factor=dilation)), 4)


@family()
def int16_depthwise(random):
    kernel, multiplier = (random.randint(1, 4), random.randint(1, 4)), random.randint(1, 4)
    h, w, c = random.randint(4, 10), random.randint(4, 10), random.randint(1, 20)
    options = steps(random)
    options["stride_h"] = options["stride_w"]
    out = [random.randint(1, 3), window(h, kernel[0], options["stride_h"], options["padding"]),
           window(w, kernel[1], options["stride_w"], options["padding"]), c * multiplier]
    bias = [wide_bias(random, c * multiplier, "int64")] if random.randint(3) else []
    return case("", ("DEPTHWISE_CONV_2D", 4), [q16(random, [out[0], h, w, c]),
                                               weights(random, (1, *kernel, c * multiplier), 3), *bias],
                q16(random, out, 0.001, 0.01), ("DepthwiseConv2DOptions", dict(options, depth_multiplier=multiplier)), 4)


@family()
def int16_transpose_conv(random):
    kernel, stride = (random.randint(1, 4), random.randint(1, 4)), random.randint(1, 3)
    h, w, c, channels = (random.randint(1, 7) for _ in range(4))
    padding = pick(random, SAME, VALID)
    out = [1] + [n * stride if padding == SAME else (n - 1) * stride + k for n, k in zip((h, w), kernel)] + [channels]
    return case("", ("TRANSPOSE_CONV", 67), [constant(out), weights(random, (channels, *kernel, c), 0),
                                             q16(random, [1, h, w, c]), wide_bias(random, channels, "int64")],
                q16(random, out), ("TransposeConvOptions", dict(padding=padding, stride_w=stride, stride_h=stride)), 3)


@family()
def int16_fully_connected(random):
    rows, depth, channels = random.randint(1, 5), random.randint(1, 700), random.randint(1, 12)
    bias = [wide_bias(random, channels, "int64")] if random.randint(3) else []
    return case("", ("FULLY_CONNECTED", 9), [q16(random, [rows, depth]),
                                             weights(random, (channels, depth), 0, per_channel=False), *bias],
                q16(random, [rows, channels], 0.01, 0.1),
                ("FullyConnectedOptions", dict(fused_activation_function=pick(random, *ACTIVATIONS))), 7)


@family()
def int16_arithmetic(random):
    a, b, out = broadcast_pair(random)
    op, options = pick(random, (("ADD", 0), "AddOptions"), (("SUB", 41), "SubOptions"), (("MUL", 18), "MulOptions"))
    activation = dict(fused_activation_function=pick(random, *ACTIVATIONS))
    return case("", op, [q16(random, a), q16(random, b)], q16(random, out, 0.001, 0.05), (options, activation), 2)


@family()
def int16_shifted_sum(random):
    """The scales are powers of two: one operand has the output's scale, the other the same or a finer one."""
    s = shape_of(random)
    scales = [2.0**-8, 2.0**-(8 + random.randint(5))]
    random.shuffle(scales)
    op, options = pick(random, (("ADD", 0), "AddOptions"), (("SUB", 41), "SubOptions"))
    inputs = [tensor(s, "int16", scale, 0) for scale in scales]
    more = dict(fused_activation_function=pick(random, *ACTIVATIONS), pot_scale_int16=bool(random.randint(2)))
    return case("", op, inputs, tensor(s, "int16", 2.0**-8, 0), (options, more), 2)


@family()
def int16_extreme(random):
    a, b, out = broadcast_pair(random)
    t = q16(random, a)
    return case("", pick(random, ("MAXIMUM", 55), ("MINIMUM", 57)), [t, dict(t, shape=b)], dict(t, shape=out), version=2)


@family()
def int16_pool(random):
    h, w, c, batch = (random.randint(1, 12) for _ in range(4))
    options = steps(random)
    size = (random.randint(1, h + 1), random.randint(1, w + 1))
    t = q16(random, [batch, h, w, c])
    out = [batch, window(h, size[0], options["stride_h"], options["padding"]),
           window(w, size[1], options["stride_w"], options["padding"]), c]
    return case("", pick(random, ("AVERAGE_POOL_2D", 1), ("MAX_POOL_2D", 17)), [t], dict(t, shape=out),
                ("Pool2DOptions", dict(options, filter_height=size[0], filter_width=size[1])), 3)


@family()
def int16_unary(random):
    s = shape_of(random, most=9)
    op, options = pick(random, (("RELU", 19), None), (("RELU6", 21), None), (("ABS", 101), None),
                       (("LEAKY_RELU", 98), ("LeakyReluOptions", dict(alpha=float(random.uniform(-1, 2))))))
    return case("", op, [q16(random, s)], q16(random, s), options, 2)


@family()
def int16_sigmoid(random):
    s = shape_of(random, most=9)
    scale = pick(random, 2.0**-12, 2.0**-11, float(np.float32(random.uniform(0.00001, 0.01))))
    return case("", pick(random, ("LOGISTIC", 14), ("TANH", 28)), [tensor(s, "int16", scale, 0)],
                tensor(s, "int16", 1 / 32768, 0), version=3)


@family()
def int16_exp(random):
    s = shape_of(random, most=9)
    return case("", ("EXP", 47), [q16(random, s, 0.00001, 0.0002)], q16(random, s), version=2)


@family()
def int16_rsqrt(random):
    """The input is the square of a value, as in layer normalization, so it is never negative."""
    s = shape_of(random, most=9)
    t = q16(random, s, 0.00001, 0.0002)
    return case("", ("RSQRT", 76), [dict(t, between=(0, 32767))], q16(random, s, 0.0001, 0.003), version=2)


@family()
def int16_softmax(random):
    s = shape_of(random, most=20)
    return case("", ("SOFTMAX", 25), [q16(random, s, 0.00001, 0.002)], tensor(s, "int16", 1 / 32768, 0),
                ("SoftmaxOptions", dict(beta=float(np.float32(random.uniform(0.3, 2))))), 3)


@family()
def int16_mean(random):
    s = shape_of(random)
    axes = sorted(set(random.randint(len(s)) for _ in range(random.randint(1, 3))))
    keep = bool(random.randint(2))
    out = [1 if i in axes else d for i, d in enumerate(s) if keep or i not in axes]
    dtype = pick(random, "int16", "int16", "int32", "int64")
    t = q16(random, s, 0.001, 0.002) if dtype == "int16" else tensor(s, dtype)
    o = q16(random, out, 0.0005, 0.004) if dtype == "int16" else tensor(out, dtype)
    return case("", ("MEAN", 40), [t, constant(axes)], o, ("ReducerOptions", dict(keep_dims=keep)), 3)


@family()
def int16_batch_matmul(random):
    a, b, out, options = matmul_shapes(random)
    return case("", ("BATCH_MATMUL", 126), [q16(random, a), q16(random, b)], q16(random, out, 0.01, 0.1), options, 3)


@family()
def int16_resize(random):
    h, w, c = (random.randint(1, 9) for _ in range(3))
    size = [random.randint(1, 14), random.randint(1, 14)]
    t = q16(random, [1, h, w, c])
    corners, centers = pick(random, (False, False), (True, False), (False, True))
    op, options = pick(random, (("RESIZE_BILINEAR", 23), "ResizeBilinearOptions"),
                       (("RESIZE_NEAREST_NEIGHBOR", 97), "ResizeNearestNeighborOptions"))
    return case("", op, [t, constant(size)], dict(t, shape=[1, *size, c]),
                (options, dict(align_corners=corners, half_pixel_centers=centers)), 4)


@family()
def int16_moved(random):
    """Operations that only move values."""
    s = shape_of(random, 2, 4)
    t, axis = q16(random, s), random.randint(len(s))
    order = [int(i) for i in random.permutation(len(s))]
    margins = [[int(random.randint(3)), int(random.randint(3))] for _ in s]
    begin = [int(random.randint(d)) for d in s]
    size = [int(random.randint(1, d - b + 1)) for d, b in zip(s, begin)]
    joined = [2 * d if i == axis else d for i, d in enumerate(s)]
    return pick(random,
                case("", ("TRANSPOSE", 39), [t, constant(order)], dict(t, shape=[s[i] for i in order]), version=4),
                case("", ("PAD", 34), [t, constant(margins)], dict(t, shape=[d + sum(m) for d, m in zip(s, margins)]), version=2),
                case("", ("SLICE", 65), [t, constant(begin), constant(size)], dict(t, shape=size), version=4),
                case("", ("CONCATENATION", 2), [t, t], dict(t, shape=joined), ("ConcatenationOptions", dict(axis=axis)), 3),
                case("", ("SPLIT", 49), [constant(axis), dict(t, shape=joined)], [t, t],
                     ("SplitOptions", dict(num_splits=2)), 4))


@family()
def requantization(random):
    s = shape_of(random, most=9)
    types = pick(random, ("float32", "int8"), ("float32", "uint8"), ("float32", "int16"), ("int16", "int16"),
                 ("int16", "int8"), ("int8", "int16"), ("uint8", "int16"), ("int8", "uint8"), ("uint8", "int8"),
                 ("int8", "int8"), ("uint8", "uint8"), ("int16", "int32"))

    def t(dtype):
        scale = float(np.float32(random.uniform(0.01, 0.3)))
        zero = {"int8": random.randint(-128, 128), "uint8": random.randint(0, 256)}.get(dtype, 0)
        return tensor(s, dtype, scale if dtype != "float32" else None, int(zero))

    return case("", ("QUANTIZE", 114), [t(types[0])], t(types[1]), version=3)


@family()
def dequantization(random):
    s = shape_of(random, most=9)
    dtype = pick(random, "int8", "uint8", "int16", "float16")
    zero = {"int8": random.randint(-128, 128), "uint8": random.randint(0, 256)}.get(dtype, 0)
    t = tensor(s, dtype, None if dtype == "float16" else float(np.float32(random.uniform(0.001, 0.3))), int(zero))
    return case("", ("DEQUANTIZE", 6), [t], tensor(s, "float32"), version=3)


@family()
def whole_number_arithmetic(random):
    a, b, out = broadcast_pair(random)
    op, options, types = pick(random, (("ADD", 0), "AddOptions", ("int32", "int64")), (("SUB", 41), "SubOptions", ("int32", "int64")),
                              (("MUL", 18), "MulOptions", ("int32", "int64")), (("DIV", 42), "DivOptions", ("int32",)))
    dtype = pick(random, *types)
    between = pick(random, (1, 9), (-9, -1)) if op[0] == "DIV" else (-10**4, 10**4)
    return case("", op, [tensor(a, dtype, between=(-10**4, 10**4)), tensor(b, dtype, between=between)], tensor(out, dtype),
                (options, {}), 2)


@family()
def small_division(random):
    a, b, out = broadcast_pair(random)
    dtype = pick(random, "int8", "int16")
    return case("", pick(random, ("FLOOR_DIV", 90), ("FLOOR_MOD", 95)),
                [tensor(a, dtype, between=(-100, 100)), tensor(b, dtype, between=pick(random, (1, 9), (-9, -1)))],
                tensor(out, dtype), version=2)


@family(exact=False, ulps=64)
def float_transpose_conv(random):
    kernel, stride = (random.randint(1, 4), random.randint(1, 4)), random.randint(1, 3)
    h, w, c, channels = (random.randint(1, 7) for _ in range(4))
    padding = pick(random, SAME, VALID)
    out = [2] + [n * stride if padding == SAME else (n - 1) * stride + k for n, k in zip((h, w), kernel)] + [channels]
    filters = constant(random.uniform(0, 1, (channels, *kernel, c)), "float32")
    bias = [constant(random.uniform(0, 1, channels), "float32")] if random.randint(2) else []
    return case("", ("TRANSPOSE_CONV", 67), [constant(out), filters, tensor([2, h, w, c], "float32", between=(0, 1)), *bias],
                tensor(out, "float32"), ("TransposeConvOptions", dict(padding=padding, stride_w=stride, stride_h=stride)),
                3 if bias else 1)
