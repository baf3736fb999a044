// Compares jobs' results for the numbers of numerics.h with real arithmetic.
#include "npus/vivante/compiler/numerics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>

#include "npus/vivante/compiler/byte_table.h"

namespace skillet::npus::vivante {
namespace {

struct Sum {
  float a, b;  // scales
  int32_t zero_a, zero_b;
  float out;
};
const Sum kSums[] = {
    {1, 1, 128, 128, 2},     {0.5F, 0.25F, 100, 7, 1},       {0.25F, 0.5F, 0, 255, 0.75F},
    {0.02F, 0.03F, 3, 9, 1}, {0.0235F, 0.0471F, 0, 0, 0.1F}, {1, 0.9F, 255, 0, 1.7F},
};

ir::Graph graph_of(std::string_view op, const Sum& s) {
  const auto graph = ir::parse(fmt::format(
      "graph \"g\"\ntensor 0 \"a\" uint8 1x4x4x8 scale={} zero={}\ntensor 1 \"b\" uint8 1x4x4x8 scale={} zero={}\n"
      "tensor 2 \"c\" uint8 1x4x4x8 scale={} zero=0\ninputs 0 1\noutputs 2\nop 0 {} in=[0 1] out=[2]\n",
      s.a, s.zero_a, s.b, s.zero_b, s.out, op));
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return *graph;
}

// Each id distinguishes chips, except the low bits of the revision.
TEST(Chips, AreToldApartByEachOfTheirIds) {
  for (const hw::ChipRow& row : hw::chips()) {
    EXPECT_EQ(hw::find_chip(row.ids), &row) << row.name;
    for (uint32_t hw::ChipIds::*field : {&hw::ChipIds::model, &hw::ChipIds::revision, &hw::ChipIds::product,
                                         &hw::ChipIds::eco, &hw::ChipIds::customer}) {
      hw::ChipIds other = row.ids;
      other.*field ^= 0x100;
      EXPECT_NE(hw::find_chip(other), &row) << row.name;
    }
    hw::ChipIds newer = row.ids;
    newer.revision ^= 7;
    EXPECT_EQ(hw::find_chip(newer), &row) << row.name;
  }
}

// Over all pairs of bytes the error is at most the stated one, which is below a step.
TEST(Numerics, AdditionsAreWithinTheErrorThatIsStated) {
  const struct {
    const char *chip, *op;
    int sign;
  } rows[] = {{"a311d", "ADD", 1}, {"imx8mp", "ADD", 1}, {"imx8mp", "SUB", -1}};
  for (const auto& row : rows) {
    for (const Sum& s : kSums) {
      const ir::Graph graph = graph_of(row.op, s);
      const AdditionWeights w = addition_weights(*hw::find_chip(row.chip), graph, graph.ops[0]);
      const double stated = addition_error(graph, graph.ops[0], w);
      double worst = 0;
      for (int p = 0; p < 256; ++p) {
        for (int q = 0; q < 256; ++q) {
          const double real = (double{s.a} * (p - s.zero_a) + row.sign * double{s.b} * (q - s.zero_b)) / double{s.out};
          worst = std::max(worst, std::abs(double{w.scale} * (w.first * p + w.second * q + w.bias) - real));
        }
      }
      const std::string what = fmt::format("{} {} {} {}", row.chip, row.op, s.a, s.b);
      EXPECT_LE(worst, stated + 1e-3) << what;
      EXPECT_LT(stated, 1) << what;
    }
  }
}

// Results of a byte: 20 from 0, and `more` from each of some bytes on.
ByteTable table_of(const char* type, int zero, std::initializer_list<int> jumps, int more) {
  std::string results;
  for (int byte = 0; byte < 256; ++byte)
    results += fmt::format("{} ", 20 + more * std::ranges::count_if(jumps, [&](int jump) { return jump <= byte; }));
  const bool is_signed = std::string_view(type) == "int8";
  const auto graph = ir::parse(fmt::format(
      "graph \"g\"\ntensor 0 \"a\" {0} 1x4x4x8 scale=1 zero={1}\ntensor 1 \"b\" uint8 1x4x4x8 scale=1 zero=9\n"
      "tensor 2 \"t\" uint8 256 const=[{2}]\ninputs 0\noutputs 1\nop 0 BYTE_TABLE in=[0 2] out=[1]\n",
      type, zero - (is_signed ? 128 : 0), results));
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return byte_table(*graph, graph->ops[0]).value();
}

// Near its zero point each byte has an entry of its own.
TEST(ByteTables, HaveTheirZeroPointNearAJump) {
  EXPECT_EQ(table_of("uint8", 128, {130}, 200).zero_point, 128) << "that of the tensor is near";
  for (const int jump : {1, 30, 230}) {
    const ByteTable table = table_of("uint8", 128, {jump}, 200);
    EXPECT_LE(table.off, kTableOffMax) << jump;
    EXPECT_LE(std::abs(table.zero_point - jump), 64) << jump;
  }
  const ByteTable far = table_of("uint8", 128, {3, 85, 171, 253}, 50);
  EXPECT_GT(far.off, kTableOffMax) << "too many jumps";
  EXPECT_EQ(far.zero_point, 128);
}

}  // namespace
}  // namespace skillet::npus::vivante
