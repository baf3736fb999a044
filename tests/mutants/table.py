"""Reads the bugs of mutants.txt, and plants one."""
import re
from dataclasses import dataclass


@dataclass
class Mutant:
    title: str
    path: str
    old: str = ""
    new: str = ""
    times: int = 1
    reason: str = ""  # why it may survive
    test: str = ""  # the test that noticed it first

    def key(self):
        return f"{self.path}: {self.old} -> {self.new}"


def parse(text):
    """Returns the mutants of a table. Raises ValueError with the text of an invalid block."""
    blocks = re.split(r"\n\s*\n", "\n".join(line for line in text.splitlines() if not line.startswith("#")).strip())
    mutants = []
    for block in filter(None, blocks):
        lines = block.splitlines()
        if len(lines) < 4:
            raise ValueError(f"no mutant: {block!r}")
        mutant = Mutant(lines[0], lines[1])
        for line in lines[2:]:
            mark, value = line[:1], line[2:]
            if mark == "-":
                mutant.old = value
            elif mark == "+":
                mutant.new = value
            elif mark == "*":
                mutant.times = int(value)
            elif mark == "!":
                mutant.reason = value
            elif mark == "=":
                mutant.test = value
            else:
                raise ValueError(f"{mutant.title}: {line!r} begins with none of - + * ! =")
        mutants.append(mutant)
    return mutants


def record(text, outcomes):
    """Returns the table with the test that noticed each bug, if `outcomes` (key to {"test": name}) has one."""
    blocks = re.split(r"(\n\s*\n)", text.rstrip("\n"))
    for i, block in enumerate(blocks):
        found = [outcomes.get(mutant.key(), {}).get("test") for mutant in parse(block)]
        if any(found):
            kept = [line for line in block.splitlines() if not line.startswith("= ")]
            blocks[i] = "\n".join([*kept, f"= {found[0]}"])
    return "".join(blocks) + "\n"


def mutated(mutant, source):
    """Returns the source with the bug. Raises ValueError if its place is missing."""
    found = source.count(mutant.old) if mutant.old else 0
    if found != mutant.times:
        raise ValueError(f"{mutant.path}: {mutant.title}: {mutant.old!r} stands there {found} times, not {mutant.times}")
    if mutant.new == mutant.old:
        raise ValueError(f"{mutant.path}: {mutant.title}: changes nothing")
    return source.replace(mutant.old, mutant.new)


def check(root, mutants):
    wrong = []
    for mutant in mutants:
        try:
            mutated(mutant, (root / mutant.path).read_text())
        except (OSError, ValueError) as error:
            wrong.append(str(error))
    return wrong
