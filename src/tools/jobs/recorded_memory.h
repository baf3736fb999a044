// What recorded submissions have in a device's memory, for the readers of a simulated chip that compute nothing.
// Called by what times jobs, and by what reads their weights.
// Must not know: a vendor's anything.
#pragma once

#include <map>
#include <vector>

#include "base/result.h"
#include "capture/capture.h"
#include "sim/weights.h"

namespace skillet::tools {

// Constants and commands of the submissions, as the device has them in its memory; tensors are not there, because
// neither times nor weights depend on them.
class RecordedMemory {
 public:
  Result<void> add(const capture::Submission& submission);
  const sim::Memory& memory() const { return memory_; }

 private:
  struct Contents {
    SharedBytes given;  // the same bytes in the next submission: nothing has changed
    Bytes longer;       // the same and what follows in a larger buffer
  };
  std::map<uint64_t, Contents> contents_;  // by address
  uint64_t all_bytes_ = 0;
  sim::Memory memory_;
};

// Borrows the words of the job.
std::vector<sim::Commands> commands_of(const capture::Job& job);

}  // namespace skillet::tools
