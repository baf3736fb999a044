// Graphs of single operations, for checks of a host's operations.
#include "frontend/host/one_op.h"

#include <gtest/gtest.h>

namespace skillet::host {
namespace {

TEST(OneOp, HasItsTensorsAlsoBehindOneThatIsMissing) {
  ir::Graph graph;
  for (const char* name : {"unused", "a", "b", "out"}) graph.add_tensor({.name = name, .dtype = ir::DType::uint8});
  graph.tensor(2).data = Bytes{7};
  ir::Op op{.kind = ir::OpKind::add};
  op.inputs = {1, ir::kNoTensor, 2, 1};
  op.outputs = {3};
  const ir::Graph alone = only(graph, op);
  EXPECT_EQ(alone.ops.at(0).inputs, (std::vector<ir::TensorId>{0, ir::kNoTensor, 1, 0}));
  EXPECT_EQ(alone.ops.at(0).outputs, (std::vector<ir::TensorId>{2}));
  EXPECT_EQ(alone.inputs, (std::vector<ir::TensorId>{0})) << "what is constant is given";
  EXPECT_EQ(alone.outputs, (std::vector<ir::TensorId>{2}));
  ASSERT_EQ(alone.tensors.size(), 3U);
  EXPECT_EQ(alone.tensor(1).name, "b");
}

}  // namespace
}  // namespace skillet::host
