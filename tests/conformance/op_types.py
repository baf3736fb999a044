"""Compares which types the published runtime and Skillet support for each operation.

usage: op_types.py LIBSKILLET_C [--only TEXT] [--differ]    exit code 1 if Skillet lacks a type that the published runtime computes

For each operation and type a small model runs on both. `=`: both compute and agree; `!`: they differ; `-`: only the published
runtime supports it; `+`: only Skillet. Needs what one_op.py needs, and ai-edge-litert.
"""

import argparse
import collections
import re
import sys

import numpy as np

from grid import Ours, difference, expected_outputs
from one_op import HERE, case, computed_inputs, constant, model_bytes, random_values, tensor

NAMES = ("float32", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool")
QUANTIZED = {"int8": -3, "uint8": 120, "int16": 0}
CODES = {name: int(code) for code, name in re.findall(
    r'BUILTIN\((\d+), "(\w+)"\)', (HERE / "../../src/graph/import/builtin_codes.def").read_text())}
FLOATS = ("float32", "float16")


def t(shape, dtype, scale=0.05, zero=None, **more):
    more.setdefault("between", (0.2, 2) if dtype in FLOATS else (0, 1) if dtype == "bool" else (1, 5))
    if dtype in QUANTIZED:
        zero = QUANTIZED[dtype] if zero is None else zero
        return tensor(shape, dtype, scale, zero, **dict(more, between=(zero + 1, zero + 100)))
    return tensor(shape, dtype, **more)


def fixed(shape, dtype, low=1, high=4):
    scale = {"scale": 0.05} if dtype in QUANTIZED else {}
    values = np.random.RandomState(3).randint(low, high, shape)
    return constant(values, dtype, zero_point=QUANTIZED.get(dtype, 0), **scale)


IMAGE = (1, 4, 6, 8)
OPS = collections.OrderedDict()


def op(names, options=None):
    """Registers operations. The decorated `make(dtype)` returns inputs and outputs."""
    def add(make):
        for name in names.split():
            OPS[name] = (make, options)
        return make
    return add


op("RELU RELU_N1_TO_1 RELU6 RELU_0_TO_1 ABS NEG HARD_SWISH ELU EXP LOG SQRT RSQRT SQUARE SIN COS FLOOR CEIL ROUND SIGN "
   "ZEROS_LIKE LOGICAL_NOT")(lambda d: ([t(IMAGE, d)], [t(IMAGE, d)]))
op("LEAKY_RELU", ("LeakyReluOptions", dict(alpha=0.3)))(lambda d: ([t(IMAGE, d)], [t(IMAGE, d)]))
op("GELU", ("GeluOptions", {}))(lambda d: ([t(IMAGE, d)], [t(IMAGE, d)]))
op("LOGISTIC", None)(lambda d: ([t(IMAGE, d)], [t(IMAGE, d, *{"int8": (1 / 256, -128), "uint8": (1 / 256, 0)}.get(d, (1 / 32768, 0)))]))
op("TANH", None)(lambda d: ([t(IMAGE, d)], [t(IMAGE, d, *{"int8": (1 / 128, 0), "uint8": (1 / 128, 128)}.get(d, (1 / 32768, 0)))]))
op("SOFTMAX", ("SoftmaxOptions", dict(beta=1.0)))(
    lambda d: ([t(IMAGE, d)], [t(IMAGE, d, *{"int8": (1 / 256, -128), "uint8": (1 / 256, 0)}.get(d, (1 / 32768, 0)))]))
op("LOG_SOFTMAX")(lambda d: ([t(IMAGE, d)], [t(IMAGE, d, 16 / 256, {"int8": 127, "uint8": 255}.get(d, 0))]))
op("L2_NORMALIZATION", ("L2NormOptions", {}))(
    lambda d: ([t(IMAGE, d)], [t(IMAGE, d, 1 / 128, {"int8": 0, "uint8": 128}.get(d, 0))]))
op("LOCAL_RESPONSE_NORMALIZATION", ("LocalResponseNormalizationOptions", dict(radius=2, bias=1.0, alpha=0.5, beta=0.5)))(
    lambda d: ([t(IMAGE, d)], [t(IMAGE, d)]))
op("ADD", ("AddOptions", {}))(lambda d: ([t(IMAGE, d), t(IMAGE, d)], [t(IMAGE, d)]))
op("SUB", ("SubOptions", {}))(lambda d: ([t(IMAGE, d), t(IMAGE, d)], [t(IMAGE, d)]))
op("MUL", ("MulOptions", {}))(lambda d: ([t(IMAGE, d), t(IMAGE, d)], [t(IMAGE, d)]))
op("DIV", ("DivOptions", {}))(lambda d: ([t(IMAGE, d), t(IMAGE, d)], [t(IMAGE, d)]))
op("MAXIMUM MINIMUM SQUARED_DIFFERENCE POW FLOOR_DIV FLOOR_MOD BITWISE_XOR RIGHT_SHIFT PRELU LOGICAL_AND LOGICAL_OR")(
    lambda d: ([t(IMAGE, d), t(IMAGE[1:], d)], [t(IMAGE, d)]))
op("ATAN2")(lambda d: ([t(IMAGE, d), t(IMAGE, d)], [t(IMAGE, d)]))
op("ADD_N")(lambda d: ([t(IMAGE, d)] * 3, [t(IMAGE, d)]))
op("EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL")(
    lambda d: ([t(IMAGE, d), t(IMAGE, d)], [tensor(IMAGE, "bool")]))
op("SELECT SELECT_V2")(lambda d: ([tensor(IMAGE, "bool"), t(IMAGE, d), t(IMAGE, d)], [t(IMAGE, d)]))
POOL = ("Pool2DOptions", dict(padding=1, stride_w=2, stride_h=2, filter_height=2, filter_width=2))
op("AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D", POOL)(lambda d: ([t(IMAGE, d)], [t((1, 2, 3, 8), d)]))
REDUCED = ("ReducerOptions", dict(keep_dims=False))
op("MEAN SUM REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_ANY REDUCE_ALL", REDUCED)(
    lambda d: ([t(IMAGE, d), constant([1, 2])], [t((1, 8), d)]))
op("ARG_MAX", ("ArgMaxOptions", dict(output_type=2)))(lambda d: ([t(IMAGE, d), constant(3)], [tensor(IMAGE[:3], "int32")]))
op("ARG_MIN", ("ArgMinOptions", dict(output_type=2)))(lambda d: ([t(IMAGE, d), constant(3)], [tensor(IMAGE[:3], "int32")]))
op("CUMSUM", ("CumsumOptions", {}))(lambda d: ([t(IMAGE, d), constant(3)], [t(IMAGE, d)]))
op("TOPK_V2")(lambda d: ([t(IMAGE, d), constant(3)], [t((1, 4, 6, 3), d), tensor((1, 4, 6, 3), "int32")]))
op("RESIZE_BILINEAR", ("ResizeBilinearOptions", {}))(lambda d: ([t(IMAGE, d), constant([5, 9])], [t((1, 5, 9, 8), d)]))
op("RESIZE_NEAREST_NEIGHBOR", ("ResizeNearestNeighborOptions", {}))(
    lambda d: ([t(IMAGE, d), constant([5, 9])], [t((1, 5, 9, 8), d)]))
op("CONCATENATION", ("ConcatenationOptions", dict(axis=1)))(lambda d: ([t(IMAGE, d)] * 2, [t((1, 8, 6, 8), d)]))
op("SPLIT", ("SplitOptions", dict(num_splits=2)))(lambda d: ([constant(1), t(IMAGE, d)], [t((1, 2, 6, 8), d)] * 2))
op("SPLIT_V", ("SplitVOptions", dict(num_splits=2)))(
    lambda d: ([t(IMAGE, d), constant([1, 3]), constant(1)], [t((1, 1, 6, 8), d), t((1, 3, 6, 8), d)]))
op("PACK", ("PackOptions", dict(values_count=2, axis=1)))(lambda d: ([t((2, 3), d)] * 2, [t((2, 2, 3), d)]))
op("UNPACK", ("UnpackOptions", dict(num=2, axis=0)))(lambda d: ([t((2, 3), d)], [t((3,), d)] * 2))
MARGINS = [[0, 0], [1, 1], [2, 0], [0, 1]]
op("PAD")(lambda d: ([t(IMAGE, d), constant(MARGINS)], [t((1, 6, 8, 9), d)]))
op("PADV2")(lambda d: ([t(IMAGE, d), constant(MARGINS), fixed([1], d)], [t((1, 6, 8, 9), d)]))
op("MIRROR_PAD", ("MirrorPadOptions", {}))(lambda d: ([t(IMAGE, d), constant(MARGINS)], [t((1, 6, 8, 9), d)]))
op("RESHAPE", ("ReshapeOptions", dict(new_shape=[4, 48])))(lambda d: ([t(IMAGE, d), constant([4, 48])], [t((4, 48), d)]))
op("SQUEEZE", ("SqueezeOptions", dict(squeeze_dims=[0])))(lambda d: ([t(IMAGE, d)], [t(IMAGE[1:], d)]))
op("EXPAND_DIMS")(lambda d: ([t(IMAGE, d), constant(0)], [t((1, *IMAGE), d)]))
op("TRANSPOSE")(lambda d: ([t(IMAGE, d), constant([0, 3, 1, 2])], [t((1, 8, 4, 6), d)]))
op("STRIDED_SLICE", ("StridedSliceOptions", {}))(
    lambda d: ([t(IMAGE, d), constant([0, 0, 1, 0]), constant([1, 4, 5, 8]), constant([1, 2, 1, 3])], [t((1, 2, 4, 3), d)]))
op("SLICE")(lambda d: ([t(IMAGE, d), constant([0, 0, 1, 0]), constant([1, 4, 5, 8])], [t((1, 4, 5, 8), d)]))
op("GATHER", ("GatherOptions", dict(axis=3)))(lambda d: ([t(IMAGE, d), constant([1, 0, 5])], [t((1, 4, 6, 3), d)]))
op("GATHER_ND")(lambda d: ([t(IMAGE, d), constant([[0, 1], [0, 2]])], [t((2, 6, 8), d)]))
op("SPACE_TO_DEPTH", ("SpaceToDepthOptions", dict(block_size=2)))(lambda d: ([t(IMAGE, d)], [t((1, 2, 3, 32), d)]))
op("DEPTH_TO_SPACE", ("DepthToSpaceOptions", dict(block_size=2)))(lambda d: ([t(IMAGE, d)], [t((1, 8, 12, 2), d)]))
op("SPACE_TO_BATCH_ND")(lambda d: ([t(IMAGE, d), constant([2, 2]), constant([[0, 0], [0, 0]])], [t((4, 2, 3, 8), d)]))
op("BATCH_TO_SPACE_ND")(lambda d: ([t((4, 2, 3, 8), d), constant([2, 2]), constant([[0, 0], [0, 0]])], [t(IMAGE, d)]))
op("REVERSE_V2")(lambda d: ([t(IMAGE, d), constant([2])], [t(IMAGE, d)]))
op("REVERSE_SEQUENCE", ("ReverseSequenceOptions", dict(seq_dim=2, batch_dim=1)))(
    lambda d: ([t(IMAGE, d), constant([2, 1, 6, 0])], [t(IMAGE, d)]))
op("ONE_HOT", ("OneHotOptions", dict(axis=-1)))(
    lambda d: ([tensor([3], "int32", between=(0, 4)), constant(5), constant(1, d), constant(0, d)], [tensor([3, 5], d)]))
op("TILE")(lambda d: ([t(IMAGE, d), constant([1, 2, 1, 1])], [t((1, 8, 6, 8), d)]))
op("BROADCAST_TO")(lambda d: ([t(IMAGE, d), constant([3, 4, 6, 8])], [t((3, 4, 6, 8), d)]))
op("FILL")(lambda d: ([constant([2, 3]), t([], d)], [t((2, 3), d)]))
op("SHAPE", ("ShapeOptions", dict(out_type=2)))(lambda d: ([t(IMAGE, d)], [tensor([4], "int32")]))
op("RANK")(lambda d: ([t(IMAGE, d)], [tensor([], "int32")]))
op("SCATTER_ND")(lambda d: ([constant([[1], [3], [1]]), t((3, 2), d), constant([5, 2])], [t((5, 2), d)]))
op("EMBEDDING_LOOKUP")(lambda d: ([constant([1, 0, 1]), t((3, 2), d)], [t((3, 2), d)]))
op("MATRIX_DIAG")(lambda d: ([t((2, 3), d)], [t((2, 3, 3), d)]))
op("MATRIX_SET_DIAG")(lambda d: ([t((2, 3, 4), d), t((2, 3), d)], [t((2, 3, 4), d)]))
op("SEGMENT_SUM")(lambda d: ([t((4, 2), d), constant([0, 0, 1, 2])], [t((3, 2), d)]))
op("UNSORTED_SEGMENT_SUM UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN")(
    lambda d: ([t((4, 2), d), constant([2, 0, -1, 2]), constant(4)], [t((4, 2), d)]))
op("DYNAMIC_UPDATE_SLICE")(lambda d: ([t((4, 5), d), t((2, 3), d), constant([1, 9])], [t((4, 5), d)]))
op("BROADCAST_ARGS")(lambda d: ([constant([3, 1], d), constant([4], d)], [tensor([2], d)]))
op("RANGE")(lambda d: ([constant(1, d), constant(9, d), constant(3, d)], [tensor([3], d)]))
op("BATCH_MATMUL", ("BatchMatMulOptions", {}))(lambda d: ([t((2, 3, 4), d), t((2, 4, 5), d)], [t((2, 3, 5), d)]))
op("QUANTIZE")(lambda d: ([t(IMAGE, d)], [t(IMAGE, "int8")]))
op("DEQUANTIZE")(lambda d: ([t(IMAGE, d)], [tensor(IMAGE, "float32")]))
op("CAST")(lambda d: ([t(IMAGE, d)], [tensor(IMAGE, "float32")]))


def filters(shape, d, axis):
    if d in ("int8", "int16"):
        return constant(np.random.RandomState(3).randint(-9, 9, shape), "int8", 0.05, 0, axis)
    return fixed(shape, d)


CONV = dict(padding=1, stride_w=1, stride_h=1)
op("CONV_2D", ("Conv2DOptions", CONV))(lambda d: ([t(IMAGE, d), filters((5, 2, 2, 8), d, 0)], [t((1, 3, 5, 5), d)]))
op("DEPTHWISE_CONV_2D", ("DepthwiseConv2DOptions", dict(CONV, depth_multiplier=1)))(
    lambda d: ([t(IMAGE, d), filters((1, 2, 2, 8), d, 3)], [t((1, 3, 5, 8), d)]))
op("TRANSPOSE_CONV", ("TransposeConvOptions", CONV))(
    lambda d: ([constant([1, 5, 7, 5]), filters((5, 2, 2, 8), d, 0), t(IMAGE, d)], [t((1, 5, 7, 5), d)]))
op("FULLY_CONNECTED", ("FullyConnectedOptions", {}))(lambda d: ([t((3, 8), d), filters((5, 8), d, 0)], [t((3, 5), d)]))
op("NON_MAX_SUPPRESSION_V4")(lambda d: ([t((6, 4), d), t((6,), d), constant(3), constant(0.5, "float32"), constant(0.3, "float32")],
                                        [tensor([3], "int32"), tensor([], "int32")]))
op("NON_MAX_SUPPRESSION_V5")(lambda d: ([t((6, 4), d), t((6,), d), constant(3), constant(0.5, "float32"), constant(0.3, "float32"),
                                         constant(0.0, "float32")],
                                        [tensor([3], "int32"), tensor([3], "float32"), tensor([], "int32")]))


def highest_version(runtime, name):
    """Returns the newest version that the runtime supports. The runtime checks it before it looks at any tensor."""
    make, options = OPS[name]
    for version in range(12, 0, -1):
        model = model_bytes(case("", (name, CODES[name]), *make("float32"), options, version))
        try:
            runtime.Interpreter(model_content=model, experimental_op_resolver_type=runtime.OpResolverType.BUILTIN_REF)
            return version
        except (RuntimeError, ValueError) as error:
            if "Didn't find op" not in str(error):
                return version
    return 1


def ask(ours, runtime, name, dtype, version):
    """Returns '=' or another mark, and a remark."""
    make, options = OPS[name]
    try:
        c = case("", (name, CODES[name]), *make(dtype), options, version)
        model = model_bytes(c)
    except KeyError:
        return " ", "no such type"
    random = np.random.RandomState(5)
    inputs = [random_values(x, random) for x in computed_inputs(c)]
    expected, text = None, ""
    try:
        expected = expected_outputs(runtime, model, inputs, 1)
    except (RuntimeError, ValueError) as error:
        text = str(error).splitlines()[0]
    like = expected or [np.zeros(o["shape"], o["dtype"]) for o in c["outputs"]]
    try:
        got = ours.run(model, inputs, like, 1)
    except RuntimeError as error:
        return ("-" if expected else " "), str(error)
    if expected is None:
        return "+", text
    wrong = [difference(g, e, 64) for g, e in zip(got, expected)]
    return ("!", str(wrong)) if any(wrong) else ("=", "")


def main():
    import ai_edge_litert.interpreter as runtime
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--only")
    parser.add_argument("--differ", action="store_true", help="say what is lacking or differs, and why")
    args = parser.parse_args()
    ours, total = Ours(args.library), collections.Counter()
    print(f"{'':30}" + " ".join(f"{n:>7}" for n in NAMES))
    for name in OPS:
        if args.only and args.only not in name:
            continue
        version = highest_version(runtime, name)
        answers = [ask(ours, runtime, name, d, version) for d in NAMES]
        total.update(mark for mark, _ in answers)
        print(f"{name:30}" + " ".join(f"{mark:>7}" for mark, _ in answers), flush=True)
        for dtype, (mark, text) in zip(NAMES, answers):
            if args.differ and mark in "-!":
                print(f"    {mark} {dtype}: {text[-150:]}")
    print(f"{total['=']} equal, {total['!']} differ, {total['-']} only the published runtime, {total['+']} only ours")
    return 1 if total["-"] + total["!"] else 0


if __name__ == "__main__":
    sys.exit(main())
