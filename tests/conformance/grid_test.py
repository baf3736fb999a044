#!/usr/bin/env python3
"""Runs a few cases of each family of grid.py, unchanged and at the ends of types: none may differ from the published runtimes.

usage: grid_test.py LIBSKILLET_C     exit code 77: flatc or the runtimes are missing.
"""
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
import environment  # noqa: E402

CASES = "4"


def main():
    if shutil.which("flatc") is None:
        print("conformance grid: left out, it needs flatc (Debian: flatbuffers-compiler)")
        return 77
    python, found = environment.virtual_environment(HERE.parents[1] / "build/venv", [[environment.NUMPY, p] for p in environment.PACKAGES])
    if len(found) < len(environment.PACKAGES):
        print("conformance grid: left out, it needs both runtimes")
        return 77
    codes = []
    for more in ([], ["--edges"]):
        done = subprocess.run([python, HERE / "grid.py", sys.argv[1], "--cases", CASES, *more], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, errors="replace", check=False)
        codes.append(done.returncode)
        print("".join(line + "\n" for line in done.stdout.splitlines() if "WRONG" in line or " equal, " in line), flush=True)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
