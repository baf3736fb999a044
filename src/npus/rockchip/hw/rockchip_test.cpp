// Compares the register rows with the worked example of the specification (section 12.2) and with each other.
#include "npus/rockchip/hw/rockchip.h"

#include <gtest/gtest.h>

#include <random>

namespace skillet::rockchip::hw {
namespace {

template <typename T>
uint32_t word(const T& fields) {
  const auto packed = bits::pack(fields);
  EXPECT_TRUE(packed.ok()) << packed.error().message;
  return packed.ok() ? (*packed)[0] : 0;
}

// Values of program P0: 5x5x3 to 5x5x16, 3x3, stride 1, pad 1.
TEST(RockchipRegisters, PackTheSpecifiedProgram) {
  EXPECT_EQ(word(CnaCbufCon0{.data_bank = 1, .weight_bank = 11}), 0xB1U);
  EXPECT_EQ(word(CnaConvCon2{.feature_grains = 52}), 0x340U);
  EXPECT_EQ(word(CnaDataSize1{.datain_channel = 16, .datain_channel_real = 3}), 0x20010U);
  EXPECT_EQ(word(CnaWeightSize2{.weight_kernels = 16, .weight_height = 3, .weight_width = 3}), 0x3030010U);
  EXPECT_EQ(word(CnaDmaCon2{.surf_stride = -5}), 0x0FFFFFFBU);
  EXPECT_EQ(word(DpuFeatureModeCfg{.output_mode = OutputMode::memory, .burst_len = Burst::beats_16}), 0x1E4U);
  EXPECT_EQ(word(DpuDstSurfStride{.dst_surf_stride = 25 * 16}), 0x190U);
  EXPECT_EQ(word(DpuDataCubeChannel{.channel = 32, .orig_channel = 16}), 0xF001FU);
  EXPECT_EQ(word(DpuBsCfg{.bs_mul_bypass = true,
                          .bs_relu_bypass = true,
                          .bs_alu_src = Operand::from_memory,
                          .bs_alu_algo = StageAlu::add}),
            0x20150U);
  EXPECT_EQ(word(DpuBsOwCfg{.size_e_0 = 1, .size_e_1 = 1, .size_e_2 = 1}), 0x124U);
  EXPECT_EQ(word(DpuBsOwOp{.ow_op = -3}), 0xFFFDU);
  EXPECT_EQ(word(DpuOutCvtOffset{.out_cvt_offset = -121}), 0xFFFFFF87U);
  EXPECT_EQ(word(DpuRdmaFeatureModeCfg{.mrdma_disable = true, .burst_len = Burst::beats_16}), 0x7810U);
}

// EW words of program P2 and the worked command words.
TEST(RockchipRegisters, PackTheSpecifiedAddition) {
  EXPECT_EQ(word(DpuEwCfg{.ew_op_src = Operand::from_memory,
                          .ew_lut_bypass = true,
                          .ew_relu_bypass = true,
                          .ew_alu_algo = EwAlu::add,
                          .edata_size = Width::bits_8,
                          .ew_data_mode = Granularity::per_pixel,
                          .ew_cvt_type = CvtOrder::add_first}),
            0x904202C0U);
  EXPECT_EQ(word(DpuEwCvtScaleValue{.ew_op_cvt_scale = 0x6666, .ew_op_cvt_shift = 13}), 0xD6666U);
  EXPECT_EQ(word(DpuRdmaErdmaCfg{.erdma_data_size = Width::bits_8, .erdma_data_mode = Granularity::per_pixel}),
            0x40000004U);
  const auto first = bits::pack(Command{.address = CnaCbufCon0::kAddress, .value = 0xB1, .target = Target::cna});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(uint64_t{(*first)[1]} << 32 | (*first)[0], 0x0201000000B11040U);
  const auto enable = bits::pack(Command{.address = kEnableAddress, .value = 0x1D, .target = Target::enable});
  ASSERT_TRUE(enable.ok());
  EXPECT_EQ(uint64_t{(*enable)[1]} << 32 | (*enable)[0], 0x00810000001D0008U);
  EXPECT_EQ(word(BlockEnable{.cna = true, .core = true, .dpu = true, .dpu_rdma = true}), 0x1DU);
}

// Unpacking and repacking any value of any register returns the value.
TEST(RockchipRegisters, RepackOfUnpackIsIdentity) {
  std::mt19937 random(1);
  for (const bits::Descriptor& d : registers().registers) {
    EXPECT_EQ(registers().find(d.address), &d);
    for (int i = 0; i < 20; ++i) {
      const uint32_t value = random();
      const auto again = bits::repack(d, bits::unpack(d, {&value, 1}));
      ASSERT_TRUE(again.ok()) << d.name << ": " << again.error().message;
      ASSERT_EQ((*again)[0], value) << d.name;
    }
  }
  EXPECT_EQ(registers().registers.size(), 201U);
}

TEST(RockchipRegisters, PrintByName) {
  const uint32_t value = 0x60008003;
  EXPECT_EQ(bits::print(CnaConvCon1::descriptor(), bits::unpack(CnaConvCon1::descriptor(), {&value, 1})),
            "  conv_mode = depthwise\n  argb_in = pixels_1\n  group_line_off = true\n  nonalign_dma = true\n");
}

TEST(RockchipRegisters, RefuseWhatDoesNotFit) {
  const auto wide = bits::pack(CnaDataSize0{.datain_width = 2048});
  ASSERT_FALSE(wide.ok());
  EXPECT_EQ(wide.error().message, "cna.data_size0.datain_width = 2048: at most 2047 in 11 bits");
}

TEST(RockchipChips, AreFoundByName) {
  ASSERT_NE(find_chip("rk3588"), nullptr);
  EXPECT_EQ(find_chip("rk3588")->cores, 3);
  EXPECT_TRUE(find_chip("rk3588")->has(kRegisters3588));
  ASSERT_NE(find_chip("rk3568"), nullptr);
  EXPECT_FALSE(find_chip("rk3568")->has(kRegisters3588));
  EXPECT_EQ(find_chip("a311d"), nullptr);
}

}  // namespace
}  // namespace skillet::rockchip::hw
