#!/usr/bin/env python3
"""The table of scores in docs/conformance.md, made by the commands that stand in it.

usage: scores_page.py LIBSKILLET [--check] [--column NAME] [--build DIR]      --check: says whether the table, or this column of it, is as it would be.
       scores_page.py VIRTUAL_LIBRARY --peer CHIP [--build DIR]               prints the scores of the peer's driver (tests/peer) instead
Exit code 77: there is no TensorFlow Lite runtime; 2: the peer's driver cannot be had. Scores of the runtime's own kernels hang on the machine.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/integration"), str(ROOT / "tests/peer")]
import root  # noqa: E402
import runner  # noqa: E402
from environment import python_with_runtimes  # noqa: E402

PAGE = ROOT / "docs/conformance.md"
TABLE = re.compile(r"(<!-- scores -->\n).*?(\n<!-- end -->)", re.S)
OURS = "--delegate libskillet.so --option partition=all --option unproven=take --option device=sim:"
COLUMNS = {"XNNPACK": "--kernels xnnpack", "optimized": "--kernels optimized", **{chip: OURS + chip for chip in ("a311d", "s905d3", "imx8mp", "rk3588", "rk3576", "imx93")}}
# Operations that the peer's driver supports in part, and a share of the cases: each starts an emulator twice.
PEER_CASES = "^(conv2d|depthwise|average_pool|max_pool|fully_connected|add|sub|concat|split|pad|chain)/u8"
PEER_SAMPLE = ["--only", PEER_CASES, "--fraction", "1/6", "--timeout", "240", "--jobs", "2"]


def clean_environment():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SKILLET_")}
    environment.update(PYTHONPATH=str(ROOT / "src/frontend/python"), SKILLET_LOG="error")
    return environment


def peer_scores(python, library, chip, folder):
    command = f"{python} {ROOT}/tests/conformance/peer_command.py {chip} {library} {{model}} {{inputs}} {{outputs}}"
    out = folder / f"peer-scores-{chip}"
    try:  # once, before processes use it
        place = ROOT / "build/peer-root"
        made, _ = root.prepare(place, lambda text: print(f"==> {text}", file=sys.stderr, flush=True))
        runner.Runner(place, made, Path(library).resolve()).build()
    except (OSError, root.SetUpError) as cause:
        print(f"scores_page: the peer's driver cannot be prepared: {cause}", file=sys.stderr)
        return 2
    shutil.rmtree(out, ignore_errors=True)
    words = ["--command", command, *PEER_SAMPLE, "-o", str(out)]
    return os.execvpe(str(python), [str(python), "-m", "skillet.conformance", *words], clean_environment())  # replaces this process, so that it receives signals


def scores(python, delegate, words):
    """Returns, for each operation, cases, passes, computed cases and the largest difference."""
    words = [delegate if word == "libskillet.so" else word for word in words.split()]
    done = subprocess.run([str(python), "-m", "skillet.conformance", *words, "--jobs", "2", "--json"], env=clean_environment(), capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(done.stderr)
    return {row["op"]: row for row in json.loads(done.stdout)["scores"]}


def cell(row):
    """Formats the passes of the computed cases, and the largest difference."""
    if row["computed"] == 0:
        return "-"
    largest = row["largest_difference"]
    difference = "NaN" if largest is None else "0" if largest < 0.001 else f"{largest:.3g}"
    return f"{row['statuses'].get('Pass', 0)}/{row['computed']}, {difference}"


def table(columns):
    """Returns the table. COLUMNS: scores by name."""
    first = next(iter(columns.values()))
    lines = [["operation", "cases", *columns], ["---"] * (len(columns) + 2)]
    lines += [[op, str(first[op]["cases"]), *(cell(rows[op]) for rows in columns.values())] for op in first]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def column_of(text, name):
    rows = [[word.strip() for word in line.strip("|").split("|")] for line in text.strip().splitlines()]
    at = rows[0].index(name)
    return {row[0]: row[at] for row in rows}


def main():
    for number in (signal.SIGTERM, signal.SIGHUP):  # also ends the process that subprocess.run waits for
        signal.signal(number, lambda which, _: sys.exit(128 + which))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("delegate")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--column", choices=COLUMNS)
    parser.add_argument("--peer", metavar="CHIP")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    args = parser.parse_args()
    python = python_with_runtimes(args.build / "venv")
    if python is None:
        return 77
    if args.peer:
        return peer_scores(python, args.delegate, args.peer, args.build)
    wanted = {name: words for name, words in COLUMNS.items() if args.column in (None, name)}
    made = table({name: scores(python, args.delegate, words) for name, words in wanted.items()})
    page = PAGE.read_text()
    old = TABLE.search(page)[0]
    if not args.check:
        PAGE.write_text(TABLE.sub(lambda found: found[1] + made + found[2], page))
        return 0
    there = "\n".join(old.splitlines()[1:-1])
    wrong = [f"{op}: {there_is} should be {now}" for name in wanted for op, now in column_of(made, name).items()
             for there_is in [column_of(there, name).get(op, "nothing")] if there_is != now]
    print("\n".join([f"{PAGE}: {len(wrong)} cells are not as they would be (./x conformance)", *wrong]) if wrong else "up to date")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
