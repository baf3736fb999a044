"""Checks the options of `./x kernel`: ranges of numbers, folders that the guest sees, space for its memory, complete kernels.

Used by kernel.py. Must not know how a kernel is built or booted.
"""
import argparse
import os
import re
import struct
import tempfile
from pathlib import Path

MEMORY_MB = (32, 65536)
SLOW = (1, 200)  # at 200 the boot takes 15 seconds
CORES = (1, 16)
ROOM_MB = 4  # for the files of a run, without the guest's memory
OF_THE_GUEST = ("/dev", "/proc", "/sys", "/mnt")  # the guest's own mounts, which hide the host's files


def above_0(kind):
    def read(text):
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not value > 0:
            raise argparse.ArgumentTypeError(f"{text}: not a number above 0")
        return value

    return read


def whole_number(least, most):
    def read(text):
        if not re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text}: must be a whole number from {least} to {most}")
        return int(text)

    return read


def megabytes(text):
    """Parses a size as the kernel's command line accepts it, to megabytes."""
    found = re.fullmatch(r"([1-9][0-9]{0,15})([KMG]?)", text, re.ASCII)
    size = int(found[1]) * {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[found[2]] if found else 0
    least, most = MEMORY_MB
    if not least << 20 <= size <= most << 20:
        raise argparse.ArgumentTypeError(f"{text}: must be a size from {least}M to {most >> 10}G")
    return size >> 20


def free_mb(folder):
    """Returns the free space for files that a program can map. None: the folder cannot hold a guest's memory."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return None if found.f_flag & os.ST_NOEXEC or not os.access(folder, os.W_OK) else found.f_bavail * found.f_frsize >> 20


def memory_places():
    """Lists folders for the guest's memory: the user's choice, then those that cause no writes to a disk."""
    return list(dict.fromkeys([*filter(None, [os.environ.get("TMPDIR")]), "/dev/shm", tempfile.gettempdir()]))


def memory_place(needed_mb):
    """Returns the first folder with space for the guest's memory, which is a file. None: there is none."""
    return next((one for one in memory_places() if (free_mb(one) or 0) >= needed_mb), None)


def hidden(folder):
    """Returns the mount of the guest that hides a folder of the host, or None."""
    real = os.path.realpath(folder)
    return next((one for one in OF_THE_GUEST if real == one or real.startswith(f"{one}/")), None)


def wrong_places(memory_mb):
    """Returns a sentence for each problem with the folders of a run."""
    try:
        temporary = tempfile.gettempdir()
    except OSError:
        yield "no folder for temporary files can be written; set TMPDIR"
        return
    remedy = "set TMPDIR to another folder, such as /var/tmp"
    if not re.fullmatch(r"[\w/.+@%=:~-]+", temporary, re.ASCII):
        yield f"TMPDIR {temporary!r}: the guest's kernel takes no names with spaces, quotes and the like; {remedy}"
    elif hidden(temporary):
        yield f"TMPDIR {temporary}: the guest has a {hidden(temporary)} of its own; {remedy}"
    else:
        room = os.statvfs(temporary).f_bavail * os.statvfs(temporary).f_frsize >> 20
        if room < ROOM_MB:
            yield f"TMPDIR {temporary}: {room} MB are free, and {ROOM_MB} MB are needed; {remedy}"
    try:
        where = os.getcwd()
    except OSError:
        yield "the current folder is gone; change to another one"
        return
    if hidden(where):
        yield f"the current folder {where}: the guest has a {hidden(where)} of its own; change to another one"
    if memory_place(memory_mb) is None:
        rooms = ", ".join(f"{one} has {free_mb(one) or 0} MB" for one in memory_places())
        yield f"--memory {memory_mb}M: {memory_mb} MB must be free for the guest's memory: {rooms}; set TMPDIR, or take less memory"


def is_whole(program):
    """Returns whether a file is a complete ELF program, with its section table at the end, or a script."""
    try:
        with open(program, "rb") as file:
            head = file.read(64)
            size = os.fstat(file.fileno()).st_size
    except OSError:
        return False
    if head[:2] == b"#!":
        return True
    if len(head) < 64 or head[:5] != b"\x7fELF\x02":
        return False
    table, entry_bytes, entries = struct.unpack_from("<Q", head, 0x28)[0], *struct.unpack_from("<HH", head, 0x3a)
    return 0 < table <= size - entry_bytes * entries and os.access(program, os.X_OK)


def wrong_options(arguments):
    """Returns a sentence for each problem with the options."""
    if arguments.vmlinux and not (Path(arguments.vmlinux).is_file() and os.access(arguments.vmlinux, os.X_OK)):
        yield f"--vmlinux {arguments.vmlinux}: no program is there"
    elif arguments.vmlinux and not is_whole(arguments.vmlinux):
        yield f"--vmlinux {arguments.vmlinux}: this is no whole program"
    if arguments.source and not (Path(arguments.source) / "Kconfig").is_file():
        yield f"--source {arguments.source}: no kernel's source is there"
    for file in arguments.config:
        if not os.access(file, os.R_OK) or not Path(file).is_file():
            yield f"--config {file}: there is no such file, or it cannot be read"
    if arguments.coverage and not Path(arguments.coverage).absolute().parent.is_dir():
        yield f"--coverage {arguments.coverage}: there is no such folder"
    if arguments.record and os.path.lexists(arguments.record):
        yield f"--record {arguments.record}: there is a file of that name"
    for name in ("fault", "coverage", "source", "vmlinux"):
        if getattr(arguments, name) == "":
            yield f"--{name}: is empty"
    if arguments.program:
        yield from wrong_places(arguments.memory)
    for name in ("source", "config", "kasan", "build"):
        if arguments.vmlinux and getattr(arguments, name):
            yield f"--vmlinux with --{name}: a kernel that is built already is not built anew"


def cache_folder():
    """Returns the folder in which kernels are kept."""
    if where := os.environ.get("XDG_CACHE_HOME"):
        return Path(where) / "skillet/kernel"
    try:
        return Path.home() / ".cache/skillet/kernel"
    except RuntimeError as why:
        raise RuntimeError("no home folder to keep a kernel in; set XDG_CACHE_HOME") from why
