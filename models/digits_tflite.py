"""Turns the trained digit classifier into a uint8 TFLite file.

Called by train_digits.py. Works on plain numpy arrays; the numbers are those that fake quantization trained with.
"""

from dataclasses import dataclass

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from digits_network import CLASSES, IMAGE_SIZE_PX, LAYERS
from tflite_writer import ModelWriter

DESCRIPTION = "Skillet demo: MNIST digits, 28x28 grey, uint8 per tensor"
NONE, RELU = schema.ActivationFunctionType.NONE, schema.ActivationFunctionType.RELU


@dataclass(frozen=True)
class Quant:
    """real = scale * (stored - zero_point)"""
    scale: float
    zero_point: int


PIXEL = Quant(float(np.float32(1 / 255)), 0)      # a grey level 0..255 is stored as it is
PROBABILITY = Quant(1 / 256, 0)                   # the scale that TFLite's softmax demands


def quant_of(low, high, lowest=0):
    """Quantization of the real range low..high onto lowest..255."""
    scale = float(np.float32((high - low) / (255 - lowest)))
    return Quant(scale, int(np.clip(np.floor(lowest - low / scale + 0.5), lowest, 255)))


def quantize(values, quant, lowest=0):
    stored = np.floor(values / quant.scale + 0.5) + quant.zero_point
    return np.clip(stored, lowest, 255).astype(np.uint8)


def to_tflite(weights, ranges):
    """Returns the bytes of the model file.

    weights: {layer name: (weights in TensorFlow's order, bias)}; ranges: {range name: (min, max)} of activations.
    """
    writer = ModelWriter(DESCRIPTION)
    quants = {"image": PIXEL}
    tensors = {"image": writer.tensor("image", (1, IMAGE_SIZE_PX, IMAGE_SIZE_PX, 1), "uint8", PIXEL)}
    for layer in LAYERS:
        quants[layer.name] = quant_of(*ranges[layer.range_name])
        constants = add_constants(writer, layer, weights, quants) if layer.has_weights else []
        output = writer.tensor(layer.name, (1, layer.size, layer.size, layer.channels), "uint8", quants[layer.name])
        inputs = [tensors[name] for name in layer.inputs] + constants
        add_op(writer, layer, inputs, output)
        tensors[layer.name] = output
    result = add_tail(writer, tensors["logits"], quants["logits"])
    return writer.finish([tensors["image"]], [result])


def add_constants(writer, layer, weights, quants):
    """Adds the weights (uint8, TFLite's order) and the bias (int32, scale = input scale * weight scale)."""
    values, bias = weights[layer.name]
    quant = quant_of(min(float(values.min()), 0.0), max(float(values.max()), 0.0), lowest=1)
    stored = quantize(values.transpose(3, 0, 1, 2), quant, lowest=1)  # [O, kh, kw, I], or [1, kh, kw, C]
    bias_quant = Quant(float(np.float32(quants[layer.inputs[0]].scale) * np.float32(quant.scale)), 0)
    stored_bias = np.round(bias / bias_quant.scale).astype(np.int32)
    return [writer.tensor(f"{layer.name}/weights", stored.shape, "uint8", quant, stored),
            writer.tensor(f"{layer.name}/bias", stored_bias.shape, "int32", bias_quant, stored_bias)]


def add_op(writer, layer, inputs, output):
    activation = RELU if layer.relu else NONE
    if layer.kind == "add":
        writer.op("ADD", inputs, [output], fusedActivationFunction=NONE)
    elif layer.kind == "pool":
        writer.op("AVERAGE_POOL_2D", inputs, [output], filterHeight=layer.kernel, filterWidth=layer.kernel,
                  fusedActivationFunction=NONE)
    else:
        kind = "CONV_2D" if layer.kind == "conv" else "DEPTHWISE_CONV_2D"
        writer.op(kind, inputs, [output], padding=schema.Padding.SAME, strideH=layer.stride, strideW=layer.stride,
                  fusedActivationFunction=activation)


def add_tail(writer, logits, quant):
    """Adds RESHAPE to [1, 10] and SOFTMAX; returns the tensor of probabilities."""
    shape = writer.tensor("shape", (2,), "int32", data=np.array([1, CLASSES]))
    flat = writer.tensor("logits/flat", (1, CLASSES), "uint8", quant)
    writer.op("RESHAPE", [logits, shape], [flat], newShape=[1, CLASSES])
    result = writer.tensor("probabilities", (1, CLASSES), "uint8", PROBABILITY)
    writer.op("SOFTMAX", [flat], [result])
    return result
