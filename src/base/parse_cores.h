// parse_cores: how many cores of an NPU may share one inference, as text.
// Called by readers of options and of the environment.
// Must not know: what is done with them.
#pragma once

#include <charconv>
#include <string_view>

namespace skillet {

constexpr const char* kCoresVariable = "SKILLET_CORES";

constexpr int kMostCores = 64;

// "auto" is 0; otherwise a number from 1. Returns false for other texts.
inline bool parse_cores(std::string_view text, int& value) {
  int parsed = 0;
  const char* const end = text.data() + text.size();
  const bool is_number = text != "auto" && std::from_chars(text.data(), end, parsed).ptr == end && parsed >= 1;
  if ((!is_number && text != "auto") || parsed > kMostCores) return false;
  value = parsed;
  return true;
}

}  // namespace skillet
