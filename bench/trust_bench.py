#!/usr/bin/env python3
"""Measures cost and benefit of comparing an NPU with the CPU on load: the table of docs/dev/trust.md, by simulated chips.

usage: trust_bench.py SKILLET [--chip CHIP]... MODEL.tflite...

The cell of a chip: operations of the model on the NPU with unproven=refuse, with verify, and with take; additional CPU milliseconds
of `skillet run` over take when it compares (the first load), and again with the same trust store (a later load); the reported
times of both comparisons; and the limit for the first: the cost of loading it once and 20 inferences. partition=all.
"""
import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import tempfile


def cpu_ms():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (used.ru_utime + used.ru_stime)


def run(skillet, model, chip, unproven, store):
    """Returns the operations on the NPU, the number of all, CPU milliseconds, and the reported milliseconds of the comparison."""
    before = cpu_ms()
    done = subprocess.run([skillet, "run", model, "--device", f"sim:{chip}", "--unproven", unproven, "--random", "1", "--json"],
                          capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, "SKILLET_PARTITION": "all", "SKILLET_TRUST_DIR": store, "SKILLET_LOG": "info"})
    report, took = json.loads(done.stdout), re.findall(r"compared with the CPU in (\d+) ms", done.stderr)
    return report["model_npu_ops"], report["model_ops"], cpu_ms() - before, sum(map(int, took))


def allowed(skillet, model, chip, store):
    """Returns the CPU milliseconds of loading the model once and 20 inferences."""
    took = []
    for runs in (1, 4):
        before = cpu_ms()
        subprocess.run([skillet, "bench", model, "--device", f"sim:{chip}", "--unproven", "take", "--runs", str(runs), "--warm-up", "0"],
                       capture_output=True, check=True, env={**os.environ, "SKILLET_PARTITION": "all", "SKILLET_TRUST_DIR": store})
        took.append(cpu_ms() - before)
    inference = max(0, took[1] - took[0]) / 3
    return took[0] + 19 * inference


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("skillet")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--chip", action="append", help="default: a311d, imx8mp, rk3588, rk3576, imx93")
    args = parser.parse_args()
    chips = args.chip or ["a311d", "imx8mp", "rk3588", "rk3576", "imx93"]
    print("| network | operations |", " | ".join(f"{chip}: refuse, verify, take | first ms of allowed, later ms" for chip in chips), "|")
    print("| --- | --- |", " | ".join(["--- | ---"] * len(chips)), "|")
    for model in map(pathlib.Path, args.models):
        cells = []
        for chip in chips:
            with tempfile.TemporaryDirectory() as store:
                refuse, ops, _, _ = run(args.skillet, model, chip, "refuse", store)
                take, _, alone, _ = run(args.skillet, model, chip, "take", store)
                verify, _, first, said = run(args.skillet, model, chip, "verify", store)
                _, _, later, said_later = run(args.skillet, model, chip, "verify", store)
                most = allowed(args.skillet, model, chip, store)
            cells.append(f"{refuse}, {verify}, {take} | {first - alone:.0f} of {most:.0f}, {later - alone:.0f} ({said}, {said_later})")
        print(f"| {model.stem} | {ops} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
