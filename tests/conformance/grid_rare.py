"""Random operations that few models contain: scatter and segments, reversed sequences, matrices, ranges, shifts.

Imported by grid.py, which runs them."""

import numpy as np

from grid import broadcast_pair, family, pick, q, quant, shape_of
from one_op import RELU, RELU6, SAME, VALID, case, constant, tensor

ANY = ("float32", "int8", "uint8", "int32", "int64", "int16", "bool")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


@family()
def scatter_nd(random):
    shape = shape_of(random)
    depth = random.randint(1, len(shape) + 1)
    outer = shape_of(random, 1, 2)
    indices = np.stack([random.randint(0, d, outer) for d in shape[:depth]], axis=-1)
    t = tensor(outer + shape[depth:], pick(random, "float32", "int8", "uint8", "int32", "int64"), between=(-3, 3))
    if t["dtype"] == "uint8":
        t["between"] = (0, 99)
    return case("", ("SCATTER_ND", 122), [constant(indices), t, constant(shape)], dict(t, shape=shape))


@family()
def reverse_sequence(random):
    s = shape_of(random, 2, 4)
    axis, batch = (int(a) for a in random.permutation(len(s))[:2])
    t = tensor(s, pick(random, "float32", "uint8", "int16", "int32", "int64"))
    lengths = tensor([s[batch]], pick(random, "int32", "int64"), between=(0, s[axis]))
    return case("", ("REVERSE_SEQUENCE", 112), [t, lengths], t,
                ("ReverseSequenceOptions", dict(seq_dim=axis, batch_dim=batch)))


@family(exact=False, ulps=4)
def local_response_normalization(random):
    s = shape_of(random, 4, 4, 9)
    return case("", ("LOCAL_RESPONSE_NORMALIZATION", 13), [tensor(s, "float32")], tensor(s, "float32"),
                ("LocalResponseNormalizationOptions",
                 dict(radius=int(random.randint(0, 6)), bias=float(random.uniform(0.5, 2)), alpha=float(random.uniform(0, 1)),
                      beta=float(random.uniform(0, 1)))))


@family()
def embedding_lookup(random):
    s = shape_of(random, 2, 4)
    picked = tensor([random.randint(1, 9)], "int32", between=(0, s[0] - 1))
    if random.randint(3) == 0:
        dtype = pick(random, "int8", "uint8")
        rows = constant(random.randint(0, 100, s), dtype, 0.013, 0)
        return case("", ("EMBEDDING_LOOKUP", 7), [picked, rows], tensor(picked["shape"] + s[1:], "float32"), version=3)
    t = tensor(s, pick(random, "float32", "int8", "uint8"))
    return case("", ("EMBEDDING_LOOKUP", 7), [picked, t], dict(t, shape=picked["shape"] + s[1:]))


@family()
def diagonal(random):
    s = shape_of(random, 1, 3)
    t = tensor(s, pick(random, "float32", "int8", "uint8", "int16", "int32", "int64"))
    if random.randint(2):
        return case("", ("MATRIX_DIAG", 113), [t], dict(t, shape=s + s[-1:]))
    other = random.randint(1, 6)
    matrix = s[:-1] + ([s[-1], s[-1] + other] if random.randint(2) else [s[-1] + other, s[-1]])
    return case("", ("MATRIX_SET_DIAG", 115), [dict(t, shape=matrix), t], dict(t, shape=matrix))


@family()
def segments(random):
    s = shape_of(random, 1, 3)
    t = tensor(s, pick(random, "float32", "int32"), between=(-5, 5))
    if random.randint(3) == 0:
        steps = random.randint(0, 2, s[0])
        steps[0] = 0
        ids = np.cumsum(steps)
        return case("", ("SEGMENT_SUM", 125), [t, constant(ids)], dict(t, shape=[int(ids[-1]) + 1] + s[1:]))
    count, rank = random.randint(1, 6), random.randint(1, len(s) + 1)
    ids = tensor(s[:rank], "int32", between=(-1, count - 1))
    op = pick(random, ("UNSORTED_SEGMENT_SUM", 155), ("UNSORTED_SEGMENT_PROD", 153), ("UNSORTED_SEGMENT_MAX", 154),
              ("UNSORTED_SEGMENT_MIN", 157))
    return case("", op, [t, ids, constant(count)], dict(t, shape=[count] + s[rank:]))


@family()
def dynamic_update_slice(random):
    s = shape_of(random)
    update = [random.randint(1, d + 1) for d in s]
    t = tensor(s, pick(random, *ANY))
    return case("", ("DYNAMIC_UPDATE_SLICE", 151), [t, dict(t, shape=update), tensor([len(s)], "int32", between=(-2, 7))], t)


@family()
def bits(random):
    a, b, out = broadcast_pair(random)
    dtype = pick(random, *INTEGERS)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    op = pick(random, ("BITWISE_XOR", 160), ("RIGHT_SHIFT", 161))
    by = None if op[0] == "BITWISE_XOR" else (max(low, -3), min(high, 40))
    return case("", op, [tensor(a, dtype), tensor(b, dtype, between=by)], tensor(out, dtype))


@family(exact=False, ulps=2)
def atan2(random):
    s = shape_of(random)
    return case("", ("ATAN2", 156), [tensor(s, "float32")] * 2, tensor(s, "float32"))


@family(exact=False, ulps=4)
def l2_pool(random):
    h, w, c = (random.randint(1, 10) for _ in range(3))
    size, stride, padding = [random.randint(1, 4), random.randint(1, 4)], random.randint(1, 4), pick(random, SAME, VALID)
    size = [min(size[0], h), min(size[1], w)]
    out = [-(-n // stride) if padding == SAME else (n - k) // stride + 1 for n, k in zip((h, w), size)]
    return case("", ("L2_POOL_2D", 12), [tensor([2, h, w, c], "float32")], tensor([2, *out, c], "float32"),
                ("Pool2DOptions", dict(padding=padding, stride_w=stride, stride_h=stride, filter_height=size[0],
                                       filter_width=size[1], fused_activation_function=pick(random, 0, RELU, RELU6))))


@family()
def of_shapes(random):
    kind = random.randint(3)
    if kind == 0:
        t = tensor(shape_of(random, 1, 5), pick(random, *ANY))
        return case("", ("RANK", 110), [t], tensor([], "int32"))
    if kind == 1:
        dtype = pick(random, "int32", "int64")
        a, b, out = broadcast_pair(random)
        return case("", ("BROADCAST_ARGS", 145), [constant(a, dtype), constant(b, dtype)], tensor([len(out)], dtype))
    dtype = pick(random, "float32", "int32", "int64")
    sign = pick(random, -1, 1)
    start, delta, count = random.randint(-50, 50), sign * random.randint(1, 9), random.randint(1, 30)
    limit = start + delta * count - sign * random.randint(0, abs(delta))
    if dtype == "float32":
        start, limit, delta = start + 0.5, limit + 0.5, float(delta)
    return case("", ("RANGE", 96), [constant(start, dtype), constant(limit, dtype), constant(delta, dtype)],
                tensor([count], dtype))


@family()
def reduce_all(random):
    s = shape_of(random)
    axes = sorted(set(random.randint(len(s)) for _ in range(random.randint(1, 3))))
    keep = bool(random.randint(2))
    out = [1 if i in axes else d for i, d in enumerate(s) if keep or i not in axes]
    t = tensor(s, "bool")
    return case("", ("REDUCE_ALL", 140), [t, constant(axes)], tensor(out, "bool"), ("ReducerOptions", dict(keep_dims=keep)))


@family(exact=False, ulps=16)
def non_max_suppression(random):
    boxes, most = random.randint(1, 40), random.randint(1, 12)
    soft = random.randint(3) > 0
    thresholds = [constant(np.float32(random.uniform(0.2, 0.8)), "float32"), constant(np.float32(random.uniform(0, 0.5)), "float32")]
    inputs = [tensor([boxes, 4], "float32", between=(0, 1)), tensor([boxes], "float32", between=(0, 1)),
              constant(most)] + thresholds
    indices, count = tensor([most], "int32"), tensor([], "int32")
    if not soft:
        return case("", ("NON_MAX_SUPPRESSION_V4", 120), inputs, [indices, count])
    sigma = constant(np.float32(pick(random, 0, 0.3, 0.7)), "float32")
    return case("", ("NON_MAX_SUPPRESSION_V5", 121), inputs + [sigma], [indices, tensor([most], "float32"), count])


@family()
def quantized_log_softmax(random):
    s = shape_of(random, 1, 4, 20)
    dtype = pick(random, "int8", "uint8")
    zero = 127 if dtype == "int8" else 255
    return case("", ("LOG_SOFTMAX", 50), [q(random, s, dtype)], tensor(s, dtype, 16 / 256, zero), version=2)


@family()
def quantized_division(random):
    a, b, out = broadcast_pair(random)
    dtype = pick(random, "int8", "uint8", "int16")
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    # Smaller quotients are shifted by more than 31 bits, which is undefined in the published runtime.
    small = (0.002, 0.005) if dtype == "int16" else (0.01, 0.05)
    x, y, o = (tensor(s, dtype, *quant(random, dtype, *scale)) for s, scale in ((a, (0.5, 1)), (b, small), (out, small)))
    # The published runtime refuses a divisor of zero.
    above = y["zero_point"] < high and (random.randint(2) or y["zero_point"] == low)
    y["between"] = (y["zero_point"] + 1, high) if above else (low, y["zero_point"] - 1)
    return case("", ("DIV", 42), [x, y], o, ("DivOptions", dict(fused_activation_function=pick(random, 0, RELU, RELU6))), 2)


@family()
def integer_power(random):
    a, b, out = broadcast_pair(random)
    return case("", ("POW", 78), [tensor(a, "int32", between=(-6, 6)), tensor(b, "int32", between=(0, 9))], tensor(out, "int32"))


@family()
def int16_root(random):
    s = shape_of(random)
    dtype = pick(random, "int8", "int16")
    t = q(random, s, dtype)
    t["between"] = (t["zero_point"], np.iinfo(dtype).max)
    return case("", ("SQRT", 75), [t], q(random, s, dtype), version=2)


@family()
def int16_function(random):
    s = shape_of(random)
    t = q(random, s, "int16")
    return case("", ("LOG", 73), [t], q(random, s, "int16"), version=2)


@family()
def boolean_reduction(random):
    s = shape_of(random)
    axes = sorted(set(random.randint(len(s)) for _ in range(random.randint(1, 3))))
    out = [d for i, d in enumerate(s) if i not in axes]
    op = pick(random, ("REDUCE_MAX", 82), ("REDUCE_MIN", 89), ("REDUCE_PROD", 81), ("SUM", 74))
    dtype = "bool" if random.randint(2) or op[0] != "REDUCE_PROD" else "int64"
    t = tensor(s, dtype, between=(-9, 9) if dtype == "int64" else None)
    return case("", op, [t, constant(axes)], dict(t, shape=out), ("ReducerOptions", dict(keep_dims=False)), version=2)


def svdf(random, dtype, activation, types=("float32", "float32", "float32"), options=()):
    """Returns a case of SVDF. `types`: of the feature weights, the time weights and the state.
    Inputs stay the same, the state changes with each run."""
    batch, inputs, memory = random.randint(1, 4), random.randint(1, 30), random.randint(1, 9)
    units, rank = random.randint(1, 8), random.randint(1, 4)
    features, time, state = types

    def weights(shape, kind):
        if kind == "float32":
            return constant(random.uniform(-0.5, 0.5, shape), kind)
        most = 127 if kind == "int8" else 32767
        return constant(random.randint(-most, most + 1, shape), kind, float(np.float32(random.uniform(0.3, 1) / most)))

    integer = state == "int16"
    scale = {"scale": float(np.float32(random.uniform(2e-4, 1e-3)))} if integer else {}
    data = tensor([batch, inputs], dtype, 0.02, random.randint(-20, 20)) if integer else tensor([batch, inputs], dtype)
    out = tensor([batch, units], dtype, 0.05, random.randint(-128, 20)) if integer else tensor([batch, units], dtype)
    bias = None if random.randint(3) == 0 else constant(random.randint(-9000, 9000, units), "int32", 1e-5) if integer else constant(
        random.randn(units), "float32")
    operands = [data, weights((units * rank, inputs), features), weights((units * rank, memory), time), bias,
                tensor([batch, units * rank * memory], state, variable=True, **scale)]
    return case("", ("SVDF", 27), operands, out,
                ("SVDFOptions", dict(options, rank=rank, fused_activation_function=activation)), version=4)


@family(exact=False, ulps=4096)
def float_svdf(random):
    return svdf(random, "float32", pick(random, 0, RELU))


@family(exact=False, ulps=4096, judge="newest")
def hybrid_svdf(random):
    return svdf(random, "float32", pick(random, 0, RELU), ("int8", "int8", "float32"),
                dict(asymmetric_quantize_inputs=bool(random.randint(2))))


@family()
def integer_svdf(random):
    return svdf(random, "int8", RELU, ("int8", "int16", "int16"))
