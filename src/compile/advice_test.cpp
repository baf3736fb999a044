// Reasons in groups: in which order a person reads them.
#include "compile/advice.h"

#include <gtest/gtest.h>

namespace skillet::compile {
namespace {

// What nothing runs stops the network; then what costs most, however many it is; where no times are known, what is
// most.
TEST(Advice, GroupsReasonsByTheirCost) {
  const auto row = [](std::string why, double cpu_us, bool nowhere = false) {
    return OpRow{.why = std::move(why), .plain = {}, .nowhere = nowhere, .note = {}, .cpu_us = cpu_us};
  };
  const auto order = [](const std::vector<OpRow>& rows) {
    std::string out;
    for (const ReasonGroup& group : group_reasons(rows)) out += group.reason;
    return out;
  };
  EXPECT_EQ(
      order({row("a", 1), row("a", 1), row("a", 1), row("b", 100), row("c", 20), row("c", 20), row("d", -1, true)}),
      "dbca");
  EXPECT_EQ(order({row("a", -1), row("b", -1), row("b", -1)}), "ba");
}

}  // namespace
}  // namespace skillet::compile
