"""`skillet bisect`: finds which of the fields that differ between two captures of a job make its result wrong."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from skillet._paths import command_path
from skillet._verb import verb_parser

if TYPE_CHECKING:
    from typing import Callable, Sequence

FOUND, NOTHING, CANNOT_BEGIN = 0, 1, 2
PATIENCE = 600  # seconds for one replay
SUBMISSION = re.compile(r"submission (\d+)$")
ROW = re.compile(r" *([0-9a-f]{8}): ([0-9a-f ]+)$")


class Unusable(Exception):
    """An error to report to the user."""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run([command_path(), *words], capture_output=True, text=True, check=False, timeout=PATIENCE)
    except (OSError, ValueError) as cause:
        raise Unusable(str(cause)) from None
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 1, "", f"no end after {PATIENCE} s")


def edit(path: str, file: Path) -> None:
    done = run("edit", "-o", str(file), "--", path)
    if done.returncode:
        raise Unusable(done.stderr.strip().removeprefix("skillet: "))


class Text:
    """The text of `skillet edit`, whose values can be replaced one by one by key."""

    def __init__(self, capture: str, folder: Path, name: str) -> None:
        file = folder / name
        edit(capture, file)
        if not file.read_bytes().startswith(b"# skillet edit"):  # the input was a text of `skillet edit`, not a capture
            file = folder / (name + ".again")
            edit(str(folder / name), file)
        self.lines: list[tuple[str, str]] = []  # (a fixed line, name of the rows that follow it) or ("", key of a value)
        self.values: dict[str, str] = {}
        where, part, jobs = "", "", 0
        for line in file.read_text().splitlines():
            key = ""
            if found := SUBMISSION.match(line):
                where, jobs = f"{found[1]}:", 0
            jobs += line.startswith("job")
            if line.startswith(("list ", "buffer ")):
                line = line.replace(" zero", " bytes")  # without rows: the other text may have some
                part = f"{where}job {jobs - 1} list" if line.startswith("list") else f"{where}buffer {line.split()[1]}"
                self.lines.append((line, part))
            elif line.startswith("field "):
                key = where + line[6:].split(" = ")[0]
            elif found := ROW.match(line):
                key = f"{part} bytes from {int(found[1], 16)} on"
            else:
                self.lines.append((line, ""))
            if key:
                self.lines.append(("", key))
                self.values[key] = line

    def shape(self) -> list[str]:
        """Returns all lines that are neither fields nor rows of words."""
        return [line for line, _ in self.lines if line and not line.startswith("node")]

    def fields(self) -> dict[str, set[str]]:
        """Returns the keys of fields by submission."""
        out: dict[str, set[str]] = {}
        for key in self.values:
            if " bytes from " not in key:
                out.setdefault(key.split(":")[0], set()).add(key)
        return out

    def drop(self, keys: set[str]) -> None:
        """Removes fields: the words that contain them hold the same values."""
        self.lines = [(line, key) for line, key in self.lines if line or key not in keys]
        for key in keys & self.values.keys():
            del self.values[key]

    def with_values(self, values: dict[str, str]) -> str:
        """Returns the text with some values replaced. An added row, which was zero before, follows the line of its list or buffer."""
        taken, out = {**self.values, **values}, []
        rows = {key: value for key, value in values.items() if key not in self.values}
        for line, name in self.lines:
            out.append(line or taken.get(name, ""))
            if line and name:
                out += [value for key, value in rows.items() if key.startswith(name + " bytes")]
        return "\n".join(out) + "\n"


def drop_unpaired(right: Text, wrong: Text) -> None:
    """Removes fields of submissions whose registers differ: there the fields are other words, so bare words are compared."""
    a, b = right.fields(), wrong.fields()
    for where in a.keys() | b.keys():
        if a.get(where, set()) != b.get(where, set()):
            right.drop(a.get(where, set()))
            wrong.drop(b.get(where, set()))


def candidates(right: Text, wrong: Text) -> dict[str, str]:
    """Returns the lines that can be taken from WRONG by key, fields before bare words."""
    keys = [key for key in wrong.values if key in right.values and right.values[key] != wrong.values[key]]
    rows = [key for key in {**right.values, **wrong.values} if (key in right.values) != (key in wrong.values) and " bytes from " in key]
    zeros = {key: re.sub(r"(?<=[: ])[0-9a-f]{8}(?!:)", "0" * 8, right.values[key]) for key in rows if key in right.values}
    keys.sort(key=lambda key: " bytes from " in key)
    return {**{key: wrong.values[key] for key in keys}, **{key: zeros.get(key) or wrong.values[key] for key in rows}}


def smallest_wrong(keys: Sequence[str], is_wrong: Callable[[Sequence[str]], bool]) -> list[str]:
    """Returns a minimal set of KEYS that is wrong together, if all of them are. Finds each by bisection."""
    fixed: list[str] = []
    end = len(keys)
    while end and not (fixed and is_wrong(fixed)):
        low, high = 0, end  # keys[:low] with the fixed keys is right, keys[:high] is wrong
        while high - low > 1:
            middle = (low + high) // 2
            if is_wrong([*keys[:middle], *fixed]):
                high = middle
            else:
                low = middle
        fixed.append(keys[high - 1])
        end = high - 1
    return fixed


class Bisection:
    def __init__(self, a: str, b: str, device: str, folder: Path, inputs: Sequence[str]) -> None:
        self._folder, self._device = folder, device
        self._right = Text(a, folder, "a.txt")
        wrong = Text(b, folder, "b.txt")
        if self._right.shape() != wrong.shape():
            raise Unusable(f"{a} and {b} are not of one job: their devices, lists or buffers are others")
        drop_unpaired(self._right, wrong)
        self.differing = candidates(self._right, wrong)
        self._inputs = list(inputs) or self._random_inputs()
        self.replays = 0
        self.reason = ""
        done = self._replay([], "--output")
        if done.returncode:
            raise Unusable(f"{a} cannot run: {done.stderr.strip()}")
        if not (folder / "right").is_dir():
            raise Unusable(f"{a}: its jobs write no buffer, so there is no result that could be wrong")

    def _random_inputs(self) -> list[str]:
        """Writes random data for inputs that were not recorded: zeros would hide most faults."""
        out, seen = [], set()
        for line, _ in self._right.lines:
            found = re.match(r"buffer (\d+) \S+ (\d+) unknown.* read", line)
            if found and found[1] not in seen and int(found[2]) <= 1 << 26:
                seen.add(found[1])
                file = self._folder / f"input{found[1]}.bin"
                file.write_bytes(Random(1).randbytes(int(found[2])))
                out.append(f"{found[1]}={file}")
        return out

    def _replay(self, keys: Sequence[str], what: str) -> subprocess.CompletedProcess[str]:
        file = self._folder / "job.txt"
        file.write_text(self._right.with_values({key: self.differing[key] for key in keys}))
        inputs = [word for one in self._inputs for word in ("--input", one)]
        self.replays += 1
        return run("replay", str(file), "--device", self._device, *inputs, what, str(self._folder / "right"))

    def is_wrong(self, keys: Sequence[str]) -> bool:
        done = self._replay(keys, "--expect")
        if done.returncode:
            lines = done.stderr.replace(f"{self._folder}/job.txt: ", "").strip().splitlines()
            self.reason = lines[-1].removeprefix("skillet: ") if lines else "another result"
        return done.returncode != 0

    def faults(self) -> list[tuple[list[str], str]]:
        """Returns minimal groups of fields, each of which alone makes the result wrong, with the reason."""
        out: list[tuple[list[str], str]] = []
        left = list(self.differing)
        while left and self.is_wrong(left):
            group = smallest_wrong(left, self.is_wrong)
            out.append((group, self.reason))
            left = [key for key in left if key not in group]
        return out


def chip_device(capture: str) -> str:
    done = run("decode", "--json", "--last", "1", "--", capture)
    if not done.stdout:
        raise Unusable(done.stderr.strip().removeprefix("skillet: "))
    return "sim:" + str(json.loads(done.stdout)["chip"])


def parser() -> argparse.ArgumentParser:
    out = verb_parser("bisect",
                      description="Says which of the fields that differ between two captures of one job make its result wrong: runs A\n"
                                  "with fewer and fewer values of B. What was not recorded of the inputs is random.",
                      epilog="Example: skillet bisect right.skcap wrong.skcap --device sim:a311d\n\n"
                             "Exit codes: 0 found; 1 B computes what A does; 2 it could not begin.")
    out.add_argument("a", metavar="A", help="the right one: a capture, or a text of skillet edit")
    out.add_argument("b", metavar="B", help="the wrong one")
    out.add_argument("--device", metavar="D", help="what runs them: sim:CHIP, npu, /dev/... (default: the simulated chip)")
    out.add_argument("--input", metavar="N=FILE", action="append", default=[], help="contents of a buffer that were not recorded")
    out.add_argument("--json", action="store_true", help="machine-readable output")
    return out


def bisect(args: argparse.Namespace, folder: Path) -> int:
    search = Bisection(args.a, args.b, args.device or chip_device(args.a), folder, args.input)
    found = search.faults()
    if args.json:
        print(json.dumps({"version": 1, "differing": len(search.differing), "replays": search.replays,
                          "faults": [{"fields": [{"name": key, "a": search._right.values.get(key, ""), "b": search.differing[key]} for key in keys], "reason": reason}
                                     for keys, reason in found]}, indent=1))
    else:
        for keys, reason in found:
            print("wrong" + (" together" if len(keys) > 1 else "") + (f" ({reason})" if reason else ""))
            for key in keys:
                print(f"  {key}\n    a: {search._right.values.get(key, 'zeros').strip()}\n    b: {search.differing[key].strip()}")
        print(f"{len(search.differing)} lines differ; {search.replays} replays" + ("" if found else "; none of them makes the result wrong"))
    return FOUND if found else NOTHING


def main(words: list[str] | None = None) -> int:
    args = parser().parse_args(words)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return bisect(args, Path(folder))
    except (Unusable, OSError) as cause:
        print(f"bisect: {cause}", file=sys.stderr)
        return CANNOT_BEGIN


if __name__ == "__main__":
    sys.exit(main())
