// Runs jobs recorded from a driver that works on silicon on our simulator, and compares the results with TensorFlow
// Lite. This shows that the simulator computes what the jobs mean.
// Called by skillet_golden and the golden tests.
// Must not know: our drivers.
#pragma once

#include <string>
#include <vector>

#include "replay_row.h"

namespace skillet::golden {

// Returns one row for DIR/CHIP/SET/CASE (capture) with DIR/cases/SET/CASE (case); for a whole network also one per
// layer.
std::vector<ReplayRow> simulate_case(const std::string& dir, const std::string& chip, const std::string& name);

}  // namespace skillet::golden
