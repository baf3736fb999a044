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
    {"Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, 18},
    {"Selu", [](double x) { return 1.05070098 * (x < 0 ? 1.67326324 * std::expm1(x) : x); }},
    {"Softplus", [](double x) { return std::log1p(std::exp(x)); }},
    {"Softsign", [](double x) { return x / (1 + std::abs(x)); }},
    {"Tan", std::tan},
    {"ThresholdedRelu", [](double x) { return x > 1 ? x : 0.0; }},
};
const Function kFunctionsOfBytes[] = {
    {"Acos", std::acos}, {"Acosh", std::acosh}, {"Asin", std::asin}, {"Asinh", std::asinh},
    {"Atan", std::atan}, {"Atanh", std::atanh}, {"Cosh", std::cosh}, {"Sinh", std::sinh},
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

TEST(Functions, OfFloatsHaveTheAttributesOfTheStandard) {
  const std::vector<float> in = {-4, -1.5F, -0.25F, 0.5F, 1.75F, 7};
  struct Row {
    const char* name;
    std::vector<std::string> attributes;
    double (*of)(double);
    int64_t opset = 17;
  };
  const Row rows[] = {
      {"Elu", {real("alpha", 2)}, [](double x) { return x < 0 ? 2 * std::expm1(x) : x; }},
      {"Celu", {real("alpha", 2)}, [](double x) { return x < 0 ? 2 * std::expm1(x / 2) : x; }},
      {"Selu", {real("alpha", 2), real("gamma", 3)}, [](double x) { return 3 * (x < 0 ? 2 * std::expm1(x) : x); }},
      {"ThresholdedRelu", {real("alpha", 0.5)}, [](double x) { return x > 0.5 ? x : 0; }},
      {"HardSigmoid",
       {real("alpha", 0.5), real("beta", 0.25)},
       [](double x) { return std::clamp(x / 2 + 0.25, 0.0, 1.0); }},
      {"Swish", {real("alpha", 2)}, [](double x) { return x / (1 + std::exp(-2 * x)); }, 24}};
  for (const Row& row : rows) {
    const auto out =
        run(Parts{.nodes = {node(row.name, {"x"}, {"y"}, row.attributes)}, .constants = {}, .opset = row.opset}, in);
    ASSERT_EQ(out.size(), in.size()) << row.name;
    for (size_t i = 0; i < in.size(); ++i)
      EXPECT_NEAR(out[i], row.of(in[i]), 4e-6 * (1 + std::abs(row.of(in[i])))) << row.name << " " << in[i];
  }
}

struct ByHand {
  const char* name;
  Parts parts;
  std::vector<float> want;
};

// Of two rows of three: -1 3 2, -4 5 6.
std::vector<ByHand> by_hand() {
  const std::string k = floats("k", {2, 2}, {1, 2, 3, 4}), column = floats("c", {2, 1}, {10, 20});
  const auto flat = [](Parts parts) { return parts.inputs = {value("x", {2, 3})}, parts; };
  const auto image = [](Parts parts) { return parts.inputs = {value("x", {1, 6, 1})}, parts; };
  const float a = std::sqrt(1 / (14.0F / 3)), b = std::sqrt(1 / (77.0F / 3));
  const auto lrn = [](float x, float squares) { return x / std::sqrt(1 + squares); };
  return {
      {"l1", one("ReduceL1", {}, {ints("axes", {2})}), {6, 15}},
      {"squares", one("ReduceSumSquare", {}, {ints("axes", {1}), number("keepdims", 0)}), {17, 34, 40}},
      {"log_sum", one("ReduceLogSum", {}, {ints("axes", {2})}), {std::log(4.0F), std::log(7.0F)}},
      {"log_sum_exp",
       one("ReduceLogSumExp", {}, {ints("axes", {2}), number("keepdims", 0)}),
       {3 + std::log1p(std::exp(-4.0F) + std::exp(-1.0F)), 6 + std::log1p(std::exp(-10.0F) + std::exp(-1.0F))}},
      {"rms",
       one("RMSNormalization", {"s"}, {real("epsilon", 0)}, {floats("s", {3}, {1, 2, 3})}, 23),
       {-a, 6 * a, 6 * a, -4 * b, 10 * b, 18 * b}},
      {"lp", one("LpNormalization", {}, {number("p", 1)}), {-1.0F / 6, 0.5, 1.0F / 3, -4.0F / 15, 1.0F / 3, 0.4F}},
      {"group_norm",
       image(one("GroupNormalization", {"s", "o"}, {number("num_groups", 2), real("epsilon", 0)},
                 {floats("s", {6}, {1, 1, 1, 2, 2, 2}), floats("o", {6}, {0, 0, 0, 1, 1, 1})}, 21)),
       {-1.37281295F, 0.98058068F, 0.39223227F, -1.8167474F, 2.18599891F, 2.6307485F}},
      {"lrn",
       image(one("LRN", {}, {number("size", 3), real("alpha", 3), real("beta", 0.5)})),
       {lrn(-1, 10), lrn(3, 14), lrn(2, 29), lrn(-4, 45), lrn(5, 77), lrn(6, 61)}},
      {"cum_sum", one("CumSum", {"a"}, {number("reverse", 1)}, {int64s("a", {2})}), {4, 5, 2, 7, 11, 6}},
      {"mean",
       one("Mean", {"k", "c"}, {}, {floats("k", {3}, {0, 3, 6}), column}),
       {3, 16.0F / 3, 6, 16.0F / 3, 28.0F / 3, 32.0F / 3}},
      {"sum_of_rows", one("Sum", {"c"}, {}, {column}), {9, 13, 12, 16, 25, 26}},
      {"power", one("Pow", {"two"}, {}, {int64s("two", {2})}), {1, 9, 4, 16, 25, 36}},
      {"gemm",
       flat(one("Gemm", {"k", "c"}, {real("alpha", 0.5), real("beta", 2), number("transA", 1)},
                {k, floats("c", {3, 1}, {1, 2, 3})})),
       {-4.5, -7, 13, 17, 16, 20}},
      {"edge",
       one("Pad", {"p"}, {word("mode", "edge")}, {int64s("p", {0, 0, 1, 0, 0, 1})}),
       {-1, -1, 3, 2, 2, -4, -4, 5, 6, 6}},
      {"wrap",
       one("Pad", {"p"}, {word("mode", "wrap")}, {int64s("p", {0, 0, 1, 0, 0, 1})}),
       {2, -1, 3, 2, -1, 6, -4, 5, 6, -4}},
      {"constant_output",
       {.nodes = {node("Shape", {"x"}, {"s"}), node("Cast", {"s"}, {"y"}, {number("to", kFloat)})}},
       {1, 2, 3}},
  };
}

TEST(Functions, OfSeveralNumbersAreThoseOfTheStandard) {
  for (const ByHand& row : by_hand()) {
    const std::vector<float> got = run(row.parts, std::vector<float>{-1, 3, 2, -4, 5, 6});
    ASSERT_EQ(got.size(), row.want.size()) << row.name;
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], row.want[i], 1e-5) << row.name << " " << i;
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
