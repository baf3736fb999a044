"""Makes the private root of the peer's driver: Debian's arm64 packages, downloaded and unpacked, never installed.

Uses a private configuration of apt: this machine's mirror, keys and download settings, but its own lists, its own
cache, and an empty list of installed packages. It does not read or write the machine's own package state.
"""
import contextlib
import fcntl
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

SUITE = "sid"
PACKAGES = ["mesa-teflon-delegate", "libtensorflow-lite-dev"]  # the -dev package depends on the library and its headers
LIBRARIES = "usr/lib/aarch64-linux-gnu"
TEFLON = "usr/lib/teflon/libteflon.so"
NEEDED = (TEFLON, f"{LIBRARIES}/libtensorflow-lite.so", "usr/include/tensorflow/lite/delegates/external/external_delegate.h")  # a file of each package
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
FALLBACK_MIRROR = "http://deb.debian.org/debian"
# Download settings of this machine that are not copied to the private configuration.
NOT_COPIED = ("Acquire::IndexTargets", "Acquire::Changelogs", "Acquire::Languages", "Acquire::GzipIndexes")


class SetUpError(Exception):
    """The root cannot be made. The text gives the reason and what to do."""


def run(command, **settings):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
    if done.returncode != 0:
        tail = (done.stderr.strip() or done.stdout.strip()).splitlines()[-8:]
        raise SetUpError("\n  ".join([f"failed: {shlex.join(str(word) for word in command)}", *tail]))
    return done.stdout


def machine_mirror():
    """Returns the mirror from which this machine's own apt gets Debian."""
    targets = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN)"])
    for line in targets.splitlines():
        uri, _, origin = line.partition(" ")
        if uri.rstrip("/").endswith("/debian") and origin in ("", "Debian"):
            return uri.rstrip("/")
    return FALLBACK_MIRROR


def write_apt_configuration(folder):
    for part in ("state/lists/partial", "cache/archives/partial", "etc/preferences.d", "etc/apt.conf.d"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    (folder / "etc/sources.list").write_text(
        f"deb [arch=arm64 signed-by={KEYRING}] {machine_mirror()} {SUITE} main\n")
    copied = [line for line in run(["apt-config", "dump", "Acquire"]).splitlines() if not line.startswith(NOT_COPIED)]
    own = {"Dir::State": folder / "state", "Dir::State::status": folder / "status", "Dir::Cache": folder / "cache",
           "Dir::Etc": folder / "etc", "APT::Architecture": "arm64", "APT::Architectures": "arm64",
           "APT::Install-Recommends": "false", "APT::Sandbox::User": "root", "Acquire::Languages": "none"}
    configuration = folder / "apt.conf"
    configuration.write_text("\n".join(copied + [f'{name} "{value}";' for name, value in own.items()]) + "\n")
    return configuration


def unpack(archives, root):
    """Unpacks into ROOT, whose top-level lib is a link to usr/lib as everywhere in Debian."""
    (root / "usr/lib").mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    versions = {}
    for archive in archives:
        run(["dpkg-deb", "-x", archive, root])
        package, version = run(["dpkg-deb", "-f", archive, "Package", "Version"]).splitlines()
        versions[package.partition(": ")[2]] = version.partition(": ")[2]
    return versions


@contextlib.contextmanager
def alone(folder):
    """Locks FOLDER: one process at a time makes its contents."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def versions_of(folder):
    """Returns the versions of the packages in FOLDER/root. None: it is incomplete, or has other packages."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads((folder / "packages.json").read_text())
        if known["asked"] == [SUITE, *PACKAGES] and not missing(folder / "root"):
            return known["versions"]
    return None


def missing(root):
    return [name for name in NEEDED if not (root / name).exists()]


def write_mark(folder, versions):
    """Marks the root as complete. Called last."""
    part = folder / "packages.json.part"
    part.write_text(json.dumps({"asked": [SUITE, *PACKAGES], "versions": versions}, indent=1))
    part.replace(folder / "packages.json")


def prepare(folder, say):
    """Makes the root in FOLDER/root if needed. Returns its path and the versions of its packages."""
    with alone(folder):
        versions = versions_of(folder)
        return folder / "root", make(folder, say) if versions is None else versions


def make(folder, say):
    root = folder / "root"
    (folder / "packages.json").unlink(missing_ok=True)
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise SetUpError(f"{program} is missing: the packages come from Debian")
    apt_folder = (folder / "apt").resolve()
    shutil.rmtree(apt_folder, ignore_errors=True)
    configuration = write_apt_configuration(apt_folder)
    environment = {"APT_CONFIG": str(configuration), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
    environment.update(proxies())
    say(f"reading the list of Debian {SUITE} (arm64) from {machine_mirror()}, in {apt_folder}")
    run(["apt-get", "update", "-q"], env=environment)
    say(f"downloading {' and '.join(PACKAGES)} with what they need")
    run(["apt-get", "install", "-q", "-y", "--download-only", *PACKAGES], env=environment)
    archives = sorted((apt_folder / "cache/archives").glob("*.deb"))
    shutil.rmtree(root, ignore_errors=True)
    versions = unpack(archives, root)
    if lacks := missing(root):
        raise SetUpError(f"{len(archives)} packages were downloaded, and {', '.join(lacks)} is in none of them")
    write_mark(folder, versions)
    shutil.rmtree(apt_folder)
    say(f"unpacked {len(archives)} packages into {root}")
    return versions


def proxies():
    return {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
