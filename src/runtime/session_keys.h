// Options of a session as keys and values, for callers that have them as text.
// Called by the C interface and the delegate.
// Must not know: who gave the keys.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/session.h"

namespace skillet::runtime {

struct SessionKey {
  std::string_view key;
  bool (*set)(std::string_view value, SessionOptions& options);  // false: it is no value for this key, nothing changes
  std::string_view help;                                         // with the default in brackets
  // What its variable of the environment must be.
  std::string_view of_environment;
};
std::span<const SessionKey> session_keys();

// Error: there is no such key (the message names the one that may have been meant), or the value is none for it.
Result<void> set_option(SessionOptions& options, std::string_view key, std::string_view value);

// "SKILLET_CORES" of "cores".
std::string environment_name(std::string_view key);

// What the environment says for every session. An empty variable, as compose files leave them, is one that is not set.
Result<void> set_options_of_environment(SessionOptions& options);
// Once in a process: what unproven=... was called before.
void warn_of_old_name(std::string_view given, npu::Unproven meant);
// Of these the one that says what becomes of unproven operations.
npu::Unproven unproven_of_environment();

// What of them decides about parts and their programs, "tuning=proven", a line each: a compiled model keeps it. Files
// are not named.
std::string deciding_options(const SessionOptions& options);
// Of two such texts: "tuning=proven, not tuned; cores=1, not auto"; empty: they are the same.
std::string print_difference(std::string_view theirs, std::string_view ours);

// One line a key.
std::string session_keys_help();

}  // namespace skillet::runtime
