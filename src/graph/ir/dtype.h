// Element types of tensors, with their sizes and names.
// Called by everything that touches a tensor.
// Must not know: operations, chips.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/is_any_of.h"

namespace skillet::ir {

// Values are stable: they appear in program files.
enum class DType : uint8_t {
  float32,
  float16,
  float64,
  int4,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean,
  string,
  complex64,
  complex128,
  resource,
  variant,
  bfloat16,
};

std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
// Bytes of one element; 0 where elements have no fixed byte size (string, int4, resource, variant).
int dtype_bytes(DType dtype);
// True for int8 and uint8 (the types the NPUs work on).
constexpr bool is_8bit(DType dtype) { return dtype == DType::int8 || dtype == DType::uint8; }

// True for the types that affine quantization stores.
constexpr bool is_integer(DType dtype) {
  using enum DType;
  return is_any_of(dtype, {int4, int8, uint8, int16, uint16, int32, uint32, int64, uint64});
}

}  // namespace skillet::ir
