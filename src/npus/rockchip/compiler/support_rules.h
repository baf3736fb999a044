// What support.cpp asks of tensors, windows and scales, whatever the operation.
// Called by support.cpp. Must not know: operations, registers.
#pragma once

#include <vector>

#include "graph/ir/graph.h"
#include "npu/support.h"
#include "npus/rockchip/compiler/tuning.h"
#include "npus/rockchip/compiler/window.h"
#include "npus/rockchip/hw/rockchip.h"

namespace skillet::npus::rockchip {

namespace hw = ::skillet::rockchip::hw;

constexpr float kScaleMin = 0x1p-60F, kScaleMax = 0x1p60F;  // products of two are floats too

// What the chip gets where nobody chooses otherwise.
const Tuning& proven(const hw::ChipRow& chip);

npu::Support takes(const ir::Tensor& tensor);
// Of a kind of operation that no program computes; where none of its tensors has 8 bits and that is why, it says so.
npu::Support no_program(const ir::Graph& graph, ir::OpId id);
npu::Support fits(const hw::ChipRow& chip, const Window& w);
// What treats all bytes alike takes any shape.
npu::Support fits_flat(const ir::Tensor& tensor);
npu::Support keeps_values(const ir::Tensor& from, const ir::Tensor& to);
npu::Support same_types(const ir::Tensor& a, const ir::Tensor& b);
npu::Support takes_gain(double gain);
npu::Support takes_activation(ir::Activation activation);
// The first refusal; else what is unproven, else yes.
npu::Support all_of(const std::vector<npu::Support>& parts);

}  // namespace skillet::npus::rockchip
