// What the jobs of a chip multiply with: filters as the chip's own decoder reads them from memory.
// Called by tools (`skillet decode --weights`) and the golden tests; implemented in npus/<v>/sim/weights.cpp.
// Must not know: graphs, programs, drivers, what a job computes with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "sim/sim.h"

namespace skillet::sim {

struct Weights {
  int64_t kernels = 0, planes = 0, height = 0, width = 0;
  bool depthwise = false;  // kernel k reads plane k alone; planes is 1
  // Unsigned, [kernel][plane][row][column]; those of int8 networks are raised by 128.
  Bytes bytes;
  uint8_t zero_point = 0;
  // Of each kernel: what is added to its sum of pixel * (weight - zero point), the pixels as they are in memory.
  std::vector<int32_t> biases;
  std::string problem;  // why they cannot be read; then there is nothing else
  // How they are in memory: a word for names of files. Where the job allows several ways: the one of recorded jobs, and
  // the same bytes read in the others. Empty: there is one way.
  std::string order;
  std::vector<Weights> others;
};

// By unit of work that the job starts, in order: the same as npu::Annotated::operations; none for those that have no
// weights. Error unsupported: the chip's weights cannot be read.
Result<std::vector<std::optional<Weights>>> read_weights(std::string_view chip, const Job& job, const Memory& memory);

}  // namespace skillet::sim
