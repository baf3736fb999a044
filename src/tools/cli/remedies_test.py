#!/usr/bin/env python3
"""Tests the remedies of `skillet check` with the networks of the conformance tests.

No remedy refers back to the operation that it is given for, and --unproven has the described effect.

usage: remedies_test.py SKILLET      run at the top of the source tree
"""
import functools
import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

SKILLET = str(Path(sys.argv.pop(1)).resolve())
ROW = re.compile(r'^REMEDY\((\w+),((?:\s*"[^"]*")+)\)', re.M)
TEXTS = {name: "".join(re.findall(r'"([^"]*)"', text)) for name, text in ROW.findall(Path("src/npu/remedies.def").read_text())}
MODELS = sorted(Path("tests/conformance/models").glob("[ko]*/*.tflite"))  # kernels, ops
CHIPS = "a311d", "rk3588"


@functools.cache
def ops(model, chip, *more):
    done = subprocess.run([SKILLET, "check", str(model), "--device", "sim:" + chip, "--json", *more], capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["ops"] if done.stdout else []


class Remedies(unittest.TestCase):
    def test_none_names_its_own_operation(self):
        seen = set()
        for model in MODELS:
            for chip in CHIPS:
                for op in ops(model, chip, "--unproven", "refuse"):
                    if op["where"] == "npu":
                        continue
                    seen.add(op["remedy"])
                    circle = re.search(rf"\b{op['kind']}\b", TEXTS[op["remedy"]])
                    self.assertIsNone(circle and f"{model} on {chip}: {op['kind']}: {TEXTS[op['remedy']]}")
        self.assertGreater(len(seen), 8, seen)  # else the networks do not test this

    def test_unproven_takes_what_it_is_given_for(self):
        found = 0
        for model in MODELS:
            for chip in CHIPS:
                advised = {op["op"] for op in ops(model, chip, "--unproven", "refuse") if op["remedy"] == "unproven" and op["where"] != "npu"}
                if not advised:
                    continue
                found += len(advised)
                for op in ops(model, chip, "--unproven", "take"):
                    if op["op"] in advised and op["where"] != "npu":
                        self.assertEqual(op["remedy"], "take_all", f"{model} on {chip}: {op}")
        self.assertGreater(found, 8)


if __name__ == "__main__":
    unittest.main()
