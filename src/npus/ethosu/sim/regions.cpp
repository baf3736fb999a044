#include "npus/ethosu/sim/regions.h"

namespace skillet::sim::ethosu {

Result<Regions> Regions::find(std::span<const uint64_t> bases, const Memory& memory, std::span<uint8_t> sram) {
  constexpr size_t kSramRegion = 2;
  if (bases.size() > hw::kRegions) return error(ErrorCode::fault, "{} regions; there are 8", bases.size());
  Regions regions;
  for (size_t i = 0; i < bases.size(); ++i) {
    if (bases[i] == 0) continue;
    SK_TRY_ASSIGN(const std::span<uint8_t> bytes, memory.from(bases[i], fmt::format("region {}", i)));
    regions.regions_[i] = {bytes, true, memory.check_written(bases[i], "").ok()};
  }
  if (!sram.empty()) regions.regions_[kSramRegion] = {sram, true, true};
  return regions;
}

uint64_t Regions::constant_bytes() const {
  uint64_t bytes = 0;
  for (const Region& region : regions_) bytes += region.is_writable ? 0 : region.bytes.size();
  return bytes;
}

Result<std::span<uint8_t>> Regions::at(uint32_t region, int64_t offset, uint64_t size, bool writes,
                                       std::string_view what) const {
  const Region& there = regions_[region % hw::kRegions];
  if (!there.is_there) return error(ErrorCode::fault, "{}: there is no buffer in region {}", what, region);
  if (offset < 0 || static_cast<uint64_t>(offset) > there.bytes.size() ||
      size > there.bytes.size() - static_cast<uint64_t>(offset))
    return error(ErrorCode::fault, "{}: {} bytes at {}0x{:x} leave region {} of {} bytes", what, size,
                 offset < 0 ? "-" : "", offset < 0 ? -static_cast<uint64_t>(offset) : static_cast<uint64_t>(offset),
                 region, there.bytes.size());
  if (writes && !there.is_writable)
    return error(ErrorCode::fault, "{}: region {} holds constants, which no command may write", what, region);
  return there.bytes.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
}

}  // namespace skillet::sim::ethosu
