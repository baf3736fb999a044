// What the tests of the virtual device node share: the recorded job and its expected output.
// Called by node_test.cpp and files_test.cpp. Must not know: whether the node is a real one.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/testing/in_tree.h"
#include "node.h"

namespace skillet::interpose_test {

inline const std::string kCase = skillet::in_tree("tests/captures/a311d_conv1x1_relu6_u8");
inline constexpr uint64_t kPage = 4096, kLow = 0x00400000;
inline const std::vector<uint32_t> kNothing = {0, 0};  // zero words are skipped

inline RecordedJob load_job() {
  auto job = RecordedJob::load(kCase);
  EXPECT_TRUE(job.ok()) << (job.ok() ? "" : job.error().message);
  return std::move(job).value();
}

// Needed after a reset of the core, which another test may have caused.
inline void set_up_chip(const Node& node) {
  abi::GemSubmit args{};
  args.flags = abi::kSubmitSoftpin;
  ASSERT_EQ(node.submit(args, {}, {0x0801028A, 0x11, 0x08010E13, 0x2}), 0);
}

inline void expect_output(const RecordedJob& job) {
  const std::vector<uint8_t> output = job.output();
  for (size_t i = 0; i < output.size(); ++i) ASSERT_LE(std::abs(output[i] - job.expected()[i]), 1) << i;
}

}  // namespace skillet::interpose_test
