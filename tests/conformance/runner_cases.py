"""Shared by tests of skillet.conformance, in the Python that inside() of runner_environment.py starts."""
import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from skillet.conformance.__main__ import main

NAME = "conv2d/u8/5x5/c3-8/k5x5/same"
PATIENCE_SECONDS = 120  # also on a busy machine


def command(*words):
    """Runs skillet.conformance. Returns its exit code, output and errors."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(["--jobs", "2", *(str(word) for word in words)])
    return code, out.getvalue(), err.getvalue()


class InFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
