"""Networks that are made and quantized here, for the tests of the ONNX Runtime provider and of ONNX files: small ones of every relevant kind.

They are made with `onnx.helper` and onnxruntime.quantization; weights and calibration data are random, from a seed.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization

INPUT = (1, 3, 32, 32)


class Net:
    """Collects nodes in order; x is the input."""

    def __init__(self, shape=INPUT, seed=1):
        self.nodes, self.constants, self.shape, self.random = [], [], shape, np.random.default_rng(seed)

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{kind}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=names[0], **attributes))
        return names[0] if outputs == 1 else names

    def conv(self, x, inputs, outputs, kernel=3, stride=1, group=1, act="Clip"):
        shape = (outputs, inputs // group, kernel, kernel)
        weights = self.random.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape).astype(np.float32)
        bias = self.random.normal(0, 0.1, outputs).astype(np.float32)
        y = self.op("Conv", x, self.constant(weights), self.constant(bias), kernel_shape=[kernel] * 2, strides=[stride] * 2,
                    pads=[kernel // 2] * 4, group=group)
        if act == "Clip":
            return self.op("Clip", y, self.constant(np.float32(0)), self.constant(np.float32(6)))
        if act == "SiLU":
            return self.op("Mul", y, self.op("Sigmoid", y))
        return self.op(act, y) if act else y

    def dense(self, x, inputs, outputs):
        weights = self.random.normal(0, inputs**-0.5, (outputs, inputs)).astype(np.float32)
        return self.op("Gemm", x, self.constant(weights), self.constant(np.zeros(outputs, np.float32)), transB=1)

    def model(self, *outputs):
        shape = [f"d{i}" if size is None else size for i, size in enumerate(self.shape)]
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(one, TensorProto.FLOAT, None) for one in outputs], self.constants)
        return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))


def mobilenet(shape=INPUT):
    """Makes inverted residuals, a mean, a dense layer."""
    n = Net(shape)
    x = n.conv("x", 3, 16, stride=2)
    for inputs, outputs, stride in ((16, 16, 1), (16, 24, 2), (24, 24, 1)):
        y = n.conv(n.conv(x, inputs, inputs * 4, 1), inputs * 4, inputs * 4, 3, stride, group=inputs * 4)
        y = n.conv(y, inputs * 4, outputs, 1, act=None)
        x = n.op("Add", x, y) if inputs == outputs else y
    return n.model(n.dense(n.op("Flatten", n.op("GlobalAveragePool", x)), 24, 10))


def yolo():
    """Makes SiLU, a pool with padding, splits, concatenations, an upsampling, a head that is flattened."""
    n = Net()
    a = n.conv("x", 3, 16, 3, 2, act="SiLU")
    b = n.conv(a, 16, 32, 3, 2, act="SiLU")
    pool = n.op("MaxPool", b, kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4)
    c = n.conv(n.op("Concat", b, pool, axis=1), 64, 32, 1, act="SiLU")
    left, right = n.op("Split", c, outputs=2, axis=1)
    c = n.op("Concat", left, n.conv(right, 16, 16, act="SiLU"), axis=1)
    larger = n.op("Resize", c, "", n.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    d = n.conv(n.op("Concat", larger, a, axis=1), 48, 24, act="SiLU")
    return n.model(n.op("Reshape", n.conv(d, 24, 12, 1, act=None), n.constant(np.array([1, 12, -1], np.int64))))


def lenet():
    """Flattens images to rows of numbers in the middle."""
    n = Net((1, 1, 28, 28))
    x = n.op("MaxPool", n.conv("x", 1, 8, 5, act="Relu"), kernel_shape=[2, 2], strides=[2, 2])
    x = n.op("AveragePool", n.conv(x, 8, 16, 3, act="Relu"), kernel_shape=[2, 2], strides=[2, 2])
    return n.model(n.op("Softmax", n.dense(n.op("Flatten", x), 16 * 7 * 7, 10), axis=-1))


def resnet():
    """Makes residual blocks, one with a convolution in its shortcut; a pool with padding."""
    n = Net()
    x = n.op("MaxPool", n.conv("x", 3, 16, 3, 2, act="Relu"), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for inputs, outputs, stride in ((16, 16, 1), (16, 32, 2)):
        y = n.conv(n.conv(x, inputs, outputs, 3, stride, act="Relu"), outputs, outputs, act=None)
        beside = x if inputs == outputs else n.conv(x, inputs, outputs, 1, stride, act=None)
        x = n.op("Relu", n.op("Add", y, beside))
    return n.model(n.dense(n.op("Flatten", n.op("GlobalAveragePool", x)), 32, 10))


def densenet():
    """Concatenates each block's result with its input."""
    n, channels = Net(), 16
    x = n.conv("x", 3, channels, 3, 2, act="Relu")
    for _ in range(3):
        x = n.op("Concat", x, n.conv(x, channels, 8, act="Relu"), axis=1)
        channels += 8
    x = n.op("AveragePool", n.conv(x, channels, 16, 1, act="Relu"), kernel_shape=[2, 2], strides=[2, 2])
    return n.model(n.dense(n.op("Flatten", n.op("GlobalAveragePool", x)), 16, 7))


def unet():
    """Downsamples, then upsamples and concatenates with the first image."""
    n = Net()
    a = n.conv("x", 3, 8, act="Relu")
    b = n.conv(n.op("MaxPool", a, kernel_shape=[2, 2], strides=[2, 2]), 8, 16, act="Relu")
    larger = n.op("ConvTranspose", b, n.constant(n.random.normal(0, 0.2, (16, 8, 2, 2)).astype(np.float32)), kernel_shape=[2, 2], strides=[2, 2])
    return n.model(n.op("Sigmoid", n.conv(n.op("Concat", a, larger, axis=1), 16, 2, 1, act=None)))


def weighed_channels():
    """Makes squeeze and excitation."""
    n = Net()
    x = n.conv("x", 3, 16, 3, 2, act="HardSwish")
    weights = n.op("HardSigmoid", n.conv(n.conv(n.op("GlobalAveragePool", x), 16, 8, 1, act="Relu"), 8, 16, 1, act=None))
    return n.model(n.conv(n.op("Mul", x, weights), 16, 8, act="LeakyRelu"))


def shuffled_channels():
    """Splits channels into halves, which are swapped between the blocks."""
    n = Net()
    x = n.conv("x", 3, 16, 3, 2, act="Relu")
    for _ in range(2):
        left, right = n.op("Split", x, outputs=2, axis=1)
        right = n.conv(n.conv(n.conv(right, 8, 8, 1, act="Relu"), 8, 8, group=8, act=None), 8, 8, 1, act="Relu")
        x = n.op("Reshape", n.op("Concat", left, right, axis=1), n.constant(np.array([1, 2, 8, 16, 16], np.int64)))
        x = n.op("Reshape", n.op("Transpose", x, perm=[0, 2, 1, 3, 4]), n.constant(np.array([1, 16, 16, 16], np.int64)))
    return n.model(n.conv(x, 16, 4, act=None))


def transformer(length=12, width=16, heads=2):
    """Makes a transformer block as exporters write it.

    It has normalizations, heads by Reshape and Transpose, products of computed matrices, and a GELU with Erf."""
    n = Net((1, length, width))

    def dense(x, inputs, outputs):
        return n.op("Add", n.op("MatMul", x, n.constant(n.random.normal(0, inputs**-0.5, (inputs, outputs)).astype(np.float32))),
                    n.constant(n.random.normal(0, 0.1, outputs).astype(np.float32)))

    def norm(x):
        return n.op("LayerNormalization", x, n.constant(np.ones(width, np.float32)), n.constant(np.zeros(width, np.float32)), axis=-1)

    def head(x, perm):
        return n.op("Transpose", n.op("Reshape", x, n.constant(np.array([1, length, heads, width // heads], np.int64))), perm=perm)

    x = norm("x")
    q, k, v = (head(dense(x, width, width), perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    shares = n.op("Softmax", n.op("Mul", n.op("MatMul", q, k), n.constant(np.float32((width // heads) ** -0.5))), axis=-1)
    y = n.op("Reshape", n.op("Transpose", n.op("MatMul", shares, v), perm=[0, 2, 1, 3]), n.constant(np.array([1, length, width], np.int64)))
    x = n.op("Add", "x", dense(y, width, width))
    y = dense(norm(x), width, 2 * width)
    y = n.op("Mul", n.op("Mul", y, n.op("Add", n.op("Erf", n.op("Div", y, n.constant(np.float32(2**0.5)))), n.constant(np.float32(1)))),
             n.constant(np.float32(0.5)))
    return n.model(n.op("Add", x, dense(y, 2 * width, width)))


def text_reader():
    """Makes a reader of text lines: convolutions to a row of columns, which become steps of a sequence with scores each."""
    n = Net((1, 1, 16, 48))
    x = n.op("MaxPool", n.conv("x", 1, 8, act="Relu"), kernel_shape=[2, 2], strides=[2, 2])
    x = n.conv(n.op("MaxPool", n.conv(x, 8, 16, act="Relu"), kernel_shape=[2, 2], strides=[2, 2]), 16, 24, act="HardSwish")
    x = n.op("AveragePool", x, kernel_shape=[4, 2], strides=[4, 2])
    x = n.op("Transpose", n.op("Squeeze", x, n.constant(np.array([2], np.int64))), perm=[0, 2, 1])
    x = n.op("MatMul", x, n.constant(n.random.normal(0, 0.2, (24, 11)).astype(np.float32)))
    return n.model(n.op("Softmax", n.op("Add", x, n.constant(np.zeros(11, np.float32))), axis=2))


def one(build, shape=(1, 8, 12, 12)):
    """Makes a model of one operation."""

    def make():
        n = Net(shape)
        return n.model(build(n))

    return make


def moved(n, y):
    """Adds an operation that computes: otherwise the quantizer does not quantize operations that only move values."""
    return n.op("Sigmoid", y)


UNITS = {
    "conv": one(lambda n: n.conv("x", 8, 16, act=None)),
    "conv_relu": one(lambda n: n.conv("x", 8, 16, act="Relu")),
    "conv_strided": one(lambda n: n.conv("x", 8, 16, 3, 2, act="Clip")),
    "depthwise": one(lambda n: n.conv("x", 8, 8, group=8, act=None)),
    "grouped": one(lambda n: n.conv("x", 8, 8, group=2, act=None)),
    "add": one(lambda n: n.op("Add", "x", n.op("Relu", "x"))),
    "add_constant": one(lambda n: n.op("Add", "x", n.constant(n.random.normal(0, 1, (8, 1, 1)).astype(np.float32)))),
    "mul_constant": one(lambda n: n.op("Mul", "x", n.constant(n.random.normal(0, 1, (8, 1, 1)).astype(np.float32)))),
    "max_pool": one(lambda n: moved(n, n.op("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2]))),
    # The padding is negative: hosts begin within the image.
    "max_pool_apart": one(lambda n: moved(n, n.op("MaxPool", "x", kernel_shape=[1, 1], strides=[3, 3], auto_pad="SAME_UPPER"))),
    "max_pool_apart_lower": one(lambda n: moved(n, n.op("MaxPool", "x", kernel_shape=[2, 1], strides=[7, 4], auto_pad="SAME_LOWER"))),
    "average_pool_apart": one(lambda n: moved(n, n.op("AveragePool", "x", kernel_shape=[1, 2], strides=[1, 7], auto_pad="SAME_UPPER"))),
    "transposed_sized": one(lambda n: n.op("ConvTranspose", "x", n.constant(n.random.normal(0, 0.1, (8, 4, 4, 4)).astype(np.float32)),
                                           kernel_shape=[4, 4], strides=[2, 2], output_shape=[23, 25])),
    "global_average": one(lambda n: n.op("GlobalAveragePool", "x")),
    "concat": one(lambda n: n.op("Concat", "x", n.op("Sigmoid", "x"), axis=1)),
    "sigmoid": one(lambda n: n.op("Sigmoid", "x")),
    "leaky_relu": one(lambda n: n.op("LeakyRelu", "x", alpha=0.1)),
    "softmax": one(lambda n: n.op("Softmax", "x", axis=1)),
    "resize": one(lambda n: moved(n, n.op("Resize", n.conv("x", 8, 8, 1, act=None), "", n.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest",
                                 coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_floor"))),
    "pad": one(lambda n: moved(n, n.op("Pad", "x", n.constant(np.array([0, 0, 1, 2, 0, 0, 2, 1], np.int64))))),
    "slice": one(lambda n: moved(n, n.op("Slice", "x", n.constant(np.array([4], np.int64)), n.constant(np.array([8], np.int64)),
                                n.constant(np.array([1], np.int64))))),
    "gemm": one(lambda n: n.dense("x", 64, 10), (1, 64)),
    "matmul": one(lambda n: n.op("MatMul", "x", n.constant(n.random.normal(0, 0.1, (64, 10)).astype(np.float32))), (1, 6, 64)),
}


class Samples(quantization.CalibrationDataReader):
    def __init__(self, shape, seed=2):
        random = np.random.default_rng(seed)
        self.samples = iter([{"x": random.normal(0, 1, shape).astype(np.float32)} for _ in range(4)])

    def get_next(self):
        return next(self.samples, None)


U8, I8 = quantization.QuantType.QUInt8, quantization.QuantType.QInt8
QDQ, QOPERATOR = quantization.QuantFormat.QDQ, quantization.QuantFormat.QOperator
# activations, weights, whether there is a scale per channel
TYPES = {"u8": (U8, U8, False), "u8i8": (U8, I8, False), "i8_per_channel": (I8, I8, True)}


def quantized(model, path, types, form=QDQ, batch=None):
    """Writes MODEL, quantized, to PATH. Free sizes are BATCH in calibration."""
    activations, weights, per_channel = TYPES[types]
    shape = [one.dim_value or batch for one in model.graph.input[0].type.tensor_type.shape.dim]
    quantization.quantize_static(model, str(path), Samples(shape), quant_format=form, activation_type=activations, weight_type=weights,
                                 per_channel=per_channel)
    return path


class Given(quantization.CalibrationDataReader):
    def __init__(self, feeds):
        self.feeds = list(feeds)

    def get_next(self):
        return self.feeds.pop() if self.feeds else None


def quantize(model, path, feeds, operators):
    """Writes MODEL to PATH, with its OPERATORS quantized to uint8."""
    quantization.quantize_static(model, str(path), Given(feeds), quant_format=QDQ, activation_type=quantization.QuantType.QUInt8,
                                 weight_type=quantization.QuantType.QUInt8, op_types_to_quantize=operators,
                                 extra_options={"ForceQuantizeNoInputCheck": True, "QDQKeepRemovableActivations": True})


def output_scales(path):
    """Returns the step of each output that is dequantized, by name."""
    graph = onnx.load(str(path)).graph
    values = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    outputs = {one.name for one in graph.output}
    return {one.output[0]: float(values[one.input[1]].ravel()[0]) for one in graph.node if one.op_type == "DequantizeLinear" and one.output[0] in outputs}


def output_scale(path):
    """Returns the step of the first output."""
    graph = onnx.load(str(path)).graph
    values = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    last = next(one for one in graph.node if graph.output[0].name in one.output)
    return float(values[last.input[1]].ravel()[0])


class Convolutions:
    """Models of quantized convolutions in functions and in the branches of an If."""

    NUMBERS = {"s": np.float32(0.05), "z": np.uint8(128), "ws": np.float32(0.002), "wz": np.int8(0)}

    def __init__(self):
        rng = np.random.default_rng(1)
        self.weights = {f"w{i}": rng.integers(-100, 100, (8, 8, 3, 3)).astype(np.int8) for i in range(3)}

    def constants(self, *names):
        return [numpy_helper.from_array(np.array({**self.NUMBERS, **self.weights}[name]), name) for name in names]

    def unit(self, prefix, x, y, weights):
        node = helper.make_node
        return [node("DequantizeLinear", [x, "s", "z"], [prefix + "d"]), node("DequantizeLinear", [weights, "ws", "wz"], [prefix + "w"]),
                node("Conv", [prefix + "d", prefix + "w"], [prefix + "c"], pads=[1] * 4, kernel_shape=[3, 3]),
                node("QuantizeLinear", [prefix + "c", "s", "z"], [y])]

    def model(self, nodes, constants, inputs=(), functions=()):
        of_type = TensorProto
        shape = [1, 8, 12, 10]
        graph = helper.make_graph([helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q0"]), *nodes], "g",
                                  [helper.make_tensor_value_info("x", of_type.FLOAT, shape), *inputs],
                                  [helper.make_tensor_value_info("y", of_type.FLOAT, shape)], self.constants(*self.NUMBERS, *constants))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my", 1)], ir_version=9, functions=functions)

    def in_function(self, beside):
        """Returns a model with a convolution in a function and, if BESIDE, one before it."""
        block = helper.make_function("my", "Block", ["x", "s", "z", "w", "ws", "wz"], ["y"], self.unit("f", "x", "y", "w"), [helper.make_opsetid("", 17)])
        first = self.unit("a", "q0", "q1", "w0") if beside else [helper.make_node("Identity", ["q0"], ["q1"])]
        call = helper.make_node("Block", ["q1", "s", "z", "w1", "ws", "wz"], ["q2"], domain="my")
        last = helper.make_node("DequantizeLinear", ["q2", "s", "z"], ["y"])
        return self.model([*first, call, last], ["w0", "w1"] if beside else ["w1"], functions=[block])

    def in_branches(self, beside, outside):
        """Returns a model with a convolution in each branch of an If and, if BESIDE, one before it.
        OUTSIDE: the constants are outside of the branches."""
        of_type = TensorProto

        def branch(i):
            nodes = [*self.unit("b", "q1", "bq", f"w{i}"), helper.make_node("DequantizeLinear", ["bq", "s", "z"], ["by"])]
            return helper.make_graph(nodes, f"branch{i}", [], [helper.make_tensor_value_info("by", of_type.FLOAT, [1, 8, 12, 10])],
                                     [] if outside else self.constants(*self.NUMBERS, f"w{i}"))
        first = self.unit("a", "q0", "q1", "w0") if beside else [helper.make_node("Identity", ["q0"], ["q1"])]
        chosen = helper.make_node("If", ["which"], ["y"], then_branch=branch(1), else_branch=branch(2))
        constants = [*(["w0"] if beside else []), *(["w1", "w2"] if outside else [])]
        return self.model([*first, chosen], constants, [helper.make_tensor_value_info("which", of_type.BOOL, [])])

    def around_branches(self):
        """Returns a model with a convolution before an If whose branches read it, and one after their sum."""
        node, of_type = helper.make_node, TensorProto

        def branch(i, kind):
            nodes = [node("DequantizeLinear", ["q1", "s", "z"], [f"t{i}"]), node(kind, [f"t{i}"], [f"u{i}"]),
                     node("QuantizeLinear", [f"u{i}", "s", "z"], [f"o{i}"])]
            return helper.make_graph(nodes, f"branch{i}", [], [helper.make_tensor_value_info(f"o{i}", of_type.UINT8, [1, 8, 12, 10])])
        nodes = [*self.unit("a", "q0", "q1", "w0"),
                 node("If", ["which"], ["q2"], then_branch=branch(0, "Erf"), else_branch=branch(1, "Tanh")),
                 node("DequantizeLinear", ["q1", "s", "z"], ["e1"]), node("DequantizeLinear", ["q2", "s", "z"], ["e2"]),
                 node("Add", ["e1", "e2"], ["e3"]), node("QuantizeLinear", ["e3", "s", "z"], ["q3"]),
                 *self.unit("b", "q3", "q4", "w1"), node("DequantizeLinear", ["q4", "s", "z"], ["y"])]
        return self.model(nodes, ["w0", "w1"], [helper.make_tensor_value_info("which", of_type.BOOL, [])])
