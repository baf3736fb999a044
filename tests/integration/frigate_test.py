#!/usr/bin/env python3
"""The calls of Frigate's teflon_tfl detector, on an SSD model made here: equal to TensorFlow Lite without the delegate.

usage: frigate_test.py DELEGATE SKILLET [--build DIR]

On sim:a311d and sim:rk3588 by SKILLET_DEVICE, and with no options at all on the virtual nodes of both. Exit code 77: nothing
could be tested.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import environment

ROOT = Path(__file__).resolve().parents[2]
CHIPS = ["a311d", "rk3588"]
# All convolutions of the model run on the NPU: 6 in the backbone and 4 in the heads.
CLAIMED_MIN = 10

# The steps of Frigate's plug-in: load the delegate from a path, without options; the model; the details; then for each
# picture set_tensor, invoke, get_tensor of boxes, classes, scores and count, cut at a score of 0.4 and at 20 rows.
DETECTOR = r"""
import json, sys
import numpy as np
try:
    from tflite_runtime.interpreter import Interpreter, load_delegate
except ModuleNotFoundError:
    from ai_edge_litert.interpreter import Interpreter, load_delegate
library, model, picture = sys.argv[1:]
delegates = [load_delegate(library, {})] if library else []
interpreter = Interpreter(model_path=model, experimental_delegates=delegates)
interpreter.allocate_tensors()
inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
pixels = np.load(picture)
answers = []
for image in pixels:
    interpreter.set_tensor(inputs[0]["index"], image[None])
    interpreter.invoke()
    boxes, classes, scores, count = (interpreter.get_tensor(outputs[i]["index"])[0] for i in range(4))
    rows = np.zeros((20, 6), np.float32)
    for i in range(int(count)):
        if scores[i] < 0.4 or i == 20:
            break
        rows[i] = [classes[i], float(scores[i]), boxes[i][0], boxes[i][1], boxes[i][2], boxes[i][3]]
    answers.append(rows.tolist())
print(json.dumps(answers))
"""
# The detector's pictures, scaled to the model's size: the squares, and the squares moved.
PICTURES = r"""
import sys
import numpy as np
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from cases import read_bmp
pixels = read_bmp(Path(sys.argv[1]))
places = np.arange(96) * len(pixels) // 96
one = pixels[places][:, places]
np.save(sys.argv[2], np.stack([one, one[::-1], one[:, ::-1], np.full_like(one, 100)]).astype(np.uint8))
"""


class Test:
    def __init__(self, python, folder, args):
        self.python, self.args = str(python), args
        self.library, self.model, self.pictures = str(args.delegate), str(folder / "ssd.tflite"), str(folder / "pictures.npy")
        subprocess.run([sys.executable, str(ROOT / "tests/models/ssd_model.py"), self.model, str(folder / "p.bmp")], check=True)
        subprocess.run([self.python, "-c", PICTURES, str(folder / "p.bmp"), self.pictures, str(ROOT / "tests/integration")], check=True)
        self.failed = 0

    def detect(self, library, wrapper=(), **variables):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SKILLET_")}
        done = subprocess.run([*wrapper, self.python, "-c", DETECTOR, library, self.model, self.pictures], env={**kept, **variables},
                              capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            return None, done.stderr
        return json.loads(done.stdout.splitlines()[-1]), done.stderr

    def check(self, name, expected, wrapper=(), **variables):
        got, said = self.detect(self.library, wrapper, **variables)
        claimed = re.findall(r"(\d+) of \d+ ops claimed", said)
        problem = ("it fails: " + said[-400:] if got is None else
                   f"claims {claimed}, not {CLAIMED_MIN} operations" if not claimed or int(claimed[-1]) < CLAIMED_MIN else
                   "other boxes than TensorFlow Lite" if not self.same(got, expected) else "")
        print(f"{name:<16} {claimed[-1] if claimed else '-':>3} operations on the NPU  {problem or 'equal to TensorFlow Lite'}")
        self.failed += bool(problem)

    @staticmethod
    def same(got, expected):
        """Returns whether classes and order are equal, with small differences of scores and boxes.
        A step of them is 1/256 or 0.05/10 of an anchor."""
        for ours, theirs in zip(got, expected):
            for a, b in zip(ours, theirs):
                if a[0] != b[0] or abs(a[1] - b[1]) > 2 / 256 or max(abs(x - y) for x, y in zip(a[2:], b[2:])) > 0.005:
                    return False
        return len(got) == len(expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("delegate", type=Path)
    parser.add_argument("skillet", type=Path)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    args = parser.parse_args()
    python = environment.python_with_runtimes(args.build / "venv")
    if python is None:
        return 77
    with tempfile.TemporaryDirectory() as folder:
        test = Test(python, Path(folder), args)
        expected, said = test.detect("")
        assert expected is not None, said
        found = [[row for row in rows if row[1] > 0] for rows in expected]
        assert [len(rows) for rows in found] == [4, 4, 4, 0], found
        assert sorted(row[0] for row in found[0]) == [0, 1, 1, 2], found[0]
        for chip in CHIPS:
            # The network is small: the RK3588's CPU is predicted to be faster.
            test.check(f"sim:{chip}", expected, SKILLET_DEVICE=f"sim:{chip}", SKILLET_PARTITION="all")
            test.check(f"virtual {chip}", expected, [str(args.skillet), "virtual", "--chip", chip, "--"], SKILLET_PARTITION="all")
        # A missing device is an error if the NPU is required. Frigate logs it.
        got, said = test.detect(test.library, SKILLET_REQUIRE_NPU="1")
        if got is not None or "no NPU" not in said:
            print("SKILLET_REQUIRE_NPU=1 without an NPU is no error: " + said[-300:])
            test.failed += 1
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
