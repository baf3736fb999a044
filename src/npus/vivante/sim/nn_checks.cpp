#include "npus/vivante/sim/nn_checks.h"

#include <algorithm>

#include "base/int_math.h"
#include "npus/vivante/sim/field_check.h"

namespace skillet::sim::vivante {
namespace {

namespace hw = ::skillet::vivante::hw;

constexpr uint32_t kTileWidthMax = 64;
constexpr int kAreaPx = 64;  // of an accumulation buffer for areas
constexpr uint32_t kPooling2x2 = 0, kPooling3x3 = 1;

// The pattern for this number of kernels or more (specification 9.5).
struct SeenPattern {
  uint32_t kernels_min, msb;
  uint64_t pattern;
};
constexpr SeenPattern kSeenPatterns[] = {{1024, 0x13, 0x00080000},
                                         {512, 0x3d, 0x2AAAAAA0'00000000},
                                         {256, 0x3e, 0x7FFFFFFF'FFFFAAAA},
                                         {160, 0x06, 0x0000007E},
                                         {0, 0x3f, 0xFFFFFFFF'FFFFFFFE}};

Result<void> check_nonzero(const hw::NnInstruction& d) {
  const std::pair<const char*, uint32_t> sizes[] = {
      {"nn_instruction.kernel_x_size", d.kernel_x_size},
      {"nn_instruction.kernel_y_size", d.kernel_y_size},
      {"nn_instruction.kernel_z_size", d.kernel_z_size},
      {"nn_instruction.kernels_per_core", d.kernels_per_core},
      {"nn_instruction.in_x_size", d.in_x_size},
      {"nn_instruction.in_y_size", d.in_y_size},
      {"nn_instruction.out_x_size", d.out_x_size},
      {"nn_instruction.out_y_size", d.out_y_size},
      {"nn_instruction.out_z_size", d.out_z_size},
      {"nn_instruction.out_tile_x_size", d.out_tile_x_size},
      {"nn_instruction.out_tile_y_size", d.out_tile_y_size},
  };
  for (const auto& [name, size] : sizes) {
    if (size == 0) return field_error(name, 0, "must be at least 1");
  }
  return {};
}

Result<void> check_pooling(const hw::NnInstruction& d, const hw::ChipRow& chip) {
  if (d.pooling != hw::Pooling::none && d.pooling != hw::Pooling::first_pixel)
    return field_error("nn_instruction.pooling", static_cast<int64_t>(d.pooling),
                       "only none and first pixel are modelled");
  if (d.pooling == hw::Pooling::first_pixel && !chip.has(hw::kFirstPixelPooling))
    return field_error("nn_instruction.pooling", 3, "chip {} has no first-pixel pooling", chip.name);
  const uint32_t expected = d.pooling == hw::Pooling::none ? kPooling3x3 : kPooling2x2;
  if (d.pooling_xy_size != expected)
    return field_error("nn_instruction.pooling_xy_size", d.pooling_xy_size, "must be {} with this pooling", expected);
  return {};
}

// Rows and planes may have gaps but must not overlap.
Result<void> check_strides(const hw::NnInstruction& d, const NnJob& job) {
  if (d.in_x_stride < d.in_x_size)
    return field_error("nn_instruction.in_x_stride", d.in_x_stride, "less than in_x_size {}", d.in_x_size);
  if (d.in_y_stride < d.in_y_size)
    return field_error("nn_instruction.in_y_stride", d.in_y_stride, "less than in_y_size {}", d.in_y_size);
  if (d.out_x_stride < job.out_width)
    return field_error("nn_instruction.out_x_stride", d.out_x_stride, "less than the {} px of a stored row",
                       job.out_width);
  if (d.out_y_stride < job.out_height)
    return field_error("nn_instruction.out_y_stride", d.out_y_stride, "less than the {} rows of a stored plane",
                       job.out_height);
  return {};
}

// Image rows that the cores process together; depends on the tile (specification 9.2).
int64_t interleave(const hw::NnInstruction& d, const hw::Generation& generation) {
  const uint32_t reach = d.kernel_y_size - 1 + d.out_tile_x_size;
  if (reach > 36) return 1;
  const uint32_t width = d.out_tile_x_size;
  const int fitting = width > 32 ? 1 : width > 16 ? 2 : width > 8 ? 4 : 8;
  return std::min(fitting, reach > 18 ? generation.interleave_wide : generation.interleave_narrow);
}

// All kernels of a superblock accumulate one tile at once (specification 9.4).
Result<void> check_accumulators(const hw::NnInstruction& d, const hw::ChipRow& chip) {
  const hw::Generation& generation = hw::generation_of(chip);
  const int64_t tile_px = int64_t{d.out_tile_x_size} * d.out_tile_y_size;
  const int64_t per_kernel = generation.accumulates_areas ? ceil_div(tile_px, kAreaPx) : d.out_tile_y_size;
  const int64_t room = chip.accum_buffer_depth * (generation.accumulates_areas ? 1 : interleave(d, generation));
  if (per_kernel * d.kernels_per_core <= room) return {};
  return field_error("nn_instruction.kernels_per_core", d.kernels_per_core,
                     "with tiles of {}x{} px more than the {} {} of the accumulation buffer", d.out_tile_x_size,
                     d.out_tile_y_size, room, generation.accumulates_areas ? "areas" : "rows");
}

Result<void> check_tile(const hw::NnInstruction& d, const hw::ChipRow& chip) {
  if (d.out_tile_x_size > kTileWidthMax)
    return field_error("nn_instruction.out_tile_x_size", d.out_tile_x_size, "at most {}", kTileWidthMax);
  SK_TRY(check_accumulators(d, chip));
  const int64_t lines =
      std::max<int64_t>(interleave(d, hw::generation_of(chip)) * chip.input_buffer_depth, d.kernel_y_size);
  if (int64_t{d.out_tile_y_size} + d.kernel_y_size - 1 > lines)
    return field_error("nn_instruction.out_tile_y_size", d.out_tile_y_size,
                       "with a filter of {} rows more than the {} lines of the input buffer", d.kernel_y_size, lines);
  return {};
}

Result<void> check_window(std::string_view what, uint32_t start, uint32_t end, uint32_t sram_bytes) {
  if (start <= end && end <= sram_bytes) return {};
  return error(ErrorCode::device,
               "nn_instruction.{}_cache_start, _end = 0x{:x}, 0x{:x}: not a range of the {} bytes of SRAM", what, start,
               end, sram_bytes);
}

}  // namespace

Result<void> check_geometry(const hw::NnInstruction& d, const hw::ChipRow& chip) {
  SK_TRY(check_nonzero(d));
  SK_TRY(check_pooling(d, chip));
  SK_TRY(check_strides(d, make_job(d, chip, TieRule::half_up)));
  SK_TRY(check_tile(d, chip));
  if (d.in_border_const > 0xff)
    return field_error("nn_instruction.in_border_const", d.in_border_const, "more than 8 bits with uint8 data");
  return {};
}

Result<void> check_sram(const hw::NnInstruction& d, const hw::ChipRow& chip, const Coefficients& coefficients) {
  const bool kernels_kept = d.kernel_caching_mode == hw::Caching::full;
  const bool image_kept = d.image_caching_mode == hw::Caching::full;
  if (static_cast<int>(d.kernel_caching_mode) > 2 || static_cast<int>(d.image_caching_mode) > 1)
    return error(ErrorCode::device, "nn_instruction.kernel_caching_mode, image_caching_mode = {}, {}: not modelled",
                 static_cast<int>(d.kernel_caching_mode), static_cast<int>(d.image_caching_mode));
  // In recorded jobs that keep a part the window has no end if the image does not fit (9.5).
  const bool some_kept = d.kernel_caching_mode == hw::Caching::partial && d.kernel_cache_end != 0;
  if (kernels_kept || some_kept)
    SK_TRY(check_window("kernel", d.kernel_cache_start, d.kernel_cache_end, chip.sram_bytes));
  if (image_kept) SK_TRY(check_window("image", d.image_cache_start, d.image_cache_end, chip.sram_bytes));
  const int64_t window = int64_t{d.kernel_cache_end} - d.kernel_cache_start;
  if (kernels_kept && window < coefficients.cache_bytes)
    return field_error("nn_instruction.kernel_cache_end", d.kernel_cache_end,
                       "the window has {} bytes, the coefficients {}", window, coefficients.cache_bytes);
  const bool disjoint = d.kernel_cache_end <= d.image_cache_start || d.image_cache_end <= d.kernel_cache_start;
  if ((kernels_kept || some_kept) && image_kept && !disjoint)
    return field_error("nn_instruction.image_cache_start", d.image_cache_start,
                       "the image's window overlaps the kernels'");
  return {};
}

Result<void> check_superblocks(const hw::NnInstruction& d, const Coefficients& coefficients, const Leniency& leniency) {
  if (d.kernels_per_core <= coefficients.kernels_per_core) return {};
  return leniency.broken(Rule::superblocks, "nn_instruction.kernels_per_core = {}: each core has {} in all",
                         d.kernels_per_core, coefficients.kernels_per_core);
}

Result<void> check_pattern(const hw::NnInstruction& d, const Leniency& leniency) {
  const bool kept = d.kernel_caching_mode == hw::Caching::full, parted = d.kernel_caching_mode == hw::Caching::partial;
  const auto* const seen =
      std::ranges::find_if(kSeenPatterns, [&](const SeenPattern& row) { return d.out_z_size >= row.kernels_min; });
  const bool is_empty = d.kernel_pattern_msb == 0 && d.kernel_pattern == 0;
  const bool is_seen = d.kernel_pattern_msb == seen->msb && d.kernel_pattern == seen->pattern;
  // If nothing is kept the field has no meaning: recorded jobs have both values.
  if ((is_empty && !parted) || (is_seen && !kept)) return {};
  return leniency.broken(Rule::kernel_pattern,
                         "nn_instruction.kernel_pattern_msb, kernel_pattern = 0x{:x}, 0x{:x} with {} kernels and "
                         "kernel_caching_mode {}: not modelled",
                         d.kernel_pattern_msb, d.kernel_pattern, d.out_z_size, static_cast<int>(d.kernel_caching_mode));
}

NnJob make_job(const hw::NnInstruction& d, const hw::ChipRow& chip, TieRule rule) {
  const hw::Generation& generation = hw::generation_of(chip);
  NnJob job;
  job.step = d.pooling == hw::Pooling::first_pixel ? 2 : 1;
  job.in_width = d.in_x_size;
  job.in_height = d.in_y_size;
  job.in_planes = d.kernel_z_size;
  job.in_row_bytes = d.in_x_stride;
  job.in_plane_bytes = int64_t{d.in_x_stride} * d.in_y_stride;
  job.border = static_cast<uint8_t>(d.in_border_const);
  job.out_width = ceil_div(int64_t{d.out_x_size}, job.step);
  job.out_height = ceil_div(int64_t{d.out_y_size}, job.step);
  job.out_planes = d.out_z_size;
  job.out_row_bytes = d.out_x_stride;
  job.out_plane_bytes = int64_t{d.out_x_stride} * d.out_y_stride;
  job.kernel_width = static_cast<int>(d.kernel_x_size);
  job.kernel_height = static_cast<int>(d.kernel_y_size);
  job.offset_x = d.in_x_offset;
  job.offset_y = d.in_y_offset;
  job.requant = {.multiplier = (1U << generation.multiplier_bits) + d.post_multiplier,
                 .shift = static_cast<int>(d.post_shift) + generation.shift_base,
                 .relu = d.relu,
                 .zero_point = static_cast<uint8_t>(d.out_zero_point),
                 .rule = rule};
  return job;
}

}  // namespace skillet::sim::vivante
