#!/usr/bin/env python3
"""LiteRT's CompiledModel with the compiler plug-in and the dispatch library, from the published runtime: the same bits as the delegate's.

usage: litert_test.py PLUGIN DELEGATE SKILLET [--build DIR] [--version VERSION] [--models FOLDER] [--case REGEX]

Each step runs in a process of its own, as libraries read the environment.
Exit code 77: nothing could be tested.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import environment

ROOT = Path(__file__).resolve().parents[2]
VERSION = "2.3.0"
CHIPS = ["a311d", "imx8mp", "rk3588"]
SMALL = [ROOT / "models/digits.tflite", ROOT / "tests/models/conv3x3_s2_u8.tflite"]
RAN = re.compile(r"(\d+) of (\d+) ops claimed, (\d+) partitions")

# Prints one line of JSON: digests of the outputs, with the delegate or with CompiledModel.
STEP = r"""
import hashlib, json, sys, threading
import numpy as np
way, model, compiler, dispatch, threads = sys.argv[1:]

def values(shape, dtype):
    random = np.random.default_rng(3)
    if np.issubdtype(dtype, np.integer):
        return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
    return random.normal(0, 1, shape).astype(dtype)

from ai_edge_litert.interpreter import Interpreter, load_delegate
made = Interpreter(model, experimental_delegates=[load_delegate(compiler)] if way == "delegate" else [])
made.allocate_tensors()
inputs = [values(one["shape"], one["dtype"]) for one in made.get_input_details()]
outputs = [(one["shape"], one["dtype"]) for one in made.get_output_details()]
digest = lambda arrays: [hashlib.sha256(one.tobytes()).hexdigest()[:16] for one in arrays]
if way == "delegate":
    for one, value in zip(made.get_input_details(), inputs):
        made.set_tensor(one["index"], value)
    made.invoke()
    answers = [digest([made.get_tensor(one["index"]) for one in made.get_output_details()])]
else:
    from ai_edge_litert.compiled_model import CompiledModel
    from ai_edge_litert.environment import Environment
    from ai_edge_litert.hardware_accelerator import HardwareAccelerator
    place = Environment.create(compiler_plugin_path=compiler, dispatch_library_path=dispatch)
    models = [CompiledModel.from_file(model, hardware_accel=HardwareAccelerator.NPU | HardwareAccelerator.CPU, environment=place) for _ in range(int(threads))]
    answers = []
    def work(one):
        to, back = one.create_input_buffers(0), one.create_output_buffers(0)
        for buffer, value in zip(to, inputs):
            buffer.write(value)
        for _ in range(3):
            one.run_by_index(0, to, back)
        got = []
        for buffer, (shape, dtype) in zip(back, outputs):
            read = np.dtype(np.int32 if np.dtype(dtype).itemsize == 8 else dtype)  # the wheel reads no int64
            count = int(np.prod(shape)) * np.dtype(dtype).itemsize // read.itemsize
            got.append(np.asarray(buffer.read(count, read.type)).astype(read))
        answers.append(digest(got))
    running = [threading.Thread(target=work, args=(one,)) for one in models]
    for one in running:
        one.start()
    for one in running:
        one.join()
print(json.dumps(answers))
"""


def step(way, model, device, compiler=None, dispatch=None, threads=1, prefix=(), **environment_variables):
    """The digests of the outputs and what was printed; no digests: it failed."""
    variables = {**os.environ, "SKILLET_DEVICE": device, "SKILLET_PARTITION": "all", "SKILLET_LOG": "info", **environment_variables}
    command = [*prefix, sys.executable, "-c", STEP, way, str(model), str(compiler or ARGS.plugin), str(dispatch or ARGS.plugin), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    lines = done.stdout.strip().splitlines()
    return (json.loads(lines[-1]) if done.returncode == 0 and lines else []), done.stderr + done.stdout


def claimed(text):
    found = RAN.search(text)
    return tuple(int(one) for one in found.groups()) if found else (0, 0, 0)


def case_same_bits(_):
    """Just in time: what the delegate claims, and its bits."""
    for model in SMALL + sorted(ARGS.models.glob("*.tflite")):
        for chip in CHIPS:
            want, theirs = step("delegate", model, f"sim:{chip}", compiler=ARGS.delegate)
            got, ours = step("compiled", model, f"sim:{chip}")
            print(f"{model.name} sim:{chip}: {'%d of %d ops, %d parts' % claimed(ours)}")
            if not got and "Variable tensors not yet supported" in ours:
                print(f"{model.name}: this LiteRT loads no model with variables")
                break
            assert want and got, ours[-2000:] + theirs[-2000:]
            assert got == want, f"{model.name} {chip}: other bits than the delegate's"
            assert claimed(ours)[0] == claimed(theirs)[0] > 0, f"{claimed(ours)}, the delegate {claimed(theirs)}"
            assert f"runs on sim:{chip}" in ours, ours


def case_threads(_):
    got, text = step("compiled", SMALL[0], "sim:a311d", threads=4)
    assert len(got) == 4 and len({str(one) for one in got}) == 1, text


def main():
    global ARGS  # noqa: PLW0603
    parser = argparse.ArgumentParser()
    for name in ("plugin", "delegate", "skillet"):
        parser.add_argument(name, type=lambda path: Path(path).resolve())
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--version", default=VERSION)
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared/models")
    parser.add_argument("--case", default="")
    parser.add_argument("--inside", action="store_true")
    ARGS = parser.parse_args()
    if not ARGS.inside:
        python, found = environment.virtual_environment(ARGS.build / f"litert-venv{ARGS.version}", [[f"ai-edge-litert=={ARGS.version}", "numpy"]])
        if not found:
            print(f"LiteRT: left out, PyPI gives no ai-edge-litert {ARGS.version} here")
            return 77
        return subprocess.run([python, __file__, *sys.argv[1:], "--inside"], check=False).returncode
    ARGS.plugin = ARGS.plugin.parent  # the host looks into folders
    failed = 0
    for name, case in list(globals().items()):
        if not name.startswith("case_") or not re.search(ARGS.case, name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(Path(folder))
                print(f"{name}: ok")
            except AssertionError as wrong:
                failed += 1
                print(f"{name}: FAILED, line {wrong.__traceback__.tb_next.tb_lineno}: {wrong}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
