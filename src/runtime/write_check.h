// WriteCheck: notices that a job finished without writing its output, which is all that user space sees of a job that
// hung and was thrown away with a reset of the chip.
// Called by LoadedProgram for each output.
// Must not know: jobs, devices.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace skillet::runtime {

// Writes a mark over the end of a tensor and looks later whether it is still there. Costs 16 bytes each way.
class WriteCheck {
 public:
  // Keeps the bytes at the end of `tensor` and writes the mark over them.
  void mark(std::span<uint8_t> tensor);
  // A job that writes the tensor has run.
  void job_ran() { pending_ = marked_; }
  // False: the job since the last mark has not written the tensor, which now holds a different mark. Otherwise the
  // tensor is as the last job left it, also when none ran since the last mark.
  bool settle(std::span<uint8_t> tensor);

 private:
  static constexpr size_t kMarkBytes = 16;
  static std::span<uint8_t> end_of(std::span<uint8_t> tensor);
  uint8_t mark_byte(size_t i) const;

  std::array<uint8_t, kMarkBytes> kept_{};
  uint8_t flip_ = 0;
  bool marked_ = false, pending_ = false;
};

}  // namespace skillet::runtime
