"""`skillet dump`: what Mesa's rocket driver writes with ROCKET_DEBUG=dump_bos, as a capture.

The files are mesa-KIND-A-B.bin: KIND is input, output, weights, biases or regcmd. A regcmd file has the commands of the tasks of an operation, one after
the other, each list at a multiple of 64 bytes. Where the buffers were is in the commands.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from skillet._paths import command_path
from skillet._verb import verb_parser, would_overwrite

FINE, CANNOT_BEGIN = 0, 2
FILE = re.compile(r"mesa-(input|output|weights|biases|regcmd)-(\d+)-(\d+)\.bin$")
LIST_BYTES, PAGE = 64, 4096  # lists begin at multiples of the one, buffers at multiples of the other
ENABLE = (0x0081, 0x0008)  # target and register of the last command of a list
NEXT = (0x0101, 0x0010)  # of the one with the address of the next list
MOST_COMMANDS = 4096  # of a list
# The field that has the address of each kind.
ADDRESS = {"input": "cna.feature_data_addr.feature_base_addr", "weights": "cna.dcomp_addr0.decompress_addr0", "biases": "dpu_rdma.bs_base_addr.bs_base_addr",
           "output": "dpu.dst_base_addr.dst_base_addr", "operand": "dpu_rdma.ew_base_addr.ew_base_addr"}  # operand: what another job wrote; it has no file
CHIPS = {"rk3588": "rockchip,rk3588-rknn-core"}


class Unusable(Exception):
    """What is said to who called it."""


@dataclass
class Buffer:
    address: int
    file: Path
    is_zero: bool = False  # its contents are not those before the jobs
    size: int = 0  # that something else there has; the contents are of the file all the same

    @property
    def end(self) -> int:
        return self.address + max(self.size, self.file.stat().st_size)


@dataclass
class Job:
    files: dict[str, Path]  # by kind
    lists: list[tuple[int, int]] = field(default_factory=list)  # offset in the regcmd file, and how many commands
    address: int = 0  # of the regcmd file; 0: it does not say
    places: dict[str, int] = field(default_factory=dict)  # of the other kinds


def jobs_of(folder: Path) -> list[Job]:
    """In the order of their numbers."""
    found: dict[tuple[int, int], dict[str, Path]] = {}
    for file in sorted(folder.iterdir()):
        if match := FILE.match(file.name):
            found.setdefault((int(match[2]), int(match[3])), {})[match[1]] = file
    out = [Job(files) for _, files in sorted(found.items()) if "regcmd" in files]
    if not out:
        raise Unusable(f"{folder}: has no file mesa-regcmd-A-B.bin; ROCKET_DEBUG=dump_bos makes Mesa write them")
    for job in out:
        job.lists, job.address = read_lists(job.files["regcmd"])
    return out


def read_lists(file: Path) -> tuple[list[tuple[int, int]], int]:
    data, lists, at, address = file.read_bytes(), [], 0, 0
    if not data or len(data) % 8:
        raise Unusable(f"{file}: {len(data)} bytes are no 64-bit commands")
    commands = [(value >> 48, value & 0xFFFF, value >> 16 & 0xFFFFFFFF) for (value,) in struct.iter_unpack("<Q", data)]
    while at < len(commands) and any(value for one in commands[at:] for value in one):
        end = next((i for i in range(at, min(at + MOST_COMMANDS, len(commands))) if commands[i][:2] == ENABLE), None)
        if end is None:
            raise Unusable(f"{file}: the list at byte {8 * at} has no command that starts it")
        lists.append((8 * at, end + 1 - at))
        after = -(-8 * (end + 1) // LIST_BYTES) * LIST_BYTES
        following = [value for target, register, value in commands[at:end] if (target, register) == NEXT and value]
        if following and following[0] < after:
            raise Unusable(f"{file}: the list at byte {8 * at} goes on at {following[0]:#x}, which is not behind it")
        address = following[0] - after if following else address
        at = after // 8
    if not lists:
        raise Unusable(f"{file}: all of its commands are zero")
    return lists, address


def write_capture(folder: Path, chip: str, jobs: list[Job], buffers: list[Buffer], uses: list[tuple[list[int], list[int]]]) -> None:
    """capture.json and the files that it names. USES: of each job, the addresses of what it reads and what it writes."""
    folder.mkdir(parents=True, exist_ok=True)
    handles = {one.address: at + 1 for at, one in enumerate(buffers)}
    rows = []
    for one in buffers:
        row: dict[str, object] = {"handle": handles[one.address], "size": one.end - one.address, "address": one.address}
        if one.is_zero:
            row["content"] = "zero"
        else:
            row["file"] = f"bo_{handles[one.address]}_0.bin"
            shutil.copyfile(one.file, folder / f"bo_{handles[one.address]}_0.bin")
        rows.append(row)
    made = [{"job": at, "in_bos": [handles[one] for one in reads], "out_bos": [handles[one] for one in writes],
             "tasks": [{"regcmd": job.address + offset, "regcmd_count": count} for offset, count in job.lists]}
            for at, (job, (reads, writes)) in enumerate(zip(jobs, uses))]
    capture = {"device": {"dev": "rocket", "node": "mesa-dump", "compatible": CHIPS[chip]}, "submits": [{"kind": "rocket", "jobs": made, "buffers": rows}]}
    (folder / "capture.json").write_text(json.dumps(capture, indent=1) + "\n", encoding="utf-8")


def find_places(jobs: list[Job], chip: str) -> None:
    """Where the commands say that the buffers are: the lowest address that a job has for each."""
    with tempfile.TemporaryDirectory() as scratch:
        at = 1 << 31  # for now: out of the way
        streams = []
        for job in jobs:
            streams.append(Job(job.files, job.lists, at))
            at += -(-job.files["regcmd"].stat().st_size // PAGE) * PAGE
        write_capture(Path(scratch), chip, streams, [Buffer(one.address, one.files["regcmd"]) for one in streams], [([], [])] * len(jobs))
        done = subprocess.run([command_path(), "decode", "--json", "--", scratch], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unusable(done.stderr.strip().replace(scratch, "the commands").removeprefix("skillet: "))
    owners = [job for job in jobs for _ in job.lists]
    for one in json.loads(done.stdout)["submissions"][0]["fields"]:
        for kind, name in ADDRESS.items():
            if one["name"] == name and not one.get("unused") and one["operation"] < len(owners):
                places = owners[one["operation"]].places
                places[kind] = min(places.get(kind, one["address"]), one["address"])


def layout(jobs: list[Job]) -> tuple[list[Buffer], list[tuple[list[int], list[int]]]]:
    """The buffers by address. A tensor between two jobs is one buffer; it is zero before they run, as what a job writes is."""
    found: dict[int, Buffer] = {}
    written: set[int] = set()
    for job in jobs:
        for kind in ("weights", "biases", "input", "output"):
            if kind not in job.places or kind not in job.files:
                continue
            at, file = job.places[kind], job.files[kind]
            is_zero = kind == "output" or at in written
            known = found.setdefault(at, Buffer(at, file, is_zero))
            known.size = max(known.size, file.stat().st_size)
        written.update(job.places[kind] for kind in job.places if kind == "output")
    uses = [([job.places[kind] for kind in ("input", "operand") if job.places.get(kind) in found],
             [job.places[kind] for kind in ("output",) if job.places.get(kind) in found]) for job in jobs]
    above = max([one.end for one in found.values()] + [PAGE])
    for job in jobs:
        if job.address == 0:
            job.address = -(-above // PAGE) * PAGE
            above = job.address + job.files["regcmd"].stat().st_size
        found[job.address] = Buffer(job.address, job.files["regcmd"])
    out = sorted(found.values(), key=lambda one: one.address)
    for one, other in zip(out, out[1:]):
        if one.end > other.address:
            raise Unusable(f"{one.file.name} at {one.address:#x} and {other.file.name} at {other.address:#x} overlap: they are not of one run")
    return out, uses


def parser() -> argparse.ArgumentParser:
    out = verb_parser("dump",
                      description="Makes a capture of what Mesa's rocket driver wrote with ROCKET_DEBUG=dump_bos. What jobs write is zero in it.",
                      epilog="Example:\n  ROCKET_DEBUG=dump_bos PROGRAM   (writes mesa-*.bin to its folder)\n  skillet dump . -o job\n"
                             "  skillet decode job\n\nExit codes: 0 the capture is written; 2 it could not begin.")
    out.add_argument("folder", metavar="DIR", type=Path, help="folder with the files mesa-*.bin")
    out.add_argument("--chip", default="rk3588", choices=sorted(CHIPS), help="what the program ran on (rk3588)")
    out.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="folder of the capture: skillet decode, replay and diff take it")
    return out


def main(words: list[str] | None = None) -> int:
    args = parser().parse_args(words)
    try:
        jobs = jobs_of(args.folder)
        read = [args.folder, *(file for job in jobs for file in job.files.values())]
        if any(would_overwrite(one, read) for one in (args.output, args.output / "capture.json", *args.output.glob("bo_*.bin"))):
            raise Unusable(f"-o {args.output}: that is what is to be read")
        find_places(jobs, args.chip)
        buffers, uses = layout(jobs)
        write_capture(args.output, args.chip, jobs, buffers, uses)
    except (OSError, ValueError, Unusable) as cause:
        print(f"dump: {cause}", file=sys.stderr)
        return CANNOT_BEGIN
    print(f"{len(jobs)} jobs, {sum(len(job.lists) for job in jobs)} tasks, {len(buffers)} buffers in {args.output}")
    return FINE


if __name__ == "__main__":
    sys.exit(main())
