// Groups of reasons: their order in a report.
#include "compile/advice.h"

#include <gtest/gtest.h>

#include "graph/passes/testing/letters.h"

namespace skillet::compile {
namespace {

// First ops that nothing runs, which stop the network; then by time, however many they are; without times, by number.
TEST(Advice, GroupsReasonsByTheirCost) {
  const auto row = [](std::string why, double cpu_us, bool nowhere = false) {
    return OpRow{.why = std::move(why), .plain = {}, .nowhere = nowhere, .note = {}, .cpu_us = cpu_us};
  };
  const auto order = [](const std::vector<OpRow>& rows) {
    std::string out;
    for (const ReasonGroup& group : group_reasons(rows)) out += group.reason;
    return out;
  };
  EXPECT_EQ(
      order({row("a", 1), row("a", 1), row("a", 1), row("b", 100), row("c", 20), row("c", 20), row("d", -1, true)}),
      "dbca");
  EXPECT_EQ(order({row("a", -1), row("b", -1), row("b", -1)}), "ba");
}

// Reasons that differ only in their numbers are one, however these are written; letters and signs are no numbers.
TEST(Advice, ReasonsWithOtherNumbersAreOne) {
  const auto groups = [](const std::string& one, const std::string& other) {
    const OpRow rows[] = {{.why = one, .plain = {}, .note = {}}, {.why = other, .plain = {}, .note = {}}};
    return group_reasons(rows).size();
  };
  for (const char* number : {"7", "4096", "0.25", "1.5e-05", "2e+10", "3e8", "1x10x1x8x32", "10.5e-7"})
    EXPECT_EQ(groups("scale 1 is outside", fmt::format("scale {} is outside", number)), 1U) << number;
  for (const char* other : {"1e", "1e-", "e5", "1-5", "int8", "1y", "-1", "1e-x", "1x", "a1"})
    EXPECT_EQ(groups("scale 1 is outside", fmt::format("scale {} is outside", other)), 2U) << other;
}

// Remedies that unproven=verify replaces: those that ask for another model, if unproven jobs take this one.
TEST(Advice, UnprovenIsTheRemedyWhereItTakesTheModelAsItIs) {
  const passes::AddMulDriver driver;
  Options options;
  options.rewrite = false;
  for (const bool is_taken : {true, false}) {
    const passes::Letters letters("a", {is_taken ? "c=add(a,a)" : "c=relu(a)"}, "c");
    const auto compiled = compile(letters.graph, {&driver, {}}, options);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    for (size_t i = 0; i < npu::kRemedyNames.size(); ++i) {
      using enum npu::Remedy;
      const auto remedy = static_cast<npu::Remedy>(i);
      OpRow row{.op = 0, .remedy = remedy};
      advise_unproven({&row, 1}, *compiled, *compiled);
      const bool asks = remedy == none || remedy == form || remedy == pixels || remedy == one_image ||
                        remedy == npu::remedy_of_op(letters.graph, 0);
      EXPECT_EQ(row.remedy, is_taken && asks ? unproven : remedy) << npu::kRemedyNames[i];
      const std::string why = "the whole job was never recorded (unproven on silicon, unproven=refuse)";
      EXPECT_EQ(row.why, is_taken && asks ? why : "") << npu::kRemedyNames[i];
      EXPECT_EQ(row.plain, row.why);
    }
  }
}

// Users of an ONNX file have no TensorFlow converter, and no operations with TensorFlow's names.
TEST(Advice, SpeaksOfTheModelsOwnTools) {
  constexpr std::array kForeign = {"TFLite", "TFLITE",  "Converter",     "converter", "CONV_2D",
                                   "RELU",   "RESIZE_", "CONCATENATION", "SPLIT",     "RESHAPE",
                                   "TILE",   "PAD,",    "skillet fix"};
  for (size_t i = 0; i < npu::kRemedyNames.size(); ++i) {
    ReasonGroup group{.remedy = static_cast<npu::Remedy>(i)};
    const std::string text = group.remedy_text(Words::onnx);
    EXPECT_NE(text, "");
    for (const char* word : kForeign)
      EXPECT_EQ(text.find(word), std::string::npos) << npu::kRemedyNames[i] << ": " << text;
  }
  for (const auto result : {ir::DType::float32, ir::DType::int16}) {
    passes::Letters letters("a", {"c=mul(a,W)"}, "c");
    letters.graph.ops[0].kind = ir::OpKind::fully_connected;
    letters.graph.tensor(letters.id('c')).dtype = result;
    const std::string advice = quantization_advice(letters.graph, {nullptr, {}}, Words::onnx);
    EXPECT_NE(advice.find("onnxruntime.quantization.quantize_static"), std::string::npos) << advice;
    for (const char* word : kForeign) EXPECT_EQ(advice.find(word), std::string::npos) << advice;
  }
}

// Floats between 16-bit QuantizeLinear and DequantizeLinear do not make a float network.
TEST(Advice, KnowsNetworksOfSixteenBitsInOnnx) {
  for (const auto dtype : {ir::DType::int16, ir::DType::uint16, ir::DType::uint8}) {
    passes::Letters letters("a", {"b=relu(a)", "c=mul(b,W)"}, "c");
    ir::Op& quantize = letters.graph.ops[0];
    quantize.kind = ir::OpKind::opaque;
    quantize.opaque_name = "QuantizeLinear";
    letters.graph.tensor(letters.id('b')).dtype = dtype;
    letters.graph.ops[1].kind = ir::OpKind::fully_connected;
    letters.graph.tensor(letters.id('c')).dtype = ir::DType::float32;
    const std::string advice = quantization_advice(letters.graph, {nullptr, {}}, Words::onnx);
    EXPECT_EQ(advice.find("16-bit activations") != std::string::npos, dtype != ir::DType::uint8) << advice;
  }
}

}  // namespace
}  // namespace skillet::compile
