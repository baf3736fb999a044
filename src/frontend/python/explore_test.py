#!/usr/bin/env python3
"""`skillet fields` and `skillet bisect`: rules that are there, fields that were made wrong on purpose, and input that is no capture.

usage: explore_test.py SKILLET [--long] [--golden DIR]     --long: only the cases that take long, of them the recorded jobs of ../shared
"""
import contextlib
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
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
MOST_REPLAYS, NOISE = 20, 24 if IS_LONG else 12
# What the rows document: field and dimension.
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
DOCUMENTED["imx8mp"] = DOCUMENTED["a311d"]


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

    def test_fields_of_small_captures(self):
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
        self.assertNotRegex(text, r"https?://|src=|@import")  # nothing from a network
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

    @unittest.skipUnless(IS_LONG and shutil.which("chromium"), "no chromium here")
    def test_page_in_a_browser(self):
        for words in ((A311D, "--against", A311D), (ROOT / "models/digits.tflite", "--chip", "rk3588")):
            self.data_of(*words)
            shown = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom",
                                    f"file://{self.path}/page.html"], capture_output=True, text=True, check=True, timeout=120).stdout
            self.assertIn("<button", shown)
            self.assertGreater(shown.count("<tr"), 50)

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
        """Fields of NOISE that do no harm, and one or two that do: these are found. How many plants there were."""
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

    def test_planted_fields_are_found(self):
        for capture in (A311D, RK3588):
            self.assertEqual(self.planted(capture, 2, random.Random(2)), 0)

    def test_fields_that_one_side_lacks_are_compared_as_words(self):
        """A register less on one side: its fields, and those behind it, are of other words."""
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

    def test_an_input_stays_where_an_output_begins(self):
        files = {"input": b"\1" * 64, "output": b"\2" * 8192, "regcmd": b"\3" * 64}
        for kind, content in files.items():
            (self.path / kind).write_bytes(content)
        job = _dump.Job({kind: self.path / kind for kind in files}, [(0, 8)], 0x10000, {"input": 0x2000, "output": 0x2000})
        buffers, uses = _dump.layout([job])
        self.assertEqual(uses, [([0x2000], [0x2000])])
        _dump.write_capture(self.path / "made", "rk3588", [job], buffers, uses)
        (row,) = [one for one in json.loads((self.path / "made/capture.json").read_text())["submits"][0]["buffers"] if one["address"] == 0x2000]
        self.assertEqual((row["size"], (self.path / "made" / row["file"]).read_bytes()), (8192, files["input"]))

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

    def dumped(self, capture, folder):
        """The files that Mesa's driver writes of these jobs."""
        folder.mkdir()
        submission = json.loads((capture / "capture.json").read_text())["submits"][0]
        fields, done = json.loads(subprocess.run(["skillet", "decode", capture, "--json"], check=True, capture_output=True).stdout)["submissions"][0]["fields"], 0

        def write(kind, address, number):
            for one in submission["buffers"]:
                if one["address"] == address:
                    content = (capture / one["file"]).read_bytes() if "file" in one else b""
                    (folder / f"mesa-{kind}-000-{number:03}.bin").write_bytes(content.ljust(one["size"], b"\0"))
        for number, job in enumerate(submission["jobs"]):
            write("regcmd", job["tasks"][0]["regcmd"], number)
            operations = range(done, done + len(job["tasks"]))
            for kind, name in _dump.ADDRESS.items():
                places = [one["address"] for one in fields if one["operation"] in operations and one["name"] == name and not one["unused"]]
                if places and kind != "operand":
                    write(kind, min(places), number)
            done = operations.stop

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
        stream.unlink()
        self.assertIn("no file mesa-regcmd", called(_dump.main, folder, "-o", self.path / "x")[2])

    @unittest.skipUnless(IS_LONG and GOLDEN.is_dir(), "fast tests only")
    def test_long_dumps_of_recorded_jobs(self):
        cases = sorted((GOLDEN / "rk3588/ops").iterdir()) + sorted((GOLDEN / "rk3588/teflon").iterdir())
        for case in cases[::4]:
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
        sys.path.insert(0, str(ROOT / "tests/integration"))
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
        for chip, documented in DOCUMENTED.items():
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
                for case in ("ops/conv3x3_valid_i8", "ops/conv5x5_u8"):
                    self.assertEqual(self.planted(GOLDEN / chip / case, 5, rng), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["-k", "test_long_"] * IS_LONG)
