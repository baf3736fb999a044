#!/usr/bin/env python3
"""Calls exit() during inferences: no process crashes, and none leaves a job behind that a stock kernel does not survive.

usage: exits_test.py SKILLET EXITS DEVICE [TIMES]     DEVICE: sim:CHIP, or virtual:CHIP for a virtual node; TIMES: for each way (10)
"""
import itertools
import os
import subprocess
import sys
import unittest
from pathlib import Path

SKILLET, EXITS, DEVICE = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
MODEL = str(Path(__file__).parents[2] / "models/digits.tflite")
KIND, CHIP = DEVICE.split(":")
SECONDS = 120
TIMES_SIMULATED = int(sys.argv.pop(1)) if len(sys.argv) > 1 else 10
TIMES_VIRTUAL = 12
COPRIME = 7  # spreads a few moments over the whole range


def run(how, milliseconds, *options):
    command = [EXITS, "npu" if KIND == "virtual" else DEVICE, MODEL, how, str(milliseconds)]
    if KIND == "virtual":
        command = [SKILLET, "virtual", "--chip", CHIP, *options, "--", *command]
    # Freed memory is overwritten.
    environment = dict(os.environ, MALLOC_PERTURB_="165", SKILLET_PARTITION="all")
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)


class Exits(unittest.TestCase):
    @unittest.skipIf(KIND == "virtual", "a device of this process")
    def test_no_process_crashes_while_a_simulated_chip_computes(self):
        for how in ("flight", "threads"):
            for i in range(TIMES_SIMULATED):
                milliseconds = i * COPRIME % 25
                done = run(how, milliseconds)
                self.assertEqual(done.returncode, 0, f"{how}, {milliseconds} ms: {done.stderr[-2000:]}")

    @unittest.skipIf(KIND == "sim", "a device of another process")
    def test_no_process_leaves_jobs_to_the_kernel(self):
        """The host is linked with the library, so its destructors run after those of preloaded libraries."""
        for i, (how, misuse) in zip(range(TIMES_VIRTUAL), itertools.cycle(itertools.product(("idle", "flight", "threads"), ("report", "abort")))):
            done = run(how, 40 * (i % 5), "--on-misuse", misuse)
            self.assertEqual((done.returncode, "use after free" in done.stderr), (0, False), f"{how}, {misuse}: {done.stderr[-2000:]}")


if __name__ == "__main__":
    unittest.main()
