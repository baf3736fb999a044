// A recording of tests/captures with its chip and driver.
// Called by the tests of npu/.
// Must not know: families.
#pragma once

#include <string>
#include <vector>

#include "base/testing/in_tree.h"
#include "npu/driver.h"

namespace skillet::npu {

struct Recorded {
  Chip chip;
  const Driver* driver = nullptr;
  std::vector<capture::Submission> submissions;
};

// `name` begins with the chip's name: "a311d_conv1x1_relu6_u8".
inline Recorded recorded(const std::string& name) {
  Recorded out;
  out.chip = find_chip(name.substr(0, name.find('_'))).value();
  out.driver = driver_of(out.chip).value();
  out.submissions = capture::read(skillet::in_tree("tests/captures/") + name)->submissions;
  return out;
}

}  // namespace skillet::npu
