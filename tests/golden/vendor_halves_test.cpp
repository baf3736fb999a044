// Results of 16-bit floats, against sums computed by hand.
#include "vendor_halves.h"

#include <gtest/gtest.h>

#include "base/half.h"

namespace skillet::golden {
namespace {

TEST(VendorHalves, HaveTheirValue) {
  for (const double value : {0.0, 1.0, -1.0, 0.125, -0.375, 108.25, 2047.0, -0.25}) {
    EXPECT_EQ(double{float_of_half(half_of(value))}, value);
  }
  const Bytes inputs = half_inputs(600);
  for (size_t at = 0; at < inputs.size(); at += 2)
    EXPECT_LE(std::abs(float_of_half(load_le<uint16_t>(inputs.data() + at))), 1) << at;
}

// Twelve channels of 2x3 pixels, each with its own number: two surfaces of eight.
Bytes numbered(int32_t pixels) {
  Bytes bytes(static_cast<size_t>(2 * 8 * 2 * pixels));
  for (int32_t c = 0; c < 12; ++c)
    for (int32_t p = 0; p < pixels; ++p)
      store_le(bytes.data() + ((c / 8 * pixels + p) * 8 + c % 8) * 2, half_of(c + 1 + p / 8.0));
  return bytes;
}

TEST(VendorHalves, ResultsAreInSurfacesOfEight) {
  const VendorOp op{.type = "conv",
                    .in_channels = 12,
                    .out_channels = 9,
                    .in_height = 2,
                    .in_width = 3,
                    .out_height = 2,
                    .out_width = 3};
  FloatConv conv;
  for (int32_t o = 0; o < 9; ++o) conv.bias.push_back(static_cast<float>(o) / 4);
  conv.weights.assign(9 * 12, 0);
  conv.weights[8 * 12 + 11] = 0.5;  // half of the last channel, in the last kernel
  const auto out = half_results(op, conv, numbered(6), Bytes(2 * 8 * 2 * 6, 0x5A));
  ASSERT_TRUE(out.ok()) << out.error().message;
  const auto at = [&](size_t c, size_t p) {
    return float_of_half(load_le<uint16_t>(out->data() + ((c / 8 * 6 + p) * 8 + c % 8) * 2));
  };
  EXPECT_EQ(at(3, 4), 0.75F);
  EXPECT_EQ(at(8, 4), 2 + 6.25F);
  EXPECT_EQ(out->back(), 0x5A);  // lanes without a channel are unchanged
}

TEST(VendorHalves, WindowsReachOverTheEdge) {
  const VendorOp op{.type = "conv",
                    .in_channels = 1,
                    .out_channels = 1,
                    .in_height = 3,
                    .in_width = 3,
                    .out_height = 3,
                    .out_width = 3,
                    .kernel_height = 3,
                    .kernel_width = 3,
                    .pad_top = 1,
                    .pad_left = 1};
  FloatConv conv{.weights = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .bias = {0}};
  Bytes input(9 * 16);
  store_le(input.data(), half_of(1));           // the first pixel
  store_le(input.data() + 5 * 16, half_of(1));  // the last pixel of the middle row
  const auto out = half_results(op, conv, input, Bytes(9 * 16));
  ASSERT_TRUE(out.ok()) << out.error().message;
  const float expected[] = {5, 4 + 9, 8, 2, 1 + 6, 5, 0, 3, 2};
  for (size_t p = 0; p < 9; ++p) EXPECT_EQ(float_of_half(load_le<uint16_t>(out->data() + p * 16)), expected[p]) << p;
}

TEST(VendorHalves, WhatDependsOnTheOrderOfSumsIsRefused) {
  const VendorOp op{.type = "conv",
                    .in_channels = 1,
                    .out_channels = 1,
                    .in_height = 1,
                    .in_width = 1,
                    .out_height = 1,
                    .out_width = 1};
  Bytes one(16);
  store_le(one.data(), half_of(1));
  EXPECT_TRUE(half_results(op, {.weights = {0.125}, .bias = {255}}, one, Bytes(16)).ok());
  EXPECT_FALSE(half_results(op, {.weights = {0.125}, .bias = {256}}, one, Bytes(16)).ok());
}

}  // namespace
}  // namespace skillet::golden
