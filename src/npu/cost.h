// CostModel: what a driver predicts that its chip takes, for choices between programs of the same results.
// Called by compile/ (is a run of layers worth several cores); implemented in npus/<v>/compiler/.
// Must not know: bands, devices.
#pragma once

#include "graph/ir/graph.h"
#include "npu/chip.h"

namespace skillet::npu {

// Of one core; the times add up.
struct Cost {
  double start_us = 0;      // until the kernel has started its tasks, and heard of their ends
  double compute_us = 0;    // of the core's own units
  double memory_bytes = 0;  // that cross the memory which cores share

  Cost& operator+=(const Cost& other) {
    start_us += other.start_us, compute_us += other.compute_us, memory_bytes += other.memory_bytes;
    return *this;
  }
};

struct CostModel {
  // The cost of an op that the driver takes, by shapes, attributes and constants: tensors may lack names and scales.
  Cost (*of_op)(const Chip& chip, const ir::Graph& graph, ir::OpId op) = nullptr;
  double core_bytes_per_us = 1;      // of memory, that one core moves
  double memory_bytes_per_us = 1;    // that all cores together move
  double host_in_bytes_per_us = 1;   // from host layout into a device's buffer
  double host_out_bytes_per_us = 1;  // and back
  double submit_us = 0;              // of the host, for each program that it starts and waits for
};

}  // namespace skillet::npu
