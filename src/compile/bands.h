// Chooses the run of a part's layers that is divided among several cores, by the driver's predictions.
// Called by compile.cpp.
// Must not know: anything of one vendor, devices.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compile/compile.h"

namespace skillet::compile {

// Microseconds of one inference of bands that run at the same time and take `core_us` each: the host fills and starts
// one core after the other, then reads their outputs in this order.
double time_of_bands(const npu::CostModel& costs, std::span<const ir::Graph* const> bands,
                     std::span<const double> core_us);

struct BandPlan {
  std::vector<passes::Partition> parts;  // the run, and the rest of the part
  std::vector<passes::Band> bands;       // of the run; empty: the part is not divided
  std::string note;                      // explains the choice; empty: there was none to make
};

// For options.cores > 1 on a chip that has costs.
BandPlan plan_bands(const ir::Graph& graph, const passes::Partition& part, const Target& target,
                    const Options& options);

}  // namespace skillet::compile
