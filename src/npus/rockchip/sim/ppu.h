// Pooling: reads the PPU and PPU_RDMA registers of a task and runs it (hardware specification A.1).
// Called by core.cpp.
// Must not know: commands, the other units.
#pragma once

#include "npus/rockchip/sim/dma.h"
#include "npus/rockchip/sim/options.h"
#include "npus/rockchip/sim/registers.h"

namespace skillet::sim::rockchip {

struct PoolJob {
  hw::Pooling method = hw::Pooling::average;
  int64_t in_width = 0, in_height = 0, lanes = 0, out_width = 0, out_height = 0;
  int64_t kernel_width = 1, kernel_height = 1, stride_x = 1, stride_y = 1;
  int64_t pad_left = 0, pad_top = 0, pad_right = 0, pad_bottom = 0;
  int32_t pad_value = 0;
  bool skips_pads = false;    // an average counts only the taps inside the plane
  bool divides_late = false;  // divides by the count of the window before
  int64_t in_address = 0, in_row_bytes = 0, in_surface_bytes = 0;
  int64_t out_address = 0, out_surface_bytes = 0;
};

// Settings that chips have in different registers.
struct PoolMode {
  hw::Pooling method = hw::Pooling::average;
  int32_t pad_value = 0;
  bool skips_pads = false;
};
// Reads the registers that all chips share.
Result<PoolJob> read_pool(Registers& registers, const PoolMode& mode, const Options& options);
Result<PoolJob> read_pool_job(Registers& registers, const Options& options);
Result<void> run_pool(const PoolJob& job, const Dma& dma);

// Average of `count` values with the chip's rounding: to nearest; an exact half of an even count goes away from zero
// or, if the reciprocals are inexact or the result is odd, toward zero. Wraps to int8.
int8_t average(int64_t sum, int64_t kernel_width, int64_t kernel_height);

}  // namespace skillet::sim::rockchip
