// Programs of the RK3576 from the tables of its specification, on the simulated chip: limits of their sizes, rows that
// one program keeps for the next, and a known error of the chip that is off by default.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "base/bytes.h"
#include "npus/rockchip/sim/device.h"
#include "npus/rockchip/sim/rk3576_runs.h"

namespace skillet::sim::rockchip {
namespace {

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
    const Words words = placed(words_of(Shape{.in_channels = row.channels,
                                              .out_channels = row.kernels,
                                              .in_height = 3,
                                              .in_width = 1,
                                              .kernel_height = row.size,
                                              .kernel_width = row.size}));
    const std::string problem = run({words}, 0x1D, {}).problem;
    if (row.fits) {
      EXPECT_EQ(problem, "");
    } else {
      EXPECT_NE(problem.find("SKILLET_SIM_WEIGHT_SLICES"), std::string::npos) << problem;
    }
    EXPECT_EQ(run({words}, 0x1D, {}, {.weight_slices = Enforce::off}).problem, "");
  }
}

// Unchanged sums between two limits, each in two registers with the same value.
TEST(Rk3576Words, LimitsAreThoseOfTheRegisters) {
  constexpr int kMost = 50, kZero = -20;
  const Shape shape{.in_height = 1, .in_width = 1, .kernel_height = 1, .kernel_width = 1};
  Words words = placed(words_of(shape));
  words[0x40AC] = static_cast<uint32_t>(kZero), words[0x40B0] = 1 << 14, words[0x40B4] = 14;
  words[0x4060] = 0x902, words[0x406C] = words[0x4074] = 0, words[0x4070] = words[0x4078] = kMost;
  const std::vector<uint8_t> input = {1};
  const Buffers buffers({words}, 0x1D, input);
  const Ran ran = run({words}, 0x1D, input);
  ASSERT_EQ(ran.problem, "");
  std::set<int> seen;
  for (size_t kernel = 0; kernel < 16; ++kernel) {
    const int sum = static_cast<int8_t>(buffers.weights[kernel * 16]), limited = std::clamp(sum, 0, kMost);
    EXPECT_EQ(static_cast<int8_t>(ran.out[kernel]), limited + kZero) << kernel;
    seen.insert(limited);
  }
  EXPECT_TRUE(seen.contains(0) && seen.contains(kMost) && seen.size() > 2);
  words[0x406C] = words[0x4074] = 1;
  const std::string other = run({words}, 0x1D, input).problem;
  EXPECT_NE(other.find("dpu.bn_min = 1: programs with limits have 0"), std::string::npos) << other;
}

// Rows with three atoms more than a multiple of four take the space of one more atom.
TEST(Rk3576Words, RowsTakeWholeUnits) {
  for (const uint32_t channels : {1U, 16U, 48U, 80U, 112U, 176U})
    EXPECT_EQ(run({placed(words_of(Shape{.in_channels = channels, .in_width = 9}))}, 0x1D, {}).problem, "") << channels;
}

TEST(Rk3576Words, WhatOverlapsInTheBufferIsNamed) {
  struct Row {
    uint32_t address, value;
    const char* named;
  };
  const Row rows[] = {{0x1040, 3U << 26, "weight_granule = 3072: not between the end of the data, bank 4, and bank 7"},
                      {0x1038, 4, "4 data banks up to 4, weights up to 4"},
                      {0x1018, 0x40000304, "cna.cbuf_window.window_granule = 0: the data ring begins at 1024"},
                      {0x1028, 17U << 16 | 15, "cna.data_size0.fetched_entries is not what 8 rows of 2 take"},
                      {0x103C, 3U << 16, "cna.row_size.row_entries = 2: a row needs 2"}};
  for (const Row& row : rows) {
    Words words = placed(words_of(Shape{}));
    EXPECT_EQ(run({words}, 0x1D, {}).problem, "");
    words[row.address] = row.value;
    const std::string problem = run({words}, 0x1D, {}).problem;
    EXPECT_NE(problem.find(row.named), std::string::npos) << problem;
  }
}

TEST(Rk3576Words, WhatIsMoreThanItsBanksHoldIsNamed) {
  Words rows = placed(words_of(Shape{.in_channels = 64, .in_height = 80, .in_width = 64}));
  EXPECT_EQ(run({rows}, 0x1D, {}).problem, "");
  rows[0x1018] = 0x40000404, rows[0x1040] = 4U << 26;  // one bank fewer
  const std::string tail = run({rows}, 0x1D, {}).problem;
  EXPECT_NE(tail.find("data_banks = 4: 80 rows take 5120 units"), std::string::npos) << tail;
  Words weights = placed(words_of(Shape{.in_channels = 512, .out_channels = 32, .in_height = 3, .in_width = 1}));
  EXPECT_EQ(run({weights}, 0x1D, {}).problem, "");
  weights[0x1018] = 0x40000606, weights[0x1040] = 6U << 26;  // one bank is left
  const std::string slice = run({weights}, 0x1D, {}).problem;
  EXPECT_NE(slice.find("a slice of 147456 bytes, weights have 65536"), std::string::npos) << slice;
}

// Ten rows, from the specification's words.
Words window(uint32_t top, uint32_t rows, uint32_t kept, uint32_t out_top, uint32_t out_rows, uint32_t granule,
             uint32_t columns = 8) {
  return placed(npus::rockchip::testing::window_words(top, rows, kept, out_top, out_rows, granule, columns));
}

TEST(Rk3576Words, RowsAreKeptForTheNextWindow) {
  std::vector<uint8_t> input(10 * 8 * 16);
  std::mt19937 random(9);
  for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
  const Ran whole = run({window(0, 10, 0, 0, 10, 0)}, 0x1D, input);
  ASSERT_EQ(whole.problem, "");
  const Words first = window(0, 6, 0, 0, 5, 0), second = window(4, 6, 2, 5, 5, 8);
  const Ran halves = run({first, second}, 0x1D, input);
  EXPECT_EQ(halves.problem, "");
  EXPECT_EQ(halves.out, whole.out);
  EXPECT_GT(std::set(whole.out.begin(), whole.out.begin() + 1280).size(), 100U);
  const std::string gone = run({second}, 0x1D, input).problem,
                    moved = run({first, window(4, 6, 2, 5, 5, 6)}, 0x1D, input).problem;
  EXPECT_NE(gone.find("the 2 rows there are not the last ones"), std::string::npos) << gone;
  EXPECT_NE(moved.find("the 2 rows there are not the last ones"), std::string::npos) << moved;
  // Rows fetched past the end of the banks wrap around to their start.
  std::vector<uint8_t> wide(10 * 2048 * 16);
  for (uint8_t& byte : wide) byte = static_cast<uint8_t>(random());
  Words rest = window(6, 4, 2, 7, 3, 3072, 2048);
  rest[0x1040] = 4U << 26;
  const Ran around = run({window(0, 8, 0, 0, 7, 0, 2048), rest}, 0x1D, wide);
  EXPECT_EQ(around.problem, "");
  EXPECT_EQ(around.out, run({window(0, 10, 0, 0, 10, 0, 2048)}, 0x1D, wide).out);
  Words wrong = second;
  wrong[0x1040] += 2;
  const std::string behind = run({first, wrong}, 0x1D, input).problem;
  EXPECT_NE(behind.find("fetch_granule = 14: 2 rows are kept from 8 on"), std::string::npos) << behind;
}

TEST(Rk3576Words, RowsOfAnotherJobAreNotKept) {
  const auto device = create_device("rk3576");
  Buffers buffers({window(0, 6, 0, 0, 5, 0), window(4, 6, 2, 5, 5, 8)}, 0x1D, std::vector<uint8_t>(10 * 8 * 16, 3));
  EXPECT_TRUE((*device)->run({.commands = std::span(buffers.tasks).first(1)}, buffers.memory).ok());
  const auto ran = (*device)->run({.commands = std::span(buffers.tasks).last(1)}, buffers.memory);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().message.find("the 2 rows there are not the last ones"), std::string::npos);
}

// A tensor that a convolution of one pixel adds to its sums: its bytes are those of the input, seven pixels further on.
Words adding(const Shape& shape) {
  Words words = placed(words_of(shape));
  words[0x407C] = 0x8002C0C0, words[0x4080] = 9, words[0x4084] = 2 << 16 | 45, words[0x40B0] = 0x10000 | 20000;
  words[0x40B4] = 23, words[0x5034] = 0x50000044, words[0x5038] = kInputAt + 7 * 16, words[0x5040] = words[0x401C];
  words[0x5044] = 0x40000018, words[0x504C] = words[0x506C] = words[0x40B8];
  return words;
}
int64_t rounded(int64_t value, unsigned shift) {  // halves to the even number
  const int64_t half = int64_t{1} << (shift - 1), below = value >> shift, rest = value - (below << shift);
  return below + (rest > half || (rest == half && below % 2 != 0) ? 1 : 0);
}

TEST(Rk3576Words, AConvolutionAddsATensor) {
  const Shape shape{.in_height = 2, .in_width = 2, .kernel_height = 1, .kernel_width = 1};
  std::vector<uint8_t> input(16 * 16);
  std::mt19937 random(9);
  for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
  const Words words = adding(shape);
  const Ran ran = run({words}, 0x1D, input);
  ASSERT_EQ(ran.problem, "");
  const Buffers buffers({words}, 0x1D, input);
  const auto signed_byte = [](uint8_t byte) { return int64_t{static_cast<int8_t>(byte)}; };
  for (size_t pixel = 0; pixel < 4; ++pixel) {
    for (size_t kernel = 0; kernel < 16; ++kernel) {
      int64_t sum = 0;
      for (size_t i = 0; i < 16; ++i)
        sum += signed_byte(input[pixel * 16 + i]) * signed_byte(buffers.weights[kernel * 16 + i]);
      const int64_t added = rounded((signed_byte(input[(pixel + 7) * 16 + kernel]) + 9) * 45, 2);
      const int64_t out = std::clamp<int64_t>(rounded((sum + added) * 20000, 23) + 7, -128, 127);
      ASSERT_EQ(signed_byte(ran.out[pixel * 16 + kernel]), out) << pixel << " " << kernel;
    }
  }
  Words wrong = words;
  wrong[0x506C] += 1;
  EXPECT_NE(run({wrong}, 0x1D, input).problem.find("dpu_rdma.ew_surf_notch"), std::string::npos);
  wrong = words, wrong[0x40B0] &= 0xFFFF;
  EXPECT_NE(run({wrong}, 0x1D, input).problem.find("dpu.out_cvt_scale.narrow"), std::string::npos);
}

// Addend, factor of the channel's sum of pixels, multiplier; shifts of both signs.
TEST(Rk3576Words, EachChannelHasItsOwnOperands) {
  Words words = placed(words_of(Shape{.in_height = 8, .in_width = 8, .kernel_height = 1, .kernel_width = 1}));
  words[0x40B0] = 20000, words[0x40B4] = 16;
  std::vector<uint8_t> input(16 * 64);
  std::mt19937 random(9);
  for (uint8_t& byte : input) byte = static_cast<uint8_t>(random() % 5 - 2);
  Buffers buffers({words}, 0x1D, input);
  int32_t a[16];
  int16_t b[16], c[16];
  for (size_t i = 0; i < 16; ++i) {
    a[i] = static_cast<int32_t>(random() % 512) - 256, b[i] = static_cast<int16_t>(random() % 255 - 127);
    c[i] = static_cast<int16_t>(i % 2 == 0 ? 1 + random() % 16384 : 12288);  // with halves
    uint8_t* const group = buffers.operands.data() + i / 8 * 64;
    store_le(group + i % 8 * 4, a[i]), store_le(group + 32 + i % 8 * 2, b[i]), store_le(group + 48 + i % 8 * 2, c[i]);
  }
  store_le(buffers.operands.data() + 0x80000, uint32_t{13 << 8 | 15});
  const auto npu = Npu::create("rk3576", Options{});
  const auto count = static_cast<uint32_t>(buffers.tasks[0].size_bytes / 8);
  const Task task{.regcmd = kCommandsAt, .regcmd_count = count, .first_of_job = true};
  ASSERT_TRUE((*npu)->run_task(0, task, buffers.memory).ok());
  const auto signed_byte = [](uint8_t byte) { return int64_t{static_cast<int8_t>(byte)}; };
  std::set<int64_t> seen;
  for (size_t at = 0; at < 16 * 64; ++at) {
    const size_t pixel = at / 16, kernel = at % 16;
    int64_t sum = a[kernel];
    for (size_t i = 0; i < 16; ++i)
      sum += signed_byte(input[pixel * 16 + i]) * (signed_byte(buffers.weights[kernel * 16 + i]) + b[kernel]);
    const int64_t product = rounded(sum * c[kernel], sum < 0 ? 13 : 15);
    const int64_t out = std::clamp<int64_t>(rounded(product * 20000, 16) + 7, -128, 127);
    ASSERT_EQ(signed_byte(buffers.out[at]), out) << pixel << " " << kernel;
    seen.insert(out);
  }
  EXPECT_GT(seen.size(), 20U);
}

TEST(Rk3576Words, AConvolutionsSumsBelow0HaveASlope) {
  const Shape shape{.in_height = 2, .in_width = 2, .kernel_height = 1, .kernel_width = 1};
  constexpr uint32_t kSlopeAt = 4096, kShift = 9;
  constexpr int16_t kFactor = 205;
  std::vector<uint8_t> input(kSlopeAt + 64);
  std::mt19937 random(9);
  for (size_t i = 0; i < kSlopeAt; ++i) input[i] = static_cast<uint8_t>(random());
  store_le(input.data() + kSlopeAt + 32, kFactor);
  store_le(input.data() + kSlopeAt + 48, kShift << 8);
  Words words = placed(words_of(shape));
  words[0x4060] = 0x402, words[0x5028] = 0x18, words[0x502C] = kInputAt + kSlopeAt;
  words[0x40AC] = 7, words[0x40B0] = 20000, words[0x40B4] = 23;
  const Ran ran = run({words}, 0x1D, input);
  ASSERT_EQ(ran.problem, "");
  const Buffers buffers({words}, 0x1D, input);
  const auto signed_byte = [](uint8_t byte) { return int64_t{static_cast<int8_t>(byte)}; };
  size_t below = 0;
  for (size_t pixel = 0; pixel < 4; ++pixel) {
    for (size_t kernel = 0; kernel < 16; ++kernel) {
      int64_t sum = 0;
      for (size_t i = 0; i < 16; ++i)
        sum += signed_byte(input[pixel * 16 + i]) * signed_byte(buffers.weights[kernel * 16 + i]);
      below += sum < 0;
      if (sum < 0) sum = rounded(sum * kFactor, kShift);
      ASSERT_EQ(signed_byte(ran.out[pixel * 16 + kernel]), std::clamp<int64_t>(rounded(sum * 20000, 23) + 7, -128, 127))
          << pixel << " " << kernel;
    }
  }
  EXPECT_GT(below, 10U);
}

// An average without pads may be divided by the taps of the window before.
TEST(Rk3576Words, AveragesMayDivideLate) {
  constexpr uint8_t kInput = 60;
  Words words = pool_words_of(Shape{.depthwise = true, .in_height = 4, .in_width = 4}, false);
  words[0x701C] = kInputAt, words[0x6070] = kOutputAt;
  for (const bool late : {false, true}) {
    const Ran ran = run({words}, 0x60, std::vector<uint8_t>(256, kInput), {.divides_late = late});
    ASSERT_EQ(ran.problem, "");
    EXPECT_EQ(ran.out[0], kInput);
    EXPECT_EQ(ran.out[16], late ? 90 : kInput);  // six taps, after four
    EXPECT_EQ(ran.out[32], kInput);
    EXPECT_EQ(ran.out[48], late ? 40 : kInput);  // four, after six
  }
}

// For averages: the pad value, and twice, three and four times this value.
TEST(Rk3576Words, AveragesHaveTheirPadValueFourTimes) {
  const Shape shape{.depthwise = true, .in_height = 4, .in_width = 4, .kernel_height = 1, .kernel_width = 1};
  Words words = pool_words_of(shape, false);
  words[0x701C] = kInputAt, words[0x6070] = kOutputAt;
  const std::vector<uint8_t> input(256, 60);
  const Ran ran = run({words}, 0x60, input);
  EXPECT_EQ(ran.problem, "");
  EXPECT_EQ(ran.out[0], 60);
  for (const uint32_t address : {0x6048U, 0x604CU, 0x6050U}) {
    Words wrong = words;
    wrong[address] = words[0x6044];
    const std::string problem = run({wrong}, 0x60, input).problem;
    EXPECT_NE(problem.find("= -3 after -3"), std::string::npos) << problem;
  }
}

// ---- bits

// Bits without an effect in these programs, with the reason.
struct Without {
  uint32_t address, bits;
  const char* why;
};
constexpr Without kWithout[] = {{0x1004, 0xFFFFFFFF, "which group of registers"},
                                {0x3004, 0xFFFFFFFF, "which group of registers"},
                                {0x4004, 0xFFFFFFFF, "which group of registers"},
                                {0x5004, 0xFFFFFFFF, "which group of registers"},
                                {0x6004, 0xFFFFFFFF, "which group of registers"},
                                {0x7004, 0xFFFFFFFF, "which group of registers"},
                                {0x1014, 1U << 28, "waits for the other core's half"},
                                {0x1018, 1U << 30, "set in all programs"},
                                {0x1038, 0x8000010F, "weights fit before several banks; core 1; later task"},
                                {0x1040, 0x0FFF0000, "weights fit from several places on"},
                                {0x1048, 0x0FFFFFF2, "of the converter, which is bypassed"},
                                {0x104C, 0xFFFFFFFF, "of the converter, which is bypassed"},
                                {0x1050, 0xFFFFFFFF, "of the converter, which is bypassed"},
                                {0x108C, 0x00080008, "lengths of bursts"},
                                {0x118C, 0xFFFFFFFF, "its meaning is not known"},
                                {0x400C, 1U << 30, "set in all programs"},
                                {0x40B0, 1, "too little for sums of a few channels"},
                                {0x40B4, 1U << 30, "no sum is in the middle of two outputs"},
                                {0x5018, 0xFFFFFFFF, "base of what is not read"},
                                {0x502C, 0xFFFFFFFF, "base of what is not read"},
                                {0x5038, 0xFFFFFFFF, "base of what is not read"},
                                {0x6024, 8, "maxima have no divisor"},
                                {0x6040, 0x6600, "pads that no window reads"},
                                {0x60DC, 0xF, "lengths of bursts"},
                                {0x1088, 0xFFFFFFFF, "base"},
                                {0x1110, 0xFFFFFFFF, "base"},
                                {0x4018, 0xFFFFFFFF, "base"},
                                {0x5020, 0xFFFFFFFF, "base"},
                                {0x5024, 0xFFFFFFFF, "base"},
                                {0x6070, 0xFFFFFFFF, "base"},
                                {0x701C, 0xFFFFFFFF, "base"}};

// Each flipped bit of a program must be a fault, or change the output.
std::string without_consequence(const Words& program, uint32_t enable) {
  constexpr size_t kSeen = 0x1000;
  std::vector<uint8_t> input(1 << 16);
  std::mt19937 random(9);
  for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
  Buffers buffers({program}, enable, input);
  const bool depthwise = program.contains(0x100C) && program.at(0x100C) != 0;
  for (size_t i = 0; depthwise && i < kSeen; ++i) buffers.operands[i] = i % 48 >= 32 && i % 2 == 0 ? 77 : 0;
  const auto npu = Npu::create("rk3576", Options{});
  std::string problem;
  const auto result = [&]() -> std::string {
    std::fill_n(buffers.out.begin(), kSeen, uint8_t{0x5A});
    const auto done = (*npu)->run_task(0,
                                       {.regcmd = kCommandsAt,
                                        .regcmd_count = static_cast<uint32_t>(buffers.tasks[0].size_bytes / 8),
                                        .first_of_job = true},
                                       buffers.memory);
    if (done.ok() && done->stall.empty()) return {buffers.out.begin(), buffers.out.begin() + kSeen};
    if (problem.empty()) problem = done.ok() ? done->stall : done.error().message;
    (*npu)->reset(0);
    return "";
  };
  const std::string right = result();
  EXPECT_NE(right, "") << problem;
  std::string without;
  size_t at = 0;
  for (const auto& [address, value] : program) {
    const auto word = load_le<uint64_t>(buffers.commands.data() + at);
    uint32_t bits = 0;
    const auto* const known = std::ranges::find(kWithout, address, &Without::address);
    const uint32_t left = known == std::end(kWithout) ? UINT32_MAX : ~known->bits;
    for (int bit = 0; bit < 32; ++bit) {
      if ((left >> bit & 1) == 0) continue;
      store_le(buffers.commands.data() + at, word ^ uint64_t{1} << (16 + bit));
      if (result() == right) bits |= 1U << bit;
    }
    if (bits != 0) without += fmt::format("{:x}: {:x}\n", address, bits);
    store_le(buffers.commands.data() + at, word);
    at += 8;
  }
  return without;
}

TEST(Rk3576Words, EachBitHasAConsequence) {
  const Shape direct{.in_channels = 40, .out_channels = 24, .in_height = 7, .in_width = 5, .stride_y = 2};
  Shape depthwise = direct;
  depthwise.depthwise = true, depthwise.limit = Shape::Limit::relu6;
  for (const Shape& shape : {direct, depthwise}) {
    Words words = placed(words_of(shape));
    words[0x40B4] = 24;  // sums / 1024
    if (shape.depthwise) words[0x40B4] = 29, words[0x4070] = words[0x4078] = 500000;
    EXPECT_EQ(without_consequence(words, 0x1D), "");
  }
  EXPECT_EQ(without_consequence(adding(direct), 0x1D), "");
  for (const bool maximum : {false, true}) {
    Words words = pool_words_of(depthwise, maximum);
    words[0x701C] = kInputAt, words[0x6070] = kOutputAt;
    EXPECT_EQ(without_consequence(words, 0x60), "");
  }
}

// ---- errata

constexpr size_t kPlaneBytes = 16 * 4;  // of a surface of three pixels

TEST(Rk3576Words, TheLastGroupOfTooManyWeightsMayBeLost) {
  const Shape shape{.in_channels = 560, .out_channels = 64, .in_height = 3, .in_width = 1};
  const Words words = placed(words_of(shape));
  const std::vector<uint8_t> input(560 * 4, 3);
  const Ran right = run({words}, 0x1D, input, {.weight_slices = Enforce::off});
  const Ran lost = run({words}, 0x1D, input, {.loses_groups = true});
  EXPECT_EQ(lost.problem, "");
  constexpr auto kFirst = static_cast<std::ptrdiff_t>(2 * kPlaneBytes);  // 32 channels
  EXPECT_TRUE(std::equal(right.out.begin(), right.out.begin() + kFirst, lost.out.begin()));
  EXPECT_FALSE(std::equal(right.out.begin() + kFirst, right.out.begin() + 2 * kFirst, lost.out.begin() + kFirst));
  const Words small = placed(words_of(Shape{}));
  EXPECT_EQ(run({small}, 0x1D, input, {.loses_groups = true}).out, run({small}, 0x1D, input).out);
}

TEST(Rk3576Words, JobsAtOnceMaySpoilWeights) {
  const Words words = placed(words_of(Shape{}));
  const std::vector<uint8_t> input(1024, 3);
  const Ran spoiled = run({words}, 0x1D, input, {.loses_weights_at_once = true});
  EXPECT_EQ(spoiled.problem, "");
  EXPECT_NE(spoiled.out, run({words}, 0x1D, input).out);
}

TEST(Rk3576Words, AWideOutputMayPoisonWhatFollows) {
  const Words words = placed(words_of(Shape{}));
  Words wide = words;
  wide[0x4010] = 5U << 29;
  const std::vector<uint8_t> input(1024, 3);
  EXPECT_NE(run({wide}, 0x1D, input).problem.find("dpu.data_format"), std::string::npos);
  const Ran ran = run({wide, words, words}, 0x1D, input, {.wide_output_poisons = true});
  EXPECT_NE(ran.problem.find("wider than a byte"), std::string::npos) << ran.problem;
  EXPECT_EQ(std::set(ran.out.begin(), ran.out.end()), std::set<uint8_t>{0x5A});
  EXPECT_EQ(run({words}, 0x1D, input, {.wide_output_poisons = true}).out, run({words}, 0x1D, input).out);
}

}  // namespace
}  // namespace skillet::sim::rockchip
