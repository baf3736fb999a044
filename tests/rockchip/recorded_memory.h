// Device memory of recorded submissions, which keeps its contents between submissions as a real device would, and its
// tensors in the recorded driver's layout. Called by replay.cpp.
// Must not know: models, what a job does.
#pragma once

#include <map>

#include "base/bytes.h"
#include "base/result.h"
#include "capture/capture.h"
#include "sim/sim.h"

namespace skillet::rockchip_replay {

class RecordedMemory {
 public:
  // Maps those buffers of `submission` that are not mapped yet, in whole pages as the kernel does.
  Result<void> add(const capture::Submission& submission);
  const sim::Memory& get() const { return memory_; }

  // Writes NHWC uint8 bytes as a cube of 16 channels with contiguous rows; lanes beyond the channels contain the zero
  // point.
  Result<void> write_cube(uint64_t address, std::span<const uint8_t> nhwc, size_t channels, uint8_t zero_point);
  // Writes the bytes of one channel unchanged; rows shorter than 16 are filled up with the zero point.
  Result<void> write_packed(uint64_t address, std::span<const uint8_t> rows, size_t width, uint8_t zero_point);
  // `surface_pixels`: distance between the cube's surfaces.
  Result<Bytes> read_cube(uint64_t address, size_t pixels, size_t channels, size_t surface_pixels) const;

 private:
  std::map<uint64_t, Bytes> buffers_;  // by address
  sim::Memory memory_;
};

}  // namespace skillet::rockchip_replay
