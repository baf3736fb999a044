#!/usr/bin/env python3
"""Runs the file that `skillet quantize` writes in the published runtimes.

usage: quantize_test.py SKILLET DELEGATE

LiteRT's reference kernels compute the same bits as Skillet's, and the delegate claims operations that it does not claim in the original
model, also if only proven jobs are allowed. Includes ../shared/models if they exist. Exit code 77: nothing could be tested.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import environment

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared/models"
# Model, and how many operations of the written file the delegate claims with proven jobs.
MODELS = {ROOT / "tests/models/conv_scales_i8.tflite": 0,  # images that are not square are not proven
          SHARED / "tf2_mobilenet_v2_1.0_224_ptq.tflite": 65,
          SHARED / "movenet_single_pose_lightning_ptq.tflite": 90}
INFERENCES, TRIED = 6, 2


def smooth(shape, dtype, seed):
    import numpy as np
    draw = np.random.default_rng(seed)
    walk = np.cumsum(draw.integers(-9, 10, size=shape[1:]), axis=0) + draw.integers(-60, 60, size=shape[-1:])
    wave = np.abs((walk + 128) % 510 - 255)  # reflected at both ends
    return (wave - (128 if dtype == np.int8 else 0)).astype(dtype).reshape(shape)


def quantized(skillet, model, output, data):
    done = subprocess.run([skillet, "quantize", model, "-o", output, "--data", data, "--device", "sim:a311d", "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"skillet quantize {model.name}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def ours(skillet, model, inputs, folder):
    import numpy as np
    path, out = Path(folder) / "in.npy", Path(folder) / "out.npz"
    np.save(path, inputs)
    subprocess.run([skillet, "run", model, "--device", "cpu", "--input", path, "--output", out], check=True, capture_output=True)
    with np.load(out) as arrays:
        return [arrays[name] for name in arrays.files]


def claimed(model, delegate):
    program = ("import sys, hosts; d = hosts.load_delegate('litert', sys.argv[2], {'device': 'sim:a311d', 'partition': 'all', "
               "'log': 'info'})\nhosts.PythonRunner('litert', sys.argv[1], d)")
    done = subprocess.run([sys.executable, "-c", program, model, delegate], cwd=Path(__file__).parent, text=True, capture_output=True, check=True)
    return int((re.findall(r"(\d+) of \d+ ops claimed", done.stderr) or ["0"])[-1])


def try_one(skillet, delegate, model, folder):
    import hosts
    import numpy as np
    output, data = Path(folder) / "out.tflite", Path(folder) / "data.npy"
    wanted = hosts.PythonRunner("litert", model).interpreter.get_input_details()[0]
    shape, dtype = wanted["shape"], wanted["dtype"]
    np.save(data, np.concatenate([smooth(shape, dtype, seed) for seed in range(INFERENCES)]))
    report = quantized(skillet, model, output, data)
    if not report["layers"] or any(one["scales"] != 1 for one in report["layers"]):
        raise RuntimeError("a layer has more scales than one, or there is none")
    runner = hosts.PythonRunner("litert", output)
    for seed in range(TRIED):
        inputs = smooth(shape, dtype, 100 + seed)
        theirs = runner.run([inputs])
        for a, b in zip(theirs, ours(skillet, output, inputs, folder), strict=True):
            if a.tobytes() != b.tobytes():
                raise RuntimeError(f"LiteRT's reference kernels differ by {np.abs(a.astype(float) - b.astype(float)).max()}")
    proven, count = report["after"]["delegate_ops"], claimed(output, delegate)
    print(f"quantize: {model.stem}: {len(report['layers'])} layers, the same bits in LiteRT; claimed: {count} operations, {proven} with "
          f"jobs that are proven; of the model {claimed(model, delegate)}, {report['before']['delegate_ops']}")
    if proven < MODELS[model] or count < proven:
        raise RuntimeError(f"{proven} operations claimed, not {MODELS[model]}")


def main():
    skillet, delegate = sys.argv[1:]
    python = environment.python_with_runtimes(ROOT / "build/venv")
    if python is None:
        return 77
    if Path(sys.prefix) != python.parents[1]:
        os.execv(python, [str(python), *sys.argv])
    failed = 0
    with tempfile.TemporaryDirectory(prefix="skillet_quantize_") as folder:
        for model in filter(Path.exists, MODELS):
            try:
                try_one(skillet, delegate, model, folder)
            except (RuntimeError, ValueError) as problem:
                failed += 1
                print(f"quantize: {model.name}: {problem}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
