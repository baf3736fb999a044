#!/usr/bin/env python3
"""Ends runs of `./x kernel` early: by a signal at any moment, by a reader that closes, beside another run.

usage: ends_test.py SOURCE DEVICE [SEED TIMES]"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SOURCE, DEVICE = (Path(one).resolve() for one in sys.argv[1:3])
SEED, TIMES = (int(one) for one in (sys.argv[3:] or ("1", "12")))
KERNEL = [sys.executable, str(SOURCE / "src/lab/mmio/linux/kernel.py"), "--built", "--device", str(DEVICE), "--limit", "60"]


def processes_of(text):
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if text in line and int(process.name) != os.getpid():
            found.append(line)
    return found


class Ends(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="skillet-ends-")
        self.environment = {**os.environ, "TMPDIR": self.folder.name}

    def tearDown(self):
        self.folder.cleanup()

    def start(self, *program, stdout=subprocess.PIPE):
        return subprocess.Popen([*KERNEL, "--", *program], stdout=stdout, stderr=subprocess.PIPE, text=True, env=self.environment)

    def check_nothing_is_left(self):
        end = time.monotonic() + 10
        while (os.listdir(self.folder.name) or processes_of(self.folder.name)) and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual((os.listdir(self.folder.name), processes_of(self.folder.name)), ([], []))

    def test_a_signal_at_any_moment_leaves_nothing(self):
        draw = random.Random(SEED)
        for i in range(TIMES):
            number = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[i % 3]
            after = draw.random() * 1.5
            with self.subTest(number=number, after=after):
                process = self.start("sh", "-c", "echo begins; sleep 20")
                time.sleep(after)
                process.send_signal(number)
                begun = time.monotonic()
                process.communicate()
                self.assertLess(time.monotonic() - begun, 10)
                self.check_nothing_is_left()

    def test_hardware_that_is_told_to_end_ends_the_guest(self):
        process = self.start("sh", "-c", "echo begins; sleep 30")
        self.assertEqual(process.stdout.readline(), "begins\n")
        for number in (int(one.name) for one in Path("/proc").glob("[0-9]*")):
            try:
                line = Path(f"/proc/{number}/cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if line.startswith(str(DEVICE)) and self.folder.name in line:
                os.kill(number, signal.SIGTERM)
        begun = time.monotonic()
        _, said = process.communicate()
        self.assertLess(time.monotonic() - begun, 15)
        self.assertEqual(process.returncode, 1)
        self.assertIn("the simulated hardware was told to end before the program", said)
        self.check_nothing_is_left()

    def test_a_reader_that_goes_ends_the_guest(self):
        process = self.start("yes")
        self.assertEqual(process.stdout.read(2), "y\n")
        process.stdout.close()
        begun = time.monotonic()
        errors = process.stderr.read()
        self.assertEqual(process.wait(), 141, errors)
        self.assertLess(time.monotonic() - begun, 10)
        self.assertNotIn("Traceback", errors)
        self.check_nothing_is_left()

    def test_all_output_arrives_at_a_slow_reader(self):
        process = self.start("sh", "-c", "seq 1 5000; printf end")
        time.sleep(3)
        text, errors = process.communicate()
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(text, "".join(f"{one}\n" for one in range(1, 5001)) + "end")

    def test_two_at_once(self):
        both = [self.start("sh", "-c", f"sleep 1; echo {name}") for name in ("one", "two")]
        self.assertEqual([one.communicate()[0] for one in both], ["one\n", "two\n"])
        self.check_nothing_is_left()


if __name__ == "__main__":
    first = subprocess.run(KERNEL, capture_output=True, text=True, check=False)
    if first.returncode == 77:
        print(first.stderr)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
