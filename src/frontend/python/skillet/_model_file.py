"""Reads model files for `skillet serve`, and checks the sizes of tensors in TensorFlow Lite files before memory is allocated for them."""

from __future__ import annotations

import math
import os
import struct
from typing import TYPE_CHECKING

import skillet

if TYPE_CHECKING:
    from pathlib import Path

FRAME_BYTES_MAX = 20 << 20  # 1280 x 1280 of float32
NUMBERS_MAX = 256 << 20  # in a tensor between inputs and outputs
FILE_BYTES_MAX = 1 << 30  # of a model file in the folder, which is read into memory

SUBGRAPHS, TENSORS, INPUTS, SHAPE = 2, 0, 1, 0  # slots in the tables of the model, of a subgraph (two) and of a tensor
TENSORS_MAX, RANK_MAX = 100_000, 8


def read_model(path: Path) -> bytes:
    """Reads the file once for all sessions: it may be replaced meanwhile. Raises Unsupported if it is too large."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > FILE_BYTES_MAX:
            raise skillet.Unsupported(f"{path.name}: longer than {FILE_BYTES_MAX >> 20} MiB")
        return file.read()


def check_sizes(name: str, model: bytes) -> None:
    """Raises Unsupported if a tensor is too large. Called before memory is allocated: a small file may declare tensors of any size."""
    of_input, of_any = largest(model)
    if of_input > FRAME_BYTES_MAX:
        raise skillet.Unsupported(f"{name}: an input of {of_input} numbers is more than a frame may have, {FRAME_BYTES_MAX >> 20} MiB; export the network for smaller images")
    if of_any > NUMBERS_MAX:
        raise skillet.Unsupported(f"{name}: a tensor of {of_any} numbers; {NUMBERS_MAX} is the most that is taken")


def largest(model: bytes) -> tuple[int, int]:
    """Returns the number of elements of the largest input and of the largest tensor.

    Returns 0, 0 for a damaged file and for other formats: loading the model reports the error."""
    if model[4:8] != b"TFL3":
        return 0, 0
    try:
        inputs = tensors = 0
        for graph in _tables(model, _number("<I", model, 0), SUBGRAPHS):
            sizes = [_size(model, one) for one in _tables(model, graph, TENSORS)]
            start, count = _vector(model, graph, INPUTS)
            of_inputs = [sizes[_number("<I", model, start + 4 * i)] for i in range(min(count, len(sizes)))]
            inputs, tensors = max([inputs, *of_inputs]), max([tensors, *sizes])
        return inputs, tensors
    except (struct.error, IndexError, ValueError):
        return 0, 0


def _number(kind: str, model: bytes, at: int) -> int:
    return int(struct.unpack_from(kind, model, at)[0])


def _field(model: bytes, table: int, slot: int) -> int:
    """Returns the position of a table's field, or 0 if it is absent."""
    vtable, entry = table - _number("<i", model, table), 4 + 2 * slot
    offset = _number("<H", model, vtable + entry) if entry < _number("<H", model, vtable) else 0
    return table + offset if offset else 0


def _vector(model: bytes, table: int, slot: int) -> tuple[int, int]:
    """Returns the position of a vector's first element, and the number of its elements."""
    place = _field(model, table, slot)
    if not place:
        return 0, 0
    start = place + _number("<I", model, place)
    return start + 4, _number("<I", model, start)


def _tables(model: bytes, table: int, slot: int) -> list[int]:
    start, count = _vector(model, table, slot)
    if count > TENSORS_MAX:
        raise ValueError
    places = [start + 4 * i for i in range(count)]
    return [place + _number("<I", model, place) for place in places]


def _size(model: bytes, tensor: int) -> int:
    start, rank = _vector(model, tensor, SHAPE)
    if rank > RANK_MAX:
        raise ValueError
    return math.prod(max(_number("<i", model, start + 4 * i), 1) for i in range(rank))
