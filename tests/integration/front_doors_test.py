#!/usr/bin/env python3
"""One answer everywhere: run, check, bench, eval, plan, fix, Python (and the C interface below it) and the delegate have the same
count of operations on the NPU, for each network, chip and partition. Prints the table. Python counts parts that need no job,
as the rows of run do.

usage: front_doors_test.py SKILLET DELEGATE_HOST C_LIBRARY      run at the top of the source tree
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SKILLET, HOST, C_LIBRARY = (str(Path(path).resolve()) for path in sys.argv[1:4])
del sys.argv[1:4]
CHIPS = "a311d", "imx8mp", "rk3588"
PICTURES = Path("models/digits")
MODELS = [Path("models/digits.tflite"), *sorted(Path("tests/models/keras").glob("*.tflite")), *sorted(Path("tests/models/functions").glob("*.tflite"))]
PYTHON = """
import sys, skillet
with skillet.Session(sys.argv[1], sys.argv[2], partition=sys.argv[3]) as session:
    print(sum(one.on_npu for one in session.operations()))
"""


class FrontDoors(unittest.TestCase):
    maxDiff = None

    def said(self, *command, code=(0,), **environment):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, check=False,
                              env={**os.environ, **self.environment, **environment})
        self.assertIn(done.returncode, code, (command, done.stdout[-500:], done.stderr[-500:]))
        return done

    def report(self, verb, model, *options):
        return json.loads(self.said(SKILLET, verb, model, *options, "--json", code=(0, 1)).stdout)

    def counts(self, model, chip):
        device = ("--device", f"sim:{chip}")
        reports = {verb: self.report(verb, model, *device, *more) for verb, more in
                   (("run", ("--random", "1")), ("check", ()), ("bench", ("--runs", "1", "--warm-up", "0")))}
        out = {verb: report["npu_ops"] for verb, report in reports.items()}
        idle = sum(op["where"] == "npu" for op in reports["run"]["ops"]) - out["run"]
        if model.stem == "digits":  # the others take no pictures
            out["eval"] = self.report("eval", model, *device, "--data", PICTURES)["npu_ops"]
        (plan,) = self.report("plan", model, "--chip", chip)["chips"]
        out["plan"] = plan["npu_ops"]
        fixed = self.report("fix", model, "-o", str(Path(self.environment["SKILLET_TRUST_DIR"]) / "fixed.tflite"), "--always", *device)
        out["fix"] = fixed["before"]["npu_ops"] - reports["run"]["model_npu_ops"] + out["run"]
        python = self.said(sys.executable, "-c", PYTHON, model, f"sim:{chip}", self.environment["SKILLET_PARTITION"], SKILLET_C_LIBRARY=C_LIBRARY,
                           PYTHONPATH=str(Path("src/frontend/python").resolve()))
        out["python"] = int(python.stdout) - idle
        return out

    def test_all_have_the_same_count(self):
        some = 0
        for partition in ("predicted", "all"):
            for chip in CHIPS:
                with tempfile.TemporaryDirectory() as folder:
                    self.environment = {"SKILLET_PARTITION": partition, "SKILLET_TRUST_DIR": folder}
                    for model in MODELS:
                        counts = self.counts(model, chip)
                        print(f"{partition:9} {chip:6} {model.stem:16}", *(f"{name} {count:2}" for name, count in counts.items()), flush=True)
                        self.assertEqual(len(set(counts.values())), 1, (partition, chip, model, counts))
                        some += counts["run"]
        self.assertGreater(some, 100)

    def test_the_delegate_claims_what_it_takes(self):
        for chip in CHIPS:
            with tempfile.TemporaryDirectory() as folder:
                self.environment = {"SKILLET_PARTITION": "all", "SKILLET_TRUST_DIR": folder, "SKILLET_LOG": "info"}
                model = MODELS[0]
                expected = self.report("run", model, "--device", f"sim:{chip}", "--random", "1")["model_npu_ops"]
                done = self.said(SKILLET, "virtual", "--chip", chip, "--", HOST, model, PICTURES / "7.png")
                claimed = re.search(r"(\d+) of \d+ ops claimed", done.stderr)
                self.assertIsNotNone(claimed, done.stderr)
                self.assertEqual(int(claimed[1]), expected, chip)


if __name__ == "__main__":
    unittest.main()
