#!/usr/bin/env python3
"""Writes the MNIST test set as two raw files that any program can read.

  python3 models/export_test_set.py FOLDER

FOLDER/test_images.u8   10,000 x 28 x 28 bytes, grey levels, row by row, 0 is the background
FOLDER/test_labels.u8   10,000 bytes, 0..9
"""

import argparse
from pathlib import Path

import mnist


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mnist", type=Path, default=mnist.DEFAULT_FOLDER, help="folder of the MNIST files")
    args = parser.parse_args()

    images, labels = mnist.load("t10k", args.mnist)
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, data in (("test_images.u8", images), ("test_labels.u8", labels)):
        path = args.folder / name
        path.write_bytes(data.tobytes())
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
