// CheckedReplay: replays submissions and finds operations that the device reported as finished but did not run, as a
// kernel does after it has dropped a hung job.
// Called by `skillet replay`.
// Must not know: a vendor's descriptors, kernels.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/api/replayer.h"
#include "npu/driver.h"

namespace skillet::tools {

class CheckedReplay {
 public:
  CheckedReplay(const npu::Driver& driver, npu::Chip chip, kernels::Replayer& replayer)
      : driver_(&driver), chip_(std::move(chip)), replayer_(&replayer) {}

  // Runs it; the replayer then has the contents of buffers. Returns the paths of address fields (driver.h) where the
  // operation should write but the device wrote nothing, in the first run or in all. If the output equals the former
  // contents, it runs twice more to be sure; the final state is that after one run.
  Result<std::vector<std::string>> run(const capture::Submission& submission);

 private:
  struct Place {
    std::string path;
    uint32_t handle = 0;
    size_t offset = 0, size_bytes = 0;
    bool equals(std::span<const uint8_t> before, std::span<const uint8_t> after) const;
  };
  static std::optional<Place> place_of(const capture::Submission& submission, const npu::AnnotatedField& field);
  // Outputs of operations, except those at the address of an input: their contents may be right before the run.
  std::vector<Place> outputs_of(const capture::Submission& submission) const;
  // The submission with contents of buffers from earlier runs, where it has none itself.
  capture::Submission complete(const capture::Submission& submission) const;
  // A copy with other bytes at those places.
  static capture::Submission with_marks(const capture::Submission& before, const std::vector<Place>& places);
  // Keeps the places whose bytes are equal to those in `before`, or those that differ.
  Result<void> keep(std::vector<Place>& places, const capture::Submission& before, bool equal) const;
  Result<void> remember(const capture::Submission& submission);

  const npu::Driver* driver_;
  npu::Chip chip_;
  kernels::Replayer* replayer_;
  std::map<uint32_t, SharedBytes> kept_;  // after the last run, without trailing zeros: buffers may be large
};

}  // namespace skillet::tools
