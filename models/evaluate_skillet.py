#!/usr/bin/env python3
"""Measures a digit classifier over the MNIST test set with Skillet, through its C interface. Needs only Python itself.

  python3 models/evaluate_skillet.py LIBRARY [MODEL] [--device sim:a311d] [--set build/test_set] [--limit N]

LIBRARY is the shared library of the C interface in the build folder. The set is what export_test_set.py writes.
"""

import argparse
import ctypes
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
IMAGE_BYTES = 28 * 28
CLASSES = 10


class Model:
    """A model on a device. Raises RuntimeError with the library's own text."""

    def __init__(self, library, device, path):
        self.lib = ctypes.CDLL(str(library))
        self.lib.skillet_last_error.restype = ctypes.c_char_p
        handle = ctypes.c_void_p()
        self.check(self.lib.skillet_open(device.encode(), ctypes.byref(handle)))
        self.model = ctypes.c_void_p()
        self.check(self.lib.skillet_load_file(handle, str(path).encode(), None, ctypes.byref(self.model)))
        self.lib.skillet_close(handle)
        self.output = (ctypes.c_uint8 * CLASSES)()

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.lib.skillet_last_error().decode())

    def classify(self, image):
        """Returns the class of an image of 784 bytes; the first of equal classes wins."""
        self.check(self.lib.skillet_set_input(self.model, ctypes.c_size_t(0), image, ctypes.c_size_t(len(image))))
        self.check(self.lib.skillet_run(self.model))
        self.check(self.lib.skillet_get_output(self.model, ctypes.c_size_t(0), self.output, ctypes.c_size_t(CLASSES)))
        return max(range(CLASSES), key=lambda i: (self.output[i], -i))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("model", type=Path, nargs="?", default=FOLDER / "digits.tflite")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", type=Path, default=FOLDER.parent / "build" / "test_set")
    parser.add_argument("--limit", type=int, default=10000, help="number of images")
    args = parser.parse_args()

    images = (args.set / "test_images.u8").read_bytes()
    labels = (args.set / "test_labels.u8").read_bytes()[: args.limit]
    model = Model(args.library.resolve(), args.device, args.model)
    start, right = time.monotonic(), 0
    for i, label in enumerate(labels):
        right += model.classify(images[i * IMAGE_BYTES : (i + 1) * IMAGE_BYTES]) == label
        if sys.stderr.isatty() and i % 100 == 0:
            print(f"\r{i} of {len(labels)}", end="", file=sys.stderr)
    seconds = time.monotonic() - start
    print(f"skillet {args.device}: {100 * right / len(labels):.2f} % ({right} of {len(labels)}), {seconds:.1f} s")


if __name__ == "__main__":
    main()
