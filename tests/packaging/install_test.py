#!/usr/bin/env python3
"""Installs a build into an empty folder, and builds programs against it.

usage: install_test.py BUILD_DIR VERSION
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, VERSION = sys.argv[1:3]
DOC = "usr/share/doc/skillet"
CONSUMER = Path(__file__).parent / "consumer"
ROOT = Path(__file__).resolve().parents[2]
# A compiler's sanitizer must be loaded first; packages are built without one.
SANITIZED = "SKILLET_SANITIZE:STRING=\n" not in Path(BUILD, "CMakeCache.txt").read_text() + "\n"


def run(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="skillet_install_")
        cls.root = Path(cls.folder.name)
        run("cmake", "--install", BUILD, "--prefix", "/usr", DESTDIR=str(cls.root))
        (cls.lib,) = {path.parent.parent for path in cls.root.glob("usr/lib*/**/skillet.pc")}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def consumer(self, program):
        self.assertEqual(run(str(program), LD_LIBRARY_PATH=str(self.lib)), f"skillet {VERSION}\n")

    def test_files(self):
        names = {str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir()}
        lib = str(self.lib.relative_to(self.root))
        for name in ("usr/bin/skillet", "usr/include/skillet/skillet.h", f"{lib}/libskillet_c.so",
                     f"{lib}/libskillet_c.so.0", f"{lib}/libskillet_c.so.{VERSION}", "usr/lib/skillet/libskillet.so", "usr/lib/skillet/libskillet_onnxruntime.so",
                     "usr/lib/skillet/libLiteRtCompilerPlugin_Skillet.so", "usr/lib/skillet/libLiteRtDispatch_Skillet.so",
                     f"{lib}/pkgconfig/skillet.pc",
                     f"{lib}/cmake/skillet/skilletConfig.cmake", "usr/lib/udev/rules.d/70-skillet.rules",
                     f"{DOC}/README.md", f"{DOC}/docs/devices.md", f"{DOC}/models/digits.tflite",
                     f"{DOC}/models/digits/7.png", f"{DOC}/example/classify.c"):
            self.assertIn(name, names)
        self.assertNotIn("usr/lib/teflon/libteflon.so", names)
        self.assertIn(f"{DOC}/docs/dev/adding-an-npu.md", names)

    def test_verbs_in_python_are_there(self):
        package = self.root / "usr/lib/python3/dist-packages/skillet"
        source = ROOT / "src/frontend/python/skillet"
        wanted = {str(path.relative_to(source)) for path in source.rglob("*") if path.suffix in (".py", ".cpp") or path.name == "py.typed"}
        self.assertEqual({str(path.relative_to(package)) for path in package.rglob("*") if not path.is_dir() and path.suffix != ".pyc"}, wanted)
        page = self.root / "page.html"
        run(str(self.root / "usr/bin/skillet"), "page", str(ROOT / "tests/captures/a311d_conv1x1_relu6_u8"), "-o", str(page), PYTHONPATH="", PYTHONDONTWRITEBYTECODE="1")
        self.assertIn("nn_instruction", page.read_text())
        page.unlink()
        said = run(sys.executable, "-c", "import skillet; print(skillet.version()); print(skillet.delegate_path())",
                   PYTHONPATH=str(package.parent), PYTHONDONTWRITEBYTECODE="1", SKILLET_C_LIBRARY="").splitlines()
        self.assertEqual(said, [VERSION, str(self.root / "usr/lib/skillet/libskillet.so")])

    def test_binaries_are_stripped(self):
        for name in ("usr/bin/skillet", self.lib / "libskillet_c.so", "usr/lib/skillet/libskillet.so", "usr/lib/skillet/libskillet_onnxruntime.so",
                     "usr/lib/skillet/libLiteRtDispatch_Skillet.so"):
            self.assertNotIn(".debug_info", run("readelf", "-S", "--wide", str(self.root / name)), name)

    def test_links_between_pages_hold(self):
        for page in (self.root / DOC).rglob("*.md"):
            for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
                source = (page.parent / target).resolve()
                if source.suffix in (".md", ".png"):
                    self.assertTrue(source.exists(), f"{page}: {target}")

    def exports(self, library):
        lines = run("nm", "-D", "--defined-only", str(self.lib / library)).splitlines()
        return {line.split()[-1].split("@")[0] for line in lines}

    def test_only_our_names_are_exported(self):
        names = self.exports("libskillet_c.so")
        self.assertIn("skillet_open", names)
        self.assertEqual({name for name in names if not name.startswith("skillet_")}, set())
        self.assertEqual(self.exports(self.root / "usr/lib/skillet/libskillet.so"),
                         {"tflite_plugin_create_delegate", "tflite_plugin_destroy_delegate"})
        self.assertEqual(self.exports(self.root / "usr/lib/skillet/libskillet_onnxruntime.so"), {"CreateEpFactories", "ReleaseEpFactory"})
        names = self.exports(self.root / "usr/lib/skillet/libLiteRtDispatch_Skillet.so")
        self.assertIn("LiteRtDispatchGetApi", names)
        self.assertEqual({name for name in names if not name.startswith("LiteRt")}, set())

    @unittest.skipIf(SANITIZED, "sanitizers are shared libraries")
    def test_nothing_is_needed_but_the_c_library(self):
        names = ["skillet/libskillet.so", "skillet/libskillet_onnxruntime.so", "skillet/libLiteRtCompilerPlugin_Skillet.so", "skillet/libskillet-virtual.so", "skillet/libskillet-record.so"]
        for file in [self.root / "usr/bin/skillet", self.lib / "libskillet_c.so", *(self.root / "usr/lib" / name for name in names)]:
            dynamic = run("readelf", "--dynamic", "--wide", str(file))
            needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
            self.assertEqual([one for one in needed if not re.match(r"(libc|libm|libpthread|libdl|ld-linux[-\w]*)\.so", one)], [], file)
            self.assertNotRegex(dynamic, r"\((RPATH|RUNPATH)\)", file)
        self.assertIn("[libskillet_c.so.0]", run("readelf", "--dynamic", str(self.lib / "libskillet_c.so")))

    def test_pages_are_of_every_verb(self):
        command, folder = str(self.root / "usr/bin/skillet"), self.root / "pages"
        folder.mkdir()
        run(sys.executable, str(CONSUMER.parents[2] / "packaging/pages.py"), command, str(folder))
        verbs = re.findall(r"^  (\w+) ", run(command, "--help").split("Subcommands:")[1], re.M)
        self.assertLessEqual({"skillet.1", "skillet.bash", *(f"skillet-{verb}.1" for verb in verbs)}, {path.name for path in folder.iterdir()})
        completion = (folder / "skillet.bash").read_text()
        run("bash", "-n", str(folder / "skillet.bash"))
        for verb in verbs:
            page = (folder / f"skillet-{verb}.1").read_text().replace("\\-", "-")
            (words,) = re.findall(rf"^    {verb}\) words='(.*)' ;;$", completion, re.M)
            for option in re.findall(r"^ +(?:-\w,)?(--[\w-]+)", run(command, verb, "--help"), re.M):
                self.assertIn(option, page, verb)
                self.assertIn(option, words.split(), verb)

    def test_command(self):
        self.assertEqual(run(str(self.root / "usr/bin/skillet"), "--version"), f"skillet {VERSION}\n")

    @unittest.skipIf(SANITIZED, "the library is built with a sanitizer")
    def test_pkg_config(self):
        if not shutil.which("pkg-config"):
            self.skipTest("no pkg-config")
        flags = run("pkg-config", "--cflags", "--libs", "skillet", PKG_CONFIG_PATH=str(self.lib / "pkgconfig")).split()
        program = self.root / "consumer"
        run("cc", "-Wall", "-Werror", str(CONSUMER / "consumer.c"), *flags, "-o", str(program))
        self.consumer(program)

    @unittest.skipIf(SANITIZED, "the library is built with a sanitizer")
    def test_cmake_config(self):
        build = self.root / "build"
        run("cmake", "-S", str(CONSUMER), "-B", str(build), f"-Dskillet_DIR={self.lib}/cmake/skillet")
        run("cmake", "--build", str(build))
        self.consumer(build / "consumer")

    @unittest.skipIf(SANITIZED, "the library is built with a sanitizer")
    def test_example(self):
        program, picture = self.root / "classify", self.root / "seven.raw"
        doc = self.root / DOC
        run("cc", "-Wall", "-Wextra", "-Werror", f"-I{self.root}/usr/include", str(doc / "example/classify.c"), f"-L{self.lib}",
            "-lskillet_c", "-o", str(program))
        # Draws a seven with two strokes.
        picture.write_bytes(bytes(255 if 5 <= y <= 7 and 7 <= x <= 20 or 8 <= y <= 23 and 0 <= x - (19 - (y - 8) // 2) <= 2
                                  else 0 for y in range(28) for x in range(28)))
        listed = json.loads(run(str(self.root / "usr/bin/skillet"), "devices", "--json"))["devices"]
        simulated = [one["device"] for one in listed if one["usable"] and one["device"].startswith("sim:")]
        for device in ("cpu", simulated[0]):
            said = run(str(program), str(doc / "models/digits.tflite"), str(picture), device, LD_LIBRARY_PATH=str(self.lib))
            self.assertTrue(said.startswith("class 7\n"), said)

    def test_teflon_link_leaves_what_others_put_there(self):
        folder = self.root / "usr/lib/teflon"
        folder.mkdir(parents=True, exist_ok=True)
        other, link = folder / "libteflon.so.1", folder / "libteflon.so"
        other.write_text("another package's")
        for put in (lambda: link.write_text("another package's"), lambda: link.symlink_to("libteflon.so.1"),
                    lambda: link.symlink_to("gone")):
            put()
            before = link.is_symlink(), os.readlink(link) if link.is_symlink() else link.read_text()
            with self.assertRaisesRegex(AssertionError, r"is\s+there\s+already\s+and\s+is\s+not\s+ours(.|\n)*dpkg-divert"):
                run("cmake", "--install", BUILD, "--prefix", "/usr", "--component", "teflon-link", DESTDIR=str(self.root))
            self.assertEqual((link.is_symlink(), os.readlink(link) if link.is_symlink() else link.read_text()), before)
            link.unlink()
        shutil.rmtree(folder)

    def test_teflon_link(self):
        run("cmake", "--install", BUILD, "--prefix", "/usr", "--component", "teflon-link", DESTDIR=str(self.root))
        link = self.root / "usr/lib/teflon/libteflon.so"
        self.assertTrue(link.is_symlink())
        target = self.root / os.readlink(link).lstrip("/")
        self.assertTrue(target.exists(), target)
        run("cmake", "--install", BUILD, "--prefix", "/usr", "--component", "teflon-link", DESTDIR=str(self.root))  # a second time
        link.unlink()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
