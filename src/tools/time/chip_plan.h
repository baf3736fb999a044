// Predicted times of a model on a chip, and their output.
// Called by `skillet plan`.
// Must not know: how the times are predicted.
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
  std::vector<StateTime> states;    // states of the board; the first one is `timing`
  uint64_t memory_bytes = 0;        // device memory
  size_t npu_ops = 0, cpu_ops = 0;  // after the passes
  compile::ModelUse use;            // operations of the model itself
  double cpu_us = 0, cpu_alone_us = -1;
  bool may_divide = false;  // --host-threads auto may give another partition
  size_t nowhere = 0;       // operations without a kernel: the network cannot run

  // Below 0: not known.
  double whole_us() const { return nowhere != 0 ? -1 : timing.wall_us + cpu_us; }
  // True if the chip's board has several states.
  bool has_states() const { return nowhere == 0 && !sim::timing_states(chip).empty(); }
};

nlohmann::json json_of(const ChipPlan& plan);
void print(const std::string& model, const std::vector<ChipPlan>& plans);

}  // namespace skillet::tools
