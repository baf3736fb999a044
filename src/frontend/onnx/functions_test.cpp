// Functions of one number in ONNX files, of floats and of bytes: those of their names.
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

// Each byte, in steps of a half; what is no number is the lowest.
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

}  // namespace
}  // namespace skillet::onnx
