// Weights with several scales: the chip has one scale per job, so each group of output channels with one scale is a
// separate job; the groups' planes follow each other in memory. Called by support.cpp (how many groups there may be)
// and lower.cpp. Must not know: why channels share scales (graph/passes/), bit positions.
#pragma once

#include <span>
#include <vector>

#include "npus/vivante/compiler/operations.h"

namespace skillet::npus::vivante {

// Largest number of jobs for one operation. Each reads the whole input again; with more a CPU is as fast.
constexpr size_t kMaxChannelGroups = 32;

struct ChannelGroup {
  float scale = 1;                // of the weights
  std::vector<int32_t> channels;  // of the output, ascending
};
// Groups by the filter's scales, the largest first. `channels`: number of output channels, also if there is one scale.
std::vector<ChannelGroup> channel_groups(const ir::Quant& filter, int32_t channels);

// The channel of a tensor in each plane; empty: plane i holds channel i.
using PlaneOrder = std::vector<int32_t>;
PlaneOrder plane_order(std::span<const ChannelGroup> groups);

// Kernels of some output channels, for an input with channels in another order. `all` have no bands.
Kernels select_kernels(const Kernels& all, std::span<const int32_t> outputs, const PlaneOrder& input_order);

// 1x1 kernels that sort planes by channel: exact copies at scale 1.
Kernels sorting_kernels(const PlaneOrder& order, int32_t pixel_center, uint8_t zero_point);

}  // namespace skillet::npus::vivante
