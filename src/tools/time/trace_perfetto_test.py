#!/usr/bin/env python3
"""Reads a trace with Perfetto's Python package: with its trace processor if that can be downloaded, else with its messages.

usage: trace_perfetto_test.py SKILLET      run at the top of the source tree; exit code 77: the package cannot be installed
"""
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

RUNS = 6
CLEARED, NEEDED = 1, 2  # flags of a sequence
MONOTONIC, BOOTTIME = 3, 6  # clocks


def install(folder):
    """Creates an environment with the package. Returns its Python, or None if that fails."""
    python = Path(folder) / "bin/python"
    for command in [sys.executable, "-m", "venv", folder], [python, "-m", "pip", "install", "-q", "perfetto"]:
        if subprocess.run(command, capture_output=True, timeout=600).returncode != 0:
            return None
    return python


def check(counts, errors):
    for name in "run", "copy in", "copy out", "submit":
        assert counts["slice", name] == RUNS, (name, dict(counts))
    assert counts["counter", ""] > RUNS, dict(counts)
    assert not errors, errors


def by_processor(trace):
    from perfetto.trace_processor import TraceProcessor
    processor = TraceProcessor(trace=trace)
    counts = defaultdict(int)
    for row in processor.query("select name, count(*) as n, min(dur) as least from slice group by name"):
        counts["slice", row.name] = row.n
        assert row.least >= 0, f"{row.name} has no end"
    for row in processor.query("select count(*) as n from counter"):
        counts["counter", ""] = row.n
    check(counts, [(row.name, row.value) for row in processor.query("select name, value from stats where severity = 'error' and value > 0")])


class Rules:
    """Perfetto's documented rules for traces of track events.

    A sequence defines interned names before their use, and forgets them when its state is cleared. Each event is on a described track,
    with a clock from a snapshot. Slices nest, and are in order of time."""

    def __init__(self):
        self.counts, self.names, self.known_state = defaultdict(int), {}, set()
        self.tracks, self.open_slices, self.last = {}, defaultdict(list), {}

    def packet(self, packet):
        sequence = packet.trusted_packet_sequence_id
        assert sequence, "no sequence"
        if packet.sequence_flags & CLEARED:
            self.names = {key: text for key, text in self.names.items() if key[0] != sequence}
            self.known_state.add(sequence)
            assert packet.trace_packet_defaults.timestamp_clock_id == MONOTONIC, packet
            assert {one.clock_id for one in packet.clock_snapshot.clocks} >= {MONOTONIC, BOOTTIME}, packet
        else:
            assert packet.sequence_flags & NEEDED and sequence in self.known_state, packet
        for kind in "event_names", "event_categories", "debug_annotation_names":
            for one in getattr(packet.interned_data, kind):
                assert one.iid and one.name and self.names.setdefault((sequence, kind, one.iid), one.name) == one.name, one
        if packet.HasField("track_descriptor"):
            self.track(packet.track_descriptor)
        if packet.HasField("track_event"):
            self.event(packet.track_event, packet.timestamp, sequence)

    def track(self, track):
        assert track.uuid and track.uuid not in self.tracks, track
        assert not track.parent_uuid or track.parent_uuid in self.tracks, track
        assert track.HasField("process") or track.HasField("thread") or track.name, track
        self.tracks[track.uuid] = track

    def event(self, event, when, sequence):
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
        assert event.track_uuid in self.tracks and when > 0, event
        assert when >= self.last.setdefault(event.track_uuid, when), event  # events of a track are in order
        self.last[event.track_uuid] = when
        is_counter = self.tracks[event.track_uuid].HasField("counter")
        assert is_counter == (event.type == TrackEvent.TYPE_COUNTER), event
        if is_counter:
            assert event.WhichOneof("counter_value_field"), event
            self.counts["counter", ""] += 1
        elif event.type == TrackEvent.TYPE_SLICE_BEGIN:
            name = self.names[sequence, "event_names", event.name_iid]
            assert event.category_iids and all((sequence, "event_categories", iid) in self.names for iid in event.category_iids), event
            for one in event.debug_annotations:
                assert self.names[sequence, "debug_annotation_names", one.name_iid] == "predicted_us" and one.double_value > 0, event
                self.counts["annotation", ""] += 1
            self.open_slices[event.track_uuid].append(name)
            self.counts["slice", name] += 1
        else:
            assert event.type == TrackEvent.TYPE_SLICE_END and self.open_slices[event.track_uuid], event
            self.open_slices[event.track_uuid].pop()


def by_messages(trace):
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
    message, rules = Trace.FromString(Path(trace).read_bytes()), Rules()
    assert message.packet[0].clock_snapshot.primary_trace_clock == MONOTONIC, message.packet[0]
    for packet in message.packet:
        rules.packet(packet)
    assert rules.counts["annotation", ""] > RUNS, dict(rules.counts)
    check(rules.counts, [one for each in rules.open_slices.values() for one in each])


def main():
    if sys.argv[1] == "--read":
        try:
            by_processor(sys.argv[2])
            print("read by the trace processor")
        except (subprocess.CalledProcessError, OSError) as why:
            print(f"no trace processor here ({why}): read by messages")
            by_messages(sys.argv[2])
        return 0
    with tempfile.TemporaryDirectory() as folder:
        trace = folder + "/run.pftrace"
        env = os.environ | {"SKILLET_PARTITION": "all"}
        subprocess.run([sys.argv[1], "bench", "models/digits.tflite", "--device", "sim:a311d", "--runs", str(RUNS), "--warm-up", "0", "--without-cpu",
                        "--unproven", "take", "--trace", trace], check=True, env=env, stdout=subprocess.DEVNULL)
        python = install(folder + "/python")
        if python is None:
            print("PyPI's package perfetto cannot be installed here: the trace is not read")
            return 77
        return subprocess.run([python, __file__, "--read", trace], timeout=300).returncode


if __name__ == "__main__":
    sys.exit(main())
