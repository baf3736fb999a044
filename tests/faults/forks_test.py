#!/usr/bin/env python3
"""Calls fork() while threads run a model, on simulated and on virtual devices: no child hangs, whatever it does.

usage: forks_test.py SKILLET FORKS DEVICE     DEVICE: sim:CHIP, or virtual:CHIP for a virtual node
FORKS=200 sets the number of forks (20)
"""
import os
import subprocess
import sys
from pathlib import Path

SKILLET, FORKS, DEVICE = sys.argv[1:4]
COUNT = os.environ.get("FORKS", "20")
SEED = "7"
MODEL = str(Path(__file__).parents[2] / "models/digits.tflite")


def main():
    kind, chip = DEVICE.split(":")
    command = [FORKS, "npu" if kind == "virtual" else DEVICE, MODEL, COUNT, SEED]
    if kind == "virtual":
        command = [SKILLET, "virtual", "--chip", chip, "--", *command]
    sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
