"""Operations that move values or resize, and chains of several operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skillet.conformance._build import Build, pair
from skillet.conformance._ops import CHANNELS, FEW_CHANNELS, SMALL_SIZES, ZEROS, conv, dense, depthwise, family, pool, unary

if TYPE_CHECKING:
    from skillet.conformance._model import Tensor

MARGINS = {"1111": [(1, 1), (1, 1)], "1010": [(1, 0), (1, 0)], "0101": [(0, 1), (0, 1)], "2010": [(2, 0), (1, 0)], "0300": [(0, 3), (0, 0)]}


def moved(b: Build, name: str, code: int, version: int, inputs: list[int], *shapes: tuple[int, ...] | list[int],
          options: tuple[str, dict[str, object]] | None = None, like: int | None = None) -> int:
    """Adds an operation whose outputs have the quantization of tensor LIKE, or else of the first computed input."""
    like = like if like is not None else next(one for one in inputs if b.graph.tensors[one].data is None)
    outs: list[Tensor] = [b.like(like, shape) for shape in shapes]
    return b.graph.operation(name, code, version, inputs, *outs, options=options)


@family("pad padv2 mirror_pad", grid=200, size=SMALL_SIZES, c=FEW_CHANNELS, margins=" ".join(MARGINS), channels="0 1", zp=ZEROS, b="1 2")
def make_pad(b: Build) -> None:
    x = b.input()
    margins = [(0, 0), *MARGINS[b["margins"]], (0, b.number("channels"))]
    if b["op"] == "mirror_pad":
        margins = [tuple(min(one, size - 1) for one in pads) for pads, size in zip(margins, b.shape)]  # type: ignore[misc]
    shape = [size + sum(pads) for size, pads in zip(b.shape, margins)]
    inputs = [x, b.graph.constant(margins)]
    if b["op"] == "padv2":
        value = b.like(x, (1,))
        value.data = b.values((1,), value.dtype)
        inputs.append(b.graph.add(value))
    op, code = {"pad": ("PAD", 34), "padv2": ("PADV2", 60), "mirror_pad": ("MIRROR_PAD", 100)}[b["op"]]
    b.graph.outputs = [moved(b, op, code, 2, inputs, shape, options=("MirrorPadOptions", {"mode": 0}) if code == 100 else None)]


@family("concat", grid=500, size=SMALL_SIZES, c=CHANNELS, o=CHANNELS, axis="3 1 2", parts="2 3 4", zp=ZEROS, b="1 2", scales="same others")
def make_concat(b: Build) -> None:
    axis, x = b.number("axis"), b.input()
    shapes = [list(b.shape) for _ in range(b.number("parts"))]
    for at, shape in enumerate(shapes[1:], 1):
        shape[axis] = b.number("o") if axis == 3 else max(1, shape[axis] - at % 2)
    parts = [x] + [b.graph.input(b.like(x, shape) if b["scales"] == "same" else b.tensor(shape)) for shape in shapes[1:]]
    out = list(b.shape)
    out[axis] = sum(shape[axis] for shape in shapes)
    b.graph.outputs = [moved(b, "CONCATENATION", 2, 2, parts, out, options=("ConcatenationOptions", {"axis": axis}))]


@family("split", grid=250, size=SMALL_SIZES, c=FEW_CHANNELS, axis="3 1 2", parts="2 3 4", zp=ZEROS)
def make_split(b: Build) -> None:
    axis, parts, shape = b.number("axis"), b.number("parts"), list(b.shape)
    shape[axis] *= parts
    x = b.input(shape)
    first = moved(b, "SPLIT", 49, 2, [b.graph.constant(axis), x], *[b.shape] * parts, options=("SplitOptions", {"num_splits": parts}))
    b.graph.outputs = list(range(first, first + parts))


@family("reshape", grid=150, size=SMALL_SIZES, c=FEW_CHANNELS, to="flat rows swapped", zp=ZEROS)
def make_reshape(b: Build) -> None:
    batch, height, width, channels = b.shape
    shape = {"flat": [batch, height * width * channels], "rows": [height * width, channels]}.get(b["to"], [batch, width, height, channels])
    x = b.input()
    b.graph.outputs = [moved(b, "RESHAPE", 22, 1, [x, b.graph.constant(shape)], shape, options=("ReshapeOptions", {"new_shape": shape}))]


@family("transpose", grid=200, size=SMALL_SIZES, c=FEW_CHANNELS, order="0213 0132 0231 0312 0321", zp=ZEROS)
def make_transpose(b: Build) -> None:
    order = [int(one) for one in b["order"]]
    x = b.input()
    b.graph.outputs = [moved(b, "TRANSPOSE", 39, 2, [x, b.graph.constant(order)], [b.shape[at] for at in order])]


@family("slice strided_slice", grid=200, size=SMALL_SIZES, c=FEW_CHANNELS, cut="rows columns channels all", step="1 2", zp=ZEROS)
def make_slice(b: Build) -> None:
    axes = {"rows": [1], "columns": [2], "channels": [3]}.get(b["cut"], [1, 2, 3])
    begin = [min(1, size - 1) if axis in axes else 0 for axis, size in enumerate(b.shape)]
    end = [max(first + 1, size - size // 4) if axis in axes else size for axis, (first, size) in enumerate(zip(begin, b.shape))]
    x = b.input()
    if b["op"] == "slice":
        size = [last - first for first, last in zip(begin, end)]
        b.graph.outputs = [moved(b, "SLICE", 65, 2, [x, b.graph.constant(begin), b.graph.constant(size)], size)]
        return
    step = [b.number("step") if axis in axes else 1 for axis in range(4)]
    size = [-(-(last - first) // by) for first, last, by in zip(begin, end, step)]
    operands = [x, *(b.graph.constant(one) for one in (begin, end, step))]
    b.graph.outputs = [moved(b, "STRIDED_SLICE", 45, 2, operands, size, options=("StridedSliceOptions", {}))]


@family("pack", grid=80, size=SMALL_SIZES, c=FEW_CHANNELS, axis="1 0 3", parts="2 3")
def make_pack(b: Build) -> None:
    parts, axis = b.number("parts"), b.number("axis")
    x = b.input(b.shape[1:])
    out = list(b.shape[1:])
    out.insert(axis, parts)
    inputs = [x] + [b.graph.input(b.like(x)) for _ in range(parts - 1)]
    b.graph.outputs = [moved(b, "PACK", 83, 2, inputs, out, options=("PackOptions", {"values_count": parts, "axis": axis}))]


@family("unpack", grid=60, size=SMALL_SIZES, c=FEW_CHANNELS, axis="1 0 3", parts="2 3")
def make_unpack(b: Build) -> None:
    parts, axis, shape = b.number("parts"), b.number("axis"), list(b.shape[1:])
    shape.insert(axis, parts)
    first = moved(b, "UNPACK", 88, 2, [b.input(shape)], *[b.shape[1:]] * parts, options=("UnpackOptions", {"num": parts, "axis": axis}))
    b.graph.outputs = list(range(first, first + parts))


@family("squeeze expand_dims", grid=30, size=SMALL_SIZES, c=FEW_CHANNELS)
def make_rank(b: Build) -> None:
    x = b.input()
    if b["op"] == "squeeze":
        b.graph.outputs = [moved(b, "SQUEEZE", 43, 1, [x], b.shape[1:], options=("SqueezeOptions", {"squeeze_dims": [0]}))]
    else:
        b.graph.outputs = [moved(b, "EXPAND_DIMS", 70, 1, [x, b.graph.constant(1)], [1, 1, *b.shape[1:]])]


@family("gather", grid=100, size=SMALL_SIZES, c=FEW_CHANNELS, axis="3 1 2")
def make_gather(b: Build) -> None:
    axis, x = b.number("axis"), b.input()
    picked = b.random.randint(0, b.shape[axis], 5)
    shape = [5 if at == axis else size for at, size in enumerate(b.shape)]
    b.graph.outputs = [moved(b, "GATHER", 36, 2, [x, b.graph.constant(picked)], shape, options=("GatherOptions", {"axis": axis}))]


@family("tile", grid=60, size=SMALL_SIZES, c=FEW_CHANNELS, by="1221 1112 1211")
def make_tile(b: Build) -> None:
    by, x = [int(one) for one in b["by"]], b.input()
    b.graph.outputs = [moved(b, "TILE", 69, 2, [x, b.graph.constant(by)], [size * one for size, one in zip(b.shape, by)])]


@family("resize_bilinear resize_nearest", grid=500, size=SMALL_SIZES, c=FEW_CHANNELS, to="x2 x3 x4 half 7x5 13x20", pixels="plain corners centers", zp=ZEROS, b="1 2")
def make_resize(b: Build) -> None:
    height, width = pair(b["size"])
    by = {"x2": (height * 2, width * 2), "x3": (height * 3, width * 3), "x4": (height * 4, width * 4),
          "half": (max(1, height // 2), max(1, width // 2))}
    size = by.get(b["to"]) or pair(b["to"])
    op, code, options = {"resize_bilinear": ("RESIZE_BILINEAR", 23, "ResizeBilinearOptions"),
                         "resize_nearest": ("RESIZE_NEAREST_NEIGHBOR", 97, "ResizeNearestNeighborOptions")}[b["op"]]
    flags = {"align_corners": int(b["pixels"] == "corners"), "half_pixel_centers": int(b["pixels"] == "centers")}
    x = b.input()
    b.graph.outputs = [moved(b, op, code, 3, [x, b.graph.constant(size)], (b.shape[0], *size, b.shape[3]), options=(options, dict(flags)))]


@family("space_to_depth depth_to_space", grid=150, size=SMALL_SIZES, c=FEW_CHANNELS, block="2 3 4", zp=ZEROS)
def make_blocks(b: Build) -> None:
    block, (batch, height, width, channels) = b.number("block"), b.shape
    small, large = (batch, height, width, channels * block * block), (batch, height * block, width * block, channels)
    if b["op"] == "space_to_depth":
        b.graph.outputs = [moved(b, "SPACE_TO_DEPTH", 26, 2, [b.input(large)], small, options=("SpaceToDepthOptions", {"block_size": block}))]
    else:
        b.graph.outputs = [moved(b, "DEPTH_TO_SPACE", 5, 1, [b.input(small)], large, options=("DepthToSpaceOptions", {"block_size": block}))]


@family("space_to_batch batch_to_space", grid=100, size=SMALL_SIZES, c=FEW_CHANNELS, block="2 3", zp=ZEROS)
def make_batches(b: Build) -> None:
    block, (_, height, width, channels) = b.number("block"), b.shape
    many, one = (block * block, height, width, channels), (1, height * block, width * block, channels)
    constants = [b.graph.constant([block, block]), b.graph.constant([[0, 0], [0, 0]])]
    if b["op"] == "space_to_batch":
        b.graph.outputs = [moved(b, "SPACE_TO_BATCH_ND", 38, 2, [b.input(one), *constants], many)]
    else:
        b.graph.outputs = [moved(b, "BATCH_TO_SPACE_ND", 37, 2, [b.input(many), *constants], one)]


# ---- chains --------------------------------------------------------------------------------------------------

def step(b: Build, name: str, x: int, first: int) -> int:
    """Adds one operation to a chain, after tensor X. FIRST is the input of the chain."""
    batch, height, width, channels = b.shape_of(x)
    if name in ("conv1", "conv3", "conv3s2"):
        return conv(b, x, channels, "k1x1" if name == "conv1" else "k3x3", "s2" if name == "conv3s2" else "s1", "d1", "same")
    if name in ("dw3", "dw3s2"):
        return depthwise(b, x, 1, "k3x3", "s2" if name == "dw3s2" else "s1", "d1", "same")
    if name in ("maxpool", "avgpool"):
        return pool(b, x, {"maxpool": "max_pool", "avgpool": "average_pool"}[name], "k2x2", "s2", "same")
    if name == "add":
        other = first if b.shape_of(first) == b.shape_of(x) else b.graph.input(b.tensor(b.shape_of(x)))
        return b.graph.operation("ADD", 0, 2, [x, other], b.tensor(b.shape_of(x), float(b.graph.tensors[x].scale or 1) * 1.5),  # type: ignore[arg-type]
                                 options=("AddOptions", {"activation": 0}))
    if name == "concat":
        return moved(b, "CONCATENATION", 2, 2, [x, x], (batch, height, width, 2 * channels), options=("ConcatenationOptions", {"axis": 3}))
    if name == "pad":
        return moved(b, "PAD", 34, 2, [x, b.graph.constant([(0, 0), (1, 1), (1, 1), (0, 0)])], (batch, height + 2, width + 2, channels))
    if name == "up":
        return moved(b, "RESIZE_NEAREST_NEIGHBOR", 97, 3, [x, b.graph.constant([2 * height, 2 * width])], (batch, 2 * height, 2 * width, channels),
                     options=("ResizeNearestNeighborOptions", {"align_corners": 0, "half_pixel_centers": 0}))
    if name == "fc":
        return dense(b, x, batch * height * width, channels, channels)
    return unary(b, name, x, b.like(x))  # with the same scale: a difference of one step stays about one step


STEPS = "conv3 conv1 conv3s2 dw3 dw3s2 maxpool avgpool add concat pad up relu6 hard_swish".split()


def chains() -> list[str]:
    """Returns all pairs, and triples in which any two steps are neighbours somewhere.
    Among the first pairs, each step is first once and last once."""
    count = len(STEPS)
    pairs = [f"{STEPS[i]}+{STEPS[(i + j) % count]}" for j in (5, *range(count)) for i in range(count)]
    triples = [f"{STEPS[i]}+{STEPS[(i * 3 + j * 5) % count]}+{STEPS[j]}" for i in range(count) for j in range(count)]
    return list(dict.fromkeys(["conv3+add", *pairs, *triples]))


@family("net", size="16x16 7x9 14x14 15x17 28x28", c="8 3 16 17 33", ops="conv3+dw3+conv1+add")
@family("chain", grid=1500, size="8x8 4x4 7x9 14x14 15x17", c="8 3 16 17 33", ops=" ".join(chains()), out="last all")
def make_chain(b: Build) -> None:
    first = at = b.input()
    for name in b["ops"].split("+"):
        at = step(b, name, at, first)
        b.graph.outputs.append(at)
    if b.params.get("out") != "all":
        del b.graph.outputs[:-1]


# Excludes models for which the runtime has no kernel, or whose result is not defined.
def is_possible(params: dict[str, str]) -> bool:
    op, kind = params["op"], params["type"]
    windows = {key: pair(params[key]) for key in ("size", "k", "s", "d") if key in params}
    if op in ("conv2d", "depthwise", "average_pool", "max_pool") and params["pad"] == "valid":
        reach = [(k - 1) * d + 1 for k, d in zip(windows["k"], windows.get("d", (1, 1)))]
        if any(size < need for size, need in zip(windows["size"], reach)):
            return False
    if windows.get("d", (1, 1)) != (1, 1) and (windows["s"] != (1, 1) or windows["k"] == (1, 1)):
        return False
    if op == "depthwise" and windows["s"][0] != windows["s"][1]:
        return False
    if params.get("scales") == "others" and kind != "u8":
        return False
    if params.get("pc") == "pc" and kind not in ("i8", "i16"):
        return False
    if params.get("pixels") in ("corners", "centers") and op == "resize_nearest" and params["to"] == "half":
        return False
    return work(params) <= MOST_WORK


MOST_WORK = 1e7  # multiply-accumulates: a simulated chip computes them in a fraction of a second


def work(params: dict[str, str]) -> float:
    """Returns an upper bound of the number of multiply-accumulates, or of values."""
    height, width = pair(params.get("size", "1x1"))
    kernel = pair(params.get("k", "k1x1"))
    out = int(params.get("o", params.get("m", "1"))) if params["op"] not in ("concat",) else 4
    if params["op"] in ("chain", "net"):
        out = int(params["c"]) * 40
    values = height * width * int(params.get("c", "1")) * int(params.get("rows", "1")) * int(params.get("block", "1")) ** 2
    return float(np.prod(kernel)) * values * out
