"""Starts runner.cpp in the root: one process for each case, emulated unless this machine is arm64."""
import dataclasses
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from root import LIBRARIES, TEFLON, SetUpError, alone, run

HERE = Path(__file__).resolve().parent
TIMEOUT_SECONDS = 900


@dataclasses.dataclass
class Outcome:
    code: int
    log: str
    outputs: list
    is_signed: list
    seconds: float
    is_timeout: bool = False

    def number(self, name):
        found = re.search(rf"^{name} (\d+)", self.log, re.MULTILINE)
        return int(found[1]) if found else None


class Runner:
    def __init__(self, folder, root, virtual_library):
        self.folder, self.root, self.virtual_library = folder, root, virtual_library
        self.emulator = self.find_emulator()

    @staticmethod
    def find_emulator():
        if platform.machine() == "aarch64":
            return []
        for name in ("qemu-aarch64-static", "qemu-aarch64"):
            if shutil.which(name):
                return [name]
        raise SetUpError("no emulator of arm64 (Debian: qemu-user-static)")

    def build(self):
        """Builds the programs of this folder if they are older than their sources or the root."""
        libraries = self.root / LIBRARIES
        with alone(self.folder):
            self.compile("runner", "runner.cpp", "aarch64-linux-gnu-g++", [
                "-std=c++20", "-O2", "-isystem", self.root / "usr/include", "-L", libraries, "-ltensorflow-lite",
                "-Wl,--allow-shlib-undefined"])  # the root's C library is newer than the compiler's
            self.compile("roomy_heap.so", "roomy_heap.c", "aarch64-linux-gnu-gcc",
                         ["-std=gnu17", "-O1", "-fno-builtin", "-shared", "-fPIC"])

    def compile(self, target, source, compiler, flags):
        path, mark = self.folder / target, self.folder / "packages.json"
        newest = max((HERE / source).stat().st_mtime, mark.stat().st_mtime)
        if path.exists() and path.stat().st_mtime > newest:
            return
        part = path.with_name(target + ".part")
        run([compiler, HERE / source, "-o", part, *flags])
        part.replace(path)

    def command(self, preloaded, arguments):
        """Returns a command that starts the program with the root's own loader.

        So no setting of this machine affects the program."""
        loader = [self.root / "lib/ld-linux-aarch64.so.1", "--library-path", self.root / LIBRARIES]
        if preloaded:
            loader += ["--preload", ":".join(str(library) for library in preloaded)]
        return [*self.emulator, *map(str, loader), str(self.folder / "runner"), *map(str, arguments)]

    def tflite(self, case):
        """Runs TensorFlow Lite by itself, with its reference kernels."""
        return self.start(case, [], [], {})

    def peer(self, case, chip, is_roomy=False):
        """Runs the peer's delegate with the virtual node. is_roomy: with zeros behind its heap blocks."""
        preloaded = [self.folder / "roomy_heap.so"] if is_roomy else []
        settings = {"SKILLET_VIRTUAL_CHIP": chip, "SKILLET_VIRTUAL_TRACE": "1", "TEFLON_DEBUG": "verbose",
                    "MESA_SHADER_CACHE_DISABLE": "true"}
        return self.start(case, [*preloaded, self.virtual_library], ["--delegate", self.root / TEFLON], settings)

    def host_time(self, case, chip, delegate):
        """Returns the shortest time of an inference with `delegate` and with the peer's, in us."""
        arguments = [case.model, "--repeat", "200", "--delegate", delegate, "--set", f"device=null:{chip}",
                     "--set", "partition=all", "--delegate", self.root / TEFLON]
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "SKILLET_VIRTUAL_CHIP": f"null:{chip}",
                       "MESA_SHADER_CACHE_DISABLE": "true"}
        with tempfile.TemporaryDirectory(prefix="skillet-peer-") as scratch:
            done = finish(self.command([self.virtual_library], arguments), environment, Path(scratch))
        return [float(us) for us in re.findall(r"inference, us: min ([\d.]+)", done.log)]

    def start(self, case, preloaded, arguments, settings):
        with tempfile.TemporaryDirectory(prefix="skillet-peer-") as scratch:
            inputs = [word for path in case.inputs for word in ("--input", path)] or ["--random", "1"]
            arguments = [case.model, *arguments, *inputs, "--output", f"{scratch}/output_"]
            environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": scratch, "HOME": scratch, **settings}
            return finish(self.command(preloaded, arguments), environment, Path(scratch))


def finish(command, environment, scratch):
    """Runs COMMAND to its end. Its standard output and error form one log."""
    begin, is_timeout = time.monotonic(), False
    with open(scratch / "log", "w+b") as log:
        try:
            code = subprocess.run(command, env=environment, cwd=scratch, stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=subprocess.STDOUT, timeout=TIMEOUT_SECONDS, check=False).returncode
        except subprocess.TimeoutExpired:
            code, is_timeout = 1, True
        log.seek(0)
        text = log.read().decode(errors="replace")
    written = re.findall(r"^output \d+ (\w+) \d+$", text, re.MULTILINE)
    outputs = [(scratch / f"output_{index}").read_bytes() for index in range(len(written))]
    header = f"$ {shlex.join(command)}\n"
    is_signed = [kind == "INT8" for kind in written]
    return Outcome(code, header + text, outputs, is_signed, time.monotonic() - begin, is_timeout)
