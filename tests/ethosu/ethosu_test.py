#!/usr/bin/env python3
"""Runs small networks compiled by Arm's Vela on simulated Ethos-U chips: results equal those of the networks on the CPU.

usage: ethosu_test.py SKILLET [--node]     --node: programs can run behind a device node. Files: models/NAME.tflite, models/NAME.ACCELERATOR.tflite
(make_models.py)
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import long_cases  # noqa: E402

SKILLET = sys.argv[1]
MODELS = Path(__file__).resolve().parent / "models"
MADE = sorted(MODELS.glob("*.ethos-*.tflite"))
CHIPS = {"ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256", "ethos-u65-256", "ethos-u65-512"}
OF_VELA_ALONE = {"ethos-u85-128", "ethos-u85-256", "ethos-u85-512", "ethos-u85-1024", "ethos-u85-2048"}


def skillet(*args, partition="all"):
    # The partition would leave these small networks to the CPU, and comparison would hide wrong results of the NPU.
    return subprocess.run([SKILLET, *map(str, args)], capture_output=True, text=True, timeout=120, check=False,
                          env=os.environ | {"SKILLET_PARTITION": partition, "SKILLET_UNPROVEN": "take"})


def names_of(made):
    """Returns the network, and the accelerator that it was compiled for."""
    name, accelerator, _ = made.name.split(".")
    return MODELS / f"{name}.tflite", accelerator


class Programs(unittest.TestCase):
    def outputs(self, model, device):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "out.npz"
            done = skillet("run", model, "--device", device, "--random", "7", "--output", file)
            self.assertEqual(done.returncode, 0, f"{model.name}: {done.stderr}")
            with zipfile.ZipFile(file) as arrays:
                return [arrays.read(one) for one in arrays.namelist()]

    def test_results_are_those_of_the_network(self):
        seen = set()
        for made in MADE:
            network, accelerator = names_of(made)
            with self.subTest(made=made.name):
                expected = self.outputs(network, "cpu")
                self.assertEqual(self.outputs(made, f"sim:{accelerator}"), expected)
                self.assertTrue(any(len(set(one[128:])) > 3 for one in expected), "the results say nothing")
                seen.add(accelerator)
        self.assertEqual(seen, CHIPS | OF_VELA_ALONE)

    def test_a_board_runs_what_its_accelerator_runs(self):
        for made in MODELS.glob("*.ethos-u65-256.tflite"):
            self.assertEqual(self.outputs(made, "sim:imx93"), self.outputs(names_of(made)[0], "cpu"))

    @unittest.skipUnless("--node" in sys.argv, "no library can be preloaded in this build")
    def test_behind_the_node_of_its_kernel_driver(self):
        """Makes all calls to the kernel as on a board. A job that a reset discarded is noticed and runs again."""
        made = MODELS / "mean_int8.ethos-u65-256.tflite"
        for fail in ("", "submit:1:reset", "submit:1:reset_before", "cmdstream_bo_create:1:EINTR"):
            with tempfile.TemporaryDirectory() as folder, self.subTest(fail=fail):
                file = Path(folder) / "out.npz"
                done = skillet("virtual", "--chip", "imx93", *(["--fail", fail] if fail else []), "--", SKILLET, "run", made, "--device", "npu",
                               "--random", "7", "--output", file)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual("running it again" in done.stderr, fail == "submit:1:reset", done.stderr)
                with zipfile.ZipFile(file) as arrays:
                    self.assertEqual([arrays.read(one) for one in arrays.namelist()], self.outputs(names_of(made)[0], "cpu"))

    @unittest.skipUnless("--node" in sys.argv, "no library can be preloaded in this build")
    def test_own_programs_behind_a_node_are_compared_first(self):
        """The emulated kernel driver runs them, and the device's trust store records that they were right."""
        with tempfile.TemporaryDirectory() as folder:
            run = [SKILLET, "run", MODELS / "depthwise_uint8.tflite", "--device", "npu", "--random", "7", "--compare"]
            for fail in ("", "submit:2:reset"):
                done = skillet("virtual", "--chip", "imx93", *(["--fail", fail] if fail else []), "--", "env", f"SKILLET_CACHE_DIR={folder}",
                               "SKILLET_UNPROVEN=verify", *run)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("1 of 1 operation on the NPU in 1 part, 1 job", done.stdout)
                self.assertIn("difference from the CPU kernels: 0 LSB", done.stdout)

    @unittest.skipUnless("--node" in sys.argv, "no library can be preloaded in this build")
    def test_every_call_may_fail(self):
        """Only the NPU can compute Vela's programs, so each fault is an error that names the call, never a wrong result."""
        made = MODELS / "mean_int8.ethos-u65-256.tflite"
        for call in ("open", "dev_query", "bo_create", "bo_mmap_offset", "mmap", "cmdstream_bo_create", "submit", "bo_wait"):
            with self.subTest(call=call):
                done = skillet("virtual", "--chip", "imx93", "--fail", f"{call}:*:EIO", "--", SKILLET, "run", made, "--device", "npu", "--random", "7")
                self.assertIn(done.returncode, (1, 2), done.stderr)
                self.assertIn("EIO", done.stderr)

    def test_a_program_of_another_accelerator_is_refused_in_a_sentence(self):
        for made in MADE[:3]:
            accelerator = names_of(made)[1]
            other = "ethos-u55-128" if accelerator != "ethos-u55-128" else "ethos-u65-256"
            done = skillet("run", made, "--device", f"sim:{other}")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"it was compiled for {accelerator}; this chip is an {other}", done.stderr)

    def test_the_chip_is_that_of_the_file_where_nobody_names_one(self):
        """check and plan use the chips that have the accelerator; run without a device lists the devices to choose from."""
        made = MODELS / "mean_int8.ethos-u65-256.tflite"
        done = skillet("check", made)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split() for line in done.stdout.splitlines() if " of 1 " in line]
        self.assertEqual([row[:4] for row in rows], [["ethos-u65-256", "1", "of", "1"], ["imx93", "1", "of", "1"]])
        done = skillet("plan", made)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines() if " of 1 " in line], ["ethos-u65-256", "imx93"])
        done = skillet("run", made, "--device", "cpu", "--random", "1")
        self.assertIn("no CPU kernel for ethos-u; it was compiled for ethos-u65-256: choose the device npu on a board that has it, "
                      "or sim:ethos-u65-256 or sim:imx93\n", done.stderr)

    def test_an_accelerator_that_no_chip_has_is_named(self):
        model = (MODELS / "mean_int8.ethos-u65-256.tflite").read_bytes()
        at = model.index(b"COP1") + 8
        with tempfile.TemporaryDirectory() as folder:
            forged = Path(folder) / "other.tflite"
            forged.write_bytes(model[:at] + (0x2000180C).to_bytes(4, "little") + model[at + 4:])
            for verb in "check", "run":
                done = skillet(verb, forged)
                self.assertIn("it was compiled for another accelerator (4096 multiply-adds a cycle of product 2), which is not a chip of this build",
                              done.stderr)

    def test_parts_hand_their_memory_on(self):
        """Each part is a job by itself, and reads the results of earlier ones. Results are those of test_results_are_those_of_the_network."""
        for accelerator in "ethos-u65-256", "ethos-u55-128":
            made = MODELS / f"parts_int8.{accelerator}.tflite"
            done = skillet("run", made, "--device", f"sim:{accelerator}", "--random", "1")
            self.assertIn("3 of 5 operations on the NPU in 3 parts, 3 jobs", done.stdout)
            done = skillet("check", "--delegate", made)
            self.assertIn(["5", "of", "5", "1"], [line.split()[1:5] for line in done.stdout.splitlines()], "the delegate takes all or nothing")

    def test_what_only_the_npu_can_run_is_never_left_to_the_cpu(self):
        """One verb for each program."""
        self.npu_runs(lambda i, verb: i % 4 == verb)

    def test_long_what_only_the_npu_can_run_is_never_left_to_the_cpu(self):
        self.npu_runs(lambda i, verb: i % 4 != verb)

    def npu_runs(self, is_tried):
        """With defaults, operations run where they are predicted to be faster. That would be the CPU here, which has no kernel for them."""
        for i, made in enumerate(MADE):
            accelerator = names_of(made)[1]
            device = ["--device", f"sim:{accelerator}"]
            timed = [["plan", made]] if accelerator in CHIPS else []
            verbs = (["run", made, "--random", "7"], ["check", made], ["bench", made, "--runs", "1"], *timed)
            for verb in [one for k, one in enumerate(verbs) if is_tried(i, k)]:
                with self.subTest(made=made.name, verb=verb[0]):
                    chip = ["--chip", accelerator] if verb[0] == "plan" else device
                    done = skillet(*verb, *chip, partition="predicted")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertNotIn("faster on the CPU", done.stdout + done.stderr)
                    if verb[0] == "check":
                        self.assertEqual(done.stdout, skillet(*verb, *chip).stdout)

    def test_what_has_no_cpu_to_be_compared_with_says_so(self):
        made = MODELS / "mean_int8.ethos-u65-256.tflite"
        done = skillet("run", made, "--device", "sim:imx93", "--random", "7", "--compare")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--compare: the CPU cannot compute the network: op 0 ethos-u", done.stderr)

    def test_bench_needs_no_cpu_kernel(self):
        done = skillet("bench", MODELS / "mean_int8.ethos-u65-256.tflite", "--device", "sim:imx93", "--runs", "2", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no times of the CPU kernels", done.stderr)
        self.assertEqual(json.loads(done.stdout)["times"]["runs"], 2)

    def test_long_networks_that_vela_has_not_seen_are_compiled_here(self):
        """Results equal the CPU's, and pass the same rules of the kernel."""
        for network in sorted([*MODELS.glob("*_*int8.tflite"), *MODELS.glob("*_int16.tflite")]):
            expected = self.outputs(network, "cpu")
            for accelerator in sorted(CHIPS):
                with self.subTest(network=network.name, accelerator=accelerator):
                    self.assertEqual(self.outputs(network, f"sim:{accelerator}"), expected)
        done = skillet("check", MODELS / "conv_uint8.tflite", "--device", "sim:imx93")
        self.assertIn("1 of 1 operation on the NPU in 1 part", done.stdout)

    def test_what_is_not_compiled_is_said(self):
        done = skillet("check", MODELS / "parts_int8.tflite", "--device", "sim:imx93")
        self.assertIn("Skillet has no L2_NORMALIZATION for this chip", " ".join(done.stdout.split()))
        done = skillet("check", MODELS / "conv_int16.tflite", "--device", "sim:imx93")
        self.assertNotIn("16x8", done.stdout)

    def test_skillet_compiles_nothing_for_ethos_u85(self):
        done = skillet("check", MODELS / "conv_uint8.tflite", "--device", "sim:ethos-u85-256")
        self.assertIn("Skillet compiles for Ethos-U55 and U65; for this chip use Arm's compiler Vela", " ".join(done.stdout.split()))

    def test_a_recorded_run_decodes(self):
        rows = {"conv_int8.ethos-u55-32": ("ifm_precision is_signed=true precision=bits_8", "op_conv", "op_stop mask=65535"),
                "mean_int8.ethos-u85-256": ("storage=chained", "acc_format format=int32 input=zero", "op_scalar ", "op_depthwise", "op_stop mask=65535")}
        for made, texts in rows.items():
            with self.subTest(made=made), tempfile.TemporaryDirectory() as folder:
                recorded = Path(folder) / "run.capture"
                chip = made.partition(".")[2]
                self.assertEqual(skillet("run", MODELS / f"{made}.tflite", "--device", f"sim:{chip}", "--random", "1", "--record", recorded).returncode, 0)
                done = skillet("decode", recorded)
                self.assertEqual(done.returncode, 0, done.stderr)
                for text in texts:
                    self.assertIn(text, done.stdout)
                self.assertNotIn("unknown", done.stdout)


class Forged(unittest.TestCase):
    """Forged files give one sentence of error, and no crash."""

    def said_of(self, bytes_of_model, device="sim:ethos-u55-32"):
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "forged.tflite"
            model.write_bytes(bytes_of_model)
            done = skillet("run", model, "--device", device, "--random", "1")
            self.assertIn(done.returncode, (1, 2), done.stderr)
            return done.stderr

    def test_forged_payloads_and_streams(self):
        model = (MODELS / "conv_int8.ethos-u55-32.tflite").read_bytes()
        mark = model.index(b"COP1")
        stream = mark + 32
        conv = model.index((0x0002).to_bytes(4, "little"), stream)
        cases = [(mark, b"COP2", "its first operand has format COP2, which is not supported"), (mark, b"COP3", "does not begin with COP1"), (mark + 28, b"\2\xff\xff\xff", "words of commands instead of"),
                 (conv, (0x0FFF).to_bytes(4, "little"), "is no command that may be sent"),
                 (conv, (0x0006_0005).to_bytes(4, "little"), "op_pool.mode 6 is unknown"),
                 (conv, (0x0000_0006).to_bytes(4, "little"), "register ifm2_broadcast was never set")]
        for at, text, says in cases:
            with self.subTest(at=at, says=says):
                self.assertIn(says, self.said_of(model[:at] + text + model[at + len(text):]))

    def test_what_is_not_modelled_of_ethos_u85_is_named(self):
        model = (MODELS / "average_pool_int8.ethos-u85-128.tflite").read_bytes()

        def word(code, value):  # after the start of the payload
            at = next(at for at in range(model.index(b"COP1") + 32, len(model), 4) if model[at:at + 2] == code.to_bytes(2, "little"))
            return model[:at] + ((value << 16) | code).to_bytes(4, "little") + model[at + 4:]
        for code, value, says in ((0x0005, 5, "op_pool.mode 5"), (0x0114, 0x0301, "ofm_precision.reverse 1 is not modelled"),
                                  (0x0114, 0x0901, "ofm_precision.transpose is 1: Linux's driver takes 0 alone"),
                                  (0x0114, 0x4101, "ofm_precision.storage 1 is not modelled"), (0x0124, 0x0110, "acc_format.input 1"),
                                  (0x4024, 0x4000, "ofm_scale.round_mode 2 is not modelled"), (0x0005, 0x0006, "scale of a value or of its place"),
                                  (0x0125, 0x0002, "activation.function 2 is not modelled")):
            with self.subTest(code=hex(code), value=hex(value)):
                self.assertIn(says, self.said_of(word(code, value), "sim:ethos-u85-128"))


if __name__ == "__main__":
    long_cases.main(sys.argv[:1])
