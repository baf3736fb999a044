#!/usr/bin/env python3
"""Tests the program skillet-npu-device: a signal ends it at once whatever its clients do, and invalid options give one sentence.
usage: device_test.py DEVICE"""
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

DEVICE = Path(sys.argv[1]).resolve()
KICK = 12


class Served:
    """A device in a temporary folder."""

    def __init__(self, *options):
        self.folder = tempfile.TemporaryDirectory(prefix="skillet-device-")
        self.device = subprocess.Popen([DEVICE, "--chip", "a311d", "--folder", self.folder.name, *options], stderr=subprocess.PIPE, text=True)
        while "listening" not in (line := self.device.stderr.readline()) and line:
            pass
        self.sockets = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.device.kill()
        self.device.communicate()
        for one in self.sockets:
            one.close()
        self.folder.cleanup()

    def connect(self, side):
        one = socket.socket(socket.AF_UNIX)
        one.connect(f"{self.folder.name}/{side}")
        self.sockets.append(one)
        return one

    def ended(self, number):
        """Sends signal NUMBER. Returns the device's output, its exit code and the seconds until it ended."""
        begun = time.monotonic()
        self.device.send_signal(number)
        said = self.device.communicate(timeout=10)[1]
        return said, self.device.returncode, time.monotonic() - begun


def half_a_message(served):
    served.connect("bus").send(struct.pack("<IB", 1, 1))


def blocking_kicks(served):
    for side in ("bus", "lines"):
        kick = os.eventfd(0, 0) if hasattr(os, "eventfd") else os.pipe()[0]
        socket.send_fds(served.connect(side), [struct.pack("<IIIQ", KICK, 1, 8, 0)], [kick])
        os.close(kick)
    time.sleep(0.1)


def nobody(_served):
    pass


class Device(unittest.TestCase):
    def test_a_signal_ends_it_at_once(self):
        for clients in (nobody, half_a_message, blocking_kicks):
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                with self.subTest(clients.__name__, number=number), Served() as served:
                    clients(served)
                    said, code, seconds = served.ended(number)
                    self.assertEqual(code, 0, said)
                    self.assertLess(seconds, 1)
                    self.assertIn("a311d: 0 jobs", said)
                    self.assertEqual(os.listdir(served.folder.name), [])

    def test_a_flood_is_told_in_some_lines(self):
        with Served() as served:
            for _ in range(100):
                one = served.connect("bus")
                one.send(struct.pack("<III", 99, 1, 0))
                self.assertEqual(one.recv(1), b"")
            said = served.ended(signal.SIGTERM)[0]
        self.assertEqual(said.count("is dropped: vhost-user: message 99"), 20, said)
        self.assertIn("80 more warnings about guests were left out", said)

    def test_cores_are_one_to_sixteen(self):
        for cores, is_taken in ((0, False), (1, True), (16, True), (17, False)):
            with self.subTest(cores=cores):  # no such folder: what is taken ends there
                done = subprocess.run([DEVICE, "--chip", "rk3588", "--folder", "no/such/folder", "--cores", str(cores)],
                                      capture_output=True, text=True, timeout=60)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("no/such/folder" if is_taken else "not in range 1 to 16", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
