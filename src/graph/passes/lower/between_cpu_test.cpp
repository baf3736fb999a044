// Ops between the NPU and the CPU: slices before a TRANSPOSE, factors and activations that change nothing.
#include <gtest/gtest.h>

#include "graph/passes/testing/plain_drivers.h"

namespace skillet::passes {
namespace {

ir::Graph graph_of(const std::string& text) {
  auto graph = ir::parse("graph \"g\"\n" + text);
  EXPECT_TRUE(graph.ok()) << text << (graph.ok() ? "" : graph.error().message);
  return graph.ok() ? std::move(*graph) : ir::Graph{};
}

size_t count(const ir::Graph& graph, ir::OpKind kind) {
  return static_cast<size_t>(std::ranges::count(graph.ops, kind, &ir::Op::kind));
}

// Runs the pass, and compares the results.
size_t rewritten(ir::Graph& graph, std::string_view pass, const npu::Driver& chip) {
  const auto wanted = results(graph, 5);
  std::vector<Rewrite> rewrites;
  Target target{.driver = &chip, .chip = {}, .rewrites = &rewrites};
  exact_pass(pass)->run(graph, target);
  const auto sound = ir::verify(graph);
  EXPECT_TRUE(sound.ok()) << sound.error().message;
  EXPECT_TRUE(wanted && wanted == results(graph, 5)) << ir::print(graph);
  return rewrites.size();
}

struct Head {
  const char *image, *order, *turned;
  int axis;  // of the channels, after the TRANSPOSE
};
constexpr Head kHeads[] = {
    {"1x7x12", "0 2 1", "1x12x7", 1}, {"1x3x5x12", "0 3 1 2", "1x12x3x5", 1},  {"1x3x5x12", "0 1 3 2", "1x3x12x5", 2},
    {"2x5x12", "2 0 1", "12x2x5", 0}, {"1x3x5x12", "0 -1 2 1", "1x12x5x3", 1},
};

// The first `first` of 12 channels and the rest, or rows of both.
ir::Graph divided(const Head& head, int first, bool of_channels) {
  const ir::Shape turned = graph_of(fmt::format("tensor 0 \"t\" int8 {} scale=1\n", head.turned)).tensors[0].shape;
  const int axis = of_channels ? head.axis : turned.rank() - 1, size = turned[axis], cut = of_channels ? first : 2;
  std::string begins[2], sizes[2], shapes[2];
  for (int part = 0; part < 2; ++part) {
    for (int i = 0; i < turned.rank(); ++i) {
      const int count = i != axis ? turned[i] : part == 0 ? cut : size - cut;
      begins[part] += fmt::format("{} ", i == axis && part == 1 ? cut : 0);
      sizes[part] += fmt::format("{} ", count);
      shapes[part] += fmt::format("{}{}", i == 0 ? "" : "x", count);
    }
  }
  const int rank = turned.rank();
  return graph_of(fmt::format(
      "tensor 0 \"a\" int8 {0} scale=0.5 zero=3\ntensor 1 \"b\" int8 {0} scale=0.5 zero=3\n"
      "tensor 2 \"p\" int32 {9} const=[{1}]\ntensor 3 \"c\" int8 {2} scale=0.5 zero=3\n"
      "tensor 4 \"e\" int32 {9} const=[{3}]\ntensor 5 \"s\" int32 {9} const=[{4}]\n"
      "tensor 6 \"f\" int32 {9} const=[{5}]\ntensor 7 \"u\" int32 {9} const=[{6}]\n"
      "tensor 8 \"d\" int8 {7} scale=0.5 zero=3\ntensor 9 \"g\" int8 {8} scale=0.5 zero=3\ninputs 0\noutputs 8 9\n"
      "op 0 RESHAPE in=[0] out=[1] shape=[{10}]\nop 1 TRANSPOSE in=[1 2] out=[3]\nop 2 SLICE in=[3 4 5] out=[8]\n"
      "op 3 SLICE in=[3 6 7] out=[9]\n",
      head.image, head.order, head.turned, begins[0], sizes[0], begins[1], sizes[1], shapes[0], shapes[1], rank, [&] {
        std::string dims = head.image;
        std::ranges::replace(dims, 'x', ' ');
        return dims;
      }()));
}

TEST(SliceBeforeTranspose, ChannelsOfAllOrders) {
  for (const Head& head : kHeads) {
    for (const int first : {1, 4, 8, 11}) {
      ir::Graph graph = divided(head, first, true);
      EXPECT_EQ(rewritten(graph, "slice_before_transpose", kDividing), 2U) << head.turned;
      ASSERT_EQ(count(graph, ir::OpKind::transpose), 2U);
      for (const ir::Op& op : graph.ops) {
        if (op.kind != ir::OpKind::slice) continue;
        EXPECT_EQ(graph.tensor(op.inputs[0]).shape.back(0), 12);
      }
    }
    ir::Graph rows = divided(head, 4, false);
    EXPECT_EQ(rewritten(rows, "slice_before_transpose", kDividing), 0U) << head.turned;
  }
}

// A chip that transposes, or takes no slices, keeps them.
TEST(SliceBeforeTranspose, OnlyWhereTheCpuTransposes) {
  const PlainDriver both({ir::OpKind::slice, ir::OpKind::transpose});
  for (const PlainDriver* const chip : {&both, &kPlain}) {
    ir::Graph graph = divided(kHeads[0], 4, true);
    EXPECT_EQ(rewritten(graph, "slice_before_transpose", *chip), 0U);
  }
}

// [1, 6, 4] to [1, 4, 6], to `divided`, to `back`.
std::string turned_twice(const char* divided, const char* order, const char* back) {
  std::string dims = divided;
  std::ranges::replace(dims, 'x', ' ');
  return fmt::format(
      "tensor 0 \"a\" int8 1x6x4 scale=0.5 zero=3\ntensor 1 \"p\" int32 3 const=[0 2 1]\n"
      "tensor 2 \"b\" int8 1x4x6 scale=0.5 zero=3\ntensor 3 \"c\" int8 {0} scale=0.5 zero=3\n"
      "tensor 4 \"q\" int32 {4} const=[{1}]\ntensor 5 \"d\" int8 {2} scale=0.5 zero=3\ninputs 0\noutputs 5\n"
      "op 0 TRANSPOSE in=[0 1] out=[2]\nop 1 RESHAPE in=[2] out=[3] shape=[{3}]\nop 2 TRANSPOSE in=[3 4] out=[5]\n",
      divided, order, back, dims, std::ranges::count(dims, ' ') + 1);
}

TEST(SliceBeforeTranspose, TwoThatUndoEachOtherBecomeReshape) {
  struct Row {
    const char *divided, *order, *back;
    bool is_reshape;
  };
  for (const Row& row : {Row{"1x2x2x6", "0 3 1 2", "1x6x2x2", true}, Row{"1x2x2x6", "0 3 2 1", "1x6x2x2", false},
                         Row{"1x4x2x3", "0 2 3 1", "1x2x3x4", true}, Row{"1x4x1x6", "0 3 2 1", "1x6x1x4", true},
                         Row{"1x4x2x3", "0 3 2 1", "1x3x2x4", false}, Row{"1x3x8", "0 2 1", "1x8x3", false}}) {
    ir::Graph graph = graph_of(turned_twice(row.divided, row.order, row.back));
    EXPECT_EQ(rewritten(graph, "slice_before_transpose", kDividing), row.is_reshape ? 1U : 0U) << row.divided;
    EXPECT_EQ(count(graph, ir::OpKind::transpose), row.is_reshape ? 0U : 2U) << row.divided;
  }
}

std::string scaled(const char* scale, const char* before, const char* after, const char* outputs) {
  return fmt::format(
      "tensor 0 \"a\" int8 1x4 scale=0.5\ntensor 1 \"b\" int8 1x4 scale=0.00390625 zero=-128\n"
      "tensor 2 \"k\" int8 1 scale=0.25 const=[2]\ntensor 3 \"c\" int8 1x4 scale={0} zero=-128\n"
      "tensor 4 \"d\" int8 1x4 scale=0.00390625 zero=-128\ninputs 0\noutputs {3}\n"
      "op 0 {1} in=[0] out=[1]\nop 1 MUL in=[2 1] out=[3]\nop 2 {2} in=[3] out=[4]\n",
      scale, before, after, outputs);
}

TEST(DropUnitMul, OnlyBetweenOpsOfTheCpuAndIfNoByteChanges) {
  const PlainDriver chip({ir::OpKind::mul, ir::OpKind::quantize});
  struct Row {
    const char *scale, *before, *after, *outputs;
    size_t rewritten;
  };
  for (const Row& row :
       {Row{"0.001953125", "SOFTMAX", "SOFTMAX", "4", 1}, Row{"0.00194", "SOFTMAX", "SOFTMAX", "4", 0},
        Row{"0.001953125", "SOFTMAX", "SOFTMAX", "4 3", 0}, Row{"0.001953125", "QUANTIZE", "SOFTMAX", "4", 0},
        Row{"0.001953125", "SOFTMAX", "QUANTIZE", "4", 0}}) {
    ir::Graph graph = graph_of(scaled(row.scale, row.before, row.after, row.outputs));
    EXPECT_EQ(rewritten(graph, "drop_unit_mul", chip), row.rewritten) << row.scale << row.before << row.after;
  }
}

// Has no RELU_N1_TO_1.
class UnclampedDriver : public PlainDriver {
 public:
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    const auto* const conv = std::get_if<ir::ConvAttrs>(&graph.op(id).attrs);
    if (conv != nullptr && conv->activation == ir::Activation::relu_n1_to_1)
      return npu::Support::no(npu::Remedy::activation, "no such activation");
    return PlainDriver::supports(chip, graph, id);
  }
};

TEST(FuseActivations, OneThatTheTypeImpliesIsLeftOut) {
  const UnclampedDriver without;
  for (const auto& [scale, zero, dtype, is_implied] : {std::tuple{"0.0078125", 0, "int8", true},
                                                       {"0.0078125", -1, "int8", true},
                                                       {"0.0079", 0, "int8", false},
                                                       {"0.0078125", 5, "int8", false},
                                                       {"0.004", -20, "int8", true},
                                                       {"0.0078125", 128, "uint8", true},
                                                       {"0.0078125", 120, "uint8", false}}) {
    const std::string text = fmt::format(
        "tensor 0 \"a\" {2} 1x4x4x2 scale=0.02 zero=3\ntensor 1 \"w\" {2} 2x1x1x2 scale=0.02 zero=0 const=[90 1 2 "
        "100]\n"
        "tensor 2 \"b\" {2} 1x4x4x2 scale={0} zero={1}\ninputs 0\noutputs 2\n"
        "op 0 CONV_2D in=[0 1] out=[2] activation=relu_n1_to_1\n",
        scale, zero, dtype);
    ir::Graph graph = graph_of(text), same = graph_of(text);
    EXPECT_EQ(rewritten(graph, "fuse_activations", without), is_implied ? 1U : 0U) << scale << " " << zero;
    EXPECT_EQ(rewritten(same, "fuse_activations", kPlain), 0U) << "the chip has it";
  }
}

}  // namespace
}  // namespace skillet::passes
