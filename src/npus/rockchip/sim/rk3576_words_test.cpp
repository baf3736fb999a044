// Programs of the RK3576 by the tables of its specification, on the simulated chip: what they may not have too much of,
// and a known error of the chip that is off by default.
#include "npus/rockchip/hw/testing/rk3576_words.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "npus/rockchip/sim/npu.h"

namespace skillet::sim::rockchip {
namespace {

using npus::rockchip::testing::Shape;
using Words = std::map<uint32_t, uint32_t>;

constexpr uint32_t kCommandsAt = 0x100000, kInputAt = 0x1000000, kWeightsAt = 0x2000000, kOperandsAt = 0x3000000,
                   kOutputAt = 0x4000000;

struct Ran {
  std::vector<uint8_t> out;
  std::string problem;
};

// With inputs of one value, weights of 0, multipliers of 1.
Ran run(const Words& registers, uint32_t enable, uint8_t input, const Options& options) {
  constexpr size_t kSmall = 1 << 20, kLarge = 8 << 20;
  const auto target = [](uint32_t address) {
    constexpr uint64_t kTargets[] = {0, 0x0201, 0, 0x0801, 0x1001, 0x2001, 0x4001, 0x8001};
    return kTargets[address >> 12];
  };
  std::vector<uint64_t> words;
  for (const auto& [address, value] : registers)
    words.push_back(target(address) << 48 | uint64_t{value} << 16 | address);
  words.insert(words.end(), {0, uint64_t{0x0101} << 48 | 0x0014, uint64_t{0x0041} << 48,
                             uint64_t{0x0081} << 48 | uint64_t{enable} << 16 | 0x0008});
  std::vector<uint8_t> commands((words.size() * 8 + 15) / 16 * 16), in(kSmall, input), weights(kLarge),
      operands(kSmall, 1);
  for (size_t i = 0; i < words.size(); ++i) store_le(commands.data() + i * 8, words[i]);
  Ran ran{std::vector<uint8_t>(kSmall, 0x5A), ""};
  Memory memory;
  const auto map = [&](uint64_t at, std::vector<uint8_t>& bytes) { EXPECT_TRUE(memory.map(at, bytes, "buffer").ok()); };
  map(kCommandsAt, commands), map(kInputAt, in), map(kWeightsAt, weights), map(kOperandsAt, operands);
  map(kOutputAt, ran.out);
  const auto npu = Npu::create("rk3576", options);
  const auto done =
      (*npu)->run_task(0, {.regcmd = kCommandsAt, .regcmd_count = static_cast<uint32_t>(words.size())}, memory);
  ran.problem = done.ok() ? done->stall : done.error().message;
  return ran;
}

TEST(Rk3576Words, MoreWeightsThanBoardsWereSeenToComputeAreAFault) {
  struct Row {
    uint32_t kernels, channels, size;
    bool fits;
  };
  const Row rows[] = {{32, 608, 3, true},  {32, 640, 3, false},  {64, 544, 3, true},    {64, 560, 3, false},
                      {96, 512, 3, true},  {96, 528, 3, false},  {128, 512, 3, true},   {128, 520, 3, false},
                      {2944, 16, 1, true}, {2976, 16, 1, false}, {1536, 4096, 1, true}, {1568, 4096, 1, false}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.kernels * 10000 + row.channels);
    Words words = words_of(Shape{.in_channels = row.channels,
                                 .out_channels = row.kernels,
                                 .in_height = 3,
                                 .in_width = 1,
                                 .kernel_height = row.size,
                                 .kernel_width = row.size});
    words[0x1088] = kInputAt, words[0x1110] = kWeightsAt, words[0x4018] = kOutputAt;
    words[0x5020] = kOperandsAt, words[0x5024] = kOperandsAt + 0x80000;
    const std::string problem = run(words, 0x1D, 3, {}).problem;
    if (row.fits)
      EXPECT_EQ(problem, "");
    else
      EXPECT_NE(problem.find("SKILLET_SIM_WEIGHT_SLICES"), std::string::npos) << problem;
    EXPECT_EQ(run(words, 0x1D, 3, {.weight_slices = Enforce::off}).problem, "");
  }
}

// An average without pads may be divided by the taps of the window before.
TEST(Rk3576Words, AveragesMayDivideLate) {
  constexpr uint8_t kInput = 60;
  Words words = pool_words_of(Shape{.depthwise = true, .in_height = 4, .in_width = 4}, false);
  words[0x701C] = kInputAt, words[0x6070] = kOutputAt;
  for (const bool late : {false, true}) {
    const Ran ran = run(words, 0x60, kInput, {.divides_late = late});
    ASSERT_EQ(ran.problem, "");
    EXPECT_EQ(ran.out[0], kInput);
    EXPECT_EQ(ran.out[16], late ? 90 : kInput);  // six taps, after four
    EXPECT_EQ(ran.out[32], kInput);
    EXPECT_EQ(ran.out[48], late ? 40 : kInput);  // four, after six
  }
}

}  // namespace
}  // namespace skillet::sim::rockchip
