#!/usr/bin/env python3
"""Runs a program on a Linux kernel that runs as a process (user-mode Linux), with simulated NPUs as its hardware.

The kernel is Debian's source package, unchanged; it is built once and kept in the user's cache folder. docs/kernel-ci.md
"""
import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) == signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until there is something to clean up
import argparse
import contextlib
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import coverage
import limits
import output

HERE = Path(__file__).resolve().parent
MODULE = HERE.parents[3] / "tests/kernel/registers"  # accesses every register, for tests
PINNED = ("linux-source-7.2", "7.2.13-1", "30a8c5fc63f9028a62e6d7b3f7f43bee67425dbce2a05fceba83f9b87c92083d")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
FIRST_WITH_ROCKET = (6, 18)
SKIPPED = 77  # exit code: no kernel can be obtained here
WRONG_CALL = 2  # exit code: invalid options
BOOT_LIMIT_S = 60
GONE_S = 3  # for a guest to end after its hardware has ended
END_LIMIT_S = 10  # for the hardware to end after a signal
# Put before a command: the kernel kills it when this program ends, even by SIGKILL. setpriv is in util-linux.
TIED = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


class Unavailable(Exception):
    """The kernel's source cannot be obtained."""


class Refused(Exception):
    """The simulated hardware refuses its options, and has printed why."""


def say(text):
    with contextlib.suppress(OSError):  # the reader has gone
        print(f"kernel: {text}", file=sys.stderr, flush=True)


def run(command, **options):
    """Returns what a command prints. If this program is ended meanwhile, the command and its children (make: compilers) are killed."""
    with subprocess.Popen([*TIED, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, start_new_session=True,
                          **options) as child:
        try:
            output, errors = child.communicate()
        finally:
            if child.returncode is None:
                kill_all(child)
    if child.returncode != 0:
        raise RuntimeError(f"{shlex.join(map(str, command))} failed:\n{(output + errors)[-3000:]}")
    return output


def apt_options(folder):
    """Returns options for separate package lists, which leave the system's lists unchanged."""
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    sources = folder / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] http://deb.debian.org/debian sid main\n", encoding="utf-8")
    return ["-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=-", "-o", f"Dir::State::lists={folder}/lists",
            "-o", f"Dir::Cache={folder}/cache", "-o", "APT::Sandbox::User=root", "-o", "APT::Update::Error-Mode=any"]


def newest_package(options):
    """Returns the newest source package of a kernel with all drivers, and its version."""
    names = re.findall(r"^(linux-source-(\d+)\.(\d+)) ", run(["apt-cache", *options, "search", "^linux-source-"]), re.MULTILINE)
    found = [((int(major), int(minor)), name) for name, major, minor in names if (int(major), int(minor)) >= FIRST_WITH_ROCKET]
    if not found:
        raise Unavailable("no package linux-source-6.18 or newer in Debian's list")
    name = max(found)[1]
    return name, re.search(r"Candidate: (\S+)", run(["apt-cache", *options, "policy", name])).group(1)


def download(work):
    """Downloads Debian's source package: the pinned version, else the newest."""
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
    """Lists the files of the kernel's configuration over tinyconfig: the project's, then the caller's."""
    ours = ["linux", *(["kasan"] if arguments.kasan else []), *(["coverage"] if arguments.coverage else [])]
    return [*(HERE / f"{one}.config" for one in ours), *(Path(one).resolve() for one in arguments.config)]


def digest_of(files):
    return hashlib.sha256(b"".join(one.read_bytes() for one in files)).hexdigest()[:8]


def module_of(vmlinux):
    """Returns the path of the module of tests/kernel/registers/ for a kernel built here.
    Its name depends on its source, so a change does not rebuild the kernel."""
    return vmlinux.with_name(f"{vmlinux.name}.registers-{digest_of(sorted(MODULE.glob('*')))}.ko")


@contextlib.contextmanager
def configured(source, folder, configuration):
    """Configures a source. Returns a folder for the work, the first words of each make command, and the source's folder."""
    with own_folder("build-", folder) as work:
        if source is None:
            say("fetching Debian's kernel source (164 MB)")
            source = unpack(download(work), work)
        out = work / "out"
        out.mkdir()
        make = ["make", "-C", source, "ARCH=um", f"O={out}"]
        run([*make, "tinyconfig"])
        shutil.copy(out / ".config", work / "tiny")
        run([source / "scripts/kconfig/merge_config.sh", "-O", out, "-m", work / "tiny", *configuration], env={**os.environ, "ARCH": "um"}, cwd=source)
        run([*make, "olddefconfig"])
        missing = [line for line in "\n".join(one.read_text() for one in configuration).splitlines()
                   if line.endswith("=y") and line not in (out / ".config").read_text().splitlines()]
        if missing:
            raise RuntimeError(f"this kernel has no {', '.join(missing)}")
        yield work, make, source


def build_module(make, work, vmlinux):
    """Builds the module beside its kernel. It may fail for a user's tree or configuration: only its test then does not work."""
    try:
        run([*make, "modules_prepare"])
        module = shutil.copytree(MODULE, work / "module")
        run([*make, "KBUILD_MODPOST_WARN=1", f"M={module}", "modules"])  # names are resolved when the module is loaded
        for older in vmlinux.parent.glob(f"{vmlinux.name}.registers-*"):
            older.unlink()
        shutil.copy(module / "registers.ko", module_of(vmlinux))
    except (RuntimeError, OSError) as failure:
        say(f"no module for the test of registers: {str(failure).splitlines()[-1]}")


def build(source, target, configuration, is_counted):
    """Builds vmlinux from `source` to `target`. If lines are counted, copies the compiler's notes beside it."""
    with configured(source, target.parent, configuration) as (work, make, source):
        say(f"building {source.name}: about 5 minutes of two cores, once")
        counted = [f"GCOV_PROFILE_{file.stem}.o=y" for file in coverage.sources(source)] if is_counted else []
        run([*make, *counted, f"-j{os.cpu_count()}", "vmlinux"])
        build_module(make, work, target)
        coverage.keep_notes(work / "out", target)
        (work / "out/vmlinux").rename(target)


def kernel_of(arguments):
    """Returns the path of the kernel. Builds it if it does not exist."""
    if arguments.vmlinux:
        return Path(arguments.vmlinux).absolute()
    folder = limits.cache_folder()
    source = Path(arguments.source).resolve() if arguments.source else None
    configuration = fragments(arguments)
    name = "-".join([source.name if source else PINNED[1], *(one.stem for one in configuration[1:]), digest_of(configuration)])
    target = folder / f"vmlinux-{name}"
    is_there = limits.is_whole(target)
    if not is_there and target.exists():
        say(f"{target} is no whole program that may be run")
    if arguments.built and not is_there:
        raise Unavailable(f"no {target}; ./x kernel builds it")
    if not is_there or arguments.build or (source and not arguments.built):
        with alone(folder, f"{name}.lock"):
            if arguments.build or source or not limits.is_whole(target):
                build(source, target, configuration, bool(arguments.coverage))
    elif arguments.module and not module_of(target).is_file():
        with configured(source, folder, configuration) as (work, make, _):
            build_module(make, work, target)
    return target


INIT = """#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /mnt
mount -t debugfs debug /sys/kernel/debug 2>/dev/null; mount -t tracefs trace /sys/kernel/tracing 2>/dev/null; mkdir -p /dev/shm; mount -t tmpfs shm /dev/shm
stty -onlcr 2>/dev/null
echo "{marker}"
export HOME=/mnt XDG_CACHE_HOME=/mnt/cache XDG_STATE_HOME=/mnt/state PATH={path}
{environment}
cd {directory}
{program} < /dev/null 2> {run}/stderr
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


ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def end(number, _frame):
    """Ends this program with its clean-up, which a second signal does not interrupt."""
    for one in ENDING:
        signal.signal(one, signal.SIG_IGN)
    raise SystemExit(128 + number)


@contextlib.contextmanager
def held():
    """Delays signals while a process is started, so that it is known, and killed, when they arrive."""
    caught = []
    before = {one: signal.getsignal(one) for one in ENDING if signal.getsignal(one) == end}
    for one in before:
        signal.signal(one, lambda number, _frame: caught.append(number))
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        if caught:
            end(caught[0], None)


@contextlib.contextmanager
def own_folder(prefix, where=None):
    """Creates a folder that is removed however this program ends: a separate process waits for the end."""
    with held():
        folder = tempfile.mkdtemp(prefix=prefix, dir=where)
        reaper = subprocess.Popen(["sh", "-c", 'cat; rm -rf -- "$1"', "sh", folder], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, start_new_session=True, cwd="/")
    try:
        yield Path(folder)
    finally:
        with held():
            reaper.stdin.close()
            reaper.wait()


@contextlib.contextmanager
def alone(folder, name):
    """Lets one process at a time build a kernel."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / name, "w", encoding="utf-8")
    except OSError as why:
        raise RuntimeError(f"{folder}: {why.strerror}: kernels are kept there; set XDG_CACHE_HOME to another folder") from why
    with file as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another ./x kernel builds this kernel; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def hardware(arguments, folder):
    """Runs the simulated chips for the duration of the block. Their output goes to standard error."""
    if not os.access(arguments.device, os.X_OK):
        raise RuntimeError(f"{arguments.device}: no program is there; ./x build makes it")
    tree = folder / "board.dts"
    command = [*TIED, Path(arguments.device).absolute(), *(value for chip in arguments.chip for value in ("--chip", chip)), "--folder", folder,
               "--device-tree", tree, "--guests", str(arguments.guests)]
    for name in ("cores", "fault", "record", "clock"):
        if getattr(arguments, name):
            command += [f"--{name}", str(getattr(arguments, name))]
    device = None
    try:
        with open(folder / "device.log", "wb") as log, held():
            device = subprocess.Popen([*command, *(["--trace"] if arguments.trace else [])], stderr=log, stdin=subprocess.DEVNULL)
        if not wait_for(lambda: (folder / "bus").exists() and tree.exists(), BOOT_LIMIT_S, lambda: device.poll() is None):
            raise Refused("the simulated hardware did not start")
        yield device
    finally:
        with held():
            if device is not None:
                end_device(device, bool(arguments.record))
                with contextlib.suppress(OSError):
                    output.write_all(sys.stderr, (folder / "device.log").read_bytes())


def end_device(device, records):
    """Ends the device. If it writes a capture, it first gets time to end by itself, since its guest has ended."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        device.wait(END_LIMIT_S if records else 0)
    if device.poll() is None:
        device.send_signal(signal.SIGTERM)
    try:
        device.wait(END_LIMIT_S)
    except subprocess.TimeoutExpired:
        say(f"the simulated hardware did not end within {END_LIMIT_S} s, and was killed")
        device.kill()
    device.wait()
    if device.returncode < 0 and device.returncode not in (-signal.SIGTERM, -signal.SIGKILL):
        say(f"the simulated hardware crashed (signal {-device.returncode})")


def boot(arguments, kernel, folder, device):
    """Boots the kernel. Returns the program's exit code, or None, and why there is none. `device`: the process of the hardware."""
    environment = [f"export {name}={shlex.quote(value)}" for name, value in os.environ.items()
                   if re.fullmatch(r"SKILLET_\w+", name, re.ASCII)]
    init = folder / "init"
    init.write_text(INIT.format(marker=output.MARKER.decode(), path=shlex.quote(os.environ.get("PATH", os.defpath)), environment="\n".join(environment), directory=shlex.quote(os.getcwd()),
                                program=quoted(arguments.program), run=folder,
                                at_end=coverage.COPY_OUT.format(run=folder) if arguments.coverage else ""), encoding="utf-8")
    init.chmod(0o700)
    machine = passed = None
    is_done = False
    try:
        run(["dtc", "-q", "-O", "dtb", "-o", folder / "board.dtb", folder / "board.dts"])
        quiet = [] if arguments.console else ["quiet", "loglevel=1"]
        with held():
            machine = subprocess.Popen([*TIED, kernel, f"mem={arguments.memory}M", f"dtb={folder}/board.dtb", f"uml_dir={folder}/uml", "rootfstype=hostfs", "rw",
                                        f"init={init}", "con=null", "con0=fd:0,fd:1", "console=tty0", *quiet],
                                       stdin=subprocess.DEVNULL, stdout=None if arguments.console else subprocess.PIPE,
                                       stderr=subprocess.STDOUT, start_new_session=True, env=environment_of(arguments))
        passed = output.Output(machine, folder / "stderr", arguments.console)
        ended = []

        def goes_on():
            if device.poll() == 0 and not ended:  # it ended because the guest did, which ends too; or a signal ended it
                ended.append(time.monotonic() + GONE_S)
            return machine.poll() is None and not device.poll() and not (ended and time.monotonic() > ended[0])

        wait_for(lambda: passed.failure or (folder / "code").exists(), arguments.limit, goes_on)
        result = outcome(arguments, folder, machine, device)
        kill_all(machine)
        passed.end()
        is_done = True
        return passed.why() if passed.failure else result
    finally:
        with held():
            if machine is not None:
                kill_all(machine)
        if passed is not None and not is_done:
            passed.end(1)  # this program is ending, and does not wait for a slow reader


def environment_of(arguments):
    """Returns the environment of the guest's kernel: the place of its memory, and its clock."""
    clock = {}
    if arguments.slow > 1:
        clock = {"LD_PRELOAD": str(Path(arguments.device).absolute().with_name("libskillet-guest-clock.so")), "GUEST_CLOCK": str(arguments.slow)}
    return {**os.environ, **clock, "TMPDIR": limits.memory_place(arguments.memory) or tempfile.gettempdir()}


def outcome(arguments, folder, machine, device):
    """Returns the exit code of the program, or None, and why there is none."""
    if (folder / "code").exists():
        code = (folder / "code").read_text().strip()
        return (int(code), "") if code.isdecimal() else (None, f"{folder}: the exit code of the program could not be written; is the disk full?")
    if device.poll():
        return None, f"the simulated hardware ended before the program (exit code {device.poll()})"
    if machine.poll() is not None:
        return None, "the kernel ended before the program; --console shows what it said"
    if device.poll() is not None:
        return None, "the simulated hardware was told to end before the program"
    late = "what follows the program" if (folder / "code.partial").exists() else "the program"
    return None, f"{late} did not end within {arguments.limit:g} s (--limit)"


def kill_all(machine):
    """Kills the guest: powering off runs drivers' code that may hang, and nothing needs to be saved."""
    try:
        os.killpg(machine.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    machine.wait()


def complaints(folder):
    """Returns the lines of the kernel's log that report a fault or a memory leak in it."""
    lines = [line for name in ("dmesg", "leaks") if (folder / name).exists() for line in (folder / name).read_text(errors="replace").splitlines()]
    return [line for line in lines if re.search(r"BUG:|WARNING:|Oops|KASAN|^unreferenced object", line)]


def read_options():
    parser = argparse.ArgumentParser(prog="./x kernel", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chip", action="append", help="a311d (default), imx8mp, rk3588, imx93, or another that these drivers drive; with ,quirk=NAME; "
                                                        "several times: several chips")
    parser.add_argument("--cores", type=limits.whole_number(*limits.CORES), help="of each chip at most so many")
    parser.add_argument("--fault", help="KIND@JOB[,...]: hang, lost_interrupt, spurious_interrupt, bus_error, page_fault, power_loss")
    parser.add_argument("--clock", type=limits.above_0(float), metavar="MHZ", help="a job takes as long as the chip is predicted to need at this clock")
    parser.add_argument("--slow", type=limits.whole_number(*limits.SLOW), default=1, metavar="N", help="the guest's clock runs N times slower than the host's: for jobs that a "
                                                                                  "simulator computes for longer than the 500 ms of a driver")
    parser.add_argument("--record", metavar="FILE", type=os.path.abspath, help="a capture of the jobs as the hardware reads them, for skillet decode and diff")
    parser.add_argument("--trace", action="store_true", help="each access to a register, on standard error")
    parser.add_argument("--console", action="store_true", help="all that the kernel says, too")
    parser.add_argument("--build", action="store_true", help="build the kernel anew")
    parser.add_argument("--built", action="store_true", help="do not build a kernel: without one, skip (exit code 77)")
    parser.add_argument("--source", metavar="DIR", help="a kernel tree of yours instead of Debian's")
    parser.add_argument("--config", metavar="FILE", action="append", default=[], help="more of the kernel's configuration; several times: all")
    parser.add_argument("--kasan", action="store_true", help="with the kernel's address sanitizer")
    parser.add_argument("--coverage", metavar="FILE", help="add to FILE which functions and lines of the drivers ran (JSON), and print it")
    parser.add_argument("--vmlinux", help="a kernel that is built already")
    parser.add_argument("--memory", type=limits.megabytes, default="1G", help="of the guest (1G)")
    parser.add_argument("--limit", type=limits.above_0(float), default=3600, metavar="S", help="seconds until the guest is stopped (3600)")
    parser.add_argument("--device", default="build/release/src/lab/mmio/skillet-npu-device", help=argparse.SUPPRESS)
    parser.add_argument("--module", action="store_true", help=argparse.SUPPRESS)  # builds the module of tests/kernel/registers/ for the existing kernel
    parser.add_argument("--guests", type=int, default=1, help=argparse.SUPPRESS)  # number of guests after which the device ends
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # checks the options only
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM", help="runs on the host's files, without input; its exit code is ours")
    try:
        given = shlex.split(os.environ.get("SKILLET_KERNEL_OPTIONS", ""))
    except ValueError as wrong:
        parser.error(f"SKILLET_KERNEL_OPTIONS: {wrong}")
    arguments = parser.parse_args(given + sys.argv[1:])
    arguments.chip = arguments.chip or ["a311d"]
    arguments.program = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    return arguments


def use(arguments, folder):
    """Boots the kernel and reports its faults. Returns the exit code of the program, or of this one."""
    with hardware(arguments, folder) as device:  # first: it validates the names of chips
        kernel = kernel_of(arguments)
        code, why = boot(arguments, kernel, folder, device)
    bad = complaints(folder)
    has_lost = any("virtio_pcidev" in line for line in bad) or re.search(r"[1-9]\d* of them nested", (folder / "device.log").read_text(errors="replace"))
    if code is not None and arguments.coverage:
        print("\n".join(coverage.table(coverage.update(arguments.coverage, kernel, folder / "counts"))), file=sys.stderr)
    for line in bad:
        say(f"the kernel says: {line}")
    if has_lost:
        say("the bus lost a read: this boot says nothing about a driver; repeat it")
    if why:
        say(why)
    return 1 if code is None else code


def main():
    for one in ENDING:
        if signal.getsignal(one) != signal.SIG_IGN:  # stay ignored under nohup
            signal.signal(one, end)
    arguments = read_options()
    wrong = list(limits.wrong_options(arguments))
    for line in wrong:
        say(line)
    if wrong or arguments.check:
        return WRONG_CALL if wrong else 0
    try:
        if not arguments.program:
            say(f"{kernel_of(arguments)} is ready; ./x kernel -- PROGRAM runs a program on it")
            return 0
        with own_folder("skillet-kernel-") as folder:
            return use(arguments, folder)
    except Unavailable as why:
        say(f"skipped: there is no kernel: {why}")
        return SKIPPED
    except Refused as why:
        say(str(why))
        return WRONG_CALL
    except OSError as failure:
        say(f"{failure.filename}: {failure.strerror}" if failure.filename else str(failure))
        return 1
    except RuntimeError as failure:
        say(str(failure))
        return 1


if __name__ == "__main__":
    sys.exit(main())
