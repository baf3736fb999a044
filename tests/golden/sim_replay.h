// Runs recorded jobs of a driver that is known to work on silicon on our simulator, and compares the results with
// TensorFlow Lite: the proof that the simulator computes what the jobs mean.
// Called by skillet_golden_sim and the golden tests.
// Must not know: our drivers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace skillet::golden {

enum class ReplayClass : uint8_t {
  exact,           // every element equal
  within_1,        // no element differs by more than 1
  worse,           // some element does
  not_comparable,  // ran, or has no job; `reason` says why there is nothing to compare
  fault,           // the simulator refused the jobs, or the case could not be read
};
std::string_view replay_class_name(ReplayClass result);

struct ReplayRow {
  std::string name;  // "set/case", for networks "set/case op 3 CONV_2D"
  ReplayClass result = ReplayClass::fault;
  int64_t elements = 0, differing = 0;
  int max_difference = 0;
  std::string reason;
  double simulated_ms = 0;
};

// One row for DIR/CHIP/SET/CASE (capture) with DIR/cases/SET/CASE (case), or one row per layer for a whole network.
std::vector<ReplayRow> simulate_case(const std::string& dir, const std::string& chip, const std::string& name);
// All cases of DIR/CHIP, in order of their names. Error when the folder is missing.
Result<std::vector<ReplayRow>> simulate(const std::string& dir, const std::string& chip);

}  // namespace skillet::golden
