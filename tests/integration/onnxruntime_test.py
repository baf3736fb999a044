#!/usr/bin/env python3
"""Tests the ONNX Runtime provider in the published runtime, and ONNX files in the command.

Checks which nodes the provider takes, its numbers beside the CPU's, options, threads and faults.

usage: onnxruntime_test.py LIBRARY SKILLET [--build DIR] [--version VERSION] [--case REGEX]

The networks are made and quantized here (onnx_nets.py). The CPU computes without optimisation, in float: the
fused kernels for uint8 weights differed from that by up to 103 steps on x86-64. Exit code 77: nothing could be tested.
"""
import contextlib
import ctypes
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import environment
import fault_rows
import share
from run_cases import parser_of_cases, run_cases

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ["onnxruntime==1.24.4", "onnx", "numpy"]
# Other versions that work, and the cases for them; 1.23 does not report which nodes a provider has.
OTHERS = {"1.23.2": "whole|context|compiler_files|threads|asked_again_of_functions|graphs_inside",
          "newest": "whole|context|compiler_files|threads|options|free_sizes|asked_again|asked_again_of_functions|graphs_inside|averages"}
CHIPS = ["sim:a311d", "sim:imx8mp", "sim:rk3588"]
OPTIONS = {"partition": "all", "per_channel": "approximate"}
# Operations that the NPU does not take by themselves stay with the host, undivided.
VIVANTE = CHIPS[:2]
LEFT = {"softmax": CHIPS, "grouped": CHIPS, "max_pool_apart": VIVANTE, "max_pool_apart_lower": VIVANTE, "average_pool_apart": CHIPS}
WHOLE_MAX = 12  # allowed difference of a whole network, in steps
CORRELATION_MIN = 0.998


def reference(path):
    """Makes a session of ONNX Runtime's CPU: in float between QuantizeLinear and DequantizeLinear, with exact sums of bytes in QLinear operators."""
    if not any(one.op_type.startswith("QLinear") for one in onnx.load(str(path)).graph.node):
        return in_float(path)
    so = ort.SessionOptions()
    so.add_session_config_entry(EXACT_SUMS, "1")
    return ort.InferenceSession(str(path), so, providers=["CPUExecutionProvider"])


def inputs_for(made, seed):
    shape = [one if isinstance(one, int) else 1 for one in made.get_inputs()[0].shape]
    return {"x": np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)}


def compare(path, made):
    """Returns the session's difference in steps of the output, and the correlation."""
    feed, step = inputs_for(made, 5), nets.output_scale(path)
    got, want = made.run(None, feed)[0], reference(path).run(None, feed)[0]
    assert len(np.unique(want)) > 2, "the data says nothing"
    return np.abs(got - want).max() / step, alike(got, want)


def case_units(folder):
    worst = {}
    for name, types, chip in share.of(itertools.product(nets.UNITS, nets.TYPES, CHIPS)):
        path = nets.quantized(nets.UNITS[name](), folder / "unit.onnx", types)
        made = session(path, {"device": chip, "per_channel": "exact", "partition": "all"})
        ours, _, others = placed(made)
        steps, _ = compare(path, made)
        worst[name, chip] = max(worst.get((name, chip), (0, 0))[0], steps), ours
        operations = sum("Linear" not in one.op_type for one in onnx.load(str(path)).graph.node)
        assert steps < operations + 0.01, f"{name} {types} {chip}: {steps:.2f} steps off after {operations} operations"
        if types == "u8" and chip not in LEFT.get(name, []):
            assert not others, f"{name} {types} {chip}: {others} stay with the host"
    assert sum(ours > 0 for _, ours in worst.values()) >= len(worst) * (1 - len(LEFT) / len(nets.UNITS)) / share.EVERY
    print(f"units: {len(worst)} on {len(CHIPS)} chips, at most {max(one for one, _ in worst.values()):.2f} steps off")


def case_networks(folder):
    kinds = [(nets.QDQ, types) for types in nets.TYPES] + [(nets.QOPERATOR, "u8i8")]
    for build, (form, types), chip in share.of(itertools.product((nets.mobilenet, nets.yolo, nets.lenet), kinds, CHIPS)):
        path = nets.quantized(build(), folder / "net.onnx", types, form)
        made = session(path, {"device": chip, **OPTIONS})
        ours, parts, others = placed(made)
        steps, correlation = compare(path, made)
        print(f"{build.__name__} {form} {types} {chip}: {ours} nodes in {parts} parts, left {others}, {steps:.1f} steps off, correlation {correlation:.5f}")
        assert ours > len(others) * 4, "most nodes are to be ours"
        assert parts <= 2, "parts"
        # Weights with a scale per channel are approximated on chips with one scale.
        if types != "i8_per_channel" or chip == "sim:rk3588":
            assert steps <= WHOLE_MAX and correlation >= CORRELATION_MIN, (steps, correlation)


def case_more_networks(folder):
    """Runs other kinds of networks on chips of all families; nodes that a chip does not take stay with the host."""
    kinds = [(nets.QDQ, "u8i8"), (nets.QDQ, "i8_per_channel"), (nets.QOPERATOR, "u8i8")]
    builds = (nets.densenet, nets.unet, nets.weighed_channels, nets.shuffled_channels, nets.transformer, nets.text_reader)
    worst = {}
    for build, (form, types), chip in share.of(itertools.product(builds, kinds, [*CHIPS, "sim:imx93", "sim:rk3576"])):
        path = nets.quantized(build(), folder / "net.onnx", types, form)
        made = session(path, {"device": chip, "per_channel": "exact", "partition": "all"})
        steps, correlation = compare(path, made)
        worst[build.__name__] = max(worst.get(build.__name__, 0), steps)
        assert placed(made)[0] > 0, f"{build.__name__} {form} {types} {chip}: nothing is ours"
        assert steps <= WHOLE_MAX and correlation >= CORRELATION_MIN, f"{build.__name__} {form} {types} {chip}: {steps:.1f} steps off, {correlation:.5f}"
    print(f"more networks: at most {({name: round(float(steps), 1) for name, steps in worst.items()})} steps off")


def case_whole(folder):
    """Runs whole networks, of which no node may stay with the host; then again from a model that contains their compiled parts."""
    stored = folder / "stored.onnx"
    for build, types, chip in share.of(itertools.product((nets.mobilenet, nets.resnet, nets.yolo), nets.TYPES, CHIPS)):
        path = nets.quantized(build(), folder / "net.onnx", types)
        made = session(path, {"device": chip, **OPTIONS}, **{"session.disable_cpu_ep_fallback": "1"})
        steps, correlation = compare(path, made)
        feed = inputs_for(made, 5)
        stored_model(path, stored, chip)
        again = session(stored, {"device": chip, **OPTIONS}, **{"session.disable_cpu_ep_fallback": "1"})
        assert np.array_equal(again.run(None, feed)[0], made.run(None, feed)[0]), f"{build.__name__} {types} {chip}: other numbers from the stored model"
        print(f"{build.__name__} {types} {chip}: {steps:.1f} steps off, correlation {correlation:.5f}")
        if types != "i8_per_channel" or chip == "sim:rk3588":
            assert steps <= WHOLE_MAX and correlation >= CORRELATION_MIN, (steps, correlation)


class OfHost(ctypes.Structure):
    _fields_ = [("get_api", ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32)), ("version", ctypes.CFUNCTYPE(ctypes.c_char_p))]


def case_too_old(_):
    """ONNX Runtime 1.22 cannot compile for plug-ins, and its Python cannot load one. Its C interface returns an error with a sentence."""
    library = environment.npm_library(ARGS.build / "npm", *environment.ONNXRUNTIME_1_22)
    if not library:
        return
    host, plugin = ctypes.CDLL(str(library)), ctypes.CDLL(ARGS.library)
    host.OrtGetApiBase.restype, plugin.CreateEpFactories.restype = ctypes.POINTER(OfHost), ctypes.c_void_p
    base = host.OrtGetApiBase()
    message = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(base[0].get_api(22)[2])
    factories, count = (ctypes.c_void_p * 4)(), ctypes.c_size_t(9)
    status = plugin.CreateEpFactories(b"skillet", base, None, factories, ctypes.c_size_t(4), ctypes.byref(count))
    assert status and count.value == 0
    said = message(status).decode()
    print(said)
    assert said.startswith(f"skillet: ONNX Runtime {base[0].version().decode()} cannot compile for plug-in providers; 1.23 or newer can"), said


def case_versions(_):
    """Tests the same library in other published runtimes."""
    for version, cases in OTHERS.items():
        package = "onnxruntime" if version == "newest" else f"onnxruntime=={version}"
        python, found = environment.virtual_environment(ARGS.build / f"onnx-venv{version}", [[package, *PACKAGES[1:]]])
        if not found:
            print(f"ONNX Runtime {version} is left out")
            continue
        command = [python, __file__, ARGS.library, ARGS.skillet, "--inside", "--build", str(ARGS.build), "--case", f"case_({cases})$"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(done.stdout, end="")
        assert done.returncode == 0 and done.stdout.count(": ok") == cases.count("|") + 1, done.stdout + done.stderr[-3000:]


def case_threads(folder):
    path = nets.quantized(nets.mobilenet(), folder / "net.onnx", "u8i8")
    sessions = [session(path, {"device": "sim:rk3588", **OPTIONS}) for _ in range(2)]
    feeds = [inputs_for(sessions[0], seed) for seed in range(4)]
    want = [sessions[0].run(None, feed)[0] for feed in feeds]
    wrong = []

    def work(seed):
        for made in sessions * 3:
            if not np.array_equal(made.run(None, feeds[seed])[0], want[seed]):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong and not np.array_equal(want[0], want[1])
    del sessions[0]
    assert np.array_equal(sessions[0].run(None, feeds[1])[0], want[1])


def failure(path, options):
    try:
        session(path, options)
    except Exception as failed:  # noqa: BLE001  the runtime has several classes
        return str(failed)
    return ""


def case_options(folder):
    path = nets.quantized(nets.mobilenet(), folder / "net.onnx", "u8i8")
    for options, claims in (({"device": "cpu"}, False), ({"device": "sim:nothing"}, False), ({"device": "sim-a311d", "tunning": "x"}, True),
                            ({"device": "sim:a311d", "min_nodes_per_partition": "999"}, False), ({}, False)):
        made = session(path, {"partition": "all", **options})
        assert (placed(made)[0] > 0) == claims, options
        made.run(None, inputs_for(made, 1))
    for options, text in (({"strict": "1", "device": "sim:a311d", "tunning": "x"}, "did you mean 'tuning'"),
                          ({"require_npu": "1", "device": "sim:nothing"}, "nothing"), ({"strict": "1", "device": "sim:a311d", "tuning": "?"}, "tuning")):
        assert text in failure(path, options), (options, failure(path, options))
    n = nets.Net()  # two parts, the second with more nodes
    path = nets.quantized(n.model(n.conv(n.conv(n.op("Softmax", n.conv("x", 3, 16, 3, 2), axis=1), 16, 16), 16, 8)), folder / "net.onnx", "u8i8")
    both, one = (placed(session(path, {"device": "sim:a311d", "max_delegated_partitions": most, **OPTIONS})) for most in ("0", "1"))
    assert (both[1], one[1]) == (2, 1) and one[0] * 2 > both[0], (both, one)


def case_asked_again(folder):
    """ONNX Runtime asks again with functions' bodies in the graph and our parts as nodes.
    Claims stay, and no message reports that nothing is claimed."""
    path, said = nets.quantized(nets.text_reader(), folder / "net.onnx", "u8"), []
    assert any(one.op_type == "HardSwish" for one in onnx.load(str(path)).graph.node), "no function is there"
    with stderr_of(said):
        made = session(path, {"device": "sim:rk3588", **OPTIONS}, severity=1)
    lines = [line.rsplit("skillet: ", 1)[1] for line in said[0].splitlines() if " ops claimed" in line]
    assert len(lines) == len(set(lines)) and "nothing is claimed" not in said[0] and placed(made)[1] > 1, lines


def said_of(path, stored, feeds, want, **entries):
    """Runs a session, which writes its compiled parts to STORED, or none. Checks its results and those of the written model. Returns the messages."""
    said = []
    with stderr_of(said):
        made = session(path, {"device": "sim:rk3588", **OPTIONS}, severity=1, **entries)
        stored = [session(stored, {"device": "sim:rk3588", **OPTIONS}, severity=1)] if stored and stored.exists() else []
    assert "already assigned" not in said[0], said[0]
    for one in [made, *stored]:
        for feed, right in zip(feeds, want):
            off = np.abs(one.run(None, feed)[0] - right).max() / nets.Convolutions.NUMBERS["s"]
            assert off <= (40 if stored or "nodes stay with the host" in said[0] else 1.01), off  # the host's fused kernels do not compute in float
    return [line.rsplit("skillet: ", 1)[1] for line in said[0].splitlines() if " skillet: " in line]


def case_asked_again_of_functions(folder):
    """ONNX Runtime asks about functions' nodes after others have claimed theirs: nodes that no provider has become ours."""
    x = {"x": np.random.default_rng(1).normal(0, 3, (1, 8, 12, 10)).astype(np.float32)}
    for beside, late, saves in itertools.product((False, True), ("0", "1"), (False, True)):
        path, stored = folder / "net.onnx", folder / "stored.onnx"
        onnx.save(nets.Convolutions().in_function(beside), path)
        stored.unlink(missing_ok=True)
        entries = {"ep.context_enable": "1", "ep.context_file_path": str(stored)} if saves else {}
        said = said_of(path, stored if saves else None, [x], [in_float(path).run(None, x)[0]], **{"session.disable_aot_function_inlining": late, **entries})
        assert stored.exists() == saves
        parts = sum("partition of " in line and "stored" not in line for line in said)
        after = [line for line in said if "writes no compiled parts after the first ones" in line]
        only_first = "confuses parts of several graphs"  # before 1.24
        if beside and late == "1":
            assert parts == (1 if saves or any(only_first in line for line in said) else 2) and len(after) <= 1, said
        else:
            assert parts >= 1 and not after, said


def case_graphs_inside(folder):
    """The operations in the branches of an If are claimed, whatever the surrounding graph contains.
    If compiled parts are written, they stay with the host."""
    x = np.random.default_rng(1).normal(0, 3, (1, 8, 12, 10)).astype(np.float32)
    feeds = [{"x": x, "which": np.array(one)} for one in (False, True)]
    for beside, outside, saves in itertools.product((False, True), (False, True), (False, True)):
        path, stored = folder / "net.onnx", folder / "stored.onnx"
        onnx.save(nets.Convolutions().in_branches(beside, outside), path)
        stored.unlink(missing_ok=True)
        want = [in_float(path).run(None, feed)[0] for feed in feeds]
        entries = {"ep.context_enable": "1", "ep.context_file_path": str(stored)} if saves else {}
        if saves:  # nothing is claimed, so the numbers are the host's
            want = [session(path, {"device": "cpu"}).run(None, feed)[0] for feed in feeds]
        said = said_of(path, stored if saves else None, feeds, want, **entries)
        parts = sum("partition of " in line for line in said)
        is_old = any("confuses parts of several graphs" in line for line in said)
        if saves:
            assert parts == 0 and any("writes no compiled parts of a model with graphs inside nodes" in line or is_old for line in said), said
        else:
            assert parts == (0 if is_old else 2) + beside, said
            assert is_old or not any("nothing is claimed" in line for line in said), said
    # A part before an If whose branches read it, and one after it, must not be merged: the If is between them.
    onnx.save(nets.Convolutions().around_branches(), path)
    said = said_of(path, None, feeds, [in_float(path).run(None, feed)[0] for feed in feeds])
    assert sum("partition of " in line for line in said) >= 2 and not any("cannot be fused" in line for line in said), said


def case_free_sizes(folder):
    path = nets.quantized(nets.mobilenet((None, 3, 32, 32)), folder / "free.onnx", "u8i8", batch=1)
    made = session(path, {"device": "sim:a311d", **OPTIONS})
    feed = {"x": np.random.default_rng(1).normal(0, 1, (1, 3, 32, 32)).astype(np.float32)}
    assert placed(made)[0] == 0, "sizes are not known"
    want = made.run(None, feed)[0]
    fixed = session(path, {"device": "sim:a311d", **OPTIONS}, {"d0": 1})
    assert placed(fixed)[0] > 50, placed(fixed)
    assert np.abs(fixed.run(None, feed)[0] - want).max() <= WHOLE_MAX * nets.output_scale(path)


def case_free_rank(folder):
    """A value of unknown rank is not taken for a single number."""
    from onnx import TensorProto, helper  # noqa: PLC0415
    numbers = {"s": np.float32(0.02), "z": np.uint8(128)}
    quantized = [helper.make_node(kind, [one, "s", "z"], [to]) for kind, one, to in (("QuantizeLinear", "x", "xq"), ("DequantizeLinear", "xq", "xd"),
                                                                                    ("QuantizeLinear", "f", "fq"), ("DequantizeLinear", "fq", "y"))]
    for kind in ("Sigmoid", "Relu"):
        graph = helper.make_graph([*quantized[:2], helper.make_node(kind, ["xd"], ["f"]), *quantized[2:]], "g",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                                  [onnx.numpy_helper.from_array(np.array(value), name) for name, value in numbers.items()])
        path = folder / "rank.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
        feed = {"x": np.random.default_rng(1).normal(0, 1, (1, 8, 6, 6)).astype(np.float32)}
        for chip in CHIPS:
            assert np.array_equal(session(path, {"device": chip, **OPTIONS}).run(None, feed)[0], reference(path).run(None, feed)[0]), f"{kind} {chip}"


def case_batches(folder):
    """Several images run one by one on the NPU, in parts that begin and end where the batch does."""
    for batch in (2, 4):
        path = nets.quantized(nets.mobilenet((batch, 3, 32, 32)), folder / "batch.onnx", "u8i8")
        for chip in CHIPS:
            made = session(path, {"device": chip, **OPTIONS})
            ours, parts, others = placed(made)
            steps, correlation = compare(path, made)
            print(f"batch of {batch} {chip}: {ours} nodes in {parts} parts, left {others}, {steps:.1f} steps off, correlation {correlation:.5f}")
            assert others == ["Flatten"] and parts == 2, (ours, parts, others)
            assert steps <= WHOLE_MAX and correlation >= CORRELATION_MIN, (steps, correlation)


def case_transposed(folder):
    """ConvTranspose with all attributes that define its size, and the operations that read it, match the CPU provider, whoever computes them."""
    from onnx import TensorProto, helper  # noqa: PLC0415
    image, rng = (5, 6), np.random.default_rng(int(os.environ.get("SEED", "32")))
    numbers = {"sx": np.float32(0.05), "zx": np.uint8(120), "sw": np.float32(0.01), "zw": np.int8(0), "sy": np.float32(0.3), "zy": np.uint8(128), "zr": np.uint8(0)}
    x, path, taken, left = rng.integers(0, 256, (1, 8, *image)).astype(np.uint8), folder / "transposed.onnx", 0, 0
    drawn = list(itertools.product(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"], [None, (0, 0), (1, 0), (1, 1)], [None, 0, 1], [None, (1, 1, 1, 1), (0, 1, 1, 0)],
                                   [1, 2, 3], [1, 2], [1, 2, 3, 4]))
    rng.shuffle(drawn)
    for at, (automatic, more, cut, pads, stride, dilation, kernel) in enumerate(drawn[:600]):
        full = [(size - 1) * stride + (kernel - 1) * dilation + 1 + plus for size, plus in zip(image, more or (0, 0))]
        # ONNX Runtime 1.32 refuses the others; older versions return uninitialized memory.
        if max(more or [0]) >= stride or (pads and (automatic != "NOTSET" or min(full) < 4)) or min(full) - (cut or 0) < 1:
            continue
        attributes = {"strides": [stride] * 2, "dilations": [dilation] * 2, "kernel_shape": [kernel] * 2, "auto_pad": automatic}
        attributes.update({name: value for name, value in (("output_padding", more), ("pads", pads)) if value})
        if cut is not None:
            attributes["output_shape"] = [one - cut for one in full]
        nodes = [helper.make_node(kind, from_, [to], **more_of) for kind, from_, to, more_of in (
            ("DequantizeLinear", ["x", "sx", "zx"], "xd", {}), ("DequantizeLinear", ["w", "sw", "zw"], "wd", {}),
            ("ConvTranspose", ["xd", "wd"], "c", attributes), ("QuantizeLinear", ["c", "sy", "zy"], "q", {}), ("DequantizeLinear", ["q", "sy", "zy"], "qd", {}),
            ("Sigmoid" if at % 2 else "LeakyRelu", ["qd"], "s", {}), ("QuantizeLinear", ["s", "sy", "zr"], "y", {}))]
        constants = {**numbers, "w": rng.integers(-100, 100, (8, 4, kernel, kernel)).astype(np.int8)}
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape)],
                                  [helper.make_tensor_value_info(name, TensorProto.UINT8, None) for name in "qy"],
                                  [onnx.numpy_helper.from_array(np.array(value), name) for name, value in constants.items()])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
        want = in_float(path).run(None, {"x": x})
        for chip in [*CHIPS, "sim:imx93", "sim:rk3576"]:
            made = session(path, {"device": chip, "per_channel": "exact", "partition": "all"})
            for got, right in zip(made.run(None, {"x": x}), want):
                off = np.abs(got.astype(int) - right).max() if got.shape == right.shape else f"of shape {got.shape}, not {right.shape}"
                assert off in (0, 1, 2), f"{chip} {attributes}: {off}"
            others = placed(made)[2]
            taken, left = taken + ("ConvTranspose" not in others), left + ("ConvTranspose" in others)
    print(f"transposed: {taken} taken, {left} left")
    assert taken > 20 and left > 20, (taken, left)



def case_random_graphs(folder):
    """Runs networks of 3 to 12 random operations: each unit is right for its inputs. SKILLET_RANDOM_GRAPHS=1000 sets their number (40)."""
    import onnx_random  # noqa: PLC0415
    count, first = (int(os.environ.get(name, otherwise)) for name, otherwise in (("SKILLET_RANDOM_GRAPHS", "40"), ("SKILLET_RANDOM_GRAPHS_FIRST", "0")))
    wrong, ours, nodes = [], 0, 0
    for seed in share.of(range(first, first + count)):
        said, mine, all_of_it = onnx_random.check(seed, folder, [*CHIPS, "sim:imx93", "sim:rk3576"])
        wrong, ours, nodes = wrong + said, ours + mine, nodes + all_of_it
    print(f"random graphs: {ours} of {nodes} nodes on 5 chips, {len(wrong)} wrong")
    assert not wrong, "; ".join(wrong[:20])
    assert ours * 2 > nodes, "most nodes are to be ours"

def case_averages(folder):
    """Average pools whose output steps are finer or coarser than the input's differ by at most one step, whoever computes them."""
    from onnx import TensorProto, helper  # noqa: PLC0415
    taken = 0
    for size, kernel, stride, pads in ((12, 3, 2, [0, 0, 0, 0]), (13, 3, 2, [1, 1, 1, 1]), (12, 3, 2, [0, 0, 1, 1]), (13, 2, 2, [0, 0, 1, 1]), (12, 3, 1, [1, 1, 1, 1])):
        for counts, step in ((0, 0.06), (0, 0.04), (0, 0.02), (1, 0.02)):
            numbers = {"sx": np.float32(0.05), "sy": np.float32(step), "zx": np.uint8(128), "zy": np.uint8(120)}
            pool = helper.make_node("QLinearAveragePool", ["x", "sx", "zx", "sy", "zy"], ["y"], domain="com.microsoft", kernel_shape=[kernel] * 2,
                                    strides=[stride] * 2, pads=pads, count_include_pad=counts)
            graph = helper.make_graph([pool], "g", [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 8, size, size])],
                                      [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
                                      [onnx.numpy_helper.from_array(np.array(value), name) for name, value in numbers.items()])
            path = folder / "average.onnx"
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=9), path)
            feed = {"x": np.random.default_rng(3).integers(0, 256, (1, 8, size, size), dtype=np.uint8)}
            want = reference(path).run(None, feed)[0].astype(int)
            made = session(path, {"device": "sim:rk3588", **OPTIONS})
            of_file = run_file(path, "cpu", feed)
            assert isinstance(of_file, dict), of_file
            taken += placed(made)[0]
            for who, got in (("provider", made.run(None, feed)[0]), ("file", of_file["y"])):
                off = np.abs(got.astype(int) - want).max()
                assert off <= 1, f"{who}: {kernel}x{kernel} by {stride}, pads {pads}, count_include_pad={counts}, steps of {step}: {off} steps off"
    assert taken >= 10, taken


@contextlib.contextmanager
def stderr_of(lines):
    """Collects what libraries write to stderr, too."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            lines.append(file.read().decode(errors="replace"))


def stored_model(path, stored, chip):
    """Returns the session that writes a model with its compiled parts in it."""
    stored.unlink(missing_ok=True)
    return session(path, {"device": chip, **OPTIONS}, **{"ep.context_enable": "1", "ep.context_embed_mode": "1", "ep.context_file_path": str(stored)})


def case_contexts_beside_others(folder):
    """Runs compiled parts whose results other nodes move and requantize: ONNX Runtime rewrites these nodes when it loads the model."""
    stored, parts = folder / "stored.onnx", 0
    for build in (nets.transformer, nets.text_reader, nets.yolo, nets.lenet):
        for types, form in (("u8i8", nets.QDQ), ("i8_per_channel", nets.QDQ), ("u8i8", nets.QOPERATOR)):
            path = nets.quantized(build(), folder / "net.onnx", types, form)
            for chip in CHIPS:
                made = stored_model(path, stored, chip)
                feed = inputs_for(made, 5)
                parts += sum(one.op_type == "EPContext" for one in onnx.load(str(stored)).graph.node)
                got = session(stored, {"device": chip, **OPTIONS}).run(None, feed)
                assert all(np.array_equal(one, two) for one, two in zip(got, made.run(None, feed))), f"{build.__name__} {types} {chip}"
    print(f"{parts} compiled parts loaded again")
    assert parts > 36, "not each of them has one part alone"


def case_context(folder):
    """Tests a model that contains its compiled parts.

    It has the same bytes twice, gives the same numbers, is compiled again for another chip and on a machine without an NPU, and is refused if
    damaged."""
    path, stored = nets.quantized(nets.yolo(), folder / "net.onnx", "u8i8"), folder / "stored.onnx"
    for chip, other in zip(CHIPS, [*CHIPS[1:], "cpu"]):
        made = stored_model(path, stored, chip)
        feed = inputs_for(made, 5)
        want = made.run(None, feed)
        model, first = onnx.load(str(stored)), stored.read_bytes()
        contexts = [one for one in model.graph.node if one.op_type == "EPContext"]
        assert contexts and len(model.graph.node) <= 4, [one.op_type for one in model.graph.node]
        stored_model(path, stored, chip)
        assert stored.read_bytes() == first, "other bytes the second time"
        once_more = folder / "once_more.onnx"
        stored_model(stored, once_more, chip)
        assert np.array_equal(session(once_more, {"device": chip, **OPTIONS}).run(None, feed)[0], want[0])
        for device, text in ((chip, "1 programs as stored"), (other, "runs on the CPU" if other == "cpu" else "is compiled again for " + other[4:])):
            said = []
            with stderr_of(said):
                again = session(stored, {"device": device, "log": "info", **OPTIONS})
                got = again.run(None, feed)
            assert text in said[0], said[0]
            for one, two in zip(got, want):
                near = np.abs(one - two).max() <= (0 if device == chip else WHOLE_MAX * nets.output_scale(path))
                assert near, (chip, device, np.abs(one - two).max())
        for options, text in (({"tuning": "tuned"}, "tuning=proven, not tuned"), ({"unproven": "take"}, None)):
            said = []
            with stderr_of(said):
                session(stored, {"device": chip, "log": "info", **OPTIONS, **options}, severity=2)
            again = re.findall(r"the compiled part '\S+': (\d+) of \1 programs? (?:is|are) not used but compiled again: it was compiled with (.*)", said[0])
            assert len(again) == bool(text) and all(text in one[1] for one in again), said[0]
            assert (" 0 programs as stored" in said[0]) == bool(text), said[0]
        attribute = next(one for one in contexts[0].attribute if one.name == "ep_cache_context")
        right = attribute.s
        for damaged, text in ((right[:-1] + bytes([right[-1] ^ 1]), "it is damaged"), (right[:-9], "it was cut off"), (b"of another", "not a compiled model"),
                              (right[:8] + b"\x63" + right[9:], "compile the model again")):
            attribute.s = damaged
            onnx.save(model, folder / "damaged.onnx")
            said = []
            with stderr_of(said):
                assert failure(folder / "damaged.onnx", {"device": chip, **OPTIONS}), "a damaged part runs"
            assert text in said[0] and "compiled part" in said[0], (text, said[0])
        attribute.s = right
        embedded = next(one for one in contexts[0].attribute if one.name == "embed_mode")
        for mode, named, text in ((0, b"net_skillet.bin", "net_skillet.bin: No such file"), (0, b"../net_skillet.bin", "not the name of a file beside the model"),
                                  (0, b"/etc/passwd", "not the name of a file beside the model"), (0, b"..", "not the name of a file beside the model"),
                                  (0, right, "not the name of a file beside the model"), (7, right, "its embed_mode is 7, neither 0 nor 1")):
            embedded.i, attribute.s = mode, named
            onnx.save(model, folder / "beside.onnx")
            said = []
            with stderr_of(said):
                assert failure(folder / "beside.onnx", {"device": chip, **OPTIONS}), "a part in another file runs"
            assert text in said[0] and len(said[0]) < 2000, (text, said[0][:2000])
        embedded.i, attribute.s = 1, right
        assert stated_by_inspect(stored) == [chip[4:]] * len(contexts)
        contexts[0].name = "another"  # as tools that join models do
        onnx.save(model, folder / "renamed.onnx")
        got = session(folder / "renamed.onnx", {"device": chip, **OPTIONS}).run(None, feed)
        assert all(np.array_equal(one, two) for one, two in zip(got, want)), "a renamed node computes something else"
        for foreign in ("notes", "partition_name"):  # attributes of another node
            one = next(one for one in contexts[0].attribute if one.name == foreign)
            right, one.s = one.s, b"0" * 32
            onnx.save(model, folder / "foreign.onnx")
            said = []
            with stderr_of(said):
                assert failure(folder / "foreign.onnx", {"device": chip, **OPTIONS}), "a part of another node runs"
            assert "differ from those its node was written with" in said[0], said[0]
            one.s = right


def case_context_beside(folder):
    """Tests compiled parts in files beside the model: written, and read after model and files were moved; damaged or missing files are refused."""
    path, stored = nets.quantized(nets.text_reader(), folder / "net.onnx", "u8i8"), folder / "stored.onnx"
    made = session(path, {"device": "sim:rk3588", **OPTIONS},
                   **{"ep.context_enable": "1", "ep.context_embed_mode": "0", "ep.context_file_path": str(stored)})
    feed = inputs_for(made, 5)
    want = made.run(None, feed)[0]
    model = onnx.load(str(stored))
    names = [one.s.decode() for node in model.graph.node if node.op_type == "EPContext" for one in node.attribute if one.name == "ep_cache_context"]
    assert len(names) > 1 and names == [f"stored_skillet_{i}.bin" for i in range(len(names))], names
    moved = folder / "moved"
    moved.mkdir()
    # A model with compiled parts is written once more to a folder where another model's parts have the same names.
    renamed = stored.rename(folder / "renamed.onnx")
    session(renamed, {"device": "sim:rk3588", **OPTIONS}, **{"ep.context_enable": "1", "ep.context_embed_mode": "0", "ep.context_file_path": str(stored)})
    for one in (stored, renamed):
        assert np.array_equal(session(one, {"device": "sim:rk3588", **OPTIONS}).run(None, feed)[0], want), one
    renamed.rename(stored)
    for name in [stored.name, *names]:
        (folder / name).rename(moved / name)
    said = []
    with stderr_of(said):
        again = session(moved / stored.name, {"device": "sim:rk3588", "log": "info", **OPTIONS})
    assert np.array_equal(again.run(None, feed)[0], want) and said[0].count("1 programs as stored") == len(names), said[0]
    right = (moved / names[0]).read_bytes()
    assert stated_by_inspect(moved / names[0]) == ["rk3588"]
    for wrong, text in ((right + b"x", "others follow it"), (right[:-1], "it was cut off"), ((moved / names[1]).read_bytes(), "its bytes differ from those"), (None, "No such file")):
        (moved / names[0]).write_bytes(wrong) if wrong is not None else (moved / names[0]).unlink()
        said = []
        with stderr_of(said):
            assert failure(moved / stored.name, {"device": "sim:rk3588", **OPTIONS}), text
        assert text in said[0], (text, said[0])
    said = []
    with stderr_of(said):
        assert failure((moved / stored.name).read_bytes(), {"device": "sim:rk3588", **OPTIONS}), "bytes have no place"
    assert "load the model by its path" in said[0], said[0]
    # A compiler that returns bytes has no path, so it cannot write files beside the model.
    options, before, said = ort.SessionOptions(), sorted(folder.iterdir()), []
    options.add_provider_for_devices([one for one in ort.get_ep_devices() if one.ep_name == NAME][:1], {"device": "sim:rk3588", **OPTIONS})
    options.log_severity_level = 2
    with stderr_of(said):
        given = ort.ModelCompiler(options, str(path), embed_compiled_data_into_model=False).compile_to_bytes()
    assert sorted(folder.iterdir()) == before and "names no output file: the compiled parts are in the model" in said[0], said
    assert np.array_equal(session(given, {"device": "sim:rk3588", **OPTIONS}).run(None, feed)[0], want)
    beside = session(path, {"device": "sim:rk3588", **OPTIONS}, **{"ep.context_enable": "1", "ep.context_embed_mode": "0"})  # named by the host
    assert np.array_equal(beside.run(None, feed)[0], want) and (folder / "net_ctx_skillet_0.bin").exists(), list(folder.iterdir())


def case_compiler_files(folder):
    """Tests ONNX Runtime's ModelCompiler: relative paths, no path, missing folders; weights in files beside the model."""
    here = Path.cwd()
    try:
        for embeds in (True, False):
            place = folder / str(embeds)
            (place / "sub").mkdir(parents=True)
            os.chdir(place)
            nets.quantized(nets.mobilenet(), place / "net.onnx", "u8i8")
            onnx.save(onnx.load("net.onnx"), "apart.onnx", save_as_external_data=True, location="weights.bin", size_threshold=16)
            want = (made := session("net.onnx", {"device": "sim:rk3588", **OPTIONS})).run(None, feed := inputs_for(made, 5))[0]

            def compiled(to, model="net.onnx", **more):
                so = ort.SessionOptions()
                so.log_severity_level = 3
                so.add_provider_for_devices([one for one in ort.get_ep_devices() if one.ep_name == NAME][:1], {"device": "sim:rk3588", **OPTIONS})
                compiler = ort.ModelCompiler(so, model, embed_compiled_data_into_model=embeds, **more)
                compiler._model_compiler.compile_to_file(to)  # called directly, because the public function passes None on and this one refuses it

            rows = [("out.onnx", "net.onnx", {}), ("sub/out.onnx", "net.onnx", {}), (str(place / "whole.onnx"), "apart.onnx", {}),
                    ("given.onnx", Path("net.onnx").read_bytes(), {}),
                    ("init.onnx", "net.onnx", {"external_initializers_file_path": "init.bin", "external_initializers_size_threshold": 16})]
            for to, model, more in [*rows, rows[0]]:
                compiled(to, model, **more)
                beside = [one.name for one in Path(to).parent.glob(f"{Path(to).stem}_skillet_*.bin")]
                assert beside == ([] if embeds else [f"{Path(to).stem}_skillet_0.bin"]), (to, beside)
                assert np.array_equal(session(to, {"device": "sim:rk3588", **OPTIONS}).run(None, feed)[0], want), to
            try:
                compiled("")
                assert np.array_equal(session("net_ctx.onnx", {"device": "sim:rk3588", **OPTIONS}).run(None, feed)[0], want)
            except Exception as failed:  # noqa: BLE001  newer versions require a path
                assert "path must not be empty" in str(failed), failed
            for to in ("nothing/out.onnx", "/proc/out.onnx"):
                try:
                    compiled(to)
                    raise AssertionError(to)
                except Exception as failed:  # noqa: BLE001  the runtime has several exception classes
                    assert re.search(rf"{Path(to).parent}/out\S*.*No such file or directory", str(failed)), failed
    finally:
        os.chdir(here)


def stated_by_inspect(path):
    shown = subprocess.run([ARGS.skillet, "inspect", str(path), "--json"], capture_output=True, text=True, check=True)
    return [one["programs"][0]["chip"] for one in json.loads(shown.stdout)["models"]]


def run_file(path, device, feed):
    """Returns the outputs of `skillet run` for the file by name, or the last line of its error."""
    np.savez(f"{path}.in.npz", **feed)
    command = [ARGS.skillet, "run", str(path), "--device", device, "--input", f"{path}.in.npz", "--output", f"{path}.out.npz"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, env={**os.environ, "SKILLET_PARTITION": "all"})
    assert done.returncode in (0, 1, 2), f"{path.name} {device}: {done.returncode} {done.stderr}"
    return dict(np.load(f"{path}.out.npz")) if done.returncode == 0 else done.stderr.strip().rsplit("\n", 1)[-1]


def case_files(folder):
    """Runs the same files, and more networks, with the command."""
    networks = {one.__name__: one for one in (nets.mobilenet, nets.resnet, nets.yolo, nets.lenet, nets.transformer, nets.text_reader)}
    for name, build in {**nets.UNITS, **networks}.items():
        worst, least = 0, 1
        forms = [(types, nets.QDQ) for types in (nets.TYPES if name in networks else ["u8", "i8_per_channel"])] + ([("u8i8", nets.QOPERATOR)] if name in networks else [])
        for types, form in forms:
            path = nets.quantized(build(), folder / f"{name}.onnx", types, form)
            made = reference(path)
            feed = inputs_for(made, 5)
            want = made.run(None, feed)[0]
            assert len(np.unique(want)) > 2, "the data says nothing"
            operations = sum("Linear" not in one.op_type or one.op_type.startswith("QLinear") for one in onnx.load(str(path)).graph.node)
            for device in ["cpu", *CHIPS] if name in networks or types == "u8" else ["cpu"]:
                got = run_file(path, device, feed)
                assert isinstance(got, dict), f"{name} {types} {device}: {got}"
                got = next(iter(got.values()))
                assert got.shape == want.shape, f"{name}: {got.shape}"
                worst = max(worst, np.abs(got - want).max() / nets.output_scale(path))
                least = min(least, alike(got, want))
                assert worst < min(operations, WHOLE_MAX) + 1.01 and least > CORRELATION_MIN, f"{name} {types} {device}: {worst:.2f} steps off, {least:.5f}"
        print(f"file {name}: at most {worst:.2f} steps off, correlation {least:.5f}")


def case_files_of_onnx(folder):
    """Runs every fourth node case of the package onnx with supported operations: right, or refused."""
    from onnx.backend.test.case.node import collect_testcases  # noqa: PLC0415
    ours = set(re.findall(r"[A-Z]\w+", (ROOT / "docs/onnx.md").read_text() + (ROOT / "docs/onnxruntime.md").read_text()))
    with np.errstate(all="ignore"):
        all_cases = collect_testcases(None)
    cases = [one for one in all_cases if all(node.op_type in ours for node in one.model.graph.node)][::4]
    right = refused = 0
    for case in cases:
        inputs, outputs = case.data_sets[0]
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        given = dict(zip([one.name for one in model.graph.input], inputs))
        if not all(isinstance(one, np.ndarray) and one.dtype.kind in "fiub" for one in [*inputs, *outputs]):
            continue
        for name in list(given)[1:]:  # as exporters write them
            model.graph.initializer.append(onnx.numpy_helper.from_array(given.pop(name), name))
        path = folder / f"{case.name}.onnx"
        onnx.save(model, path)
        got = run_file(path, "cpu", given)
        if isinstance(got, str):
            refused += 1
            continue
        right += 1
        for value, want in zip(model.graph.output, outputs):
            made = got[value.name]
            assert (made.shape, made.dtype) == (want.shape, want.dtype), case.name
            near = np.allclose(made, want, rtol=max(case.rtol, 1e-4), atol=max(case.atol, 1e-5), equal_nan=True)
            assert near if want.dtype.kind == "f" else np.abs(made.astype(int) - want.astype(int)).max(initial=0) <= (want.dtype.itemsize == 1), case.name
    print(f"node cases of onnx as files: {right} right, {refused} refused, none wrong")
    assert right > 60, right


WEIGHTED = {"Conv", "ConvTranspose", "Gemm", "MatMul"}
NODE_CASES_MIN = 300
LOADED_MIN = 400
NEWEST_OPSET = 24


def quantized_case(case, ours, path):
    """Writes the node case with all supported operations quantized to 8 bits and weights as constants.
    Returns its inputs, or None for cases that are not float."""
    inputs, outputs = ([np.asarray(one) if isinstance(one, np.generic) else one for one in side] for side in case.data_sets[0])
    if not inputs or not all(isinstance(one, np.ndarray) for one in [*inputs, *outputs]) or inputs[0].dtype != np.float32:
        return None
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    given = dict(zip([one.name for one in model.graph.input], inputs))
    for name in list(given)[1:]:
        weighted = any(name in node.input and node.op_type in WEIGHTED for node in model.graph.node)
        if weighted or given[name].dtype != np.float32 or given[name].ndim < 2:
            model.graph.initializer.append(onnx.numpy_helper.from_array(given.pop(name), name))
    kept = [one for one in model.graph.input if one.name in given]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.ir_version = min(model.ir_version, 10)
    for one in model.opset_import:  # the newest that this runtime supports
        one.version = min(one.version, NEWEST_OPSET)
    operators = sorted({node.op_type for node in model.graph.node} & ours)
    try:
        nets.quantize(model, path, [given], operators)
    except Exception:  # noqa: BLE001  the quantizer has its own limits
        return None
    return given


def steps_off(names, got, want, scales):
    """Returns the largest difference of outputs with a scale, in steps."""
    return max((np.abs(one.astype(np.float64) - other).max(initial=0) / scales[name] for name, one, other in zip(names, got, want) if name in scales), default=0)


def node_cases():
    """Returns the supported operations, and the node cases of the package onnx that have some."""
    from onnx.backend.test.case.node import collect_testcases  # noqa: PLC0415
    ours = set(re.findall(r"[A-Z]\w+", (ROOT / "docs/onnxruntime.md").read_text().split("| taken,")[1].split("What a chip takes")[0]))
    with np.errstate(all="ignore"):
        return ours, share.of(one for one in collect_testcases(None) if any(node.op_type in ours for node in one.model.graph.node))


def case_as_they_are(_):
    """Runs the node cases of the package onnx unchanged: float, or types that no NPU takes. Results with and without the provider are equal."""
    loaded, ours = 0, 0
    for case in node_cases()[1]:
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        model.ir_version = min(model.ir_version, 10)
        given = dict(zip([one.name for one in model.graph.input], case.data_sets[0][0]))
        try:
            alone = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            want = alone.run(None, given)
        except Exception:  # noqa: BLE001  types for which the runtime has no kernel
            continue
        made = session(model.SerializeToString(), {"device": "sim:rk3588", **OPTIONS})
        loaded += 1
        ours += placed(made)[0] > 0
        for one, other in zip(made.run(None, given), want):
            assert (one == other if not isinstance(one, np.ndarray) else one.dtype == other.dtype and one.tobytes() == other.tobytes()), case.name
    print(f"node cases of onnx {onnx.__version__} as they are, ONNX Runtime {ort.__version__}: {loaded} load, {ours} have a part on the NPU")
    assert loaded >= LOADED_MIN // share.EVERY, loaded


def case_node_cases(folder):
    """Runs the quantized node cases of the package onnx with supported operations. Counts those with a part on an NPU, which must be right."""
    ours, cases = node_cases()
    path, taken, left, of_host, worst = folder / "case.onnx", [], 0, [], []
    for case in cases:
        given = quantized_case(case, ours, path)
        try:
            of_cpu = reference(path) if given else None
            made = of_cpu and next((one for one in (session(path, {"device": chip, **OPTIONS}) for chip in ("sim:rk3588", "sim:a311d")) if placed(one)[0]), None)
        except Exception as failed:  # noqa: BLE001  newer versions than this runtime's, or wrong on purpose
            assert "skillet" not in str(failed).lower(), failed
            of_cpu = None
        if not of_cpu:
            continue
        if not made:
            left += 1
            continue
        taken.append(case.name)
        operations = sum("Linear" not in one.op_type for one in onnx.load(str(path)).graph.node)
        scales, want = nets.output_scales(path), of_cpu.run(None, given)
        names = [one.name for one in made.get_outputs()]
        off = steps_off(names, made.run(None, given), want, scales) / operations
        # The host's results for other operations are its own: its softmax of uint8 is wrong (1.24.4, optimisation "extended").
        if off > 1.01 and steps_off(names, ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, given), want, scales) > operations:
            of_host.append(case.name)
        else:
            worst.append((off, case.name))
    print(f"node cases of onnx, quantized: {len(taken)} have a part on the NPU, {left} have none; the host alone is wrong in {of_host}")
    print(f"steps off, by operation: {sorted(worst)[-6:]}")
    assert max(worst)[0] <= 1.01, sorted(worst)[-20:]
    assert len(taken) >= NODE_CASES_MIN // share.EVERY, taken


DEAD = r"""
import sys
import numpy as np
import onnxruntime as ort
library, path = sys.argv[1:]
ort.set_default_logger_severity(3)
ort.register_execution_provider_library("skillet", library)
so = ort.SessionOptions()
so.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
# What is left to the host is computed in float: its own sums of uint8 by int8 saturate on processors without VNNI.
so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
so.add_provider_for_devices([one for one in ort.get_ep_devices() if one.ep_name == "SkilletExecutionProvider"][:1], {"partition": "all"})
made = ort.InferenceSession(path, so)
nodes = sum(len(one.get_nodes()) for one in made.get_provider_graph_assignment_info() if one.ep_name == "SkilletExecutionProvider")
x = np.random.default_rng(5).normal(0, 1, (1, 3, 32, 32)).astype(np.float32)
answers = [made.run(None, {"x": x})[0] for _ in range(3)]
print([one.device.type.name for one in ort.get_ep_devices() if one.ep_name == "SkilletExecutionProvider"], nodes)
np.save(path + ".npy", np.stack(answers))
"""


def case_faults(folder):
    """Makes a board's kernel driver fail: each call always, and from some place on; jobs that are lost. Answers are right, or there is an error."""
    path = nets.quantized(nets.mobilenet(), folder / "net.onnx", "u8i8")
    made = reference(path)
    want, step = made.run(None, inputs_for(made, 5))[0], nets.output_scale(path)

    def run(before, settings):
        Path(f"{path}.npy").unlink(missing_ok=True)
        done = subprocess.run([*before, sys.executable, "-c", DEAD, ARGS.library, str(path)], capture_output=True, text=True, check=False,
                              env={**os.environ, **settings})
        assert done.returncode in (0, 1), (before, done.returncode, done.stderr[-800:])
        if "--fail" not in before:
            assert "'NPU'" in done.stdout and not done.stdout.strip().endswith(" 0"), done.stdout
        return (np.load(f"{path}.npy") if done.returncode == 0 else None), done.stdout + done.stderr

    for chip in fault_rows.CALLS:
        fault_rows.check("ONNX Runtime", ARGS.skillet, chip, run, lambda got: np.abs(got - want).max() <= WHOLE_MAX * step)


def conformance(folder, provider, *words):
    """Runs skillet.conformance with a provider. Without a TensorFlow Lite runtime, Skillet's CPU kernels compute the expected results."""
    command = [sys.executable, "-m", "skillet.conformance", "--onnx-ep", provider, *words, "--jobs", "2", "--json", "-o", str(folder / "out")]
    environment_of_it = {**os.environ, "PYTHONPATH": str(ROOT / "src/frontend/python"),
                         "SKILLET_C_LIBRARY": str(Path(ARGS.library).parents[1] / "c_api/libskillet_c.so.0")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment_of_it)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def case_host_time(folder):
    """Measures host time against a provider that does nothing, on a device that computes nothing: 3072 floats in, 10 out."""
    nothing = folder / "libnothing.so"
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-fPIC", "-shared", "-Wno-missing-field-initializers", f"-I{ROOT / 'src'}",
                    str(ROOT / "tests/integration/onnxruntime_nothing.cpp"), "-o", str(nothing)], check=True)
    ort.register_execution_provider_library("nothing", str(nothing))
    path = nets.quantized(nets.mobilenet(), folder / "net.onnx", "u8")
    image, scores = (ort.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32)) for shape in (nets.INPUT, (1, 10)))

    def made(name, options):
        so = ort.SessionOptions()
        so.intra_op_num_threads = 1
        so.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        so.add_provider_for_devices([one for one in ort.get_ep_devices() if one.ep_name == name][:1], options)
        one = ort.InferenceSession(str(path), so, enable_fallback=0)
        binding = one.io_binding()
        binding.bind_ortvalue_input("x", image)
        binding.bind_ortvalue_output(one.get_outputs()[0].name, scores)
        return lambda: one.run_with_iobinding(binding)

    def timed(run, count=2000):
        start = time.process_time_ns()
        for _ in range(count):
            run()
        return (time.process_time_ns() - start) / count / 1000

    ours, theirs = made(NAME, {"device": "null:a311d", **OPTIONS}), made("NothingExecutionProvider", {})
    above = statistics.median(timed(ours) - timed(theirs) for _ in range(7))
    print(f"host time: {above:.1f} us of CPU time a run above a provider that does nothing (the aim: 10 us)")


def case_conformance(folder):
    """Runs the models of the suite as ONNX files: the runtime's own kernels agree with TensorFlow Lite's, and so does the provider."""
    sys.path.insert(0, str(ROOT / "src/frontend/python"))
    from skillet.conformance._cases import build, ops_suite
    from skillet.conformance._onnx import NoForm, Writer
    forms = 0
    for name in ops_suite()[::7]:
        try:
            made = onnx.load_from_string(Writer(build(name).graph).file())
        except NoForm:
            continue
        onnx.checker.check_model(made, full_check=True)
        forms += 1
    assert forms > 150, forms
    # int8 softmax, depth_to_space and resize_bilinear of ONNX Runtime 1.24 are wrong or missing.
    code, report, err = conformance(folder, "CPUExecutionProvider", "--fraction", "1/9", "--only", "u8")
    statuses = {one["name"]: one["status"] for one in report["cases"]}
    assert {one for one, status in statuses.items() if status not in ("Pass", "Skip")} <= {"softmax/u8/8x8/c1"}, (code, err)
    assert sum(status == "Pass" for status in statuses.values()) > 80, statuses
    code, report, err = conformance(folder / "ours", ARGS.library, "--option", "device=sim:rk3588", "--option", "partition=all", "--fraction", "1/20")
    statuses = [one["status"] for one in report["cases"]]
    assert code == 0 and statuses.count("Pass") > 40, (code, err, statuses)
    code, _, err = conformance(folder / "none", ARGS.library, "--option", "device=sim:rk3588", "--case", "tile/u8/8x8/c16")
    assert code == 1 and "nothing was tested" in err, (code, err)
    code, _, err = conformance(folder / "wrong", ARGS.library, "--option", "device=sim:nothing", "--case", "relu/u8/8x8/c16")
    assert code == 1 and "no chip 'nothing'" in err, (code, err)
    code, _, err = conformance(folder / "no", "NoSuchProvider")
    assert code == 2 and "is none of" in err, (code, err)


def main():
    global ARGS, EXACT_SUMS, NAME, alike, in_float, nets, np, onnx, ort, placed, session  # noqa: PLW0603  they are there in the virtual environment only
    parser = parser_of_cases(ROOT / "build")
    parser.add_argument("--version", default="")
    ARGS = parser.parse_args()
    if not ARGS.inside:
        packages = [f"onnxruntime=={ARGS.version}" if ARGS.version else PACKAGES[0], *PACKAGES[1:]]
        python, found = environment.virtual_environment(ARGS.build / f"onnx-venv{ARGS.version}", [packages])
        if not found:
            print("onnxruntime: left out, PyPI gives no onnxruntime here")
            return 77
        return subprocess.run([python, __file__, *sys.argv[1:], "--inside"], check=False).returncode
    import numpy as np
    import onnx
    import onnxruntime as ort

    import onnx_nets as nets
    from onnx_sessions import EXACT_SUMS, NAME, alike, in_float, placed, session

    os.environ.pop("SKILLET_DEVICE", None)
    ort.set_default_logger_severity(3)
    ort.register_execution_provider_library("skillet", ARGS.library)
    return run_cases(globals(), ARGS.case)


if __name__ == "__main__":
    sys.exit(main())
