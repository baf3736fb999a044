// Context: everything that an operation reads and may access, and the remaining limit of its job's computation.
// Called by the files of npus/ethosu/sim.
// Must not know: the stream, what is computed.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "base/stop.h"
#include "npus/ethosu/hw/registers.h"
#include "npus/ethosu/sim/quirks.h"
#include "npus/ethosu/sim/regions.h"

namespace skillet::sim::ethosu {

using hw::Registers;

// Remaining limit of products and elements of a job. A network with few commands and constants needs few, so a forged
// stream ends within seconds.
class Work {
 public:
  // `file_bytes`: size of commands and constants.
  Work(uint64_t file_bytes, uint64_t most)
      : file_bytes_(file_bytes), left_(std::min(most, (file_bytes + kLeastBytes) * kWorkOfByte)) {}

  // Spends the product of `factors`. Error: it exceeds the limit, or the program was asked to stop.
  Result<void> spend(std::initializer_list<uint64_t> factors) {
    unsigned __int128 count = 1;
    for (const uint64_t factor : factors) count = std::min<unsigned __int128>(count * factor, UINT64_MAX);
    if (count > left_)
      return error(ErrorCode::fault,
                   "its {} products and elements are more than this simulator takes for a stream and constants of {} "
                   "bytes",
                   static_cast<uint64_t>(count), file_bytes_);
    left_ -= static_cast<uint64_t>(count);
    return check_stop();
  }

 private:
  static constexpr uint64_t kLeastBytes = 1024, kWorkOfByte = uint64_t{1} << 20;
  uint64_t file_bytes_, left_;
};
// Cost of starting a run of products or elements, in products: it dominates short runs.
constexpr uint64_t kRunWork = 8;

// Results passed between operations without memory, by number; only on Ethos-U85.
using Chains = std::array<std::vector<int32_t>, hw::kRegions>;

struct Context {
  const hw::ChipRow& chip;
  const Registers& registers;
  const Regions& regions;
  std::span<const uint8_t> tables;  // from the chip's address of tables to the end of SHRAM
  Work& work;
  QuirkSet quirks;
  Chains& chains;
  std::vector<Range> ranges;  // bytes that the operation touches
};

}  // namespace skillet::sim::ethosu
