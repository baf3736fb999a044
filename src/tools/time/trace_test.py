#!/usr/bin/env python3
"""Tests traces of real runs: `skillet bench|run|eval --trace`, SKILLET_TRACE, `skillet trace`.

usage: trace_test.py SKILLET      run at the top of the source tree
"""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path[:0] = ["src/frontend/python", "tests/integration"]
import long_cases  # noqa: E402
from skillet import _trace, _trace_events  # noqa: E402

SKILLET = str(Path(sys.argv.pop(1)).resolve())
DIGITS = "models/digits.tflite"


def skillet(*args, **variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith("SKILLET_")} | {"SKILLET_PARTITION": "all"} | variables
    return subprocess.run([SKILLET, *map(str, args)], capture_output=True, text=True, env=env, timeout=120)


def trace(*args):
    """Runs `skillet trace` in this process, which takes a tenth of the time."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = _trace.main([str(word) for word in args])
    return subprocess.CompletedProcess(args, code, out.getvalue(), err.getvalue())


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value):
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)


def event(when, kind, track=7, more=b""):
    return field(1, field(8, when) + field(10, 1) + field(11, field(9, kind) + field(11, track) + more))


class Trace(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "run.pftrace"

    def tearDown(self):
        self.folder.cleanup()

    def summary(self):
        said = trace(self.file, "--json")
        self.assertEqual(said.returncode, 0, said.stderr)
        return json.loads(said.stdout)

    def bench(self, device, *more, **variables):
        done = skillet("bench", DIGITS, "--device", device, "--runs", 7, "--warm-up", 1, "--without-cpu", "--unproven", "take", *more, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    @unittest.skipIf("SANITIZED" in os.environ, "builds with sanitizers have no libraries to preload")
    def test_lost_jobs_have_no_shares_of_operations(self):
        done = skillet("virtual", "--chip", "rk3588", "--fail", "submit:4-*:hang", "--", SKILLET, "bench", DIGITS, "--device", "npu", "--runs", 2, "--warm-up", 2,
                       "--without-cpu", "--unproven", "take", "--trace", self.file)
        self.assertIn("did not write its output", done.stderr)
        summary = self.summary()
        self.assertGreater(summary["npu_submissions"], 0)
        self.assertGreaterEqual(summary["npu_lost_submissions"], 2, "the first and once more")
        self.assertGreater(summary["npu_lost_ms"], 900)
        self.assertLess(summary["npu_busy"], 0.5)
        self.assertIn("1 job, lost", [one["name"] for one in summary["longest"][:4]])
        self.assertLess(next(one["ms"] for one in summary["categories"] if one["name"] == "operation"), 400)
        said = trace(self.file)
        self.assertRegex(said.stdout, "2 submissions more, .* long, lost: the NPU hung or was reset")

    def test_a_file_that_grows_is_read_as_it_was(self):
        self.bench("sim:a311d", "--trace", self.file)
        grown = [0]

        class Growing(io.FileIO):
            def read(self, size=-1):
                data = super().read(size)
                with open(self.name, "ab") as writer:
                    writer.write(data)
                grown[0] += 1
                if grown[0] > 50:
                    raise AssertionError("it chases the writer")
                return data

        slices = self.summary()["slices"]
        reader = _trace_events.Reader(lambda *_: None, lambda *_: None, lambda *_: None)
        with Growing(self.file) as file:
            reader.read(file)
        self.assertEqual((reader.slices, reader.is_cut), (slices, False))

    def test_a_trace_that_has_only_begun(self):
        header = self.begin_of_a_trace()
        self.file.write_bytes(header)
        done = trace(self.file)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.endswith("no events yet\n"), done.stdout)
        self.assertEqual((self.summary()["runs"], self.summary()["ms"]), (0, 0))

    def begin_of_a_trace(self):
        """Returns the packets before the first event."""
        self.bench("sim:a311d", "--trace", self.file)
        header = b""
        for packet in _trace_events.Packets(io.BytesIO(self.file.read_bytes())):
            if any(number == 11 for number, _ in _trace_events.fields(packet)):
                return header
            header += field(1, packet)
        raise AssertionError("no event")

    def test_zero_bytes_at_the_end_as_after_a_power_loss(self):
        self.bench("sim:a311d", "--trace", self.file)
        data = self.file.read_bytes()
        whole = self.summary()
        for end, zeros in ((len(data), 5000), (len(data) * 3 // 4, len(data) // 4), (len(data), 3 << 20)):
            self.file.write_bytes(data[:end] + bytes(zeros))
            done = trace(self.file, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("in zero bytes; what is before it is read", done.stderr)
            self.assertGreater(json.loads(done.stdout)["slices"], whole["slices"] // 2)
        self.file.write_bytes(data + bytes(5000) + b"x")
        self.assertEqual(trace(self.file).returncode, 2)

    def test_slices_inside_longer_ones_of_another_track_do_not_shorten_them(self):
        tracks = [_trace.Intervals(), _trace.Intervals()]
        tracks[0].add(0, 100)
        tracks[1].add(10, 20)
        tracks[1].add(30, 40)
        self.assertEqual(_trace.covered(tracks), 100)

    def test_standard_input(self):
        self.bench("sim:a311d", "--trace", self.file)
        with open(self.file, "rb") as file:
            done = subprocess.run(f"cat | {SKILLET} trace - --json", shell=True, stdin=file, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(json.loads(done.stdout), self.summary() | {"file": "standard input"})

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
                self.assertLessEqual({"session", "compile", "copy", "submit", "wait", "npu", "operation", "unit", "simulator"}, set(by_name))
                self.assertEqual("cpu" in by_name, device != "sim:imx93")  # it computes the whole network
                self.assertEqual(by_name["operation"]["slices"] % 8, 0)
                unit, operation = by_name["unit"], by_name["operation"]  # the slowest unit takes the operation's time, the others less
                self.assertLess(unit["ms"] / unit["slices"], 0.95 * operation["ms"] / operation["slices"])
                # Own time is at most the total time, and the time of a category at most that of the trace.
                for one in summary["categories"]:
                    self.assertLessEqual(one["own_ms"], one["ms"] + 1e-6)
                    self.assertLessEqual(one["own_ms"], summary["ms"] * summary["tracks"])
                svg = self.file.with_suffix(".svg")
                self.assertEqual(trace(self.file, "--svg", svg).returncode, 0)
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
        """The run also records a program, which does not count as a job."""
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
            done = trace(self.file)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(f"{self.file}: it is no trace", done.stderr)
        done = trace(self.folder.name + "/none")
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
        said = trace(self.file)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("ends within a packet", said.stderr)
        self.assertIn("8 runs", said.stdout)

    def test_files_of_an_npu_with_several_cores_have_tracks_of_their_own(self):
        if "rk3588" not in skillet("devices", "--all").stdout:
            self.skipTest("no NPU with several cores is built in")
        self.bench("sim:rk3588", "--cores", 3, "--trace", self.file)
        svg = self.file.with_suffix(".svg")
        self.assertEqual(trace(self.file, "--svg", svg).returncode, 0)
        names = [one.text for one in xml.parse(svg).iter() if (one.text or "").startswith("sim:rk3588")]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual([name for name in names if name.endswith(" NPU")], [f"sim:rk3588 file {i} NPU" for i in (1, 2, 3)])

    def most_kib(self, *args):
        done = subprocess.Popen([SKILLET, "trace", *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(done.pid, 0)
        done.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(done.returncode, 0)
        return usage.ru_maxrss

    def test_long_a_trace_takes_no_more_memory(self):
        self.bench("sim:a311d", "--trace", self.file)
        whole, svg = self.file.read_bytes(), self.file.with_suffix(".svg")
        before = self.most_kib(self.file, "--svg", svg)
        self.file.write_bytes(whole * (1 + (1 << 20) // len(whole)))
        self.assertLess(self.most_kib(self.file, "--svg", svg) - before, 4 << 10)

    def test_a_pipe_is_read_and_not_drawn(self):
        self.bench("cpu", "--trace", self.file)
        for more, code in ((), 0), (("--svg", self.file.with_suffix(".svg")), 2):
            done = subprocess.run([SKILLET, "trace", "/dev/stdin", *more], input=self.file.read_bytes(), capture_output=True, timeout=60)
            self.assertEqual((done.returncode, b"a picture needs a file" in done.stderr), (code, code == 2), done.stderr)

    def test_what_other_programs_write(self):
        begin, end, name = 1, 2, field(23, b"mine")
        for bytes_, code, said in (
                (event(5, begin, more=name) + event(9, end), 0, ""),
                (event(9, begin, more=name) + event(5, end), 0, "times of 'track 7' are not in order"),
                (event(5, begin) * 1001, 2, "more than 1000 slices are open at once"),
                (varint(1 << 3 | 2) + varint(1 << 25), 2, "a packet of 33554432 bytes"),
                (event(5, begin) + field(2, b"x"), 2, "it is no trace")):
            self.is_read(bytes_, code, said)

    def test_long_more_than_is_read(self):
        for bytes_, what in (event(5, 1) + b"".join(field(1, field(60, field(1, i))) for i in range(131073)), "tracks"), (
                field(1, b"".join(field(12, field(2, field(1, i))) for i in range(131073))), "names"):
            self.is_read(bytes_, 2, f"more than 131072 {what} are not read")

    def is_read(self, bytes_, code, said):
        with self.subTest(said):
            self.file.write_bytes(bytes_)
            done = trace(self.file)
            self.assertEqual((done.returncode, said in done.stderr), (code, True), done.stderr)

    def test_one_process_writes_a_file(self):
        with open(self.file, "w") as held:
            import fcntl
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assertIn("another process", self.bench("cpu", "--trace", self.file).stderr)


if __name__ == "__main__":
    long_cases.main()
