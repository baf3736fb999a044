#!/usr/bin/env python3
"""The delegate in real runtimes: TFLite 2.9, tflite-runtime 2.14, the newest LiteRT.

usage: delegate_test.py DELEGATE [--device sim:a311d] [--build DIR] [--host NAME] [--case REGEX] [-- WRAPPER...]

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

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared/models"
CASES = ["default_kernels", "resize", "threads", "processes", "reload", "options"]
# Largest difference allowed, in units of the output. The NPU rounds requantization otherwise than the reference kernels
# (docs/delegate.md), so that a long chain of layers is off by a few; float outputs are of MoveNet: shares of the image.
MAX_DIFFERENCE = {"float": 0.05, "classifier": 8, "exact": 0}


def models():
    found = [ROOT / "models/digits.tflite", *sorted((ROOT / "tests/models").glob("*.tflite"))]
    if SHARED.is_dir():
        return found + sorted(SHARED.glob("*.tflite"))
    print(f"integration: no folder {SHARED}, only the models of this repository")
    return found


def limit_of(model):
    if "movenet" in model.name:
        return MAX_DIFFERENCE["float"]
    return MAX_DIFFERENCE["classifier" if "mobilenet" in model.name else "exact"]


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
        problem = ""
        if done.returncode != 0:
            problem = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        elif model and result["max"] > limit_of(model):
            problem = f"difference {result['max']:.3g} is above {limit_of(model)}"
        elif "mobilenet" in label and not result["top1"]:
            problem = "another class wins"
        elif not model and result.get("max", 0) != 0:
            problem = f"difference {result['max']:.3g}"
        claimed = re.findall(r"(\d+ of \d+) ops claimed, (\d+) partitions", done.stderr)
        if model and not problem and not claimed:
            problem = "the delegate did not run"
        self.failed += bool(problem)
        self.rows.append([host, label, claimed[-1][0] if claimed else "", claimed[-1][1] if claimed else "",
                          f"{result['max']:.3g}" if "max" in result else "", f"{result.get('mean', 0):.3g}",
                          f"FAIL: {problem}" if problem else "ok " + result.get("note", "")])
        if problem:
            print(f"integration: {host} {label}: {problem}\n{done.stderr[-3000:]}", file=sys.stderr)

    def table(self):
        rows = [["host", "case", "claimed", "parts", "max", "mean", "result"], *self.rows]
        widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def parse_args():
    wrapper = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else []
    own = sys.argv[1:sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("delegate", type=Path)
    parser.add_argument("--device", default="sim:a311d")
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
    python = environment.python_with_runtimes(args.build / "venv")
    if python is None:
        print("integration: skipped, the package index is not reachable")
        return 77
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
        for model in models():
            tests.record(host, "model", model)
        for case in CASES:
            tests.record(host, case)
    tests.table()
    print(f"{len(tests.rows) - tests.failed} passed, {tests.failed} failed")
    return 1 if tests.failed or not tests.rows else 0


if __name__ == "__main__":
    sys.exit(main())
