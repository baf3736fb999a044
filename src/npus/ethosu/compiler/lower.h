// Lowers operations of the graph to operations of the chip, or gives the reason why the chip does not support one.
// Called by support.cpp and own_program.cpp.
// Must not know: registers, where tensors are in memory.
#pragma once

#include "npu/support.h"
#include "npus/ethosu/compiler/operations.h"

namespace skillet::npus::ethosu {

struct Lowered {
  npu::Support support;
  std::vector<Operation> operations;
  std::vector<uint64_t> scratch_bytes;  // bytes of tensors between operations, with ids after the graph's
  bool is_same_memory = false;          // output and input are the same bytes

  Lowered(npu::Support no) : support(std::move(no)) {}                   // NOLINT: implicit, like an error
  Lowered(std::vector<Operation> made) : operations(std::move(made)) {}  // NOLINT
};
Lowered lower(const ir::Graph& graph, ir::OpId op);

// Ok for 8 bits with one scale; else the reason why not.
npu::Support is_quantized(const ir::Tensor& tensor);
// The same, and int16 with zero point 0.
npu::Support is_activation(const ir::Tensor& tensor);
inline bool is_moved(ir::DType type) { return ir::is_8bit(type) || type == ir::DType::int16; }
// A tensor as an image with these rows, columns and channels.
Map dense_map(const ir::Graph& graph, ir::TensorId tensor, int64_t height, int64_t width, int64_t depth);
// The whole tensor; nothing if it is too large.
std::optional<Map> whole_of(const ir::Graph& graph, ir::TensorId tensor);
// True if the map's rows are whole rows of the tensor: all of them, or a stripe.
bool has_whole_rows(const ir::Graph& graph, const Map& map);
// Empty if there is no bias.
std::vector<int64_t> bias_values(const ir::Graph& graph, ir::TensorId bias);
void set_type_range(const ir::Tensor& tensor, Operation& operation);
npu::Support set_limits(ir::Activation activation, const ir::Tensor& output, Operation& operation);
npu::Support too_large(const ir::Tensor& tensor);
npu::Support too_steep(const ir::Tensor& output);
constexpr int kLeftMax = 20;  // left shift of a result: sums of bytes fit in 32 bits

// Ops that join, split and pad (moves.cpp).
bool is_move(ir::OpKind kind);
Lowered lower_move(const ir::Graph& graph, ir::OpId op);
Lowered lower_softmax(const ir::Graph& graph, ir::OpId op);
bool is_pair(ir::OpKind kind);  // has two inputs, element by element
Lowered lower_pair(const ir::Graph& graph, ir::OpId op);
bool is_function(ir::OpKind kind);  // elementwise, one operand
Lowered lower_function(const ir::Graph& graph, ir::OpId op);
bool is_resize(ir::OpKind kind);
Lowered lower_resize(const ir::Graph& graph, ir::OpId op);
Lowered lower_reduction(const ir::Graph& graph, ir::OpId op);
// Rounds half away from zero; exact for all sums of bytes.
Scale scale_of_average(uint32_t count);
// Restricts the operation to these output channels of its filter, bias and scales; the caller sets the output's place.
void take_channels(uint32_t first, uint32_t depth, Operation& operation);
// Copies bytes between maps of one type.
Operation make_copy(ir::OpId op, Map from, Map to);

}  // namespace skillet::npus::ethosu
