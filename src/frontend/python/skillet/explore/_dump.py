"""`skillet dump`: converts the files that Mesa's rocket driver writes with ROCKET_DEBUG=dump_bos to a capture.

The files are mesa-KIND-A-B.bin: KIND is input, output, weights, biases or regcmd. B is the operation's number for weights and biases,
the task's for regcmd. So each operation overwrites the regcmd files of the one before, and only a dump of one operation is complete.
The lists of its tasks are in one buffer, each at a multiple of 64 bytes; all but the last contain the address of the next. The commands
contain the addresses of the other buffers.
"""

from __future__ import annotations

import argparse
import json
import re
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
LIST_BYTES, PAGE = 64, 4096  # lists begin at multiples of LIST_BYTES, buffers at multiples of PAGE
ENABLE = (0x0081, 0x0008)  # target and register of the last command of a list
NEXT = (0x0101, 0x0010)  # of the command with the address of the next list
MOST_COMMANDS = 4096  # in a list
# The field with the address of each kind of buffer.
ADDRESS = {"input": "cna.feature_data_addr.feature_base_addr", "weights": "cna.dcomp_addr0.decompress_addr0", "biases": "dpu_rdma.bs_base_addr.bs_base_addr",
           "output": "dpu.dst_base_addr.dst_base_addr", "operand": "dpu_rdma.ew_base_addr.ew_base_addr"}  # operand: the second input of an addition, which has no file
WEIGHT_BYTES = "cna.weight_size0.weight_bytes"
ONE_ONLY = "Mesa uses the names again for each operation: dump a model of one operation, in an empty folder"
CHIPS = {"rk3588": "rockchip,rk3588-rknn-core"}


class Unusable(Exception):
    """An error to report to the user."""


@dataclass
class Buffer:
    address: int
    content: bytes
    is_zero: bool = False  # the contents before the job are unknown: write zeros
    size: int = 0  # at least so much belongs to the buffer, even if it has less contents
    name: str = ""  # name of its file

    @property
    def end(self) -> int:
        return self.address + max(self.size, len(self.content))


@dataclass
class Job:
    commands: bytes
    lists: list[tuple[int, int]]  # of each task: offset in the commands, and number of commands
    address: int = 0  # address of the commands; 0: unknown
    files: dict[str, Path] = field(default_factory=dict)  # files of the other kinds
    places: dict[str, int] = field(default_factory=dict)
    weight_bytes: int = 0


def job_of(folder: Path) -> Job:
    """Reads the files of one operation. Rejects files of several operations: they do not contain which of them belong together."""
    found: dict[str, dict[tuple[int, int], Path]] = {}
    for file in sorted(folder.iterdir()):
        if match := FILE.match(file.name):
            found.setdefault(match[1], {})[int(match[2]), int(match[3])] = file
    tasks = [file for _, file in sorted(found.pop("regcmd", {}).items())]
    if not tasks:
        raise Unusable(f"{folder}: has no file mesa-regcmd-A-B.bin; ROCKET_DEBUG=dump_bos makes Mesa write them")
    for kind, files in found.items():
        if len(files) > 1:
            raise Unusable(f"{folder}: has {len(files)} files mesa-{kind}-A-B.bin, so several operations wrote it, and the commands of most are overwritten. {ONE_ONLY}")
    out = joined(tasks)
    out.files = {kind: next(iter(files.values())) for kind, files in found.items()}
    return out


def joined(tasks: list[Path]) -> Job:
    """Joins the files of the tasks to one buffer of commands. Each task contains the address of the next."""
    out, goes_on = Job(b"", []), 0
    for at, file in enumerate(tasks):
        lists, after, following = read_lists(file)
        start = len(out.commands)
        if at and not goes_on:
            raise Unusable(f"{tasks[at - 1]}: is the last task of its operation, so {file.name} is of another one. {ONE_ONLY}")
        if out.address and following and following - after != out.address + start:
            raise Unusable(f"{file}: is at {following - after:#x}, and the task before goes on at {goes_on:#x}: they are of two operations. {ONE_ONLY}")
        out.address = out.address or (following - after - start if following else 0)
        out.lists += [(start + offset, count) for offset, count in lists]
        out.commands += file.read_bytes()[:after].ljust(after, b"\0")
        goes_on = following
    if goes_on:
        raise Unusable(f"{tasks[-1]}: goes on at {goes_on:#x}, and the file of the next task is missing")
    return out


def read_lists(file: Path) -> tuple[list[tuple[int, int]], int, int]:
    """Returns the lists in a file, the offset where the next list can begin, and its address if the last list continues there (else 0)."""
    data, lists, at, following = file.read_bytes(), [], 0, 0
    if not data or len(data) % 8:
        raise Unusable(f"{file}: {len(data)} bytes are no 64-bit commands")
    commands = [(value >> 48, value & 0xFFFF, value >> 16 & 0xFFFFFFFF) for (value,) in struct.iter_unpack("<Q", data)]
    while at < len(commands) and any(value for one in commands[at:] for value in one):
        end = next((i for i in range(at, min(at + MOST_COMMANDS, len(commands))) if commands[i][:2] == ENABLE), None)
        if end is None:
            raise Unusable(f"{file}: the list at byte {8 * at} has no command that starts it")
        lists.append((8 * at, end + 1 - at))
        after = -(-8 * (end + 1) // LIST_BYTES) * LIST_BYTES
        following = next((value for target, register, value in commands[at:end] if (target, register) == NEXT and value), 0)
        if following and following < after:
            raise Unusable(f"{file}: the list at byte {8 * at} goes on at {following:#x}, which is not behind it")
        at = after // 8
    if not lists:
        raise Unusable(f"{file}: all of its commands are zero")
    return lists, 8 * at, following


def write_capture(folder: Path, chip: str, job: Job, buffers: list[Buffer], reads: list[int], writes: list[int]) -> None:
    """Writes capture.json and the files that it names. READS and WRITES are addresses of buffers."""
    folder.mkdir(parents=True, exist_ok=True)
    handles = {one.address: at + 1 for at, one in enumerate(buffers)}
    rows = []
    for one in buffers:
        row: dict[str, object] = {"handle": handles[one.address], "size": one.end - one.address, "address": one.address}
        if one.is_zero:
            row["content"] = "zero"
        else:
            row["file"] = f"bo_{handles[one.address]}_0.bin"
            (folder / f"bo_{handles[one.address]}_0.bin").write_bytes(one.content)
        rows.append(row)
    made = {"job": 0, "in_bos": [handles[one] for one in reads], "out_bos": [handles[one] for one in writes],
            "tasks": [{"regcmd": job.address + offset, "regcmd_count": count} for offset, count in job.lists]}
    capture = {"device": {"dev": "rocket", "node": "mesa-dump", "compatible": CHIPS[chip]}, "submits": [{"kind": "rocket", "jobs": [made], "buffers": rows}]}
    (folder / "capture.json").write_text(json.dumps(capture, indent=1) + "\n", encoding="utf-8")


def find_places(job: Job, chip: str) -> None:
    """Reads the addresses of buffers from the commands: the lowest address that a task has for each kind."""
    with tempfile.TemporaryDirectory() as scratch:
        apart = Job(job.commands, job.lists, 1 << 31)  # temporary address above all others
        write_capture(Path(scratch), chip, apart, [Buffer(apart.address, job.commands)], [], [])
        done = subprocess.run([command_path(), "decode", "--json", "--", scratch], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unusable(done.stderr.strip().replace(scratch, "the commands").removeprefix("skillet: "))
    for one in json.loads(done.stdout)["submissions"][0]["fields"]:
        if one.get("unused"):
            continue
        if one["name"] == WEIGHT_BYTES:
            job.weight_bytes = max(job.weight_bytes, int(one["value"]))
        for kind, name in ADDRESS.items():
            if one["name"] == name:
                job.places[kind] = min(job.places.get(kind, one["address"]), one["address"])


def layout(job: Job) -> tuple[list[Buffer], list[int], list[int]]:
    """Returns the buffers by address, and the addresses that the job reads and writes. Buffers that it writes are zero before."""
    found: dict[int, Buffer] = {}
    for kind in ("weights", "biases", "input", "output"):
        if kind not in job.places:
            continue
        if kind not in job.files:
            raise Unusable(f"the commands have {kind} at {job.places[kind]:#x}, and there is no file mesa-{kind}-A-B.bin")
        at, content = job.places[kind], job.files[kind].read_bytes()
        if kind == "weights" and len(content) < job.weight_bytes:
            raise Unusable(f"{job.files[kind].name}: {len(content)} bytes, and the commands read {job.weight_bytes}: they are of two operations. {ONE_ONLY}")
        known = found.setdefault(at, Buffer(at, content, kind == "output", name=job.files[kind].name))
        known.size = max(known.size, len(content))
    if "operand" in job.places and job.places["operand"] not in found:
        raise Unusable(f"the commands add what is at {job.places['operand']:#x}, which is in no file: another operation made it. {ONE_ONLY}")
    reads, writes = ([job.places[kind] for kind in kinds if kind in job.places] for kinds in (("input", "operand"), ("output",)))
    if job.address == 0:
        job.address = -(-max([one.end for one in found.values()] + [PAGE]) // PAGE) * PAGE
    out = sorted([*found.values(), Buffer(job.address, job.commands, name="mesa-regcmd")], key=lambda one: one.address)
    for one, other in zip(out, out[1:]):
        if one.end > other.address:
            raise Unusable(f"{one.name} at {one.address:#x} and {other.name} at {other.address:#x} overlap: they are not of one run")
    return out, reads, writes


def parser() -> argparse.ArgumentParser:
    out = verb_parser("dump",
                      description="Makes a capture of what Mesa's rocket driver wrote with ROCKET_DEBUG=dump_bos of a model of one operation. What it writes is zero in it.",
                      epilog="Example:\n  ROCKET_DEBUG=dump_bos PROGRAM   (its model: one operation; writes mesa-*.bin to its folder)\n  skillet dump . -o job\n"
                             "  skillet decode job\n\nExit codes: 0 the capture is written; 2 it could not begin.")
    out.add_argument("folder", metavar="DIR", type=Path, help="folder with the files mesa-*.bin")
    out.add_argument("--chip", default="rk3588", choices=sorted(CHIPS), help="what the program ran on (rk3588)")
    out.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="folder of the capture: skillet decode, replay and diff take it")
    return out


def main(words: list[str] | None = None) -> int:
    args = parser().parse_args(words)
    try:
        job = job_of(args.folder)
        read = [args.folder, *args.folder.glob("mesa-*.bin")]
        if any(would_overwrite(one, read) for one in (args.output, args.output / "capture.json", *args.output.glob("bo_*.bin"))):
            raise Unusable(f"-o {args.output}: that is what is to be read")
        find_places(job, args.chip)
        buffers, reads, writes = layout(job)
        write_capture(args.output, args.chip, job, buffers, reads, writes)
    except (OSError, ValueError, Unusable) as cause:
        print(f"dump: {cause}", file=sys.stderr)
        return CANNOT_BEGIN
    print(f"1 job, {len(job.lists)} {'task' if len(job.lists) == 1 else 'tasks'}, {len(buffers)} buffers in {args.output}")
    return FINE


if __name__ == "__main__":
    sys.exit(main())
