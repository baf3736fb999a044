// What needs no operation of its own: PAD that convolutions do, pieces that are written where they are joined.
// Called by lower.cpp.
// Must not know: memory, tasks, registers.
#pragma once

#include <optional>
#include <vector>

#include "drivers/rockchip/hw/rockchip.h"
#include "drivers/rockchip/tuning.h"
#include "drivers/rockchip/window.h"

namespace skillet::drivers::rockchip {

// A tensor that lies within another one, which may lie within a third.
struct Home {
  ir::TensorId whole = ir::kNoTensor;
  int32_t first_channel = 0;
};

struct Placement {
  std::vector<std::optional<PadAmounts>> folded;  // by tensor: it is never formed, its readers pad by so much
  std::vector<std::optional<Home>> homes;         // by tensor
};
Placement plan_placement(const ::skillet::rockchip::hw::ChipRow& chip, const ir::Graph& graph, const Tuning& tuning);

}  // namespace skillet::drivers::rockchip
