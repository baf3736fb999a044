#!/usr/bin/env python3
"""Builds each family of NPUs alone (SKILLET_VENDORS), and runs the fast tests whose result depends on which families are built.

usage: families.py [FAMILY...]     (default: all folders of src/npus); exit code 1 if a build or a test fails.
Builds are in build/family-NAME, with the compiler cache of the others.
"""
import functools
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Libraries made from the list of families: a test that links none of them does not depend on families.
REGISTRIES = re.compile(r"^src/(npu/libskillet_npu|sim/libskillet_sim|kernels/fake/libskillet_\w+)\.a$", re.M)


def output_of(*command):
    return subprocess.run([str(word) for word in command], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def families():
    return sorted(folder.name for folder in (ROOT / "src/npus").iterdir() if (folder / "compiler/CMakeLists.txt").is_file())


@functools.cache
def depends_on_families(build, output):
    return bool(REGISTRIES.search(output_of("ninja", "-C", build, "-t", "inputs", output)))


def wanted_targets(test, build, outputs):
    """Returns the targets that TEST needs; empty: it does not depend on families."""
    own = {f"{test['name']}_test"} & outputs
    files = {str(Path(word).relative_to(build)) for word in test.get("command", []) if Path(word).is_relative_to(build)} & outputs
    return own | files if any(depends_on_families(build, one) for one in own | files) else set()


PRELOADED = {"skillet_virtual_preload", "skillet_capture_preload"}  # the command looks for them beside itself


def check(family):
    build = ROOT / f"build/family-{family}"
    output_of("cmake", "--preset", "release", "-S", ROOT, "-B", build, f"-DSKILLET_VENDORS={family}")
    outputs = {line.rpartition(": ")[0] for line in output_of("ninja", "-C", build, "-t", "targets", "all").splitlines()}
    tests = json.loads(output_of("ctest", "--test-dir", build, "-L", "fast", "--show-only=json-v1"))["tests"]
    needed = {test["name"]: found for test in tests if (found := wanted_targets(test, build, outputs))}
    if not needed:
        print(f"{family}: no test depends on it")
        return False
    print(f"{family} alone: {len(needed)} of {len(tests)} tests: {' '.join(needed)}", flush=True)
    targets = set().union(*needed.values())
    if any(target.endswith("/skillet") for target in targets):
        targets |= PRELOADED & outputs
    built = subprocess.run(["ninja", "-C", str(build), "--quiet", *sorted(targets)], check=False)
    # Two more than there are cores, since some tests wait.
    names = "|".join(re.escape(name) for name in needed)
    return built.returncode == 0 and subprocess.run(
        ["ctest", "--test-dir", str(build), "-R", f"^({names})$", "--output-on-failure", f"-j{os.cpu_count() + 2}"], check=False).returncode == 0


def main():
    failed = []
    for family in sys.argv[1:] or families():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not check(family):
            failed.append(family)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{family}: {after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.0f} s of CPU time", flush=True)
    if failed:
        print(f"not fine alone: {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
