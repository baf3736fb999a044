#!/usr/bin/env python3
"""Installs the packages into clean roots of Debian 12, uses and removes them.

usage: clean_root_test.py FOLDER WORK     FOLDER: made by package.py; WORK: for roots, whose archives are kept for the next run

Needs mmdebstrap, a mirror of Debian the first time, and root (for chroot). For arm64 the base is unpacked and programs run
under qemu-user. Maintainer scripts do not run there; they equal those of the other architecture.
"""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import package  # noqa: E402

FOLDER, WORK = (Path(one).resolve() for one in sys.argv[1:3])
VERSION, NATIVE = package.version(), package.native()
MODEL = "usr/share/doc/skillet/models"
LINK = "usr/lib/teflon/libteflon.so"
SEVEN = 7  # the digit in the picture
NAMES = ["libskillet0", "libskillet-dev", "skillet", "skillet-teflon"]


def run(*command, **keywords):
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, check=False, **keywords)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def left_out(what, why):
    print(f"clean_root_test: {what} is left out: {why}")
    raise unittest.SkipTest(why)


def deb(name, arch=NATIVE):
    return FOLDER / f"{name}_{VERSION}_{'all' if name == 'skillet-teflon' else arch}.deb"


@contextlib.contextmanager
def web_server(folder):
    with subprocess.Popen([sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", folder, "0"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as server:
        try:
            yield re.search(r"http://[^)]+", server.stdout.readline())[0]
        finally:
            server.terminate()


def base(arch, suite="bookworm"):
    """Returns an archive of a minimal Debian, 12 by default."""
    archive = WORK / f"base-{arch}{'' if suite == 'bookworm' else '-' + suite}.tar"
    if not archive.exists():
        how = ["--variant=minbase"] if arch == NATIVE else ["--variant=extract", "--include=libc6,python3,libpython3-stdlib"]
        part = archive.with_suffix(".part.tar")
        run("mmdebstrap", *how, f"--architectures={arch}", suite, part)
        part.rename(archive)
    return archive


def unpack(arch, suite="bookworm"):
    root = WORK / f"root-{arch}-{suite}"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    run("tar", "-xf", base(arch, suite), "-C", root, "--exclude=./dev/*")
    (root / "dev").mkdir(exist_ok=True)
    (root / "dev/null").touch(0o666)  # a plain file suffices for the programs that run here
    (root / "dev/fd").symlink_to("/proc/self/fd")
    return root


def recognised(output):
    """Returns the best class of the only picture, from the output of `skillet run --json`."""
    return json.loads(output)["runs"][0]["outputs"][0]["top"][0]["class"]


def digits(root):
    return ["run", f"{root}/{MODEL}/digits.tflite", "--image", f"{root}/{MODEL}/digits/7.png", "--labels", f"{root}/{MODEL}/digits_labels.txt",
            "--device", "sim:a311d", "--json"]


class Debian(unittest.TestCase):
    """Tests on this machine's architecture, in order."""

    @classmethod
    def setUpClass(cls):
        cls.root = unpack(NATIVE)

    def inside(self, *command):
        # A separate /proc, which disappears with its processes.
        space = ["unshare", "--mount", "--pid", "--fork", f"--mount-proc={self.root}/proc"]
        return run(*space, "chroot", self.root, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", *command)

    def install(self, *files):
        for file in files:
            shutil.copy2(file, self.root / "tmp")
        self.inside("dpkg", "-i", *(f"/tmp/{file.name}" for file in files))

    def made(self, control, files):
        """Makes a package of another project."""
        tree = WORK / "other"
        shutil.rmtree(tree, ignore_errors=True)
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN/control").write_text("".join(f"{key}: {value}\n" for key, value in control.items()))
        for name, text in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
        file = WORK / f"{control['Package']}_{control['Version']}.deb"
        run("dpkg-deb", "--root-owner-group", "-b", tree, file)
        return file

    def mesa(self, version):
        return self.made({"Package": "mesa-teflon-delegate", "Version": version, "Architecture": "all", "Maintainer": "x <x@example.org>",
                          "Description": "stands for Mesa's"}, {LINK: f"of Mesa {version}"})

    def newer(self, name):
        """Makes the same package with a higher version."""
        tree = WORK / "newer"
        shutil.rmtree(tree, ignore_errors=True)
        run("dpkg-deb", "-R", deb(name), tree)
        control = tree / "DEBIAN/control"
        control.write_text(control.read_text().replace(f"Version: {VERSION}\n", f"Version: {VERSION}+next\n"))
        file = WORK / deb(name).name.replace(f"_{VERSION}_", f"_{VERSION}+next_")
        run("dpkg-deb", "--root-owner-group", "-b", tree, file)
        return file

    def link(self):
        """Returns what programs find at the path: the text of a file, or the target of a link."""
        path = self.root / LINK
        return os.readlink(path) if path.is_symlink() else path.read_text() if path.exists() else None

    def test_1_installs_and_runs(self):
        before = self.files()
        self.install(*(deb(name) for name in NAMES))
        self.assertEqual(self.inside("skillet", "--version"), f"skillet {VERSION}\n")
        self.assertEqual(recognised(self.inside("skillet", *digits(""))), SEVEN)
        self.assertIn("etnaviv", self.inside("skillet", "virtual", "--chip", "a311d", "--", "skillet", "devices"))
        self.inside("bash", "-n", "/usr/share/bash-completion/completions/skillet")
        said = self.inside("bash", "-c", "source /usr/share/bash-completion/completions/skillet; COMP_WORDS=(skillet run --comp); "
                           "COMP_CWORD=2; _skillet; echo ${COMPREPLY[*]}")
        self.assertIn("--compare", said.split())
        self.assertEqual(self.link(), "../skillet/libskillet.so")
        self.inside("dpkg", "--remove", *NAMES)
        self.inside("dpkg", "--purge", *NAMES)
        self.assertEqual(self.inside("dpkg-divert", "--list", "*teflon*"), "")
        self.assertEqual({path for path in self.files() - before if "ld.so.cache" not in path}, set())

    def files(self):
        left_alone = ("/tmp/", "/var/log/", "/var/lib/dpkg/", "/var/cache/")
        names = {f"/{path.relative_to(self.root)}" for path in self.root.rglob("*")}
        return {name for name in names if not name.startswith(left_alone)}

    def test_2_a_file_of_another_package_comes_back(self):
        self.install(deb("skillet"))
        old, new = self.mesa("1"), self.mesa("2")
        ours = "../skillet/libskillet.so"
        steps = [  # action, result
            ("theirs first", lambda: self.install(old), "of Mesa 1"),
            ("ours", lambda: self.install(deb("skillet-teflon")), ours),
            ("theirs is upgraded", lambda: self.install(new), ours),
            ("ours is upgraded", lambda: self.install(self.newer("skillet-teflon")), ours),
            ("ours goes", lambda: self.inside("dpkg", "--remove", "skillet-teflon"), "of Mesa 2"),
            ("and is purged", lambda: self.inside("dpkg", "--purge", "skillet-teflon"), "of Mesa 2"),
            ("ours again", lambda: self.install(deb("skillet-teflon")), ours),
            ("theirs goes", lambda: self.inside("dpkg", "--purge", "mesa-teflon-delegate"), ours),
            ("theirs second", lambda: self.install(old), ours),
            ("ours is purged at once", lambda: self.inside("dpkg", "--purge", "skillet-teflon"), "of Mesa 1"),
            ("theirs goes too", lambda: self.inside("dpkg", "--purge", "mesa-teflon-delegate"), None),
        ]
        for what, step, expected in steps:
            step()
            self.assertEqual(self.link(), expected, what)
        self.assertEqual(self.inside("dpkg-divert", "--list", "*teflon*"), "")
        self.inside("dpkg", "--purge", "skillet")

    def test_3_installs_and_upgrades_from_a_web_server(self):
        """Installs from the folder of packages as it is, trusted; then signed, with a newer version."""
        served, signing = WORK / "served", WORK / "gnupg"
        self.addCleanup(shutil.rmtree, signing)  # GnuPG's agent ends with it
        for one in served, signing:
            shutil.rmtree(one, ignore_errors=True)
            one.mkdir(mode=0o700)
        for file in (*FOLDER.glob("*.deb"), *FOLDER.glob("Packages*"), FOLDER / "Release"):
            shutil.copy2(file, served)
        with web_server(served) as address:
            self.apt_sources(f"[trusted=yes] {address}")
            self.apt("install", "skillet", "skillet-teflon")
            self.assertEqual(self.installed("skillet", "skillet-teflon"), [VERSION] * 2)
            self.assertEqual(recognised(self.inside("skillet", *digits(""))), SEVEN)
            shutil.copy2(self.newer("skillet"), served)
            package.repository(served)
            gpg = ["gpg", "--homedir", signing, "--batch", "--passphrase", ""]
            run(*gpg, "--quick-gen-key", "packages@example.org", "default", "default", "never")
            run(*gpg, "-o", self.root / "usr/share/keyrings/packages.gpg", "--export")
            run(*gpg, "--clearsign", "-o", served / "InRelease", served / "Release")
            self.apt_sources(f"[signed-by=/usr/share/keyrings/packages.gpg] {address}")
            self.apt("upgrade")
            self.assertEqual(self.installed("skillet", "skillet-teflon"), [f"{VERSION}+next", VERSION])
        self.apt("purge", "skillet", "skillet-teflon")

    def apt(self, *words):
        return self.inside("apt-get", "-q", "-y", "-o", "APT::Sandbox::User=root", "-o", "Dir::Etc::sourcelist=/dev/null", "-o", "APT::Install-Recommends=false", *words)

    def apt_sources(self, source):
        (self.root / "etc/apt/sources.list.d/skillet.list").write_text(f"deb {source} ./\n")
        self.apt("update")

    def installed(self, *names):
        return self.inside("dpkg-query", "-W", "-f", "${Version}\\n", *names).split()


class Arm64(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if NATIVE == "arm64" or not deb("skillet", "arm64").exists():
            left_out("arm64", "no packages of it beside those of this machine")
        if shutil.which("qemu-aarch64-static") is None:
            left_out("arm64", "no qemu-aarch64-static")
        cls.root = unpack("arm64")
        for name in NAMES:
            run("dpkg-deb", "-x", deb(name, "arm64"), cls.root)

    def emulated(self, *command, **environment):
        settings = [word for name, value in environment.items() for word in ("-E", f"{name}={value}")]
        return run("qemu-aarch64-static", "-L", self.root, *settings, *command)

    def test_command(self):
        command = self.root / "usr/bin/skillet"
        self.assertEqual(self.emulated(command, "--version"), f"skillet {VERSION}\n")
        self.assertEqual(recognised(self.emulated(command, *digits(self.root))), SEVEN)

    def test_tar(self):
        (file,) = FOLDER.glob("*-aarch64-linux.tar.xz")
        place = WORK / "tar"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        run("tar", "-xf", file, "-C", place, "--strip-components=1")
        self.assertEqual(self.emulated(place / "bin/skillet", "--version"), f"skillet {VERSION}\n")
        self.assertTrue((place / "lib/libskillet_c.so.0").exists())

    def test_wheel(self):
        (file,) = FOLDER.glob("skillet-*_aarch64.whl")
        place = WORK / "wheel-arm64"
        shutil.rmtree(place, ignore_errors=True)
        zipfile.ZipFile(file).extractall(place)
        code = (f"import skillet; s = skillet.Session({str(self.root / MODEL / 'digits.tflite')!r}, 'sim:a311d'); "
                "s.run_on([bytearray(i.nbytes) for i in s.inputs], [bytearray(o.nbytes) for o in s.outputs]); print(skillet.version())")
        said = self.emulated(self.root / "usr/bin/python3.11", "-c", code, PYTHONHOME=f"{self.root}/usr", PYTHONPATH=str(place))
        self.assertEqual(said, f"{VERSION}\n")


class Container(unittest.TestCase):
    """Builds the recipe on the same minimal Debian 12 instead of the image that it names, so nothing is downloaded."""

    @classmethod
    def setUpClass(cls):
        if shutil.which("buildah") is None:
            left_out("the container", "no buildah")
        shutil.rmtree(WORK / "containers", ignore_errors=True)
        cls.recipe = (package.HERE / "Containerfile").read_text()
        (wanted,) = re.findall(r"^FROM (\S+)$", cls.recipe, re.M)
        cls.buildah("from", "--name", "base", "scratch")
        cls.buildah("add", "base", base(NATIVE), "/")
        cls.buildah("commit", "base", wanted)

    @staticmethod
    def buildah(verb, *arguments):
        return run("buildah", "--root", WORK / "containers/root", "--runroot", WORK / "containers/run", "--storage-driver", "vfs", verb, *arguments)

    def test_it_builds_and_runs_as_it_says(self):
        self.buildah("bud", "--isolation", "chroot", "--pull-never", "-f", package.HERE / "Containerfile", "-t", "skillet", FOLDER)
        entry = json.loads(self.buildah("inspect", "--type", "image", "skillet"))["OCIv1"]["config"]["Entrypoint"]
        box = self.buildah("from", "--pull-never", "skillet").strip()
        inside = ["run", "--isolation", "chroot", box, "--", *entry]
        (said,) = re.findall(r"podman run --rm skillet (.+)", self.recipe)
        self.assertIn("operations on the NPU", self.buildah(*inside, *said.split()))
        self.assertEqual(recognised(self.buildah(*inside, *digits(""))), SEVEN)
        self.assertEqual(self.buildah("run", "--isolation", "chroot", box, "--", "readlink", f"/{LINK}"), "../skillet/libskillet.so\n")


class OlderDebian(Debian):
    """Tests on Debian 11, whose C library is older than the build's."""

    @classmethod
    def setUpClass(cls):
        try:
            cls.root = unpack(NATIVE, "bullseye")
        except AssertionError as problem:
            left_out("Debian 11", f"mmdebstrap: {problem}")


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("clean_root_test: skipped, it needs root (chroot)")
    if shutil.which("mmdebstrap") is None:
        sys.exit("clean_root_test: skipped, it needs mmdebstrap")
    WORK.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=sys.argv[:1])
