#!/usr/bin/env python3
"""Runs the tests of the label `kernel`, and writes what came of each in the forms that farms read.

  tests/kernel/report.py [--build DIR] [--ktap F] [--junit F] [--lava F] [--kcidb F] [-- OPTIONS OF ./x kernel]     such as --kasan, --source DIR

F may be -; without a form: KTAP. Exit codes: 0, 1 a test failed, 2 the kernel cannot be built.
"""
import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src/frontend/python"))
from skillet._result_files import FAIL, PASS, SKIP, junit, ktap, kcidb, lava  # noqa: E402
from skillet._results import Row  # noqa: E402

# "test_x (__main__.C.test_x)", or with the first line of its docstring before the result; subtests are indented.
RESULT = re.compile(r"^(test_\w+) \(\S+\)(?:(?!\ntest_)[\s\S])*? \.\.\. (?:(?!\ntest_)[\s\S])*?(ok|FAIL|ERROR)$", re.MULTILINE)


def commands(build):
    """Returns {name: command} of the tests."""
    listed = subprocess.run(["ctest", "--test-dir", build, "-L", "kernel", "--show-only=json-v1"], capture_output=True, text=True, check=True)
    return {test["name"]: test["command"] for test in json.loads(listed.stdout)["tests"]}


def rows(name, text, code, seconds):
    """Returns a row for each method of a test. If there are none, or the test failed otherwise, there is a row for the test itself."""
    parts = [Row(f"{name}/{part}", PASS if result == "ok" else FAIL, "" if result == "ok" else "see its output") for part, result in RESULT.findall(text)]
    if code == 77:
        return [Row(name, SKIP, "there is no kernel")]
    if code == 0 or any(part.status == FAIL for part in parts):
        return parts or [Row(name, PASS, "", seconds)]
    return [*parts, Row(name, FAIL, f"exit code {code}", seconds)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/release", type=Path)
    forms = {"ktap": ktap, "junit": lambda found: junit(found, "kernel", "kernel"), "lava": lambda found: lava(found, "kernel"),
             "kcidb": lambda found: kcidb(found, "kernel", "skillet", "", "user-mode Linux with simulated NPUs")}
    for form in forms:
        parser.add_argument(f"--{form}", metavar="F")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="-- OPTIONS")
    arguments = parser.parse_args()
    options = arguments.options[arguments.options[:1] == ["--"]:]
    environment = {**os.environ, "SKILLET_KERNEL_OPTIONS": shlex.join(options)}
    if subprocess.run([sys.executable, ROOT / "src/lab/mmio/linux/kernel.py"], env=environment, check=False).returncode not in (0, 77):
        return 2
    found = []
    for name, command in commands(arguments.build).items():
        begun = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        more = rows(name, done.stdout, done.returncode, time.monotonic() - begun)
        if any(one.status == FAIL for one in more):
            sys.stderr.write(done.stdout)
        found += more
    asked = {form: getattr(arguments, form) for form in forms if getattr(arguments, form)} or {"ktap": "-"}
    for form, path in asked.items():
        text = forms[form](found)
        print(text, end="") if path == "-" else Path(path).write_text(text, encoding="utf-8")
    return int(any(one.status == FAIL for one in found))


if __name__ == "__main__":
    sys.exit(main())
