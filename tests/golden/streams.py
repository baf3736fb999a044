#!/usr/bin/env python3
"""Compares what two revisions of the compiler send to a device (./x streams REV).

usage: streams.py OLD_PROGRAM NEW_PROGRAM [--as NEW=OLD]... [--verbose]

Each program is a skillet_streams: it compiles the models named on its standard input and prints what the device would
receive. Models: those of ../shared if that exists, and the project's own. Exit code: 0 no program differs, 1 some do,
2 trouble.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["../shared/golden/models", "../shared/models", "tests", "models"]
SHOWN = 20
DEVICE_SEES = ["ops", "jobs", "bindings", "constants", "error"]


def model_list():
    lines = []
    for folder in FOLDERS:
        found = sorted((ROOT / folder).rglob("*.tflite"))
        if not found:
            print(f"streams: no models in {folder}")
        lines += [f"{folder}/{path.relative_to(ROOT / folder)}\t{path}" for path in found]
    return "\n".join(lines)


def dump(program, models):
    """Returns {(model, chip, tuning, part): the data that the device receives}."""
    with tempfile.TemporaryFile("w+") as out:
        subprocess.run([program], input=models, stdout=out, text=True, check=True)
        out.seek(0)
        rows = {}
        for row in map(json.loads, out):
            key = tuple(row.pop(name, None) for name in ("model", "chip", "tuning", "part"))
            rows[key] = row | row.pop("program", {})
            rows[key]["error"] = "error" in row  # the text may change
        return rows


def short(value):
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 100 else text[:97] + "..."


def hex_difference(old, new):
    for i in range(0, max(len(old), len(new)), 8):
        if old[i:i + 8] != new[i:i + 8]:
            yield f"byte {i // 2}: {old[i:i + 8] or 'nothing'} -> {new[i:i + 8] or 'nothing'}"


def differences(old, new, where, constants):
    """Yields lines that show where two values differ. CONSTANTS: of both sides, compared inside if they are named."""
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from differences(old.get(name), new.get(name), f"{where} {name}", constants)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (a, b) in enumerate(zip(old, new)):
            yield from differences(a, b, f"{where}[{i}]", constants)
    elif where.endswith(" bytes"):
        yield from (f"{where}, {line}" for line in hex_difference(old or "", new or ""))
    elif isinstance(old, str) and isinstance(new, str) and old in constants[0] and new in constants[1]:
        yield from differences(constants[0][old], constants[1][new], f"{where} -> constant", constants)
    else:
        yield f"{where}: {short(old)} -> {short(new)}"


def compare_program(old, new):
    constants = old.get("constants", {}), new.get("constants", {})
    lines = []
    for name in DEVICE_SEES:
        if name != "constants":
            lines += differences(old.get(name), new.get(name), name, constants)
    if not lines and constants[0] != constants[1]:
        lines.append("constants differ that no job names")
    return list(dict.fromkeys(lines))


def name_of(key):
    model, chip, tuning, part = key
    return f"{model} {chip} {tuning}" + ("" if part is None else f" part {part}")


def report(old, new, verbose):
    differing = moved = 0
    for key in sorted(old.keys() | new.keys(), key=name_of):
        if key not in old or key not in new:
            differing += 1
            print(f"{name_of(key)}: only {'now' if key in new else 'before'}")
            continue
        if lines := compare_program(old[key], new[key]):
            differing += 1
            print(f"{name_of(key)}:")
            for line in lines if verbose else lines[:SHOWN]:
                print(f"    {line}")
            if len(lines) > SHOWN and not verbose:
                print(f"    ... and {len(lines) - SHOWN} more")
        moved += old[key].get("buffers") != new[key].get("buffers")
    if moved:
        print(f"{moved} programs have other buffers (number or size); by itself no difference")
        for name in ("constant", "input", "output", "scratch"):
            sums = [[sum(row.get("buffers", {}).get(name, [0, 0])[i] for row in side.values()) for i in (0, 1)]
                    for side in (old, new)]
            print(f"    {name}: {sums[0][0]} buffers, {sums[0][1]} bytes -> {sums[1][0]} buffers, {sums[1][1]} bytes")
    count = len(old.keys() | new.keys())
    print(f"{differing} of {count} programs differ" if differing else f"{count} programs, none differs")
    return 1 if differing else 0


def rename_tunings(rows, pairs):
    """Returns ROWS with the tunings OLD of PAIRS "NEW=OLD" renamed to NEW; other rows unchanged."""
    news = {}
    for new, old in (pair.split("=", 1) for pair in pairs):
        news.setdefault(old, []).append(new)
    return {(model, chip, name, part): row for (model, chip, tuning, part), row in rows.items()
            for name in news.get(tuning, [tuning])}


def common_tunings(old, new):
    tunings = [{key[2] for key in side} for side in (old, new)]
    for name in sorted(tunings[0] ^ tunings[1]):
        print(f"streams: tuning {name} is only {'before' if name in tunings[0] else 'now'}: not compared")
    both = tunings[0] & tunings[1]
    return [{key: row for key, row in side.items() if key[2] in both} for side in (old, new)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--as", dest="renamed", action="append", default=[], metavar="NEW=OLD",
                        help="compare tuning NEW of now with tuning OLD of before")
    parser.add_argument("--verbose", action="store_true", help="all differences of each program")
    options = parser.parse_args()
    models = model_list()
    try:
        old, new = dump(options.old, models), dump(options.new, models)
    except subprocess.CalledProcessError as problem:
        print(f"streams: {problem}", file=sys.stderr)
        return 2
    old, new = common_tunings(rename_tunings(old, options.renamed), new)
    if not old:
        print("streams: nothing was compiled", file=sys.stderr)
        return 2
    return report(old, new, options.verbose)


if __name__ == "__main__":
    sys.exit(main())
