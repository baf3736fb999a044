#include "npus/vivante/compiler/tile.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/int_math.h"

namespace skillet::npus::vivante {
namespace {

constexpr int32_t kMaxTileX = 64;
constexpr int32_t kMaxKernelsPerCore = 127;  // 7-bit field

constexpr int32_t kAreaPx = 64;  // of an accumulation buffer for areas

// Rows processed together; the hardware derives the number from the tile width.
int32_t interleave(const hw::Generation& generation, int32_t tile_x, int32_t kernel_height) {
  const int32_t reach = kernel_height - 1 + tile_x;
  if (reach > 36) return 1;
  const int32_t most = tile_x > 32 ? 1 : tile_x > 16 ? 2 : tile_x > 8 ? 4 : 8;
  return std::min(most, reach > 18 ? generation.interleave_wide : generation.interleave_narrow);
}

// Kernels whose tile fits the accumulation buffer at once, if it holds rows.
int32_t kernels_by_rows(const hw::ChipRow& chip, const NnOperation& op, const Tiling& t) {
  const int32_t fit = chip.accum_buffer_depth * t.interleave / t.tile_y;
  return op.kernels.width == 1 ? std::min(fit, chip.accum_buffer_depth / 3) : fit;
}

// The same if it holds areas.
int32_t kernels_by_areas(const hw::ChipRow& chip, const NnOperation& op, const Tiling& t) {
  const int32_t areas = op.kernels.width == 1 ? ceil_div(t.tile_y, t.interleave)
                                              : ceil_div(ceil_div(t.tile_y * t.tile_x, op.stride), kAreaPx) * op.stride;
  return std::min(chip.accum_buffer_depth / areas, chip.accum_buffer_depth * 6 / 9);
}

int32_t superblocks(const hw::ChipRow& chip, const NnOperation& op, const Tiling& t) {
  const int32_t oc = op.kernels.output_channels;
  const int32_t per_core = ceil_div(oc, chip.nn_cores);
  const bool areas = hw::generation_of(chip).accumulates_areas;
  int32_t fit = areas ? kernels_by_areas(chip, op, t) : kernels_by_rows(chip, op, t);
  fit = std::max(std::min({fit, per_core, kMaxKernelsPerCore}), 1);
  const int32_t k = ceil_div(oc, chip.nn_cores * fit);
  const int32_t n = ceil_div(oc, k * chip.nn_cores);
  return ceil_div(per_core, n);
}

// The units of kernel data that stay in SRAM if not all fit: recorded from a vendor driver, by output channels.
struct PatternRow {
  int32_t channels_min;
  uint32_t msb;
  uint64_t pattern;
};
constexpr std::array kPatterns = {
    PatternRow{1024, 0x13, 0x00000000'00080000}, PatternRow{512, 0x3d, 0x2AAAAAA0'00000000},
    PatternRow{256, 0x3e, 0x7FFFFFFF'FFFFAAAA},  PatternRow{160, 0x06, 0x00000000'0000007E},
    PatternRow{0, 0x3f, 0xFFFFFFFF'FFFFFFFE},
};

uint32_t image_tile_bytes(const NnOperation& op, const Tiling& t) {
  if (t.superblocks == 1) return 0;  // each tile is read once: nothing to gain
  const int64_t tile = int64_t{t.tile_x + op.kernels.width - 1} * (t.tile_y + op.kernels.height - 1);
  return static_cast<uint32_t>(align_up(align_up(tile, 16) * op.in.channels, 128));
}

void set_image_window(CacheWindows& w, uint32_t image, uint32_t sram) {
  w.image_mode = hw::Caching::full;
  if (image < w.kernel_start) return;
  w.image_start = w.kernel_end;
  w.image_end = std::min(w.image_start + image, sram);
}

}  // namespace

namespace {

// A tiling without its height, and the largest height that fits the on-chip buffers.
struct Room {
  Tiling tiling;
  int32_t rows_max = 1;
};
Room room_for(const hw::ChipRow& chip, const NnOperation& op) {
  const int32_t scale = op.first_pixel ? 2 : 1;
  const int32_t out_w = op.tile_basis_width ? op.tile_basis_width : op.out.width * scale;
  const int32_t out_h = op.tile_basis_height ? op.tile_basis_height : op.out.height * scale;
  Room room;
  Tiling& t = room.tiling;
  t.tile_x = std::min(out_w, kMaxTileX);
  t.interleave = interleave(hw::generation_of(chip), t.tile_x, op.kernels.height);
  const int32_t h = chip.input_buffer_depth * t.interleave - op.kernels.height + 1;
  room.rows_max = std::min({h, t.interleave * chip.accum_buffer_depth, out_h, hw::generation_of(chip).tile_rows_max});
  return room;
}

Tiling with_rows(const hw::ChipRow& chip, const NnOperation& op, Tiling t, int32_t rows) {
  if (op.stride > 1 && is_odd(rows)) --rows;
  t.tile_y = std::max(rows, 1);
  t.superblocks = superblocks(chip, op, t);
  return t;
}

}  // namespace

Tiling tile(const hw::ChipRow& chip, const NnOperation& op) {
  const Room room = room_for(chip, op);
  return with_rows(chip, op, room.tiling, op.tile_rows > 0 ? std::min(room.rows_max, op.tile_rows) : room.rows_max);
}

std::vector<int32_t> other_tile_rows(const hw::ChipRow& chip, const NnOperation& op) {
  const Room room = room_for(chip, op);
  const Tiling usual = tile(chip, op);
  std::vector<int32_t> out;
  int32_t fewest = INT32_MAX;
  for (int32_t rows = room.rows_max; rows >= 1; --rows) {
    const Tiling t = with_rows(chip, op, room.tiling, rows);
    if (t.tile_y != rows || t.superblocks >= fewest) continue;
    fewest = t.superblocks;
    if (t.tile_y != usual.tile_y) out.push_back(rows);
  }
  return out;
}

CachePattern partial_pattern(int64_t kernels) {
  const auto row = std::ranges::find_if(kPatterns, [&](const PatternRow& one) { return kernels >= one.channels_min; });
  return {row->msb, row->pattern};
}

CacheWindows plan_cache(const hw::ChipRow& chip, const NnOperation& op, const Tiling& tiling,
                        uint32_t coefficient_bytes) {
  constexpr uint32_t kReserved = 0x800, kKernelEndMin = 0xA00;
  const uint32_t sram = chip.sram_bytes;
  uint32_t image = image_tile_bytes(op, tiling);
  CacheWindows w{.kernel_start = kReserved, .image_end = kReserved};
  if (uint64_t{kReserved} + coefficient_bytes + image < sram) {
    w.kernel_mode = hw::Caching::full;
    w.kernel_end = std::max(std::min(align_up(kReserved + coefficient_bytes, 128), sram), kKernelEndMin);
  } else {
    w.kernel_mode = hw::Caching::partial;
    const CachePattern pattern = partial_pattern(op.kernels.output_channels);
    w.pattern_msb = pattern.msb;
    w.pattern = pattern.pattern;
    if (kReserved + coefficient_bytes >= sram || image > sram) image = 0;
    w.kernel_end = sram - image;
  }
  if (image != 0) set_image_window(w, image, sram);
  // Without caching the recorded driver leaves the windows in the instruction. The reserved bytes may be all of the
  // SRAM.
  if (!op.sram_caches || sram <= kReserved) w.kernel_mode = w.image_mode = hw::Caching::none;
  return w;
}

}  // namespace skillet::npus::vivante
