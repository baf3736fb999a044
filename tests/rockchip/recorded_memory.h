// Device memory of recorded submissions, kept from one to the next as a real device would, and tensors in it as the
// recorded driver stores them. Called by replay.cpp.
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
  // Maps the buffers of `submission` that are not mapped yet, whole pages as the kernel does.
  Result<void> add(const capture::Submission& submission);
  const sim::Memory& get() const { return memory_; }

  // NHWC uint8 bytes into a cube of 16 channels, rows of pixels that follow each other; lanes beyond the channels hold
  // the zero point.
  Result<void> write_cube(uint64_t address, std::span<const uint8_t> nhwc, size_t channels, uint8_t zero_point);
  // Bytes of one channel as they are; short rows are filled up to 16 with the zero point.
  Result<void> write_packed(uint64_t address, std::span<const uint8_t> rows, size_t width, uint8_t zero_point);
  // `surface_pixels`: distance of the cube's surfaces.
  Result<Bytes> read_cube(uint64_t address, size_t pixels, size_t channels, size_t surface_pixels) const;

 private:
  std::map<uint64_t, Bytes> buffers_;  // by address
  sim::Memory memory_;
};

}  // namespace skillet::rockchip_replay
