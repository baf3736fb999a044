#!/usr/bin/env python3
"""Runs the preloaded libraries of another architecture in an emulator.

A recorded job runs on the virtual node, and is recorded again.

usage: emulated_test.py EMULATOR PROBE VIRTUAL_LIBRARY RECORD_LIBRARY SOURCE_DIR
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

emulator, probe, virtual_library, record_library, source = sys.argv[1:]
case = Path(source) / "tests/captures/a311d_conv1x1_relu6_u8"
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "job.skcap"
    command = [emulator, "-E", f"LD_PRELOAD={record_library}:{virtual_library}", "-E", f"SKILLET_CAPTURE_FILE={path}",
               probe, str(case)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, env=dict(os.environ, TMPDIR=folder))
    lines = result.stdout.splitlines()
    if lines.count("output right") != 2 or len(lines) != 16 or not path.exists():
        sys.exit(f"{' '.join(command)}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    if path.stat().st_size < 1000 or not path.read_bytes().startswith(b"SKILCAP\n"):
        sys.exit(f"{path}: not a capture with a job in it")
print("\n".join(lines))
