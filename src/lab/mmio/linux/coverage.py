"""Collects which functions and lines of the kernel's NPU drivers ran: adds up gcov's counts of several boots in one file.

A kernel built with --coverage has its counts in debugfs; the init program of the guest copies them out before the guest ends.
"""
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

COVERED = ("drivers/gpu/drm/etnaviv", "drivers/accel/rocket", "drivers/accel/ethosu")
COVERED_FILES = ("drivers/iommu/rockchip-iommu.c",)
# Runs before the guest ends. debugfs reports sizes of 0, so the files are read, not copied.
COPY_OUT = """
find /sys/kernel/debug/gcov -name '*.gcda' | while read -r counts; do
  into="{run}/counts/${{counts##*/out/}}"; mkdir -p "${{into%/*}}"; cat < "$counts" > "$into"
done
"""


def sources(tree):
    """Lists the counted files of a kernel's source, with paths from its root."""
    found = [file for folder in COVERED for file in sorted((tree / folder).glob("*.c"))]
    return [file.relative_to(tree) for file in found] + [Path(name) for name in COVERED_FILES if (tree / name).is_file()]


def notes_of(vmlinux):
    """Returns the folder of the notes (.gcno) that the compiler wrote beside the objects."""
    return vmlinux.with_name(vmlinux.name + "-notes")


def keep_notes(out, vmlinux):
    for notes in out.glob("drivers/**/*.gcno"):
        kept = notes_of(vmlinux) / notes.relative_to(out)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(notes, kept)


def read_counts(notes, counts):
    """Returns {file: {"functions": {name: calls}, "lines": {number: times}}} of one boot. Objects that never ran count 0."""
    files = {}
    for note in sorted(notes.rglob("*.gcno")):
        relative = note.relative_to(notes)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(note, folder)
            if (counts / relative.with_suffix(".gcda")).is_file():
                shutil.copy(counts / relative.with_suffix(".gcda"), folder)
            said = subprocess.run(["gcov", "--json-format", "--stdout", note.name], cwd=folder, capture_output=True, text=True, check=True)
        for file in json.loads(said.stdout)["files"]:
            name = str(relative.with_suffix(".c"))
            if file["file"].endswith(name):
                add(files, {name: {"functions": {one["name"]: one["execution_count"] for one in file["functions"]},
                                   "lines": lines_of(file["lines"])}})
    return files


def lines_of(rows):
    """Adds up the rows of a line: it has one for each function that contains it."""
    lines = {}
    for row in rows:
        number = str(row["line_number"])
        lines[number] = lines.get(number, 0) + row["count"]
    return lines


def add(files, more):
    """Adds the counts of `more` to `files`."""
    for name, counted in more.items():
        file = files.setdefault(name, {"functions": {}, "lines": {}})
        for kind, counts in counted.items():
            for key, count in counts.items():
                file[kind][key] = file[kind].get(key, 0) + count


def update(path, vmlinux, counts):
    """Adds one boot's counts to the file `path`, which is created if needed. Returns the totals."""
    path = Path(path)
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"version": 1, "kernel": vmlinux.name, "boots": 0, "files": {}}
    if known["kernel"] != vmlinux.name:
        raise RuntimeError(f"{path} counts {known['kernel']}, not {vmlinux.name}: name another file")
    add(known["files"], read_counts(notes_of(vmlinux), counts))
    known["boots"] += 1
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    partial.replace(path)
    return known


def share(counts):
    return f"{sum(count > 0 for count in counts.values())} of {len(counts)}"


def table(known):
    """Returns rows of text: functions and lines of each file that ran, and the functions that never ran."""
    rows = [f"{'file':44} {'functions':>12} {'lines':>14}"]
    for name, file in sorted(known["files"].items()):
        rows.append(f"{name:44} {share(file['functions']):>12} {share(file['lines']):>14}")
        never = sorted(function for function, count in file["functions"].items() if count == 0)
        if never:
            rows.append(f"  never run: {', '.join(never)}")
    return rows
