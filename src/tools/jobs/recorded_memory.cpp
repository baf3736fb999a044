#include "tools/jobs/recorded_memory.h"

#include <algorithm>

namespace skillet::tools {
namespace {

constexpr uint64_t kBytesMax = uint64_t{2} << 30;

}  // namespace

Result<void> RecordedMemory::add(const capture::Submission& submission) {
  for (const capture::BufferSnapshot& buffer : submission.buffers) {
    if (buffer.content != capture::Content::bytes || !capture::is_placed(submission, buffer)) continue;
    if (const auto at = contents_.find(buffer.address); at != contents_.end()) {
      if (at->second.given.data() == buffer.bytes.data()) continue;
      memory_.unmap(buffer.address);
      contents_.erase(at);
    }
    if (buffer.size_bytes > kBytesMax - std::min(all_bytes_, kBytesMax))
      return error(ErrorCode::malformed, "buffer {} has {} bytes: too many to hold", buffer.handle, buffer.size_bytes);
    all_bytes_ += buffer.size_bytes;
    Contents& kept = contents_[buffer.address] = {buffer.bytes, {}};
    std::span<const uint8_t> bytes = kept.given;
    if (bytes.size() < buffer.size_bytes) {
      kept.longer.reserve(buffer.size_bytes);
      kept.longer.assign(bytes.begin(), bytes.end());
      kept.longer.resize(buffer.size_bytes);
      bytes = kept.longer;
    }
    SK_TRY(memory_.map_to_read(buffer.address, bytes, fmt::format("buffer {}", buffer.handle)));
  }
  return {};
}

std::vector<sim::Commands> commands_of(const capture::Job& job) {
  std::vector<sim::Commands> out;
  for (const capture::Commands& one : job.commands) {
    const auto* const words = reinterpret_cast<const uint8_t*>(one.words.data());
    out.push_back(
        {.bytes = {words, one.words.size() * sizeof(uint32_t)}, .address = one.address, .size_bytes = one.size_bytes});
  }
  return out;
}

}  // namespace skillet::tools
