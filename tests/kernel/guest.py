"""Helpers of the programs in this folder for boots of `./x kernel`."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNEL = [sys.executable, str(ROOT / "src/lab/mmio/linux/kernel.py"), "--built"]
NODES = {"a311d": "/dev/dri/renderD128", "imx8mp": "/dev/dri/renderD128", "rk3588": "/dev/accel/accel0", "imx93": "/dev/accel/accel0"}
TRIES = 6


def lost_a_read(done):
    """Returns whether user-mode Linux reported that its bus lost a read. The results are then not the driver's fault."""
    return "the bus lost a read" in done.stderr


def with_a_whole_bus(boot):
    """Calls BOOT, which returns a finished process, until its bus has lost no read."""
    for _ in range(TRIES):
        done = boot()
        if not lost_a_read(done):
            break
    return done


def best_variant():
    """Returns the options of the built kernel, preferably that with the address sanitizer. None: no kernel is built."""
    for variant in (["--kasan"], []):
        if subprocess.run([*KERNEL, *variant], capture_output=True, check=False).returncode == 0:
            return variant
    print("skipped: no kernel is built; ./x kernel --kasan builds it")
    return None
