"""What the verbs of the command that are Python share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CAPTURE_FILES = ("capture.json", "*.bin", "*.tflite")  # what is read of the folder of a capture


def verb_parser(name: str, *, description: str, epilog: str, usage: str | None = None) -> argparse.ArgumentParser:
    """Of `skillet NAME`: texts as they are written, options by their whole names only."""
    return argparse.ArgumentParser(
        prog=f"skillet {name}",
        usage=usage,
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def files_read(places: Iterable[str | os.PathLike[str]]) -> Iterator[Path]:
    """They themselves, and what those of them that are folders hold of a capture."""
    for place in map(Path, places):
        yield place
        if os.path.exists(place / CAPTURE_FILES[0]):
            yield from (file for pattern in CAPTURE_FILES for file in place.glob(pattern))


def would_overwrite(output: str | os.PathLike[str], places: Iterable[str | os.PathLike[str]]) -> bool:
    """Whether OUTPUT is a file that is read at PLACES, by whatever name or link."""
    return os.path.exists(output) and any(os.path.samefile(output, file) for file in files_read(places) if os.path.exists(file))
