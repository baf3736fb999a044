#!/usr/bin/env python3
"""Runs the files that `skillet fix` writes in the published runtimes.

usage: fix_test.py SKILLET DELEGATE [--only REGEX]

For each small model of this repository, and each of ../shared/models: the fixed file loads, keeps names and signatures, and
gives the same bits as the model in LiteRT's reference kernels. With weights per channel and --approximate the delegate
claims operations that it did not claim before. Exit code 77: nothing could be tested.
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
import share

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared/models"
CHIPS = ["a311d", "imx8mp", "rk3588"]
PER_CHANNEL = SHARED / "tf2_mobilenet_v2_1.0_224_ptq.tflite"
CLAIMED_OF_PER_CHANNEL = 64  # all but SOFTMAX, and QUANTIZE on both ends


def models(only):
    found = [*sorted((ROOT / "tests/conformance/models").rglob("*.tflite")), ROOT / "models/digits.tflite"]
    if SHARED.is_dir():
        found += sorted(SHARED.glob("*.tflite"))
    else:
        print(f"fix: no folder {SHARED}, only the models of this repository")
    return [model for model in found if re.search(only, model.stem)]


def fix(skillet, model, output, chip, *more):
    done = subprocess.run([skillet, "fix", model, "-o", output, "--device", f"sim:{chip}", "--always", "--json", *more],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"skillet fix {model.name}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def names(interpreter):
    return ([one["name"] for one in interpreter.get_input_details() + interpreter.get_output_details()],
            interpreter.get_signature_list())


def outputs(runner, values):
    return [value.tobytes() for value in runner.run(values)]


def same_bits(skillet, model, chip, folder):
    """Returns how many operations were rewritten. Raises RuntimeError if names or results differ."""
    import cases
    import hosts
    output = Path(folder) / "fixed.tflite"
    rewrites = len(fix(skillet, model, output, chip)["rewrites"])
    try:
        before = hosts.PythonRunner("litert", model)
    except (RuntimeError, ValueError):
        return rewrites  # LiteRT does not load the model either
    after = hosts.PythonRunner("litert", output)
    if names(before.interpreter) != names(after.interpreter):
        raise RuntimeError(f"{model.name}: other names or signatures")
    values = cases.example_inputs(model, before.inputs())
    try:
        expected = outputs(before, values)
    except (RuntimeError, ValueError):
        return rewrites  # LiteRT rejects these inputs, such as an index out of range, or the root of a negative number
    if expected != outputs(after, values):
        raise RuntimeError(f"{model.name} for {chip}: other results")
    return rewrites


def per_channel(skillet, delegate, folder):
    """Compares the delegate's claims for the model and the fixed one, in the published runtime."""
    output = Path(folder) / "approximated.tflite"
    report = fix(skillet, PER_CHANNEL, output, "a311d", "--approximate")
    program = ("import sys, hosts, cases; d = hosts.load_delegate('litert', sys.argv[2], {'device': 'sim:a311d', 'log': 'info'})\n"
               "r = hosts.PythonRunner('litert', sys.argv[1], d); r.run(cases.example_inputs(__import__('pathlib').Path(sys.argv[1]), r.inputs()))")
    claims = []
    for model in (PER_CHANNEL, output):
        done = subprocess.run([sys.executable, "-c", program, model, delegate], cwd=Path(__file__).parent, text=True,
                              capture_output=True, check=True)
        claims.append(int(re.findall(r"(\d+) of \d+ ops claimed", done.stderr)[-1]))
    print(f"fix: {PER_CHANNEL.stem}: {claims[0]} ops claimed before, {claims[1]} after; "
          f"outputs differ by {report['mean_difference']:.3f} on average")
    if claims[1] < CLAIMED_OF_PER_CHANNEL or claims[0] >= claims[1]:
        raise RuntimeError(f"{claims[1]} operations claimed, not {CLAIMED_OF_PER_CHANNEL}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("skillet")
    options.add_argument("delegate")
    options.add_argument("--only", default=".")
    args = options.parse_args()
    python = environment.python_with_runtimes(ROOT / "build/venv")
    if python is None:
        return 77
    if Path(sys.prefix) != python.parents[1]:
        os.execv(python, [str(python), *sys.argv])
    failed = tried = rewritten = 0
    with tempfile.TemporaryDirectory(prefix="skillet_fix_") as folder:
        for model, chip in share.of((model, chip) for model in models(args.only) for chip in CHIPS):
            tried += 1
            try:
                rewritten += same_bits(args.skillet, model, chip, folder) > 0
            except (RuntimeError, ValueError) as problem:
                failed += 1
                print(f"fix: {model.name} for {chip}: {problem}")
        if PER_CHANNEL.exists() and re.search(args.only, PER_CHANNEL.stem):
            per_channel(args.skillet, args.delegate, folder)
    print(f"fix: {tried} files, {rewritten} with other operations, {failed} failed")
    return 1 if failed or (args.only == "." and rewritten < 10 / share.EVERY ** 2) else 0


if __name__ == "__main__":
    sys.exit(main())
