// Memory through the NPU's IOMMU: an access may cross from one mapped buffer into the next; an access outside all
// buffers stalls the chip, with a report. Called by every unit of npus/rockchip/sim that reads or writes memory.
// Must not know: registers.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "npus/rockchip/sim/options.h"
#include "sim/sim.h"

namespace skillet::sim::rockchip {

// Bytes that the tasks of a job have written, in order.
struct WrittenBytes {
  struct Piece {
    uint64_t address = 0;
    std::vector<uint8_t> bytes;
  };
  std::vector<Piece> pieces;
};

class Dma {
 public:
  explicit Dma(const Memory& memory, Writes writes = Writes::at_once, WrittenBytes* written = nullptr)
      : memory_(memory), writes_(writes), written_(written) {}

  // `what` names the reader in the fault report. Allocates no host memory for bytes that are not mapped.
  Result<std::vector<uint8_t>> read(uint64_t address, uint64_t size, std::string_view what) const;
  Result<void> read(uint64_t address, std::span<uint8_t> to, std::string_view what) const;
  Result<void> check_mapped(uint64_t address, uint64_t size, std::string_view what) const;
  Result<void> write(uint64_t address, std::span<const uint8_t> from, std::string_view what) const;
  // Ends a job after its last task.
  Result<void> finish_job() const;

 private:
  Result<void> write_now(uint64_t address, std::span<const uint8_t> from, std::string_view what) const;
  Result<void> check_written_before(uint64_t address, uint64_t size, std::string_view what) const;
  template <bool kWrites, typename Copy>
  Result<void> transfer(uint64_t address, size_t size, std::string_view what, Copy copy) const;
  const Memory& memory_;  // borrowed
  Writes writes_;
  WrittenBytes* written_;  // borrowed; null if writes happen at once
};

// Range of bytes that a unit touches, for the check that a task does not write what it reads.
struct Extent {
  int64_t first = INT64_MAX, end = INT64_MIN;

  void add(int64_t address, int64_t size) {
    first = std::min(first, address);
    end = std::max(end, address + size);
  }
  bool overlaps(const Extent& other) const { return first < other.end && other.first < end; }
};

}  // namespace skillet::sim::rockchip
