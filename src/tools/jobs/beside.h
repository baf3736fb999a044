// Beside: runs jobs of another capture again and again, in an open file of their own, while other jobs run on the same
// NPU. Called by `skillet replay`. Must not know: what jobs do.
#pragma once

#include <memory>
#include <string>

#include "kernels/api/replayer.h"
#include "runtime/device_context.h"

namespace skillet::tools {

class Beside {
 public:
  // Runs the jobs once alone, for comparison. Holds the NPU's turn: `core` takes none, and other programs run no jobs
  // as long as this exists. Error: the NPU has one core.
  static Result<void> open(const std::string& path, const runtime::NamedCore& core, std::unique_ptr<Beside>& out);
  ~Beside();
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  // Starts the jobs; the jobs that run beside them must be counted in `overlaps` too.
  void begin(kernels::Overlaps& overlaps);
  // True after so many jobs since begin(), or if an error has stopped them.
  bool has_run(uint64_t jobs) const;
  // Stops, and adds the number of jobs since begin(). Returns the first error in their results; empty: none.
  Result<std::string> end(uint64_t& jobs);

 private:
  struct State;
  explicit Beside(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace skillet::tools
