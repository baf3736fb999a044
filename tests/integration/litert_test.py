#!/usr/bin/env python3
"""Tests LiteRT's CompiledModel with the compiler plug-in and the dispatch library, from the published runtime: the bits equal the delegate's.

usage: litert_test.py PLUGIN DELEGATE SKILLET COMPILER [--build DIR] [--version VERSION] [--models FOLDER] [--case REGEX]

Each step runs in a separate process, since the libraries read the environment.
Exit code 77: nothing could be tested.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import environment
import fault_rows
import share
from run_cases import run_cases

ROOT = Path(__file__).resolve().parents[2]
VERSION = "2.3.0"
# Other versions that work, then one whose function tables differ.
OTHERS = ["ai-edge-litert==2.2.0", "ai-edge-litert-nightly"]
TOO_OLD = "ai-edge-litert==2.1.6"
MARK = b"SKILMODL"  # the first bytes of a part
CHIPS = ["a311d", "imx8mp", "rk3588"]
SMALL = [ROOT / "models/digits.tflite", ROOT / "tests/models/conv3x3_s2_u8.tflite"]
DIVIDED = re.compile(r"selected (\d+) ops, from a total of (\d+) ops. resulted in (\d+) partitions")
RAN = re.compile(r"(\d+) of (\d+) ops claimed, (\d+) partitions")

# Prints one line of JSON: digests of the outputs, with the delegate or with CompiledModel.
STEP = r"""
import hashlib, json, sys, threading
import numpy as np
way, model, like, compiler, dispatch, threads = sys.argv[1:]

def values(shape, dtype):
    random = np.random.default_rng(3)
    if np.issubdtype(dtype, np.integer):
        return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
    return random.normal(0, 1, shape).astype(dtype)

from ai_edge_litert.interpreter import Interpreter, load_delegate
made = Interpreter(like or model, experimental_delegates=[load_delegate(compiler)] if way == "delegate" else [])
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


# Prints the CPU time of one run, in us.
TIMED = r"""
import statistics, sys, time
from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.environment import Environment
from ai_edge_litert.hardware_accelerator import HardwareAccelerator
model, dispatch = sys.argv[1:]
place = Environment.create(dispatch_library_path=dispatch)
made = CompiledModel.from_file(model, hardware_accel=HardwareAccelerator.NPU | HardwareAccelerator.CPU, environment=place)
to, back = made.create_input_buffers(0), made.create_output_buffers(0)
times = []
for _ in range(10):
    start = time.process_time()
    for _ in range(300):
        made.run_by_index(0, to, back)
    times.append((time.process_time() - start) / 300 * 1e6)
print(statistics.median(times[1:]))
"""


def step(way, model, device, like="", compiler=None, dispatch=None, threads=1, prefix=(), python=sys.executable, **environment_variables):
    """Runs a model.
    Returns the digests of its outputs, empty after a failure, and the messages. `like`: the model with the same inputs and outputs."""
    variables = {**os.environ, "SKILLET_DEVICE": device, "SKILLET_PARTITION": "all", "SKILLET_LOG": "info", **environment_variables}
    command = [*prefix, str(python), "-c", STEP, way, str(model), like, str(compiler or ARGS.plugin), str(dispatch or ARGS.plugin), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    lines = done.stdout.strip().splitlines()
    return (json.loads(lines[-1]) if done.returncode == 0 and lines else []), done.stderr + done.stdout


def claimed(text):
    found = RAN.search(text)
    return tuple(int(one) for one in found.groups()) if found else (0, 0, 0)


def cells():
    return share.of((model, chip) for model in SMALL + sorted(ARGS.models.glob("*.tflite")) for chip in CHIPS)


def case_same_bits(_):
    """Compiles just in time: claims and bits equal the delegate's."""
    for model, chip in cells():
        want, theirs = step("delegate", model, f"sim:{chip}", compiler=ARGS.delegate)
        got, ours = step("compiled", model, f"sim:{chip}")
        print(f"{model.name} sim:{chip}: {'%d of %d ops, %d parts' % claimed(ours)}")
        if not got and "Variable tensors not yet supported" in ours:
            print(f"{model.name}: this LiteRT loads no model with variables")
            continue
        assert want and got, ours[-2000:] + theirs[-2000:]
        assert got == want, f"{model.name} {chip}: other bits than the delegate's"
        # If the host divides a part further, an operation by itself may need no job.
        assert claimed(ours)[0] >= 0.95 * claimed(theirs)[0] > 0, f"{claimed(ours)}, the delegate {claimed(theirs)}"
        assert tuple(map(int, DIVIDED.search(ours).groups())) == claimed(ours), ours
        ran = re.findall(rf" (\d+) jobs, runs on sim:{chip}, (\d+) programs as stored", ours)
        assert len(ran) == claimed(ours)[2] and all(int(jobs) > 0 and int(stored) > 0 for jobs, stored in ran), ran


def case_parameters(folder):
    """Tests operations whose parameters the host passes one by one. Rows and columns, and other pairs, have different values."""
    sys.path.insert(0, str(ROOT / "tests/conformance"))
    import one_op

    image, bias = one_op.tensor((1, 12, 14, 8), "uint8", 0.5, 120), one_op.constant([0] * 4, scale=0.125)
    out = lambda *shape, **more: one_op.tensor(shape, "uint8", **{"scale": 0.5, "zero_point": 120, **more})  # noqa: E731
    weights = lambda *shape: one_op.tensor(shape, "uint8", 0.25, 120, (np.arange(np.prod(shape)) % 251).astype(np.uint8).reshape(shape))  # noqa: E731
    pool = dict(padding=1, stride_w=2, stride_h=1, filter_width=2, filter_height=3)
    reduced = ("ReducerOptions", dict(keep_dims=True))
    cases = {
        "CONV_2D": (3, [image, weights(4, 3, 3, 8), bias], out(1, 5, 12, 4, scale=99.0),
                    ("Conv2DOptions", dict(padding=1, stride_w=1, stride_h=2, fused_activation_function=1, dilation_w_factor=1, dilation_h_factor=1))),
        "DEPTHWISE_CONV_2D": (4, [image, weights(1, 3, 3, 8), one_op.constant([0] * 8, scale=0.125)], out(1, 12, 7, 8, scale=9.0),
                              ("DepthwiseConv2DOptions", dict(padding=0, stride_w=2, stride_h=1, depth_multiplier=1, fused_activation_function=1))),
        "FULLY_CONNECTED": (9, [one_op.tensor((1, 24), "uint8", 0.5, 120), weights(4, 24), bias], out(1, 4, scale=99.0), ("FullyConnectedOptions", {})),
        "AVERAGE_POOL_2D": (1, [image], out(1, 10, 7, 8), ("Pool2DOptions", pool)),
        "MAX_POOL_2D": (17, [image], out(1, 10, 7, 8), ("Pool2DOptions", pool)),
        "ADD": (0, [image, image], out(1, 12, 14, 8), ("AddOptions", dict(fused_activation_function=1))),
        "MUL": (18, [image, image], out(1, 12, 14, 8, scale=20.0), ("MulOptions", {})),
        "CONCATENATION": (2, [image, image], out(1, 12, 14, 16), ("ConcatenationOptions", dict(axis=-1))),
        "RESIZE_NEAREST_NEIGHBOR": (97, [image, one_op.constant([24, 28])], out(1, 24, 28, 8), ("ResizeNearestNeighborOptions", {})),
        "RESIZE_BILINEAR": (23, [image, one_op.constant([24, 28])], out(1, 24, 28, 8), ("ResizeBilinearOptions", dict(half_pixel_centers=True))),
        "STRIDED_SLICE": (45, [image, *(one_op.constant(one) for one in ([0, 1, 2, 0], [1, 9, 9, 8], [1, 1, 1, 1]))], out(1, 9, 12, 8),
                          ("StridedSliceOptions", dict(begin_mask=2, end_mask=4))),
        "MEAN": (40, [image, one_op.constant([1, 2])], out(1, 1, 1, 8), reduced),
        "SUM": (74, [image, one_op.constant([1, 2])], out(1, 1, 1, 8, scale=90.0), reduced),
        "REDUCE_MAX": (82, [image, one_op.constant([1, 2])], out(1, 1, 1, 8), reduced),
        "LEAKY_RELU": (98, [image], out(1, 12, 14, 8), ("LeakyReluOptions", dict(alpha=0.25))),
        "MIRROR_PAD": (100, [image, one_op.constant([[0, 0], [1, 1], [2, 2], [0, 0]])], out(1, 14, 18, 8), ("MirrorPadOptions", dict(mode=1))),
        "SPACE_TO_DEPTH": (26, [image], out(1, 6, 7, 32), ("SpaceToDepthOptions", dict(block_size=2))),
        "TRANSPOSE_CONV": (67, [one_op.constant([1, 24, 14, 4]), weights(4, 3, 3, 8), image], out(1, 24, 14, 4, scale=99.0),
                           ("TransposeConvOptions", dict(padding=0, stride_w=1, stride_h=2))),
    }
    taken = set()
    for name, (code, inputs, output, options) in cases.items():
        model = folder / f"{name}.tflite"
        model.write_bytes(one_op.model_bytes(one_op.case(name, (name, code), inputs, output, options, version=2)))
        for chip in ("rk3588", "a311d"):
            want, theirs = step("delegate", model, f"sim:{chip}", compiler=ARGS.delegate)
            got, ours = step("compiled", model, f"sim:{chip}")
            assert want and got == want and claimed(ours)[:2] == claimed(theirs)[:2], f"{name}: {want} {got} {theirs[-800:]} {ours[-1500:]}"
            if claimed(ours)[0]:
                taken.add(name)
    print(f"parameters: {len(taken)} of {len(cases)} operations on an NPU; not {', '.join(sorted(cases.keys() - taken))}")
    assert len(taken) > 12


def case_threads(_):
    got, text = step("compiled", SMALL[0], "sim:a311d", threads=4)
    assert len(got) == 4 and len({str(one) for one in got}) == 1, text


def ahead_of_time(model, chip, folder):
    """Returns the model with the parts that the wheel's tool compiles for a chip."""
    import ai_edge_litert
    tool, made = Path(ai_edge_litert.__file__).parent / "tools/apply_plugin_main", folder / f"{model.stem}_{chip}.tflite"
    command = [tool, "--cmd=apply", f"--libs={ARGS.plugin}", f"--model={model}", "--soc_manufacturer=Skillet", f"--soc_model={chip}", f"--o={made}", "--err=--"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "SKILLET_PARTITION": "all"})
    assert done.returncode == 0 and MARK in made.read_bytes(), done.stdout + done.stderr
    return made


def case_ahead_of_time(folder):
    for model, chip in cells():
        if "lstm" in model.name:
            continue
        want, _ = step("delegate", model, f"sim:{chip}", compiler=ARGS.delegate)
        made = ahead_of_time(model, chip, folder)
        got, text = step("compiled", made, f"sim:{chip}", like=str(model))
        assert got == want, f"{model.name} {chip}: {text[-2000:]}"
        done = subprocess.run([ARGS.skillet, "inspect", made, "--json"], capture_output=True, text=True, check=True)
        parts = json.loads(done.stdout)["models"]
        assert len(parts) == made.read_bytes().count(MARK) and all(one["graph"]["operations"] > 0 for one in parts), parts
        assert {program["chip"] for one in parts for program in one["programs"]} == {chip}, parts
        # Every stored program is used.
        assert sum(len(one["programs"]) for one in parts) == sum(map(int, re.findall(r", (\d+) programs as stored", text))), (parts, text)
        assert not re.search(" 0 programs as stored|compiled again", text), text


def case_other_device(folder):
    """A part that was compiled for another chip is compiled again; without an NPU, CPU kernels compute it."""
    made = ahead_of_time(SMALL[0], "a311d", folder)
    want, _ = step("delegate", SMALL[0], "sim:rk3588", compiler=ARGS.delegate)
    got, text = step("compiled", made, "sim:rk3588", like=str(SMALL[0]))
    assert got == want and "compiled for a311d is compiled again for rk3588" in text, text
    got, text = step("compiled", made, "sim:a311d", like=str(SMALL[0]), SKILLET_TUNING="tuned")
    assert got and re.search(r"the compiled part 'skillet_0': (\d+) of \1 programs? (is|are) not used but compiled again: it was compiled with tuning=proven, not tuned", text), text
    for device, why in (("auto", "no NPU"), ("", "no NPU"), ("sim:a311", "no chip 'a311'")):
        got, text = step("compiled", made, device, like=str(SMALL[0]))
        assert got and re.search(f"compiled for a311d runs on the CPU: .*{why}", text), text
    # The host reports it, but only when the model runs.
    got, text = step("compiled", made, "sim:a311d", dispatch=folder, like=str(SMALL[0]))
    assert not got and "RuntimeError" in text, text


def case_wrong_bytes(folder):
    made = ahead_of_time(SMALL[0], "a311d", folder).read_bytes()
    at = made.index(MARK)
    for offset, text in ((0, "not a compiled model"), (8, "compile the model again"), (41, "others follow it"), (43, "cut off"), (100, "damaged"), (4000, "damaged"), (48, "damaged")):
        bad = bytearray(made)
        bad[at + offset] ^= 0x20
        (folder / "bad.tflite").write_bytes(bad)
        got, said = step("compiled", folder / "bad.tflite", "sim:a311d", like=str(SMALL[0]))
        assert not got and text in said and "Error" in said, f"{offset}: {said[-2000:]}"


# Runs each file in a child process, and prints how each ends: 0 it ran, 3 an error, else a signal.
ENDS = r"""
import json, os, signal, sys
from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.environment import Environment
from ai_edge_litert.hardware_accelerator import HardwareAccelerator
folder, *files = sys.argv[1:]
ends = {}
for path in files:
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        code = 0
        try:
            place = Environment.create(dispatch_library_path=folder)
            made = CompiledModel.from_file(path, hardware_accel=HardwareAccelerator.NPU | HardwareAccelerator.CPU, environment=place)
            made.run_by_index(0, made.create_input_buffers(0), made.create_output_buffers(0))
        except Exception:
            code = 3
        os._exit(code)
    ends[path] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(ends))
"""


def case_damaged_files(folder):
    """A compiled file that is cut off at any of 200 places, or has an incomplete part, gives an error. The complete file runs."""
    made = ahead_of_time(SMALL[0], "a311d", folder)
    whole, random = made.read_bytes(), np.random.default_rng(1)
    at = whole.index(MARK)
    bad = {f"cut{end}": whole[:end] for end in random.choice(len(whole), 200, replace=False)}
    bad.update({f"zeros{at + end}": whole[:at + end] + bytes(len(whole) - at - end) for end in random.choice(len(whole) - at - 64, 60, replace=False)})
    for name, data in bad.items():
        (folder / f"{name}.tflite").write_bytes(data)
    files = [made, *(folder / f"{name}.tflite" for name in bad)]
    done = subprocess.run([sys.executable, "-c", ENDS, str(ARGS.plugin), *map(str, files)], capture_output=True, text=True, check=True,
                          env={**os.environ, "SKILLET_DEVICE": "sim:a311d"})
    ends = json.loads(done.stdout.strip().splitlines()[-1])
    assert ends.pop(str(made)) == 0 and set(ends.values()) == {3}, {Path(path).name: end for path, end in ends.items() if end != 3}
    assert done.stderr.count("skillet: error") >= 60, done.stderr[-2000:]


def case_faults(folder):
    """Makes a board's kernel driver fail: the CPU answers.
    Uses files compiled ahead of time, since LiteRT loads the compiler plug-in past preloaded libraries."""
    model = SMALL[1]
    for chip in fault_rows.CALLS:
        made = ahead_of_time(model, chip, folder)
        of_npu, _ = step("delegate", model, f"sim:{chip}", compiler=ARGS.delegate)
        of_cpu, _ = step("compiled", made, "cpu", like=str(model))
        assert of_npu and of_cpu and (of_npu != of_cpu or chip != "a311d"), "the model tells them apart"

        def run(before, settings):
            got, text = step("compiled", made, "auto", like=str(model), prefix=before, **settings)
            if "--fail" not in before:
                assert got == of_npu, text[-3000:]
            return got or None, text

        fault_rows.check("LiteRT", ARGS.skillet, chip, run, lambda got: got in (of_npu, of_cpu))


def case_free_batch(_):
    """Models that Keras exports with a free batch size run with one image."""
    for name in ("dense_i8", "heads_i8"):
        model = ROOT / f"tests/models/keras/{name}.tflite"
        want, _ = step("delegate", model, "sim:a311d", compiler=ARGS.delegate)
        got, text = step("compiled", model, "sim:a311d")
        assert want and got == want and claimed(text)[0] > 0, f"{name}: {want} {got} {text[-3000:]}"


# Prints the result of one image; for each number of images, the result or LiteRT's error; then the result of one image again.
RESIZED = r"""
import json, sys
import numpy as np
from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.environment import Environment
from ai_edge_litert.hardware_accelerator import HardwareAccelerator
model, folder = sys.argv[1:]
place = Environment.create(compiler_plugin_path=folder, dispatch_library_path=folder)
made = CompiledModel.from_file(model, hardware_accel=HardwareAccelerator.NPU | HardwareAccelerator.CPU, environment=place)
image = np.random.default_rng(1).integers(-128, 128, (1, 28, 28, 1)).astype(np.int8)

def run(images):
    to, back = made.create_input_buffers(0), made.create_output_buffers(0)
    to[0].write(np.repeat(image, images, 0))
    made.run_by_index(0, to, back)
    return np.asarray(back[0].read(10, np.int8)).astype(int).tolist()

said = [run(1)]
for shape in ((2, 28, 28, 1), (5, 28, 28, 1), (1, 14, 14, 1), (0, 28, 28, 1), (1, 28, 28, 1)):
    try:
        made.resize_input_tensor(0, shape)
        said.append(run(shape[0]))
    except Exception as failed:
        said.append(str(failed))
print(json.dumps(said))
"""


def case_resized(_):
    """Resized inputs give an error, or the first image's result. Afterwards one image gives the same result as before."""
    command = [sys.executable, "-c", RESIZED, str(ROOT / "tests/models/keras/dense_i8.tflite"), str(ARGS.plugin)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "SKILLET_DEVICE": "sim:a311d", "SKILLET_PARTITION": "all"})
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    first, *others, last = json.loads(done.stdout.strip().splitlines()[-1])
    assert len(set(first)) > 2 and last == first and all(isinstance(one, str) or one == first for one in others), (first, others, last)


def case_host_time(folder):
    """Measures host time against a dispatch library that does nothing, on a device that computes nothing."""
    command = [ARGS.compiler, "-std=c++20", "-O2", "-fPIC", "-shared", "-Wno-missing-field-initializers", f"-I{ROOT / 'src'}",
               str(ROOT / "tests/integration/litert_nothing.cpp"), "-o", str(folder / "libLiteRtDispatch_Nothing.so")]
    subprocess.run(command, check=True)
    made = ahead_of_time(SMALL[1], "a311d", folder)
    variables = {**os.environ, "SKILLET_DEVICE": "null:a311d", "SKILLET_LOG": "error", "INPUT_BYTES": "8712", "OUTPUT_BYTES": "4624"}

    def timed(dispatch):
        done = subprocess.run([sys.executable, "-c", TIMED, str(made), str(dispatch)], capture_output=True, text=True, check=False, env=variables)
        assert done.returncode == 0, done.stderr[-2000:]
        return float(done.stdout)

    pairs = [(timed(ARGS.plugin), timed(folder)) for _ in range(5)]
    above = statistics.median(ours - nothing for ours, nothing in pairs)
    print(f"host time: {above:.1f} us of CPU time a run above a dispatch library that does nothing (the aim: 10 us)")


def case_options(_):
    got, text = step("compiled", SMALL[0], "sim:a311d", SKILLET_STRICT="1")
    assert got and "strict=1, but 1 of 14 ops would run on the CPU" in text and "ops claimed" in text, text
    got, text = step("compiled", SMALL[0], "sim:a311d", SKILLET_MIN_NODES_PER_PARTITION="14")
    assert got and "fewer than min_nodes_per_partition=14" in text and claimed(text) == (0, 14, 0), text
    got, text = step("compiled", SMALL[0], "sim:a311d", SKILLET_PARTITION="some")
    assert got and text.count("some") == 1, text
    got, text = step("compiled", SMALL[0], "sim:nothing")
    assert got and "sim:nothing" in text, text


def case_require_npu(folder):
    """Without the device there is an error of the host and a line with the reason, although the host's own kernels could run the model."""
    made = ahead_of_time(SMALL[0], "a311d", folder)
    for model in (SMALL[0], made):
        for device, why in (("auto", "no NPU here"), ("sim:nothing", "no chip 'nothing'"), ("cpu", "require_npu=1, but device=cpu")):
            got, text = step("compiled", model, device, like=str(SMALL[0]), SKILLET_REQUIRE_NPU="1")
            assert not got and f"skillet: error: LiteRT: " in text and why in text and "RuntimeError" in text, (model, text[-2000:])
        got, text = step("compiled", model, "sim:a311d", like=str(SMALL[0]), SKILLET_REQUIRE_NPU="1")
        assert got and "runs on sim:a311d" in text, text[-2000:]


def case_versions(_):
    want, _ = step("delegate", SMALL[0], "sim:a311d", compiler=ARGS.delegate)
    for package in [*OTHERS, TOO_OLD]:
        python, found = environment.virtual_environment(ARGS.build / f"litert-venv-{package.replace('==', '-')}", [[package, "numpy", "ml_dtypes"]])
        if not found:
            print(f"LiteRT: {package} is left out")
            continue
        got, text = step("compiled", SMALL[0], "sim:a311d", python=python)
        if package == TOO_OLD:
            assert got and text.count("it needs LiteRT 2.2 or later") == 2, text
        elif "nightly" in package and got != want:
            print(f"LiteRT: {package} does not take the plug-in: {text[-2000:]}")  # its function tables may still change
        else:
            assert got == want and "runs on sim:a311d" in text, f"{package}: {text[-2000:]}"
            print(f"{package}: ok")


def main():
    global ARGS, np  # noqa: PLW0603
    parser = argparse.ArgumentParser()
    for name in ("plugin", "delegate", "skillet"):
        parser.add_argument(name, type=lambda path: Path(path).resolve())
    parser.add_argument("compiler")
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
    import numpy as np

    ARGS.plugin = ARGS.plugin.parent  # the host searches folders
    return run_cases(globals(), ARGS.case)


if __name__ == "__main__":
    sys.exit(main())
