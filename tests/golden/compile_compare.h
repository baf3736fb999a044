// Compares the jobs that a driver compiles with jobs recorded from a driver that works on silicon.
// Called by skillet_golden and its tests.
// Must not know: simulators, anything about vendors.
#pragma once

#include <string>
#include <vector>

#include "expectations.h"
#include "lab/compare/compare.h"

namespace skillet::golden {

// A graph input in our capture.
struct GraphInput {
  npu::KnownTensor place;
  Bytes bytes;  // in the device's form: signed values plus 128
};
// Hash of a buffer whose bytes the recording does not keep.
struct BufferHash {
  uint32_t handle = 0;
  std::string sha256_128;  // first 128 bits, hex; of the whole buffer
};
// How the bytes of graph inputs, as the host wrote them, were compared.
struct InputCounts {
  int by_bytes = 0, by_hash = 0;
  int by_host_bytes = 0;  // the recording notes that the buffer starts with the host's bytes unchanged
  int not_written = 0;    // the recorded host left the buffer zero
  int not_kept = 0;       // neither bytes nor a hash
  int made_by_cpu = 0;    // not a graph input: computed on the CPU, from data that the recording lacks
  int not_found = 0;      // no job reads it, or the jobs differ too much to find the matching buffer

  int judged() const { return by_bytes + by_hash + by_host_bytes; }
};

// A recorded case and the same model compiled by us, both as captures.
struct ComparedCase {
  capture::Capture recorded, ours;
  std::vector<npu::KnownTensor> recorded_tensors, our_tensors;
  std::vector<GraphInput> our_inputs;
  int inputs_made_by_cpu = 0;  // inputs of parts
  std::vector<BufferHash> recorded_hashes;
  std::vector<std::string> refusals;
  bool has_recorded_job = false, has_our_job = false;

  npu::ComparedSide recorded_side() const {
    return {capture::Reader::of(recorded), recorded_tensors, recorded_sizes_are_exact()};
  }
  // False if the recorded kernel rounds sizes to whole pages.
  bool recorded_sizes_are_exact() const;
  npu::ComparedSide our_side() const { return {capture::Reader::of(ours), our_tensors, true}; }
};
// Reads DIR/CHIP/SET/CASE/capture.json, and compiles DIR/models/SET/CASE.tflite for `chip`.
Result<ComparedCase> prepare_case(const std::string& dir, const npu::Chip& chip, const std::string& name,
                                  const npu::CompileOptions& options = {.tuning = npu::Tuning::recorded});

// Compares the jobs, and the bytes that the host writes for graph inputs.
Result<npu::CaptureComparison> compare_sides(const npu::Driver& driver, const npu::Chip& chip, const ComparedCase& c,
                                             InputCounts* counts = nullptr);

// Outcomes:
//   identical   equal for the device except for addresses and the number of buffers, and the host writes the
//               same bytes for graph inputs
//   differs     the details have the decoded field differences; the summary has how many of jobs, fields and bytes,
//               and a hash of both sides' fingerprints
//   refused     our driver does not take the ops; the details have the reasons, the summary a hash of the recorded
//               side's fingerprint
//   no_job      the recorded driver sent nothing: nothing to compare
//   failed      the case could not be read or compiled
// A signed case that has an unsigned twin (twin.h) is compared with both recordings; `counts` are for its own.
Outcome compare_case(const std::string& dir, const npu::Chip& chip, const std::string& name,
                     const npu::CompileOptions& options = {.tuning = npu::Tuning::recorded},
                     InputCounts* counts = nullptr);
// Returns whether a switch alone changes the jobs, compared with no switch.
Result<bool> switch_changes_jobs(const std::string& dir, const npu::Chip& chip, const std::string& name,
                                 std::string_view tuning_switch);

std::string hash_text(uint64_t hash);  // short, for files
// The summary of the differences between two sides; empty if there are none.
Result<std::string> summary_of(const npu::Driver& driver, const npu::Chip& chip, const ComparedCase& c,
                               const npu::CaptureComparison& comparison);
// The differences as text, those of whole jobs first.
std::vector<std::string> detail_lines(const npu::CaptureComparison& comparison);

}  // namespace skillet::golden
