// Repeated operands, computed and constant: the same bits for all shapes, on a chip that supports equal shapes only.
#include <gtest/gtest.h>

#include "graph/passes/testing/plain_drivers.h"

namespace skillet::passes {
namespace {

using Kinds = std::set<ir::OpKind>;
const OneShapeDriver kResizes(Kinds{ir::OpKind::add, ir::OpKind::sub, ir::OpKind::mul, ir::OpKind::maximum,
                                    ir::OpKind::resize_nearest_neighbor});
const OneShapeDriver kTransposes(Kinds{ir::OpKind::add, ir::OpKind::sub, ir::OpKind::mul, ir::OpKind::maximum,
                                       ir::OpKind::transpose});
const OneShapeDriver kNegates(Kinds{ir::OpKind::add, ir::OpKind::transpose});

struct Row {
  const char *a, *b, *to;
};
constexpr Row kShapes[] = {
    {"1x4x3x5", "1x1x1x5", "1x4x3x5"}, {"1x4x1x5", "1x4x3x5", "1x4x3x5"},
    {"1x4x3x5", "1x1x3x5", "1x4x3x5"}, {"1x4x3x5", "1x4x3x1", "1x4x3x5"},
    {"1x4x3x5", "1x4x1x1", "1x4x3x5"}, {"1x4x1x5", "1x1x3x5", "1x4x3x5"},
    {"1x4x3x5", "3x5", "1x4x3x5"},     {"1x4x3x5", "4x1x5", "1x4x3x5"},
    {"1x6x5", "6x1", "1x6x5"},         {"5", "4x5", "4x5"},
};
constexpr Row kConstants[] = {
    {"1x4x3x5", "1x1x1x5", "1x4x3x5"},
    {"1x4x3x5", "1x4x1x5", "1x4x3x5"},
    {"1x4x3x5", "1x4x3x1", "1x4x3x5"},
    {"1x4x3x5", "3x5", "1x4x3x5"},
    {"1x6x5", "6x5", "1x6x5"},
    {"1x6x5", "6x1", "1x6x5"},
    {"1x5", "5", "1x5"},
    {"4x5", "1", "4x5"},
};

std::string constant_of(int64_t count) {
  std::string out = " const=[";
  for (int64_t i = 0; i < count; ++i) out += fmt::format("{} ", i * 37 % 120);
  return out + "]";
}

ir::Graph graph_of(const Row& row, const char* kind, const char* dtype, bool is_constant) {
  const auto text = [&](const std::string& values) {
    return fmt::format(
        "graph \"g\"\ntensor 0 \"a\" {1} {2} scale=0.5 zero=3\ntensor 1 \"b\" {1} {3} scale={7} zero=3{4}\n"
        "tensor 2 \"c\" {1} {5} scale=0.5 zero=3\ntensor 3 \"d\" {1} {5} scale=0.5 zero=3\ninputs 0 {6}\noutputs 3\n"
        "op 0 {0} in=[0 1] out=[2]\nop 1 ADD in=[2 2] out=[3]\n",
        kind, dtype, row.a, row.b, values, row.to, values.empty() ? "1" : "",
        std::string_view(kind) == "MAXIMUM" ? 0.5 : 0.25);
  };
  auto graph = ir::parse(text(""));
  if (graph.ok() && is_constant) graph = ir::parse(text(constant_of(graph->tensor(1).shape.elems())));
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return graph.ok() ? std::move(*graph) : ir::Graph{};
}

// Number of rewritten graphs, each with the same results.
size_t rewritten(const Row& row, const char* kind, bool is_constant, const npu::Driver& chip) {
  size_t count = 0;
  for (const char* dtype : {"int8", "uint8"}) {
    const ir::Graph graph = graph_of(row, kind, dtype, is_constant);
    ir::Graph after = graph;
    std::vector<Rewrite> rewrites;
    Target target{.driver = &chip, .chip = {}, .per_channel = npu::PerChannel::strict};
    target.rewrites = &rewrites;
    const Pass pass{.name = "alone", .match = is_constant ? copy_constants : repeat_operands};
    pass.run(after, target);
    EXPECT_TRUE(ir::verify(after).ok()) << ir::print(after);
    const auto wanted = results(graph, 5);
    EXPECT_TRUE(wanted && wanted == results(after, 5)) << ir::print(after);
    count += rewrites.size();
  }
  return count;
}

TEST(Broadcast, ComputedOperandsAreRepeated) {
  for (const Row& row : kShapes) {
    for (const char* kind : {"ADD", "SUB", "MUL", "MAXIMUM"}) {
      SCOPED_TRACE(fmt::format("{} {} {}", kind, row.a, row.b));
      EXPECT_EQ(rewritten(row, kind, false, kResizes), 2U);
      EXPECT_EQ(rewritten(row, kind, false, kTransposes), 2U);
    }
  }
}

TEST(Broadcast, DifferencesBecomeSumsWhereTheChipHasThoseAlone) {
  EXPECT_EQ(rewritten(kShapes[0], "SUB", false, kNegates), 2U);
  EXPECT_EQ(rewritten(kShapes[1], "SUB", false, kNegates), 2U);
}

TEST(Broadcast, ConstantsAreWrittenOut) {
  for (const Row& row : kConstants) {
    for (const char* kind : {"ADD", "SUB", "MUL", "MAXIMUM"}) {
      SCOPED_TRACE(fmt::format("{} {} {}", kind, row.a, row.b));
      EXPECT_EQ(rewritten(row, kind, true, kResizes), 2U);
    }
  }
}

// Supports joins of computed tensors.
class JoiningDriver : public PlainDriver {
 public:
  JoiningDriver() : PlainDriver({ir::OpKind::add, ir::OpKind::concatenation}) {}
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    const ir::Op& op = graph.op(id);
    const auto is_constant = [&](ir::TensorId input) { return graph.tensor(input).is_constant(); };
    if (op.kind == ir::OpKind::concatenation && std::ranges::any_of(op.inputs, is_constant))
      return npu::Support::no(npu::Remedy::none, "constant");
    return PlainDriver::supports(chip, graph, id);
  }
};

TEST(Broadcast, ConstantsAreJoined) {
  const JoiningDriver chip;
  const auto graph = ir::parse(
      "graph \"g\"\ntensor 0 \"a\" int8 1x2x2x1 scale=0.5 zero=3\n"
      "tensor 1 \"b\" int8 1x2x2x1 scale=0.5 zero=3 const=[1 2 3 4]\n"
      "tensor 2 \"c\" int8 1x2x2x3 scale=0.5 zero=3\ntensor 3 \"d\" int8 1x2x2x3 scale=0.5 zero=3\n"
      "inputs 0\noutputs 3\nop 0 CONCATENATION in=[1 0 1] out=[2] axis=3\nop 1 ADD in=[2 2] out=[3]\n");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  ir::Graph after = *graph;
  std::vector<Rewrite> rewrites;
  Target target{.driver = &chip, .chip = {}, .per_channel = npu::PerChannel::strict};
  target.rewrites = &rewrites;
  Pass{.name = "alone", .match = copy_constants}.run(after, target);
  ASSERT_TRUE(ir::verify(after).ok()) << ir::print(after);
  EXPECT_EQ(rewrites.size(), 1U);
  EXPECT_EQ(after.ops.size(), 4U);
  const auto wanted = results(*graph, 5);
  EXPECT_TRUE(wanted && wanted == results(after, 5));
}

TEST(Broadcast, BatchesAndSingleValuesStay) {
  EXPECT_EQ(rewritten({"1x5", "1x1", "1x5"}, "ADD", false, kResizes), 0U);
  EXPECT_EQ(rewritten({"2x4x3x5", "1x1x1x5", "2x4x3x5"}, "ADD", false, kResizes), 0U);
  EXPECT_EQ(rewritten({"1x4x3x5", "1x4x3x5", "1x4x3x5"}, "ADD", false, kResizes), 0U);
  EXPECT_EQ(rewritten({"1x1x3x5", "1x4x3x5", "1x4x3x5"}, "ADD", true, kResizes), 0U);  // the constant is the larger
}

}  // namespace
}  // namespace skillet::passes
