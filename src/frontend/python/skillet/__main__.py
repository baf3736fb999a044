"""`python -m skillet ...` is the `skillet` command and `conformance`, which is Python; in a wheel, so is `skillet`."""

from __future__ import annotations

import os
import sys

from skillet._paths import command_path


def main() -> None:
    if sys.argv[1:2] == ["conformance"]:
        from skillet.conformance.__main__ import main as conformance

        sys.exit(conformance(sys.argv[2:]))
    os.environ.setdefault("SKILLET_PYTHON", sys.executable)  # `quantize` asks this one for quantizers
    try:
        os.execv(command_path(), ["skillet", *sys.argv[1:]])
    except OSError as error:
        print(f"skillet: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
