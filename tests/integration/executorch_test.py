#!/usr/bin/env python3
"""Tests ExecuTorch with Skillet's back end: its C++ half in the published runtime; with PyTorch, networks from PT2E to a run of the .pte file.

usage: executorch_test.py C_LIBRARY COMMAND [--with-torch] [--case REGEX]

Without PyTorch (5 GB) the cases that need it are left out; --with-torch installs it once, for this and later runs.
"""
import contextlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import environment  # noqa: E402
import fault_rows  # noqa: E402
from run_cases import parser_of_cases, run_cases  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
ONNX = ROOT / "tests/models/onnx"
RUNTIME = ["executorch==1.5.1"]  # without dependencies, which the runtime does not need
TORCH = ["torch==2.13.0", "torchao==0.18.0", "numpy", "flatbuffers", "ruamel.yaml", "pyyaml", "tabulate", "parameterized", "expecttest", "hypothesis",
         "pandas", "sympy", "packaging", "py-cpuinfo"]
DEVICES = ["sim:a311d", "sim:imx8mp", "sim:rk3588", "sim:imx93", "cpu"]


def run(*command, code=0, **settings):
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, check=False, env={**os.environ, **settings})
    assert done.returncode == code, f"{command}: exit code {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def built(folder):
    """Builds the back end, and a program that calls it as the runtime does."""
    backend, calls = folder / "libskillet_executorch.so", folder / "calls"
    native.build_backend(backend)
    theirs = native.executorch_folder() / "lib"
    run(os.environ.get("CXX", "c++"), *native.compile_flags(), ROOT / "tests/integration/executorch_calls.cpp", "-o", calls, f"-L{theirs}",
        f"-Wl,-rpath,{theirs}", "-lexecutorch", "-ldl")
    return backend, calls


def case_calls(folder):
    """Runs a compiled model on each device as the command does. Other, damaged and wrongly sized inputs give a sentence of error."""
    backend, calls = built(folder)
    here = f"import os; os.chdir({str(folder)!r}); from skillet.executorch import load_backend; load_backend({backend.name!r})"
    run(sys.executable, "-c", here)  # as in the documentation
    for call, settings, sentence in ((f"load_backend({ARGS.library!r})", {}, "is not Skillet's back end for ExecuTorch"),
                                     ("load_backend('nothing.so')", {}, "the back end is not loaded: "),
                                     ("load_backend()", {"CXX": "no-compiler"}, "there is no compiler 'no-compiler'")):
        assert sentence in run(sys.executable, "-c", f"from skillet.executorch import load_backend; {call}", code=1, **settings).splitlines()[-1], call
    part, picture, output = folder / "part", folder / "in.bin", folder / "out.bin"
    run(ARGS.skillet, "compile", ONNX / "mobilenet.onnx", "--device", "a311d,imx8mp,rk3588,imx93", "--partition", "all", "-o", part)
    x = np.load(ONNX / "mobilenet_in.npz")["x"]
    x.tofile(picture)

    def call(blob, sizes="1x3x16x16", code=0, device="sim:a311d", outputs="1x10"):
        return run(calls, backend, blob, picture, output, sizes, outputs, code=code, SKILLET_DEVICE=device, SKILLET_PARTITION="all")

    for device in DEVICES:
        said = call(part, device=device)
        run(ARGS.skillet, "run", part, "--device", device, "--partition", "all", "--input", ONNX / "mobilenet_in.npz", "--output", folder / "want.npz")
        want = next(iter(np.load(folder / "want.npz").values()))
        assert np.array_equal(np.fromfile(output, np.float32).reshape(want.shape), want), (device, said)
    assert "is compiled again for s905d3" in call(part, device="sim:s905d3"), "which chip"
    assert "SKILLET_DEVICE: " in call(part, device="sim:nothing", code=1)
    data = part.read_bytes()
    run(ARGS.skillet, "run", ONNX / "mobilenet.onnx", "--device", "sim:a311d", "--partition", "all", "--random", "3", "--cache-dir", folder / "cache")
    for name, bad, sentence in (("cut", data[:1000], "the compiled part is refused: "), ("longer", data + b"x", "others follow it"), ("damaged", data[:-1] + bytes([data[-1] ^ 1]), "its checksum does not match"),
                                ("foreign", b"XNN" + data[3:], "the compiled part is refused: "),
                                ("programs alone", next((folder / "cache").iterdir()).read_bytes(), "the compiled part is refused: "),
                                ("later", data[:8] + bytes([data[8] + 1]) + data[9:], "the compiled part is refused: ")):
        (folder / name).write_bytes(bad)
        said = call(folder / name, code=1)
        assert sentence in said and "error 0x30" in said, (name, said)
        print(f"{name}: {said.splitlines()[0]}")
    assert "argument 0 is not the compiled part's tensor 'x'" in call(part, "1x16x16x3", code=1)
    assert "argument 1 is not" in call(part, outputs="10", code=1)


def case_faults(folder):
    """Makes a board's kernel driver fail: the CPU answers, or there is an error."""
    backend, calls = built(folder)
    part, picture, output = folder / "part", folder / "in.bin", folder / "out.bin"
    run(ARGS.skillet, "compile", ONNX / "mobilenet.onnx", "--device", ",".join(fault_rows.CALLS), "--partition", "all", "-o", part)
    np.load(ONNX / "mobilenet_in.npz")["x"].tofile(picture)

    def computed(before, settings):
        output.unlink(missing_ok=True)
        done = subprocess.run([*before, calls, backend, part, picture, output, "1x3x16x16", "1x10"], capture_output=True, text=True, check=False,
                              env={**os.environ, "SKILLET_PARTITION": "all", **settings})
        assert done.returncode in (0, 1), (before, done.returncode, done.stderr[-800:])
        return (output.read_bytes() if done.returncode == 0 else None), done.stdout + done.stderr

    of_cpu, _ = computed([], {"SKILLET_DEVICE": "cpu"})
    for chip in fault_rows.CALLS:
        of_npu, _ = computed([], {"SKILLET_DEVICE": f"sim:{chip}"})
        fault_rows.check("ExecuTorch", ARGS.skillet, chip, computed, lambda got: got in (of_npu, of_cpu))


# ---- with PyTorch ----------------------------------------------------------------------------------------------

def network():
    """Returns a network like MobileNet: inverted residuals, a mean, a dense layer; a float softmax, which stays with ExecuTorch."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.is_residual, wide = stride == 1 and inputs == outputs, inputs * 4
            self.layers = nn.Sequential(nn.Conv2d(inputs, wide, 1), nn.ReLU6(), nn.Conv2d(wide, wide, 3, stride, 1, groups=wide), nn.ReLU6(),
                                        nn.Conv2d(wide, outputs, 1))

        def forward(self, x):
            return x + self.layers(x) if self.is_residual else self.layers(x)

    torch.manual_seed(1)
    body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), Block(16, 16, 1), Block(16, 24, 2), Block(24, 24, 1),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10))
    for one in body.modules():
        if isinstance(one, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(one.weight)
    return body.eval()


def quantized(net, example, per_channel):
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    prepared = prepare_pt2e(torch.export.export(net, example).module(),
                            XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=per_channel)))
    for _ in range(8):
        prepared(*(torch.randn_like(one) for one in example))
    return torch.export.export(convert_pt2e(prepared), example)


def lowered(program, devices, options=("--partition", "all")):
    from executorch.exir import to_edge_transform_and_lower
    from skillet.executorch import SkilletPartitioner
    partitioner = SkilletPartitioner(devices, list(options))
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    kinds = [node.target.name() for node in edge.exported_program().graph.nodes if node.op == "call_function" and hasattr(node.target, "name")]
    return edge.to_executorch().buffer if "executorch_call_delegate" in kinds else b"", partitioner.left, kinds


def operations():
    """Returns a network for each operation that can be converted."""
    nn, f = torch.nn, torch.nn.functional

    class Of(nn.Module):
        def __init__(self, function, *layers):
            super().__init__()
            self.function, self.layers = function, nn.ModuleList(layers)

        def forward(self, x):
            return self.function(x, *self.layers)

    def steps(x, scale, zero):
        """Quantizes and dequantizes x, for operations that XNNPACKQuantizer does not quantize."""
        ends = (scale, zero, 0, 255, torch.uint8)
        return torch.ops.quantized_decomposed.dequantize_per_tensor(torch.ops.quantized_decomposed.quantize_per_tensor(x, *ends), *ends)

    return {
        "sigmoid": Of(lambda x: steps(f.sigmoid(steps(x, 0.03, 120)), 1 / 256, 0)),
        "tanh": Of(lambda x: steps(f.tanh(steps(x, 0.03, 120)), 1 / 128, 128)),
        "hardswish": Of(lambda x: steps(f.hardswish(steps(x, 0.03, 120)), 0.015, 30)),
        "sub": Of(lambda x: steps(steps(x, 0.03, 120) - steps(x, 0.02, 110), 0.03, 128)),
        "clamp": Of(lambda x: steps(steps(x, 0.03, 120).clamp(min=0.1), 0.03, 120)),
        "conv": Of(lambda x, a: a(x), nn.Conv2d(8, 12, 3, 2, 1, dilation=2)),
        "depthwise, relu": Of(lambda x, a: f.relu(a(x)), nn.Conv2d(8, 8, 3, groups=8)),
        "transposed": Of(lambda x, a: a(x), nn.ConvTranspose2d(8, 4, 4, 2, 1)),
        "linear": Of(lambda x, a, b: b(a(x).flatten(1)), nn.Conv2d(8, 4, 3), nn.Linear(400, 10)),
        "add": Of(lambda x, a: x + a(x), nn.Conv2d(8, 8, 1)),
        "mul": Of(lambda x, a: x * a(x), nn.Conv2d(8, 8, 1)),
        "hardtanh": Of(lambda x, a: f.hardtanh(a(x), -0.5, 0.5), nn.Conv2d(8, 8, 1)),
        "mean": Of(lambda x: steps(steps(x, 0.03, 120).mean((2, 3)), 0.01, 128)),
        "pools": Of(lambda x: steps(torch.cat([steps(f.avg_pool2d(steps(x, 0.03, 120), 2), 0.03, 120), steps(f.max_pool2d(steps(x, 0.03, 120), 2), 0.03, 120)], 1),
                                    0.03, 120)),
        "permute": Of(lambda x, a: steps(steps(a(x), 0.03, 120).permute(0, 2, 3, 1), 0.03, 120), nn.Conv2d(8, 4, 3)),
    }


def run_here(pte, example, device):
    """Runs the program in the wheel's runtime."""
    from executorch.runtime import Runtime
    os.environ.update(SKILLET_DEVICE=device, SKILLET_PARTITION="all")
    return Runtime.get().load_program(pte).load_method("forward").execute(list(example))[0]


def steps_off(program, example, got):
    """Returns the differences from PyTorch's result for the quantized network, in steps of the output."""
    step = float(next(node.args[1] for node in reversed(program.graph.nodes) if "dequantize_per_tensor" in str(node.target)))
    return np.round((got - program.module()(*example)).abs().detach().numpy() / step)


def case_torch_operations(_):
    if torch is None:
        return
    example = (torch.randn(1, 8, 12, 12),)
    for name, net in operations().items():
        torch.manual_seed(1)
        program = quantized(net.eval(), example, per_channel=False)
        pte, left, kinds = lowered(program, "a311d,rk3588")
        assert not left and kinds == ["executorch_call_delegate"], (name, left, kinds)
        for device in ("cpu", "sim:a311d", "sim:rk3588"):
            off = steps_off(program, example, run_here(pte, example, device))
            print(f"{name}, {device}: at most {int(off.max())} steps off, {int((off != 0).sum())} of {off.size}")
            assert off.max() <= (2 if name == "pools" else 1), (name, device)  # an average, and the concatenation after it


def case_torch_refused(folder):
    """Operations that a chip refuses stay with ExecuTorch's kernels, or are compiled for other chips; wrong arguments are errors."""
    if torch is None:
        return
    import executorch.exir  # noqa: F401, PLC0415  it registers them
    ends = (0.03, 120, 0, 255, torch.uint8)
    ops = torch.ops.quantized_decomposed

    class Moves(torch.nn.Module):
        def forward(self, x):
            x = ops.dequantize_per_tensor(ops.quantize_per_tensor(x, *ends), *ends)
            return ops.dequantize_per_tensor(ops.quantize_per_tensor(x.permute(0, 2, 1), *ends), *ends)

    example = (torch.randn(1, 10, 32),)
    program = torch.export.export(Moves().eval(), example)
    reason = "rk3588 takes no operation of this part; op 1 TRANSPOSE: no known program of the NPU computes TRANSPOSE on 8-bit tensors"
    pte, left, kinds = lowered(program, "rk3588")
    assert not pte and "aten.permute_copy" in str(kinds).replace("::", ".") and left == [f"aten_permute_copy_default (aten.permute_copy): {reason}"], (left, kinds)
    pte, left, kinds = lowered(program, "a311d,rk3588")
    assert len(left) == 1 and reason + "; the part is for a311d, elsewhere Skillet's CPU kernels run it" in left[0], left
    (folder / "moves.pte").write_bytes(pte)
    parts = json.loads(run(ARGS.skillet, "inspect", folder / "moves.pte", "--json"))["models"]
    assert [program["chip"] for one in parts for program in one["programs"]] == ["a311d"], parts
    for device in ("sim:a311d", "sim:rk3588"):
        assert torch.equal(run_here(pte, example, device), program.module()(*example)), device
    for devices, options in (("rk3587", []), ("rk3588", ["--partition", "most"])):
        try:
            lowered(program, devices, options)
            raise AssertionError((devices, options))
        except RuntimeError as wrong:
            assert "skillet compile: exit code 2" in str(wrong), wrong


def case_torch_weights_that_no_chip_takes(_):
    """Operations that would become several are decomposed before parts are formed. If no chip takes them, they still stay with ExecuTorch."""
    if torch is None:
        return
    options, reason = ["--partition", "all", "--unproven", "refuse"], "takes no operation of this part with --unproven refuse"
    net, example = torch.nn.Sequential(torch.nn.Linear(32, 8)).eval(), (torch.randn(1, 32),)
    net[0].weight.data *= torch.logspace(-2, 0, 8).reshape(8, 1)
    program = quantized(net, example, per_channel=True)
    pte, left, kinds = lowered(program, "a311d", options)
    assert not pte and "addmm" in str(kinds) and left[0].startswith("linear (aten.linear): a311d " + reason), (left, kinds)
    pte, left, kinds = lowered(program, "a311d,rk3588", ["--partition", "all"])
    assert pte and not left and kinds == ["executorch_call_delegate"], (left, kinds)
    # ExecuTorch has no kernel for it in one piece, so it goes to the NPU even if slow.
    program = quantized(net, example, per_channel=False)
    for some in ([], ["--partition", "all"]):
        pte, left, kinds = lowered(program, "a311d", some)
        assert pte and not left and kinds == ["executorch_call_delegate"], (left, kinds)


def case_torch_partitioners_see_real_weights(_):
    if torch is None:
        return
    from executorch.exir import to_edge, to_edge_transform_and_lower
    from executorch.exir.backend.partitioner import Partitioner, PartitionResult
    from skillet.executorch._onnx import constants_of
    seen = {}

    class Probe(Partitioner):
        def partition(self, program):
            seen.update(constants_of(program))
            return PartitionResult(program, {})

    program = quantized(torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3)).eval(), (torch.randn(1, 8, 12, 12),), per_channel=True)
    for lower in (lambda: to_edge_transform_and_lower(program, partitioner=[Probe()]), lambda: to_edge(program).to_backend(Probe())):
        seen.clear()
        lower()
        want = [one.detach() for one in program.state_dict.values()]
        assert len(seen) >= 4 and all(any(one.shape == two.shape and torch.equal(one, two) for two in want) for one in seen.values()), seen


def case_torch(folder):
    """Runs a network from PT2E over .pte in the wheel's runtime, and compares with PyTorch's result for the quantized network."""
    if torch is None:
        print("executorch: networks are left out, there is no PyTorch here (5 GB): executorch_test.py --with-torch")
        return
    example = (torch.randn(1, 3, 48, 48),)
    for per_channel in (False, True):
        program = quantized(network(), example, per_channel)
        want = program.module()(*example)
        pte, left, kinds = lowered(program, "a311d,imx8mp,rk3588,imx93")
        assert not left and kinds == ["executorch_call_delegate"], (left, kinds)
        for device in DEVICES:
            got = run_here(pte, example, device)
            off, alike = steps_off(program, example, got), float(np.corrcoef(got.detach().ravel(), want.detach().ravel())[0, 1])
            print(f"{'per channel' if per_channel else 'per tensor'}, {device}: {len(pte)} bytes, at most {int(off.max())} steps off, "
                  f"{int((off != 0).sum())} of {off.size}, correlation {alike:.5f}")
            # ONNX Runtime differs by 3 with the same part as a file. On chips with one scale a job, scales per channel are approximated.
            assert off.max() <= (12 if per_channel and device in ("sim:a311d", "sim:imx8mp") else 6) and alike > 0.997, device
    # An operation in real numbers stays, with its reason, between parts.
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Softplus(), torch.nn.Conv2d(8, 8, 3)).eval()
    pte, left, kinds = lowered(quantized(net, example, per_channel=False), "a311d")
    assert left and "executorch_call_delegate" in kinds, (left, kinds)
    (folder / "network.pte").write_bytes(pte)
    parts = json.loads(run(ARGS.skillet, "inspect", folder / "network.pte", "--json"))["models"]
    assert [sorted({program["chip"] for program in one["programs"]}) for one in parts] == [["a311d"]] * kinds.count("executorch_call_delegate"), parts
    # A changed byte of the part in the file is refused with a sentence.
    at = pte.index(b"SKILMODL") + 2000
    damaged = folder / "damaged.pte"
    damaged.write_bytes(pte[:at] + bytes([pte[at] ^ 1]) + pte[at + 1:])
    said = run(sys.executable, "-c", f"from executorch.runtime import Runtime\nfrom skillet.executorch import load_backend\nload_backend()\n"
               f"Runtime.get().load_program({str(damaged)!r}).load_method('forward')", code=1, SKILLET_DEVICE="sim:a311d")
    assert "the compiled part is refused: it is damaged" in said, said


def case_torch_elsewhere(folder):
    """A part for one chip is compiled again on others, with a sentence, and is right. Several threads each load the method."""
    if torch is None:
        return
    example = (torch.randn(1, 3, 48, 48),)
    program = quantized(network(), example, per_channel=False)
    pte, _, _ = lowered(program, "a311d")
    (folder / "network.pte").write_bytes(pte)
    torch.save(example[0], folder / "example.pt")
    for device, sentence in (("sim:a311d", ""), ("sim:rk3588", "compiled for a311d is compiled again for rk3588"), ("sim:imx93", "compiled for a311d is compiled again for imx93"),
                             ("cpu", "compiled for a311d runs on the CPU")):
        said = run(sys.executable, "-c", "import sys, torch\nfrom executorch.runtime import Runtime\nfrom skillet.executorch import load_backend\nload_backend()\n"
                   f"torch.save(Runtime.get().load_program({str(folder / 'network.pte')!r}).load_method('forward').execute([torch.load({str(folder / 'example.pt')!r})])[0], "
                   f"{str(folder / 'got.pt')!r})", SKILLET_DEVICE=device, SKILLET_PARTITION="all")
        assert (sentence in said) if sentence else ("compiled again" not in said and "on the CPU" not in said), (device, said)
        assert steps_off(program, example, torch.load(folder / "got.pt")).max() <= 6, device
    wants, wrong = run_here(pte, example, "sim:a311d").clone(), []

    def work():
        for _ in range(3):
            if not torch.equal(run_here(pte, example, "sim:a311d"), wants):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def main():
    global ARGS, native, np, torch  # noqa: PLW0603  they are there in the virtual environment only
    parser = parser_of_cases(ROOT / "build")
    parser.add_argument("--with-torch", action="store_true")
    ARGS = parser.parse_args()
    if not ARGS.inside:
        large = ARGS.build / "executorch-torch-venv"
        has_torch = ARGS.with_torch or large.exists()
        groups = [["--no-deps", *RUNTIME], ["numpy"], *([TORCH] if has_torch else [])]
        python, found = environment.virtual_environment(large if has_torch else ARGS.build / "executorch-venv", groups)
        if found != groups:
            print(f"executorch: left out, PyPI does not give all of {groups} here")
            return 77
        settings = {"SKILLET_C_LIBRARY": ARGS.library, "PYTHONPATH": str(ROOT / "src/frontend/python"),
                    "PATH": f"{Path(ARGS.skillet).parent}:{os.environ['PATH']}"}
        return subprocess.run([python, __file__, *sys.argv[1:], "--inside"], check=False, env={**os.environ, **settings}).returncode
    import numpy as np
    from skillet.executorch import _native as native
    torch = None
    with contextlib.suppress(ImportError):
        import torch
        native.load_backend()
        torch.manual_seed(2)
    os.environ.pop("SKILLET_DEVICE", None)
    return run_cases(globals(), ARGS.case)


if __name__ == "__main__":
    sys.exit(main())
