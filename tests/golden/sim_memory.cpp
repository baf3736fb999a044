#include "sim_memory.h"

#include <algorithm>

namespace skillet::golden {

Result<void> CapturedMemory::add(const capture::Submission& submission) {
  for (const capture::BufferSnapshot& buffer : submission.buffers) {
    if (buffer.address == 0 || buffers_.contains(buffer.address)) continue;
    Bytes bytes(buffer.bytes.begin(), buffer.bytes.end());
    bytes.resize(buffer.size_bytes);
    Bytes& kept = buffers_[buffer.address] = std::move(bytes);
    SK_TRY(memory_.map(buffer.address, kept, fmt::format("buffer {}", buffer.handle)));
  }
  return {};
}

Result<void> CapturedMemory::write(uint64_t address, std::span<const uint8_t> bytes) {
  SK_TRY_ASSIGN(const std::span<uint8_t> to, memory_.at(address, bytes.size(), "input"));
  std::copy(bytes.begin(), bytes.end(), to.begin());
  return {};
}

Result<Bytes> CapturedMemory::read(uint64_t address, uint64_t size) const {
  SK_TRY_ASSIGN(const std::span<uint8_t> from, memory_.at(address, size, "output"));
  return Bytes(from.begin(), from.end());
}

}  // namespace skillet::golden
