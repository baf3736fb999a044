#!/usr/bin/env python3
"""Tests that all verbs print the same time for the same program, since there is one cost model.

usage: verbs_test.py SKILLET      run at the top of the source tree
"""
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SKILLET = str(Path(sys.argv.pop(1)).resolve())
MODELS = ["models/digits.tflite", "tests/captures/models/chain_conv_dw_pw_i8.tflite",
          "tests/captures/models/chain_residual_add_i8.tflite"]
CHIPS = ["rk3588", "a311d", "imx8mp"]
KEYS = ("device_ms", "wall_ms", "cpu_ms")


def skillet(*arguments):
    done = subprocess.run([SKILLET, *arguments], capture_output=True, text=True, timeout=120, check=False)
    return done.stdout, done.stderr


def times(row):
    return {key: row[key] for key in KEYS}


class Verbs(unittest.TestCase):
    def of_plan(self, model, chip, partition):
        return times(json.loads(skillet("plan", model, "--chip", chip, "--partition", partition, "--json")[0])["chips"][0])

    def of_check(self, model, chip, partition):
        return times(json.loads(skillet("check", model, "--device", f"sim:{chip}", "--partition", partition, "--json")[0])["simulated"])

    def of_run(self, model, chip, partition, cores):
        text = skillet("run", model, "--device", f"sim:{chip}", "--partition", partition, "--cores", cores, "--random", "1", "--json")[0]
        return times(json.loads(text)["simulated"])

    def of_partition(self, model, chip):
        """Returns the first line, which is about everything that the chip can run on the NPU."""
        with tempfile.TemporaryDirectory() as folder:
            text = "".join(skillet("compile", model, "--device", f"sim:{chip}", "--partition", "predicted", "--explain-partition",
                                   "-o", str(Path(folder) / "program")))
        return float(re.search(r"([\d.]+) ms = NPU .*?: all that the chip takes on the NPU", " ".join(text.split()))[1])

    def test_the_same_program_has_one_time(self):
        compared = 0
        for model in MODELS:
            for chip in CHIPS:
                for partition in ("all", "predicted"):
                    with self.subTest(model=model, chip=chip, partition=partition):
                        plan = self.of_plan(model, chip, partition)
                        for other in (self.of_check(model, chip, partition), self.of_run(model, chip, partition, "1")):
                            for key in KEYS:
                                self.assertAlmostEqual(plan[key], other[key], delta=1e-6, msg=key)
                        compared += plan["device_ms"] > 0
                with self.subTest(model=model, chip=chip, verb="compile --explain-partition"):
                    self.assertAlmostEqual(self.of_partition(model, chip), self.of_plan(model, chip, "all")["wall_ms"], delta=2e-3)
        self.assertGreaterEqual(compared, len(MODELS) * len(CHIPS))

    def test_a_board_that_has_more_is_faster(self):
        for model in MODELS:
            row = json.loads(skillet("plan", model, "--chip", "rk3588", "--partition", "all", "--json")[0])["chips"][0]
            states = row["states"]
            self.assertEqual(states[0]["wall_ms"], row["wall_ms"])
            for state in states:
                self.assertLess(state["low_ms"], state["wall_ms"])
                self.assertGreater(state["high_ms"], state["wall_ms"])
            for slower, faster in zip(states, states[1:]):
                self.assertGreaterEqual(slower["wall_ms"], faster["wall_ms"], faster["name"])

    def test_a_known_clock_leaves_less_open(self):
        args = ("plan", MODELS[1], "--chip", "rk3588", "--partition", "all", "--json")
        width = [one["high_ms"] - one["low_ms"] for one in
                 (json.loads(skillet(*args, *more)[0])["chips"][0]["states"][0]
                  for more in ((), ("--set", "task_us=22.5", "--set", "interrupt_us=7.5")))]
        self.assertLess(width[1], width[0])


if __name__ == "__main__":
    unittest.main()
