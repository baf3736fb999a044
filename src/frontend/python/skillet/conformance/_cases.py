"""Names of cases, and suites of cases. A name defines its case: weights, quantization and inputs are derived from it."""

from __future__ import annotations

import functools
import hashlib
import re
from typing import TYPE_CHECKING

from skillet.conformance import _moves, _others
from skillet.conformance._build import Build, pair
from skillet.conformance._ops import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = "1"  # seed of the grid
OPS_MOST, GRID_LEAST = 2200, 20000
NETS_EACH = 150  # for each type
SWEEPS = {"u8": 2, "i8": 1, "i16": 1, "f32": 1}  # how many other values of each parameter the suite `ops` tries, by type ...
MORE = {"size": 3, "c": 3, "o": 2, "k": 2, "s": 3, "d": 2, "act": 2, "ops": 10}  # ... times this factor for these parameters, at most ...
RARE = {500: 10, 100: 2, 0: 1}  # ... by least number of an operation's cases in the grid
# Combinations that show faults of their own, by type: a scale per channel where the last group of channels is not full; corner pixels where doubling
# shows no fault.
TOGETHER = [("i8", dict(pc="pc", c="17", o="17")), ("i8", dict(pc="pc", c="5", o="5")), ("u8", dict(pixels="corners", to="x3")), ("u8", dict(pixels="centers", to="x3"))]
# Combinations for operations that have all these parameters: an activation whose limits are those of the type; dilation with another filter; more
# scales per channel than input channels; an activation with a small operand; large windows, images and channels; requantization multipliers of one
# or more.
PAIRS = [("u8", dict(act="relu6", zp="low")), ("i8", dict(act="relu6", zp="low")), ("i8", dict(act="relu", zp="high")), ("u8", dict(k="k5x5", d="d2")), ("i8", dict(k="k5x5", d="d2")),
         ("i8", {"m": "2", "pc": "pc"}), ("u8", {"with": "channel", "act": "relu6"}), ("i8", {"with": "pixel", "act": "relu"}),
         *(("u8", dict(size=size, **{key: value})) for size, key, value in (("16x16", "k", "k8x8"), ("7x7", "k", "k7x7"), ("33x34", "zp", "low"), ("8x8", "c", "64"))),
         *((kind, dict(k="k1x1", c="1", pc="pt", scale="tiny")) for kind in ("u8", "i8"))]
GRID_SHARES = {"u8": 8, "i8": 8, "i16": 1}  # of an operation's cases in the grid
FIRST = ["size", "c", "o", "k", "s", "d", "pad", "act", "pc"]  # parameters with a form of their own in names
FORMS = [(re.compile(pattern), key) for pattern, key in (
    (r"\d+x\d+$", "size"), (r"c(\d+)(?:-(\d+))?$", "c"), (r"k\d+x\d+$", "k"), (r"s\d+(x\d+)?$", "s"), (r"d\d+(x\d+)?$", "d"),
    (r"(same|valid)$", "pad"), (r"(relu|relu6|relun1)$", "act"), (r"pc$", "pc"))]


class BadName(ValueError):
    pass


def defaults(op: str) -> dict[str, str]:
    return {key: values[0] for key, values in FAMILIES[op].choices.items()}


def name_of(params: dict[str, str]) -> str:
    op = params["op"]
    usual = defaults(op)
    words = [op, params["type"]]
    for key in FIRST:
        if key == "c" and "c" in usual:
            words.append(f"c{params['c']}-{params['o']}" if "o" in usual else f"c{params['c']}")
        elif key in ("size", "pad", "k") and key in usual or key != "o" and key in usual and params[key] != usual[key]:
            words.append(params[key])
    words += [f"{key}={params[key]}" for key in sorted(usual) if key not in FIRST and params[key] != usual[key]]
    return "/".join(words)


def parse(name: str) -> dict[str, str]:
    """Parses the name of a case to its parameters. Raises BadName with the word that is invalid."""
    op, *words = name.split("/")
    if op not in FAMILIES:
        raise BadName(f"{name}: no operation is called '{op}': one of {', '.join(FAMILIES)}")
    params = {"op": op, "type": words[0] if words else "", **defaults(op)}
    if params["type"] not in FAMILIES[op].types:
        raise BadName(f"{name}: '{params['type']}' is no type of {op}: one of {', '.join(FAMILIES[op].types)}")
    for word in words[1:]:
        key, found = next(((key, match) for form, key in FORMS if (match := form.match(word))), (word.partition("=")[0], None))
        if key not in params or (found is None and "=" not in word):
            raise BadName(f"{name}: '{word}' is no parameter of {op}")
        params[key] = word.partition("=")[2] if found is None else found[1] if key == "c" else word
        if key == "c" and found is not None and found[2]:
            params["o"] = found[2]
    if name_of(params) != name:
        raise BadName(f"{name}: this case is called {name_of(params)}")
    return params


def build(name: str) -> Build:
    params = {"b": "1", **parse(name)}
    out = Build(name, params)
    try:
        FAMILIES[params["op"]].make(out)
    except (KeyError, ValueError, IndexError, MemoryError) as error:
        raise BadName(f"{name}: this cannot be made: {error}") from error
    return out


def place(name: str) -> tuple[int, int]:
    """Returns the position of a case on the map: the longer side of the image, and the larger number of channels."""
    params = parse(name)
    return max(pair(params.get("size", "1x1"))), max(int(params.get("c", "1")), int(params.get("o", "1")))


def _sweep(op: str, kind: str) -> Iterator[dict[str, str]]:
    """Yields the usual case, cases with one other parameter, then random ones."""
    choices, usual = FAMILIES[op].choices, {"op": op, "type": kind, **defaults(op)}
    limit = next(times for cases, times in RARE.items() if FAMILIES[op].grid >= cases)
    yield usual
    for key, values in choices.items():
        most = SWEEPS[kind] * min(limit, MORE.get(key, 1))
        for value in values[1:1 + most]:
            yield {**usual, key: value}
    if kind == "u8" and "s" in choices:  # half of all faults with images need strides at odd sizes
        for stride in choices["s"][:4]:
            yield from ({**usual, "size": "13x15" if "13x15" in choices["size"] else "7x9", "s": stride, "pad": padding} for padding in choices["pad"])
    for of, together in TOGETHER:
        if of == kind and next(iter(together)) in choices:
            yield {**usual, **{key: value for key, value in together.items() if key in choices}}
    yield from ({**usual, **values} for of, values in PAIRS if of == kind and all(key in choices and (value in choices[key] or value == "tiny") for key, value in values.items()))
    for index in range(SWEEPS[kind]):
        yield _drawn(op, kind, index, "ops")


def _drawn(op: str, kind: str, index: int, suite: str) -> dict[str, str]:
    params = {"op": op, "type": kind}
    digest = hashlib.sha256(f"{SEED}/{suite}/{op}/{kind}/{index}".encode()).digest()
    for at, (key, values) in enumerate(FAMILIES[op].choices.items()):
        drawn = int.from_bytes(digest[2 * at:2 * at + 2], "little")
        # Half of these parameters keep their usual value, so that most cases test few things at a time.
        is_usual = drawn & 0x8000 and key not in ("size", "c", "o", "k", "ops")
        params[key] = values[0] if is_usual else values[(drawn & 0x7FFF) % len(values)]
    return params


@functools.cache
def ops_suite() -> list[str]:
    names = [name_of(one) for op, family in FAMILIES.items() if op != "net" for kind in family.types for one in _sweep(op, kind) if _moves.is_possible(one)]
    return list(dict.fromkeys(names))


@functools.cache
def grid_suite() -> list[str]:
    out: dict[str, None] = {}
    for op, family in FAMILIES.items():
        shares = {kind: GRID_SHARES[kind] for kind in family.types if kind in GRID_SHARES}
        for kind, share in shares.items():
            out.update(_some(op, kind, family.grid * share // sum(shares.values())))
    return list(out)


@functools.cache
def nets_suite() -> list[str]:
    """Returns chains of five to ten operations. A chain has each operation that enlarges an image at most once."""
    out: dict[str, None] = {}
    for kind in FAMILIES["net"].types:
        for index in range(NETS_EACH):
            params, steps = _drawn("net", kind, index, "nets"), list(_moves.STEPS)
            digest, chosen = hashlib.sha256(f"{SEED}/nets/{kind}/{index}/ops".encode()).digest(), []
            for number in digest[1:6 + digest[0] % 6]:
                chosen.append(steps[number % len(steps)])
                if chosen[-1] in ("concat", "pad", "up"):
                    steps.remove(chosen[-1])
            out[name_of({**params, "ops": "+".join(chosen)})] = None
    return list(out)


def _some(op: str, kind: str, count: int) -> dict[str, None]:
    """Returns COUNT different cases, or as many as 10 * COUNT draws give."""
    found: dict[str, None] = {}
    for index in range(10 * count):
        if len(found) == count:
            break
        params = _drawn(op, kind, index, "grid")
        if _moves.is_possible(params):
            found[name_of(params)] = None
    return found


SUITES = {"ops": ops_suite, "grid": grid_suite, "nets": nets_suite}
