// Each assumption of the driver against a simulated chip that violates it: its own probe shows that, and no other probe
// does.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/environment.h"
#include "base/splitmix64.h"
#include "graph/ir/graph.h"
#include "npu/driver.h"
#include "npus/vivante/hw/vivante.h"
#include "random_graph.h"
#include "runtime/session.h"
#include "sim/sim.h"

namespace skillet {
namespace {

using runtime::Session;
using runtime::Target;
namespace hw = ::skillet::vivante::hw;

enum class Verdict : uint8_t { right, wrong, nothing };

// A probe's graph, compiled once for each chip.
struct Probe {
  const npu::Assumption* row;
  compile::Compiled compiled;
  std::set<std::string_view> stands_on;
};

runtime::SessionOptions options() {
  runtime::SessionOptions out;
  out.allow_fallback = false;
  out.keep_intermediates = true;
  return out;
}

Probe make_probe(const Target& target, const npu::Assumption& row) {
  ir::Graph graph = ir::parse(row.probe).value();
  auto compiled = runtime::compile_for(target, std::move(graph), options());
  EXPECT_TRUE(compiled.ok()) << target.name << " " << row.name << ": " << compiled.error().message;
  Probe probe{&row, std::move(compiled).value(), {}};
  for (const compile::OpPlace& op : probe.compiled.ops) {
    for (const npu::Assumption* one : op.stands_on) probe.stands_on.insert(one->name);
  }
  return probe;
}

Bytes whole_range(size_t size, uint64_t seed) {
  SplitMix64 random(seed);
  Bytes bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  return bytes;
}

Result<bool> is_right(Session& session, const Target& target) {
  SK_TRY(session.run());
  SK_TRY_ASSIGN(const std::vector<runtime::LayerDiff> layers, session.compare_layers());
  return std::ranges::all_of(layers, [&](const runtime::LayerDiff& one) {
    return one.max_abs_diff <= target.driver->tolerance(target.chip, session.graph(), one.op);
  });
}

Verdict judge(const Probe& probe, const Target& target) {
  auto session = Session::create(probe.compiled, target, options());
  if (!session.ok()) return Verdict::nothing;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    for (size_t i = 0; i < (*session)->graph().inputs.size(); ++i) {
      const auto size = static_cast<size_t>((*session)->graph().tensor((*session)->graph().inputs[i]).bytes());
      EXPECT_TRUE((*session)->set_input(i, whole_range(size, seed * 100 + i)).ok());
    }
    const auto right = is_right(**session, target);
    if (!right.ok()) return Verdict::nothing;
    if (!*right) return Verdict::wrong;
  }
  return Verdict::right;
}

bool may_stand_on(const Target& target, const npu::Assumption& row) {
  const ir::Graph graph = ir::parse(row.probe).value();
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    const npu::Support support = target.driver->supports(target.chip, graph, static_cast<ir::OpId>(op));
    if (std::ranges::count(support.stands_on, &row) != 0) return true;
  }
  return false;
}

// Returns the probes of assumptions that the chip's operations can stand on. Passes leave the probes unchanged.
std::vector<Probe> probes_of(const std::string& chip) {
  const Target target = runtime::open_target("sim:" + chip).value();
  std::vector<Probe> probes;
  for (const npu::Assumption& row : target.driver->assumptions(target.chip)) {
    if (!may_stand_on(target, row)) continue;
    probes.push_back(make_probe(target, row));
    EXPECT_TRUE(probes.back().stands_on.contains(row.name)) << row.name << ": passes change its probe";
  }
  return probes;
}

class VivanteQuirks : public testing::TestWithParam<std::string> {};

TEST_P(VivanteQuirks, ProbesAreRightOnTheChipAsAssumed) {
  const Target target = runtime::open_target("sim:" + GetParam()).value();
  for (const Probe& probe : probes_of(GetParam())) EXPECT_EQ(judge(probe, target), Verdict::right) << probe.row->name;
}

TEST_P(VivanteQuirks, EachShowsInItsProbeAlone) {
  const std::vector<Probe> probes = probes_of(GetParam());
  std::set<std::string_view> covered;
  for (const sim::Quirk& quirk : sim::quirks(GetParam())) {
    const Target target = runtime::open_target(fmt::format("sim:{},quirk={}", GetParam(), quirk.name)).value();
    for (const Probe& probe : probes) {
      if (probe.stands_on.contains(quirk.assumption) && probe.row->name != quirk.assumption) continue;
      const Verdict verdict = judge(probe, target);
      EXPECT_EQ(verdict != Verdict::right, probe.row->name == quirk.assumption)
          << quirk.name << ": probe " << probe.row->name << " " << static_cast<int>(verdict);
      if (probe.row->name == quirk.assumption) covered.insert(quirk.assumption);
    }
    EXPECT_TRUE(covered.contains(quirk.assumption)) << quirk.name << ": nothing on this chip stands on that";
  }
  for (const Probe& probe : probes)
    EXPECT_TRUE(covered.contains(probe.row->name)) << probe.row->name << " has no quirk";
}

// Returns whether this quirk may explain a wrong operation: it stands on the quirk's assumption, or reads the output of
// such an operation in place.
bool may_be_wrong(const compile::Compiled& compiled, ir::OpId id, std::string_view assumption) {
  const auto stands_on = [&](const compile::OpPlace& op) {
    return std::ranges::count(op.stands_on, assumption, &npu::Assumption::name) != 0;
  };
  const auto& ops = compiled.ops;
  if (stands_on(ops[static_cast<size_t>(id)])) return true;
  const ir::Graph& graph = compiled.graph;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const auto reads = [&](ir::TensorId tensor) { return std::ranges::count(graph.op(id).inputs, tensor) != 0; };
    if (graph.ops[i].kind == ir::OpKind::split && stands_on(ops[i]) && std::ranges::any_of(graph.ops[i].outputs, reads))
      return true;
  }
  return false;
}

struct Counts {
  int wrong = 0, without_result = 0;
};

// Returns "" if only operations that may be wrong are wrong.
std::string check_graph(const compile::Compiled& compiled, const Target& target, const sim::Quirk& quirk,
                        const std::vector<Bytes>& inputs, Counts& counts) {
  const auto no_result = [&](const Error& error) {
    ++counts.without_result;
    for (size_t i = 0; i < compiled.ops.size(); ++i) {
      if (may_be_wrong(compiled, static_cast<ir::OpId>(i), quirk.assumption)) return std::string();
    }
    return error.message;
  };
  auto session = Session::create(compiled, target, options());
  if (!session.ok()) return no_result(session.error());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (auto set = (*session)->set_input(i, inputs[i]); !set.ok()) return set.error().message;
  }
  if (const auto ran = (*session)->run(); !ran.ok()) return no_result(ran.error());
  const auto layers = (*session)->compare_layers();
  if (!layers.ok()) return layers.error().message;
  for (const runtime::LayerDiff& one : *layers) {
    if (one.max_abs_diff <= target.driver->tolerance(target.chip, (*session)->graph(), one.op)) continue;
    ++counts.wrong;
    if (!may_be_wrong(compiled, one.op, quirk.assumption))
      return ir::describe_op((*session)->graph(), one.op) + " is wrong";
  }
  return "";
}

// Graphs of other forms and sizes than the probes. SKILLET_RANDOM_GRAPHS: number of graphs.
class VivanteQuirksOfGraphs : public VivanteQuirks {};

TEST_P(VivanteQuirksOfGraphs, OnlyOperationsThatStandOnTheAssumptionAreWrong) {
  constexpr uint32_t kGraphs = 60;
  const char* const set = environment_variable("SKILLET_RANDOM_GRAPHS");
  const uint32_t count = set == nullptr ? kGraphs : static_cast<uint32_t>(std::stoul(set));
  const std::vector<sim::Quirk> quirks = sim::quirks(GetParam());
  std::vector<Target> targets;
  for (const sim::Quirk& quirk : quirks)
    targets.push_back(runtime::open_target(fmt::format("sim:{},quirk={}", GetParam(), quirk.name)).value());
  std::map<std::string_view, Counts> counts;
  for (uint32_t seed = 1; seed <= count; ++seed) {
    ir::Graph graph = GraphMaker(seed).make();
    const std::string text = ir::print(graph).substr(0, 5000);
    const std::vector<Bytes> inputs = random_inputs(graph, seed);
    const auto compiled = runtime::compile_for(targets[0], std::move(graph), options());
    ASSERT_TRUE(compiled.ok()) << compiled.error().message << text;
    for (size_t i = 0; i < quirks.size(); ++i)
      EXPECT_EQ(check_graph(*compiled, targets[i], quirks[i], inputs, counts[quirks[i].name]), "")
          << quirks[i].name << ", seed " << seed << "\n"
          << text;
  }
  int shown = 0;
  for (const auto& [name, one] : counts) shown += one.wrong + one.without_result > 0;
  EXPECT_GT(2 * shown, static_cast<int>(quirks.size())) << "most quirks never act";
}
INSTANTIATE_TEST_SUITE_P(Chips, VivanteQuirksOfGraphs, testing::Values("a311d", "imx8mp", "s905d3", "vip8302"),
                         [](const auto& chip) { return chip.param; });

std::vector<std::string> chips() {
  std::vector<std::string> names;
  for (const hw::ChipRow& chip : hw::chips()) names.emplace_back(chip.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Chips, VivanteQuirks, testing::ValuesIn(chips()), [](const auto& chip) { return chip.param; });

}  // namespace
}  // namespace skillet
