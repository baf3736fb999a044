#!/usr/bin/env python3
"""skillet.conformance with folders, programs and delegates that do harm: each is a row, and the run goes on.

usage: runner_harm_test.py LIBPLANTED [--build DIR]
Exit code 77: there is no TensorFlow Lite runtime.
"""
import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from runner_environment import inside

PLANTED = inside(__file__, __doc__)[0]

from skillet.conformance import _cases, _run  # noqa: E402
from skillet.conformance.__main__ import main  # noqa: E402
from skillet.conformance._child import Case  # noqa: E402
from skillet.conformance._run import Runner  # noqa: E402
from skillet.conformance._targets import Target  # noqa: E402

NAME = "conv2d/u8/5x5/c3-8/k5x5/same"
PATIENCE_SECONDS = 30


def command(*words):
    """Exit code, output, errors."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(["--jobs", "2", *(str(word) for word in words)])
    return code, out.getvalue(), err.getvalue()


class InFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)


class Folders(InFolder):
    def test_what_is_no_file_is_a_row_with_its_reason(self):
        (self.folder / "right.tflite").write_bytes(_cases.build(NAME).graph.file())
        os.mkfifo(self.folder / "pipe.tflite")
        (self.folder / "device.tflite").symlink_to("/dev/zero")
        (self.folder / "loop.tflite").symlink_to("loop.tflite")
        (self.folder / "nowhere.tflite").symlink_to("nowhere")
        (self.folder / "folder.tflite").mkdir()
        (self.folder / "inner").mkdir()
        (self.folder / "inner/up").symlink_to("..")
        with (self.folder / "huge.tflite").open("wb") as file:
            file.truncate(10 << 30)
        begin = time.monotonic()
        code, out, err = command("--delegate", PLANTED, "--suite", self.folder, "--json", "-o", self.folder / "out")
        self.assertEqual(code, 0, err)
        self.assertLess(time.monotonic() - begin, PATIENCE_SECONDS)
        rows = {case["name"].removeprefix("nets/"): case for case in json.loads(out)["cases"]}
        self.assertEqual(rows.pop("right")["status"], "Pass")
        for name, words in dict(pipe="is no regular file", device="is no regular file", loop="symbolic links", nowhere="No such file", folder="is no regular file|directory",
                                huge="has 10737418240 bytes").items():
            row = rows.pop(name)
            self.assertEqual((row["status"], row["taken"]), ("Skip", None), row)
            self.assertRegex(row["reason"], f"the model cannot be read: .*({words})")
        self.assertEqual(rows, {})
        self.assertEqual(command("--delegate", PLANTED, "--suite", self.folder, "--continue", "-o", self.folder / "out")[0], 0)

    @unittest.skipUnless(os.geteuid() == 0, "whoever is not root cannot be another user")
    def test_an_unreadable_file_is_a_row(self):
        self.folder.chmod(0o755)
        (self.folder / "secret.tflite").write_bytes(b"x")
        (self.folder / "secret.tflite").chmod(0)
        process = os.fork()
        if process == 0:
            try:
                os.setuid(65534)
                with self.assertRaisesRegex(PermissionError, "secret"):
                    Case("nets/secret", str(self.folder / "secret.tflite")).content()
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(process, 0)[1], 0)


if __name__ == "__main__":
    sys.exit(0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1)
