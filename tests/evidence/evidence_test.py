#!/usr/bin/env python3
"""Tests the template of the page of evidence: it names existing runs, and contains no numbers."""
import re
import unittest
from pathlib import Path

import evidence
import tables

HERE = Path(__file__).parent


class Template(unittest.TestCase):
    text = (HERE / "template.md").read_text(encoding="utf-8")

    def test_names_runs(self):
        self.assertGreater(len(evidence.needed(self.text)), 10)
        for wrong in ("{{counts nothing}}", "{{numbers golden-a311d}}"):
            with self.assertRaises(ValueError):
                evidence.needed(wrong)

    def test_has_no_numbers(self):
        prose = evidence.DIRECTIVE.sub("", self.text)
        known = r"Mesa 26\.2\.6|section 11\.4|i\.MX 8M|arm64|more than 1|A311D|RK3588|RK3576|S905D3"
        self.assertEqual(re.findall(r"\d+", re.sub(known, "", prose)), [])

    def test_every_command_is_shown(self):
        shown = {words.strip() for directive, words in evidence.DIRECTIVE.findall(self.text) if directive == "command"}
        used = {name for name in evidence.needed(self.text) if not name.startswith(("network-", "whole-", "weights-"))}
        self.assertEqual(used - shown, set())


class Tables(unittest.TestCase):
    golden = {"golden-a311d": {"all": {"counts": {"identical": 2, "no_job": 1}},
                               "sets": {"ops": {"counts": {"identical": 2, "no_job": 1}}}}}

    def test_counts(self):
        self.assertEqual(evidence.render("{{counts golden-a311d}}", self.golden).splitlines()[2:],
                         ["| identical | 2 |", "| no job | 1 |", "| cases | 3 |"])

    def test_sets(self):
        self.assertIn("| single ops (`ops`) | 2 | 1 |", evidence.render("{{sets golden-a311d}}", self.golden))

    def test_lines(self):
        outputs = {"tunings": "noise\n7 graphs: fine\n"}
        self.assertEqual(evidence.render("{{lines tunings 'graphs:'}}", outputs), "```text\n7 graphs: fine\n```")
        with self.assertRaises(ValueError):
            tables.lines(outputs, "tunings", "nothing of it")


if __name__ == "__main__":
    unittest.main()
