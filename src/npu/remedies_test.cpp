// Remedies of float operations between a model's inputs or outputs and its 8-bit tensors.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "npu/driver.h"

namespace skillet::npu {
namespace {

struct Case {
  const char* name;
  std::string ops;
  std::vector<Remedy> wanted;  // of each operation
};

// Tensors 0 to 2 are float32, 3 to 5 have 8 bits, 6 is the order of a TRANSPOSE.
constexpr const char* kTensors =
    "graph \"\"\n"
    "tensor 0 \"a\" float32 2x2\ntensor 1 \"b\" float32 2x2\ntensor 2 \"c\" float32 2x2\n"
    "tensor 3 \"d\" int8 2x2 scale=0.5\ntensor 4 \"e\" int8 2x2 scale=0.5\ntensor 5 \"f\" int8 2x2 scale=0.5\n"
    "tensor 6 \"o\" int32 2 const=[1 0]\n";

TEST(Remedies, FloatOperationsAtTheBorderCanHave8Bits) {
  using enum Remedy;
  const std::vector<Case> cases = {
      {"an input that is moved first",
       "inputs 0\noutputs 4\nop 0 TRANSPOSE in=[0 6] out=[1]\nop 1 QUANTIZE in=[1] out=[3]\nop 2 TANH in=[3] out=[4]\n",
       {move_bytes, keep_bytes, none}},
      {"an output that is moved last",
       "inputs 3\noutputs 1\nop 0 TANH in=[3] out=[4]\nop 1 DEQUANTIZE in=[4] out=[0]\nop 2 TRANSPOSE in=[0 6] "
       "out=[1]\n",
       {none, keep_bytes, move_bytes}},
      {"an output that something in float reads",
       "inputs 3\noutputs 1\nop 0 TANH in=[3] out=[4]\nop 1 DEQUANTIZE in=[4] out=[0]\nop 2 TANH in=[0] out=[1]\n",
       {none, none, none}},
      {"all in float",
       "inputs 0\noutputs 2\nop 0 TRANSPOSE in=[0 6] out=[1]\nop 1 TANH in=[1] out=[2]\n",
       {none, none}},
      {"only moved", "inputs 0\noutputs 1\nop 0 TRANSPOSE in=[0 6] out=[1]\n", {none}},
      {"inside the network",
       "inputs 0\noutputs 4\nop 0 TANH in=[0] out=[1]\nop 1 TRANSPOSE in=[1 6] out=[2]\nop 2 QUANTIZE in=[2] out=[3]\n"
       "op 3 TANH in=[3] out=[4]\n",
       {none, none, none, none}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto graph = ir::parse(kTensors + c.ops);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    ASSERT_EQ(graph->ops.size(), c.wanted.size());
    for (size_t op = 0; op < c.wanted.size(); ++op)
      EXPECT_EQ(remedy_name(remedy_at_border(*graph, static_cast<ir::OpId>(op))), remedy_name(c.wanted[op])) << op;
  }
}

}  // namespace
}  // namespace skillet::npu
