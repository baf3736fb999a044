#!/usr/bin/env python3
"""Lists the slowest tests and compiled sources of the last run in a build folder. Called by ./x slowest.

usage: slowest.py BUILD [N] [--cpu]     of ctest's reports (BUILD/junit*.xml, of ./x test) and ninja's log; N: how many of each (20);
                                        --cpu: by CPU time instead, each fast test run by itself
"""
import json
import re
import resource
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

COUNTS = [int(word) for word in sys.argv[2:] if word != "--cpu"]
BUILD, COUNT = Path(sys.argv[1]), COUNTS[0] if COUNTS else 20


def tests():
    return [(float(case.get("time")), case.get("name")) for report in BUILD.glob("junit*.xml") for case in ET.parse(report).getroot().iter("testcase")]


def used():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def cpu_of_tests():
    """Returns the CPU time of each fast test, without processes that it leaves running."""
    fast = ["ctest", "--test-dir", str(BUILD), "-L", "fast"]
    shown = subprocess.run([*fast, "--show-only=json-v1"], check=True, capture_output=True).stdout

    def cpu(name):
        before = used()
        subprocess.run([*fast, "-Q", "-R", f"^{re.escape(name)}$"], check=False)
        return used() - before

    of_ctest = cpu("no test")
    return [(max(0.0, cpu(test["name"]) - of_ctest), test["name"]) for test in json.loads(shown)["tests"]]


def units():
    """Returns the last build time of each output. It is short if the compiler cache had it."""
    log = BUILD / ".ninja_log"
    rows = [line.split("\t") for line in log.read_text().splitlines()[1:]] if log.exists() else []
    last = {row[3]: (int(row[1]) - int(row[0])) / 1000 for row in rows}
    return [(seconds, name) for name, seconds in last.items()]


def main():
    tables = [("CPU", "fast test", cpu_of_tests())] if "--cpu" in sys.argv else [("wall", "test", tests()), ("wall", "compiled or linked", units())]
    for time, title, rows in tables:
        print(f"{f's of {time} time':>14}  {title}")
        for seconds, name in sorted(rows, reverse=True)[:COUNT]:
            print(f"{seconds:14.1f}  {name}")
        print(f"{sum(seconds for seconds, _ in rows):14.1f}  all {len(rows)}\n" if rows else "          none yet: ./x test\n")


main()
