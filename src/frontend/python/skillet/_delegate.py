"""Loads the TensorFlow Lite delegate into the installed runtime."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, Union

from skillet._paths import delegate_path

if TYPE_CHECKING:
    from typing_extensions import TypeAlias

    Option: TypeAlias = Union[str, int, bool, "os.PathLike[str]"]

# A runtime that the program has already imported comes first: a delegate of one runtime does not work in another.
RUNTIMES = ("ai_edge_litert.interpreter", "tflite_runtime.interpreter", "tensorflow.lite")


def load_delegate(**options: Option) -> Any:
    """Returns the delegate for Interpreter(..., experimental_delegates=[skillet.load_delegate(device="npu")]).

    OPTIONS are those that options_help() lists. The delegate warns about a wrong option and ignores it.
    Raises ImportError if no runtime is installed, FileNotFoundError if the delegate is not installed, and ValueError if
    the runtime cannot load it."""
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
        return runtime.experimental.load_delegate(path, texts)  # where TensorFlow has the function
    raise ImportError(f"none of {', '.join(RUNTIMES)} is installed: pip install ai-edge-litert")
