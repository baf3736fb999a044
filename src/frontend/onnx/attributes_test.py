#!/usr/bin/env python3
"""Checks that ONNX Runtime's provider requests from its host every attribute that the libraries of frontend/onnx read.

usage: attributes_test.py     exit code 1: an attribute is not requested, so that its default would be used
"""
import re
import sys
from pathlib import Path

FRONTEND = Path(__file__).resolve().parents[1]
READ = re.compile(r'(?:\b(?:int|ints|float|string)_of\((?:\w+\.)*node(?:\(\))?, |pair_of\((?:\w+\.)*node(?:\(\))?, |list_or\(l, \d, |attributes\.(?:find|contains|at)\()"(\w+)"')
LIBRARIES = re.compile(r"skillet_library\((?:onnx|onnx_parts) SOURCES ([\w. ]+)")  # without the library that reads files


def main():
    names = " ".join(LIBRARIES.findall((FRONTEND / "onnx/CMakeLists.txt").read_text())).split()
    sources = [(FRONTEND / "onnx" / name).read_text() for name in names]
    read = {name for source in sources for name in READ.findall(source)}
    asked = re.search(r"kAttributes = \{(.*?)\};", (FRONTEND / "onnxruntime/ort.cpp").read_text(), re.DOTALL)[1]
    wrong = sorted(read - set(re.findall(r'"(\w+)"', asked)))
    if len(read) < 20:
        wrong.append(f"only {len(read)} are read: has the code another form now?")
    print("\n".join(f"not asked for: {name}" for name in wrong) or f"{len(read)} attributes, all asked for")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
