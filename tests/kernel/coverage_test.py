#!/usr/bin/env python3
"""Tests `./x kernel` without a kernel: sums of gcov's counts, invalid options, and processes that end with it.

usage: coverage_test.py SOURCE"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "src/lab/mmio/linux"))
import coverage  # noqa: E402

PROGRAM = """int used(int a) {
  return a > 0 ? 2
               : 3;
}
int unused(void) {
  return 7;
}
int main(void) { return used(1) - 2; }
"""


# The fake hardware and the fake kernel write their process ids, and keep running.
DEVICE = """#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in --folder) folder=$2 ;; --device-tree) tree=$2 ;; esac
  shift
done
echo $$ > {0}/device.pid; echo "$folder" > {0}/folder
echo '/dts-v1/; / {{ }};' > "$tree"; : > "$folder/bus"
exec sleep 60
"""
KERNEL = """#!/bin/sh
echo $$ > {0}/kernel.pid
sleep 60 &
echo $! > {0}/of_kernel.pid.new; mv {0}/of_kernel.pid.new {0}/of_kernel.pid
exec sleep 60
"""


def run_kernel(*options, env=None):
    return subprocess.run([sys.executable, SOURCE / "src/lab/mmio/linux/kernel.py", *options], capture_output=True, text=True, check=False, timeout=60,
                          env=env)


def comes(condition, seconds):
    """Waits until CONDITION is true, at most SECONDS. Returns whether it is."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def has_ended(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rsplit(") ", 1)[1][0] in "ZX"
    except OSError:
        return True


def is_running(number):
    """Returns whether the process still runs after 5 s: killed processes take a moment to end."""
    return not comes(lambda: has_ended(number), 5)


def left_of(folder, names):
    """Kills those of the processes that still run, and returns their names."""
    left = [one for one in names if is_running(int((folder / f"{one}.pid").read_text()))]
    for one in left:
        os.kill(int((folder / f"{one}.pid").read_text()), signal.SIGKILL)
    return left


class Options(unittest.TestCase):
    def test_what_cannot_be_is_said_before_anything_starts(self):
        for options, said in ((["--vmlinux", "/nosuch"], "/nosuch"), (["--config", "/nosuch"], "/nosuch"),
                              (["--source", "/nosuch"], "/nosuch"), (["--coverage", "/nosuch/counts"], "/nosuch/counts"), (["--cores", "0"], "--cores"),
                              (["--cores", "-1"], "--cores"), (["--limit", "0"], "--limit"), (["--limit", "nan"], "--limit"), (["--memory", "much"], "--memory"),
                              (["--clock", "0"], "--clock"), (["--record", __file__], f"{__file__}: there is a file of that name"),
                              (["--vmlinux", "/bin/sh", "--source", "."], "--vmlinux with --source"),
                              (["--vmlinux", "/bin/sh", "--config", __file__], "--vmlinux with --config"),
                              (["--vmlinux", "/bin/sh", "--kasan"], "--vmlinux with --kasan")):
            with self.subTest(options):
                done = run_kernel("--built", *options, "--device", "/nosuch/device", "--", "true")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_a_chip_that_is_not_there_is_said_before_a_kernel_is_fetched(self):
        with tempfile.TemporaryDirectory() as name:
            device = Path(name) / "device"
            device.write_text('#!/bin/sh\necho "no chip $2" >&2\nexit 1\n')
            device.chmod(0o700)
            done = run_kernel("--built", "--device", device, "--chip", "a311e", "--", "true", env={**os.environ, "XDG_CACHE_HOME": name})
            self.assertEqual((done.returncode, done.stderr), (2, "no chip a311e\nkernel: the simulated hardware did not start\n"))

    def test_a_program_that_is_not_there_is_a_sentence(self):
        done = run_kernel("--vmlinux", "/bin/sh", "--device", "/nosuch/device", "--", "true")
        self.assertEqual((done.returncode, done.stderr), (1, "kernel: /nosuch/device: no program is there; ./x build makes it\n"))


class Ending(unittest.TestCase):
    def start(self, folder):
        for name, text in (("device", DEVICE), ("kernel", KERNEL), ("dtc", "#!/bin/sh\n")):
            (folder / name).write_text(text.format(folder))
            (folder / name).chmod(0o700)
        started = subprocess.Popen([sys.executable, SOURCE / "src/lab/mmio/linux/kernel.py", "--vmlinux", folder / "kernel", "--device", folder / "device",
                                    "--limit", "50", "--", "true"], stderr=subprocess.PIPE, text=True, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        comes(lambda: (folder / "of_kernel.pid").exists() or started.poll() is not None, 30)
        return started

    def test_a_signal_ends_all_that_was_started(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(number), tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                started = self.start(folder)
                started.send_signal(number)
                said = started.communicate(timeout=30)[1]
                left = left_of(folder, ("device", "kernel", "of_kernel"))
                self.assertEqual((left, started.returncode), ([], 128 + number), said)
                self.assertNotIn("Traceback", said)
                self.assertFalse(Path((folder / "folder").read_text().strip()).exists())

    def test_hardware_that_ends_is_said_and_ends_the_kernel(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            started = self.start(folder)
            os.kill(int((folder / "device.pid").read_text()), signal.SIGKILL)
            said = started.communicate(timeout=30)[1]
            left = left_of(folder, ("kernel", "of_kernel"))
            self.assertEqual((left, started.returncode), ([], 1), said)
            self.assertIn("kernel: the simulated hardware ended before the program (exit code -9)", said)
            self.assertFalse(Path((folder / "folder").read_text().strip()).exists())

    @unittest.skipUnless(shutil.which("setpriv"), "no setpriv")
    def test_without_a_clean_up_hardware_and_kernel_end_too(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            started = self.start(folder)
            started.kill()
            started.communicate(timeout=30)
            left = left_of(folder, ("device", "kernel"))
            os.kill(int((folder / "of_kernel.pid").read_text()), signal.SIGKILL)
            own = Path((folder / "folder").read_text().strip())
            comes(lambda: not own.exists(), 30)
            self.assertEqual((left, own.exists()), ([], False))

    def test_a_command_ends_with_all_that_it_started(self):
        """As in a build, where make starts compilers."""
        program = "import signal, sys; sys.path.insert(0, sys.argv[1]); import kernel; signal.signal(signal.SIGTERM, kernel.end); kernel.run(sys.argv[2:])"
        with tempfile.TemporaryDirectory() as name:
            pid = Path(name) / "pid"
            started = subprocess.Popen([sys.executable, "-c", program, SOURCE / "src/lab/mmio/linux", "sh", "-c",
                                        f"sleep 60 & sleep 0.3; echo $! > {pid}.new; mv {pid}.new {pid}; wait"])
            comes(pid.exists, 30)
            started.terminate()
            started.wait(30)
            left = int(pid.read_text())
            was_left = is_running(left)
            if was_left:
                os.kill(left, signal.SIGKILL)
            self.assertFalse(was_left)


@unittest.skipUnless(shutil.which("gcov") and shutil.which("gcc"), "no gcc and gcov")
class Coverage(unittest.TestCase):
    def test_counts_of_boots_are_added_up(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            vmlinux, out, counts = folder / "vmlinux-1", folder / "out", folder / "counts"
            place = "drivers/accel/rocket"
            (out / place).mkdir(parents=True)
            (counts / place).mkdir(parents=True)
            (out / place / "rocket_job.c").write_text(PROGRAM)
            subprocess.run(["gcc", "--coverage", "-c", f"{place}/rocket_job.c", "-o", f"{place}/rocket_job.o"], cwd=out, check=True)
            subprocess.run(["gcc", "--coverage", f"{place}/rocket_job.o", "-o", "program"], cwd=out, check=True)
            coverage.keep_notes(out, vmlinux)
            never = coverage.update(folder / "counts.json", vmlinux, counts)
            self.assertEqual(set(never["files"][f"{place}/rocket_job.c"]["functions"].values()), {0})
            for boot in (1, 2):
                subprocess.run(["./program"], cwd=out, check=True)
                (out / place / "rocket_job.gcda").replace(counts / place / "rocket_job.gcda")
                known = coverage.update(folder / "counts.json", vmlinux, counts)
                file = known["files"][f"{place}/rocket_job.c"]
                self.assertEqual(file["functions"], {"used": boot, "unused": 0, "main": boot})
                self.assertEqual(file["lines"]["6"], 0)
            self.assertEqual(known["boots"], 3)
            self.assertEqual(coverage.table(known)[1:], [f"{place + '/rocket_job.c':44} {'2 of 3':>12} {'3 of 5':>14}", "  never run: unused"])
            with self.assertRaisesRegex(RuntimeError, "vmlinux-1, not vmlinux-2"):
                coverage.update(folder / "counts.json", folder / "vmlinux-2", counts)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
