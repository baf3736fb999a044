"""Runs cases in child processes: starts them, reads results, applies timeouts and retries. One thread; each child has a group of cases."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import selectors
import signal
import struct
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from skillet._result_files import CRASH, FAIL, FLAKE, PASS, SKIP, TIMEOUT
from skillet.conformance._child import RUNS, Case, work
from skillet.conformance._guard import Guard, mark, remove
from skillet.conformance._judge import SUMS, Verdict, compare, tolerance_of
from skillet.conformance._process import adopt, children, end_children, overuse, set_limits
from skillet.conformance._targets import MOST_SAID, Unusable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from skillet.conformance._targets import Target

GROUP = 25
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
TICK_SECONDS = 0.05
USE_SECONDS = 0.25  # between two checks of a child's processes and memory
END_PATIENCE_SECONDS = 10.0  # for the end of a process, until one exceeds it
MOST_HEAD, MOST_MESSAGE = 1 << 20, 1 << 31
MOST_SECONDS = 1e9
MOST_WORDS = 2000  # bytes of a child's output that are kept of its beginning, and of its end
MOST_TOLD = 500  # characters of them in an error
END = "process-end/"  # begins names of rows that are not cases
LISTED_IN_SKIPS = "listed in --skips"  # a reason
COLOR = re.compile(r"\x1b\[[\d;]*m")
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # signals that end a run so that --continue can resume it
HOPELESS = 10  # so many children in a row that end before their first case end the run


@dataclass
class Result:
    name: str
    status: str
    seconds: float = 0.0
    reason: str = ""
    taken: bool | None = None  # whether the target took the case; None: unknown
    largest: float = 0.0
    off: int = 0
    values: int = 0
    picture: list[list[float]] | None = None
    first: str = ""  # the status of the first try, if there was a second

    def __post_init__(self) -> None:
        """Removes characters from the reason that would control a terminal or split a line of a report."""
        self.reason = printable(self.reason)


class Stopped(Exception):
    """The run cannot go on."""


@dataclass
class Slot:
    process: int
    results: int  # the parent's ends of the pipes
    words: int
    cases: list[tuple[int, Case]]
    deadline: float
    scratch: str  # the child's folder for temporary files
    buffer: bytearray = field(default_factory=bytearray)
    first: bytes = b""
    said: bytes = b""  # the last bytes
    said_bytes: int = 0
    current: int = -1  # index of the running case
    stage: str = "starting"
    misuse: str = ""  # why it was killed
    next_look: float = 0.0  # time of the next check of processes and memory
    changed: str = ""  # what changed in its process
    changed_by: int = -1  # index of the first case after which it had changed; -1: unknown
    began_any: bool = False
    has_loaded: bool = False  # the target is loaded: messages may be forged from here on
    status: int | None = None  # from waitpid()
    done: set[int] = field(default_factory=set)

    def hear(self, data: bytes) -> None:
        self.first = (self.first + data)[:MOST_WORDS]
        self.said = (self.said + data)[-MOST_WORDS:]
        self.said_bytes += len(data)

    @property
    def words_kept(self) -> bytes:
        return self.said if self.said_bytes <= MOST_WORDS else self.first + b"\n" + self.said


class Runner:
    """Runs cases on a target.

    TELL gets each result once. Before that, a failure that RETRY selects is run once more, in a process of its own."""

    def __init__(self, target: Target, tell: Callable[[Result], None], jobs: int = 2, timeout: float = 60, tolerance: dict[str, float] | None = None,
                 retry: Callable[[Result], bool] = lambda result: False, group: int = GROUP) -> None:
        self._target, self._tell, self._jobs, self._timeout = target, tell, jobs, timeout
        self._tolerance, self._retry, self._group = tolerance or {}, retry, group
        self._queue: deque[list[tuple[int, Case]]] = deque()
        self._expected: dict[int, list[Any]] = {}
        self._hints: dict[int, dict[str, Any]] = {}  # for the comparison
        self._cases: dict[int, Case] = {}
        self._tried: dict[int, Result] = {}
        self._slots: list[Slot] = []
        self._others: set[int] = set()
        self._folder = ""  # for temporary files
        self._selector = selectors.DefaultSelector()
        self.said = ""  # output of a child
        self.warned = ""  # the target's message about an unknown option
        self._hopeless, self._has_begun, self._end_patience = 0, False, END_PATIENCE_SECONDS

    def run(self, cases: Iterable[Case]) -> None:
        """Runs the cases. Raises Unusable if the target cannot be loaded, and Stopped if children repeatedly end before any case."""
        adopt()
        guard = None
        try:
            with stops_wait() as _:
                guard = started(lambda: Guard(STOPS))
            self._folder = guard.folder
            self._run(cases)
        finally:
            if guard is not None:
                with stops_wait() as _:
                    guard.close()

    def _run(self, cases: Iterable[Case]) -> None:
        self._others = children()
        numbered = list(enumerate(cases))
        self._cases = dict(numbered)
        self._queue.extend(numbered[at:at + self._group] for at in range(0, len(numbered), self._group))
        try:
            while self._queue or self._slots:
                while self._queue and len(self._slots) < self._jobs:
                    self._start(self._queue.popleft())
                self._turn()
        except (Stopped, KeyboardInterrupt):
            for result in self._tried.values():  # they are not tried again
                self._tell(result)
            raise
        finally:
            for slot in list(self._slots):
                self._kill(slot)
                self._forget(slot)
            self._selector.close()

    def _start(self, cases: list[tuple[int, Case]]) -> None:
        with stops_wait() as before:
            self._begin(cases, before)

    def _begin(self, cases: list[tuple[int, Case]], mask: set[Any]) -> None:
        (our_results, results), (our_words, words) = os.pipe(), os.pipe()
        scratch = started(lambda: tempfile.mkdtemp(dir=self._folder))
        process = os.fork()
        if process == 0:
            self._become(cases, results, words, scratch, mask)
        for descriptor in (results, words):
            os.close(descriptor)
        slot = Slot(process, our_results, our_words, cases, time.monotonic() + self._timeout, scratch)
        for descriptor in (our_results, our_words):
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ, slot)
        self._slots.append(slot)

    def _become(self, cases: list[tuple[int, Case]], results: int, words: int, scratch: str, mask: set[Any]) -> None:
        """Runs the cases, in the child. It closes all inherited files except the pipes, such as the lists of results and the folder's lock."""
        try:
            os.setsid()
            ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
            adopt()
            set_limits()
            marked = mark(self._folder)  # noqa: F841  # until the end
            for number in STOPS:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            tempfile.tempdir = os.environ["TMPDIR"] = scratch
            nothing = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((nothing, 0), (words, 1), (words, 2)):
                os.dup2(source, target)
            os.closerange(3, results)
            os.closerange(results + 1, os.sysconf("SC_OPEN_MAX"))
            work(cases, set(self._expected), self._target, results)
        except BaseException as error:  # nothing may return into the parent's stack
            with contextlib.suppress(OSError):
                os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(99)

    def _turn(self) -> None:
        for key, _ in self._selector.select(TICK_SECONDS):
            slot = key.data
            if key.fd == slot.words:
                self._hear(slot)
            else:
                self._receive(slot)
        for slot in list(self._slots):
            self._watch(slot)

    def _hear(self, slot: Slot) -> None:
        data = read(slot.words)
        if data is None:
            return
        if not data:
            self._selector.unregister(slot.words)
        slot.hear(data)
        if slot.said_bytes > MOST_SAID:
            self._end(slot, f"it printed more than {MOST_SAID >> 20} MB")

    def _end(self, slot: Slot, misuse: str) -> None:
        if not slot.misuse:
            slot.misuse = misuse
            self._kill(slot)

    def _receive(self, slot: Slot) -> bool:
        """Reads messages of a child. Returns whether there was data."""
        data = read(slot.results)
        if data is None:
            return False
        if not data:
            with contextlib.suppress(KeyError):  # _read_others() may have done so already
                self._selector.unregister(slot.results)
            return False
        slot.buffer += data
        while (message := self._message(slot)) is not None:
            slot.deadline = time.monotonic() + self._timeout
            self._take(slot, *message)
        return True

    def _read_others(self, slot: Slot) -> None:
        """Reads what the other children have written so far."""
        others = {key.fd: key.data for key in self._selector.get_map().values() if key.data is not slot and key.fd == key.data.results}
        while any([self._receive(other) for other in others.values() if other.results in self._selector.get_map()]):
            pass

    def _message(self, slot: Slot) -> tuple[dict[str, Any], list[Any]] | None:
        """Returns the next complete message, or None."""
        buffer = slot.buffer
        if len(buffer) < 4:
            return None
        head_bytes, = struct.unpack_from("<I", buffer)
        try:
            if head_bytes > MOST_HEAD:
                raise ValueError("too long")
            if len(buffer) < 4 + head_bytes:
                return None
            head = json.loads(bytes(buffer[4:4 + head_bytes]))
            kinds = [(np.dtype(dtype), tuple(shape)) for dtype, shape in head["arrays"]]
            sizes = [dtype.itemsize * int(np.prod(shape, dtype=np.int64)) for dtype, shape in kinds]
            if min(sizes, default=0) < 0 or sum(sizes) > MOST_MESSAGE:
                raise ValueError("too long")
            at = 4 + head_bytes
            if len(buffer) < at + sum(sizes):
                return None
            arrays = []
            for (dtype, shape), size in zip(kinds, sizes):
                arrays.append(np.frombuffer(bytes(buffer[at:at + size]), dtype).reshape(shape))
                at += size
            check(head, slot)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError, SyntaxError):  # np.dtype() raises SyntaxError
            slot.hear(b"\n(it wrote over the pipe of its results)")
            self._kill(slot)
            buffer.clear()
            return None
        del buffer[:at]
        return head, arrays

    def _take(self, slot: Slot, head: dict[str, Any], arrays: list[Any]) -> None:
        kind, index = head["kind"], head["index"]
        if kind == "unusable":
            self._read_others(slot)  # another child may have begun a case and lost the device
            if not self._has_begun:
                slot.hear(read(slot.words) or b"")
                said = told(slot.words_kept)
                raise Unusable(head["reason"] + (f"; it printed: {said}" if said else ""))
            slot.stage = f"the target was loaded again: {head['reason']}"
        elif kind == "full":
            raise Stopped(f"the folder for temporary files is full ({head['reason']})")
        elif kind == "changed":
            slot.changed, slot.changed_by = head["reason"], index
        elif kind == "end":
            slot.deadline = time.monotonic() + min(self._timeout, self._end_patience)
        elif kind == "load":
            slot.stage, slot.current, slot.has_loaded = "the target was loaded", -1, True
        elif kind in ("expect", "begin"):
            slot.current, slot.stage = index, "the reference kernels ran" if kind == "expect" else "it ran"
            slot.began_any = slot.began_any or kind == "begin"
            self._has_begun = self._has_begun or slot.began_any
        elif kind == "expected":
            self._expected[index], self._hints[index] = arrays, head["hints"]
        elif kind in ("refused", "left"):
            self._settle(slot, index, Result("", SKIP, head.get("seconds", 0), head.get("reason", "not delegated"), None if kind == "refused" else False))
        elif kind in ("failed", "crashed"):
            self._settle(slot, index, Result("", FAIL if kind == "failed" else CRASH, head["seconds"], head["reason"], True))
        elif kind == "done":
            self._settle(slot, index, self._judged(index, head, arrays))

    def _judged(self, index: int, head: dict[str, Any], arrays: list[Any]) -> Result:
        count = len(arrays) // len(RUNS)
        runs = [arrays[at * count:(at + 1) * count] for at in range(len(RUNS))]
        expected = self._expected.get(index, [])
        name = self._cases[index].name
        allowed = tolerance_of(name, self._tolerance, self._target.kind == "onnx-ep")
        verdict = (compare(expected, runs, allowed, **self._hints.get(index, {}), is_sum=name.split("/")[0] in SUMS,
                           is_network=bool(self._cases[index].file)) if count
                   else Verdict("no outputs"))
        return Result("", FAIL if verdict.reason else PASS, head["seconds"], verdict.reason, True, verdict.largest, verdict.off, verdict.values,
                      verdict.picture)

    def _settle(self, slot: Slot | None, index: int, result: Result) -> None:
        if index not in self._cases or (slot is not None and index in slot.done):
            return
        case = self._cases[index]
        result.name = case.name
        if slot is not None:
            slot.done.add(index)
            slot.current = -1
        first = self._tried.pop(index, None)
        if first is not None:
            result.first = first.status
            if result.status == PASS:
                result.status, result.reason = FLAKE, f"{first.status} at first: {first.reason}"
        elif self._retry(result):
            self._tried[index] = result
            self._queue.appendleft([(index, case)])  # soon, so that a killed run loses few of them
            return
        self._expected.pop(index, None)
        self._tell(result)

    def _watch(self, slot: Slot) -> None:
        if slot.status is None and time.monotonic() > slot.next_look:
            slot.next_look = time.monotonic() + USE_SECONDS
            if misuse := overuse(slot.process):
                self._end(slot, misuse)
        if slot.status is None:
            process, status = os.waitpid(slot.process, os.WNOHANG)
            if process == slot.process:
                slot.status = status
                while self._is_open(slot.results) and (data := read(slot.results)):  # what it wrote before it ended
                    slot.buffer += data
                while (message := self._message(slot)) is not None:
                    self._take(slot, *message)
        if slot.status is not None:
            self._finish(slot)
        elif time.monotonic() > slot.deadline:
            self._kill(slot)
            _, slot.status = os.waitpid(slot.process, 0)
            self._finish(slot, is_late=True)

    def _is_open(self, descriptor: int) -> bool:
        return descriptor in self._selector.get_map()

    def _finish(self, slot: Slot, is_late: bool = False) -> None:
        """Records the results of a child that has ended, and queues its remaining cases for another child."""
        self._kill(slot)  # kills processes that it forked off
        while self._is_open(slot.words) and (data := read(slot.words)):
            slot.hear(data)
        self.said = self.said or told(slot.words_kept)
        self.warned = self.warned or option_lines(slot.words_kept)
        self._forget(slot)
        if all(index in slot.done for index, _ in slot.cases):
            self._settle_end(slot, is_late)
        else:
            self._settle_rest(slot, is_late)

    def _settle_end(self, slot: Slot, is_late: bool) -> None:
        """Adds a row for a process whose cases are all done but which did not end well."""
        if is_late and not slot.misuse:
            reason = f"at the end of the process: still running after {min(self._timeout, self._end_patience):g} s"
            self._end_patience = 1.0  # each further child will probably be as late
        elif slot.status != 0:
            reason = f"at the end of the process: {slot.misuse or how_it_ended(slot.status or 0)}"
        elif slot.changed:
            reason = f"at the end of the process: {slot.changed}"
        else:
            return
        status = CRASH if slot.misuse else TIMEOUT if is_late else CRASH if slot.status != 0 else FAIL
        case = self._cases.get(slot.changed_by, slot.cases[0][1]) if slot.changed else slot.cases[0][1]
        self._tell(Result(f"{END}{case.name}", status, 0, reason, True))

    def _settle_rest(self, slot: Slot, is_late: bool) -> None:
        """Records a failure of the running case, or of the first remaining one, and queues the others for another child."""
        reason = slot.misuse or (f"no answer for {self._timeout:g} s" if is_late else how_it_ended(slot.status or 0))
        last = last_line(slot.said)
        reason = f"{reason}, while {slot.stage}" + (f"; it printed: {last}" if last else "")
        is_reference = slot.stage.startswith("the reference")
        if not is_reference:
            self._hopeless = 0 if slot.began_any else self._hopeless + 1
        if self._hopeless >= HOPELESS:
            raise Stopped(f"{HOPELESS} processes in a row ended before their first case: {reason}")
        left = [one for one in slot.cases if one[0] not in slot.done]
        current = slot.current if slot.current != -1 else left[0][0]
        status = SKIP if is_reference else TIMEOUT if is_late and not slot.misuse else CRASH
        self._settle(slot, current, Result("", status, self._timeout if is_late else 0, reason, None if is_reference else True))
        left = [one for one in left if one[0] != current]
        if left:
            self._queue.appendleft(left)

    def _kill(self, slot: Slot) -> None:
        for kill, number in ((os.killpg, slot.process), (os.kill, slot.process if slot.status is None else 0)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if number > 0:
                    kill(number, signal.SIGKILL)

    def _forget(self, slot: Slot) -> None:
        with stops_wait():
            self._remove(slot)

    def _remove(self, slot: Slot) -> None:
        if slot.status is None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(slot.process, 0)
        for descriptor in (slot.results, slot.words):
            if self._is_open(descriptor):
                self._selector.unregister(descriptor)
            os.close(descriptor)
        if slot in self._slots:
            self._slots.remove(slot)
        known = self._others | {one.process for one in self._slots}
        end_children(known)
        remove(slot.scratch)


def started(make: Callable[[], Any]) -> Any:
    """Returns MAKE(). Raises Stopped if there is no space for temporary files."""
    try:
        return make()
    except OSError as error:
        raise Stopped(f"the folder for temporary files: {error}") from error


@contextlib.contextmanager
def stops_wait() -> Iterator[set[Any]]:
    """Delays the signals that end a run while the block runs. Yields the previous signal mask.
    Handlers are replaced too, because another thread (of NumPy) may receive the signal."""
    held: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {number: handler for number in STOPS if callable(handler := signal.getsignal(number))} if is_main else {}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        for number in handlers:
            signal.signal(number, lambda number, frame: held.append(number))
        yield before
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if held:
            handlers[signal.Signals(held[0])](held[0], None)


def check(head: dict[str, Any], slot: Slot) -> None:
    """Checks a message of a child. Raises ValueError, KeyError or TypeError if the child would not send it at this point."""
    kind, index = head["kind"], head["index"]
    is_of_case = kind in ("expect", "expected", "refused", "begin", "left", "failed", "crashed", "done")
    if type(index) is not int or (is_of_case or index != -1) and index not in [number for number, _ in slot.cases]:
        raise ValueError("no case of this process")
    if kind in ("expect", "expected", "refused") and slot.has_loaded:
        raise ValueError("what is right was said before")
    for needed, kinds in (("reason", ("unusable", "full", "changed", "refused", "failed", "crashed")), ("seconds", ("failed", "crashed", "done"))):
        if kind in kinds and needed not in head:
            raise KeyError(needed)
    if not isinstance(head.get("reason", ""), str) or type(head.get("seconds", 0)) not in (int, float):
        raise TypeError("of another type")
    if not 0 <= head.get("seconds", 0) < MOST_SECONDS:
        raise ValueError("no time")


def read(descriptor: int) -> bytes | None:
    """Reads available bytes. Empty: the other end is closed. None: no data now."""
    try:
        return os.read(descriptor, 1 << 20)
    except BlockingIOError:
        return None


def how_it_ended(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"it ended with signal {number} ({signal.strsignal(number)})"
    return f"it ended with exit code {os.WEXITSTATUS(status)}"


def told(said: bytes) -> str:
    """Joins the lines that a target printed to one line, without the runtime's own lines."""
    lines = [printable(line).strip() for line in said.decode(errors="replace").splitlines()]
    text = "; ".join(dict.fromkeys(line for line in lines if line and not line.startswith("INFO: ")))
    half = (MOST_TOLD - 5) // 2
    return text if len(text) <= MOST_TOLD else f"{text[:half]} ... {text[-half:]}"


def option_lines(said: bytes) -> str:
    """Returns the line in which a target reports an unknown option, or ""."""
    lines = [printable(line).strip() for line in said.decode(errors="replace").splitlines()]
    return next((line[:MOST_TOLD] for line in lines if "unknown option" in line.lower()), "")


def last_line(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    return printable(lines[-1])[:200] if lines else ""


def printable(text: str) -> str:
    """Removes what a terminal would interpret as a command."""
    return "".join(one if one.isprintable() else " " if one.isspace() else "" for one in COLOR.sub("", text))
