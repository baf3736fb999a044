// BITWISE_XOR, RIGHT_SHIFT; and ATAN2.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ref/elementwise.h"

namespace skillet::ref {
namespace {

template <typename F>
Result<KernelPtr> of_integers(const Context& c, F f) {
  switch (c.input(0).dtype) {
    case ir::DType::int8: return elementwise<int8_t>(c, f);
    case ir::DType::uint8: return elementwise<uint8_t>(c, f);
    case ir::DType::int16: return elementwise<int16_t>(c, f);
    case ir::DType::uint16: return elementwise<uint16_t>(c, f);
    case ir::DType::int32: return elementwise<int32_t>(c, f);
    case ir::DType::uint32: return elementwise<uint32_t>(c, f);
    default: return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  }
}

}  // namespace

Result<KernelPtr> prepare_bitwise_xor(const Context& c) {
  return of_integers(c, [](auto x, auto y) { return static_cast<decltype(x)>(x ^ y); });
}

// Shifts beyond the type's bits are by all but one of them, negative ones by none.
Result<KernelPtr> prepare_right_shift(const Context& c) {
  return of_integers(c, [](auto x, auto y) {
    using T = decltype(x);
    constexpr int64_t kMost = sizeof(T) * 8 - 1;
    return static_cast<T>(x >> std::clamp<int64_t>(y, 0, kMost));
  });
}

Result<KernelPtr> prepare_atan2(const Context& c) {
  if (c.input(0).dtype != ir::DType::float32) return c.unsupported("type {}", ir::dtype_name(c.input(0).dtype));
  return elementwise<float>(c, [](float y, float x) { return std::atan2(y, x); });
}

}  // namespace skillet::ref
