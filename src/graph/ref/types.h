// Calls code with the C++ type of a tensor's elements.
// Called by kernels of many types.
// Must not know: operations.
#pragma once

#include "graph/ref/kernel.h"

namespace skillet::ref {

// body(T{}) with the C++ type of `dtype`; an error for types that the kernels do not compute with.
template <typename Body>
Result<KernelPtr> with_type(const Context& c, ir::DType dtype, Body body) {
  switch (dtype) {
    case ir::DType::float32: return body(float{});
    case ir::DType::int8: return body(int8_t{});
    case ir::DType::uint8: return body(uint8_t{});
    case ir::DType::int16: return body(int16_t{});
    case ir::DType::int32: return body(int32_t{});
    case ir::DType::uint32: return body(uint32_t{});
    case ir::DType::int64: return body(int64_t{});
    case ir::DType::boolean: return body(bool{});
    default: return c.unsupported("type {}", ir::dtype_name(dtype));
  }
}

// The same without bool, for arithmetic.
template <typename Body>
Result<KernelPtr> with_number(const Context& c, ir::DType dtype, Body body) {
  return with_type(c, dtype, [&](auto type) -> Result<KernelPtr> {
    if constexpr (std::is_same_v<decltype(type), bool>) {
      return c.unsupported("type bool");
    } else {
      return body(type);
    }
  });
}

// A boolean is in memory as any byte, of which 0 is false: reading it as bool would be undefined.
template <typename T>
T load_value(std::span<const uint8_t> bytes, size_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return bytes[i] != 0;
  } else {
    return load_element<T>(bytes, i);
  }
}

}  // namespace skillet::ref
