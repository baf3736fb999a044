// Programs of the RK3576's vendor compiler, with their own weights and coefficients, on the simulator, against the
// float model. Called by skillet_golden. Must not know: how programs are encoded.
#pragma once

#include "npu/driver.h"
#include "replay_row.h"

namespace skillet::golden {

// Returns a row for each operation, and for each core with its own programs for it ("set/case:2 core 1").
std::vector<ReplayRow> run_vendor_case(const std::string& dir, const npu::Chip& chip, const std::string& name);

}  // namespace skillet::golden
