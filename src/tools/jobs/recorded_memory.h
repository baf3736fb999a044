// Contents of device memory from recorded submissions, for simulators that read them without computing.
// Called by the timing of jobs, and by the reader of their weights.
// Must not know: anything of a vendor.
#pragma once

#include <map>
#include <vector>

#include "base/result.h"
#include "capture/capture.h"
#include "sim/weights.h"

namespace skillet::tools {

// Constants and commands of the submissions at their device addresses. Tensors are left out: neither times nor weights
// depend on them.
class RecordedMemory {
 public:
  Result<void> add(const capture::Submission& submission);
  const sim::Memory& memory() const { return memory_; }

 private:
  struct Contents {
    SharedBytes given;  // if the next submission has the same bytes, nothing has changed
    Bytes longer;       // the bytes, and those that follow in a larger buffer
  };
  std::map<uint64_t, Contents> contents_;  // by address
  uint64_t all_bytes_ = 0;
  sim::Memory memory_;
};

// Borrows the job's words.
std::vector<sim::Commands> commands_of(const capture::Job& job);

}  // namespace skillet::tools
