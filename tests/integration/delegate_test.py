#!/usr/bin/env python3
"""The delegate in real runtimes: TFLite 2.9, tflite-runtime 2.14, the newest LiteRT.

usage: delegate_test.py DELEGATE [--device sim:a311d] [--library SO] [--build DIR] [--host NAME] [--case REGEX]
                        [-- WRAPPER...]

WRAPPER: a command that runs each case, e.g. one that gives it a device node. Exit code 77: nothing could be tested.
"""
import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import environment
import share

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared/models"
CASES = ["default_kernels", "resize", "batches", "threads", "two", "processes", "reload", "invokes", "options", "profile"]
# Differences allowed against the runtime's own kernels, in units of the output (max, mean). The NPU rounds each
# requantization differently from TensorFlow Lite (docs/delegate.md): one layer differs by at most 1, a network by a few
# in some places, which a softmax amplifies. MoveNet's outputs are positions as shares of the image. Skillet without TensorFlow Lite must give
# the same bits.
ONE_LAYER, NETWORK, MOVENET = (1, 0.1), (32, 0.25), (0.05, 0.02)


def models():
    found = [ROOT / "models/digits.tflite", *sorted((ROOT / "tests/models").glob("*.tflite"))]
    if SHARED.is_dir():
        return found + sorted(SHARED.glob("*.tflite"))
    print(f"integration: no folder {SHARED}, only the models of this repository")
    return found


def limits_of(model):
    if "movenet" in model.name:
        return MOVENET
    return ONE_LAYER if model.parent.name == "models" and model.parent.parent.name == "tests" else NETWORK


def is_classifier(model):
    return model is not None and re.match("digits|.*mobilenet|keras", model.name) is not None


class Tests:
    def __init__(self, args, python):
        self.args, self.python, self.rows, self.failed = args, python, [], 0

    def run(self, host, case, model=None):
        command = [*self.args.wrapper, str(self.python), str(Path(__file__).with_name("cases.py")), case, host,
                   str(self.args.delegate), self.args.device, *([str(model)] if model else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        result = {}
        if done.returncode == 0:
            result = json.loads(done.stdout.splitlines()[-1])
        return result, done

    def record(self, host, case, model=None):
        label = model.stem if model else case
        if not re.search(self.args.case, label):
            return
        result, done = self.run(host, "model_case" if model else case, model)
        claimed = re.findall(r"(\d+ of \d+) ops claimed, (\d+) partitions", done.stderr)
        problem = self.problem(done, result, claimed, model)
        self.failed += bool(problem)
        top = {True: "same", False: "other"}.get(result.get("top1"), "") if is_classifier(model) else ""
        own = {True: "equal", False: "differs"}.get(result.get("own"), "")
        self.rows.append([host, label, claimed[-1][0] if claimed else "", claimed[-1][1] if claimed else "",
                          f"{result['max']:.3g}" if "max" in result else "", f"{result.get('mean', 0):.3g}",
                          top, own,
                          f"FAIL: {problem}" if problem else "ok " + result.get("note", "")])
        if problem:
            print(f"integration: {host} {label}: {problem}\n{done.stderr[-3000:]}", file=sys.stderr)

    @staticmethod
    def problem(done, result, claimed, model):
        if done.returncode != 0:
            return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        limit, mean = limits_of(model) if model else ONE_LAYER
        if result["max"] > limit or result.get("mean", 0) > mean:
            return f"difference {result['max']:.3g} (mean {result.get('mean', 0):.3g}) is above {limit} ({mean})"
        if is_classifier(model) and not result["top1"]:
            return "another class wins"
        if model and not claimed:
            return "the delegate did not run"
        return "differs from Skillet without TensorFlow Lite" if result.get("own") is False else ""

    def table(self):
        rows = [["host", "case", "claimed", "parts", "max", "mean", "top 1", "Skillet", "result"], *self.rows]
        widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def parse_args():
    wrapper = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else []
    own = sys.argv[1:sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("delegate", type=Path)
    parser.add_argument("--device", default="sim:a311d")
    parser.add_argument("--library", type=Path, help="the C interface, to compare with Skillet without a host")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--host", default="", help="only hosts whose name begins so")
    parser.add_argument("--case", default="", help="only cases and models whose name matches")
    args = parser.parse_args(own)
    args.wrapper, args.delegate = wrapper, args.delegate.resolve()
    return args


def main():
    args = parse_args()
    for name in [n for n in os.environ if n.startswith("SKILLET_")]:
        del os.environ[name]
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["SKILLET_PARTITION"] = "all"  # for Skillet without a host; delegates get it as an option
    if args.library:
        os.environ["SKILLET_C_LIBRARY"] = str(args.library.resolve())
    python = environment.python_with_runtimes(args.build / "venv")
    if python is None:
        print("integration: skipped, the package index is not reachable")
        return 77
    if args.wrapper and subprocess.run([*args.wrapper, "true"], check=False).returncode == 77:
        return 77  # a requirement of the wrapper is missing, as it has printed
    hosts = ["litert", "tflite-runtime"]
    if library := environment.tflite_2_9(args.build / "npm"):
        os.environ["TFLITE_2_9"] = str(library)
        hosts.append("tflite2.9")
    tests = Tests(args, python)
    for host in [h for h in hosts if h.startswith(args.host)]:
        version, done = tests.run(host, "version")
        if done.returncode != 0:
            print(f"integration: {host} is left out: {done.stderr.strip().splitlines()[-1]}")
            continue
        print(f"integration: {host} is version {version['version']}")
        for model in share.of(models()):
            tests.record(host, "model", model)
        for case in CASES:
            tests.record(host, case)
    tests.table()
    print(f"{len(tests.rows) - tests.failed} passed, {tests.failed} failed")
    return 1 if tests.failed or not tests.rows else 0


if __name__ == "__main__":
    sys.exit(main())
