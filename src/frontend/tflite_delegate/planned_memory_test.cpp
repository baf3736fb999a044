// Operations from a vendor's compiler, as hosts pass them: addresses of their tensors, and tensors that are memory of
// an operation.
#include <gtest/gtest.h>

#include "frontend/tflite_delegate/graph_builder.h"
#include "frontend/tflite_delegate/kernel.h"
#include "frontend/tflite_delegate/testing/fake_host.h"

namespace skillet::delegate {
namespace {

ir::Graph made_by_a_vendor() {
  return ir::parse(R"(graph "g"
tensor 0 "commands" uint8 4 const=[1 2 3 4]
tensor 1 "nothing" uint8 0
tensor 2 "memory" uint8 64
tensor 3 "in" int8 1x2x2x4 scale=0.5 zero=0
tensor 4 "out" int8 1x2x2x4 scale=0.5 zero=0
tensor 5 "bytes" uint8 16 scale=0.5 zero=0
inputs 1 2 3 5
outputs 4
op 0 "vendor" in=[0 1 2 2 3 5] out=[4]
)")
      .value();
}

std::vector<int32_t> plan_of(std::vector<int32_t> places) {
  places.insert(places.begin(), {1, 0, static_cast<int32_t>(places.size())});
  return places;
}
std::vector<int32_t> kept_plan;

TfLiteStatus get_plan(const TfLiteContext*, const char* name, const char** bytes, size_t* size) {
  if (std::string_view(name) != "OfflineMemoryAllocation") return kTfLiteError;
  *bytes = reinterpret_cast<const char*>(kept_plan.data());
  *size = kept_plan.size() * sizeof(int32_t);
  return kTfLiteOk;
}

HostGraph built(FakeHost& host) {
  const int outputs[] = {4};
  return build_graph(host.context(), std::vector{read_node(host.context(), 0).value()}, outputs).value();
}

TEST(PlannedMemory, IsReadFromTheHostsMetadata) {
  FakeHost host(made_by_a_vendor());
  EXPECT_EQ(built(host).own_memory, std::vector<int>()) << "a host without metadata";
  host.context()->GetModelMetadata = get_plan;
  kept_plan = plan_of({-1, -1, 0, 32, 48, -1});
  const HostGraph graph = built(host);
  const auto by_host = [&](int host_tensor) -> const ir::Tensor& {
    const auto found = std::ranges::find(graph.host_tensor, host_tensor);
    return graph.graph.tensors.at(static_cast<size_t>(found - graph.host_tensor.begin()));
  };
  EXPECT_EQ(by_host(3).planned_at, 32U);
  EXPECT_EQ(by_host(4).planned_at, 48U);
  EXPECT_FALSE(by_host(5).planned_at.has_value());
  EXPECT_EQ(by_host(2).data.size(), 64U) << "memory of its own is zeros";
  EXPECT_EQ(graph.own_memory, (std::vector<int>{1, 2}));
  std::vector<int> inputs;
  for (const ir::TensorId id : graph.graph.inputs) inputs.push_back(graph.host_tensor[static_cast<size_t>(id)]);
  EXPECT_EQ(inputs, (std::vector<int>{3, 5})) << "what has a scale is given";
  // A plan for another number of tensors is ignored.
  kept_plan.pop_back();
  EXPECT_FALSE(built(host).graph.tensors[4].planned_at.has_value());
  kept_plan.clear();
  EXPECT_FALSE(built(host).graph.tensors[4].planned_at.has_value());
}

// Two vendor operations that name the same memory and compute the same tensor, with another operation between them.
ir::Graph made_in_parts() {
  return ir::parse(R"(graph "g"
tensor 0 "commands" uint8 4 const=[1 2 3 4]
tensor 1 "memory" uint8 64
tensor 2 "in" int8 1x2x2x4 scale=0.5 zero=0
tensor 3 "out" int8 1x2x2x4 scale=0.5 zero=0
tensor 4 "between" int8 1x2x2x4 scale=0.5 zero=0
tensor 5 "after" int8 1x2x2x4 scale=0.5 zero=0
inputs 1 2
outputs 5
op 0 "vendor" in=[0 1 2] out=[3]
op 1 RELU in=[3] out=[4]
op 2 "vendor" in=[0 1 4] out=[3]
op 3 RELU in=[3] out=[5]
)")
      .value();
}

TEST(PlannedMemory, IsHandedOnBetweenTheNodesOfOnePartition) {
  FakeHost host(made_in_parts());
  host.context()->GetModelMetadata = get_plan;
  kept_plan = plan_of({-1, 0, 16, 32, 48, -1});
  std::vector<HostNode> nodes;
  for (int i = 0; i < 3; ++i) nodes.push_back(read_node(host.context(), i).value());
  const int outputs[] = {3};
  const HostGraph made = build_graph(host.context(), nodes, outputs).value();
  EXPECT_EQ(made.together, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(made.graph.ops[0].outputs.size(), 2U) << "its memory is a result";
  EXPECT_EQ(made.graph.ops[2].inputs[1], made.graph.ops[0].outputs[1]);
  EXPECT_EQ(made.graph.outputs, made.graph.ops[2].outputs) << "the later of two values";
  EXPECT_EQ(made.host_tensor.at(static_cast<size_t>(made.graph.outputs[0])), 3);
  EXPECT_EQ(made.graph.inputs.size(), 1U);
  EXPECT_EQ(build_graph(host.context(), std::span(nodes).first(1), outputs).value().together, std::vector<int>());
}

}  // namespace
}  // namespace skillet::delegate
