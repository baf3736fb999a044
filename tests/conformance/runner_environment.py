"""Restarts a test of skillet.conformance with a Python that has a TensorFlow Lite runtime."""
import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def inside(file, doc, *flags):
    """Returns the path of the planted delegate, and for each of FLAGS whether it was given.
    Exits with code 77 if there is no runtime."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("planted")
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        return (args.planted, *(getattr(args, flag.strip("-")) for flag in flags))
    sys.path.insert(0, str(ROOT / "tests/integration"))
    from environment import python_with_runtimes
    python = python_with_runtimes(args.build / "venv")
    if python is None:
        sys.exit(77)
    os.environ["PYTHONPATH"] = str(ROOT / "src/frontend/python")
    os.execv(python, [str(python), file, "--inside", *sys.argv[1:]])
