"""What the programs of this folder know of a boot of `./x kernel`."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNEL = [sys.executable, str(ROOT / "src/lab/mmio/linux/kernel.py"), "--built"]
NODES = {"a311d": "/dev/dri/renderD128", "imx8mp": "/dev/dri/renderD128", "rk3588": "/dev/accel/accel0", "imx93": "/dev/accel/accel0"}
TRIES = 6


def lost_a_read(done):
    """Whether user-mode Linux's bus did, by its own word: what follows judges the bus, not a driver."""
    return "the bus lost a read" in done.stderr


def with_a_whole_bus(boot):
    """What BOOT gives, a finished process, as soon as its bus has lost no read."""
    for _ in range(TRIES):
        done = boot()
        if not lost_a_read(done):
            break
    return done


def best_variant():
    """Options of the kernel that is built: that with the address sanitizer, or the other one; None where there is none."""
    for variant in (["--kasan"], []):
        if subprocess.run([*KERNEL, *variant], capture_output=True, check=False).returncode == 0:
            return variant
    print("skipped: no kernel is built; ./x kernel --kasan builds it")
    return None
