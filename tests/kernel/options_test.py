#!/usr/bin/env python3
"""Tests invalid options of `./x kernel`, how it passes on a program's output, and that it leaves nothing behind; without a kernel.

usage: options_test.py SOURCE DEVICE"""
import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path
from unittest import mock

SOURCE, DEVICE = (Path(one).resolve() for one in sys.argv[1:3])
LINUX = SOURCE / "src/lab/mmio/linux"
sys.path.insert(0, str(LINUX))
import limits  # noqa: E402
import output  # noqa: E402

WRONG = {
    ("--memory", "1000G"): "1000G: must be a size from 32M to 64G",
    ("--memory", "1K"): "1K: must be a size from 32M to 64G",
    ("--memory", "32767K"): "must be a size from 32M to 64G",
    ("--slow", "1000"): "1000: must be a whole number from 1 to 200",
    ("--slow", "0"): "must be a whole number from 1 to 200",
    ("--cores", "99999999999"): "99999999999: must be a whole number from 1 to 16",
    ("--clock", "nan"): "nan: not a number above 0",
    ("--fault", ""): "--fault: is empty",
}
# Refused by the device, which is asked before a kernel is built.
REFUSED = {
    ("--clock", "inf"): "--clock inf: must be from 0.001 to 4294 MHz",
    ("--clock", "1e-9"): "--clock 1e-09: must be from 0.001 to 4294 MHz",
    ("--chip", "a311d,quirk="): "must be NAME,quirk=NAME[+NAME...]",
    ("--fault", "hang@1,"): "fault '': must be KIND@JOB",
    ("--fault", "hang@1,bus_error@1"): "fault 'bus_error@1': job 1 has one already",
    ("--chip", "a311d") * 5: "Linux's etnaviv takes 4 cores at most",
}
GUEST = f"printf 'boot 1\\nboot {output.MARKER.decode()}\\r\\n'; "


def tool(*options, **environment):
    return subprocess.run([sys.executable, LINUX / "kernel.py", "--device", DEVICE, *options], capture_output=True, text=True, check=False, timeout=60,
                          env={**os.environ, **environment})


class Options(unittest.TestCase):
    def test_wrong_ones_are_a_sentence(self):
        for options, said in WRONG.items():
            with self.subTest(options):
                done = tool("--check", *options, "--", "true")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr)

    def test_the_hardware_refuses_what_no_board_has(self):
        with tempfile.TemporaryDirectory() as folder:
            for options, said in REFUSED.items():
                with self.subTest(options):
                    done = tool("--built", *options, "--", "true", XDG_CACHE_HOME=folder)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn(said, done.stderr)

    def test_a_chip_that_linux_does_not_run_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            for chip, said in {"rk3576": "does not support 'rockchip,rk3576-rknn-core': no node appears", "s905d3": "has no row for this core",
                               "a311d": "", "rk3588": ""}.items():
                done = tool("--built", "--chip", chip, "--", "true", XDG_CACHE_HOME=folder)
                self.assertEqual(done.returncode, 77, done.stderr)
                self.assertIn(said, done.stderr)
                self.assertEqual("Linux's rocket" in done.stderr or "no row" in done.stderr, bool(said), done.stderr)

    def test_folders_that_the_guest_does_not_see(self):
        with tempfile.TemporaryDirectory(prefix="skillet 'quote") as strange, tempfile.TemporaryDirectory(dir="/dev/shm") as hidden:
            for folder, said in {strange: "names with spaces, quotes", hidden: "the guest has a /dev of its own"}.items():
                done = tool("--check", "--", "true", TMPDIR=folder)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr)

    def test_memory_needs_room(self):
        rooms = {"/dev/shm": 40, "/tmp": 100, "/mine": None}
        with mock.patch.object(limits, "free_mb", rooms.get), mock.patch.object(tempfile, "tempdir", "/tmp"), \
                mock.patch.dict(os.environ, {"TMPDIR": "/mine"}), mock.patch.object(os, "statvfs", lambda _: types.SimpleNamespace(f_bavail=100, f_frsize=1 << 20)):
            self.assertEqual([limits.memory_place(one) for one in (40, 41, 100, 101)], ["/dev/shm", "/tmp", "/tmp", None])
            self.assertEqual(list(limits.wrong_places(101)), ["--memory 101M: 101 MB must be free for the guest's memory: /mine has 0 MB, /dev/shm has 40 MB, "
                                                              "/tmp has 100 MB; set TMPDIR, or take less memory"])

    def test_a_program_is_whole_to_its_end(self):
        with tempfile.TemporaryDirectory() as folder:
            cut = Path(folder) / "cut"
            for size, whole in {None: True, 0: False, 63: False, -1: False}.items():
                cut.write_bytes(DEVICE.read_bytes()[:size])
                cut.chmod(0o700)
                self.assertEqual(limits.is_whole(cut), whole, size)
            self.assertIn("this is no whole program", tool("--check", "--vmlinux", cut, "--", "true").stderr)
            cut.write_text("#!/bin/sh\n")
            self.assertTrue(limits.is_whole(cut))


class Passing(unittest.TestCase):
    """Passes on the output of a process that replaces the guest."""

    def passed(self, script, errors=""):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(io.StringIO()) as out:
            path = Path(folder) / "stderr"
            # It ends after its errors are written, however busy this machine is.
            with subprocess.Popen(["sh", "-c", f"{GUEST}{script}\nread _"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as machine:
                passed = output.Output(machine, path, False)
                path.write_text(errors)
                machine.stdin.close()
                passed.end()
            self.assertIsNone(passed.failure)
            return out.getvalue(), said.getvalue()

    def test_all_behind_the_marker(self):
        self.assertEqual(self.passed("printf 'one\\ntwo'", "errors"), ("one\ntwo", "errors"))

    def test_a_line_without_end_is_passed_as_it_comes(self):
        reader, writer = os.pipe()
        with tempfile.TemporaryDirectory() as folder, open(writer, "w", encoding="utf-8") as out, contextlib.redirect_stdout(out), \
                subprocess.Popen(["sh", "-c", GUEST + "printf abc; exec sleep 30"], stdout=subprocess.PIPE) as machine:
            passed = output.Output(machine, Path(folder) / "stderr", False)
            self.assertEqual(os.read(reader, 3), b"abc")
            machine.kill()
            passed.end()
        os.close(reader)

    def test_a_reader_that_goes_is_a_failure_at_once(self):
        reader, writer = os.pipe()
        with tempfile.TemporaryDirectory() as folder, open(writer, "w", encoding="utf-8") as out, contextlib.redirect_stdout(out), \
                subprocess.Popen(["sh", "-c", GUEST + "exec yes"], stdout=subprocess.PIPE) as machine:
            passed = output.Output(machine, Path(folder) / "stderr", False)
            os.read(reader, 2)
            os.close(reader)
            end = time.monotonic() + 10
            while passed.failure is None and time.monotonic() < end:
                time.sleep(0.01)
            machine.kill()
            self.assertEqual(passed.why(), (141, ""))

    def test_errors_that_were_read_take_no_room(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
            path = Path(folder) / "stderr"
            path.write_bytes(b"12345678\n" * 1000000)
            output.Output(types.SimpleNamespace(poll=lambda: 0), path, True).end()
            self.assertEqual(len(said.getvalue()), 9000000)
            self.assertLess(path.stat().st_blocks * 512, 3 << 20)


class Leaving(unittest.TestCase):
    def test_a_folder_goes_with_its_process(self):
        script = f"import sys, time; sys.path.insert(0, {str(LINUX)!r}); import kernel\nwith kernel.own_folder('skillet-kernel-') as one: print(one, flush=True); time.sleep(60)"
        for number in (signal.SIGKILL, signal.SIGINT):
            with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
                folder = Path(process.stdout.readline().strip())
                self.assertTrue(folder.is_dir())
                process.send_signal(number)
                process.wait()
            end = time.monotonic() + 10
            while folder.exists() and time.monotonic() < end:
                time.sleep(0.01)
            self.assertFalse(folder.exists(), number)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
