"""`skillet sweep`: captures one operation in many sizes, under any delegate on a simulated chip, for `skillet fields`."""

from __future__ import annotations

import argparse
import itertools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from skillet._paths import command_path
from skillet._verb import verb_parser, would_overwrite

FINE, FAILED, CANNOT_BEGIN = 0, 1, 2
PATIENCE = 300  # seconds for one model
MOST_CASES = 4096
# Parameters of skillet.conformance by their names on the command line.
OVER = {"in_channels": ("c", "{}"), "out_channels": ("o", "{}"), "size": ("size", "{0}x{0}"), "height": ("height", "{}"), "width": ("width", "{}"),
        "kernel": ("k", "k{0}x{0}"), "stride": ("s", "s{}"), "dilation": ("d", "d{}")}
CHILD = """
import sys
from skillet.conformance._cases import build
from skillet.conformance._targets import Target, opened
made = build(sys.argv[1])
opened(Target("delegate", sys.argv[2], dict(one.split("=", 1) for one in sys.argv[3:])))(made.graph.file()).run(made.inputs(0))
"""


class Unusable(Exception):
    """An error to report to the user."""


def values_of(text: str) -> list[tuple[str, str]]:
    """Parses in_channels=1..64, in_channels=8..64..8 or in_channels=1,2,5 to pairs of parameter and value."""
    name, _, words = text.partition("=")
    found = re.match(r"(\d+)\.\.(\d+)(?:\.\.([1-9]\d*))?$", words)
    numbers: list[int] | range = range(int(found[1]), int(found[2]) + 1, int(found[3] or 1)) if found else []
    if re.match(r"\d+(,\d+)*$", words):
        numbers = [int(word) for word in words.split(",")]
    if name not in OVER or not numbers:
        raise Unusable(f"--over {text}: must be one of {', '.join(OVER)}, such as in_channels=1..64, in_channels=8..64..8 or in_channels=1,2,5")
    key, form = OVER[name]
    return [(key, form.format(number)) for number in numbers[:MOST_CASES + 1]]


def base_case(text: str, operation: int | None) -> str:
    """Returns the case that TEXT names, or the case that resembles an operation of the model TEXT."""
    if not text.endswith(".tflite"):
        if operation is not None:
            raise Unusable("--op: is for a .tflite file")
        return text
    from skillet.explore._case import case_name
    try:
        name = case_name(Path(text), operation)
    except ValueError as error:
        raise Unusable(f"{text}: {error}") from None
    print(f"{text}: {name}", file=sys.stderr)
    return name


def changed(params: dict[str, Any], choice: dict[str, str]) -> dict[str, Any]:
    """Returns the parameters of a case with CHOICE applied. Height and width are the two parts of its size."""
    rest = dict(choice)
    if "height" in rest or "width" in rest:
        height, _, width = rest.get("size", params["size"]).partition("x")
        rest["size"] = f"{rest.pop('height', height)}x{rest.pop('width', width)}"
    return {**params, **rest}


def cases(name: str, over: list[str]) -> list[str]:
    from skillet.conformance._cases import name_of, parse
    params = parse(name)
    for text in over:
        (key, _), *_ = values_of(text)
        if key not in params and not (key in ("height", "width") and "size" in params):
            raise Unusable(f"--over {text}: {params['op']} has no {text.partition('=')[0]} of its own")
    out = [name_of(changed(params, dict(choice))) for choice in itertools.islice(itertools.product(*map(values_of, over)), MOST_CASES + 1)]
    if len(out) > MOST_CASES:
        raise Unusable(f"more than {MOST_CASES} models")
    for one in out:
        parse(one)
    return list(dict.fromkeys(out))


def places_of(folder: Path, case: str) -> tuple[Path, Path]:
    """Returns the paths of the model and of the capture."""
    stem = str(folder / case.replace("/", "_"))
    return Path(stem + ".tflite"), Path(stem + ".skcap")


def capture(case: str, args: argparse.Namespace, folder: Path) -> str:
    """Captures a case. Returns why there is no capture; empty: there is one."""
    from skillet.conformance._cases import build
    model, made = places_of(folder, case)
    model.write_bytes(build(case).graph.file())
    made.unlink(missing_ok=True)
    command = [command_path(), "capture", "-o", str(made), "--", command_path(), "virtual", "--chip", args.chip, "--",
               sys.executable, "-c", CHILD, case, args.delegate, *args.option]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"no end after {PATIENCE} s"
    if made.exists():
        return ""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines and done.returncode else "the delegate sent nothing to the NPU"


def parser() -> argparse.ArgumentParser:
    out = verb_parser("sweep",
                      description="Captures what a delegate sends to a simulated chip for one operation in many sizes: each model and\n"
                                  "its capture, ready for skillet fields.",
                      epilog="CASE is a name of a case of skillet.conformance. NumPy and a TensorFlow Lite runtime are needed.\n\n"
                             "Examples:\n  skillet sweep conv2d/u8/16x16/c8-16/k1x1/same --over in_channels=1..64 \\\n"
                             "    --delegate libteflon.so --chip a311d -o swept\n"
                             "  skillet sweep net.tflite --op 3 --over out_channels=8,16 --delegate libteflon.so --chip a311d -o swept\n\n"
                             "Exit codes: 0 all were captured; 1 some were not; 2 it could not begin.")
    out.add_argument("case", metavar="CASE|MODEL", help="such as conv2d/u8/16x16/c8-16/k1x1/same; or a .tflite file, of which an operation is taken")
    out.add_argument("--op", type=int, metavar="N", help="which operation of the MODEL (one of one operation needs none)")
    out.add_argument("--over", action="append", required=True, metavar="P=A..B", help=f"P: {', '.join(OVER)}; several: all pairs")
    out.add_argument("--delegate", "--victim", required=True, metavar="PATH", help="a TensorFlow Lite external delegate")
    out.add_argument("--option", action="append", default=[], metavar="K=V", help="for the delegate")
    out.add_argument("--chip", required=True, help="what the virtual node is (see skillet devices)")
    out.add_argument("-o", "--output", required=True, metavar="DIR", help="folder of the models and captures")
    return out


def sweep(args: argparse.Namespace) -> int:
    if not Path(args.delegate).exists():
        raise Unusable(f"--delegate {args.delegate}: there is no such file")
    if not all("=" in one for one in args.option):
        raise Unusable("--option: must be K=V")
    names, folder, failed = cases(base_case(args.case, args.op), args.over), Path(args.output), 0
    for made in [place for case in names for place in places_of(folder, case)]:
        if would_overwrite(made, [args.case, args.delegate]):
            raise Unusable(f"-o {args.output}: {made} is what is to be read")
    known = subprocess.run([command_path(), "virtual", "--chip", args.chip, "--", "true"], capture_output=True, text=True, check=False)
    if known.returncode:
        raise Unusable(f"--chip {args.chip}: {known.stderr.strip().removeprefix('skillet: ')}")
    folder.mkdir(parents=True, exist_ok=True)
    for case in names:
        reason = capture(case, args, folder)
        failed += bool(reason)
        if reason:
            print(f"sweep: {case}: {reason}", file=sys.stderr)
    print(f"{len(names) - failed} of {len(names)} captured in {folder}")
    return FAILED if failed else FINE


def main(words: list[str] | None = None) -> int:
    args = parser().parse_args(words)
    try:
        return sweep(args)
    except (ImportError, ValueError, OSError, Unusable) as cause:
        print(f"sweep: {cause}", file=sys.stderr)
        return CANNOT_BEGIN


if __name__ == "__main__":
    sys.exit(main())
