#include "npus/vivante/compiler/program_check.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "base/leaked.h"
#include "npus/vivante/compiler/stream_check.h"
#include "npus/vivante/compiler/tile.h"
#include "npus/vivante/compiler/tp_reach.h"

namespace skillet::npus::vivante {
namespace {

using hw::Opcode;

struct FieldValue {
  std::string_view descriptor, field;
  bool any;
  uint64_t value;
};
constexpr std::array kFieldValues = {
#define ANY(descriptor, field) FieldValue{#descriptor, #field, true, 0},
#define ONLY(descriptor, field, value) FieldValue{#descriptor, #field, false, value},
#define STATE(state, value)
#include "npus/vivante/compiler/program_values.def"
#undef ANY
#undef ONLY
#undef STATE
};
struct StateValue {
  hw::State state;
  uint32_t value;
};
constexpr std::array kStateValues = {
#define ANY(descriptor, field)
#define ONLY(descriptor, field, value)
#define STATE(state, value) StateValue{hw::State::state, value},
#include "npus/vivante/compiler/program_values.def"
#undef ANY
#undef ONLY
#undef STATE
};

// By row of the descriptor: the allowed values; none: any.
using Allowed = std::vector<std::optional<std::vector<uint64_t>>>;
Allowed allowed_of(const bits::Descriptor& descriptor) {
  Allowed out;
  for (const bits::Row& row : descriptor.rows) {
    std::vector<uint64_t> values;
    bool any = false;
    for (const FieldValue& one : kFieldValues) {
      if (one.descriptor != descriptor.name || one.field != row.name) continue;
      any = any || one.any;
      values.push_back(one.value);
    }
    if (values.empty()) values.push_back(0);
    out.push_back(any ? std::nullopt : std::optional(std::move(values)));
  }
  return out;
}
const Allowed& allowed(const bits::Descriptor& descriptor) {
  const auto& kNn = leaked([] { return Allowed(allowed_of(bits::descriptor_of<hw::NnInstruction>())); });
  const auto& kTp = leaked([] { return Allowed(allowed_of(bits::descriptor_of<hw::TpInstruction>())); });
  return &descriptor == &bits::descriptor_of<hw::TpInstruction>() ? kTp : kNn;
}

// A condition on a field.
struct Rule {
  bool holds;
  const char* field;
  int64_t value;
  const char* otherwise;
};
std::string first_broken(const char* descriptor, std::span<const Rule> rules) {
  const auto broken = std::ranges::find(rules, false, &Rule::holds);
  if (broken == rules.end()) return "";
  return fmt::format("{}.{} = {}: {}", descriptor, broken->field, broken->value, broken->otherwise);
}

std::string refused_sizes(const hw::NnInstruction& nn) {
  const std::pair<const char*, uint32_t> sizes[] = {
      {"kernel_x_size", nn.kernel_x_size},
      {"kernel_y_size", nn.kernel_y_size},
      {"kernel_z_size", nn.kernel_z_size},
      {"kernels_per_core", nn.kernels_per_core},
      {"in_x_size", nn.in_x_size},
      {"in_y_size", nn.in_y_size},
      {"out_x_size", nn.out_x_size},
      {"out_y_size", nn.out_y_size},
      {"out_z_size", nn.out_z_size},
      {"out_tile_x_size", nn.out_tile_x_size},
      {"out_tile_y_size", nn.out_tile_y_size},
  };
  for (const auto& [name, size] : sizes) {
    if (size == 0) return fmt::format("nn_instruction.{} = 0", name);
  }
  return "";
}

// Tiles and kernels that the buffers of the cores hold (specification 9.2 to 9.4).
struct TileRoom {
  int64_t lines, lines_needed, accumulators, accumulators_needed;
};
TileRoom tile_room(const hw::ChipRow& chip, const hw::NnInstruction& nn) {
  const hw::Generation& generation = hw::generation_of(chip);
  const int64_t width = nn.out_tile_x_size, height = nn.out_tile_y_size, filter = nn.kernel_y_size;
  const int64_t reach = filter - 1 + width, most = width > 32 ? 1 : width > 16 ? 2 : width > 8 ? 4 : 8;
  const int64_t interleave =
      reach > 36 ? 1 : std::min<int64_t>(most, reach > 18 ? generation.interleave_wide : generation.interleave_narrow);
  const bool areas = generation.accumulates_areas;
  constexpr int64_t kAreaPx = 64;
  return {.lines = std::max<int64_t>(interleave * chip.input_buffer_depth, filter),
          .lines_needed = height + filter - 1,
          .accumulators = chip.accum_buffer_depth * (areas ? 1 : interleave),
          .accumulators_needed = (areas ? ceil_div(width * height, kAreaPx) : height) * nn.kernels_per_core};
}

bool is_window(const hw::ChipRow& chip, uint32_t start, uint32_t end) { return start <= end && end <= chip.sram_bytes; }

// The choice of kept kernels is known for these only. If nothing is kept the field has no meaning and may be either.
bool is_known_pattern(const hw::NnInstruction& nn) {
  const CachePattern known = partial_pattern(nn.out_z_size);
  const bool is_empty = nn.kernel_pattern_msb == 0 && nn.kernel_pattern == 0;
  const bool is_known = nn.kernel_pattern_msb == known.msb && nn.kernel_pattern == known.pattern;
  return (is_empty && nn.kernel_caching_mode != hw::Caching::partial) ||
         (is_known && nn.kernel_caching_mode != hw::Caching::full);
}

int64_t number(hw::Caching mode) { return static_cast<int64_t>(mode); }

std::string refused_sram(const hw::ChipRow& chip, const hw::NnInstruction& nn) {
  const bool kernels = nn.kernel_caching_mode != hw::Caching::none, image = nn.image_caching_mode != hw::Caching::none;
  const bool apart = nn.kernel_cache_end <= nn.image_cache_start || nn.image_cache_end <= nn.kernel_cache_start;
  return first_broken(
      "nn_instruction",
      std::array{
          Rule{!kernels || is_window(chip, nn.kernel_cache_start, nn.kernel_cache_end), "kernel_cache_end",
               nn.kernel_cache_end, "the window is not one of the on-chip memory"},
          Rule{!image || is_window(chip, nn.image_cache_start, nn.image_cache_end), "image_cache_end",
               nn.image_cache_end, "the window is not one of the on-chip memory"},
          Rule{is_known_pattern(nn), "kernel_pattern", static_cast<int64_t>(nn.kernel_pattern),
               "no pattern of so many kernels and this kernel_caching_mode"},
          Rule{!image || kernels, "image_caching_mode", number(nn.image_caching_mode), "without kernels there"},
          Rule{!image || !kernels || apart, "image_cache_start", nn.image_cache_start,
               "it overlaps the kernels' window"},
      });
}

uint64_t plus_one_run(uint64_t steps, uint64_t distance) { return steps == 0 ? 0 : (steps - 1) * distance; }

}  // namespace

// The front end ignores a pair of zeros. compile() writes no other packets than LOAD_STATE, which begins at an even
// word.
std::string refused_packet(std::span<const uint32_t> stream) {
  for (size_t at = 0; at < stream.size();) {
    const uint32_t word = stream[at], next = at + 1 < stream.size() ? stream[at + 1] : 0;
    const uint32_t count = word >> 16 & 0x3ff;
    const bool is_load = word >> 26 == static_cast<uint32_t>(Opcode::load_state) << 1 && count > 0;
    if (!is_load && (word != 0 || next != 0))
      return fmt::format("stream word {}: 0x{:08x} is no packet of a program", at, word != 0 ? word : next);
    if (!is_load) {
      at += 2;
      continue;
    }
    at += 1 + count;
    if (at % 2 != 0 && at < stream.size() && stream[at] != 0)
      return fmt::format("stream word {}: 0x{:08x} where a packet is filled up", at, stream[at]);
    at += at % 2;
  }
  return "";
}

std::string refused_state(uint32_t address, uint32_t value) {
  const auto is_same = [&](const StateValue& row) {
    return static_cast<uint32_t>(row.state) == address && row.value == value;
  };
  if (hw::state_name(address).empty() || std::ranges::any_of(kStateValues, is_same)) return "";  // the first: unknown
  return fmt::format("state {} (0x{:04x}) = 0x{:x}: no program has that", hw::state_name(address), address, value);
}

std::string refused_field(const bits::Descriptor& descriptor, std::span<const bits::Value> values) {
  const Allowed& all = allowed(descriptor);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i] || std::ranges::find(*all[i], values[i].integer) != all[i]->end()) continue;
    return fmt::format("{}.{} = {}: no program has that", descriptor.name, descriptor.rows[i].name,
                       bits::print_value(descriptor.rows[i], values[i]));
  }
  return "";
}

std::string refused_job(const hw::ChipRow& chip, const hw::NnInstruction& nn) {
  constexpr uint32_t kTileWidthMax = 64;
  if (std::string sizes = refused_sizes(nn); !sizes.empty()) return sizes;
  const bool first_pixel = nn.pooling == hw::Pooling::first_pixel;
  const uint32_t step = first_pixel ? 2 : 1;
  const TileRoom room = tile_room(chip, nn);
  std::string out = first_broken(
      "nn_instruction",
      std::array{
          Rule{nn.no_z_offset == chip.has(hw::kNoZOffset), "no_z_offset", nn.no_z_offset, "not of this chip"},
          Rule{nn.no_flush == hw::generation_of(chip).no_flush, "no_flush", nn.no_flush, "not of this chip"},
          Rule{!nn.depthwise || chip.has(hw::kDepthwise), "depthwise", nn.depthwise, "not of this chip"},
          Rule{!first_pixel || chip.has(hw::kFirstPixelPooling), "pooling", 3, "not of this chip"},
          Rule{nn.pooling_xy_size == (first_pixel ? 0 : 1), "pooling_xy_size", nn.pooling_xy_size,
               "not of this pooling"},
          Rule{nn.in_x_stride >= nn.in_x_size, "in_x_stride", nn.in_x_stride, "less than in_x_size"},
          Rule{nn.in_y_stride >= nn.in_y_size, "in_y_stride", nn.in_y_stride, "less than in_y_size"},
          Rule{nn.out_x_stride >= ceil_div(nn.out_x_size, step), "out_x_stride", nn.out_x_stride, "less than a row"},
          Rule{nn.out_y_stride >= ceil_div(nn.out_y_size, step), "out_y_stride", nn.out_y_stride, "less than a plane"},
          Rule{nn.out_tile_x_size <= kTileWidthMax, "out_tile_x_size", nn.out_tile_x_size, "more than 64"},
          Rule{room.lines_needed <= room.lines, "out_tile_y_size", nn.out_tile_y_size,
               "more than the input buffer holds"},
          Rule{room.accumulators_needed <= room.accumulators, "kernels_per_core", nn.kernels_per_core,
               "more than the accumulation buffer holds"},
          Rule{nn.in_border_const <= 0xff, "in_border_const", nn.in_border_const, "not a byte"},
      });
  return out.empty() ? refused_sram(chip, nn) : out;
}

std::string refused_job(const hw::ChipRow& /*chip*/, const hw::TpInstruction& tp) {
  const uint32_t planes = tp.in_z_size + tp.in_window_z_start_overfetch + tp.in_window_z_end_overfetch;
  std::string out = first_broken(
      "tp_instruction",
      std::array{
          Rule{tp.in_tile_x_size > 0, "in_tile_x_size", 0, "no tile"},
          Rule{tp.in_tile_y_size > 0, "in_tile_y_size", 0, "no tile"},
          Rule{tp.in_tile_x_inc > 0, "in_tile_x_inc", 0, "the tiles never end"},
          Rule{tp.in_tile_y_inc > 0, "in_tile_y_inc", 0, "the tiles never end"},
          Rule{tp.in_window_x_end >= tp.in_window_x_start, "in_window_x_end", tp.in_window_x_end, "before the start"},
          Rule{tp.in_window_y_end >= tp.in_window_y_start, "in_window_y_end", tp.in_window_y_end, "before the start"},
          Rule{planes > 0, "in_z_size", 0, "no plane"},
          Rule{tp.load_pwl_lut == tp.pwl_enable, "load_pwl_lut", tp.load_pwl_lut, "not as pwl_enable"},
          Rule{tp.load_pwl_lut_global_mem == tp.pwl_enable, "load_pwl_lut_global_mem", tp.load_pwl_lut_global_mem,
               "not as pwl_enable"},
          Rule{tp.pwl_sign_support == tp.pwl_enable, "pwl_sign_support", tp.pwl_sign_support, "not as pwl_enable"},
          Rule{tp.pwl_enable || tp.pwl_lut_address.offset == 0, "pwl_lut_address",
               static_cast<int64_t>(tp.pwl_lut_address.offset), "without pwl_enable"},
      });
  if (!out.empty()) return out;
  const auto output = tp_output(tp);
  if (!output) return "tp_instruction.out_loop_1_reset, _2_, _3_: too many resets to follow";
  // Limits a job's time by the size of its memory.
  if (output->elements > output->bytes)
    return fmt::format("tp_instruction.out_loop_0_inc to _6_inc: {} elements in {} bytes of output", output->elements,
                       output->bytes);
  return "";
}

std::optional<npu::Reach> reach_of(const hw::ChipRow& chip, const hw::NnInstruction& nn, std::string_view row,
                                   std::span<const uint8_t> coefficients) {
  if (row == "in_address") return npu::Reach{0, uint64_t{nn.in_x_stride} * nn.in_y_stride * nn.kernel_z_size};
  if (row == "out_address") return npu::Reach{0, uint64_t{nn.out_x_stride} * nn.out_y_stride * nn.out_z_size};
  if (row != "kernel_address") return std::nullopt;
  const auto bytes = coefficient_bytes(chip, nn, coefficients);
  return bytes ? std::optional(npu::Reach{0, *bytes}) : std::nullopt;
}

std::optional<npu::Reach> reach_of(const hw::ChipRow& /*chip*/, const hw::TpInstruction& tp, std::string_view row,
                                   std::span<const uint8_t> /*coefficients*/) {
  if (row == "in_tile_list_address") return tp.in_tile_global_mem ? std::nullopt : std::optional(npu::Reach{});
  if (row == "pwl_lut_address") return npu::Reach{0, tp.pwl_enable ? uint64_t{hw::kPwlEntries} * 4 : 0};
  if (row == "in_base_address") {
    if (tp.in_x_size == 0 || tp.in_y_size == 0 || tp.in_z_size == 0) return npu::Reach{};
    return npu::Reach{
        0, plus_one_run(tp.in_z_size, tp.in_slice) + plus_one_run(tp.in_y_size, tp.in_stride) + tp.in_x_size};
  }
  if (row != "out_base_address") return std::nullopt;
  const bool is_walk = tp.in_tile_x_inc > 0 && tp.in_tile_y_inc > 0 && tp.in_tile_x_size > 0 && tp.in_tile_y_size > 0 &&
                       tp.in_window_x_end >= tp.in_window_x_start && tp.in_window_y_end >= tp.in_window_y_start;
  const auto output = is_walk ? tp_output(tp) : std::nullopt;
  return output ? std::optional(npu::Reach{0, output->bytes}) : std::nullopt;
}

}  // namespace skillet::npus::vivante
