"""Defines the digit classifier: one table of layers, used for training and for the model file.

Called by train_digits.py. Shapes are NHWC. In the model file, every activation is uint8, and every weight tensor has
one scale.
"""

from dataclasses import dataclass

IMAGE_SIZE_PX = 28
CLASSES = 10


@dataclass(frozen=True)
class Layer:
    """One op. `size` is the side of the square output, `range_of` the layer whose quantization range this one uses."""
    name: str
    kind: str                # conv, depthwise, add, pool
    inputs: tuple
    channels: int
    size: int
    kernel: int = 0
    stride: int = 1
    relu: bool = False
    range_of: str = ""

    @property
    def range_name(self):
        return self.range_of or self.name

    @property
    def has_weights(self):
        return self.kind in ("conv", "depthwise")


def conv(name, source, kernel, stride, channels, size, **rest):
    return Layer(name, "conv", (source,), channels, size, kernel, stride, **{"relu": True, **rest})


def depthwise(name, source, stride, channels, size):
    return Layer(name, "depthwise", (source,), channels, size, 3, stride, relu=True)


# Depthwise-separable blocks with one residual, in the manner of MobileNet. Every output but the logits follows a ReLU,
# so that its zero point is 0 and the clamp of uint8 is the ReLU. The two operands of the addition share one scale, so
# that hardware which adds by an 8-bit convolution adds exactly. The tail (average pool, then 1x1 convolution) is
# MobileNet v1's.
LAYERS = (
    conv("conv1", "image", 3, 2, 16, 14),
    depthwise("depthwise2", "conv1", 1, 16, 14),
    conv("pointwise2", "depthwise2", 1, 1, 32, 14),
    depthwise("depthwise3", "pointwise2", 2, 32, 7),
    conv("pointwise3", "depthwise3", 1, 1, 64, 7),
    depthwise("depthwise4", "pointwise3", 1, 64, 7),
    conv("pointwise4", "depthwise4", 1, 1, 64, 7, range_of="pointwise3"),
    Layer("add4", "add", ("pointwise3", "pointwise4"), 64, 7),
    depthwise("depthwise5", "add4", 1, 64, 7),
    conv("pointwise5", "depthwise5", 1, 1, 128, 7),
    Layer("pool", "pool", ("pointwise5",), 128, 1, kernel=7, range_of="pointwise5"),
    conv("logits", "pool", 1, 1, CLASSES, 1, relu=False),
)

CHANNELS = {"image": 1, **{layer.name: layer.channels for layer in LAYERS}}


def weight_shape(layer):
    """TensorFlow's order: [kernel row, kernel column, input channel, output channel or multiplier]."""
    inputs = CHANNELS[layer.inputs[0]]
    outputs = layer.channels if layer.kind == "conv" else 1
    return (layer.kernel, layer.kernel, inputs, outputs)
