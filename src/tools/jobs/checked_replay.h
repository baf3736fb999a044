// CheckedReplay: replays submissions and notices operations that the device called finished without doing them, as a
// kernel does after it has thrown a hung job away.
// Called by `skillet replay`.
// Must not know: a vendor's descriptors, kernels.
#pragma once

#include <map>
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
  // the device wrote nothing though the operation writes there. To be sure it runs twice more where what is there is
  // what was there before; in the end everything is as after one run.
  Result<std::vector<std::string>> run(const capture::Submission& submission);

 private:
  struct Place {
    std::string path;
    uint32_t handle = 0;
    size_t offset = 0, size_bytes = 0;
    bool equals(std::span<const uint8_t> a, std::span<const uint8_t> b) const;
  };
  std::vector<Place> outputs_of(const capture::Submission& submission) const;
  // The submission as it runs now: with what buffers hold whose contents it does not have.
  capture::Submission complete(const capture::Submission& submission) const;
  // Leaves out the places that are not as in `before`.
  Result<void> keep_equal(std::vector<Place>& places, const capture::Submission& before) const;
  Result<void> remember(const capture::Submission& submission);

  const npu::Driver* driver_;
  npu::Chip chip_;
  kernels::Replayer* replayer_;
  std::map<uint32_t, Bytes> kept_;  // of buffers without recorded contents, after the last run
};

}  // namespace skillet::tools
