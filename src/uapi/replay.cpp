#include "uapi/replay.h"

#include <algorithm>

namespace skillet::uapi {
namespace {

constexpr uint64_t kAddressSpaceBytes = 1ULL << 32;

Result<void> check(const capture::Submission& submission) {
  uint64_t total = 0;
  for (const capture::BufferSnapshot& one : submission.buffers) {
    if (!one.listed) continue;
    if (one.size_bytes > kAddressSpaceBytes - total)
      return error(ErrorCode::malformed, "buffer {}: {} bytes; all buffers together exceed 4 GiB", one.handle,
                   one.size_bytes);
    total += one.size_bytes;
  }
  return {};
}

}  // namespace

Result<Replay> Replay::create(std::unique_ptr<sim::Device> chip, const capture::Capture& capture) {
  Replay replay(std::move(chip), capture);
  for (size_t i = 0; i < capture.submissions.size(); ++i) {
    SK_TRY(check(capture.submissions[i]).with_context(fmt::format("submission {}", i)));
    for (const capture::BufferSnapshot& one : capture.submissions[i].buffers) {
      if (one.listed) replay.bytes_of(one);
    }
  }
  return replay;
}

// Grows the buffer to the snapshot's size: a handle may be freed and used again for another size.
Bytes& Replay::bytes_of(const capture::BufferSnapshot& snapshot) {
  Bytes& bytes = buffers_[snapshot.handle];
  if (bytes.size() < snapshot.size_bytes) bytes.resize(snapshot.size_bytes);
  return bytes;
}

Result<void> Replay::run(size_t index) {
  if (index >= size()) return error(ErrorCode::invalid_argument, "no submission {}; the capture has {}", index, size());
  const capture::Submission& submission = capture_->submissions[index];
  if (submission.stream.empty()) return error(ErrorCode::unsupported, "submission {} has no command stream", index);
  sim::Memory memory;
  for (const capture::BufferSnapshot& one : submission.buffers) {
    if (!one.listed) continue;
    const std::span<uint8_t> bytes = std::span(bytes_of(one)).first(one.size_bytes);
    if (one.content != capture::Content::unknown) {
      std::ranges::fill(bytes, uint8_t{0});
      std::ranges::copy(std::span(one.bytes).first(std::min<size_t>(one.bytes.size(), bytes.size())), bytes.begin());
    }
    SK_TRY(memory.map(one.address, bytes, fmt::format("buffer {}", one.handle)));
  }
  return chip_->execute(submission.stream, memory).with_context(fmt::format("submission {}", index));
}

Result<std::span<uint8_t>> Replay::buffer(uint32_t handle) {
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return error(ErrorCode::invalid_argument, "no submission lists a buffer {}", handle);
  return std::span<uint8_t>(found->second);
}

Result<void> Replay::set(uint32_t handle, std::span<const uint8_t> bytes) {
  SK_TRY_ASSIGN(const std::span<uint8_t> target, buffer(handle));
  if (bytes.size() > target.size())
    return error(ErrorCode::out_of_range, "{} bytes for buffer {} of {}", bytes.size(), handle, target.size());
  std::ranges::copy(bytes, target.begin());
  return {};
}

}  // namespace skillet::uapi
