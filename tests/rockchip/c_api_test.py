#!/usr/bin/env python3
"""Tests the C interface on a virtual RK3576: each kind of job while jobs are lost, and several networks at once.

Results are right, or there is an error that names the fault.

usage: c_api_test.py SKILLET C_LIBRARY     with LONG_CASES: each kind of job with each fault
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import long_cases

SKILLET, C_LIBRARY = sys.argv[1:3]
del sys.argv[1:3]
ROOT = Path(__file__).resolve().parents[2]
OPS = ROOT / "tests/conformance/models/ops"
# Convolution, depthwise convolution, maximum, average, table, sum, and a chain of one of each.
MODELS = [str(OPS / f"{name}.tflite") for name in ("conv3x3_valid_i8", "dw3x3_valid_i8", "maxpool7x7_s1_valid_i8", "avgpool7x7_s1_valid_i8", "logistic_i8",
                                                   "fc64x10_i8", "chain_residual_add_i8", "chain_conv_dw_pw_i8")] + [str(ROOT / "models/digits.tflite")]
POOLS_LAST = MODELS[2]
LOST = "did not write its output"
FAULTS = [({"fail": "job:2-*:drop"}, LOST), ({"fail": "job:2-*:reset"}, LOST), ({"fail": "submit:2-*:EIO"}, "EIO"),
          ({"SKILLET_SIM_TASK_CON": "0x7001"}, "0x7001: 28673 tasks")]
SECONDS = 200 * int(os.environ.get("SLOW_BUILD", 1))
# Runs each model in a thread with its own device. A row a run: the largest difference from the CPU's kernels, or the error; and how many operations
# the NPU has.
RUN = """
import json, random, sys, threading
import skillet
strict, runs, models = sys.argv[1] == "1", int(sys.argv[2]), sys.argv[3:]
rows = []
def run(number, model):
    options = {"unproven": "take", "partition": "all", "fallback": not strict}
    with skillet.Session(model, "npu", **options) as npu, skillet.Session(model, "cpu") as cpu:
        generator, npu_ops = random.Random(number), npu.use().npu_ops  # none once the CPU has taken over
        for _ in range(runs):
            inputs = [generator.randbytes(one.nbytes) for one in npu.inputs]
            outputs = [[bytearray(one.nbytes) for one in npu.outputs] for _ in range(2)]
            row = {"model": model, "npu_ops": npu_ops, "error": ""}
            cpu.run_on(inputs, outputs[1])
            try:
                npu.run_on(inputs, outputs[0])
                row["difference"] = max(abs((a ^ 128) - (b ^ 128)) for one, other in zip(*outputs) for a, b in zip(one, other))
            except skillet.Error as error:
                row["error"] = str(error)
            rows.append(row)
threads = [threading.Thread(target=run, args=one) for one in enumerate(models)]
for one in threads: one.start()
for one in threads: one.join()
print(json.dumps(rows))
"""


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT / "src/frontend/python"), "SKILLET_C_LIBRARY": C_LIBRARY, **more}


def virtual(*command, fail="", **more):
    done = subprocess.run([SKILLET, "virtual", "--chip", "rk3576", *(["--fail", fail] if fail else []), "--", *command], capture_output=True, text=True,
                          timeout=SECONDS, check=False, env=environment(**more))
    return done.stdout, done.stderr


class CApi(unittest.TestCase):
    def rows(self, strict, models, runs=3, **faults):
        said, err = virtual(sys.executable, "-c", RUN, str(int(strict)), str(runs), *models, **faults)
        rows = [json.loads(line) for line in said.splitlines()]
        self.assertTrue(rows, err)
        rows = [row for one in rows for row in one]
        self.assertEqual(len(rows), runs * len(models), err)
        for row in rows:
            self.assertGreater(row["npu_ops"], 0, row)
            self.assertLessEqual(row.get("difference", 0), 1, row)
        return rows, err

    def names_faults(self, cells):
        for model, (faults, named) in cells:
            with self.subTest(model=model, faults=faults):
                rows, err = self.rows(True, [model], **faults)
                self.assertTrue(any(row["error"] for row in rows), rows)
                for row in rows:
                    self.assertIn(named, row["error"] or named)
                rows, err = self.rows(False, [model], **faults)  # the CPU takes over
                self.assertFalse([row for row in rows if row["error"]], err)
                self.assertIn(named, err)

    def test_faults_are_named_and_no_result_is_stale(self):
        self.names_faults(zip(MODELS, FAULTS[:2]))

    def test_long_all_faults_are_named(self):
        self.names_faults((model, fault) for model in MODELS for fault in FAULTS)

    def test_one_lost_job_is_run_again(self):
        for kind in "drop", "reset":
            rows, err = self.rows(True, MODELS[:2], fail=f"job:2:{kind}")
            self.assertFalse([row for row in rows if row["error"]], err)
            self.assertIn("running it again", err)

    def test_pooling_that_is_not_heard_is_right(self):
        rows, err = self.rows(True, [POOLS_LAST], SKILLET_SIM_POOLING_DONE="lost")
        self.assertFalse([row for row in rows if row["error"]], rows)
        self.assertIn("it ignores the pooling unit's interrupts", err)

    def test_networks_at_once_have_one_core(self):
        self.has_one_core(4, 2)

    def test_long_many_runs_at_once_have_one_core(self):
        self.has_one_core(30, 10)

    def has_one_core(self, of_threads, of_processes):
        """Runs threads and processes. The simulated chip ends a job that begins while its other core has one."""
        rows, err = self.rows(True, MODELS, runs=of_threads)
        self.assertFalse([row for row in rows if row["error"]], err)
        self.assertNotIn("another core", err)
        with tempfile.TemporaryDirectory() as folder:
            # Not into one pipe, in which long lines of two programs would mix.
            command = f'"{sys.executable}" -c "$0" 1 {of_processes} "$@" >"{folder}/first" & "{sys.executable}" -c "$0" 1 {of_processes} "$@" >"{folder}/second"; wait'
            _, err = virtual("sh", "-c", command, RUN, *MODELS)
            rows = [row for name in ("first", "second") for row in json.loads(Path(folder, name).read_text(encoding="utf-8") or "[]")]
        self.assertEqual((len(rows), [row for row in rows if row["error"] or row["difference"] > 1]), (2 * of_processes * len(MODELS), []), err)

    def test_another_program_s_turn_is_waited_for(self):
        holder = ("import fcntl, subprocess, sys, time\n"
                  "node = open('/dev/accel/accel0', 'r+b', buffering=0)\n"
                  "fcntl.flock(node, fcntl.LOCK_EX)\n"
                  "other = subprocess.Popen(sys.argv[1:])\n"
                  "time.sleep(3)\n"
                  "assert other.poll() is None, 'its jobs ran in the turn of this program'\n"
                  "fcntl.flock(node, fcntl.LOCK_UN)\n"
                  "sys.exit(other.wait())\n")
        said, err = virtual(sys.executable, "-c", holder, sys.executable, "-c", RUN, "1", "1", MODELS[0])
        self.assertNotIn("its jobs ran in the turn of this program", err)
        self.assertEqual([(row["error"], row["difference"] <= 1) for row in json.loads(said)], [("", True)], err)


if __name__ == "__main__":
    long_cases.main()
