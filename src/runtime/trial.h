// What all comparisons of a device with the CPU share: a part as a network of its own, the options of such a session,
// which operations are wrong.
// Called by verify.cpp, verify_again.cpp.
// Must not know: a vendor's anything.
#pragma once

#include <set>
#include <span>
#include <string>

#include "runtime/session.h"

namespace skillet::runtime {

compile::Compiled alone(const ir::Graph& part);
// With at least the time that jobs have by default: a user's shorter one says nothing of the device.
SessionOptions with_time(SessionOptions options);
// Nothing of the caller's: no cache, no fallback; what is right on a slow day is right. Without the switches that were
// refuted.
SessionOptions trial_options(const npu::Driver& driver, const Trust& trust, const SessionOptions& options, bool keep);
// Adds to `ops` those whose difference is more than what is stated; `what` gets a line about the first one.
void note_wrong(const Session& session, const Target& target, std::span<const LayerDiff> diffs, std::set<ir::OpId>& ops,
                std::string& what);

}  // namespace skillet::runtime
