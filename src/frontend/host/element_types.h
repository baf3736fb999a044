// Element types by TensorFlow Lite's numbers (TfLiteType).
// Called where graphs of such hosts are read. Must not know: hosts' structs.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "graph/ir/dtype.h"

namespace skillet::host {

// None: an unknown type.
inline std::optional<ir::DType> element_type(int number) {
  using ir::DType;
  constexpr std::array kTypes = {
      DType::variant, DType::float32, DType::int32,      DType::uint8,     DType::int64,
      DType::string,  DType::boolean, DType::int16,      DType::complex64, DType::int8,
      DType::float16, DType::float64, DType::complex128, DType::uint64,    DType::resource,
      DType::variant, DType::uint32,  DType::uint16,     DType::int4,      DType::bfloat16,
  };
  if (number <= 0 || static_cast<size_t>(number) >= kTypes.size()) return std::nullopt;  // 0 is "no type"
  return kTypes[static_cast<size_t>(number)];
}

}  // namespace skillet::host
