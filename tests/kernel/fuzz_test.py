#!/usr/bin/env python3
"""Tests guests that write nonsense, crash, or run two at a time, and a device that crashes.

usage: fuzz_test.py SOURCE COMMAND DEVICE [SEED SECONDS]

The device must stay up, the next guest must find it in its initial state, and nothing may be left behind.
"""
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path

SOURCE, COMMAND, DEVICE = (Path(one).resolve() for one in sys.argv[1:4])
SEED, SECONDS = [*sys.argv[4:], *("1", "4")[len(sys.argv) - 4:]][:2]
sys.path.insert(0, str(SOURCE / "src/lab/mmio/linux"))
import kernel  # noqa: E402

GUEST = SOURCE / "tests/kernel/fuzz.py"
NODES = {"a311d": "/dev/dri/renderD128", "rk3588": "/dev/accel/accel0", "imx93": "/dev/accel/accel0"}
os.environ["SKILLET_PARTITION"] = "all"


def options(chip, *more):
    before, sys.argv = sys.argv, ["kernel", "--built", "--device", str(DEVICE), "--chip", chip, "--cores", "1", "--limit", "60", *more]
    try:
        return kernel.read_options()
    finally:
        sys.argv = before


def network(where, output):
    return [str(one) for one in (COMMAND, "run", SOURCE / "models/digits.tflite", "--image", SOURCE / "models/digits/3.png", "--unproven", "take", "--device",
                                 where, "--output", output)]


def memory_files():
    """Returns the files that hold a guest's memory. A guest that has booted has already unlinked its file."""
    return {file for folder in ("/dev/shm", "/tmp", os.environ.get("TMPDIR", "/tmp")) for file in Path(folder).glob("vm_file-*")}


def processes_of(folder):
    """Returns the command lines of processes that were started with files of `folder`."""
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            lines.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in lines if folder in line]


class Guest:
    """A boot on the hardware in `folder`, with a separate folder for its files."""

    def __init__(self, folder, arguments, device):
        self.own = Path(tempfile.mkdtemp(dir=folder))
        shutil.copy(folder / "board.dts", self.own)
        self.arguments, self.device, self.code, self.why = arguments, device, None, ""

    def without_driver(self):
        tree = self.own / "board.dts"
        tree.write_text(re.sub(r'(npu|iommu|reset-controller)(@[0-9a-f]+ \{\s+compatible = )"[^;]*;', r'\1\2"skillet,no-driver";', tree.read_text()))
        return self

    def run(self, program, limit=60):
        self.arguments.program, self.arguments.limit = program, limit
        self.code, self.why = kernel.boot(self.arguments, kernel.kernel_of(self.arguments), self.own, self.device)
        return self


class Device(unittest.TestCase):
    @contextmanager
    def board(self, chip, said=None):
        arguments = options(chip, "--guests", "9")
        text = io.StringIO()
        with tempfile.TemporaryDirectory(prefix="skillet-fuzz-") as name, redirect_stderr(text):
            shared = memory_files()
            with kernel.hardware(arguments, Path(name)) as device:
                yield Path(name), arguments, device
            self.assertEqual([one for one in ("bus", "lines") if (Path(name) / one).exists() and device.returncode != -9], [], "sockets are left")
            self.assertEqual(processes_of(name), [], "processes are left")
            self.assertEqual(memory_files() - shared, set(), "memory of a guest is left")
        self.assertFalse(Path(name).exists())
        if said is not None:
            said.append(text.getvalue())

    def check_as_new(self, chip, folder, arguments, device):
        """Runs a network on the same device: the bytes equal those of a new simulator."""
        for _ in range(4):
            guest = Guest(folder, arguments, device).run(network(NODES[chip], f"{folder}/kernel.npz"))
            if guest.code == 0:
                break
        self.assertEqual(guest.code, 0, guest.why + (guest.own / "stderr").read_text())
        subprocess.run(network(f"sim:{chip}", f"{folder}/sim.npz"), check=True, capture_output=True)
        self.assertEqual((folder / "kernel.npz").read_bytes(), (folder / "sim.npz").read_bytes())

    def module(self):
        path = kernel.module_of(kernel.kernel_of(options("a311d")))
        if not path.is_file():
            self.skipTest(f"no {path}: ./x kernel builds it where the kernel takes modules")
        return path

    def test_nonsense_in_all_registers(self):
        module = self.module()
        for chip in NODES:
            with self.subTest(chip=chip, seed=SEED), self.board(chip) as (folder, arguments, device):
                guest = Guest(folder, arguments, device).without_driver()
                guest.run(["sh", "-c", f"exec {sys.executable} {GUEST} {module} {chip} {SEED} {SECONDS} > {guest.own}/did"])
                errors = (guest.own / "stderr").read_text()
                self.assertIsNone(device.poll(), errors)
                self.assertEqual(guest.code, 0, guest.why + errors)
                self.assertRegex((guest.own / "did").read_text(), r"^[1-9]\d* rounds")
                print(f"{chip}: {(guest.own / 'did').read_text().strip()}", file=sys.__stderr__)
                self.check_as_new(chip, folder, arguments, device)

    def test_a_guest_that_dies_in_the_middle(self):
        module = self.module()
        for chip in NODES:
            with self.subTest(chip), self.board(chip) as (folder, arguments, device):
                guest = Guest(folder, arguments, device).without_driver().run([sys.executable, str(GUEST), str(module), chip, SEED, "60"], limit=2)
                self.assertEqual((guest.code, guest.why), (None, "the program did not end within 2 s (--limit)"))
                self.assertIsNone(device.poll())
                self.check_as_new(chip, folder, arguments, device)

    def test_a_second_guest_waits_for_the_first(self):
        for chip in NODES:
            with self.subTest(chip), self.board(chip) as (folder, arguments, device):
                first, second = Guest(folder, arguments, device), Guest(folder, options(chip), device)
                runs = [threading.Thread(target=first.run, args=(["sh", "-c", f"sleep 2; touch {folder}/over"],)),
                        threading.Thread(target=second.run, args=(["sh", "-c", f"test -e {folder}/over"],))]
                runs[0].start()
                time.sleep(1)
                runs[1].start()
                for one in runs:
                    one.join()
                self.assertEqual((first.code, second.code), (0, 0), first.why + second.why)

    def test_a_device_that_dies(self):
        for chip in NODES:
            with self.subTest(chip), self.board(chip) as (folder, arguments, device):
                threading.Timer(2, device.kill).start()
                start = time.monotonic()
                guest = Guest(folder, arguments, device).run(["sleep", "50"])
                self.assertEqual((guest.code, guest.why), (None, "the simulated hardware ended before the program (exit code -9)"))
                self.assertLess(time.monotonic() - start, 20)


if __name__ == "__main__":
    try:
        kernel.kernel_of(options("a311d"))
    except kernel.Unavailable as why:
        kernel.say(f"skipped: there is no kernel: {why}")
        sys.exit(kernel.SKIPPED)
    unittest.main(argv=sys.argv[:1], verbosity=2)
