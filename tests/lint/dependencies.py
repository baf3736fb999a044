#!/usr/bin/env python3
"""Checks rules of the source tree that a compiler does not check (ARCHITECTURE.md, "Rules that a check enforces").

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

# An area is a folder to which rules apply: (path below src/, area). The first match counts, else the top folder is the area.
AREAS = [(re.compile(pattern), area) for pattern, area in (
    (r"npus/\w+/(hw|compiler|sim|fake)/", r"\1"), (r"kernels/(?:\w+/)?fake/", "fake"), (r"kernels/", "kernels"),
    (r"(?:graph|lab)/(\w+)/", r"\1"))]
TOP_FOLDERS = {"base", "simd", "bits", "graph", "program", "npu", "npus", "compile", "sim", "kernels", "capture", "runtime", "frontend", "lab", "tools"}
# The lowest folders: each includes only itself and those before it.
LOWEST = ["base", "simd", "bits"]
ABOVE = ["compile", "runtime", "frontend", "compare", "interpose", "mmio", "tools"]  # lower areas must not include these
DEVICES = ["sim", "kernels", "fake"]
# area: (areas that it must not include, exceptions)
FORBIDDEN = {
    "capture": (["ir", "import", "ref", "passes", "quantize", "program", "npu", "compiler", *DEVICES, *ABOVE], None),
    "ir": (["import", "ref", "passes", "quantize", "program", "npu", "compiler", "capture", *DEVICES, *ABOVE], None),
    "import": (["passes", "quantize", "program", "npu", "compiler", "capture", *DEVICES, *ABOVE], None),
    "ref": (["import", "passes", "quantize", "program", "npu", "compiler", "capture", *DEVICES, *ABOVE], None),
    "program": (["import", "passes", "quantize", "npu", "compiler", "capture", *DEVICES, *ABOVE], None),
    "npu": (["import", "passes", "quantize", "compiler", *DEVICES, *ABOVE], None),
    "passes": (["import", "quantize", "compiler", *DEVICES, *ABOVE], None),
    "quantize": (["import", "program", "npu", "compiler", "capture", *DEVICES, *ABOVE], None),
    "compiler": (["quantize", *DEVICES, *ABOVE], None),
    "sim": (["import", "passes", "quantize", "program", "npu", "compiler", "kernels", "fake", *ABOVE], None),
    "kernels": (["ir", "import", "ref", "passes", "quantize", "program", "npu", "compiler", "sim", "fake", *ABOVE], None),
    "fake": (["ir", "import", "ref", "passes", "quantize", "program", "npu", "compiler", *ABOVE], None),
    "compile": (["import", "quantize", "compiler", *DEVICES, "runtime", "frontend", "compare", "interpose", "tools"], None),
    # Simulated devices are made in one header, and the times of programs are in another. Other parts of the fakes are behind
    # the kernel boundary.
    "runtime": (["import", "quantize", "compiler", "sim", "fake", "frontend", "compare", "interpose", "tools"],
                r"kernels/fake/simulated\.h$|sim/timing\.h$"),
    # The camera element finds and draws objects in outputs as `skillet run` does.
    "frontend": (["compiler", *DEVICES, "compare", "interpose", "tools"],
                 r"kernels/api/|tools/model/model\.h$|tools/run/(found|found_print|scores)\.h$|tools/show/paint\.h$|tools/tensors/picture\.h$"),
    "compare": (["import", "passes", "quantize", "compiler", *DEVICES, "compile", "runtime", "frontend", "interpose", "tools"], None),
    "interpose": (["ir", "import", "ref", "passes", "quantize", "program", "npu", "compiler", "sim", "compile", "runtime", "frontend", "compare",
                   "tools"], None),
    # Linux's drivers access these registers in front of a simulator, whose identity is that of the fake kernel driver.
    "mmio": (["ir", "import", "ref", "passes", "quantize", "program", "npu", "compiler", "compile", "runtime", "frontend", "compare",
              "interpose", "tools"], None),
    "tools": (["compiler", "sim", "fake", "interpose", "mmio"],
              r"kernels/fake/fault_plan\.h$|lab/interpose/environment\.h$|sim/(timing|weights)\.h$"),
}
# Code for a single kernel driver: in src/kernels/<kernel driver>/, the file of its name in a family's fake/, and the tables.
KERNEL_PART = re.compile(r"kernels/(?!api/|fake/)(\w+)/")
KERNEL_HOME = r"src/kernels/{0}/|src/lab/mmio/{0}/|src/npus/\w+/fake/{0}\.cpp$"
TABLES = {"src/kernels/api/kernels.cpp", "src/kernels/fake/kernels.cpp"}
# Code for a single family: in its own folder. The registries name none: cmake/vendors.cmake makes their rows.
FAMILY_PART = re.compile(r"npus/(\w+)/")
FAMILY_HOME = r"src/npus/{0}/|src/lab/mmio/\w+/"

# Words that shared folders must not use in code, and where they belong. Comments may use them in examples; tests may use all.
CONCEPTS = [
    ("vendor name", re.compile(
        r"vivante|verisilicon|vip ?nano|etnaviv|a311d|s905d3|amlogic|imx8mp|rockchip|rk35\d\d|rocket|ethos|\bu65\b|\bu85\b",
        re.IGNORECASE), "the family's folders, or a row of a table"),
    ("word of a kernel driver", re.compile(
        r"\b(?:product_?id|customer_?id|eco_?id|softpin|exec_state|pm_?domain|nr_(?:bos|relocs|pmrs)|regcmds?|galcore|rknpu"
        r"|cmdstream)\b|/dev/(?:dri|accel)/(?!renderD128\b)|\b_IO[WR]+\b|DRM_IOCTL", re.IGNORECASE),
     "kernels/<kernel driver>/, or a fact of a device"),
    ("word of a chip", re.compile(
        r"\b(?:nn_instruction|tp_instruction|load_state|coefficients?_v\d|cbuf|zrl|pwl_lut|npu_core)\w*\b", re.IGNORECASE),
     "npus/<family>/"),
    ("format of a chip", re.compile(r"\b(?:nc1hwc2|nhcwb16|nc4hw4)\w*\b", re.IGNORECASE), "a value of TensorLayout"),
]
ANY_CONCEPT = re.compile("|".join(words.pattern for _, words, _ in CONCEPTS), re.IGNORECASE)
WORDS = re.compile(r"[\w/ ]+")  # each concept lies within one such piece of a text
CONCEPT_HOME = re.compile(r"src/(?:(npus|kernels/(?!api/|fake/))\w*|lab/mmio/\w+)/")
# In texts for people: names of devices or chips on the command line, and the project's files.
EXAMPLES = re.compile(r"\b(?:sim|null):\w+|--chip \w+|tests/captures/[\w/.]+|\betnaviv0\b")
# Exceptions: which words, and why.
NAMES, CALLS = CONCEPTS[0][0], CONCEPTS[1][0]
ALLOWED = {
    "src/kernels/api/kernels.cpp": ([NAMES], "the table of kernel drivers: a row each"),
    "src/kernels/fake/kernels.cpp": ([NAMES], "the table of stand-ins: a row each"),
    "src/kernels/api/drm.h": ([CALLS], "the calls that all DRM drivers share"),
    "src/capture/golden_folder.cpp": ([NAMES, CALLS], "reads folders of recorded calls, each of one of two kernel drivers"),
    "src/tools/machine/devices.cpp": ([CALLS], "where device nodes are, for people"),
    "src/tools/machine/npu_uses.cpp": ([CALLS], "which open files are of accelerators, of drivers that are not ours too"),
    "src/tools/machine/npu_state.cpp": ([CALLS], "where a node is in sysfs"),
}
# In lists of sources: the folders of kernel drivers, and the families that a test needs.
CMAKE_ALLOWED = re.compile(r"\b(?:etnaviv|rocket|ethosu)/\S+|\bVENDORS( \w+)+|skillet_has_vendors\([^)]*\)|\bhas_\w+|\bETNAVIV\b")
TEST_FILE = re.compile(r"_(test|fuzz)\.cpp$|/(test|toy)_\w+\.(cpp|h)$|/testing/")

VARIABLE = re.compile(r'"(SKILLET_[A-Z0-9_]+)"')
VARIABLES_HOME = "src/base/environment.h"
# In a setuid program another user sets the environment: environment_variable() handles that.
GETENV = re.compile(r"\b(?:secure_|__secure_)?getenv\b")
GETENV_HOME = "src/base/environment.cpp"

# Names that another run on the machine would use, too. mkdtemp() replaces XXXXXX.
FIXED_NAME = re.compile(r"\bTempDir\(\)|\btemp_directory_path\b|\bTEST_TMPDIR\b|\"/tmp\b(?![^\"]*XXXXXX)")
PYTHON_FIXED_NAME = re.compile(r"\bgettempdir\b|\bmktemp\(|\bTEST_TMPDIR\b|[\"']/tmp/\w")
PARTS_OF_NAMES = ("TempDir", "tempdir", "temp_directory", "mktemp", "TMPDIR", "/tmp")  # each match of these two has one
OWN_FOLDER = "src/base/testing/own_folder.h"
# Paths on the machine under test, and texts of this rule.
NAMES_OF_MACHINES = {"tests/lint/dependencies.py", "tests/lint/dependencies_test.py"}
PYTHON_TEST = re.compile(r"_test\.py$")

# Throwing overloads: with one argument that is not a file_status.
THROWING = re.compile(r"\b(?:fs|filesystem)::(?:exists|is_\w+|status|symlink_status|file_size|canonical|absolute|equivalent|"
                      r"create_director\w+|remove|remove_all|space|read_symlink|hard_link_count|"
                      r"last_write_time)\((?!status\b)(?:[^(),]|\([^()]*\))*\)|\b(?:current|temp_directory)_path\(\)|"
                      r"for \(.* : .*directory_iterator\(")
PARTS_OF_THROWING = ("fs::", "filesystem::", "_path()", "directory_iterator")  # each match has one
# Calls that return a std::ranges::subrange, or views: clang 14 rejects these in libstdc++ 12, and the sanitizers' builds use both.
VIEWS = re.compile(r"\branges::(?:stable_partition|partition|unique|remove(?:_if)?|rotate|search(?:_n)?|find_end|equal_range|subrange|views)\b"
                   r"|\bstd::views\b")
# EXPECT_ and ASSERT_ expand to an if with an else: gcc warns about them (dangling-else) in some builds only.
BARE_IF = re.compile(r"^\s*(?:else )?if \(.*\)$")
BARE_EXPECT = re.compile(r"^\s*(?:EXPECT|ASSERT)_\w+\(")
BARE_IF_EXPECT = re.compile(r"^\s*(?:else )?if \(.*\) ((?:EXPECT|ASSERT)_\w+)\(")
NAMESPACE = re.compile(r"^namespace ([\w:]*) ?\{")
TYPE = re.compile(r"^(?:struct|class) (\w+)(?: final)?(?: : [^;]*)? \{")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


class Lint:
    def __init__(self, root):
        self.root = Path(root)
        self.findings = []
        home = self.root / VARIABLES_HOME
        self.variables = set(VARIABLE.findall(home.read_text(encoding="utf-8"))) if home.is_file() else set()
        self.without = set()  # pieces of texts that have no concept: most are in several files
        self.needed = set()  # of ALLOWED: (path, concept)
        self.types = {}  # by namespace and name, the file that has it

    def report(self, path, line, what):
        self.findings.append(f"{path}:{line}: {what}")

    def run(self, functions=True):
        for path in sorted((self.root / "src").rglob("*")):
            if path.is_file() and path.suffix in SOURCE_SUFFIXES:
                self.check_file(path.relative_to(self.root).as_posix(), path.read_text(encoding="utf-8").splitlines())
        for path in [self.root / "CMakeLists.txt", *sorted((self.root / "src").rglob("CMakeLists.txt"))]:
            if path.is_file():
                self.check_cmake(path.relative_to(self.root).as_posix(), path.read_text(encoding="utf-8").splitlines())
        for folder in ("bench", "tests", "include"):
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in {".cpp", ".h"}:
                    name, lines = path.relative_to(self.root).as_posix(), path.read_text(encoding="utf-8").splitlines()
                    self.check_length(name, lines)
                    self.check_compilers(name, lines)
                    if folder == "tests":
                        self.check_names(name, lines, FIXED_NAME, f"own_path() of {OWN_FOLDER} gives one of this process")
        for folder in ("src", "tests"):
            for path in sorted((self.root / folder).rglob("*.py")):
                name = path.relative_to(self.root).as_posix()
                if (PYTHON_TEST.search(name) or folder == "tests") and name not in NAMES_OF_MACHINES:
                    self.check_names(name, path.read_text(encoding="utf-8").splitlines(), PYTHON_FIXED_NAME, "tempfile gives one of this process")
        if functions:
            self.check_functions()
        return self.findings

    def check_file(self, path, lines):
        self.check_length(path, lines)
        self.check_includes(path, lines)
        self.check_types(path, lines)
        self.check_compilers(path, lines)
        if not CONCEPT_HOME.match(path) and not TEST_FILE.search(path):
            self.check_concepts(path, lines)
        if TEST_FILE.search(path) and path != OWN_FOLDER:
            self.check_names(path, lines, FIXED_NAME, f"own_path() of {OWN_FOLDER} gives one of this process")
        if not TEST_FILE.search(path):
            self.check_variables(path, lines)
            self.check_throwing(path, lines)
        if path.endswith(".h"):
            self.check_header(path, lines)

    def check_length(self, path, lines):
        if not path.endswith(".def") and len(lines) > MAX_FILE_LINES:
            self.report(path, len(lines), f"file has {len(lines)} lines; the limit is {MAX_FILE_LINES}")

    def check_includes(self, path, lines):
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line) if "include" in line else None
            if match and (reason := forbidden_include(path, match[1], bool(TEST_FILE.search(path)) or path in TABLES)):
                self.report(path, number, reason)

    def check_types(self, path, lines):
        """Finds two types of the same name: the linker would merge their functions."""
        spaces = []
        for number, line in enumerate(lines, 1):
            if line[:1] not in ("n", "}", "s", "c"):
                continue
            if match := NAMESPACE.match(line):
                spaces.append(match[1])
            elif line.startswith("}  // namespace") and spaces:
                spaces.pop()
            elif (match := TYPE.match(line)) and "" not in spaces:
                other = self.types.setdefault(("::".join(spaces), match[1]), path)
                if other != path:
                    self.report(path, number, f"{match[1]} is a type of {other}, too")

    def check_concepts(self, path, lines):
        pieces = set(WORDS.findall("\n".join(lines).lower())) - self.without
        without = {piece for piece in pieces if not ANY_CONCEPT.search(piece)}
        self.without |= without
        if len(without) == len(pieces):
            return
        allowed, _ = ALLOWED.get(path, ([], ""))
        for number, line in enumerate(lines, 1):
            if not ANY_CONCEPT.search(line):
                continue
            code = EXAMPLES.sub("", line.split("//")[0])  # comments may contain examples
            for what, words, home in CONCEPTS:
                match = words.search(code)
                if match and what in allowed:
                    self.needed.add((path, what))
                elif match:
                    self.report(path, number, f"{what} '{match[0]}' in a shared folder; its place: {home}")

    def check_variables(self, path, lines):
        for number, line in enumerate(lines, 1):
            for name in VARIABLE.findall(line) if "SKILLET_" in line else ():
                if name not in self.variables:
                    self.report(path, number, f"the environment variable {name} is not in {VARIABLES_HOME}")
            if "getenv" in line and path != GETENV_HOME and (match := GETENV.search(line.split("//")[0])):
                self.report(path, number, f"{match[0]}: environment_variable() of {VARIABLES_HOME} reads the environment")

    def check_names(self, path, lines, names, instead):
        if not has_any(PARTS_OF_NAMES, "\n".join(lines)):
            return
        for number, line in enumerate(lines, 1):
            if match := names.search(line):
                self.report(path, number, f"{match[0]}: a temporary name that another run has, too; {instead}")

    def check_throwing(self, path, lines):
        if not path.startswith("src/") or not has_any(PARTS_OF_THROWING, "\n".join(lines)):
            return
        for number, line in enumerate(lines, 1):
            if match := THROWING.search(line.split("//")[0]):
                self.report(path, number, f"{match[0]} throws; with a std::error_code it does not")

    def check_compilers(self, path, lines):
        """Finds code that one of the compilers rejects in one of the builds."""
        for number, (before, line) in enumerate(zip(["", *lines], lines), 1):
            if ("ranges::" in line or "std::views" in line) and (match := VIEWS.search(line.split("//")[0])):
                self.report(path, number, f"{match[0]} does not build with clang 14 and libstdc++ 12; the call in std:: does")
            if ("EXPECT_" in line or "ASSERT_" in line) and (BARE_IF_EXPECT.match(line) or (BARE_IF.match(before) and BARE_EXPECT.match(line))):
                self.report(path, number, "EXPECT_ and ASSERT_ after if need braces")

    def check_allowed(self):
        """Finds exceptions that are not needed. Called after run() on the whole tree."""
        for path, (concepts, _) in ALLOWED.items():
            for what in concepts:
                if (path, what) not in self.needed:
                    self.report("tests/lint/dependencies.py", 1, f"ALLOWED: {path} has no {what}")
        return self.findings

    def check_cmake(self, path, lines):
        if CONCEPT_HOME.match(path):
            return
        what, words, _ = CONCEPTS[0]
        for number, line in enumerate(lines, 1):
            if match := words.search(CMAKE_ALLOWED.sub("", line.split("#")[0])):
                self.report(path, number, f"{what} '{match[0]}' in a shared list; its place: its folders' own CMakeLists.txt")

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


def has_any(parts, text):
    """A quick look before a slow pattern."""
    return any(part in text for part in parts)


def area_of(path):
    """Returns the area of a path below src/."""
    for pattern, area in AREAS:
        if match := pattern.match(path):
            return match.expand(area)
    return path.split("/")[0]


def forbidden_include(path, included, is_free):
    """Returns why PATH must not include INCLUDED, or None. IS_FREE: a test, which may include anything."""
    if included.split("/")[0] not in TOP_FOLDERS:  # beside the file, or in a library
        return None
    area, target = area_of(path.removeprefix("src/")), area_of(included)
    if area in LOWEST:
        allowed = LOWEST[: LOWEST.index(area) + 1]
        return None if target in allowed else f"{area} includes {included}; it may include only {', '.join(allowed)}"
    kernel = KERNEL_PART.match(included)
    if kernel and not is_free and not re.match(KERNEL_HOME.format(kernel[1]), path):
        return f"{included} belongs to one kernel driver; only its own folders may include it"
    family = FAMILY_PART.match(included)
    if family and not is_free and not re.match(FAMILY_HOME.format(family[1]), path):
        return f"{area} must not include {included}: it belongs to one family; only its own folders may"
    targets, exception = FORBIDDEN.get(area, ([], None))
    if is_free or target == area or target not in targets or exception and re.match(exception, included):
        return None
    return f"{area} must not include {included}"


def run_text(command, text="", folder=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, cwd=folder, check=True).stdout


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    lint = Lint(root)
    lint.run()
    findings = lint.check_allowed()
    print("\n".join(findings) if findings else "dependency lint: fine")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
