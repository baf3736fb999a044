#!/usr/bin/env python3
"""What Skillet compiles for Arm Ethos-U beside what Arm's Vela does, by the same timing model.

usage: vela_bench.py SKILLET VELA [--accelerators A,B] [--kept FOLDER] MODEL...     VELA: the command of ethos-u-vela 5.2.0

A row: what the chip takes, bytes of constants, the most bytes that tensors have at a time (arena and memory on the chip), CPU time
of the whole compiler as a process, the least of three; each as Skillet's and the ratio Skillet : Vela. Only what both have on the
chip is compared: operations that one of them leaves to the CPU are named in the second column.
"""
import argparse
import json
import pathlib
import resource
import subprocess
import tempfile

ACCELERATORS = "ethos-u55-64,ethos-u55-256,ethos-u65-256,ethos-u65-512"
HEAD = ("| network | accelerator | operations left to the CPU | ms | : Vela | constants, bytes | : Vela | tensors, bytes | : Vela | compiler, s | : Vela |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")


def run(command):
    """Runs a command. Returns its output and its CPU seconds. Raises RuntimeError if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, timeout=600, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def best_of_three(command):
    return min((run(command) for _ in range(3)), key=lambda one: one[1])


def measured(skillet, model, chip, folder):
    """Returns the model's costs on the chip, and the CPU seconds of its compilation. Vela may have made the model."""
    options = [model, "--device", f"sim:{chip}", "--partition", "all", "--json"]
    text, seconds = best_of_three([skillet, "compile", *options, "-o", folder / "out.skp"])
    made = json.loads(text)
    plan = json.loads(run([skillet, "plan", model, "--chip", chip, "--partition", "all", "--json"])[0])["chips"][0]
    parts = made["parts"]
    # Vela's parts share one memory, and one list of constants.
    of_parts = max if any(one["kind"] == "Vela program" for part in parts for one in part["operations"]) else sum
    return {"ms": plan["device_ms"], "cpu_ops": plan["cpu_ops"],
            "constants": of_parts(one["constant_bytes"] - one["command_bytes"] for one in parts),
            "tensors": of_parts(one["scratch_bytes"] + one["on_chip_bytes"] for one in parts), "s": seconds}


def by_vela(skillet, vela, model, accelerator, kept):
    made = kept / accelerator / f"{model.stem}_vela.tflite"
    seconds = 0.0
    times = made.with_suffix(".seconds")
    if not times.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        seconds = best_of_three([vela, model, "--accelerator-config", accelerator, "--output-dir", made.parent])[1]
        times.write_text(str(seconds))
    return measured(skillet, made, accelerator, kept) | {"s": float(times.read_text())}


def row_of(skillet, vela, model, accelerator, kept):
    ours = measured(skillet, model, accelerator, kept)
    try:
        theirs = by_vela(skillet, vela, model, accelerator, kept)
    except RuntimeError as error:
        return f"| {model.stem} | {accelerator} | {ours['cpu_ops']} | {ours['ms']:.2f} | not compared: {error} | | | | | | |"
    cells = [model.stem, accelerator, f"{ours['cpu_ops']} (Vela's: {theirs['cpu_ops']})"]
    for key, text in (("ms", "{:.2f}"), ("constants", "{:,}"), ("tensors", "{:,}"), ("s", "{:.2f}")):
        cells += [text.format(ours[key]), f"{ours[key] / theirs[key]:.2f}"]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skillet", type=pathlib.Path)
    parser.add_argument("vela", type=pathlib.Path)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--accelerators", default=ACCELERATORS)
    parser.add_argument("--kept", type=pathlib.Path, help="where Vela's files stay for the next call")
    args = parser.parse_args()
    if args.kept:
        args.kept.mkdir(parents=True, exist_ok=True)
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        for accelerator in args.accelerators.split(","):
            for model in args.models:
                print(row_of(args.skillet, args.vela, model, accelerator, args.kept or pathlib.Path(folder)), flush=True)


if __name__ == "__main__":
    main()
