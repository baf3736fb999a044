#include <gtest/gtest.h>

#include "graph/ir/graph.h"
#include "graph/ir/macs.h"

namespace skillet::ir {
namespace {

TEST(DType, NamesGoBothWays) {
  for (int i = 0; i <= static_cast<int>(DType::bfloat16); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_name(DType::bfloat16), "bfloat16");
  EXPECT_EQ(dtype_from_name("int3"), std::nullopt);
  EXPECT_EQ(dtype_bytes(DType::complex128), 16);
  EXPECT_EQ(dtype_bytes(DType::boolean), 1);
  EXPECT_EQ(dtype_bytes(DType::string), 0);
}

TEST(Shape, TextElemsAndBack) {
  const Shape shape = {1, 7, 5, 3};
  EXPECT_EQ(shape.to_string(), "1x7x5x3");
  EXPECT_EQ(shape.elems(), 105);
  EXPECT_EQ(shape.back(0), 3);
  EXPECT_EQ(shape.back(9), 1);
  EXPECT_EQ(Shape{}.to_string(), "scalar");
  EXPECT_EQ(Shape{}.elems(), 1);
}

TEST(Op, TableMapsNamesAndCodes) {
  EXPECT_EQ(op_kind_from_tflite_code(4), OpKind::depthwise_conv_2d);
  EXPECT_EQ(op_kind_from_tflite_code(117), OpKind::hard_swish);
  EXPECT_EQ(op_kind_from_tflite_code(32), std::nullopt);
  EXPECT_EQ(op_kind_name(OpKind::pad_v2), "PADV2");
  EXPECT_EQ(op_kind_from_name("CAST"), OpKind::cast);
  EXPECT_EQ(op_kind_from_name("opaque"), std::nullopt);
  EXPECT_TRUE(std::holds_alternative<PoolAttrs>(default_attrs(OpKind::max_pool_2d)));
  EXPECT_TRUE(std::holds_alternative<OpaqueAttrs>(default_attrs(OpKind::opaque)));
  EXPECT_EQ(op_name(Op{.opaque_name = "MyOp"}), "MyOp");
}

Graph diamond() {
  Graph graph;
  for (const char* name : {"a", "b", "c"}) graph.add_tensor({.name = name, .dtype = DType::int8, .shape = {2, 3}});
  graph.add_op({.kind = OpKind::relu, .inputs = {0}, .outputs = {1}});
  graph.add_op({.kind = OpKind::mul, .inputs = {1, 1, kNoTensor}, .outputs = {2}});
  return graph;
}

TEST(Graph, Describes) {
  const Graph graph = diamond();
  EXPECT_EQ(describe_op(graph, 1), "op 1 MUL -> 'c'");
  EXPECT_EQ(describe_tensor(graph, 1), "tensor 1 'b' int8 2x3");
  EXPECT_EQ(describe_op(graph, 9), "op 9 (no such op)");
  EXPECT_EQ(describe_tensor(graph, -1), "tensor -1 (no such tensor)");
}

TEST(Graph, ProducersAndConsumers) {
  const Graph graph = diamond();
  EXPECT_EQ(producers(graph), (std::vector<OpId>{-1, 0, 1}));
  EXPECT_EQ(consumers(graph), (std::vector<std::vector<OpId>>{{0}, {1}, {}}));
}

TEST(Graph, ConstantsKeepTheirBytes) {
  Tensor tensor = {.dtype = DType::int16, .shape = {2}};
  EXPECT_FALSE(tensor.is_constant());
  set_constant(tensor, {1, 0, 0xff, 0xff});
  const Tensor copy = tensor;
  tensor = {};
  EXPECT_EQ(copy.values<int16_t>(), (std::vector<int16_t>{1, -1}));
  Tensor empty = {.shape = {0}};
  set_constant(empty, {});
  EXPECT_TRUE(empty.is_constant());
  EXPECT_EQ(empty.data.size(), 0U);
  EXPECT_EQ((Tensor{.dtype = DType::int4, .shape = {5}}).bytes(), 3);
}

// Multiply-accumulates of each kind, counted by hand.
TEST(Macs, AreThoseOfTheDefinition) {
  const auto macs = [](std::string_view tensors, std::string_view op) {
    const auto graph = parse(fmt::format("graph \"macs\"\n{}inputs 0\noutputs 2\nop 0 {} out=[2]\n", tensors, op));
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    return graph.ok() ? op_macs(*graph, 0) : 0;
  };
  const auto tensors = [](std::string_view in, std::string_view filter, std::string_view out) {
    return fmt::format("tensor 0 \"x\" float32 {}\ntensor 1 \"w\" float32 {}\ntensor 2 \"y\" float32 {}\n", in, filter,
                       out);
  };
  EXPECT_EQ(macs(tensors("1x9x8x5", "7x3x2x5", "1x7x6x7"), "CONV_2D in=[0 1 -]"), 7U * 6 * 7 * 3 * 2 * 5);
  EXPECT_EQ(macs(tensors("1x9x8x5", "1x3x2x10", "1x7x6x10"), "DEPTHWISE_CONV_2D in=[0 1 -]"), 7U * 6 * 10 * 3 * 2);
  EXPECT_EQ(macs(tensors("3x11", "4x11", "3x4"), "FULLY_CONNECTED in=[0 1 -]"), 3U * 4 * 11);
  EXPECT_EQ(macs(tensors("1x4", "1x4", "1x4"), "ADD in=[0 1]"), 0U);
  // Each element of the input (operand 2) is multiplied by the filter once for each output channel.
  EXPECT_EQ(macs("tensor 0 \"s\" int32 4\ntensor 1 \"w\" float32 7x3x2x5\ntensor 2 \"y\" float32 1x11x9x7\n"
                 "tensor 3 \"x\" float32 1x9x8x5\n",
                 "TRANSPOSE_CONV in=[0 1 3]"),
            9U * 8 * 5 * 3 * 2 * 7);
}

// Multiply-accumulates of an op whose operands have these shapes; "-": left out.
uint64_t macs_of(std::string_view op, const std::vector<std::string_view>& operands, std::string_view out,
                 std::string_view attrs = "") {
  std::string tensors, inputs;
  size_t count = 0;
  for (const std::string_view shape : operands) {
    inputs += shape == "-" ? " -" : fmt::format(" {}", count);
    if (shape != "-") tensors += fmt::format("tensor {} \"t{}\" float32 {}\n", count, count, shape), ++count;
  }
  const auto graph =
      parse(fmt::format("graph \"macs\"\n{}tensor {} \"y\" float32 {}\ninputs 0\noutputs {}\nop 0 {} "
                        "in=[{}] out=[{}]{}\n",
                        tensors, count, out, count, op, inputs.substr(1), count, attrs));
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return graph.ok() ? op_macs(*graph, 0) : 0;
}

TEST(Macs, OfMatrices) {
  EXPECT_EQ(macs_of("FULLY_CONNECTED", {"2x3x5x11", "4x11", "-"}, "2x3x5x4"), 2U * 3 * 5 * 11 * 4);
  EXPECT_EQ(macs_of("FULLY_CONNECTED", {"11", "4x11", "-"}, "4"), 11U * 4);
  EXPECT_EQ(macs_of("\"FULLY_CONNECTED\"", {"3x11", "4x11", "-"}, "3x4"), 3U * 11 * 4);  // shuffled weights
  EXPECT_EQ(macs_of("BATCH_MATMUL", {"2x3x5x7", "2x3x7x11"}, "2x3x5x11"), 2U * 3 * 5 * 7 * 11);
  EXPECT_EQ(macs_of("BATCH_MATMUL", {"7x5", "13x7x11"}, "13x5x11", " transpose_a=true"), 13U * 5 * 7 * 11);
  EXPECT_EQ(macs_of("\"CONV_3D\"", {"1x4x6x8x3", "2x3x5x3x7", "-"}, "1x4x6x8x7"), 4U * 6 * 8 * 7 * 2 * 3 * 5 * 3);
  EXPECT_EQ(macs_of("\"CONV_3D_TRANSPOSE\"", {"5", "2x3x5x7x3", "1x4x6x8x3"}, "1x8x12x16x7"),
            4U * 6 * 8 * 3 * 2 * 3 * 5 * 7);
}

// Each step of a sequence multiplies its vector by the input weights, and the state by the state weights.
TEST(Macs, OfWhatHasAState) {
  constexpr std::string_view kIn = "4x5", kState = "4x6", kOut = "6x4", kBias = "4";
  const std::vector<std::string_view> gates = {"2x5", kIn, kIn,   kIn,   kIn,   kState, kState, kState, kState, "4",
                                               "4",   "4", kBias, kBias, kBias, kBias,  kOut,   "6",    "2x6",  "2x4"};
  constexpr uint64_t kStep = 4 * (4 * 5 + 4 * 6) + 6 * 4;
  EXPECT_EQ(macs_of("LSTM", gates, "2x6"), 2 * kStep);
  std::vector<std::string_view> sequence = gates;
  sequence[0] = "2x9x5";
  EXPECT_EQ(macs_of("UNIDIRECTIONAL_SEQUENCE_LSTM", sequence, "2x9x6"), 2 * 9 * kStep);
  sequence[1] = sequence[5] = sequence[16] = "-";  // the input gate is 1 - the forget gate; no projection
  EXPECT_EQ(macs_of("UNIDIRECTIONAL_SEQUENCE_LSTM", sequence, "2x9x6"), 2U * 9 * 3 * (4 * 5 + 4 * 6));
  EXPECT_EQ(macs_of("\"LSTM\"", {"2x5", "2x4", "16x9", "16", "2x4"}, "2x4"), 2U * 16 * 9);  // the basic form

  EXPECT_EQ(macs_of("\"RNN\"", {"2x5", "4x5", "4x4", "4", "2x4"}, "2x4"), 2U * (4 * 5 + 4 * 4));
  EXPECT_EQ(macs_of("\"UNIDIRECTIONAL_SEQUENCE_RNN\"", {"2x9x5", "4x5", "4x4", "4", "2x4"}, "2x9x4"),
            2U * 9 * (4 * 5 + 4 * 4));
  EXPECT_EQ(macs_of("\"BIDIRECTIONAL_SEQUENCE_RNN\"",
                    {"2x9x5", "4x5", "4x4", "4", "2x4", "3x5", "3x3", "3", "2x3", "-", "-", "-"}, "2x9x4"),
            2U * 9 * (4 * 5 + 4 * 4 + 3 * 5 + 3 * 3));
  EXPECT_EQ(macs_of("\"SVDF\"", {"2x5", "8x5", "8x10", "4", "2x80"}, "2x4"), 2U * (8 * 5 + 8 * 10));

  std::vector<std::string_view> both = gates;
  both.resize(18);
  both[0] = "2x9x5";
  for (size_t i = 1; i < 18; ++i) both.push_back(both[i]);
  both.insert(both.end(), {"2x6", "2x4", "2x6", "2x4", "2x9x5"});
  both.insert(both.end(), 8, "-");
  EXPECT_EQ(macs_of("\"BIDIRECTIONAL_SEQUENCE_LSTM\"", both, "2x9x6"), 2 * 2 * 9 * kStep);
}

// Each kind has its rule in op.def, so a row for its name in macs.def would be a duplicate.
TEST(Macs, NamesAreNoKinds) {
#define MACS_BY_NAME(name, rule) EXPECT_FALSE(op_kind_from_name(name)) << name;
#include "graph/ir/macs.def"
#undef MACS_BY_NAME
}

}  // namespace
}  // namespace skillet::ir
