// Sizes: access of a row of sizes.cpp to its node; rows of operations with windows or matrices.
// Called by sizes.cpp. Must not know: files.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "frontend/onnx/settle.h"

namespace skillet::onnx {

using Dims = std::vector<int64_t>;

constexpr int64_t kMostSize = int64_t{1} << 31;

inline Error misfit(std::string_view what) { return error(ErrorCode::malformed, "{}", what); }

// A row's access to its node. Reading an unknown size sets `unknown`, and the row then returns nothing.
struct Sizes {
  Model& model;
  const Node& node;
  bool unknown = false;
  const Dims nothing = {};

  int id(size_t i) const { return i < node.inputs.size() ? node.inputs[i] : kNone; }
  const Dims& in(size_t i) {
    const bool known = id(i) != kNone && model.value(id(i)).dims &&
                       std::ranges::all_of(*model.value(id(i)).dims, [](int64_t dim) { return dim >= 0; });
    unknown |= !known;
    return known ? *model.value(id(i)).dims : nothing;
  }
  // Numbers of an attribute, or of an input.
  std::optional<Dims> list(const char* attribute, size_t i) {
    if (node.attributes.contains(attribute)) return ints_of(node, attribute);
    if (id(i) == kNone) return std::nullopt;
    auto read = integers(model.value(id(i)));
    unknown |= !read;
    return read;
  }
  Result<size_t> axis(int64_t given, size_t rank) const {
    const auto all = static_cast<int64_t>(rank);
    if (given < -all || given >= all)
      return error(ErrorCode::malformed, "axis {} is outside its {} dimensions", given, rank);
    return static_cast<size_t>(given < 0 ? given + all : given);
  }
};

using Outputs = std::vector<Dims>;
using Rule = Result<Outputs> (*)(Sizes&);

// sizes_windows.cpp
Result<Outputs> conv(Sizes& s);
Result<Outputs> qlinear_conv(Sizes& s);
Result<Outputs> conv_transpose(Sizes& s);
Result<Outputs> pool(Sizes& s);
Result<Outputs> global_pool(Sizes& s);
Result<Outputs> gemm(Sizes& s);
Result<Outputs> qgemm(Sizes& s);
Result<Outputs> matmul(Sizes& s);
Result<Outputs> qlinear_matmul(Sizes& s);

}  // namespace skillet::onnx
