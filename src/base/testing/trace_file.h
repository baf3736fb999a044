// A trace in Perfetto's format, read: the slices and counters of its tracks. Slices are those of packets of its track
// events; whatever else a trace of another program holds is passed over.
// Called by tests. Must not know: who wrote it.
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
  int64_t own_ns = 0;  // without those inside
  size_t depth = 0;
  bool is_open = false;  // the trace ends before it does

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

// Error: the bytes are no such file, or have no event.
Result<Trace> read_trace(std::span<const uint8_t> file);

}  // namespace skillet
