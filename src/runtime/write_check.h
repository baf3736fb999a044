// WriteCheck: detects that a job finished without writing its output. That is all that user space can see of a job that
// hung and was dropped when the chip was reset.
// Called by LoadedProgram for each job that writes.
// Must not know: jobs, devices.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "program/program.h"

namespace skillet::runtime {

// Writes a mark over a job's witness and checks later whether it is still there. `witness` must always be the same
// bytes.
class WriteCheck {
 public:
  bool is_marked() const { return state_ == State::marked; }
  // Saves the bytes and writes the mark over them, unless they are already marked.
  void mark(std::span<uint8_t> witness);
  // The job has run, or its witness will be overwritten.
  void job_ran() { state_ = State::unchecked; }
  // False: the job has not written the witness; the next mark differs in every byte, so that no result can equal both.
  // True: the bytes are as the last job left them, also if none ran since the mark.
  bool settle(std::span<uint8_t> witness);
  // The witness is in another place from now on.
  void forget() { state_ = State::clear; }

 private:
  enum class State : uint8_t { clear, marked, unchecked };
  uint8_t mark_byte(size_t i) const;

  std::array<uint8_t, npu::kWitnessBytes> kept_{};
  uint8_t flip_ = 0;
  State state_ = State::clear;
};

}  // namespace skillet::runtime
