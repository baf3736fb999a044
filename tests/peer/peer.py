#!/usr/bin/env python3
"""A peer's driver on our chip: Mesa's Teflon delegate, as Debian builds it for arm64, before our virtual device node.

Every model runs twice in its own process: on TensorFlow Lite's reference kernels, and through the delegate. Both must
agree within 1 in every output byte. Nothing is installed: packages are unpacked into build/peer-root.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import resource
import sys
from pathlib import Path

import cases
import judge
import root
import runner


def parse():
    options = argparse.ArgumentParser(prog="./x peer", description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("chip", metavar="CHIP", help="the chip that the node stands for: a311d, imx8mp, rk3588")
    options.add_argument("dir", metavar="DIR", nargs="?", default="../shared/golden",
                         help="folder with models/ and cases/ (default: %(default)s)")
    options.add_argument("--set", action="append", metavar="NAME", help="folder in DIR/models (default: teflon)")
    options.add_argument("--only", metavar="TEXT", default="", help="only cases with TEXT in their name")
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    options.add_argument("--host-time", action="store_true",
                         help="instead: what an inference costs the host with our delegate and with the peer's, in one "
                              "process, on devices that compute nothing")
    options.add_argument("--json", action="store_true", help="machine-readable output")
    options.add_argument("--work", default="build/peer-root", help=argparse.SUPPRESS)
    options.add_argument("--virtual", required=True, help=argparse.SUPPRESS)
    options.add_argument("--delegate", required=True, help=argparse.SUPPRESS)
    return options.parse_args()


class Progress:
    """Shows progress: a counting line on a terminal, otherwise a line for every tenth of the cases."""

    def __init__(self, total):
        self.total, self.done = total, 0

    def step(self, name):
        self.done += 1
        if sys.stderr.isatty():
            end = "\n" if self.done == self.total else ""
            print(f"\r\033[K{self.done}/{self.total} {name}", end=end, file=sys.stderr, flush=True)
        elif self.done == self.total or self.done * 10 // self.total != (self.done - 1) * 10 // self.total:
            print(f"{self.done} of {self.total} cases", file=sys.stderr, flush=True)


def say(text):
    print(f"==> {text}", file=sys.stderr, flush=True)


def top_class(output):
    return max(range(len(output)), key=lambda index: output[index])


def judge_networks(case, verdict, detail, expected, got):
    """Compares a whole network by its class, since the layers' rounding differences add up."""
    if verdict not in ("exact", "within 1", "worse"):
        return verdict, detail
    right, found = top_class(expected.outputs[0]), top_class(got.outputs[0])
    wanted = right if case.label is None else case.label
    detail = f"class {found}, TensorFlow Lite {right}, wanted {wanted}; {detail or 'all elements equal'}"
    return ("right class" if found == right == wanted else "wrong class"), detail


def examine(case, programs, chip, logs):
    expected = programs.tflite(case)
    result = {"name": case.name}
    if expected.code != 0:
        result.update(verdict="failed", detail="TensorFlow Lite alone: " + expected.log.strip().splitlines()[-1])
        return result
    if wrong := cases.wrong_reference(case, expected.outputs):
        result.update(verdict="failed", detail=wrong)
        return result
    got = programs.peer(case, chip)
    verdict, detail = judge.judge(got, expected)
    is_network = case.label is not None or "/" not in case.name
    if is_network:
        verdict, detail = judge_networks(case, verdict, detail, expected, got)
    elif verdict in ("worse", "crashed"):
        again, more = judge.judge(programs.peer(case, chip, is_roomy=True), expected)
        detail += f"; with zeros behind its heap blocks: {again}" + (f", {more}" if more else "")
        if again in ("exact", "within 1"):
            verdict = "heap"
    (logs / (case.name.replace("/", "_") + ".log")).write_text(got.log)
    result.update(verdict=verdict, detail=detail, prepare_ms=got.number("prepare_ms"),
                  invoke_ms=got.number("invoke_ms"))
    return result


def report(results, versions, logs):
    counts = collections.Counter(one["verdict"] for one in results if "/" in one["name"])
    tflite = next(version for name, version in versions.items() if name.startswith("libtensorflow-lite2"))
    print(f"Mesa {versions['mesa-teflon-delegate']}, TensorFlow Lite {tflite}, from Debian")
    for one in results:
        if one["verdict"] not in ("exact", "within 1"):
            print(f"  {one['name']}: {one['verdict']}" + (f", {one['detail']}" if one["detail"] else ""))
    if counts:
        for verdict, (text, _) in judge.VERDICTS.items():
            print(f"{counts[verdict]:6} {text}")
        print(f"{sum(counts.values()):6} cases")
    print(f"what each process printed: {logs}/")


def verdicts_report(chip, versions, results):
    """Returns what --json prints (docs/json/developers/peer.json); times_report() is for --host-time."""
    counts = collections.Counter(one["verdict"] for one in results)
    return {"version": 1, "chip": chip, "versions": versions, "counts": counts, "results": results}


def times_report(chip, emulated, rows):
    return {"version": 1, "chip": chip, "emulated": emulated, "results": rows}


def speaks_against_us(results):
    return any(one["verdict"] == "wrong class" or judge.VERDICTS.get(one["verdict"], ("", False))[1] for one in results)


def host_time(wanted, programs, options):
    """Prints the host time of both delegates. In an emulator only their ratio is meaningful."""
    rows = []
    for case in wanted:
        times = programs.host_time(case, options.chip, Path(options.delegate).resolve())
        rows.append({"name": case.name, "ours_us": times[0], "peer_us": times[1]} if len(times) == 2 else
                    {"name": case.name})
        if not options.json:
            print(f"{case.name:40} ours {times[0]:8.1f} us  peer {times[1]:8.1f} us  {times[1] / times[0]:5.2f} times ours"
                  if len(times) == 2 else f"{case.name:40} not timed", flush=True)
    if options.json:
        print(json.dumps(times_report(options.chip, bool(programs.emulator), rows), indent=1))
    return 0


def main():
    options = parse()
    folder, logs = Path(options.work), Path(options.work) / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    given = Path(options.dir).resolve()
    wanted = cases.recorded_cases(given, options.set or ["teflon"])
    wanted = cases.network_cases(given.parent / "models", folder.resolve()) + wanted
    wanted = [case for case in wanted if options.only in case.name]
    if not wanted:
        which = f" with '{options.only}' in their name" if options.only else ""
        print(f"peer: no models{which} in {options.dir}/models, nothing to run")
        return 0
    place, versions = root.prepare(folder.resolve(), say)
    programs = runner.Runner(folder.resolve(), place, Path(options.virtual).resolve())
    programs.build()
    if options.host_time:
        return host_time(wanted, programs, options)
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    say(f"{len(wanted)} models through Mesa's delegate on a virtual {options.chip}, {options.jobs} at a time")
    progress, results = Progress(len(wanted)), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        pending = {pool.submit(examine, case, programs, options.chip, logs): case for case in wanted}
        for one in concurrent.futures.as_completed(pending):
            progress.step(pending[one].name)
            results.append(one.result())
    known = judge.known_faults(Path("tests/expectations") / f"simulate-{options.chip}.txt")
    for one in results:
        if judge.is_known(one["verdict"], known.get(one["name"])):
            one.update(verdict="known", detail=f"{one['verdict']}, {one['detail']}; {' '.join(known[one['name']])}")
    order = {case.name: index for index, case in enumerate(wanted)}
    results.sort(key=lambda one: order[one["name"]])
    if options.json:
        print(json.dumps(verdicts_report(options.chip, versions, results), indent=1))
    else:
        report(results, versions, logs)
    return 1 if speaks_against_us(results) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except root.SetUpError as error:
        sys.exit(f"peer: {error}")
