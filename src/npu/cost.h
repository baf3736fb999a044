// CostModel: a driver's predicted costs on its chip, for choices between programs with the same results.
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

// Measured values of a device, by name of a timing parameter; they replace the values of its chip.
using Measured = std::map<std::string, double, std::less<>>;

// Cost on one core; costs add up.
struct Cost {
  double start_us = 0;   // of the kernel driver: starting tasks and receiving their completion
  double device_us = 0;  // of the core's units and memory

  double us() const { return start_us + device_us; }
  Cost& operator+=(const Cost& other) {
    start_us += other.start_us, device_us += other.device_us;
    return *this;
  }
};

struct CostModel {
  // Costs by op of a graph that the driver takes. Depends on shapes, attributes and constants: tensors may lack names
  // and scales. `cores`: number of cores that compute at the same time and share the memory.
  std::function<std::vector<Cost>(const Chip& chip, const ir::Graph& graph, const CompileOptions& options,
                                  size_t cores)>
      of_ops;
  double memory_bytes_per_us = 1;    // of all cores together
  double host_in_bytes_per_us = 1;   // from host layout into a device's buffer
  double host_out_bytes_per_us = 1;  // from a device's buffer into host layout
  double submit_us = 0;              // of the host, for each program that it submits and waits for
};

}  // namespace skillet::npu
