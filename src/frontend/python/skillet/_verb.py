"""What the verbs of the command that are Python share."""

from __future__ import annotations

import argparse


def verb_parser(name: str, *, description: str, epilog: str, usage: str | None = None) -> argparse.ArgumentParser:
    """Of `skillet NAME`: texts as they are written, options by their whole names only."""
    return argparse.ArgumentParser(
        prog=f"skillet {name}",
        usage=usage,
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
