"""A child process: computes the expected results of a group of cases, then the target's, and sends both through a pipe.

It is forked, so it starts fast and has its own copy of the target. It sends the expected results before it loads the target,
which therefore cannot change them. A message is a length, a line of JSON, and the arrays that it describes.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from skillet.conformance._cases import build
from skillet.conformance._heads import with_heads
from skillet.conformance._models import read_model
from skillet.conformance._onnx import NoForm, Writer
from skillet.conformance._process import complaints, counts, state
from skillet.conformance._targets import Crashed, FullDisk, Left, Reference, Unusable, interpreter, opened, runtime

if TYPE_CHECKING:
    from typing import Any

    from skillet.conformance._targets import Target

MOST_REASON = 400
INPUT_SETS = (0, 1)  # see Build.inputs
RUNS = (0, 1, 0)  # the last run repeats the first inputs: it shows state left by the other run


@dataclass(frozen=True)
class Case:
    name: str
    file: str = ""  # a model in a folder; empty: made from the name

    def onnx(self) -> bytes:
        """Returns the model as an ONNX file. Raises NoForm if ONNX cannot express it."""
        if self.file:
            raise NoForm("a .tflite file")
        return Writer(build(self.name).graph).file()

    def content(self) -> tuple[bytes, list[list[Any]], dict[str, Any]]:
        """Returns the model, its sets of inputs, and hints for the comparison: operations that choose, and steps of outputs (_heads.py)."""
        if not self.file:
            made = build(self.name)
            return made.graph.file(), [made.inputs(which) for which in INPUT_SETS], {"heads": [], "steps": []}
        model = read_model(Path(self.file))
        random = np.random.RandomState(zlib.crc32(self.name.encode()))
        host = interpreter(runtime(), model, "BUILTIN_REF")
        details = host.get_input_details()
        inputs = [[random_values(random, detail) for detail in details] for _ in INPUT_SETS]
        model, heads, steps = with_heads(host, model)
        return model, inputs, {"heads": heads, "steps": steps}


def random_values(random: np.random.RandomState, detail: dict[str, Any]) -> Any:
    dtype = np.dtype(detail["dtype"])
    if dtype.kind == "f":
        return random.uniform(-1, 1, detail["shape"]).astype(dtype)
    if dtype.kind == "b":
        return random.randint(0, 2, detail["shape"]).astype(dtype)
    info = np.iinfo(dtype)
    return random.randint(info.min if info.bits < 32 else 0, info.max + 1 if info.bits < 32 else 2, detail["shape"], np.int64).astype(dtype)


class Pipe:
    """The child's end of the pipe. A process that the target forked off exits when it writes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._process = descriptor, os.getpid()

    def say(self, kind: str, index: int = -1, arrays: list[Any] | None = None, **words: Any) -> None:
        if os.getpid() != self._process:
            os._exit(0)
        arrays = [np.ascontiguousarray(one) for one in arrays or []]
        words.update(kind=kind, index=index, arrays=[(one.dtype.str, one.shape) for one in arrays])
        head = json.dumps(words).encode()
        rest = memoryview(struct.pack("<I", len(head)) + head + b"".join(one.tobytes() for one in arrays))
        while rest:
            rest = rest[os.write(self._descriptor, rest):]


def short(error: BaseException) -> str:
    return " ".join(f"{error}".split())[-MOST_REASON:] or type(error).__name__


def work(cases: list[tuple[int, Case]], known: set[int], target: Target, descriptor: int) -> None:
    """Runs the cases in the child process. Does not return.

    KNOWN: indices of cases whose expected results an earlier child has sent."""
    pipe = Pipe(descriptor)
    try:
        contents = expect(cases, known, pipe)
        pipe.say("load")
        before, grown, changed_by = state(), list[dict[str, int]](), -1
        load = opened(target)
        for index, case in cases:
            if index in contents:
                pipe.say("begin", index)
                model, inputs = contents[index]
                try:
                    model = case.onnx() if target.kind == "onnx-ep" else model
                except NoForm as error:
                    pipe.say("left", index, reason=f"not tested: as an ONNX file there is no {error}")
                    continue
                if try_case(index, model, inputs, load, pipe):
                    grown.append(counts())
                    changed_by = index if changed_by == -1 and complaints(before, state(), []) else changed_by
        pipe.say("changed", changed_by, reason=complaints(before, state(), grown))
    except (Unusable, ImportError) as error:  # ImportError: libskillet_c.so is not found
        pipe.say("unusable", reason=short(error))
    pipe.say("end")
    ctypes.CDLL(None).exit(0)  # runs the exit handlers of C libraries, but not Python's


def expect(cases: list[tuple[int, Case]], known: set[int], pipe: Pipe) -> dict[int, tuple[bytes, list[list[Any]]]]:
    reference, contents = Reference(), {}
    for index, case in cases:
        pipe.say("expect", index)
        try:
            model, inputs, hints = case.content()
            contents[index] = model, inputs
            if index not in known:
                run = reference.load(model, case.name)
                outputs = [run(one) for one in inputs]
                pipe.say("expected", index, [array for one in outputs for array in one], hints=hints)
        except OSError as error:
            contents.pop(index, None)
            pipe.say("refused", index, reason=f"the model cannot be read: {short(error)}")
        except (RuntimeError, ValueError, MemoryError) as error:
            contents.pop(index, None)
            pipe.say("refused", index, reason=f"the reference kernels refuse the model: {short(error)}")
    return contents


def try_case(index: int, model: bytes, inputs: list[list[Any]], load: Any, pipe: Pipe) -> bool:
    """Runs a case and sends its result. Returns whether the target computed it."""
    begin, stage = time.monotonic(), "loading"
    try:
        loaded = load(model)
        if loaded.taken == 0:
            pipe.say("left", index, seconds=time.monotonic() - begin)
            return False
        stage = "running"
        outputs = [loaded.run(inputs[which]) for which in RUNS]
        del loaded
        pipe.say("done", index, [array for one in outputs for array in one], seconds=time.monotonic() - begin)
        return True
    except Left:
        pipe.say("left", index, seconds=time.monotonic() - begin)
    except FullDisk as error:
        pipe.say("full", reason=short(error))
    except Crashed as error:
        pipe.say("crashed", index, reason=short(error), seconds=time.monotonic() - begin)
    except Exception as error:  # of any module: only the target's message is known
        pipe.say("failed", index, reason=f"{stage}: {short(error)}", seconds=time.monotonic() - begin)
    return False
