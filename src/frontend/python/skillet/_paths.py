"""Where the files are: in the package (a wheel), or where a Debian package or `cmake --install` puts them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
SONAME = "libskillet_c.so.0"


def library_name() -> str:
    """What the dynamic linker is asked for."""
    named = os.environ.get("SKILLET_C_LIBRARY")
    if named:
        return named
    bundled = PACKAGE / "lib" / SONAME
    return str(bundled) if bundled.exists() else SONAME


def delegate_path() -> str:
    """The TensorFlow Lite delegate, for load_delegate(); that of the build whose C library SKILLET_C_LIBRARY names. FileNotFoundError: it is not
    installed."""
    named = Path(os.path.abspath(library_name())).parent if os.path.dirname(library_name()) else PACKAGE / "lib"
    folders = [named.parent / "tflite_delegate", named / "skillet", Path("/usr/lib/skillet"), Path("/usr/local/lib/skillet")]
    for folder in folders:
        file = folder / "libskillet.so"
        if file.exists():
            return str(file)
    raise FileNotFoundError(f"libskillet.so is in none of {', '.join(map(str, folders))}: install Skillet, or let SKILLET_C_LIBRARY name the "
                            f"{SONAME} of a build, which has the delegate too")


def command_path() -> str:
    """The `skillet` command. FileNotFoundError: it is not installed."""
    bundled = PACKAGE / "bin/skillet"
    found = str(bundled) if bundled.exists() else shutil.which("skillet")
    if found is None:
        raise FileNotFoundError(f"the skillet command is neither {bundled} nor in PATH")
    return found
