#!/usr/bin/env python3
"""Tests how processes end on an emulated rocket driver that kills a process after any call that a stock kernel does not survive.

A file is closed right after its last job: by the program, by the end of the process or after a signal.

usage: process_end_test.py SKILLET LIBSKILLET_C
"""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SKILLET, LIBRARY = (str(Path(one).resolve()) for one in (sys.argv.pop(1), sys.argv.pop(1)))
ROOT = Path(__file__).parents[2]
DIGITS = str(ROOT / "models/digits.tflite")
SAID = "use after free in a stock kernel"
SECONDS = 120

# A program without Skillet: runs one job and waits for it; then BODY.
OWN_PROGRAM = """
import fcntl, mmap, os, struct, sys, time
fd = os.open("/dev/accel/accel0", os.O_RDWR)
def call(number, arguments):
    return fcntl.ioctl(fd, number, bytes(arguments))
call(0xC0186440, struct.pack("<IIQQ", 4096, 0, 0, 0))
_, handle, address, offset = struct.unpack("<IIQQ", call(0xC0186440, struct.pack("<IIQQ", 4096, 0, 0, 0)))
mmap.mmap(fd, 4096, offset=offset)[:8] = struct.pack("<Q", 0x0601 << 48)  # of no block: the job ends at once
import ctypes
task = ctypes.create_string_buffer(struct.pack("<II", address, 2))
out = ctypes.create_string_buffer(struct.pack("<I", handle))
job = ctypes.create_string_buffer(
    struct.pack("<QQQIIII", ctypes.addressof(task), 0, ctypes.addressof(out), 1, 8, 0, 1))
call(0x40186441, struct.pack("<QIIQ", ctypes.addressof(job), 1, 40, 0))
call(0x40106442, struct.pack("<IIq", handle, 0, 2**63 - 1))
"""
# A host of the C interface that ends without closing anything, as an interpreter does.
HOST = """
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
device, model = ctypes.c_void_p(), ctypes.c_void_p()
assert library.skillet_open(b"npu", ctypes.byref(device)) == 0
assert library.skillet_load_file(device, sys.argv[2].encode(), None, ctypes.byref(model)) == 0
assert library.skillet_run(model) == 0
"""
# One of two files has been idle for long when the process ends.
TWO_FILES = """
import ctypes, sys, time
library = ctypes.CDLL(sys.argv[1])
models = []
for i in range(2):
    device, model = ctypes.c_void_p(), ctypes.c_void_p()
    assert library.skillet_open(b"npu", ctypes.byref(device)) == 0
    assert library.skillet_load_file(device, sys.argv[2].encode(), None, ctypes.byref(model)) == 0
    assert library.skillet_run(model) == 0
    models.append(model)
time.sleep(0.2)
assert library.skillet_run(models[int(sys.argv[3])]) == 0
"""


def virtual(*command, misuse="abort", fail=None, trace=False):
    options = ["--on-misuse", misuse] + (["--fail", fail] if fail else []) + (["--trace"] if trace else [])
    return [SKILLET, "virtual", "--chip", "rk3588", *options, "--", *command]


def run(*command, **options):
    return subprocess.run(virtual(*command, **options), capture_output=True, text=True, timeout=SECONDS, check=False)


class ProgramsOfTheirOwn(unittest.TestCase):
    def ends(self, body, misuse="abort", release_ms=60_000):
        """Runs BODY. The default delay is a minute, so that a slow machine does not count as waiting."""
        done = run("env", f"SKILLET_VIRTUAL_RELEASE_MS={release_ms}", sys.executable, "-c", OWN_PROGRAM + body, misuse=misuse)
        return done.returncode, SAID in done.stderr

    def test_a_file_that_is_closed_right_after_its_job(self):
        for body in ("os.close(fd)", "", "sys.exit(0)"):  # closed by the program, or by the end of the process
            self.assertEqual(self.ends(body), (128 + signal.SIGABRT, True), body)
            self.assertEqual(self.ends(body, "report"), (0, True), body)

    def test_who_waits_is_not_punished(self):
        for body in ("time.sleep(0.06); os.close(fd)", "time.sleep(0.06)"):
            self.assertEqual(self.ends(body, release_ms=40), (0, False), body)


class Hosts(unittest.TestCase):
    def test_the_end_of_a_process_waits(self):
        for end in ("", "sys.exit(0)", "library.skillet_close_model(model)",
                    "if os.fork() == 0: sys.exit(0)\nassert os.wait()[1] == 0"):
            done = run(sys.executable, "-c", HOST + end, LIBRARY, DIGITS)
            self.assertEqual((done.returncode, SAID in done.stderr), (0, False), f"{end}: {done.stderr}")

    def test_the_end_of_a_process_waits_for_each_of_its_files(self):
        """Two files are open, and either one may have run last."""
        for last in (0, 1):
            done = run(sys.executable, "-c", TWO_FILES, LIBRARY, DIGITS, str(last))
            self.assertEqual((done.returncode, SAID in done.stderr), (0, False), f"{last}: {done.stderr}")


class Signals(unittest.TestCase):
    """After a signal the command closes its files, then ends with the signal's exit code."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        pictures = Path(cls.folder.name) / "pictures"
        pictures.mkdir()
        for i in range(2000):
            (pictures / f"{i}.png").symlink_to(ROOT / "models/digits/7.png")
        cls.capture = str(Path(cls.folder.name) / "many.skcap")
        subprocess.run([SKILLET, "run", DIGITS, "--device", "sim:rk3588", "--random", "1", "--repeat", "300", "--record", cls.capture],
                       check=True, stdout=subprocess.DEVNULL)
        cls.pictures = str(pictures)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def end(self, command, *numbers, started="submit: job", fail=None, between=0.8, frames=b""):
        """Sends the signals NUMBERS after the output STARTED.
        Returns the exit code, the trace, and the seconds since the first signal.

        FRAMES are sent on standard input, which stays open."""
        with subprocess.Popen(virtual(*command, trace=True, fail=fail), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
            process.stdin.buffer.write(frames)
            process.stdin.flush()
            lines = []
            for line in process.stderr:
                lines.append(line)
                if started in line:
                    break
            start = time.monotonic()
            for number in numbers:
                os.killpg(process.pid, number)  # as a terminal does, and `timeout`
                if number is not numbers[-1]:
                    time.sleep(between)
            rest = process.stderr.read()
            code = process.wait(timeout=SECONDS)
        return code, "".join(lines) + rest, time.monotonic() - start

    def test_every_verb_that_runs_jobs_ends_in_order(self):
        verbs = {
            "run": ["run", DIGITS, "--device", "npu", "--random", "1", "--repeat", "1000000"],
            "bench": ["bench", DIGITS, "--device", "npu", "--runs", "1000000"],
            "eval": ["eval", DIGITS, "--device", "npu", "--data", self.pictures],
            "tune": ["tune", DIGITS, "--device", "npu", "--runs", "100000"],
            "replay": ["replay", self.capture, "--device", "npu"],
        }
        for verb, arguments in verbs.items():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                with self.subTest(verb=verb, signal=number.name):
                    code, said, _ = self.end([SKILLET, *arguments], number)
                    self.assertEqual(code, 128 + number, said[-2000:])
                    self.assertNotIn(SAID, said)
                    self.assertIn("gem_close", said[said.rindex("submit: job"):], "buffers are closed")
                    self.assertIn(f"stopped by {number.name}", said)

    def test_a_read_that_waits_is_given_up(self):
        command = [SKILLET, "run", DIGITS, "--device", "npu", "--raw", "gray"]
        code, said, seconds = self.end(command, signal.SIGTERM, frames=bytes(28 * 28))
        self.assertEqual(code, 128 + signal.SIGTERM, said[-2000:])
        self.assertIn("gem_close", said[said.rindex("submit: job"):])
        self.assertNotIn(SAID, said)
        self.assertLess(seconds, SECONDS / 2)

    def test_no_file_is_left_in_part(self):
        with tempfile.TemporaryDirectory() as folder:
            pictures = [str(one) for one in Path(self.pictures).iterdir()]
            command = [SKILLET, "run", DIGITS, "--device", "npu", "--image", *pictures, "--output", folder + "/out"]
            code, said, _ = self.end(command, signal.SIGINT)
            self.assertEqual(code, 128 + signal.SIGINT, said[-2000:])
            sizes = {one.stat().st_size for one in Path(folder, "out").rglob("*") if one.is_file()}
            self.assertLessEqual(len(sizes), 1, sizes)

    def test_a_second_signal_does_not_end_what_the_kernel_would_not_survive(self):
        command = [SKILLET, "run", DIGITS, "--device", "npu", "--random", "1"]
        code, said, _ = self.end(command, signal.SIGINT, signal.SIGTERM, fail="prep_bo:6-*:EINTR")
        self.assertEqual(code, 128 + signal.SIGINT, said[-2000:])
        self.assertIn("waiting for the NPU", said)
        self.assertIn("gem_close", said[said.rindex("submit: job"):])
        self.assertNotIn(SAID, said)

    def test_what_was_ignored_stays_ignored(self):
        command = [SKILLET, "run", DIGITS, "--device", "npu", "--random", "1", "--repeat", "300"]
        code, said, _ = self.end(["nohup", *command], signal.SIGHUP)
        self.assertEqual(code, 0, said[-2000:])


if __name__ == "__main__":
    unittest.main()
