// NN instructions that the simulated core refuses, next to those that it accepts.
#include "npus/vivante/sim/nn_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace skillet::sim::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;

using Change = std::function<void(hw::NnInstruction&)>;

const hw::ChipRow& chip(std::string_view name) { return *hw::find_chip(name); }

// 3x3 over 16x12 pixels, padded, in tiles of 16x4.
hw::NnInstruction instruction() {
  hw::NnInstruction d{};
  d.kernel_x_size = d.kernel_y_size = 3;
  d.kernel_z_size = 8;
  d.kernels_per_core = 2;
  d.in_x_size = d.in_x_stride = d.out_x_size = d.out_x_stride = 16;
  d.in_y_size = d.in_y_stride = d.out_y_size = d.out_y_stride = 12;
  d.out_z_size = 16;
  d.out_tile_x_size = 16;
  d.out_tile_y_size = 4;
  d.pooling = hw::Pooling::none;
  d.pooling_xy_size = 1;
  return d;
}

std::string said(const Result<void>& checked) { return checked.ok() ? "" : checked.error().message; }

struct Row {
  const char* field;
  Change taken, refused;
  const char* chip = "a311d";
};

TEST(NnChecks, TakeWhatIsJustRight) {
  const auto pool = [](hw::NnInstruction& d) {
    d.pooling = hw::Pooling::first_pixel;
    d.pooling_xy_size = 0;
    d.out_x_stride = 8, d.out_y_stride = 6;
  };
  const Row rows[] = {
      {"in_x_stride", [](auto& d) { d.in_x_stride = 17; }, [](auto& d) { d.in_x_stride = 15; }},
      {"in_y_stride", [](auto& d) { d.in_y_stride = 13; }, [](auto& d) { d.in_y_stride = 11; }},
      {"out_x_stride", [](auto& d) { d.out_x_stride = 17; }, [](auto& d) { d.out_x_stride = 15; }},
      {"out_y_stride", [](auto& d) { d.out_y_stride = 13; }, [](auto& d) { d.out_y_stride = 11; }},
      {"out_x_stride", pool, [=](auto& d) { pool(d), d.out_x_stride = 7; }},
      {"out_y_stride", pool, [=](auto& d) { pool(d), d.out_y_stride = 5; }},
      {"out_x_stride", [=](auto& d) { pool(d), d.out_x_size = 15; }, [=](auto& d) { pool(d), d.out_x_size = 17; }},
      {"out_y_stride", [=](auto& d) { pool(d), d.out_y_size = 11; }, [=](auto& d) { pool(d), d.out_y_size = 13; }},
      {"pooling_xy_size", pool, [=](auto& d) { pool(d), d.pooling_xy_size = 1; }},
      {"pooling_xy_size", [](auto&) {}, [](auto& d) { d.pooling_xy_size = 0; }},
      {"pooling", [](auto&) {}, [](auto& d) { d.pooling = hw::Pooling::max; }},
      {"pooling", [](auto&) {}, pool, "vip7004"},
      {"in_border_const", [](auto& d) { d.in_border_const = 255; }, [](auto& d) { d.in_border_const = 256; }},
      {"out_tile_x_size", [](auto& d) { d.out_tile_x_size = 64; }, [](auto& d) { d.out_tile_x_size = 65; }},
      // Rows of a tile for each kernel: 64 on V7; areas of 64 pixels: 32 on V8.
      {"kernels_per_core", [](auto& d) { d.out_tile_x_size = 64, d.kernels_per_core = 16; },
       [](auto& d) { d.out_tile_x_size = 64, d.kernels_per_core = 17; }},
      {"kernels_per_core", [](auto& d) { d.kernels_per_core = 32; }, [](auto& d) { d.kernels_per_core = 33; }},
      {"kernels_per_core", [](auto& d) { d.kernels_per_core = 32; }, [](auto& d) { d.kernels_per_core = 33; },
       "imx8mp"},
      {"kernels_per_core", [](auto& d) { d.out_tile_x_size = 40, d.kernels_per_core = 10; },
       [](auto& d) { d.out_tile_x_size = 40, d.kernels_per_core = 11; }, "imx8mp"},
      {"kernel_x_size", [](auto& d) { d.kernel_x_size = 1; }, [](auto& d) { d.kernel_x_size = 0; }},
      {"kernel_y_size", [](auto& d) { d.kernel_y_size = 1; }, [](auto& d) { d.kernel_y_size = 0; }},
      {"kernel_z_size", [](auto& d) { d.kernel_z_size = 1; }, [](auto& d) { d.kernel_z_size = 0; }},
      {"kernels_per_core", [](auto& d) { d.kernels_per_core = 1; }, [](auto& d) { d.kernels_per_core = 0; }},
      {"in_x_size", [](auto& d) { d.in_x_size = 1; }, [](auto& d) { d.in_x_size = 0; }},
      {"in_y_size", [](auto& d) { d.in_y_size = 1; }, [](auto& d) { d.in_y_size = 0; }},
      {"out_x_size", [](auto& d) { d.out_x_size = 1; }, [](auto& d) { d.out_x_size = 0; }},
      {"out_y_size", [](auto& d) { d.out_y_size = 1; }, [](auto& d) { d.out_y_size = 0; }},
      {"out_z_size", [](auto& d) { d.out_z_size = 1; }, [](auto& d) { d.out_z_size = 0; }},
      {"out_tile_x_size", [](auto& d) { d.out_tile_x_size = 1; }, [](auto& d) { d.out_tile_x_size = 0; }},
      {"out_tile_y_size", [](auto& d) { d.out_tile_y_size = 1; }, [](auto& d) { d.out_tile_y_size = 0; }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("row {}: {}", &row - rows, row.field));
    hw::NnInstruction taken = instruction(), refused = instruction();
    row.taken(taken), row.refused(refused);
    EXPECT_EQ(said(check_geometry(taken, chip(row.chip))), "");
    EXPECT_TRUE(said(check_geometry(refused, chip(row.chip))).starts_with(fmt::format("nn_instruction.{} ", row.field)))
        << said(check_geometry(refused, chip(row.chip)));
  }
}

// Rows that the cores process together, for any tile (specification 9.2).
int interleave(bool is_v8, int kernel_rows, int tile_width) {
  const int t = kernel_rows - 1 + tile_width;
  if (t > 36) return 1;
  const int fitting = tile_width > 32 ? 1 : tile_width > 16 ? 2 : tile_width > 8 ? 4 : 8;
  if (is_v8) return t > 18 ? std::min(fitting, 2) : std::min(fitting, 4);
  return t > 18 ? std::min(fitting, 4) : std::min(fitting, 2);
}

TEST(NnChecks, TilesFitTheInputBuffer) {
  for (const auto& [name, depth] : {std::pair{"a311d", 12}, {"s905d3", 6}, {"imx8mp", 9}}) {
    for (const int kernel_rows : {1, 2, 3, 5, 11}) {
      for (int width = 1; width <= 64; ++width) {
        const int lines = std::max(interleave(depth == 9, kernel_rows, width) * depth, kernel_rows);
        hw::NnInstruction d = instruction();
        d.kernel_y_size = static_cast<uint32_t>(kernel_rows);
        d.kernels_per_core = 1;
        d.out_tile_x_size = static_cast<uint32_t>(width);
        d.out_tile_y_size = static_cast<uint32_t>(lines - kernel_rows + 1);
        ASSERT_EQ(said(check_geometry(d, chip(name))), "") << name << " " << kernel_rows << " " << width;
        ++d.out_tile_y_size;
        ASSERT_TRUE(said(check_geometry(d, chip(name))).starts_with("nn_instruction.out_tile_y_size "))
            << name << " " << kernel_rows << " " << width;
      }
    }
  }
}

// Kernels of 0x1000 bytes and an image, in the 0x80000 bytes of SRAM.
TEST(NnChecks, WindowsLieInSram) {
  const Coefficients coefficients{.cache_bytes = 0x1000};
  const auto both = [](hw::NnInstruction& d) {
    d.kernel_caching_mode = d.image_caching_mode = hw::Caching::full;
    d.kernel_cache_start = 0x800, d.kernel_cache_end = d.image_cache_start = 0x1800, d.image_cache_end = 0x80000;
  };
  const auto part = [=](hw::NnInstruction& d) { both(d), d.kernel_caching_mode = hw::Caching::partial; };
  const Row rows[] = {
      {"kernel_cache_start, _end ", [=](auto& d) { part(d), d.kernel_cache_end = 0; },
       [=](auto& d) { part(d), d.kernel_cache_end = 0x7FF; }},
      {"kernel_cache_start, _end ",
       [=](auto& d) { part(d), d.kernel_cache_end = 0x80000, d.image_caching_mode = hw::Caching::none; },
       [=](auto& d) { part(d), d.kernel_cache_end = 0x80001, d.image_caching_mode = hw::Caching::none; }},
      {"image_cache_start ", part, [=](auto& d) { part(d), d.image_cache_start = 0x17FF; }},
      {"kernel_cache_end", both, [=](auto& d) { both(d), d.kernel_cache_end = 0x17FF; }},
      {"kernel_cache_start, _end ", [=](auto& d) { both(d), d.kernel_cache_start = 0x400; },
       [=](auto& d) { both(d), d.kernel_cache_start = 0x1801; }},
      {"image_cache_start, _end ", [=](auto& d) { both(d), d.image_cache_end = 0x1800; },
       [=](auto& d) { both(d), d.image_cache_end = 0x17FF; }},
      {"image_cache_start, _end ", both, [=](auto& d) { both(d), d.image_cache_end = 0x80001; }},
      {"image_cache_start ", both, [=](auto& d) { both(d), d.image_cache_start = 0x17FF; }},
      {"image_cache_start ", [=](auto& d) { both(d), d.image_cache_start = 0, d.image_cache_end = 0x800; },
       [=](auto& d) { both(d), d.image_cache_start = 0, d.image_cache_end = 0x801; }},
      {"kernel_caching_mode, image_caching_mode ", [](auto& d) { d.kernel_caching_mode = static_cast<hw::Caching>(2); },
       [](auto& d) { d.kernel_caching_mode = static_cast<hw::Caching>(3); }},
      {"kernel_caching_mode, image_caching_mode ", both,
       [=](auto& d) { both(d), d.image_caching_mode = static_cast<hw::Caching>(2); }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(fmt::format("row {}: {}", &row - rows, row.field));
    hw::NnInstruction taken = instruction(), refused = instruction();
    row.taken(taken), row.refused(refused);
    EXPECT_EQ(said(check_sram(taken, chip(row.chip), coefficients)), "");
    const std::string why = said(check_sram(refused, chip(row.chip), coefficients));
    EXPECT_TRUE(why.starts_with(fmt::format("nn_instruction.{}", row.field))) << why;
  }
}

}  // namespace
}  // namespace skillet::sim::vivante
