#include "npus/vivante/sim/timing.h"

#include <gtest/gtest.h>

#include "npus/vivante/sim/test_support.h"

namespace skillet::sim::vivante {
namespace {

using test::TestMemory;
namespace hw = ::skillet::vivante::hw;

constexpr uint64_t kDescriptor = 0x1000, kKernels = 0x10000;
constexpr Multipliers kV7{.cores = 8}, kV8{.cores = 6, .patches = false, .patch = 3};

// Layers of specification 9: groups of pixels, including unused ones, and steps of the filter.
TEST(VivanteTiming, CyclesByTiles) {
  struct Row {
    Multipliers m;
    Shape s;
    int64_t groups, cycles;
  };
  const Row rows[] = {
      // 1x1, 14x14 in one tile: 196 pixels cost as much as 256
      {kV7,
       {.out_width = 14, .out_height = 14, .kernels = 512, .planes = 512, .tile_width = 14, .tile_height = 14},
       4,
       64 * 4 * 171},
      // 3x3, 112 wide: tiles of 64 and 48, 11 rows of 10 and one of 2
      {kV7,
       {.out_width = 112,
        .out_height = 112,
        .kernels = 32,
        .planes = 12,
        .kernel_width = 3,
        .kernel_height = 3,
        .tile_width = 64,
        .tile_height = 10},
       11 * (10 + 8) + 2 + 2,
       4 * (11 * (10 + 8) + 2 + 2) * 24},
      // V8: the filter is a list; native depthwise has one plane
      {kV8,
       {.out_width = 56,
        .out_height = 56,
        .kernels = 12,
        .planes = 10,
        .kernel_width = 3,
        .kernel_height = 3,
        .tile_width = 56,
        .tile_height = 4},
       14 * 4,
       2 * 14 * 4 * 30},
      {kV8,
       {.out_width = 56,
        .out_height = 56,
        .kernels = 12,
        .planes = 12,
        .kernel_width = 3,
        .kernel_height = 3,
        .tile_width = 56,
        .tile_height = 4,
        .depthwise = true},
       14 * 4,
       2 * 14 * 4 * 3},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(pixel_groups(row.s), row.groups);
    EXPECT_EQ(nn_cycles(row.m, row.s), row.cycles);
  }
}

TEST(VivanteTiming, SmallerTilesCostMore) {
  Shape s{.out_width = 64,
          .out_height = 60,
          .kernels = 8,
          .in_width = 64,
          .in_height = 60,
          .planes = 4,
          .kernel_width = 3,
          .kernel_height = 3,
          .tile_width = 64,
          .tile_height = 12};
  EXPECT_EQ(pixels_read(s), 64 * 60 + 64 * 10);  // five tiles, two rows of halo each
  const int64_t cycles = nn_cycles(kV7, s), read = pixels_read(s);
  s.tile_width = 20;
  s.tile_height = 3;
  EXPECT_GT(nn_cycles(kV7, s), cycles);
  EXPECT_GT(pixels_read(s), read);
}

// A 1x1 convolution of 8 planes of 16x16 px by 16 kernels.
hw::NnInstruction instruction() {
  hw::NnInstruction d{};
  d.kernel_x_size = d.kernel_y_size = 1;
  d.kernel_z_size = 8;
  d.kernels_per_core = 2;
  d.pooling_xy_size = 1;
  d.in_x_size = d.in_y_size = d.in_x_stride = d.in_y_stride = 16;
  d.out_x_size = d.out_y_size = d.out_x_stride = d.out_y_stride = 16;
  d.out_z_size = 16;
  d.out_tile_x_size = 16;
  d.out_tile_y_size = 16;
  d.kernel_address = {.offset = kKernels};
  return d;
}

// `zeros` of every 8 weights are zero, after the first.
Bytes coefficients(int zrl_bits, int zeros, int planes = 8) {
  std::vector<test::TestKernel> kernels(16);
  for (size_t k = 0; k < kernels.size(); ++k) {
    kernels[k].weights = Bytes(static_cast<size_t>(planes), 7);
    for (int plane = 0; plane < planes; plane += 8)
      std::fill_n(kernels[k].weights.begin() + plane + 1, zeros, uint8_t{0});
    kernels[k].offset = static_cast<uint32_t>(k) * 256;
  }
  return test::write_coefficients({.planes = planes, .kernels_per_core = 2, .zrl_bits = zrl_bits}, kernels, 2);
}

Result<Cost> time_one(const hw::NnInstruction& d, const Bytes& kernels, double zero_cost = 0.25) {
  TestMemory memory;
  auto packed = bits::pack(d);
  if (!packed.ok()) return std::move(packed).error();
  memory.add_words(kDescriptor, {packed.value().begin(), packed.value().end()}, "descriptor");
  memory.add(kKernels, kernels, "kernels");
  const ParameterValue zero{"zero_cost", zero_cost};
  SK_TRY_ASSIGN(const auto timer, create_timer("a311d", Jobs::open, {&zero, 1}));
  const std::vector<uint32_t> stream = {hw::load_state_word(hw::State::nn_instruction_address), kDescriptor};
  const auto bytes = as_bytes(stream);
  const Commands commands{.bytes = bytes};
  SK_TRY_ASSIGN(const std::vector<Cost> costs, timer->time_job({.commands = {&commands, 1}}, memory.get()));
  return costs.at(0);
}

TEST(VivanteTiming, ReadsTheDescriptor) {
  const Bytes kernels = coefficients(0, 0);
  const auto cost = time_one(instruction(), kernels);
  ASSERT_TRUE(cost.ok()) << cost.error().message;
  EXPECT_EQ(cost->cycles, 2 * 4 * 3);
  EXPECT_EQ(cost->read_bytes, static_cast<double>(kernels.size()) + 8 * 256);
  EXPECT_EQ(cost->written_bytes, 16 * 256);
}

TEST(VivanteTiming, SuperblocksReadTheImageAgainUnlessItIsCached) {
  const Bytes kernels = coefficients(0, 0);
  hw::NnInstruction d = instruction();
  const double once = time_one(d, kernels)->read_bytes;
  d.kernels_per_core = 1;
  EXPECT_EQ(time_one(d, kernels)->read_bytes - once, 8 * 256);
  d.image_caching_mode = hw::Caching::full;
  EXPECT_EQ(time_one(d, kernels)->read_bytes, once);
  EXPECT_EQ(time_one(d, kernels)->on_chip_bytes, 8 * 256);
}

TEST(VivanteTiming, TilesOfADescriptorCount) {
  const Bytes kernels = coefficients(0, 0);
  hw::NnInstruction d = instruction();
  const double cycles = time_one(d, kernels)->cycles;
  d.out_tile_x_size = 5;
  d.out_tile_y_size = 3;
  EXPECT_GT(time_one(d, kernels)->cycles, cycles);
}

TEST(VivanteTiming, ZerosInRuns) {
  hw::NnInstruction d = instruction();
  d.kernel_z_size = 1024;
  const double dense = time_one(d, coefficients(0, 6, 1024))->cycles;  // single zeros cost as much as other weights
  const double runs = time_one(d, coefficients(4, 6, 1024), 0)->cycles;
  EXPECT_NEAR(runs / dense, 0.25, 0.02);  // two of eight are coded
  EXPECT_EQ(time_one(d, coefficients(4, 6, 1024), 1)->cycles, dense);
}

TEST(VivanteTiming, BadJobsAreErrors) {
  hw::NnInstruction d = instruction();
  d.out_tile_x_size = 0;
  EXPECT_FALSE(time_one(d, coefficients(0, 0)).ok());
  d = instruction();
  d.kernel_address = {.offset = kKernels + 0x100000};
  EXPECT_FALSE(time_one(d, coefficients(0, 0)).ok());
  EXPECT_FALSE(time_one(instruction(), Bytes(64)).ok());
}

}  // namespace
}  // namespace skillet::sim::vivante
