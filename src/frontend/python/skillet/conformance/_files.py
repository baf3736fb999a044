"""The files of a run's folder: results as they arrive, expectations, and reports for other programs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import re
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

from skillet._result_files import BAD, EXPECTED, FLAKE, IMPROVED, PASS, SKIP, UNEXPECTED
from skillet.conformance._models import sha256
from skillet.conformance._run import END, LISTED_IN_SKIPS, Result

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TextIO

    from skillet.conformance._targets import Target

LISTED = (*BAD, EXPECTED, IMPROVED, FLAKE, SKIP)  # statuses in a baseline; the last line of a case counts. IMPROVED and SKIP expect no failure
LOG = "cases.jsonl"  # a head, then all details of each result, one a line; --continue and --merge read it
# Fields of the head that must be equal in runs whose results are combined, with their names in messages.
SAME = {"kind": "kind of target", "target": "target", "file": "file of the target (its SHA-256)", "tolerance": "tolerance", "models": "folder of models (its SHA-256)",
        "judge": "judge"}


class BadFile(Exception):
    pass


def lines_of(file: str) -> list[str]:
    try:
        lines = Path(file).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{file}: {error}") from error
    return [line for line in (one.strip() for one in lines) if line and not line.startswith("#")]


class Expectations:
    """Expectations in deqp-runner's formats: lines NAME,STATUS, and regular expressions."""

    def __init__(self, baseline: list[str], flakes: list[str], skips: list[str]) -> None:
        self._baseline: dict[str, str] = {}
        for file in baseline:
            for line in lines_of(file):
                name, comma, status = line.rpartition(",")
                if not comma or status not in LISTED:
                    raise BadFile(f"{file}: '{line}' is no line NAME,STATUS with one of {', '.join(LISTED)}")
                self._baseline[name] = status
        self._flakes, self._skips = (self._patterns(files) for files in (flakes, skips))

    @staticmethod
    def _patterns(files: list[str]) -> list[re.Pattern[str]]:
        out = []
        for file in files:
            for line in lines_of(file):
                try:
                    out.append(re.compile(line))
                except re.error as error:
                    raise BadFile(f"{file}: '{line}' is no regular expression: {error}") from error
        return out

    def is_skipped(self, name: str) -> bool:
        return any(one.search(name) for one in self._skips)

    def is_unlisted_failure(self, result: Result) -> bool:
        """Returns whether the result is an unexpected failure, which is run again."""
        return self._settled(result) in BAD

    def _settled(self, result: Result) -> str:
        listed = self._baseline.get(result.name)
        if result.name.startswith(END) and listed is None:  # which case it is depends on how cases are grouped
            listed = next((status for name, status in self._baseline.items() if name.startswith(END) and status in (result.status, EXPECTED)), None)
        if result.status == PASS and listed in (*BAD, EXPECTED):
            return IMPROVED
        if result.status not in BAD:
            return result.status
        if listed in (result.status, EXPECTED):
            return EXPECTED
        return FLAKE if listed == FLAKE or any(one.search(result.name) for one in self._flakes) else result.status

    def settle(self, result: Result) -> Result:
        """Replaces the status of the result by its status relative to the expectations."""
        if self.is_skipped(result.name):
            result.status, result.reason, result.taken = SKIP, LISTED_IN_SKIPS, False
        was, result.status = result.status, self._settled(result)
        if was == PASS and result.status == IMPROVED:
            result.reason = f"it passes, and a baseline expects {self._baseline[result.name]}"
        return result


def log_head(target: Target, tolerance: dict[str, float], suite: str, models: dict[str, Path], fraction: str = "1/1") -> dict[str, Any]:
    """Returns the head of a run's log. MODELS: all models of the folder, although this run may test only some."""
    is_file = target.kind in ("delegate", "onnx-ep") and "/" in target.name
    return {"version": 1, "kind": target.kind, "target": target.title, "file": sha256([("", Path(target.name))] if is_file else []), "tolerance": tolerance,
            "suite": str(Path(suite).resolve()) if models else suite, "models": sha256(models.items()), "fraction": fraction}


def missing_shards(heads: list[dict[str, Any]], names: list[str]) -> list[str]:
    """Returns the shards that are missing. Raises BadFile if a shard occurs twice."""
    found: dict[tuple[str, str], str] = {}
    for head, name in zip(heads, names):
        key = (str(head.get("suite", "")), str(head.get("fraction", "")))
        if key[1] not in ("", "1/1") and key in found:
            raise BadFile(f"{found[key]} and {name} are the same shard, {key[1]}")
        found[key] = name
    counts = {(suite, fraction.partition("/")[2]) for suite, fraction in found if fraction}
    return [f"{at}/{count} of {suite}" for suite, count in sorted(counts) for at in range(1, int(count) + 1) if (suite, f"{at}/{count}") not in found]


def differences(was: dict[str, Any], now: dict[str, Any], keys: Iterable[str]) -> list[str]:
    """Describes the fields KEYS that differ, with both values."""
    return [f"{SAME.get(key, key)}: {was.get(key) or 'none'}, and {now.get(key) or 'none'}" for key in keys if was.get(key) != now.get(key)]


class Folder:
    """The folder of a run, which locks it. Without HEAD it has no log of results."""

    def __init__(self, path: str, go_on: bool = True, head: dict[str, Any] | None = None, names: Iterable[str] = ()) -> None:
        self.path, self.earlier = Path(path), list[Result]()
        self._files: list[TextIO] = []
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._files.append((self.path / "lock").open("w", encoding="utf-8"))
            log = self.path / LOG
            if head is not None and not go_on and log.exists() and log.read_bytes().count(b"\n") > 1:
                raise BadFile(f"{path} has the results of another run: --continue goes on with it, or name another folder")
            fcntl.flock(self._files[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
            if head is not None:
                self._begin(log, go_on, head, set(names))
        except BlockingIOError:
            self.close()
            raise BadFile(f"{path}: another run writes to this folder") from None
        except OSError as error:
            self.close()
            raise BadFile(f"{path}: {error.strerror or error}") from error
        except BadFile:
            self.close()
            raise

    def _begin(self, log: Path, go_on: bool, head: dict[str, Any], names: set[str]) -> None:
        if go_on and log.exists():
            was, self.earlier = read_log(log)
            different = differences(was, head, (*SAME, "suite")) if self.earlier else []
            if different:
                raise BadFile(f"{self.path}: its results are not of this run ({'; '.join(different)}): name another folder")
        count = len(names | {one.name for one in self.earlier if not one.name.startswith(END)})
        new = log.with_suffix(".new")  # a full disk or a kill keeps the old file
        with new.open("w", encoding="utf-8") as file:  # omits a last line that was cut off
            file.write(json.dumps({**head, "cases": count}) + "\n")
            file.writelines(json.dumps(asdict(one)) + "\n" for one in self.earlier)
        new.replace(log)
        self._files += [log.open("a", encoding="utf-8"), (self.path / "results.csv").open("w", encoding="utf-8")]
        self._files[2].writelines(csv_line(one) for one in self.earlier)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for file in reversed(self._files):
            with contextlib.suppress(OSError):  # a full disk, which add() has reported
                file.close()

    def add(self, result: Result) -> None:
        try:
            for file, line in zip(self._files[1:], (json.dumps(asdict(result)) + "\n", csv_line(result))):
                file.write(line)
                file.flush()
        except OSError as error:
            raise BadFile(f"{self.path}: {error.strerror}; what is done is kept, --continue goes on") from error

    def write(self, name: str, content: str | bytes) -> None:
        target = self.path / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise BadFile(f"{target}: {error.strerror}" + (f"; results are in {self.path / LOG}, --continue writes the rest" if len(self._files) > 1 else "")) from error


def csv_line(one: Result) -> str:
    return f"{one.name},{one.status},{one.seconds:.3f}\n"


def read_log(path: Path) -> tuple[dict[str, Any], list[Result]]:
    """Returns the head of a log, and the last result of each case.

    Ignores an incomplete last line. Returns nothing if the head itself is incomplete. Raises BadFile for a damaged log."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    head: dict[str, Any] = {}
    found: dict[str, Result] = {}
    for number, line in enumerate(lines, 1):
        row: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            row = json.loads(line)
        if number == 1:
            is_text = isinstance(row, dict) and all(isinstance(row.get(key), str) for key in ("target", "judge", "suite", "runtime"))
            if not is_text or row.get("version") != 1 or not is_number(row.get("cases")):
                raise BadFile(f"{path}: its first line does not say what was tested: the file is of another version, or damaged")
            head = row
            continue
        result = result_of(row)
        if result is None:
            raise BadFile(f"{path}: line {number} is no result of a case")
        found[result.name] = result
    return head, list(found.values())


def whole_log(path: Path) -> tuple[dict[str, Any], list[Result]]:
    """Reads the log of a complete run. Raises BadFile if the run did not end."""
    head, results = read_log(path)
    done = sum(not one.name.startswith(END) for one in results)
    if not head:
        raise BadFile(f"{path}: is empty")
    if done < head["cases"]:
        raise BadFile(f"{path}: the run was interrupted, it has {done} of {head['cases']} cases: --continue goes on with it")
    return head, results


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def result_of(row: Any) -> Result | None:
    """Returns the result in a row of the log, or None if the row is invalid."""
    if not isinstance(row, dict) or not {"name", "status"} <= set(row):
        return None
    known = {one.name for one in fields(Result)}
    try:
        one = Result(**{key: value for key, value in row.items() if key in known})
    except TypeError:  # a field is missing or unknown
        return None
    lines: Any = [] if one.picture is None else one.picture
    is_right = (all(isinstance(value, str) for value in (one.name, one.status, one.reason, one.first)) and one.status in (PASS, *LISTED)
                and (one.taken is None or isinstance(one.taken, bool)) and (one.largest == float("inf") or is_number(one.largest)) and is_number(one.seconds)
                and all(is_number(value) and isinstance(value, int) for value in (one.off, one.values))
                and isinstance(lines, list) and all(isinstance(line, list) and all(is_number(value) for value in line) for line in lines))
    return one if is_right else None


def failures_csv(results: Iterable[Result]) -> str:
    return "".join(f"{one.name},{one.status}\n" for one in results if one.status in (*UNEXPECTED, FLAKE))


def report(results: list[Result], head: dict[str, Any], scores: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns what --json prints and report.json contains. Its schema is docs/json/conformance.json."""
    rows = [{"name": one.name, "status": one.status, "reason": one.reason, "largest_difference": one.largest if one.largest != float("inf") else None,
             "values_off": one.off, "values": one.values, "taken": one.taken, "seconds": round(one.seconds, 4)} for one in results]
    return {"version": 1, **head, "scores": scores, "cases": rows}


def reduced_report(name: str, smallest: str, operations: int, result: Result, command: str) -> dict[str, Any]:
    """Returns what --reduce --json prints."""
    return {"version": 1, "case": name, "smallest": smallest, "operations": operations, "status": result.status, "reason": result.reason, "command": command}
