// Remedies of refusals: rows of one image are not a batch, and a filter holds a number for each channel. (A table does
// an addition of one number.)
#include <gtest/gtest.h>

#include "npus/vivante/compiler/assumptions.h"
#include "npus/vivante/compiler/support.h"
#include "npus/vivante/compiler/test_graphs.h"

namespace skillet::npus::vivante {
namespace {

TEST(Remedies, FollowTheShape) {
  constexpr struct {
    Row row;
    npu::Remedy remedy;
  } kCases[] = {
      {{kFullyConnected, "1x40;1x10", "2x40;2x10", "", ""}, npu::Remedy::one_image},
      {{kFullyConnected, "1x40;1x10", "1x2x40;1x2x10", "", ""}, npu::Remedy::pixels},
      {{kAdd, "1x4x4x8 scale=1 zero=127;inputs 0 1", "8 scale=1 zero=127 const=zeros;inputs 0", "", ""},
       npu::Remedy::fold},
      {{kAdd, "scale=1 zero=127;inputs 0 1", "scale=1 zero=127 const=zeros;inputs 0", "", ""}, npu::Remedy::none},
      {{kAdd, "1x4x4x8 scale=1 zero=127;inputs 0 1", "1x4x1x1 scale=1 zero=127 const=zeros;inputs 0", "", ""},
       npu::Remedy::none},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.row.refused);
    const auto graph = graph_of(c.row, c.row.refused);
    if (!graph) continue;
    const npu::Support refused = check_op(*hw::find_chip("a311d"), *graph, 0);
    EXPECT_FALSE(refused.ok);
    EXPECT_EQ(npu::remedy_name(refused.remedy), npu::remedy_name(c.remedy)) << refused.reason;
  }
}

// The remedy is one scale per layer, in one job; only if nothing else prevents the operation.
TEST(Remedies, OfSeveralScalesIsOneScale) {
  for (const npu::Assumption& one : assumptions()) {
    const auto graph = ir::parse(one.probe);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    for (ir::OpId op = 0; op < static_cast<ir::OpId>(graph->ops.size()); ++op) {
      const npu::Support support = supports(*hw::find_chip("a311d"), *graph, op);
      const bool is_it = support.stands_on.size() == 1 && support.stands_on[0]->name == "several_scales";
      EXPECT_EQ(support.remedy == npu::Remedy::one_job, is_it) << one.name;
      EXPECT_EQ(is_it, one.name == "several_scales") << one.name;
    }
  }
}

// No other calibration data turns a jagged function into lines.
TEST(Remedies, OfAJaggedFunctionIsAnotherOne) {
  const auto graph = ir::parse(R"(graph "jagged"
tensor 0 "in" uint8 1x4x4x1 scale=0.02 zero=128
tensor 1 "table" uint8 256 const=random:1
tensor 2 "out" uint8 1x4x4x1 scale=0.02 zero=128
inputs 0
outputs 2
op 0 BYTE_TABLE in=[0 1] out=[2]
)");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const npu::Support refused = check_op(*hw::find_chip("a311d"), *graph, 0);
  EXPECT_FALSE(refused.ok);
  EXPECT_EQ(npu::remedy_name(refused.remedy), "function") << refused.reason;
}

}  // namespace
}  // namespace skillet::npus::vivante
