"""`python -m skillet ...` is the `skillet` command and the verbs that are Python; in a wheel, so is `skillet`."""

from __future__ import annotations

import os
import sys

from importlib import import_module

from skillet._paths import command_path

VERBS = {"conformance": "skillet.conformance.__main__", "results": "skillet._results", "fields": "skillet.explore._fields", "bisect": "skillet.explore._bisect",
         "sweep": "skillet.explore._sweep", "page": "skillet.explore._page"}


def main() -> None:
    module = VERBS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if module is not None:
        try:
            sys.exit(import_module(module).main(sys.argv[2:]))
        except BrokenPipeError:  # who reads has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
    os.environ.setdefault("SKILLET_PYTHON", sys.executable)  # `quantize` asks this one for quantizers
    try:
        os.execv(command_path(), ["skillet", *sys.argv[1:]])
    except OSError as error:
        print(f"skillet: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
