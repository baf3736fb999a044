// Operations that the toy takes and refuses, and the words of its programs.
#include "npus/toy/hw/toy.h"

#include <gtest/gtest.h>

#include "npu/driver.h"

namespace skillet::npus::toy {

const npu::Driver& driver();

namespace {

namespace hw = ::skillet::toy::hw;

constexpr const char* kMaximum = R"(graph ""
tensor 0 "a" uint8 1x3x2x4 scale=0.5 zero=100
tensor 1 "b" uint8 1x3x2x4 scale=0.5 zero=100
tensor 2 "out" uint8 1x3x2x4 scale=0.5 zero=100
inputs 0 1
outputs 2
op 0 MAXIMUM in=[0 1] out=[2]
)";
constexpr const char* kRelu = R"(graph ""
tensor 0 "a" uint8 1x3x2x4 scale=0.5 zero=100
tensor 1 "out" uint8 1x3x2x4 scale=0.5 zero=100
inputs 0
outputs 1
op 0 RELU in=[0] out=[1]
)";

std::string replaced(std::string text, std::string_view find, std::string_view by) {
  for (size_t at = 0; !find.empty() && (at = text.find(find, at)) != std::string::npos; at += by.size())
    text.replace(at, find.size(), by);
  return text;
}

TEST(ToyDriver, RefusesWithAReason) {
  struct Row {
    const char *graph, *find, *by, *reason;
  };
  const Row rows[] = {
      {kMaximum, "", "", ""},
      {kRelu, "", "", ""},
      {kMaximum, "scale=0.5 zero=100", "", ""},
      {kMaximum, "MAXIMUM", "MINIMUM", "the toy has no MINIMUM"},
      {kMaximum, "uint8", "int8", "'out' is int8; the toy works on uint8"},
      {kMaximum, "\"b\" uint8 1x3x2x4", "\"b\" uint8 1x3x1x4", "'b' and 'out' differ in shape"},
      {kMaximum, "\"b\" uint8 1x3x2x4 scale=0.5", "\"b\" uint8 1x3x2x4 scale=1", "'b' and 'out' differ in quant"},
      {kMaximum, "scale=0.5", "scale=-1", "which are invalid"},
      {kRelu, "zero=100", "zero=256", "which are invalid"},
      {kRelu, "scale=0.5 zero=100", "scale=[1 1 1 1] zero=0 axis=3", "quantized per channel"},
      {kRelu, "1x3x2x4", "1x1024x1024x1", ""},
      {kRelu, "1x3x2x4", "1x1024x1024x2", "has 2097152 bytes; the toy takes 1 to 1048576"},
  };
  const npu::Chip& chip = driver().chips()[0];
  for (const Row& row : rows) {
    const auto graph = ir::parse(replaced(row.graph, row.find, row.by));
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const npu::Support support = driver().supports(chip, *graph, 0);
    EXPECT_EQ(support.ok, *row.reason == '\0') << row.find << ": " << support.reason;
    EXPECT_NE(support.reason.find(row.reason), std::string::npos) << support.reason;
    const auto program = driver().compile(chip, *graph, {});
    EXPECT_EQ(program.ok(), support.ok) << "compile() checks again";
    EXPECT_TRUE(!program.ok() || npu::verify(*program).ok());
  }
}

TEST(ToyDriver, CompilesToDescriptorsWithRelocations) {
  const npu::Program program = driver().compile(driver().chips()[0], ir::parse(kRelu).value(), {}).value();
  ASSERT_EQ(program.jobs.size(), 1u);
  ASSERT_EQ(program.buffers.size(), 5u) << "two tensors, the init command, the descriptor, its command";
  const npu::Buffer& descriptor = program.buffers[3];
  bits::Words<hw::Descriptor> words{};
  std::memcpy(words.data(), descriptor.contents.data(), sizeof words);
  const auto fields = bits::read<hw::Descriptor>(words);
  EXPECT_EQ(fields.bytes, 24u);
  EXPECT_EQ(fields.least, 100u);
  ASSERT_EQ(descriptor.relocations.size(), 3u);
  const npu::Relocation result{.at_byte = 8, .target = 1, .lsb = 4, .width_bits = 26, .shift = 6};
  EXPECT_EQ(descriptor.relocations[2], result);
}

TEST(ToyDriver, DecodesWhatItCompiles) {
  capture::Submission submission;
  submission.jobs = capture::one_list({static_cast<uint32_t>(hw::Opcode::run), 0x1000});
  hw::Descriptor fields{.bytes = 24, .least = 7};
  fields.result.offset = 0x40;
  const auto words = bits::pack(fields).value();
  const auto bytes = as_bytes(std::span<const uint32_t>(words));
  submission.buffers.push_back(
      {.handle = 1, .address = 0x1000, .size_bytes = 20, .bytes = Bytes(bytes.begin(), bytes.end())});
  const npu::Annotated decoded = driver().decode(driver().chips()[0], submission).value();
  const auto value = [&](std::string_view name) {
    for (const npu::AnnotatedField& field : decoded.fields) {
      if (field.name == name) return field.value;
    }
    return std::string("not there");
  };
  EXPECT_EQ(value("command.opcode"), "run");
  EXPECT_EQ(value("descriptor.bytes"), "24");
  EXPECT_EQ(value("descriptor.least"), "7");
  submission.buffers[0].address = 0x2000;
  EXPECT_FALSE(driver().decode(driver().chips()[0], submission).ok());
}

}  // namespace
}  // namespace skillet::npus::toy
