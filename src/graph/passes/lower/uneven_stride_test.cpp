// Convolutions of stride 2x1 as ones of 2x2, also transposed ones: the same bits; no rewrite if the chip supports them
// or columns are odd.
#include <gtest/gtest.h>

#include <random>

#include "graph/passes/testing/plain_drivers.h"

namespace skillet::passes {
namespace {

struct Shape {
  const char* name;
  int rows, columns, height, width;
  bool depthwise, same, has_bias;
  bool is_taken;
};

std::string numbers(std::mt19937& random, int count, int least, int most) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += fmt::format(" {}", least + static_cast<int>(random() % static_cast<uint32_t>(most - least + 1)));
  return out;
}

ir::Graph convolution(const Shape& s, const char* strides, bool is_uint8, bool per_channel) {
  std::mt19937 random(7);
  constexpr int kInputs = 3;
  const int outputs = s.depthwise ? kInputs : 4, low = is_uint8 ? 0 : -127;
  const int rows = s.same ? (s.rows + 1) / 2 : (s.rows - s.height) / 2 + 1;
  const int columns = s.same ? s.columns : s.columns - s.width + 1;
  std::string scales = "0.01";
  if (per_channel) {
    scales = "[";
    for (int i = 0; i < outputs; ++i) scales += fmt::format(" {}", 0.01 + 0.002 * i);
    scales += "]";
  }
  const std::string text = fmt::format(
      "graph \"g\"\ntensor 0 \"in\" {0} 1x{1}x{2}x{3} scale=0.02 zero=5\n"
      "tensor 1 \"w\" {0} {4}x{5}x{6}x{3} scale={7} zero={8}{9} const=[{10}]\n"
      "tensor 2 \"b\" int32 {11} scale=0.0002 zero=0 const=[{12}]\n"
      "tensor 3 \"out\" {0} 1x{13}x{14}x{11} scale=0.05 zero=3\ninputs 0\noutputs 3\n"
      "op 0 {15} in=[0 1 {16}] out=[3] padding={17} {18} activation=relu\n",
      is_uint8 ? "uint8" : "int8", s.rows, s.columns, kInputs, s.depthwise ? 1 : outputs, s.height, s.width, scales,
      is_uint8 ? 120 : 0, per_channel && s.depthwise ? " axis=3" : "",
      numbers(random, s.height * s.width * (s.depthwise ? outputs : outputs * kInputs), low, low + 254), outputs,
      numbers(random, outputs, -900, 900), rows, columns, s.depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D",
      s.has_bias ? "2" : "-", s.same ? "same" : "valid", strides);
  auto graph = ir::parse(text);
  EXPECT_TRUE(graph.ok()) << graph.error().message << "\n" << text;
  return graph.ok() ? std::move(*graph) : ir::Graph{};
}

std::vector<Rewrite> run(ir::Graph& graph, const npu::Driver& chip, const Pass& pass) {
  std::vector<Rewrite> rewrites;
  Target target{.driver = &chip, .chip = {}, .per_channel = npu::PerChannel::strict};
  target.rewrites = &rewrites;
  pass.run(graph, target);
  EXPECT_TRUE(ir::verify(graph).ok()) << ir::print(graph);
  return rewrites;
}

constexpr Pass kConvolutions{.name = "alone", .match = lower_uneven_stride};
constexpr Pass kTransposed{.name = "alone", .match = lower_transpose_conv};

constexpr Shape kShapes[] = {
    {"3x3", 9, 8, 3, 3, false, true, true, true},
    {"3x3, without padding", 9, 8, 3, 3, false, false, true, true},
    {"5x2", 10, 6, 5, 2, false, true, false, true},
    {"1x1", 8, 4, 1, 1, false, true, true, true},
    {"depthwise", 8, 10, 3, 3, true, true, true, true},
    {"depthwise of an even width, without padding", 8, 9, 3, 4, true, false, false, true},
    {"odd columns", 8, 7, 3, 3, false, true, true, false},
};

TEST(UnevenStride, GivesTheSameBits) {
  for (const Shape& shape : kShapes) {
    for (const bool is_uint8 : {true, false}) {
      for (const bool per_channel : {false, true}) {
        if (is_uint8 && per_channel) continue;
        SCOPED_TRACE(fmt::format("{} {} {}", shape.name, is_uint8, per_channel));
        const ir::Graph graph = convolution(shape, "stride_h=2", is_uint8, per_channel);
        ir::Graph after = graph;
        EXPECT_EQ(!run(after, kEven, kConvolutions).empty(), shape.is_taken);
        for (const ir::Op& op : after.ops) {
          const auto* const conv = std::get_if<ir::ConvAttrs>(&op.attrs);
          EXPECT_TRUE(conv == nullptr || !shape.is_taken || conv->stride_h == conv->stride_w);
        }
        const auto wanted = results(graph, 5), got = results(after, 5);
        EXPECT_TRUE(wanted && wanted == got) << ir::print(after);
      }
    }
  }
}

TEST(UnevenStride, LeavesOthersAlone) {
  ir::Graph taken = convolution(kShapes[0], "stride_h=2", true, false);
  EXPECT_TRUE(run(taken, kPlain, kConvolutions).empty()) << "the chip has such strides";
  ir::Graph two = convolution(kShapes[0], "stride_h=2", true, false);
  std::get<ir::ConvAttrs>(two.ops[0].attrs).dilation_w = 2;
  EXPECT_TRUE(run(two, kEven, kConvolutions).empty());
}

struct Transposed {
  int columns, height, width, stride;
  bool same, is_taken;
};

// Rows alone have phases: adjacent columns become channels.
TEST(UnevenStride, OfTransposedConvolutionsGivesTheSameBits) {
  for (const Transposed& s :
       {Transposed{8, 3, 4, 2, true, true}, Transposed{6, 2, 1, 2, true, true}, Transposed{4, 5, 3, 2, false, true},
        Transposed{6, 4, 5, 3, true, true}, Transposed{6, 3, 2, 3, false, true}, Transposed{7, 3, 3, 2, true, false}}) {
    std::mt19937 random(3);
    const int rows = s.same ? 5 * s.stride : 4 * s.stride + s.height;
    const int columns = s.same ? s.columns : s.columns + s.width - 1;
    const auto graph = ir::parse(fmt::format(
        "graph \"g\"\ntensor 0 \"size\" int32 4 const=[1 {0} {1} 2]\n"
        "tensor 1 \"w\" int8 2x{2}x{3}x3 scale=[0.01 0.02] zero=0 const=[{4}]\n"
        "tensor 2 \"in\" int8 1x5x{5}x3 scale=0.02 zero=5\ntensor 3 \"b\" int32 2 scale=0.0002 zero=0 const=[700 -90]\n"
        "tensor 4 \"out\" int8 1x{0}x{1}x2 scale=0.05 zero=3\ninputs 2\noutputs 4\n"
        "op 0 TRANSPOSE_CONV in=[0 1 2 3] out=[4] padding={6} stride_h={7} stride_w=1 activation=relu\n",
        rows, columns, s.height, s.width, numbers(random, 6 * s.height * s.width, -127, 127), s.columns,
        s.same ? "same" : "valid", s.stride));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    ir::Graph after = *graph;
    EXPECT_EQ(!run(after, driver_for({.name = "lower_transpose_conv"}), kTransposed).empty(), s.is_taken);
    const auto wanted = results(*graph, 5), got = results(after, 5);
    EXPECT_TRUE(wanted && wanted == got) << ir::print(*graph) << ir::print(after);
  }
}

}  // namespace
}  // namespace skillet::passes
