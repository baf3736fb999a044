// Every limit of Skillet's own compiler, from both sides: the first refused value and the last accepted one.
#include <gtest/gtest.h>

#include <string>

#include "npu/driver.h"

namespace skillet::npus::ethosu {
namespace {

std::string tensor(int id, std::string_view type, std::string_view shape, double scale, std::string_view more = "") {
  return fmt::format("tensor {0} \"t{0}\" {1} {2} scale={3} zero=0{4}\n", id, type, shape, scale, more);
}
// A graph with one input and one output.
std::string single(std::string_view type, double from, double to, std::string_view op) {
  return fmt::format("{}{}inputs 0\noutputs 1\nop 0 {}\n", tensor(0, type, "1x2x2x4", from),
                     tensor(1, type, "1x2x2x4", to), fmt::format(fmt::runtime(op), "in=[0] out=[1]"));
}
std::string pair(std::string_view type, double a, double b, double to, std::string_view op) {
  return tensor(0, type, "1x2x2x4", a) + tensor(1, type, "1x2x2x4", b) + tensor(2, type, "1x2x2x4", to) +
         fmt::format("inputs 0 1\noutputs 2\nop 0 {}\n", fmt::format(fmt::runtime(op), "in=[0 1] out=[2]"));
}
std::string prelu(double from, double slope, double to) {
  return tensor(0, "int8", "1x2x2x4", from) + tensor(1, "int8", "1x1x4", slope, " const=zeros") +
         tensor(2, "int8", "1x2x2x4", to) + "inputs 0\noutputs 2\nop 0 PRELU in=[0 1] out=[2]\n";
}
std::string reduced(std::string_view op, std::string_view type, int rows, double from, double to) {
  return tensor(0, type, fmt::format("{}x4", rows), from) + "tensor 1 \"axes\" int32 1 const=[0]\n" +
         tensor(2, type, "4", to) + fmt::format("inputs 0\noutputs 2\nop 0 {} in=[0 1] out=[2]\n", op);
}
std::string pool(std::string_view op, std::string_view type, int h, int w, std::string_view padding) {
  const bool is_padded = padding == "same";
  return tensor(0, type, fmt::format("1x{}x{}x4", h, w), 1) +
         tensor(1, type, is_padded ? fmt::format("1x{}x{}x4", h, w) : "1x1x1x4", 1) +
         fmt::format("inputs 0\noutputs 1\nop 0 {} in=[0] out=[1] padding={} filter_h={} filter_w={}\n", op, padding, h,
                     w);
}
// A kernel over the whole image, with the changes in `more`.
std::string conv(int kernel_h, int kernel_w, int in_h, int in_w, int out_h, int out_w, std::string_view more) {
  return tensor(0, "int8", fmt::format("1x{}x{}x1", in_h, in_w), 1) +
         tensor(1, "int8", fmt::format("1x{}x{}x1", kernel_h, kernel_w), 1, " const=zeros") +
         tensor(2, "int8", fmt::format("1x{}x{}x1", out_h, out_w), 1) +
         fmt::format("inputs 0\noutputs 2\nop 0 CONV_2D in=[0 1 -] out=[2] padding=valid {}\n", more);
}
std::string grouped(int groups) {
  return tensor(0, "int8", fmt::format("1x2x2x{}", groups), 1) +
         tensor(1, "int8", fmt::format("{}x1x1x1", groups), 1, " const=zeros") +
         tensor(2, "int8", fmt::format("1x2x2x{}", groups), 1) +
         "inputs 0\noutputs 2\nop 0 CONV_2D in=[0 1 -] out=[2]\n";
}
std::string transposed(int stride) {
  return fmt::format("tensor 0 \"s\" int32 4 const=[1 {0} {0} 1]\n", 2 * stride) +
         tensor(1, "int8", fmt::format("1x{0}x{0}x1", stride), 1, " const=zeros") + tensor(2, "int8", "1x2x2x1", 1) +
         tensor(3, "int8", fmt::format("1x{0}x{0}x1", 2 * stride), 1) +
         fmt::format("inputs 2\noutputs 3\nop 0 TRANSPOSE_CONV in=[0 1 2] out=[3] stride_h={0} stride_w={0}\n", stride);
}

struct Row {
  std::string taken, refused;
  const char* reason;
};
constexpr const char* kSteep = "is too small for its inputs";

// The factor of a result: 2^11 shifts it left by 12 bits.
const Row kFactors[] = {
    {single("int8", 0x1p19, 1, "QUANTIZE {}"), single("int8", 0x1p20, 1, "QUANTIZE {}"), kSteep},
    {single("int16", 0x1p11, 1, "QUANTIZE {}"), single("int16", 0x1p12, 1, "QUANTIZE {}"), kSteep},
    {single("int16", 0x1p11, 1, "RELU {}"), single("int16", 0x1p12, 1, "RELU {}"), kSteep},
    {single("int16", 0x1p11, 1, "LEAKY_RELU {} alpha=0.5"), single("int16", 0x1p12, 1, "LEAKY_RELU {} alpha=0.5"),
     kSteep},
    {single("int16", 0x1p9, 1, "LEAKY_RELU {} alpha=4"), single("int16", 0x1p9, 1, "LEAKY_RELU {} alpha=8"), kSteep},
    {pair("int8", 0x1p10, 2, 1, "MUL {}"), pair("int8", 0x1p10, 4, 1, "MUL {}"), kSteep},
    {pair("int16", 0.25, 2, 1, "MUL {}"), pair("int16", 0.25, 4, 1, "MUL {}"), kSteep},
    {pair("int8", 0x1p18, 1, 1, "ADD {}"), pair("int8", 0x1p19, 1, 1, "ADD {}"), kSteep},
    {pair("int8", 1, 0x1p18, 1, "SUB {}"), pair("int8", 1, 0x1p19, 1, "SUB {}"), kSteep},
    {pair("int16", 0x1p13, 0.75, 1, "ADD {}"), pair("int16", 0x1p14, 0.75, 1, "ADD {}"), kSteep},
    {prelu(0x1p11, 0.25, 1), prelu(0x1p12, 0.25, 1), kSteep},
    {prelu(0x1p9, 4, 1), prelu(0x1p9, 8, 1), kSteep},
};

const Row kWindows[] = {
    {pool("MAX_POOL_2D", "int8", 256, 1, "valid"), pool("MAX_POOL_2D", "int8", 257, 1, "valid"),
     "a window of 257x1; the chip takes 256 rows and 65536 taps, 8x8"},
    {pool("AVERAGE_POOL_2D", "int8", 256, 256, "valid"), pool("AVERAGE_POOL_2D", "int8", 256, 257, "valid"),
     "a window of 256x257; the chip takes 256 rows and 65536 taps"},
    {pool("AVERAGE_POOL_2D", "int8", 8, 8, "same"), pool("AVERAGE_POOL_2D", "int8", 9, 8, "same"), "next to padding"},
    {pool("AVERAGE_POOL_2D", "int8", 8, 8, "same"), pool("AVERAGE_POOL_2D", "int8", 8, 9, "same"), "next to padding"},
    {pool("AVERAGE_POOL_2D", "int16", 64, 64, "valid"), pool("AVERAGE_POOL_2D", "int16", 17, 241, "valid"),
     "averages of int16 are exact up to 4096 taps"},
    {conv(64, 1, 64, 1, 1, 1, ""), conv(65, 1, 65, 1, 1, 1, ""), "a kernel of 65x1; the chip takes 64 rows and 4096"},
    {conv(64, 64, 64, 64, 1, 1, ""), conv(17, 241, 17, 241, 1, 1, ""), "a kernel of 17x241; the chip takes 64 rows"},
    {conv(1, 4096, 1, 4096, 1, 1, ""), conv(1, 4097, 1, 4097, 1, 1, ""), "a kernel of 1x4097; the chip takes 64 rows"},
    {conv(2, 1, 8, 1, 3, 1, "stride_h=3"), conv(2, 1, 8, 1, 2, 1, "stride_h=4"), "stride"},
    {conv(1, 2, 1, 8, 1, 3, "stride_w=3"), conv(1, 2, 1, 8, 1, 2, "stride_w=4"), "stride"},
    {conv(2, 1, 8, 1, 6, 1, "dilation_h=2"), conv(2, 1, 8, 1, 5, 1, "dilation_h=3"), "dilation"},
    {conv(1, 2, 1, 8, 1, 6, "dilation_w=2"), conv(1, 2, 1, 8, 1, 5, "dilation_w=3"), "dilation"},
    {grouped(64), grouped(65), "65 groups of channels; Skillet makes up to 64"},
    {transposed(2), transposed(3), "a stride of 3x3; the chip has 1x1 and 2x2"},
};

const Row kReductions[] = {
    {reduced("MEAN", "int8", 4096, 1, 1), reduced("MEAN", "int8", 4097, 1, 1), "4096 values and 65536 of each axis"},
    {reduced("REDUCE_MAX", "int8", 65536, 1, 1), reduced("REDUCE_MAX", "int8", 65537, 1, 1),
     "65536 values and 65536 of each axis"},
};

std::string padded(const char* dtype) {
  return fmt::format(
      "tensor 0 \"in\" {0} 1x2x2x1 scale=0.5 zero=0\ntensor 1 \"amounts\" int32 4x2 const=[0 0 1 0 0 0 0 0]\n"
      "tensor 2 \"value\" {0} 1 scale=0.5 zero=0 const=[3]\ntensor 3 \"out\" {0} 1x3x2x1 scale=0.5 zero=0\n"
      "inputs 0\noutputs 3\nop 0 PADV2 in=[0 1 2] out=[3]\n",
      dtype);
}
const Row kPads[] = {{padded("int8"), padded("int16"), "pads with a value of 2 bytes"}};

class EthosuSupport : public testing::TestWithParam<std::span<const Row>> {};

TEST_P(EthosuSupport, RefusesAndTakesTheNeighbour) {
  const npu::Chip chip = npu::find_chip("imx93").value();
  const npu::Driver& driver = *npu::driver_of(chip).value();
  for (const Row& row : GetParam()) {
    SCOPED_TRACE(row.refused);
    const auto refused = ir::parse("graph \"\"\n" + row.refused), taken = ir::parse("graph \"\"\n" + row.taken);
    ASSERT_TRUE(refused.ok()) << refused.error().message;
    ASSERT_TRUE(taken.ok()) << taken.error().message;
    const npu::Support no = driver.supports(chip, *refused, 0), yes = driver.supports(chip, *taken, 0);
    EXPECT_FALSE(no.ok);
    EXPECT_NE(no.reason.find(row.reason), std::string::npos) << no.reason;
    EXPECT_TRUE(yes.ok) << yes.reason;
    for (const auto* graph : {&*taken, &*refused})
      if (const auto fine = ir::verify(*graph); !fine.ok()) ADD_FAILURE() << fine.error().message;
  }
}
INSTANTIATE_TEST_SUITE_P(All, EthosuSupport,
                         testing::Values(std::span<const Row>(kFactors), std::span<const Row>(kWindows),
                                         std::span<const Row>(kReductions), std::span<const Row>(kPads)));

}  // namespace
}  // namespace skillet::npus::ethosu
