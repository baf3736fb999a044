// Which run of a part's layers is worth several cores, by what the driver predicts.
// Called by compile.cpp.
// Must not know: a vendor's anything, devices.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compile/compile.h"

namespace skillet::compile {

// Microseconds of one inference, of bands at the same time whose cores take so long each: the host fills and starts one
// core after the other, and then fetches from them in this order.
double time_of_bands(const npu::CostModel& costs, std::span<const ir::Graph* const> bands,
                     std::span<const double> core_us);

struct BandPlan {
  std::vector<passes::Partition> parts;  // the run, and what is left of the part
  std::vector<passes::Band> bands;       // of the run; empty: the part stays in one piece
  std::string note;                      // for people, in either case; empty: there was nothing to think about
};

// For options.cores > 1 on a chip that has costs.
BandPlan plan_bands(const ir::Graph& graph, const passes::Partition& part, const Target& target,
                    const Options& options);

}  // namespace skillet::compile
