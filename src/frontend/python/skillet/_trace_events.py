"""Reads track events of a trace in Perfetto's format one after the other, since a trace may be larger than memory.
Other data in the trace is skipped. Called by `skillet trace`."""

from __future__ import annotations

import math
import os
import re
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

MOST_BYTES, MOST_DEPTH = 1 << 30, 1000
MOST_PACKET_BYTES, MOST_TRACKS, MOST_NAMES, LONGEST_TEXT = 1 << 24, 1 << 17, 1 << 17, 200  # limits of what is kept in memory
READ_BYTES, HEAD_BYTES = 1 << 20, 20  # HEAD_BYTES: the key and size before a packet
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4  # types of events


class Malformed(Exception):
    """The file is no trace, or a trace that cannot be read. The message gives the reason."""


class Track:
    __slots__ = ("last", "name", "open_slices", "is_thread")

    def __init__(self, name: str) -> None:
        self.name, self.is_thread, self.last = name, False, 0
        self.open_slices: list[Slice] = []


class Slice:
    __slots__ = ("begin", "category", "depth", "end", "is_open", "name", "own", "track")

    def __init__(self, track: Track, category: str, name: str, begin: int, depth: int) -> None:
        self.track, self.category, self.name, self.begin, self.depth = track, category, name, begin, depth  # begin: ns, as all times
        self.end = self.own = 0  # own: without the slices inside
        self.is_open = False  # the trace ends before the slice does

    def ns(self) -> int:
        return self.end - self.begin


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            raise EOFError
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value & (1 << 64) - 1, at
    raise Malformed("a number has too many bytes")


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yields field numbers with their values: int, bytes, or float. Raises EOFError if the data end within a field."""
    at, end = 0, len(data)
    while at < end:
        key, at = data[at], at + 1
        if key >= 0x80:
            key, at = varint(data, at - 1)
        kind = key & 7
        if kind in (0, 2):
            if at < end and data[at] < 0x80:  # most sizes and numbers are below 128
                value: Any = data[at]
                at += 1
            else:
                value, at = varint(data, at)
            if kind == 0:
                yield key >> 3, value
                continue
            size = value
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise Malformed("a field has an unknown type")
        if key < 8 or size > end - at:
            raise EOFError
        value = data[at:at + size]
        yield key >> 3, value if kind == 2 else struct.unpack("<d" if size == 8 else "<f", value)[0]
        at += size


def typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise Malformed("a field has another type")
    return value


def clean(text: str) -> str:
    return re.sub("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]", "?", text)


class Packets:
    """Iterates over the packets of a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._data, self._at = file, b"", 0
        self._read_bytes = self.packets = 0
        self._left = sys.maxsize
        if file.seekable():  # stop at the current end of the file: a writer may append faster than this reads
            at = file.tell()
            self._left = file.seek(0, os.SEEK_END) - at
            file.seek(at)
        self.is_cut = False  # the file ends within a packet, such as a copy of a growing file

    def _has(self, size: int) -> bool:
        """Reads until SIZE bytes are available. Returns whether they are."""
        if size <= len(self._data) - self._at:
            return True
        parts = [self._data[self._at:]]
        left = size - len(parts[0])
        while left > 0 and (more := self._file.read(min(max(left, READ_BYTES), self._left))):
            self._left -= len(more)
            self._read_bytes += len(more)
            if self._read_bytes > MOST_BYTES:
                raise Malformed("more than 1 GiB is not read")
            parts.append(more)
            left -= len(more)
        self._data, self._at = b"".join(parts), 0
        return left <= 0

    def __iter__(self) -> Iterator[bytes]:
        while self._has(HEAD_BYTES) or self._at < len(self._data):
            try:
                key, at = varint(self._data, self._at)
                if key == 0 and self.packets and self.rest_is_zero():
                    self.is_cut = True
                    return
                if key != 1 << 3 | 2:
                    raise Malformed("it is no trace, or one without track events")
                size, at = varint(self._data, at)
            except EOFError:
                self.is_cut = True
                return
            if size > MOST_PACKET_BYTES:
                raise Malformed(f"it is no trace, or one with a packet of {size} bytes, of which {MOST_PACKET_BYTES} are read")
            self._at = at
            if not self._has(size):
                self.is_cut = True
                return
            packet = self._data[self._at:self._at + size]
            self._at += size
            self.packets += 1
            yield packet

    def rest_is_zero(self) -> bool:
        """Returns whether the rest of the file is zero, as a power loss may leave it. Reads it."""
        while self._has(1):
            if self._data.count(0, self._at) != len(self._data) - self._at:
                return False
            self._at = len(self._data)
        return True


class Reader:
    """Reports the events of a trace.

    `on_slice` gets each slice when it ends, those of a track ordered by begin at each depth. `on_sample` gets the values
    of counters and `on_instant` the events of the kernel, each with its time. Raises Malformed, EOFError or OSError."""

    def __init__(self, on_slice: Callable[[Slice], None], on_sample: Callable[[Track, int, float], None], on_instant: Callable[[int, str], None]) -> None:
        self._on_slice, self._on_sample, self._on_instant = on_slice, on_sample, on_instant
        self.tracks: dict[int, Track] = {}
        self._names: dict[tuple[int, int, int], str] = {}  # by kind (1 category, 2 name), sequence and number
        self._texts: dict[str, str] = {}  # shares equal texts
        self.begin = self.end = -1
        self.slices = 0
        self.is_cut = False
        self.disordered = ""  # names a track whose times are not in order

    def read(self, file: BinaryIO) -> None:
        packets = Packets(file)
        for packet in packets:
            try:
                self._read_packet(packet)
            except (Malformed, EOFError):
                if packets.packets == 1 or not packet.endswith(b"\0") or not packets.rest_is_zero():
                    raise
                packets.is_cut = True
        self.is_cut = packets.is_cut
        if self.begin < 0 and not self.tracks and not self._names:
            raise Malformed("it is no trace, or one without track events")
        for track in self.tracks.values():
            while track.open_slices:
                self._close(track.open_slices, self.end, is_open=True)

    def _text(self, value: Any) -> str:
        text = clean(typed(value, bytes)[:4 * LONGEST_TEXT].decode("utf-8", "replace"))[:LONGEST_TEXT]
        if len(self._texts) == MOST_NAMES and text not in self._texts:
            raise Malformed(f"more than {MOST_NAMES} names are not read")
        return self._texts.setdefault(text, text)

    def _track(self, uuid: int) -> Track:
        found = self.tracks.get(uuid)
        if found is None:
            if len(self.tracks) == MOST_TRACKS:
                raise Malformed(f"more than {MOST_TRACKS} tracks are not read")
            found = self.tracks[uuid] = Track(f"track {uuid}")
        return found

    def _read_packet(self, packet: bytes) -> None:
        when: Any = 0
        sequence: Any = 0
        names: list[Any] = []
        events: list[Any] = []
        for number, value in fields(packet):
            if number == 8:
                when = value
            elif number == 10:
                sequence = value
            elif number == 11:
                events.append(value)
            elif number == 60:
                self._read_track(typed(value, bytes))
            elif number == 12:
                names.append(value)
        for one in names:
            self._read_names(typed(one, bytes), typed(sequence, int))
        for one in events:
            self._read_event(typed(one, bytes), typed(sequence, int), min(typed(when, int), 1 << 62))

    def _read_names(self, data: bytes, sequence: int) -> None:
        for kind, entry in fields(data):
            if kind not in (1, 2):
                continue
            said = dict(fields(typed(entry, bytes)))
            key = kind, sequence, typed(said.get(1, 0), int)
            if len(self._names) == MOST_NAMES and key not in self._names:
                raise Malformed(f"more than {MOST_NAMES} names are not read")
            self._names[key] = self._text(said.get(2, b""))

    def _read_track(self, data: bytes) -> None:
        said = dict(fields(data))
        track = self._track(typed(said.get(1, 0), int))
        track.name = self._text(said.get(2, b""))
        if 4 in said:
            track.is_thread = True
            thread = dict(fields(typed(said[4], bytes)))
            if 5 in thread:
                track.name = "thread " + self._text(thread[5])

    def _read_event(self, data: bytes, sequence: int, when: int) -> None:
        said = dict(fields(data))
        track, kind = self._track(typed(said.get(11, 0), int)), typed(said.get(9, 0), int)
        self.begin = when if self.begin < 0 else min(self.begin, when)
        self.end = max(self.end, when)
        if kind == INSTANT:
            if self._name(1, sequence, said.get(3, 0)) == "kernel":
                self._on_instant(when, self._text(said[23]) if 23 in said else self._name(2, sequence, said.get(10, 0)))
            return
        if when < track.last:
            self.disordered = self.disordered or track.name
            when = track.last
        track.last = when
        if kind == COUNTER:
            value = typed(said[44], float) if 44 in said else float(typed(said.get(30, 0), int))
            self._on_sample(track, when, value if math.isfinite(value) else 0.0)
        elif kind == END and track.open_slices:
            self._close(track.open_slices, when)
        elif kind == BEGIN:
            if len(track.open_slices) == MOST_DEPTH:
                raise Malformed(f"{track.name}: more than {MOST_DEPTH} slices are open at once")
            name = self._text(said[23]) if 23 in said else self._name(2, sequence, said.get(10, 0))
            track.open_slices.append(Slice(track, self._name(1, sequence, said.get(3, 0)), name, when, len(track.open_slices)))
            self.slices += 1

    def _name(self, kind: int, sequence: int, number: Any) -> str:
        return self._names.get((kind, sequence, typed(number, int)), "")

    def _close(self, inside: list[Slice], when: int, is_open: bool = False) -> None:
        one = inside.pop()
        one.end, one.is_open = when, is_open
        one.own += one.ns()
        if inside:
            inside[-1].own -= one.ns()
        self._on_slice(one)
