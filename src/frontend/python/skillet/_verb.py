"""Functions that the command's verbs written in Python share."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CAPTURE_FILES = ("capture.json", "*.bin", "*.tflite")  # the files of a capture that verbs read from its folder


def verb_parser(name: str, *, description: str, epilog: str, usage: str | None = None) -> argparse.ArgumentParser:
    """Returns the parser of `skillet NAME`: texts keep their line breaks, options cannot be abbreviated."""
    return argparse.ArgumentParser(
        prog=f"skillet {name}",
        usage=usage,
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def files_read(places: Iterable[str | os.PathLike[str]]) -> Iterator[Path]:
    """Yields PLACES, and the capture's files in those of them that are folders."""
    for place in map(Path, places):
        yield place
        if os.path.exists(place / CAPTURE_FILES[0]):
            yield from (file for pattern in CAPTURE_FILES for file in place.glob(pattern))


def would_overwrite(output: str | os.PathLike[str], places: Iterable[str | os.PathLike[str]]) -> bool:
    """Returns whether OUTPUT is one of the files read at PLACES, also through a link."""
    return os.path.exists(output) and any(os.path.samefile(output, file) for file in files_read(places) if os.path.exists(file))
