// The golden case that belongs to a recorded job, even if its inputs were not kept.
// Called by sim_replay.cpp and sim_layers.cpp.
// Must not know: captures, simulators.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "golden_case.h"

namespace skillet::golden {

struct ReplayCase {
  GoldenCase golden;
  bool inputs_recorded = true;  // false: neither a file nor a generator; we made the inputs

  std::string name() const { return golden.set + "/" + golden.name; }
  bool has_op(std::string_view op) const;
  bool has_signed_output() const { return !golden.outputs.empty() && golden.outputs[0].type == "INT8"; }
};

// `name` is "set/case".
Result<ReplayCase> read_replay_case(const std::string& dir, const std::string& name);

}  // namespace skillet::golden
