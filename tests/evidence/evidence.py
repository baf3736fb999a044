#!/usr/bin/env python3
"""Makes docs/evidence.md: executes the runs that tests/evidence/template.md asks for, and fills their numbers in.

Outputs are kept in build/evidence/. A number that no run gives has no place in the page.
"""
import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import tables
from runs import CHIPS, NETWORKS, RUNS

DIRECTIVE = re.compile(r"\{\{(\w+)((?: [^}]+)?)\}\}")


def parse():
    options = argparse.ArgumentParser(prog="./x evidence", description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--given", action="append", default=[], metavar="RUN=FILE",
                         help="the output of an earlier run (what it prints) instead of executing it; for slow ones")
    options.add_argument("--reuse", action="store_true", help="take what is in build/evidence/ already")
    options.add_argument("--list", action="store_true", help="print the runs and their commands")
    options.add_argument("--template", default="tests/evidence/template.md", help=argparse.SUPPRESS)
    options.add_argument("--output", default="docs/evidence.md", help=argparse.SUPPRESS)
    return options.parse_args()


def arguments_of(text):
    """Returns the words of a directive; the last one may be quoted."""
    return [quoted or word for quoted, word in re.findall(r"'([^']*)'|(\S+)", text)]


def needed(template):
    """Returns the runs that the directives name."""
    names = set()
    for directive, text in DIRECTIVE.findall(template):
        if directive not in tables.DIRECTIVES:
            raise ValueError(f"no directive '{directive}'")
        words = arguments_of(text)
        if directive == "networks":
            names |= {f"network-{model}-{words[0]}" for model, _, _ in NETWORKS}
        elif directive in ("differences", "compression"):
            kind = {"differences": "whole", "compression": "weights"}[directive]
            names |= {f"{kind}-{model}-{chip}" for model, _, _ in NETWORKS for chip in words}
        elif directive != "command":
            names |= {words[0]} if directive == "lines" else set(words)
    if unknown := names - set(RUNS):
        raise ValueError(f"no run '{min(unknown)}'")
    return sorted(names)


def execute(name):
    run = RUNS[name]
    print(f"==> {name}: {run.text()}", file=sys.stderr, flush=True)
    done = subprocess.run(run.command, env=os.environ | run.environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0 and not (run.fails and done.returncode == 1):
        raise RuntimeError(f"{name}: exit code {done.returncode}")
    return done.stdout


def output_of(name, given, kept, is_reused):
    if name in given:
        text = Path(given[name]).read_text(encoding="utf-8")
    elif is_reused and kept.exists():
        text = kept.read_text(encoding="utf-8")
    else:
        text = execute(name)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(text, encoding="utf-8")
    return json.loads(text) if RUNS[name].kind == "json" else text


def render(template, outputs):
    def fill(match):
        return tables.DIRECTIVES[match[1]](outputs, *arguments_of(match[2]))
    return DIRECTIVE.sub(fill, template)


def main():
    options = parse()
    if options.list:
        for name, run in RUNS.items():
            print(f"{name}: {run.text()}")
        return 0
    template = Path(options.template).read_text(encoding="utf-8")
    given = dict(one.split("=", 1) for one in options.given)
    if unknown := set(given) - set(RUNS):
        raise ValueError(f"no run '{min(unknown)}'; ./x evidence --list names them")
    outputs = {name: output_of(name, given, Path("build/evidence") / name, options.reuse) for name in needed(template)}
    Path(options.output).write_text(render(template, outputs), encoding="utf-8")
    print(f"{options.output}: from {len(outputs)} runs on {', '.join(CHIPS.values())}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, RuntimeError, OSError) as problem:
        print(f"evidence: {problem}", file=sys.stderr)
        sys.exit(2)
