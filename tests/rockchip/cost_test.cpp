// The driver's predicted cost of an operation equals the timing model's for the jobs compiled from it. One cost model
// serves cores, parts, choices and reports.
#include <gtest/gtest.h>

#include "graph/passes/testing/layers.h"
#include "runtime/cost_model.h"
#include "runtime/costs.h"

namespace skillet {
namespace {

using passes::Layers;

struct Row {
  const char* what;
  ir::Shape image;
  std::vector<std::string> ops;
  const char* outputs;
};
const Row kRows[] = {
    {"dense", {1, 32, 32, 32}, {"b=conv(a) k=3 c=64"}, "b"},
    {"bound by its output", {1, 32, 32, 64}, {"b=conv(a) c=64"}, "b"},
    {"an image", {1, 64, 64, 3}, {"b=conv(a) k=3 s=2 c=32"}, "b"},
    {"several tasks", {1, 224, 224, 32}, {"b=conv(a) k=3 c=32"}, "b"},
    {"weights that are streamed", {1, 20, 20, 512}, {"b=conv(a) k=3 c=512"}, "b"},
    {"depthwise", {1, 56, 56, 96}, {"b=depthwise(a) k=3 s=2"}, "b"},
    {"depthwise in parts", {1, 112, 112, 256}, {"b=depthwise(a) k=5"}, "b"},
    {"a chain", {1, 56, 56, 32}, {"b=conv(a) c=64", "c=depthwise(b) k=3", "d=conv(c) c=24"}, "d"},
    {"a sum", {1, 28, 28, 64}, {"b=conv(a) k=3", "c=add(b,a)", "d=conv(c) k=3"}, "d"},
    {"a sum of two readers", {1, 28, 28, 64}, {"b=conv(a) k=3", "c=add(b,a)", "d=conv(b) k=3"}, "cd"},
    {"an average", {1, 7, 7, 320}, {"b=average(a) k=7 s=7"}, "b"},
    {"a maximum", {1, 28, 28, 64}, {"b=max(a) k=2 s=2"}, "b"},
    {"a clamp", {1, 28, 28, 64}, {"b=relu(a)"}, "b"},
};

class Costs : public ::testing::TestWithParam<npu::Unproven> {
 protected:
  void check_rows(const std::vector<sim::ParameterValue>& measured);

  const npu::Chip chip_ = npu::find_chip("rk3588").value();
  const npu::Driver& driver_ = *npu::driver_of(chip_).value();
};

void Costs::check_rows(const std::vector<sim::ParameterValue>& measured) {
  const npu::CompileOptions options{.unproven = GetParam()};
  const auto timer = sim::create_timer(chip_.name, sim::Jobs::open, measured).value();
  const compile::ProgramCosts judge = runtime::timing_costs(chip_, measured).value();
  const auto costs = driver_.costs(chip_, runtime::by_name(measured));
  ASSERT_TRUE(costs);
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.what);
    const Layers layers(row.image, row.ops, row.outputs);
    ASSERT_EQ(layers.problem, "");
    const auto program = driver_.compile(chip_, layers.graph, options);
    ASSERT_TRUE(program.ok()) << program.error().message;
    const auto priced = compile::operation_costs(*program, layers.graph, judge);
    ASSERT_TRUE(priced.ok()) << priced.error().message;
    const compile::OperationCost whole = compile::sum_of(*priced);
    npu::Cost sum;
    for (const npu::Cost& one : costs->of_ops(chip_, layers.graph, options, 1)) sum += one;
    EXPECT_NEAR(sum.device_us, whole.device_us, whole.device_us * 1e-3);  // operands of a channel: 4 or 8 bytes
    EXPECT_NEAR(sum.start_us, whole.start_us - timer->wall_us(0, 0, program->jobs.size(), 0), 1e-6);
    EXPECT_GT(sum.device_us, 0);
  }
}

TEST_P(Costs, AreThoseOfTheCompiledJobs) { check_rows({}); }
TEST_P(Costs, AreThoseThatWereMeasured) { check_rows({{"clock_ghz", 0.3}, {"task_us", 70}, {"dram_gbps", 2}}); }
INSTANTIATE_TEST_SUITE_P(Rockchip, Costs, ::testing::Values(npu::Unproven::refuse, npu::Unproven::take),
                         [](const auto& one) { return one.param == npu::Unproven::take ? "Unproven" : "Proven"; });

// Several cores share the memory, and nothing else.
TEST_F(Costs, OfSeveralCoresShareTheMemory) {
  const Layers memory({1, 112, 112, 128}, {"b=relu(a)"}, "b"), arithmetic({1, 28, 28, 256}, {"b=conv(a) k=3"}, "b");
  const auto us = [&](const Layers& layers, size_t cores) {
    return driver_.costs(chip_, {})->of_ops(chip_, layers.graph, {}, cores)[0].device_us;
  };
  for (const size_t cores : {2U, 3U}) {
    EXPECT_GE(us(memory, cores), us(memory, 1));
    EXPECT_LT(us(arithmetic, cores), us(arithmetic, 1) * 1.1);
  }
  EXPECT_GT(us(memory, 24), 2 * us(memory, 3));
}

}  // namespace
}  // namespace skillet
