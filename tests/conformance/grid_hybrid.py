"""Random float operations with int8 weights, as in models that are quantized in their weights only.

Imported by grid.py, which runs them. The newest runtime's default kernels are the reference: its reference kernels and
the older runtime quantize or round differently."""

import numpy as np

from grid import family, pick
from grid_int16 import window
from one_op import RELU, RELU6, RELU_N1_TO_1, SAME, VALID, case, constant, tensor


def weights(random, shape, axis, per_channel):
    """Returns int8 weights. All channels may have the same scale, and one scale may be 0."""
    scales = [float(np.float32(random.uniform(0.002, 0.02))) for _ in range(shape[axis] if per_channel else 1)]
    if random.randint(6) == 0:
        scales = scales[:1] * len(scales)
    return constant(random.randint(-127, 128, shape), "int8", scales if per_channel else scales[0], 0, axis)


def values(random, shape):
    """Returns values of both signs, of one sign, or zeros: the zero point depends on it."""
    low, high = pick(random, (-6, 6), (-1, 9), (0, 5), (2, 7), (-9, -1), (-0.001, 0.0001), (0, 0))
    return tensor(shape, "float32", between=(low, high))


def bias(random, channels):
    return constant(random.randn(channels) * 3, "float32")


def activation(random):
    return pick(random, 0, RELU, RELU6, RELU_N1_TO_1)


def windows(random, same_strides=False):
    kernel, h, w = (random.randint(1, 5), random.randint(1, 5)), random.randint(4, 13), random.randint(4, 13)
    dilation = pick(random, 1, 1, 2) if h > 8 and w > 8 else 1
    stride = (1, 1) if dilation > 1 else (random.randint(1, 4), random.randint(1, 4))
    stride = stride[:1] * 2 if same_strides else stride
    padding = pick(random, SAME, VALID)
    options = dict(padding=padding, stride_h=stride[0], stride_w=stride[1], dilation_h_factor=dilation, dilation_w_factor=dilation,
                   fused_activation_function=activation(random))
    return kernel, (h, w), [window(n, k, s, padding, dilation) for n, k, s in zip((h, w), kernel, stride)], options


@family(exact=False, judge="newest")
def hybrid_conv(random):
    kernel, size, out, options = windows(random)
    groups = pick(random, 1, 1, 1, 2, 3)
    batches, inputs, outputs = random.randint(1, 4), random.randint(1, 20) * groups, random.randint(1, 12) * groups
    filters = weights(random, (outputs, *kernel, inputs // groups), 0, groups > 1 or random.randint(3) > 0)
    return case("", ("CONV_2D", 3), [values(random, [batches, *size, inputs]), filters, bias(random, outputs)],
                tensor([batches, *out, outputs], "float32"), ("Conv2DOptions", options), 5)


@family(exact=False, judge="newest")
def hybrid_depthwise(random):
    kernel, size, out, options = windows(random, same_strides=True)
    batches, inputs, multiplier = random.randint(1, 4), random.randint(1, 20), pick(random, 1, 1, 2, 3)
    outputs = inputs * multiplier
    return case("", ("DEPTHWISE_CONV_2D", 4),
                [values(random, [batches, *size, inputs]), weights(random, (1, *kernel, outputs), 3, True), bias(random, outputs)],
                tensor([batches, *out, outputs], "float32"), ("DepthwiseConv2DOptions", dict(options, depth_multiplier=multiplier)), 6)


@family(exact=False, judge="newest")
def hybrid_fully_connected(random):
    rows, depth, channels = random.randint(1, 7), random.randint(1, 400), random.randint(1, 40)
    filters = weights(random, (channels, depth), 0, bool(random.randint(2)))
    operands = [values(random, [rows, depth]), filters] + ([bias(random, channels)] if random.randint(3) else [])
    return case("", ("FULLY_CONNECTED", 9), operands, tensor([rows, channels], "float32"),
                ("FullyConnectedOptions", dict(fused_activation_function=activation(random),
                                               asymmetric_quantize_inputs=bool(random.randint(2)))), 9)
