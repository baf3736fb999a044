"""Makes random networks of 3 to 12 nodes for the ONNX Runtime provider, and checks the results of each unit.

Results of whole networks differ from ONNX Runtime's CPU where a difference of one step is amplified. So each unit is compared on its own inputs: all
8-bit values are outputs of the model, and become inputs of the CPU's model.
"""
import re

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper
from onnxruntime import quantization

import onnx_nets as nets
from onnx_sessions import in_float, placed, session

QLINEAR = ("QLinearConv", "QLinearMatMul", "QGemm", "QLinearAdd", "QLinearMul", "QLinearGlobalAveragePool", "QLinearAveragePool", "QLinearSigmoid",
           "QLinearLeakyRelu", "QLinearSoftmax", "QLinearConcat")
# Units may differ by one step, these by two: Vivante chips add with 8-bit weights; an activation and the multiplication after it may be one table.
TWO_OFF = ("Add", "Sub", "QLinearAdd", "Mul", "QLinearMul")
TYPES = [("u8", nets.U8, nets.U8, False), ("u8i8", nets.U8, nets.I8, False), ("i8", nets.I8, nets.I8, False), ("i8_per_channel", nets.I8, nets.I8, True)]


class Drawn(nets.Net):
    """A random network. `images`: values of N, C, H, W that the next operation may read."""

    def __init__(self, seed):
        self.drawn = np.random.default_rng(seed)
        batch = int(self.drawn.choice([1, 1, 1, 2, 3]))
        super().__init__((batch, self.below(2, 9), *map(int, self.drawn.integers(4, 13, 2))), seed)
        self.images = [("x", self.shape)]
        self.images.append(self.convolved(*self.images[0]))
        self.ends = []

    def below(self, low, high):
        return int(self.drawn.integers(low, high))

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def convolved(self, x, shape):
        n, c, h, w = shape
        kernel, stride = (int(self.drawn.choice([1, 3])) if min(h, w) > 2 else 1), int(self.drawn.choice([1, 1, 2]))
        outputs = c if self.below(0, 4) == 0 else self.below(2, 13)
        group = c if outputs == c and self.below(0, 2) else 1
        act = self.drawn.choice(["Relu", "Clip", "", "LeakyRelu", "HardSwish", "Sigmoid"])
        return self.conv(x, c, outputs, kernel, stride, group, str(act) or None), (n, outputs, -(-h // stride), -(-w // stride))

    def pooled(self, x, shape):
        n, c, h, w = shape
        kernel, stride = self.below(1, min(h, w, 3) + 1), self.below(1, 3)
        pad = self.below(0, (kernel + 1) // 2)
        to = [(size + 2 * pad - kernel) // stride + 1 for size in (h, w)]
        return self.op(str(self.drawn.choice(["MaxPool", "AveragePool"])), x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4), (n, c, *to)

    def joined(self, x, shape):
        alike = [one for one, other in self.images if other == shape]
        kind, other = str(self.drawn.choice(["Add", "Add", "Mul", "Sub"])), str(self.drawn.choice(alike))
        if other == x:
            other = self.constant(self.random.normal(0, 1, (1, shape[1], 1, 1)).astype(np.float32))
        return self.op(kind, x, other), shape

    def concatenated(self, x, shape):
        alike = [(one, other) for one, other in self.images if other[0] == shape[0] and other[2:] == shape[2:]]
        other, its = alike[self.below(0, len(alike))]
        return self.op("Concat", x, other, axis=1), (shape[0], shape[1] + its[1], *shape[2:])

    def divided(self, x, shape):
        n, c, h, w = shape
        if c < 2:
            return self.pooled(x, shape)
        first = self.below(1, c)
        left, right = self.op("Split", x, self.ints(first, c - first), outputs=2, axis=1)
        self.images.append((left, (n, first, h, w)))
        return right, (n, c - first, h, w)

    def transposed(self, x, shape):
        order = list(map(int, [0, *self.drawn.permutation([1, 2, 3])]))
        return self.op("Transpose", x, perm=order), tuple(shape[i] for i in order)

    def reshaped(self, x, shape):
        n, c, h, w = shape
        to = [(n, c, h * w, 1), (n, c * h, 1, w), (n, h, c, w), (n, c * w, h, 1)][self.below(0, 4)]
        return self.op("Reshape", x, self.ints(*to)), to

    def resized(self, x, shape):
        n, c, h, w = shape
        factor = self.below(1, 3)
        mode, rule = [("nearest", "asymmetric"), ("nearest", "half_pixel"), ("linear", "half_pixel"), ("linear", "asymmetric")][self.below(0, 4)]
        nearest = "floor" if rule == "asymmetric" else "round_prefer_floor"
        return self.op("Resize", x, "", self.constant(np.array([1, 1, factor, 2], np.float32)), mode=mode, coordinate_transformation_mode=rule,
                       nearest_mode=nearest), (n, c, h * factor, w * 2)

    def padded(self, x, shape):
        pads = [0, 0, *map(int, self.drawn.integers(0, 3, 2)), 0, 0, *map(int, self.drawn.integers(0, 3, 2))]
        return self.op("Pad", x, self.ints(*pads)), (*shape[:2], shape[2] + pads[2] + pads[6], shape[3] + pads[3] + pads[7])

    def sliced(self, x, shape):
        axis = self.below(1, 4)
        begin = self.below(0, shape[axis])
        end = self.below(begin + 1, shape[axis] + 1)
        to = list(shape)
        to[axis] = end - begin
        return self.op("Slice", x, self.ints(begin), self.ints(end), self.ints(axis)), tuple(to)

    def activated(self, x, shape):
        return self.op(str(self.drawn.choice(["Sigmoid", "Tanh", "Relu", "LeakyRelu", "HardSigmoid", "Abs"])), x), shape

    def enlarged(self, x, shape):
        n, c, h, w = shape
        outputs, kernel, stride = self.below(1, 7), self.below(1, 4), self.below(1, 3)
        weights = self.constant(self.random.normal(0, (1 / c) ** 0.5, (c, outputs, kernel, kernel)).astype(np.float32))
        return self.op("ConvTranspose", x, weights, kernel_shape=[kernel] * 2, strides=[stride] * 2), (n, outputs, *((size - 1) * stride + kernel for size in (h, w)))

    def blocks(self, x, shape):
        n, c, h, w = shape
        if c % 4 == 0:
            return self.op("DepthToSpace", x, blocksize=2, mode=str(self.drawn.choice(["DCR", "CRD"]))), (n, c // 4, h * 2, w * 2)
        return (self.op("SpaceToDepth", x, blocksize=2), (n, c * 4, h // 2, w // 2)) if h % 2 == 0 and w % 2 == 0 else self.pooled(x, shape)

    def dense(self, x, shape):  # ends the network
        n, c, h, w = shape
        if self.below(0, 2):
            x, h, w = self.op("GlobalAveragePool", x), 1, 1
        return super().dense(self.op("Flatten", x), c * h * w, self.below(2, 11))


GROW = ["convolved"] * 4 + ["joined"] * 3 + ["pooled", "concatenated", "divided", "transposed", "reshaped", "resized", "padded", "sliced", "activated",
                                             "enlarged", "blocks"]


def network(seed):
    """Returns a float model."""
    n = Drawn(seed)
    for _ in range(n.below(2, 11)):
        x, shape = n.images[-1 if n.below(0, 3) else n.below(0, len(n.images))]
        x, shape = getattr(n, str(n.drawn.choice(GROW)))(x, shape)
        if np.prod(shape) < 1 << 14:
            n.images.append((x, tuple(map(int, shape))))
    read = {one for node in n.nodes for one in node.input}
    ends = [(one, shape) for one, shape in n.images[1:] if one not in read] or [n.images[-1]]
    outputs = [n.dense(*ends[0]) if n.below(0, 3) == 0 else ends[0][0], *(one for one, _ in ends[1:])]
    return n.model(*outputs)


def eight_bits(model):
    """Returns the 8-bit values that nodes make, in order, each with its node. Type inference does not cover QLinear nodes."""
    made = {}
    for node in model.graph.node:
        is_moved = node.input[0] in made and node.op_type not in ("DequantizeLinear", *QLINEAR)
        if node.op_type == "QuantizeLinear" or node.op_type in QLINEAR or is_moved:
            made.update(dict.fromkeys(node.output, node))
    return made


def cut(model, to):
    """Writes two models to the folder TO. In both, all 8-bit values are outputs; in the second, the nodes that read them get them as inputs.
    Returns the names of these values, with the node that makes each."""
    made = eight_bits(model)
    first = next(one for one in model.graph.node if one.op_type == "QuantizeLinear")
    eight = next(one.data_type for one in model.graph.initializer if one.name == first.input[2])
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    present = {one.name for one in shown.graph.output}
    for name in made:
        if name not in present:
            shown.graph.output.append(helper.make_tensor_value_info(name, eight, None))
    apart = onnx.ModelProto()
    apart.CopyFrom(shown)
    for node in apart.graph.node:
        for i, name in enumerate(node.input):
            if name in made:
                node.input[i] = name + "_given"
    for name in made:
        apart.graph.input.append(helper.make_tensor_value_info(name + "_given", eight, None))
    for one in (shown, apart):
        del one.graph.value_info[:]
    onnx.save(shown, to / "shown.onnx")
    onnx.save(apart, to / "apart.onnx")
    return made


def unit_of(model, made, name):
    """Returns the kind of the operation that makes the value NAME, before an activation and QuantizeLinear."""
    producers = {out: one for one in model.graph.node for out in one.output}
    node = made[name]
    if node.op_type == "QuantizeLinear" and node.input[0] in producers:
        node = producers[node.input[0]]
        before = producers.get(node.input[0]) if node.op_type in ("Relu", "Clip") else None
        if before is not None and before.op_type not in ("DequantizeLinear",):
            node = before
    return node.op_type


def check(seed, folder, chips):
    """Quantizes the network of SEED and runs it on CHIPS.

    Returns the faults, how many nodes the provider took, and how many there were."""
    model, wrong, ours, nodes = network(seed), [], 0, 0
    label, activations, weights, per_channel = TYPES[seed % len(TYPES)]
    form = nets.QOPERATOR if seed % 3 == 0 else nets.QDQ
    path = folder / "net.onnx"
    shape = [one.dim_value for one in model.graph.input[0].type.tensor_type.shape.dim]
    try:  # ONNX Runtime itself refuses some of its optimizer's results
        quantization.quantize_static(model, str(path), nets.Samples(shape, seed), quant_format=form, activation_type=activations, weight_type=weights,
                                     per_channel=per_channel, reduce_range=form == nets.QOPERATOR)  # 7-bit weights: the host's sums saturate at 16 bits without VNNI
        quantized = onnx.load(str(path))
        made = cut(quantized, folder)
        for one in (path, folder / "shown.onnx"):
            ort.InferenceSession(str(one), providers=["CPUExecutionProvider"])
    except Exception as refused:  # noqa: BLE001  it has several exception classes
        assert re.search("Pad should be smaller than kernel|Failed to find kernel|ScalesValidation", str(refused)), f"seed {seed}: {refused}"
        return [], 0, 0
    feed = {"x": np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)}
    names, operations = list(made), sum("Linear" not in one.op_type or one.op_type in QLINEAR for one in quantized.graph.node)
    reference = in_float(folder / "apart.onnx")
    for chip in chips:
        options = {"device": chip, "per_channel": "exact", "partition": "all"}
        alone = session(path, options)
        shown = session(folder / "shown.onnx", options)
        mine, parts, _ = placed(alone)
        ours, nodes = ours + mine, nodes + len(quantized.graph.node)
        got = dict(zip([one.name for one in shown.get_outputs()], shown.run(None, feed)))
        whole = dict(zip([one.name for one in alone.get_outputs()], alone.run(None, feed)))
        given = {**feed, **{name + "_given": got[name] for name in names}}
        given = {one.name: given[one.name] for one in reference.get_inputs()}
        want = dict(zip([one.name for one in reference.get_outputs()], reference.run(None, given)))
        for name in names:
            kind = unit_of(quantized, made, name)
            off = np.abs(got[name].astype(int) - want[name].astype(int)).max() if got[name].shape == want[name].shape else 999
            # The quantizer of QLinear nodes leaves some weights in float. ONNX Runtime's optimizer rounds them to 8 bits where it keeps them.
            most = 4 if kind == "ConvTranspose" and form == nets.QOPERATOR else 2 if kind in TWO_OFF else 1
            if off > most:
                wrong.append(f"seed {seed} {label} {form} {chip}: {kind} '{name}' is {off} steps off")
        # Without the intermediate outputs, passes and the host may merge units: the difference is a few steps, unless the network is wrong.
        for name, step in nets.output_scales(path).items():
            off = np.abs(whole[name] - got[name]).max() / step if whole[name].shape == got[name].shape else 999
            if off > max(4, operations) + 0.01:
                wrong.append(f"seed {seed} {label} {form} {chip}: '{name}' is {off:.1f} steps from what it is with the values between, in {parts} parts")
    return wrong, ours, nodes
