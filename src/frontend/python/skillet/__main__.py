"""`python -m skillet ...` runs the `skillet` command, or a verb that is written in Python. A wheel installs it as `skillet`."""

from __future__ import annotations

import os
import re
import signal
import sys

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from skillet._paths import command_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VERBS = {"conformance": "skillet.conformance.__main__", "results": "skillet._results", "fields": "skillet.explore._fields", "bisect": "skillet.explore._bisect",
         "sweep": "skillet.explore._sweep", "page": "skillet.explore._page", "dump": "skillet.explore._dump", "trace": "skillet._trace",
         "serve": "skillet.frigate"}


def meant(words: list[str]) -> list[str]:
    """Returns WORDS with aliases replaced: `reduce CASE` and `decode PATH --html FILE`."""
    if words[:1] == ["reduce"]:
        return ["conformance", *(["--reduce"] if words[1:] and not words[1].startswith("-") else []), *words[1:]]
    if words[:1] == ["decode"] and any(word.partition("=")[0] == "--html" for word in words):
        return ["page", *(re.sub("^--html(?==|$)", "--output", word) for word in words[1:])]
    return words


def ended(run: Callable[[list[str]], int], words: list[str]) -> int:
    """Returns the exit code of RUN, which is 1 if the reader of stdout has closed the pipe."""
    try:
        code = run(words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """Lets Ctrl-C end the process without a traceback while modules are imported."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    yield
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, before)


def run_verb(words: list[str]) -> None:
    """Runs the verb and ends the process. Returns if the verb is not written in Python."""
    words = meant(words)
    module = VERBS.get(words[0]) if words else None
    if module is not None:
        with quiet_interrupts():
            run = import_module(module).main
        sys.exit(ended(run, words[1:]))


def main() -> None:
    words = sys.argv[1:]
    run_verb(words)
    os.environ.setdefault("SKILLET_PYTHON", sys.executable)  # `quantize` runs quantizers with this interpreter
    try:
        os.execv(command_path(), ["skillet", *words])
    except OSError as error:
        print(f"skillet: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
