#!/usr/bin/env python3
"""Tests `--partition` and `--host-threads`: they change where operations run, but not results.

usage: partition_test.py SKILLET      run at the top of the source tree
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SKILLET = sys.argv.pop(1)
MODEL = "models/digits.tflite"


def skillet(*args):
    return subprocess.run([SKILLET, *args], capture_output=True, text=True, timeout=120)

# The defaults are tested.
os.environ.pop("SKILLET_PARTITION", None)


def report(*args):
    done = skillet(*args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def places(result):
    """Returns the place of each operation. Ignores that verified operations have another reason than unproven ones."""
    return [(op["where"], op["part"], op["reason"].replace("verified on this device, unproven elsewhere: ", "unproven: "))
            for op in result["ops"]]


class Partition(unittest.TestCase):
    def test_partitions_change_places_not_results(self):
        for device in ("sim:a311d", "sim:imx8mp", "sim:rk3588"):
            with tempfile.TemporaryDirectory() as folder:
                want, places_of = str(Path(folder) / "want.npz"), {}
                self.assertEqual(skillet("run", MODEL, "--device", "cpu", "--output", want).returncode, 0)
                for words in (["all"], ["work"], ["predicted", "--host-threads", "1"], ["predicted", "--host-threads", "auto"]):
                    ran = report("run", MODEL, "--device", device, "--expect", want, "--partition", *words)
                    checked = report("check", MODEL, "--device", device, "--partition", *words)
                    self.assertEqual(places(ran), places(checked), (device, words))
                    places_of[" ".join(words)] = places(ran)
                self.assertEqual(places_of["predicted --host-threads 1"], places(report("run", MODEL, "--device", device)), "the default")
                # A prediction counts if the difference exceeds its error. Here that is so for all operations with all cores.
                self.assertNotEqual(places_of["predicted --host-threads auto"], places_of["all"], device)
                self.assertEqual(places_of["predicted --host-threads 1"] == places_of["all"], device != "sim:rk3588")

    def test_the_cpu_is_weighed_by_its_cores(self):
        def cpu_ms(*words):
            told = report("compile", MODEL, "--device", "sim:a311d", "--explain-partition", *words)["partition"]
            return float(next(line for line in told.splitlines() if line.endswith("all on the CPU")).split(" ms")[0].split()[-1])

        one, two, four = (cpu_ms("--host-threads", str(count)) for count in (1, 2, 4))
        self.assertLess(four, two)
        self.assertLess(two, one)
        self.assertEqual([cpu_ms("--host-threads", "auto"), cpu_ms("--host-threads", "64")], [four] * 2, "of the board")
        self.assertEqual(cpu_ms(), one, "the default")
        self.assertEqual(skillet("compile", MODEL, "--device", "sim:a311d", "--explain-partition", "--partition", "work").returncode, 2)

    def test_advice_names_no_option_that_is_given_or_counts_for_nothing(self):
        for verb in (["check", MODEL, "--device", "sim:imx8mp"], ["check", MODEL], ["plan", MODEL]):
            advises = {}
            for words in ((), ("--host-threads", "3"), ("--partition", "all")):
                told = " ".join(skillet(*verb, *words).stdout.split())
                self.assertIn("the CPU alone, on all 4 cores, is predicted to be faster", told, (verb, words))
                advises[words] = "--host-threads auto divides by all cores" in told
            self.assertEqual(list(advises.values()), [True, False, False], verb)

    def test_every_verb_takes_it(self):
        with tempfile.TemporaryDirectory() as folder:
            for words in (["run", "--device", "sim:rk3588"], ["check", "--device", "sim:rk3588"], ["check"], ["plan"],
                          ["bench", "--runs", "1", "--device", "sim:rk3588"],
                          ["eval", "--data", "models/digits", "--device", "sim:rk3588"],
                          ["fix", "--device", "sim:rk3588", "-o", str(Path(folder) / "fixed.tflite")]):
                done = skillet(words[0], MODEL, *words[1:], "--partition", "all")
                self.assertEqual(done.returncode, 0, (words, done.stderr))
                self.assertNotEqual(done.stdout, skillet(words[0], MODEL, *words[1:]).stdout, words)
                for wrong in (["--partition", "some"], ["--host-threads", "0"], ["--host-threads", "many"]):
                    done = skillet(words[0], MODEL, *words[1:], *wrong)
                    self.assertEqual(done.returncode, 2, (words, wrong))
                    self.assertIn(wrong[0], done.stderr)


if __name__ == "__main__":
    unittest.main()
