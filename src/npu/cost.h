// CostModel: what a driver predicts that its chip takes, for choices between programs of the same results.
// Called by compile/ (is a run of layers worth several cores) and runtime/cost_model.h; implemented in
// npus/<v>/compiler/ by the formulas that time the jobs of programs. Must not know: bands, devices.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "npu/chip.h"

namespace skillet::npu {

struct CompileOptions;

// What was measured of a device, by name of a timing parameter: in place of what is known of its chip.
using Measured = std::map<std::string, double, std::less<>>;

// Of one core; the times add up.
struct Cost {
  double start_us = 0;   // until the kernel has started its tasks, and heard of their ends
  double device_us = 0;  // of the core's units and memory

  double us() const { return start_us + device_us; }
  Cost& operator+=(const Cost& other) {
    start_us += other.start_us, device_us += other.device_us;
    return *this;
  }
};

struct CostModel {
  // By op of a graph that the driver takes, by shapes, attributes and constants: tensors may lack names and scales.
  // `cores`: so many compute at the same time, and share the memory.
  std::function<std::vector<Cost>(const Chip& chip, const ir::Graph& graph, const CompileOptions& options,
                                  size_t cores)>
      of_ops;
  double memory_bytes_per_us = 1;    // that all cores together move
  double host_in_bytes_per_us = 1;   // from host layout into a device's buffer
  double host_out_bytes_per_us = 1;  // and back
  double submit_us = 0;              // of the host, for each program that it starts and waits for
};

}  // namespace skillet::npu
