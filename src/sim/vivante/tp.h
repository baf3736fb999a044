// The TP unit: reads a TP instruction, checks it and moves its elements.
// Called by vivante.cpp for each job that the front end starts.
// Must not know: command streams, what a graph is.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "drivers/vivante/hw/vivante.h"
#include "sim/vivante/tp_job.h"
#include "sim/vivante/visibility.h"
#include "sim/vivante/vivante.h"

namespace skillet::sim::vivante {

class TpUnit {
 public:
  // `chip` is borrowed for the unit's life (the table of chips).
  TpUnit(const ::skillet::vivante::hw::ChipRow& chip, const Options& options) : chip_(chip), options_(options) {}

  Result<void> run(uint64_t descriptor_address, const Memory& memory, Visibility& visibility);
  // After the last job of a stream: error when an operation on several cores lacks its last part.
  Result<void> end_of_stream() const;
  void start_of_stream() { parts_open_ = 0; }

 private:
  const ::skillet::vivante::hw::ChipRow& chip_;
  Options options_;
  int parts_open_ = 0;  // jobs since the last one that flushes
};

}  // namespace skillet::sim::vivante
