"""Finds the installed files: in the package (a wheel), or where a Debian package or `cmake --install` puts them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
SONAME = "libskillet_c.so.0"


def library_name() -> str:
    """Returns the name that the dynamic linker looks up."""
    named = os.environ.get("SKILLET_C_LIBRARY")
    if named:
        return named
    places = [PACKAGE / "lib" / SONAME]
    if PACKAGE.parent.name == "dist-packages":  # PREFIX/lib/python3/dist-packages
        places.append(PACKAGE.parents[2] / SONAME)
    return next((str(one) for one in places if one.exists()), SONAME)


def delegate_path() -> str:
    """Returns the path of the TensorFlow Lite delegate for load_delegate(). It is of the same build as SKILLET_C_LIBRARY if that is set.

    Raises FileNotFoundError if the delegate is not installed."""
    named = Path(os.path.abspath(library_name())).parent if os.path.dirname(library_name()) else PACKAGE / "lib"
    folders = [named.parent / "tflite_delegate", named / "skillet", Path("/usr/lib/skillet"), Path("/usr/local/lib/skillet")]
    for folder in folders:
        file = folder / "libskillet.so"
        if file.exists():
            return str(file)
    raise FileNotFoundError(f"libskillet.so is in none of {', '.join(map(str, folders))}: install Skillet, or let SKILLET_C_LIBRARY name the "
                            f"{SONAME} of a build, which has the delegate too")


def command_path() -> str:
    """Returns the path of the `skillet` command. Raises FileNotFoundError if it is not installed."""
    bundled = PACKAGE / "bin/skillet"
    found = str(bundled) if bundled.exists() else shutil.which("skillet")
    if found is None:
        raise FileNotFoundError(f"the skillet command is neither {bundled} nor in PATH")
    return found
