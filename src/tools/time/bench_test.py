#!/usr/bin/env python3
"""Tests `skillet bench` and `skillet check`: the cost of networks and where they would run.

usage: bench_test.py SKILLET      run at the top of the source tree
"""
import csv
import html.parser
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SKILLET = str(Path(sys.argv.pop(1)).resolve())
MODEL = "models/digits.tflite"
FINE, FAILED, CANNOT_BEGIN = 0, 1, 2


def skillet(*args):
    done = subprocess.run([SKILLET, *args], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


class Page(html.parser.HTMLParser):
    """Collects the files that a page would load, and its rows."""

    def __init__(self, text):
        super().__init__()
        self.open, self.loads, self.rows, self.cells = [], [], 0, 0
        self.nodes = self.marks = self.edges = 0  # counts in the graph
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.loads += [value for name, value in attributes if name in ("src", "href")]
        self.rows += tag == "tr"
        self.cells += tag == "td"
        kind = dict(attributes).get("class", "").split(" ")[0]
        self.nodes += kind == "node"
        self.marks += kind == "mark"
        self.edges += kind == "edge"
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class Bench(unittest.TestCase):
    def test_jobs_one_by_one(self):
        for device, model in ("sim:a311d", MODEL), ("sim:rk3588", MODEL), ("cpu", MODEL):
            with self.subTest(device=device):
                common = "bench", model, "--device", device, "--runs", "4", "--without-cpu", "--partition", "all", "--unproven", "take", "--per-op"
                code, out, err = skillet(*common, "--json")
                self.assertEqual((code, err), (FINE, ""))
                report = json.loads(out)
                jobs = report["jobs"]
                self.assertEqual(bool(jobs), device != "cpu")
                self.assertAlmostEqual(report["jobs_alone_ms"], sum(job["mean_ms"] for job in jobs))
                for job in jobs:
                    self.assertEqual(report["parts"][job["part"]]["where"], "npu")
                    self.assertGreater(min(job["first_ms"], job["mean_ms"], job["predicted_ms"]), 0)
                    self.assertIn("CONV_2D", job["operations"] + "CONV_2D" * (len(jobs) > 1))
                if device == "sim:rk3588":  # one job, named for several operations, one of whose names ends with another's
                    self.assertEqual(jobs[0]["operations"], "CONV_2D, " + 4 * "DEPTHWISE_CONV_2D, CONV_2D, " + "AVERAGE_POOL_2D, CONV_2D")
                    self.assertEqual(jobs[0]["operation_count"], 11)
                self.assertEqual(report["jobs_together_ms"] > 0, bool(jobs))
                code, out, _ = skillet(*common, "--csv")
                rows = list(csv.DictReader(io.StringIO(out)))
                self.assertEqual((code, len(rows)), (FINE, len(jobs)))
                if rows:
                    for row, job in zip(rows, jobs):  # the operation of the row
                        count = job["operation_count"]
                        self.assertEqual(count, len(row["node type"].split(", ")))
                        self.assertEqual(f", {count} operations in one job" in row["name"], count > 1)
                    self.assertAlmostEqual(sum(float(row["%"]) for row in rows), 100, delta=0.1)
                    self.assertAlmostEqual(float(rows[-1]["cdf%"]), 100, delta=0.1)
                    self.assertEqual([float(row["predicted_ms"]) for row in rows], [round(job["predicted_ms"], 3) for job in jobs])
                text = skillet(*common)[1]
                self.assertIn("one by one" if jobs else "no NPU job", text)
                self.assertEqual("11 operations in one job: CONV_2D" in text, device == "sim:rk3588")

    @unittest.skipIf("SANITIZED" in os.environ, "builds with sanitizers have no libraries to preload")
    def test_jobs_of_a_node_are_those_of_its_chip(self):
        columns = ["node type", "first", "avg_ms", "%", "cdf%", "mem KB", "times called", "name"]  # of benchmark_model
        for chip in "a311d", "rk3588":
            common = "bench", MODEL, "--runs", "3", "--without-cpu", "--partition", "all", "--unproven", "take", "--per-op", "--csv", "--device"
            rows = []
            for words in ((*common, f"sim:{chip}"), ("virtual", "--chip", chip, "--", SKILLET, *common, "npu")):
                code, out, err = skillet(*words)
                self.assertEqual((code, err), (FINE, ""))
                rows.append(list(csv.DictReader(io.StringIO(out))))
                self.assertEqual(list(rows[-1][0])[:len(columns)], columns)
            same = [[(row["node type"], row["name"], row["times called"], row["predicted_ms"]) for row in one] for one in rows]
            self.assertEqual(same[0], same[1])

    def test_times_are_in_order_and_shares_add_up(self):
        for device in ("sim:a311d", "cpu"):
            with self.subTest(device=device):
                code, out, err = skillet("bench", MODEL, "--device", device, "--runs", "9", "--json")
                self.assertEqual((code, err), (FINE, ""))
                report = json.loads(out)
                for times in (report["times"], report["cpu_times"]):
                    values = [times[name] for name in ("min_ms", "median_ms", "p90_ms", "p99_ms", "max_ms")]
                    self.assertEqual(values, sorted(values))
                    self.assertTrue(times["min_ms"] <= times["mean_ms"] <= times["max_ms"])
                    self.assertEqual(times["runs"], 9)
                    self.assertAlmostEqual(times["per_second"] * times["mean_ms"], 1000, places=3)
                self.assertLessEqual(sum(part["mean_ms"] for part in report["parts"]), report["times"]["mean_ms"] * 1.01)
                self.assertLessEqual(sum(op["cpu_mean_ms"] for op in report["ops"]), report["cpu_times"]["mean_ms"] * 1.01)
                self.assertEqual({part["where"] for part in report["parts"]}, {"npu", "cpu"} if device != "cpu" else {"cpu"})
                self.assertEqual(report["simulated"], device != "cpu")
                for op in report["ops"]:
                    self.assertEqual(op["where"], report["parts"][op["part"]]["where"] if op["part"] >= 0 else "-")
                self.assertEqual(sum(op["where"] == "npu" for op in report["ops"]),
                                 sum(part["ops"] for part in report["parts"] if part["where"] == "npu"))
                self.assertGreater(report["peak_kib"], 1000)

    def test_the_peak_memory_is_the_programs_own(self):
        def peak_kib():
            return json.loads(skillet("bench", MODEL, "--device", "cpu", "--runs", "1", "--without-cpu", "--json")[1])["peak_kib"]
        before = peak_kib()
        ballast = b"x" * (before << 11)  # twice the amount, in the process that starts the next one
        self.assertGreater(before, 1000)
        self.assertLess(peak_kib(), before * 1.5, f"with {len(ballast) >> 10} KiB in the process that started it")

    def test_predicted_times_say_their_clock(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        layers = Path(folder.name) / "net.csv"
        layers.write_text("id,op,inputs,in_h,in_w,in_c,out_h,out_w,out_c,kh,kw,sh,dh,act,weight_elems\n"
                          "1,conv,,8,8,16,8,8,16,3,3,1,1,none,2304\n", encoding="utf-8")
        for chip, mhz in ("a311d", 800), ("rk3588", 200), ("rk3576", 786):
            on = "--device", f"sim:{chip}", "--partition", "all", "--unproven", "take"
            for command, key in ((("bench", MODEL, *on, "--runs", "1", "--without-cpu", "--per-op"), "predicted_clock_mhz"),
                                 (("check", MODEL, *on), "simulated"), (("run", MODEL, *on, "--random", "1"), "simulated"),
                                 (("plan", MODEL, "--chip", chip), "chips"), (("plan", "--layers", str(layers), "--chip", chip), "layers"),
                                 (("compile", MODEL, "--device", f"sim:{chip}", "--unproven", "take", "--partition", "predicted", "--explain-partition"), None)):
                with self.subTest(command=command):
                    code, out, err = skillet(*command)
                    self.assertIn(f"{mhz} MHz", out + err)
                    self.assertNotIn("estimate: ", out + err)
                    if key:
                        part = json.loads(skillet(*command, "--json")[1])[key]
                        part = part[0] if isinstance(part, list) else part
                        self.assertEqual(part["clock_mhz"] if isinstance(part, dict) else part, mhz)
            code, out, err = skillet("plan", MODEL, "--chip", chip, "--set", "clock_ghz=0.9")
            self.assertIn(f"900 MHz (an estimate: published times are at {mhz} MHz)", out)

    def test_boards_with_another_clock_are_estimates(self):
        for chip, estimates in ("rk3588", [False, False, True, True]), ("rk3576", [False, False, True]):
            states = json.loads(skillet("plan", MODEL, "--chip", chip, "--json")[1])["chips"][0]["states"]
            self.assertEqual([one["estimate"] for one in states], estimates[-len(states):], chip)

    def test_other_forms(self):
        code, out, _ = skillet("bench", MODEL, "--device", "cpu", "--runs", "3", "--csv")
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual((code, [row["where"] for row in rows], [row["runs"] for row in rows]), (FINE, ["cpu", "cpu kernels"], ["3", "3"]))
        code, out, _ = skillet("bench", MODEL, "--device", "sim:a311d", "--runs", "2", "--without-cpu")
        self.assertEqual(code, FINE)
        self.assertIn("simulated: these are the simulator's times", out)
        self.assertNotIn("cpu kernels", out)

    def test_operations_of_the_cpu_are_rows_beside_jobs(self):
        ops = json.loads(skillet("bench", MODEL, "--device", "cpu", "--runs", "2", "--json")[1])["ops"]
        for device in "cpu", "sim:a311d":
            code, out, _ = skillet("bench", MODEL, "--device", device, "--runs", "2", "--per-op", "--csv", "--partition", "all")
            rows = list(csv.DictReader(io.StringIO(out)))
            of_cpu = [row["node type"] for row in rows if "cpu kernels" in row["name"]]
            self.assertEqual((code, len(of_cpu) == len(rows)), (FINE, device == "cpu"))
            if device == "cpu":
                self.assertEqual(of_cpu, [op["kind"] for op in ops])
            else:
                self.assertIn(of_cpu[-1], [op["kind"] for op in ops])
            self.assertAlmostEqual(sum(float(row["%"]) for row in rows), 100, delta=0.1)
            self.assertAlmostEqual(float(rows[-1]["cdf%"]), 100, delta=0.1)

    def test_bad_uses(self):
        for args, code, words in ((["--runs", "0"], CANNOT_BEGIN, "--runs: must be a whole number from 1"),
                                  (["--csv", "--json"], CANNOT_BEGIN, "excludes"),
                                  (["--device", "npu"], CANNOT_BEGIN, "no NPU here")):
            got, _, err = skillet("bench", MODEL, *args)
            self.assertEqual((got, err.count("\n")), (code, 1), err)
            self.assertIn(words, err)
        self.assertEqual(skillet("bench", "README.md")[0], CANNOT_BEGIN)


class Check(unittest.TestCase):
    def test_every_known_chip_has_a_column(self):
        code, out, err = skillet("check", MODEL, "--json")
        self.assertEqual((code, err), (FINE, ""))
        report = json.loads(out)
        chips = {chip["chip"]: chip for chip in report["chips"]}
        self.assertLessEqual({"a311d", "imx8mp", "rk3588"}, set(chips))
        self.assertNotIn("toy", chips)  # a fictional chip
        _, text, _ = skillet("check", MODEL)
        for name, chip in chips.items():
            self.assertIn(f" {name}", next(line for line in text.splitlines() if line.startswith("  op ")))
            self.assertEqual(len(chip["where"]), len(report["ops"]))
            self.assertEqual(sum(where == "npu" for where in chip["where"]), chip["npu_ops"])
            self.assertEqual(sum(op["macs"] for op, where in zip(report["ops"], chip["where"]) if where == "npu"), chip["npu_macs"])
            self.assertTrue(all(us is None or us >= 0 for us in chip["simulated_us"]))
            if name != "rk3576":  # the timing of its jobs is not known yet
                self.assertGreater(sum(us is not None and us > 0 for us in chip["simulated_us"]), 3)
            for where, error in zip(chip["where"], chip["error"]):
                self.assertIn(error, {"npu": ("up to 1", "0"), "cpu": ("0",)}[where])
            for where, why in zip(chip["where"], chip["why"]):
                self.assertTrue(where != "cpu" or why, "a reason for each")
        one = json.loads(skillet("check", MODEL, "--device", "sim:a311d", "--json")[1])
        self.assertEqual(one["npu_macs"], chips["a311d"]["npu_macs"])

    def test_times_are_of_the_whole_network_everywhere(self):
        for chip in ("a311d", "imx8mp", "rk3588"):
            device = ["--device", f"sim:{chip}", "--json"]
            checked = json.loads(skillet("check", MODEL, *device)[1])["simulated"]
            ran = json.loads(skillet("run", MODEL, *device)[1])["simulated"]
            (page,) = [one for one in json.loads(skillet("check", MODEL, "--json")[1])["chips"] if one["chip"] == chip]
            plan = json.loads(skillet("plan", MODEL, "--chip", chip, "--json")[1])
            self.assertEqual(checked, ran)
            self.assertGreater(checked["cpu_ms"], 0)
            self.assertGreater(checked["wall_ms"], checked["device_ms"] + checked["cpu_ms"])
            for wall in (page["wall_ms"], plan["chips"][0]["wall_ms"]):
                self.assertAlmostEqual(wall, checked["wall_ms"], places=6)

    def test_what_only_moves_bytes_is_not_off(self):
        for words in ([], ["--delegate", "--partition", "all"]):
            report = json.loads(skillet("check", MODEL, "--json", *words)[1])
            for chip in report["chips"]:
                off = {op["kind"]: (where, error) for op, where, error in zip(report["ops"], chip["where"], chip["error"])}
                self.assertEqual(off["CONV_2D"], ("npu", "up to 1"), chip["chip"])
                self.assertEqual(off["RESHAPE"][1], "0", chip["chip"])

    def test_what_becomes_several_is_as_far_off_as_the_worst_of_them(self):
        sys.path.insert(0, "tests/models")
        import ssd_model
        net = ssd_model.Model()
        picture = net.tensor("picture", [2, 6, 6, 3], ssd_model.UINT8, 1 / 255)
        conv = net.conv("conv", picture, [[[[0.1] * 3]] for _ in range(8)], [0] * 8)
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "two_pictures.tflite"
            model.write_bytes(net.bytes([picture], [conv]))
            for chip in json.loads(skillet("check", str(model), "--json")[1])["chips"]:
                self.assertEqual((chip["part_ops"] + chip["npu_ops"], chip["error"]), (1, ["up to 1"]), chip["chip"])

    def test_times_of_several_cores(self):
        def simulated(cores):
            run = json.loads(skillet("run", MODEL, "--device", "sim:rk3588", "--cores", str(cores), "--json")[1])
            return run["simulated"], max(part["bands"] for part in run["parts"])
        (one, no_bands), (three, bands) = simulated(1), simulated(3)
        self.assertEqual((one["cores"], no_bands, three["cores"], bands), (1, 0, 3, 3))
        self.assertLess(one["device_ms"] / 3, three["device_ms"])
        self.assertLess(three["device_ms"], one["device_ms"])
        # Each core has as many tasks as a single core would. The extra time is for the host's starts of cores, and for copies.
        parameters = {row["name"]: row["value"] for row in json.loads(skillet("plan", "--parameters")[1])["parameters"]
                      if row["chip"] == "rk3588"}
        start = (parameters["submit_us"] + parameters["iommu_us"] + 2 * parameters["cache_us"]) / 1000
        copies = three["wall_ms"] - (one["wall_ms"] - one["device_ms"] + three["device_ms"] + 3 * start)  # operations after the bands are started too
        self.assertGreater(copies, -0.001)
        self.assertLess(copies, 0.01)
        for words, told in (("run", "the NPU of such a chip, on 3 cores, "), ("check", "NPU, on one core: "), ("plan", "rk3588, on one core; ")):
            where = ["--chip", "rk3588"] if words == "plan" else ["--device", "sim:rk3588"]
            self.assertIn(told, skillet(words, MODEL, *where, *(["--cores", "3"] if words == "run" else []))[1])
        self.assertEqual(json.loads(skillet("plan", MODEL, "--chip", "rk3588", "--json")[1])["chips"][0]["cores"], 1)
        self.assertNotIn("cores", json.loads(skillet("plan", MODEL, "--chip", "a311d", "--json")[1])["chips"][0])

    def test_cores_share_the_memory(self):
        sys.path.insert(0, "tests/models")
        import ssd_model
        net = ssd_model.Model()
        picture = net.tensor("picture", [1, 96, 96, 32], ssd_model.UINT8, 1 / 255)
        conv = net.conv("conv", picture, [[[[0.1] * 32]] for _ in range(32)], [0] * 32)  # limited by memory, not by MACs
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "memory.tflite"
            model.write_bytes(net.bytes([picture], [conv]))
            ms = []
            for cores in (1, 2, 3):
                run = json.loads(skillet("run", str(model), "--device", "sim:rk3588", "--cores", str(cores), "--json")[1])
                self.assertEqual(run["simulated"]["cores"], cores)
                ms.append(run["simulated"]["device_ms"])
            one, two, three = ms
            # At the stock clock a core's port moves 3.2 GB/s, less than its third of 24.
            self.assertAlmostEqual(one / two, 2, delta=0.1)
            self.assertAlmostEqual(one / three, 3, delta=0.1)

    def test_what_only_a_word_keeps_from_the_npu_says_so(self):
        chips = {one["chip"]: one for one in json.loads(skillet("check", MODEL, "--unproven", "refuse", "--json")[1])["chips"]}
        taken = {one["chip"]: one for one in json.loads(skillet("check", MODEL, "--json")[1])["chips"]}
        some = 0
        for name, chip in chips.items():
            more = any(before == "cpu" and after == "npu" for before, after in zip(chip["where"], taken[name]["where"]))
            self.assertEqual(any("unproven=verify" in one["remedy"] for one in chip["reasons"]), more, name)
            some += more
        self.assertGreater(some, 0)

    def test_what_is_required(self):
        rows = [([], "97%", FINE), (["--unproven", "refuse"], "100%", FAILED), ([], "0", FINE), (["--device", "sim:a311d"], "90%", FINE), (["--device", "cpu"], "1", FAILED),
                (["--device", "sim:a311d"], "100.0%", FINE)]
        share = json.loads(skillet("check", MODEL, "--device", "sim:a311d", "--json")[1])
        self.assertEqual(share["npu_macs"], share["macs"])
        for args, percent, code in rows:
            got, _, err = skillet("check", MODEL, *args, "--require", percent)
            self.assertEqual(got, code, err)
            self.assertEqual(" of the CPU's time; --require needs" in err or "% of the MACs; --require needs" in err, code == FAILED)
        for wrong in ("x", "101%", "-1", "90 %x", "nan", ""):
            got, _, err = skillet("check", MODEL, "--require", wrong)
            if wrong:
                self.assertEqual((got, "--require: must be a percentage" in err), (CANNOT_BEGIN, True), err)

    def test_a_page_stands_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            odd = Path(folder) / "<b>&'\".tflite"
            odd.write_bytes(Path(MODEL).read_bytes())
            path = Path(folder) / "page.html"
            code, _, err = skillet("check", str(odd), "--html", str(path))
            self.assertEqual((code, err), (FINE, ""))
            text = path.read_text()
            page = Page(text)
            self.assertEqual((page.open, page.loads), ([], []))
            self.assertNotIn("<b>&'", text)
            self.assertIn("&lt;b&gt;&amp;&#39;&quot;.tflite", text)
            report = json.loads(skillet("check", MODEL, "--json")[1])
            self.assertEqual(page.rows, len(report["ops"]) + 1)
            self.assertEqual(page.cells, len(report["ops"]) * (4 + 3 * len(report["chips"])))
            self.assertEqual((page.nodes, page.marks), (len(report["ops"]), len(report["ops"]) * len(report["chips"])))
            self.assertGreaterEqual(page.edges, len(report["ops"]) - 1)
        got, _, err = skillet("check", MODEL, "--html", "/nowhere/x")
        self.assertEqual((got, "/nowhere/x: No such file" in err), (CANNOT_BEGIN, True))
        self.assertEqual(skillet("check", MODEL, "--html", "/dev/full")[0], FAILED)
        self.assertEqual(skillet("check", MODEL, "--html", "x", "--device", "cpu")[0], CANNOT_BEGIN)


class Eval(unittest.TestCase):
    DATA = ["--data", "models/digits"]

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)

    def test_how_often_it_is_right(self):
        truth = self.path / "truth"
        truth.write_text("".join(f"{i}.png {i}\n" for i in range(9)) + "9.png\t4\r\n\nother.png 3\n")  # the last line is wrong
        for device in ("cpu", "sim:a311d"):
            with self.subTest(device=device):
                code, out, err = skillet("eval", MODEL, *self.DATA, "--labels", str(truth), "--device", device, "--json")
                self.assertEqual((code, err), (FINE, ""))
                report = json.loads(out)
                self.assertEqual((report["pictures"], report["with_truth"], report["top1"], report["cpu_top1"]), (10, 10, 9, 9))
                self.assertEqual(report["same_class"], 10)
                self.assertEqual(report["largest_difference"] == 0, device == "cpu")
                self.assertEqual("worst_psnr_db" in report, device != "cpu")
                self.assertTrue(0.99 < report["worst_cosine"] <= report["cosine"] <= 1.0000001)
        self.assertRegex(skillet("eval", MODEL, *self.DATA, "--labels", str(truth), "--device", "cpu")[1], r"cpu +90.00 % +\d+.00 %")

    def test_classes_with_one_score_are_all_among_the_best_or_none(self):
        """All classes of 0.png except one have the score 0; all of 5.png except four."""
        truth = self.path / "truth"
        for line, top5 in (("0.png 1", 0), ("0.png 0", 1), ("0.png 9", 0), ("5.png 0", 0), ("5.png 2", 1), ("5.png 8", 1)):
            with self.subTest(line=line):
                truth.write_text(line + "\n")
                report = json.loads(skillet("eval", MODEL, *self.DATA, "--labels", str(truth), "--device", "cpu", "--json")[1])
                self.assertEqual((report["with_truth"], report["top5"], report["cpu_top5"]), (1, top5, top5))

    def test_against_another_device(self):
        base = ["eval", MODEL, *self.DATA, "--device", "sim:a311d", "--json"]
        same, other = (json.loads(skillet(*base, "--against", device)[1]) for device in ("sim:a311d", "sim:rk3588"))
        self.assertEqual((same["equal"], same["largest_difference"], same["against"]), (1, 0, "sim:a311d"))
        self.assertGreater(other["largest_difference"], 0)
        cpu = json.loads(skillet(*base)[1])
        self.assertEqual(cpu, json.loads(skillet(*base, "--against", "cpu")[1]))

    def test_layers_and_the_first_one_beyond_its_bound(self):
        base = ["eval", MODEL, *self.DATA, "--device", "sim:a311d"]
        report = json.loads(skillet(*base, "--layers", "--json")[1])
        self.assertGreater(len(report["layers"]), 8)
        beyond = [layer["op"] for layer in report["layers"] if layer["largest"] > 0]
        self.assertTrue(beyond)
        code, _, err = skillet(*base, "--bisect", "--bound", "0")
        self.assertEqual((code, err.count("\n")), (FAILED, 1))
        self.assertIn(f"op {beyond[0]} ", err)
        self.assertEqual(skillet(*base, "--bisect")[0], FINE)

    def test_bad_uses(self):
        (self.path / "odd").write_text("0.png zero\n")
        (self.path / "others").write_text("cat.png 3\n")
        (self.path / "eleven").write_text("2.png 9\n3.png 10\n")
        (self.path / "twice").write_text("0.png 0\n0.png 1\n")
        (self.path / "empty").mkdir()
        (self.path / "broken").mkdir()
        (self.path / "broken/x.png").write_bytes(b"\x89PNG")
        rows = [([*self.DATA, "--labels", str(self.path / "odd")], CANNOT_BEGIN, "line 1: must be 'PICTURE CLASS', such as '3.png 3', not '0.png zero'"),
                ([*self.DATA, "--labels", str(self.path / "others")], CANNOT_BEGIN, "names none of the pictures"),
                ([*self.DATA, "--labels", "nowhere"], CANNOT_BEGIN, "nowhere: No such file"),
                (["--data", str(self.path / "empty")], CANNOT_BEGIN, "it contains no .png, .jpg or .bmp"),
                (["--data", str(self.path / "broken")], FAILED, "none of its 1 pictures can be read"),
                ([*self.DATA, "--labels", str(self.path / "eleven")], CANNOT_BEGIN, "'3.png' is of class 10; the network has 10 classes, counted from 0"),
                ([*self.DATA, "--labels", str(self.path / "twice")], CANNOT_BEGIN, "line 2: '0.png' is in line 1 too"),
                ([*self.DATA, "--delegate-option", "a=b"], CANNOT_BEGIN, "--delegate-option needs --against"),
                (["--data", "nowhere"], CANNOT_BEGIN, "nowhere"),
                ([*self.DATA, "--against", "sim:none"], CANNOT_BEGIN, "none"),
                ([*self.DATA, "--against", ""], CANNOT_BEGIN, "--against: must not be empty"),
                ([*self.DATA, "--against", "lib.so", "--python", "/nowhere/python"], CANNOT_BEGIN, "/nowhere/python: No such file"),
                ([*self.DATA, "--against", "lib.so", "--python", "/bin/false"], CANNOT_BEGIN, "lib.so: its host ended with exit code 1"),
                ([*self.DATA, "--against", "lib.so", "--python", "/bin/echo"], CANNOT_BEGIN, "lib.so: /bin/echo is not Python 3"),
                ([*self.DATA, "--against", "lib.so", "--delegate-option", "x"], CANNOT_BEGIN, "must be KEY=VALUE, not 'x'")]
        for args, code, words in rows:
            got, _, err = skillet("eval", MODEL, *args, "--device", "cpu")
            self.assertEqual((got, err.count("\n")), (code, 2 if "none of its" in words else 1), err)
            self.assertIn(words, err)

    def test_a_picture_that_cannot_be_read(self):
        for name in ("3.png", "4.png"):
            (self.path / name).write_bytes(Path("models/digits", name).read_bytes())
        (self.path / "x.png").write_bytes(b"\x89PNG")
        (self.path / "labels").write_text("3.png 3\n4.png 4\nx.png 5\n")
        code, out, err = skillet("eval", MODEL, "--data", str(self.path), "--labels", str(self.path / "labels"), "--device", "cpu", "--json")
        report = json.loads(out)
        self.assertEqual((report["pictures"], report["with_truth"], report["top1"], report["unreadable"]), (2, 2, 2, ["x.png"]))
        self.assertEqual(code, FAILED)
        self.assertIn("1 of 3 pictures cannot be read", err)


if __name__ == "__main__":
    unittest.main()
