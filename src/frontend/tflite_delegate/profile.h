// Reports a partition's operations to the host's profiler (benchmark_model --enable_op_profiling).
// Called by kernel.cpp after a run, with the option profile=1.
// Must not know: how a run is timed.
#pragma once

#include <string>
#include <vector>

#include "frontend/tflite_delegate/tflite_abi.h"
#include "runtime/session.h"

namespace skillet::delegate {

// Names of a session's operations. Hosts keep pointers to them.
class Profile {
 public:
  explicit Profile(const runtime::Session& session);
  // Reports times. Parts are measured; an operation gets a share of its part's time, by multiply-accumulates.
  void tell(const runtime::Session& session, void* profiler) const;

 private:
  struct Event {
    std::string tag;
    int node = -1;  // the host's index
    size_t part = 0;
    double share = 0;  // of its part
  };
  std::vector<Event> events_;
};

}  // namespace skillet::delegate
