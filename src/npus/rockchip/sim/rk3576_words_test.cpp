// Programs of the RK3576 by the tables of its specification, on the simulated chip: what they may not have too much of,
// rows that one leaves for the next, and a known error of the chip that is off by default.
#include "npus/rockchip/hw/testing/rk3576_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "base/bytes.h"
#include "npus/rockchip/sim/device.h"

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

// Weights are random, sums are not multiplied.
struct Buffers {
  std::vector<uint8_t> commands, in, weights, operands, out;
  std::vector<Commands> tasks;
  Memory memory;

  Buffers(const std::vector<Words>& programs, uint32_t enable, const std::vector<uint8_t>& input) : in(input) {
    constexpr size_t kSmall = 1 << 20, kLarge = 8 << 20, kGroup = 64, kMultipliersAt = 48;
    constexpr uint32_t kTaskBytes = 0x1000;
    commands.resize(programs.size() * kTaskBytes), in.resize(kSmall), weights.resize(kLarge), operands.resize(kSmall);
    out.resize(kSmall, 0x5A);
    std::mt19937 random(7);
    for (size_t i = 0; i < kSmall; ++i) weights[i] = static_cast<uint8_t>(random());
    for (size_t i = 0; i < kSmall; i += 2) operands[i] = i % kGroup >= kMultipliersAt ? 1 : 0;
    for (const Words& program : programs) add(program, enable, tasks.size() * kTaskBytes);
    const auto map = [&](uint64_t at, std::vector<uint8_t>& bytes) {
      EXPECT_TRUE(memory.map(at, bytes, "buffer").ok());
    };
    map(kCommandsAt, commands), map(kInputAt, in), map(kWeightsAt, weights), map(kOperandsAt, operands);
    map(kOutputAt, out);
  }

 private:
  void add(const Words& program, uint32_t enable, size_t at) {
    constexpr uint64_t kTargets[] = {0, 0x0201, 0, 0x0801, 0x1001, 0x2001, 0x4001, 0x8001};
    std::vector<uint64_t> words;
    for (const auto& [address, value] : program)
      words.push_back(kTargets[address >> 12] << 48 | uint64_t{value} << 16 | address);
    words.insert(words.end(), {0, uint64_t{0x0101} << 48 | 0x0014, uint64_t{0x0041} << 48,
                               uint64_t{0x0081} << 48 | uint64_t{enable} << 16 | 0x0008});
    for (size_t w = 0; w < words.size(); ++w) store_le(commands.data() + at + w * 8, words[w]);
    tasks.push_back({.bytes = {}, .address = kCommandsAt + at, .size_bytes = words.size() * 8});
  }
};

// One task after the other, with a reset after one that never ends.
Ran run(const std::vector<Words>& programs, uint32_t enable, const std::vector<uint8_t>& input,
        const Options& options = {}) {
  Buffers buffers(programs, enable, input);
  const auto npu = Npu::create("rk3576", options);
  std::string problem;
  for (const Commands& task : buffers.tasks) {
    const auto done = (*npu)->run_task(0,
                                       {.regcmd = task.address,
                                        .regcmd_count = static_cast<uint32_t>(task.size_bytes / 8),
                                        .first_of_job = &task == buffers.tasks.data(),
                                        .loses_weights = options.loses_weights_at_once},
                                       buffers.memory);
    if (problem.empty()) problem = done.ok() ? done->stall : done.error().message;
    if (done.ok() && !done->stall.empty()) (*npu)->reset(0);
  }
  return {std::move(buffers.out), problem};
}

Words placed(Words words) {
  words[0x1088] = kInputAt, words[0x1110] = kWeightsAt, words[0x4018] = kOutputAt;
  words[0x5020] = kOperandsAt, words[0x5024] = kOperandsAt + 0x80000;
  return words;
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
    const Words words = placed(words_of(Shape{.in_channels = row.channels,
                                              .out_channels = row.kernels,
                                              .in_height = 3,
                                              .in_width = 1,
                                              .kernel_height = row.size,
                                              .kernel_width = row.size}));
    const std::string problem = run({words}, 0x1D, {}).problem;
    if (row.fits)
      EXPECT_EQ(problem, "");
    else
      EXPECT_NE(problem.find("SKILLET_SIM_WEIGHT_SLICES"), std::string::npos) << problem;
    EXPECT_EQ(run({words}, 0x1D, {}, {.weight_slices = Enforce::off}).problem, "");
  }
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
  rows[0x1018] = 0x40000404, rows[0x1040] = 4U << 26;  // a bank less
  const std::string tail = run({rows}, 0x1D, {}).problem;
  EXPECT_NE(tail.find("data_banks = 4: 80 rows take 5120 units"), std::string::npos) << tail;
  Words weights = placed(words_of(Shape{.in_channels = 512, .out_channels = 32, .in_height = 3, .in_width = 1}));
  EXPECT_EQ(run({weights}, 0x1D, {}).problem, "");
  weights[0x1018] = 0x40000606, weights[0x1040] = 6U << 26;  // one bank is left
  const std::string slice = run({weights}, 0x1D, {}).problem;
  EXPECT_NE(slice.find("a slice of 147456 bytes, weights have 65536"), std::string::npos) << slice;
}

// Ten rows of 16 channels, a filter of 3x3, four data banks for rows that fit.
Words window(uint32_t top, uint32_t rows, uint32_t kept, uint32_t out_top, uint32_t out_rows, uint32_t granule,
             uint32_t columns = 8) {
  constexpr uint32_t kAll = 10, kBanksUnits = 4096;
  const uint32_t units = columns / 4, row = 16 * columns, pitch = kAll * columns, last = columns - 1;
  Words words = placed(words_of(Shape{.in_height = kAll, .in_width = columns}));
  const uint32_t keeps = kept > 0 ? 1U << 31 : 0, fetched = rows - kept, bottom = top + rows == kAll ? 1 : 0;
  if (units * rows <= kBanksUnits) words[0x1018] = 0x40000404, words[0x1040] = 4U << 26;
  words[0x1018] |= keeps, words[0x1038] |= keeps;
  words[0x1028] = units * fetched << 16 | 15, words[0x102C] = last << 16 | (rows - 1);
  words[0x1034] = columns * out_rows - 1, words[0x103C] = units << 16 | granule;
  words[0x1040] |= granule + kept * units, words[0x1078] = last << 16 | (fetched - 1);
  words[0x1080] = 0x01000100 | bottom << 16 | (top == 0 ? 1 : 0);
  words[0x1088] += row * (top + kept), words[0x1098] = columns * fetched;
  words[0x301C] = words[0x4034] = (out_rows - 1) << 16 | last, words[0x4024] = words[0x5010] = out_rows - 1;
  words[0x40B4] = 24;  // sums / 1024
  words[0x4018] += row * out_top, words[0x40B8] = 2 * pitch - columns * out_rows;
  return words;
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
  // Rows that are fetched behind the end of the banks are at their start.
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

// A tensor that a convolution of one pixel adds behind its sums: its bytes are those of the input, seven pixels on.
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

// ---- bits

// Bits without a consequence in the programs here, with the reason.
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

// Of a program each bit that is flipped is a fault, or gives another output.
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

// Of a kernel that writes TASK_CON as for the RK3588 the first job computes, and no other one.
TEST(Rk3576Words, OnlyTheFirstJobOfAWrongKernelWrites) {
  const auto device = create_device("rk3576", {.stock_task_con = true});
  ASSERT_TRUE(device.ok());
  Buffers buffers({placed(words_of(Shape{}))}, 0x1D, std::vector<uint8_t>(1024, 3));
  const std::vector<uint8_t> untouched = buffers.out;
  for (const bool writes : {true, false, false}) {
    buffers.out = untouched;
    EXPECT_TRUE((*device)->run({.commands = buffers.tasks}, buffers.memory).ok());
    EXPECT_EQ(buffers.out != untouched, writes);
  }
}

// Jobs of both cores, one after the other on each, until two meet.
std::string run_on_both_cores(const Options& options) {
  const auto device = create_device("rk3576", options);
  std::atomic<int> spoiled = 0;
  std::string problem;
  const Words words = placed(words_of(Shape{.in_channels = 64, .out_channels = 64, .in_height = 24, .in_width = 24}));
  const std::vector<uint8_t> input(64 * 24 * 24, 3), right = run({words}, 0x1D, input).out;
  const auto run_on = [&](uint32_t core, std::string& what) {
    constexpr int kTries = 2000;
    Buffers buffers({words}, 0x1D, input);
    for (int i = 0; i < kTries && spoiled == 0; ++i) {
      const auto ran = (*device)->run({.commands = buffers.tasks, .core = core}, buffers.memory);
      if (!ran.ok()) what = ran.error().message;
      if (!ran.ok() || buffers.out != right) ++spoiled;
    }
  };
  std::string other;
  std::thread thread([&] { run_on(1, other); });
  run_on(0, problem);
  thread.join();
  EXPECT_GT(spoiled, 0);
  return problem + other;
}
TEST(Rk3576Words, JobsOfBothCoresMeet) {
  EXPECT_NE(run_on_both_cores({}).find("while another core has one"), std::string::npos);
  EXPECT_EQ(run_on_both_cores({.loses_weights_at_once = true}), "");
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
