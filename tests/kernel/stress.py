#!/usr/bin/env python3
"""Drives Linux's own NPU drivers with many programs at once, again and again, with faults of the device; the kernel must not complain.

  stress.py [--seed N] [--seconds S] [--chip NAME] [--build DIR]

Boots `./x kernel` for 60 s at a time (its address sanitizer where that kernel is built), a chip after the other. Inside, three programs run at once:
`skillet run` and `bench` of the model in models/, some of them ended by SIGTERM or SIGINT, with pauses that let the driver suspend. One core of each
chip: several lose more reads of user-mode Linux's bus, and such a boot is judged by the kernel's memory checks alone. Every output is
compared with that of sim:CHIP. Exit codes: 0, 1 a report of the kernel or a wrong output, 77 there is no kernel.
"""
import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from guest import KERNEL, NODES, ROOT, best_variant, lost_a_read

OFTEN = ("hang", "page_fault", "lost_interrupt")
# Faults to draw from, by chip. Rocket does not survive a spurious interrupt, see docs/kernel-ci.md; --fault can inject it.
FAULTS = {"a311d": (*OFTEN, "spurious_interrupt"), "imx8mp": (*OFTEN, "spurious_interrupt"), "rk3588": OFTEN}
BOOT_S, SLOTS, SKIPPED = 60, 3, 77
LOST = "boots whose bus lost a read"
# The bus's message about a lost read, in a kernel that ends while it prints: "+virtio:" on its stack, below an interrupt.
LOST_AT_ITS_END = re.compile(r"Segfault with no mm.*?3a6f69747269762b.*?dev_printk_emit", re.DOTALL)
# If the bus lost a read, only these count as faults of the driver.
ALWAYS_BAD = re.compile(r"KASAN|BUG:|Oops|Kernel panic")


def network(command, device, output, verb="run"):
    inputs = ["--image", ROOT / "models/digits/3.png", "--output", output] if verb == "run" else ["--runs", "20"]
    return [str(word) for word in (command, verb, ROOT / "models/digits.tflite", *inputs, "--device", device, "--unproven", "take",
                                   "--partition", "all")]


def inside(options):
    """Runs in the guest. Prints a line of JSON with the numbers of runs and failures."""
    draw = random.Random(options.seed)
    expected = Path(options.expected).read_bytes()
    count = {"ran": 0, "ended by a signal": 0, "wrong output": 0, "failed": 0, "first failure": ""}
    slots = [None] * SLOTS

    def start(slot):
        output = Path(f"/mnt/{slot}.npz")
        output.unlink(missing_ok=True)
        verb = "bench" if draw.random() < 0.2 else "run"
        kill_after = draw.uniform(0, 0.3) if draw.random() < 0.2 else None
        started = subprocess.Popen(network(options.command, options.node, output, verb), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        return started, output if verb == "run" else None, kill_after and time.monotonic() + kill_after, False

    def reap(running, output, end_at, was_asked):
        if running.poll() is None:
            if end_at and not was_asked and time.monotonic() > end_at:  # once only: a second signal ends the program at once
                running.send_signal(draw.choice((signal.SIGTERM, signal.SIGINT)))
                was_asked = True
            return running, output, end_at, was_asked
        count["ran"] += 1
        if was_asked and running.returncode != 0:
            count["ended by a signal"] += 1
        elif running.returncode != 0:
            count["failed"] += 1
            count["first failure"] = count["first failure"] or running.stderr.read()[-500:]
        elif output and output.read_bytes() != expected:
            count["wrong output"] += 1
        return None

    end = time.monotonic() + options.seconds
    while time.monotonic() < end or any(slots):
        for slot, busy in enumerate(slots):
            slots[slot] = reap(*busy) if busy else start(slot) if time.monotonic() < end else None
        if draw.random() < 0.002 and time.monotonic() < end:
            time.sleep(0.7)  # the drivers suspend an idle device
        time.sleep(0.005)
    print("stress " + json.dumps(count), flush=True)
    return 0


def boot(chip, seed, seconds, options, folder):
    """Boots a guest. Returns its counts (None: the guest ended early), its faults, and whether its bus lost a read."""
    draw = random.Random(seed)
    expected = Path(folder) / f"{chip}.npz"
    if not expected.exists():
        subprocess.run(network(options.command, f"sim:{chip}", expected), check=True, stdout=subprocess.DEVNULL)
    # Far apart: two faults in one run would make a job fail twice, and then run on the CPU.
    faults = options.fault or ",".join(f"{draw.choice(FAULTS[chip])}@{draw.randint(5, 35) + at}" for at in range(0, 600, 100))
    call = [*KERNEL, *options.variant, "--device", options.device, "--chip", chip, "--cores", "1",
            "--fault", faults, "--limit", seconds + 60, "--", sys.executable, __file__, "--inside", "--node", NODES[chip], "--seed", seed, "--seconds", seconds,
            "--expected", expected, "--command", options.command]
    done = subprocess.run([str(word) for word in call], capture_output=True, text=True, check=False, cwd=ROOT)
    found = re.search(r"^stress (.*)$", done.stdout, re.MULTILINE)
    said = [line for line in done.stderr.splitlines() if "the kernel says" in line]
    lost = lost_a_read(done) or bool(LOST_AT_ITS_END.search(done.stdout))
    print(f"{chip} seed {seed} faults {faults}: {found.group(1) if found else 'no count'}{'; the bus lost a read' if lost else ''}", flush=True)
    print("\n".join(f"  {line}" for line in done.stderr.splitlines() if re.match(r"\S+( core \d)?: \d+ jobs", line)), flush=True)
    bad = [line for line in said if ALWAYS_BAD.search(line) or not lost]
    if not found and not lost:
        output = done.stdout + done.stderr
        first = ALWAYS_BAD.search(output)
        bad.append(f"the guest ended: {output[first.start():][:3000] if first else output[-3000:]}")
    counts = json.loads(found.group(1)) if found else None
    if counts and (counts["wrong output"] or counts["failed"] and not lost):
        bad.append("outputs that are wrong or missing")
    return counts, bad, lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1800, help="of wall time (1800)")
    parser.add_argument("--chip", choices=FAULTS, help="default: each in turn")
    parser.add_argument("--fault", help="as of ./x kernel; default: six drawn from the seed for each boot")
    parser.add_argument("--build", default=ROOT / "build/release", type=Path)
    for name in ("--inside", "--node", "--expected", "--command"):
        parser.add_argument(name, help=argparse.SUPPRESS, **({"action": "store_true"} if name == "--inside" else {}))
    options = parser.parse_args()
    if options.inside:
        return inside(options)
    options.command, options.device = options.build / "src/tools/skillet", options.build / "src/lab/mmio/skillet-npu-device"
    options.variant = best_variant()
    if options.variant is None:
        return SKIPPED
    chips = [options.chip] if options.chip else list(FAULTS)
    end, seed, bad, ran = time.monotonic() + options.seconds, options.seed, 0, {"boots": 0, "ran": 0, "ended by a signal": 0, LOST: 0}
    with tempfile.TemporaryDirectory(prefix="skillet-stress-") as folder:
        while ran["boots"] == 0 or time.monotonic() < end:
            seconds = max(5, min(BOOT_S, end - time.monotonic()))
            counts, said, lost = boot(chips[seed % len(chips)], seed, seconds, options, folder)
            seed += 1
            ran = {name: count + (counts or {}).get(name, 0) for name, count in ran.items()} | {"boots": ran["boots"] + 1, LOST: ran[LOST] + lost}
            bad += bool(said)
            print(*said, sep="\n", end="")
    print(f"stress{' with KASAN' if options.variant else ''}: {', '.join(f'{count} {name}' for name, count in ran.items())}; {bad} boots with a finding")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
