// Shared by all comparisons of a device with the CPU: a part as a network of its own, the options of such a session,
// and the search for wrong operations.
// Called by verify.cpp, verify_again.cpp.
// Must not know: a vendor's anything.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/session.h"
#include "runtime/verify.h"

namespace skillet::runtime {

compile::Compiled alone(const ir::Graph& part);
// With at least the default time limit of jobs: a user's shorter limit shows nothing about the device.
SessionOptions with_time(SessionOptions options);
// Options for a trial: none of the caller's cache or fallback, so that a slow device is not called wrong. Leaves out
// the switches that were refuted.
SessionOptions trial_options(const npu::Driver& driver, const Trust& trust, const SessionOptions& options, bool keep);
// Wrong operations, each with a description of the difference.
using WrongOps = std::map<ir::OpId, std::string>;
// Adds the operations whose difference exceeds the stated bound.
void note_wrong(const Session& session, const Target& target, std::span<const LayerDiff> diffs, WrongOps& ops);
// One line about one of them; empty: there is none.
std::string first_of(const ir::Graph& graph, const WrongOps& ops);

// Inputs for the program with intermediates, and for the one without. They differ in order, so that bytes left over
// from one run show in the next.
inline constexpr size_t kKeptInputs[] = {0, 2, 3};
inline constexpr size_t kRealInputs[] = {0, 2, 3, 4};

// One try. Error: something failed, on the device or elsewhere.
Result<Trial> try_session(Session& session, const Target& target, std::span<const size_t> inputs,
                          std::map<size_t, std::vector<Bytes>>* outputs);
// The same inputs on a program without intermediates, which may fuse several operations; it must compute the same
// bytes.
Result<Trial> try_real(Session& session, const std::map<size_t, std::vector<Bytes>>& expected);
Result<Trial> try_probe(const Target& target, const Trust& trust, const npu::Assumption& assumption,
                        const SessionOptions& options);

// Results of other probes on the device now, each on a device file of its own. right: one is right and in time, or all
// are wrong in time and a proven operation is right. fail: a probe that was right before is not, or no tried probe is;
// then the device fails, and nothing is learned about `asked`. none: `trust` refutes everything that could be tried.
enum class Others : uint8_t { right, fail, none };
Others try_others(const std::string& device, const Trust& trust, const npu::Assumption* asked,
                  const SessionOptions& options);

Trial failed_trial(const Error& error);
// A device that fails or is late gets one more try, on a new device file: a job that hung on the first file keeps its
// memory, and allocations there are refused. The outcome is `hangs` if jobs of the program hung twice; any other
// failure shows nothing about them.
template <typename Try>
Trial try_twice(const Target& target, Try&& once) {
  bool hangs = true, is_used = target.context->overdue.has_value();
  Trial last;
  for (int tries = 0; tries < 2; ++tries, is_used = true) {
    const auto device = is_used ? open_for_trials(target.name) : Result<Target>(target);
    Result<Trial> tried = device.ok() ? once(*device) : Result<Trial>(device.error());
    if (tried.ok() && !tried->is_late) return std::move(tried).value();
    last = tried.ok() ? std::move(tried).value() : failed_trial(tried.error());
    hangs &= last.outcome == Trial::Outcome::hangs;
    if (last.outcome != Trial::Outcome::hangs && last.code != ErrorCode::device) break;
  }
  if (!hangs) last.outcome = Trial::Outcome::not_asked;
  return last;
}

}  // namespace skillet::runtime
