#!/usr/bin/env python3
"""Fits the timing parameters to published measurements, and says how well they hold (./x calibrate).

All times come from `skillet plan`: there is no formula here. Parameters with the mark F in npus/<v>/sim/timing_params.def are
fitted, one group of chips at a time, by least squares of the logarithms of predicted / measured; the others are left
alone. Deterministic. What is judged is leave-one-family-out: each network is predicted by a fit that has seen no network
of its family.
"""
import argparse
import csv
import json
import math
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/timing.md"
PARAMETER_FILES = sorted(ROOT.glob("src/**/timing_params.def"))
GATES = {"rk3588": 10, "rk3568": 15, "rk3566": 15, "rk3562": 15, "rk3576": 15, "a311d": 20, "imx8mp": 20}
ERROR_LEAST = 10  # percent: choices other than numbers were made with knowledge of all rows
# Families of similar networks: a network does not count as unseen if its family was seen. Prefixes of the names of lists of layers.
FAMILIES = ["mobilenet_v", "deeplab", "movenet", "resnet", "squeezenet", "vgg", "yolov3", "yolov5", "yolov8", "yolox"]
TUNINGS = ("recorded", "proven", "tuned")
# Groups with too little data for a gate: their error is an estimate.
UNKNOWN = {"imx8mp, vendor": "three networks, all bound by the fixed cost of an operation",
           "a311d, open": "two networks of one family", "imx8mp, open": "two networks of one family"}
STARTS = (0.6, 1, 1.6)  # factors of the bandwidth to start from, since there may be several minima
# Nets without a published time here, or with a time that shows little, which are needed.
WANTED = [("a311d", "resnet18_224"), ("a311d", "resnet50_v1_224"), ("imx8mp", "resnet18_224"),
          ("imx8mp", "resnet50_v1_224"), ("rk3588", "resnet50_v2_224"), ("rk3568", "resnet50_v2_224"),
          ("rk3576", "mobilenet_v1_224")]


def read_csv(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Group:
    """Chips that share their parameters, and the programs to fit."""

    def __init__(self, chips, program, names):
        self.chips, self.program, self.names = chips, program, names
        self.title = f"{'/'.join(chips)}, {program}"


GROUPS = [Group(["rk3588"], "vendor", ["dram_gbps", "table_rate"]),
          Group(["rk3576"], "vendor", ["dram_gbps", "table_rate"]),
          Group(["rk3568", "rk3566"], "vendor", ["mac_stretch", "dram_gbps", "table_rate"]),
          Group(["rk3562"], "vendor", ["dram_gbps", "table_rate"]),
          Group(["a311d"], "vendor", ["dram_gbps", "least_us"]),
          Group(["imx8mp"], "vendor", ["least_us"]),
          Group(["a311d"], "open", ["dram_gbps"]),
          Group(["imx8mp"], "open", ["dram_gbps"])]


class Tool:
    """Runs `skillet plan` and caches its results."""

    def __init__(self, skillet, data):
        self.skillet, self.data, self.known = skillet, data, {}

    def run(self, *arguments):
        done = subprocess.run([self.skillet, "plan", "--json", *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"calibrate: skillet plan {' '.join(arguments)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def parameters(self):
        return self.run("--parameters")["parameters"]

    def nets(self, chips, program, nets, values, tuning="recorded"):
        """Returns times by (chip, net) in milliseconds; for open programs the wall time, as published."""
        key = (tuple(chips), program, tuple(nets), tuple(sorted(values.items())), tuning)
        if key not in self.known:
            sets = [text for name, value in values.items() for text in ("--set", f"{name}={value!r}")]
            chip_arguments = [text for chip in chips for text in ("--chip", chip)]
            files = [str(self.data / "networks" / f"{net}.csv") for net in nets]
            rows = self.run("--layers", *files, *chip_arguments, "--program", program, "--tuning", tuning, *sets)["layers"]
            self.known[key] = {(row["chip"], row["net"]): row for row in rows}
        return self.known[key]

    def table(self, path, chip, values):
        sets = [text for name, value in values.items() for text in ("--set", f"{name}={value!r}")]
        return {row["id"]: row["us"]
                for row in self.run("--layers", str(path), "--chip", chip, "--program", "vendor", *sets)["layers"][0]["rows"]}


def rows_of(data, group):
    """Returns (chip, net, ms) to fit: rows with one core and a known list of layers, marked as fit for it."""
    rows = []
    for row in read_csv(data / "endtoend.csv"):
        if row["chip"] not in group.chips or row["program"] != group.program or row["use"] != "fit" or row["cores"] != "1":
            continue
        # Only the last state of a driver matches the recorded programs.
        superseded = group.program == "open" and ("no zero runs" in row["note"] or "+ zero-run" in row["note"])
        if row["network"] and not superseded and (data / "networks" / f"{row['network']}.csv").is_file():
            rows.append((row["chip"], row["network"], float(row["ms"])))
    return rows


def family_of(net):
    return next((family for family in FAMILIES if net.startswith(family)), net)


def logs(tool, group, rows, values):
    nets = sorted({net for _, net, _ in rows})
    got = tool.nets(group.chips, group.program, nets, values)
    return [math.log(got[chip, net]["ms"] / ms) for chip, net, ms in rows]


def solve(a, b):
    """Solves linear equations by elimination."""
    n = len(b)
    m = [row[:] + [b[i]] for i, row in enumerate(a)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(m[r][i]))
        m[i], m[pivot] = m[pivot], m[i]
        for r in range(i + 1, n):
            factor = m[r][i] / m[i][i]
            m[r] = [x - factor * y for x, y in zip(m[r], m[i])]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (m[i][n] - sum(m[i][j] * x[j] for j in range(i + 1, n))) / m[i][i]
    return x


def fit(tool, group, rows, start, rounds=12):
    """Fits the logarithms of the parameters by Levenberg-Marquardt."""
    names, at = list(start), [math.log(value) for value in start.values()]

    def value_of(point):
        return {name: float(f"{math.exp(x):.5g}") for name, x in zip(names, point)}

    best, damping = logs(tool, group, rows, value_of(at)), 1e-2
    for _ in range(rounds):
        slopes = []
        for i in range(len(at)):
            moved = at[:]
            moved[i] += 0.01
            slopes.append([(y - x) / 0.01 for x, y in zip(best, logs(tool, group, rows, value_of(moved)))])
        normal = [[sum(x * y for x, y in zip(a, b)) for b in slopes] for a in slopes]
        right = [-sum(x * y for x, y in zip(a, best)) for a in slopes]
        for _ in range(6):
            damped = [[x + (damping * x + 1e-9 if i == j else 0) for j, x in enumerate(row)] for i, row in enumerate(normal)]
            step = [max(-0.5, min(0.5, s)) for s in solve(damped, right)]
            trial = [x + s for x, s in zip(at, step)]
            found = logs(tool, group, rows, value_of(trial))
            if sum(x * x for x in found) < sum(x * x for x in best):
                at, best, damping = trial, found, damping / 4
                break
            damping *= 8
        else:
            break
    return value_of(at), sum(x * x for x in best)


def fit_from_starts(tool, group, rows, start):
    tries = []
    for factor in STARTS if "dram_gbps" in start else (1,):
        moved = {name: value * (factor if name == "dram_gbps" else 1) for name, value in start.items()}
        tries.append(fit(tool, group, rows, moved))
    return min(tries, key=lambda found: found[1])[0]


def share(logarithm):
    return 100 * (math.exp(logarithm) - 1)


def judge(tool, group, rows, values):
    """Returns for each row the error of the fit, and of a fit without the network's family (None: too few rows are left)."""
    fitted = [share(x) for x in logs(tool, group, rows, values)]
    alone = [None] * len(rows)
    for family in sorted({family_of(net) for _, net, _ in rows}):
        rest = [row for row in rows if family_of(row[1]) != family]
        if len(rest) < len(group.names):
            continue
        without, _ = fit(tool, group, rest, values, rounds=6)
        for i, row in enumerate(rows):
            if family_of(row[1]) == family:
                alone[i] = share(logs(tool, group, [row], without)[0])
    return fitted, alone


# ---- tables of single layers ------------------------------------------------------------------------------------

NOT_JUDGED = {"input", "output", "resize_cpu"}


def layer_errors(measured, predicted, constant):
    return [abs(predicted[i] + constant - us) / us for i, us in measured.items()]


def ninetieth(errors):
    return sorted(errors)[math.ceil(0.9 * len(errors)) - 1]


def judge_table(tool, path, chip, values):
    """Returns the errors of a table of layers: number of rows, constant, median and 90th percentile.

    The constant is the cost of a layer in the log that fits best."""
    measured = {int(row["id"]): float(row["time_us"]) for row in read_csv(path)
                if row["op"] not in NOT_JUDGED and row["time_us"]}
    predicted = tool.table(path, chip, values)
    best = min(range(0, 301, 2), key=lambda c: statistics.median(layer_errors(measured, predicted, c)) +
               ninetieth(layer_errors(measured, predicted, c)) / 3)
    errors = layer_errors(measured, predicted, best)
    return len(errors), best, 100 * statistics.median(errors), 100 * ninetieth(errors)


def judge_tables(tool, data):
    lines = ["| table | memory | rows | constant, us | median error | 90th percentile | gate 10 %, 30 % |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    passed = {}
    for path in sorted(data.glob("perlayer_*.csv")):
        chip = path.stem.split("_")[1]
        bandwidths = [("as fitted end to end", {})]
        tried = [(judge_table(tool, path, chip, {"dram_gbps": b}), b) for b in (4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)]
        own = min(tried, key=lambda one: one[0][2] + one[0][3] / 3)[1]
        bandwidths.append((f"{own} GB/s, the board's own", {"dram_gbps": own}))
        for title, values in bandwidths:
            count, constant, median, ninety = judge_table(tool, path, chip, values)
            good = median <= 10 and ninety <= 30
            passed[path.stem, title] = good
            lines.append(f"| {path.stem} | {title} | {count} | {constant} | {median:.1f} % | {ninety:.1f} % | "
                         f"{'pass' if good else 'FAIL'} |")
    return "\n".join(lines)


# ---- boards with open drivers ------------------------------------------------------------------------------------------

MAINLINE, MAINLINE_GATE = Path(__file__).parent / "mainline.csv", 15


def overrides(text):
    return {name: float(value) for name, value in (one.split("=") for one in text.split())}


def probe_ms(values, row):
    """Predicts jobs that no program here makes: the starts from their parameters, and the cycles of the MACs."""
    tasks, jobs, submissions, cycles = (float(row[name]) for name in ("tasks", "jobs", "submissions", "cycles"))
    starts = (values["task_us"] + values["interrupt_us"]) * tasks + values["iommu_us"] * jobs + values["submit_us"] * submissions
    return (cycles * values["mac_stretch"] / (values["clock_ghz"] * 1e3) + starts) / 1e3


def mainline_ms(tool, row):
    changed = overrides(row["set"])
    if row["net"]:
        found = tool.nets([row["chip"]], "open", [row["net"]], changed)[row["chip"], row["net"]]
        return found["device_ms" if row["part"] == "device" else "ms"]
    values = {one["name"]: one["value"] for one in tool.parameters() if one["chip"] == row["chip"] and one["jobs"] != "vendor"}
    return probe_ms({**values, **changed}, row)


def outside(ms, low, high):
    """Returns the percentage beyond the measured range; 0 within it."""
    return 100 * (ms / high - 1) if ms > high else 100 * (ms / low - 1) if ms < low else 0.0


def mainline_rows(tool):
    """Yields (row, predicted ms, error). The last two are None for rows that are not used."""
    for row in read_csv(MAINLINE):
        if row["not_used_because"]:
            yield row, None, None
            continue
        ms = mainline_ms(tool, row)
        yield row, ms, outside(ms, float(row["low_ms"]), float(row["high_ms"]))


def measured_text(row):
    return row["low_ms"] if row["low_ms"] == row["high_ms"] else f"{row['low_ms']} to {row['high_ms']}"


def mainline_table(tool):
    lines = [f"| chip | what | parameters changed | measured ms | simulated ms | beyond the measured, gate {MAINLINE_GATE} % |",
             "| --- | --- | --- | --- | --- | --- |"]
    for row, ms, error in mainline_rows(tool):
        if ms is None:
            lines.append(f"| {row['chip']} | {row['what']} | | {measured_text(row)} | | not used: {row['not_used_because']} |")
            continue
        verdict = "" if abs(error) <= MAINLINE_GATE else " FAIL"
        lines.append(f"| {row['chip']} | {row['what']} | {row['set']} | {measured_text(row)} | {ms:.3g} | {error:+.1f} %{verdict} |")
    return "\n".join(lines)


# ---- the CPU ---------------------------------------------------------------------------------------------------

# For the rows of cpu.csv: core and clock, and the name of the list of layers.
CPU_OF = {"rpi4": (72, 1.5), "rpi3+": (53, 1.4), "a311d": (73, 2.2), "rk3588": (76, 2.4), "sl1680": (73, 2.1), "sl1640": (55, 1.9),
          "imx95": (55, 1.8)}
CPU_NETS = {"mobilenet_v1": "mobilenet_v1_224", "mobilenet_v2": "mobilenet_v2_224", "resnet18": "resnet18_224",
            "resnet50": "resnet50_v1_224", "squeezenet1.1": "squeezenet1_1_227", "vgg16": "vgg16_224", "yolox_s": "yolox_s_640"}
CPU_TYPES = {"i8": "int8", "u8": "uint8", "fp32": "float"}


def cpu_of(row):
    """Returns core and clock of a row. Rows that `skillet bench --row` wrote name them."""
    written = re.search(r"\bA(\d\d) ([\d.]+) GHz", row["cpu"]) if row["engine"] == "skillet" else None
    if written:
        return int(written[1]), float(written[2])
    return (53, 1.8) if "A53" in row["cpu"] and row["soc"] == "a311d" else CPU_OF.get(row["soc"], (0, 0))


def net_of(name):
    """Returns the list of layers of a network, by the name in a row or of a model file for 224 x 224 pixels."""
    whole = re.match(r"(?:tf2_)?(mobilenet_v[12])_1\.0_224", name)
    return CPU_NETS.get(whole[1] if whole else name)


def cpu_rows(data, more=()):
    """Yields (row, core, GHz, threads, list of layers, type, whether it is fitted). `more`: files of rows besides the published ones."""
    for row in [row for path in (data / "cpu.csv", *more) for row in read_csv(path)]:
        threads, net = int(row["threads"] or 4), net_of(row["net"])
        core, ghz = cpu_of(row)
        if not net or not core or threads > 4 or row["dtype"] not in CPU_TYPES:
            continue
        fitted = "XNNPACK" in row["engine"] or row["engine"] == "skillet"
        yield row, core, ghz, threads, net, CPU_TYPES[row["dtype"]], fitted
        # The note of a row may contain the time of the same network with floats.
        floats = re.match(r"fp32 ([\d.]+)", row["note"])
        if floats and fitted:
            yield {**row, "dtype": "fp32", "ms": floats[1]}, core, ghz, threads, net, "float", fitted


def cpu_times(tool, core, ghz, threads, net):
    values = {"cpu_core": core, "cpu_ghz": ghz, "cpu_cores": threads}
    return tool.nets(["rk3588"], "open", [net], values)["rk3588", net]["cpu_alone_ms"]


def cpu_table(tool, data, more=()):
    lines = ["| engine | core, GHz, threads | network | type | measured ms | simulated ms | error | |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row, core, ghz, threads, net, kind, fitted in cpu_rows(data, more):
        ms = sum(cpu_times(tool, core, ghz, threads, net)[kind].values())
        lines.append(f"| {row['engine']} | A{core}, {ghz:g}, {threads} | {row['net']} | {kind} | {row['ms']} | {ms:.1f} | "
                     f"{100 * (ms / float(row['ms']) - 1):+.0f} % | {'' if fitted else 'not fitted: another engine'} |")
    return "\n".join(lines)


CPU_FILE = ROOT / "src/compile/cpu_speeds.def"


def cpu_factors(samples):
    """Returns the factors (of dense, of depthwise) by which times are wrong. samples: (measured ms, {kind of work: current ms}).

    One network cannot distinguish the two: then both get the same factor."""
    parts = [(each["dense"] / ms, each["depthwise"] / ms, 1 - sum(each[w] for w in ("element", "table", "copy")) / ms)
             for ms, each in samples]
    normal = [[sum(p[i] * p[j] for p in parts) for j in (0, 1)] for i in (0, 1)]
    right = [sum(p[i] * p[2] for p in parts) for i in (0, 1)]
    alike = sum(right) / sum(map(sum, normal))
    if normal[0][0] * normal[1][1] - normal[0][1] ** 2 < 1e-4 * normal[0][0] * normal[1][1]:
        return alike, alike
    found = solve(normal, right)
    return tuple(found) if min(found) > 0 else (alike, alike)


def fit_cpu(tool, data, more, update):
    """Fits the cycles of dense and depthwise filters, for each core and type whose row has the mark F."""
    samples = {}
    for row, core, ghz, threads, net, kind, fitted in cpu_rows(data, more):
        if fitted:
            samples.setdefault((core, kind), []).append((float(row["ms"]), cpu_times(tool, core, ghz, threads, net)[kind]))
    text = CPU_FILE.read_text(encoding="utf-8")
    for (core, kind), found in sorted(samples.items()):
        dense, depthwise = cpu_factors(found)

        def scaled(m, dense=dense, depthwise=depthwise):
            return f"{m[1]}{number(float(m[2]) / dense)}, {number(float(m[3]) / depthwise)},{m[4]}"

        text = re.sub(rf"(CPU_SPEED\({core}, {kind}, )([^,]+), ([^,]+),(.*, F, )", scaled, text)
        print(f"A{core}, {kind}: {len(found)} rows, times of dense filters x {dense:.3f}, of depthwise x {depthwise:.3f}")
    if update:
        CPU_FILE.write_text(text, encoding="utf-8")
    return 0


# ---- the page -----------------------------------------------------------------------------------------------------

def number(value):
    return f"{value:.3g}"


def parameter_table(parameters):
    lines = ["| chip | jobs | parameter | value | range | unit | mark | source |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in parameters:
        open_range = f"{row['low']:g} to {row['high']:g}" if "high" in row else ""
        lines.append(f"| {row['chip']} | {row['jobs']} | {row['name']} | {row['value']:g} | {open_range} | {row['unit']} | "
                     f"{row['mark']} | {row['source']} |")
    return "\n".join(lines)


def residual_table(tool, data):
    lines = ["| chip | program | network | measured ms | simulated ms | error |", "| --- | --- | --- | --- | --- | --- |"]
    for group in GROUPS:
        rows = rows_of(data, group)
        got = tool.nets(group.chips, group.program, sorted({net for _, net, _ in rows}), {})
        for chip, net, ms in rows:
            simulated = got[chip, net]["ms"]
            lines.append(f"| {chip} | {group.program} | {net} | {ms:g} | {simulated:.2f} | {100 * (simulated / ms - 1):+.1f} % |")
    return "\n".join(lines)


def prediction_table(tool, data):
    timed = {(row["chip"], jobs) for row in tool.parameters() if row["name"] == "error_percent"
             for jobs in ([row["jobs"]] if row["jobs"] != "both" else ["open", "vendor"])}
    lines = ["| chip | network | program | simulated ms | +- |", "| --- | --- | --- | --- | --- |"]
    for chip, net in WANTED:
        for program in ("vendor", "open"):
            if (chip, program) not in timed:
                lines.append(f"| {chip} | {net} | {program} | not timed: there are no parameters | |")
                continue
            if program == "vendor":
                row = tool.nets([chip], program, [net], {})[chip, net]
                lines.append(f"| {chip} | {net} | vendor | {row['ms']:.2f} | {100 * row['error']:.0f} % |")
                continue
            for tuning in TUNINGS:
                row = tool.nets([chip], program, [net], {}, tuning)[chip, net]
                lines.append(f"| {chip} | {net} | open, {tuning} | {row['ms']:.2f} (device {row['device_ms']:.2f}, "
                             f"{row['dram_bytes'] / 1e6:.1f} MB, {row['left_out']} on the CPU) | {100 * row['error']:.0f} % |")
    return "\n".join(lines)


def gate_table(results):
    lines = ["| chips, program | rows | rms of the fit | leave a family out: median | largest | gate | |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for group, _, fitted, alone in results:
        seen = [abs(x) for x in alone if x is not None]
        rms = math.sqrt(sum(x * x for x in fitted) / len(fitted))
        gate = GATES[group.chips[0]]
        if group.title in UNKNOWN or not seen:
            least = f"{max(seen):.1f} %" if seen else ""
            lines.append(f"| {group.title} | {len(fitted)} | {rms:.1f} % | not known | {least} | {gate} % | "
                         f"no gate: {UNKNOWN.get(group.title, 'too few rows')} |")
            continue
        within = sum(x <= gate for x in seen)
        lines.append(f"| {group.title} | {len(fitted)} | {rms:.1f} % | {statistics.median(seen):.1f} % | {max(seen):.1f} % | "
                     f"{gate} % | {'pass' if within == len(seen) else f'FAIL: {within} of {len(seen)}'} |")
    return "\n".join(lines)


def blocks(text):
    return re.findall(r"<!-- calibrate: (\w+) -->\n(.*?)<!-- end -->", text, re.DOTALL)


def with_blocks(text, tables):
    for name, table in tables.items():
        text = re.sub(rf"(<!-- calibrate: {name} -->\n).*?(<!-- end -->)", lambda m, t=table: f"{m[1]}{t}\n{m[2]}", text,
                      flags=re.DOTALL)
    return text


def write_parameters(values):
    """Writes values, {(chip, jobs, name): number}, to rows of that name whose jobs are the same or "both"."""
    for path in PARAMETER_FILES:
        text = path.read_text(encoding="utf-8")
        for (chip, jobs, name), value in values.items():
            text = re.sub(rf"(TIMING\({chip}, (?:{jobs}|both), {name}, )[^,]+", lambda m, v=value: m[1] + number(v), text)
        path.write_text(text, encoding="utf-8")


def quick_tables(tool, data):
    return {"parameters": parameter_table(tool.parameters()), "residuals": residual_table(tool, data),
            "predictions": prediction_table(tool, data), "layers": judge_tables(tool, data), "mainline": mainline_table(tool),
            "cpu": cpu_table(tool, data)}


def check(tool, data):
    page, bad = dict(blocks(PAGE.read_text(encoding="utf-8"))), 0
    for name, table in quick_tables(tool, data).items():
        if page.get(name, "").strip() != table:
            print(f"docs/timing.md: block '{name}' is not what ./x calibrate --update writes", file=sys.stderr)
            bad = 1
    return bad or check_gates(tool, data, page)


def check_gates(tool, data, page):
    """Checks the gates with the current parameters, by fits without one family each."""
    results = [(group, {}, *judge(tool, group, rows, start_of(tool, group))) for group in GROUPS
               for rows in [rows_of(data, group)]]
    table = gate_table(results)
    if page.get("gates", "").strip() != table:
        print("docs/timing.md: block 'gates' is not what ./x calibrate --update writes", file=sys.stderr)
        return 1
    failing = [line for line in [*table.splitlines(), *page["mainline"].splitlines()] if "FAIL" in line]
    for line in failing:
        print(f"calibrate: {line}", file=sys.stderr)
    return 1 if failing else 0


def start_of(tool, group):
    current = {(row["chip"], jobs, row["name"]): row["value"] for row in tool.parameters()
               for jobs in ([row["jobs"]] if row["jobs"] != "both" else ["open", "vendor"])}
    return {name: current[group.chips[0], group.program, name] for name in group.names}


def calibrate(tool, data, update):
    results, new = [], {}
    for group in GROUPS:
        rows = rows_of(data, group)
        start = start_of(tool, group)
        values = {name: float(number(value)) for name, value in fit_from_starts(tool, group, rows, start).items()}
        fitted, alone = judge(tool, group, rows, values)
        results.append((group, values, fitted, alone))
        print(f"{group.title}: " + ", ".join(f"{name} = {value:g}" for name, value in values.items()))
        for (chip, net, ms), a, b in zip(rows, fitted, alone):
            print(f"    {chip:8} {net:24} {ms:8.2f} ms  {a:+6.1f} %   family left out {f'{b:+6.1f} %' if b is not None else '-'}")
        worst = max((abs(x) for x in alone if x is not None), default=0)
        for chip in group.chips:
            new.update({(chip, group.program, name): value for name, value in values.items()})
            if group.title not in UNKNOWN:
                new[chip, group.program, "error_percent"] = max(ERROR_LEAST, math.ceil(worst))
    print("\n" + gate_table(results) + "\n\n" + judge_tables(tool, data) + "\n\n" + mainline_table(tool) + "\n\n" + cpu_table(tool, data))
    if update:
        write_parameters(new)
        PAGE.write_text(with_blocks(PAGE.read_text(encoding="utf-8"), {"gates": gate_table(results)}), encoding="utf-8")
        print("\ntiming_params.def of the families and the gates of docs/timing.md are written; build, then ./x calibrate --tables")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/calibration", help="folder of the measurements")
    parser.add_argument("--skillet", default=str(ROOT / "build/release/src/tools/skillet"))
    parser.add_argument("--update", action="store_true", help="write the fitted parameters and the gate table")
    parser.add_argument("--tables", action="store_true", help="no fit: write the tables that follow from the parameters")
    parser.add_argument("--check", action="store_true", help="no fit: are the tables of docs/timing.md up to date, and do the gates hold?")
    parser.add_argument("--cpu", action="store_true", help="fit the CPU's speeds only; with --update, write them")
    parser.add_argument("--cpu-rows", type=Path, action="append", default=[], help="rows of `skillet bench --row`, for --cpu")
    options = parser.parse_args()
    if not (options.data / "endtoend.csv").is_file():
        print(f"calibrate: no measurements in {options.data}: nothing to do")
        return 0
    tool = Tool(options.skillet, options.data)
    if options.cpu or options.cpu_rows:
        print(cpu_table(tool, options.data, options.cpu_rows))
        return fit_cpu(tool, options.data, options.cpu_rows, options.update)
    if options.check:
        bad = check(tool, options.data)
        if not bad:
            print("the tables of docs/timing.md are up to date, and all gates hold")
        return bad
    if options.tables:
        PAGE.write_text(with_blocks(PAGE.read_text(encoding="utf-8"), quick_tables(tool, options.data)), encoding="utf-8")
        return 0
    return calibrate(tool, options.data, options.update)


if __name__ == "__main__":
    sys.exit(main())
