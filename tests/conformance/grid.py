"""Compares random operations between the published runtime's reference kernels and ours, which must agree.

usage: grid.py LIBSKILLET_C [--cases N] [--seed S] [--family NAME] [--edges]     exit code 1 if any differs
--edges: the same at the ends of types (grid_edges.py).

Integers must be equal; floats may differ by the units in the last place that the family states. Needs what one_op.py needs.
"""

import argparse
import collections
import ctypes
import os
import pickle
import signal
import sys

import numpy as np

from one_op import (CUSTOM, RELU, RELU6, SAME, TANH, TYPES, VALID, case, computed_inputs, constant, model_bytes, random_values,
                    tensor)

FAMILIES, EXACT, ULPS, JUDGE = [], set(), {}, {}
QUANTIZED = ("int8", "uint8")


def family(exact=True, ulps=0, judge="reference"):
    """Registers a family of cases.

    `exact`: some of its cases are committed, and their results are compared byte by byte. `judge`: "reference" for the reference kernels of
    both runtimes, else the default kernels of the newest one."""
    def add(f):
        FAMILIES.append(f)
        ULPS[f], JUDGE[f] = ulps, judge
        if exact:
            EXACT.add(f)
        return f
    return add


def pick(random, *choices):
    return choices[random.randint(len(choices))]


def shape_of(random, rank_min=1, rank_max=4, most=6):
    return [random.randint(1, most + 1) for _ in range(random.randint(rank_min, rank_max + 1))]


def broadcast_pair(random, rank_max=4):
    """Returns two shapes that broadcast, and the shape of the result."""
    out = shape_of(random, 1, rank_max)
    a = [d if random.randint(4) else 1 for d in out]
    b = [d if x == 1 or random.randint(4) else 1 for d, x in zip(out, a)]
    cut = random.randint(len(out) + 1)
    if random.randint(2) and all(x == d for x, d in zip(a[:cut], out[:cut])):
        b = b[cut:]
    full = [max(x, y) for x, y in zip(a, [1] * (len(a) - len(b)) + b)]
    return a, b, full


def quant(random, dtype, low=0.01, high=0.3):
    info = np.iinfo(dtype)
    return float(np.float32(random.uniform(low, high))), int(random.randint(info.min, info.max + 1)) if dtype != "int16" else 0


def q(random, shape, dtype, **more):
    scale, zero = quant(random, dtype)
    return tensor(shape, dtype, scale, zero, **more)


def plain_or_quantized(random, shape, dtype, **more):
    return q(random, shape, dtype, **more) if dtype in QUANTIZED + ("int16",) else tensor(shape, dtype, **more)


COMPARISONS = (("EQUAL", 71), ("NOT_EQUAL", 72), ("GREATER", 61), ("GREATER_EQUAL", 62), ("LESS", 58), ("LESS_EQUAL", 63))


@family()
def comparison(random):
    dtype = pick(random, "int8", "uint8", "float32", "int32", "int64")
    a, b, out = broadcast_pair(random)
    between = (-3, 3) if dtype in ("int32", "int64", "float32") else None
    op = pick(random, *COMPARISONS)
    return case("", op, [plain_or_quantized(random, a, dtype, between=between),
                         plain_or_quantized(random, b, dtype, between=between)], tensor(out, "bool"), version=2)


@family()
def logic(random):
    if random.randint(3) == 0:
        s = shape_of(random)
        return case("", ("LOGICAL_NOT", 87), [tensor(s, "bool")], tensor(s, "bool"))
    a, b, out = broadcast_pair(random)
    return case("", pick(random, ("LOGICAL_AND", 86), ("LOGICAL_OR", 84)), [tensor(a, "bool"), tensor(b, "bool")],
                tensor(out, "bool"))


@family()
def select(random):
    dtype = pick(random, "int8", "uint8", "float32", "int32", "int64", "int16")
    if random.randint(2):
        s = shape_of(random)
        condition = s if random.randint(2) else s[:1]
        return case("", ("SELECT", 64), [tensor(condition, "bool"), tensor(s, dtype, between=(0, 99)),
                                         tensor(s, dtype, between=(0, 99))], tensor(s, dtype))
    a, b, both = broadcast_pair(random)
    condition = [d if random.randint(2) else 1 for d in both][random.randint(len(both)):]
    return case("", ("SELECT_V2", 123), [tensor(condition, "bool"), tensor(a, dtype, between=(0, 99)),
                                         tensor(b, dtype, between=(0, 99))], tensor(both, dtype))


@family()
def topk(random):
    s = shape_of(random)
    k = random.randint(1, s[-1] + 1)
    dtype = pick(random, "int8", "uint8", "float32", "int32", "int64")
    between = (0, 3) if random.randint(2) and dtype != "float32" else None
    out = s[:-1] + [k]
    x = tensor(s, dtype, 0.1, 3, between=between) if dtype in QUANTIZED else tensor(s, dtype, between=between)
    return case("", ("TOPK_V2", 48), [x, constant(k)], [dict(x, shape=out), tensor(out, "int32")], version=2)


@family()
def reverse(random):
    s = shape_of(random, 1, 5)
    # The runtime accepts neighbouring axes only.
    first = random.randint(len(s))
    axes = list(range(first, random.randint(first, len(s)) + 1))
    t = tensor(s, pick(random, "float32", "uint8", "int16", "int32", "int64"))
    return case("", ("REVERSE_V2", 105), [t, constant(axes)], t, version=2)


@family()
def gather(random):
    s = shape_of(random)
    axis = random.randint(len(s))
    batch_dims = random.randint(axis + 1) if random.randint(2) else 0
    picked = s[:batch_dims] + shape_of(random, 1, 2, 4)
    out = s[:axis] + picked[batch_dims:] + s[axis + 1:]
    dtype = pick(random, "int8", "uint8", "float32", "int32", "int64", "int16")
    t = tensor(s, dtype, 0.1, 3 if dtype != "int16" else 0) if dtype in QUANTIZED else tensor(s, dtype)
    index = tensor(picked, pick(random, "int32", "int64"), between=(0, s[axis] - 1))
    return case("", ("GATHER", 36), [t, index], dict(t, shape=out),
                ("GatherOptions", dict(axis=axis if random.randint(2) else axis - len(s), batch_dims=batch_dims)), version=5)


@family()
def gather_nd(random):
    s = shape_of(random)
    depth = random.randint(1, len(s) + 1)
    outer = shape_of(random, 1, 2, 4)
    t = tensor(s, pick(random, "int8", "uint8", "float32", "int32", "int64", "int16"))
    index = tensor(outer + [depth], pick(random, "int32", "int64"), between=(0, min(s[:depth]) - 1))
    return case("", ("GATHER_ND", 107), [t, index], dict(t, shape=outer + s[depth:]), version=3)


@family()
def one_hot(random):
    s = shape_of(random, 1, 3)
    depth = random.randint(1, 6)
    axis = random.randint(-1, len(s) + 1)
    at = len(s) if axis == -1 else axis
    dtype = pick(random, "float32", "int32", "int8", "uint8")
    return case("", ("ONE_HOT", 85), [tensor(s, pick(random, "int32", "int64"), between=(-1, depth)), constant(depth),
                                      constant(7, dtype), constant(2, dtype)],
                tensor(s[:at] + [depth] + s[at:], dtype), ("OneHotOptions", dict(axis=axis)))


@family()
def tile(random):
    s = shape_of(random)
    repeats = [random.randint(1, 4) for _ in s]
    t = tensor(s, pick(random, "float32", "uint8", "int8", "int32", "int64", "int16"))
    return case("", ("TILE", 69), [t, constant(repeats, pick(random, "int32", "int64"))],
                dict(t, shape=[a * b for a, b in zip(s, repeats)]), version=2)


@family()
def broadcast_to(random):
    out = shape_of(random, 1, 5)
    s = [d if random.randint(2) else 1 for d in out][random.randint(len(out)):]
    t = tensor(s, pick(random, "float32", "uint8", "int8", "int32", "int64", "int16"))
    return case("", ("BROADCAST_TO", 130), [t, constant(out)], dict(t, shape=out), version=2)


@family()
def mirror_pad(random):
    s = shape_of(random, 1, 4)
    mode = random.randint(2)
    margins = [[random.randint(d + mode), random.randint(d + mode)] for d in s]
    dtype = pick(random, "float32", "uint8", "int8", "int32", "int64")
    t = tensor(s, dtype, 0.1, 3) if dtype in QUANTIZED else tensor(s, dtype)
    return case("", ("MIRROR_PAD", 100), [t, constant(margins)], dict(t, shape=[d + sum(m) for d, m in zip(s, margins)]),
                ("MirrorPadOptions", dict(mode=mode)), version=2)


@family()
def fill(random):
    s = shape_of(random)
    dtype = pick(random, "float32", "int32", "int64", "int8")
    t = tensor([], dtype, 0.1, 3) if dtype == "int8" else tensor([], dtype)
    return case("", ("FILL", 94), [constant(s), t], dict(t, shape=s), version=3)


@family()
def shape(random):
    s, index = shape_of(random), pick(random, "int32", "int64")
    return case("", ("SHAPE", 77), [tensor(s, pick(random, "float32", "int8"))], tensor([len(s)], index),
                ("ShapeOptions", dict(out_type=TYPES[index][0])))


@family()
def cumsum(random):
    s = shape_of(random)
    t = tensor(s, pick(random, "int32", "int64"))
    return case("", ("CUMSUM", 128), [t, constant(random.randint(-len(s), len(s)))], t,
                ("CumsumOptions", dict(exclusive=bool(random.randint(2)), reverse=bool(random.randint(2)))))


@family()
def reduction(random):
    s = shape_of(random)
    axes = sorted(set(random.randint(len(s)) for _ in range(random.randint(1, 3))))
    keep = bool(random.randint(2))
    out = [1 if i in axes else d for i, d in enumerate(s) if keep or i not in axes]
    op, dtype = pick(random, (("REDUCE_MAX", 82), pick(random, "int8", "uint8", "float32", "int32", "int64")),
                     (("REDUCE_MIN", 89), pick(random, "int8", "uint8", "float32", "int32", "int64")),
                     (("REDUCE_PROD", 81), pick(random, "int32")), (("REDUCE_ANY", 91), "bool"))
    t = q(random, s, dtype) if dtype in QUANTIZED else tensor(s, dtype)
    return case("", op, [t, constant(axes)], dict(t, shape=out), ("ReducerOptions", dict(keep_dims=keep)), version=1 if dtype == "bool" else 2)


@family()
def arg(random):
    s = shape_of(random)
    axis = random.randint(len(s))
    dtype = pick(random, "int8", "uint8", "float32", "int32")
    t = q(random, s, dtype, between=(0, 5)) if dtype in QUANTIZED else tensor(s, dtype, between=(-3, 3))
    index = pick(random, "int32", "int64")
    op, options = pick(random, (("ARG_MIN", 79), "ArgMinOptions"), (("ARG_MAX", 56), "ArgMaxOptions"))
    return case("", op, [t, constant(axis)], tensor(s[:axis] + s[axis + 1:], index),
                (options, dict(output_type=TYPES[index][0])), version=2)


@family()
def squared_difference(random):
    dtype = pick(random, "int8", "float32", "int32")
    a, b, out = broadcast_pair(random)
    between = (-1000, 1000) if dtype == "int32" else None
    return case("", ("SQUARED_DIFFERENCE", 99), [plain_or_quantized(random, a, dtype, between=between),
                                                 plain_or_quantized(random, b, dtype, between=between)],
                plain_or_quantized(random, out, dtype), version=2)


@family()
def integer_division(random):
    dtype = pick(random, "int32", "float32")
    a, b, out = broadcast_pair(random)
    between = (1, 9) if random.randint(2) else (-9, -1)
    return case("", pick(random, ("FLOOR_DIV", 90), ("FLOOR_MOD", 95)),
                [tensor(a, dtype, between=(-100, 100)), tensor(b, dtype, between=between)], tensor(out, dtype), version=2)


@family()
def add_n(random):
    s = shape_of(random)
    dtype = pick(random, "int32", "float32")
    inputs = [tensor(s, dtype, between=(-99, 99)) for _ in range(random.randint(2, 5))]
    return case("", ("ADD_N", 106), inputs, tensor(s, dtype))


@family()
def prelu(random):
    dtype = pick(random, "int8", "uint8", "float32")
    s = shape_of(random, 3, 4)
    alpha = [1] * (len(s) - 2) + [s[-1]] if random.randint(2) else s[1:]
    return case("", ("PRELU", 54), [plain_or_quantized(random, s, dtype), plain_or_quantized(random, alpha[-len(s) + 1:], dtype)],
                plain_or_quantized(random, s, dtype))


@family()
def float_exact(random):
    s = shape_of(random)
    op = pick(random, ("SQRT", 75), ("SQUARE", 92), ("FLOOR", 8), ("CEIL", 104), ("ROUND", 116), ("NEG", 59), ("ABS", 101),
              ("RELU_0_TO_1", 152), ("RELU", 19), ("RELU6", 21))
    t = tensor(s, "float32", between=(0, 9) if op[0] == "SQRT" else (-9, 9))
    return case("", op, [t], tensor(s, "float32"))


@family(exact=False, ulps=4)
def float_function(random):
    s = shape_of(random)
    op, between = pick(random, (("LOG", 73), (0.01, 90)), (("RSQRT", 76), (0.01, 90)), (("SIN", 66), (-3, 3)),
                       (("COS", 108), (-3, 3)), (("EXP", 47), (-9, 9)), (("LOGISTIC", 14), (-9, 9)),
                       (("TANH", 28), (-4, 4)))
    return case("", op, [tensor(s, "float32", between=between)], tensor(s, "float32"))


@family(exact=False, ulps=64)
def float_rows(random):
    s = shape_of(random)
    op, options = pick(random, (("LOG_SOFTMAX", 50), None), (("L2_NORMALIZATION", 11), ("L2NormOptions", {})),
                       (("SOFTMAX", 25), ("SoftmaxOptions", dict(beta=1.0))))
    return case("", op, [tensor(s, "float32")], tensor(s, "float32"), options)


@family()
def quantized_rsqrt(random):
    s = shape_of(random)
    scale, zero = quant(random, "int8")
    return case("", ("RSQRT", 76), [tensor(s, "int8", scale, zero, between=(zero, 127))], q(random, s, "int8"), version=2)


@family(exact=False)
def quantized_log(random):
    s = shape_of(random)
    scale, _ = quant(random, "int8")
    zero = random.randint(-128, 100)
    return case("", ("LOG", 73), [tensor(s, "int8", scale, zero, between=(zero + 1, 127))], q(random, s, "int8"))


@family()
def quantized_gelu(random):
    s = shape_of(random)
    dtype = pick(random, "int8", "uint8")
    return case("", ("GELU", 150), [q(random, s, dtype)], q(random, s, dtype),
                ("GeluOptions", dict(approximate=bool(random.randint(2)))), version=2)


@family()
def quantized_l2_normalization(random):
    s = shape_of(random)
    dtype = pick(random, "int8", "uint8")
    return case("", ("L2_NORMALIZATION", 11), [q(random, s, dtype)],
                tensor(s, dtype, 1 / 128, 0 if dtype == "int8" else 128), ("L2NormOptions", {}), version=2)


@family()
def quantized_relu_0_to_1(random):
    s = shape_of(random)
    dtype = pick(random, "int8", "uint8")
    return case("", ("RELU_0_TO_1", 152), [q(random, s, dtype)], q(random, s, dtype))


def matmul_shapes(random):
    m, k, n = (random.randint(1, 9) for _ in range(3))
    a, b, out = broadcast_pair(random, 2)
    adj_x, adj_y = bool(random.randint(2)), bool(random.randint(2))
    a = a + ([k, m] if adj_x else [m, k])
    b = [1] * (len(out) - len(b)) + b + ([n, k] if adj_y else [k, n])
    return a, b, out + [m, n], ("BatchMatMulOptions", dict(adj_x=adj_x, adj_y=adj_y))


@family()
def batch_matmul(random):
    a, b, out, options = matmul_shapes(random)
    scale, zero = quant(random, "int8", 0.3, 0.9)
    return case("", ("BATCH_MATMUL", 126), [q(random, a, "int8"), q(random, b, "int8")], tensor(out, "int8", scale, zero),
                options, version=2)


@family(exact=False, ulps=64)
def float_batch_matmul(random):
    a, b, out, options = matmul_shapes(random)
    return case("", ("BATCH_MATMUL", 126), [tensor(a, "float32", between=(0, 1)), tensor(b, "float32", between=(0, 1))],
                tensor(out, "float32"), options)


def lstm_case(random, dtype):
    """Returns all operands for a sequence, without layer normalization."""
    steps, batch, inputs, cells = (random.randint(1, n) for n in (6, 4, 20, 12))
    projection = random.randint(3) == 0
    outputs = random.randint(1, 9) if projection else cells
    coupled, peephole = random.randint(3) == 0, random.randint(3) == 0
    integer = dtype == "int8"

    def weight(rows, cols=None):
        dims = (rows, cols) if cols else (rows,)
        if not integer:
            return constant(random.uniform(-0.5, 0.5, dims), "float32")
        scale = float(np.float32(random.uniform(0.003, 0.01)))
        return constant(random.randint(-127, 128, dims), "int8" if cols else "int16", scale if cols else scale / 100)

    def bias(n):
        return constant(random.randint(-9000, 9000, n), "int32", 1e-5) if integer else constant(random.randn(n), "float32")

    def gates(make):
        return [None if coupled else make()] + [make() for _ in range(3)]

    scale, zero = quant(random, "int8", 0.005, 0.02) if integer else (None, 0)
    state = tensor([batch, outputs], dtype, 0.0078, random.randint(-9, 9), variable=True) if integer else tensor(
        [batch, outputs], dtype, variable=True)
    cell = tensor([batch, cells], "int16", 2.0**-random.randint(11, 14), 0, variable=True) if integer else tensor(
        [batch, cells], dtype, variable=True)
    time_major = bool(random.randint(2))
    lead = [steps, batch] if time_major else [batch, steps]
    operands = [tensor(lead + [inputs], dtype, scale, zero)]
    operands += gates(lambda: weight(cells, inputs)) + gates(lambda: weight(cells, outputs))
    operands += [weight(cells) if peephole and not (coupled and i == 0) else None for i in range(3)]
    operands += gates(lambda: bias(cells))
    operands += [weight(outputs, cells), bias(outputs) if random.randint(2) else None] if projection else [None, None]
    operands += [state, cell] + [None] * 4
    unused = tensor([0], "float32")
    hidden = tensor([0], "int8", 0.0075 if projection else state["scale"], 5 if projection else state["zero_point"])
    clips = dict(cell_clip=float(pick(random, 0, 1.5)), proj_clip=float(pick(random, 0, 0.3)) if projection else 0.0)
    return case("", ("UNIDIRECTIONAL_SEQUENCE_LSTM", 44), operands,
                tensor(lead + [outputs], dtype, state["scale"], state["zero_point"]),
                ("UnidirectionalSequenceLSTMOptions", dict(clips, fused_activation_function=TANH, time_major=time_major)),
                version=3, intermediates=[unused] * 4 + [hidden] if integer else ())


@family()
def integer_lstm(random):
    return lstm_case(random, "int8")


@family(exact=False, ulps=4096)
def float_lstm(random):
    return lstm_case(random, "float32")


def detection_options(**values):
    from flatbuffers import flexbuffers
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in values.items():
            builder.Key(key)
            (builder.Bool if isinstance(value, bool) else builder.Int if isinstance(value, int) else builder.Float)(value)
    return builder.Finish()


@family(exact=False, ulps=8)
def detection(random):
    boxes, classes = random.randint(1, 40), random.randint(1, 6)
    background = random.randint(2)
    most, per_box = random.randint(1, 12), random.randint(1, min(classes, 3) + 1)
    regular = bool(random.randint(2))
    options = detection_options(max_detections=int(most), max_classes_per_detection=int(1 if regular else per_box),
                                detections_per_class=int(random.randint(1, 20)), use_regular_nms=regular,
                                nms_score_threshold=0.3, nms_iou_threshold=0.5, num_classes=int(classes), y_scale=10.0,
                                x_scale=10.0, h_scale=5.0, w_scale=5.0)
    dtype = pick(random, "float32", "uint8")
    code = q(random, [1, boxes, 4], dtype) if dtype == "uint8" else tensor([1, boxes, 4], dtype)
    scores = tensor([1, boxes, classes + background], dtype, 1 / 256, 0) if dtype == "uint8" else tensor(
        [1, boxes, classes + background], dtype, between=(0, 1))
    anchors = constant(random.uniform(0.1, 0.9, (boxes, 4)), dtype)
    if dtype == "uint8":
        anchors = constant(random.randint(0, 256, (boxes, 4)), dtype, 0.004, 0)
    n = most * (1 if regular else per_box)
    made = case("", ("TFLite_Detection_PostProcess", CUSTOM), [code, scores, anchors],
                [tensor(s, "float32") for s in ([1, n, 4], [1, n], [1, n], [1])], custom=options)
    return dict(made, per_box=1 if regular else per_box)


class Ours:
    """Runs models with Skillet's C interface on the CPU."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.skillet_last_error.restype = ctypes.c_char_p
        self.device = ctypes.c_void_p()
        self.check(self.lib.skillet_open(b"cpu", ctypes.byref(self.device)))

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.skillet_last_error().decode())

    def run(self, model_file, inputs, like, runs):
        model = ctypes.c_void_p()
        self.check(self.lib.skillet_load_memory(self.device, model_file, ctypes.c_size_t(len(model_file)), None,
                                                ctypes.byref(model)))
        try:
            for k, data in enumerate(inputs):
                raw = data.tobytes()
                self.check(self.lib.skillet_set_input(model, ctypes.c_size_t(k), raw, ctypes.c_size_t(len(raw))))
            for _ in range(runs):
                self.check(self.lib.skillet_run(model))
            outputs = []
            for k, expected in enumerate(like):
                raw = ctypes.create_string_buffer(expected.nbytes)
                self.check(self.lib.skillet_get_output(model, ctypes.c_size_t(k), raw, ctypes.c_size_t(expected.nbytes)))
                outputs.append(np.frombuffer(raw.raw, expected.dtype).reshape(expected.shape))
            return outputs
        finally:
            self.lib.skillet_close_model(model)


NEWEST = "ai-edge-litert"


def runtimes():
    import ai_edge_litert.interpreter
    import tflite_runtime.interpreter
    return {"tflite-runtime": tflite_runtime.interpreter, NEWEST: ai_edge_litert.interpreter}


def outputs_of(runtime, resolver, model_file, inputs, runs):
    interpreter = runtime.Interpreter(model_content=model_file, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    for detail, data in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], data)
    for _ in range(runs):
        interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def expected_outputs(runtime, model_file, inputs, runs, judge="reference"):
    """Returns the outputs of the reference kernels, or of the built-in ones if the former fail or `judge` asks for the latter."""
    resolvers = runtime.OpResolverType
    if judge == "reference":
        try:
            return outputs_of(runtime, resolvers.BUILTIN_REF, model_file, inputs, runs)
        except (RuntimeError, ValueError):
            pass
    return outputs_of(runtime, resolvers.BUILTIN_WITHOUT_DEFAULT_DELEGATES, model_file, inputs, runs)


def expected_by_version(runtimes, model_file, inputs, runs, judge="reference"):
    """Returns the outputs of each published version that runs the model. Versions with a fault disagree with others."""
    results, refusal = {}, "refused"
    for name, runtime in runtimes.items():
        try:
            if judge == "reference" or name == NEWEST:
                results[name] = expected_outputs(runtime, model_file, inputs, runs, judge)
        except (RuntimeError, ValueError) as error:
            refusal = str(error).splitlines()[0][:100]
    return results, refusal


def only_found(c, outputs):
    """Returns the valid boxes of a detection: the contents of the others are undefined."""
    count = int(outputs[3][0]) * c["per_box"]
    return [outputs[0][:, :count], outputs[1][:, :count], outputs[2][:, :count], outputs[3]]


def difference(got, expected, ulps):
    if expected.dtype != np.float32:
        wrong = np.flatnonzero((got != expected).ravel())
        if wrong.size == 0:
            return None
        at = wrong[0]
        return f"{wrong.size} of {expected.size} differ, at {at}: {got.ravel()[at]}, expected {expected.ravel()[at]}"
    if got.shape != expected.shape:
        return f"shape {got.shape}, expected {expected.shape}"
    both_nan = np.isnan(got) & np.isnan(expected)
    step = np.spacing(np.maximum(np.abs(expected), 2.0**-126)) if expected.size else expected
    with np.errstate(all="ignore"):
        far = np.where(both_nan | (got == expected), 0, np.abs(got - expected) / step)
    if expected.size == 0 or np.nanmax(far) <= ulps and not np.isnan(far).any():
        return None
    at = int(np.argmax(np.where(np.isnan(far), np.inf, far)))  # the first of the largest
    return (f"differs by {far.ravel()[at]} units in the last place, limit {ulps}, at {at}: {got.ravel()[at]}, "
            f"expected {expected.ravel()[at]}")


def compare(make, c, got, expected):
    if make is detection:
        got, expected = only_found(c, got), only_found(c, expected)
    texts = [difference(g, e, ULPS[make]) for g, e in zip(got, expected)]
    return texts if any(texts) else None


def run_case(ours, runtimes, make, c, inputs):
    """Runs a case. Returns the words that it counts as, and the differences."""
    model_file = model_bytes(c)
    results, refusal = expected_by_version(runtimes, model_file, inputs, 2, JUDGE[make])
    if not results:
        return [f"published runtime: {refusal}"], None
    try:
        got = ours.run(model_file, inputs, next(iter(results.values())), 2)
    except RuntimeError as refusal:
        return [f"refused: {str(refusal)[-100:]}"], None
    texts = {name: compare(make, c, got, expected) for name, expected in results.items()}
    equal = [name for name, text in texts.items() if text is None]
    if equal:
        return ["equal"] + ([f"(only to {equal[0]})"] if len(equal) < len(texts) else []), None
    return [], list(texts.values())[-1]


def in_own_process(function):
    """Returns FUNCTION's result, computed in a child process: the published runtime may crash."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(20)
        with os.fdopen(there, "wb") as out:
            pickle.dump(function(), out)
            out.flush()
            os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as data:
        raw = data.read()
    os.waitpid(child, 0)
    return pickle.loads(raw) if raw else (["published runtime: dies"], None)


def describe(c):
    def one(t):
        small = t["data"] is not None and t["data"].size <= 8
        scale = f" {t['scale']:g}:{t['zero_point']}" if isinstance(t["scale"], float) else ""
        return f"{t['dtype']}{t['shape']}{scale}" + (f"={t['data'].ravel().tolist()}" if small else "")
    return " ".join(one(t) for t in c["inputs"] if t is not None) + " -> " + one(c["outputs"][0])


def run_family(ours, runtimes, make, count, seed, edges=False):
    """Returns the numbers of cases that are equal, equal to one version alone, or refused by each side; and descriptions of differences."""
    random, tally, wrong = np.random.RandomState(seed), collections.Counter(), []
    for k in range(count):
        c = grid_edges.edge_case(make, random) if edges else make(random)
        inputs = [random_values(t, random) for t in computed_inputs(c)]
        if edges:
            inputs = [grid_edges.edge_values(make, t, values, random) for t, values in zip(computed_inputs(c), inputs)]
            grid_edges.divide_by_no_zero(c, inputs)
            words, text = in_own_process(lambda: run_case(ours, runtimes, make, c, inputs))  # noqa: B023
        else:
            words, text = run_case(ours, runtimes, make, c, inputs)
        tally.update(words)
        if text is not None:
            wrong.append(f"case {k} {c['op'][0]} {describe(c)} {c['options']}: {text}")
    return tally, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family")
    parser.add_argument("--edges", action="store_true")
    args = parser.parse_args()
    ours, total, bad = Ours(args.library), collections.Counter(), 0
    for make in FAMILIES:
        if args.family and args.family != make.__name__:
            continue
        tally, wrong = run_family(ours, runtimes(), make, args.cases, args.seed, args.edges)
        total.update(tally)
        bad += len(wrong)
        print(f"{make.__name__}: {dict(tally)}" + "".join(f"\n  WRONG {text}" for text in wrong[:5]), flush=True)
    skipped = sum(n for what, n in total.items() if what.startswith(("published", "refused")))
    print(f"{total['equal']} equal, {bad} differ, {skipped} not compared")
    return 1 if bad else 0


if __name__ == "__main__":
    import grid
    import grid_edges
    import grid_hybrid  # noqa: F401: its families register themselves
    import grid_int16  # noqa: F401
    import grid_plain  # noqa: F401
    import grid_rare  # noqa: F401
    grid.grid_edges = grid_edges
    sys.exit(grid.main())
