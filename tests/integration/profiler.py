"""Uses LiteRT's own profiler through its C interface.

It is a tflite::Profiler, which benchmark_model --enable_op_profiling puts into TfLiteContext. Python hosts cannot set a profiler,
so the delegate's Prepare puts it into the context that the host passes.
"""
import ctypes
import importlib.util
from pathlib import Path

PREPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
PREPARE_OFFSET, PROFILER_OFFSET = 8, 104  # in TfLiteDelegate, in TfLiteContext: tflite_abi.h; delegate_abi compares it
DELEGATE_PROFILED_OPERATOR = 8


class Event(ctypes.Structure):
    """Times in microseconds. The fields between the times and the metadata are memory usage before and after."""
    _fields_ = [("tag", ctypes.c_char_p), ("type", ctypes.c_int), ("start", ctypes.c_uint64), ("elapsed", ctypes.c_uint64),
                ("memory", ctypes.c_uint64 * 6), ("node", ctypes.c_uint64), ("graph", ctypes.c_uint64), ("source", ctypes.c_uint64)]


class Profiler:
    def __init__(self):
        package = Path(importlib.util.find_spec("ai_edge_litert").origin).parent
        self.library, self.pointer = ctypes.CDLL(str(package / "libLiteRt.so")), ctypes.c_void_p()
        self.call("LiteRtCreateProfiler", 1024, ctypes.byref(self.pointer))
        self.call("LiteRtStartProfiler", self.pointer)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: status {status}")

    def watch(self, delegate):
        """Installs the profiler in DELEGATE, as Python's load_delegate() returns it, before its host is made."""
        prepare = ctypes.c_void_p.from_address(delegate._get_native_delegate_pointer() + PREPARE_OFFSET)
        original = PREPARE(prepare.value)

        def with_profiler(context, pointer):
            ctypes.c_void_p.from_address(context + PROFILER_OFFSET).value = self.pointer.value
            return original(context, pointer)
        self.kept = PREPARE(with_profiler)
        prepare.value = ctypes.cast(self.kept, ctypes.c_void_p).value

    def operations(self):
        """Returns (tag, index of the operation, microseconds) for the operations that a delegate reported."""
        count = ctypes.c_int()
        self.call("LiteRtGetNumProfilerEvents", self.pointer, ctypes.byref(count))
        events = (Event * count.value)()
        self.call("LiteRtGetProfilerEvents", self.pointer, count, events)
        return [(e.tag.decode(), e.node, e.elapsed) for e in events if e.type == DELEGATE_PROFILED_OPERATOR]
