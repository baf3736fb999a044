"""Builds the C++ half for the installed ExecuTorch, whose C++ interface differs between minor versions."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
import tempfile
from pathlib import Path

from skillet import _library, _paths

SOURCE = Path(__file__).with_name("backend.cpp")
MARK = "skillet_executorch_backend"  # a function that it exports
DEFINITIONS = ["-DC10_USING_CUSTOM_GENERATED_MACROS", "-DET_EVENT_TRACER_ENABLED"]  # as ExecuTorch's wheel is built


def executorch_folder() -> Path:
    """Returns the folder of ExecuTorch. Raises FileNotFoundError if it is not installed, or older than 1.5."""
    found = importlib.util.find_spec("executorch")
    for folder in (found.submodule_search_locations or []) if found else []:
        if Path(folder, "lib/libexecutorch.so").exists():
            return Path(folder)
    raise FileNotFoundError("no ExecuTorch 1.5 or later is installed (pip install executorch)")


def compile_flags() -> list[str]:
    """Returns the compiler flags for sources that include headers of ExecuTorch or Skillet."""
    root = executorch_folder()
    ours = [one for one in (_paths.PACKAGE / "include", _paths.PACKAGE.parents[3] / "include") if Path(one, "skillet/skillet.h").exists()]
    headers = [root / "include", root / "include/executorch/runtime/core/portable_type/c10"]
    return ["-std=c++17", *DEFINITIONS, *(f"-isystem{one}" for one in headers), *(f"-I{one}" for one in ours[:1])]  # headers of a wheel or of a source tree


def build_backend(library: str | os.PathLike[str]) -> None:
    """Compiles the back end to the file LIBRARY, with the compiler that $CXX names (c++).

    Raises RuntimeError if that fails, and FileNotFoundError if ExecuTorch is not installed."""
    ours = _paths.library_name()
    found = [f"-Wl,-rpath,{Path(ours).resolve().parent}", ours] if os.sep in ours else [f"-l:{ours}"]
    theirs = executorch_folder() / "lib"
    command = [os.environ.get("CXX", "c++"), "-O2", "-shared", "-fPIC", *compile_flags(), str(SOURCE), "-o", str(library), *found,
               f"-L{theirs}", f"-Wl,-rpath,{theirs}", "-lexecutorch"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as failed:
        raise RuntimeError(f"the back end is not built: there is no compiler '{command[0]}' ({failed.strerror}): install one, or name one with CXX") from None
    if done.returncode != 0:
        raise RuntimeError(f"the back end is not built: {' '.join(command)}\n{done.stderr}")


def _load(file: Path) -> None:
    try:
        loaded = ctypes.CDLL(str(file), ctypes.RTLD_GLOBAL)
    except OSError as failed:
        raise RuntimeError(f"the back end is not loaded: {failed}") from None
    if not hasattr(loaded, MARK):
        raise RuntimeError(f"{file} is not Skillet's back end for ExecuTorch, as build_backend() writes it")


def load_backend(library: str | os.PathLike[str] | None = None) -> None:
    """Registers the back end with ExecuTorch's runtime in this process.

    LIBRARY is a file that build_backend() wrote; None: builds it for this process. Raises RuntimeError if that fails."""
    _library.library()
    if library is not None:
        _load(Path(library).resolve())  # the dynamic linker would search for a bare name
        return
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "libskillet_executorch.so")
        build_backend(made)
        _load(made)
