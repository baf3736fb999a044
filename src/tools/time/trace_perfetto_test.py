#!/usr/bin/env python3
"""A trace read back by Perfetto's own Python package: by its trace processor where that can be had, else by its messages.

usage: trace_perfetto_test.py SKILLET      run at the top of the source tree; exit code 77: the package cannot be installed
"""
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

RUNS = 6


def install(folder):
    """The Python of an environment that has the package; none: it cannot be had."""
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


def by_messages(trace):
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
    message = Trace.FromString(Path(trace).read_bytes())
    counts, errors, names, categories, tracks, open_slices = defaultdict(int), [], {}, {}, {}, defaultdict(list)
    assert message.packet[0].clock_snapshot.primary_trace_clock == 3, message.packet[0]
    for packet in message.packet:
        assert packet.trusted_packet_sequence_id and packet.sequence_flags
        names |= {one.iid: one.name for one in packet.interned_data.event_names}
        categories |= {one.iid: one.name for one in packet.interned_data.event_categories}
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert event.track_uuid in tracks, event
        if event.type == TrackEvent.TYPE_COUNTER:
            assert tracks[event.track_uuid].HasField("counter"), event
            counts["counter", ""] += 1
        elif event.type == TrackEvent.TYPE_SLICE_BEGIN:
            assert all(iid in categories for iid in event.category_iids), event
            open_slices[event.track_uuid].append((names[event.name_iid], packet.timestamp))
            counts["slice", names[event.name_iid]] += 1
        else:
            name, began = open_slices[event.track_uuid].pop()
            if packet.timestamp < began:
                errors.append(name)
    errors += [one for each in open_slices.values() for one in each]
    check(counts, errors)


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
