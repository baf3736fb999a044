#include "kernels/api/replayer.h"

namespace skillet::kernels {

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
