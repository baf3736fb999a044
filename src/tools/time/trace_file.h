// A trace in Perfetto's format, read: the slices and counters of its tracks. Slices are those of packets of its track
// events; whatever else a trace of another program holds is passed over.
// Called by `skillet trace` and tests. Must not know: who wrote it, what is printed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace skillet::tools {

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

struct TraceCategory {
  std::string name;
  size_t slices = 0;
  int64_t ns = 0, own_ns = 0;  // `ns`: slices inside others of the category do not count again
};
struct TraceSummary {
  std::vector<TraceCategory> categories;  // the most time first
  std::vector<size_t> longest;            // slices, by their own time
  size_t runs = 0, submissions = 0, jobs = 0;
  int64_t npu_ns = 0, runs_ns = 0;  // when some NPU worked, and from the first run's begin to the last one's end
};
TraceSummary summarise(const Trace& trace);

// The last whole run, or everything where there is none, as a picture.
std::string draw_trace(const Trace& trace);

}  // namespace skillet::tools
