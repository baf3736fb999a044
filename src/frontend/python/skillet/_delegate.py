"""The TensorFlow Lite delegate in whichever runtime is installed."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, Union

from skillet._paths import delegate_path

if TYPE_CHECKING:
    from typing_extensions import TypeAlias

    Option: TypeAlias = Union[str, int, bool, "os.PathLike[str]"]

# A runtime that the program has imported already comes first: delegates of one do not fit another.
RUNTIMES = ("ai_edge_litert.interpreter", "tflite_runtime.interpreter", "tensorflow.lite")


def load_delegate(**options: Option) -> Any:
    """For Interpreter(..., experimental_delegates=[skillet.load_delegate(device="npu")]); options as options_help() lists them.
    ImportError: no runtime is installed. FileNotFoundError: the delegate is not. ValueError: the runtime cannot load it.
    A wrong option is a warning of the delegate, which goes on without it."""
    path = delegate_path()
    texts = {name: str(int(value)) if isinstance(value, bool) else os.fspath(value) if isinstance(value, os.PathLike) else str(value)
             for name, value in options.items()}
    for name in sorted(RUNTIMES, key=lambda one: one not in sys.modules):
        try:
            runtime = importlib.import_module(name)
        except ImportError:
            continue
        if hasattr(runtime, "load_delegate"):
            return runtime.load_delegate(path, texts)
        return runtime.experimental.load_delegate(path, texts)  # TensorFlow's place for it
    raise ImportError(f"none of {', '.join(RUNTIMES)} is installed: pip install ai-edge-litert")
