#include "npu/steps_off.h"

#include <algorithm>
#include <array>

namespace skillet::npu {

bool moves_bytes(const ir::Graph& graph, const ir::Op& op) {
  using ir::OpKind;
  constexpr std::array kMoves = {OpKind::concatenation,
                                 OpKind::split,
                                 OpKind::split_v,
                                 OpKind::pad,
                                 OpKind::reshape,
                                 OpKind::squeeze,
                                 OpKind::expand_dims,
                                 OpKind::transpose,
                                 OpKind::slice,
                                 OpKind::strided_slice,
                                 OpKind::resize_nearest_neighbor,
                                 OpKind::depth_to_space,
                                 OpKind::max_pool_2d};
  const ir::Tensor& first = graph.tensor(op.outputs[0]);
  const auto is_alike = [&](ir::TensorId id) {
    if (id < 0) return true;  // optional operand
    const ir::Tensor& other = graph.tensor(id);
    return other.dtype == ir::DType::int32 || other.quant == first.quant;  // axes and sizes are not data
  };
  return std::ranges::count(kMoves, op.kind) != 0 && std::ranges::all_of(op.inputs, is_alike) &&
         std::ranges::all_of(op.outputs, is_alike);
}

int steps_off(const Driver& driver, const Chip& chip, const ir::Graph& graph, ir::OpId op) {
  return moves_bytes(graph, graph.op(op)) ? 0 : driver.tolerance(chip, graph, op);
}

bool is_exact(const Driver& driver, const Chip& chip, const ir::Graph& graph) {
  for (size_t op = 0; op < graph.ops.size(); ++op)
    if (driver.tolerance(chip, graph, static_cast<ir::OpId>(op)) != 0) return false;
  return true;
}

}  // namespace skillet::npu
