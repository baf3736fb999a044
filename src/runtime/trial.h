// What all comparisons of a device with the CPU share: a part as a network of its own, the options of such a session,
// which operations are wrong.
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
// With at least the time that jobs have by default: a user's shorter one says nothing of the device.
SessionOptions with_time(SessionOptions options);
// Nothing of the caller's: no cache, no fallback; what is right on a slow day is right. Without the switches that were
// refuted.
SessionOptions trial_options(const npu::Driver& driver, const Trust& trust, const SessionOptions& options, bool keep);
// What is wrong with each operation that is.
using WrongOps = std::map<ir::OpId, std::string>;
// Adds those whose difference is more than what is stated.
void note_wrong(const Session& session, const Target& target, std::span<const LayerDiff> diffs, WrongOps& ops);
// A line about one of them; empty: there is none.
std::string first_of(const ir::Graph& graph, const WrongOps& ops);

// Inputs of the program that keeps intermediates; of the other one, so that what one run leaves over shows in the next.
inline constexpr size_t kKeptInputs[] = {0, 2, 3};
inline constexpr size_t kRealInputs[] = {0, 2, 3, 4};

// One try. Error: something failed, of the device or not.
Result<Trial> try_session(Session& session, const Target& target, std::span<const size_t> inputs,
                          std::map<size_t, std::vector<Bytes>>* outputs);
// The same inputs on a program without intermediates, which may do several operations in one: the same bytes.
Result<Trial> try_real(Session& session, const std::map<size_t, std::vector<Bytes>>& expected);
Result<Trial> try_probe(const Target& target, const Trust& trust, const npu::Assumption& assumption,
                        const SessionOptions& options);

// What other probes do on the device now, each on a file of its own. right: one is right and in time, or all are wrong
// in time and a proven operation is right. fail: what was right before is not, or nothing that was tried is; then the
// device fails, which says nothing of `asked`. none: there is nothing to try that `trust` does not refute.
enum class Others : uint8_t { right, fail, none };
Others try_others(const std::string& device, const Trust& trust, const npu::Assumption* asked,
                  const SessionOptions& options);

Trial failed_trial(const Error& error);
// A device that fails or is late gets one more try, on a file of its own: what hung on the first one keeps its memory,
// and what is placed there is refused. It hangs where jobs of the program did so twice; all else says nothing of them.
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
