"""The folder of a run: results as they come, expectations, and reports that other programs read."""

from __future__ import annotations

import contextlib
import fcntl
import json
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

from skillet._result_files import BAD, EXPECTED, FLAKE, IMPROVED, PASS, SKIP, UNEXPECTED
from skillet.conformance._run import Result

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

LISTED = (*BAD, EXPECTED, IMPROVED, FLAKE, SKIP)  # in a baseline; the last line of a case counts. IMPROVED and SKIP expect no failure
LOG = "cases.jsonl"  # each result with all that is known, one a line; what --continue and --merge read


class BadFile(Exception):
    pass


def lines_of(file: str) -> list[str]:
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{file}: {error}") from error
    return [line for line in (one.strip() for one in lines) if line and not line.startswith("#")]


class Expectations:
    """Files as deqp-runner reads them: NAME,STATUS lines; regular expressions."""

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
        """One to be run again."""
        return self._settled(result) in BAD

    def _settled(self, result: Result) -> str:
        listed = self._baseline.get(result.name)
        if result.status == PASS and listed in (*BAD, EXPECTED):
            return IMPROVED
        if result.status not in BAD:
            return result.status
        if listed in (result.status, EXPECTED):
            return EXPECTED
        return FLAKE if listed == FLAKE or any(one.search(result.name) for one in self._flakes) else result.status

    def settle(self, result: Result) -> Result:
        """With the status beside what was expected."""
        result.status = self._settled(result)
        return result


class Folder:
    """DIR, for this run alone."""

    def __init__(self, path: str, go_on: bool) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = (self.path / "lock").open("w", encoding="utf-8")
            log = self.path / LOG
            if log.exists() and log.stat().st_size and not go_on:
                self._lock.close()
                raise BadFile(f"{path} has the results of another run: --continue goes on with it, or name another folder")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.earlier = read_log(log) if go_on and log.exists() else []
            with log.open("w", encoding="utf-8") as file:  # without a last line that was cut off
                file.writelines(json.dumps(asdict(one)) + "\n" for one in self.earlier)
            self._log = log.open("a", encoding="utf-8")
            self._csv = (self.path / "results.csv").open("w", encoding="utf-8")
            for one in self.earlier:
                self._csv.write(csv_line(one))
        except BlockingIOError:
            self._lock.close()
            raise BadFile(f"{path}: another run writes to this folder") from None
        except OSError as error:
            raise BadFile(f"{path}: {error.strerror or error}") from error

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._log, self._csv, self._lock):
            with contextlib.suppress(OSError):  # a full disk, which add() has said
                file.close()

    def add(self, result: Result) -> None:
        try:
            for file, line in ((self._log, json.dumps(asdict(result)) + "\n"), (self._csv, csv_line(result))):
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
            raise BadFile(f"{target}: {error.strerror}") from error


def csv_line(one: Result) -> str:
    return f"{one.name},{one.status},{one.seconds:.3f}\n"


def read_log(path: Path) -> list[Result]:
    """The last result of each case. A line that was cut off is left out."""
    known, found = {one.name for one in fields(Result)}, {}
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    for line in text.splitlines():
        with contextlib.suppress(ValueError, TypeError, KeyError):
            row = json.loads(line)
            found[str(row["name"])] = Result(**{key: value for key, value in row.items() if key in known})
    return list(found.values())


def failures_csv(results: Iterable[Result]) -> str:
    return "".join(f"{one.name},{one.status}\n" for one in results if one.status in (*UNEXPECTED, FLAKE))


def report(results: list[Result], head: dict[str, Any], scores: list[dict[str, Any]]) -> dict[str, Any]:
    """What --json prints and report.json has; docs/json/conformance.json is its schema."""
    rows = [{"name": one.name, "status": one.status, "reason": one.reason, "largest_difference": one.largest if one.largest != float("inf") else None,
             "values_off": one.off, "values": one.values, "taken": one.taken, "seconds": round(one.seconds, 4)} for one in results]
    return {"version": 1, **head, "scores": scores, "cases": rows}


def reduced_report(name: str, smallest: str, operations: int, result: Result, command: str) -> dict[str, Any]:
    """What --reduce --json prints."""
    return {"version": 1, "case": name, "smallest": smallest, "operations": operations, "status": result.status, "reason": result.reason, "command": command}
