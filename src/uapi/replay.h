// Replay: runs the submissions of a capture on a simulated chip, at the recorded device addresses.
// Called by `skillet replay` and by tests.
// Must not know: who recorded the capture, what the bytes mean.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "capture/capture.h"
#include "sim/sim.h"

namespace skillet::uapi {

class Replay {
 public:
  // `capture` is borrowed. Error when a buffer is larger than the 4 GiB that a chip can address.
  static Result<Replay> create(std::unique_ptr<sim::Device> chip, const capture::Capture& capture);

  size_t size() const { return capture_->submissions.size(); }
  // Puts the recorded contents into the buffers and executes submission `index`. Buffers whose contents were not
  // recorded keep what they hold: zeros, what set() gave them, or what an earlier submission wrote.
  Result<void> run(size_t index);
  // Bytes of a buffer by its recorded handle. Error when no submission lists it.
  Result<std::span<uint8_t>> buffer(uint32_t handle);
  // Puts `bytes` at the start of a buffer whose contents were not recorded, e.g. a graph input.
  Result<void> set(uint32_t handle, std::span<const uint8_t> bytes);

 private:
  Replay(std::unique_ptr<sim::Device> chip, const capture::Capture& capture)
      : chip_(std::move(chip)), capture_(&capture) {}
  Bytes& bytes_of(const capture::BufferSnapshot& snapshot);

  std::unique_ptr<sim::Device> chip_;
  const capture::Capture* capture_;
  std::map<uint32_t, Bytes> buffers_;  // by handle; those that a submission lists
};

}  // namespace skillet::uapi
