#!/usr/bin/env python3
"""Runs a program on a Linux kernel that runs as a process (user-mode Linux), with simulated NPUs as its hardware.

The kernel is Debian's source package, unchanged; it is built once and kept in the user's cache folder. docs/kernel-ci.md
"""
import argparse
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import coverage

HERE = Path(__file__).resolve().parent
PINNED = ("linux-source-7.2", "7.2.13-1", "30a8c5fc63f9028a62e6d7b3f7f43bee67425dbce2a05fceba83f9b87c92083d")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
FIRST_WITH_ROCKET = (6, 18)
SKIPPED = 77  # exit code: there is no kernel to be had here
BOOT_LIMIT_S = 60


class Unavailable(Exception):
    """The kernel's source cannot be had."""


def say(text):
    print(f"kernel: {text}", file=sys.stderr, flush=True)


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def apt_options(folder):
    """A list of packages of its own, which leaves the system's alone."""
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    sources = folder / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] http://deb.debian.org/debian sid main\n", encoding="utf-8")
    return ["-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=-", "-o", f"Dir::State::lists={folder}/lists",
            "-o", f"Dir::Cache={folder}/cache", "-o", "APT::Sandbox::User=root", "-o", "APT::Update::Error-Mode=any"]


def newest_package(options):
    """The newest package of a kernel's source that has all drivers, and its version."""
    names = re.findall(r"^(linux-source-(\d+)\.(\d+)) ", run(["apt-cache", *options, "search", "^linux-source-"]), re.MULTILINE)
    found = [((int(major), int(minor)), name) for name, major, minor in names if (int(major), int(minor)) >= FIRST_WITH_ROCKET]
    if not found:
        raise Unavailable("no package linux-source-6.18 or newer in Debian's list")
    name = max(found)[1]
    return name, re.search(r"Candidate: (\S+)", run(["apt-cache", *options, "policy", name])).group(1)


def download(work):
    """Debian's source package: the pinned one, else the newest."""
    options = apt_options(work / "apt")
    try:
        run(["apt-get", *options, "update"])
        name, version = PINNED[:2] if PINNED[1] in run(["apt-cache", *options, "policy", PINNED[0]]) else newest_package(options)
        run(["apt-get", *options, "download", f"{name}={version}"], cwd=work)
    except (RuntimeError, OSError) as failure:
        raise Unavailable(str(failure).splitlines()[-1]) from failure
    package = next(work.glob("linux-source-*.deb"))
    if (name, version) == PINNED[:2]:
        digest = run(["sha256sum", package]).split()[0]
        if digest != PINNED[2]:
            raise RuntimeError(f"{package.name}: SHA-256 {digest}, not {PINNED[2]}")
    else:
        say(f"{PINNED[0]} {PINNED[1]} is not in Debian's list any longer; taking {name} {version}")
    return package


def unpack(package, work):
    inner = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
    middle = subprocess.Popen(["tar", "-xO", "--wildcards", "./usr/src/linux-source-*.tar.xz"], stdin=inner.stdout, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-xJ", "-C", work], stdin=middle.stdout, check=True)
    return next(path for path in work.iterdir() if (path / "Kconfig").is_file())


def fragments(arguments):
    """Files of the kernel's configuration, over tinyconfig: ours, then the caller's."""
    ours = ["linux", *(["kasan"] if arguments.kasan else []), *(["coverage"] if arguments.coverage else [])]
    return [*(HERE / f"{one}.config" for one in ours), *(Path(one).resolve() for one in arguments.config)]


def build(source, target, configuration, is_counted):
    """vmlinux of the source in `source`, put at `target`; where lines are counted, the compiler's notes beside it."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as folder:
        work = Path(folder)
        if source is None:
            say("fetching Debian's kernel source (164 MB)")
            source = unpack(download(work), work)
        out = work / "out"
        out.mkdir()
        make = ["make", "-C", source, "ARCH=um", f"O={out}"]
        say(f"building {source.name}: about 5 minutes of two cores, once")
        run([*make, "tinyconfig"])
        shutil.copy(out / ".config", work / "tiny")
        run([source / "scripts/kconfig/merge_config.sh", "-O", out, "-m", work / "tiny", *configuration], env={**os.environ, "ARCH": "um"}, cwd=source)
        run([*make, "olddefconfig"])
        missing = [line for line in "\n".join(one.read_text() for one in configuration).splitlines()
                   if line.endswith("=y") and line not in (out / ".config").read_text().splitlines()]
        if missing:
            raise RuntimeError(f"this kernel has no {', '.join(missing)}")
        counted = [f"GCOV_PROFILE_{file.stem}.o=y" for file in coverage.sources(source)] if is_counted else []
        run([*make, *counted, f"-j{os.cpu_count()}", "vmlinux"])
        coverage.keep_notes(out, target)
        partial = target.with_suffix(".partial")
        shutil.copy(out / "vmlinux", partial)
        partial.rename(target)


def kernel_of(arguments):
    """Path of the kernel, built where it is not there yet."""
    if arguments.vmlinux:
        return Path(arguments.vmlinux)
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "skillet" / "kernel"
    folder.mkdir(parents=True, exist_ok=True)
    source = Path(arguments.source).resolve() if arguments.source else None
    configuration = fragments(arguments)
    digest = hashlib.sha256(b"".join(one.read_bytes() for one in configuration)).hexdigest()[:8]
    name = "-".join([source.name if source else PINNED[1], *(one.stem for one in configuration[1:]), digest])
    target = folder / f"vmlinux-{name}"
    if arguments.built and not target.is_file():
        raise Unavailable(f"no {target}; ./x kernel builds it")
    if not target.is_file() or arguments.build or (source and not arguments.built):
        build(source, target, configuration, bool(arguments.coverage))
    return target


MARKER = "[the program begins]"
INIT = """#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /mnt
mount -t debugfs debug /sys/kernel/debug 2>/dev/null; mkdir -p /dev/shm; mount -t tmpfs shm /dev/shm
stty -onlcr 2>/dev/null
echo "{marker}"
export HOME=/mnt XDG_CACHE_HOME=/mnt/cache XDG_STATE_HOME=/mnt/state PATH={path}
{environment}
cd {directory}
{program} 2> {run}/stderr
echo $? > {run}/code.partial
{at_end}
leaks=/sys/kernel/debug/kmemleak
if [ -e $leaks ]; then echo scan > $leaks; sleep 6; echo scan > $leaks; cat $leaks > {run}/leaks; fi
dmesg > {run}/dmesg
mv {run}/code.partial {run}/code
while :; do sleep 1000; done
"""


def quoted(values):
    return " ".join(shlex.quote(value) for value in values)


def wait_for(condition, seconds, alive):
    end = time.monotonic() + seconds
    while time.monotonic() < end and alive():
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def boot(arguments, kernel, folder):
    """Exit code of the program, or None where the kernel ended before it; what the device said goes to standard error."""
    environment = [f"export {name}={shlex.quote(value)}" for name, value in os.environ.items() if name.startswith("SKILLET_")]
    init = folder / "init"
    init.write_text(INIT.format(marker=MARKER, path=os.environ["PATH"], environment="\n".join(environment), directory=shlex.quote(os.getcwd()),
                                program=quoted(arguments.program), run=folder,
                                at_end=coverage.COPY_OUT.format(run=folder) if arguments.coverage else ""), encoding="utf-8")
    init.chmod(0o700)
    tree = folder / "board.dts"
    command = [arguments.device, *(value for chip in arguments.chip for value in ("--chip", chip)), "--folder", folder,
               "--device-tree", tree, "--guests", "1"]
    for name in ("cores", "fault"):
        if getattr(arguments, name):
            command += [f"--{name}", str(getattr(arguments, name))]
    with open(folder / "device.log", "wb") as log:
        device = subprocess.Popen([*command, *(["--trace"] if arguments.trace else [])], stderr=log, stdin=subprocess.DEVNULL)
    machine, pumps = None, []
    try:
        if not wait_for(lambda: (folder / "bus").exists() and tree.exists(), BOOT_LIMIT_S, lambda: device.poll() is None):
            return None
        run(["dtc", "-q", "-O", "dtb", "-o", folder / "board.dtb", tree])
        quiet = [] if arguments.console else ["quiet", "loglevel=1"]
        machine = subprocess.Popen([kernel, f"mem={arguments.memory}", f"dtb={folder}/board.dtb", f"uml_dir={folder}/uml", "rootfstype=hostfs", "rw",
                                    f"init={init}", "con=null", "con0=fd:0,fd:1", "console=tty0", *quiet],
                                   stdin=subprocess.DEVNULL, stdout=None if arguments.console else subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        pumps = [pump_errors(folder / "stderr", machine), *([] if arguments.console else [pump_console(machine)])]
        wait_for((folder / "code").exists, arguments.limit, lambda: machine.poll() is None)
        return int((folder / "code").read_text()) if (folder / "code").exists() else None
    finally:
        if machine is not None:
            kill_all(machine)
        for pump in pumps:
            pump.join()
        if device.poll() is None:
            device.send_signal(signal.SIGTERM)
        device.wait()
        sys.stderr.write((folder / "device.log").read_text(errors="replace"))


def started(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def pump_console(machine):
    """Prints what the program says: all after the line that its init begins with."""
    def pump():
        begun = False
        for line in machine.stdout:
            if begun:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            begun = begun or MARKER.encode() in line

    return started(pump)


def pump_errors(path, machine):
    """Copies what the program writes to its standard error, which is a file of the host, to ours."""
    def pump():
        with open(path, "rb") as errors:
            ended = False
            while not ended:
                ended = machine.poll() is not None
                sys.stderr.buffer.write(errors.read())
                sys.stderr.buffer.flush()
                time.sleep(0 if ended else 0.05)

    path.touch()
    return started(pump)


def kill_all(machine):
    """The kernel's power off runs code of drivers that may stop it; nothing is to be saved."""
    try:
        os.killpg(machine.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    machine.wait()


def complaints(folder):
    """Lines of the kernel's log that tell of a fault in it, and memory that it lost."""
    lines = [line for name in ("dmesg", "leaks") if (folder / name).exists() for line in (folder / name).read_text(errors="replace").splitlines()]
    return [line for line in lines if re.search(r"BUG:|WARNING:|Oops|KASAN|^unreferenced object", line)]


def main():
    parser = argparse.ArgumentParser(prog="./x kernel", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", action="append", help="a311d (default), imx8mp, rk3588, imx93; with ,quirk=NAME; several times: several chips")
    parser.add_argument("--cores", type=int, help="of each chip at most so many")
    parser.add_argument("--fault", help="KIND@JOB[,...]: hang, lost_interrupt, spurious_interrupt, bus_error, page_fault, power_loss")
    parser.add_argument("--trace", action="store_true", help="each access to a register, on standard error")
    parser.add_argument("--console", action="store_true", help="all that the kernel says, too")
    parser.add_argument("--build", action="store_true", help="build the kernel anew")
    parser.add_argument("--built", action="store_true", help="do not build a kernel: without one, skip (exit code 77)")
    parser.add_argument("--source", metavar="DIR", help="a kernel tree of yours instead of Debian's")
    parser.add_argument("--config", metavar="FILE", action="append", default=[], help="more of the kernel's configuration; several times: all")
    parser.add_argument("--kasan", action="store_true", help="with the kernel's address sanitizer")
    parser.add_argument("--coverage", metavar="FILE", help="add to FILE which functions and lines of the drivers ran (JSON), and print it")
    parser.add_argument("--vmlinux", help="a kernel that is built already")
    parser.add_argument("--memory", default="1G", help="of the guest (1G)")
    parser.add_argument("--limit", type=float, default=3600, metavar="S", help="seconds until the guest is stopped (3600)")
    parser.add_argument("--device", default="build/release/src/lab/mmio/skillet-npu-device", help=argparse.SUPPRESS)
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM", help="runs on the host's files; its exit code is ours")
    arguments = parser.parse_args(shlex.split(os.environ.get("SKILLET_KERNEL_OPTIONS", "")) + sys.argv[1:])
    arguments.chip = arguments.chip or ["a311d"]
    arguments.program = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    try:
        kernel = kernel_of(arguments)
    except Unavailable as why:
        say(f"skipped: there is no kernel: {why}")
        return SKIPPED
    except RuntimeError as failure:
        say(str(failure))
        return 1
    if not arguments.program:
        say(f"{kernel} is ready; ./x kernel -- PROGRAM runs a program on it")
        return 0
    with tempfile.TemporaryDirectory(prefix="skillet-kernel-") as folder:
        code = boot(arguments, kernel, Path(folder))
        bad = complaints(Path(folder))
        has_lost = any("virtio_pcidev" in line for line in bad) or re.search(r"[1-9]\d* of them nested", (Path(folder) / "device.log").read_text(errors="replace"))
        if code is not None and arguments.coverage:
            print("\n".join(coverage.table(coverage.update(arguments.coverage, kernel, Path(folder) / "counts"))), file=sys.stderr)
    for line in bad:
        say(f"the kernel says: {line}")
    if has_lost:
        say("the bus lost a read: this boot says nothing about a driver; repeat it")
    if code is None:
        say("the kernel ended before the program; --console shows what it said")
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
