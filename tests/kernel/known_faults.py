#!/usr/bin/env python3
"""Known faults of Linux's NPU drivers, each shown by a small program of known_faults.txt: a boot for each.

  known_faults.py [NAME...] [--build DIR] [--verbose]

Prints a line a fault: what the kernel said, or nothing. Uses the kernel with the address sanitizer where `./x kernel --kasan` has built it;
without it, faults that need it are not tried. Exit codes: 0 all as the table says; 1 otherwise; 77 there is no kernel. On another kernel (option
--source or --vmlinux in SKILLET_KERNEL_OPTIONS) faults may be repaired: what differs is printed, and the exit code is 0.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from guest import KERNEL, NODES, ROOT, best_variant, with_a_whole_bus

SKIPPED, BEGINS = 77, "[the program begins]"
SAID = re.compile(r"KASAN|BUG|WARNING|Oops|NULL pointer|null-ptr|Kernel panic|the kernel ended|the program did not end|the kernel says|not clean during takedown")


@dataclass
class Fault:
    name: str
    facts: dict = field(default_factory=dict)
    lines: list = field(default_factory=list)


def read_faults(text):
    faults = []
    for line in text.splitlines():
        if found := re.fullmatch(r"\[(\w+)\]", line):
            faults.append(Fault(found.group(1)))
        elif faults and (found := re.fullmatch(r"(chip|options|is|shown|needs): (.*)", line)) and not faults[-1].lines:
            faults[-1].facts[found.group(1)] = found.group(2)
        elif faults and line:
            faults[-1].lines.append(line)
    return faults


def said_in_a_boot(fault, variant, build, folder):
    """Returns the kernel's lines that report the fault, and all of the output."""
    chip, program = fault.facts["chip"], Path(folder) / fault.name
    shown = re.compile(fault.facts["shown"])
    program.write_text("\n".join(fault.lines[fault.lines[0] == "sh":]) + "\n", encoding="utf-8")
    calls = ["sh", program, build / "src/tools/skillet", ROOT] if fault.lines[0] == "sh" else [build / "tests/kernel/skillet_kernel_calls", NODES[chip], program]
    command = [*KERNEL, *variant, "--device", str(build / "src/lab/mmio/skillet-npu-device"), "--chip", chip, "--console", "--limit", "20",
               *fault.facts.get("options", "--cores 1").split(), "--", *map(str, calls)]
    done = with_a_whole_bus(lambda: subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, cwd=ROOT))
    output = done.stdout + done.stderr
    return [line.strip() for line in output.splitlines() if SAID.search(line) or shown.search(line)], output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--build", default=ROOT / "build/release", type=Path)
    parser.add_argument("--verbose", action="store_true", help="all that the boots print")
    options = parser.parse_args()
    faults = read_faults((ROOT / "tests/kernel/known_faults.txt").read_text(encoding="utf-8"))
    unknown = set(options.names) - {fault.name for fault in faults}
    if unknown:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}; there are {', '.join(fault.name for fault in faults)}")
    variant = best_variant()
    if variant is None:
        return SKIPPED
    bad, untried = 0, 0
    with tempfile.TemporaryDirectory(prefix="skillet-faults-") as folder:
        for fault in faults:
            if options.names and fault.name not in options.names:
                continue
            if "needs" in fault.facts and not variant:
                untried += 1
                print(f"{fault.name}: not tried without the address sanitizer", flush=True)
                continue
            said, output = said_in_a_boot(fault, variant, options.build.resolve(), folder)
            shown = fault.facts["shown"]
            matching = [line for line in said if re.search(shown, line)]
            right = bool(matching) if shown != "nothing" else not said
            bad += not right
            print(f"{fault.name}: {(matching + said + ['nothing was said'])[0]}{'' if right else f' (expected: {shown})'}", flush=True)
            if options.verbose or not right:
                print(output.split(BEGINS)[-1])
    print(f"known faults of {'a kernel with the address sanitizer' if variant else 'the kernel'}: {bad} not as the table says"
          f"{f'; {untried} not tried: ./x kernel --kasan -- true builds what they need' if untried else ''}")
    is_another = re.search(r"--(source|vmlinux)", os.environ.get("SKILLET_KERNEL_OPTIONS", ""))
    return 1 if bad and not is_another else 0


if __name__ == "__main__":
    sys.exit(main())
