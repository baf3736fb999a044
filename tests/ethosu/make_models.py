#!/usr/bin/env python3
"""Makes tests/ethosu/models anew: small networks, and what Arm's Vela compiles from them.

usage: make_models.py [VELA]     needs flatc and NumPy; without VELA also pip: Vela comes from PyPI, as requirements.txt pins it

NAME.tflite is a network of one operation (vela_ops.py), NAME.ACCELERATOR.tflite is Vela's output for it. "parts" is a network that Vela
compiles in parts, with operations between them that it leaves to the CPU.
"""
import pathlib
import subprocess
import sys
import tempfile
import venv

import numpy as np

import vela_ops

HERE = pathlib.Path(__file__).resolve().parent
LEGACY = "--debug-force-legacy-core"
# Operation of vela_ops.py, seed, accelerator, options of Vela.
MODELS = [
    ("conv_int8", 5, "ethos-u55-32", ["--optimise", "Size"]),
    ("conv_int8", 5, "ethos-u65-512", []),
    ("conv_uint8", 3, "ethos-u55-256", []),
    ("conv_int16", 2, "ethos-u55-64", []),
    ("depthwise_int8", 1, "ethos-u55-128", []),
    ("depthwise_uint8", 2, "ethos-u65-512", ["--optimise", "Size"]),
    ("transpose_conv_int8", 28, "ethos-u65-256", []),
    ("transpose_conv_int8", 28, "ethos-u65-512", []),  # one channel: the second core has no weights
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
    ("conv_int8", 5, "ethos-u85-256", []),
    ("conv_uint8", 3, "ethos-u85-2048", []),  # four streams of weights
    ("conv_int16", 2, "ethos-u85-512", []),
    ("depthwise_int8", 1, "ethos-u85-512", []),
    ("transpose_conv_int8", 28, "ethos-u85-128", []),
    ("average_pool_int8", 3, "ethos-u85-128", []),
    ("add_int8", 1, "ethos-u85-1024", []),
    ("tanh_int8", 1, "ethos-u85-256", []),
    ("leaky_relu_int16", 1, "ethos-u85-1024", []),
    ("mean_int8", 1, "ethos-u85-256", []),  # values that are chained
    ("softmax_int8", 2, "ethos-u85-256", []),
    ("arg_max_int8", 1, "ethos-u85-128", []),
    # From Vela before version 5: pools have scales of channels, words a zero point.
    ("max_pool_int16", 4, "ethos-u65-512", [LEGACY]),
    ("mean_uint8", 0, "ethos-u65-256", [LEGACY]),
    ("softmax_uint8", 4, "ethos-u65-256", [LEGACY]),
    ("parts_int8", 1, "ethos-u65-256", []),
    ("parts_int8", 1, "ethos-u55-128", []),  # without separate fast memory
]


def parts_network():
    """max_pool -> first -> L2_NORMALIZATION -> ADD of both -> L2_NORMALIZATION -> ADD of that and first, which stays alive until then."""
    buffers, tensors = [{}], []

    def add(shape, scale, zero):
        tensors.append(vela_ops.tensor_json(vela_ops.tensor(shape, "int8", scale, zero), f"t{len(tensors)}", buffers))
        return len(tensors) - 1
    shape = [1, 6, 9, 13]
    given, first, unit, both, unit2, out = (add(shape, 0.11, 3), add(shape, 0.11, 3), add(shape, 1 / 128, 0), add(shape, 0.1, -5),
                                            add(shape, 1 / 128, 0), add(shape, 0.12, 7))
    pool = dict(padding=vela_ops.SAME, stride_w=1, stride_h=1, filter_width=2, filter_height=3)
    rows = [(0, [given], [first], ("Pool2DOptions", pool)), (1, [first], [unit], None), (2, [first, unit], [both], ("AddOptions", {})),
            (1, [both], [unit2], None), (2, [first, unit2], [out], ("AddOptions", {}))]
    operators = [dict(opcode_index=code, inputs=inputs, outputs=outputs, **(dict(builtin_options_type=options[0], builtin_options=options[1])
                                                                          if options else {})) for code, inputs, outputs, options in rows]
    codes = [dict(deprecated_builtin_code=code, builtin_code=code, version=version) for code, version in ((17, 2), (11, 2), (0, 2))]
    return vela_ops.file_bytes(dict(version=3, operator_codes=codes, buffers=buffers, subgraphs=[
        dict(name="main", tensors=tensors, inputs=[given], outputs=[out], operators=operators)]))


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
            random = np.random.RandomState(seed)
            model.write_bytes(parts_network() if operation == "parts_int8" else vela_ops.model_bytes(vela_ops.OPS[operation](random)))
            subprocess.run([vela, model, "--accelerator-config", accelerator, *options, "--output-dir", folder],
                           check=True, stdout=subprocess.DEVNULL)
            (folder / f"{operation}_vela.tflite").rename(models / f"{operation}.{accelerator}.tflite")


if __name__ == "__main__":
    main()
