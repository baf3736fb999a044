// Events of the kernel's job scheduler (tracefs, event group gpu_scheduler), if this process may read them. They are
// recorded in a separate instance, so that other users' tracing is unaffected.
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
  // Starts recording; if that is not allowed, logs the reason.
  explicit KernelEvents(std::string folder = "/sys/kernel/tracing/instances");
  ~KernelEvents();
  KernelEvents(const KernelEvents&) = delete;
  KernelEvents& operator=(const KernelEvents&) = delete;
  // Returns and removes the events so far.
  std::vector<KernelEvent> take();

 private:
  std::string instance_;  // empty: nothing is recorded
};

// Parses a line of `trace`: "cat-12 [001] d..2. 12.345678: NAME: TEXT". False: not an event.
bool parse_kernel_event(const std::string& line, KernelEvent& event);

}  // namespace skillet::trace
