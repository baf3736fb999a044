"""Plants each bug of mutants.txt in a tree of its own, builds, runs the fast tests and says which bugs they do not notice.

usage: mutate.py REPOSITORY [N] [--only TEXT] [--check] [--json]     (see ./x help)
Exit code: 0 all noticed or explained, 1 some survive or do not compile, 2 the table is wrong.
"""
import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
from dataclasses import dataclass

TESTS = ["-L", "fast", "-E", "^(lint|compile_fail|install|mutants)"]
TEST_TIMEOUT_S = 600


@dataclass
class Mutant:
    title: str
    path: str
    old: str = ""
    new: str = ""
    times: int = 1
    reason: str = ""  # why it may survive
    outcome: str = ""


def parse(text):
    """The mutants of a table; ValueError names the block that is no mutant."""
    blocks = re.split(r"\n\s*\n", "\n".join(line for line in text.splitlines() if not line.startswith("#")).strip())
    mutants = []
    for block in blocks:
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
            else:
                raise ValueError(f"{mutant.title}: {line!r} begins with none of - + * !")
        mutants.append(mutant)
    return mutants


def mutated(mutant, source):
    """The source with the bug in it; ValueError when its place is not there."""
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


class Tree:
    """A checkout of HEAD with the working tree's changes, and its build."""

    def __init__(self, root):
        self.root = root
        self.dir = root / "build/mutants"
        self.build = self.dir / "build/release"

    def run(self, *command, **options):
        return subprocess.run([str(c) for c in command], cwd=self.dir, capture_output=True, text=True, **options)

    def prepare(self):
        if not (self.dir / ".git").exists():
            subprocess.run(["git", "worktree", "add", "--force", "--detach", "--quiet", self.dir], cwd=self.root, check=True)
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=self.root, check=True, capture_output=True, text=True)
        self.run("git", "checkout", "--force", "--detach", "--quiet", head.stdout.strip(), check=True)
        changes = subprocess.run(["git", "diff", "HEAD", "--binary"], cwd=self.root, check=True, capture_output=True)
        if changes.stdout:
            subprocess.run(["git", "apply", "-"], cwd=self.dir, input=changes.stdout, check=True)
        if not (self.build / "build.ninja").exists():
            self.run("cmake", "--preset", "release", "-S", ".", check=True)
        if not self.compiles() or (failed := self.failing_test()):
            sys.exit(f"mutate: the tree does not pass its tests as it is: {failed if self.compiles() else 'build'}")

    def compiles(self):
        return self.run("cmake", "--build", self.build).returncode == 0

    def failing_test(self):
        """The first fast test that fails, or None."""
        try:
            done = self.run("ctest", "--test-dir", self.build, "-j2", "--stop-on-failure", "--timeout", 120, *TESTS,
                            timeout=TEST_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return "a test that does not end"
        if done.returncode == 0:
            return None
        failed = re.search(r"^\s*\d+ - (\S+) \(", done.stdout, re.MULTILINE)
        return failed.group(1) if failed else "ctest"

    def try_one(self, mutant):
        path = self.dir / mutant.path
        source = path.read_text()
        path.write_text(mutated(mutant, source))
        try:
            if not self.compiles():
                return "does not compile"
            failed = self.failing_test()
            if failed:
                return f"noticed by {failed}"
            return f"may survive: {mutant.reason}" if mutant.reason else "SURVIVES"
        finally:
            path.write_text(source)


def main():
    parser = argparse.ArgumentParser(prog="./x mutate", description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("count", nargs="?", type=int, help="that many, drawn at random (default: all)")
    parser.add_argument("--only", default="", help="those with this text in their file or title")
    parser.add_argument("--check", action="store_true", help="only whether each still has its place in the source")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    mutants = parse((args.root / "tests/mutants/mutants.txt").read_text())
    wrong = check(args.root, mutants)
    for line in wrong:
        print(f"mutants.txt: {line}", file=sys.stderr)
    if wrong or args.check:
        return 2 if wrong else 0
    mutants = [m for m in mutants if args.only in m.path or args.only in m.title]
    if args.count is not None:
        mutants = random.sample(mutants, min(args.count, len(mutants)))
    tree = Tree(args.root)
    print(f"building {tree.dir.relative_to(args.root)} and running its tests", file=sys.stderr, flush=True)
    tree.prepare()
    for number, mutant in enumerate(mutants, 1):
        mutant.outcome = tree.try_one(mutant)
        if not args.json:
            print(f"{number:3} of {len(mutants)}  {mutant.outcome:40}  {mutant.path}: {mutant.title}", flush=True)
    bad = [m for m in mutants if m.outcome in ("SURVIVES", "does not compile")]
    if args.json:
        print(json.dumps([{"file": m.path, "title": m.title, "outcome": m.outcome} for m in mutants], indent=2))
    else:
        noticed = sum(m.outcome.startswith("noticed") for m in mutants)
        print(f"{noticed} of {len(mutants)} noticed, {len(mutants) - noticed - len(bad)} explained, {len(bad)} left")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
