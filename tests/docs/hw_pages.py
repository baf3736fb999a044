#!/usr/bin/env python3
"""Makes the tables of registers and descriptors in docs/hw/ from the rows of the .def files, by `skillet lookup`.

usage: hw_pages.py SKILLET [--check]      run at the top of the source tree

Writes the text between `<!-- rows NAME -->` and `<!-- end -->`. With --check, names each page that would change.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

# For each page, the chips whose rows it shows, newest last.
PAGES = {"docs/hw/vivante.md": ["a311d", "imx8mp"], "docs/hw/rockchip.md": ["rk3588"]}
TABLE = re.compile(r"(<!-- rows (\w+) -->\n).*?(<!-- end -->)", re.S)
REGISTER = re.compile(r"^register (0x[0-9a-f]+) ?(.*)$")


def rows_of(skillet, chip):
    done = subprocess.run([skillet, "lookup", "*", "--chip", chip, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["found"]


def cell(text):
    return text.replace("|", "\\|")


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell(text) for text in line) + " |\n" for line in lines)


def short(place):
    """Removes the word's number, for descriptors of one word."""
    return re.sub(r"^word 0 ", "", place)


def descriptor_table(name, by_chip):
    """Returns the table of a descriptor. If chips differ in a field's place, the newer chip's place is beside it."""
    fields = {}
    for rows in by_chip:
        for row in rows:
            if row["name"].startswith(name + "."):
                fields.setdefault(row["name"].split(".", 1)[1], []).append(row)
    many = any("word 1" in row["place"] for rows in fields.values() for row in rows)
    body = []
    for field, rows in fields.items():
        places = []
        for row in rows:
            place = REGISTER.sub(r"\2", row["place"])
            places += [place] if place not in places else []
        text = "; newer: ".join(place if many else short(place) for place in places)
        body.append([f"`{field}`", text, rows[-1]["stored"], rows[-1]["evidence"], rows[-1]["what"]])
    return markdown(["field", "bits", "stored", "evidence", "what"], body)


def states_table(by_chip):
    seen = {}
    for rows in by_chip:
        for row in rows:
            if "." not in row["name"] and row["place"].startswith("register"):
                seen[row["name"]] = row
    return markdown(["state", "address", "what"], [[f"`{row['name']}`", REGISTER.sub(r"\1", row["place"]), row["what"]]
                                                   for row in seen.values()])


def registers_table(by_chip):
    """Returns the table of all registers, block after block."""
    out, block = "", None
    body = []
    for row in by_chip[-1]:
        found = REGISTER.match(row["place"])
        if not found or "." not in row["name"]:
            continue
        name, field = row["name"].rsplit(".", 1)
        if name.split(".")[0] != block:
            out += flush(block, body)
            block, body = name.split(".")[0], []
        body.append([f"`{name.split('.', 1)[1]}`", found[1], f"`{field}`", short(found[2]), row["stored"], row["evidence"], row["what"]])
    return out + flush(block, body)


def flush(block, body):
    if not body:
        return ""
    last = None
    for row in body:  # show each register's name once
        same = row[:2] == last
        last = row[:2]
        if same:
            row[0] = row[1] = ""
    return f"\n### {block.upper()}\n\n" + markdown(["register", "address", "field", "bits", "stored", "evidence", "what"], body)


def page(skillet, path, chips):
    by_chip = [rows_of(skillet, chip) for chip in chips]

    def table(found):
        name = found[2]
        made = (states_table(by_chip) if name == "states" else registers_table(by_chip) if name == "registers"
                else descriptor_table(name, by_chip))
        assert made.count("\n") > 2, f"{path}: no rows of {name}"
        return found[1] + "\n" + made.strip("\n") + "\n\n" + found[3]

    text = Path(path).read_text()
    assert TABLE.search(text), path
    return TABLE.sub(table, text)


def main():
    skillet, check = sys.argv[1], "--check" in sys.argv
    stale = []
    for path, chips in PAGES.items():
        text = page(skillet, path, chips)
        if text == Path(path).read_text():
            continue
        stale.append(path)
        if not check:
            Path(path).write_text(text)
    if check and stale:
        sys.exit(f"not as the rows say: {', '.join(stale)}; ./x hwpages writes them")
    print(f"{len(PAGES)} pages, {len(stale)} " + ("stale" if check else "written"))


if __name__ == "__main__":
    main()
