// Replay: runs the submissions of a capture on a core behind etnaviv, real or simulated, at the recorded addresses.
// Called by tests; the base of a verb `replay`.
// Must not know: who recorded the capture, what the bytes mean.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "capture/capture.h"
#include "kernels/api/device.h"

namespace skillet::kernels::etnaviv {

class Replay {
 public:
  static constexpr uint64_t kLimitBytes = 1ULL << 30;

  static Result<Replay> create(const Core& core, const SyscallsRef& calls);
  Replay(Replay&&) noexcept;
  ~Replay();

  // Puts the recorded contents into the buffers. Those whose contents were not recorded keep what they hold: zeros,
  // what set() gave them, or what an earlier submission wrote. Buffers that the submission does not have are freed.
  // Error when those that it lists have more than kLimitBytes.
  Result<void> place(const capture::Submission& submission);
  // Runs the submission that was placed last to its end.
  Result<void> run_placed();
  // Both.
  Result<void> run(const capture::Submission& submission);
  // Bytes of a buffer by its recorded handle, until the next place() or run(). Error when no submission has listed it.
  Result<std::span<uint8_t>> buffer(uint32_t handle);
  // Bytes at a device address, as the submissions placed so far have put the buffers.
  Result<std::span<uint8_t>> at(uint64_t address, uint64_t size_bytes);
  // Puts `bytes` at the start of a buffer whose contents were not recorded, e.g. a graph input.
  Result<void> set(uint32_t handle, std::span<const uint8_t> bytes);

 private:
  struct State;
  explicit Replay(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace skillet::kernels::etnaviv
