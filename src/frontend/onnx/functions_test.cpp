// Functions of one number in ONNX files, of floats and of bytes, compared by name. Transposes of channels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "frontend/onnx/testing/file.h"

namespace skillet::onnx {
namespace {

struct Function {
  const char* name;
  double (*of)(double);
  int64_t opset = 17;
};
const Function kFunctions[] = {
    {"Abs", std::abs},
    {"Ceil", std::ceil},
    {"Cos", std::cos},
    {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
    {"Erf", std::erf},
    {"Exp", std::exp},
    {"Floor", std::floor},
    {"Gelu", [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }, 20},
    {"HardSigmoid", [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }},
    {"HardSwish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
    {"LeakyRelu", [](double x) { return x < 0 ? 0.01 * x : x; }},
    {"Log", std::log},
    {"Neg", [](double x) { return -x; }},
    {"Reciprocal", [](double x) { return 1 / x; }},
    {"Relu", [](double x) { return std::max(x, 0.0); }},
    {"Round", std::nearbyint},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"Sign", [](double x) { return x < 0   ? -1.0
                                   : x > 0 ? 1.0
                                           : 0.0; }},
    {"Sin", std::sin},
    {"Sqrt", std::sqrt},
    {"Swish", [](double x) { return x / (1 + std::exp(-x)); }, 24},
    {"Tanh", std::tanh},
};
const Function kFunctionsOfBytes[] = {
    {"Acos", std::acos},
    {"Acosh", std::acosh},
    {"Asin", std::asin},
    {"Asinh", std::asinh},
    {"Atan", std::atan},
    {"Atanh", std::atanh},
    {"Cosh", std::cosh},
    {"Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, 18},
    {"Selu", [](double x) { return 1.05070098 * (x < 0 ? 1.67326324 * std::expm1(x) : x); }},
    {"Sinh", std::sinh},
    {"Softplus", [](double x) { return std::log1p(std::exp(x)); }},
    {"Softsign", [](double x) { return x / (1 + std::abs(x)); }},
    {"Tan", std::tan},
    {"ThresholdedRelu", [](double x) { return x > 1 ? x : 0.0; }},
};

TEST(Functions, OfFloatsAreThoseOfTheirNames) {
  const std::vector<float> in = {-4, -1.5F, -0.25F, 0.5F, 1.75F, 7};
  for (const Function& row : kFunctions) {
    const auto out = run(Parts{.nodes = {node(row.name, {"x"}, {"y"})}, .constants = {}, .opset = row.opset}, in);
    ASSERT_EQ(out.size(), in.size()) << row.name;
    for (size_t i = 0; i < in.size(); ++i) {
      const double wanted = row.of(in[i]);
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(out[i])) << row.name << " " << in[i];
      } else {
        EXPECT_NEAR(out[i], wanted, 2e-6 * std::max(1.0, std::abs(wanted))) << row.name << " " << in[i];
      }
    }
  }
}

// Every byte, in steps of 0.5. NaN becomes the lowest byte.
TEST(Functions, OfBytesAreThoseOfTheirNames) {
  std::vector<int8_t> in(256);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int8_t>(i);
  std::vector<Function> all(std::begin(kFunctions), std::end(kFunctions));
  all.insert(all.end(), std::begin(kFunctionsOfBytes), std::end(kFunctionsOfBytes));
  for (const Function& row : all) {
    Parts parts = in_halves(row.name, {1, 256}, {});
    parts.opset = row.opset;
    const auto out = run(parts, in);
    ASSERT_EQ(out.size(), in.size()) << row.name;
    for (size_t i = 0; i < in.size(); ++i) {
      const double wanted = std::nearbyint(2 * static_cast<double>(static_cast<float>(row.of(in[i] / 2.0))));
      EXPECT_EQ(out[i], std::isnan(wanted) ? -128 : std::clamp(wanted, -128.0, 127.0)) << row.name << " " << +in[i];
    }
  }
}

// Slopes of bytes, one for each channel: one operation on bytes, within a step of the exact result.
TEST(Functions, PReluOfBytesHasASlopeForEachChannel) {
  const std::vector<int8_t> slopes = {64, -32, 0, 127};
  Parts parts{.nodes = {node("DequantizeLinear", {"s8", "s", "zero"}, {"slopes"})},
              .constants = {tensor("s8", kInt8, {4, 1, 1}, std::string(slopes.begin(), slopes.end())),
                            tensor("s", kFloat, {}, bytes_of({1.0F / 64}))}};
  parts = in_halves("PRelu", {1, 4, 8, 8}, {"slopes"}, parts);
  std::vector<int8_t> in(256);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int8_t>(i * 37);
  const auto graph = import(file(parts), "m");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto is_on_bytes = [&](const ir::Op& op) {
    return op.kind == ir::OpKind::prelu && ir::is_8bit(graph->tensor(op.outputs[0]).dtype);
  };
  EXPECT_EQ(std::ranges::count_if(graph->ops, is_on_bytes), 1) << ir::print(*graph);
  const auto out = run(parts, in);
  ASSERT_EQ(out.size(), in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const double exact = in[i] < 0 ? in[i] * slopes[i / 64] / 64.0 : in[i];
    EXPECT_NEAR(out[i], std::clamp(exact, -128.0, 127.0), 1) << i << " " << +in[i];
  }
}

// Channels are last inside, so a transpose to or from channels last adds no work beside a window.
TEST(Transpose, OfChannelsIsNoWorkInside) {
  struct Row {
    Dims in, out, perm;
    bool is_before;  // the window
  };
  const Row rows[] = {{{1, 2, 3, 4}, {1, 3, 4, 2}, {0, 2, 3, 1}, true},
                      {{1, 3, 4, 2}, {1, 2, 3, 4}, {0, 3, 1, 2}, false}};
  for (const auto& [in, out, perm, is_before] : rows) {
    const std::string window = node("MaxPool", {is_before ? "real" : "turned"}, {is_before ? "pooled" : "result"},
                                    {ints("kernel_shape", {1, 1})});
    const std::string turn =
        node("Transpose", {is_before ? "pooled" : "real"}, {is_before ? "result" : "turned"}, {ints("perm", perm)});
    const Parts parts{
        .nodes = {node("DequantizeLinear", {"x", "half", "zero"}, {"real"}), is_before ? window : turn,
                  is_before ? turn : window, node("QuantizeLinear", {"result", "half", "zero"}, {"y"})},
        .constants = {tensor("half", kFloat, {}, bytes_of({0.5F})), tensor("zero", kInt8, {}, std::string(1, '\0'))},
        .inputs = {value("x", in, kInt8)},
        .outputs = {value("y", out, kInt8)}};
    const auto graph = import(file(parts), "m");
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    EXPECT_EQ(std::ranges::count(graph->ops, ir::OpKind::transpose, &ir::Op::kind), 1) << ir::print(*graph);
    std::vector<int8_t> numbers;
    for (int8_t i = 0; i < 24; ++i) numbers.push_back(i);
    const std::vector<int8_t> turned = run(parts, numbers);
    const int64_t channels = is_before ? in[1] : in.back(), pixels = static_cast<int64_t>(numbers.size()) / channels;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < pixels; ++i)
        EXPECT_EQ(turned[static_cast<size_t>(is_before ? i * channels + c : c * pixels + i)],
                  numbers[static_cast<size_t>(is_before ? c * pixels + i : i * channels + c)]);
  }
}

// Sizes that are not in the file follow from the blocks. Sizes that the blocks do not fit are refused.
TEST(Blocks, HaveTheSizesOfTheirPixels) {
  struct Row {
    const char* op;
    Dims in, out;  // none: refused
  };
  for (const auto& [op, in, out] : {Row{"SpaceToDepth", {1, 2, 4, 6}, {1, 8, 2, 3}},
                                    {"SpaceToDepth", {1, 2, 4, 5}, {}},
                                    {"SpaceToDepth", {1, 2, 5, 6}, {}},
                                    {"DepthToSpace", {1, 8, 2, 3}, {1, 2, 4, 6}},
                                    {"DepthToSpace", {1, 6, 2, 3}, {}}}) {
    const Parts parts{.nodes = {node(op, {"x"}, {"z"}, {number("blocksize", 2)}), node("Relu", {"z"}, {"y"})},
                      .constants = {},
                      .inputs = {value("x", in)}};
    const auto graph = import(file(parts), "m");
    if (out.empty()) {
      EXPECT_TRUE(!graph.ok() || graph->ops[0].kind == ir::OpKind::opaque) << op;
      continue;
    }
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const ir::Shape& shape = graph->tensor(graph->outputs[0]).shape;
    EXPECT_EQ(Dims(shape.dims.begin(), shape.dims.end()), out) << op;
  }
}

}  // namespace
}  // namespace skillet::onnx
