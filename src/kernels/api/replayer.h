// Replayer: runs recorded submissions on a core, at the recorded addresses, from any recorder.
// Called by `skillet replay`; implemented in kernels/<kernel>/recorder/replay*.cpp.
// Must not know: what the bytes mean.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>

#include "kernels/api/device.h"

namespace skillet::kernels {

// Counts how often jobs of two replayers were submitted at the same time. begin() waits a moment for the other
// replayer, so that both submit together.
class Overlaps {
 public:
  void begin();  // call directly before a submission
  void end();    // call after it has ended
  uint64_t count() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable met_;
  bool waits_ = false;  // a replayer is waiting in begin()
  int in_flight_ = 0;
  uint64_t count_ = 0;
};

class Replayer {
 public:
  virtual ~Replayer() = default;
  // Copies the recorded contents into the buffers and runs the submission to its end. Buffers without recorded contents
  // keep those of earlier submissions, initially zeros.
  virtual Result<void> run(const capture::Submission& submission) = 0;
  // Contents of a buffer of the last submission, by its recorded handle; valid until the next run().
  virtual Result<std::span<const uint8_t>> contents(Handle recorded) = 0;
  // Counts overlaps from now on; null: stops. Kernel drivers with one core do not support this.
  virtual void count_overlaps(Overlaps*) {}
};

// Recordings with more memory are not replayed: a replay may need it twice, if buffers move.
inline constexpr uint64_t kReplayLimitBytes = 512ULL << 20;
// If the kernel driver chooses addresses, a replay also allocates the space before a recorded address.
inline constexpr uint64_t kReplayEndAddress = 1ULL << 30;
// Error if the buffers that a replay places have more memory in total.
Result<void> check_replay_size(std::span<const capture::BufferSnapshot> buffers, bool only_listed);

Result<std::unique_ptr<Replayer>> open_replayer(const Core& core, const SyscallsRef& calls);

}  // namespace skillet::kernels
