// The TP unit: reads a TP instruction, checks it and moves its elements.
// Called by vivante.cpp for each job that the front end starts.
// Must not know: command streams, what a graph is.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "drivers/vivante/hw/vivante.h"
#include "sim/vivante/order.h"
#include "sim/vivante/tp_job.h"
#include "sim/vivante/vivante.h"

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
