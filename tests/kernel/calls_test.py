#!/usr/bin/env python3
"""Makes valid and invalid calls to three kernel drivers, and compares with the answers of Linux's own drivers in the files *_calls.txt.

usage: calls_test.py kernel SOURCE CALLS DEVICE [--update]    Linux's drivers with simulated chips as hardware, if that kernel is built
       calls_test.py virtual SOURCE CALLS PRELOAD             the emulated drivers of the virtual node
"""
import difflib
import os
import subprocess
import sys
import unittest
from pathlib import Path

from guest import KERNEL, with_a_whole_bus

MODE, SOURCE, CALLS, OTHER = sys.argv[1], *(Path(one).resolve() for one in sys.argv[2:5])
HERE = SOURCE / "tests/kernel"
DRIVERS = {"etnaviv": ("a311d", "/dev/dri/renderD128"), "rocket": ("rk3588", "/dev/accel/accel0"),
           "ethosu": ("ethos-u65-256", "/dev/accel/accel0")}


def on_kernel(chip, program):
    command = [*KERNEL, "--device", OTHER, "--chip", chip, "--limit", "60", "--", *program]
    return with_a_whole_bus(lambda: subprocess.run(command, capture_output=True, text=True, timeout=90, check=False, cwd=SOURCE))


def on_virtual_node(chip, program):
    environment = {**os.environ, "LD_PRELOAD": str(OTHER), "SKILLET_VIRTUAL_CHIP": chip, "SKILLET_VIRTUAL_MISUSE": "report", "SKILLET_LOG": "error"}
    return subprocess.run(program, capture_output=True, text=True, timeout=90, check=False, env=environment)


def without_known(lines, driver):
    """Removes the answers from lines whose answers are known to differ on the virtual node."""
    known = {line for line in (HERE / f"{driver}_known.txt").read_text().splitlines() if line and not line.startswith("#")}
    unused = known - {line.split(" = ")[0] for line in lines}
    if unused:
        raise AssertionError(f"{driver}_known.txt names calls that are not made: {sorted(unused)}")
    return [line.split(" = ")[0] if line.split(" = ")[0] in known else line for line in lines]


class Calls(unittest.TestCase):
    def test_the_answers_are_those_of_linux(self):
        for driver, (chip, node) in DRIVERS.items():
            with self.subTest(driver):
                listed = HERE / f"{driver}_calls.txt"
                done = (on_kernel if MODE == "kernel" else on_virtual_node)(chip, [str(CALLS), node, str(listed)])
                self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
                if "--update" in sys.argv:
                    listed.write_text(done.stdout, encoding="utf-8")
                expected, answered = listed.read_text().splitlines(), done.stdout.splitlines()
                if MODE == "virtual":
                    expected, answered = without_known(expected, driver), without_known(answered, driver)
                self.assertGreater(len(expected), 200)
                difference = list(difflib.unified_diff(expected, answered, "Linux", "answered", lineterm="", n=0))
                self.assertFalse(difference, "\n".join(difference[:200]))


if __name__ == "__main__":
    if MODE == "kernel" and subprocess.run(KERNEL, check=False).returncode == 77:
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
