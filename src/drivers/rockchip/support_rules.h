// What support.cpp asks of tensors, windows and scales, whatever the operation.
// Called by support.cpp. Must not know: operations, registers.
#pragma once

#include <vector>

#include "driver/support.h"
#include "drivers/rockchip/hw/rockchip.h"
#include "drivers/rockchip/window.h"
#include "ir/graph.h"

namespace skillet::drivers::rockchip {

namespace hw = ::skillet::rockchip::hw;

constexpr float kScaleMin = 0x1p-60F, kScaleMax = 0x1p60F;  // products of two are floats too

driver::Support takes(const ir::Tensor& tensor);
driver::Support fits(const hw::ChipRow& chip, const Window& w);
// What treats all bytes alike takes any shape.
driver::Support fits_flat(const ir::Tensor& tensor);
driver::Support keeps_values(const ir::Tensor& from, const ir::Tensor& to);
driver::Support same_types(const ir::Tensor& a, const ir::Tensor& b);
driver::Support takes_gain(double gain);
driver::Support takes_activation(ir::Activation activation);
// The first refusal; else what is unproven, else yes.
driver::Support all_of(const std::vector<driver::Support>& parts);

}  // namespace skillet::drivers::rockchip
