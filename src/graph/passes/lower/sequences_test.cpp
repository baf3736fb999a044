// Sequences, as images of one row or one column: convolutions with strides and long filters as blocks of pixels, and
// means. The results have the same bits.
#include <gtest/gtest.h>

#include <random>

#include "graph/passes/testing/plain_drivers.h"

namespace skillet::passes {
namespace {

// Supports no stride, and no filter of more than six pixels. If RESHAPE cannot move pixels into channels: supports a
// stride that equals the filter's length.
class ShortDriver : public PlainDriver {
 public:
  explicit ShortDriver(bool reshapes) : PlainDriver({ir::OpKind::pad}), reshapes_(reshapes) {}
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    const ir::Op& op = graph.op(id);
    if (const auto* conv = std::get_if<ir::ConvAttrs>(&op.attrs)) {
      const ir::Shape& filter = graph.tensor(op.inputs[1]).shape;
      if (!reshapes_ && conv->stride_h * conv->stride_w == filter[1] * filter[2] * std::max(filter[1], filter[2]))
        return npu::Support::yes();
      if (conv->stride_h != 1 || conv->stride_w != 1 || filter[1] > 6 || filter[2] > 6)
        return npu::Support::no(npu::Remedy::none, "too long");
    }
    const int32_t before = graph.tensor(op.inputs[0]).shape.back(0);
    if (!reshapes_ && op.kind == ir::OpKind::reshape && graph.tensor(op.outputs[0]).shape.back(0) > before)
      return npu::Support::no(npu::Remedy::none, "moves channels");
    return PlainDriver::supports(chip, graph, id);
  }

 private:
  bool reshapes_;
};
const ShortDriver kShort(true), kFolding(false);

struct Shape {
  const char* name;
  int size, kernel, stride, dilation;
  bool depthwise, same;
  bool is_taken;
};

std::string numbers(std::mt19937& random, int count, int least, int most) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += fmt::format("{}{}", i == 0 ? "" : " ",
                       least + static_cast<int>(random() % static_cast<uint32_t>(most - least + 1)));
  return out;
}

ir::Graph convolution(const Shape& s, bool is_column, bool is_uint8, bool per_channel) {
  std::mt19937 random(7);
  constexpr int kInputs = 3;
  const int outputs = s.depthwise ? kInputs : 4;
  const auto image = [&](int size, int channels) {
    return is_column ? fmt::format("1x{}x1x{}", size, channels) : fmt::format("1x1x{}x{}", size, channels);
  };
  const int span = (s.kernel - 1) * s.dilation + 1;
  const int results = s.same ? (s.size + s.stride - 1) / s.stride : (s.size - span) / s.stride + 1;
  const std::string window = is_column ? fmt::format("{}x1", s.kernel) : fmt::format("1x{}", s.kernel);
  const std::string filter =
      s.depthwise ? fmt::format("1x{}x{}", window, outputs) : fmt::format("{}x{}x{}", outputs, window, kInputs);
  const char* const type = is_uint8 ? "uint8" : "int8";
  std::string scales = "0.01", zeros = is_uint8 ? "120" : "0";
  if (per_channel) {
    scales = "[", zeros = "0";
    for (int i = 0; i < outputs; ++i) scales += fmt::format("{}{}", i == 0 ? "" : " ", 0.01 + 0.002 * i);
    scales += "]";
  }
  const std::string axis = per_channel && s.depthwise ? " axis=3" : "";
  const char along = is_column ? 'h' : 'w';
  const int low = is_uint8 ? 0 : -127;
  const std::string text = fmt::format(
      "graph \"g\"\ntensor 0 \"in\" {0} {1} scale=0.02 zero=5\n"
      "tensor 1 \"w\" {0} {2} scale={3} zero={4}{5} const=[{6}]\n"
      "tensor 2 \"b\" int32 {7} scale=0.0002 zero=0 const=[{8}]\n"
      "tensor 3 \"out\" {0} {9} scale=0.05 zero=3\ninputs 0\noutputs 3\n"
      "op 0 {10} in=[0 1 2] out=[3] padding={11} stride_{12}={13} dilation_{12}={14} activation=relu\n",
      type, image(s.size, kInputs), filter, scales, zeros, axis,
      numbers(random, s.kernel * (s.depthwise ? outputs : outputs * kInputs), low, low + 254), outputs,
      numbers(random, outputs, -900, 900), image(results, outputs), s.depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D",
      s.same ? "same" : "valid", along, s.stride, s.dilation);
  auto graph = ir::parse(text);
  EXPECT_TRUE(graph.ok()) << graph.error().message << "\n" << text;
  return std::move(*graph);
}

std::vector<Rewrite> run(ir::Graph& graph, void (*match)(Rewriter&, ir::OpId), const npu::Driver& chip) {
  std::vector<Rewrite> rewrites;
  Target target{.driver = &chip, .chip = {}, .per_channel = npu::PerChannel::strict};
  target.rewrites = &rewrites;
  Pass{.name = "alone", .match = match}.run(graph, target);
  EXPECT_TRUE(ir::verify(graph).ok()) << ir::print(graph);
  return rewrites;
}

TEST(Sequences, ConvolutionsInBlocks) {
  const Shape kShapes[] = {
      {"stride 2", 16, 3, 2, 1, false, true, true},
      {"stride 2, of odd columns", 17, 5, 2, 1, false, true, true},
      {"stride 2, without padding", 16, 4, 2, 1, false, false, true},
      {"stride 4", 32, 8, 4, 1, false, true, true},
      {"stride 4, short filter", 32, 1, 4, 1, false, true, true},
      {"stride 3, depthwise", 18, 7, 3, 1, true, true, true},
      {"stride 2, dilated", 24, 3, 2, 3, false, true, true},
      {"long", 32, 13, 1, 1, false, true, true},
      {"long by one", 32, 9, 1, 1, false, true, true},
      {"not long", 32, 8, 1, 1, false, true, false},
      {"long, without padding", 36, 13, 1, 1, false, false, true},
      {"long, depthwise", 32, 23, 1, 1, true, true, true},
      {"dilated", 32, 3, 1, 8, false, true, true},
      {"longer than the image", 8, 15, 1, 1, true, true, true},
      {"of a prime number of columns", 31, 13, 1, 1, false, true, false},  // no blocks of several outputs
      {"results that blocks do not have", 9, 2, 2, 1, false, false, false},
  };
  for (const Shape& shape : kShapes)
    for (int variant = 0; variant < 6; ++variant) {
      const bool is_column = variant % 2 == 1, is_uint8 = variant / 2 == 1, per_channel = variant / 2 == 2;
      const ir::Graph before = convolution(shape, is_column, is_uint8, per_channel);
      for (const ShortDriver* chip : {&kShort, &kFolding}) {
        ir::Graph after = before;
        const auto rewrites = run(after, lower_conv1d, *chip);
        SCOPED_TRACE(fmt::format("{}, variant {}\n{}", shape.name, variant, ir::print(after)));
        EXPECT_EQ(!rewrites.empty(), shape.is_taken);
        const auto wanted = results(before, 5), got = results(after, 5);
        ASSERT_TRUE(wanted && got);
        EXPECT_TRUE(*wanted == *got);
      }
    }
}

bool is_left_alone(const std::string& text, const ShortDriver& chip) {
  auto graph = ir::parse("graph \"g\"\n" + text);
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return graph.ok() && run(*graph, lower_conv1d, chip).empty();
}

// In an image of several rows, a stride along rows cannot be done by blocks of columns.
TEST(Sequences, StridesOfImagesAreLeftAlone) {
  EXPECT_TRUE(is_left_alone(
      "tensor 0 \"a\" int8 1x4x8x1 scale=0.5 zero=3\ntensor 1 \"w\" int8 1x1x1x1 scale=0.5 zero=0 const=[3]\n"
      "tensor 2 \"b\" int8 1x2x4x1 scale=0.5 zero=3\ninputs 0\noutputs 2\n"
      "op 0 CONV_2D in=[0 1] out=[2] stride_h=2 stride_w=2\n",
      kShort));
}

// Filters that select each pixel of a block have as many weights as its channels squared: here 25.6 GB.
TEST(Sequences, BlocksOfManyChannelsAreNotPicked) {
  EXPECT_TRUE(
      is_left_alone("tensor 0 \"a\" int8 1x1x160x4000 scale=0.5 zero=3\n"
                    "tensor 1 \"w\" int8 1x1x1x4000 scale=0.5 zero=0 const=random:1\n"
                    "tensor 2 \"b\" int8 1x1x4x1 scale=0.5 zero=3\ninputs 0\noutputs 2\n"
                    "op 0 CONV_2D in=[0 1] out=[2] stride_h=1 stride_w=40\n",
                    kFolding));
}

// Supports maxima, but only of images.
class MaximaDriver : public PlainDriver {
 public:
  MaximaDriver() : PlainDriver({ir::OpKind::reduce_max}) {}
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    const ir::Op& op = graph.op(id);
    if (op.kind == ir::OpKind::reduce_max && graph.tensor(op.inputs[0]).shape.rank() != 4)
      return npu::Support::no(npu::Remedy::none, "no image");
    return PlainDriver::supports(chip, graph, id);
  }
};

TEST(Sequences, MeansAndMaximaOfRows) {
  const MaximaDriver images;
  const struct {
    const char *axis, *keep, *out;
    bool is_taken;
  } kRows[] = {
      {"1", "", "1x4", true},  {"-2", "", "1x4", true},  {"1", " keep_dims=true", "1x1x4", true},
      {"2", "", "1x9", false}, {"-1", "", "1x9", false}, {"0", "", "9x4", false},
  };
  for (const auto& row : kRows) {
    for (const char* kind : {"MEAN", "REDUCE_MAX", "REDUCE_MIN"}) {
      auto graph = ir::parse(
          fmt::format("graph \"g\"\ntensor 0 \"a\" int8 1x9x4 scale=0.5 zero=3\ntensor 1 \"x\" int32 1 const=[{}]\n"
                      "tensor 2 \"b\" int8 {} scale=0.5 zero=3\ninputs 0\noutputs 2\nop 0 {} in=[0 1] out=[2]{}\n",
                      row.axis, row.out, kind, row.keep));
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      ir::Graph after = *graph;
      const bool is_minimum = std::string_view(kind) == "REDUCE_MIN";  // which the chip does not support
      EXPECT_EQ(!run(after, lower_sequence_mean, images).empty(), row.is_taken && !is_minimum) << kind << row.axis;
      const auto wanted = results(*graph, 5), got = results(after, 5);
      EXPECT_TRUE(wanted && wanted == got) << ir::print(after);
    }
  }
}

// Joins rows of images, of at most 1024 pixels.
class RowsDriver : public PlainDriver {
 public:
  npu::Support supports(const npu::Chip& chip, const ir::Graph& graph, ir::OpId id) const override {
    const ir::Op& op = graph.op(id);
    if (op.kind != ir::OpKind::concatenation) return PlainDriver::supports(chip, graph, id);
    const ir::Shape& shape = graph.tensor(op.outputs[0]).shape;
    if (shape.rank() == 4 && op.as<ir::ConcatAttrs>().axis == 1 && shape[2] <= 1024) return npu::Support::yes();
    return npu::Support::no(npu::Remedy::none, "no rows");
  }
};

TEST(Sequences, LongOnesAreJoinedAsRows) {
  struct Case {
    const char *first, *second, *whole, *image;
  };
  for (const Case& one : {Case{"1x2048x2", "1x512x2", "1x2560x2", "1x5x512x2"},
                          Case{"1x1x3000x1", "1x1x1500x1", "1x1x4500x1", "1x6x750x1"},
                          Case{"30x3", "12x3", "42x3", "1x7x6x3"}, Case{"1x7x3", "1x4x3", "1x11x3", "1x11x3"}}) {
    const auto graph = ir::parse(
        fmt::format("graph \"g\"\ntensor 0 \"a\" int8 {} scale=0.5 zero=3\ntensor 1 \"b\" int8 {} scale=0.5 zero=3\n"
                    "tensor 2 \"c\" int8 {} scale=0.5 zero=3\ninputs 0 1\noutputs 2\n"
                    "op 0 CONCATENATION in=[0 1] out=[2] axis=-2\n",
                    one.first, one.second, one.whole));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const RowsDriver chip;
    ir::Graph after = *graph;
    std::vector<Rewrite> rewrites;
    Target target{.driver = &chip, .chip = {}, .per_channel = npu::PerChannel::strict};
    target.rewrites = &rewrites;
    Pass{.name = "alone", .match = lower_concat_axis}.run(after, target);
    const auto join = std::ranges::find(after.ops, ir::OpKind::concatenation, &ir::Op::kind);
    EXPECT_EQ(after.tensor(join->outputs[0]).shape.to_string(), one.image);
    const auto wanted = results(*graph, 5);
    EXPECT_TRUE(wanted && wanted == results(after, 5)) << one.whole;
  }
}

}  // namespace
}  // namespace skillet::passes
