#!/usr/bin/env python3
"""The plug-in as a file: what it exports and needs, and that it can be loaded and unloaded without a trace.

usage: exports_test.py DELEGATE
"""
import ctypes
import re
import subprocess
import sys
from pathlib import Path

EXPORTS = {"tflite_plugin_create_delegate", "tflite_plugin_destroy_delegate"}
NEEDED = re.compile(r"(libc\.so\.6|libm\.so\.6|ld-linux.*\.so\.\d|libpthread\.so\.0|libdl\.so\.2)$")
LOADS = 1000


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def check_symbols(path):
    defined = {line.split()[-1].split("@")[0] for line in output("nm", "-D", "--defined-only", path).splitlines()}
    assert defined == EXPORTS, f"exports {sorted(defined)}"
    # Weak ones (w) may stay unresolved; libzstd has hooks for tracing.
    imported = [line.split()[-1] for line in output("nm", "-D", "--undefined-only", path).splitlines() if " U " in line]
    for name in imported:
        assert not re.match(r"TfLite|_ZN6tflite|_ZN3fmt|_ZNS?t|ZSTD|XXH|__cxa_thread_atexit", name), f"imports {name}"


def check_file(path):
    needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-dW", path))
    assert all(NEEDED.match(name) for name in needed), f"needs {needed}"
    assert "NODELETE" not in output("readelf", "-dW", path), "cannot be unloaded"
    # A unique symbol keeps the library in the process for ever.
    assert "UNIQUE" not in output("readelf", "--dyn-syms", "-W", path), "has unique symbols"


def check_reload(path):
    libc = ctypes.CDLL(None)
    libc.dlclose.argtypes = [ctypes.c_void_p]
    resident = []
    for i in range(LOADS):
        library = ctypes.CDLL(path)
        library.tflite_plugin_create_delegate.restype = ctypes.c_void_p
        library.tflite_plugin_destroy_delegate.argtypes = [ctypes.c_void_p]
        keys, values = (ctypes.c_char_p * 2)(b"device", b"log"), (ctypes.c_char_p * 2)(b"sim:a311d", b"error")
        delegate = library.tflite_plugin_create_delegate(keys, values, ctypes.c_size_t(2), None)
        assert delegate, "no delegate"
        library.tflite_plugin_destroy_delegate(delegate)
        handle = library._handle
        del library
        assert libc.dlclose(handle) == 0
        assert Path(path).name not in Path("/proc/self/maps").read_text(), "is still mapped after dlclose"
        if i % 100 == 99:
            resident.append(int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1]))
    growth = resident[-1] - resident[0]
    print(f"{LOADS} loads: {growth} KiB more than after the first 100")
    assert growth < 1024, f"resident memory grows: {resident} KiB"


def main():
    path = str(Path(sys.argv[1]).resolve())
    check_symbols(path)
    check_file(path)
    check_reload(path)
    print("delegate exports: fine")


if __name__ == "__main__":
    main()
