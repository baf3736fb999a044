"""Plants each bug of mutants.txt in a tree of its own, builds, runs the fast tests and says which bugs they do not notice.

usage: mutate.py REPOSITORY [N] [--drawn SEED [--limits] [--together]] [--only TEXT] [--continue] [--near] [--record] [--check] [--json]     (see ./x help)
Outcomes are kept in build/mutants-outcomes.json as they come, so a run that was stopped can go on; --record writes the test
that noticed each into the table. With --drawn the bugs are not those of the table but N that draw.py makes, of which those that compile count.
A bug is tried first on the test that noticed it before, then on the tests that stand nearest to its file, then on all.
Exit code: 0 all noticed or explained, 1 some survive or do not compile, 2 the table is wrong.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import queue
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass

import draw
import together
from table import check, mutated, parse, record

LEFT_OUT = re.compile(r"lint|compile_fail|install|mutants")  # tests that cannot fail from a change in a source file's meaning
TEST_TIMEOUT_S = 180
DRAWN = 50  # default number of drawn bugs
QUICK_S = 4  # tests that take less time run before the others
CORES = os.cpu_count() or 1
LANES = min(4, CORES)  # bugs that are tried at a time, each in a tree of its own


@dataclass
class Test:
    name: str
    targets: list  # outputs of the build that it names, its program first; empty: it needs the whole build
    cost: float


def stages(path, tests, noticed_before):
    """Returns the tests for a bug in `path` as groups in the most promising order. The tests of a group run together."""
    folder = str(pathlib.PurePosixPath(path).parent)
    first = [t for t in tests if t.name == noticed_before]
    near = [t for t in tests if t.targets and f"{pathlib.PurePosixPath(t.targets[0]).parent}/".startswith(f"{folder}/")]
    quick = [t for t in tests if t.cost < QUICK_S]
    done, result = set(), []
    for group in (first, near, quick, tests):
        group = [t for t in group if t.name not in done]
        done.update(t.name for t in group)
        if group:
            result.append(group)
    return result


def verdict(mutant, outcome):
    if outcome["test"]:
        return f"`{outcome['test']}`"
    if not outcome["compiles"]:
        return "**does not compile**"
    return f"may live: {mutant.reason}" if mutant.reason else "**survives**"


def report(mutants, outcomes):
    """Returns what --json prints (docs/json/developers/mutate.json)."""
    return {"version": 1,
            "bugs": [{"file": m.path, "title": m.title, "outcome": verdict(m, outcomes[m.key()])} for m in mutants]}


def first_failed(said):
    """Returns the first test that ctest lists as failed. Skipped tests are listed before."""
    failed = re.search(r"tests FAILED:\s*\d+ - (\S+) \(", said)
    return failed.group(1) if failed else "ctest"


class Tree:
    """A checkout of HEAD with the working tree's changes, and its build. Each lane, from 0, has one."""

    def __init__(self, root, lane):
        self.root = root
        self.dir = root / ("build/mutants" if lane == 0 else f"build/mutants-{lane + 1}")
        self.jobs = f"-j{CORES}"  # until the bugs are tried, when lanes share the cores
        self.build = self.dir / "build/release"

    def run(self, *command, **options):
        return subprocess.run([str(c) for c in command], cwd=self.dir, capture_output=True, text=True, **options)

    def prepare(self, is_unity=False):
        if not (self.dir / ".git").exists():
            subprocess.run(["git", "worktree", "prune"], cwd=self.root, check=True)
            subprocess.run(["git", "worktree", "add", "--force", "--detach", "--quiet", self.dir], cwd=self.root, check=True)
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=self.root, check=True, capture_output=True, text=True)
        self.run("git", "checkout", "--force", "--detach", "--quiet", head.stdout.strip(), check=True)
        self.run("git", "clean", "-fdq", "-e", "build", check=True)
        changes = subprocess.run(["git", "diff", "HEAD", "--binary"], cwd=self.root, check=True, capture_output=True)
        if changes.stdout:
            subprocess.run(["git", "apply", "-"], cwd=self.dir, input=changes.stdout, check=True)
        # Without unity builds, a planted bug recompiles only one source.
        self.run("cmake", "--preset", "release", f"-DCMAKE_UNITY_BUILD={'ON' if is_unity else 'OFF'}", "-S", ".", check=True)
        if not is_unity and not self.compiles([]):
            sys.exit(f"mutate: the tree does not compile as it is: ninja -C {self.build} says why")

    def tests(self, costs=None):
        """Returns the fast tests, with their `costs` in seconds (default: from this tree's last run)."""
        listed = self.run("ctest", "--test-dir", self.build, "-L", "^fast$", "--show-only=json-v1", check=True).stdout
        costs = self.costs() if costs is None else costs
        known = {line.split(": ")[0] for line in self.run("ninja", "-C", self.build, "-t", "targets", "all").stdout.splitlines()}
        result = []
        for test in json.loads(listed)["tests"]:
            if LEFT_OUT.match(test["name"]):
                continue
            words = test["command"] + [word for one in test.get("properties", []) if one["name"] == "ENVIRONMENT"
                                       for word in one["value"]]
            paths = re.findall(re.escape(str(self.build)) + r"/?([^\s:;\"']*)", " ".join(words))
            named = not any((self.build / path).is_dir() for path in paths)
            targets = [path for path in paths if path in known]
            result.append(Test(test["name"], targets if named else [], costs.get(test["name"], 0)))
        return result

    def affected(self, tests, since_ns):
        """Returns the tests whose programs were rebuilt, or that name no program."""
        def is_new(path):
            return path.exists() and path.stat().st_mtime_ns > since_ns
        return [t for t in tests if not t.targets or any(is_new(self.build / target) for target in t.targets)]

    def costs(self):
        path = self.build / "Testing/Temporary/CTestCostData.txt"
        rows = path.read_text().split("---")[0].splitlines() if path.exists() else []
        return {name: float(seconds) for name, _, seconds in (row.split() for row in rows if row.count(" ") == 2)}

    def compiles(self, tests):
        """Builds what the tests need; everything, if a test needs everything or there are no tests."""
        targets = sorted({target for t in tests for target in t.targets}) if all(t.targets for t in tests) else []
        return self.run("ninja", "-C", str(self.build), self.jobs, *targets).returncode == 0

    def failing_test(self, tests):
        """Returns the name of the first test that fails, or None."""
        names = "^(" + "|".join(re.escape(t.name) for t in tests) + ")$"
        done = self.run("ctest", "--test-dir", self.build, self.jobs, "--stop-on-failure", "--timeout", TEST_TIMEOUT_S, "-R", names)
        if done.returncode == 0:
            return None
        return first_failed(done.stdout)

    def try_one(self, mutant, groups):
        path = self.dir / mutant.path
        source = path.read_text()
        path.write_text(mutated(mutant, source))
        planted_ns = path.stat().st_mtime_ns
        try:
            for group in groups:
                if not self.compiles(group):
                    return {"test": "", "compiles": False}
                group = self.affected(group, planted_ns)
                if group and (failed := self.failing_test(group)):
                    return {"test": failed, "compiles": True}
            return {"test": "", "compiles": True}
        finally:
            path.write_text(source)


def select(mutants, outcomes, args):
    """Selects the mutants to try in this run."""
    mutants = [m for m in mutants if args.only in m.path or args.only in m.title]
    if args.go_on:
        mutants = [m for m in mutants if not outcomes.get(m.key(), {}).get("test")]
    if args.count is not None and args.drawn is None:
        mutants = random.sample(mutants, min(args.count, len(mutants)))
    return mutants


def try_all(root, mutants, outcomes, store, near, quiet):
    trees = [Tree(root, lane) for lane in range(min(LANES, len(mutants)))]
    for tree in trees:
        print(f"building {tree.dir.relative_to(root)}", file=sys.stderr, flush=True)
        tree.prepare()
    tests = trees[0].tests()
    print(f"running its {len(tests)} tests", file=sys.stderr, flush=True)
    if failed := trees[0].failing_test(tests):
        sys.exit(f"mutate: the tree does not pass its tests as it is: {failed}")
    costs = trees[0].costs()  # known now
    idle = queue.SimpleQueue()
    for tree in trees:
        tree.jobs = f"-j{max(1, CORES // len(trees))}"
        idle.put((tree, tree.tests(costs)))

    def try_in_a_lane(mutant):
        lane = idle.get()
        try:
            tree, tests = lane
            begin = time.monotonic()
            before = outcomes.get(mutant.key(), {}).get("test") or mutant.test
            groups = stages(mutant.path, tests, before)
            return mutant, tree.try_one(mutant, groups[:2] if near else groups), time.monotonic() - begin
        finally:
            idle.put(lane)

    pool = concurrent.futures.ThreadPoolExecutor(len(trees))
    try:
        for number, done in enumerate(concurrent.futures.as_completed(pool.submit(try_in_a_lane, m) for m in mutants), 1):
            mutant, outcome, seconds = done.result()
            if outcome["test"] or not near:
                outcomes[mutant.key()] = outcome
                store.write_text(json.dumps(outcomes, indent=1))
            if not quiet:
                said = "not by the nearest" if near and not outcome["test"] else verdict(mutant, outcome)
                print(f"{number:3} of {len(mutants)}  {seconds:4.0f} s  {said:34}  {mutant.path}: {mutant.title}", flush=True)
    finally:
        pool.shutdown(cancel_futures=True)  # after an interrupt, waits only for those that have started


def try_together(root, mutants, store):
    """Tries drawn bugs in one build, apart from those of the lanes. Returns their outcomes."""
    tree = Tree(root, LANES)
    print(f"building {tree.dir.relative_to(root)}, with a switch for each bug", file=sys.stderr, flush=True)
    tree.prepare(is_unity=True)
    return together.try_together(tree, root, mutants, tree.tests, LANES, store)


def arguments():
    parser = argparse.ArgumentParser(prog="./x mutate", description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("count", nargs="?", type=int, help="that many, drawn at random (default: all)")
    parser.add_argument("--drawn", type=int, metavar="SEED", help="not those of the table: small slips, drawn at random in the sources")
    parser.add_argument("--limits", action="store_true", help="... but the constants that bound something, each one more and one less")
    parser.add_argument("--together", action="store_true", help="... all in one build, with a switch each: those that can have one, on the tests that reach them")
    parser.add_argument("--only", default="", help="those with this text in their file or title")
    parser.add_argument("--continue", dest="go_on", action="store_true", help="leave out what an earlier run saw noticed")
    parser.add_argument("--near", action="store_true", help="only the tests nearest to the file: quick; bugs that these do not notice stay untried")
    parser.add_argument("--record", action="store_true", help="write into mutants.txt which test noticed each bug")
    parser.add_argument("--check", action="store_true", help="only whether each still has its place in the source")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.record and args.drawn is not None:
        parser.error("--record is for the bugs of the table, not for those that are drawn")
    if (args.limits or args.together) and args.drawn is None:
        parser.error("--limits and --together are for bugs that are drawn: --drawn SEED")
    return args


def main():
    args = arguments()
    is_drawn = args.drawn is not None
    root = args.root.resolve()
    every = parse((root / "tests/mutants/mutants.txt").read_text())
    wrong = check(root, every)
    for line in wrong:
        print(f"mutants.txt: {line}", file=sys.stderr)
    if wrong or args.check:
        return 2 if wrong else 0
    store = root / "build" / ("mutants-drawn.json" if is_drawn else "mutants-outcomes.json")
    outcomes = json.loads(store.read_text()) if store.exists() else {}
    mutants = draw.draw(root, args.count or DRAWN, args.drawn, args.limits) if is_drawn else every
    mutants = select(mutants, outcomes, args)
    if args.together:
        outcomes = try_together(root, mutants, store)
    elif mutants:
        try_all(root, mutants, outcomes, store, args.near, args.json)
    mutants = [m for m in mutants if m.key() in outcomes and (outcomes[m.key()]["compiles"] or not is_drawn)]
    left = [m for m in mutants if "**" in verdict(m, outcomes[m.key()])]
    if args.json:
        print(json.dumps(report(mutants, outcomes), indent=2))
    else:
        noticed = sum(bool(outcomes[m.key()]["test"]) for m in mutants)
        print(f"{noticed} of {len(mutants)} noticed, {len(mutants) - noticed - len(left)} explained, {len(left)} left")
    if args.record:
        written = root / "tests/mutants/mutants.txt"
        written.write_text(record(written.read_text(), outcomes))
    return 1 if left else 0


if __name__ == "__main__":
    os.nice(10)
    sys.exit(main())
