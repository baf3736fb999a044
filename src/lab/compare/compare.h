// Compares the device commands of two captures, field by field through the driver's decoder. Addresses are compared by
// meaning, so that neither the allocator nor the number of buffers matters.
// Called by `skillet diff` and the golden comparison.
// Must not know: anything of a vendor, the source of the captures.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "capture/reader.h"
#include "npu/driver.h"

namespace skillet::npu {

// Place of a program's input or output tensor, as far as the owner of a capture knows it.
struct KnownTensor {
  std::string name;  // "input 0": the same tensor has the same name on both sides
  uint32_t handle = 0;
  uint64_t offset_bytes = 0;
  std::string layout = {};  // its layout there; empty: not known
};
struct ComparedSide {
  capture::Reader reader;
  std::vector<KnownTensor> tensors;
  bool exact_sizes = false;     // sizes of buffers are the requested ones, not rounded up by an allocator
  bool is_of_hardware = false;  // hardware has neither lists nor ends of buffers
};

enum class DifferenceKind : uint8_t {
  job,    // a submission or operation that the other side lacks; parameters of a submission; its buffers
  field,  // a value
  bytes,  // coefficients, tables, any other bytes that a device reads
};
struct Difference {
  DifferenceKind kind = DifferenceKind::field;
  size_t submission = 0;  // in a, if a has it
  std::string path;
  std::string a, b;  // empty: missing
};
// Memory that corresponds to memory of the other side.
struct MatchedMemory {
  uint32_t handle_a = 0, handle_b = 0;
  int64_t distance = 0;  // offset in a - offset in b
};
struct CaptureComparison {
  std::vector<Difference> differences;
  std::vector<MatchedMemory> memory;
  // One line per submission: its numbers of operations on both sides, and of differences.
  std::vector<std::string> jobs;

  bool same() const { return differences.empty(); }
  size_t count(DifferenceKind kind) const;
};

// Reads each side twice, with one submission of each in memory. Error if a side cannot be decoded.
Result<CaptureComparison> compare(const Driver& driver, const Chip& chip, ComparedSide a, ComparedSide b);

}  // namespace skillet::npu
