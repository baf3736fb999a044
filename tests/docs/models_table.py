#!/usr/bin/env python3
"""Makes the tables of networks and chips. README.md: operations on the NPU and predicted latency beside the CPU's, by default.
docs/models.md: the same with every part and share, and differences from the CPU's results on simulated chips.

usage: models_table.py SKILLET [--check]      run at the top of the source tree; networks: models/, ../shared/models

Everything is simulated. --check: checks that the page has this table; without ../shared/models it reports that it cannot.
"""
import array
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SHARED = Path("../shared/models")
CHIPS = ["a311d", "imx8mp", "rk3588"]
# File, title, whether its weights have a scale for each channel.
MODELS = [
    ("models/digits.tflite", "digits (the one of `./x demo`), uint8", False),
    ("mobilenet_v1_0.25_128_quant.tflite", "MobileNetV1 0.25 128, uint8", False),
    ("mobilenet_v1_1.0_224_quant.tflite", "MobileNetV1 1.0 224, uint8", False),
    ("mobilenet_v2_1.0_224_quant.tflite", "MobileNetV2 1.0 224, uint8", False),
    ("tf2_mobilenet_v2_1.0_224_ptq.tflite", "MobileNetV2 1.0 224, int8, a scale per channel", True),
    ("deeplabv3_mnv2_dm05_pascal_quant.tflite", "DeepLabV3 513, uint8", False),
    ("movenet_single_pose_lightning_ptq.tflite", "MoveNet Lightning 192, int8, a scale per channel", True),
]
KEY_POINTS, SCORE_SHOWN = 17, 0.3
FORMATS = {"|u1": "B", "|i1": "b", "<i4": "i", "<i8": "q", "<f4": "f"}


def read_npy(path):
    data = path.read_bytes()
    size, = struct.unpack_from("<H", data, 8)
    kind = re.search(r"'descr': '([^']+)'", data[10:10 + size].decode())[1]
    values = array.array(FORMATS[kind])
    values.frombytes(data[10 + size:])
    return kind, values


def difference(ours, theirs):
    """Returns the difference, and its text: steps of a quantized output, the share of different classes, or a number."""
    kind, a = read_npy(ours)
    b = read_npy(theirs)[1]
    if kind in ("<i4", "<i8"):
        share = 100 * sum(x != y for x, y in zip(a, b)) / len(a)
        return share, f"{share:.2f} % of pixels"
    worst = max(abs(x - y) for x, y in zip(a, b))
    if len(a) == KEY_POINTS * 3:  # y, x, score; the score has only 15 steps, and if it is low the position is arbitrary
        worst = max((abs(a[i] - b[i]) for i in range(len(a)) if i % 3 < 2 and b[i - i % 3 + 2] >= SCORE_SHOWN), default=0)
        return worst, f"points {100 * worst:.1f} % of the image"
    return worst, f"{worst} of 255" if kind in ("|u1", "|i1") else f"{worst:.2g}"


def best(path):
    _, values = read_npy(path)
    return max(range(len(values)), key=values.__getitem__)


def run(skillet, *args):
    defaults = {name: value for name, value in os.environ.items() if not name.startswith("SKILLET_")}
    done = subprocess.run([skillet, *args], capture_output=True, text=True, env=defaults)
    if done.returncode != 0:
        sys.exit(f"skillet {' '.join(args)}: {done.stderr}")
    return done.stdout


def pictures_of(model):
    """Returns all of the project's pictures for the network."""
    found = Path("models/digits").glob("*.png") if model.startswith("models/") else SHARED.glob("*.bmp")
    return [str(path) for path in sorted(found) if not path.stem.endswith("_mask")]


def cell(skillet, model, chip, more):
    with tempfile.TemporaryDirectory() as folder:
        return measure(skillet, model, chip, Path(folder), more)


def measure(skillet, model, chip, folder, more):
    report = json.loads(run(skillet, "check", model, "--device", f"sim:{chip}", "--json", *more))
    for device in (f"sim:{chip}", "cpu"):
        run(skillet, "run", model, "--image", *pictures_of(model), "--device", device, "--output", str(folder / device),
            *(more if device != "cpu" else []))
    of_cpu = sorted((folder / "cpu").rglob("*.npy"))
    of_npu = [folder / f"sim:{chip}" / file.relative_to(folder / "cpu") for file in of_cpu]
    worst, words = max(difference(ours, theirs) for ours, theirs in zip(of_npu, of_cpu))
    if words.endswith(" of 255"):
        others = sum(best(ours) != best(theirs) for ours, theirs in zip(of_npu, of_cpu))
        words += f", another class of {others} of {len(of_cpu)}" if others else ""
    ms, error = report["simulated"]["wall_ms"], report["simulated"]["error"]
    time = f"{ms:.1f} ms" if ms < 100 else f"{ms:.0f} ms"
    return f"{report['model_npu_ops']} of {report['model_ops']}, {words}, {time} &plusmn;{100 * error:.0f} %"


def path_of(file):
    return file if file.startswith("models/") else str(SHARED / file)


def as_table(lines):
    head = [["network", *CHIPS], ["---"] * (1 + len(CHIPS))]
    return "".join("| " + " | ".join(line) + " |\n" for line in head + lines)


def differences(skillet):
    lines = []
    for file, name, per_channel in MODELS:
        for more in [[], ["--per-channel", "approximate"]] if per_channel else [[]]:
            # The RK3588 supports a scale for each channel, so nothing is approximated.
            cells = ["as above" if more and chip == "rk3588" else cell(skillet, path_of(file), chip, ["--partition", "all", *more]) for chip in CHIPS]
            lines.append([name if not more else "&nbsp; the same, `--per-channel approximate`", *cells])
    return as_table(lines)


def milliseconds(ms):
    return f"{ms:.1f}" if ms < 10 else f"{ms:.0f}"


def speed_of(chip, ops):
    """Formats a cell. Bold: the NPU is predicted to be faster than all large cores of the board's CPU."""
    npu, cpu = milliseconds(chip["wall_ms" if chip["npu_ops"] else "cpu_alone_ms"]), milliseconds(chip["cpu_alone_ms"])
    npu = f"**{npu}**" if chip["npu_ops"] and chip["wall_ms"] < chip["cpu_alone_ms"] else npu
    return f"{chip['npu_ops']}/{ops}, {npu} / {cpu}"


def one_scale(skillet, file, folder, chip):
    """Returns the network after `skillet quantize` for a chip. The pictures for calibration change neither counts nor predicted times."""
    data, written = Path(folder) / "pictures", Path(folder) / f"{chip}_{file}"
    data.mkdir(exist_ok=True)
    for picture in pictures_of(file):
        if not (data / Path(picture).name).exists():
            (data / Path(picture).name).symlink_to(Path(picture).resolve())
    run(skillet, "quantize", path_of(file), "-o", str(written), "--data", str(data), "--device", f"sim:{chip}")
    return str(written)


def speed(skillet):
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for file, name, per_channel in MODELS:
            rows = [(name, dict.fromkeys(CHIPS, path_of(file)))]
            if per_channel:
                rows.append(("&nbsp; after `skillet quantize`", {chip: one_scale(skillet, file, folder, chip) for chip in CHIPS}))
            for title, models in rows:
                reports = {model: json.loads(run(skillet, "check", model, "--json")) for model in set(models.values())}
                cells = []
                for chip, model in models.items():
                    of_chip = {one["chip"]: one for one in reports[model]["chips"]}
                    cells.append(speed_of(of_chip[chip], len(reports[model]["ops"])))
                lines.append([title, *cells])
    return as_table(lines)


def coverage_of(chip, ops):
    return f"{chip['npu_ops']} of {ops} in {chip['npu_parts']}, {chip['percent_of_macs']:.0f} %"


def coverage(skillet):
    lines = []
    for file, name, _ in MODELS:
        cells = {chip: [] for chip in CHIPS}
        for more in [["--unproven", "refuse"], []]:
            report = json.loads(run(skillet, "check", path_of(file), "--json", "--partition", "all", *more))
            for chip in report["chips"]:
                if chip["chip"] in cells:
                    cells[chip["chip"]].append(coverage_of(chip, len(report["ops"])))
        lines.append([name, *("; ".join(dict.fromkeys(cells[chip])) for chip in CHIPS)])
    return as_table(lines)


# Each table is in its page between <!-- NAME --> and <!-- end -->.
TABLES = [("README.md", "speed", speed), ("docs/models.md", "coverage", coverage), ("docs/models.md", "differences", differences)]


def main():
    skillet, check = sys.argv[1], "--check" in sys.argv
    if not SHARED.is_dir():
        print(f"no {SHARED}: whether the tables of networks are fresh cannot be told")
        return 0
    stale = 0
    for page, name, make in TABLES:
        text = Path(page).read_text()
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.S)
        assert between.search(text), f"{page} has no place for the table {name}"
        made = between.sub(lambda found: found[1] + "\n" + make(skillet) + "\n" + found[2], text)
        if check:
            print(f"the table {name} of {page} is " + ("fresh" if made == text else "stale; ./x models writes it"))
            stale |= made != text
        else:
            Path(page).write_text(made)
            print(f"{page}: {name} is written")
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
