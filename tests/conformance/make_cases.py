"""Makes the golden cases of the set `kernels`: operations and quantizations that the recorded sets omit.

Needs flatc, NumPy and tflite-runtime 2.14.0, whose reference kernels compute the expected outputs. At the ends of types these are
the newest runtime's (ai-edge-litert 2.3.0) if the two differ.
Run from anywhere: python make_cases.py; make_cases.py edges makes only those. Writes cases/kernels and models/kernels beside this file.
"""

import hashlib
import json
import sys

import numpy as np
from tflite_runtime.interpreter import Interpreter, OpResolverType

import grid
import grid_int16  # noqa: F401: its families register themselves
import grid_rare  # noqa: F401
from one_op import (HERE, RELU, RELU6, RELU_N1_TO_1, SAME, TYPES, VALID, case, computed_inputs, constant, model_bytes,
                    random_values, tensor)

RANDOM = np.random.RandomState(7)


def weights(shape, dtype, scale, zero_point=0, axis=0):
    low, high = {"uint8": (0, 256), "int8": (-127, 128), "int32": (-5000, 5000)}[dtype]
    return constant(RANDOM.randint(low, high, shape), dtype, scale, zero_point, axis)


def describe(detail, data, file):
    scale, zero_point = detail["quantization"]
    raw = data.tobytes()
    return dict(name=detail["name"], type=TYPES[np.dtype(detail["dtype"]).name][1],
                dims=[int(d) for d in detail["shape"]], scale=float(scale), zero_point=int(zero_point),
                bytes=len(raw), sha256_128=hashlib.sha256(raw).hexdigest()[:32], file=file)


def old_random_input(detail):
    """Returns the values of the older cases, which must not change."""
    if detail["dtype"] == np.float32:
        return (RANDOM.randn(*detail["shape"]) * 3).astype(np.float32)
    return RANDOM.randint(0, 256, detail["shape"]).astype(np.uint8).view(detail["dtype"])


def record(name, op_name, model, contents=None):
    """Runs the model on random inputs. Writes inputs, outputs and case.json."""
    folder = HERE / "cases/kernels" / name
    folder.mkdir(parents=True, exist_ok=True)
    interpreter = Interpreter(str(model), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    case = dict(model=f"models/kernels/{name}.tflite", ops=[op_name], inputs=[], outputs=[])
    for k, detail in enumerate(interpreter.get_input_details()):
        data = old_random_input(detail) if contents is None else contents[k]
        interpreter.set_tensor(detail["index"], data)
        (folder / f"input_{k}.bin").write_bytes(data.tobytes())
        case["inputs"].append(describe(detail, data, f"input_{k}.bin"))
    interpreter.invoke()
    for k, detail in enumerate(interpreter.get_output_details()):
        data = interpreter.get_tensor(detail["index"])
        (folder / f"output_{k}.bin").write_bytes(data.tobytes())
        case["outputs"].append(describe(detail, data, f"output_{k}.bin"))
    (folder / "case.json").write_text(json.dumps(case))


def make(name, op, inputs, output, options=None, version=1):
    op_name = op[0]
    model = HERE / f"models/kernels/{name}.tflite"
    model.parent.mkdir(parents=True, exist_ok=True)
    model.write_bytes(model_bytes(case(name, op, inputs, output, options, version)))
    record(name, op_name, model)


def make_from_grid(per_family):
    """Makes the first cases of each family of grid.py whose results are exact and equal in all published versions."""
    for family in grid.FAMILIES:
        if family not in grid.EXACT:
            continue
        random, made = np.random.RandomState(11), 0
        while made < per_family:
            c = family(random)
            inputs, file = [random_values(t, random) for t in computed_inputs(c)], model_bytes(c)
            results, _ = grid.expected_by_version(grid.runtimes(), file, inputs, 1)
            if len(results) < 2 or any(grid.compare(family, c, r, results["tflite-runtime"]) for r in results.values()):
                continue
            name = f"{family.__name__}_{made}"
            made += 1
            (HERE / f"models/kernels/{name}.tflite").write_bytes(file)
            record_outputs(name, c, inputs, results["tflite-runtime"])


def record_outputs(name, c, inputs, outputs):
    folder = HERE / "cases/kernels" / name
    folder.mkdir(parents=True, exist_ok=True)
    made = dict(model=f"models/kernels/{name}.tflite", ops=[c["op"][0]])
    for kind, arrays, tensors in (("input", inputs, computed_inputs(c)), ("output", outputs, c["outputs"])):
        made[kind + "s"] = []
        for k, (data, t) in enumerate(zip(arrays, tensors)):
            file = f"{kind}_{k}.bin"
            (folder / file).write_bytes(data.tobytes())
            detail = dict(name=file, quantization=(t["scale"] or 0, t["zero_point"]), dtype=data.dtype, shape=data.shape)
            made[kind + "s"].append(describe(detail, data, file))
    (folder / "case.json").write_text(json.dumps(made))


SHAPE = (1, 7, 9, 5)
# Per type: zero points of input and output. Their scales differ.
QUANT = {"uint8": ("u8", 128, 120), "int8": ("i8", 17, -100)}
IN_SCALE, OUT_SCALE = 0.1, 0.033


def elementwise(dtype):
    short, zi, zo = QUANT[dtype]
    x, y = tensor(SHAPE, dtype, IN_SCALE, zi), tensor(SHAPE, dtype, OUT_SCALE, zo)
    row, col = tensor((1, 7, 1, 5), dtype, IN_SCALE, zi), tensor((1, 1, 9, 1), dtype, 0.07, zo)
    for op in (("RELU", 19), ("RELU_N1_TO_1", 20), ("RELU6", 21), ("HARD_SWISH", 117)):
        make(f"{op[0].lower()}_{short}", op, [x], y)
    for alpha in (0.3, -0.2):
        make(f"leaky_relu_{alpha}_{short}", ("LEAKY_RELU", 98), [x], y, ("LeakyReluOptions", dict(alpha=alpha)))
    for op, options in ((("ADD", 0), "AddOptions"), (("SUB", 41), "SubOptions"), (("MUL", 18), "MulOptions")):
        make(f"{op[0].lower()}_broadcast_relu6_{short}", op, [row, col], y,
             (options, dict(fused_activation_function=RELU6)), version=2)
    zero = 0 if dtype == "uint8" else -128
    make(f"logistic_{short}", ("LOGISTIC", 14), [x], tensor(SHAPE, dtype, 1 / 256, zero))
    make(f"tanh_{short}", ("TANH", 28), [x], tensor(SHAPE, dtype, 1 / 128, zero + 128))
    make(f"softmax_beta_{short}", ("SOFTMAX", 25), [tensor((3, 40), dtype, IN_SCALE, zi)],
         tensor((3, 40), dtype, 1 / 256, zero), ("SoftmaxOptions", dict(beta=0.5)))
    make(f"quantize_float_{short}", ("QUANTIZE", 114), [tensor(SHAPE, "float32")], y)
    make(f"requantize_{short}", ("QUANTIZE", 114), [x], y, version=2)
    make(f"dequantize_{short}", ("DEQUANTIZE", 6), [x], tensor(SHAPE, "float32"), version=2)
    if dtype == "int8":
        make(f"abs_rescale_{short}", ("ABS", 101), [x], y)
    # The quotient 9/4 is not exact in these scales: computed in float or double, it rounds ties differently.
    x, y = tensor(SHAPE, dtype, 0.9, zi), tensor(SHAPE, dtype, 0.4, zo)
    for op in (("RELU", 19), ("ABS", 101))[:2 if dtype == "int8" else 1]:
        make(f"{op[0].lower()}_ties_{short}", op, [x], y)
    make(f"requantize_ties_{short}", ("QUANTIZE", 114), [x], y, version=2)


def reductions(dtype):
    short, zi, zo = QUANT[dtype]
    x = tensor(SHAPE, dtype, IN_SCALE, zi)
    for axes, keep, dims in (([1, 2], True, (1, 1, 1, 5)), ([1, 2], False, (1, 5)), ([3], False, (1, 7, 9)),
                             ([-1, 1], True, (1, 1, 9, 1))):
        name = "".join(str(a % 4) for a in axes) + ("_keep" if keep else "")
        make(f"mean_{name}_{short}", ("MEAN", 40), [x, constant(axes)], tensor(dims, dtype, OUT_SCALE, zo),
             ("ReducerOptions", dict(keep_dims=keep)), version=2)
    pool = dict(padding=SAME, stride_w=2, stride_h=1, filter_width=3, filter_height=2, fused_activation_function=RELU)
    for op in (("AVERAGE_POOL_2D", 1), ("MAX_POOL_2D", 17)):
        make(f"{op[0].lower()}_relu_{short}", op, [x], tensor((1, 7, 5, 5), dtype, IN_SCALE, zi),
             ("Pool2DOptions", pool), version=2)
    for corners, centers in ((0, 0), (1, 0), (0, 1)):
        for op, options in ((("RESIZE_BILINEAR", 23), "ResizeBilinearOptions"),
                            (("RESIZE_NEAREST_NEIGHBOR", 97), "ResizeNearestNeighborOptions")):
            make(f"{op[0].lower()}_{corners}{centers}_{short}", op, [x, constant([13, 6])],
                 tensor((1, 13, 6, 5), dtype, IN_SCALE, zi),
                 (options, dict(align_corners=bool(corners), half_pixel_centers=bool(centers))), version=3)


def weighted(dtype):
    short, zi, zo = QUANT[dtype]
    zero, scale = (111, 0.013) if dtype == "uint8" else (0, 0.013)
    x = tensor(SHAPE, dtype, IN_SCALE, zi)
    bias_scale = float(np.float32(IN_SCALE) * np.float32(scale))
    conv = dict(padding=SAME, stride_w=2, stride_h=2, dilation_w_factor=1, dilation_h_factor=1,
                fused_activation_function=RELU6)
    make(f"conv_odd_{short}", ("CONV_2D", 3),
         [x, weights((6, 3, 4, 5), dtype, scale, zero), weights((6,), "int32", bias_scale)],
         tensor((1, 4, 5, 6), dtype, 0.3, zo), ("Conv2DOptions", conv), version=3)
    depthwise = dict(padding=VALID, stride_w=1, stride_h=1, depth_multiplier=2, dilation_w_factor=2,
                     dilation_h_factor=2, fused_activation_function=RELU_N1_TO_1)
    make(f"depthwise_multiplier_{short}", ("DEPTHWISE_CONV_2D", 4),
         [x, weights((1, 3, 3, 10), dtype, scale, zero, 3), weights((10,), "int32", bias_scale)],
         tensor((1, 3, 5, 10), dtype, 0.1, zo), ("DepthwiseConv2DOptions", depthwise), version=3)
    for padding, dims in ((SAME, (1, 14, 18, 6)), (VALID, (1, 15, 20, 6))):
        make(f"transpose_conv_{'valid' if padding else 'same'}_{short}", ("TRANSPOSE_CONV", 67),
             [constant(dims), weights((6, 3, 4, 5), dtype, scale, zero), x], tensor(dims, dtype, 0.3, zo),
             ("TransposeConvOptions", dict(padding=padding, stride_w=2, stride_h=2)), version=2 if dtype == "int8" else 1)
    make(f"fully_connected_{short}", ("FULLY_CONNECTED", 9),
         [tensor((3, 20), dtype, IN_SCALE, zi), weights((7, 20), dtype, scale, zero), weights((7,), "int32", bias_scale)],
         tensor((3, 7), dtype, 0.3, zo), ("FullyConnectedOptions", dict(fused_activation_function=RELU)), version=4)


def rounded_sums(dtype):
    """Makes sums (biases with zero weights) that round differently if the scales are multiplied in float or in double."""
    input_scale, filter_scale = np.float32(0.0123), np.float32(0.0345)
    output_scale = np.float32(1.3e6) * input_scale * filter_scale
    float_product = float(input_scale * filter_scale) / float(output_scale)
    double_product = float(input_scale) * float(filter_scale) / float(output_scale)

    def scaled(sums, real):
        fraction, exponent = np.frexp(real)
        high = (sums * int(round(fraction * 2**31)) + (1 << 30)) >> 31
        mask = (1 << -exponent) - 1
        return (high >> -exponent) + ((high & mask) > (mask >> 1) + (high < 0))

    sums = []
    for output in range(-100, 100, 5):
        near = int((output + 0.5) / double_product) + np.arange(-200, 200, dtype=np.int64)
        sums += list(near[scaled(near, float_product) != scaled(near, double_product)][:1])
    short, zi, _ = QUANT[dtype]
    zero = 128 if dtype == "uint8" else 0
    n, scales = len(sums), (float(filter_scale), float(input_scale * filter_scale), float(output_scale))
    bias = constant(sums, "int32", scales[1])

    def filter_of(*shape):
        return constant(np.full(shape, zero), dtype, scales[0], zero)

    def t(*shape):
        return tensor(shape, dtype, float(input_scale), zi)

    make(f"fully_connected_rounding_{short}", ("FULLY_CONNECTED", 9), [t(1, 8), filter_of(n, 8), bias],
         tensor((1, n), dtype, scales[2], zero), ("FullyConnectedOptions", {}), version=4)
    steps = dict(padding=SAME, stride_w=1, stride_h=1, dilation_w_factor=1, dilation_h_factor=1)
    make(f"conv_rounding_{short}", ("CONV_2D", 3), [t(1, 2, 2, 8), filter_of(n, 1, 1, 8), bias],
         tensor((1, 2, 2, n), dtype, scales[2], zero), ("Conv2DOptions", steps), version=3)
    make(f"depthwise_rounding_{short}", ("DEPTHWISE_CONV_2D", 4), [t(1, 2, 2, n), filter_of(1, 1, 1, n), bias],
         tensor((1, 2, 2, n), dtype, scales[2], zero), ("DepthwiseConv2DOptions", dict(steps, depth_multiplier=1)),
         version=3)


def layouts(dtype):
    short, zi, _ = QUANT[dtype]

    def t(*shape):
        return tensor(shape, dtype, IN_SCALE, zi)

    make(f"pad_v2_{short}", ("PADV2", 60), [t(*SHAPE), constant([[0, 0], [1, 2], [0, 3], [2, 0]]),
                                            constant([7], dtype, IN_SCALE, zi)], t(1, 10, 12, 7), version=2)
    make(f"space_to_depth_{short}", ("SPACE_TO_DEPTH", 26), [t(2, 4, 6, 3)], t(2, 2, 3, 12),
         ("SpaceToDepthOptions", dict(block_size=2)), version=2)
    make(f"depth_to_space_{short}", ("DEPTH_TO_SPACE", 5), [t(2, 4, 6, 12)], t(2, 8, 12, 3),
         ("DepthToSpaceOptions", dict(block_size=2)))
    make(f"space_to_batch_{short}", ("SPACE_TO_BATCH_ND", 38),
         [t(2, 4, 6, 3), constant([2, 3]), constant([[1, 1], [2, 1]])], t(12, 3, 3, 3), version=2)
    make(f"batch_to_space_{short}", ("BATCH_TO_SPACE_ND", 37),
         [t(12, 3, 3, 3), constant([2, 3]), constant([[1, 1], [2, 1]])], t(2, 4, 6, 3), version=2)
    make(f"pack_{short}", ("PACK", 83), [t(3, 4), t(3, 4)], t(3, 2, 4),
         ("PackOptions", dict(values_count=2, axis=1)), version=2)
    make(f"transpose_4d_{short}", ("TRANSPOSE", 39), [t(2, 3, 4, 5), constant([3, 1, 0, 2])], t(5, 3, 2, 4), version=2)
    make(f"slice_{short}", ("SLICE", 65), [t(2, 3, 4, 5), constant([1, 0, 1, 2]), constant([1, 2, -1, 3])],
         t(1, 2, 3, 3), version=2)
    slices = (([-1, 2, 3], [-3, 0, -5], [-1, -1, -2], (2, 2, 2), {}),
              ([0, 1, 0], [2, 2, 4], [1, 1, 2], (2, 2), dict(shrink_axis_mask=2)),
              ([0, 0, 0], [0, 0, 0], [-1, 1, -1], (2, 3, 4), dict(begin_mask=7, end_mask=7)),
              ([0, 1], [0, 3], [1, 1], (2, 3, 2), dict(ellipsis_mask=1)),
              ([0, 0, 1, 0], [0, 2, 3, 4], [1, 1, 1, 1], (1, 2, 2, 4), dict(new_axis_mask=1)))
    for k, (begin, end, strides, dims, masks) in enumerate(slices):
        make(f"strided_slice_{k}_{short}", ("STRIDED_SLICE", 45),
             [t(2, 3, 4), constant(begin), constant(end), constant(strides)], t(*dims),
             ("StridedSliceOptions", masks), version=2)


def make_edges():
    """Makes slopes below zero whose products are halves, infinities, NaN, multipliers beyond 16 bits, a symmetric range."""
    inf, nan = np.inf, np.nan
    values = np.array([[inf, -inf, nan, 3.4e38, -3.4e38, 1e-45, -0.0, 2.5]], np.float32)
    others = np.array([[1, inf, 2, -3.4e38, nan, inf, 0.0, nan]], np.float32)
    every = np.arange(256).reshape(1, 256)
    float_t, bytes_t = tensor((1, 8), "float32"), {d: tensor((1, 256), d, 0.05, z) for d, z in (("int8", 3), ("uint8", 130))}
    raw = {d: every.astype(np.uint8).view(d) for d in bytes_t}
    add_edge("floor_div", ("FLOOR_DIV", 90), [tensor((1, 4), "float32")] * 2, tensor((1, 4), "float32"), None, 2,
             [np.array([[12, 3, -12, 5]], np.float32), np.array([[0.1, 0.1, 0.1, inf]], np.float32)])
    for name, code in (("MAXIMUM", 55), ("MINIMUM", 57), ("SQUARED_DIFFERENCE", 99), ("ADD_N", 106)):
        add_edge(name.lower(), (name, code), [float_t] * 2, float_t, None, 1, [values, others])
    for name, code in (("RELU", 19), ("RELU6", 21)):
        add_edge(name.lower(), (name, code), [float_t], float_t, None, 1, [values])
    for dtype, t in bytes_t.items():
        for alpha in (-0.5, -1.5):
            add_edge(f"leaky_relu_{alpha}_{dtype}", ("LEAKY_RELU", 98), [t], t, ("LeakyReluOptions", dict(alpha=alpha)), 2, [raw[dtype]])
        add_edge(f"hard_swish_{dtype}", ("HARD_SWISH", 117), [t], dict(t, scale=272.668), None, 1, [raw[dtype]])
    symmetric = np.array([[-1e5, 1e5, 0.5, -0.5, 3, 7e4, -2e4, 1]], np.float32)
    add_edge("fully_connected_hybrid", ("FULLY_CONNECTED", 9), [float_t, constant([[1, -2, 3, 40, 5, -60, 7, 80]] * 2, "int8", 0.01, 0)],
             tensor((1, 2), "float32"), ("FullyConnectedOptions", dict(asymmetric_quantize_inputs=True)), 9, [symmetric])


def add_edge(name, op, inputs, output, options, version, contents):
    c = case("", op, inputs, output, options, version)
    file, hybrid = model_bytes(c), name.endswith("hybrid")
    results, refusal = grid.expected_by_version(grid.runtimes(), file, contents, 1, "newest" if hybrid else "reference")
    if grid.NEWEST not in results:
        raise SystemExit(f"{name}: {refusal}")
    name = f"edge_{name}"
    (HERE / f"models/kernels/{name}.tflite").write_bytes(file)
    record_outputs(name, c, contents, results[grid.NEWEST])


make_edges()
if sys.argv[1:] == ["edges"]:
    sys.exit()
for element_type in QUANT:
    elementwise(element_type)
    reductions(element_type)
    weighted(element_type)
    rounded_sums(element_type)
    layouts(element_type)
make("concat_rescale_u8", ("CONCATENATION", 2),
     [tensor((2, 3, 4), "uint8", 0.02, 3), tensor((2, 5, 4), "uint8", 0.031, 250)], tensor((2, 8, 4), "uint8", 0.02, 3),
     ("ConcatenationOptions", dict(axis=-2)), version=2)
make_from_grid(5)
