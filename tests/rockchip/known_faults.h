// Known errors of the recorded driver, recognised from the model and its program: the reasons why a recorded job cannot
// give the right result. Source: hardware specification, sections 4, 5, 7, 8 and 10.
// Called by replay.cpp.
// Must not know: results.
#pragma once

#include <span>
#include <string>

#include "taken_ops.h"

namespace skillet::rockchip_replay {

// The known fault that affects clamped elements only.
inline constexpr const char* kLostClamp = "the fused convolution is not clamped before the addition";

// Returns the faults that apply to the operation, joined; empty if there are none, so that its result must be right.
// `is_second_operand`: a fused addition reads its output. `alone`: the convolution's own output, from the reference
// kernel.
std::string known_faults(const ir::Graph& graph, const Taken& taken, bool is_second_operand,
                         std::span<const uint8_t> alone);

}  // namespace skillet::rockchip_replay
