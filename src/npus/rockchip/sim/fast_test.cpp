// Both ways to compute a convolution: plain loops, and whole pixels at a time (conv_fast.cpp, dpu_fast.cpp).
#include <gtest/gtest.h>

#include <set>

#include "npus/rockchip/sim/npu.h"
#include "npus/rockchip/sim/test_support.h"

namespace skillet::sim::rockchip {
namespace {

using testing::Conv;
using testing::Program;
using testing::Scene;

Bytes output_of(uint32_t seed, const Program& program, const Options& options) {
  Scene scene(seed, 0x20000);
  // Operands in groups of eight channels: multipliers of both signs, and sometimes large addends.
  std::mt19937 random(seed);
  Bytes& operands = scene.buffers[testing::kBias];
  const bool groups = program.get<hw::DpuRdmaBrdmaCfg>().brdma_data_use == 7;
  for (size_t at = 0; groups && at + 64 <= operands.size(); at += 64) {
    for (size_t i = 0; seed % 3 == 0 && i < 32; i += 4) store_le(&operands[at + i], static_cast<int32_t>(random()));
    for (size_t i = 48; i < 64; i += 2) store_le(&operands[at + i], static_cast<int16_t>(random()));
  }
  const auto npu = Npu::create("rk3588", options);
  const auto result = (*npu)->run_task(0, scene.load(program.stream()), scene.memory);
  EXPECT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result.ok() ? result->stall : "", "");
  return scene.output();
}

Conv random_conv(std::mt19937& random) {
  const auto draw = [&](int low, int high) { return low + static_cast<int>(random() % (high - low + 1)); };
  Conv c{.in_h = draw(1, 9),
         .in_w = draw(1, 9),
         .in_c = draw(1, 70),
         .out_c = draw(1, 70),
         .kernel_h = draw(1, 4),
         .kernel_w = draw(1, 4),
         .stride_y = draw(1, 3),
         .stride_x = draw(1, 3),
         .dilation_y = draw(1, 2),
         .dilation_x = draw(1, 2),
         .pad_top = draw(0, 3),
         .pad_left = draw(0, 3),
         .depthwise = draw(0, 2) == 0,
         .zero_in = draw(0, 255),
         .zero_weight = draw(0, 255),
         .zero_out = draw(0, 255),
         .out_shift = draw(24, 27)};
  if (c.depthwise) c.out_c = c.in_c;
  const auto extent = [](int in, int pad, int kernel, int dilation, int stride) {
    return std::max(1, (in + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1);
  };
  c.out_h = extent(c.in_h, c.pad_top, c.kernel_h, c.dilation_y, c.stride_y);
  c.out_w = extent(c.in_w, c.pad_left, c.kernel_w, c.dilation_x, c.stride_x);
  c.add = c.out_h * c.out_w >= 12 && draw(0, 2) == 0;
  return c;
}

// A sum and a product per channel, of numbers that fit 32 bits or exceed them.
void draw_bs(std::mt19937& random, Program& program) {
  const uint32_t shift = random() % 24;
  program.set(hw::DpuBsMulCfg{.bs_mul_src = hw::Operand::from_memory, .bs_mul_shift_value = shift});
  program.set(hw::DpuDataFormat{.bs_mul_shift_value_neg = random() % 8 == 0 ? shift / 2 : shift});
  program.change<hw::DpuBsCfg>([&](hw::DpuBsCfg& cfg) {
    cfg.bs_mul_prelu = random() % 8 == 0;
    cfg.bs_relu_bypass = random() % 4 != 0;
    cfg.bs_alu_algo = random() % 4 == 0 ? hw::StageAlu::subtract : hw::StageAlu::add;
  });
  program.change<hw::DpuOutCvtShift>([&](hw::DpuOutCvtShift& cfg) { cfg.out_cvt_shift = 14 + random() % 24; });
}

void draw_bn(std::mt19937& random, Program& program) {
  const uint32_t shift = random() % 6;
  const bool ends = random() % 2 == 0;
  program.set(hw::DpuBnCfg{.bn_alu_bypass = random() % 2 == 0,
                           .bn_mul_bypass = random() % 2 == 0,
                           .bn_relu_bypass = !ends && random() % 2 == 0,
                           .bn_relux_en = ends,
                           .bn_alu_algo = random() % 2 == 0 ? hw::StageAlu::subtract : hw::StageAlu::add});
  program.set(hw::DpuBnAluCfg{.bn_alu_operand = static_cast<int32_t>(random()) >> (random() % 20)});
  program.set(hw::DpuBnMulCfg{.bn_mul_shift_value = shift, .bn_mul_operand = static_cast<int32_t>(random() % 64) - 16});
  program.change<hw::DpuDataFormat>([&](hw::DpuDataFormat& cfg) { cfg.bn_mul_shift_value_neg = shift; });
  program.set(hw::DpuBnReluxCmpValue{.bn_relux_cmp_dat = static_cast<int32_t>(random() % 100 << 8)});
}

void draw_sum(std::mt19937& random, Program& program) {
  program.change<hw::DpuEwCfg>([&](hw::DpuEwCfg& cfg) {
    cfg.ew_alu_algo = random() % 3 == 0 ? hw::EwAlu::minus : hw::EwAlu::add;
    cfg.ew_op_cvt_bypass = random() % 4 == 0;
    cfg.ew_relu_bypass = random() % 3 != 0;
    cfg.ew_cvt_round = random() % 2 == 0 ? hw::TieAway::half_away : hw::TieAway::half_even;
  });
  program.set(hw::DpuEwCvtScaleValue{.ew_op_cvt_scale = static_cast<int32_t>(random() % 0x8000),
                                     .ew_op_cvt_shift = static_cast<uint32_t>(random() % 20)});
}

Program random_program(std::mt19937& random, const Conv& conv) {
  const bool per_channel = random() % 2 == 0;
  Program program = per_channel ? testing::per_channel_program(conv) : testing::conv_program(conv);
  if (per_channel) draw_bs(random, program);
  if (random() % 3 == 0) draw_bn(random, program);
  if (conv.add && random() % 2 == 0) draw_sum(random, program);
  if (random() % 4 == 0)
    program.change<hw::DpuOutCvtShift>([](hw::DpuOutCvtShift& cfg) { cfg.cvt_round = hw::TieAway::half_away; });
  if (random() % 10 == 0) program.set(hw::DpuOutCvtShift{});
  return program;
}

TEST(RockchipResults, FastEqualsPlain) {
  std::mt19937 random(7);
  int varied = 0;
  for (uint32_t i = 0; i < 300; ++i) {
    const Conv conv = random_conv(random);
    const Program program = random_program(random, conv);
    const Bytes fast = output_of(i, program, {}), plain = output_of(i, program, {.reference_only = true});
    ASSERT_EQ(fast, plain) << "case " << i;
    varied += std::set<uint8_t>(fast.begin(), fast.begin() + 64).size() > 8 ? 1 : 0;
  }
  EXPECT_GT(varied, 90) << "results that saturate everywhere prove nothing";
}

}  // namespace
}  // namespace skillet::sim::rockchip
