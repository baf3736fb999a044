// Every limit of the NPU from both sides: a graph just refused next to one just taken.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "npu/driver.h"

namespace skillet::npus::rockchip {

const npu::Driver& driver();

namespace {

constexpr const char* kConv = R"(graph ""
tensor 0 "in" uint8 1x8x8x16 scale=0.5 zero=120
tensor 1 "w" uint8 2x1x1x16 scale=0.25 zero=131 const=zeros
tensor 2 "b" int32 2 scale=0.125 zero=0 const=[0 0]
tensor 3 "out" uint8 1x8x8x2 scale=64 zero=7
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 2] out=[3]
)";
constexpr const char* kAdd = R"(graph ""
tensor 0 "a" uint8 1x4x4x16 scale=1 zero=128
tensor 1 "b" uint8 1x4x4x16 scale=1 zero=128
tensor 2 "out" uint8 1x4x4x16 scale=1 zero=128
inputs 0 1
outputs 2
op 0 ADD in=[0 1] out=[2]
)";
constexpr const char* kAverage = R"(graph ""
tensor 0 "in" uint8 1x8x8x16 scale=1 zero=128
tensor 1 "out" uint8 1x4x4x16 scale=1 zero=128
inputs 0
outputs 1
op 0 AVERAGE_POOL_2D in=[0] out=[1] padding=valid stride_h=2 stride_w=2 filter_h=2 filter_w=2
)";
constexpr const char* kConcatenation = R"(graph ""
tensor 0 "a" uint8 1x4x4x16 scale=1 zero=128
tensor 1 "b" uint8 1x4x4x16 scale=1 zero=128
tensor 2 "out" uint8 1x4x4x32 scale=1 zero=128
inputs 0 1
outputs 2
op 0 CONCATENATION in=[0 1] out=[2] axis=3
)";
// After each row of the first and the last tensor the output has a gap of 8190 pixels.
constexpr const char* kSixInARow = R"(graph ""
tensor 0 "a" uint8 1x4x2x16 scale=1 zero=128
tensor 1 "b" uint8 1x4x2047x16 scale=1 zero=128
tensor 2 "c" uint8 1x4x2047x16 scale=1 zero=128
tensor 3 "d" uint8 1x4x2047x16 scale=1 zero=128
tensor 4 "e" uint8 1x4x2047x16 scale=1 zero=128
tensor 5 "f" uint8 1x4x2x16 scale=1 zero=128
tensor 6 "out" uint8 1x4x8192x16 scale=1 zero=128
inputs 0 1 2 3 4 5
outputs 6
op 0 CONCATENATION in=[0 1 2 3 4 5] out=[6] axis=2
)";
constexpr const char* kPad = R"(graph ""
tensor 0 "in" uint8 1x4x4x16 scale=1 zero=128
tensor 1 "amounts" int32 4x2 const=[0 0 1 1 1 1 0 0]
tensor 2 "out" uint8 1x6x6x16 scale=1 zero=128
inputs 0
outputs 2
op 0 PAD in=[0 1] out=[2]
)";

// A mean over columns, in two steps.
constexpr const char* kMean = R"(graph ""
tensor 0 "in" uint8 1x4x40x16 scale=1 zero=128
tensor 1 "axes" int32 1 const=[2]
tensor 2 "out" uint8 1x4x1x16 scale=1 zero=128
inputs 0
outputs 2
op 0 MEAN in=[0 1] out=[2] keep_dims=true
)";
constexpr const char* kSlice = R"(graph ""
tensor 0 "in" uint8 1x4x4x32 scale=1 zero=128
tensor 1 "begin" int32 4 const=[0 1 2 0]
tensor 2 "size" int32 4 const=[1 -1 -1 -1]
tensor 3 "out" uint8 1x3x2x16 scale=1 zero=128
inputs 0
outputs 3
op 0 SLICE in=[0 1 2] out=[3]
)";
constexpr const char* kMaximum = R"(graph ""
tensor 0 "a" uint8 1x4x4x16 scale=1 zero=128
tensor 1 "b" uint8 1x4x4x16 scale=1 zero=128
tensor 2 "out" uint8 1x4x4x16 scale=1 zero=128
inputs 0 1
outputs 2
op 0 MAXIMUM in=[0 1] out=[2]
)";
constexpr const char* kResize = R"(graph ""
tensor 0 "in" uint8 1x2x2x16 scale=1 zero=128
tensor 1 "size" int32 2 const=[4 4]
tensor 2 "out" uint8 1x4x4x16 scale=1 zero=128
inputs 0
outputs 2
op 0 RESIZE_NEAREST_NEIGHBOR in=[0 1] out=[2]
)";
constexpr const char* kBlocks = R"(graph ""
tensor 0 "in" uint8 1x2x2x64 scale=1 zero=128
tensor 1 "out" uint8 1x4x4x16 scale=1 zero=128
inputs 0
outputs 1
op 0 DEPTH_TO_SPACE in=[0] out=[1] block_size=2
)";
constexpr const char* kReshape = R"(graph ""
tensor 0 "in" uint8 1x2x2x64 scale=1 zero=128
tensor 1 "out" uint8 1x16x16 scale=1 zero=128
inputs 0
outputs 1
op 0 RESHAPE in=[0] out=[1]
)";

// In `graph`, each text of `find` is replaced by the one at its place in `refused`, or in `taken`; ; separates them.
struct Row {
  const char *graph, *find, *refused, *taken, *reason;
};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ';')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::string changed(const Row& row, std::string_view by) {
  const std::vector<std::string> finds = split(row.find), news = split(by);
  EXPECT_EQ(finds.size(), news.size()) << by;
  std::string text = row.graph;
  size_t from = 0;
  for (size_t i = 0; i < std::min(finds.size(), news.size()); ++i) {
    const size_t at = text.find(finds[i], from);
    if (at == std::string::npos) {
      ADD_FAILURE() << "no '" << finds[i] << "' in " << text;
      return text;
    }
    text.replace(at, finds[i].size(), news[i]);
    from = at + news[i].size();
  }
  return text;
}

constexpr Row kWindowRows[] = {
    {kConv, "1x8x8x16;1x8x8x2", "1x1x2048x16;1x1x2048x2", "1x1x2047x16;1x1x2047x2", "the NPU counts to 2047"},
    {kConv, "2x1x1x16", "2x32x1x16", "2x31x1x16", "at most 31x31"},
    {kConv, "2x1x1x16", "2x1x32x16", "2x1x31x16", "at most 31x31"},
    {kConv, "1x8x8x2;out=[3]", "1x1x8x2;out=[3] stride_h=8", "1x2x8x2;out=[3] stride_h=7", "the NPU has 1 to 7"},
    {kConv, "1x8x8x2;out=[3]", "1x8x1x2;out=[3] stride_w=8", "1x8x2x2;out=[3] stride_w=7", "the NPU has 1 to 7"},
    {kConv, "out=[3]", "out=[3] dilation_h=33", "out=[3] dilation_h=32", "the NPU has 1 to 32"},
    {kConv, "out=[3]", "out=[3] dilation_w=33", "out=[3] dilation_w=32", "the NPU has 1 to 32"},
    {kConv, "2x1x1x16;out=[3]", "2x3x1x16;out=[3] dilation_h=16", "2x3x1x16;out=[3] dilation_h=15",
     "16 rows and 0 columns of padding"},
    {kConv, "2x1x1x16;out=[3]", "2x1x3x16;out=[3] dilation_w=16", "2x1x3x16;out=[3] dilation_w=15",
     "0 rows and 16 columns of padding"},
    {kConv, "1x8x8x16;1x8x8x2", "1x32785x2047x16;1x32785x2047x2", "1x32784x2047x16;1x32784x2047x2",
     "strides count to 67108864"},
    {kConv, "1x8x8x16;2x1x1x16;1x8x8x2", "1x1x1x8129;2x1x1x8129;1x1x1x2", "1x1x1x8128;2x1x1x8128;1x1x1x2",
     "'in' has 8129 channels"},
    {kConv, "2x1x1x16;2 scale;const=[0 0];1x8x8x2", "8129x1x1x16;8129 scale;const=zeros;1x8x8x8129",
     "8128x1x1x16;8128 scale;const=zeros;1x8x8x8128", "'out' has 8129 channels"},
    {kAverage, "1x8x8x16;1x4x4x16;stride_h=2;filter_h=2", "1x32x8x16;1x1x4x16;stride_h=1;filter_h=32",
     "1x31x8x16;1x1x4x16;stride_h=1;filter_h=31", "at most 31x31"},
    {kAverage, "1x4x4x16;padding=valid;stride_h=2 stride_w=2 filter_h=2 filter_w=2",
     "1x8x8x16;padding=same;stride_h=1 stride_w=1 filter_h=4 filter_w=3",
     "1x8x8x16;padding=same;stride_h=1 stride_w=1 filter_h=3 filter_w=3", "in more than 9 ways"},
    {kAverage, "1x4x4x16 scale=1 zero=128", "1x4x4x16 scale=2 zero=128", "1x4x4x16 scale=1 zero=128",
     "a different quantization"},
    {kAverage, "1x4x4x16 scale=1 zero=128", "1x4x4x16 scale=1 zero=127", "1x4x4x16 scale=1 zero=128",
     "a different quantization"},
    {kPad, "[0 0 1 1 1 1 0 0];1x6x6x16", "[0 0 15 1 1 1 0 0];1x20x6x16", "[0 0 14 1 1 1 0 0];1x19x6x16",
     "16 rows and 2 columns of padding"},
    {kPad, "[0 0 1 1 1 1 0 0];1x6x6x16", "[0 0 1 1 15 1 0 0];1x6x20x16", "[0 0 1 1 14 1 0 0];1x6x19x16",
     "2 rows and 16 columns of padding"},
};

constexpr Row kNumberRows[] = {
    {kConv, "zero=120", "zero=256", "zero=255", "'in' has an invalid quantization"},
    {kConv, "zero=120", "zero=-1", "zero=0", "'in' has an invalid quantization"},
    {kConv, "zero=131", "zero=256", "zero=255", "'w' has a zero point"},
    {kConv, "zero=131", "zero=-1", "zero=0", "'w' has a zero point"},
    {kConv, "zero=7", "zero=256", "zero=255", "'out' has an invalid quantization"},
    {kConv, "zero=7", "zero=-1", "zero=0", "'out' has an invalid quantization"},
    {kConv, "uint8;uint8;zero=131;uint8;zero=7", "int8;int8;zero=0;int8;zero=128", "int8;int8;zero=0;int8;zero=127",
     "'out' has an invalid quantization"},
    {kConv, "2x1x1x16 scale=0.25 zero=131", "2x1x1x16 scale=[0.25 0.5] zero=131 axis=0",
     "2x1x1x16 scale=[0.25 0.25] zero=131 axis=0", "uint8 with a scale per channel"},
    {kConv, "uint8;zero=120;uint8 2x1x1x16 scale=0.25 zero=131;uint8",
     "int8;zero=0;int8 2x1x1x16 scale=[0.25 0.5] zero=[0 1] axis=0;int8",
     "int8;zero=0;int8 2x1x1x16 scale=[0.25 0.5] zero=[1 1] axis=0;int8", "different zero points"},
    {kConv, "uint8;zero=120;uint8 2x1x1x16 scale=0.25 zero=131;uint8",
     "int8;zero=0;int8 2x1x1x16 scale=[0.25 0] zero=[1 1] axis=0;int8",
     "int8;zero=0;int8 2x1x1x16 scale=[0.25 0.5] zero=[1 1] axis=0;int8", "a channel with scale 0"},
    // 0.5 * 0.25 over the output's scale: below 128, not below 2^-49.
    {kConv, "scale=64", "scale=0.0009765625", "scale=0.0009765627", "a gain of 128"},
    {kConv, "scale=64", "scale=1.5e+14", "scale=7e+13", "a gain of"},
    // 16 products of 255 * 255 are 1040400.
    {kConv, "const=[0 0]", "const=[0 2146443248]", "const=[0 2146443247]", "that exceeds 32 bits"},
    {kConv, "const=[0 0]", "const=[-2146443248 0]", "const=[-2146443247 0]", "that exceeds 32 bits"},
    {kConv, "1x8x8x16;2x1x1x16;1x8x8x2 scale=64;out=[3]",
     "1x3x3x918;2x3x3x918;1x1x1x2 scale=0.0625;out=[3] padding=valid",
     "1x3x3x917;2x3x3x917;1x1x1x2 scale=0.0625;out=[3] padding=valid", "times 4 that exceeds 32 bits"},
    {kAdd, "1x4x4x16;1x4x4x16", "1x4x4x16;1x1x1x16", "1x4x4x16;1x4x4x16", "differ in shape"},
    // One operand is in 127ths of its scale, which are at most half a step of the sum; the other has at most 16 steps.
    {kAdd, "\"b\" uint8 1x4x4x16 scale=1;ADD", "\"b\" uint8 1x4x4x16 scale=63.6;SUB",
     "\"b\" uint8 1x4x4x16 scale=63.4;SUB", "too far from that of their sum"},
    {kAdd, "scale=1;scale=1", "scale=1;scale=16.1", "scale=1;scale=15.9", "too far from that of their sum"},
};

constexpr Row kLayoutRows[] = {
    {kConcatenation, "1x4x4x16;1x4x4x16;1x4x4x32", "1x4x4x2047;1x4x4x2;1x4x4x2049", "1x4x4x2007;1x4x4x2;1x4x4x2009",
     "a weight for each of the others"},
    {kConcatenation, "1x4x4x16;1x4x4x16;1x4x4x32", "1x1x2048x17;1x1x2048x1;1x1x2048x18",
     "1x1x2047x17;1x1x2047x1;1x1x2047x18", "rows of 2048 and 2048 pixels"},
    {kConcatenation, "1x4x4x32;axis=3", "2x4x4x16;axis=0", "1x4x8x16;axis=2", "axis 0 is not an image axis"},
    {kConcatenation, "1x4x4x32;axis=3", "2x4x4x16;axis=-4", "1x8x4x16;axis=-3", "axis -4 is not an image axis"},
    {kConcatenation, "1x4x4x16;1x4x4x16;1x4x4x32;axis=3", "1x4x4x16;1x4x8191x16;1x4x8195x16;axis=2",
     "1x4x4x16;1x4x2043x16;1x4x2047x16;axis=2", "the NPU skips at most 8190"},
    {kSixInARow, "\"f\" uint8 1x4x2x16;1x4x8192x16", "\"f\" uint8 1x4x3x16;1x4x8193x16",
     "\"f\" uint8 1x4x2x16;1x4x8192x16", "the NPU skips at most 8190"},
    {kSlice, "[0 1 2 0];1x3x2x16", "[0 1 2 8];1x3x2x8", "[0 1 2 16];1x3x2x16", "the NPU keeps 16 together"},
    {kSlice, "scale=1 zero=128;1x3x2x16 scale=1 zero=128", "scale=1 zero=128;1x3x2x32 scale=2 zero=128",
     "scale=2 zero=1;1x3x2x32 scale=2 zero=1", "a different quantization"},
    {kMaximum, "1x4x4x16;1x4x4x16", "1x4x4x16;1x1x1x16", "1x4x4x16;1x4x4x16", "differ in shape"},
    {kMaximum, "scale=1;scale=1", "scale=1;scale=2", "scale=1;scale=1", "the NPU compares bytes"},
    {kResize, "[4 4];1x4x4x16", "[130 2];1x130x2x16", "[128 2];1x128x2x16", "rows 65 times"},
    {kResize, "[4 4];1x4x4x16", "[5 4];1x5x4x16", "[6 4];1x6x4x16", "does not repeat all pixels equally often"},
    {kResize, "RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "interpolates pixels"},
    {kBlocks, "scale=1;scale=1", "scale=1;scale=2", "scale=2;scale=2", "a different quantization"},
    {kBlocks, "1x2x2x64;1x4x4x16;=2", "1x1x341x36;1x6x2046x1;=6", "1x1x409x25;1x5x2045x1;=5", "skips at most 8190"},
    {kBlocks, "1x2x2x64;1x4x4x16;DEPTH_TO_SPACE", "1x4x4x513;1x2x2x2052;SPACE_TO_DEPTH",
     "1x4x4x512;1x2x2x2048;SPACE_TO_DEPTH", "a weight for each of the others"},
    {kBlocks, "1x2x2x64;1x4x4x16", "1x2x2x2052;1x4x4x513", "1x2x2x2048;1x4x4x512", "a weight for each of the others"},
    {kReshape, "1x2x2x64;1x16x16", "1x2x2x60;1x5x48", "1x2x2x60;1x80x3", "moves channels"},
    {kReshape, "1x2x2x64;1x16x16", "1x2x2x65;1x260x1", "1x2x2x64;1x256x1", "1 rows and 65 columns"},
    {kReshape, "1x2x2x64;1x16x16", "1x2x2x17;1x68", "1x2x2x16;1x64", "moves channels"},
    {kReshape, "zero=128;zero=128", "zero=100;zero=101", "zero=100;zero=100", "a different quantization"},
    {kMean, "scale=1;scale=1", "scale=1;scale=0.66", "scale=1;scale=0.67", "at most 31x31"},
    {kMean, "1x4x40x16;const=[2];1x4x1x16", "1x40x40x16;const=[3];1x40x40x1", "1x40x4x16;const=[1];1x1x4x16",
     "a mean over axes other"},
    {kPad, "zero=128;zero=128", "zero=128;zero=127", "zero=127;zero=127", "a different quantization"},
    {kPad, "scale=1;scale=1", "scale=1;scale=2", "scale=2;scale=2", "a different quantization"},
    {kPad, "[0 0 1 1 1 1 0 0];1x6x6x16", "[0 0 1 1 1 1 0 1];1x6x6x17", "[0 0 1 1 1 0 0 0];1x6x5x16",
     "pads rows and columns"},
};

class RockchipSupport : public testing::TestWithParam<std::span<const Row>> {};

TEST_P(RockchipSupport, RefusesAndTakesTheNeighbour) {
  const npu::Chip& chip = driver().chips()[0];
  for (const Row& row : GetParam()) {
    SCOPED_TRACE(fmt::format("'{}' -> '{}'", row.find, row.refused));
    const auto refused = ir::parse(changed(row, row.refused)), taken = ir::parse(changed(row, row.taken));
    ASSERT_TRUE(refused.ok()) << refused.error().message;
    ASSERT_TRUE(taken.ok()) << taken.error().message;
    const npu::Support no = driver().supports(chip, *refused, 0), yes = driver().supports(chip, *taken, 0);
    EXPECT_FALSE(no.ok);
    EXPECT_NE(no.reason.find(row.reason), std::string::npos) << no.reason;
    EXPECT_TRUE(yes.ok) << yes.reason;
    if (const auto fine = ir::verify(*taken); !fine.ok()) ADD_FAILURE() << fine.error().message;
  }
}
INSTANTIATE_TEST_SUITE_P(All, RockchipSupport,
                         testing::Values(std::span<const Row>(kWindowRows), std::span<const Row>(kNumberRows),
                                         std::span<const Row>(kLayoutRows)));

}  // namespace
}  // namespace skillet::npus::rockchip
