// What to do about a refusal: rows of one image are no batch, and a filter holds a number for each channel. (A table
// takes an addition of one number.)
#include <gtest/gtest.h>

#include "drivers/vivante/support.h"
#include "drivers/vivante/test_graphs.h"

namespace skillet::drivers::vivante {
namespace {

TEST(Remedies, FollowTheShape) {
  constexpr struct {
    Row row;
    driver::Remedy remedy;
  } kCases[] = {
      {{kFullyConnected, "1x40;1x10", "2x40;2x10", "", ""}, driver::Remedy::one_image},
      {{kFullyConnected, "1x40;1x10", "1x2x40;1x2x10", "", ""}, driver::Remedy::pixels},
      {{kAdd, "1x4x4x8 scale=1 zero=127;inputs 0 1", "8 scale=1 zero=127 const=zeros;inputs 0", "", ""},
       driver::Remedy::fold},
      {{kAdd, "scale=1 zero=127;inputs 0 1", "scale=1 zero=127 const=zeros;inputs 0", "", ""}, driver::Remedy::none},
      {{kAdd, "1x4x4x8 scale=1 zero=127;inputs 0 1", "1x4x1x1 scale=1 zero=127 const=zeros;inputs 0", "", ""},
       driver::Remedy::none},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.row.refused);
    const auto graph = graph_of(c.row, c.row.refused);
    if (!graph) continue;
    const driver::Support refused = check_op(*hw::find_chip("a311d"), *graph, 0);
    EXPECT_FALSE(refused.ok);
    EXPECT_EQ(driver::remedy_name(refused.remedy), driver::remedy_name(c.remedy)) << refused.reason;
  }
}

}  // namespace
}  // namespace skillet::drivers::vivante
