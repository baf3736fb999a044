// Results where two look-up tables meet, and at the limits of sums.
#include <gtest/gtest.h>

#include "npus/rockchip/sim/arithmetic.h"
#include "npus/rockchip/sim/dma.h"
#include "npus/rockchip/sim/test_support.h"

namespace skillet::sim::rockchip {
namespace {

using testing::Scene;

void run(Scene& scene, const testing::Program& program, const Options& options = {}) {
  const auto npu = Npu::create("rk3588", options);
  ASSERT_TRUE(npu.ok()) << npu.error().message;
  const auto result = (*npu)->run_task(0, scene.load(program.stream()), scene.memory);
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_EQ(result->stall, "");
}

// An access may cross from one buffer into the next, which may be read-only.
TEST(RockchipDma, WritesWhereItMay) {
  Bytes result(16), constants(16, 7);
  Memory memory;
  ASSERT_TRUE(memory.map(0x1000, result, "result").ok());
  ASSERT_TRUE(memory.map_to_read(0x1010, constants, "constants").ok());
  const Dma dma(memory);
  Bytes both(32);
  ASSERT_TRUE(dma.read(0x1000, both, "reader").ok());
  EXPECT_EQ(both[16], 7);
  const Bytes row(12, 5);
  EXPECT_TRUE(dma.write(0x1004, row, "writer").ok());
  const auto refused = dma.write(0x1008, row, "writer");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("writer: 0x1010 is written"), std::string::npos) << refused.error().message;
  EXPECT_EQ(constants, Bytes(16, 7));
}

// The last value of one table is the first of the other.
TEST(RockchipLookup, ThePriorityTellsWhichTableCounts) {
  for (const uint32_t priority : {0U, 1U}) {
    int zeros = 0;
    auto program = testing::lookup_program(24, [&](int value) { return value != 0 ? 0 : 11 * ++zeros; });
    program.set(hw::DpuLutCfg{.lut_lo_le_mux = 2, .lut_oflow_priority = 1, .lut_hybrid_priority = priority});
    Scene scene;
    std::ranges::fill(scene.buffers[testing::kInput], uint8_t{0});
    run(scene, program);
    EXPECT_EQ(zeros, 2);
    EXPECT_EQ(scene.output()[0], priority == 0 ? 11 : 22);
  }
}

constexpr int kLanes = 2048;

// One tap of 2048 channels.
testing::Conv wide_conv(int out_shift) {
  return {.in_h = 2,
          .in_w = 2,
          .in_c = kLanes,
          .out_h = 2,
          .out_w = 2,
          .out_c = 32,
          .kernel_h = 1,
          .kernel_w = 1,
          .pad_top = 0,
          .pad_left = 0,
          .out_scale = 1,
          .out_shift = out_shift};
}

// A value that exceeds 32 bits between the CORE and the DPU: the sum of products, corrected by a large factor. The
// result is known for each value: saturated, or its low 32 bits.
TEST(RockchipResults, SumsBeyond32Bits) {
  for (const int32_t factor : {20000, -20000, 100}) {
    testing::Program program = testing::conv_program(wide_conv(25));
    program.set(hw::DpuBsOwOp{.ow_op = factor});
    program.set(hw::DpuOutCvtOffset{});
    int beyond = 0;
    for (const bool wraps : {false, true}) {
      for (const bool plain : {false, true}) {
        Scene scene;
        scene.buffers[testing::kBias].assign(scene.buffers[testing::kBias].size(), 0);
        Bytes& features = scene.buffers[testing::kInput];
        for (uint8_t& byte : features) byte = 100;
        run(scene, program, {.accumulator_wraps = wraps, .reference_only = plain});
        const Bytes& weights = scene.buffers[testing::kWeights];
        for (int o = 0; o < 32; ++o) {
          int64_t sum = int64_t{factor} * 100 * kLanes;
          for (int i = 0; i < kLanes; ++i)
            sum += 100 * static_cast<int8_t>(weights[static_cast<size_t>((i / 32 * 32 + o) * 32 + i % 32)]);
          const int32_t value = wraps ? static_cast<int32_t>(sum) : saturate32(sum);
          beyond += sum != value ? 1 : 0;
          EXPECT_EQ(static_cast<int8_t>(scene.output()[static_cast<size_t>(o / 16 * 4 * 16 + o % 16)]),
                    saturate8(round_shift(value, 25, Tie::even)))
              << factor << " " << o << (wraps ? " wraps" : " saturates") << (plain ? ", plain" : "");
        }
      }
    }
    EXPECT_EQ(beyond, std::abs(factor) > 100 ? 4 * 32 : 0);
  }
}

// Within a stage a sum has more than 32 bits: the operand of a multiplication is not saturated.
TEST(RockchipResults, AStageMultipliesSumsBeyond32Bits) {
  constexpr int32_t kFactor = 5000, kAddend = 1'500'000'000;
  testing::Program program = testing::per_channel_program(wide_conv(15));
  program.set(hw::DpuBsMulCfg{.bs_mul_src = hw::Operand::from_memory, .bs_mul_shift_value = 10});
  program.set(hw::DpuDataFormat{.bs_mul_shift_value_neg = 10});
  program.set(hw::DpuBsOwOp{.ow_op = kFactor});
  program.set(hw::DpuOutCvtOffset{});
  for (const bool plain : {false, true}) {
    Scene scene;
    Bytes& operands = scene.buffers[testing::kBias];
    for (size_t at = 0; at + 64 <= operands.size(); at += 64) {
      for (size_t i = 0; i < 32; i += 4) store_le(&operands[at + i], kAddend);
      for (size_t i = 48; i < 64; i += 2) store_le(&operands[at + i], int16_t{1});
    }
    for (uint8_t& byte : scene.buffers[testing::kInput]) byte = 100;
    run(scene, program, {.reference_only = plain});
    const Bytes& weights = scene.buffers[testing::kWeights];
    for (size_t o = 0; o < 32; ++o) {
      int64_t sum = int64_t{kFactor} * 100 * kLanes + kAddend;
      for (size_t i = 0; i < kLanes; ++i) sum += 100 * static_cast<int8_t>(weights[(i / 32 * 32 + o) * 32 + i % 32]);
      EXPECT_GT(sum, INT32_MAX);
      EXPECT_EQ(static_cast<int8_t>(scene.output()[o / 16 * 4 * 16 + o % 16]),
                saturate8(round_shift(round_shift(sum, 10, Tie::even), 15, Tie::even)))
          << o << (plain ? ", plain" : "");
    }
  }
}

}  // namespace
}  // namespace skillet::sim::rockchip
