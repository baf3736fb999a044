#!/usr/bin/env python3
"""Tests the command on the toy NPU, and its messages about chips that are not built in.

usage: toy_test.py SKILLET VENDORS_INC [--virtual]     --virtual: the virtual device node is built, too
"""
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SKILLET, VENDORS = sys.argv[1], Path(sys.argv[2]).read_text(encoding="utf-8")
HAS_VIRTUAL = "--virtual" in sys.argv
MODEL = "tests/toy/maximum_relu_u8.tflite"


def skillet(*args):
    return subprocess.run([SKILLET, *args], capture_output=True, text=True, timeout=120, check=False)


class Toy(unittest.TestCase):
    def run_model(self, *args, around=()):
        done = subprocess.run([*around, SKILLET, "run", MODEL, "--random", "3", "--compare", "--json", *args],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual([op["where"] for op in result["ops"]], ["npu", "npu", "cpu"])
        return result["runs"][0]["outputs"][0]["max_difference"]

    def test_results_are_those_of_the_cpu(self):
        self.assertEqual(self.run_model("--device", "sim:toy"), 0)

    def test_the_chip_that_computes_nothing_differs(self):
        self.assertGreater(self.run_model("--device", "null:toy"), 0)

    def test_check_says_why(self):
        done = skillet("check", MODEL, "--device", "sim:toy")
        self.assertIn("the toy has no RESHAPE", done.stdout)

    @unittest.skipUnless(HAS_VIRTUAL, "no virtual device node in this build")
    def test_a_virtual_node_is_found_and_used(self):
        around = [SKILLET, "virtual", "--chip", "toy", "--"]
        self.assertEqual(self.run_model("--device", "npu", around=around), 0)

    def test_a_recorded_run_decodes(self):
        with tempfile.TemporaryDirectory() as folder:
            recorded = str(Path(folder) / "run.capture")
            self.run_model("--device", "sim:toy", "--record", recorded)
            done = skillet("decode", recorded)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("opcode = run", done.stdout)
            self.assertIn("least = 100", done.stdout)

    def test_chips_that_are_not_built_in_are_named_as_that(self):
        built = re.findall(r"^VENDOR\((\w+)\)", VENDORS, re.M)
        drivers = re.findall(r"^DRIVER\((\w+)\)", VENDORS, re.M)
        chips = re.findall(r"^CHIP\((\w+), ([\w-]+)\)", VENDORS, re.M)
        self.assertIn(("vivante", "a311d"), chips)
        for vendor, chip in chips:
            done = skillet("check", MODEL, "--device", f"null:{chip}")
            with self.subTest(chip=chip, said=done.stderr):
                self.assertEqual(done.returncode == 0, vendor in drivers)
                if vendor not in built:
                    self.assertIn(f"chip '{chip}' is known, but this build has no {vendor}: SKILLET_VENDORS", done.stderr)
                elif vendor not in drivers:
                    self.assertIn(f"chip '{chip}' is known, but {vendor} has no driver", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
