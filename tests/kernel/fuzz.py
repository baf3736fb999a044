#!/usr/bin/env python3
"""Writes random values to the registers of a device, inside a guest without its driver.

usage: fuzz.py MODULE CHIP SEED SECONDS

Needs the module of registers/. Prints its counts; the caller checks that the device still works.
"""
import mmap
import os
import random
import struct
import subprocess
import sys
import time
from pathlib import Path

BUS, MEMORY_BYTES, BEYOND = 0x10000000, 64 * 4096, 0x7ff00000
# For each chip: bytes of registers; registers with addresses and flag bits; writes that start it. Source: hardware specification kernel-mmio.
CHIPS = {
    "a311d": (0x1000, (0x184, 0x38c, 0x654), ((0x3a8, 1), (0x388, 1), (0x18c, 1), (0x658, 0x10004), (0x3a4, 0x10004))),
    "rk3588": (0x11000, (0x9000, 0xa000, 0x10), ((0x10000, 3), (0x9008, 0), (0xa008, 0), (0x14, 0x20), (0x30, 1), (0x8, 1))),
    "imx93": (0x1000, (0x10, 0x80, 0x88, 0x90), ((0x14, 0), (0x20, 4096), (0x8, 1))),
}


class Fuzzer:
    def __init__(self, chip, seed):
        self.size, self.addresses, self.starts = CHIPS[chip]
        self.random = random.Random(seed)
        self.node = os.open("/dev/registers", os.O_RDWR)
        self.memory = mmap.mmap(self.node, MEMORY_BYTES)
        self.address = int(Path("/sys/module/registers/parameters/memory").read_text())
        self.reads = self.writes = 0

    def write(self, offset, value):
        os.pwrite(self.node, struct.pack("<I", value & 0xffffffff), BUS + offset)
        self.writes += 1

    def read(self, offset):
        os.pread(self.node, 4, BUS + offset)
        self.reads += 1

    def value(self):
        draw = self.random
        return draw.choice((0, 1, 0xffffffff, draw.getrandbits(32), 1 << draw.randrange(32), self.address + draw.randrange(MEMORY_BYTES), BEYOND))

    def nonsense(self):
        """Reads or writes each register in random order."""
        offsets = list(range(0, self.size, 4)) if self.size <= 0x1000 else self.random.sample(range(0, self.size, 4), 1024)
        self.random.shuffle(offsets)
        for offset in offsets:
            if self.random.random() < 0.3:
                self.read(offset)
            else:
                self.write(offset, self.value())

    def tables(self):
        """Fills memory with entries that point to itself, beyond all memory, or anywhere, uses it as tables and as commands, and starts the chip."""
        draw = self.random
        kinds = ((lambda at: self.address | 5), (lambda at: BEYOND | 5), (lambda at: draw.getrandbits(32)), (lambda at: self.address + at // 4096 * 4096 | 7),
                 (lambda at: 0x40000002 if at % 8 == 0 else self.address))  # a packet that links to itself
        kind = draw.choice(kinds)
        self.memory[:] = b"".join(struct.pack("<I", kind(at)) for at in range(0, MEMORY_BYTES, 4))
        for offset in self.addresses:
            self.write(offset, draw.choice((self.address, BEYOND, self.address + 4, 0xfffff000)))
        for offset, value in self.starts:
            self.write(offset, value)
            self.read(offset)


def main():
    module, chip, seed, seconds = sys.argv[1:]
    subprocess.run(["/usr/sbin/insmod", module], check=True)
    fuzzer, end, rounds = Fuzzer(chip, int(seed)), time.monotonic() + float(seconds), 0
    while time.monotonic() < end:
        fuzzer.tables()
        fuzzer.nonsense()
        rounds += 1
    print(f"{rounds} rounds, {fuzzer.reads} reads, {fuzzer.writes} writes", flush=True)


if __name__ == "__main__":
    main()
