"""Functions of the `skillet` command for Python programs."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

from skillet._library import Error, IoFailed, c_text
from skillet._paths import command_path

if TYPE_CHECKING:
    from typing import Any


def decode(capture: str | os.PathLike[str], *options: str, chip: str | None = None) -> dict[str, Any]:
    """Decodes a capture, or the program that a model is compiled to for CHIP, with `skillet decode --json`.

    OPTIONS are further options of that command.
    Raises IoFailed if the capture or the command does not exist, and Error if the command fails."""
    if chip is not None:
        options = (*options, "--chip", chip)
    for word in (capture, *options):
        c_text(word, "decode")
    try:
        os.stat(capture)
        command = [command_path(), "decode", "--json", *options, "--", os.fspath(capture)]
    except OSError as cause:
        raise IoFailed(str(cause) if cause.strerror is None else f"{cause.filename}: {cause.strerror}") from cause
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Error(done.stderr.strip().removeprefix("skillet: ") or f"skillet decode: exit code {done.returncode}")
    decoded: dict[str, Any] = json.loads(done.stdout)
    return decoded
