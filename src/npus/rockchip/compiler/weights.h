// Weights and per-channel operands as the chip reads them. Hardware specification 5.3, 5.4, 5.7.
// Called by encode.cpp.
// Must not know: graphs, registers, memory.
#pragma once

#include "base/bytes.h"
#include "npus/rockchip/compiler/tile.h"

namespace skillet::npus::rockchip {

// Appends all kernels, group after group. Those of a task begin at weights_offset().
void pack_weights(const Conv& conv, const Geometry& g, const Tuning& tuning, Bytes& out);
uint64_t weights_offset(const Conv& conv, const Geometry& g, const Task& task, const Tuning& tuning);
// The bytes that the recorded driver reserves for weights.
uint64_t recorded_weights_room(const Conv& conv);

// Appends what is added to each channel's sum; with multipliers, groups of eight channels of all operands.
void pack_operands(const Conv& conv, const Geometry& g, const Tuning& tuning, Bytes& out);
uint64_t operands_offset(const Conv& conv, const Task& task, const Tuning& tuning);

}  // namespace skillet::npus::rockchip
