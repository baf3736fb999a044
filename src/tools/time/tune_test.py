#!/usr/bin/env python3
"""Tests `skillet tune` and the files that it writes.

It tunes by the timing model on simulated chips, measures on a virtual node, and refuses invalid files.

usage: tune_test.py SKILLET      run at the top of the source tree
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SKILLET = sys.argv.pop(1)
MODEL = "models/digits.tflite"
VERBS = [["run", MODEL], ["eval", MODEL, "--data", "models/digits"], ["bench", MODEL, "--runs", "1"], ["compile", MODEL], ["check", MODEL]]
CHIPS = ["a311d", "imx8mp", "rk3588"]
HAS_VIRTUAL_NODE = subprocess.run([SKILLET, "virtual", "--", "true"], capture_output=True, timeout=60).returncode == 0


def skillet(*arguments, around=(), env=None):
    return subprocess.run([*around, SKILLET, *arguments], capture_output=True, text=True, timeout=300, env=env)


def values(done):
    return [one["values"] if "values" in one else one for run in json.loads(done.stdout)["runs"] for one in run["outputs"]]


class TuneTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = str(Path(self.folder.name) / "digits.tuning.json")

    def tearDown(self):
        self.folder.cleanup()

    def tuned(self, chip):
        done = skillet("tune", MODEL, "--device", f"sim:{chip}", "-o", self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(Path(self.file).read_text(encoding="utf-8"))

    def test_by_the_model(self):
        for chip in CHIPS:
            file = self.tuned(chip)
            self.assertEqual(file["chip"], chip)
            self.assertRegex(file["found"], "^timing model: .*, simulated, at [0-9]+ MHz")
            self.assertTrue(file["parts"])
            again = skillet("tune", MODEL, "--device", f"sim:{chip}")
            self.assertEqual(json.loads(again.stdout), file, "the same input, another file")
            plain = skillet("run", MODEL, "--device", f"sim:{chip}", "--random", "7", "--json")
            chosen = skillet("run", MODEL, "--device", f"sim:{chip}", "--random", "7", "--json", "--tuning-file", self.file)
            self.assertEqual(chosen.returncode, 0, chosen.stderr)
            self.assertNotIn("warning", chosen.stderr)
            self.assertEqual(values(chosen), values(plain))

    def test_objective(self):
        plain = skillet("run", MODEL, "--device", "sim:rk3588", "--random", "7", "--json")
        found = {}
        for objective in ("wall", "device"):
            done = skillet("tune", MODEL, "--device", "sim:rk3588", "--objective", objective, "-o", self.file)
            self.assertEqual(done.returncode, 0, done.stderr)
            text = json.loads(Path(self.file).read_text(encoding="utf-8"))["found"]
            self.assertEqual("for starting its tasks" in text, objective == "wall", text)
            plan = skillet("plan", MODEL, "--chip", "rk3588", "--tuning-file", self.file, "--json")
            chip = json.loads(plan.stdout)["chips"][0]
            found[objective] = float(text.split(" -> ")[1].split(" ms")[0]), chip["device_ms"]
            chosen = skillet("run", MODEL, "--device", "sim:rk3588", "--random", "7", "--json", "--tuning-file", self.file)
            self.assertEqual(chosen.returncode, 0, chosen.stderr)
            self.assertEqual(values(chosen), values(plain))
        self.assertAlmostEqual(found["device"][0], found["device"][1], places=3)
        self.assertGreater(found["wall"][0], 4 * found["device"][0], "starts of tasks are most of it here")
        done = skillet("tune", MODEL, "--device", "sim:rk3588", "--objective", "speed")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--objective", done.stderr)

    def test_explained(self):
        for chip in CHIPS:
            done = skillet("compile", MODEL, "--device", f"sim:{chip}", "--tuning", "tuned", "--explain")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("proven -> tuned, simulated", done.stdout)
            self.assertIn("tile_rows: " if chip != "rk3588" else "task_division: ", done.stdout)

    def test_wrong_files(self):
        good = self.tuned("a311d")
        part = good["parts"][0]
        rows = [
            ("{", 2, "the text is not JSON"),
            ({**good, "chip": "imx8mp"}, 2, "chip is 'imx8mp', the device has 'a311d'"),
            ({**good, "build": "0"}, 2, "build is '0'"),
            ({**good, "parts": 3}, 2, "parts must be a list"),
            ({**good, "parts": [{**part, "choices": [{"op": 0, "name": "tile_rows", "value": "4"}]}]}, 2,
             "parts[0].choices[0].value must be a whole number"),
            ({**good, "parts": [{**part, "choices": [{"op": 0, "name": "tile_rows", "value": 4000}]}]}, 2,
             "op 0 has no choice 'tile_rows' of 4000"),
            ({**good, "parts": [{**part, "choices": [{"op": -3, "name": "fry", "value": 1}]}]}, 2, "op -3 has no choice 'fry'"),
            ({**good, "parts": [{**part, "switches": ["fry"]}]}, 2, "no tuning switch 'fry'"),
        ]
        for content, code, words in rows:
            text = content if isinstance(content, str) else json.dumps(content)
            Path(self.file).write_text(text, encoding="utf-8")
            done = skillet("run", MODEL, "--device", "sim:a311d", "--tuning-file", self.file)
            self.assertEqual(done.returncode, code, f"{words}: {done.stderr}")
            self.assertIn(words, done.stderr)
            self.assertIn(self.file, done.stderr)
        for verb in VERBS:
            done = skillet(*verb, "--device", "sim:a311d", "--tuning-file", "no_such_file")
            self.assertEqual(done.returncode, 2)
            self.assertIn("no_such_file", done.stderr)

    def test_each_verb_takes_it(self):
        file = self.tuned("a311d")
        file["parts"][0]["choices"] = [{"op": 0, "name": "fry", "value": 1}]
        for verb in VERBS:
            self.tuned("a311d")
            done = skillet(*verb, "--device", "sim:a311d", "--tuning-file", self.file)
            self.assertEqual(done.returncode, 0, done.stderr)
            Path(self.file).write_text(json.dumps(file), encoding="utf-8")
            done = skillet(*verb, "--device", "sim:a311d", "--tuning-file", self.file)
            self.assertEqual(done.returncode, 2, f"{verb}: {done.stdout}")
            self.assertIn("op 0 has no choice 'fry'", done.stderr)

    def test_of_one_chip_only(self):
        self.tuned("a311d")
        done = skillet(*VERBS[1], "--device", "sim:a311d", "--against", "sim:imx8mp", "--tuning-file", self.file)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_predicted(self):
        self.tuned("a311d")
        env = os.environ | {"SKILLET_TUNING_FILE": self.file}
        ran = json.loads(skillet("run", MODEL, "--device", "sim:a311d", "--tuning-file", self.file, "--json").stdout)["simulated"]
        rows = [("plan", MODEL, "--json"), ("check", MODEL, "--json")]
        for row in rows:
            plain = {one["chip"]: one["wall_ms"] for one in json.loads(skillet(*row).stdout)["chips"]}
            for done in (skillet(*row, "--tuning-file", self.file), skillet(*row, env=env)):
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("is for a311d; it is not used for the other chips", done.stderr)
                chips = {one["chip"]: one["wall_ms"] for one in json.loads(done.stdout)["chips"]}
                self.assertAlmostEqual(chips["a311d"], ran["wall_ms"])
                self.assertNotEqual(chips.pop("a311d"), plain["a311d"])
                self.assertEqual(chips, {name: plain[name] for name in chips}, "without it")
        for words, chips in [("chip is 'a311d', the device has 'rk3588'", ["rk3588"]), ("chip is 'a311d', which is not one of", ["rk3588", "imx8mp"])]:
            done = skillet("plan", MODEL, "--tuning-file", self.file, *(f"--chip={chip}" for chip in chips))
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(words, done.stderr)
        for chip in CHIPS:
            file = self.tuned(chip)
            file["parts"][0]["choices"] = [{"op": 0, "name": "fry", "value": 1}]
            Path(self.file).write_text(json.dumps(file), encoding="utf-8")
            for row in rows:
                done = skillet(*row, "--tuning-file", self.file)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("op 0 has no choice 'fry'", done.stderr)
        for row in rows:
            done = skillet(*row, "--tuning-file", "no_such_file")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("no_such_file", done.stderr)

    def test_a_part_that_the_file_does_not_have(self):
        good = self.tuned("a311d")
        good["parts"][0]["graph"] = "0" * 32
        Path(self.file).write_text(json.dumps(good), encoding="utf-8")
        done = skillet("run", MODEL, "--device", "sim:a311d", "--tuning-file", self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the tuning file has no entry", done.stderr)

    @unittest.skipUnless(HAS_VIRTUAL_NODE, "no virtual node in this build")
    def test_what_is_measured_is_wall_time(self):
        around = [SKILLET, "virtual", "--chip", "a311d", "--"]
        done = skillet("tune", MODEL, "--device", "npu", "--objective", "device", "-o", self.file, around=around)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--objective device: on npu wall time is measured", done.stderr)
        self.assertFalse(Path(self.file).exists())

    @unittest.skipUnless(HAS_VIRTUAL_NODE, "no virtual node in this build")
    def test_measured_on_a_device(self):
        around = [SKILLET, "virtual", "--chip", "a311d", "--"]
        done = skillet("tune", MODEL, "--device", "npu", "--runs", "3", "--warm-up", "1", "-o", self.file, around=around)
        self.assertEqual(done.returncode, 0, done.stderr)
        file = json.loads(Path(self.file).read_text(encoding="utf-8"))
        for words in ("measured, 3 runs each", "no choices: median ", "best: ", "before: ", "after: "):
            self.assertIn(words, file["found"])
        ran = skillet("run", MODEL, "--device", "npu", "--tuning-file", self.file, around=around)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_use(self):
        for arguments, words in [(["tune"], "MODEL is required"), (["tune", MODEL], "--device is required"),
                                 (["tune", MODEL, "--device", "cpu"], "the CPU has nothing to tune"),
                                 (["tune", MODEL, "--device", "sim:a311d", "--runs", "0"], "--runs: must be a whole number")]:
            done = skillet(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
