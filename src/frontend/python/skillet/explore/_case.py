"""Finds the case of skillet.conformance for an operation of a .tflite file: its kind, type, sizes, strides and padding."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

from skillet.conformance._build import ACTIVATIONS
from skillet.conformance._cases import defaults, name_of, parse
from skillet.conformance._model import OPTIONS, TYPE_CODES
from skillet.conformance._ops import BINARY, FAMILIES, UNARY
from skillet.explore._model import Table

if TYPE_CHECKING:
    Options = dict[str, int]

TYPES = {TYPE_CODES[name]: short for name, short in (("uint8", "u8"), ("int8", "i8"), ("int16", "i16"), ("float32", "f32"))}
# Operations with options for sizes: the family, the options, and which input is the image and which the weights.
WINDOWS = {3: ("conv2d", "Conv2DOptions", 0, 1), 4: ("depthwise", "DepthwiseConv2DOptions", 0, 1), 1: ("average_pool", "Pool2DOptions", 0, None),
           17: ("max_pool", "Pool2DOptions", 0, None), 67: ("transpose_conv", "TransposeConvOptions", 2, 1)}
OTHERS = {9: "fully_connected", 2: "concat"} | {code: name for name, (_, code, _) in BINARY.items()} | {one[1]: name for name, one in UNARY.items()}


class NoCase(ValueError):
    """The operation corresponds to no case. The message gives the reason."""


def options_of(operation: Table, name: str) -> Options:
    table = operation.table(4)
    fields = [one.split(":") for one in OPTIONS[name][1].split()]
    return {key: table.number(slot, "b" if kind == "b" else "i") if table else 0 for slot, (key, kind) in enumerate(fields)}


def window(code: int, operation: Table, image: list[int], weights: list[int], out: list[int]) -> dict[str, str]:
    op, name, _, _ = WINDOWS[code]
    options = options_of(operation, name)
    kernel = (weights[1], weights[2]) if weights else (options["filter_h"], options["filter_w"])
    (sh, sw), (dh, dw) = ((max(1, options.get(f"{what}_h", 1)), max(1, options.get(f"{what}_w", 1))) for what in ("stride", "dilation"))
    words = {"k": f"k{kernel[0]}x{kernel[1]}", "s": f"s{sh}" if sh == sw else f"s{sh}x{sw}", "d": f"d{dh}" if dh == dw else f"d{dh}x{dw}", "pad": ("same", "valid")[options["padding"]],
             "o": str(out[3]), "m": str(out[3] // image[3]), "act": named(ACTIVATIONS, options.get("activation", 0))}
    return {key: value for key, value in words.items() if key in FAMILIES[op].choices}


def named(numbers: dict[str, int], number: int) -> str:
    for name, one in numbers.items():
        if one == number:
            return name
    raise NoCase(f"it has the fused activation {number}")


def case_name(file: Path, number: int | None) -> str:
    """Returns the name of the case for operation NUMBER, which may be None if the model has one operation. Raises NoCase with the reason."""
    try:
        data = file.read_bytes()
        model = Table(data, struct.unpack_from("<I", data)[0])
        graph = model.tables(2)[0]
        operations, tensors = graph.tables(3), graph.tables(0)
        if number is None and len(operations) != 1:
            raise NoCase(f"it has {len(operations)} operations: --op N says which (0 to {len(operations) - 1})")
        if not 0 <= (number or 0) < len(operations):
            raise NoCase(f"there is no operation {number}: it has {len(operations)}")
        operation = operations[number or 0]
        code = model.tables(1)[operation.number(0)]
        return _named(max(code.number(0, "b"), code.number(3)), operation, tensors)
    except (IndexError, KeyError, struct.error, MemoryError):
        raise NoCase("it is no whole .tflite file") from None


def _named(code: int, operation: Table, tensors: list[Table]) -> str:
    op = WINDOWS[code][0] if code in WINDOWS else OTHERS.get(code)
    if op is None:
        raise NoCase(f"there are no cases of operation {code}: one of {', '.join(sorted({*OTHERS.values(), *(one[0] for one in WINDOWS.values())}))}")
    inputs, out = operation.numbers(1), tensors[operation.numbers(2)[0]].numbers(0)
    image = tensors[inputs[WINDOWS[code][2] if code in WINDOWS else 0]]
    kind, shape, words = TYPES.get(image.number(1, "b"), "?"), image.numbers(0), {}
    if op == "fully_connected":
        words = {"rows": str(out[0]), "c": str(tensors[inputs[1]].numbers(0)[1]), "o": str(out[-1])}
    else:
        shape = [1] * (4 - len(shape)) + shape
        words = {"size": f"{shape[1]}x{shape[2]}", "c": str(shape[3])}
    if code in WINDOWS:
        weights = tensors[inputs[1]] if WINDOWS[code][3] else None
        words |= window(code, operation, shape, weights.numbers(0) if weights else [], [1] * (4 - len(out)) + out)
        scales = weights.table(4).numbers(2, "f") if weights and weights.table(4) else []  # type: ignore[union-attr]
        words |= {"pc": "pc"} if len(scales) > 1 and "pc" in FAMILIES[op].choices and kind in ("i8", "i16") else {}
    name = name_of({"op": op, "type": kind, **defaults(op), **words})
    parse(name)  # raises BadName for an unsupported type
    return name
