// Recorded jobs on the simulator: the small copies in the repository.
#include <gtest/gtest.h>

#include "base/testing/in_tree.h"
#include "test_checks.h"

namespace skillet::rockchip_replay {
namespace {

const std::string kSmall = skillet::in_tree("tests/rockchip/small");

TEST(RockchipReplay, SmallCases) {
  const auto cases = replay_all(kSmall, {});
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  EXPECT_EQ(cases->size(), 18U);
  size_t operations = 0;
  for (const CaseRows& rows : *cases) {
    check_operations(rows);
    operations += rows.each.size();
    EXPECT_FALSE(rows.final.result == ReplayClass::worse && rows.final.reason.empty()) << rows.final.name;
  }
  EXPECT_EQ(operations, 20U);
}

TEST(RockchipReplay, PlainLoopsGiveTheSame) {
  for (const char* name : {"gen/8_3_1_1_2_0_0_0_4", "edge/res_c1_u8", "edge/split_conv_u8", "rand/022_dw_u8"}) {
    const CaseRows fast = replay_case(kSmall, name, {}), plain = replay_case(kSmall, name, {.reference_only = true});
    ASSERT_FALSE(fast.each.empty()) << name << ": " << fast.final.reason;
    EXPECT_EQ(fast.final.differing, plain.final.differing) << name;
    EXPECT_EQ(fast.final.max_difference, plain.final.max_difference) << name;
  }
}

// The recorded streams write every register that they rely on.
TEST(RockchipReplay, NothingStaleIsUsed) {
  const auto cases = replay_all(kSmall, {.stale_registers = sim::rockchip::Enforce::fault});
  ASSERT_TRUE(cases.ok());
  for (const CaseRows& rows : *cases) {
    if (rows.final.name != "edge/scale_2m100_u8") {
      EXPECT_NE(rows.final.result, ReplayClass::fault) << rows.final.reason;
    }
  }
}

TEST(RockchipReplay, MissingCases) {
  EXPECT_FALSE(replay_all(kSmall + "/none", {}).ok());
  const CaseRows rows = replay_case(kSmall, "gen/none", {});
  EXPECT_EQ(rows.final.result, ReplayClass::fault);
  EXPECT_NE(rows.final.reason.find("none"), std::string::npos) << rows.final.reason;
}

}  // namespace
}  // namespace skillet::rockchip_replay
