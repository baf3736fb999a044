// Tiling of an NN job: output tile, superblocks, on-chip cache windows (specification section 9).
// Called by encode.cpp.
// Must not know: graphs, bit positions.
#pragma once

#include <vector>

#include "npus/vivante/compiler/operations.h"

namespace skillet::npus::vivante {

struct Tiling {
  int32_t tile_x = 1, tile_y = 1;  // output px
  int32_t interleave = 1;          // image rows the hardware processes together
  int32_t superblocks = 1;         // passes over the input image
};
Tiling tile(const hw::ChipRow& chip, const NnOperation& op);
// Lower tiles that need fewer passes over the image than all higher ones: the choices for NnOperation::tile_rows.
std::vector<int32_t> other_tile_rows(const hw::ChipRow& chip, const NnOperation& op);

// Byte windows of on-chip SRAM.
struct CacheWindows {
  hw::Caching kernel_mode = hw::Caching::none, image_mode = hw::Caching::none;
  uint32_t kernel_start = 0, kernel_end = 0, image_start = 0, image_end = 0;
  uint32_t pattern_msb = 0;
  uint64_t pattern = 0;
};
// For weights of which only some kernels are cached: the pattern that plan_cache() writes.
struct CachePattern {
  uint32_t msb = 0;
  uint64_t pattern = 0;
};
CachePattern partial_pattern(int64_t kernels);
CacheWindows plan_cache(const hw::ChipRow& chip, const NnOperation& op, const Tiling& tiling,
                        uint32_t coefficient_bytes);

}  // namespace skillet::npus::vivante
