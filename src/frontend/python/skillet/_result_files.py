"""Writes test results in the formats of test farms: JUnit, KTAP, LAVA, GitHub annotations, KCIDB."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PASS, FAIL, CRASH, TIMEOUT, SKIP, FLAKE = "Pass", "Fail", "Crash", "Timeout", "Skip", "Flake"
ERROR = "Error"  # the test could not start
EXPECTED, IMPROVED = "ExpectedFail", "UnexpectedImprovement"
BAD = (FAIL, CRASH, TIMEOUT, ERROR)
UNEXPECTED = (*BAD, IMPROVED)
ALREADY = (SKIP, EXPECTED)  # statuses that are not new failures
CONTROL = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd]")
MOST_ANNOTATIONS = 10  # GitHub shows at most this many for a step


class Outcome(Protocol):
    """The fields of a result that a writer reads."""

    @property
    def name(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def seconds(self) -> float | None: ...  # None: not measured
    @property
    def reason(self) -> str: ...


def measurement(one: Outcome) -> tuple[float, str] | None:
    """Returns the value and unit of a row: its measurement, else the time that it took. 0 is a value too."""
    own: tuple[float, str] | None = getattr(one, "measurement", None)
    return own if own is not None or one.seconds is None else (one.seconds, "s")


def decimal(value: float) -> str:
    """Formats VALUE without an exponent, which some readers reject."""
    return f"{value:.9f}".rstrip("0").rstrip(".")


def clean(text: str) -> str:
    return CONTROL.sub("?", text)


def junit(results: Sequence[Outcome], title: str, group: str) -> str:
    from xml.sax.saxutils import escape, quoteattr  # imported here because it imports an HTTP client
    counts = {status: sum(one.status == status for one in results) for status in {one.status for one in results}}
    failures = counts.get(FAIL, 0) + counts.get(IMPROVED, 0)
    errors = sum(counts.get(one, 0) for one in (CRASH, TIMEOUT, ERROR))
    seconds = sum(one.seconds or 0 for one in results)
    head = f'tests="{len(results)}" failures="{failures}" errors="{errors}" skipped="{sum(counts.get(one, 0) for one in ALREADY)}" time="{seconds:.3f}"'
    out = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {head}>", f"<testsuite name={quoteattr(clean(title))} {head}>"]
    for one in results:
        reason = quoteattr(clean(one.reason))
        kind = "failure" if one.status in (FAIL, IMPROVED) else "error" if one.status in UNEXPECTED else ""
        inner = f'<{kind} message={reason} type="{one.status}"/>' if kind else ""
        if not kind and one.reason:
            inner = f"<skipped message={reason}/>" if one.status in ALREADY else f"<system-out>{escape(clean(one.reason))}</system-out>"
        elif one.status in ALREADY:
            inner = "<skipped/>"
        where = f"{group}.{one.name.split('/')[0]}"
        time = "" if one.seconds is None else f' time="{decimal(one.seconds)}"'
        out.append(f"<testcase classname={quoteattr(clean(where))} name={quoteattr(clean(one.name))}{time}>{inner}</testcase>")
    return "\n".join([*out, "</testsuite>", "</testsuites>", ""])


def ktap(results: Sequence[Outcome]) -> str:
    out = ["KTAP version 1", f"1..{len(results)}"]
    for number, one in enumerate(results, 1):
        name, reason = (re.sub(r"[#\s]+", " ", clean(text)) for text in (one.name, one.reason))
        if reason and one.status not in ALREADY:
            out.append(f"# {reason}")
        after = {SKIP: f" # SKIP {reason}", EXPECTED: f" # XFAIL {reason}", TIMEOUT: f" # TIMEOUT {reason}", CRASH: f" # ERROR {reason}", ERROR: f" # ERROR {reason}"}
        out.append(f"{'not ok' if one.status in (*UNEXPECTED, EXPECTED) else 'ok'} {number} {name}{after.get(one.status, '')}")
    return "\n".join([*out, ""])


def distinct(results: Sequence[Outcome], clean_name: Callable[[str], str]) -> dict[str, str]:
    """Returns a name that the farm accepts for each result. Equal names get a suffix from the SHA-256 of the original name."""
    names = {one.name: clean_name(one.name) for one in results}
    counts = Counter(names.values())
    return {name: made if counts[made] == 1 or made == name else f"{made}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}" for name, made in names.items()}


def lava_id(name: str) -> str:
    return re.sub(r"[^-./=+0-9A-Za-z_]", "_", name)


def kcidb_path(name: str) -> str:
    return ".".join(re.sub(r"[^0-9A-Za-z_-]", "_", part) for part in name.split("/") if part)


def lava(results: Sequence[Outcome], group: str) -> str:
    """Returns the lines for the console of a LAVA test shell."""
    words = {PASS: "pass", FLAKE: "pass", SKIP: "skip", EXPECTED: "pass"}
    out, ids = [f"<LAVA_SIGNAL_TESTSET START {group}>"], distinct(results, lava_id)
    for one in results:
        value = measurement(one)
        measured = "" if value is None else f" MEASUREMENT={decimal(value[0])} UNITS={value[1]}"
        out.append(f"<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={ids[one.name]} RESULT={words.get(one.status, 'fail')}{measured}>")
    return "\n".join([*out, "<LAVA_SIGNAL_TESTSET STOP>", ""])


def github(results: Sequence[Outcome], title: str) -> str:
    """Returns the lines for the console of a GitHub step: an annotation for each failure."""
    def line(text: str, also: str = "") -> str:
        return "".join(f"%{ord(one):02X}" if one in "%\r\n" + also else one for one in clean(text))
    bad = [one for one in results if one.status in UNEXPECTED]
    out = [f"::error title={line(title, ':,')}::{line(f'{one.name}: {one.reason or one.status}')}" for one in bad[:MOST_ANNOTATIONS - 1]]
    if len(bad) >= MOST_ANNOTATIONS:
        out.append(f"::error title={line(title, ':,')}::{len(bad) - len(out)} more of {len(results)} failed")
    return "".join(one + "\n" for one in out)


def kcidb(results: Sequence[Outcome], group: str, origin: str, build: str, device: str) -> str:
    """Returns a report in KCIDB 5.3 (https://docs.kernelci.org). `build`: the id of the tested build; empty: a build of this machine is reported."""
    words = {PASS: "PASS", FLAKE: "PASS", FAIL: "FAIL", SKIP: "SKIP", EXPECTED: "PASS"}
    begin = datetime.now(timezone.utc).isoformat(timespec="seconds")
    out: dict[str, object] = {"version": {"major": 5, "minor": 3}}
    if not build:
        build = f"{origin}:{platform.machine()}-{platform.release()}"
        out["checkouts"] = [{"id": f"{origin}:{platform.release()}", "origin": origin}]
        out["builds"] = [{"id": build, "checkout_id": f"{origin}:{platform.release()}", "origin": origin, "architecture": platform.machine()}]
    tests: list[dict[str, object]] = []
    paths = distinct(results, kcidb_path)
    for number, one in enumerate(results):
        key = hashlib.sha256(f"{platform.node()} {os.getpid()} {begin} {device} {group} {number} {clean(one.name)}".encode()).hexdigest()[:32]
        path = f"skillet.{group}.{paths[one.name]}"
        test: dict[str, object] = {"id": f"{origin}:{key}", "origin": origin, "build_id": build, "path": path, "status": words.get(one.status, "ERROR"),
                                   "start_time": begin, "comment": clean(one.reason or one.name), "environment": {"comment": clean(device)}}
        if one.seconds is not None:
            test["duration"] = round(one.seconds, 6)
        own = getattr(one, "measurement", None)
        if own is not None:
            test["number"] = {"value": own[0], "unit": own[1]}
        tests.append(test)
    return json.dumps({**out, "tests": tests}, indent=1) + "\n"
