// The row of `skillet bench --row`.
#include "tools/time/cpu_row.h"

#include <gtest/gtest.h>

#include "compile/cpu_speed.h"

namespace skillet::tools {
namespace {

TEST(CpuRow, ACoreIsTheLargestThatIsKnown) {
  EXPECT_EQ(core_name("CPU part\t: 0xd03\nCPU part\t: 0xd09\n"), "A73");
  EXPECT_EQ(core_name("CPU part\t: 0xd0b\nCPU part\t: 0xd05\n"), "A76");
  EXPECT_EQ(core_name("CPU part\t: 0xd08\n"), "A72");
  EXPECT_EQ(core_name("model name\t: another\n"), "");
}

// Two convolutions and a softmax; the input may be of another type than what is computed.
ir::Graph network(const char* type, const char* input) {
  const auto graph = ir::parse(fmt::format(R"(tensor 0 "in" {1} 1x4x4x1
tensor 1 "image" {0} 1x4x4x1
tensor 2 "w" {0} 1x1x1x1 const=zeros
tensor 3 "b" {2} 1 const=zeros
tensor 4 "made" {0} 1x4x4x1
inputs 0
outputs 4
op 0 QUANTIZE in=[0] out=[1]
op 1 CONV_2D in=[1 2 3] out=[4])",
                                           type, input, std::string_view(type) == "float32" ? "float32" : "int32"));
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return graph.ok() ? *graph : ir::Graph();
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> out(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') is_quoted = !is_quoted;
    if (c == ',' && !is_quoted)
      out.emplace_back();
    else if (c != '"')
      out.back() += c;
  }
  return out;
}

TEST(CpuRow, HasAFieldForEachColumn) {
  struct Row {
    const char *type, *input, *name;
  };
  for (const auto& [type, input, name] :
       {Row{"uint8", "int8", "u8"}, Row{"int8", "uint8", "i8"}, Row{"float32", "int8", "fp32"}}) {
    const std::vector<double> op_ms = {0.25, 1.5};
    const ir::Graph graph = network(type, input);
    const std::string text = cpu_row("models/a \"b\".tflite", graph, 2.5, op_ms);
    const size_t end = text.find('\n');
    ASSERT_TRUE(end != std::string::npos && text.ends_with('\n')) << text;
    const auto columns = fields_of(text.substr(0, end));
    const auto row = fields_of(text.substr(end + 1, text.size() - end - 2));
    ASSERT_EQ(row.size(), columns.size()) << text;
    const auto field = [&](std::string_view column) {
      return row[static_cast<size_t>(std::ranges::find(columns, column) - columns.begin())];
    };
    EXPECT_EQ(field("net"), "a 'b'");
    EXPECT_EQ(field("dtype"), name);
    EXPECT_EQ(field("ms"), "2.500");
    EXPECT_EQ(field("threads"), "1");
    EXPECT_EQ(field("source"), "measured");
    for (size_t i = 0; i < op_ms.size(); ++i) {
      const auto work =
          compile::kCpuWorkNames[static_cast<size_t>(compile::cpu_work_of(graph, static_cast<ir::OpId>(i)))];
      EXPECT_NE(field("note").find(fmt::format("{} {:.3f}", work, op_ms[i])), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace skillet::tools
