#!/usr/bin/env python3
"""skillet.conformance: what is judged, of each output, and what each report calls each status.

usage: runner_judge_test.py LIBPLANTED [--build DIR]
Exit code 77: there is no TensorFlow Lite runtime.
"""
import ctypes
import io
import json
import os
import signal
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock
import xml.etree.ElementTree
from pathlib import Path

from runner_environment import inside

PLANTED = inside(__file__, __doc__)[0]

import numpy as np  # noqa: E402

from skillet import _result_files  # noqa: E402
from skillet.conformance import _cases, _files, _guard, _heads, _judge, _process, _reduce, _run, _score, _targets  # noqa: E402
from skillet.conformance.__main__ import keep_case  # noqa: E402
from skillet.conformance._child import Case, Pipe  # noqa: E402
from skillet.conformance._model import Tensor  # noqa: E402
from skillet.conformance._reduce import Reducer  # noqa: E402
from skillet.conformance._run import Result, Runner, Stopped  # noqa: E402
from skillet.conformance._targets import Target  # noqa: E402

PATIENCE_SECONDS = 120  # also on a busy machine


class Heads(unittest.TestCase):
    """The model is a convolution followed by a choice of the largest channel."""

    def models(self, op, code, options, largest):
        made = _cases.build("conv2d/u8/8x8/c8-9/k3x3/same").graph
        x, shape = made.outputs[0], (1, 8, 8) if op.startswith("ARG") else (1, 8, 8, 3)
        outputs = [Tensor(shape, "int32")] if op.startswith("ARG") else [Tensor(shape, "uint8"), Tensor(shape, "int32")]
        first = made.operation(op, code, 2, [x, made.constant(largest)], *outputs, options=options)
        made.outputs = [first + len(outputs) - 1]
        return made.file()

    def result(self, target, model):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "m.tflite").write_bytes(model)
            results = []
            Runner(target, results.append, 1, PATIENCE_SECONDS).run([Case("nets/m", f"{folder}/m.tflite")])
            return results[0]

    def test_a_choice_is_judged_by_what_it_was_given(self):
        for model in (self.models("ARG_MAX", 56, ("ArgMaxOptions", dict(output_type=2)), 3), self.models("ARG_MIN", 79, ("ArgMinOptions", dict(output_type=2)), 3)):
            for bug, status in (("", "Pass"), ("bias_ignored", "Fail"), ("input_zero_ignored", "Fail"), ("channel_tail", "Fail")):
                found = self.result(Target("delegate", PLANTED, {"bug": bug}), model)
                self.assertEqual((found.status, found.values > 2 * 64), (status, True), (bug, found))

    def test_the_margin(self):
        values = np.array([[10, 12, 12, 11, 3]], np.uint8)
        for op, axis, places, is_right in [("ARG_MAX", -1, [1], True), ("ARG_MAX", -1, [2], True), ("ARG_MAX", 1, [3], True), ("ARG_MAX", -1, [0], False), ("ARG_MAX", -1, [4], False),
                                           ("ARG_MAX", -1, [5], False), ("ARG_MAX", -1, [-1], False), ("ARG_MIN", -1, [4], True), ("ARG_MIN", -1, [0], False),
                                           ("TOPK_V2", -1, [1, 2, 3], True), ("TOPK_V2", -1, [2, 1, 0], True), ("TOPK_V2", -1, [1, 1, 3], False), ("TOPK_V2", -1, [1, 2, 4], False)]:
            self.assertEqual(_heads.badly_chosen(values, np.array([places]), axis, _heads.ORDER[op]) == 0, is_right, (op, places))
        real = np.array([[1, 0.9995, 0.5]], np.float32)
        self.assertEqual([_heads.badly_chosen(real, np.array([[at]]), -1, 1) for at in range(3)], [0, 0, 1])

    def test_what_follows_is_compared_where_the_choice_is_the_same(self):
        def verdict(op, changed):
            """Outputs: a dependent output, the tensor that is read, the choice."""
            right = [np.array([5], np.uint8), np.full((1, 200), 7, np.uint8), np.array([1])]
            heads = [{"op": op, "axis": 1, "reads": [1], "makes": [2], "behind": [0, 2], "is_output": [True, False, False]}]
            got = [one.copy() for one in right]
            for output, places, value in changed:
                got[output].ravel()[:places] = value
            return _judge.compare(right, [got, got], 2, heads).reason
        for op, changed, word in [("ARG_MAX", [], ""), ("ARG_MAX", [(0, 1, 50)], "output 0"), ("ARG_MAX", [(0, 1, 50), (2, 1, 9)], ""), ("ARG_MAX", [(1, 2, 90), (2, 1, 0)], ""),
                                  ("ARG_MAX", [(1, 3, 90), (2, 1, 0)], "output 1"), ("ARG_MAX", [(1, 2, 90), (2, 1, 5)], "ARG_MAX chose 1 values"),
                                  (_heads.BOXES[0], [(0, 1, 50)], "output 0"), (_heads.BOXES[0], [(0, 1, 50), (2, 1, 9)], "output 0"), (_heads.BOXES[0], [(0, 1, 50), (1, 1, 8)], ""),
                                  (_heads.BOXES[0], [(1, 3, 90)], "output 1")]:
            self.assertEqual((word in verdict(op, changed), bool(word)), (True, bool(verdict(op, changed))), (op, changed, verdict(op, changed)))


    def test_a_comparison_may_differ_in_few_places(self):
        def reason(changed, follows=0):
            """Outputs: a dependent output, the tensor that is read, the result of the comparison."""
            right = [np.array([5], np.uint8), np.full((1, 200), 7, np.uint8), np.zeros((1, 200), bool)]
            heads = [{"op": "GREATER", "axis": -1, "reads": [1], "makes": [2], "behind": [0, 2], "is_output": [True, False, False]}]
            got = [one.copy() for one in right]
            got[0] += np.uint8(follows)
            got[2].ravel()[:changed] = True
            return _judge.compare(right, [got, got], 8, heads).reason
        for changed, follows, words in [(0, 0, ""), (2, 0, ""), (2, 90, ""), (3, 0, "output 2"), (0, 90, "output 0")]:
            self.assertEqual((words in reason(changed, follows), bool(words)), (True, bool(reason(changed, follows))), (changed, follows))
        self.assertIn("1 of 4 values", _judge.compare_array(np.zeros(4, bool), np.array([1, 0, 0, 0], bool), 0).reason)

    def test_what_is_read_over_several_operations(self):
        """The model: a convolution, a rectifier, a reshape, then the choice or a conversion to floats."""
        def model(last):
            made = _cases.build("conv2d/u8/8x8/c8-9/k3x3/same").graph
            before = made.tensors[made.outputs[0]]
            quantized = ("uint8", before.scale, before.zero_point)
            x = made.operation("RELU", 19, 2, [made.outputs[0]], Tensor((1, 8, 8, 9), *quantized))
            x = made.operation("RESHAPE", 22, 1, [x, made.constant([64, 9])], Tensor((64, 9), *quantized), options=("ReshapeOptions", {"new_shape": [64, 9]}))
            if last == "floats":
                x = made.operation("DEQUANTIZE", 6, 2, [x], Tensor((64, 9), "float32"))
                made.outputs = [made.operation("RESHAPE", 22, 1, [x, made.constant([9, 64])], Tensor((9, 64), "float32"), options=("ReshapeOptions", {"new_shape": [9, 64]}))]
            elif last == "choice":
                x = made.operation("ARG_MAX", 56, 2, [x, made.constant(1)], Tensor((64,), "int32"), options=("ArgMaxOptions", dict(output_type=2)))
                made.outputs = [made.operation("RESHAPE", 22, 1, [x, made.constant([8, 8])], Tensor((8, 8), "int32"), options=("ReshapeOptions", {"new_shape": [8, 8]}))]
            else:
                made.outputs = [made.operation("GREATER", 61, 2, [x, made.input(Tensor((64, 9), *quantized))], Tensor((64, 9), "bool"))]
            return made.file()
        for last, steps, heads in (("floats", [_cases.build("conv2d/u8/8x8/c8-9/k3x3/same").graph.tensors[-1].scale], 0), ("choice", [0.0] * 3, 1), ("comparison", [0.0] * 3, 1)):
            file = model(last)
            host = _targets.interpreter(_targets.runtime(), file, "BUILTIN_REF")
            found = _heads.with_heads(host, file)
            self.assertEqual((found[2][:1], len(found[1])), (steps[:1], heads), last)
            for bug, status in (("", "Pass"), ("bias_ignored", "Fail"), ("channel_tail", "Fail")):
                self.assertEqual(self.result(Target("delegate", PLANTED, {"bug": bug}), file).status, status, (last, bug))

    def test_floats_made_of_steps(self):
        right = np.array([0.1, 0.4], np.float32)
        for off, tolerance, step, is_right in [(0.0031, 8, 0, True), (0.0033, 8, 0, False), (0.031, 8, 0.004, True), (0.033, 8, 0.004, False)]:
            self.assertEqual(_judge.compare([right], [[right + np.float32(off)]] * 2, tolerance, steps=[step]).reason == "", is_right, (off, step))


class Outputs(unittest.TestCase):
    """Each check must look at each output."""

    def test_each_output_of_each_run(self):
        for dtype in (np.uint8, np.int16, np.int32, np.float32):
            right = [np.full((1, 2, 2, 4), 10 + at, dtype) for at in range(6)]  # three outputs for two sets of inputs
            runs = [right[:3], right[3:], right[:3]]
            self.assertEqual(_judge.compare(right, runs, 1).reason, "")
            for run in range(3):
                for output in range(3):
                    wrong = [[one.copy() for one in outputs] for outputs in runs]
                    wrong[run][output][0, 1, 1, 3] += 9
                    words = f"output {output}, inputs {run}" if run < 2 else f"output {output}: the same inputs"
                    found = _judge.compare(right, wrong, 1)
                    self.assertIn(words, found.reason)
                    self.assertEqual((found.largest, found.off, found.values), (9, 1, 96) if run < 2 else (0, 0, 96))

    def test_the_limit_of_each_type(self):
        for dtype, limit in ((np.uint8, 1), (np.int8, 1), (np.int16, 4), (np.int32, 1)):
            for more, is_right in ((limit, True), (limit + 1, False)):
                right = np.zeros(4, dtype)
                self.assertEqual(_judge.compare_array(right, right + dtype(more), 1).reason == "", is_right, (dtype, more))
                self.assertEqual(_judge.compare_array(right, right + dtype(more), 0).reason == "", False)
        right = np.array([-1000, 1], np.float32)
        for more, is_right in ((0.9, True), (1.1, False)):
            self.assertEqual(_judge.compare_array(right, right + np.float32(more), 1).reason == "", is_right, more)

    def test_sums_that_are_not_rounded(self):
        right = np.zeros(1000, np.int16)
        for high, low, is_sum, word in [(99, 0, True, ""), (100, 0, True, "nearly all too high"), (0, 100, True, "nearly all too low"), (97, 3, True, "nearly all too high"), (90, 10, True, ""),
                                        (100, 0, False, "")]:
            got = right.copy()
            got[:high] = 1
            got[high:high + low] = -1
            reason = _judge.compare([right], [[got]] * 2, 1, is_sum=is_sum).reason
            self.assertEqual((word in reason, bool(word)), (True, bool(reason)), (high, low, reason))
        self.assertEqual(_judge.compare([right[:255]], [[right[:255] + 1]] * 2, 1, is_sum=True).reason, "", "too few to tell")

    def test_bytes_behind_each_output(self):
        for which in range(3):
            before = [b"\0" * 8] * 3
            after = [b"\0" * 7 + b"\1" if at == which else b"\0" * 8 for at in range(3)]
            with unittest.mock.patch.object(_targets, "behind_outputs", side_effect=[before, after]), unittest.mock.patch.object(_targets, "run_interpreter", return_value=[]):
                with self.assertRaisesRegex(ValueError, f"behind the end of output {which}"):
                    _targets.run_guarded(None, [])

    def test_each_input_must_stay(self):
        class Host:
            def __init__(self, changed):
                self.values, self.changed = {}, changed
            def get_input_details(self):
                return [{"index": at} for at in range(3)]
            def get_output_details(self):
                return []
            def set_tensor(self, index, value):
                self.values[index] = value.copy()
            def get_tensor(self, index):
                return self.values[index]
            def reset_all_variables(self):
                pass
            def invoke(self):
                self.values[self.changed][-1] ^= 1
        for which in range(3):
            with self.assertRaisesRegex(ValueError, f"input {which} was changed"):
                _targets.run_interpreter(Host(which), [np.arange(4, dtype=np.uint8)] * 3)


class Expected(unittest.TestCase):
    def test_rows_of_process_ends_match_whatever_their_case(self):
        """The case in the name depends on how cases are grouped, which differs between runs."""
        with tempfile.TemporaryDirectory() as folder:
            baseline = Path(folder) / "baseline"
            baseline.write_text("process-end/add/u8/a,Crash\nadd/u8/a,Fail\n")
            known = _files.Expectations([str(baseline)], [], [])
        for name, status, wanted in (("process-end/sub/u8/b", "Crash", "ExpectedFail"), ("process-end/sub/u8/b", "Timeout", "Timeout"), ("sub/u8/b", "Crash", "Crash")):
            self.assertEqual(known.settle(Result(name, status, 0, "", True)).status, wanted)

    def test_what_moves_values_may_be_quantized_again_in_onnx(self):
        for name, wanted in (("concat/u8/7x9/c48-512/scales=others", 1), ("concat/u8/7x9/c48-512", 0), ("max_pool/u8/16x16/c16/k2x2/valid/relu6/zp=low", 1),
                             ("max_pool/u8/16x16/c16/k2x2/valid", 0), ("conv2d/u8/8x8/c8-8", 1)):
            self.assertEqual(_judge.tolerance_of(name, {}, True), wanted, name)
            self.assertEqual(_judge.tolerance_of(name, {"concat": 0, "max_pool": 0, "conv2d": 0}, True), 0, name)
        self.assertEqual(_judge.tolerance_of("concat/u8/7x9/c48-512/scales=others", {}), 0)

    def test_what_is_kept_of_what_a_process_prints(self):
        """The first and the last lines, and a line about an unknown option."""
        slot = _run.Slot(1, 0, 0, [], 0, "")
        for line in (b"Unknown option 'bogus', ignored\n", b"x" * 5000 + b"\n", b"the last line\n"):
            slot.hear(line)
        self.assertEqual((_run.option_lines(slot.words_kept), _run.last_line(slot.said)), ("Unknown option 'bogus', ignored", "the last line"))
        said = _run.told(slot.words_kept)
        self.assertTrue(said.startswith("Unknown option") and said.endswith("the last line") and len(said) <= _run.MOST_TOLD, said)
        short = _run.Slot(1, 0, 0, [], 0, "")
        short.hear(b"one\ntwo\n")
        self.assertEqual((_run.told(short.words_kept), _run.option_lines(short.words_kept)), ("one; two", ""))

    def test_few_values_of_a_network_may_be_further_off(self):
        right = np.full((1, 1000), 100, np.uint8)
        for off, by, is_network, is_fine in ((10, 16, True, True), (10, 16, False, False), (11, 16, True, False), (10, 17, True, False), (1000, 8, True, True), (1000, 8, False, True)):
            got = right.copy()
            got[0, :off] += by
            self.assertEqual(_judge.compare([right], [[got], [got]], 8, is_network=is_network).reason == "", is_fine, (off, by, is_network))

    def test_a_command_gets_a_model_inputs_and_outputs(self):
        for text, said in (("true {model}", "{inputs} and {outputs} are not in it"), ("true {model} {inputs}", "{outputs} is not in it")):
            with self.assertRaisesRegex(_targets.Unusable, said.replace("{", r"\{")):
                _targets.command_words(text)
        self.assertEqual(_targets.command_words("true {model} {inputs} --out={outputs}")[-1], "--out={outputs}")

    def test_failures_of_one_number_or_of_two_properties_together_are_told(self):
        def told(names, is_bad):
            return _score.breaks([Result(name, "Fail" if is_bad(name) else "Pass", taken=True) for name in names])
        channels = [f"conv2d/u8/8x8/c8-{number}/k3x3/same" for number in range(9, 40)]
        self.assertEqual(told(channels, lambda name: "-17/" in name)[0], "17 output channels: 1 of 1")
        both = [f"conv2d/u8/{size}/c8-16/k3x3/same{act}{zero}" for size in ("8x8", "9x9", "12x12") for act in ("", "/relu6") for zero in ("", "/zp=low")]
        self.assertEqual(told(both, lambda name: "relu6" in name and "low" in name)[0], "relu6 and zp low: 3 of 3")
        self.assertNotIn(" and ", told(both, lambda name: "relu6" in name)[0])

    def test_which_shards_are_missing(self):
        def missing(*fractions):
            return _files.missing_shards([{"suite": "ops", "fraction": one} for one in fractions], list("abcd"))
        self.assertEqual((missing("1/3", "2/3"), missing("3/3", "1/3", "2/3"), missing("1/1"), missing("", "1/1")), (["3/3 of ops"], [], [], []))
        with self.assertRaisesRegex(_files.BadFile, "a and c are the same shard, 1/3"):
            missing("1/3", "2/3", "1/3")

    def test_rounding_is_a_part_of_what_a_process_is_like(self):
        libm = ctypes.CDLL("libm.so.6")
        nearest = libm.fegetround()
        seen = set()
        try:
            for mode in (0, 0x400, 0x800, 0xc00) if os.uname().machine == "x86_64" else (0, 0x400000, 0x800000, 0xc00000):
                libm.fesetround(mode)
                seen.add(_process.state()["rounding mode"])
        finally:
            libm.fesetround(nearest)
        self.assertEqual(len(seen), 4)

    def test_a_deep_folder_is_removed(self):
        folder = Path(tempfile.mkdtemp())
        here = os.open(folder, os.O_RDONLY)
        for _ in range(1500):
            os.mkdir("d", dir_fd=here)
            below = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)
        _guard.remove(str(folder))
        self.assertFalse(folder.exists())


class Kept(unittest.TestCase):
    def test_what_is_kept_of_a_failing_case(self):
        class Folder:
            def __init__(self):
                self.files = {}
            def write(self, name, content):
                self.files[name] = content
        folder, name, stem = Folder(), "conv2d/u8/8x8/c3-5/k3x3/same", "failing/conv2d_u8_8x8_c3-5_k3x3_same"
        keep_case(folder, name, Target("delegate", "a b.so", {"x": "1"}), "failing", types.SimpleNamespace(tolerance=["conv2d=2", "3"], timeout=5))
        made = _cases.build(name)
        self.assertEqual(folder.files.pop(f"{stem}.tflite"), made.graph.file())
        self.assertEqual(folder.files.pop(f"{stem}.txt"), f"python3 -m skillet.conformance --delegate 'a b.so' --option x=1 --tolerance conv2d=2 --tolerance 3 --timeout 5 --case {name}\n")
        inputs = [np.load(io.BytesIO(folder.files.pop(f"{stem}.inputs{which}.npz"))) for which in (0, 1)]
        self.assertEqual(folder.files, {})
        for which, kept in enumerate(inputs):
            for index, value in zip(made.graph.inputs, made.inputs(which), strict=True):
                np.testing.assert_array_equal(kept[f"t{index}"], value)
        self.assertFalse(np.array_equal(*(one[f"t{made.graph.inputs[0]}"] for one in inputs)), "two sets")


class Ends(unittest.TestCase):
    def test_a_target_that_never_begins_is_given_up(self):
        def results(work):
            out = []
            with unittest.mock.patch.object(_run, "work", work):
                Runner(Target("kernels", "optimized"), out.append, 1, PATIENCE_SECONDS, group=1).run([Case(f"add/u8/8x8/c{at}") for at in range(1, 31)])
            return out
        with self.assertRaisesRegex(Stopped, f"{_run.HOPELESS} processes in a row ended before their first case: it ended with exit code 3, while starting"):
            results(lambda *_: os._exit(3))

        def begins(cases, known, target, descriptor):
            pipe = Pipe(descriptor)
            pipe.say("load")
            pipe.say("begin", cases[0][0])
            os._exit(3)
        self.assertEqual([one.status for one in results(begins)], ["Crash"] * 30, "it began each")

    def test_a_failure_of_any_kind_is_tried_again(self):
        real = _run.work
        for status in ("Crash", "Fail"):
            with self.subTest(status), tempfile.TemporaryDirectory() as folder:
                def once(cases, known, target, descriptor):
                    if (Path(folder) / "tried").exists():
                        return real(cases, known, target, descriptor)
                    (Path(folder) / "tried").touch()
                    pipe = Pipe(descriptor)
                    pipe.say("load")
                    pipe.say("begin", cases[0][0])
                    if status == "Fail":
                        pipe.say("failed", cases[0][0], reason="off", seconds=0)
                        pipe.say("changed", reason="")
                        pipe.say("end")
                    os._exit(0 if status == "Fail" else 3)
                results = []
                with unittest.mock.patch.object(_run, "work", once):
                    Runner(Target("kernels", "optimized"), results.append, 1, PATIENCE_SECONDS, retry=lambda result: True).run([Case("add/u8/8x8/c16")])
                self.assertEqual([(one.status, one.first, one.reason.split(":")[0]) for one in results], [("Flake", status, f"{status} at first")])

    def test_a_signal_that_another_thread_gets_waits(self):
        """Whatever the thread's signal mask, the handler runs in the main thread."""
        def stop(*_):
            raise KeyboardInterrupt
        ended, done = threading.Event(), False
        other = threading.Thread(target=ended.wait)
        other.start()
        before = signal.signal(signal.SIGTERM, stop)
        try:
            with self.assertRaises(KeyboardInterrupt), _run.stops_wait():
                signal.pthread_kill(other.ident, signal.SIGTERM)
                time.sleep(0.1)
                done = True
            self.assertTrue(done)
            self.assertIs(signal.getsignal(signal.SIGTERM), stop)
        finally:
            signal.signal(signal.SIGTERM, before)
            ended.set()
            other.join()

    def test_a_signal_waits_until_a_process_is_forgotten(self):
        """The process's folder is removed, whenever the signal arrives."""
        def stop(*_):
            raise KeyboardInterrupt
        for owner, name in ((_run, "end_children"), (_run, "remove")):
            real, sent = getattr(owner, name), []

            def then(*args, **options):
                if not sent:
                    sent.append(os.kill(os.getpid(), signal.SIGTERM))
                return real(*args, **options)
            with self.subTest(name), tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(tempfile, "tempdir", folder), unittest.mock.patch.object(owner, name, then):
                before = signal.signal(signal.SIGTERM, stop)
                try:
                    with self.assertRaises(KeyboardInterrupt):
                        Runner(Target("kernels", "optimized"), lambda result: None, 1, PATIENCE_SECONDS).run([Case("add/u8/8x8/c16")])
                finally:
                    signal.signal(signal.SIGTERM, before)
                self.assertEqual((list(Path(folder).iterdir()), len(sent)), ([], 1))


class Reports(unittest.TestCase):
    """Each status in each format."""
    WORDS = {  # JUnit's element, KTAP's line, LAVA's result, KCIDB's status, whether it is in failures.csv
        "Pass": ("system-out", "ok 1 a$", "pass", "PASS", False), "Fail": ("failure", "not ok 1 a$", "fail", "FAIL", True), "Crash": ("error", "not ok 1 a # ERROR why", "fail", "ERROR", True),
        "Error": ("error", "not ok 1 a # ERROR why", "fail", "ERROR", True), "Timeout": ("error", "not ok 1 a # TIMEOUT why", "fail", "ERROR", True), "Skip": ("skipped", "ok 1 a # SKIP why", "skip", "SKIP", False),
        "Flake": ("system-out", "ok 1 a$", "pass", "PASS", True), "ExpectedFail": ("skipped", "not ok 1 a # XFAIL why", "pass", "PASS", False),
        "UnexpectedImprovement": ("failure", "not ok 1 a$", "fail", "ERROR", True)}

    def test_each_status_in_each_form(self):
        from skillet.conformance import _files
        self.assertEqual(set(self.WORDS), {"Pass", *_files.LISTED})
        for status, (element, line, result, kcidb, is_listed) in self.WORDS.items():
            with self.subTest(status):
                rows = [Result("a", status, 1, "why", True)]
                suite = xml.etree.ElementTree.fromstring(_result_files.junit(rows, "t", "g"))
                self.assertEqual([kind for kind in ("failure", "error", "skipped") if suite.get(kind if kind == "skipped" else kind + "s") == "1"], [element] if element != "system-out" else [])
                case = suite.find(".//testcase")
                self.assertEqual([one.tag for one in case], [element])
                self.assertRegex(_result_files.ktap(rows).splitlines()[-1], f"^{line}")
                self.assertIn(f"TEST_CASE_ID=a RESULT={result} ", _result_files.lava(rows, "g"))
                self.assertEqual(json.loads(_result_files.kcidb(rows, "g", "o", "", "d"))["tests"][0]["status"], kcidb)
                self.assertEqual(_files.failures_csv(rows), f"a,{status}\n" * is_listed)
                self.assertEqual(_result_files.github(rows, "t").count("::error"), status in _result_files.UNEXPECTED)


class Reduces(unittest.TestCase):
    def test_a_value_that_is_no_usual_one_is_made_usual(self):
        found = _reduce.candidates(_cases.parse("softmax/u8/8x8/c16/beta=0.5"), "beta")
        self.assertEqual([one["beta"] for one in found], ["1", "0.25"])

    def test_a_smaller_case_fails_in_the_same_way(self):
        """The smaller cases of this target fail in different ways."""
        for first in ("Fail", "Crash", "Timeout"):
            for other in ("Fail", "Crash", "Timeout", "Pass", "Skip"):
                reducer = Reducer(Target("kernels", "xnnpack"), 1, 1, {})
                name = "relu/u8/8x8/c16"
                with unittest.mock.patch.object(Reducer, "results", lambda self, names: {one: Result(one, first if one == name else other) for one in names}):
                    smallest, result = reducer.reduce(name, lambda text: None)
                self.assertEqual((smallest == name, result.status), (first != other, first), (first, other))


if __name__ == "__main__":
    sys.exit(0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1)
