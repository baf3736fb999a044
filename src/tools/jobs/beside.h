// Beside: jobs of another capture that run over and over, in an open file of their own, while something else runs on
// the same NPU. Called by `skillet replay`. Must not know: what jobs do.
#pragma once

#include <memory>
#include <string>

#include "kernels/api/replayer.h"
#include "runtime/device_context.h"

namespace skillet::tools {

class Beside {
 public:
  // They run once alone, for comparison. `core` takes no turns: as long as this exists, other programs have none.
  // Error: the NPU has one core.
  static Result<void> open(const std::string& path, const runtime::NamedCore& core, std::unique_ptr<Beside>& out);
  ~Beside();
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  // From here on they run; what runs beside them must count in it, too.
  void begin(kernels::Overlaps& overlaps);
  // So many jobs since then, or no more will, because something was wrong.
  bool has_run(uint64_t jobs) const;
  // Adds how many jobs have run since then. What was wrong with what they wrote; empty: nothing.
  Result<std::string> end(uint64_t& jobs);

 private:
  struct State;
  explicit Beside(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace skillet::tools
