"""What a library may not leave changed in the process that loads it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

LEAST_GROWTH = 4  # cases after each of which there is more of something: it leaks
LC_ALL = 6
ADOPT = 36  # PR_SET_CHILD_SUBREAPER
LEAK_STEP_BYTES = 16 << 20  # of memory, after each case
MOST_PROCESSES = 1000  # of a child and all below it
MOST_FILE = 1 << 31  # bytes of a file that a target writes
PAGE_BYTES = resource.getpagesize()
MEMORY = f"memory (in steps of {LEAK_STEP_BYTES >> 20} MB)"
STATUS_LINES = {"SigBlk": "blocked signals", "SigIgn": "ignored signals", "Umask": "umask", "Cpus_allowed": "CPUs that it may use"}
LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


def text(path: str) -> str:
    """Nothing: no file may be opened."""
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="ascii", errors="replace")
    return ""


def listed(path: str) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(path)
    return []


def adopt() -> None:
    """Daemons that are forked off from now on become children of this process, not of init."""
    ctypes.CDLL(None).prctl(ADOPT, 1)


def children() -> set[int]:
    """Of this process; none where the kernel does not say."""
    out: set[int] = set()
    for task in listed("/proc/self/task"):  # each has its own
        out |= {int(one) for one in text(f"/proc/self/task/{task}/children").split()}
    return out


def end_children(known: set[int] | None = None) -> None:
    """All but KNOWN."""
    while strays := children() - (known or set()):  # again: those of a stray become ours when it ends
        for stray in strays:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(stray, signal.SIGKILL)
                os.waitpid(stray, 0)


def descendants(process: int) -> list[int]:
    """With the process itself; of too many, as many as are too many."""
    out = [process]
    for one in out:
        for task in listed(f"/proc/{one}/task"):
            out += [int(child) for child in text(f"/proc/{one}/task/{task}/children").split()]
        if len(out) > MOST_PROCESSES:
            break
    return out


def most_memory() -> int:
    """Bytes that a child and all below it may have: half of the machine's."""
    return os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES // 2


def memory(process: int) -> int:
    """Bytes in use, those that several processes share by their share."""
    for line in text(f"/proc/{process}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) << 10
    return 0


def resident(process: int) -> int:
    return int((text(f"/proc/{process}/statm").split() or "00")[1]) * PAGE_BYTES


def overuse(process: int) -> str:
    """What a child and those below it have too much of; empty: nothing."""
    family = descendants(process)
    if len(family) > MOST_PROCESSES:
        return f"it had more than {MOST_PROCESSES} processes"
    most = most_memory()
    if sum(map(resident, family)) > most and sum(map(memory, family)) > most:  # the latter takes longer to find out
        return f"it used more than {most >> 20} MB of memory, half of the machine's"
    return ""


def set_limits() -> None:
    """Of this process and those that it starts: a file may not fill the disk; who takes all memory is the first to be ended."""
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
    """By what people call it."""
    libc = ctypes.CDLL(None)
    libc.setlocale.restype = ctypes.c_char_p
    lines = dict(line.split(":", 1) for line in text("/proc/self/status").splitlines() if ":" in line)
    try:
        folder = os.getcwd()
    except OSError as error:
        folder = str(error)
    out = {"working directory": folder, "locale": repr(libc.setlocale(LC_ALL, None)), "environment": _environment(libc),
           "denormal numbers": repr(sys.float_info.min / float("2")), "rounding mode": repr(1.0 + float("1e-20")) + repr(-1.0 - float("1e-20")) + repr(1.0 - float("1e-20"))}  # up, down, toward zero
    out.update({name: lines[key] for key, name in STATUS_LINES.items() if key in lines})
    out["resource limits"] = repr([resource.getrlimit(one) for one in LIMITS])
    out["timers"] = repr([signal.getitimer(one) != (0, 0) for one in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)])
    out["priority"] = repr(os.nice(0))
    return out


def counts() -> dict[str, int]:
    return {"open files": len(listed("/proc/self/fd")), "threads": len(listed("/proc/self/task")), "processes": len(children()), MEMORY: resident(os.getpid()) // LEAK_STEP_BYTES}


def complaints(before: dict[str, str], after: dict[str, str], grown: list[dict[str, int]]) -> str:
    """GROWN: counts() after each case that the target took."""
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
    """And no more than not waited for."""
    return not (text(f"/proc/{process}/stat").rpartition(")")[2].split() or "Z")[0].startswith("Z")
