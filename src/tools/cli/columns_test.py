#!/usr/bin/env python3
"""Checks that output fits a terminal.

Lines of most verbs have under 100 columns, errors are one line of at most 100, and the result is on the first screen.

usage: columns_test.py SKILLET      run at the top of the source tree
"""
import json
import re
import subprocess
import sys
import tempfile
import unittest

SKILLET = sys.argv.pop(1)
COLUMNS, ERROR_COLUMNS, SCREEN = 99, 100, 24
DIGITS, LONG, REFUSED = "models/digits.tflite", "tests/models/keras/heads_i8.tflite", "tests/models/refused/no_kernel.tflite"
MODELS = [DIGITS, LONG, "tests/models/keras/transposed_i8.tflite", "tests/models/conv_scales_i8.tflite", REFUSED]
UNKNOWN = ["sim:rk3568", "sim:rk3566", "sim:toaster", "sim:a311", "sim:", "null:x", "a311d", "A311D", "gpu0",
           "something", "0", "npu", "etnaviv0", "rocket3", "/dev/dri/renderD999", "SIM:RK3588"]


def skillet(*args):
    return subprocess.run([SKILLET, *args], capture_output=True, text=True, timeout=120)


class Columns(unittest.TestCase):
    def fits(self, args, text, columns=COLUMNS):
        for line in text.splitlines():
            self.assertLessEqual(len(line), columns, f"{args}: {line}")

    def test_of_what_is_here(self):
        known = [["trust", "--device", f"sim:{chip}"] for chip in ("a311d", "imx8mp", "rk3588", "rk3576")]
        for args in (["doctor"], ["doctor", "--all"], ["devices"], ["devices", "--all"], *known):
            with self.subTest(args=args):
                self.fits(args, skillet(*args).stdout)

    def test_of_help(self):
        verbs = re.findall(r"^  ([a-z]+) {3,}\S", skillet("--help").stdout, re.MULTILINE)
        self.assertGreater(len(verbs), 20)
        for args in ([], *([verb] for verb in verbs)):
            text = skillet(*args, "--help").stdout
            examples = re.compile(r"^ *(skillet|Example:|ffmpeg) ")
            self.fits(args, "\n".join(line for line in text.splitlines() if not examples.match(line)))
            self.assertNotIn("  \n", text)

    def test_of_models(self):
        for model in MODELS:
            for args in (["check", model], ["check", model, "--delegate"], ["check", model, "--device", "sim:a311d"],
                         ["check", model, "--device", "sim:rk3588", "--verbose"], ["plan", model]):
                with self.subTest(args=args):
                    done = skillet(*args)
                    self.fits(args, done.stdout)
                    self.fits(args, done.stderr, ERROR_COLUMNS)
                    self.assertTrue(done.stdout)

    def test_of_what_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            for model in (DIGITS, LONG):
                for device in (["--device", "sim:a311d"], ["--device", "sim:rk3588", "--partition", "all"]):
                    for args in (["run", "--random", "1", "--compare=layers", "--verbose"], ["bench", "--runs", "1", "--warm-up", "0", "--per-op"],
                                 ["fix", "--always", "-o", f"{folder}/f.tflite"], ["compile", "--report", "--explain", "--tuning", "tuned"]):
                        with self.subTest(args=[*args, model, *device]):
                            done = skillet(args[0], model, *args[1:], *device)
                            self.assertTrue(done.stdout, done.stderr)
                            self.fits(args, done.stdout)
                self.fits(["compile", model], skillet("compile", model, "--device", "sim:rk3588", "--explain-partition").stdout)

    def test_of_jobs(self):
        for what in ("*", "0x1030", "15.31"):
            self.fits(["lookup", what], skillet("lookup", what).stdout)

    def test_of_unknown_devices(self):
        for device in UNKNOWN:
            for args in (["run", DIGITS, "--device", device], ["check", DIGITS, "--device", device]):
                with self.subTest(args=args):
                    done = skillet(*args)
                    self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
                    self.fits(args, done.stderr, ERROR_COLUMNS)

    def test_of_unknown_chips(self):
        for chip in ("toaster", "a311", "sim:a311d", "RK3588"):
            for args in (["plan", DIGITS, "--chip", chip], ["virtual", "--chip", chip, "--", "true"], ["decode", DIGITS, "--chip", chip],
                         ["lookup", "x", "--chip", chip], ["diff", DIGITS, DIGITS, "--chip", chip]):
                with self.subTest(args=args):
                    done = skillet(*args)
                    self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
                    self.fits(args, done.stderr, ERROR_COLUMNS)

    def test_of_values_that_an_option_does_not_take(self):
        for option, value in (("--partition", "some"), ("--host-threads", "many"), ("--per-channel", "odd"), ("--cores", "x"), ("--tuning", "x"),
                              ("--threshold", "7"), ("--task", "x"), ("--top", "x"), ("--raw", "yuv"), ("--compare=x", None)):
            args = ["run", DIGITS, option, *([value] if value else [])]
            with self.subTest(args=args):
                done = skillet(*args)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
                self.assertIn(": must be ", done.stderr)
                self.assertIn(f"not '{value or 'x'}'", done.stderr)
                self.fits(args, done.stderr.split(" (see ")[0], ERROR_COLUMNS)

    def test_the_answer_comes_first(self):
        for model in (DIGITS, LONG):
            first = "\n".join(skillet("check", model).stdout.splitlines()[:SCREEN])
            report = json.loads(skillet("check", model, "--json").stdout)
            for chip in report["chips"]:
                self.assertRegex(first, rf'{chip["chip"]} +{chip["npu_ops"]} of {len(report["ops"])}\b')
            one = json.loads(skillet("check", model, "--device", "sim:a311d", "--json").stdout)
            self.assertIn(f'{one["model_npu_ops"]} of {one["model_ops"]} operations', skillet("check", model, "--device", "sim:a311d").stdout.splitlines()[1])
        lines = skillet("doctor").stdout.splitlines()
        self.assertRegex(lines[0], "^(Ready: |No NPU is ready here)")
        self.assertRegex(skillet("devices").stdout.splitlines()[0], "^(on this machine|No NPU here)")

    def test_chips_that_nobody_can_buy_are_shown_when_asked_for(self):
        for verb in ("devices", "doctor"):
            few, all_of_them = skillet(verb).stdout, skillet(verb, "--all").stdout
            for text, sold, other in ((few, True, False), (all_of_them, True, True)):
                self.assertEqual("sim:rk3588" in text and "sim:a311d" in text, sold)
                self.assertEqual("sim:vip8101" in text, other)

    def test_one_count_of_operations(self):
        """Each verb counts the model's own operations, not those that the passes made."""
        for model in (DIGITS, "tests/models/keras/transposed_i8.tflite"):
            for chip in ("a311d", "rk3588"):
                device = ["--device", f"sim:{chip}"]
                one = json.loads(skillet("check", model, *device, "--json").stdout)
                words = f'{one["model_npu_ops"]} of {one["model_ops"]}'
                for args in (["check", model, *device], ["run", model, *device, "--random", "1"], ["bench", model, *device, "--runs", "1", "--warm-up", "1"]):
                    self.assertIn(f"{words} operations", skillet(*args).stdout, args)
                self.assertRegex(skillet("plan", model, "--chip", chip).stdout, rf"{chip} +{words} ")
                for args in (["run", model, *device, "--random", "1"], ["bench", model, *device, "--runs", "1"], ["plan", model, "--chip", chip]):
                    told = json.loads(skillet(*args, "--json").stdout)
                    told = told.get("chips", [told])[0]
                    self.assertEqual((told["model_npu_ops"], told["model_ops"]), (one["model_npu_ops"], one["model_ops"]), args)
                    self.assertNotIn("after the passes", skillet(*args).stdout)
                self.assertIn("after the passes", skillet("run", model, *device, "--random", "1", "--verbose").stdout)

    def test_reasons_of_more_operations_than_the_model_has_say_so(self):
        model = "tests/models/keras/heads_i8.tflite"
        for verb in (["check", model], ["run", model, "--random", "1"]):
            text = skillet(*verb, "--device", "sim:rk3588", "--partition", "all").stdout
            rows = len(re.findall(r"^  \d+ +[A-Z]", text, re.MULTILINE))
            of = json.loads(skillet(*verb, "--device", "sim:rk3588", "--partition", "all", "--json").stdout)["model_ops"]
            made = f", of the {rows} operations that {of} are rewritten to"
            self.assertNotEqual(rows, of)
            self.assertEqual(made in text, "\nnot on the NPU" in text, text)

    def test_a_network_on_the_cpu_has_one_time(self):
        for line in skillet("check", REFUSED).stdout.splitlines() + skillet("check", "tests/models/fc64x10_i8.tflite").stdout.splitlines():
            if " 0 of 1 " in line:
                self.assertRegex(line, r" - +(\S+ ms \(4 cores\)|not known)$")


if __name__ == "__main__":
    unittest.main()
