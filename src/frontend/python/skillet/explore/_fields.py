"""`skillet fields`: finds what the fields in a folder of captures have in common, and which dimensions they follow."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING

from skillet._library import Error, IoFailed
from skillet._tools import decode
from skillet._verb import verb_parser, would_overwrite
from skillet.explore._fields_page import page
from skillet.explore._model import dimensions

if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator

FINE, FAILED, CANNOT_BEGIN = 0, 1, 2
FEWEST = 3  # fewest different values, in x and in y, for which a line is reported
SHARE = 0.95  # least share of the samples that must be on a line
MOST_VALUES, MOST_RULES = 12, 3
SUFFIXES = (".skcap", ".capture", ".txt")

Sample = "tuple[int, str, dict[str, int]]"  # value, operation of the model, its dimensions


@dataclass
class Rule:
    dimension: str
    a: Fraction
    b: Fraction
    ops: list[str]
    holds: int
    samples: int

    def __str__(self) -> str:
        sign = "-" if self.b < 0 else "+"
        text = (f"{self.a} * " if self.a != 1 else "") + self.dimension + (f" {sign} {abs(self.b)}" if self.b else "")
        return f"{text}  ({', '.join(self.ops)}: {self.holds} of {self.samples} jobs)"


@dataclass
class Field:
    """One field in one kind of job, in all captures."""
    kind: str
    name: str
    bits: int
    values: Counter[int] = field(default_factory=Counter)
    jobs: dict[int, int] = field(default_factory=dict)  # job number: value
    samples: list[Any] = field(default_factory=list)

    def moved(self) -> int:
        some, every = 0, -1
        for value in self.values:
            some, every = some | value, every & value
        return some & ~every & ((1 << self.bits) - 1)


def captures(paths: Iterable[str]) -> Iterator[Path]:
    for one in map(Path, paths):
        if not one.is_dir() or (one / "capture.json").exists():
            yield one
            continue
        yield from sorted({file.parent for file in one.rglob("capture.json")} | {file for file in one.rglob("*") if file.suffix in SUFFIXES and file.is_file()})


def model_of(capture: Path) -> Path | None:
    """Returns the model of a capture: beside it, or in a golden folder with GOLDEN/CHIP/SET/CASE and GOLDEN/models/SET/CASE.tflite."""
    places = [capture / "model.tflite", capture.with_suffix(".tflite")]
    parents = capture.absolute().parents
    if len(parents) > 2:
        places.append(parents[2] / "models" / parents[0].name / (capture.name + ".tflite"))
    return next((place for place in places if place.exists()), None)


class Study:
    def __init__(self) -> None:
        self.fields: dict[tuple[str, str], Field] = {}
        self.chips: Counter[str] = Counter()
        self.captures, self.jobs = 0, 0

    def add(self, decoded: dict[str, Any], model: tuple[str, dict[str, int]] | None) -> None:
        self.captures += 1
        self.chips[decoded["chip"]] += 1
        kinds = Counter(one["what"] for submission in decoded["submissions"] for one in submission["operations"])
        for submission in decoded["submissions"]:
            # If several jobs are of one kind, it is unknown which of them has the model's dimensions.
            first = self.jobs
            self.jobs += len(submission["operations"])
            seen: Counter[tuple[int, str]] = Counter()
            for one in submission["fields"]:
                if one["operation"] >= len(submission["operations"]) or one["kind"] != "value" or not re.match("0x[0-9a-f]+$", one["raw"]):
                    continue
                kind = submission["operations"][one["operation"]]["what"]
                seen[one["operation"], one["name"]] += 1
                again = seen[one["operation"], one["name"]]
                self._take(kind, one["name"] if again == 1 else f"{one['name']} #{again}", one, first + one["operation"], model if kinds[kind] == 1 else None)

    def _take(self, kind: str, name: str, one: dict[str, Any], job: int, model: tuple[str, dict[str, int]] | None) -> None:
        bits = sum(int(high) - int(low) + 1 if low else 1 for high, low in re.findall(r"bits? (\d+)(?::(\d+))?", one.get("bits", "")))
        row = self.fields.setdefault((kind, name), Field(kind, name, bits or 32))
        value = int(one["raw"], 16)
        value -= 1 << 64 if value >> 63 else 0
        row.values[value] += 1
        row.jobs[job] = value
        if model:
            row.samples.append((value, *model))


def line_through(points: Counter[tuple[int, int]]) -> tuple[int, int, int] | None:
    """Returns p, q and c of the line q * y = p * x + c through the most points (x, y), or None."""
    ordered = sorted(points)
    if min(len({x for x, _ in ordered}), len({y for _, y in ordered})) < FEWEST:
        return None
    lines: Counter[tuple[int, int, int]] = Counter()
    for step in (1, 2, 3):
        for (x1, y1), (x2, y2) in zip(ordered, ordered[step:]):
            if x1 != x2 and y1 != y2:
                common = gcd(x2 - x1, y2 - y1)
                p, q = (y2 - y1) // common, (x2 - x1) // common  # x increases
                lines[p, q, y1 * q - p * x1] += 1
    best = [(sum(count for (x, y), count in points.items() if q * y == p * x + c), Fraction(p, q), Fraction(c, q), (p, q, c)) for (p, q, c), _ in lines.most_common(3)]
    return max(best)[3] if best else None


def on_line(samples: list[Any], dimension: str, op: str) -> Rule | None:
    points = Counter((dims[dimension], value) for value, _, dims in samples if dimension in dims)
    found = line_through(points)
    if found is None:
        return None
    p, q, c = found
    held = [(x, y) for x, y in points if q * y == p * x + c]
    holds, every = sum(points[one] for one in held), sum(points.values())
    enough = holds >= SHARE * every and min(len({x for x, _ in held}), len({y for _, y in held})) >= FEWEST
    return Rule(dimension, Fraction(p, q), Fraction(c, q), [op], holds, every) if enough else None


def rules(row: Field) -> list[Rule]:
    """Returns the rules that hold for most samples, the simplest dimensions first. Operations with the same line share a rule."""
    by_op = defaultdict(list)
    for sample in row.samples:
        by_op[sample[1]].append(sample)
    out: dict[tuple[str, Fraction, Fraction], Rule] = {}
    for op, samples in sorted(by_op.items()):
        for dimension in samples[0][2]:
            rule = on_line(samples, dimension, op)
            if rule is None:
                continue
            known = out.setdefault((rule.dimension, rule.a, rule.b), rule)
            if known is not rule:
                known.ops += rule.ops
                known.holds, known.samples = known.holds + rule.holds, known.samples + rule.samples
    plain = [one for one in out.values() if " * " not in one.dimension]
    return sorted(plain or out.values(), key=lambda one: (one.samples - one.holds, -one.samples))[:MOST_RULES]


def together(rows: list[Field]) -> list[list[Field]]:
    """Returns groups of fields whose values map one to one in all jobs."""
    groups = defaultdict(list)
    for row in rows:
        names: dict[int, int] = {}
        if len(row.values) > 1:
            groups[row.kind, tuple((job, names.setdefault(value, len(names))) for job, value in sorted(row.jobs.items()))].append(row)
    return [group for group in groups.values() if len(group) > 1]


def report(study: Study) -> dict[str, Any]:
    rows = [study.fields[key] for key in sorted(study.fields)]
    return {"version": 1, "chip": next(iter(study.chips)), "captures": study.captures, "jobs": study.jobs,
            "fields": [{"kind": row.kind, "name": row.name, "jobs": sum(row.values.values()), "bits": row.bits, "moved": f"{row.moved():#x}",
                        "values": {str(value): count for value, count in sorted(row.values.items())},
                        "rules": [{"dimension": one.dimension, "a": str(one.a), "b": str(one.b), "operations": one.ops, "holds": one.holds, "samples": one.samples}
                                  for one in rules(row)]} for row in rows],
            "together": [[f"{row.kind} {row.name}" for row in group] for group in together(rows)]}


def values_text(values: dict[str, int]) -> str:
    shown = [f"{value} ({count})" for value, count in list(values.items())[:MOST_VALUES]]
    return ", ".join(shown) + (f" and {len(values) - MOST_VALUES} more" if len(values) > MOST_VALUES else "")


def rules_text(row: dict[str, Any]) -> list[str]:
    return [str(Rule(one["dimension"], Fraction(one["a"]), Fraction(one["b"]), one["operations"], one["holds"], one["samples"])) for one in row["rules"]]


def print_text(made: dict[str, Any], with_values: bool) -> None:
    print(f"{made['chip']}: {made['captures']} captures, {made['jobs']} jobs\n\nfields that follow a dimension of the model")
    for row in made["fields"]:
        for at, rule in enumerate(rules_text(row)):
            print(f"  {row['kind']} {row['name']} = {rule}" if at == 0 else f"      or {rule}")
    print("\nfields that move together")
    for group in made["together"]:
        print("  " + ", ".join(group))
    print("\nfields with bits that moved, and how many of their bits never did")
    for row in made["fields"]:
        moved = int(row["moved"], 16)
        if moved:
            print(f"  {row['kind']} {row['name']}: {row['moved']} moved, {max(0, row['bits'] - moved.bit_count())} of {row['bits']} never, {len(row['values'])} values")
    still = [row for row in made["fields"] if row["moved"] == "0x0"]
    print(f"\n{len(still)} fields never moved" + ("" if with_values else " (--values lists them)"))
    for row in made["fields"] if with_values else []:
        print(f"  {row['kind']} {row['name']}: {values_text(row['values'])}")


def parser() -> argparse.ArgumentParser:
    out = verb_parser("fields",
                      description="Says of many captures of one chip: which values each field took, which bits never moved, which\n"
                                  "fields move together, and which dimension of the model a field follows: field = a * dimension + b.",
                      epilog="A model is CAPTURE/model.tflite, CAPTURE.tflite beside CAPTURE.skcap, or\n"
                             "../../models/SET/CASE.tflite of CHIP/SET/CASE. Only models of one operation give dimensions.\n\n"
                             "Example: skillet fields golden/a311d --values\n\n"
                             "Exit codes: 0 all were read; 1 some were not; 2 it could not begin.")
    out.add_argument("captures", nargs="+", metavar="CAPTURE", help="a capture, or a folder in which all captures are taken")
    out.add_argument("--values", action="store_true", help="list the values of every field, and how often each was there")
    out.add_argument("--html", metavar="FILE", type=Path, help="write a page, too: rules, values, and which bits moved")
    out.add_argument("--json", action="store_true", help="machine-readable output")
    return out


def study_of(paths: list[Path]) -> tuple[Study, int]:
    study, failed = Study(), 0

    def one(path: Path) -> tuple[Path, dict[str, Any] | Error | IoFailed]:
        try:
            return path, decode(path)
        except (Error, IoFailed) as cause:
            return path, cause

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, decoded in pool.map(one, paths):
            if isinstance(decoded, dict):
                model = model_of(path)
                study.add(decoded, dimensions(model) if model else None)
            else:
                print(f"fields: {decoded}", file=sys.stderr)
                failed += 1
    return study, failed


def main(words: list[str] | None = None) -> int:
    args = parser().parse_args(words)
    paths = list(captures(args.captures))
    if not paths:
        print(f"fields: no capture in {', '.join(args.captures)}", file=sys.stderr)
        return CANNOT_BEGIN
    if args.html and would_overwrite(args.html, [*paths, *filter(None, map(model_of, paths))]):
        print(f"fields: --html {args.html}: that is what is to be read", file=sys.stderr)
        return CANNOT_BEGIN
    study, failed = study_of(paths)
    if len(study.chips) != 1:
        print("fields: " + (f"captures of several chips: {', '.join(sorted(study.chips))}" if study.chips else "no capture could be read"), file=sys.stderr)
        return CANNOT_BEGIN
    made = report(study)
    if args.html:
        try:
            args.html.write_text(page(made, [rules_text(row) for row in made["fields"]], [values_text(row["values"]) for row in made["fields"]]), encoding="utf-8")
        except OSError as cause:
            print(f"fields: {args.html}: {cause.strerror}", file=sys.stderr)
            return CANNOT_BEGIN
    if args.json:
        print(json.dumps(made, indent=1))
    else:
        print_text(made, args.values)
    return FAILED if failed else FINE


if __name__ == "__main__":
    sys.exit(main())
