// All recorded jobs of ../shared/golden on the simulator, where that folder exists.
#include <gtest/gtest.h>

#include "golden_case.h"
#include "test_checks.h"

namespace skillet::rockchip_replay {
namespace {

TEST(RockchipReplay, EveryRecordedOperation) {
  const auto dir = golden::find_golden_dir();
  if (!dir) GTEST_SKIP() << "no ../shared/golden: only the small captures were run";
  // The recorded streams write every register that they rely on.
  const auto cases = replay_all(*dir, {.stale_registers = sim::rockchip::Enforce::fault});
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  size_t good = 0;
  for (const CaseRows& rows : *cases) {
    check_operations(rows);
    good += static_cast<size_t>(std::count_if(rows.each.begin(), rows.each.end(), is_good));
  }
  EXPECT_GE(good, 503U);
}

}  // namespace
}  // namespace skillet::rockchip_replay
