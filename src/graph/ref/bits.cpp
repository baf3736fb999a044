// BITWISE_XOR, RIGHT_SHIFT; and ATAN2.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ref/elementwise.h"

namespace skillet::ref {
namespace {

template <typename F>
Result<KernelPtr> of_integers(const Context& c, F f) {
  return elementwise_of<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t>(c, f);
}

}  // namespace

Result<KernelPtr> prepare_bitwise_xor(const Context& c) {
  return of_integers(c, [](auto x, auto y) { return static_cast<decltype(x)>(x ^ y); });
}

// Shifts by more than the type's bits are limited to all bits but one; negative shifts count as 0.
Result<KernelPtr> prepare_right_shift(const Context& c) {
  return of_integers(c, [](auto x, auto y) {
    using T = decltype(x);
    constexpr int64_t kMost = sizeof(T) * 8 - 1;
    return static_cast<T>(x >> std::clamp<int64_t>(y, 0, kMost));
  });
}

Result<KernelPtr> prepare_atan2(const Context& c) {
  return elementwise_of<float>(c, [](float y, float x) { return std::atan2(y, x); });
}

}  // namespace skillet::ref
