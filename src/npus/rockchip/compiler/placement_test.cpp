// The forms of inputs and their readers, as text: surfaces, rows of pixels, blocks of 2x2; and operations that need no
// job.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "npu/driver.h"

namespace skillet::npus::rockchip {

const npu::Driver& driver();

namespace {

int elements_of(std::string_view dims) {
  int count = 1;
  for (size_t at = 0; at < dims.size(); at = dims.find('x', at), at = at == dims.npos ? dims.size() : at + 1)
    count *= std::atoi(dims.data() + at);
  return count;
}

// CONV_2D of an image, with `attributes`.
std::string conv(std::string_view image, std::string_view filter, std::string_view out, std::string_view attributes) {
  return fmt::format(R"(graph ""
tensor 0 "in" uint8 {} scale=0.5 zero=120
tensor 1 "w" uint8 {} scale=0.25 zero=131 const=zeros:{}
tensor 2 "out" uint8 {} scale=1 zero=3
inputs 0
outputs 2
op 0 CONV_2D in=[0 1] out=[2] {}
)",
                     image, filter, elements_of(filter), out, attributes);
}

// The same in int8, after a QUANTIZE of the image to `zero`.
std::string signed_conv(std::string_view image, std::string_view filter, std::string_view out,
                        std::string_view attributes, int32_t zero) {
  return fmt::format(R"(graph ""
tensor 0 "in" uint8 {} scale=0.5 zero=120
tensor 1 "w" int8 {} scale=0.25 zero=0 const=zeros:{}
tensor 2 "out" int8 {} scale=1 zero=3
tensor 3 "signed" int8 {} scale=0.5 zero={}
inputs 0
outputs 2
op 0 QUANTIZE in=[0] out=[3]
op 1 CONV_2D in=[3 1] out=[2] {}
)",
                     image, filter, elements_of(filter), out, image, zero, attributes);
}

std::string text_of(const std::string& graph_text, const npu::CompileOptions& options) {
  const auto graph = ir::parse(graph_text);
  if (!graph.ok()) return graph.error().message;
  const auto program = driver().compile(driver().chips()[0], *graph, options);
  if (!program.ok()) return program.error().message;
  std::string text;
  for (const npu::TensorBinding& one : program->inputs)
    text += fmt::format("{}x{}x{}x{}: {}\n", one.shape.images, one.shape.height, one.shape.width, one.shape.channels,
                        npu::print(one.layout));
  for (const npu::OperationInfo& one : program->operations) text += fmt::format("{} {}\n", one.op, one.kind);
  return text;
}

std::string listed(const std::string& graph_text, std::string_view name = "input_blocks") {
  const auto graph = ir::parse(graph_text);
  if (!graph.ok()) return graph.error().message;
  const auto open = driver().choices(driver().chips()[0], *graph, {.tuning = npu::Tuning::tuned});
  if (!open.ok()) return open.error().message;
  std::string text;
  for (const npu::Choice& one : *open) {
    if (one.name == name) text += fmt::format("{}={}", one.op, one.value);
  }
  return text;
}
npu::CompileOptions in_blocks(ir::OpId op) {
  return {.tuning = npu::Tuning::tuned, .choices = {{op, "input_blocks", 1}}};
}

constexpr const char* kSame = "padding=same stride_h=2 stride_w=2";

// For 8x6 pixels of 3 channels with zero point 120: 16 bytes a pixel; rows of a multiple of 16 pixels; 16 bytes for
// each block, with the lower row 6 bytes after the upper one.
const std::string kSurfaces =
    "1x8x6x3: block 16, strides elem 1 px 16 row 96 block 768 image 768, 768 bytes, xor 0x80, pad 0xf8\n";
const std::string kPixels = "1x8x6x3: block 3, strides elem 1 px 3 row 48 block 3 image 384, 384 bytes, pad 0x78\n";
const std::string kBlocks =
    "4x2x3x6: block 6, strides elem 1 px 16 row 6 block 6 image 48, 192 bytes, xor 0x80, pad 0xf8\n";
const npu::CompileOptions kRefuse{.unproven = npu::Unproven::refuse};
const npu::CompileOptions kPacked{.switches = {"packed_pixels"}, .unproven = npu::Unproven::take};

TEST(RockchipPlacement, InputsOfFewChannels) {
  const std::string three = conv("1x8x6x3", "16x3x3x3", "1x4x3x16", kSame);
  EXPECT_EQ(text_of(three, kRefuse), kSurfaces + "0 conv 3x3\n");
  EXPECT_EQ(text_of(three, kPacked), kPixels + "0 conv 3x3\n");
  EXPECT_EQ(text_of(three, in_blocks(0)), kBlocks + "0 conv 3x3 in blocks of 2x2\n");
  EXPECT_EQ(text_of(three, {.tuning = npu::Tuning::tuned, .unproven = npu::Unproven::refuse}),
            kSurfaces + "0 conv 3x3\n")
      << "a choice, not a rule";
}

// Rows of pixels have up to four channels and 2047 columns, including those that fill the last 16 bytes.
TEST(RockchipPlacement, RowsOfPixelsEnd) {
  const auto is_packed = [](int32_t columns, int32_t channels) {
    const std::string image = fmt::format("1x2x{}x{}", columns, channels);
    const std::string said =
        text_of(conv(image, fmt::format("16x1x1x{}", channels), fmt::format("1x2x{}x16", columns), ""), kPacked);
    EXPECT_TRUE(said.starts_with(image)) << said;
    return said.find(fmt::format("block {}, ", channels)) != std::string::npos;
  };
  for (const int32_t channels : {1, 2, 3, 4}) EXPECT_TRUE(is_packed(32, channels)) << channels;
  EXPECT_FALSE(is_packed(32, 5));
  EXPECT_TRUE(is_packed(2032, 1)) << "a multiple of 16, as rows are";
  EXPECT_FALSE(is_packed(2033, 1));
}

TEST(RockchipPlacement, AChangeOfSignIsNoOperation) {
  const std::string same = signed_conv("1x8x6x3", "16x3x3x3", "1x4x3x16", kSame, -8);
  EXPECT_EQ(text_of(same, kRefuse), kSurfaces + "1 conv 3x3\n");
  EXPECT_EQ(text_of(same, kPacked), kPixels + "1 conv 3x3\n");
  EXPECT_EQ(text_of(same, in_blocks(1)), kBlocks + "1 conv 3x3 in blocks of 2x2\n");
  const std::string other = signed_conv("1x8x6x3", "16x3x3x3", "1x4x3x16", kSame, -7);
  EXPECT_EQ(text_of(other, kPacked), kSurfaces + "0 copy\n1 conv 3x3\n");
}

// Other readers need surfaces; a tensor that the host reads is written.
TEST(RockchipPlacement, AChangeOfSignForOtherReaders) {
  constexpr const char* kTensors = R"(graph ""
tensor 0 "in" uint8 1x8x6x3 scale=0.5 zero=120
tensor 1 "signed" int8 1x8x6x3 scale=0.5 zero=-8
tensor 2 "out" int8 1x8x6x3 scale=0.5 zero=-8
inputs 0
)";
  const std::string relu = "outputs 2\nop 0 QUANTIZE in=[0] out=[1]\nop 1 RELU in=[1] out=[2]\n";
  EXPECT_EQ(text_of(kTensors + relu, kPacked), kSurfaces + "1 copy\n");
  EXPECT_EQ(text_of(kTensors + std::string("outputs 1\nop 0 QUANTIZE in=[0] out=[1]\n"), kPacked),
            kSurfaces + "0 copy\n");
}

// Where blocks can be chosen: "op=value", or empty.
TEST(RockchipPlacement, BlocksAreListedWhereTheyCanBe) {
  struct Row {
    std::string graph, listed;
  };
  const Row rows[] = {
      {conv("1x8x6x3", "16x3x3x3", "1x4x3x16", kSame), "0=1"},
      {conv("1x8x6x4", "16x3x3x4", "1x4x3x16", kSame), "0=1"},
      {conv("1x8x6x5", "16x3x3x5", "1x4x3x16", kSame), ""},
      {conv("1x7x6x3", "16x3x3x3", "1x4x3x16", kSame), ""},
      {conv("1x8x5x3", "16x3x3x3", "1x4x3x16", kSame), ""},
      {conv("1x8x6x3", "16x3x3x3", "1x8x6x16", "padding=same stride_h=1 stride_w=1"), ""},
      {conv("1x8x6x3", "16x3x3x3", "1x4x6x16", "padding=same stride_h=2 stride_w=1"), ""},
      {conv("1x8x6x3", "16x2x2x3", "1x4x3x16", "padding=valid stride_h=2 stride_w=2"), "0=1"},
      {signed_conv("1x8x6x3", "16x3x3x3", "1x4x3x16", kSame, -8), "1=1"},
      {signed_conv("1x8x6x3", "16x3x3x3", "1x4x3x16", kSame, -7), ""},
  };
  for (const Row& row : rows) EXPECT_EQ(listed(row.graph), row.listed) << row.graph;
  std::string twice = conv("1x8x6x3", "16x3x3x3", "1x4x3x16", kSame);
  twice.replace(twice.find("inputs 0\noutputs 2"), 18,
                "tensor 3 \"other\" uint8 1x4x3x16 scale=1 zero=3\ninputs 0\noutputs 2 3");
  twice += fmt::format("op 1 CONV_2D in=[0 1] out=[3] {}\n", kSame);
  EXPECT_EQ(listed(twice), "") << "two read it";
}

// A mean of a whole image can be one sum over its channels up to the size limit of filters.
TEST(RockchipPlacement, FlatMeansAreListedWhereTheyCanBe) {
  const auto mean = [](int32_t side, int32_t channels) {
    return fmt::format(R"(graph ""
tensor 0 "in" uint8 1x{0}x{0}x{1} scale=0.5 zero=120
tensor 1 "out" uint8 1x1x1x{1} scale=0.5 zero=120
inputs 0
outputs 1
op 0 AVERAGE_POOL_2D in=[0] out=[1] padding=valid filter_h={0} filter_w={0}
)",
                       side, channels);
  };
  EXPECT_EQ(listed(mean(7, 64), "flat_average"), "0=1");
  EXPECT_EQ(listed(mean(8, 64), "flat_average"), "");
  EXPECT_EQ(listed(mean(7, 32), "flat_average"), "");
  EXPECT_EQ(listed(mean(7, 48), "flat_average"), "");
}

}  // namespace
}  // namespace skillet::npus::rockchip
