#!/usr/bin/env python3
"""Runs one model on the peer's driver (tests/peer), as a --command of skillet.conformance. scores_page.py makes its root before.

usage: peer_command.py CHIP VIRTUAL_LIBRARY MODEL INPUTS.npz OUTPUTS.npz     exit code 77: the driver started no job
"""
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/peer"))
import cases  # noqa: E402
import runner  # noqa: E402
from judge import JOB  # noqa: E402

NO_JOB = 77


def main():
    chip, virtual, model, inputs, outputs = sys.argv[1:]
    folder = ROOT / "build/peer-root"
    programs = runner.Runner(folder, folder / "root", Path(virtual).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        files = []
        with np.load(inputs) as file:
            for at, name in enumerate(file.files):
                files.append(Path(scratch) / f"in{at}")
                files[-1].write_bytes(file[name].tobytes())
        done = programs.peer(cases.Case("case", Path(model), files, []), chip)
    if done.code < 0 or done.code >= 128:
        os.kill(os.getpid(), signal.SIGABRT if done.code == -signal.SIGABRT else signal.SIGSEGV)
    if done.code != 0:
        sys.exit(done.log[-300:])
    if not JOB.search(done.log):
        return NO_JOB
    kinds = re.findall(r"^output \d+ (\w+) \d+$", done.log, re.MULTILINE)
    types = {"UINT8": np.uint8, "INT8": np.int8, "FLOAT32": np.float32, "INT32": np.int32, "INT16": np.int16}
    np.savez(outputs, **{f"o{at}": np.frombuffer(data, types[kind]) for at, (kind, data) in enumerate(zip(kinds, done.outputs))})
    return 0


if __name__ == "__main__":
    sys.exit(main())
