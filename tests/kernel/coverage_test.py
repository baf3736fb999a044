#!/usr/bin/env python3
"""Counts of gcov, read and added up as `./x kernel --coverage` does. usage: coverage_test.py SOURCE"""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "src/lab/mmio/linux"))
import coverage  # noqa: E402

PROGRAM = """int used(int a) {
  return a > 0 ? 2
               : 3;
}
int unused(void) {
  return 7;
}
int main(void) { return used(1) - 2; }
"""


class Coverage(unittest.TestCase):
    def test_counts_of_boots_are_added_up(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            vmlinux, out, counts = folder / "vmlinux-1", folder / "out", folder / "counts"
            place = "drivers/accel/rocket"
            (out / place).mkdir(parents=True)
            (counts / place).mkdir(parents=True)
            (out / place / "rocket_job.c").write_text(PROGRAM)
            subprocess.run(["gcc", "--coverage", "-c", f"{place}/rocket_job.c", "-o", f"{place}/rocket_job.o"], cwd=out, check=True)
            subprocess.run(["gcc", "--coverage", f"{place}/rocket_job.o", "-o", "program"], cwd=out, check=True)
            coverage.keep_notes(out, vmlinux)
            never = coverage.update(folder / "counts.json", vmlinux, counts)
            self.assertEqual(set(never["files"][f"{place}/rocket_job.c"]["functions"].values()), {0})
            for boot in (1, 2):
                subprocess.run(["./program"], cwd=out, check=True)
                (out / place / "rocket_job.gcda").replace(counts / place / "rocket_job.gcda")
                known = coverage.update(folder / "counts.json", vmlinux, counts)
                file = known["files"][f"{place}/rocket_job.c"]
                self.assertEqual(file["functions"], {"used": boot, "unused": 0, "main": boot})
                self.assertEqual(file["lines"]["6"], 0)
            self.assertEqual(known["boots"], 3)
            self.assertEqual(coverage.table(known)[1:], [f"{place + '/rocket_job.c':44} {'2 of 3':>12} {'3 of 5':>14}", "  never run: unused"])
            with self.assertRaisesRegex(RuntimeError, "vmlinux-1, not vmlinux-2"):
                coverage.update(folder / "counts.json", folder / "vmlinux-2", counts)


if __name__ == "__main__":
    if shutil.which("gcov") is None or shutil.which("gcc") is None:
        print("skipped: no gcc and gcov")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
