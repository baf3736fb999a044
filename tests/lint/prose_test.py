#!/usr/bin/env python3
"""Tests that each rule of prose.py finds violations, and nothing else."""
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))
import prose  # noqa: E402

LONG = "One " + "word " * prose.MAX_WORDS + "more.\n"  # two words too many
HALF = "One " + "word " * (prose.MAX_WORDS // 2)

# file, contents, words of the only finding (None: no finding)
CASES = [
    ("docs/a.md", LONG, "docs/a.md:1: a sentence of 37 words (at most 35): One word word"),
    ("docs/dev/a.md", "# Title\n\nShort.\n" + LONG, "docs/dev/a.md:3: a sentence of 37 words"),
    ("docs/a.md", "- " + HALF + "\n  " + HALF + "\n", "docs/a.md:1: a sentence of 36 words"),  # one list item on two lines
    ("docs/a.md", "- " + HALF + "\n- " + HALF + "\n", None),
    ("docs/a.md", HALF + ".\n" + HALF + ".\n", None),
    ("docs/a.md", HALF + "\n\n" + HALF + "\n", None),
    ("docs/a.md", HALF + "[" + HALF + "](b.md)\n", "a sentence of 36 words"),
    ("docs/a.md", HALF + "`" + HALF + "`\n", None),  # code is one word
    ("docs/a.md", "| " + LONG.strip() + " |\n", None),
    ("docs/a.md", "```\n" + LONG + "```\n", None),
    ("docs/a.md", "Text:\n\n    " + LONG, None),
    ("docs/a.md", "<!-- rows x -->\nThis lies.\n" + LONG + "<!-- end -->\n", None),
    ("docs/a.md", "<!-- not run: " + LONG.strip() + " -->\n", None),
    ("src/lab/interpose/README.md", LONG, "src/lab/interpose/README.md:1: a sentence of 37 words"),
    ("README.md", LONG, "README.md:1: a sentence of 37 words"),
    ("README.md", "It is\nmended here.\n", "README.md:2: 'mended': write fix, repair"),
    ("src/a/b.md", "| Whom it may concern |\n", "src/a/b.md:1: 'Whom': write the noun"),
    ("docs/a.md", "# A stand-in\n", "docs/a.md:1: 'stand-in': write emulated kernel driver"),
    ("docs/a.md", "<!-- rows x -->\n\n<!-- end -->\nIt lies there.\n", "docs/a.md:4: 'lies'"),
    ("docs/a.md", "```\ncode\n```\nA `b\nc` [d\ne](f) costs; its price is paid.\n", "docs/a.md:6: 'price'"),
    ("docs/a.md", "See `src/kernels/fake/lies.cpp`; lieutenants apprise.\n", None),
    ("src/a/b.cpp", "int lies;\nint b;  // lies here\n", "src/a/b.cpp:2: 'lies'"),
    ("src/a/b.def", "// Whoever asks.\nROW(tells, \"it lies\")\n", "src/a/b.def:1: 'Whoever'"),
    ("include/a.h", "// See `lies`.\nauto url = \"http://lies\";\n", None),
    ("x", "lies\ncat <<'HELP'\n  a  what it tells\nHELP\nlies\n", "x:3: 'tells': write says"),
]


def findings(files, misspelled=lambda root, names: [], **options):
    with tempfile.TemporaryDirectory(prefix="skillet_prose_") as folder:
        for name, text in files.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_text(text)
        with mock.patch.object(prose, "misspelled", misspelled):
            return prose.check(Path(folder), **options)


class Prose(unittest.TestCase):
    def test_cases(self):
        for name, text, expected in CASES:
            with self.subTest(text=text[:60]):
                found = findings({name: text})
                self.assertEqual(len(found), 0 if expected is None else 1, found)
                self.assertIn(expected or "", found[0] if found else "")

    def test_every_word_to_avoid_is_found(self):
        for written in ("mend lie price weighing judged worth_the_way standins told hears_of whoever theirs_of as_it_says "
                        "whatever_became_of what_came_of speaks_against").split():
            text = {"theirs_of": "one of theirs"}.get(written, written.replace("_", " ")) + "\n"
            with self.subTest(text=text):
                self.assertEqual(len(findings({"README.md": text})), 1)
        self.assertEqual(len(prose.AVOIDED), 16)  # a new word needs a line here

    def test_what_a_program_writes_is_not_read(self):
        self.assertEqual(findings({"docs/a.md": "It lies.\n"}, generated=frozenset(["docs/a.md"])), [])

    @unittest.skipUnless(shutil.which("codespell"), "codespell is not installed")
    def test_spelling(self):
        (found,) = findings({"docs/a.md": "Right.\nThis is teh chip's CNA, at renderD128.\n"}, prose.misspelled)
        self.assertIn("docs/a.md:2: teh ==> the", found)


if __name__ == "__main__":
    unittest.main()
