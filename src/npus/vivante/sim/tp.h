// The TP unit: reads a TP instruction, checks it and moves its elements.
// Called by vivante.cpp for each job that the front end starts.
// Must not know: command streams, what a graph is.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "npus/vivante/hw/vivante.h"
#include "npus/vivante/sim/order.h"
#include "npus/vivante/sim/tp_job.h"
#include "npus/vivante/sim/vivante.h"

namespace skillet::sim::vivante {

class TpUnit {
 public:
  // `chip` is borrowed for the unit's life (the table of chips).
  explicit TpUnit(const Options& options) : options_(options) {}

  Result<Accesses> run(uint64_t descriptor_address, const Memory& memory);

 private:
  Options options_;
};

}  // namespace skillet::sim::vivante
