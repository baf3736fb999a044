// VerifyAgain: repeats the comparison of verify.h on a part's tensors from the caller's own inputs (verify_every).
// Called by sessions.
// Must not know: how a session runs, anything of one vendor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "graph/passes/passes.h"
#include "runtime/session.h"
#include "runtime/trial.h"

namespace skillet::runtime {

class VerifyAgain {
 public:
  // Both are borrowed.
  VerifyAgain(const Target& target, const SessionOptions& options) : target_(target), options_(options) {}

  // True if sessions with these options can be compared; programs of `recorded` are not.
  static bool can(const Target& target, const SessionOptions& options);

  // Checks a part that has just run. `bytes_of` (its tensors) is only read. The part runs again, with all
  // intermediates, on a separate device file. Returns what is wrong, as text; the trust then refutes it. Empty: it is
  // right, or cannot be compared, which is logged once.
  std::string check(size_t index, const passes::Partition& part, const ir::Graph& graph, const Report& report,
                    const std::function<std::span<const uint8_t>(ir::TensorId)>& bytes_of);

 private:
  Result<Session*> session_of(size_t index, const passes::Partition& part);
  void refute(const passes::Partition& part, const ir::Graph& graph, const Report& report, const WrongOps& wrong,
              const std::string& what);

  const Target& target_;
  const SessionOptions& options_;
  std::optional<Target> device_;
  std::map<size_t, std::unique_ptr<Session>> sessions_;  // by part
  bool is_over_ = false;                                 // the part cannot be compared
};

}  // namespace skillet::runtime
