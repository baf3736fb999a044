"""Writes a run as an HTML page: scores, maps of sizes by channels, failures with pictures of their differences. It loads nothing from a network."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from html import escape
from typing import TYPE_CHECKING

from skillet._result_files import BAD, CRASH, EXPECTED, SKIP, TIMEOUT, UNEXPECTED
from skillet.conformance._cases import BadName, place
from skillet.conformance._score import COLUMNS, cells, scores, verdict

if TYPE_CHECKING:
    from skillet.conformance._run import Result

MOST_PICTURES, MOST_FAILURES = 60, 1000
CELL = 14
STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1c2330;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse}td,th{padding:.15rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid #dde}
td:first-child,th:first-child,td:last-child,th:last-child{text-align:left}td:last-child{white-space:normal}.maps{display:flex;flex-wrap:wrap;gap:1.5rem}.map{break-inside:avoid}
.map h3{margin:.2rem 0;font-size:.95rem}svg text{font:9px system-ui,sans-serif;fill:#445}.case{margin:.6rem 0;padding:.5rem .8rem;border-left:4px solid #c33;background:#faf7f7}
code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}.key span{display:inline-block;width:.9em;height:.9em;margin:0 .3em 0 1em;vertical-align:-.1em}
.scroll{overflow-x:auto}
"""
COLOURS = (("all pass", "#3a9d5d"), ("some fail", "#f0b429"), ("all fail", "#d64545"), ("a crash or a timeout", "#3b1f5b"), ("left to the CPU", "#cfd6df"))


def colour(results: list[Result]) -> str:
    bad = sum(one.status in (*BAD, EXPECTED) for one in results)
    tried = sum(one.status != SKIP for one in results)
    at = 3 if any(one.status in (CRASH, TIMEOUT) for one in results) else 4 if not tried else 0 if not bad else 2 if bad == tried else 1
    return COLOURS[at][1]


def chart(op: str, results: list[Result]) -> str:
    """Draws a map of results. Rows: the longer side of the image. Columns: channels."""
    groups: dict[tuple[int, int], list[Result]] = defaultdict(list)
    for one in results:
        with contextlib.suppress(BadName):
            groups[place(one.name)].append(one)
    rows, columns = sorted({size for size, _ in groups}), sorted({channels for _, channels in groups})
    left, top = 30, 26
    out = [f'<svg width="{left + CELL * len(columns) + 4}" height="{top + CELL * len(rows) + 4}" role="img" aria-label="map of {escape(op)}">']
    for at, channels in enumerate(columns):
        x = left + CELL * at + 10
        out.append(f'<text x="{x}" y="{top - 4}" transform="rotate(-60 {x} {top - 4})">{channels}</text>')
    for at, size in enumerate(rows):
        out.append(f'<text x="{left - 4}" y="{top + CELL * at + 10}" text-anchor="end">{size}</text>')
    for (size, channels), group in groups.items():
        bad = sum(one.status in (*BAD, EXPECTED) for one in group)
        largest = max(one.largest for one in group)
        out.append(f'<rect x="{left + CELL * columns.index(channels)}" y="{top + CELL * rows.index(size)}" width="{CELL - 1}" height="{CELL - 1}" '
                   f'fill="{colour(group)}"><title>size {size}, channels {channels}: {bad} of {len(group)} fail, largest difference {largest:g}</title></rect>')
    return f'<div class="map"><h3>{escape(op)}</h3>{"".join(out)}</svg></div>'


def picture(rows: list[list[float]]) -> str:
    """Draws the differences of one output by row and column. Darker means a larger difference."""
    most = max((value for row in rows for value in row), default=0) or 1
    size = max(2, min(10, 320 // max(1, len(rows), len(rows[0]) if rows else 1)))
    out = [f'<svg width="{size * len(rows[0])}" height="{size * len(rows)}" role="img" aria-label="where it differs" style="background:#eef1f5">']
    for y, row in enumerate(rows):
        out += [f'<rect x="{x * size}" y="{y * size}" width="{size}" height="{size}" fill="#b3001b" fill-opacity="{0.15 + 0.85 * value / most:.2f}"/>'
                for x, value in enumerate(row) if value > 0]
    return "".join(out) + "</svg>"


def failure(one: Result, has_picture: bool) -> str:
    shown = picture(one.picture) if has_picture and one.picture and one.picture[0] else ""
    return f'<div class="case"><code>{escape(one.name)}</code>: <b>{one.status}</b><br>{escape(one.reason)}{"<br>" + shown if shown else ""}</div>'


def page(results: list[Result], title: str, judge: str) -> str:
    groups: dict[str, list[Result]] = defaultdict(list)
    for one in results:
        groups[one.name.split("/")[0]].append(one)
    maps = [chart(op, group) for op, group in groups.items() if op not in ("nets", "process-end")]
    failures = [one for one in results if one.status in (*UNEXPECTED, EXPECTED)]
    rows = "".join("<tr>" + "".join(f"<td>{escape(word)}</td>" for word in cells(one)) + "</tr>" for one in scores(results))
    key = "".join(f'<span style="background:{value}"></span>{name}' for name, value in COLOURS)
    shown = "".join(failure(one, at < MOST_PICTURES) for at, one in enumerate(failures[:MOST_FAILURES]))
    more = f"<p>{len(failures) - MOST_FAILURES} more are in cases.jsonl.</p>" if len(failures) > MOST_FAILURES else ""
    none = "<p>None.</p>" if not failures else ""
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Conformance: {escape(title)}</title>
<style>{STYLE}</style></head><body>
<h1>Conformance: {escape(title)}</h1>
<p>{escape(verdict(results))}. Compared with the {escape(judge)}.</p>
<h2>Scores</h2>
<p>"left": not taken, so left to the CPU or skipped. "off": share of the values that differ at all. "fails where": how many cases with that property fail.</p>
<div class="scroll"><table><tr>{"".join(f"<th>{escape(word)}</th>" for word in COLUMNS)}</tr>{rows}</table></div>
<h2>Maps: the longer side of the image (rows) by channels (columns)</h2>
<p class="key">{key}</p>
<div class="maps">{"".join(maps)}</div>
<h2>Failures</h2>
<p>Pictures: the first output that is wrong, rows by columns, the largest difference over all channels.</p>
{none}{shown}{more}
</body></html>
"""


