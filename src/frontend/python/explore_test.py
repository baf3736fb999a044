#!/usr/bin/env python3
"""Tests `skillet fields`, `skillet bisect` and related verbs: known rules, fields made wrong on purpose, and input that is not a capture.

usage: explore_test.py SKILLET [--long] [--golden DIR]     --long: only the long cases, among them the recorded jobs of ../shared
"""
import contextlib
import io
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
IS_LONG = "--long" in sys.argv
GOLDEN = Path(sys.argv[sys.argv.index("--golden") + 1]) if "--golden" in sys.argv else ROOT / "../shared/golden"
BIN = tempfile.TemporaryDirectory()
(Path(BIN.name) / "skillet").symlink_to(Path(sys.argv[1]).resolve())
os.environ["PATH"] = f"{BIN.name}:{os.environ['PATH']}"
sys.path.insert(0, str(ROOT / "src/frontend/python"))

from skillet import _trace  # noqa: E402
from skillet.__main__ import meant  # noqa: E402
from skillet.explore import _bisect, _dump, _fields, _page, _sweep  # noqa: E402
from skillet.explore._model import dimensions  # noqa: E402

CAPTURES = ROOT / "tests/captures"
A311D, RK3588 = CAPTURES / "a311d_conv1x1_relu6_u8", CAPTURES / "rk3588_conv1x1_relu6_u8"
sys.path.insert(0, str(ROOT / "tests/integration"))
from share import of as share_of  # noqa: E402

MOST_REPLAYS, NOISE = 20, 24 if IS_LONG else 12
# Documented rules: field and dimension.
DOCUMENTED = {
    "a311d": {"nn_instruction.kernel_x_size": "kernel", "nn_instruction.out_x_size": "out_", "nn_instruction.out_y_size": "out_",
              "nn_instruction.out_z_size": "out_channels", "nn_instruction.in_x_size": "in_", "nn_instruction.in_y_size": "in_",
              "nn_instruction.in_x_stride": "in_", "nn_instruction.in_y_stride": "in_", "nn_instruction.out_x_stride": "out_",
              "nn_instruction.out_y_stride": "out_", "tp_instruction.in_x_size": "in_", "tp_instruction.in_y_size": "in_"},
    "rk3588": {"cna.data_size0.datain_height": "in_", "cna.data_size1.datain_channel_real": "in_channels", "cna.data_size2.dataout_width": "out_",
               "cna.data_size3.dataout_atomics": "out_height * out_width", "cna.weight_size2.weight_width": "kernel_",
               "cna.weight_size2.weight_height": "kernel_", "core.dataout_size_0.dataout_width": "out_", "core.dataout_size_0.dataout_height": "out_",
               "dpu.data_cube_channel.orig_channel": "out_channels", "dpu.data_cube_width.width": "out_", "dpu.data_cube_height.height": "out_",
               "dpu.dst_surf_stride.dst_surf_stride": "out_height * out_width"},
}
DOCUMENTED["imx8mp"] = DOCUMENTED["s905d3"] = DOCUMENTED["a311d"]
PLANTED = {"s905d3": ("edge/k3_none_i8", "rand/000_conv_u8")}  # cases in which fields are made wrong; for other chips:
PLANTED_CASES = ("ops/conv3x3_valid_i8", "ops/conv5x5_u8")
OWN_JOBS = {"imx93": ("conv3x3_s2_u8", "concat2_i8"), "rk3576": ("conv3x3_s2_u8", "concat2_i8")}  # models of tests/models for chips without recorded submissions


def called(main, *words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


def validate(test, name, report):
    try:
        from jsonschema import Draft7Validator
    except ImportError:
        return
    errors = list(Draft7Validator(json.loads((ROOT / f"docs/json/{name}.json").read_text())).iter_errors(report))
    test.assertEqual([error.message for error in errors], [])


class Explore(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def test_a_line_is_found_and_what_is_none_is_not(self):
        jobs = [{"chip": "x", "submissions": [{"operations": [{"what": "NN"}], "fields": [
            {"operation": 0, "kind": "value", "name": name, "raw": f"{value:#x}", "bits": "word 0 bits 15:0"}
            for name, value in (("plain", 3 * size + 5), ("square", size * size), ("still", 7), ("twin", 100 - size), ("bent", 4 * (size == 9) + size))]}]}
            for size in range(2, 40)]
        study = _fields.Study()
        for size, job in zip(range(2, 40), jobs):
            study.add(job, ("CONV_2D", {"in_width": size, "noise": size * 37 % 11}))
        made = _fields.report(study)
        rules = {row["name"]: [(one["a"], one["dimension"], one["b"], one["holds"]) for one in row["rules"]] for row in made["fields"]}
        self.assertEqual(rules, {"plain": [("3", "in_width", "5", 38)], "square": [], "still": [], "twin": [("-1", "in_width", "100", 38)],
                                 "bent": [("1", "in_width", "0", 37)]})
        validate(self, "fields", made)
        self.assertIn(["NN plain", "NN square", "NN twin"], made["together"])
        self.assertEqual({row["name"]: row["moved"] for row in made["fields"]}["still"], "0x0")

    def studied(self, values_of, dims_of, ops=("CONV_2D",), kinds=("NN",)):
        """Returns the report of captures of sizes 2 to 39. VALUES_OF returns (name, value) of each field of each job for a size."""
        study = _fields.Study()
        for size in range(2, 40):
            fields = [{"operation": operation, "kind": "value", "name": name, "raw": f"{value & (1 << 64) - 1:#x}", "bits": "word 0 bits 31:0"}
                      for operation in range(len(kinds)) for name, value in values_of(size)]
            study.add({"chip": "x", "submissions": [{"operations": [{"what": kind} for kind in kinds], "fields": fields}]}, (ops[size % len(ops)], dims_of(size)))
        made = _fields.report(study)
        validate(self, "fields", made)
        return {row["name"]: row for row in made["fields"]}

    def test_rules_and_what_looks_like_one(self):
        made = self.studied(lambda size: [("below", -size), ("less", size - 7), ("half", size if size % 2 else size * 31 % 17), ("two", 3 * (size % 2)), ("area", 2 * size), ("again", 5), ("again", size)],
                            lambda size: {"width": size, "odd": size % 2, "width * height": size})
        rules = {name: _fields.rules_text(row) for name, row in made.items()}
        self.assertEqual(rules, {"below": ["-1 * width  (CONV_2D: 38 of 38 jobs)"], "less": ["width - 7  (CONV_2D: 38 of 38 jobs)"], "half": [], "two": [],
                                 "area": ["2 * width  (CONV_2D: 38 of 38 jobs)"], "again": [], "again #2": ["width  (CONV_2D: 38 of 38 jobs)"]})
        self.assertEqual(min(map(int, made["below"]["values"])), -39)
        self.assertEqual((made["again"]["values"], made["again #2"]["jobs"]), ({"5": 38}, 38))
        # A product is reported if no single dimension fits; one line of two operations is one rule.
        made = self.studied(lambda size: [("area", size * (size % 7))], lambda size: {"width": size, "height": size % 7, "width * height": size * (size % 7)}, ("ADD", "CONV_2D"))
        self.assertEqual(_fields.rules_text(made["area"]), ["width * height  (ADD, CONV_2D: 38 of 38 jobs)"])
        # It is unknown which of several jobs has the model's dimensions.
        made = self.studied(lambda size: [("width", size)], lambda size: {"width": size}, kinds=("NN", "NN"))
        self.assertEqual((made["width"]["rules"], made["width"]["jobs"]), ([], 76))

    def test_the_fewest_that_are_wrong_together(self):
        rng = random.Random(1)
        for count in (1, 2, 7, 64, 300):
            keys = [str(i) for i in range(count)]
            for size in range(1, min(count, 2) + 1):
                fault, asked = set(rng.sample(keys, size)), []
                found = _bisect.smallest_wrong(keys, lambda some: asked.append(0) or fault <= set(some))
                self.assertEqual(set(found), fault)
                self.assertLess(len(asked), MOST_REPLAYS)

    def test_dimensions_of_a_model(self):
        name, dims = dimensions(A311D / "model.tflite")
        self.assertEqual((name, dims["in_channels"], dims["out_channels"], dims["kernel_width"], dims["in_height * in_width"]), ("CONV_2D", 32, 64, 1, 256))
        data = (A311D / "model.tflite").read_bytes()
        for at in range(0, 400):
            (self.path / "m.tflite").write_bytes(data[:at] + b"\xff" + data[at + 1:])
            dimensions(self.path / "m.tflite")
        self.assertIsNone(dimensions(self.path / "nowhere"))

    @unittest.skipUnless(IS_LONG, "fast tests only")
    def test_long_fields_of_small_captures(self):
        code, out, err = called(_fields.main, CAPTURES / "sim_golden/imx8mp", "--values")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^imx8mp: 10 captures, \d+ jobs\n")
        self.assertRegex(out, r"\n  NN nn_instruction.kernel_x_size: .*3 \(\d+\)")
        page, reported = self.path / "fields.html", self.path / "no/fields.html"
        self.assertEqual(called(_fields.main, CAPTURES / "sim_golden/imx8mp", "--html", page)[::2], (0, ""))
        text, made = page.read_text(), json.loads(called(_fields.main, CAPTURES / "sim_golden/imx8mp", "--json")[1])
        self.assertEqual(text.count("<tr>"), 1 + len(made["fields"]))
        self.assertEqual(text.count('class="moved"'), sum(int(row["moved"], 16).bit_count() for row in made["fields"]))
        self.assertNotRegex(text, r"https?://|src=|@import")
        self.assertEqual(called(_fields.main, CAPTURES / "sim_golden/imx8mp", "--html", reported)[::2], (2, f"fields: {reported}: No such file or directory\n"))

    def data_of(self, *words):
        code, _, err = called(_page.main, *words, "-o", self.path / "page.html")
        self.assertEqual((code, err), (0, ""))
        text = (self.path / "page.html").read_text()
        return json.loads(re.search(r'(?s)<script type="application/json" id="data">(.*?)</script>', text)[1]), text

    def test_page(self):
        data, text = self.data_of(A311D)
        decoded = json.loads(subprocess.run(["skillet", "decode", A311D, "--all", "--json"], check=True, capture_output=True).stdout)
        for made, given in zip(data["submissions"], decoded["submissions"], strict=True):
            self.assertEqual([(data["fields"][row[2]][0], row[3]) for row in made["rows"]], [(one["name"], one["value"]) for one in given["fields"]])
            self.assertEqual([one[0] for one in made["buffers"]], [one["buffer"] for one in given["buffers"]])
        self.assertEqual([job[:2] + job[3:] for job in data["submissions"][1]["jobs"]][1], ["NN", "16x16x32 -> 16x16x64, kernel 1x1", 16 * 16 * 96])
        self.assertNotRegex(text, r"https?://|src=|@import")  # loads nothing from a network
        other = self.path / "<b>.txt"
        subprocess.run(["skillet", "edit", A311D, "-o", other], check=True)
        other.write_text(other.read_text().replace("nn_instruction.out_x_size = 16", "nn_instruction.out_x_size = 15"))
        data, text = self.data_of(A311D, "--against", other)
        self.assertEqual([(data["fields"][row[2]][0], row[3], row[5]) for row in data["submissions"][1]["rows"] if row[5]],
                         [("nn_instruction.out_x_size", "16", "15 (0xf)")])
        self.assertNotIn("<b>", text)
        data, _ = self.data_of(A311D, "--against", CAPTURES / "a311d_concat2_i8")
        found = json.loads(subprocess.run(["skillet", "diff", A311D, CAPTURES / "a311d_concat2_i8", "--json"], capture_output=True).stdout)["differences"]
        self.assertEqual(sum(bool(row[5]) for one in data["submissions"] for row in one["rows"]), len(found), "each is shown")
        self.assertEqual(called(_page.main, other, "-o", other)[0], 2, "it is what is read")
        cut = self.path / "cut.skcap"
        subprocess.run(["skillet", "edit", other, "-o", cut], check=True)
        cut.write_bytes(cut.read_bytes()[:-100])
        code, _, err = called(_page.main, cut, "-o", self.path / "x")
        self.assertEqual(code, 1)
        self.assertIn("cut off", err)
        self.assertEqual(called(_page.main, self.path / "nowhere", "-o", self.path / "x")[0], 2)
        self.assertEqual(called(_page.main, A311D, "-o", self.path / "no/x")[0], 2)
        self.assertEqual(called(_page.main, A311D, "--against", ROOT / "README.md", "-o", self.path / "x")[0], 2)

    def test_differences_of_a_page(self):
        def difference(submission, path, a, b):
            return {"submission": submission, "path": path, "a": a, "b": b}
        found = _page.Differences([difference(0, "x", "1 (0x1)", "2"), difference(0, "x", "3 (0x3)", ""), difference(1, "x", "5", "6")])
        self.assertEqual([found.of(0, "x", value) for value in ("9", "3", "1", "1")], ["", "(none)", "2", ""])
        self.assertEqual(found.take_rest(0), [])
        self.assertEqual([one["a"] for one in found.take_rest(None)], ["5"])

        def field(kind, buffer):
            return {"path": f"job 0 {kind}", "name": kind, "operation": 0, "value": "1", "raw": "0x1", "kind": kind, "buffer": {"buffer": buffer}}
        buffers = [{"buffer": at, "address": 4096 * at, "bytes": 16, "what": "", "read": at == 4, "write": False, "contents": ""} for at in range(1, 5)]
        said = {"decode": {"chip": "x", "kernel_driver": "y", "submissions": [{"submission": 0, "operations": [{"what": "NN", "shape": "2x3x4 -> 5x6x7, kernel 9x9"}], "buffers": buffers,
                                                                           "fields": [field("constant", 1), field("commands", 2), field("memory", 3)]}]},
                "diff": {"differences": [difference(7, "only there", "", "8"), difference(0, "job 0 memory", "1", "2")]}}
        with unittest.mock.patch.object(_page, "asked", lambda verb, *_: (said[verb], "")):
            data, _ = _page.contents("a", "b", "")
        (shown,) = data["submissions"]
        self.assertEqual([(data["fields"][row[2]][0], row[5]) for row in shown["rows"] if row[5]], [("memory", "2"), ("submission 7 only there", "8")])
        self.assertEqual([one[4] for one in shown["buffers"]], [1, 1, 0, 1], "constants and commands are read, whatever is listed")
        self.assertEqual(shown["jobs"], [["NN", "2x3x4 -> 5x6x7, kernel 9x9", "", 24 + 210]])

    @unittest.skipUnless(IS_LONG and shutil.which("chromium"), "no chromium here")
    def test_page_in_a_browser(self):
        for words in ((A311D, "--against", A311D), (ROOT / "models/digits.tflite", "--chip", "rk3588")):
            data, _ = self.data_of(*words)
            shown = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom",
                                    f"file://{self.path}/page.html"], capture_output=True, text=True, check=True, timeout=120).stdout
            self.assertIn("<button", shown)
            self.assertGreater(shown.count("<tr"), 50)
            buffers = data["submissions"][-1]["buffers"]
            used = [one for one in buffers if any(one[3:6])]
            table = re.search(r'(?s)<table id="buffers">(.*?)</table>', shown)[1]
            self.assertEqual(table.count("<tr"), 1 + len(used))
            self.assertIn(f" {len(buffers) - len(used)} more that no job", shown)

    def test_what_is_no_capture(self):
        for words, code, said in (([self.path], 2, "no capture in"), ([A311D, RK3588], 2, "captures of several chips: a311d, rk3588"),
                                  ([self.path / "nowhere"], 2, "No such file"), ([ROOT / "README.md"], 2, "README.md")):
            got, _, err = called(_fields.main, *words)
            self.assertEqual(got, code)
            self.assertIn(said, err)
        whole, cut = self.path / "whole.skcap", self.path / "cut.skcap"
        subprocess.run(["skillet", "edit", CAPTURES / "a311d_concat2_i8", "-o", self.path / "t"], check=True)
        subprocess.run(["skillet", "edit", self.path / "t", "-o", whole], check=True)
        cut.write_bytes(whole.read_bytes()[:-100])
        code, out, err = called(_fields.main, self.path)
        self.assertEqual((code, err.count("\n"), out[:17]), (1, 1, "a311d: 1 captures"), err)
        for a, b in ((whole, self.path / "nowhere"), (self.path / "nowhere", whole), (whole, cut), (ROOT / "README.md", whole)):
            code, _, err = called(_bisect.main, a, b)
            self.assertEqual((code, err.count("\n")), (2, 1), err)
        self.assertEqual(called(_bisect.main, whole, whole)[0], 1)
        self.assertEqual(called(_bisect.main, A311D, RK3588)[0], 2)

    def planted(self, capture, plants, rng):
        """Makes harmless fields and one or two harmful ones wrong: only the latter must be found. Returns how many of PLANTS were not tried."""
        text, wrong = self.path / "a", self.path / "b"
        subprocess.run(["skillet", "edit", capture, "-o", text], check=True)
        lines = text.read_text().split("\n")
        begin = max(i for i, line in enumerate(lines) if line.startswith("submission "))
        number = lines[begin].split()[1]
        fields = {f"{number}:{found[1]}": i for i in range(begin, len(lines)) if (found := re.match(r"field (\S+ \d+ .*\..*) = \d+$", lines[i]))}

        def search(names):
            changed = list(lines)
            for name in names:
                path, value = changed[fields[name]].split(" = ")
                changed[fields[name]] = f"{path} = {int(value) ^ 1}"
            wrong.write_text("\n".join(changed))
            code, out, err = called(_bisect.main, text, wrong, "--json")
            if code == 2:
                return err
            validate(self, "bisect", json.loads(out))
            return json.loads(out)

        names, bad, fine = rng.sample(sorted(fields), min(NOISE, len(fields))), [], []
        for name in names:
            made = search([name])
            if isinstance(made, dict):
                (bad if made["faults"] else fine).append(name)
        for size in [1, 1, 2] * plants:
            if plants == 0 or len(bad) < size:
                break
            plant = rng.sample(bad, size)
            made = search(fine + plant)
            found = [one["name"] for fault in made["faults"] for one in fault["fields"]]
            self.assertTrue(found and set(found) <= set(plant), (capture, plant, made))
            self.assertLess(made["replays"], MOST_REPLAYS, (capture, plant, made))
            plants -= 1
        return plants

    @unittest.skipUnless(IS_LONG, "fast tests only")
    def test_long_planted_fields_of_vivante(self):
        self.assertEqual(self.planted(A311D, 2, random.Random(2)), 0)

    @unittest.skipUnless(IS_LONG, "fast tests only")
    def test_long_planted_fields_of_rockchip(self):
        self.assertEqual(self.planted(RK3588, 2, random.Random(2)), 0)

    def test_fields_that_one_side_lacks_are_compared_as_words(self):
        """If one side lacks a register, its fields and those after it are other words."""
        def text(fields, rows):
            path = self.path / "side"
            path.write_text("# skillet edit 1\nsubmission 0\n" + "".join(f"field {one}\n" for one in fields) + "job\nlist 0 0x0 0\nbuffer 1 0x1000 64 bytes\n" +
                            "".join(f"  {at:08x}: {word}\n" for at, word in rows))
            with unittest.mock.patch.object(_bisect, "edit", lambda capture, file: file.write_bytes(Path(capture).read_bytes())):
                return _bisect.Text(str(path), self.path, "text")

        rows = [(0, "00000001"), (32, "00000002")]
        right, wrong = text(["x = 1", "y = 2"], rows), text(["x = 1"], [(0, "00000001"), (32, "00000003")])
        _bisect.drop_unpaired(right, wrong)
        self.assertEqual(list(_bisect.candidates(right, wrong)), ["0:buffer 1 bytes from 32 on"])
        self.assertNotIn("field", right.with_values({}))
        right, wrong = text(["x = 1", "y = 2"], rows), text(["x = 1", "y = 3"], rows)
        _bisect.drop_unpaired(right, wrong)
        self.assertEqual(list(_bisect.candidates(right, wrong)), ["0:y"])

    def test_rows_that_one_side_has_as_zeros_are_compared(self):
        """The text omits rows of zeros. Words that became zero, and zeros that became words, still count as differences."""
        def text(name, rows, kind="bytes"):
            path = self.path / name
            path.write_text("# skillet edit 1\nsubmission 0\njob\nlist 8 0x0 0\n" + "".join(f"  {at:08x}: {word}\n" for at, word in rows[0]) +
                            f"buffer 1 0x1000 64 {kind}\n" + "".join(f"  {at:08x}: {word}\n" for at, word in rows[1]))
            with unittest.mock.patch.object(_bisect, "edit", lambda capture, file: file.write_bytes(Path(capture).read_bytes())):
                return _bisect.Text(str(path), self.path, "text")

        full = text("full", ([(0, "00000007 00000008")], [(0, "00000001"), (32, "00000002 00000003")]))
        for name, rows, kind in (("part", ([(0, "00000007 00000008")], [(0, "00000001")]), "bytes"), ("none", ([], []), "zero")):
            with self.subTest(name):
                bare = text(name, rows, kind)
                self.assertEqual(full.shape(), bare.shape())
                lost, got = _bisect.candidates(full, bare), _bisect.candidates(bare, full)
                keys = {"0:buffer 1 bytes from 32 on"} | ({"0:job 0 list bytes from 0 on", "0:buffer 1 bytes from 0 on"} if name == "none" else set())
                self.assertEqual((lost.keys(), got.keys()), (keys, keys))
                self.assertEqual((lost["0:buffer 1 bytes from 32 on"], got["0:buffer 1 bytes from 32 on"]),
                                 ("  00000020: 00000000 00000000", "  00000020: 00000002 00000003"))
                self.assertEqual(sorted(bare.with_values(got).splitlines()), sorted(full.with_values({}).splitlines()), "all rows of one side make it the other")

    def test_words_that_became_zero_are_found(self):
        """Weights of zeros: rows that only one text has make the result wrong."""
        right, wrong = self.path / "a", self.path / "b"
        subprocess.run(["skillet", "edit", RK3588, "-o", right], check=True)
        lines = right.read_text().split("\n")
        begin = lines.index("buffer 1 0x10000000 4096 bytes")
        wrong.write_text("\n".join(lines[:begin + 9] + lines[begin + 13:]))
        for a, b in ((right, wrong), (wrong, right)):
            code, out, err = called(_bisect.main, a, b, "--json")
            self.assertEqual((code, err), (0, ""))
            made = json.loads(out)
            self.assertEqual((made["differing"], len(made["faults"])), (4, 4))
            for (one,) in (fault["fields"] for fault in made["faults"]):
                self.assertRegex(one["name"], "^0:buffer 1 bytes from (256|288|320|352) on$")
                gone, there = (one["b"], one["a"]) if b == wrong else (one["a"], one["b"])
                self.assertRegex(gone or "00000000", "(^|: )[0 ]+$")
                self.assertIn(there, lines)

    def test_what_bisect_replays(self):
        """Replays run on the given device or on the chip's simulator, with the given inputs or random ones for those not recorded."""
        text = ("# skillet edit 1\ndevice x\nnode {node}\nsubmission 0\nfield x = {x}\njob\nlist 0 0x0 0\nbuffer 3 0x1000 64 unknown listed read\n"
                "buffer 4 0x2000 64 unknown listed write\nbuffer 5 0x3000 64 zero listed read\n")
        a, b, seen = self.path / "a", self.path / "b", []
        a.write_text(text.format(node="sim:one", x=1))
        b.write_text(text.format(node="/dev/two", x=2))

        def run(*words):
            if words[0] == "edit":
                shutil.copyfile(words[-1], words[2])
            if words[0] == "replay":
                inputs = {words[i + 1].partition("=")[0]: Path(words[i + 1].partition("=")[2]).read_bytes() for i, word in enumerate(words) if word == "--input"}
                seen.append((words[words.index("--device") + 1], inputs))
                if "--output" in words:
                    Path(words[words.index("--output") + 1]).mkdir()
            return subprocess.CompletedProcess(words, 0, json.dumps({"chip": "made_up"}), "")
        given = self.path / "given"
        given.write_bytes(b"given")
        with unittest.mock.patch.object(_bisect, "run", run):
            self.assertEqual(called(_bisect.main, a, b)[0], 1)
            self.assertEqual(called(_bisect.main, a, b, "--device", "npu", "--input", f"3={given}")[0], 1)
        self.assertEqual([device for device, _ in seen], ["sim:made_up"] * 2 + ["npu"] * 2)
        self.assertEqual([sorted(inputs) for _, inputs in seen], [["3"]] * 4)
        self.assertEqual((len(seen[0][1]["3"]), seen[0][1], seen[2][1]), (64, seen[1][1], {"3": b"given"}))
        self.assertGreater(len(set(seen[0][1]["3"])), 16, "zeros would hide most mistakes")

    def test_jobs_that_write_nothing_cannot_be_wrong(self):
        text = "# skillet edit 1\ndevice x\nnode n\nsubmission 0\nfield x = {}\njob\nlist 0 0x0 0\nbuffer 3 0x1000 64 zero listed read\n"
        a, b = self.path / "a", self.path / "b"
        a.write_text(text.format(1))
        b.write_text(text.format(2))

        def run(*words):
            if words[0] == "edit":
                shutil.copyfile(words[-1], words[2])
            return subprocess.CompletedProcess(words, 0, "", "")
        with unittest.mock.patch.object(_bisect, "run", run):
            self.assertEqual(called(_bisect.main, a, b, "--device", "npu"), (2, "", f"bisect: {a}: its jobs write no buffer, so there is no result that could be wrong\n"))

    def commands(self, name, *lists):
        """Returns a regcmd file of these lists. Each has the address of the next one (0: none); all but the last are padded to 64 bytes."""
        words = [[target << 48 | value << 16 | register for (target, register), value in [((0x0201, 0x1010), 7), (_dump.NEXT, following), (_dump.ENABLE, 1)]] for following in lists]
        (self.path / name).write_bytes(b"".join(b"".join(word.to_bytes(8, "little") for word in one).ljust(64, b"\0") for one in words)[:64 * len(words) - 16])
        return self.path / name

    def test_tasks_of_a_dump_say_where_they_are(self):
        self.assertEqual(_dump.read_lists(self.commands("c", 0x5040, 0)), ([(0, 3), (64, 3)], 128, 0))
        job = _dump.joined([self.commands("c0", 0x5040), self.commands("c1", 0x5080, 0x50c0), self.commands("c2", 0)])
        self.assertEqual((job.address, job.lists, len(job.commands)), (0x5000, [(0, 3), (64, 3), (128, 3), (192, 3)], 256))
        self.assertEqual((_dump.joined([self.commands("c", 0)]).address, _dump.joined([self.commands("c", 0x40, 0)]).address), (0, 0))
        for files, said in (((0x20,), "goes on at 0x20, which is not behind it"), ((0, 0), "is the last task of its operation, so c1 is of another one"),
                            ((0x5040, 0x6080, 0), "is at 0x6040, and the task before goes on at 0x5040"), ((0x5040,), "goes on at 0x5040, and the file of the next task is missing")):
            with self.assertRaisesRegex(_dump.Unusable, said):
                _dump.joined([self.commands(f"c{at}", one) for at, one in enumerate(files)])

    def test_places_of_a_dump_are_those_of_the_commands(self):
        fields = [{"name": name, "address": address, "value": value, "unused": unused} for name, address, value, unused in (
            (_dump.ADDRESS["input"], 0x3000, "", False), (_dump.ADDRESS["input"], 0x2000, "", False), (_dump.ADDRESS["input"], 0x1000, "", True),
            (_dump.ADDRESS["operand"], 0x7000, "", False), (_dump.ADDRESS["weights"], 0x8000, "", True), (_dump.WEIGHT_BYTES, 0, "64", False), (_dump.WEIGHT_BYTES, 0, "32", False))]
        job, said = _dump.Job(bytes(64), [(0, 8)]), json.dumps({"submissions": [{"fields": fields}]})
        with unittest.mock.patch.object(_dump.subprocess, "run", return_value=subprocess.CompletedProcess([], 0, said, "")):
            _dump.find_places(job, "rk3588")
        self.assertEqual((job.places, job.weight_bytes), ({"input": 0x2000, "operand": 0x7000}, 64))

    def dump_job(self, places, weight_bytes=0, **sizes):
        for at, (kind, size) in enumerate(sizes.items()):
            (self.path / kind).write_bytes(bytes([at + 1]) * size)
        return _dump.Job(bytes(64), [(0, 8)], 0x10000, {kind: self.path / kind for kind in sizes}, places, weight_bytes)

    def test_buffers_of_a_dump_fit_together(self):
        self.assertEqual(_dump.layout(self.dump_job({"input": 0x2000, "output": 0x4000, "operand": 0x2000}, input=64, output=64))[1:], ([0x2000, 0x2000], [0x4000]))
        for places, weight_bytes, said in (({"input": 0x2000, "output": 0x3000}, 0, "overlap: they are not of one run"), ({"input": 0x2000, "output": 0xf000}, 0, "overlap"),
                                           ({"input": 0x2000, "biases": 0x6000}, 0, "have biases at 0x6000, and there is no file mesa-biases"),
                                           ({"input": 0x2000, "operand": 0x6000}, 0, "add what is at 0x6000, which is in no file"),
                                           ({"weights": 0x2000}, 8193, "weights: 8192 bytes, and the commands read 8193")):
            with self.assertRaisesRegex(_dump.Unusable, said):
                _dump.layout(self.dump_job(places, weight_bytes, input=8192, output=8192, weights=8192))

    def test_an_input_stays_where_an_output_begins(self):
        job = self.dump_job({"input": 0x2000, "output": 0x2000}, input=64, output=8192)
        buffers, reads, writes = _dump.layout(job)
        self.assertEqual((reads, writes), ([0x2000], [0x2000]))
        _dump.write_capture(self.path / "made", "rk3588", job, buffers, reads, writes)
        (row,) = [one for one in json.loads((self.path / "made/capture.json").read_text())["submits"][0]["buffers"] if one["address"] == 0x2000]
        self.assertEqual((row["size"], (self.path / "made" / row["file"]).read_bytes()), (8192, bytes([1]) * 64))

    def test_what_a_sweep_goes_over(self):
        for text, wanted in (("in_channels=1..3", ["1", "2", "3"]), ("out_channels=8..24..8", ["8", "16", "24"]), ("size=5,9", ["5x5", "9x9"]),
                             ("kernel=3", ["k3x3"]), ("stride=1..2", ["s1", "s2"]), ("dilation=1,2", ["d1", "d2"])):
            self.assertEqual([value for _, value in _sweep.values_of(text)], wanted)
        self.assertLess(len(_sweep.values_of("size=1..99999999999")), 10000)
        for choice, size in (({"height": "8"}, "8x20"), ({"width": "10"}, "16x10"), ({"height": "8", "width": "10"}, "8x10"), ({"s": "s2"}, "16x20"),
                             ({"size": "5x5"}, "5x5")):
            self.assertEqual(_sweep.changed({"size": "16x20"}, choice)["size"], size)
        for text in ("", "size", "size=", "size=3..2", "size=a..b", "size=1..9..0", "depth=1..2", "size=-1..3"):
            with self.assertRaises(_sweep.Unusable):
                _sweep.values_of(text)
        code, _, err = called(_sweep.main, "conv2d/u8/16x16/c8-16", "--over", "size=1", "--delegate", "nowhere", "--chip", "a311d", "-o", self.path)
        self.assertEqual((code, err), (2, "sweep: --delegate nowhere: there is no such file\n"))

    def test_what_a_sweep_runs_and_says(self):
        made = types.SimpleNamespace(graph=types.SimpleNamespace(file=lambda: b"model"))
        known = types.SimpleNamespace(build=lambda case: made, parse=lambda name: {"op": "conv2d", "size": name}, name_of=lambda params: params["size"])  # without NumPy
        delegate, commands = self.path / "d.so", []
        delegate.touch()

        def run(command, **_):
            if command[-1] == "true":  # checks whether the chip exists
                return subprocess.CompletedProcess(command, 2 if "nochip" in command else 0, "", "skillet: sim:nochip: no chip 'nochip'\n")
            commands.append(command)
            if takes in command:
                Path(command[command.index("-o") + 1]).write_bytes(b"capture")
            return subprocess.CompletedProcess(command, 0, "", "")
        words = ("8x8", "--over", "size=5,9", "--delegate", delegate, "--option", "a=b", "--option", "c=d", "--chip", "x", "-o", self.path / "out")
        with unittest.mock.patch.dict(sys.modules, {"skillet.conformance._cases": known}), unittest.mock.patch.object(_sweep.subprocess, "run", run):
            for takes, code, count, said in (("5x5", 1, 1, "sweep: 9x9: the delegate sent nothing to the NPU\n"), ("9x9", 1, 1, "sweep: 5x5: the delegate sent nothing to the NPU\n")):
                got, out, err = called(_sweep.main, *words)
                self.assertEqual((got, out, err), (code, f"{count} of 2 captured in {self.path / 'out'}\n", said))
            self.assertEqual(sorted(file.name for file in (self.path / "out").iterdir()), ["5x5.tflite", "9x9.skcap", "9x9.tflite"], "none of the run before")
            self.assertEqual([command[-4:] for command in commands], [[case, str(delegate), "a=b", "c=d"] for case in ("5x5", "9x9")] * 2)
            self.assertEqual({command[command.index("--chip") + 1] for command in commands}, {"x"})
            self.assertEqual(called(_sweep.main, *words[:-4], "--chip", "nochip", *words[-2:])[::2], (2, "sweep: --chip nochip: sim:nochip: no chip 'nochip'\n"))
            self.assertEqual(called(_sweep.main, "8x8", "--over", "out_channels=8", *words[3:])[::2], (2, "sweep: --over out_channels=8: conv2d has no out_channels of its own\n"))
            self.assertEqual(called(_sweep.main, "8x8", "--over", f"size=1..{_sweep.MOST_CASES + 1}", *words[3:])[::2], (2, f"sweep: more than {_sweep.MOST_CASES} models\n"))

    def dumped(self, capture, folder):
        """Writes the files that Mesa's driver writes for these jobs."""
        folder.mkdir()
        submission = json.loads((capture / "capture.json").read_text())["submits"][0]
        fields = json.loads(subprocess.run(["skillet", "decode", capture, "--json"], check=True, capture_output=True).stdout)["submissions"][0]["fields"]

        def write(kind, address, number):
            for one in submission["buffers"]:
                if one["address"] == address:
                    content = (capture / one["file"]).read_bytes() if "file" in one else b""
                    (folder / f"mesa-{kind}-000-{number:03}.bin").write_bytes(content.ljust(one["size"], b"\0"))
        (job,) = submission["jobs"]
        commands = {one["address"]: (capture / one["file"]).read_bytes() for one in submission["buffers"] if "file" in one}
        for number, task in enumerate(job["tasks"]):  # Mesa writes a few bytes more than the task's commands
            start = max(one for one in commands if one <= task["regcmd"])
            at = task["regcmd"] - start
            (folder / f"mesa-regcmd-000-{number:03}.bin").write_bytes(commands[start][at:at + 8 * task["regcmd_count"]].ljust(8 * task["regcmd_count"] + 32, b"\0"))
        for kind, name in _dump.ADDRESS.items():
            places = [one["address"] for one in fields if one["name"] == name and not one["unused"]]
            if places and kind != "operand":
                write(kind, min(places), 0)

    def dump_is_the_capture(self, capture):
        folder, made = self.path / f"dump_{capture.name}", self.path / f"made_{capture.name}"
        self.dumped(capture, folder)
        self.assertEqual(called(_dump.main, folder, "-o", made)[::2], (0, ""))
        done = subprocess.run(["skillet", "diff", capture, made], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), f"{capture}: {done.stdout}")
        return folder

    def test_a_dump_of_mesa_is_a_capture(self):
        folder = self.dump_is_the_capture(RK3588)
        stream = folder / "mesa-regcmd-000-000.bin"
        whole = stream.read_bytes()
        for content, said in ((b"", "no 64-bit commands"), (whole[:9], "no 64-bit commands"), (whole[:800], "no command that starts it"), (bytes(64), "are zero"),
                              (whole[:8] * 4 + b"\xff" * 8 + whole[-72:], "")):
            stream.write_bytes(content)
            code, _, err = called(_dump.main, folder, "-o", self.path / "x")
            self.assertEqual((code, err.count("\n"), said in err), (2, 1, True) if said else (code, err.count("\n"), True), err)
        stream.write_bytes(whole)
        for kind in ("weights", "biases", "input"):  # left by an earlier operation
            other = folder / f"mesa-{kind}-000-001.bin"
            other.write_bytes(bytes(64))
            self.assertIn(f"has 2 files mesa-{kind}-A-B.bin, so several operations wrote it", called(_dump.main, folder, "-o", self.path / "x")[2])
            other.unlink()
        stream.unlink()
        self.assertIn("no file mesa-regcmd", called(_dump.main, folder, "-o", self.path / "x")[2])

    def test_the_first_buffer_may_be_at_address_0(self):
        """Mesa's first buffer is at address 0: the weights."""
        lowered, what = self.path / "lowered", json.loads((RK3588 / "capture.json").read_text())
        shutil.copytree(RK3588, lowered)
        (submission,) = what["submits"]
        base = min(one["address"] for one in submission["buffers"])
        end = max(one["address"] + one["size"] for one in submission["buffers"])
        for one in submission["buffers"]:
            one["address"] -= base
            one.pop("sha256_128", None)
        for task in (task for job in submission["jobs"] for task in job["tasks"]):
            task.update(regcmd=task["regcmd"] - base, regcmd_hex=hex(task["regcmd"] - base))
            (commands,) = [one for one in submission["buffers"] if one["address"] <= task["regcmd"] < one["address"] + one["size"]]
            words = [word - (base << 16 if base <= word >> 16 & 0xFFFFFFFF < end else 0) for (word,) in struct.iter_unpack("<Q", (RK3588 / commands["file"]).read_bytes().ljust(commands["size"], b"\0"))]
            (lowered / commands["file"]).write_bytes(b"".join(word.to_bytes(8, "little") for word in words))
        (lowered / "capture.json").write_text(json.dumps(what))
        printed = subprocess.run(["skillet", "decode", lowered, "--weights", self.path / "w"], capture_output=True, text=True)
        self.assertEqual((printed.returncode, printed.stderr), (0, ""))
        self.assertIn("decompress_addr0 1+0", printed.stdout)
        compared = subprocess.run(["skillet", "diff", RK3588, lowered], capture_output=True, text=True)
        self.assertEqual((compared.returncode, compared.stderr), (0, ""), compared.stdout)
        for capture, words in ((RK3588, ["--output"]), (lowered, ["--expect"])):
            done = subprocess.run(["skillet", "replay", capture, "--device", "sim:rk3588", *words, self.path / "outputs"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    @unittest.skipUnless(IS_LONG and GOLDEN.is_dir(), "fast tests only")
    def test_long_dumps_of_recorded_jobs(self):
        def is_one(case):
            submissions = json.loads((case / "capture.json").read_text())["submits"]
            return len(submissions) == 1 and len(submissions[0]["jobs"]) == 1
        cases = sorted((GOLDEN / "rk3588/ops").iterdir()) + sorted((GOLDEN / "rk3588/teflon").iterdir())
        for case in [one for one in cases if is_one(one)][::4] + [GOLDEN / "rk3588/teflon" / name for name in ("mb0", "mb2", "mb3")]:  # 3, 2 and 3 tasks
            self.dump_is_the_capture(case)

    def test_what_is_read_is_not_overwritten(self):
        dumped, capture, trace, model = self.path / "dump", self.path / "capture", self.path / "a.pftrace", self.path / "conv2d_u8_8x8_c8-16.tflite"
        self.dumped(RK3588, dumped)
        shutil.copytree(A311D, capture)
        subprocess.run(["skillet", "edit", A311D, "-o", self.path / "a.txt"], check=True)
        shutil.copyfile(A311D / "model.tflite", model)
        trace.write_bytes(b"")
        (self.path / "made").mkdir()
        for name, file in (("link", self.path / "a.txt"), ("hard", self.path / "a.txt"), ("svg", trace), ("part", capture / "bo_7_0.bin"), ("model", capture / "model.tflite"),
                           ("made/bo_1_0.bin", dumped / "mesa-regcmd-000-000.bin")):
            os.link(file, self.path / name) if name == "hard" else (self.path / name).symlink_to(file)
        before = {file: file.read_bytes() for file in self.path.rglob("*") if file.is_file()}
        for verb, *words in ((_fields, self.path / "a.txt", "--html", self.path / "a.txt"), (_fields, self.path / "a.txt", "--html", self.path / "link"),
                             (_fields, self.path / "a.txt", "--html", self.path / "hard"), (_fields, capture, "--html", self.path / "part"),
                             (_fields, capture, "--html", self.path / "model"), (_trace, trace, "--svg", trace), (_trace, trace, "--svg", self.path / "svg"),
                             (_page, capture, "-o", capture / "capture.json"), (_page, A311D, "--against", self.path / "a.txt", "-o", self.path / "link"),
                             (_dump, dumped, "-o", dumped), (_dump, dumped, "-o", self.path / "made"),
                             (_sweep, "conv2d", "--over", "size=8", "--delegate", model, "--chip", "a311d", "-o", self.path)):
            with self.subTest(verb=verb.__name__, words=words), unittest.mock.patch.object(_sweep, "cases", return_value=["conv2d/u8/8x8/c8-16"]):  # no NumPy
                code, out, err = called(verb.main, *words)
                self.assertEqual((code, out), (2, ""), err)
                self.assertIn("is what is to be read", err)
        self.assertEqual({file: file.read_bytes() for file in self.path.rglob("*") if file.is_file()}, before)

    def test_verbs_that_are_options(self):
        for given, wanted in ((["reduce", "add/u8/8x8/c1", "--jobs", "1"], ["conformance", "--reduce", "add/u8/8x8/c1", "--jobs", "1"]), (["reduce", "--help"], ["conformance", "--help"]),
                              (["decode", "a", "--html", "b"], ["page", "a", "--output", "b"]), (["decode", "a", "--html=b"], ["page", "a", "--output=b"]), (["decode", "a", "--all"], ["decode", "a", "--all"]), ([], [])):
            self.assertEqual(meant(given), wanted)

    @unittest.skipUnless(IS_LONG, "fast tests only")
    def test_long_a_sweep_shows_what_fields_follow(self):
        from environment import python_with_runtimes
        python, delegate = python_with_runtimes(ROOT / "build/venv"), Path(sys.argv[1]).resolve().parents[1] / "frontend/tflite_delegate/libskillet.so"
        if python is None or not delegate.exists():
            self.skipTest("no TensorFlow Lite runtime can be had, or the delegate is absent: nothing is swept")
        done = subprocess.run([python, "-m", "skillet", "sweep", "conv2d/u8/16x16/c8-16/k3x3/same", "--over", "in_channels=8..24..8", "--delegate", delegate,
                               "--option", "partition=all", "--option", "unproven=take", "--chip", "a311d", "-o", self.path],
                              env={**os.environ, "PYTHONPATH": str(ROOT / "src/frontend/python")}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout[:17]), (0, "3 of 3 captured i"), done.stderr)
        _, out, _ = called(_fields.main, self.path)
        self.assertIn("\n  NN nn_instruction.kernel_z_size = in_channels  (CONV_2D: 3 of 3 jobs)\n", out)

    @unittest.skipUnless(IS_LONG, "fast tests only")
    def test_long_recorded_jobs(self):
        if not GOLDEN.is_dir():
            self.skipTest("../shared/golden is absent: only the small captures are read")
        for chip, documented in share_of(DOCUMENTED.items()):
            with self.subTest(chip=chip):
                code, out, err = called(_fields.main, GOLDEN / chip, "--json")
                self.assertEqual((code, err), (0, ""))
                rules = {}
                for row in json.loads(out)["fields"]:
                    rules.setdefault(row["name"], []).extend(one["dimension"] for one in row["rules"])
                right = [name for name, wanted in documented.items() if any(wanted in one for one in rules.get(name, []))]
                print(f"{chip}: {len(right)} of {len(documented)} documented rules found, {sum(map(bool, rules.values()))} fields have one")
                self.assertGreaterEqual(len(right), 10, rules)
                rng = random.Random(3)
                for case in PLANTED.get(chip, PLANTED_CASES):
                    self.assertEqual(self.planted(GOLDEN / chip / case, 5, rng), 0)

    @unittest.skipUnless(IS_LONG, "fast tests only")
    def test_long_planted_in_jobs_of_our_own(self):
        for chip, model in share_of((chip, model) for chip, models in OWN_JOBS.items() for model in models):
            with self.subTest(chip=chip, model=model):
                recorded = self.path / f"{chip}_{model}.skcap"
                subprocess.run(["skillet", "run", ROOT / f"tests/models/{model}.tflite", "--device", f"sim:{chip}", "--random", "1", "--partition", "all", "--unproven", "take",
                                "--record", recorded], check=True, capture_output=True)
                self.assertEqual(self.planted(recorded, 5, random.Random(3)), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["-k", "test_long_"] * IS_LONG)
