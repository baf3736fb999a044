#!/usr/bin/env python3
"""Runs the commands of README.md and the pages of docs/ as they are written.

usage: docs_test.py BUILD_DIR      run at the top of the source tree

Each block between ``` is run, in a folder that looks like the source tree with this build in build/release. A block that
cannot be run (it needs root, a board, a container, minutes) is preceded by a comment: <!-- not run: REASON -->.
Python blocks run in a fake host (stub_host/), and in the real one of tests/integration if it exists; those with
NumPy in the environment of the tests of `import skillet` if it exists. In the text, each `skillet ...`
and `./x ...` must be an existing verb with existing options.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, "tests/integration")
import long_cases  # noqa: E402

BUILD = Path(sys.argv.pop(1)).resolve()
SOURCE = Path.cwd()
FIRST_PAGES = ["README.md", "CONTRIBUTING.md", "src/lab/interpose/README.md"]
PAGES = [*FIRST_PAGES, *sorted(str(p) for p in Path("docs").rglob("*.md"))]
BLOCK = re.compile(r"(?:<!-- not run: (?P<reason>[^>]+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
INLINE = re.compile(r"(?<!`)`((?:skillet|\./x) [^`]+)`(?!`)")

PLACEHOLDER = re.compile(r"\b[A-Z]+\b|\.\.\.|<|\.\./| --\w+$|^skillet \w+$(?<!devices)(?<!doctor)")


def blocks(pages):
    for page in pages:
        for found in BLOCK.finditer(Path(page).read_text()):
            line = Path(page).read_text()[: found.start("text")].count("\n") + 1
            yield f"{page}:{line}", found["language"], found["text"], found["reason"]


def inline():
    for page in PAGES:
        text = BLOCK.sub("", Path(page).read_text())
        for found in INLINE.finditer(text):
            yield page, " ".join(found[1].split())


class Docs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="skillet_docs_")
        cls.tree = Path(cls.folder.name)
        for entry in SOURCE.iterdir():
            if entry.name not in ("build", ".git"):
                (cls.tree / entry.name).symlink_to(entry)
        (cls.tree / "build").mkdir()
        (cls.tree / "build/release").symlink_to(BUILD)
        (cls.tree / "bin").mkdir()
        (cls.tree / "bin/skillet").symlink_to(BUILD / "src/tools/skillet")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SKILLET_")}
        cls.environment = {**kept, "PATH": f"{cls.tree}/bin:{os.environ['PATH']}",
                           "PYTHONPATH": f"{SOURCE / 'tests/docs/stub_host'}:{SOURCE / 'src/frontend/python'}",
                           "SKILLET_C_LIBRARY": str(BUILD / "src/frontend/c_api/libskillet_c.so.0")}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_in_tree(self, *command, **environment):
        done = subprocess.run(command, cwd=self.tree, env={**self.environment, **environment}, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def run_python(self, place, text):
        hosts, own = SOURCE / "build/venv/bin/python", SOURCE / "build/python-venv/bin/python"
        if "ai_edge_litert" in text and hosts.exists() and subprocess.run([hosts, "-c", "import ai_edge_litert"], capture_output=True).returncode == 0:
            self.run_in_tree(hosts, "-c", text, PYTHONPATH=str(SOURCE / "src/frontend/python"))
        python = own if own.exists() else sys.executable
        if "numpy" in text and subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode != 0:
            print(f"docs: {place} needs NumPy, which is not here; left out")
            return
        self.run_in_tree(python, "-c", text)

    def run_session(self, text):
        """Runs a session: lines after `$ ` are commands, and the lines after each are its output, on either stream."""
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M):
            done = subprocess.run(["bash", "-c", command], cwd=self.tree, env=self.environment, capture_output=True, text=True,
                                  timeout=300)
            self.assertEqual(done.stdout + done.stderr, expected)

    def test_blocks_of_the_first_pages(self):
        self.assertEqual(self.runs_blocks(FIRST_PAGES), 2)

    def test_long_blocks(self):
        self.assertGreater(self.runs_blocks([page for page in PAGES if page not in FIRST_PAGES]), 2)

    def runs_blocks(self, pages):
        ran = 0
        for place, language, text, reason in blocks(pages):
            if reason or language in ("json", "yaml", "text"):
                continue
            with self.subTest(block=place):
                if language == "python":
                    self.run_python(place, text)
                elif text.startswith("$ "):
                    self.run_session(text)
                else:
                    self.assertIn(language, ("", "sh"))
                    self.run_in_tree("bash", "-e", "-o", "pipefail", "-c", text)
                ran += 1
        return ran

    def test_verbs_and_options_in_the_text(self):
        helps, seen, ran = {"": self.help_of()}, 0, set()
        x_help = subprocess.run(["./x", "help"], capture_output=True, text=True, check=True).stdout
        for page, command in inline():
            with self.subTest(page=page, command=command):
                words = shlex.split(command.split(" -- ")[0].replace("...", ""))
                verb, options = words[1] if len(words) > 1 else "", [w.split("=")[0] for w in words[1:] if w.startswith("--")]
                if words[0] == "skillet" and not verb.startswith("-"):
                    if verb not in helps:
                        helps[verb] = self.help_of(verb)
                    self.assertEqual(helps[verb].returncode, 0, f"no verb '{verb}'")
                    text = helps[verb].stdout
                elif words[0] == "skillet":
                    text = helps[""].stdout
                else:
                    text = x_help
                    self.assertRegex(text, rf"\n  {re.escape(verb)}\b")
                for option in options:
                    self.assertRegex(text, rf"(?<![\w-]){re.escape(option)}(?![\w-])")
                if words[0] == "skillet" and not PLACEHOLDER.search(command) and command not in ran:  # a complete command: it runs
                    ran.add(command)
                    done = subprocess.run(["bash", "-c", command], cwd=self.tree, env=self.environment, capture_output=True,
                                          text=True, timeout=60)
                    self.assertIn(done.returncode, (0, 1), done.stderr)
                seen += 1
        self.assertGreater(seen, 20)

    def help_of(self, *verb):
        return subprocess.run([BUILD / "src/tools/skillet", *verb, "--help"], capture_output=True, text=True)

    def test_exit_codes_are_those_of_the_command(self):
        rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", Path("docs/command.md").read_text(), re.M)
        self.assertGreater(len(rows), 8)
        for verb, fine, failed, cannot_begin in rows:
            said = " ".join(self.help_of(verb).stdout.split())
            self.assertIn(f"Exit codes: 0 {fine}; 1 {failed}; 2 {cannot_begin}.", said)
        everything = self.help_of().stdout
        verbs = re.findall(r"^  (\w+) ", everything.split("Subcommands:")[1], re.M)
        self.assertEqual(sorted(verbs), sorted(row[0] for row in rows))


if __name__ == "__main__":
    long_cases.main()
