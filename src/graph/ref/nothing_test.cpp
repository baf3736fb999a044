// Ops whose inputs or outputs have no elements.
#include <gtest/gtest.h>

#include <limits>

#include "graph/ref/ref.h"

namespace skillet::ref {
namespace {

// Inputs without elements; other inputs contain 7.5. As in TensorFlow Lite's kernels.
TEST(Ref, MakesSomethingOfNothing) {
  constexpr float kLow = std::numeric_limits<float>::lowest(), kHigh = std::numeric_limits<float>::max();
  const struct {
    const char *out, *constant, *op;
    std::vector<float> expected;
  } kRows[] = {
      {"3", "int32 1 const=[0]", "SUM in=[0 1] out=[5]", {0, 0, 0}},
      {"3", "int32 1 const=[0]", "REDUCE_PROD in=[0 1] out=[5]", {1, 1, 1}},
      {"3", "int32 1 const=[0]", "REDUCE_MAX in=[0 1] out=[5]", {kLow, kLow, kLow}},
      {"3", "int32 1 const=[0]", "REDUCE_MIN in=[0 1] out=[5]", {kHigh, kHigh, kHigh}},
      {"0x3", "int32 1 const=[1]", "CUMSUM in=[0 1] out=[5]", {}},
      {"0x3", "int32 2 const=[1 0]", "TRANSPOSE in=[2 1] out=[5]", {}},
      {"3x0", "int32 1 const=[0]", "LOG_SOFTMAX in=[2] out=[5]", {}},
      {"1x3", "int32 2x2 const=[1 0 0 0]", "PAD in=[0 1] out=[5]", {0, 0, 0}},
      {"2x3", "int32 1 const=[0]", "CONCATENATION in=[0 3 0 3] out=[5] axis=0", {7.5, 7.5, 7.5, 7.5, 7.5, 7.5}},
      {"0x3", "int32 2 const=[0 0]", "SLICE in=[3 1 4] out=[5]", {}},
  };
  for (const auto& row : kRows) {
    auto graph =
        ir::parse(fmt::format("tensor 0 \"in\" float32 0x3\ntensor 1 \"c\" {}\n"
                              "tensor 2 \"turned\" float32 3x0\ntensor 3 \"some\" float32 1x3\n"
                              "tensor 4 \"size\" int32 2 const=[0 3]\ntensor 5 \"out\" float32 {}\n"
                              "inputs 0 2 3\noutputs 5\nop 0 {}\n",
                              row.constant, row.out, row.op));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    auto interpreter = Interpreter::create(*graph);
    ASSERT_TRUE(interpreter.ok()) << row.op << ": " << interpreter.error().message;
    for (size_t i = 0; i < 3; ++i) store_le(interpreter->tensor(3).data() + 4 * i, 7.5F);
    ASSERT_TRUE(interpreter->run().ok()) << row.op;
    std::vector<float> got;
    for (size_t i = 0; i < interpreter->tensor(5).size(); i += 4)
      got.push_back(load_le<float>(interpreter->tensor(5).data() + i));
    EXPECT_EQ(got, row.expected) << row.op;
  }
}

}  // namespace
}  // namespace skillet::ref
