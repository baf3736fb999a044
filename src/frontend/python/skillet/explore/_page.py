"""`skillet page`: writes a capture as one HTML page: jobs in order, buffers by address, fields with their meaning, differences."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillet._paths import command_path
from skillet._verb import verb_parser, would_overwrite

if TYPE_CHECKING:
    from collections.abc import Hashable

FINE, FAILED, CANNOT_BEGIN = 0, 1, 2
MOST_ROWS = 300_000
Json = dict[str, Any]

PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>@title@</title><style>
body{font:14px/1.4 system-ui,sans-serif;margin:1.5rem auto;max-width:80rem;padding:0 1rem;color:#1c2330;background:#fff}
h1{font-size:1.35rem;margin:.2rem 0}h2{font-size:1.05rem;margin:1.4rem 0 .3rem}.quiet{color:#5a6575}
#jobs{display:flex;flex-wrap:wrap;gap:2px;padding:3px;max-height:26rem;overflow-y:auto}#jobs button{border:1px solid #0002;border-radius:3px;height:2.4rem;padding:0 .3rem;font:11px system-ui;overflow:hidden;white-space:nowrap;
text-align:left;cursor:pointer;min-width:2.2rem}#jobs .differs{outline:3px solid #d64545}#jobs .chosen{outline:3px solid #1c2330}
table{border-collapse:collapse;width:100%}td,th{padding:.12rem .5rem;text-align:left;border-bottom:1px solid #e4e7ee;vertical-align:top}td.value,td.code{font-family:ui-monospace,monospace;font-size:12px;overflow-wrap:anywhere}#fields td:first-child{min-width:21em}#fields td.value{min-width:12em}#fields td.bits{white-space:nowrap}
tr.differs{background:#fde8e8}tr.head td{background:#eef1f6;font-weight:600}.scroll{overflow-x:auto}select,input{font:inherit;padding:.15rem .4rem;margin-right:.6rem}
svg{display:block;box-sizing:border-box;width:100%;height:auto;border:1px solid #dde}svg text{font:11px system-ui,sans-serif;fill:#1c2330}label{margin-right:1rem}
</style></head><body><h1>@title@</h1><p class="quiet" id="facts"></p>
<p><label>Submission <select id="submission"></select></label><span id="said"></span></p>
<h2>Jobs</h2><p class="quiet">In the order in which they are submitted; width: the values that a job reads and writes. Choose one to see its fields.</p><div id="jobs"></div>
<h2>Buffers</h2><p class="quiet">By address. Blue: read, orange: written, green: both, grey: neither or not known.</p><p><label><input type="checkbox" id="idle"> </label></p><div class="scroll" id="map"></div><div class="scroll"><table id="buffers"></table></div>
<h2>Fields</h2><p><input id="filter" placeholder="part of a name, value or meaning" size="34"><label><input type="checkbox" id="zeros"> zeros too</label><span id="only"></span></p>
<div class="scroll"><table id="fields"></table></div><script type="application/json" id="data">@data@</script><script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent), at = id => document.getElementById(id);
const hue = {}, colours = ["#bcd7f5", "#f7cfa6", "#c4e5c1", "#e3c8ee", "#f3c6c6", "#d5d9e0", "#f5eaa8"];
const made = (tag, text, name) => { const out = document.createElement(tag); if (text !== undefined) out.textContent = text; if (name) out.className = name; return out; };
const hex = value => "0x" + value.toString(16);
let chosen = -1;
const current = () => data.submissions[at("submission").value];
for (const one of data.submissions) for (const job of one.jobs) hue[job[0]] ??= colours[Object.keys(hue).length % colours.length];
function drawJobs() {
  const one = current(), bad = new Set(one.rows.filter(row => row[5]).map(row => row[0])), most = Math.max(1, ...one.jobs.map(job => job[3]));
  at("jobs").replaceChildren(...one.jobs.map((job, number) => {
    const wide = 2.2 + 14 * Math.sqrt(job[3] / most), label = `${number} ${job[0]}`;
    const button = made("button", label.length * 0.41 + 0.7 > wide ? number : label, (bad.has(number) ? "differs " : "") + (number === chosen ? "chosen" : ""));
    button.style.background = hue[job[0]]; button.style.width = `${wide}rem`;
    button.title = `job ${number}: ${job[0]} ${job[1]}${job[2] ? "\\noperation " + job[2] : ""}`;
    button.onclick = () => { chosen = chosen === number ? -1 : number; drawJobs(); drawFields(); };
    return button; }));
  const job = one.jobs[chosen];
  at("said").textContent = job ? `job ${chosen}: ${job[0]} ${job[1]}${job[2] ? ", operation " + job[2] : ""}` : `${one.jobs.length} jobs, ${one.rows.length} fields` + (data.compared ? `, ${one.rows.filter(row => row[5]).length} differ` : "");
}
function drawBuffers() {
  const used = current().buffers.filter(one => one[3] || one[4] || one[5]), idle = current().buffers.length - used.length, all = at("idle").checked || !used.length ? current().buffers : used;
  at("idle").parentNode.hidden = !idle || !used.length; at("idle").nextSibling.textContent = ` ${idle} more that no job of this submission names`;
  const placed = all.filter(one => one[1] > 0 && one[2] > 0).sort((a, b) => a[1] - b[1]);
  const least = 26, total = placed.reduce((sum, one) => sum + Math.sqrt(one[2]), 0), wide = 1200 - least * placed.length - 2 * placed.length;
  let x = 0, out = "";
  placed.forEach((one, number) => {
    const w = least + Math.max(0, wide) * Math.sqrt(one[2]) / total, colour = one[4] && one[5] ? "#9ad29a" : one[5] ? "#f3b26b" : one[4] ? "#8fb9ea" : "#d5d9e0";
    const gap = number && placed[number - 1][1] + placed[number - 1][2] < one[1] ? 4 : 0;
    out += `<g transform="translate(${x + gap} 0)"><title>buffer ${one[0]}: ${hex(one[1])}, ${one[2]} bytes</title><rect y="18" width="${w}" height="34" fill="${colour}" stroke="#0003"/><text x="3" y="40">${one[0]}</text>` +
      (w > 70 ? `<text x="0" y="13">${hex(one[1])}</text>` : "") + "</g>";
    x += w + gap + 1; });
  at("map").innerHTML = placed.length ? `<svg viewBox="0 0 ${Math.max(x, 1200)} 58" style="min-width:${x > 1200 ? x : 0}px" role="img" aria-label="buffers by address">${out}</svg>` : "";
  const rows = all.map(one => { const row = made("tr"); row.append(made("td", one[0]), made("td", hex(one[1]), "code"), made("td", one[2]), made("td", [one[4] && "read", one[5] && "written"].filter(Boolean).join(", ")), made("td", one[3]), made("td", one[6], "code")); return row; });
  const head = made("tr"); for (const name of ["buffer", "address", "bytes", "the NPU", "named by", "hash of contents"]) head.append(made("th", name));
  at("buffers").replaceChildren(head, ...rows);
}
function drawFields() {
  const words = at("filter").value.toLowerCase(), zeros = at("zeros").checked, only = at("differing")?.checked, out = []; let last = -1, count = 0;
  const head = made("tr"); for (const name of ["field", "value", ...(data.compared ? ["other"] : []), "bits", "evidence", "meaning"]) head.append(made("th", name));
  for (const row of current().rows) {
    const [job, place, field, value, raw, other] = row, [name, bits, evidence, what] = data.fields[field];
    if (chosen >= 0 && job !== chosen || only && !other || !zeros && !other && /^(0x)?0+$|^false$/.test(raw)) continue;
    if (words && !(name + " " + value + " " + what).toLowerCase().includes(words)) continue;
    if (++count > 3000) continue;
    if (job !== last) { const line = made("tr", undefined, "head"), cell = made("td", `${data.places[place] || "job " + job}: ${current().jobs[job]?.slice(0, 2).join(" ") ?? ""}`); cell.colSpan = 6; line.append(cell); out.push(line); last = job; }
    const line = made("tr", undefined, other ? "differs" : ""); line.append(made("td", name, "code"), made("td", value, "value"));
    if (data.compared) line.append(made("td", other || "", "value")); line.append(made("td", bits, "bits"), made("td", evidence), made("td", what)); out.push(line);
  }
  if (count > 3000) out.push(made("tr")), out.at(-1).append(made("td", `${count - 3000} more: choose a job, or filter`));
  at("fields").replaceChildren(head, ...out);
}
at("facts").textContent = data.facts;
data.submissions.forEach((one, number) => { const option = made("option", `${one.number} (${one.jobs.length} jobs)`); option.value = number; at("submission").append(option); });
at("submission").value = data.submissions.length - 1;
if (data.compared) { const label = made("label", " only what differs"), box = made("input"); box.type = "checkbox"; box.id = "differing"; label.prepend(box); at("only").append(label); box.onchange = drawFields; }
at("submission").onchange = () => { chosen = -1; drawAll(); }; at("filter").oninput = drawFields; at("zeros").onchange = drawFields;
function drawAll() { drawJobs(); drawBuffers(); drawFields(); }
drawAll();
</script></body></html>
"""


class Unusable(Exception):
    """An error to report to the user."""


class Interned:
    """A list of distinct values; each has a number."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, value: Any) -> int:
        key = tuple(value) if isinstance(value, list) else value
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def asked(*words: str) -> tuple[Json, str]:
    """Runs a verb with --json. Returns its output and its warnings, such as that a capture is cut off."""
    done = subprocess.run([command_path(), *words, "--json"], capture_output=True, text=True, errors="replace", check=False)
    lines = [line.removeprefix("skillet: ") for line in done.stderr.strip().splitlines()]
    try:
        out: Json = json.loads(done.stdout)
    except ValueError:
        raise Unusable(lines[-1] if lines else f"skillet {words[0]} ended with {done.returncode}") from None
    is_whole = done.returncode == 0 or words[0] == "diff"  # the exit code of diff reports differences
    return out, "" if is_whole else " ".join(lines) or f"skillet {words[0]} ended with {done.returncode}"


def values_moved(shape: str) -> int:
    """Returns the number of values in both images of a shape such as '16x16x32 -> 16x16x64, kernel 1x1'."""
    total = 0
    for part in shape.split(",")[0].split("->"):
        sizes = re.search(r"\d+(?:x\d+)+", part)
        product = 1
        for size in sizes[0].split("x") if sizes else ["0"]:
            product *= int(size)
        total += product
    return total


def buffer_row(one: Json, is_read: bool) -> list[Any]:
    return [one["buffer"], one["address"], one["bytes"], one["what"], int(one["read"] or is_read), int(one["write"]), one["contents"]]


class Differences:
    """The differences of a diff by submission and path. Each is returned once."""

    def __init__(self, found: list[Json]) -> None:
        self.count = len(found)
        self._left: dict[tuple[int, str], list[Json]] = {}
        for one in found:
            self._left.setdefault((one["submission"], one["path"]), []).append(one)

    def of(self, submission: int, path: str, value: str) -> str:
        """Returns the other capture's value instead of VALUE; empty: the same."""
        at = self._left.get((submission, path), [])
        for one in at:
            if one["a"].split(" ")[0] == value or len(at) == 1:
                at.remove(one)
                return one["b"] or "(none)"
        return ""

    def take_rest(self, submission: int | None) -> list[Json]:
        """Returns the differences outside of fields: jobs, bytes, items of one capture only. None: in all submissions."""
        keys = [key for key in self._left if submission in (None, key[0])]
        return [one for key in keys for one in self._left.pop(key)]


def contents(capture: str, against: str, chip: str) -> tuple[Json, str]:
    """Returns the data for the page's script, and the first warning about the captures."""
    also = ["--chip", chip] if chip else []
    decoded, wrong = asked("decode", capture, "--all", *also)
    found, also_wrong = asked("diff", capture, against, *also) if against else ({"differences": []}, "")
    differences = Differences(found["differences"])
    fields, places = Interned(), Interned()

    def row(job: int, place: str, field: list[str], value: str, raw: str, other: str) -> list[Any]:
        return [job, places.number(place), fields.number(field), value, raw, other]

    submissions: list[Json] = []
    count = 0
    for one in decoded["submissions"]:
        number, rows = one["submission"], []
        for field in one["fields"]:
            place, name = field["path"].removesuffix(field["name"]).strip(), field["name"]
            rows.append(row(field["operation"], "" if re.match(r"word \d+$", place) else place,
                            [name, field.get("bits", ""), field.get("evidence", ""), field.get("what", "")],
                            field["value"], field["raw"], differences.of(number, field["path"], field["value"])))
        is_last = one is decoded["submissions"][-1]
        for left in [*differences.take_rest(number), *(differences.take_rest(None) if is_last else [])]:
            path = left["path"] if left["submission"] == number else f"submission {left['submission']} {left['path']}"
            rows.append(row(-1, "beside the fields", [path, "", "", ""], left["a"] or "(none)", "1", left["b"] or "(none)"))
        count += len(rows)
        if count > MOST_ROWS:
            raise Unusable(f"{capture}: more than {MOST_ROWS} fields: one page cannot show them; skillet decode --submission N prints a part")
        jobs = [[job["what"], job["shape"], job.get("op", ""), values_moved(job["shape"])] for job in one["operations"]]
        read = {field["buffer"]["buffer"] for field in one["fields"] if field["kind"] in ("constant", "commands") and "buffer" in field}
        buffers = [buffer_row(each, each["buffer"] in read) for each in one["buffers"]]
        submissions.append({"number": number, "jobs": jobs, "rows": rows, "buffers": buffers})
    if not submissions:
        raise Unusable(f"{capture}: no submissions")
    facts = f"chip {decoded['chip']}, kernel driver {decoded['kernel_driver']}, {counted(len(submissions), 'submission')}"
    if against:
        facts += f"; compared with {Path(against).name}: {counted(differences.count, 'difference')}"
    data = {"facts": facts, "compared": bool(against), "fields": fields.values, "places": places.values, "submissions": submissions}
    return data, wrong or also_wrong


def page(data: Json, title: str) -> str:
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    before, after = PAGE.replace("@title@", escape(title).replace("@", "&#64;")).split("@data@")
    return before + text + after


def parser() -> argparse.ArgumentParser:
    out = verb_parser("page",
                      description="Writes a capture as one HTML page: jobs, buffers by address, each field with its bits, evidence and\n"
                                  "meaning; with --against, what differs from another capture. The page needs no network.",
                      epilog="Example:\n  skillet page tests/captures/a311d_conv1x1_relu6_u8 -o capture.html\n\n"
                             "Exit codes: 0 written; 1 written, but a capture is not whole; 2 something cannot be read or written.")
    out.add_argument("capture", metavar="CAPTURE", help="capture file, folder with capture.json, text of skillet edit, program file, or a model with --chip")
    out.add_argument("--against", default="", metavar="B", help="another one: what differs is marked")
    out.add_argument("--chip", default="", help="decode as this chip (see skillet devices)")
    out.add_argument("-o", "--output", required=True, metavar="F", help="the page")
    return out


def main(words: list[str]) -> int:
    args = parser().parse_args(words)
    out = Path(args.output)
    try:
        if would_overwrite(out, [one for one in (args.capture, args.against) if one]):
            raise Unusable(f"-o {args.output}: that is what is to be read")
        data, wrong = contents(args.capture, args.against, args.chip)
        out.write_text(page(data, Path(args.capture).name), encoding="utf-8", errors="replace")
    except (Unusable, OSError) as error:
        print(f"skillet page: {error}", file=sys.stderr)
        return CANNOT_BEGIN
    print(f"{args.output}: {out.stat().st_size / 1e6:.2f} MB")
    if wrong:
        print(f"skillet page: {wrong}", file=sys.stderr)
    return FAILED if wrong else FINE
