// VerifyAgain: the comparison of verify.h once more, on what the caller's own inputs made of a part (verify_every).
// Called by sessions.
// Must not know: how a session runs, a vendor's anything.
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

  // Whether any session of these options is compared. What `recorded` emits is not.
  static bool can(const Target& target, const SessionOptions& options);

  // A part that has just run: `bytes_of` its tensors is read only, and runs again, with all intermediates, on a device
  // file of its own. What is wrong, for people; the trust then refutes it. Empty: it is right, or cannot be compared,
  // which is said once.
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
  bool is_over_ = false;                                 // it cannot be compared
};

}  // namespace skillet::runtime
