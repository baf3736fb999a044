"""The arguments of `python3 -m skillet.conformance`. Needs no NumPy, so that --help works without it."""

from __future__ import annotations

import argparse
import os

TIMEOUT_SECONDS = 60  # for a case
EXAMPLES = """examples:
  python3 -m skillet.conformance --delegate /usr/lib/teflon/libteflon.so -o out
  python3 -m skillet.conformance --delegate libskillet.so --option device=sim:a311d --option partition=all --option unproven=take -o out
  python3 -m skillet.conformance --kernels xnnpack --suite grid --fraction 1/10 -o out1
  python3 -m skillet.conformance --merge out1 out2 -o all
  python3 -m skillet.conformance --delegate libteflon.so --reduce conv2d/u8/17x17/c16-16/k3x3/s2/same -o small

Exit codes: 0 all as expected; 1 a failure, or nothing was tested; 2 it could not begin.
docs/conformance.md says what the files in DIR are."""


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="python3 -m skillet.conformance", description="Runs generated models on any NPU stack and compares with the reference kernels.",
                                  epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    what = out.add_argument_group("what is tested").add_mutually_exclusive_group()
    what.add_argument("--delegate", metavar="PATH", help="a TensorFlow Lite external delegate")
    what.add_argument("--device", metavar="D", help="a device of Skillet, such as npu or sim:a311d")
    what.add_argument("--onnx-ep", metavar="PATH", help="an execution provider of ONNX Runtime: a plug-in library, or the name of one that it has")
    what.add_argument("--command", metavar="CMD", help='a command with {model}, {inputs} and {outputs}: a .tflite and two .npz files')
    what.add_argument("--kernels", choices=("xnnpack", "optimized"), help="the runtime's own fast kernels")
    what.add_argument("--merge", metavar="DIR", nargs="+", help="join the results of runs")
    out.add_argument("--option", metavar="K=V", action="append", default=[], help="for the delegate or the device")
    out.add_argument("--suite", default="ops", metavar="ops|grid|nets|DIR", help="ops (default): all operations; grid: many more; nets: networks of a few operations; a folder of .tflite files")
    out.add_argument("--case", metavar="NAME", action="append", help="this case alone")
    out.add_argument("--only", metavar="REGEX", help="cases whose name has a match")
    out.add_argument("--fraction", metavar="K/N", default="1/1", help="every Nth case, from the Kth on")
    out.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes at once (default: the CPUs)")
    out.add_argument("--timeout", type=float, default=TIMEOUT_SECONDS, metavar="S", help=f"seconds for one case ({TIMEOUT_SECONDS})")
    out.add_argument("--tolerance", metavar="[OP=]N", action="append", default=[], help="steps, in place of the table's (of one operation)")
    for name, what_it_has in (("baseline", "lines NAME,STATUS: failures that are expected"), ("flakes", "regular expressions: may fail"),
                              ("skips", "regular expressions: are not run")):
        out.add_argument(f"--{name}", metavar="F", action="append", default=[], help=what_it_has)
    out.add_argument("--continue", dest="go_on", action="store_true", help="with the results that DIR has")
    out.add_argument("--reduce", metavar="NAME", help="make a failing case minimal")
    out.add_argument("--list", action="store_true", help="print the names of the cases, run nothing")
    out.add_argument("--json", action="store_true", help="print the report as JSON")
    out.add_argument("-o", "--output", metavar="DIR", help="folder of the results")
    return out
