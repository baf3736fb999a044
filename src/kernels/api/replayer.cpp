#include "kernels/api/replayer.h"

namespace skillet::kernels {

namespace {

constexpr std::chrono::milliseconds kMoment{20};

}  // namespace

void Overlaps::begin() {
  std::unique_lock lock(mutex_);
  if (waits_) {
    waits_ = false;
    met_.notify_one();
  } else {
    waits_ = true;
    if (!met_.wait_for(lock, kMoment, [&] { return !waits_; })) waits_ = false;
  }
  if (in_flight_++ != 0) ++count_;
}

void Overlaps::end() {
  const std::lock_guard lock(mutex_);
  --in_flight_;
}

uint64_t Overlaps::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

Result<void> check_replay_size(std::span<const capture::BufferSnapshot> buffers, bool only_listed) {
  uint64_t total = 0;
  for (const capture::BufferSnapshot& one : buffers) {
    if (only_listed && !one.listed) continue;
    if (one.size_bytes > kReplayLimitBytes - total)
      return error(ErrorCode::malformed, "buffer {}: {} bytes; all buffers together exceed {}", one.handle,
                   one.size_bytes, kReplayLimitBytes);
    total += one.size_bytes;
  }
  return {};
}

}  // namespace skillet::kernels
