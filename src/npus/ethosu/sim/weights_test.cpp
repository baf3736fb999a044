// The compression of weight streams and the order of weights, by examples of the hardware specification (appendix B).
#include <gtest/gtest.h>

#include "npus/ethosu/sim/weights_u85.h"

namespace skillet::sim::ethosu {
namespace {

std::vector<uint8_t> padded(std::vector<uint8_t> bytes, size_t size) {
  bytes.resize(size, 0xFF);
  return bytes;
}

const std::vector<uint8_t> kZeros = {0x03, 0x00, 0x40, 0x00, 0x10, 0x00, 0xFE, 0x00,
                                     0xF0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
const std::vector<uint8_t> kRuns = {0x2B, 0x00, 0x60, 0x21, 0xA4, 0x27, 0x36, 0xC0,
                                    0xA8, 0x01, 0xB8, 0x71, 0xE3, 0xFF, 0xFF, 0xFF};
const std::vector<uint8_t> kPalette =
    padded({0x7E, 0x00, 0x44, 0x90, 0x04, 0xE2, 0xAB, 0x67, 0x45, 0xC3, 0xF6, 0x5F, 0xA1, 0x31, 0x56, 0x88}, 32);
const std::vector<uint8_t> kDirect =
    padded({0xBE, 0x00, 0xEC, 0x78, 0xFD, 0x7F, 0xFF, 0x7E, 0xEE, 0x6C, 0xEC, 0x5B, 0xDB, 0x5A, 0xDA,
            0x49, 0xC8, 0x47, 0xB7, 0x36, 0xB6, 0x35, 0xA5, 0x23, 0xA3, 0x12, 0x92, 0x11, 0xC1, 0xF3,
            0xC6, 0xF9, 0xCC, 0x89, 0xBB, 0xAC, 0x83, 0x7B, 0xAC, 0x82, 0x6B, 0x9C, 0xF2},
           48);

std::vector<int16_t> runs_twice() {
  std::vector<int16_t> values(64);
  for (const size_t at : {0U, 32U}) values[at] = 5, values[at + 8] = -3, values[at + 31] = 1;
  return values;
}
std::vector<int16_t> line() {
  std::vector<int16_t> values;
  for (int i = 0; i < 24; ++i) values.push_back(static_cast<int16_t>(37 * i % 255 - 127));
  return values;
}

TEST(EthosuWeights, StreamsOfTheSpecificationDecode) {
  struct Case {
    const std::vector<uint8_t>& stream;
    std::vector<int16_t> values;
  };
  const Case cases[] = {{kZeros, std::vector<int16_t>(64)},
                        {kRuns, runs_twice()},
                        {kPalette, {0, 1, -1, 2, -2, 3, -3, 0, 0, 0, 5, -5, 7, 0, 0, 1}},
                        {kDirect, line()}};
  for (const Case& c : cases) {
    const auto values = decode_weights(c.stream, c.values.size());
    ASSERT_TRUE(values.ok()) << values.error().message;
    EXPECT_EQ(*values, c.values);
    EXPECT_FALSE(decode_weights(c.stream, c.values.size() - 1).ok()) << "more than there may be";
  }
}

TEST(EthosuWeights, AStreamThatEndsTooSoonIsAFault) {
  for (size_t size = 1; size + 8 < kDirect.size(); ++size) {
    const auto values = decode_weights(std::span(kDirect).first(size), 1000);
    EXPECT_TRUE(!values.ok() || values->size() < 24) << size;
  }
}

// Position of each value in the stream, by [row][column][output][input].
TEST(EthosuWeights, TheOrderIsThatOfTheTraversal) {
  const auto order_of = [](const WeightOrder& order) {
    std::vector<int16_t> numbers(count_of(order));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int16_t>(i);
    return ordered(numbers, order);
  };
  // 8 outputs of 8 inputs, one tap: the loop over outputs is outside of the loop over inputs; with 32 inputs, 8 of them
  // at a time.
  const auto deep = order_of({.output_depth = 8, .input_depth = 32, .block_depth = 8});
  ASSERT_TRUE(deep.ok()) << deep.error().message;
  EXPECT_EQ((*deep)[1], 1);   // output 0, input 1
  EXPECT_EQ((*deep)[32], 8);  // output 1, input 0
  EXPECT_EQ((*deep)[8], 64);  // output 0, input 8
  const auto wide = order_of({.traversal = Traversal::part_kernel,
                              .output_depth = 8,
                              .input_depth = 8,
                              .kernel_height = 2,
                              .kernel_width = 2,
                              .block_depth = 8});
  ASSERT_TRUE(wide.ok()) << wide.error().message;
  EXPECT_EQ((*wide)[64], 64);  // the second tap
  const auto one = order_of({.traversal = Traversal::depthwise,
                             .output_depth = 16,
                             .kernel_height = 1,
                             .kernel_width = 4,
                             .block_depth = 16});
  ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_EQ((*one)[16], 8);  // tap 1 of channel 0
  EXPECT_EQ((*one)[8], 32);  // channel 8
}

// Some cases have a smaller last block in each loop.
TEST(EthosuWeights, TheirCountIsThatOfTheOrder) {
  for (const Traversal traversal : {Traversal::depth_first, Traversal::part_kernel, Traversal::depthwise}) {
    for (uint32_t i = 0; i < 64; ++i) {
      const WeightOrder order{.traversal = traversal,
                              .output_depth = 1 + i * 5 % 41,
                              .input_depth = traversal == Traversal::depthwise ? 1 : 1 + i * 11 % 67,
                              .kernel_height = 1 + i % 11,
                              .kernel_width = 1 + i / 3 % 13,
                              .dilation_y = 1 + i % 2,
                              .dilation_x = 1 + i / 2 % 2,
                              .block_depth = 1 + i * 3 % 24,
                              .ublock_depth = i % 4 == 0 ? 4U : 8U,
                              .is_16bit = i % 3 == 0};
      EXPECT_TRUE(ordered(std::vector<int16_t>(count_of(order)), order).ok()) << i;
    }
  }
}

// Weights that registers announce and no stream contains cost neither work nor memory.
TEST(EthosuWeights, HugeKernelsOfShortStreamsAreAFaultAtOnce) {
  const WeightOrder huge{.output_depth = 1 << 16, .input_depth = 1 << 16, .kernel_height = 256, .block_depth = 128};
  EXPECT_EQ(count_of(huge), uint64_t{1} << 40);
  const auto made = ordered(std::vector<int16_t>(64), huge);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "the weight stream has 64 weights, too few");
}

TEST(EthosuWeights, ThereMustBeAllOfThemAndNothingElse) {
  const WeightOrder order{.output_depth = 8, .input_depth = 3, .block_depth = 8};
  std::vector<int16_t> values(count_of(order));
  EXPECT_TRUE(ordered(values, order).ok());
  values[3] = 1;  // input 3
  EXPECT_FALSE(ordered(values, order).ok());
  values.pop_back(), values[3] = 0;
  EXPECT_FALSE(ordered(values, order).ok());
}

// One value for each position of a stream; values that are not weights are 0.
StreamedOrder small_order(Traversal traversal) {
  return {.of_all = {.traversal = traversal,
                     .output_depth = 8,
                     .input_depth = traversal == Traversal::depthwise ? 1U : 2U,
                     .kernel_height = 2,
                     .kernel_width = 2,
                     .block_depth = 8,
                     .ublock_depth = 8}};
}

// Rows alternate in direction, and depth-first weights have 64 input channels for only 2.
TEST(EthosuWeights, OrderOfEthosU85) {
  const StreamedOrder part = small_order(Traversal::part_kernel);
  ASSERT_EQ(count_of(part), 5U * 2 * 8 * 8);
  std::vector<int16_t> values(static_cast<size_t>(count_of(part)));
  constexpr size_t kTap = size_t{2} * 8 * 8;
  values[3 * 8 + 1] = 7;          // the first tap, output 3, input 1
  values[2 * kTap + 5 * 8] = -4;  // third tap: the second row begins at its end
  const auto weights = ordered(std::span(&values, 1), part);
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  std::vector<int16_t> expected(4U * 8 * 2);
  expected[3 * 2 + 1] = 7, expected[(3 * 8 + 5) * 2] = -4;
  EXPECT_EQ(*weights, expected);
  values[4 * kTap] = 1;  // padding of taps
  EXPECT_FALSE(ordered(std::span(&values, 1), part).ok());
  StreamedOrder deep = small_order(Traversal::depth_first);
  EXPECT_EQ(count_of(deep), 4U * 64 * 8);
  deep.of_all.is_16bit = true, deep.of_all.ublock_depth = 16;
  EXPECT_EQ(count_of(deep), 4U * 32 * 16);
  deep.macs = 512;
  EXPECT_EQ(count_of(deep), 4U * 64 * 16);
}

// Two streams get four channels each in rotation; groups of ten taps have padding that depends on the chip's size.
TEST(EthosuWeights, StreamsOfEthosU85) {
  StreamedOrder order = small_order(Traversal::depthwise);
  EXPECT_EQ(count_of(order), 10U * 8);
  order.streams = 2, order.macs = 512;
  ASSERT_EQ(count_of(order), 12U * 4);
  std::vector<std::vector<int16_t>> streams(2, std::vector<int16_t>(48));
  streams[0][1] = 3, streams[1][4 + 2] = 9;  // output 1 of the first tap, output 6 of the second
  const auto weights = ordered(streams, order);
  ASSERT_TRUE(weights.ok()) << weights.error().message;
  std::vector<int16_t> expected(4U * 8);
  expected[1] = 3, expected[8 + 6] = 9;
  EXPECT_EQ(*weights, expected);
  order.macs = 2048;
  EXPECT_EQ(count_of(order), 16U * 4);
  streams[1].pop_back();
  order.macs = 512;
  EXPECT_FALSE(ordered(streams, order).ok());
}

}  // namespace
}  // namespace skillet::sim::ethosu
