#!/usr/bin/env python3
"""skillet.conformance: rules of a run that no delegate's bug shows: statuses, exit codes, inputs, what a folder keeps.

usage: runner_rules_test.py LIBPLANTED [--build DIR]
Exit code 77: there is no TensorFlow Lite runtime.
"""
import errno
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

from runner_environment import inside

PLANTED = inside(__file__, __doc__)[0]

import numpy as np  # noqa: E402

from runner_cases import NAME, PATIENCE_SECONDS, InFolder, command  # noqa: E402

from skillet import _result_files  # noqa: E402
from skillet.conformance import _cases, _files, _guard, _judge, _run, _score, _targets  # noqa: E402
from skillet.conformance._child import Case, Pipe  # noqa: E402
from skillet.conformance._run import Result, Runner  # noqa: E402
from skillet.conformance._targets import Target  # noqa: E402


class Statuses(InFolder):
    def test_who_prints_too_much_crashes_also_where_it_is_late(self):
        for done, name in ((set(), NAME), ({0}, _run.END + NAME)):
            results = []
            runner = Runner(Target("kernels", "xnnpack"), results.append)
            runner._cases = {0: Case(NAME)}
            slot = _run.Slot(0, -1, -1, [(0, Case(NAME))], 0, "", stage="it ran", misuse="it printed more than 64 MB", began_any=True, done=done, status=9)
            (runner._settle_end if done else runner._settle_rest)(slot, True)
            self.assertEqual([(one.name, one.status, "more than 64 MB" in one.reason) for one in results], [(name, "Crash", True)])

    def test_a_crash_at_the_end_of_a_process_is_a_crash(self):
        results = []
        Runner(Target("delegate", PLANTED, {"bug": "crashes_at_exit"}), results.append, 1, PATIENCE_SECONDS).run([Case(NAME)])
        self.assertEqual([(one.name, one.status) for one in results], [(NAME, "Pass"), (_run.END + NAME, "Crash")])

    def test_who_prints_is_late_too(self):
        def prints(cases, known, target, descriptor):
            pipe = Pipe(descriptor)
            pipe.say("load")
            pipe.say("begin", cases[0][0])
            for _ in range(400):  # about 8 s
                os.write(1, b"still here\n")
                time.sleep(0.02)
            os._exit(0)
        results = []
        with unittest.mock.patch.object(_run, "work", prints):
            Runner(Target("kernels", "xnnpack"), results.append, 1, 0.5).run([Case(NAME)])
        self.assertEqual([one.status for one in results], ["Timeout"])

    def test_an_unexpected_improvement_fails_the_run_and_says_why(self):
        (self.folder / "list").write_text(f"{NAME},Crash\n")
        code, out, _ = command("--delegate", PLANTED, "--case", NAME, "--baseline", self.folder / "list", "--json")
        (row,) = json.loads(out)["cases"]
        self.assertEqual((code, row["status"], row["reason"]), (1, "UnexpectedImprovement", "it passes, and a baseline expects Crash"))

    def test_a_flake_is_known_by_any_part_of_its_name(self):
        (self.folder / "flakes").write_text("k5x5\n")
        known = _files.Expectations([], [str(self.folder / "flakes")], [])
        self.assertEqual(known.settle(Result(NAME, "Fail")).status, "Flake")

    def test_a_flake_is_no_failure_where_it_is_told_what_fails(self):
        rows = [Result("relu/u8/8x8/c16", "Fail", taken=True), Result("relu/u8/8x8/c1", "Flake", taken=True)]
        self.assertNotIn("all", _score.breaks(rows))


class Words(InFolder):
    def test_an_empty_word_is_refused(self):
        for option in ("--reduce", "--output", "--suite", "--only", "--fraction"):
            code, _, err = command("--delegate", PLANTED, "--case", NAME, option, "")
            self.assertEqual((code, f"{option}: an empty word is none" in err), (2, True), err)

    def test_a_model_of_a_folder_is_not_made_smaller(self):
        code, _, err = command("--delegate", PLANTED, "--suite", self.folder, "--reduce", "nets/m")
        self.assertEqual((code, "skillet eval MODEL" in err, err.count("\n")), (2, True, 1), err)

    def test_an_interrupt_while_modules_are_read_has_no_traceback(self):
        (self.folder / "numpy").mkdir()
        (self.folder / "numpy/__init__.py").write_text(f"import pathlib, time\npathlib.Path({str(self.folder / 'here')!r}).touch()\ntime.sleep(1000)\n")
        for words in (["skillet.conformance"], ["skillet", "conformance"]):
            (self.folder / "here").unlink(missing_ok=True)
            with subprocess.Popen([sys.executable, "-m", *words], env={**os.environ, "PYTHONPATH": f"{self.folder}:{os.environ['PYTHONPATH']}"}, stderr=subprocess.PIPE, text=True) as process:
                while not (self.folder / "here").exists() and process.poll() is None:
                    time.sleep(0.01)
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=PATIENCE_SECONDS)
            self.assertEqual((process.returncode, err), (-signal.SIGINT, ""), words)

    def test_farms_tell_names_apart(self):
        names = ["nets/a b", "nets/a!b", "nets/a_b", "nets/a.b", "nets/c d"]
        rows = [Result(name, "Pass", taken=True) for name in names]
        ids = re.findall("TEST_CASE_ID=(\\S+)", _result_files.lava(rows, "g"))
        paths = [one["path"] for one in json.loads(_result_files.kcidb(rows, "g", "o", "", "d"))["tests"]]
        self.assertEqual([len(set(ids)), len(set(paths))], [len(names)] * 2, (ids, paths))
        self.assertEqual((ids[2:], paths[2], paths[4]), (["nets/a_b", "nets/a.b", "nets/c_d"], paths[2], "skillet.g.nets.c_d"))
        self.assertEqual(ids, re.findall("TEST_CASE_ID=(\\S+)", _result_files.lava(rows[::-1], "g"))[::-1])


class Values(InFolder):
    def test_inputs_of_a_folder_are_the_same_in_every_run(self):
        (self.folder / "m.tflite").write_bytes(_cases.build(NAME).graph.file())
        _, inputs, _ = Case("nets/m", str(self.folder / "m.tflite")).content()
        made = hashlib.sha256(b"".join(one.tobytes() for given in inputs for one in given))
        self.assertEqual(made.hexdigest()[:16], "c71382517b9ca043")

    def test_each_run_begins_without_variables(self):
        class Host:
            variable = 0
            def get_input_details(self):
                return []
            def get_output_details(self):
                return [{"index": 0}]
            def get_tensor(self, index):
                return self.variable
            def reset_all_variables(self):
                self.variable = 0
            def invoke(self):
                self.variable += 1
        host = Host()
        self.assertEqual([_targets.run_interpreter(host, []) for _ in range(2)], [[1], [1]])

    def test_infinity_is_not_finite(self):
        for value in (np.nan, np.inf, -np.inf):
            verdict = _judge.compare_array(np.ones(3, np.float32), np.array([1, value, 1], np.float32), 1)
            self.assertEqual((verdict.reason, verdict.off), ("1 of 3 values are NaN or infinite", 1))


class Files(InFolder):
    def test_all_results_are_in_the_table_of_a_run_that_goes_on(self):
        words = ("--delegate", PLANTED, "--only", "^add/u8/(8x8/c16|1x1)", "-o", self.folder / "out")
        self.assertEqual(command(*words, "--fraction", "1/2")[0], 0)
        first = (self.folder / "out/results.csv").read_text()
        code, out, _ = command(*words, "--continue", "--json")
        whole = (self.folder / "out/results.csv").read_text()
        self.assertEqual((code, whole.startswith(first), first.count("\n") > 0), (0, True, True))
        self.assertEqual(whole.count("\n"), len(json.loads(out)["cases"]))

    def test_a_full_disk_leaves_no_folder(self):
        with unittest.mock.patch.object(tempfile, "tempdir", str(self.folder)), unittest.mock.patch.object(Path, "write_bytes", side_effect=OSError(errno.ENOSPC, "No space left")):
            with self.assertRaises(OSError):
                _guard.Guard([])
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_library_that_is_no_delegate_is_one_line(self):
        (self.folder / "text.so").write_text("no library\n")
        shared = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libm.so" in line or "/libm-" in line)
        for library, words in ((shared, "is no TensorFlow Lite delegate"), (self.folder / "text.so", "the delegate cannot be loaded")):
            code, _, err = command("--delegate", library, "--case", NAME)
            self.assertEqual((code, words in err, err.count("\n")), (2, True, 1), err)
            script = ("import sys\nfrom skillet.conformance._targets import *\ntry:\n    opened_delegate(Target('delegate', sys.argv[1]))\nexcept Unusable:\n    pass\n")
            done = subprocess.run([sys.executable, "-c", script, str(library)], capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "", "also when what the runtime made of it is deleted")


if __name__ == "__main__":
    sys.exit(0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1)
