#!/usr/bin/env python3
"""Runs Skillet's provider beside Qualcomm's QNN with the HTP simulator of its wheel (x86-64): the same networks in the same ONNX Runtime.
Prints, for each, how many nodes are on the NPU and in how many parts, the difference from ONNX Runtime's CPU in steps, and whether a
model with its compiled parts (EPContext) gives the same numbers again.

usage: onnxruntime_qnn_test.py LIBRARY SKILLET [--build DIR] [--case REGEX]     exit code 77: PyPI has no onnxruntime-qnn for this machine

Required of Skillet: convolutional networks are one part, except for LEFT; its difference exceeds QNN's by at most one step.
"""
import subprocess
import sys
from pathlib import Path

import environment
from run_cases import parser_of_cases, run_cases

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ["onnxruntime==1.24.4", "onnxruntime-qnn==2.7.0", "onnx", "numpy"]
# Without the architecture, large networks fail with MEM_ALLOC.
PROVIDERS = {"qnn": {"backend_type": "htp", "soc_model": "57", "htp_arch": "75"},
             "SkilletExecutionProvider": {"device": "sim:rk3588", "partition": "all"}}


BORDER = {"QuantizeLinear", "DequantizeLinear"}
# Operations that no chip takes by itself, by network. For a transformer block, and where the quantizer leaves HardSwish in float, only numbers are
# compared.
LEFT = {"lenet": {"Softmax"}, "text_reader": None, "transformer": None}


def measured(path, name, folder):
    made, stored = session(path, PROVIDERS[name], provider=name), folder / f"{name}.onnx"
    feed = {"x": np.random.default_rng(5).normal(0, 1, made.get_inputs()[0].shape).astype(np.float32)}
    want = in_float(path).run(None, feed)[0]
    assert len(np.unique(want)) > 2, "the data says nothing"
    got = made.run(None, feed)[0]
    stored.unlink(missing_ok=True)
    # Compared with the session that writes it, which leaves the same nodes to the host.
    writer = session(path, PROVIDERS[name], provider=name, **{"ep.context_enable": "1", "ep.context_embed_mode": "1", "ep.context_file_path": str(stored)})
    nodes = [one.op_type for one in onnx.load(str(stored)).graph.node]
    is_same = np.array_equal(session(stored, PROVIDERS[name], provider=name).run(None, feed)[0], writer.run(None, feed)[0])
    ours, parts, others = placed(made, name)
    return {"nodes": ours, "parts": parts, "others": sorted({*others} - BORDER), "off": np.abs(got - want).max() / nets.output_scale(path),
            "alike": alike(got, want), "contexts": nodes.count("EPContext"), "is_same": is_same}


def case_beside_qnn(folder):
    for build in (nets.mobilenet, nets.resnet, nets.yolo, nets.lenet, nets.transformer, nets.text_reader):
        for types in nets.TYPES:
            path = nets.quantized(build(), folder / "net.onnx", types)
            theirs, ours = (measured(path, name, folder) for name in PROVIDERS)
            for who, one in (("QNN", theirs), ("Skillet", ours)):
                again = "the same numbers" if one["is_same"] else "other numbers"
                print(f"{build.__name__} {types} {who}: {one['nodes']} nodes in {one['parts']} parts, left {', '.join(one['others']) or 'nothing'}, {one['off']:.1f} steps off, "
                      f"correlation {one['alike']:.5f}, {one['contexts']} EPContext, {again}")
            assert ours["is_same"] and ours["contexts"] == ours["parts"], ours
            left = LEFT.get(build.__name__, set())
            assert left is None or (set(ours["others"]) <= left and ours["parts"] == 1), ours
            assert ours["off"] < theirs["off"] + 1.01, (theirs, ours)


def main():
    global alike, in_float, nets, np, onnx, placed, session  # noqa: PLW0603  they are there in the virtual environment only
    args = parser_of_cases(ROOT / "build").parse_args()
    if not args.inside:
        python, found = environment.virtual_environment(args.build / "onnx-qnn-venv", [PACKAGES])
        if not found:
            return 77
        return subprocess.run([python, __file__, *sys.argv[1:], "--inside"], check=False).returncode
    import numpy as np
    import onnx
    import onnxruntime as ort
    import onnxruntime_qnn

    import onnx_nets as nets
    from onnx_sessions import alike, in_float, placed, session

    ort.set_default_logger_severity(3)
    for name, library in (("qnn", onnxruntime_qnn.get_library_path()), ("skillet", args.library)):
        ort.register_execution_provider_library(name, library)
    return run_cases(globals(), args.case)


if __name__ == "__main__":
    sys.exit(main())
