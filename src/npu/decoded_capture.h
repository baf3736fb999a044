// The operations of a capture, and the places in its buffers that a device reads. Called by compare.cpp and
// buffer_match.cpp. Must not know: anything of one vendor.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "capture/reader.h"
#include "npu/driver.h"

namespace skillet::npu {

// Data about a whole capture that is kept while it is compared submission by submission.
struct Outline {
  std::vector<std::vector<std::string>> operations;  // of each submission
  // By handle: every offset at which commands or constants begin, over all submissions. Each extends to the next one.
  std::map<uint32_t, std::set<uint64_t>> constants;
};
// Reads `reader` to its end.
Result<Outline> outline_of(const Driver& driver, const Chip& chip, capture::Reader& reader);

// A place in a buffer of a submission.
struct BufferPlace {
  const capture::BufferSnapshot* buffer = nullptr;
  uint64_t offset = 0;
  // Bytes to the end of the buffer, or to the next thing in it.
  uint64_t room_bytes = 0;
};
std::optional<BufferPlace> find_place(const capture::Submission& submission, uint64_t address);
// The place of the field's address. An unused 0 is no address, even if a buffer is there.
std::optional<BufferPlace> find_place(const capture::Submission& submission, const AnnotatedField& field);

}  // namespace skillet::npu
