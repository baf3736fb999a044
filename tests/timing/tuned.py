#!/usr/bin/env python3
"""Makes docs/tuned.md: what each tuning would take, beside the vendor's number and the traffic bound (./x tuned).

All times come from `skillet plan`; the bound from a list of layers of the network: each layer takes the larger of its
multiply-accumulates at peak and its 8-bit weights at the bandwidth of open programs, the input crosses once, and all else
stays on the chip.
"""
import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/tuned.md"
# Tuning, whether only proven jobs are allowed, and the title of the row.
PROGRAMS = [("recorded", True, "recorded"), ("proven", True, "proven"), ("tuned", True, "tuned"),
            ("proven", False, "proven, unproven taken"), ("tuned", False, "tuned, unproven taken")]
DEVICE_TIME = ["rk3588"]  # chips whose tasks take long to start: tuned for device time too
# Device times use the vendor's clock, as its published times do; wall times use a stock kernel's.
VENDOR_CLOCK = {"rk3588": ["--set", "clock_ghz=1"]}
DEVICE_ROWS = [(True, "tuned for device time"), (False, "tuned for device time, unproven taken")]
CHIPS = ["a311d", "imx8mp", "rk3588"]
NETWORKS = [("mobilenet_v1_1.0_224_quant", "mobilenet_v1_224", "MobileNetV1"),
            ("mobilenet_v2_1.0_224_quant", "mobilenet_v2_224", "MobileNetV2")]
# Multiply-accumulates per cycle for filters k x k and 1 x 1: the timing parameters do not include the number of cores.
PEAK = {"a311d": (3072, 1536), "imx8mp": (1152, 1152), "rk3588": (1024, 1024)}
CORES, SHARED_GBPS = 3, 24  # of the RK3588: its cores, and the bandwidth that they share
AIMS = [("rk3588", "MobileNetV1", "device ms of a core", 1.94), ("rk3588", "MobileNetV2", "device ms of a core", 2.22)]
FACTOR = 1.3  # allowed multiple of the bound, for VeriSilicon's chips
THROUGHPUT = 2.5


def plan(skillet, *arguments):
    done = subprocess.run([skillet, "plan", "--json", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"tuned: skillet plan {' '.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def price(skillet, model, chip, tuning, only_proven, *more):
    only = ["--unproven", "refuse"] if only_proven else []
    def at(*clock):
        return plan(skillet, str(model), "--chip", chip, "--tuning", tuning, "--partition", "all", *only, *more, *clock)["chips"][0]
    got = at()
    if chip in VENDOR_CLOCK:
        got["device_ms"] = at(*VENDOR_CLOCK[chip])["device_ms"]
    return got


def numbers(got):
    return [f"{got['device_ms']:.2f}", f"{got['wall_ms']:.2f}", megabytes(got["dram_read_bytes"] + got["dram_written_bytes"]),
            megabytes(got["device_memory_bytes"]), got["tasks"], got["cpu_ops"]]


def read_csv(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def bound_ms(layers, peak, clock_ghz, gbps):
    us = 0.0
    for index, layer in enumerate(layers):
        macs, weights = float(layer["macs"] or 0), float(layer["weight_elems"] or 0)
        lanes = peak[0] if int(layer["kw"] or 0) > 1 else peak[1]
        us += max(macs / (lanes * clock_ghz * 1e3), weights / (gbps * 1e3))
        if index == 0:
            us += float(layer["out_h"]) * float(layer["out_w"]) * float(layer["out_c"]) / (gbps * 1e3)
    return us / 1e3


def inputs_and_weights(layers):
    """Returns the bytes of the layers' 8-bit inputs, each counted once, and of raw weights."""
    inputs = weights = 0
    for layer in layers:
        if layer["op"] in ("conv", "dwconv", "fc", "avgpool", "add"):
            inputs += int(layer["in_h"]) * int(layer["in_w"]) * int(layer["in_c"]) * (2 if layer["op"] == "add" else 1)
        weights += int(layer["weight_elems"] or 0)
    return inputs, weights


def parameters(skillet):
    found = {}
    for row in plan(skillet, "--parameters")["parameters"]:
        if row["jobs"] in ("open", "both"):
            found[row["chip"], row["name"]] = row["value"]
    found.update({(chip, "clock_ghz"): 1.0 for chip in VENDOR_CLOCK})
    return found


def vendor_ms(data, chip, network):
    rows = [float(row["ms"]) for row in read_csv(data / "endtoend.csv")
            if (row["chip"], row["network"], row["program"], row["cores"], row["use"]) == (chip, network, "vendor", "1", "fit")]
    return min(rows) if rows else None


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def megabytes(count):
    return f"{count / 1e6:.1f}"


class Report:
    def __init__(self, skillet, models, data):
        self.skillet, self.models, self.data = skillet, models, data
        self.values = parameters(skillet)
        self.device = {}  # by (chip, title, row)
        self.bounds = {}

    def rows(self, chip, model, network, title):
        out = []
        for tuning, only_proven, name in PROGRAMS:
            got = price(self.skillet, model, chip, tuning, only_proven)
            self.device[chip, title, name] = got["device_ms"]
            out.append([chip, title, name, *numbers(got)])
        if chip in DEVICE_TIME:
            out += self.device_rows(chip, model, title)
        layers = self.data / "networks" / f"{network}.csv"
        if not layers.is_file():
            return out
        bound = bound_ms(read_csv(layers), PEAK[chip], self.values[chip, "clock_ghz"], self.values[chip, "dram_gbps"])
        self.bounds[chip, title] = bound
        vendor = vendor_ms(self.data, chip, network)
        empty = [""] * 5
        if vendor is not None:
            out.append([chip, title, "vendor's, published", f"{vendor:.2f}", *empty])
        out.append([chip, title, "traffic bound", f"{bound:.2f}", *empty])
        return out

    def device_rows(self, chip, model, title):
        """Returns rows for programs tuned for device time."""
        out = []
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "device.json")
            command = [self.skillet, "tune", str(model), "--device", f"sim:{chip}", "--objective", "device", "-o", file]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"tuned: skillet tune {model}: {done.stderr.strip()}")
            for only_proven, name in DEVICE_ROWS:
                got = price(self.skillet, model, chip, "tuned", only_proven, "--tuning-file", file)
                self.device[chip, title, name] = got["device_ms"]
                out.append([chip, title, name, *numbers(got)])
        return out

    def times(self):
        rows = []
        for chip in CHIPS:
            for model, network, title in NETWORKS:
                path = self.models / f"{model}.tflite"
                if path.is_file():
                    rows += self.rows(chip, path, network, title)
        head = ["chip", "network", "program", "device ms", "mainline wall ms", "DRAM MB", "device memory MB", "tasks", "ops on the CPU"]
        return table(head, rows)

    def gaps(self):
        """Returns a table of how the tuned programs of VeriSilicon's chips exceed the bound, by cause."""
        rows = []
        for chip in ("a311d", "imx8mp"):
            for model, network, title in NETWORKS:
                path, layers = self.models / f"{model}.tflite", self.data / "networks" / f"{network}.csv"
                if not path.is_file() or not layers.is_file():
                    continue
                got = price(self.skillet, path, chip, "tuned", False)
                ms = 1 / (self.values[chip, "dram_gbps"] * 1e6)
                sizes, weights = inputs_and_weights(read_csv(layers))
                written, once = got["dram_written_bytes"] * ms, sizes * ms
                again = got["dram_read_bytes"] * ms - once - weights * ms
                cycles = got["device_ms"] - (got["dram_read_bytes"] + got["dram_written_bytes"]) * ms
                crossing = got["device_ms"] / (weights * ms + written + once)
                rows.append([chip, title, *(f"{x:.2f}" for x in (got["device_ms"], self.bounds[chip, title], weights * ms, written,
                                                                 once, again, cycles, crossing))])
        return table(["chip", "network", "device ms", "bound", "weights, 8 bits each", "outputs to DRAM", "inputs from DRAM, once",
                      "read beyond that", "jobs that wait for cycles", "device ms / these weights, outputs and inputs"], rows)

    def throughput(self):
        """Returns a table for as many sessions as there are cores, each with its share of the memory's bandwidth."""
        rows = []
        for model, _, title in NETWORKS:
            path = self.models / f"{model}.tflite"
            if not path.is_file():
                continue
            one = price(self.skillet, path, "rk3588", "tuned", False)
            share = min(self.values["rk3588", "dram_gbps"], SHARED_GBPS / CORES)
            each = price(self.skillet, path, "rk3588", "tuned", False, "--set", f"dram_gbps={share}")
            gain, wall = CORES * one["device_ms"] / each["device_ms"], CORES * one["wall_ms"] / each["wall_ms"]
            self.device["rk3588", title, "throughput"] = gain
            rows.append([title, f"{1000 / one['device_ms']:.0f}", f"{CORES * 1000 / each['device_ms']:.0f}", f"{gain:.2f}",
                         f"{1000 / one['wall_ms']:.0f}", f"{CORES * 1000 / each['wall_ms']:.0f}", f"{wall:.2f}"])
        head = ["network", "device, 1 core, per s", "3 cores", "gain", "mainline wall, 1 core, per s", "3 cores", "gain"]
        return table(head, rows)

    def aims(self):
        def verdict(met):
            return "met" if met else "NOT met"
        rows = []
        for chip, title, what, limit in AIMS:
            for name in ("tuned", "tuned, unproven taken", *(name for _, name in DEVICE_ROWS)):
                got = self.device[chip, title, name]
                rows.append([f"{chip}, {title}: {what} ({name})", f"<= {limit:.2f}", f"{got:.2f}", verdict(got <= limit)])
        for title in ("MobileNetV1", "MobileNetV2"):
            got = self.device["rk3588", title, "throughput"]
            rows.append([f"rk3588, {title}: throughput of three cores", f">= {THROUGHPUT}", f"{got:.2f}",
                         verdict(got >= THROUGHPUT)])
        for chip in ("a311d", "imx8mp"):
            for title in ("MobileNetV1", "MobileNetV2"):
                limit = FACTOR * self.bounds[chip, title]
                got = self.device[chip, title, "tuned, unproven taken"]
                rows.append([f"{chip}, {title}: device ms (tuned, unproven taken)", f"<= {limit:.2f} ({FACTOR} x bound)",
                             f"{got:.2f}", verdict(got <= limit)])
        return table(["aim", "limit", "simulated", ""], rows)


def with_tables(text, tables):
    for name, new in tables.items():
        text, count = re.subn(rf"(<!-- tuned: {name} -->\n).*?(<!-- end -->)", lambda m, t=new: f"{m[1]}{t}\n{m[2]}", text,
                              flags=re.DOTALL)
        if count != 1:
            sys.exit(f"tuned: {PAGE} has {count} places for the table '{name}'")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skillet", default=ROOT / "build/release/src/tools/skillet")
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared/models")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/calibration")
    parser.add_argument("--update", action="store_true", help="write docs/tuned.md")
    options = parser.parse_args()
    if not options.models.is_dir() or not options.data.is_dir():
        print(f"tuned: no models in {options.models}, or no measurements in {options.data}: nothing to do")
        return
    report = Report(options.skillet, options.models, options.data)
    tables = {"times": report.times(), "throughput": report.throughput()}
    tables["aims"] = report.aims()
    tables["gaps"] = report.gaps()
    if options.update:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")
    else:
        print("\n\n".join(tables.values()))


if __name__ == "__main__":
    main()
