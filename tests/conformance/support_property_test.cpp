// Every operation that the driver reports as supported compiles (proven and tuned), alone and between other ops; the
// CPU has a kernel for it; and the simulated chip's result is within the driver's stated tolerance. Random single ops
// with sizes, scales, zero points and attributes at and around every limit. SKILLET_PROPERTY_CASES: number of cases
// (default 60).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "graph/ref/ref.h"
#include "npu/steps_off.h"
#include "random_case.h"
#include "runtime/session.h"

namespace skillet {
namespace {

using ir::OpKind;

constexpr int kShownFailures = 10;

struct Count {
  int taken = 0, refused = 0;
};

Bytes input_bytes(size_t count, std::mt19937& random) {
  Bytes bytes(count);
  const uint32_t kind = static_cast<uint32_t>(random()) % 4;
  for (uint8_t& b : bytes) {
    const auto r = static_cast<uint32_t>(random());
    b = kind == 0 ? 0 : kind == 1 ? 255 : kind == 2 ? (r & 1 ? 255 : 0) : static_cast<uint8_t>(r);
  }
  return bytes;
}

// Returns "" if the op is right on the chip, else the fault.
std::string judge_on_chip(const Case& one, npu::Tuning tuning, const runtime::Target& target, std::mt19937& random) {
  auto session = runtime::Session::create(
      one.graph, target, {.compile = {.tuning = tuning}, .allow_fallback = false, .keep_intermediates = true});
  if (!session.ok()) return session.error().message;
  for (size_t i = 0; i < one.graph.inputs.size(); ++i) {
    const auto bytes = input_bytes(static_cast<size_t>(one.graph.tensor(one.graph.inputs[i]).bytes()), random);
    if (auto set = (*session)->set_input(i, bytes); !set.ok()) return set.error().message;
  }
  if (auto ran = (*session)->run(); !ran.ok()) return ran.error().message;
  const auto diffs = (*session)->compare_layers();
  if (!diffs.ok()) return diffs.error().message;
  bool compared = false;
  const ir::TensorId output = one.graph.op(one.op).outputs[0];
  for (const runtime::LayerDiff& diff : *diffs) {
    const ir::Graph& graph = (*session)->graph();
    // Passes renumber operations, and remove one that changes nothing.
    compared |= (diff.tensor == output || diff.op == one.op) && diff.compared;
    if (diff.compared && diff.max_abs_diff > npu::steps_off(*target.driver, target.chip, graph, diff.op))
      return fmt::format("{}: {} of {} elements differ, by up to {}", ir::describe_op(graph, diff.op), diff.differing,
                         diff.elems, diff.max_abs_diff);
  }
  // supports() checks one operation; the limit on a whole model's constants is checked later.
  const bool is_too_large = std::ranges::any_of((*session)->report().ops, [](const auto& op) {
    return op.reason.find("bytes of constants may take") != std::string::npos;
  });
  return compared || is_too_large ? "" : "the op's output was not compared";
}

std::string judge(uint32_t seed, const runtime::Target& target, std::map<OpKind, Count>& counts) {
  const std::vector<OpKind> kinds = kinds_of(target.chip);
  const OpKind kind = kinds[seed % kinds.size()];
  const Case one = CaseMaker(seed).make(kind);
  const std::string text = "\n" + ir::print(one.graph);
  if (auto fine = ir::verify(one.graph); !fine.ok()) return "the test made a bad graph: " + fine.error().message + text;
  const npu::Support support = target.driver->supports(target.chip, one.graph, one.op);
  if (!support.ok) {
    ++counts[kind].refused;
    return support.reason.empty() ? "refused without a reason" + text : "";
  }
  ++counts[kind].taken;
  if (auto kernel = ref::prepare(one.graph, one.op); !kernel.ok())
    return "taken, but the CPU cannot: " + kernel.error().message + text;
  std::mt19937 random(seed ^ 0x5a5a);
  for (const auto tuning : {npu::Tuning::proven, npu::Tuning::tuned}) {
    const std::string problem = judge_on_chip(one, tuning, target, random);
    if (!problem.empty()) return problem + text;
  }
  return "";
}

// Returns whether the chip takes any operation of the kind.
bool is_known(std::string_view chip, OpKind kind) {
  if (chip == "rk3588") return kind != OpKind::transpose;
  return kind != OpKind::sub || chip == "imx8mp";
}

// For known kinds, more cases than this must be taken: a reshape that keeps channels is rare here.
int least_taken(std::string_view chip, OpKind kind) { return chip == "rk3588" && kind == OpKind::reshape ? 0 : 5; }

class SupportProperty : public testing::TestWithParam<const char*> {};  // a simulated chip

TEST_P(SupportProperty, WhatIsTakenCompilesAndIsWithinTolerance) {
  const char* text = std::getenv("SKILLET_PROPERTY_CASES");
  const auto count = static_cast<uint32_t>(text ? std::atoi(text) : 60);
  const char* first_text = std::getenv("SKILLET_PROPERTY_FIRST");
  const auto first = static_cast<uint32_t>(first_text ? std::atoi(first_text) : 1);
  const auto target = runtime::open_target(fmt::format("sim:{}", GetParam()));
  ASSERT_TRUE(target.ok()) << target.error().message;
  std::map<OpKind, Count> counts;
  int failures = 0;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    const std::string problem = judge(seed, *target, counts);
    if (problem.empty()) continue;
    if (++failures <= kShownFailures) ADD_FAILURE() << "seed " << seed << ": " << problem;
  }
  std::printf("%d of %u cases failed\n", failures, count);
  for (const OpKind kind : kinds_of(target->chip)) {
    std::printf("%-18s %5d taken %5d refused\n", std::string(ir::op_kind_name(kind)).c_str(), counts[kind].taken,
                counts[kind].refused);
    // With fewer, the test covers only one side of the limits.
    if (failures == 0 && count >= 4000) {
      EXPECT_EQ(counts[kind].taken > least_taken(GetParam(), kind), is_known(GetParam(), kind))
          << ir::op_kind_name(kind);
      EXPECT_GT(counts[kind].refused, 2) << ir::op_kind_name(kind);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, SupportProperty, testing::Values("a311d", "imx8mp", "rk3588", "rk3576"));

}  // namespace
}  // namespace skillet
