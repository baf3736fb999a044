"""Model files of `skillet serve`: read once, and what a TensorFlow Lite file says of the sizes of its tensors before memory is held for them."""

from __future__ import annotations

import math
import os
import struct
from typing import TYPE_CHECKING

import skillet

if TYPE_CHECKING:
    from pathlib import Path

FRAME_BYTES_MAX = 20 << 20  # 1280 x 1280 of float32
NUMBERS_MAX = 256 << 20  # of a tensor between input and outputs
FILE_BYTES_MAX = 1 << 30  # of a model in the folder, which is read to memory

SUBGRAPHS, TENSORS, INPUTS, SHAPE = 2, 0, 1, 0  # fields of the model, of a subgraph (two), of a tensor
TENSORS_MAX, RANK_MAX = 100_000, 8


def read_model(path: Path) -> bytes:
    """Once for all sessions: the file may be replaced meanwhile."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > FILE_BYTES_MAX:
            raise skillet.Unsupported(f"{path.name}: longer than {FILE_BYTES_MAX >> 20} MiB")
        return file.read()


def check_sizes(name: str, model: bytes) -> None:
    """Before memory is held: a small file may have tensors of any size."""
    of_input, of_any = largest(model)
    if of_input > FRAME_BYTES_MAX:
        raise skillet.Unsupported(f"{name}: an input of {of_input} numbers is more than a frame may have, {FRAME_BYTES_MAX >> 20} MiB; export the network for smaller images")
    if of_any > NUMBERS_MAX:
        raise skillet.Unsupported(f"{name}: a tensor of {of_any} numbers; {NUMBERS_MAX} is the most that is taken")


def largest(model: bytes) -> tuple[int, int]:
    """How many numbers the largest input and the largest tensor have; 0 where the file is none of TensorFlow Lite, or damaged: loading it says so."""
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
    """Where it is; 0: it is not there."""
    vtable, entry = table - _number("<i", model, table), 4 + 2 * slot
    offset = _number("<H", model, vtable + entry) if entry < _number("<H", model, vtable) else 0
    return table + offset if offset else 0


def _vector(model: bytes, table: int, slot: int) -> tuple[int, int]:
    """Where its elements begin, and how many it has."""
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
