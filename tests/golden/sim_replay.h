// Runs recorded jobs of a driver that is known to work on silicon on our simulator, and compares the results with
// TensorFlow Lite: the proof that the simulator computes what the jobs mean.
// Called by skillet_golden and the golden tests.
// Must not know: our drivers.
#pragma once

#include <string>
#include <vector>

#include "replay_row.h"

namespace skillet::golden {

// One row for DIR/CHIP/SET/CASE (capture) with DIR/cases/SET/CASE (case); for a whole network also one row per layer.
std::vector<ReplayRow> simulate_case(const std::string& dir, const std::string& chip, const std::string& name);

}  // namespace skillet::golden
