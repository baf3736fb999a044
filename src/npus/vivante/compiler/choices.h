// The values that the tuning leaves open for each operation. lower.cpp and tile.cpp implement them.
// Called by driver.cpp (lists them), lower.cpp (whether one applies).
// Must not know: which value is better.
#pragma once

#include <vector>

#include "base/result.h"
#include "npus/vivante/compiler/operations.h"
#include "npus/vivante/compiler/support.h"
#include "npus/vivante/compiler/tuning.h"

namespace skillet::npus::vivante {

// The names, as rows of tuning.def. Values: 1; number of groups; number of rows.
constexpr std::string_view kFirstPixel = "first_pixel", kChannelGroups = "channel_groups", kTileRows = "tile_rows";

Result<std::vector<npu::Choice>> choices(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning);

// Whether a convolution with stride 2 for which stride_method() has a TP job can do without that job.
bool may_keep_first_pixel(const hw::ChipRow& chip, const ConvShape& shape);
// Whether depthwise kernels that are written out can be divided into `parts` jobs.
bool may_divide_channels(const hw::ChipRow& chip, const Kernels& kernels, int32_t parts);

}  // namespace skillet::npus::vivante
