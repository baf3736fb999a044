// Programs of the RK3576's DPU alone that add or multiply two tensors, look one up or give it a slope: words from the
// specification (section 9) with our own numbers, compared with its formula.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/bytes.h"
#include "base/int_math.h"
#include "npus/rockchip/sim/npu.h"

namespace skillet::sim::rockchip {
namespace {

constexpr uint64_t kCommandsAt = 0x100000, kMainAt = 0x200000, kSecondAt = 0x300000, kTensorAt = 0x400000,
                   kOutputAt = 0x500000, kSlopeAt = 0x600000;

struct Sum {
  uint32_t width = 5, height = 3, channels = 20;
  int32_t main_zero = -7, other_zero = 12, out_zero = 3;
  int32_t main_factor = 16384, other_factor = 30001, out_factor = 22222;
  uint32_t main_shift = 1, other_shift = 3, out_shift = 28;
  std::map<uint32_t, uint32_t> others = {};  // registers with other values
  uint32_t more_below = 0;                   // additional shift of products below zero
  int32_t slope_factor = 1;                  // of values below zero
  uint32_t slope_shift = 0;
  bool loads_tables = false;  // first, with v as entry v of both tables

  uint32_t pixels() const { return width * height; }
  uint32_t pitch() const { return (pixels() + 3) / 4 * 4; }
  size_t cube() const { return size_t{pitch()} * 16 * ((channels + 15) / 16); }
};

constexpr uint32_t u(int32_t value) { return static_cast<uint32_t>(value); }

std::map<uint32_t, uint32_t> registers_of(const Sum& s) {
  const uint32_t columns = s.width - 1, rows = s.height - 1, lanes = s.channels - 1;
  std::map<uint32_t, uint32_t> out = {{0x4004, 0xE},
                                      {0x5004, 0xE},
                                      {0x400C, 5},
                                      {0x4018, u(kOutputAt)},
                                      {0x401C, s.pitch()},
                                      {0x4020, columns},
                                      {0x4024, rows},
                                      {0x402C, lanes},
                                      {0x4030, lanes << 16 | 0xF00},
                                      {0x4034, rows << 16 | columns},
                                      {0x4038, 0x00100012},
                                      {0x4060, 0x903},
                                      {0x407C, 0x8002C0C0},
                                      {0x4080, u(-s.other_zero)},
                                      {0x4084, s.other_shift << 16 | (u(s.other_factor) & 0xFFFF)},
                                      {0x40AC, u(s.out_zero)},
                                      {0x40B0, 0x10000 | u(s.out_factor)},
                                      {0x40B4, s.out_shift},
                                      {0x40C0, 0x04440000},
                                      {0x40D0, 0x0040FFFF},
                                      {0x500C, columns},
                                      {0x5010, rows},
                                      {0x5014, lanes},
                                      {0x5018, u(kMainAt)},
                                      {0x501C, 0x1A},
                                      {0x5020, u(kTensorAt)},
                                      {0x5034, 0x40000044},
                                      {0x5038, u(kSecondAt)},
                                      {0x5040, s.pitch()},
                                      {0x5044, 9}};
  for (const uint32_t least : {0x4048, 0x4058, 0x406C, 0x4074, 0x4088, 0x40A4}) {
    out[least] = u(INT32_MIN);
    out[least + 4] = u(INT32_MAX);
  }
  constexpr uint32_t kZeros[] = {0x4010, 0x4014, 0x4028, 0x403C, 0x4044, 0x4050, 0x4090, 0x4094, 0x409C, 0x40B8,
                                 0x40BC, 0x40C8, 0x40CC, 0x4100, 0x4104, 0x4108, 0x410C, 0x4110, 0x4114, 0x4118,
                                 0x411C, 0x4120, 0x4130, 0x4140, 0x4144, 0x4148, 0x414C, 0x4150, 0x4154, 0x4160,
                                 0x4170, 0x4174, 0x4184, 0x4188, 0x418C, 0x4190, 0x4194, 0x5024, 0x5028, 0x502C,
                                 0x5030, 0x5048, 0x504C, 0x5064, 0x506C, 0x5078, 0x507C};
  for (const uint32_t zero : kZeros) out[zero] = 0;
  for (const auto& [address, value] : s.others) out[address] = value;
  return out;
}

struct Ran {
  std::vector<uint8_t> main, second, out;
  std::string problem;
};

Ran run(const Sum& s) {
  constexpr uint64_t kDpu = 0x1001, kDpuRdma = 0x2001;
  std::vector<uint64_t> words;
  const auto put = [&](uint32_t address, uint32_t value) {
    words.push_back((address < 0x5000 ? kDpu : kDpuRdma) << 48 | uint64_t{value} << 16 | address);
  };
  if (s.loads_tables) put(0x4004, 0xE);
  for (int32_t table = 0; s.loads_tables && table < 2; ++table) {
    put(0x4100, table == 0 ? 0x20000 : 0x30000);
    for (int32_t i = 0; i < 513; ++i) put(0x4104, u((table - 1) * 16384 + i * 32));
  }
  for (const auto& [address, value] : registers_of(s)) put(address, value);
  words.insert(words.end(), {0, uint64_t{0x0101} << 48 | 0x0014, uint64_t{0x0041} << 48,
                             uint64_t{0x0081} << 48 | uint64_t{0x18} << 16 | 0x0008});
  std::vector<uint8_t> commands(align_up(words.size() * 8, size_t{16}));
  for (size_t i = 0; i < words.size(); ++i) store_le(commands.data() + i * 8, words[i]);
  std::mt19937 random(5);
  Ran ran{std::vector<uint8_t>(s.cube()), std::vector<uint8_t>(s.cube()), std::vector<uint8_t>(s.cube(), 0x5A), ""};
  for (auto* bytes : {&ran.main, &ran.second})
    for (uint8_t& byte : *bytes) byte = static_cast<uint8_t>(random());
  std::vector<uint8_t> tensor(64);
  store_le(tensor.data(), -s.main_zero);
  store_le(tensor.data() + 16, -s.main_zero);
  store_le(tensor.data() + 32, static_cast<int16_t>(s.main_factor));
  store_le(tensor.data() + 48, (s.main_shift + s.more_below) << 8 | s.main_shift);
  std::vector<uint8_t> slope(64);
  store_le(slope.data(), 99);  // no addend of a slope is read
  store_le(slope.data() + 32, static_cast<int16_t>(s.slope_factor));
  store_le(slope.data() + 48, s.slope_shift << 8 | 9);
  Memory memory;
  const auto map = [&](uint64_t at, std::vector<uint8_t>& bytes) { EXPECT_TRUE(memory.map(at, bytes, "buffer").ok()); };
  map(kCommandsAt, commands), map(kMainAt, ran.main), map(kSecondAt, ran.second), map(kTensorAt, tensor);
  map(kOutputAt, ran.out), map(kSlopeAt, slope);
  auto npu = Npu::create("rk3576");
  const auto done =
      (*npu)->run_task(0, {.regcmd = kCommandsAt, .regcmd_count = static_cast<uint32_t>(words.size())}, memory);
  ran.problem = done.ok() ? done->stall : done.error().message;
  return ran;
}

int64_t rounded(int64_t value, uint32_t shift) {  // halves to the even number
  if (shift == 0) return value;
  const int64_t half = int64_t{1} << (shift - 1), below = value >> shift, rest = value - (below << shift);
  return below + (rest > half || (rest == half && below % 2 != 0) ? 1 : 0);
}

TEST(Rk3576Sum, IsThatOfTheFormula) {
  const Sum rows[] = {
      {},
      {.width = 1, .height = 1, .channels = 16},
      {.more_below = 3},
      {.width = 16, .height = 16, .channels = 48, .other_factor = -32764, .other_shift = 1},
      {.width = 7, .height = 4, .channels = 112, .main_factor = 16386, .main_shift = 6, .out_shift = 24},
      {.main_zero = 127, .other_zero = -128, .out_zero = -128, .main_shift = 0, .other_shift = 0, .out_shift = 31}};
  for (const Sum& s : rows) {
    SCOPED_TRACE(s.channels);
    const Ran ran = run(s);
    ASSERT_EQ(ran.problem, "");
    size_t distinct = 0;
    for (uint32_t lane = 0; lane < (s.channels + 15) / 16 * 16; ++lane) {
      for (uint32_t pixel = 0; pixel < s.pixels(); ++pixel) {
        const size_t at = size_t{lane / 16} * s.pitch() * 16 + size_t{pixel} * 16 + lane % 16;
        const int64_t product = (int64_t{static_cast<int8_t>(ran.main[at])} - s.main_zero) * s.main_factor;
        const int64_t x = rounded(product, s.main_shift + (product < 0 ? s.more_below : 0));
        const int64_t v =
            rounded((int64_t{static_cast<int8_t>(ran.second[at])} - s.other_zero) * s.other_factor, s.other_shift);
        const int64_t y = std::clamp<int64_t>(rounded((x + v) * s.out_factor, s.out_shift) + s.out_zero, -128, 127);
        ASSERT_EQ(static_cast<int8_t>(ran.out[at]), y) << lane << " " << pixel;
        distinct += y != s.out_zero;
      }
    }
    EXPECT_GT(distinct, 0U);
  }
}

// The tensor is multiplied by an operand in memory. Outside the tables, whose last entries are +-16384, values continue
// from other numbers with a slope.
constexpr uint32_t kBelow = 0xC200, kAbove = 0x3D00;
Sum lookup() {
  Sum s{.main_zero = 11, .main_factor = 16384, .out_factor = 20000, .main_shift = 6, .out_shift = 22};
  const uint32_t low = kBelow, high = kAbove;
  s.loads_tables = true;
  s.others = {{0x4004, 0x30},       {0x5004, 0x30},
              {0x4038, 0x53},       {0x4044, 2},
              {0x4050, 0x20000},    {0x4060, 0x20},
              {0x407C, 0x01004140}, {0x4080, 0},
              {0x4084, 1},          {0x40CC, 0x10},
              {0x4108, 0x02000006}, {0x410C, 0x00050500},
              {0x4110, u(-16384)},  {0x4114, u(-16384)},
              {0x4118, u(-16384)},  {0x411C, u(-16384)},
              {0x4140, 16384},      {0x4144, 16384},
              {0x4148, 16384},      {0x414C, 16384},
              {0x4150, 0x30003000}, {0x4154, 0x30003000},
              {0x4160, 0x0C0C0C0C}, {0x4170, 0x50005000},
              {0x4174, 0x50005000}, {0x4184, 0x0D0D0D0D},
              {0x4188, low << 16},  {0x418C, low << 16 | low},
              {0x4190, high << 16}, {0x4194, high << 16 | high},
              {0x501C, 0},          {0x5020, 0},
              {0x5028, 0x1A},       {0x502C, u(kTensorAt)},
              {0x5034, 0x41},       {0x5038, 0},
              {0x5040, 0}};
  return s;
}

TEST(Rk3576Sum, ATableIsLookedUpAndGoesOnBeyondItsEnds) {
  size_t below = 0, inside = 0, above = 0, ends[2] = {};
  for (int32_t zero = 4; zero < 14; ++zero) {
    Sum s = lookup();
    s.main_zero = zero;
    const Ran ran = run(s);
    ASSERT_EQ(ran.problem, "");
    for (size_t at = 0; at < s.cube(); ++at) {
      if (at % (s.pitch() * 16) >= s.pixels() * 16) continue;
      int64_t v = rounded((int64_t{static_cast<int8_t>(ran.main[at])} - s.main_zero) * s.main_factor, s.main_shift);
      ++(v < -16384 ? below : v >= 16384 ? above : inside);
      ends[0] += v == -16384, ends[1] += v == 16384;
      if (v < -16384)
        v = static_cast<int16_t>(kBelow) + rounded((v + 16384) * 0x3000, 12);
      else if (v >= 16384)
        v = static_cast<int16_t>(kAbove) + rounded((v - 16384) * 0x5000, 13);
      const int64_t y = std::clamp<int64_t>(rounded(v * s.out_factor, s.out_shift) + s.out_zero, -128, 127);
      ASSERT_EQ(static_cast<int8_t>(ran.out[at]), y) << at;
    }
  }
  EXPECT_GT(std::min({below, inside, above}), 20U);
  EXPECT_GT(std::min(ends[0], ends[1]), 0U);
}

// The product of two tensors minus their zero points.
TEST(Rk3576Sum, AProductIsThatOfBoth) {
  const std::map<uint32_t, uint32_t> words = {{0x4044, 2}, {0x4050, 0x20000}, {0x407C, 0x810F4094}, {0x501C, 2}};
  for (const int32_t zero : {-7, 127}) {
    Sum s{
        .main_zero = zero, .main_factor = 0, .other_factor = 1, .out_factor = 19000, .other_shift = 0, .others = words};
    s.out_shift = 21;
    const Ran ran = run(s);
    ASSERT_EQ(ran.problem, "");
    size_t inside = 0;
    for (size_t at = 0; at < s.cube(); ++at) {
      if (at % (s.pitch() * 16) >= s.pixels() * 16) continue;
      const int64_t product = (int64_t{static_cast<int8_t>(ran.main[at])} - s.main_zero) *
                              (int64_t{static_cast<int8_t>(ran.second[at])} - s.other_zero);
      const int64_t y = std::clamp<int64_t>(rounded(product * s.out_factor, s.out_shift) + s.out_zero, -128, 127);
      ASSERT_EQ(static_cast<int8_t>(ran.out[at]), y) << at;
      inside += y != s.out_zero && y > -128 && y < 127;
    }
    EXPECT_GT(inside, 100U);
  }
}

// Values above 0 are neither multiplied by the slope's factor nor shifted by its shift; the main factor and shift
// apply.
TEST(Rk3576Sum, ASlopeIsOfWhatIsBelow0) {
  Sum s{.main_zero = 11, .main_factor = 16384, .out_factor = 20000, .main_shift = 0, .out_shift = 28};
  s.more_below = 14;
  s.slope_factor = 3 * 1638, s.slope_shift = 2;
  s.others = {{0x4060, 0x402}, {0x407C, 0x010041C1},  {0x4080, 0},    {0x4084, 1},
              {0x5028, 0x18},  {0x502C, u(kSlopeAt)}, {0x5034, 0x41}, {0x5040, 0}};
  const Ran ran = run(s);
  ASSERT_EQ(ran.problem, "");
  size_t below = 0;
  for (size_t at = 0; at < s.cube(); ++at) {
    if (at % (s.pitch() * 16) >= s.pixels() * 16) continue;
    const int64_t x = int64_t{static_cast<int8_t>(ran.main[at])} - s.main_zero;
    const int64_t v = x < 0 ? rounded(x * s.slope_factor, s.slope_shift) : x * s.main_factor;
    const int64_t y = std::clamp<int64_t>(rounded(v * s.out_factor, s.out_shift) + s.out_zero, -128, 127);
    ASSERT_EQ(static_cast<int8_t>(ran.out[at]), y) << at;
    below += x < 0;
  }
  EXPECT_GT(below, 100U);
  s.others[0x5028] = 0x1A;
  EXPECT_NE(run(s).problem.find("dpu_rdma.nrdma_cfg"), std::string::npos);
}

// Both limits apply before the zero point is added.
TEST(Rk3576Sum, ATablesResultsMayEndAt0) {
  Sum s = lookup();
  const Ran free = run(s);
  s.others[0x4088] = s.others[0x40A4] = 0;
  const Ran limited = run(s);
  ASSERT_EQ(limited.problem, "");
  size_t raised = 0;
  for (size_t at = 0; at < s.cube(); ++at) {
    if (at % (s.pitch() * 16) >= s.pixels() * 16) continue;
    const int32_t without = static_cast<int8_t>(free.out[at]);
    ASSERT_EQ(static_cast<int8_t>(limited.out[at]), std::max(without, s.out_zero)) << at;
    raised += without < s.out_zero;
  }
  EXPECT_GT(raised, 50U);
}

TEST(Rk3576Sum, WhatNoLookupHasIsNamed) {
  const std::pair<std::pair<uint32_t, uint32_t>, const char*> rows[] = {
      {{0x502C, 0}, "dpu_rdma.bn_base_addr = 0x0"},     {{0x5028, 0x18}, "dpu_rdma.nrdma_cfg"},
      {{0x4154, 0x50005000}, "dpu.lut_4154"},           {{0x4160, 0x0C0C0C0D}, "dpu.lut_4160"},
      {{0x4194, 0x40004001}, "dpu.lut_4194"},           {{0x4088, 0}, "dpu.out_min"},
      {{0x401C, 14}, "dpu.dst_surf_stride = 14: less"}, {{0x4060, 0x402}, "dpu.bn_cfg"}};
  for (const auto& [other, named] : rows) {
    Sum s = lookup();
    s.others[other.first] = other.second;
    const std::string problem = run(s).problem;
    EXPECT_NE(problem.find(named), std::string::npos) << problem;
  }
  Sum zero = lookup();
  zero.main_factor = 0;
  EXPECT_NE(run(zero).problem.find("dpu_rdma.bn_base_addr: the tensor is multiplied by 0"), std::string::npos);
}

TEST(Rk3576Sum, WhatNoProgramHasIsNamed) {
  struct Row {
    std::map<uint32_t, uint32_t> others;
    const char* named;
  };
  const Row rows[] = {{{{0x5020, 0}}, "dpu_rdma.bs_base_addr = 0x0"},
                      {{{0x5040, 14}}, "dpu_rdma.ew_surf_stride = 14"},
                      {{{0x500C, 9}}, "dpu_rdma.data_cube_width"},
                      {{{0x4038, 0x53}}, "dpu.bs_cfg"},
                      {{{0x5034, 0x50000044}}, "dpu_rdma.erdma_cfg"},
                      {{{0x4088, 0}}, "dpu.ew_min"},
                      {{{0x407C, 0x810F4095}}, "dpu.ew_cfg = 0x810f4095"},
                      {{{0x407C, 0x810F4094}}, "dpu_rdma.brdma_cfg"},
                      {{{0x407C, 0x010041C1}}, "dpu.bn_cfg"}};
  for (const Row& row : rows)
    EXPECT_NE(run({.others = row.others}).problem.find(row.named), std::string::npos) << row.named;
  EXPECT_NE(run({.main_factor = 0}).problem.find("multiplied by 0"), std::string::npos);
}

}  // namespace
}  // namespace skillet::sim::rockchip
