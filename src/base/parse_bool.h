// parse_bool: words for yes and no in options.
// Called by readers of options and of the environment.
// Must not know: which option.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace skillet {

// 1/0, true/false, yes/no, on/off, in any case (Python passes "True"). Returns false for other texts.
inline bool parse_bool(std::string_view text, bool& value) {
  std::string lower;
  for (const char c : text) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  constexpr std::array<std::string_view, 4> kTrue = {"1", "true", "yes", "on"}, kFalse = {"0", "false", "no", "off"};
  const bool is_true = std::ranges::find(kTrue, lower) != kTrue.end();
  if (!is_true && std::ranges::find(kFalse, lower) == kFalse.end()) return false;
  value = is_true;
  return true;
}

}  // namespace skillet
