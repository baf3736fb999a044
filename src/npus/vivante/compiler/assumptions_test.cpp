// The table of assumptions, and the assumptions that an operation stands on.
#include "npus/vivante/compiler/assumptions.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graph/ir/graph.h"
#include "npu/testing/open_questions.h"
#include "npus/vivante/compiler/support.h"

namespace skillet::npus::vivante {
namespace {

using Names = std::vector<std::string_view>;

size_t place_of(const npu::Assumption* row) { return static_cast<size_t>(row - assumptions().data()); }

// The rows that the graph's operations stand on.
std::set<size_t> places_of(const hw::ChipRow& chip, const ir::Graph& graph) {
  std::set<size_t> places;
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    const npu::Support support = supports(chip, graph, static_cast<ir::OpId>(op));
    EXPECT_TRUE(support.ok) << chip.name << ": " << support.reason;
    EXPECT_EQ(support.unproven, !support.stands_on.empty());
    for (const npu::Assumption* row : support.stands_on) places.insert(place_of(row));
  }
  return places;
}

TEST(VivanteAssumptions, EachHasAProbeThatStandsOnItAndOnEarlierOnes) {
  std::set<size_t> seen;
  for (const hw::ChipRow& chip : hw::chips()) {
    for (const npu::Assumption& row : assumptions()) {
      const auto graph = ir::parse(row.probe);
      ASSERT_TRUE(graph.ok()) << row.name << ": " << graph.error().message;
      ASSERT_TRUE(ir::verify(*graph).ok()) << row.name;
      const std::set<size_t> places = places_of(chip, *graph);
      if (places.contains(place_of(&row))) seen.insert(place_of(&row));
      EXPECT_TRUE(places.empty() || *places.rbegin() <= place_of(&row)) << chip.name << " " << row.name;
    }
  }
  EXPECT_EQ(seen.size(), assumptions().size()) << "a row that no chip needs";
}

TEST(VivanteAssumptions, NamesAreUniqueAndEachHasAReason) {
  std::set<std::string_view> names, reasons;
  for (const npu::Assumption& row : assumptions()) {
    EXPECT_TRUE(names.insert(row.name).second && reasons.insert(reason_of(row)).second) << row.name;
    EXPECT_FALSE(row.what.empty() || row.sections.empty()) << row.name;
  }
}

// Each question of the specification's section 12 has a row that answers it, or a reason why it needs none.
TEST(VivanteAssumptions, OpenQuestionsHaveRows) {
  constexpr npu::OpenQuestion kQuestions[] = {
#define ASSUMPTION(name, reason, what, sections, probe)
#define QUESTION(number, row) {number, #row, true},
#define NO_ROW(number, why) {number, why, false},
#include "npus/vivante/compiler/assumptions.def"
#undef ASSUMPTION
#undef QUESTION
#undef NO_ROW
  };
  npu::check_open_questions(kQuestions, assumptions(), 22, "12.");
  EXPECT_TRUE(std::ranges::all_of(kQuestions, [](const auto& one) { return one.number >= 1 && one.number <= 22; }));
}

// Every assumption is confirmed or refuted separately: one reason must not hide the others.
TEST(VivanteAssumptions, AnOperationNamesAll) {
  const auto graph = ir::parse(R"(tensor 0 "in" int8 1x9x12x12 scale=0.05 zero=0
tensor 1 "filter" int8 1x7x3x24 scale=[0.02 0.01 0.02 0.01 0.02 0.01 0.02 0.01 0.02 0.01 0.02 0.01 0.02 0.01 0.02 0.01 0.02 0.01 0.02 0.01 0.02 0.01 0.02 0.01] zero=0 axis=3 const=random:1
tensor 2 "out" int8 1x9x12x24 scale=0.5 zero=0
inputs 0
outputs 2
op 0 DEPTHWISE_CONV_2D in=[0 1 -] out=[2] padding=same depth_multiplier=2 activation=relu
)");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const npu::Support on_a311d = supports(*hw::find_chip("a311d"), *graph, 0);
  EXPECT_EQ(names_of(on_a311d.stands_on),
            (Names{"depth_multiplier", "large_filters", "oblong_filters", "oblong_images", "several_scales"}));
  EXPECT_EQ(on_a311d.reason, "depth multiplier other than 1 was never seen on silicon");
  const npu::Support on_s905d3 = supports(*hw::find_chip("s905d3"), *graph, 0);
  EXPECT_EQ(names_of(on_s905d3.stands_on).at(0), "like_its_generation");
  EXPECT_EQ(on_s905d3.stands_on.size(), on_a311d.stands_on.size() + 1);
  EXPECT_EQ(on_s905d3.reason, "nothing was ever seen right on Amlogic S905D3 (VIPPico)");
}

Names on_a311d(std::string text) {
  const auto graph = ir::parse(text);
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  const npu::Support support = supports(*hw::find_chip("a311d"), *graph, 0);
  EXPECT_TRUE(support.ok) << support.reason;
  return names_of(support.stands_on);
}

// A 1x1 filter over `in`, with RELU.
Names of_relu(std::string_view in, int channels, int zero_point) {
  return on_a311d(
      fmt::format("tensor 0 \"in\" uint8 {0} scale=0.05 zero=128\n"
                  "tensor 1 \"filter\" uint8 {1}x1x1x8 scale=0.02 zero=128 const=random:1\n"
                  "tensor 2 \"out\" uint8 1x6x6x{1} scale=0.25 zero={2}\n"
                  "inputs 0\noutputs 2\nop 0 CONV_2D in=[0 1 -] out=[2] activation=relu\n",
                  in, channels, zero_point));
}

TEST(VivanteAssumptions, TheReluBitMattersWhereCoresHaveSeveralKernels) {
  EXPECT_EQ(of_relu("1x6x6x8", 24, 5), Names{"relu_reads_dense"});
  EXPECT_EQ(of_relu("1x6x6x8", 8, 5), Names{}) << "a kernel for each core";
  EXPECT_EQ(of_relu("1x6x6x8", 24, 0), Names{}) << "the bit is not set";
}

}  // namespace
}  // namespace skillet::npus::vivante
