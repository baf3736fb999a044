#!/usr/bin/env python3
"""Runs networks on Linux's own drivers with simulated chips as hardware: the bytes equal those of sim:CHIP.

usage: networks_test.py SOURCE COMMAND DEVICE SHARED_BUFFERS"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(sys.argv[1]) / "src/frontend/python"))
from guest import KERNEL, NODES, with_a_whole_bus  # noqa: E402
from skillet import _trace_events  # noqa: E402

SOURCE, COMMAND, DEVICE, SHARED_BUFFERS = (Path(one).resolve() for one in sys.argv[1:5])
ALL = {**os.environ, "SKILLET_PARTITION": "all"}
VELA = sorted((SOURCE / "tests/ethosu/models").glob("*.ethos-u65-256.tflite"))
MODEL, PICTURE = SOURCE / "models/digits.tflite", SOURCE / "models/digits/3.png"


def on_kernel(chip, program, *options):
    return subprocess.run([*KERNEL, "--device", DEVICE, "--chip", chip,
                           "--limit", "60", *options, "--", *map(str, program)], capture_output=True, text=True, timeout=90, check=False,
                          cwd=SOURCE, env=ALL)


def on_kernel_with_a_whole_bus(*arguments):
    return with_a_whole_bus(lambda: on_kernel(*arguments))


class Networks(unittest.TestCase):
    def run_both(self, chip, *options, network=(MODEL, "--image", PICTURE)):
        """Returns the bytes of the output on Linux's driver and on sim:, and the device's messages."""
        with tempfile.TemporaryDirectory() as folder:
            def run(device, name):
                return [COMMAND, "run", *network, "--device", device, "--unproven", "take", "--output", f"{folder}/{name}.npz"]
            node = NODES[chip]
            done = on_kernel_with_a_whole_bus(chip, run(node, "kernel"), *options)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            sim = subprocess.run(run(f"sim:{chip}", "sim"), capture_output=True, text=True, check=False, env=ALL)
            self.assertEqual(sim.returncode, 0, sim.stderr)
            return (Path(folder) / "kernel.npz").read_bytes(), (Path(folder) / "sim.npz").read_bytes(), done.stderr

    def test_the_kernels_drivers_give_the_bytes_of_the_simulated_device(self):
        for chip in ("a311d", "imx8mp", "rk3588", "imx93"):
            with self.subTest(chip):
                kernel, sim, said = self.run_both(chip)
                self.assertEqual(kernel, sim)
                self.assertRegex(said, r"[1-9]\d* jobs")
                self.assertNotIn("the kernel says", said)

    def test_the_kernel_recovers_from_faults_of_the_device(self):
        for chip, fault in (("a311d", "hang@2"), ("a311d", "page_fault@2"), ("a311d", "lost_interrupt@2"), ("rk3588", "hang@3"),
                            ("rk3588", "page_fault@3")):
            with self.subTest(chip=chip, fault=fault):
                # With one core: a second core would meet the same fault when the job is run again.
                kernel, sim, said = self.run_both(chip, "--cores", "1", "--fault", fault)
                self.assertEqual(kernel, sim, said)
                self.assertRegex(said, r"[1-9]\d* resets|[1-9]\d* MMU exceptions")

    def test_without_power_the_cpu_goes_on(self):
        """Registers read 0 from job 2 on: the driver's resets fail, and the CPU computes everything again."""
        for chip, node in (("a311d", "/dev/dri/renderD128"), ("rk3588", "/dev/accel/accel0")):
            with self.subTest(chip):
                network = [COMMAND, "run", MODEL, "--image", PICTURE, "--unproven", "take", "--compare", "--device", node]
                done = on_kernel_with_a_whole_bus(chip, network, "--cores", "1", "--fault", "power_loss@2")
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertIn("of the NPU after a failure", done.stderr)
                self.assertIn("0 resets" if chip == "rk3588" else "1 resets", done.stderr)

    def test_ethosu_takes_and_runs_what_vela_made(self):
        """Linux checks each stream by its own rules. A job without a reported result is run again."""
        for made in VELA:
            with self.subTest(made.name):
                kernel, sim, said = self.run_both("imx93", network=(made, "--random", "5"))
                self.assertEqual(kernel, sim)
                self.assertNotIn("the kernel says", said)
        for fault in ("hang@1", "bus_error@1", "lost_interrupt@1"):
            with self.subTest(fault):
                kernel, sim, said = self.run_both("imx93", "--fault", fault, network=(VELA[0], "--random", "5"))
                self.assertEqual(kernel, sim, said)

    def test_the_clients_calls_get_the_answers_of_linux(self):
        """Compares each ioctl of a run and its argument between Linux's driver and the emulated one, except offsets of mappings and times."""
        def calls(text):
            lines = [line.split(": ", 2)[2] for line in text.splitlines() if re.match(r"skillet: (/dev/\S+|virtual): \w+( .*)?, [0-9.]+ ms$", line)]
            return [re.sub(r"(, [0-9.]+ ms$|until [0-9.]+ s|offset 0x[0-9a-f]+)", "", line) for line in lines]

        runs = [(chip, (), ()) for chip in ("a311d", "imx8mp", "rk3588", "imx93")]
        # A job that the driver gives up, and the client's calls after it.
        runs += [(chip, ("--fault", f"{fault}@{job}"), ("--fail", f"submit:{job}:reset")) for chip, fault, job in
                 (("a311d", "hang", 2), ("imx8mp", "page_fault", 1), ("rk3588", "lost_interrupt", 1), ("imx93", "hang", 1))]
        for chip, fault, fail in runs:
            with self.subTest(chip=chip, fault=fault), tempfile.TemporaryDirectory() as folder:
                network = (VELA[0], "--random", "5") if chip == "imx93" else (MODEL, "--image", PICTURE)
                node = NODES[chip]
                program = [COMMAND, "run", *network, "--device", node, "--unproven", "take"]
                traced = on_kernel_with_a_whole_bus(chip, [COMMAND, "capture", "--trace", "-o", f"{folder}/jobs.skcap", "--", *program],
                                                    "--cores", "1", *fault)
                emulated = subprocess.run([COMMAND, "virtual", "--chip", chip, "--trace", *fail, "--", *program], capture_output=True, text=True,
                                          check=False, env=ALL)
                self.assertEqual((traced.returncode, emulated.returncode), (0, 0), traced.stderr + emulated.stderr)
                self.assertGreater(len(calls(traced.stderr)), 10, traced.stderr)
                self.assertEqual(calls(emulated.stderr), calls(traced.stderr))

    def test_jobs_take_the_time_of_a_clock(self):
        """At 0.01 MHz, rocket's limit of 500 ms ends each job, and the CPU takes over. With a slow guest clock the jobs complete."""
        network = [COMMAND, "run", MODEL, "--image", PICTURE, "--device", "/dev/accel/accel0", "--unproven", "take"]
        for slow, resets in (("1", r"[1-9]\d* resets"), ("10", r" 0 resets")):
            with self.subTest(slow=slow):
                done = on_kernel_with_a_whole_bus("rk3588", network, "--cores", "1", "--clock", "0.01", "--slow", slow)
                self.assertEqual("operations of the NPU after a failure" in done.stderr, slow == "1", done.stderr)
                self.assertRegex(done.stderr, resets)

    def test_a_trace_has_the_events_of_the_kernels_job_scheduler(self):
        """Their times are in the trace's clock, between submission and end.
        The tracefs instance is removed afterwards, also those of killed processes."""
        events, places = ["drm_sched_job_queue", "drm_sched_job_run", "drm_sched_job_done"], "/sys/kernel/tracing/instances"
        for chip, node in (("a311d", "/dev/dri/renderD128"), ("rk3588", "/dev/accel/accel0"), ("imx93", "/dev/accel/accel0")):
            with self.subTest(chip), tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "run.pftrace"
                program = [COMMAND, "run", MODEL, "--image", PICTURE, "--device", node, "--unproven", "take", "--trace", file]
                script = f"mkdir {places}/skillet-99999 || exit 77; {' '.join(map(str, program))} > {folder}/said && ls {places}"
                done = on_kernel_with_a_whole_bus(chip, ["sh", "-c", script], "--cores", "1")
                if done.returncode == 77:
                    self.skipTest("a kernel without tracing")
                self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
                slices, told = [], []
                with file.open("rb") as trace:
                    _trace_events.Reader(slices.append, lambda *_: None, lambda *event: told.append(event)).read(trace)
                last = max((one for one in slices if one.category == "npu" and one.depth == 0), key=lambda one: one.begin)
                self.assertEqual([name for at, name in told if last.begin <= at <= last.end], events)
                said = subprocess.run([COMMAND, "trace", file], capture_output=True, text=True, check=True).stdout
                for name in events:
                    self.assertRegex(said, rf"kernel's job scheduler: .*\b{len(told) // 3} {name}")

    def test_memory_is_shared_with_other_drivers(self):
        """Tests the C interface with tensors in memory of the device, of a DMA heap, and of another handle of the device."""
        for chip, node, cases in (("a311d", "/dev/dri/renderD128", ("own", "heap", "second", "again")),
                                  ("rk3588", "/dev/accel/accel0", ("refused", "again")), ("imx93", "/dev/accel/accel0", ("again",))):
            with self.subTest(chip):
                done = on_kernel_with_a_whole_bus(chip, [SHARED_BUFFERS, node, MODEL, *cases], "--cores", "1")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual(done.stdout.count(": ok"), len(cases), done.stdout)
                self.assertNotIn("the kernel says", done.stderr)

    def test_the_exit_code_is_the_programs(self):
        self.assertEqual(on_kernel("a311d", ["sh", "-c", "exit 7"]).returncode, 7)

    def test_chips_and_faults_that_are_not_there_are_named(self):
        for chip, options, said in (("a311e", (), "a311e"), ("imx93,quirk=none", (), "'none'"), ("a311d", ("--fault", "rain@1"), "rain@1")):
            with self.subTest(chip=chip, options=options):
                done = on_kernel(chip, ["true"], *options)
                self.assertEqual(done.returncode, 2)
                self.assertIn(said, done.stderr)

    def test_the_program_has_no_input_and_is_told_of_its_limit(self):
        done = on_kernel("a311d", ["sh", "-c", "wc -c"])
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "0"), done.stderr)
        done = on_kernel("a311d", ["sleep", "50"], "--limit", "2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the program did not end within 2 s", done.stderr)
        self.assertNotIn("the kernel ended", done.stderr)


if __name__ == "__main__":
    if subprocess.run(KERNEL, check=False).returncode == 77:
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
