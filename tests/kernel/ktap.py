#!/usr/bin/env python3
"""Runs the tests of the label `kernel` and prints KTAP, as kunit.py and KernelCI's parsers read it.

  tests/kernel/ktap.py [--build DIR] [--kcidb FILE] [-- OPTIONS OF ./x kernel]     such as --kasan, --source DIR

Each test of the build is a subtest list of the Python tests in it. --kcidb writes a report for KCIDB, KernelCI's database, as JSON of its schema 5.3.
"""
import argparse
import datetime
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STATUS = {"ok": "PASS", "FAIL": "FAIL", "ERROR": "ERROR", "skipped": "SKIP"}
# "test_x (__main__.C.test_x)" or, on the line before its result, with a first line of documentation; parts of a test are indented.
RESULT = re.compile(r"^(test_\w+) \(\S+\)(?:\n.*)?? \.\.\. (?:(?!\ntest_)[\s\S])*?(ok|FAIL|ERROR|skipped\b.*)$", re.MULTILINE)


def commands(build):
    """{name: command} of the tests."""
    listed = json.loads(subprocess.run(["ctest", "--test-dir", build, "-L", "kernel", "--show-only=json-v1"], capture_output=True, text=True,
                                       check=True).stdout)
    return {test["name"]: test["command"] for test in listed["tests"]}


def results(name, text, code):
    """[(name, status)] of what a test says of its parts; without any, its own."""
    parts = [(part, STATUS[result.split()[0]]) for part, result in RESULT.findall(text)]
    own = {0: "PASS", 77: "SKIP"}.get(code, "FAIL")
    if own == "FAIL" and all(status == "PASS" for _, status in parts):
        parts.append((f"{name}_ended", "FAIL"))
    return parts or [(name, own)]


def line(number, name, status):
    return f"{'ok' if status in ('PASS', 'SKIP') else 'not ok'} {number} {name}{' # SKIP there is no kernel' if status == 'SKIP' else ''}"


def report(found, begun, kernel):
    """A report of KCIDB: one build and its tests."""
    build = f"skillet:{kernel}"
    return {"version": {"major": 5, "minor": 3},
            "builds": [{"id": build, "checkout_id": f"skillet:{kernel}", "origin": "skillet", "architecture": "um", "status": "PASS"}],
            "checkouts": [{"id": f"skillet:{kernel}", "origin": "skillet"}],
            "tests": [{"id": f"{build}:{test}:{part}", "build_id": build, "origin": "skillet", "path": f"skillet.{test}.{part}", "status": status,
                       "start_time": begun, "environment": {"comment": f"user-mode Linux on {platform.machine()}, simulated NPUs"}}
                      for test, parts in found.items() for part, status in parts]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/release", type=Path)
    parser.add_argument("--kcidb", metavar="FILE")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="-- OPTIONS")
    arguments = parser.parse_args()
    options = arguments.options[arguments.options[:1] == ["--"]:]
    environment = {**os.environ, "SKILLET_KERNEL_OPTIONS": shlex.join(options)}
    made = subprocess.run([sys.executable, ROOT / "src/lab/mmio/linux/kernel.py"], env=environment, stderr=subprocess.PIPE, text=True, check=False)
    if made.returncode not in (0, 77):
        sys.exit(made.stderr)
    kernel = re.search(r"/(vmlinux\S*) is ready", made.stderr)
    tests, found = commands(arguments.build), {}
    begun = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    print(f"KTAP version 1\n1..{len(tests)}", flush=True)
    for number, (name, command) in enumerate(tests.items(), 1):
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        parts = found[name] = results(name, done.stderr, done.returncode)
        print(f"    KTAP version 1\n    # Subtest: {name}\n    1..{len(parts)}")
        for at, (part, status) in enumerate(parts, 1):
            print(f"    {line(at, part, status)}")
        whole = "FAIL" if any(status in ("FAIL", "ERROR") for _, status in parts) else parts[0][1]
        if whole == "FAIL":
            print("\n".join(f"# {said}" for said in (done.stdout + done.stderr).splitlines()[-60:]))
        print(line(number, name, whole), flush=True)
    if arguments.kcidb:
        Path(arguments.kcidb).write_text(json.dumps(report(found, begun, kernel.group(1) if kernel else "none"), indent=1) + "\n", encoding="utf-8")
    return any(status in ("FAIL", "ERROR") for parts in found.values() for _, status in parts)


if __name__ == "__main__":
    sys.exit(main())
