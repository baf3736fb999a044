#!/usr/bin/env python3
"""Runs the command on a virtual etnaviv node: as on a healthy board, and with each call to the kernel failing.

usage: virtual_test.py SKILLET [--slow]     --slow: a job that never finishes
"""
import json
import os
import subprocess
import sys
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SKILLET = sys.argv[1]
SLOW = "--slow" in sys.argv
MODEL = str(Path(__file__).parents[1] / "captures/a311d_conv1x1_relu6_u8/model.tflite")
NODE = "/dev/dri/renderD128"

# call: (number of the failing call, result); "error": the device is missing; "cpu": the CPU takes over; "npu": no effect
CALLS = {
    "open": [(1, "error"), (2, "error")],
    "version": [(1, "error")],
    "get_param": [(1, "error"), (4, "error"), (6, "error")],
    "gem_new": [(1, "cpu"), (3, "cpu")],
    "gem_info": [(1, "cpu")],
    "mmap": [(1, "cpu")],
    "gem_cpu_prep": [(1, "cpu"), (4, "cpu")],
    "gem_cpu_fini": [(1, "cpu")],
    "submit": [(1, "cpu"), (2, "cpu")],
    "wait_fence": [(1, "cpu"), (2, "cpu")],
    "gem_close": [(1, "npu")],
}
ERRORS = ["ENOMEM", "ENODEV", "EINVAL", "EIO", "ETIMEDOUT", "EACCES"]


def virtual(*command, fail=None):
    """Runs `skillet COMMAND` on a virtual node. Returns its exit code, stdout and stderr."""
    faults = ["--fail", fail] if fail else []
    done = subprocess.run([SKILLET, "virtual", "--chip", "a311d", *faults, "--", SKILLET, *command], capture_output=True,
                          text=True, timeout=60, check=False, env=dict(os.environ, SKILLET_UNPROVEN="take"))
    return done.returncode, done.stdout, done.stderr


def run_model(fail, device="npu"):
    """Returns the result of a run: ("npu" | "cpu" | "error", text), or ("wrong", why)."""
    code, out, err = virtual("run", MODEL, "--device", device, "--compare", "--json", fail=fail)
    if code not in (0, 1) or not out:
        return ("error" if code in (1, 2) else "wrong"), err.strip()
    report = json.loads(out)
    if (code == 1) != (device != "auto" and report["fallback_ops"] > 0):
        return "wrong", f"exit code {code}, {report['fallback_ops']} operations fell back: {err.strip()}"
    where, difference = report["parts"][0]["where"], report["runs"][0]["outputs"][0]["max_difference"]
    if difference > (1 if where == "npu" else 0):
        return "wrong", f"{difference} away from the CPU's result, on the {where}"
    return where, report["parts"][0]["fallback"] if where == "cpu" else err.strip()


class Healthy(unittest.TestCase):
    def test_devices_and_doctor(self):
        code, out, err = virtual("devices", "--json")
        self.assertEqual(code, 0, err)
        (row,) = [row for row in json.loads(out)["devices"] if row["device"] == NODE]
        self.assertTrue(row["usable"])
        self.assertIn("etnaviv0", row["note"])
        code, out, err = virtual("doctor", "--json")
        self.assertEqual(code, 0, err)
        report = json.loads(out)
        self.assertEqual(report["ready"], [NODE])
        self.assertEqual([one for one in report["findings"] if one["severity"] == "problem"], [])

    def test_names_of_the_device(self):
        for device in ("auto", "npu", "etnaviv0", NODE):
            self.assertEqual(run_model(None, device), ("npu", ""), device)
        code, _, err = virtual("run", MODEL, "--device", "etnaviv1")
        self.assertEqual(code, 2)
        self.assertIn("there are etnaviv0", err)

    def test_without_permission(self):
        where, text = run_model("open:*:EACCES", "auto")
        self.assertEqual(where, "cpu", text)
        code, out, _ = virtual("doctor", "--json", fail="open:*:EACCES")
        self.assertEqual(code, 1)
        self.assertIn("problem", {one["severity"] for one in json.loads(out)["findings"]})

    def test_doctor_notices_a_chip_that_does_not_compute(self):
        code, out, _ = virtual("doctor", "--json", fail="submit:*:reset")
        self.assertEqual(code, 1)
        (found,) = [one for one in json.loads(out)["findings"] if one["id"] == "self-test-failed"]
        self.assertIn("did not write its output", found["what"])


class Faults(unittest.TestCase):
    def check(self, rows):
        with ThreadPoolExecutor(2) as pool:
            outcomes = list(pool.map(lambda row: run_model(row[0]), rows))
        for (fail, expected, shown), (kind, text) in zip(rows, outcomes):
            print(f"{fail:24} -> {kind:5} {text.splitlines()[-1] if text else ''}")
            with self.subTest(fail):
                self.assertEqual(kind, expected, text)
                self.assertIn(shown, text)

    def test_each_call(self):
        """Uses every third error, different ones from place to place.

        The long test has all errors, and the fault matrices have more."""
        places = [(call, which, expected) for call, rows in CALLS.items() for which, expected in rows]
        self.check([(f"{call}:{which}:{error}", expected, "" if expected == "npu" else error)
                    for i, (call, which, expected) in enumerate(places) for error in (ERRORS if SLOW else ERRORS[i % 3::3])])

    def test_interrupted_calls(self):
        """Uses one of the errors, the other one at the next place; the long test has both."""
        errors = ("EINTR", "EAGAIN")
        places = [(call, which) for call, rows in CALLS.items() for which, _ in rows if call not in ("mmap", "open")]
        self.check([(f"{call}:{which}:{error}", "npu", "")
                    for i, (call, which) in enumerate(places) for error in (errors if SLOW else errors[i % 2::2])])

    def test_resets(self):
        self.check([("submit:2:reset", "npu", "running it again"),
                    ("submit:2:reset,submit:3:reset", "cpu", "did not write its output"),
                    ("submit:*:reset", "cpu", "did not write its output")])


class Hang(unittest.TestCase):
    def test_a_job_that_never_finishes(self):
        start = time.monotonic()
        where, text = run_model("submit:2:hang")
        self.assertEqual(where, "cpu", text)
        self.assertIn("ETIMEDOUT", text)
        self.assertLess(time.monotonic() - start, 30)


if __name__ == "__main__":
    cases = [Hang, Faults] if SLOW else [Healthy, Faults]
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(case) for case in cases)
    sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())
