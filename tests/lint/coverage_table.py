#!/usr/bin/env python3
"""Lines and branches by folder, from gcovr's summary.

usage: coverage_table.py SUMMARY.json
"""
import json
import sys
from collections import Counter
from pathlib import PurePosixPath


def folder_of(name):
    parts = PurePosixPath(name).parts
    parts = parts[parts.index("src") + 1:-1]
    return "/".join(parts[:2])


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


if __name__ == "__main__":
    main()
