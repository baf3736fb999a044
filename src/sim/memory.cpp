#include "sim/sim.h"

namespace skillet::sim {
namespace {

constexpr uint64_t kAddressSpaceBytes = uint64_t{1} << 32;

std::string range_text(uint64_t address, uint64_t size, std::string_view name) {
  return fmt::format("'{}' 0x{:08x}..0x{:08x}", name, address, address + size - 1);
}

}  // namespace

Result<void> Memory::map(uint64_t address, std::span<uint8_t> bytes, std::string name) {
  if (bytes.empty()) return error(ErrorCode::invalid_argument, "buffer '{}': size 0", name);
  if (address >= kAddressSpaceBytes || bytes.size() > kAddressSpaceBytes - address)
    return error(ErrorCode::out_of_range, "buffer '{}': {} bytes at 0x{:x} leave the 32-bit address space", name,
                 bytes.size(), address);
  const auto next = ranges_.lower_bound(address);
  if (next != ranges_.end() && next->first < address + bytes.size())
    return error(ErrorCode::invalid_argument, "buffer {} overlaps {}", range_text(address, bytes.size(), name),
                 range_text(next->first, next->second.bytes.size(), next->second.name));
  if (next != ranges_.begin()) {
    const auto& [before, range] = *std::prev(next);
    if (before + range.bytes.size() > address)
      return error(ErrorCode::invalid_argument, "buffer {} overlaps {}", range_text(address, bytes.size(), name),
                   range_text(before, range.bytes.size(), range.name));
  }
  ranges_.emplace(address, Range{bytes, std::move(name)});
  return {};
}

void Memory::unmap(uint64_t address) { ranges_.erase(address); }

Result<std::span<uint8_t>> Memory::at(uint64_t address, uint64_t size, std::string_view what) const {
  const auto after = ranges_.upper_bound(address);
  std::string nearest;
  if (after != ranges_.begin()) {
    const auto& [start, range] = *std::prev(after);
    const uint64_t offset = address - start;
    if (offset <= range.bytes.size() && size <= range.bytes.size() - offset) return range.bytes.subspan(offset, size);
    nearest += fmt::format("; below lies {}", range_text(start, range.bytes.size(), range.name));
  }
  if (after != ranges_.end())
    nearest += fmt::format("; above lies {}", range_text(after->first, after->second.bytes.size(), after->second.name));
  return error(ErrorCode::device, "{}: {} bytes at 0x{:08x} are not inside one mapped buffer{}", what, size, address,
               nearest.empty() ? "; nothing is mapped" : nearest);
}

Result<std::span<uint8_t>> Memory::from(uint64_t address, std::string_view what) const {
  const auto after = ranges_.upper_bound(address);
  if (after != ranges_.begin()) {
    const auto& [start, range] = *std::prev(after);
    if (address - start < range.bytes.size()) return range.bytes.subspan(address - start);
  }
  return std::move(at(address, 1, what)).error();  // at() words the fault
}

}  // namespace skillet::sim
