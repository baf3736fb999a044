// Scales at both ends of float, zero points and biases at the ends of their types: graphs that a pass cannot rewrite
// stay unchanged. SKILLET_RANDOM_GRAPHS sets the number of networks for each pass (default 400),
// SKILLET_RANDOM_GRAPHS_FIRST the first seed.
#include "graph/passes/testing/extremes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "graph/passes/testing/patterns.h"
#include "graph/passes/testing/plain_drivers.h"
#include "graph/passes/testing/texts.h"

namespace skillet::passes {
namespace {

uint32_t from_environment(const char* name, uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<uint32_t>(std::atoi(text)) : otherwise;
}

std::set<int32_t> sources(const ir::Graph& graph, const std::vector<Rewrite>& rewrites) {
  std::set<int32_t> out;
  for (const ir::Op& op : graph.ops) out.insert(op.source_index);
  for (const Rewrite& one : rewrites) out.insert(one.absorbed.begin(), one.absorbed.end());
  return out;
}

class ExtremePass : public ::testing::TestWithParam<size_t> {
 protected:
  void rewrite_alike(const ir::Graph& before, uint32_t seed) {
    ir::Graph after = before;
    const auto rewrites = rewrite(after, pass_);  // verifies it
    ASSERT_TRUE(rewrites.ok()) << rewrites.error().message;
    if (rewrites->empty()) return;
    ++rewritten_;
    EXPECT_EQ(sources(after, *rewrites), sources(before, {})) << ir::print(after);
    const auto wanted = results(before, seed), got = results(after, seed);
    if (!wanted) return;  // no CPU kernel before
    ASSERT_TRUE(got) << ir::print(after);
    ASSERT_TRUE(*wanted == *got) << "becomes\n" << ir::print(after);
  }

  // Graphs that the pass rewrites.
  std::vector<ir::Graph> known() const {
    std::vector<ir::Graph> out;
    for (const Row& row : kRows) {
      if (row.pass == pass_.name) out.push_back(ir::parse(std::string("graph \"known\"\n") + row.before).value());
    }
    return out;
  }

  const Pass& pass_ = exact_passes()[GetParam()];
  uint32_t rewritten_ = 0;
};

TEST_P(ExtremePass, LeavesWhatItCannotTake) {
  const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", 400);
  const std::vector<ir::Graph> these = known();
  for (uint32_t seed = first; seed < first + count; ++seed) {
    const bool is_known = seed % 2 == 0 && !these.empty();
    const ir::Graph graph = Extremes(seed).of(is_known ? these[seed / 2 % these.size()] : Patterns(seed).make());
    rewrite_alike(graph, seed);
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << ir::print(graph);
  }
  std::printf("%u of %u networks are rewritten\n", rewritten_, count);
  if (first == 1 && pass_.name != "remove_dead_ops") {
    EXPECT_GT(rewritten_, 4U) << "it hardly meets what it takes";
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, ExtremePass, ::testing::Range<size_t>(0, exact_passes().size()),
                         [](const auto& one) { return std::string(exact_passes()[one.param].name); });

// A driver with a limit of weight scales per op.
class FewScales : public PlainDriver {
 public:
  explicit FewScales(size_t scales) : scales_(scales) {}
  size_t weight_scales_max(const npu::Chip&, const ir::Graph&, ir::OpId) const override { return scales_; }

 private:
  const size_t scales_;
};

// Runs all passes, including the sharing of scales, and for odd seeds those within a step; `changes`: the weights
// changed in this network.
void run_all(const ir::Graph& before, uint32_t seed, std::vector<WeightChange>& changes,
             std::vector<Rewrite>& rewrites) {
  const FewScales driver(1 + seed % 3);
  ir::Graph after = before;
  rewrites.clear();
  Target target{.driver = &driver, .chip = {}};
  target.per_channel = seed % 2 == 0 ? npu::PerChannel::strict : npu::PerChannel::exact;
  target.weight_changes = &changes;
  target.rewrites = &rewrites;
  const auto done = run_pipeline(after, target);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(sources(after, rewrites), sources(before, {})) << ir::print(after);
  for (const WeightChange& change : changes) EXPECT_LE(change.scales, change.scales_before);
  const auto wanted = results(before, seed), got = results(after, seed);
  ASSERT_TRUE(!wanted || got) << ir::print(after);
  // weight_scales_test.cpp tests changes of weights, and within_a_step_test.cpp results within a step.
  if (!wanted || !changes.empty() || std::ranges::any_of(rewrites, [](const Rewrite& one) { return one.off > 0; }))
    return;
  ASSERT_TRUE(*wanted == *got) << "becomes\n" << ir::print(after);
}

TEST(ExtremePipeline, LeavesWhatItCannotTake) {
  const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
  const uint32_t count = 5 * from_environment("SKILLET_RANDOM_GRAPHS", 400);
  size_t changed = 0, within_a_step = 0;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    std::vector<WeightChange> changes;
    std::vector<Rewrite> rewrites;
    const ir::Graph graph = Extremes(seed).of(Patterns(seed).make());
    run_all(graph, seed, changes, rewrites);
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << ir::print(graph);
    changed += changes.size();
    for (const Rewrite& one : rewrites) within_a_step += one.off > 0 ? 1 : 0;
  }
  std::printf("%zu filters share scales, %zu rewrites are within a step\n", changed, within_a_step);
  EXPECT_GT(changed, count / 100);  // else scales are hardly ever shared
  EXPECT_GT(within_a_step, count / 100);
}

// Bias scales that overflow or underflow float when weights share their scales.
TEST(ExtremePipeline, SharesScalesOfBiasesWithinFloats) {
  const struct {
    const char *input, *weights, *output;
    bool is_shared;
  } kRows[] = {
      {"0.5", "[0.25 0.125 0.00025]", "40", true},
      {"1e18", "[2.5e19 1.25e19 2.5e16]", "3e38", true},
      {"1e-30", "[2.5e-20 1.25e-20 2.5e-23]", "1e-37", true},  // the bias scale is 0
      {"1e20", "[2.5e19 1.25e19 2.5e16]", "3e38", false},
  };
  for (const auto& row : kRows) {
    auto graph = ir::parse(
        fmt::format("graph \"shared\"\ntensor 0 \"in\" int8 1x1x1x4 scale={} zero=-128\n"
                    "tensor 1 \"filter\" int8 3x1x1x4 scale={} zero=0 const=[100 -50 20 127 101 -51 3 127 1 2 3 127]\n"
                    "tensor 2 \"bias\" int32 3 scale=[1 1 1] zero=0 const=[1000 -1001 7]\n"
                    "tensor 3 \"out\" int8 1x1x1x3 scale={} zero=-128\ninputs 0\noutputs 3\n"
                    "op 0 CONV_2D in=[0 1 2] out=[3]\n",
                    row.input, row.weights, row.output));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const ir::Graph before = *graph;
    const FewScales driver(2);
    std::vector<WeightChange> changes;
    const auto done = run_pipeline(*graph, {&driver, {}, npu::PerChannel::approximate, &changes});
    ASSERT_TRUE(done.ok()) << row.input << ": " << done.error().message;
    EXPECT_EQ(!changes.empty(), row.is_shared) << row.input << " " << row.weights;
    if (changes.empty()) {
      EXPECT_EQ(ir::print(*graph), ir::print(before));
    }
  }
}

}  // namespace
}  // namespace skillet::passes
