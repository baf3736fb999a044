#!/usr/bin/env python3
"""Tests `skillet top`: it shows processes that run networks with the right number of jobs.

Whatever processes and /proc contain, it neither fails nor writes escape sequences.

usage: top_test.py SKILLET      run at the top of the source tree
"""
import contextlib
import json
import os
import pty
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import unittest.mock
from pathlib import Path

try:
    from jsonschema import Draft7Validator
except ImportError:
    Draft7Validator = None

SKILLET = str(Path(sys.argv.pop(1)).resolve())
ENV = {name: value for name, value in os.environ.items() if not name.startswith("SKILLET_")} | {"SKILLET_PARTITION": "all"}
FRAMES = [SKILLET, "run", "models/digits.tflite", "--raw", "gray", "--json", "--device"]
VIRTUAL = [SKILLET, "virtual", "--chip", "rk3588", "--"]
NOBODY = 65534
EVIL = b"\x1b[31m\x07evil\"\\\n\xff\xc2\x9b"


def top(*args):
    done = subprocess.run([SKILLET, "top", *args], capture_output=True, timeout=60, env=ENV)
    assert (done.returncode, done.stderr) == (0, b""), done
    text = done.stdout.decode()  # raises if it is not UTF-8
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), text
    return text


def uses(text, pid):
    """Returns the metrics of a process: {(metric, device, kind): (value, other labels)}."""
    found = {}
    for name, labels, value in re.findall(r"^skillet_npu_(\w+)\{(.*)\} (\S+)$", text, re.M):
        of = {key: said.replace('\\"', '"').replace("\\\\", "\\") for key, said in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)}
        if of.get("pid") == str(pid):
            found[name, of["device"], of["kind"]] = (float(value), of)
    return found


class Frames:
    """A process that runs a frame on demand."""

    def __init__(self, device, before=()):
        self.process = subprocess.Popen([*before, *FRAMES, device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait()

    def run(self, count):
        for _ in range(count):
            self.process.stdin.write(bytes(784))
            self.process.stdin.flush()
            assert self.process.stdout.readline()


class Page:
    """A memfd of this process with the contents of a page."""

    def __init__(self, content, name="skillet-use"):
        self.fd = os.memfd_create(name)
        os.write(self.fd, content)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)


def slot(device=b"sim:forged", model=b"m", numbers=(1, 5, 4, 3000, 0, 2048), chip=b"chip"):
    return struct.pack("<6Q64s32s112s", *numbers, device, chip, model)


def page(*slots, pid=None, magic=b"sk-use-2"):
    return (struct.pack("<8sQ", magic, os.getpid() if pid is None else pid).ljust(256, b"\0") + b"".join(slots)).ljust(8192, b"\0")


@contextlib.contextmanager
def page_of_a_child(content):
    """Yields a child process that holds the page that CONTENT() creates in it."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        with Page(content()):
            theirs.send(b"x")
            ours.close()
            theirs.recv(1)  # until the parent's end is closed
        os._exit(0)
    theirs.close()
    ours.recv(1)
    try:
        yield child
    finally:
        ours.close()
        os.waitpid(child, 0)


def forged():
    return {key: value for key, value in uses(top("--prometheus"), os.getpid()).items() if "forged" in key[1]}


class Seen(unittest.TestCase):
    def check_counts(self, frames, device, kind):
        def jobs():
            found = uses(top("--prometheus"), pid)
            self.assertGreater(found["busy_seconds_total", device, kind][0], 0)
            self.assertGreater(found["memory_bytes", device, kind][0], 0)
            value, labels = found["jobs_total", device, kind]
            self.assertEqual((labels["process"], labels.get("model")), ("skillet", None), "a counter that goes on with another model")
            _, labels = found["process_info", device, kind]
            self.assertEqual((labels["process"], labels["model"]), ("skillet", "digits"))
            return value
        frames.run(1)
        pid = frames.process.pid if kind == "simulated" else self.child_of(frames.process.pid)
        first = jobs()
        self.assertEqual(jobs(), first, "nothing ran")
        frames.run(1)
        of_a_run = jobs() - first
        self.assertGreater(of_a_run, 0)
        frames.run(7)
        self.assertEqual(jobs(), first + 8 * of_a_run)
        return of_a_run

    @staticmethod
    def child_of(pid):
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def test_a_simulated_chip(self):
        with Frames("sim:a311d") as frames:
            of_a_run = self.check_counts(frames, "sim:a311d", "simulated")
        said = subprocess.run([SKILLET, "compile", "models/digits.tflite", "--device", "sim:a311d", "--json"], capture_output=True, env=ENV)
        self.assertEqual(of_a_run, sum(part["jobs"] for part in json.loads(said.stdout)["parts"] if part.get("jobs")))
        self.assertEqual(uses(top("--prometheus"), frames.process.pid), {}, "it has ended")

    @unittest.skipIf("SANITIZED" in os.environ, "builds with sanitizers have no libraries to preload")
    def test_a_virtual_node(self):
        with Frames("/dev/accel/accel0", VIRTUAL) as frames:
            self.check_counts(frames, "/dev/accel/accel0", "virtual")

    @unittest.skipIf("SANITIZED" in os.environ, "builds with sanitizers have no libraries to preload")
    def test_virtual_nodes_of_the_same_path_are_those_of_their_chips(self):
        with Frames("/dev/accel/accel0", VIRTUAL) as one, Frames("/dev/accel/accel0", [SKILLET, "virtual", "--chip", "rk3576", "--"]) as other:
            for frames in (one, other):
                frames.run(1)
            text = top("--prometheus")
            for frames, chip in ((one, "rk3588"), (other, "rk3576")):
                _, labels = uses(text, self.child_of(frames.process.pid))["jobs_total", "/dev/accel/accel0", "virtual"]
                self.assertEqual(labels["chip"], chip)

    def test_in_a_container(self):
        inside = ["unshare", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
            self.skipTest("no namespaces here")
        with Frames("sim:a311d", inside) as frames:
            frames.run(3)
            found = uses(top("--prometheus"), self.child_of(frames.process.pid))
            self.assertGreater(found["jobs_total", "sim:a311d", "simulated"][0], 0)

    def test_over_a_second(self):
        with Frames("sim:a311d") as frames:
            frames.run(2)
            report = json.loads(top("--json"))
        if Draft7Validator:
            schema = json.loads(Path("docs/json/top.json").read_text())
            self.assertEqual([error.message for error in Draft7Validator(schema).iter_errors(report)], [])
        (use,) = [use for device in report["devices"] for use in device["processes"] if use["pid"] == frames.process.pid]
        self.assertEqual((use["jobs_per_s"], use["busy_percent"], use["models"], use["by_kernel"]), (0, 0, ["digits"], False))
        self.assertEqual(use["jobs"], use["jobs_submitted"])

    def test_a_process_that_is_not_to_be_seen(self):
        with unittest.mock.patch.dict(ENV, {"SKILLET_TOP": "0"}), Frames("sim:a311d") as frames:
            frames.run(1)
            self.assertEqual(uses(top("--prometheus"), frames.process.pid), {})

    def test_on_a_terminal(self):
        child, terminal = pty.fork()
        if child == 0:
            os.execve(SKILLET, [SKILLET, "top"], ENV)
        text = b""
        while b"q: end" not in text:
            self.assertTrue(select.select([terminal], [], [], 20)[0], text)
            text += os.read(terminal, 65536)
        os.write(terminal, b"xq")
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        modes = termios.ICANON | termios.ECHO | termios.ISIG
        self.assertEqual(termios.tcgetattr(terminal)[3] & modes, modes)
        os.close(terminal)


class Hostile(unittest.TestCase):
    def test_pages_that_are_not_ours(self):
        with Page(page(slot())):
            self.assertEqual(forged()["jobs_total", "sim:forged", "simulated"][0], 4)
        good = page(slot())
        for content in (b"", good[:100], good[:-1], good + b"\0", page(slot(), magic=b"sk-use-1"), page(slot(), pid=1), page(slot(), pid=2**64 - 1),
                        page(), page(slot(numbers=(0, 1, 1, 1, 1, 1))), b"\xff" * 8192):
            with self.subTest(content[:20]), Page(content):
                self.assertEqual(forged(), {})
        with Page(good, "skillet-use2"), Page(good, "x" + "skillet-use"):
            self.assertEqual(forged(), {})

    def test_what_a_page_says(self):
        most = 2**64 - 1
        slots = [slot(device=b"\x1b]0;forged" + EVIL, model=EVIL * 4), slot(device=b"forged".ljust(64, b"x"), model=b"m" * 112),
                 slot(device=b"forged most", numbers=(most,) * 6), slot(device=b"/dev/accel/../forged"), slot(device=b"")]
        with Page(page(*slots)):
            found = forged()
            self.assertIn(("jobs_total", "forged" + 58 * "x", "simulated"), found)
            self.assertEqual(found["jobs_total", "forged most", "simulated"][0], 2.0**64)
            self.assertTrue(any(labels.get("model", "").startswith("?[31m?evil\"\\?") for _, labels in found.values()))
            report = json.loads(top("--json"))
        for device in report["devices"]:
            for use in device["processes"]:
                self.assertLessEqual(use["busy_percent"] or 0, 3100)

    def test_two_chips_of_one_node(self):
        chips = {b"one": 4, b"two": 9}
        with Page(page(*(slot(b"/dev/dri/forged", numbers=(1, jobs, jobs, 3000, 0, 2048), chip=chip) for chip, jobs in chips.items() for _ in range(2)))):
            text = top("--prometheus")
            report = json.loads(top("--json"))
        found = dict(re.findall(r'^skillet_npu_jobs_total\{device="/dev/dri/forged",kind="npu",chip="(\w+)",.*\} (\S+)$', text, re.M))
        self.assertEqual(found, {"one": "8", "two": "18"})
        jobs = {device["chip"]: [use["jobs"] for use in device["processes"]] for device in report["devices"] if device["device"] == "/dev/dri/forged"}
        self.assertEqual(jobs, {"one": [8], "two": [18]})

    def test_the_share_of_all_cores_by_all_processes(self):
        def running():
            return slot(b"/dev/accel/forged", numbers=(3, 5, 4, 3000, time.monotonic_ns(), 2048))

        with page_of_a_child(lambda: page(running())), Page(page(running(), slot(b"sim:forged", numbers=(3, 5, 4, 3000, time.monotonic_ns(), 2048)))):
            (device,) = [one for one in json.loads(top("--json"))["devices"] if one["device"] == "/dev/accel/forged"]
            (simulated,) = [one for one in json.loads(top("--json"))["devices"] if one["device"] == "sim:forged"]
            metrics, text = top("--prometheus"), top("--once")
        self.assertEqual((len(device["processes"]), device["cores"]), (2, 3))
        for use in device["processes"]:
            self.assertAlmostEqual(use["busy_percent"], 100, delta=5)
        self.assertAlmostEqual(device["busy_percent"], 200 / 3, delta=5)
        self.assertEqual((simulated["cores"], simulated["busy_percent"]), (None, None), "each process has one of its own")
        self.assertRegex(metrics, r'(?m)^skillet_npu_cores\{device="/dev/accel/forged",kind="npu",chip="chip"\} 3$')
        self.assertNotIn('skillet_npu_cores{device="sim:', metrics)
        self.assertRegex(text, r"(?m)^ */dev/accel/forged .* 6\d % of 3 cores$")

    @unittest.skipIf(shutil.which("promtool") is None, "no promtool (Debian: prometheus)")
    def test_promtool_reads_the_metrics(self):
        with Page(page(slot(), slot(b"/dev/accel/forged", chip=b"two"), slot(b"sim:" + EVIL, model=EVIL))):
            text = top("--prometheus")
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), text)

    def test_who_sees_all(self):
        self.assertEqual("\nOnly processes of this user are seen; root sees all\n" in top(), os.geteuid() != 0)

    def test_a_page_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root has other users' descriptors")
        ours, theirs = socket.socketpair(socket.AF_UNIX)
        pid = os.getpid()
        child = os.fork()
        if child == 0:
            os.setresuid(NOBODY, NOBODY, NOBODY)
            with Page(page(slot(), pid=pid)) as made:
                socket.send_fds(theirs, [b"x"], [made.fd])
            os._exit(0)
        _, (fd,), _, _ = socket.recv_fds(ours, 1, 1)
        os.waitpid(child, 0)
        self.assertEqual(forged(), {})
        for one in (fd, ours.detach(), theirs.detach()):
            os.close(one)

    def test_a_page_of_who_changed_users(self):
        """The page's file belongs to the user that the process acts as, not to the one that started it."""
        if os.geteuid() != 0:
            self.skipTest("only root may act as others")

        def content():
            os.setresuid(NOBODY, 0, 0)
            return page(slot(), pid=os.getpid())

        with page_of_a_child(content) as child:
            found = uses(top("--prometheus"), child)
        self.assertEqual(found["jobs_total", "sim:forged", "simulated"][0], 4)

    def test_a_child_has_no_share_in_its_parents_page(self):
        with Page(page(slot())):
            child = os.fork()
            if child == 0:
                time.sleep(60)
            text = top("--prometheus")
            os.kill(child, 9)
            os.waitpid(child, 0)
        self.assertEqual(uses(text, child), {})
        self.assertNotEqual(uses(text, os.getpid()), {})

    def test_processes_that_end_meanwhile(self):
        crowd = [subprocess.Popen(["sh", "-c", f"sleep 0.{i % 10}{i // 10}"]) for i in range(50)]
        for _ in range(20):
            top("--prometheus")
        for one in crowd:
            one.wait()


class Machine(unittest.TestCase):
    """Uses a fake /proc and /sys."""

    def setUp(self):
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)

    def add(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def add_file(self, pid, fd, target, fdinfo=None, name="user"):
        folder = self.root / f"proc/{pid}/fd"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(fd)).symlink_to(target)
        self.add(f"proc/{pid}/comm", name)
        if fdinfo is not None:
            self.add(f"proc/{pid}/fdinfo/{fd}", fdinfo)

    def metrics(self, pid):
        return {(name, device): value for (name, device, _), (value, _) in uses(top("--prometheus", "--root", str(self.root)), pid).items()}

    def test_the_kernels_counts(self):
        info = "drm-driver:\tnpu\ndrm-client-id:\t7\ndrm-engine-a:\t3000000000 ns\ndrm-engine-b: 1000000000 ns\ndrm-engine-capacity-b: 2\n" \
               "drm-total-memory: 9 MiB\ndrm-resident-memory:\t2 KiB\ndrm-resident-sram: 10\n"
        self.add_file(5, 3, "/dev/accel/accel0", info)
        self.add_file(5, 4, "/dev/accel/accel0", info)  # of the same client
        self.add_file(5, 5, "/dev/accel/accel1", "drm-client-id: 7\ndrm-cycles-x: 500\ndrm-maxfreq-x: 1 KHz\ndrm-total-memory: 1 KiB")
        self.add_file(6, 3, "/dev/accel/accel0", "pos: 0\n")  # like rocket and ethosu, which report nothing else
        self.add_file(6, 4, "/dev/dri/renderD128", info)  # not a known NPU
        self.assertEqual({key: value for key, value in self.metrics(5).items() if key[0] != "process_info"}, {("busy_seconds_total", "/dev/accel/accel0"): 3.5, ("memory_bytes", "/dev/accel/accel0"): 2058,
            ("busy_seconds_total", "/dev/accel/accel1"): 0.5, ("memory_bytes", "/dev/accel/accel1"): 1024})
        self.assertEqual(self.metrics(6), {("process_info", "/dev/accel/accel0"): 1})
        cores = dict(re.findall(r'^skillet_npu_cores\{device="([^"]*)".*\} (\S+)$', top("--prometheus", "--root", str(self.root)), re.M))
        self.assertEqual(cores, {"/dev/accel/accel0": "2", "/dev/accel/accel1": "1"})  # numbers of engines
        self.assertIn("user", top("--once", "--root", str(self.root)))

    def test_clock_temperature_and_power(self):
        device = "sys/devices/platform/fdab0000.npu"
        self.add(f"{device}/power/runtime_active_time", "2500\n")
        self.add("sys/class/devfreq/fdab0000.npu/cur_freq", "200000000\n")
        self.add("sys/class/thermal/thermal_zone3/type", "npu-thermal\n")
        self.add("sys/class/thermal/thermal_zone3/temp", "41500\n")
        (self.root / "sys/class/accel/accel0").mkdir(parents=True)
        (self.root / "sys/class/accel/accel0/device").symlink_to(f"../../../../{device}")
        self.add_file(5, 3, "/dev/accel/accel0")
        text = top("--prometheus", "--root", str(self.root))
        for line in ("clock_hertz{.*} (2e\\+08|200000000)", "temperature_celsius{.*} 41.5", "powered_seconds_total{.*} 2.5"):
            self.assertRegex(text, rf"(?m)^skillet_npu_{line}$")

    def test_rates_are_of_the_time_between_readings_of_the_process(self):
        self.add_file(5, 3, "/dev/accel/accel0")
        fdinfo = self.root / "proc/5/fdinfo/3"
        fdinfo.parent.mkdir(parents=True)
        os.mkfifo(fdinfo)
        with subprocess.Popen([SKILLET, "top", "--json", "--root", str(self.root)], stdout=subprocess.PIPE, env=ENV) as process:
            for late_s in 0, 0.8:  # a delay as on a busy CPU
                with open(fdinfo, "w") as kernel:
                    time.sleep(late_s)
                    kernel.write(f"drm-client-id: 1\ndrm-engine-a: {time.monotonic_ns() // 2} ns\n")
                time.sleep(0.3)  # until top has read all of it; it reads again a second later
            (device,) = json.loads(process.stdout.read())["devices"]
        self.assertAlmostEqual(device["processes"][0]["busy_percent"], 50, delta=5)

    def test_nonsense(self):
        lines = ["drm-engine-", "drm-engine-x: -5 ns", "drm-engine-y: 99999999999999999999999 ns", "drm-engine-z: ns", "drm-cycles-q: 18446744073709551615",
                 "drm-maxfreq-q: 0 Hz", "drm-engine-capacity-x: 0", "drm-resident-: 18446744073709551615 GiB", "drm-client-id", ":", "::", "drm-client-id: "]
        self.add_file(5, 3, "/dev/accel/accel0", "\n".join(lines).encode() + b"\ndrm-engine-\x1b[31m: 7 ns\n" + EVIL, EVIL)
        self.add_file(5, 4, "/dev/accel/\x1b[31m", b"\0" * 200000)
        self.add_file(5, 5, b"/dev/accel/" + EVIL)
        self.add_file(5, 6, "/memfd:skillet-use (deleted)")
        self.add_file(5, 7, "/memfd:skillet-virtual-node:" + 3000 * "x")
        self.add_file(5, 8, "8")
        for pid in ("99999999999999999999999", "0", "-1", "5x"):
            self.add(f"proc/{pid}/comm", "x")
        for args in (["--prometheus"], ["--json"]):
            self.assertIn("evil", top(*args, "--root", str(self.root)))

    def test_a_thousand_processes(self):
        self.add_file(1, 3, "/dev/accel/accel0", "drm-client-id: 1\ndrm-engine-a: 5 ns\n")
        for pid in range(2, 1001):
            (self.root / f"proc/{pid}").symlink_to("1")
        begin = time.monotonic()
        self.assertEqual(top("--prometheus", "--root", str(self.root)).count("busy_seconds_total{"), 1000)
        self.assertLess(time.monotonic() - begin, 20)


if __name__ == "__main__":
    unittest.main()
