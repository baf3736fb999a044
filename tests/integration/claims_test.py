#!/usr/bin/env python3
"""`skillet check --delegate` against what the delegate claims in LiteRT, and the reasons that it gives.

usage: claims_test.py SKILLET DELEGATE [--only REGEX]

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
import share

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared/models"
CHIPS = ["a311d", "imx8mp", "rk3588", "rk3576"]
# Reads a case as JSON a line, and loads each in a child process, so that the runtime is imported once.
LOAD = """
import json, os, sys
from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate
for line in sys.stdin:
    case = json.loads(line)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(case["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.environ.update(case["environment"])
        delegate = load_delegate(sys.argv[1], {"device": case["device"], "log": "info"})
        Interpreter(case["model"], experimental_delegates=[delegate], num_threads=case["threads"],  # XNNPACK, behind it, cannot load sparse weights
                    experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
                    experimental_preserve_all_tensors=case["preserve"]).allocate_tensors()
        del delegate
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Host:
    """LiteRT, which loads models with the delegate."""

    def __init__(self, python, delegate):
        self.process = subprocess.Popen([python, "-c", LOAD, delegate], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.said = tempfile.NamedTemporaryFile(mode="r")

    def load(self, model, chip, preserve=False, unproven=True, threads=None):
        """Returns the messages of a load, with or without unproven operations. `threads`: num_threads of the interpreter."""
        case = {"model": str(model), "device": f"sim:{chip}", "preserve": preserve, "said": self.said.name, "threads": threads,
                "environment": {} if unproven else {"SKILLET_UNPROVEN": "refuse"}}
        print(json.dumps(case), file=self.process.stdin, flush=True)
        code = self.process.stdout.readline().strip()
        said = Path(self.said.name).read_text()
        assert code == "0", f"{model.name} on {chip}: exit code {code}: {said[-500:]}"
        return said


def models(only):
    found = [ROOT / "models/digits.tflite", *sorted((ROOT / "tests/models").rglob("*.tflite"))]
    if SHARED.is_dir():
        found += sorted(SHARED.glob("*.tflite"))
    else:
        print(f"claims: no folder {SHARED}, only the models of this repository")
    return [model for model in found if re.search(only, model.stem) and model.parent.name != "refused"]


def compare(args, host, model, unproven, threads=None):
    """Returns rows of (chip, result of check, result of the delegate) that differ."""
    done = subprocess.run([args.skillet, "check", model, "--delegate", "--json", *["--unproven", "refuse"] * (not unproven),
                           *(["--host-threads", str(threads)] if threads else [])], capture_output=True, text=True, check=True)
    checked = {one["chip"]: one for one in json.loads(done.stdout)["chips"]}
    rows = []
    for chip in CHIPS:
        said = host.load(model, chip, unproven=unproven, threads=threads)
        claimed = re.search(r"(\d+) of \d+ ops claimed, (\d+) partitions", said)
        # Operations that the delegate claims for Skillet's CPU kernels are not refused.
        refused = {int(op) for op, why in re.findall(r"^skillet: info: op (\d+) [A-Z](.*)$", said, re.MULTILINE) if not why.endswith("CPU kernels compute it")}
        ours = {op for op, why in enumerate(checked[chip]["why"]) if "skillet's CPU kernels" in why}
        want = checked[chip]["npu_ops"] + checked[chip]["folded_ops"] + len(ours), checked[chip]["npu_parts"]
        if want != (got := (int(claimed[1]), int(claimed[2]))):
            rows.append((chip, want, got))
        elif refused != (left := {op for op, where in enumerate(checked[chip]["where"]) if where != "npu"} - ours):
            rows.append((chip, f"left {sorted(left - refused)}", f"left {sorted(refused - left)}"))
    return rows


def wrong_reasons(host):
    """Returns wrong reasons of refusals.

    If debuggers keep all tensors, each operation is a partition, about which less is known than about the network: no operation
    with a program may be refused for lack of one."""
    wrong = []
    for model in share.of(sorted((ROOT / "tests/models/keras").glob("*.tflite"))):
        for chip in CHIPS:
            said = host.load(model, chip, preserve=True)
            wrong += re.findall(r"op \d+ CONV_2D: no known program of the NPU.*", said)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("skillet")
    parser.add_argument("delegate")
    parser.add_argument("--only", default="", help="only models whose name matches")
    args = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("SKILLET_")]:
        del os.environ[name]
    python = environment.python_with_runtimes(ROOT / "build/venv")
    if python is None:
        print("claims: skipped, the package index is not reachable")
        return 77
    host = Host(python, args.delegate)
    failed, checked = 0, share.of(models(args.only))
    assert checked
    for model in checked:
        for unproven in (False, True):
            for chip, want, got in compare(args, host, model, unproven):
                print(f"{model.stem} {chip}{', unproven too' * unproven}: check {want}, the delegate {got}")
                failed += 1
    for threads in (2, 4):  # the delegate sees num_threads
        for chip, want, got in compare(args, host, ROOT / "models/digits.tflite", True, threads):
            print(f"digits {chip}, {threads} threads: check {want}, the delegate {got}")
            failed += 1
    for reason in wrong_reasons(host):
        print(f"preserve_all_tensors: {reason}")
        failed += 1
    print(f"{len(checked)} models on {len(CHIPS)} chips, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
