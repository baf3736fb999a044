#include "kernels/etnaviv/recorder/replay.h"

#include <time.h>

#include <algorithm>
#include <vector>

#include "kernels/api/drm_file.h"
#include "kernels/etnaviv/abi.h"
#include "kernels/etnaviv/client/etnaviv.h"

namespace skillet::kernels::etnaviv {
namespace {

constexpr int64_t kTimeoutSeconds = 60;

struct Buffer {
  uint32_t handle = 0;  // ours
  uint64_t size_bytes = 0;
  uint64_t address = 0;  // 0: no submission has mapped it
  std::span<uint8_t> bytes;

  bool overlaps(uint64_t start, uint64_t size) const {
    return address != 0 && address < start + size && start < address + size_bytes;
  }
};
using Buffers = std::map<uint32_t, Buffer>;  // by recorded handle; those that a submission lists

Result<Buffer> allocate(const DrmFile& file, uint64_t size_bytes) {
  GemNew made{.size = size_bytes, .flags = kBoWriteCombined, .handle = 0};
  SK_TRY(file.call(kGemNew, &made, "allocating a buffer"));
  Buffer buffer{.handle = made.handle, .size_bytes = size_bytes};
  GemInfo info{.handle = made.handle, .pad = 0, .offset = 0};
  SK_TRY(file.call(kGemInfo, &info, "asking for a map offset"));
  uint8_t* bytes = nullptr;
  const int result = file.calls().mmap(file.fd(), size_bytes, info.offset, bytes);
  if (result < 0) return file.failure(-result, "mapping a buffer");
  buffer.bytes = {bytes, size_bytes};
  return buffer;
}

Result<void> release(const DrmFile& file, const Buffer& buffer) {
  file.calls().munmap(buffer.bytes.data(), buffer.bytes.size());
  drm::GemClose closing{.handle = buffer.handle, .pad = 0};
  return file.call(drm::kGemClose, &closing, "closing a buffer");
}

// The kernel keeps the address of a buffer as long as the buffer: a new one takes its place.
Result<void> forget_address(const DrmFile& file, Buffer& buffer) {
  SK_TRY_ASSIGN(const Buffer fresh, allocate(file, buffer.size_bytes));
  std::ranges::copy(buffer.bytes, fresh.bytes.begin());
  SK_TRY(release(file, buffer));
  buffer = fresh;
  return {};
}

Result<void> check_sizes(const capture::Submission& submission) {
  uint64_t total = 0;
  for (const capture::BufferSnapshot& one : submission.buffers) {
    if (!one.listed) continue;
    if (one.size_bytes > Replay::kLimitBytes - total)
      return error(ErrorCode::malformed, "buffer {}: {} bytes; all buffers together exceed {}", one.handle,
                   one.size_bytes, Replay::kLimitBytes);
    total += one.size_bytes;
  }
  return {};
}

void restore(const capture::BufferSnapshot& recorded, std::span<uint8_t> bytes) {
  if (recorded.content == capture::Content::unknown) return;
  std::ranges::fill(bytes.first(recorded.size_bytes), uint8_t{0});
  std::ranges::copy(std::span(recorded.bytes).first(std::min<size_t>(recorded.bytes.size(), recorded.size_bytes)),
                    bytes.begin());
}

}  // namespace

struct Replay::State {
  DrmFile file;
  uint32_t pipe = 0;
  Buffers buffers;
  std::vector<uint32_t> stream;  // of what is loaded, with the buffers that it lists
  std::vector<SubmitBo> listed;

  Result<void> drop_freed(const capture::Submission& submission);
  Result<void> make_room(const capture::Submission& submission);
  Result<Buffer*> buffer_for(const capture::BufferSnapshot& recorded);
};

Result<void> Replay::State::drop_freed(const capture::Submission& submission) {
  for (auto it = buffers.begin(); it != buffers.end();) {
    if (std::ranges::find(submission.buffers, it->first, &capture::BufferSnapshot::handle) !=
        submission.buffers.end()) {
      ++it;
      continue;
    }
    SK_TRY(release(file, it->second));
    it = buffers.erase(it);
  }
  return {};
}

// Addresses that other buffers had before are free now.
Result<void> Replay::State::make_room(const capture::Submission& submission) {
  for (auto& [handle, buffer] : buffers) {
    for (const capture::BufferSnapshot& one : submission.buffers) {
      const bool is_moved = one.handle == handle && buffer.address != 0 && buffer.address != one.address;
      const bool is_in_the_way = one.handle != handle && buffer.overlaps(one.address, one.size_bytes);
      if (one.listed && (is_moved || is_in_the_way)) SK_TRY(forget_address(file, buffer));
    }
  }
  return {};
}

// A handle may be freed and used again for a larger buffer.
Result<Buffer*> Replay::State::buffer_for(const capture::BufferSnapshot& recorded) {
  const auto known = buffers.find(recorded.handle);
  if (known != buffers.end() && known->second.size_bytes >= recorded.size_bytes) return &known->second;
  SK_TRY_ASSIGN(const Buffer fresh, allocate(file, recorded.size_bytes));
  if (known != buffers.end()) {
    std::ranges::copy(known->second.bytes, fresh.bytes.begin());
    SK_TRY(release(file, known->second));
  }
  return &(buffers[recorded.handle] = fresh);
}

Replay::Replay(std::unique_ptr<State> state) : state_(std::move(state)) {}
Replay::Replay(Replay&&) noexcept = default;
Replay::~Replay() {
  if (state_ == nullptr) return;
  for (const auto& [handle, buffer] : state_->buffers)
    state_->file.calls().munmap(buffer.bytes.data(), buffer.bytes.size());
}

Result<Replay> Replay::create(const Core& core, const SyscallsRef& calls) {
  SK_TRY_ASSIGN(DrmFile file, DrmFile::open(calls, core.info.node));
  return Replay(std::make_unique<State>(State{std::move(file), core.index, {}, {}, {}}));
}

Result<void> Replay::place(const capture::Submission& submission) {
  SK_TRY_ASSIGN(const std::span<const uint32_t> words, capture::words_of(submission));
  if (words.empty()) return error(ErrorCode::unsupported, "the submission has no command stream");
  SK_TRY(check_sizes(submission));
  SK_TRY(state_->drop_freed(submission));
  SK_TRY(state_->make_room(submission));
  state_->stream.assign(words.begin(), words.end());
  state_->listed.clear();
  for (const capture::BufferSnapshot& one : submission.buffers) {
    if (!one.listed) continue;
    SK_TRY_ASSIGN(Buffer* const buffer, state_->buffer_for(one));
    restore(one, buffer->bytes);
    const uint32_t flags = (one.read ? kSubmitBoRead : 0U) | (one.write ? kSubmitBoWrite : 0U);
    state_->listed.push_back({.flags = flags, .handle = buffer->handle, .presumed = one.address});
    buffer->address = one.address;
  }
  return {};
}

Result<void> Replay::run_placed() {
  GemSubmit request{.pipe = state_->pipe,
                    .nr_bos = static_cast<uint32_t>(state_->listed.size()),
                    .stream_size = static_cast<uint32_t>(state_->stream.size() * 4),
                    .bos = reinterpret_cast<uintptr_t>(state_->listed.data()),
                    .stream = reinterpret_cast<uintptr_t>(state_->stream.data()),
                    .flags = kSubmitSoftpin,
                    .fence_fd = -1};
  SK_TRY(state_->file.call(kGemSubmit, &request, "submitting a job"));
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  WaitFence wait{.pipe = state_->pipe,
                 .fence = request.fence,
                 .flags = 0,
                 .pad = 0,
                 .timeout = {now.tv_sec + kTimeoutSeconds, now.tv_nsec}};
  return state_->file.call(kWaitFence, &wait, "waiting for a job");
}

Result<void> Replay::run(const capture::Submission& submission) {
  SK_TRY(place(submission));
  return run_placed();
}

Result<std::span<uint8_t>> Replay::at(uint64_t address, uint64_t size_bytes) {
  for (const auto& [handle, buffer] : state_->buffers) {
    if (buffer.address == 0 || address < buffer.address || address - buffer.address > buffer.size_bytes) continue;
    const uint64_t offset = address - buffer.address;
    if (size_bytes <= buffer.size_bytes - offset) return buffer.bytes.subspan(offset, size_bytes);
  }
  return error(ErrorCode::out_of_range, "no buffer holds {} bytes at {:#x}", size_bytes, address);
}

Result<std::span<uint8_t>> Replay::buffer(uint32_t handle) {
  const auto found = state_->buffers.find(handle);
  if (found == state_->buffers.end())
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

namespace {

class EtnavivReplayer final : public Replayer {
 public:
  explicit EtnavivReplayer(Replay replay) : replay_(std::move(replay)) {}
  Result<void> run(const capture::Submission& submission) override { return replay_.run(submission); }
  Result<std::span<const uint8_t>> contents(Handle recorded) override {
    SK_TRY_ASSIGN(const std::span<uint8_t> bytes, replay_.buffer(recorded));
    return std::span<const uint8_t>(bytes);
  }

 private:
  Replay replay_;
};

}  // namespace

Result<std::unique_ptr<Replayer>> open_replayer(const Core& core, const SyscallsRef& calls) {
  SK_TRY_ASSIGN(Replay replay, Replay::create(core, calls));
  return std::unique_ptr<Replayer>(std::make_unique<EtnavivReplayer>(std::move(replay)));
}

}  // namespace skillet::kernels::etnaviv
