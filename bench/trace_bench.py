#!/usr/bin/env python3
"""Measures what a trace costs an inference, in one process that alternates sessions with and without a trace.

usage: trace_bench.py LIBRARY [--device D]... [--seconds S] [--turns N] MODEL...      LIBRARY: libskillet_c.so

A row: CPU time of a run without a trace, of all threads; what a trace adds; the same in per cent. The least of many turns counts: other processes
slow CPU time down too, but never speed it up. The last column is the median percentage over pairs of consecutive turns.
"""
import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time


def turn(skillet, model, device, trace, seconds):
    """Returns the CPU seconds of a run in a new session. Events still in the buffer at the end are not written yet: those of 20 ms at most."""
    with skillet.Session(model, device, partition="all", unproven="take", **({"trace": trace} if trace else {})) as session:
        memory = [[bytearray(info.nbytes) for info in infos] for infos in (session.inputs, session.outputs)]
        session.run_on(*memory)
        begin, before, runs = time.monotonic(), time.process_time(), 0
        while time.monotonic() - begin < seconds:
            session.run_on(*memory)
            runs += 1
        return (time.process_time() - before) / runs


def measured(skillet, model, device, seconds, turns, folder):
    """Returns the CPU seconds of each turn with a trace, and of those without."""
    found = {True: [], False: []}
    for i in range(turns):
        for traced in (i % 2 == 0, i % 2 == 1):
            found[traced].append(turn(skillet, model, device, f"{folder}/{i}.pftrace" if traced else "", seconds))
    return found[True], found[False]


def row(traced, without):
    least, adds = min(without), min(traced) - min(without)
    median = statistics.median(one / other - 1 for one, other in zip(traced, without))
    return f"{1e6 * least:.4g} | {1e6 * adds:.2g} us | {100 * adds / least:.2g} % | {100 * median:.2g} %"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--device", action="append", help="default: cpu, sim:a311d")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--turns", type=int, default=40)
    args = parser.parse_args()
    os.environ["SKILLET_C_LIBRARY"] = os.path.abspath(args.library)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "src/frontend/python"))
    import skillet
    print("| network | device | us without | a trace adds | that is | median of pairs |\n| --- | --- | --- | --- | --- | --- |")
    for model in args.models:
        for device in args.device or ["cpu", "sim:a311d"]:
            with tempfile.TemporaryDirectory() as folder:
                traced, without = measured(skillet, model, device, args.seconds, args.turns, folder)
            print(f"| {pathlib.Path(model).stem} | {device} | {row(traced, without)} |", flush=True)


if __name__ == "__main__":
    main()
