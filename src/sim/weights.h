// The weights that a chip's jobs use: filters as the chip's own decoder reads them from memory.
// Called by tools (`skillet decode --weights`) and the golden tests; implemented in npus/<v>/sim/weights.cpp.
// Must not know: graphs, programs, drivers, how a job uses them.
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
  bool depthwise = false;  // kernel k reads only plane k; planes is 1
  // Unsigned, [kernel][plane][row][column]; weights of int8 networks are increased by 128.
  Bytes bytes;
  uint8_t zero_point = 0;
  // By kernel: the value added to its sum of pixel * (weight - zero point), with pixels as stored in memory.
  std::vector<int32_t> biases;
  std::string problem;  // why they cannot be read; all other members are then empty
  // Their order in memory, as a word for names of files. If the job allows several orders: the one of recorded jobs
  // here, and the same bytes read in the others below. Empty: only one order is possible.
  std::string order;
  std::vector<Weights> others;
};

// By unit of work that the job starts, in order, as in npu::Annotated::operations; none: it has no weights. Error
// unsupported: the chip's weights cannot be read.
Result<std::vector<std::optional<Weights>>> read_weights(std::string_view chip, const Job& job, const Memory& memory);

}  // namespace skillet::sim
