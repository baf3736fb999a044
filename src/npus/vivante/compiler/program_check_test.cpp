// Refused values in an NN job's on-chip memory and in V8's coefficients.
#include "npus/vivante/compiler/program_check.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "npus/vivante/compiler/stream_check.h"

namespace skillet::npus::vivante {
namespace {

const hw::ChipRow& imx8mp() { return *hw::find_chip("imx8mp"); }

// One 1x1 kernel for one plane of 8x8, with nothing in on-chip memory.
hw::NnInstruction job() {
  hw::NnInstruction nn{};
  nn.kernel_x_size = nn.kernel_y_size = nn.kernel_z_size = nn.kernels_per_core = 1;
  nn.in_x_size = nn.in_y_size = nn.in_x_stride = nn.in_y_stride = 8;
  nn.out_x_size = nn.out_y_size = nn.out_x_stride = nn.out_y_stride = nn.out_tile_x_size = nn.out_tile_y_size = 8;
  nn.out_z_size = 1;
  nn.pooling_xy_size = 1;
  nn.no_z_offset = imx8mp().has(hw::kNoZOffset);
  nn.no_flush = hw::generation_of(imx8mp()).no_flush;
  return nn;
}

TEST(VivanteProgramCheck, WindowsOfOnChipMemoryLieApartAndInIt) {
  ASSERT_EQ(refused_job(imx8mp(), job()), "");
  struct Row {
    uint32_t kernels, kernels_end, image, image_end;
    const char* refused;
  };
  const uint32_t end = imx8mp().sram_bytes;
  for (const Row& row : {Row{0, 1024, 1024, 2048, ""}, Row{1024, 2048, 0, 1024, ""},
                         Row{0, 1024, 1023, 2048, "image_cache_start"}, Row{1024, 2048, 0, 1025, "image_cache_start"},
                         Row{0, 4096, 1024, 2048, "image_cache_start"}, Row{1024, 2048, 0, 4096, "image_cache_start"},
                         Row{1024, 2048, 1024, 2048, "image_cache_start"}, Row{0, 1024, 1024, end, ""},
                         Row{0, 1024, 1024, end + 1, "image_cache_end"}, Row{0, end + 1, 0, 0, "kernel_cache_end"},
                         Row{64, 0, 1024, 2048, "kernel_cache_end"}, Row{0, 1024, 2048, 1024, "image_cache_end"}}) {
    hw::NnInstruction nn = job();
    nn.kernel_caching_mode = hw::Caching::full;
    nn.image_caching_mode = hw::Caching::full;
    nn.kernel_cache_start = row.kernels, nn.kernel_cache_end = row.kernels_end;
    nn.image_cache_start = row.image, nn.image_cache_end = row.image_end;
    const std::string text = refused_job(imx8mp(), nn);
    EXPECT_EQ(text.empty(), *row.refused == 0) << text;
    EXPECT_NE(text.find(row.refused), std::string::npos) << text;
  }
}

// Each core keeps as many bytes as the core with the most (V7).
TEST(VivanteProgramCheck, CoefficientsFitTheirWindow) {
  const hw::ChipRow& chip = *hw::find_chip("a311d");
  Bytes bytes(1024);
  store_le(bytes.data(), uint32_t{64});
  store_le(bytes.data() + 4, uint32_t{128});
  for (const uint32_t window : {255U, 256U}) {
    hw::NnInstruction nn = job();
    nn.kernel_caching_mode = hw::Caching::full;
    nn.kernel_cache_start = 64, nn.kernel_cache_end = 64 + window;
    EXPECT_EQ(refused_coefficients(chip, nn, bytes).find("smaller than the coefficients") != std::string::npos,
              window < 256)
        << refused_coefficients(chip, nn, bytes);
  }
}

// The sizes of streams are counted in bits; each stream begins at a multiple of 64 bytes.
TEST(VivanteProgramCheck, V8StreamsTakeWhatTheirSizesSay) {
  struct Row {
    uint32_t bits;
    uint64_t bytes;
  };
  for (const Row& row : {Row{1, 64}, Row{511, 64}, Row{512, 64}, Row{513, 128}, Row{4096, 512}, Row{4097, 576}}) {
    for (int core = 0; core < imx8mp().nn_cores; ++core) {
      Bytes bytes(64);
      bytes[0] = 0x10;
      for (int one = 0; one <= core; ++one) store_le(bytes.data() + 28 + one * 4, one == core ? row.bits : 512U);
      hw::NnInstruction nn = job();
      nn.out_z_size = static_cast<uint32_t>(core) + 1;
      EXPECT_EQ(coefficient_bytes(imx8mp(), nn, bytes),
                64 + 4 * nn.out_z_size + 64 * static_cast<uint64_t>(core) + row.bytes);
      EXPECT_EQ(refused_coefficients(imx8mp(), nn, bytes), "");
      nn.out_z_size += 1;  // a core without a stream
      if (core + 1 < imx8mp().nn_cores) {
        EXPECT_NE(refused_coefficients(imx8mp(), nn, bytes), "");
      }
    }
  }
}

// A run of weights that reaches over the place of a bias (V7): one weight, whose run is of 2 bits.
TEST(VivanteProgramCheck, RunsEndBeforeBiases) {
  Bytes bytes(128);
  store_le(bytes.data(), uint32_t{64});
  bytes[64] = 2, bytes[65] = 1;  // bits of a run, kernels
  for (const uint8_t run : {0, 1, 2, 3}) {
    bytes[67] = run;
    EXPECT_EQ(refused_coefficients(*hw::find_chip("a311d"), job(), bytes).empty(), run == 0) << +run;
  }
}

// A job is decoded before it is refused: without tiles, or with tiles that never end, its reach is not known.
TEST(VivanteProgramCheck, AnOutputIsAsLargeAsItsWalk) {
  hw::TpInstruction whole{};
  whole.in_x_size = whole.in_y_size = whole.in_stride = 4;
  whole.in_z_size = 1, whole.in_slice = 16;
  whole.in_window_x_end = whole.in_window_y_end = 3;
  whole.in_tile_x_size = whole.in_tile_y_size = whole.in_tile_x_inc = whole.in_tile_y_inc = 4;
  const auto reach = [](const hw::TpInstruction& tp) { return reach_of(imx8mp(), tp, "out_base_address", {}); };
  EXPECT_TRUE(reach(whole));
  for (const auto field : {&hw::TpInstruction::in_tile_x_size, &hw::TpInstruction::in_tile_x_inc,
                           &hw::TpInstruction::in_tile_y_size, &hw::TpInstruction::in_tile_y_inc}) {
    hw::TpInstruction tp = whole;
    tp.*field = 0;
    EXPECT_FALSE(reach(tp));
  }
  for (const auto field : {&hw::TpInstruction::in_window_x_start, &hw::TpInstruction::in_window_y_start}) {
    hw::TpInstruction tp = whole;
    tp.*field = 4;
    EXPECT_FALSE(reach(tp));
  }
}

}  // namespace
}  // namespace skillet::npus::vivante
