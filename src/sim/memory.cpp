#include <algorithm>
#include <iterator>

#include "sim/sim.h"

namespace skillet::sim {
namespace {

constexpr uint64_t kAddressSpaceEnd = uint64_t{1} << 40;  // no known NPU addresses more

// `entry` is an element of Memory's map, whose type is private.
uint64_t end_of(const auto& entry) { return entry.first + entry.second.bytes.size(); }

std::string describe(const auto& entry) {
  return fmt::format("{} [{:#x}, {:#x})", entry.second.name, entry.first, end_of(entry));
}

// Describes the position of the faulting range relative to the buffer that starts at or before it.
std::string describe_before(const auto& entry, uint64_t address, uint64_t size) {
  const uint64_t end = end_of(entry);
  if (address >= end) return fmt::format("; {:#x} bytes after the end of {}", address - end, describe(entry));
  return fmt::format("; starts in {} and runs {:#x} bytes past its end", describe(entry), size - (end - address));
}

}  // namespace

Result<void> Memory::map(uint64_t address, std::span<uint8_t> bytes, std::string name) {
  if (bytes.empty()) return error(ErrorCode::invalid_argument, "{}: mapping of 0 bytes", name);
  if (address >= kAddressSpaceEnd || bytes.size() > kAddressSpaceEnd - address)
    return error(ErrorCode::out_of_range, "{}: {:#x} + {:#x} is outside the 40-bit address space", name, address,
                 bytes.size());
  const auto next = ranges_.lower_bound(address);
  const auto refuse = [&](const auto& other) {
    return error(ErrorCode::invalid_argument, "{} at {:#x} overlaps {} at {:#x}", name, address, other->second.name,
                 other->first);
  };
  if (next != ranges_.end() && next->first < address + bytes.size()) return refuse(next);
  if (next != ranges_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second.bytes.size() > address) return refuse(previous);
  }
  ranges_.emplace_hint(next, address, Range{bytes, std::move(name)});
  return {};
}

Result<void> Memory::map_to_read(uint64_t address, std::span<const uint8_t> bytes, std::string name) {
  SK_TRY(map(address, {const_cast<uint8_t*>(bytes.data()), bytes.size()}, std::move(name)));
  ranges_.at(address).is_read_only = true;
  return {};
}

Result<void> Memory::map_to_refuse(uint64_t address, std::span<uint8_t> bytes, std::string why) {
  SK_TRY(map(address, bytes, std::move(why)));
  ranges_.at(address).is_refused = true;
  return {};
}

void Memory::unmap(uint64_t address) { ranges_.erase(address); }

Result<std::span<uint8_t>> Memory::at(uint64_t address, uint64_t size, std::string_view what) const {
  const auto next = ranges_.upper_bound(address);
  if (next != ranges_.begin()) {
    const auto& [start, range] = *std::prev(next);
    const uint64_t offset = address - start;
    if (offset <= range.bytes.size() && size <= range.bytes.size() - offset &&
        (size > 0 || offset < range.bytes.size())) {
      if (range.is_refused)
        return error(ErrorCode::device, "{}: {} bytes at {:#x}: {}", what, size, address, range.name);
      return range.bytes.subspan(offset, size);
    }
  }
  missed_ = next == ranges_.begin() ? address : std::max(address, end_of(*std::prev(next)));
  std::string message = fmt::format("{}: {} bytes at {:#x} are not mapped", what, size, address);
  if (ranges_.empty()) message += ": the submission lists no buffer";
  if (next != ranges_.begin()) message += describe_before(*std::prev(next), address, size);
  if (next != ranges_.end()) message += fmt::format("; {:#x} bytes before {}", next->first - address, describe(*next));
  return Error{ErrorCode::device, std::move(message)};
}

Result<std::span<uint8_t>> Memory::from(uint64_t address, std::string_view what) const {
  SK_TRY(at(address, 1, what));
  const auto& [start, range] = *std::prev(ranges_.upper_bound(address));
  return range.bytes.subspan(address - start);
}

Result<void> Memory::check_written(uint64_t address, std::string_view what) const {
  SK_TRY(at(address, 1, what));
  const Range& range = std::prev(ranges_.upper_bound(address))->second;
  if (!range.is_read_only) return {};
  missed_ = address;
  return error(ErrorCode::device, "{}: {:#x} is written, but is read-only: {}", what, address, range.name);
}

std::optional<uint64_t> Memory::missed() const {
  const uint64_t address = missed_;
  return address == kNone ? std::nullopt : std::optional(address);
}

}  // namespace skillet::sim
