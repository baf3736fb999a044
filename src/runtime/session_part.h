// Session::Part: the session's state of one part of its graph.
// Called inside runtime/ only.
// Must not know: other parts.
#pragma once

#include "graph/passes/passes.h"
#include "runtime/band_group.h"
#include "runtime/session.h"

namespace skillet::runtime {

// Ready: `loaded` or `bands`, or `kernels` of a CPU part. Failed: an NPU part that has `kernels` instead. Broken:
// neither works.
struct Session::Part {
  passes::Partition partition;
  std::unique_ptr<LoadedProgram> loaded;
  std::unique_ptr<BandGroup> bands;
  std::vector<ir::Graph> band_graphs;  // the sources of the bands' programs
  Kernels kernels;                     // in op order
  std::vector<trace::Event> slices;    // trace events of kernels, begin and end of each; empty: no trace
  std::optional<Error> broken;         // the error of every later run

  bool on_device() const { return loaded != nullptr || bands != nullptr; }
  uint64_t copied_bytes() const { return loaded ? loaded->copied_bytes() : bands ? bands->copied_bytes() : 0; }
};

}  // namespace skillet::runtime
