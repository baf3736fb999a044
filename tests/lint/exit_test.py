#!/usr/bin/env python3
"""Checks the static objects of libraries.

None may have a destructor that runs at exit(): threads of a simulated chip run until the process has ended, and would read the
destroyed object.
None may be made in a function under the compiler's lock: if another thread held it during fork(), the child would wait forever.
src/base/leaked.h makes objects that are never destroyed, without a lock.

usage: exit_test.py NM BUILD      checks the archives of BUILD that libskillet_c and the preloaded libraries consist of
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

OF_THE_COMMAND = {"tools"}  # has objects of its own, on its own thread
REGISTERS = re.compile(r"\bU (?:__cxa_)?atexit$")
GUARD = re.compile(r" guard variable for (.*)$")
OF_OTHERS = ("Eigen::",)
LEAST = 8
NAMES = (b"atexit", b"_ZGV")  # in the symbols that findings() looks for
HELD = "struct Held { explicit Held(int); ~Held(); int operator[](int) const; };\n"  # like a vector, without its header
HEADERS = Path(__file__).resolve().parents[2] / "src"


def symbols(nm, archive):
    return subprocess.run([nm, "--demangle", archive], capture_output=True, text=True, check=True).stdout


def findings(text):
    """Yields a line for each faulty object file, from nm's output for an archive."""
    for part in re.split(r"\n\n", text):
        lines = part.strip().splitlines()
        statics = [found[1] for line in lines if (found := GUARD.search(line)) and not found[1].startswith(OF_OTHERS)]
        if any(REGISTERS.search(line) for line in lines):
            yield f"{lines[0]} one of its statics has a destructor: see {', '.join(statics) or 'those outside functions'}"
        elif statics:
            yield f"{lines[0]} made under a lock that no child of fork() can open: {', '.join(statics)}"


def may_be_faulty(archive):
    """Tells whether one of the names is in the file at all, without nm, which takes longer to read all symbols."""
    content = archive.read_bytes()
    return any(name in content for name in NAMES)


def check_itself(nm):
    """Checks that such a static is found by its name, but not a constant or a leaked object."""
    fine = ("return skillet::leaked([] { return Held(9); })[i];", "static constexpr int kAll[9] = {}; return kAll[i];")
    sources = {
        "static const Held kAll(9); return kAll[i];": "one of its statics has a destructor",
        "static const auto& kAll = *new Held(9); return kAll[i];": "made under a lock",
    }
    with tempfile.TemporaryDirectory() as folder:
        for body, said in sources.items():
            source = Path(folder, "at.cpp")
            functions = "".join(f"int at{i}(int i) {{ {one} }}\n" for i, one in enumerate((body, *fine)))
            source.write_text(f"#include <base/leaked.h>\n{HELD}{functions}", encoding="utf-8")
            subprocess.run(["c++", "-std=c++20", "-O2", f"-I{HEADERS}", "-c", source, "-o", source.with_suffix(".o")], check=True)
            assert may_be_faulty(source.with_suffix(".o"))
            found = "".join(findings(symbols(nm, source.with_suffix(".o"))))
            assert said in found and found.endswith(" at0(int)::kAll"), f"{body}: {found}"


def main():
    nm, sources = sys.argv[1], Path(sys.argv[2]) / "src"
    check_itself(nm)
    archives = [one for one in sorted(sources.rglob("libskillet_*.a")) if one.relative_to(sources).parts[0] not in OF_THE_COMMAND]
    assert len(archives) >= LEAST, f"{len(archives)} archives below {sources}"
    suspects = [archive for archive in archives if may_be_faulty(archive)]
    found = [f"{archive.relative_to(sources)}: {line}" for archive in suspects for line in findings(symbols(nm, archive))]
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
