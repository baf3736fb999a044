#!/usr/bin/env python3
"""The page of `skillet check --html` in a browser: nothing empty, nothing cut off, readable at 1280 pixels.

usage: check_page_test.py SKILLET      run at the top of the source tree; exit code 77: there is no chromium here
"""
import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MODELS = ["models/digits.tflite", "../shared/models/mobilenet_v2_1.0_224_quant.tflite",
          "../shared/models/movenet_single_pose_lightning_ptq.tflite"]
WIDTH = 1280
SMALLEST_LETTERS_PX = 11
# Run in the page: what it finds becomes the text of an element that --dump-dom shows.
MEASURE = """<script>
addEventListener("load", () => {
  const all = (what) => [...document.querySelectorAll(what)];
  const box = (one) => one.getBoundingClientRect();
  const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  const shown = (one) => box(one).width > 0 && box(one).height > 0;
  const nodes = all("svg g");
  const report = {
    wide: document.documentElement.scrollWidth,
    letters: Math.min(...all("p, li, td, th, h1, h2, svg text").map((one) => parseFloat(getComputedStyle(one).fontSize))),
    empty: all(".chip, svg g, td, th, li, h1, h2").filter((one) => !shown(one) || !one.textContent.trim()).length,
    blank: all("svg .mark, svg .node, .bar").filter((one) => !shown(one)).length,
    cut: nodes.filter((one) => [...one.querySelectorAll("text")].some((text) => !inside(box(text), box(one.querySelector(".node"))))).length,
    overlaps: nodes.filter((one, i) => nodes.some((other, k) => k < i && box(one.querySelector(".node")).left < box(other.querySelector(".node")).right &&
      box(other.querySelector(".node")).left < box(one.querySelector(".node")).right && box(one.querySelector(".node")).top < box(other.querySelector(".node")).bottom &&
      box(other.querySelector(".node")).top < box(one.querySelector(".node")).bottom)).length,
    colours: new Set(all("svg .mark").map((one) => getComputedStyle(one).fill)).size,
    nodes: nodes.length,
  };
  document.body.innerHTML = "<pre id=report></pre>";
  document.getElementById("report").textContent = JSON.stringify(report);
});
</script>"""


def measure(browser, page, folder):
    measured = folder / "measured.html"
    measured.write_text(page.read_text().replace("</body>", MEASURE + "</body>"))
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
                           f"--window-size={WIDTH},2000", "--virtual-time-budget=5000", "--dump-dom", f"file://{measured}"],
                          capture_output=True, text=True, timeout=240)
    found = re.search(r'<pre id="report">(.*?)</pre>', done.stdout, re.S)
    assert found, done.stderr[-500:]
    return json.loads(html.unescape(found[1]))


def problems(report, ops, places):
    wanted = {"empty": 0, "blank": 0, "cut": 0, "overlaps": 0, "nodes": ops, "colours": places}
    out = [f"{name} is {report[name]}, not {value}" for name, value in wanted.items() if report[name] != value]
    if report["wide"] > WIDTH:
        out.append(f"it is {report['wide']} pixels wide")
    if report["letters"] < SMALLEST_LETTERS_PX:
        out.append(f"letters of {report['letters']} pixels")
    return out


def main():
    skillet = sys.argv[1]
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("no chromium here: the page is not looked at")
        return 77
    failed = 0
    for model in MODELS:
        if not Path(model).exists():
            print(f"{model}: left out, it is not there")
            continue
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.html"
            done = subprocess.run([skillet, "check", model, "--html", str(page), "--json"], capture_output=True, text=True)
            report = json.loads(done.stdout)
            places = {where for chip in report["chips"] for where in chip["where"]}
            found = problems(measure(browser, page, Path(folder)), len(report["ops"]), len(places))
        print(f"{model}: {'; '.join(found) or 'fine'}")
        failed += bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
