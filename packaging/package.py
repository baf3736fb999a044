#!/usr/bin/env python3
"""Makes packages of builds: .deb in a folder that apt reads, wheels and, for arm64 boards, a tar. `./x package` builds first, then calls this.

usage: package.py OUT ARCH=BUILD_DIR...     ARCH as Debian has it (amd64, arm64), this machine's own among them

Needs debhelper. What goes into each package: debian/*.install, and wheels() and tar() below.
"""
import ast
import base64
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
LIBRARIES = ["libskillet.so", "libskillet_onnxruntime.so", "libskillet-virtual.so", "libskillet-record.so"]  # in lib/skillet
EXECUTABLE, PLAIN = 0o755, 0o644


def run(*command, **keywords):
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, check=False, **keywords)
    if done.returncode != 0:
        sys.exit(f"package: {' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def version():
    cmake, first = (SOURCE / "CMakeLists.txt").read_text(), (HERE / "debian/changelog").read_text().splitlines()[0]
    found = re.search(r"project\(skillet VERSION ([\d.]+)", cmake)[1]
    if f"({found})" not in first:
        sys.exit(f"package: version {found} has no entry in packaging/debian/changelog")
    return found


def native():
    return run("dpkg", "--print-architecture").strip()


def stage(arch, build, folder):
    """Installs the build as in /usr, with libraries where Debian has those of ARCH."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        run("cmake", "-S", SOURCE, "-B", build, f"-DCMAKE_INSTALL_LIBDIR=lib/{TRIPLETS[arch]}")
        run("cmake", "--install", build, "--prefix", "/usr", env={**os.environ, "DESTDIR": str(folder)})
    finally:
        run("cmake", "-S", SOURCE, "-B", build, "-UCMAKE_INSTALL_LIBDIR")


def write_pages(command, folder):
    """Writes manual pages and completion from the command's --help."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run(sys.executable, HERE / "pages.py", command, folder)


def debs(arch, staged, pages, work, out):
    """Builds the Debian packages. Those for every architecture (skillet-teflon) are built once, with this machine's own."""
    shutil.rmtree(work, ignore_errors=True)
    tree = work / "skillet"
    shutil.copytree(HERE / "debian", tree / "debian")
    shutil.copytree(staged, tree / "installed", symlinks=True)
    shutil.copytree(pages, tree / "pages")
    which = "--build=binary" if arch == native() else "--build=any"
    run("dpkg-buildpackage", "-d", "-us", "-uc", "-nc", which, f"--host-arch={arch}", cwd=tree)
    return [Path(shutil.copy2(file, out)) for file in sorted(work.glob("*.deb")) if "-dbgsym" not in file.name]


def is_elf(file):
    with file.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def needed_glibc(files):
    """Returns the newest version of the C library that any of the files needs."""
    asked = [tuple(map(int, found)) for file in files if is_elf(file)
             for found in re.findall(r"\bGLIBC_(\d+)\.(\d+)", run("readelf", "--version-info", "--wide", file))]
    return max(asked)


def python_files():
    """Returns {place below the package's parent folder: file}."""
    parent = SOURCE / "src/frontend/python"
    return {path.relative_to(parent): path for path in sorted((parent / "skillet").rglob("*")) if path.suffix in (".py", ".cpp") or path.name == "py.typed"}


def contents_of_wheel(staged):
    """Returns {place in the wheel `skillet`: file}."""
    files = {str(place): path for place, path in python_files().items()}
    files["skillet/include/skillet/skillet.h"] = SOURCE / "include/skillet/skillet.h"
    files["skillet/bin/skillet"] = staged / "usr/bin/skillet"
    (library,) = staged.rglob("libskillet_c.so.0")
    files["skillet/lib/libskillet_c.so.0"] = library
    for name in LIBRARIES:
        files[f"skillet/lib/skillet/{name}"] = staged / "usr/lib/skillet" / name
    return files


# Additional requirements of parts of the Python package.
EXTRAS = {"numpy": ["numpy"], "conformance": ["numpy", "ai-edge-litert"], "frigate": ["numpy"], "mlserver": ["mlserver"], "ray": ["ray[data]"],
          "executorch": ["executorch>=1.5", "torch", "torchao"], "quantize": ["ai-edge-quantizer", "onnxruntime", "onnx"]}

# Wheels of one plug-in each, for hosts that load it themselves: the package in wheels/, and the libraries beside its only source.
# Wheels cannot contain links, so LiteRT's file is in the wheel under both names.
PLUGINS = {"onnxruntime-ep-skillet": ["libskillet_onnxruntime.so"],
           "ai-edge-litert-skillet": ["libLiteRtCompilerPlugin_Skillet.so", "libLiteRtDispatch_Skillet.so"]}


def described_skillet():
    """Returns the part of METADATA after the summary, and other files of .dist-info."""
    extras = "".join(f"Provides-Extra: {name}\n" + "".join(f"Requires-Dist: {one}; extra == '{name}'\n" for one in packages)
                     for name, packages in EXTRAS.items())
    return extras, (HERE / "wheel.md").read_text(), {"entry_points.txt": "[console_scripts]\nskillet = skillet.__main__:main\n"}


def wheel(name, arch, number, out, files, about):
    """Writes a wheel. FILES: as contents_of_wheel() returns them; ABOUT: extras, description, other files of .dist-info."""
    major, minor = needed_glibc(files.values())
    tag = f"py3-none-manylinux_{major}_{minor}_{TRIPLETS[arch].split('-')[0]}"
    extras, description, more = about
    more = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\nSummary: Runs quantized networks on NPUs, real or simulated\n"
                    f"License: MIT\nRequires-Python: >=3.9\n{extras}Description-Content-Type: text/markdown\n\n{description}",
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: skillet packaging\nRoot-Is-Purelib: false\nTag: {tag}\n",
        "LICENSE": (SOURCE / "LICENSE").read_text(),
        "copyright": (HERE / "debian/copyright").read_text(),
        **more,
    }
    stem = f"{name.replace('-', '_')}-{number}"
    info = f"{stem}.dist-info"
    data = {place: file.read_bytes() for place, file in files.items()}
    data.update({f"{info}/{place}": text.encode() for place, text in more.items()})
    record = ""
    for place, content in data.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{place},sha256={digest},{len(content)}\n"
    data[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    file = out / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, content in data.items():
            entry = zipfile.ZipInfo(place)  # dated 1980, so that the bytes are the same each time
            mode = EXECUTABLE if content.startswith(b"\x7fELF") else PLAIN
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return file


def wheels(arch, number, staged, out):
    made = [wheel("skillet", arch, number, out, contents_of_wheel(staged), described_skillet())]
    for name, libraries in PLUGINS.items():
        package = name.replace("-", "_")
        source = HERE / "wheels" / package / "__init__.py"
        files = {f"{package}/{library}": staged / "usr/lib/skillet" / library for library in libraries}
        description = ast.get_docstring(ast.parse(source.read_text()))
        made.append(wheel(name, arch, number, out, {f"{package}/__init__.py": source, **files}, ("", description, {})))
    return made


def tar(arch, number, staged, pages, out):
    """Writes an archive to be unpacked into /usr/local, or anywhere."""
    name = f"skillet-{number}-{TRIPLETS[arch].split('-')[0]}-linux"
    file = out / f"{name}.tar.xz"
    usr = staged / "usr"
    files = {path.relative_to(usr): path for path in sorted(usr.rglob("*")) if path.is_symlink() or path.is_file()}
    files.update({Path("share/man/man1") / path.name: path for path in sorted(pages.glob("*.1"))})
    files[Path("share/bash-completion/completions/skillet")] = pages / "skillet.bash"

    def plain(entry):
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = "root"
        entry.mode = EXECUTABLE if entry.issym() or entry.mode & 0o100 else PLAIN
        return entry

    with tarfile.open(file, "w:xz") as archive:
        for where, path in files.items():
            plain_where = Path(str(where).replace(f"lib/{TRIPLETS[arch]}/", "lib/"))
            archive.add(path, f"{name}/{plain_where}", recursive=False, filter=plain)
    return file


def repository(out):
    """Makes the folder a repository that apt can read from any web server.

    Unsigned: `deb [trusted=yes] https://.../ ./`; or signed: gpg --clearsign -o InRelease Release."""
    index = run("dpkg-scanpackages", "--multiversion", ".", cwd=out).encode()
    files = {"Packages": index, "Packages.gz": gzip.compress(index, mtime=0)}
    for name, content in files.items():
        (out / name).write_bytes(content)
    sums = "".join(f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n" for name, content in files.items())
    fields = {"Origin": "Skillet", "Label": "Skillet", "Suite": "stable", "Codename": "skillet", "Date": time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime()),
              "Architectures": "all " + " ".join(sorted({file.stem.split("_")[2] for file in out.glob("*.deb")} - {"all"}))}
    (out / "Release").write_text("".join(f"{key}: {value}\n" for key, value in fields.items()) + f"SHA256:\n{sums}")


def main(out, builds):
    number, work = version(), out / "work"
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*skillet*.*"):
        old.unlink()
    made = []
    for arch, build in builds.items():
        stage(arch, build, work / f"{arch}-root")
    pages = work / "pages"
    write_pages(work / f"{native()}-root/usr/bin/skillet", pages)
    for arch in builds:
        staged = work / f"{arch}-root"
        made += debs(arch, staged, pages, work / f"{arch}-debian", out)
        made += wheels(arch, number, staged, out)
        if arch != "amd64":
            made.append(tar(arch, number, staged, pages, out))
    repository(out)
    for file in made:
        print(f"{file.stat().st_size / 1e6:8.2f} MB  {file}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve(), dict(one.split("=", 1) for one in sys.argv[2:]))
