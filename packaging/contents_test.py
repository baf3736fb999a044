#!/usr/bin/env python3
"""Checks the contents of packages: files, dependencies and exports of libraries, lintian, the tag of the wheel.

usage: contents_test.py FOLDER     made by package.py
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import package  # noqa: E402

FOLDER = Path(sys.argv.pop(1)).resolve()
VERSION = package.version()
ARCHITECTURES = sorted(path.name.split("_")[2][:-4] for path in FOLDER.glob("libskillet0_*.deb"))
# The only system libraries that a program may need: parts of the C library.
ALLOWED = re.compile(r"(libc|libm|libdl|libpthread|ld-linux[\w-]*)\.so\.\d")

# package: required files; %s is the folder of libraries of its architecture.
FILES = {
    "skillet": ["usr/bin/skillet", "usr/lib/skillet/libskillet.so", "usr/lib/skillet/libskillet_onnxruntime.so", "usr/lib/skillet/libLiteRtCompilerPlugin_Skillet.so",
                "usr/lib/skillet/libLiteRtDispatch_Skillet.so", "usr/lib/skillet/libskillet-virtual.so",
                "usr/lib/skillet/libskillet-record.so", "usr/lib/udev/rules.d/70-skillet.rules",
                "usr/share/man/man1/skillet.1.gz", "usr/share/man/man1/skillet-run.1.gz",
                "usr/share/bash-completion/completions/skillet", "usr/share/doc/skillet/copyright",
                "usr/share/doc/skillet/changelog.gz", "usr/share/doc/skillet/README.md",
                "usr/share/doc/skillet/models/digits.tflite"],
    "libskillet0": ["usr/lib/%s/libskillet_c.so.0", f"usr/lib/%s/libskillet_c.so.{VERSION}"],
    "libskillet-dev": ["usr/include/skillet/skillet.h", "usr/lib/%s/libskillet_c.so", "usr/lib/%s/pkgconfig/skillet.pc",
                       "usr/lib/%s/cmake/skillet/skilletConfig.cmake"],
    "gstreamer1.0-skillet": ["usr/lib/%s/gstreamer-1.0/libgstskillet.so", "usr/share/doc/gstreamer1.0-skillet/copyright"],
    "skillet-teflon": ["usr/lib/teflon/libteflon.so"],
}


def run(*command):
    return subprocess.run([str(one) for one in command], capture_output=True, text=True, check=True).stdout


def deb(name, arch):
    return FOLDER / f"{name}_{VERSION}_{'all' if name == 'skillet-teflon' else arch}.deb"


def dynamic(file, tag):
    return re.findall(rf"\({tag}\).*\[(.+)\]", run("readelf", "--dynamic", "--wide", file))


class Contents(unittest.TestCase):
    def test_apt_reads_the_folder(self):
        with tempfile.TemporaryDirectory() as state:
            root = Path(state)
            for name in ("lists/partial", "archives/partial", "taken"):
                (root / name).mkdir(parents=True)
            (root / "sources.list").write_text(f"deb [trusted=yes] file:{FOLDER} ./\n")
            (root / "status").touch()
            apt = ["apt-get", "-o", f"Dir::Etc::sourcelist={root}/sources.list", "-o", "Dir::Etc::sourceparts=-", "-o", f"Dir::State={root}",
                   "-o", f"Dir::Cache={root}", "-o", f"Dir::State::status={root}/status", "-o", "APT::Sandbox::User=root"]
            run(*apt, "update")
            names = [name for name in FILES if deb(name, package.native()).exists()]
            subprocess.run([*apt, "download", *names], cwd=root / "taken", check=True, capture_output=True)
            for name in names:
                (taken,) = (root / "taken").glob(f"{name}_*.deb")
                self.assertEqual(taken.read_bytes(), deb(name, package.native()).read_bytes())

    def test_files(self):
        for arch in ARCHITECTURES:
            for name, files in FILES.items():
                listed = {line.split()[5] for line in run("dpkg-deb", "-c", deb(name, arch)).splitlines()}
                for file in files:
                    wanted = "./" + (file % package.TRIPLETS[arch] if "%s" in file else file)
                    self.assertIn(wanted, listed, f"{name} {arch}")
                outside = {path for path in listed if path != "./" and not path.startswith("./usr/")}
                self.assertEqual(outside, set(), name)

    def test_programs_need_the_c_library_only(self):
        for arch in ARCHITECTURES:
            with tempfile.TemporaryDirectory() as folder:
                for name in ("skillet", "libskillet0"):
                    run("dpkg-deb", "-x", deb(name, arch), folder)
                files = [file for file in Path(folder).rglob("*") if file.is_file() and not file.is_symlink() and package.is_elf(file)]
                self.assertEqual(len(files), 7, arch)
                for file in files:
                    needed = dynamic(file, "NEEDED")
                    self.assertTrue(needed and all(ALLOWED.fullmatch(one) for one in needed), f"{file}: {needed}")
                    self.assertEqual(dynamic(file, "RPATH") + dynamic(file, "RUNPATH"), [], file)
                    self.assertNotIn(".debug_info", run("readelf", "--sections", "--wide", file), file)
                (library,) = (file for file in files if file.name.startswith("libskillet_c"))
                self.assertEqual(dynamic(library, "SONAME"), ["libskillet_c.so.0"])

    def test_element(self):
        for arch in ARCHITECTURES:
            with tempfile.TemporaryDirectory() as folder:
                run("dpkg-deb", "-x", deb("gstreamer1.0-skillet", arch), folder)
                (file,) = Path(folder).rglob("libgstskillet.so")
                foreign = re.compile(r"lib(gst\w+|gobject|glib)-\d\.0\.so\.0")
                needed = dynamic(file, "NEEDED")
                self.assertTrue(all(ALLOWED.fullmatch(one) or foreign.fullmatch(one) for one in needed), needed)
                self.assertEqual(dynamic(file, "RPATH") + dynamic(file, "RUNPATH"), [], arch)
                if arch == package.native() and shutil.which("gst-inspect-1.0"):
                    seen = {**os.environ, "GST_PLUGIN_PATH": str(file.parent), "GST_REGISTRY": f"{folder}/registry"}
                    said = subprocess.run(["gst-inspect-1.0", "skilletinfer"], env=seen, capture_output=True, text=True, check=True).stdout
                    self.assertIn(str(file), said)

    def test_depends(self):
        for arch in ARCHITECTURES:
            for name in ("skillet", "libskillet0"):
                depends = run("dpkg-deb", "-f", deb(name, arch), "Depends")
                self.assertRegex(depends, r"^libc6 \(>= [\d.]+\)$", f"{name} {arch}: {depends}")

    def test_lintian(self):
        packages = sorted(FOLDER.glob("*.deb"))
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", *packages], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stdout + done.stderr)

    def test_wheels(self):
        wanted = {"skillet": ["skillet/__init__.py", "skillet/py.typed", "skillet/bin/skillet", "skillet/lib/libskillet_c.so.0",
                              *(f"skillet/lib/skillet/{one}" for one in package.LIBRARIES)]}
        for name, libraries in package.PLUGINS.items():
            folder = name.replace("-", "_")
            wanted[folder] = [f"{folder}/{one}" for one in ("__init__.py", *libraries)]
        for arch in ARCHITECTURES:
            for name, contents in wanted.items():
                (file,) = FOLDER.glob(f"{name}-*_{package.TRIPLETS[arch].split('-')[0]}.whl")
                tagged = tuple(map(int, re.search(r"manylinux_(\d+)_(\d+)_", file.name).groups()))
                with zipfile.ZipFile(file) as archive, tempfile.TemporaryDirectory() as folder:
                    self.assertIsNone(archive.testzip())
                    names = archive.namelist()
                    for one in contents:
                        self.assertIn(one, names)
                    archive.extractall(folder)
                    files = [path for path in Path(folder).rglob("*") if path.is_file()]
                    self.assertEqual(package.needed_glibc(files), tagged)
                    self.assertLessEqual(tagged, (2, 28))  # as debian/control says
                    for library in (one for one in contents if one.endswith(".so") or "/bin/" in one):
                        self.assertEqual(archive.getinfo(library).external_attr >> 16 & 0o111, 0o111)


if __name__ == "__main__":
    if not ARCHITECTURES:
        sys.exit(f"contents_test: no packages in {FOLDER}")
    unittest.main()
