#!/usr/bin/env python3
"""One answer everywhere: run, check, check --delegate, bench, eval, plan, fix, tune, compile, C, Python and the delegate have the
same count of operations on the NPU, for each network, chip and partition. Prints the table. C and Python count parts that need
no job, as the rows of run do. What the delegate claims is compared with check --delegate by delegate_claims, in LiteRT.

usage: front_doors_test.py SKILLET DELEGATE_HOST C_LIBRARY [--all]      run at the top of the source tree
       --all: all small networks, not only those whose parts need no job, or compute shapes
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
ALL = "--all" in sys.argv
sys.argv = [one for one in sys.argv if one != "--all"]
CHIPS = "a311d", "imx8mp", "rk3588"
PICTURES = Path("models/digits")
MODELS = [Path("models/digits.tflite"), *sorted(Path("tests/models").glob("keras/*.tflite" if ALL else "keras/[gk]e*.tflite")),
          *sorted(Path("tests/models").glob("functions/*.tflite" if ALL else "functions/silu*.tflite"))]
# skillet_op_info of include/skillet/skillet.h
C = """
import ctypes, sys
class Op(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), *((name, ctypes.c_char_p) for name in ("kind", "output", "why", "note")), ("part", ctypes.c_uint32),
                *((name, ctypes.c_int32) for name in ("on_npu", "unproven", "reserved")), ("ms", ctypes.c_double), ("part_ms", ctypes.c_double)]
c = ctypes.CDLL(sys.argv[3])
c.skillet_op_count.restype = ctypes.c_size_t
device, model, op = ctypes.c_void_p(), ctypes.c_void_p(), Op(bytes=ctypes.sizeof(Op))
assert c.skillet_open(sys.argv[2].encode(), ctypes.byref(device)) == 0
assert c.skillet_load_file(device, sys.argv[1].encode(), None, ctypes.byref(model)) == 0
count = 0
for i in range(c.skillet_op_count(model)):
    assert c.skillet_op(model, ctypes.c_size_t(i), ctypes.byref(op)) == 0
    count += op.on_npu
print(count)
c.skillet_close_model(model)
c.skillet_close(device)
"""
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
        out["c"] = int(self.said(sys.executable, "-c", C, model, f"sim:{chip}", C_LIBRARY).stdout) - idle
        out["compile"] = self.compiled(model, *device)
        out["tune"] = self.tuned(model, *device)
        (claims,) = [one for one in self.delegate(model) if one["chip"] == chip]
        out["delegate"] = claims["npu_ops"] - reports["run"]["model_npu_ops"] + out["run"]
        return out

    def compiled(self, model, *device):
        done = self.said(SKILLET, "compile", model, *device, "--json", code=(0, 1, 2))
        if not done.stdout:
            self.assertIn("takes no operation of", done.stderr)
            return 0
        parts = {part["title"].split(",")[0]: len(part["ops"]) for part in json.loads(done.stdout)["parts"] if part["jobs"]}
        return sum(parts.values())

    def tuned(self, model, *device):
        done = self.said(SKILLET, "tune", model, *device, code=(0, 1, 2))
        if not done.stdout:
            self.assertRegex(done.stderr, "takes no operation of|is predicted to be faster")
            return 0
        return int(re.search(r"(\d+) operations on the NPU", json.loads(done.stdout)["found"])[1])

    def delegate(self, model):
        if model not in self.claims:
            self.claims[model] = self.report("check", model, "--delegate")["chips"]
        return self.claims[model]

    def test_all_have_the_same_count(self):
        some = 0
        for partition in ("predicted", "all"):
            self.claims = {}
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
