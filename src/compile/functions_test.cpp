// Functions of one byte that do not become a table: the report gives the reason for their operations.
#include <gtest/gtest.h>

#include "compile/compile.h"
#include "graph/passes/testing/letters.h"

namespace skillet::compile {
namespace {

TEST(Compile, SaysWhyAFunctionOfOneByteIsNoTable) {
  passes::Letters letters("a", {"c=relu(a)", "d=mul(c,a)"}, "d");
  letters.graph.ops[0].kind = ir::OpKind::hard_swish;
  for (int32_t i = 0; i < 2; ++i) letters.graph.ops[static_cast<size_t>(i)].source_index = i;
  const passes::AddMulDriver driver;
  const auto out = compile(letters.graph, {&driver, {}}, {});
  ASSERT_TRUE(out.ok()) << out.error().message;
  ASSERT_EQ(out->ops.size(), 2U);
  EXPECT_EQ(out->ops[0].note, "HARD_SWISH, MUL as one table: BYTE_TABLE is not add or mul");
  EXPECT_EQ(out->ops[1].note, "") << "the NPU takes it alone";
}

}  // namespace
}  // namespace skillet::compile
