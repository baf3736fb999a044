// Recorded jobs on the simulator: small ones that are in the repository, and all of ../shared/golden where that is
// there.
#include <gtest/gtest.h>

#include <map>

#include "capture/capture.h"
#include "golden_case.h"
#include "sim/vivante/vivante.h"
#include "sim_memory.h"
#include "sim_replay.h"

namespace skillet::golden {
namespace {

const std::string kSmall = std::string(SKILLET_SOURCE_DIR) + "/tests/captures/sim_golden";

struct SmallSet {
  const char* chip;
  size_t cases;
};

// V7: a depthwise convolution as a dense one, a stride-2 convolution with its reshuffle, the recorded driver's own
// weight order, and a table on four TP cores. V8: native depthwise with a group that is not full, first-pixel pooling
// and space-to-depth, int8, fully connected, a sum and a difference.
TEST(GoldenReplay, SmallCapturesAreExact) {
  for (const SmallSet& set : {SmallSet{"a311d", 4}, SmallSet{"imx8mp", 10}}) {
    const auto rows = simulate(kSmall, set.chip);
    ASSERT_TRUE(rows.ok()) << rows.error().message;
    EXPECT_EQ(rows->size(), set.cases);
    for (const ReplayRow& row : *rows) {
      EXPECT_EQ(row.result, ReplayClass::exact)
          << row.name << ": " << replay_class_name(row.result) << ", " << row.differing << " differ; " << row.reason;
      EXPECT_GT(row.elements, 0);
    }
  }
}

// The comparison can fail: a changed weight must show.
TEST(GoldenReplay, AChangedWeightShows) {
  const std::string name = "gen/5_3_64_64_1_0_0_1_4";
  const auto capture = capture::read(kSmall + "/a311d/" + name);
  ASSERT_TRUE(capture.ok()) << capture.error().message;
  const auto c = load_case(kSmall, "gen", "5_3_64_64_1_0_0_1_4");
  ASSERT_TRUE(c.ok()) << c.error().message;
  const auto device = sim::vivante::create("a311d", {});
  ASSERT_TRUE(device.ok());
  int equal = 0;
  for (const bool change : {false, true}) {
    CapturedMemory memory;
    capture::Submission last = capture->submissions.back();
    uint64_t output = 0;
    for (capture::BufferSnapshot& buffer : last.buffers) {
      if (buffer.write && !buffer.read) output = buffer.address;
      // The largest recorded contents are the coefficients; byte 64 + 4 is inside the first kernel.
      if (change && buffer.bytes.size() > 2000) buffer.bytes[64 + 4] ^= 0x55;
    }
    ASSERT_TRUE(memory.add(last).ok());
    for (const capture::BufferSnapshot& buffer : last.buffers) {
      if (buffer.holds_input) {
        ASSERT_TRUE(memory.write(buffer.address, c->inputs[0].bytes).ok());
      }
    }
    const auto done = (*device)->execute(last.stream, memory.get());
    ASSERT_TRUE(done.ok()) << done.error().message;
    equal += *memory.read(output, c->outputs[0].bytes) == *c->outputs[0].expected;
  }
  EXPECT_EQ(equal, 1);
}

TEST(GoldenReplay, MissingFolderAndBadCase) {
  EXPECT_FALSE(simulate(kSmall, "rk3588").ok());
  const auto rows = simulate_case(kSmall, "a311d", "gen/none");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].result, ReplayClass::fault);
  EXPECT_NE(rows[0].reason.find("none"), std::string::npos) << rows[0].reason;
}

// Why a recorded job may differ by more than 1 from TensorFlow Lite.
const std::map<std::string, const char*> kKnownWorse = {
    {"ops/dw3x3_s2_relu6_u8", "the recorded driver sends offset 0 where SAME padding needs -1"},
    {"teflon/mb01", "the model declares an 8x8 output where TensorFlow Lite makes 4x4"},
};
bool may_be_worse(const ReplayRow& row) {
  // Chains of two convolutions and an addition: each adds its own 1.
  return kKnownWorse.contains(row.name) || (row.name.starts_with("gen/add_") && row.max_difference == 2);
}

TEST(GoldenReplay, AllRecordedJobs) {
  const auto dir = find_golden_dir(SKILLET_SOURCE_DIR);
  if (!dir) GTEST_SKIP() << "no ../shared/golden: only the small captures were run";
  const auto rows = simulate(*dir, "a311d");
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  std::map<ReplayClass, int> counts;
  for (const ReplayRow& row : *rows) {
    ++counts[row.result];
    EXPECT_NE(row.result, ReplayClass::fault) << row.name << ": " << row.reason;
    if (row.result != ReplayClass::worse) continue;
    EXPECT_TRUE(may_be_worse(row)) << row.name << ": " << row.differing << " differ, at most by " << row.max_difference;
  }
  EXPECT_GE(counts[ReplayClass::exact], 113);
  EXPECT_LE(counts[ReplayClass::worse], 9);
  EXPECT_LE(counts[ReplayClass::not_comparable], 32);
}

}  // namespace
}  // namespace skillet::golden
