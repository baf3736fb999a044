"""Runs one long random check of soaks.txt, or lists them with their targets.
  soak.py BUILD NAME [--seed N] [--seconds S]     S: CPU time (default 60); N: default 1
  soak.py --list
Called by ./x soak and by CI's long tests. Exit code: that of the program that found something, else 0.
"""
import argparse
import os
import pathlib
import re
import resource
import subprocess
import sys

TABLE = pathlib.Path(__file__).resolve().with_name("soaks.txt")
ROOT = TABLE.parents[2]


def rows():
    lines = [line for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return {cells[0]: cells[1:] for cells in ([cell.strip() for cell in line.split("|")] for line in lines)}


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def filled_in(text, seed, seconds):
    return re.sub(r"\{step=(\d+)\}", r"\1", text).replace("{seed}", str(seed)).replace("{seconds}", str(seconds)).replace("{root}", str(ROOT))


def run(build, name, seed, seconds):
    program, environment, arguments = rows()[name]
    command = str(pathlib.Path(build) / program)
    step = re.search(r"\{step=(\d+)\}", environment)
    first = seed
    while True:
        words = filled_in(environment, seed, seconds).split()
        call = [command, *filled_in(arguments, seed, seconds).split()]
        whole = {name: value for name, value in os.environ.items() if not name.startswith("GTEST_")}  # runs all cases of a test, not a share
        done = subprocess.run(call, env=whole | dict(word.split("=", 1) for word in words),
                              stdout=subprocess.PIPE if step else None, stderr=subprocess.STDOUT if step else None, text=True, errors="backslashreplace")
        if done.returncode != 0:
            print(done.stdout or "", f"\nsoak {name}: found something; again: {' '.join(words + call)}", sep="")
            return 1
        seed += int(step.group(1)) if step else 0
        if not step or cpu_seconds() > seconds:
            break
    print(f"soak {name}: nothing found, seed {first}" + (f" to {seed - 1}" if step else "") + f", {cpu_seconds():.0f} s of CPU time")
    return 0


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(f"{name} {pathlib.Path(cells[0]).name}" for name, cells in rows().items()))
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("name", choices=rows())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    return run(options.build, options.name, options.seed, options.seconds)


if __name__ == "__main__":
    sys.exit(main())
