#!/usr/bin/env python3
"""Prints "PASSED FAILED SKIPPED" of a ctest --output-junit report. A test whose program is missing has failed."""
import sys
import xml.etree.ElementTree as ET


def outcome(case):
    if case.get("status") == "run":
        return "passed"
    skipped = case.find("skipped")  # ctest also writes this for a missing program
    if case.get("status") == "disabled" or skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"


outcomes = [outcome(case) for case in ET.parse(sys.argv[1]).getroot().iter("testcase")]
print(*(outcomes.count(kind) for kind in ("passed", "failed", "skipped")))
