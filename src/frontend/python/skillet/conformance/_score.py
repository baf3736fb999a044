"""Scores by operation, and the parameter values at which failures occur."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillet._result_files import BAD, CRASH, EXPECTED, FAIL, FLAKE, PASS, SKIP, TIMEOUT, UNEXPECTED
from skillet.conformance._build import pair
from skillet.conformance._cases import BadName, parse
from skillet.conformance._ops import FAMILIES
from skillet.conformance._run import END, LISTED_IN_SKIPS, Result

if TYPE_CHECKING:
    from typing import Any

LIKELY = 0.5  # least share of the failures that a reported feature must have
MOST_FEATURES = 3
PAIR_GAIN = 0.05  # by which a pair of features must separate failures better than each alone
ALL = "all"
NOTHING_RAN = ("no operation of any case was computed by {}: nothing was tested. The options may name no device, or leave all to the CPU "
               "(Skillet's delegate: --option partition=all)")


@dataclass
class Score:
    op: str
    cases: int
    counts: dict[str, int]
    largest: float
    off: float  # share of values that differ at all
    breaks: list[str]

    @property
    def computed(self) -> int:
        """Number of cases that the target computed, or should have."""
        return self.cases - self.counts.get(SKIP, 0)

    def row(self) -> dict[str, Any]:
        return {"op": self.op, "cases": self.cases, "computed": self.computed, "statuses": self.counts,
                "largest_difference": self.largest if self.largest != float("inf") else None, "share_off": round(self.off, 6), "breaks": self.breaks}


def features(name: str) -> set[str]:
    """Returns the features of a case: its parameters, and properties that often cause faults in drivers."""
    try:
        params = parse(name)
    except BadName:
        return set()
    out = {f"{key} {value}" if key not in ("pad", "act", "pc") else value for key, value in params.items() if key not in ("op", "size", "c", "o", "ops")}
    height, width = pair(params.get("size", "1x1"))
    channels, outputs = int(params.get("c", 1)), int(params.get("o", params.get("c", 1)))
    out |= {"an odd size"} if height % 2 or width % 2 else {"an even size"}
    out |= {"one row or column"} if 1 in (height, width) else {"unequal sides"} if height != width else set()
    for what, number in (("channels", channels), *([("output channels", outputs)] if "o" in params else [])):
        out.add(f"{number} {what}")
        out |= {f"{what} not a multiple of {by}" for by in (4, 8, 16) if number % by} | ({f"more than {by} {what}" for by in (16, 64) if number > by})
    if params.get("s", "s1") != "s1" and "an odd size" in out:
        out.add("stride and an odd size")
    return out | {f"step {one}" for one in params.get("ops", "").split("+") if one}


def breaks(results: list[Result]) -> list[str]:
    """Describes the features that best separate failures from other cases."""
    bad = [features(one.name) for one in results if one.status in (*BAD, EXPECTED)]
    good = [features(one.name) for one in results if one.status in (PASS, FLAKE)]
    if not bad or not good:
        return ["all"] if bad else []
    in_bad, in_good = Counter(one for case in bad for one in case), Counter(one for case in good for one in case)
    likely = {what: quality(count, in_good[what], len(bad)) for what, count in in_bad.items() if count >= LIKELY * len(bad)}
    for one, other in itertools.combinations(sorted(likely), 2):
        both, what = {one, other}, f"{one} and {other}"
        in_bad[what], in_good[what] = (sum(both <= case for case in cases) for cases in (bad, good))
        score = quality(in_bad[what], in_good[what], len(bad))
        if in_bad[what] >= LIKELY * len(bad) and score > max(likely[one], likely[other]) + PAIR_GAIN:
            likely[what] = score
    ranked = sorted(((score, what) for what, score in likely.items()), key=lambda one: (-one[0], one[1]))
    ranked = [(score, what) for score, what in ranked if in_good[what] < len(good)]
    return [f"{what}: {in_bad[what]} of {in_bad[what] + in_good[what]}" for score, what in ranked[:MOST_FEATURES]]


def quality(in_bad: int, in_good: int, bad: int) -> float:
    """Rates how well a property separates failures from other cases: 1 if exactly the failures have it."""
    return 2 * in_bad / (in_bad + in_good + bad)


def by_property(results: list[Result]) -> list[tuple[str, int, int]]:
    """Returns each property with the numbers of computed and of failing cases that have it, highest failure rate first."""
    computed: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    for one in results:
        if one.status != SKIP:
            computed.update(features(one.name))
            bad.update(features(one.name) if one.status in (*BAD, EXPECTED) else ())
    return sorted(((what, computed[what], bad[what]) for what in bad), key=lambda one: (-one[2] / one[1], -one[2], one[0]))


def property_table(results: list[Result], most: int) -> str:
    """Returns a table for a terminal; empty if nothing fails."""
    rows = [f"{bad:6} of {computed:<6} {100 * bad / computed:5.1f} %  {what}" for what, computed, bad in by_property(results)[:most]]
    return "\n".join(["failing, of the cases with this property:", *rows, ""]) if rows else ""


def scores(results: list[Result]) -> list[Score]:
    groups: dict[str, list[Result]] = defaultdict(list)
    for one in results:
        groups[one.name.split("/")[0]].append(one)
    order = {op: at for at, op in enumerate(FAMILIES)}
    out = [score(op, groups[op]) for op in sorted(groups, key=lambda one: (order.get(one, len(order)), one))]
    return [*out, score(ALL, results)] if out else []


def score(op: str, results: list[Result]) -> Score:
    values = sum(one.values for one in results)
    return Score(op, len(results), dict(Counter(one.status for one in results)), max((one.largest for one in results), default=0.0),
                 sum(one.off for one in results) / values if values else 0.0, breaks(results) if op != ALL else [])


COLUMNS = ("operation", "cases", "left", "pass", "fail", "crash", "timeout", "flake", "largest", "off", "fails where")


def cells(one: Score) -> list[str]:
    counts = one.counts
    fail = sum(counts.get(status, 0) for status in (FAIL, EXPECTED))
    largest = "NaN" if one.largest == float("inf") else f"{one.largest:.4g}" if one.computed else "-"
    return [one.op, str(one.cases), str(counts.get(SKIP, 0)), str(counts.get(PASS, 0) + counts.get("UnexpectedImprovement", 0)), str(fail),
            str(counts.get(CRASH, 0)), str(counts.get(TIMEOUT, 0)), str(counts.get(FLAKE, 0)), largest,
            f"{100 * one.off:.2f} %" if one.computed else "-", "; ".join(one.breaks)]


def table(rows: list[Score]) -> str:
    """Returns a table for a terminal."""
    lines = [list(COLUMNS), *(cells(one) for one in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(COLUMNS))]
    return "\n".join("  ".join(word.ljust(width) if at in (0, len(widths) - 1) else word.rjust(width)
                               for at, (word, width) in enumerate(zip(line, widths))).rstrip() for line in lines) + "\n"


def markdown(rows: list[Score]) -> str:
    lines = [COLUMNS, *(cells(one) for one in rows)]
    body = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([body[0], "| --- " * len(COLUMNS) + "|", *body[1:]]) + "\n"


def verdict(results: list[Result]) -> str:
    counts = Counter(one.status for one in results)
    words = ", ".join(f"{counts[status]} {status}" for status in sorted(counts, key=lambda one: -counts[one]))
    return f"{len(results)} cases: {words or 'none'}"


def is_fine(results: list[Result]) -> bool:
    return not any(one.status in UNEXPECTED for one in results)


def took_any(results: list[Result]) -> bool:
    """Returns whether the target computed any case, as far as is known."""
    return any(one.taken is not False and one.status != SKIP and not one.name.startswith(END) for one in results)


def nothing_ran(results: list[Result], target: str, suite: str, said: str) -> str:
    """Explains why took_any() is false. SAID: the target's output."""
    cases = [one for one in results if not one.name.startswith(END)]
    if not cases:
        return "nothing was tested: this part of the suite has no case"
    left = [one for one in cases if one.reason != LISTED_IN_SKIPS]
    if not left:
        return "nothing was tested: --skips lists every case"
    if all(one.taken is None for one in left):
        return f"nothing was tested: no model of {suite} can be computed by the reference kernels; the first, {left[0].name}: {left[0].reason}"
    return NOTHING_RAN.format(target) + (f". It printed: {said}" if said else "")


