// Integer helpers used everywhere: ceiling division, alignment, checked products.
// Called by everyone.
// Must not know: anything above base/.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

namespace skillet {

template <typename T>
constexpr T ceil_div(T a, std::type_identity_t<T> b) {
  return static_cast<T>((a + b - 1) / b);
}

// Smallest multiple of `b` that is >= a (any b > 0).
template <typename T>
constexpr T align_up(T a, std::type_identity_t<T> b) {
  return static_cast<T>(ceil_div(a, b) * b);
}

template <typename T>
constexpr bool is_odd(T a) {
  return a % 2 != 0;
}

// a * b, or none if the product exceeds int64.
constexpr std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

}  // namespace skillet
