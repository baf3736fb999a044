"""What a library may not leave changed in the process that loads it."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

LEAST_GROWTH = 4  # cases after each of which there is more of something: it leaks
LC_ALL = 6


def _environment(libc: ctypes.CDLL) -> str:
    at = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
    out: list[bytes] = []
    while at and at[len(out)]:
        out.append(at[len(out)] or b"")
    return repr(sorted(out))


def state() -> dict[str, str]:
    """By what people call it."""
    libc = ctypes.CDLL(None)
    libc.setlocale.restype = ctypes.c_char_p
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines() if ":" in line)
    try:
        folder = os.getcwd()
    except OSError as error:
        folder = str(error)
    out = {"working directory": folder, "locale": repr(libc.setlocale(LC_ALL, None)), "environment": _environment(libc),
           "denormal numbers": repr(sys.float_info.min / float("2")), "rounding mode": repr(1.0 + float("1e-20")) + repr(-1.0 - float("1e-20"))}
    return {**out, **{name: lines.get(key, "") for key, name in (("SigBlk", "blocked signals"), ("SigIgn", "ignored signals"), ("Umask", "umask"))}}


def counts() -> dict[str, int]:
    return {"open files": len(os.listdir("/proc/self/fd")), "threads": len(os.listdir("/proc/self/task"))}


def complaints(before: dict[str, str], after: dict[str, str], grown: list[dict[str, int]]) -> str:
    """GROWN: counts() after each case that the target took."""
    out = [f"it changed the {name}" for name, was in before.items() if after[name] != was]
    for name in grown[0] if len(grown) > LEAST_GROWTH else ():
        numbers = [one[name] for one in grown]
        if all(first < second for first, second in zip(numbers, numbers[1:])):
            out.append(f"it leaks {name}: {numbers[0]} after one case, {numbers[-1]} after {len(numbers)}")
    return "; ".join(out)
