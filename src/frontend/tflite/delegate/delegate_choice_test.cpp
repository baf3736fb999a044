// Which nodes the delegate claims when ops do not compile or were never seen on silicon.
#include <set>

#include "frontend/tflite/delegate/testing/cases.h"

namespace skillet::delegate {
namespace {

// A chip's driver whose compiler refuses what computes one tensor.
class PickyDriver : public driver::Driver {
 public:
  PickyDriver(const driver::Driver& inner, std::string refused) : inner_(inner), refused_(std::move(refused)) {}
  std::string_view name() const override { return inner_.name(); }
  std::span<const driver::Chip> chips() const override { return inner_.chips(); }
  Result<driver::Chip> identify(const capture::DeviceInfo& info) const override { return inner_.identify(info); }
  driver::Support supports(const driver::Chip& chip, const ir::Graph& graph, ir::OpId op) const override {
    return inner_.supports(chip, graph, op);
  }
  Result<driver::Program> compile(const driver::Chip& chip, const ir::Graph& graph,
                                  const driver::CompileOptions& options) const override {
    for (const ir::Op& op : graph.ops) {
      if (graph.tensor(op.outputs[0]).name == refused_) return error(ErrorCode::out_of_range, "it does not fit");
    }
    return inner_.compile(chip, graph, options);
  }
  Result<driver::Annotated> decode(const driver::Chip& chip, const capture::Submission& submission) const override {
    return inner_.decode(chip, submission);
  }

 private:
  const driver::Driver& inner_;
  std::string refused_;
};

std::set<int> claimed(const FakeHost& host) {
  std::set<int> nodes;
  for (size_t i = 0; i < host.partitions(); ++i) {
    for (const int node : host.partition(i)) nodes.insert(node);
  }
  return nodes;
}

TEST(Delegate, LeavesOutTheOpThatDoesNotCompile) {
  const ir::Graph graph = digits();
  const auto claimed_by = [&](const driver::Driver* driver) {
    Wrapped wrapped;
    wrapped.state->options.min_macs_per_byte = 0;
    if (driver != nullptr) wrapped.state->target.driver = driver;
    FakeHost host(graph);
    EXPECT_EQ(host.apply(&wrapped.delegate->host), kTfLiteOk);
    fill_inputs(host, graph, 8);
    EXPECT_EQ(outputs_of(host, graph), expected(graph, 8));
    return claimed(host);
  };
  const std::set<int> all = claimed_by(nullptr);
  ASSERT_GT(all.size(), 5U);
  const driver::Driver& real = *runtime::open_target("sim:a311d")->driver;
  for (const int node : all) {
    const PickyDriver picky(real, graph.tensor(graph.op(node).outputs[0]).name);
    std::set<int> others = all;
    others.erase(node);
    EXPECT_EQ(claimed_by(&picky), others) << node;
  }
}

// Images that are not square were never seen right on silicon.
TEST(Delegate, RealDevicesTakeUnprovenOpsWhenTold) {
  ir::Graph graph = convolution();
  for (const ir::TensorId id : {graph.inputs[0], graph.outputs[0]}) graph.tensor(id).shape = {1, 6, 5, 8};
  const auto partitions = [&](bool simulated, bool allow) {
    Wrapped wrapped;
    wrapped.state->options.min_macs_per_byte = 0;
    wrapped.state->options.compile.allow_unproven = allow;
    wrapped.state->target.simulated = simulated;
    FakeHost host(graph);
    EXPECT_EQ(host.apply(&wrapped.delegate->host), kTfLiteOk);
    fill_inputs(host, graph, 8);
    EXPECT_EQ(outputs_of(host, graph), expected(graph, 8));
    return host.partitions();
  };
  EXPECT_EQ(partitions(true, false), 1U);
  EXPECT_EQ(partitions(false, false), 0U);
  EXPECT_EQ(partitions(false, true), 1U);
}

}  // namespace
}  // namespace skillet::delegate
