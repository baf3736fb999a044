// Options of a session as keys and values, for callers that have them as text.
// Called by the C interface and the delegate.
// Must not know: where the text comes from.
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
};
std::span<const SessionKey> session_keys();

// Error: there is no such key (the message names the one that may have been meant), or the value is none for it.
Result<void> set_option(SessionOptions& options, std::string_view key, std::string_view value);

// One line a key.
std::string session_keys_help();

}  // namespace skillet::runtime
