"""`skillet fields --html`: writes the report as one HTML page without external files. Each bit of a field is a square, filled if it changed."""

from __future__ import annotations

from html import escape
from typing import Any

STYLE = ("body{font:14px/1.4 system-ui,sans-serif;margin:1.5rem auto;max-width:80rem;padding:0 1rem;color:#1c2330;background:#fff}h1{font-size:1.35rem}h2{font-size:1.05rem}"
         "table{border-collapse:collapse;width:100%}td,th{padding:.12rem .5rem;text-align:left;border-bottom:1px solid #e4e7ee;vertical-align:top}"
         "td.name,td.code{font-family:ui-monospace,monospace;font-size:12px}td.bits{white-space:nowrap}i{display:inline-block;width:7px;height:11px;margin-right:1px;border:1px solid #9aa5b5}"
         "i.moved{background:#3a9d5d}.quiet{color:#5a6575}input{font:inherit;padding:.15rem .4rem}")
FILTER = ('const rows=[...document.querySelectorAll("tbody tr")];document.getElementById("filter").oninput=one=>{for(const row of rows)'
          "row.hidden=!row.textContent.toLowerCase().includes(one.target.value.toLowerCase())};")


def bits(count: int, moved: int) -> str:
    return "".join(f'<i class="moved" title="bit {at}"></i>' if moved >> at & 1 else f'<i title="bit {at}"></i>' for at in reversed(range(count)))


def page(made: dict[str, Any], rules: list[list[str]], values: list[str]) -> str:
    """Returns the page. RULES and VALUES: texts for each field."""
    rows = []
    for row, lines, text in zip(made["fields"], rules, values):
        cells = (("name", escape(f"{row['kind']} {row['name']}")), ("bits", bits(min(row["bits"], 64), int(row["moved"], 16))), ("code", "<br>or ".join(map(escape, lines))),
                 ("code", escape(text)), ("", str(row["jobs"])))
        rows.append("<tr>" + "".join(f'<td class="{kind}">{cell}</td>' for kind, cell in cells) + "</tr>")
    groups = "".join(f"<li>{escape(', '.join(group))}</li>" for group in made["together"])
    title = escape(f"Fields of {made['chip']}")
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title><style>{STYLE}</style></head><body>'
            f'<h1>{title}</h1><p class="quiet">{made["captures"]} captures, {made["jobs"]} jobs. A filled square is a bit that moved; the highest bit is on the left.</p>'
            '<p><input id="filter" placeholder="part of a name, rule or value" size="34"></p><table><thead><tr><th>field</th><th>bits</th><th>follows</th><th>values (how often)</th><th>jobs</th></tr></thead>'
            f'<tbody>{"".join(rows)}</tbody></table><h2>Fields that move together</h2><ul>{groups}</ul><script>{FILTER}</script></body></html>\n')
