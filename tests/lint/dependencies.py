#!/usr/bin/env python3
"""The rules of the source tree that a compiler does not check (ARCHITECTURE.md, "Rules that a check enforces").

usage: dependencies.py [ROOT]     prints one line "file:line: what" per finding; exit code 1 when there is any.

Needs only Python; function lengths need universal-ctags and are left out, with a line, where it is missing.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 100
SOURCE_SUFFIXES = {".cpp", ".h", ".def"}

FOLDERS = ["base", "bits", "ir", "ref", "passes", "driver", "drivers", "compile", "sim", "uapi", "standin", "runtime",
           "frontend",
           "capture", "interpose", "tools"]
# From the ground up: a folder in LOWEST includes only itself and those before it.
LOWEST = ["base", "bits"]
# who: (what it must not include, what it may include all the same)
FORBIDDEN = {
    "compile": (["drivers", "sim", "uapi", "standin", "runtime", "frontend", "interpose", "tools"], None),
    "sim": (["compile", "drivers", "driver", "runtime", "uapi", "standin", "passes", "frontend", "interpose", "tools"],
            r"drivers/\w+/hw/"),
    "drivers": (["compile", "sim", "uapi", "standin", "runtime", "frontend", "interpose", "tools"], None),
    "driver": (["compile", "drivers", "sim", "uapi", "standin", "runtime", "frontend", "interpose", "tools"], None),
    "ir": (["compile", "ref", "passes", "driver", "drivers", "sim", "uapi", "standin", "runtime", "frontend", "capture",
            "interpose", "tools"], None),
    "ref": (["compile", "passes", "driver", "drivers", "sim", "uapi", "standin", "runtime", "frontend", "capture", "interpose",
             "tools"], None),
    "frontend": (["drivers", "sim", "uapi", "standin", "interpose", "tools"], None),
    "passes": (["compile", "drivers", "sim", "uapi", "standin", "runtime", "frontend", "interpose", "tools"], None),
    "capture": (["compile", "ir", "ref", "passes", "driver", "drivers", "sim", "uapi", "standin", "runtime", "frontend",
                 "interpose", "tools"], None),
    "uapi": (["compile", "ir", "ref", "passes", "driver", "drivers", "sim", "standin", "runtime", "frontend", "interpose", "tools"],
             None),
    "standin": (["compile", "ir", "ref", "passes", "driver", "drivers", "runtime", "frontend", "interpose", "tools"],
                r"drivers/\w+/hw/"),
    # Simulated devices are made in one place; all else of the stand-ins is behind the kernel boundary.
    "runtime": (["drivers", "sim", "standin", "frontend", "interpose", "tools"], r"standin/simulated\.h$"),
    "interpose": (["compile", "ir", "ref", "passes", "driver", "drivers", "sim", "runtime", "frontend", "tools"], None),
    "tools": (["standin", "interpose"], r"standin/fault_plan\.h$|interpose/environment\.h$"),
}
# What knows a single kernel driver: for src/uapi/<kernel>/, src/standin/<kernel>/ and the registries only.
KERNEL_PART = re.compile(r"(?:uapi|standin)/(\w+)/")

VENDOR_WORDS = re.compile(
    r"vivante|verisilicon|vip ?nano|etnaviv|a311d|s905d3|amlogic|imx8mp|rockchip|rk35\d\d|rocket|ethos|\bu65\b|\bu85\b",
    re.IGNORECASE)
# Where a vendor or a kernel driver may be named: its own folders, the one-line registries, the reader of recorded kernel
# calls and the tools' help texts. Tests may name anything.
VENDOR_HOME = re.compile(
    r"src/(drivers|sim|uapi|standin)/\w+/|src/tools/|src/(uapi|standin)/kernels\.cpp$"
    r"|src/driver/registry\.cpp$|src/sim/sim\.cpp$|src/capture/golden_folder\.cpp$")
REGISTRIES = {"src/driver/registry.cpp", "src/sim/sim.cpp", "src/uapi/kernels.cpp", "src/standin/kernels.cpp"}
TEST_FILE = re.compile(r"_(test|fuzz)\.cpp$|/(test|toy)_\w+\.(cpp|h)$|/testing/")

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


class Lint:
    def __init__(self, root):
        self.root = Path(root)
        self.findings = []

    def report(self, path, line, what):
        self.findings.append(f"{path}:{line}: {what}")

    def run(self):
        for path in sorted((self.root / "src").rglob("*")):
            if path.is_file() and path.suffix in SOURCE_SUFFIXES:
                self.check_file(path.relative_to(self.root).as_posix(), path.read_text(encoding="utf-8").splitlines())
        for folder in ("bench", "tests", "include"):
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in {".cpp", ".h"}:
                    self.check_length(path.relative_to(self.root).as_posix(), path.read_text(encoding="utf-8").splitlines())
        self.check_functions()
        return self.findings

    def check_file(self, path, lines):
        self.check_length(path, lines)
        self.check_includes(path, lines)
        if not VENDOR_HOME.match(path) and not TEST_FILE.search(path):
            self.check_vendor_words(path, lines)
        if path.endswith(".h"):
            self.check_header(path, lines)

    def check_length(self, path, lines):
        if not path.endswith(".def") and len(lines) > MAX_FILE_LINES:
            self.report(path, len(lines), f"file has {len(lines)} lines; the limit is {MAX_FILE_LINES}")

    def check_includes(self, path, lines):
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            free = bool(TEST_FILE.search(path)) or path in REGISTRIES
            if match and (reason := forbidden_include(path, match[1], free)):
                self.report(path, number, reason)

    def check_vendor_words(self, path, lines):
        for number, line in enumerate(lines, 1):
            code = line.split("//")[0]  # a comment may give an example
            if match := VENDOR_WORDS.search(code):
                self.report(path, number, f"vendor name '{match[0]}' outside the vendor's folders")

    def check_header(self, path, lines):
        if not lines or not lines[0].startswith("//"):
            self.report(path, 1, "a header opens with a comment: what it is, who calls it, what it must not know")
        if "#pragma once" not in lines and "no include guard" not in " ".join(line.lstrip("/ ") for line in lines[:8]):
            self.report(path, 1, "header without #pragma once (or a word in its opening comment: no include guard)")

    def check_functions(self):
        ctags = shutil.which("ctags")
        if not ctags or "Universal" not in run_text([ctags, "--version"]):
            print("function lengths: not checked, universal-ctags is not installed")
            return
        files = [str(p.relative_to(self.root)) for folder in ("src", "bench", "tests")
                 for p in sorted((self.root / folder).rglob("*")) if p.suffix in {".cpp", ".h"}]
        tags = run_text([ctags, "-L", "-", "-f", "-", "--languages=C++", "--langmap=C++:.cpp.h", "--kinds-C++=f",
                         "--fields=+ne", "--output-format=u-ctags"], "\n".join(files), self.root)
        for tag in filter(lambda t: t and not t.startswith("!"), tags.splitlines()):
            name, path, *rest = tag.split("\t")
            fields = dict(part.split(":", 1) for part in rest if re.match(r"(line|end):\d+$", part))
            length = int(fields.get("end", 0)) - int(fields.get("line", 0)) + 1
            if length > MAX_FUNCTION_LINES:
                self.report(path, fields["line"], f"function {name} has {length} lines; the limit is {MAX_FUNCTION_LINES}")


def forbidden_include(path, included, is_free):
    """Why PATH must not include INCLUDED, or None. IS_FREE: a test, which may look at what it tests from any side."""
    folder = path.split("/")[1]
    target = included.split("/")[0]
    if target not in FOLDERS:  # beside the file, or a library's
        return None
    if folder in LOWEST:
        allowed = LOWEST[: LOWEST.index(folder) + 1]
        return None if target in allowed else f"{folder} includes {included}; it may include only {', '.join(allowed)}"
    kernel = KERNEL_PART.match(included)
    if kernel and not is_free and not re.match(rf"src/(uapi|standin)/{kernel[1]}/", path):
        return f"{included} belongs to one kernel driver; only its own folders may include it"
    targets, exception = FORBIDDEN.get(folder, ([], None))
    if is_free or target == folder or target not in targets or exception and re.match(exception, included):
        return None
    return f"{folder} must not include {included}"


def run_text(command, text="", folder=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, cwd=folder, check=True).stdout


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    findings = Lint(root).run()
    print("\n".join(findings) if findings else "dependency lint: fine")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
