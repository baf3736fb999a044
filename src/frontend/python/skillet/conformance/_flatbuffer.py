"""Writes FlatBuffers from dictionaries, children after their parents. Supports what model files need; reads nothing.

A table is {slot: (kind, value)}. Kinds: the struct code of a number ("i", "b", ...); "vec:" and such a code; "raw" (bytes,
aligned to 16); "str"; "table"; "tables".
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Dict, Tuple

    Table = Dict[int, Tuple[str, Any]]

BUFFER_ALIGNMENT = 16


def write(root: Table, identifier: bytes) -> bytes:
    out = bytearray(4) + identifier
    struct.pack_into("<I", out, 0, _table(out, root))
    return bytes(out)


def _align(out: bytearray, alignment: int, after: int = 0) -> None:
    """Appends zeros, so that data AFTER bytes behind the end is aligned."""
    out.extend(bytes(-(len(out) + after) % alignment))


def _table(out: bytearray, fields: Table) -> int:
    """Appends a table and returns its position.
    Writes its vtable, its fields with the widest first, then the data that they refer to."""
    codes = {slot: kind if len(kind) == 1 else "I" for slot, (kind, _) in fields.items()}
    places, size = {}, 4
    for slot in sorted(fields, key=lambda one: -struct.calcsize(codes[one])):
        places[slot] = size
        size += struct.calcsize(codes[slot])
    slots = 1 + max(fields, default=-1)
    vtable = struct.pack(f"<{slots + 2}H", 4 + 2 * slots, size, *(places.get(slot, 0) for slot in range(slots)))
    _align(out, 4, len(vtable))
    out += vtable
    at = len(out)
    out += struct.pack("<i", len(vtable)) + bytes(size - 4)
    for slot, (kind, value) in fields.items():
        if len(kind) == 1:
            struct.pack_into("<" + kind, out, at + places[slot], value)
        else:
            _point(out, at + places[slot], _child(out, kind, value))
    return at


def _point(out: bytearray, place: int, target: int) -> None:
    struct.pack_into("<I", out, place, target - place)


def _child(out: bytearray, kind: str, value: Any) -> int:
    if kind == "table":
        return _table(out, value)
    if kind == "tables":
        _align(out, 4)
        at = len(out)
        out += struct.pack("<I", len(value)) + bytes(4 * len(value))
        for index, one in enumerate(value):
            _point(out, at + 4 + 4 * index, _table(out, one))
        return at
    data = value.encode() if kind == "str" else bytes(value) if kind == "raw" else struct.pack(f"<{len(value)}{kind[4:]}", *value)
    _align(out, {"str": 4, "raw": BUFFER_ALIGNMENT}.get(kind) or max(4, struct.calcsize(kind[-1])), 4)
    at = len(out)
    out += struct.pack("<I", len(value)) + data + (b"\0" if kind == "str" else b"")
    return at
