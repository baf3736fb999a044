#!/usr/bin/env python3
"""Tests calibrate.py: its fits, its errors, and the page that it writes."""
import csv
import math
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import calibrate

SKILLET = sys.argv.pop(1)
SHARED = calibrate.ROOT.parent / "shared/calibration"
CHIPS = {"rk3588", "rk3576", "rk3568", "rk3566", "rk3562", "a311d", "imx8mp", "imx93",
         "ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256", "ethos-u65-256", "ethos-u65-512"}


class FakeTool:
    """A tool with nets of `work` and `bytes`: ms = max(a * work, bytes / bandwidth)."""

    NETS = {"compute": (8, 1), "memory": (1, 30), "both": (5, 22), "small": (2, 1), "large": (20, 90)}

    def nets(self, chips, _program, nets, values):
        found = {}
        for chip in chips:
            for net in nets:
                work, size = self.NETS[net]
                found[chip, net] = {"ms": max(values["mac_stretch"] * work, size / values["dram_gbps"])}
        return found


GROUP = calibrate.Group(["chip"], "vendor", ["mac_stretch", "dram_gbps"])
START = {"mac_stretch": 1.0, "dram_gbps": 10.0}


def rows(values):
    got = FakeTool().nets(["chip"], "vendor", FakeTool.NETS, values)
    return [("chip", net, got["chip", net]["ms"]) for net in FakeTool.NETS]


class Fit(unittest.TestCase):
    def test_solves_equations(self):
        self.assertEqual([round(x, 9) for x in calibrate.solve([[0, 2], [3, 1]], [4, 5])], [1, 2])

    def test_finds_what_the_rows_were_made_with(self):
        true = {"mac_stretch": 1.4, "dram_gbps": 6.0}
        found = calibrate.fit_from_starts(FakeTool(), GROUP, rows(true), START)
        for name, value in true.items():
            self.assertAlmostEqual(found[name] / value, 1, delta=0.005)

    def test_families(self):
        self.assertEqual(calibrate.family_of("mobilenet_v1_224"), calibrate.family_of("mobilenet_v2_224"))
        self.assertNotEqual(calibrate.family_of("yolov5s_640"), calibrate.family_of("yolov8s_640"))
        self.assertEqual(calibrate.family_of("another"), "another")

    def test_relatives_are_left_out_together(self):
        class Relatives(FakeTool):
            NETS = {**FakeTool.NETS, "yolov5a": (20, 90), "yolov5b": (20, 91)}
        true = {"mac_stretch": 1.4, "dram_gbps": 6.0}
        got = Relatives().nets(["chip"], "vendor", Relatives.NETS, true)
        # Both rows have the same error. A fit that sees one of them follows it.
        wrong = [("chip", net, got["chip", net]["ms"] * (1.5 if net.startswith("yolo") else 1)) for net in Relatives.NETS]
        _, alone = calibrate.judge(Relatives(), GROUP, wrong, true)
        for net in ("yolov5a", "yolov5b"):
            self.assertAlmostEqual(alone[list(Relatives.NETS).index(net)], 100 * (1 / 1.5 - 1), delta=1)

    def test_a_fit_without_rows_enough_is_not_judged(self):
        _, alone = calibrate.judge(FakeTool(), GROUP, rows(START)[:2], START)
        self.assertEqual(alone, [None, None])

    def test_leave_one_out_does_not_see_the_row(self):
        true = {"mac_stretch": 1.4, "dram_gbps": 6.0}
        wrong = [(chip, net, ms * (1.5 if net == "large" else 1)) for chip, net, ms in rows(true)]
        _, alone = calibrate.judge(FakeTool(), GROUP, wrong, true)
        # The wrong row is predicted from the others alone, so correctly.
        self.assertAlmostEqual(alone[list(FakeTool.NETS).index("large")], 100 * (1 / 1.5 - 1), delta=1)

    def test_gates(self):
        group = calibrate.Group(["rk3588"], "vendor", ["mac_stretch"])
        passes = calibrate.gate_table([(group, {}, [1, 2], [9, -9.9])])
        fails = calibrate.gate_table([(group, {}, [1, 2], [9, -10.1])])
        self.assertIn("| pass |", passes)
        self.assertIn("FAIL: 1 of 2", fails)
        self.assertIn("too few rows", calibrate.gate_table([(group, {}, [1], [None])]))

    def test_what_cannot_be_known_has_no_gate(self):
        group = calibrate.Group(["imx8mp"], "open", ["dram_gbps"])
        line = calibrate.gate_table([(group, {}, [1, 2], [50, 60])]).splitlines()[-1]
        self.assertIn("no gate: two networks of one family", line)
        self.assertIn("60.0 %", line)

    def test_speeds_of_a_cpu(self):
        def sample(dense, depthwise, a, b):
            return a * dense + b * depthwise + 1, {"dense": dense, "depthwise": depthwise, "element": 0.5, "table": 0.25, "copy": 0.25}
        found = calibrate.cpu_factors([sample(20, 4, 1.2, 0.8), sample(9, 6, 1.2, 0.8)])
        for got, want in zip(found, (1.2, 0.8)):
            self.assertAlmostEqual(got, want, places=6)
        # One network cannot distinguish the two.
        found = calibrate.cpu_factors([sample(20, 4, 1.5, 1.5)])
        self.assertAlmostEqual(found[0], found[1])
        self.assertAlmostEqual(found[0], 1.5, places=6)

    def test_rows_of_bench_name_their_core(self):
        row = {"cpu": "1x A76 2.40 GHz", "engine": "skillet", "soc": "", "net": "mobilenet_v1_1.0_224_quant"}
        self.assertEqual((calibrate.cpu_of(row), calibrate.net_of(row["net"])), ((76, 2.4), "mobilenet_v1_224"))

    def test_percentiles(self):
        self.assertEqual(calibrate.ninetieth([x / 10 for x in range(1, 11)]), 0.9)


class Page(unittest.TestCase):
    def test_blocks_are_replaced(self):
        text = "a\n<!-- calibrate: x -->\nold\n<!-- end -->\nb\n"
        new = calibrate.with_blocks(text, {"x": "| 1 |", "y": "no"})
        self.assertEqual(calibrate.blocks(new), [("x", "| 1 |\n")])
        self.assertTrue(new.startswith("a\n") and new.endswith("b\n"))

    def test_every_block_is_there(self):
        names = {name for name, _ in calibrate.blocks(calibrate.PAGE.read_text(encoding="utf-8"))}
        self.assertEqual(names, {"gates", "layers", "predictions", "residuals", "parameters", "mainline", "cpu"})

    def test_parameters_of_the_page_are_those_of_the_tool(self):
        tool = calibrate.Tool(SKILLET, SHARED)
        page = dict(calibrate.blocks(calibrate.PAGE.read_text(encoding="utf-8")))
        self.assertEqual(page["parameters"].strip(), calibrate.parameter_table(tool.parameters()))
        self.assertEqual({row["chip"] for row in tool.parameters()}, CHIPS)

    def test_writing_parameters_changes_only_the_value(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.def"
            path.write_text('TIMING(a, both, x, 1.5, "u", F, "s")\nTIMING(b, both, x, 1.5, "u", F, "s")\n')
            known, calibrate.PARAMETER_FILES = calibrate.PARAMETER_FILES, [path]
            try:
                calibrate.write_parameters({("a", "vendor", "x"): 2.3456})
            finally:
                calibrate.PARAMETER_FILES = known
            self.assertEqual(path.read_text(), 'TIMING(a, both, x, 2.35, "u", F, "s")\nTIMING(b, both, x, 1.5, "u", F, "s")\n')


class Mainline(unittest.TestCase):
    """Tests jobs without a list of layers."""

    def test_one_set_of_parameters_for_all(self):
        tool, judged = calibrate.Tool(SKILLET, SHARED), 0
        for row in calibrate.read_csv(calibrate.MAINLINE):
            if row["net"] or row["not_used_because"]:
                continue
            judged += 1
            ms = calibrate.mainline_ms(tool, row)
            error = calibrate.outside(ms, float(row["low_ms"]), float(row["high_ms"]))
            self.assertLessEqual(abs(error), calibrate.MAINLINE_GATE, row["what"])
        self.assertGreaterEqual(judged, 6)

    def test_outside(self):
        self.assertEqual(calibrate.outside(5, 4, 6), 0)
        self.assertAlmostEqual(calibrate.outside(9, 4, 6), 50)
        self.assertAlmostEqual(calibrate.outside(2, 4, 6), -50)


@unittest.skipUnless((SHARED / "endtoend.csv").is_file(), "no published measurements beside the project")
class Measurements(unittest.TestCase):
    def setUp(self):
        self.tool = calibrate.Tool(SKILLET, SHARED)

    def test_tables_are_up_to_date(self):
        self.assertEqual(calibrate.check(self.tool, SHARED), 0)

    def test_mainline_is_within_its_gate(self):
        found = [(row["what"], error) for row, _, error in calibrate.mainline_rows(self.tool) if error is not None]
        self.assertGreaterEqual(len(found), 10)
        for what, error in found:
            self.assertLessEqual(abs(error), calibrate.MAINLINE_GATE, what)

    def test_fits_are_within_the_gates(self):
        for group in calibrate.GROUPS:
            found = calibrate.rows_of(SHARED, group)
            self.assertGreater(len(found), 1, group.title)
            for (chip, net, _), error in zip(found, calibrate.logs(self.tool, group, found, {})):
                self.assertLessEqual(abs(calibrate.share(error)), calibrate.GATES[chip], f"{chip} {net}")

    def test_columns(self):
        net, table = SHARED / "networks/mobilenet_v1_224.csv", next(SHARED.glob("perlayer_*.csv"))
        for path, header in ((net, "net,chip,ms,program"), (table, "table,id,us")):
            done = subprocess.run([SKILLET, "plan", "--layers", path, "--chip", "rk3588", "--program", "vendor"],
                                  capture_output=True, text=True, check=True)
            lines = list(csv.DictReader(done.stdout.splitlines()))
            self.assertEqual(done.stdout.splitlines()[0], header)
            self.assertRegex(done.stderr, r"simulated: rk3588, at 1000 MHz, \+-\d+ %")
            for line in lines:
                self.assertTrue(math.isfinite(float(line.get("ms") or line["us"])))
            if path == table:
                with open(path, encoding="utf-8") as rows_file:
                    self.assertEqual([line["id"] for line in lines], [row["id"] for row in csv.DictReader(rows_file)])


class Command(unittest.TestCase):
    def complain(self, *arguments):
        done = subprocess.run([SKILLET, "plan", *arguments], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_chips_without_parameters_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.csv"
            path.write_text("id,op,inputs,in_h,in_w,in_c,out_h,out_w,out_c,kh,kw,sh,dh,act,weight_elems\n"
                            "1,conv,,8,8,16,8,8,16,3,3,1,1,none,2304\n")
            for chip, program in (("s905d3", "vendor"), ("rk3568", "open"), ("nothing", "vendor")):
                self.assertRegex(self.complain("--layers", path, "--chip", chip, "--program", program),
                                 rf"{program} jobs of chip '{chip}' are not timed: there are no parameters")
            self.assertIn("must be open or vendor", self.complain("--layers", path, "--chip", "rk3588", "--program", "x"))
            self.assertIn("must be NAME=NUMBER", self.complain("--layers", path, "--chip", "rk3588", "--set", "clock_ghz"))
            self.assertIn("must be a number from 0 to 1000000",
                          self.complain("--layers", path, "--chip", "rk3588", "--set", "clock_ghz=nan"))
            path.write_text(path.read_text().replace("8,8,16,3,3", "8,nan,16,3,3"))
            self.assertIn("net.csv: line 2: column out_w: 'nan'", self.complain("--layers", path, "--chip", "rk3588"))

    def test_errors_stand_beside_every_time(self):
        done = subprocess.run([SKILLET, "plan", "models/digits.tflite"], capture_output=True, text=True, check=True)
        self.assertIn("simulated", done.stdout)
        rows_printed = re.findall(r"^  \w+ +\d+ of .*\d ms.*$", done.stdout, re.MULTILINE)
        self.assertGreaterEqual(len(rows_printed), 2)
        for line in rows_printed:
            self.assertRegex(line, r"\+-\d+ %")


if __name__ == "__main__":
    unittest.main()
