"""Removes what a killed run (SIGKILL) leaves: its folder for temporary files, and the processes that its targets started.

A separate process waits for the end of the run. It recognizes the processes that targets started: either the folder is in their environment
(TMPDIR), or they are forks of the run's children, which map a file of the folder into memory.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from skillet.conformance._process import listed, text

if TYPE_CHECKING:
    from collections.abc import Iterable

MARK = "mark"
ROUNDS, ROUND_SECONDS = 100, 0.01  # for processes that start others while they are killed


class Guard:
    def __init__(self, stops: Iterable[signal.Signals]) -> None:
        """STOPS: signals that the guard ignores. The caller blocks them during this call."""
        self.folder = tempfile.mkdtemp(prefix="conformance-")
        try:
            (Path(self.folder) / MARK).write_bytes(bytes(mmap.PAGESIZE))
        except OSError:
            remove(self.folder)
            raise
        end, self._ours = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            wait(end, self.folder, stops)
        os.close(end)

    def close(self) -> None:
        """Ends the guard after a run whose processes have all ended, and removes the folder."""
        with contextlib.suppress(OSError):  # the guard was killed
            os.write(self._ours, b".")
        os.close(self._ours)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._process, 0)
        remove(self.folder)


def remove(folder: str) -> None:
    """Removes the folder with everything in it. Uses rm for about 1,000 nested folders, which exceed Python's recursion limit."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:
        subprocess.run(["rm", "-rf", "--", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def mark(folder: str) -> mmap.mmap:
    """Marks this process and its forks by a mapped file. The caller keeps the result."""
    with (Path(folder) / MARK).open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def wait(end: int, folder: str, stops: Iterable[signal.Signals]) -> None:
    """Waits for the end of the run, in the guard. Does not return."""
    try:
        os.setsid()
        for number in stops:
            signal.signal(number, signal.SIG_IGN)
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):  # a reader of the run's output need not wait for the guard
            os.dup2(nothing, standard)
        os.closerange(3, end)
        os.closerange(end + 1, os.sysconf("SC_OPEN_MAX"))
        if os.read(end, 1) != b".":
            end_marked(folder)
            remove(folder)
    finally:
        os._exit(0)


def end_marked(folder: str) -> None:
    for _ in range(ROUNDS):
        strays = [int(one) for one in listed("/proc") if one.isdigit() and int(one) != os.getpid() and is_marked(one, folder)]
        for stray in strays:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(stray, signal.SIGKILL)
        if not strays:
            return
        time.sleep(ROUND_SECONDS)


def is_marked(process: str, folder: str) -> bool:
    return f"TMPDIR={folder}/" in text(f"/proc/{process}/environ") or f"{folder}/{MARK}" in text(f"/proc/{process}/maps")
