#include "kernels/etnaviv/recorder/replay.h"

#include <time.h>

#include <algorithm>
#include <vector>

#include "kernels/etnaviv/client/etnaviv.h"

namespace skillet::kernels::etnaviv {
namespace {

constexpr int64_t kTimeoutSeconds = 60;

void restore(const capture::BufferSnapshot& recorded, std::span<uint8_t> bytes) {
  if (recorded.content == capture::Content::unknown) return;
  std::ranges::fill(bytes.first(recorded.size_bytes), uint8_t{0});
  std::ranges::copy(std::span(recorded.bytes).first(std::min<size_t>(recorded.bytes.size(), recorded.size_bytes)),
                    bytes.begin());
}

}  // namespace

Result<Replay::Buffer> Replay::allocate(uint64_t size_bytes) const {
  GemNew made{.size = size_bytes, .flags = kBoWriteCombined, .handle = 0};
  SK_TRY(file_.call(kGemNew, &made, "allocating a buffer"));
  Buffer buffer{.handle = made.handle, .size_bytes = size_bytes};
  GemInfo info{.handle = made.handle, .pad = 0, .offset = 0};
  SK_TRY(file_.call(kGemInfo, &info, "reading a map offset"));
  uint8_t* bytes = nullptr;
  const int result = file_.calls().mmap(file_.fd(), size_bytes, info.offset, bytes);
  if (result < 0) return file_.failure(-result, "mapping a buffer");
  buffer.bytes = {bytes, size_bytes};
  return buffer;
}

Result<void> Replay::release(const Buffer& buffer) const {
  file_.calls().munmap(buffer.bytes.data(), buffer.bytes.size());
  drm::GemClose closing{.handle = buffer.handle, .pad = 0};
  return file_.call(drm::kGemClose, &closing, "closing a buffer");
}

// The kernel never changes a buffer's address: replaces the buffer by a new one.
Result<void> Replay::forget_address(Buffer& buffer) const {
  SK_TRY_ASSIGN(const Buffer fresh, allocate(buffer.size_bytes));
  std::ranges::copy(buffer.bytes, fresh.bytes.begin());
  SK_TRY(release(buffer));
  buffer = fresh;
  return {};
}

Result<void> Replay::drop_freed(const capture::Submission& submission) {
  for (auto it = buffers_.begin(); it != buffers_.end();) {
    if (capture::find_buffer(submission, it->first) != nullptr) {
      ++it;
      continue;
    }
    SK_TRY(release(it->second));
    it = buffers_.erase(it);
  }
  return {};
}

// Frees addresses that other buffers had before.
Result<void> Replay::make_room(const capture::Submission& submission) {
  for (auto& [handle, buffer] : buffers_) {
    for (const capture::BufferSnapshot& one : submission.buffers) {
      const bool is_moved = one.handle == handle && buffer.address != 0 && buffer.address != one.address;
      const bool is_in_the_way = one.handle != handle && buffer.overlaps(one.address, one.size_bytes);
      if (one.listed && (is_moved || is_in_the_way)) SK_TRY(forget_address(buffer));
    }
  }
  return {};
}

// A handle may have been freed and reused for a larger buffer.
Result<Replay::Buffer*> Replay::buffer_for(const capture::BufferSnapshot& recorded) {
  const auto known = buffers_.find(recorded.handle);
  if (known != buffers_.end() && known->second.size_bytes >= recorded.size_bytes) return &known->second;
  SK_TRY_ASSIGN(const Buffer fresh, allocate(recorded.size_bytes));
  if (known != buffers_.end()) {
    std::ranges::copy(known->second.bytes, fresh.bytes.begin());
    SK_TRY(release(known->second));
  }
  return &(buffers_[recorded.handle] = fresh);
}

Replay::~Replay() {
  for (const auto& [handle, buffer] : buffers_) file_.calls().munmap(buffer.bytes.data(), buffer.bytes.size());
}

Result<Replay> Replay::create(const Core& core, const SyscallsRef& calls) {
  SK_TRY_ASSIGN(DrmFile file, DrmFile::open(calls, core.info.node));
  return Replay(std::move(file), core.index);
}

Result<void> Replay::place(const capture::Submission& submission) {
  SK_TRY_ASSIGN(const std::span<const uint32_t> words, capture::words_of(submission));
  if (words.empty()) return error(ErrorCode::unsupported, "the submission has no command stream");
  SK_TRY(check_replay_size(submission.buffers, true));
  SK_TRY(drop_freed(submission));
  SK_TRY(make_room(submission));
  stream_.assign(words.begin(), words.end());
  listed_.clear();
  for (const capture::BufferSnapshot& one : submission.buffers) {
    if (!one.listed) continue;
    SK_TRY_ASSIGN(Buffer* const buffer, buffer_for(one));
    restore(one, buffer->bytes);
    const uint32_t flags = (one.read ? kSubmitBoRead : 0U) | (one.write ? kSubmitBoWrite : 0U);
    listed_.push_back({.flags = flags, .handle = buffer->handle, .presumed = one.address});
    buffer->address = one.address;
  }
  return {};
}

Result<void> Replay::run_placed() {
  GemSubmit request{.pipe = pipe_,
                    .nr_bos = static_cast<uint32_t>(listed_.size()),
                    .stream_size = static_cast<uint32_t>(stream_.size() * 4),
                    .bos = reinterpret_cast<uintptr_t>(listed_.data()),
                    .stream = reinterpret_cast<uintptr_t>(stream_.data()),
                    .flags = kSubmitSoftpin,
                    .fence_fd = -1};
  SK_TRY(file_.call(kGemSubmit, &request, "submitting a job"));
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  WaitFence wait{.pipe = pipe_,
                 .fence = request.fence,
                 .flags = 0,
                 .pad = 0,
                 .timeout = {now.tv_sec + kTimeoutSeconds, now.tv_nsec}};
  return file_.call(kWaitFence, &wait, "waiting for a job");
}

Result<void> Replay::run(const capture::Submission& submission) {
  SK_TRY(place(submission));
  return run_placed();
}

Result<std::span<uint8_t>> Replay::at(uint64_t address, uint64_t size_bytes) {
  for (const auto& [handle, buffer] : buffers_) {
    if (buffer.address == 0 || address < buffer.address || address - buffer.address > buffer.size_bytes) continue;
    const uint64_t offset = address - buffer.address;
    if (size_bytes <= buffer.size_bytes - offset) return buffer.bytes.subspan(offset, size_bytes);
  }
  return error(ErrorCode::out_of_range, "no buffer holds {} bytes at {:#x}", size_bytes, address);
}

Result<std::span<uint8_t>> Replay::buffer(uint32_t handle) {
  const auto found = buffers_.find(handle);
  if (found == buffers_.end())
    return error(ErrorCode::invalid_argument, "no submission so far lists a buffer {}", handle);
  return found->second.bytes;
}

Result<void> Replay::set(uint32_t handle, std::span<const uint8_t> bytes) {
  SK_TRY_ASSIGN(const std::span<uint8_t> target, buffer(handle));
  if (bytes.size() > target.size())
    return error(ErrorCode::out_of_range, "{} bytes for buffer {} of {}", bytes.size(), handle, target.size());
  std::ranges::copy(bytes, target.begin());
  return {};
}

Result<std::span<const uint8_t>> Replay::contents(Handle recorded) {
  SK_TRY_ASSIGN(const std::span<uint8_t> bytes, buffer(recorded));
  return std::span<const uint8_t>(bytes);
}

Result<std::unique_ptr<Replayer>> open_replayer(const Core& core, const SyscallsRef& calls) {
  SK_TRY_ASSIGN(Replay replay, Replay::create(core, calls));
  return std::unique_ptr<Replayer>(std::make_unique<Replay>(std::move(replay)));
}

}  // namespace skillet::kernels::etnaviv
