// Probes of the assumptions on simulated chips: all are right on a chip without quirks. On a chip with a quirk, only
// the probes of its assumption are wrong or never end.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>

#include "judge_session.h"
#include "random_case.h"
#include "random_graph.h"
#include "runtime/session.h"
#include "sim/sim.h"

namespace skillet {
namespace {

using npu::Assumption;

constexpr const char* kChips[] = {"rk3588", "rk3576"};

std::span<const Assumption> assumptions(const char* name) {
  const npu::Chip chip = npu::find_chip(name).value();
  return npu::driver_of(chip).value()->assumptions(chip);
}
std::string with_quirk(const char* chip, const sim::Quirk& quirk) {
  return fmt::format("sim:{},quirk={}", chip, quirk.name);
}

// How the bytes of one input of a probe are chosen.
enum class Pattern : uint8_t { random, zero_point, lowest, highest, ramp, count };

Bytes bytes_of(const ir::Tensor& tensor, Pattern pattern, std::mt19937& random) {
  Bytes bytes(static_cast<size_t>(tensor.bytes()));
  const int flip = tensor.dtype == ir::DType::int8 ? 0x80 : 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    int value = static_cast<int>(i);
    if (pattern == Pattern::random) value = static_cast<int>(random());
    if (pattern == Pattern::zero_point) value = tensor.quant.zero_point() + flip;
    if (pattern == Pattern::lowest) value = 0;
    if (pattern == Pattern::highest) value = 255;
    bytes[i] = static_cast<uint8_t>(value ^ flip);
  }
  return bytes;
}

std::string run_all(runtime::Session& session, const runtime::Target& target) {
  std::mt19937 random(3);
  for (int i = 0; i < static_cast<int>(Pattern::count); ++i) {
    for (size_t input = 0; input < session.graph().inputs.size(); ++input) {
      const ir::Tensor& tensor = session.graph().tensor(session.graph().inputs[input]);
      if (auto set = session.set_input(input, bytes_of(tensor, static_cast<Pattern>(i), random)); !set.ok())
        return set.error().message;
    }
    if (auto ran = session.run(); !ran.ok()) return ran.error().message;
    Tally tally;
    if (std::string wrong = check_chip(session, target.chip, tally); !wrong.empty()) return wrong;
  }
  return "";
}
// Returns whether the graph that the passes make of a probe still stands on its row.
bool stands_on(const runtime::Target& target, const ir::Graph& graph, const Assumption& row) {
  for (ir::OpId op = 0; op < static_cast<ir::OpId>(graph.ops.size()); ++op) {
    if (std::ranges::count(target.driver->supports(target.chip, graph, op).stands_on, &row) != 0) return true;
  }
  return false;
}
// Runs with all tensors kept and without: a convolution with a fused ADD keeps none.
std::string fault_of(const Assumption& row, const std::string& device) {
  auto graph = ir::parse(row.probe);
  if (!graph.ok()) return graph.error().message;
  for (const bool keep : {true, false}) {
    const auto target = runtime::open_target(device);
    if (!target.ok()) return target.error().message;
    const auto session = runtime::Session::create(*graph, *target,
                                                  {.compile = {.unproven = npu::Unproven::take},
                                                   .allow_fallback = false,
                                                   .keep_intermediates = keep,
                                                   .partition = compile::PartitionBy::all,
                                                   .cores = 1});
    if (!session.ok()) return session.error().message;
    if ((*session)->report().parts.size() != 1 || !(*session)->report().parts[0].on_npu) return "not all on the NPU";
    if (!stands_on(*target, (*session)->graph(), row)) return "passes leave nothing that stands on it";
    if (std::string wrong = run_all(**session, *target); !wrong.empty()) return wrong;
  }
  return "";
}

TEST(RockchipQuirks, ProbesAreRightWithoutOne) {
  for (const char* chip : kChips)
    for (const Assumption& row : assumptions(chip))
      EXPECT_EQ(fault_of(row, fmt::format("sim:{}", chip)), "") << chip << " " << row.name;
}

std::set<std::string_view> stands_on(const char* name, const Assumption& probe) {
  const npu::Chip chip = npu::find_chip(name).value();
  const ir::Graph graph = ir::parse(probe.probe).value();
  std::set<std::string_view> names;
  for (ir::OpId op = 0; op < static_cast<ir::OpId>(graph.ops.size()); ++op) {
    for (const Assumption* one : npu::driver_of(chip).value()->supports(chip, graph, op).stands_on)
      names.insert(one->name);
  }
  return names;
}

// Assumptions without a quirk, because no register shows them. assumptions_test.cpp checks some of them by twins.
constexpr std::string_view kNotShown[] = {"signed_by_128",        "filters_as_conv", "fully_connected_as_conv",
                                          "copy_as_conv",         "blocks_as_conv",  "constant_as_depthwise",
                                          "average_as_depthwise", "same_bytes",      "split_as_view",
                                          "concat_in_place",      "leaky_as_sum",    "whole_groups",
                                          "unsigned_less_128",    "add_as_pair",     "kernels_in_parts"};

TEST(RockchipQuirks, ThereIsOneForEachAssumptionThatRegistersShow) {
  for (const char* chip : kChips) {
    const std::vector<sim::Quirk> quirks = sim::quirks(chip);
    for (const Assumption& row : assumptions(chip)) {
      const bool has_quirk = std::ranges::count(quirks, row.name, &sim::Quirk::assumption) != 0;
      const bool is_hidden = std::ranges::count(kNotShown, row.name) != 0;
      EXPECT_NE(has_quirk, is_hidden) << chip << " " << row.name;
    }
    std::set<std::string_view> names;
    for (const sim::Quirk& quirk : quirks) EXPECT_TRUE(names.insert(quirk.name).second) << quirk.name;
  }
}

void check_quirk(const char* chip, const sim::Quirk& quirk) {
  bool found = quirk.assumption.empty();  // an erratum
  for (const Assumption& row : assumptions(chip)) {
    const bool is_own = row.name == quirk.assumption;
    if (!is_own && stands_on(chip, row).contains(quirk.assumption)) continue;  // its probe may be wrong too
    const std::string fault = fault_of(row, with_quirk(chip, quirk));
    EXPECT_EQ(is_own, !fault.empty()) << chip << " " << quirk.name << ", probe of " << row.name << ": " << fault;
    found |= is_own;
  }
  EXPECT_TRUE(found) << chip << " " << quirk.name << ": no assumption '" << quirk.assumption << "'";
}

// Boards show these errata with other drivers' programs.
TEST(RockchipQuirks, NoProbeMeetsAnErratum) {
  int errata = 0;
  for (const sim::Quirk& quirk : sim::quirks("rk3576")) {
    if (!quirk.assumption.empty()) continue;
    ++errata;
    for (const Assumption& row : assumptions("rk3576"))
      EXPECT_EQ(fault_of(row, with_quirk("rk3576", quirk)), "") << quirk.name << ", probe of " << row.name;
  }
  EXPECT_EQ(errata, 4);
}

TEST(RockchipQuirks, ChangeWhatStandsOnTheirAssumptionAlone) {
  for (const char* chip : kChips)
    for (const sim::Quirk& quirk : sim::quirks(chip)) check_quirk(chip, quirk);
}

// ---- random operations ----

struct Judged {
  std::string fault;  // empty: no fault
  int wrong = 0;      // operations that the quirk changed
};

std::vector<std::string_view> names_of(const runtime::Target& target, const ir::Graph& graph, ir::OpId op) {
  std::vector<std::string_view> names;
  for (const Assumption* one : target.driver->supports(target.chip, graph, op).stands_on) names.push_back(one->name);
  return names;
}
bool is_on_npu(const runtime::Session& session, ir::OpId op) {
  return std::ranges::any_of(session.report().parts, [&](const runtime::PartReport& part) {
    return part.on_npu && std::ranges::count(part.ops, op) != 0;
  });
}

// Checks that each wrong operation stands on the quirk's assumption.
Judged judge(const char* chip, const ir::Graph& given, const sim::Quirk& quirk, std::mt19937& random) {
  const auto target = runtime::open_target(with_quirk(chip, quirk));
  const auto session = runtime::Session::create(given, *target,
                                                {.compile = {.unproven = npu::Unproven::take},
                                                 .allow_fallback = false,
                                                 .keep_intermediates = true,
                                                 .partition = compile::PartitionBy::all,
                                                 .cores = 1});
  if (!session.ok()) return {};  // the chip does not support it: not what this test checks
  const ir::Graph& graph = (*session)->graph();
  const auto stands_on_it = [&](ir::OpId op) {
    return is_on_npu(**session, op) && std::ranges::count(names_of(*target, graph, op), quirk.assumption) != 0;
  };
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (!(*session)->set_input(i, bytes_of(graph.tensor(graph.inputs[i]), Pattern::random, random)).ok()) return {};
  }
  Judged out;
  if (const auto ran = (*session)->run(); !ran.ok()) {
    out.wrong = 1;
    for (ir::OpId op = 0; op < static_cast<ir::OpId>(graph.ops.size()); ++op) {
      if (stands_on_it(op)) return out;
    }
    out.fault = ran.error().message;
    return out;
  }
  const auto layers = (*session)->compare_layers();
  if (!layers.ok() && layers.error().code == ErrorCode::unsupported)
    return {};  // the CPU kernels do not support it: zero points by kernel
  if (!layers.ok()) return {layers.error().message, 0};
  for (const runtime::LayerDiff& layer : *layers) {
    if (!layer.compared || layer.max_abs_diff <= npu::steps_off(*target->driver, target->chip, graph, layer.op))
      continue;
    ++out.wrong;
    if (!stands_on_it(layer.op))
      out.fault += fmt::format("{}, which stands on {}\n", ir::describe_op(graph, layer.op),
                               fmt::join(names_of(*target, graph, layer.op), ", "));
  }
  return out;
}

// Returns how many operations the quirks changed.
int judge_all(const char* chip, uint32_t cases) {
  const std::vector<sim::Quirk> quirks = sim::quirks(chip);
  const auto target = runtime::open_target(fmt::format("sim:{}", chip));
  EXPECT_TRUE(target.ok());
  const std::vector<ir::OpKind> kinds = kinds_of(target->chip);
  int wrong = 0;
  for (uint32_t seed = 1; seed <= cases; ++seed) {
    std::mt19937 random(seed);
    const sim::Quirk& quirk = quirks[seed % quirks.size()];
    const ir::Graph graph =
        seed % 3 == 0 ? GraphMaker(seed).make() : CaseMaker(seed).make(kinds[random() % kinds.size()]).graph;
    const Judged judged = judge(chip, graph, quirk, random);
    EXPECT_EQ(judged.fault, "") << chip << ", seed " << seed << ": " << quirk.name << " (" << quirk.assumption
                                << ") changes\n"
                                << ir::print(graph).substr(0, 1500);
    wrong += judged.wrong;
  }
  return wrong;
}

TEST(RockchipQuirks, ChangeNoOtherOperation) {
  constexpr uint32_t kUsual = 200;
  const char* const set = std::getenv("SKILLET_PROPERTY_CASES");
  const uint32_t cases = set != nullptr ? static_cast<uint32_t>(std::atoi(set)) : kUsual;
  for (const auto& [chip, some] : {std::pair{"rk3588", cases}, {"rk3576", cases / 4}}) {
    const int wrong = judge_all(chip, some);
    std::printf("%s: %d operations changed by quirks in %u cases\n", chip, wrong, some);
    EXPECT_GT(wrong, static_cast<int>(some) / 30) << chip;
  }
}

}  // namespace
}  // namespace skillet
