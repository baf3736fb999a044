// Networks whose scales are at both ends of float, on every simulated chip: the session opens, each op on the chip is
// within the driver's stated tolerance, and on the CPU the graph after the passes gives the results of the original
// network. SKILLET_RANDOM_GRAPHS: networks per chip (default 60); SKILLET_RANDOM_GRAPHS_FIRST: first seed.
#include "graph/passes/testing/extremes.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/log.h"
#include "graph/passes/testing/patterns.h"
#include "judge_session.h"
#include "random_case.h"
#include "random_graph.h"
#include "runtime/session.h"

namespace skillet {
namespace {

ir::Graph network(uint32_t seed, const npu::Chip& chip) {
  const std::vector<ir::OpKind> kinds = kinds_of(chip);
  ir::Graph graph = seed % 3 == 0   ? passes::Patterns(seed).make()
                    : seed % 3 == 1 ? GraphMaker(seed).make()
                                    : CaseMaker(seed).make(kinds[seed / 3 % kinds.size()]).graph;
  return passes::Extremes(seed).of(graph);
}

// Returns nothing if the CPU has no kernel for one of the ops.
std::optional<std::vector<Bytes>> on_cpu(const ir::Graph& graph, const std::vector<Bytes>& inputs) {
  auto cpu = ref::Interpreter::create(graph);
  if (!cpu.ok()) return std::nullopt;
  for (size_t i = 0; i < inputs.size(); ++i) std::ranges::copy(inputs[i], cpu->tensor(graph.inputs[i]).begin());
  if (!cpu->run().ok()) return std::nullopt;
  std::vector<Bytes> out;
  for (const ir::TensorId id : graph.outputs) out.emplace_back(cpu->tensor(id).begin(), cpu->tensor(id).end());
  return out;
}

// Shared weight scales change results; per_channel_test.cpp checks by how much.
bool shares_scales(const runtime::Session& session) {
  return std::ranges::any_of(session.report().ops,
                             [](const auto& op) { return op.note.find("weight scales become") != std::string::npos; });
}

std::string judge(const ir::Graph& graph, uint32_t seed, const runtime::Target& target, Tally& tally) {
  const auto inputs = random_inputs(graph, seed);
  const auto wanted = on_cpu(graph, inputs);
  if (!wanted) return "";
  runtime::SessionOptions options{.allow_fallback = true, .keep_intermediates = true};
  options.compile.tuning = seed % 2 == 0 ? npu::Tuning::proven : npu::Tuning::tuned;
  const bool is_strict = seed % 4 < 2;
  options.compile.per_channel = is_strict ? npu::PerChannel::strict : npu::PerChannel::approximate;
  auto session = runtime::Session::create(graph, target, options);
  if (!session.ok()) return session.error().message;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (auto set = (*session)->set_input(i, inputs[i]); !set.ok()) return set.error().message;
  }
  if (auto ran = (*session)->run(); !ran.ok()) return ran.error().message;
  for (const runtime::PartReport& part : (*session)->report().parts) {
    if (!part.fallback.empty()) return part.fallback;
  }
  for (std::string problem : {check_chip(**session, target.chip, tally), check_cpu(**session, tally)}) {
    if (!problem.empty()) return problem;
  }
  const auto got = on_cpu((*session)->graph(), inputs);
  if (!got) return "no kernel for what the passes made";
  // Without strict, passes may rewrite to results within a step.
  const bool may_differ = !is_strict || shares_scales(**session);
  return *wanted == *got || may_differ ? "" : "the passes changed a result";
}

class Extreme : public testing::TestWithParam<const char*> {};  // a simulated chip

TEST_P(Extreme, NetworksOpenAndAgreeWithTheCpuKernels) {
  const log::ScopedLevel quiet(log::Level::error);
  const auto target = runtime::open_target(fmt::format("sim:{}", GetParam()));
  ASSERT_TRUE(target.ok()) << target.error().message;
  const uint32_t first = from_environment("SKILLET_RANDOM_GRAPHS_FIRST", 1);
  const uint32_t count = from_environment("SKILLET_RANDOM_GRAPHS", 60);
  Tally tally;
  int failures = 0;
  for (uint32_t seed = first; seed < first + count && failures < 5; ++seed) {
    const ir::Graph graph = network(seed, target->chip);
    const std::string problem = judge(graph, seed, *target, tally);
    if (problem.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed << ": " << problem << "\n" << ir::print(graph).substr(0, 10'000);
  }
  std::printf("%u networks: %d ops compared on the chip, %d on the CPU\n", count, tally.compared, tally.on_cpu);
  if (first == 1) {
    EXPECT_GT(tally.compared, static_cast<int>(count) / 5);
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, Extreme, testing::Values("a311d", "imx8mp", "s905d3", "rk3588"));

}  // namespace
}  // namespace skillet
