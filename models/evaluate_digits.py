#!/usr/bin/env python3
"""Measures a digit classifier over the MNIST test set with the TFLite interpreter, and lists its ops.

  python3 models/evaluate_digits.py [MODEL] [--kernels reference|default] [--ops]
"""

import argparse
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from PIL import Image

import mnist

FOLDER = Path(__file__).resolve().parent
KERNELS = {"reference": OpResolverType.BUILTIN_REF, "default": OpResolverType.AUTO}


def make_interpreter(model, kernels="reference"):
    """Returns an interpreter. `model`: the bytes of the file."""
    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=KERNELS[kernels])
    interpreter.allocate_tensors()
    return interpreter


def classify(interpreter, image):
    """Runs one image, uint8 [28, 28]; returns the class and its probability. The first of equal classes wins."""
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image[np.newaxis, ..., np.newaxis])
    interpreter.invoke()
    output = interpreter.get_output_details()[0]
    stored = interpreter.get_tensor(output["index"])[0]
    return int(np.argmax(stored)), float(np.max(stored)) * output["quantization"][0]


def accuracy_percent(model, images, labels, kernels="reference"):
    """Returns the percentage of right answers. `model`: the bytes of the file."""
    interpreter = make_interpreter(model, kernels)
    right = sum(classify(interpreter, image)[0] == label for image, label in zip(images, labels))
    return 100 * right / len(images)


def print_ops(interpreter):
    """Prints each op with its tensors: name, type, shape, scale, zero point."""
    tensors = {t["index"]: t for t in interpreter.get_tensor_details()}
    for op in interpreter._get_ops_details():
        print(op["op_name"])
        for role in ("inputs", "outputs"):
            for index in op[role]:
                t = tensors[index]
                scale, zero_point = t["quantization"]
                shape = "x".join(map(str, t["shape"]))
                print(f"  {role[:-1]:6} {t['name']:20} {t['dtype'].__name__:5} {shape:12} {scale:.9g} {zero_point}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?", default=FOLDER / "digits.tflite")
    parser.add_argument("--kernels", choices=KERNELS, default="reference")
    parser.add_argument("--ops", action="store_true", help="also list the ops")
    parser.add_argument("--mnist", type=Path, default=mnist.DEFAULT_FOLDER, help="folder of the MNIST files")
    args = parser.parse_args()

    model = args.model.read_bytes()
    interpreter = make_interpreter(model, args.kernels)
    if args.ops:
        print_ops(interpreter)
    for digit in range(10):
        guess, probability = classify(interpreter, np.array(Image.open(FOLDER / "digits" / f"{digit}.png")))
        print(f"digits/{digit}.png: {guess} ({probability:.3f})")
    print(f"TFLite {args.kernels}: {accuracy_percent(model, *mnist.load('t10k', args.mnist), args.kernels):.2f} %")


if __name__ == "__main__":
    main()
