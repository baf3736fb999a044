// What a capture does, and which parts of its buffers hold what a device reads.
// Called by compare.cpp and buffer_match.cpp. Must not know: a vendor's anything.
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

// What is kept of a whole capture while it is compared submission by submission.
struct Outline {
  std::vector<std::vector<std::string>> operations;  // of each submission
  // By handle: every offset at which commands or constants begin, over all submissions. Each reaches to the next one.
  std::map<uint32_t, std::set<uint64_t>> constants;
};
// Reads `reader` to its end.
Result<Outline> outline_of(const Driver& driver, const Chip& chip, capture::Reader& reader);

// A place in a buffer of a submission.
struct BufferPlace {
  const capture::BufferSnapshot* buffer = nullptr;
  uint64_t offset = 0;
  // From here to the end of the buffer, or to the next thing in it.
  uint64_t room_bytes = 0;
};
std::optional<BufferPlace> find_place(const capture::Submission& submission, uint64_t address);
// Of the address that the field has; an unused 0 is none, though a buffer may be there.
std::optional<BufferPlace> find_place(const capture::Submission& submission, const AnnotatedField& field);

}  // namespace skillet::npu
