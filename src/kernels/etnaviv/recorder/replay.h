// Replay: runs the submissions of a capture on a core of etnaviv, real or simulated, at the recorded addresses.
// Called by `skillet replay`, as a Replayer, and by tests.
// Must not know: the source of the capture, what the bytes mean.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "capture/capture.h"
#include "kernels/api/drm_file.h"
#include "kernels/api/replayer.h"
#include "kernels/etnaviv/abi.h"

namespace skillet::kernels::etnaviv {

class Replay final : public Replayer {
 public:
  static Result<Replay> create(const Core& core, const SyscallsRef& calls);
  Replay(Replay&&) noexcept = default;
  ~Replay() override;

  // Copies the recorded contents into the buffers. Buffers without recorded contents keep theirs: zeros, bytes from
  // set(), or results of an earlier submission. Buffers that are not in the submission are freed. Error if the listed
  // buffers exceed kReplayLimitBytes.
  Result<void> place(const capture::Submission& submission);
  // Runs the submission of the last place() to its end.
  Result<void> run_placed();
  // place() and run_placed().
  Result<void> run(const capture::Submission& submission) override;
  // Bytes of a buffer by its recorded handle, valid until the next place() or run(). Error if no submission has listed
  // it.
  Result<std::span<uint8_t>> buffer(uint32_t handle);
  // Bytes at a device address, by the placement of the submissions so far.
  Result<std::span<uint8_t>> at(uint64_t address, uint64_t size_bytes);
  // Copies `bytes` to the start of a buffer without recorded contents, e.g. a graph input.
  Result<void> set(uint32_t handle, std::span<const uint8_t> bytes);

  Result<std::span<const uint8_t>> contents(Handle recorded) override;

 private:
  struct Buffer {
    uint32_t handle = 0;  // of the replaying device
    uint64_t size_bytes = 0;
    uint64_t address = 0;  // 0: no submission has mapped it
    std::span<uint8_t> bytes;

    bool overlaps(uint64_t start, uint64_t size) const {
      return address != 0 && address < start + size && start < address + size_bytes;
    }
  };

  Replay(DrmFile file, uint32_t pipe) : file_(std::move(file)), pipe_(pipe) {}
  Result<Buffer> allocate(uint64_t size_bytes) const;
  Result<void> release(const Buffer& buffer) const;
  Result<void> forget_address(Buffer& buffer) const;
  Result<void> drop_freed(const capture::Submission& submission);
  Result<void> make_room(const capture::Submission& submission);
  Result<Buffer*> buffer_for(const capture::BufferSnapshot& recorded);

  DrmFile file_;
  uint32_t pipe_ = 0;
  std::map<uint32_t, Buffer> buffers_;  // by recorded handle; buffers that a submission lists
  std::vector<uint32_t> stream_;        // of the placed submission, with its buffers
  std::vector<SubmitBo> listed_;
};

}  // namespace skillet::kernels::etnaviv
