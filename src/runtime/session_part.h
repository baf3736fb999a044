// Session::Part: what a session keeps of one part of its graph.
// Called inside runtime/ only.
// Must not know: other parts.
#pragma once

#include "passes/passes.h"
#include "runtime/session.h"

namespace skillet::runtime {

// Ready: `loaded`, or `kernels` of a CPU part. Failed: an NPU part that has `kernels` instead. Broken: neither works.
struct Session::Part {
  passes::Partition partition;
  std::unique_ptr<LoadedProgram> loaded;
  Kernels kernels;              // in op order
  std::optional<Error> broken;  // the error of every later run
};

}  // namespace skillet::runtime
