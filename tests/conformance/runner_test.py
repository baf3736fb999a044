#!/usr/bin/env python3
"""skillet.conformance: cases, expectations, reports, and whether it finds the bugs of planted_delegate.cpp.

usage: runner_test.py LIBPLANTED [--long|--all] [--build DIR]     --long: only whether each bug is found, some are made minimal; --all: all of them are.
Exit code 77: there is no TensorFlow Lite runtime.
"""
import contextlib
import fcntl
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree
from pathlib import Path

from runner_environment import inside

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import long_cases  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]

PLANTED, IS_LONG, IS_ALL = inside(__file__, __doc__, "--long", "--all")
IS_LONG = IS_LONG or IS_ALL

import numpy as np  # noqa: E402

from runner_cases import command  # noqa: E402

from skillet import _result_files  # noqa: E402
from skillet.conformance import _cases, _files, _judge, _moves, _run, _score  # noqa: E402
from skillet.conformance._child import Case  # noqa: E402
from skillet.conformance._reduce import Reducer  # noqa: E402
from skillet.conformance._run import Result, Runner  # noqa: E402
from skillet.conformance._targets import Target, Unusable  # noqa: E402
from skillet.explore import _case, _sweep  # noqa: E402

# The bugs, and a word of the reason. Together they cover all kinds: wrong numbers, and other faults.
WRONG_NUMBERS = """signed_as_unsigned per_channel_first no_clamp pad_even_kernel pad_at_the_top activation_ignored relu_at_zero relu6_without_six
    multiplier_of_few_bits input_zero_ignored pads_with_zero input_tail_dropped bias_ignored bias_of_16_bits dilation_ignored dilation_of_width multiplier_as_blocks
    weight_zero_ignored sums_of_16_bits channel_tail rows_beyond_31 stride_2_odd second_image columns_of_four max_pool_pads_with_zero_point
    pool_counts_padding broadcast_as_scalar add_with_one_scale concat_backwards strides_swapped stale_memory inner_output_missing
    add_second_zero_ignored concat_copies_scales concat_third_part_dropped pads_odd_with_zero per_channel_last_group lowest_is_127 relu6_of_input_scale
    stride_2_odd_depthwise dilation_pads_as_plain max_pool_as_signed second_image_of_pool dense_first_row bias_of_first_channel needs_a_bias band_seam
    input_of_first_run ok_without_writing softmax_without_beta softmax_without_maximum pad_with_number_zero pad_at_the_other_side mean_axis_without_keep
    resize_from_centers resize_without_corners transpose_crop_at_the_end transpose_filter_not_turned
    relu6_at_the_lowest_zero stale_last_tile tail_of_one_channel average_pool_pads_with_number_zero pad_of_odd_width_at_stride_2
    result_of_the_previous_run outputs_share_a_buffer does_not_wait images_run_together wrong_at_the_first_run sums_of_20_bits sub_swapped per_channel_one_short
    float_of_16_bits claims_a_node_more dilation_ignored_for_5x5 broadcast_without_activation multiplier_shares_scales lines_beyond_a_tile_of_16 weights_of_8_bits
    half_words_of_channels multiplier_above_one pools_of_8_fail softmax_of_32 mean_of_16_bits concat_in_blocks_of_4""".split()
OTHERS = {"not_a_number": "Fail: .*NaN", "refuses_in_invoke": "Fail: running: .*failed to invoke", "refuses_in_prepare": "Fail: loading: .*failed to prepare",
          "changes_input": "Fail: .*input 0 was changed", "adds_in_place": "Fail: .*input [01] was changed", "negative_sums_truncated": "Fail: .*(a step off, nearly all too high|off, by up to 1)", "crash": r"Crash: .*signal 6", "writes_beyond": r"Crash: .*signal 11",
          "hang": "Timeout: no answer for", "prints_without_end": "Crash: it printed more than", "forks": "Crash: it ended with exit code 0",
          "hangs_at_exit": "Timeout: at the end of the process", "crashes_at_exit": "Crash: at the end of the process",
          "writes_a_line_beyond": "Fail: .*behind the end of output 0",
          **{bug: f"Fail: at the end of the process: it {words}" for bug, words in (
              ("rounds_up", "changed the rounding mode"), ("changes_folder", "changed the working directory"), ("changes_locale", "changed the locale"),
              ("changes_environment", "changed the environment"), ("changes_umask", "changed the umask"), ("blocks_signals", "changed the blocked signals"),
              ("ignores_signals", "changed the ignored signals"), ("leaks_files", "leaks open files"), ("leaks_threads", "leaks threads"),
              ("leaks_processes", "leaks processes"), ("leaks_memory", "leaks memory"), ("leaves_a_daemon", "leaves running processes"),
              ("changes_limits", "changed the resource limits"), ("sets_a_timer", "changed the timers"), ("lowers_priority", "changed the priority"))}}
OPERATIONS = re.compile("(conv2d|depthwise|fully_connected|average_pool|max_pool|add|sub|concat|dequantize|chain|softmax|pad|mean|resize_nearest|transpose_conv)/(u8|i8)/")
TIMEOUT_SECONDS, PATIENCE_SECONDS = 0.7, 30  # for bugs that hang; for all others, also on a busy machine
MOST_WORK = 3e5


class Found(Exception):
    pass


def target(bug="", **more):
    return Target("delegate", PLANTED, {"bug": bug, **more})


def timeout_of(bug):
    return TIMEOUT_SECONDS if bug.startswith("hang") else PATIENCE_SECONDS


def results_of(bug, names, stop_at_first=False, **more):
    results = []

    def tell(result):
        results.append(result)
        if stop_at_first and result.status in _result_files.BAD:
            raise Found
    with contextlib.suppress(Found):
        Runner(target(bug), tell, 2, timeout_of(bug), **more).run(Case(name) for name in names)
    return results


def lines(results):
    return [f"{one.status}: {one.reason}" for one in results]


class Names(unittest.TestCase):
    def test_names_are_the_cases(self):
        names = _cases.ops_suite()
        self.assertTrue(1500 < len(names) <= _cases.OPS_MOST, len(names))
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertEqual(_cases.name_of(_cases.parse(name)), name)
        self.assertIn("conv2d/u8/16x16/c16-16/k3x3/s2/same", names)
        chains = [name.partition("/ops=")[2].partition("/")[0].split("+") for name in names if name.startswith("chain/u8") and "/ops=" in name]
        for place in (0, -1):
            self.assertEqual({steps[place] for steps in chains}, set(_moves.STEPS))
        nets = _cases.nets_suite()
        self.assertEqual([_cases.name_of(_cases.parse(name)) for name in nets], nets)
        self.assertTrue(250 < len(nets) <= 300 and min(name.count("+") for name in nets) >= 4, len(nets))

    def test_a_wrong_name_is_refused_with_its_word(self):
        for name, word in [("conv9", "no operation is called 'conv9'"), ("conv2d/u9", "'u9' is no type of conv2d"), ("conv2d", "'' is no type"),
                           ("relu/u8/8x8/c16/k3x3", "'k3x3' is no parameter of relu"), ("relu/u8/8x8", "this case is called relu/u8/8x8/c16"),
                           ("transpose/u8/8x8/c16/order=9", "cannot be made"), ("conv2d/u8/x/c1", "'x' is no"),
                           ("relu/u8/99999999x99999999/c16", "cannot be made")]:
            with self.subTest(name=name), self.assertRaisesRegex(_cases.BadName, re.escape(word)):
                _cases.build(name)

    def test_models_are_the_same_on_every_machine(self):
        made = hashlib.sha256()
        for name in ("conv2d/i8/7x7/c3-5/k3x3/s2/same/relu6/pc", "add/u8/8x8/c17/with=pixel", "chain/u8/8x8/c8"):
            case = _cases.build(name)
            made.update(case.graph.file())
            for which in (0, 1):
                made.update(b"".join(one.tobytes() for one in case.inputs(which)))
        self.assertEqual(made.hexdigest()[:16], "b64451386d6ba14f")

    def test_a_sweep_takes_an_operation_of_a_model(self):
        models = ROOT / "tests/models"
        for file, number, wanted in ((models / "conv3x3_s2_u8.tflite", None, "conv2d/u8/33x33/c8-16/k3x3/s2/same"), (models / "fc64x10_i8.tflite", 0, "fully_connected/i8/c64-10"),
                                     (ROOT / "models/digits.tflite", 1, "depthwise/u8/14x14/c16/k3x3/same/relu"), (models / "concat2_i8.tflite", None, "concat/i8/10x12/c8-16")):
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(_sweep.base_case(str(file), number), wanted)
        for file, number, said in ((ROOT / "models/digits.tflite", None, "--op N says which (0 to 13)"), (ROOT / "models/digits.tflite", 14, "no operation 14"),
                                   (models / "no_inputs.tflite", None, "there are no cases of operation 22"), ("conv2d/u8/8x8", 1, "is for a .tflite file")):
            with self.assertRaisesRegex(_sweep.Unusable, re.escape(said)):
                _sweep.base_case(str(file), number)
        # Parameters that change sizes or the kind of operation are recovered; scales and zero points are random.
        names = [name for name in _cases.ops_suite() if name.split("/")[0] in ("conv2d", "depthwise", "average_pool", "max_pool", "transpose_conv")]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "m.tflite"
            for name in [*names[::6], "conv2d/u8/16x16/c16-16/k3x3/d1x2/same", "conv2d/u8/16x16/c16-16/k3x3/s1x2/same", "conv2d/i8/16x16/c16-16/k3x3/same/pc", "depthwise/i8/16x16/c16/k3x3/same/m=2"]:
                file.write_bytes(_cases.build(name).graph.file())
                got, given = _cases.parse(_case.case_name(file, None)), _cases.parse(name)
                self.assertLessEqual({key for key in given if given[key] != got[key]}, {"zp", "scale", "b", "bias"}, name)
        data = (models / "conv3x3_s2_u8.tflite").read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            for at in range(0, 600, 3):
                file = Path(folder) / "m.tflite"
                file.write_bytes(data[:at] + b"\xff" + data[at + 1:])
                with contextlib.suppress(_sweep.Unusable), contextlib.redirect_stderr(io.StringIO()):
                    _sweep.base_case(str(file), None)


class Expectations(unittest.TestCase):
    def test_statuses_are_those_of_deqp_runner(self):
        with tempfile.TemporaryDirectory() as folder:
            files = {name: Path(folder) / name for name in ("fails", "flakes", "skips", "wrong")}
            files["fails"].write_text("# known\na,Fail\nb,Crash\nc,Fail\nf,ExpectedFail\ng,Flake\nh,Fail\nh,UnexpectedImprovement\ni,Skip\n")
            files["flakes"].write_text("^d/\n")
            files["skips"].write_text("slow\n")
            files["wrong"].write_text("a;Fail\n")
            known = _files.Expectations([str(files["fails"])], [str(files["flakes"])], [str(files["skips"])])
            for name, status, want, again in [("a", "Fail", "ExpectedFail", False), ("a", "Crash", "Crash", True), ("b", "Crash", "ExpectedFail", False),
                                              ("c", "Pass", "UnexpectedImprovement", False), ("d/x", "Fail", "Flake", False), ("e", "Fail", "Fail", True),
                                              ("e", "Pass", "Pass", False), ("f", "Timeout", "ExpectedFail", False), ("f", "Pass", "UnexpectedImprovement", False),
                                              ("g", "Crash", "Flake", False), ("g", "Pass", "Pass", False), ("h", "Pass", "Pass", False), ("h", "Fail", "Fail", True),
                                              ("i", "Skip", "Skip", False), ("i", "Fail", "Fail", True), ("a", "Skip", "Skip", False)]:
                result = Result(name, status)
                self.assertEqual((known.is_unlisted_failure(result), known.settle(result).status), (again, want), (name, status))
            self.assertEqual([known.is_skipped(name) for name in ("a/slow", "a")], [True, False])
            for wrong in ("wrong", "nowhere"):
                with self.assertRaisesRegex(_files.BadFile, wrong):
                    _files.Expectations([str(Path(folder) / wrong)], [], [])
            files["skips"].write_text("(\n")
            with self.assertRaisesRegex(_files.BadFile, "regular expression"):
                _files.Expectations([], [], [str(files["skips"])])


class Reports(unittest.TestCase):
    RESULTS = [Result("add/u8/8x8/c16", "Pass", 0.5, taken=True), Result("conv2d/u8/7x7/c16-16/k3x3/s2/same", "Fail", 0.1, "off <by> 3 #1\x07", True, 3, 4, 9, [[0, 3.0]]),
               Result("conv2d/u8/16x16/c16-16/k3x3/same", "Pass", 0.1, taken=True), Result("relu/u8/8x8/c1", "Crash", 0.1, "signal 6", True),
               Result("relu/u8/8x8/c3", "Timeout", 1, "hangs", True), Result("relu/u8/8x8/c4", "Skip", 0, "not delegated", False),
               Result("relu/u8/8x8/c8", "ExpectedFail", 0, "off", True), Result("relu/u8/8x8/c16", "Flake", 0, "once", True)]

    def test_formats(self):
        suite = xml.etree.ElementTree.fromstring(_result_files.junit(self.RESULTS, "a <b>", "conformance"))
        self.assertEqual({key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")}, dict(tests="8", failures="1", errors="2", skipped="2"))
        self.assertEqual([len(suite.findall(f".//{kind}")) for kind in ("testcase", "failure", "error", "skipped")], [8, 1, 2, 2])
        ktap = _result_files.ktap(self.RESULTS).splitlines()
        self.assertEqual(ktap[:2], ["KTAP version 1", "1..8"])
        numbered = [re.match(r"(ok|not ok) (\d+) [^#]+?( # (SKIP|XFAIL|TIMEOUT|ERROR) [^#]*)?$", line) for line in ktap[2:] if not line.startswith("# ")]
        self.assertEqual([int(found[2]) for found in numbered], list(range(1, 9)))
        self.assertEqual([found[1] for found in numbered], ["ok", "not ok", "ok", "not ok", "not ok", "ok", "not ok", "ok"])
        lava = _result_files.lava(self.RESULTS, "conformance").splitlines()
        self.assertEqual(sum(bool(re.match(r"<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=\S+ RESULT=(pass|fail|skip) MEASUREMENT=[\d.]+ UNITS=s>$", line)) for line in lava), 8)
        kcidb = json.loads(_result_files.kcidb(self.RESULTS, "conformance", "farm", "", "sim:a311d"))
        self.assertEqual([one["status"] for one in kcidb["tests"]], ["PASS", "FAIL", "PASS", "ERROR", "ERROR", "SKIP", "PASS", "PASS"])
        self.assertEqual(kcidb["tests"][0]["path"], "skillet.conformance.add.u8.8x8.c16")
        self.assertEqual(_files.failures_csv(self.RESULTS).splitlines()[0], "conv2d/u8/7x7/c16-16/k3x3/s2/same,Fail")

    def test_scores_say_where_it_breaks(self):
        conv = next(one for one in _score.scores(self.RESULTS) if one.op == "conv2d")
        self.assertEqual((conv.cases, conv.largest, conv.counts), (2, 3, {"Fail": 1, "Pass": 1}))
        self.assertIn("stride and an odd size: 1 of 1", conv.breaks)
        self.assertIn(("an odd size", 1, 1), _score.by_property(self.RESULTS))
        self.assertIn(("type u8", 7, 4), _score.by_property(self.RESULTS))
        self.assertTrue(_score.took_any(self.RESULTS))
        self.assertFalse(_score.took_any([Result("a", "Skip", taken=False)]))

    def test_the_report_is_what_its_schema_says(self):
        schema = json.loads((ROOT / "docs/json/conformance.json").read_text())
        made = _files.report(self.RESULTS, dict(target="a", judge="b", suite="ops", fraction="1/1", runtime="c", seconds=1.0), [one.row() for one in _score.scores(self.RESULTS)])
        # Validates with python3-jsonschema in the system's Python, since this environment lacks it.
        code = ("import json,sys; schema,documents=json.load(sys.stdin)\ntry: from jsonschema import Draft7Validator as V\nexcept ImportError: sys.exit(0)\n"
                "V.check_schema(schema); print(json.dumps([[error.message for error in V(schema).iter_errors(one)] for one in documents]))")
        reduced = _files.reduced_report("a", "b", 1, self.RESULTS[1], "c")
        fine = [made, reduced]
        wrong = [{**made, "version": 2}, {**made, "cases": [{"name": "a"}]}, {**reduced, "version": 2}, {**reduced, "operations": "1"}]
        done = subprocess.run(["/usr/bin/python3", "-c", code], input=json.dumps([schema, [*fine, *wrong]]), text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        if done.stdout:
            errors = json.loads(done.stdout)
            self.assertEqual(errors[:len(fine)], [[]] * len(fine))
            self.assertTrue(all(errors[len(fine):]), errors)

    def test_comparison(self):
        right = [np.arange(6, dtype=np.uint8).reshape(1, 2, 3)] * 2
        for change, tolerance, word in [(0, 0, ""), (1, 1, ""), (2, 1, "allowed 1")]:
            runs = [[right[0] + np.uint8(change)], [right[1]], [right[0] + np.uint8(change)]]
            self.assertIn(word, _judge.compare(right, runs, tolerance).reason)
            self.assertEqual(bool(word), bool(_judge.compare(right, runs, tolerance).reason))
        for wrong, word in [(right[0].astype(np.int8), "int8"), (right[0][0], "shape")]:
            self.assertIn(word, _judge.compare(right, [[wrong]] * 3, 1).reason)
        real = [np.array([1, np.nan, np.inf], np.float32)]
        self.assertEqual(_judge.compare(real, [real, real], 1).reason, "")
        self.assertIn("NaN", _judge.compare([np.ones(3, np.float32)], [real, real], 1).reason)


class Runs(unittest.TestCase):
    """Tests a few bugs; the long test has all."""
    NAMES = ["conv2d/u8/8x8/c8-9/k3x3/same", "conv2d/u8/5x5/c3-8/k5x5/same", "dequantize/u8/8x8/c16", "max_pool/i8/7x7/c8/k2x2/valid",
             "conv2d/i16/16x16/c16-16/k3x3/same", "conv2d/u8/8x8/c3-8/k1x1/same"]

    def test_what_is_right_passes(self):
        results = {one.name: one for one in results_of("", self.NAMES)}
        self.assertEqual([results[name].status for name in self.NAMES], ["Pass"] * 4 + ["Skip", "Pass"])
        self.assertEqual(results[self.NAMES[4]].reason, "not delegated")

    def test_each_kind_of_bug_is_a_row(self):
        for bug, at, words in [("channel_tail", 0, "Fail: .*values are off"), ("crash", 1, OTHERS["crash"]), ("not_a_number", 2, OTHERS["not_a_number"]),
                               ("forks", 3, OTHERS["forks"]), ("changes_input", 5, OTHERS["changes_input"]),
                               ("writes_a_line_beyond", 1, OTHERS["writes_a_line_beyond"])]:
            with self.subTest(bug=bug):
                results = {one.name: one for one in results_of(bug, self.NAMES, group=6)}
                self.assertEqual(set(results), set(self.NAMES))
                self.assertRegex(f"{results[self.NAMES[at]].status}: {results[self.NAMES[at]].reason}", words)

    def test_a_changed_process_is_a_row_and_made_minimal(self):
        for bug in ("rounds_up", "leaks_files"):
            end = next(one for one in results_of(bug, [self.NAMES[0]] * 8, group=8) if one.name not in self.NAMES)
            self.assertRegex(f"{end.status}: {end.reason}", OTHERS[bug])
        ends = [one.name for one in results_of("leaves_a_daemon", [self.NAMES[3], "add/u8/8x8/c16", self.NAMES[0]], group=3) if one.name.startswith(_run.END)]
        self.assertEqual(ends, ["process-end/add/u8/8x8/c16"], "of the group, the case that left it")
        smallest, result = Reducer(target("rounds_up"), 2, PATIENCE_SECONDS, {}).reduce(f"process-end/{self.NAMES[5]}", lambda text: None)
        self.assertEqual((smallest, result.status), ("conv2d/u8/1x1/c1-1/k1x1/same", "Fail"))

    def test_a_folder_is_for_one_run_and_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            dirs = [f"{folder}/{name}" for name in ("1", "2", "all")]
            given = ["--delegate", PLANTED, "--option", "bug=wrong_once", "--option", f"state={folder}/state", "--only", "^add/u8/(8x8/c16|1x1)"]
            code, out, err = command(*given, "--fraction", "1/2", "-o", dirs[0])
            self.assertEqual((code, err), (0, ""))
            self.assertIn("1 Flake", out)
            self.assertEqual(command(*given, "--fraction", "1/2", "-o", dirs[0])[0], 2)
            log = Path(dirs[0]) / "cases.jsonl"
            whole = log.read_text()
            log.write_text(whole[:-30])  # as on a full disk
            self.assertEqual(command(*given, "--fraction", "1/2", "-o", dirs[0], "--continue")[0], 0)
            self.assertEqual(*(sorted(json.loads(line).get("name", "") for line in text.splitlines()) for text in (log.read_text(), whole)))
            with (Path(dirs[0]) / "lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                code, _, err = command(*given, "-o", dirs[0], "--continue")
                self.assertEqual((code, "another run writes" in err), (2, True), err)
            self.assertEqual(command(*given, "--fraction", "2/2", "-o", dirs[1])[0], 0)
            code, out, _ = command("--merge", *dirs[:2], "-o", dirs[2], "--json")
            names = [case["name"] for case in json.loads(out)["cases"]]
            self.assertEqual((code, sorted(names)), (0, sorted(name for name in _cases.ops_suite() if re.match("add/u8/(8x8/c16|1x1)", name))))
            page = (Path(dirs[2]) / "report.html").read_text()
            self.assertEqual(re.findall(r"(?:src|href)=", page), [])

    def test_a_command_says_how_it_went_by_its_exit_code(self):
        for script, status, words in [("exit 77", "Skip", "not delegated"), ("exit 3", "Fail", "exit code 3: no NPU"), ("kill -6 $$", "Crash", "signal 6"),
                                      ("exit 0", "Fail", "wrote no file {outputs}"), ("echo x >> {inputs}", "Fail", "changed the file {inputs}"),
                                      ("rm {model}", "Fail", "changed the file {model}")]:
            results = []
            Runner(Target("command", f"sh -c 'echo no NPU >&2; test -s {{model}} && test -s {{inputs}} && {script}' {{outputs}}"), results.append).run([Case(self.NAMES[0])])
            self.assertEqual((results[0].status, words in results[0].reason), (status, True), results)

    def test_a_folder_of_models_may_hold_broken_ones(self):
        with tempfile.TemporaryDirectory() as folder:
            whole = _cases.build(self.NAMES[1]).graph.file()
            for name, content in [("right", whole), ("ri,ght\n", whole), ("ri_ght_", whole), ("none", b""), ("text", b"TFL3" * 40), *((f"cut{at}", whole[:at * 60]) for at in range(1, 13))]:
                (Path(folder) / f"{name}.tflite").write_bytes(content)
            code, out, _ = command("--delegate", PLANTED, "--suite", folder, "--json")
            statuses = {case["name"]: case["status"] for case in json.loads(out)["cases"]}
            self.assertEqual((code, *(statuses.pop(f"nets/{name}") for name in ("right", "ri_ght_", "ri_ght__")), len(statuses), set(statuses.values())), (0, "Pass", "Pass", "Pass", 14, {"Skip"}), statuses)

    def test_long_who_reads_may_have_enough(self):
        done = subprocess.run(f"{sys.executable} -m skillet.conformance --kernels xnnpack --suite grid --list | head -1", shell=True, capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout.count("\n"), done.stderr), (1, ""))

    def test_a_run_that_tests_nothing_fails(self):
        case = ["--case", self.NAMES[0]]
        code, _, err = command("--delegate", PLANTED, "--option", "bug=claims_nothing", *case)
        self.assertEqual((code, "nothing was tested" in err), (1, True), err)
        for words, said in [(["--option", "bug=cannot_be_loaded", *case], "no such chip"), (["--suite", "/nowhere"], "folder with .tflite"), (["--option", "x", *case], "KEY=VALUE"),
                            (["--fraction", "3/2"], "K/N"), (["--case", "a/b"], "no operation"), (["--tolerance", "x=1", *case], "no operation"), (["--only", "("], "--only")]:
            code, _, err = command("--delegate", PLANTED, *words)
            self.assertEqual((code, said in err, err.count("\n")), (2, True, 1), err)
        self.assertEqual(command()[0], 2)


class Forgeries(unittest.TestCase):
    """A target shares a process with the child of the runner: it can write to everything that the child has open."""

    def test_a_message_that_our_child_does_not_say_ends_its_process(self):
        good = {"kind": "done", "index": 0, "arrays": [], "seconds": 0.5}
        wrong = [[], 3, None, {}, {**good, "index": 1}, {**good, "index": -1}, {**good, "index": float("inf")}, {**good, "index": "0"},
                 {**good, "seconds": "1"}, {**good, "arrays": 3}, {**good, "arrays": [["|O", [1]]]}, {**good, "arrays": [["(", [1]]]},
                 {**good, "arrays": [["|u1", [-1]]]}, {**good, "arrays": [["|u1", [1 << 70]]]}, {**good, "kind": "failed"},
                 {**good, "kind": "failed", "reason": 3}, {**good, "kind": "expected"}, {**good, "kind": "refused", "reason": ""},
                 {"kind": "unusable", "index": -1, "arrays": []}, {**good, "seconds": float("nan")}, {**good, "seconds": 10 ** 400}]
        texts = [json.dumps(one).encode() for one in wrong] + [b"{", b"\xff\xff", b"[" * 100000]
        for text in [json.dumps(good).encode(), *texts]:
            with self.subTest(text[:80]):
                runner = Runner(target(), lambda result: None)
                runner._cases = {0: Case("a"), 1: Case("b")}
                slot = _run.Slot(0, -1, -1, [(0, Case("a"))], 0, "", has_loaded=True)
                slot.buffer += len(text).to_bytes(4, "little") + text + bytes(64)
                self.assertEqual(runner._message(slot) is None, text in texts)
                self.assertEqual(b"wrote over the pipe" in slot.said, text in texts)

    def test_a_child_has_no_files_of_ours(self):
        with tempfile.TemporaryDirectory() as folder, open(f"{folder}/log", "w") as log:
            os.set_inheritable(log.fileno(), True)
            told = f"{folder}/told"

            def work(cases, known, target, results):
                numbers = [one for one in range(3, 1024) if os.path.exists(f"/proc/self/fd/{one}")]
                Path(told).write_text(json.dumps(numbers == [results]))
                os._exit(0)

            with unittest.mock.patch.object(_run, "work", work):
                Runner(target(), lambda result: None, timeout=PATIENCE_SECONDS).run([Case("a")])
            self.assertEqual(json.loads(Path(told).read_text()), True)


class Refusals(unittest.TestCase):
    """Requests that would count something as tested although it was not."""
    NAME = "conv2d/u8/5x5/c3-8/k5x5/same"
    GIVEN = ("--delegate", PLANTED, "--case", NAME)

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)

    def refused(self, said, *words, code=2):
        with self.subTest(words=words):
            got, _, err = command(*(str(word) for word in words))
            self.assertEqual((got, err.count("\n")), (code, 1), err)
            for one in [said] if isinstance(said, str) else said:
                self.assertIn(one, err)

    def test_results_of_another_run_are_not_gone_on_with(self):
        out = ("-o", self.folder / "out", "--continue")
        self.assertEqual(command(*self.GIVEN, *map(str, out))[0], 0)
        self.assertEqual(command(*self.GIVEN, *map(str, out))[0], 0)
        for said, more in [(("bug=crash", "libplanted_delegate.so, and"), ["--option", "bug=crash"]), (("tolerance: none, and {'': 3.0}",), ["--tolerance", "3"]),
                           (("suite: ops, and grid",), ["--suite", "grid"])]:
            self.refused(said, *self.GIVEN, *more, *out)
        self.refused("--continue needs -o", *self.GIVEN, "--continue")
        self.refused("kind of target: delegate, and kernels", "--kernels", "xnnpack", "--case", self.NAME, *out)
        library = self.folder / Path(PLANTED).name
        library.write_bytes(Path(PLANTED).read_bytes() + b"more")
        self.refused("SHA-256", "--delegate", library, "--case", self.NAME, *out)

    def test_long_a_full_disk_loses_nothing(self):
        """Limits the size of files, as a full disk does. Each run gets further, and keeps the results of earlier runs."""
        given, out = ["--delegate", PLANTED, "--only", "^add/(u8|i8)/"], self.folder / "out"
        whole = {name for name in _cases.ops_suite() if re.match("add/(u8|i8)/", name)}
        code = ("import resource,signal,sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); n=int(sys.argv.pop(1)); resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))\n"
                "from skillet.conformance.__main__ import main; sys.exit(main(sys.argv[1:]))")
        had, codes = set(), []
        for most in (2000, 1500, 5000, 12000, 1 << 20):
            done = subprocess.run([sys.executable, "-c", code, str(most), *given, "-o", str(out), "--continue"], capture_output=True, text=True, check=False)
            codes.append(done.returncode)
            self.assertEqual((done.stderr.count("\n"), "File too large" in done.stderr), (most != 1 << 20, most != 1 << 20), done.stderr)
            now = [json.loads(line)["name"] for line in (out / "cases.jsonl").read_text().split("\n")[1:-1]]
            self.assertLessEqual(had, set(now), most)
            self.assertEqual(len(now), len(set(now)))
            had = set(now)
        self.assertEqual((codes, had), ([2, 2, 2, 2, 0], whole))

    def test_what_cannot_be_joined_is_not(self):
        one, other, bad, out = (self.folder / name for name in ("one", "other", "bad", "out"))
        for folder, more in ((one, []), (other, ["--option", "bug=crash"])):
            command(*self.GIVEN, *more, "-o", str(folder))
        self.refused(("one and", "bug=crash"), "--merge", one, other, "-o", out)
        self.refused("only is not for --merge", "--merge", one, "--only", "x", "-o", out)
        head, row = (one / "cases.jsonl").read_text().splitlines()
        bad.mkdir()
        wrong = [json.dumps({**json.loads(row), key: value}) for key, value in
                 dict(seconds="1", status="Fine", name=3, taken=1, largest=None, off=1.5, picture=[1], first=None, values=True).items()]
        for text, said in [("", "is empty"), (head[:20], "is empty"), (row + "\n", "first line"), (json.dumps({**json.loads(head), "judge": 1}) + "\n", "first line"), ("null\n", "first line"), (head + "\n", "interrupted, it has 0 of 1"),
                           (f"{head}\n{row[:-5]}", "interrupted"), *((f"{head}\n{line}\n{row}\n", "line 2 is no result") for line in ("null", "[]", "7", "{", "{}", "[" * 99999, *wrong))]:
            (bad / "cases.jsonl").write_text(text)
            self.refused((said, "bad/cases.jsonl"), "--merge", one, bad, "-o", out)
        self.refused("nowhere/cases.jsonl", "--merge", one, self.folder / "nowhere", "-o", out)
        self.assertFalse(out.exists())

    def test_expectations_are_for_joined_results_too(self):
        command(*self.GIVEN, "--option", "bug=crash", "-o", str(self.folder / "one"))
        for at, (option, line, code, status) in enumerate([("baseline", "", 1, "Crash"), ("baseline", f"{self.NAME},Crash\n", 0, "ExpectedFail"), ("flakes", "^conv\n", 0, "Flake"),
                                                           ("skips", "^conv\n", 1, "Skip")]):
            (self.folder / "list").write_text(line, encoding="utf-8-sig")
            got, _, err = command("--merge", str(self.folder / "one"), f"--{option}", str(self.folder / "list"), "-o", str(self.folder / f"out{at}"))
            self.assertEqual((got, json.loads((self.folder / f"out{at}/report.json").read_text())["cases"][0]["status"]), (code, status), err)

    def test_a_failure_of_one_run_stays(self):
        folders = [str(self.folder / one) for one in "12"]
        command(*self.GIVEN, "-o", folders[0])
        head, row = (self.folder / "1/cases.jsonl").read_text().splitlines()
        (self.folder / "2").mkdir()
        for at, status in enumerate(("Pass", "Fail")):
            (self.folder / f"{at + 1}/cases.jsonl").write_text(f"{head}\n{json.dumps({**json.loads(row), 'status': status})}\n")
        for at, order in enumerate((folders, folders[::-1])):
            self.assertEqual(command("--merge", *order, "-o", f"{self.folder}/out{at}")[0], 1)

    def test_a_case_that_is_not_taken_is_not_called_right(self):
        code, _, err = command("--delegate", PLANTED, "--option", "bug=claims_nothing", "--reduce", self.NAME)
        self.assertEqual((code, "Skip: not delegated" in err), (1, True), err)

    def test_shards_of_a_folder_are_joined(self):
        models, shards = self.folder / "models", [str(self.folder / one) for one in "1234"]
        models.mkdir()
        for name in ("a", "b"):
            (models / f"{name}.tflite").write_bytes(_cases.build(self.NAME).graph.file())
        (models / "c.tflite").symlink_to("nowhere")
        for k, shard in enumerate(shards, 1):  # shards 3 and 4: c.tflite is broken, the last one is empty
            self.assertEqual(command("--delegate", PLANTED, "--suite", str(models), "--fraction", f"{k}/4", "-o", shard)[0], k > 2)
        self.assertEqual(command("--merge", *shards, "-o", str(self.folder / "all"))[0], 0)
        self.assertEqual((self.folder / "all/results.csv").read_text().count("Pass"), 2)

    def test_numbers_are_numbers(self):
        for option, values in (("--tolerance", ("nan", "-1", "inf", "add=-inf", "1e999")), ("--timeout", ("0", "-1", "nan", "inf"))):
            for value in values:
                self.refused(option, *self.GIVEN, f"{option}={value}")

    def test_where_no_case_was_tested_that_is_said(self):
        skips, models = self.folder / "skips", self.folder / "models"
        skips.write_text(".\n")
        models.mkdir()
        (models / "none.tflite").write_bytes(b"TFL3" * 9)
        self.refused("--skips lists every case", *self.GIVEN, "--skips", skips, code=1)
        self.refused("has no case", *self.GIVEN, "--fraction", "2/2", code=1)
        self.refused("no case matches", "--delegate", PLANTED, "--only", "^nothing$")
        self.refused("no case matches", *self.GIVEN, "--only", "^add/")
        self.refused(("models can be computed", "nets/none"), "--delegate", PLANTED, "--suite", models, code=1)
        self.assertFalse(_score.took_any([Result("a", "Skip", taken=True), Result("process-end/a", "ExpectedFail", taken=True)]))

    def test_a_command_that_cannot_begin_is_refused(self):
        text = self.folder / "text"
        text.write_text("")
        for words, said in [("", "empty"), (" ", "empty"), ("''", "empty"), ("/nowhere/x {model}", "no such program"), (text, "may be run"), (self.folder, "may be run"), ("sh '", "quotation"),
                            ("sh {other}", "other"), ("sh {", "braces"), ("sh {model.x}", "braces")]:
            self.refused(said, "--command", words, "--case", self.NAME)

    def test_what_a_target_printed_is_said(self):
        self.refused("nothing was tested. The options may name no device, or leave all to the CPU (Skillet's delegate: --option partition=all). It printed: no driver; no chip\n",
                     "--command", "sh -c \"echo no chip >&2; echo no driver; echo no driver; exit 77\" {model} {inputs} {outputs}", "--case", self.NAME, code=1)

    def test_a_list_needs_no_target(self):
        self.assertEqual(command("--list", "--only", "^dequantize/u8/8x8/c16$"), (0, "dequantize/u8/8x8/c16\n", ""))


@unittest.skipUnless(IS_LONG, "long")
class AllBugs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.names = [name for name in _cases.ops_suite() if OPERATIONS.match(name) and _moves.work({"b": "1", **_cases.parse(name)}) < MOST_WORK]
        cls.names.sort(key=lambda name: hashlib.sha256(name.encode()).digest())  # mixes the operations

    def test_every_bug_is_found(self):
        for number, bug in enumerate(WRONG_NUMBERS + list(OTHERS)):
            with self.subTest(bug=bug):
                bad = [one for one in results_of(bug, self.names, stop_at_first=True) if one.status in _result_files.BAD]
                self.assertEqual(len(bad), 1)
                self.assertRegex(f"{bad[0].status}: {bad[0].reason}", OTHERS.get(bug, "Fail: output"))
                if number % 5 and not IS_ALL:
                    continue
                smallest, result = Reducer(target(bug), 2, timeout_of(bug), {}).reduce(bad[0].name, lambda text: None)
                self.assertLessEqual(len(_cases.build(smallest).graph.operations), 2)
                self.assertEqual(result.status, bad[0].status)
                print(f"{bug}: {bad[0].name} -> {smallest}")

    def test_a_bug_in_a_network_is_one_operation(self):
        smallest, result = Reducer(target("add_with_one_scale"), 2, PATIENCE_SECONDS, {}).reduce("net/u8/8x8/c8/ops=conv1+dw3+relu6+conv3+add+hard_swish", lambda text: None)
        self.assertEqual((len(_cases.build(smallest).graph.operations), result.status), (1, "Fail"), smallest)

    def test_a_delegate_without_bugs_has_none(self):
        self.assertEqual({one.status for one in results_of("", self.names)}, {"Pass"})

    def test_one_that_cannot_be_used_ends_the_run(self):
        with self.assertRaisesRegex(Unusable, "no such chip"):
            results_of("cannot_be_loaded", self.names)
        code, _, err = command("--delegate", PLANTED, "--option", "bug=crashes_when_loaded", "--only", "^add/u8")
        self.assertEqual((code, "processes in a row" in err), (1, True), err)
        with tempfile.TemporaryDirectory() as folder:
            code, out, err = command("--delegate", PLANTED, "--option", "bug=loses_the_device", "--option", f"state={folder}/state", "--only", "^(add|max_pool)/u8", "--json")
            report = json.loads(out)
        self.assertEqual((code, "the device is gone" in err, "cases were not run" in err), (1, True, True), err)
        self.assertTrue(any("the device is gone" in case["reason"] for case in report["cases"]))

    def test_daemons_of_a_delegate_do_not_stay(self):
        seconds, results = str(10**6 + os.getpid()), []
        Runner(target("leaves_a_daemon", state=seconds), results.append, 2, PATIENCE_SECONDS).run([Case("add/u8/8x8/c16"), Case("add/u8/8x8/c1")])
        self.assertEqual([one.status for one in results], ["Pass", "Pass", "Fail"])
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(listed.count(f"sleep {seconds}"), 0)

    def test_the_runtime_takes_every_case(self):
        """The reference kernels refuse no case, and the grid is the same on every machine."""
        names = _cases.grid_suite()
        self.assertGreaterEqual(len(names), _cases.GRID_LEAST)
        self.assertEqual(hashlib.sha256("\n".join(names).encode()).hexdigest()[:16], "4677352e36ade95c")
        reasons = {one.reason for one in results_of("claims_nothing", _cases.ops_suite()[::3] + names[::60])}
        self.assertEqual(reasons, {"not delegated"})


if __name__ == "__main__":
    sys.exit(0 if unittest.main(argv=sys.argv[:1] + ["-k", "AllBugs"] * IS_LONG, exit=False, testLoader=long_cases.Cases(), verbosity=2 if IS_LONG else 1).result.wasSuccessful() else 1)
