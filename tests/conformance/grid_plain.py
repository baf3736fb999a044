"""Random operations on images and lists, with all their parameters.

Parameters may be negative: axes from the end, strides and begins from the end, sizes that mean "the rest", factors below zero.

Imported by grid.py, which runs them unchanged and (grid_edges.py) at the ends of their types."""

import numpy as np

from grid import broadcast_pair, family, pick, plain_or_quantized, q, quant, shape_of
from grid_int16 import window
from one_op import RELU, RELU6, RELU_N1_TO_1, SAME, VALID, case, constant, tensor

BYTES = ("int8", "uint8")
ANY = BYTES + ("float32", "int32", "int64", "int16")
ACTIVATIONS = (0, RELU, RELU6, RELU_N1_TO_1)


def moved(random, shape, *types):
    """Returns a tensor that an operation only moves."""
    dtype = pick(random, *(types or ANY))
    return tensor(shape, dtype, 0.1, 0 if dtype == "int16" else 3) if dtype in BYTES + ("int16",) else tensor(shape, dtype)


def either_axis(random, axis, rank):
    return int(axis if random.randint(2) else axis - rank)


@family(exact=False, ulps=1)
def plain_arithmetic(random):
    dtype = pick(random, "int8", "uint8", "float32", "int32")
    op, options = pick(random, (("ADD", 0), "AddOptions"), (("SUB", 41), "SubOptions"), (("MUL", 18), "MulOptions"),
                       (("DIV", 42), "DivOptions"))
    a, b, out = broadcast_pair(random)
    between = (-1000, 1000) if dtype == "int32" else None
    first, second = (plain_or_quantized(random, s, dtype, between=between) for s in (a, b))
    if op[0] == "DIV":  # division by zero is undefined
        first, second = (plain_or_quantized(random, s, pick(random, "uint8", "float32")) for s in (a, b))
        second = dict(second, dtype=first["dtype"], scale=first["scale"] and 0.05, zero_point=0, between=(1, 9))
    return case("", op, [first, second], plain_or_quantized(random, out, first["dtype"]),
                (options, dict(fused_activation_function=pick(random, *ACTIVATIONS))), 2)


@family(exact=False)
def plain_extremum(random):
    dtype = pick(random, "int8", "uint8", "float32", "int32", "int64", "int16")
    a, b, out = broadcast_pair(random)
    t = moved(random, a, dtype)
    return case("", pick(random, ("MAXIMUM", 55), ("MINIMUM", 57)), [t, dict(t, shape=b)], dict(t, shape=out), version=2)


@family(exact=False)
def plain_pow(random):
    dtype = pick(random, "int32", "float32")
    a, b, out = broadcast_pair(random)
    between = (-6, 6) if dtype == "int32" else (0.5, 3)
    return case("", ("POW", 78), [tensor(a, dtype, between=between), tensor(b, dtype, between=(0, 5))], tensor(out, dtype))


def filter_of(random, shape, dtype, axis):
    scales = float(np.float32(random.uniform(0.002, 0.02)))
    if dtype == "int8":
        if random.randint(2):
            scales = [float(np.float32(random.uniform(0.002, 0.02))) for _ in range(shape[axis])]
        return constant(random.randint(-127, 128, shape), dtype, scales, 0, axis)
    return constant(random.randint(0, 256, shape), dtype, scales, int(random.randint(256)))


def bias_of(random, channels):
    return constant(random.randint(-3000, 3000, channels), "int32", 1e-4)


@family(exact=False)
def plain_convolution(random):
    dtype, depthwise = pick(random, *BYTES), bool(random.randint(2))
    kernel, dilation = (random.randint(1, 4), random.randint(1, 4)), random.randint(1, 3)
    h, w, c = random.randint(8, 14), random.randint(8, 14), random.randint(1, 9)
    stride, padding = random.randint(1, 4), pick(random, SAME, VALID)
    multiplier = random.randint(1, 3)
    channels = c * multiplier if depthwise else random.randint(1, 9)
    out = [random.randint(1, 3), window(h, kernel[0], stride, padding, dilation), window(w, kernel[1], stride, padding, dilation),
           channels]
    options = dict(padding=padding, stride_w=stride, stride_h=stride, dilation_w_factor=dilation, dilation_h_factor=dilation,
                   fused_activation_function=pick(random, *ACTIVATIONS))
    weights = filter_of(random, (1, *kernel, channels) if depthwise else (channels, *kernel, c), dtype, 3 if depthwise else 0)
    inputs = [q(random, [out[0], h, w, c], dtype), weights, bias_of(random, channels) if random.randint(2) else None]
    if inputs[2] is None and depthwise:
        inputs.pop()
    if depthwise:
        options["depth_multiplier"] = multiplier
    scale, zero = quant(random, dtype, 0.1, 0.9)
    op, name = (("DEPTHWISE_CONV_2D", 4), "DepthwiseConv2DOptions") if depthwise else (("CONV_2D", 3), "Conv2DOptions")
    return case("", op, inputs, tensor(out, dtype, scale, zero), (name, options), 3)


@family(exact=False)
def plain_transpose_conv(random):
    dtype, padding, stride = pick(random, *BYTES), pick(random, SAME, VALID), random.randint(1, 4)
    kernel = (random.randint(1, 5), random.randint(1, 5))
    h, w, c, channels = (random.randint(1, 7) for _ in range(4))
    out = [n * stride if padding == SAME else max((n - 1) * stride + k, n * stride) for n, k in zip((h, w), kernel)]
    out = [1, *out, channels]
    scale, zero = quant(random, dtype, 0.1, 0.9)
    return case("", ("TRANSPOSE_CONV", 67), [constant(out), filter_of(random, (channels, *kernel, c), dtype, 0),
                                             q(random, [1, h, w, c], dtype)], tensor(out, dtype, scale, zero),
                ("TransposeConvOptions", dict(padding=padding, stride_w=stride, stride_h=stride)), 2)


@family(exact=False)
def plain_fully_connected(random):
    dtype = pick(random, *BYTES)
    s, channels = shape_of(random, 2, 3, 9), random.randint(1, 12)
    keep = len(s) > 2
    scale, zero = quant(random, dtype, 0.05, 0.5)
    weights = filter_of(random, (channels, s[-1]), dtype, 0)
    if isinstance(weights["scale"], list):  # the newest runtime rounds these once, and no other runtime supports them
        weights["scale"] = weights["scale"][0]
    return case("", ("FULLY_CONNECTED", 9), [q(random, s, dtype), weights, bias_of(random, channels) if random.randint(2) else None],
                tensor(s[:-1] + [channels], dtype, scale, zero),
                ("FullyConnectedOptions", dict(fused_activation_function=pick(random, *ACTIVATIONS), keep_num_dims=keep)), 5)


@family(exact=False, ulps=4)
def plain_pool(random):
    dtype = pick(random, "int8", "uint8", "float32")
    h, w, c = (random.randint(1, 10) for _ in range(3))
    size, stride, padding = [random.randint(1, 5), random.randint(1, 5)], random.randint(1, 4), pick(random, SAME, VALID)
    size = [min(size[0], h), min(size[1], w)]
    out = [window(n, k, stride, padding) for n, k in zip((h, w), size)]
    t = plain_or_quantized(random, [2, h, w, c], dtype)
    return case("", pick(random, ("AVERAGE_POOL_2D", 1), ("MAX_POOL_2D", 17)), [t], dict(t, shape=[2, *out, c]),
                ("Pool2DOptions", dict(padding=padding, stride_w=stride, stride_h=stride, filter_height=size[0], filter_width=size[1],
                                       fused_activation_function=pick(random, *ACTIVATIONS))), 2)


@family(exact=False, ulps=64)
def plain_softmax(random):
    s, dtype = shape_of(random, 1, 4, 20), pick(random, "int8", "uint8", "float32")
    beta = pick(random, 1.0, 0.5, 2.0, 10.0, 100.0, 1e-3)
    out = tensor(s, dtype, 1 / 256, -128 if dtype == "int8" else 0) if dtype in BYTES else tensor(s, dtype)
    return case("", ("SOFTMAX", 25), [plain_or_quantized(random, s, dtype)], out, ("SoftmaxOptions", dict(beta=beta)), 2)


@family(exact=False)
def plain_table(random):
    s, dtype = shape_of(random), pick(random, *BYTES)
    op, out = pick(random, (("LOGISTIC", 14), (1 / 256, -128)), (("TANH", 28), (1 / 128, 0)), (("HARD_SWISH", 117), None),
                   (("ELU", 111), None), (("RELU", 19), None), (("RELU6", 21), None), (("RELU_N1_TO_1", 20), None),
                   (("QUANTIZE", 114), None), (("ABS", 101), None), (("EXP", 47), None))
    if op[0] in ("ELU", "ABS", "EXP"):
        dtype = "int8"
    to = tensor(s, dtype, out[0], out[1] + (0 if dtype == "int8" else 128)) if out else q(random, s, dtype)
    return case("", op, [q(random, s, dtype)], to, version=2 if op[0] in ("QUANTIZE", "RELU", "RELU6", "EXP") else 1)


@family(exact=False)
def plain_leaky_relu(random):
    """The slopes are halves, so that rounding shows. The older runtime rounds results below zero differently."""
    s, dtype = shape_of(random, 1, 4, 9), pick(random, "int8", "uint8", "float32", "int16")
    alpha = pick(random, -0.5, -1.5, -1.0, -0.25, 0.0, 0.5, 1.0, 1.5, float(np.float32(random.uniform(-4, 4))), 1e-30, -1e-30, -1e6)
    t = tensor(s, "int16", 0.01, 0) if dtype == "int16" else plain_or_quantized(random, s, dtype)
    out = dict(t) if random.randint(2) or dtype in ("float32", "int16") else q(random, s, dtype)
    if dtype in BYTES and random.randint(2):
        out["scale"] = t["scale"] * 2.0 ** random.randint(-3, 4)
    return case("", ("LEAKY_RELU", 98), [t], out, ("LeakyReluOptions", dict(alpha=alpha)), 2)


def reduction_case(random, *ops):
    s, dtype = shape_of(random), pick(random, "int8", "uint8", "float32", "int32", "int64")
    axes = sorted(set(random.randint(len(s)) for _ in range(random.randint(1, 4))))
    keep = bool(random.randint(2))
    out = [1 if i in axes else d for i, d in enumerate(s) if keep or i not in axes]
    given = [either_axis(random, a, len(s)) for a in axes] + axes[: random.randint(2)]  # one axis occurs twice
    op = pick(random, *ops)
    t = plain_or_quantized(random, s, dtype)
    to = dict(t, shape=out) if op[0].startswith("REDUCE") else plain_or_quantized(random, out, dtype)
    return case("", op, [t, constant(given)], to, ("ReducerOptions", dict(keep_dims=keep)), 2)


@family(exact=False, ulps=64)
def plain_reduction(random):
    return reduction_case(random, ("MEAN", 40), ("REDUCE_MAX", 82), ("REDUCE_MIN", 89))


@family(exact=False, ulps=64, judge="newest")
def plain_sum(random):
    """The reference kernels are wrong for int8 sums beyond the type: the default kernels saturate."""
    return reduction_case(random, ("SUM", 74))


@family(exact=False, ulps=1)
def plain_resize(random):
    s, dtype = shape_of(random, 4, 4, 8), pick(random, "int8", "uint8", "float32")
    size, which = [random.randint(1, 17), random.randint(1, 17)], random.randint(3)
    t = plain_or_quantized(random, s, dtype)
    op, options = pick(random, (("RESIZE_BILINEAR", 23), "ResizeBilinearOptions"),
                       (("RESIZE_NEAREST_NEIGHBOR", 97), "ResizeNearestNeighborOptions"))
    return case("", op, [t, constant(size)], dict(t, shape=[s[0], *size, s[3]]),
                (options, dict(align_corners=which == 1, half_pixel_centers=which == 2)), 3)


@family(exact=False)
def plain_concatenation(random):
    s, dtype = shape_of(random), pick(random, *ANY)
    axis, parts = random.randint(len(s)), random.randint(1, 5)
    t = moved(random, s, dtype)
    inputs = [dict(t, shape=s[:axis] + [int(random.randint(1, 5))] + s[axis + 1:]) for _ in range(parts)]
    if dtype == "uint8" and random.randint(2):
        for one in inputs:
            one["scale"], one["zero_point"] = quant(random, dtype)
    total = sum(one["shape"][axis] for one in inputs)
    return case("", ("CONCATENATION", 2), inputs, dict(t, shape=s[:axis] + [total] + s[axis + 1:]),
                ("ConcatenationOptions", dict(axis=either_axis(random, axis, len(s)))), 2)


@family(exact=False)
def plain_split(random):
    s = shape_of(random)
    axis, parts = random.randint(len(s)), random.randint(1, 5)
    at = constant(either_axis(random, axis, len(s)))
    if random.randint(2):
        s[axis] *= parts
        t = moved(random, s)
        piece = dict(t, shape=s[:axis] + [s[axis] // parts] + s[axis + 1:])
        return case("", ("SPLIT", 49), [at, t], [piece] * parts, ("SplitOptions", dict(num_splits=parts)), 2)
    sizes = [int(random.randint(0, 4)) for _ in range(parts)]
    s[axis] = max(sum(sizes), 1)
    sizes[0] += s[axis] - sum(sizes)
    t = moved(random, s)
    pieces = [dict(t, shape=s[:axis] + [n] + s[axis + 1:]) for n in sizes]
    given = list(sizes)
    if random.randint(2):
        given[random.randint(parts)] = -1
    return case("", ("SPLIT_V", 102), [t, constant(given), at], pieces, ("SplitVOptions", dict(num_splits=parts)), 2)


@family(exact=False)
def plain_pack(random):
    s, parts = shape_of(random, 1, 3), random.randint(1, 5)
    axis = random.randint(len(s) + 1)
    t = moved(random, s)
    whole = dict(t, shape=s[:axis] + [parts] + s[axis:])
    given = either_axis(random, axis, len(s) + 1)
    if random.randint(2):
        return case("", ("PACK", 83), [t] * parts, whole, ("PackOptions", dict(values_count=parts, axis=given)), 2)
    return case("", ("UNPACK", 88), [whole], [t] * parts, ("UnpackOptions", dict(num=parts, axis=given)), 2)


@family(exact=False)
def plain_slice(random):
    s = shape_of(random)
    begin = [int(random.randint(d)) for d in s]
    size = [int(random.randint(1, d - b + 1)) for d, b in zip(s, begin)]
    given = [-1 if b + n == d and random.randint(2) else n for d, b, n in zip(s, begin, size)]
    t, index = moved(random, s), pick(random, "int32", "int64")
    return case("", ("SLICE", 65), [t, constant(begin, index), constant(given, index)], dict(t, shape=size), version=2)


@family(exact=False)
def plain_strided_slice(random):
    """Begins and ends may count from the end, and exceed both ends. The runtime defines the result."""
    s = shape_of(random)
    count = random.randint(1, len(s) + 1)
    begin, end = ([int(random.randint(-d - 2, d + 3)) for d in s[:count]] for _ in range(2))
    steps = [int(pick(random, -3, -2, -1, 1, 2, 3)) for _ in range(count)]
    masks = dict(begin_mask=int(random.randint(2**count)), end_mask=int(random.randint(2**count)),
                 shrink_axis_mask=int(random.randint(2**count)) if random.randint(4) == 0 else 0)
    # For a single index with a negative step, the runtime writes nothing.
    steps = [abs(n) if masks["shrink_axis_mask"] >> k & 1 else n for k, n in enumerate(steps)]
    t = moved(random, s)
    return case("", ("STRIDED_SLICE", 45), [t, constant(begin), constant(end), constant(steps)], dict(t, shape=s),
                ("StridedSliceOptions", masks), 2)


@family(exact=False)
def plain_pad(random):
    s = shape_of(random)
    margins = [[int(random.randint(0, 4)), int(random.randint(0, 4))] for _ in s]
    t, index = moved(random, s, "int8", "uint8", "float32", "int32", "int64"), pick(random, "int32", "int64")
    out = dict(t, shape=[d + sum(m) for d, m in zip(s, margins)])
    if random.randint(2):
        return case("", ("PAD", 34), [t, constant(margins, index)], out, version=2)
    return case("", ("PADV2", 60), [t, constant(margins, index), constant([7], t["dtype"], t["scale"], t["zero_point"])], out, version=2)


@family(exact=False)
def plain_shapes(random):
    s = shape_of(random)
    kind, t = random.randint(4), moved(random, s)
    if kind == 0:
        order = [int(a) for a in random.permutation(len(s))]
        return case("", ("TRANSPOSE", 39), [t, constant(order)], dict(t, shape=[s[a] for a in order]), version=2)
    if kind == 1:
        at = random.randint(len(s) + 1)
        return case("", ("EXPAND_DIMS", 70), [t, constant(either_axis(random, at, len(s) + 1))], dict(t, shape=s[:at] + [1] + s[at:]))
    if kind == 2:
        at = random.randint(len(s) + 1)
        whole = dict(t, shape=s[:at] + [1] + s[at:])
        out = s[:at] + s[at:]
        given = [either_axis(random, at, len(s) + 1)]
        return case("", ("SQUEEZE", 43), [whole], dict(t, shape=out), ("SqueezeOptions", dict(squeeze_dims=given)))
    total = int(np.prod(s))
    out = [d for d in (1, total, 1)]
    return case("", ("RESHAPE", 22), [t, constant([1, -1, 1])], dict(t, shape=out), ("ReshapeOptions", dict(new_shape=[1, -1, 1])))


@family(exact=False)
def plain_blocks(random):
    n, h, w, c = (random.randint(1, 4) for _ in range(4))
    block, kind = random.randint(1, 4), random.randint(4)
    t = moved(random, [n, h, w, c], "int8", "uint8", "float32", "int32", "int64")
    deep, wide = dict(t, shape=[n, h, w, c * block * block]), dict(t, shape=[n, h * block, w * block, c])
    if kind == 0:
        return case("", ("SPACE_TO_DEPTH", 26), [wide], deep, ("SpaceToDepthOptions", dict(block_size=block)), 2)
    if kind == 1:
        return case("", ("DEPTH_TO_SPACE", 5), [deep], wide, ("DepthToSpaceOptions", dict(block_size=block)))
    sizes = [random.randint(1, 3), random.randint(1, 4)]
    margins = [[int(random.randint(0, 3)) for _ in range(2)] for _ in range(2)]
    inner = [max(1, k * b - sum(m)) for k, b, m in zip((h, w), sizes, margins)]
    margins[0][1] += h * sizes[0] - sum(margins[0]) - inner[0]
    margins[1][1] += w * sizes[1] - sum(margins[1]) - inner[1]
    if min(min(m) for m in margins) < 0:
        margins, inner = [[0, 0], [0, 0]], [h * sizes[0], w * sizes[1]]
    image, batches = dict(t, shape=[n, *inner, c]), dict(t, shape=[n * sizes[0] * sizes[1], h, w, c])
    if kind == 2:
        return case("", ("SPACE_TO_BATCH_ND", 38), [image, constant(sizes), constant(margins)], batches, version=2)
    return case("", ("BATCH_TO_SPACE_ND", 37), [batches, constant(sizes), constant(margins)], image, version=2)


@family(exact=False)
def plain_types(random):
    s = shape_of(random)
    kind = random.randint(3)
    if kind == 0:
        a, b = (pick(random, "float32", "int32", "int64", "uint8", "int8", "int16", "bool") for _ in range(2))
        between = (0, 99) if a not in ("bool", "float32") else (-99, 99) if a == "float32" and b in ("int32", "int64", "int16") else None
        return case("", ("CAST", 53), [tensor(s, a, between=between)], tensor(s, b))
    if kind == 1:
        return case("", ("QUANTIZE", 114), [tensor(s, "float32")], q(random, s, pick(random, *BYTES)))
    return case("", ("DEQUANTIZE", 6), [q(random, s, pick(random, *BYTES))], tensor(s, "float32"), version=2)


@family(exact=False)
def plain_signs(random):
    s, dtype = shape_of(random), pick(random, "float32", "int32")
    op = pick(random, ("SIGN", 158), ("ZEROS_LIKE", 93), ("NEG", 59))
    return case("", op, [tensor(s, dtype)], tensor(s, dtype), version=2 if op[0] == "SIGN" else 1)


@family(exact=False)
def plain_where(random):
    s = shape_of(random)
    return case("", ("WHERE", 109), [tensor(s, "bool")], tensor([1, len(s)], "int64"))
