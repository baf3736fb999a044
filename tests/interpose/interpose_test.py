#!/usr/bin/env python3
"""Tests `skillet virtual` and `skillet capture` from outside: injected faults, recordings, exit codes, files left behind.

usage: interpose_test.py SKILLET PROBE REPLAY VIRTUAL_LIBRARY RECORD_LIBRARY FORKING SOURCE_DIR
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import long_cases  # noqa: E402

SKILLET, PROBE, REPLAY, VIRTUAL_LIBRARY, RECORD_LIBRARY, FORKING = sys.argv[1:7]
SOURCE = Path(sys.argv[7])
CASE = SOURCE / "tests/captures/a311d_conv1x1_relu6_u8"

GOOD_RUN = ["submit fine", "wait_fence fine", "gem_cpu_prep fine", "gem_cpu_fini fine", "output right"]
UNWRITTEN_RUN = GOOD_RUN[:4] + ["output unwritten"]
VIRTUAL = [SKILLET, "virtual", "--chip", "a311d"]  # the chip of the recorded jobs
HUNG_RUN = ["submit fine", "wait_fence ETIMEDOUT", "gem_cpu_prep ETIMEDOUT", "gem_cpu_fini fine", "output unwritten"]
HEAD = ["open fine", "version fine", "get_param fine"]
TAIL = ["prime_handle_to_fd fine", "gem_close fine"]
GOOD = HEAD + ["allocate fine"] + GOOD_RUN + GOOD_RUN + TAIL


def replaced(lines, index, line):
    return lines[:index] + [line] + lines[index + 1:]


# Injected faults, and all output of the probe.
FAULTS = [
    ("", GOOD),
    ("open:1:EACCES", ["open EACCES"]),
    ("version:1:EIO", replaced(GOOD, 1, "version EIO")),
    ("get_param:1:ENXIO", replaced(GOOD, 2, "get_param ENXIO")),
    ("gem_new:1:ENOMEM", HEAD + ["allocate gem_new"]),
    ("gem_new:7:ENOMEM", HEAD + ["allocate gem_new"]),
    ("gem_new:99:ENOMEM", GOOD),
    ("gem_info:2:ENOENT", HEAD + ["allocate mmap"]),
    ("mmap:3:ENOMEM", HEAD + ["allocate mmap"]),
    ("submit:1:EIO", HEAD + ["allocate fine", "submit EIO"] + UNWRITTEN_RUN[1:] + GOOD_RUN + TAIL),
    ("submit:2:ENOMEM", HEAD + ["allocate fine"] + GOOD_RUN + ["submit ENOMEM"] + UNWRITTEN_RUN[1:] + TAIL),
    ("submit:*:EBUSY", HEAD + ["allocate fine"] + 2 * (["submit EBUSY"] + UNWRITTEN_RUN[1:]) + TAIL),
    ("submit:2:hang", HEAD + ["allocate fine"] + GOOD_RUN + HUNG_RUN + TAIL),
    ("submit:1:hang", HEAD + ["allocate fine"] + HUNG_RUN + HUNG_RUN + TAIL),  # the second waits for the first
    # The probe does not set the chip up again, so the next job stops.
    ("submit:1:reset", HEAD + ["allocate fine"] + UNWRITTEN_RUN + UNWRITTEN_RUN + TAIL),
    ("submit:2:reset_before", HEAD + ["allocate fine"] + GOOD_RUN + UNWRITTEN_RUN + TAIL),
    ("wait_fence:2:ETIMEDOUT", replaced(GOOD, 10, "wait_fence ETIMEDOUT")),
    ("gem_cpu_prep:1:EINTR", replaced(GOOD, 6, "gem_cpu_prep EINTR")),
    ("gem_cpu_fini:1:EINVAL", replaced(GOOD, 7, "gem_cpu_fini EINVAL")),
    ("prime_handle_to_fd:1:EMFILE", replaced(GOOD, 14, "prime_handle_to_fd EMFILE")),
    ("gem_close:1:EINVAL,submit:2:reset",
     HEAD + ["allocate fine"] + GOOD_RUN + UNWRITTEN_RUN + replaced(TAIL, 1, "gem_close EINVAL")),
]


def run(*command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, **options)


def virtual(*command):
    return run(*VIRTUAL, *command)


def is_built(chip):
    """Returns False only if the command reports that the chip's family is not in this build."""
    return "but this build has no " not in run(SKILLET, "virtual", "--chip", chip, "--", "true").stderr


class Virtual(unittest.TestCase):
    def test_faults(self):
        for spec, expected in FAULTS:
            with self.subTest(spec=spec):
                result = virtual("--fail", spec, "--", PROBE, CASE)
                self.assertEqual(result.stdout.splitlines(), expected, result.stderr)

    def test_exit_codes(self):
        self.assertEqual(virtual("--", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(virtual("--", "sh", "-c", "kill -9 $$").returncode, 137)
        self.assertEqual(virtual("--", "/nonexistent/program").returncode, 127)

    def test_bad_usage(self):
        for arguments in (["--chip", "pdp11", "--", "true"], ["--fail", "submit:0:EIO", "--", "true"],
                          ["--fail", "submit:1:EWRONG", "--", "true"], ["--fail", "dance:1:EIO", "--", "true"],
                          ["--fail", "gem_new:1:hang", "--", "true"], ["--fail", "submit", "--", "true"],
                          ["--on-fault", "cry", "--", "true"], []):
            with self.subTest(arguments=arguments):
                result = run(SKILLET, "virtual", *arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn("skillet:", result.stderr)

    def test_fault_as_error(self):
        # A job with a missing descriptor is a fault of the simulator.
        script = ("import fcntl,os,struct,ctypes\n"
                  "fd = os.open('/dev/dri/renderD128', os.O_RDWR)\n"
                  "stream = ctypes.create_string_buffer(struct.pack('<2I', 0x08010428, 0x00400000))\n"
                  "args = bytearray(struct.pack('<6I3QIiQ2I', 0,0,0,0,0,8, 0,0,ctypes.addressof(stream), 8,-1, 0,0,0))\n"
                  "fcntl.ioctl(fd, 0xC0486446, args)\n")
        self.assertEqual(virtual("--", sys.executable, "-c", script).returncode, 0)
        result = virtual("--on-fault", "error", "--", sys.executable, "-c", script)
        self.assertIn("[Errno 5]", result.stderr)
        self.assertIn("recover hung GPU", result.stderr)
        self.assertIn("not mapped", result.stderr)

    def test_shell_tools(self):
        listing = virtual("--", "ls", "-l", "/dev/dri")
        self.assertEqual(listing.stderr, "")
        self.assertRegex(listing.stdout, r"crw-rw---- .* 226, +128 .*renderD128")
        found = virtual("--", "find", "/dev/dri", "-type", "c")
        self.assertEqual(sorted(found.stdout.split()), ["/dev/dri/card0", "/dev/dri/renderD128"])
        script = "import os; print(*sorted(os.listdir('/dev/dri')), os.path.realpath('/sys/class/drm/card0/device'))"
        self.assertEqual(virtual("--", sys.executable, "-c", script).stdout.split(),
                         ["card0", "renderD128", "/sys/devices/platform/skillet/ff100000.npu"])

    def test_fdinfo(self):
        script = ("import fcntl, os, struct, sys\n"
                  "fd = os.open(sys.argv[1], os.O_RDWR)\n"
                  "other = os.open(sys.argv[1], os.O_RDWR)\n"
                  "if 'dri' in sys.argv[1]:\n"
                  "    fcntl.ioctl(fd, 0xC0106442, bytearray(struct.pack('<QII', 10000, 0x00020000, 0)))\n"  # gem_new
                  "for path in (f'/proc/self/fdinfo/{fd}', f'/proc/{os.getpid()}/fdinfo/{other}', '/proc/self/fdinfo/0'):\n"
                  "    print(open(path).read().replace('\\t', ' '), '---')\n"
                  "print(os.readlink(f'/proc/self/fd/{fd}'))\n")
        first, second, standard, link = virtual("--", sys.executable, "-c", script, "/dev/dri/renderD128").stdout.split("---\n")
        self.assertRegex(first, r"^pos: 0\nflags: \d+\n(?s:.*)drm-driver: etnaviv\ndrm-client-id: \d+\ndrm-total-memory: 12 KiB\ndrm-resident-memory: 12 KiB\n $")
        self.assertIn("drm-total-memory: 0 KiB", second)
        self.assertNotEqual(re.search("client-id: .*", first)[0], re.search("client-id: .*", second)[0])
        self.assertNotIn("drm", standard)
        self.assertEqual(link, "/memfd:skillet-virtual-node:/dev/dri/renderD128 (deleted)\n")
        if is_built("rk3588"):
            said = run(SKILLET, "virtual", "--chip", "rk3588", "--", sys.executable, "-c", script, "/dev/accel/accel0").stdout
            self.assertIn("pos:", said)
            self.assertNotIn("drm", said, "rocket adds nothing")

    def test_trace(self):
        result = virtual("--trace", "--", PROBE, CASE)
        self.assertRegex(result.stderr, r"virtual: gem_new 8192 bytes, flags 0x\w+ \(\w+\) -> handle \d+: fine, [\d.]+ ms\n")
        self.assertRegex(result.stderr, r"virtual: get_param pipe 0, model \(0x1\) -> 0x8000: fine, ")
        self.assertRegex(result.stderr, r"virtual: submit pipe 0, \d+ bytes of commands, 8 buffers, 0 relocations, flags 0x8 \(softpin\) -> fence 1: fine, ")
        self.assertRegex(result.stderr, r"virtual: wait_fence fence 1, flags 0x0, until \d+\.\d{9} s: fine, ")
        self.assertEqual(len(re.findall(r"virtual:   handle \d+ at 0x\w+, \d+ bytes(?:, written)?\n", result.stderr)), 2 * 8)
        self.assertRegex(result.stderr, r"virtual: submit: job 1: \d+ words, 8 buffers")

    def test_trace_says_why_the_kernel_refuses(self):
        get_param = ("import fcntl, os, struct\n"
                     "fcntl.ioctl(os.open('/dev/dri/renderD128', os.O_RDWR), 0xC0106440, struct.pack('<IIQ', 99, 1, 0))")
        for trace in ([], ["--trace"]):
            result = virtual(*trace, "--", sys.executable, "-c", get_param)
            self.assertIn("OSError: [Errno 22]", result.stderr)
            self.assertEqual("virtual: EINVAL: pipe 99: there are" in result.stderr, bool(trace), result.stderr)

    def test_unproven_chips_are_usable_there(self):
        for unproven, severity in ((None, "note"), ("refuse", "problem")):
            environment = {name: value for name, value in os.environ.items() if name != "SKILLET_UNPROVEN"}
            command = [SKILLET, "virtual", "--chip", "s905d3", "--", SKILLET]
            environment.update({} if unproven is None else {"SKILLET_UNPROVEN": unproven})
            listed = json.loads(run(*command, "devices", "--json", env=environment).stdout)["devices"]
            (node,) = [one for one in listed if one["device"] == "/dev/dri/renderD128"]
            self.assertEqual(node["usable"], unproven is None)
            found = json.loads(run(*command, "doctor", "--json", env=environment).stdout)["findings"]
            self.assertEqual([one["severity"] for one in found if one["id"] == "unproven-npu"], [severity])
            tested = [one["what"] for one in found if one["id"] == "self-test" and "renderD128" in one["what"]]
            self.assertEqual(len(tested), int(unproven is None))

    def test_doctor_counts_what_the_device_was_seen_to_compute(self):
        def trust():
            found = json.loads(run(*command, "doctor", "--json", env=environment).stdout)["findings"]
            (node,) = [one for one in found if one["id"] == "trust"]
            return node["severity"], node["what"]

        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, SKILLET_TRUST_DIR=folder)
            command = [SKILLET, "virtual", "--chip", "a311d", "--", SKILLET]
            severity, text = trust()
            self.assertEqual(list(Path(folder).iterdir()), [], "doctor writes nothing, of simulated chips neither")
            self.assertEqual(severity, "fine")
            self.assertRegex(text, r"correct: 0 of (\d+) assumptions.*\nwrong: no assumption\nnot tried yet: \1;")
            self.assertIn("\n         wrong: no assumption\n         not tried yet: ", run(*command, "doctor", env=environment).stdout)
            model = str(SOURCE / "tests/models/conv_scales_i8.tflite")
            run(*command, "run", model, "--device", "auto", "--partition", "all", "--random", "1", env=environment)
            self.assertRegex(trust()[1], r"correct: [1-9]\d* of \d+ assumptions, and [1-9]")
            (file,) = Path(folder).glob("a311d*.json")
            kept = json.loads(file.read_text())
            (first, *_) = [one for one in kept["entries"] if one["kind"] == "assumption"]
            first["verdict"] = "refuted"
            file.write_text(json.dumps(kept))
            severity, text = trust()
            self.assertEqual(severity, "note")
            self.assertIn(f"\nwrong: {first['name']} (", text)

    def test_what_virtual_nodes_compute_is_not_believed_of_a_board(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, XDG_STATE_HOME=folder)
            environment.pop("SKILLET_TRUST_DIR", None)
            model = str(SOURCE / "tests/models/conv_scales_i8.tflite")
            both = f"{SKILLET} run {model} --device auto --partition all --random 1 >&2 && {SKILLET} trust --json"
            shown = json.loads(run(*VIRTUAL, "--", "sh", "-c", both, env=environment).stdout)
            self.assertIn("virtual", shown["device"])
            self.assertTrue([one for one in shown["entries"] if one["confirmed"]])  # shared until `virtual` ends
            self.assertFalse(Path(shown["file"]).exists())
            self.assertEqual(os.listdir(folder), [])

    def test_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, TMPDIR=folder)
            run(*VIRTUAL, "--", PROBE, CASE, env=environment)
            self.assertEqual(os.listdir(folder), [])
            # Without the command, the library itself makes and removes the folder.
            result = run(PROBE, CASE, env=dict(environment, LD_PRELOAD=VIRTUAL_LIBRARY, SKILLET_VIRTUAL_CHIP="a311d"))
            self.assertEqual(result.stdout.splitlines(), GOOD, result.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_wrong_values_are_said_and_taken_as_not_set(self):
        wrong = {"INTERFACE": ("1.7", "must be 0.0, or 1.0 to 1.6; taking 0.0"), "FAULT": ("panic", "must be reset or error; taking reset"),
                 "MISUSE": ("ignore", "must be report or abort; taking report"), "FAIL": ("submit", "injecting nothing")}
        environment = dict(os.environ, LD_PRELOAD=VIRTUAL_LIBRARY, SKILLET_VIRTUAL_CHIP="a311d", SKILLET_LOG="warning")
        result = run(PROBE, CASE, env={**environment, **{f"SKILLET_VIRTUAL_{name}": value for name, (value, _) in wrong.items()}})
        self.assertEqual(result.stdout.splitlines(), GOOD, result.stderr)
        for name, (_, said) in wrong.items():
            self.assertRegex(result.stderr, f"warning: SKILLET_VIRTUAL_{name}.*{said}")
        right = {"INTERFACE": "1.6", "FAULT": "error", "MISUSE": "abort", "FAIL": "submit:9:EIO"}
        result = run(PROBE, CASE, env={**environment, **{f"SKILLET_VIRTUAL_{name}": value for name, value in right.items()}})
        self.assertNotRegex(result.stderr, "taking|injecting")

    def test_describes_its_node_to_containers(self):
        for chip, node in (("a311d", "/dev/dri/renderD128"), ("rk3588", "/dev/accel/accel0")):
            if not is_built(chip):
                continue
            result = run(SKILLET, "virtual", "--chip", chip, "--", SKILLET, "cdi", "--mount", "/opt/models:/models")
            edits = {"deviceNodes": [{"path": node, "permissions": "rw"}], "env": [f"SKILLET_DEVICE={node}"],
                     "mounts": [{"hostPath": "/opt/models", "containerPath": "/models", "options": ["ro", "bind"]}]}
            self.assertEqual(json.loads(result.stdout),
                             {"cdiVersion": "0.5.0", "kind": "skillet.org/npu", "containerEdits": {},
                              "devices": [{"name": name, "containerEdits": edits} for name in ("0", "all")]})

    def test_skillets_own_driver(self):
        model, picture = SOURCE / "models/digits.tflite", SOURCE / "models/digits/7.png"
        picture = picture if picture.exists() else sorted((SOURCE / "models/digits").glob("*.png"))[0]
        run_it = [SKILLET, "run", model, "--image", picture, "--json", "--device"]
        on_node = virtual("--", *run_it, "/dev/dri/renderD128")
        self.assertEqual(on_node.returncode, 0, on_node.stderr)
        simulated = run(*run_it, "sim:a311d")
        scores = [re.findall(r'"(?:score|value|label)": [^,\n]*', text) for text in (on_node.stdout, simulated.stdout)]
        self.assertTrue(scores[0])
        self.assertEqual(scores[0], scores[1])


class Record(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "job.skcap"

    def capture(self, *command):
        return run(SKILLET, "capture", "-o", self.path, "--", *VIRTUAL, "--", *command)

    def check(self, submissions):
        replayed = run(REPLAY, self.path, CASE / "output_0.bin")
        self.assertEqual(replayed.stdout.strip(), f"{submissions} submissions of a311d, output right", replayed.stderr)
        decoded = run(SKILLET, "decode", self.path)
        self.assertEqual(decoded.returncode, 0, decoded.stderr)
        # The jobs equal those recorded on silicon.
        golden = run(SKILLET, "decode", CASE, "--submission", "1").stdout.split("submission 1\n")[1]
        self.assertEqual(decoded.stdout.count(golden.strip()), submissions)

    def test_replay_equals(self):
        result = self.capture(PROBE, CASE)
        self.assertEqual(result.stdout.splitlines(), GOOD, result.stderr)
        self.assertIn("2 submissions to /dev/dri/renderD128", result.stderr)
        self.check(2)

    def test_calls_are_listed_where_that_is_asked_for(self):
        for trace in ([], ["--trace"]):
            result = run(SKILLET, "capture", *trace, "-o", self.path, "--", *VIRTUAL, "--", PROBE, CASE)
            self.assertEqual("skillet: /dev/dri/renderD128: version: fine, " in result.stderr, bool(trace), result.stderr)

    def test_a_crash_loses_nothing(self):
        result = self.capture(PROBE, CASE, "--crash")
        self.assertEqual(result.returncode, 134, result.stderr)
        self.check(1)

    def test_refused_submissions_are_left_out(self):
        run(SKILLET, "capture", "-o", self.path, "--", *VIRTUAL, "--fail", "submit:1:EINVAL", "--", PROBE, CASE)
        self.check(1)

    def test_several_processes(self):
        result = self.capture("sh", "-c", f"{PROBE} {CASE}; {PROBE} {CASE}")
        self.assertIn(f"{self.path}.2: 2 submissions", result.stderr)
        self.check(2)
        self.assertEqual(self.capture(PROBE, CASE).returncode, 0)
        self.assertFalse(Path(f"{self.path}.2").exists())

    def test_children_of_a_threaded_program(self):
        script = ("import ctypes, fcntl, os, signal, struct, threading\n"
                  "stream = ctypes.create_string_buffer(8)\n"
                  "def submit(fd):\n"
                  "  args = struct.pack('<6I3QIiQ2I', 0,0,0,0,0,8, 0,0,ctypes.addressof(stream), 8,-1, 0,0,0)\n"
                  "  fcntl.ioctl(fd, 0xC0486446, bytearray(args))\n"
                  "fd, stops = os.open('/dev/dri/renderD128', os.O_RDWR), []\n"
                  "def run():\n"
                  "  while not stops: submit(fd)\n"
                  "threads = [threading.Thread(target=run, daemon=True) for i in range(2)]\n"
                  "for one in threads: one.start()\n"
                  "for i in range(10):\n"
                  "  child = os.fork()\n"
                  "  if child == 0:\n"
                  "    signal.alarm(4)\n"
                  "    submit(fd)\n"
                  "    os._exit(0)\n"
                  "  print(os.waitpid(child, 0)[1])\n"
                  "stops.append(True)\n")
        result = self.capture(sys.executable, "-c", script)
        self.assertEqual(result.stdout.split(), ["0"] * 10, result.stderr)
        for number in range(2, 12):  # a file for each child
            self.assertIn(f"{self.path}.{number}: 1 submissions", result.stderr)

    def test_forks_while_the_node_frees_buffers(self):
        self.forks("20")

    def test_long_forks_while_the_node_frees_buffers(self):
        for _ in range(2):
            self.forks("60")

    def forks(self, times):
        if not is_built("rk3588"):
            self.skipTest("this build has no chip behind that kernel driver")
        result = run(SKILLET, "capture", "-o", self.path, "--", SKILLET, "virtual", "--chip", "rk3588", "--", FORKING, times)
        self.assertEqual(result.stdout, f"{times}\n", result.stderr)

    def test_copies_of_descriptors_record_to_one_file(self):
        script = ("import ctypes, fcntl, os, struct\n"
                  "stream = ctypes.create_string_buffer(8)\n"
                  "def submit(fd):\n"
                  "  args = struct.pack('<6I3QIiQ2I', 0,0,0,0,0,8, 0,0,ctypes.addressof(stream), 8,-1, 0,0,0)\n"
                  "  fcntl.ioctl(fd, 0xC0486446, bytearray(args))\n"
                  "first, second = [os.open('/dev/dri/renderD128', os.O_RDWR) for i in range(2)]\n"
                  "submit(first)\n"
                  "submit(second)\n"
                  "os.dup2(first, first)\n"
                  "os.dup2(first, second)\n"  # the end of its file
                  "submit(second)\n"
                  "os.dup2(second, 0)\n"
                  "os.close(first)\n"
                  "os.close(second)\n"
                  "submit(0)\n"
                  "os.dup2(os.open('/dev/null', os.O_RDWR), 0)\n"  # the end of the other
                  "third = os.open('/dev/dri/renderD128', os.O_RDWR)\n"
                  "submit(third)\n"
                  "try: os.dup2(third, 1 << 30)\n"
                  "except OSError as e: print(e.errno)\n"
                  "submit(os.dup(third))\n")
        result = self.capture(sys.executable, "-c", script)
        self.assertEqual((result.returncode, result.stdout), (0, "9\n"), result.stderr)
        told = re.findall(r"job\.skcap(\S*): (\d) submissions", result.stderr)
        self.assertEqual(told, [("", "3"), (".2", "1"), (".3", "2")], result.stderr)

    def test_keeps_files_that_are_no_captures(self):
        self.path.write_text("precious")
        self.assertEqual(self.capture(PROBE, CASE).returncode, 2)
        self.assertEqual(self.path.read_text(), "precious")

    def test_one_that_cannot_be_read_back_leaves_nothing_else(self):
        self.assertEqual(self.capture(PROBE, CASE).returncode, 0)
        result = self.capture("sh", "-c", f"'{PROBE}' '{CASE}' && printf broken > '{self.path}'")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(str(self.path), result.stderr)
        self.assertEqual(self.path.read_text(), "broken")
        self.assertEqual([one for one in self.path.parent.iterdir() if one.name.startswith(self.path.name)], [self.path])

    def test_nothing_to_record(self):
        result = run(SKILLET, "capture", "-o", self.path, "--", "sh", "-c", "exit 3")
        self.assertEqual(result.returncode, 3)
        self.assertIn("nothing was recorded", result.stderr)


class Libraries(unittest.TestCase):
    def test_exports_are_the_listed_ones(self):
        for library, listing in ((VIRTUAL_LIBRARY, "virtual.map"), (RECORD_LIBRARY, "record.map")):
            text = (SOURCE / "src/lab/interpose" / listing).read_text().split("global:")[1].split("local:")[0]
            names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True).stdout
            self.assertEqual(sorted(line.split()[2] for line in names.splitlines()), sorted(re.findall(r"\w+", text)))

    def test_dependencies_are_few(self):
        allowed = r"lib(c|m|pthread|dl|stdc\+\+|gcc_s)\.so\.\d+|ld-linux.*"
        for library in (VIRTUAL_LIBRARY, RECORD_LIBRARY):
            text = subprocess.run(["readelf", "-d", library], capture_output=True, text=True).stdout
            for needed in re.findall(r"NEEDED.*\[(.*)\]", text):
                self.assertRegex(needed, f"^({allowed})$", library)


if __name__ == "__main__":
    long_cases.main(sys.argv[:1])
