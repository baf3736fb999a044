#include "graph/ir/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace skillet::ir {

int64_t Shape::elems() const {
  int64_t product = 1;
  for (int32_t dim : dims) product *= dim;
  return product;
}

std::string Shape::to_string() const { return dims.empty() ? "scalar" : fmt::format("{}", fmt::join(dims, "x")); }

}  // namespace skillet::ir
