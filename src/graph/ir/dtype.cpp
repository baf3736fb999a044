#include "graph/ir/dtype.h"

#include <array>
#include <cstddef>

namespace skillet::ir {
namespace {

struct Row {
  std::string_view name;
  int bytes;
};

// In the order of the enum.
constexpr std::array kRows = {
    Row{"float32", 4},     Row{"float16", 2},  Row{"float64", 8}, Row{"int4", 0},     Row{"int8", 1},
    Row{"int16", 2},       Row{"int32", 4},    Row{"int64", 8},   Row{"uint8", 1},    Row{"uint16", 2},
    Row{"uint32", 4},      Row{"uint64", 8},   Row{"boolean", 1}, Row{"string", 0},   Row{"complex64", 8},
    Row{"complex128", 16}, Row{"resource", 0}, Row{"variant", 0}, Row{"bfloat16", 2},
};
static_assert(kRows.size() == static_cast<size_t>(DType::bfloat16) + 1);

}  // namespace

std::string_view dtype_name(DType dtype) { return kRows[static_cast<size_t>(dtype)].name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int dtype_bytes(DType dtype) { return kRows[static_cast<size_t>(dtype)].bytes; }

}  // namespace skillet::ir
