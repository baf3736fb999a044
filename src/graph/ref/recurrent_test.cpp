// Operations with states, run after run, beside numbers worked out by hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/bytes.h"
#include "graph/ref/ref.h"

namespace skillet::ref {
namespace {

using Values = std::vector<float>;

// The outputs of runs in turn, one for each input; one list for all.
Result<Values> runs(const std::string& text, const std::vector<Values>& inputs) {
  SK_TRY_ASSIGN(const ir::Graph graph, ir::parse(text));
  SK_TRY_ASSIGN(Interpreter cpu, Interpreter::create(graph));
  Values all;
  for (const Values& in : inputs) {
    const auto* from = reinterpret_cast<const uint8_t*>(in.data());
    std::copy_n(from, in.size() * sizeof(float), cpu.tensor(graph.inputs[0]).begin());
    SK_TRY(cpu.run());
    const std::span<const uint8_t> out = cpu.tensor(graph.outputs[0]);
    for (size_t i = 0; i < out.size() / sizeof(float); ++i)
      all.push_back(load_le<float>(out.data() + i * sizeof(float)));
  }
  return all;
}

void expect_runs(const std::string& text, const std::vector<Values>& inputs, const Values& wanted) {
  const auto got = runs(text, inputs);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(*got, wanted) << text;
}

// Two filters for one unit, one of each input, which remember two steps: the older times 1 and 3, the newer 2 and 4.
std::string svdf(const char* features, const char* time, const char* bias, const char* attributes) {
  return fmt::format(R"(tensor 0 "in" float32 2x2
tensor 1 "features" {}
tensor 2 "time" {}
tensor 3 "bias" float32 1 const=[0.5]
tensor 4 "state" float32 2x4 variable
tensor 5 "out" float32 2x1
inputs 0
outputs 5
op 0 SVDF in=[0 1 2 {} 4] out=[5] rank=2{}
)",
                     features, time, bias, attributes);
}
constexpr const char* kFloatFeatures = "float32 2x2 const=[1 0 0 1]";
constexpr const char* kFloatTime = "float32 2x2 const=[1 2 3 4]";
constexpr const char* kByteFeatures = "int8 2x2 scale=0.5 const=[2 0 0 2]";
constexpr const char* kByteTime = "int8 2x2 scale=0.25 const=[4 8 12 16]";

TEST(Svdf, RemembersWhatItsFiltersSaw) {
  const std::vector<Values> inputs = {{5, 7, 1, 0}, {1, -2, 0, -8}};
  expect_runs(svdf(kFloatFeatures, kFloatTime, "3", ""), inputs, {38.5F, 2.5F, 20.5F, -30.5F});
  expect_runs(svdf(kFloatFeatures, kFloatTime, "-", ""), inputs, {38, 2, 20, -31});
  expect_runs(svdf(kFloatFeatures, kFloatTime, "3", " activation=relu"), inputs, {38.5F, 2.5F, 20.5F, 0});
  expect_runs(svdf(kFloatFeatures, kFloatTime, "3", " activation=relu6"), inputs, {6, 2.5F, 6, 0});
}

// Inputs that lose nothing in bytes: of a scale of 1, and with a zero point where both ends count.
TEST(Svdf, WithWeightsOfBytesIsTheSame) {
  expect_runs(svdf(kByteFeatures, kByteTime, "3", ""), {{127, -63, 1, 127}}, {254 - 252 + 0.5F, 2 + 508 + 0.5F});
  expect_runs(svdf(kByteFeatures, kByteTime, "3", " asymmetric_inputs=true"), {{200, -55, -127, 128}},
              {400 - 220 + 0.5F, -254 + 512 + 0.5F});
}

TEST(Svdf, OfMixedTypesIsRefused) {
  const std::pair<std::string, const char*> rows[] = {
      {svdf(kFloatFeatures, kByteTime, "3", ""), "weights of two types"},
      {svdf("int16 2x2 scale=1 const=[1 0 0 1]", kFloatTime, "3", ""), "float32 input, int16 features"}};
  for (const auto& [text, reason] : rows) {
    const auto refused = runs(text, {{0, 0, 0, 0}});
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_NE(refused.error().message.find(reason), std::string::npos) << refused.error().message;
  }
}

// Gates that are open: the cell is 3 more each step, at most 5; what leaves is 8 times as much and a quarter.
TEST(Lstm, ProjectsAndClips) {
  const auto lstm = [](const char* projection, const char* clip) {
    std::string text = "tensor 0 \"in\" float32 1x1\n";
    for (int i = 1; i <= 8; ++i) text += fmt::format("tensor {} \"w{}\" float32 1x1 const=[0]\n", i, i);
    for (int i = 12; i <= 15; ++i)
      text += fmt::format("tensor {} \"b{}\" float32 1 const=[{}]\n", i - 3, i, i == 14 ? 3 : 100);
    return fmt::format(
        "{}tensor 13 \"p\" float32 1x1 const=[8]\ntensor 14 \"pb\" float32 1 const=[0.25]\n"
        "tensor 15 \"state\" float32 1x1 variable\ntensor 16 \"cell\" float32 1x1 variable\n"
        "tensor 17 \"out\" float32 1x1\ninputs 0\noutputs 17\n"
        "op 0 LSTM in=[0 1 2 3 4 5 6 7 8 - - - 9 10 11 12 {} 15 16] out=[17] cell_clip=5{}\n",
        text, projection, clip);
  };
  expect_runs(lstm("- -", ""), {{0}, {0}, {0}}, {3, 5, 5});
  expect_runs(lstm("13 -", ""), {{0}, {0}}, {24, 40});
  expect_runs(lstm("13 14", ""), {{0}, {0}}, {24.25F, 40.25F});
  expect_runs(lstm("13 14", " projection_clip=30"), {{0}, {0}}, {24.25F, 30});
}

}  // namespace
}  // namespace skillet::ref
