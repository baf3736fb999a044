#!/usr/bin/env python3
"""`skillet eval --against` another delegate, in the runtimes from PyPI: ours, one that does nothing, and ones that go wrong.

usage: eval_test.py SKILLET DELEGATE COMPILER [--build DIR]     Exit code 77: nothing could be tested.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import environment

ROOT = Path(__file__).resolve().parents[2]
MODEL, DATA = "models/digits.tflite", "models/digits"
FINE, FAILED, CANNOT_BEGIN = 0, 1, 2
# A delegate that claims nothing, claims the given operations but computes nothing ("take:1,2"), or fails in other ways. The host's structures:
# tflite_abi.h.
SOURCE = r"""
#include "frontend/tflite_delegate/tflite_abi.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unistd.h>
static const char* what = "";
static TfLiteStatus nothing(TfLiteContext*, TfLiteNode*) { return kTfLiteOk; }
static TfLiteStatus take(TfLiteContext* context, TfLiteDelegate* delegate, const char* list) {
  auto* nodes = static_cast<TfLiteIntArray*>(std::calloc(100, sizeof(int)));
  for (char* end = nullptr; *list != 0; list = *end == 0 ? end : end + 1)
    nodes->data()[nodes->size++] = static_cast<int>(std::strtol(list, &end, 10));
  TfLiteRegistration kernel{};
  kernel.prepare = kernel.invoke = nothing;
  kernel.custom_name = "Taker";
  kernel.version = 1;
  const TfLiteStatus status = context->ReplaceNodeSubsetsWithDelegateKernels(context, kernel, nodes, delegate);
  std::free(nodes);
  return status;
}
static TfLiteStatus prepare(TfLiteContext* context, TfLiteDelegate* delegate) {
  if (std::strncmp(what, "take:", 5) == 0) return take(context, delegate, what + 5);
  if (std::strcmp(what, "unwilling") == 0) return kTfLiteError;
  std::printf("prints to standard output\n");
  std::fflush(stdout);
  return kTfLiteOk;
}
extern "C" __attribute__((visibility("default"))) TfLiteDelegate* tflite_plugin_create_delegate(
    const char* const* keys, const char* const* values, size_t count, void (*report)(const char*)) {
  what = count == 0 ? "" : strdup(values[0]);
  if (std::strcmp(what, "crash") == 0) std::abort();
  if (std::strcmp(what, "exit") == 0) { std::fprintf(stderr, "no device\nis here\n"); _exit(3); }
  if (std::strcmp(what, "none") == 0) { report("no such chip"); return nullptr; }
  auto* out = static_cast<TfLiteDelegate*>(std::calloc(1, 128));
  out->Prepare = prepare;
  return out;
}
extern "C" __attribute__((visibility("default"))) void tflite_plugin_destroy_delegate(TfLiteDelegate* one) { std::free(one); }
"""


class Against(unittest.TestCase):
    def eval_text(self, *args):
        return subprocess.run([SKILLET, "eval", MODEL, "--data", DATA, "--device", "sim:a311d", "--python", PYTHON, *args], cwd=ROOT,
                              capture_output=True, text=True, timeout=200, check=True).stdout

    def eval(self, *args, device="sim:a311d", **variables):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SKILLET_")}
        done = subprocess.run([SKILLET, "eval", MODEL, "--data", DATA, "--device", device, "--json", "--python", PYTHON, *args], cwd=ROOT,
                              env={**kept, "SKILLET_PARTITION": "all", **variables}, capture_output=True, text=True, timeout=200, check=False)
        return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr

    def test_the_same_npu_in_a_host_gives_the_same_bits(self):
        option = ["--delegate-option", "device=sim:a311d", "--delegate-option", "min_macs_per_byte=0"]
        code, report, err = self.eval("--against", DELEGATE, *option)
        self.assertEqual((code, report.get("largest_difference"), report.get("equal")), (FINE, 0, 1), err)
        self.assertEqual((report["against_claimed"], report["against_npu_ops"], report["against_cpu_ops"]), (list(range(13)), 13, 1))
        self.assertRegex(report["against"], r"^libskillet\.so in (ai-edge-litert|tflite-runtime) \d")
        code, report, err = self.eval("--against", DELEGATE, SKILLET_DEVICE="sim:rk3588", SKILLET_PARTITION="all")
        own = self.eval("--against", "sim:rk3588")[1]
        self.assertEqual([report[key] for key in ("equal", "cosine", "largest_difference", "worst_picture")],
                         [own[key] for key in ("equal", "cosine", "largest_difference", "worst_picture")], err)

    def test_one_that_claims_nothing_gives_those_of_the_runtime(self):
        code, report, err = self.eval("--against", DUMMY, device="cpu")
        self.assertEqual((code, err), (FINE, ""))
        self.assertEqual((report["pictures"], report["same_class"]), (10, 10))
        self.assertEqual((report["against_claimed"], report["against_npu_ops"], report["against_cpu_ops"]), ([], 0, 14))
        self.assertGreater(report["cosine"], 0.999)  # its kernels may round differently from the reference kernels
        self.assertLess(report["cosine"] - self.eval("--against", DUMMY)[1]["cosine"], 0.01)

    def test_what_the_other_one_took_is_told(self):
        """Each subset of operations that it claims is reported, in one part or several. Claiming nothing is a failure if an NPU is required."""
        for what, claimed, words in [("take:3", [3], "1 of the 14 operations (3)"), ("take:1,2,3,7,12", [1, 2, 3, 7, 12], "5 of the 14 operations (1-3, 7, 12)"),
                                     ("take:13", [13], "1 of the 14 operations (13)")]:
            with self.subTest(what=what):
                option = ["--against", DUMMY, "--delegate-option", f"what={what}"]
                code, report, err = self.eval(*option, "--require-npu")
                self.assertEqual((code, report.get("against_claimed"), report.get("against_cpu_ops")), (FINE, claimed, 14 - len(claimed)), err)
                self.assertIn(f"it took {words}; the runtime's CPU kernels ran the others\n", self.eval_text(*option))
        self.assertIn("it took none of the 14 operations: the comparison is with the runtime's CPU kernels; it said: prints to standard output\n", self.eval_text("--against", DUMMY))
        code, report, err = self.eval("--against", DUMMY, "--require-npu")
        self.assertEqual((code, report["against_claimed"], err.count("\n"), "libdummy.so in" in err), (FAILED, [], 1, True), err)
        self.assertEqual(self.eval("--require-npu", device="cpu")[0], FAILED)
        self.assertEqual(self.eval("--require-npu")[0], FINE)
        self.assertNotIn("against_npu_ops", self.eval()[1])
        other = self.eval("--against", "sim:rk3588")[1]
        self.assertEqual((other["against_npu_ops"] > 0, "against_claimed" in other), (True, False))

    def test_how_often_the_other_one_is_right(self):
        with tempfile.TemporaryDirectory() as folder:
            truth = Path(folder) / "truth"
            truth.write_text("".join(f"{i}.png {i}\n" for i in range(9)) + "9.png 3\n")
            report = self.eval("--against", DUMMY, "--labels", str(truth))[1]
        self.assertEqual((report["top1"], report["against_top1"], "cpu_top1" in report), (9, 9, False))

    def test_what_goes_wrong_there_is_an_error_here(self):
        rows = [("crash", "libdummy.so: its host ended with signal 6 (Aborted)"), ("exit", "libdummy.so: its host ended with exit code 3: is here"),
                ("none", "no such chip"), ("unwilling", "libdummy.so: ")]
        for what, words in rows:
            with self.subTest(what=what):
                code, _, err = self.eval("--against", DUMMY, "--delegate-option", f"what={what}")
                self.assertEqual((code, err.count("\n"), words in err), (CANNOT_BEGIN, 1, True), err)
        code, _, err = self.eval("--against", "/nowhere/libx.so")
        self.assertEqual((code, err.count("\n"), "/nowhere/libx.so" in err), (CANNOT_BEGIN, 1, True), err)


def main():
    global SKILLET, DELEGATE, DUMMY, PYTHON
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("skillet", "delegate", "compiler"):
        parser.add_argument(name)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    args = parser.parse_args()
    python = environment.python_with_runtimes(args.build / "venv")
    if python is None:
        return 77
    with tempfile.TemporaryDirectory() as folder:
        source, DUMMY = Path(folder) / "dummy.cpp", str(Path(folder) / "libdummy.so")
        source.write_text(SOURCE)
        subprocess.run([args.compiler, "-std=c++20", "-shared", "-fPIC", "-I", str(ROOT / "src"), str(source), "-o", DUMMY], check=True)
        SKILLET, DELEGATE, PYTHON = args.skillet, args.delegate, str(python)
        return 0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
