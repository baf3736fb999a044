"""The command line of `python3 -m skillet.conformance`."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback while modules are imported; main() sets a handler

from skillet.conformance._arguments import TIMEOUT_SECONDS, parser

try:
    import numpy as np
except ImportError:
    parser().parse_known_args(sys.argv)  # --help prints and ends
    print("conformance: NumPy is not installed: pip install numpy ai-edge-litert", file=sys.stderr)
    sys.exit(2)

from skillet._result_files import SKIP, UNEXPECTED, junit, kcidb, ktap, lava
from skillet.conformance import _page, _score
from skillet.conformance._cases import SUITES, BadName, build, parse
from skillet.conformance._child import Case
from skillet.conformance._files import LOG, SAME, BadFile, Expectations, Folder, differences, failures_csv, log_head, missing_shards, reduced_report, report, whole_log
from skillet.conformance._judge import TOLERANCE
from skillet.conformance._reduce import Reducer
from skillet.conformance._run import END, LISTED_IN_SKIPS, STOPS, Result, Runner, Stopped, printable
from skillet.conformance._targets import Reference, Target, Unusable, command_words, needed_runtime, runtime_name

if TYPE_CHECKING:
    import argparse
    from typing import Any

FINE, FAILED, CANNOT_BEGIN = 0, 1, 2
MOST_PROPERTIES = 12  # in the table on the terminal
MOST_FILES = 100  # of failures whose models are kept
NOT_FOR_MERGE = ("option", "case", "only", "tolerance", "list", "go_on", "reduce")


def fail(message: str) -> int:
    print(f"conformance: {message}", file=sys.stderr)
    return CANNOT_BEGIN


def target_of(args: argparse.Namespace) -> Target:
    options = {}
    for one in args.option:
        key, equals, value = one.partition("=")
        if not equals:
            raise BadName(f"--option {one}: is no KEY=VALUE")
        options[key] = value
    for kind in ("delegate", "device", "onnx-ep", "command", "kernels"):
        name = getattr(args, kind.replace("-", "_"))
        if name is not None:
            if options and kind not in ("delegate", "device", "onnx-ep"):
                raise BadName("--option is for --delegate, --device and --onnx-ep")
            if kind in ("delegate", "onnx-ep") and "/" in name:
                if not Path(name).exists():
                    raise BadName(f"--{kind} {name}: there is no such file")
                name = str(Path(name).resolve())
            if kind == "command":
                command_words(name)
            if kind not in ("device", "onnx-ep"):
                needed_runtime()
            return Target(kind, name, options)
    raise BadName("name what is to be tested: --delegate, --device, --onnx-ep, --command or --kernels (see --help)")


def tolerances(args: argparse.Namespace) -> dict[str, float]:
    out = {}
    for one in args.tolerance:
        op, _, value = one.rpartition("=")
        if op and op not in TOLERANCE and op not in {name.split("/")[0] for name in SUITES["ops"]()}:
            raise BadName(f"--tolerance {one}: no operation is called '{op}'")
        try:
            out[op] = float(value)
        except ValueError:
            raise BadName(f"--tolerance {one}: '{value}' is no number") from None
        if not 0 <= out[op] < math.inf:
            raise BadName(f"--tolerance {one}: '{value}' is no number of steps")
    return out


def models_in(folder: Path) -> list[Path]:
    """Lists the models in a folder. Folders in it that cannot be listed are included: each gets a row in the results."""
    out: list[Path] = []
    for place, folders, files in os.walk(folder, onerror=lambda error: out.append(Path(error.filename)) if Path(error.filename) != folder else None):
        out += [Path(place) / name for name in (*folders, *files) if name.endswith(".tflite")]
    return out


def named(folder: Path) -> dict[str, Path]:
    """Returns the models of a folder, with names that fit in a line of a table."""
    out: dict[str, Path] = {}
    for file in sorted(models_in(folder)):
        name = "".join(one if one.isprintable() and one != "," else "_" for one in str(file.relative_to(folder).with_suffix("")))
        while name in out:
            name += "_"
        out[name] = file
    return out


def cases_of(args: argparse.Namespace) -> list[Case]:
    if args.case:
        for name in args.case:
            parse(name)
            build(name)
        cases = [Case(name) for name in dict.fromkeys(args.case)]
    elif args.suite in SUITES:
        cases = [Case(name) for name in SUITES[args.suite]()]
    else:
        folder = Path(args.suite)
        cases = [Case("nets/" + name, str(file)) for name, file in named(folder).items()]
        if not cases:
            raise BadName(f"--suite {args.suite}: is neither {' nor '.join(SUITES)}, nor a folder with .tflite files")
    found = re.match(r"(\d+)/(\d+)$", args.fraction)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise BadName(f"--fraction {args.fraction}: is no K/N with 1 <= K <= N")
    try:
        wanted = re.compile(args.only or "")
    except re.error as error:
        raise BadName(f"--only {args.only}: {error}") from None
    cases = [case for case in cases if wanted.search(case.name)]
    if not cases:
        raise BadName(f"--only {args.only}: no case matches")
    return cases[int(found[1]) - 1::int(found[2])]


class Progress:
    """Shows progress in one line, if the output is a terminal."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._bad, self._is_shown = total, 0, 0, sys.stderr.isatty()

    def add(self, result: Result) -> None:
        self._done += 1
        self._bad += result.status in UNEXPECTED
        if self._is_shown:
            print(f"\r{self._done} of {self._total}, {self._bad} failed", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._is_shown:
            print("\r\033[K", end="", file=sys.stderr)


def command_for(target: Target, name: str, args: argparse.Namespace) -> str:
    """Returns the command line that runs a case again with the same checks."""
    def quoted(text: str) -> str:
        return text if re.match(r"[\w./:=+-]+$", text) else "'" + text.replace("'", "'\\''") + "'"
    options = " ".join(f"--option {quoted(f'{key}={value}')}" for key, value in target.options.items())
    how = "--reduce" if name.startswith(END) else "--case"  # --reduce runs the case several times in a process, which a failure at its end may need
    judged = [f"--tolerance {quoted(one)}" for one in args.tolerance] + ([f"--timeout {args.timeout:g}"] if args.timeout != TIMEOUT_SECONDS else [])
    return " ".join([f"python3 -m skillet.conformance --{target.kind} {quoted(target.name)}", *([options] if options else []), *judged, how, quoted(name)])


def keep_case(folder: Folder, name: str, target: Target, where: str, args: argparse.Namespace) -> None:
    """Keeps the model, its inputs, and the command that runs it again."""
    made = build(name)
    stem = f"{where}/{name.replace('/', '_')}"
    folder.write(stem + ".tflite", made.graph.file())
    for which in (0, 1):
        file = io.BytesIO()
        np.savez(file, **{f"t{index}": value for index, value in zip(made.graph.inputs, made.inputs(which))})
        folder.write(f"{stem}.inputs{which}.npz", file.getvalue())
    folder.write(stem + ".txt", command_for(target, name, args) + "\n")


def write_reports(folder: Folder, results: list[Result], head: dict[str, Any]) -> dict[str, Any]:
    rows = _score.scores(results)
    made = report(results, head, [one.row() for one in rows])
    for name, content in (("failures.csv", failures_csv(results)), ("junit.xml", junit(results, head["target"], "conformance")), ("ktap.txt", ktap(results)),
                          ("lava.txt", lava(results, "conformance")), ("kcidb.json", kcidb(results, "conformance", "skillet", "", head["target"])), ("report.html", _page.page(results, head["target"], head["judge"])),
                          ("report.json", json.dumps(made, indent=1) + "\n"), ("scores.txt", _score.table(rows) + "\n" + _score.property_table(results, 200)), ("scores.md", _score.markdown(rows))):
        folder.write(name, content)
    return made


def finish(args: argparse.Namespace, folder: Folder | None, results: list[Result], head: dict[str, Any], said: str = "", is_partial: bool = False) -> int:
    rows = _score.scores(results)
    made = write_reports(folder, results, head) if folder else report(results, head, [one.row() for one in rows])
    if args.json:
        print(json.dumps(made, indent=1))
    else:
        print(_score.table(rows) + "\n" + _score.property_table(results, MOST_PROPERTIES) + _score.verdict(results) + f". Target: {head['target']}. Compared with the {head['judge']}.")
        for one in [one for one in results if one.status in UNEXPECTED][:20]:
            print(f"{one.name}: {one.status}: {one.reason}")
        if folder:
            print(f"{folder.path}/report.html, results.csv, failures.csv, junit.xml, ktap.txt, lava.txt, kcidb.json, report.json")
    if is_partial:
        return FAILED  # the caller prints the reason
    if not _score.took_any(results):
        print("conformance: " + _score.nothing_ran(results, head["target"], head["suite"], said), file=sys.stderr)
        return FAILED
    return FINE if _score.is_fine(results) else FAILED


def run(args: argparse.Namespace) -> int:
    if args.go_on and not args.output:
        raise BadName("--continue needs -o DIR")
    cases = cases_of(args)
    if args.list:
        print("\n".join(case.name for case in cases))
        return FINE
    target, tolerance = target_of(args), tolerances(args)
    expectations = Expectations(args.baseline, args.flakes, args.skips)
    with contextlib.ExitStack() as stack:
        folder = None
        if args.output:
            models = named(Path(args.suite)) if args.suite not in SUITES and not args.case else {}
            head = {**log_head(target, tolerance, args.suite, models, args.fraction), "judge": Reference().name, "runtime": runtime_name()}
            folder = stack.enter_context(Folder(args.output, args.go_on, head, [case.name for case in cases]))
        return run_cases(args, target, tolerance, cases, expectations, folder)


def run_cases(args: argparse.Namespace, target: Target, tolerance: dict[str, float], cases: list[Case], expectations: Expectations,
              folder: Folder | None) -> int:
    results = [expectations.settle(one) for one in folder.earlier] if folder else []
    known = {one.name for one in results}
    progress, begin = Progress(len(cases)), time.time()

    def tell(result: Result) -> None:
        expectations.settle(result)
        results.append(result)
        if folder:
            folder.add(result)
        progress.add(result)

    todo = []
    for case in cases:
        if case.name in known:
            continue
        if expectations.is_skipped(case.name):
            tell(Result(case.name, SKIP, 0, LISTED_IN_SKIPS, False))
        else:
            todo.append(case)
    stopped = ""
    runner = Runner(target, tell, max(1, args.jobs), args.timeout, tolerance, expectations.is_unlisted_failure)
    try:
        runner.run(todo)
    except Stopped as error:
        stopped = str(error)
    except KeyboardInterrupt:
        stopped = "interrupted"
    progress.end()
    if runner.warned:
        print(f"conformance: the target printed: {runner.warned}", file=sys.stderr)
    order = {case.name: at for at, case in enumerate(cases)}
    results.sort(key=lambda one: order.get(one.name, len(order)))
    head = {"target": target.title, "judge": Reference().name, "suite": args.suite, "fraction": args.fraction, "runtime": runtime_name(),
            "seconds": round(time.time() - begin, 1), "not_run": len(set(order) - {one.name for one in results})}
    code = finish(args, folder, results, head, runner.said, bool(stopped))
    if folder:
        for one in [one for one in results if one.status in UNEXPECTED and not one.name.startswith(("nets/", END))][:MOST_FILES]:
            keep_case(folder, one.name, target, "failing", args)
    if stopped:
        print(f"conformance: {stopped}; {head['not_run']} cases were not run" + (": --continue goes on" if folder else ""), file=sys.stderr)
        return FAILED
    return code


def merge(args: argparse.Namespace) -> int:
    for name in NOT_FOR_MERGE:
        if getattr(args, name):
            raise BadName(f"--{'continue' if name == 'go_on' else name} is not for --merge")
    if not args.output:
        raise BadName("--merge needs -o DIR")
    expectations = Expectations(args.baseline, args.flakes, args.skips)
    results: dict[str, Result] = {}
    heads: list[dict[str, Any]] = []
    for one in args.merge:
        head, found = whole_log(Path(one) / LOG)
        for other, was in zip(args.merge, heads):  # a run of another suite has no folder of models
            different = differences(was, head, [key for key in SAME if key != "models" or (was.get(key) and head.get(key))])
            if different:
                raise BadFile(f"{other} and {one} are different runs ({'; '.join(different)})")
        if any(Path(one).resolve() == Path(other).resolve() for other in args.merge[:len(heads)]):
            raise BadName(f"--merge {one}: occurs twice")
        heads.append(head)
        for result in found:  # if several runs have the case, its failure counts
            if result.name not in results or results[result.name].status not in UNEXPECTED:
                results[result.name] = expectations.settle(result)
    missing = missing_shards(heads, args.merge)
    suite = ", ".join(dict.fromkeys(str(one.get("suite", "")) for one in heads))
    head = {**{key: heads[0].get(key, "") for key in ("target", "judge", "runtime")}, "suite": suite, "fraction": "1/1",
            "seconds": round(sum(seconds_of(Path(one) / "report.json") for one in args.merge), 1)}
    with Folder(args.output, False, {**heads[0], "suite": suite}, [name for name in results if not name.startswith(END)]) as folder:
        for result in results.values():
            folder.add(result)
        code = finish(args, folder, list(results.values()), head)
    if missing:
        print(f"conformance: these shards are missing: {', '.join(missing)}", file=sys.stderr)
    return FAILED if missing else code


def seconds_of(file: Path) -> float:
    """Returns the time of a run from its report, in seconds."""
    try:
        return float(json.loads(file.read_text(encoding="utf-8"))["seconds"])
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return 0.0


def reduce(args: argparse.Namespace) -> int:
    target, name = target_of(args), args.reduce
    if name.removeprefix(END).startswith("nets/"):
        raise BadName(f"--reduce {name}: is a model of a folder, which is not made smaller: skillet eval MODEL --data PICTURES --layers says which operation differs first")
    parse(name.removeprefix(END))
    build(name.removeprefix(END))
    reducer = Reducer(target, max(1, args.jobs), args.timeout, tolerances(args))
    found = reducer.reduce(name, lambda text: print(text, file=sys.stderr))
    if found is None:
        was = f"{reducer.first.status}{reducer.first.reason and ': '}{reducer.first.reason}" if reducer.first else "it was not run"
        print(f"conformance: {name} does not fail on {target.title}: {was}", file=sys.stderr)
        return FAILED
    smallest, result = found
    operations = len(build(smallest).graph.operations)
    command = command_for(target, result.name, args)
    if args.json:
        print(json.dumps(reduced_report(name, smallest, operations, result, command), indent=1))
    else:
        print(f"{smallest} ({operations} operation{'s' if operations > 1 else ''}): {result.status}: {result.reason}\n{command}")
    if args.output:
        with Folder(args.output) as folder:
            keep_case(folder, smallest, target, "reduced", args)
    return FINE


def main(words: list[str] | None = None) -> int:
    args = parser().parse_args(words)
    for number in STOPS:
        if signal.getsignal(number) != signal.SIG_IGN:  # keep signals ignored, as nohup sets them
            signal.signal(number, stop)
    try:
        if not 0 < args.timeout < math.inf:
            raise BadName(f"--timeout {args.timeout:g}: is no number of seconds above 0")
        for name in ("reduce", "output", "suite", "only", "fraction"):
            if getattr(args, name) == "":
                raise BadName(f"--{name}: an empty word is none (a variable of a shell that is not set?)")
        return merge(args) if args.merge else reduce(args) if args.reduce else run(args)
    except (BadName, BadFile, Unusable) as error:
        return fail(printable(str(error)))
    except KeyboardInterrupt:  # outside the cases
        print("conformance: interrupted" + (": --continue goes on" if args.output else ""), file=sys.stderr)
        return FAILED


def stop(*_: object) -> None:
    """Ends the run at the first signal, so that finished results are written."""
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    from skillet.__main__ import ended
    sys.exit(ended(main, sys.argv[1:]))
