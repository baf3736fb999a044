// What the tuning leaves open for each operation: which values there are. What each does is conv.cpp's, pooling.cpp's
// and tile.cpp's. Called by driver.cpp (lists them), conv.cpp and pooling.cpp (whether one applies).
// Must not know: what is better.
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
// Of a depthwise filter, the channels beyond groups of 64 on their own. Nothing: there are none or more than a direct
// convolution does at once, or the chip would not take them, or not as proven.
std::optional<Window> dense_rest(const ::skillet::rockchip::hw::ChipRow& chip, const Window& w);
bool may_be_flat(const Window& w);
// Of a convolution with stride 2: the same over blocks of 2x2 pixels. Nothing: it cannot be, or the chip would not take
// that, or not as proven.
std::optional<Window> over_blocks(const ::skillet::rockchip::hw::ChipRow& chip, const Window& w);

}  // namespace skillet::npus::rockchip
