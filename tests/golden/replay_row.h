// The result of a recorded job on a simulator.
// Called by the replayers of the families and by skillet_golden.
// Must not know: any single family.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace skillet::golden {

enum class ReplayClass : uint8_t {
  exact,           // every element equal
  within_1,        // no element differs by more than 1
  worse,           // some element differs by more
  not_comparable,  // ran, or has no job; `reason`: why there is nothing to compare
  fault,           // the simulator refused the jobs, or the case could not be read
};
std::string_view replay_class_name(ReplayClass result);

struct ReplayRow {
  std::string name;  // "set/case", or "set/case:3" for a layer of a network
  ReplayClass result = ReplayClass::fault;
  int64_t elements = 0, differing = 0;
  int max_difference = 0;
  std::string reason;
  uint64_t output_hash = 0;  // of the simulated output; 0: none, or not kept
  double simulated_ms = 0;
  // Assumptions of the simulator that the weights it reads depend on.
  std::set<std::string> rests_on = {};
};

// Returns the rows of DIR/CHIP/SET/CASE (capture) with DIR/cases/SET/CASE (case).
using SimulateCase = std::vector<ReplayRow> (*)(const std::string& dir, const std::string& chip,
                                                const std::string& name);

}  // namespace skillet::golden
