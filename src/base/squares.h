// Square numbers, for images whose height is their width.
// Called by graph/passes/ and compilers.
// Must not know: anything above base/.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace skillet {

// None: `value` is not the square of an integer.
inline std::optional<int64_t> square_root(int64_t value) {
  const int64_t root = std::llround(std::sqrt(static_cast<double>(value)));
  return root * root == value ? std::optional(root) : std::nullopt;
}

// The fewest equal parts of `value`, at most `parts_max`, that are squares with roots up to `root_max`.
inline std::optional<int64_t> square_parts(int64_t value, int64_t parts_max, int64_t root_max = INT32_MAX) {
  for (int64_t parts = 1; parts <= parts_max; ++parts) {
    if (value % parts != 0) continue;
    if (const auto root = square_root(value / parts); root && *root <= root_max) return parts;
  }
  return std::nullopt;
}

}  // namespace skillet
