#!/usr/bin/env python3
"""Tests the script ./x.

It reports its progress when the compiler's output is hidden, keeps the exit code, and builds for the demo what README.md continues with.

usage: x_test.py      run at the top of the source tree
"""
import re
import subprocess
import unittest
from pathlib import Path

SCRIPT = Path("x").read_text()


def function(name):
    return re.search(rf"^{name}\(\) {{\n.*?^}}\n", SCRIPT, re.M | re.S)[0]


def run(call, seconds="0.2"):
    text = f"set -euo pipefail\n{SCRIPT[SCRIPT.index('say()'):SCRIPT.index('usage()')]}\n{function('watched')}\n{call}\n"
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin", "X_PROGRESS_SECONDS": seconds})


class X(unittest.TestCase):
    def setUp(self):
        self.log = subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip() + "/log"

    def test_long_work_is_seen(self):
        done = run(f"watched {self.log} bash -c 'for i in 1 2 3; do echo \"[$i/3] Building\"; sleep 0.5; done'; echo after")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        # On a busy machine a step may pass unseen.
        self.assertGreaterEqual(len({"[1/3] Building", "[2/3] Building", "[3/3] Building"} & set(lines)), 2, lines)
        self.assertEqual(lines[-1], "after")

    def test_short_work_is_quiet(self):
        done = run(f"watched {self.log} echo fine; echo after", "20")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "after\n", ""))
        self.assertEqual(Path(self.log).read_text(), "fine\n")

    def test_what_fails_is_shown(self):
        done = run(f"watched {self.log} bash -c 'echo; echo \"x.cpp:1: error: no\"; exit 3'; echo after", "20")
        self.assertEqual(done.returncode, 1)
        self.assertIn("x.cpp:1: error: no", done.stdout)
        self.assertIn(self.log, done.stderr)
        self.assertNotIn("after", done.stdout)

    def test_help_and_wrong_options_come_before_anything_is_built(self):
        """In a copy of ./x, install and build end with 9."""
        text = SCRIPT.replace('cd "$(dirname "${BASH_SOURCE[0]}")"\n', "")
        for name in ("install", "build"):
            text = text.replace(function(name), f"{name}() {{ exit 9; }}\n")
        copy = Path(self.log).with_name("x")
        copy.write_text(text)
        verbs = [name for name in re.findall(r"^cmd_(\w+)\(\)", SCRIPT, re.M) if name != "run"]  # its help is the command's own
        self.assertIn("kernel", verbs)
        calls = [([verb, *words], 0, verb) for verb in verbs for words in (["--help"], ["-h"])]
        calls += [(["golden", "a311d", "--help"], 0, "golden"), (["kernel", "--chip", "imx93", "--help"], 0, "--fault"),
                  (["kernel", "--cores", "0", "--", "true"], 2, "--cores"), (["kernel", "--", "true", "--help"], 9, "")]
        for words, code, said in calls:
            with self.subTest(words):
                done = subprocess.run(["bash", copy, *words], capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(said, done.stdout + done.stderr)

    def test_the_demo_builds_what_comes_next(self):
        self.assertIn('build release "${installed_targets[@]}"', function("cmd_demo"))
        targets = re.search(r"^installed_targets=\((.*)\)$", SCRIPT, re.M)[1].split()
        self.assertLessEqual({"skillet_command", "skillet_delegate", "skillet_shared", "skillet_virtual_preload"}, set(targets))
        for name in ("cmd_demo", "cmd_build"):
            self.assertIn("ln -sf src/tools/skillet build/release/skillet\n", function(name))
            self.assertIn("say_next\n", function(name))


if __name__ == "__main__":
    unittest.main()
