// The front end: walks the packets of a command stream and turns state writes into jobs.
// Called by vivante.cpp.
// Must not know: what a job does.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>

#include "base/result.h"

namespace skillet::sim::vivante {

struct StartedJob {
  uint64_t address = 0;  // of its descriptor
  uint32_t event = 0;    // raised at its end
  std::string name;      // its number, unit and descriptor
  size_t word = 0;       // of the stream, at which it was started
};

// The effects of state writes.
struct Units {
  std::function<Result<void>(const StartedJob& job)> run_nn;
  std::function<Result<void>(const StartedJob& job)> run_tp;
  // The stream waits for a job with this event. Errors include their place in the stream.
  std::function<Result<void>(uint32_t event)> wait = [](uint32_t) { return Result<void>(); };
  // From now on jobs leave their results in caches.
  std::function<void(bool nn_no_flush, bool tp_no_flush)> set_flush_control = [](bool, bool) {};
  std::function<void(bool on)> set_small_batch = [](bool) {};
  // Writes all caches back.
  std::function<void()> flush_all = [] {};
  // Whether the chip continues after a write of this state.
  std::function<Result<void>(uint32_t state)> check_state = [](uint32_t) { return Result<void>(); };
};

// The states that are set once and stay until a reset. The effect on silicon of a job before they are set again is not
// known, so the model stops at such a job. A new chip counts as set up, because recorded jobs do not set them.
class KeptStates {
 public:
  // Marks the state as written by a stream.
  void set(uint32_t address) { lost_.erase(address); }
  void reset();
  const std::set<uint32_t>& lost() const { return lost_; }

 private:
  std::set<uint32_t> lost_;
};

// Runs the stream to END or to its last word.
// The error names the word of the stream, the state and the value, or the job number and the descriptor's address.
Result<void> run_stream(std::span<const uint32_t> stream, const Units& units, KeptStates& kept);

}  // namespace skillet::sim::vivante
