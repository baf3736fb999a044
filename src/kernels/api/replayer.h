// Replayer: runs recorded submissions on a core, at the recorded addresses, no matter what recorded them.
// Called by `skillet replay`; implemented in kernels/<kernel>/recorder/replay*.cpp.
// Must not know: what the bytes mean.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>

#include "kernels/api/device.h"

namespace skillet::kernels {

// How often jobs of two replayers were with the kernel at once. Each gives its jobs when the other is about to, too, or
// after a moment.
class Overlaps {
 public:
  void begin();  // right before jobs are given
  void end();    // they have ended
  uint64_t count() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable met_;
  bool waits_ = false;  // one does
  int in_flight_ = 0;
  uint64_t count_ = 0;
};

class Replayer {
 public:
  virtual ~Replayer() = default;
  // Puts the recorded contents into the buffers and runs the submission to its end. Buffers whose contents were not
  // recorded keep what an earlier submission left there; at first: zeros.
  virtual Result<void> run(const capture::Submission& submission) = 0;
  // Bytes of a buffer of the submission that ran last, by its recorded handle, until the next run().
  virtual Result<std::span<const uint8_t>> contents(Handle recorded) = 0;
  // From now on; null: no longer. Kernels with one core need none.
  virtual void count_overlaps(Overlaps*) {}
};

// More memory than this is no recording that we replay: a replay may need it twice, where buffers move.
inline constexpr uint64_t kReplayLimitBytes = 512ULL << 20;
// Where the kernel chooses addresses, a replay takes those before a recorded one, too.
inline constexpr uint64_t kReplayEndAddress = 1ULL << 30;
// Error where those of `buffers` that a replay places have more, all together.
Result<void> check_replay_size(std::span<const capture::BufferSnapshot> buffers, bool only_listed);

Result<std::unique_ptr<Replayer>> open_replayer(const Core& core, const SyscallsRef& calls);

}  // namespace skillet::kernels
