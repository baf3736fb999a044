// The checks of tensors, windows and scales that support.cpp uses for all operations.
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

constexpr float kScaleMin = 0x1p-60F, kScaleMax = 0x1p60F;  // products of two are still floats

// The default tuning of the chip.
const Tuning& proven(const hw::ChipRow& chip);

npu::Support takes(const ir::Tensor& tensor);
// The refusal of an operation that no program computes; names the type of its tensors if that is the reason.
npu::Support no_program(const ir::Graph& graph, ir::OpId id);
npu::Support fits(const hw::ChipRow& chip, const Window& w);
// Operations that treat all bytes alike take any shape.
npu::Support fits_flat(const ir::Tensor& tensor);
npu::Support keeps_values(const ir::Tensor& from, const ir::Tensor& to);
npu::Support same_types(const ir::Tensor& a, const ir::Tensor& b);
npu::Support takes_gain(double gain);
npu::Support takes_activation(ir::Activation activation);
// The first refusal; else the first that is unproven; else yes.
npu::Support all_of(const std::vector<npu::Support>& parts);

}  // namespace skillet::npus::rockchip
