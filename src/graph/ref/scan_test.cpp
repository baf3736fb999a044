// TOPK_V2 whose outputs do not fit its input.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/ref/ref.h"

namespace skillet::ref {
namespace {

// The shape rules do not read a k of 16 bits.
TEST(Ref, MoreValuesThanARowHasAreRefused) {
  for (const auto& [values, indices] : {std::pair("2x5", "2x5"), {"3x2", "3x2"}, {"2x3", "2x2"}}) {
    const auto graph = ir::parse(
        fmt::format("graph \"g\"\ntensor 0 \"x\" int8 2x4 scale=0.5 zero=0\ntensor 1 \"k\" int16 1 const=[3]\n"
                    "tensor 2 \"y\" int8 {} scale=0.5 zero=0\ntensor 3 \"at\" int16 {}\ninputs 0\noutputs 2 3\n"
                    "op 0 TOPK_V2 in=[0 1] out=[2 3]\n",
                    values, indices));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const auto interpreter = Interpreter::create(*graph);
    ASSERT_FALSE(interpreter.ok()) << values;
    EXPECT_EQ(interpreter.error().message, fmt::format("op 0 TOPK_V2 -> 'y': the best {} of 2x4", values));
  }
}

}  // namespace
}  // namespace skillet::ref
