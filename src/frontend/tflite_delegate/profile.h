// A partition's operations in the host's table of times (benchmark_model --enable_op_profiling).
// Called by kernel.cpp after a run, where the option asks for it.
// Must not know: how a run is timed.
#pragma once

#include <string>
#include <vector>

#include "frontend/tflite_delegate/tflite_abi.h"
#include "runtime/session.h"

namespace skillet::delegate {

// Names of a session's operations, which hosts keep pointers to.
class Profile {
 public:
  explicit Profile(const runtime::Session& session);
  // The parts' times are measured; those of the operations in one are its time, divided by their multiply-accumulates.
  void tell(const runtime::Session& session, void* profiler) const;

 private:
  struct Event {
    std::string tag;
    int node = -1;  // of the host
    size_t part = 0;
    double share = 0;  // of its part
  };
  std::vector<Event> events_;
};

}  // namespace skillet::delegate
