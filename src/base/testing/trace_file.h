// Reader of a trace in Perfetto's format: slices and counters of its tracks. Slices come from packets with track
// events; other packets in a trace of another program are skipped.
// Called by tests. Must not know: which program wrote it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace skillet {

struct TraceTrack {
  std::string name;
  bool is_thread = false;
};
struct TraceSlice {
  size_t track = 0;
  std::string category, name;
  int64_t begin_ns = 0, end_ns = 0;
  int64_t own_ns = 0;  // without nested slices
  size_t depth = 0;
  bool is_open = false;  // the trace ends before the slice

  int64_t ns() const { return end_ns - begin_ns; }
};
struct TraceSample {
  size_t track = 0;
  int64_t at_ns = 0;
  double value = 0;
};
struct Trace {
  std::vector<TraceTrack> tracks;
  std::vector<TraceSlice> slices;  // in the order of their begin
  std::vector<TraceSample> samples;
  size_t instants = 0;
  int64_t begin_ns = 0, end_ns = 0;
  bool is_cut = false;  // the file ends within a packet
};

// Error: the bytes are not a trace, or have no event.
Result<Trace> read_trace(std::span<const uint8_t> file);

}  // namespace skillet
