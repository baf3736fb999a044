// Rows for nodes of files that are not part of units (float or integer operations), and their helpers.
// Called by import.cpp. Must not know: files.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "frontend/onnx/lowering.h"

namespace skillet::onnx {

std::span<const LowerRow> plain_ops();      // ops_plain.cpp: element by element
std::span<const LowerRow> axis_ops();       // ops_axes.cpp: over axes
std::span<const LowerRow> function_ops();   // ops_functions.cpp: element by element, several operations
std::span<const LowerRow> recurrent_ops();  // ops_recurrent.cpp

// Input 0 and the output, in the layout of the input.
struct InOut {
  Layout layout = Layout::plain;
  std::vector<int32_t> dims;  // dimensions of the input, in the file's order
  ir::TensorId from = ir::kNoTensor, to = ir::kNoTensor;
};
Result<InOut> in_out(Lowering& l, std::optional<Layout> layout = {});

// The attribute `axis`, counted from the front.
Result<int64_t> axis_of(Lowering& l, size_t rank, int64_t otherwise);

Result<void> needs_float(Lowering& l);                                                          // input 0
ir::TensorId number(Lowering& l, float value);                                                  // a constant
ir::TensorId floats(Lowering& l, const std::vector<float>& values, std::vector<int32_t> dims);  // a constant
ir::TensorId like(Lowering& l, ir::TensorId of);  // a tensor with the type and shape of `of`
ir::TensorId arithmetic(Lowering& l, ir::OpKind kind, ir::TensorId a, ir::TensorId b, ir::TensorId to);  // returns `to`

}  // namespace skillet::onnx
