#!/usr/bin/env python3
"""Runs the networks of README.md on Linux's own drivers with all parts on the NPU, and compares with the bytes of sim:CHIP. Prints a table.

usage: all_networks.py [CHIP...] [NAME...]   run at the top of the source tree after ./x build and ./x kernel; all, or these chips and
networks whose file has NAME in it.
Networks: models/, ../shared/models; missing ones are named. Exit code 1: an output differs.
"""
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from guest import KERNEL, with_a_whole_bus

SKILLET = Path("build/release/src/tools/skillet").resolve()
SHARED = Path("../shared/models")
NETWORKS = ["models/digits.tflite", *(f"{SHARED}/{name}.tflite" for name in (
    "mobilenet_v1_0.25_128_quant", "mobilenet_v1_1.0_224_quant", "mobilenet_v2_1.0_224_quant", "tf2_mobilenet_v2_1.0_224_ptq",
    "deeplabv3_mnv2_dm05_pascal_quant", "movenet_single_pose_lightning_ptq"))]
# Chip, cores (0: all), node.
BOARDS = [("a311d", 0, "/dev/dri/renderD128"), ("imx8mp", 0, "/dev/dri/renderD128"), ("rk3588", 1, "/dev/accel/accel0"), ("rk3588", 0, "/dev/accel/accel0"),
          ("imx93", 0, "/dev/accel/accel0")]
ENVIRONMENT = {**os.environ, "SKILLET_PARTITION": "all"}


def program(network, device, output):
    return [SKILLET, "run", network, "--random", "5", "--device", device, "--unproven", "take", "--compare", "--output", output]


def boot(chip, cores, command):
    """Returns the process of a boot, and its seconds. Repeats a boot whose bus lost a read.

    The guest's clock is slow, because simulated jobs take longer than 500 ms."""
    runner = [*KERNEL, "--slow", "8", "--limit", "600", "--chip", chip,
              *(["--cores", str(cores)] if cores else [])]

    def once():
        start = time.monotonic()
        done = subprocess.run([*runner, "--", *map(str, command)], capture_output=True, text=True, check=False, env=ENVIRONMENT)
        done.seconds = time.monotonic() - start
        return done

    done = with_a_whole_bus(once)
    return done, done.seconds


def total(text, what):
    return sum(int(number) for number in re.findall(rf"(\d+) {what}", text))


def row(network, chip, cores, node, boot_s):
    """Returns a line of the table, and whether the outputs are equal."""
    with tempfile.TemporaryDirectory() as folder:
        done, seconds = boot(chip, cores, program(network, node, f"{folder}/kernel.npz"))
        sim = subprocess.run(program(network, f"sim:{chip}", f"{folder}/sim.npz"), capture_output=True, text=True, check=False, env=ENVIRONMENT)
        outputs = [Path(folder) / f"{one}.npz" for one in ("kernel", "sim")]
        if done.returncode != sim.returncode or not all(one.exists() for one in outputs):
            return f"exit code {done.returncode}, of sim: {sim.returncode}: {(done.stderr or sim.stderr).strip().splitlines()[-1]}", False
        is_same = outputs[0].read_bytes() == outputs[1].read_bytes()
    counts = [total(done.stderr, what) for what in ("jobs", "interrupts", "page walks")]
    return f"{'the same bytes' if is_same else 'OTHER BYTES'} | {' | '.join(map(str, counts))} | {boot_s:.1f} | {seconds - boot_s:.1f}", is_same and counts[0] > 0


def main():
    names = [one for one in sys.argv[1:] if one not in [chip for chip, _, _ in BOARDS]]
    boards = [board for board in BOARDS if board[0] in sys.argv[1:]] or BOARDS
    wanted = [one for one in NETWORKS if not names or any(name in one for name in names)]
    chosen = [one for one in wanted if Path(one).is_file()]
    if chosen != wanted:
        print(f"not here, left out: {' '.join(one for one in wanted if one not in chosen)}", file=sys.stderr)
    boots = {}
    for chip, cores, _ in boards:
        done, boots[chip, cores] = boot(chip, cores, ["true"])
        if done.returncode != 0:
            sys.stderr.write(done.stderr)
            return done.returncode
    print("| network | chip | output | jobs | interrupts | page walks | boot, s | run, s |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    is_well = bool(chosen)
    for network in chosen:
        for chip, cores, node in boards:
            text, is_one_well = row(network, chip, cores, node, boots[chip, cores])
            is_well = is_well and is_one_well
            print(f"| {Path(network).stem} | {chip}{f', {cores} core' if cores else ''} | {text} |", flush=True)
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
