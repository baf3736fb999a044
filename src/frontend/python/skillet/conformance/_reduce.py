"""Reduces a failing case: simplifies one parameter after the other while it still fails in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillet.conformance._build import pair
from skillet.conformance._cases import BadName, build, defaults, name_of, parse
from skillet.conformance._child import Case
from skillet.conformance._moves import STEPS, is_possible
from skillet.conformance._ops import FAMILIES
from skillet.conformance._run import END, Result, Runner

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillet.conformance._targets import Target

ROUNDS = 8
GROUP = 8  # cases in a process. A case that fails at the end of its process is run as often
# The single operation that corresponds to a step of a chain.
ALONE = {"conv3": "conv2d k=k3x3", "conv1": "conv2d k=k1x1", "conv3s2": "conv2d k=k3x3 s=s2", "dw3": "depthwise k=k3x3", "dw3s2": "depthwise k=k3x3 s=s2",
         "maxpool": "max_pool k=k2x2 pad=same", "avgpool": "average_pool k=k2x2 pad=same", "add": "add", "concat": "concat", "pad": "pad margins=1111",
         "up": "resize_nearest to=x2", "relu6": "relu6", "hard_swish": "hard_swish"}


def smaller(value: int) -> list[int]:
    """Returns smaller values, the smallest first."""
    return [one for one in (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96) if one < value]


def candidates(params: dict[str, str], key: str) -> list[dict[str, str]]:
    """Returns cases with a simpler value of this parameter, the simplest first."""
    value = params[key]
    if key == "size":
        height, width = pair(value)
        sizes = [(h, w) for h in [*smaller(height), height] for w in [*smaller(width), width] if (h, w) != (height, width)]
        sizes.sort(key=lambda one: (one[0] * one[1], abs(one[0] - one[1])))
        return [{**params, key: f"{h}x{w}"} for h, w in sizes]
    if key in ("c", "o", "rows", "heads", "parts", "m", "b"):
        return [{**params, key: str(one)} for one in smaller(int(value))]
    if key == "k":
        kernel = pair(value)
        return [{**params, key: f"k{h}x{w}"} for h in range(1, kernel[0] + 1) for w in range(1, kernel[1] + 1) if (h, w) != kernel]
    if key == "ops":
        return shorter(params)
    first = FAMILIES[params["op"]].choices[key]
    simpler = first[:first.index(value)] if value in first else first
    return [{**params, key: one} for one in simpler]


def shorter(params: dict[str, str]) -> list[dict[str, str]]:
    """Returns the single operations of a chain, then shorter chains."""
    steps, out = params["ops"].split("+"), []
    for one in dict.fromkeys(steps):
        op, *words = ALONE[one].split()
        alone = {"op": op, "type": params["type"], **defaults(op), "size": params["size"], "c": params["c"], **dict(word.split("=", 1) for word in words)}
        out.append({**alone, "o": params["c"]} if "o" in alone else alone)
    if len(steps) > 2:
        half = len(steps) // 2
        fewer = dict.fromkeys("+".join(one) for one in (steps[:2], steps[:half], steps[half:], steps[:-1], steps[1:]) if len(one) > 1)
        out += [{**params, "ops": one} for one in fewer]
    return out


class Reducer:
    def __init__(self, target: Target, jobs: int, timeout: float, tolerance: dict[str, float]) -> None:
        self._target, self._jobs, self._timeout, self._tolerance = target, jobs, timeout, tolerance
        self.first: Result | None = None  # result of the original case
        self._is_end = False

    def results(self, names: list[str]) -> dict[str, Result]:
        out: dict[str, Result] = {}
        cases = [Case(one) for one in names for _ in range(GROUP if self._is_end else 1)]
        Runner(self._target, lambda one: out.update({one.name: one}), self._jobs, self._timeout, self._tolerance, group=GROUP).run(cases)
        return {name: out[END + name] for name in names if END + name in out} if self._is_end else out

    def reduce(self, name: str, say: Callable[[str], None]) -> tuple[str, Result] | None:
        """Returns the smallest case found and its result, or None if NAME does not fail now."""
        self._is_end, name = name.startswith(END), name.removeprefix(END)
        best = self.first = self.results([name]).get(name)
        if best is None or best.status not in ("Fail", "Crash", "Timeout"):
            return None
        params = parse(name)
        for _ in range(ROUNDS):
            before = name_of(params)
            for key in sorted(params, key=lambda one: (one != "ops", one)):
                if key in ("op", "type") or key not in params:
                    continue
                found = self._simplest(candidates(params, key), best.status)
                if found is not None:
                    params, best = found
                    say(f"{best.name}: {best.status}")
            if name_of(params) == before:
                break
        return name_of(params), best

    def _simplest(self, tried: list[dict[str, str]], status: str) -> tuple[dict[str, str], Result] | None:
        """Returns the first of TRIED that fails with STATUS. Runs a few at a time."""
        possible = {name_of(one): one for one in tried if is_possible(one) and is_makeable(name_of(one))}
        names, count = list(possible), self._jobs
        while names:
            results = self.results(names[:count])
            for one in names[:count]:
                if one in results and results[one].status == status:
                    return possible[one], results[one]
            names, count = names[count:], 2 * count
        return None


def is_makeable(name: str) -> bool:
    try:
        build(name)
    except BadName:
        return False
    return True


assert set(ALONE) == set(STEPS)
