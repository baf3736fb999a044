// Every field of a register has an effect: changing it in some program changes the result, or stops the run, unless
// ignored.def lists it; fields in ignored.def change nothing.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <set>

#include "npus/rockchip/sim/field_check.h"
#include "npus/rockchip/sim/npu.h"
#include "npus/rockchip/sim/test_support.h"

namespace skillet::sim::rockchip {
namespace {

using testing::Conv;
using testing::Program;
using testing::Scene;

// BS and BN with all their parts, operands from registers; ties in every rounding.
Program stages_program() {
  Program p = testing::conv_program({.in_c = 16, .out_c = 32, .out_scale = 1, .out_shift = 6});
  p.registers[hw::CoreClipTruncate::kAddress] = 1;
  p.registers[hw::DpuBsCfg::kAddress] = 0x20000;
  p.set(hw::DpuBsAluCfg{.bs_alu_operand = 1000});
  p.set(hw::DpuBsMulCfg{.bs_mul_shift_value = 2, .bs_mul_operand = 3});
  p.registers[hw::DpuBsCfg::kAddress] = 0x200C0 & ~0x40U;
  p.set(hw::DpuBsReluxCmpValue{.bs_relux_cmp_dat = 6000});
  p.registers[hw::DpuBnCfg::kAddress] = 0x40080 & ~0x40U;
  p.set(hw::DpuBnAluCfg{.bn_alu_operand = 2500});
  p.set(hw::DpuBnMulCfg{.bn_mul_shift_value = 1, .bn_mul_operand = 5});
  p.set(hw::DpuBnReluxCmpValue{.bn_relux_cmp_dat = 5000});
  p.set(hw::DpuDataFormat{.bs_mul_shift_value_neg = 1, .bn_mul_shift_value_neg = 2});
  p.set(hw::DpuRdmaBrdmaCfg{});
  return p;
}

Program addition_program() {
  Program p = testing::conv_program({.in_c = 16,
                                     .out_c = 40,
                                     .kernel_h = 1,
                                     .kernel_w = 1,
                                     .pad_top = 0,
                                     .pad_left = 0,
                                     .out_scale = 1,
                                     .out_shift = 7,
                                     .add = true,
                                     .second_scale = 35,
                                     .second_shift = 1});
  p.change<hw::DpuEwCfg>([](hw::DpuEwCfg& f) {
    f.ew_relu_bypass = false;
    f.ew_relux_en = true;
  });
  p.set(hw::DpuEwReluxCmpValue{.ew_relux_cmp_dat = 9000});
  return p;
}

std::vector<Program> programs() {
  Conv strided{.in_h = 9, .in_w = 11, .in_c = 40, .out_h = 4, .out_w = 5, .out_c = 64, .stride_y = 2, .stride_x = 2};
  Conv depthwise{.in_h = 6, .in_w = 6, .in_c = 70, .out_h = 6, .out_w = 6, .out_c = 70, .depthwise = true};
  Program lines = testing::conv_program(strided);
  lines.change<hw::CnaConvCon1>([](hw::CnaConvCon1& f) { f.group_line_off = true; });
  lines.set(hw::CnaDmaCon1{.line_stride = 11});
  lines.set(hw::CnaDmaCon2{.surf_stride = 88});
  // Ties in the operand converter, and negative products in BN.
  Program halves = testing::element_wise_program(24, 0x904202C0);
  halves.set(hw::DpuEwCvtScaleValue{.ew_op_cvt_scale = 1, .ew_op_cvt_shift = 1});
  Program negative = stages_program();
  negative.registers[hw::DpuBnCfg::kAddress] = 0x40040;
  return {
      testing::truncated_program(),
      halves,
      negative,
      testing::conv_program({}),
      testing::conv_program(strided),
      testing::conv_program(
          {.in_h = 7, .in_w = 7, .out_h = 1, .out_w = 1, .kernel_h = 7, .kernel_w = 7, .pad_top = 0, .pad_left = 0}),
      lines,
      testing::conv_program(depthwise),
      testing::per_channel_program({.in_c = 16, .out_c = 32}),
      stages_program(),
      testing::packed_program(),
      addition_program(),
      testing::element_wise_program(24, 0x904202C0),
      testing::element_wise_program(24, 0x106102C0),
      testing::element_wise_program(24, 0x104002C4),
      testing::lookup_program(24, [](int value) { return value / 5; }),
      testing::pool_program({.in_h = 5, .in_w = 5, .out_h = 3, .out_w = 3, .pad = 1}),
      testing::pool_program(
          {.method = hw::Pooling::average, .in_h = 4, .in_w = 4, .out_h = 2, .out_w = 2, .kernel = 2})};
}

// Nothing if the run stopped.
std::optional<Bytes> run(const Program& program, std::string* why = nullptr) {
  Scene scene;
  const auto npu = Npu::create("rk3588");
  const auto result = (*npu)->run_task(0, scene.load(program.stream()), scene.memory);
  if (why != nullptr) *why = result.ok() ? result->stall : result.error().message;
  if (!result.ok() || !result->stall.empty()) return std::nullopt;
  return scene.output();
}

// Whether the register exists once per group, in a block that the program starts.
bool takes_part(const Program& program, uint32_t address) {
  const uint32_t block = address / hw::kBlockBytes, offset = address % hw::kBlockBytes;
  if (block == 0 || block > 7 || block == 2 || offset <= hw::kEnableAddress) return false;
  return program.registers.lower_bound(block * hw::kBlockBytes) !=
         program.registers.lower_bound((block + 1) * hw::kBlockBytes);
}

bool has_consequence(const Program& program, const Bytes& expected, const bits::Descriptor& d, const bits::Row& row) {
  const bits::Piece piece = row.where.pieces[0];
  for (int bit = 0; bit < piece.width; ++bit) {
    Program changed = program;
    changed.registers[d.address] ^= 1U << (piece.lsb + bit);
    if (const auto output = run(changed); !output || *output != expected) return true;
  }
  return false;
}

TEST(RockchipFields, EachHasAConsequenceOrIsListed) {
  std::set<std::string> seen, without;
  for (const Program& program : programs()) {
    std::string why;
    const auto expected = run(program, &why);
    ASSERT_TRUE(expected.has_value()) << why;
    for (const bits::Descriptor& d : hw::registers().registers) {
      if (!takes_part(program, d.address)) continue;
      for (const bits::Row& row : d.rows) {
        const std::string name = fmt::format("{}.{}", d.name, row.name);
        if (seen.contains(name)) continue;
        const bool consequence = has_consequence(program, *expected, d, row);
        EXPECT_FALSE(consequence && is_ignored(d, row)) << name << " is in ignored.def";
        without.insert(name);
        if (consequence || is_ignored(d, row)) without.erase(name);
        if (consequence) seen.insert(name);
      }
    }
  }
  EXPECT_EQ(fmt::format("{}", fmt::join(without, ", ")), "") << "change these in some program, or list them";
  EXPECT_GT(seen.size(), 250U);
}

TEST(Fields, ValuesWithoutAMeaningAreRefused) {
  int tried = 0;
  for (const bits::Descriptor& d : hw::registers().registers) {
    for (const bits::Row& row : d.rows) {
      if (row.kind != bits::ValueKind::enumeration || is_ignored(d, row) || row.where.count != 1) continue;
      const bits::Piece piece = row.where.pieces[0];
      uint32_t value = (1U << piece.width) - 1;
      while (value > 0 && row.names.find(value) != nullptr) --value;
      if (value == 0) continue;  // each value has a name
      ++tried;
      EXPECT_FALSE(check_fields(hw::registers(), d, value << piece.lsb).ok())
          << d.name << "." << row.name << " = " << value;
    }
  }
  EXPECT_GT(tried, 0);
}

}  // namespace
}  // namespace skillet::sim::rockchip
