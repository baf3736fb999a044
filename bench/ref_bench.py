#!/usr/bin/env python3
"""Compares CPU kernels with TensorFlow Lite's, operation by operation, in one process on one thread.

usage: ref_bench.py LIBSKILLET_C [--seconds S] [--only TEXT]

Columns: CPU milliseconds of one run, the least of many alternating ones: ours, XNNPACK, TFLite's built-in kernels; and the
ratios to ours. AMX is disabled for this process (a seccomp filter), so that XNNPACK uses AVX-512 at most. Needs ai-edge-litert,
NumPy and flatc; tests/conformance/one_op.py writes the models.
"""

import argparse
import ctypes
import pathlib
import struct
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "../tests/conformance"))
from grid import Ours  # noqa: E402
from one_op import SAME, VALID, case, computed_inputs, constant, model_bytes, random_values, tensor  # noqa: E402

RANDOM = np.random.RandomState(1)


def refuse_amx():
    """Makes arch_prctl(ARCH_REQ_XCOMP_PERM) fail from here on. x86-64 only."""
    load_arch, load_number, load_first = (0x20, 0, 0, 4), (0x20, 0, 0, 0), (0x20, 0, 0, 16)
    program = [load_arch, (0x15, 0, 5, 0xC000003E), load_number, (0x15, 0, 3, 158), load_first, (0x15, 0, 1, 0x1023),
               (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    header = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(filters))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, header, 0, 0) != 0:
        print("AMX could not be refused: XNNPACK may use it")


def i8(*shape):
    return tensor(shape, "int8", 0.05, 3)


def u8(*shape):
    return tensor(shape, "uint8", 0.05, 120)


def conv(x, kernel, channels, stride=1, depthwise=False):
    batch, h, w, c = x["shape"]
    dtype = x["dtype"]
    shape = (1, kernel, kernel, c) if depthwise else (channels, kernel, kernel, c)
    channels = c if depthwise else channels
    zero, scale = (120, 0.02) if dtype == "uint8" else (0, [0.02] * channels)
    low, high = (0, 256) if dtype == "uint8" else (-127, 128)
    filters = constant(RANDOM.randint(low, high, shape), dtype, scale, zero, 3 if depthwise else 0)
    bias_scale = 0.001 if dtype == "uint8" else [0.001] * channels
    bias = constant(RANDOM.randint(-999, 999, channels), "int32", bias_scale)
    out = tensor((batch, -(-h // stride), -(-w // stride), channels), dtype, 1.5, 5)
    steps = dict(padding=SAME, stride_w=stride, stride_h=stride, dilation_w_factor=1, dilation_h_factor=1)
    if depthwise:
        return case("", ("DEPTHWISE_CONV_2D", 4), [x, filters, bias], out,
                    ("DepthwiseConv2DOptions", dict(steps, depth_multiplier=1)), 3)
    return case("", ("CONV_2D", 3), [x, filters, bias], out, ("Conv2DOptions", steps), 3)


def pool(op, x, size, stride, padding=SAME):
    batch, h, w, c = x["shape"]
    dims = [-(-n // stride) if padding == SAME else (n - size) // stride + 1 for n in (h, w)]
    options = dict(padding=padding, stride_w=stride, stride_h=stride, filter_width=size, filter_height=size)
    return case("", op, [x], dict(x, shape=[batch, *dims, c]), ("Pool2DOptions", options), 2)


def resize(op, options, x, size):
    out = dict(x, shape=[1, size, size, x["shape"][3]])
    return case("", op, [x, constant([size, size])], out, (options, dict(half_pixel_centers=True)), 3)


def unary(op, x, y=None, options=None, version=1):
    return case("", op, [x], y or x, options, version)


def operations():
    wide = tensor((1, 56, 56, 64), "int8", 0.07, -3)
    maximum, average = ("MAX_POOL_2D", 17), ("AVERAGE_POOL_2D", 1)
    bilinear, nearest = ("RESIZE_BILINEAR", 23), ("RESIZE_NEAREST_NEIGHBOR", 97)
    x = i8(1, 56, 56, 64)
    return {
        "conv 3x3 28x28x128->128": conv(i8(1, 28, 28, 128), 3, 128),
        "conv 3x3 56x56x64->64": conv(x, 3, 64),
        "conv 3x3 s2 224x224x3->32": conv(i8(1, 224, 224, 3), 3, 32, 2),
        "conv 1x1 56x56x64->128": conv(x, 1, 128),
        "conv 1x1 14x14x512->512": conv(i8(1, 14, 14, 512), 1, 512),
        "conv 1x1 7x7x320->1280": conv(i8(1, 7, 7, 320), 1, 1280),
        "u8 conv 3x3 28x28x128->128": conv(u8(1, 28, 28, 128), 3, 128),
        "u8 conv 1x1 14x14x512->512": conv(u8(1, 14, 14, 512), 1, 512),
        "u8 depthwise 3x3 112x112x32": conv(u8(1, 112, 112, 32), 3, 0, depthwise=True),
        "depthwise 3x3 112x112x32": conv(i8(1, 112, 112, 32), 3, 0, depthwise=True),
        "depthwise 3x3 14x14x512": conv(i8(1, 14, 14, 512), 3, 0, depthwise=True),
        "depthwise 3x3 s2 112x112x96": conv(i8(1, 112, 112, 96), 3, 0, 2, depthwise=True),
        "depthwise 5x5 28x28x240": conv(i8(1, 28, 28, 240), 5, 0, depthwise=True),
        "fully connected 1280->1000": case("", ("FULLY_CONNECTED", 9), [
            i8(1, 1280), constant(RANDOM.randint(-127, 128, (1000, 1280)), "int8", 0.02),
            constant(RANDOM.randint(-9, 9, 1000), "int32", 0.001)], i8(1, 1000), ("FullyConnectedOptions", {}), 4),
        "max pool 3x3 s2 112x112x64": pool(maximum, i8(1, 112, 112, 64), 3, 2),
        "max pool 5x5 20x20x256": pool(maximum, i8(1, 20, 20, 256), 5, 1),
        "average pool 7x7x1024": pool(average, i8(1, 7, 7, 1024), 7, 1, VALID),
        "average pool 2x2 56x56x64": pool(average, x, 2, 2),
        "mean 7x7x1280": case("", ("MEAN", 40), [i8(1, 7, 7, 1280), constant([1, 2])], i8(1, 1280),
                              ("ReducerOptions", {}), 2),
        "softmax 1001": unary(("SOFTMAX", 25), i8(1, 1001), tensor((1, 1001), "int8", 1 / 256, -128),
                              ("SoftmaxOptions", dict(beta=1.0)), 2),
        "softmax 8400x80": unary(("SOFTMAX", 25), i8(8400, 80), tensor((8400, 80), "int8", 1 / 256, -128),
                                 ("SoftmaxOptions", dict(beta=1.0)), 2),
        "resize bilinear 33->513x21": resize(bilinear, "ResizeBilinearOptions", i8(1, 33, 33, 21), 513),
        "resize bilinear 20->40x128": resize(bilinear, "ResizeBilinearOptions", i8(1, 20, 20, 128), 40),
        "resize nearest 20->40x128": resize(nearest, "ResizeNearestNeighborOptions", i8(1, 20, 20, 128), 40),
        "transpose NHWC->NCHW 80x80x64": case("", ("TRANSPOSE", 39), [i8(1, 80, 80, 64), constant([0, 3, 1, 2])],
                                              i8(1, 64, 80, 80), version=2),
        "quantize float 224x224x3": unary(("QUANTIZE", 114), tensor((1, 224, 224, 3), "float32"), i8(1, 224, 224, 3)),
        "dequantize 400k": unary(("DEQUANTIZE", 6), i8(1, 400000), tensor((1, 400000), "float32"), version=2),
        "add 56x56x64": case("", ("ADD", 0), [x, wide], i8(1, 56, 56, 64), ("AddOptions", {}), 2),
        "mul 56x56x64": case("", ("MUL", 18), [x, wide], i8(1, 56, 56, 64), ("MulOptions", {}), 2),
        "mul by row 56x56x64": case("", ("MUL", 18), [x, i8(1, 1, 1, 64)], i8(1, 56, 56, 64), ("MulOptions", {}), 2),
        "logistic 56x56x64": unary(("LOGISTIC", 14), x, tensor((1, 56, 56, 64), "int8", 1 / 256, -128)),
        "hard swish 56x56x64": unary(("HARD_SWISH", 117), x, wide),
        "relu 56x56x64": unary(("RELU", 19), x, wide, version=2),
        "pad 56x56x64": case("", ("PAD", 34), [x, constant([[0, 0], [1, 1], [1, 1], [0, 0]])], i8(1, 58, 58, 64),
                             version=2),
        "concat 56x56x64": case("", ("CONCATENATION", 2), [x, x], i8(1, 56, 56, 128),
                                ("ConcatenationOptions", dict(axis=3)), 2),
    }


def peer(runtime, model_file, inputs, resolver):
    interpreter = runtime.Interpreter(model_content=model_file, num_threads=1, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    for detail, data in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], data)
    return interpreter.invoke


def ours_run(ours, model_file, inputs):
    model = ctypes.c_void_p()
    size = ctypes.c_size_t
    ours.check(ours.lib.skillet_load_memory(ours.device, model_file, size(len(model_file)), None, ctypes.byref(model)))
    for k, data in enumerate(inputs):
        ours.check(ours.lib.skillet_set_input(model, size(k), data.tobytes(), size(data.nbytes)))
    return lambda: ours.check(ours.lib.skillet_run(model))


def least_ms(runs, seconds):
    """Returns the least CPU time of a run of each, in alternating order."""
    best = [float("inf")] * len(runs)
    for run in runs:
        run()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for k, run in enumerate(runs):
            start = time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID)
            run()
            best[k] = min(best[k], (time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID) - start) / 1e6)
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each operation")
    parser.add_argument("--only", default="", help="operations with this text in their name")
    args = parser.parse_args()
    refuse_amx()
    import ai_edge_litert.interpreter as runtime
    resolvers, ours, ratios = runtime.OpResolverType, Ours(args.library), []
    print("| operation | ours | XNNPACK | built-in | ours / XNNPACK | ours / built-in |\n| --- | --- | --- | --- | --- | --- |")
    for name, c in operations().items():
        if args.only not in name:
            continue
        model_file, inputs = model_bytes(c), [random_values(t, RANDOM) for t in computed_inputs(c)]
        runs = [ours_run(ours, model_file, inputs), peer(runtime, model_file, inputs, resolvers.BUILTIN),
                peer(runtime, model_file, inputs, resolvers.BUILTIN_WITHOUT_DEFAULT_DELEGATES)]
        a, b, d = least_ms(runs, args.seconds)
        ratios.append(a / b)
        print(f"| {name} | {a:.3f} | {b:.3f} | {d:.3f} | {a / b:.2f} | {a / d:.2f} |", flush=True)
    print(f"\nours / XNNPACK: geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
