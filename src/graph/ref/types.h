// Calls code with the C++ type of a tensor's elements.
// Called by kernels of many types.
// Must not know: operations.
#pragma once

#include "graph/ref/kernel.h"

namespace skillet::ref {

// The element type of a C++ type.
template <typename T>
inline constexpr ir::DType kTypeOf = ir::DType::variant;
template <>
inline constexpr ir::DType kTypeOf<float> = ir::DType::float32;
template <>
inline constexpr ir::DType kTypeOf<int8_t> = ir::DType::int8;
template <>
inline constexpr ir::DType kTypeOf<uint8_t> = ir::DType::uint8;
template <>
inline constexpr ir::DType kTypeOf<int16_t> = ir::DType::int16;
template <>
inline constexpr ir::DType kTypeOf<uint16_t> = ir::DType::uint16;
template <>
inline constexpr ir::DType kTypeOf<int32_t> = ir::DType::int32;
template <>
inline constexpr ir::DType kTypeOf<uint32_t> = ir::DType::uint32;
template <>
inline constexpr ir::DType kTypeOf<int64_t> = ir::DType::int64;
template <>
inline constexpr ir::DType kTypeOf<bool> = ir::DType::boolean;

// Calls body(T{}) with the T of `dtype`; an error if T is not one of Ts.
template <typename... Ts, typename Body>
Result<KernelPtr> with_one_of(const Context& c, ir::DType dtype, Body body) {
  Result<KernelPtr> made = c.unsupported("type {}", ir::dtype_name(dtype));
  const auto try_one = [&](auto type) {
    if (kTypeOf<decltype(type)> != dtype) return false;
    made = body(type);
    return true;
  };
  static_cast<void>((try_one(Ts{}) || ...));
  return made;
}

// The same for all types that have arithmetic.
template <typename Body>
Result<KernelPtr> with_number(const Context& c, ir::DType dtype, Body body) {
  return with_one_of<float, int8_t, uint8_t, int16_t, int32_t, uint32_t, int64_t>(c, dtype, body);
}

// The same, with booleans.
template <typename Body>
Result<KernelPtr> with_type(const Context& c, ir::DType dtype, Body body) {
  return dtype == ir::DType::boolean ? Result<KernelPtr>(body(bool{})) : with_number(c, dtype, body);
}

// A boolean is stored as any byte, of which 0 is false: reading it as bool would be undefined.
template <typename T>
T load_value(std::span<const uint8_t> bytes, size_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return bytes[i] != 0;
  } else {
    return load_element<T>(bytes, i);
  }
}

}  // namespace skillet::ref
