#!/usr/bin/env python3
"""Makes each call to the kernel fail in each way during three inferences with different inputs.

The results must be right, or there must be an error. Right: the difference from the CPU kernels is at most that without faults, and the bytes
equal either those of the NPU without faults or those of the CPU kernels. Prints counts, and the wrong cases.

usage: matrix_test.py SKILLET DELEGATE_HOST FLATC [--chip NAME] [--resets | --all-errors | --verify] [--one-of N]    (a311d)
       --resets: only each submission with each kind of reset
       --verify: faults while an unknown chip is compared with the CPU (an empty trust store); then
                 the same store without faults
       --one-of N: every Nth cell of the matrix; with --verify in the delegate alone
       --all-errors: each call at each place with each error; otherwise half of them, others from place to place
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import models

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import share

SKILLET, HOST, FLATC = sys.argv[1:4]
RESETS_ONLY = "--resets" in sys.argv
ALL_ERRORS = "--all-errors" in sys.argv
VERIFY = "--verify" in sys.argv
ONE_OF = int(sys.argv[sys.argv.index("--one-of") + 1]) if "--one-of" in sys.argv else 1
CHIP = sys.argv[sys.argv.index("--chip") + 1] if "--chip" in sys.argv else "a311d"
PICTURES = [str(models.ROOT / f"models/digits/{digit}.png") for digit in (7, 2, 0)]
MOBILENET = models.ROOT.parent / "shared/models/mobilenet_v1_0.25_128_quant.tflite"
MOBILENET_PICTURES = [str(MOBILENET.parent / f"{name}.bmp") for name in ("cat", "bird", "grace_hopper")]

IS_ROCKET, IS_ETHOSU = CHIP.startswith("rk"), CHIP == "imx93"
HAS_BANDS = CHIP == "rk3588"  # one core of the RK3576 is used
OF_COMMAND = ["--partition", "all"] if CHIP in ("rk3576", "imx93") else []  # these small networks are predicted to gain nothing on these chips
CALLS = (["open", "mmap", "version", "create_bo", "prep_bo", "fini_bo", "gem_close", "submit"] if IS_ROCKET else
         ["open", "mmap", "version", "dev_query", "bo_create", "bo_wait", "bo_mmap_offset", "cmdstream_bo_create", "gem_close",
          "submit"] if IS_ETHOSU else
         ["open", "mmap", "version", "get_param", "gem_new", "gem_info", "gem_cpu_prep", "gem_cpu_fini", "gem_close",
          "submit", "wait_fence"])
SLOW_WHEN_INTERRUPTED = ("create_bo", "prep_bo", "submit") if IS_ROCKET else (
    "bo_create", "bo_wait", "submit") if IS_ETHOSU else (
    "gem_new", "gem_cpu_prep", "submit", "wait_fence")
ERRORS = ["ENOMEM", "ENODEV", "EINVAL", "EIO", "ETIMEDOUT", "EACCES"]
PLACES = ["1", "2", "3", "5", "9", "*"]
RESETS = ["reset", "reset_before"]
OF_THE_ENVIRONMENT = [*ERRORS, "ENOSPC", "EBUSY", "EAGAIN", "EINTR"]
LARGEST_DIFFERENCE = 1  # the chip rounds halves differently
LARGEST_OF_MOBILENET = 24  # 21 seen on the i.MX 8M Plus, on one of three pictures
# For the delegate: a short wait for jobs that hang.
TIMEOUT = {"SKILLET_TIMEOUT_MS": str(1000 * int(os.environ.get("SLOW_BUILD", 1)))} if VERIFY else {}
SECONDS_PER_CELL = 120 * int(os.environ.get("SLOW_BUILD", 1))


trust = threading.local()  # .folder: the trust store for the runs of this thread


def on_virtual_node(fail, *command):
    faults = ["--fail", fail] if fail else []
    return subprocess.run([SKILLET, "virtual", "--chip", CHIP, "--on-misuse", "abort", "--trace", *faults, "--", *command],
                          capture_output=True, text=True, timeout=SECONDS_PER_CELL, check=False,
                          env={"SKILLET_CORES": "1", **TIMEOUT, **os.environ,  # with `auto`, predictions would decide which parts are divided
                               "SKILLET_TRUST_DIR": getattr(trust, "folder", SHARED_TRUST)})


def pictures(model):
    return MOBILENET_PICTURES if model == MOBILENET else PICTURES


def digests(model, folder):
    """Returns a hash of all outputs' bytes for each inference."""
    return [hash(tuple(file.read_bytes() for file in sorted((folder / Path(picture).stem).iterdir())))
            for picture in pictures(model)]


def on_cpu(model):
    """Returns the digests of the CPU kernels' outputs."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([SKILLET, "run", str(model), "--image", *pictures(model), "--device", "cpu", "--output",
                        folder + "/out"], stdout=subprocess.DEVNULL, check=True)
        return digests(model, Path(folder) / "out")


def command(model, fail, *options):
    """Runs the command. Returns the process, and (difference, digest) of each inference.

    The list is empty after an error, and None after a result that must not happen."""
    folder = Path(tempfile.mkdtemp()) / "out"
    try:
        done = on_virtual_node(fail, SKILLET, "run", str(model), "--image", *pictures(model), "--device", "npu",
                               "--compare", "--json", "--output", str(folder), *OF_COMMAND, *options)
        # If the CPU replaced the NPU, the results exist and the code is 1.
        if done.returncode not in (0, 1) or not done.stdout:
            return done, [] if done.returncode in (1, 2) else None
        report = json.loads(done.stdout)
        if (done.returncode == 1) != (report["fallback_ops"] > 0):
            return done, None
        said = [max(one["max_difference"] for one in run["outputs"]) for run in report["runs"]]
        return done, list(zip(said, digests(model, folder)))
    finally:
        shutil.rmtree(folder.parent)


def bands(model, fail):
    """Runs the command with each inference divided among three cores, each with its own file, copies and submissions."""
    done, results = command(model, fail, "--cores", "3")
    if fail is None:
        assert any(part["bands"] == 3 for part in json.loads(done.stdout)["parts"]), done.stdout
    return done, results


def delegate(model, fail):
    done = on_virtual_node(fail, HOST, str(model), *pictures(model))
    if done.returncode != 0:
        return done, None
    rows = re.findall(r"^difference (\d+) (\w+)$", done.stdout, re.MULTILINE)
    return done, [(float(difference), digest) for difference, digest in rows]


def outcome(front_end, model, fail, allowed):
    """Returns "right", "error" or "wrong", and a message. ALLOWED: (largest difference, digests) for each inference.

    If one of several parts fell back, other bytes could be right too; these models have no such parts."""
    try:
        done, results = front_end(model, fail)
    except subprocess.TimeoutExpired:
        return "wrong", f"did not end within {SECONDS_PER_CELL} s"
    if results is None:
        return "wrong", f"exit code {done.returncode}: {done.stderr[-300:]}"
    for (difference, digest), (limit, fine) in zip(results, allowed):
        if difference > limit:
            return "wrong", f"a difference of {difference}, allowed {limit}"
        if digest not in fine:
            return "wrong", "other bytes than the NPU's without faults and the CPU's"
    if len(results) == len(allowed):
        return "right", done.stderr
    said = "skillet" in done.stderr or "error " in done.stdout
    return ("error", done.stderr) if said else ("wrong", "failed without a word")


def entries_of(folder, kind, verdict):
    """Returns the names of entries with VERDICT in the trust store."""
    entries = [entry for file in Path(folder).glob("*.json") for entry in json.loads(file.read_text())["entries"]]
    return [entry["name"] for entry in entries if entry["verdict"] == verdict and kind in ("", entry["kind"])]


def verified(front_end, model, fail, allowed):
    """Returns the outcome with an empty trust store.

    The resulting store must then work without faults. The chip computes everything right, so no fault may have refuted
    anything. If one job hung, the comparison must have been completed by a second try."""
    with tempfile.TemporaryDirectory() as trust.folder:
        kind, text = outcome(front_end, model, fail, allowed)
        if kind == "wrong":
            return kind, text
        refuted = entries_of(trust.folder, "", "refuted")
        if refuted:
            return "wrong", f"refuted: {refuted}"
        if re.fullmatch(r"submit:\d+:hang", fail) and not entries_of(trust.folder, "program", "confirmed"):
            return "wrong", f"there was no second try: {text[-300:]}"
        again, words = outcome(front_end, model, None, allowed)
        return (kind, text) if again == "right" else ("wrong", f"afterwards, without faults: {words}")


def healthy(front_end, model):
    """Runs the model without faults. Returns what is allowed for each inference, and the number of submissions."""
    if VERIFY:
        with tempfile.TemporaryDirectory() as trust.folder:
            done, results = front_end(model, None)
    else:
        front_end(model, None)  # compares with the CPU what the store does not contain yet
        done, results = front_end(model, None)
    assert done.returncode == 0 and len(results) == 3, done.stderr
    differences = [difference for difference, _ in results]
    # The last layer of a MobileNet amplifies differences of its input.
    largest = LARGEST_OF_MOBILENET if model == MOBILENET else LARGEST_DIFFERENCE
    assert max(differences) <= largest, f"{front_end.__name__} {model.name}: {differences}"
    cpu = re.findall(r"^cpu (\w+)$", done.stdout, re.MULTILINE) if front_end == delegate else on_cpu(model)
    assert len(cpu) == 3, cpu
    limits = [max(LARGEST_DIFFERENCE, one) if model == MOBILENET else LARGEST_DIFFERENCE for one in differences]
    allowed = [(limit, {digest, other}) for limit, (_, digest), other in zip(limits, results, cpu)]
    # On etnaviv a call is a job; rocket takes several in a call.
    return allowed, len(re.findall(r"virtual: submit: job", done.stderr))


def reset_rows(count):
    call, kinds = ("job", [*RESETS, "drop"]) if IS_ROCKET else ("submit", RESETS)
    return [f"{call}:{at}:{kind}" for at in [*range(1, count + 1), "*"] for kind in kinds]


def errors_at(call, place):
    count = len(ERRORS) if ALL_ERRORS else len(ERRORS) // 2
    first = call + place
    return [ERRORS[(first + 2 * i + i * 2 // len(ERRORS)) % len(ERRORS)] for i in range(count)]


def error_rows(model):
    if model == MOBILENET:
        return [f"{call}:{at}:EIO" for call in CALLS for at in ("1", "3", "*")]
    rows = [f"{call}:{at}:{error}" for i, call in enumerate(CALLS) for k, at in enumerate(PLACES)
            for error in errors_at(i, k)]
    rows += [f"{call}:{at}:EINTR" for call in CALLS for at in ("1", "3")]
    if model == models.DIGITS:  # these take seconds each
        rows += [f"{call}:*:EINTR" for call in SLOW_WHEN_INTERRUPTED]
    return rows + ["submit:1:hang", "submit:2:hang", "submit:3:hang"]


def verify_rows(count):
    """Returns the faults for --verify.

    They are at as many places as the other rows, over all submissions of the first load; each call fails with each error at a random place."""
    draw = random.Random(1)
    places = sorted({1, 2, 3, count // 4, count // 2, 3 * count // 4, count - 3, count})
    kinds = [*RESETS, *(["drop"] if IS_ROCKET else [])]
    rows = [f"submit:{at}:hang" for at in ("10-*", "10", count // 2, "1-*", f"{draw.randint(11, count)}-*")]
    rows += [f"{'job' if IS_ROCKET else 'submit'}:{at}:{kind}" for at in [*places, "*"] for kind in kinds]
    rows += [f"{'job' if IS_ROCKET else 'submit'}:{at}:late" for at in ("*", f"{draw.randint(11, count)}-*")]
    rows += [f"submit:{count // 2}-*:ENODEV", f"submit:{count // 3}-*:EIO"]
    return rows + [f"{call}:{at}:{error}" for call in CALLS for error in OF_THE_ENVIRONMENT
                   for at in (draw.choice(["1", "*", str(draw.randint(2, count)), f"{draw.randint(2, count)}-*"]),)
                   if not (error in ("EINTR", "EAGAIN") and at.endswith("*"))]  # repeated until the time limit


def waits(fail):
    """Returns whether such a run mostly waits for a time limit."""
    return fail.endswith((":hang", ":late")) or ":*:EINTR" in fail


def cells(models_by_name):
    for name, model in models_by_name.items():
        for front_end in (delegate, command)[:2 if ONE_OF == 1 else 1] if VERIFY else (command, delegate, bands) if HAS_BANDS and model == models.DIGITS else (command, delegate):
            allowed, count = healthy(front_end, model)
            print(f"{front_end.__name__:8} {name:14} {count} submissions", flush=True)
            assert count > 0, "nothing ran on the NPU"
            if VERIFY:
                assert count > 20, "nothing was compared"
                yield from ((front_end, name, model, fail, allowed) for fail in verify_rows(count))
                continue
            if name == "two_jobs" and CHIP == "a311d":  # with fewer TP cores the jobs have fewer words
                assert count == 1 + 2 * 3, "the model no longer takes two jobs"
            for fail in reset_rows(count) + ([] if RESETS_ONLY else error_rows(model)):
                yield front_end, name, model, fail, allowed


def print_table(results):
    print(f"\n{'':8} {'':14} {'right':>6} {'error':>6} {'wrong':>6}")
    for front_end, name in sorted({(front_end, name) for front_end, name, _, _, _ in results}):
        counts = Counter(kind for f, n, _, kind, _ in results if (f, n) == (front_end, name))
        print(f"{front_end:8} {name:14} {counts['right']:6} {counts['error']:6} {counts['wrong']:6}")
    total = Counter(kind for _, _, _, kind, _ in results)
    print(f"{'all':23} {total['right']:6} {total['error']:6} {total['wrong']:6}")
    for front_end, name, fail, kind, text in results:
        if kind == "wrong":
            print(f"WRONG {front_end} {name} {fail}: {text}")
    return total


def main():
    with tempfile.TemporaryDirectory() as folder:
        models_by_name = {"digits": models.DIGITS} if VERIFY else models.make(folder, FLATC)
        if not RESETS_ONLY and not VERIFY:
            if MOBILENET.exists():
                models_by_name["mobilenet"] = MOBILENET
            else:
                print(f"left out: {MOBILENET} is not there")
        todo = share.of(list(cells(models_by_name))[::ONE_OF])
        todo.sort(key=lambda cell: not waits(cell[3]))  # start the waiting ones first: the others run meanwhile
        with ThreadPoolExecutor(8) as pool:
            outcomes = list(pool.map(lambda cell: (verified if VERIFY else outcome)(cell[0], *cell[2:]), todo))
        results = [(front_end.__name__, name, fail, kind, text)
                   for (front_end, name, _, fail, _), (kind, text) in zip(todo, outcomes)]
    total = print_table(results)
    sys.exit(0 if total["wrong"] == 0 and total["right"] > 0 else 1)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as SHARED_TRUST:
        main()
