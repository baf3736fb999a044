#!/usr/bin/env python3
"""Runs real networks from packages of PyPI, quantized here, in ONNX Runtime with Skillet's provider.

These are YOLOv8n (nudenet), and PP-OCR's detector, recogniser and classifier (rapidocr-onnxruntime). Checks where nodes run, numbers, and a
model with its compiled parts.

usage: onnxruntime_real_test.py LIBRARY SKILLET [--build DIR] [--chips CHIP,...] [--case REGEX]     exit code 77: PyPI does not have them for this
machine

Right: closer to ONNX Runtime's CPU result for the quantized network than that is to the float network's. The packages are only used here;
nothing of them is kept.
"""
import subprocess
import sys
from pathlib import Path

import environment
import share
from run_cases import parser_of_cases, run_cases

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [["onnxruntime==1.24.4", "onnx", "numpy"], ["--no-deps", "rapidocr-onnxruntime==1.4.4", "nudenet==3.4.2"]]
LETTERS = ("10001 10001 10001 11111 10001 10001 10001", "11111 10000 10000 11110 10000 10000 11111", "01110 10001 10001 10001 10001 10001 01110",
           "11111 00100 00100 00100 00100 00100 00100", "01110 10001 10001 11111 10001 10001 10001")  # H, E, O, T, A


def text(size, seed):
    """Returns lines of dark letters on light paper, as the input of PP-OCR's detector."""
    random = np.random.default_rng(seed)
    image = np.full(size, random.uniform(0.8, 1), np.float32)
    for top in range(8, size[0] - 40, 50):
        y, x, wide = top + random.integers(0, 8), 6 + random.integers(0, 10), int(random.integers(3, 5))
        while x + 5 * wide < size[1]:
            letter = np.kron([[int(dot) for dot in row] for row in random.choice(LETTERS).split()], np.ones((wide, wide)))
            image[y : y + letter.shape[0], x : x + letter.shape[1]] -= letter * 0.75
            x += letter.shape[1] + wide
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    return ((np.stack([image] * 3) - mean[:, None, None]) / deviation[:, None, None])[None].astype(np.float32)


def waves(size, seed):
    """Returns waves and edges, between 0 and 1."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:size[0], 0:size[1]] / 24
    planes = [np.sin(rows * random.uniform(0.2, 3) + columns * random.uniform(0.2, 3) + random.uniform(0, 6)) for _ in range(3)]
    image = np.stack(planes) / 2 + 0.5 + random.normal(0, 0.05, (3, *size))
    top, left = random.integers(0, size[0] // 2), random.integers(0, size[1] // 2)
    image[:, top : top + size[0] // 3, left : left + size[1] // 3] = random.uniform(0, 1, (3, 1, 1))
    return np.clip(image, 0, 1)[None].astype(np.float32)


# Name, file in the packages, size of the image, function that makes it, least share of the nodes on the NPU.
NETWORKS = [("classifier", "rapidocr_onnxruntime/models/*cls*.onnx", (48, 192), waves, 0.5),
            ("recogniser", "rapidocr_onnxruntime/models/*rec*.onnx", (48, 160), waves, 0.3),
            ("detector", "rapidocr_onnxruntime/models/*det*.onnx", (160, 160), text, 0.5),
            ("yolov8n", "nudenet/320n.onnx", (320, 320), waves, 0.7)]


class Pictures:
    """Implements ONNX Runtime's CalibrationDataReader."""

    def __init__(self, name, size, picture):
        self.feeds = [{name: picture(size, seed)} for seed in range(4)]

    def get_next(self):
        return self.feeds.pop() if self.feeds else None


def quantized(found, size, picture, folder):
    """Writes the float network with that image as its input, and as QDQ with uint8 and int8."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static, shape_inference
    model = onnx.load(str(found))
    (fed,) = (one for one in model.graph.input if one.name not in {const.name for const in model.graph.initializer})
    for place, value in zip(fed.type.tensor_type.shape.dim, (1, 3, *size)):
        place.dim_value = value
    for one in model.graph.output:
        one.type.tensor_type.ClearField("shape")
    if model.opset_import[0].version < 13:
        model = onnx.version_converter.convert_version(model, 13)
    real, ready, made = folder / "real.onnx", folder / "ready.onnx", folder / "quantized.onnx"
    onnx.save(model, str(real))
    shape_inference.quant_pre_process(str(real), str(ready), skip_symbolic_shape=True)
    quantize_static(str(ready), str(made), Pictures(fed.name, size, picture), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    return fed.name, ready, made


def away(one, other):
    return float(np.sqrt(np.mean((one.astype(np.float64) - other) ** 2)))


def case_networks(folder):
    site = Path(onnx.__file__).parents[1]
    for name, pattern, size, picture, least in share.of(NETWORKS):
        (found,) = site.glob(pattern)
        fed, real, path = quantized(found, size, picture, folder)
        feed = {fed: picture(size, 99)}
        of_float, want = in_float(real).run(None, feed)[0], in_float(path).run(None, feed)[0]
        noise = away(want, of_float)
        assert noise > 0 and of_float.std() > 1e-3, "the data says nothing"
        for chip in ARGS.chips.split(","):
            stored = folder / "stored.onnx"
            stored.unlink(missing_ok=True)
            made = session(path, {"device": chip, "partition": "all"}, **{"ep.context_enable": "1", "ep.context_embed_mode": "1", "ep.context_file_path": str(stored)})
            got = made.run(None, feed)[0]
            ours, parts, others = placed(made)
            nodes = ours + len(others)
            again = session(stored, {"device": chip, "partition": "all"}).run(None, feed)[0]
            off = away(got, want)
            print(f"{name} {chip}: {ours} of {nodes} nodes in {parts} parts, {off / noise:.2f} of the noise of quantizing, correlation {alike(got, want):.5f}", flush=True)
            assert np.array_equal(again, got), "other numbers from the stored model"
            assert off < noise and ours >= least * nodes, (off, noise, ours, nodes)


def main():
    global ARGS, alike, in_float, np, onnx, placed, session  # noqa: PLW0603  they are there in the virtual environment only
    parser = parser_of_cases(ROOT / "build")
    parser.add_argument("--chips", default="sim:a311d,sim:imx8mp,sim:rk3588")
    ARGS = parser.parse_args()
    if not ARGS.inside:
        python, found = environment.virtual_environment(ARGS.build / "onnx-real-venv", PACKAGES)
        if found != PACKAGES:
            return 77
        return subprocess.run([python, __file__, *sys.argv[1:], "--inside"], check=False).returncode
    import numpy as np
    import onnx
    import onnx.version_converter
    import onnxruntime as ort

    from onnx_sessions import alike, in_float, placed, session

    ort.set_default_logger_severity(3)
    ort.register_execution_provider_library("skillet", ARGS.library)
    return run_cases(globals(), ARGS.case)


if __name__ == "__main__":
    sys.exit(main())
