#!/usr/bin/env python3
"""Makes a small uint8 SSD detector that finds coloured squares, and a picture with some. Its weights are set by hand.

usage: ssd_model.py MODEL.tflite [PICTURE.bmp [LABELS.txt]]      run at the top of the source tree; needs flatc

Two grids of anchors, boxes and classes from 1x1 convolutions, LOGISTIC, TFLite_Detection_PostProcess. The outputs are those that
Frigate and TensorFlow's own detectors have.
"""
import json
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SCHEMA = Path(__file__).resolve().parents[2] / "src/graph/import/schema.fbs"
SIZE, COLOURS = 96, ["red", "green", "blue"]
SAME, RELU = 0, 1
FLOAT32, INT32, UINT8 = 0, 2, 3
CODES = {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 4, "CONCATENATION": 2, "RESHAPE": 22, "LOGISTIC": 14, "TFLite_Detection_PostProcess": 32}
SMALL, LARGE = 0.25, 0.5  # sides of the anchors in the two grids, as shares of the image


def flexbuffer(values):
    """Encodes a map of numbers, each 32 bits wide."""
    out, keys = bytearray(), {}
    for name in sorted(values):
        keys[name] = len(out)
        out += name.encode() + b"\0"
    out += bytes(-len(out) % 4)
    out += struct.pack("<I", len(keys))
    key_vector = len(out)
    for name in sorted(values):
        out += struct.pack("<I", len(out) - keys[name])
    out += struct.pack("<III", len(out) - key_vector, 4, len(keys))
    vector = len(out)
    integer, real, boolean, map_type, wide = 1, 3, 26, 9, 2
    types = bytearray()
    for name in sorted(values):
        value = values[name]
        kind = boolean if isinstance(value, bool) else real if isinstance(value, float) else integer
        out += struct.pack("<f" if kind == real else "<i", value)
        types.append(kind << 2 | wide)
    out += types + bytes(-len(types) % 4)
    out += struct.pack("<I", len(out) - vector)
    return list(out + bytes([map_type << 2 | wide, 4]))


class Model:
    """A graph, written as flatc's JSON."""

    def __init__(self):
        self.tensors, self.buffers, self.operators, self.codes = [], [{}], [], []

    def tensor(self, name, shape, kind=UINT8, scale=None, zero=0, data=None):
        one = {"shape": list(shape), "type": kind, "buffer": 0, "name": name}
        if scale is not None:
            one["quantization"] = {"scale": [scale], "zero_point": [zero]}
        if data is not None:
            one["buffer"] = len(self.buffers)
            self.buffers.append({"data": list(data)})
        self.tensors.append(one)
        return len(self.tensors) - 1

    def op(self, kind, inputs, outputs, options=None, custom=None):
        if kind not in self.codes:
            self.codes.append(kind)
        one = {"opcode_index": self.codes.index(kind), "inputs": inputs, "outputs": outputs}
        if options:
            one["builtin_options_type"], one["builtin_options"] = options
        if custom:
            one["custom_options"] = custom
        self.operators.append(one)

    def scale_of(self, tensor):
        quantization = self.tensors[tensor]["quantization"]
        return quantization["scale"][0], quantization["zero_point"][0]

    def conv(self, name, source, weights, biases, stride=1, depthwise=False, scale=1 / 255, zero=0, relu=True):
        """Adds a convolution. `weights` are numbers: [kernel][row][column][channel], or depthwise [row][column][channel]."""
        flat = flatten(weights)
        step = max(max(abs(value) for value in flat), 1e-6) / 127
        kernels = 1 if depthwise else len(weights)
        first = weights if depthwise else weights[0]
        filter_ = self.tensor(name + "_weights", [kernels, len(first), len(first[0]), len(first[0][0])], UINT8, step, 128,
                              [round(value / step) + 128 for value in flat])
        in_scale = self.scale_of(source)[0]
        bias = self.tensor(name + "_biases", [len(biases)], INT32, in_scale * step, 0,
                           struct.pack(f"<{len(biases)}i", *[round(value / (in_scale * step)) for value in biases]))
        height = -(-self.tensors[source]["shape"][1] // stride)
        out = self.tensor(name, [1, height, height, len(biases)], UINT8, scale, zero)
        shared = {"padding": SAME, "stride_w": stride, "stride_h": stride, "fused_activation_function": RELU if relu else 0}
        if depthwise:
            self.op("DEPTHWISE_CONV_2D", [source, filter_, bias], [out],
                    ("DepthwiseConv2DOptions", {**shared, "depth_multiplier": 1}))
        else:
            self.op("CONV_2D", [source, filter_, bias], [out], ("Conv2DOptions", shared))
        return out

    def reshape(self, name, source, shape):
        sizes = self.tensor(name + "_shape", [len(shape)], INT32, data=struct.pack(f"<{len(shape)}i", *shape))
        out = self.tensor(name, shape, UINT8, *self.scale_of(source))
        self.op("RESHAPE", [source, sizes], [out], ("ReshapeOptions", {"new_shape": list(shape)}))
        return out

    def join(self, name, sources):
        rows = sum(self.tensors[one]["shape"][1] for one in sources)
        out = self.tensor(name, [1, rows, self.tensors[sources[0]]["shape"][2]], UINT8, *self.scale_of(sources[0]))
        self.op("CONCATENATION", sources, [out], ("ConcatenationOptions", {"axis": 1}))
        return out

    def bytes(self, inputs, outputs):
        codes = [{"deprecated_builtin_code": CODES[kind], "builtin_code": CODES[kind], "version": 1,
                  **({"custom_code": kind} if CODES[kind] == 32 else {})} for kind in self.codes]
        graph = {"name": "main", "tensors": self.tensors, "inputs": inputs, "outputs": outputs, "operators": self.operators}
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "model.json"
            source.write_text(json.dumps({"version": 3, "operator_codes": codes, "subgraphs": [graph], "buffers": self.buffers}))
            subprocess.run(["flatc", "-b", "-o", folder, str(SCHEMA), str(source)], check=True)
            return (Path(folder) / "model.tflite").read_bytes()


def flatten(values):
    return [values] if not isinstance(values, list) else [one for part in values for one in flatten(part)]


def taps(size, function):
    return [[function(row, column) for column in range(size)] for row in range(size)]


def average(channels):
    return taps(3, lambda row, column: [1 / 9] * channels)


def colours_of(noise, kernel):
    """Returns weights that detect one colour in a pixel. Kernels beyond the colours are random."""
    own = [1.0 if channel == kernel else -0.5 for channel in range(3)]
    return taps(3, lambda row, column: [noise.uniform(-0.1, 0.1) for _ in range(3)] if kernel >= 3 else
                own if (row, column) == (1, 1) else [0.0] * 3)


def averages_of(noise, kernel, channels):
    return taps(3, lambda row, column: [noise.uniform(-0.05, 0.05) if kernel >= 3 else 1 / 9 if channel == kernel else 0.0
                                        for channel in range(channels)])


def heads(model, name, source, bias):
    """Adds the heads. Boxes are nearly the anchors; a class's score depends on the strength of its colour."""
    noise = random.Random(name)
    channels = model.tensors[source]["shape"][3]
    offsets = [[[[noise.uniform(-0.2, 0.2) for _ in range(channels)]]] for _ in range(4)]
    boxes = model.conv(name + "_boxes", source, offsets, [0.0] * 4, scale=0.05, zero=128, relu=False)
    strength = [[[[14.0 if kernel == channel + 1 else 0.0 for channel in range(channels)]]] for kernel in range(4)]
    scores = model.conv(name + "_scores", source, strength, [0.0, bias, bias, bias], scale=22 / 255, zero=150, relu=False)
    cells = model.tensors[source]["shape"][1] ** 2
    return model.reshape(name + "_boxes_flat", boxes, [1, cells, 4]), model.reshape(name + "_scores_flat", scores, [1, cells, 4])


def anchors_of(cells, side):
    """Returns anchors at the centres of the cells. Even images are padded at the end, which shifts the cells by half a step."""
    step = SIZE // cells
    return [value for row in range(cells) for column in range(cells)
            for value in ((step * (row + 1) - 0.5) / SIZE, (step * (column + 1) - 0.5) / SIZE, side, side)]


def ssd_model(found=10, order=(0, 1, 2, 3)):
    """Returns the model's file. `order`: for each output, which of boxes, classes, scores and their number it is."""
    model, noise = Model(), random.Random(1)
    image = model.tensor("image", [1, SIZE, SIZE, 3], UINT8, 1 / 255, 0)
    colours = model.conv("colours", image, [colours_of(noise, k) for k in range(8)], [0.0] * 8, stride=2)
    smooth = model.conv("smooth", colours, average(8), [0.0] * 8, depthwise=True)
    mixed = model.conv("mixed", smooth, [averages_of(noise, k, 8) for k in range(16)], [0.0] * 16, stride=2)
    fine = model.conv("fine", mixed, average(16), [0.0] * 16, stride=2, depthwise=True)
    coarse = model.conv("coarse", fine, [averages_of(noise, k, 16) for k in range(16)], [0.0] * 16, stride=2)
    both = [heads(model, "fine", fine, -9.0), heads(model, "coarse", coarse, -6.0)]
    boxes = model.join("boxes", [one[0] for one in both])
    logits = model.join("logits", [one[1] for one in both])
    scores = model.tensor("scores", model.tensors[logits]["shape"], UINT8, 1 / 256, 0)
    model.op("LOGISTIC", [logits], [scores])
    numbers = anchors_of(12, SMALL) + anchors_of(6, LARGE)
    low, high = 0.0, max(numbers)  # a quantized tensor must be able to store 0
    step = (high - low) / 255
    anchors = model.tensor("anchors", [len(numbers) // 4, 4], UINT8, step, round(-low / step),
                           [round(value / step) + round(-low / step) for value in numbers])
    outputs = [model.tensor("TFLite_Detection_PostProcess" + suffix, shape, FLOAT32) for suffix, shape in
               (("", [1, found, 4]), (":1", [1, found]), (":2", [1, found]), (":3", [1]))]
    model.op("TFLite_Detection_PostProcess", [boxes, scores, anchors], outputs, custom=flexbuffer(
        {"max_detections": found, "max_classes_per_detection": 1, "detections_per_class": 100, "use_regular_nms": False,
         "nms_score_threshold": 0.5, "nms_iou_threshold": 0.2, "num_classes": len(COLOURS), "y_scale": 10.0, "x_scale": 10.0,
         "h_scale": 5.0, "w_scale": 5.0}))
    return model.bytes([image], [outputs[one] for one in order])


def picture(zoom=5):
    """Returns squares on grey as an uncompressed bitmap."""
    squares = [(12, 12, 24, (240, 30, 30)), (60, 4, 24, (30, 240, 40)), (60, 60, 24, (30, 40, 240)), (8, 40, 48, (40, 200, 60))]
    side = SIZE * zoom
    rows = []
    for y in range(side):
        row = bytearray()
        for x in range(side):
            colour = [96 + (x + y) * 48 // (2 * side)] * 3
            for left, top, size, own in squares:
                if left * zoom <= x < (left + size) * zoom and top * zoom <= y < (top + size) * zoom:
                    colour = own
            row += bytes(reversed(colour))
        rows.append(bytes(row + bytes(-len(row) % 4)))
    pixels = b"".join(reversed(rows))
    return b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + len(pixels), 0, 54, 40, side, side, 1, 24, 0, len(pixels), 2835, 2835, 0,
                               0) + pixels


def main():
    model, *rest = sys.argv[1:]
    Path(model).write_bytes(ssd_model())
    if rest:
        Path(rest[0]).write_bytes(picture())
    if len(rest) > 1:
        Path(rest[1]).write_text("\n".join(COLOURS) + "\n")


if __name__ == "__main__":
    main()
