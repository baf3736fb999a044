"""Tries many drawn bugs in one build: each has a switch (switches.py). A first run of the fast tests shows which test reaches which bug."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict

import switches

HEADER_NAME = "planted.h"
ROUNDS = 6  # builds; after each, bugs in lines that do not compile are left out


def planted_sources(root, bugs):
    """Returns the changed sources by path. BUGS: number to (path, line from 0, the line with its switch)."""
    by_path = defaultdict(dict)
    for path, line, text in bugs.values():
        by_path[path][line] = text
    out = {}
    for path, lines in by_path.items():
        source = (root / path).read_text().split("\n")
        for line, text in lines.items():
            source[line] = text
        include = f'#include "{HEADER_NAME}"'
        begin = source.index("#pragma once") + 1 if "#pragma once" in source else 0
        out[path] = "\n".join([*source[:begin], include, "#line %d" % (begin + 1), *source[begin:]])
    return out


def bugs_of(mutants):
    """Returns the bugs that can have a switch, by number, and the mutants by number. One a line."""
    bugs, of, taken = {}, {}, set()
    for mutant in mutants:
        where, title = mutant.title.split(": ")[:2]
        line = int(where.split()[1]) - 1
        text = switches.with_switch(mutant.old.split("\n")[-1], mutant.new.split("\n")[-1], title, len(bugs))
        if text is not None and (mutant.path, line) not in taken:
            taken.add((mutant.path, line))
            of[len(bugs)] = mutant
            bugs[len(bugs)] = (mutant.path, line, text)
    return bugs, of


def build(tree, root, bugs):
    """Plants the bugs and builds. Returns those that compile."""
    (tree.dir / "src" / HEADER_NAME).write_text(switches.HEADER)
    for _ in range(ROUNDS):
        for path in {path for path, _, _ in bugs.values()}:
            (tree.dir / path).write_text((root / path).read_text())
        sources = planted_sources(root, bugs)
        for path, text in sources.items():
            (tree.dir / path).write_text(text)
        done = tree.run("ninja", "-k", "0", "-C", str(tree.build))
        if done.returncode == 0:
            return bugs
        said = set(re.findall(r"(src/[\w./]+):(\d+):\d+: (?:error|note|  required)", done.stdout))
        # A limit that became variable fails where it is used: the message names it.
        wrong = {number for number, (path, line, text) in bugs.items()
                 if (path, str(line + 1)) in said or any(f"‘{name}’" in done.stdout for name in re.findall(r"\bconst [\w:]+ (k\w+)", text))}
        if not wrong:
            break
        for path in {bugs[number][0] for number in wrong}:
            (tree.dir / path).write_text((root / path).read_text())
        bugs = {number: bug for number, bug in bugs.items() if number not in wrong}
    sys.exit(f"mutate: the tree does not compile: ninja -C {tree.build} says why")


def run_test(tree, name, variables, seconds):
    """Returns whether the test passes."""
    command = ["ctest", "--test-dir", str(tree.build), "-R", f"^{re.escape(name)}$", "--timeout", str(seconds)]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, check=False).returncode == 0


def reached_by(tree, tests, lanes):
    """Runs each test once. Returns the numbers of the bugs that it reaches, by its name; without tests that fail as they are."""
    folder = tree.dir / "build/reached"
    shutil.rmtree(folder, ignore_errors=True)

    def one(test):
        (folder / test.name).mkdir(parents=True)
        passes = run_test(tree, test.name, {"MUTANTS_REACHED": str(folder / test.name)}, 600)
        return test.name, {int(number) for number in os.listdir(folder / test.name)} if passes else None
    with concurrent.futures.ThreadPoolExecutor(lanes) as pool:
        reached = dict(pool.map(one, tests))
    for name in [name for name, numbers in reached.items() if numbers is None]:
        print(f"{name} fails as it is, and is left out", file=sys.stderr)
        del reached[name]
    return reached


def try_together(tree, root, mutants, tests, lanes, store):
    """Tries the mutants that can have a switch. TESTS: a function that lists the tests. Returns the outcomes by their keys, as mutate.py has them."""
    bugs, of = bugs_of(mutants)
    bugs = build(tree, root, bugs)
    print(f"{len(bugs)} of {len(mutants)} bugs have a switch and compile", file=sys.stderr, flush=True)
    tests = tests()  # known after a build
    reached, costs = reached_by(tree, tests, lanes), tree.costs()
    outcomes = {}

    def one(number):
        folder = bugs[number][0].rsplit("/", 1)[0]
        names = [name for name, numbers in reached.items() if number in numbers]
        near = {test.name for test in tests if any(target.startswith(folder) for target in test.targets)}
        for name in sorted(names, key=lambda name: (name not in near, costs.get(name, 0))):
            if not run_test(tree, name, {"MUTANT": str(number)}, int(max(60, 6 * costs.get(name, 0)))):
                return number, name, len(names)
        return number, "", len(names)
    with concurrent.futures.ThreadPoolExecutor(lanes) as pool:
        for done in concurrent.futures.as_completed([pool.submit(one, number) for number in bugs]):
            number, name, count = done.result()
            outcomes[of[number].key()] = {"test": name, "compiles": True}
            store.write_text(json.dumps(outcomes, indent=1))
            print(f"{len(outcomes):3} of {len(bugs)}  {name or f'not by {count} tests':34}  {of[number].path}: {of[number].title}", flush=True)
    return outcomes
