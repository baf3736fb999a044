// Arguments of a soak: the options that all soaks have, and words of its own.
// Called by main() of soaks. Must not know: chips.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace skillet::soak {

struct Arguments {
  uint32_t seed = 1;
  double seconds = 30;  // of CPU time
  std::vector<std::string> words;

  Arguments(int argc, char** argv) : words(argv + 1, argv + argc) {
    if (const auto value = take("--seed")) seed = static_cast<uint32_t>(std::strtoul(value->c_str(), nullptr, 10));
    if (const auto value = take("--seconds")) seconds = std::strtod(value->c_str(), nullptr);
  }

  // Removes "OPTION VALUE" from the words and returns the value.
  std::optional<std::string> take(const std::string& option) {
    const auto at = std::ranges::find(words, option);
    if (at == words.end() || at + 1 == words.end()) return std::nullopt;
    std::string value = *(at + 1);
    words.erase(at, at + 2);
    return value;
  }

  bool take_flag(const std::string& option) { return std::erase(words, option) != 0; }
};

}  // namespace skillet::soak
