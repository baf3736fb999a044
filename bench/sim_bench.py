#!/usr/bin/env python3
"""Compares whole models on simulated chips with XNNPACK on one core, in one process.

usage: sim_bench.py LIBSKILLET_C [--seconds S] [--device NAME]... MODEL.tflite...

Columns: CPU milliseconds of one inference, the least of many alternating ones, on the simulated chip, by our CPU kernels and
by XNNPACK; and the ratio of the first to the last. AMX is disabled for this process. Needs what ref_bench.py needs.
"""

import argparse
import ctypes
import pathlib

import numpy as np

from ref_bench import Ours, RANDOM, least_ms, ours_run, peer, refuse_amx


class Device(Ours):
    """Runs models with the C interface on a device."""

    def __init__(self, path, name):
        super().__init__(path)
        self.device = ctypes.c_void_p()
        self.check(self.lib.skillet_open(name.encode(), ctypes.byref(self.device)))


def random_inputs(runtime, model_file):
    interpreter = runtime.Interpreter(model_content=model_file)
    details = interpreter.get_input_details()
    return [RANDOM.randint(np.iinfo(d["dtype"]).min, np.iinfo(d["dtype"]).max + 1, d["shape"]).astype(d["dtype"])
            for d in details]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each model")
    parser.add_argument("--device", action="append", help="default: sim:a311d, sim:imx8mp, sim:rk3588")
    args = parser.parse_args()
    refuse_amx()
    import ai_edge_litert.interpreter as runtime
    names = args.device or ["sim:a311d", "sim:imx8mp", "sim:rk3588"]
    devices = [Device(args.library, name) for name in names + ["cpu"]]
    print("| model | device | simulated | CPU kernels | XNNPACK | simulated / XNNPACK |\n| --- | --- | --- | --- | --- | --- |")
    for path in map(pathlib.Path, args.models):
        model_file = path.read_bytes()
        inputs = random_inputs(runtime, model_file)
        runs = [ours_run(device, model_file, inputs) for device in devices]
        runs.append(peer(runtime, model_file, inputs, runtime.OpResolverType.BUILTIN))
        *simulated, cpu, xnnpack = least_ms(runs, args.seconds)
        for name, ms in zip(names, simulated):
            print(f"| {path.stem} | {name} | {ms:.1f} | {cpu:.1f} | {xnnpack:.1f} | {ms / xnnpack:.2f} |", flush=True)


if __name__ == "__main__":
    main()
