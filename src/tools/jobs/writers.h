// Finds the operation of a submission that writes a byte of a buffer, and the pixel of its image.
// Called by `skillet replay`.
// Must not know: a vendor's descriptors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "npu/driver.h"

namespace skillet::tools {

struct Pixel {
  uint64_t row = 0, column = 0, channel = 0;
};

// One output of an operation.
struct Writer {
  uint32_t handle = 0;
  uint64_t offset = 0;   // in the buffer
  std::string job;       // beginning of its fields' paths: "job 1"
  std::string what, op;  // "NN"; "0 CONV_2D" of the model, empty: not known
  npu::WrittenImage image;

  // None if the image's layout is not known, or if the byte is beyond it.
  std::optional<Pixel> pixel_at(uint64_t byte_of_buffer) const;
  // "job 1 NN", "job 1 NN (0 CONV_2D)".
  std::string title() const;
};

// In the order of the operations. `ops`: operations of the model, by operation; may be empty.
std::vector<Writer> writers_of(const npu::Annotated& decoded, const capture::Submission& submission,
                               const std::vector<std::string>& ops);
// The writer whose output begins last at or before the byte, of several the last one; null: none.
const Writer* writer_of(const std::vector<Writer>& writers, uint32_t handle, uint64_t byte_of_buffer);

}  // namespace skillet::tools
