#!/usr/bin/env python3
"""Validates what --json of ./x golden, peer and mutate prints with docs/json/developers/, by an independent validator.

usage: developers_json_test.py GOLDEN      run at the top of the source tree; exit code 77: there is no validator
"""
import copy
import json
import subprocess
import sys
import unittest
from pathlib import Path

try:
    from jsonschema import Draft7Validator
except ImportError:
    print("developers_json: skipped, there is no jsonschema for Python (Debian: python3-jsonschema)")
    sys.exit(77)

sys.path[:0] = ["tests/mutants", "tests/peer"]
import judge
import mutate
import peer
from table import Mutant

GOLDEN = str(Path(sys.argv.pop(1)).resolve())
SCHEMAS = Path("docs/json/developers")
SMALL = ("a311d", "--dir", "tests/golden/small", "--case", "ops/conv1x1_i8")


def golden(*args):
    done = subprocess.run([GOLDEN, *SMALL, *args, "--json"], capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout)


def bugs():
    mutants = [Mutant("one", "src/a.cpp", "a", "b"), Mutant("two", "src/a.cpp", "c", "d", reason="it costs time")]
    return mutate.report(mutants, {mutants[0].key(): {"test": "near", "compiles": True}, mutants[1].key(): {"test": "", "compiles": True}})


REPORTS = {
    "golden": lambda: [golden(), golden("--simulate"), golden("--switches")],
    "mutate": lambda: [bugs()],
    "peer": lambda: [
        peer.verdicts_report("a311d", {"mesa-teflon-delegate": "25"}, [{"name": "a/b", "verdict": verdict, "detail": ""} for verdict in judge.VERDICTS]
                             + [{"name": "c", "verdict": "right class", "detail": "", "prepare_ms": 3, "invoke_ms": None}]),
        peer.times_report("a311d", True, [{"name": "a", "ours_us": 1.5, "peer_us": 2.5}, {"name": "b"}])],
}


class Reports(unittest.TestCase):
    def test_each_is_as_its_schema_says(self):
        self.assertEqual(sorted(path.stem for path in SCHEMAS.glob("*.json")), sorted(REPORTS))
        for name, make in REPORTS.items():
            schema = json.loads((SCHEMAS / f"{name}.json").read_text())
            Draft7Validator.check_schema(schema)
            validator = Draft7Validator(schema)
            for report in make():
                self.assertEqual([error.message[:300] for error in validator.iter_errors(report)], [], name)
                for key in report:
                    self.assertFalse(validator.is_valid({k: v for k, v in report.items() if k != key}) and key != "rest_on", (name, key))
                for other in ({**report, "version": 2}, {**report, "surprise": 1}):
                    self.assertFalse(validator.is_valid(other), name)
                self.refuses_surprises(validator, report, name)

    def refuses_surprises(self, validator, report, name):
        """Checks that an additional key in the first row of each list is refused."""
        for key, value in report.items():
            if isinstance(value, list):
                changed = copy.deepcopy(report)
                changed[key][0]["surprise"] = 1
                self.assertFalse(validator.is_valid(changed), (name, key))


if __name__ == "__main__":
    unittest.main()
