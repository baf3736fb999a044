#!/usr/bin/env python3
"""Checks that all front ends report the same number of the model's operations on the NPU.

These are run, check, check --delegate, bench, eval, plan, fix, tune, compile, C, Python and the delegate, for each network, chip and
partition. Prints the table. The test delegate_claims compares the delegate's claims with check --delegate, in LiteRT.

usage: front_doors_test.py SKILLET DELEGATE_HOST C_LIBRARY [--all]      run at the top of the source tree
       --all: all small networks, not only those whose parts need no job, or compute shapes; and large ones of ../shared
"""
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import share

SKILLET, HOST, C_LIBRARY = (str(Path(path).resolve()) for path in sys.argv[1:4])
del sys.argv[1:4]
ALL = "--all" in sys.argv
sys.argv = [one for one in sys.argv if one != "--all"]
CHIPS = "a311d", "imx8mp", "rk3588", "rk3576", "imx93"
PICTURES = Path("models/digits")
LARGE = ["movenet_single_pose_lightning_ptq", "keras_lstm_mnist_ptq", "tf2_mobilenet_v2_1.0_224_ptq"]  # with operations that passes split
MODELS = [Path("models/digits.tflite"), *sorted(Path("tests/models").glob("keras/*.tflite" if ALL else "keras/[gk]e*.tflite")),
          *sorted(Path("tests/models").glob("functions/*.tflite" if ALL else "functions/silu*.tflite")),
          *(path for name in LARGE if ALL and (path := Path("../shared/models") / f"{name}.tflite").exists())]
# skillet_use of include/skillet/skillet.h
C = """
import ctypes, sys
class Use(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("bytes", "ops", "npu_ops", "part_ops", "folded_ops")]
c = ctypes.CDLL(sys.argv[3])
device, model, use = ctypes.c_void_p(), ctypes.c_void_p(), Use(bytes=ctypes.sizeof(Use))
assert c.skillet_open(sys.argv[2].encode(), ctypes.byref(device)) == 0
assert c.skillet_load_file(device, sys.argv[1].encode(), None, ctypes.byref(model)) == 0
assert c.skillet_get_use(model, ctypes.byref(use)) == 0
print(use.npu_ops)
c.skillet_close_model(model)
c.skillet_close(device)
"""
PYTHON = """
import sys, skillet
with skillet.Session(sys.argv[1], sys.argv[2], partition=sys.argv[3]) as session:
    use = session.use()
    assert session.explain().startswith(f"{use.npu_ops} of {use.ops} operation"), session.explain()
    print(use.npu_ops)
"""


class FrontDoors(unittest.TestCase):
    maxDiff = None
    claims = {}

    def said(self, *command, code=(0,), **environment):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, check=False,
                              env={**os.environ, **self.environment, **environment})
        self.assertIn(done.returncode, code, (command, done.stdout[-500:], done.stderr[-500:]))
        return done

    def report(self, verb, model, *options):
        return json.loads(self.said(SKILLET, verb, model, *options, "--json", code=(0, 1)).stdout)

    def counts(self, model, chip):
        device = ("--device", f"sim:{chip}")
        out = {verb: self.report(verb, model, *device, *more)["model_npu_ops"] for verb, more in
               (("run", ("--random", "1")), ("check", ()), ("bench", ("--runs", "1", "--warm-up", "0")))}
        if model.stem == "digits":  # the other models take no pictures
            out["eval"] = self.report("eval", model, *device, "--data", PICTURES)["model_npu_ops"]
        (plan,) = self.report("plan", model, "--chip", chip)["chips"]
        out["plan"] = plan["model_npu_ops"]
        fixed = str(Path(self.environment["SKILLET_TRUST_DIR"]) / "fixed.tflite")
        out["fix"] = self.report("fix", model, "-o", fixed, "--always", *device)["before"]["npu_ops"]
        python = self.said(sys.executable, "-c", PYTHON, model, f"sim:{chip}", self.environment["SKILLET_PARTITION"], SKILLET_C_LIBRARY=C_LIBRARY,
                           PYTHONPATH=str(Path("src/frontend/python").resolve()))
        out["python"] = int(python.stdout)
        out["c"] = int(self.said(sys.executable, "-c", C, model, f"sim:{chip}", C_LIBRARY).stdout)
        out["compile"] = self.compiled(model, *device)
        out["tune"] = self.tuned(model, *device)
        for claims in self.delegate(model):  # only lists chips of boards on the market
            if claims["chip"] == chip:
                out["delegate"] = claims["npu_ops"]
        return out

    def compiled(self, model, *device):
        done = self.said(SKILLET, "compile", model, *device, "--json", code=(0, 1, 2))
        if not done.stdout:
            self.assertIn("takes no operation of", done.stderr)
            return 0
        return json.loads(done.stdout)["model_npu_ops"]

    def tuned(self, model, *device):
        done = self.said(SKILLET, "tune", model, *device, code=(0, 1, 2))
        if not done.stdout:
            self.assertRegex(done.stderr, "takes no operation of|is predicted to be faster")
            return 0
        return int(re.search(r"(\d+) operations? on the NPU", json.loads(done.stdout)["found"])[1])

    def delegate(self, model):
        key = self.environment["SKILLET_PARTITION"], model
        if key not in self.claims:
            self.claims[key] = self.report("check", model, "--delegate")["chips"]
        return self.claims[key]

    def test_all_have_the_same_count(self):
        some = 0
        with tempfile.TemporaryDirectory() as folder:
            for partition, chip, model in share.of(itertools.product(("predicted", "all"), CHIPS, MODELS)):
                store = Path(folder) / f"{partition}_{chip}"
                store.mkdir(exist_ok=True)
                self.environment = {"SKILLET_PARTITION": partition, "SKILLET_TRUST_DIR": str(store)}
                counts = self.counts(model, chip)
                print(f"{partition:9} {chip:6} {model.stem:16}", *(f"{name} {count:2}" for name, count in counts.items()), flush=True)
                self.assertEqual(len(set(counts.values())), 1, (partition, chip, model, counts))
                some += counts["run"]
        self.assertGreater(some, 100 / share.EVERY ** 2)

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
