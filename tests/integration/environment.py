"""Sets up external requirements of the tests: virtual environments, one with TensorFlow Lite runtimes, and TFLite 2.9 from npm.

Everything is stored under build/, once; later runs need no network. Functions that fail print a line and return None.
"""
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

NUMPY = "numpy<2"  # what tflite-runtime was built with
PACKAGES = ["ai-edge-litert", "tflite-runtime==2.14.0"]
OF_PYTHON_TESTS = ["numpy", "mypy", "kcidb-io"]  # of build/python-venv
# The only packages of these for Linux: a TFLite of 2022 with the C interface; an ONNX Runtime that exports its C interface.
TFLITE_2_9 = ("tfjs-tflite-node@0.0.2", "cc_deps/linux_{}/libtensorflowlite_c.so", {"x86_64": "amd64", "aarch64": "arm64"})
ONNXRUNTIME_1_22 = ("onnxruntime-node@1.22.0", "bin/napi-v6/linux/{}/libonnxruntime.so.1", {"x86_64": "x64", "aarch64": "arm64"})


@contextlib.contextmanager
def made_once(folder):
    """Locks FOLDER, which two tests may want to make at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(folder.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def virtual_environment(folder, groups):
    """Returns the interpreter of a virtual environment in FOLDER, and which GROUPS of packages it has.

    A group is installed completely or not at all. None: no environment can be made."""
    with made_once(folder):
        return made_environment(folder, groups)


def made_environment(folder, groups):
    python, mark = folder / "bin/python", folder / "skillet-packages.json"
    if mark.exists() and json.loads(mark.read_text()) == groups:
        return python, groups
    if subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True, check=False).returncode != 0:
        print("no virtual environment can be made here (Debian: python3-venv)")
        return None, []
    found = []
    for group in groups:  # separately: if one runtime has no wheel for this Python, the other one is still tested
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20", *group]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found.append(group)
        else:
            print(f"pip does not install {' '.join(group)}: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    if found == groups:
        mark.write_text(json.dumps(groups))
    return python, found


def python_with_runtimes(folder):
    """Returns the interpreter of a virtual environment in FOLDER with at least one of the runtimes."""
    python, found = virtual_environment(folder, [[NUMPY, package] for package in PACKAGES])
    return python if found else None


def tflite_2_9(folder):
    """Returns the path of libtensorflowlite_c.so of TFLite 2.9 for this machine."""
    return npm_library(folder, *TFLITE_2_9)


def npm_library(folder, package, place, machines):
    """Returns the path of the library at PLACE of an npm package, for this machine. The package's headers are there too."""
    with made_once(folder):
        return downloaded(folder, package, place, machines)


def downloaded(folder, package, place, machines):
    name, machine = package.replace("@", "-"), machines.get(machine_name())
    library = folder / name / "package" / place.format(machine)
    if library.exists():
        return library
    if machine is None or shutil.which("npm") is None:
        print(f"integration: {package} is left out, it needs npm (Debian: npm) on x86-64 or arm64")
        return None
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["npm", "pack", "--silent", package], cwd=folder, capture_output=True, check=False)
    archive = folder / f"{name}.tgz"
    if done.returncode != 0 or not archive.exists():
        print(f"integration: {package} is left out, npm does not give it")
        return None
    with tarfile.open(archive) as tar:
        tar.extractall(folder / name, [one for one in tar if one.name.endswith((place.format(machine), ".h"))])
    return library if library.exists() else None


def machine_name():
    return subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip()


def start_inside(file, library, source, venv, command=None):
    """Restarts a test of the Python package with warnings as errors and the arguments --inside and SOURCE.

    It runs in VENV, with the tests' packages, or in this Python if nothing can be installed. COMMAND: its folder becomes the first in
    PATH."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SKILLET_", "PYTHON"))}
    environment.update(SKILLET_C_LIBRARY=library, PYTHONPATH=str(Path(file).resolve().parent), SKILLET_LOG="error")
    if command is not None:
        environment["PATH"] = f"{Path(command).parent}:{environment['PATH']}"
    python = str(virtual_environment(Path(venv), [OF_PYTHON_TESTS])[0] or sys.executable)
    os.execve(python, [python, "-X", "dev", "-W", "error", file, "--inside", source], environment)
