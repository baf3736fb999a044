// Element types of tensors, with their sizes and names.
// Called by everything that touches a tensor.
// Must not know: operations, chips.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

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
  switch (dtype) {
    case DType::int4:
    case DType::int8:
    case DType::uint8:
    case DType::int16:
    case DType::uint16:
    case DType::int32:
    case DType::uint32:
    case DType::int64:
    case DType::uint64: return true;
    default: return false;
  }
}

}  // namespace skillet::ir
