"""Runs the cases of a test program: its functions case_..., each with an empty folder."""
import argparse
import re
import sys
import tempfile
from pathlib import Path


def run_cases(names, pattern):
    """Runs the cases among the program's globals() whose name matches the pattern. Returns the exit code."""
    cases = {name: case for name, case in names.items() if name.startswith("case_")}
    chosen = {name: case for name, case in cases.items() if re.search(pattern, name)}
    if not chosen:
        print(f"no case matches '{pattern}': {', '.join(cases)}", file=sys.stderr)
        return 2
    failed = 0
    for name, case in chosen.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(Path(folder))
                print(f"{name}: ok")
            except AssertionError as wrong:
                failed += 1
                print(f"{name}: FAILED, line {wrong.__traceback__.tb_next.tb_lineno}: {wrong}")
    return 1 if failed else 0


def parser_of_cases(build):
    """Returns a parser for LIBRARY SKILLET [--build DIR] [--case PATTERN]; --inside: in the virtual environment."""
    parser = argparse.ArgumentParser()
    for name in ("library", "skillet"):
        parser.add_argument(name, type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--build", type=Path, default=build)
    parser.add_argument("--case", default="")
    parser.add_argument("--inside", action="store_true")
    return parser
