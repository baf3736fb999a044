// What a model takes on a chip, predicted, and how that is shown.
// Called by `skillet plan`.
// Must not know: how it was found out.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "compile/report.h"
#include "sim/timing.h"
#include "tools/time/program_timing.h"

namespace skillet::tools {

struct ChipPlan {
  std::string chip, refusal;  // refusal: why there is no time
  ProgramTiming timing;
  std::vector<StateTime> states;    // of what the board has; the first one is `timing`
  uint64_t memory_bytes = 0;        // of the device
  size_t npu_ops = 0, cpu_ops = 0;  // after the passes
  compile::ModelUse use;            // of the model's own
  double cpu_us = 0, cpu_alone_us = -1;
  bool may_divide = false;  // by the times of more cores of the CPU
  size_t nowhere = 0;       // operations: the network cannot run

  // Below 0: there is none.
  double whole_us() const { return nowhere != 0 ? -1 : timing.wall_us + cpu_us; }
  // Of the board that the chip sits on.
  bool has_states() const { return nowhere == 0 && !sim::timing_states(chip).empty(); }
};

nlohmann::json json_of(const ChipPlan& plan);
void print(const std::string& model, const std::vector<ChipPlan>& plans);

}  // namespace skillet::tools
