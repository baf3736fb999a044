"""Sessions: models prepared to run on a device."""

from __future__ import annotations

import ctypes
import operator
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Union

from skillet import _tensor
from skillet._device import Device, DeviceHandle
from skillet._library import Closed, InvalidArgument, MakerStruct, OpStruct, OptionsStruct, OptionStruct, UseStruct, WrongType, c_text, call, library, text, whole
from skillet._memory import borrow, pointers
from skillet._tensor import TensorInfo

if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import TypeAlias

    from skillet._memory import Array, Bytes

    Model: TypeAlias = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]
    Option: TypeAlias = Union[str, int, bool, "os.PathLike[str]"]


@dataclass(frozen=True)
class Operation:
    kind: str  # "CONV_2D"
    output: str  # "1x112x112x32", the shape of the first output
    part: int  # number of the part; the operations of a part run together
    on_npu: bool
    why: str  # why it is not on the NPU, or why it is unproven there; "": no remark
    note: str  # changes that may alter the result
    unproven: bool  # runs on the NPU, although no known driver ran it on silicon
    failed: bool  # runs on the CPU because it failed on the NPU
    ms: float | None  # of the last run; None: unknown, because an NPU runs the part as one, or nothing has run
    part_ms: float | None


@dataclass(frozen=True)
class Use:
    ops: int  # operations in the model file
    npu_ops: int  # computed by the NPU entirely
    part_ops: int  # computed by the NPU partly
    folded_ops: int  # no longer computed at run time: constants, shapes, operations merged into others


_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


# Replaces locks that a thread of the parent process may have held.
def _after_fork() -> None:
    for session in _sessions:
        session._lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class Session:
    """MODEL (a file, or its bytes), prepared to run on DEVICE.

    OPTIONS are those that options_help() lists, by name: cache_dir="...", cores=2.
    Several threads may use one session; its runs do not overlap. In a child of os.fork(), a session on an NPU can only
    be closed."""

    def __init__(self, model: Model, device: Device | str | None = None, **options: Option) -> None:
        self._lock = threading.Lock()
        _sessions.add(self)
        self._held: list[Any] = []  # memory of the run that was started, kept alive
        handle = device.handle if isinstance(device, Device) else DeviceHandle(device)
        self._model = _load(handle, model, options)
        self._close = weakref.finalize(self, _close_model, self._model, self._held)
        self._close.atexit = False
        count_in, count_out = library().skillet_input_count(self._model), library().skillet_output_count(self._model)
        self.inputs = tuple(_tensor.read("skillet_input_info", self._model, i) for i in range(count_in))
        self.outputs = tuple(_tensor.read("skillet_output_info", self._model, i) for i in range(count_out))

    def run(self, *inputs: Any) -> list[Array]:
        """Runs the model on INPUTS and returns its outputs.

        INPUTS: one array for each input in order, or one dict by name. Types and shapes must be those of the inputs
        (TensorInfo.quantize converts real numbers). Raises InvalidArgument if they are not."""
        arrays = self._arrays(inputs)
        outputs = [info.empty() for info in self.outputs]
        self.run_on(arrays, outputs)
        return outputs

    def run_on(self, inputs: Sequence[Bytes], outputs: Sequence[Bytes]) -> None:
        """Runs the model on memory of the caller (arrays, bytearrays, views). Bytes are used as they are.

        A Buffer of the device is used in place if type and layout allow it, see copied_bytes.
        Raises InvalidArgument if a size does not fit."""
        read, written = self._memory(self.inputs, inputs, False), self._memory(self.outputs, outputs, True)
        with self._lock:
            call("skillet_run_on", self._pointer(), pointers(read), pointers(written))

    def start(self, inputs: Sequence[Bytes], outputs: Sequence[Bytes]) -> None:
        """Starts run_on() in the background. Outputs must not be read, and nothing else can run, before wait() returns."""
        read, written = self._memory(self.inputs, inputs, False), self._memory(self.outputs, outputs, True)
        with self._lock:
            call("skillet_start_on", self._pointer(), pointers(read), pointers(written))
            self._held.extend(read + written)

    def wait(self) -> None:
        """Waits for the run that start() began. Raises its error."""
        with self._lock:
            try:
                call("skillet_wait", self._pointer())
            finally:
                self._held.clear()

    @property
    def copied_bytes(self) -> int:
        """Number of bytes that the last run copied between the caller's memory and the NPU's."""
        with self._lock:
            return int(library().skillet_copied_bytes(self._pointer()))

    def explain(self) -> str:
        """Returns a text for people: which operations run where, and why some do not run on the NPU."""
        with self._lock:
            return text(library().skillet_explain(self._pointer()))

    def operations(self) -> list[Operation]:
        """Returns the operations of the rewritten model in order, with where they run and the times of the last run."""
        with self._lock:
            model = self._pointer()
            return [_operation(model, index) for index in range(library().skillet_op_count(model))]

    def use(self) -> Use:
        """Returns how many of the model file's operations the NPU computes, counted as `skillet check` and the delegate do."""
        with self._lock:
            raw = UseStruct(struct_bytes=ctypes.sizeof(UseStruct))
            call("skillet_get_use", self._pointer(), ctypes.byref(raw))
            return Use(ops=raw.ops, npu_ops=raw.npu_ops, part_ops=raw.part_ops, folded_ops=raw.folded_ops)

    def maker(self, index: int) -> tuple[str, int]:
        """Returns the operation that makes output INDEX, and which of that operation's outputs it is.

        The operation is "TFLite_Detection_PostProcess", for example; "" if none makes it."""
        with self._lock:
            raw = MakerStruct(struct_bytes=ctypes.sizeof(MakerStruct))
            call("skillet_output_maker", self._pointer(), whole(index, "output", 0, len(self.outputs) - 1), ctypes.byref(raw))
            return text(raw.kind), int(raw.place)

    def close(self) -> None:
        """Waits for the current run, and frees the session's memory and resources on the device."""
        with self._lock:
            self._close()

    @property
    def closed(self) -> bool:
        return not self._close.alive

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _pointer(self) -> int:
        if self.closed:
            raise Closed("the session is closed")
        return self._model

    def _arrays(self, inputs: tuple[Any, ...]) -> list[Array]:
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            inputs = self._by_name(inputs[0])
        if len(inputs) != len(self.inputs):
            raise InvalidArgument(f"{len(inputs)} inputs given, the model has {len(self.inputs)}")
        return [info.check(array) for info, array in zip(self.inputs, inputs)]

    def _by_name(self, given: Mapping[str, Any]) -> tuple[Any, ...]:
        names = [info.name for info in self.inputs]
        for name in given:
            if name not in names:
                raise InvalidArgument(f"there is no input {name!r}; there are {', '.join(map(repr, names))}")
        missing = [name for name in names if name not in given]
        if missing:
            raise InvalidArgument(f"input {missing[0]!r} is missing")
        return tuple(given[name] for name in names)

    def _memory(self, infos: Sequence[TensorInfo], given: Sequence[Bytes], writable: bool) -> list[Any]:
        what = "output" if writable else "input"
        if not hasattr(given, "__len__"):
            raise WrongType(f"{what}s: must be a list, not {given!r}")
        if len(given) != len(infos):
            raise InvalidArgument(f"{len(given)} {what}s given, the model has {len(infos)}")
        return [
            borrow(one, info.nbytes, f"{what} {index} ('{info.name}')", writable)
            for index, (info, one) in enumerate(zip(infos, given))
        ]


def _close_model(model: int, held: list[Any]) -> None:
    library().skillet_close_model(model)
    held.clear()  # only now: a run may have used it until the model was closed


def _load(device: DeviceHandle, model: Model, given: Mapping[str, Option]) -> int:
    texts = [(c_text(key, "option"), _option_text(key, value)) for key, value in given.items()]
    more = (OptionStruct * max(len(texts), 1))(*[OptionStruct(key, value) for key, value in texts])
    options = OptionsStruct(struct_bytes=ctypes.sizeof(OptionsStruct), more=more, more_count=len(texts))
    loaded = ctypes.c_void_p()
    if isinstance(model, (bytes, bytearray, memoryview)):
        size = memoryview(model).nbytes
        memory = borrow(model, size, "model", False)
        call("skillet_load_memory", device.pointer, memory, size, ctypes.byref(options), ctypes.byref(loaded))
    else:
        path = c_text(model, "model")
        call("skillet_load_file", device.pointer, path, ctypes.byref(options), ctypes.byref(loaded))
    assert loaded.value is not None
    return loaded.value


def _option_text(key: str, value: Option) -> bytes:
    if isinstance(value, bool):
        return b"1" if value else b"0"
    if isinstance(value, (str, os.PathLike)):
        return c_text(value, key)
    try:
        return str(operator.index(value)).encode()  # accepts NumPy's integers too
    except TypeError:
        raise WrongType(f"{key}: must be a text or a whole number, not {value!r}") from None


def _operation(model: int, index: int) -> Operation:
    raw = OpStruct(struct_bytes=ctypes.sizeof(OpStruct))
    call("skillet_op", model, index, ctypes.byref(raw))
    return Operation(
        kind=text(raw.kind),
        output=text(raw.output),
        part=raw.part,
        on_npu=bool(raw.on_npu),
        why=text(raw.why),
        note=text(raw.note),
        unproven=bool(raw.unproven),
        failed=bool(raw.failed),
        ms=raw.ms if raw.ms >= 0 else None,
        part_ms=raw.part_ms if raw.part_ms >= 0 else None,
    )
