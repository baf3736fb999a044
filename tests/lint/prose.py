#!/usr/bin/env python3
"""Checks the prose of the pages (*.md) and of `./x help`: spelling, words to avoid, sentences that are too long. In comments of C++
sources and .def files: words to avoid.

usage: prose.py [ROOT]     prints one line "file:line: what" per finding; exit code 1 when there is any.

Spelling needs codespell (a Debian package) and is left out, with a line, where it is missing. Code, tables and blocks that a
program writes (between <!-- NAME ... --> and <!-- end -->) hold no sentences; words to avoid count in tables, too.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

MAX_WORDS = 35  # in a sentence
FOLDERS = ["bench", "docs", "include", "models", "packaging", "src", "tests"]
HELP = "x"  # the text between <<'HELP' and HELP

# Written by a program from lists that are checked as code.
GENERATED = {"docs/support.md"}

# what to avoid: what to write instead
AVOID = {
    r"mend(s|ed|ing)?": "fix, repair",
    r"lies?|lying": "is, are; is stored",
    r"pric(e|es|ed|ing)": "cost, estimate",
    r"weigh(s|ed|ing)?": "compare",
    r"judges?(?!'s robe)|judged|judging": "cost model, check, compare",
    r"worth the way": "profitable to offload",
    r"stand-?ins?": "emulated kernel driver",
    r"tells|told": "says, reports, shows, names",
    r"hears?( of)?": "gets, sees",
    r"whom": "the noun",
    r"who(so)?ever": "if you",
    r"of (ours|theirs)": "our, their",
    r"as it says": "the fact itself",
    r"what(ever)? became of": "the result",
    r"what came of": "the result of",
    r"speaks? against": "contradicts",
}
AVOIDED = [(re.compile(rf"\b(?:{word})\b", re.I), instead) for word, instead in AVOID.items()]
ANY_AVOIDED = re.compile("|".join(pattern.pattern for pattern, _ in AVOIDED), re.I)
SPELLED_RIGHT = "cna,renderd"  # a unit of a chip, a device node

SOURCES = {".h", ".cpp", ".def"}
COMMENT_OF_CODE = re.compile(r"(?:^|\s)//\s?(.*)$")
FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
MARKED = re.compile(r"^<!-- [\w-]+:? [^>]*-->$(?:(?!<!-- end).)*^<!-- end -->$", re.M | re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"`[^`]+`")
NEW_BLOCK = re.compile(r"^\s*(?:[-*] |\d+\. |#|\||$)")
END_OF_SENTENCE = re.compile(r"(?<=[.!?])[)*\"]*\s+")


def blank(found):
    """Replaces a match by its newlines, so that line numbers stay the same."""
    return "\n" * found[0].count("\n")


def without_code(text):
    for pattern in (FENCE, MARKED, COMMENT):
        text = pattern.sub(blank, text)
    text = CODE.sub(lambda found: "code" + blank(found), text)
    return LINK.sub(lambda found: found[1] + "\n" * (found[0].count("\n") - found[1].count("\n")), text)


def sentences(text):
    """Yields each sentence of `text` (without code) with the first line of its paragraph or list item."""
    blocks, indented = [[1, ""]], False
    for number, line in enumerate(text.splitlines(), 1):
        indented = line.startswith("    ") and (indented or not blocks[-1][1].strip())  # an indented block of code, not a list's continuation
        if indented or NEW_BLOCK.match(line):
            blocks.append([number, ""])
        if line.strip() and not indented and not line.lstrip().startswith(("|", "#")):
            blocks[-1] = [blocks[-1][0] if blocks[-1][1] else number, blocks[-1][1] + line.strip() + " "]
    for number, block in blocks:
        for sentence in END_OF_SENTENCE.split(block):
            yield number, sentence


def long_sentences(text):
    for number, sentence in sentences(text):
        words = [word for word in sentence.split() if re.search(r"\w", word)]
        if len(words) > MAX_WORDS:
            yield number, f"a sentence of {len(words)} words (at most {MAX_WORDS}): {' '.join(words[:6])} ..."


def avoided_words(text):
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, instead in AVOIDED if line and ANY_AVOIDED.search(line) else ():
            for found in pattern.finditer(line):
                yield number, f"'{found[0]}': write {instead}"


def comments_of(text):
    """The comments of a C++ or .def file, each on its line."""
    return "\n".join(found[1] if "//" in line and (found := COMMENT_OF_CODE.search(line)) else "" for line in text.splitlines())


def findings_of(name, text):
    if Path(name).suffix in SOURCES:
        return list(avoided_words(CODE.sub("code", comments_of(text))))
    if name == HELP:
        before, _, rest = text.partition("<<'HELP'\n")
        text = "\n" * (before.count("\n") + 1) + rest.partition("\nHELP\n")[0]
        return list(avoided_words(text))
    text = without_code(text)
    return sorted([*avoided_words(text), *long_sentences(text)])


def misspelled(root, names):
    if not shutil.which("codespell"):
        print("prose: spelling is not checked, codespell is not installed (./x lint installs it)")
        return []
    done = subprocess.run(["codespell", f"--ignore-words-list={SPELLED_RIGHT}", *names], cwd=root, capture_output=True, text=True)
    return [line.removeprefix("./") for line in done.stdout.splitlines()]


def check(root, generated=frozenset(GENERATED)):
    below = [file for folder in FOLDERS for file in (root / folder).rglob("*")]
    pages = [*root.glob("*.md"), *(file for file in below if file.suffix == ".md"), root / HELP]
    names = sorted(str(page.relative_to(root)) for page in pages if page.exists())
    sources = sorted(str(file.relative_to(root)) for file in below if file.suffix in SOURCES)
    out = misspelled(root, names) if names else []
    for name in names + sources:
        if name not in generated:
            out += [f"{name}:{number}: {what}" for number, what in findings_of(name, (root / name).read_text())]
    return out


if __name__ == "__main__":
    findings = check(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]))
    print("\n".join(findings) or "prose: fine")
    sys.exit(1 if findings else 0)
