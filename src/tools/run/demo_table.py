#!/usr/bin/env python3
"""Prints the last table of ./x demo, from `skillet run --compare=layers --json` on stdin. A picture's name starts with its digit."""
import json
import sys

report = json.load(sys.stdin)
right, worst = 0, 0
print("  picture     expected  recognised  score   NPU against CPU")
for run in report["runs"]:
    output = run["outputs"][0]
    best, difference = output["top"][0], output["max_difference"]
    expected = run["input"][0]
    ok = best["label"] == expected
    right += ok
    worst = max(worst, difference)
    print(f"  {run['input']:<10}  {expected:<8}  {best['label']:<10}  {best['score']:.4f}  "
          f"{'identical' if difference == 0 else f'differs by {difference:g} of 255'}{'' if ok else '   WRONG'}")

npu_parts = [part for part in report["parts"] if part["where"] == "npu"]
compile_ms = sum(part["compile_ms"] for part in npu_parts)
run_ms = sorted(ms for run in report["runs"] for ms in run["run_ms"])[len(report["runs"]) // 2]
layers = [layer["max_difference"] for run in report["runs"] for layer in run.get("layers", []) if layer["compared"]]
print(f"\n{right} of {len(report['runs'])} digits recognised on {report['device']}")
print(f"each NPU operation is within {max(layers, default=0):g} of the CPU kernel given the same input "
      f"({len(layers)} compared); over the network that adds up to {worst:g} of 255 in the scores")
print(f"{report['npu_ops']} of {report['npu_ops'] + report['cpu_ops']} operations ran on the NPU ({report['jobs']} jobs); "
      f"compiled in {compile_ms:.1f} ms; one picture simulated in {run_ms:.1f} ms")
sys.exit(0 if right == len(report["runs"]) and npu_parts else 1)
