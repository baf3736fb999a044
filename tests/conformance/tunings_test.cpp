// Tunings change jobs, not results: random graphs, compiled by each tuning for a simulated chip, give the same bits.
// Only the switches that state so may change results; with those turned on, `recorded` gives the same bits too.
// SKILLET_RANDOM_GRAPHS: number of graphs (default 150 per chip); SKILLET_RANDOM_GRAPHS_FIRST: first seed.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <set>

#include "base/log.h"
#include "base/splitmix64.h"
#include "random_graph.h"
#include "runtime/session.h"

namespace skillet {
namespace {

using Outputs = std::vector<Bytes>;

Result<Outputs> run(const ir::Graph& graph, const runtime::Target& target, const npu::CompileOptions& options,
                    const std::vector<Bytes>& inputs) {
  runtime::SessionOptions session_options{.compile = options, .allow_fallback = false};
  SK_TRY_ASSIGN(const auto session, runtime::Session::create(graph, target, session_options));
  const std::vector<std::span<const uint8_t>> spans(inputs.begin(), inputs.end());
  return session->run(spans);
}

// `recorded` with the switches that `is_on` selects, and with sign changes, which it refuses and passes insert.
npu::CompileOptions recorded_with(const npu::Driver& driver, auto&& is_on) {
  npu::CompileOptions options{.tuning = npu::Tuning::recorded};
  for (const npu::TuningSwitch& row : driver.switches()) {
    if (row.name == "sign_changes" || is_on(row)) options.switches.emplace_back(row.name);
  }
  return options;
}

// Applies the exact passes, which `recorded` does not run: the tunings must give the same bits for the same operations.
// Leaves out passes whose results are only within a step.
ir::Graph rewritten(ir::Graph graph, const runtime::Target& target) {
  std::vector<passes::Rewrite> rewrites;
  passes::Target how{.driver = target.driver, .chip = target.chip, .per_channel = npu::PerChannel::strict};
  how.takes_unproven = true;
  how.rewrites = &rewrites;
  for (const passes::Pass& pass : passes::exact_passes()) pass.run(graph, how);
  return graph;
}

class Tunings : public testing::TestWithParam<const char*> {
  log::ScopedLevel level_{log::Level::error};

 protected:
  void SetUp() override {
    auto target = runtime::open_target(fmt::format("sim:{}", GetParam()));
    ASSERT_TRUE(target.ok()) << target.error().message;
    target_ = *target;
  }
  // Returns nothing where the run fails, which fails the test unless the tuning copies faults.
  Outputs outputs(uint32_t seed, npu::CompileOptions options, bool may_fail = false) {
    options.per_channel = npu::PerChannel::strict;
    ir::Graph graph = GraphMaker(seed).make();
    if (options.tuning == npu::Tuning::recorded) graph = rewritten(std::move(graph), target_);
    auto done = run(graph, target_, options, random_inputs(graph, seed));
    if (done.ok()) return std::move(done).value();
    if (!may_fail) {
      ADD_FAILURE() << GetParam() << ", seed " << seed << ", " << tuning_name(options.tuning) << ": "
                    << done.error().message << "\n"
                    << ir::print(graph).substr(0, 5'000);
    }
    return {};
  }

  runtime::Target target_;
};

TEST_P(Tunings, GiveTheSameBits) {
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", 32);
  const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
  const npu::CompileOptions same =
      recorded_with(*target_.driver, [](const npu::TuningSwitch& row) { return row.changes_results; });
  const npu::CompileOptions bytes = recorded_with(*target_.driver, [](const npu::TuningSwitch& row) {
    return row.name == "unsigned_bytes" || row.name == "scale_groups";
  });
  uint32_t others = 0;
  for (uint32_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    const Outputs proven = outputs(seed, {});
    const std::string at = fmt::format(", seed {}:\n{}", seed, ir::print(GraphMaker(seed).make()).substr(0, 5000));
    EXPECT_TRUE(outputs(seed, {.tuning = npu::Tuning::tuned}) == proven) << "tuned" << at;
    EXPECT_TRUE(outputs(seed, same) == proven) << "recorded with the switches that change results" << at;
    others += outputs(seed, bytes, true) != proven;  // faults of the recorded driver end some jobs, too
  }
  // Recorded int8 programs of V7 are wrong throughout.
  std::printf("%u graphs: recorded, with int8 made unsigned, gives other bits in %u of them\n", count, others);
  EXPECT_LE(others, count / 4) << "rows of other results are exceptions";
}

// The parts of an operation run in parallel, on several cores: the bits do not depend on their order.
TEST_P(Tunings, AnyOrderOfJobsGivesTheSameBits) {
  for (const char* order : {"0", "2", "3"}) {
    ASSERT_EQ(setenv("SKILLET_SIM_SEED", order, 1), 0);
    const auto target = runtime::open_target(fmt::format("sim:{}", GetParam()));
    ASSERT_EQ(unsetenv("SKILLET_SIM_SEED"), 0);
    ASSERT_TRUE(target.ok()) << target.error().message;
    for (uint32_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
      const ir::Graph graph = GraphMaker(seed).make();
      for (const auto tuning : {npu::Tuning::proven, npu::Tuning::tuned}) {
        const auto done = run(graph, *target, {.tuning = tuning}, random_inputs(graph, seed));
        ASSERT_TRUE(done.ok()) << "order " << order << ", seed " << seed << ": " << done.error().message;
        EXPECT_TRUE(*done == outputs(seed, {})) << "order " << order << ", seed " << seed;
      }
    }
  }
}

// Filters larger than the chip's memory for them, for each number of kernels with a way to divide them.
TEST_P(Tunings, FiltersThatDoNotFitTheChipGiveTheSameBits) {
  for (const auto& [kernels, channels] : {std::pair{1024, 600}, {512, 1200}, {256, 2400}, {160, 3600}, {64, 9000}}) {
    auto graph = ir::parse(fmt::format(R"(graph ""
tensor 0 "in" uint8 1x2x2x{1} scale=0.5 zero=128
tensor 1 "filter" uint8 {0}x1x1x{1} scale=0.25 zero=127 const=zeros
tensor 2 "out" uint8 1x2x2x{0} scale=800 zero=7
inputs 0
outputs 2
op 0 CONV_2D in=[0 1 -] out=[2]
)",
                                       kernels, channels));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    SplitMix64 random(1);
    Bytes filter(static_cast<size_t>(kernels * channels));
    for (uint8_t& weight : filter) weight = static_cast<uint8_t>(random.next());
    ir::set_constant(graph->tensor(1), filter);
    const auto inputs = random_inputs(*graph, 1);
    const auto proven = run(*graph, target_, {}, inputs);
    ASSERT_TRUE(proven.ok()) << kernels << " kernels: " << proven.error().message;
    EXPECT_GT(std::set<uint8_t>(proven->at(0).begin(), proven->at(0).end()).size(), 20U);
    const auto tuned = run(*graph, target_, {.tuning = npu::Tuning::tuned}, inputs);
    ASSERT_TRUE(tuned.ok()) << kernels << " kernels: " << tuned.error().message;
    EXPECT_TRUE(*tuned == *proven) << kernels;
  }
}

// Switches that no tuning turns on are open questions: in all combinations, programs compile, run under the same
// assumptions, and give the same bits.
TEST_P(Tunings, CombinationsOfOpenSwitchesGiveTheSameBits) {
  std::vector<std::string> open;
  for (const npu::TuningSwitch& row : target_.driver->switches()) {
    if (!row.since) open.emplace_back(row.name);
  }
  ASSERT_FALSE(open.empty());
  for (uint32_t chosen = 0; chosen < 1U << open.size(); ++chosen) {
    npu::CompileOptions options{.unproven = npu::Unproven::take};
    for (size_t i = 0; i < open.size(); ++i) {
      if (chosen >> i & 1) options.switches.push_back(open[i]);
    }
    const auto has = [&](const char* name) {
      return std::ranges::find(options.switches, name) != options.switches.end();
    };
    const char* const format = !has("v8_coefficients") ? "v7" : has("raw_weights") ? "v8_raw" : "v8";
    ASSERT_EQ(setenv("SKILLET_SIM_COEFFICIENTS", format, 1), 0);
    const auto target = runtime::open_target(fmt::format("sim:{}", GetParam()));
    ASSERT_EQ(unsetenv("SKILLET_SIM_COEFFICIENTS"), 0);
    ASSERT_TRUE(target.ok()) << target.error().message;
    for (uint32_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
      const ir::Graph graph = GraphMaker(seed).make();
      const auto done = run(graph, *target, options, random_inputs(graph, seed));
      ASSERT_TRUE(done.ok()) << fmt::format("{}: {}", fmt::join(options.switches, ", "), done.error().message);
      EXPECT_TRUE(*done == outputs(seed, {})) << fmt::format("{}, seed {}", fmt::join(options.switches, ", "), seed);
    }
  }
}

// The switches of coefficients have an effect: read under another assumption, programs fault or give other bits.
TEST(OpenSwitches, AnotherAssumptionIsSeen) {
  const log::ScopedLevel level(log::Level::error);
  struct Row {
    std::vector<std::string> switches;
    const char* read_as;
  };
  for (const Row& row : {Row{{}, "v8"}, Row{{"v8_coefficients"}, "v7"}, Row{{"v8_coefficients"}, "v8_raw"},
                         Row{{"v8_coefficients", "raw_weights"}, "v8"}}) {
    ASSERT_EQ(setenv("SKILLET_SIM_COEFFICIENTS", row.read_as, 1), 0);
    const auto target = runtime::open_target("sim:s905d3");
    ASSERT_EQ(unsetenv("SKILLET_SIM_COEFFICIENTS"), 0);
    ASSERT_TRUE(target.ok()) << target.error().message;
    const auto usual = runtime::open_target("sim:s905d3");
    int seen = 0;
    for (uint32_t seed = 1; seed <= 20; ++seed) {
      const ir::Graph graph = GraphMaker(seed).make();
      const npu::CompileOptions options{.switches = row.switches, .unproven = npu::Unproven::take};
      const auto other = run(graph, *target, options, random_inputs(graph, seed));
      const auto right = run(graph, *usual, {.unproven = npu::Unproven::take}, random_inputs(graph, seed));
      ASSERT_TRUE(right.ok()) << right.error().message;
      seen += !other.ok() || *other != *right;
    }
    EXPECT_GT(seen, 10) << fmt::format("{} read as {}", fmt::join(row.switches, ", "), row.read_as);
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, Tunings, testing::Values("a311d", "s905d3", "imx8mp"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace skillet
