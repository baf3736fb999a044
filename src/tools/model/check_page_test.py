#!/usr/bin/env python3
"""Tests the page of `skillet check --html` in a browser: nothing is empty or cut off, and it is readable at 1280 pixels.

usage: check_page_test.py SKILLET      run at the top of the source tree; exit code 77: chromium is not installed
"""
import html
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

def wide_model():
    """Returns a model with more parallel branches than fit side by side, one of which skips many rows."""
    sys.path.insert(0, "tests/models")
    import ssd_model
    net = ssd_model.Model()
    picture = net.tensor("picture", [1, 4, 4, 3], ssd_model.UINT8, 1 / 255)
    weights = [[[[0.1] * 3]] for _ in range(3)]
    stem = net.conv("stem", picture, weights, [0] * 3)
    ends = [net.reshape("early", stem, [1, 16, 3])]
    for i in range(11):
        last = stem
        for k in range(1 + i % 4):
            last = net.conv(f"branch{i}_{k}", last, weights, [0] * 3)
        ends.append(net.reshape(f"end{i}", last, [1, 16, 3]))
    return net.bytes([picture], [net.join("all", ends)])


def u_model():
    """Returns a U-shaped model with skip connections. Its weights are float16, each before a DEQUANTIZE."""
    sys.path.insert(0, "tests/models")
    import ssd_model
    ssd_model.CODES["DEQUANTIZE"] = 6
    net, channels, float16 = ssd_model.Model(), 2, 1

    def stored(name, shape):
        count = math.prod(shape)
        half = net.tensor(name + "_half", shape, float16, data=bytes(2 * count))
        out = net.tensor(name, shape, ssd_model.FLOAT32)
        net.op("DEQUANTIZE", [half], [out])
        return out

    def conv(name, source, from_channels, height):
        inputs = [source, stored(name + "_w", [channels, 3, 3, from_channels]), stored(name + "_b", [channels])]
        out = net.tensor(name, [1, height, height, channels], ssd_model.FLOAT32)
        net.op("CONV_2D", inputs, [out], ("Conv2DOptions", {"padding": 0, "stride_w": 1, "stride_h": 1, "fused_activation_function": 0}))
        return out

    picture = net.tensor("picture", [1, 16, 16, channels], ssd_model.FLOAT32)
    last, skips = picture, []
    for level in range(5):
        last = conv(f"down{level}", last, channels, 16)
        skips.append(last)
        last = conv(f"pool{level}", last, channels, 16)
    for level in reversed(range(5)):
        both = net.tensor(f"both{level}", [1, 16, 16, 2 * channels], ssd_model.FLOAT32)
        net.op("CONCATENATION", [skips[level], last], [both], ("ConcatenationOptions", {"axis": 3}))
        last = conv(f"up{level}", both, 2 * channels, 16)
    return net.bytes([picture], [last])


MODELS = ["models/digits.tflite", "tests/models/concat2_i8.tflite"]
if "LONG_CASES" in os.environ:  # networks of many layers
    MODELS += [f"../shared/models/{name}.tflite" for name in ("deeplabv3_mnv2_dm05_pascal_quant", "mobilenet_v2_1.0_224_quant", "movenet_single_pose_lightning_ptq")]
WIDTH = 1280
SMALLEST_LETTERS_PX = 11
# Runs in each page, in a frame. It passes its results to the outer page, whose text --dump-dom prints.
MEASURE = """<script>
addEventListener("load", () => {
  const all = (what) => [...document.querySelectorAll(what)];
  const box = (one) => one.getBoundingClientRect();
  const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  const shown = (one) => box(one).width > 0 && box(one).height > 0;
  const nodes = all("svg g").sort((a, b) => a.dataset.op - b.dataset.op);
  const fed = new Set(all("svg .edge[data-to]").map((edge) => edge.dataset.to));
  const unfed = nodes.filter((one) => !fed.has(one.dataset.op));
  const report = {
    wide: document.documentElement.scrollWidth,
    letters: Math.min(...all("p, li, td, th, h1, h2, svg text").map((one) => parseFloat(getComputedStyle(one).fontSize))),
    empty: all(".chip, svg g, td, th, li, h1, h2").filter((one) => !shown(one) || !one.textContent.trim()).length,
    blank: all("svg .mark, svg .node, .bar").filter((one) => !shown(one)).length,
    cut: nodes.filter((one) => [...one.querySelectorAll("text")].some((text) => !inside(box(text), box(one.querySelector(".node"))))).length,
    overlaps: nodes.filter((one, i) => nodes.some((other, k) => k < i && box(one.querySelector(".node")).left < box(other.querySelector(".node")).right &&
      box(other.querySelector(".node")).left < box(one.querySelector(".node")).right && box(one.querySelector(".node")).top < box(other.querySelector(".node")).bottom &&
      box(other.querySelector(".node")).top < box(one.querySelector(".node")).bottom)).length,
    through: all("svg .edge").filter((edge) => {
      const length = edge.getTotalLength(), points = [...Array(41).keys()].map((i) => edge.getPointAtLength(length * i / 40));
      return all("svg .node").some((node) => { const area = node.getBBox();
        return points.some((p) => p.x > area.x + 2 && p.x < area.x + area.width - 2 && p.y > area.y + 2 && p.y < area.y + area.height - 2); });
    }).length,
    loose: all("svg .edge").filter((edge) => !nodes[edge.dataset.from] || !nodes[edge.dataset.to ?? 0]).length,
    far: all("svg .edge").filter((edge) => edge.dataset.to === undefined && unfed.some((one) => one.dataset.op === edge.dataset.from && one.textContent.includes(" DEQUANTIZE"))).length,
    unfed: unfed.map((one) => one.querySelector("text.kind").textContent),
    graph: document.querySelector("svg").getBoundingClientRect().width,
    names: nodes.map((one) => ["kind", "name"].map((what) => (one.querySelector("text." + what) ?? {textContent: ""}).textContent)),
    colours: new Set(all("svg .mark").map((one) => getComputedStyle(one).fill)).size,
    nodes: nodes.length,
  };
  parent.postMessage(JSON.stringify([Number(location.hash.slice(1)), report]), "*");
});
</script>"""
AROUND = """<pre></pre><script>
addEventListener("message", (said) => document.querySelector("pre").textContent += said.data + "\\n");
</script>"""


def measure(browser, pages, folder):
    """Returns the measurements of all pages, from one run of the browser."""
    frames = ""
    for i, page in enumerate(pages):
        page.write_text(page.read_text().replace("</body>", MEASURE + "</body>"))
        frames += f'<iframe src="{page.name}#{i}" width={WIDTH} height=2000 style="border: 0"></iframe>'
    around = folder / "around.html"
    around.write_text(f"<body style='margin: 0'>{AROUND}{frames}</body>")
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
                           f"--window-size={WIDTH},2000", "--virtual-time-budget=5000", "--dump-dom", f"file://{around}"],
                          capture_output=True, text=True, timeout=240)
    found = re.search(r"<pre>(.*?)</pre>", done.stdout, re.S)
    assert found, done.stderr[-500:]
    reports = dict(json.loads(line) for line in html.unescape(found[1]).splitlines())
    assert len(reports) == len(pages), (reports.keys(), done.stderr[-500:])
    return [reports[i] for i in range(len(pages))]


def is_readable(shown, name):
    """Returns whether the shown name is complete, or has both the start and the distinctive end of the name."""
    head, cut, tail = shown.partition("\u2026")
    return shown == name if not cut else len(shown) >= 24 and name.startswith(head) and name.endswith(tail) and len(tail) > len(head)


def problems(report, ops, places):
    wanted = {"empty": 0, "blank": 0, "cut": 0, "overlaps": 0, "through": 0, "loose": 0, "far": 0, "nodes": len(ops), "colours": places}
    out = [f"{name} is {report[name]}, not {value}" for name, value in wanted.items() if report[name] != value]
    # In these networks, every operation except the first reads another operation's output, or weights.
    if len(report["unfed"]) != 1 and not all(name.endswith(" DEQUANTIZE") for name in report["unfed"]):
        out.append(f"no line leads to {report['unfed']}")
    if report["wide"] > WIDTH:
        out.append(f"it is {report['wide']} pixels wide")
    if report["graph"] > WIDTH:
        out.append(f"its graph is {report['graph']} pixels wide")
    nameless = [op for i, (shown, op) in enumerate(zip(report["names"], ops))
                if not (is_readable(shown[0], f"{i} {op['kind']}") and is_readable(shown[1], op["output"]))]
    if nameless:
        out.append(f"names cannot be read: {nameless[:3]}")
    if report["letters"] < SMALLEST_LETTERS_PX:
        out.append(f"letters of {report['letters']} pixels")
    return out


def main():
    skillet = sys.argv[1]
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("no chromium here: the page is not looked at")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder, models, failed = Path(name), [Path(model) for model in MODELS], 0
        if shutil.which("flatc"):
            for model in (wide_model, u_model):
                models.append(folder / f"{model.__name__}.tflite")
                models[-1].write_bytes(model())
        for model in models:
            if not model.exists():
                print(f"{model}: left out, it is not there")
        models = [model for model in models if model.exists()]
        pages = [folder / f"{i}.html" for i in range(len(models))]
        reports = [json.loads(subprocess.run([skillet, "check", model, "--html", page, "--json"], capture_output=True, text=True).stdout)
                   for model, page in zip(models, pages)]
        for model, report, measured in zip(models, reports, measure(browser, pages, folder)):
            places = {where for chip in report["chips"] for where in chip["where"]}
            found = problems(measured, report["ops"], len(places))
            print(f"{model}: {'; '.join(found) or 'fine'}")
            failed += bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
