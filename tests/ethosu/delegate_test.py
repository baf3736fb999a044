#!/usr/bin/env python3
"""What Arm's Vela made of small networks, and the networks themselves, which Skillet compiles, in a TensorFlow Lite host with our
delegate: results are those of the reference kernels.

usage: delegate_test.py DELEGATE SKILLET [--inside DEVICE]     exit code 77 without a TensorFlow Lite runtime
On simulated chips in the process, then on a device node of an i.MX 93. --inside: on DEVICE, in this process.
"""
import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODELS = Path(__file__).resolve().parent / "models"
NODE = "/dev/accel/accel0"


def run_all(delegate, device):
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate
    wrong, compared = 0, 0
    for made in sorted(MODELS.glob("*.tflite")):
        name, accelerator = made.name.split(".")[:2] if ".ethos-" in made.name else (made.stem, "imx93")
        if device == NODE and accelerator not in ("ethos-u65-256", "imx93"):
            continue
        partition = "predicted" if ".ethos-" in made.name else "all"  # the NPU runs operations without a CPU kernel with any partition
        ours = Interpreter(str(made), experimental_op_resolver_type=OpResolverType.BUILTIN_REF, experimental_delegates=[
            load_delegate(delegate, {"device": device or f"sim:{accelerator}", "partition": partition, "per_channel": "strict", "log": "warning"})])
        reference = Interpreter(str(MODELS / f"{name}.tflite"), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        random = np.random.default_rng(11)
        for host in (ours, reference):
            host.allocate_tensors()
        for _ in range(3):
            for mine, theirs in zip(ours.get_input_details(), reference.get_input_details(), strict=True):
                limits = np.iinfo(mine["dtype"])
                values = random.integers(limits.min, limits.max + 1, mine["shape"]).astype(mine["dtype"])
                ours.set_tensor(mine["index"], values)
                reference.set_tensor(theirs["index"], values)
            ours.invoke()
            reference.invoke()
            for mine, theirs in zip(ours.get_output_details(), reference.get_output_details(), strict=True):
                got, expected = ours.get_tensor(mine["index"]), reference.get_tensor(theirs["index"])
                compared += got.size
                if not np.array_equal(got, expected) or len(np.unique(expected)) < 3:
                    print(f"{made.name} on {device}: {np.count_nonzero(got != expected)} of {got.size} values differ")
                    wrong += 1
    print(f"{compared} values compared on {device or 'simulated chips'}")
    return 1 if wrong or not compared else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("delegate")
    parser.add_argument("skillet")
    parser.add_argument("--inside", default=None)
    args = parser.parse_args()
    if args.inside is not None:
        return run_all(args.delegate, args.inside)
    sys.path.insert(0, str(ROOT / "tests/integration"))
    from environment import python_with_runtimes
    python = python_with_runtimes(ROOT / "build/venv")
    if python is None:
        return 77
    here = [python, __file__, args.delegate, args.skillet, "--inside"]
    on_node = [args.skillet, "virtual", "--chip", "imx93", "--", *here, NODE]
    return max(subprocess.run(command, check=False, env=os.environ).returncode for command in ([*here, ""], on_node))


if __name__ == "__main__":
    sys.exit(main())
