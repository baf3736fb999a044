"""`skillet trace`: summarizes a trace in Perfetto's format as text, and draws it as a picture."""

from __future__ import annotations

import argparse
import heapq
import json
import os
import re
import sys
from array import array
from collections import Counter, defaultdict
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from skillet._trace_events import Malformed, Reader, Slice, Track, clean
from skillet._verb import verb_parser, would_overwrite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

FINE, FAILED, CANNOT_BEGIN = 0, 1, 2
LONGEST = 10
WIDTH, NAMES, LANE, GAP, TOP, LEAST = 1200, 210, 18, 8, 28, 0.4  # px
MOST_TRACKS, MOST_DRAWN = 60, 1 << 18  # in a picture
COLOURS = {"session": "#9aa5b1", "compile": "#c9a227", "copy": "#5b8def", "submit": "#8e6bbf", "wait": "#d8dee6", "cpu": "#4caf7d", "npu": "#e0683c",
           "operation": "#f2a65a", "unit": "#c45b8a", "simulator": "#e9d8a6", "kernel": "#777777"}


class Intervals:
    """Merged time intervals, ordered by begin."""

    def __init__(self) -> None:
        self._begins, self._ends = array("q"), array("q")

    def add(self, begin: int, end: int) -> None:
        if self._ends and begin <= self._ends[-1]:
            self._ends[-1] = max(self._ends[-1], end)
        else:
            self._begins.append(begin)
            self._ends.append(end)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._begins, self._ends)


def covered(tracks: list[Intervals]) -> int:
    total = until = 0
    for begin, end in heapq.merge(*tracks):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


class Category:
    def __init__(self) -> None:
        self.slices = self.ns = self.own_ns = 0


class Summary:
    def __init__(self, file: BinaryIO) -> None:
        self.categories: dict[str, Category] = defaultdict(Category)
        self.npu: dict[Track, Intervals] = defaultdict(Intervals)
        self.submissions = self.jobs = self.lost = self.lost_ns = self.runs = 0
        self.runs_begin = self.runs_end = -1
        self.last_run: tuple[int, int] | None = None  # the last complete run
        self.predicted: set[str] = set()
        self.kernel_events: Counter[str] = Counter()
        self.longest: list[tuple[int, int, Slice]] = []  # a heap of (own time, order of end, slice)
        self._numbers = 0
        self.reader = Reader(self.add, lambda *_: None, lambda _, name: self.kernel_events.update((name,)))
        self.reader.read(file)

    def add(self, one: Slice) -> None:
        category = self.categories[one.category]
        category.slices += 1
        category.own_ns += one.own
        if one.depth == 0 or all(outer.category != one.category for outer in one.track.open_slices):  # slices inside others of their category do not count again
            category.ns += one.ns()
        if one.category == "npu" and not one.track.is_thread and one.depth == 0:
            found = re.fullmatch("([0-9]{1,18}) jobs?(?:, predicted (.+?))?(, lost)?", one.name)
            if found and found[3]:  # it is unknown what the NPU did meanwhile
                self.lost += 1
                self.lost_ns += one.ns()
            else:
                self.npu[one.track].add(one.begin, one.end)
                self.submissions += 1
                self.jobs += int(found[1]) if found else 0
                self.predicted.update(filter(None, [found and found[2]]))
        if one.category == "session" and one.name == "run":
            self.runs += 1
            self.runs_begin = one.begin if self.runs_begin < 0 else min(self.runs_begin, one.begin)
            self.runs_end = max(self.runs_end, one.end)
            if not one.is_open and (self.last_run is None or one.begin >= self.last_run[0]):
                self.last_run = one.begin, one.end
        if one.track.is_thread or one.category not in ("npu", "unit") or one.name.endswith(", lost"):  # the time of jobs and units is already counted by operation
            self._numbers -= 1
            entry = one.own, self._numbers, one
            if len(self.longest) < LONGEST:
                heapq.heappush(self.longest, entry)
            elif entry > self.longest[0]:
                heapq.heapreplace(self.longest, entry)

    def report(self) -> dict[str, Any]:
        begin = self.reader.begin
        npu_ns, runs_ns = covered(list(self.npu.values())), self.runs_end - self.runs_begin
        categories = [{"name": name, "slices": one.slices, "ms": one.ns / 1e6, "own_ms": one.own_ns / 1e6} for name, one in sorted(self.categories.items())]
        return {"ms": (self.reader.end - begin) / 1e6, "tracks": len(self.reader.tracks), "slices": self.reader.slices, "runs": self.runs, "runs_ms": runs_ns / 1e6,
                "npu_submissions": self.submissions, "npu_jobs": self.jobs, "npu_predicted": sorted(self.predicted), "npu_ms": npu_ns / 1e6,
                "npu_lost_submissions": self.lost, "npu_lost_ms": self.lost_ns / 1e6,
                "npu_busy": min(1.0, npu_ns / runs_ns) if runs_ns else 0, "kernel_events": self.kernel_events,
                "categories": sorted(categories, key=lambda one: -one["own_ms"]),
                "longest": [{"name": one.name, "category": one.category, "track": one.track.name, "begin_ms": (one.begin - begin) / 1e6, "ms": one.ns() / 1e6,
                             "own_ms": one.own / 1e6, "is_open": one.is_open} for _, _, one in sorted(self.longest, reverse=True)]}


def print_ms(ms: float) -> str:
    return f"{ms / 1000:.2f} s" if ms >= 1000 else f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2g} ms"


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + "s" * (number != 1)


def table(rows: list[list[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    right = [i > 0 and all(not cell or cell[0].isdigit() for cell in column[1:]) for i, column in enumerate(zip(*rows))]
    return "".join(("  " + "  ".join(cell.rjust(width) if is_right else cell.ljust(width) for cell, width, is_right in zip(row, widths, right))).rstrip() + "\n"
                   for row in rows)


def text_report(path: str, found: dict[str, Any]) -> str:
    out = f"{clean(path)}: {print_ms(found['ms'])}, {counted(found['slices'], 'slice')} on {counted(found['tracks'], 'track')}\n"
    if not found["slices"]:
        return out + "no events yet\n"
    out += (f"{counted(found['runs'], 'run')} in {print_ms(found['runs_ms'])}; the NPU ran {counted(found['npu_jobs'], 'job')} in "
            f"{counted(found['npu_submissions'], 'submission')} and was busy {100 * found['npu_busy']:.1f} % of that time\n")
    if found["npu_lost_submissions"]:
        out += f"{counted(found['npu_lost_submissions'], 'submission')} more, {print_ms(found['npu_lost_ms'])} long, lost: the NPU hung or was reset\n"
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


class Picture:
    """The time from BEGIN to END as a picture. It keeps only visible slices and samples, so its size is bounded."""

    def __init__(self, file: BinaryIO, begin: int, end: int) -> None:
        self.begin, self.end = begin, end
        self.slices: dict[Track, list[Slice]] = defaultdict(list)
        self.samples: dict[Track, list[tuple[int, float]]] = defaultdict(list)
        self.drawn = 0
        self._until: dict[tuple[Track, int], float] = defaultdict(float)  # by track and depth, in px
        self.reader = Reader(self.add, self.add_sample, lambda *_: None)
        self.reader.read(file)

    def place(self, when: int) -> float:
        return NAMES + (min(max(when, self.begin), self.end) - self.begin) / max(1, self.end - self.begin) * (WIDTH - NAMES - 10)

    def is_full(self, track: Track, seen: dict[Track, Any]) -> bool:
        return len(seen) >= MOST_TRACKS and track not in seen

    def add(self, one: Slice) -> None:
        if one.begin > self.end or one.end < self.begin or self.is_full(one.track, self.slices):
            return
        x, right = self.place(one.begin), self.place(one.end)
        until = self._until[one.track, one.depth]
        if right < until + LEAST and right - x < LEAST:
            return  # hidden by the slice before it
        self.drawn += 1
        if self.drawn > MOST_DRAWN:
            return
        self._until[one.track, one.depth] = right
        self.slices[one.track].append(one)

    def add_sample(self, track: Track, when: int, value: float) -> None:
        if not self.begin <= when <= self.end or self.is_full(track, self.samples):
            return
        samples = self.samples[track]
        if len(samples) > 1 and self.place(when) - self.place(samples[-2][0]) < LEAST:  # a larger sample there hides it; the last sample stays
            samples[-2:] = [(samples[-2][0], max(samples[-2][1], samples[-1][1])), (when, value)]
        else:
            samples.append((when, value))

    def print(self) -> str:
        body, y = "", float(TOP)
        for track in [one for one in self.reader.tracks.values() if one in self.slices or one in self.samples][:MOST_TRACKS]:
            body += f"<text x='6' y='{y + 12:.0f}'>{escape(track.name[:34])}</text>\n"
            body += "".join(self._slice(one, y) for one in self.slices.get(track, ()))
            samples = self.samples.get(track, [])
            body += self._counter(samples, y)
            y += (2 if samples else 1 + max([0, *(one.depth for one in self.slices.get(track, ()))])) * LANE + GAP
        return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{y + GAP:.0f}' viewBox='0 0 {WIDTH} {y + GAP:.0f}' font-family='sans-serif' "
                f"font-size='11'>\n<rect width='100%' height='100%' fill='white'/>\n<text x='6' y='16'>{(self.end - self.begin) / 1e6:.3f} ms</text>\n{body}</svg>\n")

    def _slice(self, one: Slice, y: float) -> str:
        x, top = self.place(one.begin), y + one.depth * LANE
        width = self.place(one.end) - x
        out = (f"<rect x='{x:.1f}' y='{top:.0f}' width='{max(width, LEAST):.1f}' height='{LANE - 2}' fill='{COLOURS.get(one.category, '#b0b0b0')}'>"
               f"<title>{escape(one.name)}: {one.ns() / 1e3:.1f} us</title></rect>\n")
        if (fits := int(width / 6.2)) > 3:
            out += f"<text x='{x + 3:.1f}' y='{top + 12:.0f}'>{escape(one.name[:fits - 1])}</text>\n"
        return out

    def _counter(self, samples: list[tuple[int, float]], y: float) -> str:
        most, out = max([1.0, *(value for _, value in samples)]), ""
        for (when, value), (after, _) in zip(samples, [*samples[1:], (self.end, 0)]):
            height = 2 * LANE * max(0.0, value) / most
            out += (f"<rect x='{self.place(when):.1f}' y='{y + 2 * LANE - height:.1f}' width='{max(self.place(after) - self.place(when), LEAST):.1f}' "
                    f"height='{height:.1f}' fill='#7aa6c2'/>\n")
        return out


def parser() -> argparse.ArgumentParser:
    out = verb_parser("trace",
                      description="What a trace of --trace says: time by category, the longest slices, the NPU's share.\n"
                                  "https://ui.perfetto.dev shows all of it (docs/traces.md).",
                      epilog="Example:\n  skillet trace run.pftrace --svg run.svg\n\n"
                             "Exit codes: 0 it was read; 1 the picture cannot be written; 2 the trace cannot be read,\n"
                                    "or the picture would overwrite it.")
    out.add_argument("file", metavar="FILE", help="a trace in Perfetto's format; -: standard input")
    out.add_argument("--svg", metavar="F", help="draw the last whole run as this picture")
    out.add_argument("--json", action="store_true", help="machine-readable output")
    return out


def main(words: list[str]) -> int:
    args = parser().parse_args(words)

    def complain(text: str, code: int) -> int:
        print(f"skillet: {clean(text)}", file=sys.stderr)
        return code

    name = "standard input" if args.file == "-" else args.file
    if args.svg is not None and would_overwrite(args.svg, [args.file]):
        return complain(f"--svg {args.svg}: that is what is to be read", CANNOT_BEGIN)
    try:
        with open(0 if args.file == "-" else args.file, "rb", closefd=args.file != "-") as file:
            if args.svg is not None and not file.seekable():
                return complain(f"{name}: a picture needs a file, which is read twice", CANNOT_BEGIN)
            summary = Summary(file)
            reader = summary.reader
            if args.svg is not None:  # the last complete run, or everything if there is none
                file.seek(0)
                picture = Picture(file, *(summary.last_run or (reader.begin, reader.end)))
    except OSError as error:
        return complain(f"{name}: {error.strerror}", CANNOT_BEGIN)
    except (Malformed, EOFError) as error:
        why = str(error) or "a field ends behind its packet"
        return complain(f"{name}: {'' if 'no trace' in why or 'not read' in why else 'it is no trace: '}{why}", CANNOT_BEGIN)
    if reader.is_cut:
        complain(f"warning: {name}: the file ends within a packet, or in zero bytes; what is before it is read", FINE)
    if reader.disordered:
        complain(f"warning: {name}: times of '{reader.disordered}' are not in order, so its slices may be wrong", FINE)
    found = summary.report()
    if args.svg is not None:
        if picture.drawn > MOST_DRAWN:
            complain(f"warning: {args.svg}: {MOST_DRAWN} slices are drawn, and {picture.drawn - MOST_DRAWN} are not", FINE)
        try:
            Path(args.svg).write_text(picture.print(), encoding="utf-8")
        except OSError as error:
            return complain(f"{args.svg}: {error.strerror}", FAILED)
    longest = [{key: value for key, value in one.items() if key != "is_open"} for one in found["longest"]]
    try:
        print(json.dumps({"version": 1, "file": clean(name), **found, "longest": longest}, indent=2, sort_keys=True) if args.json
              else text_report(name, found), end="\n" if args.json else "", flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes stdout again when it exits
        return complain(f"standard output: {error.strerror}", FAILED)
    return FINE
