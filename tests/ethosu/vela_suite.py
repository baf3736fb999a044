#!/usr/bin/env python3
"""Compiles models with Arm's Vela, runs them on simulated Ethos-U chips, and compares with TensorFlow Lite's reference kernels.

usage: vela_suite.py VELA SKILLET [--models FILE...] [--ops N [--only NAME]] [--accelerators A,B] [--optimise Size,Performance]
                     [--arena BYTES,...] [--draw N] [--seeds N] [--keep FOLDER]

VELA: the command of ethos-u-vela 5.2.0. Needs tflite-runtime 2.14.0 (else ai-edge-litert, which rounds the sums of
FULLY_CONNECTED differently from Vela), NumPy and, for --ops, flatc. --arena: sizes of memory that Vela
may use, 0 for its own choice; a program that Vela made before is not run again. --draw: each model gets N of all settings
(accelerator, goal, arena), drawn so that all settings have equal shares. Prints a line for each model and setting, and how many
of all values are equal. Exit code 1 if any differs; refusals by Vela or Skillet are counted.
"""
import argparse
import collections
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

try:
    from tflite_runtime.interpreter import Interpreter, OpResolverType
except ImportError:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

# Default of --accelerators; ethos-u85-128 to -2048 must be named.
ACCELERATORS = "ethos-u55-32,ethos-u55-64,ethos-u55-128,ethos-u55-256,ethos-u65-256,ethos-u65-512"


def inputs_of(details, seed):
    random = np.random.default_rng(seed)
    for one in details:
        dtype = one["dtype"]
        if np.issubdtype(dtype, np.integer):
            yield random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, one["shape"]).astype(dtype)
        else:
            yield random.normal(size=one["shape"]).astype(dtype)


class Reference:
    """Runs the original model with the reference kernels."""

    def __init__(self, model):
        self.interpreter = Interpreter(str(model), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        self.interpreter.allocate_tensors()

    def run(self, seed):
        inputs = list(inputs_of(self.interpreter.get_input_details(), seed))
        for one, values in zip(self.interpreter.get_input_details(), inputs):
            self.interpreter.set_tensor(one["index"], values)
        self.interpreter.invoke()
        return inputs, [self.interpreter.get_tensor(one["index"]) for one in self.interpreter.get_output_details()]


class Suite:
    def __init__(self, options, folder):
        self.options, self.folder, self.counts, self.reasons = options, folder, collections.Counter(), collections.Counter()
        self.known = set()  # programs of the current model that have run
        self.settings = list(itertools.product(*(one.split(",") for one in (options.accelerators, options.optimise, options.arena))))
        self.deck, self.random = [], np.random.default_rng(0)

    def drawn(self):
        """Returns the settings for one model."""
        if not self.options.draw:
            return self.settings
        while len(self.deck) < self.options.draw:
            self.deck += [self.settings[i] for i in self.random.permutation(len(self.settings))]
        drawn, self.deck = self.deck[:self.options.draw], self.deck[self.options.draw:]
        return drawn

    def compile(self, model, accelerator, optimise, arena):
        """Returns the compiled file. None: Vela leaves everything to the CPU, or fails."""
        size = [] if arena == "0" else ["--arena-cache-size", arena]
        done = subprocess.run([self.options.vela, str(model), "--accelerator-config", accelerator, "--optimise", optimise,
                               "--output-dir", str(self.folder), *size], capture_output=True, text=True, check=False)
        made = self.folder / f"{model.stem}_vela.tflite"
        return made if done.returncode == 0 and made.exists() and b"ethos-u" in made.read_bytes() else None

    def run(self, model, accelerator, inputs):
        command = [self.options.skillet, "run", str(model), "--device", f"sim:{accelerator}", "--output",
                   str(self.folder / "out.npz")]
        for i, values in enumerate(inputs):
            np.save(self.folder / f"in{i}.npy", values)
            command += ["--input", str(self.folder / f"in{i}.npy")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ, SKILLET_PARTITION="all"))
        if done.returncode != 0:
            return None, done.stderr.strip()
        results = np.load(self.folder / "out.npz")
        return [results[name] for name in results.files], ""

    def compare(self, model, reference, accelerator, optimise, arena, name):
        made = self.compile(model, accelerator, optimise, arena)
        optimise = optimise if arena == "0" else f"{optimise} {arena}"
        if made is None:
            self.tell(name, accelerator, optimise, "not taken by Vela")
            return
        if made.read_bytes() in self.known:
            self.counts["the same program again"] += 1
            return
        self.known.add(made.read_bytes())
        same = total = 0
        for seed in range(self.options.seeds):
            inputs, expected = reference.run(seed)
            got, failure = self.run(made, accelerator, inputs)
            if got is None:
                self.reasons[failure.split(": ", 2)[-1][:160]] += 1
                self.tell(name, accelerator, optimise, "refused", failure)
                return
            for a, b in zip(expected, got):
                same += int((a.reshape(-1) == b.reshape(-1)).sum())
                total += a.size
        self.counts["same"] += same
        self.counts["total"] += total
        self.tell(name, accelerator, optimise, "identical" if same == total else "differs", f"{same} of {total}")

    def tell(self, name, accelerator, optimise, what, more=""):
        self.counts[what] += 1
        if what != "not taken by Vela" or self.options.models:
            print(f"{name:44} {accelerator:14} {optimise:19} {what:18} {more}", flush=True)

    def run_all(self, model, name):
        try:
            reference = Reference(model)
        except (RuntimeError, ValueError) as problem:
            self.counts["not taken by LiteRT"] += 1
            print(f"{name:44} {str(problem)[:100]}")
            return
        self.known.clear()
        for setting in self.drawn():
            self.compare(model, reference, *setting, name)

    def run_ops(self):
        import vela_ops
        for name, make in vela_ops.OPS.items():
            if self.options.only not in name:
                continue
            for seed in range(self.options.ops):
                model = self.folder / f"{name}_{seed}.tflite"
                model.write_bytes(vela_ops.model_bytes(make(np.random.RandomState(seed))))
                self.run_all(model, model.stem)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vela")
    parser.add_argument("skillet")
    parser.add_argument("--models", nargs="*", default=[], type=pathlib.Path)
    parser.add_argument("--ops", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--accelerators", default=ACCELERATORS)
    parser.add_argument("--optimise", default="Size,Performance")
    parser.add_argument("--arena", default="0")
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(options, options.keep or pathlib.Path(folder))
        suite.folder.mkdir(exist_ok=True)
        for model in options.models:
            suite.run_all(model, model.stem)
        suite.run_ops()
    for reason, count in suite.reasons.most_common():
        print(f"{count} times refused: {reason}")
    counts = suite.counts
    print(", ".join(f"{what} {counts[what]}" for what in ("identical", "differs", "refused", "not taken by Vela", "not taken by LiteRT",
                                                        "the same program again")))
    print(f"{counts['same']} of {counts['total']} results are the same")
    return 1 if counts["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
