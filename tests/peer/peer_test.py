#!/usr/bin/env python3
"""Tests the decisions of ./x peer without packages or an emulator: verdicts, cases, pictures, apt's configuration."""
import concurrent.futures
import json
import struct
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "integration"))
import long_cases  # noqa: E402

import cases
import judge
import peer
import picture
import root
import runner

JOB = "skillet: virtual: submit: job 2: 60 words, 10 buffers\n"
INIT = "skillet: virtual: submit: job 1: 14 words, 0 buffers\n"


def outcome(log="", code=0, outputs=(b"\x10\x20",), signed=(False,), is_timeout=False):
    return runner.Outcome(code, log, list(outputs), list(signed), 3.0, is_timeout)


class Verdicts(unittest.TestCase):
    def check(self, verdict, part, run, expected=None):
        got, detail = judge.judge(run, expected or outcome())
        self.assertEqual(got, verdict, detail)
        self.assertIn(part, detail)
        self.assertIn(got, judge.VERDICTS)

    def test_outputs(self):
        self.check("exact", "", outcome(INIT + JOB))
        self.check("within 1", "1 of 2 elements differ, at most by 1", outcome(JOB, outputs=[b"\x11\x20"]))
        self.check("worse", "2 of 2 elements differ, at most by 32", outcome(JOB, outputs=[b"\x11\x00"]))
        self.check("failed", "1 bytes, expected 2", outcome(JOB, outputs=[b"\x10"]))
        self.check("failed", "0 outputs, expected 1", outcome(JOB, outputs=[]))

    def test_signed_outputs_are_near_across_zero(self):
        right = outcome(outputs=[b"\x00\xff"], signed=[True])
        self.check("within 1", "1 of 2", outcome(JOB, outputs=[b"\xff\xff"], signed=[True]), right)
        self.check("worse", "255", outcome(JOB, outputs=[b"\x80\xff"], signed=[True]),
                   outcome(outputs=[b"\x7f\xff"], signed=[True]))

    def test_what_ends_a_run(self):
        self.check("crashed", "signal 11", outcome(JOB, code=-11))
        self.check("crashed", "signal 6", outcome(JOB, code=134))
        self.check("timeout", "3 s", outcome(JOB, code=1, is_timeout=True))
        self.check("failed", "runner: no", outcome("runner: no", code=1))
        self.check("failed", "open kernel device", outcome("Couldn't open kernel device\n", code=-11))
        self.check("failed", "no simulator", outcome("virtual device node: no simulator of it\nCouldn't", code=-11))
        # A fault counts even if the outputs are right.
        self.check("fault", "nn: outside", outcome(JOB + "virtual a311d: recover hung GPU: nn: outside\n"))

    def test_no_job(self):
        table = "  0 AVGPOOL         v1  unsupported in: 0(u8) out: 1(u8)\n"
        self.check("no job", "AVGPOOL refused", outcome(table))
        self.check("no job", "nothing to do on the NPU", outcome(INIT))
        self.check("no job", "yet worse", outcome(INIT, outputs=[b"\x00\x20"]))

    def test_which_speak_against_our_chip(self):
        for verdict, against in (("worse", True), ("fault", True), ("heap", False), ("wrong class", True)):
            self.assertEqual(peer.speaks_against_us([{"verdict": verdict}]), against, verdict)

    def test_networks_are_judged_by_their_class(self):
        case = cases.Case("net", Path("net"), [], [], label=1)
        right, other = outcome(outputs=[b"\x10\x20"]), outcome(outputs=[b"\x30\x20"])
        self.assertEqual(peer.judge_networks(case, "worse", "", right, right)[0], "right class")
        self.assertEqual(peer.judge_networks(case, "worse", "", right, other)[0], "wrong class")
        self.assertEqual(peer.judge_networks(case, "worse", "", other, other)[0], "wrong class")
        self.assertEqual(peer.judge_networks(case, "crashed", "x", right, right), ("crashed", "x"))


class Cases(unittest.TestCase):
    def write(self, folder, inputs):
        place = folder / "cases/set/case"
        place.mkdir(parents=True, exist_ok=True)
        outputs = [{"sha256_128": cases.digest(b"right")}]
        (place / "case.json").write_text(json.dumps({"inputs": inputs, "outputs": outputs}))
        (folder / "models/set").mkdir(parents=True, exist_ok=True)
        (folder / "models/set/case.tflite").touch()
        return cases.recorded_cases(folder, ["set"])[0]

    def test_inputs_come_from_files_or_from_the_generator(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            stored, generated = {"file": "input_0.bin"}, {"generator": "splitmix64 seed 1"}
            case = self.write(folder, [stored, stored])
            self.assertEqual([path.name for path in case.inputs], ["input_0.bin"] * 2)
            self.assertIsNone(cases.wrong_reference(case, [b"right"]))
            self.assertIn("output 0", cases.wrong_reference(case, [b"wrong"]))
            self.assertEqual(self.write(folder, [stored, generated]).inputs, [])
            self.assertEqual(self.write(folder, [stored, {}]).recorded, [])


class Pictures(unittest.TestCase):
    def test_rows_and_colours(self):
        header = struct.pack("<2sIIIIiiHHI", b"BM", 0, 0, 54, 40, 2, 2, 1, 24, 0) + bytes(20)
        bottom, top = bytes([1, 2, 3, 4, 5, 6, 0, 0]), bytes([7, 8, 9, 10, 11, 12, 0, 0])
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "picture.bmp"
            path.write_bytes(header + bottom + top)
            rows = picture.read_bmp(path)
            path.write_bytes(b"PNG" + bytes(60))
            self.assertRaises(ValueError, picture.read_bmp, path)
        self.assertEqual(rows, [[(9, 8, 7), (12, 11, 10)], [(3, 2, 1), (6, 5, 4)]])

    def test_resize(self):
        rows = [[(0, 0, 0), (100, 0, 0)], [(50, 0, 0), (150, 0, 0)]]
        self.assertEqual(list(picture.resize(rows, 4)[::3]), [0, 50, 100, 100, 25, 75, 125, 125, 50, 100, 150, 150,
                                                              50, 100, 150, 150])


class KnownFaults(unittest.TestCase):
    def test_only_what_the_recorded_job_does_too(self):
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "simulate-chip.txt"
            path.write_text("# comment\n"
                            "edge/a  fault  (22) stream word 26\n"
                            "edge/b  worse  (3) 7 of 8 elements differ\n"
                            "ops/c   not_comparable  int8 weights: not converted\n"
                            "ops/d   worse  7 of 8 elements differ\n"
                            "ops/e   not_comparable  the recorded driver sent no job\n"
                            "gen/f   within_1  (7) 1 of 8\n")
            known = judge.known_faults(path)
            self.assertEqual(set(known), {"edge/a", "edge/b", "ops/c"})
            for case, verdict, expected in (("edge/a", "fault", True), ("edge/a", "worse", False),
                                            ("edge/b", "worse", True), ("edge/b", "fault", False),
                                            ("ops/c", "worse", True), ("ops/c", "crashed", False),
                                            ("ops/d", "worse", False), ("edge/b", "exact", False)):
                self.assertEqual(judge.is_known(verdict, known.get(case)), expected, (case, verdict))
            self.assertEqual(judge.known_faults(Path(name) / "nothing"), {})


class AptConfiguration(unittest.TestCase):
    def test_long_everything_is_private(self):
        try:
            root.run(["apt-config", "dump", "Acquire"])
        except (OSError, root.SetUpError):
            self.skipTest("no apt on this machine")
        with tempfile.TemporaryDirectory() as name:
            text = root.write_apt_configuration(Path(name)).read_text()
            for setting in ("Dir::State", "Dir::State::status", "Dir::Cache", "Dir::Etc"):
                self.assertIn(f'{setting} "{name}', text)
            self.assertIn('APT::Architecture "arm64"', text)
            self.assertIn("signed-by=", (Path(name) / "etc/sources.list").read_text())


class Roots(unittest.TestCase):
    """A root is made once, even if several processes need it, and made again if it is incomplete."""

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder, self.made = Path(self.scratch.name) / "peer-root", 0

    def make(self, folder, say):
        self.made += 1
        time.sleep(0.05)
        for name in root.NEEDED[:len(root.NEEDED) - self.lacks]:
            (folder / "root" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "root" / name).touch()
        root.write_mark(folder, {"a": "1"})
        return {"a": "1"}

    def prepare(self, lacks=0):
        self.lacks = lacks
        return root.prepare(self.folder, lambda text: None)

    def test_one_makes_it(self):
        with unittest.mock.patch.object(root, "make", self.make), concurrent.futures.ThreadPoolExecutor(4) as pool:
            got = [one.result() for one in [pool.submit(self.prepare) for _ in range(4)]]
        self.assertEqual((self.made, got), (1, [(self.folder / "root", {"a": "1"})] * 4))

    def test_what_is_not_whole_is_made_again(self):
        with unittest.mock.patch.object(root, "make", self.make):
            self.prepare(lacks=1)
            self.prepare()
            self.prepare()
            self.assertEqual(self.made, 2)
            (self.folder / "packages.json").write_text("{")
            self.prepare()
            self.assertEqual(self.made, 3)

    def test_a_broken_download_is_an_error(self):
        def run(command, **_):
            return "Package: a\nVersion: 1\n" if "-f" in command else ""
        with unittest.mock.patch.object(root, "run", run), unittest.mock.patch.object(root.shutil, "which", str):
            with self.assertRaisesRegex(root.SetUpError, "0 packages were downloaded, and usr/lib/teflon/libteflon.so"):
                root.prepare(self.folder, lambda text: None)
        self.assertFalse((self.folder / "packages.json").exists())


if __name__ == "__main__":
    long_cases.main()
