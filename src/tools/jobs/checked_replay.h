// CheckedReplay: replays submissions and notices operations that the device called finished without doing them, as a
// kernel does after it has thrown a hung job away.
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

  // Runs it; contents of buffers are then the replayer's. Returns the paths of the address fields (driver.h) at which
  // the device wrote nothing though the operation writes there, the first time or always. To be sure it runs twice more
  // where what is there is what was there before; in the end everything is as after one run.
  Result<std::vector<std::string>> run(const capture::Submission& submission);

 private:
  struct Place {
    std::string path;
    uint32_t handle = 0;
    size_t offset = 0, size_bytes = 0;
    bool equals(std::span<const uint8_t> before, std::span<const uint8_t> after) const;
  };
  static std::optional<Place> place_of(const capture::Submission& submission, const npu::AnnotatedField& field);
  // What operations write, but for what they may find there already: they write over their own input.
  std::vector<Place> outputs_of(const capture::Submission& submission) const;
  // The submission as it runs now: with what buffers hold whose contents it does not have.
  capture::Submission complete(const capture::Submission& submission) const;
  // That with other bytes at those places.
  static capture::Submission with_marks(const capture::Submission& before, const std::vector<Place>& places);
  // Keeps the places that are as in `before`, or those that are not.
  Result<void> keep(std::vector<Place>& places, const capture::Submission& before, bool equal) const;
  Result<void> remember(const capture::Submission& submission);

  const npu::Driver* driver_;
  npu::Chip chip_;
  kernels::Replayer* replayer_;
  std::map<uint32_t, SharedBytes> kept_;  // after the last run, without the zeros at their end: buffers may be large
};

}  // namespace skillet::tools
