#!/usr/bin/env python3
"""Tests `skillet prove`.

It names a random quirk of simulated silicon; faults end with a report; a killed run can be continued; invalid reports are refused
with the name of the field.

usage: prove_test.py SKILLET      run at the top of the source tree
"""
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile
from pathlib import Path

SKILLET = sys.argv.pop(1)
ERRATA = re.findall(r"ERRATUM\((\w+)", Path("src/npus/rockchip/sim/quirks_3576.def").read_text(encoding="utf-8"))
CHIPS = ["a311d", "imx8mp", "rk3588", "rk3576", "imx93"]
# A quirk takes a second or two: a few are drawn, others with another PROVE_SEED.
SEED, DRAWN = os.environ.get("PROVE_SEED", "1"), int(os.environ.get("PROVE_DRAWN", "4"))
# Silicon and boards that are slower or faster than expected: chip, timing parameter, range of values.
TIMES = [("rk3588", "task_us", 30, 200), ("rk3588", "clock_ghz", 0.3, 1), ("rk3588", "submit_us", 8, 90), ("rk3588", "dram_gbps", 0.5, 2.5),
         ("a311d", "clock_ghz", 0.1, 0.3), ("a311d", "dram_gbps", 2, 4), ("imx8mp", "submit_us", 20, 60), ("imx8mp", "submit_us", 100, 900)]
HAS_VIRTUAL_NODE = subprocess.run([SKILLET, "virtual", "--", "true"], capture_output=True, timeout=60).returncode == 0


def skillet(*arguments, around=(), env=None):
    return subprocess.run([*around, SKILLET, *arguments], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **(env or {})})


def quirks(chip):
    """Returns the quirks that an error lists, except errata, which no probe covers."""
    said = skillet("run", "models/digits.tflite", "--device", f"sim:{chip},quirk=none_such").stderr
    names = re.findall(r"\w+", said[said.index("can have ") + len("can have "):].replace(" and ", " "))
    return [name for name in names if name not in ERRATA]


class ProveTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.report = str(Path(self.folder.name) / "report.json")
        self.trust = {"SKILLET_TRUST_DIR": str(Path(self.folder.name) / "trust")}

    def tearDown(self):
        self.folder.cleanup()

    def read(self, *more, env=None):
        return skillet("prove", "--read", self.report, *more, env=env)

    def saved(self):
        return json.loads(Path(self.report).read_text(encoding="utf-8"))

    def save(self, value):
        Path(self.report).write_text(json.dumps(value), encoding="utf-8")

    def outcomes(self, kind="assumption"):
        return {step["name"]: step["outcome"] for step in self.saved()["steps"] if step["kind"] == kind}

    def prove(self, device, *more, **how):
        return skillet("prove", "--device", device, "-o", self.report, *more, **how)

    def test_nothing_is_refuted_without_a_quirk(self):
        for chip in CHIPS:
            Path(self.report).unlink(missing_ok=True)
            done = self.prove(f"sim:{chip}", "--risky")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.saved()["ended"], "all steps were taken")
            for kind in ("assumption", "operation"):
                self.assertLessEqual(set(self.outcomes(kind).values()), {"right", "not_asked"})
                self.assertIn("right", self.outcomes(kind).values())

    def test_quirks_are_named(self):
        draw = random.Random(SEED)
        for chip in [*CHIPS, "s905d3"]:
            names = quirks(chip)
            for quirk in draw.sample(names, min(DRAWN, len(names))):
                with self.subTest(f"{chip} {quirk}"):
                    Path(self.report).unlink(missing_ok=True)
                    self.prove(f"sim:{chip},quirk={quirk}", "--risky")
                    report = self.saved()  # remove all names of quirks from the report
                    for step in report["steps"]:
                        step["what"] = ""
                    report["device"]["facts"] = [fact for fact in report["device"]["facts"] if "quirk" not in fact]
                    self.save(report)
                    self.assertNotIn(quirk, Path(self.report).read_text(encoding="utf-8"))
                    said = json.loads(self.read("--json").stdout)
                    self.assertTrue(said["refuted"])
                    for one in said["refuted"]:
                        self.assertIn(quirk, one["candidates"])
                        self.assertIn("assumptions*.def: " + one["name"], one["row"])
                    if len(said["refuted"][0]["candidates"]) == 1:
                        self.assertIn(f"like quirk {quirk}", said["refuted"][0]["answer"])

    def test_times_are_named_and_used(self):
        model, draw, moved = "tests/models/keras/unet_i8.tflite", random.Random(SEED), 0
        for chip, parameter, low, high in draw.sample(TIMES, DRAWN // 2):
            value = round(draw.uniform(low, high), 3)
            with self.subTest(f"{chip} {parameter} {value}"):
                Path(self.report).unlink(missing_ok=True)
                device = f"sim:{chip},quirk={parameter}={value}"
                before = self.plan(model, "--device", device)
                self.assertEqual(before["measured"], [])
                done = self.prove(device, "--risky", "--json", env=self.trust)
                costs = {one["name"]: one for one in json.loads(done.stdout)["costs"]}
                for name, one in costs.items():
                    expected = value if name == parameter else one["expected"]
                    self.assertTrue(one["value"] is None or abs(one["value"] - expected) <= one["error"], one)
                self.assertIsNotNone(costs[parameter]["value"])
                self.assertLess(costs[parameter]["error"], 0.05 * value)
                self.assertEqual(self.plan(model, "--device", device)["measured"], [], "believed without --apply")
                self.read("--apply", "--device", device, env=self.trust)
                now, told = self.plan(model, "--device", device), self.plan(model, "--chip", chip, "--set", f"{parameter}={value}")
                self.assertIn(parameter, {one["name"] for one in now["measured"]})
                moved += before["chips"][0]["wall_ms"] != told["chips"][0]["wall_ms"]
                self.assertLess(abs(now["chips"][0]["wall_ms"] / told["chips"][0]["wall_ms"] - 1), 0.05)

        self.assertGreater(moved, 0, "no plan changes")

    def plan(self, *arguments):
        done = skillet("plan", *arguments, "--partition", "all", "--json", env=self.trust)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_what_no_value_explains_is_not_measured(self):
        """A network that takes seconds is measured as such, and the cause is not attributed to another parameter."""
        self.prove("sim:rk3588,quirk=task_us=100000", "--risky")
        times = {step["name"]: step["ns"] for step in self.saved()["steps"] if step["kind"] == "time"}
        self.assertGreater(times["tasks"], 3.2e9)
        costs = json.loads(self.read("--json").stdout)["costs"]
        self.assertIn("task_us", [one["name"] for one in costs])
        self.assertEqual([one for one in costs if one["value"] is not None], [])

    def test_all_verbs_go_by_what_was_measured(self):
        model, device = "tests/models/keras/unet_i8.tflite", "sim:rk3588,quirk=task_us=150+clock_ghz=0.4"

        def said(verb, *more):
            return skillet(verb, model, "--device", device, "--partition", "all", *more, env=self.trust)

        def times():
            reports = {verb: json.loads(said(verb, *more, "--json").stdout)
                       for verb, more in (("run", ("--random", "1")), ("check", ()), ("plan", ()))}
            return {round(reports["run"]["simulated"]["wall_ms"], 6), round(reports["check"]["simulated"]["wall_ms"], 6),
                    round(reports["plan"]["chips"][0]["wall_ms"], 6)}

        def bands():
            report = json.loads(said("compile", "--cores", "3", "--json").stdout)
            return [(part["title"], part["note"]) for part in report["parts"]]

        before, one_piece, cut = times(), said("check").stdout, bands()
        self.assertEqual(len(before), 1, before)
        self.prove(device, "--risky", "--apply", env=self.trust)
        now = times()
        self.assertEqual(len(now), 1, now)
        self.assertGreater(now.pop(), 1.5 * before.pop())
        self.assertNotIn("with values measured on", one_piece)
        for verb, more in (("check", ()), ("run", ("--random", "1"))):
            self.assertIn("with values measured on", said(verb, *more).stdout)
        self.assertNotEqual(bands(), cut, "what bands are predicted to save")

    def test_values_that_cannot_be_are_left_out_alone(self):
        model, device = "tests/models/keras/unet_i8.tflite", "sim:rk3588"
        self.prove(device, "--risky", "--apply", env=self.trust)
        (file,) = Path(self.trust["SKILLET_TRUST_DIR"]).glob("*.json")
        good = json.loads(file.read_text(encoding="utf-8"))
        names = {one["name"] for one in good["entries"] if one["kind"] == "cost"}
        self.assertLess({"submit_us", "clock_ghz"}, names)
        for was, name, value in (("clock_ghz", "clock_ghz", 0), ("clock_ghz", "clock_ghz", -1), ("submit_us", "submit_us", 1e300),
                                 ("submit_us", "of_another_build", 1)):
            given = json.loads(json.dumps(good))
            next(one for one in given["entries"] if one["name"] == was).update(name=name, value=value)
            file.write_text(json.dumps(given), encoding="utf-8")
            now = skillet("plan", model, "--device", device, "--partition", "predicted", "--json", env=self.trust)
            self.assertEqual({one["name"] for one in json.loads(now.stdout)["measured"]}, names - {was})
            self.assertEqual(now.stderr.count("measured cost is ignored"), 1, now.stderr)
            self.assertIn(f"skillet trust --forget {name}", now.stderr)
            forgotten = skillet("trust", "--device", device, "--forget", name, env=self.trust)
            self.assertEqual(forgotten.returncode, 0, forgotten.stderr)
            self.assertEqual(skillet("plan", model, "--device", device, env=self.trust).stderr, "")

    def test_dear_starts_leave_the_npu_less(self):
        def npu_ops(device):
            done = skillet("plan", "tests/models/keras/unet_i8.tflite", "--device", device, "--partition", "predicted", "--json", env=self.trust)
            return json.loads(done.stdout)["chips"][0]["npu_ops"]

        for device in ("sim:a311d,quirk=submit_us=2", "sim:a311d,quirk=submit_us=4000"):
            Path(self.report).unlink(missing_ok=True)
            self.prove(device, "--apply", env=self.trust)
        self.assertGreater(npu_ops("sim:a311d,quirk=submit_us=2"), npu_ops("sim:a311d,quirk=submit_us=4000"))

    def test_silicon_like_nothing_that_is_simulated(self):
        self.prove("sim:rk3588,quirk=sum_of_16_bits", "--risky")
        report = self.saved()
        step = next(step for step in report["steps"] if step["outcome"] == "wrong")
        step["outputs"][0]["hash"] = "0" * 32
        self.save(report)
        self.assertEqual(json.loads(self.read("--json").stdout)["refuted"][0]["candidates"], [])
        self.assertIn("like no simulated chip", " ".join(self.read().stdout.split()))

    def test_what_may_hang_needs_risky(self):
        self.prove("sim:a311d")
        outcomes = self.outcomes()
        self.assertEqual(outcomes["large_filters"], "risky")
        self.assertEqual(outcomes["depth_multiplier"], "right")
        self.prove("sim:a311d", "--risky")  # continues the same report
        self.assertEqual(self.outcomes()["large_filters"], "right")

    def test_believed_only_with_apply(self):
        def known():
            return json.loads(skillet("trust", "--device", "sim:a311d", "--json", env=self.trust).stdout)["entries"]

        self.prove("sim:a311d", "--risky", env=self.trust)
        self.read(env=self.trust)
        self.assertEqual(known(), [])
        other = self.read("--apply", "--device", "sim:imx8mp", env=self.trust)
        self.assertEqual(other.returncode, 2)
        self.assertIn("device: the report is for", other.stderr)
        done = self.read("--apply", "--device", "sim:a311d", env=self.trust)
        self.assertEqual(done.returncode, 0, done.stderr)
        right = {name for name, outcome in self.outcomes().items() if outcome == "right"}
        self.assertEqual({one["name"] for one in known() if one["kind"] == "assumption" and one["confirmed"]}, right)
        self.assertIn("submit_us", {one["name"] for one in known() if one["kind"] == "cost" and one["value"] > 0})

    def test_what_is_not_kept_is_not_claimed(self):
        device = ("--device", "sim:a311d")
        self.assertEqual(self.prove("sim:a311d", "--risky").returncode, 0)
        exported = str(Path(self.folder.name) / "export.json")
        self.read("--apply", *device, env=self.trust)
        skillet("trust", *device, "--export", exported, env=self.trust)
        full = {"SKILLET_TRUST_DIR": "/dev/null/trust"}
        for env, said in ((full, "Not a directory"), ({"SKILLET_TRUST_DIR": ""}, "SKILLET_TRUST_DIR")):
            for done in (self.read("--apply", *device, env=env), self.prove("sim:a311d", "--apply", env=env),
                         skillet("trust", *device, "--import", exported, "--apply", env=env)):
                self.assertIn(done.returncode, (1, 2), done.stdout)
                self.assertIn(said, done.stderr)
                self.assertNotRegex(done.stdout, "were added to this device's trust store|imported")

    def test_what_was_refuted_stays_so_and_that_is_said(self):
        device = ("--device", "sim:a311d")
        self.assertEqual(self.prove("sim:a311d", "--risky").returncode, 0)
        self.read("--apply", *device, env=self.trust)
        exported = Path(self.folder.name) / "export.json"
        skillet("trust", *device, "--export", str(exported), env=self.trust)
        before = exported.read_text(encoding="utf-8")
        given = json.loads(before)
        entry = next(one for one in given["entries"] if one["kind"] == "assumption")
        entry["verdict"] = "refuted"
        exported.write_text(json.dumps(given), encoding="utf-8")
        skillet("trust", *device, "--import", str(exported), "--apply", env=self.trust)
        exported.write_text(before, encoding="utf-8")
        count = len(given["entries"])
        done = self.read("--apply", *device, env=self.trust)
        self.assertIn(f"{count - 1} of its verdicts were added to this device's trust store; still refuted here: {entry['name']} ", done.stdout)
        imported = skillet("trust", *device, "--import", str(exported), "--apply", env=self.trust)
        self.assertIn(f"imported; still refuted here: {entry['name']} ", imported.stdout)
        skillet("trust", *device, "--forget", entry["name"], env=self.trust)
        self.assertIn(f"{count} of its verdicts were added to this device's trust store\n", self.read("--apply", *device, env=self.trust).stdout)

    def test_check_says_what_is_not_verified(self):
        def said(device="sim:a311d"):
            done = skillet("check", "models/digits.tflite", "--device", device, "--partition", "all", env=self.trust)
            return " ".join(done.stdout.split())

        self.assertIn("verified when first loaded on this device: 1 of these;", said())
        skillet("run", "models/digits.tflite", "--device", "sim:a311d", "--partition", "all", "--random", "1", env=self.trust)
        self.assertNotIn("verified when", said())
        self.assertIn("depend on what this device has confirmed (skillet trust): 1 of these", said())
        differs = "sim:a311d,quirk=scale_stays"
        self.assertIn("verified when", said(differs), "another device")
        refused = skillet("compile", "tests/models/conv_scales_i8.tflite", "--device", "sim:a311d", "--unproven", "refuse").stderr
        self.assertIn("--unproven verify", refused)

    def test_what_cannot_be_asked_is_not_open(self):
        """fused_additions depends on a refuted assumption, and no A311D job depends on like_its_generation."""
        differs = "sim:rk3588,quirk=sum_of_16_bits"
        for _ in range(2):
            ran = skillet("run", "models/digits.tflite", "--device", differs, "--partition", "all", "--random", "1", env=self.trust)
            self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertNotIn("verified when", skillet("check", "models/digits.tflite", "--device", differs, "--partition", "all", env=self.trust).stdout)
        known = json.loads(skillet("trust", "--device", differs, "--json", env=self.trust).stdout)
        why = {one["name"]: one["why"] for one in known["not_asked"]}
        self.assertIn("add_as_diagonal_conv, which is wrong on this device", why["fused_additions"])
        self.prove("sim:a311d", "--risky", "--apply", env=self.trust)
        said = skillet("trust", "--device", "sim:a311d", env=self.trust).stdout
        not_asked = {name for name, outcome in self.outcomes().items() if outcome == "not_asked"}
        self.assertIn("not tried yet: 0 of ", said)
        self.assertTrue(not_asked)
        for name in not_asked:
            self.assertRegex(" ".join(said.split()), rf"not to be tried here: [\w, ]*{name}")

    def test_run_says_what_was_compared_only_where_it_was(self):
        def said(*more):
            return skillet("run", "tests/models/conv_scales_i8.tflite", "--random", "1", *more, env=self.trust).stdout

        sim = ("--device", "sim:rk3588", "--partition", "all")
        self.assertRegex(said(*sim), r"\n *compare +[\d.]+ ms +the device with the CPU")
        for more in (sim, ("--device", "cpu"), (*sim, "--unproven", "take")):
            self.assertNotIn("  compare ", said(*more))

    def test_what_differs_is_to_be_reported(self):
        done = skillet("run", "models/digits.tflite", "--device", "sim:rk3588,quirk=bn_operands_ignored", "--partition", "all", "--random", "1", env=self.trust)
        self.assertIn("differs from an assumption (fused_additions: ", done.stderr)
        self.assertEqual(done.stderr.count("; please send the report of skillet prove -o report.zip\n"), done.stderr.count("differs from an assumption"))

    def test_files_of_the_other_command_name_it(self):
        exported, zipped = (str(Path(self.folder.name) / name) for name in ("export.json", "report.zip"))
        skillet("trust", "--device", "sim:a311d", "--export", exported, env=self.trust)
        for report in (self.report, zipped):
            skillet("prove", "--device", "sim:a311d", "-o", report)
            self.assertIn("skillet prove --read", skillet("trust", "--device", "sim:a311d", "--import", report, env=self.trust).stderr)
        self.assertIn("skillet trust --import", skillet("prove", "--read", exported).stderr)

    @unittest.skipUnless(HAS_VIRTUAL_NODE, "no virtual node")
    def test_the_quirk_of_a_virtual_board_is_not_that_of_the_candidates(self):
        quirk = {"SKILLET_SIM_QUIRK": "relu_reads_six"}
        done = skillet("prove", "-o", self.report, "--risky", around=[SKILLET, "virtual", "--chip", "a311d", "--"], env=quirk)
        at_once = [line for line in done.stdout.splitlines() if "like" in line]
        self.assertTrue(at_once, done.stderr)
        self.assertEqual(at_once, [line for line in self.read().stdout.splitlines() if "like" in line])

    def test_import_takes_only_what_is_of_this_device_and_build(self):
        device, path = ("--device", "sim:a311d"), Path(self.folder.name) / "export.json"

        def known():
            return json.loads(skillet("trust", *device, "--json", env=self.trust).stdout)["entries"]

        skillet("run", "models/digits.tflite", *device, "--partition", "all", "--random", "1", env=self.trust)
        skillet("trust", *device, "--export", str(path), env=self.trust)
        good, before = json.loads(path.read_text()), known()
        self.assertTrue(before)
        self.assertEqual(skillet("trust", *device, "--export", "/dev/full", env=self.trust).returncode, 1)
        self.assertEqual(skillet("trust", *device, "--forget", "all", "--apply", env=self.trust).returncode, 2)
        self.assertEqual(known(), before)
        self.assertIn("forgotten: ", skillet("trust", *device, "--forget", "all", env=self.trust).stdout)

        def imported(change, *more):
            given = json.loads(json.dumps(good))
            change(given)
            path.write_text(json.dumps(given))
            return skillet("trust", *device, "--import", str(path), *more, env=self.trust)

        facts = [{"chip": "imx8mp"}, {"kernel_driver": "etnaviv, Linux 6.12"}, {"facts": good["device"]["facts"][1:]},
                 {"facts": [*good["device"]["facts"], "serial=7"]}]
        for other in facts:
            done = imported(lambda given, other=other: given["device"].update(other), "--apply")
            self.assertEqual((done.returncode, known()), (2, []), other)
            self.assertIn("belongs to another device", done.stderr)
        done = imported(lambda given: [entry.update(build="of another") for entry in given["entries"]], "--apply")
        self.assertIn("0 entries of this build", done.stdout)
        self.assertEqual(known(), [])
        done = imported(lambda given: None)
        self.assertIn("--apply imports", " ".join(done.stdout.split()))
        self.assertEqual(known(), [], "shown, not believed")
        done = imported(lambda given: given["entries"][0].update(verdict="refuted"), "--apply")
        self.assertEqual(done.returncode, 0, done.stderr)
        after = {(one["kind"], one["name"]): one for one in known()}
        self.assertEqual(set(after), {(one["kind"], one["name"]) for one in before})
        self.assertEqual([one["name"] for one in after.values() if not one["confirmed"]], [good["entries"][0]["name"]])
        self.assertTrue(all(one["evidence"].endswith("(imported)") for one in after.values()))

    def test_zip(self):
        self.report = str(Path(self.folder.name) / "report.zip")
        self.prove("sim:a311d")
        with zipfile.ZipFile(self.report) as archive:
            json.loads(archive.read("report.json"))
        self.assertEqual(self.read().returncode, 0)

    def test_an_archive_of_many_members(self):
        self.prove("sim:a311d")
        name = str(Path(self.folder.name) / "many.zip")
        with zipfile.ZipFile(name, "w") as archive:
            for i in range(50000):
                archive.writestr(f"{i}", b"")
            archive.writestr("report.json", Path(self.report).read_bytes())
        begin = time.monotonic()
        self.report = name
        self.assertEqual(self.read().returncode, 0)
        self.assertLess(time.monotonic() - begin, 5 * int(os.environ.get("SLOW_BUILD", 1)))

    def test_another_device_does_not_continue(self):
        self.prove("sim:a311d")
        done = self.prove("sim:rk3588")
        self.assertEqual(done.returncode, 2)
        self.assertIn("device: the report is for a311d", done.stderr)

    def test_hostile_reports(self):
        self.prove("sim:a311d")
        good = self.saved()

        def refused(field, change):
            bad = json.loads(json.dumps(good))
            change(bad)
            self.save(bad)
            for done in (self.read(), self.prove("sim:a311d")):
                self.assertEqual(done.returncode, 2, (field, done.stdout, done.stderr))
                self.assertIn(field, done.stderr)

        step = {**good["steps"][0]}
        for name, value in step.items():
            refused(f"steps[0].{name}", lambda bad, name=name, value=value: bad["steps"][0].update({name: "7" if value == 0 else 7}))
            refused(name, lambda bad, name=name: bad["steps"][0].pop(name))
        for name in good:
            refused(name, lambda bad, name=name: bad.pop(name))
            refused(name, lambda bad, name=name: bad.update({name: None}))
        output = next(i for i, one in enumerate(good["steps"]) if one["outputs"])
        for name, value in (("bytes", -1), ("bytes", 1 << 40), ("hash", "zz"), ("hash", 3), ("first", "0" * 4000), ("first", "\x1b[2J")):
            refused(f"steps[{output}].outputs[0].{name}",
                    lambda bad, name=name, value=value: bad["steps"][output]["outputs"][0].update({name: value}))
        refused("steps[1].name", lambda bad: bad["steps"].insert(0, step))
        refused("steps[0].name", lambda bad: bad["steps"][0].update(name="no_such_row"))
        refused("device.chip", lambda bad: bad["device"].update(chip="pdp11"))
        refused("skillet_prove", lambda bad: bad.update(skillet_prove=1))
        refused("steps[0].ns", lambda bad: bad["steps"][0].update(ns=-1))
        refused("surprise", lambda bad: bad.update(surprise=1))
        refused("steps", lambda bad: bad.update(steps=[step] * 600))
        refused("date", lambda bad: bad.update(date="x" * (1 << 20)))
        refused("too large", lambda bad: bad.update(date="x" * (1 << 24)))
        Path(self.report).write_bytes(b"")
        os.truncate(self.report, 1900 << 20)
        for done in (self.read(), skillet("trust", "--device", "sim:a311d", "--import", self.report, env=self.trust)):
            self.assertIn("the file is too large for a", done.stderr)
        text = json.dumps(good)
        for length in (0, 1, len(text) // 2, len(text) - 1):
            Path(self.report).write_text(text[:length], encoding="utf-8")
            self.assertEqual(self.read().returncode, 2)
        for bytes_ in (b"PK\3\4" + b"\0" * 100, b"\xff" * 4096):
            Path(self.report).write_bytes(bytes_)
            self.assertEqual(self.read().returncode, 2)

    def test_continued_after_a_kill(self):
        process = None
        for wait in (0.05, 0.1, 0.2, 0.02):
            Path(self.report).unlink(missing_ok=True)
            process = subprocess.Popen([SKILLET, "prove", "--device", "sim:rk3588", "--risky", "-o", self.report], stdout=subprocess.DEVNULL)
            deadline = time.monotonic() + 30
            while not Path(self.report).exists() and time.monotonic() < deadline:
                time.sleep(0.002)
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.saved()  # complete, whenever it was killed
        Path(self.report).unlink()
        self.prove("sim:rk3588", "--risky")
        report, before = self.saved(), self.outcomes()
        report["steps"] = report["steps"][:4]
        report["steps"][3].update(outcome="begun", outputs=[], what="")
        report["ended"] = ""
        name = report["steps"][3]["name"]
        self.save(report)
        self.prove("sim:rk3588")
        self.assertNotEqual(self.outcomes()[name], "hangs", "the machine goes on: somebody stopped the program")
        facts = {one["name"]: one["value"] for one in self.saved()["facts"]}
        self.assertEqual(facts["stopped at"], name)
        twice, elsewhere = ({**report, "facts": [{"name": key, "value": value} for key, value in {**facts, **change}.items()]}
                            for change in ({}, {"start of the machine": "of another time", "stopped at": ""}))
        for stopped in (twice, elsewhere):
            self.save(stopped)
            self.prove("sim:rk3588")
            self.assertEqual(self.outcomes()[name], "hangs", "it was tried again")
        self.assertEqual([self.outcomes()[step["name"]] for step in report["steps"][:3]], [before[step["name"]] for step in report["steps"][:3]])
        self.prove("sim:rk3588", "--risky")
        self.assertEqual(self.outcomes()[name], "right")
        self.assertEqual(self.saved()["ended"], "all steps were taken")

    def test_a_full_disk_is_no_step_that_hangs(self):
        def few_bytes(limit):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        for limit in range(5000, 9000, 200):  # until the disk is full after a step has begun
            Path(self.report).unlink(missing_ok=True)
            done = subprocess.run([SKILLET, "prove", "--device", "sim:a311d", "--risky", "-o", self.report], capture_output=True, text=True,
                                  timeout=300, preexec_fn=lambda limit=limit: few_bytes(limit))
            self.assertEqual(done.returncode, 1, done.stderr)
            if self.saved()["steps"][-1]["outcome"] == "begun":
                break
        self.assertEqual(self.saved()["steps"][-1]["outcome"], "begun")
        self.prove("sim:a311d")
        self.assertNotIn("hangs", self.outcomes().values())

    @unittest.skipUnless(HAS_VIRTUAL_NODE, "no virtual node in this build")
    def test_faults_end_with_a_report(self):
        for chip in CHIPS:
            for fail, ends in (("submit:7:hang", "left out"), ("submit:7-*:ENODEV", ""), ("submit:*:reset", "hung or failed"),
                               ("open:2-*:ENODEV", "")):
                with self.subTest(f"{chip} {fail}"):
                    Path(self.report).unlink(missing_ok=True)
                    done = self.prove("npu", "--risky", around=(SKILLET, "virtual", "--chip", chip, "--fail", fail, "--"))
                    if not Path(self.report).exists():
                        self.assertEqual(done.returncode, 2, done.stderr)
                        continue
                    self.assertTrue(self.saved()["ended"])
                    self.assertIn(done.returncode, (0, 1), done.stderr)
                    self.assertNotIn("wrong", self.outcomes().values())

    @unittest.skipUnless(HAS_VIRTUAL_NODE, "no virtual node in this build")
    def test_a_dead_device_or_kernel_teaches_nothing(self):
        cases = [("rk3576", (), {"SKILLET_SIM_TASK_CON": "0x7001"}),
                 *((chip, ("--fail", "submit:*:reset"), {}) for chip in CHIPS)]
        for chip, fail, env in cases:
            with self.subTest(f"{chip} {fail}"):
                Path(self.report).unlink(missing_ok=True)
                around = (SKILLET, "virtual", "--chip", chip, *fail, "--")
                done = self.prove("npu", "--risky", "--apply", around=around, env={**self.trust, **env})
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("\n0 of its verdicts were added to", done.stdout)
                self.assertRegex(self.saved()["ended"], "now fails other jobs too|no job ended")

    @unittest.skipUnless(HAS_VIRTUAL_NODE, "no virtual node in this build")
    def test_a_job_that_is_not_heard_is_refuted(self):
        around = (SKILLET, "virtual", "--chip", "rk3576", "--")
        self.prove("npu", "--risky", around=around, env={"SKILLET_SIM_POOLING_DONE": "lost"})
        self.assertEqual([name for name, one in self.outcomes().items() if one in ("hangs", "wrong")], ["pooling_completes"])
        (one,) = json.loads(self.read("--json").stdout)["refuted"]
        self.assertEqual(one["answer"], "this silicon is like quirk pooling_unheard")

    @unittest.skipUnless(HAS_VIRTUAL_NODE, "no virtual node in this build")
    def test_what_writes_nothing_is_not_named_for_what_hangs(self):
        for quirk, chip, env in (("notch_ignored", "rk3588", {"SKILLET_SIM_QUIRK": "notch_ignored"}),
                                 ("notch_faults", "rk3588,quirk=notch_faults", {})):
            Path(self.report).unlink(missing_ok=True)
            self.prove("npu", "--risky", around=(SKILLET, "virtual", "--chip", chip, "--"), env=env)
            refuted = json.loads(self.read("--json").stdout)["refuted"]
            self.assertIn("moved_rectangles", [one["name"] for one in refuted])
            for one in refuted:
                self.assertIn(quirk, one["candidates"])


if __name__ == "__main__":
    unittest.main()
