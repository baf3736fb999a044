// Regions: the buffers that a stream's addresses are offsets into, and the bytes of them that an operation accesses.
// Called by the files of npus/ethosu/sim.
// Must not know: what the bytes mean.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "npus/ethosu/sim/arithmetic.h"
#include "sim/sim.h"

namespace skillet::sim::ethosu {

constexpr uint32_t kTables = hw::kRegions;  // region of a range in SHRAM

// Bytes [begin, end) of a region.
struct Range {
  uint32_t region = 0;
  uint64_t begin = 0, end = 0;
  bool is_written = false;

  // True if one access must wait for the other.
  bool conflicts(const Range& other) const {
    return region == other.region && begin < other.end && other.begin < end && (is_written || other.is_written);
  }
};

class Regions {
 public:
  // `sram`: the job's on-chip memory, which is region 2; empty: none.
  static Result<Regions> find(std::span<const uint64_t> bases, const Memory& memory, std::span<uint8_t> sram);

  // 0 if there is no buffer.
  uint64_t bytes_of(uint32_t region) const { return regions_[region % hw::kRegions].bytes.size(); }
  // Size of all regions that commands may not write.
  uint64_t constant_bytes() const;
  // The bytes of an access by `what`; a fault if they exceed the region, or it may not be written.
  Result<std::span<uint8_t>> at(uint32_t region, int64_t offset, uint64_t size, bool writes,
                                std::string_view what) const;

 private:
  struct Region {
    std::span<uint8_t> bytes;
    bool is_there = false, is_writable = false;
  };
  std::array<Region, hw::kRegions> regions_{};
};

}  // namespace skillet::sim::ethosu
