// ONNX features without an equivalent operation in `ir`: such units are left to the host.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "frontend/onnx/capability.h"
#include "frontend/onnx/testing/qdq_net.h"

namespace skillet::onnx {
namespace {

using ir::DType;

const ir::Quant kIn{{0.05F}, {128}};

// Reasons why operations are refused; empty: all are claimed.
std::string refusal_of(QdqNet& net, int real, const ir::Quant& out) {
  net.model.values[static_cast<size_t>(net.quantized(real, out))].is_output = true;
  const auto whole = whole_of(net.model, links_of(net.model));
  if (!whole.ok()) return "error: " + whole.error().message;
  std::string reasons;
  for (const Unit& unit : whole->units) reasons += unit.refusal;
  return reasons;
}

void expect(const std::string& refusal, const std::string& want, const std::string& what) {
  EXPECT_EQ(refusal.empty(), want.empty()) << what << ": " << refusal;
  EXPECT_NE(refusal.find(want), std::string::npos) << what << ": " << refusal;
}

constexpr float kUnlimited = std::numeric_limits<float>::infinity();  // no limit

TEST(Meaning, AClipIsRelu6OnlyWhereNothingBelowZeroIsStored) {
  const struct {
    float low, high;
    int zero_point;
    const char* refusal;
  } rows[] = {{0, 6, 128, ""},
              {0, 6, 0, ""},
              {-kUnlimited, 6, 0, ""},
              {-100, 6, 0, ""},
              {-kUnlimited, 6, 128, "Clip"},
              {-100, 6, 128, "Clip"},
              {-1, 6, 5, "Clip"},
              {0, kUnlimited, 128, ""},
              {-kUnlimited, kUnlimited, 128, ""},
              {-1, 1, 128, "Clip"}};
  for (const auto& row : rows) {
    QdqNet net(DType::uint8);
    const int x = net.dequantized(net.value(DType::uint8, {1, 4, 5, 5}), kIn);
    const int weights = net.dequantized(net.constant(DType::int8, {4, 4, 1, 1}, net.random(16)), {{0.02F}, {0}});
    const int sums = net.value(DType::float32, {1, 4, 5, 5}), y = net.value(DType::float32, {1, 4, 5, 5});
    net.node("Conv", {x, weights}, {sums});
    const auto limit = [&](float value) {
      return std::isinf(value) ? kNone : net.list(DType::float32, std::vector{value}, true);
    };
    net.node("Clip", {sums, limit(row.low), limit(row.high)}, {y});
    expect(refusal_of(net, y, {{0.1F}, {row.zero_point}}), row.refusal,
           fmt::format("{} to {}, zero point {}", row.low, row.high, row.zero_point));
  }
}

TEST(Meaning, ABiasIsOneNumberForEachColumn) {
  const std::pair<std::vector<int64_t>, const char*> rows[] = {
      {{4}, ""}, {{1, 4}, ""}, {{4, 1}, "not a constant bias"}, {{4, 4}, "not a constant bias"}};
  for (const auto& [dims, refusal] : rows) {
    QdqNet net(DType::uint8);
    const int x = net.dequantized(net.value(DType::uint8, {4, 8}), kIn);
    const int weights = net.dequantized(net.constant(DType::int8, {8, 4}, net.random(32)), {{0.01F}, {0}});
    const int bias = net.constant(DType::float32, dims, Bytes(dims.size() == 2 && dims[0] * dims[1] == 16 ? 64 : 16));
    const int y = net.value(DType::float32, {4, 4});
    net.node("Gemm", {x, weights, bias}, {y});
    expect(refusal_of(net, y, {{0.1F}, {128}}), refusal, fmt::format("{} dimensions of {}", dims.size(), dims[0]));
  }
}

// A scale of 2.15 gives 10 pixels for 5, but reads other pixels than a scale of 2.
TEST(Meaning, ScalesOfAResizeAreThoseOfItsAxes) {
  const struct {
    std::vector<float> scales;
    std::vector<int64_t> axes;
    const char* refusal;
  } rows[] = {{{1, 1, 2, 2}, {}, ""},
              {{1, 1, 2.15F, 2.15F}, {}, "give a whole number"},
              {{1, 1, 2.000001F, 2}, {}, "give a whole number"},
              {{2, 2}, {2, 3}, ""},
              {{2.15F, 2.15F}, {2, 3}, "give a whole number"},
              {{2, 2}, {-2, -1}, ""},
              {{2.15F, 2}, {-2, -1}, "give a whole number"},
              {{2, 2, 2}, {2, 3}, "one scale per axis"},
              {{2, 2}, {2, 9}, "one scale per axis"}};
  for (const bool is_old : {false, true}) {
    for (const auto& row : rows) {
      if (is_old && !row.axes.empty()) continue;
      QdqNet net(DType::uint8);
      const int x = net.dequantized(net.value(DType::uint8, {1, 4, 5, 5}), kIn);
      const int y = net.value(DType::float32, {1, 4, 10, 10});
      std::vector<int> inputs = {x};
      if (!is_old) inputs.insert(inputs.end(), {kNone, net.list(DType::float32, row.scales)});
      Node& node = net.node(is_old ? "Upsample" : "Resize", inputs, {y});
      if (is_old) node.attributes["scales"].floats = row.scales;
      if (!row.axes.empty()) node.attributes["axes"].ints = row.axes;
      node.attributes["coordinate_transformation_mode"].text = "asymmetric";
      node.attributes["nearest_mode"].text = "floor";
      expect(refusal_of(net, y, kIn), row.refusal,
             fmt::format("{} by {}", is_old ? "Upsample" : "Resize", row.scales[0]));
    }
  }
}

TEST(Meaning, AResizeThatKeepsItsAspectIsLeft) {
  for (const char* policy : {"stretch", "not_larger", "not_smaller"}) {
    QdqNet net(DType::uint8);
    const int x = net.dequantized(net.value(DType::uint8, {1, 4, 5, 5}), kIn);
    const int y = net.value(DType::float32, {1, 4, 10, 10});
    const int sizes = net.list(DType::int64, std::vector<int64_t>{1, 4, 10, 12});
    Node& node = net.node("Resize", {x, kNone, kNone, sizes}, {y});
    node.attributes["keep_aspect_ratio_policy"].text = policy;
    expect(refusal_of(net, y, kIn), policy == std::string("stretch") ? "" : "keep_aspect_ratio_policy", policy);
  }
}

// A bias is rounded to steps of the sums, which may be coarser than steps of the output.
TEST(Meaning, ABiasThatItsSumsCannotHoldIsLeft) {
  enum class Of { reals, steps, sums };
  const struct {
    Of of;
    double number;
    float step;  // of the output; sums have steps of 1
    const char* refusal;
  } rows[] = {{Of::reals, 0.4, 0.01F, "not a multiple"},     {Of::reals, 0.4, 0.9F, ""},
              {Of::reals, 0.4, 0.7F, "not a multiple"},      {Of::reals, 7, 0.01F, ""},
              {Of::steps, 40, 0.01F, "not a multiple"},      {Of::steps, 300, 0.01F, ""},
              {Of::reals, 3e9, 1, "more than 32 bits"},      {Of::sums, INT32_MAX, 1, "more than 32 bits"},
              {Of::sums, INT32_MIN, 1, "more than 32 bits"}, {Of::sums, 1 << 30, 1, ""}};
  for (const auto& row : rows) {
    QdqNet net(DType::uint8);
    const int x = net.dequantized(net.value(DType::uint8, {1, 1, 4, 4}), {{2}, {128}});
    const int weights = net.dequantized(net.constant(DType::int8, {1, 1, 1, 1}, {1}), {{0.5F}, {0}});
    int bias = row.of == Of::reals ? net.list(DType::float32, std::vector{static_cast<float>(row.number)})
                                   : net.list(DType::int32, std::vector{static_cast<int32_t>(row.number)});
    if (row.of != Of::reals) {
      const int real = net.value(DType::float32, {1});
      net.node("DequantizeLinear", {bias, net.list(DType::float32, std::vector{row.of == Of::sums ? 1 : 0.01F}, true)},
               {real});
      bias = real;
    }
    const int y = net.value(DType::float32, {1, 1, 4, 4});
    net.node("Conv", {x, weights, bias}, {y});
    expect(refusal_of(net, y, {{row.step}, {128}}), row.refusal, fmt::format("{} by {}", row.number, row.step));
  }
}

// Added as steps of sums too; 127 of them are one step of the input.
TEST(Meaning, NumbersOfChannelsThatSumsCannotHoldAreLeft) {
  for (const char* op : {"Add", "Sub"}) {
    for (const auto& [step, refusal] : {std::pair(0.05F, ""), {1e-6F, "more than 32 bits"}}) {
      QdqNet net(DType::uint8);
      const int x = net.dequantized(net.value(DType::uint8, {1, 4, 3, 3}), {{step}, {128}});
      const int by = net.dequantized(net.constant(DType::uint8, {1, 4, 1, 1}, {100, 200, 50, 150}), {{1}, {0}});
      const int y = net.value(DType::float32, {1, 4, 3, 3});
      net.node(op, {x, by}, {y});
      expect(refusal_of(net, y, {{1}, {100}}), refusal, fmt::format("{} of {}", op, step));
    }
  }
}

TEST(Meaning, WindowsThatAreLargerThanTheirInputAreLeft) {
  for (const int64_t rows : {1, 2}) {
    QdqNet net(DType::uint8);
    const int x = net.dequantized(net.value(DType::uint8, {1, 8, 1, 6}), kIn);
    const int y = net.value(DType::float32, {1, 8, 1, 5});
    Node& node = net.node("AveragePool", {x}, {y});
    node.attributes["kernel_shape"].ints = {rows, 2};
    node.attributes["count_include_pad"].ints = {1};
    expect(refusal_of(net, y, kIn), rows == 1 ? "" : "larger than its input", fmt::format("{} rows", rows));
  }
}

TEST(Meaning, ConvolutionsWithChannelsLastAreLeft) {
  for (const int64_t last : {0, 1}) {
    QdqNet net(DType::uint8);
    const int x = net.dequantized(net.value(DType::uint8, {1, 4, 4, 4}), kIn);
    const int weights = net.dequantized(net.constant(DType::int8, {4, 4, 1, 1}, net.random(16)), {{0.02F}, {0}});
    const int y = net.value(DType::float32, {1, 4, 4, 4});
    net.node("Conv", {x, weights}, {y}).attributes["channels_last"].ints = {last};
    expect(refusal_of(net, y, {{0.1F}, {128}}), last != 0 ? "channels are last" : "", "");
  }
}

TEST(Meaning, WhatMayDivideByZeroIsLeft) {
  enum class By { itself, numbers, zero };
  for (const By by : {By::itself, By::numbers, By::zero}) {
    QdqNet net(DType::uint8);
    const int x = net.dequantized(net.value(DType::uint8, {1, 4, 4, 4}), kIn);
    const int y = net.value(DType::float32, {1, 4, 4, 4});
    const auto stored = static_cast<uint8_t>(by == By::zero ? 128 : 140);
    const int other = by == By::itself ? x : net.dequantized(net.constant(DType::uint8, {1}, {stored}), kIn);
    net.node("Div", {x, other}, {y});
    expect(refusal_of(net, y, {{0.1F}, {128}}), by == By::numbers ? "" : "divide by 0", "");
  }
}

}  // namespace
}  // namespace skillet::onnx
