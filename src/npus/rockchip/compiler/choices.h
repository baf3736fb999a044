// The values that the tuning leaves open for each operation. conv.cpp, pooling.cpp and tile.cpp implement them.
// Called by driver.cpp (lists them), conv.cpp and pooling.cpp (whether one applies).
// Must not know: which value is better.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "npus/rockchip/compiler/tuning.h"
#include "npus/rockchip/compiler/window.h"
#include "npus/rockchip/hw/rockchip.h"

namespace skillet::npus::rockchip {

// The names, as rows of tuning.def. Values: 1, 1, 1, 1, and those of Conv::division.
constexpr std::string_view kDenseDepthwise = "dense_depthwise", kDenseRest = "dense_rest",
                           kInputBlocks = "input_blocks", kFlatAverage = "flat_average",
                           kTaskDivision = "task_division";

Result<std::vector<npu::Choice>> choices(const ::skillet::rockchip::hw::ChipRow& chip, const ir::Graph& graph,
                                         const Tuning& tuning);

bool may_be_dense(const Window& w);
// The channels of a depthwise filter after the last whole group of 64, as a convolution of their own. Nothing: there
// are no such channels, or more than a direct convolution does at once, or the chip does not take it, or not as proven.
std::optional<Window> dense_rest(const ::skillet::rockchip::hw::ChipRow& chip, const Window& w);
bool may_be_flat(const Window& w);
// A convolution with stride 2 as one over blocks of 2x2 pixels. Nothing: it has no such form, or the chip does not take
// it, or not as proven.
std::optional<Window> over_blocks(const ::skillet::rockchip::hw::ChipRow& chip, const Window& w);

}  // namespace skillet::npus::rockchip
