#!/usr/bin/env python3
"""Runs the command on a virtual RK3588: the device is found, networks run and are recorded, decoded and compared; lost jobs are noticed.

usage: virtual_test.py SKILLET
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import long_cases

SKILLET = sys.argv.pop()
ROOT = Path(__file__).resolve().parents[2]
MODEL = str(ROOT / "models/digits.tflite")
PICTURE = str(ROOT / "models/digits/7.png")
RUN = [SKILLET, "run", MODEL, "--image", PICTURE, "--compare", "--json", "--device"]


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


def virtual(*command, fail=None):
    return call(SKILLET, "virtual", "--chip", "rk3588", *(["--fail", fail] if fail else []), "--", *command)


class Node(unittest.TestCase):
    def run_on(self, device, fail=None):
        code, out, err = virtual(*RUN, device, fail=fail)
        result = json.loads(out)
        self.assertEqual(code, 1 if result["fallback_ops"] else 0, err)
        return result, err

    def test_is_found_by_all_names(self):
        code, out, err = virtual(SKILLET, "devices", "--json")
        self.assertEqual(code, 0, err)
        (row,) = [one for one in json.loads(out)["devices"] if one["device"] == "/dev/accel/accel0"]
        self.assertEqual((row["kernel_driver"], row["usable"]), ("rocket", True))
        self.assertIn("3 cores; also called rocket0", row["note"])
        results = {device: self.run_on(device)[0] for device in ("auto", "npu", "rocket0", "/dev/accel/accel0")}
        for device, result in results.items():
            self.assertGreater(result["npu_ops"], 10, device)
            self.assertLessEqual(result["runs"][0]["outputs"][0]["max_difference"], 2, device)

    def test_bands_give_the_same_bits(self):
        def run(*options):
            code, out, err = virtual(SKILLET, "run", MODEL, "--image", PICTURE, "--json", "--device", "npu", *options)
            self.assertEqual(code, 0, err)
            result = json.loads(out)
            return result["runs"][0]["outputs"], [part["bands"] for part in result["parts"]]
        outputs, parts = run("--cores", "1")
        self.assertEqual(sum(parts), 0)
        for cores in ("2", "3"):
            self.assertEqual(run("--cores", cores)[0], outputs)
            self.assertIn(int(cores), run("--cores", cores)[1])
        self.assertEqual(run()[1], parts, "too small to pay")

    def test_doctor_is_content(self):
        code, out, err = virtual(SKILLET, "doctor", "--json")
        self.assertEqual(code, 0, err)
        report = json.loads(out)
        self.assertEqual(report["ready"], ["/dev/accel/accel0"])
        self.assertIn("200 MHz", " ".join(one["what"] for one in report["findings"]))

    def test_out_of_tree_kernels_are_used_as_mainline_is(self):
        def run(chip, version):
            code, out, err = call("env", f"SKILLET_VIRTUAL_INTERFACE={version}", SKILLET, "virtual", "--chip", chip, "--", SKILLET, "run", MODEL,
                                  "--image", PICTURE, "--json", "--device", "npu", "--unproven", "take", "--partition", "all")
            self.assertEqual((code, err), (0, ""), (chip, version))
            return json.loads(out)["runs"][0]["outputs"]
        for chip in ("rk3576", "rk3588"):
            first = run(chip, "0.0")
            for version in ("1.0", "1.6") if chip == "rk3576" else ("1.3",):
                self.assertEqual(run(chip, version), first, (chip, version))

    def test_doctor_names_the_fault_of_the_kernel(self):
        code, out, err = call("env", "SKILLET_SIM_TASK_CON=0x7001", SKILLET, "virtual", "--chip", "rk3576", "--", SKILLET, "doctor", "--json")
        self.assertEqual(code, 1, err)
        said = [one["what"] for one in json.loads(out)["findings"] if one["id"] == "self-test-failed"]
        self.assertIn("0x7001: 28673 tasks", said[0])

    def test_faults_of_the_kernel_are_named_and_results_right(self):
        pool = str(ROOT / "tests/conformance/models/ops/maxpool7x7_s1_valid_i8.tflite")
        for model, fault, fail, fallback, said in (
                (MODEL, "", None, False, ""), (pool, "", None, False, ""),
                (MODEL, "SKILLET_SIM_TASK_CON=0x7001", None, True, "0x7001: 28673 tasks"),
                (pool, "SKILLET_SIM_TASK_CON=0x7001", None, True, "0x7001: 28673 tasks"),
                (pool, "SKILLET_SIM_POOLING_DONE=lost", None, False, "it ignores the pooling unit's interrupts"),
                (MODEL, "", "job:2-*:reset", True, "did not write its output")):
            with self.subTest(model=model, fault=fault or fail):
                code, out, err = call("env", *([fault] if fault else []), SKILLET, "virtual", "--chip", "rk3576", *(["--fail", fail] if fail else []), "--",
                                      SKILLET, "run", model, "--random", "3", "--repeat", "2", "--compare", "--json", "--device", "npu",
                                      "--unproven", "take", "--partition", "all")
                result = json.loads(out)
                self.assertEqual((code, result["fallback_ops"] > 0), (int(fallback), fallback), err)
                self.assertIn(said, err)
                self.assertEqual(bool(err), bool(said), err)
                for run in result["runs"]:
                    self.assertLessEqual(run["outputs"][0]["max_difference"], 1)

    def test_is_recorded_and_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [f"{folder}/{name}.skcap" for name in "ab"]
            for file in files:
                code, _, err = call(SKILLET, "capture", "-o", file, "--", SKILLET, "virtual", "--chip", "rk3588", "--",
                                    *RUN, "npu", "--unproven", "take")  # the comparison's jobs are not part of the program
                self.assertEqual(code, 0, err)
                self.assertIn("submissions to", err)
            code, out, err = call(SKILLET, "decode", files[0], "--json")
            self.assertEqual(code, 0, err)
            decoded = json.loads(out)
            self.assertEqual((decoded["chip"], decoded["kernel_driver"]), ("rk3588", "rocket"))
            self.assertFalse([field for one in decoded["submissions"] for field in one["fields"] if field["unknown"]])
            self.assertEqual(call(SKILLET, "diff", *files)[0], 0)
            program = f"{folder}/program.skp"
            self.assertEqual(call(SKILLET, "run", MODEL, "--image", PICTURE, "--device", "sim:rk3588", "--record", program)[0], 0)
            code, out, err = call(SKILLET, "diff", files[0], program)
            self.assertEqual(code, 0, out + err)

    def test_jobs_beside_others(self):
        """The cores of the RK3576 share memory banks, which the first core's programs use."""
        self.runs_beside("rk3576", "rk3588", 1, "while another core has one in the same banks")

    def test_long_jobs_beside_others(self):
        """Cores of the RK3588 are independent."""
        self.runs_beside("rk3588", "rk3576", 0, "")

    def runs_beside(self, chip, other, code, said):
        with tempfile.TemporaryDirectory() as folder:
            for one in ("rk3588", "rk3576"):
                self.assertEqual(call(SKILLET, "run", MODEL, "--image", PICTURE, "--device", f"sim:{one}", "--unproven", "take",
                                      "--partition", "all", "--record", f"{folder}/{one}.skp")[0], 0)
            jobs = f"{folder}/{chip}.skp"
            for _ in range(5):  # on a busy machine, jobs of the two cores may miss each other
                done = call(SKILLET, "virtual", "--chip", chip, "--", SKILLET, "replay", jobs, "--device", "npu", "--beside", jobs, "--json")
                if done[0] == code:
                    break
            self.assertEqual(done[0], code, done[2])
            self.assertIn(said, done[2])
            report = json.loads(done[1])
            self.assertEqual(report["compared_with"], "alone")
            self.assertGreater(report["overlaps"], 0)
            if not said:  # else one of the two cores fails, and timing decides which one
                self.assertGreaterEqual(report["jobs_beside"], 100)
                self.assertFalse(any(one["differing"] for one in report["written"]))
            # A lost job is not silently repeated, and a job that is lost on the other core does not count.
            for fail, more in (("job:1:drop", ["--against", f"sim:{chip}"]), ("job:*:drop", ["--beside", jobs])):
                done = call(SKILLET, "virtual", "--chip", chip, "--fail", fail, "--", SKILLET, "replay", jobs, "--device", "npu", *more)
                self.assertEqual((done[0] != 0, "wrote nothing at" in done[2]), (True, True), done)
            done = call(SKILLET, "replay", jobs, "--device", f"sim:{chip}", "--beside", f"{folder}/{other}.skp")
            self.assertEqual((done[0], f"was recorded on chip '{other}', not '{chip}'" in done[2]), (2, True), done)

    def test_programs_beside_use_no_turn_of_others(self):
        """Pools are right beside pools of the other core.

        Meanwhile no other program gets a turn: the script waits for a turn, and would end the command if it got one earlier."""
        script = ("import fcntl, subprocess, sys, time\n"
                  "node = open('/dev/accel/accel0', 'r+b', buffering=0)\n"
                  "def has_turn():\n"
                  "    try: fcntl.flock(node, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
                  "    except BlockingIOError: return False\n"
                  "    return True\n"
                  "command = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
                  "while has_turn() and command.poll() is None: fcntl.flock(node, fcntl.LOCK_UN); time.sleep(0.0002)\n"
                  "assert command.poll() is None, 'the command had no turn'\n"
                  "while not has_turn(): time.sleep(0.0002)\n"
                  "sys.exit(command.wait())\n")
        pool = str(ROOT / "tests/conformance/models/ops/maxpool7x7_s1_valid_i8.tflite")
        with tempfile.TemporaryDirectory() as folder:
            jobs = f"{folder}/pool.skp"
            self.assertEqual(call(SKILLET, "run", pool, "--random", "3", "--device", "sim:rk3576", "--unproven", "take", "--partition", "all",
                                  "--record", jobs)[0], 0)
            done = call(SKILLET, "virtual", "--chip", "rk3576", "--", sys.executable, "-c", script,
                        SKILLET, "replay", jobs, "--device", "npu", "--beside", jobs)
            self.assertEqual(done[0], 0, done)

    def test_lost_jobs_are_noticed(self):
        for fail, where, said in (("job:1:drop", "npu", "running it again"), ("job:1:reset", "npu", "running it again"),
                                  ("job:*:drop", "cpu", "did not write its output")):
            with self.subTest(fail):
                result, err = self.run_on("npu", fail)
                self.assertIn(said, err)
                self.assertLessEqual(result["runs"][0]["outputs"][0]["max_difference"], 2)
                self.assertEqual(result["parts"][0]["where"], where)


if __name__ == "__main__":
    long_cases.main()
