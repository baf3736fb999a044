#!/usr/bin/env python3
"""What a trace costs an inference: one process, in which sessions with a trace and without take turns.

usage: trace_bench.py LIBRARY [--device D]... [--runs N] MODEL...      LIBRARY: libskillet_c.so

A row: CPU time of a run without a trace, of all threads, and the ratio with : without; the range is that of the middle half of the turns. CPU time, as
other processes of a busy machine have no part in it.
"""
import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

TURNS = 12


def turn(skillet, model, device, trace, runs):
    """CPU seconds of a run, by a session of its own."""
    with skillet.Session(model, device, partition="all", **({"trace": trace} if trace else {})) as session:
        memory = [[bytearray(info.nbytes) for info in infos] for infos in (session.inputs, session.outputs)]
        session.run_on(*memory)
        before = time.process_time()
        for _ in range(runs):
            session.run_on(*memory)
        return (time.process_time() - before) / runs


def measured(skillet, model, device, runs, folder):
    without, ratios = [], []
    for i in range(TURNS):
        both = {}
        for traced in (i % 2 == 0, i % 2 == 1):
            both[traced] = turn(skillet, model, device, f"{folder}/{i}.pftrace" if traced else "", runs)
        without.append(both[False])
        ratios.append(both[True] / both[False])
    return statistics.median(without), ratios


def text(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--device", action="append", help="default: cpu, sim:a311d")
    parser.add_argument("--runs", type=int, default=50, help="of a turn")
    args = parser.parse_args()
    os.environ["SKILLET_C_LIBRARY"] = os.path.abspath(args.library)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "src/frontend/python"))
    import skillet
    print("| network | device | ms without | with : without |\n| --- | --- | --- | --- |")
    for model in args.models:
        for device in args.device or ["cpu", "sim:a311d"]:
            with tempfile.TemporaryDirectory() as folder:
                without, ratios = measured(skillet, model, device, args.runs, folder)
            print(f"| {pathlib.Path(model).stem} | {device} | {1000 * without:.3g} | {text(ratios)} |", flush=True)


if __name__ == "__main__":
    main()
