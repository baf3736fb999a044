// Where bytes are: layouts, and operations that need no work of their own: PAD that convolutions do, pieces written
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

// The layout of a tensor's bytes at its place, and their shape: blocks give the same bytes another shape.
npu::TensorLayout layout_of(const ir::Tensor& tensor, Form form, const Tuning& tuning);
npu::ImageShape shape_at_place(const ir::Tensor& tensor, Form form);

// The place of a tensor within another one, which may be within a third; or beside the other operand of a sum.
struct Home {
  ir::TensorId whole = ir::kNoTensor;
  int32_t first_channel = 0;
  ir::OpId sum = -1;
  int32_t operand = 0;
};

struct Placement {
  std::vector<std::optional<PadAmounts>>
      folded;                              // by tensor: its readers pad by this instead; the tensor is never formed
  std::vector<std::optional<Home>> homes;  // by tensor
  std::vector<Form> forms;                 // by tensor: of inputs
  std::vector<ir::OpId> fused;  // by op: for an ADD the convolution that may do it too, and back; -1. None if `keep`
};
// The graph input that only this convolution reads, also through a PAD that it does itself and through keeps_bytes().
// Such an input may have the convolution's preferred form. None: no such input.
ir::TensorId own_input(const ir::Graph& graph, const Placement& placement, const Tuning& tuning, ir::OpId conv);
// Whether the result of a QUANTIZE is its operand, byte for byte: signed tensors are unsigned ones with 128 added
// (5.6).
bool keeps_bytes(const ir::Graph& graph, const ir::Op& op, const Tuning& tuning);

// RK3576: the padding of a PADV2 with the lowest byte that only MAX_POOL_2D reads: the pooling unit pads with it.
std::optional<PadAmounts> pads_of_maxima(const ir::Graph& graph, const ir::Op& op);

Placement plan_placement(const ::skillet::rockchip::hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning,
                         bool keep);

}  // namespace skillet::npus::rockchip
