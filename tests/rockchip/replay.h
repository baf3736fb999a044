// Runs jobs recorded from a driver that works on silicon on the simulator, and compares the results with TensorFlow
// Lite. This shows that the simulator computes what the jobs mean.
// Called by skillet_golden and the tests.
// Must not know: our drivers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "npus/rockchip/sim/options.h"
#include "replay_row.h"

namespace skillet::rockchip_replay {

using golden::ReplayClass;

// A row named "set/case" or "set/case op 3 CONV_2D"; its reason is the recorded driver's known error in that case.
struct Row : golden::ReplayRow {
  // For fused additions: the largest difference where the convolution's own output is inside the range of bytes.
  int max_unclamped_difference = 0;
};

struct CaseRows {
  Row final;              // the graph's outputs, including operations that the recorded driver left to the CPU
  std::vector<Row> each;  // each recorded operation against the reference kernel on the same inputs
};

// Replays DIR/rk3588/SET/CASE (capture) against DIR/cases/SET/CASE (case).
CaseRows replay_case(const std::string& dir, const std::string& name, const sim::rockchip::Options& options);
// The same for skillet_golden: a row for the graph's outputs, and for whole networks a row for each operation.
std::vector<golden::ReplayRow> simulate_case(const std::string& dir, const std::string& chip, const std::string& name);
// All cases of DIR/rk3588, in order of their names. Error when there are none.
Result<std::vector<CaseRows>> replay_all(const std::string& dir, const sim::rockchip::Options& options);

}  // namespace skillet::rockchip_replay
