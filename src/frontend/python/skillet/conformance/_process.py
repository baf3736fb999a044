"""Checks what a library changes in the process that loads it, and limits that process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

LEAST_GROWTH = 4  # growth after so many cases is a leak
LC_ALL = 6
ADOPT = 36  # PR_SET_CHILD_SUBREAPER
LEAK_STEP_BYTES = 16 << 20  # of memory, after each case
MOST_PROCESSES = 1000  # of a child and all its descendants
MOST_FILE = 1 << 31  # bytes in a file that a target writes
PAGE_BYTES = resource.getpagesize()
MEMORY = f"memory (in steps of {LEAK_STEP_BYTES >> 20} MB)"
STATUS_LINES = {"SigBlk": "blocked signals", "SigIgn": "ignored signals", "Umask": "umask", "Cpus_allowed": "CPUs that it may use"}
LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


def text(path: str) -> str:
    """Returns the content of a file, or "" if it cannot be opened."""
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="ascii", errors="replace")
    return ""


def listed(path: str) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(path)
    return []


def adopt() -> None:
    """Makes this process, not init, the parent of daemons that are forked off from now on."""
    ctypes.CDLL(None).prctl(ADOPT, 1)


def children() -> set[int]:
    """Returns the child processes of this process. Empty if the kernel does not list them."""
    out: set[int] = set()
    for task in listed("/proc/self/task"):  # the children are listed for each thread
        out |= {int(one) for one in text(f"/proc/self/task/{task}/children").split()}
    return out


def end_children(known: set[int] | None = None) -> None:
    """Kills all child processes except KNOWN."""
    while strays := children() - (known or set()):  # repeated: a killed child's children become children of this process
        for stray in strays:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(stray, signal.SIGKILL)
                os.waitpid(stray, 0)


def descendants(process: int) -> list[int]:
    """Returns the process and its descendants. Stops soon after MOST_PROCESSES."""
    out = [process]
    for one in out:
        for task in listed(f"/proc/{one}/task"):
            out += [int(child) for child in text(f"/proc/{one}/task/{task}/children").split()]
        if len(out) > MOST_PROCESSES:
            break
    return out


def most_memory() -> int:
    """Returns the bytes of memory that a child and its descendants may use: half of the machine's."""
    return os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES // 2


def memory(process: int) -> int:
    """Returns the bytes of memory in use. Shared memory counts in proportion (PSS)."""
    for line in text(f"/proc/{process}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) << 10
    return 0


def resident(process: int) -> int:
    return int((text(f"/proc/{process}/statm").split() or "00")[1]) * PAGE_BYTES


def overuse(process: int) -> str:
    """Describes which limit a child and its descendants exceed; empty: none."""
    family = descendants(process)
    if len(family) > MOST_PROCESSES:
        return f"it had more than {MOST_PROCESSES} processes"
    most = most_memory()
    if sum(map(resident, family)) > most and sum(map(memory, family)) > most:  # memory() takes longer than resident()
        return f"it used more than {most >> 20} MB of memory, half of the machine's"
    return ""


def set_limits() -> None:
    """Limits this process and its children: a file cannot fill the disk, and the kernel kills them first when memory runs out."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_FILE if hard == resource.RLIM_INFINITY else min(hard, MOST_FILE), hard))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _environment(libc: ctypes.CDLL) -> str:
    at = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
    out: list[bytes] = []
    while at and at[len(out)]:
        out.append(at[len(out)] or b"")
    return repr(sorted(out))


def state() -> dict[str, str]:
    """Returns the state of the process that a library must not change, by its name in messages."""
    libc = ctypes.CDLL(None)
    libc.setlocale.restype = ctypes.c_char_p
    lines = dict(line.split(":", 1) for line in text("/proc/self/status").splitlines() if ":" in line)
    try:
        folder = os.getcwd()
    except OSError as error:
        folder = str(error)
    out = {"working directory": folder, "locale": repr(libc.setlocale(LC_ALL, None)), "environment": _environment(libc),
           "denormal numbers": repr(sys.float_info.min / float("2")), "rounding mode": repr(1.0 + float("1e-20")) + repr(-1.0 - float("1e-20")) + repr(1.0 - float("1e-20"))}  # rounded up, down, toward zero
    out.update({name: lines[key] for key, name in STATUS_LINES.items() if key in lines})
    out["resource limits"] = repr([resource.getrlimit(one) for one in LIMITS])
    out["timers"] = repr([signal.getitimer(one) != (0, 0) for one in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)])
    out["priority"] = repr(os.nice(0))
    return out


def counts() -> dict[str, int]:
    return {"open files": len(listed("/proc/self/fd")), "threads": len(listed("/proc/self/task")), "processes": len(children()), MEMORY: resident(os.getpid()) // LEAK_STEP_BYTES}


def complaints(before: dict[str, str], after: dict[str, str], grown: list[dict[str, int]]) -> str:
    """Lists what the target changed. GROWN: counts() after each case that the target computed."""
    out = [f"it changed the {name}" for name, was in before.items() if after.get(name, was) != was]
    for name in grown[0] if len(grown) > LEAST_GROWTH else ():
        numbers = [one[name] for one in grown]
        if all(first < second for first, second in zip(numbers, numbers[1:])):
            out.append(f"it leaks {name}: {numbers[0]} after one case, {numbers[-1]} after {len(numbers)}")
    running = sum(is_running(one) for one in children())
    if running:
        out.append(f"it leaves running processes: {running}")
    return "; ".join(out)


def is_running(process: int) -> bool:
    """Returns whether the process runs, and is not just waiting to be reaped."""
    return not (text(f"/proc/{process}/stat").rpartition(")")[2].split() or "Z")[0].startswith("Z")
