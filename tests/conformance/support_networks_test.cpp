// The networks of docs/support.md on simulated chips, after the passes: each layer on the NPU is within the driver's
// tolerance of the CPU kernel on the same inputs, and the whole network is close to the CPU's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "graph/ref/ref.h"
#include "npu/steps_off.h"
#include "page.h"
#include "runtime/session.h"

namespace skillet {
namespace {

Bytes random_bytes(size_t count, std::mt19937& random) {
  Bytes out(count);
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(random());
  return out;
}

int difference(uint8_t a, uint8_t b, bool is_signed) {
  return is_signed ? std::abs(static_cast<int8_t>(a) - static_cast<int8_t>(b)) : std::abs(int{a} - int{b});
}

// Returns "" or the fault. `ran`: whether the NPU computed any part.
std::string judge(const ir::Graph& graph, const runtime::Target& target, std::mt19937& random, bool& ran) {
  auto session = runtime::Session::create(graph, target, {.allow_fallback = false, .keep_intermediates = true});
  if (!session.ok()) return session.error().message;
  auto cpu = ref::Interpreter::create(graph);
  if (!cpu.ok()) return "";  // nothing to compare with
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::span<uint8_t> to = cpu->tensor(graph.inputs[i]);
    const Bytes bytes = random_bytes(to.size(), random);
    std::copy(bytes.begin(), bytes.end(), to.begin());
    if (auto set = (*session)->set_input(i, bytes); !set.ok()) return set.error().message;
  }
  if (auto done = cpu->run(); !done.ok()) return done.error().message;
  if (auto done = (*session)->run(); !done.ok()) return done.error().message;
  const auto diffs = (*session)->compare_layers();
  if (!diffs.ok()) return diffs.error().message;
  int allowed = 0;
  for (const runtime::LayerDiff& diff : *diffs) {
    const ir::Graph& own = (*session)->graph();
    const int tolerance = npu::steps_off(*target.driver, target.chip, own, diff.op);
    allowed += tolerance;
    ran = true;
    if (diff.compared && diff.max_abs_diff > tolerance)
      return fmt::format("{}: {} of {} elements differ, by up to {}", ir::describe_op(own, diff.op), diff.differing,
                         diff.elems, diff.max_abs_diff);
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const ir::Tensor& tensor = graph.tensor(graph.outputs[i]);
    if (!ir::is_8bit(tensor.dtype)) continue;
    const auto got = (*session)->output(i);
    if (!got.ok()) return got.error().message;
    const std::span<const uint8_t> wanted = cpu->tensor(graph.outputs[i]);
    for (size_t k = 0; k < wanted.size(); ++k) {
      if (difference((*got)[k], wanted[k], tensor.dtype == ir::DType::int8) > allowed)
        return fmt::format("output {} is {} at {}, the CPU's {}", i, (*got)[k], k, wanted[k]);
    }
  }
  return "";
}

class SupportNetworks : public testing::TestWithParam<const char*> {};  // a simulated chip

TEST_P(SupportNetworks, ComputeWhatTheCpuComputes) {
  const auto networks = support::networks();
  ASSERT_TRUE(networks.ok()) << networks.error().message;
  const auto target = runtime::open_target(fmt::format("sim:{}", GetParam()));
  ASSERT_TRUE(target.ok()) << target.error().message;
  std::mt19937 random(5);
  size_t on_npu = 0;
  for (const ir::Graph& graph : *networks) {
    bool ran = false;
    const std::string problem = judge(graph, *target, random, ran);
    EXPECT_EQ(problem, "") << ir::op_name(graph.ops[0]) << "\n" << ir::print(graph).substr(0, 2000);
    on_npu += ran ? 1 : 0;
  }
  std::printf("%zu of %zu networks on the NPU\n", on_npu, networks->size());
  EXPECT_GT(on_npu, networks->size() / 4);
}

INSTANTIATE_TEST_SUITE_P(Chips, SupportNetworks, testing::Values("a311d", "imx8mp", "rk3588"));

}  // namespace
}  // namespace skillet
