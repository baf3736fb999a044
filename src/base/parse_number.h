// parse_number: a text that is a number and nothing else.
// Called by readers of options, of the environment and of files.
// Must not know: what is counted.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <type_traits>

namespace skillet {

// Nothing: it is no number, something stands beside it, or T does not hold it. Before digits of base 16 no 0x.
template <typename T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  T value{};
  const char* const end = text.data() + text.size();
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<T>)
    read = std::from_chars(text.data(), end, value);
  else
    read = std::from_chars(text.data(), end, value, base);
  return read.ec == std::errc{} && read.ptr == end ? std::optional(value) : std::nullopt;
}

}  // namespace skillet
