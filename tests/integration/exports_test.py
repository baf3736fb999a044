#!/usr/bin/env python3
"""Checks the libraries as files.

The plug-in: its exports and dependencies, and that it can be loaded and unloaded without a trace. Each library: that it installs no
handlers of signals, of fork() or of the end of its host. Each file: that it runs with glibc 2.28.

usage: exports_test.py DELEGATE LIBRARY... -- FILE...
"""
import ctypes
import re
import subprocess
import sys
from pathlib import Path

EXPORTS = {"libskillet.so": {"tflite_plugin_create_delegate", "tflite_plugin_destroy_delegate"},
           "libskillet_onnxruntime.so": {"CreateEpFactories", "ReleaseEpFactory"},
           "libLiteRtCompilerPlugin_Skillet.so": {
               "LiteRtGetCompilerPluginVersion", "LiteRtGetCompilerPluginSocManufacturer", "LiteRtCreateCompilerPlugin", "LiteRtDestroyCompilerPlugin",
               "LiteRtGetCompilerPluginSupportedHardware", "LiteRtGetNumCompilerPluginSupportedSocModels", "LiteRtGetCompilerPluginSupportedSocModel",
               "LiteRtCompilerPluginPartition", "LiteRtCompilerPluginCompile", "LiteRtDestroyCompiledResult", "LiteRtCompiledResultNumByteCodeModules",
               "LiteRtGetCompiledResultByteCode", "LiteRtGetCompiledResultCallInfo", "LiteRtGetNumCompiledResultCalls",
               "LiteRtCompilerPluginRegisterAllTransformations", "LiteRtGetCompilerPluginSDKVersion", "LiteRtCompilerPluginCheckCompilerCompatibility",
               "LiteRtCompilerPluginQueryInterface", "LiteRtDispatchGetApi", "LiteRtDispatchQueryInterface"}}
NEEDED = re.compile(r"(libc\.so\.6|libm\.so\.6|ld-linux.*\.so\.\d|libpthread\.so\.0|libdl\.so\.2)$")
# Destructors of static objects (__cxa_atexit) do not count: they run when the library is unloaded.
HANDLERS = re.compile(r"(__)?(rt_|lib)?sig(action|nal|vec|set|altstack)|bsd_signal|__?sysv_signal|signalfd|(__register|pthread)_atfork|"
                      r"(at|at_quick_|on_)exit")
LOADS = 400
OLDEST_GLIBC = (2, 28)  # of Ubuntu 20.04 2.31, of Debian 11 2.31, of RHEL 8 and manylinux_2_28 2.28


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def check_symbols(path):
    defined = {line.split()[-1].split("@")[0] for line in output("nm", "-D", "--defined-only", path).splitlines()}
    assert defined == EXPORTS[Path(path).name], f"{path} exports {sorted(defined)}"
    # Weak symbols (w) may stay unresolved; libzstd has hooks for tracing.
    imported = [line.split()[-1] for line in output("nm", "-D", "--undefined-only", path).splitlines() if " U " in line]
    for name in imported:
        assert not re.match(r"TfLite|_ZN6tflite|_ZN3fmt|_ZNS?t|ZSTD|XXH|__cxa_thread_atexit", name), f"imports {name}"


def check_handlers(path):
    lines = output("nm", "-D", "--undefined-only", path).splitlines()
    names = [line.split()[-1].split("@")[0] for line in lines]
    assert "ioctl" in names, f"{path}: it opens no device: {names}"
    handlers = [name for name in names if HANDLERS.fullmatch(name)]
    assert not handlers, f"{path}: imports {handlers}"


def check_file(path):
    needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-dW", path))
    assert all(NEEDED.match(name) for name in needed), f"needs {needed}"
    assert "NODELETE" not in output("readelf", "-dW", path), "cannot be unloaded"
    # A unique symbol prevents the library from being unloaded.
    assert "UNIQUE" not in output("readelf", "--dyn-syms", "-W", path), "has unique symbols"


def check_glibc(path):
    newer = [f"{name} ({version})" for name, version in re.findall(r" (\w+)@(GLIBC_[\d.]+)", output("nm", "-D", "--undefined-only", path))
             if tuple(map(int, version.removeprefix("GLIBC_").split("."))) > OLDEST_GLIBC]
    assert not newer, f"{path} needs a C library newer than 2.28: {newer}; a row of src/base/older_glibc.def calls an older version"


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
    assert growth < 340, f"resident memory grows: {resident} KiB"


def main():
    path = str(Path(sys.argv[1]).resolve())
    split = sys.argv.index("--")
    for library in sys.argv[1:split]:
        check_handlers(library)
    for file in sys.argv[1:split] + sys.argv[split + 1:]:
        check_glibc(file)
    for plugin in [file for file in sys.argv[1:split] if Path(file).name in EXPORTS]:
        check_symbols(plugin)
        check_file(plugin)
    check_reload(path)
    print("delegate exports: fine")


if __name__ == "__main__":
    main()
