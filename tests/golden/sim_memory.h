// Device memory of recorded submissions: every mapped buffer with its recorded contents, kept from one submission to
// the next as a real device would. Called by sim_replay.cpp and sim_layers.cpp. Must not know: models, what a job does.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "capture/capture.h"
#include "sim/sim.h"

namespace skillet::golden {

class CapturedMemory {
 public:
  // Maps the buffers of `submission` that are not mapped yet. Buffers that were there before keep what the simulated
  // jobs wrote: the recorded device computed nothing.
  Result<void> add(const capture::Submission& submission);
  const sim::Memory& get() const { return memory_; }
  Result<void> write(uint64_t address, std::span<const uint8_t> bytes);
  Result<Bytes> read(uint64_t address, uint64_t size) const;

 private:
  std::map<uint64_t, Bytes> buffers_;  // by address
  sim::Memory memory_;
};

}  // namespace skillet::golden
