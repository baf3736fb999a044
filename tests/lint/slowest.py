#!/usr/bin/env python3
"""The tests and the compiled sources that took longest in the last run of a build folder. Called by ./x slowest.

usage: slowest.py BUILD [N]     of ctest's report (BUILD/junit.xml, of ./x test) and ninja's log; N: how many of each (20)
"""
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

BUILD, COUNT = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20


def tests():
    report = BUILD / "junit.xml"
    if not report.exists():
        return []
    return [(float(case.get("time")), case.get("name")) for case in ET.parse(report).getroot().iter("testcase")]


def units():
    """The last time that each output was made; what a compiler cache knew is short."""
    log = BUILD / ".ninja_log"
    rows = [line.split("\t") for line in log.read_text().splitlines()[1:]] if log.exists() else []
    last = {row[3]: (int(row[1]) - int(row[0])) / 1000 for row in rows}
    return [(seconds, name) for name, seconds in last.items()]


def main():
    for title, rows in (("test", tests()), ("compiled or linked", units())):
        print(f"{'s of wall time':>14}  {title}")
        for seconds, name in sorted(rows, reverse=True)[:COUNT]:
            print(f"{seconds:14.1f}  {name}")
        print(f"{sum(seconds for seconds, _ in rows):14.1f}  all {len(rows)}\n" if rows else "          none yet: ./x test\n")


main()
