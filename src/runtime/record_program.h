// Records what compiled programs send to a device, as a capture: they are loaded and run once on a device that computes
// nothing.
// Called by `skillet diff` and the golden comparison.
// Must not know: drivers, simulators.
#pragma once

#include <vector>

#include "capture/capture.h"
#include "graph/ir/graph.h"
#include "program/program.h"

namespace skillet::runtime {

struct ProgramToRecord {
  npu::Program program;
  const ir::Graph* graph = nullptr;  // borrowed; null: not known, inputs remain zero
  std::vector<Bytes> inputs;         // host bytes, in the order of the program's inputs; empty: zeros
};
struct PlacedTensor {
  uint32_t handle = 0;
  uint64_t offset_bytes = 0;
};
struct RecordedProgram {
  std::vector<PlacedTensor> inputs, outputs;  // in the program's order
};
struct RecordedPrograms {
  capture::Capture capture;
  std::vector<RecordedProgram> programs;
};

// All programs are loaded first, in order, then run in order.
Result<RecordedPrograms> record_programs(const std::string& chip, std::vector<ProgramToRecord> programs);

}  // namespace skillet::runtime
