"""Small models for the fault matrix, written as JSON of the TFLite schema and packed by flatc.

In each, a lost job could go unnoticed in another way. All have one int8 picture as input.
"""
import json
import random
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "models/digits.tflite"
INT8, INT32 = 9, 2
SCALE, ZERO_POINT = 0.05, -20
CONCATENATION, CONV_2D, RESHAPE, ABS = 2, 3, 22, 101
OPTIONS = {CONCATENATION: "ConcatenationOptions", CONV_2D: "Conv2DOptions", RESHAPE: "ReshapeOptions", ABS: None}
OPERATIONS_OF_TWO_JOBS = 420  # a submission holds 384 of them


class Model:
    def __init__(self):
        self.tensors, self.buffers, self.operators = [], [{}], []
        self.random = random.Random(1)

    def tensor(self, shape, data=None, scale=SCALE, zero_point=ZERO_POINT, type_code=INT8):
        buffer = 0
        if data is not None:
            buffer = len(self.buffers)
            self.buffers.append({"data": list(data)})
        self.tensors.append({"name": f"t{len(self.tensors)}", "type": type_code, "shape": shape, "buffer": buffer,
                             "quantization": {"scale": [scale], "zero_point": [zero_point]}})
        return len(self.tensors) - 1

    def op(self, code, inputs, shape, **options):
        output = self.tensor(shape)
        one = {"opcode_index": list(OPTIONS).index(code), "inputs": inputs, "outputs": [output]}
        if OPTIONS[code]:
            one |= {"builtin_options_type": OPTIONS[code], "builtin_options": options}
        self.operators.append(one)
        return output

    def conv(self, source, channels):
        shape = self.tensors[source]["shape"]
        filter_shape = [channels, 3, 3, shape[3]]
        count = 9 * channels * shape[3]
        weights = self.tensor(filter_shape, (self.random.randrange(256) for _ in range(count)), 0.002, 0)
        bias = self.tensor([channels], bytes(4 * channels), 0.002 * SCALE, 0, INT32)
        return self.op(CONV_2D, [source, weights, bias], shape[:3] + [channels], stride_w=1, stride_h=1)

    def write(self, outputs, path, flatc):
        codes = [{"deprecated_builtin_code": code, "builtin_code": code, "version": 1} for code in OPTIONS]
        graph = {"tensors": self.tensors, "inputs": [0], "outputs": outputs, "operators": self.operators}
        model = {"version": 3, "operator_codes": codes, "subgraphs": [graph], "buffers": self.buffers}
        source = path.with_suffix(".json")
        source.write_text(json.dumps(model))
        schema = ROOT / "src/graph/import/schema.fbs"
        subprocess.run([flatc, "-b", "-o", str(path.parent), str(schema), str(source)], check=True)
        return path


def two_jobs(model):
    last = model.tensor([1, 8, 8, 3])
    for _ in range(OPERATIONS_OF_TWO_JOBS):
        last = model.op(ABS, [last], [1, 8, 8, 3])
    return [model.conv(last, 4)]


def reshape(model):
    return [model.op(RESHAPE, [model.conv(model.tensor([1, 8, 8, 3]), 8)], [1, 512], new_shape=[1, 512])]


def concatenation(model):
    source = model.tensor([1, 8, 8, 3])
    return [model.op(CONCATENATION, [source, model.conv(source, 3)], [1, 8, 8, 6], axis=3)]


def two_outputs(model):
    first = model.conv(model.tensor([1, 8, 8, 3]), 8)
    return [first, model.conv(first, 4)]


def make(folder, flatc):
    """Returns {name: file} of all models, the smallest last."""
    models = {}
    for build in (two_jobs, reshape, concatenation, two_outputs):
        model = Model()
        models[build.__name__] = model.write(build(model), Path(folder) / f"{build.__name__}.tflite", flatc)
    models["digits"] = DIGITS
    return models
