// The kernel's own events of its job scheduler (tracefs, event group gpu_scheduler), where this process may read them:
// recorded in an instance of our own, so that nobody else's tracing changes.
// Called by trace.cpp and its test. Must not know: traces, devices, what an event means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace skillet::trace {

struct KernelEvent {
  int64_t at_ns = 0;  // CLOCK_MONOTONIC
  std::string name, text;
};

class KernelEvents {
 public:
  // Begins; where that may not be, a line of the log says why.
  explicit KernelEvents(std::string folder = "/sys/kernel/tracing/instances");
  ~KernelEvents();
  KernelEvents(const KernelEvents&) = delete;
  KernelEvents& operator=(const KernelEvents&) = delete;
  // What happened so far.
  std::vector<KernelEvent> take();

 private:
  std::string instance_;  // empty: nothing is recorded
};

// Of a line of `trace`: "cat-12 [001] d..2. 12.345678: NAME: TEXT". False: it is none.
bool parse_kernel_event(const std::string& line, KernelEvent& event);

}  // namespace skillet::trace
