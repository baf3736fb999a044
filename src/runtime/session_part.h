// Session::Part: what a session keeps of one part of its graph.
// Called inside runtime/ only.
// Must not know: other parts.
#pragma once

#include "runtime/session.h"

namespace skillet::runtime {

struct Session::Part {
  passes::Partition partition;
  std::unique_ptr<LoadedProgram> loaded;              // NPU parts that have not fallen back
  std::vector<std::unique_ptr<ref::Kernel>> kernels;  // CPU parts and fallen-back ones, in op order
};

}  // namespace skillet::runtime
