// Programs of the RK3576 against the tables of its specification (sections 3, 5, 6), with numbers of our own.
#include <gtest/gtest.h>

#include <map>

#include "base/bytes.h"
#include "npu/driver.h"

namespace skillet::npus::rockchip {

const npu::Driver& driver();

namespace {

constexpr size_t kWordBytes = 8;

std::string conv_text(int rows, int columns, int in, int out) {
  return fmt::format(R"(graph ""
tensor 0 "in" int8 1x{0}x{1}x{2} scale=0.5 zero=-3
tensor 1 "w" int8 {3}x3x3x{2} scale=0.25 zero=0 const=zeros:{4}
tensor 2 "b" int32 {3} scale=0.125 zero=0 const=zeros:{5}
tensor 3 "out" int8 1x{0}x{1}x{3} scale=2 zero=7
inputs 0
outputs 3
op 0 CONV_2D in=[0 1 2] out=[3] activation=relu
)",
                     rows, columns, in, out, out * 9 * in, out * 4);
}

struct Compiled {
  std::vector<std::map<uint32_t, uint32_t>> tasks;  // registers by address
  std::vector<size_t> words;                        // without the trailer
};
Compiled compile(const std::string& text, npu::CompileOptions options) {
  Compiled out;
  const auto graph = ir::parse(text);
  EXPECT_TRUE(graph.ok());
  const auto program = driver().compile(npu::find_chip("rk3576").value(), *graph, options);
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().message);
  for (const npu::Job& job : program->jobs) {
    for (const npu::ByteRange& range : job.commands) {
      const uint8_t* const bytes = program->buffers[range.buffer].contents.data() + range.offset_bytes;
      auto& task = out.tasks.emplace_back();
      out.words.push_back(range.size_bytes / kWordBytes - 4);
      for (size_t i = 0; i < out.words.back(); ++i) {
        const auto word = load_le<uint64_t>(bytes + i * kWordBytes);
        task[static_cast<uint32_t>(word & 0xFFFF)] = static_cast<uint32_t>(word >> 16);
      }
    }
  }
  return out;
}

// 10x12, 48 channels to 24: three atoms count as four, no group is filled up.
TEST(Rk3576, RecordedWordsAreThoseOfTheTables) {
  const Compiled one = compile(conv_text(10, 12, 48, 24), {.tuning = npu::Tuning::recorded});
  ASSERT_EQ(one.tasks.size(), 1U);
  EXPECT_EQ(one.words[0], 139U);
  const std::pair<uint32_t, uint32_t> kRows[] = {{0x1018, 0x40000404},
                                                 {0x1038, 7},
                                                 {0x1040, 0x10000000},
                                                 {0x101C, 48 * 9 * 24},
                                                 {0x1020, 48 * 9},
                                                 {0x1024, 0x02020017},
                                                 {0x1028, 120 << 16 | 47},
                                                 {0x102C, 0x000B0009},
                                                 {0x1030, 864 << 16 | 11},
                                                 {0x1034, 119},
                                                 {0x103C, 12 << 16},
                                                 {0x1044, 12 << 16 | 12},
                                                 {0x1078, 0x000B0009},
                                                 {0x107C, 47},
                                                 {0x1080, 0x01010101},
                                                 {0x1084, 0xFFFFFFFD},
                                                 {0x1090, 48},
                                                 {0x1094, 120},
                                                 {0x1098, 120},
                                                 {0x301C, 0x0009000B},
                                                 {0x3020, 23},
                                                 {0x401C, 120},
                                                 {0x4030, 0x00170710},
                                                 {0x4050, 0x80011111},
                                                 {0x4060, 0x902},
                                                 {0x406C, 0},
                                                 {0x4070, 0x7FFFFFFF},
                                                 {0x40AC, 7},
                                                 {0x40B0, 0x4000},
                                                 {0x40B4, 18},
                                                 {0x40B8, 120},
                                                 {0x501C, 0x710}};
  for (const auto& [address, value] : kRows) EXPECT_EQ(one.tasks[0].at(address), value) << std::hex << address;
}

TEST(Rk3576, ProgramsOfTheOtherCoreAndOfHalves) {
  const Compiled second =
      compile(conv_text(10, 12, 32, 32), {.tuning = npu::Tuning::recorded, .switches = {"second_core"}});
  EXPECT_EQ(second.tasks.at(0).at(0x1018), 0x4000040BU);
  EXPECT_EQ(second.tasks.at(0).at(0x1038), 0x10EU);
  EXPECT_EQ(second.tasks.at(0).at(0x1040), 0x2C001C00U);
  const Compiled halves =
      compile(conv_text(10, 12, 32, 32), {.tuning = npu::Tuning::recorded, .switches = {"two_halves"}});
  ASSERT_EQ(halves.tasks.size(), 2U);
  EXPECT_EQ(halves.words[0], 138U);
  EXPECT_EQ(halves.tasks[1].at(0x1040), 0x30001800U);
  EXPECT_EQ(halves.tasks[1].at(0x1038), 0x80000010U);
  // An odd number of rows is halved otherwise, with a dummy program behind each.
  const Compiled odd = compile(conv_text(9, 12, 32, 32), {.tuning = npu::Tuning::recorded, .switches = {"two_halves"}});
  ASSERT_EQ(odd.tasks.size(), 4U);
  EXPECT_EQ(odd.tasks[1].at(0x1038), 0xC0000007U);
  EXPECT_EQ(odd.tasks[2].at(0x1038), 0xEU);
}

// Channels are programmed whole, surfaces begin at multiples of four pixels.
TEST(Rk3576, ProvenProgramsHaveWholeGroups) {
  const Compiled one = compile(conv_text(5, 5, 20, 40), {});
  EXPECT_EQ(one.tasks.at(0).at(0x107C), 31U);
  EXPECT_EQ(one.tasks.at(0).at(0x3020), 63U);
  EXPECT_EQ(one.tasks.at(0).at(0x401C), 28U);
}

// What the chip has not is refused with its limit.
TEST(Rk3576, RefusesWithAReason) {
  const npu::Chip chip = npu::find_chip("rk3576").value();
  const auto reason = [&](std::string text) {
    const auto graph = ir::parse(text);
    EXPECT_TRUE(graph.ok());
    const npu::Support support = driver().supports(chip, *graph, 0);
    EXPECT_FALSE(support.ok);
    return support.reason;
  };
  EXPECT_NE(reason(conv_text(8, 8, 640, 32)).find("the chip keeps 175"), std::string::npos);
  std::string dilated = conv_text(8, 8, 32, 32);
  dilated.replace(dilated.find("activation=relu"), 15, "dilation_h=2 dilation_w=2");
  EXPECT_NE(reason(dilated).find("dilations of 2 and 2"), std::string::npos);
}

}  // namespace
}  // namespace skillet::npus::rockchip
