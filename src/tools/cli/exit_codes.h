// The meaning of the command's exit codes, in one table. The help of each verb shows it, the README repeats it.
// Called by main.cpp and the verbs.
// Must not know: how a verb works.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace skillet::tools {

inline constexpr int kFine = 0, kFailed = 1, kCannotBegin = 2;

struct ExitCodes {
  std::string_view verb, fine, failed, cannot_begin;
};

inline constexpr std::string_view kUnreadable = "wrong use, or an unusable file, device or output path";
inline constexpr std::array kExitCodes = {
#define VERB(name, ...) ExitCodes{#name, __VA_ARGS__},
#include "tools/cli/verbs.def"
#undef VERB
};

constexpr const ExitCodes* exit_codes_of(std::string_view verb) {
  const auto found = std::ranges::find(kExitCodes, verb, &ExitCodes::verb);
  return found == kExitCodes.end() ? nullptr : &*found;
}

}  // namespace skillet::tools
