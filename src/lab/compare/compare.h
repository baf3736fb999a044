// Are the device commands of two captures the same? Compared field by field through the driver's decoder; addresses by
// what they mean, so that neither the allocator nor the number of buffers matters.
// Called by `skillet diff` and the golden comparison.
// Must not know: a vendor's anything, where the captures come from.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "capture/reader.h"
#include "npu/driver.h"

namespace skillet::npu {

// Where a tensor that enters or leaves a program is, as far as the owner of a capture knows.
struct KnownTensor {
  std::string name;  // "input 0": the same tensor has the same name on both sides
  uint32_t handle = 0;
  uint64_t offset_bytes = 0;
  std::string layout = {};  // how it is there; empty: not known
};
struct ComparedSide {
  capture::Reader reader;
  std::vector<KnownTensor> tensors;
  bool exact_sizes = false;     // of buffers: as they were asked for, not rounded up by an allocator
  bool is_of_hardware = false;  // which knows neither lists nor where a buffer ends
};

enum class DifferenceKind : uint8_t {
  job,    // a submission or an operation that the other side does not have; how a submission is made; its buffers
  field,  // a value
  bytes,  // coefficients, tables, anything else that a device reads
};
struct Difference {
  DifferenceKind kind = DifferenceKind::field;
  size_t submission = 0;  // of a, where it has one
  std::string path;
  std::string a, b;  // empty: not there
};
// Memory that stands for memory of the other side.
struct MatchedMemory {
  uint32_t handle_a = 0, handle_b = 0;
  int64_t distance = 0;  // offset in a - offset in b
};
struct CaptureComparison {
  std::vector<Difference> differences;
  std::vector<MatchedMemory> memory;
  // One line per submission: how many operations it has on both sides, and how many of them differ.
  std::vector<std::string> jobs;

  bool same() const { return differences.empty(); }
  size_t count(DifferenceKind kind) const;
};

// Reads each side twice, with one submission of each in memory. Error when a side cannot be decoded.
Result<CaptureComparison> compare(const Driver& driver, const Chip& chip, ComparedSide a, ComparedSide b);

}  // namespace skillet::npu
