#!/usr/bin/env python3
"""Prints lines and branches by folder from gcovr's summary, and functions that never ran by file from its complete report.

usage: coverage_table.py SUMMARY.json REPORT.json
"""
import json
import re
import sys
from collections import Counter
from pathlib import PurePosixPath


def folder_of(name):
    parts = PurePosixPath(name).parts
    parts = parts[parts.index("src") + 1:-1]
    return "/".join(parts[:2])


def never_run(report):
    """Yields (file, line, name) of functions of which no instance ran. Lambdas count with the enclosing function."""
    runs = {}
    for one in report["files"]:
        for function in one.get("functions", []):
            if "{lambda" in function["name"] or "operator==" in function["name"]:
                continue
            key = (one["file"], function["lineno"])
            count, _ = runs.get(key, (0, ""))
            runs[key] = (count + function["execution_count"], re.sub(r"\(anonymous namespace\)::|skillet::", "", function["name"]))
    return sorted((*key, name.split("(")[0]) for key, (count, name) in runs.items() if count == 0)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        files = json.load(file)["files"]
    folders = {}
    for one in files:
        for folder in (folder_of(one["filename"]), "all"):
            folders.setdefault(folder, Counter()).update(
                {key: one[key] for key in ("line_total", "line_covered", "branch_total", "branch_covered")})
    print(f"{'folder':<28}{'lines':>8}{'reached':>9}{'branches':>10}{'reached':>9}")
    for folder, count in sorted(folders.items(), key=lambda item: (item[0] == "all", item[0])):
        share = [f"{100 * count[f'{k}_covered'] / count[f'{k}_total']:.1f} %" if count[f"{k}_total"] else "-"
                 for k in ("line", "branch")]
        print(f"{folder:<28}{count['line_total']:>8}{share[0]:>9}{count['branch_total']:>10}{share[1]:>9}")
    with open(sys.argv[2], encoding="utf-8") as file:
        never = never_run(json.load(file))
    print(f"\n{len(never)} functions never ran")
    for name, line, function in never:
        print(f"  {name}:{line} {function}")


if __name__ == "__main__":
    main()
