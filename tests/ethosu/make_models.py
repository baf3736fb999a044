#!/usr/bin/env python3
"""Makes tests/ethosu/models anew: small networks, and what Arm's Vela compiles of them.

usage: make_models.py [VELA]     needs flatc and NumPy; without VELA also pip: Vela comes from PyPI, as requirements.txt pins it

NAME.tflite is a network of one operation (vela_ops.py), NAME.ACCELERATOR.tflite is what Vela made of it.
"""
import pathlib
import subprocess
import sys
import tempfile
import venv

import numpy as np

import vela_ops

HERE = pathlib.Path(__file__).resolve().parent
# Operation of vela_ops.py, seed, accelerator, options of Vela.
MODELS = [
    ("conv_int8", 5, "ethos-u55-32", ["--optimise", "Size"]),
    ("conv_int8", 5, "ethos-u65-512", []),
    ("conv_uint8", 3, "ethos-u55-256", []),
    ("conv_int16", 2, "ethos-u55-64", []),
    ("depthwise_int8", 1, "ethos-u55-128", []),
    ("depthwise_uint8", 2, "ethos-u65-512", ["--optimise", "Size"]),
    ("transpose_conv_int8", 0, "ethos-u65-256", []),
    ("average_pool_int8", 3, "ethos-u55-128", []),
    ("max_pool_uint8", 2, "ethos-u55-32", []),
    ("add_int8", 1, "ethos-u65-256", []),
    ("sub_int16", 2, "ethos-u55-256", []),
    ("mul_uint8", 1, "ethos-u55-64", []),
    ("tanh_int8", 1, "ethos-u55-32", []),
    ("logistic_uint8", 1, "ethos-u55-128", []),
    ("leaky_relu_int16", 1, "ethos-u65-512", []),
    ("softmax_int8", 2, "ethos-u55-256", []),
    ("mean_int8", 1, "ethos-u65-256", []),
    ("resize_bilinear_int8", 0, "ethos-u55-128", []),
    ("concatenation_int8", 1, "ethos-u55-64", []),
    ("quantize_int16", 1, "ethos-u65-256", []),
]


def install(folder):
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin/pip", "install", "-q", "--require-hashes", "-r", HERE / "requirements.txt"], check=True)
    return folder / "bin/vela"


def main():
    models = HERE / "models"
    models.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        vela = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else install(folder / "venv")
        for operation, seed, accelerator, options in MODELS:
            model = models / f"{operation}.tflite"
            model.write_bytes(vela_ops.model_bytes(vela_ops.OPS[operation](np.random.RandomState(seed))))
            subprocess.run([vela, model, "--accelerator-config", accelerator, *options, "--output-dir", folder],
                           check=True, stdout=subprocess.DEVNULL)
            (folder / f"{operation}_vela.tflite").rename(models / f"{operation}.{accelerator}.tflite")


if __name__ == "__main__":
    main()
