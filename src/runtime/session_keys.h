// Options of a session as keys and values, for callers that have text.
// Called by the C interface and the delegate.
// Must not know: where the keys come from.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/session.h"

namespace skillet::runtime {

struct SessionKey {
  std::string_view key;
  bool (*set)(std::string_view value, SessionOptions& options);  // false: not valid, nothing changes
  std::string_view help;                                         // includes the default in brackets
  // Requirement on the value of its environment variable.
  std::string_view of_environment;
};
std::span<const SessionKey> session_keys();

// Error: the key does not exist (the message suggests a similar key), or the value is not valid for it.
Result<void> set_option(SessionOptions& options, std::string_view key, std::string_view value);

// Returns "SKILLET_CORES" for "cores".
std::string environment_name(std::string_view key);

// Applies the environment's options, which hold for every session. An empty variable, as compose files leave it, counts
// as not set.
Result<void> set_options_of_environment(SessionOptions& options);
// Warns once per process that an option's former name, which set unproven=..., was used.
void warn_of_old_name(std::string_view given, npu::Unproven meant);
// The environment's setting for unproven operations.
npu::Unproven unproven_of_environment();

// The options that decide about parts and their programs, "tuning=proven", one per line, without names of files. A
// compiled model stores this text.
std::string deciding_options(const SessionOptions& options);
// Difference of two such texts: "tuning=proven, not tuned; cores=1, not auto"; empty: they are equal.
std::string print_difference(std::string_view theirs, std::string_view ours);

// One line per key.
std::string session_keys_help();

}  // namespace skillet::runtime
