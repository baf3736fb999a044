// Operations of the graph as operations of the chip, or why it does not take one.
// Called by support.cpp and program.cpp.
// Must not know: registers, where tensors are in memory.
#pragma once

#include "npu/support.h"
#include "npus/ethosu/compiler/operations.h"

namespace skillet::npus::ethosu {

struct Lowered {
  npu::Support support;
  std::vector<Operation> operations;
  std::vector<uint64_t> scratch_bytes;  // of what operations have between them: tensors behind those of the graph
  bool is_same_memory = false;          // the output is the input, byte by byte

  Lowered(npu::Support no) : support(std::move(no)) {}                   // NOLINT: implicit, as an error is
  Lowered(std::vector<Operation> made) : operations(std::move(made)) {}  // NOLINT
};
Lowered lower(const ir::Graph& graph, ir::OpId op);

// 8 bits of one scale. Not ok: why it is none of that.
npu::Support is_quantized(const ir::Tensor& tensor);
// That, or int16 whose zero point is 0.
npu::Support is_activation(const ir::Tensor& tensor);
inline bool is_moved(ir::DType type) { return ir::is_8bit(type) || type == ir::DType::int16; }
// A tensor as an image of these rows, columns and channels.
Map dense_map(const ir::Graph& graph, ir::TensorId tensor, int64_t height, int64_t width, int64_t depth);
// The whole of a tensor; nothing where it is too large.
std::optional<Map> whole_of(const ir::Graph& graph, ir::TensorId tensor);
// Rows of the tensor as that has them: all, or a stripe.
bool has_whole_rows(const ir::Graph& graph, const Map& map);
// Nothing where there is none.
std::vector<int64_t> bias_values(const ir::Graph& graph, ir::TensorId bias);
void set_type_range(const ir::Tensor& tensor, Operation& operation);
npu::Support set_limits(ir::Activation activation, const ir::Tensor& output, Operation& operation);
npu::Support too_large(const ir::Tensor& tensor);
npu::Support too_steep(const ir::Tensor& output);
constexpr int kLeftMax = 20;  // bits to the left of a result: sums of a byte stay within 32

// What joins, cuts and pads (moves.cpp).
bool is_move(ir::OpKind kind);
Lowered lower_move(const ir::Graph& graph, ir::OpId op);
Lowered lower_softmax(const ir::Graph& graph, ir::OpId op);
bool is_pair(ir::OpKind kind);  // has two inputs, element by element
Lowered lower_pair(const ir::Graph& graph, ir::OpId op);
bool is_function(ir::OpKind kind);  // of one element
Lowered lower_function(const ir::Graph& graph, ir::OpId op);
bool is_resize(ir::OpKind kind);
Lowered lower_resize(const ir::Graph& graph, ir::OpId op);
Lowered lower_reduction(const ir::Graph& graph, ir::OpId op);
// Half away from zero, and exact for all sums of bytes.
Scale scale_of_average(uint32_t count);
// Of the output's channels, of its filter, bias and scales these; where the output is, is the caller's.
void take_channels(uint32_t first, uint32_t depth, Operation& operation);
// Input bytes are the output's, of one type.
Operation make_copy(ir::OpId op, Map from, Map to);

}  // namespace skillet::npus::ethosu
