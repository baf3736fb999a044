"""`skillet results`: runs a verb and writes its results in the formats of test farms."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillet._paths import command_path
from skillet._result_files import BAD, CRASH, ERROR, FAIL, PASS, SKIP, TIMEOUT, github, junit, ktap, kcidb, lava
from skillet._verb import verb_parser, would_overwrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FINE, FAILED, CANNOT_BEGIN = 0, 1, 2
FORMS = ("junit", "ktap", "lava", "github", "kcidb")
ORIGIN, BUILD = "[a-z0-9_]+", r"[a-z0-9_]+:[^\0]*"  # in KCIDB's schema
LAST_LINES = 3  # of stderr, in the reason of a failure
END_PATIENCE_SECONDS = 2.0  # for a process to end after a signal
Json = dict[str, Any]


@dataclass
class Row:
    name: str
    status: str
    reason: str = ""
    seconds: float | None = None  # None: not measured
    measurement: tuple[float, str] | None = None  # value and unit


def placed(chip: str, number: int, kind: str, where: str, why: str) -> Row:
    is_skipped = where in ("cpu", "nowhere")
    return Row(f"{chip}/{number:03}-{kind}", SKIP if is_skipped else PASS, why or (f"runs on the {where}" if is_skipped else ""))


def of_check(found: Json) -> Iterator[Row]:
    """Yields a row for the device, or for each chip."""
    for chip in found.get("chips", []):
        for number, (op, where, why) in enumerate(zip(found["ops"], chip["where"], chip["why"])):
            yield placed(chip["chip"], number, op["kind"], where, why)
    if "device" in found:
        for op in found["ops"]:
            yield placed(found["device"], op["op"], op["kind"], op["where"], op["reason"])


def of_run(found: Json) -> Iterator[Row]:
    for run in found.get("runs", [found]):
        source, expect, times = run.get("input") or "input", run.get("expect"), run.get("run_ms")
        seconds = None if times is None else (max(times) if isinstance(times, list) else times) / 1000
        if expect:
            yield Row(f"{source}/expect", PASS if expect["same"] else FAIL, expect["what"])
        for output in run.get("outputs", []):
            distance = output.get("max_difference")
            said = "" if distance is None else f"largest difference from the CPU: {distance:g}, {100 * output['difference']['differing']:.2f} % of elements differ"
            differs = bool(expect) and not expect["same"] and f"output '{output['name']}': " in expect["what"]
            yield Row(f"{source}/{output['name']}", FAIL if differs else PASS, expect["what"] if differs else said, seconds)


def of_eval(found: Json) -> Iterator[Row]:
    for key in ("same_class", "top1", "top5", "cpu_top1", "against_top1"):
        if key in found:
            yield Row(f"pictures/{key}", PASS, f"{found[key]} of {found.get('pictures', 0)}", measurement=(found[key], "pictures"))
    for one in found.get("unreadable", []):
        yield Row(f"pictures/{one}", FAIL, "cannot be read")


def of_replay(found: Json) -> Iterator[Row]:
    for one in found["written"]:
        differing = one.get("differing", 0)
        yield Row(f"submission{one['submission']}/buffer{one['buffer']}", FAIL if differing else PASS,
                  f"{differing} of {one['bytes']} bytes differ from {found['compared_with']}" if differing else "")
    for one in found["not_written"]:
        yield Row(f"submission{one['submission']}/{one['device']}", FAIL, f"not written: {', '.join(one['fields'])}")


def of_doctor(found: Json) -> Iterator[Row]:
    for one in found["findings"]:
        fix = f" Remedy: {one['fix']}" if one.get("fix") else ""
        device = one.get("device", "").rpartition("/")[2]
        yield Row(f"{one['id']}/{device}" if device else one["id"], FAIL if one["severity"] == "problem" else PASS, one["what"] + fix)


def figure(name: str, value: float, unit: str) -> Row:
    return Row(name, PASS, f"{value:g} {unit}", measurement=(value, unit))


def of_bench(found: Json) -> Iterator[Row]:
    for group in ("times", "cpu_times"):
        for key, value in (found.get(group) or {}).items():
            name = f"{group}/{key.removesuffix('_ms')}"
            yield figure(name, value, "ms" if key.endswith("_ms") else "1/s" if key == "per_second" else "runs")
    for number, part in enumerate(found.get("parts", [])):
        yield figure(f"parts/{number:02}-{part['where']}", part["mean_ms"], "ms")
    for job in found.get("jobs", []):
        yield figure(f"jobs/part{job['part']}-{job['name']}", job["mean_ms"], "ms")
    for key, unit in (("prepare_ms", "ms"), ("peak_kib", "KiB"), ("npu_ops", "operations"), ("cpu_ops", "operations"), ("fallback_ops", "operations")):
        if found.get(key) is not None:
            yield figure(key.removesuffix("_" + unit.lower()), found[key], unit)


def of_prove(found: Json) -> Iterator[Row]:
    words = {"right": PASS, "wrong": FAIL, "hangs": TIMEOUT, "failed": ERROR}
    for one in found["steps"]:
        yield Row(f"{one['kind']}/{one['name']}", words.get(one["outcome"], SKIP), one["what"] or one["outcome"])


# For each verb, the function that turns its --json output into rows.
DETAILS: dict[str, Callable[[Json], Iterator[Row]]] = {
    "check": of_check, "run": of_run, "eval": of_eval, "bench": of_bench, "replay": of_replay, "doctor": of_doctor, "prove": of_prove}


def details(verb: str, text: str) -> list[Row]:
    """Returns the rows of a verb's --json output. Empty if the verb has none or printed nothing."""
    if verb not in DETAILS or not text.strip():
        return []
    try:
        documents = [json.loads(text)]
    except ValueError:
        documents = []
        with contextlib.suppress(ValueError):  # one JSON object a line; the last line may be cut off
            for line in text.splitlines():
                documents.append(json.loads(line))
    try:
        rows = [row for one in documents for row in DETAILS[verb](one)]
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        return [Row("report", ERROR, f"what --json printed has another form: {error!r}")]
    seen: Counter[str] = Counter()
    for row in rows:  # several rows may have one name, such as pictures
        seen[row.name] += 1
        if seen[row.name] > 1:
            row.name += f"-{seen[row.name]}"
    return rows


def told(lines: deque[str], stream: Any, is_shown: bool) -> None:
    for line in stream:
        if is_shown:
            sys.stderr.write(line)
            sys.stderr.flush()
        lines.append(line)


class Ended(Exception):
    """A signal asked this program to end."""


def end_all(child: subprocess.Popen[str], number: int) -> None:
    """Sends signal NUMBER to the process and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def wait_for(child: subprocess.Popen[str], patience: float | None) -> str:
    """Waits for the process. Returns why it did not end by itself; empty: it did."""
    try:
        child.wait(patience)
        return ""
    except subprocess.TimeoutExpired:
        end_all(child, signal.SIGKILL)
        child.wait()
        return f"no end after {patience:g} s"
    except (Ended, KeyboardInterrupt) as reason:
        end_all(child, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(END_PATIENCE_SECONDS)
        end_all(child, signal.SIGKILL)
        child.wait()
        return str(reason) or "interrupted"


def run(words: list[str], patience: float | None) -> tuple[list[Row], int]:
    """Runs the verb. Returns its rows, with the row of the whole command last, and the exit code."""
    verb = words[0]
    asked = ["--json"] if verb in DETAILS and not {"--json", "--csv", "--row"} & {*words} else []
    begin, printed, said = time.monotonic(), deque[str](), deque[str](maxlen=LAST_LINES)
    child = subprocess.Popen([command_path(), *words, *asked], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                             start_new_session=True)
    readers = [threading.Thread(target=told, args=args, daemon=True) for args in ((printed, child.stdout, False), (said, child.stderr, True))]
    for reader in readers:
        reader.start()
    cut_off = wait_for(child, patience)
    for reader in readers:  # processes that the verb started may hold the pipes open
        reader.join(END_PATIENCE_SECONDS)
    code, seconds, text = child.returncode, time.monotonic() - begin, "".join(list(printed))
    reason = " ".join(line.strip() for line in (list(said) or list(printed)[-LAST_LINES:] if code else list(said)) if line.strip())
    if cut_off:
        return [*details(verb, text), Row("whole", TIMEOUT if cut_off.startswith("no end") else ERROR, cut_off, seconds)], FAILED
    status = {FINE: PASS, FAILED: FAIL, CANNOT_BEGIN: ERROR}.get(code, CRASH)
    if status in (CRASH, ERROR):
        reason = reason or (f"ended by signal {-code}" if code < 0 else f"exit code {code}")
    return [*details(verb, text), Row("whole", status, reason, seconds)], code if code >= 0 else FAILED


def positive(text: str) -> float:
    value = float(text)
    if not 0 < value < threading.TIMEOUT_MAX:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, not '{text}'")
    return value


def of_pattern(pattern: str) -> Callable[[str], str]:
    def checked(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise argparse.ArgumentTypeError(f"must be of the pattern {pattern}, as KCIDB has it, not '{text}'")
        return text
    return checked


def parser() -> argparse.ArgumentParser:
    out = verb_parser("results",
                      usage="skillet results [--junit F] [--ktap F] [--lava F] [--github F] [--kcidb F] -- VERB ...",
                      description="Runs a verb and writes its result in the forms that CI systems read. F: a file, or - for\n"
                                  "the standard output. Without any: KTAP on the standard output. A row for each operation\n"
                                  f"(check), output (run), figure (bench), buffer (replay), finding (doctor) or step (prove), then\n"
                                  f"one of the whole command; of verbs other than {', '.join(DETAILS)}: that alone.",
                      epilog="Example:\n  skillet results --junit check.xml -- check net.tflite --device sim:a311d --require 90%\n\n"
                             "Exit codes: that of the verb; 1 after --timeout; 2 it could not begin, or a file could not be written.")
    for form, what in zip(FORMS, ("JUnit (GitLab, Jenkins)", "KTAP", "signals of a LAVA test shell", "GitHub annotations of failures", "KCIDB 5.3 (KernelCI)")):
        out.add_argument(f"--{form}", metavar="F", help=what)
    out.add_argument("--origin", type=of_pattern(ORIGIN), default="skillet", help="of the KCIDB report (default: skillet)")
    out.add_argument("--build", type=of_pattern(BUILD), help="id of the KCIDB build that was tested, ORIGIN:ID (default: this machine's kernel)")
    out.add_argument("--timeout", type=positive, metavar="SECONDS", help="ends the verb after that time")
    out.add_argument("words", nargs="+", metavar="VERB ...", help=argparse.SUPPRESS)
    return out


def contents(form: str, rows: list[Row], words: list[str], args: argparse.Namespace) -> str:
    verb, title = words[0], "skillet " + " ".join(words)
    given = [word.removeprefix("--device=") for word in words if word.startswith("--device=")]
    device = words[words.index("--device") + 1] if "--device" in words[:-1] else given[-1] if given else "auto"
    made: dict[str, Callable[[], str]] = {
        "junit": lambda: junit(rows, title, verb), "ktap": lambda: ktap(rows), "lava": lambda: lava(rows, verb),
        "github": lambda: github(rows, title), "kcidb": lambda: kcidb(rows, verb, args.origin, args.build or "", device)}
    return made[form]()


def write(path: str, text: str) -> bool:
    data = text.encode("utf-8", "replace")
    try:
        if path == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            Path(path).write_bytes(data)
    except (OSError, AttributeError) as error:  # sys.stdout is None if it is closed
        print(f"skillet results: {'the standard output' if path == '-' else path}: {getattr(error, 'strerror', None) or 'closed'}", file=sys.stderr)
        return False
    return True


def unusable(wanted: dict[str, str], words: list[str]) -> str:
    files = [path for path in wanted.values() if path != "-"]
    if len(set(files)) < len(files):
        return "each form needs a file of its own"
    places = [part for word in words for part in (word, word.partition("=")[2]) if part]  # also in --expect=FILE
    read = [path for path in files if would_overwrite(path, places)]
    return f"{read[0]}: that is what the verb reads" if read else ""


def end(number: int, _: object) -> None:
    raise Ended(f"ended by signal {number}")


def main(words: list[str]) -> int:
    args = parser().parse_args(words)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    wanted = {form: getattr(args, form) for form in FORMS if getattr(args, form) is not None} or {"ktap": "-"}
    try:
        if problem := unusable(wanted, args.words):
            raise OSError(problem)
        rows, code = run(args.words, args.timeout)
    except OSError as error:
        print(f"skillet results: {error}", file=sys.stderr)
        return CANNOT_BEGIN
    except (Ended, KeyboardInterrupt):  # a second signal
        return FAILED
    written = [path for form, path in wanted.items() if write(path, contents(form, rows, args.words, args))]
    bad = sum(row.status in BAD for row in rows)
    print(f"{len(rows)} results, {bad} bad{''.join(f'; {path}' for path in written if path != '-')}", file=sys.stderr)
    return code if len(written) == len(wanted) else CANNOT_BEGIN
