"""Sessions: a model, made ready for a device."""

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
    part: int  # operations of a part run together
    on_npu: bool
    why: str  # why not on the NPU, or why it is unproven there; "": there is nothing to say
    note: str  # what was changed that may move the result
    unproven: bool  # on the NPU, though no known driver ever ran it on silicon
    failed: bool  # it was to run on the NPU, which failed, so that the CPU runs it
    ms: float | None  # the last run's; None: not known, because an NPU runs a part as one, or nothing has run
    part_ms: float | None


@dataclass(frozen=True)
class Use:
    ops: int  # that the model file has
    npu_ops: int  # the NPU computes all of them
    part_ops: int  # the NPU computes a part of them
    folded_ops: int  # nothing computes them any more: constants, shapes, what others took in


_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


# A thread of the parent that is not here may have held a lock.
def _after_fork() -> None:
    for session in _sessions:
        session._lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class Session:
    """MODEL (a file, or its bytes) on DEVICE; OPTIONS by name as options_help() lists them: cache_dir="...", cores=2.

    Several threads may use one: they take turns. In a child of os.fork() one on an NPU can only be closed."""

    def __init__(self, model: Model, device: Device | str | None = None, **options: Option) -> None:
        self._lock = threading.Lock()
        _sessions.add(self)
        self._held: list[Any] = []  # memory of the run that was started
        handle = device.handle if isinstance(device, Device) else DeviceHandle(device)
        self._model = _load(handle, model, options)
        self._close = weakref.finalize(self, _close_model, self._model, self._held)
        self._close.atexit = False
        count_in, count_out = library().skillet_input_count(self._model), library().skillet_output_count(self._model)
        self.inputs = tuple(_tensor.read("skillet_input_info", self._model, i) for i in range(count_in))
        self.outputs = tuple(_tensor.read("skillet_output_info", self._model, i) for i in range(count_out))

    def run(self, *inputs: Any) -> list[Array]:
        """The outputs for these arrays: one for each input in order, or one dict by name. Types and shapes must be the
        inputs' own (TensorInfo.quantize makes them of real numbers)."""
        arrays = self._arrays(inputs)
        outputs = [info.empty() for info in self.outputs]
        self.run_on(arrays, outputs)
        return outputs

    def run_on(self, inputs: Sequence[Bytes], outputs: Sequence[Bytes]) -> None:
        """The same on memory of the caller, bytes as they are: arrays, bytearrays, views. What is in a Buffer of the
        device is used in place where type and layout allow, see copied_bytes."""
        read, written = self._memory(self.inputs, inputs, False), self._memory(self.outputs, outputs, True)
        with self._lock:
            call("skillet_run_on", self._pointer(), pointers(read), pointers(written))

    def start(self, inputs: Sequence[Bytes], outputs: Sequence[Bytes]) -> None:
        """run_on() in the background. Until wait() has returned, outputs are not to be read, and nothing else runs."""
        read, written = self._memory(self.inputs, inputs, False), self._memory(self.outputs, outputs, True)
        with self._lock:
            call("skillet_start_on", self._pointer(), pointers(read), pointers(written))
            self._held.extend(read + written)

    def wait(self) -> None:
        """For the run that was started; its error is raised here."""
        with self._lock:
            try:
                call("skillet_wait", self._pointer())
            finally:
                self._held.clear()

    @property
    def copied_bytes(self) -> int:
        """Bytes that the last run copied between the caller's memory and the NPU's."""
        with self._lock:
            return int(library().skillet_copied_bytes(self._pointer()))

    def explain(self) -> str:
        """Which operations run where, and why not on the NPU: text for people."""
        with self._lock:
            return text(library().skillet_explain(self._pointer()))

    def operations(self) -> list[Operation]:
        """The same by operation, as the model's are rewritten, with times of the last run."""
        with self._lock:
            model = self._pointer()
            return [_operation(model, index) for index in range(library().skillet_op_count(model))]

    def use(self) -> Use:
        """How many of the model file's own operations the NPU computes, as `skillet check` and the delegate count."""
        with self._lock:
            raw = UseStruct(struct_bytes=ctypes.sizeof(UseStruct))
            call("skillet_get_use", self._pointer(), ctypes.byref(raw))
            return Use(ops=raw.ops, npu_ops=raw.npu_ops, part_ops=raw.part_ops, folded_ops=raw.folded_ops)

    def maker(self, index: int) -> tuple[str, int]:
        """The operation that makes output INDEX ("TFLite_Detection_PostProcess"; "": none does), and which of its outputs it is."""
        with self._lock:
            raw = MakerStruct(struct_bytes=ctypes.sizeof(MakerStruct))
            call("skillet_output_maker", self._pointer(), whole(index, "output", 0, len(self.outputs) - 1), ctypes.byref(raw))
            return text(raw.kind), int(raw.place)

    def close(self) -> None:
        """Waits for what runs, and frees what the device has of it."""
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
    held.clear()  # not before the run on it has ended


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
        return str(operator.index(value)).encode()  # NumPy's too
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
