// Recorded jobs on the simulator: small ones that are in the repository. All others: skillet_golden --simulate.
#include <gtest/gtest.h>

#include "capture/capture.h"
#include "captures.h"
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
    const auto names = list_captures(kSmall, set.chip);
    ASSERT_TRUE(names.ok()) << names.error().message;
    EXPECT_EQ(names->size(), set.cases);
    for (const std::string& name : *names) {
      const ReplayRow row = simulate_case(kSmall, set.chip, name).at(0);
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
      if (!change || buffer.bytes.size() <= 2000) continue;
      Bytes changed(buffer.bytes.begin(), buffer.bytes.end());
      changed[64 + 4] ^= 0x55;
      buffer.bytes = std::move(changed);
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
  EXPECT_FALSE(list_captures(kSmall, "rk3588").ok());
  const auto rows = simulate_case(kSmall, "a311d", "gen/none");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].result, ReplayClass::fault);
  EXPECT_NE(rows[0].reason.find("none"), std::string::npos) << rows[0].reason;
}

}  // namespace
}  // namespace skillet::golden
