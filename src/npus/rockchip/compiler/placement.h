// Where bytes are: layouts, and what needs no operation of its own: PAD that convolutions do, pieces that are written
// where they are joined.
// Called by lower.cpp, encode.cpp.
// Must not know: memory, tasks, registers.
#pragma once

#include <optional>
#include <vector>

#include "npus/rockchip/compiler/tuning.h"
#include "npus/rockchip/compiler/window.h"
#include "npus/rockchip/hw/rockchip.h"

namespace skillet::npus::rockchip {

// The layout of a tensor's bytes at its place, and of what: blocks are a shape of their own of the same bytes.
npu::TensorLayout layout_of(const ir::Tensor& tensor, Form form, const Tuning& tuning);
npu::ImageShape shape_at_place(const ir::Tensor& tensor, Form form);

// A tensor within another one, which may be within a third; or beside the other operand of a sum.
struct Home {
  ir::TensorId whole = ir::kNoTensor;
  int32_t first_channel = 0;
  ir::OpId sum = -1;
  int32_t operand = 0;
};

struct Placement {
  std::vector<std::optional<PadAmounts>> folded;  // by tensor: it is never formed, its readers pad by so much
  std::vector<std::optional<Home>> homes;         // by tensor
  std::vector<Form> forms;                        // by tensor: of inputs
  std::vector<ir::OpId> fused;  // by op: of an ADD the convolution that may do it too, and back; -1. None if `keep`
};
// The graph input that the convolution alone reads, through a PAD that it does itself and through what keeps_bytes()
// too: such an input may be as the convolution wants it. None: there is none.
ir::TensorId own_input(const ir::Graph& graph, const Placement& placement, const Tuning& tuning, ir::OpId conv);
// A QUANTIZE whose result is its operand, where that is: signed tensors are unsigned ones with 128 added (5.6).
bool keeps_bytes(const ir::Graph& graph, const ir::Op& op, const Tuning& tuning);

// RK3576: a PADV2 with the lowest byte that MAX_POOL_2D alone reads: the pooling unit pads with it.
std::optional<PadAmounts> pads_of_maxima(const ir::Graph& graph, const ir::Op& op);

Placement plan_placement(const ::skillet::rockchip::hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning,
                         bool keep);

}  // namespace skillet::npus::rockchip
