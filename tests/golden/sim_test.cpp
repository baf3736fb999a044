// Small recorded jobs of the repository on the simulator. All others: skillet_golden --simulate.
#include <gtest/gtest.h>

#include "base/testing/in_tree.h"
#include "capture/capture.h"
#include "captures.h"
#include "golden_case.h"
#include "kernels/etnaviv/recorder/replay.h"
#include "kernels/fake/simulated.h"
#include "sim_replay.h"

namespace skillet::golden {
namespace {

const std::string kSmall = skillet::in_tree("tests/captures/sim_golden");

struct SmallSet {
  const char* chip;
  size_t cases;
};

// A case with weights stored row by row, which silicon reads differently (specification 6.2.3, 11.1).
constexpr const char* kRowAfterRow = "gen/8_5_1_120_1_0_0_0_4";

// V7: a depthwise convolution as a dense one, a stride-2 convolution with its reshuffle, the recorded driver's own
// weight order, and a table on four TP cores. V8: native depthwise with a partial group, first-pixel pooling and
// space-to-depth, int8, fully connected, a sum and a difference.
TEST(GoldenReplay, SmallCapturesAreExact) {
  for (const SmallSet& set : {SmallSet{"a311d", 4}, SmallSet{"imx8mp", 10}}) {
    const auto names = list_captures(kSmall, set.chip);
    ASSERT_TRUE(names.ok()) << names.error().message;
    EXPECT_EQ(names->size(), set.cases);
    for (const std::string& name : *names) {
      setenv("SKILLET_SIM_5X5_ORDER", name == kRowAfterRow ? "row_wise" : "patch", 1);
      const ReplayRow row = simulate_case(kSmall, set.chip, name).at(0);
      unsetenv("SKILLET_SIM_5X5_ORDER");
      EXPECT_EQ(row.result, ReplayClass::exact)
          << row.name << ": " << replay_class_name(row.result) << ", " << row.differing << " differ; " << row.reason;
      EXPECT_GT(row.elements, 0);
    }
  }
}

// Golden cases read weights as every other user of the simulator does, and report the assumptions they depend on.
TEST(GoldenReplay, SaysWhichAssumptionsACaseRestsOn) {
  const ReplayRow row = simulate_case(kSmall, "a311d", kRowAfterRow).at(0);
  EXPECT_EQ(row.result, ReplayClass::worse);
  EXPECT_TRUE(row.rests_on.contains("order_5x5_ic1"));
  const ReplayRow other = simulate_case(kSmall, "a311d", "gen/5_3_64_64_1_0_0_1_4").at(0);
  EXPECT_TRUE(other.rests_on.empty()) << *other.rests_on.begin();
}

// The comparison can fail: a changed weight shows.
TEST(GoldenReplay, AChangedWeightShows) {
  const std::string name = "gen/5_3_64_64_1_0_0_1_4";
  const auto capture = capture::read(kSmall + "/a311d/" + name);
  ASSERT_TRUE(capture.ok()) << capture.error().message;
  const auto c = load_case(kSmall, "gen", "5_3_64_64_1_0_0_1_4");
  ASSERT_TRUE(c.ok()) << c.error().message;
  int equal = 0;
  for (const bool change : {false, true}) {
    capture::Capture last{.device = capture->device, .submissions = {capture->submissions.back()}};
    uint64_t input = 0, output = 0;
    for (capture::BufferSnapshot& buffer : last.submissions[0].buffers) {
      if (buffer.write && !buffer.read) output = buffer.address;
      if (buffer.holds_input) input = buffer.address;
      // The largest recorded contents are the coefficients; byte 64 + 4 is inside the first kernel.
      if (!change || buffer.bytes.size() <= 2000) continue;
      Bytes changed(buffer.bytes.begin(), buffer.bytes.end());
      changed[64 + 4] ^= 0x55;
      buffer.bytes = std::move(changed);
    }
    const auto chip = fake::simulated_core("a311d").value();
    auto replay = kernels::etnaviv::Replay::create(chip.core, chip.calls).value();
    ASSERT_TRUE(replay.place(last.submissions[0]).ok());
    std::ranges::copy(c->inputs[0].bytes, replay.at(input, c->inputs[0].bytes.size()).value().begin());
    const auto done = replay.run_placed();
    ASSERT_TRUE(done.ok()) << done.error().message;
    const auto result = replay.at(output, c->outputs[0].bytes).value();
    equal += Bytes(result.begin(), result.end()) == *c->outputs[0].expected;
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
