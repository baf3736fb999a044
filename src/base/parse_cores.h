// parse_cores: how many cores of an NPU may share one inference, as text.
// Called by readers of options and of the environment.
// Must not know: what is done with them.
#pragma once

#include <string_view>

#include "base/parse_number.h"

namespace skillet {

constexpr const char* kCoresVariable = "SKILLET_CORES";

constexpr int kMostCores = 64;

// "auto" is 0; otherwise a number from 1. Returns false for other texts.
inline bool parse_cores(std::string_view text, int& value) {
  const int parsed = text == "auto" ? 0 : parse_number<int>(text).value_or(0);
  if ((parsed < 1 && text != "auto") || parsed > kMostCores) return false;
  value = parsed;
  return true;
}

}  // namespace skillet
