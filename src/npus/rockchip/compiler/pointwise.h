// The register commands of the DPU alone: bytes from memory, in a row of atoms. Hardware specification A.2, A.3.
// Called by encode.cpp.
// Must not know: graphs, convolutions.
#pragma once

#include "npus/rockchip/compiler/commands.h"
#include "npus/rockchip/compiler/operations.h"

namespace skillet::npus::rockchip {

constexpr int64_t kPointwiseMax = 8176;  // atoms of a task: above 13 bits' maximum the end is damaged (1.3)

struct PointwisePlaces {
  bits::Address input, second, output;
};
// `load`: also loads the table, if no task before did.
Result<Commands> write_pointwise(const Pointwise& work, const PointwisePlaces& at, int64_t atoms, bool load);

}  // namespace skillet::npus::rockchip
