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
  uint32_t event = 0;    // that it raises at its end
  std::string name;      // its number, unit and descriptor
  size_t word = 0;       // of the stream, where it was started
};

// What a state write can set off.
struct Units {
  std::function<Result<void>(const StartedJob& job)> run_nn;
  std::function<Result<void>(const StartedJob& job)> run_tp;
  // The stream goes on after a job with this event. Its errors have their place in the stream.
  std::function<Result<void>(uint32_t event)> wait = [](uint32_t) { return Result<void>(); };
  // Jobs from here on leave what they write in caches.
  std::function<void(bool nn_no_flush, bool tp_no_flush)> set_flush_control = [](bool, bool) {};
  std::function<void(bool on)> set_small_batch = [](bool) {};
  // All caches are written back.
  std::function<void()> flush_all = [] {};
  // Whether the chip goes on behind a write of this state.
  std::function<Result<void>(uint32_t state)> check_state = [](uint32_t) { return Result<void>(); };
};

// The states that are set once and stay until a reset. What silicon does with a job before they are set again is not
// known, so the model stops at it. A new chip is taken as set up: recorded jobs come without.
class KeptStates {
 public:
  // A stream has written the state.
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
