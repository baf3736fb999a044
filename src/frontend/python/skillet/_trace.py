"""`skillet trace`: what a trace in Perfetto's format says in a few lines, and as a picture. Slices and counters are those of track events;
whatever else a trace of another program holds is passed over."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import struct
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from skillet._verb import verb_parser, would_overwrite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

FINE, FAILED, CANNOT_BEGIN = 0, 1, 2
MOST_BYTES, MOST_DEPTH, LONGEST = 1 << 30, 1000, 10
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4  # types of events
WIDTH, NAMES, LANE, GAP, TOP, LEAST, MOST_TRACKS = 1200, 210, 18, 8, 28, 0.4, 60  # px, but the last
COLOURS = {"session": "#9aa5b1", "compile": "#c9a227", "copy": "#5b8def", "submit": "#8e6bbf", "wait": "#d8dee6", "cpu": "#4caf7d", "npu": "#e0683c",
           "operation": "#f2a65a", "unit": "#c45b8a", "simulator": "#e9d8a6", "kernel": "#777777"}


class Malformed(Exception):
    """The message says why the file is no trace."""


@dataclass
class Track:
    name: str
    is_thread: bool = False
    samples: list[tuple[int, float]] = field(default_factory=list)  # (ns, value)


@dataclass
class Slice:
    track: Track
    category: str
    name: str
    begin: int  # ns, as all times
    depth: int
    end: int = 0
    own: int = 0  # without those inside
    is_open: bool = False  # the trace ends before it does

    def ns(self) -> int:
        return self.end - self.begin


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            raise EOFError
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value & (1 << 64) - 1, at
    raise Malformed("a number has too many bytes")


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers of fields with their values: int, bytes of 8, or a memoryview of what is in it. EOFError: the data end within one."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value: Any
            value, at = varint(data, at)
            yield key >> 3, value
            continue
        if key & 7 == 2:
            size, at = varint(data, at)
        elif key & 7 in (1, 5):
            size = 8 if key & 7 == 1 else 4
        else:
            raise Malformed("a field has an unknown type")
        if key >> 3 == 0 or size > len(data) - at:
            raise EOFError
        value = data[at:at + size]
        yield key >> 3, value if key & 7 == 2 else struct.unpack("<d" if size == 8 else "<f", value)[0]
        at += size


def typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise Malformed("a field has another type")
    return value


def text_of(value: Any) -> str:
    return clean(typed(value, bytes).decode("utf-8", "replace"))


def clean(text: str) -> str:
    return re.sub("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]", "?", text)


class Trace:
    def __init__(self, data: bytes) -> None:
        self.tracks: dict[int, Track] = {}
        self.slices: list[Slice] = []
        self.kernel_events: list[tuple[int, str]] = []  # (ns, name)
        self.is_cut = False  # the file ends within a packet, as a copy of a file that grows
        self.names: dict[tuple[int, int, int], str] = {}  # by 1 category, 2 name; sequence; number
        events: list[dict[int, Any]] = []
        packets = fields(data)
        while (packet := self.next_packet(packets)) is not None:
            events += self.events_of(packet)
        if not events:
            raise Malformed("it is no trace, or one without track events")
        events.sort(key=lambda event: int(event[0]))
        self.begin, self.end = events[0][0], events[-1][0]
        open_slices: dict[int, list[Slice]] = defaultdict(list)
        for event in events:
            self.add(event, open_slices[event[11]])
        for left in open_slices.values():
            while left:
                close(left, self.end).is_open = True

    def next_packet(self, packets: Iterator[tuple[int, Any]]) -> bytes | None:
        try:
            number, packet = next(packets, (0, b""))
        except EOFError:
            self.is_cut = True
            return None
        if number not in (0, 1):
            raise Malformed("it is no trace, or one without track events")
        return typed(packet, bytes) if number else None

    def track(self, uuid: int) -> Track:
        return self.tracks.setdefault(uuid, Track(f"track {uuid}"))

    def events_of(self, packet: bytes) -> list[dict[int, Any]]:
        """By number of field; 0 is when."""
        parts: dict[int, list[Any]] = defaultdict(list)
        for number, value in fields(packet):
            parts[number].append(value)
        sequence = typed(parts[10][-1], int) if parts[10] else 0
        for one in parts[60]:
            self.read_track(typed(one, bytes))
        for one in parts[12]:
            for kind, entry in fields(typed(one, bytes)):
                if kind in (1, 2):
                    said = dict(fields(typed(entry, bytes)))
                    self.names[kind, sequence, typed(said.get(1, 0), int)] = text_of(said.get(2, b""))
        return [self.event(typed(one, bytes), sequence, min(typed(parts[8][-1], int) if parts[8] else 0, 1 << 62)) for one in parts[11]]

    def read_track(self, data: bytes) -> None:
        said = dict(fields(data))
        track = self.track(typed(said.get(1, 0), int))
        track.name = text_of(said.get(2, b""))
        if 4 in said:
            track.is_thread = True
            thread = dict(fields(typed(said[4], bytes)))
            if 5 in thread:
                track.name = "thread " + text_of(thread[5])

    def event(self, data: bytes, sequence: int, when: int) -> dict[int, Any]:
        said = dict(fields(data))
        out: dict[int, Any] = {0: when, 3: "", 10: "", 44: 0.0} | {number: typed(said.get(number, 0), int) for number in (9, 11)}
        for number, kind in ((3, 1), (10, 2)):
            if number in said:
                out[number] = self.names.get((kind, sequence, typed(said[number], int)), "")
        if 23 in said:
            out[10] = text_of(said[23])
        if 30 in said or 44 in said:
            out[44] = typed(said[44], float) if 44 in said else float(typed(said[30], int))
        return out

    def add(self, event: dict[int, Any], inside: list[Slice]) -> None:
        track = self.track(event[11])
        if event[9] == COUNTER:
            track.samples.append((event[0], event[44] if math.isfinite(event[44]) else 0))
        elif event[9] == END and inside:
            close(inside, event[0])
        elif event[9] == INSTANT and event[3] == "kernel":
            self.kernel_events.append((event[0], event[10]))
        elif event[9] == BEGIN:
            if len(inside) == MOST_DEPTH:
                raise Malformed(f"{track.name}: more than {MOST_DEPTH} slices are open at once")
            inside.append(Slice(track, event[3], event[10], event[0], len(inside)))
            self.slices.append(inside[-1])


def close(inside: list[Slice], when: int) -> Slice:
    one = inside.pop()
    one.end = when
    one.own += one.ns()
    if inside:
        inside[-1].own -= one.ns()
    return one


def covered(slices: Sequence[Slice]) -> int:
    """They begin in order."""
    total = until = 0
    for one in slices:
        total += max(0, one.end - max(one.begin, until))
        until = max(until, one.end)
    return total


def summary_of(trace: Trace) -> dict[str, Any]:
    by_category: dict[str, list[Slice]] = defaultdict(list)
    for one in trace.slices:
        by_category[one.category].append(one)
    categories = []
    for name, slices in sorted(by_category.items()):
        ns = 0
        until: dict[int, int] = {}
        for one in slices:  # those inside others of the category do not count again
            if one.begin >= until.get(id(one.track), 0):
                ns += one.ns()
                until[id(one.track)] = one.end
        categories.append({"name": name, "slices": len(slices), "ms": ns / 1e6, "own_ms": sum(one.own for one in slices) / 1e6})
    npu = [one for one in by_category["npu"] if not one.track.is_thread and one.depth == 0]
    runs = [one for one in by_category["session"] if one.name == "run"]
    runs_ns = max(one.end for one in runs) - runs[0].begin if runs else 0
    # Jobs and units have their time by operation already.
    longest = sorted((one for one in trace.slices if one.track.is_thread or one.category not in ("npu", "unit")), key=lambda one: -one.own)[:LONGEST]
    jobs = [found for one in npu if (found := re.fullmatch("([0-9]{1,18}) jobs?(?:, predicted (.+))?", one.name))]
    return {"ms": (trace.end - trace.begin) / 1e6, "tracks": len(trace.tracks), "slices": len(trace.slices), "runs": len(runs), "runs_ms": runs_ns / 1e6,
            "npu_submissions": len(npu), "npu_jobs": sum(int(one[1]) for one in jobs), "npu_predicted": sorted({one[2] for one in jobs if one[2]}), "npu_ms": covered(npu) / 1e6, "npu_busy": min(1.0, covered(npu) / runs_ns) if runs_ns else 0,
            "kernel_events": Counter(name for _, name in trace.kernel_events), "categories": sorted(categories, key=lambda one: -one["own_ms"]),
            "longest": [{"name": one.name, "category": one.category, "track": one.track.name, "begin_ms": (one.begin - trace.begin) / 1e6, "ms": one.ns() / 1e6,
                         "own_ms": one.own / 1e6, "is_open": one.is_open} for one in longest]}


def print_ms(ms: float) -> str:
    return f"{ms / 1000:.2f} s" if ms >= 1000 else f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2g} ms"


def table(rows: list[list[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    right = [i > 0 and all(not cell or cell[0].isdigit() for cell in column[1:]) for i, column in enumerate(zip(*rows))]
    return "".join(("  " + "  ".join(cell.rjust(width) if is_right else cell.ljust(width) for cell, width, is_right in zip(row, widths, right))).rstrip() + "\n"
                   for row in rows)


def text_report(path: str, found: dict[str, Any]) -> str:
    out = f"{clean(path)}: {print_ms(found['ms'])}, {found['slices']:,} slices on {found['tracks']} tracks\n"
    out += (f"{found['runs']} runs in {print_ms(found['runs_ms'])}; the NPU ran {found['npu_jobs']} jobs in {found['npu_submissions']} submissions and was "
            f"busy {100 * found['npu_busy']:.1f} % of that time\n")
    if found["npu_predicted"]:
        out += f"operations and units have shares of that, as the timing model predicts {', '.join(found['npu_predicted'])}\n"
    if found["kernel_events"]:
        out += f"events of the kernel's job scheduler: {', '.join(f'{count:,} {name}' for name, count in sorted(found['kernel_events'].items()))}\n"
    out += "\n"
    out += table([["category", "slices", "time", "without slices inside"],
                  *([one["name"], f"{one['slices']:,}", print_ms(one["ms"]), print_ms(one["own_ms"])] for one in found["categories"])])
    return out + "\n" + table([["longest without slices inside", "all of it", "at", "category", "track", "name"],
                               *([print_ms(one["own_ms"]), print_ms(one["ms"]), print_ms(one["begin_ms"]), one["category"], one["track"],
                                  one["name"] + " (not ended)" * one["is_open"]] for one in found["longest"])])


def picture(trace: Trace) -> str:
    """The last whole run, or everything where there is none, as SVG."""
    runs = [one for one in trace.slices if one.category == "session" and one.name == "run" and not one.is_open]
    begin, end = (runs[-1].begin, runs[-1].end) if runs else (trace.begin, trace.end)

    def place(when: int) -> float:
        return NAMES + (min(max(when, begin), end) - begin) / max(1, end - begin) * (WIDTH - NAMES - 10)

    slices: dict[int, list[Slice]] = defaultdict(list)
    for one in trace.slices:
        if one.begin <= end and one.end >= begin:
            slices[id(one.track)].append(one)
    body, y = "", float(TOP)
    seen = [track for track in trace.tracks.values() if slices[id(track)] or any(begin <= when <= end for when, _ in track.samples)]
    for track in seen[:MOST_TRACKS]:
        lanes = 1
        until: dict[int, float] = defaultdict(float)
        body += f"<text x='6' y='{y + 12:.0f}'>{escape(track.name[:34])}</text>\n"
        for one in slices[id(track)]:
            x, top = place(one.begin), y + one.depth * LANE
            width = place(one.end) - x
            lanes = max(lanes, one.depth + 1)
            if x + width < until[one.depth] + LEAST and width < LEAST:
                continue  # one there hides it
            until[one.depth] = x + width
            body += (f"<rect x='{x:.1f}' y='{top:.0f}' width='{max(width, LEAST):.1f}' height='{LANE - 2}' fill='{COLOURS.get(one.category, '#b0b0b0')}'>"
                     f"<title>{escape(one.name)}: {one.ns() / 1e3:.1f} us</title></rect>\n")
            if (fits := int(width / 6.2)) > 3:
                body += f"<text x='{x + 3:.1f}' y='{top + 12:.0f}'>{escape(one.name[:fits - 1])}</text>\n"
        samples = [one for one in track.samples if begin <= one[0] <= end]
        most = max([1.0, *(value for _, value in samples)])
        for (when, value), (after, _) in zip(samples, [*samples[1:], (end, 0)]):
            height = 2 * LANE * max(0.0, value) / most
            body += (f"<rect x='{place(when):.1f}' y='{y + 2 * LANE - height:.1f}' width='{max(place(after) - place(when), LEAST):.1f}' height='{height:.1f}' "
                     "fill='#7aa6c2'/>\n")
        y += (2 if samples else lanes) * LANE + GAP
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{y + GAP:.0f}' viewBox='0 0 {WIDTH} {y + GAP:.0f}' font-family='sans-serif' "
            f"font-size='11'>\n<rect width='100%' height='100%' fill='white'/>\n<text x='6' y='16'>{(end - begin) / 1e6:.3f} ms</text>\n{body}</svg>\n")


def parser() -> argparse.ArgumentParser:
    out = verb_parser("trace",
                      description="What a trace of --trace says: time by category, the longest slices, the NPU's share.\n"
                                  "https://ui.perfetto.dev shows all of it (docs/traces.md).",
                      epilog="Example:\n  skillet trace run.pftrace --svg run.svg\n\n"
                             "Exit codes: 0 it was read; 1 the picture cannot be written; 2 the trace cannot be read,\n"
                                    "or the picture would overwrite it.")
    out.add_argument("file", metavar="FILE", help="a trace in Perfetto's format")
    out.add_argument("--svg", metavar="F", help="draw the last whole run as this picture")
    out.add_argument("--json", action="store_true", help="machine-readable output")
    return out


def main(words: list[str]) -> int:
    args = parser().parse_args(words)

    def complain(text: str, code: int) -> int:
        print(f"skillet: {clean(text)}", file=sys.stderr)
        return code

    if args.svg is not None and would_overwrite(args.svg, [args.file]):
        return complain(f"--svg {args.svg}: that is what is to be read", CANNOT_BEGIN)
    try:
        with open(args.file, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            return complain(f"{args.file}: more than 1 GiB is not read", CANNOT_BEGIN)
        trace = Trace(data)
    except OSError as error:
        return complain(f"{args.file}: {error.strerror}", CANNOT_BEGIN)
    except (Malformed, EOFError) as error:
        why = str(error) or "a field ends behind its packet"
        return complain(f"{args.file}: {'' if 'no trace' in why else 'it is no trace: '}{why}", CANNOT_BEGIN)
    if trace.is_cut:
        complain(f"warning: {args.file}: the file ends within a packet; what is before it is read", FINE)
    found = summary_of(trace)
    if args.svg is not None:
        try:
            Path(args.svg).write_text(picture(trace), encoding="utf-8")
        except OSError as error:
            return complain(f"{args.svg}: {error.strerror}", FAILED)
    longest = [{key: value for key, value in one.items() if key != "is_open"} for one in found["longest"]]
    try:
        print(json.dumps({"version": 1, "file": clean(args.file), **found, "longest": longest}, indent=2, sort_keys=True) if args.json
              else text_report(args.file, found), end="\n" if args.json else "", flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left of it is tried again at the end
        return complain(f"standard output: {error.strerror}", FAILED)
    return FINE
