// What the tuning leaves open for each operation: which values there are. What each does is lower.cpp's and tile.cpp's.
// Called by driver.cpp (lists them), lower.cpp (whether one applies).
// Must not know: what is better.
#pragma once

#include <vector>

#include "base/result.h"
#include "npus/vivante/compiler/operations.h"
#include "npus/vivante/compiler/support.h"
#include "npus/vivante/compiler/tuning.h"

namespace skillet::npus::vivante {

// The names, as rows of tuning.def. Values: 1; how many groups; how many rows.
constexpr std::string_view kFirstPixel = "first_pixel", kChannelGroups = "channel_groups", kTileRows = "tile_rows";

Result<std::vector<npu::Choice>> choices(const hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning);

// Whether a convolution with stride 2, for which stride_method() has a TP job, may do without.
bool may_keep_first_pixel(const hw::ChipRow& chip, const ConvShape& shape);
// Whether depthwise kernels that are written out may be so many jobs.
bool may_divide_channels(const hw::ChipRow& chip, const Kernels& kernels, int32_t parts);

}  // namespace skillet::npus::vivante
