#!/usr/bin/env python3
"""Injects faults while a device is compared with the CPU: a table of chips x faults, on a chip as assumed and on one that differs.
The results equal the NPU's or the CPU's, or there is an error. After any fault, the trust store contains no entry that it would
not have without the fault, and the next load is right. Each row begins with an empty store.

usage: verify_faults_test.py SKILLET C_LIBRARY [--some]       --some: few cells
"""
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKILLET, C_LIBRARY = (str(Path(path).resolve()) for path in sys.argv[1:3])
del sys.argv[1:3]
SOME = "--some" in sys.argv
sys.argv = [one for one in sys.argv if one != "--some"]
MODEL = str(ROOT / "models/digits.tflite")
SECONDS = 120 * int(os.environ.get("SLOW_BUILD", 1))
# For each kernel driver, a quirk that the model triggers.
CHIPS = {"a311d": "wide_last_patch", "imx8mp": "large_filters_hang", "rk3588": "sum_of_16_bits", "rk3576": "second_bytes_ignored",
         "imx93": "sums_end_at_32_bits"}
ETNAVIV = ("open", "mmap", "version", "get_param", "gem_new", "gem_info", "gem_cpu_prep", "gem_close", "submit", "wait_fence")
ETHOSU = ("open", "mmap", "version", "dev_query", "bo_create", "bo_wait", "bo_mmap_offset", "cmdstream_bo_create", "gem_close", "submit")
ROCKET = ("open", "mmap", "version", "create_bo", "prep_bo", "fini_bo", "gem_close", "submit")
# Changes to a complete store, given its file and text. Each store is then ignored, with a message.
STORES = {
    "forged": lambda file, text: (file.write_text(text.replace('"refuted"', '"confirmed"')), file.chmod(0o666)),
    "truncated": lambda file, text: file.write_text(text[:len(text) // 2]),
    "foreign": lambda file, text: file.write_text(text.replace(', virtual"', ', Linux 6.18"')),
    "huge": lambda file, text: file.write_text(text + " " * (5 << 20)),
    "no text": lambda file, text: file.write_bytes(os.urandom(4096)),
    "a folder": lambda file, text: (file.unlink(), file.mkdir()),
}
# Loads in a thread, and forks meanwhile; the child loads too. Prints the bytes of both, of a later load, and the CPU's.
FORKS = """
import ctypes, os, sys, threading, time
c = ctypes.CDLL(sys.argv[1])
c.skillet_last_error.restype = ctypes.c_char_p
def load(said, name=b"npu"):
    device, model, scores = ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_uint8 * 10)()
    done = c.skillet_open(name, ctypes.byref(device))
    done = done or c.skillet_load_file(device, sys.argv[2].encode(), None, ctypes.byref(model)) or c.skillet_run(model)
    done = done or c.skillet_get_output(model, ctypes.c_size_t(0), scores, ctypes.c_size_t(10))
    said.append(c.skillet_last_error() if done else bytes(scores).hex().encode())
said = []
thread = threading.Thread(target=load, args=(said,))
thread.start()
time.sleep(float(sys.argv[3]))
child = os.fork()
if child == 0:
    load(said)
    os.write(1, b"child " + said[-1] + b"\\n")
    os._exit(0)
thread.join()
code = os.waitpid(child, 0)[1]
load(said)
load(said, b"cpu")
print("parent", said[0].decode(), "status", code, "later", said[1].decode(), "cpu", said[2].decode())
"""


class Store:
    """The entries of a store: (kind, name), confirmed and refuted. Raises an exception for a file that cannot be read."""

    def __init__(self, folder):
        entries = [one for file in Path(folder).glob("*.json") for one in json.loads(file.read_text())["entries"]]
        self.confirmed = {(one["kind"], one["name"]) for one in entries if one["verdict"] == "confirmed"}
        self.refuted = {(one["kind"], one["name"]) for one in entries if one["verdict"] == "refuted"}


class Cell:
    def __init__(self, chip, quirk, folder):
        self.chip, self.folder = chip, Path(folder)
        self.trust = self.folder / "trust"
        self.environment = {**os.environ, "SKILLET_TRUST_DIR": str(self.trust), "SKILLET_PARTITION": "all", "SKILLET_CORES": "1",
                            "SKILLET_TIMEOUT_MS": "2000", **({"SKILLET_SIM_QUIRK": quirk} if quirk else {})}

    def virtual(self, *options):
        return [SKILLET, "virtual", "--chip", self.chip, "--on-misuse", "abort", *options, "--"]

    def run_model(self, name, device="npu"):
        return [SKILLET, "run", MODEL, "--random", "1", "--device", device, "--output", str(self.folder / name)]

    def said(self, *command, **how):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=SECONDS, check=False, **how)

    def bytes_of(self, name):
        """Returns the bytes of all outputs, or None if there are none."""
        files = sorted(one for one in (self.folder / name).rglob("*") if one.is_file())
        return tuple(file.read_bytes() for file in files) or None

    def result(self, *options):
        done = self.said(*self.virtual(*options), *self.run_model("plain"))
        return done, self.bytes_of("plain")

    # Each returns a list of (results, messages). Without results there must be a message.
    def fails(self, fault):
        done, result = self.result("--fail", fault)
        return [(result, done.stderr)]

    def signalled(self, number, after):
        """Sends a signal. The command's handler ends it in order, and the results that it wrote before are complete."""
        process = subprocess.Popen([*self.virtual(), "sh", "-c", 'echo $$ > "$0"; exec "$@"', str(self.folder / "pid"), *self.run_model("signal")],
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not (self.folder / "pid").exists() or not (self.folder / "pid").read_text().strip():
            time.sleep(0.001)
        time.sleep(after)
        try:
            os.kill(int((self.folder / "pid").read_text()), number)
        except ProcessLookupError:
            pass  # it had already ended
        _, stderr = process.communicate(timeout=SECONDS)
        return [(self.bytes_of("signal"), f"code {process.returncode}: {stderr}")]

    def two_at_once(self):
        both = "; ".join(f'{" ".join(self.run_model(name))} & ' for name in ("first", "second")).replace("& ;", "&")
        done = self.said(*self.virtual(), "sh", "-c", both + "wait")
        return [(self.bytes_of(name), done.stderr) for name in ("first", "second")]

    def disk_is_full(self):
        """Limits the size of this process's files; a simulated chip's buffers are not files."""
        def few_bytes():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
        done = self.said(*self.run_model("full", f"sim:{self.chip}"), preexec_fn=few_bytes)
        if "SKILLET_SIM_QUIRK" not in self.environment and "cannot be stored" not in done.stderr:
            return [(None, "")]  # nobody said that the store could not be written
        return [(self.bytes_of("full"), done.stderr)]

    def store_is(self, change):
        self.result()
        (file,) = self.trust.glob("*.json")
        change(file, file.read_text())
        done, result = self.result()
        return [(result if "the file is ignored" in done.stderr else "believed", done.stderr)]

    def store_cannot_be_made(self):
        self.trust.write_text("")
        done, result = self.result()
        return [(result if "cannot be stored" in done.stderr else "nothing said", done.stderr)]

    def forks(self, after):
        done = self.said(*self.virtual(), sys.executable, "-c", FORKS, C_LIBRARY, MODEL, str(after))
        said = re.fullmatch(r"child (\w+)\s+parent (\w+) status 0 later (\w+) cpu (\w+)\s*", done.stdout)
        is_fine = said and {said[1], said[2]} <= {said[3], said[4]}
        return [("fine" if is_fine else "other", f"{done.stdout} {done.stderr}")]


def table(chip, length):
    """Returns rows of a name and a function that applies the fault to a cell. `length`: seconds of a load without a fault."""
    draw = random.Random(chip)
    calls = ROCKET if chip.startswith("rk") else ETHOSU if chip == "imx93" else ETNAVIV
    unit = "job" if chip.startswith("rk") else "submit"
    rows = [(fault, lambda cell, fault=fault: cell.fails(fault)) for fault in
            [f"{unit}:*:reset", f"{unit}:*:reset_before", f"submit:{draw.randint(2, 9)}:hang", f"submit:{draw.randint(10, 15)}-*:hang",
             *(f"{call}:{at}:ENODEV" for call in calls for at in ("*", f"{draw.randint(2, 30)}-*"))]]
    for number in (signal.SIGINT, signal.SIGTERM):
        for part in (0.1, 0.4, 0.7, 0.9):
            rows.append((f"{number.name} at {part}", lambda cell, number=number, part=part: cell.signalled(number, part * length)))
    rows += [(f"fork at {part}", lambda cell, part=part: cell.forks(part * length)) for part in (0.1, 0.5, 0.8)]
    rows += [("two processes", Cell.two_at_once), ("disk full", Cell.disk_is_full), ("no folder", Cell.store_cannot_be_made)]
    rows += [(f"store: {name}", lambda cell, change=change: cell.store_is(change)) for name, change in STORES.items()]
    return rows[::3] if SOME else rows


class Faults(unittest.TestCase):
    def chip(self, chip, quirk):
        with tempfile.TemporaryDirectory() as folder:
            healthy = Cell(chip, quirk, folder)
            begin = time.monotonic()
            done, on_npu = healthy.result()
            length = time.monotonic() - begin
            self.assertEqual(done.returncode, 0, done.stderr)
            known = Store(healthy.trust)
            self.assertTrue(known.confirmed and bool(known.refuted) == bool(quirk), (chip, quirk, done.stderr))
            healthy.said(*healthy.run_model("cpu", "cpu"))
            fine = {on_npu, healthy.bytes_of("cpu"), "fine"}
        rows = table(chip, length)
        with ThreadPoolExecutor(4) as pool:
            wrong = list(pool.map(lambda row: self.cell(chip, quirk, row, fine, known), rows))
        return len(rows), [one for one in wrong if one]

    @staticmethod
    def cell(chip, quirk, row, fine, known):
        """Returns what is wrong; empty: nothing."""
        name, act = row
        with tempfile.TemporaryDirectory() as folder:
            cell = Cell(chip, quirk, folder)
            try:
                results = act(cell)
            except subprocess.TimeoutExpired:
                return f"{name}: no end within {SECONDS} s"
            for result, said in results:
                if result is None and not said.strip():
                    return f"{name}: neither results nor an error"
                if result is not None and result not in fine:
                    return f"{name}: other bytes than the NPU's and the CPU's: {said[-300:]}"
            try:
                store = Store(cell.trust)
            except (ValueError, KeyError) as what:
                return f"{name}: a store that cannot be read: {what}"
            more = store.confirmed - known.confirmed, store.refuted - known.refuted
            if any(more):
                return f"{name}: the store claims {more}"
            if store.confirmed & known.refuted:
                return f"{name}: confirmed what is wrong: {store.confirmed & known.refuted}"
            done, again = cell.result()
            return "" if again in fine and done.returncode == 0 else f"{name}: the next load: {done.returncode}, {done.stderr[-300:]}"

    def test_results_and_store_are_right(self):
        cells, wrong = 0, []
        for chip, quirk in CHIPS.items():
            for one in (quirk,) if SOME else ("", quirk):
                count, found = self.chip(chip, one)
                print(f"{chip:7} {one or 'as assumed':16} {count} faults, {len(found)} wrong", flush=True)
                cells += count
                wrong += [f"{chip} {one}: {what}" for what in found]
        self.assertEqual(wrong, [], "\n".join(wrong))
        self.assertGreater(cells, 20)


if __name__ == "__main__":
    unittest.main()
