#!/usr/bin/env python3
"""Tests the `skillet` command as a person types it: exit codes, one-line errors, contents of the reports.

usage: command_test.py SKILLET      run at the top of the source tree
"""
import array
import ctypes
import fcntl
import itertools
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import termios
import time
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, "tests/integration")
import long_cases  # noqa: E402

SKILLET = sys.argv.pop(1)
MODEL = "models/digits.tflite"
PER_CHANNEL = "../shared/models/tf2_mobilenet_v2_1.0_224_ptq.tflite"
SILU = "tests/models/functions/silu_i8.tflite"
PICTURES = [str(path) for path in sorted(Path("models/digits").glob("*.png"))]
BATCH, SCALES = "tests/models/batch/conv_batch3_u8.tflite", "tests/models/conv_scales_i8.tflite"
CAPTURE, OTHER_CAPTURE = "tests/captures/a311d_conv1x1_relu6_u8", "tests/captures/a311d_concat2_i8"

# arguments, exit code, words of the one-line error (exit code 0: of the output)
CASES = [
    (["--help"], 0, "Examples:"),
    (["--version"], 0, "skillet 0."),
    (["run", "--help"], 0, "--compare"),
    (["help"], 0, "Skillet runs quantized TensorFlow Lite networks"),
    (["help", "run"], 0, "--compare"),
    (["help", "dance"], 2, "there is no verb 'dance' (see skillet --help)"),
    ([], 2, "subcommand is required"),
    (["dance"], 2, "there is no verb 'dance' (see skillet --help)"),
    (["run"], 2, "MODEL is required (see skillet run --help)"),
    (["run", MODEL, "--compare=everything"], 2, "--compare"),
    (["rnu", MODEL], 2, "there is no verb 'rnu'; did you mean 'run'? (see skillet --help)"),
    (["--devices"], 2, "there is no option '--devices'"),
    (["run", MODEL, "--imgae", "x"], 2, "there is no option '--imgae'; did you mean '--image'? (see skillet run --help)"),
    (["run", MODEL, MODEL], 2, "'models/digits.tflite' is one argument too many"),
    (["run", MODEL, "--top", "0"], 2, "--top: must be a whole number from 1 to 1000000, not '0'"),
    (["run", MODEL, "--threshold", "7"], 2, "--threshold: must be a number from 0 to 1, not '7' (see"),
    (["run", MODEL, "--threshold", "nan"], 2, "--threshold: must be a number of 0 or more, not 'nan'"),
    (["run", MODEL, "--task", "yolov4"], 2, "--task: must be one of classes, ssd, yolov5, yolov8, nms, mask, pose, not 'yolov4'; did you mean 'yolov"),
    (["run", MODEL, "--image", PICTURES[0], "--show", "--json"], 2, "--show excludes --json"),
    (["run", MODEL, "--repeat", "abc"], 2, "--repeat: must be a whole number from 1 to 1000000, not 'abc'"),
    (["run", "tests/models/state/stream_i8.tflite", "--device", "cpu", "--random", "1", "--repeat", "2", "--compare"], 1,
     "has state, so each run gives other results"),
    (["run", MODEL, "--random", "-1"], 2, "--random: must be a whole number from 0 to"),
    (["run", MODEL, "--random", "99999999999999999999"], 2, "--random: must be a whole number from 0 to"),
    (["run", MODEL, "--random", "18446744073709551615", "--device", "cpu"], 0, "random values"),
    (["run", MODEL, "--device", "a311d"], 2, "no device 'a311d'; did you mean 'sim:a311d'?"),
    (["run", MODEL, "--device", "SIM:A311D"], 2, "did you mean 'sim:a311d'?"),
    (["run", MODEL, "--device", "0"], 2, "device '0'"),
    (["run", MODEL, "--device", "sim:rk3568"], 2, "be simulated"),  # its registers are not modelled, or its family is not built
    (["virtual", "--chip", "rk3568", "--", "true"], 2, "be simulated"),
    (["run", MODEL, "--image", "README.md", "--random", "1"], 2, "excludes"),
    (["run", MODEL, "--device", "sim:toaster"], 2, "no chip 'toaster' (known: "),
    (["run", MODEL, "--device", "sim:foo"], 2, "no chip 'foo' (known: "),
    (["run", MODEL, "--device", "bogus"], 2, "device 'bogus' is not one of auto, npu, cpu, "),
    (["run", MODEL, "--image", "README.md"], 2, "README.md: not a BMP, PNG or JPEG picture"),
    (["run", MODEL, "--input", "README.md"], 2, "the input 'image' takes 784"),
    (["run", "README.md"], 2, "README.md: not a TensorFlow Lite model"),
    (["run", "no_such_file.tflite"], 2, "no_such_file.tflite"),
    (["compile", MODEL, "--device", "cpu"], 2, "nothing is compiled for the CPU"),
    (["check", MODEL, "--device", "sim:a311d"], 0, "on the NPU in"),
    (["compile", MODEL, "--device", "sim:a311d"], 0, "device operation"),
    (["plan"], 2, "one of MODEL and --layers is needed"),
    (["plan", MODEL, "--chip", "a311d"], 0, "simulated times, nothing was measured"),
    (["plan", MODEL, "--chip", "s905d3"], 1, "open jobs of chip 's905d3' are not timed"),
    (["plan", MODEL, "--tuning", "fast"], 2, "--tuning fast: must be recorded, proven or tuned"),
    (["plan", CAPTURE], 0, "(simulated, at 800 MHz, +-"),
    (["plan", "README.md"], 2, "README.md"),
    (["plan", "--layers", "README.md", "--chip", "a311d"], 2, "README.md: line 1: column id is missing"),
    (["plan", "--layers", "no_such_file.csv", "--chip", "a311d"], 2, "no_such_file.csv"),
    (["decode", CAPTURE], 0, "submission 1"),
    (["decode", CAPTURE, "--submission", "99"], 2, "no 99"),
    (["decode", "README.md"], 2, "README.md"),
    (["diff", CAPTURE, CAPTURE], 0, "no field differs"),
    (["diff", CAPTURE, CAPTURE + "/model.tflite"], 0, "no field differs"),
    (["diff", MODEL, MODEL], 2, f"skillet: {MODEL}: name the chip with --chip"),
    (["diff", CAPTURE, "README.md"], 2, "README.md: neither a capture"),
    (["diff", CAPTURE, "no_such_file"], 2, "no_such_file"),
    (["devices"], 0, "sim:a311d"),
]


def skillet(*args):
    return subprocess.run([SKILLET, *args], capture_output=True, text=True, timeout=120)


def report(*args):
    done = skillet(*args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def places(result):
    return [(op["where"], op["part"], op["reason"], op["unproven"]) for op in result["ops"]]


# Builds with sanitizers have no preloaded libraries.
HAS_VIRTUAL_NODE = subprocess.run([SKILLET, "virtual", "--", "true"], capture_output=True, timeout=60).returncode == 0


class Command(unittest.TestCase):
    def test_exit_codes_and_messages(self):
        for args, code, words in CASES:
            with self.subTest(args=args):
                done = skillet(*args)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stdout if code == 0 else done.stderr)
                if code != 0:
                    self.assertTrue(done.stderr.startswith("skillet: "), done.stderr)
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_every_device_recognises_the_digits(self):
        for device in ("cpu", "sim:a311d"):
            with self.subTest(device=device):
                result = report("run", MODEL, "--device", device, "--labels", "models/digits_labels.txt", "--image", *PICTURES)
                seen = [run["outputs"][0]["top"][0]["label"] for run in result["runs"]]
                self.assertEqual(seen, [Path(picture).name[0] for picture in PICTURES])
                self.assertEqual(result["npu_ops"] > 0, device != "cpu")
                self.assertEqual(result["npu_ops"] + result["cpu_ops"], len(result["ops"]))

    def test_npu_operations_are_within_one_of_the_cpu(self):
        result = report("run", MODEL, "--device", "sim:a311d", "--random", "5", "--compare=layers")
        layers = [layer for layer in result["runs"][0]["layers"] if layer["compared"]]
        self.assertGreater(len(layers), 8)
        self.assertLessEqual(max(layer["max_difference"] for layer in layers), 1)

    def test_comparing_layers_changes_no_simulated_time(self):
        for device in ("sim:a311d", "sim:rk3588"):
            plain = report("run", MODEL, "--device", device, "--random", "5")["simulated"]
            self.assertIsNotNone(plain)
            self.assertEqual(report("run", MODEL, "--device", device, "--random", "5", "--compare=layers")["simulated"], plain)

    def test_the_cpu_differs_from_itself_by_nothing(self):
        result = report("run", MODEL, "--device", "cpu", "--random", "5", "--compare")
        self.assertEqual(result["runs"][0]["outputs"][0]["max_difference"], 0)

    def test_check_and_run_agree_where_operations_go(self):
        """Both call operations verified that the device was seen to compute right, once the result is kept."""
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, SKILLET_TRUST_DIR=folder):
            before = report("check", MODEL, "--device", "sim:a311d", "--partition", "all")
            ran = report("run", MODEL, "--device", "sim:a311d", "--partition", "all")
            checked = report("check", MODEL, "--device", "sim:a311d", "--partition", "all")
        self.assertEqual(places(checked), places(ran))
        unproven = [[op["reason"] for op in one["ops"] if op["unproven"]] for one in (before, checked)]
        self.assertTrue(unproven[0])
        self.assertEqual([why.replace("unproven: ", "verified on this device, unproven elsewhere: ") for why in unproven[0]], unproven[1])

    def test_check_of_a_chip_and_of_all_agree(self):
        for model, of, more in itertools.product((MODEL, BATCH, SCALES), ("a311d", "rk3588"), ([], ["--per-channel", "approximate"])):
            with self.subTest(model=model, chip=of, more=more):
                every = report("check", model, *more)
                one = report("check", model, "--device", "sim:" + of, *more)
                chip = next(chip for chip in every["chips"] if chip["chip"] == of)
                self.assertEqual((len(every["ops"]), chip["npu_ops"], chip["part_ops"], chip["npu_macs"], every["macs"]),
                                 (one["model_ops"], one["model_npu_ops"], one["model_part_ops"], one["npu_macs"], one["macs"]))
                self.assertEqual(chip["npu_parts"], one["npu_parts"])

    def test_check_is_a_gate(self):
        # Operations that the partition leaves to the CPU count as the CPU's. Moves have no MACs, but they take time.
        rows = [(MODEL, ["--device", "sim:a311d", "--require", "90%"], 0), (MODEL, ["--device", "sim:a311d", "--require", "100%"], 0),
                (MODEL, ["--device", "sim:a311d", "--partition", "predicted", "--host-threads", "auto", "--require", "1%"], 1),
                (SILU, ["--unproven", "refuse", "--device", "sim:a311d", "--require", "90%"], 1),
                (SILU, ["--unproven", "refuse", "--device", "sim:a311d", "--require", "80%"], 0),
                (MODEL, ["--unproven", "refuse", "--device", "sim:a311d", "--require", "99%"], 0),
                (MODEL, ["--require", "99%"], 0),
                ("tests/models/concat2_i8.tflite", ["--device", "sim:rk3588", "--require", "100%"], 0),
                ("tests/models/concat2_i8.tflite", ["--device", "cpu", "--require", "1%"], 1)]
        for model, more, code in rows:
            with self.subTest(model=model, more=more):
                done = skillet("check", model, *more)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(done.stderr.count("; --require needs"), code)
        lstm = "../shared/models/keras_lstm_mnist_ptq.tflite"
        if os.path.exists(lstm):
            self.assertEqual(skillet("check", lstm, "--device", "sim:imx8mp", "--require", "90%").returncode, 1)

    def test_check_of_all_chips_reads_the_word_on_scales(self):
        for more, environment, is_off in (([], {}, False), (["--per-channel", "approximate"], {}, True),
                                          ([], {"SKILLET_PER_CHANNEL": "approximate"}, True)):
            with self.subTest(more=more, environment=environment), tempfile.TemporaryDirectory() as folder:
                page = Path(folder) / "page.html"
                done = subprocess.run([SKILLET, "check", SCALES, "--json", "--html", page, *more],
                                      capture_output=True, text=True, timeout=120, env={**os.environ, **environment})
                self.assertEqual(done.returncode, 0, done.stderr)
                chip = next(one for one in json.loads(done.stdout)["chips"] if one["chip"] == "a311d")
                self.assertEqual(set(chip["error"]) != {"up to 1"}, is_off, "weights that share scales")
                for error in chip["error"]:
                    self.assertIn(f">{error}<", page.read_text())

    def test_check_says_what_the_delegate_claims(self):
        for chip in report("check", MODEL)["chips"]:
            claimed = next(one for one in report("check", MODEL, "--delegate")["chips"] if one["chip"] == chip["chip"])
            for where, all_of_it in zip(claimed["where"], chip["where"]):
                self.assertIn((where, all_of_it), {("npu", "npu"), ("cpu", "npu"), ("cpu", "cpu"), ("cpu", "both"),
                                                   ("npu", "folded"), ("cpu", "folded")})
            self.assertEqual(claimed["where"].count("npu"), claimed["npu_ops"])
        self.assertEqual(skillet("check", MODEL, "--delegate", "--device", "sim:a311d").returncode, 2)

    def test_what_becomes_several_operations_is_where_all_of_them_are(self):
        for chip in report("check", "tests/models/keras/transposed_i8.tflite")["chips"]:
            if chip["chip"] in ("a311d", "imx8mp"):
                self.assertEqual(set(chip["where"]), {"npu", "folded"})

    def test_plan_refuses_what_is_no_chip(self):
        for bad in (["--chip", "nope"], ["--chip", "a311d", "--chip", "nope"], ["--set", "nope=1"]):
            self.assertEqual(skillet("plan", MODEL, *bad).returncode, 2, bad)
        self.assertEqual(len(report("plan", MODEL, "--chip", "a311d", "--chip", "a311d")["chips"]), 1)

    def test_a_report_holds_what_somebody_else_needs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "bug.tar")
            done = skillet("bug", MODEL, "--device", "sim:a311d", "--note", "it is wrong", "-o", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            with tarfile.open(path) as archive:
                files = {name: archive.extractfile(name).read() for name in archive.getnames()}
            self.assertEqual(files["model.tflite"], Path(MODEL).read_bytes())
            for name, words in (("report.txt", ["it is wrong", "chip      a311d", "libc", "operations on the NPU", "skillet doctor"]),
                                ("graph.txt", ["conv_2d"]), ("part0.graph.txt", ["conv_2d"]), ("part0.program.txt", ["job"])):
                for word in words:
                    self.assertIn(word.lower(), files[name].decode().lower(), name)
            self.assertEqual(skillet("diff", "--chip", "a311d", MODEL, MODEL).returncode, 0)
            self.assertEqual(skillet("bug", MODEL, "--device", "sim:a311d", "--without-model", "-o", path).returncode, 0)
            with tarfile.open(path) as archive:  # no file contains weights
                self.assertEqual(archive.getnames(), ["report.txt", "graph.txt", "part0.graph.txt", "part0.program.txt"])
            done = skillet("bug", "README.md", "--device", "cpu", "--without-model", "-o", path)
            self.assertEqual(done.returncode, 0, done.stderr)  # what is wrong may be the model
            self.assertIn("nothing else of the model: README.md: not a TensorFlow Lite model", done.stderr)
            with tarfile.open(path) as archive:
                self.assertEqual(archive.getnames(), ["report.txt"])
                self.assertIn(b"error: README.md: not a TensorFlow Lite model", archive.extractfile("report.txt").read())

    @unittest.skipUnless(HAS_VIRTUAL_NODE, "no virtual node in this build")
    @unittest.skipIf("SANITIZED" in os.environ, "preloaded libraries and sanitizers exclude each other")
    def test_programs_end_as_they_do_where_sigchld_is_ignored(self):
        def ignore():
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)

        with tempfile.TemporaryDirectory() as folder:
            recorded = str(Path(folder) / "x.cap")
            for code in (0, 3, 77):
                program = ["sh", "-c", f"exit {code}"]
                for verb in (["virtual", "--chip", "a311d"], ["capture", "-o", recorded]):
                    done = subprocess.run([SKILLET, *verb, "--", *program], capture_output=True, text=True, timeout=60,
                                          preexec_fn=ignore)
                    # A capture without submissions is a failure too.
                    self.assertEqual(done.returncode, 1 if verb[0] == "capture" and code == 0 else code, (verb, done.stderr))

    def test_a_report_reads_its_model_once(self):
        is_open, is_close = 0x20, 0x10  # IN_OPEN, IN_CLOSE_NOWRITE: a close between two opens keeps the kernel from merging them
        libc = ctypes.CDLL(None, use_errno=True)
        with tempfile.TemporaryDirectory() as folder:
            model, path = Path(folder) / "model.tflite", Path(folder) / "bug.tar"
            shutil.copy(MODEL, model)
            watch = libc.inotify_init1(os.O_NONBLOCK)
            self.assertGreaterEqual(libc.inotify_add_watch(watch, os.fsencode(model), is_open | is_close), 0)
            done = subprocess.run([SKILLET, "bug", str(model), "--device", "sim:a311d", "-o", str(path)], capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            opened = sum(1 for event in struct.iter_unpack("iIII", os.read(watch, 65536)) if event[1] & is_open)
            os.close(watch)
            self.assertEqual(opened, 1)
            with tarfile.open(path) as archive:
                self.assertEqual(archive.extractfile("model.tflite").read(), model.read_bytes())

    @unittest.skipUnless(HAS_VIRTUAL_NODE, "no virtual node in this build")
    def test_a_part_that_falls_back_leaves_a_report(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([SKILLET, "virtual", "--chip", "a311d", "--fail", "submit:2:EIO", "--", SKILLET, "run", MODEL,
                                   "--device", "npu", "--cores", "2"], capture_output=True, text=True, timeout=60,
                                  env={**os.environ, "SKILLET_BUG_DIR": folder, "SKILLET_UNPROVEN": "take"})
            self.assertEqual(done.returncode, 1, done.stderr)
            (path,) = Path(folder).iterdir()
            self.assertIn(f"a report was written to {path}", done.stderr)
            with tarfile.open(path) as archive:
                names = [f"part0.{kind}" for kind in ("graph.txt", "program.txt", "program")]
                self.assertEqual(archive.getnames(), ["report.txt", *names])
                told = archive.extractfile("report.txt").read().decode()
                for word in ("EIO", f"skillet   {skillet('--version').stdout.split()[1]}\n", " unproven=take", " cores=2 ",
                             " host_threads=1 "):
                    self.assertIn(word, told)
                archive.extractall(folder)
            # The failed program equals what `skillet compile` makes with the same options.
            made = str(Path(folder) / "made")
            self.assertEqual(skillet("compile", MODEL, "--device", "sim:a311d", "--cores", "2", "-o", made).returncode, 0)
            self.assertEqual(skillet("diff", made, str(Path(folder) / "part0.program")).returncode, 0)

    @unittest.skipUnless(HAS_VIRTUAL_NODE, "no virtual node in this build")
    def test_only_the_last_folder_of_reports_is_made(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, is_made in (("new", True), ("misspelt/new", False)):
                done = subprocess.run([SKILLET, "virtual", "--chip", "a311d", "--fail", "submit:2:EIO", "--", SKILLET, "run", MODEL,
                                       "--device", "npu"], capture_output=True, text=True, timeout=60,
                                      env={**os.environ, "SKILLET_BUG_DIR": f"{folder}/{name}", "SKILLET_UNPROVEN": "take"})
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual("SKILLET_BUG_DIR: " in done.stderr, not is_made, done.stderr)
            self.assertEqual([path.name for path in Path(folder).iterdir()], ["new"])

    @unittest.skipUnless(HAS_VIRTUAL_NODE, "no virtual node in this build")
    def test_an_npu_that_fails_is_not_what_was_asked_for(self):
        self.fails_with_its_npu(["run", MODEL, "--random", "1"])

    def test_long_an_npu_that_fails_in_other_verbs(self):
        self.fails_with_its_npu(["eval", MODEL, "--data", "models/digits"], ["bench", MODEL, "--runs", "2"])

    def fails_with_its_npu(self, *verbs):
        rows = [("submit:2-*:EIO", "npu", {}, 1), ("submit:2-*:EIO", "/dev/dri/renderD128", {}, 1), ("submit:2-*:EIO", "auto", {}, 0),
                ("submit:2-*:EIO", "auto", {"SKILLET_REQUIRE_NPU": "1"}, 1), (None, "auto", {"SKILLET_REQUIRE_NPU": "1"}, 0),
                (None, "npu", {}, 0)]
        for verb in verbs:
            for fail, device, variables, code in rows:
                with self.subTest(verb=verb[0], fail=fail, device=device, variables=variables):
                    faults = ["--fail", fail] if fail else []
                    done = subprocess.run([SKILLET, "virtual", "--chip", "a311d", *faults, "--", SKILLET, *verb, "--device", device,
                                           "--json"], capture_output=True, text=True, timeout=120, env={**os.environ, **variables})
                    self.assertEqual(done.returncode, code, done.stderr)
                    told = json.loads(done.stdout)  # the results are printed all the same
                    self.assertEqual((told["fallback_ops"] > 0, told["npu_ops"] > 0), (fail is not None, fail is None))
                    self.assertEqual("operations of the NPU after a failure" in done.stderr, code == 1)
        for verb in verbs:
            done = subprocess.run([SKILLET, *verb], capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "SKILLET_REQUIRE_NPU": "1"})
            self.assertEqual(done.returncode, 2, "no NPU is here")
            self.assertIn("no NPU here", done.stderr)

    def test_what_runs_or_compiles_reads_the_word_on_scales(self):
        for verb in (["run", MODEL], ["eval", MODEL, "--data", "models/digits"], ["bench", MODEL], ["check", MODEL],
                     ["compile", MODEL]):
            done = subprocess.run([SKILLET, *verb, "--device", "sim:a311d"], capture_output=True, text=True, timeout=60,
                                  env={**os.environ, "SKILLET_PER_CHANNEL": "odd"})
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--per-channel: must be one of exact, approximate, strict, not 'odd'", done.stderr)
        odd = subprocess.run([SKILLET, "plan", MODEL], capture_output=True, text=True, timeout=60, env={**os.environ, "SKILLET_PER_CHANNEL": "odd"})
        self.assertEqual((odd.returncode, "--per-channel: must be one of" in odd.stderr), (2, True))

    @unittest.skipUnless(os.path.exists(PER_CHANNEL), "../shared is not here, and no model in the tree has a scale for each channel")
    def test_long_the_word_on_scales_counts(self):
        ops = [report("plan", PER_CHANNEL, "--chip", "a311d", "--per-channel", what)["chips"][0]["cpu_ops"] for what in ("exact", "approximate")]
        self.assertGreater(ops[0], 10 * ops[1])

    def test_what_the_environment_says_wrongly_is_said(self):
        rows = [({"SKILLET_LOG": "loud"}, "SKILLET_LOG=loud: must be error, warning, info or debug; taking warning"),
                ({"SKILLET_LOG": "warnign"}, "did you mean 'warning'?"),
                ({"SKILLET_DEBUG": "bogus,ir=1"}, "SKILLET_DEBUG: there is no 'bogus' (SKILLET_DEBUG=help lists all)"),
                ({"SKILLET_DEBUG": "passess"}, "there is no 'passess'; did you mean 'passes'?"),
                ({"SKILLET_ALLOW_UNPROVEN": "maybe"}, "skillet: SKILLET_ALLOW_UNPROVEN=maybe: must be 1 or 0"),
                ({"SKILLET_UNPROVEN": "maybe"}, "--unproven"),
                ({"SKILLET_LOG": "error", "SKILLET_DEBUG": "sim,submit"}, "")]
        for variables, words in rows:
            with self.subTest(variables=variables):
                done = subprocess.run([SKILLET, "compile", MODEL, "--device", "sim:a311d"], capture_output=True, text=True,
                                      env={**os.environ, **variables}, timeout=60)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stderr == "", words == "", done.stderr)

    def test_labels_that_do_not_fit_are_said(self):
        with tempfile.TemporaryDirectory() as folder:
            labels = Path(folder) / "labels.txt"
            for text, words in (("a\nb\n", "2 labels for the 10 classes"), ("", "0 labels for the 10 classes"),
                                ("\n".join("0123456789"), ""), ("\x1b[31mx\n" * 10, "")):
                labels.write_text(text)
                done = skillet("run", MODEL, "--device", "cpu", "--labels", str(labels))
                self.assertEqual(done.returncode, 0)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stderr == "", words == "", done.stderr)
                self.assertNotIn("\x1b", done.stdout)

    def test_every_operation_on_the_cpu_has_a_reason(self):
        # Of a part whose job is lost again and again too; and where no NPU was requested.
        failing = [SKILLET, "virtual", "--chip", "a311d", "--fail", "submit:*:reset", "--", SKILLET]
        rows = [
            ([SKILLET, "check"], "cpu", "no NPU was requested"),
            ([SKILLET, "run"], "cpu", "no NPU was requested"),
        ] + ([(failing + ["run"], "npu", "did not write its output")] if HAS_VIRTUAL_NODE else [])
        for command, device, words in rows:
            with self.subTest(command=command, device=device):
                done = subprocess.run([*command, MODEL, "--device", device, "--json"], capture_output=True, text=True,
                                      timeout=120)
                self.assertEqual(done.returncode, 1 if device == "npu" else 0, done.stderr)
                ops = json.loads(done.stdout)["ops"]
                self.assertEqual({op["where"] for op in ops}, {"cpu"})
                self.assertEqual([op for op in ops if not op["reason"]], [])
                self.assertIn(words, ops[0]["reason"])

    def test_unproven_operations_have_one_answer_on_real_and_simulated_devices(self):
        # A fully connected layer. For programs that it runs, the virtual node is a real device.
        check = ["check", "tests/models/fc64x10_i8.tflite", "--json", "--device"]
        rows = [
            (["sim:a311d"], None, "npu"),
            (["sim:a311d"], "refuse", "cpu"),
            (["/dev/dri/renderD128"], None, "npu"),
            (["/dev/dri/renderD128"], "refuse", "cpu"),
            (["/dev/dri/renderD128"], "take", "npu"),
            (["/dev/dri/renderD128", "--unproven", "verify"], "refuse", "npu"),
            (["/dev/dri/renderD128", "--allow-unproven"], "refuse", "npu"),
            (["sim:a311d", "--allow-unproven", "--unproven", "refuse"], None, "cpu"),
            (["sim:a311d", "--only-proven"], None, "cpu"),
        ]
        for device, variable, where in rows:
            if device[0].startswith("/") and not HAS_VIRTUAL_NODE:
                continue
            with self.subTest(device=device, variable=variable):
                environment = {name: value for name, value in os.environ.items() if not name.startswith("SKILLET_")}
                environment["SKILLET_PARTITION"] = "all"
                if variable is not None:
                    environment["SKILLET_UNPROVEN"] = variable
                around = [SKILLET, "virtual", "--chip", "a311d", "--"] if device[0].startswith("/") else []
                done = subprocess.run([*around, SKILLET, *check, *device], capture_output=True, text=True, timeout=120,
                                      env=environment)
                self.assertEqual(done.returncode, 0, done.stderr)
                op = json.loads(done.stdout)["ops"][0]
                self.assertEqual(op["where"], where)
                self.assertEqual("unproven" in op["reason"], True)
                self.assertEqual("unproven=refuse" in op["reason"], where == "cpu")
                self.assertEqual("old name" in done.stderr, "--allow-unproven" in device or "--only-proven" in device, done.stderr)

    def test_programs_are_kept_in_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            runs = [report("run", MODEL, "--device", "sim:a311d", "--cache-dir", folder)["runs"][0]["outputs"]
                    for _ in range(2)]
            self.assertEqual(runs[0], runs[1])
            self.assertGreater(len(list(Path(folder).glob("*.skp"))), 0)

    def test_long_verbs_that_are_python(self):
        with tempfile.TemporaryDirectory() as folder:
            page, bare, capture = Path(folder) / "page.html", Path(folder) / "python", Path(CAPTURE).resolve()
            bare.write_text('#!/bin/sh\nexec env -u PYTHONPATH python3 "$@"\n')
            bare.chmod(0o755)
            (Path(folder) / "json.py").write_text("raise SystemExit(9)")  # modules in the current folder must not be imported
            environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SKILLET_PYTHON")}
            for words, python, code, out, err in (
                    (["page", capture, "-o", page], "", 0, "", ""), (["decode", capture, "--html", page], "", 0, "", ""),
                    (["decode", capture, f"--html={page}"], "", 0, "", ""),
                    (["fields", "--help"], "", 0, "usage: skillet fields", ""), (["sweep"], "", 2, "", "usage: "),
                    (["page", capture, "-o", page], "/no/python", 2, "", "/no/python: No such file"),
                    (["page", capture, "-o", page], str(bare), 2, "", "needs the Python package of Skillet")):
                page.unlink(missing_ok=True)
                named = {"SKILLET_PYTHON": python} if python else {}
                done = subprocess.run([Path(SKILLET).resolve(), *words], capture_output=True, text=True, env={**environment, **named}, cwd=folder, check=False)
                self.assertEqual((done.returncode, out in done.stdout, err in done.stderr), (code, True, True), (words, done))
                self.assertEqual(page.exists(), code == 0 and (page in words or f"--html={page}" in words), words)

    def test_long_help_of_conformance_needs_no_numpy(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "numpy.py").write_text("raise ImportError")
            for words, code, out, err in ((["conformance", "--help"], 0, "--delegate PATH", ""), (["help", "conformance"], 0, "--delegate PATH", ""),
                                          (["help", "reduce"], 0, "--delegate PATH", ""), (["conformance", "--list"], 2, "", "NumPy is not installed")):
                done = subprocess.run([SKILLET, *words], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": folder}, check=False)
                self.assertEqual((done.returncode, out in done.stdout, err in done.stderr), (code, True, True), (words, done))

    def test_the_home_folder_may_be_written_short(self):
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run([SKILLET, "run", MODEL, "--device", "sim:a311d", "--cache-dir=~/programs"], timeout=60,
                                  capture_output=True, text=True, env={**os.environ, "HOME": home})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertGreater(len(list((Path(home) / "programs").glob("*.skp"))), 0)

    def test_a_recorded_run_decodes_and_differs_from_another(self):
        with tempfile.TemporaryDirectory() as folder:
            recorded = str(Path(folder) / "run.capture")
            report("run", MODEL, "--device", "sim:a311d", "--record", recorded)
            decoded = report("decode", recorded)
            self.assertEqual(decoded["chip"], "a311d")
            self.assertFalse([f for s in decoded["submissions"] for f in s["fields"] if f["unknown"]])
            self.assertEqual(skillet("diff", recorded, recorded).returncode, 0)
            self.assertEqual(len(report("decode", recorded, "--last", "1")["submissions"]), 1)
        done = skillet("diff", CAPTURE, OTHER_CAPTURE, "--json")
        self.assertEqual(done.returncode, 1)
        self.assertGreater(len(json.loads(done.stdout)["differences"]), 0)

    def test_a_capture_is_readable_up_to_where_it_was_cut_off(self):
        with tempfile.TemporaryDirectory() as folder:
            recorded = Path(folder) / "run.capture"
            report("run", MODEL, "--device", "null:a311d", "--repeat", "3", "--record", str(recorded))
            whole = report("decode", str(recorded))["submissions"]
            recorded.write_bytes(recorded.read_bytes()[:-10])
            done = skillet("decode", str(recorded), "--json")
            self.assertEqual(json.loads(done.stdout)["submissions"], whole[:-1])
            self.assertRegex(done.stderr, r"^.*run.capture: cut off after submission \d+: its last \d+ bytes are .*\n$")
            recorded.write_bytes(b"SKILCAP\n\2\0\0\0" + bytes(30))
            done = skillet("decode", str(recorded))
            self.assertEqual(done.returncode, 2)
            self.assertIn("capture file of version 2; this build reads version 4: record it again", done.stderr)
            report("run", MODEL, "--device", "null:a311d", "--record", str(recorded))  # the damaged capture may be overwritten
            other = Path(folder) / "precious"
            other.write_text("no capture")
            self.assertIn("is not a capture", skillet("run", MODEL, "--device", "null:a311d", "--record", str(other)).stderr)
            self.assertEqual(other.read_text(), "no capture")

    def test_a_full_disk_ends_a_recording_with_what_fits(self):
        with tempfile.TemporaryDirectory() as folder:
            recorded = Path(folder) / "run.capture"
            command = ["run", MODEL, "--device", "null:a311d", "--repeat", "4", "--record", str(recorded)]
            report(*command)
            room = recorded.stat().st_size - 1
            recorded.unlink()
            # Python ignores SIGXFSZ, and its children do so without restore_signals. The counts of `./x coverage` must not be cut off.
            done = subprocess.run([SKILLET, *command], capture_output=True, text=True, restore_signals=False,
                                  env={**os.environ, "GCOV_PREFIX": folder},
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
            self.assertEqual(done.returncode, 1)
            self.assertIn("File too large", done.stderr)
            decoded = skillet("decode", str(recorded), "--json")
            self.assertEqual(decoded.returncode, 1)
            self.assertIn("cut off after submission", decoded.stderr)
            self.assertGreater(len(json.loads(decoded.stdout)["submissions"]), 3)

    def test_a_signal_ends_the_wait_for_frames(self):
        for signal_number, name in ((signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM")):
            with subprocess.Popen([SKILLET, "run", MODEL, "--device", "cpu", "--raw", "gray"], stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:  # background jobs of a shell ignore it
                process.stdin.write(b"part of a frame")
                process.stdin.flush()
                waiting = array.array("i", [1])
                while waiting[0]:  # until the program has read all input, and waits for more
                    time.sleep(0.05)
                    fcntl.ioctl(process.stdin, termios.FIONREAD, waiting)
                time.sleep(0.2)
                process.send_signal(signal_number)
                said = process.stderr.read().decode()
            self.assertIn(f"stopped by {name}", said)
            self.assertNotIn("Interrupted system call", said)

    @unittest.skipIf("SANITIZED" in os.environ, "sanitizers keep freed memory")
    def test_long_a_capture_needs_no_more_memory(self):
        def peak_kib(*command):
            with subprocess.Popen([SKILLET, *command], stdout=subprocess.DEVNULL) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            return usage.ru_maxrss

        with tempfile.TemporaryDirectory() as folder:
            peaks = []
            for repeat, told in (("3", "3"), ("100", "30")):  # half a megabyte of JSON each
                recorded = str(Path(folder) / repeat)
                peaks.append([peak_kib("run", MODEL, "--device", "null:a311d", "--repeat", repeat, "--record", recorded),
                              peak_kib("decode", recorded), peak_kib("decode", recorded, "--last", told, "--json"),
                              peak_kib("diff", recorded, recorded)])
            for short, long in zip(*peaks):
                self.assertLess(long, short + 2560, peaks)

    def test_each_device_is_recorded_where_the_environment_says(self):
        with tempfile.TemporaryDirectory() as folder:
            for number in ("", ".2"):
                done = subprocess.run([SKILLET, "run", MODEL, "--device", "sim:a311d"], capture_output=True, text=True,
                                      timeout=60, env={**os.environ, "HOME": folder, "SKILLET_DEBUG": "capture=~/jobs"})
                said = number and (f"skillet: warning: {folder}/jobs exists; submissions to sim:a311d are recorded in "
                                   f"{folder}/jobs{number}\n")
                self.assertEqual((done.returncode, done.stderr), (0, said))
                self.assertGreater(len(report("decode", f"{folder}/jobs{number}")["submissions"]), 0)
            recorded = str(Path(folder) / "recorded")
            report("run", MODEL, "--device", "sim:a311d", "--record", recorded)
            self.assertEqual(skillet("diff", recorded, f"{folder}/jobs").returncode, 0)

    def test_an_older_recording_stays_when_nothing_is_recorded(self):
        with tempfile.TemporaryDirectory() as folder:
            recorded = Path(folder) / "recorded"
            report("run", MODEL, "--device", "sim:a311d", "--record", str(recorded))
            before = recorded.read_bytes()
            for wrong in (["--device", "npu"], ["--device", "cpu"], ["--device", "sim:a311d", "--labels", "nowhere"]):
                self.assertEqual(skillet("run", MODEL, *wrong, "--record", str(recorded)).returncode, 2)
                self.assertEqual(recorded.read_bytes(), before)

    @unittest.skipIf("SANITIZED" in os.environ, "builds with sanitizers have no libraries to preload")
    def test_an_older_recording_stays_until_a_program_has_recorded_one(self):
        with tempfile.TemporaryDirectory() as folder:
            recorded = Path(folder) / "recorded"
            report("run", MODEL, "--device", "sim:a311d", "--record", str(recorded))
            before = recorded.read_bytes()
            for program, code in (["true"], 1), (["no-such-program"], 127), (["/"], 126), (["sh", "-c", "exit 5"], 5):
                done = skillet("capture", "-o", str(recorded), "--", *program)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(recorded.read_bytes(), before)
                self.assertEqual(len(list(Path(folder).iterdir())), 1)

    def test_a_program_is_what_the_model_compiles_to(self):
        with tempfile.TemporaryDirectory() as folder:
            program, recorded = str(Path(folder) / "program"), str(Path(folder) / "recorded")
            model = CAPTURE + "/model.tflite"
            report("compile", model, "--device", "sim:a311d", "-o", program)
            report("compile", model, "--device", "sim:a311d", "--tuning", "recorded", "-o", recorded)
            for a, b in ((program, model), (model, program), (recorded, CAPTURE), (CAPTURE, model)):
                done = skillet("diff", a, b)
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertEqual(skillet("diff", program, OTHER_CAPTURE).returncode, 1)

    def test_compile_reports_the_sizes_of_weights(self):
        for device, formats in (("sim:a311d", ["raw", "recorded"]),
                                ("sim:imx8mp", ["raw", "recorded", "tuned", "format", "entropy"])):
            result = report("compile", MODEL, "--device", device, "--report")
            rows = [row for part in result["parts"] for row in part["weights"]]
            self.assertTrue(rows)
            for row in rows:
                self.assertEqual([name for name in ("raw", "recorded", "tuned", "format", "entropy") if row[name]], formats)
                self.assertLessEqual(row["tuned"], row["recorded"])
                self.assertLessEqual(row["entropy"], row["format"])

    def test_a_compiled_model_that_cannot_run_says_so_once(self):
        with tempfile.TemporaryDirectory() as folder:
            model, file = Path(folder) / "odd.onnx", str(Path(folder) / "odd.skp")
            model.write_bytes(Path("tests/models/onnx/mobilenet.onnx").read_bytes().replace(b"Gemm", b"Gemn"))
            done = skillet("compile", str(model), "--device", "a311d,imx8mp,rk3588", "--partition", "all", "-o", file)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("cannot be run"), 1, done.stderr)
            self.assertIn("cannot be run: 3 operations can run nowhere; the first is Gemn: ", " ".join(done.stderr.split()))

    def test_a_compiled_model_names_the_options_that_a_run_needs(self):
        with tempfile.TemporaryDirectory() as folder:
            for unproven, partition, said in ("verify", "predicted", ""), ("take", "all", "compiled with unproven=take, partition=all:"):
                done = skillet("compile", MODEL, "--device", "a311d", "--unproven", unproven, "--partition", partition, "-o", f"{folder}/it.skp")
                self.assertEqual(done.stdout.count("compiled with"), int(bool(said)), done.stdout)
                self.assertIn(said, done.stdout)

    def test_a_compiled_model_runs_on_its_chips(self):
        with tempfile.TemporaryDirectory() as folder:
            file, again, cache = (str(Path(folder) / name) for name in ("all.skp", "again.skp", "cache"))
            options = ("--partition", "all")
            for path in (file, again):
                self.assertEqual(skillet("compile", MODEL, "--device", "a311d,imx8mp,rk3588", *options, "-o", path).returncode, 0)
            self.assertEqual(Path(file).read_bytes(), Path(again).read_bytes())
            for device, text in (("sim:a311d", r"[1-9]\d* programs as stored"), ("sim:imx8mp", r"[1-9]\d* programs as stored"), ("sim:rk3588", r"[1-9]\d* programs as stored"),
                                 ("sim:s905d3", "compiled for a311d, imx8mp, rk3588 is compiled again for s905d3"), ("cpu", "runs on the CPU: device=cpu")):
                out = [str(Path(folder) / name) for name in ("of_model.npz", "of_file.npz")]
                for model, output in zip((MODEL, file), out):
                    done = subprocess.run([SKILLET, "run", model, "--device", device, *options, "--random", "3", "--output", output],
                                          capture_output=True, text=True, check=True, env={**os.environ, "SKILLET_LOG": "info"})
                self.assertRegex(done.stderr, text)
                self.assertEqual(*(Path(one).read_bytes() for one in out), device)
            self.assertIn("rk3588", skillet("plan", file, "--chip", "rk3588").stdout)
            quiet = skillet("run", file, "--device", "sim:a311d", *options, "--random", "3").stderr
            other = skillet("run", file, "--device", "sim:a311d", *options, "--random", "3", "--tuning", "tuned").stderr
            self.assertNotIn("not used", quiet)
            self.assertRegex(" ".join(other.split()), r"(\d+) of \1 programs? (is|are) not used but compiled again: it was compiled with tuning=proven, not tuned\n?")
            self.assertIn("name the chip with --chip", skillet("decode", file).stderr)
            decoded = skillet("decode", file, "--chip", "rk3588").stdout
            self.assertIn("a compiled model of 14 operations, made by this build\n  a program for a311d: ", decoded)
            self.assertEqual(skillet("run", MODEL, "--device", "sim:a311d", "--cache-dir", cache).returncode, 0)
            for entry in Path(cache).iterdir():
                self.assertIn("programs without their model", skillet("run", str(entry), "--device", "sim:a311d").stderr)
            self.assertEqual(report("compile", file, "--device", "sim:a311d")["parts"][0]["ops"], list(range(13)))

    def test_a_compiled_model_is_for_the_chips_that_take_something(self):
        options = ("--partition", "predicted")  # of this network the RK3588 takes nothing
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "some.skp"
            for devices in ("a311d,rk3588", "rk3588,a311d"):
                done = skillet("compile", MODEL, "--device", devices, "-o", str(file), *options)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("stays on the CPU, which is predicted to be faster than rk3588", done.stderr)
                self.assertIn(f"{file} has no program for rk3588", done.stderr)
                self.assertRegex(done.stdout, r"\nwritten to .*: the model, and 1 program of 1 part for a311d\n")
                [one] = report("inspect", str(file))["models"]
                self.assertEqual([program["chip"] for program in one["programs"]], ["a311d"])
                file.unlink()
            done = skillet("compile", MODEL, "--device", "rk3588,sim:rk3576", "-o", str(file), *options)
            self.assertEqual((done.returncode, file.exists()), (1, False), done.stderr)

    def test_inspect_finds_compiled_models_wherever_they_are_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            file, cache, hosts = (Path(folder) / name for name in ("all.skp", "cache", "host.bin"))
            options = ("--partition", "all")
            self.assertEqual(skillet("compile", MODEL, "--device", "a311d,rk3588", *options, "-o", str(file)).returncode, 0)
            self.assertEqual(skillet("run", MODEL, "--device", "sim:a311d", *options, "--cache-dir", str(cache)).returncode, 0)
            [one] = report("inspect", str(file))["models"]
            self.assertEqual(([program["chip"] for program in one["programs"]], one["bytes"], one["this_build"], one["graph"]["operations"]),
                             (["a311d", "rk3588"], file.stat().st_size, True, 14))
            self.assertEqual(one["graph"]["kinds"]["CONV_2D"], 6)
            self.assertEqual((one["options"]["partition"], one["options"]["tuning"], one["options"]["switches"]), ("all", "proven", ""))
            self.assertRegex(skillet("inspect", str(file)).stdout, r"\n  compiled with cores=auto, partition=all, ")
            self.assertEqual(one["graph"]["inputs"], [{"name": "image", "type": "uint8", "shape": [1, 28, 28, 1]}])
            entry = next(cache.iterdir())
            [kept] = report("inspect", str(entry))["models"]
            self.assertEqual(kept["options"], {})
            self.assertEqual(("graph" in kept, kept["programs"][0]["chip"], kept["programs"][0]["key"] in entry.name), (False, "a311d", True))
            self.assertIn("cached programs", skillet("inspect", str(entry)).stdout)
            hosts.write_bytes(b"x" * 13 + file.read_bytes() + b"SKIL" + entry.read_bytes() + b"y")
            at = 13 + file.stat().st_size + 4
            self.assertEqual(report("inspect", str(hosts))["models"], [{**one, "at": 13}, {**kept, "at": at}])
            self.assertIn(f"at byte {at}: ", skillet("inspect", str(hosts)).stdout)
            good = bytearray(file.read_bytes())
            for place, value, said in (
                    (None, good[:-1], "it was cut off"), (None, b"x" + good[:200], "at byte 1: it has 200 bytes instead of"),
                    (9, 7, "it has version"), (len(good) // 2, good[len(good) // 2] ^ 16, "its checksum does not match"),
                    (None, b"no model", "it contains no compiled model of Skillet")):
                bad = bytearray(value if place is None else good)
                if place is not None:
                    bad[place] = value
                hosts.write_bytes(bad)
                done = skillet("inspect", str(hosts))
                self.assertEqual((done.returncode, done.stderr.count("\n"), said in done.stderr), (2 if len(bad) < 9 else 1, 1, True), done)


COMPLETIONS = [  # typed text, words that are offered, words that are not
    ("skillet ru", ["run"], ["bench"]),
    ("skillet run --comp", ["--compare"], ["--device"]),
    ("skillet run m.tflite --device sim:a3", ["a311d"], ["rk3588"]),
    ("skillet run m.tflite --device np", ["npu"], ["cpu"]),
    ("skillet plan --chip ", ["a311d", "rk3588"], ["--json"]),
    ("skillet run m.tflite --task ", ["classes", "pose"], ["npu"]),
    ("skillet tune m.tflite --labels ", [], ["classes"]),
]


class Completion(unittest.TestCase):
    def test_long_of_shells(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(subprocess.run([sys.executable, "packaging/pages.py", SKILLET, folder], check=False, timeout=600).returncode, 0)
            shells = {"bash": "", "zsh": "autoload -U compinit bashcompinit; compinit -D -u; bashcompinit; setopt ksh_arrays;"}
            for shell, before in shells.items():
                if not shutil.which(shell):
                    continue
                for typed, offered, others in COMPLETIONS:
                    cursor = typed.count(" ")
                    script = (f"{before} source {folder}/skillet.bash; COMP_LINE='{typed}'; COMP_POINT={len(typed)}; COMP_CWORD={cursor}; "
                              f"COMP_WORDS=({typed}); _skillet; echo \"${{COMPREPLY[@]}}\"")
                    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=False, timeout=60)
                    with self.subTest(shell=shell, typed=typed):
                        self.assertEqual(done.stderr, "")
                        words = [word.rpartition(":")[2] for word in done.stdout.split()]
                        if shell == "zsh":  # zsh itself selects the words that fit
                            words = [word for word in words if word.startswith(typed.rpartition(" ")[2].rpartition(":")[2])]
                        self.assertEqual([word for word in offered if word not in words], [])
                        self.assertEqual([word for word in others if word in words], [])


if __name__ == "__main__":
    long_cases.main()
