"""Reads the models of a folder, which may contain anything: pipes, devices, loops, files larger than the memory."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

BLOCK = 1 << 20
MOST_MODEL = (1 << 31) - 1  # bytes: the format has 32-bit offsets


def opened(path: Path) -> BinaryIO:
    """Opens a regular file. Raises OSError for anything else, such as a pipe without a writer or an endless device."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path}: is not a regular file")
    return os.fdopen(descriptor, "rb")


def read_model(path: Path) -> bytes:
    """Reads a model file. Raises OSError with the reason if it cannot be read."""
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_MODEL:
            raise OSError(f"{path}: has {size} bytes, a model has at most {MOST_MODEL}")
        return file.read()


def sha256(files: Iterable[tuple[str, Path]]) -> str:
    """Returns the SHA-256 of files and their names; empty if there are no files.

    A file that cannot be read counts by its error, and one too large for a model by its size."""
    made, is_any = hashlib.sha256(), False
    for name, path in files:
        is_any = True
        made.update(f"{name}\0".encode(errors="replace"))
        try:
            made.update(_content(path))
        except OSError as error:
            made.update(f"{type(error).__name__}".encode())
    return made.hexdigest()[:16] if is_any else ""


def _content(path: Path) -> bytes:
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_MODEL:
            return f"{size} bytes".encode()
        made = hashlib.sha256()
        while block := file.read(BLOCK):
            made.update(block)
        return made.digest()
