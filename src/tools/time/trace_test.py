#!/usr/bin/env python3
"""Traces of real runs: `skillet bench|run|eval --trace`, SKILLET_TRACE, `skillet trace`.

usage: trace_test.py SKILLET      run at the top of the source tree
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

SKILLET = str(Path(sys.argv.pop(1)).resolve())
DIGITS = "models/digits.tflite"


def skillet(*args, **variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith("SKILLET_")} | {"SKILLET_PARTITION": "all"} | variables
    return subprocess.run([SKILLET, *map(str, args)], capture_output=True, text=True, env=env, timeout=120)


class Trace(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "run.pftrace"

    def tearDown(self):
        self.folder.cleanup()

    def summary(self):
        said = skillet("trace", self.file, "--json")
        self.assertEqual(said.returncode, 0, said.stderr)
        return json.loads(said.stdout)

    def bench(self, device, *more, **variables):
        done = skillet("bench", DIGITS, "--device", device, "--runs", 7, "--warm-up", 1, "--without-cpu", "--unproven", "take", *more, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_what_chips_did(self):
        built = skillet("devices", "--all").stdout
        for device, units in (("sim:a311d", {"NN", "TP", "DRAM"}), ("sim:rk3588", {"MAC", "DRAM"}), ("sim:rk3576", {"MAC", "DRAM"}),
                              ("sim:imx93", {"MAC", "output", "SRAM", "DRAM"})):
            if device[4:] not in built:
                continue
            with self.subTest(device=device):
                self.file.unlink(missing_ok=True)
                self.bench(device, "--trace", self.file)
                summary = self.summary()
                self.assertEqual(summary["runs"], 8)
                self.assertGreaterEqual(summary["npu_jobs"], summary["npu_submissions"])
                self.assertEqual(summary["npu_submissions"] % 8, 0)
                self.assertGreater(summary["npu_submissions"], 0)
                (clock,) = summary["npu_predicted"]
                self.assertRegex(clock, "at 786 MHz" if device == "sim:rk3576" else "at [0-9]+ MHz")
                self.assertTrue(0 < summary["npu_busy"] <= 1, summary["npu_busy"])
                by_name = {one["name"]: one for one in summary["categories"]}
                self.assertLessEqual({"session", "compile", "copy", "submit", "wait", "npu", "operation", "unit"}, set(by_name))
                self.assertEqual("cpu" in by_name, device != "sim:imx93")  # it takes the whole network
                self.assertEqual(by_name["operation"]["slices"] % 8, 0)
                unit, operation = by_name["unit"], by_name["operation"]  # one unit takes the longest, the others less
                self.assertLess(unit["ms"] / unit["slices"], 0.95 * operation["ms"] / operation["slices"])
                # A slice without those inside is at most all of it, and a part at most the whole.
                for one in summary["categories"]:
                    self.assertLessEqual(one["own_ms"], one["ms"] + 1e-6)
                    self.assertLessEqual(one["own_ms"], summary["ms"] * summary["tracks"])
                svg = self.file.with_suffix(".svg")
                self.assertEqual(skillet("trace", self.file, "--svg", svg).returncode, 0)
                texts = " ".join(one.text or "" for one in xml.parse(svg).iter())
                for unit in units:
                    self.assertIn(f"unit {unit}", texts)
                self.assertIn("DRAM bytes", texts)

    def test_cpu_operations_by_variable(self):
        self.bench("cpu", SKILLET_TRACE=str(self.file))
        by_name = {one["name"]: one for one in self.summary()["categories"]}
        self.assertEqual(by_name["cpu"]["slices"] % 8, 0)
        self.assertGreaterEqual(by_name["cpu"]["slices"], 8 * 9)
        self.assertNotIn("npu", by_name)

    def test_what_cannot_be_written_is_a_warning(self):
        done = self.bench("sim:a311d", "--trace", "/dev/full")
        self.assertEqual(done.stderr.count("trace /dev/full"), 1, done.stderr)

    def test_what_a_run_did(self):
        """It records the program, too, which is no job."""
        device = next(name for name in ("sim:a311d", "sim:rk3588", "sim:imx93") if name[4:] in skillet("devices", "--all").stdout)
        done = skillet("run", DIGITS, "--random", 1, "--device", device, "--partition", "all", "--unproven", "take", "--trace", self.file, "--json")
        summary = self.summary()
        self.assertEqual((summary["runs"], summary["npu_jobs"]), (1, json.loads(done.stdout)["jobs"]))

    def test_a_place_where_none_can_be_is_refused(self):
        for place, why in (self.folder.name, "is a folder"), ("/none/trace", "'/none': No such file or directory"):
            for given, variable in (("--trace", place), {}), ((), {"SKILLET_TRACE": place}):
                done = skillet("run", DIGITS, "--random", "1", "--device", "cpu", *given, **variable)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(why, done.stderr)

    def test_what_is_no_trace(self):
        for bytes_ in b"", b"\x0a\xff", b"hello, this is text", Path(DIGITS).read_bytes():
            self.file.write_bytes(bytes_)
            done = skillet("trace", self.file)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(f"{self.file}: it is no trace", done.stderr)
        done = skillet("trace", self.folder.name + "/none")
        self.assertEqual((done.returncode, done.stdout), (2, ""))

    def test_output_that_cannot_be_written(self):
        self.bench("cpu", "--trace", self.file)
        for more in (), ("--json",):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([SKILLET, "trace", self.file, *more], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (1, "skillet: standard output: No space left on device\n"))

    def test_only_a_trace_is_replaced(self):
        model = Path(DIGITS).read_bytes()
        for other in model, b"my notes\n", b"\n", b"\nmy notes, which begin with an empty line\n", b"\n# Notes on the second NPU of mine, 2\n\nkeep\n", b"\x0a\x05\x0a\x03abc" * 9:
            self.file.write_bytes(other)
            self.assertIn("only a trace is replaced", self.bench("cpu", "--trace", self.file).stderr)
            self.assertEqual(self.file.read_bytes(), other)
        self.file.unlink()
        self.bench("sim:a311d", "--trace", self.file)
        self.assertEqual(self.bench("cpu", "--trace", self.file).stderr.count("trace"), 0)
        self.assertNotIn("npu", {one["name"] for one in self.summary()["categories"]})

    def test_a_copy_that_ends_within_a_packet(self):
        self.bench("cpu", "--trace", self.file)
        whole = self.file.read_bytes()
        self.file.write_bytes(whole[:-3])
        said = skillet("trace", self.file)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("ends within a packet", said.stderr)
        self.assertIn("8 runs", said.stdout)

    def test_one_process_writes_a_file(self):
        with open(self.file, "w") as held:
            import fcntl
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assertIn("another process", self.bench("cpu", "--trace", self.file).stderr)


if __name__ == "__main__":
    unittest.main()
