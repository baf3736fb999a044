// Networks of one operation, to find out what the compilers take.
// Called by page.cpp.
// Must not know: chips.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/ir/graph.h"

namespace skillet::support {

enum class Type : uint8_t { uint8, int8, int8_per_channel };  // the last: weights have a scale per channel
constexpr std::array<std::string_view, 3> kTypeNames = {"uint8", "int8", "int8, a scale per channel"};

// Properties of an operation; each kind reads its own fields.
struct Form {
  int batch = 1, height = 16, width = 16, channels = 16;
  int outputs = 16;  // channels or elements of the result
  int kernel = 3, kernel_width = 0, stride = 1, dilation = 1, multiplier = 1;
  bool valid = false;  // no padding
  int amount = 1;      // of padding; or a factor of size, or a number of pieces
  int axis = 3;
  bool constant = false;      // the second operand: a number for each channel
  bool number = false;        // the second operand: one constant number
  bool other_scale = false;   // of the result
  bool other_type = false;    // of the result
  bool half_pixels = false;   // of a resize
  std::vector<int32_t> list;  // a shape, a permutation, sizes
  ir::Activation activation = ir::Activation::none;
};

// Error: no such network exists.
Result<ir::Graph> network(ir::OpKind kind, const Form& form, Type type);

bool has_weights(ir::OpKind kind);

}  // namespace skillet::support
