// The front end: walks the packets of a command stream and turns state writes into jobs.
// Called by vivante.cpp.
// Must not know: what a job does.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"

namespace skillet::sim::vivante {

// The units that a state write can start; each takes the device address of its descriptor.
struct Units {
  std::function<Result<void>(uint64_t address)> run_nn;
  std::function<Result<void>(uint64_t address)> run_tp;
};

// Runs the stream to END or to its last word. Jobs run one after the other, which any order of events allows.
// The error names the word of the stream, the state and the value, or the job number and the descriptor's address.
Result<void> run_stream(std::span<const uint32_t> stream, const Units& units);

}  // namespace skillet::sim::vivante
