// Runs recorded jobs of a driver that is known to work on silicon on the simulator, and compares the results with
// TensorFlow Lite: the proof that the simulator computes what the jobs mean.
// Called by skillet_rockchip_replay and the tests.
// Must not know: our drivers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/rockchip/options.h"

namespace skillet::rockchip_replay {

enum class Outcome : uint8_t {
  exact,           // every element equal
  within_1,        // no element differs by more than 1
  worse,           // some element does
  not_comparable,  // ran; `reason` says why there is nothing to compare
  fault,           // the simulator refused a task or it stalled, or the case could not be read
};
std::string_view outcome_name(Outcome outcome);

struct Row {
  std::string name;  // "set/case", or "set/case op 3 CONV_2D"
  Outcome outcome = Outcome::fault;
  int64_t elements = 0, differing = 0;
  int max_difference = 0;
  // Fused additions: the same where the convolution alone is inside the range of bytes.
  int max_unclamped_difference = 0;
  std::string reason;  // what the recorded driver gets wrong here; of faults, the message
  double simulated_ms = 0;
};

struct CaseRows {
  Row final;              // the graph's outputs, operations that the recorded driver left to the CPU included
  std::vector<Row> each;  // each recorded operation against the reference kernel on the inputs that it had
};

// DIR/rk3588/SET/CASE (capture) with DIR/cases/SET/CASE (case).
CaseRows replay_case(const std::string& dir, const std::string& name, const sim::rockchip::Options& options);
// All cases of DIR/rk3588, in order of their names. Error when there are none.
Result<std::vector<CaseRows>> replay_all(const std::string& dir, const sim::rockchip::Options& options);

}  // namespace skillet::rockchip_replay
