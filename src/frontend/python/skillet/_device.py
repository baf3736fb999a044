"""Devices, and memory that they share with the CPU and with other drivers."""

from __future__ import annotations

import ctypes
import math
import sys
import weakref
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from skillet._library import BufferStruct, Closed, DeviceStruct, InvalidArgument, c_text, call, library, text, whole
from skillet._memory import view_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from skillet._memory import Array


@dataclass(frozen=True)
class ListedDevice:
    device: str  # the name that Session and Device accept
    title: str
    kernel_driver: str
    note: str  # a remark, or why the device is not usable
    usable: bool
    simulated: bool


def devices() -> list[ListedDevice]:
    """Lists the devices of this machine that could run a model, including simulated chips and "cpu"."""
    handle = ctypes.c_void_p()
    call("skillet_list_devices", ctypes.byref(handle))
    try:
        return [_listed(handle, index) for index in range(library().skillet_list_count(handle))]
    finally:
        library().skillet_free_list(handle)


def _listed(handle: ctypes.c_void_p, index: int) -> ListedDevice:
    raw = DeviceStruct(struct_bytes=ctypes.sizeof(DeviceStruct))
    call("skillet_list_at", handle, index, ctypes.byref(raw))
    return ListedDevice(
        device=text(raw.device),
        title=text(raw.title),
        kernel_driver=text(raw.kernel_driver),
        note=text(raw.note),
        usable=bool(raw.usable),
        simulated=bool(raw.simulated),
    )


class DeviceHandle:
    """An open device. It is closed when no object uses it any more."""

    def __init__(self, name: str | None) -> None:
        opened = ctypes.c_void_p()
        call("skillet_open", None if name is None else c_text(name, "device"), ctypes.byref(opened))
        self.pointer = opened.value
        weakref.finalize(self, library().skillet_close, self.pointer).atexit = False


class Device:
    """A device to run models on, opened by its name.

    NAME: "auto" (an NPU of this machine, else the CPU), "npu", "cpu", "sim:a311d" (a simulated chip),
    "/dev/dri/renderD128".
    None stands for the environment variable SKILLET_DEVICE, or "auto" if it is not set.

    Sessions and buffers stay usable after their device is closed. Several threads may use one device."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self._handle: DeviceHandle | None = DeviceHandle(name)

    @property
    def handle(self) -> DeviceHandle:
        if self._handle is None:
            raise Closed(f"device {self.name!r} is closed")
        return self._handle

    def alloc(self, nbytes: int) -> Buffer:
        """Allocates NBYTES of zeroed memory that the NPU reads and writes in place.

        Raises Unsupported if the device has no memory of its own ("cpu")."""
        nbytes = whole(nbytes, "nbytes", 0, sys.maxsize)
        address = ctypes.c_void_p()
        handle = self.handle
        call("skillet_buffer_alloc", handle.pointer, nbytes, ctypes.byref(address), None)
        return Buffer(handle, address.value or 0, nbytes)

    def import_dmabuf(self, fd: int) -> Buffer:
        """Imports the memory of another driver, such as a camera or decoder. FD may be closed afterwards.

        Raises Unsupported if the kernel driver cannot import memory."""
        fd = whole(fd, "fd", -(2**31), 2**31 - 1)
        address, nbytes = ctypes.c_void_p(), ctypes.c_size_t()
        handle = self.handle
        call("skillet_buffer_import", handle.pointer, fd, ctypes.byref(address), ctypes.byref(nbytes))
        return Buffer(handle, address.value or 0, nbytes.value)

    def close(self) -> None:
        """Closes the device for new sessions and buffers. Existing ones stay usable."""
        self._handle = None

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Memory:
    """A buffer of the library. It is freed when no view of it exists any more."""

    def __init__(self, device: DeviceHandle, address: int) -> None:
        weakref.finalize(self, _free, device, address).atexit = False


def _free(device: DeviceHandle, address: int) -> None:
    library().skillet_buffer_free(device.pointer, address)


class Buffer:
    """Memory that the device, the CPU and other drivers access. Its views keep it alive, even after close()."""

    def __init__(self, device: DeviceHandle, address: int, nbytes: int) -> None:
        self._memory: _Memory | None = _Memory(device, address)
        self._address = address
        self.nbytes = nbytes

    def _owner(self) -> _Memory:
        if self._memory is None:
            raise Closed("the buffer is closed")
        return self._memory

    @property
    def fd(self) -> int:
        """Returns the file descriptor of the dma-buf (on a simulated chip: of a memfd).

        The library owns it: os.dup() it to keep it."""
        self._owner()
        raw = BufferStruct(struct_bytes=ctypes.sizeof(BufferStruct))
        library().skillet_buffer_find(self._address, self.nbytes, ctypes.byref(raw))
        return int(raw.dmabuf_fd)

    def view(self) -> memoryview:
        """Returns the bytes of the buffer as a view. Does not need NumPy."""
        return memoryview(view_of(self._address, self.nbytes, self._owner())).cast("B")

    def array(self, dtype: Any = "uint8", shape: Sequence[int] | None = None, offset: int = 0) -> Array:
        """Returns an array in the buffer, OFFSET bytes from its start. Without SHAPE it extends to the buffer's end.

        An NPU uses the array in place if OFFSET is a multiple of 64.
        Raises InvalidArgument if the array does not fit in the buffer."""
        import numpy

        kind = numpy.dtype(dtype)
        if kind.hasobject or not kind.itemsize:
            raise InvalidArgument(f"memory of a device holds no {kind}")
        if shape is not None and any(size < 0 for size in shape):
            raise InvalidArgument(f"an array of shape {tuple(shape)}")
        if not 0 <= offset <= self.nbytes:
            raise InvalidArgument(f"offset {offset} of {self.nbytes} bytes")
        count = (self.nbytes - offset) // kind.itemsize if shape is None else math.prod(shape)
        if offset + count * kind.itemsize > self.nbytes:
            raise InvalidArgument(f"{count} of {kind} at {offset} do not fit {self.nbytes} bytes")
        array: Array = numpy.frombuffer(self.view(), kind, count, offset)
        return array if shape is None else array.reshape(tuple(shape))

    def close(self) -> None:
        """Closes the buffer for new views. The memory is freed with its last view."""
        self._memory = None

    def __enter__(self) -> Buffer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
