// The register commands of one task. Hardware specification 3.2, 4.2.
// Called by encode.cpp.
// Must not know: graphs, how weights are stored.
#pragma once

#include "npus/rockchip/compiler/commands.h"
#include "npus/rockchip/compiler/tile.h"
#include "npus/rockchip/compiler/tuning.h"

namespace skillet::npus::rockchip {

// Where a task's operands are: buffers of the program.
struct TaskPlaces {
  bits::Address input, output, second, weights, operands;
  bits::Address shifts{};  // where the packing has a shift word
};

// The task that follows in a chain.
struct NextTask {
  bits::Address commands;
  uint32_t count = 0;
};
constexpr uint32_t kCommandsPerTask = 130;
// Writes all registers that a convolution depends on, since they keep their values from task to task. `chained`: each
// list points to the next, as recorded; the last has no `next`.
Result<Commands> write_commands(const Conv& conv, const Geometry& g, const Task& task, const TaskPlaces& places,
                                const Tuning& tuning, const NextTask* next, bool chained);

}  // namespace skillet::npus::rockchip
