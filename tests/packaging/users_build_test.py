#!/usr/bin/env python3
"""Checks `./x build --users` without compiling: it builds no tests and no debug information, and fits a small board's disk.

usage: users_build_test.py BUILD_DIR     with objects of the same sources, with debug information
"""
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv.pop(1)).resolve()
SOURCE = Path(__file__).resolve().parents[2]
MOST_BYTES = 300_000_000


def run(*command):
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, check=False, cwd=SOURCE)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def bytes_without_debug(file):
    """Returns the size of a 64-bit ELF file without the sections that `-g` adds."""
    data = file.read_bytes()
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    if count == 0:  # the numbers are too large for the header, and in the first section
        count, names = struct.unpack_from("<Q", data, offset + 32)[0], struct.unpack_from("<I", data, offset + 40)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    if names == 0xFFFF:
        names = sections[0][6]
    total, no_bits = 0, 8
    for name, kind, _, _, _, length, *_ in sections:
        start = sections[names][4] + name
        text = data[start:data.index(b"\0", start)]
        if kind != no_bits and not text.startswith((b".debug", b".rela.debug")):
            total += length
    return total + size * count


def objects_with(file):
    """Returns the object, or the unity objects of its target."""
    if file.exists():
        return [file]
    target = next(folder for folder in file.parents if folder.suffix == ".dir")
    return sorted((target / "Unity").glob("*.o"))


class UsersBuild(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        targets = re.search(r"^installed_targets=\((.*)\)$", (SOURCE / "x").read_text(), re.M)[1].split()
        vendors = re.search(r"^(SKILLET_VENDORS):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
        with tempfile.TemporaryDirectory() as folder:
            run("cmake", "--preset", "users", "-S", SOURCE, "-B", folder, f"-D{vendors[1]}={vendors[2]}")
            cls.all_targets = run("ninja", "-C", folder, "-t", "targets", "all")
            cls.commands = run("ninja", "-C", folder, "-t", "commands", *targets).splitlines()
        cls.objects = [found[1] for line in cls.commands if (found := re.search(r" -o (\S+\.o) -c ", line))]

    def test_there_are_no_tests(self):
        self.assertGreater(len(self.objects), 200)
        self.assertEqual(re.findall(r"\S+_(?:test|fuzz|bench): CXX_EXECUTABLE\S*", self.all_targets), [])
        self.assertEqual([one for one in self.objects if re.search(r"(?<!self)_test\b|_fuzz\b|/testing/", one)], [])

    def test_there_is_no_debug_information(self):
        compiled = [line for line in self.commands if " -c " in line]
        self.assertEqual([line for line in compiled if re.search(r" -g(?!0)\w*(?= )", line) or " -O2 " not in line], [])

    def test_it_fits(self):
        """Counts each object twice, since most are in a library too, and the linked files."""
        there = [found for one in self.objects if (found := objects_with(BUILD / one))]
        self.assertGreater(len(there), 0.95 * len(self.objects), f"{BUILD} is not whole")
        objects = sum(bytes_without_debug(one) for one in set().union(*there))
        linked = [path for pattern in ("src/tools/skillet", "src/frontend/**/libskillet*.so*", "src/lab/interpose/libskillet-*.so")
                  for path in BUILD.glob(pattern) if path.is_file() and not path.is_symlink()]
        self.assertGreaterEqual(len(linked), 5)
        total = 2 * objects + sum(bytes_without_debug(one) for one in linked)
        print(f"objects {objects / 1e6:.0f} MB, in all at most {total / 1e6:.0f} MB")
        self.assertLess(total, MOST_BYTES)


if __name__ == "__main__":
    unittest.main()
