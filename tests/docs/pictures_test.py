#!/usr/bin/env python3
"""Checks that the commands of the page docs/pictures make its pictures.

usage: pictures_test.py SKILLET [--update]      run at the top of the source tree

Pictures whose networks are in ../shared are left out, with a line, if that folder is missing. --update: writes the pictures.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path("docs/pictures/README.md")
BLOCK = re.compile(r"^```\n(.*?)^```$", re.M | re.S)
MADE = re.compile(r"--draw (\w+\.png)")
LARGEST_BYTES = 700_000  # limit of a picture, since every clone contains it


def make(commands, skillet, folder):
    """Runs the commands in FOLDER, which looks like the source tree."""
    tree = folder / "tree"
    tree.mkdir()
    for name in ("models", "tests", "src", "docs"):
        (tree / name).symlink_to(Path(name).resolve())
    if Path("../shared").is_dir():
        (folder / "shared").symlink_to(Path("../shared").resolve())
    (folder / "bin").mkdir()
    (folder / "bin/skillet").symlink_to(Path(skillet).resolve())
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SKILLET_")}
    done = subprocess.run(["bash", "-e", "-c", commands], cwd=tree, env={**kept, "PATH": f"{folder}/bin:{os.environ['PATH']}"},
                          capture_output=True, text=True, timeout=600)
    return tree, done


def main():
    skillet, update = sys.argv[1], "--update" in sys.argv
    text, failed, shown = PAGE.read_text(), 0, set()
    for block in BLOCK.findall(text):
        name, = MADE.findall(block)
        shown.add(name)
        kept = PAGE.parent / name
        if "../shared" in block and not Path("../shared/models").is_dir():
            print(f"{name}: not compared, there is no ../shared/models")
            continue
        with tempfile.TemporaryDirectory() as folder:
            tree, done = make(block, skillet, Path(folder))
            if done.returncode != 0:
                problem = done.stderr.strip()
            elif update:
                shutil.copy(tree / name, kept)
                problem = ""
            else:
                same = kept.exists() and kept.read_bytes() == (tree / name).read_bytes()
                problem = "" if same else "is not what its command makes; ./x pictures makes it"
            if not problem and kept.stat().st_size > LARGEST_BYTES:
                problem = f"has {kept.stat().st_size} bytes; at most {LARGEST_BYTES}"
        print(f"{name}: {problem or 'fine'}")
        failed += bool(problem)
    for name in shown:
        if f"]({name})" not in text:
            print(f"{name}: the page does not show it")
            failed += 1
    assert len(shown) >= 5, shown
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
